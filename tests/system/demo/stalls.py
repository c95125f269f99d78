# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How long clients wait in migrations, held against plain restarts: python -m tests.system.demo.stalls [--times N].

Each time, the testbed is reset and goes from ZooKeeper to the finalized quorum under verification clients. Before the
first migration and after the last one, all nodes restart without a change: in ZooKeeper mode, then in KRaft mode.
build/stalls/NAME has the clients' verdict and picture of each, build/stalls/stalls.json the longest wait by kind of
client: of a producer from sending to the acknowledgement, of a consumer from there to receiving. A message that is
never acknowledged, since its producer gave it up, waits to the end; the stalls leave it out. Exit code 1 if a run
fails, or a message is lost or duplicated. The hosts share this machine's cores with Spark unless
--without-verification is given.
"""

from __future__ import annotations

import argparse
import json
import re
import shutil
import sys
import time

from tests.system import testbed
from tests.system.demo import screen
from tests.system.demo.demo import PLAYBOOK, RUN_LIMIT_S, SETTINGS, DemoError
from tests.system.demo.observers import Observers
from tests.system.demo.runs import play
from tests.system.demo.verdict import collect
from tests.system.testbed.layout import INVENTORY, ROOT

DIRECTORY = ROOT / "build" / "stalls"
RESTART = "playbooks/restart.yml"
RESTARTS = ("restart in ZooKeeper mode", "restart in KRaft mode")
DAMAGES = ("lost", "duplicated", "reordered", "aborted_visible")
ACCEPT = re.compile(r"add -e (quorumshift_accept_degraded=\w+)")


class Observed:
    """One stay of the verification clients, with the playbooks that run meanwhile."""

    def __init__(self, name: str, settings: list[str], changes: bool = True) -> None:
        self.name, self.settings, self.changes = name, settings, changes
        self.observers = Observers(DIRECTORY / name.replace(" ", "-"))

    def __enter__(self) -> Observed:
        self.observers.begin(changes=self.changes)
        return self

    def __exit__(self, *_error) -> None:
        self.observers.stop_all()

    def play(self, *argv: str) -> screen.StatusScreen | None:
        """Run a playbook; return the status that it shows. Raises DemoError where it fails."""
        number = len(list(self.observers.directory.glob("*.log")))
        log = self.observers.directory / f"{number}.log"
        run = play(self.name, [*argv, *self.settings], log, RUN_LIMIT_S)
        if run.exit_code != 0:
            raise DemoError(f"{self.name}: {' '.join(argv)} ended with exit code {run.exit_code}: see {log}")
        return screen.read(run.output)

    def end(self) -> dict:
        """Stop the clients; return the longest waits and what was damaged."""
        found = collect(self.observers)[2]
        if not found:
            raise DemoError(f"{self.name}: the verification clients gave no verdict")
        return {
            "name": self.name,
            "verdict": found["verdict"],
            "acknowledged": found["acked"],
            "damages": {damage: found[damage] for damage in DAMAGES if found[damage]},
            "unacknowledged": found["indeterminate"],
            "reasons": found["reasons"],
            "waits_ms": found["longest_wait_ms"],
            "stalls_ms": found["max_stall_ms"],
            "slowest": {side: messages[:3] for side, messages in found["slowest"].items()},
        }


def playbook(name: str) -> list[str]:
    return ["ansible-playbook", "-i", str(INVENTORY.relative_to(ROOT)), name]


def migrate(number: int, settings: list[str]) -> dict:
    """Reset the testbed, migrate and finalize it; return what the clients saw."""
    testbed.manage("reset")
    with Observed(f"migration {number:02d}", settings) as clients:
        shown = clients.play(*playbook(PLAYBOOK))
        if shown is None or not shown.command or shown.phase != "dual_write":
            raise DemoError(f"migration {number} did not stop in dual-write: {shown}")
        time.sleep(max(0.0, (shown.soak_until or 0) - time.time()))
        shown = clients.play(*shown.command)
        if shown is None or shown.phase != "finalized":
            raise DemoError(f"migration {number} was not finalized: {shown}")
        return clients.end()


def restart(name: str, settings: list[str]) -> dict:
    """Restart all nodes as they are; return what the clients saw. In KRaft mode nothing changes metadata meanwhile: a
    SCRAM user that was removed keeps brokers from a restart (churn.py)."""
    accepted = accept_single_replicas()
    with Observed(name, settings, changes=name == RESTARTS[0]) as clients:
        clients.play(*playbook(RESTART), *accepted)
        return clients.end()


def accept_single_replicas() -> list[str]:
    """Return the variable that accepts what a restart makes unavailable: partitions of one replica. A restart without
    it is refused before its first node, and names it."""
    run = play("restart refused", [*playbook(RESTART), *SETTINGS], DIRECTORY / "refused.log", RUN_LIMIT_S)
    token = ACCEPT.search(run.output)
    if run.exit_code == 0 or token is None:
        raise DemoError("a restart of partitions with one replica was not refused")
    return ["-e", token[1]]


def show(rows: list[dict]) -> None:
    """Print the longest waits, a row each, a column for each kind of client."""
    kinds = [
        (side, kind)
        for side in ("producer", "consumer")
        for kind in sorted({k for row in rows for k in row["waits_ms"][side]})
    ]
    names = [f"{side[:4]} {kind}" for side, kind in kinds]
    width = max(len(row["name"]) for row in rows)
    print(f"\n{'longest wait, ms':<{width}}  " + "  ".join(f"{name:>14}" for name in names) + "  damages")
    for row in rows:
        waits = (row["waits_ms"][side].get(kind, 0) for side, kind in kinds)
        print(
            f"{row['name']:<{width}}  " + "  ".join(f"{wait:>14,}" for wait in waits) + f"  {row['damages'] or 'none'}",
            f"stalls {row['stalls_ms']}, {row['unacknowledged']} not acknowledged",
            *row["reasons"],
            sep="; ",
            flush=True,
        )


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.system.demo.stalls", description=__doc__)
    parser.add_argument("--times", type=int, default=10, help="migrations (default: 10)")
    parser.add_argument("--without-verification", action="store_true", help="run no Spark job")
    given = parser.parse_args(arguments)
    settings = [*SETTINGS, *(["-e", "quorumshift_verify=false"] if given.without_verification else [])]
    shutil.rmtree(DIRECTORY, ignore_errors=True)
    DIRECTORY.mkdir(parents=True)
    rows: list[dict] = []

    def note(row: dict) -> None:
        rows.append(row)
        (DIRECTORY / "stalls.json").write_text(json.dumps(rows, indent=1) + "\n", encoding="utf-8")
        show(rows)

    try:
        testbed.manage("reset")
        note(restart(RESTARTS[0], settings))
        for number in range(1, given.times + 1):
            note(migrate(number, settings))
        note(restart(RESTARTS[1], settings))
    except DemoError as error:
        print(f"\nstalls: {error}", file=sys.stderr)
        return 1
    return 1 if any(row["damages"] for row in rows) else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
