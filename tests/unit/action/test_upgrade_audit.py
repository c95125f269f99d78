# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What an audit shows, keeps and says where it ends a run; a host that could not be read is a reason of it."""

from __future__ import annotations

import json

import pytest

from tests.unit.action.harness import GROUPS

FINDING = {
    **{"id": "QS-AUDIT-003", "title": "Values in properties files", "severity": "blocks", "source": "x", "since": ""},
    **{"seen": "log.segment.bytes of b1 is 1", "do": "correct it", "waived": None},
}
UNKNOWN = {**FINDING, "id": "QS-AUDIT-010", "title": "Clients that are not known", "seen": "not known"}
CLIENTS = {"old": [], "connected": [], "addresses": {"10.0.0.9": 1}}
RESULT = {"findings": [FINDING, UNKNOWN], "checks": ["QS-AUDIT-003"], "targets": ["4.1.1"], "clients": CLIENTS}


@pytest.fixture
def read(harness):
    """A run that has read each host."""
    for host in (host for hosts in GROUPS.values() for host in hosts):
        harness.hostvars[host]["upgrade_facts"] = {"facts": {"process": None}}
    return harness


def test_findings_are_shown_and_kept_and_end_the_run(read):
    failed = {**RESULT, "failed": True, "msg": "Blocking findings of the audit: 2. (QS-AUDIT-001)"}
    result = read.run("upgrade_audit", {"to": "4.1.1"}, failed)
    assert result["failed"] and "Those of QS-AUDIT-010 can be accepted in upgrade_accept" in result["msg"]
    assert "QS-AUDIT-003" in result["msg"] and "findings" not in result
    assert json.loads(read.artifacts.read("upgrade_audit.json"))["findings"] == [FINDING, UNKNOWN]
    text = " ".join(read.printed)
    assert "log.segment.bytes of b1 is 1" in text and "10.0.0.9" not in text, "clients in the playbook alone"


def test_accepted_findings_do_not_end_it(read):
    waived = {**RESULT, "findings": [{**UNKNOWN, "waived": "asked"}]}
    result = read.run("upgrade_audit", {"to": "4.1.1", "show": True}, waived)
    assert not result.get("failed")
    text = " ".join(read.printed)
    assert "waived: asked" in text and "10.0.0.9: 1" in text


def test_a_host_that_was_not_read_is_a_reason_of_the_audit_alone(harness):
    del harness.session["run_lock"]
    harness.run("upgrade_audit", {"to": "4.1.1"}, RESULT)
    facts = harness.asked[-1]["facts"]
    assert set(facts) and all(read == {"why": "the host was not read"} for read in facts.values())


@pytest.mark.parametrize("registered", [{"unread": "no route"}, {"unreachable": True, "msg": "no route"}])
def test_a_host_that_was_not_read_ends_a_run_that_changes_something(read, registered):
    """A failed module and a lost host alike, at one place: the other hosts end the step in order."""
    read.hostvars["b1"]["upgrade_facts"] = registered
    result = read.run("upgrade_audit", {"to": "4.1.1"}, RESULT)
    assert result["failed"] and result["msg"] == "Not read: b1: no route. Nothing was changed. (QS-AUDIT-001)"
    assert read.asked == [], "no audit"
    assert [event["host"] for event in read.events("failed")][:1] == ["b1"]


def test_a_module_that_fails_on_a_host_is_for_the_audit_to_say(harness):
    result = harness.run("upgrade_read", {}, {"failed": True, "msg": "no python"}, host="b1")
    assert not result.get("failed") and result["unread"] == "no python"
    result = harness.run("upgrade_read", {}, {"failed": True, "exception": "Traceback\nOSError: x"}, host="b1")
    assert result["unread"] == "OSError: x"
