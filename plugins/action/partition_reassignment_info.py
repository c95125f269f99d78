# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""partition_reassignment_info: in a run, fill in the cluster, and show what is in flight and what a plan copies."""

from __future__ import annotations

from ansible_collections.quorumshift.kafka.plugins.module_utils.core.admin import reassign_screen
from ansible_collections.quorumshift.kafka.plugins.plugin_utils.base import QuorumshiftAction, display


class ActionModule(QuorumshiftAction):
    """Reads the reassignments. Alone, outside of a run of this collection, it fills in nothing."""

    def refusal(self):
        """A playbook of its own may be cut down by tags or limits."""
        return super().refusal() if self.session.get("run") else None

    def act(self, args):
        result = self.module(self.fill(args) if self.session.get("run") else args)
        if result.get("failed") or not self.own.get("show", False):
            return result
        lines = reassign_screen.render(result) if result["plan"] is None else reassign_screen.render_plan(result)
        for line in lines:
            display.display(line)
        return result
