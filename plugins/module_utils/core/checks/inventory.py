# Copyright: (c) 2026, Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Hazards: the inventory against the cluster: hosts, brokers, ids, releases."""

from __future__ import annotations

import re
from typing import Iterable

from .. import phase
from ..advice import shown
from . import replicas
from .facts import Facts, Finding, values_of

RESERVED_IDS = 1000  # Kafka's default of reserved.broker.max.id (ServerConfigs)


def groups(facts: Facts) -> Iterable[Finding]:
    """Inventory groups: present, disjoint, an odd number of controllers."""
    for name, nodes in (("kafka_broker", facts.brokers), ("kafka_controller", facts.controllers)):
        if not nodes:
            yield Finding(f"the inventory has no host in the group {name}", f"add the group {name} to the inventory")
    for host, node in sorted(facts.cluster["nodes"].items()):
        if node.get("twice"):
            yield Finding(
                f"{host} is in both groups, kafka_broker and kafka_controller",
                "give controllers hosts of their own: no process can be both on its way from ZooKeeper",
            )
    count = len(facts.controllers)
    if count and count % 2 == 0:
        yield Finding(
            f"the group kafka_controller has {count} hosts",
            "give it an odd number: an even one tolerates no more failures than the odd one below it",
        )


def reached(facts: Facts) -> Iterable[Finding]:
    """Every host of the inventory was reached and its properties could be read."""
    for host, node in sorted(facts.cluster["nodes"].items()):
        file, service = node.get("file") or {}, node.get("service") or {}
        if not node.get("reached"):
            yield Finding(
                f"{host} was not reached: {node.get('error')}",
                f"mend the connection (`ansible -i INVENTORY {host} -m ansible.builtin.ping`), or the inventory",
            )
        elif file.get("error"):
            denied = "Permission denied" in file["error"]
            yield Finding(
                f"{host}: {file['error']}",
                "set ansible_become: the tool reads and writes it as root" if denied else "mend the file",
            )
        elif node["role"] == "broker" and not file.get("exists"):
            yield Finding(
                f"{host} has no file {file.get('path')}",
                "set quorumshift_broker_config_file to the broker's properties",
            )
        elif not service.get("exists", True):
            yield Finding(
                f"{host} has no service {service['name']}",
                f"set quorumshift_{node['role']}_service, or install its unit",
            )


def broker_ids(facts: Facts) -> Iterable[Finding]:
    """The inventory's brokers are the live brokers, all of them."""
    if not facts.zookeeper.get("reached"):
        return  # the check `zookeeper` says so
    listed = [node["node_id"] for node in facts.brokers.values() if node.get("node_id") is not None]
    unknown = [host for host, node in sorted(facts.brokers.items()) if node.get("node_id") is None]
    strangers = {int(one) for one in facts.zookeeper.get("broker_ids") or {}} - set(listed)
    # These may be the brokers of hosts whose broker id is unknown, of which it is told below or by the check `reached`.
    for one in sorted(strangers) if len(strangers) > len(unknown) else ():
        yield Finding(
            f"broker {one} is alive in ZooKeeper and is not in the group kafka_broker",
            "add its host to the inventory: a broker that is left out would be left behind",
        )
    for host in unknown:
        if facts.brokers[host].get("reached") and not (facts.brokers[host].get("file") or {}).get("error"):
            yield Finding(f"the broker id of {host} could not be read", "set broker.id in its properties")
    for one, host in facts.dead.items():
        service = facts.brokers[host].get("service") or {}
        name, running = service.get("name", "the broker"), service.get("active")
        state = service.get("active_state") or ("active" if running else "down")
        lost = "".join(f"; {text}" for text in replicas.lost_with(facts, one))
        do = f"see in its log why it has no session in ZooKeeper: {name} runs" if running else f"start {name} on {host}"
        yield Finding(
            f"{host} has broker id {one}, which is not alive in ZooKeeper ({name} is {state}){lost}",
            f"{do}. If it is gone for good, reassign its replicas and take its host out of the inventory: the copy to "
            "KRaft would wait for it for ever",
        )
    for one in sorted({one for one in listed if listed.count(one) > 1}):
        hosts = sorted(host for host, node in facts.brokers.items() if node.get("node_id") == one)
        yield Finding(
            f"{shown(hosts)} have the same broker id, {one}",
            "they may be one host under several names: leave one of these in the inventory. Or one's properties are a "
            "copy: each broker has a broker.id of its own",
        )


def cluster_ids(facts: Facts) -> Iterable[Finding]:
    """One cluster: ZooKeeper's id stands in every meta.properties."""
    wanted = (facts.zookeeper.get("cluster_id") or {}).get("value")
    if facts.zookeeper.get("reached") and not wanted:
        yield Finding("/cluster/id does not exist in ZooKeeper", "check the chroot in quorumshift_zookeeper_connect")
        return
    for host, node in sorted(facts.cluster["nodes"].items()):
        for directory in node.get("log_dirs") or []:
            stored = (directory.get("meta") or {}).get("cluster.id")
            if stored and wanted and stored != wanted:
                yield Finding(
                    f"{host}: {directory['path']}/meta.properties says cluster id {stored}, ZooKeeper says {wanted}",
                    "this host, or the connect string, belongs to another cluster: correct the inventory",
                )


def node_ids(facts: Facts) -> Iterable[Finding]:
    """Controllers have node ids of their own."""
    seen: dict[int, str] = {
        node["node_id"]: host for host, node in facts.brokers.items() if node.get("node_id") is not None
    }
    for one in facts.zookeeper.get("broker_ids") or {}:
        seen.setdefault(int(one), f"broker {one}")
    for host, node in sorted(facts.controllers.items()):
        number = node.get("node_id")
        if number is None:
            yield Finding(
                f"{host} has no quorumshift_node_id",
                "give each controller one in the inventory, disjoint from all broker ids",
            )
        elif number in seen:
            yield Finding(
                f"{host} has quorumshift_node_id {number}, which is the id of {seen[number]}",
                "choose an id that nobody has",
            )
        else:
            seen[number] = host


def id_generation(facts: Facts) -> Iterable[Finding]:
    """Where ZooKeeper generates broker ids, above reserved.broker.max.id: a broker in migration mode takes none, and no
    controller has an id that a new broker may get."""
    generated = {
        host: int(values_of(node).get("reserved.broker.max.id") or RESERVED_IDS)
        for host, node in sorted(facts.brokers.items())
        if node.get("next") == phase.ZK and values_of(node).get("broker.id", "-1").strip() == "-1"
    }
    if not generated:
        return
    yield Finding(
        f"{shown(list(generated))} let ZooKeeper generate their broker ids",
        "know that the roll writes the id of each into its properties, with broker.id.generation.enable=false. Until "
        "the migration is done start no new broker without a broker.id",
    )
    least = min(generated.values())
    taken = [host for host, node in sorted(facts.controllers.items()) if (node.get("node_id") or 0) > least]
    if taken:
        yield Finding(
            f"node ids of {shown(taken)} are above {least}, where ZooKeeper generates broker ids",
            f"choose ids up to {least} that nobody has: a new broker might be given a controller's",
        )


def versions(facts: Facts) -> Iterable[Finding]:
    """One release everywhere, and inter.broker.protocol.version is that release's (metadata.version must equal it)."""
    found = {host: node.get("version") for host, node in facts.cluster["nodes"].items() if node.get("reached")}
    for host, version in sorted(found.items()):
        if version is None:
            yield Finding(f"the Kafka version of {host} could not be read", "set quorumshift_kafka_home")
    known = {version for version in found.values() if version}
    if len(known) > 1:
        mixed = ", ".join(f"{host} {version}" for host, version in sorted(found.items()))
        yield Finding(f"versions are mixed: {mixed}", "finish the upgrade first: all nodes run one release")
    for version in known:
        if _release(version) < (3, 9):
            yield Finding(
                f"Kafka {version} is installed", "upgrade to 3.9 first: it is the release that Kafka migrates from"
            )
    denied = "DESCRIBE_CONFIGS" not in (facts.rights or {}).get("cluster", ["DESCRIBE_CONFIGS"])  # see `tool_acls`
    for host, node in sorted(facts.brokers.items()):
        value = facts.running.get(host, {}).get("inter.broker.protocol.version")
        if value is None:
            # Of brokers that were not asked another check tells why.
            if host in facts.running and node.get("running") in (phase.ZK, "zk_migration") and not denied:
                yield Finding(
                    f"the running configuration of {host} could not be asked: {facts.running[host].get('error')}",
                    "give the tool's principal DescribeConfigs on the cluster",
                )
        elif node.get("version") and _release(value) != _release(node["version"]):
            yield Finding(
                f"{host} runs with inter.broker.protocol.version {value}, its release is {node['version']}",
                f"set it to {'.'.join(map(str, _release(node['version'])))} on every broker and "
                "roll them: the controllers' metadata.version must equal it",
            )


def _release(version: str) -> tuple:
    return tuple(int(part) for part in re.findall(r"\d+", version)[:2])
