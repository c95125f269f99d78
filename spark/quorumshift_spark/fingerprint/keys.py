# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Compares the newest record of every key of a compacted partition with the baseline. Pure.

Executors tally the keys by class (`WHICH`); the driver decides from the sums (`compare`).

Compaction keeps the newest record of a key. It drops a tombstone delete.retention.ms after its first cleaning
(KIP-534). So below the baseline's end only two changes are legitimate: a later record supersedes a key, and a deleted
key disappears.

A key that disappeared after the baseline needed a tombstone above the baseline's end. The tombstone still exists, or it
was cleaned and left an offset without a record. So no more keys can disappear than there are such offsets, and none
before delete.retention.ms has passed. Superseded records and transaction markers leave such offsets too: they refute a
deletion but never prove one.
"""

from __future__ import annotations

from typing import Dict, Mapping, NamedTuple, Sequence

from quorumshift_spark.fingerprint import retention
from quorumshift_spark.fingerprint.chunks import compare_log
from quorumshift_spark.fingerprint.findings import Findings
from quorumshift_spark.fingerprint.plan import Chunk, PartitionState

KIND = "key"
SHOWN = 20
"""Differences listed for one rule and partition; the last one holds the number of all others."""

EQUAL, SUPERSEDED, TOMBSTONE, BELOW, NEW = "equal", "superseded", "tombstone", "below", "new"
CHANGED, REGRESSED, APPEARED, VANISHED = "key_changed", "key_regressed", "key_appeared", "key_vanished"
LISTED = (CHANGED, REGRESSED, APPEARED, VANISHED, BELOW)


class Tally(NamedTuple):
    """Keys of one class: how many, how many of them have a record now, the newest timestamp of their records at the
    baseline, and up to SHOWN of them: (key hash, offset and hash then, offset and hash now; offset -1: no record)."""

    number: int = 0
    now: int = 0
    newest_ms: int = -1
    examples: Sequence[Sequence[int]] = ()


WHICH = """CASE
WHEN offset = was_offset AND content = was_content AND timestamp = was_timestamp THEN 'equal'
WHEN offset = was_offset THEN 'key_changed'
WHEN offset < was_offset THEN 'key_regressed'
WHEN was_offset IS NOT NULL AND offset >= was_end THEN 'superseded'
WHEN was_offset IS NOT NULL AND offset IS NOT NULL THEN 'key_appeared'
WHEN was_offset IS NULL AND offset >= was_start AND offset < was_end THEN 'key_appeared'
WHEN was_offset IS NULL THEN 'new'
WHEN deletes AND was_offset < log_start THEN 'below'
WHEN was_tombstone THEN 'tombstone'
ELSE 'key_vanished' END"""
"""The class of a key, in SQL. Its newest record: offset, content, timestamp, tombstone, and the same with `was_` at the
baseline; null without one. Its partition: was_start, was_end of the baseline, 0 without one; log_start, deletes of now,
null without one."""


def compare(
    was: PartitionState,
    now: PartitionState,
    tallies: Mapping[str, Tally],
    kept_bytes: int,
    written: int,
    elapsed_ms: int,
    now_ms: int,
    purged_topics: Sequence[str] = (),
    unread: str | None = None,
) -> Findings:
    """Compare a compacted partition.

    :arg tallies: of its keys, by class.
    :arg kept_bytes: of its log; `written`: records that its batches above the baseline's end have, by their headers.
    :arg elapsed_ms: since the baseline was read: while it is shorter than delete.retention.ms, a tombstone written
        after the baseline still exists.
    :arg unread: why the partition could not be read to its end. Its keys are not compared then.
    """
    findings = compare_log(was, now)
    if unread:
        findings.skip(KIND, [*was.tp], f"{was.topic}-{was.partition} could not be read to its end: {unread}")
        return findings
    of = {name: tallies.get(name, Tally()) for name in (EQUAL, SUPERSEDED, TOMBSTONE, NEW, *LISTED)}
    findings.count(KIND, "match", of[EQUAL].number)
    findings.explain(KIND, "superseded by a later record", of[SUPERSEDED].number)
    findings.explain(KIND, "tombstone removed by the cleaner", of[TOMBSTONE].number)
    findings.explain(KIND, "new since the baseline", of[NEW].number)
    for rule in (CHANGED, REGRESSED):
        _differ(rule, of[rule], was, findings)
    # A record that the baseline lacked: of a key of the baseline, or of a key that is not in it
    _differ(APPEARED, of[APPEARED], was, findings)
    if of[BELOW].number:
        removed = [_as_chunk(was, of[BELOW])]
        reason = retention.explains(was, now, removed, kept_bytes, now_ms, purged_topics)
        if reason and reason.certain:
            findings.explain(KIND, f"below the log start ({reason.text})", of[BELOW].number)
        elif reason:
            findings.skip(KIND, [*was.tp], retention.undecided(was, now, reason), of[BELOW].number)
        else:
            _differ(VANISHED, of[BELOW], was, findings, "left_only")
    # Each offset that still has a record, of whatever key or transaction, cannot have been a tombstone
    room = max(0, now.end - was.end - written)
    _vanished(was, now, of, room, elapsed_ms, retention.purged(was.topic, purged_topics), findings)
    return findings


def _vanished(was, now, of, room, elapsed_ms, deletes, findings):
    """Distinguish deleted keys from lost ones. `room`: offsets above the baseline's end without a record; `deletes`:
    whether the operator says that clients delete keys."""
    lost = of[VANISHED]
    if not lost.number:
        return
    retained = (was.delete_retention_ms, now.delete_retention_ms)
    if lost.number > room or elapsed_ms < min(retained):
        _differ(VANISHED, lost, was, findings, "left_only")
        return
    total = sum(counted.number for name, counted in of.items() if name not in (NEW, APPEARED))
    why = (
        f"{was.topic}-{was.partition}: {lost.number} of {total} keys disappeared and have no tombstone. It can have "
        f"been cleaned: delete.retention.ms was {retained[0]} and is {retained[1]}, and {room} offsets above the "
        f"baseline's end {was.end} have no record, so at most as many keys were deleted"
    )
    if deletes:
        findings.excuse(KIND, [*was.tp], f"{why}. Clients delete keys (quorumshift_fingerprint_purged)", lost.number)
        return
    findings.skip(
        KIND,
        [*was.tp],
        f"{why}. But superseded records and transaction markers are among them. If clients delete keys of this topic, "
        "add it to quorumshift_fingerprint_purged and run the playbook again",
        lost.number,
    )


def _differ(rule, chosen, was, findings, outcome="differ"):
    findings.count(KIND, outcome, chosen.number)
    for key, offset, content, now_offset, now_content in chosen.examples[:SHOWN]:
        before, after = _side(offset, content), _side(now_offset, now_content)
        findings.differ(KIND, [was.topic, was.partition, _hex(key)], "newest", before, after, rule)
    more = chosen.number - len(chosen.examples[:SHOWN])
    if more > 0:
        findings.differ(KIND, [was.topic, was.partition], "newest", {"further keys": more}, None, rule)


def _side(offset: int, content: int) -> Dict[str, object] | None:
    return None if offset < 0 else {"offset": offset, "hash": _hex(content)}


def _hex(value: int) -> str:
    return f"{value & 0xFFFFFFFFFFFFFFFF:016x}"


def _as_chunk(was: PartitionState, removed: Tally) -> Chunk:
    """Return the newest of removed records as a chunk below any log start, for retention.explains."""
    time = removed.newest_ms
    return Chunk(was.topic, was.partition, 0, 0, 1, 1, 0, 1, 0, 0, time, time, 0, 0, "")
