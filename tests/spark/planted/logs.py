# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Metadata logs with planted records: a snapshot of a live log, with records in place of its NoOp records.

The offsets stay those of the live log, so a planted record differs from the cluster in what it says only. Kafka's own
loader reads every log that is written here (LoadedMetadata.java).
"""

from __future__ import annotations

import base64
import pathlib
import subprocess
from typing import Any, Callable, Dict, List, Sequence, Tuple

from ansible_collections.quorumshift.kafka.plugins.module_utils.formats.metadata import metadata_image, metadata_log
from ansible_collections.quorumshift.kafka.plugins.module_utils.formats.records.record_batch import (
    Batch,
    read_batches,
    records_of,
)

from tests.integration import servers
from tests.unit.formats import metadata_batches as batches

LOADER = pathlib.Path(__file__).with_name("LoadedMetadata.java")
Records = List[Any]
"""(record type, fields), with the version as a third where it is not the latest; or the bytes of a value."""


def other_id(number: int) -> str:
    """Return the id of no topic, ACL or directory."""
    return base64.urlsafe_b64encode(bytes([*[7] * 15, number])).decode().rstrip("=")


def image_of(directory: pathlib.Path) -> metadata_image.Image:
    """Return the metadata that the log in a directory adds up to."""
    return metadata_image.Image.from_records(metadata_log.read_records(str(directory), types=metadata_image.TYPES))


def places(directory: pathlib.Path, above: int) -> List[int]:
    """Return the offsets of the NoOp records above an offset."""
    found = []
    for segment in sorted(directory.glob("*.log")):
        with open(segment, "rb") as file:
            for batch in read_batches(file, str(segment), above + 1):
                if not batch.is_control:
                    records = records_of(batch, str(segment))
                    found += [at for at, _t, _k, start, end in records if batch.records[start:end] == batches.NO_OP]
    return [offset for offset in found if offset > above]


def rewrite(directory: pathlib.Path, records: Records, above: int) -> None:
    """Write records in place of the first NoOp records above an offset. Raises ValueError if there are too few."""
    free = places(directory, above)
    if len(free) < len(records):
        raise ValueError(f"{directory}: {len(free)} NoOp records above offset {above}, {len(records)} are needed")
    planted = {
        offset: record if isinstance(record, bytes) else batches.record(*record)
        for offset, record in zip(free, records)
    }
    for segment in sorted(directory.glob("*.log")):
        raw, out = segment.read_bytes(), bytearray()
        with open(segment, "rb") as file:
            for batch in read_batches(file, str(segment)):
                part = raw[batch.position : batch.position + batch.size]
                if not batch.is_control and any(batch.base_offset <= at <= batch.last_offset for at in planted):
                    values = [
                        planted.get(at, batch.records[start:end])
                        for at, _t, _k, start, end in records_of(batch, str(segment))
                    ]
                    part = batches.batch(batch.base_offset, values, batch.epoch, batch.max_timestamp)
                out += part
        segment.write_bytes(bytes(out))


def append(directory: str, end_offset: int, records: Records, values: Sequence[bytes] = (), **more: Any) -> None:
    """Append a batch of records, or of values, at the end of a log."""
    raw = [*(batches.record(*record) for record in records), *values]
    epoch = last_epoch(pathlib.Path(directory))
    with open(max(pathlib.Path(directory).glob("*.log")), "ab") as file:
        file.write(batches.batch(end_offset, raw, epoch, **more))


def last_epoch(directory: pathlib.Path) -> int:
    """Return the epoch of the last batch of a log, 1 of an empty one."""
    segment = max(directory.glob("*.log"))
    with open(segment, "rb") as file:
        return max((batch.epoch for batch in read_batches(file, str(segment))), default=1)


def tagged(value: bytes, tag: int, data: bytes = b"x") -> bytes:
    """Return a record's value, which has no tagged fields, with one that Kafka does not have."""
    assert value[-1] == 0
    return value[:-1] + b"\x01" + _varint(tag) + _varint(len(data)) + data


def of_type(api_key: int, version: int, body: bytes = b"\0") -> bytes:
    """Return the value of a record of any type."""
    return b"\x01" + _varint(api_key) + _varint(version) + body


def _varint(number: int) -> bytes:
    out = bytearray()
    while number > 0x7F:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes([*out, number])


def elect(directory: pathlib.Path, epoch: int) -> None:
    """Give the last batch of a log another epoch."""
    segment = max(directory.glob("*.log"))
    raw = segment.read_bytes()
    with open(segment, "rb") as file:
        last = list(read_batches(file, str(segment)))[-1]
        values = [last.records[start:end] for _at, _t, _k, start, end in records_of(last, str(segment))]
    segment.write_bytes(raw[: last.position] + batches.batch(last.base_offset, values, epoch, last.max_timestamp))


def cut(segment: pathlib.Path, keep: Callable[[Batch], bool]) -> None:
    """Keep some batches of a segment."""
    raw = segment.read_bytes()
    with open(segment, "rb") as file:
        kept = [raw[b.position : b.position + b.size] for b in read_batches(file, str(segment)) if keep(b)]
    segment.write_bytes(b"".join(kept))


def records(directory: pathlib.Path, end_offset: int) -> Records:
    """Return the records that make up the metadata below an offset."""
    found = metadata_log.read_records(str(directory), end_offset, types=metadata_image.TYPES)
    return [(record.type, record.fields, record.version) for record in found]


def checkpoint(directory: pathlib.Path, offset: int, records: Records) -> None:
    """Write a checkpoint that ends before `offset`, with these records as all there is."""
    values, epoch = [batches.record(*record) for record in records], last_epoch(directory)
    parts = [batches.batch(0, [batches.SNAPSHOT_HEADER], epoch), batches.batch(1, values, epoch)]
    parts.append(batches.batch(1 + len(values), [batches.SNAPSHOT_FOOTER], epoch))
    (directory / f"{offset:020d}-{epoch:010d}.checkpoint").write_bytes(b"".join(parts))


def loaded(directories: Sequence[Any]) -> List[str]:
    """Return for each directory what Kafka's own loader says: `loaded ...` or `rejected ...`."""
    command = [*servers.java(), str(LOADER), *map(str, directories)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    lines = [line for line in done.stdout.splitlines() if line.startswith(("loaded ", "rejected "))]
    assert len(lines) == len(directories), done.stderr
    return lines


# --- records from what the log holds --------------------------------------------------------------------


def topic_id(image: metadata_image.Image, name: str) -> str:
    """Return the id of a topic."""
    return next(found for found, (topic, _at) in image.topics.items() if topic == name)


def partition(image: metadata_image.Image, name: str, number: int, **changes: Any) -> Tuple[str, Dict[str, Any], int]:
    """Return a partition's record with changed fields."""
    found = topic_id(image, name)
    fields = dict(zip(metadata_image.PARTITION_FIELDS, image.partitions[found].get(number) or _NEW))
    return "PARTITION_RECORD", {"topicId": found, "partitionId": number, **fields, **changes}, 0


_NEW = ([1], [], [], 1, 0, [1], 0, 0)


def scram(image: metadata_image.Image, user: str, mechanism: int, **changes: Any) -> Tuple[str, Dict[str, Any]]:
    """Return the record of a user's credential with changed fields; 1 is SCRAM-SHA-256, 2 SCRAM-SHA-512."""
    return "USER_SCRAM_CREDENTIAL_RECORD", {**image.scram[(user, mechanism)][0], **changes}


def acl_id(image: metadata_image.Image, resource: str) -> str:
    """Return the id of the first ACL of a resource of this name."""
    return next(found for found, (fields, _at) in image.acls.items() if fields["resourceName"] == resource)


def acl(image: metadata_image.Image, resource: str, **changes: Any) -> Tuple[str, Dict[str, Any]]:
    """Return the record of an ACL with changed fields."""
    found = acl_id(image, resource)
    return "ACCESS_CONTROL_ENTRY_RECORD", {**image.acls[found][0], **changes}


def token(image: metadata_image.Image, token_id: str, **changes: Any) -> Tuple[str, Dict[str, Any]]:
    """Return the record of a delegation token with changed fields."""
    return "DELEGATION_TOKEN_RECORD", {**image.delegation_tokens[token_id][0], **changes}


def config(code: int, resource: str, name: str, value: str | None) -> Tuple[str, Dict[str, Any]]:
    """Return the record of a config; None removes it. Codes: 2 topic, 4 broker, 16 client metrics, 32 group."""
    return "CONFIG_RECORD", {"resourceType": code, "resourceName": resource, "name": name, "value": value}


def quota(entity: Dict[str, str | None], key: str, value: float | None) -> Tuple[str, Dict[str, Any]]:
    """Return the record of a quota; None removes it."""
    parts = [{"entityType": kind, "entityName": name} for kind, name in entity.items()]
    return "CLIENT_QUOTA_RECORD", {"entity": parts, "key": key, "value": value or 0.0, "remove": value is None}
