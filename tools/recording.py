# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Recordings of a terminal: as an asciicast, and as an SVG picture that plays by itself, whose text can be selected.

    .venv/bin/python -m tools.recording RUN.cast RUN.svg

A picture has each line of the terminal for the time in which it was seen. It needs no script. Who asked for less motion
sees the end.
"""

from __future__ import annotations

import html
import json
import os
import sys
import time
import zlib
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from tools import terminal

SHOWN_S = 20.0  # a longer run is shown faster
END_S = 5.0  # how long the end stays before it begins again
_WIDTH, _HEIGHT, _MARGIN, _BAR = 8.43, 19, 14, 30  # of a character, a line, the margin, the title


class Recording(NamedTuple):
    """What a program wrote to a terminal. `events`: (seconds since the begin, text)."""

    title: str
    columns: int
    events: Sequence[tuple[float, str]]


class Line(NamedTuple):
    """A line of the terminal, in a row from `begin` to `end`, in seconds; to the end where that is None."""

    row: int
    text: str
    begin: float
    end: float | None


def record(
    title: str,
    command: Sequence[str],
    environment: Mapping[str, str],
    columns: int,
    cwd: str | None = None,
    seen: Callable[[terminal.Terminal, int], None] = lambda _terminal, _pid: None,
) -> tuple[int, Recording]:
    """Run a command in a terminal; return its exit code and the recording. `seen`: as in terminal.run."""
    began, events = time.monotonic(), [(0.0, f"$ {title}\r\n")]
    written = 0

    def note(shown: terminal.Terminal, pid: int) -> None:
        nonlocal written
        events.append((round(time.monotonic() - began, 2), shown.written[written:]))
        written = len(shown.written)
        seen(shown, pid)

    code, _shown, _written = terminal.run(command, environment, columns, limit_s=1800, seen=note, cwd=cwd)
    return code, Recording(title, columns, events)


def write_cast(recording: Recording, path: Path) -> None:
    """Write an asciicast (version 2)."""
    rows = len(_screen(recording).lines)
    header = {"version": 2, "width": recording.columns, "height": min(rows, 40), "title": recording.title}
    lines = [json.dumps(header), *(json.dumps([at, "o", text], ensure_ascii=False) for at, text in recording.events)]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")


def read_cast(path: Path) -> Recording:
    """Read an asciicast."""
    first, *lines = path.read_text(encoding="utf-8").splitlines()
    header = json.loads(first)
    events = [(at, text) for at, kind, text in map(json.loads, lines) if kind == "o"]
    return Recording(header.get("title", ""), header["width"], events)


def _screen(recording: Recording) -> terminal.Terminal:
    shown = terminal.Terminal(recording.columns)
    for _at, text in recording.events:
        shown.feed(text)
    return shown


def lines_of(recording: Recording) -> list[Line]:
    """Return every line that was to be seen, with its time."""
    shown = terminal.Terminal(recording.columns)
    now: dict[int, tuple[str, float]] = {}
    found: list[Line] = []
    for at, text in recording.events:
        shown.feed(text)
        rows = {row: line.rstrip() for row, line in enumerate(shown.lines) if line.strip()}
        for row in sorted({*now, *rows}):
            before = now.get(row)
            if before and before[0] == rows.get(row):
                continue
            if before:
                del now[row]
                if at > before[1]:
                    found.append(Line(row, before[0], before[1], at))
            if row in rows:
                now[row] = (rows[row], at)
    return sorted([*found, *(Line(row, text, begin, None) for row, (text, begin) in now.items())])


def svg(recording: Recording) -> str:
    """Return the picture."""
    lines = lines_of(recording)
    took = recording.events[-1][0]
    speed = max(1.0, took / SHOWN_S)
    total = took / speed + END_S
    rows = max((line.row for line in lines), default=0) + 1
    width = round(recording.columns * _WIDTH + 2 * _MARGIN)
    height = _BAR + rows * _HEIGHT + _MARGIN
    clock = f"clock-{zlib.crc32(recording.title.encode()):08x}-{len(lines)}"  # a page may have several pictures
    how = f"{took:.0f} s" + (f", shown {speed:.1f} times as fast" if speed > 1 else "")
    shown = [
        f'<svg class="terminal" xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" '
        f'height="{height}" role="img"><title>{html.escape(recording.title)}</title>',
        "<style>.terminal text{font:14px/1.3 ui-monospace,SFMono-Regular,Menlo,Consolas,'DejaVu Sans Mono',monospace;"
        "fill:#d8dee9;white-space:pre}.terminal .t{fill:#8fa1b3;font-size:12px}.terminal .c{fill:#a3d9a5}"
        ".terminal .e{fill:#ffb38a}.terminal .s{display:none}"
        "@media(prefers-reduced-motion:reduce){.terminal .m{display:none}.terminal .s{display:inline}}</style>",
        f'<rect width="{width}" height="{height}" rx="8" fill="#1b2129"/>',
        f'<text class="t" x="{_MARGIN}" y="20">{html.escape(how)}</text>',
        # The clock of the picture: all times of its lines are from its begin
        f'<rect width="0" height="0"><animate id="{clock}" attributeName="x" from="0" to="0" begin="0s;{clock}.end" '
        f'dur="{total:.1f}s"/></rect>',
        '<g class="m">',
    ]
    for line in lines:
        begin, end = line.begin / speed, total - 0.05 if line.end is None else line.end / speed
        times = f'begin="{clock}.begin+{begin:.2f}s" dur="{max(0.02, end - begin):.2f}s"'
        shown.append(_text(line, f'visibility="hidden"><set attributeName="visibility" to="visible" {times}/>'))
    shown.append('</g><g class="s">')
    shown += [_text(line, ">") for line in lines if line.end is None]
    return "\n".join([*shown, "</g></svg>", ""])


def _text(line: Line, attributes: str) -> str:
    kind = ' class="c"' if line.text.startswith("$ ") else ' class="e"' if "(QS-" in line.text else ""
    y = _BAR + (line.row + 1) * _HEIGHT - 5
    space = "" if attributes.startswith(">") else " "
    return f'<text{kind} x="{_MARGIN}" y="{y}"{space}{attributes}{html.escape(line.text)}</text>'


def main(arguments: Sequence[str]) -> int:
    """Make a picture of an asciicast."""
    if len(arguments) != 2:
        print("usage: python -m tools.recording RUN.cast RUN.svg", file=sys.stderr)
        return 2
    cast, picture = map(Path, arguments)
    picture.write_text(svg(read_cast(cast)), encoding="utf-8")
    print(f"{picture}: {os.path.getsize(picture) // 1024} KiB")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
