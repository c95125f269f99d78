# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""strays: directories that a broker renamed to -stray, as blocks of a phase."""

from __future__ import annotations

import pytest
from ansible_collections.quorumshift.kafka.plugins.module_utils.core.migration import phase, strays

from tests.unit.core import recorded

NAME = "orders-0.{}-stray".format("b2f3" * 8)


def with_stray(mode="kraft", name=NAME, replicas=(1, 2, 5)):
    facts = recorded.facts("hybrid_1_kraft")
    facts["nodes"]["b2"].update(running=mode)
    facts["nodes"]["b2"]["log_dirs"][0].update(path="/data", stray=[name])
    broker = facts["nodes"]["b2"]["node_id"]
    partition = {"leader": 1, "isr": [1], "replicas": [broker if number == 2 else number for number in replicas]}
    facts["topics"]["partitions"]["orders"] = {"0": partition}
    return facts


@pytest.mark.parametrize(("mode", "found"), [("kraft", True), ("zk_migration", True), ("zk", False), (None, False)])
def test_stray_directories_of_a_broker_in_migration_or_kraft_mode_are_a_block(mode, found):
    blocks = [block for block in phase.detect(with_stray(mode)).blocks if block.id == "stray_directories"]
    assert bool(blocks) == found
    if found:
        assert blocks[0].text.startswith("b2 did not find these directories assigned to it when it started, though")
        assert f"/data/{NAME}" in blocks[0].text and "on b2: mv /data/*-stray DIRECTORY" in blocks[0].do


def test_stray_directories_of_a_topic_that_was_deleted_or_moved_lose_nothing():
    deleted, moved = with_stray(), with_stray(replicas=(1, 9))
    del deleted["topics"]["partitions"]["orders"]
    for facts in (deleted, moved):
        assert strays.group_by_host(facts) == {} and strays.group_by_host(facts, lost=False) == {
            "b2": [f"/data/{NAME}"]
        }
        (block,) = [block for block in phase.detect(facts).blocks if block.id == "stray_directories"]
        assert block.text.startswith("b2 has directories of partitions that were deleted or moved while it restarted")


def test_a_stray_directory_whose_partition_is_unknown_counts_as_lost():
    unread = with_stray()
    unread["topics"] = {"reached": False, "error": "x"}
    cut = with_stray(name="o" * 214 + NAME[6:])
    cut["topics"]["partitions"]["o" * 249] = cut["topics"]["partitions"].pop("orders")
    for facts in (unread, with_stray(name="other-stray"), cut):
        assert list(strays.group_by_host(facts)) == ["b2"]
