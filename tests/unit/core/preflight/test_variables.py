# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Mistakes in an inventory are named with variable, host and what to set, before any host is reached."""

from __future__ import annotations

import copy
import datetime
import json
import os
import re
import subprocess
import sys

import pytest
from ansible_collections.quorumshift.kafka.plugins.module_utils.core.preflight import variables
from ansible_collections.quorumshift.kafka.plugins.plugin_utils import variable_specs

from tools import reference
from tools.checkout import ROOT, checkout_files
from tools.yaml_files import read_yaml

HOME = reference.shared_variables()
GROUPS = {"kafka_broker": ["b1", "b2", "b3"], "kafka_controller": ["c1", "c2", "c3"]}
EVERYWHERE = {
    "quorumshift_bootstrap_servers": "b1:9094,b2:9094",
    "quorumshift_zookeeper_connect": "z1:2181,z2:2181/kafka",
    "quorumshift_client": {"security_protocol": "SSL", "ssl_keypassword": "hunter2", "ssl_certfile": "/x"},
}
HOSTS = {
    "localhost": {},
    **{host: {} for host in GROUPS["kafka_broker"]},
    **{host: {"quorumshift_node_id": 101 + number} for number, host in enumerate(GROUPS["kafka_controller"])},
}


def inventory(everywhere=(), hosts=None, drop=(), typed=(), **groups):
    found = {host: {**EVERYWHERE, **dict(everywhere), **own} for host, own in copy.deepcopy(HOSTS).items()}
    for name in drop:
        for own in found.values():
            own.pop(name, None)
    for host, own in (hosts or {}).items():
        found.setdefault(host, {}).update(own)
    return variables.Given(found, {**GROUPS, **groups}, typed)


def all_problems(given, forward=True, needs=variables.NOTHING_MORE):
    names = (variable_specs.specs(), variable_specs.cluster_wide(), variable_specs.known(), variable_specs.internal())
    args = (*names, variable_specs.convert)
    return variables.find_problems(given, *args, forward=forward, needs=needs)


def problems(given, forward=True, needs=variables.NOTHING_MORE):
    return [problem.text for problem in all_problems(given, forward, needs)]


def test_an_inventory_answers_no_question_of_a_run_in_advance():
    """Each variable of which the documentation says so, and no other."""
    specs = variable_specs.specs()
    said = {name for name, spec in specs.items() if "command line only" in " ".join(map(str, [spec["description"]]))}
    assert said == set(variables.OF_ONE_RUN)
    of_type = {"bool": True, "float": 1796076971.5, "list": ["b1"], "str": "zk"}
    for name in said:
        value = of_type[specs[name]["type"]]
        refused = f"{name} is in the inventory, and would count for every later run"
        for answered in (inventory({name: value}), inventory(hosts={"b2": {name: value}})):
            (found,) = [text for text in problems(answered) if "is in the inventory" in text]
            assert found.replace(" (b2)", "").startswith(refused) and found.endswith(f"command line: -e {name}=VALUE.")
        allowed = [
            inventory({name: value}, typed={name}),
            inventory(hosts={"localhost": {name: value}}),  # `vars` of the operator's own playbook
            *(inventory({name: none}) for none in (specs[name].get("default"), None, "")),
        ]
        assert [text for given in allowed for text in problems(given) if "is in the inventory" in text] == []


@pytest.mark.parametrize("name", variables.NARROWING)
def test_what_leaves_nodes_out_is_refused_where_it_is_not_read(name):
    given = inventory({name: "broker" if name == "restart_roles" else 1796076971}, typed={name})
    (found,) = problems(given)
    assert found.startswith(f"{name}: this playbook does not read it")
    assert problems(given, needs=variables.Needs(taken=[name])) == []


def test_a_right_inventory_has_no_problem():
    assert problems(inventory()) == []


@pytest.mark.parametrize("name", ["reassign_src", "rehearse_backup"])
def test_a_file_of_the_control_node_may_be_named_from_its_directory(name):
    """As docs/rehearsal.md has it."""
    assert problems(inventory({name: "a.json"})) == []


@pytest.mark.parametrize("name", ["quorumshift_broker_config", "quorumshift_client", "quorumshift_node_id"])
@pytest.mark.parametrize("unread", ["localhost", "b2", "both"])
def test_a_value_of_a_hosts_own_address_is_read_where_it_is_used(name, unread):
    """Kerberos: group_vars/all has `principal=kafka/{{ ansible_host }}`, and the control node has no such address."""
    cannot = {name: variables.Unreadable("'ansible_host' is undefined")}
    value = 7 if name == "quorumshift_node_id" else {"security_protocol": "SSL"}
    hosts = {host: {name: value} for host in HOSTS}
    hosts.update(dict.fromkeys(("localhost", "b2") if unread == "both" else (unread,), cannot))
    found = [text for text in problems(inventory(hosts=hosts)) if "is undefined" in text]
    needed = unread != "localhost" or name in variable_specs.cluster_wide()
    assert bool(found) == needed
    assert all(text.startswith(f"{name} (") for text in found)


@pytest.mark.parametrize("name", sorted(variable_specs.internal()))
def test_an_internal_name_ends_every_playbook_if_it_is_typed(name):
    """Also `status`: -e quorumshift_show=true would turn other mistakes into warnings."""
    given = inventory({name: "x"} if name.startswith(variables.PREFIXES) else {}, typed={name})
    found = [problem for problem in all_problems(given) if problem.text.startswith(f"{name} is internal: ")]
    assert [problem.severity for problem in found] == ["stops"]


@pytest.mark.parametrize("name", sorted(variable_specs.specs()))
def test_an_operators_name_may_be_typed(name):
    given = inventory(typed={name})
    internal = [text for text in problems(given) if "is internal" in text]
    assert bool(internal) == (name in variable_specs.internal())
    if name in HOME:
        assert not internal


def test_names_of_steps_facts_and_registers_are_internal():
    names = {"quorumshift_direction", "quorumshift_show", "step_when", "step_hosts", "roll_when", "quorumshift_state"}
    names |= {"quorumshift_gate", "restart_when", "zk_migrate_cuts", "restart_kind", "quorumshift_taken"}
    assert names <= variable_specs.internal()
    assert (
        not {"quorumshift_zookeeper_connect", "restart_concurrency", "ansible_pipelining"} & variable_specs.internal()
    )


def test_a_playbook_takes_internal_names_that_it_lists():
    taken = variables.Needs(taken=["quorumshift_gate", "quorumshift_taken"])
    given = inventory(typed={"quorumshift_gate", "quorumshift_taken"})
    assert [text.partition(" ")[0] for text in problems(given, needs=taken)] == ["quorumshift_taken"]


def test_an_internal_name_in_the_inventory_is_named_with_its_hosts():
    found = all_problems(
        inventory(hosts={"b1": {"quorumshift_direction": "back", "restart_name": "of other software"}})
    )
    (problem,) = found
    assert problem.text.startswith("quorumshift_direction (b1) is internal: ") and problem.severity == "fails"


def test_what_an_earlier_playbook_registered_is_no_mistake():
    found = inventory(hosts={"b1": {"quorumshift_gathered": {}}})
    assert problems(variables.Given(found.hosts, found.groups, ran=True)) == []


RENAMED = {"quorumshift_controller_group": "new_controllers"}
OF_CP_ANSIBLE = ("confluent_server_enabled",)


def test_a_group_may_have_another_name():
    """kafka_controller then has the hosts of that group, as the task before the check has put them there."""
    assert problems(inventory(RENAMED, new_controllers=GROUPS["kafka_controller"])) == []


@pytest.mark.parametrize("members", [{}, {"new_controllers": []}])
def test_a_group_that_is_not_there_ends_every_playbook(members):
    """A run without its controllers would detect a phase from half the nodes."""
    (found,) = all_problems(inventory(RENAMED, kafka_controller=[], **members))
    assert found.severity == "stops"
    assert found.text.startswith("quorumshift_controller_group: the inventory has no host in a group 'new_controllers'")


def test_hosts_of_both_names_end_every_playbook():
    """Nothing else is said of those hosts, which may be the wrong ones."""
    (found,) = all_problems(inventory(RENAMED, drop=["quorumshift_node_id"], new_controllers=["c1"]))
    assert found.severity == "stops"
    assert found.text.startswith("c2, c3: in the group kafka_controller, and quorumshift_controller_group names")


def cp_ansible(everywhere=(), names=OF_CP_ANSIBLE, **groups):
    given = inventory(everywhere, **{"zookeeper": ["z1"], **groups})
    return variables.Given(given.hosts, given.groups, of_cp_ansible=names)


def test_a_group_that_cp_ansible_takes_for_kraft_is_named_while_zookeeper_is_there():
    (found,) = all_problems(cp_ansible())
    assert found.severity == "warns" and "(confluent_server_enabled)" in found.text
    assert "quorumshift_controller_group: quorumshift_controllers" in found.text


@pytest.mark.parametrize(
    "given",
    [
        cp_ansible(RENAMED, new_controllers=GROUPS["kafka_controller"]),
        cp_ansible(zookeeper=[]),  # as cp-ansible's inventory is after the migration
        cp_ansible(names=()),
    ],
)
def test_no_other_inventory_is_warned_of_cp_ansible(given):
    assert [problem for problem in all_problems(given) if "cp-ansible" in problem.text] == []


CASES = [
    (
        inventory({"quorumshift_exclude_hosts": "b1, broker9"}),
        "quorumshift_exclude_hosts: the inventory has no host broker9",
        "Use the name",
    ),
    (inventory({"quorumshift_probe_host": "b9"}), "quorumshift_probe_host: the inventory has no host b9", "Use"),
    (
        inventory({"quorumshift_client": {"sasl_pasword": "x"}}),
        "sasl_pasword is no option",
        "Did you mean sasl_password?",
    ),
    (inventory({"quorumshift_soack": "12h"}), "quorumshift_soack: no variable", "Did you mean quorumshift_soak?"),
    (inventory({"quorumshift_finalise_token": "x"}), "quorumshift_finalise_token:", "quorumshift_finalize_token?"),
    (inventory({"quorumshift_unheard_of_thing": 1}), "quorumshift_unheard_of_thing:", "README of the role"),
    (inventory({"restart_rolse": "broker"}), "restart_rolse:", "Did you mean restart_roles?"),
    (inventory({"zk_migrate_conect": "x"}, {}), "zk_migrate_conect:", "Did you mean zk_migrate_connect?"),
    (inventory({"restart_roles": "contoller"}), "restart_roles: 'contoller'", "Did you mean controller?"),
    (inventory({"restart_roles": []}), "restart_roles is empty", "broker or controller"),
    (inventory({"restart_frequency": 1}, typed={"restart_frequency"}), "restart_frequency: no variable", "README"),
    (inventory({"quorumshift_soak": 12}), "quorumshift_soak: '12' has no unit", "use 12h"),
    (inventory({"quorumshift_soak": "1.5"}), "quorumshift_soak: '1.5' has no unit", "use 1.5h"),
    (inventory({"quorumshift_soak": "1w"}), "quorumshift_soak: '1w' is not a duration", "2d"),
    (inventory({"quorumshift_soak": "59m"}), "quorumshift_soak: 59m is less than an hour", "cannot be undone"),
    (inventory(kafka_controller=["c1", "c2"]), "kafka_controller has 2 hosts", "3 or 5"),
    (
        inventory({"quorumshift_client": {"sasl_username": "u"}}),
        "quorumshift_client.sasl_username has no effect",
        "PLAINTEXT",
    ),
    (
        inventory({"quorumshift_client": '{"security_protocol": "SASL_SSL"}'}),
        "quorumshift_client.sasl_mechanism: missing",
        "SCRAM",
    ),
    (
        inventory({"quorumshift_zookeeper_client": {"auth": "hunter2"}}),
        "quorumshift_zookeeper_client.auth must have the form",
        "user:password",
    ),
    (
        inventory({"quorumshift_controller_super_users": "User:CN=kafka,OU=ops"}),
        "quorumshift_controller_super_users: 'OU=ops' has no type",
        "YAML list",
    ),
    (inventory({"quorumshift_verify": "maybe"}), "quorumshift_verify: 'maybe'", "not of type bool"),
    (inventory({"quorumshift_stable_s": "ten"}), "quorumshift_stable_s: 'ten'", "not of type float"),
    (inventory({"quorumshift_controller_protocol": "SLL"}), "quorumshift_controller_protocol: 'SLL'", "SSL?"),
    (inventory({"quorumshift_client": {"sasl_pasword": "hunter2"}}), "quorumshift_client:", "sasl_pasword"),
    (inventory(drop=["quorumshift_bootstrap_servers"]), "quorumshift_bootstrap_servers is not set", "group all"),
    (inventory({"quorumshift_bootstrap_servers": "b1:port"}), "quorumshift_bootstrap_servers:", "port"),
    (inventory({"quorumshift_zookeeper_connect": "z1:2181/a,z2:2181/a"}), "quorumshift_zookeeper_connect:", "/a"),
    (inventory(hosts={"c2": {"quorumshift_node_id": "101"}}), "quorumshift_node_id: c1, c2", "same id, 101"),
    (inventory(hosts={"c2": {"quorumshift_node_id": "x"}}), "quorumshift_node_id (c2): 'x'", "type int"),
    (inventory(hosts={"c2": {"quorumshift_node_id": None}}), "quorumshift_node_id (c2): not set", "no broker has"),
    (inventory(hosts={"c2": {"quorumshift_node_id": -1}}), "quorumshift_node_id (c2): -1 is out", "from 0 to"),
    (inventory(hosts={"c1": {"quorumshift_controller_port": 99999}}), "quorumshift_controller_port (c1)", "65535"),
    *[
        (
            inventory(hosts={"c1": {"quorumshift_controller_port": port}}),
            f"quorumshift_controller_port (c1): {port}",
            "1 to",
        )
        for port in (0, -9093, 65536)
    ],
    *[
        (inventory(hosts={"c1": {"quorumshift_node_id": number}}), f"quorumshift_node_id (c1): {number!r}", helps)
        for number, helps in (
            (True, "not of type int"),
            ("\u00b2", "not of type int"),
            (1.5, "not of type int"),
            (2**31, "from 0 to"),
        )
    ],
    *[
        (inventory({"quorumshift_canary": value}), f"quorumshift_canary: {value}: YAML reads it as {read}", "in quotes")
        for value, read in ((False, "a boolean"), (3.1, "a number"), (datetime.date(2026, 1, 2), "a date"))
    ],
    (inventory({"quorumshift_canary": "b9"}), "quorumshift_canary: the inventory has no host b9", "Use the name"),
    (
        inventory({"quorumshift_zookeeper_connect": ["z1:2181"]}),
        "quorumshift_zookeeper_connect: ['z1:2181']",
        "type str",
    ),
    (
        inventory({"quorumshift_bootstrap_servers": [{"b1": 9092}]}),
        "quorumshift_bootstrap_servers: ",
        "type list of str",
    ),
    (inventory({"quorumshift_bootstrap_servers": ["b1:http"]}), "quorumshift_bootstrap_servers: 'b1:http'", "port"),
    (inventory({"quorumshift_soak": ["12h"]}), "quorumshift_soak: ['12h']", "not of type str"),
    (inventory({"quorumshift_spark_conf": ["a=b"]}), "quorumshift_spark_conf: ", "not of type dict."),
    (
        inventory({"quorumshift_client": {"security_protocol": "SSL", "ssl_keypassword": 1.5}}),
        "quorumshift_client: YAML reads ssl_keypassword as a number",
        "in quotes",
    ),
    (
        inventory({"quorumshift_fingerprint_samples": [{"topic": ["hunter2"]}]}),
        "quorumshift_fingerprint_samples: topic is no option",
        "Did you mean topics?",
    ),
    (
        inventory({"quorumshift_spark_master": "yarn"}),
        "quorumshift_spark_uri is not set, and executors of yarn write what they read",
        "all executors share",
    ),
    (
        inventory(
            {
                "quorumshift_fingerprint_topics": ["*"],
                "quorumshift_client": {"security_protocol": "SASL_SSL", "sasl_mechanism": "GSSAPI"},
            }
        ),
        "quorumshift_client logs in with GSSAPI, with which records cannot be read",
        "another login",
    ),
    *[
        (inventory({name: value}), f"{name}: {float(value)!r} is out of range", helps)
        for name, value, helps in (
            ("quorumshift_probe_timeout", 0, "above 0"),
            ("quorumshift_probe_timeout", "nan", "above 0"),
            ("quorumshift_gate_timeout_s", "inf", "above 0"),
            ("quorumshift_stable_s", -1, "from 0 on"),
            ("quorumshift_stop_timeout_s", 0, "above 0"),
        )
    ],
    (inventory({"restart_concurrency": 0}), "restart_concurrency: 0 is out of range", "above 0"),
    (inventory({"reassign_drain": "3,-3"}), "reassign_drain: -3 is out of range", "from 0 to"),
    (inventory({"reassign_add": "4;5"}), "reassign_add: '4;5' is no broker id", "least_loaded"),
    (inventory({"upgrade_to": "3.9"}), "upgrade_to: '3.9' is no version", "3.9.1"),
    (inventory({"features_upgrade_to": "4"}), "features_upgrade_to: '4' is no release", "4.1"),
    (inventory({"features_downgrade_to": "4.1-IV0"}), "features_downgrade_to: '4.1-IV0' is no release", "4.1"),
    (inventory({"restart_since": "3600"}), "restart_since: 3600.0 is no time", "since 1970, as date +%s"),
    (inventory({"restart_since": 1796076971682}), "restart_since: 1796076971682.0 is no time", "since 1970"),
    (inventory({"quorumshift_state_dir": "state"}), "quorumshift_state_dir: 'state' is no absolute path", "with /"),
    (
        inventory({"quorumshift_controller_config": {"super.users": ["User:a"]}}),
        "quorumshift_controller_config: 'super.users' has no text",
        "list with commas",
    ),
    (
        inventory({"quorumshift_waive": {"QS-CHECK-404": "x"}}),
        "quorumshift_waive: QS-CHECK-404 is not a check",
        "the reason",
    ),
    *[
        (
            inventory(hosts={"c1": {"quorumshift_controller_host": host}}),
            f"quorumshift_controller_host (c1): {host!r}",
            "host",
        )
        for host in ("https://c1", "c1:9093", "[::1]", "c1 c2", "c1/x")
    ],
    (
        inventory(hosts={"b1": {"quorumshift_probe_timeout": 9}}, everywhere={"quorumshift_probe_timeout": 5}),
        "quorumshift_probe_timeout has another value for b1",
        "group all",
    ),
    (
        inventory({"quorumshift_controller_listener": "A,B"}),
        "quorumshift_controller_listener: 'A,B' is no name",
        "one name",
    ),
    (inventory(hosts={"b4,": {}}), "'b4,': the name of a host has no", "Correct it"),
    (
        inventory(hosts={"zk1": {"quorumshift_zookeper_config_file": "/x"}}),
        "quorumshift_zookeper_config_file (zk1): no",
        "quorumshift_zookeeper_config_file?",
    ),
    (inventory(kafka_broker=[]), "no host in the group kafka_broker", "-i"),
    (inventory(kafka_controller=["b1"]), "b1: in both groups", "name of its own"),
    (inventory(kafka_controller=[]), "no host in the group kafka_controller", "three hosts"),
    (
        inventory({"quorumshift_probe_host": variables.Unreadable("'vault_x' is undefined")}),
        "quorumshift_probe_host: 'vault_x' is undefined",
        "Correct its value",
    ),
]


@pytest.mark.parametrize(("given", "names", "helps"), CASES, ids=[case[1] for case in CASES])
def test_a_mistake_is_named_with_what_to_set(given, names, helps):
    found = [text for text in problems(given) if names in text]
    assert len(found) == 1 and helps in found[0], problems(given)
    assert "hunter2" not in found[0]


RIGHT = [
    {"quorumshift_controller_host": "2001:db8::1"},
    {"quorumshift_controller_host": "c1.example.org", "quorumshift_controller_port": "9093"},
    {"quorumshift_stable_s": 0, "quorumshift_zookeeper_read_rate": "0"},
    {"quorumshift_state_dir": "~kafka/state", "quorumshift_artifacts_dir": "artifacts", "restart_pause_file": "pause"},
    {"quorumshift_controller_config": {"num.io.threads": 8, "a": True, "b": 1.5, "c": ""}},
    {"quorumshift_waive": {"QS-CHECK-002": "known"}, "quorumshift_canary": "b1", "upgrade_to": "7.9.1-ccs"},
    {"features_upgrade_to": "4.1", "features_downgrade_to": "8.0.0-ccs"},
    {"quorumshift_fingerprint_topics": ["*"], "quorumshift_spark_master": "local[2]"},
    {"quorumshift_verify": False, "quorumshift_spark_master": "yarn"},
    {"quorumshift_spark_master": "yarn", "quorumshift_spark_uri": "hdfs://namenode-1/quorumshift"},
    {"quorumshift_client": {"security_protocol": "SASL_SSL", "sasl_mechanism": "GSSAPI"}},
    {"restart_since": "1796076971.5"},
    {"restart_since": 0},
    {"reassign_add": "least_loaded", "reassign_throttle_bytes_s": "1000000"},
    {"reassign_add": 4, "quorumshift_finalize_token": 123456},
    {"zk_migrate_source_servers": {1: "z1:2888:3888:participant;0.0.0.0:2181", 2: "[::1]:2888:3888|z2:2888:3888"}},
]


@pytest.mark.parametrize("everywhere", RIGHT, ids=[", ".join(values) for values in RIGHT])
def test_a_right_value_is_no_mistake(everywhere):
    taken = variables.Needs(taken=variables.NARROWING)
    assert problems(inventory(everywhere, typed=everywhere), needs=taken) == []


def test_a_variable_of_the_nodes_alone_is_missing_on_the_control_node():
    client = {"quorumshift_client": EVERYWHERE["quorumshift_client"]}
    given = inventory(drop=["quorumshift_client"], hosts={"b1": client})
    (found,) = problems(given)
    assert found.startswith("quorumshift_client is set for b1, but not for the control node") and "group all" in found


@pytest.mark.parametrize("name", sorted(variable_specs.PER_NODE))
def test_a_variable_that_each_node_reads_for_itself_may_be_set_for_one_node(name):
    value = {"dict": {"num.io.threads": "8"}, "float": 60, "str": "/usr/local/sbin/drain"}[
        variable_specs.specs()[name]["type"]
    ]
    assert problems(inventory(hosts={"b2": {name: value}})) == []


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("Quorumshift_soak", "quorumshift_soak"),
        ("quorumshift-soak", "quorumshift_soak"),
        ("qourumshift_verify", "quorumshift_verify"),
        ("restrat_concurrency", "restart_concurrency"),
        ("upgade_to", "upgrade_to"),
    ],
)
def test_a_mistyped_prefix_of_the_command_is_named(name, meant):
    assert any(f"{name}: no variable" in text and meant + "?" in text for text in problems(inventory(typed={name})))


def test_a_mistyped_prefix_of_the_inventory_is_named():
    (found,) = problems(inventory(hosts={"b1": {"quorumshft_kafka_home": "/opt"}}))
    assert found.startswith("quorumshft_kafka_home (b1): no variable") and "quorumshift_kafka_home?" in found


def test_names_of_other_software_may_be_typed():
    assert problems(inventory(typed={"env_name", "restarts", "queue_size", "awx_job_id", "upgrade"})) == []


@pytest.mark.parametrize("lost", ["quorumshift_soak = hunter2", "quorumshift_soak:hunter2", "quorumshift_soak"])
def test_what_ansible_does_not_read_of_the_command_is_named(lost):
    given = inventory()
    given.lost = lost
    (found,) = problems(given)
    assert found.startswith("-e quorumshift_soak: Ansible reads no value") and "hunter2" not in found


@pytest.mark.parametrize("name", sorted(set(variable_specs.specs()) - variable_specs.internal()))
@pytest.mark.parametrize("value", [None, ""])
def test_a_variable_without_a_value_is_named_unless_its_default_is_none(name, value):
    spec = variable_specs.specs()[name]
    found = [text for text in problems(inventory({name: value})) if text.startswith(name)]
    if spec.get("default") in (None, "") or (value == "" and spec["type"] == "list"):
        assert not any("is empty. Set" in text for text in found)
    else:
        assert found[0] == f"{name} is empty. Set a value, or remove it: then its default is used."


def test_variables_of_other_software_are_no_problem():
    assert problems(inventory({"restart_policy_of_mine": "x", "upgrade_window": "sunday"})) == []


def test_controllers_are_needed_by_a_migration_alone():
    assert problems(inventory(kafka_controller=[]), forward=False) == []


def test_status_goes_on_with_all_but_what_keeps_it_from_reading():
    given = inventory({"quorumshift_soack": "1h", "quorumshift_stable_s": "ten", "restart_pace_s": "1m"})
    severities = {problem.text.split(":")[0]: problem.severity for problem in all_problems(given)}
    assert severities == {"quorumshift_soack": "fails", "quorumshift_stable_s": "stops", "restart_pace_s": "fails"}


SERVERS = {11: "z1:2888:3888", 12: "z2:2888:3888"}
MOVE = {
    "zk_migrate_source_connect": "s1:2181/kafka",
    "zk_migrate_destination_connect": "z1:2181,z2:2181/kafka",
    "zk_migrate_destination_servers": SERVERS,
}
THREE = {"zk_migrate_destination_servers": {**SERVERS, 13: "z3:2888:3888"}}
MOVE_NEEDS = variables.Needs(groups=["zookeeper_destination"], variables=list(MOVE))


def move(everywhere=(), myids=(11, 12), drop=()):
    hosts = {f"z{at}": {} if number is None else {"zk_migrate_myid": number} for at, number in enumerate(myids, 1)}
    return inventory({**MOVE, **dict(everywhere)}, hosts, drop, zookeeper_destination=list(hosts), kafka_controller=[])


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (move(), None),
        (move({"zk_migrate_destination_servers": json.dumps(SERVERS)}, ("11", " 12")), None),
        (move(drop=["zk_migrate_source_connect"]), "zk_migrate_source_connect is not set"),
        (move(myids=(11, None)), "zk_migrate_myid (z2): not set"),
        (move(myids=(11, 11)), "zk_migrate_myid: z1, z2 have the same id, 11"),
        (move(myids=(11, 13)), "zk_migrate_myid (z2): 13 is no id of zk_migrate_destination_servers. It has 11, 12"),
        (move({"zk_migrate_destination_servers": {255: "z1:2888:3888", 11: ""}}), "'255' is no id of a server"),
        (move({"zk_migrate_destination_servers": "z1"}, (11,)), "zk_migrate_destination_servers"),
        (move({"zk_migrate_destination_servers": {11: "z1", 12: "z2:2888:3888"}}), "'11: z1' is no address"),
        (move({"zk_migrate_destination_servers": {11: "z1:2888:3888;2181", 12: "z2:2888:3888"}}), "without role"),
        (move({"zk_migrate_destination_connect": "z1:2181,s1:2181/kafka"}), "both have s1:2181"),
        (move({"zk_migrate_destination_connect": "z1:2181/other"}), "has the chroot /other"),
        (move({}, ()), "no host in the group zookeeper_destination"),
        (
            move({"zk_migrate_dead_hosts": "z3"}),
            "zk_migrate_dead_hosts: z3 is no host of the group zookeeper_destination",
        ),
        (move({"zk_migrate_dead_hosts": ["z2"]}), "zk_migrate_dead_hosts: 1 of 2 destination servers are dead"),
        (move({"zk_migrate_dead_hosts": "z3", **THREE}, (11, 12, 13)), None),
        (move({"zk_migrate_dead_hosts": "z2, z3", **THREE}, (11, 12, 13)), "2 of 3 destination servers are dead"),
    ],
)
def test_a_move_to_another_ensemble_needs_its_servers_by_id(given, said):
    found = problems(given, forward=False, needs=MOVE_NEEDS)
    assert any(said in text for text in found) if said else found == [], found


@pytest.mark.parametrize(
    ("set_here", "said"),
    [
        ({}, "None is set."),
        ({"reassign_drain": 0}, None),
        ({"reassign_drain": "", "reassign_add": "3"}, None),
        ({"reassign_drain": [], "reassign_add": "3"}, None),
        ({"reassign_drain": 3, "reassign_cancel": "false"}, None),
        ({"reassign_drain": 3, "reassign_cancel": "0"}, None),
        ({"reassign_drain": 3, "reassign_cancel": "yes"}, "reassign_drain and reassign_cancel are set."),
        ({"reassign_drain": " "}, "None is set."),
        ({"features_levels": {}}, "None is set."),
        ({"features_levels": "{}"}, "None is set."),
        ({"features_levels": {"group.version": 0}}, None),
    ],
)
def test_exactly_one_of_several_variables(set_here, said):
    """A run that is to change something, and has nothing to change, would end with exit code 0."""
    needs = variables.Needs(one_of=["reassign_drain", "reassign_add", "reassign_cancel", "features_levels"])
    found = [text for text in problems(inventory(set_here), needs=needs) if text.startswith("Set exactly one")]
    assert said in found[0] if said else found == []


@pytest.mark.parametrize("name", [name for name in checkout_files() if re.fullmatch(r"playbooks/.+\.yml", name)])
def test_no_play_takes_the_strategy_of_the_operators_configuration(name):
    """With `free`, a host goes on while another fails, and Ansible runs `run_once` for each host."""
    plays = [play for play in read_yaml(ROOT / name) if "hosts" in play]
    older = "ansible_version.full is version('2.17', '<')"
    by_release = f"{{{{ ({older}) | ternary('quorumshift.kafka.linear', 'ansible.builtin.linear') }}}}"
    own = by_release if name == "playbooks/parts/step.yml" else "ansible.builtin.linear"
    assert all(play.get("strategy") == own for play in plays)


@pytest.mark.parametrize("name", [name for name in checkout_files() if re.fullmatch(r"playbooks/\w+\.yml", name)])
def test_each_playbook_checks_the_inventory_first(name):
    first = read_yaml(ROOT / name)[0]
    assert first["ansible.builtin.import_playbook"] == "parts/check_inventory.yml"


TEXTS = {
    "bool": ("false", False),
    "int": ("7", 7),
    "float": ("2.5", 2.5),
    "list": ("1, 2", ["1", "2"]),
    "dict": ('{"a": 1}', {"a": 1}),
}
OF_ELEMENTS = {"int": ("1, 2", [1, 2])}


@pytest.mark.parametrize("name", sorted(variable_specs.specs()))
def test_each_variable_may_be_text_as_from_a_survey(name):
    spec = variable_specs.specs()[name]
    kind = spec.get("type", "str")
    if spec.get("options") and kind == "dict":
        option = next(key for key, option_spec in spec["options"].items() if option_spec["type"] == "str")
        value = {option: (spec["options"][option].get("choices") or ["x"])[0]}
        typed = variable_specs.convert_text(name, json.dumps(value))
        assert {key: typed[key] for key in value} == value
    elif spec.get("elements") == "dict":
        if not name.startswith(variables.PREFIXES):
            return  # no operator sets it
        (found,) = (text for text in problems(inventory({name: "x"})) if text.startswith(name))
        assert "not of type list" in found  # only YAML has it
    elif kind in TEXTS:
        text, value = OF_ELEMENTS.get(spec.get("elements", ""), TEXTS[kind]) if kind == "list" else TEXTS[kind]
        assert variable_specs.convert_text(name, text) == value
        assert variable_specs.convert_text(name, value) == value
        assert [text for text in problems(inventory({name: text})) if "not of type" in text] == []
    else:
        assert variable_specs.convert_text(name, "~/x") == "~/x"  # a path is of its host


def expressions():
    """Yield (file, expression) of each Jinja expression and condition of playbooks and roles."""
    for name in checkout_files():
        if re.match(r"(playbooks|roles/\w+/(tasks|vars))/.*\.yml$", name):
            yield from ((name, found) for found in of_node(read_yaml(ROOT / name)))


def of_node(node, condition=False):
    if isinstance(node, dict):
        for key, value in node.items():
            yield from of_node(value, key in ("when", "that", "until", "failed_when", "changed_when"))
    elif isinstance(node, list):
        for value in node:
            yield from of_node(value, condition)
    elif isinstance(node, str):
        yield from re.findall(r"\{\{(.*?)\}\}", node, re.DOTALL) or ([node] if condition else [])


# An expression that is nothing but the variable, with its default: the option of a module converts it
ELSE = r" else {name}\s*$"
PASSED_ON = r"\s*{name}( \| default\([^)]*\)| (if {name} (is not none|not in \[none, ''\])) else omit| or omit)*\s*"
CONVERTED = r"\b{name}(( \| default\([^)]*\))? \| (bool|int|float|string)| is (not )?defined)\b"
SET_BY_PLAYBOOKS = ("verify_", "controllers_", "rollback_gate_token", "restart_ready", "prepare_", "quorumshift_needed")


def test_text_of_every_type_means_in_an_expression_what_its_value_means():
    """AWX surveys and -e send text. In Jinja the text `false` is true, and text has no items."""
    wrong = []
    for file, written in expressions():
        expression = re.sub(r"'[^']*'", "''", written)
        for name, spec in variable_specs.specs().items():
            kind = spec.get("type", "str")
            if kind not in ("bool", "int", "float", "dict") or name.startswith(SET_BY_PLAYBOOKS):
                continue
            if re.fullmatch(PASSED_ON.format(name=name), expression):
                continue
            left = re.sub(CONVERTED.format(name=name), "", re.sub(ELSE.format(name=name), "", expression))
            if re.search(rf"\b{name}\b", left):
                wrong.append(f"{file}: {' '.join(expression.split())} ({name}, {kind})")
    assert sorted(wrong) == []


def test_the_specs_are_read_before_workers_are_forked():
    """Each task of each host would read them else: 0.24 s of CPU with a parser in Python, 0.03 s with one in C."""
    code = (
        "from ansible_collections.quorumshift.kafka.plugins.plugin_utils import base, variable_specs as specs; "
        "assert specs.specs.cache_info().currsize == 1"
    )
    subprocess.run(
        [sys.executable, "-c", code], check=True, env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    )
