# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Secrets sealed under a run's key."""

from __future__ import annotations

import base64

import pytest
from ansible_collections.quorumshift.kafka.plugins.module_utils.secrets import seal

SECRETS = ["", "x", "a" * 31, "a" * 32, "a" * 33, "pass word;with=all:of it\n", "grüße 🔑", "s" * 5000]


@pytest.mark.parametrize("secret", SECRETS)
def test_sealed_secret_opens_with_its_key(secret):
    sealed = seal.seal("key", secret)
    assert sealed.startswith(seal.PREFIX) and seal.unseal("key", sealed) == secret


@pytest.mark.parametrize("secret", [secret for secret in SECRETS if len(secret) > 1])
def test_sealed_value_does_not_contain_the_secret(secret):
    sealed = seal.seal("key", secret)
    assert secret not in sealed
    assert secret.encode() not in base64.b64decode(sealed[len(seal.PREFIX) :])


def test_equal_secrets_have_equal_sealed_values_only_within_a_run():
    assert seal.seal("key", "one") == seal.seal("key", "one") != seal.seal("key", "two")
    assert seal.seal("key", "one") != seal.seal("another", "one")


def test_key_of_another_run_does_not_open():
    with pytest.raises(seal.SealError, match="gather the nodes' facts again in this run"):
        seal.unseal("another", seal.seal("key", "secret"))


@pytest.mark.parametrize("place", [0, 5, 15, 16, -1])
def test_changed_value_does_not_open(place):
    raw = bytearray(base64.b64decode(seal.seal("key", "a secret of some length")[len(seal.PREFIX) :]))
    raw[place] ^= 1
    with pytest.raises(seal.SealError):
        seal.unseal("key", seal.PREFIX + base64.b64encode(bytes(raw)).decode())


@pytest.mark.parametrize("broken", ["", "AA==", "not base64!"])
def test_damaged_value_does_not_open(broken):
    with pytest.raises(seal.SealError):
        seal.unseal("key", seal.PREFIX + broken)


def test_plain_value_is_returned_unchanged():
    assert seal.unseal("key", "PLAINTEXT://b1:9092") == "PLAINTEXT://b1:9092"


@pytest.mark.parametrize(
    "key",
    [
        "ssl.keystore.password",
        "ssl.key.password",
        "zookeeper.ssl.truststore.password",
        "password.encoder.secret",
        "password.encoder.old.secret",
        "delegation.token.secret.key",
        "delegation.token.master.key",
        "sasl.jaas.config",
        "listener.name.clients.scram-sha-512.sasl.jaas.config",
        "listener.name.clients.ssl.keystore.key",
        "listener.name.clients.oauthbearer.sasl.jaas.config",
        "listener.name.clients.basic.auth.user.info",
        "confluent.license.password",
        "confluent.schema.registry.basic.auth.user.info",
        "confluent.telemetry.api.key",
        "confluent.license",
        "plugin.token",
        "azure.account.key",
        "gcs.credentials",
        "rsm.config.endpoint",
        "custom.sasl.login.class",
        "plain.broker.id",
    ],
)
def test_secret_keys_are_masked(key):
    assert seal.is_secret(key) and seal.mask_value(key, "hidden") == seal.MASK


@pytest.mark.parametrize(
    "key",
    [
        "password.encoder.iterations",
        "password.encoder.key.length",
        "password.encoder.cipher.algorithm",
        "password.encoder.keyfactory.algorithm",
        "ssl.keystore.location",
        "ssl.keystore.type",
        "delegation.token.max.lifetime.ms",
        "super.users",
        "zookeeper.connect",
        "retention.ms",
        "listener.name.clients.ssl.keystore.location",
        "listener.name.clients.scram-sha-512.sasl.login.class",
        "listener.name.clients.max.connections",
    ],
)
def test_other_keys_are_not_masked(key):
    assert not seal.is_secret(key) and seal.mask_value(key, "shown") == "shown"


def test_a_user_in_a_url_is_hidden():
    key, url = "sasl.oauthbearer.token.endpoint.url", "https://app:hunter2@idp:443/token"
    assert seal.mask_value(key, url) == "https://********@idp:443/token"
    sealed = seal.seal_properties("key", {key: url, "listeners": "PLAINTEXT://b1:9092", "plugin.x": "y"})
    assert sealed["listeners"] == "PLAINTEXT://b1:9092"
    assert sealed[key].startswith(seal.PREFIX) and sealed["plugin.x"].startswith(seal.PREFIX)
