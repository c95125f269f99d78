# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The initial copy compared: as recorded, and with records lost, skipped or changed."""

from __future__ import annotations

import pytest
from ansible_collections.quorumshift.kafka.plugins.module_utils.core.migration import initial_copy

from tests.unit.core import recorded

RECORD = {"topics": "TOPIC_RECORD", "acls": "ACCESS_CONTROL_ENTRY_RECORD", "configs": "CONFIG_RECORD"}


@pytest.fixture
def seen():
    copy = recorded.facts("copy")
    for transaction in copy["transactions"]:
        transaction["later"] = {}
    return copy


def detect(seen, read=1, controllers=1, **log):
    log = {"dir": "/log", "log_start_offset": 0, "log_end_offset": 900, "zk_migration_state": "PRE_MIGRATION", **log}
    log["zk_migration_transactions"] = seen["transactions"]
    logs = [log] * read + [None] * (controllers - read)
    nodes = {f"c{number}": {"role": "controller", "metadata_log": own_log} for number, own_log in enumerate(logs)}
    return initial_copy.detect(seen["before"], seen["after"], nodes)


def transaction(outcome, records, name=initial_copy.TRANSACTION):
    return {"name": name, "outcome": outcome, "records": records, "later": {}}


def without(seen, side, kind, count):
    """Remove `count` names of a kind and their records from one side, and return the names."""
    seen[side][kind], removed = seen[side][kind][count:], seen[side][kind][:count]
    seen[side]["records"][RECORD[kind]] -= count
    return removed


def test_the_recorded_copy_is_complete(seen):
    result = detect(seen)
    assert result.damage == result.differences == result.moved == []
    for kind, count in seen["before"]["records"].items():
        assert count > 0 and result.records[kind] == count


@pytest.mark.parametrize(
    "transactions",
    [
        [],
        [transaction("aborted", {"TOPIC_RECORD": 68})],
        [transaction("open", {})],
        [transaction("committed", {}, "Bootstrap records")],
    ],
)
def test_a_skipped_copy_is_damage(seen, transactions):
    seen["transactions"] = transactions
    removed = without(seen, "after", "topics", 7)
    result = detect(seen)
    assert result.damage[0] == (
        "the metadata log has no committed transaction 'ZK Migration': the initial copy was skipped (QS-COPY-003)"
    )
    assert result.damage[1] == f"7 topics are missing in ZooKeeper: {', '.join(removed[:5])} and 2 more (QS-COPY-003)"
    assert result.records == {} and len(result.damage) == 2


@pytest.mark.parametrize(
    ("start", "state", "skipped"),
    [
        (0, "PRE_MIGRATION", True),
        (0, None, True),
        (0, "MIGRATION", False),
        (700, "PRE_MIGRATION", True),
        (700, "MIGRATION", False),
        (700, "POST_MIGRATION", False),
        (700, None, False),
    ],
)
def test_a_log_without_its_beginning_proves_no_skipped_copy(seen, start, state, skipped):
    seen["transactions"] = []
    (removed,) = without(seen, "after", "topics", 1)
    result = detect(seen, log_start_offset=start, zk_migration_state=state)
    assert bool(result.damage) == skipped and result.differences == []
    if not skipped:
        assert result.unseen == (
            "the metadata log in /log has no committed transaction 'ZK Migration'. It begins at offset "
            f"{start}, and its state is {state}: the transaction may have been removed (QS-COPY-006)"
        )
        assert result.moved == [f"1 topics are missing in ZooKeeper: {removed} (QS-COPY-003)"]


@pytest.mark.parametrize(("read", "controllers", "skipped"), [(1, 3, False), (2, 3, True), (1, 2, False), (1, 1, True)])
def test_only_a_majority_of_the_logs_proves_a_skipped_copy(seen, read, controllers, skipped):
    seen["transactions"] = []
    result = detect(seen, read, controllers)
    assert bool(result.damage) == skipped
    assert skipped or f"only {read} of {controllers} controllers' logs could be read" in result.unseen


def test_the_last_committed_transaction_counts(seen):
    seen["transactions"].insert(0, transaction("committed", {}))
    seen["transactions"].append(transaction("aborted", {}))
    assert detect(seen).differences == []


REMOVES = {**initial_copy.REMOVES}


@pytest.mark.parametrize("kind", RECORD)
def test_a_deletion_before_the_copy_is_not_proven(seen, kind):
    """What the copy loses, the controller deletes in ZooKeeper: both look the same."""
    (removed,) = without(seen, "after", kind, 1)
    seen["transactions"][-1]["records"][RECORD[kind]] -= 1
    for later in ({}, {REMOVES[kind]: 9}):  # records of others
        seen["transactions"][-1]["later"] = later
        result = detect(seen)
        assert result.damage == result.differences == []
        assert f"{kind} deleted meanwhile: {removed} (QS-COPY-003)" in result.moved
        assert f"{RECORD[kind]}: {result.records[RECORD[kind]]} copied" in result.unseen


@pytest.mark.parametrize("kind", RECORD)
def test_a_deletion_after_the_copy_has_a_record(seen, kind):
    (removed,) = without(seen, "after", kind, 1)
    result = detect(seen)
    assert f"1 {kind}: {removed}. No record" in result.unseen or f"1 {kind}: {removed}; " in result.unseen
    seen["transactions"][-1]["later"] = {REMOVES[kind]: 1}
    result = detect(seen)
    assert result.damage == result.differences == [] and result.unseen is None
    assert f"{kind} deleted meanwhile: {removed} (QS-COPY-003)" in result.moved


def test_half_of_the_topics_that_are_gone_are_not_excused(seen):
    topics = seen["before"]["topics"]
    removed = without(seen, "after", "topics", len(topics) // 2)
    seen["transactions"][-1]["records"]["TOPIC_RECORD"] -= len(removed)
    seen["transactions"][-1]["later"] = {"REMOVE_TOPIC_RECORD": 2}
    assert f"{len(removed)} topics: {removed[0]}" in detect(seen).unseen


@pytest.mark.parametrize("kind", ["CLIENT_QUOTA_RECORD", "USER_SCRAM_CREDENTIAL_RECORD", "DELEGATION_TOKEN_RECORD"])
def test_what_has_no_name_is_counted(seen, kind):
    seen["after"]["records"][kind] -= 1
    assert f"{kind}: {seen['before']['records'][kind]} before" in detect(seen).unseen
    seen["transactions"][-1]["later"] = {initial_copy.REMOVED_BY[kind][0]: 1}
    assert detect(seen).unseen is None


def test_configs_go_with_their_topic(seen):
    (topic,) = without(seen, "after", "topics", 1)
    gone = [name for name in seen["after"]["configs"] if name.startswith(f"topic {topic} ")]
    seen["after"]["configs"] = [name for name in seen["after"]["configs"] if name not in gone]
    seen["after"]["records"]["CONFIG_RECORD"] -= len(gone)
    seen["transactions"][-1]["later"] = {"REMOVE_TOPIC_RECORD": 1}
    assert detect(seen).unseen is None


@pytest.mark.parametrize("copied_too", [True, False])
def test_a_creation_during_the_copy_is_a_change(seen, copied_too):
    seen["after"]["topics"].append("new")
    seen["after"]["records"]["TOPIC_RECORD"] += 1
    seen["transactions"][-1]["records"]["TOPIC_RECORD"] += copied_too
    result = detect(seen)
    before = seen["before"]["records"]["TOPIC_RECORD"]
    assert result.damage == result.differences == []
    assert result.moved == [f"TOPIC_RECORD: {before} in ZooKeeper before, {before + 1} after (QS-COPY-003)"]


@pytest.mark.parametrize("kind", ["PARTITION_RECORD", "CLIENT_QUOTA_RECORD", "DELEGATION_TOKEN_RECORD"])
@pytest.mark.parametrize("off", [-1, 1])
def test_a_wrong_count_is_a_difference(seen, kind, off):
    seen["transactions"][-1]["records"][kind] += off
    held = seen["before"]["records"][kind]
    result = detect(seen)
    assert result.damage == []
    assert result.differences == [f"{kind}: {held + off} copied, ZooKeeper had {held} (QS-COPY-003)"]


@pytest.mark.parametrize(("later", "explained"), [({"REMOVE_TOPIC_RECORD": 1}, True), ({"TOPIC_RECORD": 1}, False)])
def test_a_topic_that_only_the_copy_has_was_removed_after_it(seen, later, explained):
    """A client creates it after the first count and deletes it before the second one."""
    copy, held = seen["transactions"][-1], dict(seen["before"]["records"])
    copy["records"]["TOPIC_RECORD"] += 1
    copy["records"]["PARTITION_RECORD"] += 2
    copy["later"] = later
    result = detect(seen)
    assert result.damage == [] and bool(result.differences) != explained
    if explained:
        assert result.moved == [
            f"{kind}: {held[kind] + more} copied, {held[kind]} in ZooKeeper before and after; 1 REMOVE_TOPIC_RECORD "
            "followed the copy (QS-COPY-003)"
            for kind, more in (("PARTITION_RECORD", 2), ("TOPIC_RECORD", 1))
        ]


def test_a_removal_after_the_copy_excuses_no_missing_record(seen):
    copy = seen["transactions"][-1]
    copy["records"]["TOPIC_RECORD"] -= 1
    copy["later"] = {"REMOVE_TOPIC_RECORD": 5}
    held = seen["before"]["records"]["TOPIC_RECORD"]
    assert detect(seen).differences == [f"TOPIC_RECORD: {held - 1} copied, ZooKeeper had {held} (QS-COPY-003)"]


def test_a_count_beyond_the_changes_is_a_difference(seen):
    seen["after"]["records"]["CLIENT_QUOTA_RECORD"] += 2
    held = seen["before"]["records"]["CLIENT_QUOTA_RECORD"]
    count = seen["transactions"][-1]["records"]["CLIENT_QUOTA_RECORD"] = held + 2 + initial_copy.SLACK
    assert detect(seen).differences == []
    seen["transactions"][-1]["records"]["CLIENT_QUOTA_RECORD"] += 1
    assert detect(seen).differences == [
        f"CLIENT_QUOTA_RECORD: {count + 1} copied, ZooKeeper had {held} to {held + 2} (QS-COPY-003)"
    ]


def test_a_kind_that_was_not_copied_is_a_difference(seen):
    del seen["transactions"][-1]["records"]["USER_SCRAM_CREDENTIAL_RECORD"]
    held = seen["before"]["records"]["USER_SCRAM_CREDENTIAL_RECORD"]
    assert detect(seen).differences == [f"USER_SCRAM_CREDENTIAL_RECORD: 0 copied, ZooKeeper had {held} (QS-COPY-003)"]


@pytest.mark.parametrize(
    ("begin", "end", "took"), [(1_000, 1_412, 0.412), (1_000, 1_000, 0), (2, 1, None), (None, 1, None), (1, None, None)]
)
def test_how_long_the_copy_took(seen, begin, end, took):
    for each in seen["transactions"]:
        each.update(begin_ms=begin, end_ms=end)
    assert detect(seen).took_s == took
