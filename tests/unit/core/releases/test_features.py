# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Names of levels, and which update of features is allowed."""

from __future__ import annotations

import pytest
from ansible_collections.quorumshift.kafka.plugins.module_utils.core.releases import features, kafka_releases
from ansible_collections.quorumshift.kafka.plugins.module_utils.core.releases.features import Range

MV, KRAFT = features.METADATA_VERSION, features.KRAFT_VERSION
NODES = {
    "broker 1": {MV: Range(1, 25), KRAFT: Range(0, 1), "group.version": Range(0, 1)},
    "controller 2": {MV: Range(1, 21), KRAFT: Range(0, 1)},
}
NOW = {MV: 20}


@pytest.mark.parametrize(
    ("text", "level"),
    [
        ("3.9", 21),
        ("3.9-IV0", 21),
        (21, 21),
        ("21", 21),
        ("3.7", 19),
        ("3.3", 7),
        ("4.0", 25),
        ("4.2", 29),
        ("4.4", 33),
    ],
)
def test_levels_of_names(text, level):
    assert features.level_of(MV, text) == level


def test_names_of_levels():
    named = [features.name_of(MV, level) for level in (1, 8, 14, 19, 20, 21, 25, 29, 30, 33, 99)]
    assert named[:7] == ["3.0-IV1", "3.4-IV0", "3.6-IV2", "3.7-IV4", "3.8-IV0", "3.9-IV0", "4.0-IV3"]
    assert named[7:] == ["4.2-IV1", "4.3-IV0", "4.4-IV2", "99"]
    assert all(features.level_of(MV, name) == level for level, name in features.LEVEL_NAMES.items())


@pytest.mark.parametrize(("feature", "text"), [(MV, "2.8"), (MV, "IV0"), (KRAFT, "3.9")])
def test_what_is_no_level(feature, text):
    with pytest.raises(features.FeatureError):
        features.level_of(feature, text)


def test_all_are_raised_as_far_as_every_node_supports_them():
    def levels(static):
        return features.wanted_levels({}, True, NODES, NOW, static)

    assert levels(True) == {MV: 21} and levels(False) == {MV: 21, KRAFT: 1}
    assert features.wanted_levels({}, True, NODES, {MV: 25}, True) == {}


def refusal(wanted, finalized=None, downgrade="no", migrating=None, static=True):
    finalized = NOW if finalized is None else finalized
    changes = features.updates(features.wanted_levels(wanted, False, NODES, finalized, static), finalized)
    return features.refusal(changes, NODES, downgrade, migrating, static)


@pytest.mark.parametrize(
    ("wanted", "options", "text"),
    [
        ({MV: 21}, {}, None),
        ({MV: 20}, {"migrating": "broker 1"}, None),
        ({MV: 21}, {"migrating": "broker 1 runs in migration mode"}, "broker 1 runs in migration mode"),
        ({MV: 22}, {}, "controller 2 supports 3.0-IV1 to 3.9-IV0"),
        ({"group.version": 1}, {}, "controller 2 supports no level"),
        ({"other": 1}, {}, "no node knows the feature other"),
        ({KRAFT: 1}, {}, "static voters"),
        ({KRAFT: 1}, {"static": False}, None),
        ({MV: 19}, {}, "downgrade: safe"),
        ({MV: 0}, {}, "downgrade: safe"),
        ({MV: 19}, {"downgrade": "safe"}, None),
        ({MV: 0}, {"downgrade": "unsafe"}, None),
    ],
)
def test_refusals(wanted, options, text):
    refused = refusal(wanted, **options)
    assert (refused is None) if text is None else (text in refused)


def of_build(release):
    levels = kafka_releases.RELEASES[release]["features"]
    return {name: Range(low, high) for name, (low, high, _new) in levels.items()}


@pytest.mark.parametrize(
    ("nodes", "text"),
    [
        ([(3, 9)], "Kafka 3.9 reports success, and the voters stay static"),
        ([(4, 0)], "Kafka 4.0 reports success, and the voters stay static"),
        ([(4, 1)], "Kafka 4.1 makes them dynamic for good"),
        ([(4, 4)], "Kafka 4.4 makes them dynamic for good"),
        ([(4, 0), (4, 1)], "Kafka 4.0 and 4.1 makes them dynamic for good"),
        ([(3, 8), (3, 9)], "node 0 supports no level"),
        ([(3, 8)], "no node knows the feature kraft.version"),
    ],
)
def test_the_refusal_of_kraft_version_speaks_of_the_release_that_runs(nodes, text):
    supported = {f"node {index}": of_build(release) for index, release in enumerate(nodes)}
    refused = features.refusal((features.Update(KRAFT, 0, 1),), supported, "no", None, True)
    assert text in refused, refused
    assert [features.release_of(of_build(release)) for release in nodes] == nodes


FOUND = {"mode": "kraft", "static_voters": True, "migrating": None, "voters_unknown": [], "nodes": {"broker 1": {}}}
FOUND.update(alive=[], quorum_error=None)


@pytest.mark.parametrize(
    ("change", "text"),
    [
        ({}, None),
        ({"mode": "zookeeper"}, "ZooKeeper mode"),
        ({"nodes": {"broker 1": {"error": "refused"}}}, "broker 1: refused"),
        ({"voters_unknown": [3]}, "[3]"),
        ({"static_voters": None, "quorum_error": "c1:9093: refused"}, "c1:9093: refused"),
        ({"alive": [1, 2]}, "have just fetched: 1, 2"),
    ],
)
def test_clusters_whose_features_cannot_be_updated(change, text):
    refused = features.explain_unready({**FOUND, **change})
    assert (refused is None) if text is None else (text in refused)


def test_who_does_not_serve_a_level():
    nodes = {
        "broker 1": {"finalized": {MV: 21}, "epoch": 9},
        "broker 2": {"finalized": {MV: 20}, "epoch": 5},
        "controller 3": {"error": "unreachable"},
    }
    assert features.find_behind(nodes, {MV: 21}) == (
        "broker 2 serves metadata.version 20 at epoch 5",
        "controller 3: unreachable",
    )
    assert features.find_behind({"broker 1": {"finalized": {}, "epoch": 1}}, {MV: 0}) == ()


def test_a_level_of_before_the_update_is_behind():
    nodes = {
        "broker 1": {"finalized": {MV: 21}, "epoch": 12},
        "controller 3": {"finalized": {MV: 21}, "epoch": 9},
        "controller 4": {"finalized": {MV: 21}, "epoch": -1},
    }
    assert features.newest_epoch(nodes) == 12 and features.newest_epoch({"broker 1": {"error": "no"}}) == -1
    assert features.find_behind(nodes, {MV: 21}, after=9) == (
        "controller 3 serves metadata.version 21 at epoch 9, and the update is after epoch 9",
        "controller 4 serves metadata.version 21 at epoch -1, and the update is after epoch 9",
    )
    assert features.find_behind(nodes, {MV: 21}) == ()


@pytest.mark.parametrize(
    ("expected", "missing"),
    [
        ({}, None),
        ({"broker": [1], "controller": [3]}, None),
        ({"broker": [1, 2], "controller": [3]}, "broker 2"),
        ({"broker": [1], "controller": [3, 4]}, None),  # one controller answers at an address without a name
        ({"broker": [1], "controller": [3, 4, 5]}, "controller 4, controller 5"),
        ({"broker": [6]}, "broker 6"),
    ],
)
def test_no_level_rises_while_a_node_is_down(expected, missing):
    nodes = {
        "broker 1": {"role": "broker", "id": 1},
        "broker 6": {"role": "broker", "id": 6, "error": "refused"},
        "controller 3": {"role": "controller", "id": 3},
        "controller at c9:9093": {"role": "controller", "id": None},
    }
    refused = features.find_missing(nodes, expected)
    assert (refused is None) if missing is None else (f"unknown what they support: {missing}." in refused)


@pytest.mark.parametrize("answering", range(5))
def test_controllers_that_no_broker_names_count_each(answering):
    """Brokers before 3.9 name no controller, so none that answers has an id."""
    nodes = {f"controller at c{i}:9093": {"role": "controller", "id": None} for i in range(answering)}
    nodes["controller at c9:9093"] = {"role": "controller", "id": None, "error": "refused"}
    assert bool(features.find_missing(nodes, {"controller": [101, 102, 103]})) == (answering < 3)


def test_the_acl_that_a_principal_needs():
    said = features.explain_denied("Alter", "User:a b", "b1:9092,b2:9092", True)
    assert "--bootstrap-server b1:9092,b2:9092" in said
    assert said.endswith("--allow-principal 'User:a b' --operation Alter --cluster (QS-ADMIN-012)")
    assert "PRINCIPAL is the subject of" in features.explain_denied("Alter", "", "b1:9092", True)


def test_without_a_broker_no_acl_can_be_changed():
    said = features.explain_denied("Alter", "User:CN=probe", "b1:9092", False)
    assert "kafka-acls" not in said and "such as that of the controllers" in said


def test_who_lags():
    nodes = {
        "broker 1": {"finalized": {MV: 21, "group.version": 1}, "epoch": 9},
        "broker 2": {"finalized": {MV: 21}, "epoch": 5},
        "broker 3": {"finalized": {MV: 21, "group.version": 1, KRAFT: 1}, "epoch": 4},
        "broker 4": {"error": "refused"},
    }
    assert features.find_lagging(nodes, {MV: 21, "group.version": 1}) == (
        "broker 2 serves group.version 0 at epoch 5",
        "broker 3 serves kraft.version 1 at epoch 4",
    )


def test_what_applies_in_zookeeper_mode():
    stored = {"version": 2, "enabled": False, "features": {}, "epoch": 3}
    decides, disabled = features.notes("zookeeper", None, stored)
    assert "no feature at epoch 3" in decides and "below 2.7" in disabled
    assert len(features.notes("zookeeper", None, {**stored, "enabled": True})) == 1
    assert "not found or not read" in features.notes("zookeeper", None, None)[0]
