# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Build ledgers in the real file format; without damage unless a test adds it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from canary_clients.ledger import ABORTED, ACKED, AUDIT, RECEIVED, SENT, Recording, position, read

KEYED, TXN, COMPACT = 1, 2, 3
PARTITIONS = [["canary.keyed", 0], ["canary.txn", 0], ["canary.compact", 0]]
GROUPS = {
    "steady": {"id": "canary.steady.1", "partitions": [KEYED, COMPACT], "measured": True},
    "restarted": {"id": "canary.restarted.1", "partitions": [KEYED], "measured": False},
    "committed": {"id": "canary.committed.1", "partitions": [TXN], "measured": True},
    AUDIT: {"id": None, "partitions": [KEYED, TXN, COMPACT], "measured": False},
}
T0 = 1_700_000_000.0
STREAMS = [
    {"first": 0, "kind": "long", "instance": 1, "keys": [0, 1], "partitions": [KEYED, KEYED]},
    {"first": 2, "kind": "txn", "instance": 2, "keys": [0], "partitions": [TXN]},
    {"first": 3, "kind": "compact", "instance": 3, "keys": [0, 1], "partitions": [COMPACT, COMPACT]},
    {"first": 5, "kind": "fence", "instance": 4, "keys": [9, 9, 9], "partitions": [KEYED, TXN, COMPACT]},
]
STREAM_PARTITION = [KEYED, KEYED, TXN, COMPACT, COMPACT, KEYED, TXN, COMPACT]


class LedgerBuilder:
    """Collects the rows of a run whose messages are 10 ms apart; a test can change them before `write`."""

    def __init__(self) -> None:
        self.now = 1
        self.sent: list[tuple[int, int]] = []
        self.acked: list[tuple[int, int, int]] = []
        self.aborted: list[tuple[int, int]] = []
        self.received: dict[str, list[tuple[int, int, int]]] = {group: [] for group in GROUPS}
        self.errors: list[dict[str, Any]] = []
        self.admin: list[dict[str, Any]] = []
        self.next_offset = {KEYED: 0, TXN: 0, COMPACT: 0}
        self.stopped: dict[str, Any] | None = None

    def send(self, stream: int) -> int:
        self.sent.append((stream, self.now))
        return len(self.sent) - 1

    def place(self, ledger_id: int) -> int:
        """Return the next position in the message's partition."""
        index = STREAM_PARTITION[self.sent[ledger_id][0]]
        offset = self.next_offset[index]
        self.next_offset[index] += 1
        return position(index, offset)

    def ack(self, ledger_id: int, packed: int, after: int = 5) -> None:
        self.acked.append((ledger_id, self.now + after, packed))

    def deliver(self, ledger_id: int, packed: int, after: int = 8, skip: tuple[str, ...] = ()) -> None:
        for name, group in GROUPS.items():
            if packed >> 48 in group["partitions"] and name not in skip:
                self.received[name].append((ledger_id, self.now + after, packed))

    def message(self, stream: int, skip: tuple[str, ...] = ()) -> tuple[int, int]:
        """Add a message that is sent, acknowledged and delivered; groups in `skip` do not receive it."""
        ledger_id = self.send(stream)
        packed = self.place(ledger_id)
        self.ack(ledger_id, packed)
        self.deliver(ledger_id, packed, skip=skip)
        self.now += 10
        return ledger_id, packed

    def messages(self, count: int) -> None:
        for number in range(count):
            self.message(number % 5)

    def stop(self, skip: tuple[str, ...] = ()) -> None:
        """End the run in order; groups in `skip` do not receive the closing messages."""
        fences = {}
        for stream in (5, 6, 7):
            ledger_id, packed = self.message(stream, skip=skip)
            fences[str(packed >> 48)] = ledger_id
        self.stopped = {
            "at": self.now + 100,
            "sending_ended": self.now,
            "fences": fences,
            "drain": {
                name: len(group["partitions"]) if name in skip else 0 for name, group in GROUPS.items() if name != AUDIT
            },
            "audit": {"done": True, "messages": 1, "seconds": 0.1, "error": None, "from": {"1": 0, "2": 0, "3": 0}},
            "admin": {
                "expected": 0,
                "missing": [],
                "unexpected": [],
                "differ": [],
                "late": [],
                "error": None,
                "skipped": {},
            },
            "foreign": 0,
            "member_restarts": 0,
            "cpu_seconds": 1.0,
        }

    def write(self, directory: Path) -> Recording:
        meta = {
            "version": 1,
            "run_id": "1",
            "t0": T0,
            "config": {"audit": True},
            "partitions": PARTITIONS,
            "groups": GROUPS,
            "stopped": self.stopped,
        }
        (directory / "run.json").write_text(json.dumps(meta))
        for name, lines in (("streams", STREAMS), ("errors", self.errors), ("admin", self.admin)):
            (directory / f"{name}.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
        (directory / "sent.bin").write_bytes(b"".join(SENT.pack(*row) for row in self.sent))
        (directory / "acked.bin").write_bytes(b"".join(ACKED.pack(*row) for row in self.acked))
        (directory / "aborted.bin").write_bytes(b"".join(ABORTED.pack(*row) for row in self.aborted))
        for group, rows in self.received.items():
            (directory / f"received-{group}.bin").write_bytes(b"".join(RECEIVED.pack(*row) for row in rows))
        return read(directory)
