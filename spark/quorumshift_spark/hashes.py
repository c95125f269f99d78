# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Hashes of rows, 64 bits each: of a key, of the values that each relation compares, and of all values.

A task that reads rows computes them, so that the comparison exchanges and compares nothing else.
"""

from __future__ import annotations

import functools
import hashlib
import operator
from typing import Dict, Iterable, NamedTuple, Sequence

import numpy as np
import pyarrow as pa

from quorumshift_spark import rules
from quorumshift_spark.compare import projection
from quorumshift_spark.normal_form import Entity

_STEP = np.uint64(0x9E3779B97F4A7C15)
_NO_LIST, _NO_NUMBER = -1, -(1 << 40)  # no length, and no number of 32 bits
_NOT_HASHED = ("topic", "at")


class Hashes(NamedTuple):
    """An array of 64 bits a row.

    `id`: of kind and key. `check`: other bits of the same: two keys with one id have another one. `of`: of the values
    that a relation compares, null where they do not decide (compare.projection). `row`: of the key and all values.
    """

    id: np.ndarray
    check: np.ndarray
    of: Dict[str, pa.Array]
    row: np.ndarray


def of_partitions(batch: pa.RecordBatch, relations: Iterable[str]) -> Hashes:
    """Return the hashes of rows of columns.PARTITIONS."""
    topics = batch["topic"].dictionary_encode()
    index = np.asarray(topics.indices)
    ids, checks = _keys(("partition", name) for name in topics.dictionary.to_pylist())
    number = _mixed(_values(batch["partition"]))
    found_id, check = _mixed(ids[index] + number), _mixed(checks[index] + number)
    # 64 bits of its own for each field. Small numbers would not do: leader 3 in epoch 1 was as leader 2 in epoch 2
    salts = _mixed(np.arange(len(batch.schema.names), dtype=np.uint64))
    values = {
        name: _mixed(_values(_constant(batch[name])) + salt)
        for name, salt in zip(batch.schema.names, salts)
        if name not in _NOT_HASHED
    }
    of = {}
    for relation in relations:
        fields = [values[name] for name, _how in rules.compared_fields("partition", relation)]
        of[relation] = pa.array(np.broadcast_to(_sum(fields), len(batch)).copy().view(np.int64))
    return Hashes(found_id.view(np.int64), check.view(np.int64), of, _mixed(found_id + _sum(values.values())))


def of_entities(entities: Sequence[Entity], relations: Iterable[str]) -> Hashes:
    """Return the hashes of entities."""
    ids, checks = _keys((entity.kind, entity.key) for entity in entities)
    of = {}
    for relation in relations:
        texts = (projection(relation, entity.kind, entity.fields) for entity in entities)
        of[relation] = pa.array([None if text is None else _hash(text, True) for text in texts], pa.int64())
    rows = [_hash(repr((entity.kind, entity.key, *entity.fields.items()))) for entity in entities]
    return Hashes(ids.view(np.int64), checks.view(np.int64), of, np.array(rows, np.uint64))


def _keys(keys):
    """Return twice 64 bits of each kind and key."""
    hashed = b"".join(hashlib.blake2b("\0".join(key).encode(), digest_size=16).digest() for key in keys)
    both = np.frombuffer(hashed, np.uint64).reshape(-1, 2)
    return both[:, 0].copy(), both[:, 1].copy()


def _sum(values: Iterable[np.ndarray]) -> np.ndarray:
    return functools.reduce(operator.add, values)


def _constant(column: pa.Array) -> pa.Array:
    """Return one value of a column that is null in every row."""
    return column[:1] if len(column) and column.null_count == len(column) else column


def _values(column: pa.Array) -> np.ndarray:
    """Return 64 bits of each value."""
    if pa.types.is_list(column.type):
        lengths = np.asarray(column.value_lengths().fill_null(_NO_LIST)).astype(np.int64)
        sizes = np.maximum(lengths, 0)
        ends = np.cumsum(sizes)
        place = np.arange(ends[-1] if len(ends) else 0) - np.repeat(ends - sizes, sizes)
        elements = _mixed(_mixed(place.astype(np.uint64)) + _values(column.flatten()))
        sums = np.concatenate(([np.uint64(0)], np.cumsum(elements, dtype=np.uint64)))
        return _mixed(lengths.astype(np.uint64)) + sums[ends] - sums[ends - sizes]
    if pa.types.is_string(column.type):
        texts = column.dictionary_encode()
        hashes = np.array([*map(_hash, texts.dictionary.to_pylist()), 0], np.uint64)
        return hashes[np.asarray(texts.indices.fill_null(-1))]
    return np.asarray(column.cast(pa.int64()).fill_null(_NO_NUMBER)).astype(np.uint64)


def _mixed(values: np.ndarray) -> np.ndarray:
    """Return other 64 bits for each value (splitmix64)."""
    values = values + _STEP
    values = (values ^ (values >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    values = (values ^ (values >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return values ^ (values >> np.uint64(31))


def _hash(text: str, is_signed: bool = False) -> int:
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest(), "little", signed=is_signed)
