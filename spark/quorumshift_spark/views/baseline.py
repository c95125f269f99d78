# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The baseline: ZooKeeper's and the log's entities at the last passed gate, as one Parquet file.

A row is an entity: view, kind, key, fields and at as JSON text; secrets are hashes. A partition has the columns of
columns.PARTITIONS instead, with `changed` for its `at`. The file's metadata holds cluster,
gate, the position of each view, the settings of each node, and the id of the digest key.

A file beside it (SIGNATURE) has the HMAC of all its bytes under the digest key: what can write to the run artifacts but
does not have the key cannot make a baseline that agrees with a cluster that lost something.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import os
from typing import Any, Dict, Iterable, Iterator, List, NamedTuple, Tuple

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from quorumshift_spark import columns
from quorumshift_spark import normal_form as form
from quorumshift_spark.normal_form import Entity
from quorumshift_spark.views import Statement, View, ViewError

FORMAT = 4
SIGNATURE = ".hmac"
_ABOUT = b"quorumshift_baseline"
_DIGEST = "digest"  # of the others: Parquet has checksums of pages only
PARTITION = [field.with_name("changed") if field.name == "at" else field for field in columns.PARTITIONS]
SCHEMA = pa.schema([*((name, pa.string()) for name in ("view", "kind", "key", "fields", "at")), *PARTITION])


def key_id(digest_key: bytes) -> str:
    """Return an id of a digest key that does not reveal it. Hashes of two files compare only under the same key."""
    return hmac.new(digest_key, b"quorumshift digest key", hashlib.sha256).hexdigest()[:16]


class BaselineWriter:
    """Writes a baseline and its signature: under temporary names, 0600, renamed when closed without an error.

    :arg digest_key: signs it.
    :arg about: {"cluster_id", "gate", "nonce", "key_id", "states": {view: state}, "settings": see nodes.Settings,
        "off": kinds that are off on every broker}.
    """

    def __init__(self, path: str, about: Dict[str, Any], digest_key: bytes) -> None:
        self._path, self._digest_key = path, digest_key
        said = {"format": FORMAT, **about}
        metadata = {_ABOUT: form.canonical({**said, _DIGEST: _digest(said)}).encode()}
        self._file = os.fdopen(os.open(path + ".part", os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb")
        schema = SCHEMA.with_metadata(metadata)
        # A changed byte must not look like changed metadata
        self._writer = pq.ParquetWriter(self._file, schema, compression="zstd", write_page_checksum=True)

    def write(self, table: pa.Table) -> None:
        """Append rows of SCHEMA."""
        self._writer.write_table(table.cast(SCHEMA))

    def __enter__(self) -> BaselineWriter:
        return self

    def __exit__(self, kind: Any, *_error: Any) -> None:
        self._writer.close()
        self._file.close()
        if kind is None:
            with open(os.open(self._path + SIGNATURE, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as file:
                file.write(_signature(self._path + ".part", self._digest_key) + "\n")
            os.replace(self._path + ".part", self._path)
        else:
            os.unlink(self._path + ".part")


def of_rows(table: pa.Table) -> pa.Table:
    """Return rows of views.source as rows of SCHEMA."""
    texts = [None if fields is None else _text(fields) for fields in table["fields"].to_pylist()]
    place = table.schema.get_field_index("fields")
    return table.set_column(place, "fields", pa.array(texts, pa.string())).select(SCHEMA.names)


def _text(fields: Iterable[Tuple[str, str]]) -> str:
    """Return fields, whose values are JSON texts, as a JSON object."""
    return "{" + ",".join(sorted(f'"{name}":{value}' for name, value in fields)) + "}"


def about(path: str) -> Dict[str, Any]:
    """Return the metadata of a baseline, see BaselineWriter. Raises ViewError."""
    try:
        metadata = pq.read_schema(path).metadata or {}
    except (OSError, pa.ArrowException) as error:
        raise _unreadable(path, error) from None
    if _ABOUT not in metadata:
        raise ViewError(f"{os.path.basename(path)} is not a baseline of Quorumshift. {_DO} (QS-VERIFY-005)")
    try:
        found = dict(json.loads(metadata[_ABOUT]))
    except (TypeError, ValueError) as error:
        raise _unreadable(path, error) from None
    if found.get("format") != FORMAT:
        raise ViewError(
            f"baseline {os.path.basename(path)} has format {found.get('format')}, this release reads {FORMAT}. "
            f"{_DO} (QS-VERIFY-005)"
        )
    if found.pop(_DIGEST, None) != _digest(found):
        raise _unreadable(path, "its metadata has another checksum")
    return found


def _signature(path: str, digest_key: bytes) -> str:
    signed = hmac.new(digest_key, b"quorumshift baseline", hashlib.sha256)
    with open(path, "rb") as file:
        for chunk in iter(lambda: file.read(1 << 20), b""):
            signed.update(chunk)
    return signed.hexdigest()


def _verify(path: str, digest_key: bytes) -> None:
    name = os.path.basename(path)
    try:
        with open(path + SIGNATURE, encoding="ascii") as file:
            given = file.read().strip()
    except (OSError, ValueError):
        raise ViewError(
            f"baseline {name} has no signature ({name}{SIGNATURE}), so nothing shows who wrote it. "
            f"{_DO} (QS-VERIFY-005)"
        ) from None
    if not hmac.compare_digest(given, _signature(path, digest_key)):
        raise _unreadable(path, f"it does not match its signature in {name}{SIGNATURE}")


# The path is not named: the job reads a copy
_DO = "To start a new baseline, remove the directory baseline of this cluster among the run artifacts"


def _digest(said: Dict[str, Any]) -> str:
    return hashlib.sha256(form.canonical(said).encode()).hexdigest()


def _unreadable(path: str, error: object) -> ViewError:
    return ViewError(
        f"baseline {os.path.basename(path)} cannot be read: the file is damaged ({error}). {_DO} (QS-VERIFY-005)"
    )


class Part(NamedTuple):
    """A row group of a baseline. `rows`: its rows as Arrow IPC, for executors that do not share the driver's files."""

    number: int
    state: Dict[str, Any]
    rows: bytes | None = None


class BaselineView(View):
    """The rows of the view `of` in a baseline; its own name is `baseline:<of>`."""

    kinds = form.STORED

    def __init__(self, path: str, of: str, cluster_id: str, digest_key: bytes) -> None:
        self.name = f"baseline:{of}"
        self._path = path
        self._of = of
        self._cluster_id = cluster_id
        self._digest_key, self._key_id = digest_key, key_id(digest_key)
        self._carries = False

    def carry_files(self) -> None:
        """Tasks get the rows."""
        self._carries = True

    def parts(self, at_once: int = 0) -> List[Part]:
        """Return the row groups of the file, after checking its cluster and digest key."""
        metadata, name = about(self._path), os.path.basename(self._path)
        if metadata["cluster_id"] != self._cluster_id:
            raise ViewError(
                f"baseline {name} is of cluster {metadata['cluster_id']}, not of {self._cluster_id}. "
                f"{_DO} (QS-VERIFY-005)"
            )
        if metadata["key_id"] != self._key_id:
            raise ViewError(
                f"baseline {name} was made under another digest key, so its hashes cannot be compared. "
                f"{_DO} (QS-VERIFY-005)"
            )
        _verify(self._path, self._digest_key)
        state = metadata["states"][self._of]
        file = pq.ParquetFile(self._path)
        parts = [Part(number, state) for number in range(file.num_row_groups)]
        if self._carries:
            parts = [part._replace(rows=_packed(self._rows(part))) for part in parts]
        return parts or [Part(-1, state)]

    def read(self, part: Part) -> Iterator[Entity | pa.RecordBatch | Statement]:
        if part.number >= 0:
            rows = self._rows(part)
            is_partition = pc.equal(rows["kind"], "partition")
            partitions = rows.filter(is_partition).select([field.name for field in PARTITION])
            yield from partitions.rename_columns(columns.PARTITIONS.names).cast(columns.PARTITIONS).to_batches()
            for row in rows.filter(pc.invert(is_partition)).select(SCHEMA.names[:5]).to_pylist():
                yield from_row(row)
        yield Statement(part.state, [])

    def _rows(self, part):
        if part.rows is not None:
            return pa.ipc.open_stream(part.rows).read_all()
        try:
            with pq.ParquetFile(self._path, page_checksum_verification=True) as file:
                rows = file.read_row_group(part.number).cast(SCHEMA)
        except (OSError, ValueError, pa.ArrowException) as error:
            raise _unreadable(self._path, error) from error
        return rows.filter(pc.equal(rows["view"], self._of))


def _packed(table):
    sink = pa.BufferOutputStream()
    options = pa.ipc.IpcWriteOptions(compression="zstd")
    with pa.ipc.new_stream(sink, table.schema, options=options) as writer:
        writer.write_table(table)
    return sink.getvalue().to_pybytes()


def from_row(row: Dict[str, str]) -> Entity:
    """Return the entity of a row."""
    fields = {name: form.canonical(value) for name, value in json.loads(row["fields"]).items()}
    return Entity(row["kind"], row["key"], fields, json.loads(row["at"]))
