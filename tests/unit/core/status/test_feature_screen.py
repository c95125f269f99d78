# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The table of features, a change as it is shown, and the lines of `status`."""

from __future__ import annotations

import pytest
from ansible_collections.quorumshift.kafka.plugins.module_utils.core.status import feature_screen

from tests.unit.core import recorded

MV, KRAFT = "metadata.version", "kraft.version"
OF_39 = {"supported": {KRAFT: [0, 1], MV: [1, 21]}, "finalized": {MV: 19}, "epoch": 31}
OF_37 = {"supported": {MV: [1, 19]}, "finalized": {MV: 18}, "epoch": 12}


def test_the_table():
    found = {
        **{"cluster_id": "Qs", "mode": "kraft", "epoch": 31, "quorum_error": "refused", "voters_unknown": [7]},
        **{"alive": [4], "lagging": ["broker 2 serves metadata.version 18 at epoch 12"], "notes": ["Static voters."]},
        "finalized": {MV: {"level": 19, "name": "3.7-IV4", "minimum": 19}},
        "held_back": {MV: {"broker 2": 19}, KRAFT: {"broker 2": 0}},
        "nodes": {"broker 1": OF_39, "broker 2": OF_37, "broker 3": {"error": "b3:9092: refused"}},
    }
    assert feature_screen.render(found) == [
        "Features of cluster Qs: mode kraft, epoch 31",
        "  feature           finalized     minimum       every node supports          held back by",
        "  kraft.version     -             -             0 to 0                       broker 2 (0)",
        "  metadata.version  3.7-IV4 (19)  3.7-IV4 (19)  3.0-IV1 (1) to 3.7-IV4 (19)  broker 2 (3.7-IV4 (19))",
        "",
        "  node      release    epoch  kraft.version  metadata.version",
        "  broker 1  3.9        31     0 to 1         1 to 21",
        "  broker 2  3.7        12     -              1 to 19",
        "  broker 3  no answer",
        "  ! broker 3: b3:9092: refused",
        "  ! the quorum could not be described: refused",
        "  ! controllers whose address is unknown: 7",
        "  ! no broker answered, and these have just fetched the metadata log: 4",
        "  ! lags: broker 2 serves metadata.version 18 at epoch 12",
        "  Static voters.",
    ]


@pytest.mark.parametrize(
    ("before", "after", "shown"),
    [
        (0, 1, "add group.version: not finalized -> 1"),
        (1, 0, "delete group.version: 1 -> deleted"),
        (1, 2, "raise group.version: 1 -> 2"),
        (2, 1, "lower group.version: 2 -> 1"),
    ],
)
def test_a_change(before, after, shown):
    update = {"feature": "group.version", "before": before, "after": after}
    result = {"results": [update], "notes": [], "one_way": [], "token": ""}
    lines = feature_screen.render_change(result, False)
    assert lines == [shown, "the controller accepts it. To make it, add -e features_apply=true"]
    assert feature_screen.render_change({**result, "results": []}, False) == ["nothing would change"]


def test_the_lines_of_the_status():
    facts = {"nodes": {"b1": {"features": OF_39}, "b2": {"features": OF_37}, "b3": {}, "c1": {"features": OF_39}}}
    of_zookeeper = {"supported": {}, "finalized": {}, "epoch": 0}
    facts["nodes"].update(
        b4={"running": "zk", "features": of_zookeeper}, b5={"running": "zk_migration", "features": of_zookeeper}
    )
    summary = feature_screen.summary(facts)
    assert summary["held_back"] == {MV: {"b2": 19}, KRAFT: {"b2": 0}} and summary["finalized"] == {MV: 19}
    assert feature_screen.lines(summary) == [
        "features: metadata.version 3.7-IV4 (19); epoch 31",
        "features: kraft.version can be 0 at most, held back by b2 (0)",
        "features: metadata.version can be 3.7-IV4 (19) at most, held back by b2 (3.7-IV4 (19))",
        "! features: b2 serves metadata.version 18 at epoch 12.",
    ]


def test_without_a_finalized_feature_nothing_is_shown():
    in_zookeeper_mode = {**OF_39, "finalized": {}, "epoch": 0}
    for nodes in ({}, {"b1": {}}, {"b1": {"features": in_zookeeper_mode}}, recorded.facts("finalized")["nodes"]):
        assert feature_screen.lines(feature_screen.summary({"nodes": nodes})) == []
