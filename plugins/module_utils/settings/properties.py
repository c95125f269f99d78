# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Parse Java properties files as `java.util.Properties.load` does, and edit them key by key.

A file is bytes, since Kafka and ZooKeeper read it as Latin-1 whatever its editor wrote. Only the bytes of changed
values are replaced. Source of the grammar: java.util.Properties of Java 17 (LineReader, load0, loadConvert), which
Kafka's `Utils.loadProps` and ZooKeeper's `QuorumPeerConfig.parse` use.
"""

from __future__ import annotations

import re
from typing import Callable, Iterator, Mapping, NamedTuple

_END = rb"(?:\r\n|\r|\n)"
_JOINED = rb"\\" + _END + rb"[ \t\f]*"  # a line that the next one continues
# What comes before an entry. A joined line without content is blank too, unless the file ends there: that is an entry
# with an empty key. Java takes \r\n for no end of the file, since it has not read the \n yet.
_BLANK_LINES = re.compile(rb"(?:[ \t\f]*" + _END + rb")+")
_LEAD = re.compile(rb"[ \t\f]*(?:\\(?:\r\n|[\r\n](?=[\s\S]))[ \t\f]*)*")
_COMMENT = re.compile(rb"[#!][^\r\n]*" + _END + rb"?")
_BLANK = rb"(?:" + _JOINED + rb"|[ \t\f])*"
_ENTRY = re.compile(
    rb"(?P<key>(?:" + _JOINED + rb"|\\[^\r\n]|[^\\\r\n=: \t\f])*)"
    rb"(?P<sign>" + _BLANK + rb"(?P<equals>[=:])?" + _BLANK + rb")"
    rb"(?P<value>(?:" + _JOINED + rb"|\\[^\r\n]|[^\\\r\n])*\\?)(?P<end>" + _END + rb"?)"
)
_TOKEN = re.compile(rb"\\(?:" + _END + rb"[ \t\f]*|$)|(\\[^\r\n]|[^\\]+)", re.DOTALL)
_ESCAPE = re.compile(r"\\(u[0-9a-fA-F]{4}|.)", re.DOTALL)
_ESCAPES = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}
_LETTERS = {value: letter for letter, value in _ESCAPES.items()}
_LAST_END = re.compile(rb"\r\n|\r|\n")


class PropertiesError(ValueError):
    """A line that `java.util.Properties` would reject."""


class _Piece(NamedTuple):
    """A comment, or an entry with its key and value (`key` is None for comments and blanks). It is
    data[begin:end], and its value data[value_begin:value_end]; `sign_end`: where its `=` or `:` ends, -1 without."""

    begin: int
    end: int
    key: str | None = None
    value: str = ""
    key_end: int = 0
    value_begin: int = 0
    value_end: int = 0
    sign_end: int = -1

    def place(self, value: str) -> tuple[int, bytes]:
        """Return where a new value begins in the data, and what must come before it."""
        if self.sign_end < 0:
            return self.key_end, b"="
        # A continuation right before an empty value would join the next line: Java takes its \r and the \n for one end.
        return (self.value_begin if value else self.sign_end), b""


def parse(data: bytes, charset: str = "latin-1", path: str = "") -> dict[str, str]:
    """Return the properties in a file; the last value of a repeated key counts, as in Java.

    `charset`: of a reader from which Java loads them; `path`: for messages. Raises PropertiesError.
    """
    try:
        return {piece.key: piece.value for piece in _pieces(data, charset) if piece.key is not None}
    except PropertiesError as error:
        raise PropertiesError(f"{path}: {error}" if path else str(error)) from None


def edit(data: bytes, changes: Mapping[str, str | None], comment: str = "") -> bytes:
    """Return `data` with each key of `changes` set to its value, or removed if the value is None.

    An existing key keeps its place (the last of several, which Java uses), its spelling and its separator. New keys are
    appended in the order of `changes`, under `comment` if it is given. All other bytes stay.
    """
    entries = [piece for piece in _pieces(data) if piece.key is not None]
    current = {piece.key: piece for piece in entries}
    replaced = [(piece.begin, piece.end, b"") for piece in entries if changes.get(piece.key or "", "") is None]
    added: list[bytes] = []
    for key, value in changes.items():
        if value is None:
            continue
        if key not in current:
            added.append(_escape(key, " =:#!") + b"=" + _escape(value))
        elif current[key].value != value:
            entry = current[key]
            begin, sign = entry.place(value)
            replaced.append((begin, entry.value_end, sign + _escape(value)))
    kept, done = [], 0
    for begin, end, new in sorted(replaced):
        kept += [data[done:begin], new]
        done = end
    text = b"".join([*kept, data[done:]])
    return _append(text, [*([b"# " + comment.encode()] if comment else []), *added]) if added else text


def rewrite(data: bytes, value: Callable[[str, str], str], comment: Callable[[str], str]) -> str:
    """Return a file as text to show, with `value(key, value)` for the value of every entry, repeated keys as well, and
    `comment(line)` for every comment."""
    shown, done = [], 0
    for piece in _pieces(data):
        shown.append(decode(data[done : piece.begin]))
        done = piece.end
        if piece.key is None:
            body = data[piece.begin : piece.end].rstrip(b"\r\n")
            shown += [comment(decode(body)), decode(data[piece.begin + len(body) : piece.end])]
            continue
        after = value(piece.key, piece.value)
        if after == piece.value:
            shown.append(decode(data[piece.begin : piece.end]))
        else:
            begin, sign = piece.place(after)
            shown += [decode(data[piece.begin : begin]), (sign + _escape(after)).decode()]
            shown.append(decode(data[piece.value_end : piece.end]))
    return "".join([*shown, decode(data[done:])])


def _pieces(data: bytes, charset: str = "latin-1") -> Iterator[_Piece]:
    at = 0
    while True:
        blank = _BLANK_LINES.match(data, at)
        begin = blank.end() if blank else at
        lead = _LEAD.match(data, begin)
        at = lead.end() if lead else begin
        if at == len(data):
            return
        if data[at : at + 1] in b"\r\n":
            continue
        comment = _COMMENT.match(data, at)
        if comment:
            yield _Piece(at, comment.end())
            at = comment.end()
            continue
        entry = _ENTRY.match(data, at)
        if entry is None:  # pragma: no cover, the expression matches the empty string
            raise PropertiesError(f"line {_line_number(data, at)}: no entry")
        line = _line_number(data, at) if b"\\u" in entry[0] or charset != "latin-1" else 0
        yield _Piece(
            begin,
            entry.end(),
            _unescape(entry["key"], line, charset),
            _unescape(entry["value"], line, charset),
            entry.end("key"),
            entry.start("value"),
            _value_end(entry),
            entry.end("equals"),
        )
        at = entry.end()


def _value_end(entry: re.Match) -> int:
    """Return where the value ends: before the end of its last line, also where that line would go on."""
    ends = _LAST_END.findall(entry["value"])
    if ends and entry["value"].endswith(b"\\" + ends[-1]):
        return entry.end("value") - len(ends[-1])
    return entry.end("value")


def _append(data: bytes, lines: list[bytes]) -> bytes:
    """Return a file with lines at its end, which has the end of line of its last line."""
    ends = _LAST_END.findall(data)
    end = ends[-1] if ends else b"\n"
    before = parse(data)
    new = b"".join(line + end for line in lines)
    # A blank line sets them off, and ends an entry that goes on at the end of the file.
    blank = b"" if not data.strip(b"\r\n \t\f") else end
    if data and not data.endswith((b"\r", b"\n")):
        blank += end
    elif data.endswith((b"\r\r", b"\n\n", b"\r\n\r\n")):
        blank = b""
    text = data + blank + new
    if {**before, **parse(new)} != parse(text):  # Java reads a file that ends with a lone backslash as an empty key
        return data + end + b"=" + end + blank + new
    return text


def _line_number(data: bytes, at: int) -> int:
    return len(_LAST_END.findall(data[:at])) + 1


def _unescape(raw: bytes, line: int, charset: str) -> str:
    joined = b"".join(match[1] or b"" for match in _TOKEN.finditer(raw)) if b"\\" in raw else raw
    try:
        text = joined.decode(charset)
    except UnicodeDecodeError:
        raise PropertiesError(f"line {line}: not {charset}") from None
    if "\\" not in text:
        return text

    def replaced(match: re.Match) -> str:
        escaped: str = match[1]
        if escaped == "u":
            raise PropertiesError(f"line {line}: malformed \\uxxxx escape")
        return chr(int(escaped[1:], 16)) if len(escaped) == 5 else _ESCAPES.get(escaped, escaped)

    # Java's characters are UTF-16: two escapes are one character beyond U+FFFF.
    utf16 = _ESCAPE.sub(replaced, text).encode("utf-16-le", "surrogatepass")
    return utf16.decode("utf-16-le", "surrogatepass")


def _escape(text: str, special: str = "") -> bytes:
    """Return a key or value in ASCII, so that it does not depend on a charset."""
    escaped = []
    for number, character in enumerate(text):
        if character in _LETTERS:
            escaped.append("\\" + _LETTERS[character])
        elif character == "\\" or character in special or (not number and character in " "):
            escaped.append("\\" + character)
        elif " " <= character <= "~":
            escaped.append(character)
        else:
            units = character.encode("utf-16-be", "surrogatepass").hex()
            escaped += [f"\\u{units[at : at + 4].upper()}" for at in range(0, len(units), 4)]
    return "".join(escaped).encode()


def decode(data: bytes) -> str:
    """Return bytes of a file as text to show: UTF-8 where they are."""
    try:
        return data.decode()
    except UnicodeDecodeError:
        return data.decode("latin-1")
