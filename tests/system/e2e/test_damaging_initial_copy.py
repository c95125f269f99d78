# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A quorum skips the initial copy and empties ZooKeeper (KAFKA-17146): the run stops the controllers and reports it."""

from __future__ import annotations

import json
import re

import pytest

from tests.system.testbed import faults


@pytest.fixture
def damaged(fresh):
    """The damaging run, and the topics that were in ZooKeeper before."""
    before = topics(fresh)
    return faults.migration_that_empties_zookeeper(fresh), before


def topics(testbed):
    with testbed.zookeeper() as client:
        return set(client.get_children("/brokers/topics"))


def test_the_controllers_are_stopped_and_the_backup_has_the_deleted_topics(fresh, damaged):
    ran, before = damaged
    assert ran.code != 0
    assert "the metadata log has no committed transaction 'ZK Migration': the initial copy was skipped" in ran.text, (
        ran.text
    )
    assert f"{len(before)} topics are missing in ZooKeeper" in ran.text, ran.text
    assert "The controllers were stopped and masked." in ran.text, ran.text
    assert re.search(r"The backup of ZooKeeper is in c1:/\S+/backup and c2:/\S+/backup\.", ran.text), ran.text
    assert topics(fresh) == set()
    for host in fresh.controllers:
        fresh.run(host, "systemctl start kafka-controller")
        assert fresh.run(host, "systemctl is-active kafka-controller", check=False) == "inactive", host
    for backup in fresh.on_each(["c1", "c2"], "zcat /var/lib/quorumshift/*/backup/zookeeper-*.jsonl.gz"):
        paths = {json.loads(line).get("path") for line in backup.splitlines()}
        assert {f"/brokers/topics/{topic}" for topic in before} <= paths
    again = fresh.play()
    assert again.code != 0 and "The phase is reverting" in again.text, again.text
    assert all(again.recap(host).get("changed", 0) == 0 for host in fresh.addresses), again.text
