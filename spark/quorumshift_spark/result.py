# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""result.json: the verdict of a job in the format of result.schema.json, written last and atomically.

Beside it all differences, for those who want to query them: differences.parquet and differences.csv, the same rows.
"""

from __future__ import annotations

import collections
import contextlib
import csv
import hashlib
import heapq
import io
import itertools
import json
import os
import pkgutil
import re
from typing import Any, Dict, Iterable, Iterator, List, Mapping, Sequence

import jsonschema
import pyarrow as pa
import pyarrow.parquet as pq
from ansible_collections.quorumshift.kafka.plugins.module_utils.core.text import printable

from quorumshift_spark.compare import Difference
from quorumshift_spark.normal_form import canonical, is_secret

SCHEMA_VERSION = 1
PASS, DIFFER, ERROR, INCOMPLETE = "pass", "differ", "error", "incomplete"
EXIT_CODES = {PASS: 0, DIFFER: 1, ERROR: 2, INCOMPLETE: 3}
NAME = "result.json"
DIFFERENCES, DIFFERENCES_CSV = "differences.parquet", "differences.csv"

COLUMNS = {
    "status": "`differ`; `undecided`; `changed`, a difference that a record excuses; `unchecked`, one beyond the "
    "number of keys that are read again",
    "kind": "topic, partition, config, ...: see the table of rules",
    "key": 'of the entity: a JSON array, such as `["orders",3]`',
    "field": "empty where only one side has the entity",
    "left": "a view",
    "left_value": "what it has, as JSON, secrets as keyed hashes; empty where it does not have it",
    "right": "the view with which it was compared",
    "right_value": "what that one has",
    "relation": "which column of the table of rules applies: `zookeeper_log`, `served`, `logs`, `since` the baseline, "
    "or `ensemble`",
    "rule": "how the field is compared, and why it may differ for a while",
    "do": "what to do about it",
    "why": "of `changed` the record, of the others why it is undecided or unchecked",
}
"""The columns of the tables of differences, and what they hold: text, or null."""
DIFFERENCES_SCHEMA = pa.schema([(name, pa.string()) for name in COLUMNS])
UNCHECKED = "unchecked"
_ROWS_AT_ONCE = 5_000
_MASK = '"********"'


def markdown() -> List[str]:
    """Return the table of the columns for the docs."""
    return ["| column | what it holds |", "|---|---|", *(f"| `{name}` | {text} |" for name, text in COLUMNS.items())]


def schema() -> Dict[str, Any]:
    """Return the JSON Schema of a result."""
    return json.loads(pkgutil.get_data("quorumshift_spark", "result.schema.json"))


def empty(verdict: str, reasons: Sequence[str], job: str = "metadata_parity") -> Dict[str, Any]:
    """Return a result with verdict and reasons only; the job fills in the rest as far as it gets."""
    return {
        "schema": SCHEMA_VERSION,
        "job": job,
        **dict.fromkeys(("nonce", "gate", "phase", "cluster_id")),
        "verdict": verdict,
        "reasons": list(reasons),
        "views": {},
        "comparisons": [],
        "counts": {},
        **{name: [] for name in ("differences", "changed", "undecided", "rounds")},
        **{f"{name}_total": 0 for name in ("differences", "changed", "undecided")},
        "files": {},
        "timings": {},
        "versions": {},
        "digest": "",
    }


def unread() -> Dict[str, Any]:
    """Return the entry of a view of which nothing was read yet."""
    return {"read": {}, "state": {}, "seconds": 0.0, "error": None, "problems": [], "moved": 0}


def listed(difference: Difference) -> Dict[str, Any]:
    """Return a difference in the format of result.json."""
    difference = _masked(difference)
    return {**difference._asdict(), "text": difference.text()}


def row(difference: Difference, left: str, right: str, status: str = "differ", why: str = "") -> Dict[str, Any]:
    """Return a difference between two views as a row of the tables of differences."""
    difference = _masked(difference)
    fields = {name: getattr(difference, name) for name in ("kind", "key", "field", "relation", "rule", "do")}
    sides = {"left_value": difference.sides[left], "right_value": difference.sides[right]}
    return {"status": status, "why": why, "left": left, "right": right, **sides, **fields}


def _masked(difference: Difference) -> Difference:
    """Return a difference without values of secrets. They are hashes: a view that had one in clear text would be a
    mistake, and this the place where it would show."""
    if difference.kind != "config" or not is_secret(json.loads(difference.key)[-1] or ""):
        return difference
    sides = {name: value if value is None or _is_sealed(value) else _MASK for name, value in difference.sides.items()}
    return difference._replace(sides=sides)


def _is_sealed(text: str) -> bool:
    """Return whether the value of a config is a hash, or says why there is none; also as the one field of an entity."""
    value = json.loads(text)
    if isinstance(value, dict) and set(value) == {"value"}:
        value = value["value"]
    return isinstance(value, dict) and set(value) <= {"digest", "unread"}


def some_of_each(differences: Iterable[Mapping[str, Any]], limit: int) -> List[Mapping[str, Any]]:
    """Return at most `limit` differences, the first of each sort (kind, field, views) before the second of any.

    Many differences of one sort may follow from one of another sort and must not hide it. No others are kept in memory.
    """
    seen: Dict[Any, int] = collections.Counter()

    def ranked() -> Iterator[Any]:
        for index, difference in enumerate(differences):
            sort = (difference["kind"], difference["field"], *difference["sides"])
            seen[sort] += 1
            yield seen[sort], index, difference

    return [difference for _rank, _index, difference in heapq.nsmallest(limit, ranked(), key=lambda found: found[:2])]


def digest(result: Mapping[str, Any]) -> str:
    """Return the SHA-256 of the result without timings, versions and the digest itself."""
    kept = {name: value for name, value in result.items() if name not in ("timings", "versions", "digest")}
    kept["views"] = {name: {**view, "seconds": 0} for name, view in kept["views"].items()}
    kept["rounds"] = [{**entry, "seconds": 0} for entry in kept["rounds"]]
    return hashlib.sha256(canonical(kept).encode("utf-8")).hexdigest()


def write(directory: str, result: Dict[str, Any]) -> None:
    """Set the digest, check the result against the schema and write result.json.

    Raises jsonschema.ValidationError, OSError.
    """
    result.update(printable.escape_all(result))
    result["digest"] = digest(result)
    jsonschema.Draft202012Validator(schema()).validate(result)
    with replacing(os.path.join(directory, NAME)) as part, _private(part) as file:
        file.write(json.dumps(result, indent=1, ensure_ascii=False).encode("utf-8") + b"\n")
        file.flush()
        os.fsync(file.fileno())


@contextlib.contextmanager
def replacing(path: str) -> Iterator[str]:
    """Yield a temporary path that replaces `path` at the end, or is removed on failure."""
    part = path + ".part"
    try:
        yield part
        os.replace(part, path)
    finally:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(part)


def write_differences(directory: str, rows: Iterable[Mapping[str, Any]]) -> Dict[str, Dict[str, Any]]:
    """Write differences.parquet and differences.csv, some rows at a time. Return the facts of both: {name: file_facts}.

    :arg rows: dicts with the names of COLUMNS; they may be read as they are written.
    """
    paths = [os.path.join(directory, name) for name in (DIFFERENCES, DIFFERENCES_CSV)]
    number, left = 0, iter(rows)
    with contextlib.ExitStack() as stack:
        of_table, of_text = (stack.enter_context(replacing(path)) for path in paths)
        table = stack.enter_context(_private(of_table))
        writer = stack.enter_context(pq.ParquetWriter(table, DIFFERENCES_SCHEMA, compression="zstd"))
        text = stack.enter_context(io.TextIOWrapper(_private(of_text), encoding="utf-8", newline=""))
        lines = csv.DictWriter(text, list(COLUMNS), lineterminator="\n")
        lines.writeheader()
        while batch := printable.escape_all(list(itertools.islice(left, _ROWS_AT_ONCE))):
            writer.write_table(pa.Table.from_pylist(batch, schema=DIFFERENCES_SCHEMA))
            lines.writerows({name: _cell(value) for name, value in row.items()} for row in batch)
            number += len(batch)
    return {os.path.basename(path): file_facts(path, number) for path in paths}


_NUMBER = re.compile(r"-?[0-9]+(\.[0-9]+)?([eE][+-]?[0-9]+)?")


def _cell(value: str | None) -> str | None:
    """Return a value as a cell of CSV. A spreadsheet would run a text that begins as a formula; an apostrophe before it
    says that it is a text. Spreadsheets look past blanks."""
    if value and value.lstrip()[:1] in _FORMULA and not _NUMBER.fullmatch(value):
        return f"'{value}"
    return value


_FORMULA = tuple("=+-@\uff1d\uff0b\uff0d\uff20")


def file_facts(path: str, rows: int) -> Dict[str, Any]:
    """Return {rows, bytes, sha256} of a file that the job wrote."""
    hashed = hashlib.sha256()
    with open(path, "rb") as file:
        for chunk in iter(lambda: file.read(1 << 20), b""):
            hashed.update(chunk)
    return {"rows": rows, "bytes": os.path.getsize(path), "sha256": hashed.hexdigest()}


def _private(path):
    return os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb")
