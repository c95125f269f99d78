# Copyright: (c) 2026, Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The hazards that can be seen before anything is changed: one function a check, pure, over collected facts.

A check returns what it found wrong as `Found` (where, what is seen, what to do); `CHECKS` gives each its stable id,
title, severity and source. A check whose facts are missing says so, and blocks like a finding does.
"""

from __future__ import annotations

import re
from typing import Any, Callable, Iterable, Mapping, NamedTuple

from . import kraft_config, phase, restart, zk_metadata


class Found(NamedTuple):
    """One thing that a check found."""

    seen: str
    do: str


class Check(NamedTuple):
    """`severity` is `blocks` or `warns`; `source` is what the check relies on."""

    id: str
    title: str
    severity: str
    source: str
    find: Callable[[Any], Iterable[Found]]


class Facts(NamedTuple):
    """What the checks look at. `cluster`: probes.cluster.collect; `metadata`: judgements.zk_metadata.normalise of
    ZooKeeper, None when it could not be read; `running`: each broker host's running configuration ({"error"} when it
    could not be asked); `controller_config`: the operator's quorumshift_controller_config;
    `controller_protocol`: of the controller listener; `controller_principal`: what a controller is to the brokers;
    `controller_super_users`: the principals of quorumshift_controller_super_users;
    `min_isr`: {topic: int}."""

    cluster: Mapping
    metadata: Mapping | None
    running: Mapping[str, Mapping[str, str]]
    controller_config: Mapping[str, str]
    controller_protocol: str
    controller_principal: str
    controller_super_users: Iterable[str]
    min_isr: Mapping[str, int]

    @property
    def brokers(self) -> dict[str, Mapping]:
        """The nodes of the group kafka_broker."""
        return {host: node for host, node in self.cluster["nodes"].items() if node["role"] == "broker"}

    @property
    def controllers(self) -> dict[str, Mapping]:
        """The nodes of the group kafka_controller."""
        return phase.controllers(self.cluster)

    @property
    def zookeeper(self) -> Mapping:
        """What ZooKeeper testifies."""
        return self.cluster["zookeeper"]


def run(facts: Facts, before_copy: bool = True) -> list[dict]:
    """Return the findings of all checks: [{id, title, severity, source, seen, do}]; `before_copy` adds the checks of
    what must hold before ZooKeeper's metadata is copied."""
    findings = []
    for check in CHECKS if before_copy else ALWAYS:
        for found in check.find(facts):
            told = check._asdict()
            del told["find"]
            findings.append({**told, **found._asdict()})
    return findings


def groups(facts: Facts) -> Iterable[Found]:
    """Inventory groups: present, disjoint, an odd number of controllers."""
    for name, nodes in (("kafka_broker", facts.brokers), ("kafka_controller", facts.controllers)):
        if not nodes:
            yield Found(f"the inventory has no host in the group {name}", f"add the group {name} to the inventory")
    for host, node in sorted(facts.cluster["nodes"].items()):
        if node.get("twice"):
            yield Found(
                f"{host} is in both groups, kafka_broker and kafka_controller",
                "give controllers hosts of their own: no process can be both on its way from ZooKeeper",
            )
    count = len(facts.controllers)
    if count and count % 2 == 0:
        yield Found(
            f"the group kafka_controller has {count} hosts",
            "give it an odd number: an even one tolerates no more failures than the odd one below it",
        )


def reached(facts: Facts) -> Iterable[Found]:
    """Every host of the inventory was reached and its properties could be read."""
    for host, node in sorted(facts.cluster["nodes"].items()):
        file = node.get("file") or {}
        if not node.get("reached"):
            yield Found(f"{host} was not reached: {node.get('error')}", "mend the connection, or the inventory")
        elif file.get("error"):
            yield Found(f"{host}: {file['error']}", "mend the file")
        elif node["role"] == "broker" and not file.get("exists"):
            yield Found(
                f"{host} has no file {file.get('path')}",
                "set quorumshift_broker_config_file to the broker's properties",
            )
        elif not (node.get("service") or {}).get("exists", True):
            yield Found(
                f"{host} has no service {node['service']['name']}",
                f"set quorumshift_{node['role']}_service, or install its unit",
            )


def broker_ids(facts: Facts) -> Iterable[Found]:
    """The inventory's brokers are the live brokers, all of them."""
    if not facts.zookeeper.get("reached"):
        yield Found(f"ZooKeeper does not answer: {facts.zookeeper.get('error')}", "mend quorumshift_zookeeper_connect")
        return
    live = {int(one) for one in facts.zookeeper.get("broker_ids") or {}}
    registered = {int(one) for log in _logs(facts) for one in log.get("brokers") or {}}
    listed = {node.get("node_id"): host for host, node in facts.brokers.items()}
    for one in sorted(live - set(listed)):
        yield Found(
            f"broker {one} is alive in ZooKeeper and is not in the group kafka_broker",
            "add its host to the inventory: a broker that is left out would be left behind",
        )
    for one, host in sorted(listed.items(), key=str):
        if one is None:
            yield Found(f"the broker id of {host} could not be read", "set broker.id in its properties")
        elif one not in live and one not in registered:
            yield Found(
                f"{host} has broker id {one}, which is not alive in ZooKeeper",
                "start it; if it is gone for good, reassign its replicas and take its host out of the inventory",
            )
    if len(listed) != len(facts.brokers):
        yield Found("two hosts of the group kafka_broker have the same broker id", "look at their broker.id")


def cluster_ids(facts: Facts) -> Iterable[Found]:
    """One cluster: ZooKeeper's id stands in every meta.properties."""
    wanted = (facts.zookeeper.get("cluster_id") or {}).get("value")
    if facts.zookeeper.get("reached") and not wanted:
        yield Found("/cluster/id does not exist in ZooKeeper", "check the chroot in quorumshift_zookeeper_connect")
        return
    for host, node in sorted(facts.cluster["nodes"].items()):
        for directory in node.get("log_dirs") or []:
            stored = (directory.get("meta") or {}).get("cluster.id")
            if stored and wanted and stored != wanted:
                yield Found(
                    f"{host}: {directory['path']}/meta.properties says cluster id {stored}, ZooKeeper says {wanted}",
                    "this host, or the connect string, belongs to another cluster: correct the inventory",
                )


def versions(facts: Facts) -> Iterable[Found]:
    """One release everywhere, and inter.broker.protocol.version is that release's (metadata.version must equal it)."""
    found = {host: node.get("version") for host, node in facts.cluster["nodes"].items() if node.get("reached")}
    for host, version in sorted(found.items()):
        if version is None:
            yield Found(f"the Kafka version of {host} could not be read", "set quorumshift_kafka_home")
    known = {version for version in found.values() if version}
    if len(known) > 1:
        shown = ", ".join(f"{host} {version}" for host, version in sorted(found.items()))
        yield Found(f"versions are mixed: {shown}", "finish the upgrade first: all nodes run one release")
    for version in known:
        if _release(version) < (3, 9):
            yield Found(
                f"Kafka {version} is installed", "upgrade to 3.9 first: it is the release that Kafka migrates from"
            )
    for host, node in sorted(facts.brokers.items()):
        value = facts.running.get(host, {}).get("inter.broker.protocol.version")
        if value is None:
            if node.get("running") in (phase.ZK, "zk_migration"):
                reason = facts.running.get(host, {}).get("error")
                yield Found(
                    f"the running configuration of {host} could not be asked: {reason}",
                    "give the tool's principal DescribeConfigs on the cluster",
                )
        elif node.get("version") and _release(value) != _release(node["version"]):
            yield Found(
                f"{host} runs with inter.broker.protocol.version {value}, its release is {node['version']}",
                f"set it to {'.'.join(map(str, _release(node['version'])))} on every broker and "
                "roll them: the controllers' metadata.version must equal it",
            )


def partitions(facts: Facts) -> Iterable[Found]:
    """No partition is offline, under-replicated or under min ISR."""
    found = facts.cluster.get("topics") or {}
    excused = restart.unavoidable(found.get("partitions") or {}, facts.min_isr)
    for trouble in restart.troubles(found, facts.min_isr, phase.broker_ids(facts.cluster), excused):
        yield Found(trouble, "wait for the replicas to catch up, or mend the brokers that hold them")


def reassignments(facts: Facts) -> Iterable[Found]:
    """No reassignment is in flight."""
    if facts.metadata is None:
        return
    for name in zk_metadata.reassignments(facts.metadata):
        yield Found(f"{name} is being reassigned", "wait for it, or cancel it: kafka-reassign-partitions.sh --cancel")
    if (facts.zookeeper.get("reassign_partitions") or {}).get("exists"):
        yield Found(
            "/admin/reassign_partitions exists: a reassignment that the controller has not taken up would be lost",
            "wait for it to be taken up, or cancel it",
        )


def dead_replicas(facts: Facts) -> Iterable[Found]:
    """Every replica's broker is alive: KRaft waits for every broker in any replica list, for ever."""
    if facts.metadata is None:
        yield Found("ZooKeeper's metadata could not be read", "see the other findings")
        return
    for broker, names in zk_metadata.unregistered_replicas(facts.metadata).items():
        shown = ", ".join(names[:5]) + (f" and {len(names) - 5} more" if len(names) > 5 else "")
        yield Found(
            f"broker {broker} holds replicas and is not there: {shown}",
            "start the broker, or reassign its replicas: the copy to KRaft would wait for it for ever",
        )


def node_ids(facts: Facts) -> Iterable[Found]:
    """Controllers have node ids of their own."""
    seen: dict[int, str] = {
        node["node_id"]: host for host, node in facts.brokers.items() if node.get("node_id") is not None
    }
    for one in facts.zookeeper.get("broker_ids") or {}:
        seen.setdefault(int(one), f"broker {one}")
    for host, node in sorted(facts.controllers.items()):
        number = node.get("node_id")
        if number is None:
            yield Found(
                f"{host} has no quorumshift_node_id",
                "give each controller one in the inventory, disjoint from all broker ids",
            )
        elif number in seen:
            yield Found(
                f"{host} has quorumshift_node_id {number}, which is the id of {seen[number]}",
                "choose an id that nobody has",
            )
        else:
            seen[number] = host


def stale_migration(facts: Facts) -> Iterable[Found]:
    """No trace of an earlier attempt in ZooKeeper: with it the copy is skipped and ZooKeeper's metadata deleted."""
    migration = facts.zookeeper.get("migration") or {}
    do = "with every controller stopped and its log directory wiped, delete the znode /migration"
    if migration.get("malformed"):
        yield Found(f"/migration is malformed: {migration['malformed']}", do)
    elif (migration.get("kraft_metadata_offset") or -1) > 0:
        yield Found(
            f"/migration says that a copy was done up to offset {migration['kraft_metadata_offset']}, yet the cluster "
            "runs in ZooKeeper mode: a new quorum would skip the copy and delete topics, ACLs and configs in ZooKeeper",
            do,
        )


def encoder_secret(facts: Facts) -> Iterable[Found]:
    """Encrypted dynamic configs can be decrypted by the controllers."""
    if facts.metadata is None:
        return
    encrypted = sorted(
        f"{key} of broker {entity or 'default'}"
        for entity, values in facts.metadata["configs"]["broker"].items()
        for key, value in values.items()
        if isinstance(value, dict)
    )
    if not encrypted:
        return
    shown = ", ".join(encrypted[:3])
    for host, node in sorted(facts.brokers.items()):
        if kraft_config.ENCODER_SECRET not in _values(node) and node.get("reached"):
            yield Found(
                f"ZooKeeper holds encrypted configs ({shown}), and {host} has no {kraft_config.ENCODER_SECRET}",
                f"set {kraft_config.ENCODER_SECRET} as where they were written: controllers would copy ciphertext",
            )


def agreement(facts: Facts) -> Iterable[Found]:
    """Brokers agree on what controllers take from them."""
    values = {host: _values(node) for host, node in facts.brokers.items() if _values(node)}
    zookeeper_mode = {host: one for host, one in values.items() if "zookeeper.connect" in one}
    for key, by_host in kraft_config.disagreements(zookeeper_mode).items():
        if key in facts.controller_config:
            continue
        secret = any(str(value).startswith("sealed:") for value in by_host.values())
        shown = (
            "their values differ" if secret else ", ".join(f"{host} {value}" for host, value in sorted(by_host.items()))
        )
        yield Found(
            f"brokers disagree on {key}, which controllers take from them: {shown}",
            f"make it equal on all brokers, or say the controllers' own in quorumshift_controller_config: {key}",
        )


def controller_directories(facts: Facts) -> Iterable[Found]:
    """What stands in a controller's log directory is this attempt's, or nothing."""
    cluster = (facts.zookeeper.get("cluster_id") or {}).get("value")
    offset = (facts.zookeeper.get("migration") or {}).get("kraft_metadata_offset")
    registered = {one for log in _logs(facts) for one in log.get("brokers") or {}}
    modes = {str(node.get("node_id")): node.get("running") or node.get("next") for node in facts.brokers.values()}
    unsafe = any(mode == "zk_migration" for mode in modes.values())
    wipe = (
        "bring every broker back to plain ZooKeeper mode first: wiping controllers under brokers in migration mode "
        "stops them all"
        if unsafe
        else "if it is of no use to anybody, stop the service and empty the directory"
    )
    for host, node in sorted(facts.controllers.items()):
        for directory in node.get("log_dirs") or []:
            meta = directory.get("meta") or {}
            where = f"{host}: {directory['path']}"
            if directory.get("exists") and not directory.get("empty") and not meta:
                yield Found(f"{where} is not empty and has no meta.properties", wipe)
            elif meta and (meta.get("cluster.id") != cluster or meta.get("node.id") != str(node.get("node_id"))):
                yield Found(
                    f"{where} was formatted for cluster {meta.get('cluster.id')}, node {meta.get('node.id')}", wipe
                )
        state = (node.get("metadata_log") or {}).get("zk_migration_state")
        if state not in (None, "PRE_MIGRATION"):
            yield Found(f"{host}: its metadata log is in state {state}, an earlier attempt's", wipe)
    if registered and offset != -1:
        yield Found(f"brokers are registered in the controllers' log, and /migration stands at {offset}", wipe)
    for one in sorted(registered):
        if modes.get(one) != "zk_migration":
            yield Found(
                f"broker {one} is registered in the controllers' log and runs in mode {modes.get(one)}: the copy would "
                "not wait for it",
                wipe,
            )


def controller_acl(facts: Facts) -> Iterable[Found]:
    """Brokers let controllers in: LeaderAndIsr, UpdateMetadata and StopReplica want ClusterAction on the cluster."""
    principal = facts.controller_principal
    for host, node in sorted(facts.brokers.items()):
        values = _values(node)
        plain = kraft_config.inter_broker_protocol(values) == "PLAINTEXT"
        if plain and principal != kraft_config.ANONYMOUS:
            yield Found(
                f"quorumshift_controller_principal is {principal}, and on the PLAINTEXT listener of {host} a "
                "controller is User:ANONYMOUS",
                f"set quorumshift_controller_principal to {kraft_config.ANONYMOUS}",
            )
        elif not plain and principal == kraft_config.ANONYMOUS:
            yield Found(
                f"quorumshift_controller_principal is not set, and brokers and controllers log in at {host}",
                "set it to the principal with which controllers log in there",
            )
        elif not values.get("authorizer.class.name") or principal in kraft_config.super_users(values):
            continue
        elif facts.metadata is not None and not _may_cluster_action(facts.metadata["acls"], principal):
            yield Found(
                f"{principal}, as whom controllers dial {host}, has no ClusterAction there",
                f"kafka-acls.sh --add --allow-principal {principal} --operation ClusterAction --cluster, or make it a "
                "super user",
            )


def _may_cluster_action(acls: Iterable[Mapping], principal: str) -> bool:
    ours = [
        acl
        for acl in acls
        if acl["resource_type"] == "CLUSTER"
        and acl["principal"] in (principal, "User:*")
        and acl["operation"] in ("CLUSTER_ACTION", "ALL")
    ]
    allowed = any(acl["permission"] == "ALLOW" and acl["host"] == "*" for acl in ours)
    return allowed and not any(acl["permission"] == "DENY" for acl in ours)


def controller_super_users(facts: Facts) -> Iterable[Found]:
    """Controllers let each other in and nobody unknown: a new quorum knows no ACL, only super users."""
    given = list(facts.controller_super_users)
    with_authorizer = [_values(node) for node in facts.brokers.values() if _values(node).get("authorizer.class.name")]
    if not with_authorizer:
        return
    secured = facts.controller_protocol != "PLAINTEXT"
    principal = facts.controller_principal if secured else kraft_config.ANONYMOUS
    if secured and kraft_config.ANONYMOUS in given:
        yield Found(
            f"{kraft_config.ANONYMOUS} would be a super user on controllers, whose listener is "
            f"{facts.controller_protocol}",
            "set quorumshift_controller_super_users to the principals that dial the controllers and are no super users "
            "on brokers: controllers, brokers, this tool",
        )
    elif any(principal not in (*kraft_config.super_users(values), *given) for values in with_authorizer):
        yield Found(
            f"{principal}, as whom controllers dial each other, is no super user on them",
            "add it to quorumshift_controller_super_users: a new quorum knows no ACL yet",
        )


def unreadable(facts: Facts) -> Iterable[Found]:
    """ZooKeeper holds nothing that the copy would fail on, or lose."""
    for problem in (facts.metadata or {}).get("problems", []):
        yield Found(
            f"ZooKeeper {problem['path']}: {problem['reason']}",
            "mend or remove it: the copy would fail on it, or lose it",
        )


def controller_listener(facts: Facts) -> Iterable[Found]:
    """The controller listener takes no SCRAM and no delegation token: both live in the metadata behind it."""
    mechanism = str(facts.controller_config.get("sasl.mechanism.controller.protocol", ""))
    if facts.controller_protocol.startswith("SASL") and (mechanism.startswith("SCRAM") or not mechanism):
        yield Found(
            f"the controller listener is {facts.controller_protocol} with {mechanism or 'no mechanism set'}",
            "set sasl.mechanism.controller.protocol in quorumshift_controller_config to PLAIN or GSSAPI, or use SSL",
        )


def log_directories(facts: Facts) -> Iterable[Found]:
    """Broker log directories are whole."""
    for host, node in sorted(facts.brokers.items()):
        for directory in node.get("log_dirs") or []:
            if not directory.get("exists") or directory.get("error"):
                yield Found(
                    f"{host}: log directory {directory['path']} {directory.get('error') or 'is not there'}",
                    "mend it: a broker in migration mode halts when a log directory fails (KAFKA-16431)",
                )
            elif (directory.get("meta") or {}).get("version") == "1" and node.get("running") == phase.ZK:
                yield Found(
                    f"{host}: {directory['path']}/meta.properties is of version 1",
                    "it was formatted for KRaft; a plain ZooKeeper-mode broker does not start with it (KAFKA-20762)",
                )


def authorizer(facts: Facts) -> Iterable[Found]:
    """The authorizer is one of Kafka's own."""
    known = ("", kraft_config.ZOOKEEPER_AUTHORIZER, kraft_config.STANDARD_AUTHORIZER)
    for host, node in sorted(facts.brokers.items()):
        name = _values(node).get("authorizer.class.name", "").strip()
        if name not in known:
            yield Found(
                f"{host} uses the authorizer {name}",
                "see that it works in KRaft mode and on controllers; it is kept as it is",
            )


def _logs(facts: Facts) -> list[Mapping]:
    return [node["metadata_log"] for node in facts.controllers.values() if phase.usable_log(node)]


def _values(node: Mapping) -> Mapping[str, str]:
    return (node.get("file") or {}).get("properties") or {}


def _release(version: str) -> tuple:
    return tuple(int(part) for part in re.findall(r"\d+", version)[:2])


ALWAYS = (
    Check("groups", "Inventory groups", "blocks", "KIP-866, dedicated controllers", groups),
    Check("reached", "Hosts and files", "blocks", "an unread host cannot be judged", reached),
    Check("node_ids", "Node ids of controllers", "blocks", "KIP-866, node.id disjoint from broker ids", node_ids),
    Check("cluster_ids", "Cluster ids", "blocks", "KAFKA-7335, MetaPropertiesEnsemble", cluster_ids),
)
CHECKS = (
    *ALWAYS,
    Check("broker_ids", "Brokers of the inventory", "blocks", "KRaftMigrationDriver, WAIT_FOR_BROKERS", broker_ids),
    Check(
        "versions",
        "Release and protocol version",
        "blocks",
        "ClusterControlManager.processRegistrationFeature",
        versions,
    ),
    Check("partitions", "Partition health", "blocks", "KIP-866, no broker offline", partitions),
    Check("reassignments", "Reassignments", "blocks", "ZkMigrationClient does not copy /admin", reassignments),
    Check(
        "dead_replicas", "Replicas of dead brokers", "blocks", "KRaftMigrationDriver, WAIT_FOR_BROKERS", dead_replicas
    ),
    Check("stale_migration", "Earlier attempts in ZooKeeper", "blocks", "KAFKA-17146, KAFKA-19480", stale_migration),
    Check("unreadable", "Metadata that would not be copied", "blocks", "ZkMigrationClient.readAllMetadata", unreadable),
    Check("encoder_secret", "Encrypted configs", "blocks", "ControllerServer, PasswordEncoder.NOOP", encoder_secret),
    Check("agreement", "Settings that controllers take", "blocks", "kraft_config.CONTROLLER_EVALUATES", agreement),
    Check(
        "controller_directories",
        "Controllers' log directories",
        "blocks",
        "WAIT_FOR_BROKERS counts old registrations",
        controller_directories,
    ),
    Check("controller_listener", "Controller listener", "blocks", "KIP-900, KIP-48", controller_listener),
    Check("controller_acl", "Controllers' access to brokers", "blocks", "KafkaApis, ClusterAction", controller_acl),
    Check(
        "controller_super_users",
        "Super users of controllers",
        "blocks",
        "StandardAuthorizer, KIP-801",
        controller_super_users,
    ),
    Check("log_directories", "Broker log directories", "blocks", "KAFKA-16431, KAFKA-20762", log_directories),
    Check("authorizer", "Authorizer", "warns", "KIP-801", authorizer),
)
