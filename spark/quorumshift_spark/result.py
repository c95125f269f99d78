# Copyright: (c) 2026, Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""result.json: the verdict of a job in the form of result.schema.json, written last and whole or not at all."""

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
            "status",  # differ, unsettled
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
    """The JSON Schema of a result."""
    return json.loads(pkgutil.get_data("quorumshift_spark", "result.schema.json"))


def empty(verdict: str, reasons: Sequence[str], job: str = "metadata_parity") -> Dict[str, Any]:
    """A result with nothing in it but the verdict and why; the rest is filled in as far as a job comes."""
    return {
        "schema": SCHEMA_VERSION,
        "job": job,
        **dict.fromkeys(("nonce", "gate", "phase", "cluster_id")),
        "verdict": verdict,
        "reasons": list(reasons),
        "views": {},
        "comparisons": [],
        "counts": {},
        **{name: [] for name in ("differences", "changed", "unsettled", "rounds")},
        **{f"{name}_total": 0 for name in ("differences", "changed", "unsettled")},
        "files": {},
        "timings": {},
        "versions": {},
        "digest": "",
    }


def shown(difference: Difference) -> Dict[str, Any]:
    """A difference as result.json has it."""
    return {**difference._asdict(), "text": difference.text()}


def some_of_each(found: Sequence[Mapping[str, Any]], limit: int) -> List[Mapping[str, Any]]:
    """At most `limit` differences, the first of each sort (kind, field, views) before the second of any: many of one
    sort, which may all follow from one of another, do not hide that."""
    seen: Dict[Any, int] = collections.Counter()
    ranked = []
    for place, one in enumerate(found):
        sort = (one["kind"], one["field"], *one["sides"])
        seen[sort] += 1
        ranked.append((seen[sort], place))
    return [found[place] for _rank, place in sorted(ranked)[:limit]]


def digest(result: Mapping[str, Any]) -> str:
    """SHA-256 of all that does not depend on how fast and on what the job ran."""
    kept = {name: value for name, value in result.items() if name not in ("timings", "versions", "digest")}
    kept["views"] = {name: {**view, "seconds": 0} for name, view in kept["views"].items()}
    kept["rounds"] = [{**entry, "seconds": 0} for entry in kept["rounds"]]
    return hashlib.sha256(canonical(kept).encode("utf-8")).hexdigest()


def write(directory: str, result: Dict[str, Any]) -> None:
    """Give the result its digest, check it against the schema, and put it in place under its name last of all.

    Raises jsonschema.ValidationError, OSError.
    """
    result["digest"] = digest(result)
    jsonschema.Draft202012Validator(schema()).validate(result)
    with replacing(os.path.join(directory, NAME)) as part, _private(part) as file:
        file.write(json.dumps(result, indent=1, ensure_ascii=False).encode("utf-8") + b"\n")
        file.flush()
        os.fsync(file.fileno())


@contextlib.contextmanager
def replacing(path: str) -> Iterator[str]:
    """A temporary name beside `path`, which takes its place in the end, or is removed where it fails."""
    part = path + ".part"
    try:
        yield part
        os.replace(part, path)
    finally:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(part)


def write_differences(directory: str, rows: List[Dict[str, Any]]) -> None:
    """differences.parquet, of rows with the names of DIFFERENCES_SCHEMA."""
    with replacing(os.path.join(directory, DIFFERENCES)) as part, _private(part) as file:
        pq.write_table(pa.Table.from_pylist(rows, schema=DIFFERENCES_SCHEMA), file, compression="zstd")


def file_facts(path: str, rows: int) -> Dict[str, Any]:
    """{rows, bytes, sha256} of a file that the job leaves."""
    hashed = hashlib.sha256()
    with open(path, "rb") as file:
        for chunk in iter(lambda: file.read(1 << 20), b""):
            hashed.update(chunk)
    return {"rows": rows, "bytes": os.path.getsize(path), "sha256": hashed.hexdigest()}


def _private(path):
    return os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb")
