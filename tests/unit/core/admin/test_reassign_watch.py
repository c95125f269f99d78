# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A wait for reassignments over many slices: stalls, ends elsewhere and deletions are seen as in one call."""

from __future__ import annotations

import json
import random

import pytest
from ansible_collections.quorumshift.kafka.plugins.module_utils.core.admin.reassign_watch import SETTLE_S, Watch

T0, T1 = ("t", 0), ("t", 1)
MOVING = {"replicas": [3, 1, 2], "adding": [3], "removing": [2]}
BOUND_S = 900.0


class Slices:
    """Readings of one wait, each in a slice of its own or all in one."""

    def __init__(self, sliced: bool) -> None:
        self.sliced = sliced
        self.watch = Watch(0.0, {})

    def see(self, now, targets, replicas, flying, copied=0):
        if self.sliced:
            self.watch = Watch(now, json.loads(json.dumps(self.watch.carry())))
        seen = {"partitions_left": len(flying), "bytes_left": 100, "bytes_copied": copied}
        return self.watch.see(now, targets, replicas, flying, seen)


@pytest.fixture(params=[False, True], ids=["one call", "slices"])
def slices(request):
    return Slices(request.param)


def test_a_move_that_was_cancelled_elsewhere_ends_the_wait(slices):
    targets, cancelled = {T0: [3, 1]}, {T0: [1, 2]}
    assert not slices.see(0, targets, {T0: [3, 1, 2]}, {T0: MOVING}).done
    for now in range(15, int(SETTLE_S) + 15, 15):
        assert not slices.see(now, targets, cancelled, {}).done
    sight = slices.see(15 + SETTLE_S, targets, cancelled, {})
    assert sight.done and sight.elsewhere == [T0] and sight.gone == []
    assert "ended elsewhere: t-0" in slices.watch.text


def test_brokers_that_learn_late_of_the_end_are_waited_for(slices):
    targets = {T0: [3, 1]}
    assert not slices.see(0, targets, {T0: [3, 1, 2]}, {}).done
    assert slices.see(SETTLE_S - 1, targets, {T0: [3, 1]}, {}).done


def test_a_topic_that_is_deleted_is_final_and_the_rest_goes_on(slices):
    targets = {T0: [3, 1], T1: [3, 1]}
    both = {T0: [3, 1, 2], T1: [3, 1, 2]}
    assert not slices.see(0, targets, both, {T0: MOVING, T1: MOVING}).done
    assert not slices.see(10, targets, {T1: both[T1]}, {T1: MOVING}).done
    sight = slices.see(10 + SETTLE_S, targets, {T1: both[T1]}, {T1: MOVING})
    assert not sight.done and sight.gone == [T0] and "no longer exist: t-0" in slices.watch.text
    sight = slices.see(100, targets, {T1: [3, 1]}, {})
    assert sight.done and sight.gone == [T0] and sight.elsewhere == []


def test_a_topic_that_is_missing_for_a_moment_is_not_deleted(slices):
    targets = {T0: [3, 1]}
    slices.see(0, targets, {}, {})
    slices.see(SETTLE_S - 1, targets, {T0: [3, 1, 2]}, {T0: MOVING})
    assert not slices.see(SETTLE_S + 1, targets, {}, {}).done


def test_a_cancelled_partition_needs_no_replicas(slices):
    assert slices.see(0, {T0: None}, {}, {}).done
    assert not slices.see(1, {T0: None}, {T0: [3, 1, 2]}, {T0: MOVING}).done


def test_a_stall_is_seen_over_slices_with_what_was_seen_last(slices):
    targets, replicas = {T0: [3, 1]}, {T0: [3, 1, 2]}
    for now in range(0, 900, 15):
        slices.see(now, targets, replicas, {T0: MOVING}, copied=7)
        assert slices.watch.stalled(now, BOUND_S) is None
    slices.see(905, targets, replicas, {T0: MOVING}, copied=7)
    said = slices.watch.stalled(905, BOUND_S, "no answer")
    assert "for 905 s" in said and "t-0 adds [3]" in said and "the last reading failed: no answer" in said


def test_a_partition_that_goes_on_is_no_stall_after_a_larger_one_ended(slices):
    """The bytes of the larger one are gone from the sum; the smaller one must not have to outgrow it."""
    targets, replicas = {T0: [3, 1], T1: [3, 1]}, {T0: [3, 1, 2], T1: [3, 1, 2]}
    slices.see(0, targets, replicas, {T0: MOVING, T1: MOVING}, copied=1000)
    for now in range(10, 2000, 10):
        slices.see(now, targets, {T0: [3, 1], T1: [3, 1, 2]}, {T1: MOVING}, copied=now // 10)
        assert slices.watch.stalled(now, BOUND_S) is None


@pytest.mark.parametrize("seed", range(200))
def test_slices_see_what_one_call_sees(seed):
    random_ = random.Random(seed)
    partitions = [("t", number) for number in range(3)]
    targets = {partition: [3, 1] for partition in partitions}
    both, now = (Slices(False), Slices(True)), 0.0
    for _reading in range(60):
        now += random_.choice([0.5, 5, 20, 400])
        flying = {partition: MOVING for partition in partitions if random_.random() < 0.4}
        rest = {
            partition: random_.choice([[3, 1], [1, 2], None]) for partition in partitions if partition not in flying
        }
        replicas = {
            **{partition: [3, 1, 2] for partition in flying},
            **{partition: has for partition, has in rest.items() if has},
        }
        copied = random_.randrange(3)
        first, second = (each.see(now, targets, replicas, flying, copied) for each in both)
        assert first == second
        assert both[0].watch.stalled(now, BOUND_S) == both[1].watch.stalled(now, BOUND_S)
        assert both[0].watch.carry() == both[1].watch.carry()
