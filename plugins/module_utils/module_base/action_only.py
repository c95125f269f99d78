# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Modules whose work the action plugin of the same name does."""

from __future__ import annotations


def explain(name: str) -> str:
    """Return why a module, or one of its states, fails where its action plugin did not run."""
    return f"{name} works by its action plugin only: call it from a playbook, not from a module. (QS-RUN-014)"
