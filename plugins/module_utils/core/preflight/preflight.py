# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The checks that run before the tool changes anything. Pure, over collected facts.

A check (checks/) yields `Finding`s (what is wrong, what to do). `CHECKS` gives each check its stable id, title,
severity and source.
"""

from __future__ import annotations

import traceback
from types import MappingProxyType
from typing import Any, Callable, Iterable, Mapping, NamedTuple

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
from ansible_collections.quorumshift.kafka.plugins.module_utils.core.preflight.check_facts import Facts
from ansible_collections.quorumshift.kafka.plugins.module_utils.core.text.advice import Finding


class Check(NamedTuple):
    """`severity`: `blocks` or `warns`, the highest of its findings; `source`: the code or document it relies on."""

    id: str
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
        for finding in _findings(check, facts):
            severity = "warns" if finding.warns else check.severity
            common = {"id": check.id, "title": check.title, "severity": severity, "source": check.source}
            reason = waived.get(check.id) if severity == "warns" else None
            findings.append({**common, "seen": finding.seen, "do": finding.do, "waived": reason})
    return findings


def ran(facts: Facts) -> list[str]:
    """Return the ids of the checks that had facts of their subject. Without the verification, none is of Spark."""
    of_spark = ("spark", "spark_executors", "spark_room", "spark_paths")
    without: tuple[str, ...] = of_spark
    if facts.spark:
        without = of_spark[2:] if "directories" not in facts.spark else ()
    if facts.zookeeper_files is None:
        without += ("zookeeper_files",)
    return [check.id for check in CHECKS if check.id not in without]


def _findings(check: Check, facts: Facts) -> list[Finding]:
    try:
        return list(check.find(facts))
    except Exception as error:  # the other checks run even if one fails on unexpected facts
        frame = traceback.extract_tb(error.__traceback__)[-1]
        return [
            Finding(
                f"the check failed: {type(error).__name__} {error} ({frame.name}, line {frame.lineno})",
                "report it with preflight.json and the newest facts-*.json of the run directory, which hold no secret",
            )
        ]


def unfit(waived: Mapping[str, str]) -> list[str]:
    """Return why quorumshift_waive is invalid, as sentences."""
    known = {check.id for check in CHECKS}
    unknown = [f"{name} is not a check" for name in sorted(waived) if name not in known]
    return unknown + [f"{name} has no reason" for name in sorted(waived) if not str(waived[name] or "").strip()]


ALWAYS = (
    Check("groups", "Inventory groups", "blocks", "KIP-866, dedicated controllers", inventory.groups),
    Check("reached", "Hosts and files", "blocks", "the facts of all hosts are needed", inventory.reached),
    Check("same_hosts", "Names of one host", "blocks", "machine-id(5), host_state", inventory.same_hosts),
    Check("platform", "System and service manager", "blocks", "systemd-run(1), proc(5)", services.platform),
    Check(
        "node_ids", "Node ids of controllers", "blocks", "KIP-866, node.id disjoint from broker ids", inventory.node_ids
    ),
    Check("cluster_ids", "Cluster ids", "blocks", "KAFKA-7335, MetaPropertiesEnsemble", inventory.cluster_ids),
)
CHECKS = (
    *ALWAYS,
    Check("zookeeper", "ZooKeeper", "blocks", "KIP-866, source of the initial copy", zookeeper.zookeeper),
    Check(
        "broker_ids",
        "Brokers of the inventory",
        "blocks",
        "KRaftMigrationDriver, WAIT_FOR_BROKERS",
        inventory.broker_ids,
    ),
    Check(
        "versions",
        "Release and protocol version",
        "blocks",
        "ClusterControlManager.processRegistrationFeature",
        inventory.versions,
    ),
    Check("partitions", "Partition health", "blocks", "KIP-866, no broker offline", replicas.partitions),
    Check("reassignments", "Reassignments", "blocks", "ZkMigrationClient does not copy /admin", replicas.reassignments),
    Check(
        "throttles",
        "Replication throttles",
        "blocks",
        "KIP-73, kafka-reassign-partitions --throttle",
        replicas.throttles,
    ),
    Check(
        "dead_replicas",
        "Replicas of dead brokers",
        "blocks",
        "KRaftMigrationDriver, WAIT_FOR_BROKERS",
        replicas.dead_replicas,
    ),
    Check(
        "partition_metadata",
        "Topic ids on disk",
        "blocks",
        "LogManager.findStrayReplicas, PartitionMetadataFile",
        replicas.partition_metadata,
    ),
    Check(
        "stale_migration",
        "Earlier attempts in ZooKeeper",
        "blocks",
        "KAFKA-17146, KAFKA-19480",
        zookeeper.stale_migration,
    ),
    Check(
        "controller_epoch",
        "Controller epoch",
        "blocks",
        "KAFKA-20488, PartitionStateMachine",
        zookeeper.controller_epoch,
    ),
    Check(
        "zookeeper_acls",
        "Permissions in ZooKeeper",
        "blocks",
        "PrepRequestProcessor, ZkData.defaultAcls",
        zookeeper.permissions,
    ),
    Check("ensemble", "ZooKeeper's servers", "blocks", "zookeeper-client 3.8, FourLetterCommands", zookeeper.ensemble),
    Check(
        requests.DELETIONS,
        "Pending deletions",
        "blocks",
        "ZkTopicMigrationClient, KRaftMigrationZkWriter",
        requests.deletions,
    ),
    Check(
        requests.ELECTIONS, "Pending elections", "blocks", "ZkMigrationClient does not copy /admin", requests.elections
    ),
    Check(
        requests.STATES,
        "Partition states",
        "blocks",
        "KRaftMigrationDriver, MetadataChangeEvent",
        requests.partition_states,
    ),
    Check(
        "unreadable",
        "Metadata that cannot be copied",
        "blocks",
        "ZkMigrationClient.readAllMetadata",
        zookeeper.unreadable,
    ),
    Check(
        "encoder_secret",
        "Encrypted configs",
        "blocks",
        "ControllerServer, PasswordEncoder.NOOP",
        zookeeper.encoder_secret,
    ),
    Check(
        "agreement", "Settings that controllers take", "blocks", "kraft_config.CONTROLLER_EVALUATES", settings.agreement
    ),
    Check(
        "controller_directories",
        "Controllers' log directories",
        "blocks",
        "WAIT_FOR_BROKERS counts old registrations",
        directories.controller_directories,
    ),
    Check("config_providers", "Variables in settings", "blocks", "KIP-297, KIP-421", settings.config_providers),
    Check("listeners", "Listeners of brokers", "blocks", "KafkaConfig.validateValues", settings.listeners),
    Check("controller_listener", "Controller listener", "blocks", "KIP-900, KIP-48", settings.controller_listener),
    Check("tool_logins", "Logins of this tool", "blocks", "KIP-43, security.PASSWORD_MECHANISMS", settings.tool_logins),
    Check(
        "controller_acl", "Controllers' access to brokers", "blocks", "KafkaApis, ClusterAction", access.controller_acl
    ),
    Check(
        "controller_logins",
        "Controllers' logins to brokers",
        "blocks",
        "ControllerChannelManager, ChannelBuilders",
        access.controller_logins,
    ),
    Check(
        "controller_super_users",
        "Super users of controllers",
        "blocks",
        "StandardAuthorizer, KIP-801",
        access.controller_super_users,
    ),
    Check(
        "log_directories", "Broker log directories", "blocks", "KAFKA-16431, KAFKA-20762", directories.log_directories
    ),
    Check("overrides", "Controllers' own settings", "blocks", "kraft_config.CONTROLLER_EVALUATES", settings.overrides),
    Check("tool_acls", "Permissions of this tool", "blocks", "KIP-430, KafkaApis", access.tool_acls),
    Check("controller_ports", "Controllers' ports", "blocks", "KafkaConfig, listeners", paths.controller_ports),
    Check("reachability", "Connections of hosts", "blocks", "KIP-866, ControllerChannelManager", paths.reachability),
    Check("own_zookeeper", "ZooKeeper from brokers' hosts", "blocks", "own_zookeeper, ZkData", paths.own_zookeeper),
    Check("space", "Free space", "blocks", "KIP-500, metadata.log.segment.bytes", directories.space),
    Check(
        "zookeeper_space",
        "Free space of ZooKeeper",
        "blocks",
        "FilePadding, FileTxnSnapLog",
        directories.zookeeper_space,
    ),
    Check("spark", "Spark host", "blocks", "bin/spark-class, SparkSubmit, imports of the jobs", spark.host),
    Check("spark_room", "Memory and disk of the Spark host", "blocks", "proc(5), spark.driver.memory", spark.room),
    Check("spark_paths", "Connections of the Spark host", "blocks", "the views of the comparison", spark.connections),
    Check("clocks", "Clocks", "blocks", "soak, delegation tokens (KIP-48), logs", clocks.clocks),
    Check("config_files", "Files that services read", "blocks", "kafka.Kafka, systemd.unit(5)", services.config_files),
    Check("id_generation", "Generated broker ids", "blocks", "KAFKA-17543, KafkaConfig", inventory.id_generation),
    Check(
        "readable_secrets",
        "Secrets in ZooKeeper",
        "warns",
        "ZkData.SensitiveRootPaths, ZkSecurityMigrator",
        zookeeper.readable_secrets,
    ),
    Check("zookeeper_latency", "ZooKeeper's latency", "warns", "ServerStats, ClientCnxn", zookeeper.latency),
    Check(
        "notifications",
        "Change notifications",
        "warns",
        "ZkNodeChangeNotificationListener.purgeObsoleteNotifications",
        zookeeper.notifications,
    ),
    Check("zookeeper_files", "Files of ZooKeeper's servers", "warns", "FileSnap, FileTxnLog", zookeeper.files),
    Check("spark_executors", "Hosts of a Spark cluster", "warns", "spark-submit --master", spark.executors),
    Check("memory", "Memory and heap", "warns", "Operations, KRaft; kafka-run-class.sh", services.memory),
    Check("limits", "Files and memory maps", "warns", "proc(5), LimitNOFILE, vm.max_map_count", services.limits),
    Check("stop_timeouts", "Time to stop", "warns", "systemd.service(5), TimeoutStopSec", services.stop_timeouts),
    Check("restarts", "Automatic restarts", "warns", "systemd.service(5), Restart", services.restarts),
    Check("enabled", "Start at boot", "warns", "systemd.unit(5), [Install]", services.enabled),
    Check("running_config", "Files and running brokers", "warns", "KIP-226, DescribeConfigs", settings.running_config),
    Check("topic_policies", "Policies for topics", "warns", "KIP-1252, KAFKA-18886", settings.topic_policies),
    Check("control_plane", "Control plane listener", "warns", "KIP-291, KafkaConfig", settings.control_plane),
    Check("self_healer", "Self-healing", "warns", "Cruise Control, metric.reporters", settings.self_healer),
    Check("authorizer", "Authorizer", "warns", "KIP-801", settings.authorizer),
)
