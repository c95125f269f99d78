# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What every action does: rejects partial runs, fills in options, shows progress, journals the end of a run."""

from __future__ import annotations

import errno
import os
from types import SimpleNamespace

import pytest
from ansible.errors import AnsibleConnectionFailure, AnsibleError
from ansible_collections.quorumshift.kafka.plugins.filter.from_the_first_task import hosts_of_the_first_play
from ansible_collections.quorumshift.kafka.plugins.plugin_utils import base
from ansible_collections.quorumshift.kafka.plugins.plugin_utils.run_artifacts import RunArtifacts


@pytest.mark.parametrize(
    ("cliargs", "why"),
    [
        ({"subset": "b1"}, "--limit b1 excludes hosts"),
        ({"tags": ["some"]}, "--tags or --skip-tags some exclude tasks"),
        ({"skip_tags": ["always"]}, "--tags or --skip-tags always exclude tasks"),
        ({"start_at_task": "Plan"}, "--start-at-task excludes tasks"),
        ({"step": True}, "--step excludes tasks"),
    ],
)
def test_a_part_of_a_run_is_rejected(harness, cliargs, why):
    harness.cliargs(cliargs)
    result = harness.run("digest_key", {}, {"changed": True})
    assert result["failed"] and why in result["msg"] and "Nothing was changed" in result["msg"]
    assert harness.asked == []
    with pytest.raises(AnsibleError, match=why):  # where no task runs that could refuse it
        hosts_of_the_first_play("localhost")


@pytest.mark.parametrize(
    ("version", "refused"), [("2.15.13", True), ("2.9", True), ("2.16.0rc1", False), ("2.21.5", False), ("3.0", False)]
)
def test_an_old_ansible_is_refused_by_the_first_action(harness, monkeypatch, version, refused):
    monkeypatch.setattr(base, "ansible_version", version)
    monkeypatch.setattr(base.constants.config, "get_config_value", lambda _name: False)
    result = harness.run("digest_key", {}, {"changed": True})
    assert result.get("failed", False) is refused and (harness.asked == []) is refused
    if refused:
        assert result["msg"].startswith(f"ansible-core {version} is too old: 2.16 or newer is needed. pip install")


@pytest.mark.parametrize(
    ("version", "native", "refused"),
    [("2.16.19", True, True), ("2.18.1", True, True), ("2.16.19", False, False), ("2.19.0", True, False)],
)
def test_templates_that_make_numbers_of_tokens_are_refused(harness, monkeypatch, version, native, refused):
    monkeypatch.setattr(base, "ansible_version", version)
    monkeypatch.setattr(base.constants.config, "get_config_value", lambda name: {"DEFAULT_JINJA2_NATIVE": native}[name])
    result = harness.run("digest_key", {}, {"changed": True})
    assert result.get("failed", False) is refused and (harness.asked == []) is refused
    assert ("ANSIBLE_JINJA2_NATIVE=false" in result.get("msg", "")) is refused


@pytest.mark.parametrize(
    ("cores", "oldest"), [(True, (3, 8)), ((3, 7), (3, 8)), ((3, 8), (3, 8)), ((3, 9), (3, 9)), (None, (3, 8))]
)
def test_the_oldest_python_on_hosts_is_the_later_of_two(monkeypatch, cores, oldest):
    monkeypatch.setattr(base.basic, "_PY_MIN", cores)
    assert base.oldest_host_python() == oldest


def test_a_module_that_did_not_start_says_why(harness, monkeypatch):
    answered = {
        "failed": True,
        "module_stdout": "",
        "module_stderr": "SyntaxError: x",
        "_ansible_parsed": False,
        "rc": 1,
    }
    monkeypatch.setattr(base.ActionBase, "_execute_module", lambda self, **_args: dict(answered))
    monkeypatch.setattr(base.ActionBase, "_low_level_execute_command", lambda self, _command: {"stdout": "Python 3 6"})
    action = object.__new__(base.QuorumshiftAction)
    action.vars, action.host = {}, "b1"
    action._task = SimpleNamespace(resolved_action="quorumshift.kafka.node_facts", action="node_facts")
    result = action.module({})
    assert result["msg"].startswith("b1: Python 3.6 is too old: /usr/bin/python3. ") and "module_stderr" not in result


def test_other_tags_to_skip_exclude_no_task(harness):
    harness.cliargs({"tags": ["all"], "skip_tags": ["molecule-notest"]})
    assert "failed" not in harness.run("digest_key", {}, {})
    assert hosts_of_the_first_play("localhost") == "localhost"


def test_a_run_that_failed_does_nothing_more(harness):
    harness.artifacts.note("event", "failed", host="b1", reason="disk full.", task="Restart the broker")
    harness.artifacts.note("restart", "kraft", host="b2", outcome="done")  # of another host of the same step
    result = harness.run("digest_key", {}, {})
    assert result["msg"] == 'The run ended at "Restart the broker" on b1: disk full. Nothing more was done (QS-RUN-012)'
    assert harness.asked == [] and len(harness.events("failed")) == 1


def test_every_failure_is_journaled_with_its_host(harness):
    harness.run("digest_key", {}, {"failed": True, "msg": "no space"}, host="b1")
    (event,) = harness.events("failed")
    assert (event["host"], event["reason"], event["task"]) == ("b1", "no space (QS-HOST-001)", "task digest_key")


def test_a_journal_that_cannot_be_written_hides_no_reason(harness, monkeypatch):
    monkeypatch.setattr(RunArtifacts, "note", full_disk)
    result = harness.run("digest_key", {}, {"failed": True, "msg": "no space (QS-VERIFY-002)"}, host="b1")
    assert result["msg"] == "no space (QS-VERIFY-002)"


def full_disk(*_given, **_event):
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), "journal.jsonl")


@pytest.mark.parametrize("left", ["nothing", "a later event"])
def test_a_run_whose_journal_is_gone_does_nothing_more(harness, left):
    """What failed before is not known then."""
    os.unlink(harness.artifacts.journal)
    if left != "nothing":
        harness.artifacts.note("event", "step begun", step="Stop", hosts=["localhost"])
    result = harness.run("digest_key", {}, {})
    assert "journal.jsonl has no begin of this run" in result["msg"] and harness.asked == []


def test_a_failure_that_the_task_ignores_ends_no_run(harness):
    harness.ignore_errors = True
    assert harness.run("digest_key", {}, {"failed": True, "msg": "no space"})["failed"]
    assert harness.events("failed") == []


def test_a_step_that_did_not_end_ends_the_run(harness):
    """Ansible starts the next play after a host became unreachable in a module that journals nothing."""
    harness.artifacts.note("event", "step begun", step="Back up ZooKeeper", hosts=["localhost"])
    play = {"step_name": "Restart the brokers", "ansible_play_batch": ["b1"]}
    result = harness.run("service_stop", {"state": "masked"}, {}, host="b1", variables=play)
    assert result["failed"] and 'The run ended at "Back up ZooKeeper" on localhost' in result["msg"]
    assert harness.asked == [] and harness.events("failed") == []  # the step without an end is the run's failure


def test_a_tasks_own_step_goes_on(harness):
    harness.artifacts.note("event", "step begun", step="Stop", hosts=["b1", "b2"])
    play = {"step_name": "Stop", "ansible_play_batch": ["b1"]}
    result = harness.run("service_stop", {"state": "masked"}, {"changed": False, "stopped": False}, variables=play)
    assert "failed" not in result


def test_a_change_needs_the_run_lock(harness):
    del harness.session["run_lock"]
    result = harness.run("service_stop", {"state": "masked"}, {}, host="b1")
    assert result["failed"] and "does not hold the run lock" in result["msg"] and harness.asked == []


@pytest.mark.parametrize("ignored", [False, True])
def test_an_unreachable_host_is_a_failure_unless_it_is_asked_for(harness, monkeypatch, ignored):
    """A failure reaches the step's rescue; after an unreachable host Ansible starts the next play."""
    harness.ignore_unreachable = ignored

    def lost(_args):
        raise AnsibleConnectionFailure("Connection timed out")

    monkeypatch.setattr(harness, "_module", lost)
    if ignored:
        with pytest.raises(AnsibleConnectionFailure):
            harness.run("digest_key", {}, {}, host="b1")
        assert harness.events("failed") == []
    else:
        result = harness.run("digest_key", {}, {}, host="b1")
        assert result["msg"] == "b1 is unreachable: Connection timed out (QS-RUN-004)"
        assert [event["host"] for event in harness.events("failed")] == ["b1"]


@pytest.mark.parametrize("never_fails", [False, True])
def test_a_failure_that_the_task_does_not_have_is_shown(harness, monkeypatch, never_fails):
    """Ansible prints ok for it."""
    harness.failed_when = [False] if never_fails else []
    monkeypatch.setattr(harness, "_module", lambda _args: {"failed": True, "msg": "b1: no space left"})
    harness.run("digest_key", {}, {}, host="b1")
    shown = [text for text in harness.printed if "failed on b1: " in text and "no space left" in text]
    assert len(shown) == never_fails


def test_a_fault_of_the_action_itself_ends_the_run(harness, monkeypatch):
    monkeypatch.setattr(harness, "_module", lambda _args: 1 // 0)
    with pytest.raises(ZeroDivisionError):
        harness.run("digest_key", {}, {}, host="b1")
    assert harness.events("failed")[0]["host"] == "b1"


def test_an_error_of_ansible_itself_is_a_failure_of_its_host_alone(harness, monkeypatch):
    """Before ansible-core 2.19 one that is raised ends the loop of the task, and no failed_when is asked: a host that
    takes no password of sudo any more would keep the run lock open on those after it."""

    def denied(_args):
        raise AnsibleError("Incorrect sudo password")

    monkeypatch.setattr(harness, "_module", denied)
    result = harness.run("digest_key", {}, {}, host="b1")
    assert result["failed"] and result["msg"] == "b1: Incorrect sudo password (QS-HOST-001)"
    assert harness.events("failed")[0]["host"] == "b1"


def test_check_mode_ends_no_run(harness):
    harness.check_mode = True
    harness.run("digest_key", {}, {"failed": True, "msg": "no space"})
    assert harness.events() == []


def test_run_cluster_and_key_are_filled_in(harness):
    harness.run("digest_key", {"key": "k"}, {})
    (asked,) = harness.asked
    assert (asked["run"], asked["cluster_id"], asked["run_key"], asked["key"]) == (
        harness.session["run"],
        harness.session["cluster_id"],
        "ab" * 32,
        "k",
    )


@pytest.mark.parametrize(("host", "service"), [("b1", "kafka"), ("c1", "kafka-controller")])
def test_a_nodes_options_follow_its_role(harness, host, service):
    harness.run("service_stop", {"state": "masked"}, {"changed": False, "stopped": False}, host=host)
    assert harness.asked[0]["service"] == service


def test_a_task_wins_over_variables(harness):
    harness.run("service_stop", {"state": "masked", "service": "own"}, {"changed": False, "stopped": False}, host="b1")
    assert harness.asked[0]["service"] == "own"


def test_a_delegated_task_gets_the_variables_of_its_host(harness):
    harness.hostvars["c1"]["quorumshift_controller_service"] = "kraft"
    harness.run("service_stop", {"state": "masked"}, {"changed": False, "stopped": False}, delegate_to="c1")
    assert harness.asked[0]["service"] == "kraft"


def test_bootstrap_servers_are_required(harness):
    harness.variables["quorumshift_bootstrap_servers"] = []
    with pytest.raises(Exception, match="quorumshift_bootstrap_servers is not set"):
        harness.run("broker_unregister", {}, {})


def test_a_wait_shows_what_is_new(harness):
    waits = [{"done": False, "progress": f"b1 is down ({at} s)", "carry": {"began": 1}} for at in (3, 6)]
    waits.append({"done": False, "progress": "b2 is down (9 s)", "carry": {"began": 1}})
    harness.run("digest_key", {}, *waits, {"done": True})
    assert harness.printed == ["    b1 is down (3 s)", "    b2 is down (9 s)"]
    assert [call.get("carry") for call in harness.asked] == [None, {"began": 1}, {"began": 1}, {"began": 1}]


def test_hosts_that_are_excluded_are_no_nodes(harness):
    harness.variables["quorumshift_exclude_hosts"] = "b2,elsewhere"
    harness.facts("b1", quorumshift_node={"node_id": 1})
    harness.run("broker_unregister", {}, {"unregistered": []})
    asked = harness.asked[0]
    assert set(asked["nodes"]) == {"b1", "c1"} and asked["excluded"]["elsewhere"] == {"role": None}
    assert asked["excluded"]["b2"]["role"] == "broker"


@pytest.mark.parametrize(
    ("given", "known"), [("101", 101), (101, 101), ("0", 0), ("-1", -1), ("x1", "x1"), (None, None)]
)
def test_a_node_id_in_quotes_is_a_number(given, known):
    """As text it would equal no broker's id, and the check for equal ids would pass."""
    assert base.number(given) == known


@pytest.mark.parametrize(("state", "says"), [("read", True), ("healed", False)])
def test_a_destination_host_that_does_not_answer_may_be_named_dead(harness, monkeypatch, state, says):
    def lost(_args):
        raise AnsibleConnectionFailure("Connection timed out")

    monkeypatch.setattr(harness, "_module", lost)
    harness.variables["zk_migrate_dead_hosts"] = "b2"
    result = harness.run("zk_cut", {"state": state}, {}, host="b1")
    assert result["msg"].startswith("b1 is unreachable: Connection timed out")
    assert ("-e zk_migrate_dead_hosts=b2,b1" in result["msg"]) is says


def test_facts_of_another_process_count_for_nothing(harness):
    node = {"node_id": 1}
    harness.run("node_facts", {}, {"ansible_facts": {"quorumshift_node": node}}, host="b1")
    result = harness.run("node_facts", {}, {"ansible_facts": {"quorumshift_node": dict(node)}}, host="b1")
    harness.hostvars["b1"]["ansible_facts"] = result["ansible_facts"]
    harness.hostvars["b2"]["ansible_facts"] = {"quorumshift_node": node, f"quorumshift_node{base.SET_BY}": "earlier"}
    harness.run("digest_key", {}, {})
    action = harness.action
    assert {host: action.facts_of(host) for host in ("b1", "b2")} == {
        "b1": {"quorumshift_node": result["ansible_facts"]["quorumshift_node"]},
        "b2": {},
    }


def test_a_session_of_a_fact_cache_is_no_session(harness):
    harness.hostvars["localhost"]["ansible_facts"] = {"quorumshift_session": harness.session}
    harness.session = {}
    harness.run("digest_key", {}, {})
    assert harness.action.session == {}


@pytest.mark.parametrize(("cached", "kept"), [(True, {}), (False, None)])
def test_the_check_of_the_inventory_replaces_the_session_of_a_fact_cache(harness, cached, kept):
    """Roles and playbooks read it as a fact. zk_migrate has steps before its run begins, which would ask for the run
    lock of an earlier run."""
    if cached:
        harness.hostvars["localhost"]["ansible_facts"] = {"quorumshift_session": harness.session}
        harness.session = {}
    result = harness.run("inventory_check", {})
    assert "failed" not in result, result
    assert (result.get("ansible_facts") or {}).get("quorumshift_session") == kept
