# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The screen of `status`, from facts of real runs."""

from __future__ import annotations

import pytest
from ansible_collections.quorumshift.kafka.plugins.module_utils.core.migration import phase
from ansible_collections.quorumshift.kafka.plugins.module_utils.core.rollback import rollback_readiness
from ansible_collections.quorumshift.kafka.plugins.module_utils.core.status import feature_screen, screen

from tests.unit.core import recorded
from tests.unit.core.lost_log import lost_log
from tests.unit.core.migration.test_phase import RECORDED

COMMAND = "ansible-playbook migrate.yml"


def state(facts, soak_s=0.0):
    """Return what migration_state returns."""
    detected = phase.detect(facts)
    return {
        "phase": detected.phase,
        "cluster_id": phase.cluster_id(facts),
        "blocks": [block._asdict() for block in detected.blocks],
        "steps": detected.steps,
        "next": screen.next_step(facts, detected, soak_s)._asdict(),
        "rollback_readiness": rollback_readiness.detect(facts, detected)._asdict(),
        "nodes": screen.node_lines(facts),
        "quorum": facts["quorum"],
        "features": feature_screen.summary(facts),
        "mirrored_offset": (facts["zookeeper"].get("migration") or {}).get("kraft_metadata_offset"),
    }


def shown(facts, passed=(), command=COMMAND):
    return "\n".join(screen.render(state(facts), list(passed), command))


@pytest.mark.parametrize("name", RECORDED)
def test_every_recorded_state_fits_one_screen(name):
    facts = recorded.facts(name)
    lines = shown(facts).splitlines()
    assert f": {RECORDED[name][0]}" in lines[0]
    assert sum(len(line) > 120 for line in lines) <= len(phase.detect(facts).blocks) + 2
    assert len(lines) <= 40
    for host in facts["nodes"]:
        assert sum(line.strip().startswith(f"{host} ") for line in lines) == 1
    assert "None" not in shown(facts).replace("zk_migration_state is None", "")


@pytest.mark.parametrize("name", RECORDED)
def test_every_phase_has_a_next_step(name):
    facts = recorded.facts(name)
    step = screen.next_step(facts, phase.detect(facts), 0)
    assert step.text
    others = {"finalized": None, "kraft_native": None, "unknown": None, "reverting": "rollback"}
    starts = name == "finalized_one_controller_down"
    assert step.playbook == ("migrate" if starts else others.get(RECORDED[name][0], "migrate"))
    assert ("bring back the controllers that are down" in step.text) == starts
    assert step.token == (RECORDED[name][0] in ("dual_write", "finalizing"))


def soaking(seconds_ago):
    facts = recorded.facts("dual_write")
    for node in facts["nodes"].values():
        node["service"]["started_at"] = facts["time"] - seconds_ago
    return facts


@pytest.mark.parametrize(
    ("ago", "soak_s", "text"),
    [
        (60, 86400, "(23 h 59 min to go), then finalize"),
        (86400 - 61, 86400, "(1 min 1 s to go), then finalize"),
        (86395, 86400, "(5 s to go), then finalize"),
        (86400, 86400, "finalize: the soak is over. It cannot be undone"),
        (5, 0, "finalize: the soak is over. It cannot be undone"),
    ],
)
def test_next_step_during_and_after_the_soak(ago, soak_s, text):
    facts = soaking(ago)
    step = screen.next_step(facts, phase.detect(facts), soak_s)
    assert step.text.endswith(text) and step.watch and step.token


@pytest.mark.parametrize(
    ("name", "host", "expected"),
    [
        ("zk", "b1", "online"),
        ("zk", "c1", "offline"),
        ("zk_broker_down", "b2", "offline"),
        ("hybrid", "b3", "online"),
        ("dual_write", "c3", "online"),
        ("dual_write_one_controller_down", "c2", "offline"),
    ],
)
def test_state_of_a_node(name, host, expected):
    assert screen.node_lines(recorded.facts(name))[host]["state"] == expected


def test_brokers_that_join_are_counted_and_the_others_named():
    facts = recorded.facts("brokers_joining_1")
    for node in phase.controllers(facts).values():
        node["metadata_log"]["brokers"] = {"1": {}}
    counted = [line for line in screen.metadata_lines(facts, phase.BROKERS_JOINING) if "registered" in line]
    assert counted == ["registered in the quorum: 1 of 3 brokers, not b2, b3"]
    for node in phase.controllers(facts).values():
        node["metadata_log"]["brokers"] = {"1": {}, "2": {}, "5": {}}
    assert "registered in the quorum: 3 of 3 brokers" in screen.metadata_lines(facts, phase.HYBRID)
    for other in ("zk", "dual_write", "finalized", "reverting"):
        assert not any("registered" in line for line in screen.metadata_lines(facts, other))


def test_age_and_size_of_the_newest_snapshots():
    facts = recorded.facts("finalized")
    for host, checkpoint in (("c1", {"bytes": 40_000, "time": 1_000.0}), ("c2", None), ("c3", {"offset": 7})):
        facts["nodes"][host]["metadata_log"]["checkpoint"] = checkpoint
        facts["nodes"][host]["time"] = 1_725.0  # by the host's own clock
    assert screen.metadata_lines(facts, "finalized") == [
        "snapshots of the metadata log: c1 12 min 5 s old, 39.1 KiB; c2 none yet"
    ]
    facts["nodes"]["c1"]["metadata_log"] = {"error": "gone"}
    facts["nodes"]["c2"] = {"role": "controller", "reached": False}
    assert screen.metadata_lines(facts, "finalized") == []


@pytest.mark.parametrize(
    ("change", "expected"), [({"fenced": True}, "fenced"), ({"in_controlled_shutdown": True}, "stopping")]
)
def test_state_of_a_broker_follows_its_registration(change, expected):
    facts = recorded.facts("dual_write")
    for node in phase.controllers(facts).values():
        node["metadata_log"]["brokers"]["5"].update(change)
    assert screen.node_lines(facts)["b3"]["state"] == expected
    assert screen.node_lines(facts)["b2"]["state"] == "online"


def test_an_old_registration_does_not_change_the_state_of_a_plain_broker():
    facts = recorded.facts("brokers_joining_1")
    plain = next(host for host, node in facts["nodes"].items() if node["running"] == "zk")
    for node in phase.controllers(facts).values():
        node["metadata_log"]["brokers"][str(facts["nodes"][plain]["node_id"])] = {"fenced": True}
    assert screen.node_lines(facts)[plain]["state"] == "online"


def test_lag_of_a_node():
    facts = recorded.facts("dual_write")
    facts["quorum"]["high_watermark"] = 1000
    for voter in facts["quorum"]["voters"]:
        voter["log_end_offset"] = 1003
    facts["quorum"]["observers"] = [{"id": 1, "log_end_offset": 990}]
    lines = screen.node_lines(facts)
    assert (lines["b1"]["lag"], lines["b2"]["lag"], lines["c1"]["lag"]) == (10, None, 0)
    facts["quorum"] = {"reached": False, "error": "no leader"}
    assert screen.node_lines(facts)["c1"]["lag"] is None


def test_zookeepers_lag_is_shown_while_controllers_write_there():
    facts = recorded.facts("dual_write")
    facts["quorum"]["high_watermark"] = 501
    facts["zookeeper"]["migration"]["kraft_metadata_offset"] = 470
    assert "ZooKeeper: written up to offset 470, lag 30" in shown(facts)
    assert "written up to" not in shown(recorded.facts("finalized"))
    assert "written up to" not in shown(recorded.facts("controllers_ready"))


def test_a_block_is_shown_with_its_advice():
    text = shown(recorded.facts("dual_write_one_controller_down"))
    assert "! controllers down: c2. Run again: the run starts them. They have the metadata." in text


def test_a_lost_metadata_log_comes_before_the_next_step_of_its_phase():
    for name in ("dual_write_one_controller_down", "finalized_one_controller_down"):
        facts = lost_log(name)
        assert screen.next_step(facts, phase.detect(facts), 0).text == (
            "bring back the controllers that lost their metadata log"
        )


def test_a_begun_rollback_shows_its_steps():
    lines = shown(recorded.facts("reverting_1_plain")).splitlines()
    steps = [line.split("rollback: ")[1] for line in lines if "rollback: " in line]
    assert steps == [
        "done   controllers down",
        "done   /controller of KRaft gone",
        "done   ZooKeeper controller elected",
        "done   /migration gone",
        "to do  brokers plain",
        "to do  controllers wiped",
    ]
    assert "rollback:" not in shown(recorded.facts("zk"))


def test_quorum_line():
    assert "quorum: none yet" in shown(recorded.facts("zk"))
    facts = recorded.facts("dual_write")
    leader = facts["quorum"]["leader_id"]
    assert f"quorum: leader {leader}, epoch" in shown(facts) and "voters 101, 102, 103" in shown(facts)
    assert "quorum: no leader (" in shown(recorded.facts("dual_write_controllers_down"))


def test_gates_of_an_attempt_that_was_rolled_back_are_not_shown():
    first = ["before_controllers", "before_trigger", "after_copy"]
    second = ["before_controllers", "before_trigger"]
    ready, hybrid, dual_write = (recorded.facts(name) for name in ("controllers_ready", "hybrid", "dual_write"))
    assert "gates passed: before_controllers, before_trigger\n" in shown(ready, [*first, *second])
    assert "gates passed: before_controllers, before_trigger\n" in shown(hybrid, [*first, *second])
    assert "gates passed: before_controllers, before_trigger, after_copy\n" in shown(hybrid, first)
    again = [*first, "before_finalize", "before_revert", "after_revert", *first]
    assert "gates passed: before_controllers, before_trigger, after_copy\n" in shown(dual_write, again)
    assert "gates passed: before_controllers\n" in shown(ready, ["before_cut", "after_cut", "before_controllers"])
    assert "gates passed: none in the run artifacts here" in shown(hybrid)


def test_the_screen_ends_with_the_next_step_and_command():
    assert shown(recorded.facts("zk")).endswith(f"next: bring up the controllers\n        {COMMAND}")
    assert shown(recorded.facts("finalized"), command=None).endswith("next: nothing: the migration is done")


def test_an_interrupted_restart_comes_first():
    facts = recorded.facts("controllers_ready")
    facts["nodes"]["b2"]["node_restart"] = {
        "id": "r/zk_migration/b2",
        "kind": "zk_migration",
        "outcome": None,
        "steps": [],
    }
    step = screen.next_step(facts, phase.detect(facts), 0)
    assert step.text == "finish the interrupted restart on b2, then restart brokers in migration mode"


def lock(**values):
    return {"run": "r1", "direction": "restart", "playbook": "upgrade", "closed": True, "how": "Restart", **values}


@pytest.mark.parametrize(
    ("newest", "alive", "text", "playbook"),
    [
        (lock(), None, "run r1 did not reach its end: fix the cause, then run upgrade again", "upgrade"),
        (
            lock(closed=False, how=None),
            False,
            "run r1 did not reach its end: fix the cause, then run upgrade again",
            "upgrade",
        ),
        (lock(direction="reassign", playbook="reassign"), None, "run reassign again", "reassign"),
        (lock(advice="Run quorumshift.kafka.zk_rollback."), None, "run quorumshift.kafka.zk_rollback", None),
    ],
)
def test_what_the_phase_cannot_name_is_finished_first(newest, alive, text, playbook):
    following = screen.next_after_failure(phase.ZK, newest, alive)
    assert following.text.endswith(text) and following.playbook == playbook


@pytest.mark.parametrize(
    ("newest", "alive"),
    [
        (None, None),
        (lock(how="ok"), None),
        (lock(closed=False, how=None), True),
        (lock(closed=False, how=None), None),  # whether it is at work is not known
        (lock(direction="forward", playbook="migrate"), None),
        (lock(direction="back", playbook="rollback"), False),
        (lock(playbook=""), None),
    ],
)
def test_where_the_phase_names_the_next_step(newest, alive):
    assert screen.next_after_failure(phase.FINALIZED, newest, alive) is None


GIVEN = {"upgrade_to": "3.9.2"}


@pytest.mark.parametrize(
    ("newest", "alive", "given"),
    [
        (lock(given=GIVEN), None, GIVEN),
        (lock(given=GIVEN, closed=False, how=None), False, GIVEN),
        (lock(given=GIVEN, closed=False, how=None), True, {}),  # it is at work
        (lock(given=GIVEN, how="ok"), None, {}),
        (lock(given=GIVEN, playbook="migrate"), None, {}),
        (lock(), None, {}),
        (None, None, {}),
    ],
)
def test_the_command_that_repeats_an_interrupted_run_has_its_variables(newest, alive, given):
    assert screen.find_given_again("upgrade", newest, alive) == given


@pytest.mark.parametrize("now", [phase.HYBRID, phase.DUAL_WRITE, phase.UNKNOWN, phase.REVERTING])
def test_a_restart_that_failed_does_not_hide_the_next_step_of_a_migration(now):
    assert screen.next_after_failure(now, lock(), None) is None
