# Copyright: (c) 2026, Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Storing a fingerprint, and the settings file for Kafka's Java clients."""

from __future__ import annotations

import json
import os
import pathlib
import stat

import pandas
import pyarrow as pa
import pytest
from ansible_collections.quorumshift.kafka.plugins.module_utils.security import Security
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa
from quorumshift_spark.fingerprint import client, keys, store
from quorumshift_spark.fingerprint.compare import Fingerprint
from quorumshift_spark.fingerprint.coordinators import Coordinators, Group, Transaction
from quorumshift_spark.fingerprint.plan import Chunk, PartitionState

STATE = PartitionState("orders", 0, "id", 4, 0, 10, False, True, -1, -1, 1000)
CHUNKS = [
    Chunk("orders", 0, 0, 10, 2, 3, 400, 9, 1, 9, 5, 7, 3, 4, "ab" * 16),
    Chunk("orders", 0, 10, 20, 0, 0, 0, 0, None, None, None, None, None, None, "cd" * 16),
]
KEY = {"topic": "t", "partition": 1, "key_hash": -5, "offset": 3, "hash": 1 << 62, "tombstone": True, "timestamp": 9}
FINGERPRINT = Fingerprint(
    "cluster",
    123,
    {"orders": "id", "other": "id-2"},
    {STATE.tp: STATE},
    CHUNKS,
    pa.Table.from_pylist([KEY], keys.SCHEMA),
    Coordinators({"readers": Group("STABLE", {("orders", 0): 7})}, {"t": Transaction(5, 2)}, {"a": 1}),
)


def test_written_fingerprint_is_read_back(tmp_path: pathlib.Path) -> None:
    assert store.write(str(tmp_path), FINGERPRINT) == {"chunks.parquet": 2, "keys.parquet": 1, "groups.parquet": 1}
    assert store.read(str(tmp_path)) == FINGERPRINT
    for path in tmp_path.iterdir():
        assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_pandas_opens_the_files(tmp_path: pathlib.Path) -> None:
    store.write(str(tmp_path), FINGERPRINT)
    frame = pandas.read_parquet(tmp_path / "chunks.parquet")
    assert list(frame["records"]) == [3, 0]
    assert frame["hash"][0] == "ab" * 16
    assert list(pandas.read_parquet(tmp_path / "keys.parquet")["key_hash"]) == [-5]
    assert list(pandas.read_parquet(tmp_path / "groups.parquet")["offset"]) == [7]


def test_damaged_baseline_is_rejected(tmp_path: pathlib.Path) -> None:
    with pytest.raises(store.StoreError, match=r"fingerprint\.json is not a baseline"):
        store.read(str(tmp_path))
    store.write(str(tmp_path), FINGERPRINT)
    with open(tmp_path / "chunks.parquet", "ab") as file:
        file.write(b"x")
    with pytest.raises(store.StoreError, match=r"chunks\.parquet does not match its SHA-256"):
        store.read(str(tmp_path))
    store.write(str(tmp_path), FINGERPRINT)
    summary = json.loads((tmp_path / store.NAME).read_text())
    (tmp_path / store.NAME).write_text(json.dumps({**summary, "version": 1}))
    with pytest.raises(store.StoreError, match=r"version 1, this release reads version 2\. Use the release"):
        store.read(str(tmp_path))


def test_options_for_spark_hold_no_secret(tmp_path: pathlib.Path) -> None:
    options = {
        "security_protocol": "SASL_SSL",
        "sasl_mechanism": "SCRAM-SHA-512",
        "sasl_username": "bob",
        "sasl_password": 'se"cr\\et',
    }
    settings = client.java_settings(Security.from_options(options))
    assert settings["sasl.jaas.config"].endswith('username="bob" password="se\\"cr\\\\et";')
    path = tmp_path / "client.properties"
    spark_options = client.source_options(settings, str(path))
    assert all(secret not in json.dumps(spark_options) for secret in ('et"', "bob", "Scram"))
    assert spark_options["kafka.sasl.jaas.config"] == f"${{file:{path}:sasl.jaas.config}}"
    assert stat.S_IMODE(os.stat(path).st_mode) == 0o600
    assert 'password="se\\\\"cr\\\\\\\\et";' in path.read_text()


def test_pem_files_are_converted_for_kafkas_pem_stores(tmp_path: pathlib.Path) -> None:
    key = rsa.generate_private_key(65537, 2048)
    pem = key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.TraditionalOpenSSL,
        serialization.BestAvailableEncryption(b"word"),
    )
    certificate = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----"
    both = tmp_path / "both.pem"
    both.write_bytes(pem + certificate.encode() + b"\n")
    options = {"security_protocol": "SSL", "ssl_cafile": str(both), "ssl_certfile": str(both)}
    settings = client.java_settings(Security.from_options({**options, "ssl_keypassword": "word"}))
    assert settings["ssl.keystore.certificate.chain"] == certificate
    assert settings["ssl.keystore.key"].startswith("-----BEGIN ENCRYPTED PRIVATE KEY-----")
    assert settings["ssl.key.password"] == "word"
    with pytest.raises(client.ClientError, match="ssl_keypassword"):
        client.java_settings(Security.from_options({**options, "ssl_keypassword": "wrong"}))
    with pytest.raises(client.ClientError, match="ssl_verify"):
        client.java_settings(Security.from_options({"security_protocol": "SSL", "ssl_verify": False}))
