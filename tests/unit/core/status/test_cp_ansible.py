# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Variables of cp-ansible after a migration, from recorded facts of a finalized cluster."""

from __future__ import annotations

import pytest
import yaml
from ansible_collections.quorumshift.kafka.plugins.module_utils.core.status import cp_ansible, handover
from ansible_collections.quorumshift.kafka.plugins.module_utils.secrets.seal import PREFIX, is_secret

from tests.unit.core import recorded

ORDER = ["c1", "c2", "c3"]
IDS = {"c3": 103, "c1": 101, "c2": 102}


def nodes(**changed):
    """Return the recorded nodes with `changed` in each controller's file, and with cp-ansible's setting in brokers'."""
    facts = recorded.facts("finalized")
    for node in facts["nodes"].values():
        node["file"]["properties"].update(
            {cp_ansible.MANAGED: f"{PREFIX}sealed"} if node["role"] == "broker" else changed
        )
    return facts["nodes"]


def found(**changed):
    return handover.describe("x", nodes(**changed), (), lambda key, _value: is_secret(key))


def given(own=None, **changed):
    return cp_ansible.variables(found(**changed), IDS, own or {})


def test_only_a_broker_whose_file_cp_ansible_wrote_counts():
    assert cp_ansible.is_managed(nodes().values())
    assert not cp_ansible.is_managed(recorded.facts("finalized")["nodes"].values())
    assert not cp_ansible.is_managed([{"role": "controller", "file": {"properties": {cp_ansible.MANAGED: "true"}}}])
    assert not cp_ansible.is_managed([{"role": "broker", "file": None}, {"role": "broker"}])


def test_ids_that_cp_ansible_would_count_otherwise_are_set():
    assert given()["group"] == {"c1": {"node_id": 101}, "c2": {"node_id": 102}, "c3": {"node_id": 103}}
    assert list(given()["group"]) == ORDER
    assert given()["all"]["kafka_controller_quorum_voters"].startswith("101@")


def test_nothing_is_set_for_what_it_writes_by_itself():
    changed = found()
    voters = ",".join(f"{9991 + place}@{host}:9093" for place, host in enumerate(ORDER))
    for place, host in enumerate(ORDER):
        own = changed["controllers"][host]["set"]
        own.update({"node.id": str(9991 + place), "controller.quorum.voters": voters, "log.dirs": cp_ansible.LOG_DIR})
    shown = cp_ansible.variables(changed, {host: 9991 + place for place, host in enumerate(ORDER)}, {})
    assert shown["group"] == {host: {} for host in ORDER} and shown["all"] == {}
    assert {"log.dirs", "node.id", "process.roles", "listeners"} & set(shown[cp_ansible.CONTROLLERS]) == set()
    assert "log.dirs" in given()[cp_ansible.CONTROLLERS]


def test_the_authorizer_of_zookeeper_mode_does_not_come_back():
    """It is in kafka_broker_custom_properties of an inventory with ACLs, and no broker in KRaft mode starts with it."""
    own = {cp_ansible.BROKERS: {"authorizer.class.name": "kafka.security.authorizer.AclAuthorizer"}}
    new = "org.apache.kafka.metadata.authorizer.StandardAuthorizer"
    assert given(own)[cp_ansible.BROKERS] == {"authorizer.class.name": new}
    assert given({cp_ansible.BROKERS: {"authorizer.class.name": new}})[cp_ansible.BROKERS] == {}


@pytest.mark.parametrize("key", ["zookeeper.session.timeout.ms", "inter.broker.protocol.version", "broker.id"])
def test_keys_of_the_inventory_that_no_file_may_have_are_named(key):
    shown = given({cp_ansible.BROKERS: {key: "1", "num.io.threads": "9"}})
    assert shown["remove"] == {cp_ansible.BROKERS: [key], cp_ansible.CONTROLLERS: []}
    assert f"    - {key} of {cp_ansible.BROKERS}" in cp_ansible.lines(shown)


@pytest.mark.parametrize(("ports", "port"), [((19093,) * 3, "19093"), ((9093,) * 3, None), ((9093, 9093, 9094), None)])
def test_another_port(ports, port):
    """Each controller has its own address in front of it."""
    changed = found()
    for number, host in zip(ports, ORDER):
        changed["controllers"][host]["set"]["listeners"] = f"CONTROLLER://{host}:{number}"
    assert cp_ansible.variables(changed, IDS, {})["all"].get("kafka_controller_port") == port


def test_settings_that_differ_between_controllers_are_no_variable_of_all():
    changed = found()
    changed["controllers"]["c2"]["set"]["num.io.threads.x"] = "1"
    assert "num.io.threads.x" not in cp_ansible.variables(changed, IDS, {})[cp_ansible.CONTROLLERS]


def test_a_secret_is_never_shown():
    secret = {"sasl.jaas.config": 'Login required password="hunter2";'}
    shown = given({cp_ansible.CONTROLLERS: {"sasl.jaas.config": "hunter3"}}, **secret)
    assert "hunter" not in str(shown) and "hunter" not in "\n".join(cp_ansible.lines(shown))
    assert given(**secret)[cp_ansible.CONTROLLERS]["sasl.jaas.config"] is None
    (comment,) = [line for line in cp_ansible.lines(given(**secret)) if "sasl.jaas.config" in line]
    assert comment.lstrip().startswith("# secrets of kafka_controller_custom_properties, as the file has them: ")


def test_secrets_alone_are_no_empty_variable():
    """It would be null, which cp-ansible cannot combine."""
    shown = {**given(), cp_ansible.BROKERS: {"a.secret": None}}
    assert f"{cp_ansible.BROKERS}:" not in "\n".join(cp_ansible.lines(shown)).replace("# secrets", "")


def test_the_lines_are_yaml_of_an_inventory():
    shown = given(
        {cp_ansible.BROKERS: {"authorizer.class.name": "x"}}, **{"ssl.principal.mapping.rules": 'RULE:^CN="(.*)\\d$'}
    )
    text = cp_ansible.lines(shown)
    tree = yaml.safe_load("\n".join(line for line in text[1:] if not line.lstrip().startswith("- ")))
    assert list(tree["kafka_controller"]["hosts"]) == ORDER and tree["kafka_controller"]["hosts"]["c1"] == {
        "node_id": 101
    }
    assert (
        tree["kafka_controller"]["vars"][cp_ansible.CONTROLLERS]["ssl.principal.mapping.rules"] == 'RULE:^CN="(.*)\\d$'
    )
    assert tree["kafka_broker"]["vars"][cp_ansible.BROKERS]["authorizer.class.name"].endswith("StandardAuthorizer")
    assert "    - the group zookeeper, and kraft_migration if it is set" in text


@pytest.mark.parametrize("unread", [["c2"], ORDER])
def test_the_group_has_every_controller_also_one_that_was_not_read(unread):
    changed = found()
    for host in unread:
        del changed["controllers"][host]
    shown = cp_ansible.variables(changed, IDS, {})
    assert list(shown["group"]) == ORDER and shown["group"]["c2"] == {"node_id": 102}
    assert (shown[cp_ansible.CONTROLLERS] == {}) == (unread == ORDER)
