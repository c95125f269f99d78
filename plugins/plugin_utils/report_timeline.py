# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A run's timeline as rows of SVG on one time axis, and as one strip. Pure.

Horizontal positions are in percent, so that text has the same size on a phone and on a wide screen. Labels use as many
lines as they need on a phone.
"""

from __future__ import annotations

from typing import Callable, NamedTuple, Sequence

from ansible_collections.quorumshift.kafka.plugins.plugin_utils.report_story import Restart, Story, duration
from markupsafe import Markup

LANES = 24
NARROW_PX, CHARACTER_PX = 270, 6.3
LINE_PX, LANE_PX, PACKED_PX, STRIP_PX = 16, 22, 10, 26
_STEPS = (1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 14400, 21600, 43200, 86400)
TICKS = 4
# Journalled once for each kind of restart at the end of a run; as marks they would only overlap
SUMMARY = "took"
_NAMES = {"stop": "stop", "start": "start", "register": "until registered", "failed": "failed"}


class Row(NamedTuple):
    """A row of the timeline: its name and its picture."""

    name: str
    svg: Markup


class _Axis:
    def __init__(self, story: Story):
        self.start = story.start or 0.0
        self.seconds = max(story.seconds, 1.0)

    def x(self, at: float) -> float:
        return round(100 * min(1.0, max(0.0, (at - self.start) / self.seconds)), 3)


def rows(story: Story, clock: Callable[[float], str]) -> list[Row]:
    """Return the rows: time, phases, gates, one for each host (shared rows when there are many), other events.

    `clock` formats a time of day.
    """
    axis = _Axis(story)
    under = _under(axis, story)
    phases = [(phase.start, phase.name, "strong", phase.name) for phase in story.phases]
    result = [Row("", _ticks(axis, clock)), Row("phase", _labels(axis, under, phases))]
    if story.gates:
        marks = [
            (gate.at, f"{'✓' if gate.passed else '✕'} {gate.name}", "pass" if gate.passed else "fail", clock(gate.at))
            for gate in story.gates
        ]
        result.append(Row("gates", _labels(axis, under, marks)))
    hosts = list(dict.fromkeys(restart.host for restart in story.restarts))
    if len(hosts) <= LANES:
        result += [
            Row(host, _lane(axis, under, [restart for restart in story.restarts if restart.host == host], LANE_PX))
            for host in hosts
        ]
    else:
        packed = _pack(story.restarts)
        result += [
            Row("restarts" if not number else "", _lane(axis, under, lane, PACKED_PX))
            for number, lane in enumerate(packed)
        ]
    marks = [(event.at, event.name, "soft", clock(event.at)) for event in story.events if event.name != SUMMARY]
    if marks:
        result.append(Row("events", _labels(axis, under, marks)))
    return result


def strip(story: Story) -> Markup:
    """Return the run in one line: phases shaded, restarts, gates."""
    axis = _Axis(story)
    bars = [_bar(axis, restart, 9, 9) for restart in story.restarts]
    return _svg(STRIP_PX, [_under(axis, story), *bars])


def _svg(height: float, parts: Sequence[Markup]) -> Markup:
    return Markup('<svg width="100%" height="{}" aria-hidden="true">{}</svg>').format(height, Markup("").join(parts))


def _under(axis: _Axis, story: Story) -> Markup:
    """Return the background of every row: phases shaded, fading where the change itself was not detected, and gates."""
    parts = []
    for number, span in enumerate(story.phases):
        tone = "ab"[number % 2]
        left, seen, right = axis.x(span.start), axis.x(span.seen), axis.x(span.end)
        title = f"{span.name}, {duration(span.end - span.start)}"
        parts.append(_rect(left, seen - left, 0, "100%", f"band-{tone}", title))
        if right > seen:
            title = f"{span.name} or already the next phase"
            parts.append(_rect(seen, right - seen, 0, "100%", f"fade-{tone}", title))
    for gate in story.gates:
        x, style = axis.x(gate.at), "pass" if gate.passed else "fail"
        parts.append(
            Markup('<g class="gate {}"><title>gate {} {}</title>').format(
                style, gate.name, "passed" if gate.passed else "closed"
            )
            + Markup('<line x1="{0}%" x2="{0}%" y1="0" y2="100%"/></g>').format(x)
        )
    return Markup("").join(parts)


def _rect(x: float, width: float, y: float, height: float | str, style: str, title: str) -> Markup:
    return Markup('<rect x="{}%" width="{}%" y="{}" height="{}" class="{}"><title>{}</title></rect>').format(
        x, round(max(width, 0.15), 3), y, height, style, title
    )


def _bar(axis: _Axis, restart: Restart, y: float, height: float) -> Markup:
    """Return a restart's stages side by side."""
    return Markup("").join(
        _rect(
            axis.x(start),
            axis.x(end) - axis.x(start),
            y,
            height,
            name,
            f"{restart.host} {restart.kind}: {_NAMES[name]}, {end - start:.1f} s",
        )
        for name, start, end in restart.stages
    )


def _lane(axis: _Axis, under: Markup, restarts: Sequence[Restart], height: int) -> Markup:
    mark = round(height * 0.55)
    parts = [under, *(_bar(axis, restart, (height - mark) / 2, mark) for restart in restarts)]
    for restart in restarts:
        if restart.failed and height == LANE_PX:
            parts.append(_outcome(axis, restart, height / 2 + 4))
    return _svg(height, parts)


def _outcome(axis: _Axis, restart: Restart, y: float) -> Markup:
    """Return the outcome of a failed restart, beside its bar if there is room."""
    left, right = axis.x(restart.start), axis.x(restart.end)
    if right < 75:
        where = Markup('x="{}%" dx="5" class="fail"').format(right)
    elif left > 25:
        where = Markup('x="{}%" dx="-5" text-anchor="end" class="fail"').format(left)
    else:
        where = Markup('x="{}%" text-anchor="middle" class="inside"').format((left + right) / 2)
    return Markup('<text {} y="{}">✕ {}</text>').format(where, y, restart.outcome)


def _pack(restarts: Sequence[Restart]) -> list[list[Restart]]:
    """Return the restarts in as few rows as possible, without overlaps."""
    lanes: list[list[Restart]] = []
    for restart in sorted(restarts, key=lambda restart: restart.start):
        for lane in lanes:
            if lane[-1].end <= restart.start:
                lane.append(restart)
                break
        else:
            lanes.append([restart])
    return lanes


def _labels(axis: _Axis, under: Markup, marks: Sequence[tuple[float, str, str, str]]) -> Markup:
    """Return the labels of `marks` (at, text, style, title), on enough lines to keep them apart on a phone."""
    taken: list[float] = []
    placed = []
    for at, text, style, title in marks:
        left, need = axis.x(at) / 100 * NARROW_PX, len(text) * CHARACTER_PX + 8
        ends = left + need > NARROW_PX
        start = left - need if ends else left
        line = next((number for number, until in enumerate(taken) if until <= start), len(taken))
        if line == len(taken):
            taken.append(0.0)
        taken[line] = start + need
        shift = Markup('dx="-5" text-anchor="end"') if ends else Markup('dx="5"')
        placed.append(
            Markup('<text x="{}%" {} y="{}" class="{}"><title>{}</title>{}</text>').format(
                axis.x(at), shift, line * LINE_PX + 13, style, title, text
            )
        )
    return _svg(max(len(taken), 1) * LINE_PX + 4, [under, *placed])


def _ticks(axis: _Axis, clock: Callable[[float], str]) -> Markup:
    """Return the axis: the time since the start of the run, and the time of day."""
    step = next((candidate for candidate in _STEPS if axis.seconds / candidate <= TICKS), None)
    if step is None:
        step = _STEPS[-1] * max(1, int(axis.seconds / _STEPS[-1] / TICKS) + 1)
    parts = []
    for number in range(int(axis.seconds / step) + 1):
        x = axis.x(axis.start + number * step)
        anchor = "start" if x < 8 else "end" if x > 92 else "middle"
        since = f"+{duration(number * step)}" if number else "start"
        parts.append(
            Markup(
                '<line x1="{x}%" x2="{x}%" y1="32" y2="38" class="tick"/>'
                '<text x="{x}%" y="12" text-anchor="{anchor}" class="strong">{since}</text>'
                '<text x="{x}%" y="27" text-anchor="{anchor}" class="soft">{clock}</text>'
            ).format(x=x, anchor=anchor, since=since, clock=clock(axis.start + number * step))
        )
    return _svg(38, parts)
