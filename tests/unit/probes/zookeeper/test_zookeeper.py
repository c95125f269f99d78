# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A missing package that kazoo needs for SASL is reported before it connects; kazoo would only time out."""

from __future__ import annotations

import importlib.util

import pytest
from ansible_collections.quorumshift.kafka.plugins.module_utils.probes.zookeeper import zookeeper


@pytest.mark.parametrize(
    ("mechanism", "module", "package"),
    [("DIGEST-MD5", "puresasl", "pure-sasl"), ("GSSAPI", "puresasl", "pure-sasl")],
)
def test_missing_package_is_named(monkeypatch, mechanism, module, package):
    installed = importlib.util.find_spec("json")
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name == module else installed)
    raised = pytest.raises(zookeeper.ZooKeeperError, match=f"the Python package {package} is missing on this host")
    with raised, zookeeper.connect("127.0.0.1:1", timeout=5, sasl_options={"mechanism": mechanism}):
        pass


class Clock:
    """A monotonic clock that only sleeping moves."""

    def __init__(self):
        self.time, self.slept = 100.0, []

    def now(self):
        return self.time

    def sleep(self, seconds):
        self.slept.append(seconds)
        self.time += seconds


def pace(window=500, rate=None, latency=0.1):
    clock = Clock()
    return zookeeper.Pace(window, rate, latency, clock.now, clock.sleep), clock


def answers(paced, clock, count, seconds):
    for _answer in range(count):
        clock.time += seconds
        paced.answered(seconds)


def test_fast_answers_let_the_window_grow_to_its_size():
    paced, clock = pace()
    assert paced.window == paced.FIRST
    answers(paced, clock, 1000, 0.01)
    assert paced.window == 500 and paced.facts["slowed"] == 0 and clock.slept == []


def test_a_slow_answer_halves_the_window_once_for_all_that_were_sent_before():
    paced, clock = pace()
    answers(paced, clock, 1000, 0.01)
    clock.time += 0.5
    for _answer in range(100):  # all sent before the first of them was back
        paced.answered(0.5)
    assert paced.window == 250 and paced.facts["slowed"] == 1 and paced.facts["slowest_ms"] == 500.0
    answers(paced, clock, 100, 0.01)
    assert 250 < paced.window < 251  # grows slowly where it was too much


def test_a_server_that_stays_slow_gets_one_request_at_a_time_and_pauses():
    paced, clock = pace()
    answers(paced, clock, 30, 3.0)
    assert paced.window == 1 and set(clock.slept) == {zookeeper.Pace.PAUSE_S}
    assert paced.facts["paused_s"] == len(clock.slept) > 20
    answers(paced, clock, 100_000, 0.001)
    assert paced.window > 400  # it recovers


def test_without_a_bound_on_latency_the_window_is_fixed():
    paced, clock = pace(latency=None)
    answers(paced, clock, 50, 3.0)
    assert paced.window == 500 and clock.slept == []


def test_the_rate_is_kept_without_a_burst_after_idle_time():
    paced, clock = pace(rate=100, latency=None)
    clock.time += 60
    began = clock.time
    for _znode in range(200):
        paced.wait()
    assert 1.8 < clock.time - began < 2.1 and paced.facts["znodes"] == 200
