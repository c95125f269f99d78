# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A gate's token goes by the gate's own name; the journal has how it ended."""

from __future__ import annotations

import os

OPEN = {"phase": "zk", "gate_token": {"gate": "before_controllers", "digest": "d1"}, "waited_s": 2.5}


def test_an_open_gate_leaves_its_token_under_its_name(harness):
    harness.facts("localhost", quorumshift_gate_tokens={"before_trigger": {"digest": "d0"}})
    result = harness.run("gate", {"gate": "before_controllers"}, OPEN)
    tokens = result["ansible_facts"]["quorumshift_gate_tokens"]
    assert tokens == {"before_trigger": {"digest": "d0"}, "before_controllers": OPEN["gate_token"]}
    (event,) = harness.events("before_controllers")
    assert (event["result"], event["digest"], event["verified"]) == ("pass", "d1", "off")


def test_a_closed_gate_leaves_no_token(harness):
    result = harness.run("gate", {"gate": "before_controllers"}, {"failed": True, "msg": "the phase is hybrid"})
    assert result["failed"] and "ansible_facts" not in result
    (event,) = harness.events("before_controllers")
    assert (event["result"], event["reason"]) == ("differ", "the phase is hybrid")


def test_the_verification_is_required_where_it_is_on(harness):
    harness.variables["quorumshift_verify"] = True
    passed = {"job": "metadata_parity", "digest": "m1", "report": "verify/before_kraft/report.html"}
    harness.run("gate", {"gate": "before_kraft", "verified": [passed]}, OPEN)
    assert harness.asked[0]["verify"] == ["metadata_parity"]
    (event,) = harness.events("before_kraft")
    assert event["verified"] == {"metadata_parity": "m1"} and event["reports"] == {"metadata_parity": passed["report"]}


def test_what_zookeeper_had_before_finalization_is_kept_and_not_printed(harness):
    result = harness.run("gate", {"gate": "before_finalize"}, {**OPEN, "zookeeper": {"controller": {}}})
    assert "zookeeper" not in result and harness.artifacts.read("zookeeper-before-finalize.json")


def test_records_that_were_read_before_the_migration_are_not_left_out_in_silence(harness):
    """A later command that lacks the variable with the topics."""
    harness.variables["quorumshift_verify"] = True
    final = {"phase": "finalized", "gate_token": {"gate": "after_finalize", "digest": "d1"}, "waited_s": 2.5}
    kept = os.path.join(harness.artifacts.cluster, "baseline", "fingerprint.json")

    def said(**variables):
        harness.variables.update(variables)
        del harness.printed[:]
        harness.run("gate", {"gate": "after_finalize"}, final)
        return [text for text in harness.printed if "were not compared" in text]

    assert said() == []
    os.makedirs(os.path.dirname(kept), exist_ok=True)
    open(kept, "w").close()
    assert len(said()) == 1
    assert said(quorumshift_fingerprint_topics=["a"]) == []
    assert said(quorumshift_fingerprint_topics=[], quorumshift_verify=False) == []
