# Copyright: (c) 2026, Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A host's claim: one of many that begin at once gets it, and a turn at work keeps it."""

from __future__ import annotations

import multiprocessing
import os
import subprocess
import sys

import pytest
from ansible_collections.quorumshift.kafka.plugins.module_utils import host_state, run_locks
from ansible_collections.quorumshift.kafka.plugins.plugin_utils import identity

RUNS = 8


def run_lock(run, number=1, closed=False):
    return {
        **{"number": number, "run": run, "direction": "forward", "target": None, "user": "ops"},
        **{"host": "control-1", "job": None, "process": None, "since": 1_790_000_000, "closed": closed},
    }


def _take(path, run, barrier, answers):
    barrier.wait(30)
    while True:
        try:
            answers.put(run_locks.take(path, run_lock(run), {})["run"])
        except host_state.Held:
            continue
        except run_locks.RunLockError as error:
            answers.put(str(error))
        return


def test_of_many_runs_that_begin_at_once_one_gets_the_arbiter(tmp_path):
    context = multiprocessing.get_context("fork")
    for attempt in range(5):
        path = host_state.directory(str(tmp_path), f"cluster-{attempt}")
        barrier, answers = context.Barrier(RUNS), context.Queue()
        runs = [context.Process(target=_take, args=(path, f"r{one}", barrier, answers)) for one in range(RUNS)]
        for run in runs:
            run.start()
        messages = [answers.get(timeout=30) for _run in runs]
        for run in runs:
            run.join(30)
        winners = [one for one in messages if "was faster" not in one]
        assert len(winners) == 1 and run_locks.read(path)["run"] == winners[0]
        assert all(f"run {winners[0]} " in one for one in messages if "was faster" in one)


def test_a_claim_is_refused_while_a_turn_is_at_work(tmp_path):
    with host_state.locked(str(tmp_path)), pytest.raises(host_state.Held):
        run_locks.take(str(tmp_path), run_lock("r1"), {})
    assert run_locks.take(str(tmp_path), run_lock("r1"), {})["run"] == "r1"


def test_the_arbiter_takes_a_claim_over_the_very_one_that_was_read(tmp_path):
    path = str(tmp_path)
    run_locks.take(path, run_lock("r1"), {})
    run_locks.close(path, "r1", "ok")
    with pytest.raises(run_locks.RunLockError):
        run_locks.take(path, run_lock("r3", 3), {})  # r3 saw none, r1 came and went since
    run_locks.take(path, run_lock("r3", 3), {"number": 1, "run": "r1"})
    assert run_locks.read(path)["run"] == "r3"


def test_other_hosts_take_a_higher_number_over_any_lower_one(tmp_path):
    path = str(tmp_path)
    run_locks.take(path, run_lock("r1"), None)
    run_locks.take(path, run_lock("r4", 4), None)
    with pytest.raises(run_locks.RunLockError, match="run r4"):
        run_locks.take(path, run_lock("r3", 3), None)


def test_taking_it_again_changes_nothing(tmp_path):
    path = str(tmp_path)
    run_locks.take(path, run_lock("r1"), {})
    assert run_locks.take(path, {**run_lock("r1"), "since": 5}, {})["since"] == 1_790_000_000


def test_only_the_holder_closes(tmp_path):
    path = str(tmp_path)
    run_locks.take(path, run_lock("r1"), {})
    assert not run_locks.close(path, "r2", "ok")
    assert run_locks.close(path, "r1", "ok") and run_locks.read(path)["closed"]
    assert not run_locks.close(path, "r1", "ok")


def test_a_turn_needs_its_runs_open_claim(tmp_path):
    path = str(tmp_path)
    with pytest.raises(run_locks.RunLockError, match="not locked by this run"):
        run_locks.require(path, "r1")
    run_locks.take(path, run_lock("r1"), {})
    run_locks.require(path, "r1")
    with pytest.raises(run_locks.RunLockError, match="locked by run r1"):
        run_locks.require(path, "r2")
    run_locks.close(path, "r1", "ok")
    with pytest.raises(run_locks.RunLockError):
        run_locks.require(path, "r1")


def test_the_hosts_journal_tells_who_and_how_it_ended_and_bears_a_torn_line(tmp_path):
    path = str(tmp_path)
    run_locks.take(path, run_lock("r1"), {})
    with open(os.path.join(path, host_state.JOURNAL), "a", encoding="utf-8") as stream:
        stream.write('{"t": 1, "na')
    run_locks.take(path, run_lock("r2", 2), {"number": 1, "run": "r1"})
    run_locks.close(path, "r2", "Admit the batch")
    reported = host_state.read_journal(path, 10)
    events = reported["events"]
    assert reported["torn"] == 1 and not reported["cut"]
    assert host_state.read_journal(path, 1) == {"events": events[-1:], "torn": 1, "cut": True}
    assert [(event["name"], event["run"]) for event in events] == [
        ("locked", "r1"),
        ("locked", "r2"),
        ("ended", "r2"),
    ]
    assert events[1]["over"] == "r1" and events[2]["how"] == "Admit the batch"


def test_a_file_that_cannot_be_read_is_told(tmp_path):
    (tmp_path / host_state.RUN_LOCK).write_text("{")
    with pytest.raises(run_locks.RunLockError, match=r"run_lock\.json"):
        run_locks.require(str(tmp_path), "r1")


def test_a_process_is_alive_until_it_ends():
    child = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    reported = identity.process(child.pid)
    assert identity.alive(reported) is True
    assert identity.alive({**reported, "started": reported["started"] + 1}) is False  # the pid came again
    child.communicate(b"\n")
    assert identity.alive(reported) is False


def test_a_process_elsewhere_cannot_be_judged():
    reported = identity.process(os.getpid())
    assert identity.alive({**reported, "pid_namespace": "pid:[1]"}) is None
    assert identity.alive({**reported, "boot_id": "other"}) is None
    assert identity.alive(None) is None
