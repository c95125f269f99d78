# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Admissions of rolling_restart over recorded facts: what keeps a node from its stop, and what its token permits."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
from ansible_collections.quorumshift.kafka.plugins.module_utils.admin.cluster_admin import LogDirs
from ansible_collections.quorumshift.kafka.plugins.module_utils.core.migration import transitions
from ansible_collections.quorumshift.kafka.plugins.modules import rolling_restart

from tests.unit.core import recorded

STOPPED = {"manager": "systemd", "name": "kafka.service", "active": False, "active_state": "failed"}
RUNS = {"manager": "systemd", "name": "kafka.service", "active": True, "active_state": "active"}


class Failed(Exception):
    """The module failed."""


class Module:
    """The probe module with facts that the test gives; a wait is one reading."""

    def __init__(self, facts, kind, batch, state="admitted"):
        self.facts_given, self.known_min_isr = facts, {}
        self.params = {"kind": kind, "batch": batch, "state": state, "plan": {}, "run": "r", "accept": []}
        self.params.update(stable_s=0, timeout_s=0, lag_s=5, latency_factor=0)
        self.params.update(canary=None, concurrency=1, since=0, ready=[], planned=[], controllers_read=None)

    def facts(self):
        return self.facts_given

    def min_isr(self, _partitions):
        return self.known_min_isr

    def wait(self, gather, *_bounds):
        troubles, result = gather()
        return {"done": not troubles, "troubles": troubles, **result}

    def begin_wait(self, gather, _stable_s):
        return {"trouble": "; ".join(gather()[0])}

    def fail_json(self, msg):
        raise Failed(msg)


def admit(facts, kind="kraft", batch=("b1",), **more):
    return rolling_restart.await_batch(Module(facts, kind, list(batch), **more))


def unresponsive(facts, host, state):
    recorded.down(facts, host)["nodes"][host]["service"] = state
    return facts


def partition(facts, replicas, isr):
    """Replace the partitions by one."""
    leader = isr[0] if isr else -1
    facts["topics"]["partitions"] = {"orders": {"0": {"leader": leader, "replicas": replicas, "isr": isr}}}
    return facts


def asked(facts, ahead_s=0.0):
    """Let each host have been read at once, with clocks that are ahead of the control node's."""
    for node in facts["nodes"].values():
        node["asked"] = [node["time"] - ahead_s] * 2
    return facts


def ids(facts, *hosts):
    return [facts["nodes"][host]["node_id"] for host in hosts]


def test_a_healthy_broker_is_admitted_by_a_token_of_its_own():
    facts = partition(recorded.facts("hybrid"), *[ids(recorded.facts("hybrid"), "b1", "b2", "b3")] * 2)
    result = admit(facts)
    assert result["done"] and result["gate_token"]["hosts"] == {"b1": f"broker-{facts['nodes']['b1']['node_id']}"}
    assert result["gate_token"]["only_start"] is False


def test_a_broker_without_an_answer_that_has_the_last_replica_in_sync_is_not_stopped():
    """b2 is down; the only replica in sync is on b1, which misses one probe. Its stop would leave two down."""
    facts = recorded.down(unresponsive(recorded.facts("hybrid"), "b1", RUNS), "b2")
    del facts["topics"]["brokers"][str(facts["nodes"]["b2"]["node_id"])]
    partition(facts, ids(facts, "b1", "b2"), ids(facts, "b1"))
    result = admit(facts)
    assert not result["done"] and "gate_token" not in result
    assert any(text.startswith("b2 does not answer") for text in result["troubles"])
    assert "1 partition under-replicated: orders-0 (QS-GATE-005)" in result["troubles"]
    assert "journalctl -u kafka.service" in result["do"]


def test_a_broker_without_an_answer_is_stopped_if_the_cluster_is_healthy_without_it():
    facts = unresponsive(recorded.facts("hybrid"), "b1", RUNS)
    del facts["topics"]["brokers"][str(facts["nodes"]["b1"]["node_id"])]
    partition(facts, ids(facts, "b1", "b2", "b3"), ids(facts, "b2", "b3"))
    result = admit(facts)
    assert result["done"] and result["gate_token"]["only_start"] is False


def test_a_broker_that_its_host_says_is_down_is_only_started(monkeypatch):
    facts = recorded.down(unresponsive(recorded.facts("hybrid"), "b1", STOPPED), "b2")
    partition(facts, ids(facts, "b1", "b2"), [])
    monkeypatch.setattr(Module, "min_isr", lambda *_given: pytest.fail("no topic's settings are needed for a start"))
    result = admit(facts)
    assert result["done"] and result["gate_token"]["only_start"] is True
    (other,) = result["unresponsive"]
    assert other.startswith("b2 does not answer")


def test_the_phase_is_required_for_a_start_as_well():
    result = admit(unresponsive(recorded.facts("dual_write"), "b1", STOPPED))
    assert not result["done"] and result["troubles"][0].startswith("the phase is dual_write")


def test_a_token_for_a_stuck_leader_permits_that_leaders_restart_alone(monkeypatch):
    facts = recorded.facts("reverting_migration_gone")
    partition(facts, ids(facts, "b1", "b2"), ids(facts, "b2"))
    monkeypatch.setattr(rolling_restart, "choose_stuck_leader", lambda *_given: ([], {"host": "b2"}))
    result = admit(facts, "zk")
    assert result["done"] and result["first"] == {"host": "b2"} and list(result["gate_token"]["hosts"]) == ["b2"]


def test_a_batch_of_two_controllers_is_rejected():
    with pytest.raises(Failed, match="a batch is one host, this one is c1, c2"):
        admit(recorded.facts("dual_write"), "controller_final", ["c1", "c2"])


def caught_up(facts):
    facts["quorum"]["high_watermark"] = min(voter["log_end_offset"] for voter in facts["quorum"]["voters"])
    return facts


def test_a_controller_that_its_host_says_is_down_is_only_started_whatever_the_quorum():
    facts = recorded.down(unresponsive(recorded.facts("dual_write"), "c1", STOPPED), "c2")
    facts["quorum"] = {"reached": False, "error": "c3: NOT_LEADER"}
    result = admit(facts, "controller_final", ["c1"])
    assert result["done"] and result["gate_token"]["only_start"] is True
    assert [text[:2] for text in result["unresponsive"]] == ["c2"]


def test_a_controller_without_an_answer_is_stopped_only_if_no_other_is_down():
    facts = caught_up(unresponsive(recorded.facts("dual_write"), "c1", RUNS))
    result = admit(facts, "controller_final", ["c1"])
    assert result["done"] and result["gate_token"]["only_start"] is False
    result = admit(recorded.down(facts, "c2"), "controller_final", ["c1"])
    assert any(text.startswith("c2 does not answer") for text in result["troubles"]) and result["do"]


# The quorum's leader goes last ---------------------------------------------------------------------------------------


def led_by(facts, host):
    facts["quorum"]["leader_id"] = facts["zookeeper"]["controller"]["broker_id"] = facts["nodes"][host]["node_id"]
    return caught_up(facts)


def final(facts, *hosts):
    for host in hosts:
        facts["nodes"][host].update(running="controller_final", next="controller_final")
    return facts


def test_a_controller_that_became_the_leader_since_the_plan_waits_for_the_others():
    """The plan has c1 first, since c3 led the quorum when it was made."""
    facts = led_by(recorded.facts("dual_write"), "c1")
    result = admit(facts, "controller_final", ["c1"])
    assert result["done"] and result["first"] == {"host": "c2", "waits": "c1"}
    assert list(result["gate_token"]["hosts"]) == ["c2"]
    result = admit(final(facts, "c2"), "controller_final", ["c1"])
    assert result["first"] == {"host": "c3", "waits": "c1"} and list(result["gate_token"]["hosts"]) == ["c3"]
    result = admit(final(facts, "c3"), "controller_final", ["c1"])
    assert result["done"] and "first" not in result and list(result["gate_token"]["hosts"]) == ["c1"]


def test_a_controller_that_was_restarted_in_the_leaders_batch_needs_no_restart_in_its_own():
    facts = final(led_by(recorded.facts("dual_write"), "c1"), "c1", "c2", "c3")
    result = admit(facts, "controller_final", ["c2"])
    assert result["done"] and result["needed"] is False and "gate_token" not in result


def test_a_follower_that_is_down_is_started_before_the_leader_is_stopped():
    facts = unresponsive(led_by(recorded.facts("dual_write"), "c1"), "c3", STOPPED)
    result = admit(facts, "controller_final", ["c1"])
    assert (
        result["done"] and result["gate_token"]["only_start"] is True and list(result["gate_token"]["hosts"]) == ["c3"]
    )


def test_without_a_leader_the_batch_is_the_plans():
    facts = recorded.facts("dual_write")
    facts["quorum"] = {"reached": False, "error": "c1: NOT_LEADER"}
    result = admit(facts, "controller_final", ["c1"])
    assert result["troubles"] == ["the quorum has no leader: c1: NOT_LEADER (QS-GATE-008)"] and "first" not in result


# The conditions of the whole cluster hold at each admission ----------------------------------------------------------


def test_a_broker_that_trails_keeps_the_next_one_up():
    facts = recorded.facts("hybrid")
    partition(facts, ids(facts, "b1", "b2", "b3"), ids(facts, "b1", "b2", "b3"))
    (number,) = ids(facts, "b2")
    for replica in facts["quorum"]["voters"] + facts["quorum"]["observers"]:
        replica["caught_up_ms"] = 1_795_000_000_000 - (60_000 if replica["id"] == number else 0)
    assert admit(facts)["troubles"][0].startswith(f"broker {number} has not caught up with the quorum's leader for")


def test_a_stray_directory_ends_the_roll_at_once():
    facts = recorded.facts("hybrid_1_kraft")
    partition(facts, ids(facts, "b1", "b2", "b3"), ids(facts, "b1", "b2", "b3"))
    facts["nodes"]["b2"]["log_dirs"][0]["stray"] = [f"orders-0.{'0a1b' * 8}-stray"]
    with pytest.raises(Failed, match="no node is stopped: b2 did not find these directories assigned to it"):
        admit(facts)


def test_a_controller_is_not_stopped_while_a_partition_is_offline():
    facts = partition(led_by(recorded.facts("dual_write"), "c3"), [1, 2, 5], [])
    assert "1 partition offline: orders-0 (QS-GATE-005)" in admit(facts, "controller_final", ["c1"])["troubles"]


# Batches -------------------------------------------------------------------------------------------------------------


def together(facts, **given):
    module = Module(facts, None, [], state="batches")
    module.params.update({"canary": None, "concurrency": 3, "since": 0, "ready": [], **given})
    return rolling_restart.find_together(module)


def racked(facts, racks=()):
    """Give brokers these racks, and no other ones, in their registrations."""
    for node in facts["nodes"].values():
        for number, broker in ((node.get("metadata_log") or {}).get("brokers") or {}).items():
            broker["rack"] = dict(racks).get(number)
    for number, broker in (facts["zookeeper"].get("broker_ids") or {}).items():
        broker["rack"] = dict(racks).get(number)
    return facts


def test_brokers_that_share_no_partition_are_in_one_batch_and_controllers_are_not():
    facts = racked(partition(recorded.facts("dual_write"), [5], [5]))
    found = together(facts)
    assert found["brokers"]["batches"] == [["b1", "b2", "b3"]]
    assert [len(batch) for batch in found["controllers"]["batches"]] == [1] * len(found["controllers"]["batches"])
    leader = next(host for host, node in facts["nodes"].items() if node["node_id"] == facts["quorum"]["leader_id"])
    assert found["controllers"]["batches"][-1] == [leader]


def test_controllers_that_do_not_run_yet_have_no_batches():
    found = together(partition(recorded.facts("zk"), [5], [5]))
    assert "controllers" not in found and found["brokers"]["batches"]


def test_brokers_of_two_racks_are_in_two_batches():
    facts = partition(recorded.facts("dual_write"), [5], [5])
    b1, b2, b3 = ids(facts, "b1", "b2", "b3")
    racks = {str(b1): "a", str(b2): "b", str(b3): "a"}
    assert together(racked(facts, racks))["brokers"]["batches"] == [["b1", "b3"], ["b2"]]


def test_brokers_of_one_partition_restart_one_at_a_time():
    facts = racked(recorded.facts("dual_write"))
    partition(facts, ids(facts, "b1", "b2"), ids(facts, "b1", "b2"))
    assert [len(batch) for batch in together(facts)["brokers"]["batches"]] == [2, 1]


def test_a_broker_that_started_after_the_change_is_done():
    facts = asked(recorded.facts("dual_write"))
    for host, at in (("b1", 100.0), ("b2", 300.0), ("b3", None)):
        facts["nodes"][host]["service"] = {**RUNS, "started_at": at}
    assert together(facts, since=200)["brokers"]["done"] == ["b2"]
    assert together(facts)["brokers"]["done"] == []


def test_batches_cannot_be_planned_without_metadata_or_for_a_wrong_canary():
    facts = recorded.facts("dual_write")
    with pytest.raises(Failed, match="the canary is b9, which is not in the group kafka_broker"):
        together(facts, canary="b9")
    facts["topics"] = {"reached": False, "error": "the brokers' metadata could not be read: timed out"}
    with pytest.raises(Failed, match=r"could not be read: timed out\. Nothing was changed"):
        together(facts)


# Batches of several brokers in a migration ---------------------------------------------------------------------------


@pytest.fixture
def unmoved(monkeypatch):
    monkeypatch.setattr(rolling_restart, "check_reassignments", lambda _module: [])


def in_sync(facts, *isr):
    facts = partition(facts, ids(facts, "b1", "b2", "b3"), ids(facts, *(isr or ("b1", "b2", "b3"))))
    for replica in facts["quorum"].get("voters", []) + facts["quorum"].get("observers", []):
        replica["caught_up_ms"] = 1_795_000_000_000
    return facts


@pytest.mark.parametrize(
    ("name", "kind"), [("hybrid", "kraft"), ("dual_write", "hybrid"), ("controllers_ready", "zk_migration")]
)
def test_a_batch_of_brokers_gets_one_token_of_the_kinds_gate(name, kind, unmoved):
    facts = in_sync(recorded.facts(name))
    result = admit(facts, kind, ["b1", "b2"])
    assert result["done"], result["troubles"]
    assert list(result["gate_token"]["hosts"]) == ["b1", "b2"]
    assert result["gate_token"]["gate"] == transitions.KINDS[kind].gate


def test_a_batch_of_brokers_counts_against_min_isr_at_once(unmoved):
    facts = in_sync(recorded.facts("hybrid"))
    module = Module(facts, "kraft", ["b1", "b2"])
    module.known_min_isr = {"orders": 2}
    result = rolling_restart.await_batch(module)
    assert not result["done"] and "gate_token" not in result
    assert result["troubles"][0].startswith("the batch cannot stop at once: orders-0 (1 of 3 replicas in sync left")
    module.params["batch"] = ["b1"]
    assert rolling_restart.await_batch(module)["done"]


def test_a_broker_that_died_outside_of_the_batch_keeps_the_whole_batch_up(unmoved):
    facts = recorded.down(in_sync(recorded.facts("hybrid"), "b1", "b2"), "b3")
    del facts["topics"]["brokers"][str(facts["nodes"]["b3"]["node_id"])]
    result = admit(facts, "kraft", ["b1", "b2"])
    assert not result["done"] and any(text.startswith("b3 does not answer") for text in result["troubles"])


def test_a_batch_of_brokers_waits_for_the_phase_of_its_gate(unmoved):
    result = admit(in_sync(recorded.facts("dual_write")), "kraft", ["b1", "b2"])
    assert result["troubles"][0].startswith("the phase is dual_write")


@pytest.mark.parametrize("down", [[], ["b2", "b3"]])
def test_the_last_brokers_in_migration_mode_do_not_restart_at_once(down, unmoved):
    """A broker that does not come up goes back to plain mode while another one of its batch starts the copy."""
    facts = in_sync(recorded.facts("brokers_joining_1"))
    joined = next(host for host, node in facts["nodes"].items() if node["running"] == "zk_migration")
    others = [host for host, node in facts["nodes"].items() if node["role"] == "broker" and host != joined]
    for host in down and others:
        unresponsive(facts, host, STOPPED)
    with pytest.raises(Failed, match="are the last brokers to restart in migration mode"):
        admit(facts, "zk_migration", others)


def test_a_stuck_leader_is_restarted_before_a_batch_of_several_and_never_with_it(monkeypatch, unmoved):
    facts = recorded.facts("reverting_migration_gone")
    partition(facts, ids(facts, "b1", "b3"), ids(facts, "b3"))
    monkeypatch.setattr(rolling_restart, "choose_stuck_leader", lambda *_given: ([], {"host": "b3"}))
    result = admit(facts, "zk", ["b1", "b2"])
    assert result["done"] and result["first"] == {"host": "b3"} and list(result["gate_token"]["hosts"]) == ["b3"]
    with pytest.raises(Failed, match="b3 takes no replica back in sync, and restarts alone"):
        admit(facts, "zk", ["b2", "b3"])


# Plain restarts ------------------------------------------------------------------------------------------------------


def plain(facts, *batch, in_flight=(), monkeypatch=None):
    partition(facts, ids(facts, "b1", "b2", "b3"), ids(facts, "b1", "b2", "b3"))
    module = Module(facts, "restart_broker", list(batch))
    monkeypatch.setattr(rolling_restart, "check_reassignments", lambda _module: list(in_flight))
    return rolling_restart.await_batch(module)


def test_a_batch_of_two_gets_one_token_that_names_both(monkeypatch):
    facts = recorded.facts("zk")
    result = plain(facts, "b1", "b2", monkeypatch=monkeypatch)
    assert result["done"] and result["gate_token"]["gate"] == "restart"
    assert result["gate_token"]["hosts"] == {
        host: f"broker-{number}" for host, number in zip(("b1", "b2"), ids(facts, "b1", "b2"))
    }


def test_no_batch_is_stopped_while_a_reassignment_is_in_flight(monkeypatch):
    result = plain(recorded.facts("zk"), "b1", in_flight=["1 partitions are being reassigned"], monkeypatch=monkeypatch)
    assert not result["done"] and "gate_token" not in result


def test_an_empty_batch_gets_no_token(monkeypatch):
    with pytest.raises(Failed, match="the batch is empty"):
        plain(recorded.facts("zk"), monkeypatch=monkeypatch)


def test_plain_restarts_are_not_planned_during_a_migration():
    module = Module(recorded.facts("hybrid"), "restart_broker", [], "planned")
    module.params.update(canary=None, concurrency=1, since=0)
    with pytest.raises(Failed, match="a migration is under way"):
        rolling_restart.planned(module)


class Admin:
    """A cluster with these throttles, and on broker 1 with partitions of `held`."""

    held = frozenset([("t", 0)])

    def __init__(self, configured):
        self.configured = configured
        self.brokers = {1: None}
        self.partitions = {("t", 0): None}

    def configs(self, resources, _keys):
        return {resource: values for resource, values in self.configured.items() if resource in resources}

    def log_dirs(self, _broker):
        return LogDirs(dict.fromkeys(self.held, 1), [], [])

    def refresh(self):
        pass

    def denied(self, topics):
        return {topic for topic in topics if topic == "hidden"}


@pytest.fixture
def throttles(monkeypatch):
    configured = {}
    monkeypatch.setattr(rolling_restart, "ClusterAdmin", lambda *_given: Admin(configured))
    client = SimpleNamespace(principal="User:migration tool")
    connections = SimpleNamespace(bootstrap=["b1:9092"], client=client, timeout=1)
    monkeypatch.setattr(Module, "connections", connections, raising=False)
    monkeypatch.setattr(Module, "warn", lambda self, text: self.warned.append(text), raising=False)
    monkeypatch.setattr(Module, "warned", [], raising=False)
    return configured


RATE, REPLICAS = {"follower.replication.throttled.rate": "1000"}, {"follower.replication.throttled.replicas": "*"}


def planning(kind):
    """Return the module before it plans a roll of brokers of which every partition stays available."""
    facts = recorded.facts("reverting_migration_gone" if kind == "zk" else "zk")
    partition(facts, ids(facts, "b1", "b2", "b3"), ids(facts, "b1", "b2", "b3"))
    module = Module(facts, kind, [], "planned")
    module.nodes = facts["nodes"]
    module.params.update(canary=None, concurrency=1, since=0, ready=[], planned=[], cluster_id="c")
    module.known_min_isr = {"orders": 1}
    return module


@pytest.mark.parametrize("kind", ["restart_broker", "zk_migration", "zk"])
@pytest.mark.parametrize(
    "configured", [{}, {(4, "1"): RATE}, {(2, "t"): REPLICAS}, {(4, "1"): RATE, (2, "t"): REPLICAS}]
)
def test_a_throttle_that_an_earlier_move_left_is_named_before_a_roll(throttles, kind, configured):
    throttles.update(configured)
    module = planning(kind)
    plan = rolling_restart.planned
    if len(configured) == 2 and kind != "zk":
        with pytest.raises(
            Failed, match=r"broker 1: follower.replication.throttled.rate=1000.*remove them: kafka-configs.sh"
        ):
            plan(module)
        return
    assert plan(module)["plan"]["batches"]
    assert len(module.warned) == bool(configured)


def test_a_broker_that_hangs_keeps_no_roll_from_its_plan(throttles, monkeypatch):
    """It hides no throttle of another broker either."""

    def configs(self, resources, _keys):
        if (4, "1") in resources:
            raise rolling_restart.WireError("b1:9092", "no answer")
        return {resource: values for resource, values in self.configured.items() if resource in resources}

    monkeypatch.setattr(Admin, "configs", configs)
    module = Module(recorded.facts("zk"), "restart_broker", [], "planned")
    module.params["cluster_id"] = "c"
    rolling_restart.require_no_throttles(module)
    assert ["no answer" in text for text in module.warned] == [True]
    throttles.update({(4, ""): RATE, (2, "t"): REPLICAS})
    with pytest.raises(Failed, match="no node is stopped"):
        rolling_restart.require_no_throttles(module)


@pytest.mark.parametrize("kind", ["restart_broker", "zk_migration", "zk"])
def test_no_broker_is_stopped_where_the_login_may_not_describe_a_topic(throttles, monkeypatch, kind):
    monkeypatch.setattr(Admin, "held", frozenset([("t", 0), ("hidden", 3), ("stray", 0)]))
    module = planning(kind)
    if kind == "zk":
        assert rolling_restart.planned(module)["plan"]["batches"]
        assert ["may not describe topics of which brokers have replicas: hidden" in text for text in module.warned] == [
            True
        ]
        return
    with pytest.raises(
        Failed, match=r"no node is stopped: .* may not describe topics of which brokers have replicas: hidden"
    ) as failed:
        rolling_restart.planned(module)
    assert "--allow-principal 'User:migration tool' --operation Describe --topic '*'" in str(failed.value)


def test_a_broker_that_does_not_list_its_replicas_is_a_warning(throttles, monkeypatch):
    def log_dirs(_self, _broker):
        raise rolling_restart.WireError("b1:9092", "no answer")

    monkeypatch.setattr(Admin, "log_dirs", log_dirs)
    module = Module(recorded.facts("zk"), "restart_broker", [], "planned")
    module.params["cluster_id"] = "c"
    rolling_restart.require_topics_seen(module)
    assert ["could not be read: b1:9092: no answer" in text for text in module.warned] == [True], module.warned


def test_the_canary_of_plain_restarts_goes_first_and_is_not_the_controller(throttles):
    facts = asked(recorded.facts("zk"))
    facts["zookeeper"]["controller"]["broker_id"] = facts["nodes"]["b1"]["node_id"]
    partition(facts, ids(facts, "b1", "b2", "b3"), ids(facts, "b2", "b1", "b3"))
    module = Module(facts, "restart_broker", [], "planned")
    module.params.update(canary=None, concurrency=3, since=0, ready=[], cluster_id="c")
    module.known_min_isr = {"orders": 1}
    plan = rolling_restart.planned(module)["plan"]
    assert plan["batches"] == [["b3"], ["b2"], ["b1"]]  # b2 leads, b1 is the controller
    module.params["since"] = max(node["service"]["started_at"] for node in facts["nodes"].values() if node["running"])
    assert len(rolling_restart.planned(module)["plan"]["done"]) == 1


@pytest.mark.parametrize("kind", ["restart_broker", "kraft"])
def test_a_plan_of_hours_ago_says_nothing_about_min_isr(kind, monkeypatch, unmoved):
    """An operator has raised min.insync.replicas since the plan was made."""
    facts = in_sync(recorded.facts("zk" if kind == "restart_broker" else "hybrid"))
    partition(facts, ids(facts, "b1", "b2", "b3"), ids(facts, "b1", "b2", "b3"))
    monkeypatch.setattr(rolling_restart, "check_reassignments", lambda _module: [])
    module = Module(facts, kind, ["b1", "b2"])
    module.params["plan"] = {"min_isr": {"orders": 1}}
    module.known_min_isr = {"orders": 2}
    assert any("orders-0" in text for text in rolling_restart.await_batch(module)["troubles"])


@pytest.mark.parametrize("name", ["zk", "finalized"])
def test_a_run_without_a_batch_settles_in_the_brokers_health(name):
    facts = in_sync(recorded.facts(name))
    module = Module(facts, "restart_controller", [], "settled")
    partition(facts, ids(facts, "b1", "b2", "b3"), ids(facts, "b1", "b2", "b3"))
    result = rolling_restart.await_batch(module)
    assert result["done"], result["troubles"]
    partition(facts, ids(facts, "b1", "b2", "b3"), ids(facts, "b1", "b2"))
    assert not rolling_restart.await_batch(Module(facts, "restart_broker", [], "settled"))["done"]


def dead(facts, host):
    """A broker that ended after it had started again: its host still knows when."""
    return unresponsive(facts, host, {**facts["nodes"][host]["service"], **STOPPED})


def test_a_broker_that_died_after_its_restart_is_not_done(throttles):
    facts = asked(recorded.facts("zk"))
    since = min(node["service"]["started_at"] for node in facts["nodes"].values() if node["running"])
    partition(facts, ids(facts, "b1", "b2", "b3"), ids(facts, "b1", "b2", "b3"))
    module = Module(facts, "restart_broker", [], "planned")
    module.params.update(canary=None, concurrency=1, since=since, ready=[], cluster_id="c")
    assert rolling_restart.planned(module)["plan"]["batches"] == []
    dead(facts, "b2")
    assert facts["nodes"]["b2"]["service"]["started_at"] >= since
    plan = rolling_restart.planned(module)["plan"]
    assert plan["batches"] == [["b2"]] and plan["done"] == ["b1", "b3"]


def test_the_time_with_which_a_run_goes_on_is_that_of_the_control_node(throttles):
    """The clocks of all hosts are 20 s ahead. b1 started 5 s before the plan, which is no restart of this run."""
    facts = asked(recorded.facts("zk"), ahead_s=20)
    partition(facts, ids(facts, "b1", "b2", "b3"), ids(facts, "b1", "b2", "b3"))
    now = max(node["time"] for node in facts["nodes"].values())
    facts["nodes"]["b1"]["service"]["started_at"] = now - 5
    module = Module(facts, "restart_broker", [], "planned")
    module.params["cluster_id"] = "c"
    module.params["since"] = rolling_restart.planned(module)["since"]
    assert rolling_restart.planned(module)["plan"]["done"] == []
    facts["nodes"]["b2"]["service"]["started_at"] = facts["nodes"]["b2"]["time"] = now + 60
    facts["nodes"]["b2"]["asked"] = [now + 40] * 2
    assert rolling_restart.planned(module)["plan"]["done"] == ["b2"]


def test_no_time_is_compared_where_the_control_nodes_clock_is_wrong(throttles):
    facts = asked(recorded.facts("zk"), ahead_s=31)
    partition(facts, ids(facts, "b1", "b2", "b3"), ids(facts, "b1", "b2", "b3"))
    module = Module(facts, "restart_broker", [], "planned")
    module.params["cluster_id"] = "c"
    assert "since" not in rolling_restart.planned(module)
    module.params["since"] = 1
    with pytest.raises(Failed, match=r"control node's clock is 31.0 s behind every host's.*\(QS-RESTART-003\)"):
        rolling_restart.planned(module)


def test_nothing_is_admitted_before_the_host_of_a_new_leader_was_read():
    facts = partition(recorded.facts("hybrid"), *[ids(recorded.facts("hybrid"), "b1", "b2", "b3")] * 2)
    leader = next(host for host in ("c1", "c2", "c3") if ids(facts, host) == [facts["quorum"]["leader_id"]])
    other = "c1" if leader != "c1" else "c2"

    def ask(*read):
        module = Module(facts, "kraft", ["b1"])
        module.params["controllers_read"] = list(read)
        return rolling_restart.await_batch(module)

    refused = ask(other)
    assert refused["unread"] == [leader] and not refused["needed"] and "gate_token" not in refused
    assert "gate_token" in ask(leader) and "gate_token" in ask("c1", "c2", "c3")


def test_where_the_leaders_log_cannot_be_read_an_old_one_does_not_count():
    facts = partition(recorded.facts("hybrid"), *[ids(recorded.facts("hybrid"), "b1", "b2", "b3")] * 2)
    leader = next(host for host in ("c1", "c2", "c3") if ids(facts, host) == [facts["quorum"]["leader_id"]])
    facts["nodes"][leader]["metadata_log"] = {"dir": "/data", "error": "No space left on device"}
    module = Module(facts, "kraft", ["b1"])
    module.params["controllers_read"] = [leader]
    result = rolling_restart.await_batch(module)
    assert not result["done"] and "gate_token" not in result
    assert result["troubles"][0].startswith("the phase is unknown")


def test_a_watch_admits_nothing_and_leaves_what_lasts_to_the_admission():
    facts = partition(recorded.facts("hybrid"), *[ids(recorded.facts("hybrid"), "b1", "b2", "b3")] * 2)

    def watch():
        module = Module(facts, "kraft", ["b3"], "watched")
        module.params["plan"] = {"batches": [["b3"], ["b1"], ["b2"]]}
        return rolling_restart.watch(module)

    assert watch() == {"carry": {"trouble": ""}} and "gate_token" in admit(facts)
    facts["nodes"]["b2"].update(reached=False, error="refused")
    assert "b2" in watch()["carry"]["trouble"]
