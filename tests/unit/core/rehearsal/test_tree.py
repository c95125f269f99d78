# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""tree: a rehearsal's znodes from those of a cluster."""

from __future__ import annotations

import base64
import itertools
import json

import pytest
from ansible_collections.quorumshift.kafka.plugins.module_utils.core.rehearsal import tree
from ansible_collections.quorumshift.kafka.plugins.module_utils.core.run import rehearsal_id
from ansible_collections.quorumshift.kafka.plugins.module_utils.formats.zookeeper import znodes

PERSISTENT = znodes.Stat(1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 1)
EPHEMERAL = PERSISTENT._replace(ephemeralOwner=7)
SECRET = base64.b64encode(b"s" * 64).decode()
SCRAM = f"salt={SECRET},stored_key={SECRET},server_key={SECRET},iterations=8192"
TOPIC_ID = "8kQ0N4lHTtWnbmVVbGVYbA"


def node(path, value=None, stat=PERSISTENT):
    data = value if value is None or isinstance(value, bytes) else json.dumps(value).encode()
    return znodes.Znode(path, data, [{"perms": 31, "scheme": "sasl", "id": "kafka"}], stat)


def topic(name, partitions, **more):
    return node(
        f"/brokers/topics/{name}",
        {
            "version": 3,
            "topic_id": TOPIC_ID,
            "partitions": partitions,
            "adding_replicas": {},
            "removing_replicas": {},
            **more,
        },
    )


def state(name, partition, leader, isr, **more):
    value = {"controller_epoch": 9, "leader": leader, "version": 1, "leader_epoch": 4, "isr": isr, **more}
    return node(f"/brokers/topics/{name}/partitions/{partition}/state", value)


def broker(number, host="b{0}.example.com"):
    value = {"version": 5, "endpoints": [f"PLAINTEXT://{host.format(number)}:9092"], "timestamp": "1"}
    return node(f"/brokers/ids/{number}", value, EPHEMERAL)


def configs(path, **values):
    return node(f"/config/{path}", {"version": 1, "config": {key.replace("_", "."): v for key, v in values.items()}})


def cluster(*more, brokers=(1, 2, 5)):
    return [
        node("/"),
        node("/cluster"),
        node("/cluster/id", {"version": "1", "id": "phUKKf3TSny1o9Yap379dw"}),
        node("/brokers"),
        node("/brokers/ids"),
        *map(broker, brokers),
        node("/brokers/topics"),
        *more,
    ]


def fresh():
    counter = itertools.count(1)
    return lambda size: bytes([next(counter) % 256]) * size


def rehearse(nodes, hosts=3):
    """Return ({path: value}, Rehearsal, Plan)."""
    source = tree.survey(nodes)
    plan = tree.plan(source, hosts)
    made = tree.Rehearsal(source, plan.brokers, rehearsal_id.new(fresh()), fresh())
    found = {each.path: json.loads(each.data) if each.data else each.data for each in made.nodes(nodes)}
    return found, made, plan


def test_a_cluster_of_three_keeps_ids_assignments_leaders_and_epochs():
    nodes = cluster(topic("orders", {"0": [5, 1, 2]}), state("orders", 0, 1, [1, 2, 5]))
    found, made, plan = rehearse(nodes)
    assert plan.brokers == [1, 2, 5] and len(plan.controllers) == 3 and not set(plan.controllers) & {1, 2, 5}
    assert found["/brokers/topics/orders"]["partitions"] == {"0": [5, 1, 2]}
    assert found["/brokers/topics/orders"]["topic_id"] == TOPIC_ID
    assert found["/brokers/topics/orders/partitions/0/state"] == {
        **{"controller_epoch": 9, "leader": 1, "version": 1, "leader_epoch": 4, "isr": [5, 1, 2]}
    }
    assert made.blocks == {} and made.left == {} and dict(made.replicas) == {1: 1, 2: 1, 5: 1}
    assert not [path for path in found if path.startswith("/brokers/ids/")]
    own = found["/cluster/id"]["id"]
    assert rehearsal_id.is_rehearsal(own) and len(own) == 22 and len(base64.urlsafe_b64decode(own + "==")) == 16
    assert base64.urlsafe_b64encode(base64.urlsafe_b64decode(own + "==")).decode().rstrip("=") == own


@pytest.mark.parametrize("brokers", [4, 7, 30])
def test_more_brokers_are_dealt_out_and_no_partition_has_a_broker_twice(brokers):
    ids = list(range(1, brokers + 1))
    partitions = {str(n): [ids[(n + k) % brokers] for k in range(3)] for n in range(90)}
    nodes = cluster(
        topic("orders", partitions),
        *(state("orders", n, replicas[0], replicas) for n, replicas in partitions.items()),
        brokers=ids,
    )
    found, made, plan = rehearse(nodes)
    assert plan.brokers == [1, 2, 3]
    for n, replicas in partitions.items():
        placed = found["/brokers/topics/orders"]["partitions"][n]
        assert sorted(placed) == [1, 2, 3]
        kept = found[f"/brokers/topics/orders/partitions/{n}/state"]
        assert kept["leader"] == placed[0] and kept["isr"] == placed
        assert replicas[0] not in (1, 2, 3) or placed[0] == replicas[0]
    leaders = [found["/brokers/topics/orders"]["partitions"][n][0] for n in partitions]
    assert all(20 <= leaders.count(number) <= 50 for number in (1, 2, 3))
    assert not made.left


def test_more_replicas_than_brokers_are_cut_and_min_isr_keeps_its_slack():
    nodes = cluster(
        topic("wide", {"0": [1, 2, 3, 4, 5]}),
        configs("topics/wide", min_insync_replicas="4"),
        topic("narrow", {"0": [4, 5]}),
        configs("topics/narrow", min_insync_replicas="2", retention_ms="1"),
        brokers=(1, 2, 3, 4, 5),
    )
    found, made, _plan = rehearse(nodes)
    assert found["/brokers/topics/wide"]["partitions"] == {"0": [1, 2, 3]}
    assert found["/config/topics/wide"]["config"] == {"min.insync.replicas": "2"}
    assert len(set(found["/brokers/topics/narrow"]["partitions"]["0"])) == 2
    assert found["/config/topics/narrow"]["config"] == {"min.insync.replicas": "2", "retention.ms": "1"}
    assert made.left["partition with more replicas than the rehearsal has brokers"] == 1


def test_secrets_and_what_names_a_host_are_gone_and_named():
    nodes = cluster(
        configs("users/app", producer_byte_rate="1048576"),
        node("/config/users/scram", {"version": 1, "config": {"SCRAM-SHA-512": SCRAM, "SCRAM-SHA-256": SCRAM}}),
        node("/config/users/app/clients"),
        configs(
            "brokers/1",
            **{
                "listener.name.external.ssl.keystore.password": SECRET,
                "advertised.listeners": "PLAINTEXT://real:9092",
                "listeners": "PLAINTEXT://real:9092",
                "metric.reporters": "com.example.Reporter",
                "com.example.token": SECRET,
                "log.cleaner.threads": "2",
                "cleanup.policy": "delete",
            },
        ),
        configs("brokers/<default>", message_max_bytes="2097152"),
        configs("topics/orders", **{"com.example.key": SECRET, "retention.ms": "5", "remote.storage.enable": "true"}),
    )
    source = tree.survey(nodes)
    made = tree.Rehearsal(source, [1, 2, 5], rehearsal_id.new(fresh()), fresh())
    written = list(made.nodes(nodes))
    assert not [each.path for each in written if SECRET.encode() in (each.data or b"")]
    assert not [each.path for each in written if b"real:9092" in (each.data or b"")]
    assert all(each.acl == tree.OPEN_ACL for each in written)
    found = {each.path: each.data for each in written}
    assert json.loads(found["/config/brokers/1"])["config"] == {"log.cleaner.threads": "2", "cleanup.policy": "delete"}
    assert json.loads(found["/config/brokers/<default>"])["config"] == {"message.max.bytes": "2097152"}
    assert json.loads(found["/config/topics/orders"])["config"] == {"retention.ms": "5"}
    for mechanism, size in (("SCRAM-SHA-256", 32), ("SCRAM-SHA-512", 64)):
        text = json.loads(found["/config/users/scram"])["config"][mechanism]
        credential = znodes.scram_credential(text, "/config/users/scram", mechanism)
        assert credential["iterations"] == 8192
        assert len(base64.b64decode(credential["stored_key"])) == size
    named = " ".join(made.left)
    for name in ("listener.name.external.ssl.keystore.password", "listeners", "metric.reporters", "com.example.key"):
        assert name in named
    assert SECRET not in named


def test_what_would_block_the_cluster_is_said_and_not_rehearsed():
    nodes = cluster(
        topic("moving", {"0": [1, 2, 5]}, adding_replicas={"0": [5]}, removing_replicas={"0": [1]}),
        state("moving", 0, 1, [1, 2]),
        configs("topics/moving", **{"leader.replication.throttled.replicas": "0:1"}),
        node("/admin/delete_topics/gone"),
        node("/admin/reassign_partitions", {"version": 1, "partitions": []}),
        node(
            "/migration",
            {
                **{"version": 0, "kraft_metadata_offset": 12, "kraft_controller_id": 1, "kraft_metadata_epoch": 1},
                "kraft_controller_epoch": 1,
            },
        ),
        node("/kafka-acl/Group/a/b", {"version": 1, "acls": []}),
        node("/kafka-acl/Group/a", {"version": 1, "acls": []}),
        node("/controller", {"version": 1, "brokerid": 1}, EPHEMERAL),
        node("/config/changes/config_change_1", {"entity_path": "topics/x"}),
        node("/confluent/x", b"\0"),
    )
    found, made, _plan = rehearse(nodes)
    assert found["/brokers/topics/moving"]["partitions"] == {"0": [2, 5]}
    assert found["/brokers/topics/moving"]["adding_replicas"] == {}
    assert found["/brokers/topics/moving/partitions/0/state"]["isr"] == [2, 5]
    assert found["/brokers/topics/moving/partitions/0/state"]["leader"] == 2
    gone = ("/admin/", "/migration", "/controller", "/config/changes/", "/confluent", "/kafka-acl/Group/a/")
    assert not [path for path in found if path.startswith(gone)]
    assert "/kafka-acl/Group/a" in found
    assert sum(made.blocks.values()) == 7, made.blocks
    assert any("/confluent/x" in name for name in made.left)


def test_a_state_of_a_partition_that_its_topic_no_longer_has_is_left_out():
    found, _made, _plan = rehearse(cluster(topic("t", {"0": [1]}), state("t", 0, 1, [1]), state("t", 3, 1, [1])))
    assert "/brokers/topics/t/partitions/3/state" not in found and "/brokers/topics/t/partitions/0/state" in found


def test_an_old_form_of_a_topic_stays_in_it():
    nodes = cluster(node("/brokers/topics/old", {"version": 1, "partitions": {"0": [1, 2]}}))
    assert rehearse(nodes)[0]["/brokers/topics/old"] == {"version": 1, "partitions": {"0": [1, 2]}}


def test_the_block_of_producer_ids_stays_with_a_broker_that_is_there():
    value = {"version": 1, "broker": 4, "block_start": "1000", "block_end": "1999"}
    found, _made, _plan = rehearse(
        cluster(topic("t", {"0": [4]}), node("/latest_producer_id_block", value), brokers=(1, 2, 3, 4))
    )
    assert found["/latest_producer_id_block"]["broker"] in (1, 2, 3)
    assert found["/latest_producer_id_block"]["block_end"] == "1999"


def test_a_backup_without_running_brokers_takes_those_of_the_replicas():
    _found, _made, plan = rehearse(cluster(topic("t", {"0": [901, 7]}), brokers=()))
    assert plan.brokers == [7, 901] and plan.controllers == [900, 902, 903]


def test_the_survey_counts():
    source = tree.survey(cluster(topic("t", {"0": [1, 2], "1": [2]}), state("t", 0, 1, [1])))
    assert (source.topics, source.partitions, source.replicas) == (1, 2, 3)
    assert source.replication == {"t": 1} and source.endpoints == [f"b{n}.example.com" for n in (1, 2, 5)]


@pytest.mark.parametrize(
    ("name", "kept"),
    [
        ("broker.heartbeat.interval.ms", True),
        ("num.recovery.threads.per.data.dir", True),
        ("auto.leader.rebalance.enable", True),
        ("compression.type", True),
        ("broker.id", False),
        ("zookeeper.connect", False),
        ("zookeeper.session.timeout.ms", False),
        ("log.dirs", False),
        ("ssl.keystore.location", False),
        ("authorizer.class.name", False),
        ("replica.alter.log.dirs.io.max.bytes.per.second", True),
        ("remote.log.storage.system.enable", False),
        ("com.example.anything", False),
    ],
)
def test_settings_that_a_rehearsal_takes_over(name, kept):
    assert tree.is_comparable(name) == kept
    assert tree.comparable({name: "1", "log.dirs": "/d"}) == ({name: "1"} if kept else {})
