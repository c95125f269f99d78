# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""support_read: read what a support bundle has of a node. A failure is a reason that the bundle lists."""

from __future__ import annotations

from ansible_collections.quorumshift.kafka.plugins.plugin_utils.base import QuorumshiftAction


class ActionModule(QuorumshiftAction):
    """Reads a node's texts, sealed under the run's key."""

    def act(self, args):
        result = self.module(self.fill(args))
        if result.get("failed"):
            return {"changed": False, "unread": result.get("msg") or "the module failed without a message"}
        return result
