# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""preflight: replication throttles that an earlier move left."""

from __future__ import annotations

import pytest

from tests.unit.core.preflight_facts import collected, found, the_one

RATE, REPLICAS = "follower.replication.throttled.rate", "follower.replication.throttled.replicas"


def throttled(**configs):
    facts = collected()._replace(bootstrap="b1:9092")
    for kind, entities in configs.items():
        for name, values in entities.items():
            facts.metadata["configs"][kind].setdefault(name, {}).update(values)
    return facts


@pytest.mark.parametrize("broker", ["1", "77", ""])
def test_finding_for_a_throttle_that_slows_replicas_down(broker):
    """Also of a broker that is dead, or by the brokers' default."""
    facts = throttled(broker={broker: {RATE: "1000"}}, topic={"t": {REPLICAS: "*"}})
    seen = the_one(facts, "throttles")
    assert f"broker {broker or '(default)'}: {RATE}=1000" in seen and f"topic t: {REPLICAS}=*" in seen
    (finding,) = found(facts, "throttles")
    assert finding["severity"] == "blocks"
    assert f"--bootstrap-server b1:9092 --alter --delete-config {REPLICAS} --entity-type topics" in finding["do"]


@pytest.mark.parametrize("configs", [{"broker": {"1": {RATE: "1000"}}}, {"topic": {"t": {REPLICAS: "*"}}}])
def test_half_a_throttle_warns(configs):
    (finding,) = found(throttled(**configs), "throttles")
    assert finding["severity"] == "warns" and "one half of the throttle" in finding["seen"]


def test_without_throttles_there_is_no_finding():
    assert found(throttled(topic={"t": {"retention.ms": "1000", REPLICAS: ""}}), "throttles") == []
