# Copyright: (c) 2026, Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Who may act."""

from __future__ import annotations

import pytest
from ansible_collections.quorumshift.kafka.plugins.module_utils.core import run_lock

CLUSTER = "Xk-cluster"
PROCESS = {"boot_id": "b", "pid_namespace": "pid:[1]", "pid": 7, "started": 100}


def held(number=4, run="r4", closed=False, **more):
    return {
        **{"number": number, "run": run, "direction": "forward", "user": "ops", "host": "control-1", "job": None},
        **{"process": PROCESS, "since": 1_790_000_000, "closed": closed},
        **more,
    }


def nodes(**run_locks):
    reported = {"b3": {"node_id": 5}, "b1": {"node_id": 1}, "c1": {"node_id": 101}}
    for host, one in run_locks.items():
        reported[host]["run_locks"] = {CLUSTER: one}
    return reported


def detect(reported, run="r5", alive=None, force_unlock="", direction="forward"):
    return run_lock.detect(reported, CLUSTER, {"run": run, "direction": direction, "alive": alive}, force_unlock)


def test_a_cluster_that_nobody_claimed_is_free():
    verdict = detect(nodes())
    assert verdict.refused is None and verdict.number == 1 and verdict.newest is None


def test_the_arbiter_is_the_lowest_node_id_and_not_a_name():
    assert detect(nodes()).hosts == ["b1", "b3", "c1"]


def test_a_host_without_a_node_id_comes_last():
    reported = {"a1": {"node_id": None}, "z9": {"node_id": 3}}
    assert run_lock.order(reported) == ["z9", "a1"]


def test_another_cluster_on_the_same_hosts_is_another_matter():
    reported = nodes()
    reported["b1"]["run_locks"] = {"other": held()}
    assert detect(reported).refused is None


def test_an_open_claim_refuses_and_names_its_holder_and_the_word():
    verdict = detect(nodes(b1=held(), b3=held(), c1=held()))
    assert "run r4 (forward) of ops on control-1, since 2026-09-21" in verdict.refused
    assert verdict.refused.endswith("take over with -e quorumshift_force_unlock=r4")


def test_a_job_is_named():
    assert "on control-1, job 812, since" in detect(nodes(b1=held(job="812"))).refused


def test_a_holder_that_is_alive_is_waited_for_and_no_word_is_offered():
    verdict = detect(nodes(b1=held()), alive=True)
    assert "wait for its end" in verdict.refused and "quorumshift_force_unlock" not in verdict.refused


def test_a_holder_that_is_dead_is_taken_over_by_itself():
    verdict = detect(nodes(b1=held()), alive=False)
    assert verdict.refused is None and verdict.over == "r4" and verdict.number == 5


def test_turning_round_takes_the_word_though_the_holder_is_dead():
    reported = nodes(b1=held())
    verdict = detect(reported, alive=False, direction="back")
    assert "would turn round" in verdict.refused and verdict.refused.endswith("-e quorumshift_force_unlock=r4")
    assert detect(reported, alive=False, direction="back", force_unlock="r4").refused is None
    assert detect(nodes(b1=held(closed=True)), direction="back").refused is None


def test_the_word_takes_over():
    verdict = detect(nodes(b1=held()), force_unlock="r4")
    assert verdict.refused is None and verdict.over == "r4"


def test_the_word_of_another_run_does_not():
    assert "names r3, which is another run" in detect(nodes(b1=held()), force_unlock="r3").refused


def test_a_saved_word_does_no_harm_where_nothing_is_open():
    verdict = detect(nodes(b1=held(closed=True)), force_unlock="r3")
    assert verdict.refused is None and verdict.over is None


def test_closed_on_one_host_it_is_closed():
    assert detect(nodes(b1=held(closed=True), b3=held(), c1=held())).refused is None


def test_an_older_closed_claim_closes_no_newer_one():
    verdict = detect(nodes(b1=held(3, "r3", closed=True), b3=held()))
    assert verdict.refused and verdict.number == 5


def test_the_highest_number_counts_wherever_it_is():
    assert detect(nodes(b1=held(4, closed=True), c1=held(9, "r9", closed=True))).number == 10


def test_the_runs_own_claim_is_no_obstacle():
    assert detect(nodes(b1=held()), run="r4").refused is None


def test_what_the_holder_was_seen_doing_is_told():
    reported = nodes(b1=held())
    reported["b3"]["node_restart"] = {
        "run": "r4",
        "kind": "kraft",
        "outcome": None,
        "steps": [{"name": "start", "at": 5}],
    }
    reported["b1"]["node_restart"] = {
        "run": "r4",
        "kind": "kraft",
        "outcome": "done",
        "steps": [{"name": "start", "at": 3}],
    }
    assert "its newest restart: b3, kraft: start" in detect(reported).refused


def test_a_claim_that_cannot_be_read_refuses():
    verdict = detect(nodes(b3={"error": "run_lock.json: no JSON"}))
    assert "A claim cannot be read (b3: run_lock.json: no JSON)" in verdict.refused


def test_a_host_that_was_not_reached_refuses():
    reported = nodes()
    reported["c1"].update(reached=False, error="it was unreachable")
    assert "and 1 cannot be: c1: it was unreachable" in detect(reported).refused


def test_the_screen_tells_of_the_newest_run():
    assert run_lock.story(held()).startswith("claimed by run r4 (forward) of ops on control-1")
    assert run_lock.story(held(closed=True, how="ok")).endswith("UTC, ended well")
    assert run_lock.story(held(closed=True, how="Admit the batch")).endswith('UTC, ended at "Admit the batch"')


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
    assert run_lock.comparable(PROCESS, other) is same
