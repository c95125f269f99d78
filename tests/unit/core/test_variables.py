# Copyright: (c) 2026, Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Mistakes in an inventory are named with variable, host and what to set, before any host is reached."""

from __future__ import annotations

import copy
import os
import subprocess
import sys

import pytest
from ansible_collections.quorumshift.kafka.plugins.module_utils.core import variables
from ansible_collections.quorumshift.kafka.plugins.plugin_utils import variable_specs

GROUPS = {"kafka_broker": ["b1", "b2", "b3"], "kafka_controller": ["c1", "c2", "c3"]}
EVERYWHERE = {
    "quorumshift_bootstrap_servers": "b1:9094,b2:9094",
    "quorumshift_zookeeper_connect": "z1:2181,z2:2181/kafka",
    "quorumshift_client": {"security_protocol": "SASL_SSL", "sasl_mechanism": "PLAIN", "sasl_password": "hunter2"},
}
HOSTS = {
    "localhost": {},
    **{host: {} for host in GROUPS["kafka_broker"]},
    **{host: {"quorumshift_node_id": 101 + number} for number, host in enumerate(GROUPS["kafka_controller"])},
}


def inventory(everywhere=(), hosts=None, drop=(), **groups):
    found = {host: {**EVERYWHERE, **dict(everywhere), **own} for host, own in copy.deepcopy(HOSTS).items()}
    for name in drop:
        for own in found.values():
            own.pop(name, None)
    for host, own in (hosts or {}).items():
        found.setdefault(host, {}).update(own)
    return variables.Given(found, {**GROUPS, **groups})


def problems(given, forward=True):
    args = (variable_specs.specs(), variable_specs.cluster_wide(), variable_specs.known(), variable_specs.convert)
    return variables.problems(given, *args, forward=forward)


def test_a_right_inventory_has_no_problem():
    assert problems(inventory()) == []


CASES = [
    (inventory({"quorumshift_soack": "12h"}), "quorumshift_soack: no variable", "Did you mean quorumshift_soak?"),
    (inventory({"quorumshift_finalise_token": "x"}), "quorumshift_finalise_token:", "quorumshift_finalize_token?"),
    (inventory({"quorumshift_unheard_of_thing": 1}), "quorumshift_unheard_of_thing:", "README of the role"),
    (inventory({"restart_rolse": "broker"}), "restart_rolse:", "Did you mean restart_roles?"),
    (inventory({"zk_migrate_conect": "x"}, {}), "zk_migrate_conect:", "Did you mean zk_migrate_connect?"),
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
    (inventory(hosts={"c2": {"quorumshift_node_id": -1}}), "quorumshift_node_id (c2): -1", "from 0 on"),
    (inventory(hosts={"c1": {"quorumshift_controller_port": 99999}}), "quorumshift_controller_port (c1)", "65535"),
    (inventory(kafka_broker=[]), "no host in the group kafka_broker", "-i"),
    (inventory(kafka_controller=["b1"]), "b1: in both groups", "host of its own"),
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


def test_variables_of_other_software_are_no_problem():
    assert problems(inventory({"restart_policy_of_mine": "x", "upgrade_window": "sunday"})) == []


def test_controllers_are_needed_by_a_migration_alone():
    assert problems(inventory(kafka_controller=[]), forward=False) == []


TEXTS = {
    "bool": ("false", False),
    "int": ("7", 7),
    "float": ("2.5", 2.5),
    "list": ("a,b", ["a", "b"]),
    "dict": ('{"a": 1}', {"a": 1}),
}


@pytest.mark.parametrize("name", sorted(variable_specs.specs()))
def test_each_variable_may_be_text_as_from_a_survey(name):
    spec = variable_specs.specs()[name]
    kind = spec.get("type", "str")
    if kind in TEXTS and not spec.get("options") and spec.get("elements") != "dict":
        text, value = TEXTS[kind]
        elements = {"int": (text.replace("a", "1").replace("b", "2"), [1, 2])}.get(spec.get("elements", ""))
        text, value = elements or (text, value)
        assert variable_specs.typed(name, text) == value
        assert variable_specs.typed(name, value) == value
    elif kind not in TEXTS:
        assert variable_specs.typed(name, "~/x") == "~/x"  # a path is of its host


def test_the_specs_are_read_before_workers_are_forked():
    """Each task of each host would read them else: 0.24 s of CPU with a parser in Python, 0.03 s with one in C."""
    code = (
        "from ansible_collections.quorumshift.kafka.plugins.plugin_utils import base, variable_specs as specs; "
        "assert specs.specs.cache_info().currsize == 1"
    )
    subprocess.run(
        [sys.executable, "-c", code], check=True, env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    )
