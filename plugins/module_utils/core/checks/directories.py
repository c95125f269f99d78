# Copyright: (c) 2026, Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Hazards: log directories and room on the disks."""

from __future__ import annotations

from typing import Iterable, Mapping

from .. import phase, zk_metadata
from .facts import Facts, Finding, logs_of

MIB = 1 << 20
# The metadata log's active segment grows to 1 GiB (metadata.log.segment.bytes) before a snapshot lets it go; Kafka's
# documentation (Operations, KRaft, Deploying Considerations) asks for 5 GB.
METADATA_LOG_BYTES, METADATA_LOG_ADVISED = 1024 * MIB, 5120 * MIB
# Old properties files, records of turns, and a backup of ZooKeeper: a gzip of one line a znode.
STATE_BYTES = 64 * MIB
# ZooKeeper writes its log in files of 64 MiB that it fills with zeros ahead (FilePadding), and a snapshot when one is
# full; it removes neither by itself (autopurge.purgeInterval).
_ZOOKEEPER_LOG_BYTES = 64 * MIB
_RECORD_BYTES = 256  # of a record in the log, or a znode in the backup, rather more than less


def space(facts: Facts) -> Iterable[Finding]:
    """There is room for the metadata log, the new properties file, the old ones and the backup."""
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
        for what, reported in (node.get("space") or {}).items():
            if not reported:
                continue
            where, free = f"{host}: {reported['path']}, for {holds[what]},", reported["free_bytes"]
            if reported["read_only"]:
                yield Finding(f"{where} is mounted read-only", "mount it writable, and find out why it was not")
            elif free < needed[what]:
                yield Finding(
                    f"{where} has {free // MIB} MiB free and needs {-(-needed[what] // MIB)} MiB",
                    "make room there",
                )
            elif what == "log_dir" and node["role"] == "controller" and free < METADATA_LOG_ADVISED:
                yield Finding(
                    f"{where} has {free // MIB} MiB free, Kafka advises {METADATA_LOG_ADVISED // MIB} MiB",
                    "make room there: a controller whose disk is full stops",
                    warns=True,
                )


def zookeeper_space(facts: Facts) -> Iterable[Finding]:
    """ZooKeeper servers on hosts of the inventory have room for two more snapshots and their logs. A server whose disk
    is full ends, and without a quorum of them neither the migration nor the way back goes on."""
    for host, node in sorted(facts.cluster["nodes"].items()):
        for server in (node.get("paths") or {}).get("zookeeper") or []:
            if server["error"]:
                yield Finding(
                    f"where ZooKeeper on {host} keeps its data could not be read: {server['error']}",
                    "look there for its room by hand",
                    warns=True,
                )
            for one in server["dirs"]:
                needed = 2 * (_ZOOKEEPER_LOG_BYTES + one["snapshot_bytes"])
                where = f"{host}: {one['path']}, where ZooKeeper keeps its data,"
                if one["read_only"]:
                    yield Finding(f"{where} is mounted read-only", "mount it writable, and find out why it was not")
                elif one["free_bytes"] < needed:
                    yield Finding(
                        f"{where} has {one['free_bytes'] // MIB} MiB free and needs {-(-needed // MIB)} MiB",
                        "make room there: zkCleanup.sh removes old snapshots and logs",
                    )


def controller_directories(facts: Facts) -> Iterable[Finding]:
    """What stands in a controller's log directory is this attempt's, or nothing."""
    cluster = (facts.zookeeper.get("cluster_id") or {}).get("value")
    offset = (facts.zookeeper.get("migration") or {}).get("kraft_metadata_offset")
    registered = {one for log in logs_of(facts) for one in log.get("brokers") or {}}
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
                yield Finding(f"{where} is not empty and has no meta.properties", wipe)
            elif meta and (meta.get("cluster.id") != cluster or meta.get("node.id") != str(node.get("node_id"))):
                yield Finding(
                    f"{where} was formatted for cluster {meta.get('cluster.id')}, node {meta.get('node.id')}", wipe
                )
        state = (node.get("metadata_log") or {}).get("zk_migration_state")
        if state not in (None, "PRE_MIGRATION"):
            yield Finding(f"{host}: its metadata log is in state {state}, an earlier attempt's", wipe)
    if registered and offset != -1:
        yield Finding(f"brokers are registered in the controllers' log, and /migration stands at {offset}", wipe)
    for one in sorted(registered):
        if modes.get(one) != "zk_migration":
            yield Finding(
                f"broker {one} is registered in the controllers' log and runs in mode {modes.get(one)}: the copy would "
                "not wait for it",
                wipe,
            )


def log_directories(facts: Facts) -> Iterable[Finding]:
    """Broker log directories are whole."""
    for host, node in sorted(facts.brokers.items()):
        runs_with = _paths(facts.running.get(host) or {})
        for directory in node.get("log_dirs") or []:
            path, meta = directory["path"], directory.get("meta") or {}
            stored = meta.get("node.id", meta.get("broker.id"))
            if not directory.get("exists") or directory.get("error"):
                yield Finding(
                    f"{host}: log directory {path} {directory.get('error') or 'is not there'}",
                    "mend it: a broker in migration mode halts when a log directory fails (KAFKA-16431)",
                )
            elif directory.get("in_use") is False and path in runs_with:
                yield Finding(
                    f"{host}: the broker has given up its log directory {path}",
                    "see in its log why (`Stopping serving logs in dir`), mend that and restart the broker: in "
                    "migration mode it halts when a log directory fails (KAFKA-16431)",
                )
            elif stored is not None and node.get("node_id") is not None and stored.strip() != str(node["node_id"]):
                yield Finding(
                    f"{host}: {path}/meta.properties is of broker {stored}, and its id is {node['node_id']}",
                    "correct log.dirs, or broker.id: with both the broker does not start again",
                )
            elif meta.get("version") == "1" and node.get("running") == phase.ZK:
                yield Finding(
                    f"{host}: {path}/meta.properties is of version 1",
                    "it was formatted for KRaft; a plain ZooKeeper-mode broker does not start with it (KAFKA-20762)",
                )


def _paths(running: Mapping[str, str]) -> list[str]:
    """Return the log directories with which a broker runs, [] where that could not be asked."""
    return [path.strip() for path in (running.get("log.dirs") or running.get("log.dir") or "").split(",")]
