# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Views of brokers of different modes are merged to the worst state of each partition."""

from __future__ import annotations

from ansible_collections.quorumshift.kafka.plugins.module_utils.core.gates import cluster_health
from ansible_collections.quorumshift.kafka.plugins.module_utils.probes.cluster import topics


def partition(isr, leader=5, replicas=(5, 2, 1)):
    return {"leader": leader, "replicas": list(replicas), "isr": list(isr)}


def topics_facts(partitions):
    return {"reached": True, "brokers": {"1": "", "2": "", "5": ""}, "partitions": partitions}


STALE = {"orders": {"0": partition([5, 2, 1]), "1": partition([5, 2, 1])}}


def test_equal_views_do_not_differ():
    merged = topics.merge(topics_facts(STALE), {"b1": STALE, "b3": STALE})
    assert merged["partitions"] == STALE and merged["differ"] == {"hosts": ["b1", "b3"], "partitions": []}
    assert cluster_health.troubles(merged, {"orders": 2}, [1, 2, 5]) == []


def test_worst_state_counts_whichever_broker_answered():
    true = {"orders": {"0": partition([5]), "1": partition([5, 2, 1], leader=-1)}}
    for answered in (STALE, true):
        merged = topics.merge(topics_facts(answered), {"b1": true, "b3": STALE})
        assert merged["partitions"]["orders"]["0"]["isr"] == [5]
        assert merged["partitions"]["orders"]["1"]["leader"] == -1
        assert merged["differ"] == {"hosts": ["b1", "b3"], "partitions": ["orders-0"]}
        troubles = "; ".join(cluster_health.troubles(merged, {"orders": 2}, [1, 2, 5]))
        assert (
            "1 partition offline: orders-1 (QS-GATE-005)" in troubles
            and "1 partition under-replicated: orders-0 (QS-GATE-005)" in troubles
        )
        assert "b1 and b3 run in different modes and report different in-sync replicas for 1 of" in troubles


def test_topic_that_a_broker_does_not_know_yet_is_kept():
    merged = topics.merge(topics_facts({"new": {"0": partition([5, 2, 1])}}), {"b1": {}, "b3": STALE})
    assert merged["partitions"] == {"new": {"0": partition([5, 2, 1])}}
