# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""One migration that is killed again and again: each run continues where the last one was killed."""

from __future__ import annotations

import json
import pathlib

import pytest

from tests.system.testbed.waiting import nth, wait_for

# A restart's progress line once the node is down
STOPPED = " gets its new properties file"


def is_down(hosts):
    """Return a `kill_when` that is true once one of these hosts is down and has its new file."""
    return lambda line: any(line.strip() == f"{host}{STOPPED}" for host in hosts)


def phase_line(ran):
    return next(line for line in reversed(ran.text.splitlines()) if line.startswith("Cluster "))


def status(testbed):
    return phase_line(testbed.play("status"))


def saved_counts(testbed):
    """Return each backup host's count of the metadata before the initial copy."""
    return list(map(json.loads, testbed.on_each(testbed.controllers[:2], "cat /var/lib/quorumshift/*/copy.json")))


@pytest.fixture(scope="module")
def processes(fresh):
    """The brokers' pids before the first run."""
    return fresh.on_each(fresh.brokers, "systemctl show kafka -p MainPID --value")


def scratch_dirs(testbed):
    """Return the control node's scratch directories, which hold credentials."""
    cluster = testbed.run(testbed.controllers[0], "ls /var/lib/quorumshift").split()[0]
    return sorted(str(path) for path in pathlib.Path("/tmp").glob(f"quorumshift-{cluster}-*"))


def test_killed_while_the_backup_is_copied(fresh, processes):
    ran = fresh.play(kill_when=nth(1, "Read the second copy and compare it with ZooKeeper] ***"))
    assert ran.code < 0, ran.text
    assert scratch_dirs(fresh)


def test_the_next_run_purges_the_scratch_directories(fresh, processes):
    ran = fresh.play(kill_when=nth(2, " starts"))
    assert ran.code < 0, ran.text
    assert scratch_dirs(fresh) == []
    for host in fresh.controllers:
        fresh.wait_listening(host, 9093)
    assert fresh.on_each(fresh.brokers, "systemctl show kafka -p MainPID --value") == processes
    assert "controllers_" in status(fresh)


def test_the_worker_finishes_a_restart_after_the_control_process_is_killed(fresh):
    ran = fresh.play(kill_when=is_down(fresh.brokers))
    assert ran.code < 0, ran.text
    host = next(host for host in fresh.brokers if f"{host}{STOPPED}" in ran.text)
    fresh.wait_listening(host, 9092)
    record = "cat /var/lib/quorumshift/*/*/restart.json"
    wait_for(lambda: '"outcome": "done"' in fresh.run(host, record), 120, "the end of the restart")
    fresh.wait_in_sync()
    assert "brokers_joining" in status(fresh)


def test_the_count_before_the_initial_copy_survives_a_killed_run(fresh):
    ran = fresh.play(kill_when=nth(2, " is up ("))
    assert ran.code < 0, ran.text
    fresh.wait_in_sync()
    for saved in saved_counts(fresh):
        assert not saved["compared"] and saved["counted"]["records"], saved


def test_the_next_run_compares_the_initial_copy_before_it_stops_a_broker(fresh):
    ran = fresh.play(kill_when=is_down(fresh.brokers))
    assert ran.code < 0, ran.text
    for saved in saved_counts(fresh):
        assert saved["compared"]
        counted = ", ".join(f"{name} {count}" for name, count in saved["counted"]["records"].items())
        assert f"copied: {counted}\n" in ran.text, ran.text
    host = next(host for host in fresh.brokers if f"{host}{STOPPED}" in ran.text)
    fresh.wait_listening(host, 9092)
    fresh.wait_in_sync()
    assert "hybrid" in status(fresh)


def test_torn_missing_and_wrong_journals_are_reported_and_ignored(fresh):
    """The next runs succeed with these journals."""
    journal = "/var/lib/quorumshift/*/*/journal.jsonl"
    moved = next(host for host in fresh.brokers if '"mode": "kraft"' in fresh.run(host, f"tail -n 1 {journal}"))
    missing = next(host for host in fresh.brokers if host != moved)
    torn = fresh.controllers[0]
    fresh.run(torn, f'printf \'{{"t": 17, "na\' | tee -a {journal}')
    fresh.run(missing, f"rm {journal}")
    fresh.run(moved, f"""sed -i '$s/"mode": "kraft"/"mode": "zk_migration"/' {journal}""")
    ran = fresh.play("status", extra={"quorumshift_history": True})
    assert ran.code == 0 and phase_line(ran).endswith(": hybrid"), ran.text
    notes = [line.strip() for line in ran.text.splitlines() if line.strip().startswith("journal: ")]
    assert len(notes) == 3 and all(line.endswith("show, not on journals") for line in notes), ran.text
    assert any(f"1 line of {torn}'s journal cannot be read" in line for line in notes), notes
    assert any(f"the journal of {missing} lacks run " in line for line in notes), notes
    assert any(f"{moved}'s journal says that its newest restart ended in mode zk_migration" in line for line in notes)


def test_the_last_run_reaches_dual_write(fresh):
    ran = fresh.play()
    assert ran.code == 0, ran.text
    assert phase_line(ran).endswith(": dual_write")


def test_a_run_with_nothing_to_do_changes_nothing(fresh):
    before = fresh.fingerprint(locked=True)
    ran = fresh.play()
    after = fresh.fingerprint(locked=True)
    assert ran.code == 0, ran.text
    assert all(ran.recap(host).get("changed", 0) == 0 for host in (*fresh.addresses, "localhost")), ran.text
    for host in fresh.addresses:  # without znodes: in dual-write /migration changes all the time
        assert after[host] == before[host]


def test_the_next_run_continues_a_killed_finalization(fresh):
    ran = fresh.play()
    token = ran.text.split("quorumshift_finalize_token=")[-1].split()[0]
    extra = {"quorumshift_soak": "0s", "quorumshift_finalize_token": token}
    killed = fresh.play(extra=extra, kill_when=is_down(fresh.controllers))
    assert killed.code < 0, killed.text
    for host in fresh.controllers:
        fresh.wait_listening(host, 9093)
    assert ": finalizing" in status(fresh)
    ran = fresh.play(extra=extra)
    assert ran.code == 0, ran.text
    assert phase_line(ran).endswith(": finalized")
    again = fresh.play()
    assert again.code == 0 and again.recap("localhost").get("changed", 0) == 0, again.text


def test_backups_are_removed_once_finalized(fresh):
    remove, there = {"quorumshift_remove_backups": True}, "ls /var/lib/quorumshift/*/backup/*.gz"
    hosts = fresh.controllers[:2]
    shown = fresh.play("status").text
    assert all(f"! {host} has " in shown and "quorumshift_remove_backups=true" in shown for host in hosts), shown
    checked = fresh.play("migrate", "--check", extra=remove)
    assert checked.code == 0 and all(fresh.run(host, there) for host in hosts), checked.text
    ran = fresh.play(extra=remove)
    assert ran.code == 0, ran.text
    assert [fresh.run(host, there, check=False) for host in hosts] == ["", ""]
    assert "quorumshift_remove_backups" not in fresh.play("status").text
    again = fresh.play(extra=remove)
    assert again.code == 0 and again.recap("localhost").get("changed", 0) == 0, again.text
