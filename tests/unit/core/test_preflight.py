# Copyright: (c) 2026, Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The checks of the preflight as a whole. Each hazard by itself, found in facts of a real cluster with that one thing
wrong: test_preflight_*.py."""

from __future__ import annotations

import pathlib

import pytest
from ansible_collections.quorumshift.kafka.plugins.module_utils.core import preflight

from tests.unit.core import recorded
from tests.unit.core.preflight_facts import OVER_TLS, collected, dialling, node


@pytest.mark.parametrize("name", ["zk", "controllers_ready", "reverted"])
def test_nothing_is_found_in_a_healthy_cluster(name):
    facts = collected(name)
    facts.cluster["topics"] = recorded.facts("zk")["topics"]
    facts.cluster["zookeeper"]["cluster_id"] = collected().cluster["zookeeper"]["cluster_id"]
    for one in facts.cluster["nodes"].values():
        for directory in one["log_dirs"]:
            if directory["meta"]:
                directory["meta"]["cluster.id"] = facts.zookeeper["cluster_id"]["value"]
    assert preflight.run(facts) == []


def test_every_finding_carries_its_check():
    facts = collected("zk_no_zookeeper")
    for one in preflight.run(facts):
        assert set(one) == {"id", "title", "severity", "source", "seen", "do", "waived"}
        assert one["severity"] in ("blocks", "warns")
    assert len({check.id for check in preflight.CHECKS}) == len(preflight.CHECKS)


def test_no_command_begins_what_is_to_be_done():
    """Shown as a sentence, it begins with a capital."""
    facts = dialling("User:controller", **OVER_TLS)._replace(rights={"cluster": [], "topics": {}})
    node(facts, "b1")["service"]["unit_file_state"] = "disabled"
    facts.metadata["acls"] = []
    messages = [one["do"].split()[0] for one in preflight.run(facts)]
    assert messages and not [token for token in messages if token.startswith(("kafka-", "systemctl", "zookeeper-"))]


def test_every_check_is_provoked_here():
    files = pathlib.Path(__file__).parent.glob("test_preflight*.py")
    text = "".join(path.read_text(encoding="utf-8") for path in files)
    for check in preflight.CHECKS:
        assert f'the_one(facts, "{check.id}")' in text or f'found(facts, "{check.id}")' in text, check.id


def test_after_the_copy_only_what_concerns_hosts_is_checked():
    facts = collected("zk_no_zookeeper", metadata=None)
    assert preflight.run(facts, before_copy=False) == []


def test_a_warning_is_waived_and_what_blocks_is_not():
    facts = collected()
    node(facts, "c1")["service"]["unit_file_state"] = "disabled"
    facts.zookeeper["controller_epoch"] = {"exists": False, "malformed": None, "value": None}
    waived = {"enabled": "started by hand", "controller_epoch": "never mind"}
    reported = {one["id"]: (one["severity"], one["waived"]) for one in preflight.run(facts, waived=waived)}
    assert reported == {"enabled": ("warns", "started by hand"), "controller_epoch": ("blocks", None)}


def test_a_waiver_names_a_check_and_a_reason():
    assert preflight.unfit({"enabled": "started by hand"}) == []
    assert preflight.unfit({"enabled": " ", "enable": "why"}) == ["enable is not a check", "enabled has no reason"]


def test_a_check_that_stumbles_hides_no_other_and_closes_its_way():
    facts = collected()
    facts.metadata["topics"]["odd"] = {}
    facts.zookeeper["controller_epoch"] = {"exists": False, "malformed": None, "value": None}
    reported = {one["id"]: one for one in preflight.run(facts)}
    assert reported["dead_replicas"]["seen"].startswith("the check failed: KeyError 'partitions' (")
    assert reported["dead_replicas"]["severity"] == "blocks"
    assert reported["reassignments"]["severity"] == "blocks" and len(reported) > 2
