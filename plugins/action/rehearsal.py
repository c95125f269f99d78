# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""rehearsal: plan a rehearsal, run its migrations, and report. Runs on the control node alone."""

from __future__ import annotations

import json
import os
from typing import Any, Dict, List, Mapping

from ansible_collections.quorumshift.kafka.plugins.module_utils.core.rehearsal import estimate, report
from ansible_collections.quorumshift.kafka.plugins.module_utils.core.text.printable import escape_invisible
from ansible_collections.quorumshift.kafka.plugins.module_utils.settings.addresses import (
    AddressError,
    parse_host_ports,
    parse_zookeeper_connect,
)
from ansible_collections.quorumshift.kafka.plugins.plugin_utils import rehearsal_runs
from ansible_collections.quorumshift.kafka.plugins.plugin_utils.base import QuorumshiftAction, display
from ansible_collections.quorumshift.kafka.plugins.plugin_utils.run_artifacts import RunArtifacts

GROUP = "kafka_rehearsal"
_OF_THE_CLUSTER = ("kafka_broker", "kafka_controller", "zookeeper", "zookeeper_source", "zookeeper_destination")
_CHROOT = "/quorumshift-rehearsal"
_PATHS = (  # of the cluster's nodes, which hold nothing on a host of a rehearsal
    *("quorumshift_broker_config_file", "quorumshift_controller_config_file", "quorumshift_controller_log_dir"),
    *("quorumshift_zookeeper_config_file", "quorumshift_state_dir"),
)


class ActionModule(QuorumshiftAction):
    """Plans, runs or reports a rehearsal."""

    def act(self, args):
        work = {
            "planned": self._plan,
            "run": self._run,
            "reported": self._report_rehearsal,
            "compared": self._compare,
        }
        return work[args["state"]](args)

    # Plan -------------------------------------------------------------------------------------------------------------

    def _plan(self, args):
        hosts = list(self.vars["groups"].get(GROUP) or [])
        refused = self._refuse(hosts)
        if refused:
            return {"failed": True, "msg": f"{refused} Nothing was changed. (QS-REHEARSE-001)"}
        read = args["source"]
        source, planned = read["source"], read["plan"]
        addresses = {host: self._address(host) for host in hosts}
        brokers = dict(zip(hosts, planned["brokers"]))
        ports = {
            "zookeeper": self.variable("rehearse_zookeeper_port"),
            "peer": self.variable("rehearse_peer_port"),
            "election": self.variable("rehearse_election_port"),
            "controller": self.variable("rehearse_controller_port"),
            "broker": self.variable("rehearse_broker_port"),
        }
        settings = {**read["settings"], **(self.variable("rehearse_broker_config") or {})}
        forbidden = self._forbidden(source["endpoints"])
        directory = str(self.variable("rehearse_dir")).rstrip("/")
        options = {
            host: {
                "directory": directory,
                "cluster_id": planned["rehearsal_id"],
                "owner": self.variable("quorumshift_kafka_user", host),
                "kafka_home": self.variable("quorumshift_kafka_home", host),
                "place": place,
                "address": addresses[host],
                "others": {str(number): addresses[other] for number, other in enumerate(hosts, 1)},
                "ports": ports,
                "chroot": _CHROOT,
                "broker_id": brokers.get(host),
                "replicas": planned["replicas"],
                "heap": str(self.variable("rehearse_heap")),
                "settings": {name: str(value) for name, value in settings.items()},
                "environment": self.variable("rehearse_environment", host) or {},
                "forbidden": forbidden,
                "other_paths": sorted({str(self.variable(name, host)) for name in _PATHS}),
            }
            for place, host in enumerate(hosts, 1)
        }
        return {
            "changed": False,
            "hosts": options,
            "brokers": brokers,
            "controllers": dict(zip(hosts, planned["controllers"])),
            "servers": ",".join(_joined(address, ports["zookeeper"]) for address in addresses.values()),
            "bootstrap": [_joined(addresses[host], ports["broker"]) for host in brokers],
            "rehearsal_id": planned["rehearsal_id"],
            "began_at": self.began,
        }

    def _refuse(self, hosts: List[str]) -> str:
        """Return why these hosts are no rehearsal's, by the inventory alone; '' if they may be."""
        if len(hosts) != 3:
            return f"The group {GROUP} has {len(hosts)} hosts. Name three, which are not of the cluster."
        backup = str(self.variable("rehearse_backup") or "")
        if backup and not os.path.isfile(os.path.expanduser(backup)):
            return f"rehearse_backup: the control node has no file {backup}. Correct the path."
        groups: Mapping[str, List[str]] = self.vars["groups"]
        own = {host: group for group in _OF_THE_CLUSTER for host in groups.get(group) or []}
        both = [host for host in hosts if host in own]
        if both:
            return (
                f"{both[0]} is in the groups {GROUP} and {own[both[0]]}. Name three hosts that are not of the cluster."
            )
        of_cluster = {self._address(host): host for host in own}
        for host in hosts:
            same = of_cluster.get(self._address(host))
            if same:
                return f"{host} has the address of {same}. Name three hosts that are not of the cluster."
        if len({self._address(host) for host in hosts}) < len(hosts):
            return f"Two hosts of the group {GROUP} have one address. Give each its own."
        return ""

    def _address(self, host: str) -> str:
        own = self._variables_of(host)
        return str(own.get("rehearse_address") or own.get("ansible_host") or host)

    def _forbidden(self, endpoints: List[str]) -> List[str]:
        """Return the names and addresses of the cluster, which no host of a rehearsal may have."""
        found = set(endpoints)
        try:
            found |= {address.host for address in parse_host_ports(self.variable("quorumshift_bootstrap_servers"))}
            connect = self.variable("quorumshift_zookeeper_connect")
            found |= {server.host for server in parse_zookeeper_connect(connect).servers} if connect else set()
        except AddressError:
            pass  # the check of the inventory reports it
        groups: Mapping[str, List[str]] = self.vars["groups"]
        found |= {self._address(host) for group in _OF_THE_CLUSTER for host in groups.get(group) or []}
        return sorted(found)

    # Run --------------------------------------------------------------------------------------------------------------

    def _run(self, args):
        plan = args["plan"]
        if self._task.check_mode:
            return {"changed": False, "runs": []}
        place = self._place(plan["rehearsal_id"])
        inventory = rehearsal_runs.inventory(self, plan)
        path = os.path.join(place, "inventory.yml")
        rehearsal_runs.write(path, inventory.text)
        runs: List[Dict[str, Any]] = []
        for name, playbook, wanted in rehearsal_runs.RUNS:
            if name == rehearsal_runs.FINALIZE and not self.variable("rehearse_finalize"):
                continue
            done = rehearsal_runs.play(self, name, playbook, path, place, inventory.secrets, runs)
            runs.append(done)
            if done["failure"] or done["phase"] != wanted:
                why = done["failure"] or f"it ended in the phase {done['phase']}, and not in {wanted}"
                return {
                    "failed": True,
                    "msg": f"The rehearsal stopped at {name}: {why} Its output is in {done['log']}. The hosts are "
                    f"as it left them. To see them: ansible-playbook -i {path} quorumshift.kafka.status. To remove "
                    "them: -e rehearse_remove=true (QS-REHEARSE-005)",
                }
        return {"changed": True, "runs": runs}

    def _place(self, rehearsal_id: str) -> str:
        return RunArtifacts(self._root(), rehearsal_id, "rehearsal").create_cluster()

    def _root(self) -> str:
        return self.variable("quorumshift_artifacts_dir") or os.path.join(os.getcwd(), "quorumshift-artifacts")

    # Report -----------------------------------------------------------------------------------------------------------

    def _report_rehearsal(self, args):
        read, plan = args["source"], args["plan"]
        groups: Mapping[str, List[str]] = self.vars["groups"]
        brokers = len(groups.get("kafka_broker") or []) or len(read["source"]["registered"])
        controllers = len(groups.get("kafka_controller") or []) or 3
        nodes = estimate.Nodes(brokers, controllers, int(self.variable("restart_concurrency") or 1))
        built = {name: float(value) for name, value in args["built"].items()}
        measured = [rehearsal_runs.measured(run) for run in args["runs"]]
        found = report.Report(
            source=read["source"],
            left=read["left"],
            blocks=read["blocks"],
            rehearsal={
                "id": plan["rehearsal_id"],
                "brokers": len(plan["brokers"]),
                "controllers": len(plan["controllers"]),
            },
            built=built,
            sizes=args["sizes"],
            runs=args["runs"],
            nodes=nodes,
            estimates=estimate.estimate(measured, nodes),
        )
        lines = report.lines(found)
        for line in lines:
            display.display(escape_invisible(line))
        if self._task.check_mode:
            return {"changed": False, "report": ""}
        place = self._place(plan["rehearsal_id"])
        path = os.path.join(place, "rehearsal.txt")
        rehearsal_runs.write(path, "".join(f"{line}\n" for line in lines))
        rehearsal_runs.write(os.path.join(place, "rehearsal.json"), json.dumps(report.as_json(found), indent=1) + "\n")
        self.say(f"Report: {path}, as JSON in rehearsal.json beside it")
        return {"changed": False, "report": path}

    def _compare(self, _args):
        """Show the newest rehearsal's estimates beside the runs that the cluster has had since, by their journals."""
        kept = rehearsal_runs.newest_report(self._root())
        if kept is None:
            return {
                "failed": True,
                "msg": f"{self._root()} has no rehearsal.json: no rehearsal has ended there. Rehearse first, or "
                "correct quorumshift_artifacts_dir (QS-REHEARSE-006)",
            }
        estimates = rehearsal_runs.estimates_of(kept)
        real = rehearsal_runs.real_runs(self._root(), kept)
        compared = estimate.compare(estimates, real)
        own, cluster = kept["rehearsal"]["id"], kept["source"]["cluster_id"]
        display.display(f"Estimates of {own} beside the runs of cluster {cluster}")
        for line in report.comparison_lines(compared) or ["  no whole run of the cluster has ended since"]:
            display.display(line)
        return {"changed": False, "compared": [each._asdict() for each in compared]}


def _joined(address: str, port: int) -> str:
    return f"[{address}]:{port}" if ":" in address else f"{address}:{port}"
