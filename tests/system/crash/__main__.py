# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Kill the control process repeatedly: python -m tests.system.crash [--rollback] [--points N] [--moments N] [--seed N].

While the verification clients run, `playbooks/migrate.yml` goes from zk to finalized, or `playbooks/rollback.yml` from
dual-write to zk. The control process gets SIGKILL just before and just after every record of its journal (points.py) or
at N of these points, and also at N random moments. The next run continues from there. At the end one more run must
change nothing, at most one broker may have been down at a time, no node may have been restarted more often than the
procedure needs, and the clients must have lost nothing. The results are in build/crash-tests/run/summary.json
(docs/summaries.md).
"""

from __future__ import annotations

import argparse
import json
import random
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import jsonschema

from tests.system import testbed
from tests.system.crash import killed_run, points, procedures
from tests.system.demo import screen
from tests.system.demo.observers import ObserverError, Observers
from tests.system.demo.verdict import collect
from tests.system.testbed.inventory import TestbedInventory
from tests.system.testbed.layout import INVENTORY, ROOT

DIRECTORY = ROOT / "build" / "crash-tests" / "run"
SCHEMA = Path(__file__).parent / "summary.schema.json"
# Seconds after the run has printed the phase; before that it only reads. A run needs about 12 s to reach the point
# where the last one ended, so six such moments cover about a third of a migration.
MOMENTS_S = (0.5, 35.0)
# With one fork the records come one after the other, so each can be hit.
ONE_FORK = ("--forks", "1")
SETTINGS = [
    *("-e", "quorumshift_soak=0s"),
    *("-e", "quorumshift_stable_s=1"),
    *("-e", "quorumshift_probe_timeout=15"),
    *("-e", "quorumshift_verify=false"),
]


class CrashTests:
    """A procedure that is killed at the `wanted` points; the first runs are killed at the `moments`, in seconds."""

    def __init__(self, procedure: procedures.Procedure, wanted: list[str], moments: list[float]) -> None:
        self.procedure, self.wanted, self.moments, self.at_random = procedure, wanted, moments, bool(moments)
        self.observers = Observers(DIRECTORY)
        self.rows: list[dict[str, Any]] = []
        self.problems: list[str] = []
        self._hit = DIRECTORY / "hit"

    def run(self) -> None:
        """Reset the testbed and run the playbook until it ends and one more run has been made."""
        testbed.manage("reset")
        if self.procedure is procedures.ROLLBACK:
            print("first playbooks/migrate.yml to dual_write", flush=True)
            command = ["ansible-playbook", "-i", str(INVENTORY), procedures.MIGRATION.playbook, *SETTINGS]
            given = {"cwd": ROOT, "env": killed_run.environment(), "stdin": subprocess.DEVNULL}
            given["timeout"] = killed_run.LIMIT_S
            subprocess.run(command, check=True, stdout=subprocess.DEVNULL, **given)
        self.observers.begin(changes=False)
        token: list[str] = []
        while True:
            output, row = self._play(token)
            self.rows.append(row)
            end = row["crash"] or f"ended with {row['exit_code']}"
            print(f"{len(self.rows):3}  {row['seconds']:6.1f} s  from {row['from']:<20}  {end}", flush=True)
            if row["crash"]:
                continue
            if row["exit_code"] != 0:
                self.problems.append(f"run {len(self.rows)} failed, see {row['log']}")
                return
            shown = screen.read(output)
            if shown and shown.phase == "dual_write" and shown.command:
                token = [part for part in shown.command if part.startswith("quorumshift_finalize_token=")]
                continue
            changed = sum(host.changed for host in screen.recap(output).values())
            if token == ["done"]:
                self.problems += [f"one more run reported {changed} changes"] * bool(changed)
                return
            token = ["done"]  # at the last phase: one more run, without the token

    def _play(self, token: list[str]) -> tuple[str, dict[str, Any]]:
        """Run the playbook until it ends or is killed; return its output and its row of the summary."""
        number = len(self.rows) + 1
        log = DIRECTORY / f"run-{number:03}.log"
        given = ["-e", token[0]] if token and token != ["done"] else []
        given += [part for name, value in self.procedure.options.items() for part in ("-e", f"{name}={value}")]
        left = sorted(set(self.wanted) - set(self.hit()))
        (DIRECTORY / "pending").write_text("".join(f"{point}\n" for point in left), encoding="utf-8")
        environment = {
            "ANSIBLE_CALLBACK_PLUGINS": str(Path(__file__).parent / "callback"),
            "ANSIBLE_CALLBACKS_ENABLED": "crash_at_point",
            "CRASH_TESTS_PENDING": str(DIRECTORY / "pending"),
            "CRASH_TESTS_HIT": str(self._hit),
        }
        begun, hits = time.time(), len(self.hit())
        moment = self.moments[0] if self.moments else None
        arguments = [self.procedure.playbook, *SETTINGS, *(() if moment else ONE_FORK), *given]
        code = killed_run.play(arguments, log, environment, moment)
        output = log.read_text(encoding="utf-8", errors="replace")
        killed = code == -signal.SIGKILL
        at = None
        if killed and len(self.hit()) > hits:
            at = self.hit()[-1]
        elif killed and moment:
            at = f"{self.moments.pop(0):.1f} s after the phase was printed"
        elif killed:
            at = "at the limit"
            self.problems.append(f"run {number} did not end within {killed_run.LIMIT_S} s, see {log.name}")
        phases = killed_run.PHASE.findall(output)
        return output, {
            **{"number": number, "crash": at, "from": phases[0] if phases else "unknown", "exit_code": code},
            **{"at": round(begun, 3), "seconds": round(time.time() - begun, 1), "log": log.name},
        }

    def hit(self) -> list[str]:
        """Return the points that were hit, in order."""
        return self._hit.read_text(encoding="utf-8").splitlines() if self._hit.exists() else []

    def summarize(self, seed: int) -> dict[str, Any]:
        """Stop the observers and return the summary."""
        end = time.time()
        events, journal, verdict = collect(self.observers)
        cluster = TestbedInventory()
        down = points.most_down(events, cluster.brokers)
        started = points.starts(events, cluster.hosts)
        missed = points.missed(self.wanted, self.hit(), journal, self.at_random)
        problems = [*self.problems, *(f"point never hit: {point}" for point in missed)]
        if down > 1:
            problems.append(f"{down} brokers were down at the same time")
        for host, times in started.items():
            needed = self.procedure.starts["broker" if host in cluster.brokers else "controller"]
            if len(times) != needed and not self.problems:
                seen = ", ".join(f"{at - self.observers.begun:.0f} s" for at in times)
                problems.append(f"{host} was started {len(times)} times (at {seen}), {needed} are needed")
        last = self.rows[-1]["from"] if self.rows else None
        if last != self.procedure.last_phase:
            problems.append(f"the last run found the cluster in phase {last}, not {self.procedure.last_phase}")
        if verdict.get("verdict") != "pass":
            reasons = "; ".join(verdict.get("reasons", []))
            problems.append(f"the clients' verdict is {verdict.get('verdict', 'missing')}: {reasons}")
        return {
            "schema": 1,
            "result": "failed" if problems else "passed",
            "problems": problems,
            "seed": seed,
            "phase": last,
            "wall_s": round(end - self.observers.begun, 1),
            "crashes": sum(bool(row["crash"]) for row in self.rows),
            "points": {"wanted": len(self.wanted), "hit": len(set(self.hit()) & set(self.wanted)), "missed": missed},
            "most_brokers_down": down,
            "starts": {host: len(times) for host, times in started.items()},
            "clients": {key: verdict.get(key) for key in ("verdict", "acked", "lost", "duplicated", "reordered")},
            "runs": self.rows,
        }


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.system.crash", description=__doc__)
    parser.add_argument("--rollback", action="store_true", help="roll back from dual-write to plain ZooKeeper mode")
    parser.add_argument("--points", type=int, help="kill at this many random points (default: at all)")
    parser.add_argument("--moments", type=int, default=0, help="first kill at this many random moments")
    parser.add_argument("--seed", type=int, default=int(time.time()), help="seed of the random choices")
    given = parser.parse_args(arguments)
    choice = random.Random(given.seed)
    print(f"crash-tests: seed {given.seed}", flush=True)
    testbed.manage("up")  # writes the inventory
    procedure = procedures.ROLLBACK if given.rollback else procedures.MIGRATION
    every = points.expected(procedure, TestbedInventory().brokers, TestbedInventory().controllers)
    wanted = every if given.points is None else choice.sample(every, given.points)
    crash_tests = CrashTests(procedure, wanted, [choice.uniform(*MOMENTS_S) for _number in range(given.moments)])
    try:
        crash_tests.run()
        summary = crash_tests.summarize(given.seed)
    except (ObserverError, subprocess.CalledProcessError) as error:
        print(f"crash-tests: {error}", file=sys.stderr)
        crash_tests.observers.stop_all()
        return 1
    except KeyboardInterrupt:
        crash_tests.observers.stop_all()
        return 130
    jsonschema.validate(summary, json.loads(SCHEMA.read_text(encoding="utf-8")))
    (DIRECTORY / "summary.json").write_text(json.dumps(summary, indent=1) + "\n", encoding="utf-8")
    clients, hit = summary["clients"], f"{summary['points']['hit']} of {summary['points']['wanted']} points"
    print(
        f"\ncrash-tests: {summary['result']}: {summary['crashes']} crashes, {hit}, at most "
        f"{summary['most_brokers_down']} broker down at a time, clients: {clients['verdict']} ({clients['acked']} "
        f"acknowledged), {summary['wall_s']:.0f} s"
    )
    for problem in summary["problems"]:
        print(f"  ! {problem}")
    if summary["problems"]:
        TestbedInventory().keep_logs(DIRECTORY / "hosts")
        print(f"  the hosts' logs: {DIRECTORY / 'hosts'}")
    return 0 if summary["result"] == "passed" else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
