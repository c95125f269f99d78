# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""preflight: partitions, earlier attempts, pending requests and the state of ZooKeeper."""

from __future__ import annotations

import pytest
from ansible_collections.quorumshift.kafka.plugins.module_utils.core.preflight import preflight, requests

from tests.unit.core.preflight_facts import collected, found, node, the_one

# Partitions ----------------------------------------------------------------------------------------------------------


def first_of(facts, replicas=3):
    partitions = facts.cluster["topics"]["partitions"]
    name = next(name for name, numbers in partitions.items() if len(numbers["0"]["replicas"]) == replicas)
    return name, partitions[name]["0"]


def test_finding_for_an_under_replicated_partition():
    facts = collected()
    name, partition = first_of(facts)
    partition["isr"] = partition["isr"][:-1]
    assert the_one(facts, "partitions") == f"1 partition under-replicated: {name}-0"


@pytest.mark.parametrize("replicas", [1, 2, 3])
def test_finding_for_an_offline_partition(replicas):
    facts = collected()
    name, partition = first_of(facts, replicas)
    partition.update(leader=-1, isr=partition["isr"][:1])
    assert f"1 partition offline: {name}-0" in [finding["seen"] for finding in found(facts, "partitions")]


def test_finding_if_no_broker_returns_metadata():
    facts = collected()
    facts.cluster["topics"] = {"reached": False, "error": "the brokers' metadata could not be read: timed out"}
    assert the_one(facts, "partitions") == "the brokers' metadata could not be read: timed out"
    assert found(facts, "partitions")[0]["do"].startswith("fix quorumshift_bootstrap_servers")


def first_assignment(facts):
    name = sorted(facts.metadata["topics"])[0]
    return name, facts.metadata["topics"][name]["partitions"]["0"]


@pytest.mark.parametrize("change", [{"adding": [5]}, {"removing": [1]}])
def test_finding_for_a_reassignment_in_flight(change):
    facts = collected()
    name, assignment = first_assignment(facts)
    assignment.update(change)
    assert the_one(facts, "reassignments") == f"{name}-0 is being reassigned"


def test_finding_for_a_reassignment_that_has_not_started():
    facts = collected()
    facts.zookeeper["reassign_partitions"] = {"exists": True}
    assert the_one(facts, "reassignments").startswith("/admin/reassign_partitions exists")


def test_finding_for_a_replica_on_an_unregistered_broker():
    facts = collected()
    name, assignment = first_assignment(facts)
    assignment["replicas"] = [*assignment["replicas"], 99]
    assert the_one(facts, "dead_replicas") == f"broker 99 holds replicas but is not registered in ZooKeeper: {name}-0"


def test_finding_for_many_replicas_on_an_unregistered_broker():
    facts = collected()
    facts.metadata["broker_ids"].remove(5)
    assert "broker 5 holds replicas but is not registered in ZooKeeper: " in the_one(facts, "dead_replicas")
    assert " more" in the_one(facts, "dead_replicas")


# What an earlier attempt left ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["migration_stale", "migration_malformed"])
def test_finding_for_a_migration_znode_of_an_earlier_attempt(name):
    facts = collected(name)
    expected = {"migration_stale": "of an earlier initial copy", "migration_malformed": "/migration is malformed"}
    assert expected[name] in the_one(facts, "stale_migration")


def test_no_finding_for_a_migration_znode_before_the_initial_copy():
    facts = collected()
    facts.zookeeper["migration"] = {"exists": True, "kraft_metadata_offset": -1, "malformed": None}
    assert found(facts, "stale_migration") == []


def formatted(facts, **meta):
    directory = node(facts, "c1")["log_dirs"] = [
        {"path": "/meta", "exists": True, "empty": False, "error": None, "meta": None}
    ]
    if meta:
        directory[0]["meta"] = {"cluster.id": facts.zookeeper["cluster_id"]["value"], "node.id": "101", **meta}
    return facts


def test_no_finding_for_a_controller_directory_of_this_attempt():
    assert found(formatted(collected(), version="1"), "controller_directories") == []


@pytest.mark.parametrize(
    ("meta", "expected"),
    [
        ({}, "c1: /meta is not empty and has no meta.properties"),
        ({"cluster.id": "other"}, "c1: /meta is formatted for cluster other, node 101"),
        ({"node.id": "9"}, "c1: /meta is formatted for cluster CLUSTER, node 9"),
    ],
)
def test_finding_for_a_controller_directory_of_another_attempt(meta, expected):
    facts = formatted(collected(), **meta)
    assert the_one(facts, "controller_directories") == expected.replace(
        "CLUSTER", facts.zookeeper["cluster_id"]["value"]
    )
    assert found(facts, "controller_directories")[0]["do"].startswith(
        "if you do not need its content, stop the controller's service"
    )


def test_no_wipe_is_advised_with_brokers_in_migration_mode():
    facts = formatted(collected(), **{"cluster.id": "other"})
    node(facts, "b2").update(running=None, next="zk_migration")
    do = found(facts, "controller_directories")[0]["do"]
    assert do.startswith("bring every broker back to plain ZooKeeper mode first") and "empty" not in do


@pytest.mark.parametrize("state", ["NONE", "MIGRATION", "POST_MIGRATION"])
def test_finding_for_a_metadata_log_of_an_earlier_attempt(state):
    facts = collected("controllers_ready")
    node(facts, "c2")["metadata_log"]["zk_migration_state"] = state
    assert the_one(facts, "controller_directories") == (
        f"c2: an earlier attempt left the metadata log in state {state}"
    )


def test_finding_for_brokers_registered_by_an_earlier_attempt():
    facts = collected("controllers_ready")
    node(facts, "c1")["metadata_log"]["brokers"] = {"2": {}}
    assert [finding["seen"] for finding in found(facts, "controller_directories")] == [
        "broker 2 is registered in the metadata log but runs in mode zk: the initial copy would not wait for it"
    ]
    facts.zookeeper["migration"]["kraft_metadata_offset"] = None
    first, *_others = [finding["seen"] for finding in found(facts, "controller_directories")]
    assert first == "brokers are registered in the metadata log, but /migration has offset None"


def test_finding_for_znodes_on_which_the_initial_copy_fails():
    facts = collected()
    facts.metadata["problems"] = [{"path": "/brokers/topics/x", "reason": "has no topic_id"}]
    assert the_one(facts, "unreadable") == "ZooKeeper /brokers/topics/x: has no topic_id"


# Pending requests ----------------------------------------------------------------------------------------------------


def lasting(facts, *earlier):
    """Return the facts with the requests that these reads have shown: `earlier`, then `facts`."""
    shown = None
    for read in (*earlier, facts):
        shown = requests.find_lasting(read, shown)
    return facts._replace(lasting=shown)


def test_finding_for_a_deletion_that_does_not_complete():
    facts = collected()
    name = sorted(facts.metadata["topics"])[0]
    facts.metadata["delete_topics"] = [name]
    facts = lasting(facts)
    assert the_one(facts, "deletions") == f"the deletion of {name} does not complete"
    facts.metadata["delete_topics"] = []
    assert found(lasting(facts), "deletions") == []


def test_a_request_is_a_finding_only_if_every_read_shows_it():
    first, then = collected(), collected()
    first.metadata["delete_topics"], then.metadata["delete_topics"] = ["one"], ["another"]
    assert found(lasting(then, first), "deletions") == []
    then.metadata["delete_topics"] = ["another", "one"]
    assert "of one does" in the_one(lasting(then, first), "deletions")


def test_finding_for_an_election_that_does_not_start():
    facts = collected()
    facts.zookeeper["preferred_replica_election"] = {
        "exists": True,
        "malformed": None,
        "partitions": [{"topic": "orders", "partition": 3}],
    }
    facts = lasting(facts)
    assert "elections of orders-3, but no controller" in the_one(facts, "elections")


def test_finding_for_a_partition_without_a_state():
    facts = collected()
    name = sorted(facts.metadata["topics"])[0]
    facts.metadata["topics"][name]["partitions"]["0"]["leader"] = None
    facts = lasting(facts)
    assert the_one(facts, "partition_states") == (
        f"ZooKeeper has no partition state of {name}-0: no leader was ever elected"
    )
    facts.metadata["delete_topics"] = [name]
    assert found(lasting(facts), "partition_states") == []


@pytest.mark.parametrize(
    ("epoch", "seen"),
    [
        ({"exists": False, "malformed": None, "value": None}, "/controller_epoch does not exist"),
        ({"exists": True, "malformed": "is no number", "value": None}, "/controller_epoch is malformed: is no number"),
        (
            {"exists": True, "malformed": None, "value": 0},
            "/controller_epoch is 0, a partition state has 2: the controller elects no leader there",
        ),
    ],
)
def test_finding_for_a_controller_epoch_that_prevents_elections(epoch, seen):
    facts = collected()
    facts.zookeeper["controller_epoch"] = epoch
    assert the_one(facts, "controller_epoch") == seen
    assert "set /controller_epoch 3" in found(facts, "controller_epoch")[0]["do"] or not epoch["exists"]


def test_finding_for_a_controller_that_can_write_nothing():
    facts = collected()
    assert found(facts, "controller_epoch") == []
    facts.zookeeper["controller_epoch"]["mzxid"] = facts.zookeeper["controller"]["czxid"] + 1
    assert "can write nothing" in the_one(facts, "controller_epoch")
    assert "delete /controller" in found(facts, "controller_epoch")[0]["do"]


def test_findings_for_servers_of_zookeeper():
    serving = {"version": [3, 8, 4], "mode": "follower", "error": None}
    facts = collected()._replace(ensemble={"z1:2181": serving, "z2:2181": dict(serving), "z3:2181": dict(serving)})
    assert found(facts, "ensemble") == []
    facts.ensemble["z2:2181"]["error"] = "connection refused"
    assert the_one(facts, "ensemble") == "1 of 3 ZooKeeper servers do not serve (z2:2181: connection refused)"
    assert found(facts, "ensemble")[0]["severity"] == "warns"
    facts.ensemble["z2:2181"] = {**serving, "mode": "standalone"}
    assert the_one(facts, "ensemble") == (
        "z2:2181 of 3 servers in the connect string is standalone, not a member of the ensemble"
    )
    assert found(facts, "ensemble")[0]["severity"] == "blocks"
    assert found(facts._replace(ensemble={"z2:2181": facts.ensemble["z2:2181"]}), "ensemble") == []
    facts.ensemble["z2:2181"] = {"version": [3, 4, 14], "mode": "leader", "error": None}
    assert the_one(facts, "ensemble") == "z2:2181 is ZooKeeper 3.4.14"


def answering(average, longest, partitions=0, **properties):
    server = {"version": [3, 8, 4], "mode": "leader", "error": None, "latency_ms": [average, longest]}
    facts = collected(ensemble={"z1:2181": server})
    for host in facts.brokers:
        node(facts, host)["file"]["properties"].update(properties)
        node(facts, host)["log_dirs"][0]["partitions"] += partitions
    return facts


def test_no_finding_for_a_zookeeper_that_answers_in_time():
    assert found(answering(0.5, 900, 4000), "zookeeper_latency") == []
    silent = {"version": None, "mode": None, "error": None, "latency_ms": None}
    assert found(collected(ensemble={"z1:2181": silent}), "zookeeper_latency") == []


def test_warning_for_an_answer_that_took_a_third_of_a_session():
    seen = the_one(answering(0.5, 6100), "zookeeper_latency")
    assert seen.startswith("z1:2181 once took 6.1 s to answer since its start; brokers' sessions expire after 18 s")
    assert found(answering(0.5, 6100, **{"zookeeper.session.timeout.ms": "30000"}), "zookeeper_latency") == []


def test_warning_for_a_zookeeper_that_is_slow_for_many_partitions():
    seen = the_one(answering(50, 900, 4000), "zookeeper_latency")
    assert seen.startswith("z1:2181 takes 50 ms to answer on average: the restart of a broker with 4")
    fewer, more = answering(50, 900, 100), answering(50, 900, 4000, **{"zookeeper.max.in.flight.requests": "50"})
    for facts in (fewer, more):
        assert found(facts, "zookeeper_latency") == []


# Change notifications ------------------------------------------------------------------------------------------------


def test_thousands_of_change_notifications_are_a_warning():
    facts = collected(notifications={"/config/changes": 1245, "/kafka-acl-changes": 999})
    (finding,) = found(facts, "notifications")
    assert finding["severity"] == "warns" and finding["seen"].startswith(
        "ZooKeeper has 1245 change notifications in /config/changes"
    )
    assert found(collected(notifications={"/config/changes": 40}), "notifications") == []


# Permissions ---------------------------------------------------------------------------------------------------------

WORLD = [{"perms": 31, "scheme": "world", "id": "anyone"}]
READABLE = [{"perms": 1, "scheme": "world", "id": "anyone"}]
STATE = "/brokers/topics/t/partitions/0/state"


def of(scheme, name, perms=31):
    """Return Kafka's own ACL with zookeeper.set.acl: all for the creator, read for the world."""
    return [{"perms": perms, "scheme": scheme, "id": name}, *READABLE]


def with_rights(acl, *identities, complete=True, root=None):
    acls = {"/": root or WORLD, "/controller_epoch": acl, STATE: acl}
    return collected(zookeeper_rights={"identities": list(identities), "complete": complete, "acls": acls})


@pytest.mark.parametrize(
    ("acl", "identities"),
    [
        (WORLD, []),
        (of("sasl", "kafka"), [["sasl", "kafka"]]),
        (of("x509", "CN=kafka"), [["ip", "10.0.0.1"], ["x509", "CN=kafka"]]),
        (of("digest", "kafka:hash="), [["digest", "kafka:hash="]]),
        (of("sasl", "kafka"), [["super", ""]]),
        (of("ip", "10.0.0.1"), [["ip", "10.0.0.1"]]),
    ],
)
def test_identities_with_all_permissions_in_zookeeper_pass(acl, identities):
    assert found(with_rights(acl, *identities), "zookeeper_acls") == []


@pytest.mark.parametrize(
    ("acl", "identities"),
    [
        (of("sasl", "kafka"), [["sasl", "quorumshift"]]),
        (of("sasl", "kafka", 1), [["sasl", "kafka"]]),
        (of("digest", "kafka:hash="), [["digest", "kafka:other="]]),
        (of("x509", "CN=kafka"), []),
    ],
)
def test_an_identity_that_cannot_roll_back_blocks(acl, identities):
    facts = with_rights(acl, *identities)
    assert the_one(facts, "zookeeper_acls").startswith(
        f"the tool may not write {STATE}, /controller_epoch in ZooKeeper"
    )
    (finding,) = found(facts, "zookeeper_acls")
    assert finding["severity"] == "blocks" and "other=" not in finding["seen"]


def test_znodes_of_the_chroot_that_cannot_be_deleted_block():
    facts = with_rights(WORLD, ["sasl", "tool"], root=of("sasl", "kafka"))
    assert the_one(facts, "zookeeper_acls") == (
        "the tool may not delete /controller and /migration in ZooKeeper, as sasl:tool: no DELETE in the ACL of the "
        "chroot"
    )


@pytest.mark.parametrize(
    ("acl", "complete"), [(of("sasl", "kafka"), False), (of("ip", "10.0.0.0/8"), True), (of("corp", "kafka"), True)]
)
def test_a_permission_that_cannot_be_known_is_a_warning(acl, complete):
    facts = with_rights(acl, ["ip", "10.0.0.1"], complete=complete)
    assert the_one(facts, "zookeeper_acls").startswith("it is unknown whether the tool may write ")
    assert found(facts, "zookeeper_acls")[0]["severity"] == "warns"


@pytest.mark.parametrize(
    ("restricts", "paths", "count"),
    [("true", ["/config/users/bob"], 1), ("true", [], 0), ("", ["/config/users/bob"], 0)],
)
def test_secrets_that_every_client_can_read_are_a_warning(restricts, paths, count):
    facts = collected(zookeeper_rights={**with_rights(WORLD).zookeeper_rights, "readable_secrets": paths})
    for broker in facts.brokers.values():
        broker["file"]["properties"]["zookeeper.set.acl"] = restricts
    warned = found(facts, "readable_secrets")
    assert len(warned) == count
    for finding in warned:
        assert finding["severity"] == "warns" and "read 1 znodes with credentials" in finding["seen"]
        assert "/config/users/bob" in finding["seen"] and "zookeeper-security-migration.sh" in finding["do"]


def test_permissions_that_could_not_be_read_are_a_warning():
    facts = collected(zookeeper_rights={"error": "ZooKeeper denies this user to read /"})
    assert the_one(facts, "zookeeper_acls").startswith(
        "the tool's rights in ZooKeeper could not be read: ZooKeeper den"
    )
    assert found(facts, "zookeeper_acls")[0]["severity"] == "warns"


# What brokers have for their own host ------------------------------------------------------------------------------


def on_loopback(tried=3, failed=("localhost:2181",), **changes):
    """Return facts of brokers that name ZooKeeper on their own host, and of controllers that do not reach it so."""
    facts = collected(**changes)
    for broker in facts.brokers.values():
        broker["file"]["properties"]["zookeeper.connect"] = "localhost:2181/kafka"
    facts.zookeeper["connect"] = "z1:2181,z2:2181/kafka"
    error = {"kind": "zookeeper", "reason": "refused", "error": "connection refused"}
    for controller in facts.controllers.values():
        targets = [{**error, "to": server, "address": server} for server in failed]
        controller["paths"] = {"tried": {"zookeeper": tried}, "failed": targets, "listen": None}
    return facts


def test_zookeeper_on_the_brokers_own_hosts_has_a_way_out():
    facts = on_loopback()
    assert the_one(facts, "zookeeper") == (
        "zookeeper.connect of b1, b2, b3 is localhost:2181/kafka, which is another server on each host. Controllers "
        "would take it"
    )
    (finding,) = found(facts, "zookeeper")
    assert "set zookeeper.connect in quorumshift_controller_config to z1:2181,z2:2181/kafka" in finding["do"]
    assert found(facts, "reachability") == []  # the same cause is reported once


def test_the_way_out_of_zookeeper_on_the_brokers_own_hosts_is_accepted():
    facts = on_loopback(failed=(), controller_config={"zookeeper.connect": "z2:2181,z1/kafka"})
    assert found(facts, "zookeeper") == [] and found(facts, "overrides") == []
    other = facts._replace(controller_config={"zookeeper.connect": "z9:2181/kafka"})
    assert the_one(other, "overrides") == (
        "zookeeper.connect of quorumshift_controller_config is z9:2181/kafka, this tool reads ZooKeeper at "
        "z1:2181,z2:2181/kafka"
    )


def test_controllers_own_setting_on_loopback_is_found_too():
    facts = on_loopback(controller_config={"zookeeper.connect": "localhost:2181/kafka"})
    assert the_one(facts, "zookeeper").startswith(
        "zookeeper.connect of quorumshift_controller_config is localhost:2181"
    )


def test_a_setting_of_controllers_is_compared_where_brokers_differ():
    facts = on_loopback(failed=(), controller_config={"zookeeper.connect": "z9:2181/kafka"})
    node(facts, "b1")["file"]["properties"]["zookeeper.connect"] = "z1:2181/kafka"
    assert the_one(facts, "overrides").startswith("zookeeper.connect of quorumshift_controller_config is z9:2181/kafka")


def test_controllers_that_share_their_hosts_with_zookeeper_may_name_their_own_host():
    assert found(on_loopback(failed=()), "zookeeper") == []


def test_zookeepers_tls_in_the_jvms_options_is_found_with_the_settings_to_write():
    facts = collected()
    options = {
        "zookeeper.ssl.client.enable": "true",
        "zookeeper.ssl.truststore.location": "/t.pem",
        "zookeeper.ssl.truststore.password": "sealed:AAAA",
    }
    for broker in facts.brokers.values():
        broker["zookeeper_tls"] = options
    assert the_one(facts, "zookeeper").startswith("b1, b2, b3 has settings of ZooKeeper's TLS in the JVM's options")
    (finding,) = found(facts, "zookeeper")
    assert "zookeeper.ssl.client.enable=true" in finding["do"]
    assert "zookeeper.ssl.truststore.password=********" in finding["do"] and "sealed" not in finding["do"]
    for broker in facts.brokers.values():
        broker["file"]["properties"].update(options)
    assert found(facts, "zookeeper") == []


@pytest.mark.parametrize(
    ("read", "seen"),
    [
        (None, None),  # without the verification
        ({"z1": {"msg": "timed out"}, "z2": {"snapshot": 0, "zxid": 7}}, None),
        ({}, "the inventory's group zookeeper has no host: changes of clients between the last gate"),
        (
            {"z1": {"msg": "timed out"}, "z2": {"msg": "timed out"}, "z3": {"unreachable": True}},
            "will keep gate after_copy closed: z1, z2: timed out; z3: no answer",
        ),
    ],
)
def test_one_server_whose_files_can_be_read_is_enough(read, seen):
    facts = collected(zookeeper_files=read)
    assert (preflight.ID["zookeeper_files"] in preflight.ids_with_facts(facts)) is (read is not None)
    if seen is None:
        assert found(facts, "zookeeper_files") == []
    else:
        assert seen in the_one(facts, "zookeeper_files")
