# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The checks that run before the tool changes anything. Pure, over collected facts.

A check yields `Finding`s (what is wrong, what to do). `CHECKS` gives each check its stable id, title,
severity and source.
"""

from __future__ import annotations

from types import MappingProxyType
from typing import Any, Callable, Iterable, Mapping, NamedTuple

from ansible_collections.quorumshift.kafka.plugins.module_utils import message_ids
from ansible_collections.quorumshift.kafka.plugins.module_utils.core.preflight import (
    access,
    clocks,
    directories,
    inventory,
    paths,
    replicas,
    requests,
    services,
    settings,
    spark,
    zookeeper,
)
from ansible_collections.quorumshift.kafka.plugins.module_utils.core.preflight.check_facts import Facts, run_check
from ansible_collections.quorumshift.kafka.plugins.module_utils.core.text.advice import Finding

_ARTIFACTS = "preflight.json and the newest facts-*.json of the run directory, which hold no secret"


class Check(NamedTuple):
    """`id`: of its findings, as messages have it; `name`: in this code; `severity`: `blocks` or `warns`, the highest of
    its findings; `source`: the code or document it relies on."""

    id: str
    name: str
    title: str
    severity: str
    source: str
    find: Callable[[Any], Iterable[Finding]]


def run(facts: Facts, before_copy: bool = True, waived: Mapping[str, str] = MappingProxyType({})) -> list[dict]:
    """Return the findings of all checks: [{id, title, severity, source, seen, do, waived}]; `before_copy` adds the
    checks of the state before the initial copy.

    `waived`: {check id: reason}, for warnings; a finding's `waived` is that reason, or None. Blocking findings are not
    waived.
    """
    findings = []
    for check in CHECKS if before_copy else ALWAYS:
        for finding in run_check(check.find, facts, artifacts=_ARTIFACTS):
            severity = "warns" if finding.warns else check.severity
            common = {"id": check.id, "title": check.title, "severity": severity, "source": check.source}
            reason = waived.get(check.id) if severity == "warns" else None
            seen = message_ids.strip_ids(finding.seen)  # one id: the check's
            findings.append({**common, "seen": seen, "do": finding.do, "waived": reason})
    return findings


def ids_with_facts(facts: Facts) -> list[str]:
    """Return the ids of the checks that had facts of their subject. Without the verification, none is of Spark."""
    of_spark = ("spark", "spark_executors", "spark_room", "spark_paths")
    without: tuple[str, ...] = of_spark
    if facts.spark:
        without = of_spark[2:] if "directories" not in facts.spark else ()
    if facts.zookeeper_files is None:
        without += ("zookeeper_files",)
    return [check.id for check in CHECKS if check.name not in without]


def check_waivers(waived: Mapping[str, str]) -> list[str]:
    """Return why quorumshift_waive is invalid, as sentences."""
    known = {check.id for check in CHECKS}
    unknown = [f"{name} is not a check" for name in sorted(waived) if name not in known]
    return unknown + [f"{name} has no reason" for name in sorted(waived) if not str(waived[name] or "").strip()]


ALWAYS = (
    Check("QS-CHECK-002", "groups", "Inventory groups", "blocks", "KIP-866, dedicated controllers", inventory.groups),
    Check(
        "QS-CHECK-003", "reached", "Hosts and files", "blocks", "the facts of all hosts are needed", inventory.reached
    ),
    Check("QS-CHECK-004", "same_hosts", "Names of one host", "blocks", "machine-id(5)", inventory.same_hosts),
    Check(
        "QS-CHECK-005", "platform", "System and service manager", "blocks", "systemd-run(1), proc(5)", services.platform
    ),
    Check(
        "QS-CHECK-009",
        "node_ids",
        "Node ids of controllers",
        "blocks",
        "KIP-866, node.id disjoint from broker ids",
        inventory.node_ids,
    ),
    Check(
        "QS-CHECK-008",
        "cluster_ids",
        "Cluster ids",
        "blocks",
        "KAFKA-7335, MetaPropertiesEnsemble",
        inventory.cluster_ids,
    ),
)
CHECKS = (
    *ALWAYS,
    Check(
        "QS-CHECK-006", "zookeeper", "ZooKeeper", "blocks", "KIP-866, source of the initial copy", zookeeper.zookeeper
    ),
    Check(
        "QS-CHECK-007",
        "broker_ids",
        "Brokers of the inventory",
        "blocks",
        "KRaftMigrationDriver, WAIT_FOR_BROKERS",
        inventory.broker_ids,
    ),
    Check(
        "QS-CHECK-010",
        "versions",
        "Release and protocol version",
        "blocks",
        "ClusterControlManager.processRegistrationFeature",
        inventory.versions,
    ),
    Check(
        "QS-CHECK-011", "partitions", "Partition health", "blocks", "KIP-866, no broker offline", replicas.partitions
    ),
    Check(
        "QS-CHECK-012",
        "reassignments",
        "Reassignments",
        "blocks",
        "ZkMigrationClient does not copy /admin",
        replicas.reassignments,
    ),
    Check(
        "QS-CHECK-013",
        "throttles",
        "Replication throttles",
        "blocks",
        "KIP-73, kafka-reassign-partitions --throttle",
        replicas.throttles,
    ),
    Check(
        "QS-CHECK-014",
        "dead_replicas",
        "Replicas of dead brokers",
        "blocks",
        "KRaftMigrationDriver, WAIT_FOR_BROKERS",
        replicas.dead_replicas,
    ),
    Check(
        "QS-CHECK-015",
        "partition_metadata",
        "Topic ids on disk",
        "blocks",
        "LogManager.findStrayReplicas, PartitionMetadataFile",
        replicas.partition_metadata,
    ),
    Check(
        "QS-CHECK-016",
        "stale_migration",
        "Earlier attempts in ZooKeeper",
        "blocks",
        "KAFKA-17146, KAFKA-19480",
        zookeeper.stale_migration,
    ),
    Check(
        "QS-CHECK-017",
        "controller_epoch",
        "Controller epoch",
        "blocks",
        "KAFKA-20488, PartitionStateMachine",
        zookeeper.controller_epoch,
    ),
    Check(
        "QS-CHECK-018",
        "zookeeper_acls",
        "Permissions in ZooKeeper",
        "blocks",
        "PrepRequestProcessor, ZkData.defaultAcls",
        zookeeper.permissions,
    ),
    Check(
        "QS-CHECK-019",
        "ensemble",
        "ZooKeeper's servers",
        "blocks",
        "zookeeper-client 3.8, FourLetterCommands",
        zookeeper.ensemble,
    ),
    Check(
        "QS-CHECK-020",
        requests.DELETIONS,
        "Pending deletions",
        "blocks",
        "ZkTopicMigrationClient, KRaftMigrationZkWriter",
        requests.deletions,
    ),
    Check(
        "QS-CHECK-021",
        requests.ELECTIONS,
        "Pending elections",
        "blocks",
        "ZkMigrationClient does not copy /admin",
        requests.elections,
    ),
    Check(
        "QS-CHECK-022",
        requests.STATES,
        "Partition states",
        "blocks",
        "KRaftMigrationDriver, MetadataChangeEvent",
        requests.partition_states,
    ),
    Check(
        "QS-CHECK-023",
        "unreadable",
        "Metadata that cannot be copied",
        "blocks",
        "ZkMigrationClient.readAllMetadata",
        zookeeper.unreadable,
    ),
    Check(
        "QS-CHECK-024",
        "encoder_secret",
        "Encrypted configs",
        "blocks",
        "ControllerServer, PasswordEncoder.NOOP",
        zookeeper.encoder_secret,
    ),
    Check(
        "QS-CHECK-025",
        "agreement",
        "Settings that controllers take",
        "blocks",
        "kraft_config.CONTROLLER_EVALUATES",
        settings.agreement,
    ),
    Check(
        "QS-CHECK-026",
        "controller_directories",
        "Controllers' log directories",
        "blocks",
        "WAIT_FOR_BROKERS counts old registrations",
        directories.controller_directories,
    ),
    Check(
        "QS-CHECK-059",
        "config_providers",
        "Variables in settings",
        "blocks",
        "KIP-297, KIP-421",
        settings.config_providers,
    ),
    Check(
        "QS-CHECK-030", "listeners", "Listeners of brokers", "blocks", "KafkaConfig.validateValues", settings.listeners
    ),
    Check(
        "QS-CHECK-031",
        "controller_listener",
        "Controller listener",
        "blocks",
        "KIP-900, KIP-48",
        settings.controller_listener,
    ),
    Check(
        "QS-CHECK-032",
        "tool_logins",
        "Logins of this tool",
        "blocks",
        "KIP-43, security.CONTROLLER_MECHANISMS",
        settings.tool_logins,
    ),
    Check(
        "QS-CHECK-027",
        "controller_acl",
        "Controllers' access to brokers",
        "blocks",
        "KafkaApis, ClusterAction",
        access.controller_acl,
    ),
    Check(
        "QS-CHECK-028",
        "controller_logins",
        "Controllers' logins to brokers",
        "blocks",
        "ControllerChannelManager, ChannelBuilders",
        access.controller_logins,
    ),
    Check(
        "QS-CHECK-029",
        "controller_super_users",
        "Super users of controllers",
        "blocks",
        "StandardAuthorizer, KIP-801",
        access.controller_super_users,
    ),
    Check(
        "QS-CHECK-033",
        "log_directories",
        "Broker log directories",
        "blocks",
        "KAFKA-16431, KAFKA-20762",
        directories.log_directories,
    ),
    Check(
        "QS-CHECK-056",
        "overrides",
        "Controllers' own settings",
        "blocks",
        "kraft_config.CONTROLLER_EVALUATES",
        settings.overrides,
    ),
    Check("QS-CHECK-057", "tool_acls", "Permissions of this tool", "blocks", "KIP-430, KafkaApis", access.tool_acls),
    Check(
        "QS-CHECK-034",
        "controller_ports",
        "Controllers' ports",
        "blocks",
        "KafkaConfig, listeners",
        paths.controller_ports,
    ),
    Check(
        "QS-CHECK-035",
        "reachability",
        "Connections of hosts",
        "blocks",
        "KIP-866, ControllerChannelManager",
        paths.reachability,
    ),
    Check(
        "QS-CHECK-037",
        "own_zookeeper",
        "ZooKeeper from brokers' hosts",
        "blocks",
        "own_zookeeper, ZkData",
        paths.own_zookeeper,
    ),
    Check("QS-CHECK-038", "space", "Free space", "blocks", "KIP-500, metadata.log.segment.bytes", directories.space),
    Check(
        "QS-CHECK-039",
        "zookeeper_space",
        "Free space of ZooKeeper",
        "blocks",
        "FilePadding, FileTxnSnapLog",
        directories.zookeeper_space,
    ),
    Check(
        "QS-CHECK-040", "spark", "Spark host", "blocks", "bin/spark-class, SparkSubmit, imports of the jobs", spark.host
    ),
    Check(
        "QS-CHECK-041",
        "spark_room",
        "Memory and disk of the Spark host",
        "blocks",
        "proc(5), spark.driver.memory",
        spark.room,
    ),
    Check(
        "QS-CHECK-042",
        "spark_paths",
        "Connections of the Spark host",
        "blocks",
        "the views of the comparison",
        spark.connections,
    ),
    Check("QS-CHECK-045", "clocks", "Clocks", "blocks", "soak, delegation tokens (KIP-48), logs", clocks.clocks),
    Check(
        "QS-CHECK-046",
        "config_files",
        "Files that services read",
        "blocks",
        "kafka.Kafka, systemd.unit(5)",
        services.config_files,
    ),
    Check(
        "QS-CHECK-047",
        "id_generation",
        "Generated broker ids",
        "blocks",
        "KAFKA-17543, KafkaConfig",
        inventory.id_generation,
    ),
    Check(
        "QS-CHECK-048",
        "readable_secrets",
        "Secrets in ZooKeeper",
        "warns",
        "ZkData.SensitiveRootPaths, ZkSecurityMigrator",
        zookeeper.readable_secrets,
    ),
    Check(
        "QS-CHECK-049",
        "zookeeper_latency",
        "ZooKeeper's latency",
        "warns",
        "ServerStats, ClientCnxn",
        zookeeper.latency,
    ),
    Check(
        "QS-CHECK-050",
        "notifications",
        "Change notifications",
        "warns",
        "ZkNodeChangeNotificationListener.purgeObsoleteNotifications",
        zookeeper.notifications,
    ),
    Check(
        "QS-CHECK-043",
        "zookeeper_files",
        "Files of ZooKeeper's servers",
        "warns",
        "FileSnap, FileTxnLog",
        zookeeper.files,
    ),
    Check(
        "QS-CHECK-044", "spark_executors", "Hosts of a Spark cluster", "warns", "spark-submit --master", spark.executors
    ),
    Check(
        "QS-CHECK-051", "memory", "Memory and heap", "warns", "Operations, KRaft; kafka-run-class.sh", services.memory
    ),
    Check(
        "QS-CHECK-052",
        "limits",
        "Files and memory maps",
        "warns",
        "proc(5), LimitNOFILE, vm.max_map_count",
        services.limits,
    ),
    Check(
        "QS-CHECK-053",
        "stop_timeouts",
        "Time to stop",
        "warns",
        "systemd.service(5), TimeoutStopSec",
        services.stop_timeouts,
    ),
    Check("QS-CHECK-054", "restarts", "Automatic restarts", "warns", "systemd.service(5), Restart", services.restarts),
    Check("QS-CHECK-055", "enabled", "Start at boot", "warns", "systemd.unit(5), [Install]", services.enabled),
    Check(
        "QS-CHECK-058",
        "running_config",
        "Files and running brokers",
        "warns",
        "KIP-226, DescribeConfigs",
        settings.running_config,
    ),
    Check(
        "QS-CHECK-060",
        "topic_policies",
        "Policies for topics",
        "warns",
        "KIP-1252, KAFKA-18886",
        settings.topic_policies,
    ),
    Check(
        "QS-CHECK-061",
        "control_plane",
        "Control plane listener",
        "warns",
        "KIP-291, KafkaConfig",
        settings.control_plane,
    ),
    Check(
        "QS-CHECK-062", "self_healer", "Self-healing", "warns", "Cruise Control, metric.reporters", settings.self_healer
    ),
    Check("QS-CHECK-063", "authorizer", "Authorizer", "warns", "KIP-801", settings.authorizer),
)
ID = {check.name: check.id for check in CHECKS}
TITLE = {check.id: check.title for check in CHECKS}
