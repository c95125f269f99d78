# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""kafka_home: read or switch the directory from which a node's service starts Kafka."""

from __future__ import annotations

from ansible_collections.quorumshift.kafka.plugins.plugin_utils.base import RUN, QuorumshiftAction


class ActionModule(QuorumshiftAction):
    """Reads or switches the link of the host."""

    FILLS = (*RUN, "service", "state_dir", "config_file")

    def act(self, args):
        args.setdefault("home", self.variable("quorumshift_kafka_home", self.host))
        args.setdefault("hook", self.variable("quorumshift_restart_hook", self.host) or None)
        return super().act(args)

    def done(self, args, result):
        if result["changed"]:
            self.say(f"{self.host}: {result['home']['path']} leads to {result['home']['target']}")
            self.artifacts().note("event", "release switched", host=self.host, home=result["home"])
