# Copyright: (c) 2026, Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""All views of a job as one Spark data source, of Arrow record batches: `spark.read.format("quorumshift_views")`.

The only option is `input`, the path of job.json, which the driver reads; views travel to the tasks inside the reader.
A part that cannot be read gives a row that says so instead of a failed Spark job, so that every view is named that
failed, and no stack trace shows anything.

Rows: view, kind, key, fields (map), at (JSON text), and for each relation of the table of rules its projection
(compare.projection). After the entities of a part comes one row with kind "": key is the number of the part, and fields
has `error` (a text), or `state`, `problems` and `counts` (JSON texts).
"""

from __future__ import annotations

import collections
import json
import os
import time
import traceback
from typing import Any, Dict, Iterator, List

import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition

from quorumshift_spark import job as jobs
from quorumshift_spark import rules
from quorumshift_spark.compare import projection
from quorumshift_spark.normal_form import canonical
from quorumshift_spark.views import Statement, View

NAME = "quorumshift_views"
_BATCH = 8192
_PROJECTIONS = [f"as_{relation}" for relation in rules.RELATIONS]
_ARROW = pa.schema(
    [
        ("view", pa.string()),
        ("kind", pa.string()),
        ("key", pa.string()),
        ("fields", pa.map_(pa.string(), pa.string())),
        ("at", pa.string()),
        *((name, pa.string()) for name in _PROJECTIONS),
    ]
)


class Part(InputPartition):
    """A part of a view, or the error with which it could not be cut into parts. `number`: of the part in its view."""

    def __init__(self, view: View | str, number: int, of: int, part: Any, error: str | None = None) -> None:
        super().__init__(number)
        self.view, self.number, self.of, self.part, self.error = view, number, of, part, error


class ViewsSource(DataSource):
    """The data source."""

    @classmethod
    def name(cls) -> str:
        """Its name in `format`."""
        return NAME

    def schema(self) -> str:
        """The columns."""
        return "view string, kind string, key string, fields map<string,string>, at string, " + ", ".join(
            f"{name} string" for name in _PROJECTIONS
        )

    def reader(self, schema: Any) -> DataSourceReader:
        """Reads job.json, on the driver."""
        return _Reader(jobs.views(jobs.load(self.options["input"])))


class _Reader(DataSourceReader):
    def __init__(self, views: List[View]) -> None:
        self._views = views

    def partitions(self) -> List[Part]:
        parts = []
        for view in self._views:
            try:
                found = view.parts()
                parts += [Part(view, number, len(found), part) for number, part in enumerate(found)]
            except Exception as error:
                parts.append(Part(view.name, 0, 1, None, said(error)))
        # A task pickles the reader as well: the views go with their parts
        self._views = []
        return parts

    def read(self, partition: Part) -> Iterator[pa.RecordBatch]:
        name = partition.view if isinstance(partition.view, str) else partition.view.name
        counts: Dict[str, int] = collections.Counter()
        started = time.time()
        reported = {"of": str(partition.of)}
        rows: List[tuple] = []
        try:
            if partition.error:
                raise _Failed(partition.error)
            for item in partition.view.read(partition.part):
                if isinstance(item, Statement):
                    reported["state"] = canonical(item.state)
                    reported["problems"] = canonical([list(problem) for problem in item.problems])
                    continue
                counts[item.kind] += 1
                rows.append((name, *_row(item)))
                if len(rows) == _BATCH:
                    yield _batch(rows)
                    rows = []
            if "state" not in reported:
                raise _Failed("the view ended without saying where it stood")
            reported["counts"] = canonical(counts)
        except Exception as error:
            reported = {"of": str(partition.of), "error": said(error)}
        reported["seconds"] = f"{time.time() - started:.3f}"
        rows.append((name, "", str(partition.number), list(reported.items()), "", *[None] * len(_PROJECTIONS)))
        yield _batch(rows)


class _Failed(Exception):
    pass


def said(error: Exception) -> str:
    """An error as one line for the operator. Our own errors speak for themselves; of others only the class and the
    place are told, since their texts may quote what was read."""
    if type(error).__module__.startswith(("quorumshift_spark", "ansible_collections")):
        return " ".join(str(error).split())
    if isinstance(error, OSError) and error.strerror:
        return f"{error.strerror}: {error.filename}" if error.filename else error.strerror
    last = traceback.extract_tb(error.__traceback__)[-1:]
    where = "".join(f" at {os.path.basename(frame.filename)}:{frame.lineno}" for frame in last)
    return f"unexpected {type(error).__name__}{where}: this is a fault of the verification, report it"


def _row(entity):
    return (
        entity.kind,
        entity.key,
        list(entity.fields.items()),
        canonical(entity.at),
        *(projection(relation, entity.kind, entity.fields) for relation in rules.RELATIONS),
    )


def _batch(rows):
    columns = [pa.array(column, field.type) for column, field in zip(zip(*rows), _ARROW)]
    return pa.RecordBatch.from_arrays(columns, schema=_ARROW)


def reported(fields: Dict[str, str]) -> Dict[str, Any]:
    """The last row of a part, decoded: {"of", "seconds"} and {"error"} or {"state", "problems", "counts"}."""
    decoded: Dict[str, Any] = {"of": int(fields["of"]), "seconds": float(fields["seconds"])}
    if "error" in fields:
        return {**decoded, "error": fields["error"]}
    return {**decoded, **{name: json.loads(fields[name]) for name in ("state", "problems", "counts")}}
