# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Digests of what a broker serves, by buckets of keys: two brokers with the same digest have the same rows there.

Of hundreds of brokers that serve the same metadata one is compared row by row; the others where they are unlike it.
A row has 64 bits of its key and values, a bucket the sum of its rows: what changed, moved or is missing changes it.
"""

from __future__ import annotations

import hashlib
import zlib
from typing import Iterable, List, Tuple

import numpy as np
import pyarrow as pa

from quorumshift_spark.normal_form import Entity, key_of

COUNT = 1024
OWN = 0
"""The bucket of what only this broker has: its own dynamic configs."""
_STEP = np.uint64(0x9E3779B97F4A7C15)


def none() -> np.ndarray:
    """Return the digests of no rows: of each bucket the sum of its rows' digests, modulo 2^64."""
    return np.zeros(COUNT, np.uint64)


def unlike(left: np.ndarray, other: np.ndarray) -> np.ndarray:
    """Return the buckets in which two views have other rows, and OWN."""
    return np.flatnonzero((left != other) | (np.arange(COUNT) == OWN))


def of_entities(entities: Iterable[Entity]) -> Tuple[List[int], np.ndarray]:
    """Return the bucket of each entity, and their digests."""
    found, hashes = [], []
    for entity in entities:
        text = repr((entity.kind, entity.key, *entity.fields.items()))
        # A broker serves the dynamic configs of itself alone, and those of all brokers, which have a null name
        is_own = entity.kind == "config" and entity.key.startswith('["broker",') and key_of(entity.key)[1] is not None
        bucket = OWN if is_own else _bucket(entity.kind + entity.key)
        hashes.append(_hash(text))
        found.append(bucket)
    return found, _digests(np.array(found, np.int16), np.array(hashes, np.uint64))


def of_partitions(batch: pa.RecordBatch) -> Tuple[np.ndarray, np.ndarray]:
    """Return the bucket of each row of columns.PARTITIONS, and their digests."""
    topics = batch["topic"].dictionary_encode()
    names, index = topics.dictionary.to_pylist(), np.asarray(topics.indices)
    found = np.array([*map(_bucket, names)], np.int16)[index]
    hashes = np.array([*map(_hash, names)], np.uint64)[index]
    for field, column in zip(batch.schema, batch.columns):
        if field.name != "topic":
            all_null = len(column) and column.null_count == len(column)
            hashes = _mixed(hashes + _values(column[:1] if all_null else column))
    return found, _digests(found, hashes)


def _digests(found: np.ndarray, hashes: np.ndarray) -> np.ndarray:
    digests = none()
    np.add.at(digests, found, hashes)
    return digests


def _values(column: pa.Array) -> np.ndarray:
    """Return 64 bits of each value."""
    if pa.types.is_list(column.type):
        lengths = np.asarray(column.value_lengths().fill_null(-1)).astype(np.int64)
        sizes = np.maximum(lengths, 0)
        ends = np.cumsum(sizes)
        place = np.arange(ends[-1] if len(ends) else 0) - np.repeat(ends - sizes, sizes)
        elements = _mixed(_mixed(place.astype(np.uint64)) + np.asarray(column.flatten()).astype(np.uint64))
        sums = np.concatenate(([np.uint64(0)], np.cumsum(elements, dtype=np.uint64)))
        return _mixed(lengths.astype(np.uint64)) + sums[ends] - sums[ends - sizes]
    if pa.types.is_string(column.type):
        texts = column.dictionary_encode()
        hashes = np.array([*map(_hash, texts.dictionary.to_pylist()), 0], np.uint64)
        return hashes[np.asarray(texts.indices.fill_null(-1))]
    values = np.asarray(column.cast(pa.int64()).fill_null(-(1 << 40)))
    return _mixed(values.astype(np.uint64))


def _mixed(values: np.ndarray) -> np.ndarray:
    """Return other 64 bits for each value (splitmix64)."""
    values = values + _STEP
    values = (values ^ (values >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    values = (values ^ (values >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return values ^ (values >> np.uint64(31))


def _hash(text: str) -> int:
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest(), "little")


def _bucket(text: str) -> int:
    return zlib.crc32(text.encode()) % (COUNT - 1) + 1
