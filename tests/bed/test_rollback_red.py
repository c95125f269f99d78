# Copyright: (c) 2026, Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A migration is taken back because something is red, a log directory of a broker. And not while ZooKeeper is down."""

from __future__ import annotations

import re

import pytest
from ansible_collections.quorumshift.kafka.plugins.module_utils.probes import topics

from tests.bed.bedside import wait_for
from tests.bed.going_back import back, changed, files, no_trace, phase

FAST = {"quorumshift_verify": False, "quorumshift_soak": "0s"}
SICK = "b3"


def behind(bed):
    """How many partitions lack a replica; None while it cannot be read."""
    connections = bed.connections()
    told = topics.read(connections.bootstrap, connections.client, 5)
    every = [one for topic in told.get("partitions", {}).values() for one in topic.values()]
    alive = told["reached"] and len(told["brokers"]) == len(bed.brokers)
    return sum(len(one["isr"]) < len(one["replicas"]) for one in every) if alive else None


@pytest.fixture(scope="module")
def red(fresh):
    """Dual-write, a log directory of a broker unreadable; the files of before."""
    plain = files(fresh)
    ran = fresh.play(extra=FAST)
    assert ran.code == 0 and phase(ran) == "dual_write", ran.text
    directories = fresh.run(SICK, "sed -n 's/^log.dirs *= *//p' /etc/kafka/server.properties").strip().split(",")
    lost = directories[-1]  # the first one has the broker's metadata log
    fresh.run(SICK, f"chown root: {lost} && chmod 0 {lost} && systemctl restart kafka")
    wait_for(lambda: behind(fresh), 120, "partitions that lack a replica")
    seen = []

    def stays():
        seen.append(behind(fresh))
        return len(seen) > 3 and seen[-1] and len(set(seen[-4:])) == 1

    wait_for(stays, 120, "the other replicas to catch up")
    yield plain
    fresh.run(SICK, f"chown kafka: {lost} && chmod 0755 {lost} && systemctl restart kafka")


def test_without_zookeeper_there_is_no_way_back(fresh, red):
    fresh.on_each(["b1", "b2"], "systemctl stop zookeeper")
    try:
        ran = back(fresh, "zk", **FAST)
    finally:
        fresh.on_each(["b1", "b2"], "systemctl start zookeeper")
    assert ran.code != 0 and "There is no way back but to it: get its quorum back first" in ran.text, ran.text
    assert changed(ran, fresh) == [], ran.text


def test_what_is_red_closes_the_gate(fresh, red):
    ran = back(fresh, "zk", quorumshift_accept="000000", **FAST)
    assert ran.code != 0 and re.search(r"partitions? under-replicated: .*; accepted as it is by -e", ran.text), ran.text
    assert changed(ran, fresh) == [], ran.text


def test_and_opens_it_by_its_word(fresh, red):
    shut = back(fresh, "zk", quorumshift_gate_timeout_s=20, **FAST)
    (word,) = set(re.findall(r"quorumshift_accept=(\w{6})", shut.text))
    ran = back(fresh, "zk", quorumshift_accept=word, **FAST)
    assert ran.code == 0 and phase(ran) == "zk", ran.text
    assert files(fresh) == red
    no_trace(fresh)
    assert behind(fresh)
    again = back(fresh, "zk", **FAST)
    assert again.code == 0 and changed(again, fresh) == [], again.text
