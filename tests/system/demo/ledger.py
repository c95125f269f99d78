# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The changes that churn.py made, as JSON lines, and what must exist after them; pure except for reading the file.

A line is {t, end (epoch seconds), kind, action (make, alter, remove), name, value, outcome (done, refused), tries,
error (the last one)}; `value` is what a reader finds afterwards, null after remove.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Iterable

ACTIONS = ("make", "alter", "remove")
# in each of these phases, each kind must be made, altered and removed
PHASES_TO_COVER = ("brokers_joining", "hybrid", "dual_write", "finalized")
NOT_THEN = (("scram", "remove"),)  # churn.py says why
LATE_S = 60.0
"""A broker repeats a request to the controller for so long (Kafka's BrokerServer, retryTimeoutMs), also after its
client has stopped waiting and has repeated it."""


def read(path: Path) -> list[dict[str, Any]]:
    """Return the lines, [] if there is no file."""
    if not path.exists():
        return []
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def expected(lines: Iterable[dict], kinds: Iterable[str]) -> tuple[dict[str, dict], dict[str, set]]:
    """Return what must exist, {kind: {name: value}}, and the names whose last change was refused, {kind: names}."""
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
    """Return how `where` differs from what was written last, as sentences."""
    texts = []
    for kind, names in wanted.items():
        seen = found[kind]
        for name in sorted((set(names) | set(seen)) - unsure[kind]):
            if name not in seen:
                texts.append(f"{where}: {kind} {name} is missing, written as {names[name]}")
            elif name not in names:
                texts.append(f"{where}: {kind} {name} exists as {seen[name]}, although it was removed")
            elif seen[name] != names[name]:
                texts.append(f"{where}: {kind} {name} is {seen[name]}, written as {names[name]}")
    return texts


def executed_late(lines: Iterable[dict], found: dict[str, dict]) -> list[dict[str, Any]]:
    """Return the objects that a request without an answer made what they are, after a later change: the lines of the
    changes that had sent it. Such a change was repeated, and its repetition had an answer before the later change."""
    late = []
    last: dict[tuple[str, str], dict] = {}
    unanswered: dict[tuple[str, str], dict] = {}
    for line in lines:
        key = line["kind"], line["name"]
        if line["outcome"] == "done":
            last[key] = line
        if line["tries"] > 1 and "timed out" in str(line["error"]):
            unanswered[key] = line
    for (kind, name), line in unanswered.items():
        later = last.get((kind, name), line)
        soon = later["t"] - line["t"] <= LATE_S
        if soon and None not in (line["value"], later["value"]) and line["value"] != later["value"]:
            late += [line] if found[kind].get(name) == line["value"] else []
    return late


def by_phase(lines: Iterable[dict], phases: list[tuple[float, str]]) -> dict[str, dict[str, dict[str, int]]]:
    """Return {phase: {kind: {action: count}}} of the changes done, by the phase in which they took effect."""
    phase_counts: dict[str, dict[str, dict[str, int]]] = {}
    for line in lines:
        if line["outcome"] == "done":
            name = next((name for t, name in reversed(phases) if t <= line["end"]), phases[0][1])
            counts = phase_counts.setdefault(name, {}).setdefault(line["kind"], dict.fromkeys(ACTIONS, 0))
            counts[line["action"]] += 1
    return phase_counts


def during(lines: Iterable[dict], begun: float, ended: float) -> int:
    """Return how many changes were in progress at some moment between two times."""
    return sum(1 for line in lines if line["t"] <= ended and line["end"] >= begun)


def summary(
    lines: list[dict], kinds: Iterable[str], phases: list[tuple[float, str]], checks: list[dict[str, Any]]
) -> dict[str, Any]:
    """Return `changes` of summary.json. `checks`: the results of churn.check, in order of time."""
    kinds = list(kinds)
    refused = [line for line in lines if line["outcome"] != "done"]
    problems = [f"{line['kind']} {line['action']} {line['name']} was refused: {line['error']}" for line in refused]
    for check in checks:
        problems += check["differences"]
    done = by_phase(lines, phases)
    for phase in PHASES_TO_COVER:
        for kind in kinds:
            counts = done.get(phase, {}).get(kind, {})
            lacking = [action for action in ACTIONS if not counts.get(action) and (kind, action) not in NOT_THEN]
            if lacking:
                problems.append(f"{phase}: no {kind} had the actions {', '.join(lacking)}")
    times = dict(map(reversed, phases))
    copying = during(lines, times["copying"], times["hybrid"]) if {"copying", "hybrid"} <= set(times) else 0
    if not copying:
        problems.append("no metadata change was in progress during the initial copy")
    return {
        "changes": len(lines),
        "repeated": sum(1 for line in lines if line["tries"] > 1),
        "refused": len(refused),
        "while_copying": copying,
        "by_phase": done,
        "checked": [
            {
                "where": check["where"],
                "objects": check["objects"],
                "differences": len(check["differences"]),
                "executed_late": len(check["executed_late"]),
            }
            for check in checks
        ],
        "problems": problems,
    }
