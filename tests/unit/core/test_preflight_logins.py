# Copyright: (c) 2026, Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""preflight: what controllers' hosts told of their logins to brokers."""

from __future__ import annotations

import pytest
from ansible_collections.quorumshift.kafka.plugins.module_utils.core import kraft_config

from tests.unit.core.preflight_facts import collected, found, node, the_one

ALL = [1, 2, 5]


def with_logins(**reported):
    facts = collected()
    for host, login in reported.items():
        node(facts, host)["paths"] = {"login": {"answered": ALL, "errors": [], **login}}
    return facts


def test_all_let_in():
    assert found(with_logins(c1={}, c2={}, c3={}), "controller_logins") == []


def test_no_login_was_wanted():
    facts = collected()
    node(facts, "c1")["paths"] = {"login": None}
    assert found(facts, "controller_logins") == []


def test_hosts_of_the_same_fault_are_told_together():
    bad = {"answered": [], "errors": ["SslAuthenticationException: SSL handshake failed (bad_certificate)"]}
    seen = the_one(with_logins(c1=bad, c2={}, c3=bad), "controller_logins")
    assert seen == (
        "c1, c3 cannot log in to the brokers' inter-broker listener with the controllers' settings: "
        "SslAuthenticationException: SSL handshake failed (bad_certificate)"
    )


def test_a_broker_that_did_not_answer():
    seen = the_one(with_logins(c1={"answered": [1, 5]}, c2={}, c3={}), "controller_logins")
    assert seen == "c1 logged in to the brokers, but broker 2 did not answer"


def test_a_dead_broker_is_told_elsewhere():
    facts = with_logins(c1={"answered": [1, 5]})
    del facts.cluster["zookeeper"]["broker_ids"]["2"]
    assert found(facts, "controller_logins") == []


def test_what_cannot_be_tried_is_a_warning():
    (one,) = found(
        with_logins(c1={"answered": [], "untried": "the login for GSSAPI is elsewhere"}), "controller_logins"
    )
    assert one["severity"] == "warns" and "the login for GSSAPI is elsewhere" in one["seen"]


SASL = {
    "inter.broker.listener.name": "INTERNAL",
    "listener.security.protocol.map": "INTERNAL:SASL_SSL",
    "sasl.mechanism.inter.broker.protocol": "SCRAM-SHA-512",
    "ssl.truststore.location": "/etc/kafka/all.p12",
    "listener.name.internal.ssl.truststore.location": "/etc/kafka/internal.p12",
    "listener.name.internal.scram-sha-512.sasl.jaas.config": "ScramLoginModule required;",
    "listener.name.internal.scram-sha-512.sasl.login.class": "Own",
    "listener.name.external.ssl.keystore.location": "/etc/kafka/external.p12",
}


def test_a_client_has_what_a_controller_dials_brokers_with():
    settings, untried = kraft_config.inter_broker_client(SASL)
    assert untried == ""
    wanted = {
        "security.protocol": "SASL_SSL",
        "sasl.mechanism": "SCRAM-SHA-512",
        "sasl.jaas.config": "ScramLoginModule required;",
        "sasl.login.class": "Own",
        "ssl.truststore.location": "/etc/kafka/internal.p12",
    }
    assert {key: settings.get(key) for key in wanted} == wanted
    assert "ssl.keystore.location" not in settings


def test_without_a_listener_name_the_protocol_is_the_listener():
    properties = {"security.inter.broker.protocol": "SSL", "listener.name.ssl.ssl.key.password": "sealed:x"}
    settings, untried = kraft_config.inter_broker_client(properties)
    assert (settings, untried) == ({"security.protocol": "SSL", "ssl.key.password": "sealed:x"}, "")


@pytest.mark.parametrize("mechanism", ["GSSAPI", "SCRAM-SHA-512"])
def test_a_login_from_a_file_of_the_service_is_no_clients(mechanism):
    properties = {"security.inter.broker.protocol": "SASL_PLAINTEXT"}
    if mechanism != "GSSAPI":
        properties["sasl.mechanism.inter.broker.protocol"] = mechanism
    settings, untried = kraft_config.inter_broker_client(properties)
    assert settings == {} and f"the login for {mechanism} is not in listener.name.sasl_plaintext." in untried
