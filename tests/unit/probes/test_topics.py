# Copyright: (c) 2026, Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What brokers of different modes tell of the same partitions, put together to the worst of it."""

from __future__ import annotations

from ansible_collections.quorumshift.kafka.plugins.module_utils.core import restart
from ansible_collections.quorumshift.kafka.plugins.module_utils.probes import topics


def one(isr, leader=5, replicas=(5, 2, 1)):
    return {"leader": leader, "replicas": list(replicas), "isr": list(isr)}


def reported(partitions):
    return {"reached": True, "brokers": {"1": "", "2": "", "5": ""}, "partitions": partitions}


STALE = {"orders": {"0": one([5, 2, 1]), "1": one([5, 2, 1])}}


def test_brokers_that_agree():
    united = topics.united(reported(STALE), {"b1": STALE, "b3": STALE})
    assert united["partitions"] == STALE and united["differ"] == {"hosts": ["b1", "b3"], "partitions": []}
    assert restart.troubles(united, {"orders": 2}, [1, 2, 5]) == []


def test_the_worst_counts_whoever_answered():
    true = {"orders": {"0": one([5]), "1": one([5, 2, 1], leader=-1)}}
    for answered in (STALE, true):
        united = topics.united(reported(answered), {"b1": true, "b3": STALE})
        assert united["partitions"]["orders"]["0"]["isr"] == [5]
        assert united["partitions"]["orders"]["1"]["leader"] == -1
        assert united["differ"] == {"hosts": ["b1", "b3"], "partitions": ["orders-0"]}
        troubles = "; ".join(restart.troubles(united, {"orders": 2}, [1, 2, 5]))
        assert "1 partition offline: orders-1" in troubles and "1 partition under-replicated: orders-0" in troubles
        assert "b1 and b3 run in different modes and report different in-sync replicas for 1 of" in troubles


def test_a_topic_that_one_of_them_does_not_know_yet():
    united = topics.united(reported({"new": {"0": one([5, 2, 1])}}), {"b1": {}, "b3": STALE})
    assert united["partitions"] == {"new": {"0": one([5, 2, 1])}}
