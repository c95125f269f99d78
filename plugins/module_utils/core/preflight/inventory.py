# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Checks of the inventory against the cluster: hosts, brokers, ids, releases."""

from __future__ import annotations

from itertools import chain
from typing import Iterable, Mapping

from ansible_collections.quorumshift.kafka.plugins.module_utils.core.gates import not_compared
from ansible_collections.quorumshift.kafka.plugins.module_utils.core.migration import kraft_config, phase
from ansible_collections.quorumshift.kafka.plugins.module_utils.core.preflight import replicas
from ansible_collections.quorumshift.kafka.plugins.module_utils.core.preflight.check_facts import Facts, values_of
from ansible_collections.quorumshift.kafka.plugins.module_utils.core.releases import releases
from ansible_collections.quorumshift.kafka.plugins.module_utils.core.run import node_key, rehearsal_id
from ansible_collections.quorumshift.kafka.plugins.module_utils.core.text.advice import (
    Finding,
    format_names,
    quote_last_error,
)
from ansible_collections.quorumshift.kafka.plugins.module_utils.facts import ClusterFacts, NodeFacts

MOST_ID = 2**31 - 1


def groups(facts: Facts) -> Iterable[Finding]:
    """Yield inventory groups that are empty or overlap, and an even number of controllers."""
    for name, nodes in (("kafka_broker", facts.brokers), ("kafka_controller", facts.controllers)):
        if not nodes:
            yield Finding(f"the inventory has no host in the group {name}", f"add the group {name} to the inventory")
    for host, node in sorted(facts.cluster["nodes"].items()):
        if node.get("twice"):
            yield Finding(
                f"{host} is in both groups, kafka_broker and kafka_controller",
                "give each controller a name of its own: it is another process. KIP-866 has no combined mode",
            )
    count = len(facts.controllers)
    if count and count % 2 == 0:
        yield Finding(
            f"the group kafka_controller has {count} hosts",
            "give it an odd number, 3 or 5: one more controller tolerates no more failures",
        )


def reached(facts: Facts) -> Iterable[Finding]:
    """Yield each host that was not reached, each properties file and service that was not found, and the files of an
    earlier version."""
    yield from old_layout(facts.cluster)
    for host, node in sorted(facts.cluster["nodes"].items()):
        if not node.get("reached"):
            yield Finding(
                f"{host} was not reached: {node.get('error')}",
                f"fix the connection or the inventory: ansible -i INVENTORY {host} -m ansible.builtin.ping",
            )
        else:
            yield from missing(host, node)
        if node["role"] == "controller" and node.get("version") and not node.get("storage_tool", True):
            yield Finding(
                f"{host} has no kafka-storage.sh and no kafka-storage, which formats the controller's log directory",
                "set quorumshift_kafka_home to the directory that has it in bin/ (/usr for Confluent's packages)",
            )


def missing(host: str, node: NodeFacts) -> Iterable[Finding]:
    """Yield the properties file or service that a host lacks, or the file that could not be read. The tool writes a
    controller's file."""
    file, service = node.get("file") or {}, node.get("service") or {}
    if file.get("error"):
        denied = "Permission denied" in file["error"]
        yield Finding(
            f"{host}: {file['error']}",
            "set ansible_become: the tool reads and writes it as root" if denied else "fix the file",
        )
    elif node["role"] == "broker" and not file.get("exists"):
        yield Finding(
            f"{host} has no file {file.get('path')}",
            "set quorumshift_broker_config_file to the broker's properties file",
        )
    elif not service.get("exists", True):
        yield Finding(
            f"{host} has no service {service['name']}",
            f"set quorumshift_{node['role']}_service, or install its unit",
        )


def old_layout(cluster: ClusterFacts) -> Iterable[Finding]:
    """Yield the files of an earlier version, which kept one set for each host. They stop every run."""
    for host, (seen, do) in sorted(node_key.find_old_layout(cluster["nodes"], phase.cluster_id(cluster)).items()):
        yield Finding(f"{host}: {seen}", do)


def missing_directories(host: str, node: NodeFacts) -> Iterable[Finding]:
    """Yield the log directories that a broker lacks, or that cannot be read."""
    for directory in node.get("log_dirs") or []:
        if not directory.get("exists") or directory.get("error"):
            problem = f"cannot be read: {directory['error']}" if directory.get("error") else "does not exist"
            yield Finding(
                f"{host}: log directory {directory['path']} {problem}",
                "fix it: a broker in migration mode halts when a log directory fails (KAFKA-16431)",
            )


def same_hosts(facts: Facts) -> Iterable[Finding]:
    """Yield the names that are one host: the tool would stop one node twice, and would count one host as two. A broker
    and a controller on one host are two nodes, of which one failure takes both."""
    nodes = facts.cluster["nodes"]
    by_host: dict[tuple, dict[str, list[str]]] = {}
    by_address: dict[str, list[str]] = {}
    for name, node in sorted(nodes.items()):
        machine: Mapping = node.get("host") or {}
        # Clones share the machine id, containers the boot id; together with the host's name they are one host.
        identity = (machine.get("machine_id"), (node.get("clock") or {}).get("boot_id"), node.get("hostname"))
        if all(identity) and not node.get("twice"):
            by_host.setdefault(identity, {}).setdefault(node["role"], []).append(name)
        if node.get("address") and not node.get("twice"):
            by_address.setdefault(node["address"], []).append(name)
    several = [names for roles in by_host.values() for names in roles.values() if len(names) > 1]
    for names in several:
        yield Finding(
            f"{format_names(names)} are one host, {nodes[names[0]]['hostname']}, with the machine id "
            f"{nodes[names[0]]['host']['machine_id']}",
            "keep one name in the inventory. Several brokers, or several controllers, on one host are not supported: "
            "give each a host of its own",
        )
    beside = [sorted(chain.from_iterable(roles.values())) for roles in by_host.values() if len(roles) > 1]
    if beside and not rehearsal_id.is_rehearsal(phase.cluster_id(facts.cluster)):
        yield Finding(
            f"a broker and a controller share a host: {'; '.join(map(format_names, beside))}. A failure of the host "
            "takes both",
            "keep in mind that the quorum needs a majority of these hosts, as ZooKeeper does there",
            warns=True,
        )
    for address, names in by_address.items():
        if len(names) > 1 and not any(set(names) <= set(known) for known in several):
            yield Finding(
                f"{format_names(names)} have one address, {address}",
                "keep one name in the inventory if they are one host. Otherwise correct advertised.listeners, or "
                "quorumshift_controller_host and quorumshift_controller_port",
            )


def broker_ids(facts: Facts) -> Iterable[Finding]:
    """Yield the differences between the brokers of the inventory and the registered brokers."""
    if not facts.zookeeper.get("reached"):
        return  # the check `zookeeper` reports it
    listed = [node["node_id"] for node in facts.brokers.values() if node.get("node_id") is not None]
    unknown = [host for host, node in sorted(facts.brokers.items()) if node.get("node_id") is None]
    unlisted = {int(broker) for broker in facts.zookeeper.get("broker_ids") or {}} - set(listed)
    # They may be the brokers of hosts whose broker id is unknown: these are reported below or by the check `reached`.
    for broker in sorted(unlisted) if len(unlisted) > len(unknown) else ():
        yield Finding(
            f"broker {broker} is registered in ZooKeeper but is not in the group kafka_broker",
            "add its host to the inventory: the tool migrates only the brokers of the inventory",
        )
    for host in unknown:
        if facts.brokers[host].get("reached") and not (facts.brokers[host].get("file") or {}).get("error"):
            yield Finding(f"the broker id of {host} could not be read", "set broker.id in its properties file")
    for broker, host in facts.dead.items():
        service = facts.brokers[host].get("service") or {}
        name, running = service.get("name", "the broker"), service.get("active")
        state = service.get("active_state") or ("active" if running else "down")
        lost = "".join(f"; {text}" for text in replicas.find_lost_with(facts, broker)) + quote_last_error(
            facts.brokers[host]
        )
        do = f"find in its log why it has no ZooKeeper session: {name} runs" if running else f"start {name} on {host}"
        yield Finding(
            f"broker {broker} on {host} is not registered in ZooKeeper ({name} is {state}){lost}",
            f"{do}. If the broker is lost, reassign its replicas and remove its host from the inventory: the initial "
            "copy waits for it forever",
        )
    for broker in sorted({broker for broker in listed if listed.count(broker) > 1}):
        hosts = sorted(host for host, node in facts.brokers.items() if node.get("node_id") == broker)
        yield Finding(
            f"{format_names(hosts)} have the same broker id, {broker}",
            "keep one name in the inventory if they are one host. Otherwise give each broker a broker.id of its own",
        )


def cluster_ids(facts: Facts) -> Iterable[Finding]:
    """Yield each meta.properties whose cluster id differs from ZooKeeper's."""
    wanted = (facts.zookeeper.get("cluster_id") or {}).get("value")
    if facts.zookeeper.get("reached") and not wanted:
        yield Finding("/cluster/id does not exist in ZooKeeper", "check the chroot in quorumshift_zookeeper_connect")
        return
    for host, node in sorted(facts.cluster["nodes"].items()):
        for directory in node.get("log_dirs") or []:
            stored = (directory.get("meta") or {}).get("cluster.id")
            if stored and wanted and stored != wanted:
                yield Finding(
                    f"{host}: {directory['path']}/meta.properties has cluster id {stored}, ZooKeeper has {wanted}",
                    "correct the inventory: the host or quorumshift_zookeeper_connect belongs to another cluster",
                )


def node_ids(facts: Facts) -> Iterable[Finding]:
    """Yield each controller without a valid node id, or with the id of another node, present or past."""
    seen: dict[int, str] = {
        node["node_id"]: host for host, node in facts.brokers.items() if node.get("node_id") is not None
    }
    for broker in facts.zookeeper.get("broker_ids") or {}:
        seen.setdefault(int(broker), f"broker {broker}")
    configured = (facts.metadata or {}).get("configs", {}).get("broker", {})
    for host, node in sorted(facts.controllers.items()):
        number = node.get("node_id")
        if number is None:
            yield Finding(
                f"{host} has no quorumshift_node_id",
                "set it in the inventory to an id that no broker and no other controller has",
            )
        elif not isinstance(number, int) or not 0 <= number <= MOST_ID:
            yield Finding(
                f"{host} has quorumshift_node_id {number}, which is no valid id",
                f"choose a number from 0 to {MOST_ID} that no broker and no other controller has",
            )
        elif number in seen:
            yield Finding(
                f"{host} has quorumshift_node_id {number}, which is the id of {seen[number]}",
                "choose an id that no broker and no other controller has",
            )
        elif str(number) in configured:
            yield Finding(
                f"{host} has quorumshift_node_id {number}, and ZooKeeper has configs of a former broker {number}",
                f"choose another id, or delete /config/brokers/{number}: the controller would apply these configs",
            )
        else:
            seen[number] = host


def id_generation(facts: Facts) -> Iterable[Finding]:
    """Yield brokers whose ids ZooKeeper generates, which migration mode does not support; controllers with an id in the
    range of generated ids; and brokers with an id in their file that Kafka rejects."""
    in_zookeeper_mode = {
        host: values_of(node) for host, node in sorted(facts.brokers.items()) if node.get("next") == phase.ZK
    }
    for host, values in in_zookeeper_mode.items():
        if kraft_config.rejects_own_id(values):
            path = facts.brokers[host]["file"]["path"]
            yield Finding(
                f"{path} of {host} has broker.id {kraft_config.own_id(values)}, above reserved.broker.max.id "
                f"{kraft_config.reserved_ids(values)} and with broker.id.generation.enable: the broker does not start "
                "with it",
                f"set broker.id.generation.enable=false in {path}. No restart is needed",
            )
    generated = {host: values for host, values in in_zookeeper_mode.items() if kraft_config.own_id(values) is None}
    if not generated:
        return
    yield Finding(
        f"{format_names(list(generated))} let ZooKeeper generate their broker ids",
        "leave these brokers as they are: the rolling restart writes each broker.id into the properties file. Do not "
        "start a new broker without a broker.id during the migration",
        warns=True,
    )
    least = min(map(kraft_config.reserved_ids, generated.values()))
    numbers = {host: node.get("node_id") for host, node in sorted(facts.controllers.items())}
    taken = [host for host, number in numbers.items() if isinstance(number, int) and number > least]
    if taken:
        yield Finding(
            f"node ids of {format_names(taken)} are above {least}, in the range of broker ids that ZooKeeper generates",
            f"choose unused ids up to {least}: ZooKeeper may give a controller's id to a new broker",
        )


def versions(facts: Facts) -> Iterable[Finding]:
    """Yield mixed or old releases, and each inter.broker.protocol.version that is not the release's."""
    found = {host: node.get("version") for host, node in facts.cluster["nodes"].items() if node.get("reached")}
    for host, version in sorted(found.items()):
        if version is None:
            yield Finding(
                f"the Kafka version of {host} could not be read",
                "set quorumshift_kafka_home to the directory that has libs/kafka_*.jar or share/java/kafka/kafka_*.jar "
                "(/usr for Confluent's packages)",
            )
    known = {version for version in found.values() if version}
    if len(known) > 1:
        mixed = ", ".join(f"{host} {version}" for host, version in sorted(found.items()))
        yield Finding(f"versions are mixed: {mixed}", "finish the upgrade first: all nodes must run one release")
    cluster_id = phase.cluster_id(facts.cluster) or ""
    for version in sorted(known):
        yield from _explain_unfit(version, cluster_id, facts.accept_not_compared)
    for host, node in sorted(facts.brokers.items()):
        runs = facts.running.get(host)
        if runs is None or node.get("running") not in (phase.ZK, "zk_migration"):
            continue  # another check reports it
        value = runs.get("inter.broker.protocol.version")
        if value is not None:
            version = node.get("version") or ""
            release = releases.parse_release(version) or releases.parse_acceptable(version)
            if release == releases.WANTED and releases.parse_protocol(value) != release:
                yield Finding(
                    f"{host} runs with inter.broker.protocol.version {value}, its release is {node['version']}",
                    f"set it to {releases.format_release(release)} on every broker and restart them one by one: the "
                    "controllers' metadata.version must equal it",
                )
        elif not runs.get("denied"):
            yield Finding(
                f"the running config of {host} could not be read: {runs.get('error')}",
                "run it again. If the error stays, raise quorumshift_probe_timeout, or find in the broker's log why it "
                "does not answer",
            )
        elif "DESCRIBE_CONFIGS" in (facts.rights or {}).get("cluster", ["DESCRIBE_CONFIGS"]):  # else see `tool_acls`
            yield Finding(
                f"the running config of {host} could not be read: {runs['error']}",
                "grant the tool's principal DescribeConfigs on the cluster",
            )


def _explain_unfit(version: str, cluster_id: str, accepted: Iterable[str]) -> Iterable[Finding]:
    release = releases.parse_release(version)
    of_other = releases.parse_acceptable(version) if release is None else None
    if of_other == releases.WANTED:
        name = not_compared.build(version)
        if cluster_id and not not_compared.decide([name], cluster_id, accepted).open:
            yield Finding(
                f"Kafka {version} is installed, {releases.describe_kind(version)}, and its token is given: the "
                "comparison lists what it cannot compare",
                "read not_compared in result.json at each gate, and ask the vendor what these records and znodes are",
                warns=True,
            )
            return
        yield Finding(
            f"Kafka {version} is installed, {releases.describe_kind(version)}",
            f"install {releases.SUPPORTED}: this build may write metadata of its own, which the tool cannot compare. "
            f"To continue without that comparison, add {not_compared.option(cluster_id or 'CLUSTER_ID', [name])}",
        )
    elif release is None and of_other is not None:
        yield from _explain_release(version, of_other)
    elif release is None:
        yield Finding(
            f"Kafka {version} is installed, {releases.describe_kind(version)}",
            f"install {releases.SUPPORTED}: another build may write metadata records of its own, which the tool cannot "
            "compare",
        )
    else:
        yield from _explain_release(version, release)


def _explain_release(version: str, release: tuple[int, int]) -> Iterable[Finding]:
    if release > releases.WANTED:
        yield Finding(
            f"Kafka {releases.describe_version(version)} is installed: it has no ZooKeeper",
            f"migrate with {releases.SUPPORTED}, and upgrade afterwards",
        )
    elif release < releases.WANTED:
        yield Finding(
            f"Kafka {releases.describe_version(version)} is installed",
            f"upgrade every node to {releases.SUPPORTED} first: it is the last release with ZooKeeper",
        )
