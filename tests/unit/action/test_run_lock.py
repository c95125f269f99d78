# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The run lock is written as migration_state decided, and closed however the run went."""

from __future__ import annotations

import os

import pytest
from ansible_collections.quorumshift.kafka.plugins.plugin_utils import process_identity

DECIDED = {"number": 4, "hosts": ["b1", "c1"], "direction": "forward", "target": None, "excluded": []}


@pytest.fixture
def locked(harness):
    harness.session["run_lock"] = DECIDED
    return harness


def test_the_arbiter_alone_compares_the_lock_that_was_read(locked):
    earlier = {"number": 3, "run": "r0"}
    for host in DECIDED["hosts"]:
        locked.facts(host, quorumshift_node={"run_locks": {"cluster-1": earlier}})
        locked.run("run_lock", {"state": "taken"}, {"done": True}, host=host)
    arbiter, other = locked.asked
    assert arbiter["seen"] == earlier and "seen" not in other
    assert (arbiter["run_lock"]["number"], arbiter["run_lock"]["run"]) == (4, locked.session["run"])
    assert arbiter["run_lock"]["closed"] is False and arbiter["run_lock"]["process"]


@pytest.mark.parametrize("host", DECIDED["hosts"])
def test_the_outcome_is_the_journals_on_every_host(locked, host):
    locked.artifacts.note("event", "failed", host="b2", task="Restart the broker", reason="no disk")
    assert "failed" not in locked.run("run_lock", {"state": "closed"}, {"done": True}, delegate_to=host)
    assert locked.asked[0]["how"] == "Restart the broker" and locked.events("ended") == []


def test_a_step_without_an_end_is_the_outcome(locked):
    locked.artifacts.note("event", "step begun", step="Restart the brokers", hosts=["b1", "b2"])
    locked.run("run_lock", {"state": "closed"}, {"done": True}, host="b1")
    assert locked.asked[0]["how"] == "Restart the brokers"


def test_a_run_whose_journal_is_gone_has_not_ended_well(locked):
    os.unlink(locked.artifacts.journal)
    locked.run("run_lock", {"state": "closed"}, {"done": True}, host="b1")
    assert locked.asked[0]["how"] == "the journal" and locked.events("ended") == []


def test_a_run_that_ended_well_says_so_once(locked):
    for host in DECIDED["hosts"]:
        assert "failed" not in locked.run("run_lock", {"state": "closed"}, {"done": True}, host=host)
    assert [asked["how"] for asked in locked.asked] == ["ok", "ok"]
    assert len(locked.events("ended")) == 1  # of the arbiter: the hosts close their locks at once


def test_a_lock_is_closed_also_where_a_part_of_a_run_is_rejected(locked):
    locked.cliargs({"subset": "b1"})
    locked.run("run_lock", {"state": "closed"}, {"done": True})
    assert locked.asked[0]["state"] == "closed"


@pytest.mark.parametrize(
    ("playbook", "typed", "given"),
    [
        ("restart", {}, {}),  # not restart_since: a host's clock may be ahead of this one
        ("restart", {"restart_since": 5, "restart_roles": "broker"}, {"restart_since": "5", "restart_roles": "broker"}),
        ("upgrade", {"upgrade_to": "3.9.2", "quorumshift_verify": False}, {"upgrade_to": "3.9.2"}),
    ],
)
def test_the_lock_keeps_what_repeats_the_run(locked, monkeypatch, playbook, typed, given):
    monkeypatch.setattr(process_identity, "find_typed", lambda: typed)
    locked.cliargs({"args": (f"playbooks/{playbook}.yml",)})
    locked.run("run_lock", {"state": "taken"}, {"done": True}, host="b1")
    lock = locked.asked[0]["run_lock"]
    assert (lock["playbook"], lock["given"]) == (playbook, given)
