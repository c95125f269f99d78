# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Clean-up commands are shown only if they are safe."""

from __future__ import annotations

import pytest
from ansible_collections.quorumshift.kafka.plugins.module_utils.core.migration import clean_up

from tests.unit.core import recorded


def test_the_znode_is_deleted_if_no_controller_runs():
    facts = recorded.facts("migration_stale")
    facts["zookeeper"].update(connect="z1:2181/kafka", tls=False)
    text = clean_up.migration_znode(facts)
    assert text.endswith("so run these commands in order: zookeeper-shell.sh z1:2181/kafka delete /migration")
    facts["zookeeper"]["tls"] = True
    assert "zookeeper-shell.sh z1:2181/kafka -zk-tls-config-file FILE delete /migration" in clean_up.migration_znode(
        facts
    )


def test_controllers_are_stopped_and_wiped_first():
    facts = recorded.facts("controllers_ready")
    steps = clean_up.migration_znode(facts).partition(": ")[2].split("; ")
    assert steps[:2] == [
        "on c1: systemctl stop kafka-controller.service",
        "on c2: systemctl stop kafka-controller.service",
    ]
    assert steps[3] == "on c1: find /var/lib/kafka/metadata -mindepth 1 -delete"
    assert steps[6] == "zookeeper-shell.sh ZOOKEEPER/CHROOT delete /migration" and len(steps) == 7


@pytest.mark.parametrize("meta", [None, {"cluster.id": "another", "node.id": "101"}])
def test_a_directory_of_another_cluster_is_not_wiped(meta):
    facts = recorded.facts("controllers_ready")
    facts["nodes"]["c2"]["log_dirs"][0]["meta"] = meta
    text = clean_up.migration_znode(facts)
    assert "on c2: check /var/lib/kafka/metadata, which does not have" in text and "on c2: find /" not in text


@pytest.mark.parametrize("name", ["brokers_joining_1", "hybrid", "dual_write", "brokers_joining_broker_down"])
def test_nothing_is_deleted_with_brokers_in_another_mode(name):
    text = clean_up.migration_znode(recorded.facts(name))
    assert text.startswith("delete nothing while b") and "-delete" not in text and "zookeeper-shell" not in text


def test_nothing_is_deleted_while_a_host_is_unreached():
    text = clean_up.migration_znode(recorded.unreached(recorded.facts("controllers_ready"), "c3", answers=False))
    assert text.startswith("fix the connection to c3 first") and "delete /" not in text


def test_values_in_printed_commands_are_quoted():
    facts = recorded.facts("migration_stale")
    own = facts["zookeeper"]["cluster_id"]["value"]
    for node in facts["nodes"].values():
        if node["role"] == "controller":
            node["log_dirs"] = [{"path": "/data/a b; reboot", "exists": True, "meta": {"cluster.id": own}}]
            node["service"].update(active=True, name="kafka; reboot", manager="systemd")
    facts["zookeeper"]["connect"] = "z:2181/$(reboot)"
    printed = clean_up.migration_znode(facts)
    for quoted in ("stop 'kafka; reboot'", "find '/data/a b; reboot' -mindepth 1", "sh 'z:2181/$(reboot)'"):
        assert quoted in printed
