# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The phase detected from facts of real runs, and from the same facts with some evidence changed."""

from __future__ import annotations

import ast
import inspect
import json

import pytest
from ansible_collections.quorumshift.kafka.plugins.module_utils.core.migration import phase
from ansible_collections.quorumshift.kafka.plugins.module_utils.core.status import screen

from tests.unit.core import recorded

# What was recorded -> (phase, ids of its blocks)
RECORDED = {
    "zk": ("zk", []),
    "zk_broker_down": ("zk", ["broker_down"]),
    "zk_no_ssh": ("zk", ["unreached"]),
    "zk_no_zookeeper": ("unknown", ["unknown"]),
    "controllers_starting_one": ("controllers_starting", ["quorum_not_ready"]),
    "controllers_starting_two": ("controllers_starting", ["quorum_not_ready"]),
    "controllers_ready": ("controllers_ready", []),
    "controllers_ready_broker_down": ("controllers_ready", ["broker_down"]),
    "brokers_joining_1": ("brokers_joining", []),
    "brokers_joining_2": ("brokers_joining", []),
    "brokers_joining_again": ("brokers_joining", []),
    "brokers_joining_broker_down": ("brokers_joining", ["broker_down"]),
    "brokers_joining_controllers_down": ("brokers_joining", ["controllers_down", "quorum_not_ready"]),
    "copying": ("copying", ["controllers_down"]),
    "copying_held": ("copying", []),
    "hybrid": ("hybrid", []),
    "hybrid_broker_down": ("hybrid", ["broker_down"]),
    "hybrid_controllers_hung": ("hybrid", ["controllers_down"]),
    "hybrid_1_kraft": ("hybrid", []),
    "hybrid_1_kraft_broker_down": ("hybrid", ["broker_down"]),
    "hybrid_1_kraft_no_ssh": ("hybrid", ["unreached"]),
    "dual_write": ("dual_write", []),
    "dual_write_broker_down": ("dual_write", ["broker_down"]),
    "dual_write_one_controller_down": ("dual_write", ["controllers_down"]),
    "dual_write_controllers_down": ("dual_write", ["controllers_down"]),
    "dual_write_no_zookeeper": ("unknown", ["unknown"]),
    "finalizing_1": ("finalizing", []),
    "finalizing_2": ("finalizing", []),
    "finalized": ("finalized", []),
    "finalized_broker_down": ("finalized", ["broker_down"]),
    "finalized_one_controller_down": ("finalized", ["controllers_down"]),
    "finalized_no_zookeeper": ("finalized", []),
    "kraft_native": ("kraft_native", []),
    "revert_brokers_hybrid": ("hybrid", []),
    "reverting_controllers_down": ("reverting", []),
    "reverting_controller_elected": ("reverting", []),
    "reverting_no_zookeeper": ("reverting", []),
    "reverting_migration_gone": ("reverting", []),
    "reverting_1_plain": ("reverting", []),
    "reverting_brokers_plain": ("reverting", []),
    "reverting_wiped": ("reverting", []),
    "reverted": ("zk", []),
    "migration_stale": ("unknown", ["migration_stale"]),
    "migration_malformed": ("zk", ["migration_malformed"]),
}
STEPS = (
    "controllers down",
    "/controller of KRaft gone",
    "ZooKeeper controller elected",
    "/migration gone",
    "brokers plain",
    "controllers wiped",
)
REVERTING = {
    "reverting_controllers_down": [1, 0, 0, 0, 0, 0],
    "reverting_controller_elected": [1, 1, 1, 0, 0, 0],
    # a step that ZooKeeper cannot confirm is not done
    "reverting_no_zookeeper": [1, 0, 0, 0, 0, 0],
    "reverting_migration_gone": [1, 1, 1, 1, 0, 0],
    "reverting_1_plain": [1, 1, 1, 1, 0, 0],
    "reverting_brokers_plain": [1, 1, 1, 1, 1, 0],
    "reverting_wiped": [1, 1, 1, 1, 1, 1],
}


def ids(detected):
    return sorted({block.id for block in detected.blocks})


def changed(name, **changes):
    """Return recorded facts with `changes`: dotted paths (`__` for a dot) to new values."""
    facts = recorded.facts(name)
    for path, value in changes.items():
        parent = facts
        *keys, last = path.split("__")
        for key in keys:
            parent = parent[key]
        parent[last] = value
    return facts


def logs(facts, **changes):
    """Make the same change to every controller's metadata log, and return the facts."""
    for node in facts["nodes"].values():
        if node["role"] == "controller" and node.get("metadata_log"):
            node["metadata_log"].update(changes)
    return facts


def hosts(facts, role):
    return sorted(host for host, node in facts["nodes"].items() if node["role"] == role)


def test_every_recording_is_covered():
    others = {"zk_preflight", "zk_hosts", "copy"}  # recorded for the preflight and the count of the initial copy
    assert set(recorded.NAMES) - others == set(RECORDED)


@pytest.mark.parametrize("name", RECORDED)
def test_phase_and_blocks_of_recorded_facts(name):
    detected = phase.detect(recorded.facts(name))
    assert (detected.phase, ids(detected)) == RECORDED[name], detected.blocks
    assert bool(detected.steps) == (detected.phase == "reverting")


@pytest.mark.parametrize("name", RECORDED)
def test_evidence_names_its_source(name):
    detected = phase.detect(recorded.facts(name))
    assert all(item.what and item.source for item in detected.evidence)
    assert len({item.what for item in detected.evidence}) == len(detected.evidence)
    json.dumps([item._asdict() for item in detected.evidence])
    assert all(block.text and block.do and not block.text.endswith(".") for block in detected.blocks)


@pytest.mark.parametrize("name", REVERTING)
def test_steps_of_a_rollback(name):
    steps = phase.detect(recorded.facts(name)).steps
    assert steps == [{"step": step, "done": bool(done)} for step, done in zip(STEPS, REVERTING[name])]


def test_every_phase_was_recorded():
    named = {
        value for name, value in vars(phase).items() if name.isupper() and name[0] != "_" and isinstance(value, str)
    }
    assert named == {name for name, _blocks in RECORDED.values()}


# Nodes that were not reached -----------------------------------------------------------------------------------------

WITHOUT_BLOCKS = sorted(
    name
    for name, (_phase, blocks) in RECORDED.items()
    if not blocks and not name.startswith(("revert", "kraft_native"))
)


@pytest.mark.parametrize("name", WITHOUT_BLOCKS)
@pytest.mark.parametrize("host", ["b1", "b2", "b3", "c1", "c2", "c3"])
@pytest.mark.parametrize("answers", [True, False])
def test_an_unreached_host_never_moves_the_phase(name, host, answers):
    detected = phase.detect(recorded.unreached(recorded.facts(name), host, answers))
    expected = {RECORDED[name][0], "unknown"}
    if name.startswith("controllers_ready"):
        expected.add("controllers_starting")  # a voter that does not answer is not ready
    assert detected.phase in expected
    assert "unreached" in ids(detected)
    if detected.phase == "unknown":
        assert host in next(block.text for block in detected.blocks if block.id == "unknown")


@pytest.mark.parametrize(
    ("name", "host", "expected"),
    [
        # a broker of unknown mode: the phase is known only where its mode makes no difference
        ("zk", "b2", "unknown"),
        ("controllers_ready", "b2", "unknown"),
        ("brokers_joining_1", "b1", "unknown"),
        ("hybrid", "b2", "unknown"),
        ("dual_write", "b2", "unknown"),
        ("finalized", "b2", "unknown"),
        ("finalizing_1", "b2", "unknown"),
        # a controller's mode decides only once the migration may be over
        ("dual_write", "c2", "dual_write"),
        ("hybrid", "c1", "hybrid"),
        ("finalized", "c1", "unknown"),
    ],
)
def test_phase_while_the_mode_of_a_node_is_unknown(name, host, expected):
    detected = phase.detect(recorded.unreached(recorded.facts(name), host, answers=False))
    assert detected.phase == expected


def test_a_broker_that_is_down_counts_with_the_mode_of_its_file():
    facts = recorded.down(recorded.facts("hybrid_1_kraft"), "b2")
    assert phase.detect(facts).phase == "hybrid"
    facts["nodes"]["b2"]["next"] = "zk"
    detected = phase.detect(facts)
    assert detected.phase == "unknown" and "b2 run or will start in plain ZooKeeper mode" in detected.blocks[0].text


def test_an_inventory_without_brokers_is_unknown():
    facts = recorded.facts("zk")
    facts["nodes"] = {host: node for host, node in facts["nodes"].items() if node["role"] == "controller"}
    detected = phase.detect(facts)
    assert detected.phase == "unknown" and "kafka_broker" in detected.blocks[0].text


def test_a_broker_of_another_kind_is_unknown():
    detected = phase.detect(changed("finalized", nodes__b1__running="unknown"))
    assert detected.phase == "unknown" and "b1" in detected.blocks[0].text


# Evidence that contradicts itself ------------------------------------------------------------------------------------

KRAFT_OWNED = {"exists": True, "ephemeral": False, "broker_id": 101, "kraft_controller_epoch": 4}
ZOOKEEPER_OWNED = {"exists": True, "ephemeral": True, "broker_id": 1, "kraft_controller_epoch": -1}


def contradictions():
    yield "kraft owns, a broker plain", changed("hybrid", nodes__b1__running="zk"), "b1 run or will start in plain"
    yield "zk, kraft owns", changed("zk", zookeeper__controller=KRAFT_OWNED), "plain ZooKeeper mode"
    yield (
        "dual_write, ZooKeeper owns",
        changed("dual_write", zookeeper__controller=ZOOKEEPER_OWNED, zookeeper__migration__kraft_metadata_offset=-1),
        "/controller is not KRaft's, yet brokers run or will start in KRaft mode (QS-PHASE-001)",
    )
    yield (
        "hybrid, log says PRE_MIGRATION",
        logs(recorded.facts("hybrid"), zk_migration_state="PRE_MIGRATION"),
        "/migration says that the initial copy is done, yet the KRaft controllers' log has none",
    )
    yield (
        "joining, log says MIGRATION",
        logs(recorded.facts("brokers_joining_1"), zk_migration_state="MIGRATION"),
        "the controllers' log has the initial copy committed, yet /controller is not KRaft's (QS-PHASE-001)",
    )
    yield (
        "dual_write, /migration missing",
        changed("dual_write", zookeeper__migration={"exists": False}),
        "/migration does not exist",
    )
    yield (
        "dual_write, /migration at -1",
        changed("dual_write", zookeeper__migration__kraft_metadata_offset=-1),
        "/migration says that the initial copy is not done, yet brokers run or will start in KRaft mode (QS-PHASE-001)",
    )
    unreadable = recorded.facts("dual_write")
    for host in hosts(unreadable, "controller"):
        unreadable["nodes"][host]["metadata_log"] = {"dir": "/x", "error": "CorruptBatch at offset 3"}
    yield "dual_write, no log can be read", unreadable, "no controller's metadata log could be read"
    yield (
        "no ZooKeeper",
        changed("hybrid", zookeeper={"reached": False, "error": "no session within 5 s"}),
        "ZooKeeper could not be read: no session within 5 s (QS-PHASE-001)",
    )
    reason = "ZooKeeper could not be read: no reason given (QS-PHASE-001)"
    yield "no ZooKeeper, no reason", changed("hybrid", zookeeper={}), reason


@pytest.mark.parametrize(("what", "facts", "reason"), list(contradictions()), ids=lambda value: str(value)[:40])
def test_contradictory_evidence_is_unknown_with_the_reason(what, facts, reason):
    detected = phase.detect(facts)
    assert detected.phase == "unknown"
    block_id = "copy_skipped" if "PRE_MIGRATION" in what else "unknown"
    assert [block.id for block in detected.blocks if reason in block.text] == [block_id], detected.blocks


@pytest.mark.parametrize("name", ["zk", "controllers_ready", "brokers_joining_2"])
def test_a_migration_offset_under_zookeepers_controller_is_stale(name):
    detected = phase.detect(changed(name, zookeeper__migration={"exists": True, "kraft_metadata_offset": 417}))
    assert detected.phase == "unknown" and ids(detected) == ["migration_stale"]
    safe = name != "brokers_joining_2"
    assert ("delete /migration" in detected.blocks[0].do) == safe
    assert detected.blocks[0].do.startswith("delete nothing while b") != safe


def test_a_committed_copy_without_its_offset_in_zookeeper_is_a_block():
    detected = phase.detect(logs(recorded.facts("copying_held"), zk_migration_state="MIGRATION"))
    assert (detected.phase, ids(detected)) == ("copying", ["copy_not_acknowledged"])


def test_offset_zero_means_that_the_copy_is_not_done():
    assert phase.detect(changed("brokers_joining_1", zookeeper__migration__kraft_metadata_offset=0)).phase != "unknown"
    assert phase.detect(changed("copying_held", zookeeper__migration__kraft_metadata_offset=0)).phase == "copying"


# Running mode and mode at the next start -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "host", "next_mode", "expected"),
    [
        ("zk", "b1", "zk_migration", "zk"),
        ("controllers_ready", "b3", "zk_migration", "controllers_ready"),
        ("hybrid", "b1", "kraft", "hybrid"),
        ("dual_write", "b1", "zk_migration", "dual_write"),
        # a controller whose file is final leaves migration mode with its next restart, intended or not
        ("dual_write", "c1", "controller_final", "finalizing"),
        ("finalized", "c1", "controller_migration", "finalizing"),
    ],
)
def test_a_file_of_another_mode_than_the_running_one_is_a_block(name, host, next_mode, expected):
    detected = phase.detect(changed(name, **{f"nodes__{host}__next": next_mode}))
    assert detected.phase == expected
    assert ids(detected) == ["file_differs"]
    assert host in detected.blocks[0].text and next_mode in detected.blocks[0].text


@pytest.mark.parametrize("mode", ["zk_migration", "zk"])
def test_a_broker_in_zookeeper_mode_after_finalization_is_a_block(mode):
    detected = phase.detect(changed("finalized", nodes__b3__running=mode, nodes__b3__next=mode))
    assert detected.phase == "finalizing" and ids(detected) == ["zookeeper_broker_left"]


@pytest.mark.parametrize(("name", "blocked"), [("hybrid", True), ("dual_write", True), ("finalized", False)])
def test_client_metrics_are_a_block_during_dual_write(name, blocked):
    facts = recorded.facts(name)
    for node in facts["nodes"].values():
        if node["metadata_log"]:
            node["metadata_log"]["client_metrics"] = {"all": ["interval.ms"]}
    detected = phase.detect(facts)
    assert detected.phase == name and ids(detected) == ["client_metrics"] * blocked
    assert not blocked or detected.blocks[0].text.startswith("client metrics are configured (all). ZooKeeper cannot")


@pytest.mark.parametrize("name", ["copying_held", "hybrid"])
def test_a_controller_without_the_flag_is_a_block_while_brokers_run_in_migration_mode(name):
    """It would write POST_MIGRATION as soon as it leads (ActivationRecordsGenerator, Kafka 3.9)."""
    mode = "controller_final"
    detected = phase.detect(changed(name, nodes__c2__running=mode, nodes__c2__next=mode))
    assert detected.phase == RECORDED[name][0] and ids(detected) == ["flag_missing"], detected.blocks
    assert detected.blocks[0].text.startswith("c2 runs or will start without the migration flag")


def test_a_final_controller_that_is_down_stays_final():
    detected = phase.detect(recorded.down(recorded.facts("finalized"), "c2"))
    assert (detected.phase, ids(detected)) == ("finalized", ["controllers_down"])


@pytest.mark.parametrize("name", ["zk", "controllers_ready", "brokers_joining_1"])
def test_a_cluster_without_a_zookeeper_controller_has_a_block(name):
    detected = phase.detect(changed(name, zookeeper__controller={"exists": False}))
    assert detected.phase == RECORDED[name][0] and ids(detected) == ["no_controller"]


def test_a_masked_controller_means_reverting_in_every_phase_before_finalization():
    for name in ("zk", "controllers_ready", "brokers_joining_1", "hybrid", "dual_write"):
        facts = recorded.facts(name)
        facts["nodes"]["c1"]["service"]["masked"] = True
        assert phase.detect(facts).phase == "reverting", name


def restored(name, direction, **end):
    """Return recorded facts with all brokers down and a run lock of this direction; `end`: how it was closed."""
    facts = recorded.facts(name)
    locked = {"number": 9, "run": "r9", "direction": direction, "user": "ops", "host": "control-1", "job": None}
    locked.update({"process": {}, "since": 1_790_000_000, "closed": bool(end), **end})
    for host, node in facts["nodes"].items():
        if node["role"] == "broker":
            recorded.down(facts, host)
        node["run_locks"] = {phase.cluster_id(facts): locked}
    return facts


@pytest.mark.parametrize(
    "end, state", [({}, "at work, or was interrupted"), ({"how": "Stop the broker"}, 'it ended at "Stop the broker"')]
)
def test_an_unfinished_restore_is_a_block_instead_of_its_stopped_brokers(end, state):
    for name in ("reverting_controllers_down", "reverting_migration_gone", "zk"):
        facts = restored(name, "restore", **end)
        detected = phase.detect(facts)
        assert ids(detected)[0] == "restore_unfinished" and "broker_down" not in ids(detected)
        assert state in detected.blocks[0].text and "r9 (restore) of ops" in detected.blocks[0].text
        assert screen.next_step(facts, detected, 0).playbook == "restore_zookeeper"


def test_stopped_brokers_are_a_block_after_a_finished_restore_or_another_run():
    for facts in (
        restored("reverting_migration_gone", "restore", how="ok"),
        restored("reverting_migration_gone", "forward"),
    ):
        assert "restore_unfinished" not in ids(phase.detect(facts)) and "broker_down" in ids(phase.detect(facts))
    assert phase.find_restoring(recorded.facts("reverting_controllers_down")) is None


def test_a_masked_controller_does_not_make_a_finalized_cluster_reverting():
    assert phase.detect(changed("finalized", nodes__c1__service__masked=True)).phase == "finalized"


def test_a_rollback_step_on_an_unreached_host_is_not_done():
    wiped = recorded.facts("reverting_wiped")
    steps = {step["step"]: step["done"] for step in phase.detect(recorded.unreached(wiped, "c1", False)).steps}
    assert not steps["controllers wiped"] and not steps["controllers down"] and steps["brokers plain"]


def test_a_malformed_migration_znode_counts_as_existing():
    malformed = {"exists": True, "malformed": "not JSON", "kraft_metadata_offset": None}
    steps = phase.detect(changed("reverting_wiped", zookeeper__migration=malformed)).steps
    assert {"step": "/migration gone", "done": False} in steps


# Readiness of the quorum ---------------------------------------------------------------------------------------------


def not_ready():
    yield "nodes__c2__running", None, "c2 does not answer as a controller in migration mode"
    yield (
        "nodes__c2__running",
        "controller_final",
        ("c2 does not answer as a controller in migration mode: controller_f"),
    )
    yield (
        "quorum",
        {"reached": False, "error": "NOT_LEADER"},
        ("no controller answers as the quorum's leader (QS-PHASE-015)"),
    )
    yield "quorum__high_watermark", 10**9, "is behind the high watermark"
    yield "zookeeper__migration__kraft_metadata_offset", None, "kraft_metadata_offset is None, not -1"


@pytest.mark.parametrize(("path", "value", "reason"), list(not_ready()))
def test_a_quorum_that_is_not_ready_is_a_block(path, value, reason):
    detected = phase.detect(changed("controllers_ready", **{path: value}))
    assert detected.phase == "controllers_starting"
    assert any(block.id == "quorum_not_ready" and reason in block.text for block in detected.blocks), detected.blocks


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"zk_migration_state": "NONE"}, "the metadata log's state is NONE, not PRE_MIGRATION"),
        ({"zk_migration_state": None}, "the metadata log's state is None, not PRE_MIGRATION"),
        ({"controllers": {}}, "controller 101 is not registered as ready for the migration"),
        ({"brokers": {"9": {}}}, "brokers 9 are registered already, though they run plain ZooKeeper mode"),
    ],
)
def test_a_metadata_log_that_is_not_ready_is_a_block(change, reason):
    detected = phase.detect(logs(recorded.facts("controllers_ready"), **change))
    assert detected.phase == "controllers_starting"
    assert any(reason in block.text for block in detected.blocks if block.id == "quorum_not_ready"), detected.blocks


def test_a_controller_registered_without_the_flag_is_not_ready():
    facts = recorded.facts("controllers_ready")
    for host in hosts(facts, "controller"):
        facts["nodes"][host]["metadata_log"]["controllers"]["102"]["zk_migration_ready"] = False
    detected = phase.detect(facts)
    assert detected.phase == "controllers_starting"
    assert [block.text for block in detected.blocks] == [
        "controller 102 is not registered as ready for the migration (QS-PHASE-015)"
    ]


def test_a_quorum_with_a_missing_voter_is_not_ready():
    facts = recorded.facts("controllers_ready")
    facts["quorum"]["voters"].pop()
    detected = phase.detect(facts)
    assert detected.phase == "controllers_starting"
    assert any("the quorum has 2 voters, the group kafka_controller 3 hosts" in block.text for block in detected.blocks)


def test_an_old_registration_is_a_block_while_brokers_join():
    """KRaftMigrationDriver starts the copy without waiting for a broker that an earlier attempt registered."""
    facts = recorded.facts("brokers_joining_1")
    for host in hosts(facts, "controller"):
        facts["nodes"][host]["metadata_log"]["brokers"].update({"1": {}, "2": {}, "5": {}, "9": {}})
    texts = {block.id: block.text for block in phase.detect(facts).blocks}
    assert "though it runs or will start in plain ZooKeeper mode" in texts["left_registered"]
    assert texts["quorum_not_ready"].startswith("brokers 9 are registered already")


def test_silent_controllers_names_those_that_do_not_answer():
    facts = recorded.facts("hybrid")
    assert phase.find_silent_controllers(facts) == []
    facts["nodes"]["c2"].update(running=None, running_error="c2:9093: connection refused")
    assert phase.find_silent_controllers(facts) == ["controller c2 does not answer: c2:9093: connection refused"]


def test_the_longest_readable_log_counts():
    facts = recorded.facts("dual_write")
    first, *others = hosts(facts, "controller")
    for host in others:
        facts["nodes"][host]["metadata_log"] = {"dir": "/x", "error": "LogGap"}
    assert phase.detect(facts).phase == "dual_write"
    facts["nodes"][first]["metadata_log"]["log_end_offset"] = 5
    facts["nodes"][others[0]]["metadata_log"] = {
        **facts["nodes"][first]["metadata_log"],
        "zk_migration_state": "POST_MIGRATION",
        "log_end_offset": 10**6,
    }
    assert phase.detect(facts).phase == "finalizing"


def test_registrations_come_from_the_controllers_log():
    """The brokers' replicas still have the longer log of the attempt that was rolled back."""
    facts = recorded.facts("brokers_joining_again")
    longest_of_all = phase.longest_log(facts["nodes"])
    assert longest_of_all != phase.longest_log(phase.controllers(facts)), "the recording has no older log"
    joined = [str(node["node_id"]) for node in facts["nodes"].values() if node["running"] == "zk_migration"]
    assert list(phase.registrations(facts)) == joined


def test_cluster_id_is_none_where_nodes_disagree():
    facts = recorded.facts("finalized_no_zookeeper")
    assert facts["zookeeper"]["reached"] is False
    other = recorded.facts("finalized")
    assert phase.cluster_id(facts) == phase.cluster_id(other) == other["zookeeper"]["cluster_id"]["value"]
    facts["nodes"]["b1"]["log_dirs"][0]["meta"]["cluster.id"] = "another"
    assert phase.cluster_id(facts) is None
    assert phase.broker_ids(facts) == [1, 2, 5]


def test_every_block_is_asserted_above():
    in_code = set()
    for node in ast.walk(ast.parse(inspect.getsource(phase))):
        if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "Block":
            in_code.update(literal.value for literal in node.args[:1] if isinstance(literal, ast.Constant))
    asserted = {block for _phase, blocks in RECORDED.values() for block in blocks}
    asserted |= {"file_differs", "zookeeper_broker_left", "no_controller", "quorum_not_ready", "copy_not_acknowledged"}
    asserted |= {
        "clusters_differ",
        "left_registered",
        "copy_skipped",
        "restore_unfinished",
        "client_metrics",
        "flag_missing",
        "stray_directories",
    }
    assert in_code == asserted


def test_following_lists_brokers_in_migration_or_kraft_mode():
    facts = recorded.facts("hybrid")
    every = phase.broker_ids(facts)
    assert phase.find_followers(facts) == every
    facts["nodes"]["b2"]["running"] = "zk"  # it was reverted
    assert phase.find_followers(facts) == [broker for broker in every if broker != facts["nodes"]["b2"]["node_id"]]
    facts["nodes"]["b1"]["running"] = None
    assert len(phase.find_followers(facts)) == len(every) - 2


def test_a_broker_that_does_not_answer_is_quoted():
    facts = recorded.down(recorded.facts("zk"), "b2")
    facts["nodes"]["b2"]["last_error"] = "ERROR java.net.BindException: Address already in use"
    (seen,) = [block.text for block in phase.detect(facts).blocks if block.id == "broker_down"]
    assert seen.endswith(
        "; the last error in its log: ERROR java.net.BindException: Address already in use (QS-PHASE-012)"
    )


# Controllers that a run starts ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "hosts"),
    [
        ("dual_write_one_controller_down", ["c2"]),
        ("dual_write_controllers_down", ["c1", "c2", "c3"]),
        ("finalized_one_controller_down", ["c1"]),
        ("hybrid_controllers_hung", []),  # their hosts say that they run
        ("brokers_joining_controllers_down", []),  # their start could begin the initial copy
        ("controllers_starting_two", []),  # the step that brings them up starts them
        ("reverting_controllers_down", []),
        ("zk", []),
    ],
)
def test_controllers_that_are_down_are_started_before_any_gate(name, hosts):
    facts = recorded.facts(name)
    assert phase.find_startable(facts, phase.detect(facts).phase) == hosts


@pytest.mark.parametrize("change", ["masked", "unformatted", "unreached", "no file"])
def test_a_controller_that_must_not_or_cannot_run_is_not_started(change):
    facts = recorded.facts("dual_write_one_controller_down")
    node = facts["nodes"]["c2"]
    node["service"]["masked"] = change == "masked"
    if change == "unformatted":
        node["log_dirs"] = []
    if change == "unreached":
        node["reached"] = False
    if change == "no file":
        node["next"] = None
    assert phase.find_startable(facts, "dual_write") == []


def test_a_controller_is_started_before_the_copy_only_under_a_leader():
    facts = recorded.facts("dual_write_one_controller_down")
    assert phase.find_startable(facts, "brokers_joining") == ["c2"]
    facts["quorum"] = {"reached": False, "error": "x"}
    assert phase.find_startable(facts, "brokers_joining") == []


def test_the_block_says_who_starts_the_controllers():
    def do(name):
        (block,) = [block for block in phase.detect(recorded.facts(name)).blocks if block.id == "controllers_down"]
        return block.do

    assert do("dual_write_one_controller_down") == "run again: the run starts them. They have the metadata"
    assert "On each: systemctl start kafka-controller" in do("hybrid_controllers_hung")


def test_a_cluster_of_kafka_4_whose_log_lost_the_migrations_state_has_a_phase():
    facts = recorded.facts("kraft_native")
    for node in facts["nodes"].values():
        node["metadata_log"] = {**(node.get("metadata_log") or {}), "zk_migration_state": None}
    assert phase.detect(facts).phase == phase.UNKNOWN
    next(node for node in facts["nodes"].values() if node["role"] == "controller")["version"] = "4.1.1"
    assert phase.detect(facts).phase == phase.KRAFT_NATIVE


@pytest.mark.parametrize(
    ("level", "expected"), [(1, "kraft_native"), (7, "kraft_native"), (8, "unknown"), (None, "unknown")]
)
def test_a_cluster_below_the_first_level_with_migrations_never_had_one(level, expected):
    facts = recorded.facts("kraft_native")
    for node in facts["nodes"].values():
        if node.get("metadata_log"):
            node["metadata_log"].update(zk_migration_state=None, metadata_version=level)
    assert phase.detect(facts).phase == expected
    broker = next(node for node in facts["nodes"].values() if node["role"] == "broker")
    broker.update(running="zk", next="zk")
    assert phase.detect(facts).phase == "unknown"
