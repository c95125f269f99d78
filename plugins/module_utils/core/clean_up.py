# Copyright: (c) 2026, Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What to type to clean up after an earlier attempt, told only where typing it is safe. Pure, over collected facts."""

from __future__ import annotations

from ..facts import ClusterFacts, NodeFacts


def migration_znode(facts: ClusterFacts) -> str:
    """Return what to do about a /migration that is left over or malformed (facts: probes.cluster.collect).

    The order matters. Controllers that are emptied under brokers in migration mode stop them all; a controller that
    runs, or starts with its old log, writes /migration anew or takes the old registrations for new ones
    (KRaftMigrationDriver, WAIT_FOR_BROKERS).
    """
    brokers, controllers = _of(facts, "broker"), _of(facts, "controller")
    unseen = [host for host, node in {**brokers, **controllers}.items() if not node.get("reached")]
    if unseen:
        return f"mend the connection to {', '.join(unseen)} first: what runs there decides what is safe to delete"
    joined = [host for host, node in brokers.items() if {node.get("running"), node.get("next")} - {None, "zk"}]
    if joined:
        return (
            f"delete nothing while {', '.join(joined)} run or will start in another mode than plain ZooKeeper: the "
            "runbook says what comes first"
        )
    steps = []
    for host, node in controllers.items():
        service = node.get("service") or {}
        if service.get("active") or node.get("running"):
            name = service.get("name", "kafka-controller")
            stop = f"service {name} stop" if service.get("manager") == "service" else f"systemctl stop {name}"
            steps.append(f"on {host}: {stop}")
    zookeeper = facts.get("zookeeper") or {}
    cluster = (zookeeper.get("cluster_id") or {}).get("value")
    for host, node in controllers.items():
        for directory in node.get("log_dirs") or []:
            if cluster and (directory.get("meta") or {}).get("cluster.id") == cluster:
                steps.append(f"on {host}: find {directory['path']} -mindepth 1 -delete")
            elif directory.get("exists") and not directory.get("empty"):
                steps.append(f"on {host}: find out whose {directory['path']} is, which does not say this cluster's id")
    connect = zookeeper.get("connect") or "ZOOKEEPER/CHROOT"
    tls = " -zk-tls-config-file FILE" if zookeeper.get("tls") else ""
    steps.append(f"zookeeper-shell.sh {connect}{tls} delete /migration")
    return f"every broker runs plain ZooKeeper mode, so type, in this order: {'; '.join(steps)}"


def _of(facts: ClusterFacts, role: str) -> dict[str, NodeFacts]:
    return {host: node for host, node in sorted((facts.get("nodes") or {}).items()) if node["role"] == role}
