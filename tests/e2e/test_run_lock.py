# Copyright: (c) 2026, Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Two people press the button, control nodes die and come back: one run at a time acts, and the migration goes on."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor

from tools.e2e.testbed import ELSEWHERE, Ran, nth, wait_for

STOPS = " stops\n"


def run_locks(testbed):
    hosts = [*testbed.brokers, *testbed.controllers]
    return dict(zip(hosts, map(json.loads, testbed.on_each(hosts, "cat /var/lib/quorumshift/*/run_lock.json"))))


def journal(testbed, host):
    return [json.loads(line) for line in testbed.run(host, "cat /var/lib/quorumshift/*/journal.jsonl").splitlines()]


def holder(ran):
    return re.search(r"claimed by run (\S+) ", ran.text).group(1)


def phase(ran):
    return re.findall(r"^Cluster \S+: (\w+)$", ran.text, re.MULTILINE)[-1]


def test_of_two_that_begin_in_the_same_second_one_acts(fresh):
    ended = threading.Event()

    def run(_number):
        ran = fresh.play(kill_when=lambda line: ended.is_set() or "TASK [quorumshift.kafka.broker_roll" in line)
        ended.set()
        return ran

    with ThreadPoolExecutor(max_workers=2) as pool:
        first, second = pool.map(run, range(2))
    killed, refused = sorted((first, second), key=lambda ran: ran.code)
    assert killed.code == -signal.SIGKILL and refused.code == 2, first.text + second.text
    assert "It is at work: wait for its end" in refused.text or "was faster" in refused.text
    assert refused.recap("localhost").get("changed", 0) == 0
    reported = run_locks(fresh)
    assert len({(one["number"], one["run"]) for one in reported.values()}) == 1 and not any(
        one["closed"] for one in reported.values()
    )


def test_from_elsewhere_nobody_can_tell_whether_the_dead_run_lives(fresh):
    before = fresh.fingerprint()
    ran = fresh.play(under=ELSEWHERE)
    assert ran.code == 2 and "cannot be told from here" in ran.text
    assert f"-e quorumshift_force_unlock={holder(ran)}. Nothing was changed" in ran.text
    assert fresh.fingerprint() == before


def test_a_run_in_another_direction_is_refused_as_well(fresh):
    before = fresh.fingerprint()
    ran = fresh.play("restore_zookeeper", under=ELSEWHERE, extra={"quorumshift_restore_token": "word:000000"})
    assert ran.code == 2 and "(forward) of " in ran.text and "cannot be told from here" in ran.text, ran.text
    assert fresh.fingerprint() == before


def test_status_names_the_holder(fresh):
    ran = fresh.play("status", under=ELSEWHERE)
    assert ran.code == 0 and "  claimed by run " in ran.text


def test_where_it_was_started_a_dead_run_is_taken_over_by_itself(fresh):
    ran = fresh.play(kill_when=nth(1, STOPS))
    assert ran.code < 0, ran.text
    assert "takes over the claim of run " in ran.text
    arbiter = fresh.brokers[0]
    assert [event["over"] for event in journal(fresh, arbiter) if event["name"] == "locked"][-1]


def test_a_lost_control_node_is_followed_by_another_one_with_the_word(fresh):
    """The turn that the lost one has begun ends by itself, and is waited for."""
    wrong = fresh.play(under=ELSEWHERE, extra={"quorumshift_force_unlock": "20200101T000000-0000"})
    assert wrong.code == 2 and "quorumshift_force_unlock names 20200101T000000-0000, which is another run" in wrong.text
    assert "; its newest turn: " in wrong.text
    token = {"quorumshift_force_unlock": holder(wrong)}
    ran = fresh.play(under=ELSEWHERE, extra=token, kill_when=nth(1, STOPS))
    assert ran.code < 0, ran.text


def test_a_run_that_was_taken_over_while_it_slept_does_not_act_again(fresh):
    refused = fresh.play(under=ELSEWHERE)
    seen: list[str] = []
    asleep: list[int] = []
    woken: dict[str, Ran] = {}

    def sleep_in_the_kraft_roll(line):
        seen.append(line)
        if STOPS in line and any("Plan the roll to kraft" in one for one in seen) and not asleep:
            own = ["pgrep", "--oldest", "--full", f"^{sys.executable} .*/ansible-playbook -i"]
            asleep.append(int(subprocess.check_output(own)))
            os.kill(asleep[0], signal.SIGSTOP)
        return False

    def first():
        token = {"quorumshift_force_unlock": holder(refused)}
        woken["ran"] = fresh.play(extra=token, kill_when=sleep_in_the_kraft_roll)

    thread = threading.Thread(target=first)
    thread.start()
    wait_for(lambda: asleep, 300, "the first run to stop a broker of the KRaft roll")
    token = {"quorumshift_force_unlock": holder(fresh.play(under=ELSEWHERE))}
    second = fresh.play(under=ELSEWHERE, extra=token, kill_when=nth(1, "Watch the copy"))
    assert second.code < 0, second.text
    fresh.wait_in_sync()
    processes = fresh.on_each(fresh.brokers, "systemctl show kafka -p MainPID --value")
    os.kill(asleep[0], signal.SIGCONT)
    thread.join(300)
    assert woken["ran"].code == 2 and "this host is locked by run" in woken["ran"].text, woken["ran"].text
    assert fresh.on_each(fresh.brokers, "systemctl show kafka -p MainPID --value") == processes
    ran = fresh.play()
    assert ran.code == 2, ran.text
    ran = fresh.play(under=ELSEWHERE, extra={"quorumshift_force_unlock": holder(ran)})
    assert ran.code == 0 and phase(ran) == "dual_write", ran.text


def test_a_claim_is_given_back_at_the_stop_for_the_soak(fresh):
    assert any(one["closed"] for one in run_locks(fresh).values())
    assert journal(fresh, fresh.brokers[0])[-1]["name"] == "ended"
    ran = fresh.play(under=ELSEWHERE)
    assert ran.code == 0 and "claimed by" not in ran.text, ran.text


def test_a_failed_run_gives_its_claim_back_too(fresh):
    token = re.search(r"quorumshift_finalize_token=(\S+)", fresh.play("status").text).group(1)
    extra = {"quorumshift_finalize_token": token, "quorumshift_soak": "30d"}
    ran = fresh.play(extra=extra)
    assert ran.code == 2 and "the soak is 2592000 s" in ran.text
    assert any(one["closed"] for one in run_locks(fresh).values())
    assert "how" in journal(fresh, fresh.brokers[0])[-1]
    elsewhere = fresh.play(under=ELSEWHERE, extra=extra)
    assert "the soak is 2592000 s" in elsewhere.text and "claimed by" not in elsewhere.text


def test_a_run_that_was_cut_down_does_nothing(fresh):
    def seen():
        return {
            path: reported for path, reported in fresh.fingerprint().items() if path != "/migration"
        }  # which moves by itself

    before = seen()
    for options in (["--limit", fresh.brokers[0]], ["--tags", "roll"], ["--start-at-task", "Judge the phase"]):
        ran = fresh.play("migrate", *options)
        assert ran.code != 0 and "run without" in ran.text, (options, ran.text)
    assert seen() == before
