# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The phase of recorded clusters as a run sees it: steps ahead, run lock, refusals, command, artifacts."""

from __future__ import annotations

import json
import shlex
from pathlib import Path

import jsonschema
import pytest
from ansible.parsing.splitter import parse_kv
from ansible_collections.quorumshift.kafka.plugins.module_utils.core.migration import phase
from ansible_collections.quorumshift.kafka.plugins.module_utils.core.status import screen
from ansible_collections.quorumshift.kafka.plugins.plugin_utils import process_identity
from ansible_collections.quorumshift.kafka.plugins.plugin_utils.run_artifacts import RunArtifacts

from tests.unit.core import recorded

WHOLE = [name for name in recorded.NAMES if name.split("_")[-1] not in ("hosts", "preflight", "copy")]
SCHEMA = Path(__file__).resolve().parents[3] / "plugins" / "plugin_utils" / "status.schema.json"


def state(name, **more):
    """What the module returns of a recorded cluster."""
    facts = recorded.facts(name)
    detected = phase.detect(facts)
    return {
        "facts": facts,
        "phase": detected.phase,
        "cluster_id": phase.cluster_id(facts),
        "blocks": [block._asdict() for block in detected.blocks],
        "steps": detected.steps,
        "next": screen.next_step(facts, detected, 0)._asdict(),
        "rollback_readiness": {"targets": [], "obstacles": []},
        "mirrored_offset": None,
        "nodes": screen.node_lines(facts),
        "token": "id:abc123",
        "unfinished": [],
        "left_registered": [],
        "quorum": facts["quorum"],
        **more,
    }


@pytest.fixture
def fresh(harness):
    harness.session = {}
    return harness


def test_the_first_call_names_the_run_and_keeps_the_facts(fresh):
    result = fresh.run("migration_state", {"direction": "forward"}, state("zk"))
    session = result["ansible_facts"]["quorumshift_session"]
    assert session["phase"] == "zk" and session["run"] and session["run_lock"]["number"] == 1
    assert result["ahead"][0] == "backup" and result["idle"] is False
    assert (
        fresh.printed[0].startswith("    cluster ") and "phase zk; next: bring up the controllers" in fresh.printed[0]
    )


@pytest.mark.parametrize(
    "name", [name for name in recorded.NAMES if name.split("_")[-1] not in ("hosts", "preflight", "copy")]
)
def test_the_status_as_json_has_its_schema(fresh, name):
    fresh.run("migration_state", {"show": True, "record": False}, state(name))
    cluster = phase.cluster_id(recorded.facts(name)) or "unknown"
    path = Path(fresh.artifacts.directory).parents[1] / cluster / "status.json"
    status = json.loads(path.read_text(encoding="utf-8"))
    jsonschema.validate(status, json.loads(SCHEMA.read_text(encoding="utf-8")))
    assert status["phase"] == phase.detect(recorded.facts(name)).phase and any(
        str(path) in line for line in fresh.printed
    )


def test_status_fails_on_blocks_where_that_is_asked_for(fresh):
    block = [{"id": "controllers_down", "text": "c1 is down", "do": "start it"}]
    fresh.variables["quorumshift_fail_on_blocks"] = "true"  # from a survey
    result = fresh.run("migration_state", {"show": True}, state("dual_write", blocks=block))
    assert result["failed"] and "c1 is down" in result["msg"]
    assert "failed" not in fresh.run("migration_state", {"show": True}, state("dual_write", blocks=[]))


def test_the_status_names_what_hosts_lack(fresh):
    given = state("dual_write")
    given["facts"]["nodes"]["b1"]["file"]["exists"] = False
    given["facts"]["nodes"]["b2"]["log_dirs"][0]["exists"] = False
    given["facts"]["nodes"]["c1"]["service"] = {"name": "kafka-ctrl", "exists": False}
    path = given["facts"]["nodes"]["b2"]["log_dirs"][0]["path"]
    fresh.run("migration_state", {"show": True}, given)
    lines = "\n".join(line for line in fresh.printed if line.startswith("  ! "))
    assert "b1 has no file" in lines and "Set quorumshift_broker_config_file" in lines
    assert f"b2: log directory {path} does not exist" in lines
    assert "c1 has no service kafka-ctrl. Set quorumshift_controller_service" in lines


def test_the_plan_of_an_unknown_phase_fails_with_its_reasons(fresh):
    block = [{"id": "unknown", "text": "no node was reached", "do": "check SSH"}]
    asked = {"plan": "alone"}
    result = fresh.run("migration_state", asked, state("zk", phase="unknown", blocks=block, plan={}))
    assert result["failed"] and "The phase is unknown: no node was reached" in result["msg"]


def test_check_mode_locks_nothing_and_lists_what_is_due(fresh):
    fresh.check_mode = True
    result = fresh.run("migration_state", {"direction": "forward"}, state("zk"))
    assert "run_lock" not in result["ansible_facts"]["quorumshift_session"]
    assert result["ahead"] == ["backup", "before_controllers", "controller"] and fresh.events() == []


def test_a_run_without_a_direction_locks_nothing(fresh):
    assert "run_lock" not in fresh.run("migration_state", {}, state("zk"))["ansible_facts"]["quorumshift_session"]


@pytest.mark.parametrize("direction", ["", "forward"])
def test_a_run_that_holds_the_lock_ends_where_the_lock_is_closed(fresh, direction):
    """A worker outlives its control process, so it may show the status of a run that was killed."""
    begun = fresh.run("migration_state", {"direction": direction}, state("hybrid"))
    fresh.session = begun["ansible_facts"]["quorumshift_session"]
    fresh.run("migration_state", {"show": True}, state("dual_write"))
    run = RunArtifacts(fresh.variables["quorumshift_artifacts_dir"], begun["cluster_id"], fresh.session["run"])
    ended = [event["result"] for event in run.events() if event["name"] == "ended"]
    assert ended == ([] if direction else ["ok"])


def test_dual_write_without_the_token_is_idle(fresh):
    assert fresh.run("migration_state", {"direction": "forward"}, state("dual_write"))["idle"]
    fresh.variables["quorumshift_finalize_token"] = "x"
    assert not fresh.run("migration_state", {"direction": "forward"}, state("dual_write"))["idle"]


def with_backups(name):
    given = state(name)
    host = sorted(given["facts"]["nodes"])[0]
    kept = [{"path": "/var/lib/quorumshift/x/backup/zookeeper-1.jsonl.gz", "time": given["facts"]["time"] - 7200}]
    given["facts"]["nodes"][host]["backups"] = {given["cluster_id"]: kept}
    return host, given


def test_the_status_of_a_finalized_cluster_reminds_of_backups(fresh):
    host, given = with_backups("finalized")
    fresh.run("migration_state", {"show": True}, given)
    (line,) = [line for line in fresh.printed if "backup" in line]
    assert line.startswith(f"  ! {host} has 1 backup of ZooKeeper with credentials in /var/lib/quorumshift/x/backup")
    assert "2 h 0 min old" in line and "-e quorumshift_remove_backups=true" in line


def test_the_status_names_nodes_whose_next_start_loses_credentials(fresh):
    given = state("dual_write")
    for node in given["facts"]["nodes"].values():
        node["metadata_log"] = {"scram_losses": {"restart": {"SCRAM-SHA-512": ["bob"]}}}
    fresh.run("migration_state", {"show": True}, given)
    (line,) = [line for line in fresh.printed if "SCRAM" in line]
    assert line.startswith("  ! ") and "would lose all SCRAM-SHA-512 credentials at the next start" in line


def test_the_status_before_does_not_remind_of_backups(fresh):
    fresh.run("migration_state", {"show": True}, with_backups("dual_write")[1])
    assert not any("backup" in line for line in fresh.printed)


def test_backups_are_removed_only_once_finalized(fresh):
    fresh.variables["quorumshift_remove_backups"] = True
    for name in ("zk", "hybrid", "dual_write"):
        result = fresh.run("migration_state", {"direction": "forward"}, with_backups(name)[1])
        assert result["failed"] and f"the phase is {name}" in result["msg"] and "Nothing was changed" in result["msg"]
        fresh.session = {}
    host, given = with_backups("finalized")
    result = fresh.run("migration_state", {"direction": "forward"}, given)
    assert "failed" not in result and not result["idle"] and list(result["backups"]) == [host]
    assert "run_lock" in result["ansible_facts"]["quorumshift_session"]


def test_a_run_without_backups_to_remove_is_idle(fresh):
    fresh.variables["quorumshift_remove_backups"] = True
    assert fresh.run("migration_state", {"direction": "forward"}, state("finalized"))["idle"]


def test_a_phase_from_which_no_migration_goes_on_fails_a_run_forward(fresh):
    unknown = state("zk", phase="unknown", blocks=[{"id": "unknown", "text": "it contradicts", "do": "read it"}])
    result = fresh.run("migration_state", {"direction": "forward"}, unknown)
    assert result["failed"] and result["msg"] == (
        "The phase is unknown: it contradicts. Read it. Nothing was changed. (QS-PHASE-001)"
    )
    assert "failed" not in fresh.run("migration_state", {}, unknown)


def test_an_unfinished_restart_is_finished_whatever_the_phase(fresh):
    unknown = state("zk", phase="unknown", unfinished=["b1"])
    result = fresh.run("migration_state", {"direction": "forward"}, unknown)
    assert "failed" not in result and result["idle"] is False


def test_another_runs_open_lock_fails_the_run(fresh):
    given = state("zk")
    lock = {"number": 1, "run": "r9", "closed": False, "direction": "forward", "user": "op", "host": "h", "since": 1.0}
    for node in given["facts"]["nodes"].values():
        node["run_locks"] = {given["cluster_id"]: lock}
    result = fresh.run("migration_state", {"direction": "forward"}, given)
    assert result["failed"] and "r9" in result["msg"] and "quorumshift_force_unlock=r9" in result["msg"]


@pytest.mark.parametrize("name", ["zk", "hybrid", "dual_write", "finalized", "kraft_native"])
def test_a_reassignment_begins_only_outside_of_a_migration(fresh, name):
    fresh.variables["reassign_apply"] = "true"
    result = fresh.run("migration_state", {"direction": "reassign"}, state(name))
    if name in ("hybrid", "dual_write"):
        assert result["failed"] and "A reassignment needs one of" in result["msg"]
    else:
        session = result["ansible_facts"]["quorumshift_session"]
        assert session["run_lock"]["direction"] == "reassign" and not result["idle"]
    fresh.variables.update(reassign_apply=False, reassign_cancel="yes")
    assert "failed" not in fresh.run("migration_state", {"direction": "reassign"}, state(name))


def test_a_reassignment_that_only_plans_locks_nothing(fresh):
    result = fresh.run("migration_state", {"direction": "reassign"}, state("finalized"))
    assert "run_lock" not in result["ansible_facts"]["quorumshift_session"] and result["idle"]


def test_a_reassignment_does_not_begin_beside_an_unfinished_restart(fresh):
    result = fresh.run("migration_state", {"direction": "reassign"}, state("finalized", unfinished=["b1"]))
    assert result["failed"] and "b1" in result["msg"] and "quorumshift.kafka.restart" in result["msg"]


def test_a_reassignment_says_how_to_leave_out_a_dead_host(fresh):
    given = state("finalized")
    given["facts"]["nodes"]["b1"].update(reached=False, error="it is unreachable")
    result = fresh.run("migration_state", {"direction": "reassign"}, given)
    assert result["failed"] and "-e quorumshift_exclude_hosts=HOST" in result["msg"]


def test_a_rollback_needs_its_target(fresh):
    result = fresh.run("migration_state", {"direction": "back"}, state("dual_write"))
    assert result["failed"] and "quorumshift_rollback_to" in result["msg"]
    fresh.variables["quorumshift_rollback_to"] = "zk"
    result = fresh.run("migration_state", {"direction": "back"}, state("dual_write"))
    assert "failed" not in result and result["ahead"][:2] == ["before_revert", "hybrid"]
    assert result["ansible_facts"]["quorumshift_session"]["run_lock"]["target"] == "zk"


def test_an_excluded_hosts_advice_names_its_own_files(fresh):
    fresh.variables.update(quorumshift_exclude_hosts="b2,c1,elsewhere", quorumshift_rollback_to="zk")
    fresh.variables["quorumshift_controller_log_dir"] = "/var/lib/kafka/metadata"
    fresh.hostvars["b2"] = {
        "quorumshift_state_dir": "/srv/state",
        "quorumshift_broker_config_file": "/srv/b.properties",
    }
    fresh.run("migration_state", {"show": True, "direction": "back"}, state("dual_write", cluster_id="x"))
    assert [line for line in fresh.printed if "was excluded" in line] == [
        "  ! b2 was excluded: before it starts, replace /srv/b.properties by "
        "/srv/state/x/configs/b.properties.before-zk_migration, if that file exists.",
        "  ! c1 was excluded: before it starts, empty /var/lib/kafka/metadata and remove "
        "/etc/kafka/controller.properties: it has the old quorum's log.",
    ]


def test_the_command_repeats_what_was_typed(fresh):
    fresh.cliargs(
        {"args": ("quorumshift.kafka.migrate",), "inventory": ("inv.yml",), "extra_vars": ("@site.yml", "a=b")}
    )
    fresh.run("migration_state", {"show": True}, state("dual_write"))
    command = next(line.strip() for line in fresh.printed if "ansible-playbook" in line)
    assert command == (
        "ansible-playbook -i inv.yml quorumshift.kafka.migrate -e @site.yml -e quorumshift_finalize_token=id:abc123"
    )


def test_the_command_repeats_the_variables_of_an_interrupted_run(fresh):
    found = state("zk")
    given = {"upgrade_to": "3.9.2", "upgrade_home": "/opt/kafka 3.9"}
    interrupted = {"run": "r9", "number": 3, "direction": "restart", "playbook": "upgrade", "given": given}
    interrupted |= {"user": "a", "host": "h", "since": 1, "closed": True, "how": "Restart"}
    for node in found["facts"]["nodes"].values():
        node["run_locks"] = {found["cluster_id"]: interrupted}
    fresh.run("migration_state", {"show": True}, found)
    command = next(line.strip() for line in fresh.printed if "ansible-playbook" in line)
    assert shlex.split(command)[-4:] == ["-e", "upgrade_to=3.9.2", "-e", "upgrade_home='/opt/kafka 3.9'"]
    assert parse_kv(shlex.split(command)[-1]) == {"upgrade_home": "/opt/kafka 3.9"}


def test_what_was_accepted_is_no_part_of_the_command_that_repeats_a_run(monkeypatch):
    typed = {
        "upgrade_to": "3.9.2",
        "restart_roles": ["broker", "controller"],
        "restart_concurrency": 2,
        "quorumshift_accept_unverified_copy": True,
        "quorumshift_verify": False,
        "quorumshift_client": {"sasl_password": "hunter2"},
        "upgrade_home": "password=hunter2",
        "other": 1,
    }
    monkeypatch.setattr(process_identity, "find_typed", lambda: typed)
    repeated = {"upgrade_to": "3.9.2", "restart_roles": "broker,controller", "restart_concurrency": "2"}
    assert process_identity.find_given() == repeated


@pytest.mark.parametrize(
    "said",
    [
        {"upgrade_to": "{{ lookup('pipe', 'id') }}"},
        {"upgrade_to": "{% if true %}3.9.2{% endif %}"},
        {"ansible_ssh_common_args": "-o ProxyCommand=id"},
        {"quorumshift_accept_unverified_copy": "true"},
        {"upgrade_to": ["3.9.2"]},
        {"upgrade_to": None},
        ["upgrade_to"],
        "upgrade_to=3.9.2",
        None,
    ],
)
def test_a_host_adds_nothing_to_the_command_that_a_run_would_not_have_written(said):
    assert process_identity.select_repeatable(said) == {}


def test_awx_names_the_job_template(fresh, monkeypatch):
    monkeypatch.setenv("JOB_ID", "7")
    fresh.run("migration_state", {"show": True}, state("dual_write"))
    assert any("launch the job template of the playbook migrate" in line for line in fresh.printed)


PLAN = {"steps": [], "unavoidable": {}}


def test_a_run_goes_on_without_a_plan(fresh):
    result = fresh.run("migration_state", {"direction": "forward", "plan": "run"}, state("zk", plan_error="no answer"))
    assert "failed" not in result and "    no plan: no answer" in fresh.printed
    assert fresh.asked[0]["plan_to"] == ""


def test_a_playbook_that_only_plans_fails_without_a_plan(fresh):
    result = fresh.run("migration_state", {"plan": "alone"}, state("zk", plan_error="no answer"))
    assert result["failed"] and result["msg"] == "no answer. Nothing was changed. (QS-HOST-001)"


def test_a_plan_is_printed_and_kept(fresh):
    result = fresh.run("migration_state", {"plan": "alone"}, state("zk", plan=PLAN))
    assert result["plan"] == PLAN and any(line.startswith("Plan for cluster") for line in fresh.printed)
    fresh.printed.clear()
    assert "plan" not in fresh.run("migration_state", {}, state("zk"))


def test_views_are_those_of_the_gate_that_is_asked_for(fresh):
    result = fresh.run("migration_state", {"gate": "before_kraft"}, state("hybrid"))
    assert result["gate"] == "before_kraft" and "metadata_log" in result["views"] and not result["compares_records"]
    assert fresh.run("migration_state", {}, state("zk"))["gate"] == "before_controllers"


@pytest.mark.parametrize("direction", ["forward", "back", "restore", "reassign"])
def test_a_run_with_another_clusters_zookeeper_is_refused_in_every_direction(fresh, direction):
    """Also in the phase of a rollback that goes on, whose controllers are masked."""
    given = state("reverting_controllers_down")
    given["facts"]["zookeeper"]["cluster_id"]["value"] = given["cluster_id"] = "another"
    fresh.variables["quorumshift_rollback_to"] = "zk"
    result = fresh.run("migration_state", {"direction": direction}, given)
    assert result["failed"] and "the cluster ids differ: another in /cluster/id in ZooKeeper at" in result["msg"]


def test_the_first_cluster_id_of_a_run_counts_to_its_end(fresh):
    first = state("hybrid")
    session = fresh.run("migration_state", {}, first)["ansible_facts"]["quorumshift_session"]
    fresh.session = session
    other = state("hybrid")
    other["facts"]["nodes"], other["cluster_id"] = {}, "another"
    other["facts"]["zookeeper"]["cluster_id"]["value"] = "another"
    result = fresh.run("migration_state", {"direction": "back"}, other)
    assert result["failed"] and f"this run is of {first['cluster_id']}" in result["msg"]


def test_a_text_that_is_no_cluster_id_ends_the_run_before_a_path_is_made_of_it(fresh):
    given = state("zk")
    given["cluster_id"] = "../../etc"
    given["facts"]["zookeeper"]["cluster_id"]["value"] = "../../etc"
    result = fresh.run("migration_state", {}, given)
    assert result["failed"] and "'../../etc', which is no cluster id of Kafka" in result["msg"]
