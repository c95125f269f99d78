# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What configuration management writes after a migration: from recorded facts, and against the edits themselves."""

from __future__ import annotations

import fnmatch

import pytest
from ansible_collections.quorumshift.kafka.plugins.module_utils.core.migration import kraft_config
from ansible_collections.quorumshift.kafka.plugins.module_utils.core.status import handover
from ansible_collections.quorumshift.kafka.plugins.module_utils.secrets.seal import PREFIX, is_secret

from tests.unit.core import recorded

OWN = ("listener.name.controller.sasl.jaas.config",)


def described(name, own=()):
    facts = recorded.facts(name)
    return handover.describe("cluster-1", facts["nodes"], own, lambda key, value: is_secret(key) or PREFIX in value)


def test_brokers_have_what_the_migration_set_and_controllers_their_file():
    facts, found = recorded.facts("finalized"), described("finalized")
    for host, node in facts["nodes"].items():
        values = node["file"]["properties"]
        shown = found[f"{node['role']}s"][host]
        assert shown["file"] == node["file"]["path"]
        assert {key: value for key, value in shown["set"].items() if value is not None}.items() <= values.items()
        if node["role"] == "controller":
            assert set(shown["set"]) == set(values)
        else:
            assert {"process.roles", "node.id", "controller.quorum.voters"} <= set(shown["set"]) < set(values)
    assert found["unread"] == []


def matches(key, names):
    return any(fnmatch.fnmatchcase(key, name) for name in names)


@pytest.mark.parametrize("name", ["zk", "dual_write", "finalized"])
def test_what_the_edits_remove_is_what_no_file_has(name):
    """The list is not a second one beside the edits."""
    for node in recorded.facts(name)["nodes"].values():
        values = {**node["file"].get("properties", {}), "zookeeper.ssl.keystore.location": "/k", "broker.id": "1"}
        values.update({"inter.broker.protocol.version": "3.9", "password.encoder.secret": "x"})
        absent = handover.ABSENT[node["role"]]
        edited = (
            kraft_config.to_kraft_mode(values, 1)
            if node["role"] == "broker"
            else kraft_config.to_final_controller(values)
        )
        removed = {key for key, value in edited.items() if value is None}
        assert removed == {key for key in values if matches(key, absent)}


def test_no_file_of_a_finalized_cluster_has_them():
    for node in recorded.facts("finalized")["nodes"].values():
        assert [key for key in node["file"]["properties"] if matches(key, handover.ABSENT[node["role"]])] == []


def test_a_secret_is_named_and_not_shown():
    facts = recorded.facts("finalized")
    for node in facts["nodes"].values():
        node["file"]["properties"][OWN[0]] = 'org.example.Login required password="hunter2";'
        node["file"]["properties"]["listeners"] = f"{PREFIX}sealed"
    found = handover.describe("x", facts["nodes"], OWN, lambda key, value: is_secret(key) or PREFIX in value)
    assert "hunter2" not in str(found) and PREFIX not in str(found)
    assert all(node["set"][OWN[0]] is None for role in ("brokers", "controllers") for node in found[role].values())
    assert f"    + {OWN[0]}=(secret)" in "\n".join(handover.lines(found, "handover.json"))


def test_a_host_that_was_not_read_is_named():
    facts = recorded.unreached(recorded.facts("finalized"), "b1", answers=False)
    found = handover.describe("x", facts["nodes"], (), lambda _key, _value: False)
    assert found["unread"] == ["b1"] and "b1" not in found["brokers"]
    assert handover.lines(found, "handover.json")[-1] == "  not read: b1"


def test_a_key_that_is_still_there_is_named():
    """As after a run of configuration management that knew the old file."""
    facts = recorded.facts("finalized")
    facts["nodes"]["b2"]["file"]["properties"]["zookeeper.connect"] = "z1:2181"
    facts["nodes"]["c1"]["file"]["properties"]["password.encoder.secret"] = "x"
    found = handover.describe("x", facts["nodes"], (), lambda _key, _value: False)
    assert found["left"] == {"b2": ["zookeeper.connect"], "c1": ["password.encoder.secret"]}
    assert "  ! the file of b2 still has zookeeper.connect: remove them" in handover.lines(found, "handover.json")
    assert described("finalized")["left"] == {}


def test_the_lines():
    shown = handover.lines(described("finalized"), "/srv/handover.json")
    assert shown[0].endswith("writes the nodes' files as they are now: /srv/handover.json")
    assert shown[1].startswith("  file of b1, b2, ") and "    + process.roles=broker" in shown
    assert "    + node.id=(its own)" in shown
    removed = [line for line in shown if line.startswith("    - ")]
    assert removed[0].startswith("    - broker.id, zookeeper.*, inter.broker.protocol.version")
    assert removed[1] == "    - zookeeper.*, password.encoder.*"
