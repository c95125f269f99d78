# Copyright: (c) 2026, Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Compares two views of one entity by the table of rules. Pure."""

from __future__ import annotations

import json
from typing import Any, Dict, Mapping, NamedTuple, Tuple, Union

from quorumshift_spark import rules
from quorumshift_spark.normal_form import Entity, canonical, readable_key
from quorumshift_spark.views import Absent
from quorumshift_spark.views.brokers import parsed

MATCH, DIFFER, LEFT_ONLY, RIGHT_ONLY, SKIPPED = OUTCOMES = ("match", "differ", "left_only", "right_only", "skipped")

Side = Union[Entity, Absent]


class Difference(NamedTuple):
    """One difference between two views.

    `field`: None when only one side has the entity. `sides`: {view: canonical JSON text, None where the view does not
    have it}. `rule`: how the field is compared and why it may differ. `do`: what to do about it.
    """

    kind: str
    key: str
    field: str | None
    sides: Dict[str, str | None]
    relation: str
    rule: str
    do: str

    def text(self) -> str:
        """Return the difference as one line for a terminal."""
        what = f"{self.kind} {readable_key(self.kind, self.key)}" + (f" {self.field}" if self.field else "")
        sides = "; ".join(f"{view}: {'absent' if value is None else value}" for view, value in self.sides.items())
        return f"{what}: {sides}"


class Outcome(NamedTuple):
    """The outcome of one comparison of one key. `outcome`: one of OUTCOMES, None when neither side has the entity.

    `explained`: for a MATCH of unequal values, the reason (changed since the baseline, allowed on one side only); for
    SKIPPED, why it could not be decided. `changes`: with both sides, what a change since the baseline excuses.
    """

    outcome: str | None
    differences: Tuple[Difference, ...] = ()
    explained: str | None = None
    changes: Tuple[Difference, ...] = ()


def compare(
    comparison: rules.Comparison,
    kind: str,
    key: str,
    left: Side,
    right: Side,
    baseline: Mapping[str, Any] | None = None,
) -> Outcome:
    """Return the outcome of `comparison` for the entity (kind, key).

    :arg baseline: for SINCE, the state of the baseline: {"zxid": n, "deletions": {path: n}} (when its reading began) or
        {"offset": n} (exclusive). A later change of the right side excuses a difference from it, with two exceptions. A
        value that RISES never falls. An entity disappears only by a removal that a store shows: SKIPPED without one.
    """
    outcome = _compare(comparison, kind, key, left, right)
    if comparison.relation != rules.SINCE or outcome.outcome not in (DIFFER, LEFT_ONLY, RIGHT_ONLY):
        return outcome
    state = baseline or {}
    if isinstance(right, Absent):
        removed, why = _removed_since(state, right.at)
        if removed is None:
            return Outcome(SKIPPED, outcome.differences, why)
        return Outcome(MATCH, (), why, outcome.differences) if removed else outcome
    fallen = tuple(one for one in outcome.differences if _has_fallen(comparison, one, left, right))
    changed = _changed_since(state, right.at)
    if fallen or not changed:
        return Outcome(outcome.outcome, fallen or outcome.differences)
    return Outcome(MATCH, (), changed, outcome.differences)


def with_history(
    outcomes: Mapping[rules.Comparison, Outcome],
    key: Tuple[str, str],
    sides: Mapping[str, Side],
    comparison: rules.Comparison,
    baseline: Mapping[str, Any],
    begin: int,
    last: int | None,
) -> Outcome:
    """Return the outcome of a comparison of the log with its baseline, by the records that a newer checkpoint sums up.

    :arg begin: the first offset whose records are known; `last`: that of the entity's last record among them, or None.
    Where records are missing since the baseline, the same change in ZooKeeper shows it as well.
    """
    left, right = sides.get(comparison.left, Absent({})), sides.get(comparison.right, Absent({}))
    since = baseline["offset"]
    seen = last is not None and last >= since
    # What no record changed is as it was where the records begin
    at = {"offset": last if seen else begin - 1 if begin <= since else since}
    now = Absent(at) if isinstance(right, Absent) else right._replace(at=at)
    outcome = compare(comparison, *key, left, now, baseline)
    if seen or begin <= since or outcome.outcome != MATCH or not outcome.changes:
        return outcome
    in_zookeeper = next(
        (
            other
            for compared, other in outcomes.items()
            if compared.relation == rules.SINCE and compared.right == rules.ZOOKEEPER
        ),
        None,
    )
    if in_zookeeper and in_zookeeper.outcome == MATCH and in_zookeeper.changes:
        return outcome._replace(explained=f"in ZooKeeper: {in_zookeeper.explained}")
    return Outcome(SKIPPED, outcome.changes, _NO_RECORDS.format(since=since, begin=begin))


_NO_RECORDS = (
    "it changed since the baseline at offset {since} of the metadata log, and Kafka has deleted the records below "
    "{begin}, so nothing shows when. If clients changed it, start a new baseline: remove the directory baseline of "
    "this cluster among the run artifacts"
)


def unexplained_removals(
    outcomes: Mapping[Any, Mapping[rules.Comparison, Outcome]],
    sides: Mapping[Any, Mapping[str, Side]],
    baselines: Mapping[str, Mapping[str, Any]],
) -> Dict[Any, Dict[rules.Comparison, Outcome]]:
    """Return the outcomes of what disappeared below a znode of which fewer children were deleted than disappeared.

    `compare` sees one entity: a deletion excuses each that is missing below the same znode. Here they are counted. A
    topic with another id was deleted as well. :arg outcomes: {(kind, key): {comparison: outcome}}; `sides`: {(kind,
    key): {view: side}}; `baselines`: {baseline view: its state}.
    """
    missing: Dict[Tuple[rules.Comparison, str], Dict[str, list]] = {}
    deleted: Dict[Tuple[rules.Comparison, str], int] = {}
    for key, of_key in outcomes.items():
        for comparison, outcome in of_key.items():
            now = sides[key].get(comparison.right)
            if comparison.relation != rules.SINCE or outcome.outcome != MATCH or not outcome.changes or now is None:
                continue
            if isinstance(now, Absent) and "under" in now.at:
                under, child = now.at["under"], now.at["child"]
                before = baselines.get(comparison.left, {}).get("deletions", {}).get(under, 0)
                of = comparison, under
                deleted[of] = max(deleted.get(of, 0), now.at["deletions"] - before)
                missing.setdefault(of, {}).setdefault(child, []).append(key)
    return {
        key: {comparison: Outcome(LEFT_ONLY, outcomes[key][comparison].changes)}
        for (comparison, under), children in missing.items()
        if len(children) > deleted[(comparison, under)]
        for keys in children.values()
        for key in keys
    }


def _compare(comparison, kind, key, left, right):
    relation = comparison.relation
    if isinstance(left, Absent) and isinstance(right, Absent):
        return Outcome(None)
    if isinstance(left, Absent) or isinstance(right, Absent):
        present = right if isinstance(left, Absent) else left
        allowed = rules.allowed_on_one_side(comparison, kind, json.loads(key), present.fields)
        if allowed:
            return Outcome(MATCH, (), allowed)
        sides = {
            comparison.left: None if isinstance(left, Absent) else canonical_fields(left),
            comparison.right: None if isinstance(right, Absent) else canonical_fields(right),
        }
        difference = _difference(comparison, kind, key, None, sides, rules.EQUAL)
        return Outcome(RIGHT_ONLY if isinstance(left, Absent) else LEFT_ONLY, (difference,))
    differences = []
    for field, how in rules.compared_fields(kind, relation):
        ours, theirs = left.fields.get(field), right.fields.get(field)
        for view, value in ((comparison.left, ours), (comparison.right, theirs)):
            if _is_unread(value):
                return Outcome(SKIPPED, (), f"{view}: {json.loads(value)['unread']}")
        if not _agree(how, left.fields, right.fields, field):
            sides = {comparison.left: ours, comparison.right: theirs}
            differences.append(_difference(comparison, kind, key, field, sides, how))
    return Outcome(DIFFER, tuple(differences)) if differences else Outcome(MATCH)


def canonical_fields(entity: Entity) -> str:
    """Return the fields of an entity as one canonical JSON object."""
    return "{" + ",".join(f"{canonical(name)}:{entity.fields[name]}" for name in sorted(entity.fields)) + "}"


def projection(relation: str, kind: str, fields: Mapping[str, str]) -> str | None:
    """Return a text of an entity's values: two entities of a kind with the same text match in `compare`.

    None when the text does not decide (a special rule, an unread or withheld value): the key goes through `compare`.
    """
    parts = []
    for field, how in rules.compared_fields(kind, relation):
        value = fields.get(field, "")
        if how in (rules.BLOCK, rules.ADDRESSES) or value.startswith(_UNREAD) or value == _WITHHELD:
            return None
        parts.append(value)
    return "\n".join(parts)


_OF_DUAL_WRITE = "-1"  # the broker of a producer id block: ZkMigrationClient.writeProducerId
_UNREAD = '{"unread":'
_WITHHELD = canonical({"digest": None})


def _is_unread(value):
    return value is not None and value.startswith(_UNREAD)


def _agree(how, left, right, field):
    ours, theirs = left.get(field), right.get(field)
    if how == rules.BLOCK:
        # Left: ZooKeeper's block. Right: KRaft's next id. ZkMigrationClient.migrateProducerId takes the end of the
        # block of a broker (KAFKA-15552 took its begin); writeProducerId writes the next block, assigned to none.
        return theirs is not None and theirs == (left.get("start") if left.get("broker") == _OF_DUAL_WRITE else ours)
    if ours == theirs:
        return True
    if how == rules.ADDRESSES:
        return _same_addresses(json.loads(ours or "null"), json.loads(theirs or "null"))
    if how == rules.SHOWN and theirs is not None:
        # A broker withholds sensitive values and those of names that it does not know, and shows others as parsed
        served, stored = json.loads(theirs), json.loads(ours or "null")
        if isinstance(served, str) and isinstance(stored, str):
            return parsed(served) == parsed(stored)
        return theirs == _WITHHELD
    return False


def _same_addresses(ours, theirs):
    """Return whether each endpoint of the right side is one of the left's; see normal_form.broker for what is ""."""
    if ours is None or theirs is None:
        return False
    if all(name for name, *_rest in theirs) and len(ours) != len(theirs):
        return False

    def fits(left, right):
        return all(one == other or not (one and other) for one, other in zip(left, right))

    return all(any(fits(left, right) for left in ours) for right in theirs)


def _difference(comparison, kind, key, field, sides, how):
    rule = rules.rule(kind, field or "")
    why = f"{how}" + (f"; {rule.why}" if rule.why else "")
    return Difference(kind, key, field, sides, comparison.relation, why, rule.do)


def _has_fallen(comparison, difference, left, right):
    """Return whether a value that only rises has fallen. A recreated topic's partitions begin anew."""
    if difference.field is None or rules.rule(difference.kind, difference.field).how(rules.SINCE) != rules.RISES:
        return False
    if left.fields.get("topic_id") != right.fields.get("topic_id"):
        return False
    before, now = (json.loads(difference.sides[view] or "null") for view in (comparison.left, comparison.right))
    return before is not None and (now is None or now < before)


def _removed_since(baseline, at):
    """Return whether an absent entity was removed after the baseline, None if nothing shows it; and the evidence."""
    if "under" in at:
        before = baseline.get("deletions", {}).get(at["under"])
        if before is not None:
            deleted = at["deletions"] - before
            return deleted > 0, f"removed since the baseline (znodes deleted below {at['under']}: {deleted})"
    elif "created" in at:  # its topic is there and does not have it
        since = at["created"] > baseline.get("zxid", at["created"])
        return since, f"its topic was deleted and created again since the baseline (zxid {at['created']})"
    else:
        changed = _changed_since(baseline, at)
        if changed or at:
            return bool(changed), changed
    return None, (
        "it was there at the baseline, and no record of its removal is left. If it was removed on purpose, start a new "
        "baseline: remove the directory baseline of this cluster among the run artifacts"
    )


def _changed_since(baseline, at):
    if "zxid" in baseline and at.get("zxid", -1) > baseline["zxid"]:
        return f"changed since the baseline (zxid {at['zxid']} > {baseline['zxid']})"
    if "offset" in baseline and at.get("offset", -1) >= baseline["offset"]:
        return f"changed since the baseline (offset {at['offset']} >= {baseline['offset']})"
    return None
