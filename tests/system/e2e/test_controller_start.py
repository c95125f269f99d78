# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A new controller ends while it is brought up: the run says so at once, and the next run starts it."""

from __future__ import annotations

import re

import pytest

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


LOSE = "systemctl stop kafka-controller && rm -rf /var/lib/kafka/metadata/* /var/lib/kafka/metadata/.lock"
FILE = "/etc/kafka/controller.properties"


@pytest.mark.parametrize(("host", "also"), [("c1", ""), ("c3", f" && rm {FILE} && rm -rf /var/lib/quorumshift/*")])
def test_one_that_lost_its_disk_or_its_host_is_formatted_with_the_printed_token(fresh, host, also):
    before = fresh.run(host, f"cat {FILE}")
    fresh.run(host, LOSE + also)
    status = fresh.play("status")
    assert f"The log directory of {host} is empty." in status.text and "have the metadata" not in status.text
    (token,) = re.findall(r"-e quorumshift_format_token=(\S+?)\. \(QS-PHASE-011\)", status.text)
    wrong = fresh.play(extra={**QUICK, "quorumshift_format_token": token[:-1] + "g"})
    assert wrong.code != 0 and "Nothing was changed" in wrong.text, wrong.text
    without = fresh.play(extra=QUICK)  # no wait brings the log back, so the run waits for nothing
    assert without.code != 0 and "waited" not in without.text and token in without.text, without.text
    shown = fresh.play("migrate", "--check", extra={**QUICK, "quorumshift_format_token": token})
    assert shown.code == 0 and f"check mode: first {host} is formatted and started" in shown.text, shown.text
    again = fresh.play(extra={**QUICK, "quorumshift_format_token": token})
    assert again.code == 0 and f"{host} formats its log directory" in again.text, again.text
    assert ": dual_write" in again.text and "controllers down" not in again.text, again.text
    assert fresh.run(host, f"cat {FILE}") == before


def test_nothing_is_formatted_where_the_majority_lost_its_log(fresh):
    for host in ("c1", "c2"):
        fresh.run(host, LOSE)
    status = fresh.play("status")
    assert "Do not format it now: the quorum has no leader that answers" in status.text, status.text
    ran = fresh.play(extra={**QUICK, "quorumshift_format_token": "any:123456"})
    assert ran.code != 0 and "none may be formatted" in ran.text and "Nothing was changed" in ran.text, ran.text
    for host in ("c1", "c2"):
        assert "meta.properties" not in fresh.run(host, "ls /var/lib/kafka/metadata")
