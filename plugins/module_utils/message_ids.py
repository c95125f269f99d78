# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The ids of messages. Pure.

A text is written with its id at its end, as in `… (QS-RUN-001)`. Where texts are put together, ids are in the middle:
`move_to_end` moves them to the end before the operator reads it. docs/messages has the page of each id.

Parentheses, since a message may end with a command: bash refuses a line in which such a mark follows a command, and
runs no part of it. Square brackets would be a file pattern.
"""

from __future__ import annotations

import re
from typing import List

NO_ID = "QS-HOST-001"
"""The id of a message that this collection did not write: an error of a library, of Ansible or of the system."""
_ID = r"QS-[A-Z]+-\d{3}"
_MARK = re.compile(rf"[ \t]*\(({_ID}(?: {_ID})*)\)")


def find_ids(text: str | None) -> List[str]:
    """Return the ids in a text, each once, in their order."""
    return list(dict.fromkeys(name for mark in _MARK.findall(text or "") for name in mark.split()))


def strip_ids(text: str) -> str:
    """Return a text without its ids."""
    return _MARK.sub("", text)


def move_to_end(text: str, otherwise: str = "") -> str:
    """Return a text with all of its ids at its end, each once; with the id `otherwise` where it has none."""
    names = find_ids(text) or [name for name in [otherwise] if name and text]
    return f"{strip_ids(text).rstrip()} ({' '.join(names)})" if names else text


def drop_full_stop(text: str) -> str:
    """Return a text as the begin of a sentence: without its final full stop, its ids at the end."""
    names = find_ids(text)
    return strip_ids(text).strip().rstrip(".") + (f" ({' '.join(names)})" if names else "")
