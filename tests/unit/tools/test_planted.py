# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The page of planted divergences: what it must hold, and how it is written from results."""

from __future__ import annotations

import re

from tools import planted

ROW = {
    "group": "in ZooKeeper",
    "gate": "after_copy",
    "planted": "a topic is missing",
    "expected": "differ",
    "found": "differ",
    "rule": "topic (exists): a|b",
    "status": "found",
}
CHANGES = {
    "comparisons": 60,
    "pass": 58,
    "incomplete": 2,
    "differ": 0,
    "error": 0,
    "changes": {"topics created": "7", "elections refused": "2"},
}


def counts(text):
    """Return the figures of the last run."""
    return {name: int(count) for name, count in re.findall(r"^\| ([\w ]+) \| (\d+) \|$", text, flags=re.MULTILINE)}


def test_the_page_shows_at_least_60_divergences_and_none_missed():
    text = planted.PAGE.read_text(encoding="utf-8")
    of_page = counts(text)
    assert of_page["found"] >= 60 and of_page["missed"] == 0
    assert len(re.findall(r"^\| \d+ \| ", text, flags=re.MULTILINE)) == of_page["planted"]


def test_the_page_shows_comparisons_under_changes_without_a_false_alarm():
    of_page = counts(planted.PAGE.read_text(encoding="utf-8"))
    assert of_page["comparisons under changes"] >= 10 and of_page["false alarms"] == 0


def test_rows_are_listed_by_status_and_runs_are_added_up():
    results = {"rows": [ROW, {**ROW, "status": "missed", "planted": "a secret"}], "changes": [CHANGES] * 2}
    text = planted.region(results)
    assert counts(text) == {
        "planted": 2,
        "found": 1,
        "missed": 1,
        "comparisons under changes": 120,
        "false alarms": 0,
        "incomplete": 4,
        "changes meanwhile": 14,
    }
    assert "| 1 | in ZooKeeper | after_copy | a topic is missing | differ | differ | topic (exists): a\\|b |" in text
    assert text.index("## Found") < text.index("## Missed") < text.index("a secret")
