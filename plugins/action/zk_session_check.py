# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""zk_session_check: check which ZooKeeper servers a broker uses."""

from __future__ import annotations

from ansible_collections.quorumshift.kafka.plugins.plugin_utils.base import QuorumshiftAction


class ActionModule(QuorumshiftAction):
    """Checks one broker, and shows the connections of other processes, which may be tools."""

    def done(self, args, result):
        if result["others"]:
            self.say(f"{self.host}: another process is connected to {', '.join(result['others'])}")
