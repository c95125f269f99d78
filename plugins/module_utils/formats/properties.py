# Copyright: (c) 2026, Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Parse Java properties files as `java.util.Properties.load` does, and edit them key by key.

Comments, order, spacing and line endings are kept; only the lines of changed keys are edited. Source of the grammar:
the class comment of java.util.Properties (Java 17), which Kafka's `Utils.loadProps` uses.
"""

from __future__ import annotations

import re
from typing import Callable, Iterator, Mapping, NamedTuple

_SEPARATORS = "=: \t\f"
_BLANKS = " \t\f"
_ESCAPES = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}


class PropertiesError(ValueError):
    """A line that `java.util.Properties` would reject."""


class _Entry(NamedTuple):
    first: int  # index of the entry's first physical line
    last: int  # index of its last physical line
    key: str
    value: str


def parse(text: str) -> dict[str, str]:
    """Return the properties in a file's text; the last value of a repeated key counts, as in Java."""
    return {entry.key: entry.value for entry in _entries(text.splitlines())}


def edit(text: str, changes: Mapping[str, str | None], comment: str = "") -> str:
    """Return `text` with each key of `changes` set to its value, or removed if the value is None.

    An existing key keeps its place (the last of several, which Java uses). New keys are appended in the order of
    `changes`, under `comment` if it is given. Text that needs no change is returned byte for byte.
    """
    newline = "\r\n" if "\r\n" in text else "\n"
    lines = text.splitlines()
    entries = list(_entries(lines))
    current = {entry.key: entry for entry in entries}
    replace: dict[int, str | None] = {}
    dropped: set = set()
    added: list[str] = []
    for key, value in changes.items():
        if value is None:
            for entry in entries:
                if entry.key == key:
                    dropped.update(range(entry.first, entry.last + 1))
        elif key not in current:
            added.append(_line(key, value))
        elif current[key].value != value:
            entry = current[key]
            replace[entry.first] = _line(key, value)
            dropped.update(range(entry.first + 1, entry.last + 1))
    if not (replace or dropped or added):
        return text
    kept = [
        replace.get(number, line) for number, line in enumerate(lines) if number in replace or number not in dropped
    ]
    if added:
        kept += ([""] if kept and kept[-1].strip() else []) + ([f"# {comment}"] if comment else []) + added
    return newline.join(kept) + newline if kept else ""


def rewritten(text: str, value: Callable[[str, str], str], comment: Callable[[str], str]) -> str:
    """Return `text` with `value(key, value)` for the value of every entry, repeated keys as well, and `comment(line)`
    for every comment. Lines that this does not change are kept byte for byte."""
    newline = "\r\n" if "\r\n" in text else "\n"
    lines = text.splitlines()
    new: list[str] = []
    number = 0
    for entry in _entries(lines):
        new += map(comment, lines[number : entry.first])
        after = value(entry.key, entry.value)
        new += lines[entry.first : entry.last + 1] if after == entry.value else [_line(entry.key, after)]
        number = entry.last + 1
    new += map(comment, lines[number:])
    return text if new == lines else newline.join(new) + newline


def _entries(lines: list[str]) -> Iterator[_Entry]:
    number = 0
    while number < len(lines):
        first, logical = number, lines[number].lstrip(_BLANKS)
        number += 1
        if not logical or logical[0] in "#!":
            continue
        while _continues(logical):
            logical = logical[:-1] + (lines[number].lstrip(_BLANKS) if number < len(lines) else "")
            number += 1
        key, value = _split(logical)
        yield _Entry(first, min(number, len(lines)) - 1, _unescape(key, first), _unescape(value, first))


def _continues(line: str) -> bool:
    return (len(line) - len(line.rstrip("\\"))) % 2 == 1


def _split(logical: str) -> tuple:
    end = 0
    while end < len(logical) and logical[end] not in _SEPARATORS:
        end += 2 if logical[end] == "\\" else 1
    rest = logical[end:].lstrip(_BLANKS)
    if rest[:1] in ("=", ":"):
        rest = rest[1:].lstrip(_BLANKS)
    return logical[:end], rest


def _unescape(text: str, line: int) -> str:
    def replaced(match: re.Match) -> str:
        escaped = match.group(1)
        if escaped[0] != "u":
            return _ESCAPES.get(escaped, escaped)
        if len(escaped) != 5:
            raise PropertiesError(f"line {line + 1}: malformed \\uxxxx escape")
        return chr(int(escaped[1:], 16))

    return re.sub(r"\\(u[0-9a-fA-F]{4}|.|$)", replaced, text, flags=re.DOTALL)


def _line(key: str, value: str) -> str:
    return f"{_escape(key, ' =:#!')}={_escape(value, '')}"


def _escape(text: str, special: str) -> str:
    escaped = text.replace("\\", "\\\\")
    for plain, letter in (("\t", "t"), ("\n", "n"), ("\r", "r"), ("\f", "f")):
        escaped = escaped.replace(plain, "\\" + letter)
    for character in special:
        escaped = escaped.replace(character, "\\" + character)
    return "\\" + escaped if not special and escaped.startswith(" ") else escaped
