# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which partitions of a large reassignment are sent next: never more in flight than the limit, at the given pace. Pure.

Partitions are sent in the order of topic and number, as KIP-1335 has it. Each is sent once by a run: a partition that
someone else cancels then is not sent again. A partition with an added broker that is not alive, or without a live
replica to copy from, is held back until that changes.
"""

from __future__ import annotations

from collections import deque
from typing import Any, Collection, Dict, FrozenSet, Iterable, List, Mapping, Sequence

from ansible_collections.quorumshift.kafka.plugins.module_utils.core.admin.reassignment import (
    Partition,
    Step,
    format_partition,
)
from ansible_collections.quorumshift.kafka.plugins.module_utils.core.text.advice import format_names

# A KRaft controller makes at most 10,000 records for one request (QuorumController.MAX_RECORDS_PER_USER_OP)
MOST_IN_A_REQUEST = 1000


class Queue:
    """The steps of one move that are not sent yet.

    `begun`: all steps that this move has to start. `limit`: how many partitions of the move may be in flight, None for
    all at once. `pace_s`: least seconds between two requests. A move may be split into slices, each a call of a module:
    `carry` takes the place in the queue from one to the next. `at_work`: whether an earlier slice has sent.
    """

    def __init__(self, begun: Sequence[Step], limit: int | None, pace_s: float, carry: Mapping[str, Any]) -> None:
        self._limit, self._pace_s = limit, pace_s
        self.at_work = bool(carry)
        self._sent_at: float | None = carry.get("sent_at")
        self._last: Partition | None = tuple(carry["last"]) if carry.get("last") else None
        held = {tuple(partition) for partition in carry.get("held", ())}  # lists, once they were JSON
        ordered = sorted(begun, key=lambda step: step.partition)
        self.held: List[Step] = [step for step in ordered if step.partition in held]
        last = self._last
        self._ahead = deque(step for step in ordered if last is None or step.partition > last)
        self._alive: FrozenSet[int] | None = None  # when the held ones were last looked at

    def __len__(self) -> int:
        return len(self.held) + len(self._ahead)

    def waiting(self) -> List[Step]:
        """Return the steps that are not sent yet."""
        return [*self.held, *self._ahead]

    def carry(self) -> Dict[str, Any]:
        """Return what the next slice needs, JSON-able."""
        last, held = self._last, [list(step.partition) for step in self.held]
        return {"last": list(last) if last else None, "held": held, "sent_at": self._sent_at}

    def take(self, now: float, flying: int, alive: Iterable[int]) -> List[Step]:
        """Return the steps to send now, which leave the queue. `now`: epoch seconds; `flying`: how many partitions of
        this move are in flight; `alive`: live brokers."""
        free = MOST_IN_A_REQUEST if self._limit is None else min(MOST_IN_A_REQUEST, self._limit - flying)
        too_early = self._sent_at is not None and 0 <= now - self._sent_at < self._pace_s
        if free <= 0 or too_early:
            return []
        alive, taken = frozenset(alive), []
        if alive != self._alive:
            may = [step for step in self.held if _may_start(step, alive)]
            taken = may[:free]
            gone = {step.partition for step in taken}
            self.held = [step for step in self.held if step.partition not in gone]
            self._alive = alive if len(taken) == len(may) else None
        while self._ahead and len(taken) < free:
            step = self._ahead.popleft()
            self._last = step.partition
            (taken if _may_start(step, alive) else self.held).append(step)
        if taken:
            self._sent_at = now
        return taken

    def describe(self) -> str:
        """Return how many partitions are not sent yet, and which are held back, in words; "" without any."""
        if not len(self):
            return ""
        text = f"{len(self)} partitions are not sent yet"
        if not self.held:
            return text
        listed = format_names([f"{format_partition(step.partition)} adds {list(step.adding)}" for step in self.held])
        return f"{text}, {len(self.held)} of them held back since a broker that they need is not alive ({listed})"


def _may_start(step: Step, alive: Collection[int]) -> bool:
    """Return whether every added broker lives, and one to copy from."""
    return not step.adding or (
        all(broker in alive for broker in step.adding) and any(broker in alive for broker in step.has)
    )
