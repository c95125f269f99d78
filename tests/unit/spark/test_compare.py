# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The comparison by the table of rules: it finds every difference and reports no equal values."""

from __future__ import annotations

import pytest
from quorumshift_spark import normal_form as form
from quorumshift_spark import rules
from quorumshift_spark.compare import (
    DIFFER,
    LEFT_ONLY,
    MATCH,
    RIGHT_ONLY,
    SKIPPED,
    Outcome,
    compare,
    projection,
)
from quorumshift_spark.normal_form import FIELDS, canonical
from quorumshift_spark.rules import SERVED, SINCE, ZOOKEEPER_LOG
from quorumshift_spark.views import Absent

from tests.unit.spark.realistic import BROKER, DIGESTS, LOG, ZXID, comparisons, entities, in_view, mutations

COMPARISONS = comparisons()
IDS = [f"{c.left}-{c.right}" for c in COMPARISONS]


def outcome(comparison, left, right):
    present = left if not isinstance(left, Absent) else right
    return compare(comparison, present.kind, present.key, left, right)


def comparison_with(relation):
    return next(c for c in COMPARISONS if c.relation == relation)


def test_every_relation_and_field_is_in_the_table():
    assert {c.relation for c in COMPARISONS} == set(rules.RELATIONS)
    listed = [(rule.kind, rule.field) for rule in rules.TABLE]
    assert len(listed) == len(set(listed))
    for kind, fields in FIELDS.items():
        assert {field for k, field in listed if k == kind} >= {"", *fields}


def test_every_kind_and_field_is_in_the_test_metadata():
    assert {(e.kind, field) for e in entities() for field in ("", *e.fields)} == {
        (kind, field) for kind, fields in FIELDS.items() for field in ("", *fields)
    }


@pytest.mark.parametrize("comparison", COMPARISONS, ids=IDS)
def test_equal_entities_match(comparison):
    for entity in entities():
        if entity.kind in comparison.kinds:
            left, right = in_view(comparison.left, entity), in_view(comparison.right, entity)
            assert outcome(comparison, left, right) == Outcome(MATCH), entity


@pytest.mark.parametrize("side", ["left", "right"])
@pytest.mark.parametrize("comparison", COMPARISONS, ids=IDS)
def test_every_changed_field_is_found_with_both_sides(comparison, side):
    mutated = 0
    for entity in entities():
        if entity.kind not in comparison.kinds:
            continue
        both = {name: in_view(getattr(comparison, name), entity) for name in ("left", "right")}
        compared = [field for field, _how in rules.compared_fields(entity.kind, comparison.relation)]
        for field in both[side].fields:
            for what, other in mutations(both[side], field):
                if comparison.relation == SERVED and _is_withheld(both["right"], field):
                    continue  # the value is withheld: only presence is compared
                result = outcome(comparison, **{**both, side: other})
                if field not in compared:
                    assert result.outcome == MATCH, (entity, field, what)
                    continue
                mutated += 1
                assert result.outcome == DIFFER, (entity, field, what)
                (difference,) = result.differences
                assert (difference.kind, difference.key, difference.field) == (entity.kind, entity.key, field)
                expected = {getattr(comparison, name): both[name].fields.get(field) for name in both}
                assert difference.sides == {**expected, getattr(comparison, side): other.fields[field]}
                assert difference.do and difference.text()
    assert mutated > 40


def _is_withheld(entity, field):
    return entity.fields.get(field) == canonical({"digest": None})


@pytest.mark.parametrize("comparison", COMPARISONS, ids=IDS)
def test_missing_and_extra_entities_of_every_kind_are_found(comparison):
    kinds = set()
    for entity in entities():
        if entity.kind in comparison.kinds:
            left, right = in_view(comparison.left, entity), in_view(comparison.right, entity)
            for result, expected in (
                (outcome(comparison, left, Absent({"zxid": ZXID})), LEFT_ONLY),
                (outcome(comparison, Absent({}), right), RIGHT_ONLY),
            ):
                if entity.kind == "broker" and comparison.relation in (ZOOKEEPER_LOG, SINCE):  # see the table
                    assert result.outcome == MATCH and result.explained
                    continue
                assert result.outcome == expected, entity
                (difference,) = result.differences
                assert difference.field is None
                assert list(difference.sides.values()).count(None) == 1
            kinds.add(entity.kind)
    assert kinds == set(comparison.kinds)


_AT = [["PLAINTEXT", "b1", 9092, "PLAINTEXT"], ["SASL", "b1", 9093, "SASL_SSL"]]


@pytest.mark.parametrize(
    ("relation", "endpoints", "expected"),
    [
        (SERVED, [["", "b1", 9093, ""]], MATCH),  # a broker shows the address of one listener
        (SERVED, [["", "b2", 9093, ""]], DIFFER),
        (SERVED, [["", "b1", 9094, ""]], DIFFER),
        (ZOOKEEPER_LOG, _AT, MATCH),
        (ZOOKEEPER_LOG, _AT[:1], DIFFER),
        (ZOOKEEPER_LOG, [_AT[0], ["SASL", "b1", 9093, "SASL_PLAINTEXT"]], DIFFER),
        (ZOOKEEPER_LOG, [_AT[0], ["SASL", "", 9093, "SASL_SSL"]], MATCH),  # the host's own name
    ],
)
def test_endpoints_of_a_registration(relation, endpoints, expected):
    left, right = (
        form.broker(1, {"fenced": False, "rack": None, "endpoints": address}) for address in (_AT, endpoints)
    )
    assert outcome(comparison_with(relation), left, right).outcome == expected


@pytest.mark.parametrize("comparison", COMPARISONS, ids=IDS)
def test_equal_projections_mean_a_match(comparison):
    """Entities with equal projections match in `compare`, and nearly all equal entities have equal projections."""
    equal, equal_projections = 0, 0
    for entity in entities():
        if entity.kind not in comparison.kinds:
            continue
        left = in_view(comparison.left, entity)
        right = in_view(comparison.right, entity)
        variants = [right] + [other for field in right.fields for _what, other in mutations(right, field)]
        for other in variants:
            ours = projection(comparison.relation, left.kind, left.fields)
            if ours is not None and ours == projection(comparison.relation, other.kind, other.fields):
                assert outcome(comparison, left, other).outcome == MATCH
                equal_projections += other is right
            equal += other is right
    assert equal_projections >= equal - 2


def test_replicas_are_compared_in_order_and_isr_as_a_set():
    left, right = (form.partition("t", 0, {"replicas": r, "isr": i}) for r, i in (([1, 2], [1, 2]), ([2, 1], [2, 1])))
    (difference,) = outcome(comparison_with(ZOOKEEPER_LOG), left, right).differences
    assert difference.field == "replicas"


@pytest.mark.parametrize(("owner", "expected"), [(1, 6000), (-1, 5000)])
def test_next_producer_id_follows_a_brokers_block_and_begins_the_one_of_dual_write(owner, expected):
    """The begin of a broker's block is KAFKA-15552: its ids would be assigned twice."""
    left = form.producer_ids(6000, 5000, owner)
    for next_id in (5000, 5999, 6000, 7000):
        result = outcome(comparison_with(ZOOKEEPER_LOG), left, form.producer_ids(next_id))
        assert result.outcome == (MATCH if next_id == expected else DIFFER), next_id


def test_configs_of_brokers_are_compared_as_parsed():
    def value(text):
        return form.config("topic", "t", "retention.ms", text, DIGESTS)

    assert outcome(comparison_with(SERVED), value(" 0100"), value("100")).outcome == MATCH
    assert outcome(comparison_with(SERVED), value("100"), value("101")).outcome == DIFFER
    assert outcome(comparison_with(ZOOKEEPER_LOG), value(" 0100"), value("100")).outcome == DIFFER


def test_withheld_secret_is_compared_by_presence():
    secret = form.config("broker", "1", "a.password", "x", DIGESTS)
    withheld = form.config("broker", "1", "a.password", None, DIGESTS, withheld=True)
    assert outcome(comparison_with(SERVED), secret, withheld).outcome == MATCH
    assert outcome(comparison_with(SERVED), secret, Absent({})).outcome == LEFT_ONLY
    unknown = form.config("broker", "1", "custom.thing", "clear", DIGESTS)
    assert outcome(comparison_with(SERVED), unknown, withheld).outcome == MATCH
    assert "clear" not in canonical(form.config("broker", "1", "x.secret", "clear", DIGESTS).fields)


def test_unread_config_is_skipped_with_the_reason():
    unread = form.unread_config("broker", "1", "a.password", "no secret")
    readable = form.config("broker", "1", "a.password", "x", DIGESTS)
    for left, right in ((unread, readable), (readable, unread), (unread, unread)):
        result = outcome(comparison_with(ZOOKEEPER_LOG), left, right)
        assert result.outcome == SKIPPED
        assert "no secret" in result.explained
        assert projection(ZOOKEEPER_LOG, "config", unread.fields) is None


@pytest.mark.parametrize(
    ("relation", "entity", "allowed"),
    [
        (ZOOKEEPER_LOG, form.config("client_metrics", "all", "interval.ms", "1", DIGESTS), True),
        (SERVED, form.config("client_metrics", "all", "interval.ms", "1", DIGESTS), False),
        (SERVED, form.config("broker", "2", "log.cleaner.threads", "1", DIGESTS), True),
        (SERVED, form.config("broker", "1", "log.cleaner.threads", "1", DIGESTS), False),
        (SERVED, form.config("broker", None, "log.cleaner.threads", "1", DIGESTS), False),
        (SERVED, form.broker(7, {"fenced": True}), True),
        (SERVED, form.broker(7, {"fenced": False}), False),
        (SERVED, form.feature("kraft.version", 1), True),
        (SERVED, form.feature("metadata.version", 1), False),
    ],
)
def test_entities_allowed_on_one_side_only(relation, entity, allowed):
    comparison = comparison_with(relation)
    sides = (Absent({}), entity) if relation == ZOOKEEPER_LOG else (entity, Absent({}))
    result = outcome(comparison, *sides)
    assert (result.outcome == MATCH) is allowed
    assert bool(result.explained) is allowed


def test_entity_absent_on_both_sides_has_no_outcome():
    assert compare(COMPARISONS[0], "topic", '["t"]', Absent({}), Absent({})).outcome is None


# --- the comparisons of a gate --------------------------------------------------------------------


def pairs(gate, *names, zookeeper_mode=()):
    every = dict.fromkeys(names, form.KINDS)
    return {(c.left, c.right): c for c in rules.plan(gate, every, zookeeper_mode)}


def test_every_gate_compares_each_view_it_needs():
    names = {"zookeeper": "zookeeper", "metadata_log": "metadata_log", "broker": "broker:1"}
    for gate, (needs, _takes, decides) in rules.GATES.items():
        views = [names[need] for need in needs if need != "baseline"]
        views += [f"baseline:{view}" for view in views if "baseline" in needs and not view.startswith("broker")]
        planned = pairs(gate, *views)
        assert {view for pair in planned for view in pair} == set(views), gate
        assert (decides, "broker:1") in planned


@pytest.mark.parametrize("gate", list(rules.GATES))
def test_missing_view_is_named(gate):
    for missing in rules.GATES[gate].needs:
        given = [need for need in rules.GATES[gate].needs if need != missing]
        with pytest.raises(rules.PlanError, match=f"needs the view {missing}"):
            pairs(gate, *given)


def test_unknown_gate_is_named():
    with pytest.raises(rules.PlanError, match="before_lunch"):
        pairs("before_lunch", "zookeeper")


def test_client_metadata_of_brokers_in_zookeeper_mode_is_compared_with_zookeeper():
    planned = pairs("after_copy", "zookeeper", LOG, BROKER, "baseline:zookeeper", zookeeper_mode=[BROKER])
    assert set(planned[("zookeeper", BROKER)].kinds) == {"config", "quota", "scram", "acl", "delegation_token"}
    assert set(planned[(LOG, BROKER)].kinds) == {"topic", "partition", "broker"}
    assert "do not show what KRaft holds" in planned[("zookeeper", BROKER)].note
    assert ("zookeeper", BROKER) not in pairs("after_kraft", "zookeeper", LOG, BROKER, "baseline:zookeeper")


def test_what_a_broker_in_zookeeper_mode_asks_zookeeper_for_is_no_agreement():
    asked = pairs("before_trigger", "zookeeper", BROKER, zookeeper_mode=[BROKER])[("zookeeper", BROKER)]
    assert set(asked.same_source) == {"config", "quota", "scram"} < set(asked.kinds)
    for gate in ("after_copy", "after_kraft"):
        planned = pairs(gate, "zookeeper", LOG, BROKER, zookeeper_mode=[BROKER] if gate == "after_copy" else [])
        assert not planned[(LOG, BROKER)].same_source and not planned[("zookeeper", LOG)].same_source


def uncovered(
    gate="after_kraft",
    held=None,
    up=(1, 2),
    not_served=None,
    baselines=("baseline:zookeeper", "baseline:metadata_log"),
    behind=None,
    apart=None,
    off_before=None,
):
    served = {"broker:1": {}, "broker:2": {}} if not_served is None else not_served
    held = {"topic": 5, "acl": 3} if held is None else held
    return rules.uncovered(
        gate, "metadata_log", held, up, served, baselines, behind or {}, 900, apart or {}, off_before
    )


_NO_AUTHORIZER = {"acl": "DescribeAcls: SECURITY_DISABLED: No Authorizer is configured."}


def test_a_registered_broker_without_a_view_is_uncovered():
    assert uncovered() == []
    (said,) = uncovered(up=[1, 2, 7])
    assert said.startswith("nothing compared what registered brokers serve: 7. Add them to the inventory")


def test_a_kind_that_one_broker_does_not_serve_is_uncovered():
    (said,) = uncovered(not_served={"broker:1": {}, "broker:2": _NO_AUTHORIZER})
    assert (
        "metadata_log has 3 entities of kind acl, which broker:2 did not serve (DescribeAcls: SECURITY_DISABLED" in said
    )
    assert uncovered(held={"topic": 5, "acl": 0}, not_served={"broker:1": {}, "broker:2": _NO_AUTHORIZER}) == []


def test_a_kind_that_is_off_on_every_broker_is_covered_and_one_that_is_hidden_is_not():
    assert uncovered(not_served={"broker:1": _NO_AUTHORIZER, "broker:2": _NO_AUTHORIZER}) == []
    said = uncovered(up=[1], not_served={"broker:2": _NO_AUTHORIZER})
    assert len(said) == 2, "broker 1 may have an authorizer"
    hidden = {"delegation_token": "DescribeDelegationToken: DELEGATION_TOKEN_REQUEST_NOT_ALLOWED"}
    (said,) = uncovered(held={"delegation_token": 2}, not_served={"broker:1": hidden, "broker:2": hidden})
    assert "broker:1 and 1 more did not serve" in said


def test_a_kind_that_is_off_now_and_was_not_at_the_baseline_is_uncovered():
    every = {"broker:1": _NO_AUTHORIZER, "broker:2": _NO_AUTHORIZER}
    for held in ({"topic": 5, "acl": 3}, {"topic": 5}):  # without ACLs, super users alone had access
        assert uncovered(held=held, not_served=every, off_before=["acl"]) == []
        (said,) = uncovered(held=held, not_served=every, off_before=[])
        assert said.startswith("brokers served acl at the baseline, and none does now (broker:1: DescribeAcls")


def test_a_broker_that_serves_an_older_image_is_uncovered():
    (said,) = uncovered(behind={"broker:2": 880})
    assert said.startswith("broker:2 serves metadata up to offset 880, the log that was compared ends at 900")


def test_a_log_of_a_voter_is_needed_where_the_gate_needs_the_log():
    (said,) = uncovered(apart={"metadata_log:103": "c3 cannot be reached"})
    assert said == "the log of controller 103 was not compared with the leader's: c3 cannot be reached"
    assert uncovered("before_revert", apart={"metadata_log:103": "c3 cannot be reached"}) == []


def test_the_last_gate_needs_a_baseline():
    assert uncovered(baselines=()) == []
    for without in ((), ("baseline:zookeeper",)):  # that nothing is compared with
        (said,) = uncovered("after_finalize", baselines=without)
        assert "after_finalize has no baseline of the metadata log" in said


def test_before_revert_uses_the_log_if_given():
    views = ("zookeeper", BROKER, "baseline:zookeeper")
    assert (LOG, BROKER) not in pairs("before_revert", *views)
    assert {("zookeeper", LOG), (LOG, BROKER)} <= set(pairs("before_revert", *views, LOG))


def test_markdown_has_every_row_and_gate():
    text = rules.markdown()
    for rule in rules.TABLE:
        assert f"| {rule.kind} | {rule.field or '(exists)'} |" in text
    for gate in rules.GATES:
        assert f"| `{gate}` |" in text
    for name, _what in rules.COVERAGE:
        assert f"| {name} |" in text
    cells = {line.count("|") for line in text.splitlines() if line}
    assert len(cells) == 3
