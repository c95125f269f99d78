# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A restart's worker is killed after each of its steps: the next run finishes that restart first."""

from __future__ import annotations

import contextlib

import pytest

from tests.system.testbed import faults

STEPS = [("keep the old file", 0), ("stop", 0), ("stop", 0.4), ("write the file", 0), ("start", 0), ("register", 0)]


def assert_killed_worker_is_reported(testbed, kind, step, after):
    """Kill the worker of the next such restart; assert that the run reports it and at most one broker is down."""
    with contextlib.ExitStack() as stack:
        for host in testbed.brokers:
            stack.enter_context(faults.worker_killed(testbed, host, kind, step, after))
        availability = stack.enter_context(faults.Availability(testbed))
        ran = testbed.play("migrate", extra={"quorumshift_canary": "b2"})
    assert ran.code != 0, ran.text
    assert f"the restart worker ended without a result after step {step}" in ran.text, ran.text
    assert len(availability.worst) <= 1, availability.worst


@pytest.mark.parametrize(
    ("kind", "step", "after"), [(kind, *step) for kind in ("zk_migration", "kraft") for step in STEPS]
)
def test_a_run_reports_a_killed_worker(fresh, kind, step, after):
    assert_killed_worker_is_reported(fresh, kind, step, after)


def test_a_run_finishes_the_restart_and_reaches_dual_write(fresh):
    with faults.Availability(fresh) as availability:
        ran = fresh.play()
    assert ran.code == 0, ran.text
    assert "an earlier run left its restart half done" in ran.text
    assert len(availability.worst) <= 1, availability.worst
    assert ": dual_write" in ran.text
