# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""node_facts: read a node on its host. Secrets leave it sealed under the run's key; the reading is timed."""

from __future__ import annotations

import time

from ansible_collections.quorumshift.kafka.plugins.module_utils.core.migration import kraft_config
from ansible_collections.quorumshift.kafka.plugins.module_utils.core.preflight import paths
from ansible_collections.quorumshift.kafka.plugins.module_utils.core.text import advice
from ansible_collections.quorumshift.kafka.plugins.plugin_utils import file_changes
from ansible_collections.quorumshift.kafka.plugins.plugin_utils.base import QuorumshiftAction


class ActionModule(QuorumshiftAction):
    """Reads; adds to the facts when, by the control node's clock, they were asked for and arrived. Fills in what the
    subset `connectivity` asks, from the facts of all hosts."""

    def act(self, args):
        subsets = args.get("gather_subset") or ["node"]
        if "connectivity" in subsets:
            return self._connectivity(args)
        asked = time.time()
        result = self.module(self.fill(args))
        if "node" in subsets and not result.get("failed") and not result.get("unreachable"):
            result["ansible_facts"]["quorumshift_node"]["asked"] = [asked, time.time()]
        if result.get("failed") and self.own.get("failure_is_fact", False):
            self.say(result["msg"] if result["msg"].startswith(self.host) else f"{self.host}: {result['msg']}")
            return {"changed": False, "unread": result["msg"]}
        return result

    def _connectivity(self, args: dict) -> dict:
        nodes, required = self.nodes(), args.get("connectivity_required", False)
        node = nodes[self.host]
        if not node["reached"] or not (required or paths.is_not_begun(nodes)):
            return {"skipped": True, "changed": False}
        content = (
            file_changes.controller_properties(self, self.host) if node["role"] == "controller" and not required else {}
        )
        wanted = paths.targets(self.host, nodes, content.get("zookeeper.connect"))
        args.setdefault(
            "targets", [target for target in wanted if target["kind"] == "controller"] if required else wanted
        )
        if node["role"] == "controller" and not node["service"]["active"]:
            args.setdefault("listen", node["address"])
        if node["role"] == "broker" and not required:
            args.setdefault("log_dirs", [log_dir["path"] for log_dir in node["log_dirs"] if log_dir["exists"]])
            args.setdefault("own_zookeeper", (node.get("file") or {}).get("mode") == "zk")
        if any(key.startswith("config.providers") for key in content):
            args.setdefault("content", content)
        login, untried = (None, "")
        if node["role"] == "controller" and not required:
            login, untried = self._login(wanted, content)
        if login:
            args.setdefault("login", login)
        result = self.module(self.fill(args))
        found = (result.get("ansible_facts") or {}).get("quorumshift_paths")
        if found and untried:
            found["login"] = {"answered": [], "errors": [], "untried": untried}
        if required and found and found["failed"]:
            findings = paths.find_unanswered({self.host: found["failed"]}, {self.host: found["tried"]})
            lines = [f"{advice.sentences(finding.seen, finding.do)}." for finding in findings]
            return {"failed": True, "msg": "\n".join(["This run has restarted no broker. (QS-CHECK-036)", *lines])}
        return result

    def _login(self, wanted: list[dict], values: dict[str, str]) -> tuple[dict | None, str]:
        """Return how this host's controller will log in to brokers with its future properties, and why that cannot be
        tried; neither where it connects without a login."""
        brokers = [target["address"] for target in wanted if target["kind"] == "broker"]
        if not brokers or kraft_config.inter_broker_protocol(values) == "PLAINTEXT":
            return None, ""
        settings, untried = kraft_config.inter_broker_client(values)
        if untried:
            return None, untried
        login = {
            "brokers": brokers,
            "settings": settings,
            "run_key": self.run_key(),
            "user": self.variable("quorumshift_kafka_user"),
            "kafka_home": self.variable("quorumshift_kafka_home"),
        }
        return login, ""
