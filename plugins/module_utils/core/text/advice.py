# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The text of findings: what is wrong, and what to do."""

from __future__ import annotations

from typing import Mapping, NamedTuple, Sequence

from ansible_collections.quorumshift.kafka.plugins.module_utils.core.text.printable import escape_invisible


class Finding(NamedTuple):
    """What is wrong (`seen`) and what to do (`do`), both without a final full stop. `warns`: a warning although its
    check blocks."""

    seen: str
    do: str
    warns: bool = False


def sentences(seen: str, do: str) -> str:
    """Return two sentences without the last full stop: `seen`, and `do` with a capital."""
    return f"{seen}. {do[:1].upper()}{do[1:]}"


def format_names(names: Sequence[str], most: int = 5) -> str:
    """Return names as a list, limited to `most`, as they may be printed."""
    return ", ".join(escape_invisible(f"{name}") for name in names[:most]) + (
        f" and {len(names) - most} more" if len(names) > most else ""
    )


def quote_last_error(node: Mapping) -> str:
    """Return the newest error in a node's own log as the end of a sentence, '' if there is none."""
    return f"; the last error in its log: {node['last_error'].rstrip('.')}" if node.get("last_error") else ""
