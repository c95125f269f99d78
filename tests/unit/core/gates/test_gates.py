# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Gates: the phases in which each opens, what closes it, its token, and the confirmation token of finalization."""

from __future__ import annotations

import pytest
from ansible_collections.quorumshift.kafka.plugins.module_utils.core.gates import gates
from ansible_collections.quorumshift.kafka.plugins.module_utils.core.migration import phase, transitions

from tests.unit.core import recorded

OPEN = {
    "before_controllers": {"zk", "controllers_starting", "controllers_ready", "brokers_joining"},
    "before_trigger": {"controllers_ready", "brokers_joining"},
    "after_copy": {"hybrid", "dual_write"},
    "before_kraft": {"hybrid", "finalizing"},
    "after_kraft": {"dual_write"},
    "before_finalize": {"dual_write", "finalizing"},
    "before_revert": {
        *("controllers_starting", "controllers_ready", "brokers_joining", "copying", "hybrid", "dual_write"),
        *("finalizing", "reverting"),
    },
    "after_revert": {"reverting", "zk"},
    "after_finalize": {"finalized"},
}
# A recording of each phase without a closing block
CLEAN = {
    "zk": "zk",
    "controllers_starting": "controllers_starting_one",
    "controllers_ready": "controllers_ready",
    "brokers_joining": "brokers_joining_1",
    "copying": "copying_held",
    "hybrid": "hybrid",
    "dual_write": "dual_write",
    "finalizing": "finalizing_1",
    "finalized": "finalized",
    "kraft_native": "kraft_native",
    "reverting": "reverting_controllers_down",
    "unknown": "zk_no_zookeeper",
}


def detected(name):
    return phase.detect(recorded.facts(name))


@pytest.mark.parametrize("gate", OPEN)
@pytest.mark.parametrize("seen", CLEAN)
def test_gate_opens_in_its_phases_only(gate, seen):
    closed = gates.explain_closed(gate, detected(CLEAN[seen]), [])
    if seen in OPEN[gate]:
        assert closed == []
    else:
        assert closed[0].startswith(f"the phase is {seen}, {gate} opens in ")


@pytest.mark.parametrize("seen", sorted(OPEN["before_revert"]))
def test_a_rollback_before_the_copy_compares_no_log(seen):
    """That log has nothing of ZooKeeper's metadata: each topic would differ, and the rollback never begin."""
    has_copy = seen in ("hybrid", "dual_write", "finalizing", "reverting")
    assert (gates.METADATA_LOG in gates.views_to_compare("before_revert", seen)) is has_copy
    assert {gates.ZOOKEEPER, gates.BROKER, gates.BASELINE} <= set(gates.views_to_compare("before_revert", seen))


def test_a_gate_that_needs_the_log_compares_it_in_each_phase():
    for name, gate in gates.GATES.items():
        for seen in gate.phases:
            assert set(gate.needs) <= set(gates.views_to_compare(name, seen))
    assert gates.views_to_compare("before_cut", "zk") == []


def test_every_gate_is_covered():
    assert set(gates.GATES) == set(OPEN)
    assert {kind.gate for kind in transitions.KINDS.values()} <= {*OPEN, gates.RESTART}


@pytest.mark.parametrize("gate", OPEN)
def test_a_health_reason_closes_every_gate(gate):
    seen = CLEAN[sorted(OPEN[gate])[0]]
    assert gates.explain_closed(gate, detected(seen), ["1 partition offline: a-0 (QS-GATE-005)"]) == [
        "1 partition offline: a-0 (QS-GATE-005)"
    ]


CLOSING = (
    "unreached",
    "unknown",
    "migration_stale",
    "migration_malformed",
    "no_controller",
    "controllers_down",
    "log_lost",
)


@pytest.mark.parametrize("gate", OPEN)
@pytest.mark.parametrize("block", CLOSING)
def test_block_closes_every_gate(gate, block):
    a_block = phase.Block(block, "what is seen", "fix it")
    seen = sorted(OPEN[gate])[0]
    assert gates.explain_closed(gate, phase.PhaseResult(seen, [a_block], [], []), []) == ["what is seen. Fix it"]


@pytest.mark.parametrize(
    ("block", "closed"),
    [
        ("quorum_not_ready", {"before_trigger"}),
        # the restart in KRaft mode fixes it
        ("zookeeper_broker_left", set(OPEN) - {"before_kraft"}),
        # a rollback stops the controllers, with or without the flag
        ("flag_missing", {name for name, gate in gates.GATES.items() if not gate.rollback}),
    ],
)
def test_block_closes_some_gates(block, closed):
    a_block = phase.Block(block, "what is seen", "fix it")
    for gate in OPEN:
        seen = phase.PhaseResult(sorted(OPEN[gate])[0], [a_block], [], [])
        assert bool(gates.explain_closed(gate, seen, [])) == (gate in closed), gate


@pytest.mark.parametrize("block", ["broker_down", "file_differs", "quorum_not_ready", "copy_not_acknowledged"])
def test_block_that_the_next_step_fixes_closes_no_gate(block):
    a_block = phase.Block(block, "what is seen", "fix it")
    assert gates.explain_closed("before_controllers", phase.PhaseResult("zk", [a_block], [], []), []) == []


@pytest.mark.parametrize("gate", OPEN)
def test_closed_gate_names_the_broker_that_is_down_only_where_health_closes_it(gate):
    a_block = phase.Block("broker_down", "broker b2 does not answer: refused", "start it")
    seen = phase.PhaseResult(sorted(OPEN[gate])[0], [a_block], [], [])
    missing = "broker 2 is not in the cluster's metadata"
    assert gates.explain_closed(gate, seen, [missing]) == ["broker b2 does not answer: refused. Start it", missing]
    assert gates.explain_closed(gate, seen, []) == []


@pytest.mark.parametrize(
    ("gate", "name", "reason"),
    [
        ("before_controllers", "zk_no_ssh", "b2 was not reached"),
        ("before_controllers", "migration_malformed", "/migration is malformed"),
        (
            "before_trigger",
            "brokers_joining_controllers_down",
            "controllers down: c1, c2, c3 (QS-PHASE-011). Start them",
        ),
        ("before_kraft", "hybrid_1_kraft_no_ssh", "b3 was not reached"),
        ("before_finalize", "dual_write_one_controller_down", "controllers down: c2 (QS-PHASE-011). Run again"),
        ("after_finalize", "finalized_one_controller_down", "controllers down: c1 (QS-PHASE-011). Run again"),
    ],
)
def test_recorded_blocks_close_gates(gate, name, reason):
    assert any(closed.startswith(reason) for closed in gates.explain_closed(gate, detected(name), []))


# Gate tokens ---------------------------------------------------------------------------------------------------------


def test_token_names_its_gate_cluster_phase_and_run():
    facts = recorded.facts("hybrid")
    given = gates.make_token("before_kraft", "hybrid", "run-1", facts)
    digest = given.pop("digest")
    assert given == {
        "gate": "before_kraft",
        "cluster_id": facts["zookeeper"]["cluster_id"]["value"],
        "phase": "hybrid",
        "run": "run-1",
        "hosts": {},
        "only_start": False,
        "clocks": {},
    }
    assert len(digest) == 64


def timed(**clocks):
    """Return a token issued when these hosts had reported these clocks."""
    facts = recorded.facts("hybrid")
    for node, (boot_id, uptime_s) in zip(facts["nodes"].values(), clocks.values()):
        node["clock"] = {"boot_id": boot_id, "uptime_s": uptime_s}
    return gates.make_token("before_kraft", "hybrid", "run-1", facts)


@pytest.mark.parametrize(
    "clock, why",
    [
        ({"boot_id": "x", "uptime_s": 1000.0}, None),
        ({"boot_id": "x", "uptime_s": 1060.0}, None),
        ({"boot_id": "x", "uptime_s": 1060.5}, "is 60 s old by this host's clock, and expires after 60 s"),
        ({"boot_id": "x", "uptime_s": 9000.0}, "is 8000 s old"),
        ({"boot_id": "x", "uptime_s": 900.0}, "is -100 s old"),
        ({"boot_id": "rebooted", "uptime_s": 1001.0}, "has no reading of this host's clock since its boot rebooted"),
        ({"error": "no /proc"}, "this host has no clock to time its gate token: no /proc"),
    ],
)
def test_a_token_expires_a_minute_after_the_hosts_reading_by_the_hosts_clock(clock, why):
    expired = gates.check_expiry(timed(b1=("x", 1000.0), b2=("y", 70.0)), clock)
    assert expired is None if why is None else why in expired


def test_hosts_of_one_kernel_share_its_newest_reading():
    assert timed(b1=("x", 1000.0), b2=("x", 1030.0), b3=("x", 1010.0))["clocks"] == {"x": 1030.0}


def test_a_token_without_a_reading_is_refused():
    assert "no reading" in gates.check_expiry({"gate": "before_kraft"}, {"boot_id": "x", "uptime_s": 1.0})


def test_digest_changes_with_gate_phase_and_processes_but_not_with_the_run():
    facts = recorded.facts("dual_write")
    first = gates.make_token("after_kraft", "dual_write", "run-1", facts)["digest"]
    assert gates.make_token("after_kraft", "dual_write", "run-2", recorded.facts("dual_write"))["digest"] == first
    assert gates.make_token("before_finalize", "dual_write", "run-1", facts)["digest"] != first
    assert gates.make_token("after_kraft", "finalizing", "run-1", facts)["digest"] != first
    for node in facts["nodes"].values():
        if node["role"] == "controller":
            node["metadata_log"]["brokers"]["2"]["incarnation_id"] = "restarted"
    assert gates.make_token("after_kraft", "dual_write", "run-1", facts)["digest"] != first


def test_restart_rejects_a_token_of_another_gate_cluster_or_run():
    given = gates.make_token("before_kraft", "hybrid", "run-1", recorded.facts("hybrid"), ["b1"])
    mine = given["cluster_id"]
    assert gates.refusal("kraft", given, mine, "run-1", "b1", "broker-1") is None
    assert "without --start-at-task or --tags" in gates.refusal("kraft", None, mine, "run-1", "b1", "broker-1")
    assert "without --start-at-task or --tags" in gates.refusal("kraft", {}, mine, "run-1", "b1", "broker-1")
    assert "is of gate before_kraft, a restart of kind controller_final needs" in gates.refusal(
        "controller_final", given, mine, "run-1", "b1", "broker-1"
    )
    assert f"is of cluster {mine}, this host belongs to other" in gates.refusal(
        "kraft", given, "other", "run-1", "b1", "broker-1"
    )
    assert "is of run run-1, this is run run-2" in gates.refusal("kraft", given, mine, "run-2", "b1", "broker-1")


def test_restart_rejects_a_token_of_another_host_or_node():
    facts = recorded.facts("hybrid")
    given = gates.make_token("before_kraft", "hybrid", "r", facts, ["b1"])
    mine, number = given["cluster_id"], facts["nodes"]["b1"]["node_id"]
    assert "is of b1, this host is b2. Run again" in gates.refusal("kraft", given, mine, "r", "b2", "broker-2")
    for other in ("broker-9", f"controller-{number}", "broker-?"):
        refused = gates.refusal("kraft", given, mine, "r", "b1", other)
        assert f"is of b1 with node broker-{number}, this is node {other}" in refused
    assert "is of no host" in gates.refusal(
        "kraft", gates.make_token("before_kraft", "hybrid", "r", facts), mine, "r", "b1", f"broker-{number}"
    )


@pytest.mark.parametrize("kind", transitions.KINDS)
def test_each_kind_of_restart_needs_the_token_of_its_gate(kind):
    facts = recorded.facts("dual_write")
    for gate in (*gates.GATES, gates.RESTART, gates.BROKERS_PLAIN):
        given = gates.make_token(gate, "any", "run", facts, ["b1"])
        refused = gates.refusal(
            kind, given, given["cluster_id"], "run", "b1", f"broker-{facts['nodes']['b1']['node_id']}"
        )
        assert (refused is None) == (gate == transitions.KINDS[kind].gate)


def test_a_block_may_be_excused_for_one_restart():
    a_block = phase.Block("controllers_down", "controllers down: c2", "start them")
    seen = phase.PhaseResult("dual_write", [a_block], [], [])
    assert gates.explain_closed("before_finalize", seen, []) == ["controllers down: c2. Start them"]
    assert gates.explain_closed("before_finalize", seen, [], ("controllers_down",)) == []


# Finalization --------------------------------------------------------------------------------------------------------


def troubles(facts, token=None, soak_s=0.0):
    return gates.finalize_troubles(facts, phase.detect(facts), token or gates.finalize_token(facts), soak_s)


def test_finalize_token_is_the_cluster_id_and_six_digits():
    facts = recorded.facts("dual_write")
    cluster, _colon, digits = gates.finalize_token(facts).partition(":")
    assert cluster == facts["zookeeper"]["cluster_id"]["value"] and len(digits) == 6


def test_healthy_cluster_may_finalize():
    assert troubles(recorded.facts("dual_write")) == []


@pytest.mark.parametrize("token", ["", "yes", "CLUSTER", "CLUSTER:", "CLUSTER:000000", "other:DIGITS", ":"])
def test_another_finalize_token_is_rejected(token):
    facts = recorded.facts("dual_write")
    cluster, _colon, digits = gates.finalize_token(facts).partition(":")
    reasons = gates.finalize_troubles(
        facts, phase.detect(facts), token.replace("CLUSTER", cluster).replace("DIGITS", digits), 0
    )
    assert len(reasons) == 1 and "which is not this cluster's as it runs now" in reasons[0]


def test_interrupted_finalization_accepts_the_token_that_began_it():
    facts = recorded.facts("finalizing_1")
    cluster = facts["zookeeper"]["cluster_id"]["value"]
    assert troubles(facts, f"{cluster}:before") == []
    assert len(troubles(facts, "other:before")) == 1


def test_broker_registered_in_zookeeper_blocks_finalization():
    facts = recorded.facts("dual_write")
    facts["zookeeper"]["broker_ids"] = {"5": {}}
    assert troubles(facts) == ["brokers are registered in ZooKeeper: 5 (QS-GATE-012)"]


def test_unreachable_zookeeper_blocks_finalization():
    facts = recorded.facts("dual_write")
    token = gates.finalize_token(facts)
    facts["zookeeper"] = {"reached": False, "error": "no session within 5 s", "broker_ids": {}}
    reasons = troubles(facts, token)
    assert (
        "whether brokers are registered in ZooKeeper could not be read: no session within 5 s (QS-GATE-012)" in reasons
    )


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (None, "broker 2 is not registered in the quorum (QS-GATE-012)"),
        ({"fenced": True}, "broker 2 is fenced (QS-GATE-012)"),
        ({"is_migrating_zk_broker": True}, "broker 2 is registered as a ZooKeeper broker (QS-GATE-012)"),
    ],
)
def test_unhealthy_registration_of_a_broker_blocks_finalization(change, reason):
    facts = recorded.facts("dual_write")
    for node in phase.controllers(facts).values():
        if change is None:
            del node["metadata_log"]["brokers"]["2"]
        else:
            node["metadata_log"]["brokers"]["2"].update(change)
    assert troubles(facts) == [reason]


def test_differing_controllers_block_finalization():
    facts = recorded.facts("dual_write")
    facts["nodes"]["c2"]["file"]["properties"]["num.partitions"] = "99"
    facts["nodes"]["c3"]["file"]["properties"]["extra.key"] = "x"
    facts["nodes"]["c3"]["file"]["properties"]["sasl.oauthbearer.password"] = "sealed:1"
    assert troubles(facts) == [
        "controllers differ in extra.key, num.partitions (c1 '3', c2 '99', c3 '3'), "
        "sasl.oauthbearer.password (QS-GATE-012)"
    ]


@pytest.mark.parametrize(
    "key",
    [
        *("log.dirs", "metadata.log.dir", "advertised.listeners", "num.io.threads", "background.threads"),
        *("listener.name.controller.ssl.keystore.location", "listener.name.controller.ssl.keystore.password"),
        *("ssl.keystore.key", "ssl.keystore.certificate.chain", "ssl.key.password", "ssl.truststore.location"),
        *("zookeeper.ssl.keystore.location", "listener.name.controller.gssapi.sasl.jaas.config"),
        *("num.recovery.threads.per.data.dir", "listener.name.controller.num.network.threads"),
    ],
)
def test_what_each_host_has_for_itself_does_not_block_finalization(key):
    facts = recorded.facts("dual_write")
    for host in ("c1", "c2", "c3"):
        facts["nodes"][host]["file"]["properties"][key] = f"of {host}"
    assert troubles(facts) == []


@pytest.mark.parametrize(
    "key",
    ["super.users", "ssl.truststore.certificates", "controller.quorum.voters", "ssl.client.auth", "num.partitions"],
)
def test_what_controllers_must_agree_on_blocks_finalization(key):
    facts = recorded.facts("dual_write")
    facts["nodes"]["c2"]["file"]["properties"][key] = "other"
    assert troubles(facts)[0].startswith(f"controllers differ in {key}")


def test_soak_counts_from_the_last_restart_of_any_node():
    facts = recorded.facts("dual_write")
    for node in facts["nodes"].values():
        node["service"]["started_at"] = facts["time"] - 86400
    assert troubles(facts, soak_s=86400) == []
    facts["nodes"]["c2"]["service"]["started_at"] = facts["time"] - 60
    assert troubles(facts, soak_s=86400) == ["the last restart was 60 s ago, the soak is 86400 s (QS-GATE-012)"]
    assert troubles(facts, soak_s=60) == []


@pytest.mark.parametrize("service", [{}, None, {"started_at": None}])
def test_unknown_start_time_blocks_finalization_where_a_soak_is_required(service):
    facts = recorded.facts("dual_write")
    facts["nodes"]["b1"]["service"] = service
    assert troubles(facts) == []
    assert troubles(facts, soak_s=1) == ["when b1 started could not be read, so its soak is unknown (QS-GATE-012)"]


def compared(job="metadata_parity", gate="before_kraft", run="r1", verdict="pass"):
    return {"job": job, "gate": gate, "run": run, "verdict": verdict}


def test_jobs_that_a_gate_requires():
    assert gates.required_jobs("before_controllers", False, ["*"]) == []
    assert gates.required_jobs("before_controllers", True, []) == ["metadata_parity"]
    assert gates.required_jobs("before_controllers", True, ["*"]) == ["metadata_parity", "data_fingerprint"]
    assert gates.required_jobs("before_kraft", True, ["*"]) == ["metadata_parity"]


@pytest.mark.parametrize(
    ("results", "why"),
    [
        ([compared()], None),
        ([compared("data_fingerprint"), compared()], None),
        ([], "the metadata was not compared for gate before_kraft"),
        ([compared("data_fingerprint")], "the metadata was not compared for gate before_kraft"),
        ([compared(gate="after_copy")], "is of gate after_copy and run r1, this is gate before_kraft and run r1"),
        ([compared(run="r0")], "is of gate before_kraft and run r0, this is gate before_kraft and run r1"),
        ([compared(verdict="incomplete")], "metadata_parity ended with incomplete"),
        ([compared(verdict=None)], "metadata_parity ended with None"),
    ],
)
def test_missing_or_failed_verification_closes_the_gate(results, why):
    reason = gates.explain_unverified("before_kraft", "r1", ["metadata_parity"], results)
    assert (reason is None) if why is None else (why in reason)
    assert gates.explain_unverified("before_kraft", "r1", [], results) is None


def test_every_required_job_must_pass():
    asked = gates.required_jobs("after_finalize", True, ["orders"])
    passed = [compared(gate="after_finalize")]
    assert "the records were not compared for gate after_finalize" in gates.explain_unverified(
        "after_finalize", "r1", asked, passed
    )
    passed.append(compared("data_fingerprint", "after_finalize"))
    assert gates.explain_unverified("after_finalize", "r1", asked, passed) is None


def quorum(*states, leader=101):
    replicas = [{"id": replica_id, "log_end_offset": end, "caught_up_ms": ms} for replica_id, end, ms in states]
    voters, observers = ([replica for replica in replicas if (replica["id"] > 100) == voter] for voter in (True, False))
    return {"reached": True, "leader_id": leader, "high_watermark": 500, "voters": voters, "observers": observers}


def test_trailing_names_voters_and_brokers_that_have_not_caught_up():
    at = 1_795_000_000_000
    near = [(101, 501, at), (102, 500, at - 400), (1, 499, at - 900), (2, 300, at - 5000)]
    assert gates.find_trailing(quorum(*near), [1, 2], 5) == []
    # the leader forgets an observer that has not fetched for five minutes
    assert gates.find_trailing(quorum(*near), [1, 2, 3], 5) == [
        "broker 3 does not fetch the metadata log: the quorum's leader does not list it (QS-GATE-009)"
    ]
    far = quorum(*near, (103, 420, at - 12_400), (3, 490, at - 60_000), (9, 0, at - 99_000))
    assert gates.find_trailing(far, [1, 2, 3], 5) == [
        "voter 103 has not caught up with the quorum's leader for 12 s, 80 offsets behind (QS-GATE-009)",
        "broker 3 has not caught up with the quorum's leader for 60 s, 10 offsets behind (QS-GATE-009)",
    ]
    assert gates.find_trailing(quorum((101, 501, at), (102, 0, -1)), [], 5) == [
        "voter 102 has not caught up with the quorum's leader since the leader was elected (QS-GATE-009)"
    ]


@pytest.mark.parametrize(
    ("gate", "running", "waits"),
    [
        ("before_controllers", None, False),
        ("before_controllers", "controller_migration", True),
        ("before_trigger", None, True),
    ],
)
def test_a_controller_that_the_next_step_starts_need_not_have_caught_up(gate, running, waits):
    facts = recorded.facts("controllers_ready")
    facts["quorum"] = quorum((101, 501, 1_000_000), (102, 0, -1), (103, 501, 1_000_000))
    facts["nodes"]["c2"]["running"] = running
    reasons = gates.find_trailing(gates.expected_voters(gate, facts), [], 5)
    assert reasons == (
        ["voter 102 has not caught up with the quorum's leader since the leader was elected (QS-GATE-009)"]
        if waits
        else []
    )


def test_a_leader_that_gives_one_answer_and_not_another_hides_no_lag():
    facts = recorded.facts("controllers_ready")
    facts["quorum"] = quorum((101, 501, 1_000_000), (102, 480, 1_000_000 - 60_000))
    facts["nodes"]["c1"]["running"] = None
    reasons = gates.find_trailing(gates.expected_voters("before_controllers", facts), [], 5)
    assert len(reasons) == 1 and reasons[0].startswith("voter 102 has not caught up")


def test_trailing_is_empty_where_the_leader_reports_no_times():
    assert gates.find_trailing({"reached": False, "error": "none"}, [1], 5) == []
    assert gates.find_trailing(quorum((101, 501, -1), (102, 0, -1)), [], 5) == []


def test_a_token_of_plain_restarts_admits_no_other_restart_and_no_other_host():
    facts = recorded.facts("finalized")
    identity = (phase.cluster_id(facts), "r")
    token = gates.make_token(gates.RESTART, "finalized", "r", facts, ["b1", "b2"])
    assert gates.refusal("restart_broker", token, *identity, "b1", "broker-1") is None
    assert gates.refusal("restart_broker", token, *identity, "b2", "broker-2") is None
    assert gates.refusal("restart_broker", token, *identity, "b3", "broker-5").startswith("the gate token is of b1, b2")
    assert "this is node broker-5" in gates.refusal("restart_broker", token, *identity, "b1", "broker-5")
    for kind in [name for name, kind_row in transitions.KINDS.items() if not kind_row.is_plain]:
        assert "is of gate restart" in gates.refusal(kind, token, *identity, "b1", "broker-1")
        other = gates.make_token(transitions.KINDS[kind].gate, "finalized", "r", facts, ["b1"])
        assert "needs one of restart" in gates.refusal("restart_broker", other, *identity, "b1", "broker-1")
