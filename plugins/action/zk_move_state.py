# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""zk_move_state: decide how the move goes on, and say and journal which hosts it leaves out."""

from __future__ import annotations

from ansible_collections.quorumshift.kafka.plugins.plugin_utils.base import QuorumshiftAction


class ActionModule(QuorumshiftAction):
    """Decides. Which hosts are dead comes from the role's variable."""

    def act(self, args):
        result = super().act(args)
        if not result.get("failed"):
            for note in result["notes"]:
                self.say(note)
        return result

    def done(self, args, result):
        if args["dead"] and self.session.get("run"):
            self.artifacts().note(
                "event", "zk_move without dead hosts", hosts=sorted(args["dead"]), standing=result["standing"]
            )
