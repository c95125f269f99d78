# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The ledger: append-only files of what was sent, acknowledged, aborted and received.

The directory of a run holds
  run.json               identity, start time, partitions, groups; at the end how the run stopped
  streams.jsonl          a line for each batch of streams; a stream is one key of one producer instance
  sent.bin               <II>   stream, time; the row number is the ledger id
  acked.bin              <IIQ>  ledger id, time, position: the message was acknowledged (a transactional message: its
                                transaction was committed)
  aborted.bin            <II>   ledger id, time: its transaction was aborted, on purpose or after an error
  received-<group>.bin   <IIQ>  ledger id, time, position, one row for each delivery to that group
  errors.jsonl, admin.jsonl, marks.jsonl
All little-endian. A time is milliseconds since the run's `t0` on the monotonic clock, from 1 on (0 = never). A position
is partition index << 48 | offset; the index counts from 1 in run.json's `partitions` (0 = none).

Rows are flushed twice a second, each file after the files that its rows refer to, so a SIGKILL loses only the last
moments. Without `stopped` in run.json the run was cut short.
"""

from __future__ import annotations

import json
import mmap
import os
import struct
import sys
import threading
import time
from array import array
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Iterable, Iterator

from canary_clients.errors import ClientsError

SENT = struct.Struct("<II")
ACKED = struct.Struct("<IIQ")
ABORTED = struct.Struct("<II")
RECEIVED = struct.Struct("<IIQ")

OFFSET_BITS = 48
OFFSET_UNKNOWN = (1 << OFFSET_BITS) - 1
OFFSET_MASK = OFFSET_UNKNOWN

# run id, ledger id, producer instance, key, sequence within instance and key, time sent
MESSAGE = struct.Struct("<QIIIII")
MESSAGE_IDENTITY = struct.Struct("<QI")
AUDIT = "audit"
TEXT_LIMIT = 240


def position(partition_index: int, offset: int | None) -> int:
    """Pack a partition index (from 1) and an offset; one that is not known is OFFSET_UNKNOWN.

    A broker that has a retried batch already may acknowledge it without an offset (DUPLICATE_SEQUENCE_NUMBER):
    librdkafka's offset is then negative, and confluent_kafka's Message.offset() None.
    """
    return partition_index << OFFSET_BITS | (OFFSET_UNKNOWN if offset is None or offset < 0 else offset)


class Clock:
    """Milliseconds since the start, from 1 on; steps of the wall clock do not affect it."""

    def __init__(self) -> None:
        self.t0 = time.time()
        self._start = time.monotonic()

    def ms(self) -> int:
        return int((time.monotonic() - self._start) * 1000) + 1


@dataclass
class Streams:
    """One line of streams.jsonl: `len(keys)` streams from `first` on, of one producer instance."""

    first: int
    kind: str
    instance: int
    keys: list[int]
    partitions: list[int]


class LedgerWriter:
    """Appends to a run's files; thread-safe."""

    def __init__(self, directory: Path, clock: Clock, groups: Iterable[str]) -> None:
        self.directory = directory
        self.clock = clock
        self.groups = list(groups)
        self._lock = threading.Lock()
        self._flush_lock = threading.Lock()
        self._buffers: dict[str, bytearray] = {name: bytearray() for name in self._file_names()}
        self._files = {name: (directory / name).open("ab", buffering=0) for name in self._buffers}
        self._next_id = 0
        self._next_stream = 0
        self._errors: dict[tuple[str, str, str, str], dict[str, Any]] = {}
        self.last_error = ""
        self._stop = threading.Event()
        self._flusher = threading.Thread(target=self._flush_loop, name="ledger", daemon=True)
        self._flusher.start()

    def _file_names(self) -> list[str]:
        # in this order they are flushed: no row may refer to a row that is not written yet
        return [
            "streams.jsonl",
            "sent.bin",
            "acked.bin",
            "aborted.bin",
            *(f"received-{group}.bin" for group in self.groups),
            "admin.jsonl",
            "errors.jsonl",
        ]

    def new_streams(self, kind: str, instance: int, keys: list[int], partitions: list[int]) -> int:
        """Register a producer instance's keys; return the first stream id."""
        with self._lock:
            first = self._next_stream
            self._next_stream += len(keys)
            line = {"first": first, "kind": kind, "instance": instance, "keys": keys, "partitions": partitions}
            self._buffers["streams.jsonl"] += json.dumps(line, separators=(",", ":")).encode() + b"\n"
            return first

    def sent(self, stream: int) -> tuple[int, int]:
        """Enter a message before it is handed to the client; return its ledger id and the time."""
        now = self.clock.ms()
        with self._lock:
            ledger_id = self._next_id
            self._next_id += 1
            self._buffers["sent.bin"] += SENT.pack(stream, now)
        return ledger_id, now

    def acked(self, ledger_id: int, packed_position: int, at: int | None = None) -> None:
        row = ACKED.pack(ledger_id, self.clock.ms() if at is None else at, packed_position)
        with self._lock:
            self._buffers["acked.bin"] += row

    def aborted(self, ledger_id: int) -> None:
        with self._lock:
            self._buffers["aborted.bin"] += ABORTED.pack(ledger_id, self.clock.ms())

    def received(self, group: str, rows: bytes) -> None:
        """Append rows of RECEIVED."""
        with self._lock:
            self._buffers[f"received-{group}.bin"] += rows

    def admin(self, entry: dict[str, Any]) -> None:
        with self._lock:
            self._buffers["admin.jsonl"] += json.dumps(entry, separators=(",", ":")).encode() + b"\n"

    def error(self, where: str, code: str, text: str, severity: str = "error") -> None:
        """Enter an error (an application would see it) or a `note` (the client recovers by itself)."""
        # a broker may respond with a dump of the request
        key = (severity, where, code, text[:TEXT_LIMIT])
        now = self.clock.ms()
        with self._lock:
            entry = self._errors.setdefault(key, {"first": now, "count": 0})
            entry["count"] += 1
            entry["last"] = now
            self.last_error = f"{where}: {code} {text}"

    def note(self, where: str, code: str, text: str) -> None:
        self.error(where, code, text, severity="note")

    def flush(self) -> None:
        with self._flush_lock:
            with self._lock:
                for (severity, where, code, text), entry in self._errors.items():
                    line = {"severity": severity, "where": where, "code": code, "text": text, **entry}
                    self._buffers["errors.jsonl"] += json.dumps(line, separators=(",", ":")).encode() + b"\n"
                self._errors.clear()
                taken = {name: data for name, data in self._buffers.items() if data}
                for name in taken:
                    self._buffers[name] = bytearray()
            for name, data in taken.items():
                self._files[name].write(data)

    def _flush_loop(self) -> None:
        while not self._stop.wait(0.5):
            self.flush()

    def close(self) -> None:
        self._stop.set()
        self._flusher.join()
        self.flush()
        for file in self._files.values():
            file.close()


def write_json(path: Path, data: Any) -> None:
    """Write a JSON file atomically."""
    temporary = path.with_name(path.name + ".new")
    temporary.write_text(json.dumps(data, indent=1) + "\n", encoding="utf-8")
    os.replace(temporary, path)


class Rows:
    """A file's complete rows at the time of loading, read from the page cache at each iteration."""

    def __init__(self, path: Path, layout: struct.Struct, torn: list[str]) -> None:
        self._path = path
        self._layout = layout
        size = path.stat().st_size if path.exists() else 0
        self.count = size // layout.size
        if size % layout.size:
            torn.append(path.name)

    def __len__(self) -> int:
        return self.count

    def __iter__(self) -> Iterator[tuple[int, ...]]:
        return self._from(0)

    def _from(self, row: int) -> Iterator[tuple[int, ...]]:
        if row >= self.count:
            return iter(())
        with self._path.open("rb") as file:
            data = mmap.mmap(file.fileno(), self.count * self._layout.size, access=mmap.ACCESS_READ)
        return self._layout.iter_unpack(memoryview(data)[row * self._layout.size :])

    def last_time(self) -> int:
        """Return the latest time in the file; rows are out of the order of time by one flush at most."""
        return max((row[1] for row in self._from(max(0, self.count - 50_000))), default=0)


@dataclass
class Recording:
    """A run's ledger. `sent_stream` and `sent_time` are indexed by ledger id."""

    meta: dict[str, Any]
    streams: list[Streams]
    sent_stream: array
    sent_time: array
    acked: Rows
    aborted: Rows
    received: dict[str, Rows]
    errors: list[dict[str, Any]]
    admin: list[dict[str, Any]]
    torn: list[str]

    @property
    def t0(self) -> float:
        return self.meta["t0"]

    def stream_tables(self) -> tuple[array, list[str], list[int]]:
        """Return the partition index, the kind and the key of each stream, by stream id."""
        count = max((s.first + len(s.keys) for s in self.streams), default=0)
        partition, kind, keys = array("H", bytes(2 * count)), [""] * count, [0] * count
        for streams in self.streams:
            for i, index in enumerate(streams.partitions):
                partition[streams.first + i] = index
                kind[streams.first + i] = streams.kind
                keys[streams.first + i] = streams.keys[i]
        return partition, kind, keys


def read(directory: Path) -> Recording:
    """Load a run's ledger, complete or cut short. Raise ClientsError if there is none."""
    try:
        meta = json.loads((directory / "run.json").read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise ClientsError(f"{directory}: no run is recorded here (no run.json)") from None
    except ValueError as e:
        raise ClientsError(f"{directory}/run.json: {e}") from None
    torn: list[str] = []
    # In this order: while the run goes on, no loaded row may refer to a row that is not loaded.
    received = {group: Rows(directory / f"received-{group}.bin", RECEIVED, torn) for group in meta["groups"]}
    aborted = Rows(directory / "aborted.bin", ABORTED, torn)
    acked = Rows(directory / "acked.bin", ACKED, torn)
    sent_stream, sent_time = _sent(directory / "sent.bin", torn)
    return Recording(
        meta=meta,
        streams=[Streams(**line) for line in read_lines(directory / "streams.jsonl", torn)],
        sent_stream=sent_stream,
        sent_time=sent_time,
        acked=acked,
        aborted=aborted,
        received=received,
        errors=read_lines(directory / "errors.jsonl", torn),
        admin=read_lines(directory / "admin.jsonl", torn),
        torn=torn,
    )


def _sent(path: Path, torn: list[str]) -> tuple[array, array]:
    data = path.read_bytes() if path.exists() else b""
    if len(data) % SENT.size:
        torn.append(path.name)
        data = data[: len(data) - len(data) % SENT.size]
    numbers = array("I", data)
    if sys.byteorder == "big":
        numbers.byteswap()
    return numbers[0::2], numbers[1::2]


def read_lines(path: Path, torn: list[str] | None = None) -> list[dict[str, Any]]:
    """Read a file of JSON lines; skip an incomplete last line and add the file's name to `torn`."""
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        return []
    lines = text.split("\n")
    if lines.pop() and torn is not None:
        torn.append(path.name)
    return [json.loads(line) for line in lines if line]
