# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""One run: start the clients, wait until messages flow, stop the clients in order."""

from __future__ import annotations

import contextlib
import fcntl
import logging
import os
import secrets
import threading
import time
from dataclasses import dataclass
from logging.handlers import RotatingFileHandler
from pathlib import Path
from typing import Any

from confluent_kafka import KafkaException

from canary_clients.audit import audit
from canary_clients.cluster import Cluster
from canary_clients.config import Config
from canary_clients.errors import ClientsError
from canary_clients.ledger import AUDIT, Clock, LedgerWriter, write_json
from canary_clients.workload.admin import AdminLoop
from canary_clients.workload.consumers import Group, Member
from canary_clients.workload.context import COMPACT, KEYED, LOG, TXN, Client, Context
from canary_clients.workload.producers import Keys, LongLived, ShortLived, send_fences
from canary_clients.workload.transactions import Transactional

STEADY, RESTARTED, COMMITTED = "steady", "restarted", "committed"
# ranges of keys, one for each writer, so that each stream has a single writer
KEYS_OF_ONE_PRODUCER = 1_000_000
SHORT_KEYS, FENCE_KEYS, TXN_KEYS, COMPACT_KEYS = 900_000_000, 900_100_000, 0, 0
TXN_KEYS_EACH = 6


@dataclass
class Lock:
    """DIR/lock, held while a run lasts; it contains the pid."""

    path: Path
    file: Any = None

    def take(self) -> None:
        self.file = self.path.open("a+", encoding="ascii")
        try:
            fcntl.flock(self.file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise ClientsError(
                f"{self.path.parent}: clients already run here (pid {self.holder()}). Stop them or give another --dir"
            ) from None
        self.file.truncate(0)
        self.file.write(f"{os.getpid()}\n")
        self.file.flush()

    def holder(self) -> int | None:
        """Return the pid of the run that holds the lock, or None."""
        try:
            with open(self.path, encoding="ascii") as file:
                try:
                    fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
                except BlockingIOError:
                    text = file.read().strip()
                    return int(text) if text else 0
        except FileNotFoundError:
            pass
        return None


class Run:
    """A run in its own directory. Call `start()`, `wait()` until `stop_requested` is set, then `stop()`."""

    def __init__(self, config: Config, directory: Path) -> None:
        self.config = config
        self.directory = directory
        self.stop_requested = threading.Event()
        self.meta: dict[str, Any] = {}
        self._workers: list[Client] = []
        self._members: list[Member] = []
        self._lock = Lock(directory / "lock")

    def start(self) -> None:
        """Create topics, start the clients, write DIR/ready when each group has received from each of its partitions.

        On failure stop the clients and raise ClientsError with the reason.
        """
        self.directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._lock.take()
        if (self.directory / "run.json").exists():
            raise ClientsError(f"{self.directory} contains the ledger of an earlier run. Give another --dir")
        log_to(self.directory / "clients.log")
        config = self.config
        deadline = time.monotonic() + config.start_timeout_s
        self.clock = Clock()
        settings = {**config.client_settings(), "client.id": "canary-setup"}
        self.cluster = Cluster(config, settings, deadline)
        partitions = self.cluster.ensure_topics(config.topic_prefix)
        self.first_offsets = self.cluster.offsets(list(partitions), latest=True)
        self.ledger = LedgerWriter(self.directory, self.clock, [STEADY, RESTARTED, COMMITTED, AUDIT])
        self.context = Context(config, self.clock, self.ledger, secrets.randbits(64), partitions)
        keyed, compact, txn = (self.context.topic(role) for role in (KEYED, COMPACT, TXN))
        self.groups = [
            Group(self.context, STEADY, [keyed, compact], "read_uncommitted"),
            Group(self.context, RESTARTED, [keyed], "read_uncommitted"),
            Group(self.context, COMMITTED, [txn], "read_committed"),
        ]
        self._write_meta(partitions)
        try:
            self._start_clients(keyed, compact, txn, deadline)
        except BaseException:
            self._abandon()
            raise
        write_json(self.directory / "ready", {"t": time.time(), "pid": os.getpid()})

    def _write_meta(self, partitions: dict[tuple[str, int], int]) -> None:
        self.meta = {
            "version": 1,
            "run_id": f"{self.context.run_id:016x}",
            "t0": self.clock.t0,
            "pid": os.getpid(),
            "config": self.config.without_secrets(),
            "partitions": [list(partition) for partition in partitions],
            "first_offsets": {str(partitions[partition]): offset for partition, offset in self.first_offsets.items()},
            "groups": {
                group.name: {
                    "id": group.id,
                    "partitions": sorted(group.indexes),
                    # a group whose member leaves on purpose stalls because of that
                    "measured": group.name != RESTARTED,
                }
                for group in self.groups
            }
            | {AUDIT: {"id": None, "partitions": sorted(partitions.values()), "measured": False}},
            "stopped": None,
        }
        write_json(self.directory / "run.json", self.meta)

    def _start_clients(self, keyed: str, compact: str, txn: str, deadline: float) -> None:
        config, context = self.config, self.context
        for group in self.groups:
            while True:
                try:
                    group.commit_start(self.first_offsets)
                    break
                except KafkaException as e:
                    if time.monotonic() > deadline:
                        raise ClientsError(
                            f"group {group.id}: offsets cannot be committed: {e.args[0].str()}"
                        ) from None
                    time.sleep(0.5)
        steady, restarted, committed = self.groups
        self._members = [
            Member(steady, "consumer-steady"),
            Member(restarted, "consumer-stays"),
            Member(restarted, "consumer-restarts", config.member_restart_s),
            Member(committed, "consumer-committed"),
        ]
        shares = config.shares
        unit = config.rate / (shares.long_lived + shares.short_lived + shares.transactional + shares.compacted)
        numbers = list(range(len(context.indexes(keyed))))
        for number in range(config.long_lived_producers):
            # each producer has its own partitions, if there are enough
            own = numbers[number :: config.long_lived_producers] or numbers
            first_key = number * KEYS_OF_ONE_PRODUCER
            keys = Keys(context, "long", keyed, config.keys_per_partition, first_key, own)
            rate = unit * shares.long_lived / config.long_lived_producers
            self._workers.append(LongLived(context, f"producer-{number + 1}", keys, rate))
        self._workers.append(ShortLived(context, "producer-short", keyed, unit * shares.short_lived, SHORT_KEYS))
        each = max(1, round(config.compacted_keys / len(context.indexes(compact))))
        keys = Keys(context, "compact", compact, each, COMPACT_KEYS)
        self._workers.append(LongLived(context, "producer-compact", keys, unit * shares.compacted))
        self.transactional = Transactional(
            context, "producer-txn", txn, TXN_KEYS_EACH, unit * shares.transactional, TXN_KEYS
        )
        self._workers.append(self.transactional)
        for client in (*self._members, *self._workers):
            client.start()
        self._wait_for_flow(deadline)
        self.admin = AdminLoop(context) if config.admin.enabled else None
        if self.admin is not None:
            self.admin.start()

    def _wait_for_flow(self, deadline: float) -> None:
        while any(group.quiet for group in self.groups):
            dead = [c.where for c in (*self._members, *self._workers) if not c.is_alive()]
            if dead or self.stop_requested.is_set() or time.monotonic() > deadline:
                why = f"client {dead[0]} ended" if dead else "stopped before all clients were ready"
                if not dead and not self.stop_requested.is_set():
                    why = f"start_timeout_s of {self.config.start_timeout_s:g} s has passed"
                raise ClientsError(
                    f"messages do not flow on every partition ({why}). Still waiting: {self._waiting()}. "
                    f"Last error: {self.ledger.last_error or 'none'}. See {self.directory}/clients.log"
                )
            time.sleep(0.1)

    def _waiting(self) -> str:
        """Return who waits, as "group steady for 12 of 15 partitions (canary.keyed[0], ...)"."""
        names = [f"{topic}[{number}]" for topic, number in self.context.partitions]
        parts = []
        for group in self.groups:
            quiet = [names[index - 1] for index in sorted(group.quiet)]
            if quiet:
                shown = ", ".join(quiet[:3]) + (", ..." if len(quiet) > 3 else "")
                parts.append(f"group {group.name} for {len(quiet)} of {len(group.indexes)} partitions ({shown})")
        return "; ".join(parts)

    def _abandon(self) -> None:
        self.context.stopping.set()
        for member in self._members:
            member.done.set()
        for client in (*self._members, *self._workers):
            if client.is_alive():
                client.join(5)
        self.ledger.close()
        # so that the directory does not look like a run and can be used again
        for path in (*self.directory.glob("*.bin"), self.directory / "run.json", self.directory / "streams.jsonl"):
            path.unlink(missing_ok=True)
        (self.directory / "errors.jsonl").replace(self.directory / "failed-start.jsonl")

    def wait(self) -> None:
        """Wait until a stop is requested. A client that ends before is an error in the ledger."""
        self.stop_requested.wait()

    def stop(self) -> dict[str, Any]:
        """Stop the producers, let every group read to the end, audit the log, compare the admin changes.

        Return `stopped` of run.json. Every step has a time limit.
        """
        began = self.clock.ms()
        self.context.stopping.set()
        limit = time.monotonic() + self.config.delivery_timeout_s + 30
        for worker in self._workers:
            worker.join(max(0.1, limit - time.monotonic()))
            if worker.is_alive():
                self.ledger.error(worker.where, "STUCK", "did not stop within delivery_timeout_s + 30 s")
        last_send = self.clock.ms()
        fences = self._send_fences()
        drained = self._drain(fences)
        for member in self._members:
            member.done.set()
        for member in self._members:
            member.join(30)
        audited = self._audit()
        admin = self._finish_admin()
        used = time.process_time()
        left = self._delete_groups()
        self.ledger.flush()
        stopped = {
            "at": self.clock.ms(),
            "sending_ended": last_send,
            "seconds_to_stop": round((self.clock.ms() - began) / 1000, 3),
            "fences": {str(index): ledger_id for index, ledger_id in fences.items()},
            "drain": drained,
            "audit": audited,
            "admin": admin,
            "foreign": sum(group.foreign for group in self.groups),
            "member_restarts": sum(member.restarts for member in self._members),
            "groups_left": left,
            "cpu_seconds": round(used, 2),
        }
        self.ledger.close()
        self.meta["stopped"] = stopped
        write_json(self.directory / "run.json", self.meta)
        return stopped

    def _send_fences(self) -> dict[int, int]:
        fences: dict[int, int] = {}
        if self.transactional.is_alive():
            return fences
        for role in (KEYED, COMPACT):
            with contextlib.suppress(BufferError):
                fences |= send_fences(self.context, self.context.topic(role), FENCE_KEYS)
        fences |= self.transactional.fences(FENCE_KEYS)
        return fences

    def _drain(self, fences: dict[int, int]) -> dict[str, Any]:
        awaited = {group: {fences[i] for i in group.indexes if i in fences} for group in self.groups}
        deadline = time.monotonic() + self.config.drain_timeout_s
        while any(group.awaits(ids) for group, ids in awaited.items()) and time.monotonic() < deadline:
            time.sleep(0.05)
        return {group.name: group.awaits(ids) for group, ids in awaited.items()}

    def _audit(self) -> dict[str, Any]:
        if not self.config.audit:
            return {"done": False, "messages": 0, "seconds": 0.0, "error": None, "from": {}}
        partitions = self.context.partitions
        try:
            self.cluster.deadline = time.monotonic() + self.config.drain_timeout_s
            earliest = self.cluster.offsets(list(partitions), latest=False)
            start = {partition: max(self.first_offsets[partition], earliest[partition]) for partition in partitions}
            result = audit(self.context, start, self.config.drain_timeout_s)
        except (ClientsError, KafkaException) as e:
            return {"done": False, "messages": 0, "seconds": 0.0, "error": str(e), "from": {}}
        return {**result, "from": {str(partitions[partition]): offset for partition, offset in start.items()}}

    def _finish_admin(self) -> dict[str, Any] | None:
        if self.admin is None:
            return None
        if not self.admin.finished.wait(self.config.admin.operation_timeout_s + 30):
            self.ledger.error("admin", "STUCK", "an admin operation did not end within operation_timeout_s + 30 s")
            return {"error": "the admin loop did not end", "skipped": self.admin.skipped}
        result = {**self.admin.read_back(), "skipped": self.admin.skipped}
        self.admin.clean_up()
        return result

    def _delete_groups(self) -> list[str]:
        try:
            return self.cluster.delete_groups([group.id for group in self.groups])
        except KafkaException as e:
            return [str(e.args[0])]


def log_to(path: Path) -> None:
    """Send librdkafka's log lines and our own to a file."""
    for old in list(LOG.handlers):
        LOG.removeHandler(old)
    handler = RotatingFileHandler(path, maxBytes=8_000_000, backupCount=2)
    handler.setFormatter(logging.Formatter("%(asctime)s %(threadName)s %(levelname)s %(message)s"))
    LOG.addHandler(handler)
    LOG.setLevel(logging.DEBUG)
    LOG.propagate = False
