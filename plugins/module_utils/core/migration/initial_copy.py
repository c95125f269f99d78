# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whether the initial copy of ZooKeeper's metadata is complete, and whether ZooKeeper lost metadata meanwhile.

The copy is one metadata transaction named `ZK Migration` (KIP-868; KRaftMigrationDriver.MigrateMetadataEvent). Its
records are counted from the log and compared with what ZooKeeper had before and after.
"""

from __future__ import annotations

from typing import Mapping, NamedTuple

from ansible_collections.quorumshift.kafka.plugins.module_utils.core.migration import phase
from ansible_collections.quorumshift.kafka.plugins.module_utils.core.text.advice import format_names
from ansible_collections.quorumshift.kafka.plugins.module_utils.facts import MetadataLog, NodeFacts

TRANSACTION = "ZK Migration"
SLACK = 10
# The record that removes what has a name, after the copy
REMOVES = {
    "topics": "REMOVE_TOPIC_RECORD",
    "acls": "REMOVE_ACCESS_CONTROL_ENTRY_RECORD",
    "configs": "CONFIG_RECORD",
}
# The records by which what was copied may have left ZooKeeper again before the second count
REMOVED_BY = {
    "TOPIC_RECORD": ("REMOVE_TOPIC_RECORD",),
    "PARTITION_RECORD": ("REMOVE_TOPIC_RECORD",),
    "CONFIG_RECORD": ("CONFIG_RECORD", "REMOVE_TOPIC_RECORD"),
    "CLIENT_QUOTA_RECORD": ("CLIENT_QUOTA_RECORD",),
    "USER_SCRAM_CREDENTIAL_RECORD": ("REMOVE_USER_SCRAM_CREDENTIAL_RECORD",),
    "ACCESS_CONTROL_ENTRY_RECORD": ("REMOVE_ACCESS_CONTROL_ENTRY_RECORD",),
    "DELEGATION_TOKEN_RECORD": ("REMOVE_DELEGATION_TOKEN_RECORD",),
}


class InitialCopy(NamedTuple):
    """`damage`: the initial copy was skipped, and what ZooKeeper lost: stop the controllers. `differences`: counts that
    do not match. `moved`: what changed meanwhile. `unseen`: why the logs do not show whether the copy is complete, or
    whether there was one; None where they do. `took_s`: how long the copy took by the log, None if it is not there;
    no leader was elected meanwhile."""

    damage: list[str]
    differences: list[str]
    moved: list[str]
    records: dict[str, int]
    unseen: str | None = None
    took_s: float | None = None


def detect(before: Mapping, after: Mapping, controllers: Mapping[str, NodeFacts]) -> InitialCopy:
    """Return the comparison. `before`, `after`: {records: {record type: count}, topics: [names], acls: [text], configs:
    [text]} of ZooKeeper right before the trigger and after the initial copy; `controllers`: facts by host, of which the
    longest log counts.
    """
    log = phase.longest_log(controllers)
    transactions = log.get("zk_migration_transactions") or []
    committed = [
        transaction
        for transaction in transactions
        if transaction["name"] == TRANSACTION and transaction["outcome"] == "committed"
    ]
    missing = {kind: sorted(set(before[kind]) - set(after[kind])) for kind in ("topics", "acls", "configs")}
    if not committed:
        lost = [
            f"{len(names)} {kind} are missing in ZooKeeper: {format_names(names)} (QS-COPY-003)"
            for kind, names in missing.items()
            if names
        ]
        unseen = _explain_unseen(controllers, log)
        if unseen:
            return InitialCopy([], [], lost, {}, unseen)
        return InitialCopy(
            [
                f"the metadata log has no committed transaction {TRANSACTION!r}: the initial copy was "
                "skipped (QS-COPY-003)",
                *lost,
            ],
            [],
            [],
            {},
        )
    records, later = dict(committed[-1]["records"]), committed[-1]["later"]
    differences, moved = [], []
    # While clients change metadata, the counts at the moment of the copy are known only within a few
    moving = before != after
    for kind in sorted(set(before["records"]) | set(after["records"])):
        lower, upper = sorted((before["records"].get(kind, 0), after["records"].get(kind, 0)))
        count = records.get(kind, 0)
        if lower != upper:
            moved.append(
                f"{kind}: {before['records'].get(kind, 0)} in ZooKeeper before, "
                f"{after['records'].get(kind, 0)} after (QS-COPY-003)"
            )
        slack = SLACK + upper // 100
        less = slack if moving else 0
        removals = {name: later[name] for name in REMOVED_BY.get(kind, ()) if name in later}
        more = slack if moving or removals else 0
        if lower == upper < count <= upper + more and removals:
            listed = ", ".join(f"{number} {name}" for name, number in removals.items())
            moved.append(
                f"{kind}: {count} copied, {upper} in ZooKeeper before and after; {listed} followed the "
                "copy (QS-COPY-003)"
            )
        if not lower - less <= count <= upper + more:
            differences.append(
                f"{kind}: {count} copied, ZooKeeper had "
                f"{lower if lower == upper else f'{lower} to {upper}'} (QS-COPY-003)"
            )
    moved += [
        f"{kind} deleted meanwhile: {format_names(names)} (QS-COPY-003)" for kind, names in missing.items() if names
    ]
    lost = _find_unproven(before, after, missing, records, later)
    if not lost:
        return InitialCopy([], differences, moved, records, None, _measure(committed[-1]))
    text = (
        f"ZooKeeper had more before the initial copy: {'; '.join(lost)}. No record of the metadata log removed it, so "
        "the copy may have lost it: Kafka deletes in ZooKeeper what the copy lacks (QS-COPY-006)"
    )
    return InitialCopy([], differences, moved, records, text, _measure(committed[-1]))


def _measure(transaction: Mapping) -> float | None:
    """Return how many seconds a transaction took, by the clock of the controller that wrote its markers."""
    begin, end = transaction.get("begin_ms"), transaction.get("end_ms")
    return None if begin is None or end is None or end < begin else round((end - begin) / 1000, 3)


def _find_unproven(
    before: Mapping, after: Mapping, missing: Mapping[str, list[str]], copied: Mapping, later: Mapping
) -> list[str]:
    """Return what is gone without a record after the copy that removed it, as texts.

    A client may have deleted it between the first count and the copy. Nothing shows that: after the copy the controller
    deletes in ZooKeeper whatever its image lacks (KRaftMigrationZkWriter.handleSnapshot), so it is missing there, too.
    """
    topics = {f"topic {name} " for name in missing["topics"]}
    # A topic's configs go with it
    configs = [name for name in missing["configs"] if not any(name.startswith(topic) for topic in topics)]
    texts = [
        f"{len(names)} {kind}: {format_names(names)}"
        for kind, names in {**missing, "configs": configs}.items()
        if len(names) > later.get(REMOVES[kind], 0)
    ]
    for kind, had in sorted(before["records"].items()):
        removed = sum(later.get(name, 0) for name in REMOVED_BY.get(kind, ()))
        if kind in ("PARTITION_RECORD", "CONFIG_RECORD") and later.get("REMOVE_TOPIC_RECORD"):
            removed = had  # how many a topic had is not counted
        if copied.get(kind, 0) < had:
            texts.append(f"{kind}: {copied.get(kind, 0)} copied, {had} before")
        elif had - after["records"].get(kind, 0) > removed:
            texts.append(f"{kind}: {had} before, {after['records'].get(kind, 0)} after")
    return texts


def _explain_unseen(controllers: Mapping[str, NodeFacts], log: MetadataLog) -> str | None:
    """Return why logs without the transaction do not prove that there was no copy; None when they prove it.

    Kafka removes the log's beginning once a checkpoint has it. A committed record is in a log of any majority. The
    record of the state MIGRATION is part of the copy's transaction.
    """
    read = len(phase.metadata_logs(controllers.values()))
    start, state = log["log_start_offset"], log["zk_migration_state"]
    seen = f"the metadata log in {log['dir']} has no committed transaction {TRANSACTION!r}"
    if 2 * read <= len(controllers):
        return f"{seen}, and only {read} of {len(controllers)} controllers' logs could be read (QS-COPY-006)"
    if state == "PRE_MIGRATION" or (start == 0 and state != "MIGRATION"):
        return None
    return (
        f"{seen}. It begins at offset {start}, and its state is {state}: the transaction may have been "
        "removed (QS-COPY-006)"
    )
