# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The view of a broker with responses that a healthy broker does not send; kafka-python encodes them.

tests/spark/test_brokers.py tests the view with real brokers.
"""

from __future__ import annotations

import contextlib
import json
import random
import struct
import uuid
from types import SimpleNamespace

import pytest
from ansible_collections.quorumshift.kafka.plugins.module_utils.formats.messages import messages
from ansible_collections.quorumshift.kafka.plugins.module_utils.formats.requests import apis
from ansible_collections.quorumshift.kafka.plugins.module_utils.formats.requests import broker_requests as requests
from ansible_collections.quorumshift.kafka.plugins.module_utils.formats.requests.apis import Answer, MalformedAnswer
from ansible_collections.quorumshift.kafka.plugins.module_utils.settings.addresses import HostPort
from ansible_collections.quorumshift.kafka.plugins.module_utils.wire import kafka_wire
from kafka.protocol.admin import (
    DescribeAclsResponse,
    DescribeClientQuotasResponse,
    DescribeConfigsResponse,
    DescribeUserScramCredentialsResponse,
)
from kafka.protocol.metadata import MetadataResponse
from quorumshift_spark import normal_form as form
from quorumshift_spark.views import Absent, Statement, ViewError, brokers

from tests.unit.spark.realistic import expanded

ADDRESS = HostPort("broker.example", 9092)
ID = uuid.UUID(int=7)
Topic = MetadataResponse.MetadataResponseTopic
Partition = Topic.MetadataResponsePartition
Configs = DescribeConfigsResponse.DescribeConfigsResult
Config = Configs.DescribeConfigsResourceResult


def topic(name, partitions=(), error=0):
    fields = {"error_code": error, "name": name, "topic_id": ID, "is_internal": False}
    return Topic(**fields, partitions=list(partitions), authorized_operations=set())


def partition(number, leader=1, error=0, offline=()):
    return Partition(
        error_code=error,
        partition_index=number,
        leader_id=leader,
        leader_epoch=3,
        replica_nodes=[2, 1],
        isr_nodes=[2, 1],
        offline_replicas=list(offline),
    )


def metadata(*topics, nodes=(1,), cluster="this"):
    known = [MetadataResponse.MetadataResponseBroker(node_id=node, host="h", port=1, rack=None) for node in nodes]
    return MetadataResponse[12](
        throttle_time_ms=0, brokers=known, cluster_id=cluster, controller_id=1, topics=list(topics)
    ).encode()


def config(name, value, source, sensitive=False, synonyms=()):
    listed = [Config.DescribeConfigsSynonym(name=name, value=value, source=source) for name, value, source in synonyms]
    return Config(
        name=name,
        value=value,
        read_only=False,
        config_source=source,
        is_sensitive=sensitive,
        synonyms=listed,
        config_type=2,
        documentation=None,
    )


def configs(kind, name, *listed, error=0, message=None):
    return Configs(
        error_code=error, error_message=message, resource_type=kind, resource_name=name, configs=list(listed)
    )


def described(*results):
    return DescribeConfigsResponse[4](throttle_time_ms=0, results=list(results)).encode()


def quotas(error=0, message=None):
    entity = DescribeClientQuotasResponse.EntryData.EntityData(entity_type="user", entity_name=None)
    value = DescribeClientQuotasResponse.EntryData.ValueData(key="producer_byte_rate", value=10.0)
    entry = DescribeClientQuotasResponse.EntryData(entity=[entity], values=[value])
    return DescribeClientQuotasResponse[1](
        throttle_time_ms=0, error_code=error, error_message=message, entries=[] if error else [entry]
    ).encode()


def acls(error=0, message=None):
    return DescribeAclsResponse[3](throttle_time_ms=0, error_code=error, error_message=message, resources=[]).encode()


def scram():
    return DescribeUserScramCredentialsResponse[0](
        throttle_time_ms=0, error_code=0, error_message=None, results=[]
    ).encode()


def tokens(error=0):
    return struct.pack(">h", error) + b"\1" + struct.pack(">i", 0) + b"\0"


BROKER_ITSELF = described(configs(4, "1"), configs(4, ""))


@pytest.fixture
def broker(monkeypatch):
    """broker({request: response or list of responses}): a view of broker 1 that gets these, and its requests."""
    sent = []
    versions = kafka_wire.ApiVersions(dict.fromkeys((0, 4), (0, 9)), {}, {}, -1, False)

    def view(responses, **options):
        given = {
            apis.METADATA: metadata(),
            apis.DESCRIBE_CONFIGS: BROKER_ITSELF,
            apis.DESCRIBE_CLIENT_QUOTAS: quotas(),
            apis.DESCRIBE_SCRAM: scram(),
            apis.DESCRIBE_ACLS: acls(),
            apis.DESCRIBE_TOKENS: tokens(),
            **responses,
        }
        queues = {api: list(a) if isinstance(a, list) else None for api, a in given.items()}

        def request(asked, _timeout, _largest):
            sent.append((asked.api.name, asked))
            queue = queues[asked.api]
            return Answer(asked.api, asked.api.newest, given[asked.api] if queue is None else queue.pop(0))

        connection = SimpleNamespace(address=ADDRESS, api_versions=lambda: versions, request=request)
        monkeypatch.setattr(brokers, "KafkaConnection", lambda *_arguments: contextlib.nullcontext(connection))
        return brokers.BrokerView(1, ADDRESS, form.Digests(b"key"), **options), sent

    return view


def read(view):
    *entities, statement = expanded("broker:1", view.read(None))
    assert isinstance(statement, Statement)
    return entities, statement


def fields_of(entities, kind):
    return [
        ({name: json.loads(text) for name, text in entity.fields.items()}) for entity in entities if entity.kind == kind
    ]


def test_leader_without_the_listener_is_a_problem_without_a_value(broker):
    listed = topic("a", [partition(0, -1, error=72), partition(1, -1, error=5, offline=[2]), partition(2)])
    responses = [BROKER_ITSELF, described(configs(2, "a"))]
    view, _sent = broker({apis.METADATA: metadata(listed), apis.DESCRIBE_CONFIGS: responses})
    entities, statement = read(view)
    partitions = fields_of(entities, "partition")
    assert [fields.get("leader", "left out") for fields in partitions] == ["left out", -1, 1]
    assert all(fields["replicas"] == [2, 1] and fields["isr"] == [1, 2] for fields in partitions)
    assert statement.state["offline_replicas"] == 1
    ((where, reason),) = statement.problems
    assert where == "broker 1: Metadata" and "the leaders of 1 partitions (a-0) have no listener" in reason


def test_only_configs_that_were_set_are_entities(broker):
    itself = configs(
        4,
        "1",
        config("log.retention.ms", "5", 2, synonyms=[("log.retention.ms", "5", 2), ("log.retention.hours", "1", 2)]),
        config("num.io.threads", "9", 4, synonyms=[("num.io.threads", "9", 4)]),
        config("x.password", None, 2, sensitive=True, synonyms=[("x.password", None, 2)]),
    )
    default = configs(4, "", config("num.io.threads", "8", 3, synonyms=[("num.io.threads", "8", 3)]))
    of_topic = configs(2, "a", config("retention.ms", "7", 1), config("flush.ms", "1", 3), config("segment.ms", "2", 5))
    view, _sent = broker(
        {
            apis.METADATA: metadata(topic("a")),
            apis.DESCRIBE_CONFIGS: [described(itself, default), described(of_topic)],
        }
    )
    found = {entity.key: entity.fields["value"] for entity in read(view)[0] if entity.kind == "config"}
    assert found == {
        '["broker","1","log.retention.ms"]': '"5"',
        '["broker","1","x.password"]': '{"digest":null}',
        '["broker",null,"num.io.threads"]': '"8"',
        '["topic","a","retention.ms"]': '"7"',
    }


def test_configs_that_are_decoded_once_are_what_the_generic_decoder_returns():
    """Over many topics with values that come again, that change at one place, and lists that are shorter."""
    chance, reader = random.Random(3), requests.ConfigsReader()
    for _answer in range(20):
        listed = []
        for number in range(50):
            values = [(f"c{n}", chance.choice((None, "1", "12", "x" * 200))) for n in range(chance.choice((0, 5, 6)))]
            given = [
                config(name, value, chance.choice((1, 5)), synonyms=[(name, "s", 5)] * (number % 2))
                for name, value in values
            ]
            listed.append(configs(2, f"t{number}", *given, error=chance.choice((0, 3))))
        data = described(*listed)
        answer = Answer(apis.DESCRIBE_CONFIGS, 4, data)
        results = answer.fields()["results"]
        assert reader.read(answer) == results
        for broken in (data[:-1], data + b"\0", data[:20], data[:-1] + b"\1"):
            with pytest.raises(MalformedAnswer):
                requests.ConfigsReader().read(answer._replace(data=broken))
        for version in range(apis.DESCRIBE_CONFIGS.oldest, apis.DESCRIBE_CONFIGS.newest):
            older = Answer(answer.api, version, messages.encode(answer.message, version, {"results": results}))
            shared = {"configType", "documentation"}
            read_configs = [result["configs"] for result in requests.ConfigsReader().read(older)]
            assert [[{**config, **dict.fromkeys(shared)} for config in listed] for listed in read_configs] == [
                [{**config, **dict.fromkeys(shared)} for config in result["configs"]] for result in results
            ]


def test_requests_for_topic_configs_are_bounded(broker):
    names = [f"t{number}" for number in range(5)]
    pages = [names[:2], names[2:4], names[4:]]
    responses = [described(*(configs(2, name) for name in page)) for page in pages]
    view, sent = broker(
        {
            apis.METADATA: metadata(*map(topic, names)),
            apis.DESCRIBE_CONFIGS: [BROKER_ITSELF, *responses],
        },
        topics_a_request=2,
    )
    read(view)
    bodies = [body for name, body in sent if name == "DescribeConfigs"][1:]
    assert bodies == [requests.configs([(2, name) for name in page], synonyms=False) for page in pages]


def test_topic_deleted_between_two_requests_has_no_configs(broker):
    deleted = described(configs(2, "a", error=3))
    view, _sent = broker({apis.METADATA: metadata(topic("a")), apis.DESCRIBE_CONFIGS: [BROKER_ITSELF, deleted]})
    assert fields_of(read(view)[0], "config") == []


@pytest.mark.parametrize(
    ("responses", "message"),
    [
        (
            {apis.DESCRIBE_CONFIGS: described(configs(4, "1"))},
            "DescribeConfigs left out 1 of 2 resources, first ''",
        ),
        (
            {apis.DESCRIBE_CONFIGS: described(configs(4, "1", error=42, message="expected 3"), configs(4, ""))},
            "another broker has this address: expected 3",
        ),
        (
            {apis.METADATA: metadata(topic("a", error=29))},
            "Metadata of topic a returned TOPIC_AUTHORIZATION_FAILED",
        ),
        ({apis.METADATA: metadata(cluster="that")}, "is of cluster that, not of this"),
        (
            {apis.DESCRIBE_CLIENT_QUOTAS: quotas(31, "no")},
            "DescribeClientQuotas returned CLUSTER_AUTHORIZATION_FAILED: no",
        ),
        ({apis.DESCRIBE_ACLS: acls(999)}, "DescribeAcls returned error 999"),
        ({apis.DESCRIBE_TOKENS: tokens(65)}, "returned DELEGATION_TOKEN_AUTHORIZATION_FAILED"),
        ({apis.METADATA: metadata(topic("a"))[:-3]}, "the answer to Metadata v12 cannot be read"),
        ({apis.METADATA: metadata() + b"x"}, "the answer to Metadata v12 cannot be read: .* bytes"),
        ({apis.DESCRIBE_CLIENT_QUOTAS: quotas()[:-1]}, "the answer to DescribeClientQuotas v1 cannot be read"),
    ],
)
def test_errors_name_broker_address_and_request(broker, responses, message):
    view, _sent = broker(responses, cluster_id="this")
    with pytest.raises(ViewError, match=rf"broker 1 at broker\.example:9092: .*{message}"):
        read(view)


def test_truncated_responses_are_rejected():
    response = metadata(topic("orders", [partition(0), partition(1)]), nodes=(1, 2))
    for end in range(len(response)):
        with pytest.raises(MalformedAnswer):
            list(requests.read_metadata(Answer(apis.METADATA, 12, response[:end]))[1])
    for end in range(len(quotas())):
        with pytest.raises(MalformedAnswer):
            Answer(apis.DESCRIBE_CLIENT_QUOTAS, 1, quotas()[:end]).fields()


def test_disabled_kinds_are_removed_from_the_view(broker):
    view, _sent = broker(
        {apis.DESCRIBE_ACLS: acls(54, "No Authorizer is configured"), apis.DESCRIBE_TOKENS: tokens(61)}
    )
    not_served = view.probe().not_served
    assert not_served == {
        "acl": "DescribeAcls: SECURITY_DISABLED: No Authorizer is configured",
        "delegation_token": "DescribeDelegationToken: DELEGATION_TOKEN_AUTH_DISABLED",
    }
    assert not {"acl", "delegation_token"} & set(view.kinds)
    assert read(view)[1].state["not_served"] == not_served


def test_reread_requests_only_the_topics_of_the_keys(broker):
    view, sent = broker({apis.METADATA: metadata(topic("here"), topic("deleted", error=3))})
    keys = [("topic", form.topic(name, None).key) for name in ("here", "deleted")]
    found, _statement = view.reread([*keys, ("broker", form.broker(1, {}).key)])
    assert found[keys[0]].fields == {"id": json.dumps("AAAAAAAAAAAAAAAAAAAABw")}
    assert found[keys[1]] == Absent({})
    assert [body for name, body in sent if name == "Metadata"] == [requests.metadata(["deleted", "here"])]
    assert {name for name, _body in sent} == {"DescribeConfigs", "Metadata"}


@pytest.mark.parametrize(
    ("was_set", "served"),
    [
        (" 0123456", "123456"),
        ("0.50", "0.5"),
        ("1", "1.0"),
        ("1e-5", "1.0E-5"),
        ("TRUE", "true"),
        ("compact, delete", "compact,delete"),
        ("-1", "-1"),
        ("9223372036854775807", "9223372036854775807"),
        ("1_0", "1_0"),
        ("", ""),
    ],
)
def test_value_that_was_set_equals_the_served_one(was_set, served):
    assert brokers.parsed(was_set) == brokers.parsed(served)


@pytest.mark.parametrize(("value", "other"), [("1", "2"), ("true", "false"), ("a,b", "b,a"), ("1_0", "10"), ("", "0")])
def test_different_values_stay_different(value, other):
    assert brokers.parsed(value) != brokers.parsed(other)
