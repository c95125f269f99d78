# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""preflight: all checks together. checks/ tests each check alone."""

from __future__ import annotations

import pathlib

import pytest
from ansible_collections.quorumshift.kafka.plugins.module_utils.core.preflight import preflight

from tests.unit.core import recorded
from tests.unit.core.preflight_facts import OVER_TLS, collected, node, with_controller_principal


@pytest.mark.parametrize("name", ["zk", "controllers_ready", "reverted"])
def test_a_healthy_cluster_has_no_findings(name):
    facts = collected(name)
    facts.cluster["topics"] = recorded.facts("zk")["topics"]
    facts.cluster["zookeeper"]["cluster_id"] = collected().cluster["zookeeper"]["cluster_id"]
    for node_facts in facts.cluster["nodes"].values():
        for directory in node_facts["log_dirs"]:
            if directory["meta"]:
                directory["meta"]["cluster.id"] = facts.zookeeper["cluster_id"]["value"]
    assert preflight.run(facts) == []


NAMES = {check.id: check.name for check in preflight.CHECKS}


def test_every_finding_carries_its_check():
    facts = collected("zk_no_zookeeper")
    for finding in preflight.run(facts):
        assert set(finding) == {"id", "title", "severity", "source", "seen", "do", "waived"}
        assert finding["severity"] in ("blocks", "warns")
    assert len({check.id for check in preflight.CHECKS}) == len(preflight.CHECKS)


def test_no_advice_begins_with_a_command():
    """Its first letter is shown as a capital."""
    facts = with_controller_principal("User:controller", **OVER_TLS)._replace(rights={"cluster": [], "topics": {}})
    node(facts, "b1")["service"]["unit_file_state"] = "disabled"
    facts.metadata["acls"] = []
    first_words = [finding["do"].split()[0] for finding in preflight.run(facts)]
    commands = ("kafka-", "systemctl", "zookeeper-")
    assert first_words and not [word for word in first_words if word.startswith(commands)]


def test_every_check_is_provoked_here():
    files = pathlib.Path(__file__).parent.glob("test_*.py")
    text = "".join(path.read_text(encoding="utf-8") for path in files)
    for check in preflight.CHECKS:
        assert f'the_one(facts, "{check.name}")' in text or f'found(facts, "{check.name}")' in text, check.name


def test_after_the_initial_copy_only_hosts_are_checked():
    facts = collected("zk_no_zookeeper", metadata=None)
    assert preflight.run(facts, before_copy=False) == []


def test_a_waiver_covers_warnings_only():
    facts = collected()
    node(facts, "c1")["service"]["unit_file_state"] = "disabled"
    facts.zookeeper["controller_epoch"] = {"exists": False, "malformed": None, "value": None}
    enabled, epoch = preflight.ID["enabled"], preflight.ID["controller_epoch"]
    waived = {enabled: "started by hand", epoch: "never mind"}
    findings = {
        finding["id"]: (finding["severity"], finding["waived"]) for finding in preflight.run(facts, waived=waived)
    }
    assert findings == {enabled: ("warns", "started by hand"), epoch: ("blocks", None)}


def test_a_waiver_names_a_check_and_a_reason():
    enabled = preflight.ID["enabled"]
    assert preflight.check_waivers({enabled: "started by hand"}) == []
    assert preflight.check_waivers({enabled: " ", "enable": "why"}) == [
        "enable is not a check",
        f"{enabled} has no reason",
    ]


def test_a_failed_check_blocks_and_the_others_run():
    facts = collected()
    facts.metadata["topics"]["odd"] = {}
    facts.zookeeper["controller_epoch"] = {"exists": False, "malformed": None, "value": None}
    findings = {NAMES[finding["id"]]: finding for finding in preflight.run(facts)}
    assert findings["dead_replicas"]["seen"].startswith("the check failed: KeyError 'partitions' (")
    assert findings["dead_replicas"]["severity"] == "blocks"
    assert findings["reassignments"]["severity"] == "blocks" and len(findings) > 2
