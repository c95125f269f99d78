# Copyright: (c) 2026, Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The main job on the bed as an operator does it, while clients that must lose nothing run."""

from __future__ import annotations

import json
import time

from tools.demo import screen, testbed
from tools.demo.observers import Observers
from tools.demo.runs import Run, play
from tools.demo.testbed import INVENTORY, ROOT, TestbedInventory
from tools.demo.verdict import Told, detect

DIRECTORY = ROOT / "build" / "demo"
PLAYBOOK = "playbooks/migrate.yml"
RUN_LIMIT_S = 1800
FAILOVER_LIMIT_S = 120
SOAK_S = 20.0
STABLE_S = 2.0
# What an operator would have in the inventory, for a cluster that takes minutes instead of days and shares two cores
# with all its clients.
SETTINGS = [
    *("-e", f"quorumshift_soak={SOAK_S:g}s"),
    *("-e", f"quorumshift_stable_s={STABLE_S:g}"),
    *("-e", "quorumshift_probe_timeout=15"),
]


class DemoError(Exception):
    """The demo did not get on; the text says where and what to look at."""


class Demo:
    """One demo; `say` tells each step with the time since the start."""

    def __init__(self, failover: bool) -> None:
        self.failover = failover
        self.began = time.monotonic()
        self.observers = Observers(DIRECTORY)
        self.runs: list[Run] = []

    def say(self, text: str) -> None:
        seconds = int(time.monotonic() - self.began)
        print(f"\n=== {seconds // 60:02d}:{seconds % 60:02d} {text}", flush=True)

    def run(self) -> dict:
        """All of it; returns the summary. Raises DemoError, ObserverError, subprocess.CalledProcessError."""
        self.say("the bed goes back to its seed: three ZooKeeper-mode brokers, three prepared controllers, 66 topics")
        testbed.manage("reset")
        self.say(
            "witness, recorder and metadata changes start: producers, consumers, transactions; topics, ACLs, users"
        )
        self.observers.begin()
        self.say("the main job, to its stop in dual-write")
        shown = self._migrate("to dual_write", ["ansible-playbook", *self._inventory(), PLAYBOOK], "dual_write")
        if not shown.command:
            raise DemoError("the run stopped in dual_write and printed no command to type next")
        if self.failover:
            shown = self._fail_over(shown)
        self.say("metadata changes pause: do ZooKeeper and the brokers hold what was written, change for change?")
        differences = self.observers.compare("brokers", "ZooKeeper", go_on=True)
        print("\n".join(differences) or "they do", flush=True)
        self._soak(shown)
        self.say("the word, as the screen printed it, is typed")
        self._migrate("to finalized", shown.command, "finalized")
        self.say("once more: nothing is left to change")
        last = self._migrate("again", ["ansible-playbook", *self._inventory(), PLAYBOOK], None)
        self.say("the witness stops, reads its log again and judges")
        return detect(
            self.observers,
            Told(
                phase=last.phase,
                soak_s=SOAK_S,
                stable_s=STABLE_S,
                wall_s={run.name: run.seconds for run in self.runs},
                changed_on_second_run=self.runs[-1].changed,
                failovers=int(self.failover),
            ),
        )

    def _inventory(self) -> list[str]:
        return ["-i", str(INVENTORY.relative_to(ROOT))]

    def _migrate(self, name: str, argv: list[str], phase: str | None) -> screen.Shown:
        run = self._play(name, argv)
        self.runs.append(run)
        shown = screen.read(run.output)
        if shown is None:
            raise DemoError("the run ended well and printed no status screen")
        if phase and shown.phase != phase:
            raise DemoError(f"the run ended in phase {shown.phase}, not {phase}")
        return shown

    def _play(self, name: str, argv: list[str]) -> Run:
        argv = [*argv, *SETTINGS]
        print(f"$ {' '.join(argv)}", flush=True)
        run = play(name, argv, DIRECTORY / f"{name.replace(' ', '-')}.log", RUN_LIMIT_S)
        log = DIRECTORY / f"{name.replace(' ', '-')}.tasks.json"
        log.write_text(json.dumps(run.tasks, indent=1) + "\n", encoding="utf-8")
        print(f"--- ended after {run.seconds} s with exit code {run.exit_code}", flush=True)
        if run.exit_code != 0:
            raise DemoError(f"{argv[0]} ended with exit code {run.exit_code}: the reason stands above")
        return run

    def _fail_over(self, shown: screen.Shown) -> screen.Shown:
        """Kill the quorum's leader, start it again; returns the status screen after it, since the soak begins anew."""
        host = TestbedInventory().controller_ids[shown.leader]
        self.say(f"the active controller, {host}, is killed and started again")
        killed = time.time()
        # restart, since to systemd the unit may still be up, and a start would be nothing to do
        kill = "systemctl kill --signal=KILL kafka-controller"
        TestbedInventory().execute(host, f"{kill}; systemctl restart kafka-controller")
        deadline = time.monotonic() + FAILOVER_LIMIT_S
        while not self.observers.registered_since(host, killed):
            if time.monotonic() > deadline:
                raise DemoError(f"waited {FAILOVER_LIMIT_S} s for {host} to register in the quorum again")
            time.sleep(0.2)
        run = self._play("status", ["ansible-playbook", *self._inventory(), "playbooks/status.yml"])
        after = screen.read(run.output)
        if after is None or after.leader in (None, shown.leader) or after.phase != "dual_write":
            raise DemoError("after the failover the quorum should have another leader, in dual_write")
        return after

    def _soak(self, shown: screen.Shown) -> None:
        left = (shown.soak_until or 0) - time.time()
        if left <= 0:
            self.say("the soak is over already")
            return
        self.say(f"the soak: {left:.0f} s to go; production would take a day")
        time.sleep(left)
