# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a callback reads of a task's result, by the names that this ansible-core has.

ansible-core has the names without an underscore since 2.19, and the others up to 2.22 at least.
"""

from __future__ import annotations

from typing import Any, Mapping


def returned_by(result: Any) -> Mapping[str, Any]:
    """Return what the task returned."""
    return result.result if hasattr(result, "result") else result._result


def task_of(result: Any) -> Any:
    """Return the task."""
    return result.task if hasattr(result, "task") else result._task


def host_of(result: Any) -> Any:
    """Return the host of the inventory."""
    return result.host if hasattr(result, "host") else result._host
