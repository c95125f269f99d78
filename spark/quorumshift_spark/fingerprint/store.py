# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Stores a fingerprint as the next run's baseline: three files of tables and `fingerprint.json`, written last.

pandas can open chunks.parquet and groups.parquet. keys.arrow has a compressed Arrow stream for each chunk of a
compacted partition, at the place that chunks.parquet names. fingerprint.json holds their SHA-256, so that an incomplete
or modified baseline is rejected. Version 1 had sums of records' hashes, version 2 keys hashed by Spark,
version 3 only the newest and the oldest timestamp of a chunk.
"""

from __future__ import annotations

import json
import os
from typing import Any, Dict, List, Sequence

import pyarrow as pa
import pyarrow.parquet as pq

from quorumshift_spark import result as results
from quorumshift_spark.fingerprint import compare
from quorumshift_spark.fingerprint.compare import Fingerprint
from quorumshift_spark.fingerprint.coordinators import Coordinators, Group, Transaction
from quorumshift_spark.fingerprint.plan import Chunk, PartitionState, Sample, TopicPartition

VERSION = 4
NAME = "fingerprint.json"
KEYS = "keys.arrow"
FILES = ("chunks.parquet", "groups.parquet", KEYS)

_TIMES = pa.list_(pa.list_(pa.int64(), 2))
_TYPES = {"topic": pa.string(), "partition": pa.int32(), "hash": pa.string(), "times": _TIMES}
_CHUNKS = pa.schema([(name, _TYPES.get(name, pa.int64())) for name in Chunk._fields])
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
    """A baseline cannot be used. The message names the file, the reason and what to do."""


def write(directory: str, fingerprint: Fingerprint) -> Dict[str, int]:
    """Write a fingerprint to an existing directory, files 0600. Return {file: rows}. Raises OSError."""
    group_rows = [
        {"group": name, "state": group.state, "topic": topic, "partition": partition, "offset": offset}
        for name, group in sorted(fingerprint.coordinators.groups.items())
        for (topic, partition), offset in sorted(group.offsets.items())
    ]
    paths = {name: os.path.join(directory, name) for name in FILES}
    for path in paths.values():
        os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600))
    chunks = _with_keys(sorted(fingerprint.chunks, key=lambda chunk: chunk[:3]), fingerprint.keys, paths[KEYS])
    rows = {KEYS: sum(chunk.keys or 0 for chunk in chunks)}
    tables = (
        pa.Table.from_pylist([chunk._asdict() for chunk in chunks], _CHUNKS),
        pa.Table.from_pylist(group_rows, _GROUPS),
    )
    for name, table in zip(FILES, tables):
        pq.write_table(table, paths[name], compression="zstd")
        rows[name] = table.num_rows
    sums = {name: results.file_facts(path, 0)["sha256"] for name, path in paths.items()}
    summary = {
        "version": VERSION,
        "cluster_id": fingerprint.cluster_id,
        "taken_ms": fingerprint.taken_ms,
        "topics": fingerprint.topics,
        "transactions": {name: list(last) for name, last in sorted(fingerprint.coordinators.transactions.items())},
        "retentions": fingerprint.coordinators.retentions,
        "samples": {topic: list(sample) for topic, sample in sorted(fingerprint.samples.items())},
        "sha256": sums,
        "partitions": [state._asdict() for state in sorted(fingerprint.partitions.values())],
    }
    path = os.path.join(directory, NAME)
    descriptor = os.open(path + ".new", os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        json.dump(summary, file, indent=1)
    os.replace(path + ".new", path)
    return rows


def _with_keys(chunks: Sequence[Chunk], source: str, target: str) -> List[Chunk]:
    """Copy the keys of chunks from one file to another; return the chunks with their places there."""
    copied, at = [], 0
    with open(source, "rb") as there, open(target, "wb") as here:
        for chunk in chunks:
            there.seek(chunk.at)
            copied.append(chunk._replace(at=at))
            at += here.write(there.read(chunk.size))
    return copied


def read(directory: str) -> Fingerprint:
    """Read a baseline. Raises StoreError."""
    path = os.path.join(directory, NAME)
    try:
        with open(path, encoding="utf-8") as file:
            summary = json.load(file)
        if summary["version"] != VERSION:
            raise StoreError(
                f"{path} has version {summary['version']}, this release reads version {VERSION}. Use the release of "
                "Quorumshift that made this baseline. Or, before controllers are started, delete the file and run the "
                'gate again: it makes a new baseline. Or continue without it: -e \'{"quorumshift_fingerprint_topics": '
                "[]}' (QS-VERIFY-005)"
            )
        for name in FILES:
            if results.file_facts(os.path.join(directory, name), 0)["sha256"] != summary["sha256"][name]:
                raise StoreError(
                    f"{os.path.join(directory, name)} does not match its SHA-256 in {NAME}. Give an intact "
                    "baseline (QS-VERIFY-005)"
                )
        tables = [pq.read_table(os.path.join(directory, name)) for name in FILES[:2]]
        partitions = [PartitionState(**state) for state in summary["partitions"]]
        transactions = {name: Transaction(*last) for name, last in summary["transactions"].items()}
        samples = {topic: Sample(*sample) for topic, sample in summary["samples"].items()}
        coordinators = Coordinators(_groups(tables[1]), transactions, summary["retentions"])
    except (OSError, ValueError, KeyError, TypeError, pa.ArrowException) as error:
        raise StoreError(
            f"{path} is not a baseline of data_fingerprint ({error.__class__.__name__}: {error}). Give the output "
            "directory of a run that passed (QS-VERIFY-005)"
        ) from error
    return Fingerprint(
        summary["cluster_id"],
        summary["taken_ms"],
        summary["topics"],
        compare.states(partitions),
        [_chunk(row) for row in tables[0].to_pylist()],
        os.path.join(directory, KEYS),
        coordinators,
        samples,
    )


def _chunk(row: Dict[str, Any]) -> Chunk:
    return Chunk(**{**row, "times": tuple((offset, time) for offset, time in row["times"])})


def _groups(table: pa.Table) -> Dict[str, Group]:
    offsets: Dict[str, Dict[TopicPartition, int]] = {}
    states: Dict[str, str] = {}
    for row in table.to_pylist():
        offsets.setdefault(row["group"], {})[row["topic"], row["partition"]] = row["offset"]
        states[row["group"]] = row["state"]
    return {name: Group(states[name], committed) for name, committed in offsets.items()}
