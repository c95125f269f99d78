# Copyright: (c) 2026, Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Keeps a fingerprint as the next run's baseline: three Parquet files and `fingerprint.json`, written last.

chunks.parquet, keys.parquet and groups.parquet open in plain pandas. fingerprint.json names their SHA-256, so that a
baseline that was not written to its end, or was changed since, is refused.
"""

from __future__ import annotations

import json
import os
from typing import Dict

import pyarrow as pa
import pyarrow.parquet as pq

from quorumshift_spark import result as results
from quorumshift_spark.fingerprint import compare, keys
from quorumshift_spark.fingerprint.compare import Fingerprint
from quorumshift_spark.fingerprint.groups import Group
from quorumshift_spark.fingerprint.plan import Chunk, PartitionState, TopicPartition

VERSION = 1
NAME = "fingerprint.json"
FILES = ("chunks.parquet", "keys.parquet", "groups.parquet")

_CHUNKS = pa.schema(
    [("topic", pa.string()), ("partition", pa.int32())]
    + [(name, pa.int64()) for name in Chunk._fields[2:-1]]
    + [("hash_sum", pa.decimal128(38, 0))]
)
_GROUPS = pa.schema(
    [
        ("group", pa.string()),
        ("state", pa.string()),
        ("topic", pa.string()),
        ("partition", pa.int32()),
        ("offset", pa.int64()),
    ]
)


class StoreError(Exception):
    """A baseline that cannot be used; says which file, why and what to do."""


def write(directory: str, fingerprint: Fingerprint) -> Dict[str, int]:
    """Write a fingerprint into an existing directory, files 0600; returns {file: rows}. Raises OSError."""
    rows = [chunk._asdict() for chunk in sorted(fingerprint.chunks)]
    group_rows = [
        {"group": name, "state": group.state, "topic": topic, "partition": partition, "offset": offset}
        for name, group in sorted(fingerprint.groups.items())
        for (topic, partition), offset in sorted(group.offsets.items())
    ]
    order = [("topic", "ascending"), ("partition", "ascending"), ("key_hash", "ascending")]
    tables = (
        pa.Table.from_pylist(rows, _CHUNKS),
        fingerprint.keys.sort_by(order),
        pa.Table.from_pylist(group_rows, _GROUPS),
    )
    sums = {}
    for name, table in zip(FILES, tables):
        path = os.path.join(directory, name)
        os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600))
        pq.write_table(table, path, compression="zstd")
        sums[name] = results.file_facts(path, table.num_rows)["sha256"]
    reported = {
        "version": VERSION,
        "cluster_id": fingerprint.cluster_id,
        "taken_ms": fingerprint.taken_ms,
        "chunk_offsets": fingerprint.chunk_offsets,
        "isolation": fingerprint.isolation,
        "sha256": sums,
        "partitions": [one._asdict() for one in sorted(fingerprint.partitions.values())],
    }
    path = os.path.join(directory, NAME)
    descriptor = os.open(path + ".new", os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        json.dump(reported, file, indent=1)
    os.replace(path + ".new", path)
    return {name: table.num_rows for name, table in zip(FILES, tables)}


def read(directory: str) -> Fingerprint:
    """Read a baseline. Raises StoreError."""
    path = os.path.join(directory, NAME)
    try:
        with open(path, encoding="utf-8") as file:
            reported = json.load(file)
        if reported["version"] != VERSION:
            raise StoreError(
                f"{path}: version {reported['version']}, this release reads {VERSION}; make a new baseline"
            )
        for name in FILES:
            if results.file_facts(os.path.join(directory, name), 0)["sha256"] != reported["sha256"][name]:
                raise StoreError(
                    f"{os.path.join(directory, name)}: not what {NAME} says was written; give an intact baseline"
                )
        tables = [pq.read_table(os.path.join(directory, name)) for name in FILES]
        partitions = [PartitionState(**one) for one in reported["partitions"]]
    except (OSError, ValueError, KeyError, TypeError, pa.ArrowException) as error:
        raise StoreError(
            f"{path}: not a baseline of a data fingerprint ({error.__class__.__name__}: {error}); give the output "
            "directory of a run that passed"
        ) from error
    chunks = [Chunk(**{**row, "hash_sum": int(row["hash_sum"])}) for row in tables[0].to_pylist()]
    return Fingerprint(
        reported["cluster_id"],
        reported["taken_ms"],
        reported["chunk_offsets"],
        reported["isolation"],
        compare.states(partitions),
        chunks,
        tables[1].select(keys.SCHEMA.names).cast(keys.SCHEMA),
        _groups(tables[2]),
    )


def _groups(table: pa.Table) -> Dict[str, Group]:
    offsets: Dict[str, Dict[TopicPartition, int]] = {}
    states: Dict[str, str] = {}
    for row in table.to_pylist():
        offsets.setdefault(row["group"], {})[row["topic"], row["partition"]] = row["offset"]
        states[row["group"]] = row["state"]
    return {name: Group(states[name], places) for name, places in offsets.items()}
