# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A large reassignment in parts: the limit holds in each slice, and no partition is sent twice or forgotten."""

from __future__ import annotations

import json
import random

import pytest
from ansible_collections.quorumshift.kafka.plugins.module_utils.core.admin import reassignment
from ansible_collections.quorumshift.kafka.plugins.module_utils.core.admin.reassign_queue import (
    MOST_IN_A_REQUEST,
    Queue,
)

ALIVE = (1, 2, 3)


def steps_of(count, wanted=(3, 1)):
    targets = {(f"t{number % 7}", number): list(wanted) for number in range(count)}
    return reassignment.steps(targets, {key: [1, 2] for key in targets}, {})


def again(queue, steps, limit, pace_s=0.0):
    """Return the queue of the next slice, whose steps are those that the cluster still shows as not done."""
    return Queue(steps, limit, pace_s, json.loads(json.dumps(queue.carry())))


@pytest.mark.parametrize("seed", range(100))
def test_slices_send_each_partition_once_and_never_more_than_the_limit(seed):
    random_ = random.Random(seed)
    steps, limit = steps_of(random_.randint(1, 40)), random_.choice([1, 2, 5, 50])
    queue, flying, sent, ended = Queue(steps, limit, 0, {}), [], [], set()
    for now in range(1000):
        alive = ALIVE if random_.random() < 0.7 else (1, 2)
        taken = queue.take(float(now), len(flying), alive)
        assert not taken or 3 in alive, "nothing is sent to a broker that is down"
        sent += taken
        flying += taken
        assert len(flying) <= limit
        ended |= {flying.pop(0).partition for _one in range(random_.randint(0, len(flying)))}
        if random_.random() < 0.3:  # also where someone cancels what was sent: the cluster shows it as not begun
            queue = again(queue, [step for step in steps if step.partition not in ended], limit)
        if not len(queue):
            break
    assert [step.partition for step in sent] == sorted({step.partition for step in sent})
    assert {step.partition for step in sent} == {step.partition for step in steps}


def test_what_needs_a_dead_broker_is_held_back_and_the_rest_goes_on():
    mixed = [*steps_of(3, (4, 1)), *reassignment.steps({("z", 0): [3, 1]}, {("z", 0): [1, 2]}, {})]
    queue = Queue(mixed, 10, 0, {})
    assert [step.partition for step in queue.take(0, 0, ALIVE)] == [("z", 0)]
    assert "3 partitions are not sent yet, 3 of them held back" in queue.describe() and "adds [4]" in queue.describe()
    queue = again(queue, mixed, 10)
    assert queue.take(1, 1, ALIVE) == [] and len(queue.take(2, 0, (*ALIVE, 4))) == 3
    assert queue.describe() == "" and len(again(queue, mixed, 10)) == 0


def test_a_pace_is_kept_also_over_slices():
    queue = Queue(steps_of(9), 3, 60.0, {})
    assert len(queue.take(100.0, 0, ALIVE)) == 3
    queue = again(queue, steps_of(9), 3, 60.0)
    assert queue.take(159.0, 0, ALIVE) == [] and len(queue.take(160.0, 1, ALIVE)) == 2
    assert len(queue.take(90.0, 0, ALIVE)) == 3, "a clock that was set back stops nothing"


def test_a_move_without_a_limit_is_cut_into_requests_that_the_controller_takes():
    queue = Queue(steps_of(2500), None, 0, {})
    assert [len(queue.take(0, 0, ALIVE)) for _request in range(4)] == [MOST_IN_A_REQUEST, MOST_IN_A_REQUEST, 500, 0]
