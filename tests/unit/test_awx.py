# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""docs/awx: its playbook, played with modules that have the options of awx.awx, and what its objects name.

No AWX runs here. The modules check their arguments as those of awx.awx do, and keep them. So a value of another type,
an option that does not exist and a template that cannot be rendered fail.
"""

from __future__ import annotations

import json
import os
import re
import sys

import pytest
import yaml
from ansible_collections.quorumshift.kafka.plugins.module_utils.host import pause_file
from ansible_collections.quorumshift.kafka.plugins.plugin_utils import variable_specs

from tests import playbook
from tools import awx_arguments
from tools.checkout import ROOT

AWX = ROOT / "docs" / "awx"
PROJECT = AWX / "project"
DOCUMENTED = json.loads(awx_arguments.WRITTEN.read_text())["modules"]
MODULE = """#!/usr/bin/python
import json
from ansible.module_utils.basic import AnsibleModule

module = AnsibleModule(json.loads({spec!r}))
with open({kept!r}, "a") as stream:
    stream.write(json.dumps({{"module": {name!r}, "given": module.params}}) + "\\n")
module.exit_json(changed=True)
"""
ENDS = {"success_nodes", "failure_nodes", "always_nodes"}
APPROVAL = "workflow_approval"


class Loader(yaml.SafeLoader):
    """Reads Ansible's !unsafe as the text that it is."""


Loader.add_constructor("!unsafe", lambda loader, node: loader.construct_scalar(node))


def collection(directory, kept):
    """Write modules with the documented options of awx.awx into a directory of collections."""
    root = directory / "ansible_collections" / "awx" / "awx"
    (root / "plugins" / "modules").mkdir(parents=True)
    (root / "galaxy.yml").write_text("namespace: awx\nname: awx\nversion: 24.6.1\n")
    for name, options in DOCUMENTED.items():
        text = MODULE.format(spec=json.dumps(options), kept=str(kept), name=name)
        (root / "plugins" / "modules" / f"{name.rpartition('.')[2]}.py").write_text(text)


@pytest.fixture(scope="module")
def created(tmp_path_factory):
    """What create.yml gives to the modules: {module: [arguments]}."""
    home = tmp_path_factory.mktemp("awx")
    collection(home, home / "kept")
    os.environ["ANSIBLE_COLLECTIONS_PATH"] = f"{home}:{ROOT / '.build'}"
    try:
        done = playbook.play(home, AWX / "create.yml")
    finally:
        del os.environ["ANSIBLE_COLLECTIONS_PATH"]
    assert done.returncode == 0, done.stdout
    found = {}
    for line in (home / "kept").read_text().splitlines():
        kept = json.loads(line)
        found.setdefault(kept["module"].rpartition(".")[2], []).append(kept["given"])
    return found


def given():
    return yaml.load((AWX / "controller.yml").read_text(), Loader)


LISTS = {
    "controller_execution_environments": "execution_environment",
    "controller_projects": "project",
    "controller_inventories": "inventory",
    "controller_inventory_sources": "inventory_source",
    "controller_credential_types": "credential_type",
    "controller_notifications": "notification_template",
    "controller_templates": "job_template",
    "controller_workflows": "workflow_job_template",
    "controller_schedules": "schedule",
}
"""The variables of infra.aap_configuration 3.0.0 (tasks/main.yml of its roles controller_*), and the module of each."""


def test_the_file_has_the_variables_of_infra_aap_configuration_alone():
    names = {name for name in given() if not name.startswith("awx_")}
    assert names == set(LISTS)


def test_every_object_and_every_key_reaches_its_module(created):
    """A key that create.yml forgets would be there with infra.aap_configuration alone."""
    variables = given()
    for name, module in LISTS.items():
        assert len(created[module]) == len(variables[name]), name
        for item, arguments in zip(variables[name], created[module]):
            lost = [key for key, value in item.items() if value is not None and arguments.get(key) is None]
            assert not lost, f"{name} {item['name']}: {lost}"


def test_every_playbook_has_a_template_and_a_wrapper(created):
    playbooks = {path.name for path in (ROOT / "playbooks").glob("*.yml")}
    assert {path.name for path in PROJECT.glob("*.yml")} == playbooks
    assert {template["playbook"] for template in created["job_template"]} == playbooks
    for path in (PROJECT / name for name in playbooks):
        (play,) = yaml.safe_load(path.read_text())
        assert play["ansible.builtin.import_playbook"] == f"quorumshift.kafka.{path.stem}"


@pytest.mark.parametrize("name", ["migrate", "watch_soak", "reassign"])
def test_a_wrapper_runs_the_playbook_of_the_collection(tmp_path, name):
    done = playbook.play(tmp_path, PROJECT / f"{name}.yml", "--list-tasks")
    assert done.returncode == 0 and "Check the inventory" in done.stdout, done.stdout


def test_no_template_lets_a_run_be_cut_down_or_sliced(created):
    for template in created["job_template"]:
        refused = ("ask_limit_on_launch", "ask_tags_on_launch", "ask_skip_tags_on_launch", "become_enabled")
        assert not any(template[name] for name in (*refused, "ask_job_slice_count_on_launch")), template["name"]
        assert template["job_slice_count"] == 1 and template["timeout"] == 0
        assert template["limit"] is template["job_tags"] is template["skip_tags"] is None
    for workflow in created["workflow_job_template"]:
        assert not any(workflow[name] for name in ("ask_limit_on_launch", "ask_tags_on_launch"))


def surveys(created):
    """Yield (name of the template, question)."""
    for template in (*created["job_template"], *created["workflow_job_template"]):
        assert bool(template["survey_enabled"]) == bool(template["survey_spec"]), template["name"]
        for question in (template["survey_spec"] or {"spec": []})["spec"]:
            yield template["name"], question


def test_surveys_ask_for_variables_that_exist_and_may_be_empty(created):
    """AWX gives an optional answer that is left empty as an empty text."""
    asked = list(surveys(created))
    assert len(asked) > 10
    for template, question in asked:
        spec = variable_specs.specs()[question["variable"]]
        assert question["type"] in ("text", "integer", "multiplechoice"), template
        if not question["required"]:
            assert spec.get("default") in (None, "", []) and spec["type"] in ("str", "list", "path"), question
        for choice in question.get("choices", ()):
            assert variable_specs.convert(spec, choice) is not None, question


def test_no_template_keeps_a_token(created):
    """What cannot be undone takes a token that the person types for this cluster as it is now."""
    for template, question in surveys(created):
        if "token" in question["variable"] or question["variable"] == "quorumshift_rollback_to":
            assert "default" not in question, template
    for template in created["job_template"]:
        assert not [name for name in template["extra_vars"] if re.search("token|force_unlock|accept|confirm", name)]
    finalizing = {name for name, question in surveys(created) if question["variable"] == "quorumshift_finalize_token"}
    assert finalizing == {"Quorumshift finalize", "Quorumshift finalization"}
    required = [question["required"] for name, question in surveys(created) if name in finalizing]
    assert all(required[:1]), "the first question of both is the token"


def test_extra_variables_are_public(created):
    for template in created["job_template"]:
        assert set(template["extra_vars"]) <= set(variable_specs.specs()), template["name"]


def paths(nodes):
    """Return every way through a workflow, as lists of identifiers."""
    following = {
        node["identifier"]: [
            entry["identifier"] for kind in ENDS for entry in (node.get("related") or {}).get(kind) or ()
        ]
        for node in nodes
    }
    reached = {name for names in following.values() for name in names}
    todo, found = [[name] for name in following if name not in reached], []
    while todo:
        way = todo.pop()
        found.append(way)
        todo += [[*way, name] for name in following[way[-1]]]
        assert len(way) <= len(nodes), "a circle"
    return found


def test_the_workflows_name_templates_and_their_own_nodes(created):
    templates = {template["name"] for template in created["job_template"]}
    for workflow in created["workflow_job_template"]:
        nodes = {node["identifier"]: node for node in workflow["workflow_nodes"]}
        assert len(nodes) == len(workflow["workflow_nodes"])
        for node in nodes.values():
            unified = node["unified_job_template"]
            assert unified["type"] in ("job_template", APPROVAL)
            assert unified["type"] == APPROVAL or unified["name"] in templates
        assert {name for way in paths(workflow["workflow_nodes"]) for name in way} == set(nodes)
    for schedule in created["schedule"]:
        assert schedule["unified_job_template"] in templates


@pytest.mark.parametrize(
    ("workflow", "change", "before"),
    [
        ("Quorumshift migration", "migrate", ["preflight", "plan", "approve"]),
        ("Quorumshift finalization", "finalize", ["soak", "verify", "approve"]),
    ],
)
def test_nothing_changes_before_the_approval_and_without_what_comes_before_it(created, workflow, change, before):
    (found,) = [entry for entry in created["workflow_job_template"] if entry["name"] == workflow]
    nodes = {node["identifier"]: node for node in found["workflow_nodes"]}
    ways = [way for way in paths(found["workflow_nodes"]) if change in way]
    assert ways
    for way in ways:
        assert way[: way.index(change)] == before, way
    for name, following in zip(before, [*before[1:], change]):
        related = nodes[name]["related"]
        assert [entry["identifier"] for entry in related["success_nodes"]] == [following]
        assert not related.get("always_nodes") and not related.get("failure_nodes"), f"{name} goes on after a failure"
    assert nodes["approve"]["unified_job_template"]["type"] == APPROVAL


def test_the_credential_type_gives_the_passwords_that_the_inventory_reads(created):
    (kind,) = created["credential_type"]
    fields = {field["id"] for field in kind["inputs"]["fields"]}
    injected = kind["injectors"]["extra_vars"]
    assert {re.fullmatch(r"\{\{ (\w+) \}\}", text).group(1) for text in injected.values()} == fields
    inventory = (PROJECT / "inventory" / "hosts.yml").read_text()
    assert set(re.findall(r"\{\{ (\w+) \}\}", inventory)) <= set(injected)
    assert not set(injected) & set(variable_specs.known())


RULEBOOKS = ROOT / "extensions" / "eda" / "rulebooks"


def test_pause_and_resume_change_the_file_for_which_every_restart_looks(created, tmp_path):
    templates = {template["name"]: template["playbook"] for template in created["job_template"]}
    own = f"ansible_connection=local ansible_python_interpreter={sys.executable} quorumshift_state_dir={tmp_path}/"
    hosts = [f"b1 {own}b1", "[kafka_controller]", f"c1 quorumshift_node_id=101 {own}c1"]
    (tmp_path / "hosts").write_text("\n".join(["[kafka_broker]", *hosts]))
    more = ("-e", json.dumps({"quorumshift_bootstrap_servers": "b1:9092", "restart_pause_reason": "disk alert"}))

    def paused():
        found = {host: pause_file.read(str(tmp_path / host)) for host in ("b1", "c1")}
        return {host: pause and pause["why"] for host, pause in found.items()}

    for name, why in (("pause", "disk alert"), ("pause", "disk alert"), ("resume", None)):
        done = playbook.play(tmp_path, PROJECT / templates[f"Quorumshift {name}"], *more)
        assert done.returncode == 0 and paused() == {"b1": why, "c1": why}, done.stdout


def test_the_rulebooks_act_at_alerts_that_fire_alone(created):
    templates = {template["name"] for template in created["job_template"]}
    for path in RULEBOOKS.glob("*.yml"):
        (ruleset,) = yaml.safe_load(path.read_text())
        (source,) = ruleset["sources"]
        assert source["eda.builtin.webhook"]["token"], "anyone could pause a restart"
        acting = [rule for rule in ruleset["rules"] if "debug" not in rule["actions"][0]]
        (rule,) = acting
        assert rule["condition"] == 'event.payload.status == "firing"'
        (action,) = rule["actions"]
        if "run_job_template" in action:
            assert action["run_job_template"]["name"] in templates
        else:
            assert action["run_module"]["module_args"]["state"] == "touch"
