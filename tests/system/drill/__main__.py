# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""`make drill`: python -m tests.system.drill [--scenario NAME] [--only REGEX]: inject faults into migrations.

While the verification clients run, one cluster goes from zk to finalized, and another one to dual-write and back to zk.
On the way one drill after another (drills.py) injects a fault, and the next run must continue from there. A failed
drill does not end the others. The drills pass if each had its expected result, each scenario reached its last phase,
one more run changed nothing, and the clients lost nothing. build/drill/run/SCENARIO holds the output of the runs and
the clients' verdict, build/drill/run/summary.json the results (docs/summaries.md).
"""

from __future__ import annotations

import argparse
import json
import logging
import re
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any, Sequence

import jsonschema

from tests.system import testbed
from tests.system.demo.observers import ObserverError, Observers
from tests.system.demo.verdict import collect
from tests.system.drill import drills
from tests.system.drill.scenario import Scenario, Stage
from tests.system.drill.trials import FAILED, Drill
from tests.system.testbed.inventory import TestbedInventory
from tests.system.testbed.layout import ROOT
from tests.system.testbed.running import Testbed

DIRECTORY = ROOT / "build" / "drill" / "run"
SCHEMA = Path(__file__).parent / "summary.schema.json"
INTERRUPTED = "interrupted: the remaining drills did not run"
COUNTS = ("verdict", "acked", "lost", "duplicated", "reordered")


def run_scenario(name: str, stages: Sequence[Stage]) -> dict[str, Any]:
    """Run a scenario on a reset testbed; return its part of the summary. Raise ObserverError, CalledProcessError."""
    directory = DIRECTORY / name.replace(" ", "-")
    print(f"\n{name}: {sum(len(stage.drills) for stage in stages)} drills", flush=True)
    testbed.manage("reset")
    observers, began = Observers(directory), time.time()
    observers.begin(changes=False)
    scenario = Scenario(Testbed(), directory)
    try:
        if all(scenario.run(stage) for stage in stages):
            scenario.one_more_run(stages[-1]._replace(token=False))
    except KeyboardInterrupt:
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # `timeout` sends it twice; the trials so far are still evaluated
        scenario.problems.append(INTERRUPTED)
    except BaseException:
        observers.stop_all()
        raise
    verdict = collect(observers)[2]
    clients = {key: verdict.get(key) for key in COUNTS}
    if clients["verdict"] != "pass":
        reasons = "; ".join(verdict.get("reasons", []))
        scenario.problems.append(f"the clients' verdict is {clients['verdict'] or 'missing'}: {reasons}")
    print(
        f"{name}: {scenario.runs} runs in {time.time() - began:.0f} s; {clients['verdict']}: {clients['acked']} "
        f"acked, lost {clients['lost']}, duplicated {clients['duplicated']}, reordered {clients['reordered']}",
        flush=True,
    )
    if scenario.problems or any(row["result"] == FAILED for row in scenario.rows):
        TestbedInventory().keep_logs(directory / "hosts")
        print(f"  the hosts' logs: {directory / 'hosts'}", flush=True)
    logs = directory.relative_to(DIRECTORY)
    return {
        **{"name": name, "problems": scenario.problems, "runs": scenario.runs, "wall_s": round(time.time() - began, 1)},
        "clients": clients,
        "drills": [{**row, "clients": clients["verdict"], "log": str(logs / row["log"])} for row in scenario.rows],
    }


def summarize(scenarios: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Return the summary of all scenarios."""
    rows = [row for scenario in scenarios for row in scenario["drills"]]
    failed = [row for row in rows if row["result"] == FAILED]
    problems = [f"{row['name']} ({row['phase']}): {'; '.join(row['problems'])}" for row in failed]
    problems += [f"{scenario['name']}: {text}" for scenario in scenarios for text in scenario["problems"]]
    return {
        "schema": 1,
        "result": "failed" if problems or not rows else "passed",
        "problems": problems,
        "wall_s": round(sum(scenario["wall_s"] for scenario in scenarios), 1),
        "drills": rows,
        "scenarios": [{key: value for key, value in scenario.items() if key != "drills"} for scenario in scenarios],
    }


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m tests.system.drill", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--scenario", choices=[*drills.SCENARIOS], help="run only this scenario")
    parser.add_argument("--only", default="", metavar="REGEX", help="run only drills whose 'PHASE: NAME' matches")
    given = parser.parse_args(arguments)

    def wanted(drill: Drill) -> bool:
        return bool(re.search(given.only, f"{drill.phase}: {drill.name}"))

    for number in (signal.SIGINT, signal.SIGTERM):  # a background shell may ignore Ctrl-C
        signal.signal(number, signal.default_int_handler)
    logging.getLogger("kazoo").setLevel(logging.CRITICAL)  # faults stop ZooKeeper on purpose
    testbed.manage("up")  # writes the inventory
    scenarios: list[dict[str, Any]] = []
    try:
        for name, stages in drills.SCENARIOS.items():
            if given.scenario in (None, name):
                chosen = [stage._replace(drills=[drill for drill in stage.drills if wanted(drill)]) for stage in stages]
                scenarios.append(run_scenario(name, chosen))
                if INTERRUPTED in scenarios[-1]["problems"]:
                    break
    except (ObserverError, subprocess.CalledProcessError) as error:
        print(f"drill: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130
    summary = summarize(scenarios)
    jsonschema.validate(summary, json.loads(SCHEMA.read_text(encoding="utf-8")))
    (DIRECTORY / "summary.json").write_text(json.dumps(summary, indent=1) + "\n", encoding="utf-8")
    passed = sum(row["result"] != FAILED for row in summary["drills"])
    counts = f"{passed} of {len(summary['drills'])} drills passed"
    print(f"\ndrill: {summary['result']}: {counts}, {summary['wall_s']:.0f} s")
    for problem in summary["problems"]:
        print(f"  ! {problem}")
    return 0 if summary["result"] == "passed" else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
