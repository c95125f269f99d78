# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The excuses: when two unequal sides are no divergence. Each has the record that proves it. Pure.

`EXCUSES` is the table that the code and the docs share. What lasts between two gates is excused by `since`, what moves
while a gate runs by quorumshift_spark.recheck, and what only one side can have by rules.allowed_on_one_side.

Once KRaft owns /controller, ZooKeeper proves nothing by itself. After the initial copy and after each failover the
controller deletes there whatever its image lacks (KRaftMigrationZkWriter.handleSnapshot). A loss between ZooKeeper and
the image is then missing on both sides, with a newer zxid. So a record of the log decides.
"""

from __future__ import annotations

import json
from typing import Any, Collection, Dict, Iterable, Mapping, NamedTuple, Protocol, Sequence, Tuple

from ansible_collections.quorumshift.kafka.plugins.module_utils.formats.zookeeper import znodes

from quorumshift_spark import rules
from quorumshift_spark.compare import (
    DIFFER,
    LEFT_ONLY,
    MATCH,
    OF_DUAL_WRITE,
    RIGHT_ONLY,
    SKIPPED,
    Difference,
    Outcome,
    Side,
    compare,
)
from quorumshift_spark.normal_form import Entity, key_of
from quorumshift_spark.views import Absent, Key


class Excuse(NamedTuple):
    """`excuses`: which difference; `record`: what proves it; `without`: the verdict on a difference without it."""

    name: str
    excuses: str
    record: str
    without: str


LOG_RECORD = Excuse(
    "log record",
    "a change or removal since the baseline, in the log; in ZooKeeper as well, once KRaft owns `/controller`",
    "the last record of the entity in the metadata log, at or after the baseline's end and after the initial copy; for "
    "a topic with another id the record that removed the old one",
    "`differ`; `incomplete` where Kafka has deleted records since the baseline, or without a log",
)
BASELINE_LOG = Excuse(
    "log at the baseline",
    "ZooKeeper changed since the baseline to what the log had then: it was behind at the baseline's first reading",
    "the entity of the log in the baseline, with its record since the copy, and a newer zxid of the znodes",
    "as above",
)
PARTITION_EPOCH = Excuse(
    "partition epoch",
    "a change of a partition since the baseline whose record Kafka has deleted from the log",
    "its partition epoch in the log, above that in the baseline's log, with the same topic id: each record raises it",
    "as above",
)
BEFORE_KRAFT = Excuse(
    "before KRaft",
    "a change or removal in ZooKeeper between a baseline and the initial copy",
    "the zxid of the entity's znodes, at most that of the `/controller` by which the leader of the copy took over",
    "`incomplete`: the copy may have lost it",
)
COPIED_VERSION = Excuse(
    "copied version",
    "a change of a partition's state in ZooKeeper between a baseline and the initial copy",
    "the partition epoch that the copy wrote: it is the version of the state's znode, above that of the baseline",
    "as above",
)
SOURCE_OF_COPY = Excuse(
    "source of the copy",
    "a change or removal in ZooKeeper between a baseline and the initial copy",
    "the transactions that a ZooKeeper server has logged: when the leader of the copy took `/controller` over, or when "
    "it had copied, ZooKeeper had what the log has without a later record",
    "`differ` where it had something else; without a server's files `incomplete`: the copy may have lost it",
)
ACCEPTED_COPY = Excuse(
    "accepted copy",
    "a change or removal in ZooKeeper between a baseline and the initial copy, where nothing else shows that it was "
    "before the copy",
    "the operator's `quorumshift_accept_unverified_copy`, by what the controllers' logs say of the copy",
    "`incomplete`: the copy may have lost it",
)
ZXID = Excuse(
    "zxid",
    "a change in ZooKeeper since the baseline, while ZooKeeper's controller owns `/controller`, or where "
    "`before_revert` has no log",
    "`mzxid` of its znodes, above the baseline's zxid",
    "`differ`",
)
DELETIONS = Excuse(
    "deleted children",
    "a removal in ZooKeeper since the baseline, while ZooKeeper's controller owns `/controller`",
    "the number of deleted children of the znode above (`cversion`), which rose by at least what is missing there; of "
    "a partition, that its topic was created again (`czxid`)",
    "`differ`; `incomplete` where that number is not known",
)
MEANWHILE = Excuse(
    "value in between",
    "a side that changes in each reading",
    "the records of the log between two snapshots: they had the value of each of the last two readings",
    "`incomplete`; `differ` once the side stays as it is",
)
ONE_SIDE = Excuse(
    "one side",
    "an entity that only one of two views can have: see the table of rules",
    "the kind, and the key or `fenced` of the entity itself",
    "`differ`",
)
EXCUSES: Tuple[Excuse, ...] = tuple(found for found in [*vars().values()] if isinstance(found, Excuse))

ACCEPTED = "changed between the baseline and the initial copy without a record; the operator accepted the copy"
_UNEQUAL = (DIFFER, LEFT_ONLY, RIGHT_ONLY)
_EQUAL = (MATCH, None)
_BASELINE_OF_LOG, _BASELINE_OF_ZOOKEEPER = (f"{rules.BASELINE}:{name}" for name in (rules.LOG, rules.ZOOKEEPER))
_NEW_BASELINE = (
    "If clients did that, start a new baseline: remove the directory baseline of this cluster among the run artifacts. "
    "After finalization no gate opens without one: quorumshift_verify: false ends the run uncompared"
)


class Copied(NamedTuple):
    """The end of the initial copy in the log: offset and epoch of the record of the state MIGRATION."""

    offset: int
    epoch: int


class Changes(Protocol):
    """When the log changed entities (views.metadata_log.History). `begin`: the first offset whose records are known."""

    begin: int

    def last(self, key: Key, topic_ids: Collection[str], is_there: bool) -> int | None:
        """Return the offset of the last record of an entity from `begin` on, if it leaves it there or removes it, as
        `is_there` says; with the ids of its topic."""


class LogRecords(Protocol):
    """What the newest snapshot of the log shows of its past (views.metadata_log.MetadataLogView)."""

    def history(self, since: int) -> Changes | None:
        """Return the changes, None where no checkpoint is newer than an offset, so that each entity has its own."""

    def removed_topics(self, since: int) -> Mapping[str, int]:
        """Return {topic id: offset of the record that removed it}, of the records from an offset on that are known."""

    def copied(self) -> Copied | None:
        """Return the end of the initial copy, None where the log does not have its records any more."""

    def epoch_at(self, offset: int) -> int | None:
        """Return the epoch of the record at an offset, None where it is not there any more, or not yet."""


class CopySource(Protocol):
    """ZooKeeper as the initial copy found it (views.copy_source.CopySource). `why`: why that is unknown;
    `record`: which transaction of which server's log shows it."""

    why: str
    record: str

    def sides(self, key: Key, copied: Copied) -> Sequence[Side]:
        """Return an entity when the leader of the copy took /controller over, and when it had copied; none if unknown.

        Between the two a broker that does not know the new controller yet may still write (ZkAdminManager).
        """


class Evidence:
    """What the stores show of when metadata changed.

    :arg baselines: {baseline view: its state}: {"zxid": n, "deletions": {path: n}} when its reading began, or
        {"offset": n} (exclusive).
    :arg controller: of ZooKeeper: {"epoch": KRaft's epoch in /controller, -1 or None under ZooKeeper's controller,
        "zxid": at which it was created, None without /controller, "mirrored": offset in /migration or None}.
    :arg log: None where the gate has no log.
    :arg is_copy_accepted: whether the operator has compared the initial copy.
    :arg copy_source: None where the gate has no files of a ZooKeeper server.
    """

    def __init__(
        self,
        baselines: Mapping[str, Mapping[str, Any]] | None = None,
        controller: Mapping[str, Any] | None = None,
        log: LogRecords | None = None,
        is_copy_accepted: bool = False,
        copy_source: CopySource | None = None,
    ) -> None:
        self.baselines = baselines or {}
        self.is_copy_accepted = is_copy_accepted
        self._controller = controller or {}
        self._log = log
        self._copy_source = copy_source

    @property
    def kraft(self) -> bool:
        """Whether KRaft owns /controller. During an election there is none: then whether it has copied."""
        if self._controller.get("zxid") is None:
            return (self._controller.get("mirrored") or 0) > 0
        return (self._controller.get("epoch") or 0) > 0

    @property
    def has_log(self) -> bool:
        """Whether there is a log."""
        return self._log is not None

    def copied(self) -> Copied | None:
        """Return the end of the initial copy, None where it is unknown."""
        return self._log.copied() if self._log else None

    def kraft_since(self) -> int | None:
        """Return the zxid at which KRaft took over for the copy; None where a later leader has replaced /controller."""
        copied = self.copied()
        if copied and self._controller.get("epoch") == copied.epoch:
            return self._controller.get("zxid")
        return None

    def copy_source(self, key: Key) -> Sequence[Side]:
        """Return an entity in ZooKeeper as the initial copy found it, see CopySource.sides; none if unknown."""
        copied = self.copied()
        return self._copy_source.sides(key, copied) if self._copy_source and copied else ()

    def copy_record(self) -> str:
        """Return which record shows what ZooKeeper had then."""
        return self._copy_source.record if self._copy_source else ""

    def no_copy_source(self) -> str:
        """Return why it is not known what ZooKeeper had then, for the operator."""
        return self._copy_source.why if self._copy_source else ""

    def discontinued(self, end_offset: int) -> str | None:
        """Return why the log, which ends at `end_offset`, does not continue that of the baseline; None where it does.

        In Raft two logs with a record of the same offset and epoch are equal up to it. A record of a later change would
        otherwise excuse what was lost before it.
        """
        then = self.baselines.get(_BASELINE_OF_LOG)
        if then is None or self._log is None or self.is_of_another_log():
            return None
        last, epoch = then["offset"] - 1, then.get("epoch")
        now = self._log.epoch_at(last)
        if end_offset > last and (now is None or now == epoch):
            return None
        found = (
            f"is of epoch {now}, at the baseline it was of epoch {epoch} (QS-VERIFY-001)"
            if end_offset > last
            else "is gone (QS-VERIFY-001)"
        )
        return (
            f"the record at offset {last} of the metadata log {found}: committed records were lost, or this is the log "
            f"of another quorum. Compare the logs of all controllers before you go on. {_NEW_BASELINE} (QS-VERIFY-001)"
        )

    def is_of_another_log(self) -> bool:
        """Whether KRaft took over /controller after the baseline: it is of a migration that was rolled back."""
        of_zookeeper, kraft_since = self.baselines.get(_BASELINE_OF_ZOOKEEPER), self.kraft_since()
        return of_zookeeper is not None and kraft_since is not None and of_zookeeper["zxid"] < kraft_since

    def last_record(self, key: Key, sides: Mapping[str, Side], since: int) -> Tuple[int | None, int]:
        """Return the offset of an entity's last record in the log, None without one, and the first offset whose records
        are known, if it is above `since`."""
        side = sides.get(rules.LOG, Absent({}))
        history = self._log.history(since) if self._log else None
        if history is None:
            return side.at.get("offset"), 0
        return history.last(key, _topic_ids(sides.values()), isinstance(side, Entity)), history.begin

    def removed_topic(self, topic_id: str, since: int) -> int | None:
        """Return the offset of the record that removed a topic, at or after `since`."""
        offset = self._log.removed_topics(since).get(topic_id) if self._log else None
        return offset if offset is not None and offset >= since else None


class _Found(NamedTuple):
    """`proven`: True: a record excuses it; False: none does; None: records are missing. `why`: for the operator."""

    proven: bool | None
    why: str | None = None
    excuse: str | None = None


def since(
    comparison: rules.Comparison, key: Key, outcome: Outcome, sides: Mapping[str, Side], evidence: Evidence
) -> Outcome:
    """Return the outcome of a comparison of a view with its baseline, by what the stores show of changes since.

    :arg outcome: of `compare`. A value that RISES never falls. An entity disappears only by a removal that a store
        shows.
    """
    fallen = _reassigned(comparison, key, sides, evidence)
    if not fallen and _has_one_owner(comparison, sides):
        fallen = tuple(difference for difference in outcome.differences if _has_fallen(comparison, difference, sides))
    if fallen:
        return Outcome(DIFFER, fallen)
    if outcome.outcome not in _UNEQUAL:
        return outcome
    state = evidence.baselines.get(comparison.left, {})
    now = sides.get(comparison.right, Absent({}))
    if comparison.right == rules.LOG:
        found = _in_log(key, sides, now, state["offset"], evidence)
    elif evidence.kraft and not _of_zookeeper_alone(outcome):
        found = _under_kraft(comparison, key, outcome, sides, now, state, evidence)
    else:
        found = _in_zookeeper(state, now)
    if found.proven is None:
        return Outcome(SKIPPED, outcome.differences, found.why)
    if not found.proven:
        return outcome
    return Outcome(MATCH, (), found.why, outcome.differences, found.excuse)


def _reassigned(
    comparison: rules.Comparison, key: Key, sides: Mapping[str, Side], evidence: Evidence
) -> Tuple[Difference, ...]:
    """Return the difference of producer ids that are assigned twice: the next one fell; or a record allocated a block,
    and the next one is as at the baseline. Ids that the copy lost begin anew, and rise to where they were."""
    left, right = (sides.get(name) for name in (comparison.left, comparison.right))
    if key[0] != "producer_ids" or not (isinstance(left, Entity) and isinstance(right, Entity)):
        return ()
    before, now = next_id(left), next_id(right)
    last = _allocated_since(comparison, key, sides, evidence) if now == before else None
    if now > before or (now == before and last is None):
        return ()
    both = {comparison.left: str(before), comparison.right: str(now)}
    rule = rules.rule("producer_ids", "next")
    why = rules.RISES if last is None else f"{rules.RISES}; the log allocated a block at offset {last}"
    return (Difference(*key, "next", both, rules.SINCE, why, rule.do),)


def _allocated_since(
    comparison: rules.Comparison, key: Key, sides: Mapping[str, Side], evidence: Evidence
) -> int | None:
    """Return the offset of a record since the baseline that allocated a block of producer ids."""
    of_log, first = evidence.baselines.get(_BASELINE_OF_LOG), None
    if comparison.right == rules.LOG:
        first = of_log["offset"] if of_log else None
    elif evidence.kraft and (of_log is None or evidence.is_of_another_log()):
        copied = evidence.copied()  # ZooKeeper's baseline is older than the copy
        first = copied.offset + 1 if copied else None
    last = None if first is None else evidence.last_record(key, sides, first)[0]
    return last if last is not None and first is not None and last >= first else None


def _has_one_owner(comparison: rules.Comparison, sides: Mapping[str, Side]) -> bool:
    """Return whether `next` of two blocks of producer ids means the same; it does for all else."""
    both = (sides.get(comparison.left), sides.get(comparison.right))
    return len({side.fields.get("broker") == OF_DUAL_WRITE for side in both if isinstance(side, Entity)}) < 2


def next_id(entity: Entity) -> int:
    """Return the first id that no producer has: the block that dual-write writes to ZooKeeper begins there."""
    of_dual_write = entity.fields.get("broker") == OF_DUAL_WRITE
    return int(json.loads(entity.fields["start" if of_dual_write else "next"]))


def _in_log(key: Key, sides: Mapping[str, Side], now: Side, since_offset: int, evidence: Evidence) -> _Found:
    then = sides.get(_BASELINE_OF_LOG, Absent({}))
    return _recorded(key, sides, then, now, since_offset, evidence) or _Found(False)


def _recorded(
    key: Key, sides: Mapping[str, Side], then: Side, now: Side, first: int, evidence: Evidence
) -> _Found | None:
    """Return what the records of the log from an offset on show; None where all are known, and none is of the entity.

    A topic with another id was removed before it was created again: without the removal of the old id it was lost.
    """
    last, begin = evidence.last_record(key, sides, first)
    old = json.loads(then.fields["id"]) if key[0] == "topic" and isinstance(then, Entity) else None
    if old is not None and not isinstance(now, Absent):
        last = evidence.removed_topic(old, first)
    if last is not None and last >= first:
        what = "removed" if isinstance(now, Absent) else "changed"
        return _Found(True, f"{what} since the baseline (offset {last} >= {first})", LOG_RECORD.name)
    if begin <= first:
        return None
    in_log_then, in_log_now = (sides.get(name) for name in (_BASELINE_OF_LOG, rules.LOG))
    if not evidence.is_of_another_log() and _is_newer(key, in_log_then, in_log_now):
        return _Found(True, "changed since the baseline: its partition epoch rose", PARTITION_EPOCH.name)
    return _Found(None, _NO_RECORDS.format(since=first, begin=begin))


_NO_RECORDS = (
    "it changed since offset {since} of the metadata log, and Kafka has deleted the records below {begin}, so nothing "
    "shows when. " + _NEW_BASELINE
)


def _under_kraft(
    comparison: rules.Comparison,
    key: Key,
    outcome: Outcome,
    sides: Mapping[str, Side],
    now: Side,
    state: Mapping[str, Any],
    evidence: Evidence,
) -> _Found:
    """Return what excuses a change in ZooKeeper since the baseline, while KRaft owns /controller."""
    if (
        not evidence.has_log
    ):  # only before_revert opens then: the quorum may be lost, and ZooKeeper's controller goes on
        if isinstance(now, Absent):
            return _Found(
                None, f"it is gone in ZooKeeper under KRaft's controller, and no log was read. {_NEW_BASELINE}"
            )
        return _in_zookeeper(state, now)
    copied, kraft_since = evidence.copied(), evidence.kraft_since()
    of_log = evidence.baselines.get(_BASELINE_OF_LOG)
    is_copied_since = of_log is None or evidence.is_of_another_log()
    if is_copied_since and copied is None:
        return _Found(None, _NO_COPY)
    first = max([copied.offset + 1] if copied else [], default=0)
    if not is_copied_since and of_log is not None:
        first = max(first, of_log["offset"])
        of_log_then = sides.get(_BASELINE_OF_LOG, Absent({}))
        is_recorded = _since_copy(key, sides, evidence)
        if is_recorded and _in_zookeeper(state, now).proven and _same_as_log(comparison, key, now, of_log_then):
            return _Found(True, "changed to what the log had at the baseline", BASELINE_LOG.name)
    # ZooKeeper may have been behind at the baseline, with a topic that the log had removed
    then = sides.get(comparison.left if is_copied_since else _BASELINE_OF_LOG, Absent({}))
    recorded = _recorded(key, sides, then, now, first, evidence)
    if recorded:
        return recorded
    if not is_copied_since:
        return _Found(False)
    before = _in_zookeeper(state, now)
    if before.proven is False:
        return before
    if kraft_since is not None and now.at.get("zxid", kraft_since + 1) <= kraft_since:
        why = f"{before.why}, before KRaft took over (zxid {kraft_since})"
        return _Found(before.proven, why, BEFORE_KRAFT.name)
    if _is_newer_copy(key, outcome, sides.get(comparison.left), sides.get(rules.LOG)):
        why = "the copy read a newer version of its state than the baseline"
        return _Found(True, why, COPIED_VERSION.name)
    found = evidence.copy_source(key)
    if found:
        in_log = sides.get(rules.LOG, Absent({}))
        if any(_same_as_log(comparison, key, was, in_log) for was in found):
            return _Found(
                True, f"ZooKeeper had it so when KRaft took over ({evidence.copy_record()})", SOURCE_OF_COPY.name
            )
        # Its last record is the creation of another topic of this name
        if _since_copy(key, sides, evidence) and all(_has_another_id(then, was) for was in found):
            why = f"ZooKeeper did not have this topic any more when KRaft took over ({evidence.copy_record()})"
            return _Found(True, why, SOURCE_OF_COPY.name)
        return _Found(False)
    if evidence.is_copy_accepted:
        return _Found(True, ACCEPTED, ACCEPTED_COPY.name)
    return _Found(None, _LOST_IN_COPY.format(first=first, why=evidence.no_copy_source() or _NO_FILES))


def _has_another_id(topic: Side, other: Side) -> bool:
    """Return whether one side is a topic, and the other is not the same one."""
    if not isinstance(topic, Entity) or topic.kind != "topic":
        return False
    return isinstance(other, Absent) or other.fields["id"] != topic.fields["id"]


def _since_copy(key: Key, sides: Mapping[str, Side], evidence: Evidence) -> bool | None:
    """Return whether the log has a record of an entity since the initial copy; None where Kafka has deleted records."""
    copied = evidence.copied()
    first = copied.offset + 1 if copied else 0
    last, begin = evidence.last_record(key, sides, first)
    if last is not None and last >= first:
        return True
    return None if begin > first else False


def overwritten(
    comparison: rules.Comparison, key: Key, first: Mapping[str, Side], last: Mapping[str, Side], evidence: Evidence
) -> Outcome | None:
    """Return the outcome of ZooKeeper and the log where ZooKeeper had another value at the first reading, and the log
    has no record of it since the initial copy; None where that is not so.

    Later readings agree: KRaft overwrites a znode when it writes another entity of it, and after an election all that
    its image lacks. Nothing shows whether ZooKeeper had what the copy lost, or what another client wrote. A value that
    only rises, and was above the log's, was never in the log.
    """
    if comparison.relation != rules.ZOOKEEPER_LOG or key[0] == "broker":  # brokers write their registrations
        return None
    absent = Absent({})
    then = first.get(comparison.left, absent)
    unequal = [compare(comparison, *key, then, of.get(comparison.right, absent)) for of in (first, last)]
    if any(difference.outcome not in _UNEQUAL for difference in unequal):
        return None
    recorded = _since_copy(key, last, evidence)
    missing = "does not have its records any more" if recorded is None else "has no record of it since the initial copy"
    if _is_above(then, last.get(comparison.right, absent)):
        missing = "never had it, since this value only rises"
    elif recorded:
        return None
    return Outcome(SKIPPED, unequal[1].differences, _OVERWRITTEN.format(missing))


def _is_above(then: Side, log: Side) -> bool:
    """Return whether ZooKeeper had a value that only rises, above that of the log."""
    if not (isinstance(then, Entity) and isinstance(log, Entity)):
        return False
    if then.kind == "producer_ids":
        return next_id(then) > next_id(log)
    epochs = [json.loads(side.fields.get("leader_epoch", "null")) for side in (then, log)]
    same_topic = then.fields.get("topic_id") == log.fields.get("topic_id")
    return then.kind == "partition" and same_topic and None not in epochs and epochs[0] > epochs[1]


_OVERWRITTEN = (
    "ZooKeeper had another value at the first reading, and the metadata log {}: it was lost in the copy, or another "
    "client wrote it. Compare it with the backup of ZooKeeper, correct what was lost with Kafka's own tools, and run "
    "the playbook again"
)
_NO_COPY = (
    "it changed in ZooKeeper since the baseline, and the metadata log does not have the records of the initial copy "
    "any more, so nothing shows whether the copy lost it. " + _NEW_BASELINE
)
_NO_FILES = "no host of the group zookeeper was read"
_LOST_IN_COPY = (
    "it changed in ZooKeeper since the baseline, and the metadata log has no record of it since the initial copy "
    "(offset {first}): the copy may have lost it, since Kafka deletes in ZooKeeper what the copy lacks. The log of a "
    "ZooKeeper server would show it, but {why}. If clients made these changes, go on with "
    "-e quorumshift_accept_unverified_copy=true"
)


_OF_STATE = frozenset(("leader", "leader_epoch", "isr", "recovery_state", "partition_epoch"))
"""What the znode of a partition's state holds, of which each write raises the version."""


def _is_newer_copy(key: Key, outcome: Outcome, then: Side | None, copied: Side | None) -> bool:
    """Return whether the copy read a newer state of a partition than the baseline did. There is no record since the
    copy, so the log has what the copy read."""
    return {difference.field for difference in outcome.differences} <= _OF_STATE and _is_newer(key, then, copied)


def _is_newer(key: Key, then: Side | None, now: Side | None) -> bool:
    """Return whether the partition epoch of a partition of the same topic is above what it was."""
    if key[0] != "partition" or not (isinstance(then, Entity) and isinstance(now, Entity)):
        return False
    before, after = (json.loads(side.fields.get("partition_epoch", "null")) for side in (then, now))
    same_topic = then.fields.get("topic_id") == now.fields.get("topic_id")
    return same_topic and before is not None and after is not None and after > before


def _same_as_log(comparison: rules.Comparison, key: Key, now: Side, then: Side) -> bool:
    pair = rules.Comparison(comparison.right, rules.LOG, rules.ZOOKEEPER_LOG, comparison.kinds)
    return compare(pair, *key, now, then).outcome in _EQUAL


def _of_zookeeper_alone(outcome: Outcome) -> bool:
    """Return whether only ZooKeeper has what differs, such as the version of a znode."""
    return all(
        rules.rule(difference.kind, difference.field or "").how(rules.ZOOKEEPER_LOG) == rules.NOT
        for difference in outcome.differences
    )


def _in_zookeeper(state: Mapping[str, Any], now: Side) -> _Found:
    """Return what excuses a change in ZooKeeper since the baseline, under ZooKeeper's controller."""
    at = now.at
    if isinstance(now, Absent):
        if "under" in at:
            before = state.get("deletions", {}).get(at["under"])
            if before is not None:
                deleted = at["deletions"] - before
                why = f"removed since the baseline (znodes deleted below {at['under']}: {deleted})"
                return _Found(deleted > 0, why, DELETIONS.name)
            return _Found(None, _NO_REMOVAL)
        if "created" in at:  # its topic is there and does not have it
            since_zxid = at["created"] > state.get("zxid", at["created"])
            why = f"its topic was deleted and created again since the baseline (zxid {at['created']})"
            return _Found(since_zxid, why, DELETIONS.name)
        if not at:
            return _Found(None, _NO_REMOVAL)
    if "zxid" in state and at.get("zxid", -1) > state["zxid"]:
        return _Found(True, f"changed since the baseline (zxid {at['zxid']} > {state['zxid']})", ZXID.name)
    return _Found(False)


_NO_REMOVAL = f"it was there at the baseline, and no record of its removal is left. {_NEW_BASELINE}"


def _has_fallen(comparison: rules.Comparison, difference: Difference, sides: Mapping[str, Side]) -> bool:
    """Return whether a value that only rises has fallen. A recreated topic's partitions begin anew."""
    if difference.field is None or rules.rule(difference.kind, difference.field).how(rules.SINCE) != rules.RISES:
        return False
    left, right = sides[comparison.left], sides[comparison.right]
    ids = [side.fields.get("topic_id") for side in (left, right) if isinstance(side, Entity)]
    if len(set(ids)) > 1:
        return False
    before, now = (json.loads(difference.sides[view] or "null") for view in (comparison.left, comparison.right))
    return before is not None and (now is None or now < before)


def unexplained_removals(
    outcomes: Mapping[Key, Mapping[rules.Comparison, Outcome]],
    sides: Mapping[Key, Mapping[str, Side]],
    baselines: Mapping[str, Mapping[str, Any]],
) -> Dict[Key, Dict[rules.Comparison, Outcome]]:
    """Return the outcomes of what disappeared below a znode of which fewer children were deleted than disappeared.

    `since` sees one entity: a deletion excuses each that is missing below the same znode. Here they are counted. A
    topic with another id was deleted as well. :arg outcomes: {(kind, key): {comparison: outcome}}; `sides`: {(kind,
    key): {view: side}}; `baselines`: {baseline view: its state}.
    """
    missing: Dict[Tuple[rules.Comparison, str], Dict[str, list]] = {}
    deleted: Dict[Tuple[rules.Comparison, str], int] = {}
    for key, of_key in outcomes.items():
        for comparison, outcome in of_key.items():
            then, now = (sides[key].get(name) for name in (comparison.left, comparison.right))
            if comparison.relation != rules.SINCE or outcome.outcome != MATCH or not outcome.changes or now is None:
                continue
            if isinstance(now, Absent) and "under" in now.at:
                under, child = now.at["under"], now.at["child"]
                before = baselines.get(comparison.left, {}).get("deletions", {}).get(under, 0)
                of = comparison, under
                deleted[of] = max(deleted.get(of, 0), now.at["deletions"] - before)
                missing.setdefault(of, {}).setdefault(child, []).append(key)
            elif comparison.right == rules.ZOOKEEPER and isinstance(then, Entity) and _has_another_id(then, now):
                child = znodes.topic_path(key_of(then.key)[0])
                missing.setdefault((comparison, znodes.TOPICS), {}).setdefault(child, []).append(key)
    return {
        key: {comparison: Outcome(_unequal(sides[key].get(comparison.right)), outcomes[key][comparison].changes)}
        for (comparison, under), children in missing.items()
        if len(children) > deleted.get((comparison, under), len(children))  # else nothing else is missing there
        for keys in children.values()
        for key in keys
    }


def _unequal(now: Side | None) -> str:
    return DIFFER if isinstance(now, Entity) else LEFT_ONLY


def _topic_ids(sides: Iterable[Side]) -> Collection[str]:
    """Return the ids of the topic of a partition, now and in the baseline."""
    found = {json.loads(side.fields.get("topic_id", "null")) for side in sides if isinstance(side, Entity)}
    return found - {None}


def markdown() -> Sequence[str]:
    """Return the table of excuses as lines of Markdown for the docs."""
    lines = ["| excuse | what it excuses | the record that proves it | without that record |", "|---|---|---|---|"]
    return [*lines, *(f"| {' | '.join(excuse)} |" for excuse in EXCUSES)]
