# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Replay of the partition records of a metadata log, all partitions together: partitions are what a log has many of.

As org.apache.kafka.image.TopicDelta and metadata.PartitionRegistration.merge: a PARTITION_RECORD sets everything, a
later PARTITION_CHANGE_RECORD what it names. Each change adds one to the partition epoch, and one that names a leader
adds one to the leader epoch. A replica keeps its directory unless a record names directories. Partitions go with their
topic, whose id is never used again.

formats.metadata.metadata_image replays all other records, and the partitions of a few topics.
"""

from __future__ import annotations

import sys
from typing import Dict, Iterator, List, Mapping, Sequence, Tuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from ansible_collections.quorumshift.kafka.plugins.module_utils.formats.metadata.metadata_image import (
    MIGRATING,
    UNASSIGNED,
    InconsistentLog,
)

from quorumshift_spark.columns import PARTITIONS

_ELR = ("elr", "last_known_elr")
# What a PARTITION_CHANGE_RECORD can name, but for directories: see _directories
_NAMED = ("replicas", "adding", "removing", "isr", "leader", "recovery_state", *_ELR)
_BITS = 32  # of a partition's number


def replay(
    records: Sequence[pa.RecordBatch], topics: Mapping[str, Tuple[str, int]], removed_topics: Mapping[str, int]
) -> Iterator[pa.RecordBatch]:
    """Yield the partitions of the topics that exist as batches of columns.PARTITIONS.

    Most partitions have one record, which needs no replay.

    :arg records: batches of columns.log.PARTITION_RECORDS: all records of each partition, in any order.
    :arg topics: as of metadata_image.Image, like `removed_topics`: of these topics, and maybe others.

    Raises InconsistentLog where Kafka would reject a record.
    """
    if not records:
        return
    ids = pa.array([*topics, *removed_topics], pa.string())
    begin = np.array([*(at for _name, at in topics.values()), *(-1 for _id in removed_topics), 0], np.int64)
    end = np.array([*(sys.maxsize for _id in topics), *removed_topics.values(), -1], np.int64)
    topic = np.concatenate([np.asarray(pc.index_in(batch["topic_id"], ids).fill_null(-1)) for batch in records])
    partition, offset, is_change = (_column(records, name) for name in ("partition", "offset", "is_change"))
    key = topic.astype(np.int64) << _BITS | partition
    order = np.lexsort((offset, key))
    starts, counts = _groups(key[order])
    is_lost = (offset < begin[topic]) | (offset > end[topic])  # the last of both is of an unknown topic
    first = order[starts]
    rejected = np.concatenate((np.flatnonzero(is_lost), first[is_change[first]]))
    if len(rejected):
        row = int(rejected[np.argmin(offset[rejected])])
        raise _rejection(pa.Table.from_batches(records).slice(row, 1).to_pylist()[0], is_lost[row])
    exists = topic < len(topics)
    is_single = np.empty(len(key), bool)
    is_single[order] = np.repeat(counts == 1, counts)
    names = pa.array([name for name, _at in topics.values()], pa.string())
    several: List[pa.RecordBatch] = []
    done = 0
    for batch in records:
        rows = slice(done, done + len(batch))
        done += len(batch)
        single = exists[rows] & is_single[rows]
        yield _partitions(batch.filter(pa.array(single)), names.take(pa.array(topic[rows][single])))
        several.append(batch.filter(pa.array(exists[rows] & ~is_single[rows])))
    in_order = order[(exists & ~is_single)[order]]
    if len(in_order):
        place = np.cumsum(exists & ~is_single) - 1
        table = pa.Table.from_batches(several).take(pa.array(place[in_order])).combine_chunks()
        (batch,) = table.to_batches()
        starts, counts = _groups(key[in_order])
        merged = _merged(batch, starts, counts)
        yield _partitions(merged, names.take(pa.array(topic[in_order[starts]])))


def _column(records, name):
    return np.concatenate([batch[name].to_numpy(zero_copy_only=False) for batch in records])


def _groups(keys: np.ndarray) -> Tuple[np.ndarray, np.ndarray]:
    """Return where each group of equal keys starts, and its size."""
    starts = np.flatnonzero(np.concatenate(([True], keys[1:] != keys[:-1])))
    return starts, np.diff(np.append(starts, len(keys)))


def _rejection(record, of_no_topic):
    """Return what is wrong with a record, as metadata_image says it."""
    kind = "PARTITION_CHANGE_RECORD" if record["is_change"] else "PARTITION_RECORD"
    partition = "a partition" if of_no_topic else f"partition {record['partition']}"
    what = f"{kind} for {partition} of topic {record['topic_id']}, which does not exist"
    return InconsistentLog(f"offset {record['offset']}: {what}")


def _merged(batch: pa.RecordBatch, starts: np.ndarray, counts: np.ndarray) -> pa.RecordBatch:
    """Return the last state of each group of records, which are in the order of their offsets."""
    rows = np.arange(len(batch))
    is_change = _column([batch], "is_change")
    base = np.maximum.reduceat(np.where(is_change, -1, rows), starts)  # the last record that sets everything
    last = starts + counts - 1
    is_counted = is_change & (rows > np.repeat(base, counts))
    columns: Dict[str, pa.Array] = {}
    for name in _NAMED:
        named = np.maximum.reduceat(np.where(np.asarray(batch[name].is_valid()), rows, -1), starts)
        columns[name] = batch[name].take(pa.array(named, mask=named < base))
    is_led = is_counted & np.asarray(batch["leader"].is_valid())
    for name, is_raised in (("leader_epoch", is_led), ("partition_epoch", is_counted)):
        raised = np.add.reduceat(is_raised.astype(np.int32), starts)
        columns[name] = pc.add(batch[name].take(pa.array(base)), pa.array(raised, pa.int32()))
    columns["directories"] = _directories(batch, base, last)
    columns["offset"] = batch["offset"].take(pa.array(last))
    for name in ("topic_id", "partition"):
        columns[name] = batch[name].take(pa.array(base))
    return pa.RecordBatch.from_arrays(list(columns.values()), names=list(columns))


def _directories(batch, base, last):
    """Return the directories of each partition: they depend on the order of its records."""
    found = batch["directories"].take(pa.array(base))
    names = np.asarray(batch["replicas"].is_valid()) | (_sizes(batch["directories"]) > 0)
    named = np.cumsum(names)
    groups = np.flatnonzero(named[last] > named[base])  # those that a change names
    if not len(groups):
        return found
    before = _or_migrating(batch["replicas"].take(pa.array(base)), found)
    merged = []
    for group in groups.tolist():
        replicas, directories = batch["replicas"][int(base[group])].as_py(), before[group].as_py()
        for row in range(int(base[group]) + 1, int(last[group]) + 1):
            changed, given = batch["replicas"][row].as_py(), batch["directories"][row].as_py()
            if given:
                directories = given
            elif changed is not None:
                known = dict(zip(replicas, directories))
                directories = [known.get(replica, UNASSIGNED) for replica in changed]
            replicas = replicas if changed is None else changed
        merged.append(directories)
    choice = np.arange(len(before))
    choice[groups] = len(before) + np.arange(len(groups))
    return pa.concat_arrays([before, pa.array(merged, before.type)]).take(pa.array(choice))


def _partitions(batch: pa.RecordBatch, topics: pa.Array) -> pa.RecordBatch:
    """Return records as the partitions that they set."""
    given = {"topic": topics, "at": batch["offset"], **{name: _without_nulls(batch[name]) for name in _ELR}}
    given["directories"] = _or_migrating(batch["replicas"], batch["directories"])
    arrays = [given[name] if name in given else batch[name] for name in PARTITIONS.names]
    return pa.RecordBatch.from_arrays(arrays, schema=PARTITIONS)


def _or_migrating(replicas: pa.ListArray, directories: pa.ListArray) -> pa.ListArray:
    """Return the directories of records that set everything, and may name none."""
    sizes = _sizes(directories)
    counts = np.where(sizes > 0, sizes, _sizes(replicas))
    rows, place = np.repeat(np.arange(len(counts)), counts), np.arange(counts.sum())
    place = place - np.repeat(np.cumsum(counts) - counts, counts) + (np.cumsum(sizes) - sizes)[rows]
    place[sizes[rows] == 0] = sizes.sum()
    values = pa.concat_arrays([directories.flatten(), pa.array([MIGRATING], pa.string())])
    return pa.ListArray.from_arrays(_offsets(counts), values.take(pa.array(place)))


def _without_nulls(lists: pa.ListArray) -> pa.ListArray:
    return pa.ListArray.from_arrays(_offsets(_sizes(lists)), lists.flatten()) if lists.null_count else lists


def _sizes(lists: pa.ListArray) -> np.ndarray:
    return np.asarray(lists.value_lengths().fill_null(0)).astype(np.int64)


def _offsets(sizes: np.ndarray) -> pa.Array:
    return pa.array(np.concatenate(([0], np.cumsum(sizes))), pa.int32())
