# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The excuses: each needs its record, and without the record nothing passes."""

from __future__ import annotations

import pytest
from quorumshift_spark import excuses, rules
from quorumshift_spark import normal_form as form
from quorumshift_spark.compare import DIFFER, LEFT_ONLY, MATCH, SKIPPED
from quorumshift_spark.excuses import Copied, Evidence, unexplained_removals
from quorumshift_spark.recheck import outcomes_of
from quorumshift_spark.rules import SINCE
from quorumshift_spark.views import Absent

from tests.unit.spark.realistic import BASELINE, DIGESTS, LOG, ZOOKEEPER

_KINDS = form.STORED
IN_ZOOKEEPER = rules.Comparison(BASELINE, ZOOKEEPER, SINCE, _KINDS)
IN_LOG = rules.Comparison("baseline:metadata_log", LOG, SINCE, _KINDS)


class Records:
    """What the log shows of its past. `begin`: of the known records, where a checkpoint is newer than the baseline."""

    def __init__(self, last=None, copied=None, begin=None, removed=None):
        self._last, self._copied, self._removed = last, copied, removed or {}
        self.begin = begin

    def history(self, since):
        return None if self.begin is None else self

    def last(self, key, topic_ids, is_there):
        return self._last

    def copied(self):
        return self._copied

    def removed_topics(self, since):
        return self._removed


def since(left, right, state=None, comparison=IN_ZOOKEEPER):
    present = left if not isinstance(left, Absent) else right
    evidence = Evidence({comparison.left: state or {"zxid": 500, "deletions": {"/brokers/topics": 4}}})
    sides = {comparison.left: left, comparison.right: right}
    return outcomes_of((present.kind, present.key), sides, [comparison], evidence)[comparison]


@pytest.mark.parametrize(
    ("state", "at", "explained"),
    [
        ({"zxid": 500}, {"zxid": 501}, True),
        ({"zxid": 500}, {"zxid": 500}, False),
        ({"zxid": 500}, {"offset": 900}, False),
        ({"offset": 900}, {"offset": 900}, True),  # the state's offset is exclusive
        ({"offset": 900}, {"offset": 899}, False),
    ],
)
def test_only_a_later_change_explains_a_difference_from_the_baseline(state, at, explained):
    was = form.config("topic", "t", "retention.ms", "1", DIGESTS)
    comparison = IN_LOG if "offset" in state else IN_ZOOKEEPER
    for now in (form.config("topic", "t", "retention.ms", "2", DIGESTS, at), Absent(at)):
        result = since(was, now, state, comparison)
        assert (result.outcome == MATCH) is explained
        assert bool(result.explained) is explained
    extra = since(Absent({}), was._replace(at=at), state, comparison)
    assert (extra.outcome == MATCH) is explained


def of_topic(topic_id, **fields):
    values = {"leader_epoch": 50, "partition_epoch": 60, "leader": 1, **fields}
    return form.partition("t", 0, {"topic_id": topic_id, **values}, {"zxid": 501})


@pytest.mark.parametrize("field", ["leader_epoch", "partition_epoch"])
def test_no_change_excuses_an_epoch_that_falls(field):
    result = since(of_topic("A"), of_topic("A", leader=2, **{field: 2}))
    assert result.outcome == DIFFER
    assert [difference.field for difference in result.differences] == [field]
    assert since(of_topic("A"), of_topic("A", **{field: None})).outcome == DIFFER
    assert since(of_topic("A"), of_topic("A", **{field: 99})).outcome == MATCH
    assert since(of_topic("A"), of_topic("B", **{field: 0})).outcome == MATCH, "a recreated topic begins anew"


def test_no_change_excuses_producer_ids_that_fall():
    def block(start):
        return form.producer_ids(start + 1000, start, 1, {"zxid": 501})

    assert since(block(500000), block(1000)).outcome == DIFFER
    assert since(block(1000), block(500000)).outcome == MATCH


def test_excused_changes_are_listed_with_both_values():
    result = since(of_topic("A"), of_topic("A", leader=2))
    assert (result.outcome, result.differences) == (MATCH, ())
    assert [change.sides for change in result.changes] == [{"baseline:zookeeper": "1", "zookeeper": "2"}]


@pytest.mark.parametrize(
    ("at", "expected"),
    [
        ({"zxid": 999, "under": "/brokers/topics", "deletions": 4}, LEFT_ONLY),  # another topic was created
        ({"zxid": 999, "under": "/brokers/topics", "deletions": 5}, MATCH),
        ({"zxid": 999, "under": "/not/counted", "deletions": 5}, SKIPPED),
        ({"zxid": 999, "created": 400}, LEFT_ONLY),
        ({"zxid": 999, "created": 501}, MATCH),
        ({"zxid": 501}, MATCH),
        ({"zxid": 500}, LEFT_ONLY),
        ({}, SKIPPED),
    ],
)
def test_only_a_removal_that_a_store_shows_explains_a_disappearance(at, expected):
    result = since(of_topic("A"), Absent(at))
    assert result.outcome == expected
    assert bool(result.differences) is (expected != MATCH)
    assert bool(result.changes) is (expected == MATCH)
    if expected == SKIPPED:
        assert "no record of its removal is left" in result.explained


@pytest.mark.parametrize(("deletions", "unexplained"), [(5, True), (6, False)])
def test_one_deletion_does_not_explain_two_disappearances(deletions, unexplained):
    comparison = IN_ZOOKEEPER
    state = {"zxid": 500, "deletions": {"/brokers/topics": 4}}
    keys = {("topic", '["a"]'): "a", ("topic", '["b"]'): "b", ("partition", '["b",0]'): "b"}
    sides = {
        key: {
            comparison.left: of_topic("A"),
            comparison.right: Absent(
                {"zxid": 999, "under": "/brokers/topics", "child": f"/brokers/topics/{name}", "deletions": deletions}
            ),
        }
        for key, name in keys.items()
    }
    outcomes = {key: {comparison: since(*of.values(), state)} for key, of in sides.items()}
    assert all(of[comparison].outcome == MATCH for of in outcomes.values())
    found = unexplained_removals(outcomes, sides, {comparison.left: state})
    assert set(found) == (set(keys) if unexplained else set())
    assert all(of[comparison].outcome == LEFT_ONLY and of[comparison].differences for of in found.values())


@pytest.mark.parametrize(("deletions", "unexplained"), [(5, True), (6, False)])
def test_a_deletion_for_a_topic_that_was_created_again_explains_no_disappearance(deletions, unexplained):
    comparison, state = IN_ZOOKEEPER, {"zxid": 500, "deletions": {"/brokers/topics": 4}}
    at = {"zxid": 999, "under": "/brokers/topics", "child": "/brokers/topics/b", "deletions": deletions}
    again, new = (form.topic(name, "B", {"zxid": 501}) for name in ("a", "c"))
    pairs = {"a": (form.topic("a", "A"), again), "b": (form.topic("b", "C"), Absent(at)), "c": (Absent({}), new)}
    sides = {("topic", f'["{name}"]'): dict(zip((comparison.left, comparison.right), of)) for name, of in pairs.items()}
    outcomes = {key: {comparison: since(*of.values(), state)} for key, of in sides.items()}
    assert all(of[comparison].outcome == MATCH for of in outcomes.values())
    found = unexplained_removals(outcomes, sides, {comparison.left: state})
    assert [of[comparison].outcome for of in found.values()] == ([DIFFER, LEFT_ONLY] if unexplained else [])
    alone = {key: of for key, of in outcomes.items() if key == ("topic", '["a"]')}
    assert not unexplained_removals(alone, sides, {comparison.left: state})


_CONFIG = form.config("topic", "orders", "retention.ms", "1", DIGESTS)
_NOW = [form.config("topic", "orders", "retention.ms", "2", DIGESTS, {"zxid": 600, "offset": 100}), Absent({})]


@pytest.mark.parametrize("now", _NOW)
@pytest.mark.parametrize(
    ("begin", "last", "expected", "why"),
    [
        (0, 150, MATCH, "offset 150 >= 100"),  # a record shows the change
        (120, 150, MATCH, "offset 150 >= 100"),
        (0, None, None, None),  # all records are known, and none shows it
        (0, 90, None, None),
        (120, None, SKIPPED, "Kafka has deleted the records below 120"),
    ],
)
def test_what_a_newer_checkpoint_sums_up_needs_a_record(now, begin, last, expected, why):
    evidence = Evidence({IN_LOG.left: {"offset": 100}}, log=Records(last, begin=begin))
    found = outcomes_of(_CONFIG[:2], {IN_LOG.left: _CONFIG, LOG: now}, [IN_LOG], evidence)[IN_LOG]
    assert found.outcome == (expected or (LEFT_ONLY if isinstance(now, Absent) else DIFFER))
    assert why in found.explained if why else found.explained is None
    assert found.differences or found.changes
    assert found.excuse == (excuses.LOG_RECORD.name if expected == MATCH else None)


def test_a_value_that_fell_is_found_without_its_records():
    left, right = form.producer_ids(5000), form.producer_ids(1000)
    evidence = Evidence({IN_LOG.left: {"offset": 100}}, log=Records(begin=120))
    found = outcomes_of(left[:2], {IN_LOG.left: left, LOG: right}, [IN_LOG], evidence)[IN_LOG]
    assert found.outcome == DIFFER and found.differences


@pytest.mark.parametrize(("removed", "expected"), [({"A": 150}, MATCH), ({"A": 90}, DIFFER), ({"C": 150}, DIFFER)])
def test_a_topic_with_another_id_needs_the_removal_of_the_old_one(removed, expected):
    """A topic that the log lost may have been created again by a producer."""
    evidence = Evidence({IN_LOG.left: {"offset": 100}}, log=Records(removed=removed))
    sides = {IN_LOG.left: form.topic("t", "A"), LOG: form.topic("t", "B", {"offset": 160})}
    found = outcomes_of(("topic", '["t"]'), sides, [IN_LOG], evidence)[IN_LOG]
    assert found.outcome == expected


# --- under KRaft's controller ------------------------------------------------------------------------

KRAFT_SINCE, EPOCH = 700, 5
KRAFT = {"epoch": EPOCH, "zxid": KRAFT_SINCE, "mirrored": 90}
COPY = Copied(20, EPOCH)
BEFORE = {BASELINE: {"zxid": 500, "deletions": {"/brokers/topics": 4}}}
AFTER = {BASELINE: {"zxid": 800, "deletions": {"/brokers/topics": 4}}, "baseline:metadata_log": {"offset": 60}}


def under_kraft(now, of_log, baselines, controller=None, copied=COPY, **more):
    """Return the outcome of ZooKeeper with its baseline, where ZooKeeper and the log agree."""
    controller = controller or KRAFT
    log = Records(copied=copied, **more)
    evidence = Evidence(baselines, controller, log if copied is not None or more else None)
    key, was = _CONFIG[:2], _CONFIG
    sides = {BASELINE: was, ZOOKEEPER: now, LOG: of_log, "baseline:metadata_log": was}
    return outcomes_of(key, sides, [IN_ZOOKEEPER], evidence)[IN_ZOOKEEPER]


@pytest.mark.parametrize("accepted", [True, False])
def test_what_changed_before_the_copy_without_a_record_is_the_operators_to_accept(accepted):
    key, was, now = _CONFIG[:2], _CONFIG, _value("2", zxid=900)
    sides = {BASELINE: was, ZOOKEEPER: now, LOG: _value("2", offset=10), "baseline:metadata_log": was}
    evidence = Evidence(BEFORE, KRAFT, Records(copied=COPY), accepted)
    found = outcomes_of(key, sides, [IN_ZOOKEEPER], evidence)[IN_ZOOKEEPER]
    assert (found.outcome == SKIPPED) is not accepted and found.outcome != DIFFER, found
    assert ("accepted the copy" if accepted else "quorumshift_accept_unverified_copy=true") in found.explained


class Found:
    """ZooKeeper as the copy found it."""

    def __init__(self, *sides, why=""):
        self._sides, self.why, self.record = sides, why, "zxid 9 in the log of z1"

    def sides(self, key, copied):
        assert copied == COPY
        return self._sides


@pytest.mark.parametrize("accepted", [True, False])
@pytest.mark.parametrize(
    ("sides", "expected"),
    [
        (lambda: [_value("2")], MATCH),
        (lambda: [_value("1"), _value("2")], MATCH),  # a broker that did not know the new controller yet
        (lambda: [_value("1")], DIFFER),
        (lambda: [_value("3"), Absent({})], DIFFER),
        (lambda: [], SKIPPED),
    ],
)
def test_the_source_of_the_copy_decides_about_what_changed_before_the_copy(sides, expected, accepted):
    key, now = _CONFIG[:2], _value("2", zxid=900)
    given = {BASELINE: _CONFIG, ZOOKEEPER: now, LOG: _value("2", offset=10), "baseline:metadata_log": _CONFIG}
    evidence = Evidence(BEFORE, KRAFT, Records(copied=COPY), accepted, Found(*sides(), why="z1: no answer"))
    found = outcomes_of(key, given, [IN_ZOOKEEPER], evidence)[IN_ZOOKEEPER]
    accepts = expected == SKIPPED and accepted
    assert found.outcome == (MATCH if accepts else expected)
    if expected == MATCH:
        assert (
            found.excuse == excuses.SOURCE_OF_COPY.name
            and "when KRaft took over (zxid 9 in the log of z1)" in found.explained
        )
    elif expected == SKIPPED and not accepted:
        assert "would show it, but z1: no answer" in found.explained


@pytest.mark.parametrize(("sides", "expected"), [([Absent({})], MATCH), ([_CONFIG], LEFT_ONLY), ([], SKIPPED)])
def test_a_removal_before_the_copy_needs_that_zookeeper_lacked_it_before_the_copy(sides, expected):
    given = {BASELINE: _CONFIG, ZOOKEEPER: _gone(900), LOG: Absent({})}
    evidence = Evidence(BEFORE, KRAFT, Records(copied=COPY), copy_source=Found(*sides))
    assert outcomes_of(_CONFIG[:2], given, [IN_ZOOKEEPER], evidence)[IN_ZOOKEEPER].outcome == expected


@pytest.mark.parametrize(
    ("was", "expected"), [(Absent({}), MATCH), (form.topic("t", "C"), MATCH), (form.topic("t", "A"), DIFFER)]
)
def test_a_topic_that_was_created_again_after_the_copy_was_removed_before_it(was, expected):
    """The log has no record of the removal. A topic that the copy lost is still there before the copy."""
    of_log = form.topic("t", "B", {"offset": 30})
    given = {BASELINE: form.topic("t", "A"), ZOOKEEPER: form.topic("t", "B", {"zxid": 900}), LOG: of_log}
    evidence = Evidence(BEFORE, KRAFT, Records(copied=COPY), copy_source=Found(was))
    assert outcomes_of(of_log[:2], given, [IN_ZOOKEEPER], evidence)[IN_ZOOKEEPER].outcome == expected


def _value(text, **at):
    return form.config("topic", "orders", "retention.ms", text, DIGESTS, at)


def _gone(zxid, deletions=5):
    return Absent({"zxid": zxid, "under": "/brokers/topics", "child": "/brokers/topics/t", "deletions": deletions})


@pytest.mark.parametrize(
    ("now", "of_log"),
    [(_value("2", zxid=900), _value("2", offset=10)), (_gone(900), Absent({}))],
    ids=["value", "gone"],
)
def test_what_the_copy_lost_and_kafka_purged_is_never_excused_by_zookeeper(now, of_log):
    found = under_kraft(now, of_log, BEFORE)
    assert found.outcome == SKIPPED and "the copy may have lost it" in found.explained and found.differences


@pytest.mark.parametrize(
    ("now", "of_log"),
    [(_value("2", zxid=900), _value("2", offset=21)), (_gone(900), Absent({"offset": 30}))],
    ids=["value", "gone"],
)
def test_a_record_after_the_copy_excuses_a_change_in_zookeeper(now, of_log):
    found = under_kraft(now, of_log, BEFORE)
    assert found.outcome == MATCH and found.excuse == excuses.LOG_RECORD.name


@pytest.mark.parametrize(
    ("controller", "expected"),
    [
        (KRAFT, MATCH),
        ({**KRAFT, "epoch": EPOCH + 1, "zxid": 950}, SKIPPED),  # a later leader owns /controller
        ({"epoch": None, "zxid": None, "mirrored": 90}, SKIPPED),  # an election is going on
    ],
)
@pytest.mark.parametrize("now", [_value("2", zxid=KRAFT_SINCE), _gone(KRAFT_SINCE)], ids=["value", "gone"])
def test_what_changed_before_kraft_owns_controller_is_excused_by_its_zxid(now, controller, expected):
    of_log = Absent({}) if isinstance(now, Absent) else _value("2", offset=10)
    found = under_kraft(now, of_log, BEFORE, controller)
    assert found.outcome == expected
    assert found.excuse == (excuses.BEFORE_KRAFT.name if expected == MATCH else None)


def _partition(leader, epoch, **at):
    return form.partition("t", 0, {"topic_id": "A", "leader": leader, "partition_epoch": epoch, "replicas": [1, 2]}, at)


@pytest.mark.parametrize(
    ("copied", "replicas", "expected"), [(5, [1, 2], MATCH), (4, [1, 2], SKIPPED), (5, [1, 3], SKIPPED)]
)
def test_the_version_that_the_copy_read_shows_that_a_partition_changed_before_it(copied, replicas, expected):
    """Each broker's restart changes all its partitions. An election since the copy hides when KRaft took over."""
    later = {**KRAFT, "epoch": EPOCH + 1, "zxid": 950}
    now = _partition(2, 9, zxid=900)._replace()
    now = now._replace(fields={**now.fields, "replicas": form.canonical(replicas)})
    of_log = _partition(2, copied, offset=10)
    sides = {BASELINE: _partition(1, 4), ZOOKEEPER: now, LOG: of_log}
    found = outcomes_of(now[:2], sides, [IN_ZOOKEEPER], Evidence(BEFORE, later, Records(copied=COPY)))[IN_ZOOKEEPER]
    assert found.outcome == expected
    assert found.excuse == (excuses.COPIED_VERSION.name if expected == MATCH else None)


def test_nothing_changed_in_zookeeper_since_the_baseline_so_it_differs():
    assert under_kraft(_gone(900, deletions=4), Absent({}), BEFORE).outcome == LEFT_ONLY
    assert under_kraft(_value("2", zxid=500), _value("2", offset=10), BEFORE).outcome == DIFFER


def test_a_rollback_without_a_quorum_takes_zookeepers_word_for_changes_and_not_for_removals():
    assert under_kraft(_value("2", zxid=900), Absent({}), AFTER, copied=None).outcome == MATCH
    assert under_kraft(_value("2", zxid=800), Absent({}), AFTER, copied=None).outcome == DIFFER


@pytest.mark.parametrize(
    ("more", "why"), [({"copied": None, "begin": 90}, "the records of the initial copy"), ({"copied": None}, "no log")]
)
def test_without_the_records_of_the_copy_nothing_is_decided(more, why):
    found = under_kraft(_gone(900), Absent({}), BEFORE, **more)
    assert found.outcome == SKIPPED and why in found.explained


def test_after_a_baseline_of_the_log_a_change_without_a_record_differs():
    assert under_kraft(_value("2", zxid=900), _value("2", offset=59), AFTER).outcome == DIFFER
    assert under_kraft(_value("2", zxid=900), _value("2", offset=60), AFTER).outcome == MATCH
    assert under_kraft(_gone(900), Absent({}), AFTER).outcome == LEFT_ONLY
    assert under_kraft(_gone(900), Absent({"offset": 60}), AFTER).outcome == MATCH
    assert under_kraft(_gone(900), Absent({}), AFTER, last=None, begin=80).outcome == SKIPPED


def test_a_baseline_of_a_migration_that_was_taken_back_is_one_of_before_the_copy():
    """Its log is another one, so its offsets show nothing."""
    old = {BASELINE: {"zxid": 500, "deletions": {"/brokers/topics": 4}}, "baseline:metadata_log": {"offset": 9000}}
    assert under_kraft(_value("2", zxid=900), _value("2", offset=30), old).outcome == MATCH
    assert under_kraft(_value("2", zxid=900), _value("2", offset=10), old).outcome == SKIPPED


def test_zookeeper_that_was_behind_at_the_baseline_is_excused_by_the_log_of_then():
    evidence = Evidence(AFTER, KRAFT, Records(copied=COPY))
    now = _value("2", zxid=900)
    sides = {BASELINE: _CONFIG, ZOOKEEPER: now, LOG: _value("2", offset=59), "baseline:metadata_log": _value("2")}
    found = outcomes_of(_CONFIG[:2], sides, [IN_ZOOKEEPER], evidence)[IN_ZOOKEEPER]
    assert found.outcome == MATCH and found.excuse == excuses.BASELINE_LOG.name


@pytest.mark.parametrize(
    ("offset", "expected"), [({}, LEFT_ONLY), ({"offset": 10}, LEFT_ONLY), ({"offset": 59}, MATCH)]
)
def test_what_the_log_lacked_at_the_baseline_needs_its_removal(offset, expected):
    """Something else was deleted below the same znode meanwhile."""
    evidence = Evidence(AFTER, KRAFT, Records(copied=COPY))
    sides = {BASELINE: _CONFIG, ZOOKEEPER: _gone(900), LOG: Absent(offset), "baseline:metadata_log": Absent({})}
    assert outcomes_of(_CONFIG[:2], sides, [IN_ZOOKEEPER], evidence)[IN_ZOOKEEPER].outcome == expected


def test_a_baseline_of_the_log_excuses_nothing_that_did_not_change_in_zookeeper():
    evidence = Evidence(AFTER, KRAFT, Records(copied=COPY))
    now = _value("2", zxid=800)
    sides = {BASELINE: _CONFIG, ZOOKEEPER: now, LOG: _value("2", offset=59), "baseline:metadata_log": _value("2")}
    assert outcomes_of(_CONFIG[:2], sides, [IN_ZOOKEEPER], evidence)[IN_ZOOKEEPER].outcome == DIFFER


def test_what_only_zookeeper_has_is_excused_by_its_own_zxid():
    """After a failover the controller writes states that differ, without a record."""
    was, now = (form.partition("t", 0, {"leader": 1, "partition_epoch": n}, {"zxid": 800 + n}) for n in (1, 2))
    evidence = Evidence(AFTER, KRAFT, Records(copied=COPY))
    found = outcomes_of(was[:2], {BASELINE: was, ZOOKEEPER: now}, [IN_ZOOKEEPER], evidence)[IN_ZOOKEEPER]
    assert found.outcome == MATCH and found.excuse == excuses.ZXID.name


def test_each_excuse_is_in_the_table_with_its_record():
    lines = excuses.markdown()
    assert len(lines) == 2 + len(excuses.EXCUSES) == 2 + len({excuse.name for excuse in excuses.EXCUSES})
    assert all(excuse.record and excuse.without for excuse in excuses.EXCUSES)
