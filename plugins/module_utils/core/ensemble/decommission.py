# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""When the servers of a ZooKeeper ensemble may be stopped for good, in which order, and what is left to remove. Pure.

`hosts` is {host: what zk_decommission read there}: {config_file, service (host.service.read_state), server (its entry
of the connect string, None where the host is none of them), ports (its client ports), quorum_ports, myid, members and
voters (ids in its configuration), is_running (a process with its configuration), is_of_service (that process is the
service's), is_listening, answers (whether its entry of the connect string accepts a connection; None if that is not
known), connected (addresses with an open connection to its client ports), record (that of the decommission, None
without), directories, error}.
"""

from __future__ import annotations

from typing import Any, Collection, Dict, Iterator, List, Mapping, Sequence

from ansible_collections.quorumshift.kafka.plugins.module_utils.core.migration import phase, restart_token
from ansible_collections.quorumshift.kafka.plugins.module_utils.core.text.advice import Finding, format_names

PHASES = (phase.FINALIZED, phase.KRAFT_NATIVE)
"""The phases in which the cluster's own metadata says that it does not use ZooKeeper: POST_MIGRATION, or NONE."""

STOPPING, STOPPED = "stopping", "stopped"
_ORDER = {"observer": 0, "follower": 1, "leader": 2, "standalone": 2}
_OF_ZOOKEEPER = ("zookeeper.connect", "zookeeper.metadata.migration.enable")


def check_cluster(now: str, nodes: Mapping[str, Mapping[str, Any]], cluster_id: str) -> Iterator[Finding]:
    """Yield why the cluster still needs ZooKeeper, or is another one. `now`: its phase; `nodes`: its brokers and
    controllers (`reduce_node`); `cluster_id`: that of the run. It may come from ZooKeeper: the nodes' disks prove it.
    """
    if now not in PHASES:
        yield Finding(
            f"the phase is {now}: the cluster still needs ZooKeeper (QS-ZKSTOP-001)",
            "finish the migration with quorumshift.kafka.migrate, and keep ZooKeeper until then",
        )
    for host, node in sorted(nodes.items()):
        if not node.get("reached"):
            yield Finding(
                f"{host} was not read: {node.get('error') or 'no answer'} (QS-ZKSTOP-001)",
                "start the host, or remove it from the inventory if it is gone for good",
            )
            continue
        ids = node.get("cluster_ids") or []
        if list(ids) != [cluster_id]:
            yield Finding(
                f"the log directories of {host} are of cluster {format_names(ids) or '(none)'}, and ZooKeeper is of "
                f"{cluster_id} (QS-ZKSTOP-001)",
                "correct quorumshift_zookeeper_connect: this may be the ensemble of another cluster",
            )
        values = (node.get("file") or {}).get("properties")
        if values is None:
            yield Finding(
                f"the properties file of {host} was not read (QS-ZKSTOP-001)",
                "correct the variable that names it (quorumshift_broker_config_file)",
            )
            continue
        named = [key for key in _OF_ZOOKEEPER if values.get(key)]
        if named:
            yield Finding(
                f"the properties file of {host} has {format_names(named)} (QS-ZKSTOP-001)",
                "remove them there and from your configuration management, then run quorumshift.kafka.restart",
            )


def reduce_node(node: Mapping[str, Any]) -> Dict[str, Any]:
    """Return what `check_cluster` needs of a node's facts."""
    found = (node.get("file") or {}).get("properties")
    values = None if found is None else {key: found[key] for key in _OF_ZOOKEEPER if key in found}
    stored = [(directory.get("meta") or {}).get("cluster.id") for directory in node.get("log_dirs") or []]
    return {
        "reached": node.get("reached"),
        "error": node.get("error"),
        "file": {"properties": values},
        "cluster_ids": sorted({cluster_id for cluster_id in stored if cluster_id}),
    }


def check_hosts(hosts: Mapping[str, Mapping[str, Any]], servers: Sequence[str]) -> Iterator[Finding]:
    """Yield why the hosts are not exactly the ensemble. `servers`: those of the connect string, as "host:port"."""
    for host, read in sorted(hosts.items()):
        if read.get("error"):
            yield Finding(
                f"{host}: {read['error']} (QS-ZKSTOP-005)",
                "correct quorumshift_zookeeper_config_file or decommission_service for this host",
            )
        elif read.get("server") is None:
            yield Finding(
                f"{host} of the group zookeeper is none of {format_names(servers, 9)}: its client ports are "
                f"{format_names([str(port) for port in read.get('ports') or []]) or 'unknown'} (QS-ZKSTOP-005)",
                "name it in quorumshift_zookeeper_connect, or remove it from the group",
            )
    for server in servers:
        of_server = sorted(host for host, read in hosts.items() if read.get("server") == server)
        if len(of_server) != 1:
            yield Finding(
                f"{server} of the connect string is on {format_names(of_server) or 'no host of the group zookeeper'} "
                "(QS-ZKSTOP-005)",
                "have each server of the ensemble in the group zookeeper once",
            )
    ids = {read.get("myid") for read in hosts.values()}
    members = {int(number) for read in hosts.values() for number in read.get("members") or ()}
    missing = sorted(members - ids)
    if missing:
        yield Finding(
            f"the servers' configuration names server {format_names([str(number) for number in missing])}, which no "
            "host of the group zookeeper has (QS-ZKSTOP-005)",
            "add its host to the group and to quorumshift_zookeeper_connect: its clients use the ensemble too",
        )


def is_stopped(read: Mapping[str, Any]) -> bool:
    """Return whether a host proves that its server is stopped for good, by this playbook: its own record, the service
    stopped and masked, no process, and no listener. A server that only gives no answer is none of these."""
    service, record = read.get("service") or {}, read.get("record") or {}
    return (
        record.get("state") in (STOPPING, STOPPED)
        and record.get("server") == read.get("server")
        and bool(service.get("masked"))
        and restart_token.is_stopped(service)
        and read.get("is_running") is False
        and read.get("is_listening") is False
        and read.get("answers") is False
    )


def stopped_servers(hosts: Mapping[str, Mapping[str, Any]]) -> Dict[str, int]:
    """Return {"host:port": id} of the servers that are proved to be stopped."""
    return {
        read["server"]: int(read["myid"] if read.get("myid") is not None else 0)
        for read in hosts.values()
        if read.get("server") and is_stopped(read)
    }


def voters(hosts: Mapping[str, Mapping[str, Any]]) -> List[int]:
    """Return the ids of the servers that vote, [] for a standalone server."""
    return sorted({int(number) for read in hosts.values() for number in read.get("voters") or ()})


def order(hosts: Mapping[str, Mapping[str, Any]], modes: Mapping[str, str | None]) -> List[str]:
    """Return the hosts in the order in which their servers stop: those that are stopped, observers, followers, the
    leader, so that the ensemble elects none in between. `modes`: {"host:port": mode}."""

    def key(host: str) -> tuple:
        read = hosts[host]
        return not is_stopped(read), _ORDER.get(modes.get(read["server"]) or "", 1), host

    return sorted(hosts, key=key)


def check_stop(read: Mapping[str, Any], own: Collection[str] = ()) -> Iterator[Finding]:
    """Yield why a server may not be stopped, as its host shows right before. `own`: addresses whose connections do not
    count."""
    service = read.get("service") or {}
    if read.get("error"):
        yield Finding(f"{read['error']} (QS-ZKSTOP-005)", "correct the variables of this host")
    if service.get("manager") != "systemd" or not service.get("exists"):
        yield Finding(
            f"service {service.get('name') or '?'} does not exist under systemd (QS-ZKSTOP-005)",
            "set decommission_service to the unit of the ZooKeeper server on this host",
        )
    elif read.get("is_running") and not read.get("is_of_service"):
        yield Finding(
            f"the process with {read.get('config_file')} is not one of service {service.get('name')} (QS-ZKSTOP-005)",
            "set decommission_service to the unit that runs it",
        )
    elif not read.get("is_running") and not restart_token.is_stopped(service):
        yield Finding(
            f"service {service.get('name')} runs, and no process of it has {read.get('config_file')} (QS-ZKSTOP-005)",
            "correct quorumshift_zookeeper_config_file or decommission_service for this host",
        )
    strangers = [address for address in read.get("connected") or () if address not in own]
    if strangers:
        yield Finding(
            f"{format_names(strangers)} is connected to the client port of {read.get('server')} (QS-ZKSTOP-003)",
            "find the process there with `ss -tnp`, stop it, and run again",
        )


def leftovers(hosts: Mapping[str, Mapping[str, Any]], accepted: Sequence[str]) -> List[str]:
    """Return what an operator removes after the end, in the order in which that is safe, as sentences."""
    lines = []
    for host, read in sorted(hosts.items()):
        record, service = read.get("record") or {}, (read.get("service") or {}).get("name")
        archive = record.get("archive") or {}
        lines.append(
            f"{host}: move the archive {archive.get('path')} (SHA-256 {archive.get('sha256')}) to where you keep "
            "backups. It has credentials"
        )
        lines.append(
            f"{host}: then remove the package, the unit {service} with its drop-in directory "
            f"/etc/systemd/system/{service}.d, {read.get('config_file')}, and the data in "
            f"{' and '.join(read.get('directories') or ['?'])}"
        )
    ports = sorted({port for read in hosts.values() for port in [*(read.get("ports") or ()), *_quorum_ports(read)]})
    lines += [
        f"firewalls: close the ports {', '.join(map(str, ports))} and that of the AdminServers",
        "brokers and controllers: remove zookeeper.* and the JAAS section Client from your configuration management, "
        "so that it does not bring them back",
        "monitoring: remove the exporters, dashboards and alerts of ZooKeeper",
        "secrets: withdraw the certificates, keytabs and passwords of ZooKeeper and of its clients",
        "this inventory: remove the group zookeeper, quorumshift_zookeeper_connect and quorumshift_zookeeper_client",
    ]
    if accepted:
        lines.append(f"other applications: {', '.join(sorted(accepted))} is in the archives too, and nowhere else")
    return lines


def _quorum_ports(read: Mapping[str, Any]) -> Sequence[int]:
    return read.get("quorum_ports") or ()
