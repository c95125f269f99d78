# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Compares two views of one entity by the table of rules. Pure."""

from __future__ import annotations

import json
from typing import Dict, Mapping, NamedTuple, Tuple, Union

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
    `excuse`: the name of the excuse of a MATCH (quorumshift_spark.excuses).
    """

    outcome: str | None
    differences: Tuple[Difference, ...] = ()
    explained: str | None = None
    changes: Tuple[Difference, ...] = ()
    excuse: str | None = None


def compare(comparison: rules.Comparison, kind: str, key: str, left: Side, right: Side) -> Outcome:
    """Return the outcome of `comparison` for the entity (kind, key), before the excuses of quorumshift_spark.excuses,
    but for what only one side can have."""
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
    if relation == rules.SINCE and kind in _DECIDED_BY_RECORDS:
        return None
    for field, how in rules.compared_fields(kind, relation):
        value = fields.get(field, "")
        if how in (rules.BLOCK, rules.ADDRESSES) or value.startswith(_UNREAD) or value == _WITHHELD:
            return None
        parts.append(value)
    return "\n".join(parts)


_DECIDED_BY_RECORDS = ("producer_ids",)  # also where the values are equal, see excuses
OF_DUAL_WRITE = "-1"  # the broker of a producer id block: ZkMigrationClient.writeProducerId
_UNREAD = '{"unread":'
_WITHHELD = canonical({"digest": None})


def _is_unread(value):
    return value is not None and value.startswith(_UNREAD)


def _agree(how, left, right, field):
    ours, theirs = left.get(field), right.get(field)
    if how == rules.BLOCK:
        # Left: ZooKeeper's block. Right: KRaft's next id. ZkMigrationClient.migrateProducerId takes the end of the
        # block of a broker (KAFKA-15552 took its begin); writeProducerId writes the next block, assigned to none.
        return theirs is not None and theirs == (left.get("start") if left.get("broker") == OF_DUAL_WRITE else ours)
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
        return all(ours == other or not (ours and other) for ours, other in zip(left, right))

    return all(any(fits(left, right) for left in ours) for right in theirs)


def _difference(comparison, kind, key, field, sides, how):
    rule = rules.rule(kind, field or "")
    why = f"{how}" + (f"; {rule.why}" if rule.why else "")
    return Difference(kind, key, field, sides, comparison.relation, why, rule.do)
