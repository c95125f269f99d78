# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The harness for every test of an action plugin."""

from __future__ import annotations

import pytest

from tests.unit.action.harness import Harness, harness

__all__ = ["harness"]


@pytest.fixture
def fresh(harness: Harness) -> Harness:
    """Return a run that has not begun yet."""
    harness.session = {}
    return harness
