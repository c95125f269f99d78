# Copyright: (c) 2026, Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What churn.py changed, in JSON lines, and what must be there after it; pure but for reading the file.

A line is {t, end (epoch seconds), kind, action (make, alter, remove), name, value, outcome (done, refused), tries,
heard (the last refusal)}; `value` is what a reader finds now, null after remove.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Iterable

ACTIONS = ("make", "alter", "remove")
# in these the metadata moves; each must see every kind made, changed and removed
PHASES_TO_COVER = ("brokers_joining", "hybrid", "dual_write", "finalized")
NOT_THEN = (("scram", "remove"),)  # churn.py says why


def read(path: Path) -> list[dict[str, Any]]:
    """The lines, [] when there is no file."""
    if not path.exists():
        return []
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def expected(lines: Iterable[dict], kinds: Iterable[str]) -> tuple[dict[str, dict], dict[str, set]]:
    """What must be there, {kind: {name: value}}, and of which names nobody knows, {kind: names}: refused for good."""
    there: dict[str, dict] = {kind: {} for kind in kinds}
    unsure: dict[str, set] = {kind: set() for kind in there}
    for line in lines:
        kind, name = line["kind"], line["name"]
        if line["outcome"] != "done":
            unsure[kind].add(name)
            continue
        unsure[kind].discard(name)
        if line["action"] == "remove":
            there[kind].pop(name, None)
            if kind == "topic":
                there["config"].pop(name, None)  # goes with its topic
        else:
            there[kind][name] = line["value"]
    return there, unsure


def differences(wanted: dict[str, dict], unsure: dict[str, set], found: dict[str, dict], where: str) -> list[str]:
    """What `where` holds that is not as last written, as sentences."""
    messages = []
    for kind, names in wanted.items():
        seen = found[kind]
        for name in sorted((set(names) | set(seen)) - unsure[kind]):
            if name not in seen:
                messages.append(f"{where}: {kind} {name} is missing, written as {names[name]}")
            elif name not in names:
                messages.append(f"{where}: {kind} {name} is there as {seen[name]}, though it was removed")
            elif seen[name] != names[name]:
                messages.append(f"{where}: {kind} {name} is {seen[name]}, written as {names[name]}")
    return messages


def by_phase(lines: Iterable[dict], phases: list[tuple[float, str]]) -> dict[str, dict[str, dict[str, int]]]:
    """{phase: {kind: {action: count}}} of the changes done, by the phase in which they took effect."""
    reported: dict[str, dict[str, dict[str, int]]] = {}
    for line in lines:
        if line["outcome"] == "done":
            name = next((name for t, name in reversed(phases) if t <= line["end"]), phases[0][1])
            counts = reported.setdefault(name, {}).setdefault(line["kind"], dict.fromkeys(ACTIONS, 0))
            counts[line["action"]] += 1
    return reported


def during(lines: Iterable[dict], begun: float, ended: float) -> int:
    """How many changes were asked for and not yet answered at some moment between two times."""
    return sum(1 for line in lines if line["t"] <= ended and line["end"] >= begun)


def summary(
    lines: list[dict], kinds: Iterable[str], phases: list[tuple[float, str]], checks: list[dict[str, Any]]
) -> dict[str, Any]:
    """As in summary.json. `checks`: what churn.check returned, {where, objects, differences}, in order of time."""
    kinds = list(kinds)
    refused = [line for line in lines if line["outcome"] != "done"]
    problems = [f"{one['kind']} {one['action']} {one['name']} was refused: {one['heard']}" for one in refused]
    for check in checks:
        problems += check["differences"]
    done = by_phase(lines, phases)
    for phase in PHASES_TO_COVER:
        for kind in kinds:
            counts = done.get(phase, {}).get(kind, {})
            lacking = [action for action in ACTIONS if not counts.get(action) and (kind, action) not in NOT_THEN]
            if lacking:
                problems.append(f"no {kind} saw {', '.join(lacking)} in {phase}")
    times = dict(map(reversed, phases))
    copying = during(lines, times["copying"], times["hybrid"]) if {"copying", "hybrid"} <= set(times) else 0
    if not copying:
        problems.append("no metadata change was under way while the copy ran")
    return {
        "changes": len(lines),
        "repeated": sum(1 for line in lines if line["tries"] > 1),
        "refused": len(refused),
        "while_copying": copying,
        "by_phase": done,
        "checked": [
            {"where": one["where"], "objects": one["objects"], "differences": len(one["differences"])} for one in checks
        ],
        "problems": problems,
    }
