# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import json

import pytest
from ansible_collections.quorumshift.kafka.plugins.module_utils.formats.zookeeper import znodes


def encode(**value):
    return json.dumps(value).encode()


def test_controller():
    data = b'{"version":2,"brokerid":102,"timestamp":"1700000000000","kraftControllerEpoch":3}'
    assert znodes.controller(data) == {
        "broker_id": 102,
        "kraft_controller_epoch": 3,
        "timestamp_ms": 1700000000000,
    }
    assert znodes.controller(b'{"version":1,"brokerid":1,"timestamp":"1"}')["kraft_controller_epoch"] is None


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (None, "has no data"),
        (b"", "has no data"),
        (b"{", "is not JSON"),
        (b"\xff", "is not UTF-8"),
        (b"[1]", "is not a JSON object"),
        (b"{}", "'brokerid' is missing"),
        (b'{"brokerid":"x"}', "'brokerid' is not a whole number"),
        (b'{"brokerid":true}', "'brokerid' is not a whole number"),
        (b'{"brokerid":1.5}', "'brokerid' is not a whole number"),
        (b"[" * 100000, ""),
    ],
)
def test_malformed_value_is_an_error_with_its_path(data, reason):
    with pytest.raises(znodes.ZnodeError) as error:
        znodes.controller(data)
    assert error.value.path == "/controller"
    assert reason in error.value.reason
    assert str(error.value).startswith("/controller: ")


def test_errors_never_quote_the_value():
    data = b'{"version":1,"config":{"SCRAM-SHA-256":"stored_key=SECRET" oops}'
    with pytest.raises(znodes.ZnodeError) as error:
        znodes.config(data, "/config/users/bob")
    assert "SECRET" not in str(error.value) and error.value.__cause__ is None
    with pytest.raises(znodes.ZnodeError) as error:
        znodes.scram_credential("salt=SECRET,stored_key", "/config/users/bob", "SCRAM-SHA-256")
    assert "SECRET" not in str(error.value)


def test_controller_epoch():
    assert znodes.controller_epoch(b"42") == 42
    for data in (None, b"", b"x"):
        with pytest.raises(znodes.ZnodeError, match="whole number"):
            znodes.controller_epoch(data)


def test_migration():
    value = {
        "kraft_controller_id": 3000,
        "kraft_controller_epoch": 1,
        "kraft_metadata_offset": 71,
        "kraft_metadata_epoch": 1,
    }
    assert znodes.migration(encode(version=0, **value)) == {**value, "malformed": None}


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (None, "null data (KAFKA-19480)"),
        (b"", "no data"),
        (b"{]", "not JSON"),
        (encode(version=1), "version 1"),
        (encode(version=0, kraft_controller_id=1), "is missing"),
    ],
)
def test_malformed_migration_has_a_reason_and_no_numbers(data, reason):
    seen = znodes.migration(data)
    assert reason in seen.pop("malformed")
    assert len(seen) == 4 and set(seen.values()) == {None}


def test_feature():
    data = encode(version=2, status=1, features={"metadata.version": {"max_version_level": 21}})
    assert znodes.feature(data) == {"version": 2, "enabled": True, "features": {"metadata.version": 21}}


def test_broker_versions():
    first = znodes.broker(encode(version=1, host="h", port=9092, jmx_port=1, timestamp="5"), "/brokers/ids/1")
    assert first["endpoints"] == {"PLAINTEXT": {"host": "h", "port": 9092, "security_protocol": "PLAINTEXT"}}
    newest = encode(
        version=5,
        host="",
        port=-1,
        timestamp="5",
        rack="r1",
        endpoints=["CLIENT://[2001:db8::1]:9094", "INTERNAL://h.example:9092"],
        listener_security_protocol_map={"CLIENT": "SASL_SSL", "INTERNAL": "PLAINTEXT"},
        features={},
    )
    fifth = znodes.broker(newest, "/brokers/ids/1")
    assert fifth["rack"] == "r1"
    assert fifth["endpoints"] == {
        "CLIENT": {"host": "2001:db8::1", "port": 9094, "security_protocol": "SASL_SSL"},
        "INTERNAL": {"host": "h.example", "port": 9092, "security_protocol": "PLAINTEXT"},
    }
    with pytest.raises(znodes.ZnodeError, match="endpoint"):
        znodes.broker(encode(version=2, endpoints=["nonsense"]), "/brokers/ids/1")


def test_topic():
    data = encode(
        version=3,
        partitions={"0": [1, 2, 3], "10": [2]},
        adding_replicas={"0": [3]},
        removing_replicas={"0": [1]},
        topic_id="bm90IGEgcmVhbCB0b3BpYw",
    )
    assert znodes.topic(data, "/brokers/topics/t") == {
        "topic_id": "bm90IGEgcmVhbCB0b3BpYw",
        "partitions": {
            "0": {"replicas": [1, 2, 3], "adding": [3], "removing": [1]},
            "10": {"replicas": [2], "adding": [], "removing": []},
        },
    }
    assert znodes.topic(b'{"version":1,"partitions":{}}', "/brokers/topics/t")["topic_id"] is None
    for broken in (encode(partitions={"x": [1]}), encode(partitions={"0": ["1"]}), encode(partitions=[])):
        with pytest.raises(znodes.ZnodeError):
            znodes.topic(broken, "/brokers/topics/t")


def test_partition_state():
    data = b'{"version":1,"leader":-1,"leader_epoch":4,"controller_epoch":7,"isr":[2],"leader_recovery_state":1}'
    assert znodes.partition_state(data, "/p") == {
        "leader": -1,
        "leader_epoch": 4,
        "controller_epoch": 7,
        "isr": [2],
        "leader_recovery_state": 1,
    }


def test_config():
    assert znodes.config(None, "/c") == {}
    assert znodes.config(b'{"version":1,"config":{"a":"b"}}', "/c") == {"a": "b"}
    for broken in (b"", b"{}", b'{"config":{"a":1}}'):
        with pytest.raises(znodes.ZnodeError):
            znodes.config(broken, "/c")


def test_scram_credential():
    text = "salt=c2E=,stored_key=c3Q=,server_key=c2U=,iterations=4096"
    assert znodes.scram_credential(text, "/u", "SCRAM-SHA-256") == {
        "salt": "c2E=",
        "stored_key": "c3Q=",
        "server_key": "c2U=",
        "iterations": 4096,
    }


@pytest.mark.parametrize(
    ("name", "secret"),
    [
        ("ssl.key.password", True),
        ("listener.name.external.ssl.keystore.password", True),
        ("listener.name.x.scram-sha-256.sasl.jaas.config", True),
        ("ssl.keystore.location", False),
        ("log.cleaner.threads", False),
    ],
)
def test_password_configs(name, secret):
    assert znodes.is_password_config(name) is secret


def test_acls_are_sorted_and_distinct():
    entry = {"principal": "User:bob", "permissionType": "Allow", "operation": "DescribeConfigs", "host": "*"}
    other = {"principal": "User:CN=a,O=b", "permissionType": "DENY", "operation": "ALL", "host": "10.0.0.1"}
    assert znodes.acls(encode(version=1, acls=[entry, other, entry]), "/kafka-acl/Topic/t") == [
        {"principal": "User:CN=a,O=b", "host": "10.0.0.1", "operation": "ALL", "permission": "DENY"},
        {"principal": "User:bob", "host": "*", "operation": "DESCRIBE_CONFIGS", "permission": "ALLOW"},
    ]
    assert znodes.acls(None, "/a") == []
    assert znodes.acls(encode(version=1, acls=[{**entry, "operation": "Fly"}]), "/a")[0]["operation"] == "UNKNOWN"
    for broken in (
        encode(version=2, acls=[]),
        encode(version=1),
        encode(version=1, acls=[{**entry, "principal": "x"}]),
    ):
        with pytest.raises(znodes.ZnodeError):
            znodes.acls(broken, "/a")


def test_acl_resource_types():
    assert znodes.acl_resource_type("TransactionalId") == "TRANSACTIONAL_ID"
    assert znodes.acl_resource_type("DelegationToken") == "DELEGATION_TOKEN"
    assert znodes.acl_resource_type("Planet") == "UNKNOWN"


def test_delegation_token():
    value = {
        "version": 3,
        "owner": "User%3Aadmin",
        "tokenRequester": "User%3Aops",
        "renewers": ["User%3Abob%20x"],
        "issueTimestamp": 1,
        "maxTimestamp": 3,
        "expiryTimestamp": 2,
        "tokenId": "abc",
    }
    assert znodes.delegation_token(encode(**value), "/t") == {
        "token_id": "abc",
        "owner": "User:admin",
        "requester": "User:ops",
        "renewers": ["User:bob x"],
        "issue_ms": 1,
        "max_ms": 3,
        "expiry_ms": 2,
    }
    assert znodes.delegation_token(encode(**{**value, "version": 2}), "/t")["requester"] == "User:admin"
    assert znodes.delegation_token(None, "/t") is None
    with pytest.raises(znodes.ZnodeError, match="version 4"):
        znodes.delegation_token(encode(**{**value, "version": 4}), "/t")


def test_producer_id_block():
    data = b'{"version":1,"broker":2,"block_start":"1000","block_end":"1999"}'
    assert znodes.producer_id_block(data) == {"broker_id": 2, "first_producer_id": 1000, "next_producer_id": 2000}
    assert znodes.producer_id_block(None) is None
    with pytest.raises(znodes.ZnodeError):
        znodes.producer_id_block(b"")


def test_partitions_of_admin_requests_and_notifications():
    data = encode(version=1, partitions=[{"topic": "t", "partition": 0, "replicas": [1, 2]}])
    assert znodes.topic_partitions(data, "/admin/reassign_partitions") == [
        {"topic": "t", "partition": 0, "replicas": [1, 2]}
    ]
    assert znodes.log_dir_event(encode(version=1, broker=3, event=1), "/l") == {"broker_id": 3}
    assert znodes.config_change(encode(version=2, entity_path="topics/x"), "/c") == "topics/x"


@pytest.mark.parametrize("name", ["plain", "al ice@x*~", "CN=a,O=b", "a/b", "ü+%", "<default>"])
def test_sanitized_name_is_desanitized(name):
    znode = znodes.sanitize(name)
    assert "/" not in znode and "*" not in znode and "+" not in znode
    assert znodes.desanitize(znode) == name


def test_sanitizes_as_kafka_does():
    assert znodes.sanitize("al ice@x*~") == "al%20ice%40x%2A%7E"  # as read from a real cluster


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        ("/", "directory"),
        ("/controller", "controller"),
        ("/controller_epoch", "controller_epoch"),
        ("/migration", "migration"),
        ("/cluster/id", "cluster_id"),
        ("/brokers/ids/1", "broker"),
        ("/brokers/topics", "directory"),
        ("/brokers/topics/t", "topic"),
        ("/brokers/topics/t/partitions", "partition"),
        ("/brokers/topics/t/partitions/0", "partition"),
        ("/brokers/topics/t/partitions/0/state", "partition_state"),
        ("/config/topics/t", "topic_config"),
        ("/config/brokers/<default>", "broker_config"),
        ("/config/users/u/clients/c", "user_config"),
        ("/config/changes/config_change_0000000001", "notification"),
        ("/kafka-acl", "directory"),
        ("/kafka-acl/Group", "directory"),
        ("/kafka-acl/Group/a/b", "acl"),
        ("/kafka-acl-extended/prefixed/Topic", "directory"),
        ("/kafka-acl-extended/prefixed/Topic/x", "acl"),
        ("/kafka-acl-changes/acl_changes_0000000001", "notification"),
        ("/isr_change_notification/isr_change_0000000001", "notification"),
        ("/delegation_token/tokens/x", "delegation_token"),
        ("/delegation_token/token_changes/token_change_1", "notification"),
        ("/admin/delete_topics/t", "delete_topic"),
        ("/latest_producer_id_block", "producer_id_block"),
        ("/consumers/g/offsets/t/0", "old_consumer"),
        ("/something/else", "other"),
        ("/controller/x", "other"),
    ],
)
def test_kinds(path, kind):
    assert znodes.kind(path) == kind


def test_paths():
    assert znodes.kind(znodes.topic_path("t")) == "topic"
    assert znodes.kind(znodes.partition_state_path("t", 3)) == "partition_state"
    assert znodes.kind(znodes.config_path("ips", "<default>")) == "ip_config"
    assert znodes.kind(znodes.user_client_config_path("u", "c")) == "user_config"
