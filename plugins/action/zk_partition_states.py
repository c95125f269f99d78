# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""zk_partition_states: create partition states that ZooKeeper lacks, from the probe host."""

from __future__ import annotations

from ansible_collections.quorumshift.kafka.plugins.plugin_utils.base import QuorumshiftAction


class ActionModule(QuorumshiftAction):
    """Creates partition states."""

    def done(self, args, result):
        if result["created"]:
            self.say(
                f"created in ZooKeeper: the state of {', '.join(result['created'])}. Their topics were created while "
                "the controllers took over, and without a state the controllers cannot write changes"
            )
            self.artifacts().note("event", "states created", partitions=result["created"])
