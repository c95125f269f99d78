# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""result.json: the verdict of a job in the format of result.schema.json, written last and atomically."""

from __future__ import annotations

import collections
import contextlib
import hashlib
import json
import os
import pkgutil
from typing import Any, Dict, Iterator, List, Mapping, Sequence

import jsonschema
import pyarrow as pa
import pyarrow.parquet as pq
from ansible_collections.quorumshift.kafka.plugins.module_utils.core.text import printable

from quorumshift_spark.compare import Difference
from quorumshift_spark.normal_form import canonical

SCHEMA_VERSION = 1
PASS, DIFFER, ERROR, INCOMPLETE = "pass", "differ", "error", "incomplete"
EXIT_CODES = {PASS: 0, DIFFER: 1, ERROR: 2, INCOMPLETE: 3}
NAME = "result.json"
DIFFERENCES = "differences.parquet"

DIFFERENCES_SCHEMA = pa.schema(
    [
        (name, pa.string())
        for name in (
            "status",  # differ, undecided, changed
            "kind",
            "key",
            "field",
            "left",
            "left_value",
            "right",
            "right_value",
            "relation",
            "rule",
            "do",
            "why",
        )
    ]
)


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
    return {**difference._asdict(), "text": difference.text()}


def row(difference: Difference, left: str, right: str, status: str = "differ", why: str = "") -> Dict[str, Any]:
    """Return a difference between two views as a row of differences.parquet."""
    fields = {name: getattr(difference, name) for name in ("kind", "key", "field", "relation", "rule", "do")}
    sides = {"left_value": difference.sides[left], "right_value": difference.sides[right]}
    return {"status": status, "why": why, "left": left, "right": right, **sides, **fields}


def some_of_each(differences: Sequence[Mapping[str, Any]], limit: int) -> List[Mapping[str, Any]]:
    """Return at most `limit` differences, the first of each sort (kind, field, views) before the second of any.

    Many differences of one sort may follow from one of another sort and must not hide it.
    """
    seen: Dict[Any, int] = collections.Counter()
    ranked = []
    for index, difference in enumerate(differences):
        sort = (difference["kind"], difference["field"], *difference["sides"])
        seen[sort] += 1
        ranked.append((seen[sort], index))
    return [differences[index] for _rank, index in sorted(ranked)[:limit]]


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


def write_differences(directory: str, rows: List[Dict[str, Any]]) -> None:
    """Write differences.parquet. `rows`: dicts with the names of DIFFERENCES_SCHEMA."""
    with replacing(os.path.join(directory, DIFFERENCES)) as part, _private(part) as file:
        rows = printable.escape_all(rows)
        pq.write_table(pa.Table.from_pylist(rows, schema=DIFFERENCES_SCHEMA), file, compression="zstd")


def file_facts(path: str, rows: int) -> Dict[str, Any]:
    """Return {rows, bytes, sha256} of a file that the job wrote."""
    hashed = hashlib.sha256()
    with open(path, "rb") as file:
        for chunk in iter(lambda: file.read(1 << 20), b""):
            hashed.update(chunk)
    return {"rows": rows, "bytes": os.path.getsize(path), "sha256": hashed.hexdigest()}


def _private(path):
    return os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb")
