# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How long a promoted host waits for others that may be dead, and what it notes of them."""

from __future__ import annotations

import pytest
from ansible_collections.quorumshift.kafka.plugins.module_utils.core.ensemble import cut_host, ensemble_cut
from ansible_collections.quorumshift.kafka.plugins.module_utils.core.ensemble.ensemble_cut import PROMOTING

ZXIDS = {"z4": 9, "z5": 9, "z6": 8}


class Others:
    """What a host sees of two other destination servers. `there`: [(from when, how many listen)]; `leads_at`: from when
    one of them leads."""

    def __init__(self, there, leads_at=1e9) -> None:
        self.time, self.there, self.leads_at = 0.0, there, leads_at
        self.notes: list[dict] = []
        self.state_file, self.orders, self.record_ = PROMOTING, {}, {}

    def now(self):
        return self.time

    def clock(self):
        return self.time

    def sleep(self, seconds):
        self.time += max(seconds, 0.1)

    def state(self):
        return self.state_file

    def electing(self):
        return [count for since, count in self.there if since <= self.time][-1]

    def leader_listens(self):
        return self.time >= self.leads_at

    def order(self):
        return self.orders

    def write_record(self, record):
        self.notes.append(dict(record))


def waited(others, **order):
    worker = cut_host.Worker({"id": "cut1", "host": "z6", "peers": 2, "deadline": 0})
    worker.record = {"steps": [], "reason": "", "brokers_lost": []}
    goes_on = cut_host.run(worker.await_first({"zxids": ZXIDS, "first": ["z4", "z5"], **order}), others)
    return goes_on, others.time, worker.record.get("waits", "")


@pytest.mark.parametrize(
    ("others", "order", "at_least", "at_most", "notes"),
    [
        # the two that start first elect
        (Others([(0, 0), (2, 2)], leads_at=3), {}, 3, 4, ""),
        (Others([(0, 2)], leads_at=20), {"first_s": 30}, 20, 21, ""),
        # one of them ends after its start: the other one and this host are a majority
        (Others([(0, 0), (2, 2), (5, 1)]), {"first_s": 30}, 8, 9, "1 of 2 other servers listen"),
        # it comes back in time
        (Others([(0, 2), (5, 1), (6, 2)], leads_at=9), {"first_s": 30}, 9, 10, ""),
        # one never starts: after three times the estimated start, and never later than a minute
        (Others([(0, 1)]), {"first_s": 12}, 12, 14, "no leader after 12 s, and 1 of 2 other servers listen"),
        (Others([(0, 0)]), {"first_s": 500}, 60, 62, "0 of 2"),
        (Others([(0, 0)]), {}, 60, 62, "0 of 2"),
    ],
)
def test_a_host_waits_for_those_that_start_first_no_longer_than_they_can_elect(others, order, at_least, at_most, notes):
    goes_on, time, noted = waited(others, **order)
    assert goes_on and at_least <= time <= at_most
    assert notes in noted and bool(noted) == bool(notes)


def test_a_suspended_promotion_ends_the_wait():
    others = Others([(0, 0)])
    others.state_file = ensemble_cut.SUSPENDED
    assert waited(others)[:2] == (False, 0.0)


@pytest.mark.parametrize("dead", [[], ["z4"]])
def test_followers_prove_nothing_where_a_host_was_left_out(dead):
    """A host that was left out may be back, and follow in place of one that did not accept."""
    others = Others([(0, 2)])
    others.followers = lambda: 2
    worker = cut_host.Worker({"id": "cut1", "host": "z6", "peers": 2, "deadline": 0})
    worker.record = {"dead": dead}
    assert cut_host.run(worker.all_promoted("leader"), others) is not bool(dead)
    others.orders = {"id": "cut1", "name": "all"}
    assert cut_host.run(worker.all_promoted("leader"), others) is True


@pytest.mark.parametrize(
    ("timeouts", "znodes", "others", "refused"),
    [
        ([], 10, {}, False),  # no session lives there
        ([18000], 10, {"z5:2181": "observer", "z6:2181": None}, False),
        ([18000], 10, {"z5:2181": None, "z6:2181": None}, False),  # 7 s of 12 s
        ([6000, 18000], 10, {"z5:2181": None}, True),
        ([18000], 1_000_000, {}, True),
        ([6000], 10, {"z5:2181": "follower"}, True),
    ],
)
def test_an_observer_is_restarted_only_if_its_sessions_outlive_that(timeouts, znodes, others, refused):
    found = list(ensemble_cut.check_restartable(timeouts, znodes, others))
    assert bool(found) == refused
    assert not found or f"{len(timeouts)} sessions live on this server" in found[0].seen
