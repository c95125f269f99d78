# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Send reassignments over a ClusterAdmin (admin.cluster_admin): all at once or in parts, and again after a lost answer.

AlterPartitionReassignments (KIP-455) may be sent twice: the same target again changes nothing.
"""

from __future__ import annotations

import contextlib
import time
from typing import Any, Dict, List, Mapping, Sequence, Set

from ansible_collections.quorumshift.kafka.plugins.module_utils.admin import own_cluster
from ansible_collections.quorumshift.kafka.plugins.module_utils.admin.cluster_admin import UNKNOWN_TOPIC, ClusterAdmin
from ansible_collections.quorumshift.kafka.plugins.module_utils.admin.reassigner import Sent, Throttles
from ansible_collections.quorumshift.kafka.plugins.module_utils.core.admin.reassign_queue import Queue
from ansible_collections.quorumshift.kafka.plugins.module_utils.core.admin.reassignment import (
    UNDER_WAY,
    Partition,
    Step,
    format_partition,
)
from ansible_collections.quorumshift.kafka.plugins.module_utils.core.text.advice import format_names
from ansible_collections.quorumshift.kafka.plugins.module_utils.wire.kafka_wire import KafkaError
from ansible_collections.quorumshift.kafka.plugins.module_utils.wire.socket_wire import WireError

_NO_REASSIGNMENT = 85  # Errors.NO_REASSIGNMENT_IN_PROGRESS
# Errors.UNKNOWN_SERVER_ERROR, REQUEST_TIMED_OUT, NOT_CONTROLLER: a request with such an answer may have been made
_UNDECIDED = (-1, 7, 41)
_AGAIN_S = 60.0  # after a lost connection: a controller that is elected anew, and the brokers that learn of it
_POLL_S = 0.5


class MayHaveBegun(WireError):
    """The connection was lost while reassignments were sent, and what the cluster made of them is not known."""


class Sender:
    """Sends what one move has to start, as its queue permits. `sent` is what reassigner.wait asks.

    `moving`: every step that is not done; `since`: since when this task owns the record of throttles, None where it
    does not use it; `skips`: whether a partition that does not exist is left out of the first request too.

    :ivar changed: whether anything was sent
    :ivar failed: {name of a partition: why Kafka refused it}
    :ivar gone: names of partitions that do not exist any more
    """

    def __init__(
        self,
        admin: ClusterAdmin,
        throttles: Throttles,
        queue: Queue,
        moving: Sequence[Step],
        since: float | None,
        skips: bool,
    ) -> None:
        self._admin, self._throttles, self._queue = admin, throttles, queue
        self._since, self._skips = since, skips or queue.at_work
        waiting = {step.partition for step in queue.waiting()}
        self._targets: Dict[Partition, Any] = {
            step.partition: step.wanted if step.state == UNDER_WAY else step.target
            for step in moving
            if step.partition not in waiting
        }
        self.changed = False
        self.failed: Dict[str, str] = {}
        self.gone: List[str] = []

    def sent(self, in_flight: Mapping[Partition, Any]) -> Sent:
        """Send what the queue permits now; return what is sent so far. Raises WireError, MayHaveBegun, Superseded."""
        flying = sum(partition in self._targets for partition in in_flight)
        more = False
        while True:
            batch = self._queue.take(time.time(), flying, self._admin.brokers)
            if not batch:
                return Sent(self._targets, len(self._queue), self._queue.describe(), more)
            self._send(batch)
            flying, more = flying + len(batch), True

    def _send(self, batch: Sequence[Step]) -> None:
        with self._throttles.exclusive() if self._since is not None else contextlib.nullcontext():
            if self._since is not None:
                self._throttles.require_owner(self._since)
            self.changed = True
            errors = send(self._admin, {step.partition: step.target for step in batch})
        for step in batch:
            error, name = errors.get(step.partition), format_partition(step.partition)
            if error is None:
                self._targets[step.partition] = step.target
            elif error.code == UNKNOWN_TOPIC and self._skips:
                self.gone.append(name)
            else:
                self.failed[name] = str(error)
        self._skips = True  # the partitions of later requests existed when the move began


def send(
    admin: ClusterAdmin, targets: Mapping[Partition, Sequence[int] | None], again_s: float = _AGAIN_S
) -> Dict[Partition, KafkaError | None]:
    """Move partitions to their replicas, or cancel (None); return each one's error. A cancellation of one that ended
    meanwhile is no error.

    Where the connection is lost, the cluster may have begun: it is read anew, and what has not begun is sent again, for
    at most `again_s` seconds. Raises MayHaveBegun then, and KafkaError where the controller refuses.
    """
    results: Dict[Partition, KafkaError | None] = {}
    left, lost, end = dict(targets), "", time.monotonic() + again_s
    while True:
        try:
            if lost:
                admin.refresh()
                begun = _begun(admin, left)
                results.update(dict.fromkeys(begun))
                left = {partition: target for partition, target in left.items() if partition not in begun}
            if left:
                results.update(admin.reassign(left))
            return {
                partition: None if error and targets[partition] is None and error.code == _NO_REASSIGNMENT else error
                for partition, error in results.items()
            }
        except WireError as error:
            if isinstance(error, KafkaError) and error.code not in _UNDECIDED:
                raise
            if isinstance(error, own_cluster.ForeignServer) and not lost:
                raise  # nothing was sent
            lost = str(error)
        if time.monotonic() >= end:
            raise MayHaveBegun(
                None,
                f"the connection was lost while {len(left)} reassignments were sent, and they may have begun "
                f"({format_names(list(map(format_partition, sorted(left))))}). For {again_s:.0f} s the cluster did not "
                f"say: {lost}. Run again: it reads what is in flight first (QS-ADMIN-015)",
            )
        time.sleep(_POLL_S)


def _begun(admin: ClusterAdmin, targets: Mapping[Partition, Sequence[int] | None]) -> Set[Partition]:
    """Return those of the targets on which nothing is left to be sent."""
    in_flight = admin.in_flight()
    found = set()
    for partition, target in targets.items():
        moving = in_flight.get(partition)
        if target is None:
            begun = moving is None
        elif moving:
            begun = [replica for replica in moving["replicas"] if replica not in moving["removing"]] == list(target)
        else:
            begun = admin.partitions.get(partition, {}).get("replicas") == list(target)
        if begun:
            found.add(partition)
    return found
