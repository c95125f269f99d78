# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The Spark job data_fingerprint on all topics: it passes on a healthy cluster and finds lost records."""

from __future__ import annotations

import json
import re

import pytest
from confluent_kafka import TopicPartition

from tests.system.e2e import comparing

SINGLE = "scratch_rf1_0"  # one replica: records that its broker loses are lost
RECORDS = 500


def verify(testbed):
    """Compare the metadata and the records of all topics."""
    return comparing.verify(testbed, job=comparing.RECORDS, timeout=1800, quorumshift_fingerprint_topics=["*"])


def produce(testbed, prefix):
    """Write records to each partition of two topics, one of them with one replica."""
    producer = testbed.producer()
    for number in range(RECORDS):
        for topic in (SINGLE, "eu.orders"):
            producer.produce(topic, f"{prefix} {number}".encode(), key=str(number).encode(), partition=number % 3)
    assert producer.flush(60) == 0


@pytest.fixture(scope="module")
def compared(fresh):
    """The testbed with a baseline, the first run and its result."""
    produce(fresh, "first")
    ran, result = verify(fresh)
    assert ran.code == 0, ran.text
    return fresh, ran, result


def test_the_first_run_creates_the_baseline(compared):
    _testbed, ran, result = compared
    assert result["verdict"] == "pass", result["reasons"]
    assert re.search(r"[1-9]\d+ records are kept as the baseline", ran.text), ran.text
    state = result["views"]["cluster"]["state"]
    assert state["topics"] > 60 and state["records"] >= 2 * RECORDS, state


def test_the_next_run_passes_with_more_records(compared):
    testbed = compared[0]
    produce(testbed, "second")
    ran, result = verify(testbed)
    assert ran.code == 0 and result["verdict"] == "pass", (ran.text, result["reasons"])
    assert re.search(r"[1-9]\d+ records; [1-9]\d+ comparisons with the baseline agree", ran.text), ran.text


def test_lost_and_deleted_records_are_found(compared):
    """One log is emptied and filled again; in another one records are deleted by hand, not by retention."""
    testbed = compared[0]
    admin = testbed.admin()
    partition = admin.list_topics(SINGLE, timeout=20).topics[SINGLE].partitions[0]
    host = next(host for host in testbed.brokers if testbed.node_id(host) == partition.leader)
    testbed.run(host, f"systemctl stop kafka; rm -r /var/lib/kafka/data*/{SINGLE}-0")
    testbed.run(host, "systemctl start kafka")
    testbed.wait_in_sync()
    producer = testbed.producer()
    for number in range(RECORDS):
        producer.produce(SINGLE, f"other {number}".encode(), key=str(number).encode(), partition=0)
    assert producer.flush(60) == 0
    cut = TopicPartition("eu.orders", 1, 20)
    admin.delete_records([cut])[cut].result(60)
    ran, result = verify(testbed)
    assert ran.code != 0 and result["verdict"] == "differ", (ran.text, result["reasons"])
    found = {tuple(json.loads(difference["key"])[:2]) for difference in result["differences"]}
    assert found >= {(SINGLE, 0), ("eu.orders", 1)}, found
    assert {topic for topic, _partition in found} <= {SINGLE, "eu.orders"}, found
    assert f"{SINGLE}" in ran.text and "stays closed: differ: " in ran.text, ran.text
