# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The checks of an audit, each over facts of which one was changed, and over those in which nothing is found."""

from __future__ import annotations

import pytest
from ansible_collections.quorumshift.kafka.plugins.module_utils.core.audit import audit, clients, quorum
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
    ("not_known", "of broker 2 could not be read: denied", situation(unread_brokers={"2": "denied"})),
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


UNKNOWN = [
    (with_host(situation(), "b2", broker_read(**node_read("broker", java=None))), {"java"}),
    (
        with_host(situation(), "b2", {"why": "unreachable"}),
        {"java", "allowed_urls", "log4j", "mirror_maker", "formats", "formatted", "clients"},
    ),
    (situation(topics=None, topics_error="denied"), {"topic_values", "topic_keys", "dynamic"}),
    (situation(unread_brokers={"2": "denied"}), {"dynamic"}),
    (situation(features=None, features_error="no answer"), {"levels", "min_isr", "kraft_version", "registered"}),
    (situation(in_zookeeper_mode=None), {"zookeeper"}),
    (with_host(situation(), "b1", broker_read(metrics={"why": "its JVM has no JMX port (JMX_PORT)"})), {"clients"}),
]


@pytest.mark.parametrize(("facts", "names"), UNKNOWN)
def test_a_check_without_its_facts_is_none_that_passed(facts, names):
    """What is missing is a finding that blocks, and no check that needed it counts as passed."""
    name_of = {check.id: check.name for check in audit.CHECKS}
    had = {name_of[ident] for ident in audit.ids_with_facts(facts, "4.1.1")}
    assert {*name_of.values()} - had == names
    blocking = {finding["id"] for finding in audit.run(facts, "4.1.1") if finding["severity"] == "blocks"}
    assert blocking & {"QS-AUDIT-010", "QS-AUDIT-011"}


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
