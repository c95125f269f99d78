# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The wait for a healthy cluster: how long it must have been so, over one call or several, by a clock of the test."""

from __future__ import annotations

import itertools

import pytest
from ansible_collections.quorumshift.kafka.plugins.module_utils.module_base import probe_module

STABLE_S = 10


class Clock:
    """The module's time, which only a sleep moves."""

    def __init__(self):
        self.now = 1000.0

    def time(self):
        return self.now

    monotonic = time

    def sleep(self, seconds):
        self.now += max(seconds, 0.01)


class Module(probe_module.ProbeModule):
    """One call of a module; Ansible's part is left out."""

    def __init__(self, carry=None):
        self.params, self.same = {"carry": carry or {}}, {}


@pytest.fixture
def clock(monkeypatch):
    moved = Clock()
    monkeypatch.setattr(probe_module, "time", moved)
    return moved


def healthy_but(clock, *sick):
    """Return a reading that finds trouble in each interval of `sick`, and notes when it was taken."""
    taken = []

    def collect():
        taken.append(clock.now)
        return (["sick"] if any(begin <= clock.now < end for begin, end in sick) else []), {}

    return collect, taken


def wait(clock, collect, carry, stable_s=STABLE_S):
    """Return when the wait ends, however many calls it takes."""
    while True:
        clock.now += 0.5  # until the module runs
        result = Module(carry).wait(collect, stable_s, 600, "it")
        if result["done"]:
            return clock.now
        carry = result["carry"]


def test_a_wait_that_begins_without_trouble_counts_from_then(clock):
    collect, taken = healthy_but(clock)
    carry = Module().begin_wait(collect, STABLE_S)
    assert wait(clock, collect, carry) == taken[0] + STABLE_S


def test_a_wait_that_begins_with_trouble_counts_from_its_end(clock):
    collect, taken = healthy_but(clock, (1000, 1001))
    carry = Module().begin_wait(collect, STABLE_S)
    clock.now += 3
    assert wait(clock, collect, carry) == taken[1] + STABLE_S == 1003.5 + STABLE_S


def test_what_a_wait_began_with_is_not_shown_as_trouble(clock):
    """The hosts are read after it: a broker that has just registered is missing in the log that was read before."""
    collect, _taken = healthy_but(clock, (1000, 1001), (1010, 1012))
    carry = Module().begin_wait(collect, 60)
    assert carry["trouble"] == "sick" and carry["since"] is None
    clock.now += 3
    first = Module(carry).wait(collect, 60, 600, "it")
    assert first["progress"].startswith("waits for it: healthy for ") and "sick" not in first["progress"]
    later = Module(Module(first["carry"]).wait(collect, 60, 600, "it")["carry"]).wait(collect, 60, 600, "it")
    assert "before that: sick" in later["progress"]  # what the wait itself has seen is shown


@pytest.mark.parametrize("takes", [0.2, 1.5, STABLE_S - 1])
def test_a_reading_counts_from_its_begin(clock, takes):
    """Each answer of the last reading is as much later than the same answer of the first one as the two began."""
    begun = []

    def collect():
        begun.append(clock.now)
        clock.now += takes
        return [], {}

    ended = wait(clock, collect, Module().begin_wait(collect, STABLE_S))
    assert ended == begun[-1] + takes and STABLE_S <= begun[-1] - begun[0] < STABLE_S + max(takes, 1) + 0.5


@pytest.mark.parametrize("gap", [1, STABLE_S - 1, STABLE_S, STABLE_S + 0.1, 60])
def test_a_cluster_that_was_not_read_for_so_long_was_not_seen_healthy(clock, gap):
    collect, taken = healthy_but(clock)
    carry = Module().begin_wait(collect, STABLE_S)
    clock.now += gap - 0.5
    ended = wait(clock, collect, carry)
    assert ended == (taken[0] if gap <= STABLE_S else taken[1]) + STABLE_S


@pytest.mark.parametrize("stable_s", [0, 0.5, 1, 2, STABLE_S])
def test_a_pause_that_takes_longer_than_asked_for_ends_no_healthy_time(clock, monkeypatch, stable_s):
    """As every pause does: a healthy time of one second would begin anew with each reading."""
    monkeypatch.setattr(clock, "sleep", lambda seconds: setattr(clock, "now", clock.now + max(seconds, 0.01) + 0.05))
    collect, taken = healthy_but(clock)
    ended = wait(clock, collect, {}, stable_s)  # as before a gate, which has no reading of a call before
    assert ended - taken[0] < stable_s + 2


def test_the_time_is_without_a_break_wherever_the_calls_are_cut(clock, monkeypatch):
    for slice_s, begin in itertools.product((0, 1, 5), range(0, 24)):
        clock.now = 1000.0
        monkeypatch.setattr(probe_module, "SLICE_S", slice_s)
        collect, taken = healthy_but(clock, (1000 + begin, 1001.5 + begin))
        ended = wait(clock, collect, Module().begin_wait(collect, STABLE_S))
        in_time = [at for at in taken if ended - STABLE_S <= at <= ended]
        assert not any(1000 + begin <= at < 1001.5 + begin for at in in_time), (slice_s, begin)
        assert max(later - at for at, later in itertools.pairwise(in_time)) <= STABLE_S


def test_what_is_checked_at_the_end_is_waited_for_and_begins_no_time_anew(clock):
    collect, taken = healthy_but(clock)
    asked = []

    def late():
        asked.append(clock.now)
        return ["b1 is slow"] if len(asked) < 12 else []

    carry, shown = {}, []
    while True:
        result = Module(carry).wait(collect, STABLE_S, 600, "it", late)
        if result["done"]:
            break
        carry = result["carry"]
        shown.append(result["progress"])
        clock.now += 0.5
    assert asked[0] == taken[0] + STABLE_S  # not before the cluster was healthy for so long
    assert len(asked) == 12 and clock.now < asked[0] + STABLE_S, "the healthy time began anew"
    assert "b1 is slow" in shown[-1]


def test_what_is_checked_at_the_end_has_the_bound_of_the_wait(clock, monkeypatch):
    def fail(_module, msg, **_more):
        raise AssertionError(msg)

    monkeypatch.setattr(probe_module.ProbeModule, "fail_json", fail)
    carry = {}
    with pytest.raises(AssertionError, match=r"waited 30 s for it\. Last seen: b1 is slow"):
        while True:
            carry = Module(carry).wait(healthy_but(clock)[0], STABLE_S, 30, "it", lambda: ["b1 is slow"])["carry"]


@pytest.mark.parametrize(("takes", "stable_s", "why"), [(2.5, 1, "up to 2.5 s apart, and more than 2 s"), (0.5, 1, "")])
def test_readings_that_take_too_long_for_the_asked_time_are_named(clock, monkeypatch, takes, stable_s, why):
    """Without that, the wait would end healthy, and say nothing."""

    def collect():
        clock.now += takes
        return [], {}

    failed = []
    monkeypatch.setattr(Module, "fail_json", lambda _self, **result: failed.append(result["msg"]) or pytest.fail("end"))
    if not why:
        assert wait(clock, collect, Module().begin_wait(collect, stable_s), stable_s)
        return
    with pytest.raises(pytest.fail.Exception):
        wait(clock, collect, Module().begin_wait(collect, stable_s), stable_s)
    assert why in failed[0] and "set quorumshift_stable_s to 6" in failed[0], failed
    assert wait(clock, collect, Module().begin_wait(collect, 6), 6)
