# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A new controller ends while it is brought up: the run says so at once, and the next run starts it."""

from __future__ import annotations

import re

from tests.system.testbed.waiting import meanwhile

LOG = "/var/log/kafka/controller.log"
QUICK = {"quorumshift_verify": False}


def test_a_controller_that_ends_before_it_is_registered_is_reported(fresh):
    fresh.run("c3", f"rm -f {LOG}")

    def kill_when_it_listens(_over):
        listens = f"until grep -qs 'Awaiting socket connections' {LOG}; do sleep 0.02; done"
        kill = "systemctl kill --signal=KILL kafka-controller"
        fresh.run("c3", f'timeout 300 sh -c "{listens}" && {kill}', timeout=330)

    with meanwhile(kill_when_it_listens):
        ran = fresh.play(extra=QUICK)
    assert ran.code != 0 and "kafka-controller ended while it started (systemd: signal)" in ran.text, ran.text
    assert "Fix the cause, then start kafka-controller on this host or run again" in ran.text, ran.text


def test_the_next_run_starts_it(fresh):
    ran = fresh.play(extra=QUICK)
    assert ran.code == 0 and "c3 starts" in ran.text and ": dual_write" in ran.text, ran.text


def test_one_that_lost_its_disk_is_formatted_by_the_printed_command(fresh):
    lose = "systemctl stop kafka-controller && rm -rf /var/lib/kafka/metadata/* /var/lib/kafka/metadata/.lock"
    fresh.run("c1", lose)
    status = fresh.play("status")
    assert "The log directory of c1 is empty." in status.text and "have the metadata" not in status.text, status.text
    (command,) = re.findall(r"On c1: (runuser .*?)\. \(QS-PHASE-011\)", status.text)
    fresh.run("c1", command)
    again = fresh.play(extra=QUICK)  # its gate waits until the controller has caught up
    assert again.code == 0 and ": dual_write" in again.text and "controllers down" not in again.text, again.text
