# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Durations as operators give them."""

from __future__ import annotations

import pytest
from ansible_collections.quorumshift.kafka.plugins.module_utils.core.text import durations


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("24h", 86400), ("90m", 5400), ("30s", 30), ("2d", 172800), ("0", 0), (0, 0), (" 1.5 h ", 5400)],
)
def test_durations(text, seconds):
    assert durations.parse_duration(text) == seconds


@pytest.mark.parametrize("text", ["", "h", "1w", "-5s", "1h30m", "a day", None])
def test_invalid_duration(text):
    with pytest.raises(ValueError, match="is not a duration"):
        durations.parse_duration(text)


@pytest.mark.parametrize("text", ["12", 12, "1.5", " 90 "])
def test_a_duration_needs_its_unit(text):
    with pytest.raises(ValueError, match=f"has no unit. For {str(text).strip()} hours use {str(text).strip()}h"):
        durations.parse_duration(text)
