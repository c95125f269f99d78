# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""`make journey`: TESTBED_VARIANT=journey python -m tests.system.journey [--no-spark].

Takes a live cluster of Kafka 3.7.2 in ZooKeeper mode to Kafka 4.1.1 while verification clients run. An upgrade to 3.9.2
is killed half-way and taken back. Then come the upgrade with its double roll, the migration to KRaft, its finalization,
the upgrade to 4.1.1 by one roll, and metadata.version. build/journey/ has the runs' output, the clients' verdict and
picture, and timeline.json. Exit code 0: every step succeeded, and the clients lost, repeated and reordered nothing.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import signal
import subprocess
import sys
import time
from dataclasses import asdict, dataclass
from pathlib import Path

from ansible_collections.quorumshift.kafka.plugins.module_utils.core.releases import features
from ansible_collections.quorumshift.kafka.plugins.module_utils.settings.addresses import HostPort
from ansible_collections.quorumshift.kafka.plugins.module_utils.wire import kafka_wire

from tests.system import testbed
from tests.system.demo import screen, verdict
from tests.system.demo.observers import ObserverError, Observers
from tests.system.demo.runs import Run, play, runs_since
from tests.system.testbed.inventory import TestbedInventory
from tests.system.testbed.layout import INVENTORY, ROOT, VARIANT

DIRECTORY = ROOT / "build" / "journey"
RUN_LIMIT_S = 3600
SOAK_S = 5.0
SETTINGS = (
    *("-e", f"quorumshift_soak={SOAK_S:g}s"),
    *("-e", "quorumshift_stable_s=2"),
    *("-e", "quorumshift_probe_timeout=15"),
)
# (version, directory) of each release on the hosts (layout.py)
OLD, MIDDLE, NEW = ("3.7.2", "/opt/kafka-3.7.2"), ("3.9.2", "/opt/kafka"), ("4.1.1", "/opt/kafka-4.1.1")
INTERNAL_PORT = 9092  # templates/server.properties
_ACCEPT = re.compile(r"add -e (quorumshift_accept_degraded=\w+)")
_CONFIRM = re.compile(r"with -e (upgrade_confirm=\S+)")
_UP = re.compile(rb"^ +\S+ is up \(", re.MULTILINE)


class JourneyError(Exception):
    """The journey cannot continue; the text is for the operator."""


@dataclass
class Stage:
    """One stage of the journey: seconds from its beginning, how long it took, releases and phase at its end."""

    name: str
    at_s: float
    took_s: float
    runs: dict[str, list[str]]
    in_use: str


class Journey:
    """One journey; each stage is recorded."""

    def __init__(self, spark: bool) -> None:
        self.settings = [*SETTINGS, *([] if spark else ["-e", "quorumshift_verify=false"])]
        self.began = time.monotonic()
        self.observers = Observers(DIRECTORY)
        self.stages: list[Stage] = []

    def run(self) -> list[str]:
        """Go the whole way; return what is wrong, [] if nothing is. Raise JourneyError, ObserverError."""
        self.say("reset the testbed: brokers of Kafka 3.7.2 in ZooKeeper mode")
        testbed.manage("reset")
        self.say("start verification clients and recorder")
        self.observers.begin(changes=False)
        self.began = time.monotonic()
        self.stage("upgrade to 3.9.2, killed half-way", lambda: self.killed(MIDDLE))
        self.stage("binaries back to 3.7.2", lambda: self.upgrade(OLD))
        self.expect("3.7.2")
        confirm = self.stage("binaries to 3.9.2", lambda: self.upgrade(MIDDLE))
        self.expect("3.9.2")
        self.stage("inter.broker.protocol.version to 3.9", lambda: self.upgrade(MIDDLE, confirm))
        shown = self.stage("migration to dual-write", lambda: self.migrate([]))
        self.stage("finalization", lambda: self.finalize(shown))
        confirm = self.stage("binaries to 4.1.1", lambda: self.upgrade(NEW))
        self.expect("4.1.1")
        self.stage("metadata.version to 4.1", lambda: self.upgrade(NEW, confirm))
        problems = []
        last = self.play("again", self.upgrade_argv(NEW, confirm))
        if last.changed:
            problems.append(f"one more run reported {last.changed} changes")
        self.say("stop the verification clients and audit the log")
        return problems + self.evaluated()

    def stage(self, name: str, work):
        """Do a stage and record it; return what it returns."""
        self.say(name)
        began = time.monotonic()
        result = work()
        now = time.monotonic()
        self.stages.append(
            Stage(name, round(began - self.began, 1), round(now - began, 1), self.releases(), self.in_use())
        )
        (DIRECTORY / "timeline.json").write_text(json.dumps([asdict(stage) for stage in self.stages], indent=1) + "\n")
        return result

    def upgrade(self, release: tuple[str, str], confirm: str = "") -> str:
        """Run the upgrade; return the variable that confirms its second step, "" if there is none to make."""
        name = f"upgrade-{release[0]}{'-confirmed' if confirm else ''}-{len(self.stages)}"
        argv = self.upgrade_argv(release, confirm)
        run = self.play(name, argv, may_fail=True)
        accepted = _ACCEPT.search(run.output)
        if run.exit_code and accepted:  # partitions of one replica: an operator decides about them
            self.settings += ["-e", accepted[1]]
            run = self.play(f"{name}-accepted", self.upgrade_argv(release, confirm))
        elif run.exit_code:
            raise JourneyError(f"{argv[0]} ended with exit code {run.exit_code}: see its output above")
        found = _CONFIRM.search(run.output)
        return found[1] if found else ""

    def upgrade_argv(self, release: tuple[str, str], confirm: str = "") -> list[str]:
        version, home = release
        # Its brokers have no JMX port; the verification clients are of today
        accept = json.dumps({"upgrade_accept": {"QS-AUDIT-010": "the journey knows its clients"}})
        given = ["-e", f"upgrade_to={version}", "-e", f"upgrade_home={home}", "-e", accept]
        given += ["-e", confirm] if confirm else []
        return ["ansible-playbook", "-i", str(INVENTORY.relative_to(ROOT)), "playbooks/upgrade.yml", *given]

    def killed(self, release: tuple[str, str]) -> None:
        """Begin an upgrade, and kill its control process once the first broker is up with the new release."""
        for attempt in (1, 2):
            log = DIRECTORY / f"killed-{attempt}.log"
            argv = [*self.upgrade_argv(release), *self.settings]
            print(f"$ {' '.join(argv)}   # to be killed", flush=True)
            with log.open("wb") as output:
                process = subprocess.Popen(
                    argv,
                    cwd=ROOT,
                    env={**os.environ, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"},
                    stdin=subprocess.DEVNULL,
                    stdout=output,
                    stderr=subprocess.STDOUT,
                    start_new_session=True,
                )
                deadline = time.monotonic() + RUN_LIMIT_S
                while process.poll() is None and not _UP.search(log.read_bytes()):
                    if time.monotonic() > deadline:
                        os.killpg(process.pid, signal.SIGKILL)
                        raise JourneyError(f"no broker was up after {RUN_LIMIT_S} s: see {log}")
                    time.sleep(0.1)
                if process.poll() is None:
                    os.killpg(process.pid, signal.SIGKILL)
                    process.wait()
                    break
            accepted = _ACCEPT.search(log.read_text(encoding="utf-8"))
            if not accepted or attempt == 2:
                raise JourneyError(f"the upgrade ended before it was killed: see {log}")
            self.settings += ["-e", accepted[1]]
        found = {version for versions in self.releases().values() for version in versions}
        if not {OLD[0], release[0]} <= found:
            raise JourneyError(f"the upgrade was killed, and the hosts run {', '.join(sorted(found))}: not half-way")

    def migrate(self, more: list[str]) -> screen.StatusScreen:
        argv = ["ansible-playbook", "-i", str(INVENTORY.relative_to(ROOT)), "playbooks/migrate.yml", *more]
        shown = screen.read(self.play(f"migrate-{len(self.stages)}", argv).output)
        if shown is None:
            raise JourneyError("the migration printed no status screen")
        return shown

    def finalize(self, shown: screen.StatusScreen) -> None:
        """Wait for the soak, and finalize with the token that the run printed."""
        if not shown.command:
            raise JourneyError(f"the migration stopped in {shown.phase} and printed no next command")
        time.sleep(max(0.0, (shown.soak_until or 0) - time.time()))
        after = screen.read(self.play("finalize", shown.command).output)
        if after is None or after.phase != "finalized":
            raise JourneyError(f"the phase is {after.phase if after else 'unknown'}, not finalized")

    def play(self, name: str, argv: list[str], may_fail: bool = False) -> Run:
        argv = [*argv, *self.settings]
        print(f"$ {' '.join(argv)}", flush=True)
        run = play(name, argv, DIRECTORY / f"{name}.log", RUN_LIMIT_S)
        print(f"--- ended after {run.seconds} s with exit code {run.exit_code}", flush=True)
        if run.exit_code and not may_fail:
            raise JourneyError(f"{argv[0]} ended with exit code {run.exit_code}: see its output above")
        return run

    def releases(self) -> dict[str, list[str]]:
        """Return {host: versions of Kafka that run there}, as the processes themselves show."""
        hosts = TestbedInventory()
        script = (
            "for pid in $(pgrep -f ' kafka[.]Kafka '); do tr '\\0' '\\n' < /proc/$pid/cmdline"
            " | grep -o 'kafka_2[.]13-[0-9.]*[0-9]' | head -n 1; done; true"
        )
        return {
            host: sorted(line.rpartition("-")[2] for line in hosts.run(host, script).splitlines())
            for host in hosts.hosts
        }

    def in_use(self) -> str:
        """Return inter.broker.protocol.version of the brokers' files, or the metadata.version that one serves."""
        hosts = TestbedInventory()
        address = next(iter(hosts.brokers.values()))
        served = kafka_wire.api_versions(HostPort(address, INTERNAL_PORT), timeout=30).finalized_features
        level = served.get(features.METADATA_VERSION)
        if level:
            return f"{features.METADATA_VERSION} {features.name_of(features.METADATA_VERSION, level[1])}"
        lines = {
            hosts.run(host, "grep -h ^inter.broker.protocol.version /etc/kafka/server.properties")
            for host in hosts.brokers
        }
        return ", ".join(sorted(lines)).replace("=", " ")

    def expect(self, version: str) -> None:
        """Raise JourneyError unless every broker, and every controller that runs, runs this version."""
        found = self.stages[-1].runs
        others = {host: runs for host, runs in found.items() if runs not in ([version], [])}
        if others or not all(found[host] for host in TestbedInventory().brokers):
            raise JourneyError(f"after {self.stages[-1].name}, the hosts run {found}")

    def evaluated(self) -> list[str]:
        """Stop the clients; return what is wrong with their messages."""
        _events, journal, found = verdict.collect(self.observers)
        (DIRECTORY / "restarts.json").write_text(
            json.dumps([event for event in journal if event["kind"] == "restart"], indent=1) + "\n"
        )
        runs = len(runs_since(TestbedInventory().artifacts_dir, self.observers.begun))
        self.timeline(found, runs)
        if not found:
            return ["the verification clients left no verdict"]
        return [] if found["verdict"] == "pass" else [f"the clients' verdict is {found['verdict']}", *found["reasons"]]

    def timeline(self, seen: dict, runs: int) -> None:
        """Print the stages and what the clients saw."""
        print("\nbegins   takes  stage")
        for stage in self.stages:
            print(f"{stage.at_s:6.0f} s {stage.took_s:5.0f} s  {stage.name}")
            versions = " ".join(f"{host}:{','.join(found) or 'none'}" for host, found in stage.runs.items())
            print(f"{'':17}{versions}; {stage.in_use}")
        print(f"{runs} runs")
        if seen:
            shown = ("acked", "lost", "duplicated", "reordered")
            print(f"clients: {seen['verdict']}; " + ", ".join(f"{key} {seen[key]}" for key in shown if key in seen))

    def say(self, text: str) -> None:
        seconds = int(time.monotonic() - self.began)
        print(f"\n=== {seconds // 60:02d}:{seconds % 60:02d} {text}", flush=True)


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m tests.system.journey", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--no-spark", action="store_true", help="without the comparison before each gate")
    given = parser.parse_args(arguments)
    if VARIANT != "journey":
        print("set TESTBED_VARIANT=journey", file=sys.stderr)
        return 2
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.default_int_handler)
    journey = Journey(not given.no_spark)
    try:
        problems = journey.run()
    except KeyboardInterrupt:
        journey.observers.stop_all()
        return 130
    except (JourneyError, ObserverError, subprocess.CalledProcessError) as error:
        print(f"\nmake journey: failed: {error}; the testbed is left as it is", file=sys.stderr)
        journey.observers.stop_all()
        return 1
    print("\n".join(problems) or "\njourney: passed", flush=True)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
