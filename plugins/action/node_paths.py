# Copyright: (c) 2026, Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""node_paths: whom a host dials comes from what all hosts told; with `required`, who does not answer ends the run."""

from __future__ import annotations

from ansible_collections.quorumshift.kafka.plugins.module_utils.judgements import advice
from ansible_collections.quorumshift.kafka.plugins.module_utils.judgements.hazards import paths
from ansible_collections.quorumshift.kafka.plugins.plugin_utils.base import QuorumshiftAction


class ActionModule(QuorumshiftAction):
    """Fills in `dial`, `listen`, `log_dirs` and `timeout`."""

    def act(self, args: dict) -> dict:
        host, nodes = self.vars["inventory_hostname"], self.nodes()
        required = args.get("required", False)
        if not nodes[host]["reached"] or not (required or paths.not_begun(nodes)):
            return {"skipped": True, "changed": False}
        wanted = paths.targets(host, nodes)
        args.setdefault("dial", [one for one in wanted if one["kind"] == "controller"] if required else wanted)
        args.setdefault("timeout", self.variable("quorumshift_probe_timeout") or 5)
        if nodes[host]["role"] == "controller" and not nodes[host]["service"]["active"]:
            args.setdefault("listen", nodes[host]["address"])
        if nodes[host]["role"] == "broker" and not required:
            args.setdefault("log_dirs", [one["path"] for one in nodes[host]["log_dirs"] if one["exists"]])
        result = self.module(args)
        told = (result.get("ansible_facts") or {}).get("quorumshift_paths")
        if required and told and told["failed"]:
            found = paths.unanswered({host: told["failed"]}, {host: told["dialled"]})
            lines = [f"{advice.sentences(one.seen, one.do)}." for one in found]
            return {"failed": True, "msg": "\n".join(["This run has restarted no broker.", *lines])}
        return result
