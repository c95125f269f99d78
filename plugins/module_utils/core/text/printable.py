# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Names from a cluster as they may be printed: principals, groups and client ids can hold any character.

A control sequence in a name could move the cursor and overwrite what was printed, such as a verdict. So every text
passes here before it reaches a terminal, a log, a report or a table.
"""

from __future__ import annotations

import re
from typing import Any

# Control characters, and format characters that change how other text is shown (bidirectional overrides, zero-width)
_RANGES = "\x00-\x09\x0b-\x1f\x7f-\x9f\u00ad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff"
_INVISIBLE, _NEWLINES_TOO = re.compile(f"[{_RANGES}]"), re.compile(f"[{_RANGES}\n]")


def escape_invisible(text: str, newlines: bool = False) -> str:
    """Return a text with codes in place of invisible characters. `newlines`: whether they stay as they are."""
    return (_INVISIBLE if newlines else _NEWLINES_TOO).sub(lambda match: f"\\u{ord(match.group()):04x}", text)


def escape_all(value: Any) -> Any:
    """Return a JSON-able value in which all texts are visible, those of its keys too."""
    if isinstance(value, str):
        return escape_invisible(value)
    if isinstance(value, dict):
        return {escape_all(name): escape_all(item) for name, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [escape_all(item) for item in value]
    return value
