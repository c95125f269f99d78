# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Record the cluster's events during a migration: `python -m tests.system.demo.recorder OUT.jsonl`, until SIGTERM.

A separate process, so that the tool does not measure itself. It follows each host's systemd journal and Kafka log, and
requests the brokers' metadata five times a second. It writes one JSON object a line, {t: epoch seconds, kind, host?,
...}:
  stopping, stopped, started   of the Kafka unit, by systemd's message ids; at `stopped` the process has ended
  milestone                    a log line of a broker or controller that MILESTONES names, at the line's own time
  isr                          brokers seen, partitions without leader, and by broker the partitions in whose ISR it is
                               not; written when it changes
At SIGTERM it reads each host's complete journal once more and writes the events that it missed, with `late`.
"""

from __future__ import annotations

import json
import re
import signal
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime
from pathlib import Path
from typing import Any

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient

from tests.system.testbed.inventory import TestbedInventory

POLL_S = 0.2
# systemd/sd-messages.h
UNIT_MESSAGES = {
    "de5b426a63be47a7b6ac3eaac82e2f6f": "stopping",
    "9d1aaa27d60140bd96365438aad20286": "stopped",
    "39f53479d3a045ac8e11786248231fbf": "started",
    "98e322203f7a4ed290d09fe03c09fe15": "exited",
}
# Kafka 3.9: kafka.server.{KafkaServer,KafkaRaftServer,BrokerLifecycleManager,ControllerRegistrationManager},
# kafka.zk.KafkaZkClient, org.apache.kafka.metadata.migration.KRaftMigrationDriver
MILESTONES = {
    "server started": r"\[KafkaServer id=\d+\] started|Kafka Server started",
    "registered in the quorum": r"Successfully registered broker|registration has been persisted to the metadata log",
    "unfenced": r"The broker has been unfenced",
    "registered in ZooKeeper": r"Registered broker \d+ at path /brokers/ids",
    "driver": r"\[KRaftMigrationDriver id=\d+\] \d+ transitioning from (\S+) to (\S+) state",
    "copy begun": r"Starting ZK migration",
    "copy done": r"Completed migration of metadata from",
}
_PATTERNS = {name: re.compile(pattern) for name, pattern in MILESTONES.items()}
_TIMESTAMP = re.compile(r"^\[(\d{4}-\d\d-\d\d \d\d:\d\d:\d\d),(\d{3})\]")
# One connection per host: journal lines are JSON objects, log lines begin with a bracket. grep on the host keeps the
# volume small and writes whole lines; journalctl's buffer may end within a line.
_JOURNAL = (
    "journalctl --no-tail --since=@{since:.6f} {more} --output=json --output-fields=MESSAGE_ID,UNIT"
    f" -u kafka -u kafka-controller | grep --line-buffered -E '{'|'.join(UNIT_MESSAGES)}'"
)
_LOGGED = "|".join(MILESTONES.values()).replace(r"\d", "[0-9]").replace(r"\S", "[^ ]")
_FOLLOW = (
    "date +%z;"
    "trap 'kill 0' EXIT;"
    f"{_JOURNAL} &"
    "tail --lines=0 --follow=name --retry /var/log/kafka/server.log /var/log/kafka/controller.log 2>/dev/null"
    f" | grep --line-buffered -E '{_LOGGED}' &"
    "cat >/dev/null"
)
READ_JOURNAL_TIMEOUT_S = 20


def milestone(line: str, offset: str) -> dict[str, Any] | None:
    """Return a log line as an event {t, kind, name, text}, None if it matches no milestone; `offset` as in date +%z."""
    stamp = _TIMESTAMP.match(line)
    if not stamp:
        return None
    for name, pattern in _PATTERNS.items():
        if pattern.search(line):
            at = datetime.strptime(f"{stamp[1]}.{stamp[2]} {offset}", "%Y-%m-%d %H:%M:%S.%f %z")
            return {"t": at.timestamp(), "kind": "milestone", "name": name, "text": line[26:].strip()[:300]}
    return None


def unit_event(line: str) -> dict[str, Any] | None:
    """Return a journal line as an event {t, kind, unit}, None if it is no start or stop."""
    entry = json.loads(line)
    kind = UNIT_MESSAGES.get(entry.get("MESSAGE_ID", ""))
    return kind and {"t": int(entry["__REALTIME_TIMESTAMP"]) / 1e6, "kind": kind, "unit": entry.get("UNIT")}


def isr_state(metadata: Any) -> dict[str, Any]:
    """Return {brokers, partitions, offline, out: {broker id: partitions}} from confluent-kafka's ClusterMetadata.

    Topics with an error are skipped: they are being created or deleted.
    """
    out: dict[str, int] = {}
    offline = partitions = 0
    for topic in metadata.topics.values():
        if topic.error is not None:
            continue
        for partition in topic.partitions.values():
            partitions += 1
            offline += partition.leader < 0
            for replica in partition.replicas:
                if replica not in partition.isrs:
                    out[str(replica)] = out.get(str(replica), 0) + 1
    return {"brokers": sorted(metadata.brokers), "offline": offline, "partitions": partitions, "out": out}


class Recorder:
    """Writes the events of all sources to one file."""

    def __init__(self, testbed: TestbedInventory, path: Path) -> None:
        self.testbed = testbed
        self.ending = threading.Event()
        self._file = path.open("a", encoding="utf-8")
        self._lock = threading.Lock()
        self._followers: list[subprocess.Popen] = []
        self._begun = time.time()
        self._written: dict[str, set[tuple[float, str]]] = {host: set() for host in testbed.hosts}

    def run(self) -> None:
        """Record until `ending` is set."""
        for host in self.testbed.hosts:
            threading.Thread(target=self._follow, args=(host,), daemon=True).start()
        try:
            self._poll()
        finally:
            for follower in self._followers:
                follower.terminate()
            with ThreadPoolExecutor(len(self.testbed.hosts)) as pool:
                list(pool.map(self._read_journal, self.testbed.hosts))

    def note(self, event: dict[str, Any]) -> None:
        with self._lock:
            self._file.write(json.dumps(event) + "\n")
            self._file.flush()

    def _follow(self, host: str) -> None:
        while not self.ending.is_set():
            follower = subprocess.Popen(
                self._on(host, _FOLLOW.format(since=self._begun, more="--follow")),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                text=True,
                errors="replace",
            )
            self._followers.append(follower)
            offset = follower.stdout.readline().strip() or "+0000"
            self.note({"t": time.time(), "kind": "following", "host": host})
            for line in follower.stdout:
                event = milestone(line, offset)
                if event:
                    self.note({**event, "host": host})
                elif line.startswith("{"):
                    self._note_unit(host, line)
            self.note({"t": time.time(), "kind": "connection lost", "host": host})
            self.ending.wait(1)

    def _read_journal(self, host: str) -> None:
        try:
            read = subprocess.run(
                self._on(host, _JOURNAL.format(since=self._begun, more="")),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                text=True,
                check=False,
                timeout=READ_JOURNAL_TIMEOUT_S,
            )
        except subprocess.TimeoutExpired as error:
            print(f"{host}: {error}", file=sys.stderr)
            return
        for line in read.stdout.splitlines():
            self._note_unit(host, line, late=True)

    def _on(self, host: str, command: str) -> list[str]:
        # not a shared connection, which ends with the process that opened it
        return self.testbed.ssh(host, command, own=True)

    def _note_unit(self, host: str, line: str, **more: bool) -> None:
        """Write a start or stop once: after a lost connection the journal is read from the beginning."""
        event = unit_event(line)
        if event and (event["t"], event["kind"]) not in self._written[host]:
            self._written[host].add((event["t"], event["kind"]))
            self.note({**event, "host": host, **more})

    def _poll(self) -> None:
        client = AdminClient(self.testbed.librdkafka(**{"client.id": "recorder"}))
        before: dict[str, Any] | None = None
        while not self.ending.is_set():
            requested = time.time()
            try:
                metadata = client.list_topics(timeout=2)
                seen = isr_state(metadata)
                addresses = {address: host for host, address in self.testbed.brokers.items()}
                seen["hosts"] = {addresses.get(b.host, b.host): b.id for b in metadata.brokers.values()}
            except KafkaException as error:
                seen = {"error": error.args[0].name()}
            # the number of partitions changes with every canary topic
            compared = {key: value for key, value in seen.items() if key != "partitions"}
            if compared != before:
                self.note({"t": time.time(), "asked": requested, "kind": "isr", **seen})
                before = compared
            self.ending.wait(max(0.0, POLL_S - (time.time() - requested)))


def main(arguments: list[str]) -> int:
    recorder = Recorder(TestbedInventory(), Path(arguments[0]))
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: recorder.ending.set())
    recorder.run()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
