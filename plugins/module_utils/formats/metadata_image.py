# Copyright: (c) 2026, Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Summarise a node's metadata log: migration state, features, brokers, controllers.

Sources: org.apache.kafka.image.{ClusterDelta,FeaturesDelta} (how records change the image),
org.apache.kafka.metadata.migration.ZkMigrationState (KIP-866).
"""

from __future__ import annotations

from typing import Any

from ansible_collections.quorumshift.kafka.plugins.module_utils.formats import metadata_counts
from ansible_collections.quorumshift.kafka.plugins.module_utils.formats.metadata_log import (
    OPEN,
    Record,
    log_records,
    open_log,
    read_quorum_state,
    scan_log,
)
from ansible_collections.quorumshift.kafka.plugins.module_utils.formats.record_batch import LogError

ZK_MIGRATION_TRANSACTION = "ZK Migration"
_ZK_MIGRATION_STATES = {0: "NONE", 1: "MIGRATION", 2: "PRE_MIGRATION", 3: "POST_MIGRATION"}
_CLIENT_METRICS = 16  # ConfigResource.Type
_FENCED = {-1: False, 1: True}
_METADATA_VERSION = "metadata.version"


class InconsistentLog(LogError):
    """A record that Kafka itself would reject at its position."""


def summarise(
    directory: str,
    end_offset: int | None = None,
    with_counts: bool = False,
    with_history: bool = False,
    check_crc: bool = True,
) -> dict[str, Any]:
    """Return the state of the metadata log in `directory` below `end_offset` (exclusive; None: the complete log).

    JSON-able: {dir, quorum_state (file as on disk, or None), log_start_offset, log_end_offset (exclusive, of the
    records read: below `end_offset` if the log is shorter), last_epoch, last_no_op_or_any_timestamp_ms (of the last
    record, control records too; None for an empty log), last_change_offset (of the last record that is no NoOp; the
    checkpoint's last record if only the checkpoint may contain it; None for an empty log), checkpoint {offset, epoch}
    or None, zk_migration_state (name, None if the log has none), zk_migration_state_offset, metadata_version,
    features {name: level}, brokers {id: {epoch, incarnation_id, is_migrating_zk_broker, fenced, in_controlled_shutdown,
    rack, log_dirs, registered_offset}}, controllers {id: {incarnation_id, zk_migration_ready, end_points,
    registered_offset}}, client_metrics {name: [key]} (KIP-714's configs), open_transaction {name, offset} or None,
    zk_migration_transactions [{name, begin_offset, end_offset, outcome, records {type: count}}], image_counts
    (with_counts, see metadata_counts.counts; else None)}.

    A record from a checkpoint has the offset of the checkpoint's last record, which is an upper bound. Transactions are
    those after the checkpoint; `with_history` adds earlier ones whose segments still exist. `log_start_offset` is that
    of the oldest segment, which may be below Kafka's own.
    Raises LogError and its subclasses: LogMissing, LogMoving, LogGap, CorruptBatch, CompressedBatch, UnknownRecord,
    MalformedRecord, BrokenTransaction, InconsistentLog.
    """
    state = empty_state()
    image = metadata_counts.empty_image() if with_counts else None
    types = {*_APPLY, *metadata_counts.COUNTED} if with_counts else set(_APPLY)
    with open_log(directory, end_offset) as log:
        extent = scan_log(log, end_offset, check_crc)
        for record in log_records(log, extent, types, check_crc):
            if record.type in _APPLY:
                apply(state, record)
            if image is not None and record.type in metadata_counts.COUNTED:
                metadata_counts.count_record(image, record.type, record.fields)
    history = _scan_all_segments(directory, extent, check_crc) if with_history else extent
    segments = log.files.segments
    return {
        "dir": directory,
        "quorum_state": read_quorum_state(directory),
        "log_start_offset": segments[0].base_offset if segments else log.start_offset,
        "log_end_offset": extent.end_offset,
        "last_epoch": extent.last_epoch,
        "last_no_op_or_any_timestamp_ms": extent.last_timestamp,
        "last_change_offset": _last_change(history, log.checkpoint),
        "checkpoint": {"offset": log.checkpoint.offset, "epoch": log.checkpoint.epoch} if log.checkpoint else None,
        "metadata_version": state["features"].get(_METADATA_VERSION),
        **state,
        "open_transaction": _open_transaction(extent.transactions),
        "zk_migration_transactions": [t._asdict() for t in history.transactions if t.name == ZK_MIGRATION_TRANSACTION],
        "image_counts": metadata_counts.counts(image) if with_counts else None,
    }


def _scan_all_segments(directory, extent, check_crc):
    """Return the extent of all existing segments, including those before the checkpoint."""
    with open_log(directory, extent.end_offset, all_segments=True) as log:
        return scan_log(log, extent.end_offset, check_crc)


def _last_change(extent, checkpoint):
    if extent.last_change is None and checkpoint:
        return checkpoint.offset - 1
    return extent.last_change


def _open_transaction(transactions):
    last = transactions[-1] if transactions else None
    return {"name": last.name, "offset": last.begin_offset} if last and last.outcome == OPEN else None


def empty_state() -> dict[str, Any]:
    """Return an empty state for `apply`; see summarise for its parts."""
    return {
        "zk_migration_state": None,
        "zk_migration_state_offset": None,
        "features": {},
        "brokers": {},
        "controllers": {},
        "client_metrics": {},
    }


def apply(state: dict[str, Any], record: Record) -> None:
    """Apply one record of brokers, controllers, features, client metrics or the migration. Raises InconsistentLog, and
    KeyError for a record of another type."""
    _APPLY[record.type](state, record)


def _register_broker(state, record):
    fields = record.fields
    state["brokers"][str(fields["brokerId"])] = {
        "epoch": fields["brokerEpoch"],
        "incarnation_id": fields["incarnationId"],
        "is_migrating_zk_broker": fields["isMigratingZkBroker"],
        "fenced": fields["fenced"],
        "in_controlled_shutdown": fields["inControlledShutdown"],
        "rack": fields["rack"],
        "log_dirs": fields["logDirs"],
        "registered_offset": record.offset,
    }


def _unregister_broker(state, record):
    state["brokers"].pop(str(record.fields["brokerId"]), None)


def _registered(state, record, broker_id, epoch):
    broker = state["brokers"].get(str(broker_id))
    if broker is None or broker["epoch"] != epoch:
        actual = "not registered" if broker is None else f"registered with epoch {broker['epoch']}"
        raise InconsistentLog(
            f"offset {record.offset}: {record.type} for broker {broker_id} epoch {epoch}, which is {actual}"
        )
    return broker


def _set_fenced(fenced):
    def apply(state, record):
        _registered(state, record, record.fields["id"], record.fields["epoch"])["fenced"] = fenced

    return apply


def _change_broker(state, record):
    fields = record.fields
    broker = _registered(state, record, fields["brokerId"], fields["brokerEpoch"])
    broker["fenced"] = _FENCED.get(fields["fenced"], broker["fenced"])
    # Only a new registration ends the controlled shutdown (BrokerRegistrationInControlledShutdownChange).
    broker["in_controlled_shutdown"] = fields["inControlledShutdown"] == 1 or broker["in_controlled_shutdown"]
    broker["log_dirs"] = fields["logDirs"] or broker["log_dirs"]


def _register_controller(state, record):
    fields = record.fields
    state["controllers"][str(fields["controllerId"])] = {
        "incarnation_id": fields["incarnationId"],
        "zk_migration_ready": fields["zkMigrationReady"],
        "end_points": fields["endPoints"],
        "registered_offset": record.offset,
    }


def _feature_level(state, record):
    name, level = record.fields["name"], record.fields["featureLevel"]
    if level or name == _METADATA_VERSION:
        state["features"][name] = level
    else:
        state["features"].pop(name, None)


def _zk_migration_state(state, record):
    value = record.fields["zkMigrationState"]
    if value not in _ZK_MIGRATION_STATES:
        raise InconsistentLog(f"offset {record.offset}: ZooKeeper migration state {value} does not exist in KIP-866")
    state["zk_migration_state"] = _ZK_MIGRATION_STATES[value]
    state["zk_migration_state_offset"] = record.offset


def _client_metrics(state, record):
    fields = record.fields
    if fields["resourceType"] != _CLIENT_METRICS:
        return
    name, resources = fields["resourceName"], state["client_metrics"]
    keys = {*resources.pop(name, ()), fields["name"]} - ({fields["name"]} if fields["value"] is None else set())
    if keys:
        resources[name] = sorted(keys)


_APPLY = {
    "CONFIG_RECORD": _client_metrics,
    "REGISTER_BROKER_RECORD": _register_broker,
    "UNREGISTER_BROKER_RECORD": _unregister_broker,
    "FENCE_BROKER_RECORD": _set_fenced(True),
    "UNFENCE_BROKER_RECORD": _set_fenced(False),
    "BROKER_REGISTRATION_CHANGE_RECORD": _change_broker,
    "REGISTER_CONTROLLER_RECORD": _register_controller,
    "FEATURE_LEVEL_RECORD": _feature_level,
    "ZK_MIGRATION_STATE_RECORD": _zk_migration_state,
}
