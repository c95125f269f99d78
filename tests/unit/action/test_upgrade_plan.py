# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What an upgrade shows: its order, the keys that are not known any more, and how its second step is confirmed."""

from __future__ import annotations

BINARIES = {
    "order": ["upgrade_controller", "upgrade_broker"],
    "ready": ["c1"],
    "switched": [],
    "by_hook": ["b3"],
    "ahead": {"b2": {"path": "/opt/kafka", "target": "kafka-4.1.1", "runs": "/opt/kafka-3.9.2"}},
    "removed": {"b1": {"zookeeper.connect": "", "a": "b"}, "b2": {"zookeeper.connect": ""}},
    "capped": ["controller 13 is registered"],
}
VERSIONS = {
    **{"needed": "Qs:3.9", "confirmed": False, "protocol": "3.9", "metadata_version": 0, "before": "3.7"},
    **{"capped": [], "features": {}},
}


def test_the_first_step_is_shown(harness):
    harness.run("upgrade_plan", {"step": "binaries", "to": "4.1.1"}, BINARIES)
    assert harness.printed == [
        "    to Kafka 4.1.1: controllers, then brokers",
        "    run it already: c1",
        "    the hook installs it: b3",
        "    /opt/kafka of b2 leads to kafka-4.1.1 already, and its process runs /opt/kafka-3.9.2",
        "    Kafka 4.1.1 does not know a of b1: set b instead",
        "    Kafka 4.1.1 does not know zookeeper.connect of b1, b2: remove it after the upgrade",
        "    controller 13 is registered",
    ]


def test_the_token_of_the_second_step_is_shown_as_it_must_be_typed(harness):
    harness.run("upgrade_plan", {"step": "versions", "to": "3.9.2"}, VERSIONS)
    assert harness.printed[-1].endswith("run it again with -e upgrade_confirm=Qs:3.9"), "masking would hide a token"
    assert "inter.broker.protocol.version from 3.7 to 3.9" in harness.printed[-1]
    harness.run("upgrade_plan", {"step": "versions", "to": "4.1.1"}, {**VERSIONS, "capped": BINARIES["capped"]})
    assert harness.printed[-2] == "    controller 13 is registered"


def test_a_confirmed_step_and_a_complete_upgrade_are_shown(harness):
    raised = {**VERSIONS, "confirmed": True, "protocol": "", "metadata_version": 27, "before": "3.9-IV0"}
    levels = {"group.version": 1, "metadata.version": 27}
    harness.run("upgrade_plan", {"step": "versions", "to": "4.1.1"}, {**raised, "features": levels})
    harness.run("upgrade_plan", {"step": "versions", "to": "4.1.1"}, {**raised, "features": {"group.version": 1}})
    harness.run("upgrade_plan", {"step": "versions", "to": "4.1.1"}, {**VERSIONS, "needed": ""})
    assert harness.printed == [
        "    raise metadata.version from 3.9-IV0 to 4.1-IV1, group.version to 1",
        "    raise group.version to 1",
        "    nothing is left to raise: the upgrade is complete",
    ]
