# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Record the operator's screen for docs/recordings, as root:
``PYTHONPATH=.build .venv/bin/python -m tests.integration.recordings [NAME ...]``.

Each is a real playbook over real Kafka servers that this program starts, in a terminal of its own. Nothing in it is
written by hand but the line with the command. The run's directory, /srv/kafka-prod, exists in its namespace alone.
"""

from __future__ import annotations

import contextlib
import json
import os
import pathlib
import shlex
import sys
from collections.abc import Callable, Iterator

from confluent_kafka.admin import AdminClient, NewTopic

from tests.integration import admin_bed, servers
from tests.integration.service_manager import ManagedRuns, Manager
from tools import recording
from tools.checkout import ROOT

PICTURES = ROOT / "docs" / "recordings"
COLUMNS = 118  # the phases of `status` fit in a line
HERE, STATE = "/srv/kafka-prod", "/var/lib/quorumshift"


class Cluster(ManagedRuns):
    """A cluster of three brokers and a controller, and an operator's directory."""

    def __init__(self, home: pathlib.Path, controllers: list, brokers: list, manager: Manager) -> None:
        super().__init__(home, controllers, brokers, manager, "restart")
        self.brokers = brokers
        every = self.groups["all"]["vars"]
        for name in ("quorumshift_artifacts_dir", "quorumshift_stable_s"):
            del every[name]
        every["quorumshift_state_dir"] = STATE
        for group in ("kafka_broker", "kafka_controller"):
            for own in self.groups["all"]["children"][group]["hosts"].values():
                own["quorumshift_state_dir"] = STATE
        (home / "nodes").mkdir(exist_ok=True)
        self.write()

    @property
    def pause(self) -> pathlib.Path:
        return self.home / "nodes" / "pause"

    def record(
        self, playbook: str, *options: str, seen: Callable[[str], None] = lambda _text: None
    ) -> tuple[int, recording.Recording]:
        """Record a playbook; `seen` gets what can be read, after each change."""
        words = ["ansible-playbook", f"quorumshift.kafka.{playbook}", "-i", "inventory.yml", *options]
        prepare = [
            "mount -t tmpfs none /run && mkdir -p /run/systemd/system /run/lock",
            f"mount -t tmpfs none /srv && mkdir {HERE} && cp {self.inventory} {HERE}/inventory.yml && cd {HERE}",
            f"mount -t tmpfs none /var/lib && mkdir {STATE} && mount --bind {self.home / 'nodes'} {STATE}",
            f"exec {shlex.join(words)}",
        ]
        environment = {
            **{name: value for name, value in os.environ.items() if not name.startswith("ANSIBLE_") and name != "CI"},
            "ANSIBLE_COLLECTIONS_PATH": str(ROOT / ".build"),
            "ANSIBLE_HOME": str(self.home / "ansible"),
            "ANSIBLE_STDOUT_CALLBACK": "quorumshift.kafka.screen",
            "NO_COLOR": "1",
            "TERM": "xterm",
            "LC_ALL": "C.UTF-8",
            "PATH": f"{self.manager.bin}:{pathlib.Path(sys.executable).parent}:{os.environ['PATH']}",
        }
        command = ["unshare", "--mount", "sh", "-c", " && ".join(prepare)]
        return recording.record(
            shlex.join(words), command, environment, COLUMNS, seen=lambda shown, _pid: seen(shown.text)
        )


@contextlib.contextmanager
def cluster() -> Iterator[Cluster]:
    with admin_bed.kraft("recordings", 3) as (home, controller, brokers), contextlib.ExitStack() as stack:
        manager = stack.enter_context(Manager(home, [controller, *brokers]))
        admin = AdminClient({"bootstrap.servers": str(brokers[0].address)})
        topic = NewTopic("orders", 12, 3, config={"min.insync.replicas": "2"})
        servers.create_topics(admin, [topic])
        yield Cluster(home, [controller], brokers, manager)


def restart(own: Cluster) -> recording.Recording:
    """A rolling restart."""
    code, made = own.record("restart", "-e", "restart_roles=broker")
    assert code == 0
    return made


def pause(own: Cluster) -> recording.Recording:
    """A run that is paused from elsewhere after its first restart, and resumed."""
    resumed = False

    def seen(text: str) -> None:
        nonlocal resumed
        if " is up (" in text and not own.pause.exists() and not resumed:
            own.pause.write_text("disk alert on b3\n")
        if "restarts are paused" in text and "(12 s)" in text:
            resumed = True
            own.pause.unlink(missing_ok=True)

    code, made = own.record("restart", "-e", "restart_roles=broker", seen=seen)
    own.pause.unlink(missing_ok=True)
    assert code == 0 and resumed
    return made


def stopped(own: Cluster) -> recording.Recording:
    """A broker is down, so that no other one is stopped: the run ends with what it saw last."""
    lost = own.brokers[-1]
    own.manager.kill(lost.name)
    code, made = own.record("restart", "-e", "quorumshift_roll_timeout_s=20")
    assert code == 2
    return made


def status(own: Cluster) -> recording.Recording:
    """The status screen."""
    code, made = own.record("status")
    assert code == 0
    return made


RECORDINGS = {made.__name__: made for made in (status, restart, pause, stopped)}


def main(names: list[str]) -> int:
    """Record those named, or all."""
    PICTURES.mkdir(exist_ok=True)
    with cluster() as own:
        for name in names or RECORDINGS:
            made = RECORDINGS[name](own)
            kept = ROOT / "build" / f"{name}.cast"
            recording.write_cast(made, kept)
            if str(ROOT) in json.dumps(made.events):
                print(f"{name} shows a path of this checkout: {kept}", file=sys.stderr)
                return 1
            recording.write_cast(made, PICTURES / f"{name}.cast")
            (PICTURES / f"{name}.svg").write_text(recording.svg(made), encoding="utf-8")
            print(f"{name}: {made.events[-1][0]:.0f} s, {(PICTURES / f'{name}.svg').stat().st_size // 1024} KiB")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
