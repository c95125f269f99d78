# Copyright: (c) 2026, Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""One migration that is killed again and again: each new run goes on from where the last one died."""

from __future__ import annotations

import json
import pathlib

import pytest

from tools.e2e.testbed import nth, wait_for

# What the turn's progress says once the node is down.
STOPPED = " gets its new properties file"


def is_down(hosts):
    """A `kill_when` that fits as soon as one of these hosts is down and has its new file."""
    return lambda line: any(line.strip() == f"{host}{STOPPED}" for host in hosts)


def phase_line(ran):
    return next(line for line in reversed(ran.text.splitlines()) if line.startswith("Cluster "))


def status(testbed):
    return phase_line(testbed.play("status"))


def kept_counts(testbed):
    """What each keeper remembers of the copy."""
    return [
        json.loads(reported)
        for reported in testbed.on_each(testbed.controllers[:2], "cat /var/lib/quorumshift/*/copy.json")
    ]


@pytest.fixture(scope="module")
def incarnations(fresh):
    """Processes of the brokers before anything began."""
    return fresh.on_each(fresh.brokers, "systemctl show kafka -p MainPID --value")


def private(testbed):
    """Directories here that hold credentials on their way."""
    cluster = testbed.run(testbed.controllers[0], "ls /var/lib/quorumshift").split()[0]
    return sorted(str(path) for path in pathlib.Path("/tmp").glob(f"quorumshift-{cluster}-*"))


def test_killed_with_a_backup_on_its_way(fresh, incarnations):
    ran = fresh.play(kill_when=lambda line: line.startswith("TASK") and "Read it back and compare" in line)
    assert ran.code < 0, ran.text
    assert private(fresh)


def test_killed_while_controllers_start(fresh, incarnations):
    ran = fresh.play(kill_when=nth(2, " starts"))
    assert ran.code < 0, ran.text
    assert private(fresh) == []
    for host in fresh.controllers:
        fresh.wait_listening(host, 9093)
    assert fresh.on_each(fresh.brokers, "systemctl show kafka -p MainPID --value") == incarnations
    assert "controllers_" in status(fresh)


def test_killed_in_the_middle_of_a_brokers_turn(fresh):
    """The turn's worker finishes it, whatever becomes of the control process."""
    ran = fresh.play(kill_when=is_down(fresh.brokers))
    assert ran.code < 0, ran.text
    host = next(host for host in fresh.brokers if f"{host}{STOPPED}" in ran.text)
    fresh.wait_listening(host, 9092)
    wait_for(lambda: '"outcome": "done"' in fresh.run(host, "cat /var/lib/quorumshift/*/restart.json"), 120, "the turn")
    fresh.wait_in_sync()
    assert "brokers_joining" in status(fresh)


def test_killed_right_after_the_trigger(fresh):
    """What ZooKeeper held before the copy is known to whoever comes after."""
    ran = fresh.play(kill_when=nth(2, " is up ("))
    assert ran.code < 0, ran.text
    fresh.wait_in_sync()
    for kept in kept_counts(fresh):
        assert not kept["compared"] and kept["counted"]["records"], kept


def test_killed_in_the_kraft_roll(fresh):
    """The run that comes after the copy counts it before it stops any broker."""
    ran = fresh.play(kill_when=is_down(fresh.brokers))
    assert ran.code < 0, ran.text
    for kept in kept_counts(fresh):
        assert kept["compared"]
        counted = ", ".join(f"{name} {count}" for name, count in kept["counted"]["records"].items())
        assert f"copied: {counted}\n" in ran.text, ran.text
    host = next(host for host in fresh.brokers if f"{host}{STOPPED}" in ran.text)
    fresh.wait_listening(host, 9092)
    fresh.wait_in_sync()
    assert "hybrid" in status(fresh)


def test_journals_that_are_torn_gone_or_wrong_are_said_and_not_believed(fresh):
    """The runs that come after this test arrive with these journals."""
    journal = "/var/lib/quorumshift/*/journal.jsonl"
    moved = next(host for host in fresh.brokers if '"mode": "kraft"' in fresh.run(host, f"tail -n 1 {journal}"))
    excluded = next(host for host in fresh.brokers if host != moved)
    torn = fresh.controllers[0]
    fresh.run(torn, f'printf \'{{"t": 17, "na\' | tee -a {journal}')
    fresh.run(excluded, f"rm {journal}")
    fresh.run(moved, f"""sed -i '$s/"mode": "kraft"/"mode": "zk_migration"/' {journal}""")
    ran = fresh.play("status", extra={"quorumshift_history": True})
    assert ran.code == 0 and phase_line(ran).endswith(": hybrid"), ran.text
    said = [line.strip() for line in ran.text.splitlines() if line.strip().startswith("journal: ")]
    assert len(said) == 3 and all(line.endswith("show, not on journals") for line in said), ran.text
    assert any(f"1 line of {torn}'s journal cannot be read" in line for line in said), said
    assert any(f"the journal of {excluded} lacks run " in line for line in said), said
    assert any(f"{moved}'s journal says that its newest restart ended in mode zk_migration" in line for line in said)


def test_the_last_run_arrives(fresh):
    ran = fresh.play()
    assert ran.code == 0, ran.text
    assert phase_line(ran).endswith(": dual_write")


def test_a_run_with_nothing_to_do_changes_nothing(fresh):
    before = fresh.fingerprint(locked=True)
    ran = fresh.play()
    after = fresh.fingerprint(locked=True)
    assert ran.code == 0, ran.text
    assert all(ran.recap(host).get("changed", 0) == 0 for host in (*fresh.addresses, "localhost")), ran.text
    for host in fresh.addresses:  # in dual-write /migration moves all the time
        assert after[host] == before[host]


def test_a_killed_finalization_goes_on(fresh):
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
