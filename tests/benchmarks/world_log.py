# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Write the content of a generated cluster as a metadata log: a checkpoint, and a segment that changes it."""

from __future__ import annotations

import functools
import pathlib
import random
import struct
from typing import List, Tuple

from tests.benchmarks.primitives import (
    NO_TAGS,
    compact_array,
    compact_string,
    unsigned_varint,
)
from tests.benchmarks.world import (
    ALLOW,
    BROKERS,
    CHECKPOINT_END,
    KRAFT_EPOCH,
    LITERAL,
    METADATA_VERSION,
    NEXT_PRODUCER_ID,
    READ,
    TIME_MS,
    TOPIC,
    Partition,
    Tables,
    Topic,
)
from tests.unit.formats import metadata_batches

_BATCH = 500


def _record(api_key: int, version: int, body: bytes, tags: bytes = NO_TAGS) -> bytes:
    return bytes((1, api_key, version)) + body + tags


@functools.lru_cache(maxsize=None)
def _ids(numbers: Tuple[int, ...]) -> bytes:
    return bytes([len(numbers) + 1]) + struct.pack(f">{len(numbers)}i", *numbers)


@functools.lru_cache(maxsize=None)
def _directory_of(broker: int) -> bytes:
    return random.Random(broker).randbytes(16)


@functools.lru_cache(maxsize=None)
def _directories(replicas: Tuple[int, ...]) -> bytes:
    return compact_array(map(_directory_of, replicas))


def _bytes(data: bytes) -> bytes:
    return unsigned_varint(len(data) + 1) + data


def _nullable(text: str | None) -> bytes:
    return b"\0" if text is None else compact_string(text)


def partition_record(topic_id: bytes, number: int, partition: Partition) -> bytes:
    """Return a PARTITION_RECORD of version 1."""
    epochs = struct.pack(">iii", partition.leader, partition.leader_epoch, partition.partition_epoch)
    return b"".join(
        (
            b"\x01\x03\x01",
            struct.pack(">i", number),
            topic_id,
            _ids(partition.replicas),
            _ids(partition.isr),
            b"\x01\x01",
            epochs,
            _directories(partition.replicas),
            NO_TAGS,
        )
    )


def partition_change(topic_id: bytes, number: int, isr: Tuple[int, ...], leader: int) -> bytes:
    """Return a PARTITION_CHANGE_RECORD of version 1 with an ISR and a leader."""
    listed = _ids(isr)
    tags = b"\x02\x00" + bytes([len(listed)]) + listed + b"\x01\x04" + struct.pack(">i", leader)
    return _record(5, 1, struct.pack(">i", number) + topic_id, tags)


def topic_record(name: str, topic_id: bytes) -> bytes:
    """Return a TOPIC_RECORD."""
    return _record(2, 0, compact_string(name) + topic_id)


def config_record(code: int, resource: str, name: str, value: str | None) -> bytes:
    """Return a CONFIG_RECORD; a value of None removes the key."""
    return _record(4, 0, bytes([code]) + compact_string(resource) + compact_string(name) + _nullable(value))


def _quota_record(entity: tuple, key: str, value: float, remove: bool = False) -> bytes:
    listed = compact_array(compact_string(kind) + _nullable(name) + NO_TAGS for kind, name in entity)
    return _record(14, 0, listed + compact_string(key) + struct.pack(">d?", value, remove))


def _scram_record(user: str, code: int, credential: Tuple[bytes, bytes, bytes, int]) -> bytes:
    keys = b"".join(map(_bytes, credential[:3]))
    return _record(11, 0, compact_string(user) + bytes([code]) + keys + struct.pack(">i", credential[3]))


def _acl_record(content: tuple, acl_id: bytes) -> bytes:
    resource_type, pattern, name, principal, host, operation, permission = content
    body = acl_id + bytes([resource_type]) + compact_string(name) + bytes([pattern])
    return _record(18, 0, body + compact_string(principal) + compact_string(host) + bytes((operation, permission)))


def _token_record(token_id: str, owner: str, requester: str, renewer: str) -> bytes:
    who = compact_string(owner) + compact_string(requester) + compact_array([compact_string(renewer)])
    times = struct.pack(">qqq", TIME_MS, TIME_MS + 2, TIME_MS + 1)
    return _record(10, 0, who + times + compact_string(token_id))


def _broker_record(broker: int, fenced: bool) -> bytes:
    listener = compact_string("PLAINTEXT") + compact_string("127.0.0.1") + struct.pack(">Hh", 9092, 0) + NO_TAGS
    feature = compact_string("metadata.version") + struct.pack(">hh", 1, METADATA_VERSION) + NO_TAGS
    body = struct.pack(">i?", broker, False) + random.Random(-broker).randbytes(16) + struct.pack(">q", 1000 + broker)
    body += compact_array([listener]) + compact_array([feature]) + compact_string(f"rack-{broker % 3}")
    directories = compact_array([_directory_of(broker)])
    tags = b"\x01\x00" + unsigned_varint(len(directories)) + directories
    return _record(0, 3, body + struct.pack(">??", fenced, False), tags)


def _feature_record(name: str, level: int) -> bytes:
    return _record(12, 0, compact_string(name) + struct.pack(">h", level))


class MetadataLog:
    """Writes a checkpoint and, beside it, the segment after it."""

    def __init__(self, directory: pathlib.Path) -> None:
        self._directory = directory
        directory.mkdir(parents=True)
        checkpoint, segment = f"{CHECKPOINT_END:020d}-{KRAFT_EPOCH:010d}.checkpoint", f"{CHECKPOINT_END:020d}.log"
        self._checkpoint = _Batches(directory / checkpoint, 0)
        self._segment = _Batches(directory / segment, CHECKPOINT_END)
        header = (b"\0\0\0\3", b"\0\0" + struct.pack(">q", TIME_MS) + NO_TAGS)
        self._checkpoint.control([header])
        self._segment.control([metadata_batches.LEADER_CHANGE])

    def topic(self, topic: Topic) -> None:
        """Write a topic: to the segment if it is late, else to the checkpoint, and its changes to the segment."""
        add = self._segment.add if topic.is_late else self._checkpoint.add
        add(topic_record(topic.name, topic.id))
        for number, partition in enumerate(topic.partitions):
            add(partition_record(topic.id, number, partition.before or partition))
            if partition.before:
                self._segment.add(partition_change(topic.id, number, partition.isr, partition.leader))
        for index, (name, value) in enumerate(topic.configs.items()):
            if index == 0 and topic.name.endswith("1"):  # was another value at the checkpoint
                add(config_record(2, topic.name, name, "1"))
                self._segment.add(config_record(2, topic.name, name, value))
            else:
                add(config_record(2, topic.name, name, value))

    def rest(self, tables: Tables, topics: int, topic: Topic) -> int:
        """Write everything else and return the end offset. `topic`: one that an aborted transaction changes."""
        old, new = self._checkpoint, self._segment
        old.add(_feature_record("metadata.version", METADATA_VERSION))
        old.add(metadata_batches.migration_state(1))  # MIGRATION, also in dual-write
        for broker in BROKERS:
            old.add(_broker_record(broker, broker % 5 == 0))
        for broker in BROKERS:
            if broker % 5 == 0:
                new.add(_record(17, 2, struct.pack(">iq", broker, 1000 + broker), b"\x01\x00\x01\xff"))
        old.add(_record(15, 0, struct.pack(">iqq", 1, 1001, NEXT_PRODUCER_ID - 1000)))
        new.add(_record(15, 0, struct.pack(">iqq", 2, 1002, NEXT_PRODUCER_ID)))
        for (broker, name), value in tables.configs.items():
            old.add(config_record(4, "" if broker is None else str(broker), name, value))
        self._rewritten(tables.quotas.items(), lambda item: _quota_record(*item[0], item[1]))
        self._rewritten(tables.scram.items(), lambda item: _scram_record(*item[0], item[1]))
        self._rewritten(tables.acls.items(), lambda item: _acl_record(*item))
        self._rewritten(tables.tokens.items(), lambda item: _token_record(item[0], *item[1]))
        self._removed(max(1, topics // 100))
        self._aborted(topic, max(1, topics // 200))
        old.control([metadata_batches.SNAPSHOT_FOOTER])
        old.close()
        new.flush()
        return new.offset

    def close(self, end_offset: int) -> int:
        """End the segment at an offset with NoOps; return the number of records."""
        for dummy in range(end_offset - self._segment.offset):
            self._segment.add(_record(20, 0, b""))
        self._segment.close()
        return self._checkpoint.records + self._segment.records

    def _rewritten(self, items, encode):
        """Write nine of ten to the checkpoint and the others to the segment."""
        for number, item in enumerate(items):
            (self._segment if number % 10 == 9 else self._checkpoint).add(encode(item))

    def _removed(self, topics):
        """Write metadata to the checkpoint that the segment removes again, a part of it in a committed transaction."""
        old, new = self._checkpoint, self._segment
        rng = random.Random(-7)
        ids = [rng.randbytes(16) for dummy in range(topics)]
        for number, topic_id in enumerate(ids):
            name = f"removed-{number:05d}"
            old.add(topic_record(name, topic_id))
            old.add(config_record(2, name, "retention.ms", "1"))
            for index in range(5):
                old.add(partition_record(topic_id, index, Partition((1, 2, 3), (1, 2), 1, 4, 5)))
        acl_id = rng.randbytes(16)
        old.add(_acl_record((TOPIC, LITERAL, "removed-00000", "User:gone", "*", READ, ALLOW), acl_id))
        old.add(_scram_record("gone", 1, (b"salt", b"k" * 32, b"s" * 32, 4096)))
        old.add(_quota_record((("user", "gone"),), "producer_byte_rate", 1.0))
        old.add(config_record(4, "7", "log.cleaner.threads", "9"))
        old.add(_token_record("gone", "User:gone", "User:gone", "User:gone"))
        new.add(_record(20, 0, b""))
        new.add(metadata_batches.BEGIN)
        new.add(_record(19, 0, acl_id))
        new.add(_record(22, 0, compact_string("gone") + b"\x01"))
        new.add(_quota_record((("user", "gone"),), "producer_byte_rate", 0.0, True))
        new.add(config_record(4, "7", "log.cleaner.threads", None))
        new.add(_record(26, 0, compact_string("gone")))
        for topic_id in ids[::2]:
            new.add(_record(9, 0, topic_id))
        new.add(metadata_batches.END)
        for topic_id in ids[1::2]:
            new.add(_record(9, 0, topic_id))

    def _aborted(self, topic, topics):
        new = self._segment
        rng = random.Random(-8)
        new.add(metadata_batches.BEGIN)
        for number in range(topics):
            topic_id = rng.randbytes(16)
            new.add(topic_record(f"aborted-{number:05d}", topic_id))
            for index in range(5):
                new.add(partition_record(topic_id, index, Partition((1, 2, 3), (1, 2), 1, 4, 5)))
        new.add(partition_change(topic.id, 0, topic.partitions[0].replicas[:1], topic.partitions[0].replicas[0]))
        new.add(config_record(2, topic.name, "retention.ms", "12"))
        new.add(config_record(4, "", "message.max.bytes", None))
        new.add(_record(9, 0, topic.id))
        new.add(metadata_batches.ABORT)
        # A record after it in one commit would keep the aborted ones in a broker's image (MetadataBatchLoader.replay)
        new.flush()


class _Batches:
    """Appends record values to a file, in batches."""

    def __init__(self, path: pathlib.Path, offset: int) -> None:
        self._file = open(path, "wb", 1 << 20)  # noqa: SIM115
        self.offset = offset
        self._pending: List[bytes] = []
        self.records = 0

    def add(self, value: bytes) -> None:
        self._pending.append(value)
        if len(self._pending) == _BATCH:
            self.flush()

    def control(self, records: List[Tuple[bytes, bytes]]) -> None:
        self.flush()
        self._pending = records  # type: ignore[assignment]
        self.flush()

    def close(self) -> None:
        self.flush()
        self._file.close()

    def flush(self) -> None:
        """End the batch."""
        if self._pending:
            self._file.write(metadata_batches.batch(self.offset, self._pending, KRAFT_EPOCH, TIME_MS))
            self.offset += len(self._pending)
            self.records += len(self._pending)
            self._pending = []
