# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Commands that clean up after an earlier attempt, shown only if they are safe. Pure, over collected facts."""

from __future__ import annotations

import shlex

from ansible_collections.quorumshift.kafka.plugins.module_utils.facts import ClusterFacts, NodeFacts


def migration_znode(facts: ClusterFacts) -> str:
    """Return what to do about an old or malformed /migration (`facts`: probes.cluster.cluster.collect).

    The order matters. Brokers in migration mode stop if their controllers are wiped. A controller that runs, or starts
    with its old log, writes /migration again or counts old registrations (KRaftMigrationDriver, WAIT_FOR_BROKERS).
    """
    brokers, controllers = _nodes_of_role(facts, "broker"), _nodes_of_role(facts, "controller")
    unreached = [host for host, node in {**brokers, **controllers}.items() if not node.get("reached")]
    if unreached:
        return f"fix the connection to {', '.join(unreached)} first: the processes there decide what is safe to delete"
    joined = [host for host, node in brokers.items() if {node.get("running"), node.get("next")} - {None, "zk"}]
    if joined:
        return (
            f"delete nothing while {', '.join(joined)} run or will start in another mode than plain ZooKeeper: see the "
            "runbook"
        )
    steps = []
    for host, node in controllers.items():
        service = node.get("service") or {}
        if service.get("active") or node.get("running"):
            name = shlex.quote(service.get("name", "kafka-controller"))
            stop = f"service {name} stop" if service.get("manager") == "service" else f"systemctl stop {name}"
            steps.append(f"on {host}: {stop}")
    zookeeper = facts.get("zookeeper") or {}
    cluster = (zookeeper.get("cluster_id") or {}).get("value")
    for host, node in controllers.items():
        for directory in node.get("log_dirs") or []:
            if cluster and (directory.get("meta") or {}).get("cluster.id") == cluster:
                steps.append(f"on {host}: find {shlex.quote(directory['path'])} -mindepth 1 -delete")
            elif directory.get("exists") and not directory.get("empty"):
                steps.append(f"on {host}: check {directory['path']}, which does not have this cluster's id")
    connect = shlex.quote(zookeeper.get("connect") or "ZOOKEEPER/CHROOT")
    tls = " -zk-tls-config-file FILE" if zookeeper.get("tls") else ""
    steps.append(f"zookeeper-shell.sh {connect}{tls} delete /migration")
    return f"every broker runs in plain ZooKeeper mode, so run these commands in order: {'; '.join(steps)}"


def _nodes_of_role(facts: ClusterFacts, role: str) -> dict[str, NodeFacts]:
    return {host: node for host, node in sorted((facts.get("nodes") or {}).items()) if node["role"] == role}
