# Copyright: (c) 2026, Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whether a migration may be taken back, what ZooKeeper is told then, and what counts as a trace of it."""

from __future__ import annotations

import pytest
from ansible_collections.quorumshift.kafka.plugins.module_utils.core import phase, rollback, run_lock

from tests.unit.core import recorded
from tests.unit.core.test_phase import RECORDED

CLUSTER = "cluster"


def refused(name, target="zk"):
    facts = recorded.facts(name)
    return rollback.refused(facts, phase.detect(facts), target)


def locked(facts, direction, **more):
    """The facts with a claim of this direction on every host."""
    reported = {"number": 1, "run": "r1", "direction": direction, "user": "u", "host": "h", "since": 0, "closed": True}
    for node in facts["nodes"].values():
        node["run_locks"] = {phase.cluster_id(facts): {**reported, **more}}
    return facts


@pytest.mark.parametrize("name", [name for name, reported in RECORDED.items() if reported[0] != "unknown"])
def test_every_phase_short_of_the_end_has_its_way_back(name):
    state = phase.longest_log(phase.controllers(recorded.facts(name))).get("zk_migration_state")
    last = RECORDED[name][0] == "kraft_native" or state == "POST_MIGRATION"
    assert bool(refused(name)) == last, refused(name)


@pytest.mark.parametrize("name", [name for name, reported in RECORDED.items() if reported[0] == "unknown"])
def test_contradicting_evidence_has_none(name):
    assert refused(name)


def test_back_to_hybrid_brokers_takes_brokers_in_kraft_mode():
    assert refused("dual_write", "hybrid") is None and refused("hybrid", "hybrid") is None
    assert "no broker to take back" in refused("controllers_ready", "hybrid")
    assert "the way back to ZooKeeper" in refused("reverting_controllers_down", "hybrid")


def test_another_target_is_refused():
    assert refused("dual_write", "") == "quorumshift_rollback_to is '': it takes zk or hybrid"


def test_controllers_that_a_migration_masked_are_left_to_the_restore():
    facts = locked(recorded.facts("reverting_controllers_down"), run_lock.FORWARD)
    reported = rollback.refused(facts, phase.detect(facts), "zk")
    assert "not by a rollback" in reported and "restore_zookeeper" in reported
    for direction in (run_lock.BACK, run_lock.RESTORE):
        facts = locked(recorded.facts("reverting_brokers_plain"), direction)
        assert rollback.refused(facts, phase.detect(facts), "zk") is None


def test_nothing_to_do():
    def idle(name, target):
        facts = recorded.facts(name)
        return rollback.idle(facts, phase.detect(facts), target)

    assert idle("zk", "zk") and idle("hybrid", "hybrid")
    assert not idle("controllers_ready", "zk") and not idle("dual_write", "hybrid")
    assert not idle("reverting_wiped", "zk")


def test_what_is_left_is_told():
    assert rollback.traces(recorded.facts("zk")) == []
    reported = "; ".join(rollback.traces(recorded.facts("reverting_controllers_down")))
    for text in (
        "/migration exists",
        "/controller is KRaft's",
        "holds a log of this quorum",
        "is masked",
        "will start",
    ):
        assert text in reported


def test_steps_that_are_not_done_yet():
    steps = phase.RevertStep

    def left(name, through):
        return rollback.to_do(phase.detect(recorded.facts(name)), through)

    assert left("reverting_brokers_plain", steps.BROKERS_PLAIN) == []
    assert left("reverting_migration_gone", steps.MIGRATION_GONE) == []
    assert left("reverting_migration_gone", steps.BROKERS_PLAIN) == ["not yet: brokers plain"]
    assert "not yet: /migration gone" in left("reverting_controller_elected", steps.MIGRATION_GONE)
    assert left("hybrid", steps.BROKERS_PLAIN) == []


def test_a_rollback_that_was_cut_off_is_under_way_until_it_is_there():
    def target(name, kind="hybrid", **more):
        facts = locked(recorded.facts(name), run_lock.BACK, **more)
        facts["nodes"]["b2"]["node_restart"] = {"kind": kind, "run": "r0", "outcome": "done"}
        return rollback.under_way(facts, phase.detect(facts))

    for ended in ({"closed": False}, {"closed": True, "how": "Take the broker's turn"}):
        assert target("dual_write", target="zk", **ended) == "zk"
        assert target("dual_write", target="hybrid", **ended) == "hybrid"
        assert target("hybrid", target="hybrid", **ended) is None
        assert target("zk", target="zk", **ended) is None
    assert target("dual_write", target="zk", closed=True, how="ok") is None
    assert target("finalized", target="zk", closed=False) is None
    assert target("dual_write", "kraft", target="zk", closed=True, how="Gate before_revert") is None


def test_a_rollback_that_was_cut_off_before_its_last_gate_is_to_be_proved():
    def unproved(name, direction=run_lock.BACK, **more):
        facts = locked(recorded.facts(name), direction, **more)
        return rollback.unproved(facts, phase.detect(facts), "r2")

    for ended in ({"closed": False}, {"closed": True, "how": "Gate after_revert"}):
        assert unproved("zk", target="zk", **ended)
        assert not unproved("zk", target="zk", run="r2", **ended)
        assert not unproved("reverting_wiped", target="zk", **ended)
        assert not unproved("hybrid", target="hybrid", **ended)
        assert not unproved("zk", run_lock.FORWARD, **ended)
    assert not unproved("zk", target="zk", closed=True, how="ok")
    facts = recorded.facts("zk")
    assert not rollback.unproved(facts, phase.detect(facts))


def test_a_controller_that_can_write_nothing_is_left_of_a_migration():
    facts = recorded.facts("zk")
    facts["zookeeper"]["controller_epoch"]["mzxid"] = facts["zookeeper"]["controller"]["czxid"] + 1
    (reported,) = rollback.traces(facts)
    assert "can write nothing" in reported and not rollback.idle(facts, phase.detect(facts), "zk")


def test_a_controller_that_runs_or_may_start_keeps_zookeeper_from_being_handed_back():
    assert rollback.not_at_rest(recorded.facts("reverting_controllers_down")) == []
    facts = recorded.facts("reverting_controllers_down")
    host = next(iter(phase.controllers(facts)))
    facts["nodes"][host]["service"]["masked"] = False
    assert "is not masked" in rollback.not_at_rest(facts)[0]
    facts["nodes"][host]["service"]["active"] = True
    assert rollback.not_at_rest(facts)[0].endswith(f"of {host} runs")
    facts["zookeeper"] = {"reached": False, "error": "no quorum"}
    assert rollback.not_at_rest(facts)[-1] == "ZooKeeper could not be read: no quorum"


def stopped(mirrored, *logs):
    """Controllers at rest, with (log end offset, offset of the last change) each."""
    facts = recorded.facts("reverting_controllers_down")
    facts["zookeeper"]["migration"]["kraft_metadata_offset"] = mirrored
    for node, (end, change) in zip(phase.controllers(facts).values(), logs):
        node["metadata_log"] = {"log_end_offset": end, "last_change_offset": change}
    return facts


@pytest.mark.parametrize(
    ("mirrored", "logs", "lacking"),
    [
        (99, [(100, 99), (100, 99), (100, 99)], False),
        # NoOps after the last change
        (95, [(100, 95), (100, 95), (100, 95)], False),
        (94, [(100, 95), (100, 95), (100, 95)], True),
        # what the leader alone has is not committed
        (90, [(100, 97), (91, 90), (91, 90)], False),
        # two of three have it
        (90, [(100, 97), (98, 97), (91, 90)], True),
        # an empty log
        (90, [(0, None), (0, None), (0, None)], False),
        # nothing was copied yet: ZooKeeper is as it was
        (-1, [(100, 99), (100, 99), (100, 99)], False),
    ],
)
def test_changes_that_zookeeper_lacks(mirrored, logs, lacking):
    reported = rollback.undrained(stopped(mirrored, *logs))
    assert bool(reported) == lacking, reported


def test_what_cannot_be_told_keeps_zookeeper_from_being_handed_back():
    facts = stopped(99, (100, 99), (100, 99), (100, 99))
    next(iter(phase.controllers(facts).values()))["metadata_log"] = {"error": "torn"}
    assert "could not be read" in rollback.undrained(facts)
    facts = stopped(None, (100, 99), (100, 99), (100, 99))
    assert "/migration does not exist" in rollback.undrained(facts)
    assert rollback.undrained(recorded.facts("reverting_controller_elected")) is None


def migration_znodes(epoch, exists=True, ephemeral=False, migration=True, since=0):
    return {
        "controller": {"exists": exists, "ephemeral": ephemeral, "czxid": 700},
        "controller_epoch": {"exists": True, "value": epoch, "mzxid": 700 + since},
        "migration": {"exists": migration},
    }


@pytest.mark.parametrize(
    ("epoch", "highest", "raft", "wanted"),
    [
        (60, 42, [42, 42], None),
        (12, 42, [42, None], 43),
        (12, 5, [41, 42], 43),
        (43, 42, [42], None),
        (42, 42, [42], 43),
        (7, None, [], None),
    ],
)
def test_the_controller_epoch_rises_above_that_of_every_partition(epoch, highest, raft, wanted):
    assert rollback.restore_zk_controller(migration_znodes(epoch), highest, raft).controller_epoch == wanted


def test_what_is_done_already_is_not_done_again():
    assert rollback.restore_zk_controller(migration_znodes(60), 42, [42]) == (None, True, True)
    assert rollback.restore_zk_controller(migration_znodes(60, ephemeral=True, migration=False), 42, [42]) == (
        None,
        False,
        False,
    )
    assert rollback.restore_zk_controller(migration_znodes(60, exists=False), 42, [42]) == (None, False, True)


def test_a_controller_that_was_elected_is_left_alone_while_it_can_write():
    """Its own states carry its epoch, by which no state is above it: the epoch was never to be raised over that."""
    assert rollback.restore_zk_controller(migration_znodes(44, ephemeral=True), 44, [42]) == (None, False, True)
    assert rollback.restore_zk_controller(migration_znodes(44, ephemeral=True), None, [90]) == (None, False, True)


def test_another_one_is_elected_in_place_of_one_that_cannot():
    assert rollback.restore_zk_controller(migration_znodes(45, ephemeral=True, since=3), 44, [42]) == (None, True, True)
    assert rollback.restore_zk_controller(migration_znodes(44, ephemeral=True, since=3), 44, [42]) == (45, True, True)
    assert rollback.restore_zk_controller(migration_znodes(30, ephemeral=True), 44, [42]) == (45, True, True)


def test_versions_that_brokers_would_pass_over():
    versions = {"0": 4, "1": 7, "2": 9, "3": None, "4": 2}
    partitions = {number: {"version": version} for number, version in versions.items()}
    topics = {"topics": {"orders": {"topic_id": "id", "partitions": partitions}, "made.since": {"partitions": {}}}}
    epochs = {"orders": {"topic_id": "id", "epochs": {"0": 6, "1": 7, "2": 8, "3": 5}}}
    assert rollback.versions_behind(topics, epochs) == {"/brokers/topics/orders/partitions/0/state": 6}
    epochs["orders"]["topic_id"] = "of one that was deleted"
    assert rollback.versions_behind(topics, epochs) == {} == rollback.versions_behind(topics, {})


def test_there_is_no_way_back_to_a_zookeeper_that_is_down():
    facts = recorded.facts("dual_write")
    facts["zookeeper"] = {"reached": False, "error": "z1:2181: connection refused"}
    reported = rollback.no_way(facts, phase.detect(facts), "zk")
    assert reported.startswith(
        "ZooKeeper could not be read: z1:2181: connection refused. There is no way back but to it"
    )
