# Copyright: (c) 2026, Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A migration taken back by playbooks/rollback.yml, under clients that go on: to plain ZooKeeper mode without a trace,
to hybrid brokers, and forward again; nothing that was acknowledged is lost, no metadata either."""

from __future__ import annotations

import re

import pytest
from ansible_collections.quorumshift.kafka.plugins.module_utils.formats import znodes
from confluent_kafka.admin import AlterConfigOpType, ConfigEntry, ConfigResource, NewTopic

from tests.e2e.clients import held, nothing_lost, witnessed
from tools.e2e.rollbacks import back, changed, files, no_trace, phase

MADE, EXCLUDED, CHANGED = "made.on.kraft", "scratch.rf2-2", "eu.orders"


@pytest.fixture(scope="module")
def clients(fresh, tmp_path_factory):
    """The witness on the bed; a function that stops it and returns its verdict."""
    with witnessed(tmp_path_factory.mktemp("witness")) as verdict:
        yield verdict


def migrated(testbed, expected="dual_write", **extra):
    ran = testbed.play(extra=extra, timeout=1800)
    assert ran.code == 0 and phase(ran) == expected, ran.text
    return ran


def changes_on_kraft(testbed):
    """Metadata is made, changed and deleted while KRaft's controllers have it."""
    admin = testbed.admin()
    admin.create_topics([NewTopic(MADE, 3, 3)])[MADE].result(60)
    admin.delete_topics([EXCLUDED])[EXCLUDED].result(60)
    entry = ConfigEntry("retention.ms", "123456789", incremental_operation=AlterConfigOpType.SET)
    resource = ConfigResource(ConfigResource.Type.TOPIC, CHANGED, incremental_configs=[entry])
    admin.incremental_alter_configs([resource])[resource].result(60)


def test_from_dual_write_to_zookeeper_without_a_trace(fresh, clients):
    before, plain = held(fresh), files(fresh)
    migrated(fresh)
    changes_on_kraft(fresh)
    ran = back(fresh, "zk")
    assert ran.code == 0 and phase(ran) == "zk", ran.text
    print(f"rolled back in {ran.seconds:.0f} s")
    assert files(fresh) == plain
    after = held(fresh)
    no_trace(fresh)
    assert znodes.topic_path(MADE) in after and znodes.topic_path(EXCLUDED) not in after
    touched = (znodes.topic_path(EXCLUDED), f"/config/topics/{CHANGED}", f"/config/topics/{EXCLUDED}")
    lost = {
        path: reported
        for path, reported in before.items()
        if not path.startswith(touched) and after.get(path) != reported
    }
    assert lost == {}
    assert after[f"/config/topics/{CHANGED}"][0]["config"]["retention.ms"] == "123456789"
    again = back(fresh, "zk")
    assert again.code == 0 and changed(again, fresh) == [], again.text


def test_forward_again_and_back_to_hybrid_brokers(fresh, clients):
    migrated(fresh)
    ran = back(fresh, "hybrid")
    assert ran.code == 0 and phase(ran) == "hybrid", ran.text
    again = back(fresh, "hybrid")
    assert again.code == 0 and changed(again, fresh) == [], again.text


def test_forward_once_more_to_the_end(fresh, clients):
    stopped = migrated(fresh)
    token = re.search(r"quorumshift_finalize_token=(\S+)", stopped.text).group(1)
    migrated(fresh, "finalized", quorumshift_finalize_token=token, quorumshift_soak="0s")
    ran = back(fresh, "zk")
    assert ran.code != 0 and "cannot be rolled back to ZooKeeper" in ran.text and changed(ran, fresh) == [], ran.text
    nothing_lost(clients(), 50_000)
