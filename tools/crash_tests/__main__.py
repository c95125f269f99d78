# Copyright: (c) 2026, Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""`python -m tools.crash_tests [--back] [--points N] [--moments N] [--seed N]`: a run killed, again and again.

Under the witness's traffic `playbooks/migrate.yml` runs from zk to finalized, or `playbooks/rollback.yml` from
dual-write back to zk, and its control process is killed with SIGKILL just before and just after every record of its
journal (points.py), or at N of these points; and besides at N random moments. Each next run goes on from there. At the
end one more run must change nothing, no more than one broker may ever have been down, no node may have been restarted
more often than that way needs, and the witness must have lost nothing. build/kills/run/summary.json tells all of it
(docs/summaries.md).
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import random
import re
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import jsonschema

from tools.crash_tests import points, ways
from tools.demo import screen, testbed
from tools.demo.observers import ObserverError, Observers
from tools.demo.testbed import INVENTORY, ROOT, TestbedInventory
from tools.demo.verdict import story

DIRECTORY = ROOT / "build" / "kills" / "run"
SCHEMA = Path(__file__).parent / "summary.schema.json"
RUN_LIMIT_S = 900
# After the run has told in which phase it found the cluster: before, it only looks. Each run takes a dozen seconds to
# come to where the last one was; ten of such moments then lead through about half of a migration.
MOMENTS_S = (0.5, 35.0)
POLL_S = 0.1
# One fork: a record after another, so that each can be hit.
ONE_BY_ONE = ("--forks", "1")
SETTINGS = [
    *("-e", "quorumshift_soak=0s"),
    *("-e", "quorumshift_stable_s=1"),
    *("-e", "quorumshift_probe_timeout=15"),
    *("-e", "quorumshift_verify=false"),
]
_PHASE = re.compile(r"^    cluster \S+, phase (\w+);", re.MULTILINE)


class Kills:
    """One way: `wanted` points; after how many seconds its first runs are killed where no point comes first."""

    def __init__(self, way: ways.Way, wanted: list[str], moments: list[float]) -> None:
        self.way, self.wanted, self.moments, self.at_random = way, wanted, moments, bool(moments)
        self.observers = Observers(DIRECTORY)
        self.rows: list[dict[str, Any]] = []
        self.problems: list[str] = []
        self._hit = DIRECTORY / "hit"

    def run(self) -> None:
        """From the seed to the end, however often it is killed."""
        testbed.manage("reset")
        if self.way is ways.BACK:
            print("there: playbooks/migrate.yml to dual_write", flush=True)
            command = ["ansible-playbook", "-i", str(INVENTORY), ways.FORWARD.playbook, *SETTINGS]
            there = {"cwd": ROOT, "env": _environment(), "stdin": subprocess.DEVNULL, "timeout": RUN_LIMIT_S}
            subprocess.run(command, check=True, stdout=subprocess.DEVNULL, **there)
        self.observers.begin(changes=False)
        token: list[str] = []
        while True:
            output, row = self._play(token)
            self.rows.append(row)
            reported = row["kill"] or f"ended with {row['exit_code']}"
            print(f"{len(self.rows):3}  {row['seconds']:6.1f} s  from {row['from']:<20}  {reported}", flush=True)
            if row["kill"]:
                continue
            if row["exit_code"] != 0:
                self.problems.append(f"run {len(self.rows)} failed: see {row['log']}")
                return
            shown = screen.read(output)
            if shown and shown.phase == "dual_write" and shown.command:
                token = [part for part in shown.command if part.startswith("quorumshift_finalize_token=")]
                continue
            changed = sum(host.changed for host in screen.recap(output).values())
            if token == ["done"]:
                self.problems += [f"one more run changed {changed}"] * bool(changed)
                return
            token = ["done"]  # finalized: once more, without the word

    def _play(self, token: list[str]) -> tuple[str, dict[str, Any]]:
        """One run, to its end or to its death; what it printed, and its row of the table."""
        number = len(self.rows) + 1
        log = DIRECTORY / f"run-{number:03}.log"
        given = ["-e", token[0]] if token and token != ["done"] else []
        given += [part for name, value in self.way.options.items() for part in ("-e", f"{name}={value}")]
        left = sorted(set(self.wanted) - set(self.hit()))
        (DIRECTORY / "pending").write_text("".join(f"{point}\n" for point in left), encoding="utf-8")
        environment = {
            **_environment(),
            "ANSIBLE_CALLBACK_PLUGINS": str(Path(__file__).parent / "callback"),
            "ANSIBLE_CALLBACKS_ENABLED": "killer",
            "KILLS_PENDING": str(DIRECTORY / "pending"),
            "KILLS_HIT": str(self._hit),
        }
        begun, hits = time.time(), len(self.hit())
        moment = self.moments[0] if self.moments else None
        with log.open("wb") as out:
            process = subprocess.Popen(
                [
                    "ansible-playbook",
                    "-i",
                    str(INVENTORY),
                    self.way.playbook,
                    *SETTINGS,
                    *(() if moment else ONE_BY_ONE),
                    *given,
                ],
                **{"cwd": ROOT, "env": environment, "stdin": subprocess.DEVNULL, "stdout": out, "stderr": out},
                start_new_session=True,
            )
            try:
                _wait(process, log, moment)
            finally:
                _kill(process.pid)
            code = process.wait()
        output = log.read_text(encoding="utf-8", errors="replace")
        killed = code == -signal.SIGKILL
        at = None
        if killed and len(self.hit()) > hits:
            at = self.hit()[-1]
        elif killed and moment:
            at = f"{self.moments.pop(0):.1f} s after judging"
        elif killed:
            at = "at the limit"
            self.problems.append(f"run {number} did not end within {RUN_LIMIT_S} s: see {log.name}")
        phases = _PHASE.findall(output)
        return output, {
            **{"number": number, "kill": at, "from": phases[0] if phases else "unseen", "exit_code": code},
            **{"at": round(begun, 3), "seconds": round(time.time() - begun, 1), "log": log.name},
        }

    def hit(self) -> list[str]:
        """The points that were hit, in order."""
        return self._hit.read_text(encoding="utf-8").splitlines() if self._hit.exists() else []

    def detect(self, seed: int) -> dict[str, Any]:
        """End the observers and say how it went."""
        end = time.time()
        events, journal, verdict = story(self.observers)
        cluster = TestbedInventory()
        down = points.most_down(events, cluster.brokers)
        started = points.starts(events, cluster.hosts)
        missed = points.missed(self.wanted, self.hit(), journal, self.at_random)
        problems = [*self.problems, *(f"never hit: {point}" for point in missed)]
        if down > 1:
            problems.append(f"{down} brokers were down at once")
        for host, times in started.items():
            needed = self.way.starts["broker" if host in cluster.brokers else "controller"]
            if len(times) != needed and not self.problems:
                seen = ", ".join(f"{at - self.observers.begun:.0f} s" for at in times)
                problems.append(f"{host} was started {len(times)} times (at {seen}), this way needs {needed}")
        last = self.rows[-1]["from"] if self.rows else None
        if last != self.way.ends:
            problems.append(f"the last run found the cluster in phase {last}")
        if verdict.get("verdict") != "pass":
            problems.append(f"the witness's verdict is {verdict.get('verdict', 'missing')}")
        return {
            "schema": 1,
            "result": "failed" if problems else "passed",
            "problems": problems,
            "seed": seed,
            "phase": last,
            "wall_s": round(end - self.observers.begun, 1),
            "kills": sum(bool(row["kill"]) for row in self.rows),
            "points": {"wanted": len(self.wanted), "hit": len(set(self.hit()) & set(self.wanted)), "missed": missed},
            "most_brokers_down": down,
            "starts": {host: len(times) for host, times in started.items()},
            "witness": {key: verdict.get(key) for key in ("verdict", "acked", "lost", "duplicated", "reordered")},
            "runs": self.rows,
        }


def _environment() -> dict[str, str]:
    """That of every run."""
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    return {**os.environ, "PATH": path, "PYTHONPATH": str(ROOT), "ANSIBLE_NOCOLOR": "1"}


def _wait(process: subprocess.Popen, log: Path, moment: float | None) -> None:
    """Until the run has ended, or its moment or its limit has come."""
    limit = time.monotonic() + RUN_LIMIT_S
    while process.poll() is None and time.monotonic() < limit:
        if moment and _PHASE.search(log.read_text(encoding="utf-8", errors="replace")):
            limit, moment = min(limit, time.monotonic() + moment), None
        time.sleep(POLL_S)


def _kill(group: int) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.killpg(group, signal.SIGKILL)


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m tools.crash_tests", description=__doc__)
    parser.add_argument("--back", action="store_true", help="the way back, from dual-write to plain ZooKeeper mode")
    parser.add_argument(
        "--points", type=int, help="kill at so many of the points, chosen by the seed; without it, at all"
    )
    parser.add_argument("--moments", type=int, default=0, help="kill at so many random moments before")
    parser.add_argument("--seed", type=int, default=int(time.time()), help="what chance begins with")
    given = parser.parse_args(arguments)
    chance = random.Random(given.seed)
    print(f"kills: seed {given.seed}", flush=True)
    testbed.manage("up")  # an inventory to read
    way = ways.BACK if given.back else ways.FORWARD
    every = points.expected(way, TestbedInventory().brokers, TestbedInventory().controllers)
    wanted = every if given.points is None else chance.sample(every, given.points)
    crash_tests = Kills(way, wanted, [chance.uniform(*MOMENTS_S) for _number in range(given.moments)])
    try:
        crash_tests.run()
        made = crash_tests.detect(given.seed)
    except (ObserverError, subprocess.CalledProcessError) as error:
        print(f"kills: {error}", file=sys.stderr)
        crash_tests.observers.stop_all()
        return 1
    except KeyboardInterrupt:
        crash_tests.observers.stop_all()
        return 130
    jsonschema.validate(made, json.loads(SCHEMA.read_text(encoding="utf-8")))
    (DIRECTORY / "summary.json").write_text(json.dumps(made, indent=1) + "\n", encoding="utf-8")
    reported, reached = made["witness"], f"{made['points']['hit']} of {made['points']['wanted']} points"
    print(
        f"\nkills: {made['result']}: {made['kills']} kills, {reached}, at most {made['most_brokers_down']} broker "
        f"down, witness {reported['verdict']} ({reported['acked']} acknowledged), {made['wall_s']:.0f} s"
    )
    for problem in made["problems"]:
        print(f"  ! {problem}")
    if made["problems"]:
        TestbedInventory().keep_logs(DIRECTORY / "hosts")
        print(f"  the hosts' logs: {DIRECTORY / 'hosts'}")
    return 0 if made["result"] == "passed" else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
