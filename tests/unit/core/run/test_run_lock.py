# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which run may change a cluster."""

from __future__ import annotations

import pytest
from ansible_collections.quorumshift.kafka.plugins.module_utils.core.run import run_lock

CLUSTER = "Xk-cluster"
PROCESS = {"boot_id": "b", "pid_namespace": "pid:[1]", "pid": 7, "started": 100}


def held(number=4, run="r4", closed=False, **more):
    return {
        **{"number": number, "run": run, "direction": "forward", "user": "ops", "host": "control-1", "job": None},
        **{"process": PROCESS, "since": 1_790_000_000, "closed": closed},
        **more,
    }


def nodes(**run_locks):
    hosts = {"b3": {"node_id": 5}, "b1": {"node_id": 1}, "c1": {"node_id": 101}}
    for host, lock in run_locks.items():
        hosts[host]["run_locks"] = {CLUSTER: lock}
    return hosts


def detect(hosts, run="r5", alive=None, force_unlock="", direction="forward"):
    return run_lock.detect(hosts, CLUSTER, {"run": run, "direction": direction, "alive": alive}, force_unlock)


def test_a_cluster_without_run_locks_is_free():
    verdict = detect(nodes())
    assert verdict.refused is None and verdict.number == 1 and verdict.newest is None


def test_the_arbiter_is_the_host_with_the_lowest_node_id():
    assert detect(nodes()).hosts == ["b1", "b3", "c1"]


def test_two_nodes_with_one_id_have_the_same_order_in_every_inventory():
    roles = [("broker", "controller"), ("controller", "broker")]
    orders = [dict(zip("ab", (broker, controller))) for broker, controller in roles]
    found = [run_lock.order({name: {"node_id": 1, "role": role} for name, role in names.items()}) for names in orders]
    assert found == [["a", "b"], ["b", "a"]]


def test_a_host_without_a_node_id_comes_last():
    hosts = {"a1": {"node_id": None}, "z9": {"node_id": 3}}
    assert run_lock.order(hosts) == ["z9", "a1"]


def test_a_run_lock_of_another_cluster_does_not_count():
    hosts = nodes()
    hosts["b1"]["run_locks"] = {"other": held()}
    assert detect(hosts).refused is None


def test_an_open_lock_stops_a_run_and_names_its_holder_and_the_option():
    verdict = detect(nodes(b1=held(), b3=held(), c1=held()))
    assert "run r4 (forward) of ops on control-1, since 2026-09-21" in verdict.refused
    assert verdict.refused.endswith("add -e quorumshift_force_unlock=r4 (QS-RUN-001)")


def test_the_holder_includes_its_job():
    assert "on control-1, job 812, since" in detect(nodes(b1=held(job="812"))).refused


def test_a_living_holder_offers_no_force_unlock():
    verdict = detect(nodes(b1=held()), alive=True)
    assert "wait until it ends" in verdict.refused and "quorumshift_force_unlock" not in verdict.refused


def test_a_dead_holder_is_taken_over_automatically():
    verdict = detect(nodes(b1=held()), alive=False)
    assert verdict.refused is None and verdict.over == "r4" and verdict.number == 5


def test_reversing_a_dead_holders_direction_needs_force_unlock():
    hosts = nodes(b1=held())
    verdict = detect(hosts, alive=False, direction="back")
    assert "would reverse its direction" in verdict.refused and verdict.refused.endswith(
        "-e quorumshift_force_unlock=r4 (QS-RUN-002)"
    )
    assert detect(hosts, alive=False, direction="back", force_unlock="r4").refused is None
    assert detect(nodes(b1=held(closed=True)), direction="back").refused is None


def test_force_unlock_takes_over():
    verdict = detect(nodes(b1=held()), force_unlock="r4")
    assert verdict.refused is None and verdict.over == "r4"


def test_force_unlock_of_another_run_is_rejected():
    assert "names another run, r3" in detect(nodes(b1=held()), force_unlock="r3").refused


def test_a_saved_force_unlock_is_ignored_without_an_open_lock():
    verdict = detect(nodes(b1=held(closed=True)), force_unlock="r3")
    assert verdict.refused is None and verdict.over is None


def test_a_lock_closed_on_one_host_is_closed():
    assert detect(nodes(b1=held(closed=True), b3=held(), c1=held())).refused is None


def test_an_older_closed_lock_does_not_close_a_newer_one():
    verdict = detect(nodes(b1=held(3, "r3", closed=True), b3=held()))
    assert verdict.refused and verdict.number == 5


def test_the_highest_number_of_all_hosts_counts():
    assert detect(nodes(b1=held(4, closed=True), c1=held(9, "r9", closed=True))).number == 10


def test_a_run_may_lock_again():
    assert detect(nodes(b1=held()), run="r4").refused is None


def test_the_message_has_the_holders_newest_restart():
    hosts = nodes(b1=held())
    hosts["b3"]["node_restart"] = {
        "run": "r4",
        "kind": "kraft",
        "outcome": None,
        "steps": [{"name": "start", "at": 5}],
    }
    hosts["b1"]["node_restart"] = {
        "run": "r4",
        "kind": "kraft",
        "outcome": "done",
        "steps": [{"name": "start", "at": 3}],
    }
    assert "its newest restart: b3, kraft: start" in detect(hosts).refused


def test_an_unreadable_lock_stops_a_run():
    verdict = detect(nodes(b3={"error": "run_lock.json: no JSON"}))
    assert "A run lock cannot be read (b3: run_lock.json: no JSON)" in verdict.refused


def test_an_unreached_host_stops_a_run():
    hosts = nodes()
    hosts["c1"].update(reached=False, error="it was unreachable")
    assert "and 1 cannot be locked: c1: it was unreachable" in detect(hosts).refused


def test_status_line_of_the_newest_lock():
    assert run_lock.status_line(held()).startswith("locked by run r4 (forward) of ops on control-1")
    assert run_lock.status_line(held(closed=True, how="ok")).endswith("UTC, ended well")
    assert run_lock.status_line(held(closed=True, how="Admit the batch")).endswith('UTC, ended at "Admit the batch"')


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
    assert run_lock.are_comparable(PROCESS, other) is same
