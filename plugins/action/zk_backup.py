# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""zk_backup: take the backup of ZooKeeper, or read it back, from the probe host."""

from __future__ import annotations

from ansible_collections.quorumshift.kafka.plugins.plugin_utils.base import QuorumshiftAction


class ActionModule(QuorumshiftAction):
    """Takes or verifies the backup."""

    def done(self, args, result):
        if args.get("state", "taken") == "taken":
            self.say(f"{result['znodes']} znodes, {result['data_bytes'] / 1024:.0f} KiB of data")
            taken = {key: result.get(key) for key in ("sha256", "znodes", "zxid", "seconds")}
            self.artifacts().note("event", "backup taken", **taken)
        else:
            since = sum(sum(kinds.values()) for kinds in result["changed_since"].values())
            self.say(f"{result['equal']} znodes are as they are in ZooKeeper, {since} changed there since")
            self.artifacts().note("event", "backup read back", equal=result["equal"], changed_since=since)
