# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""All features to those of a release and back, their order, what nothing takes back."""

from __future__ import annotations

import pytest
from ansible_collections.quorumshift.kafka.plugins.module_utils.core.releases import feature_changes as changes
from ansible_collections.quorumshift.kafka.plugins.module_utils.core.releases import features, kafka_releases, levels
from ansible_collections.quorumshift.kafka.plugins.module_utils.core.releases.features import Range, Update

MV, KRAFT, GROUP, ELR = "metadata.version", "kraft.version", "group.version", "eligible.leader.replicas.version"
OF_41 = {MV: 27, GROUP: 1, "transaction.version": 2, ELR: 1}


def test_up_to_a_release_is_what_a_new_cluster_of_it_has():
    assert changes.levels_up_to("4.1", {MV: 21}, True) == OF_41
    assert changes.levels_up_to("4.1.1", {MV: 21}, True) == OF_41, "the version of a build"
    assert changes.levels_up_to("8.1.0-ccs", {MV: 21}, True) == OF_41, "of Confluent Platform"
    assert changes.levels_up_to("4.0", OF_41, True) == {}, "nothing goes down"
    assert changes.levels_up_to("3.9", {MV: 20}, True) == {MV: 21}


@pytest.mark.parametrize("release", ["2.8", "9.9", "4", "nonsense", "4.1-IV0"])
@pytest.mark.parametrize(
    "find", [lambda to: changes.levels_up_to(to, {MV: 21}, True), lambda to: changes.levels_down_to(to, {MV: 21})]
)
def test_a_release_that_the_table_does_not_have(release, find):
    with pytest.raises(features.FeatureError, match=r"releases 3\.3 to"):
        find(release)


def test_down_to_a_release_lowers_only_what_it_does_not_support():
    now = {**OF_41, "share.version": 1}
    assert changes.levels_down_to("4.0", now) == {MV: 25, "share.version": 0}
    assert changes.levels_down_to("4.1", now) == {}
    assert changes.levels_down_to("4.4", now) == {}


@pytest.mark.parametrize(
    ("now", "release", "named"),
    [
        ({MV: 27, GROUP: 1}, "3.9", "4.0-IV1 (23). It goes down to 4.0-IV1, which Kafka 4.0 is the first to support"),
        ({MV: 21}, "3.6", "3.7-IV0 (15), 3.7-IV2 (17). It goes down to 3.7-IV2, which Kafka 3.7"),
        ({MV: 25, KRAFT: 1}, "3.8", "kraft.version is 1, and the release supports none at most; Kafka never lowers it"),
    ],
)
def test_the_levels_past_which_kafka_does_not_go_down_are_named(now, release, named):
    with pytest.raises(features.FeatureError) as refused:
        changes.levels_down_to(release, now)
    assert named in str(refused.value), refused.value


@pytest.mark.parametrize("release", list(kafka_releases.RELEASES))
@pytest.mark.parametrize("other", list(kafka_releases.RELEASES))
def test_a_release_can_start_with_the_levels_that_lead_down_to_it(release, other):
    """From a new cluster of each release to each other one: what is not refused is what upgrade.yml lets begin."""
    now = {name: found[2] for name, found in kafka_releases.RELEASES[release]["features"].items() if found[2]}
    target = f"{other[0]}.{other[1]}"
    try:
        then = {**now, **changes.levels_down_to(target, now)}
    except features.FeatureError:
        assert not levels.can_go_down(MV, now[MV], kafka_releases.RELEASES[other]["features"][MV][1])
        return
    assert (
        levels.refusals(f"{target}.0", [], {name: level for name, level in then.items() if level}) == []
        or other > release
    )


def test_changes_are_in_the_order_of_what_they_depend_on():
    mixed = (Update(ELR, 0, 1), Update(GROUP, 1, 0), Update(MV, 21, 27), Update("transaction.version", 0, 2))
    assert [change.feature for change in changes.in_order(mixed)] == [GROUP, MV, ELR, "transaction.version"]
    down = (Update(MV, 27, 25), Update("share.version", 1, 0))
    assert [change.feature for change in changes.in_order(down)] == ["share.version", MV]


@pytest.mark.parametrize(
    ("change", "unsafe", "why"),
    [
        (Update(MV, 20, 21), False, None),
        (Update(MV, 21, 25), False, "4.0-IV1 (23)"),
        (Update(MV, 27, 25), False, None),
        (Update(MV, 33, 99), False, "metadata.version 99 again is unknown"),
        (Update(KRAFT, 0, 1), False, "never lowers it"),
        (Update(GROUP, 0, 1), False, None),
        (Update(GROUP, 1, 0), False, None),
        (Update(GROUP, 1, 0), True, "unsafe, which may lose metadata"),
        (Update("new.version", 0, 1), False, "lowers new.version again is unknown"),
    ],
)
def test_what_nothing_takes_back(change, unsafe, why):
    found = changes.find_one_way((change,), unsafe)
    assert (found == []) if why is None else (why in found[0].why), found


def test_every_raise_of_the_table_that_kafka_would_not_lower_needs_the_token():
    for before in features.LEVEL_NAMES:
        for after in features.LEVEL_NAMES:
            if after > before:
                needs = bool(changes.find_one_way((Update(MV, before, after),)))
                assert needs is not levels.can_go_down(MV, after, before), (before, after)


def test_a_token_is_of_one_cluster_and_these_levels():
    first = changes.find_one_way((Update(MV, 21, 25),))
    other = changes.find_one_way((Update(MV, 20, 25),))
    found = {changes.token("Qs", first), changes.token("Qs", other), changes.token("Other", first)}
    assert len(found) == 3 and all(len(token.partition(":")[2]) == 6 for token in found)
    said = changes.explain_token(first, "Qs:1", "Qs:2")
    assert "The token given is Qs:2" in said and "give the token Qs:1" in said


def test_who_meets_a_lower_level():
    lowered = (Update(GROUP, 1, 0), Update(MV, 21, 20), Update("transaction.version", 0, 2))
    (note,) = changes.client_notes(lowered)
    assert "group.protocol=classic" in note


def test_which_node_holds_a_feature_back():
    supported = {
        "broker 1": {MV: Range(1, 21), KRAFT: Range(0, 1)},
        "broker 2": {MV: Range(1, 19)},
        "controller 3": {MV: Range(1, 21), KRAFT: Range(0, 1)},
    }
    assert changes.find_held_back(supported) == {MV: {"broker 2": 19}, KRAFT: {"broker 2": 0}}
    assert changes.find_held_back({}) == {}
