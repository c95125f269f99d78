# Copyright: (c) 2026, Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The Spark job data_fingerprint on all topics of the bed: it agrees when nothing is wrong, and finds what was lost."""

from __future__ import annotations

import json
import re

import pytest
from confluent_kafka import TopicPartition

from tests.e2e import comparing

SINGLE = "scratch_rf1_0"  # one replica: what its broker loses is lost
RECORDS = 500


def verify(testbed):
    """Compare metadata and records of everything."""
    return comparing.verify(testbed, job=comparing.RECORDS, timeout=1800, quorumshift_fingerprint_topics=["*"])


def fill(testbed, token):
    """Records in each partition of the topic with one replica, and of another one."""
    producer = testbed.producer()
    for number in range(RECORDS):
        for topic in (SINGLE, "eu.orders"):
            producer.produce(topic, f"{token} {number}".encode(), key=str(number).encode(), partition=number % 3)
    assert producer.flush(60) == 0


@pytest.fixture(scope="module")
def compared(fresh):
    """A baseline of everything, and what the first run said."""
    fill(fresh, "first")
    ran, result = verify(fresh)
    assert ran.code == 0, ran.text
    return fresh, ran, result


def test_the_first_run_takes_the_baseline(compared):
    _testbed, ran, result = compared
    assert result["verdict"] == "pass", result["reasons"]
    assert re.search(r"[1-9]\d+ records are kept as the baseline", ran.text), ran.text
    state = result["views"]["cluster"]["state"]
    assert state["topics"] > 60 and state["records"] >= 2 * RECORDS, state


def test_the_next_one_agrees_while_more_comes(compared):
    testbed = compared[0]
    fill(testbed, "second")
    ran, result = verify(testbed)
    assert ran.code == 0 and result["verdict"] == "pass", (ran.text, result["reasons"])
    assert re.search(r"[1-9]\d+ records; [1-9]\d+ comparisons with the baseline agree", ran.text), ran.text


def test_records_that_are_gone_and_others_in_their_place(compared):
    """A log that is empty after a restart and filled again; records deleted by hand, which no retention explains."""
    testbed = compared[0]
    admin = testbed.admin()
    partition = admin.list_topics(SINGLE, timeout=20).topics[SINGLE].partitions[0]
    host = next(one for one in testbed.brokers if testbed.node_id(one) == partition.leader)
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
    found = {(one["kind"], json.loads(one["key"])[0], json.loads(one["key"])[1]) for one in result["differences"]}
    assert {(topic, number) for _kind, topic, number in found} >= {(SINGLE, 0), ("eu.orders", 1)}, found
    assert not {topic for _kind, topic, _number in found} - {SINGLE, "eu.orders"}, found
    assert f"{SINGLE}" in ran.text and "stays closed: differ: " in ran.text, ran.text
