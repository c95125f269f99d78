# Copyright: (c) 2026, Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""zk_partition_states: nodes and connection are filled in, what was created is told and journalled."""

from __future__ import annotations

from ansible_collections.quorumshift.kafka.plugins.plugin_utils.base import ProbeAction


class ActionModule(ProbeAction):
    """Creates partition states that ZooKeeper lacks."""

    def act(self, args: dict) -> dict:
        result = super().act(args)
        if result.get("failed") or self._task.check_mode or not result["created"]:
            return result
        self.say(
            f"ZooKeeper had no state of {', '.join(result['created'])}, as of a topic created in the moment of the "
            "take-over: made, so that controllers can write it"
        )
        self.artifacts().note("event", "states created", partitions=result["created"])
        return result
