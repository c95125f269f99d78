# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Re-checks: temporary differences are resolved, lasting ones are proven, undecided ones have a reason."""

from __future__ import annotations

import pytest
from quorumshift_spark import excuses
from quorumshift_spark import normal_form as form
from quorumshift_spark.compare import DIFFER, LEFT_ONLY, MATCH
from quorumshift_spark.excuses import Evidence
from quorumshift_spark.recheck import STABLE, Fence, recheck
from quorumshift_spark.rules import LOGS, SERVED, SINCE, ZOOKEEPER_LOG
from quorumshift_spark.views import Absent, Statement

from tests.unit.spark.realistic import BASELINE, BROKER, LOG, ZOOKEEPER, comparisons

F = 500
KEY = ("topic", '["t"]')


def zk(topic_id, zxid=F):
    return form.topic("t", topic_id, {"zxid": zxid})


def log(topic_id, offset=10):
    return form.topic("t", topic_id, {"offset": offset})


def served(topic_id):
    return form.topic("t", topic_id)


class Views:
    """Views with one side a round; the last one stays."""

    def __init__(self, **sides):
        self.sides = {name.replace("_1", ":1"): list(listed) for name, listed in sides.items()}

    def reread(self):
        def of(name):
            def read(keys):
                assert set(keys) == {KEY}
                sides = self.sides[name]
                return {KEY: sides.pop(0) if len(sides) > 1 else sides[0]}, Statement({}, [])

            return read

        return {name: of(name) for name in self.sides}


def run(views, first, relations, fences, rounds=6, baselines=None, between=()):
    """`between`: of each round, what the log had between its snapshots."""
    chosen = [c for c in comparisons() if c.relation in relations]
    remaining, meanwhile = list(fences), list(between)
    slept, of_log = [], {}

    def advance():
        of_log[KEY] = meanwhile.pop(0) if meanwhile else ()
        return remaining.pop(0) if len(remaining) > 1 else remaining[0]

    rechecked = recheck(
        {KEY: first},
        chosen,
        views.reread(),
        Evidence(baselines),
        advance,
        rounds,
        3.0,
        of_log,
        slept.append,
    )
    assert slept == [3.0] * (len(rechecked.rounds) - 1)
    outcomes = {c.relation: outcome for c, outcome in rechecked.outcomes[KEY].items()}
    return rechecked, outcomes


SAME_SNAPSHOT = [Fence(F, False)]


def test_difference_is_proven_at_once_if_zookeeper_has_not_changed_since_the_fence():
    views = Views(zookeeper=[zk("A", F)], metadata_log=[log("B")])
    rechecked, outcomes = run(views, {ZOOKEEPER: zk("A"), LOG: log("B")}, [ZOOKEEPER_LOG], SAME_SNAPSHOT)
    assert outcomes[ZOOKEEPER_LOG].outcome == DIFFER
    assert not rechecked.undecided
    assert [(r.keys, r.resolved, r.proven) for r in rechecked.rounds] == [(1, 0, 1)]


def test_difference_stays_undecided_without_a_new_snapshot_if_zookeeper_changed_after_the_fence():
    views = Views(zookeeper=[zk("A", F + 1)], metadata_log=[log("B")])
    rechecked, outcomes = run(views, {ZOOKEEPER: zk("A", F + 1), LOG: log("B")}, [ZOOKEEPER_LOG], SAME_SNAPSHOT)
    (((key, _comparison), why),) = rechecked.undecided.items()
    assert key == KEY and "after the snapshot of the log" in why
    assert len(rechecked.rounds) == 6
    assert outcomes[ZOOKEEPER_LOG].outcome == DIFFER


def test_difference_without_a_fence_is_undecided_and_names_the_reason():
    views = Views(zookeeper=[zk("A", 1)], metadata_log=[log("B")])
    fences = [Fence(None, False, "/migration is stalled")]
    rechecked, _outcomes = run(views, {ZOOKEEPER: zk("A", 1), LOG: log("B")}, [ZOOKEEPER_LOG], fences)
    assert "/migration is stalled" in next(iter(rechecked.undecided.values()))


def test_new_snapshot_resolves_a_temporary_difference():
    views = Views(zookeeper=[zk("A", F + 1)], metadata_log=[log("A", 12)])
    fences = [Fence(F + 5, True)]
    rechecked, outcomes = run(views, {ZOOKEEPER: zk("A", F + 1), LOG: log("B")}, [ZOOKEEPER_LOG], fences)
    assert outcomes[ZOOKEEPER_LOG].outcome == MATCH
    assert [(r.resolved, r.proven) for r in rechecked.rounds] == [(1, 0)]


def test_same_value_in_several_snapshots_proves_a_difference_although_zookeeper_changes():
    """A parent's pzxid changes with every other topic, so an absence is never older than the fence."""
    views = Views(zookeeper=[Absent({"zxid": F + n}) for n in range(1, 9)], metadata_log=[log("B")])
    rechecked, outcomes = run(views, {ZOOKEEPER: Absent({}), LOG: log("B")}, [ZOOKEEPER_LOG], [Fence(F, True)])
    assert outcomes[ZOOKEEPER_LOG].differences
    assert not rechecked.undecided
    assert len(rechecked.rounds) == STABLE


def test_no_snapshot_proves_a_difference_while_dual_write_is_behind():
    views = Views(zookeeper=[zk("A", F + 1)], metadata_log=[log("B")])
    behind = Fence(None, True, "/migration is at offset 8 and did not reach 9", passed=False)
    rechecked, _outcomes = run(views, {ZOOKEEPER: zk("A", F + 1), LOG: log("B")}, [ZOOKEEPER_LOG], [behind])
    assert "did not reach 9" in next(iter(rechecked.undecided.values()))
    assert not sum(entry.proven for entry in rechecked.rounds)


def test_entity_deleted_on_both_sides_is_resolved():
    views = Views(zookeeper=[Absent({"zxid": F})], metadata_log=[Absent({"offset": 9})])
    rechecked, outcomes = run(views, {ZOOKEEPER: zk("A"), LOG: log("B")}, [ZOOKEEPER_LOG], [Fence(F, True)])
    assert outcomes[ZOOKEEPER_LOG].outcome is None
    assert rechecked.sides[KEY][ZOOKEEPER] == Absent({"zxid": F})


def test_broker_that_catches_up_is_no_difference():
    views = Views(metadata_log=[log("A")], broker_1=[served("B"), served("A")])
    rechecked, outcomes = run(views, {LOG: log("A"), BROKER: served("B")}, [SERVED], [Fence(None, True)])
    assert outcomes[SERVED].outcome == MATCH
    assert len(rechecked.rounds) == 2


def test_stable_readings_with_new_snapshots_prove_a_stale_broker():
    views = Views(metadata_log=[log("A")], broker_1=[served("B")])
    rechecked, outcomes = run(views, {LOG: log("A"), BROKER: served("B")}, [SERVED], [Fence(None, True)])
    assert outcomes[SERVED].outcome == DIFFER
    assert len(rechecked.rounds) == STABLE and not rechecked.undecided


def test_zookeeper_that_agrees_with_an_old_snapshot_proves_a_stale_broker():
    views = Views(zookeeper=[zk("A", F)], metadata_log=[log("A")], broker_1=[served("B")])
    first = {ZOOKEEPER: zk("A"), LOG: log("A"), BROKER: served("B")}
    rechecked, outcomes = run(views, first, [SERVED, ZOOKEEPER_LOG], SAME_SNAPSHOT)
    assert outcomes[SERVED].outcome == DIFFER and outcomes[ZOOKEEPER_LOG].outcome == MATCH
    assert not rechecked.undecided


def test_broker_compared_with_an_old_snapshot_only_is_undecided():
    views = Views(metadata_log=[log("A")], broker_1=[served("B")])
    rechecked, _outcomes = run(views, {LOG: log("A"), BROKER: served("B")}, [SERVED], [Fence(None, False)])
    assert "after the snapshot of the log" in next(iter(rechecked.undecided.values()))


def test_broker_that_changes_in_every_reading_is_undecided():
    views = Views(metadata_log=[log("A")], broker_1=[served(str(n)) for n in range(9)])
    rechecked, _outcomes = run(views, {LOG: log("A"), BROKER: served("B")}, [SERVED], [Fence(None, True)])
    assert "readings in a row" in next(iter(rechecked.undecided.values()))
    assert len(rechecked.rounds) == 6


NEW_SNAPSHOTS = [Fence(F - 1, True)]


def test_a_side_that_always_changes_is_resolved_by_what_the_log_had_meanwhile():
    values = {"zookeeper": [zk(letter) for letter in "CEGI"], "broker_1": [served(letter) for letter in "CEGI"]}
    views = Views(metadata_log=[log(letter) for letter in "BDFH"], **values)
    first = {ZOOKEEPER: zk("A"), LOG: log("0"), BROKER: served("A")}
    # What was read before the second and the third snapshot was in the log
    between = [(log("X"), log("B")), (log("C"), log("D")), (log("E"), log("F"))]
    rechecked, outcomes = run(views, first, [SERVED, ZOOKEEPER_LOG], NEW_SNAPSHOTS, between=between)
    assert (outcomes[SERVED].outcome, outcomes[ZOOKEEPER_LOG].outcome) == (MATCH, MATCH)
    assert outcomes[ZOOKEEPER_LOG].excuse == excuses.MEANWHILE.name
    assert len(rechecked.rounds) == 3 and not rechecked.undecided and rechecked.rounds[-1].resolved == 1


def test_a_side_that_is_added_and_removed_all_the_time_is_resolved():
    """Its absence was in the log too."""
    views = Views(metadata_log=[log("A", 9 + n) for n in range(6)], broker_1=[Absent({}), served("A"), Absent({})] * 3)
    first = {LOG: log("A"), BROKER: Absent({})}
    between = [(Absent({"offset": 20 + n}), log("A", 9 + n)) for n in range(6)]
    rechecked, outcomes = run(views, first, [SERVED], NEW_SNAPSHOTS, between=between)
    assert outcomes[SERVED].outcome == MATCH and not rechecked.undecided


@pytest.mark.parametrize("between", [(), (log("B", 11), Absent({"offset": 12}))])
def test_what_is_removed_and_added_between_two_snapshots_did_not_stay(between):
    """A broker has it in each reading, no snapshot of the log does: it may be added and removed all the time."""
    absences = [Absent({"offset": 10 + 2 * n}) for n in range(9)]
    views = Views(metadata_log=absences, broker_1=[served("A")])
    rechecked, _outcomes = run(
        views, {LOG: Absent({}), BROKER: served("A")}, [SERVED], NEW_SNAPSHOTS, between=[between] * 9
    )
    assert rechecked.undecided
    views = Views(metadata_log=[Absent({"offset": 10})], broker_1=[served("A")])
    rechecked, _outcomes = run(views, {LOG: Absent({}), BROKER: served("A")}, [SERVED], NEW_SNAPSHOTS)
    assert not rechecked.undecided


def test_a_write_that_zookeeper_rejects_for_good_is_not_excused_by_the_one_before():
    """v1, v2, and then v3 is rejected: that ZooKeeper had v1 and v2 when the log did is no excuse."""
    views = Views(zookeeper=[zk("2", F + 1)], metadata_log=[log("3", 12)])
    first = {ZOOKEEPER: zk("1"), LOG: log("1")}
    between = [(log("1"), log("2"), log("3", 12))]
    rechecked, outcomes = run(views, first, [ZOOKEEPER_LOG], NEW_SNAPSHOTS, between=between)
    assert outcomes[ZOOKEEPER_LOG].outcome == DIFFER and not rechecked.undecided


def test_a_side_that_stays_is_not_excused_by_what_the_log_had():
    """ZooKeeper lost what came after A."""
    views = Views(zookeeper=[zk("A")], metadata_log=[log("B"), log("C"), log("D")])
    first = {ZOOKEEPER: zk("A"), LOG: log("B")}
    between = [(log("A"), log("B"))] * 3
    _rechecked, outcomes = run(views, first, [ZOOKEEPER_LOG], NEW_SNAPSHOTS, between=between)
    assert outcomes[ZOOKEEPER_LOG].outcome == DIFFER


@pytest.mark.parametrize("fence", [Fence(None, False), Fence(None, True, "behind", passed=False)])
def test_nothing_is_resolved_by_an_old_snapshot_or_while_dual_write_is_behind(fence):
    views = Views(metadata_log=[log("A")], broker_1=[served(str(n)) for n in range(9)])
    first = {LOG: log("A"), BROKER: served("B")}
    rechecked, _outcomes = run(views, first, [SERVED], [fence], between=[(log("B"), log("0"), log("1"))] * 6)
    assert rechecked.undecided


def test_a_value_that_the_log_never_had_is_no_match():
    views = Views(metadata_log=[log("A")], broker_1=[served(str(n)) for n in range(9)])
    rechecked, _outcomes = run(
        views, {LOG: log("A"), BROKER: served("B")}, [SERVED], NEW_SNAPSHOTS, between=[(log("A"), log("C"))] * 6
    )
    assert "readings in a row" in next(iter(rechecked.undecided.values()))


def test_newer_absence_explains_a_difference_from_the_baseline():
    baselines = {BASELINE: {"zxid": F}}
    for since, expected in ((F + 1, MATCH), (F, LEFT_ONLY)):
        views = Views(zookeeper=[Absent({"zxid": since})])
        first = {BASELINE: zk("A"), ZOOKEEPER: Absent({})}
        rechecked, outcomes = run(views, first, [SINCE], SAME_SNAPSHOT, baselines=baselines)
        assert outcomes[SINCE].outcome == expected
        assert len(rechecked.rounds) == 1 and not rechecked.undecided


def test_difference_of_two_logs_uses_their_first_reading():
    views = Views(metadata_log=[log("A", 20)])
    first = {LOG: log("A"), f"{LOG}:102": log("B")}
    rechecked, outcomes = run(views, first, [LOGS], [Fence(None, True)])
    assert outcomes[LOGS].outcome == DIFFER
    assert outcomes[LOGS].differences[0].sides == {LOG: '"A"', f"{LOG}:102": '"B"'}
    assert len(rechecked.rounds) == 1


def test_errors_of_reread_are_raised():
    def fails(keys):
        raise RuntimeError("no answer")

    with pytest.raises(RuntimeError, match="no answer"):
        chosen = [c for c in comparisons() if c.relation == ZOOKEEPER_LOG]
        recheck({KEY: {}}, chosen, {ZOOKEEPER: fails}, Evidence(), lambda: Fence(F, False), 2, 0.0, {})


def test_no_difference_takes_no_round():
    assert (
        recheck({}, comparisons(), {}, Evidence(), lambda: pytest.fail("no fence is needed"), 3, 0.0, {}).rounds == []
    )
