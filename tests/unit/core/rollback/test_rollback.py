# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whether a rollback may begin, what restores ZooKeeper's controller, and what counts as a trace of a migration."""

from __future__ import annotations

import pytest
from ansible_collections.quorumshift.kafka.plugins.module_utils.core.migration import phase
from ansible_collections.quorumshift.kafka.plugins.module_utils.core.rollback import rollback
from ansible_collections.quorumshift.kafka.plugins.module_utils.core.run import run_lock

from tests.unit.core import recorded
from tests.unit.core.migration.test_phase import RECORDED

CLUSTER = "cluster"


def refused(name, target="zk"):
    facts = recorded.facts(name)
    return rollback.refusal(facts, phase.detect(facts), target)


def locked(facts, direction, **more):
    """Return the facts with a run lock of this direction on every host."""
    lock = {"number": 1, "run": "r1", "direction": direction, "user": "u", "host": "h", "since": 0, "closed": True}
    for node in facts["nodes"].values():
        node["run_locks"] = {phase.cluster_id(facts): {**lock, **more}}
    return facts


@pytest.mark.parametrize("name", [name for name, (seen, _blocks) in RECORDED.items() if seen != "unknown"])
def test_every_phase_before_the_end_of_the_migration_has_a_rollback(name):
    state = phase.longest_log(phase.controllers(recorded.facts(name))).get("zk_migration_state")
    last = RECORDED[name][0] == "kraft_native" or state == "POST_MIGRATION"
    assert bool(refused(name)) == last, refused(name)


@pytest.mark.parametrize("name", [name for name, (seen, _blocks) in RECORDED.items() if seen == "unknown"])
def test_contradictory_evidence_has_no_rollback(name):
    assert refused(name)


def test_a_rollback_to_hybrid_needs_brokers_in_kraft_mode():
    assert refused("dual_write", "hybrid") is None and refused("hybrid", "hybrid") is None
    assert "no broker can be rolled back" in refused("controllers_ready", "hybrid")
    assert "a rollback to ZooKeeper has begun" in refused("reverting_controllers_down", "hybrid")


def test_an_unknown_target_is_rejected():
    assert refused("dual_write", "") == "quorumshift_rollback_to is ''. Set it to zk or hybrid (QS-ROLLBACK-001)"


def test_controllers_masked_by_a_migration_need_a_restore():
    facts = locked(recorded.facts("reverting_controllers_down"), run_lock.FORWARD)
    reason = rollback.refusal(facts, phase.detect(facts), "zk")
    assert "not by a rollback" in reason and "restore_zookeeper" in reason
    for direction in (run_lock.BACK, run_lock.RESTORE):
        facts = locked(recorded.facts("reverting_brokers_plain"), direction)
        assert rollback.refusal(facts, phase.detect(facts), "zk") is None


def test_idle_where_nothing_is_to_be_rolled_back():
    def idle(name, target):
        facts = recorded.facts(name)
        return rollback.is_idle(facts, phase.detect(facts), target)

    assert idle("zk", "zk") and idle("hybrid", "hybrid")
    assert not idle("controllers_ready", "zk") and not idle("dual_write", "hybrid")
    assert not idle("reverting_wiped", "zk")


def test_traces_of_a_migration():
    assert rollback.find_traces(recorded.facts("zk")) == []
    traces = "; ".join(rollback.find_traces(recorded.facts("reverting_controllers_down")))
    for text in (
        "/migration exists",
        "/controller is KRaft's",
        "has a formatted log directory",
        "is masked",
        "will start",
    ):
        assert text in traces


def test_to_do_lists_the_steps_that_are_not_done():
    steps = phase.RevertStep

    def left(name, through):
        return rollback.check_steps_done(phase.detect(recorded.facts(name)), through)

    assert left("reverting_brokers_plain", steps.BROKERS_PLAIN) == []
    assert left("reverting_migration_gone", steps.MIGRATION_GONE) == []
    assert left("reverting_migration_gone", steps.BROKERS_PLAIN) == [
        "rollback step not done: brokers plain (QS-GATE-004)"
    ]
    gone = "rollback step not done: /migration gone (QS-GATE-004)"
    assert gone in left("reverting_controller_elected", steps.MIGRATION_GONE)
    assert left("hybrid", steps.BROKERS_PLAIN) == []


def test_an_interrupted_rollback_is_unfinished_until_it_reaches_its_target():
    def target(name, kind="hybrid", **more):
        facts = locked(recorded.facts(name), run_lock.BACK, **more)
        facts["nodes"]["b2"]["node_restart"] = {"kind": kind, "run": "r0", "outcome": "done"}
        return rollback.find_unfinished_target(facts, phase.detect(facts))

    for ended in ({"closed": False}, {"closed": True, "how": "Restart the broker"}):
        assert target("dual_write", target="zk", **ended) == "zk"
        assert target("dual_write", target="hybrid", **ended) == "hybrid"
        assert target("hybrid", target="hybrid", **ended) is None
        assert target("zk", target="zk", **ended) is None
    assert target("dual_write", target="zk", closed=True, how="ok") is None
    assert target("finalized", target="zk", closed=False) is None
    assert target("dual_write", "kraft", target="zk", closed=True, how="Gate before_revert") is None


def test_a_rollback_interrupted_before_its_last_gate_is_unproved():
    def unproved(name, direction=run_lock.BACK, **more):
        facts = locked(recorded.facts(name), direction, **more)
        return rollback.is_unproved(facts, phase.detect(facts), "r2")

    for ended in ({"closed": False}, {"closed": True, "how": "Gate after_revert"}):
        assert unproved("zk", target="zk", **ended)
        assert not unproved("zk", target="zk", run="r2", **ended)
        assert not unproved("reverting_wiped", target="zk", **ended)
        assert not unproved("hybrid", target="hybrid", **ended)
        assert not unproved("zk", run_lock.FORWARD, **ended)
    assert not unproved("zk", target="zk", closed=True, how="ok")
    facts = recorded.facts("zk")
    assert not rollback.is_unproved(facts, phase.detect(facts))


def test_a_fenced_controller_is_a_trace_of_a_migration():
    facts = recorded.facts("zk")
    facts["zookeeper"]["controller_epoch"]["mzxid"] = facts["zookeeper"]["controller"]["czxid"] + 1
    (trace,) = rollback.find_traces(facts)
    assert "can write nothing" in trace and not rollback.is_idle(facts, phase.detect(facts), "zk")


def test_a_kraft_controller_that_runs_or_may_start_blocks_zookeepers_controller():
    assert rollback.check_at_rest(recorded.facts("reverting_controllers_down")) == []
    facts = recorded.facts("reverting_controllers_down")
    host = next(iter(phase.controllers(facts)))
    facts["nodes"][host]["service"]["masked"] = False
    assert "is not masked" in rollback.check_at_rest(facts)[0]
    facts["nodes"][host]["service"]["active"] = True
    assert rollback.check_at_rest(facts)[0].endswith(f"of {host} runs (QS-COPY-004)")
    facts["zookeeper"] = {"reached": False, "error": "no quorum"}
    assert rollback.check_at_rest(facts)[-1] == "ZooKeeper could not be read: no quorum (QS-PHASE-001)"


def stopped(mirrored, *logs):
    """Return facts of stopped controllers, each with its (log end offset, offset of the last change)."""
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
        # before the initial copy ZooKeeper is unchanged
        (-1, [(100, 99), (100, 99), (100, 99)], False),
    ],
)
def test_undrained_where_zookeeper_lacks_a_committed_change(mirrored, logs, lacking):
    reason = rollback.check_drained(stopped(mirrored, *logs))
    assert bool(reason) == lacking, reason


def test_undrained_where_a_log_or_the_offset_is_unknown():
    facts = stopped(99, (100, 99), (100, 99), (100, 99))
    next(iter(phase.controllers(facts).values()))["metadata_log"] = {"error": "torn"}
    assert "could not be read" in rollback.check_drained(facts)
    facts = stopped(None, (100, 99), (100, 99), (100, 99))
    assert "/migration does not exist" in rollback.check_drained(facts)
    assert rollback.check_drained(recorded.facts("reverting_controller_elected")) is None


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
def test_the_controller_epoch_rises_above_that_of_every_partition_and_log(epoch, highest, raft, wanted):
    assert rollback.restore_zk_controller(migration_znodes(epoch), highest, raft).controller_epoch == wanted


def test_restore_of_the_controller_skips_what_is_done():
    assert rollback.restore_zk_controller(migration_znodes(60), 42, [42]) == (None, True, True)
    assert rollback.restore_zk_controller(migration_znodes(60, ephemeral=True, migration=False), 42, [42]) == (
        None,
        False,
        False,
    )
    assert rollback.restore_zk_controller(migration_znodes(60, exists=False), 42, [42]) == (None, False, True)


def test_an_elected_controller_that_can_write_is_left_alone():
    """It wrote its own epoch into the states, so none is above it."""
    assert rollback.restore_zk_controller(migration_znodes(44, ephemeral=True), 44, [42]) == (None, False, True)
    assert rollback.restore_zk_controller(migration_znodes(44, ephemeral=True), None, [90]) == (None, False, True)


def test_an_elected_controller_that_cannot_write_is_replaced():
    assert rollback.restore_zk_controller(migration_znodes(45, ephemeral=True, since=3), 44, [42]) == (None, True, True)
    assert rollback.restore_zk_controller(migration_znodes(44, ephemeral=True, since=3), 44, [42]) == (45, True, True)
    assert rollback.restore_zk_controller(migration_znodes(30, ephemeral=True), 44, [42]) == (45, True, True)


def test_versions_behind_the_partition_epochs():
    versions = {"0": 4, "1": 7, "2": 9, "3": None, "4": 2}
    partitions = {number: {"version": version} for number, version in versions.items()}
    topics = {"topics": {"orders": {"topic_id": "id", "partitions": partitions}, "made.since": {"partitions": {}}}}
    epochs = {"orders": {"topic_id": "id", "epochs": {"0": 6, "1": 7, "2": 8, "3": 5}}}
    assert rollback.find_versions_behind(topics, epochs) == {"/brokers/topics/orders/partitions/0/state": 6}
    epochs["orders"]["topic_id"] = "of a deleted topic"
    assert rollback.find_versions_behind(topics, epochs) == {} == rollback.find_versions_behind(topics, {})


def test_a_rollback_needs_zookeeper():
    facts = recorded.facts("dual_write")
    facts["zookeeper"] = {"reached": False, "error": "z1:2181: connection refused"}
    reason = rollback.explain_impossible(facts, phase.detect(facts), "zk")
    assert reason.startswith("ZooKeeper could not be read: z1:2181: connection refused. A rollback needs ZooKeeper")
