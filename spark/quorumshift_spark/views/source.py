# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Reads all views of a job, one task a part, as Arrow record batches that are written once (quorumshift_spark.rows).

A part that cannot be read yields a row with the error instead of failing the Spark job. So the result names every view
that failed, and no stack trace shows what was read. Of a view that is compared with another (Part.like) only the rows
of unlike buckets are kept.

A task makes rows of ROWS: view, kind, key, fields (map), at (JSON text), and hashes: of the key `id` and `check`, of
the values one for each relation in which the view is compared (see hashes). A partition has typed columns instead of
key, fields and at, from topic to changed. What a broker serves has a bucket (see buckets).

It yields batches of WRITTEN: what is compared, a row each; and the values in `sealed`, in a row for each batch, of kind
PARTITIONS or ENTITIES. So Spark converts few columns, and who can read what is written sees no value: the key is in the
tasks' function. The last row of a part has its Summary in `ended`.
"""

from __future__ import annotations

import collections
import contextlib
import functools
import gc
import itertools
import os
import pickle
import socket
import time
import traceback
from typing import Any, Callable, Dict, Iterable, Iterator, List, Mapping, NamedTuple, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.pandas.types import from_arrow_schema

from quorumshift_spark import buckets, hashes, rules
from quorumshift_spark.normal_form import Entity, canonical
from quorumshift_spark.views import Problem, Shared, Statement, View, baseline

_BATCH = 8192
ROWS = pa.schema(
    [
        ("view", pa.string()),
        ("kind", pa.string()),
        ("key", pa.string()),
        ("fields", pa.map_(pa.string(), pa.string())),
        ("at", pa.string()),
        ("id", pa.int64()),
        ("check", pa.int64()),
        *((relation, pa.int64()) for relation in rules.RELATIONS),
        *baseline.PARTITION,
        ("bucket", pa.int16()),
    ]
)
PARTITIONS, ENTITIES = "(partitions)", "(entities)"
COMPARED = ["view", "kind", "id", "check", *rules.RELATIONS, "bucket"]
WRITTEN = pa.schema([*map(ROWS.field, COMPARED), ("sealed", pa.binary()), ("ended", pa.binary())])
_BROADCAST = 1 << 20  # bytes of a part


class Part(NamedTuple):
    """A part of a view, or the error of a view that has no parts. `number`: of the part; `of`: how many there are.

    `like`: the digests of a view of which the rows are kept: rows of buckets with the same digest are left out.
    """

    view: View | str
    number: int
    of: int
    part: Any
    error: str | None = None
    like: np.ndarray | None = None

    @property
    def name(self) -> str:
        return self.view if isinstance(self.view, str) else self.view.name


class Summary(NamedTuple):
    """How reading a part of `of` ended: with an `error`, or with the view's Statement. `counts`: {kind: rows that were
    read}, `kept`: {kind: rows that follow}; `digests`: of the buckets where the view has them."""

    number: int
    of: int
    seconds: float
    error: str | None = None
    state: Mapping[str, Any] = {}
    problems: Sequence[Problem] = ()
    counts: Mapping[str, int] = {}
    kept: Mapping[str, int] = {}
    digests: np.ndarray | None = None


def parts(views: Iterable[View], at_once: int, apart: bool) -> List[Part]:
    """Return the parts of all views; on the driver. `at_once`: see View.parts; `apart`: whether executors do not share
    the driver's files."""
    found = []
    for view in views:
        try:
            if apart:
                view.carry_files()
            of_view = view.parts(at_once)
            found += [Part(view, number, len(of_view), part) for number, part in enumerate(of_view)]
        except Exception as error:
            found.append(Part(view.name, 0, 1, None, error_line(error)))
    return found


def on_tasks(
    spark: SparkSession, parts: Sequence[Any], read: Callable[[Any], Iterator[pa.RecordBatch]], schema: pa.Schema
) -> DataFrame:
    """Return the rows that `read` yields for these parts, each on a task. A part that holds the content of a file is a
    broadcast of its own: a task loads its own alone."""
    held: List[Any] = [*map(pickle.dumps, parts)]
    held = [spark.sparkContext.broadcast(part) if len(part) > _BROADCAST else part for part in held]

    def work(numbers: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        gc.disable()  # a part makes millions of objects and no cycles; the search for cycles takes a fifth of the time
        try:
            for number in itertools.chain.from_iterable(batch["id"].to_pylist() for batch in numbers):
                part = held[number]
                yield from read(pickle.loads(part if isinstance(part, bytes) else part.value))
        finally:
            gc.freeze()  # PySpark collects after each task; what is kept for the next ones need not be looked through
            gc.enable()

    return spark.range(0, len(parts), 1, len(parts)).mapInArrow(work, from_arrow_schema(schema))


def batches(part: Part, key: bytes) -> Iterator[pa.RecordBatch]:
    """Yield what is WRITTEN of a part, sealed under a key of 32 bytes."""
    return itertools.chain.from_iterable(_written(part, key))


def stored(part: Part, key: bytes, directory: str) -> Iterator[pa.RecordBatch]:
    """Write the same to a file of a directory (see file_name). Yield its last row alone: a row that the JVM need not
    convert and write costs a tenth."""
    name = file_name(part)
    # Spark skips names with a leading dot: an unfinished file of a task that runs again
    unfinished = os.path.join(directory, f".{name}.{os.getpid()}")
    last: List[pa.RecordBatch] = []
    with contextlib.ExitStack() as stack:
        try:
            file = stack.enter_context(open(unfinished, "wb"))  # before anything is read
        except OSError as error:
            why = (
                f"{error.strerror}: {directory} on {socket.gethostname()}. The Spark host and all executors must share "
                "the directory of what is read: set quorumshift_spark_uri to such a one (QS-VERIFY-002)"
            )
            for rows in _written(part._replace(error=why), key):
                yield from rows
            return
        with pq.ParquetWriter(file, WRITTEN, compression="none", use_dictionary=["view", "kind"]) as writer:
            for last in _written(part, key):
                writer.write_table(pa.Table.from_batches(last))
    os.replace(unfinished, os.path.join(directory, name))
    yield from last


def file_name(part: Part) -> str:
    """Return the name of the file of a part."""
    return f"{part.name.replace(':', '-')}.{part.number}.parquet"


def _written(part: Part, key: bytes) -> Iterator[List[pa.RecordBatch]]:
    """Yield rows with their values, and at the end the row with the summary."""
    started = time.time()
    summary = Summary(part.number, part.of, 0.0)
    try:
        if part.error:
            raise _Failed(part.error)
        for item in _kept(part):
            if isinstance(item, Summary):
                summary = item
            elif len(item):
                kind = PARTITIONS if item["kind"][0].as_py() == "partition" else ENTITIES
                yield [_compared(part.name, item), _row(view=part.name, kind=kind, sealed=seal(key, part.name, item))]
    except Exception as error:
        summary = summary._replace(error=error_line(error))
    summary = summary._replace(seconds=round(time.time() - started, 3))
    yield [_row(view=part.name, ended=_encrypted(key, part.name, pickle.dumps(summary)))]


def _compared(name: str, batch: pa.RecordBatch) -> pa.RecordBatch:
    view, nothing = pa.repeat(pa.scalar(name, pa.string()), len(batch)), pa.nulls(len(batch), pa.binary())
    return pa.RecordBatch.from_arrays([view, *map(batch.column, COMPARED[1:]), nothing, nothing], schema=WRITTEN)


def _row(**values: Any) -> pa.RecordBatch:
    return pa.RecordBatch.from_pylist([values], schema=WRITTEN)


def seal(key: bytes, name: str, batch: pa.RecordBatch) -> bytes:
    """Return the rows of a view, of the schema ROWS, encrypted."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, ROWS, options=pa.ipc.IpcWriteOptions(compression="lz4")) as writer:
        writer.write_batch(batch)
    return _encrypted(key, name, sink.getvalue().to_pybytes())


def unseal(key: bytes, name: str, sealed: bytes) -> pa.Table:
    """Return the rows of a view again. Raises cryptography's InvalidTag for what was not sealed so."""
    table = pa.ipc.open_stream(_decrypted(key, name, sealed)).read_all()
    return table.set_column(0, "view", pa.repeat(pa.scalar(name, pa.string()), len(table)))


def summary(key: bytes, name: str, sealed: bytes) -> Summary:
    """Return the summary of a part of a view."""
    return pickle.loads(_decrypted(key, name, sealed))


def _encrypted(key, name, data):
    nonce = os.urandom(_NONCE)
    return nonce + AESGCM(key).encrypt(nonce, data, name.encode())


def _decrypted(key, name, sealed):
    return AESGCM(key).decrypt(sealed[:_NONCE], sealed[_NONCE:], name.encode())


_NONCE = 12  # bytes


def _kept(part: Part) -> Iterator[pa.RecordBatch | Summary]:
    """Yield the rows of a part that are kept, and its summary."""
    counts, kept, digests = collections.Counter(), collections.Counter(), buckets.none()
    held: List[pa.RecordBatch] = []
    statement: List[Statement] = []
    for rows in _read(part.view, part.part, statement):
        counts.update(rows.counts)
        if part.view.has_buckets:
            digests += rows.digests
        if part.like is None:
            kept.update(rows.counts)
            yield from rows.batches
        else:
            held += rows.batches  # mostly those of the last view, which are kept anyway
    if part.like is not None:
        unlike = pa.array(buckets.unlike(digests, part.like), pa.int16())
        found = pa.Table.from_batches([batch.filter(pc.is_in(batch["bucket"], unlike)) for batch in held], ROWS)
        is_partition = pc.equal(found["kind"], "partition")
        for of_kind in (is_partition, pc.invert(is_partition)):
            for batch in found.filter(of_kind).combine_chunks().to_batches():  # not as many small ones
                kept.update({entry["values"]: entry["counts"] for entry in batch["kind"].value_counts().to_pylist()})
                yield batch
    (said,) = statement
    of_buckets = digests if part.view.has_buckets else None
    yield Summary(part.number, part.of, 0.0, None, said.state, said.problems, dict(counts), dict(kept), of_buckets)


def _read(view: View, part: Any, statement: List[Statement]) -> Iterator[_Rows]:
    """Yield what the view reads, and append its statement."""
    entities: List[Entity] = []
    given = rules.relations(view.name), view.has_buckets
    for item in view.read(part):
        if isinstance(item, Statement):
            statement.append(item)
        elif isinstance(item, Shared):
            if item.rows is None:
                item.rows = _rows(item.items, *given)
            yield item.rows
        elif isinstance(item, pa.RecordBatch):
            yield _rows([item], *given)
        else:
            entities.append(item)
            if len(entities) == _BATCH:
                yield _rows(entities, *given)
                entities.clear()
    if not statement:
        raise _Failed("the view ended without a Statement (QS-VERIFY-003)")
    yield _rows(entities, *given)


class _Rows(NamedTuple):
    """Items as rows: batches of ROWS with no view, the number of each kind, and digests where the view has buckets."""

    batches: List[pa.RecordBatch]
    counts: Dict[str, int]
    digests: np.ndarray | None


def _rows(items: Sequence[Entity | pa.RecordBatch], relations: Sequence[str], has_buckets: bool) -> _Rows:
    batches, counts, digests, entities = [], collections.Counter(), buckets.none(), []

    def add(given, hashed, bucket_of):
        given.update(id=hashed.id, check=hashed.check, **hashed.of)
        if has_buckets:
            given["bucket"] = bucket_of()
            np.add(digests, buckets.digests(given["bucket"], hashed.row), digests)
        batches.append(_batch(len(hashed.id), given))

    for item in items:
        if not isinstance(item, pa.RecordBatch):
            entities.append(item)
        elif len(item):
            counts["partition"] += len(item)
            given = {"kind": pa.repeat("partition", len(item)), **dict(zip(item.schema.names, item.columns))}
            given["changed"] = given.pop("at")
            add(given, hashes.of_partitions(item, relations), functools.partial(buckets.of_partitions, item))
    if entities:
        counts.update(entity.kind for entity in entities)
        given = {
            "kind": [entity.kind for entity in entities],
            "key": [entity.key for entity in entities],
            "fields": [list(entity.fields.items()) for entity in entities],
            "at": [canonical(entity.at) for entity in entities],
        }
        add(given, hashes.of_entities(entities, relations), functools.partial(buckets.of_entities, entities))
    return _Rows(batches, counts, digests if has_buckets else None)


def _batch(length: int, given: Mapping[str, Any]) -> pa.RecordBatch:
    """Return rows with these columns; the others are null."""
    arrays = []
    for field in ROWS:
        values = given.get(field.name)
        if isinstance(values, pa.Array):
            arrays.append(values.cast(field.type))
        else:
            arrays.append(pa.nulls(length, field.type) if values is None else pa.array(values, field.type))
    return pa.RecordBatch.from_arrays(arrays, schema=ROWS)


class _Failed(Exception):
    pass


def error_line(error: Exception) -> str:
    """Return an error as one line for the operator.

    Of errors from outside the collection it shows class and source line only: their texts may quote what was read.
    """
    if type(error).__module__.startswith(("quorumshift_spark", "ansible_collections")):
        return " ".join(str(error).split())
    if isinstance(error, OSError) and error.strerror:
        return f"{error.strerror}: {error.filename}" if error.filename else error.strerror
    last = traceback.extract_tb(error.__traceback__)[-1:]
    where = "".join(f" at {os.path.basename(frame.filename)}:{frame.lineno}" for frame in last)
    return f"unexpected {type(error).__name__}{where}: this is a bug of the verification, report it"
