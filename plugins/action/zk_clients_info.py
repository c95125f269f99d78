# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""zk_clients_info: list who uses ZooKeeper, from the probe host, and show it where that is asked for."""

from __future__ import annotations

import json

from ansible_collections.quorumshift.kafka.plugins.plugin_utils.base import QuorumshiftAction

_UNKNOWN = "QS-ZKSTOP-002"  # the id of what is not known of the clients
MOST = 40  # lines that are shown; the result has all


class ActionModule(QuorumshiftAction):
    """Lists the clients and keeps them, or waits for the second reading."""

    def act(self, args):
        # A module needs of a node what names its clients: facts of hundreds of hosts would travel for nothing
        nodes = args.get("nodes") or self.nodes()
        args["nodes"] = {host: {key: node.get(key) for key in ("role", "host_address")} for host, node in nodes.items()}
        result = self.run_in_slices(self.fill(args))
        if "clients" not in result:
            return result
        if self.session.get("run"):
            kept = {key: result[key] for key in ("clients", "servers", "others", "findings")}
            self.artifacts().save("zookeeper_clients.json", json.dumps(kept, indent=1))
        if self.own.get("show"):
            for line in shown(result):
                self.say(line)
        return result


def shown(result):
    """Return the lines that show who uses ZooKeeper. Without an answer of each server, no list is the whole one."""
    lines, others = result["lines"], [other["path"] for other in result["others"]]
    unknown = [finding["seen"] for finding in result["findings"] if _UNKNOWN in finding["seen"]]
    many = f"{len(lines)} addresses use" if len(lines) != 1 else "1 address uses"
    if lines:
        yield f"{'at least ' if unknown else ''}{many} ZooKeeper"
    else:
        yield "it is not known who uses ZooKeeper" if unknown else "no client of ZooKeeper was found"
    for line in lines[:MOST]:
        yield f"  {line}"
    if len(lines) > MOST:
        yield f"  and {len(lines) - MOST} more, which -v shows"
    if others:
        yield f"  its tree has parts that are not of this cluster: {', '.join(others)}"
    for text in unknown:
        yield f"  {text}"
