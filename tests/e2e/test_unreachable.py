# Copyright: (c) 2026, Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Hosts that cannot be reached any more in the middle of a roll: it stops there, and goes on when they are back."""

from __future__ import annotations

import json
import re

from tools.e2e import faults

CANARY = {"quorumshift_canary": "b2"}


def roll(testbed, host, at):
    """Run until the host is cut off, from the first line that contains `at`; the run, with the host reachable again."""
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
    return json.loads(testbed.run(host, "cat /var/lib/quorumshift/*/restart.json 2>/dev/null || echo '{}'"))


def processes(testbed):
    return dict(zip(testbed.brokers, testbed.on_each(testbed.brokers, "systemctl show kafka -p MainPID --value")))


def test_a_broker_that_is_gone_before_its_turn(fresh):
    """The one in its turn goes to its end, and nobody's turn begins after that."""
    before = processes(fresh)
    ran = roll(fresh, "b1", "b2 stops")
    restarted = {host for host, pid in processes(fresh).items() if pid != before[host]}
    assert "b1" not in restarted and "b2 is up" in ran.text, ran.text
    assert "b1 stops" not in ran.text


def test_a_controller_that_is_gone(fresh):
    """Its log is read before each stop, so no broker is stopped."""
    before = processes(fresh)
    roll(fresh, "c3", "Gate before_trigger")
    assert processes(fresh) == before


def test_a_broker_that_is_gone_in_its_turn(fresh):
    """The turn ends by itself, and the next run reads how."""
    host = next(one for one in fresh.brokers if node_restart(fresh, one).get("kind") != "zk_migration")
    ran = roll(fresh, host, f"{host} stops")
    assert f"{host} is up" not in ran.text
    fresh.wait_in_sync()
    assert node_restart(fresh, host)["outcome"] == "done"


def test_a_run_arrives_when_all_are_back(fresh):
    ran = fresh.play(extra=CANARY)
    assert ran.code == 0 and ": dual_write" in ran.text, ran.text
    again = fresh.play()
    assert again.code == 0 and all(again.recap(host).get("changed", 0) == 0 for host in fresh.addresses), again.text
