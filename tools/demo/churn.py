# Copyright: (c) 2026, Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Somebody who goes on changing metadata while it moves: `python -m tools.demo.churn LEDGER RECORDED`, until SIGTERM.

Round after round a topic, a config, an ACL, a quota and a SCRAM user are made, those of the round before are changed,
and of those of two rounds before, two of three are removed. A change that is refused retriably is asked for again,
as a client would. Each is written down (ledger.py), so that `check` can tell whether all of it arrived.

SCRAM users are removed only before the first broker restarts in migration mode. Kafka 3.9.2 loses every credential of a
mechanism when a node loads the log of one's removal in one go and meets it first (ScramDelta.apply drops the mechanism
as soon as its map is empty, in the midst of filling it): one removal after the copy, and a broker's restart may shut
all users of that mechanism out.
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
from typing import Any, Callable, Iterator

from ansible_collections.quorumshift.kafka.plugins.module_utils.probes import zookeeper

from tools.demo import ledger
from tools.demo.changes import KINDS, PREFIX, Refused, kinds
from tools.demo.testbed import TestbedInventory

# Brokers in ZooKeeper mode learn of each new topic by a request of its own; on two cores that all of them share with
# their clients, a topic a second keeps new partitions under-replicated for as long as it goes on. The pause of a round
# is spread over it, so that there is no moment, however short the copy, without a change under way or just before it.
PAUSE_S = 2.0
REPEAT_S = 0.25
LIMIT_S = 120
AGREE_S = 60
KEEP_EVERY = 3
ROUND = 3 * len(KINDS)


class Churn:
    """Makes the changes, one after the other, until `ending` is set."""

    def __init__(self, made: list[Any], path: Path, scram_removals: Callable[[], bool]) -> None:
        self.kinds = made
        self._scram_removals = scram_removals
        self.ending = threading.Event()
        names = [line["name"] for line in ledger.read(path)]
        self.first = 1 + max((int(name.removeprefix(PREFIX)) for name in names), default=0)
        self._file = path.open("a", encoding="utf-8")

    def run(self) -> None:
        number = self.first
        while not self.ending.is_set():
            for change in self._round(number):
                change()
                self.ending.wait(PAUSE_S / ROUND)
            number += 1

    def _round(self, number: int) -> Iterator[Callable[[], None]]:
        name, before, old = (f"{PREFIX}{number - back}" for back in range(3))
        for kind in self.kinds:
            yield partial(self._change, kind, "make", name, partial(kind.make, name, number))
        # what another process of an earlier time left is left alone: its last round may be half done
        if number - 1 >= self.first:
            for kind in self.kinds:
                yield partial(self._change, kind, "alter", before, partial(kind.alter, before, number))
        if number - 2 >= self.first and (number - 2) % KEEP_EVERY:
            for kind in reversed(self.kinds):
                if kind.name != "scram" or self._scram_removals():
                    yield partial(self._change, kind, "remove", old, partial(kind.remove, old))

    def _change(self, kind: Any, action: str, name: str, call: Callable[[], Any]) -> None:
        begun, tries, heard = time.time(), 0, None
        while True:
            tries += 1
            try:
                value, outcome = call(), "done"
                break
            except Refused as refused:
                value, outcome, heard = None, "refused", str(refused)
                if tries > 1 and refused.before:
                    value, outcome = {"make": 1, "alter": 2}.get(action), "done"  # topics alone tell so, and removals
                    break
                if not refused.repeat or time.time() - begun > LIMIT_S:
                    break
                time.sleep(REPEAT_S)
        line = {"t": begun, "end": time.time(), "kind": kind.name, "action": action, "name": name, "value": value}
        line.update({"outcome": outcome, "tries": tries, "heard": heard})
        self._file.write(json.dumps(line) + "\n")
        self._file.flush()


def no_broker_restarted(events: Path) -> bool:
    """Whether the recorder has seen no broker restart yet."""
    with contextlib.suppress(FileNotFoundError):
        return '"stopping", "unit": "kafka.service"' not in events.read_text(encoding="utf-8")
    return True


def check(testbed: TestbedInventory, path: Path, where: str) -> dict[str, Any]:
    """Compare `brokers` or `ZooKeeper` with what was written, until they agree or AGREE_S are over.

    Returns {where, objects, differences}. To be called while nothing is changed.
    """
    wanted, unsure = ledger.expected(ledger.read(path), KINDS)
    deadline = time.monotonic() + AGREE_S
    while True:
        try:
            found = _brokers(testbed) if where == "brokers" else _zookeeper(testbed)
            differ = ledger.differences(wanted, unsure, found, where)
        except (Refused, zookeeper.ZooKeeperError) as error:
            differ = [f"{where} could not be read: {error}"]
        if not differ or time.monotonic() > deadline:
            return {"where": where, "objects": sum(map(len, wanted.values())), "differences": differ}
        time.sleep(0.5)


def _brokers(testbed: TestbedInventory) -> dict[str, dict]:
    return {kind.name: kind.read() for kind in kinds(testbed.librdkafka(), testbed.kafka_python())}


def _zookeeper(testbed: TestbedInventory) -> dict[str, dict]:
    with zookeeper.connect(testbed.zookeeper_connect) as client:
        tree = zookeeper.metadata(client)
    return {name: kind.of_zookeeper(tree) for name, kind in KINDS.items()}


def main(arguments: list[str]) -> int:
    testbed = TestbedInventory()
    changes, events = map(Path, arguments)
    churn = Churn(kinds(testbed.librdkafka(), testbed.kafka_python()), changes, lambda: no_broker_restarted(events))
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: churn.ending.set())
    churn.run()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
