# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Runs that begin at once, and control nodes that die and return: only one run at a time changes the cluster."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor

from tests.system.testbed.running import ELSEWHERE, Ran
from tests.system.testbed.waiting import nth, wait_for

STOPS = " stops\n"


def run_locks(testbed):
    """Return each host's run lock."""
    hosts = [*testbed.brokers, *testbed.controllers]
    return dict(zip(hosts, map(json.loads, testbed.on_each(hosts, "cat /var/lib/quorumshift/*/*/run_lock.json"))))


def journal(testbed, host):
    """Return the events of a host's journal."""
    return [json.loads(line) for line in testbed.run(host, "cat /var/lib/quorumshift/*/*/journal.jsonl").splitlines()]


def holder(ran):
    """Return the run that holds the run lock, as a refused run names it."""
    return re.search(r"locked by run (\S+) ", ran.text).group(1)


def phase(ran):
    return re.findall(r"^Cluster \S+: (\w+)$", ran.text, re.MULTILINE)[-1]


def test_only_one_of_two_simultaneous_runs_starts(fresh):
    ended = threading.Event()

    def run(_number):
        ran = fresh.play(kill_when=lambda line: ended.is_set() or "TASK [quorumshift.kafka.broker_roll" in line)
        ended.set()
        return ran

    with ThreadPoolExecutor(max_workers=2) as pool:
        first, second = pool.map(run, range(2))
    killed, refused = sorted((first, second), key=lambda ran: ran.code)
    assert killed.code == -signal.SIGKILL and refused.code == 2, first.text + second.text
    assert "That run is at work: wait until it ends" in refused.text or "was faster" in refused.text
    assert refused.recap("localhost").get("changed", 0) == 0
    locks = run_locks(fresh).values()
    assert len({(lock["number"], lock["run"]) for lock in locks}) == 1 and not any(lock["closed"] for lock in locks)


def test_another_control_node_cannot_take_over_without_a_token(fresh):
    before = fresh.fingerprint()
    ran = fresh.play(under=ELSEWHERE)
    assert ran.code == 2 and "This host cannot see whether that run is at work" in ran.text
    assert f"-e quorumshift_force_unlock={holder(ran)}. Nothing was changed" in ran.text
    assert fresh.fingerprint() == before


def test_a_run_in_another_direction_is_refused(fresh):
    before = fresh.fingerprint()
    ran = fresh.play("restore_zookeeper", under=ELSEWHERE, extra={"quorumshift_restore_token": "token:000000"})
    assert ran.code == 2 and "(forward) of " in ran.text and "This host cannot see whether" in ran.text, ran.text
    assert fresh.fingerprint() == before


def test_status_names_the_holder(fresh):
    ran = fresh.play("status", under=ELSEWHERE)
    assert ran.code == 0 and "  locked by run " in ran.text


def test_the_same_control_node_takes_over_a_dead_run(fresh):
    ran = fresh.play(kill_when=nth(1, STOPS))
    assert ran.code < 0, ran.text
    assert "takes over the run lock of run " in ran.text
    arbiter = fresh.brokers[0]
    assert [event["over"] for event in journal(fresh, arbiter) if event["name"] == "locked"][-1]


def test_another_control_node_takes_over_with_the_token(fresh):
    """It waits until the restart that the dead run began has ended."""
    wrong = fresh.play(under=ELSEWHERE, extra={"quorumshift_force_unlock": "20200101T000000-0000"})
    assert wrong.code == 2 and "quorumshift_force_unlock names another run, 20200101T000000-0000" in wrong.text
    assert "; its newest restart: " in wrong.text
    token = {"quorumshift_force_unlock": holder(wrong)}
    ran = fresh.play(under=ELSEWHERE, extra=token, kill_when=nth(1, STOPS))
    assert ran.code < 0, ran.text


def test_a_suspended_run_changes_nothing_after_another_run_took_its_lock(fresh):
    refused = fresh.play(under=ELSEWHERE)
    seen: list[str] = []
    suspended: list[int] = []
    resumed: list[Ran] = []

    def suspend_in_kraft_restarts(line):
        seen.append(line)
        if STOPS in line and any("Plan restarts of kind kraft" in earlier for earlier in seen) and not suspended:
            command = ["pgrep", "--oldest", "--full", f"^{sys.executable} .*/ansible-playbook -i"]
            suspended.append(int(subprocess.check_output(command)))
            os.kill(suspended[0], signal.SIGSTOP)
        return False

    def first():
        token = {"quorumshift_force_unlock": holder(refused)}
        resumed.append(fresh.play(extra=token, kill_when=suspend_in_kraft_restarts))

    thread = threading.Thread(target=first)
    thread.start()
    wait_for(lambda: suspended, 300, "the first run to stop a broker for KRaft mode")
    token = {"quorumshift_force_unlock": holder(fresh.play(under=ELSEWHERE))}
    second = fresh.play(under=ELSEWHERE, extra=token, kill_when=nth(1, "Wait for the initial copy"))
    assert second.code < 0, second.text
    fresh.wait_in_sync()
    processes = fresh.on_each(fresh.brokers, "systemctl show kafka -p MainPID --value")
    os.kill(suspended[0], signal.SIGCONT)
    thread.join(300)
    assert resumed[0].code == 2 and "this host is locked by run" in resumed[0].text, resumed[0].text
    assert fresh.on_each(fresh.brokers, "systemctl show kafka -p MainPID --value") == processes
    ran = fresh.play()
    assert ran.code == 2, ran.text
    ran = fresh.play(under=ELSEWHERE, extra={"quorumshift_force_unlock": holder(ran)})
    assert ran.code == 0 and phase(ran) == "dual_write", ran.text


def test_a_run_closes_its_lock_at_the_stop_for_the_soak(fresh):
    assert any(lock["closed"] for lock in run_locks(fresh).values())
    assert journal(fresh, fresh.brokers[0])[-1]["name"] == "ended"
    ran = fresh.play(under=ELSEWHERE)
    assert ran.code == 0 and "locked by" not in ran.text, ran.text


def test_a_failed_run_closes_its_lock(fresh):
    token = re.search(r"quorumshift_finalize_token=(\S+)", fresh.play("status").text).group(1)
    extra = {"quorumshift_finalize_token": token, "quorumshift_soak": "30d"}
    ran = fresh.play(extra=extra)
    assert ran.code == 2 and "the soak is 2592000 s" in ran.text
    assert any(lock["closed"] for lock in run_locks(fresh).values())
    assert "how" in journal(fresh, fresh.brokers[0])[-1]
    elsewhere = fresh.play(under=ELSEWHERE, extra=extra)
    assert "the soak is 2592000 s" in elsewhere.text and "locked by" not in elsewhere.text


def test_a_partial_run_changes_nothing(fresh):
    def fingerprint():
        # without /migration, which the controllers change
        return {path: state for path, state in fresh.fingerprint().items() if path != "/migration"}

    before = fingerprint()
    start_at = ["--start-at-task", "Detect the phase of the migration"]
    for options in (["--limit", fresh.brokers[0]], ["--tags", "roll"], start_at):
        ran = fresh.play("migrate", *options)
        assert ran.code != 0 and "exclude" in ran.text, (options, ran.text)
    assert fingerprint() == before
