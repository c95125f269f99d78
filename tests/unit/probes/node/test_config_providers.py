# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Variables of config providers. tests/integration/test_files_against_java.py compares with Kafka."""

from __future__ import annotations

import pytest
from ansible_collections.quorumshift.kafka.plugins.module_utils.host import service
from ansible_collections.quorumshift.kafka.plugins.module_utils.probes.node import config_providers
from ansible_collections.quorumshift.kafka.plugins.module_utils.probes.zookeeper import own_zookeeper
from ansible_collections.quorumshift.kafka.plugins.module_utils.secrets.security import SecurityError

PACKAGE = "org.apache.kafka.common.config.provider."
VALUES = {
    "config.providers": "env,vault",
    "config.providers.env.class": f"{PACKAGE}EnvVarConfigProvider",
    "config.providers.vault.class": "com.example.Vault",
    "zookeeper.connect": "z1:2181",
    "zookeeper.ssl.client.enable": "true",
    "zookeeper.ssl.keystore.location": "/k.pem",
}


def test_a_variable_of_the_environment():
    values = {**VALUES, "zookeeper.ssl.keystore.password": "${env:PW}"}
    plain, (variable,) = config_providers.resolve(values, {"PW": "grün"})
    assert plain["zookeeper.ssl.keystore.password"] == "grün" and variable.why == ""
    for environment, why in (({}, "has no PW"), (None, "could not be read")):
        (variable,) = config_providers.resolve(values, environment)[1]
        assert why in variable.why and variable.variable == "${env:PW}"


def test_a_provider_that_only_kafka_can_run_is_named():
    (variable,) = config_providers.find_variables({**VALUES, "a": "${vault:x:y}"}, {})
    assert variable["foreign"] == "com.example.Vault" and variable["why"]


def test_text_without_a_provider_stays():
    values = {"a": "${env:HOME}", "ssl.principal.mapping.rules": "RULE:^CN=(.*?),.*$/$1/"}
    assert config_providers.resolve(values, {"HOME": "/x"}) == (values, [])


def test_zookeeper_is_read_with_the_resolved_password(monkeypatch):
    monkeypatch.setattr(service, "read_environment", lambda name: {"PW": "secret"} if name == "kafka" else None)
    values = {**VALUES, "zookeeper.ssl.keystore.password": "${env:PW}"}
    effective = config_providers.effective_values(values, "kafka")
    assert own_zookeeper.connection(effective)[1].tls.keypassword == "secret"
    with pytest.raises(SecurityError, match=r"keystore.password: \$\{env:PW\} could not be resolved"):
        own_zookeeper.connection(values)
