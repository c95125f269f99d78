# Copyright: (c) 2026, Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""node_paths: whom a host dials comes from what all hosts told; with `required`, who does not answer ends the run."""

from __future__ import annotations

from ansible_collections.quorumshift.kafka.plugins.module_utils.core import advice, kraft_config
from ansible_collections.quorumshift.kafka.plugins.module_utils.core.checks import paths
from ansible_collections.quorumshift.kafka.plugins.plugin_utils import file_changes
from ansible_collections.quorumshift.kafka.plugins.plugin_utils.base import QuorumshiftAction


class ActionModule(QuorumshiftAction):
    """Fills in `dial`, `listen`, `log_dirs`, `login` and `timeout`."""

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
        login, untried = (
            self._login(host, wanted) if nodes[host]["role"] == "controller" and not required else (None, "")
        )
        if login:
            args.setdefault("login", login)
        result = self.module(args)
        reported = (result.get("ansible_facts") or {}).get("quorumshift_paths")
        if reported and untried:
            reported["login"] = {"answered": [], "errors": [], "untried": untried}
        if required and reported and reported["failed"]:
            found = paths.unanswered({host: reported["failed"]}, {host: reported["dialled"]})
            lines = [f"{advice.sentences(one.seen, one.do)}." for one in found]
            return {"failed": True, "msg": "\n".join(["This run has restarted no broker.", *lines])}
        return result

    def _login(self, host: str, wanted: list[dict]) -> tuple[dict | None, str]:
        """Return how the controller of this host will log in to brokers, and why that cannot be tried ahead; neither,
        where it connects without a login, which is dialled anyway."""
        brokers = [one["address"] for one in wanted if one["kind"] == "broker"]
        values = file_changes.of_controller(self, host)
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
