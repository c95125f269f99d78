# Copyright: (c) 2026, Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The phase judged from facts of real runs, and from the same facts with a piece of evidence bent."""

from __future__ import annotations

import ast
import inspect
import json

import pytest
from ansible_collections.quorumshift.kafka.plugins.module_utils.core import phase, screen

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
    # what ZooKeeper cannot say is not done
    "reverting_no_zookeeper": [1, 0, 0, 0, 0, 0],
    "reverting_migration_gone": [1, 1, 1, 1, 0, 0],
    "reverting_1_plain": [1, 1, 1, 1, 0, 0],
    "reverting_brokers_plain": [1, 1, 1, 1, 1, 0],
    "reverting_wiped": [1, 1, 1, 1, 1, 1],
}


def ids(detected):
    return sorted({block.id for block in detected.blocks})


def bent(name, **changes):
    """Recorded facts with `changes`: dotted paths (`__` for a dot) to new values."""
    facts = recorded.facts(name)
    for path, value in changes.items():
        place = facts
        *way, last = path.split("__")
        for step in way:
            place = place[step]
        place[last] = value
    return facts


def logs(facts, **changes):
    """The same change to every controller's metadata log."""
    for node in facts["nodes"].values():
        if node["role"] == "controller" and node.get("metadata_log"):
            node["metadata_log"].update(changes)
    return facts


def hosts(facts, role):
    return sorted(host for host, node in facts["nodes"].items() if node["role"] == role)


def test_every_recording_is_judged():
    beside = {"zk_preflight", "zk_hosts", "copy"}  # what preflight and the count of the copy look at
    assert set(recorded.NAMES) - beside == set(RECORDED)


@pytest.mark.parametrize("name", RECORDED)
def test_recorded_facts(name):
    detected = phase.detect(recorded.facts(name))
    assert (detected.phase, ids(detected)) == RECORDED[name], detected.blocks
    assert bool(detected.steps) == (detected.phase == "reverting")


@pytest.mark.parametrize("name", RECORDED)
def test_every_piece_of_evidence_names_its_source(name):
    detected = phase.detect(recorded.facts(name))
    assert all(one.what and one.source for one in detected.evidence)
    assert len({one.what for one in detected.evidence}) == len(detected.evidence)
    json.dumps([one._asdict() for one in detected.evidence])
    assert all(block.text and block.do and not block.text.endswith(".") for block in detected.blocks)


@pytest.mark.parametrize("name", REVERTING)
def test_steps_of_a_revert(name):
    steps = phase.detect(recorded.facts(name)).steps
    assert steps == [{"step": step, "done": bool(done)} for step, done in zip(STEPS, REVERTING[name])]


def test_every_phase_was_recorded():
    named = {
        value for name, value in vars(phase).items() if name.isupper() and name[0] != "_" and isinstance(value, str)
    }
    assert named == {one for one, _blocks in RECORDED.values()}


# Nodes that were not seen ----------------------------------------------------------------------------------------

ALONE = sorted(
    name
    for name, (_phase, blocks) in RECORDED.items()
    if not blocks and not name.startswith(("revert", "kraft_native"))
)


@pytest.mark.parametrize("name", ALONE)
@pytest.mark.parametrize("host", ["b1", "b2", "b3", "c1", "c2", "c3"])
@pytest.mark.parametrize("answers", [True, False])
def test_a_host_that_was_not_reached_never_moves_the_phase(name, host, answers):
    detected = phase.detect(recorded.unreached(recorded.facts(name), host, answers))
    near = {RECORDED[name][0], "unknown"}
    if name.startswith("controllers_ready"):
        near.add("controllers_starting")  # a voter that is not seen is not ready
    assert detected.phase in near
    assert "unreached" in ids(detected)
    if detected.phase == "unknown":
        assert host in next(block.text for block in detected.blocks if block.id == "unknown")


@pytest.mark.parametrize(
    ("name", "host", "expected"),
    [
        # a broker whose mode nobody saw: what it could be decides whether the phase can be told
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
def test_a_node_of_which_nothing_is_seen(name, host, expected):
    detected = phase.detect(recorded.unreached(recorded.facts(name), host, answers=False))
    assert detected.phase == expected


def test_a_broker_that_is_down_counts_with_its_file():
    facts = recorded.down(recorded.facts("hybrid_1_kraft"), "b2")
    assert phase.detect(facts).phase == "hybrid"
    facts["nodes"]["b2"]["next"] = "zk"
    detected = phase.detect(facts)
    assert detected.phase == "unknown" and "b2 run or will start in plain ZooKeeper mode" in detected.blocks[0].text


def test_no_broker_in_the_inventory():
    facts = recorded.facts("zk")
    facts["nodes"] = {host: node for host, node in facts["nodes"].items() if node["role"] == "controller"}
    detected = phase.detect(facts)
    assert detected.phase == "unknown" and "kafka_broker" in detected.blocks[0].text


def test_a_broker_with_a_role_that_is_no_part_of_a_migration():
    detected = phase.detect(bent("finalized", nodes__b1__running="unknown"))
    assert detected.phase == "unknown" and "b1" in detected.blocks[0].text


# Evidence that contradicts itself --------------------------------------------------------------------------------

KRAFT_OWNED = {"exists": True, "ephemeral": False, "broker_id": 101, "kraft_controller_epoch": 4}
ZOOKEEPER_OWNED = {"exists": True, "ephemeral": True, "broker_id": 1, "kraft_controller_epoch": -1}


def contradictions():
    yield "kraft owns, a broker plain", bent("hybrid", nodes__b1__running="zk"), "b1 run or will start in plain"
    yield "zk, kraft owns", bent("zk", zookeeper__controller=KRAFT_OWNED), "plain ZooKeeper mode"
    yield (
        "dual_write, ZooKeeper owns",
        bent("dual_write", zookeeper__controller=ZOOKEEPER_OWNED, zookeeper__migration__kraft_metadata_offset=-1),
        "/controller is not KRaft's, yet brokers run or will start in KRaft mode",
    )
    yield (
        "hybrid, log says PRE_MIGRATION",
        logs(recorded.facts("hybrid"), zk_migration_state="PRE_MIGRATION"),
        "KRaft's controllers write to ZooKeeper over a /migration that says that a copy was done",
    )
    yield (
        "joining, log says MIGRATION",
        logs(recorded.facts("brokers_joining_1"), zk_migration_state="MIGRATION"),
        "the copy was committed, yet /controller is not KRaft's",
    )
    yield (
        "dual_write, /migration gone",
        bent("dual_write", zookeeper__migration={"exists": False}),
        "/migration does not exist",
    )
    yield (
        "dual_write, /migration at -1",
        bent("dual_write", zookeeper__migration__kraft_metadata_offset=-1),
        "no copy was done, yet brokers run or will start in KRaft mode",
    )
    blind = recorded.facts("dual_write")
    for host in hosts(blind, "controller"):
        blind["nodes"][host]["metadata_log"] = {"dir": "/x", "error": "CorruptBatch at offset 3"}
    yield "dual_write, no log can be read", blind, "no controller's metadata log could be read"
    yield (
        "no witness",
        bent("hybrid", zookeeper={"reached": False, "error": "no session within 5 s"}),
        "ZooKeeper could not be read: no session within 5 s",
    )
    yield "no witness, no reason", bent("hybrid", zookeeper={}), "ZooKeeper could not be read: no reason given"


@pytest.mark.parametrize(("what", "facts", "reason"), list(contradictions()), ids=lambda one: str(one)[:40])
def test_contradictions_are_unknown_with_the_reason(what, facts, reason):
    detected = phase.detect(facts)
    assert detected.phase == "unknown"
    named = "copy_skipped" if "PRE_MIGRATION" in what else "unknown"
    assert [block.id for block in detected.blocks if reason in block.text] == [named], detected.blocks


@pytest.mark.parametrize("name", ["zk", "controllers_ready", "brokers_joining_2"])
def test_a_migration_offset_under_zookeepers_controller_is_stale(name):
    detected = phase.detect(bent(name, zookeeper__migration={"exists": True, "kraft_metadata_offset": 417}))
    assert detected.phase == "unknown" and ids(detected) == ["migration_stale"]
    safe = name != "brokers_joining_2"
    assert ("delete /migration" in detected.blocks[0].do) == safe
    assert detected.blocks[0].do.startswith("delete nothing while b") != safe


def test_a_copy_that_is_committed_and_not_told_in_zookeeper():
    detected = phase.detect(logs(recorded.facts("copying_held"), zk_migration_state="MIGRATION"))
    assert (detected.phase, ids(detected)) == ("copying", ["copy_not_acknowledged"])


def test_offset_zero_is_no_copy():
    assert phase.detect(bent("brokers_joining_1", zookeeper__migration__kraft_metadata_offset=0)).phase != "unknown"
    assert phase.detect(bent("copying_held", zookeeper__migration__kraft_metadata_offset=0)).phase == "copying"


# Running and at the next start -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "host", "following", "expected"),
    [
        ("zk", "b1", "zk_migration", "zk"),
        ("controllers_ready", "b3", "zk_migration", "controllers_ready"),
        ("hybrid", "b1", "kraft", "hybrid"),
        ("dual_write", "b1", "zk_migration", "dual_write"),
        # a controller whose file is final leaves migration mode with its next restart, wanted or not
        ("dual_write", "c1", "controller_final", "finalizing"),
        ("finalized", "c1", "controller_migration", "finalizing"),
    ],
)
def test_a_file_that_differs_from_what_runs_is_told(name, host, following, expected):
    detected = phase.detect(bent(name, **{f"nodes__{host}__next": following}))
    assert detected.phase == expected
    assert ids(detected) == ["file_differs"]
    assert host in detected.blocks[0].text and following in detected.blocks[0].text


@pytest.mark.parametrize("mode", ["zk_migration", "zk"])
def test_a_broker_left_behind_by_finalization(mode):
    detected = phase.detect(bent("finalized", nodes__b3__running=mode, nodes__b3__next=mode))
    assert detected.phase == "finalizing" and ids(detected) == ["zookeeper_broker_left"]


@pytest.mark.parametrize(("name", "reported"), [("hybrid", True), ("dual_write", True), ("finalized", False)])
def test_client_metrics_while_zookeeper_is_written(name, reported):
    facts = recorded.facts(name)
    for node in facts["nodes"].values():
        if node["metadata_log"]:
            node["metadata_log"]["client_metrics"] = {"all": ["interval.ms"]}
    detected = phase.detect(facts)
    assert detected.phase == name and ids(detected) == ["client_metrics"] * reported
    assert not reported or detected.blocks[0].text.startswith("client metrics are configured (all), for which")


@pytest.mark.parametrize("name", ["copying_held", "hybrid"])
def test_a_controller_without_the_flag_over_brokers_in_migration_mode(name):
    """It would write POST_MIGRATION as soon as it leads (ActivationRecordsGenerator, Kafka 3.9)."""
    mode = "controller_final"
    detected = phase.detect(bent(name, nodes__c2__running=mode, nodes__c2__next=mode))
    assert detected.phase == RECORDED[name][0] and ids(detected) == ["flag_missing"], detected.blocks
    assert detected.blocks[0].text.startswith("c2 runs or will start without the migration flag")


def test_a_finalized_controller_that_is_down_stays_final():
    detected = phase.detect(recorded.down(recorded.facts("finalized"), "c2"))
    assert (detected.phase, ids(detected)) == ("finalized", ["controllers_down"])


@pytest.mark.parametrize("name", ["zk", "controllers_ready", "brokers_joining_1"])
def test_a_cluster_without_a_zookeeper_controller_is_told(name):
    detected = phase.detect(bent(name, zookeeper__controller={"exists": False}))
    assert detected.phase == RECORDED[name][0] and ids(detected) == ["no_controller"]


def test_masked_controllers_are_a_rollback_wherever_it_stands():
    for name in ("zk", "controllers_ready", "brokers_joining_1", "hybrid", "dual_write"):
        facts = recorded.facts(name)
        facts["nodes"]["c1"]["service"]["masked"] = True
        assert phase.detect(facts).phase == "reverting", name


def restored(name, direction, **end):
    """Recorded facts with all brokers down, and the newest claim of this direction; `end`: how it was closed."""
    facts = recorded.facts(name)
    locked = {"number": 9, "run": "r9", "direction": direction, "user": "ops", "host": "control-1", "job": None}
    locked.update({"process": {}, "since": 1_790_000_000, "closed": bool(end), **end})
    for host, node in facts["nodes"].items():
        if node["role"] == "broker":
            recorded.down(facts, host)
        node["run_locks"] = {phase.cluster_id(facts): locked}
    return facts


@pytest.mark.parametrize(
    "end, said", [({}, "at work, or was cut off"), ({"how": "Stop the broker"}, 'it ended at "Stop the broker"')]
)
def test_brokers_that_stand_still_for_a_restore_are_not_to_be_started(end, said):
    for name in ("reverting_controllers_down", "reverting_migration_gone", "zk"):
        facts = restored(name, "restore", **end)
        detected = phase.detect(facts)
        assert ids(detected)[0] == "restore_unfinished" and "broker_down" not in ids(detected)
        assert said in detected.blocks[0].text and "r9 (restore) of ops" in detected.blocks[0].text
        assert screen.next_step(facts, detected, 0).playbook == "restore_zookeeper"


def test_a_restore_that_ended_well_or_another_run_leaves_brokers_to_be_started():
    for facts in (
        restored("reverting_migration_gone", "restore", how="ok"),
        restored("reverting_migration_gone", "forward"),
    ):
        assert "restore_unfinished" not in ids(phase.detect(facts)) and "broker_down" in ids(phase.detect(facts))
    assert phase.restoring(recorded.facts("reverting_controllers_down")) is None


def test_a_finalized_cluster_cannot_be_reverting():
    assert phase.detect(bent("finalized", nodes__c1__service__masked=True)).phase == "finalized"


def test_a_step_of_a_revert_that_nobody_could_look_at_is_not_done():
    wiped = recorded.facts("reverting_wiped")
    steps = {one["step"]: one["done"] for one in phase.detect(recorded.unreached(wiped, "c1", False)).steps}
    assert not steps["controllers wiped"] and not steps["controllers down"] and steps["brokers plain"]


def test_a_malformed_migration_znode_is_not_gone():
    torn = {"exists": True, "malformed": "not JSON", "kraft_metadata_offset": None}
    steps = phase.detect(bent("reverting_wiped", zookeeper__migration=torn)).steps
    assert {"step": "/migration gone", "done": False} in steps


# Readiness of the quorum -------------------------------------------------------------------------------------------


def not_ready():
    yield "nodes__c2__running", None, "c2 does not answer as a controller in migration mode"
    yield "nodes__c2__running", "controller_final", "c2 does not answer as a controller in migration mode: controller_f"
    yield "quorum", {"reached": False, "error": "NOT_LEADER"}, "no controller answers as the quorum's leader"
    yield "quorum__high_watermark", 10**9, "is behind the high watermark"
    yield "zookeeper__migration__kraft_metadata_offset", None, "kraft_metadata_offset is None, not -1"


@pytest.mark.parametrize(("path", "value", "reason"), list(not_ready()))
def test_what_a_quorum_lacks(path, value, reason):
    detected = phase.detect(bent("controllers_ready", **{path: value}))
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
def test_what_the_log_of_a_quorum_lacks(change, reason):
    detected = phase.detect(logs(recorded.facts("controllers_ready"), **change))
    assert detected.phase == "controllers_starting"
    assert any(reason in block.text for block in detected.blocks if block.id == "quorum_not_ready"), detected.blocks


def test_a_controller_registered_without_the_flag_is_not_ready():
    facts = recorded.facts("controllers_ready")
    for host in hosts(facts, "controller"):
        facts["nodes"][host]["metadata_log"]["controllers"]["102"]["zk_migration_ready"] = False
    detected = phase.detect(facts)
    assert detected.phase == "controllers_starting"
    assert [block.text for block in detected.blocks] == ["controller 102 is not registered as ready for the migration"]


def test_a_voter_missing_from_the_quorum():
    facts = recorded.facts("controllers_ready")
    facts["quorum"]["voters"].pop()
    detected = phase.detect(facts)
    assert detected.phase == "controllers_starting"
    assert any("the quorum has 2 voters, the group kafka_controller 3 hosts" in one.text for one in detected.blocks)


def test_an_old_registration_blocks_while_brokers_join():
    """KRaftMigrationDriver would start the copy without waiting for a broker that an earlier attempt registered."""
    facts = recorded.facts("brokers_joining_1")
    for host in hosts(facts, "controller"):
        facts["nodes"][host]["metadata_log"]["brokers"].update({"1": {}, "2": {}, "5": {}, "9": {}})
    reported = {block.id: block.text for block in phase.detect(facts).blocks}
    assert "though it runs or will start in plain ZooKeeper mode" in reported["left_registered"]
    assert reported["quorum_not_ready"].startswith("brokers 9 are registered already")


def test_controllers_that_do_not_answer_are_named():
    facts = recorded.facts("hybrid")
    assert phase.silent_controllers(facts) == []
    facts["nodes"]["c2"].update(running=None, running_error="c2:9093: connection refused")
    assert phase.silent_controllers(facts) == ["controller c2 does not answer: c2:9093: connection refused"]


def test_the_longest_usable_log_counts():
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


def test_registrations_are_the_controllers_not_those_of_an_earlier_attempt():
    """The brokers' own replicas still hold the log of the attempt that was rolled back."""
    facts = recorded.facts("brokers_joining_again")
    longest_of_all = phase.longest_log(facts["nodes"])
    assert longest_of_all != phase.longest_log(phase.controllers(facts)), "the recording has no older log"
    joined = [str(node["node_id"]) for node in facts["nodes"].values() if node["running"] == "zk_migration"]
    assert list(phase.registrations(facts)) == joined


def test_the_cluster_id():
    facts = recorded.facts("finalized_no_zookeeper")
    assert facts["zookeeper"]["reached"] is False
    other = recorded.facts("finalized")
    assert phase.cluster_id(facts) == phase.cluster_id(other) == other["zookeeper"]["cluster_id"]["value"]
    facts["nodes"]["b1"]["log_dirs"][0]["meta"]["cluster.id"] = "another"
    assert phase.cluster_id(facts) is None
    assert phase.broker_ids(facts) == [1, 2, 5]


def test_every_block_is_provoked_here():
    """Each id that phase.py can give stands in an assertion above."""
    given = set()
    for node in ast.walk(ast.parse(inspect.getsource(phase))):
        if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "Block":
            given.update(one.value for one in node.args[:1] if isinstance(one, ast.Constant))
    provoked = {one for _phase, blocks in RECORDED.values() for one in blocks}
    provoked |= {"file_differs", "zookeeper_broker_left", "no_controller", "quorum_not_ready", "copy_not_acknowledged"}
    provoked |= {"left_registered", "copy_skipped", "restore_unfinished", "client_metrics", "flag_missing"}
    assert given == provoked


def test_who_follows_the_metadata_log():
    facts = recorded.facts("hybrid")
    every = phase.broker_ids(facts)
    assert phase.following(facts) == every
    facts["nodes"]["b2"]["running"] = "zk"  # it was put back
    assert phase.following(facts) == [one for one in every if one != facts["nodes"]["b2"]["node_id"]]
    facts["nodes"]["b1"]["running"] = None
    assert len(phase.following(facts)) == len(every) - 2
