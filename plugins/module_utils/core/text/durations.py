# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Durations as operators give them and as messages show them. Pure."""

from __future__ import annotations

import re

_UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86400}


def parse_duration(duration: str | float) -> float:
    """Return a duration (`24h`, `90m`, `30s`, `2d`) in seconds; only 0 needs no unit. Raises ValueError."""
    match = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([smhd]?)\s*", str(duration))
    if not match:
        raise ValueError(f"{str(duration)!r} is not a duration. Use a number with its unit, as 24h, 90m, 30s or 2d")
    number, unit = match.groups()
    if not unit and float(number):
        raise ValueError(f"{str(duration)!r} has no unit. For {number} hours use {number}h; units are s, m, h and d")
    return float(number) * _UNITS[unit or "s"]


def format_duration(seconds: float) -> str:
    """Return a duration as text, such as 1 h 5 min."""
    hours, rest = divmod(int(seconds + 0.5), 3600)
    minutes, rest = divmod(rest, 60)
    if hours:
        return f"{hours} h {minutes} min"
    return f"{minutes} min {rest} s" if minutes else f"{rest} s"
