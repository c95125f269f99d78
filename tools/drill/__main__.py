# Copyright: (c) 2026, Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""`make drill`: python -m tools.drill [--stretch NAME] [--only REGEX]: migrations that are broken on purpose.

Under the witness's traffic a cluster goes from zk to finalized, and another one to dual-write and back to zk; on each
way one drill after another (drills.py) breaks something, and the next run has to go on from there. A drill that fails
is told and ends no other. It passes when every drill ended as it must, each way arrived, one more run changed nothing,
and the witness lost nothing. build/drill/run/STRETCH holds what each run printed and what the witness saw,
build/drill/run/summary.json all of it (docs/summaries.md).
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

from tools.demo import testbed
from tools.demo.observers import ObserverError, Observers
from tools.demo.testbed import ROOT, TestbedInventory
from tools.demo.verdict import story
from tools.drill import drills
from tools.drill.stretch import Leg, Stretch
from tools.drill.trials import FAILED, Drill
from tools.e2e.testbed import Testbed

DIRECTORY = ROOT / "build" / "drill" / "run"
SCHEMA = Path(__file__).parent / "summary.schema.json"
INTERRUPTED = "interrupted: what was left of it was not run"
WITNESSED = ("verdict", "acked", "lost", "duplicated", "reordered")


def drive(name: str, legs: Sequence[Leg]) -> dict[str, Any]:
    """One stretch on a freshly seeded bed: its part of the summary. Raises ObserverError, CalledProcessError."""
    directory = DIRECTORY / name.replace(" ", "-")
    print(f"\n{name}: {sum(len(leg.drills) for leg in legs)} drills", flush=True)
    testbed.manage("reset")
    observers, began = Observers(directory), time.time()
    observers.begin(changes=False)
    stretch = Stretch(Testbed(), directory)
    try:
        if all(stretch.leg(leg) for leg in legs):
            stretch.nothing_left(legs[-1]._replace(token=False))
    except KeyboardInterrupt:
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # `timeout` sends it twice, and what was seen is judged
        stretch.problems.append(INTERRUPTED)
    except BaseException:
        observers.stop_all()
        raise
    verdict = story(observers)[2]
    reported = {key: verdict.get(key) for key in WITNESSED}
    if reported["verdict"] != "pass":
        reasons = "; ".join(verdict.get("reasons", []))
        stretch.problems.append(f"the witness's verdict is {reported['verdict'] or 'missing'}: {reasons}")
    print(
        f"{name}: {stretch.runs} runs in {time.time() - began:.0f} s; {reported['verdict']}: {reported['acked']} "
        f"acked, lost {reported['lost']}, duplicated {reported['duplicated']}, reordered {reported['reordered']}",
        flush=True,
    )
    if stretch.problems or any(row["ended"] == FAILED for row in stretch.rows):
        TestbedInventory().keep_logs(directory / "hosts")
        print(f"  the hosts' logs: {directory / 'hosts'}", flush=True)
    place = directory.relative_to(DIRECTORY)
    return {
        **{"name": name, "problems": stretch.problems, "runs": stretch.runs, "wall_s": round(time.time() - began, 1)},
        "witness": reported,
        "drills": [{**row, "witness": reported["verdict"], "log": str(place / row["log"])} for row in stretch.rows],
    }


def summarize(stretches: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """The summary of what each stretch came to."""
    rows = [row for one in stretches for row in one["drills"]]
    failed = [f"{row['name']} ({row['phase']}): {'; '.join(row['problems'])}" for row in rows if row["ended"] == FAILED]
    problems = [*failed, *(f"{one['name']}: {text}" for one in stretches for text in one["problems"])]
    return {
        "schema": 1,
        "result": "failed" if problems or not rows else "passed",
        "problems": problems,
        "wall_s": round(sum(one["wall_s"] for one in stretches), 1),
        "drills": rows,
        "stretches": [{key: value for key, value in one.items() if key != "drills"} for one in stretches],
    }


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m tools.drill", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--stretch", choices=[*drills.STRETCHES], help="this one alone")
    parser.add_argument("--only", default="", metavar="REGEX", help="only drills whose 'PHASE: NAME' fits")
    given = parser.parse_args(arguments)

    def wanted(drill: Drill) -> bool:
        return bool(re.search(given.only, f"{drill.phase}: {drill.name}"))

    for number in (signal.SIGINT, signal.SIGTERM):  # also where a shell in the background had Ctrl-C ignored
        signal.signal(number, signal.default_int_handler)
    logging.getLogger("kazoo").setLevel(logging.CRITICAL)  # that ZooKeeper is away is told by others
    testbed.manage("up")  # an inventory to read
    messages: list[dict[str, Any]] = []
    try:
        for name, legs in drills.STRETCHES.items():
            if given.stretch in (None, name):
                chosen = [leg._replace(drills=[one for one in leg.drills if wanted(one)]) for leg in legs]
                messages.append(drive(name, chosen))
                if INTERRUPTED in messages[-1]["problems"]:
                    break
    except (ObserverError, subprocess.CalledProcessError) as error:
        print(f"drill: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130
    made = summarize(messages)
    jsonschema.validate(made, json.loads(SCHEMA.read_text(encoding="utf-8")))
    (DIRECTORY / "summary.json").write_text(json.dumps(made, indent=1) + "\n", encoding="utf-8")
    good = sum(row["ended"] != FAILED for row in made["drills"])
    print(f"\ndrill: {made['result']}: {good} of {len(made['drills'])} drills, {made['wall_s']:.0f} s")
    for problem in made["problems"]:
        print(f"  ! {problem}")
    return 0 if made["result"] == "passed" else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
