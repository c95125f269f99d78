# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""unknown_znodes: paths and keys that Apache Kafka 3.9 does not have."""

from __future__ import annotations

import json

import pytest
from ansible_collections.quorumshift.kafka.plugins.module_utils.formats.zookeeper import unknown_znodes, znodes


@pytest.mark.parametrize(
    ("path", "pattern"),
    [
        ("/confluent", "/confluent"),
        ("/config/cluster-links", "/config/cluster-links"),
        ("/config/topics/orders/x", "/config/topics/*/x"),
        ("/config/users/u/clients/c/x", "/config/users/*/clients/*/x"),
        ("/brokers/topics/orders/x", "/brokers/topics/*/x"),
        ("/brokers/topics/orders/partitions/3/x", "/brokers/topics/*/partitions/*/x"),
        ("/brokers/topics/orders/partitions/3/state/x", "/brokers/topics/*/partitions/*/state/x"),
        ("/brokers/ids/1/x", "/brokers/ids/*/x"),
        ("/kafka-acl-extended/other", "/kafka-acl-extended/other"),
        ("/kafka-acl-extended/other/Topic/t", "/kafka-acl-extended/other/Topic/t"),
    ],
)
def test_unknown_paths(path, pattern):
    assert unknown_znodes.is_unknown(path)
    assert unknown_znodes.pattern(path) == pattern


@pytest.mark.parametrize(
    "path",
    [
        "/",
        "/brokers/topics/orders/partitions",
        "/brokers/topics/orders/partitions/3",
        "/brokers/topics/orders/partitions/3/state",
        "/config/users/u/clients/c",
        "/kafka-acl/Topic/a/b",
        "/kafka-acl-extended/prefixed",
        "/kafka-acl-extended/prefixed/Topic/t",
        "/migration",
        "/consumers/g/offsets",
    ],
)
def test_known_paths(path):
    assert not unknown_znodes.is_unknown(path)


def node(path, value):
    return znodes.Znode(path, value if isinstance(value, bytes) else json.dumps(value).encode(), None, None)


def test_unknown_keys_and_versions():
    topic = {"version": 3, "topic_id": "x", "partitions": {}, "adding_replicas": {}, "removing_replicas": {}}
    assert unknown_znodes.unknown_keys(node("/brokers/topics/t", topic)) == []
    newer = {**topic, "version": 4, "observers": {}}
    assert unknown_znodes.unknown_keys(node("/brokers/topics/t", newer)) == ["observers", "version-4"]
    acls = {"version": 1, "acls": [{"principal": "User:a", "scope": "x", "host": "*"}]}
    assert unknown_znodes.unknown_keys(node("/kafka-acl/Topic/t", acls)) == ["acls.scope"]
    for odd in (b"", b"{", b"\xff", b"[]", b"[" * 100_000):
        assert unknown_znodes.unknown_keys(node("/brokers/topics/t", odd)) == []
