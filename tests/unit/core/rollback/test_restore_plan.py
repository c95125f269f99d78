# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The writes of a restore: missing znodes, missing values, leaders; and when a restore may begin."""

from __future__ import annotations

import copy
import json

import pytest
from ansible_collections.quorumshift.kafka.plugins.module_utils.core.migration import phase
from ansible_collections.quorumshift.kafka.plugins.module_utils.core.rollback import restore_plan
from ansible_collections.quorumshift.kafka.plugins.module_utils.core.rollback.restore_plan import Replica
from ansible_collections.quorumshift.kafka.plugins.module_utils.formats.zookeeper import znodes

from tests.unit.core import recorded

ID, OTHER = "rEkb6zsIRuC1dqhNSBF0Nw", "AAAAAAAAAAAAAAAAAAAAAA"
ACL = [{"perms": 31, "scheme": "world", "id": "anyone"}]


def node(path, value, owner=0):
    data = value if value is None or isinstance(value, bytes) else json.dumps(value).encode()
    return znodes.Znode(path, data, ACL, znodes.Stat(*[0] * 11)._replace(ephemeralOwner=owner))


def written(write):
    return json.loads(write.data)


def topic(**partitions):
    return {"version": 3, "topic_id": ID, "partitions": {key[1:]: replicas for key, replicas in partitions.items()}}


@pytest.mark.parametrize(
    "path",
    [
        "/controller",
        "/controller_epoch",
        "/migration",
        "/brokers/ids/1",
        "/admin/delete_topics/orders",
        "/config/changes/config_change_0000000001",
        "/kafka-acl-changes/acl_changes_0000000001",
        "/admin/reassign_partitions",
        "/brokers/topics/orders/partitions/0/state",
    ],
)
def test_znodes_that_are_not_restored(path):
    assert restore_plan.plan_write(node(path, {}), None) is None


def test_a_missing_znode_is_made_with_its_acl():
    write = restore_plan.plan_write(node("/config/topics/orders", {"version": 1, "config": {}}), None)
    assert write.acl == ACL and write.kind == "topic_config"
    assert restore_plan.plan_write(node("/admin", None), None).data is None
    assert restore_plan.plan_write(node("/anything", b"x", owner=5), None) is None, "ephemeral"


def test_a_config_gets_missing_keys_and_keeps_its_own():
    path = "/config/users/ann"
    saved = {"version": 1, "config": {"SCRAM-SHA-512": "salt=1", "producer_byte_rate": "1"}}
    write = restore_plan.plan_write(
        node(path, saved), node(path, {"version": 1, "config": {"producer_byte_rate": "9"}})
    )
    assert write.acl is None
    assert written(write)["config"] == {"SCRAM-SHA-512": "salt=1", "producer_byte_rate": "9"}
    assert restore_plan.plan_write(node(path, saved), node(path, saved)) is None


def test_a_topic_gets_missing_partitions():
    path = "/brokers/topics/orders"
    saved, live = topic(p0=[1], p1=[2]), topic(p0=[3])
    assert written(restore_plan.plan_write(node(path, saved), node(path, live)))["partitions"] == {"0": [3], "1": [2]}
    other = {**live, "topic_id": OTHER}
    assert restore_plan.plan_write(node(path, saved), node(path, other)) is None, (
        "a topic with another id is another topic"
    )


def test_an_acl_gets_missing_entries():
    path = "/kafka-acl/Topic/orders"
    first = {"principal": "User:a", "permissionType": "Allow", "operation": "Read", "host": "*"}
    second = {**first, "principal": "User:b"}
    live = node(path, {"version": 1, "acls": [second]})
    write = restore_plan.plan_write(node(path, {"version": 1, "acls": [first]}), live)
    assert written(write)["acls"] == [second, first]
    saved = node(path, {"version": 1, "acls": [{**first, "permissionType": "ALLOW", "operation": "READ"}]})
    live = node(path, {"version": 1, "acls": [first]})
    assert restore_plan.plan_write(saved, live) is None, "the same entry in another spelling"


def test_every_other_znode_keeps_its_value():
    path = "/latest_producer_id_block"
    assert restore_plan.plan_write(node(path, {"block_end": "1"}), node(path, b"")) is None
    with pytest.raises(znodes.ZnodeError, match="/config/topics/t: is not JSON"):
        restore_plan.plan_write(node("/config/topics/t", {"version": 1, "config": {}}), node("/config/topics/t", b"{"))


# Leaders -------------------------------------------------------------------------------------------------------------

STATE = "/brokers/topics/orders/partitions/0/state"


def state(leader=1, epoch=5, isr=(1, 2, 3)):
    return node(STATE, {"controller_epoch": 2, "leader": leader, "version": 1, "leader_epoch": epoch, "isr": list(isr)})


def of(*replicas, assigned=(1, 2, 3), saved=None, live=None, topic_id=ID):
    logs = [Replica(broker, log[3] if len(log) > 3 else ID, *log[:3]) for broker, log in replicas]
    return written(restore_plan.plan_state(STATE, assigned, topic_id, saved, live, logs, 40))


@pytest.mark.parametrize(
    ("logs", "leader", "isr"),
    [
        ([(1, (4, 100, 4)), (2, (4, 100, 4)), (3, (4, 90, 4))], 1, [1, 2]),
        ([(1, (4, 100, 4)), (2, (5, 60, 5)), (3, (5, 61, 5))], 3, [3]),  # a longer log of an older epoch is truncated
        ([(2, (4, 100, 4)), (3, (4, 100, 4))], 2, [2, 3]),
        ([(1, (-1, 0, -1)), (2, (-1, 0, -1)), (3, (-1, 0, -1))], 1, [1, 2, 3]),
        ([(1, (4, 100, 4)), (9, (8, 900, 8))], 1, [1]),  # no replica of this partition any more
        ([(1, (4, 100, 4)), (2, (8, 900, 8, OTHER))], 1, [1]),  # another topic of the same name
        ([(1, (4, 100, 4)), (2, (8, 900, 8, None))], 2, [2]),  # written before topics had ids
    ],
)
def test_the_replica_that_reaches_furthest_leads(logs, leader, isr):
    state_made = of(*logs, saved=state())
    assert (state_made["leader"], state_made["isr"], state_made["controller_epoch"]) == (leader, isr, 40)


def test_leader_epochs_only_rise():
    assert of((1, (4, 100, 11)), saved=state(epoch=5), live=state(epoch=7))["leader_epoch"] == 12
    assert of((1, (4, 100, 4)), saved=state(epoch=5), live=state(epoch=7))["leader_epoch"] == 8
    assert of((1, (4, 100, 4)))["leader_epoch"] == 5


def test_a_partition_without_a_log_keeps_its_in_sync_replicas():
    state_made = of(saved=state(isr=(1, 2)), live=state(isr=(2, 3)))
    assert (state_made["leader"], state_made["isr"]) == (-1, [2, 3]), "the state in ZooKeeper is newer than the backup"
    assert of()["isr"] == [1, 2, 3] and of()["leader_epoch"] == 0


def test_a_state_is_made_with_its_saved_acl():
    made = restore_plan.plan_state(STATE, [1], ID, state(), None, [], 1)
    assert made.acl == ACL and made.path == STATE
    assert restore_plan.plan_state(STATE, [1], ID, state(), state(), [], 1).acl is None


def test_epoch_above_all_epochs():
    assert restore_plan.choose_epoch([3, None, 41, 7]) == 42
    assert restore_plan.choose_epoch([]) == 1


@pytest.mark.parametrize(
    ("topic_id", "known", "logs", "partitions"),
    [
        (None, {}, {0: [(2, ID), (1, ID)], 1: [(3, ID)]}, {"0": [1, 2], "1": [3]}),
        (ID, {"0": [1]}, {0: [(5, ID)], 1: [(2, ID)]}, {"0": [1], "1": [2]}),
        (ID, {"0": [1]}, {1: [(2, OTHER)]}, {"0": [1]}),
        (None, {}, {0: [(1, ID), (2, OTHER)]}, {}),
        (None, {}, {0: [(1, None)]}, {}),
    ],
)
def test_partitions_that_only_the_disks_have(topic_id, known, logs, partitions):
    replicas = {
        number: [Replica(broker, own_topic_id, 1, 1, 1) for broker, own_topic_id in brokers]
        for number, brokers in logs.items()
    }
    assert restore_plan.partitions_from_disks(topic_id, known, replicas) == partitions


# When a restore may begin --------------------------------------------------------------------------------------------


def at_rest():
    facts = copy.deepcopy(recorded.facts("controllers_ready"))
    for node_facts in facts["nodes"].values():
        node_facts.update(running=None, service={**node_facts["service"], "active": False, "masked": True})
    facts["zookeeper"]["broker_ids"] = {}
    return facts


def test_a_restore_may_begin_once_every_node_is_stopped():
    facts = at_rest()
    assert restore_plan.check_at_rest(facts) == restore_plan.describe_registered(facts) == []
    facts["zookeeper"]["broker_ids"] = {"5": {}}
    assert restore_plan.describe_registered(facts) == ["brokers are registered in ZooKeeper: 5"]


def test_a_live_broker_outside_the_inventory_is_a_reason():
    facts = at_rest()
    known = phase.broker_ids(facts)
    facts["zookeeper"]["broker_ids"] = {str(broker): {} for broker in known}
    assert restore_plan.check_brokers_listed(facts) is None
    facts["zookeeper"]["broker_ids"].update({"12": {}, "7": {}})
    assert "broker 7, 12 is registered in ZooKeeper and is not in the inventory" in restore_plan.check_brokers_listed(
        facts
    )
    assert restore_plan.count_unread([[1, 2], [2, 9], [9, 1]], [1, 2]) == {9: 2}


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (lambda facts: facts["nodes"]["b1"]["service"].update(active=True), "of b1 runs"),
        (lambda facts: facts["nodes"]["c1"].update(running="controller_migration"), "of c1 runs"),
        (lambda facts: facts["nodes"]["c1"]["service"].update(masked=False), "of c1 is not masked"),
        (lambda facts: facts["nodes"]["b1"]["service"].update(masked=False), "of b1 is not masked"),
        (lambda facts: facts["nodes"]["b2"].update(reached=False, error="no route"), "b2 was not reached: no route"),
    ],
)
def test_a_running_or_unmasked_node_is_a_reason(change, reason):
    facts = at_rest()
    change(facts)
    assert any(reason in trouble for trouble in restore_plan.check_at_rest(facts)), restore_plan.check_at_rest(facts)


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("hybrid", None),
        ("brokers_joining_1", None),
        ("dual_write", "in KRaft mode"),
        ("finalized", "finalized"),
    ],
)
def test_phases_in_which_a_restore_is_rejected(name, reason):
    refused = restore_plan.refusal(recorded.facts(name))
    assert refused is None if reason is None else reason in refused


def at_rest_unmasked():
    facts = at_rest()
    for node in facts["nodes"].values():
        if node["role"] == "broker":
            node["service"]["masked"] = False
    return facts


def test_a_restore_that_left_a_broker_masked_is_needed():
    facts = at_rest_unmasked()
    detected = phase.PhaseResult(phase.HYBRID, [], [], [])
    assert not restore_plan.is_needed(facts, detected, 0)
    facts["nodes"]["b1"]["service"]["masked"] = True
    assert restore_plan.is_needed(facts, detected, 0)


def test_an_interrupted_restore_is_needed_and_a_complete_one_is_not():
    def detected(where, *todo):
        steps = [{"step": "brokers plain", "done": True}, *({"step": step, "done": False} for step in todo)]
        steps.append({"step": "controllers wiped", "done": False})
        return phase.PhaseResult(where, [], [], steps)

    assert not restore_plan.is_needed(at_rest_unmasked(), detected(phase.REVERTING), 0)
    assert restore_plan.is_needed(at_rest_unmasked(), detected(phase.REVERTING), 1)
    assert restore_plan.is_needed(at_rest_unmasked(), detected(phase.REVERTING, "/migration gone"), 0)
    assert restore_plan.is_needed(at_rest_unmasked(), detected(phase.UNKNOWN), 1) and not restore_plan.is_needed(
        at_rest_unmasked(), detected(phase.HYBRID), 0
    )


def entry(principal, operation="Read"):
    return {"principal": principal, "permissionType": "Allow", "operation": operation, "host": "*"}


def test_users_and_permissions_that_come_back_are_named_without_their_secrets():
    user = node(
        "/config/users/ann%40x", {"version": 1, "config": {"SCRAM-SHA-512": "salt=s1", "producer_byte_rate": "1"}}
    )
    assert restore_plan.find_revived(user, None) == ["SCRAM-SHA-512 credential of user ann@x"]
    other = node(user.path, {"version": 1, "config": {"SCRAM-SHA-512": "salt=s2"}})
    assert restore_plan.find_revived(user, other) == [], "it keeps the present one"
    acl = node("/kafka-acl/Topic/orders", {"version": 1, "acls": [entry("User:a"), entry("User:b")]})
    now = node(acl.path, {"version": 1, "acls": [entry("User:b")]})
    assert restore_plan.find_revived(acl, now) == ["ALLOW READ on Topic orders for User:a from host *"]
    prefixed = node("/kafka-acl-extended/prefixed/Group/a/b", {"version": 1, "acls": [entry("User:c")]})
    assert restore_plan.find_revived(prefixed, None) == ["ALLOW READ on prefixed Group a/b for User:c from host *"]
    times = {"issueTimestamp": 1, "maxTimestamp": 2, "expiryTimestamp": 3}
    value = {"version": 1, "owner": "User:d", "tokenId": "t1", "renewers": [], **times}
    token = node("/delegation_token/tokens/t1", value)
    assert restore_plan.find_revived(token, None) == ["delegation token t1 of User:d"]
    assert restore_plan.find_revived(token, token) == []
    assert restore_plan.find_revived(node("/config/topics/orders", {"version": 1, "config": {}}), None) == []


def test_a_changed_list_needs_another_token():
    token = restore_plan.token("c", "abc", ["x", "y"])
    assert token == restore_plan.token("c", "abc", ["y", "x"]) and token.startswith("c:") and len(token) == 8
    assert token != restore_plan.token("c", "abc", ["x"]) and token != restore_plan.token("c", "abd", ["x", "y"])
    assert restore_plan.confirms(token, "c", "abc", ["x", "y"], [])
    assert not restore_plan.confirms(token, "c", "abc", ["x", "y", "z"], ["x", "y"])
    assert not restore_plan.confirms(token, "c", "abc", ["x"], [])
    assert restore_plan.confirms(token, "c", "abc", ["x"], ["x", "y"]), "an interrupted restore goes on"
    assert not restore_plan.confirms(token, "c", "abc", ["x"], ["x", "z"]), "the list is not that of the token"


@pytest.mark.parametrize(
    ("path", "counts"),
    [
        ("/config/topics/orders", True),
        ("/brokers/topics/orders", True),
        ("/kafka-acl/Topic/orders", True),
        ("/admin/something", True),
        ("/brokers/ids/1", False),
        ("/isr_change_notification/isr_change_0000000001", False),
        ("/latest_producer_id_block", False),
        ("/hbase/master", False),
        ("/consumers/group/offsets", False),
    ],
)
def test_metadata_that_no_stopped_cluster_creates(path, counts):
    assert restore_plan.is_metadata(path) is counts
