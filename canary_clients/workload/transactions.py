# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A transactional producer: commits, deliberate aborts and recovery from errors (KIP-98, KIP-360)."""

from __future__ import annotations

import time
from typing import Any, Callable

from confluent_kafka import KafkaError, KafkaException

from canary_clients.workload.context import Client, Context
from canary_clients.workload.producers import REPLACED_AT_MOST, Keys, Sender

CALL_TIMEOUT_S = 10


class HeldBack(Exception):
    """The client sent nothing to a partition that works. Its producer was purged, and another one takes its place."""


class TransactionalSender(Sender):
    """Keeps delivery reports until the transaction ends."""

    def __init__(self, context: Context, where: str, keys: Keys) -> None:
        super().__init__(
            context,
            where,
            keys,
            transactional_id=f"{context.config.topic_prefix}.txn.{context.run_id:016x}",
            # librdkafka requires at least the message timeout and the socket timeout
            transaction_timeout_ms=int(max(60, context.config.delivery_timeout_s) * 1000),
        )
        self.positions: dict[int, int] = {}

    def confirmed(self, ledger_id: int, packed_position: int) -> None:
        self.positions[ledger_id] = packed_position

    def failed(self, ledger_id: int, error: KafkaError) -> None:
        # the transaction's calls decide what a failed delivery means
        self.context.ledger.note(self.where, error.name(), f"delivery within a transaction: {error.str()}")


class Transactional(Client):
    """Runs one transaction after another."""

    def __init__(
        self, context: Context, name: str, topic: str, per_partition: int, rate: float, first_key: int
    ) -> None:
        super().__init__(context, name)
        self.topic = topic
        self.per_partition = per_partition
        self.first_key = first_key
        self.per_transaction = max(1, round(rate * context.config.transaction_interval_s))
        self.number = 0
        self.replaced = 0
        self._sender: TransactionalSender | None = None

    def work(self) -> None:
        interval = self.context.config.transaction_interval_s
        while not self.context.stopping.is_set():
            began = time.monotonic()
            self.transaction()
            self.context.stopping.wait(max(0.0, interval - (time.monotonic() - began)))

    def transaction(self) -> bool:
        """Run one transaction; return whether it ended as intended."""
        if self._sender is None:
            self._sender = self._start()
            if self._sender is None:
                return False
        sender = self._sender
        self.number += 1
        abort = self.number % self.context.config.abort_every == 0
        ledger_ids: list[int] = []
        try:
            sender.producer.begin_transaction()
            for dummy in range(self.per_transaction):
                ledger_ids.append(sender.send())
            # also before an abort: only messages in the log test that the cluster hides them
            self._wait_for_reports(sender)
            self._finish(sender, ledger_ids, abort)
            return True
        except HeldBack:
            return False
        except KafkaException as e:
            return self._recover(sender, ledger_ids, e.args[0])

    def _wait_for_reports(self, sender: TransactionalSender) -> None:
        deadline = time.monotonic() + self.context.config.delivery_timeout_s + 10
        while sender.unconfirmed and time.monotonic() < deadline:
            sender.producer.poll(0.02)
            sender.refresh_when_silent()
            if self.replaced < REPLACED_AT_MOST:
                self._replace_when_held_back(sender)
        sender.end_probes()

    def _replace_when_held_back(self, sender: TransactionalSender) -> None:
        """End this producer if it sends nothing to a partition that works; raise HeldBack.

        The next producer's InitProducerId aborts the open transaction, so its messages are indeterminate at most.
        """
        held_back = sender.held_back()
        if held_back is not None:
            self.replaced += 1
            self._sender = None
            sender.give_up(held_back)
            raise HeldBack

    def _finish(self, sender: TransactionalSender, ledger_ids: list[int], abort: bool) -> None:
        if abort:
            self._call(sender, sender.producer.abort_transaction, "abort")
            self._aborted(sender, ledger_ids)
            return
        self._call(sender, sender.producer.commit_transaction, "commit")
        now = self.context.clock.ms()
        for ledger_id in ledger_ids:
            self.context.ledger.acked(ledger_id, sender.positions[ledger_id], now)
        sender.positions.clear()

    def _recover(self, sender: TransactionalSender, ledger_ids: list[int], error: KafkaError) -> bool:
        if error.txn_requires_abort() and not error.fatal():
            # not an error: an application aborts and repeats the transaction (KIP-360)
            self.context.ledger.note(self.where, error.name(), f"the transaction must be aborted: {error.str()}")
            try:
                self._call(sender, sender.producer.abort_transaction, "abort")
                self._aborted(sender, ledger_ids)
                return False
            except KafkaException as e:
                error = e.args[0]
        # fatal: the messages stay indeterminate, and a new producer replaces this one
        waiting = ", ".join(map(sender.name_of, sender.silent()))
        text = f"transactional producer: {error.str()}"
        self.context.ledger.error(self.where, error.name(), f"{text}; silent: {waiting}" if waiting else text)
        sender.producer.purge()
        self._sender = None
        self.context.stopping.wait(1)
        return False

    def _aborted(self, sender: TransactionalSender, ledger_ids: list[int]) -> None:
        for ledger_id in ledger_ids:
            self.context.ledger.aborted(ledger_id)
        sender.positions.clear()

    def _start(self) -> TransactionalSender | None:
        sender = TransactionalSender(
            self.context, self.where, Keys(self.context, "txn", self.topic, self.per_partition, self.first_key)
        )
        try:
            self._call(sender, sender.producer.init_transactions, "init")
            return sender
        except KafkaException as e:
            self.context.ledger.error(self.where, e.args[0].name(), f"init_transactions: {e.args[0].str()}")
            self.context.stopping.wait(1)
            return None

    def _call(self, sender: TransactionalSender, call: Callable[[Any], None], name: str) -> None:
        """Repeat a call while its error is retriable, up to delivery_timeout_s."""
        deadline = time.monotonic() + self.context.config.delivery_timeout_s
        while True:
            try:
                call(CALL_TIMEOUT_S)
                return
            except KafkaException as e:
                error = e.args[0]
                if not error.retriable() or time.monotonic() > deadline:
                    raise
                self.context.ledger.note(self.where, error.name(), f"{name} repeated: {error.str()}")
                # a commit and an abort wait for delivery reports, which only a poll takes
                sender.producer.poll(0.1)

    def fences(self, key: int) -> dict[int, int]:
        """Commit a last transaction with the closing message of each partition; return {partition index: ledger id}."""
        deadline = time.monotonic() + self.context.config.delivery_timeout_s
        while True:
            if self._sender is None:
                self._sender = self._start()
            if self._sender is not None:
                sender = self._sender
                usual, sender.keys = (
                    sender.keys,
                    Keys(self.context, "fence", self.topic, 1, key),
                )
                ledger_ids: list[int] = []
                try:
                    sender.producer.begin_transaction()
                    fences = {}
                    for index in sender.keys.indexes:
                        fences[index] = sender.send()
                        ledger_ids.append(fences[index])
                    self._wait_for_reports(sender)
                    self._finish(sender, ledger_ids, abort=False)
                    return fences
                except HeldBack:
                    pass
                except KafkaException as e:
                    self._recover(sender, ledger_ids, e.args[0])
                finally:
                    sender.keys = usual
            if time.monotonic() > deadline:
                self.context.ledger.error(self.where, "NO_FENCE", "the last transaction could not be committed")
                return {}
