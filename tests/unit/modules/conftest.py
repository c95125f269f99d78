# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The harness of action plugins, for results that an action adds to."""

from __future__ import annotations

from tests.unit.action.harness import harness

__all__ = ["harness"]
