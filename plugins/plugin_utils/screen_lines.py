# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The lines of the callback `screen`. Pure: from a run's journal and plans to text of a given width.

Only ASCII is drawn: in the C locale Python writes UTF-8, which such a terminal cannot show.
"""

from __future__ import annotations

import itertools
import unicodedata
from typing import Any, Mapping, NamedTuple, Sequence

from ansible_collections.quorumshift.kafka.plugins.module_utils import message_ids
from ansible_collections.quorumshift.kafka.plugins.module_utils.core.migration import transitions
from ansible_collections.quorumshift.kafka.plugins.module_utils.core.run import run_outcome
from ansible_collections.quorumshift.kafka.plugins.module_utils.core.status import planning
from ansible_collections.quorumshift.kafka.plugins.module_utils.core.text.printable import escape_invisible
from ansible_collections.quorumshift.kafka.plugins.plugin_utils.report_story import duration

WAITS = 3  # as many are shown
_BAR = (8, 40)  # the shortest and the longest


class Restarts(NamedTuple):
    """The restarts of one roll: how many nodes are done, of how many; which ones are restarted now; how many seconds
    all planned restarts of the run still took at the time `at`, the begin of the batch of now (0: there is none), None
    if unknown, and of these that batch."""

    role: str
    done: int
    total: int
    now: Sequence[str]
    left_s: float | None
    batch_s: float
    at: float


class View(NamedTuple):
    """What the block shows. `began`: of the playbook; `waits`: {host: text}; `task`: the one that runs."""

    title: str
    began: float
    phase: str = ""
    restarts: Restarts | None = None
    waits: Mapping[str, str] = {}
    task: str = ""


def phase_of(events: Sequence[Mapping[str, Any]]) -> str:
    """Return the phase that was detected last, "" where none was."""
    return next((str(event["name"]) for event in reversed(events) if event["kind"] == "phase"), "")


def restarts(
    plan: Mapping[str, Any],
    events: Sequence[Mapping[str, Any]],
    run_plan: Mapping[str, Any] | None,
    times: planning.Times,
) -> Restarts | None:
    """Return how far a roll is, None without one.

    `plan`: of the roll, as rolling_restart returns it; `events`: of the run since then; `run_plan`: plan.json of the
    run.
    """
    kind, batches = plan["kind"], [list(batch) for batch in plan["batches"]]
    hosts = [host for batch in batches for host in batch]
    if not hosts or kind not in transitions.KINDS:
        return None
    begun = [
        event
        for event in events
        if event["name"] == run_outcome.STEP_BEGUN and any(set(event["hosts"]) <= set(batch) for batch in batches)
    ]
    batch = [host for host in hosts if begun and host in begun[-1]["hosts"]]
    ended = {
        event.get("host")
        for event in events
        if event["kind"] == "restart" and event["name"] == kind and event.get("outcome") == "done"
    }
    passed = {host for host in hosts if batch and hosts.index(host) < hosts.index(batch[0])}  # needed no restart too
    done = {host for host in hosts if host in ended} | passed
    left = [one for one in ([host for host in batch if host not in done] for batch in batches) if one]
    later = _later(run_plan, kind)
    ahead = [planning.Step(planning.ROLL, kind, "", left, {}, None), *later]
    of_batch = times.of_step(ahead[0]._replace(batches=left[:1])) or 0.0
    now = [host for host in batch if host not in done]
    return Restarts(
        transitions.KINDS[kind].role,
        len(plan["done"]) + len(done),
        len(plan["done"]) + len(hosts),
        now,
        times.of_steps(ahead) if left or later else 0.0,
        of_batch,
        float(begun[-1]["t"]) if now else 0.0,
    )


def _later(run_plan: Mapping[str, Any] | None, kind: str) -> list[planning.Step]:
    """Return the steps with restarts that follow this roll in the run's plan, before the stop for the soak."""
    steps = [planning.Step(**step) for step in (run_plan or {}).get("steps", ())]
    names = [step.name for step in steps]
    following = steps[names.index(kind) + 1 :] if kind in names else []
    return planning.restarts(itertools.takewhile(lambda step: step.name != "before_finalize", following))


def left(found: Restarts, now: float) -> str:
    """Return how long all restarts that are planned still take, as text."""
    if found.left_s is None:
        return "time left unknown until the first restart"
    passed = min(max(0.0, now - found.at), found.batch_s) if found.at else 0.0
    seconds = max(0.0, found.left_s - passed)
    if not seconds:
        return "no restart left" if not found.left_s else "restarts end soon"
    unit = 60 if seconds >= 90 else 5
    return f"about {duration(max(unit, round(seconds / unit) * unit))} of restarts left"


def count(found: Restarts) -> str:
    """Return where a roll is: `broker 7 of 24`, or `brokers 7-9 of 24` in a batch."""
    first, last = found.done + 1, found.done + max(1, len(found.now))
    if found.done >= found.total:
        return f"{found.total} of {found.total} {found.role}s done"
    if last > first:
        return f"{found.role}s {first}-{last} of {found.total}"
    return f"{found.role} {first} of {found.total}"


def plain(found: Restarts, now: float) -> str:
    """Return the progress as a line of its own, for output that is no terminal."""
    names = f" ({', '.join(found.now)})" if found.now and found.done < found.total else ""
    return f"{count(found)}{names}; {left(found, now)}"


def block(view: View, now: float, width: int) -> list[str]:
    """Return the lines that are redrawn below what was printed, none longer than the width."""
    clock = _clock(now - view.began)
    room = width - len(clock) - 2
    title = f"phase {view.phase}: {view.title}" if view.phase else view.title
    title = clip(title if len(title) <= room else view.title, room)
    lines = [f"{title}{' ' * (width - len(clock) - sum(map(_columns, title)))}{clock}"]
    if view.restarts:
        lines.append(_bar(view.restarts, now, width))
    waits = [f"  {text}" for text in view.waits.values()] or ([f"  {view.task}"] if view.task else [])
    if len(waits) > WAITS:
        waits = [*waits[: WAITS - 1], f"  and {len(waits) - WAITS + 1} more"]
    return [clip(line, width) for line in [*lines, *waits]]


def _bar(found: Restarts, now: float, width: int) -> str:
    shown, time_left = count(found), left(found, now)
    room = width - len(shown) - len(time_left) - 4
    if room < _BAR[0]:  # a narrow terminal
        time_left = time_left.replace(" of restarts", "")
        room = width - len(shown) - len(time_left) - 4
    if room < _BAR[0]:
        return f"{shown}  {time_left}"
    room = min(room, _BAR[1])
    full = (room - 2) * found.done // found.total
    return f"{shown} [{'#' * full}{'-' * (room - 2 - full)}] {time_left}"


def failure(where: str, text: str, shown: Sequence[str]) -> str:
    """Return what the screen says of a task that failed.

    `where`: task and host, "" for the end of a run, which names them itself; `text`: the message; `shown`: the messages
    of failures that the screen has above, which the end of a run repeats.
    """
    for above in map(_without_ids, shown):
        if above:
            text = text.replace(f": {above}. ", " (above). ")
    lines = text.rstrip().splitlines()
    return "\n".join([f"FAILED: {where}", *(f"    {line}" for line in lines)] if where else lines)


def _without_ids(text: str) -> str:
    return message_ids.strip_ids(message_ids.drop_full_stop(text))


def _clock(seconds: float) -> str:
    minutes, rest = divmod(max(0, int(seconds)), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"


def clip(text: str, width: int) -> str:
    """Return a text in one line, no wider than `width` columns of a terminal."""
    text = escape_invisible(" ".join(text.split()) if "\n" in text else text)
    if sum(map(_columns, text)) <= width:
        return text
    shown, used = "", 0
    for character in text:
        used += _columns(character)
        if used > max(0, width - 3):
            break
        shown += character
    return (shown + "...")[: max(0, width)]


def _columns(character: str) -> int:
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1
