# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Documentation of the options that archive_action.ArchiveAction takes."""

from __future__ import annotations


class ModuleDocFragment:
    DOCUMENTATION = r"""
options:
  fetch_to:
    description:
      - A directory of the control node. The archive is fetched there and removed from its host; C(archive) of the
        result is where it is. C(left) says on which host a directory may be left, if its removal was not confirmed.
        Handled by the action plugin.
    type: path
  begun:
    description:
      - The result of a task with C(async) and C(poll=0) that began the archive. Handled by the action plugin.
    type: dict
  needed:
    description:
      - Whether the task fails without the archive, also if the host is unreachable. Otherwise RV(ignore:msg) of its
        result says why. Handled by the action plugin.
    type: bool
    default: true
"""
