# Copyright: (c) 2026, Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Reads records with Spark's Kafka source and aggregates them on the executors.

The hash of a record is Spark's xxhash64 over its offset, timestamp (and its type), key, value and headers. xxhash64
skips nulls, so (null, x) would equal (x, null): the hash also covers whether key and value are null. With the offset,
two records that are swapped differ.
"""

from __future__ import annotations

import json
from typing import Dict, Iterable, List, Mapping, Sequence

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from quorumshift_spark.fingerprint import keys, plan
from quorumshift_spark.fingerprint.plan import Range, Sums

_LOW = 0xFFFFFFFF


def chunk_sums(
    spark: SparkSession, options: Mapping[str, str], wanted: Sequence[Range], size: int, isolation: str
) -> List[Sums]:
    """Return the sums of each chunk of the ranges (at most one range a partition).

    The 64-bit hashes are summed as two halves of 32 bits. Each stays below 2^63 for 2^31 records, so the sum is exact
    and does not wrap.
    """
    if not wanted:
        return []
    rows = (
        _records(spark, options, wanted, isolation)
        .select(
            "topic",
            "partition",
            F.expr(f"offset div {int(size)}").alias("index"),
            "offset",
            F.unix_millis("timestamp").alias("timestamp"),
            _hash().alias("hash"),
        )
        .groupBy("topic", "partition", "index")
        .agg(
            F.count("offset").alias("count"),
            F.min("offset").alias("min_offset"),
            F.max("offset").alias("max_offset"),
            F.min("timestamp").alias("min_timestamp"),
            F.max("timestamp").alias("max_timestamp"),
            F.sum(F.shiftrightunsigned("hash", 32)).alias("high"),
            F.sum(F.col("hash").bitwiseAND(F.lit(_LOW))).alias("low"),
        )
        .toArrow()
        .to_pylist()
    )
    return [
        Sums(
            *(row[name] for name in Sums._fields[:-1]),
            (row["high"] << 32) + row["low"],
        )
        for row in rows
    ]


def newest_by_key(spark: SparkSession, options: Mapping[str, str], wanted: Sequence[Range]) -> pa.Table:
    """Return the newest committed record of every key: a table of keys.SCHEMA. Records without a key are left out: the
    cleaner deletes them."""
    if not wanted:
        return keys.SCHEMA.empty_table()
    newest = (
        _records(spark, options, wanted, plan.READ_COMMITTED)
        .where(F.col("key").isNotNull())
        .select(
            "topic",
            "partition",
            F.xxhash64("key").alias("key_hash"),
            F.struct(
                "offset",
                _hash().alias("hash"),
                F.col("value").isNull().alias("tombstone"),
                F.unix_millis("timestamp").alias("timestamp"),
            ).alias("record"),
        )
        .groupBy("topic", "partition", "key_hash")
        .agg(F.max("record").alias("newest"))
        .select("topic", "partition", "key_hash", "newest.*")
    )
    return newest.toArrow().select(keys.SCHEMA.names).cast(keys.SCHEMA)


def _hash():
    headers = F.transform("headers", lambda item: F.struct(item["key"], item["value"].isNull(), item["value"]))
    return F.xxhash64(
        "offset",
        "timestamp",
        "timestampType",
        F.col("key").isNull(),
        "key",
        F.col("value").isNull(),
        "value",
        headers,
    )


def _records(spark: SparkSession, options: Mapping[str, str], wanted: Sequence[Range], isolation: str) -> DataFrame:
    """Return the records of the ranges. If retention removes records during the scan, Spark continues at the new log
    start (failOnDataLoss=false): the caller reads the log starts again afterwards and drops chunks below them."""
    return (
        spark.read.format("kafka")
        .options(**options)
        .option("assign", _json((part, None) for part in wanted))
        .option("startingOffsets", _json((part, part.begin) for part in wanted))
        .option("endingOffsets", _json((part, part.end) for part in wanted))
        .option("kafka.isolation.level", isolation)
        .option("includeHeaders", "true")
        .option("failOnDataLoss", "false")
        .load()
    )


def _json(ranges: Iterable) -> str:
    """Return {topic: [partitions]} for Spark's options, with offsets {topic: {partition: offset}}."""
    offsets: Dict[str, Dict[str, int]] = {}
    for part, offset in ranges:
        offsets.setdefault(part.topic, {})[str(part.partition)] = offset
    if all(offset is None for by_partition in offsets.values() for offset in by_partition.values()):
        return json.dumps({topic: sorted(map(int, numbers)) for topic, numbers in offsets.items()})
    return json.dumps(offsets)
