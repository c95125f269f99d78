# Copyright: (c) 2026, Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How what was seen and what to do about it read together, wherever they are shown."""

from __future__ import annotations


def sentences(seen: str, do: str) -> str:
    """Return two sentences, without the last full stop: `seen` as it is, `do` with a capital."""
    return f"{seen}. {do[:1].upper()}{do[1:]}"
