# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A host's run lock: one of many concurrent runs gets it, and it does not change while a restart runs."""

from __future__ import annotations

import multiprocessing
import os
import subprocess
import sys

import pytest
from ansible_collections.quorumshift.kafka.plugins.module_utils.host import host_state, run_lock_file
from ansible_collections.quorumshift.kafka.plugins.plugin_utils import process_identity

RUNS = 8


def run_lock(run, number=1, closed=False):
    return {
        **{"number": number, "run": run, "direction": "forward", "target": None, "user": "ops"},
        **{"host": "control-1", "job": None, "process": None, "since": 1_790_000_000, "closed": closed},
    }


def _take(path, run, barrier, outcomes):
    barrier.wait(30)
    while True:
        try:
            outcomes.put(run_lock_file.take(path, run_lock(run), {})["run"])
        except host_state.Held:
            continue
        except run_lock_file.RunLockError as error:
            outcomes.put(str(error))
        return


def test_one_of_many_concurrent_runs_gets_the_arbiter(tmp_path):
    context = multiprocessing.get_context("fork")
    for attempt in range(5):
        path = host_state.make_directory(str(tmp_path), f"cluster-{attempt}")
        barrier, queue = context.Barrier(RUNS), context.Queue()
        runs = [context.Process(target=_take, args=(path, f"r{number}", barrier, queue)) for number in range(RUNS)]
        for run in runs:
            run.start()
        outcomes = [queue.get(timeout=30) for _run in runs]
        for run in runs:
            run.join(30)
        winners = [outcome for outcome in outcomes if "was faster" not in outcome]
        assert len(winners) == 1 and run_lock_file.read(path)["run"] == winners[0]
        assert all(f"run {winners[0]} " in outcome for outcome in outcomes if "was faster" in outcome)


def test_run_lock_is_not_taken_while_a_restart_runs(tmp_path):
    with host_state.lock(str(tmp_path)), pytest.raises(host_state.Held):
        run_lock_file.take(str(tmp_path), run_lock("r1"), {})
    assert run_lock_file.take(str(tmp_path), run_lock("r1"), {})["run"] == "r1"


def test_arbiter_replaces_only_the_run_lock_that_was_read(tmp_path):
    path = str(tmp_path)
    run_lock_file.take(path, run_lock("r1"), {})
    run_lock_file.close(path, "r1", "ok")
    with pytest.raises(run_lock_file.RunLockError):
        run_lock_file.take(path, run_lock("r3", 3), {})  # r3 read no lock, r1 has taken and closed one since
    run_lock_file.take(path, run_lock("r3", 3), {"number": 1, "run": "r1"})
    assert run_lock_file.read(path)["run"] == "r3"


def test_other_hosts_replace_any_run_lock_with_a_lower_number(tmp_path):
    path = str(tmp_path)
    run_lock_file.take(path, run_lock("r1"), None)
    run_lock_file.take(path, run_lock("r4", 4), None)
    with pytest.raises(run_lock_file.RunLockError, match="run r4"):
        run_lock_file.take(path, run_lock("r3", 3), None)


def test_taking_the_same_run_lock_again_changes_nothing(tmp_path):
    path = str(tmp_path)
    run_lock_file.take(path, run_lock("r1"), {})
    assert run_lock_file.take(path, {**run_lock("r1"), "since": 5}, {})["since"] == 1_790_000_000


def test_a_closed_run_lock_is_not_taken_again_by_its_run(tmp_path):
    """As where one command names two playbooks."""
    run_lock_file.take(str(tmp_path), run_lock("r1"), {})
    run_lock_file.close(str(tmp_path), "r1", "ok")
    with pytest.raises(run_lock_file.RunLockError, match="run r1 has ended and its lock is closed"):
        run_lock_file.take(str(tmp_path), run_lock("r1"), {})


def test_only_its_run_closes_a_run_lock(tmp_path):
    path = str(tmp_path)
    run_lock_file.take(path, run_lock("r1"), {})
    assert not run_lock_file.close(path, "r2", "ok")
    assert run_lock_file.close(path, "r1", "ok") and run_lock_file.read(path)["closed"]
    assert not run_lock_file.close(path, "r1", "ok")


def test_require_accepts_only_the_runs_own_open_lock(tmp_path):
    path = str(tmp_path)
    with pytest.raises(run_lock_file.RunLockError, match="does not hold the run lock"):
        run_lock_file.require(path, "r1")
    run_lock_file.take(path, run_lock("r1"), {})
    run_lock_file.require(path, "r1")
    with pytest.raises(run_lock_file.RunLockError, match="locked by run r1"):
        run_lock_file.require(path, "r2")
    run_lock_file.close(path, "r1", "ok")
    with pytest.raises(run_lock_file.RunLockError):
        run_lock_file.require(path, "r1")


def test_journal_records_runs_and_their_ends_after_a_torn_line(tmp_path):
    path = str(tmp_path)
    run_lock_file.take(path, run_lock("r1"), {})
    with open(os.path.join(path, host_state.JOURNAL), "a", encoding="utf-8") as stream:
        stream.write('{"t": 1, "na')
    run_lock_file.take(path, run_lock("r2", 2), {"number": 1, "run": "r1"})
    run_lock_file.close(path, "r2", "Admit the batch")
    journal = host_state.read_journal(path, 10)
    events = journal["events"]
    assert journal["torn"] == 1 and not journal["cut"]
    assert host_state.read_journal(path, 1) == {"events": events[-1:], "torn": 1, "cut": True}
    assert [(event["name"], event["run"]) for event in events] == [
        ("locked", "r1"),
        ("locked", "r2"),
        ("ended", "r2"),
    ]
    assert events[1]["over"] == "r1" and events[2]["how"] == "Admit the batch"


def test_unreadable_run_lock_is_reported_with_its_file(tmp_path):
    (tmp_path / host_state.RUN_LOCK).write_text("{")
    with pytest.raises(run_lock_file.RunLockError, match=r"run_lock\.json"):
        run_lock_file.require(str(tmp_path), "r1")


def test_process_is_alive_until_it_ends():
    child = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    process = process_identity.process(child.pid)
    assert process_identity.is_alive(process) is True
    assert process_identity.is_alive({**process, "started": process["started"] + 1}) is False  # the pid was reused
    child.communicate(b"\n")
    assert process_identity.is_alive(process) is False


def test_process_of_another_machine_or_container_is_unknown():
    process = process_identity.process(os.getpid())
    assert process_identity.is_alive({**process, "pid_namespace": "pid:[1]"}) is None
    assert process_identity.is_alive({**process, "boot_id": "other"}) is None
    assert process_identity.is_alive(None) is None
