# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Secrets in text that others wrote."""

from __future__ import annotations

import pathlib
import re

import pytest
from ansible_collections.quorumshift.kafka.plugins.module_utils.probes.node import own_log
from ansible_collections.quorumshift.kafka.plugins.module_utils.secrets import masking
from ansible_collections.quorumshift.kafka.plugins.module_utils.worker import restart_files


@pytest.mark.parametrize(
    "text",
    [
        "saw ssl.key.password=hunter2 there",
        "Password = hunter2",
        "password: hunter2",
        'facts {"ssl.keystore.password": "hunter2", "a": 1}',
        "facts {'sasl.jaas.config': 'x \\' hunter2'}",
        'x.PlainLoginModule required username="kafka" password="hun\\"ter2" user_kafka="hunter2";',
        'x.PlainLoginModule required \\\n username="kafka" \\\n  password="hunter2";',
        '{"a": "PlainLoginModule required username=\\"u\\" password=\\"hunter2\\";"}',
        "https://app:hunter2@host/x",
        "https://hunter2@host/x",
        "Authorization: Basic aHVudGVyMg==",
        'Authorization: Digest username="x", response="hunter2"',
        "headers {Authorization=Bearer hunter2}",
        '"Authorization": "Basic hunter2"',
        "sent Bearer hunter2hunter2 to it",
        "-----BEGIN PRIVATE KEY-----\nhunter2\n-----END PRIVATE KEY-----",
        "-----BEGIN ENCRYPTED PRIVATE KEY-----\nMIIhunter2",
        "\tvendor.setting = hunter2",
        "basic.auth.user.info=user:hunter2",
        "a.api.key=hunter2, b=3 {x.token=hunter2}",
        "azure.account.key=hunter2; gcs.credentials=hunter2",
        "SCRAM salt=hunter2,stored_key=hunter2,server_key=hunter2,iterations=4096",
        "java x --password hunter2 --y z",
        'user_alice="hunter2"',
        "export KEYSTORE_PASS='hunter2' SSL_KEY_PASS=hunter2",
        "SSL_KEY_PASS: hunter2",
        "ansible_become_pass=hunter2, ansible_ssh_pass: hunter2",
        "keytool -list -storepass hunter2 -keypass hunter2 -keystore x",
        "java -Dpass=hunter2 -Dzookeeper.DigestAuthenticationProvider.superDigest=super:hunter2 x",
    ],
)
def test_secrets_are_masked(text):
    masked = masking.mask(text)
    assert not {"hunter2", "ter2", "aHVudGVyMg"} & {
        part for part in ("hunter2", "ter2", "aHVudGVyMg") if part in masked
    }
    assert masking.mask(masked) == masked


@pytest.mark.parametrize(
    "text",
    [
        "[2026-11-21 00:00:00,000] ERROR [KafkaServer id=1] Fatal error during startup (kafka.server.KafkaServer)",
        "INFO Client environment:java.version=17.0.2 (org.apache.zookeeper.ZooKeeper)",
        "INFO [ReplicaManager broker=1] token expired: retry; Invalid credentials: SASL authentication failed",
        "ERROR Authorization failed for User:alice. Cluster authorization failed.",
        "voters SSL://h1:9093,2@h2:9093 and PLAINTEXT://b1:9092 (id: 1 rack: null)",
        "delegation.token.max.lifetime.ms=100, password.encoder.iterations=4096",
        "\tlog.dirs = /data\n\tssl.key.password = null\n\tsasl.jaas.config = [hidden]",
        "add -e quorumshift_finalize_token=Qs7KfZk2TIK1n0nQ5Qm3Tw:123456",
        "USER_SCRAM_CREDENTIAL_RECORD: 13 in ZooKeeper before, 16 after; DELEGATION_TOKEN_RECORD: 2 copied",
        "the first pass: it reads all, bypass=1, compass=north, pass_count=3, pass-through = on",
        "the cluster id is secret-cluster, in /etc/kafka/secrets/ca.pem",
    ],
)
def test_harmless_text_stays(text):
    assert masking.mask(text) == text


def test_values_of_secrets_are_masked_wherever_they_are():
    settings = {
        "ssl.key.password": "hunter",
        "ssl.keystore.password": "abc",  # too short: it would make the log unreadable
        "sasl.jaas.config": 'PlainLoginModule required username="kafka" password="swordfish";',
        "plugin.setting": "Xyzzy-123!",
        "plugin.class": "org.example.kafka.Plugin",
        "plugin.enabled": "true",
        "plugin.servers": "b1:9092",
        "advertised.listeners": "PLAINTEXT://b1:9092",
    }
    known = masking.known_secrets(settings)
    text = "hunter abc kafka swordfish Xyzzy-123! org.example.kafka.Plugin true b1:9092"
    assert masking.mask(text, known) == "******** abc kafka ******** ******** org.example.kafka.Plugin true b1:9092"


def test_nested_values_are_masked():
    given = {"msg": ["password=hunter2"], "n": 1, "plugin.token": "hunter2", "delegation_tokens": {"id": "owner"}}
    assert masking.mask_all(given) == {
        "msg": ["password=********"],
        "n": 1,
        "plugin.token": "********",
        "delegation_tokens": {"id": "owner"},
    }


def test_a_log_excerpt_is_masked_and_stays_readable(tmp_path):
    log = tmp_path / "server.log"
    log.write_text(
        "[2026-11-21 00:00:00,000] INFO values:\n\tplugin.api.key = hunter2\n"
        "[2026-11-21 00:00:01,000] ERROR No login for swordfish (kafka.Kafka$)\n"
        'java.lang.IllegalArgumentException: PlainLoginModule required \\\n  password="hunter2" Exception;\n'
    )
    excerpt = own_log.excerpt(str(log), 0, "kafka", {"ssl.key.password": "swordfish"})
    assert "hunter2" not in excerpt and "swordfish" not in excerpt
    assert "ERROR No login for ******** (kafka.Kafka$)" in excerpt


def test_a_diff_hides_repeated_keys_comments_and_plugins():
    old = (
        "broker.id=1\n# ssl.key.password=hunter1\nssl.key.password=hunter2\nssl.key.password=hunter3\n"
        'sasl.jaas.config=x \\\n  hunter4\nplugin.x=hunter5\n# see password="hunter6" there\n#log.dirs=/data\n'
    )
    assert restart_files.masked_text(old.encode()) == (
        "broker.id=1\n# ssl.key.password=********\nssl.key.password=********\nssl.key.password=********\n"
        'sasl.jaas.config=********\nplugin.x=********\n# see password="********" there\n#log.dirs=/data\n'
    )


def test_a_diff_says_that_a_secret_differs():
    old, new = "plugin.x=hunter1\nplugin.y=same\n", "plugin.x=hunter2\nplugin.y=same\n"
    assert restart_files.masked_text(new.encode(), old.encode()) == "plugin.x=******** (differs)\nplugin.y=********\n"


def test_no_message_looks_like_a_secret():
    pages = sorted((pathlib.Path(__file__).parents[3] / "docs" / "messages").glob("*.md"))
    text = "\n".join(path.read_text(encoding="utf-8") for path in pages)
    messages = re.findall(r"^> - `+ ?(.*?) ?`+$", text, re.MULTILINE)
    assert len(messages) > 700
    for message in messages:
        shown = message.replace("…", "13")
        assert masking.mask(shown) == shown
