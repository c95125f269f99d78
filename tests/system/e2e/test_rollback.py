# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""playbooks/rollback.yml while clients run: to plain ZooKeeper mode without a trace, to hybrid, then forward again.

No acknowledged message and no metadata is lost.
"""

from __future__ import annotations

import re

import pytest
from ansible_collections.quorumshift.kafka.plugins.module_utils.formats.zookeeper import znodes
from confluent_kafka.admin import AlterConfigOpType, ConfigEntry, ConfigResource, NewTopic

from tests.system.e2e.clients import assert_nothing_lost, lasting_znodes, running_clients
from tests.system.e2e.rollbacks import back, changed, files, no_trace, phase

CREATED, DELETED, CHANGED = "created.on.kraft", "scratch.rf2-2", "eu.orders"


@pytest.fixture(scope="module")
def clients(fresh, tmp_path_factory):
    """Verification clients; a function that stops them and returns their verdict."""
    with running_clients(tmp_path_factory.mktemp("clients")) as stop:
        yield stop


def migrate(testbed, expected="dual_write", **extra):
    ran = testbed.play(extra=extra, timeout=1800)
    assert ran.code == 0 and phase(ran) == expected, ran.text
    return ran


def change_metadata(testbed):
    """Create a topic, delete one, and change a config."""
    admin = testbed.admin()
    admin.create_topics([NewTopic(CREATED, 3, 3)])[CREATED].result(60)
    admin.delete_topics([DELETED])[DELETED].result(60)
    entry = ConfigEntry("retention.ms", "123456789", incremental_operation=AlterConfigOpType.SET)
    resource = ConfigResource(ConfigResource.Type.TOPIC, CHANGED, incremental_configs=[entry])
    admin.incremental_alter_configs([resource])[resource].result(60)


def test_from_dual_write_to_zookeeper_without_a_trace(fresh, clients):
    before, plain = lasting_znodes(fresh), files(fresh)
    migrate(fresh)
    change_metadata(fresh)
    ran = back(fresh, "zk")
    assert ran.code == 0 and phase(ran) == "zk", ran.text
    print(f"rolled back in {ran.seconds:.0f} s")
    assert files(fresh) == plain
    after = lasting_znodes(fresh)
    no_trace(fresh)
    assert znodes.topic_path(CREATED) in after and znodes.topic_path(DELETED) not in after
    changed_paths = (znodes.topic_path(DELETED), f"/config/topics/{CHANGED}", f"/config/topics/{DELETED}")
    kept = {path: value for path, value in before.items() if not path.startswith(changed_paths)}
    assert {path: value for path, value in kept.items() if after.get(path) != value} == {}
    assert after[f"/config/topics/{CHANGED}"][0]["config"]["retention.ms"] == "123456789"
    again = back(fresh, "zk")
    assert again.code == 0 and changed(again, fresh) == [], again.text


def test_a_second_migration_is_rolled_back_to_hybrid(fresh, clients):
    migrate(fresh)
    ran = back(fresh, "hybrid")
    assert ran.code == 0 and phase(ran) == "hybrid", ran.text
    again = back(fresh, "hybrid")
    assert again.code == 0 and changed(again, fresh) == [], again.text


def test_no_rollback_after_finalization(fresh, clients):
    stopped = migrate(fresh)
    token = re.search(r"quorumshift_finalize_token=(\S+)", stopped.text).group(1)
    migrate(fresh, "finalized", quorumshift_finalize_token=token, quorumshift_soak="0s")
    ran = back(fresh, "zk")
    assert ran.code != 0 and "cannot be rolled back to ZooKeeper" in ran.text and changed(ran, fresh) == [], ran.text
    assert_nothing_lost(clients(), 50_000)
