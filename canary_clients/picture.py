# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A run as one self-contained SVG: throughput, latency, phases, restarts and stalls on a common time axis; pure."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass
from typing import Any, Iterable
from xml.sax.saxutils import escape

from canary_clients.ledger import Recording
from canary_clients.marks import Mark, Span, spans, to_ms
from canary_clients.timeline import Timeline, build
from canary_clients.verdict import evaluate

WIDTH, LEFT, RIGHT = 1280, 104, 24
PLOT = WIDTH - LEFT - RIGHT
HEADER, LABEL_ROW, RESTART_ROW = 84, 18, 18
THROUGHPUT_HEIGHT, LATENCY_HEIGHT, STALL_ROW = 170, 150, 20
CHARACTER = 6.6
STALL_SHOWN_MS = 1000

STYLE = """
svg { --paper:#ffffff; --ink:#1b1f24; --soft:#59636e; --grid:#d9dee3; --band:#eef2f6; --band2:#dfe7ef;
  --acked:#0a6fc2; --ackedfill:#0a6fc2; --received:#b35900; --max:#8250df; --restart:#9a6700; --stall:#cf222e;
  --pass:#1a7f37; --fail:#cf222e; --incomplete:#9a6700; background:var(--paper); }
@media (prefers-color-scheme: dark) { svg { --paper:#0d1117; --ink:#e6edf3; --soft:#9198a1; --grid:#2b323b;
  --band:#151b23; --band2:#1f2833; --acked:#58a6ff; --ackedfill:#58a6ff; --received:#f0a35e; --max:#c297ff;
  --restart:#e3b341; --stall:#ff7b72; --pass:#3fb950; --fail:#ff7b72; --incomplete:#e3b341; } }
text { font: 12px system-ui, -apple-system, "Segoe UI", "DejaVu Sans", sans-serif; fill:var(--ink); }
.soft { fill:var(--soft); font-size:11px; } .big { font-size:17px; font-weight:600; } .strong { font-weight:600; }
.grid { stroke:var(--grid); stroke-width:1; } .band { fill:var(--band); } .band2 { fill:var(--band2); }
.edge { stroke:var(--soft); stroke-width:1; stroke-dasharray:2 3; }
.acked { stroke:var(--acked); fill:none; stroke-width:1.6; } .ackedfill { fill:var(--ackedfill); opacity:.18; }
.received { stroke:var(--received); fill:none; stroke-width:1.3; stroke-dasharray:4 2; }
.p50 { stroke:var(--acked); fill:none; stroke-width:1.6; } .max { stroke:var(--max); fill:none; stroke-width:1.3; }
.restart, .restarttext { fill:var(--restart); } .restartline { fill:var(--restart); opacity:.10; }
.stall { fill:var(--stall); }
.stalltext { fill:var(--stall); font-weight:600; stroke:var(--paper); stroke-width:3; paint-order:stroke; }
.event { stroke:var(--soft); stroke-width:1; stroke-dasharray:5 3; }
.pass { fill:var(--pass); } .fail { fill:var(--fail); } .incomplete { fill:var(--incomplete); }
.pill { fill:var(--paper); font-size:17px; font-weight:700; }
"""


@dataclass
class Axis:
    """Milliseconds to pixels."""

    end_ms: int

    def x(self, ms: float) -> float:
        return LEFT + PLOT * min(max(ms, 0), self.end_ms) / self.end_ms


def draw(recording: Recording, marks: list[Mark], result: dict[str, Any] | None = None) -> str:
    """Return the SVG; `result` is the verdict, evaluated if None."""
    if result is None:
        result = evaluate(recording, marks)
    timeline = build(recording)
    axis = Axis(max(timeline.end_ms, 1000))
    phases = spans(marks, recording.t0, axis.end_ms)
    restarts = [_Bar.of(mark, recording.t0) for mark in marks if mark.kind == "restart"]
    restarts = [restart for restart in restarts if restart.end >= 0 and restart.start <= axis.end_ms]
    events = [mark for mark in marks if mark.kind == "event" and 0 <= to_ms(mark.t, recording.t0) <= axis.end_ms]

    body: list[str] = []
    top = HEADER
    label_rows, labels = _phase_labels(axis, phases, top)
    plots_top = top + label_rows * LABEL_ROW + 6
    restart_rows = _rows(restarts, axis)
    throughput_top = plots_top + len(restart_rows) * RESTART_ROW + (28 if restart_rows else 20)
    latency_top = throughput_top + THROUGHPUT_HEIGHT + 34
    stall_top = latency_top + LATENCY_HEIGHT + 26
    bottom = stall_top + 2 * STALL_ROW + 6
    height = bottom + 40

    body += _bands(axis, phases, plots_top, bottom)
    body += labels
    body += _restarts(axis, restart_rows, plots_top, bottom)
    body += _throughput(axis, timeline, throughput_top)
    body += _latency(axis, timeline, latency_top)
    body += _events(axis, events, recording.t0, throughput_top, bottom)
    body += _stalls(axis, result["stalls"]["longest"], recording.t0, stall_top)
    body += _time_axis(axis, recording.t0, throughput_top, bottom)
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" height="{height}" '
            f'role="img" aria-label="timeline of the verification clients: {result["verdict"]}">',
            f"<style>{STYLE}</style>",
            *_header(result),
            *body,
            "</svg>",
            "",
        ]
    )


@dataclass
class _Bar:
    name: str
    start: int
    end: int
    title: str

    @classmethod
    def of(cls, mark: Mark, t0: float) -> _Bar:
        start = to_ms(mark.t, t0)
        end = start if mark.end is None else to_ms(mark.end, t0)
        took = f", {(end - start) / 1000:.1f} s" if mark.end is not None else ""
        return cls(mark.host or mark.name, start, end, f"restart of {mark.host or mark.name} ({mark.name}){took}")


def _text(x: float, y: float, content: str, style: str = "", anchor: str = "start") -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" class="{style}" text-anchor="{anchor}">{escape(content)}</text>'


def _rect(x: float, y: float, width: float, height: float, style: str, title: str = "") -> str:
    inner = f"<title>{escape(title)}</title>" if title else ""
    return f'<rect x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{height:.1f}" class="{style}">{inner}</rect>'


def _line(x1: float, y1: float, x2: float, y2: float, style: str) -> str:
    return f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" class="{style}"/>'


def _width(content: str) -> float:
    return len(content) * CHARACTER


def _header(result: dict[str, Any]) -> Iterable[str]:
    verdict = result["verdict"]
    label = verdict.upper()
    pill = 28 + len(label) * 11
    yield f'<rect x="16" y="12" width="{pill}" height="30" rx="6" class="{verdict}"/>'
    yield _text(16 + pill / 2, 33, label, "pill", "middle")
    counts = " · ".join(
        f"{result[kind]:,} {name}"
        for kind, name in (
            ("lost", "lost"),
            ("duplicated", "duplicated"),
            ("reordered", "reordered"),
            ("aborted_visible", "aborted but visible"),
        )
    )
    errors = sum(error["count"] for error in result["app_errors"])
    yield _text(16 + pill + 16, 33, f"{counts} · {errors:,} application errors", "big")
    stall = result["max_stall_ms"]
    yield _text(
        16,
        62,
        f"{result['acked']:,} messages acknowledged, {result['received']:,} received, "
        f"{result['run']['acked_per_second']:,.0f} per second; longest stall: "
        f"producers {_duration(stall['producer'])}, consumers {_duration(stall['consumer'])}"
        + (f"; {result['reasons'][0]}" if result["reasons"] else ""),
        "soft",
    )


def _duration(ms: float) -> str:
    if ms < 1000:
        return f"{ms:.0f} ms"
    if ms < 120_000:
        return f"{ms / 1000:.1f} s"
    return f"{ms / 60_000:.1f} min"


def _phase_labels(axis: Axis, phases: list[Span], top: float) -> tuple[int, list[str]]:
    """Return the number of label rows, and the labels: in the phase's band if the name fits, else in a row below."""
    taken: list[float] = [0.0]
    out = []
    for span in phases:
        x, width = axis.x(span.start), axis.x(span.end) - axis.x(span.start)
        need = _width(span.name) + 8
        row = 0
        if width < need or x < taken[0]:
            row = next((n for n in range(1, len(taken)) if taken[n] <= x), len(taken))
            if row == len(taken):
                taken.append(0.0)
        at = min(x, WIDTH - RIGHT - need) if row else x
        taken[row] = at + need
        y = top + row * LABEL_ROW + 13
        if row:
            out.append(_line(x, top, x, y - 3, "edge"))
        out.append(_text(at + 4, y, span.name, "strong"))
    return (len(taken) if phases else 0), out


def _bands(axis: Axis, phases: list[Span], top: float, bottom: float) -> Iterable[str]:
    for number, span in enumerate(phases):
        x = axis.x(span.start)
        title = f"{span.name}: {_duration(span.end - span.start)}"
        yield _rect(x, top, axis.x(span.end) - x, bottom - top, ("band", "band2")[number % 2], title)
        yield _line(x, top, x, bottom, "edge")


def _rows(restarts: list[_Bar], axis: Axis) -> list[list[_Bar]]:
    """Distribute bars and their names over as few rows as possible."""
    rows: list[list[_Bar]] = []
    ends: list[float] = []
    for restart in sorted(restarts, key=lambda restart: restart.start):
        x = axis.x(restart.start)
        end = max(axis.x(restart.end), x + 3) + _width(restart.name) + 12
        row = next((n for n, taken in enumerate(ends) if taken <= x), len(rows))
        if row == len(rows):
            rows.append([])
            ends.append(0)
        rows[row].append(restart)
        ends[row] = end
    return rows


def _restarts(axis: Axis, rows: list[list[_Bar]], top: float, bottom: float) -> Iterable[str]:
    if rows:
        yield _text(LEFT - 8, top + 16, "restarts", "soft", "end")
    for number, row in enumerate(rows):
        y = top + 4 + number * RESTART_ROW
        for restart in row:
            x = axis.x(restart.start)
            width = max(3.0, axis.x(restart.end) - x)
            yield _rect(x, y + 4, width, bottom - y - 4, "restartline")
            yield _rect(x, y + 4, width, 9, "restart", restart.title)
            beside = x + width + 4
            if beside + _width(restart.name) > WIDTH - 4:
                yield _text(x - 4, y + 13, restart.name, "restarttext", "end")
            else:
                yield _text(beside, y + 13, restart.name, "restarttext")


def _path(axis: Axis, timeline: Timeline, values: list[Any], y: Any, style: str) -> str:
    """Return a line through the middles of the buckets, interrupted where there is no value."""
    parts, pen = [], False
    for number, value in enumerate(values):
        if value is None or number * timeline.bucket_ms > timeline.end_ms:
            pen = False
            continue
        at = axis.x(min((number + 0.5) * timeline.bucket_ms, timeline.end_ms))
        parts.append(f"{'L' if pen else 'M'}{at:.1f} {y(value):.1f}")
        pen = True
    return f'<path d="{"".join(parts)}" class="{style}"/>'


def _nice(value: float) -> float:
    """Round up to 1, 2 or 5 times a power of ten."""
    power = 10 ** math.floor(math.log10(max(value, 1e-9)))
    return next(step * power for step in (1, 2, 5, 10) if step * power >= value * 0.999)


def _legend(y: float, title: str, lines: dict[str, str]) -> str:
    """Return a plot's title and the names of its lines, each in its colour."""
    parts = "".join(
        f'<tspan dx="12" style="fill:var(--{color})">\u25ac\u00a0{escape(name)}</tspan>'
        for name, color in lines.items()
    )
    return f'<text x="{LEFT}" y="{y:.1f}" class="strong">{escape(title)}{parts}</text>'


def _throughput(axis: Axis, timeline: Timeline, top: float) -> Iterable[str]:
    # cut off bursts after an outage, so that the usual level stays readable
    ordered = sorted(timeline.acked)
    usual = ordered[len(ordered) // 2] or 1
    peak = max(*timeline.acked, *timeline.received, 1)
    step = _nice(min(peak, usual * 3) / 4)
    high = step * math.ceil(min(peak, usual * 3) / step)
    floor = top + THROUGHPUT_HEIGHT

    def y(value: float) -> float:
        return floor - THROUGHPUT_HEIGHT * min(value, high) / high

    yield _legend(top - 6, "messages per second", {"acknowledged": "acked", "received": "received"})
    if peak > high:
        yield _text(WIDTH - RIGHT, top - 5, f"bursts up to {peak:,.0f} cut off", "soft", "end")
    value = 0.0
    while value <= high + step / 2:
        yield _line(LEFT, y(value), WIDTH - RIGHT, y(value), "grid")
        yield _text(LEFT - 8, y(value) + 4, f"{value:,.0f}", "soft", "end")
        value += step
    area = _path(axis, timeline, timeline.acked, y, "ackedfill")
    last = axis.x(timeline.end_ms)
    first = axis.x(timeline.bucket_ms / 2)
    yield area.replace('" class', f'L{last:.1f} {floor}L{first:.1f} {floor}Z" class')
    yield _path(axis, timeline, timeline.acked, y, "acked")
    yield _path(axis, timeline, timeline.received, y, "received")


def _latency(axis: Axis, timeline: Timeline, top: float) -> Iterable[str]:
    values = [value for value in timeline.latency_max if value]
    low, high = 1, 4
    if values:
        high = max(3, math.ceil(math.log10(max(values))))
        low = min(1, max(0, math.floor(math.log10(max(1, min(v for v in timeline.latency_p50 if v is not None))))))
    floor = top + LATENCY_HEIGHT

    def y(value: float) -> float:
        scaled = (math.log10(max(value, 10**low)) - low) / (high - low)
        return floor - LATENCY_HEIGHT * min(1.0, scaled)

    yield _legend(top - 6, "from sent to received, by the time of sending", {"median": "acked", "slowest": "max"})
    for exponent in range(low, high + 1):
        yield _line(LEFT, y(10**exponent), WIDTH - RIGHT, y(10**exponent), "grid")
        label = f"{10**exponent} ms" if exponent < 3 else f"{10 ** (exponent - 3):,} s"
        yield _text(LEFT - 8, y(10**exponent) + 4, label, "soft", "end")
    yield _path(axis, timeline, timeline.latency_max, y, "max")
    yield _path(axis, timeline, timeline.latency_p50, y, "p50")


def _events(axis: Axis, events: list[Mark], t0: float, top: float, bottom: float) -> Iterable[str]:
    for number, mark in enumerate(events):
        x = axis.x(to_ms(mark.t, t0))
        y = top + 14 + (number % 3) * 14
        yield f"<g><title>{escape(mark.name)}</title>{_line(x, top, x, bottom, 'event')}</g>"
        anchor = "end" if x + _width(mark.name) > WIDTH - RIGHT else "start"
        yield _text(x + (-4 if anchor == "end" else 4), y, mark.name, "soft", anchor)


def _stalls(axis: Axis, stalls: list[dict[str, Any]], t0: float, top: float) -> Iterable[str]:
    for row, side in enumerate(("producer", "consumer")):
        y = top + row * STALL_ROW
        yield _text(LEFT - 8, y + 12, f"{side} stalls", "soft", "end")
        yield _line(LEFT, y + 16, WIDTH - RIGHT, y + 16, "grid")
        shown = [stall for stall in stalls if stall["side"] == side and stall["ms"] >= STALL_SHOWN_MS]
        if not shown:
            yield _text(LEFT + 6, y + 12, f"none of {_duration(STALL_SHOWN_MS)} or more", "soft")
        groups = _merged(shown, t0)
        for group in groups:
            x = axis.x(group.start)
            yield _rect(x, y + 4, max(2.0, axis.x(group.end) - x), 9, "stall", group.title)
        taken: list[tuple[float, float]] = []
        # the longest first: it keeps its label where two labels collide
        for group in sorted(groups, key=lambda group: -group.worst_ms):
            label = _duration(group.worst_ms)
            right = max(axis.x(group.end), axis.x(group.start) + 2) + 4
            span = (right, right + _width(label))
            if span[1] > WIDTH:
                span = (axis.x(group.start) - 4 - _width(label), axis.x(group.start) - 4)
            if all(span[1] < left or span[0] > right for left, right in taken):
                taken.append(span)
                yield _text(span[0], y + 13, label, "stalltext")


@dataclass
class _StallGroup:
    """Stalls of one side that overlap in time: one bar, labelled with the longest."""

    start: int
    end: int
    worst_ms: int
    title: str


def _merged(stalls: list[dict[str, Any]], t0: float) -> list[_StallGroup]:
    groups: list[_StallGroup] = []
    for stall in sorted(stalls, key=lambda stall: stall["t"]):
        start = to_ms(stall["t"], t0)
        partitions = ", ".join(str(number) for number in stall["partitions"])
        line = f"{_duration(stall['ms'])}: {stall['topic']} partitions {partitions} ({stall['phase']})"
        if groups and start <= groups[-1].end:
            group = groups[-1]
            group.end = max(group.end, start + stall["ms"])
            group.worst_ms = max(group.worst_ms, stall["ms"])
            group.title += "\n" + line
        else:
            groups.append(_StallGroup(start, start + stall["ms"], stall["ms"], line))
    return groups


def _time_axis(axis: Axis, t0: float, top: float, bottom: float) -> Iterable[str]:
    steps = (1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 14400, 43200, 86400)
    seconds = axis.end_ms / 1000
    step = next((s for s in steps if seconds / s <= 12), steps[-1])
    pattern = "%H:%M:%S" if step < 60 else "%H:%M"
    moment = math.ceil(t0 / step) * step
    yield _line(LEFT, bottom, WIDTH - RIGHT, bottom, "grid")
    while moment <= t0 + seconds:
        x = axis.x(to_ms(moment, t0))
        yield _line(x, top, x, bottom + 4, "grid")
        yield _text(x, bottom + 18, time.strftime(pattern, time.gmtime(moment)), "soft", "middle")
        moment += step
    day = time.strftime("%Y-%m-%d", time.gmtime(t0))
    yield _text(LEFT, bottom + 34, f"{day}, UTC; the run took {_duration(axis.end_ms)}", "soft")
