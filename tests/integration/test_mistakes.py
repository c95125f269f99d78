# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Each mistake of mistakes.py is answered with its name and what to set, by the exit code, and in a few lines."""

from __future__ import annotations

import pytest

from tests.integration import mistakes


@pytest.mark.parametrize("mistake", mistakes.MISTAKES, ids=lambda mistake: f"{mistake.typed} {mistake.shown}".strip())
def test_a_mistake_is_answered(mistake):
    answer = mistakes.run(mistake)
    assert mistakes.faults(mistake, answer) == [], answer.output
    page = mistakes.PAGE.read_text(encoding="utf-8")
    # What the system says of a host differs from run to run
    assert mistake.reaches or mistakes.row(mistake, answer) in page, "run: python -m tests.integration.mistakes"
