# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Let every module call of every playbook fail in every way: python -m tools.failure_proof [OPTIONS] [replay CASE ...].

The real playbooks, roles and action plugins run on a simulated cluster (world.py). A run without a failure records the
module calls. Then each call fails on its host: the host is unreachable before it or after it, the module fails, or
prints no JSON, Ansible's worker is lost, or the control process is killed. verdict.py has what must be true after that.
The results are in build/failure-proof/run: each case in cases.jsonl at once, summary.json after each scenario.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import random
import shutil
import sys
import time
from pathlib import Path
from typing import Any

import jsonschema

from tools.failure_proof import engine

RUN = engine.ROOT / "build" / "failure-proof" / "run"
SCHEMA = Path(__file__).parent / "summary.schema.json"
SHOWN = 40


def main(arguments: list[str]) -> int:
    """Run the cases that the options choose; return 1 if one shows a violation."""
    parser = argparse.ArgumentParser(prog="python -m tools.failure_proof", description=__doc__)
    parser.add_argument("--scenario", action="append", default=[], help="only these; see scenarios.py")
    parser.add_argument("--kind", action="append", default=[], help="only these kinds of failures")
    parser.add_argument("--share", type=float, default=1.0, help="of the cases with one failure")
    parser.add_argument("--pairs", type=float, default=0.05, help="share of the cases with two failures")
    parser.add_argument("--rerun", type=float, default=0.1, help="share of the cases after which the run is repeated")
    parser.add_argument("--at-most", type=int, default=0, help="cases of each scenario and kind; 0: no bound")
    parser.add_argument("--sample", action="store_true", help="one case of each scenario of a group, unrecorded")
    parser.add_argument("--seed", type=int, default=None)
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--forked", action="store_true", help="let every worker be a process, as Ansible does")
    parser.add_argument("--recorded", action="store_true", help="use the calls that the last run recorded")
    parser.add_argument("--continued", action="store_true", help="go on with a run that was interrupted")
    parser.add_argument("--compare", type=int, default=0, help="cases of each scenario that run in both ways")
    parser.add_argument("command", nargs="*", help="replay SCENARIO CALL=KIND [CALL=KIND]")
    given = parser.parse_args(arguments)
    engine.prepare(engine.ROOT / ".build" / "failure-proof" / "home")
    from tools.failure_proof import cases, scenarios

    if given.command[:1] == ["replay"]:
        return _replay(cases, given.command[1:])
    seed = given.seed if given.seed is not None else random.randrange(10**6)
    print(f"seed {seed}", flush=True)
    if given.compare:
        names = given.scenario or list(scenarios.SCENARIOS)
        differences = [text for name in names for text in cases.compare(name, given.compare, seed)]
        print("\n".join([*differences, f"{given.compare} cases of {len(names)} scenarios, {len(differences)} differ"]))
        return 1 if differences else 0
    began = time.monotonic()
    earlier = cases.earlier_results() if given.continued else []
    shutil.rmtree(RUN, ignore_errors=True)
    for result in earlier:
        cases.keep(result)
    chosen: dict[str, Any] = {}
    results: list[dict[str, Any]] = []
    if given.sample:
        chosen, results = cases.sample(seed, given.jobs)
        report = write(chosen, results, seed, time.monotonic() - began)
    else:
        for name in given.scenario or list(scenarios.SCENARIOS):
            chosen[name], found = cases.run_scenario(name, given, seed, earlier)
            results += found
            report = write(chosen, results, seed, time.monotonic() - began)
    show(report)
    return 1 if report["violations"] else 0


def write(chosen: Any, results: list[dict[str, Any]], seed: int, wall_s: float) -> dict[str, Any]:
    """Write the summary of what has run so far, and return it."""
    report = summary(chosen, results, seed, wall_s)
    jsonschema.validate(report, json.loads(SCHEMA.read_text(encoding="utf-8")))
    RUN.mkdir(parents=True, exist_ok=True)
    (RUN / "summary.json").write_text(json.dumps(report, indent=1) + "\n", encoding="utf-8")
    return report


def _replay(cases: Any, words: list[str]) -> int:
    """Run one case and show everything of it."""
    result, root = cases.replay(words)
    print((root / "output-run.txt").read_text(errors="replace"))
    print(json.dumps({key: value for key, value in result.items() if key != "calls"}, indent=1))
    for text in result["violations"]:
        print(f"violation: {text}")
    print(f"the world is in {root}")
    return 1 if result["violations"] else 0


def summary(chosen: Any, results: list[dict[str, Any]], seed: int, wall_s: float) -> dict[str, Any]:
    """Return the summary, as in summary.schema.json."""
    rows: dict[tuple[str, str], list[dict[str, Any]]] = {}
    for result in results:
        rows.setdefault((result["scenario"], result["kind"] if "+" not in result["kind"] else "pairs"), []).append(
            result
        )
    table = [
        {
            "scenario": name,
            "kind": kind,
            "cases": len(found),
            "violations": sum(bool(result["violations"]) for result in found),
        }
        for (name, kind), found in sorted(rows.items())
    ]
    broken = [result for result in results if result["violations"]]
    return {
        "schema": 1,
        "result": "failed" if broken else "passed",
        "seed": seed,
        "wall_s": round(wall_s, 1),
        "calls": {name: scenario.calls for name, scenario in chosen.items()},
        "possible": {name: {"alone": scenario.alone, "pairs": scenario.pairs} for name, scenario in chosen.items()},
        "cases": len(results),
        "violations": len(broken),
        "reruns": sum("rerun" in result for result in results),
        "cpu_s": round(sum(result.get("cpu_s", 0) for result in results), 1),
        "table": table,
        "broken": [
            {key: result[key] for key in ("case", "task", "exit_code", "violations")}
            | {"replay": f"python -m tools.failure_proof replay {result['case']}"}
            for result in broken
        ],
    }


def show(report: dict[str, Any]) -> None:
    """Print the table, and the violations with the command that repeats each."""
    names = sorted({row["scenario"] for row in report["table"]})
    kinds = list(dict.fromkeys(row["kind"] for row in report["table"]))
    cell = {(row["scenario"], row["kind"]): row for row in report["table"]}
    print(f"{'scenario':<18}" + "".join(f"{kind:>19}" for kind in kinds))
    for name in names:
        cells = []
        for kind in kinds:
            row = cell.get((name, kind))
            cells.append(f"{row['cases']} / {row['violations']}" if row else "-")
        print(f"{name:<18}" + "".join(f"{text:>19}" for text in cells))
    print("cases / cases with a violation")
    for result in report["broken"][:SHOWN]:
        print(f"\n{result['task']}: exit code {result['exit_code']}\n  {result['replay']}")
        for text in result["violations"]:
            print(f"  ! {text}")
    if len(report["broken"]) > SHOWN:
        print(f"\nand {len(report['broken']) - SHOWN} more in {RUN / 'summary.json'}")
    possible = sum(counts["alone"] for counts in report["possible"].values())
    pairs = sum(counts["pairs"] for counts in report["possible"].values())
    print(
        f"\n{report['cases']} cases of {possible} with one failure and {pairs} with two, {report['violations']} with a "
        f"violation, seed {report['seed']}, {report['wall_s']} s"
    )


if __name__ == "__main__":
    multiprocessing.set_start_method("fork")
    sys.exit(main(sys.argv[1:]))
