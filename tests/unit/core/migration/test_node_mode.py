# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Modes from recorded answers of nodes during a migration, and from contradictory answers."""

from __future__ import annotations

import json
import pathlib

import pytest
from ansible_collections.quorumshift.kafka.plugins.module_utils.core.migration.node_mode import node_mode
from ansible_collections.quorumshift.kafka.plugins.module_utils.wire.kafka_wire import decode_api_versions

ANSWERS = json.loads((pathlib.Path(__file__).parents[2] / "wire" / "wire_answers.json").read_text())


def recorded(name):
    answer = ANSWERS[name]["api_versions"]
    return decode_api_versions(bytes.fromhex(answer["answer"]), answer["version"])


@pytest.mark.parametrize("name", sorted(ANSWERS))
def test_mode_of_a_recorded_node(name):
    answer = recorded(name)
    expected = "controller_migration" if name == "controller_migration_follower" else name
    assert node_mode(answer.api_keys, answer.zk_migration_ready) == expected
    assert node_mode([str(key) for key in answer.api_keys], answer.zk_migration_ready) == expected


def test_migration_mode_shows_only_in_tag_3():
    assert recorded("zk").api_keys == recorded("zk_migration").api_keys
    assert recorded("controller_final").api_keys == recorded("controller_migration").api_keys


@pytest.mark.parametrize(
    ("keys", "tag"),
    [
        ([], False),
        ([18], False),
        ([0, 52], False),
        ([4, 52], False),
        ([4], True),
        (recorded("kraft").api_keys, True),
    ],
)
def test_a_contradictory_answer_is_unknown(keys, tag):
    assert node_mode(keys, tag) == "unknown"
