# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Requests as Kafka's own classes read them, and answers as they write them (kafka-clients 3.9.2, recorded)."""

from __future__ import annotations

import pytest
from ansible_collections.quorumshift.kafka.plugins.module_utils.formats.requests import admin_requests as made
from ansible_collections.quorumshift.kafka.plugins.module_utils.formats.requests import apis, kafka_answers

REQUESTS = [
    (
        made.alter_reassignments({("t", 3): [1, 2], ("t", 1): None, ("u", 0): [4]}, 5000),
        "0000138803027403000000010000000000030300000001000000020000027502000000000200000004000000",
    ),
    (made.list_reassignments(7), "000000070000"),
    (
        made.update_features({"metadata.version": (21, made.UPGRADE)}, True, 9),
        "0000000902116d657461646174612e76657273696f6e001501000100",
    ),
    (
        made.alter_configs({(made.BROKER, "1"): {"k": "v", "z": None}, (made.TOPIC, "t"): {"y": "1"}}),
        "03020274020279000231000004023103026b00027600027a010000000000",
    ),
    (made.log_dirs([("t", 3), ("t", 1)]), "0202740300000001000000030000"),
    (made.elect_preferred([("t", 3), ("t", 1)], 9), "00020274030000000100000003000000000900"),
]
ANSWERS = [
    (
        apis.ALTER_REASSIGNMENTS,
        "000000000000010202740200000003002704626164000000",
        "responses",
        [{"name": "t", "partitions": [{"partitionIndex": 3, "errorCode": 39, "errorMessage": "bad"}]}],
    ),
    (
        apis.LIST_REASSIGNMENTS,
        "0000000000000102027402000000030400000001000000020000000302000000030200000001000000",
        "topics",
        [
            {
                "name": "t",
                "partitions": [
                    {"partitionIndex": 3, "replicas": [1, 2, 3], "addingReplicas": [3], "removingReplicas": [1]}
                ],
            }
        ],
    ),
    (
        apis.UPDATE_FEATURES,
        "0000000000000102116d657461646174612e76657273696f6e005f036e6f0000",
        "results",
        [{"feature": "metadata.version", "errorCode": 95, "errorMessage": "no"}],
    ),
    (
        apis.INCREMENTAL_ALTER_CONFIGS,
        "0000000002002802780402310000",
        "responses",
        [{"errorCode": 40, "errorMessage": "x", "resourceType": 4, "resourceName": "1"}],
    ),
    (
        apis.DESCRIBE_LOG_DIRS,
        "000000000000020000032f640202740200000003000000000000004d0000000000000001010000000000000000000900000000000000050000",
        "results",
        [
            {
                "errorCode": 0,
                "logDir": "/d",
                "topics": [
                    {
                        "name": "t",
                        "partitions": [{"partitionIndex": 3, "partitionSize": 77, "offsetLag": 1, "isFutureKey": True}],
                    }
                ],
                "totalBytes": 9,
                "usableBytes": 5,
            }
        ],
    ),
]
QUORUM = (
    "00000102135f5f636c75737465725f6d65746164617461020000000000000100000001000000000000000000000000020000"
    "0001000000000000000000000000000000000000000000000000ffffffffffffffffffffffffffffffff0001000002000000"
    "01020b434f4e54524f4c4c455202689c40000000"
)


@pytest.mark.parametrize(("asked", "recorded"), REQUESTS)
def test_requests(asked, recorded):
    assert asked.body(asked.api.newest).hex() == recorded


@pytest.mark.parametrize(("api", "recorded", "field", "value"), ANSWERS)
def test_answers(api, recorded, field, value):
    assert apis.Answer(api, api.newest, bytes.fromhex(recorded)).fields()[field] == value


def test_the_quorum_names_its_voters_addresses():
    assert kafka_answers.decode_quorum(bytes.fromhex(QUORUM), 2).endpoints == {1: ("h", 40000)}
