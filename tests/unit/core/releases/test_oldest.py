# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Brokers of too old a release are refused by what they offer, not by their name. Ranges: Kafka's own definitions."""

from __future__ import annotations

import pytest
from ansible_collections.quorumshift.kafka.plugins.module_utils.core.migration import phase
from ansible_collections.quorumshift.kafka.plugins.module_utils.core.releases import oldest
from ansible_collections.quorumshift.kafka.plugins.module_utils.core.restart import plain_restart

from tests.unit.core import recorded

KAFKA_2_3 = {3: (0, 8), 17: (0, 1), 18: (0, 2), 2: (0, 5), 29: (0, 1), 32: (0, 2), 35: (0, 1), 36: (0, 1), 41: (0, 1)}
KAFKA_2_3.update({43: (0, 0), 44: (0, 0)})
KAFKA_2_4 = {**KAFKA_2_3, 3: (0, 9), 18: (0, 3), 43: (0, 2), 44: (0, 1), 45: (0, 0), 46: (0, 0)}
KAFKA_4_1 = {2: (1, 11), 3: (0, 13), 17: (0, 1), 18: (0, 4), 29: (1, 3), 32: (1, 4), 35: (1, 4), 36: (0, 2)}
KAFKA_4_1.update({41: (1, 3), 43: (0, 2), 44: (0, 1), 45: (0, 1), 46: (0, 0)})
LACKS_2_3 = [
    "Metadata 9 to 12 (it offers 0 to 8)",
    "AlterPartitionReassignments 0 (it offers no version)",
    "ListPartitionReassignments 0 (it offers no version)",
    "ElectLeaders 2 (it offers 0 to 0)",
    "IncrementalAlterConfigs 1 (it offers 0 to 0)",
]


def test_what_a_broker_does_not_offer():
    assert oldest.find_lacking(KAFKA_2_4) == [] and oldest.find_lacking(KAFKA_4_1) == []
    assert oldest.find_lacking(KAFKA_2_3) == LACKS_2_3
    assert oldest.find_lacking({**KAFKA_4_1, 32: (5, 6)}) == ["DescribeConfigs 2 to 4 (it offers 5 to 6)"]


@pytest.mark.parametrize("name", ["zk", "finalized"])
@pytest.mark.parametrize("what", [plain_restart.RESTART, plain_restart.REASSIGNMENT])
def test_a_run_over_a_cluster_with_an_older_broker_does_not_begin(name, what):
    facts = recorded.facts(name)
    assert plain_restart.refusal(facts, phase.detect(facts), what) is None
    facts["nodes"]["b2"].update(version="2.3.1", lacking=oldest.find_lacking(KAFKA_2_3))
    assert plain_restart.refusal(facts, phase.detect(facts), what) == (
        "Kafka 2.4 is the oldest release that can be restarted, upgraded or reassigned here: b2 runs Kafka 2.3.1 and "
        f"does not offer {', '.join(LACKS_2_3)}. Upgrade the brokers to Kafka 2.4 or later first, as Kafka's own "
        "documentation says (QS-RUN-017)"
    )


def test_of_a_broker_that_is_down_the_release_of_its_jars_decides():
    facts = recorded.down(recorded.facts("zk"), "b2")
    for version, refused in (
        ("0.11.0", True),
        ("2.3.1", True),
        ("2.4.0", False),
        ("2.8.2", False),
        (None, False),
        ("strange", False),
    ):
        facts["nodes"]["b2"]["version"] = version
        said = oldest.refusal(facts["nodes"])
        assert bool(said) is refused, version
        if said:
            assert f"b2 does not answer, and has the jars of Kafka {version}" in said


def test_of_many_brokers_three_are_named():
    facts = recorded.facts("zk")
    nodes = {f"b{number:03}": facts["nodes"]["b1"] for number in range(300)}
    for node in nodes.values():
        node.update(version="2.3.1", lacking=oldest.find_lacking(KAFKA_2_3))
    said = oldest.refusal(nodes)
    assert "b002" in said and "b003" not in said and "; 297 more brokers. Upgrade" in said
