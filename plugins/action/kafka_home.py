# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""kafka_home: read or switch the directory from which a node's service starts Kafka."""

from __future__ import annotations

from ansible_collections.quorumshift.kafka.plugins.plugin_utils.base import QuorumshiftAction


class ActionModule(QuorumshiftAction):
    """Reads or switches the link of the host."""

    def done(self, args, result):
        if result["changed"]:
            self.say(f"{self.host}: {result['home']['path']} leads to {result['home']['target']}")
            self.artifacts().note("event", "release switched", host=self.host, home=result["home"])
