# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The audit: read everything that the run wrote from the log once more, from its first offset to the last.

A message that a group received can still be lost later, when a replica starts empty or a log is truncated.
"""

from __future__ import annotations

import time
from typing import Any

from confluent_kafka import Consumer, KafkaError, TopicPartition

from canary_clients.ledger import AUDIT, MESSAGE_IDENTITY, RECEIVED, position
from canary_clients.workload.consumers import TRANSIENT, group_id
from canary_clients.workload.context import Context

BATCH = 5000


def audit(context: Context, start: dict[tuple[str, int], int], idle_limit_s: float) -> dict[str, Any]:
    """Read every partition from `start` to its end into the ledger's AUDIT group.

    Return {"done": bool, "messages": int, "seconds": float, "error": text or None}, when every partition is at its end
    or when no message has arrived for `idle_limit_s`.
    """
    began = time.monotonic()
    consumer = Consumer(
        context.client(
            AUDIT,
            group_id=group_id(context, AUDIT),
            isolation_level="read_committed",
            enable_auto_commit=False,
            enable_partition_eof=True,
            auto_offset_reset="error",
            queued_max_messages_kbytes=16384,
        )
    )
    unfinished = set(start)
    count = 0
    error = None
    try:
        consumer.assign([TopicPartition(topic, number, offset) for (topic, number), offset in start.items()])
        last = time.monotonic()
        while unfinished and error is None:
            rows = bytearray()
            now = context.clock.ms()
            for message in consumer.consume(BATCH, 0.2):
                partition = (message.topic(), message.partition())
                problem = message.error()
                if problem is not None:
                    if problem.code() == KafkaError._PARTITION_EOF:
                        unfinished.discard(partition)
                        last = time.monotonic()
                    elif problem.code() not in TRANSIENT and not problem.retriable():
                        error = f"{message.topic()}[{message.partition()}]: {problem.str()}"
                    continue
                last = time.monotonic()
                count += 1
                value = message.value()
                run_id, ledger_id = MESSAGE_IDENTITY.unpack_from(value) if value and len(value) >= 12 else (None, 0)
                if run_id == context.run_id:
                    rows += RECEIVED.pack(ledger_id, now, position(context.partitions[partition], message.offset()))
            context.ledger.received(AUDIT, bytes(rows))
            if time.monotonic() - last > idle_limit_s:
                names = ", ".join(f"{topic}[{number}]" for topic, number in sorted(unfinished))
                error = f"no message for {idle_limit_s:g} s; not at the end: {names}"
    finally:
        consumer.close()
    return {"done": error is None, "messages": count, "seconds": round(time.monotonic() - began, 3), "error": error}
