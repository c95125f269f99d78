# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""kafka_quorum: fill in the cluster and its nodes, show the quorum and what would change, and journal what did."""

from __future__ import annotations

from ansible.module_utils.parsing.convert_bool import boolean
from ansible_collections.quorumshift.kafka.plugins.module_utils.core.admin import quorum as core_quorum
from ansible_collections.quorumshift.kafka.plugins.module_utils.core.status import quorum_screen
from ansible_collections.quorumshift.kafka.plugins.plugin_utils.base import QuorumshiftAction, display


class ActionModule(QuorumshiftAction):
    """Reads and changes the quorum."""

    def act(self, args):
        state = args.get("state") or core_quorum.DESCRIBE
        result = self.module(self.fill(args))
        if not self._task.check_mode and result.get("changed"):
            voters = [[voter["id"], voter["directory_id"]] for voter in result.get("voters") or []]
            self.artifacts().note("event", "quorum changed", change=state, voters=voters)
        if result.get("failed") or not self.own.get("show", False):
            return result
        if state == core_quorum.DESCRIBE:
            for line in quorum_screen.render(result):
                display.display(line)
            return result
        applies = boolean(self.variable("quorum_apply") or False)
        given = {
            "quorum_to": self.variable("quorum_to"),
            "quorum_add": self.variable("quorum_add"),
            "quorum_remove": self.variable("quorum_remove"),
            "quorum_replace": self.variable("quorum_replace"),
            "quorum_unregister": self.variable("quorum_unregister"),
        }
        for line in quorum_screen.render_change(result, given, applies):
            self.say(line)
        return result
