# Copyright: (c) 2026, Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a migration on the bed came to: the figures of summary.json, and what of it is not as it must be. Pure but for
the versions."""

from __future__ import annotations

import importlib.metadata
import re
import statistics
import subprocess
import sys
from pathlib import Path
from typing import Any

from tools.demo.steps import BROKER_KINDS, Step, floor_s, phases
from tools.demo.testbed import CLIENTS_RATE, ROOT

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
LEAST_RATE = CLIENTS_RATE / 2  # messages a second: fewer prove little


def wall_by_phase(marks: list[tuple[float, str]], end: float) -> dict[str, float]:
    """Seconds in each phase, the last one up to `end`."""
    reported: dict[str, float] = {}
    for (begun, name), following in zip(marks, [t for t, dummy in marks[1:]] + [end]):
        reported[name] = round(reported.get(name, 0.0) + following - begun, 3)
    return reported


def gates(journal: list[dict]) -> list[dict[str, Any]]:
    """Each gate that was tried, in order: {name, result, seconds}."""
    return [
        {"name": event["name"], "result": event["result"], "seconds": event["seconds"]}
        for event in journal
        if event["kind"] == "gate"
    ]


def canary_clients(verdict: dict[str, Any]) -> dict[str, Any]:
    """The part of the witness's verdict that the summary carries."""
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
    }


def tool_s_per_broker_step(steps: list[Step], stable_s: float) -> list[float]:
    """The tool's own seconds of each broker step that follows another one of its roll."""
    messages = [step.tool_s(stable_s) for step in steps if step.kind in BROKER_KINDS and not step.first]
    return [round(one, 3) for one in messages if one is not None]


def versions() -> dict[str, str | None]:
    """Of what decides the figures; null where it cannot be told."""
    jars = [path.name for path in (ROOT / ".build" / "kafka" / "libs").glob("*.jar")]

    def jar(pattern: str) -> str | None:
        found = [match[1] for match in map(re.compile(pattern).fullmatch, jars) if match]
        return found[0] if found else None

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
    reported: dict[str, Any],
) -> dict[str, Any]:
    """The summary without `result` and `problems`. `told`: {phase, begun, end, soak_s, stable_s, wall_s (by run),
    changed_on_second_run}."""
    marks = phases(events, steps, reported["begun"])
    runs = reported["wall_s"]
    migrating = sum(seconds for name, seconds in runs.items() if name in ("to dual_write", "to finalized"))
    floor = floor_s(events, steps)
    tool = tool_s_per_broker_step(steps, reported["stable_s"])
    return {
        "schema": 1,
        "phase": reported["phase"],
        "witness": verdict and canary_clients(verdict),
        "changes": changes,
        "gates": gates(journal),
        "wall_s": {"runs": runs, "phases": wall_by_phase(marks, reported["end"])},
        "soak_s": reported["soak_s"],
        "stable_s": reported["stable_s"],
        "floor_s": round(floor, 3),
        "overhead_ratio": round(migrating / floor, 3) if floor and migrating else None,
        "tool_s_per_broker_step": round(statistics.mean(tool), 3) if tool else None,
        "tool_s_max": max(tool, default=None),
        "steps": [step.reported(reported["stable_s"]) for step in steps],
        "changed_on_second_run": reported["changed_on_second_run"],
        "versions": versions(),
    }


def problems(summary: dict[str, Any], failovers: int = 0) -> list[str]:
    """What is not as it must be, as sentences; nothing when the migration is proved."""
    found = []
    if summary["phase"] != "finalized":
        found.append(f"the phase at the end is {summary['phase']}, not finalized")
    seen = summary["witness"]
    if not seen:
        found.append("there is no verdict of the witness")
    else:
        if seen["verdict"] != "pass":
            found.append(f"the witness's verdict is {seen['verdict']}: {'; '.join(seen['reasons'])}")
        if seen["acked_per_second"] < LEAST_RATE:
            found.append(f"the witness had {seen['acked_per_second']:.0f} messages a second, not {LEAST_RATE:.0f}")
    found += summary["changes"]["problems"]
    compared = {check["where"] for check in summary["changes"]["checked"]}
    found += [
        f"{where} was never compared with the changes" for where in ("brokers", "ZooKeeper") if where not in compared
    ]
    passed = {gate["name"] for gate in summary["gates"] if gate["result"] == "pass"}
    missing = [name for name in EXPECTED_GATES if name not in passed]
    if missing:
        found.append(f"gates that no run passed: {', '.join(missing)}")
    kinds = [step["kind"] for step in summary["steps"]]
    for kind, count in EXPECTED_STEPS.items():
        if kinds.count(kind) != count:
            found.append(f"the recorder saw {kinds.count(kind)} restarts of kind {kind}, not {count}")
    found += [
        f"the recorder saw {step['host']} out of an ISR when the next broker was told to stop ({step['kind']})"
        for step in summary["steps"]
        if step["overtaken"]
    ]
    others = [step for step in summary["steps"] if step["kind"] not in EXPECTED_STEPS]
    if len(others) != failovers:
        names = ", ".join(f"{step['host']} ({step['kind']})" for step in others)
        found.append(f"the recorder saw {len(others)} restarts that no run tells of, not {failovers}: {names}")
    if summary["changed_on_second_run"]:
        found.append(f"one more run changed {summary['changed_on_second_run']} things")
    return found
