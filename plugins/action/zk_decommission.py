# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""zk_decommission: read, archive and stop a ZooKeeper server on its host, and journal that; plan on the probe host."""

from __future__ import annotations

from ansible_collections.quorumshift.kafka.plugins.module_utils.core.ensemble import decommission
from ansible_collections.quorumshift.kafka.plugins.plugin_utils.base import QuorumshiftAction


class ActionModule(QuorumshiftAction):
    """Fills in what the plan needs of the nodes, and journals archives and stops."""

    def act(self, args):
        if args.get("state") == "planned" and not args.get("nodes"):
            args["nodes"] = {host: decommission.reduce_node(node) for host, node in self.nodes().items()}
        return super().act(args)

    def done(self, args, result):
        if args["state"] == "archived" and result["changed"]:
            archive = result["archive"]
            self.say(f"{self.host}: {archive['znodes']} znodes archived in {archive['path']}, and read back")
            self.artifacts().note("event", "zookeeper archived", host=self.host, **archive)
        elif args["state"] == "stopped" and result["changed"]:
            server = result["host"]["server"]
            self.say(f"{self.host}: {server} is stopped and masked, and nothing listens")
            self.artifacts().note("event", "zookeeper stopped", host=self.host, server=server)
