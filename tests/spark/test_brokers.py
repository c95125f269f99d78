# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Compares the view of a broker with the output of Kafka's tools and other clients for the same broker."""

from __future__ import annotations

import contextlib
import json
import pathlib
import pickle
import re
import subprocess
import time
from types import SimpleNamespace

import pytest
from ansible_collections.quorumshift.kafka.plugins.module_utils.secrets.security import Security
from ansible_collections.quorumshift.kafka.plugins.module_utils.settings.addresses import HostPort
from confluent_kafka import TopicCollection
from confluent_kafka import admin as kafka
from quorumshift_spark import normal_form as form
from quorumshift_spark import rules
from quorumshift_spark.normal_form import key_of
from quorumshift_spark.views import Absent, Statement, ViewError
from quorumshift_spark.views.brokers import BrokerView, parsed

from tests.integration import seeded, servers
from tests.unit.spark.realistic import expanded

pytestmark = pytest.mark.real
SECONDS = 60
PLAIN = "org.apache.kafka.common.security.plain.PlainLoginModule required"
CONFIGS, TOKENS = "kafka.admin.ConfigCommand", "org.apache.kafka.tools.DelegationTokenCommand"
PASSWORD = "a-clear-text-password"
SETTINGS = {
    "super.users": "User:ANONYMOUS;User:carol",
    "password.encoder.secret": "encoder",
    "delegation.token.secret.key": "tokens",
    "sasl.enabled.mechanisms": "PLAIN",
    "listener.name.sasl_plaintext.plain.sasl.jaas.config": f'{PLAIN} user_carol="carol secret" user_mallory="m";',
}
LOGIN = {
    "security_protocol": "SASL_PLAINTEXT",
    "sasl_mechanism": "PLAIN",
    "sasl_username": "carol",
    "sasl_password": "carol secret",
}
TOPIC_CONFIGS = {
    "retention.ms": "0123456",
    "min.cleanable.dirty.ratio": "0.50",
    "cleanup.policy": "compact, delete",
    "unclean.leader.election.enable": "true",
}
BROKER_CONFIGS = {"log.cleaner.threads": "2", "listener.name.other.ssl.keystore.password": PASSWORD}
DEFAULT_CONFIGS = {"message.max.bytes": "2000000", "log.cleaner.threads": "3"}


@pytest.fixture(scope="module", params=["zk", "kraft"])
def cluster(request):
    listeners = {name: f"127.0.0.1:{servers.free_port()}" for name in ("PLAINTEXT", "SASL_PLAINTEXT")}
    with contextlib.ExitStack() as stack:
        home = stack.enter_context(servers.workdir(f"spark_brokers_{request.param}"))
        if request.param == "zk":
            zookeeper = stack.enter_context(servers.zookeeper(home))
            authorizer = {"authorizer.class.name": "kafka.security.authorizer.AclAuthorizer"}
            server = servers.zk_broker(home, 1, zookeeper.connect, {**SETTINGS, **authorizer}, listeners)
            controller = None
        else:
            authorizer = {"authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer"}
            address = HostPort("127.0.0.1", servers.free_port())
            keys = {**SETTINGS, **authorizer}
            controller = stack.enter_context(servers.kraft_controller(home, 101, address, f"101@{address}", keys))
            server = servers.kraft_broker(home, 1, f"101@{address}", keys, listeners)
        broker = stack.enter_context(server)
        client = kafka.AdminClient({"bootstrap.servers": str(broker.address)})
        filled = SimpleNamespace(mode=request.param, broker=broker, client=client, controller=controller, home=home)
        fill(filled)
        yield filled


def fill(cluster):
    client = cluster.client
    servers.wait_for(lambda: servers.knows_controller(client, 1), SECONDS, "a controller in the metadata")
    topics = [kafka.NewTopic(f"plain.{number}", 3, 1) for number in range(7)]
    servers.create_topics(client, [*topics, kafka.NewTopic("configured", 2, 1, config=TOPIC_CONFIGS)])
    login = cluster.home / "login.properties"
    login.write_text(
        "security.protocol=SASL_PLAINTEXT\nsasl.mechanism=PLAIN\n"
        f'sasl.jaas.config={PLAIN} username="carol" password="carol secret";\n'
    )
    jobs = []
    for resource, name, values in (
        ("brokers", "1", BROKER_CONFIGS),
        ("brokers", None, DEFAULT_CONFIGS),
        ("users", "alice", {"producer_byte_rate": "1000"}),
        ("users", None, {"consumer_byte_rate": "2000"}),
        ("clients", "ä b", {"request_percentage": "12.25"}),
        ("ips", "127.0.0.9", {"connection_creation_rate": "7"}),
    ):
        entity = ["--entity-type", resource, *(["--entity-name", name] if name else ["--entity-default"])]
        config = ",".join(f"{key}={value}" for key, value in values.items())
        jobs.append((CONFIGS, *at(cluster), "--alter", *entity, "--add-config", config))
    renewer = ("--max-life-time-period", "-1", "--renewer-principal", "User:dave")
    jobs.append((TOKENS, *logged_in(cluster), "--create", *renewer))
    kafka_tools(jobs[:1])
    # A broker rejects a default of more than twice its present threads: DynamicThreadPool.validateReconfiguration
    servers.wait_for(lambda: threads_of(client) == "2", SECONDS, "broker 1 has applied its own log.cleaner.threads")
    kafka_tools(jobs[1:])
    done(client.create_acls([acl("plain.", kafka.ResourcePatternType.PREFIXED, "User:alice")]))
    done(client.create_acls([acl("*", kafka.ResourcePatternType.LITERAL, "User:*", kafka.AclPermissionType.DENY)]))
    info = kafka.ScramCredentialInfo(kafka.ScramMechanism.SCRAM_SHA_512, 5000)
    done(client.alter_user_scram_credentials([kafka.UserScramCredentialUpsertion("bob", info, b"secret", b"salt")]))


def threads_of(client):
    """Return log.cleaner.threads as broker 1 has it: from the configs that it applied (ConfigHelper)."""
    resource = kafka.ConfigResource(kafka.ConfigResource.Type.BROKER, "1")
    return client.describe_configs([resource])[resource].result(SECONDS)["log.cleaner.threads"].value


def at(cluster):
    return "--bootstrap-server", str(cluster.broker.address)


def logged_in(cluster):
    address = str(cluster.broker.listeners["SASL_PLAINTEXT"])
    return "--bootstrap-server", address, "--command-config", str(cluster.home / "login.properties")


def kafka_tools(jobs):
    """Run Kafka's command line tools one after another in one JVM. Return their output."""
    utf8 = [f"-D{name}=UTF-8" for name in ("file.encoding", "sun.stdout.encoding")]
    completed = subprocess.run(
        [*servers.java(utf8), str(seeded.TOOLS)],
        input="".join("\t".join(job) + "\n" for job in jobs),
        capture_output=True,
        encoding="utf-8",
        timeout=300,
        check=False,
    )
    assert completed.returncode == 0, completed.stdout + completed.stderr
    return completed.stdout


def done(futures):
    for future in futures.values():
        future.result(SECONDS)


def acl(name, pattern, principal, permission=kafka.AclPermissionType.ALLOW):
    return kafka.AclBinding(
        kafka.ResourceType.TOPIC, name, pattern, principal, "*", kafka.AclOperation.READ, permission
    )


def view(cluster, listener="SASL_PLAINTEXT", broker_id=1, **options):
    security = Security.from_options(LOGIN) if listener == "SASL_PLAINTEXT" else None
    options.setdefault("topics_a_request", 3)  # several requests for eight topics
    return BrokerView(broker_id, cluster.broker.listeners[listener], form.Digests(b"key"), security, **options)


def read(the_view):
    *entities, statement = expanded(the_view.name, pickle.loads(pickle.dumps(the_view)).read(None))
    assert isinstance(statement, Statement)
    found = {}
    for entity in entities:
        assert (entity.kind, entity.key) not in found
        found[(entity.kind, entity.key)] = entity
    return found, statement


def of_kind(found, kind):
    """Return {key parts: fields} of the entities of one kind."""
    return {
        json.dumps(key_of(key), ensure_ascii=False): {name: json.loads(text) for name, text in entity.fields.items()}
        for (this, key), entity in found.items()
        if this == kind
    }


def key(*parts):
    return json.dumps(list(parts), ensure_ascii=False)


@pytest.fixture(scope="module")
def served(cluster):
    def complete():
        found, statement = read(view(cluster))
        kinds = {kind for kind, _key in found}
        return (found, statement) if {"acl", "delegation_token", "quota", "scram"} <= kinds else None

    return servers.wait_for(complete, SECONDS, "all kinds at the broker")


def test_topics_and_partitions(cluster, served):
    found, statement = served
    names = list(servers.wait_for(lambda: servers.metadata(cluster.client), SECONDS, "metadata").topics)
    described = cluster.client.describe_topics(TopicCollection(names), request_timeout=SECONDS)
    topics = {name: future.result(SECONDS) for name, future in described.items()}
    assert len(topics) == 8
    ids = {key(name): {"id": servers_uuid(topic.topic_id)} for name, topic in topics.items()}
    assert of_kind(found, "topic") == ids
    partitions = {
        key(name, partition.id): {
            "leader": partition.leader.id,
            "replicas": [node.id for node in partition.replicas],
            "isr": sorted(node.id for node in partition.isr),
            "leader_epoch": 0,
        }
        for name, topic in topics.items()
        for partition in topic.partitions
    }
    assert of_kind(found, "partition") == partitions
    (entity,) = of_kind(found, "broker").items()
    (_listener, host, port, _protocol) = entity[1].pop("endpoints")[0]
    assert entity == (key(1), {"fenced": False, "rack": None}) and host and port > 0
    assert (statement.problems, statement.state["offline_replicas"], statement.state["not_served"]) == ([], 0, {})


def servers_uuid(uuid):
    """Return Kafka's base64 text of a confluent_kafka Uuid."""
    return str(uuid).replace("+", "-").replace("/", "_")


def test_configs(cluster, served):
    found, _statement = served
    configs = of_kind(found, "config")
    described = cluster.client.describe_configs(
        [kafka.ConfigResource(kafka.ConfigResource.Type.TOPIC, name) for name in ("configured", "plain.0")]
    )
    topic_configs = {
        key("topic", resource.name, name): {"value": entry.value}
        for resource, future in described.items()
        for name, entry in future.result(SECONDS).items()
        if entry.source == kafka.ConfigSource.DYNAMIC_TOPIC_CONFIG.value
    }
    assert {name: value for name, value in configs.items() if json.loads(name)[0] == "topic"} == topic_configs
    assert {name: parsed(value) for name, value in TOPIC_CONFIGS.items()} == {
        json.loads(name)[2]: parsed(fields["value"]) for name, fields in topic_configs.items()
    }
    brokers = {name: fields["value"] for name, fields in configs.items() if json.loads(name)[0] == "broker"}
    assert brokers == {
        key("broker", "1", "log.cleaner.threads"): "2",
        key("broker", "1", "listener.name.other.ssl.keystore.password"): {"digest": None},
        key("broker", None, "log.cleaner.threads"): "3",
        key("broker", None, "message.max.bytes"): "2000000",
    }
    assert PASSWORD not in repr(found)


QUOTAS = re.compile(r"Quota configs for (the default )?([a-z-]+)(?: '(.*)')? are (\S+)=([\d.]+)")


@pytest.fixture(scope="module")
def tools(cluster, served):
    """Return the output of Kafka's tools for the same metadata."""
    jobs = [(CONFIGS, *at(cluster), "--describe", "--entity-type", kind) for kind in ("users", "clients", "ips")]
    jobs.append((TOKENS, *logged_in(cluster), "--describe", "--owner-principal", "User:carol"))
    if cluster.mode == "kraft":
        jobs.append(("org.apache.kafka.tools.FeatureCommand", *at(cluster), "describe"))
    return kafka_tools(jobs)


def test_quotas(served, tools):
    quotas = {}
    for default, kind, name, quota, value in QUOTAS.findall(tools):
        entity = [[kind.replace("user-principal", "user"), None if default else name]]
        quotas[key(entity, quota)] = {"value": float(value)}
    assert of_kind(served[0], "quota") == quotas
    assert set(quotas) == {
        key([["user", "alice"]], "producer_byte_rate"),
        key([["user", None]], "consumer_byte_rate"),
        key([["client-id", "ä b"]], "request_percentage"),
        key([["ip", "127.0.0.9"]], "connection_creation_rate"),
    }


def test_scram(cluster, served):
    described = cluster.client.describe_user_scram_credentials()
    users = described.result(SECONDS)
    names = {1: "SCRAM-SHA-256", 2: "SCRAM-SHA-512"}
    credentials = {
        key(user, names[info.mechanism.value]): {"iterations": info.iterations}
        for user, description in users.items()
        for info in description.scram_credential_infos
    }
    assert of_kind(served[0], "scram") == credentials == {key("bob", "SCRAM-SHA-512"): {"iterations": 5000}}


def test_acls(cluster, served):
    bindings = cluster.client.describe_acls(kafka.AclBindingFilter(
        kafka.ResourceType.ANY, None, kafka.ResourcePatternType.ANY, None, None,
        kafka.AclOperation.ANY, kafka.AclPermissionType.ANY,
    )).result(SECONDS)  # fmt: skip
    acls = {
        key(
            binding.restype.name,
            binding.resource_pattern_type.name,
            binding.name,
            binding.principal,
            binding.host,
            binding.operation.name,
            binding.permission_type.name,
        )
        for binding in bindings
    }
    assert set(of_kind(served[0], "acl")) == acls
    assert len(acls) == 2


def test_delegation_tokens(served, tools):
    ((token, fields),) = of_kind(served[0], "delegation_token").items()
    (token_id,) = json.loads(token)
    row = next(line for line in tools.splitlines() if line.startswith(token_id)).split()
    hmac = row[1]
    assert row[2:5] == [fields["owner"], fields["requester"], "[User:dave]"]
    assert fields["renewers"] == ["User:dave"]
    times = [fields[name] / 1000 for name in ("issue", "expiry", "max")]
    shown = [time.strftime("%Y-%m-%dT%H:%M", time.localtime(seconds)) for seconds in times]
    assert row[5:] == shown
    assert hmac not in repr(served)


def test_features_and_the_offset_of_the_image(cluster, served, tools):
    found, statement = served
    features = of_kind(found, "feature")
    if cluster.mode == "zk":
        assert (features, statement.state["mode"], "offset" in statement.state) == ({}, "zk", False)
        return
    level = re.search(r"metadata\.version.*FinalizedVersionLevel: (\S+)", tools).group(1)
    assert features == {key("metadata.version"): {"level": 21}} and level.startswith("3.9")
    now = view(cluster).probe()
    assert now.mode == "kraft" and now.offset > statement.state["offset"] > 0  # NoOps raise it


def test_single_keys_are_read_again(cluster, served):
    found, _statement = served
    absent = [("topic", form.topic("never", None).key), ("config", key("topic", "never", "retention.ms"))]
    kept = [name for name in found if name[0] in ("partition", "config", "acl", "broker")]
    again, statement = view(cluster).reread([*kept, *absent])
    assert {name: again[name] for name in kept} == {name: found[name] for name in kept}
    assert [again[name] for name in absent] == [Absent({})] * 2
    assert statement.state["mode"] == cluster.mode
    assert view(cluster).reread([absent[0]])[0] == {absent[0]: Absent({})}


def test_probe_names_what_a_listener_does_not_serve(cluster):
    plain = view(cluster, "PLAINTEXT")
    reason = "DescribeDelegationToken: DELEGATION_TOKEN_REQUEST_NOT_ALLOWED"
    assert plain.probe().not_served == {"delegation_token": reason}
    assert "delegation_token" not in plain.kinds and "acl" in plain.kinds


def test_client_metrics_are_found_without_their_names(cluster):
    """Also where the log does not have them."""
    if cluster.mode == "zk":
        pytest.skip("a broker in ZooKeeper mode has none")
    entity = ("--alter", "--entity-type", "client-metrics", "--entity-name", "of-broker")
    kafka_tools([(CONFIGS, *at(cluster), *entity, "--add-config", "interval.ms=5000")])
    wanted = key("client_metrics", "of-broker", "interval.ms")
    found = servers.wait_for(lambda: of_kind(read(view(cluster))[0], "config").get(wanted), SECONDS, "its config")
    assert found == {"value": "5000"}


def test_another_broker_or_cluster_at_the_address_is_rejected(cluster):
    with pytest.raises(ViewError, match=r"broker 2 at 127\.0\.0\.1:\d+: another broker has this address: .*expected 1"):
        read(view(cluster, broker_id=2))
    with pytest.raises(ViewError, match=r"is of cluster \S+, not of other"):
        read(view(cluster, cluster_id="other"))


def test_unreachable_broker_is_named(cluster):
    nowhere = BrokerView(7, HostPort("127.0.0.1", servers.free_port()), form.Digests(None))
    with pytest.raises(ViewError, match=r"broker 7: 127\.0\.0\.1:\d+: connection refused"):
        nowhere.probe()


@pytest.mark.parametrize(
    ("password", "message"),
    [
        ("m", r"broker 1 at \S+: DescribeConfigs of broker 1 returned CLUSTER_AUTHORIZATION_FAILED"),
        ("wrong", r"broker 1: \S+: PLAIN login as 'mallory' failed"),
    ],
)
def test_principal_without_permission_is_an_error(cluster, password, message):
    security = Security.from_options({**LOGIN, "sasl_username": "mallory", "sasl_password": password})
    with pytest.raises(ViewError, match=message):
        read(BrokerView(1, cluster.broker.listeners["SASL_PLAINTEXT"], form.Digests(None), security))


@pytest.fixture(scope="module")
def foreign():
    """A broker whose authorizer is not Kafka's; it does what the file `does` says (ForeignAuthorizer.java)."""
    with contextlib.ExitStack() as stack:
        home = stack.enter_context(servers.workdir("spark_brokers_foreign"))
        does = home / "does"
        does.write_text("lists")
        zookeeper = stack.enter_context(servers.zookeeper(home))
        broker = stack.enter_context(servers.zk_broker(home, 1, zookeeper.connect))
        broker.stop()
        broker.add_classes(servers.compile_java(pathlib.Path(__file__).with_name("ForeignAuthorizer.java"), home))
        broker.configure({"authorizer.class.name": "ForeignAuthorizer", "foreign.authorizer.does": str(does)})
        broker.start()
        yield SimpleNamespace(broker=broker, does=does)


@pytest.mark.parametrize(
    ("does", "said"),
    [
        ("fails", r"its authorizer ForeignAuthorizer does not list ACLs \(UNKNOWN_SERVER_ERROR"),
        ("none", r"its authorizer ForeignAuthorizer does not list ACLs \(none is listed\)"),
        ("lists", None),
    ],
)
def test_an_authorizer_that_does_not_list_acls_is_named_and_no_error(foreign, does, said):
    foreign.does.write_text(does)
    the_view = BrokerView(1, foreign.broker.address, form.Digests(b"key"))
    not_served = the_view.probe().not_served
    assert ("acl" in the_view.kinds) == (said is None)
    if said:
        assert re.match(said, not_served["acl"])
        assert rules.off_everywhere({"broker:1": not_served}) == ["acl"]
    else:
        assert "acl" not in not_served
        assert len(of_kind(read(the_view)[0], "acl")) == 1


def test_a_client_that_may_not_ask_for_acls_is_an_error_also_with_another_authorizer(foreign):
    """Otherwise the ACLs would count as off on every broker, and the gate would open."""
    foreign.does.write_text("denies")
    with pytest.raises(ViewError, match="DescribeAcls returned CLUSTER_AUTHORIZATION_FAILED"):
        BrokerView(1, foreign.broker.address, form.Digests(b"key")).probe()


def test_offset_shows_stale_metadata(cluster):
    if cluster.mode == "zk":
        pytest.skip("a broker in ZooKeeper mode has no image of the log")
    cluster.controller.kill()
    first = servers.wait_for(lambda: constant_offset(cluster), SECONDS, "an image that no longer changes")
    assert constant_offset(cluster) == first


def constant_offset(cluster):
    """Return the offset of the broker's image if it is the same a second later, else None."""
    first = view(cluster).probe().offset
    time.sleep(1.5)
    return first if view(cluster).probe().offset == first else None
