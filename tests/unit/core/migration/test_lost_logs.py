# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""When a voter may be formatted again: against a model of Raft, and what the block says on recorded facts."""

from __future__ import annotations

import itertools

import pytest
from ansible_collections.quorumshift.kafka.plugins.module_utils.core.gates import gates
from ansible_collections.quorumshift.kafka.plugins.module_utils.core.migration import lost_logs, phase

from tests.unit.core.lost_log import lost_log


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


def advice(facts):
    """Return what to do about c2: as a lost log, which no wait removes, or as a controller that is down."""
    detected = phase.detect(facts)
    blocks = {block.id: block for block in detected.blocks}
    lost = lost_logs.BLOCK in blocks
    block = blocks[lost_logs.BLOCK if lost else "controllers_down"]
    assert lost == bool(gates.find_lasting(detected)) and lost == ("log directory" in block.do), block
    return block.do


@pytest.mark.parametrize("name", ["dual_write_one_controller_down", "finalized_one_controller_down"])
def test_a_lost_log_is_formatted_where_the_others_have_everything(name):
    facts = lost_log(name)
    said = advice(facts)
    assert said.startswith(
        "the log directory of c2 is empty. If its disk is not mounted, mount it and start the service."
    )
    token = lost_logs.make_token(facts["nodes"], ["c2"], phase.cluster_id(facts))
    assert said.endswith(f" -e quorumshift_format_token={token}") and lost_logs.find_formattable(facts) == ["c2"]
    assert "have the metadata" not in said
    facts["quorum"]["voters"][0]["log_end_offset"] -= 1
    facts["quorum"]["voters"][-1]["log_end_offset"] -= 1
    assert "Do not format it now: of 3 voters, " in advice(facts) and "token" not in advice(facts)
    assert lost_logs.find_formattable(facts) == []


def test_the_token_is_of_these_disks_and_of_no_later_loss():
    facts = lost_log()
    cluster_id = phase.cluster_id(facts)
    tokens = [lost_logs.make_token(facts["nodes"], hosts, cluster_id) for hosts in (["c2"], ["c1"], ["c1", "c2"])]
    tokens.append(lost_logs.make_token(facts["nodes"], ["c2"], "X"))
    facts["nodes"]["b1"]["run_locks"] = {cluster_id: {"number": 99, "run": "night", "closed": True}}
    tokens.append(lost_logs.make_token(facts["nodes"], ["c2"], cluster_id))
    assert len(set(tokens)) == len(tokens) and tokens[0].startswith(f"{cluster_id}:")


@pytest.mark.parametrize(
    "service", [None, {"active_state": "active"}, {"masked": True}, {"active_state": "activating"}]
)
def test_a_controller_that_is_not_down_by_its_own_host_is_not_formatted(service):
    facts = lost_log()
    node = facts["nodes"]["c2"]
    node["service"] = {**node["service"], **service} if service else None
    assert lost_logs.find_formattable(facts) == []


NO_LEADER = {"reached": False, "error": "timed out", "voters": [], "observers": []}


@pytest.mark.parametrize(
    ("said", "change", "log_dir"),
    [
        (
            "Do not format it now: the quorum has no leader that answers",
            lambda facts: facts.update(quorum=NO_LEADER),
            {},
        ),
        ("its node id is not known", lambda facts: facts["nodes"]["c2"].update(node_id=None), {}),
        (
            "the file of c1 has no controller.quorum.voters",
            lambda facts: facts["nodes"]["c1"]["file"]["properties"].pop("controller.quorum.voters"),
            {},
        ),
        (
            "b1 serves kraft.version 1 or higher. With it, a formatted controller is another voter",
            lambda facts: facts["nodes"]["b1"].update(
                features={"supported": {}, "finalized": {"kraft.version": 1}, "epoch": 7}
            ),
            {},
        ),
        ("has files and no meta.properties", lambda _facts: None, {"empty": False}),
        ("start them. On each: systemctl start ", lambda _facts: None, {"error": "Input/output error"}),
    ],
)
def test_what_is_not_known_is_not_formatted(said, change, log_dir):
    facts = lost_log(**log_dir)
    assert lost_logs.find_formattable(facts) == ([] if log_dir else ["c2"])
    change(facts)
    assert said in advice(facts) and lost_logs.find_formattable(facts) == [], advice(facts)
