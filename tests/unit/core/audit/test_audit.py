# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The checks of an audit, each over facts of which one was changed, and over those in which nothing is found."""

from __future__ import annotations

from typing import ClassVar

import pytest
from ansible_collections.quorumshift.kafka.plugins.module_utils.core.audit import audit, clients, needs, quorum
from ansible_collections.quorumshift.kafka.plugins.module_utils.core.audit.audit_facts import Facts
from ansible_collections.quorumshift.kafka.plugins.module_utils.core.status import audit_screen

from tests.unit.core.audit_situation import broker_read, node_read, situation, with_file, with_host

NEWEST = "4.4.0"
SECURED = "org.apache.kafka.common.security.oauthbearer.secured.OAuthBearerValidatorCallbackHandler"
URL_KEY = "listener__name__x__oauthbearer__sasl__oauthbearer__jwks__endpoint__url"
URLS = "org.apache.kafka.sasl.oauthbearer.allowed.urls"
OLD = {"request": "Fetch", "version": 3, "name": "sarama", "software": "1.20", "count": 7}
LOGGED = {
    **{"request": "FETCH", "version": 3, "name": "sarama", "software": "1.20", "count": 2},
    **{"address": "10.0.0.9", "client_id": "billing", "principal": "User:app"},
}


def metrics(**more):
    return {"deprecated": [], "clients": [], "uptime_s": 1e6, **more}


def elr(level):
    return {"mode": "kraft", "finalized": {"metadata.version": 21, **level}, "nodes": {}, "static_voters": True}


def registered(broker):
    facts = situation()
    features = {"metadata.version": [1, 21]}
    log = {"log_end_offset": 9, "brokers": {}, "controllers": {}}
    log["brokers"][broker] = {"registered_offset": 5, "features": features}
    return facts._replace(nodes={**facts.nodes, "c1": {**facts.nodes["c1"], "metadata_log": log}})


def log4j(**more):
    return {"path": "/etc/kafka/log4j.properties", "version": 1, "appenders": [], "why": "", **more}


# (check, what it finds, the facts)
PLANTED = [
    ("zookeeper", "ZooKeeper mode", situation(in_zookeeper_mode=True)),
    (
        "values",
        "log.segment.bytes of b2 is 1000, and Kafka accepts 1048576",
        with_file(situation(), "b2", log__segment__bytes="1000"),
    ),
    ("values", "listeners of b1 is empty, and Kafka accepts no empty list", with_file(situation(), "b1", listeners="")),
    (
        "values",
        "share, streams",
        with_file(situation(), "b1", group__coordinator__rebalance__protocols="classic,unknown"),
    ),
    (
        "classes",
        "AclAuthorizer",
        with_file(situation(), "b1", authorizer__class__name="kafka.security.authorizer.AclAuthorizer"),
    ),
    ("classes", SECURED, with_file(situation(), "b1", sasl__server__callback__handler__class=SECURED)),
    ("java", "c1 runs Java 11", with_host(situation(), "c1", node_read("controller", java="11.0.2"))),
    ("java", "c1 runs Java 8", with_host(situation(), "c1", node_read("controller", java="1.8.0_412"))),
    ("allowed_urls", "https://idp/jwks", with_file(situation(), "b1", **{URL_KEY: "https://idp/jwks"})),
    (
        "topic_values",
        "segment.bytes of 2 topics, a, b, is 1000",
        situation(topics={"a": {"segment.bytes": "1000"}, "b": {"segment.bytes": "1000"}}),
    ),
    ("topic_keys", "message.format.version of 1 topic", situation(topics={"a": {"message.format.version": "3.0"}})),
    (
        "dynamic",
        "of all brokers, broker 2",
        situation(
            dynamic={
                "": {"log.message.downconversion.enable": "false"},
                "2": {"log.message.downconversion.enable": "true"},
            }
        ),
    ),
    ("dynamic", "is 1000, and Kafka accepts 1048576", situation(dynamic={"": {"log.segment.bytes": "1000"}})),
    ("levels", "do not start with the finalized levels", situation(features=elr({"metadata.version": 6}))),
    (
        "clients",
        "sarama 1.20 sends FETCH v3 to b1",
        with_host(situation(), "b1", broker_read(metrics=metrics(deprecated=[OLD]))),
    ),
    (
        "clients",
        "at 10.0.0.9, client id billing, User:app",
        with_host(situation(), "b1", broker_read(requests={"clients": [LOGGED], "files": ["x"]})),
    ),
    (
        "unknown_clients",
        "no JMX port",
        with_host(situation(), "b1", broker_read(metrics={"why": "its JVM has no JMX port (JMX_PORT)"})),
    ),
    (
        "unknown_clients",
        "for 10 min only, and 24 h",
        with_host(situation(), "b1", broker_read(metrics=metrics(uptime_s=600))),
    ),
    (
        "unknown_clients",
        "does not count them",
        with_host(situation(), "b1", broker_read(process={**node_read("broker")["process"], "version": "3.6.2"})),
    ),
    ("not_known", "b1 was not read: denied", with_host(situation(), "b1", {"why": "denied"})),
    ("not_known", "no Kafka runs on b1", with_host(situation(), "b1", broker_read(process=None))),
    (
        "not_known",
        "the Java of b1",
        with_host(situation(), "b1", broker_read(process={**node_read("broker")["process"], "java": None})),
    ),
    ("not_known", "the configs of topics could not be read: denied", situation(topics=None, topics_error="denied")),
    ("not_known", "the configs of topics could not be read: denied", situation(topics_error="denied")),
    ("not_known", "of b2 could not be read: denied", situation(unread_brokers={"2": "denied"})),
    ("not_known", "the features could not be read: timed out", situation(features=None, features_error="timed out")),
    ("not_known", "no broker says", situation(in_zookeeper_mode=None)),
    (
        "not_known",
        "not every replica of b1",
        with_host(situation(), "b1", broker_read(formats={"old": {}, "named": [], "why": "after 20 s"})),
    ),
    (
        "builds",
        "b1 runs Kafka 4.2.0",
        with_host(situation(), "b1", broker_read(process={**node_read("broker")["process"], "version": "4.2.0"})),
    ),
    (
        "keys",
        "does not know log.message.timestamp.difference.max.ms of b1",
        with_file(situation(), "b1", log__message__timestamp__difference__max__ms="1"),
    ),
    (
        "keys",
        "does not know control.plane.listener.name, zookeeper.connect of b1",
        with_file(situation(), "b1", zookeeper__connect="z", control__plane__listener__name="C"),
    ),
    (
        "log4j",
        "b1, b2, b3 starts with the Log4j 1 file",
        situation(hosts={host: broker_read(log4j=log4j()) for host in ("b1", "b2", "b3")}),
    ),
    (
        "log4j",
        "KafkaLog4jAppender",
        with_host(
            situation(), "b1", broker_read(log4j=log4j(appenders=["org.apache.kafka.log4jappender.KafkaLog4jAppender"]))
        ),
    ),
    (
        "formats",
        "3 with v1, as a-0",
        with_host(situation(), "b1", broker_read(formats={"old": {"1": 3}, "named": ["a-0"], "why": ""})),
    ),
    (
        "mirror_maker",
        "MirrorMaker 1 runs on b1 (mm.properties)",
        with_host(situation(), "b1", broker_read(mirror_makers=["mm.properties"])),
    ),
    ("min_isr", "is 2 in the files of b1", with_file(situation(), "b1", min__insync__replicas="2")),
    ("min_isr", "dynamic config of broker 2", situation(dynamic={"2": {"min.insync.replicas": "2"}})),
    (
        "kraft_version",
        "still in the files of b1",
        with_file(situation(features=elr({"kraft.version": 1})), "b1", controller__quorum__voters="1@c1:1"),
    ),
    ("registered", "broker 9 is registered", registered("9")),
    (
        "formatted",
        "formatted by kafka-storage of Kafka 4.4",
        with_host(situation(), "c1", {**node_read("controller"), "formatted_by_newer": True}),
    ),
]
# (check, the facts in which it is silent though they are near)
SILENT = [
    ("zookeeper", situation()),
    ("values", with_file(situation(), "b2", log__segment__bytes="1048576", node__id="0", unknown__key="")),
    ("values", with_file(situation(), "b2", log__dirs="/a,/a")),
    ("classes", with_file(situation(), "b1", x__class="com.example.kafka.security.authorizer.AclAuthorizer")),
    ("classes", with_file(situation(), "b1", authorizer__class__name="com.example.kafka.Authorizer")),
    ("java", with_host(situation(), "c1", node_read("controller", java="21"))),
    ("java", with_host(situation(), "c1", node_read("controller", java=None))),
    (
        "allowed_urls",
        with_file(
            with_host(
                situation(),
                "b1",
                broker_read(
                    process={**node_read("broker")["process"], "options": {URLS: "https://other,https://idp/jwks"}}
                ),
            ),
            "b1",
            **{URL_KEY: "https://idp/jwks"},
        ),
    ),
    ("topic_values", situation(topics={"a": {"segment.bytes": "1048576"}})),
    ("dynamic", situation(dynamic={"": {"log.retention.ms": "1"}})),
    (
        "clients",
        with_host(
            situation(),
            "b1",
            broker_read(metrics=metrics(deprecated=[{**OLD, "version": 12}, {**OLD, "request": "FetchConsumer"}])),
        ),
    ),
    # A broker that does not run has no clients, and a half-way upgrade has met them
    (
        "unknown_clients",
        with_host(situation(), "b1", broker_read(process=None, metrics={"why": "the broker does not run"})),
    ),
    (
        "unknown_clients",
        with_host(
            with_host(situation(), "b2", broker_read(metrics=metrics(uptime_s=1))),
            "b1",
            broker_read(process={**node_read("broker")["process"], "version": "4.1.1"}),
        ),
    ),
    (
        "unknown_clients",
        with_host(
            situation(window_s=0, loggers={"b1": "INFO"}),
            "b1",
            broker_read(metrics={"why": "no port"}, requests={"files": ["x"], "clients": []}),
        ),
    ),
    # In ZooKeeper mode no controller need run
    ("not_known", with_host(situation(in_zookeeper_mode=True), "c1", {**node_read("controller"), "process": None})),
    ("builds", situation()),
    ("log4j", with_host(situation(), "b1", broker_read(log4j=log4j(version=2)))),
    ("min_isr", with_file(situation(dynamic={"": {"min.insync.replicas": "2"}}), "b1", min__insync__replicas="2")),
    (
        "min_isr",
        with_file(situation(features=elr({"eligible.leader.replicas.version": 1})), "b1", min__insync__replicas="2"),
    ),
    ("kraft_version", with_file(situation(), "b1", controller__quorum__voters="1@c1:1")),
    ("registered", registered("1")),
    (
        "formatted",
        with_host(situation(), "c1", {**node_read("controller", version="4.4.0"), "formatted_by_newer": True}),
    ),
]
PLANTED.append(
    (
        "not_known",
        "the values of log.segment.bytes on b1 are variables",
        situation(
            nodes={
                **situation().nodes,
                "b1": {
                    **situation().nodes["b1"],
                    "file": {
                        "properties": {"log.segment.bytes": "${env:SIZE}"},
                        "variables": [{"key": "log.segment.bytes", "variable": "${env:SIZE}", "why": "not set"}],
                    },
                },
            }
        ),
    )
)
BY_NAME = {check.name: check for check in audit.CHECKS}


def found(name, facts, target=NEWEST):
    ident = BY_NAME[name].id
    return [finding for finding in audit.run(facts, target) if finding["id"] == ident]


def test_nothing_is_found_in_a_cluster_that_is_ready():
    assert audit.run(situation(), NEWEST) == []
    assert audit.run(situation()) == []


@pytest.mark.parametrize(("name", "text", "facts"), PLANTED)
def test_a_check_finds_what_is_planted(name, text, facts):
    findings = found(name, facts)
    assert any(text in finding["seen"] for finding in findings), findings
    assert all("check failed" not in finding["seen"] and finding["do"] for finding in findings)


@pytest.mark.parametrize(("name", "facts"), SILENT)
def test_a_check_is_silent(name, facts):
    assert found(name, facts) == []


def test_each_check_is_planted_and_has_an_id_of_its_own():
    assert {name for name, _text, _facts in PLANTED} == set(BY_NAME)
    assert len({check.id for check in audit.CHECKS}) == len(audit.CHECKS)


def test_nothing_of_kafka_4_is_found_on_the_way_to_3_9():
    facts = with_file(situation(), "b1", log__segment__bytes="1000", zookeeper__connect="z1:2181")
    facts = with_host(facts, "b2", broker_read(metrics={"why": "no port"}, log4j=log4j()))
    assert audit.run(facts._replace(in_zookeeper_mode=True, topics={"a": {"segment.bytes": "1000"}}), "3.9.2") == []


def test_a_finding_says_from_which_release_on_it_holds():
    facts = with_file(situation(topics={"a": {"segment.bytes": "1000"}}), "b1", num__replica__fetchers="0")
    since = {finding["id"]: finding["since"] for finding in audit.run(facts)}
    assert since == {"QS-AUDIT-003": "4.2", "QS-AUDIT-007": "4.1"}
    assert quorum.path(facts) == ["4.0.2", "4.1.2", "4.2.2", "4.3.1", NEWEST]
    assert {finding["since"] for finding in audit.run(facts, NEWEST)} == {""}


def test_300_brokers_with_the_same_finding_are_one_finding():
    facts = situation()
    nodes = {f"b{number}": facts.nodes["b1"] for number in range(300)}
    hosts = {host: broker_read(log4j=log4j()) for host in nodes}
    nodes["c1"], hosts["c1"] = facts.nodes["c1"], facts.hosts["c1"]
    many = facts._replace(nodes=nodes, hosts=hosts)
    findings = audit.run(with_file(many, "b7", log__segment__bytes="1"))
    assert [finding["id"] for finding in findings] == ["QS-AUDIT-003", "QS-AUDIT-016"]
    assert "and 295 more" in findings[1]["seen"]
    shown = audit_screen.render({"findings": findings, "checks": [], "targets": [NEWEST], "clients": {}}, whole=False)
    assert len(shown) < 20 and max(map(len, shown)) <= 120


def test_a_check_that_fails_blocks_and_the_others_run():
    facts = with_file(situation(topics={"a": {"segment.bytes": None}}), "b1", log__segment__bytes="1")
    findings = audit.run(facts, NEWEST)
    assert {"QS-AUDIT-003", "QS-AUDIT-007"} <= {finding["id"] for finding in findings}
    assert any("the check failed" in finding["seen"] and finding["severity"] == "blocks" for finding in findings)


def test_what_stops_a_node_cannot_be_accepted():
    assert audit.check_accepted({"QS-AUDIT-003": "why not"}) == ["QS-AUDIT-003 stops nodes, and cannot be accepted"]
    assert audit.check_accepted({"QS-CHECK-054": "x"}) == ["QS-CHECK-054 is no check of the audit"]
    assert audit.check_accepted({"QS-AUDIT-010": " "}) == ["QS-AUDIT-010 has no reason"]
    assert audit.check_accepted({"QS-AUDIT-010": "asked", "QS-AUDIT-016": "later"}) == []
    facts = with_file(situation(), "b1", log__segment__bytes="1")
    facts = with_host(facts, "b2", broker_read(metrics={"why": "no port"}))
    accepted = {"QS-AUDIT-003": "x", "QS-AUDIT-010": "asked"}
    waived = {finding["id"]: finding["waived"] for finding in audit.run(facts, NEWEST, accepted)}
    assert waived == {"QS-AUDIT-003": None, "QS-AUDIT-010": "asked"}


def test_a_bad_build_blocks_as_a_target_alone():
    (chosen,) = found("builds", situation(), "4.2.0")
    assert chosen["severity"] == "blocks" and chosen["do"] == "choose 4.2.2"
    runs = with_host(situation(), "b1", node_read("broker", version="4.2.0"))
    assert {finding["severity"] for finding in found("builds", runs)} == {"warns"}


def test_a_login_in_a_url_is_not_shown():
    (finding,) = found("allowed_urls", with_file(situation(), "b1", **{URL_KEY: "https://u:s3cret@idp/jwks"}))
    assert "s3cret" not in str(finding) and "https://idp/jwks" in finding["seen"]


def test_the_binaries_are_taken_back():
    assert not audit.is_downgrade(situation(), "4.1.1")
    half = with_host(situation(), "b1", node_read("broker", version="4.1.1"))
    assert audit.is_downgrade(half, "3.9.2") and not audit.is_downgrade(half, "4.1.1")


def test_clients_are_joined_from_counters_and_logs():
    both = broker_read(metrics=metrics(deprecated=[OLD]), requests={"clients": [LOGGED], "files": ["x"]})
    facts = with_host(with_host(situation(), "b1", both), "b2", broker_read(metrics=metrics(deprecated=[OLD])))
    listed = clients.find_old(facts, NEWEST)
    assert [(client["address"], client["brokers"], client["count"]) for client in listed] == [
        ("", ["b2"], 7),
        ("10.0.0.9", ["b1"], 2),
    ]
    assert clients.addresses(facts) == {"10.0.0.9": 6}
    own = {host: {**node, "host_address": "10.0.0.9"} for host, node in facts.nodes.items()}
    assert clients.addresses(facts._replace(nodes=own)) == {}


def test_the_screen_shows_clients_and_no_audit_on_the_way_down():
    assert audit_screen.render({"targets": [], "findings": [], "checks": [], "clients": {}}, whole=True) == [
        "no audit: the release is not later than the one that runs"
    ]
    many = {f"10.0.0.{number}": number for number in range(1, 20)}
    kept = {"old": [], "connected": [{"name": "", "software": "", "connections": 3}], "addresses": many}
    ids = [check.id for check in audit.CHECKS]
    lines = audit_screen.render({"targets": [NEWEST], "findings": [], "checks": ids, "clients": kept}, whole=True)
    text = " ".join(lines)
    assert "22 checks" not in text and f"{len(ids)} checks, {len(ids)} passed" in text
    assert "10.0.0.19: 19" in text and "and 9 more" in text and "unknown : 3" in text


def of_host(key, otherwise, **why):
    """Return the facts in which b2 does not give one of its own, each with the reason that is said."""
    read = broker_read()
    return [
        (with_host(situation(), "b2", {name: value for name, value in read.items() if name != key}), otherwise),
        (with_host(situation(), "b2", {**read, key: None}), otherwise),
        (with_host(situation(), "b2", {**read, key: {**why, "why": "denied"}}), "denied"),
    ]


def of_process(key, said, strange=None):
    process = node_read("broker")["process"]
    processes = [{name: value for name, value in process.items() if name != key}, {**process, key: None}]
    processes += [{**process, key: strange}] if strange else []
    return [(with_host(situation(), "b2", broker_read(process=given)), said) for given in processes]


def of_node(host, **changes):
    facts = situation()
    return facts._replace(nodes={**facts.nodes, host: {**facts.nodes[host], **changes}})


def unresolved(key):
    variables = [{"key": key, "variable": "${env:A}", "why": "not set", "foreign": ""}]
    return of_node("b2", file={**situation().nodes["b2"]["file"], "variables": variables})


def without_version(facts):
    return facts._replace(nodes={host: {**node, "version": None} for host, node in facts.nodes.items()})


NOT_READ, FILE = "its properties file was not read", "the properties file of b2 was not read"
NOT_RUNNING = with_host(situation(), "b2", broker_read(process=None))
# {fact: the facts of the cluster in which b2 does not give it, or no node, each with what is said}
MISSING = {
    "java": [*of_process("java", "the Java of b2", "strange"), (NOT_RUNNING, "no Kafka runs on b2, so its Java")],
    "options": [*of_process("options", "the options of the JVM of b2"), (NOT_RUNNING, "no Kafka runs on b2")],
    "version": [
        *((without_version(facts), said) for facts, said in of_process("version", "its jar was not seen")),
        *of_process("version", "Kafka strange is a build that the tool does not know", "strange")[2:],
    ],
    "files": [
        (of_node("b2", file=None), FILE),
        (of_node("b2", file={"properties": None, "error": None}), FILE),
        (of_node("b2", file={"properties": {}, "error": "/etc/x: denied"}), "/etc/x: denied"),
    ],
    "variables": [
        (unresolved(key), f"the values of {key} on b2 are variables")
        for key in ("log.segment.bytes", "authorizer.class.name")
    ],
    "mode": [(situation(in_zookeeper_mode=None), "no broker says")],
    "topics": [(situation(topics=None, topics_error="denied"), "configs of topics could not be read: denied")],
    "features": [(situation(features=None, features_error="timed out"), "the features could not be read: timed out")],
    "dynamic": [
        (situation(dynamic={"2": None}), "b2 could not be read: it is not among"),
        (situation()._replace(dynamic={"1": {}, "3": {}}), "b2 could not be read: it is not among"),
        (situation(unread_brokers={"2": "denied"}), "b2 could not be read: denied"),
        (NOT_RUNNING._replace(dynamic={"1": {}, "3": {}}), "no Kafka runs on b2"),
        (of_node("b2", node_id=None), "b2 could not be read: it is not among"),
    ],
    "log4j": [
        *of_host("log4j", "b2 was not read: the host gave none", version=1),
        *of_host("log4j", "the host gave none", version=None, path=None),
        (with_host(situation(), "b2", broker_read(process=None, log4j=None)), "no Kafka runs on b2"),
    ],
    "formats": of_host("formats", NOT_READ),
    "mirror_makers": of_host("mirror_makers", "the host gave none"),
    "formatted_by_newer": of_host("formatted_by_newer", "its directory could not be read"),
    "clients": [
        *of_host("metrics", "the host was not read", deprecated=None),
        (with_host(situation(), "b2", broker_read(metrics=metrics(deprecated=None))), "its counters were not read"),
        (with_host(situation(), "b2", broker_read(metrics=metrics(uptime_s=None))), "its counters were not read"),
        (
            with_host(
                situation(window_s=0, loggers={"b2": "INFO"}),
                "b2",
                broker_read(metrics={"why": "no port"}, requests={"files": ["x"], "clients": [], "why": "y: denied"}),
            ),
            "no port",
        ),
    ],
}
CLUSTER = ("mode", "topics", "features")
OF_HOSTS = {"java", "options", "log4j", "formats", "mirror_makers", "formatted_by_newer", "clients"}


@pytest.mark.parametrize(
    ("check", "need", "number"),
    [(check, need, number) for check in audit.CHECKS for need in check.needs for number in range(len(MISSING[need]))],
    ids=lambda value: getattr(value, "name", None),
)
def test_a_check_without_a_fact_that_it_needs_is_none_that_passed(check, need, number):
    """The host and the reason are a finding."""
    facts, said = MISSING[need][number]
    assert check.id not in audit.ids_with_facts(facts, "4.1.1")
    seen = [finding["seen"] for name in ("not_known", "unknown_clients") for finding in found(name, facts, "4.1.1")]
    assert [text for text in seen if said in text and ("b2" in text or need in CLUSTER)], seen


@pytest.mark.parametrize("read", [{"why": "denied"}, {}, None])
def test_of_a_host_that_was_not_read_nothing_is_known(read):
    facts = with_host(situation(), "b2", read)
    ids = audit.ids_with_facts(facts, "4.1.1")
    without = {check.name for check in audit.CHECKS if check.id not in ids}
    assert without == {check.name for check in audit.CHECKS if OF_HOSTS & {*check.needs}}
    why = (read or {}).get("why") or "the host was not read"
    assert [finding["seen"] for finding in found("not_known", facts)] == [f"b2 was not read: {why}"]


class Watched(dict):
    """A dict that keeps which of its keys are read."""

    read: ClassVar[set[str]] = set()

    def get(self, key, default=None):
        self.read.add(key)
        return super().get(key, default)

    def __getitem__(self, key):
        self.read.add(key)
        return super().__getitem__(key)


class WatchedFacts(Facts):
    def __getattribute__(self, name):
        Watched.read.add(name)
        return super().__getattribute__(name)


# {what a check reads: the fact that it needs then}
READ = {
    **{name: name for name in ("java", "options", "version", "topics", "dynamic", "features", "log4j", "formats")},
    **{"mirror_makers": "mirror_makers", "formatted_by_newer": "formatted_by_newer", "metrics": "clients"},
    **{"file": "files", "in_zookeeper_mode": "mode", "mode": "mode"},
}


@pytest.mark.parametrize("check", audit.CHECKS, ids=lambda check: check.name)
def test_a_check_names_each_fact_that_it_reads(check):
    if check.name in ("unknown_clients", "not_known"):  # they say what is missing
        assert check.needs == ()
        return
    facts = situation()
    hosts = {host: Watched({**read, "process": Watched(read["process"])}) for host, read in facts.hosts.items()}
    nodes = {host: Watched(node) for host, node in facts.nodes.items()}
    Watched.read.clear()
    list(check.find(WatchedFacts(*facts._replace(hosts=hosts, nodes=nodes, features=Watched(facts.features))), NEWEST))
    read = {READ[name] for name in Watched.read if name in READ}
    if check.name == "clients":  # a client of a release that is not known is a finding
        read.discard("version")
    assert check.needs and read <= {*check.needs}


def test_each_fact_is_missing_once():
    assert {need for check in audit.CHECKS for need in check.needs} == {*MISSING}
    assert {*MISSING} | {"read", "runs"} == {*needs.lacking(situation(), NEWEST)}
    assert not any(lack.hosts for lack in needs.lacking(situation(), NEWEST).values())


def test_all_facts_are_there_by_default():
    assert len(audit.ids_with_facts(situation(), "4.1.1")) == len(audit.CHECKS)


def test_no_clients_are_shown_as_not_known_where_brokers_do_not_count_them():
    result = {
        "targets": ["4.1.1"],
        "findings": [],
        "checks": ["QS-AUDIT-009"],
        "clients": {"connected": [], "addresses": {}},
    }
    assert "clients by name and version, with their connections: none was seen" in "\n".join(
        audit_screen.render(result, True)
    )
    unknown = "\n".join(audit_screen.render({**result, "checks": []}, True))
    assert "clients by name and version, with their connections: not known" in unknown
