# Copyright: (c) 2026, Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What `plan` prints. Pure: steps in, text out."""

from __future__ import annotations

from typing import Callable, Mapping, Sequence

from . import planning

OWN = ("broker.id", "node.id")


def lines(
    cluster: str | None, seen: str, target: str, told: Sequence[planning.Step], changes: Mapping, each_s: float | None
) -> list[str]:
    """Return the plan as lines for people. `changes`: {turn: {hosts: lines of what changes in their files}}."""
    where = target or "finalized"
    if not told:
        return [f"Plan for cluster {cluster or '?'}: nothing is ahead, from {seen} to {where}"]
    shown = [f"Plan for cluster {cluster or '?'}, from {seen} to {where}"]
    for number, step in enumerate(told, 1):
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
    last = next((number for number, step in enumerate(told, 1) if step.back is None), None)
    if not target:
        until = f"up to step {last - 1}" if last and last > 1 else "from none of them"
        shown += ["", f"  way back: {until}; none once a controller runs without the flag"]
    took = planning.estimate_s(told, each_s)
    restarts = sum(len(step.batches) for step in told if step.kind in (planning.ROLL, planning.START))
    if restarts:
        time = (
            f"{took / 60:.0f} min for {restarts} restarts, at {each_s:.0f} s each as in this cluster's journals; "
            "gates, the copy and the soak come to it"
            if took is not None
            else f"{restarts} restarts; how long one takes here is known once the first was done"
        )
        shown.append(f"  time: {time}")
    return shown


def _why(host: str, reasons: Mapping[str, str]) -> str:
    return f"{host} ({reasons[host]})" if host in reasons else host


def file_lines(
    before: Mapping[str, str], changes: Mapping[str, str | None], secret: Callable[[str], bool]
) -> list[str]:
    """Return changes of a properties file as lines: `+ key=value`, `- key=value`, a changed key as both. A node's own
    id is told as such, so that nodes can be told of together; `secret` says whether a key's value is never shown."""

    def line(sign: str, key: str, value: str) -> str:
        return f"{sign} {key}={'(secret)' if secret(key) else '(its own)' if key in OWN else value}"

    told = []
    for key, after in sorted(changes.items()):
        if key in before and before[key] != after:
            told.append(line("-", key, before[key]))
        if after is not None and before.get(key) != after:
            told.append(line("+", key, after))
    return told
