# Copyright: (c) 2026, Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What `plan` prints. Pure: steps in, text out."""

from __future__ import annotations

from typing import Callable, Iterable, Mapping, Sequence

from . import planning, screen

OWN = ("broker.id", "node.id")


def lines(
    cluster: str | None,
    seen: str,
    target: str,
    messages: Sequence[planning.Step],
    changes: Mapping,
    each: Mapping[str, float],
) -> list[str]:
    """Return the plan as lines for people. `changes`: {turn: {hosts: lines of what changes in their files}}; `each`:
    planning.each_s."""
    where = target or "finalized"
    if not messages:
        return [f"Plan for cluster {cluster or '?'}: nothing is ahead, from {seen} to {where}"]
    shown = [f"Plan for cluster {cluster or '?'}, from {seen} to {where}"]
    for number, step in enumerate(messages, 1):
        what = f"gate {step.name}: {step.text}" if step.kind == planning.GATE else step.text
        if step.kind == planning.START:
            what += f": {', '.join(step.batches[0])} together"
        elif step.batches:
            order = [" + ".join(_why(host, step.reasons) for host in batch) for batch in step.batches]
            what += f": {', then '.join(order)}"
        shown.append(f"  {number:>2}  {what}")
        for hosts, text in (changes.get(step.name) or {}).items():
            shown.append(f"        file of {', '.join(hosts)}:")
            shown += [f"          {line}" for line in text]
    last = next((number for number, step in enumerate(messages, 1) if step.back is None), None)
    if not target:
        until = f"up to step {last - 1}" if last and last > 1 else "from none of them"
        shown += ["", f"  way back: {until}; none once a controller runs without the flag"]
    return [*shown, f"  time: {_time(messages, each)}"] if planning.restarts(messages) else shown


def _time(reported: Sequence[planning.Step], each: Mapping[str, float]) -> str:
    count = sum(len(step.batches) for step in planning.restarts(reported))
    took = planning.estimate_s(reported, each)
    if took is None:
        return f"{count} restarts; how long one takes here is known once the first was done"
    return (
        f"{screen.duration(took)} for {count} restarts, at {took / count:.0f} s each as in this cluster's journals; "
        "gates, the copy and the soak come to it"
    )


def line(reported: Sequence[planning.Step], each: Mapping[str, float]) -> str:
    """Return the plan of a run that goes on with it, in a line."""
    return f"{len(reported)} steps ahead" + (f"; {_time(reported, each)}" if planning.restarts(reported) else "")


def took_lines(messages: Iterable[planning.Took], seconds: float) -> list[str]:
    """Return what restarts took beside what was planned, as lines for people; `seconds` that the run took in all."""
    shown = []
    for one in messages:
        planned = "no figure was known" if one.planned_s is None else f"planned {screen.duration(one.planned_s)}"
        took = screen.duration(one.took_s)
        if one.planned != one.batches:
            planned, took = f"{planned} for {one.planned} of them", f"{took} for {one.batches}"
        shown.append(f"  {one.text}: {planned}, took {took}")
    return [*shown, f"  the run in all, gates and what else it waited for included: {screen.duration(seconds)}"]


def _why(host: str, reasons: Mapping[str, str]) -> str:
    return f"{host} ({reasons[host]})" if host in reasons else host


def file_lines(
    before: Mapping[str, str], changes: Mapping[str, str | None], secret: Callable[[str], bool]
) -> list[str]:
    """Return changes of a properties file as lines: `+ key=value`, `- key=value`, a changed key as both. A node's own
    id is told as such, so that nodes can be told of together; `secret` says whether a key's value is never shown."""

    def line(sign: str, key: str, value: str) -> str:
        return f"{sign} {key}={'(secret)' if secret(key) else '(its own)' if key in OWN else value}"

    messages = []
    for key, after in sorted(changes.items()):
        if key in before and before[key] != after:
            messages.append(line("-", key, before[key]))
        if after is not None and before.get(key) != after:
            messages.append(line("+", key, after))
    return messages
