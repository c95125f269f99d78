# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Where a move is, and what to run next, in each of its stages."""

from __future__ import annotations

import pytest
from ansible_collections.quorumshift.kafka.plugins.module_utils.core.ensemble import cut_rehearsal, move_status
from ansible_collections.quorumshift.kafka.plugins.module_utils.core.ensemble.move_status import (
    ABSENT,
    DESTINATION,
    SOURCE,
)

IDS = (11, 12, 13)


def located(state="none", mode="observer", **more):
    cut = {"state": state, "rules": 0, "works": False, "verified": False, **more}
    return {"cut": {"id": "1" if state != "none" else None, **cut}, "server": {"mode": mode}}


def seen(hosts, brokers=(DESTINATION, DESTINATION), **changes):
    server = {"mode": "leader", "zxid": 5, "version": [3, 8, 4]}
    of = {
        "hosts": {f"z{number}": host for number, host in enumerate(hosts, 1)},
        "unread": {},
        "source": {"s1:2181": server},
        "destination": {"z1:2181": {**server, "mode": "observer", "zxid": 5}},
        "brokers": {f"b{number}": where for number, where in enumerate(brokers, 1)},
        "controller": brokers[0],
    }
    return move_status.Seen(**{**of, **changes})


REHEARSED = {"state": "healed", "rehearsed": True, "reason": cut_rehearsal.REASON}


@pytest.mark.parametrize(
    ("what", "stage", "playbook", "given"),
    [
        (seen([located(mode="")] * 3, (SOURCE, SOURCE)), "not begun", "zk_migrate", {"zk_migrate_cut": "false"}),
        (
            seen([located(), located(mode=""), located()], (SOURCE, SOURCE)),
            "2 of 3 destination servers are observers",
            "zk_migrate",
            {"zk_migrate_cut": "false"},
        ),
        (
            seen([located()] * 3, (DESTINATION, SOURCE)),
            "1 of 2 brokers use the destination's observers",
            "zk_migrate",
            {"zk_migrate_cut": "false"},
        ),
        (
            seen([located()] * 3),
            "ready for the cut, which was not rehearsed",
            "zk_migrate",
            {"zk_migrate_rehearse": "true"},
        ),
        (seen([located(**REHEARSED)] * 3), "ready for the cut, which was rehearsed", "zk_migrate", {}),
        (seen([located("fenced")] * 3), "a cut is under way", "", {}),
        (seen([located("promoting")] * 3), "the promotion is under way", "zk_migrate", {}),
        (
            seen([located("promoting"), located(), located()]),
            "a promotion must be taken back",
            "zk_rollback",
            {},
        ),
        (seen([located("promoted", "leader")] * 3), "promoted, and not verified", "zk_migrate", {}),
        (
            seen([located("promoted", "leader", verified=True)] * 3),
            "done, and the source has Kafka's old data",
            "zk_migrate",
            {"zk_migrate_source_data": "marked"},
        ),
        (seen([located("promoted", "leader", verified=True)] * 3, shown_id="MOVED_TO_z1"), "done", "", {}),
        (seen([located("promoted", "leader"), located(), located()]), "the destination serves without one", "", {}),
        (seen([located(), located(), {}], unread={"z3": "unreachable"}), "not known", "", {}),
        (
            seen([located()] * 2, dead=["z3"]),
            "ready for the cut, which was not rehearsed",
            "zk_migrate",
            {"zk_migrate_rehearse": "true", "zk_migrate_dead_hosts": "z3"},
        ),
    ],
)
def test_each_stage_has_its_next_command(what, stage, playbook, given):
    status = move_status.describe(what)
    assert status.stage.startswith(stage), status
    assert (status.playbook, status.given) == (playbook, given), status


def test_what_is_behind_and_what_became_of_the_last_cut():
    late = {"z1:2181": {"mode": "observer", "zxid": 4}, "z2:2181": {"mode": None, "zxid": None}}
    cuts = [located("healed", reason="the deadline passed"), located(**REHEARSED), located()]
    text = "\n".join(move_status.describe(seen(cuts, (DESTINATION, ABSENT), destination=late)).lines)
    for said in (
        "z1:2181 observer at 0x4, its leader was at 0x5",
        "z2:2181 gives no answer",
        "1 of 2 are not registered: b2",
        "z1: healed: the deadline passed",
        "z2: rehearsed and healed",
    ):
        assert said in text, text
    assert "z3:" not in text


def test_sessions_tell_their_ensemble():
    assert move_status.locate_session(11 << 56 | 5, IDS) == DESTINATION
    assert move_status.locate_session(3 << 56 | 5, IDS) == SOURCE
    assert move_status.locate_session((200 << 56) - (1 << 64), [200]) == DESTINATION
    assert move_status.locate_session(None, IDS) == ABSENT
