# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A client changes metadata around the initial copy: the comparison explains it, and the run goes on."""

from __future__ import annotations

import pytest
from confluent_kafka.admin import (
    AclBinding,
    AclOperation,
    AclPermissionType,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    NewTopic,
    ResourcePatternType,
    ResourceType,
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialUpsertion,
)

from tests.system.testbed.waiting import meanwhile, wait_for

SETTINGS = {"quorumshift_soak": "0s"}
VERIFIED = {**SETTINGS, "quorumshift_verify": True}
COUNTED = "Save the count of the metadata"
TOPIC, PARTITIONS = "short-lived", 2


def test_a_topic_that_exists_only_during_the_copy_is_explained(fresh):
    """It is created after the count before the copy, and deleted before the count after it."""
    admin, created = fresh.admin(), []

    def create_after_the_first_count(line):
        if COUNTED in line and not created:
            admin.create_topics([NewTopic(TOPIC, PARTITIONS, 3)])[TOPIC].result(30)
            created.append(TOPIC)
        return False

    def delete_after_the_copy(over):
        wait_for(lambda: over.is_set() or _copied(fresh), 600, "the initial copy")
        if not over.is_set():
            admin.delete_topics([TOPIC])[TOPIC].result(30)

    with meanwhile(delete_after_the_copy):
        ran = fresh.play(extra={**SETTINGS, "quorumshift_verify": False}, kill_when=create_after_the_first_count)
    assert created and ran.code == 0 and ": dual_write" in ran.text, ran.text
    assert "1 REMOVE_TOPIC_RECORD followed the copy" in ran.text, ran.text
    assert f"PARTITION_RECORD: {PARTITIONS + 658} copied, 658 in ZooKeeper before and after" in ran.text, ran.text


def _copied(testbed):
    with testbed.zookeeper() as client:
        return client.exists("/migration") and b'"kraft_metadata_offset":-1' not in client.get("/migration")[0]


BEFORE = ("gone-before-the-copy", "changed-before-the-copy")
ACL = (ResourceType.TOPIC, BEFORE[0], ResourcePatternType.LITERAL, "User:late", "*", AclOperation.READ)


def _credential(admin, password):
    info = ScramCredentialInfo(ScramMechanism.SCRAM_SHA_512, 4096)
    admin.alter_user_scram_credentials([UserScramCredentialUpsertion("late", info, password)])["late"].result(30)


def _prepare(admin):
    for future in admin.create_topics([NewTopic(topic, 1, 3) for topic in BEFORE]).values():
        future.result(30)
    for future in admin.create_acls([AclBinding(*ACL, AclPermissionType.ALLOW)]).values():
        future.result(30)
    _credential(admin, b"first")


def _change(admin):
    """Make changes of which ZooKeeper alone keeps no trace that is older than the copy."""
    admin.delete_topics([BEFORE[0]])[BEFORE[0]].result(30)
    entry = ConfigEntry("retention.ms", "7200000", incremental_operation=AlterConfigOpType.SET)
    topic = ConfigResource(ConfigResource.Type.TOPIC, BEFORE[1], incremental_configs=[entry])
    admin.incremental_alter_configs([topic])[topic].result(30)
    _credential(admin, b"second")  # the controller writes each user's znode again after the copy


@pytest.mark.parametrize("has_servers", [True, False], ids=["with_zookeepers_files", "without"])
def test_what_clients_change_between_the_last_gate_and_the_copy(fresh, inventory, has_servers):
    """A ZooKeeper server's log proves each change. Without it the gate stays closed until the operator accepts them."""
    fresh.reset()
    fresh.wait_in_sync()
    admin, changed = fresh.admin(), []
    _prepare(admin)

    def change_after_the_gate(line):
        if COUNTED in line and not changed:
            _change(admin)
            changed.append(line)
        return False

    path = inventory(lambda groups: has_servers or groups.pop("zookeeper"))
    options = {"inventory": path, "extra": dict(VERIFIED)}
    ran = fresh.play(**options, kill_when=change_after_the_gate)
    assert changed
    if has_servers:
        assert ran.code == 0 and ": dual_write" in ran.text, ran.text
        assert "each with its record" in ran.text and "accepted" not in ran.text, ran.text
        return
    assert ran.code != 0 and "gate after_copy stays closed: incomplete" in ran.text, ran.text
    assert "the group zookeeper has no host" in ran.text, ran.text
    options["extra"]["quorumshift_accept_unverified_copy"] = True
    ran = fresh.play(**options)
    assert ran.code == 0 and ": dual_write" in ran.text and "of them accepted without a record" in ran.text, ran.text
