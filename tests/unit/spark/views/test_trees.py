# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A znode's digest covers all of it, and what is shown of it holds no secret."""

from __future__ import annotations

import json

import pytest
from ansible_collections.quorumshift.kafka.plugins.module_utils.formats.zookeeper import zk_files as files
from quorumshift_spark.normal_form import Digests
from quorumshift_spark.views import trees

KEY = b"0123456789abcdef"
NODE = files.Node(b"data", (1, 2, 3, 4, 5, 6, 7, 8, 9), files.OPEN_ACL)


def test_each_part_of_a_znode_changes_its_digest():
    stats = [NODE._replace(stat=(*NODE.stat[:at], 99, *NODE.stat[at + 1 :])) for at in range(len(NODE.stat))]
    others = [NODE._replace(data=None), NODE._replace(data=b""), NODE._replace(acl=((1, "world", "anyone"),))]
    assert len({trees.digest(KEY, "/a", node) for node in (NODE, *stats, *others)}) == len(stats) + len(others) + 1
    assert trees.digest(b"another key of 16", "/a", NODE) != trees.digest(KEY, "/a", NODE)


def test_a_znode_without_a_known_acl_is_an_error():
    with pytest.raises(files.ZooKeeperFileError, match="/a: the snapshot has no ACL"):
        trees.digest(KEY, "/a", NODE._replace(acl=None))


@pytest.mark.parametrize(
    ("path", "shown"),
    [
        ("/brokers/topics/t", True),
        ("/controller", True),
        ("/config/topics/t", True),
        ("/config/users/alice", False),
        ("/config/brokers/1", False),
        ("/delegation_token/tokens/t", False),
        ("/controller_of_others", False),
        ("/own", False),
    ],
)
def test_data_is_shown_only_where_kafka_keeps_no_secret(path, shown):
    fields = trees.fields(path, NODE, Digests(KEY))
    assert (json.loads(fields["data"]) == "data") == shown
    assert set(fields) == set(trees.FIELDS) and json.loads(fields["czxid"]) == "0x1"


def test_the_hash_of_a_password_in_an_acl_is_not_shown():
    node = NODE._replace(acl=((31, "digest", "user:hash of it"), (1, "sasl", "kafka")))
    acl = trees.fields("/a", node, Digests(KEY))["acl"]
    assert "hash of it" not in acl and "kafka" in acl


def test_without_a_chroot_the_ensembles_own_znodes_are_not_kafkas():
    assert [path for path in ("/", "/zookeeper", "/zookeeper/config", "/zookeepers") if trees.of_kafka(path, "")] == [
        "/",
        "/zookeepers",
    ]
    assert trees.of_kafka("/zookeeper", "/kafka")
