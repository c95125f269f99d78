# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What people read of reassignments: what is in flight, whose throttles, what a plan copies, and sizes."""

from __future__ import annotations

import pytest
from ansible_collections.quorumshift.kafka.plugins.module_utils.core.admin import reassign_screen
from ansible_collections.quorumshift.kafka.plugins.module_utils.core.text.sizes import format_bytes

RATE, LIST = "follower.replication.throttled.rate", "follower.replication.throttled.replicas"
THROTTLES = [
    {"resource": "broker 1", "key": RATE, "value": "50000000"},
    {"resource": "broker 2", "key": RATE, "value": "50000000"},
    {"resource": "topic t", "key": LIST, "value": "0:2"},
]
IDLE = {
    **{
        "cluster_id": "c",
        "reassignments": [],
        "progress": {"bytes_left": None},
        "throttles": [],
        "throttles_unread": [],
    },
    **{"throttles_remove": "", "throttles_set_by": {}, "legacy": None, "copies": None, "unmeasured": []},
}
MOVING = {
    **IDLE,
    "reassignments": [{"topic": "t", "partition": 0, "replicas": [2, 1], "adding": [2], "removing": []}],
    "progress": {"bytes_left": 3 << 30},
    "throttles": THROTTLES,
    "throttles_set_by": {"run": "night-1", "user": "ops", "host": "control-1", "at": 0, "rate": 50000000},
}


def test_what_is_in_flight_with_its_throttles_and_who_set_them():
    assert reassign_screen.render(MOVING) == [
        "Reassignments of cluster c: 1 partitions in flight, 3.0 GiB left",
        "  partition  replicas  adding  removing",
        "  t-0        2, 1      2       -",
        "  throttles: 47.7 MiB/s at broker 1, broker 2, replicas of 1 topics listed"
        " (set by run night-1 of ops on control-1, 1970-01-01 00:00:00 UTC)",
    ]
    many = {**MOVING, "reassignments": MOVING["reassignments"] * 50}
    assert "  and 30 more" in reassign_screen.render(many)


def test_what_is_left_without_a_move_is_named_with_its_command():
    assert reassign_screen.render(IDLE) == ["Reassignments of cluster c: none in flight", "  throttles: none"]
    left = {
        **IDLE,
        "throttles": THROTTLES[:2],
        "throttles_remove": "kafka-configs.sh ...",
        "legacy": "1 partitions (t-0)",
    }
    shown = "\n".join(reassign_screen.render({**left, "throttles_unread": ["b3:9092: no answer"]}))
    assert "no replicas listed" in shown and "remove them: kafka-configs.sh ..." in shown
    assert (
        "/admin/reassign_partitions exists in ZooKeeper: 1 partitions (t-0)" in shown and "b3:9092: no answer" in shown
    )


def test_the_line_of_status():
    line = reassign_screen.status_line(1, {"bytes_left": 10}, THROTTLES)
    assert line.startswith("reassignments: 1 partitions in flight, 10 bytes left; throttles: 47.7 MiB/s at broker 1")
    assert reassign_screen.status_line(0, {}, []) == "reassignments: none in flight; throttles: none"


def test_what_a_plan_copies():
    rows = [
        {"broker": 1, "replicas": 2, "bytes": 2048, "free": 1 << 40},
        {"broker": 2, "replicas": 1, "bytes": 10, "free": None},
    ]
    copies = {
        "partitions": 3,
        "replicas": 3,
        "bytes": 2058,
        "brokers": rows,
        "warnings": ["broker 1 would have little"],
    }
    assert reassign_screen.render_plan({**IDLE, "copies": copies, "unmeasured": ["b3: no answer"]}) == [
        "Plan: 3 partitions change, 3 replicas are copied, 2.0 KiB",
        "  broker 1 gets 2 replicas, 2.0 KiB, and has 1.0 TiB free",
        "  broker 2 gets 1 replicas, 10 bytes",
        "  ! broker 1 would have little",
        "  ! sizes are not known: b3: no answer",
    ]
    assert reassign_screen.render_plan(IDLE) == []


@pytest.mark.parametrize(
    ("size", "text"),
    [(0, "0 bytes"), (1023, "1023 bytes"), (1536, "1.5 KiB"), (200 << 20, "200 MiB"), (5 << 60, "5120 PiB")],
)
def test_sizes(size, text):
    assert format_bytes(size) == text
