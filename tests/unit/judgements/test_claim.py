# Copyright: (c) 2026, Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Who may act."""

from __future__ import annotations

import pytest
from ansible_collections.quorumshift.kafka.plugins.module_utils.judgements import claim

CLUSTER = "Xk-cluster"
PROCESS = {"boot_id": "b", "pid_namespace": "pid:[1]", "pid": 7, "started": 100}


def held(number=4, run="r4", closed=False, **more):
    return {
        **{"number": number, "run": run, "direction": "forward", "user": "ops", "host": "control-1", "job": None},
        **{"process": PROCESS, "since": 1_790_000_000, "closed": closed},
        **more,
    }


def nodes(**claims):
    told = {"b3": {"node_id": 5}, "b1": {"node_id": 1}, "c1": {"node_id": 101}}
    for host, one in claims.items():
        told[host]["claims"] = {CLUSTER: one}
    return told


def judge(told, run="r5", alive=None, takeover="", direction="forward"):
    return claim.judge(told, CLUSTER, {"run": run, "direction": direction, "alive": alive}, takeover)


def test_a_cluster_that_nobody_claimed_is_free():
    verdict = judge(nodes())
    assert verdict.refused is None and verdict.number == 1 and verdict.newest is None


def test_the_arbiter_is_the_lowest_node_id_and_not_a_name():
    assert judge(nodes()).hosts == ["b1", "b3", "c1"]


def test_a_host_without_a_node_id_comes_last():
    told = {"a1": {"node_id": None}, "z9": {"node_id": 3}}
    assert claim.order(told) == ["z9", "a1"]


def test_another_cluster_on_the_same_hosts_is_another_matter():
    told = nodes()
    told["b1"]["claims"] = {"other": held()}
    assert judge(told).refused is None


def test_an_open_claim_refuses_and_names_its_holder_and_the_word():
    verdict = judge(nodes(b1=held(), b3=held(), c1=held()))
    assert "run r4 (forward) of ops on control-1, since 2026-09-21" in verdict.refused
    assert verdict.refused.endswith("take over with -e quorumshift_takeover=r4")


def test_a_job_is_named():
    assert "on control-1, job 812, since" in judge(nodes(b1=held(job="812"))).refused


def test_a_holder_that_is_alive_is_waited_for_and_no_word_is_offered():
    verdict = judge(nodes(b1=held()), alive=True)
    assert "wait for its end" in verdict.refused and "quorumshift_takeover" not in verdict.refused


def test_a_holder_that_is_dead_is_taken_over_by_itself():
    verdict = judge(nodes(b1=held()), alive=False)
    assert verdict.refused is None and verdict.over == "r4" and verdict.number == 5


def test_turning_round_takes_the_word_though_the_holder_is_dead():
    told = nodes(b1=held())
    verdict = judge(told, alive=False, direction="back")
    assert "would turn round" in verdict.refused and verdict.refused.endswith("-e quorumshift_takeover=r4")
    assert judge(told, alive=False, direction="back", takeover="r4").refused is None
    assert judge(nodes(b1=held(closed=True)), direction="back").refused is None


def test_the_word_takes_over():
    verdict = judge(nodes(b1=held()), takeover="r4")
    assert verdict.refused is None and verdict.over == "r4"


def test_the_word_of_another_run_does_not():
    assert "names r3, which is another run" in judge(nodes(b1=held()), takeover="r3").refused


def test_a_saved_word_does_no_harm_where_nothing_is_open():
    verdict = judge(nodes(b1=held(closed=True)), takeover="r3")
    assert verdict.refused is None and verdict.over is None


def test_closed_on_one_host_it_is_closed():
    assert judge(nodes(b1=held(closed=True), b3=held(), c1=held())).refused is None


def test_an_older_closed_claim_closes_no_newer_one():
    verdict = judge(nodes(b1=held(3, "r3", closed=True), b3=held()))
    assert verdict.refused and verdict.number == 5


def test_the_highest_number_counts_wherever_it_is():
    assert judge(nodes(b1=held(4, closed=True), c1=held(9, "r9", closed=True))).number == 10


def test_the_runs_own_claim_is_no_obstacle():
    assert judge(nodes(b1=held()), run="r4").refused is None


def test_what_the_holder_was_seen_doing_is_told():
    told = nodes(b1=held())
    told["b3"]["turn"] = {"run": "r4", "kind": "kraft", "outcome": None, "steps": [{"name": "start", "at": 5}]}
    told["b1"]["turn"] = {"run": "r4", "kind": "kraft", "outcome": "done", "steps": [{"name": "start", "at": 3}]}
    assert "its newest turn: b3, kraft: start" in judge(told).refused


def test_a_claim_that_cannot_be_read_refuses():
    verdict = judge(nodes(b3={"error": "claim.json: no JSON"}))
    assert "A claim cannot be read (b3: claim.json: no JSON)" in verdict.refused


def test_a_host_that_was_not_reached_refuses():
    told = nodes()
    told["c1"].update(reached=False, error="it was unreachable")
    assert "and 1 cannot be: c1: it was unreachable" in judge(told).refused


def test_the_screen_tells_of_the_newest_run():
    assert claim.story(held()).startswith("claimed by run r4 (forward) of ops on control-1")
    assert claim.story(held(closed=True, how="ok")).endswith("UTC, ended well")
    assert claim.story(held(closed=True, how="Admit the batch")).endswith('UTC, ended at "Admit the batch"')


@pytest.mark.parametrize(
    "other, same",
    [
        (PROCESS, True),
        ({**PROCESS, "boot_id": "c"}, False),
        ({**PROCESS, "pid_namespace": "pid:[2]"}, False),
        ({**PROCESS, "boot_id": ""}, False),
        (None, False),
    ],
)
def test_processes_are_comparable_under_one_kernel_and_in_one_pid_namespace(other, same):
    assert claim.comparable(PROCESS, other) is same
