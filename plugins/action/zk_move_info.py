# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""zk_move_info: say where a move between ZooKeeper ensembles is, and print it with the command to type next."""

from __future__ import annotations

from ansible_collections.quorumshift.kafka.plugins.plugin_utils import job_stats
from ansible_collections.quorumshift.kafka.plugins.plugin_utils.base import QuorumshiftAction


class ActionModule(QuorumshiftAction):
    """Reads and prints, in a check run too."""

    def act(self, args):
        # Of a node, the module needs what names its znode: facts of hundreds of hosts would travel for nothing
        nodes = self.nodes()
        args["nodes"] = {host: {key: node.get(key) for key in ("role", "node_id")} for host, node in nodes.items()}
        result = self.module(self.fill(args))
        if result.get("failed"):
            return result
        following = {"playbook": result["playbook"], "given": result["given"], "token": False, "target": None}
        result["command"] = job_stats.command(following, None) or ""
        for line in shown(result):
            self.say(line)
        return result


def shown(result):
    """Return the lines that show the move."""
    yield f"move to another ZooKeeper ensemble: {result['stage']}"
    for line in result["lines"]:
        yield f"  {line}"
    if result["command"]:
        yield f"  next: {result['command']}"
    if result["advice"]:
        yield f"  {result['advice']}"
