# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A migration on the testbed as an operator runs it, while the verification clients run."""

from __future__ import annotations

import json
import time

from tests.system import testbed
from tests.system.demo import screen
from tests.system.demo.observers import Observers
from tests.system.demo.runs import Run, play
from tests.system.demo.verdict import Outcome, finish
from tests.system.testbed.inventory import TestbedInventory
from tests.system.testbed.layout import INVENTORY, ROOT

DIRECTORY = ROOT / "build" / "demo"
PLAYBOOK = "playbooks/migrate.yml"
RUN_LIMIT_S = 1800
FAILOVER_LIMIT_S = 120
SOAK_S = 20.0
STABLE_S = 2.0
# inventory settings for a soak of seconds, and for a cluster that shares two cores with its clients
SETTINGS = [
    *("-e", f"quorumshift_soak={SOAK_S:g}s"),
    *("-e", f"quorumshift_stable_s={STABLE_S:g}"),
    *("-e", "quorumshift_probe_timeout=15"),
]


class DemoError(Exception):
    """The demo cannot continue; the text is for the operator."""


class Demo:
    """One demo; `say` prints each step with the time since the start."""

    def __init__(self, failover: bool) -> None:
        self.failover = failover
        self.began = time.monotonic()
        self.observers = Observers(DIRECTORY)
        self.runs: list[Run] = []

    def say(self, text: str) -> None:
        seconds = int(time.monotonic() - self.began)
        print(f"\n=== {seconds // 60:02d}:{seconds % 60:02d} {text}", flush=True)

    def run(self) -> dict:
        """Run the demo; return the summary. Raise DemoError, ObserverError, subprocess.CalledProcessError."""
        self.say("reset the testbed: three ZooKeeper-mode brokers, three prepared controllers, 66 topics")
        testbed.manage("reset")
        self.say("start verification clients, recorder and metadata changes")
        self.observers.begin()
        self.say("migrate to dual-write")
        shown = self._migrate("to dual_write", ["ansible-playbook", *self._inventory(), PLAYBOOK], "dual_write")
        if not shown.command:
            raise DemoError("the run stopped in dual_write and printed no next command")
        if self.failover:
            shown = self._fail_over(shown)
        self.say("pause the metadata changes and compare ZooKeeper and the brokers with what was written")
        differences = self.observers.compare("brokers", "ZooKeeper", resume=True)
        print("\n".join(differences) or "no differences", flush=True)
        self._soak(shown)
        self.say("finalize with the token that the run printed")
        self._migrate("to finalized", shown.command, "finalized")
        self.say("run once more: nothing may change")
        last = self._migrate("again", ["ansible-playbook", *self._inventory(), PLAYBOOK], None)
        self.say("stop the verification clients, audit the log, evaluate")
        return finish(
            self.observers,
            Outcome(
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

    def _migrate(self, name: str, argv: list[str], phase: str | None) -> screen.StatusScreen:
        run = self._play(name, argv)
        self.runs.append(run)
        shown = screen.read(run.output)
        if shown is None:
            raise DemoError("the run succeeded and printed no status screen")
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
            raise DemoError(f"{argv[0]} ended with exit code {run.exit_code}: see its output above")
        return run

    def _fail_over(self, shown: screen.StatusScreen) -> screen.StatusScreen:
        """Kill and restart the quorum's leader; return the new status screen, since the soak starts again."""
        host = TestbedInventory().controller_ids[shown.leader]
        self.say(f"kill and restart the active controller, {host}")
        killed = time.time()
        # not `start`: systemd may still take the unit for active
        kill = "systemctl kill --signal=KILL kafka-controller"
        TestbedInventory().run(host, f"{kill}; systemctl restart kafka-controller")
        deadline = time.monotonic() + FAILOVER_LIMIT_S
        while not self.observers.registered_since(host, killed):
            if time.monotonic() > deadline:
                raise DemoError(f"{host} did not register in the quorum again within {FAILOVER_LIMIT_S} s")
            time.sleep(0.2)
        run = self._play("status", ["ansible-playbook", *self._inventory(), "playbooks/status.yml"])
        after = screen.read(run.output)
        if after is None or after.leader in (None, shown.leader) or after.phase != "dual_write":
            raise DemoError("after the failover the quorum must have another leader, in phase dual_write")
        return after

    def _soak(self, shown: screen.StatusScreen) -> None:
        left = (shown.soak_until or 0) - time.time()
        if left <= 0:
            self.say("the soak is already over")
            return
        self.say(f"soak for {left:.0f} s (in production: a day)")
        time.sleep(left)
