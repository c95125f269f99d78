# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Replay of the partition records of metadata logs, in Spark: partitions are what a log has many of.

As org.apache.kafka.image.TopicDelta and metadata.PartitionRegistration.merge: a PARTITION_RECORD sets everything, a
later PARTITION_CHANGE_RECORD what it names. Each change adds one to the partition epoch, and one that names a leader
adds one to the leader epoch. A replica keeps its directory unless a record names directories. Partitions go with their
topic, whose id is never used again.

All other records, and a small log as a whole, are replayed by metadata.metadata_image in one task (views.metadata_log).
"""

from __future__ import annotations

from typing import Dict, NamedTuple

from ansible_collections.quorumshift.kafka.plugins.module_utils.formats.metadata.metadata_image import (
    MIGRATING,
    UNASSIGNED,
)
from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F

RECORD = "partition record"
"""The kind of a raw row: one partition record. It has the columns of columns.log.PARTITION_RECORDS."""
REMOVED_TOPIC = "removed topic"
"""The kind of a raw row: a topic that the log removed. Its key is [topic id]."""
RAW = (RECORD, REMOVED_TOPIC)

_BY = ("view", "topic_id", "partition")
_ELR = ("elr", "last_known_elr")
# What a PARTITION_CHANGE_RECORD can name, but for directories: see _directories
_NAMED = ("replicas", "adding", "removing", "isr", "leader", "recovery_state", *_ELR)


class Replayed(NamedTuple):
    """`partitions`: of the topics that exist, with the columns of the raw rows. `rejected`: {view: why Kafka would
    reject a record}. `counts`: {view: number of partitions}."""

    partitions: DataFrame
    rejected: Dict[str, str]
    counts: Dict[str, int]


def replay(raw: DataFrame) -> Replayed:
    """Replay the partition records among rows of views.source. `changed` is the offset of a record.

    Most partitions have one record, which needs no replay: only the keys of these are exchanged.
    """
    records = raw.filter(F.col("kind") == RECORD).withColumn("id", F.xxhash64(*_BY))
    several = records.groupBy("id").count().filter("count > 1").select("id").persist()
    single = records.join(several, "id", "left_anti")
    names = [*(name for name in raw.columns if name not in ("kind", "topic")), "first", "is_orphan"]
    merged = _merged(records.join(several, "id", "left_semi"), dict(raw.dtypes), names).persist()
    alone = single.withColumns({"first": F.col("changed"), "is_orphan": F.col("is_change")}).select(*names)
    known = alone.unionByName(merged).join(F.broadcast(_topics(raw).persist()), ["view", "topic_id"], "left")
    elr = {name: F.coalesce(name, F.array().cast("array<int>")) for name in _ELR}
    replayed = known.withColumns(
        {
            "rejected": _rejected(),
            "kind": F.lit("partition"),
            **elr,
            "directories": _or_migrating(F.col("replicas"), F.col("directories")),
        }
    )
    summary = replayed.groupBy("view").agg(F.min("rejected").alias("why"), F.count("topic").alias("n")).collect()
    return Replayed(
        replayed.filter("topic is not null").select(*raw.columns),
        {row.view: row.why for row in summary if row.why is not None},
        {row.view: row.n for row in summary},
    )


def _merged(records, types, names):
    by_partition = Window.partitionBy(*_BY)
    is_base = ~F.col("is_change")
    placed = (
        records.withColumn("base", F.max(F.when(is_base, F.col("changed"))).over(by_partition))
        .withColumn("first", F.min("changed").over(by_partition))
        .withColumn("first_base", F.min(F.when(is_base, F.col("changed"))).over(by_partition))
    )
    current = placed.filter("base is null or changed >= base")
    # max_by ignores rows whose ordering is null: the last record that names the field
    last = [F.max_by(name, F.when(F.col(name).isNotNull(), F.col("changed"))).alias(name) for name in _NAMED]
    led, changes = F.count_if(F.col("is_change") & F.col("leader").isNotNull()), F.count_if("is_change")
    merged = current.groupBy(*_BY).agg(
        *last,
        (F.max(F.when(is_base, F.col("leader_epoch"))) + led).cast("int").alias("leader_epoch"),
        (F.max(F.when(is_base, F.col("partition_epoch"))) + changes).cast("int").alias("partition_epoch"),
        _directories().alias("directories"),
        F.max("changed").alias("changed"),
        F.max("first").alias("first"),
        F.coalesce(F.max("first_base") > F.max("first"), F.lit(True)).alias("is_orphan"),
    )
    found = merged.columns
    return merged.select(
        *(F.col(name) if name in found else F.lit(None).cast(types[name]).alias(name) for name in names)
    )


def _or_migrating(replicas, named):
    """Return the directories of a PARTITION_RECORD that may name none."""
    return F.when(F.size(named) > 0, named).otherwise(F.transform(replicas, lambda _one: F.lit(MIGRATING)))


def _directories():
    """Return the directories of a partition: they depend on the order of its records."""
    names = F.col("replicas").isNotNull() | (F.size("directories") > 0)
    record = F.struct("changed", "replicas", "directories")
    in_order = F.array_sort(F.collect_list(F.when(names, record)))

    def merged(before, change):
        kept = F.transform(
            change["replicas"],
            lambda replica: F.coalesce(
                F.get(before["directories"], F.array_position(before["replicas"], replica).cast("int") - 1),
                F.lit(UNASSIGNED),
            ),
        )
        named = change["directories"]
        return F.struct(
            F.coalesce(change["replicas"], before["replicas"]).alias("replicas"),
            F.when(F.size(named) > 0, named)
            .when(change["replicas"].isNotNull(), kept)
            .otherwise(before["directories"])
            .alias("directories"),
        )

    first = F.get(in_order, 0)
    begin = F.struct(
        first["replicas"].alias("replicas"), _or_migrating(first["replicas"], first["directories"]).alias("directories")
    )
    return F.aggregate(F.slice(in_order, 2, F.greatest(F.size(in_order) - 1, F.lit(0))), begin, merged)["directories"]


def _rejected():
    topic = F.concat(F.lit("topic "), F.col("topic_id"))
    partition = F.concat(F.lit("partition "), F.col("partition").cast("string"), F.lit(" of "), topic)
    why = (
        F.when(F.col("topic").isNull() & F.col("removed").isNull(), F.concat(topic, F.lit(", which does not exist")))
        .when(F.col("changed") > F.col("removed"), F.concat(topic, F.lit(", which was removed before")))
        .when(F.col("is_orphan"), F.concat(partition, F.lit(", which does not exist")))
    )
    offset = F.greatest("first", F.coalesce("removed", F.lit(0)))
    return F.concat(F.lit("a record at or after offset "), offset.cast("string"), F.lit(" is of "), why)


def _topics(raw: DataFrame) -> DataFrame:
    """Return view, topic_id, topic and removed: the name of a topic that exists, or the offset of its removal."""
    is_log = F.split("view", ":")[0] == "metadata_log"
    exists = raw.filter((F.col("kind") == "topic") & is_log).select(
        "view",
        _first_part(F.concat(F.lit("["), F.col("fields")["id"], F.lit("]"))).alias("topic_id"),
        _first_part("key").alias("topic"),
        F.lit(None).cast("bigint").alias("removed"),
    )
    gone = raw.filter(F.col("kind") == REMOVED_TOPIC).select(
        "view",
        _first_part("key").alias("topic_id"),
        F.lit(None).cast("string").alias("topic"),
        F.get_json_object("at", "$.offset").cast("bigint").alias("removed"),
    )
    return exists.unionByName(gone)


def _first_part(json_array):
    return F.get_json_object(json_array, "$[0]")
