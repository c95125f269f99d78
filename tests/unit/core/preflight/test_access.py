# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""preflight: the logins of controllers to brokers."""

from __future__ import annotations

import pytest
from ansible_collections.quorumshift.kafka.plugins.module_utils.core.migration import kraft_config

from tests.unit.core.preflight_facts import collected, found, node, the_one

ALL = [1, 2, 5]


def with_logins(**results):
    facts = collected()
    for host, login in results.items():
        node(facts, host)["paths"] = {"login": {"answered": ALL, "errors": [], **login}}
    return facts


def test_no_finding_when_all_brokers_answer():
    assert found(with_logins(c1={}, c2={}, c3={}), "controller_logins") == []


def test_no_finding_without_a_login():
    facts = collected()
    node(facts, "c1")["paths"] = {"login": None}
    assert found(facts, "controller_logins") == []


def test_hosts_with_the_same_error_share_a_finding():
    bad = {"answered": [], "errors": ["SslAuthenticationException: SSL handshake failed (bad_certificate)"]}
    seen = the_one(with_logins(c1=bad, c2={}, c3=bad), "controller_logins")
    assert seen == (
        "c1, c3 cannot log in to the brokers' inter-broker listener with the controllers' settings: "
        "SslAuthenticationException: SSL handshake failed (bad_certificate)"
    )


def test_finding_for_a_broker_that_does_not_answer():
    seen = the_one(with_logins(c1={"answered": [1, 5]}, c2={}, c3={}), "controller_logins")
    assert seen == "c1 logged in to the brokers, but broker 2 did not answer"


def test_no_finding_for_a_dead_broker():
    facts = with_logins(c1={"answered": [1, 5]})
    del facts.cluster["zookeeper"]["broker_ids"]["2"]
    assert found(facts, "controller_logins") == []


def test_an_untested_login_is_a_warning():
    facts = with_logins(c1={"answered": [], "untried": "the login for GSSAPI is elsewhere"})
    (finding,) = found(facts, "controller_logins")
    assert finding["severity"] == "warns" and "the login for GSSAPI is elsewhere" in finding["seen"]


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


def test_client_settings_are_the_controllers_for_the_inter_broker_listener():
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


def test_without_a_listener_name_the_protocol_names_the_listener():
    properties = {"security.inter.broker.protocol": "SSL", "listener.name.ssl.ssl.key.password": "sealed:x"}
    settings, untried = kraft_config.inter_broker_client(properties)
    assert (settings, untried) == ({"security.protocol": "SSL", "ssl.key.password": "sealed:x"}, "")


@pytest.mark.parametrize("mechanism", ["GSSAPI", "SCRAM-SHA-512"])
def test_a_login_in_a_file_of_the_service_is_untested(mechanism):
    properties = {"security.inter.broker.protocol": "SASL_PLAINTEXT"}
    if mechanism != "GSSAPI":
        properties["sasl.mechanism.inter.broker.protocol"] = mechanism
    settings, untried = kraft_config.inter_broker_client(properties)
    assert settings == {} and f"the login for {mechanism} is not in listener.name.sasl_plaintext." in untried
