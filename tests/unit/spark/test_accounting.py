# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The account is exact and finds a row that is lost or counted twice."""

from __future__ import annotations

import pytest
from quorumshift_spark import accounting, parity, rows
from quorumshift_spark import normal_form as form
from quorumshift_spark.compare import DIFFER, LEFT_ONLY, MATCH, SKIPPED, Outcome
from quorumshift_spark.rules import ZOOKEEPER_LOG, Comparison
from quorumshift_spark.views import Absent
from quorumshift_spark.views.source import Summary

PAIR = Comparison("zookeeper", "metadata_log", ZOOKEEPER_LOG, ("topic", "acl"))
BUNDLES = parity.bundled([PAIR])
T, U, V = (("topic", f'["{name}"]') for name in "tuv")


def entity(name):
    return form.topic(name, "id")


def account(read, last=None, beyond=None):
    first = {
        T: {"zookeeper": entity("t"), "metadata_log": entity("t")},
        U: {"zookeeper": entity("u")},
        V: {"zookeeper": entity("v"), "metadata_log": entity("v")},
    }
    outcomes = {
        T: {PAIR: Outcome(DIFFER)},
        U: {PAIR: Outcome(LEFT_ONLY)},
        V: {PAIR: Outcome(MATCH, (), "changed since")},
    }
    return accounting.account(BUNDLES, {(0, "topic"): 5}, beyond or {}, outcomes, first, last or first, read)


def test_read_is_the_sum_of_the_outcomes():
    counted = account({"zookeeper": {"topic": 8}, "metadata_log": {"topic": 7}})
    assert counted.wrong == []
    topics = counted.counts[PAIR]["topic"]
    expected = {"read": 8, "match": 6, "explained": 1, "differ": 1, "left_only": 1, "right_only": 0, "skipped": 0}
    assert topics == expected
    assert counted.counts[PAIR]["acl"]["read"] == 0
    assert (
        accounting.by_kind({PAIR: counted.counts[PAIR], PAIR._replace(right="other"): counted.counts[PAIR]})["topic"][
            "read"
        ]
        == 16
    )


@pytest.mark.parametrize(
    "read",
    [
        {"zookeeper": {"topic": 9}, "metadata_log": {"topic": 7}},  # a row was lost
        {"zookeeper": {"topic": 8}, "metadata_log": {"topic": 6}},  # a row was counted twice
        {"zookeeper": {"topic": 8, "acl": 1}, "metadata_log": {"topic": 7}},  # a kind was left out
        {"zookeeper": {"topic": 8}},
    ],
)
def test_lost_or_doubled_row_is_named(read):
    (wrong, *_more) = account(read).wrong
    assert "were counted" in wrong


def test_entities_that_change_during_re_checks_are_counted():
    last = {
        T: {"zookeeper": entity("t"), "metadata_log": entity("t")},
        U: {"zookeeper": Absent({}), "metadata_log": Absent({})},
        V: {"zookeeper": entity("v"), "metadata_log": entity("v")},
    }
    outcomes = {T: {PAIR: Outcome(MATCH)}, U: {PAIR: Outcome(None)}, V: {PAIR: Outcome(MATCH)}}
    first = {**last, U: {"zookeeper": entity("u")}}
    read = {"zookeeper": {"topic": 8}, "metadata_log": {"topic": 7}}
    counted = accounting.account(BUNDLES, {(0, "topic"): 5}, {}, outcomes, first, last, read)
    assert counted.wrong == []
    assert counted.counts[PAIR]["topic"]["read"] == 7
    assert accounting.moved(first, last, "zookeeper") == 1


def test_keys_beyond_the_limit_are_skipped():
    counted = account({"zookeeper": {"topic": 8}, "metadata_log": {"topic": 7}}, beyond={(0, "topic"): 3})
    assert counted.counts[PAIR]["topic"][SKIPPED] == 3
    assert counted.counts[PAIR]["topic"]["read"] == 11


def part(number=0, of=2, **more):
    counts = {"counts": {"topic": 3}, "kept": {"topic": 1}}  # the others are those of another view
    return Summary(number, of, 1.0, **{"state": {"zxid": 5}, **counts, **more})


@pytest.mark.parametrize(
    ("arrived", "parts", "error", "lost"),
    [
        ({"topic": 2}, [part(1), part(0, state={"zxid": 3})], None, []),
        ({"topic": 2}, [part()], "1 of 2 parts were read to the end", []),
        ({"topic": 2}, [part(), part()], "2 of 2 parts were read to the end", []),
        ({"topic": 2}, [], "0 of its parts were read to the end", []),
        ({"topic": 1}, [part(0), part(1)], None, ["2 topic rows were read and 1 arrived"]),
        ({"topic": 2, "acl": 1}, [part(0), part(1)], None, ["0 acl rows were read and 1 arrived"]),
        ({}, [part(0), part(1, error="no answer")], "no answer", []),
    ],
)
def test_arrived_rows_are_checked_against_the_counts_of_the_parts(arrived, parts, error, lost):
    reading = rows._reading(arrived, parts)
    assert (reading.error, reading.lost) == (error, lost)
    if error is None and not lost:
        assert (reading.state, reading.read) == ({"zxid": 3}, {"topic": 6})


def test_a_view_that_stands_for_another_has_its_own_counts_unless_nothing_of_it_was_read():
    """A log that lacks a topic must not be counted as the leader's."""
    names = ["metadata_log", "metadata_log:102", "metadata_log:103"]
    topics = {"metadata_log": (5, 5), "metadata_log:102": (0, 0), "metadata_log:103": (4, 1)}
    parts = {
        name: [part(of=1, counts={"topic": count}, kept={"topic": kept})] for name, (count, kept) in topics.items()
    }
    copies = {
        "metadata_log:102": rows.Copy("metadata_log", frozenset()),
        "metadata_log:103": rows.Copy("metadata_log", frozenset({0, 7})),
    }
    arrived = {name: {"topic": kept} for name, (_count, kept) in topics.items()}
    found = rows.readings(names, parts, copies, arrived)
    assert [found[name].read["topic"] for name in names] == [5, 5, 4]
    assert not any(reading.lost or reading.error for reading in found.values())
