# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Status says where restarts are paused, why and for how long. Facts of an earlier release know nothing of it."""

from __future__ import annotations

from ansible_collections.quorumshift.kafka.plugins.module_utils.core.status import pauses


def node(why=None, since=0.0, now=600.0):
    return {"time": now, "paused": None if why is None else {"path": "/state/pause", "since": since, "why": why}}


def test_nothing_is_paused():
    assert pauses.explain({"b1": node(), "b2": {}, "b3": {"reached": False}}) == []


def test_hosts_of_one_reason_are_together():
    nodes = {"b2": node("disk alert", 480.0), "b1": node("disk alert", 540.0), "c1": node(""), "b3": node()}
    assert pauses.explain(nodes) == [
        "restarts are paused on b1, b2 for 2 min 0 s (disk alert). To go on, run quorumshift.kafka.resume "
        "(QS-RESTART-019)",
        "restarts are paused on c1 for 10 min 0 s. To go on, run quorumshift.kafka.resume (QS-RESTART-019)",
    ]


def test_a_reason_cannot_write_to_the_terminal():
    (text,) = pauses.explain({"b1": node("\x1b[2Jall is well\r")})
    assert "\x1b" not in text and "\r" not in text
