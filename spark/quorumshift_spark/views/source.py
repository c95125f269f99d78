# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Reads all views of a job on Spark, one task a part, as a DataFrame of Arrow record batches.

Each task gets its part as an object: it needs no file of the driver, and no process of Python plans the read. With a
directory that all tasks share it writes the rows there, as one Parquet file of ROWS for each part (see file_name), and
returns the last row alone: a row that the JVM need not convert costs a tenth. Of a view that is compared with another
(Part.like) only the rows of unlike buckets are kept.

A part that cannot be read yields a row with the error instead of failing the Spark job. So the result names every view
that failed, and no stack trace shows what was read.

Rows: view, kind, key, fields (map), at (JSON text), and hashes: of the key `id` and `check`, of the values one for each
relation in which the view is compared (see hashes). A partition has typed columns instead of key, fields and at, from
topic to changed. What a broker serves has a bucket (see buckets). The last row of a part has kind "": key is the number
of the part; fields holds `error` (text), or `state`, `problems`, `counts` and `kept` (JSON texts) and `digests` (of the
buckets, in base64). `reading` is new with each time that a task reads the part.
"""

from __future__ import annotations

import base64
import collections
import contextlib
import functools
import gc
import itertools
import json
import os
import pickle
import secrets
import time
import traceback
from typing import Any, Callable, Dict, Iterable, Iterator, List, Mapping, NamedTuple, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.pandas.types import from_arrow_schema

from quorumshift_spark import buckets, hashes, rules
from quorumshift_spark.normal_form import Entity, canonical
from quorumshift_spark.views import Shared, Statement, View, baseline

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


def parts(views: Iterable[View], at_once: int) -> List[Part]:
    """Return the parts of all views; on the driver. `at_once`: see View.parts."""
    found = []
    for view in views:
        try:
            of_view = view.parts(at_once)
            found += [Part(view, number, len(of_view), part) for number, part in enumerate(of_view)]
        except Exception as error:
            found.append(Part(view.name, 0, 1, None, error_line(error)))
    return found


def rows(spark: SparkSession, given: Sequence[Part], directory: str | None, ship: bool) -> DataFrame:
    """Return the rows of these parts, or, with a directory, the last row of each.

    :arg ship: see on_tasks.
    """
    return on_tasks(
        spark, given, lambda part: _batches(part) if directory is None else _stored(part, directory), ROWS, ship
    )


def on_tasks(
    spark: SparkSession,
    parts: Sequence[Any],
    read: Callable[[Any], Iterator[pa.RecordBatch]],
    schema: pa.Schema,
    ship: bool,
) -> DataFrame:
    """Return the rows that `read` yields for these parts, each on a task.

    :arg ship: whether parts hold the content of files: then a task loads its own alone.
    """
    held: List[Any] = [*map(pickle.dumps, parts)]
    if ship:
        held = [*map(spark.sparkContext.broadcast, held)]

    def work(numbers: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        gc.disable()  # a part makes millions of objects and no cycles; the search for cycles takes a fifth of the time
        try:
            for number in itertools.chain.from_iterable(batch["id"].to_pylist() for batch in numbers):
                yield from read(pickle.loads(held[number].value if ship else held[number]))
        finally:
            gc.freeze()  # PySpark collects after each task; what is kept for the next ones need not be looked through
            gc.enable()

    return spark.range(0, len(parts), 1, len(parts)).mapInArrow(work, from_arrow_schema(schema))


def _stored(part: Part, directory: str) -> Iterator[pa.RecordBatch]:
    """Write the rows of a part; yield the last one."""
    name = file_name(part)
    # Spark skips names with a leading dot: an unfinished file of a task that runs again
    unfinished = os.path.join(directory, f".{name}.{os.getpid()}")
    last = None
    with _writer(unfinished) as writer:
        for batch in _batches(part):
            if last is not None:
                writer.write_batch(last)
            last = batch
    os.replace(unfinished, os.path.join(directory, name))
    yield last


@contextlib.contextmanager
def _writer(path: str) -> Iterator[pq.ParquetWriter]:
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with open(descriptor, "wb") as file, pq.ParquetWriter(file, ROWS, compression="lz4") as writer:
        yield writer


def file_name(part: Part) -> str:
    """Return the name of the file with the rows of a part."""
    return f"{part.name.replace(':', '-')}.{part.number}.parquet"


def _batches(part: Part) -> Iterator[pa.RecordBatch]:
    name = pa.scalar(part.name, pa.string())
    counts, kept = collections.Counter(), collections.Counter()
    digests = buckets.none()
    held: List[pa.RecordBatch] = []
    started = time.time()
    summary = {"of": str(part.of)}
    reading = secrets.token_hex(8)

    def named(batches):
        for batch in filter(len, batches):
            kept.update({entry["values"]: entry["counts"] for entry in batch["kind"].value_counts().to_pylist()})
            yield pa.RecordBatch.from_arrays([pa.repeat(name, batch.num_rows), *batch.columns[1:]], schema=ROWS)

    try:
        if part.error:
            raise _Failed(part.error)
        has_buckets = part.view.has_buckets
        for rows in _read(part.view, part.part, summary):
            counts.update(rows.counts)
            if has_buckets:
                digests += rows.digests
            if part.like is None:
                yield from named(rows.batches)
            else:
                held += rows.batches  # mostly those of the last view, which are kept anyway
        if part.like is not None:
            unlike = pa.array(buckets.unlike(digests, part.like), pa.int16())
            found = pa.Table.from_batches([batch.filter(pc.is_in(batch["bucket"], unlike)) for batch in held], ROWS)
            yield from named(found.combine_chunks().to_batches())  # not as many small ones
        summary["counts"], summary["kept"] = canonical(counts), canonical(kept)
        if has_buckets:
            summary["digests"] = base64.b64encode(digests.tobytes()).decode()
    except Exception as error:
        summary = {"of": str(part.of), "error": error_line(error)}
    summary["reading"] = reading
    summary["seconds"] = f"{time.time() - started:.3f}"
    last = {"view": [part.name], "kind": [""], "key": [str(part.number)], "fields": [list(summary.items())], "at": [""]}
    yield _batch(1, last)


def _read(view: View, part: Any, summary: Dict[str, str]) -> Iterator[_Rows]:
    """Yield what the view reads, and put its statement into `summary`."""
    entities: List[Entity] = []
    given = rules.relations(view.name), view.has_buckets
    for item in view.read(part):
        if isinstance(item, Statement):
            summary["state"] = canonical(item.state)
            summary["problems"] = canonical([list(problem) for problem in item.problems])
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
    if "state" not in summary:
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


def part_summary(fields: Dict[str, str]) -> Dict[str, Any]:
    """Return the last row of a part, decoded: {"of", "seconds", "reading"} and {"error"} or {"state", "problems",
    "counts": {kind: rows that were read}, "kept": {kind: rows that follow}}, with {"digests"} where the view has
    buckets."""
    decoded: Dict[str, Any] = {"of": int(fields["of"]), "seconds": float(fields["seconds"])}
    decoded["reading"] = fields["reading"]
    if "error" in fields:
        return {**decoded, "error": fields["error"]}
    decoded.update({name: json.loads(fields[name]) for name in ("state", "problems", "counts", "kept")})
    if "digests" in fields:
        decoded["digests"] = np.frombuffer(base64.b64decode(fields["digests"]), np.uint64)
    return decoded
