# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""support_bundle and support_read: which secrets they know, whose artifacts they take, and what they leave alone."""

from __future__ import annotations

import json
import os
import tarfile

import pytest
from ansible_collections.quorumshift.kafka.plugins.action import support_bundle
from ansible_collections.quorumshift.kafka.plugins.module_utils.secrets.seal import MASK, seal, seal_bytes

from tests.unit.action.harness import CLUSTER

KEY = "ab" * 32  # of the harness
OTHER = "phUKKf3TSny1o9Yap379dw"


def read(log="", secrets=(), **more):
    """Return what support_read returns of a host."""
    texts = [{"kind": "log", "source": "/x.log", "sealed": seal_bytes(KEY, log.encode())}]
    known = seal_bytes(KEY, json.dumps(list(secrets)).encode())
    return {"texts": texts, "secrets": known, "unresolved": [], "versions": {"python": "3.8.0"}, **more}


def files(result):
    with tarfile.open(result["path"]) as archive:
        return {member.name.partition("/")[2]: archive.extractfile(member).read().decode() for member in archive}


class EncryptedString:
    """As Ansible names a value that the vault encrypts by itself."""

    def __str__(self):
        return "V4ultedWord"


def test_each_source_of_secrets_is_searched_in_the_logs(harness):
    harness.hostvars["b1"].update(
        vault_password="N4medWord",
        other={"api_token": ["L1stedWord"]},
        plain=EncryptedString(),
        vault_kafka_pw="V4ultPrefix",
        quorumshift_broker_config={"ssl.key.password": "C0nfigWord", "my.url": "http://u:Ur1Word@x"},
    )
    harness.facts("b2", quorumshift_node={"file": {"properties": {"ssl.key.password": seal(KEY, "F4ctWord")}}})
    harness.facts("c1", quorumshift_node={"digest_keys": {CLUSTER: seal(KEY, "D1gestWord")}})
    words = [
        "N4medWord",
        "L1stedWord",
        "V4ultedWord",
        "V4ultPrefix",
        "C0nfigWord",
        "Ur1Word",
        "F4ctWord",
        "D1gestWord",
        "H0stWord",
        KEY,
    ]
    harness.hostvars["b1"]["support_texts"] = read("\n".join(words), ["H0stWord"])
    result = harness.run("support_bundle")
    assert files(result)["hosts/b1/node.log"].split("\n") == [MASK] * len(words)


def test_a_short_secret_of_a_plugin_is_masked_in_the_inventory(harness):
    config = {"my.plugin.pin": "Zq1", "ssl.key.password": "Zq2", "log.retention.ms": 5}
    harness.hostvars["b1"]["quorumshift_broker_config"] = config
    harness.hostvars["b1"]["quorumshift_client"] = {"sasl_password": "Zq3", "sasl_username": "ops"}
    shown = json.loads(files(harness.run("support_bundle"))["inventory.json"])["b1"]
    assert shown["quorumshift_broker_config"] == {
        "my.plugin.pin": MASK,
        "ssl.key.password": MASK,
        "log.retention.ms": "5",
    }
    assert shown["quorumshift_client"] == {"sasl_password": MASK, "sasl_username": "ops"}


def test_the_cluster_id_of_a_log_directory_is_no_secret(harness):
    meta = {"cluster.id": CLUSTER, "broker.id": "1"}
    harness.facts("b1", quorumshift_node={"log_dirs": [{"meta": meta}], "version": "3.9.1"})
    shown = files(harness.run("support_bundle"))
    assert json.loads(shown["hosts/b1/facts.json"])["log_dirs"] == [{"meta": meta}]
    assert json.loads(shown["versions.json"])["hosts"]["b1"]["kafka"] == "3.9.1"


def test_a_bundle_without_any_answer_is_made(harness):
    result = harness.run("support_bundle", {"runs": 1})
    missing = {item["what"] for item in result["missing"]}
    assert {"status", "status.json", "hosts/b1/facts.json", "the secrets of b1", "the secrets of c1"} <= missing
    assert os.path.dirname(result["path"]) == harness.artifacts.cluster and result["changed"] is False
    assert "journal.jsonl" in "".join(files(result))


def test_the_status_is_that_of_the_task(harness):
    harness.hostvars["localhost"]["support_status"] = {"screen": ["Cluster x: zk", "  next"], "phase": "zk"}
    harness.artifacts.save_status('{"phase": "zk"}')
    shown = files(harness.run("support_bundle"))
    assert shown["status.txt"] == "Cluster x: zk\n  next\n" and json.loads(shown["status.json"]) == {"phase": "zk"}


def test_artifacts_of_several_clusters_are_not_mixed(fresh, tmp_path):
    for name in (OTHER, "unknown"):
        (tmp_path / name / "20260101T000000-aaaa").mkdir(parents=True)
        (tmp_path / name / "20260101T000000-aaaa" / "journal.jsonl").write_text("")
    result = fresh.run("support_bundle")
    assert not any(name.startswith("runs/") for name in files(result))
    assert any("artifacts of 2 clusters" in item["why"] for item in result["missing"])


def test_a_failure_is_journaled_nowhere(harness):
    before = harness.events()
    harness.hostvars["b1"].update(a_password="******x", b_password="SECRET1", support_texts=read("SECRET1x"))
    result = harness.run("support_bundle")
    assert result["failed"] and "hosts/b1/node.log" in result["msg"] and "SECRET1" not in result["msg"]
    assert harness.events() == before and not [
        name for name in os.listdir(harness.artifacts.cluster) if "support" in name
    ]


def test_check_mode_writes_nothing(harness):
    harness.check_mode = True
    assert harness.run("support_bundle")["path"] is None
    assert not [name for name in os.listdir(harness.artifacts.cluster) if "support" in name]


def test_short_secrets_are_told(harness):
    harness.hostvars["b1"]["a_password"] = "abc"
    harness.run("support_bundle")
    assert any("too short to be searched for: 1" in line for line in harness.printed)


def test_a_damaged_text_and_an_unresolved_secret_are_missing(harness):
    harness.hostvars["b1"]["support_texts"] = read(unresolved=["ssl.key.password: only Kafka can run it"])
    harness.hostvars["b1"]["support_texts"]["texts"][0]["sealed"] = seal("cd" * 32, "x")
    missing = {item["what"]: item["why"] for item in harness.run("support_bundle")["missing"]}
    assert "of another run" in missing["hosts/b1/node.log"] and any(
        "secret of ssl.key.password" in what for what in missing
    )


def test_a_failed_reading_is_a_reason(harness):
    result = harness.run("support_read", {}, {"failed": True, "msg": "no python"}, host="b1")
    assert result == {"changed": False, "unread": "no python"}
    assert harness.asked[0]["config_file"] == "/etc/kafka/server.properties" and harness.asked[0]["run_key"] == KEY
    harness.hostvars["b1"]["support_texts"] = result
    missing = {item["what"]: item["why"] for item in harness.run("support_bundle")["missing"]}
    assert missing["hosts/b1/node.*"] == "no python"


@pytest.mark.parametrize("name", ["../../etc", "..", "a/b", "-x", "b1"])
def test_a_host_name_is_no_way_out_of_the_archive(harness, name):
    directory = support_bundle.support_bundle.file_name(name)
    assert "/" not in directory and not directory.startswith(".")


def test_hosts_in_addresses():
    def found(value):
        return list(support_bundle._hosts_in(value))

    assert found("PLAINTEXT://b1:9092,X://[fd00::1]:9") == ["b1", "fd00::1"]
    assert found("101@c1:9093,102@c2:9093") == ["c1", "c2"] and found("z1:2181,z2:2181/kafka") == ["z1", "z2"]
    assert found(["b1:9092", "b2"]) == ["b1", "b2"] and found("") == [] and found(None) == ["None"]
