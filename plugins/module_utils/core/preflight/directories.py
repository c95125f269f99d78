# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Checks of log directories and free space."""

from __future__ import annotations

from typing import Iterable

from ansible_collections.quorumshift.kafka.plugins.module_utils.core.migration import phase, zk_metadata
from ansible_collections.quorumshift.kafka.plugins.module_utils.core.preflight.check_facts import Facts, logs_of
from ansible_collections.quorumshift.kafka.plugins.module_utils.core.preflight.inventory import (
    missing_directories,
)
from ansible_collections.quorumshift.kafka.plugins.module_utils.core.text.advice import Finding
from ansible_collections.quorumshift.kafka.plugins.module_utils.facts import NodeFacts
from ansible_collections.quorumshift.kafka.plugins.module_utils.settings import config_values

MIB = 1 << 20
# The active segment of the metadata log grows to 1 GiB (metadata.log.segment.bytes) before a snapshot replaces it.
# Kafka's documentation (Operations, KRaft, Deploying Considerations) asks for 5 GB.
METADATA_LOG_BYTES, METADATA_LOG_ADVISED = 1024 * MIB, 5120 * MIB
# Old properties files, records of restarts, and a backup of ZooKeeper: gzip, one line a znode.
STATE_BYTES = 64 * MIB
# ZooKeeper preallocates log files of 64 MiB (FilePadding) and writes a snapshot when one is full. By default it removes
# neither (autopurge.purgeInterval).
_ZOOKEEPER_LOG_BYTES = 64 * MIB
_RECORD_BYTES = 256  # upper estimate for a metadata record, or a znode in the backup
_REMOUNT = "find the cause with `dmesg`, then mount it writable"


def space(facts: Facts) -> Iterable[Finding]:
    """Yield the paths without free space for the metadata log, the properties files and the backup of ZooKeeper."""
    records = sum(zk_metadata.expected_records(facts.metadata).values()) if facts.metadata else 0
    needed = {
        "log_dir": METADATA_LOG_BYTES + 4 * _RECORD_BYTES * records,
        "state_dir": STATE_BYTES + _RECORD_BYTES * records,
        "config_file": MIB,
    }
    holds = {
        "log_dir": "the metadata log",
        "state_dir": "old properties files and the backup of ZooKeeper (quorumshift_state_dir)",
        "config_file": "the new properties file",
    }
    for host, node in sorted(facts.cluster["nodes"].items()):
        for what, disk in (node.get("space") or {}).items():
            if not disk and what == "log_dir" and not _is_named(node):
                continue  # see `reached`
            if not disk:
                yield Finding(
                    f"the free space of {host} for {holds[what]} is not known", "check it with `df -h`", warns=True
                )
                continue
            where, free = f"{host}: {disk['path']}, for {holds[what]},", disk["free_bytes"]
            if disk["read_only"]:
                yield Finding(f"{where} is mounted read-only", _REMOUNT)
            elif free < needed[what]:
                yield Finding(
                    f"{where} has {free // MIB} MiB free and needs {-(-needed[what] // MIB)} MiB",
                    f"free space on {host}: df -h {disk['path']}",
                )
            elif what == "log_dir" and node["role"] == "controller" and free < METADATA_LOG_ADVISED:
                yield Finding(
                    f"{where} has {free // MIB} MiB free, Kafka advises {METADATA_LOG_ADVISED // MIB} MiB",
                    f"free space on {host}: a controller stops when its disk is full",
                    warns=True,
                )


def _is_named(node: NodeFacts) -> bool:
    """Return whether a node's log directory is known: by its file, or of a controller without one by the inventory."""
    file = node.get("file") or {}
    return not file.get("error") and bool(file.get("exists") or node["role"] == "controller")


def zookeeper_space(facts: Facts) -> Iterable[Finding]:
    """Yield the ZooKeeper servers on hosts of the inventory without free space for two more snapshots and their logs.

    A server stops when its disk is full. Without ZooKeeper's quorum neither migration nor rollback continues.
    """
    for host, node in sorted(facts.cluster["nodes"].items()):
        for server in (node.get("paths") or {}).get("zookeeper") or []:
            if server["error"]:
                yield Finding(
                    f"the data directory of ZooKeeper on {host} could not be read: {server['error']}",
                    "check its free space with `df -h`",
                    warns=True,
                )
            for disk in server["dirs"]:
                needed = 2 * (_ZOOKEEPER_LOG_BYTES + disk["snapshot_bytes"])
                where = f"{host}: {disk['path']}, for ZooKeeper's data,"
                if disk["read_only"]:
                    yield Finding(f"{where} is mounted read-only", _REMOUNT)
                elif disk["free_bytes"] < needed:
                    yield Finding(
                        f"{where} has {disk['free_bytes'] // MIB} MiB free and needs {-(-needed // MIB)} MiB",
                        "remove old snapshots and logs: zkCleanup.sh -n 5",
                    )


def controller_directories(facts: Facts) -> Iterable[Finding]:
    """Yield what an earlier attempt left in the controllers' log directories."""
    cluster = (facts.zookeeper.get("cluster_id") or {}).get("value")
    offset = (facts.zookeeper.get("migration") or {}).get("kraft_metadata_offset")
    registered = {broker for log in logs_of(facts) for broker in log.get("brokers") or {}}
    modes = {str(node.get("node_id")): node.get("running") or node.get("next") for node in facts.brokers.values()}
    unsafe = any(mode == "zk_migration" for mode in modes.values())
    wipe = (
        "bring every broker back to plain ZooKeeper mode first: brokers in migration mode stop if you wipe the "
        "controllers"
        if unsafe
        else "if you do not need its content, stop the controller's service and empty the directory"
    )
    for host, node in sorted(facts.controllers.items()):
        for directory in node.get("log_dirs") or []:
            meta = directory.get("meta") or {}
            where = f"{host}: {directory['path']}"
            if directory.get("exists") and not directory.get("empty") and not meta:
                yield Finding(f"{where} is not empty and has no meta.properties", wipe)
            elif meta and (meta.get("cluster.id") != cluster or meta.get("node.id") != str(node.get("node_id"))):
                yield Finding(
                    f"{where} is formatted for cluster {meta.get('cluster.id')}, node {meta.get('node.id')}", wipe
                )
        state = (node.get("metadata_log") or {}).get("zk_migration_state")
        if state not in (None, "PRE_MIGRATION"):
            yield Finding(f"{host}: an earlier attempt left the metadata log in state {state}", wipe)
    if registered and offset != -1:
        yield Finding(f"brokers are registered in the metadata log, but /migration has offset {offset}", wipe)
    for broker in sorted(registered):
        if modes.get(broker) != "zk_migration":
            yield Finding(
                f"broker {broker} is registered in the metadata log but runs in mode {modes.get(broker)}: the initial "
                "copy would not wait for it",
                wipe,
            )


def log_directories(facts: Facts) -> Iterable[Finding]:
    """Yield the log directories that are missing, offline, or of another broker or version."""
    for host, node in sorted(facts.brokers.items()):
        yield from missing_directories(host, node)
        runs_with = config_values.log_dirs(facts.running.get(host) or {})
        for directory in node.get("log_dirs") or []:
            path, meta = directory["path"], directory.get("meta") or {}
            stored = meta.get("node.id", meta.get("broker.id"))
            if not directory.get("exists") or directory.get("error"):
                continue
            if directory.get("in_use") is False and path in runs_with:
                yield Finding(
                    f"{host}: the broker has taken its log directory {path} offline",
                    "find the cause in its log (`Stopping serving logs in dir`), fix it and restart the broker: in "
                    "migration mode a broker halts when a log directory fails (KAFKA-16431)",
                )
            elif stored is not None and node.get("node_id") is not None and stored.strip() != str(node["node_id"]):
                yield Finding(
                    f"{host}: {path}/meta.properties has broker id {stored}, but the broker's id is {node['node_id']}",
                    "correct log.dirs or broker.id: with this difference the broker does not start again",
                )
            elif meta.get("version") == "1" and node.get("running") == phase.ZK:
                yield Finding(
                    f"{host}: {path}/meta.properties has version 1, the format of KRaft",
                    "find the cause before you restart the broker: in plain ZooKeeper mode it does not start with this "
                    "version (KAFKA-20762)",
                )
