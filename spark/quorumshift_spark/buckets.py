# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Digests of a broker or a log, by buckets of keys: two brokers with the same digest have the same rows there.

Of hundreds of brokers that serve the same metadata one is compared row by row; the others where they are unlike it. So
are the logs of voters. A row has 64 bits of its key and values, a bucket the sum of its rows: what changed, moved or is
missing changes it.
"""

from __future__ import annotations

import zlib
from typing import Iterable

import numpy as np
import pyarrow as pa

from quorumshift_spark.normal_form import Entity, key_of

COUNT = 1024
OWN = 0
"""The bucket of what only this broker serves: its own dynamic configs."""


def none() -> np.ndarray:
    """Return the digests of no rows: of each bucket the sum of its rows' digests, modulo 2^64."""
    return np.zeros(COUNT, np.uint64)


def unlike(left: np.ndarray, other: np.ndarray) -> np.ndarray:
    """Return the buckets in which two views have other rows, and OWN."""
    return np.flatnonzero((left != other) | (np.arange(COUNT) == OWN))


def of_entities(entities: Iterable[Entity]) -> np.ndarray:
    """Return the bucket of each entity."""
    return np.array([OWN if _is_own(entity) else _bucket(entity.kind + entity.key) for entity in entities], np.int16)


def of_partitions(batch: pa.RecordBatch) -> np.ndarray:
    """Return the bucket of each row of columns.PARTITIONS."""
    topics = batch["topic"].dictionary_encode()
    return np.array([*map(_bucket, topics.dictionary.to_pylist())], np.int16)[np.asarray(topics.indices)]


def digests(found: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """Return the digests of rows with these buckets and hashes (hashes.Hashes.row)."""
    sums = none()
    np.add.at(sums, found, rows)
    return sums


def _is_own(entity):
    # A broker serves the dynamic configs of itself alone, and those of all brokers, which have a null name
    is_of_broker = entity.kind == "config" and entity.key.startswith('["broker",')
    return is_of_broker and key_of(entity.key)[1] is not None


def _bucket(text: str) -> int:
    return zlib.crc32(text.encode()) % (COUNT - 1) + 1
