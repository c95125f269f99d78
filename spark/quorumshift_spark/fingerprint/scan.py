# Copyright: (c) 2026, Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Reads compacted topics with Spark's Kafka source and finds the newest record of each key on the executors.

The hash of a record is Spark's xxhash64 over its offset, timestamp (and its type), key, value and headers. xxhash64
skips nulls, so (null, x) would equal (x, null): the hash also covers whether key and value are null.
"""

from __future__ import annotations

import json
from typing import Dict, Mapping, Sequence

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from quorumshift_spark.fingerprint import keys
from quorumshift_spark.fingerprint.plan import PartitionState


def newest_by_key(spark: SparkSession, options: Mapping[str, str], wanted: Sequence[PartitionState]) -> pa.Table:
    """Return the newest committed record of every key: a table of keys.SCHEMA. Records without a key are left out: the
    cleaner deletes them."""
    if not wanted:
        return keys.SCHEMA.empty_table()
    newest = (
        _records(spark, options, wanted)
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


def _records(spark: SparkSession, options: Mapping[str, str], wanted: Sequence[PartitionState]) -> DataFrame:
    """Return the committed records of the partitions. If retention removes records during the scan, Spark continues at
    the new log start (failOnDataLoss=false)."""
    assigned: Dict[str, list] = {}
    begins: Dict[str, Dict[str, int]] = {}
    ends: Dict[str, Dict[str, int]] = {}
    for part in wanted:
        assigned.setdefault(part.topic, []).append(part.partition)
        begins.setdefault(part.topic, {})[str(part.partition)] = part.log_start
        ends.setdefault(part.topic, {})[str(part.partition)] = part.end
    return (
        spark.read.format("kafka")
        .options(**options)
        .option("assign", json.dumps(assigned))
        .option("startingOffsets", json.dumps(begins))
        .option("endingOffsets", json.dumps(ends))
        .option("kafka.isolation.level", "read_committed")
        .option("includeHeaders", "true")
        .option("failOnDataLoss", "false")
        .load()
    )
