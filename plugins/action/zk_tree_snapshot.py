# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""zk_tree_snapshot: fetch the archive of a ZooKeeper server's files, and remove it from its host."""

from __future__ import annotations

from ansible_collections.quorumshift.kafka.plugins.plugin_utils.archive_action import ArchiveAction


class ActionModule(ArchiveAction):
    """Has a ZooKeeper server's host archive its files; see ArchiveAction."""
