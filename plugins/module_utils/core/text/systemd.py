# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Names of systemd's units, and texts in their files and in files of environment. Pure.

Sources: systemd.unit(5), systemd.syntax(7), systemd.service(5), systemd.exec(5); parse_env_file_internal of systemd.
"""

from __future__ import annotations

import re
from typing import Dict, Tuple

_SUFFIX = ".service"


def unit_name(service: str) -> str:
    """Return the name of a service's unit. `systemctl` takes a dot for no suffix: kafka-3.9 is kafka-3.9.service."""
    return service if service.endswith(_SUFFIX) else service + _SUFFIX


def drop_in(service: str, name: str) -> str:
    """Return the path of a drop-in of a service's unit."""
    return f"/etc/systemd/system/{unit_name(service)}.d/{name}"


def quote(text: str) -> str:
    """Return a text without line ends as it stands between double quotes in a unit's file, as in Environment=."""
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("%", "%%")


def argument(text: str) -> str:
    """Return a text as one argument of ExecStart= and its like."""
    return f'"{quote(text)}"'.replace("$", "$$")


def parse_environment_file(text: str) -> Dict[str, str]:
    """Return the variables in a file of EnvironmentFile=. A value goes on to the end of its line, has quotes and
    escapes that a shell's does not have, and a quoted one may have several lines."""
    found: Dict[str, str] = {}
    at = 0
    while at < len(text):
        at = _skip(text, at, _SPACES)
        if text[at : at + 1] in ("#", ";"):
            at = _COMMENT.match(text, at).end()  # type: ignore[union-attr]
            continue
        name = _KEY.match(text, at)
        if name is None:
            at = _skip(text, at, _LINE)
            continue
        value, at = _value(text, name.end())
        if _NAME.fullmatch(name[1].strip()):
            found[name[1].strip()] = value
    return found


def parse_shown_environment(text: str) -> Dict[str, str]:
    """Return the variables in the value of Environment= as `systemctl show` writes it."""
    words = (word[2] if word[1] is None else _ESCAPED.sub(r"\1", word[1]) for word in re.finditer(_SHOWN_WORD, text))
    return dict(word.partition("=")[::2] for word in words if "=" in word)


_SPACES, _LINE = re.compile(r"\s*"), re.compile(r"[^\n\r]*[\n\r]?")
_COMMENT = re.compile(r"(?:\\[\s\S]|[^\n\r\\])*")
_KEY, _NAME = re.compile(r"([^=\n\r]*)="), re.compile(r"[A-Za-z_]\w*", re.ASCII)
_BARE = re.compile(r"(?:\\[\s\S]|[^\n\r\\])*")
_SINGLE, _DOUBLE = re.compile(r"'([^']*)'?"), re.compile(r'"((?:\\[\s\S]|[^"\\])*)"?')
_BLANKS = re.compile(r"[ \t]*")
_ESCAPED = re.compile(r"\\([\"\\`$])")
_UNQUOTED = re.compile(r"\\(?:\n|([\"\\`$]))")
_KEPT = re.compile(r"(?:[ \t]*(?:\\[\s\S]|[^ \t\\]))*")  # without blanks at the end
_UNESCAPED = re.compile(r"\\(?:[\n\r]|([\s\S]))")
_SHOWN_WORD = re.compile(r'"((?:\\.|[^"\\])*)"|(\S+)')


def _value(text: str, at: int) -> Tuple[str, int]:
    """Return a value that begins here, and where its line ends."""
    parts = []
    while True:
        at = _skip(text, at, _BLANKS)
        quote_sign = text[at : at + 1]
        if quote_sign == "'":
            found = _SINGLE.match(text, at)
            parts.append(found[1])  # type: ignore[index]
        elif quote_sign == '"':
            found = _DOUBLE.match(text, at)
            parts.append(_UNQUOTED.sub(lambda escaped: escaped[1] or "", found[1]))  # type: ignore[index]
        else:  # to the end of the line, with quotes as they are
            found = _BARE.match(text, at)
            kept = _KEPT.match(found[0])[0]  # type: ignore[index]
            parts.append(_UNESCAPED.sub(lambda escaped: escaped[1] or "", kept))
            return "".join(parts), found.end()  # type: ignore[union-attr]
        at = found.end()  # type: ignore[union-attr]


def _skip(text: str, at: int, what: re.Pattern) -> int:
    """Return where something ends that may be empty."""
    return what.match(text, at).end()  # type: ignore[union-attr]
