# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Change metadata while it moves: `python -m tests.system.demo.churn LEDGER RECORDED`, until SIGTERM or SIGUSR1.

A round creates a topic, a config, an ACL, a quota and a SCRAM user, changes those of the previous round, and removes
two of three of those of the round before that. A round runs every ROUND_S. Two more run whenever the recorder has seen
a node register in the quorum or the migration driver change its state, and after SIGUSR1, before the end. So each phase
sees every kind made, changed and removed. SIGTERM ends it after the round in progress. A change is repeated while its
error is retriable. Each change goes into the ledger (ledger.py); `check` compares the cluster with it.

The rate is a real cluster's, on purpose. Each change of a config, quota, user or ACL leaves a notification znode for 15
minutes, and each new one makes every broker read all of them again
(ZkNodeChangeNotificationListener.purgeObsoleteNotifications). Thousands of changes would measure only that.

SCRAM users are removed only before the first broker restarts in migration mode. Kafka 3.9.2 loses every credential of a
mechanism when a node loads a removal in one batch with them and applies it first (ScramDelta.apply drops the mechanism
as soon as its map is empty, while it is still being filled). So after one removal, a broker's restart may lock out all
users of that mechanism.
"""

from __future__ import annotations

import contextlib
import json
import signal
import sys
import threading
import time
from functools import partial
from pathlib import Path
from typing import Any, Callable

from ansible_collections.quorumshift.kafka.plugins.module_utils.probes.zookeeper import zookeeper

from tests.system.demo import ledger
from tests.system.demo.changes import KINDS, PREFIX, Refused, kinds
from tests.system.testbed.inventory import TestbedInventory

ROUND_S = 60.0
BURST = 2  # rounds; of two in a row at least one removes
POLL_S = 0.1
REPEAT_S = 0.25
LIMIT_S = 120
AGREE_S = 60
KEEP_EVERY = 3


class Churn:
    """Makes one change after the other until `ending` is set, or for BURST rounds after `completing` is."""

    def __init__(self, made: list[Any], path: Path, recorded: Recorded) -> None:
        self.kinds = made
        self._recorded = recorded
        self.ending = threading.Event()
        self.completing = threading.Event()
        names = [line["name"] for line in ledger.read(path)]
        self.first = 1 + max((int(name.removeprefix(PREFIX)) for name in names), default=0)
        self._file = path.open("a", encoding="utf-8")

    def run(self) -> None:
        number, rounds, due = self.first, BURST + 1, 0.0
        while not self.ending.is_set() and not self.completing.is_set():
            rounds = max(rounds, BURST if self._recorded.moved() else int(time.monotonic() >= due))
            if not rounds:
                self.ending.wait(POLL_S)
                continue
            self._round(number)
            number, rounds, due = number + 1, rounds - 1, time.monotonic() + ROUND_S
        for last in range(number, number + max(rounds, BURST)):
            if self.ending.is_set():
                break
            self._round(last)

    def _round(self, number: int) -> None:
        name, before, old = (f"{PREFIX}{number - back}" for back in range(3))
        for kind in self.kinds:
            self._change(kind, "make", name, partial(kind.make, name, number))
        # objects of an earlier process are left alone: its last round may be incomplete
        if number - 1 >= self.first:
            for kind in self.kinds:
                self._change(kind, "alter", before, partial(kind.alter, before, number))
        if number - 2 >= self.first and (number - 2) % KEEP_EVERY:
            for kind in reversed(self.kinds):
                if kind.name != "scram" or not self._recorded.broker_restarted:
                    self._change(kind, "remove", old, partial(kind.remove, old))

    def _change(self, kind: Any, action: str, name: str, call: Callable[[], Any]) -> None:
        begun, tries, error = time.time(), 0, None
        while True:
            tries += 1
            try:
                value, outcome = call(), "done"
                break
            except Refused as refused:
                value, outcome, error = None, "refused", str(refused)
                # No other client uses these names, so an earlier attempt took effect: ours, or one that a broker
                # repeated. Only topics and removals have such an error.
                if refused.before:
                    value, outcome = {"make": 1, "alter": 2}.get(action), "done"
                    break
                if not refused.repeat or time.time() - begun > LIMIT_S:
                    break
                time.sleep(REPEAT_S)
        line = {"t": begun, "end": time.time(), "kind": kind.name, "action": action, "name": name, "value": value}
        line.update({"outcome": outcome, "tries": tries, "error": error})
        self._file.write(json.dumps(line) + "\n")
        self._file.flush()


class Recorded:
    """Reads incrementally what the recorder writes (recorder.py)."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._offset = 0
        self.broker_restarted = False

    def moved(self) -> bool:
        """Return whether a node registered in the quorum, or the driver changed its state, since the last call."""
        with contextlib.suppress(FileNotFoundError), self._path.open("rb") as file:
            file.seek(self._offset)
            lines = file.read().splitlines(keepends=True)
            if lines and not lines[-1].endswith(b"\n"):
                del lines[-1]  # still being written
            self._offset += sum(map(len, lines))
            events = [json.loads(line) for line in lines]
            self.broker_restarted |= any(
                (event["kind"], event.get("unit")) == ("stopping", "kafka.service") for event in events
            )
            return any(event.get("name") in ("driver", "registered in the quorum") for event in events)
        return False


def check(testbed: TestbedInventory, path: Path, where: str) -> dict[str, Any]:
    """Compare `brokers` or `ZooKeeper` with what was written, until they agree or AGREE_S have passed.

    Return {where, objects, differences, executed_late}. Call it only while nothing is changed.
    """
    lines = ledger.read(path)
    wanted, unsure = ledger.expected(lines, KINDS)
    late: list[dict[str, Any]] = []
    deadline = time.monotonic() + AGREE_S
    while True:
        try:
            present = _brokers(testbed) if where == "brokers" else _zookeeper(testbed)
            differ = ledger.differences(wanted, unsure, present, where)
            if differ and time.monotonic() > deadline:  # before that, the later change may only be on its way
                late = ledger.executed_late(lines, present)
                for line in late:
                    unsure[line["kind"]].add(line["name"])
                differ = ledger.differences(wanted, unsure, present, where)
        except (Refused, zookeeper.ZooKeeperError) as error:
            differ = [f"{where} could not be read: {error}"]
        if not differ or time.monotonic() > deadline:
            objects = sum(map(len, wanted.values()))
            return {"where": where, "objects": objects, "differences": differ, "executed_late": late}
        time.sleep(0.5)


def _brokers(testbed: TestbedInventory) -> dict[str, dict]:
    return {kind.name: kind.read() for kind in kinds(testbed.librdkafka(), testbed.kafka_python())}


def _zookeeper(testbed: TestbedInventory) -> dict[str, dict]:
    with zookeeper.connect(testbed.zookeeper_connect) as client:
        tree = zookeeper.read_metadata(client)
    return {name: kind.of_zookeeper(tree) for name, kind in KINDS.items()}


def main(arguments: list[str]) -> int:
    testbed = TestbedInventory()
    changes, events = map(Path, arguments)
    churn = Churn(kinds(testbed.librdkafka(), testbed.kafka_python()), changes, Recorded(events))
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: churn.ending.set())
    signal.signal(signal.SIGUSR1, lambda *_: churn.completing.set())
    churn.run()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
