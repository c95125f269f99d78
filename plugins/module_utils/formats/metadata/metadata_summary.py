# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What a node's metadata log has of the migration, features, brokers and controllers."""

from __future__ import annotations

import os

from ansible_collections.quorumshift.kafka.plugins.module_utils.facts import MetadataLog
from ansible_collections.quorumshift.kafka.plugins.module_utils.formats.metadata import scram_loading
from ansible_collections.quorumshift.kafka.plugins.module_utils.formats.metadata.metadata_image import (
    CLUSTER_TYPES,
    METADATA_VERSION,
    Image,
)
from ansible_collections.quorumshift.kafka.plugins.module_utils.formats.metadata.metadata_log import (
    OPEN,
    log_records,
    open_log,
    read_quorum_state,
    scan_log,
)

ZK_MIGRATION_TRANSACTION = "ZK Migration"


def summarise(
    directory: str, end_offset: int | None = None, with_history: bool = False, check_crc: bool = True
) -> MetadataLog:
    """Return the summary of the metadata log in `directory` below `end_offset` (exclusive; None: the complete log).

    Offsets of what a checkpoint holds are those of its last record, hence upper bounds. Transactions are those after
    the checkpoint; `with_history` adds those before it whose segments still exist, and looks for `scram_losses`.
    `last_change_offset` is that of the checkpoint's last record where only the checkpoint may hold the change.
    `log_start_offset` is where the oldest segment begins, which may be below Kafka's own.
    Raises LogError and its kinds: LogMissing, LogMoving, LogGap, CorruptBatch, CompressedBatch, UnknownRecord,
    MalformedRecord, BrokenTransaction, InconsistentLog.
    """
    with open_log(directory, end_offset) as log:
        # a node of a later Kafka is described as far as its records are known
        extent = scan_log(log, end_offset, check_crc, later=True)
        image = Image.from_records(log_records(log, extent, CLUSTER_TYPES, check_crc, later=True))
        checkpoint = _describe_checkpoint(log)
        losses = scram_loading.losses(log, extent.end_offset) if with_history else {}
    complete, losses_from_start = _complete(directory, extent, check_crc) if with_history else (extent, {})
    segments = log.files.segments
    state, state_offset = image.zk_migration_state or (None, None)
    features = {name: level for name, (level, _offset) in image.features.items()}
    return {
        "dir": directory,
        "quorum_state": read_quorum_state(directory),
        "log_start_offset": segments[0].base_offset if segments else log.start_offset,
        "log_end_offset": extent.end_offset,
        "last_epoch": extent.last_epoch,
        "last_no_op_or_any_timestamp_ms": extent.last_timestamp,
        "last_change_offset": _last_change(complete, log.checkpoint),
        "checkpoint": checkpoint,
        "zk_migration_state": state,
        "zk_migration_state_offset": state_offset,
        "metadata_version": features.get(METADATA_VERSION),
        "features": features,
        "brokers": {str(broker_id): broker for broker_id, broker in image.brokers.items()},
        "controllers": {str(controller_id): controller for controller_id, controller in image.controllers.items()},
        "scram_losses": {"restart": losses, "new": {**losses_from_start, **losses}},
        "client_metrics": image.client_metrics(),
        "open_transaction": _open_transaction(extent.transactions),
        "zk_migration_transactions": [
            transaction._asdict()
            for transaction in complete.transactions
            if transaction.name == ZK_MIGRATION_TRANSACTION
        ],
    }


def _describe_checkpoint(log):
    """Return the newest checkpoint with its size and time, None without one. A log that has none loads whole."""
    if not log.checkpoint:
        return None
    stat = os.fstat(log.checkpoint_file.fileno())
    found = {"offset": log.checkpoint.offset, "epoch": log.checkpoint.epoch}
    return {**found, "bytes": stat.st_size, "time": stat.st_mtime}


def _complete(directory, extent, check_crc):
    """Return the extent of all segments that still exist, with those before the checkpoint, and what a node loses that
    loads all of them."""
    with open_log(directory, extent.end_offset, all_segments=True) as log:
        losses = {} if log.start_offset else scram_loading.losses(log, extent.end_offset)
        return scan_log(log, extent.end_offset, check_crc, later=True), losses


def _last_change(complete, checkpoint):
    if complete.last_change is None and checkpoint:
        return checkpoint.offset - 1
    return complete.last_change


def _open_transaction(transactions):
    last = transactions[-1] if transactions else None
    return {"name": last.name, "offset": last.begin_offset} if last and last.outcome == OPEN else None
