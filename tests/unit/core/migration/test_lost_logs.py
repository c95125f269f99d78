# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""When a voter may be formatted again: against a model of Raft, and what the block says on recorded facts."""

from __future__ import annotations

import itertools

import pytest
from ansible_collections.quorumshift.kafka.plugins.module_utils.core.migration import lost_logs, phase

from tests.unit.core import recorded


def may_lose(ends, lost, committed):
    """Return whether, once these voters have an empty log, some majority could elect a leader without an offset that
    was committed. A voter votes for a candidate whose log is at least as long as its own (one epoch)."""
    logs = [0 if voter in lost else end for voter, end in enumerate(ends)]
    majority = len(ends) // 2 + 1
    return any(
        logs[candidate] < committed and all(logs[voter] <= logs[candidate] for voter in group)
        for group in itertools.combinations(range(len(ends)), majority)
        for candidate in group
    )


@pytest.mark.parametrize("voters", [1, 3, 4, 5])
def test_formatting_is_advised_exactly_where_no_election_can_lose_what_was_committed(voters):
    safe = 0
    for ends in itertools.product((1, 2, 3), repeat=voters):
        committed = sorted(ends)[-(voters // 2 + 1)]  # the high watermark: what a majority has
        quorum = {
            "reached": True,
            "high_watermark": committed,
            "voters": [{"id": voter, "log_end_offset": end} for voter, end in enumerate(ends)],
        }
        for count in range(1, voters + 1):
            for lost in itertools.combinations(range(voters), count):
                advised = lost_logs.explain_unsafe(quorum, lost) == ""
                assert advised != may_lose(ends, lost, committed), (ends, lost)
                safe += advised
    assert safe or voters == 1


def lose(facts, host="c2", **log_dir):
    node = facts["nodes"][host]
    node["running"] = None
    node["log_dirs"] = [{"path": "/var/lib/kafka/metadata", "exists": True, "empty": True, "meta": None, **log_dir}]
    node["metadata_log"] = None
    return facts


def advice(facts):
    (block,) = [block for block in phase.detect(facts).blocks if block.id == "controllers_down"]
    return block.do


@pytest.mark.parametrize("name", ["dual_write_one_controller_down", "finalized_one_controller_down"])
def test_a_lost_log_is_formatted_where_the_others_have_everything(name):
    facts = lose(recorded.facts(name))
    facts["nodes"]["c2"]["storage_tool"] = "/opt/kafka/bin/kafka-storage.sh"
    number = facts["nodes"]["c2"]["node_id"]
    for voter in facts["quorum"]["voters"]:
        if voter["id"] != number:
            voter["log_end_offset"] = facts["quorum"]["high_watermark"]
    said = advice(facts)
    assert said.startswith(
        "the log directory of c2 is empty. If its disk is not mounted, mount it and start the service."
    )
    assert f"-- /opt/kafka/bin/kafka-storage.sh format --cluster-id={phase.cluster_id(facts)} --config /" in said
    assert "have the metadata" not in said
    facts["quorum"]["voters"][0]["log_end_offset"] -= 1
    facts["quorum"]["voters"][-1]["log_end_offset"] -= 1
    assert "Do not format it now: of 3 voters, " in advice(facts) and "--cluster-id" not in advice(facts)


def test_what_is_not_known_is_not_formatted():
    facts = lose(recorded.facts("dual_write_one_controller_down"))
    facts["quorum"] = {"reached": False, "error": "timed out", "voters": [], "observers": []}
    assert "Do not format it now: the quorum has no leader that answers" in advice(facts)
    facts = lose(recorded.facts("dual_write_one_controller_down"))
    facts["nodes"]["c2"]["node_id"] = None
    assert "its node id is not known" in advice(facts)
    facts = lose(recorded.facts("dual_write_one_controller_down"), empty=False)
    assert "has files and no meta.properties" in advice(facts) and "Do not format it" in advice(facts)
    facts = lose(recorded.facts("dual_write_one_controller_down"), error="Input/output error")
    assert advice(facts).startswith("start them. On each: systemctl start ")
