# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The status screen of recorded clusters: its lines, the command to type next, the artifacts, and when it fails."""

from __future__ import annotations

import json
import shlex
from pathlib import Path

import jsonschema
import pytest
from ansible.parsing.splitter import parse_kv
from ansible_collections.quorumshift.kafka.plugins.module_utils.core.migration import phase
from ansible_collections.quorumshift.kafka.plugins.plugin_utils import process_identity
from ansible_collections.quorumshift.kafka.plugins.plugin_utils.run_artifacts import RunArtifacts

from tests.unit.action.states import state, with_backups
from tests.unit.core import recorded

SCHEMA = Path(__file__).resolve().parents[3] / "plugins" / "plugin_utils" / "status.schema.json"


@pytest.mark.parametrize(
    "name", [name for name in recorded.NAMES if name.split("_")[-1] not in ("hosts", "preflight", "copy")]
)
def test_the_status_as_json_has_its_schema(fresh, name):
    fresh.run("status", {"record": False}, state(name))
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
    result = fresh.run("status", {}, state("dual_write", blocks=block))
    assert result["failed"] and "c1 is down" in result["msg"]
    assert "failed" not in fresh.run("status", {}, state("dual_write", blocks=[]))


def test_the_status_names_what_hosts_lack(fresh):
    given = state("dual_write")
    given["facts"]["nodes"]["b1"]["file"]["exists"] = False
    given["facts"]["nodes"]["b2"]["log_dirs"][0]["exists"] = False
    given["facts"]["nodes"]["c1"]["service"] = {"name": "kafka-ctrl", "exists": False}
    path = given["facts"]["nodes"]["b2"]["log_dirs"][0]["path"]
    fresh.run("status", {}, given)
    lines = "\n".join(line for line in fresh.printed if line.startswith("  ! "))
    assert "b1 has no file" in lines and "Set quorumshift_broker_config_file" in lines
    assert f"b2: log directory {path} does not exist" in lines
    assert "c1 has no service kafka-ctrl. Set quorumshift_controller_service" in lines


@pytest.mark.parametrize("direction", ["", "forward"])
def test_a_run_that_holds_the_lock_ends_where_the_lock_is_closed(fresh, direction):
    """A worker outlives its control process, so it may show the status of a run that was killed."""
    begun = fresh.run("run", {"state": "begun", "direction": direction}, state("hybrid"))
    fresh.session = begun["ansible_facts"]["quorumshift_session"]
    fresh.run("status", {}, state("dual_write"))
    run = RunArtifacts(fresh.variables["quorumshift_artifacts_dir"], begun["cluster_id"], fresh.session["run"])
    ended = [event["result"] for event in run.events() if event["name"] == "ended"]
    assert ended == ([] if direction else ["ok"])


def test_the_status_of_a_finalized_cluster_reminds_of_backups(fresh):
    host, given = with_backups("finalized")
    fresh.run("status", {}, given)
    (line,) = [line for line in fresh.printed if "backup" in line]
    assert line.startswith(f"  ! {host} has 1 backup of ZooKeeper with credentials in /var/lib/quorumshift/x/backup")
    assert "2 h 0 min old" in line and "-e quorumshift_remove_backups=true" in line


def test_the_status_names_nodes_whose_next_start_loses_credentials(fresh):
    given = state("dual_write")
    for node in given["facts"]["nodes"].values():
        node["metadata_log"] = {"scram_losses": {"restart": {"SCRAM-SHA-512": ["bob"]}}}
    fresh.run("status", {}, given)
    (line,) = [line for line in fresh.printed if "SCRAM" in line]
    assert line.startswith("  ! ") and "would lose all SCRAM-SHA-512 credentials at the next start" in line


def test_the_status_before_does_not_remind_of_backups(fresh):
    fresh.run("status", {}, with_backups("dual_write")[1])
    assert not any("backup" in line for line in fresh.printed)


@pytest.mark.parametrize(("node_id", "key"), [(None, "broker-*"), (2, "broker-2")])
def test_an_excluded_hosts_advice_names_its_own_files(fresh, node_id, key):
    """The shell finds the directory of a node whose id could not be read."""
    fresh.variables.update(quorumshift_exclude_hosts="b2,c1,elsewhere", quorumshift_rollback_to="zk")
    fresh.variables["quorumshift_controller_log_dir"] = "/var/lib/kafka/metadata"
    fresh.hostvars["b2"] = {
        "quorumshift_state_dir": "/srv/state",
        "quorumshift_broker_config_file": "/srv/b.properties",
    }
    if node_id is not None:
        fresh.facts("b2", quorumshift_node={"node_id": node_id})
    fresh.run("status", {}, state("dual_write", cluster_id="x"))
    assert [line for line in fresh.printed if "was excluded" in line] == [
        "  ! b2 was excluded: before it starts, replace /srv/b.properties by "
        f"/srv/state/x/{key}/configs/b.properties.before-zk_migration, if that file exists.",
        "  ! c1 was excluded: before it starts, empty /var/lib/kafka/metadata and remove "
        "/etc/kafka/controller.properties: it has the old quorum's log.",
    ]


def test_the_command_repeats_what_was_typed(fresh):
    fresh.cliargs(
        {"args": ("quorumshift.kafka.migrate",), "inventory": ("inv.yml",), "extra_vars": ("@site.yml", "a=b")}
    )
    fresh.run("status", {}, state("dual_write"))
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
    fresh.run("status", {}, found)
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
        "quorumshift_broker_config": '{"my.plugin.setting": "hunter2"}',
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
    fresh.run("status", {}, state("dual_write"))
    assert any("launch the job template of the playbook migrate" in line for line in fresh.printed)
