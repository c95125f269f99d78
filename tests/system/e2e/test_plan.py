# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""playbooks/plan.yml prints what the next run does, and changes nothing."""

from __future__ import annotations

import re

import pytest
from ansible_collections.quorumshift.kafka.plugins.module_utils.formats.zookeeper import znodes

from tests.system.e2e.rollbacks import back, changed, phase

FAST = {"quorumshift_verify": False, "quorumshift_soak": "0s"}


@pytest.fixture(scope="module")
def fast(tmp_path_factory):
    """Variables of all runs: an empty artifacts directory, so that no earlier run gives estimates."""
    return {**FAST, "quorumshift_artifacts_dir": str(tmp_path_factory.mktemp("artifacts"))}


def stable_state(testbed):
    """Return what a plan must not change. In dual-write the controllers change /migration with every write."""
    return {path: state for path, state in testbed.fingerprint(locked=True).items() if path != znodes.MIGRATION}


def planned(testbed, fast, target="", **extra):
    """Return the printed plan as {rolling restart: hosts in order}, and its text; assert that nothing changed."""
    before = stable_state(testbed)
    ran = testbed.play("plan", extra={**fast, "quorumshift_rollback_to": target, **extra})
    assert ran.code == 0 and changed(ran, testbed) == [], ran.text
    assert stable_state(testbed) == before
    rolls = re.findall(r"^ +\d+  (restart .*?): (.*)$", ran.text, re.MULTILINE)
    return {name: re.findall(r"(?:^|then )(\w+)", hosts) for name, hosts in rolls}, ran.text


def restarted(ran):
    """Return the hosts in the order in which a run stopped them."""
    return re.findall(r"^    (\w+) stops$", ran.text, re.MULTILINE)


def test_a_migration_follows_its_plan(fresh, fast):
    rolls, text = planned(fresh, fast, quorumshift_canary="b2")
    brokers = rolls["restart brokers in migration mode"]
    assert brokers[0] == "b2" and sorted(brokers) == sorted(fresh.brokers), text
    assert "  3  bring up the controllers: c1, c2, c3 together" in text, text
    assert "rollback: possible up to step 11; impossible once a controller runs" in text, text
    assert "+ node.id=(its own)" in text and "password.encoder.secret=(secret)" in text, text
    ran = fresh.play(extra={**fast, "quorumshift_canary": "b2"})
    assert ran.code == 0 and phase(ran) == "dual_write", ran.text
    assert restarted(ran)[: len(brokers)] == brokers, ran.text
    assert restarted(ran)[len(brokers) :] == rolls["restart brokers in KRaft mode"], ran.text
    assert "    plan: 13 steps ahead; 10 restarts; their time is unknown until the first one on this" in ran.text
    for name in ("bring up the controllers", "restart brokers in migration mode", "restart brokers in KRaft mode"):
        assert re.search(rf"^  {name}: no estimate, took .* s$", ran.text, re.MULTILINE), ran.text
    assert "differs from the plan" not in ran.text, ran.text


def test_a_rollback_follows_its_plan(fresh, fast):
    rolls, text = planned(fresh, fast, "zk")
    assert re.search(r"time: .* s for 6 restarts, at \d+ s each as in this cluster's journals", text), text
    checked = fresh.play("rollback", "--check", extra={**fast, "quorumshift_rollback_to": "zk"})
    assert checked.code == 0 and "Plan for cluster" in checked.text, checked.text
    ran = back(fresh, "zk", **fast)
    assert ran.code == 0 and phase(ran) == "zk", ran.text
    assert restarted(ran)[:3] == rolls["restart brokers back in migration mode"], (rolls, ran.text)
    for name in ("restart brokers back in migration mode", "restart brokers in plain ZooKeeper mode"):
        assert re.search(rf"^  {name}: planned .* s, took .* s$", ran.text, re.MULTILINE), ran.text
    last = rolls["restart brokers in plain ZooKeeper mode"]
    # The plan cannot know which broker becomes controller: that one is restarted last, and the run reports it
    pattern = r"differs from the plan \((.*)\): (b\d) controller: last, so that it moves once$"
    moved = re.search(pattern, ran.text, re.MULTILINE)
    assert restarted(ran)[-3:] == last if not moved else restarted(ran)[-1] == moved[2], ran.text
