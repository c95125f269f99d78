# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Plans: racks are kept, nothing goes to a cordoned or full broker, and no replica moves that need not."""

from __future__ import annotations

import random

import pytest
from ansible_collections.quorumshift.kafka.plugins.module_utils.core.admin import reassign_plan
from ansible_collections.quorumshift.kafka.plugins.module_utils.core.admin.reassign_plan import (
    Cluster,
    Directory,
    Space,
    find_space,
)
from ansible_collections.quorumshift.kafka.plugins.module_utils.core.admin.reassignment import ReassignmentError

T0, T1, T2 = ("t", 0), ("t", 1), ("t", 2)
RACKS = {1: "a", 2: "a", 3: "b", 4: "b", 5: "c"}


def drain(leaving, assignments, racks=RACKS, **more):
    return reassign_plan.drain(leaving, Cluster(assignments, racks, **more), assignments)


def add(broker, assignments, racks=RACKS, **more):
    return reassign_plan.add(broker, Cluster(assignments, racks, **more), assignments)


def change(factor, assignments, racks=RACKS, **more):
    return reassign_plan.change_replicas(factor, Cluster(assignments, racks, **more), assignments)


def test_a_drain_goes_to_a_rack_that_the_others_are_not_on():
    assert drain([1], {T0: [1, 3], T1: [3, 2]}) == {T0: [5, 3]}


def test_a_drain_of_what_does_not_exist_is_refused():
    cluster = Cluster({T0: [1, 3], T1: [6, 3]}, RACKS)
    with pytest.raises(ReassignmentError, match="broker 33 is not alive and has no replicas"):
        reassign_plan.find_leaving([33], [], cluster)
    with pytest.raises(ReassignmentError, match=r"no live broker is in rack 'd'. Racks are \['a', 'b', 'c'\]"):
        reassign_plan.find_leaving([], ["d"], cluster)
    assert reassign_plan.find_leaving([6], ["b"], cluster) == {3, 4, 6}, "6 is dead and has replicas"
    assert drain([6], {T0: [6, 3]}) == {T0: [1, 3]}
    assert drain([5], {T0: [1, 3]}) == {}


def test_a_drain_without_a_broker_left_is_refused():
    with pytest.raises(ReassignmentError, match="2 live brokers that may get replicas"):
        drain([1], {T0: [1, 2, 3]}, {1: None, 2: None, 3: None})
    with pytest.raises(ReassignmentError, match="broker 5 being cordoned"):
        drain([3, 4], {T0: [3, 1, 2]}, cordoned=[5])


def test_two_replicas_of_a_partition_leave_two_brokers_at_once():
    assert drain([1, 3], {T0: [1, 3, 5]}) == {T0: [2, 4, 5]}, "each keeps its place, and its rack where it can"


def test_the_bytes_decide_where_counts_are_equal():
    assignments, racks = {T0: [1], T1: [2], T2: [3]}, {1: None, 2: None, 3: None}
    assert drain([1], assignments, racks, sizes={T0: 5, T1: 900, T2: 10}) == {T0: [3]}
    assert drain([1], assignments, racks, sizes={T0: 5, T1: 10, T2: 900}) == {T0: [2]}


def test_a_full_broker_gets_nothing_and_a_full_cluster_is_refused():
    assignments, racks = {T0: [1], T1: [1]}, {1: None, 2: None, 3: None}
    sizes = {T0: 600, T1: 600}
    one_full = {2: Space(1, 9999), 3: Space(2000, 9999)}
    assert drain([1], assignments, racks, sizes=sizes, space=one_full) == {T0: [3], T1: [3]}
    with pytest.raises(ReassignmentError, match=r"t-1 has 600 bytes, .* \(broker 2: 1 bytes, broker 3: 99 bytes\)"):
        drain([1], assignments, racks, sizes=sizes, space={2: Space(1, 9999), 3: Space(699, 9999)})
    assert drain([1], assignments, racks, sizes=sizes) != {}, "a broker that does not say it is no obstacle"


def test_a_replica_must_fit_one_directory():
    assignments, sizes = {T0: [1]}, {T0: 600}
    split = Space(1000, 4000, (500, 500))
    with pytest.raises(
        ReassignmentError, match=r"in one directory, .*\(broker 2: 1000 bytes \(500 bytes \+ 500 bytes fre"
    ):
        drain([1], assignments, {1: None, 2: None}, sizes=sizes, space={2: split})
    cluster = Cluster(assignments, {1: None, 2: None}, sizes=sizes, space={2: split})
    with pytest.raises(
        ReassignmentError, match=r"t-0 has 600 bytes, and no directory of broker 2 has that much free: 1"
    ):
        reassign_plan.require_space({T0: [2]}, cluster)
    assert drain([1], assignments, {1: None, 2: None}, sizes=sizes, space={2: Space(1000, 4000, (400, 600))})


@pytest.mark.parametrize(
    ("directories", "space"),
    [
        ([], None),
        ([Directory(70, 100, 10)], Space(70, 100, (70,))),
        ([Directory(70_000, 100_000, 9), Directory(70_000, 100_000, 9)], Space(70_000, 100_000, (70_000,))),
        # on a busy broker the second reading sees more written, or less after a deletion
        ([Directory(70_050, 100_000, 9), Directory(70_000, 100_000, 9)], Space(70_000, 100_000, (70_000,))),
        ([Directory(70_200, 100_000, 9), Directory(70_000, 100_000, 9)], Space(140_200, 200_000, (70_000, 70_200))),
        ([Directory(70_000, 100_000, 9), Directory(70_000, 200_000, 9)], Space(140_000, 300_000, (70_000, 70_000))),
        # 30,000 bytes are used, and they hold more: these are two disks
        (
            [Directory(70_000, 100_000, 20_000), Directory(70_000, 100_000, 20_000)],
            Space(140_000, 200_000, (70_000, 70_000)),
        ),
        # two disks with two directories each, all alike
        ([Directory(70_000, 100_000, 15_000)] * 4, Space(140_000, 200_000, (70_000, 70_000))),
    ],
)
def test_directories_of_one_file_system_count_once(directories, space):
    assert find_space(directories) == space


def test_a_plan_of_a_file_must_fit_too():
    cluster = Cluster({T0: [1], T1: [1]}, {1: None, 2: None}, sizes={T0: 600, T1: 600}, space={2: Space(1000, 4000)})
    reassign_plan.require_space({T0: [2]}, cluster)
    with pytest.raises(ReassignmentError, match=r"broker 2 would get 1\.2 KiB in 2 replicas, and has 1000 bytes free"):
        reassign_plan.require_space({T0: [2], T1: [1, 2]}, cluster)
    found = reassign_plan.summarize({T0: [2]}, cluster)
    assert found["warnings"] == [] and found["brokers"] == [{"broker": 2, "replicas": 1, "bytes": 600, "free": 1000}]
    little = cluster._replace(space={2: Space(700, 4000)})
    assert reassign_plan.summarize({T0: [2]}, little)["warnings"] == ["broker 2 would have 100 bytes of 3.9 KiB free"]
    assert reassign_plan.summarize({T0: [2]}, Cluster({T0: [1]}, RACKS))["bytes"] is None


def test_the_least_loaded_rack_gets_its_share():
    assignments = {("t", number): [1 + number % 2, 3] for number in range(10)}
    broker, moved = add(None, assignments)
    assert broker == 5 and len(moved) == 20 // 5
    with pytest.raises(ReassignmentError, match="not alive"):
        add(9, assignments)
    with pytest.raises(ReassignmentError, match="broker 5 is cordoned"):
        add(5, assignments, cordoned=[5])
    assert add(None, assignments, cordoned=[5])[0] != 5


def test_a_share_is_made_of_the_smallest_replicas():
    assignments = {("t", number): [1 + number % 2] for number in range(12)}
    sizes = {("t", number): 1000 * (12 - number) for number in range(12)}
    _broker, moved = add(3, assignments, {1: None, 2: None, 3: None}, sizes=sizes)
    assert sorted(moved) == [("t", number) for number in range(8, 12)]


def test_more_replicas_come_at_the_end_and_on_new_racks():
    moved = change(3, {T0: [1, 3], T1: [5, 1, 3], T2: [2]})
    assert set(moved) == {T0, T2} and moved[T0] == [1, 3, 5]
    assert moved[T2][0] == 2 and {RACKS[broker] for broker in moved[T2]} == {"a", "b", "c"}
    with pytest.raises(ReassignmentError, match="for 6 replicas the cluster has 5 live brokers"):
        change(6, {T0: [1, 3]})


@pytest.mark.parametrize(
    ("replicas", "more", "left"),
    [
        ([1, 2, 3], {}, [1, 3]),  # 2 shares the rack of the leader
        ([1, 3, 9], {}, [1, 3]),  # 9 is dead
        ([1, 3, 5], {"cordoned": [3]}, [1, 5]),
        ([1, 3, 5], {"in_sync": {T0: [1, 5]}}, [1, 5]),
        ([9, 1, 2], {}, [1, 2]),  # the preferred leader is dead
        ([1, 3, 5], {"in_sync": {T0: [3, 5]}}, [3, 5]),
    ],
)
def test_fewer_replicas_lose_what_is_worth_least(replicas, more, left):
    assert change(2, {T0: replicas}, **more) == {T0: left}


def test_a_filter_that_matches_nothing_is_refused():
    assignments = {T0: [1], ("pay.a", 0): [1], ("pay.b", 0): [2]}
    assert set(reassign_plan.select_topics(["pay.*"], assignments)) == {("pay.a", 0), ("pay.b", 0)}
    assert set(reassign_plan.select_topics([], assignments)) == set(assignments)
    with pytest.raises(ReassignmentError, match="no topic matches 'pay'"):
        reassign_plan.select_topics(["t", "pay"], assignments)


def cluster_of(seed):
    """Return a small cluster, {broker: rack} and {partition: replicas}, the same for the same seed."""
    choose = random.Random(seed)
    racks = {1 + index: choose.choice(["a", "b", "c", None]) for index in range(choose.randint(2, 6))}
    sizes = [choose.randint(1, len(racks) - 1) for dummy in range(choose.randint(0, 12))]
    return racks, {("t", number): choose.sample(sorted(racks), size) for number, size in enumerate(sizes)}


@pytest.mark.parametrize("seed", range(200))
def test_plans_keep_racks_and_move_one_replica_of_a_partition(seed):
    racks, assignments = cluster_of(seed)
    broker = 1 + seed % len(racks)

    def spread(replicas):
        return len({racks[replica] or replica for replica in replicas})

    drained = drain([broker], assignments, racks)
    assert set(drained) == {partition for partition, replicas in assignments.items() if broker in replicas}
    _broker, added = add(broker, assignments, racks)
    for moved in (drained, added):
        for partition, replicas in moved.items():
            before = assignments[partition]
            assert len(set(replicas)) == len(before) and len(set(replicas) - set(before)) == 1
            assert sum(1 for old, new in zip(before, replicas) if old != new) == 1
    for partition, replicas in drained.items():
        best = max(
            spread([other if replica == broker else replica for replica in assignments[partition]])
            for other in racks
            if other not in assignments[partition]
        )
        assert broker not in replicas and (spread(replicas) == best or None in racks.values())
    assert all(spread(replicas) >= spread(assignments[partition]) for partition, replicas in added.items())


@pytest.mark.parametrize("seed", range(200))
def test_several_leave_at_once_with_as_few_copies_as_one_by_one(seed):
    racks, assignments = cluster_of(seed)
    choose = random.Random(seed)
    leaving = set(choose.sample(sorted(racks), min(2, len(racks) - 1)))
    cordoned = set(choose.sample(sorted(racks), 1)) - leaving
    try:
        moved = drain(leaving, assignments, racks, cordoned=cordoned)
    except ReassignmentError as refused:
        # Only where a partition's own brokers leave too few others that may get a replica
        short = [
            partition
            for partition, replicas in assignments.items()
            if len(leaving & set(replicas)) > len(set(racks) - leaving - cordoned - set(replicas))
        ]
        assert short, refused
        return
    for partition, replicas in assignments.items():
        after = moved.get(partition, replicas)
        assert len(set(after)) == len(replicas) and not leaving & set(after)
        new = set(after) - set(replicas)
        assert len(new) == len(leaving & set(replicas)) and not new & cordoned, "no other replica moves"
        assert all(old == got or old in leaving for old, got in zip(replicas, after)), "each stays at its place"


@pytest.mark.parametrize("seed", range(200))
def test_another_number_of_replicas_keeps_what_may_stay(seed):
    racks, assignments = cluster_of(seed)
    choose = random.Random(seed)
    factor, dead = choose.randint(1, len(racks)), choose.randint(1, len(racks))
    alive = {broker: rack for broker, rack in racks.items() if broker != dead}
    try:
        moved = change(factor, assignments, alive)
    except ReassignmentError:
        assert factor > len(alive)
        return
    for partition, replicas in assignments.items():
        after = moved.get(partition, replicas)
        assert len(set(after)) == factor
        if factor > len(replicas):
            assert after[: len(replicas)] == replicas and dead not in after[len(replicas) :]
        else:
            assert [broker for broker in replicas if broker in after] == after
            assert dead not in after or replicas == [dead] or len(replicas) == factor
