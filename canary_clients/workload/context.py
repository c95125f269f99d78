# Copyright: (c) 2026, Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What all clients of one run share: settings, ledger, partitions, the wish to stop."""

from __future__ import annotations

import logging
import threading
from dataclasses import dataclass, field
from typing import Any, Callable

from confluent_kafka import KafkaError

from canary_clients.config import Config
from canary_clients.ledger import MESSAGE, Clock, LedgerWriter

LOG = logging.getLogger("witness")

# How the Java client paces itself (ProducerConfig, ConsumerConfig 3.9); librdkafka's own reconnect pause of up to 10 s
# and connection timeout of 30 s would be measured as stalls of the cluster.
PACE = {
    "reconnect.backoff.ms": 50,
    "reconnect.backoff.max.ms": 1000,
    "retry.backoff.ms": 100,
    "retry.backoff.max.ms": 1000,
    "socket.timeout.ms": 30000,
    "socket.connection.setup.timeout.ms": 10000,
    "log.connection.close": False,
}

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
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def topic(self, role: str) -> str:
        return f"{self.config.topic_prefix}.{role}"

    def indexes(self, topic: str) -> list[int]:
        """The partition indexes of a topic, by partition number."""
        numbers = sorted(number for name, number in self.partitions if name == topic)
        return [self.partitions[topic, number] for number in numbers]

    def next_instance(self) -> int:
        with self._lock:
            self._instances += 1
            return self._instances

    def client(self, where: str, **settings: Any) -> dict[str, Any]:
        """A client's whole librdkafka config; `where` names the client in notes of errors."""
        return {
            **PACE,
            **self.config.client_settings(),
            **{key.replace("_", "."): value for key, value in settings.items()},
            "client.id": f"witness-{where}",
            "error_cb": self.on_client_error(where),
            "logger": LOG,
        }

    def on_client_error(self, where: str) -> Callable[[KafkaError], None]:
        def note(error: KafkaError) -> None:
            # librdkafka's error callback is information (a broker is down, a name does not resolve) unless fatal
            if error.fatal():
                self.ledger.error(where, error.name(), error.str())
            else:
                self.ledger.note(where, error.name(), without_address(error.str()))

        return note

    def message(self, ledger_id: int, instance: int, key: int, sequence: int, at: int) -> bytes:
        head = MESSAGE.pack(self.run_id, ledger_id, instance, key, sequence, at)
        return head.ljust(self.config.message_bytes, b".")


def without_address(text: str) -> str:
    """Cut what differs between reports of the same trouble (`(after 5ms in state CONNECT, 3 identical...)`)."""
    return text.split(" (after ")[0]


class Client(threading.Thread):
    """A thread whose unexpected end is an error of the application, never silent."""

    def __init__(self, context: Context, name: str) -> None:
        super().__init__(name=name, daemon=True)
        self.context = context
        self.where = name

    def run(self) -> None:
        try:
            self.work()
        except Exception as e:
            LOG.exception("%s died", self.where)
            self.context.ledger.error(self.where, type(e).__name__, str(e))

    def work(self) -> None:
        raise NotImplementedError
