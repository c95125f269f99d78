# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""summary.json of a migration on the testbed: its figures and its problems. Pure except for the versions."""

from __future__ import annotations

import importlib.metadata
import re
import statistics
import subprocess
import sys
from pathlib import Path
from typing import Any

from tests.system.demo.steps import BROKER_KINDS, Step, floor_s, phases
from tests.system.testbed.inventory import CLIENTS_RATE
from tests.system.testbed.layout import ROOT

SCHEMA = Path(__file__).with_name("summary.schema.json")
EXPECTED_STEPS = {"controller": 3, "zk_migration": 3, "kraft": 3, "controller_final": 3}
EXPECTED_GATES = (
    "before_controllers",
    "before_trigger",
    "after_copy",
    "after_kraft",
    "before_finalize",
    "after_finalize",
)
LEAST_RATE = CLIENTS_RATE / 2  # messages per second: fewer prove little


def wall_by_phase(marks: list[tuple[float, str]], end: float) -> dict[str, float]:
    """Return the seconds in each phase, the last one up to `end`."""
    seconds: dict[str, float] = {}
    for (begun, name), following in zip(marks, [t for t, dummy in marks[1:]] + [end]):
        seconds[name] = round(seconds.get(name, 0.0) + following - begun, 3)
    return seconds


def gates(journal: list[dict]) -> list[dict[str, Any]]:
    """Return each evaluation of a gate, in order: {name, result, seconds}."""
    return [
        {"name": event["name"], "result": event["result"], "seconds": event["seconds"]}
        for event in journal
        if event["kind"] == "gate"
    ]


def clients(verdict: dict[str, Any]) -> dict[str, Any]:
    """Return the part of the clients' verdict that goes into the summary."""
    kept = ("verdict", "reasons", "acked", "lost", "duplicated", "reordered", "redelivered", "aborted_visible")
    by_phase = {
        name: {"producer": count["max_producer_stall_ms"], "consumer": count["max_consumer_stall_ms"]}
        for name, count in verdict["by_phase"].items()
    }
    return {
        **{key: verdict[key] for key in kept},
        "app_errors": sum(error["count"] for error in verdict["app_errors"]),
        "acked_per_second": verdict["run"]["acked_per_second"],
        "max_stall_ms": {**verdict["max_stall_ms"], "by_phase": by_phase},
        "longest_wait_ms": verdict["longest_wait_ms"],
    }


def tool_s_per_broker_step(steps: list[Step], stable_s: float) -> list[float]:
    """Return the tool's overhead of each broker step, without the first step of each roll."""
    seconds = [step.tool_s(stable_s) for step in steps if step.kind in BROKER_KINDS and not step.first]
    return [round(value, 3) for value in seconds if value is not None]


def versions() -> dict[str, str | None]:
    """Return the versions that decide the figures; None if unknown."""
    jars = [path.name for path in (ROOT / ".build" / "kafka" / "libs").glob("*.jar")]

    def jar(pattern: str) -> str | None:
        matches = [match[1] for match in map(re.compile(pattern).fullmatch, jars) if match]
        return matches[0] if matches else None

    commit = subprocess.run(["git", "rev-parse", "HEAD"], cwd=ROOT, stdout=subprocess.PIPE, text=True, check=False)
    return {
        "kafka": jar(r"kafka_2\.\d+-([\d.]+)\.jar"),
        "zookeeper": jar(r"zookeeper-([\d.]+)\.jar"),
        "ansible-core": importlib.metadata.version("ansible-core"),
        "python": ".".join(map(str, sys.version_info[:3])),
        "commit": commit.stdout.strip() or None,
    }


def make(
    events: list[dict],
    steps: list[Step],
    journal: list[dict],
    verdict: dict[str, Any] | None,
    changes: dict[str, Any],
    outcome: dict[str, Any],
) -> dict[str, Any]:
    """Return the summary without `result` and `problems`.

    `outcome`: {phase, begun, end, soak_s, stable_s, wall_s (by run), changed_on_second_run}.
    """
    marks = phases(events, steps, outcome["begun"])
    runs = outcome["wall_s"]
    migrating = sum(seconds for name, seconds in runs.items() if name in ("to dual_write", "to finalized"))
    floor = floor_s(events, steps)
    tool = tool_s_per_broker_step(steps, outcome["stable_s"])
    return {
        "schema": 1,
        "phase": outcome["phase"],
        "clients": verdict and clients(verdict),
        "changes": changes,
        "gates": gates(journal),
        "wall_s": {"runs": runs, "phases": wall_by_phase(marks, outcome["end"])},
        "soak_s": outcome["soak_s"],
        "stable_s": outcome["stable_s"],
        "floor_s": round(floor, 3),
        "overhead_ratio": round(migrating / floor, 3) if floor and migrating else None,
        "tool_s_per_broker_step": round(statistics.mean(tool), 3) if tool else None,
        "tool_s_max": max(tool, default=None),
        "steps": [step.row(outcome["stable_s"]) for step in steps],
        "changed_on_second_run": outcome["changed_on_second_run"],
        "versions": versions(),
    }


def problems(summary: dict[str, Any], failovers: int = 0) -> list[str]:
    """Return what is wrong, as sentences; [] if the migration passed."""
    problems = []
    if summary["phase"] != "finalized":
        problems.append(f"the last phase is {summary['phase']}, not finalized")
    clients = summary["clients"]
    if not clients:
        problems.append("the verification clients left no verdict")
    else:
        if clients["verdict"] != "pass":
            problems.append(f"the clients' verdict is {clients['verdict']}: {'; '.join(clients['reasons'])}")
        if clients["acked_per_second"] < LEAST_RATE:
            rate = f"{clients['acked_per_second']:.0f} messages per second"
            problems.append(f"the clients sent only {rate}, at least {LEAST_RATE:.0f} are needed")
    problems += summary["changes"]["problems"]
    compared = {check["where"] for check in summary["changes"]["checked"]}
    problems += [
        f"{where}: never compared with the metadata changes"
        for where in ("brokers", "ZooKeeper")
        if where not in compared
    ]
    passed = {gate["name"] for gate in summary["gates"] if gate["result"] == "pass"}
    missing = [name for name in EXPECTED_GATES if name not in passed]
    if missing:
        problems.append(f"no run passed the gates {', '.join(missing)}")
    kinds = [step["kind"] for step in summary["steps"]]
    for kind, count in EXPECTED_STEPS.items():
        if kinds.count(kind) != count:
            problems.append(f"the recorder saw {kinds.count(kind)} restarts of kind {kind}, not {count}")
    problems += [
        f"{step['host']} ({step['kind']}) was still out of an ISR when the next broker's stop began"
        for step in summary["steps"]
        if step["overtaken"]
    ]
    others = [step for step in summary["steps"] if step["kind"] not in EXPECTED_STEPS]
    if len(others) != failovers:
        names = ", ".join(f"{step['host']} ({step['kind']})" for step in others)
        problems.append(f"the recorder saw {len(others)} restarts that no journal contains, not {failovers}: {names}")
    if summary["changed_on_second_run"]:
        problems.append(f"one more run reported {summary['changed_on_second_run']} changes")
    return problems
