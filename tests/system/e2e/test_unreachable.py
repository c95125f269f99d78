# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Hosts become unreachable during rolling restarts: the run stops there, and the next run continues."""

from __future__ import annotations

import json
import re

from tests.system.testbed import faults

CANARY = {"quorumshift_canary": "b2"}


def roll(testbed, host, at):
    """Run, and cut the host off at the first line that contains `at`; reconnect it and return the failed run."""
    with faults.Unreachable(host) as lost:

        def cut(line):
            if at in line:
                lost.begin()
            return False

        with faults.Availability(testbed) as availability:
            ran = testbed.play(extra={**faults.ALIVE, **CANARY}, kill_when=cut)
    assert ran.code != 0 and re.search(faults.UNREACHED, ran.text), ran.text
    assert len(availability.worst) <= 1, availability.worst
    return ran


def node_restart(testbed, host):
    return json.loads(testbed.run(host, "cat /var/lib/quorumshift/*/*/restart.json 2>/dev/null || echo '{}'"))


def processes(testbed):
    return dict(zip(testbed.brokers, testbed.on_each(testbed.brokers, "systemctl show kafka -p MainPID --value")))


def test_no_restart_begins_after_a_broker_becomes_unreachable(fresh):
    """The restart that has begun ends."""
    before = processes(fresh)
    ran = roll(fresh, "b1", "b2 stops")
    restarted = {host for host, pid in processes(fresh).items() if pid != before[host]}
    assert "b1" not in restarted and "b2 is up" in ran.text, ran.text
    assert "b1 stops" not in ran.text


def test_no_broker_stops_while_a_controller_is_unreachable(fresh):
    """The run reads every controller's log before each stop."""
    before = processes(fresh)
    roll(fresh, "c3", "Open gate before_trigger")
    assert processes(fresh) == before


def test_the_restart_of_an_unreachable_broker_ends(fresh):
    """The next run reads its outcome."""
    host = next(host for host in fresh.brokers if node_restart(fresh, host).get("kind") != "zk_migration")
    ran = roll(fresh, host, f"{host} stops")
    assert f"{host} is up" not in ran.text
    fresh.wait_in_sync()
    assert node_restart(fresh, host)["outcome"] == "done"


def test_a_run_reaches_dual_write_once_all_hosts_are_reachable(fresh):
    ran = fresh.play(extra=CANARY)
    assert ran.code == 0 and ": dual_write" in ran.text, ran.text
    again = fresh.play()
    assert again.code == 0 and all(again.recap(host).get("changed", 0) == 0 for host in fresh.addresses), again.text
