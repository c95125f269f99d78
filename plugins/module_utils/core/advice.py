# Copyright: (c) 2026, Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How what was seen and what to do about it are put, wherever they are shown."""

from __future__ import annotations

from typing import Sequence


def sentences(seen: str, do: str) -> str:
    """Return two sentences, without the last full stop: `seen` as it is, `do` with a capital."""
    return f"{seen}. {do[:1].upper()}{do[1:]}"


def shown(names: Sequence[str], most: int = 5) -> str:
    """Return names as a list for people, no longer than a line."""
    return ", ".join(names[:most]) + (f" and {len(names) - most} more" if len(names) > most else "")
