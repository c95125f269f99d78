# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The text that `plan` prints. Pure."""

from __future__ import annotations

from typing import Callable, Iterable, Mapping, Sequence

from ansible_collections.quorumshift.kafka.plugins.module_utils.core.status import planning
from ansible_collections.quorumshift.kafka.plugins.module_utils.core.text import durations

OWN = ("broker.id", "node.id")


def lines(
    cluster: str | None,
    now: str,
    target: str,
    ahead: Sequence[planning.Step],
    changes: Mapping,
    times: planning.Times,
) -> list[str]:
    """Return the plan as lines. `now`: the phase; `changes`: {kind of restart: {hosts: lines of the changes in their
    files}}."""
    end = target or "finalized"
    if not ahead:
        return [f"Plan for cluster {cluster or '?'}: nothing to do, from {now} to {end}"]
    shown = [f"Plan for cluster {cluster or '?'}, from {now} to {end}"]
    for number, step in enumerate(ahead, 1):
        what = f"gate {step.name}: {step.text}" if step.kind == planning.GATE else step.text
        if step.kind == planning.START:
            what += f": {', '.join(step.batches[0])} together"
        elif step.batches:
            order = [" + ".join(_append_reason(host, step.reasons) for host in batch) for batch in step.batches]
            what += f": {', then '.join(order)}"
        shown.append(f"  {number:>2}  {what}")
        for hosts, text in (changes.get(step.name) or {}).items():
            shown.append(f"        file of {', '.join(hosts)}:")
            shown += [f"          {line}" for line in text]
    last = next((number for number, step in enumerate(ahead, 1) if step.back is None), None)
    if not target:
        until = f"possible up to step {last - 1}" if last and last > 1 else "not possible after any step"
        shown += ["", f"  rollback: {until}; impossible once a controller runs without the migration flag"]
    return [*shown, f"  time: {_time(ahead, times)}"] if planning.restarts(ahead) else shown


def _time(ahead: Sequence[planning.Step], times: planning.Times) -> str:
    count = sum(len(step.batches) for step in planning.restarts(ahead))
    took = times.of_steps(ahead)
    if took is None:
        return f"{count} restarts; their time is unknown until the first one on this cluster"
    kinds = {step.name for step in planning.restarts(ahead)}
    source = "by the nodes' logs of their last start"
    if not times.nodes or kinds <= set(times.each):
        source = "as in this cluster's journals"
    elif kinds & set(times.each):
        source = "by this cluster's journals and the nodes' logs of their last start"
    return (
        f"{durations.format_duration(took)} for {count} restarts, at {took / count:.0f} s each {source}; gates, the "
        "initial copy and the soak take additional time"
    )


def line(ahead: Sequence[planning.Step], times: planning.Times) -> str:
    """Return the plan in one line."""
    return f"{len(ahead)} steps ahead" + (f"; {_time(ahead, times)}" if planning.restarts(ahead) else "")


def took_lines(steps: Iterable[planning.Took], seconds: float) -> list[str]:
    """Return the planned and the real time of a run's restarts as lines; `seconds`: of the whole run."""
    shown = []
    for step in steps:
        planned = "no estimate" if step.planned_s is None else f"planned {durations.format_duration(step.planned_s)}"
        took = durations.format_duration(step.took_s)
        if step.planned != step.batches:
            planned, took = f"{planned} for {step.planned} restarts", f"{took} for {step.batches}"
        shown.append(f"  {step.text}: {planned}, took {took}")
    return [*shown, f"  whole run, with gates and waits: {durations.format_duration(seconds)}"]


def _append_reason(host: str, reasons: Mapping[str, str]) -> str:
    return f"{host} ({reasons[host]})" if host in reasons else host


def file_lines(
    before: Mapping[str, str], changes: Mapping[str, str | None], secret: Callable[[str], bool]
) -> list[str]:
    """Return changes of a properties file as lines: `+ key=value`, `- key=value`, a changed key as both. The node's id
    is hidden, so that the lines of all nodes are equal; `secret` returns whether a key's value is never shown."""

    def line(sign: str, key: str, value: str) -> str:
        return f"{sign} {key}={'(secret)' if secret(key) else '(its own)' if key in OWN else value}"

    shown = []
    for key, after in sorted(changes.items()):
        if key in before and before[key] != after:
            shown.append(line("-", key, before[key]))
        if after is not None and before.get(key) != after:
            shown.append(line("+", key, after))
    return shown
