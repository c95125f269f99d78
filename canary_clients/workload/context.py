# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What all clients of a run share: settings, ledger, partitions, the stop event."""

from __future__ import annotations

import logging
import threading
import time
from dataclasses import dataclass, field
from typing import Any, Callable

from confluent_kafka import KafkaError

from canary_clients.config import Config
from canary_clients.ledger import MESSAGE, Clock, LedgerWriter

LOG = logging.getLogger("canary_clients")

PROPAGATION = "topic.metadata.propagation.max.ms"
PROPAGATION_MS = 30000  # librdkafka's default
# The Java client's defaults (ProducerConfig, ConsumerConfig 3.9). librdkafka's reconnect backoff of up to 10 s and
# connection timeout of 30 s would show up as stalls of the cluster.
PACE = {
    "reconnect.backoff.ms": 50,
    "reconnect.backoff.max.ms": 1000,
    "retry.backoff.ms": 100,
    "retry.backoff.max.ms": 1000,
    "socket.timeout.ms": 30000,
    "socket.connection.setup.timeout.ms": 10000,
    "log.connection.close": False,
    # A broker that starts in ZooKeeper or migration mode answers at first that no topic exists, and lists no broker.
    # The Java client ignores that (NetworkClient, "Ignoring empty metadata response"). librdkafka from 2.10 on takes
    # the topic for deleted, and believes no other broker for this time: by default 30 s (rd_kafka_topic_set_exists).
    PROPAGATION: 1000,
}
# A new client's messages fail when its topic is unknown for longer than that. So a client that lives for seconds keeps
# librdkafka's default.
NEW_CLIENT = {PROPAGATION.replace(".", "_"): PROPAGATION_MS}

KEYED, COMPACT, TXN = "keyed", "compact", "txn"


@dataclass
class Context:
    config: Config
    clock: Clock
    ledger: LedgerWriter
    run_id: int
    partitions: dict[tuple[str, int], int]
    stopping: threading.Event = field(default_factory=threading.Event)
    _instances: int = 0
    # {partition index: the two producer instances that it acknowledged last, newest first, and when}
    _acknowledged: dict[int, list[tuple[int, float]]] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def topic(self, role: str) -> str:
        return f"{self.config.topic_prefix}.{role}"

    def indexes(self, topic: str) -> list[int]:
        """Return the partition indexes of a topic, by partition number."""
        numbers = sorted(number for name, number in self.partitions if name == topic)
        return [self.partitions[topic, number] for number in numbers]

    def next_instance(self) -> int:
        with self._lock:
            self._instances += 1
            return self._instances

    def acknowledged(self, index: int, instance: int) -> None:
        """Keep that a partition acknowledged a message of a producer instance now."""
        with self._lock:
            others = [entry for entry in self._acknowledged.get(index, []) if entry[0] != instance]
            self._acknowledged[index] = [(instance, time.monotonic()), *others[:1]]

    def acknowledged_others(self, index: int, instance: int) -> float:
        """Return when (monotonic) a partition last acknowledged a message of another instance; 0.0: never."""
        with self._lock:
            return max((at for other, at in self._acknowledged.get(index, []) if other != instance), default=0.0)

    def client(self, where: str, **settings: Any) -> dict[str, Any]:
        """Return a client's librdkafka config; `where` names the client in the ledger's errors and notes."""
        return {
            **PACE,
            **self.config.client_settings(),
            **{key.replace("_", "."): value for key, value in settings.items()},
            "client.id": f"canary-{where}",
            "error_cb": self.on_client_error(where),
            "logger": LOG,
        }

    def on_client_error(self, where: str) -> Callable[[KafkaError], None]:
        def note(error: KafkaError) -> None:
            # librdkafka recovers by itself from errors that are not fatal (a broker is down, a name does not resolve)
            if error.fatal():
                self.ledger.error(where, error.name(), error.str())
            else:
                self.ledger.note(where, error.name(), without_address(error.str()))

        return note

    def message(self, ledger_id: int, instance: int, key: int, sequence: int, at: int) -> bytes:
        head = MESSAGE.pack(self.run_id, ledger_id, instance, key, sequence, at)
        return head.ljust(self.config.message_bytes, b".")


def without_address(text: str) -> str:
    """Remove the part that varies between reports of one error (`(after 5ms in state CONNECT, 3 identical...)`)."""
    return text.split(" (after ")[0]


class Client(threading.Thread):
    """A thread that enters its unexpected end in the ledger as an application error."""

    def __init__(self, context: Context, name: str) -> None:
        super().__init__(name=name, daemon=True)
        self.context = context
        self.where = name

    def run(self) -> None:
        try:
            self.work()
        except Exception as e:
            LOG.exception("%s failed", self.where)
            self.context.ledger.error(self.where, type(e).__name__, str(e))

    def work(self) -> None:
        raise NotImplementedError
