# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The planted divergences, by group: the rows of a group are planted together, and found in one run of the job."""

from __future__ import annotations

import json
import pathlib
from typing import Any, Callable, Dict, List, Tuple

from ansible_collections.quorumshift.kafka.plugins.module_utils.formats.zookeeper import znodes

from tests.integration import seeded
from tests.spark.planted import logs
from tests.spark.planted.table import Expected, Row, changed, closed, differs, keys, problem, said, undecided
from tests.spark.planted.world import OTHER_PASSWORD, PASSWORD, World, Znodes, other_key


def state(topic: str, number: int) -> str:
    return znodes.partition_state_path(topic, number)


def acl_key(
    name: str, *, kind="TOPIC", pattern="LITERAL", principal="User:alice", host="10.0.0.5", **more: str
) -> List:
    return [kind, pattern, name, principal, host, more.get("operation", "READ"), more.get("permission", "ALLOW")]


def user(name: str | None, **more: str | None) -> List:
    return [["client-id", more["client"]], ["user", name]] if "client" in more else [["user", name]]


def _assignment(number: int, replicas: List[int] | None, member: str = "partitions"):
    def change(value):
        if replicas is None:
            del value[member][str(number)]
        else:
            value[member][str(number)] = replicas

    return change


def _delete_partition(zk: Znodes) -> None:
    zk.edit(znodes.topic_path("wide"), _assignment(11, None))
    zk.delete("/brokers/topics/wide/partitions/11")


def _add_partition(zk: Znodes) -> None:
    zk.edit(znodes.topic_path("wide"), _assignment(14, [1]))
    fields = {"leader": 1, "leader_epoch": 0, "controller_epoch": 1, "isr": [1], "version": 1}
    zk.data(state("wide", 14), json.dumps(fields).encode())


def _ghost(zk: Znodes) -> None:
    zk.data(znodes.topic_path("ghost"), znodes.topic_value({"0": [1]}, logs.other_id(1)))


def _acl(zk: Znodes, part: str, **entry: str) -> None:
    zk.edit(f"/kafka-acl/Topic/acl-{part}", lambda value: value["acls"][0].update(entry))


def _move_acl(zk: Znodes, path: str, to: str) -> None:
    data = zk.read(path)
    zk.delete(path)
    zk.data(to, data)


def in_zookeeper(world: World) -> List[Row]:
    """Planted in ZooKeeper. Each row's `plant` takes the Znodes."""
    first, other = world.tokens[:2]
    token = f"{znodes.DELEGATION_TOKENS}/{first}"
    wide, alice = znodes.topic_path("wide"), "/config/users/" + znodes.sanitize("al ice@x*~")
    unicode, erin = "/config/users/" + znodes.sanitize("zoë/日本"), "/config/users/erin/clients/app%202"
    bob, ip6 = "/config/users/bob", "/config/ips/%3A%3A1"

    def of_scram(zk, path, mechanism, change):
        zk.configs(path, {mechanism: change(zk.config_of(path)[mechanism])})

    return [
        # topics and partitions
        Row(
            "a topic has another id in ZooKeeper",
            differs("topic", ["a.b_c"], "id"),
            lambda zk: zk.json(znodes.topic_path("a.b_c"), topic_id=logs.other_id(2)),
        ),
        Row(
            "a topic is missing in ZooKeeper",
            differs("topic", ["plain"]),
            lambda zk: zk.delete(znodes.topic_path("plain")),
            keys("partition", ["plain", 0], ["plain", 1]),
        ),
        Row("a topic is only in ZooKeeper", differs("topic", ["ghost"]), _ghost, keys("partition", ["ghost", 0])),
        Row("a partition is missing in ZooKeeper", differs("partition", ["wide", 11]), _delete_partition),
        Row("a partition is only in ZooKeeper", differs("partition", ["wide", 14]), _add_partition),
        Row(
            "a partition has one more replica in ZooKeeper",
            differs("partition", ["wide", 0], "replicas"),
            lambda zk: zk.edit(wide, _assignment(0, [1, 9])),
        ),
        Row(
            "a replica is being added, in ZooKeeper only",
            differs("partition", ["wide", 1], "adding"),
            lambda zk: zk.edit(wide, _assignment(1, [1], "adding_replicas")),
        ),
        Row(
            "a replica is being removed, in ZooKeeper only",
            differs("partition", ["wide", 2], "removing"),
            lambda zk: zk.edit(wide, _assignment(2, [1], "removing_replicas")),
        ),
        Row(
            "a partition has no leader in ZooKeeper",
            differs("partition", ["wide", 3], "leader"),
            lambda zk: zk.json(state("wide", 3), leader=-1),
        ),
        Row(
            "a leader epoch is higher in ZooKeeper",
            differs("partition", ["wide", 4], "leader_epoch"),
            lambda zk: zk.json(state("wide", 4), leader_epoch=5),
        ),
        Row(
            "the ISR has one more broker in ZooKeeper",
            differs("partition", ["wide", 5], "isr"),
            lambda zk: zk.json(state("wide", 5), isr=[1, 9]),
        ),
        Row(
            "an unclean leader is recovering, in ZooKeeper only",
            differs("partition", ["wide", 6], "recovery_state"),
            lambda zk: zk.json(state("wide", 6), leader_recovery_state=1),
        ),
        Row(
            "the state of a partition is missing in ZooKeeper",
            differs("partition", ["wide", 7], "leader_epoch"),
            lambda zk: zk.delete(state("wide", 7)),
        ),
        # configs
        Row(
            "a topic config has another value in ZooKeeper",
            differs("config", ["topic", "orders", "retention.ms"], "value"),
            lambda zk: zk.configs("/config/topics/orders", {"retention.ms": "9001"}),
        ),
        Row(
            "a topic config is missing in ZooKeeper",
            differs("config", ["topic", "orders", "cleanup.policy"]),
            lambda zk: zk.configs("/config/topics/orders", {"cleanup.policy": None}),
        ),
        Row(
            "a topic config is only in ZooKeeper",
            differs("config", ["topic", "wide", "max.message.bytes"]),
            lambda zk: zk.configs("/config/topics/wide", {"max.message.bytes": "4000000"}),
        ),
        Row(
            "a broker config has another value in ZooKeeper",
            differs("config", ["broker", "1", "log.cleaner.threads"], "value"),
            lambda zk: zk.configs("/config/brokers/1", {"log.cleaner.threads": "3"}),
        ),
        Row(
            "a broker config is missing in ZooKeeper",
            differs("config", ["broker", "1", "log.cleaner.io.buffer.size"]),
            lambda zk: zk.configs("/config/brokers/1", {"log.cleaner.io.buffer.size": None}),
        ),
        Row(
            "a broker config is only in ZooKeeper, of a broker that does not exist",
            differs("config", ["broker", "7", "log.cleaner.threads"]),
            lambda zk: zk.configs("/config/brokers/7", {"log.cleaner.threads": "2"}),
        ),
        Row(
            "a broker's password is another in ZooKeeper",
            differs("config", ["broker", "1", PASSWORD], "value"),
            lambda zk: zk.configs("/config/brokers/1", {PASSWORD: seeded.encoded("an other secret")}),
        ),
        Row(
            "a broker's password is encoded under a secret that the job does not have",
            undecided("config", ["broker", "1", OTHER_PASSWORD], "zookeeper"),
            lambda zk: zk.configs("/config/brokers/1", {OTHER_PASSWORD: seeded.encoded("othersecret", "another")}),
        ),
        Row(
            "a cluster-wide broker config is missing in ZooKeeper",
            differs("config", ["broker", None, "message.max.bytes"]),
            lambda zk: zk.configs("/config/brokers/<default>", {"message.max.bytes": None}),
        ),
        Row(
            "a cluster-wide broker config is only in ZooKeeper",
            differs("config", ["broker", None, "log.retention.ms"]),
            lambda zk: zk.configs("/config/brokers/<default>", {"log.retention.ms": "100000"}),
        ),
        # quotas
        Row(
            "a user's quota has another value in ZooKeeper (name: al ice@x*~)",
            differs("quota", [user("al ice@x*~"), "producer_byte_rate"], "value"),
            lambda zk: zk.configs(alice, {"producer_byte_rate": "1025"}),
        ),
        Row(
            "a user's quota is missing in ZooKeeper (name: zoë/日本)",
            differs("quota", [user("zoë/日本"), "producer_byte_rate"]),
            lambda zk: zk.configs(unicode, {"producer_byte_rate": None}),
        ),
        Row(
            "a user's quota is only in ZooKeeper (name: é/ü 100%)",
            differs("quota", [user("é/ü 100%"), "consumer_byte_rate"]),
            lambda zk: zk.configs("/config/users/" + znodes.sanitize("é/ü 100%"), {"consumer_byte_rate": "5"}),
        ),
        Row(
            "the default user's quota has another value in ZooKeeper",
            differs("quota", [user(None), "request_percentage"], "value"),
            lambda zk: zk.configs("/config/users/<default>", {"request_percentage": "50.25"}),
        ),
        Row(
            "a client id's quota has another value in ZooKeeper (name: app/1)",
            differs("quota", [[["client-id", "app/1"]], "producer_byte_rate"], "value"),
            lambda zk: zk.configs("/config/clients/app%2F1", {"producer_byte_rate": "11"}),
        ),
        Row(
            "the default client id's quota is missing in ZooKeeper",
            differs("quota", [[["client-id", None]], "consumer_byte_rate"]),
            lambda zk: zk.configs("/config/clients/<default>", {"consumer_byte_rate": None}),
        ),
        Row(
            "the quota of a user with the default client id has another value in ZooKeeper",
            differs("quota", [user("al ice@x*~", client=None), "producer_byte_rate"], "value"),
            lambda zk: zk.configs(alice + "/clients/<default>", {"producer_byte_rate": "8"}),
        ),
        Row(
            "the quota of a user with a client id has another value in ZooKeeper",
            differs("quota", [user("erin", client="app 2"), "producer_byte_rate"], "value"),
            lambda zk: zk.configs(erin, {"producer_byte_rate": "79"}),
        ),
        Row(
            "the quota of a default user with the default client id is only in ZooKeeper",
            differs("quota", [user(None, client=None), "producer_byte_rate"]),
            lambda zk: zk.configs("/config/users/<default>/clients/<default>", {"producer_byte_rate": "6"}),
        ),
        Row(
            "an address's quota has another value in ZooKeeper",
            differs("quota", [[["ip", "127.0.0.9"]], "connection_creation_rate"], "value"),
            lambda zk: zk.configs("/config/ips/127.0.0.9", {"connection_creation_rate": "4"}),
        ),
        Row(
            "an IPv6 address's quota is missing in ZooKeeper",
            differs("quota", [[["ip", "::1"]], "connection_creation_rate"]),
            lambda zk: zk.configs(ip6, {"connection_creation_rate": None}),
        ),
        Row(
            "an IPv6 address's quota is only in ZooKeeper",
            differs("quota", [[["ip", "2001:db8::7"]], "connection_creation_rate"]),
            lambda zk: zk.configs("/config/ips/2001:db8::7", {"connection_creation_rate": "3"}),
        ),
        Row(
            "the default address's quota has another value in ZooKeeper",
            differs("quota", [[["ip", None]], "connection_creation_rate"], "value"),
            lambda zk: zk.configs("/config/ips/<default>", {"connection_creation_rate": "7"}),
        ),
        # SCRAM
        Row(
            "a SCRAM-SHA-256 credential has another stored key in ZooKeeper",
            differs("scram", ["bob", "SCRAM-SHA-256"], "digest"),
            lambda zk: of_scram(zk, bob, "SCRAM-SHA-256", other_key),
        ),
        Row(
            "a SCRAM-SHA-512 credential has other iterations in ZooKeeper",
            differs("scram", ["bob", "SCRAM-SHA-512"], "iterations"),
            lambda zk: of_scram(zk, bob, "SCRAM-SHA-512", lambda text: text.replace("=8192", "=8193")),
        ),
        Row(
            "a SCRAM-SHA-512 credential has another salt in ZooKeeper",
            differs("scram", ["dave", "SCRAM-SHA-512"], "digest"),
            lambda zk: of_scram(zk, "/config/users/dave", "SCRAM-SHA-512", lambda text: other_key(text, "salt")),
        ),
        Row(
            "a SCRAM credential is missing in ZooKeeper",
            differs("scram", ["carol", "SCRAM-SHA-256"]),
            lambda zk: zk.configs("/config/users/carol", {"SCRAM-SHA-256": None}),
        ),
        Row(
            "a SCRAM credential is only in ZooKeeper, of a user with another mechanism",
            differs("scram", ["carol", "SCRAM-SHA-512"]),
            lambda zk: zk.configs(
                "/config/users/carol", {"SCRAM-SHA-512": zk.config_of("/config/users/dave")["SCRAM-SHA-512"]}
            ),
        ),
        Row(
            "two znodes in ZooKeeper are one user (a%20b and a+b)",
            said_twice("zookeeper", "scram"),
            lambda zk: zk.data("/config/users/a+b", zk.read("/config/users/a%20b")),
            keys("scram", ["a b", "SCRAM-SHA-512"]),
        ),
        # ACLs
        Row(
            "an ACL has another principal in ZooKeeper",
            changed("acl", acl_key("acl-principal", principal="User:mallory"), acl_key("acl-principal")),
            lambda zk: _acl(zk, "principal", principal="User:mallory"),
        ),
        Row(
            "an ACL has another host in ZooKeeper",
            changed("acl", acl_key("acl-host", host="*"), acl_key("acl-host")),
            lambda zk: _acl(zk, "host", host="*"),
        ),
        Row(
            "an ACL has another operation in ZooKeeper",
            changed("acl", acl_key("acl-operation", operation="WRITE"), acl_key("acl-operation")),
            lambda zk: _acl(zk, "operation", operation="Write"),
        ),
        Row(
            "an ACL denies in ZooKeeper and allows in the log",
            changed("acl", acl_key("acl-permission", permission="DENY"), acl_key("acl-permission")),
            lambda zk: _acl(zk, "permission", permissionType="Deny"),
        ),
        Row(
            "an ACL is prefixed in ZooKeeper and literal in the log",
            changed("acl", acl_key("acl-pattern", pattern="PREFIXED"), acl_key("acl-pattern")),
            lambda zk: _move_acl(zk, "/kafka-acl/Topic/acl-pattern", "/kafka-acl-extended/prefixed/Topic/acl-pattern"),
        ),
        Row(
            "an ACL is of a group in ZooKeeper and of a topic in the log",
            changed("acl", acl_key("acl-type", kind="GROUP"), acl_key("acl-type")),
            lambda zk: _move_acl(zk, "/kafka-acl/Topic/acl-type", "/kafka-acl/Group/acl-type"),
        ),
        Row(
            "an ACL is of another topic in ZooKeeper",
            changed("acl", acl_key("acl-name-2"), acl_key("acl-name")),
            lambda zk: _move_acl(zk, "/kafka-acl/Topic/acl-name", "/kafka-acl/Topic/acl-name-2"),
        ),
        Row(
            "an ACL is missing in ZooKeeper",
            differs("acl", acl_key("acl-missing")),
            lambda zk: zk.edit("/kafka-acl/Topic/acl-missing", lambda value: value.update(acls=[])),
        ),
        Row(
            "a prefixed ACL that allows is only in ZooKeeper",
            differs("acl", ["GROUP", "PREFIXED", "g-", "User:mallory", "10.0.0.1", "ALL", "ALLOW"]),
            lambda zk: zk.edit(
                "/kafka-acl-extended/prefixed/Group/g-",
                lambda value: value["acls"].append(
                    {**value["acls"][0], "principal": "User:mallory", "permissionType": "Allow"}
                ),
            ),
        ),
        Row(
            "an ACL of the cluster is only in ZooKeeper",
            differs("acl", ["CLUSTER", "LITERAL", "kafka-cluster", "User:mallory", "*", "DESCRIBE_CONFIGS", "ALLOW"]),
            lambda zk: zk.edit(
                "/kafka-acl/Cluster/kafka-cluster",
                lambda value: value["acls"].append({**value["acls"][0], "principal": "User:mallory"}),
            ),
        ),
        Row(
            "an ACL of a group with a slash in its name is only in ZooKeeper",
            problem("zookeeper", "/kafka-acl/Group/team/one"),
            lambda zk: zk.data("/kafka-acl/Group/team/one", zk.read("/kafka-acl/Topic/acl-host")),
        ),
        # delegation tokens
        *(
            Row(
                f"a delegation token has another {words} in ZooKeeper",
                differs("delegation_token", [first], field),
                lambda zk, changes=changes: zk.json(token, **changes),
            )
            for words, field, changes in (
                ("owner", "owner", {"owner": "User:mallory"}),
                ("requester", "requester", {"tokenRequester": "User:mallory"}),
                ("renewer", "renewers", {"renewers": ["User:mallory"]}),
                ("issue time", "issue", {"issueTimestamp": "1"}),
                ("expiry time", "expiry", {"expiryTimestamp": "2"}),
                ("maximum time", "max", {"maxTimestamp": "3"}),
            )
        ),
        Row(
            "a delegation token is missing in ZooKeeper",
            differs("delegation_token", [other]),
            lambda zk: zk.delete(f"{znodes.DELEGATION_TOKENS}/{other}"),
        ),
        Row(
            "a delegation token is only in ZooKeeper",
            differs("delegation_token", ["forged"]),
            lambda zk: zk.data(f"{znodes.DELEGATION_TOKENS}/forged", zk.read(token).replace(first.encode(), b"forged")),
        ),
        # brokers
        Row(
            "a broker has another port in ZooKeeper",
            differs("broker", [1], "endpoints"),
            lambda zk: zk.edit("/brokers/ids/1", lambda value: value.update(endpoints=["PLAINTEXT://127.0.0.1:1"])),
        ),
        # producer ids
        Row(
            "ZooKeeper's block of producer ids is far beyond the next id of the log",
            differs("producer_ids", [], "next"),
            lambda zk: zk.json(znodes.PRODUCER_ID_BLOCK, block_start="700000", block_end="700999"),
        ),
    ]


def in_zookeeper_mode(world: World) -> List[Row]:
    """Planted in ZooKeeper, where a broker in ZooKeeper mode has it in memory. Each row's `plant` takes the Znodes."""
    first, other = world.tokens[:2]

    def served(kind, key, field=None):
        return differs(kind, key, field, "served")

    known = "served in ZooKeeper mode: "
    wide = znodes.topic_path("wide")
    return [
        Row(
            known + "a topic's id",
            served("topic", ["plain"], "id"),
            lambda zk: zk.json(znodes.topic_path("plain"), topic_id=logs.other_id(50)),
        ),
        Row(
            known + "a partition's replicas",
            served("partition", ["wide", 0], "replicas"),
            lambda zk: zk.edit(wide, _assignment(0, [1, 9])),
        ),
        Row(
            known + "a partition's leader",
            served("partition", ["wide", 3], "leader"),
            lambda zk: zk.json(state("wide", 3), leader=-1),
        ),
        Row(
            known + "a leader epoch",
            served("partition", ["wide", 4], "leader_epoch"),
            lambda zk: zk.json(state("wide", 4), leader_epoch=5),
        ),
        Row(
            known + "an ISR",
            served("partition", ["wide", 5], "isr"),
            lambda zk: zk.json(state("wide", 5), isr=[1, 9]),
        ),
        Row(
            known + "an ACL is missing in ZooKeeper",
            served("acl", acl_key("acl-missing")),
            lambda zk: zk.edit("/kafka-acl/Topic/acl-missing", lambda value: value.update(acls=[])),
        ),
        Row(
            known + "an ACL allows more in ZooKeeper",
            changed("acl", acl_key("acl-host", host="*"), acl_key("acl-host"), "served"),
            lambda zk: _acl(zk, "host", host="*"),
        ),
        Row(
            known + "a delegation token's expiry",
            served("delegation_token", [first], "expiry"),
            lambda zk: zk.json(f"{znodes.DELEGATION_TOKENS}/{first}", expiryTimestamp="2"),
        ),
        Row(
            known + "a delegation token is missing in ZooKeeper",
            served("delegation_token", [other]),
            lambda zk: zk.delete(f"{znodes.DELEGATION_TOKENS}/{other}"),
        ),
    ]


def said_twice(view: str, kind: str) -> Any:
    """Expect that a view has an entity twice."""
    return said("differ|incomplete", rf"^{view}: {kind} .+ arrived twice", "not passed: it is there twice")


def in_log(world: World, image: Any) -> List[Row]:
    """Planted in the log. Each row's `plant` returns records; `image`: what the log holds before."""
    first, other = world.tokens[:2]
    orders, plain = logs.topic_id(image, "orders"), logs.topic_id(image, "plain")
    again, ghost = logs.other_id(3), logs.other_id(4)
    new = {"removingReplicas": [], "addingReplicas": [], "leader": 1, "leaderEpoch": 0, "partitionEpoch": 0}

    def partition_of(topic, number=0):
        return "PARTITION_RECORD", {"topicId": topic, "partitionId": number, "replicas": [1], "isr": [1], **new}, 0

    def change(number, **fields):
        return "PARTITION_CHANGE_RECORD", {"topicId": wide, "partitionId": number, **fields}, 0

    wide = logs.topic_id(image, "wide")
    return [
        Row(
            "the log removes a topic",
            differs("topic", ["plain"]),
            lambda _: [("REMOVE_TOPIC_RECORD", {"topicId": plain})],
            keys("partition", ["plain", 0], ["plain", 1]) + keys("config", ["topic", "plain", "min.insync.replicas"]),
        ),
        Row(
            "the log removes a topic and creates it with another id",
            differs("topic", ["a.b_c"], "id"),
            lambda _: [
                ("REMOVE_TOPIC_RECORD", {"topicId": logs.topic_id(image, "a.b_c")}),
                ("TOPIC_RECORD", {"name": "a.b_c", "topicId": again}),
                partition_of(again),
            ],
        ),
        Row(
            "a topic is only in the log",
            differs("topic", ["ghost"]),
            lambda _: [("TOPIC_RECORD", {"name": "ghost", "topicId": ghost}), partition_of(ghost)],
            keys("partition", ["ghost", 0]),
        ),
        Row(
            "the log has two topics of one name",
            said_twice("metadata_log", "topic"),
            lambda _: [("TOPIC_RECORD", {"name": "twice", "topicId": logs.other_id(5)})],
            keys("topic", ["twice"]),
        ),
        Row(
            "a partition is only in the log",
            differs("partition", ["wide", 14]),
            lambda _: [partition_of(wide, 14)],
        ),
        Row(
            "a partition's replicas are in another order in the log",
            differs("partition", ["orders", 3], "replicas"),
            lambda _: [logs.partition(image, "orders", 3, replicas=[9, 1])],
        ),
        Row(
            "the log adds a replica",
            differs("partition", ["wide", 1], "adding"),
            lambda _: [change(1, addingReplicas=[1])],
        ),
        Row(
            "the log removes a replica",
            differs("partition", ["wide", 2], "removing"),
            lambda _: [change(2, removingReplicas=[1])],
        ),
        Row(
            "the log elects no leader",
            differs("partition", ["wide", 3], "leader"),
            lambda _: [change(3, leader=-1)],
        ),
        Row(
            "the log elects the same leader again",
            differs("partition", ["wide", 4], "leader_epoch"),
            lambda _: [change(4, leader=1)],
        ),
        Row("the log extends the ISR", differs("partition", ["wide", 5], "isr"), lambda _: [change(5, isr=[1, 9])]),
        Row(
            "the log marks a leader as recovering",
            differs("partition", ["wide", 6], "recovery_state"),
            lambda _: [change(6, leaderRecoveryState=1)],
        ),
        Row(
            "a topic config has another value in the log",
            differs("config", ["topic", "orders", "retention.ms"], "value"),
            lambda _: [logs.config(2, "orders", "retention.ms", "9002")],
        ),
        Row(
            "the log removes a topic config",
            differs("config", ["topic", "orders", "cleanup.policy"]),
            lambda _: [logs.config(2, "orders", "cleanup.policy", None)],
        ),
        Row(
            "a broker config is only in the log",
            differs("config", ["broker", "1", "log.cleaner.backoff.ms"]),
            lambda _: [logs.config(4, "1", "log.cleaner.backoff.ms", "16000")],
        ),
        Row(
            "a broker's password is another in the log",
            differs("config", ["broker", "1", PASSWORD], "value"),
            lambda _: [logs.config(4, "1", PASSWORD, "an other secret")],
        ),
        Row(
            "the log removes a broker's password",
            differs("config", ["broker", "1", OTHER_PASSWORD]),
            lambda _: [logs.config(4, "1", OTHER_PASSWORD, None)],
        ),
        Row(
            "the log removes a cluster-wide broker config",
            differs("config", ["broker", None, "message.max.bytes"]),
            lambda _: [logs.config(4, "", "message.max.bytes", None)],
        ),
        Row(
            "a user's quota has another value in the log",
            differs("quota", [user("al ice@x*~"), "producer_byte_rate"], "value"),
            lambda _: [logs.quota({"user": "al ice@x*~"}, "producer_byte_rate", 1023.0)],
        ),
        Row(
            "the log removes the default user's quota",
            differs("quota", [user(None), "request_percentage"]),
            lambda _: [logs.quota({"user": None}, "request_percentage", None)],
        ),
        Row(
            "the log removes an IPv6 address's quota",
            differs("quota", [[["ip", "::1"]], "connection_creation_rate"]),
            lambda _: [logs.quota({"ip": "::1"}, "connection_creation_rate", None)],
        ),
        Row(
            "the quota of a user with a client id is only in the log",
            differs("quota", [user("zoë/日本", client="app 2"), "producer_byte_rate"]),
            lambda _: [logs.quota({"user": "zoë/日本", "client-id": "app 2"}, "producer_byte_rate", 1.0)],
        ),
        Row(
            "a SCRAM-SHA-256 credential has another server key in the log",
            differs("scram", ["bob", "SCRAM-SHA-256"], "digest"),
            lambda _: [logs.scram(image, "bob", 1, serverKey=b"another")],
        ),
        Row(
            "a SCRAM-SHA-512 credential has other iterations in the log",
            differs("scram", ["bob", "SCRAM-SHA-512"], "iterations"),
            lambda _: [logs.scram(image, "bob", 2, iterations=16384)],
        ),
        Row(
            "the log removes a SCRAM credential",
            differs("scram", ["carol", "SCRAM-SHA-256"]),
            lambda _: [("REMOVE_USER_SCRAM_CREDENTIAL_RECORD", {"name": "carol", "mechanism": 1})],
        ),
        Row(
            "the log removes an ACL",
            differs("acl", acl_key("acl-missing")),
            lambda _: [("REMOVE_ACCESS_CONTROL_ENTRY_RECORD", {"id": logs.acl_id(image, "acl-missing")})],
        ),
        Row(
            "the log replaces an ACL by one that denies",
            changed("acl", acl_key("acl-permission"), acl_key("acl-permission", permission="DENY")),
            lambda _: [logs.acl(image, "acl-permission", permissionType=2)],
        ),
        Row(
            "a prefixed ACL is only in the log",
            differs("acl", acl_key("acl-", pattern="PREFIXED")),
            lambda _: [logs.acl(image, "acl-host", id=logs.other_id(6), patternType=4, resourceName="acl-")],
        ),
        Row(
            "the log renews a delegation token",
            differs("delegation_token", [first], "expiry"),
            lambda _: [logs.token(image, first, expirationTimestamp=5)],
        ),
        Row(
            "the log removes a delegation token",
            differs("delegation_token", [other]),
            lambda _: [("REMOVE_DELEGATION_TOKEN_RECORD", {"tokenId": other})],
        ),
        Row(
            "a delegation token is only in the log",
            differs("delegation_token", ["forged"]),
            lambda _: [logs.token(image, first, tokenId="forged")],
        ),
        Row(
            "the log assigns a block of producer ids that ZooKeeper does not have",
            differs("producer_ids", [], "next"),
            lambda _: [("PRODUCER_IDS_RECORD", {"brokerId": 1, "brokerEpoch": 1, "nextProducerId": 9000})],
        ),
        Row(
            "a broker has another rack in the log than in ZooKeeper",
            closed("broker", [1], "zookeeper_log"),
            lambda _: [
                (
                    "REGISTER_BROKER_RECORD",
                    {
                        "brokerId": 1,
                        "incarnationId": image.brokers[1]["incarnation_id"],
                        "brokerEpoch": image.brokers[1]["epoch"],
                        "isMigratingZkBroker": True,
                        "rack": "another",
                        "endPoints": image.brokers[1]["end_points"],
                        "fenced": False,
                    },
                )
            ],
            keys("broker", [1]),
        ),
        Row(
            "the log fences a broker that is up",
            differs("broker", [1], "fenced", "served"),
            lambda _: [("FENCE_BROKER_RECORD", {"id": 1, "epoch": image.brokers[1]["epoch"]})],
        ),
        Row(
            "an unfenced broker is only in the log",
            differs("broker", [7], None, "served"),
            lambda _: [("REGISTER_BROKER_RECORD", {"brokerId": 7, "incarnationId": logs.other_id(7), "fenced": False})],
        ),
        Row(
            "a partition is only in the log, which a broker does not serve",
            differs("partition", ["orders", 4], None, "served"),
            lambda _: [partition_of(orders, 4)],
        ),
    ]


def in_other_log(world: World, image: Any) -> List[Row]:
    """Planted in the log of another controller. Each row's `plant` returns records."""
    first = world.tokens[0]
    wide = logs.topic_id(image, "wide")

    def change(number, version=0, **fields):
        return "PARTITION_CHANGE_RECORD", {"topicId": wide, "partitionId": number, **fields}, version

    def partition(number, **fields):
        return lambda _: [logs.partition(image, "wide", number, **fields)]

    def in_logs(kind, key, field=None):
        return differs(kind, key, field, "logs")

    broker = image.brokers[1]
    return [
        Row(
            "two logs: one lacks a topic",
            in_logs("topic", ["plain"]),
            lambda _: [("REMOVE_TOPIC_RECORD", {"topicId": logs.topic_id(image, "plain")})],
            keys("partition", ["plain", 0], ["plain", 1]) + keys("config", ["topic", "plain", "min.insync.replicas"]),
        ),
        Row(
            "two logs: replicas in another order",
            in_logs("partition", ["wide", 0], "replicas"),
            partition(0, replicas=[9, 1]),
        ),
        Row(
            "two logs: adding replicas",
            in_logs("partition", ["wide", 1], "adding"),
            partition(1, addingReplicas=[1]),
        ),
        Row(
            "two logs: removing replicas",
            in_logs("partition", ["wide", 2], "removing"),
            partition(2, removingReplicas=[1]),
        ),
        Row("two logs: the leader", in_logs("partition", ["wide", 3], "leader"), partition(3, leader=-1)),
        Row(
            "two logs: the leader epoch",
            in_logs("partition", ["wide", 4], "leader_epoch"),
            partition(4, leaderEpoch=3),
        ),
        Row("two logs: the ISR", in_logs("partition", ["wide", 5], "isr"), partition(5, isr=[])),
        Row(
            "two logs: the recovery state",
            in_logs("partition", ["wide", 6], "recovery_state"),
            partition(6, leaderRecoveryState=1),
        ),
        Row(
            "two logs: the partition epoch",
            in_logs("partition", ["wide", 7], "partition_epoch"),
            partition(7, partitionEpoch=9),
        ),
        Row(
            "two logs: the directories of the replicas",
            in_logs("partition", ["wide", 8], "directories"),
            lambda _: [
                (*logs.partition(image, "wide", 8, directories=[logs.other_id(8)])[:2], 1),
            ],
        ),
        Row(
            "two logs: the eligible leader replicas",
            closed("partition", ["wide", 9], "logs"),
            lambda _: [(*logs.partition(image, "wide", 9, eligibleLeaderReplicas=[1], directories=[])[:2], 2)],
        ),
        Row(
            "two logs: the state of the migration",
            in_logs("migration", [], "state"),
            lambda _: [("ZK_MIGRATION_STATE_RECORD", {"zkMigrationState": 3})],
        ),
        Row(
            "two logs: a topic config's value",
            in_logs("config", ["topic", "orders", "retention.ms"], "value"),
            lambda _: [logs.config(2, "orders", "retention.ms", "1")],
        ),
        Row(
            "two logs: a password",
            in_logs("config", ["broker", "1", PASSWORD], "value"),
            lambda _: [logs.config(4, "1", PASSWORD, "changed")],
        ),
        Row(
            "two logs: a client metrics config",
            in_logs("config", ["client_metrics", "all", "interval.ms"]),
            lambda _: [logs.config(16, "all", "interval.ms", "1000")],
        ),
        Row(
            "two logs: a group config",
            in_logs("config", ["group", "team/one", "consumer.session.timeout.ms"]),
            lambda _: [logs.config(32, "team/one", "consumer.session.timeout.ms", "46000")],
        ),
        Row(
            "two logs: a quota",
            in_logs("quota", [[["client-id", None]], "consumer_byte_rate"], "value"),
            lambda _: [logs.quota({"client-id": None}, "consumer_byte_rate", 12.5)],
        ),
        Row(
            "two logs: a credential's salt",
            in_logs("scram", ["dave", "SCRAM-SHA-512"], "digest"),
            lambda _: [logs.scram(image, "dave", 2, salt=b"another")],
        ),
        Row(
            "two logs: an ACL of a group with a slash in its name",
            in_logs("acl", acl_key("team/one", kind="GROUP")),
            lambda _: [logs.acl(image, "acl-host", id=logs.other_id(9), resourceType=3, resourceName="team/one")],
        ),
        Row(
            "two logs: a delegation token's renewers",
            in_logs("delegation_token", [first], "renewers"),
            lambda _: [logs.token(image, first, renewers=[])],
        ),
        Row(
            "two logs: the next producer id",
            in_logs("producer_ids", [], "next"),
            lambda _: [("PRODUCER_IDS_RECORD", {"brokerId": 1, "nextProducerId": 8000})],
        ),
        Row(
            "two logs: the level of a feature",
            in_logs("feature", ["metadata.version"], "level"),
            lambda _: [("FEATURE_LEVEL_RECORD", {"name": "metadata.version", "featureLevel": 20})],
        ),
        Row(
            "two logs: a broker is registered twice, with another epoch",
            in_logs("broker", [1], "epoch"),
            lambda _: [
                (
                    "REGISTER_BROKER_RECORD",
                    {
                        "brokerId": 1,
                        "incarnationId": logs.other_id(10),
                        "brokerEpoch": broker["epoch"] + 1,
                        "fenced": False,
                        "isMigratingZkBroker": True,
                    },
                )
            ],
        ),
        Row(
            "two logs: a broker is registered in one of them only",
            in_logs("broker", [9]),
            lambda _: [("REGISTER_BROKER_RECORD", {"brokerId": 9, "incarnationId": logs.other_id(11), "rack": "r"})],
        ),
    ]


ZK, LOG = "zookeeper", "metadata_log"


def in_baseline(world: World) -> List[Row]:
    """Planted in the baseline; nothing has changed since. Each row's `plant` takes the Baseline."""
    first = world.tokens[0]

    def since(kind, key, field=None, view=ZK):
        return differs(kind, key, field, "since", f"baseline:{view}")

    def value(words, kind, key, field, other, view=ZK):
        return Row(words, since(kind, key, field, view), lambda base: base.field(view, kind, key, field, other))

    def vanished(words, kind, key, fields, view=ZK):
        return Row(words, closed(kind, key), lambda base: base.add(view, kind, key, fields))

    def new(words, kind, key, view=ZK):
        return Row(words, since(kind, key, None, view), lambda base: base.remove(view, kind, key))

    return [
        value("since the baseline: a topic's id", "topic", ["orders"], "id", logs.other_id(20)),
        value("since the baseline: a partition's replicas", "partition", ["wide", 0], "replicas", [9, 1]),
        value("since the baseline: a partition's leader", "partition", ["wide", 1], "leader", 9),
        value("since the baseline: a partition's ISR", "partition", ["wide", 2], "isr", [1, 9]),
        value("since the baseline: a lower leader epoch", "partition", ["wide", 3], "leader_epoch", 50),
        value("since the baseline: a lower partition epoch", "partition", ["wide", 4], "partition_epoch", 90),
        value("since the baseline: a topic config", "config", ["topic", "orders", "retention.ms"], "value", "7"),
        value(
            "since the baseline: a password",
            "config",
            ["broker", "1", PASSWORD],
            "value",
            {"digest": "0" * 64},
        ),
        value(
            "since the baseline: a quota",
            "quota",
            [[["client-id", "app/1"]], "producer_byte_rate"],
            "value",
            10.5,
        ),
        value("since the baseline: a credential", "scram", ["bob", "SCRAM-SHA-256"], "digest", "0" * 64),
        value("since the baseline: a token's expiry", "delegation_token", [first], "expiry", 1),
        vanished(
            "since the baseline: a config vanished",
            "config",
            ["topic", "wide", "retention.ms"],
            {"value": "1"},
        ),
        vanished(
            "since the baseline: a credential vanished",
            "scram",
            ["zed", "SCRAM-SHA-256"],
            {"iterations": 4096, "digest": "0"},
        ),
        vanished("since the baseline: an ACL vanished", "acl", acl_key("acl-gone"), {}),
        vanished("since the baseline: a topic vanished", "topic", ["gone"], {"id": logs.other_id(21)}),
        new("since the baseline: an ACL appeared", "acl", acl_key("acl-missing")),
        new(
            "since the baseline: the default user's quota appeared",
            "quota",
            [user(None), "request_percentage"],
        ),
        value(
            "since the baseline, log: a topic config",
            "config",
            ["topic", "plain", "min.insync.replicas"],
            "value",
            "2",
            LOG,
        ),
        value("since the baseline, log: a lower partition epoch", "partition", ["wide", 5], "partition_epoch", 91, LOG),
        value("since the baseline, log: a feature's level", "feature", ["metadata.version"], "level", 20, LOG),
        value("since the baseline, log: a lower next producer id", "producer_ids", [], "next", 500000, LOG),
        Row(
            "since the baseline, log: a broker's registration vanished",
            closed("broker", [7]),
            lambda base: base.add(LOG, "broker", [7], {"fenced": False, "epoch": 1}),
        ),
        vanished("since the baseline, log: a topic vanished", "topic", ["lost"], {"id": logs.other_id(22)}, LOG),
    ]


def backwards(world: World) -> List[Row]:
    """Planted in the baseline, with a later change beside each. Each row's `plant` takes the Baseline."""

    def lower(words, kind, key, field, other, path, view=ZK):
        def plant(base):
            base.field(view, kind, key, field, other)
            if path:
                base.zk.touch(path)

        return Row(words, closed(kind, key), plant)

    def vanished(words, kind, key, fields, also=()):
        return Row(words, closed(kind, key), lambda base: base.add(ZK, kind, key, fields), also)

    partition = {"replicas": [1], "adding": [], "removing": [], "leader": 1, "leader_epoch": 0, "isr": [1]}
    partition.update(recovery_state=0, partition_epoch=0)
    return [
        lower(
            "backwards beside a change: the leader epoch, 50 to 0",
            "partition",
            ["wide", 3],
            "leader_epoch",
            50,
            state("wide", 3),
        ),
        lower(
            "backwards beside a change: the partition epoch of ZooKeeper, 900 to the data version",
            "partition",
            ["wide", 4],
            "partition_epoch",
            900,
            state("wide", 4),
        ),
        lower(
            "backwards beside a change: the producer ids, 500000 to the next block",
            "producer_ids",
            [],
            "next",
            500000,
            znodes.PRODUCER_ID_BLOCK,
        ),
        lower(
            "beside a change: a topic has another id, and its znode is the same",
            "topic",
            ["orders"],
            "id",
            logs.other_id(23),
            znodes.topic_path("orders"),
        ),
        Row(
            "backwards beside a change: the number of partitions of a topic id, 21 to 14",
            closed("partition", ["wide", 20]),
            lambda base: (
                base.add(ZK, "partition", ["wide", 20], partition),
                base.zk.touch(znodes.topic_path("wide")),
            ),
        ),
        vanished(
            "a topic vanished beside a created one",
            "topic",
            ["gone"],
            {"id": logs.other_id(24)},
        ),
        vanished(
            "a user's quota vanished beside a created one",
            "quota",
            [user("gone"), "producer_byte_rate"],
            {"value": 5.0},
        ),
        vanished(
            "a credential vanished beside a created one",
            "scram",
            ["gone", "SCRAM-SHA-512"],
            {"iterations": 4096, "digest": "0"},
        ),
        vanished("an ACL vanished beside a created one", "acl", acl_key("acl-gone"), {}),
        vanished(
            "a delegation token vanished beside a created one",
            "delegation_token",
            ["gone"],
            {"owner": "User:a", "requester": "User:a", "renewers": [], "issue": 1, "expiry": 2, "max": 3},
        ),
        vanished(
            "a topic's config vanished beside a created one",
            "config",
            ["topic", "gone", "retention.ms"],
            {"value": "2"},
        ),
        Row(
            "a token is created under KRaft's controller, which Kafka's broker in ZooKeeper mode does not serve",
            _lacks_token(),
        ),
    ]


def lost_in_copy(world: World) -> List[Row]:
    """Planted in a baseline of before the copy. Each row's `plant` takes the Baseline."""

    def purged(words, kind, key, fields, below=None):
        def plant(base):
            base.add(ZK, kind, key, fields)
            if below:  # as KRaft's controller deletes what its image lacks
                base.zk.data(f"{below}/purged", b"{}")
                base.zk.delete(f"{below}/purged")

        return Row(f"lost in the copy and purged: {words}", closed(kind, key), plant)

    return [
        purged("a topic", "topic", ["gone"], {"id": logs.other_id(25)}, znodes.TOPICS),
        purged("a topic's config", "config", ["topic", "gone", "retention.ms"], {"value": "2"}, "/config/topics"),
        purged("a user's quota", "quota", [user("gone"), "producer_byte_rate"], {"value": 5.0}, "/config/users"),
        purged("a credential", "scram", ["gone", "SCRAM-SHA-512"], {"iterations": 4096, "digest": "0"}),
        purged("an ACL", "acl", acl_key("acl-gone"), {}, "/kafka-acl/Topic"),
        purged(
            "a delegation token",
            "delegation_token",
            ["gone"],
            {"owner": "User:a", "requester": "User:a", "renewers": [], "issue": 1, "expiry": 2, "max": 3},
            znodes.DELEGATION_TOKENS,
        ),
    ]


def overwritten() -> Row:
    """The controller writes all configs of a topic, and so what it lacks is lost while the gate runs."""
    return Row(
        "a topic config is only in ZooKeeper until the controller overwrites it, while the gate runs",
        undecided("config", ["topic", "twice", "retention.ms"], "had another value at the first reading"),
        lambda client: client.set("/config/topics/twice", b'{"version":1,"config":{"retention.ms":"9333"}}'),
        keys("config", ["topic", "twice", "max.message.bytes"]),
    )


def beside(world: World) -> List[List[str]]:
    """Return the commands that create one of each kind, which does not excuse what vanished."""
    at = ["--bootstrap-server", str(world.broker.listeners["PLAINTEXT"])]
    as_admin = ["--bootstrap-server", str(world.broker.listeners["SASL"])]
    as_admin += ["--command-config", str(world.home / "client.properties")]
    config = ["kafka.admin.ConfigCommand", *at, "--alter", "--entity-type"]
    return [
        ["org.apache.kafka.tools.TopicCommand", *at, "--create", "--topic", "created", "--config", "retention.ms=3"],
        [*config, "users", "--entity-name", "created", "--add-config", "producer_byte_rate=5"],
        [*config, "users", "--entity-name", "created", "--add-config", "SCRAM-SHA-512=[iterations=4096,password=x]"],
        [
            *("kafka.admin.AclCommand", *at, "--add", "--allow-principal", "User:alice", "--operation", "Read"),
            *("--allow-host", "10.0.0.5", "--topic", "acl-created"),
        ],
        [
            *("org.apache.kafka.tools.DelegationTokenCommand", *as_admin, "--create"),
            *("--max-life-time-period", "86400000", "--renewer-principal", "User:dave"),
        ],
        ["org.apache.kafka.tools.ProducerPerformance", *seeded.producer(world.broker)],
    ]


def blocks(next_id: int) -> List[Tuple[Row, Dict[str, str]]]:
    """Return rows, each with the block of producer ids in ZooKeeper; KRaft's next id is `next_id`."""
    expected = differs("producer_ids", [], "next")

    def block(broker, start):
        return {"broker": broker, "block_start": str(start), "block_end": str(start + 999)}

    return [
        (
            Row("ZooKeeper's block of dual-write (broker -1) begins one block after KRaft's next id", expected),
            block(-1, next_id + 1000),
        ),
        (
            Row(
                "ZooKeeper's block of dual-write (broker -1) ends before KRaft's next id, as the copy's does",
                expected,
            ),
            block(-1, next_id - 1000),
        ),
        (
            Row(
                "ZooKeeper's block of a broker begins at KRaft's next id: both would assign it",
                expected,
            ),
            block(1, next_id),
        ),
    ]


def behind() -> Row:
    """Planted after the end of the live log: ZooKeeper cannot have it."""
    return Row(
        "a record of the log is not in ZooKeeper yet",
        said("incomplete", "dual-write is behind or stalled"),
        also=keys("config", ["topic", "orders", "retention.ms"]),
    )


# --- in KRaft mode ------------------------------------------------------------------------------------


def _config_tool(at: List[str], kind: str, name: str | None, *change: str) -> List[str]:
    entity = ["--entity-default"] if name is None else ["--entity-name", name]
    return ["kafka.admin.ConfigCommand", *at, "--alter", "--entity-type", kind, *entity, *change]


def _acl_tool(at: List[str], action: str, topic: str) -> List[str]:
    force = ["--force"] if action == "--remove" else []
    return [
        *("kafka.admin.AclCommand", *at, action, *force, "--allow-principal", "User:alice", "--operation", "Read"),
        *("--allow-host", "10.0.0.5", "--topic", topic),
    ]


def secrets_of_stale_broker(at: List[str]) -> List[Row]:
    """Changed with Kafka's tools while the metadata of broker 1 is stale. Each row's `plant` returns commands."""
    known = "broker 1 is stale: "
    expected = said("incomplete|differ", "broker:1 serves metadata up to offset", "not passed: it is named")
    return [
        Row(
            known + "the password of a user is changed, with the same iterations",
            expected,
            lambda _: [
                _config_tool(at, "users", "carol", "--add-config", "SCRAM-SHA-256=[iterations=4096,password=new]")
            ],
        ),
        Row(
            known + "its password is changed",
            expected,
            lambda _: [
                _config_tool(at, "brokers", "1", "--add-config", f"{PASSWORD}=new,{OTHER_PASSWORD}=othersecret")
            ],
        ),
    ]


def of_stale_broker(world: World, at: List[str]) -> List[Row]:
    """Changed with Kafka's tools while the metadata of broker 1 is stale. Each row's `plant` returns commands."""
    as_admin = ["--bootstrap-server", str(world.second.listeners["SASL"])]
    as_admin += ["--command-config", str(world.home / "client.properties")]

    def topic(*arguments):
        return ["org.apache.kafka.tools.TopicCommand", *at, *arguments]

    def served(kind, key, field=None):
        return differs(kind, key, field, "served", "broker:1")

    def tool(*arguments):
        return lambda _: [_config_tool(at, *arguments)]

    tokens = ["org.apache.kafka.tools.DelegationTokenCommand", *as_admin]
    known = "broker 1 is stale: "
    return [
        Row(
            known + "a topic is created",
            served("topic", ["fresh"]),
            lambda _: [topic("--create", "--topic", "fresh", "--replica-assignment", "2")],
            keys("partition", ["fresh", 0]),
        ),
        Row(
            known + "a topic is deleted",
            served("topic", ["twice"]),
            lambda _: [topic("--delete", "--topic", "twice")],
            keys("partition", ["twice", 0]),
        ),
        Row(
            known + "a topic is deleted and created again",
            served("topic", ["a.b_c"], "id"),
            lambda _: [
                topic("--delete", "--topic", "a.b_c"),
                topic("--create", "--topic", "a.b_c", "--replica-assignment", "1"),
            ],
            keys("partition", ["a.b_c", 0]),
        ),
        Row(
            known + "partitions are added",
            served("partition", ["plain", 2]),
            lambda _: [topic("--alter", "--topic", "plain", "--partitions", "3", "--replica-assignment", "1,1,2")],
        ),
        *(
            Row(known + words, served("partition", ["pair", number], field), plant, keys("partition", ["pair", number]))
            for words, number, field, plant in (
                ("replicas are in another order", 0, "replicas", lambda _: [_reassign(world, at)]),
                ("a leader is elected", 0, "leader", lambda _: [_elect(world, at)]),
                ("a leader is elected: its epoch", 0, "leader_epoch", lambda _: []),
            )
        ),
        Row(
            known + "a topic config is changed",
            served("config", ["topic", "orders", "retention.ms"], "value"),
            tool("topics", "orders", "--add-config", "retention.ms=9100"),
        ),
        Row(
            known + "a topic config is added",
            served("config", ["topic", "wide", "max.message.bytes"]),
            tool("topics", "wide", "--add-config", "max.message.bytes=3000000"),
        ),
        Row(
            known + "a topic config is removed",
            served("config", ["topic", "plain", "min.insync.replicas"]),
            tool("topics", "plain", "--delete-config", "min.insync.replicas"),
        ),
        Row(
            known + "a cluster-wide broker config is changed",
            served("config", ["broker", None, "message.max.bytes"], "value"),
            tool("brokers", None, "--add-config", "message.max.bytes=2100000"),
        ),
        Row(
            known + "a quota is changed",
            served("quota", [user("al ice@x*~"), "consumer_byte_rate"], "value"),
            tool("users", "al ice@x*~", "--add-config", "consumer_byte_rate=2049"),
        ),
        Row(
            known + "a quota is added",
            served("quota", [user("zoë/日本"), "consumer_byte_rate"]),
            tool("users", "zoë/日本", "--add-config", "consumer_byte_rate=3"),
        ),
        Row(
            known + "a quota is removed",
            served("quota", [user("al ice@x*~"), "producer_byte_rate"]),
            tool("users", "al ice@x*~", "--delete-config", "producer_byte_rate"),
        ),
        Row(
            known + "a credential has other iterations",
            served("scram", ["dave", "SCRAM-SHA-512"], "iterations"),
            tool("users", "dave", "--add-config", "SCRAM-SHA-512=[iterations=5000,password=d]"),
        ),
        Row(
            known + "a credential is added",
            served("scram", ["zed", "SCRAM-SHA-256"]),
            tool("users", "zed", "--add-config", "SCRAM-SHA-256=[iterations=4096,password=z]"),
        ),
        Row(
            known + "an ACL is added",
            served("acl", acl_key("acl-new")),
            lambda _: [_acl_tool(at, "--add", "acl-new")],
        ),
        Row(
            known + "an ACL is removed",
            served("acl", acl_key("acl-host")),
            lambda _: [_acl_tool(at, "--remove", "acl-host")],
        ),
        Row(
            known + "a delegation token is created",
            _lacks_token(),
            lambda _: [[*tokens, "--create", "--max-life-time-period", "86400000", "--renewer-principal", "User:zed"]],
        ),
    ]


def _lacks_token() -> Expected:
    """Expect that broker 1 does not serve a token that was created; its id is random."""

    def find(result):
        for difference in result["differences"]:
            if difference["kind"] == "delegation_token" and difference["sides"].get("broker:1", "") is None:
                return "differ, broker:1 lacks it", "delegation_token (exists), served by a broker: equal"
        return None

    return Expected("differ: delegation_token of a token, served by a broker", find, (("delegation_token", "*"),))


def _reassign(world: World, at: List[str]) -> List[str]:
    path = world.home / "reassign.json"
    path.write_text(json.dumps({"version": 1, "partitions": [{"topic": "pair", "partition": 0, "replicas": [2, 1]}]}))
    tool = "org.apache.kafka.tools.reassign.ReassignPartitionsCommand"
    return [tool, *at, "--reassignment-json-file", str(path), "--execute"]


def _elect(world: World, at: List[str]) -> List[str]:
    tool = "org.apache.kafka.tools.LeaderElectionCommand"
    return [tool, *at, "--election-type", "preferred", "--topic", "pair", "--partition", "0"]


def in_log_of_kraft(world: World, image: Any) -> List[Row]:
    """Planted in the log, where it differs from what a broker in KRaft mode serves. `plant` returns records."""

    def served(kind, key, field=None, broker=2):
        return differs(kind, key, field, "served", f"broker:{broker}")

    return [
        Row(
            "served in KRaft mode: the level of a feature",
            served("feature", ["metadata.version"], "level"),
            lambda _: [("FEATURE_LEVEL_RECORD", {"name": "metadata.version", "featureLevel": 20})],
        ),
        Row(
            "served in KRaft mode: a feature that the broker lacks",
            served("feature", ["group.version"]),
            lambda _: [("FEATURE_LEVEL_RECORD", {"name": "group.version", "featureLevel": 1})],
        ),
        Row(
            "served in KRaft mode: a broker is not registered",
            served("broker", [2]),
            lambda _: [
                ("UNREGISTER_BROKER_RECORD", {"brokerId": 2, "brokerEpoch": image.brokers[2]["epoch"]}),
            ],
        ),
        Row(
            "served in KRaft mode: a broker's own config",
            served("config", ["broker", "2", "log.cleaner.threads"]),
            lambda _: [logs.config(4, "2", "log.cleaner.threads", "2")],
        ),
        Row(
            "served in KRaft mode: a broker's password that it does not have",
            served("config", ["broker", "2", PASSWORD]),
            lambda _: [logs.config(4, "2", PASSWORD, "new")],
        ),
        Row(
            "served in KRaft mode: a cluster-wide config",
            served("config", ["broker", None, "log.cleaner.dedupe.buffer.size"]),
            lambda _: [logs.config(4, "", "log.cleaner.dedupe.buffer.size", "134217729")],
        ),
        Row(
            "served in KRaft mode: a group config",
            closed("config", ["group", "team/one", "consumer.session.timeout.ms"], "served"),
            lambda _: [logs.config(32, "team/one", "consumer.session.timeout.ms", "46000")],
        ),
        Row(
            "served in KRaft mode: a client metrics config",
            closed("config", ["client_metrics", "all", "interval.ms"], "served"),
            lambda _: [logs.config(16, "all", "interval.ms", "1000")],
        ),
    ]


def malformed(world: World) -> List[Row]:
    """Malformed znodes. Each row's `plant` takes the Znodes."""
    token = f"{znodes.DELEGATION_TOKENS}/{world.tokens[0]}"
    scram = "/config/users/dave"
    orders = keys("config", ["topic", "orders", "retention.ms"], ["topic", "orders", "cleanup.policy"])

    def row(words, path, plant, also=()):
        return Row(f"malformed in ZooKeeper: {words}", problem("zookeeper", path), plant, also)

    def data(words, path, text, also=()):
        return row(words, path, lambda zk: zk.data(path, text), also)

    return [
        data(
            "a topic that is not JSON",
            znodes.topic_path("plain"),
            b'{"version":3,',
            keys("topic", ["plain"]) + keys("partition", *(["plain", number] for number in range(3))),
        ),
        data("a topic's configs without `config`", "/config/topics/orders", b'{"version":1}', orders),
        data("a partition's state without a leader", state("wide", 0), b'{"isr":[1]}', keys("partition", ["wide", 0])),
        data(
            "a partition's state with an ISR of words",
            state("wide", 1),
            b'{"leader":1,"leader_epoch":0,"controller_epoch":1,"isr":["1"]}',
            keys("partition", ["wide", 1]),
        ),
        data(
            "a broker's configs that are not UTF-8",
            "/config/brokers/8",
            b"\xff\xfe",
        ),
        row(
            "a quota that is not a number",
            "/config/clients/app%2F1",
            lambda zk: zk.configs("/config/clients/app%2F1", {"producer_byte_rate": "ten"}),
            keys("quota", [[["client-id", "app/1"]], "producer_byte_rate"]),
        ),
        Row(
            "malformed in ZooKeeper: a quota with an underscore, 5_0.5 for 50.5",
            problem("zookeeper", "/config/users/<default>"),
            lambda zk: zk.configs("/config/users/<default>", {"request_percentage": "5_0.5"}),
            keys("quota", [user(None), "request_percentage"]),
        ),
        Row(
            "malformed in ZooKeeper: a partition's leader in quotes",
            problem("zookeeper", state("wide", 2)),
            lambda zk: zk.edit(state("wide", 2), lambda value: value.update(leader=str(value["leader"]))),
            keys("partition", ["wide", 2]),
        ),
        Row(
            "a quota is NaN in ZooKeeper",
            closed("quota", [[["client-id", None]], "consumer_byte_rate"], "zookeeper_log"),
            lambda zk: zk.configs("/config/clients/<default>", {"consumer_byte_rate": "NaN"}),
        ),
        row(
            "a SCRAM credential without its salt",
            scram,
            lambda zk: zk.configs(scram, {"SCRAM-SHA-512": "stored_key=YQ==,server_key=YQ==,iterations=4096"}),
            keys("scram", ["dave", "SCRAM-SHA-512"]),
        ),
        data(
            "ACLs of another version",
            "/kafka-acl/Topic/acl-name",
            b'{"version":2,"acls":[]}',
            keys("acl", acl_key("acl-name")),
        ),
        row(
            "an ACL of a resource type that Kafka does not know",
            "/kafka-acl/Bogus/x",
            lambda zk: zk.data("/kafka-acl/Bogus/x", zk.read("/kafka-acl/Topic/acl-missing")),
        ),
        row(
            "a delegation token without an owner",
            token,
            lambda zk: zk.edit(token, lambda value: value.pop("owner")),
            keys("delegation_token", [world.tokens[0]]),
        ),
        data(
            "a block of producer ids without its end",
            znodes.PRODUCER_ID_BLOCK,
            b'{"version":1,"broker":1,"block_start":"0"}',
            keys("producer_ids", []),
        ),
        data("a broker id that is no number", "/brokers/ids/x", b"{}"),
    ]


def uncovered() -> List[Row]:
    """Seen in one run, in which broker 2 has no authorizer and no tokens, and broker 1 is not in job.json."""

    def row(words, reason):
        return Row(words, said("incomplete|error|differ", reason, "not passed: it is named"))

    return [
        row("a broker has no authorizer", r"(?i)broker[: ]2\b.*acl|acl.*broker[: ]2\b"),
        row("a broker has delegation tokens switched off", r"(?i)broker[: ]2\b.*token|token.*broker[: ]2\b"),
        row("an unfenced broker is not in job.json", r"registered brokers serve: .*\b1\b"),
        row("a broker of /brokers/ids is not registered in the log", r"registered brokers serve: .*\b9\b"),
    ]


def without_baseline() -> Row:
    """After the migration is finalized, nothing else shows what was there before."""
    return Row("after_finalize has no baseline", said("incomplete|error", "baseline"))


def of_other_settings(world: World) -> List[Row]:
    """Seen in one run, in which broker 2 has other settings than broker 1 and the controller."""
    return [
        Row(
            "a broker has another delegation.token.secret.key: it gives a token another HMAC",
            differs("token_hmac", [world.tokens[0]], "digest", "served", "broker:2"),
            also=(("token_hmac", "*"),),
        ),
        Row(
            "a broker has another min.insync.replicas in its file",
            differs("setting", ["min.insync.replicas"], "value", "served", "broker:2"),
        ),
        Row(
            "a broker's file has unclean.leader.election.enable=true, which the controller's file lacks",
            differs("setting", ["unclean.leader.election.enable"], "value", "served", "controller:3000"),
        ),
        Row(
            "a broker's file has other super.users",
            differs("setting", ["super.users"], "value", "served"),
        ),
        Row(
            "the settings of a controller cannot be read",
            said("incomplete|differ", "settings of controller 3001 were not compared"),
        ),
    ]


def of_node_before() -> List[Row]:
    """Seen in one run, in which broker 2 has another setting than at the baseline, and another directory."""
    return [
        Row(
            "since the baseline: another min.insync.replicas in a broker's file",
            differs("setting", ["min.insync.replicas"], "value", "since", "broker:2"),
        ),
        Row(
            "the log has another directory id of a broker than meta.properties on its host",
            differs("broker", [2], "log_dirs", "served", "host of 2"),
        ),
    ]


def of_old_checkpoint(image: Any) -> Row:
    """Planted in a checkpoint, which is newer than the baseline and does not say when anything changed."""
    return Row(
        "since the baseline: a credential's salt, in a log with a newer checkpoint",
        differs("scram", ["dave", "SCRAM-SHA-512"], "digest", "since"),
        lambda _: [logs.scram(image, "dave", 2, salt=b"another")],
    )


def without_records(planted: Row) -> Row:
    """The same checkpoint, in a log whose older records are deleted."""
    expected = undecided("scram", ["dave", "SCRAM-SHA-512"], "Kafka has deleted the records below")
    return planted._replace(planted=f"{planted.planted}, whose older records are deleted", expected=expected)


def of_short_log() -> Row:
    """The log of another controller ends long before the leader's, and job.json says so."""
    return Row(
        "the log of another controller ends before the leader's, in NoOp records",
        said("incomplete", "log of controller 3001 was not compared .*ends at offset"),
    )


def of_other_epoch() -> Row:
    """The log of another controller has a last record that another leader wrote, as after an election."""
    return Row(
        "the log of another controller ends where the leader's does, in another epoch",
        said("incomplete", "log of controller 3001 was not compared .*in epoch"),
    )


def of_unread_log() -> Row:
    """A voter whose log could not be copied."""
    return Row(
        "the log of another controller was not read",
        said("incomplete", "log of controller 3002 was not compared .*: c3 cannot be reached"),
    )


def of_other_cluster(image: Any) -> Row:
    """A log in which another cluster has another topic of the same name."""
    topic = logs.other_id(40)
    values = {"replicas": [1], "isr": [1], "leader": 1, "leaderEpoch": 0, "partitionEpoch": 0}
    return Row(
        "the log is that of another cluster, with a topic of the same name",
        differs("topic", ["orders"], "id"),
        lambda _: [
            ("FEATURE_LEVEL_RECORD", {"name": "metadata.version", "featureLevel": 21}),
            ("TOPIC_RECORD", {"name": "orders", "topicId": topic}),
            ("PARTITION_RECORD", {"topicId": topic, "partitionId": 0, **values}, 0),
        ],
    )


def lost_writes() -> List[Row]:
    """Writes that Kafka 3.9.2 does not repeat, or does not make. `plant` returns commands."""
    return [
        Row(
            "ZooKeeper rejects the dual-write of a topic config, which Kafka does not repeat",
            differs("config", ["topic", "orders", "retention.ms"], "value"),
            lambda at: [_config_tool(at, "topics", "orders", "--add-config", "retention.ms=9200")],
        ),
        Row(
            "an address's quota is removed, which Kafka's dual-write leaves in ZooKeeper",
            differs("quota", [[["ip", "127.0.0.9"]], "connection_creation_rate"]),
            lambda at: [_config_tool(at, "ips", "127.0.0.9", "--delete-config", "connection_creation_rate")],
        ),
    ]


def lost_beside_changes() -> Row:
    """The log has another value in each snapshot; what ZooKeeper has stays."""
    key = ["topic", "orders", "retention.ms"]
    return Row(
        "ZooKeeper rejects the dual-write of a topic config that changes before each reading",
        closed("config", key, "zookeeper_log"),
    )


def off_since_baseline() -> List[Row]:
    """Seen in one run, after both brokers were restarted without an authorizer and delegation tokens."""

    def row(words, kind):
        return Row(words, said("incomplete|differ", f"brokers served {kind} at the baseline, and none does now"))

    return [
        row("all brokers lost their authorizer since the baseline", "acl"),
        row("all brokers switched delegation tokens off since the baseline", "delegation_token"),
    ]


def lost_credentials() -> Row:
    """ScramDelta.apply of 3.9.2 drops the whole mechanism if it meets a removal first, as in a log that is loaded."""
    return Row(
        "a broker restarts after a user was removed, and drops all credentials of the mechanism (Kafka 3.9.2)",
        differs("scram", ["bob", "SCRAM-SHA-256"], None, "served", "broker:2"),
    )


def held_back() -> Row:
    """The thread of the controller that writes to ZooKeeper stands still. `plant` returns commands."""
    return Row(
        "dual-write stands still, a quota is changed, and each new snapshot of the log has it",
        said("incomplete", "dual-write is behind or stalled"),
        lambda at: [_config_tool(at, "users", "zoë/日本", "--add-config", "producer_byte_rate=76")],
        keys("quota", [user("zoë/日本"), "producer_byte_rate"]),
    )


def old_nonces() -> List[Row]:
    """Answers and results of another submission."""
    return [
        Row(
            "a new snapshot of the log has the nonce of another job",
            said("incomplete", "answers another request"),
            also=keys("partition", ["wide", 9]),
        ),
        Row("result.json is that of an earlier job", said("error", "the result is of another submission")),
    ]


def wrong_addresses() -> List[Row]:
    """Seen before anything is read, in one run."""
    return [
        Row("ZooKeeper's chroot is another", said("error", "view zookeeper .*does not exist in ZooKeeper", "error")),
        Row("a broker does not listen", said("error", "view broker:3 could not be read", "error")),
        Row("a broker's address is a controller's", said("error", "view broker:4 could not be read", "error")),
    ]


def wrong_identities() -> List[Row]:
    """Seen while the views are read, in one run."""
    return [
        Row("a broker's address is another broker's", said("error", "another broker has this address", "error")),
        Row(
            "the baseline was made under another key",
            said("error", "view baseline:metadata_log .*another digest key", "error"),
        ),
    ]


def other_clusters() -> List[Row]:
    """Seen in one run for another cluster."""
    return [
        Row("a broker is of another cluster", said("error", "view broker:1 .*is of cluster", "error")),
        Row("the baseline is of another cluster", said("error", "view baseline:.*is of cluster", "error")),
    ]


def suspended() -> Row:
    """Broker 2 is suspended: its connections are accepted and never answered."""
    return Row("a broker is suspended", said("error", "view broker:2 could not be read", "error"))


def other_zookeeper() -> Row:
    return Row("ZooKeeper is of another cluster", said("error", "view zookeeper .*holds cluster", "error"))


def broken_logs() -> List[Tuple[Row, Callable[[pathlib.Path, int], Any] | None]]:
    """Return rows, each with what breaks the log in a directory, which ends at an offset; None for its archive. The log
    of row N is that of controller 3100 + N."""

    def row(number, words, reason):
        view = f"metadata_log:{3100 + number}"
        return Row(f"broken log: {words}", said("error", f"view {view} could not be read: .*{reason}", "error"))

    def segment(directory):
        return max(directory.glob("*.log"))

    def truncate(directory, _end):
        segment(directory).write_bytes(segment(directory).read_bytes()[:-5])

    def flip(directory, _end):
        raw = bytearray(segment(directory).read_bytes())
        raw[-1] ^= 1  # of a record: a checksum leaves out the beginning of a batch
        segment(directory).write_bytes(raw)

    def shorten(directory, end):
        logs.cut(segment(directory), lambda batch: batch.last_offset < end - 3)

    def gap(directory, end):
        logs.cut(segment(directory), lambda batch: not end - 8 <= batch.base_offset < end - 4)

    def begin(directory, end):
        logs.cut(segment(directory), lambda batch: batch.base_offset >= end // 2)
        segment(directory).rename(directory / f"{end // 2:020d}.log")

    def replaced(*record):
        return lambda directory, _end: logs.rewrite(directory, [record], -1)

    def unknown(directory, end):
        logs.append(str(directory), end, [], values=[logs.of_type(2, 9)])

    def compressed(directory, end):
        logs.append(str(directory), end, [], values=[b"\x01\x14\x00\x00"], attributes=4)

    def empty(directory, _end):
        segment(directory).unlink()

    return [
        (row(0, "its last batch is truncated", "short of the high watermark"), truncate),
        (row(1, "a bit is flipped", "wrong checksum|longer than|wrong|expected"), flip),
        (row(2, "it ends three records before the high watermark", "short of the high watermark"), shorten),
        (row(3, "records are missing in its middle", "offset"), gap),
        (row(4, "it begins in the middle, without a checkpoint", "no checkpoint"), begin),
        (
            row(5, "it removes a topic that does not exist", "which does not exist"),
            replaced("REMOVE_TOPIC_RECORD", {"topicId": logs.other_id(30)}),
        ),
        (
            row(6, "it fences a broker of another epoch", "broker 1 epoch 3"),
            replaced("FENCE_BROKER_RECORD", {"id": 1, "epoch": 3}),
        ),
        (row(7, "it has a record of an unknown version", "TOPIC_RECORD version 9"), unknown),
        (row(8, "it has a compressed batch", "compressed"), compressed),
        (row(9, "it has no file", "short of the high watermark"), empty),
        (row(10, "its archive has another SHA-256", "has SHA-256 .* expected 0000"), None),
    ]
