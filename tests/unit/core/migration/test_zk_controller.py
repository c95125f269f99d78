# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""ZooKeeper's elected controller, and whether it can write."""

from __future__ import annotations

import pytest
from ansible_collections.quorumshift.kafka.plugins.module_utils.core.migration import zk_controller

BROKER = {"exists": True, "ephemeral": True, "broker_id": 2, "kraft_controller_epoch": -1, "czxid": 700}


def test_an_ephemeral_controller_is_elected():
    assert zk_controller.is_elected(BROKER)
    assert not zk_controller.is_elected({"exists": True, "ephemeral": False, "kraft_controller_epoch": 3})
    assert not zk_controller.is_elected({"exists": False, "ephemeral": None, "kraft_controller_epoch": None})


@pytest.mark.parametrize(
    ("controller", "epoch", "fenced"),
    [
        (BROKER, {"exists": True, "mzxid": 700}, False),
        (BROKER, {"exists": True, "mzxid": 705}, True),
        (BROKER, {"exists": False, "mzxid": None}, False),
        ({"exists": False}, {"exists": True, "mzxid": 705}, False),
        ({**BROKER, "ephemeral": False}, {"exists": True, "mzxid": 705}, False),
    ],
)
def test_a_controller_is_fenced_if_the_epoch_was_written_after_its_election(controller, epoch, fenced):
    znodes_seen = {"controller": controller, "controller_epoch": epoch}
    assert zk_controller.is_fenced(znodes_seen) is fenced
    sentence = zk_controller.explain_fenced(znodes_seen)
    assert (sentence is not None) is fenced
    assert not fenced or "broker 2 is the controller but can write nothing" in sentence


def test_an_unread_zookeeper_has_no_fenced_controller():
    assert not zk_controller.is_fenced({"reached": False, "error": "timed out"})
