# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Every release against every level of every other release: which changes are refused, and what the text says."""

from __future__ import annotations

import itertools
import re

import pytest
from ansible_collections.quorumshift.kafka.plugins.module_utils.core.releases import (
    features,
    kafka_releases,
    levels,
    releases,
)
from ansible_collections.quorumshift.kafka.plugins.module_utils.core.releases.features import Range

MV, KRAFT = features.METADATA_VERSION, features.KRAFT_VERSION
RELEASES = kafka_releases.RELEASES
BUILDS = [release["builds"][-1] for release in RELEASES.values()]


def supported(build, feature):
    return RELEASES[releases.parse_release(build)]["features"].get(feature, (0, 0, 0))[:2]


def cases():
    """Yield (build that runs, target, feature, level) of each level that the running build supports."""
    for before, target in itertools.product(BUILDS, BUILDS):
        for feature, (lowest, highest, _new) in RELEASES[releases.parse_release(before)]["features"].items():
            for level in range(lowest, highest + 1):
                yield before, target, feature, level


def refused(before, target, feature, level, **others):
    running = {releases.parse_release(before)}
    least = max(supported(before, MV)[0], supported(target, MV)[0])
    finalized = {MV: min(least, supported(before, MV)[1]), feature: level, **others}
    return levels.refusals(target, running, finalized)


def test_a_change_is_refused_exactly_where_the_release_does_not_support_the_level():
    count = 0
    for before, target, feature, level in cases():
        lowest, highest = supported(target, feature)
        reasons = [reason for reason in refused(before, target, feature, level) if reason.startswith(feature)]
        assert bool(reasons) == (not lowest <= level <= highest), (before, target, feature, level, reasons)
        count += 1
    assert count > 3000


def test_what_a_refusal_tells_to_do_leads_to_the_release():
    """Lowering and raising stay inside what the running release supports, and end inside the target's range."""
    advice = {"lower": 0, "delete": 0, "choose": 0, "raise": 0, "upgrade": 0}
    for before, target, feature, level in cases():
        for text in refused(before, target, feature, level):
            if not text.startswith(feature):
                continue
            lowest, highest = supported(target, feature)
            if "Lower it to" in text:
                advice["lower"] += 1
                to = features.level_of(feature, re.search(r"Lower it to (\S+) first", text).group(1))
                assert to == highest and levels.can_go_down(feature, level, to)
                assert supported(before, feature)[0] <= to <= level
            elif "Delete it first" in text:
                advice["delete"] += 1
                assert highest == 0 and supported(before, feature)[0] == 0 and feature not in (MV, KRAFT)
            elif "Choose a release from" in text:
                advice["choose"] += 1
                least = tuple(map(int, re.search(r"from (\d+)\.(\d+) on", text).groups()))
                assert not levels.can_go_down(feature, level, highest)
                ranges = {release: RELEASES[release]["features"].get(feature, (0, 0))[:2] for release in RELEASES}
                assert least == min(release for release, (low, high) in ranges.items() if low <= level <= high)
            elif "Raise it first" in text:
                advice["raise"] += 1
                assert supported(before, feature)[0] <= lowest <= supported(before, feature)[1]
            else:
                advice["upgrade"] += 1
                over = re.search(r"Upgrade to (\S+) first", text).group(1)
                low, high, _new = RELEASES[tuple(map(int, over.split(".")))]["features"][feature]
                assert low <= level and lowest <= high and lowest > supported(before, feature)[1]
    assert all(advice[what] for what in ("lower", "delete", "choose", "raise")), advice


@pytest.mark.parametrize(
    ("before", "target", "finalized", "text"),
    [
        ("4.3.1", "4.2.1", {MV: 30}, "metadata.version is 4.3-IV0, and Kafka 4.2.1 supports 4.2-IV1 at most"),
        ("4.3.1", "4.2.1", {MV: 30}, "Kafka does not lower it that far. Choose a release from 4.3 on"),
        ("4.4.0", "4.3.2", {MV: 33}, "metadata.version is 4.4-IV2, and Kafka 4.3.2 supports 4.3-IV0 at most"),
        ("4.4.0", "4.3.2", {MV: 31}, "Lower it to 4.3-IV0 first"),
        ("4.4.0", "4.3.2", {MV: 30, "share.version": 2}, "share.version is 2, and Kafka 4.3.2 supports 1 at most"),
        ("4.4.0", "4.3.2", {MV: 30, "streams.version": 2}, "streams.version is 2, and Kafka 4.3.2 supports 1 at most"),
        ("4.2.1", "4.1.1", {MV: 27, "streams.version": 1}, "Kafka 4.1.1 does not know it. Delete it first"),
        ("3.9.2", "3.8.1", {MV: 20, KRAFT: 1}, "Kafka does not lower it that far. Choose a release from 3.9 on"),
        ("8.4.0-ccs", "8.3.1-ccs", {MV: 33}, "Kafka 8.3.1-ccs supports 4.3-IV0 at most"),
        ("4.0.1", "4.0.2", {MV: 26}, "metadata.version is 4.1-IV0, and Kafka 4.0.2 supports 4.0-IV3 at most"),
    ],
)
def test_neighbours(before, target, finalized, text):
    (reason,) = levels.refusals(target, {releases.parse_release(before)}, finalized)
    assert text in reason


def test_what_live_nodes_announce_comes_before_the_table():
    known = {(4, 5): {MV: Range(7, 35)}, (4, 4): {MV: Range(7, 34)}}
    assert levels.refusals("4.5.0", {(4, 4)}, {MV: 33}, known) == []
    assert "at most" in levels.refusals("4.5.0", {(4, 6)}, {MV: 36}, known)[0]
    assert levels.refusals("4.4.1", {(4, 4)}, {MV: 34}, known) == [], "of the same release, with unstable levels"
    (unknown,) = levels.refusals("4.5.0", {(4, 4)}, {MV: 33}, {(4, 4): known[(4, 4)]})
    assert "no live node runs it, and this collection knows the releases 3.3 to 4.4" in unknown


def test_a_level_that_is_unstable_in_the_running_release_goes_nowhere_else():
    (reason,) = levels.refusals("4.4.0", {(4, 3)}, {MV: 31})
    assert "level 31, which is unstable in Kafka 4.3" in reason


def test_without_finalized_levels_nothing_begins():
    (reason,) = levels.refusals("4.1.1", {(3, 9)}, {})
    assert "no live node says which levels are finalized" in reason


ANSWERS = {
    "broker 1 at b1:9092": {"role": "broker", "id": 1, "address": "b1:9092", "supported": {MV: [7, 33], "x": [0, 1]}},
    "broker 2 at b2:9092": {"role": "broker", "id": 2, "address": "b2:9092", "supported": {MV: [7, 34]}},
    "broker 3 at b3:9092": {"error": "timeout"},
    "controller at c1:9093": {"role": "controller", "id": None, "address": "c1:9093", "supported": {MV: [1, 21]}},
}


def node(role, node_id, address, version, active=True):
    return {"role": role, "node_id": node_id, "address": address, "version": version, "service": {"active": active}}


def test_a_release_has_what_all_its_live_nodes_announce():
    nodes = {
        "b1": node("broker", 1, "b1:9092", "4.4.0"),
        "b2": node("broker", 2, "b2:9092", "8.4.0-ccs"),
        "b3": node("broker", 3, "b3:9092", "4.3.1"),
        "c1": node("controller", 3001, "c1:9093", "3.9.2"),
        "c2": node("controller", 1, "c2:9093", "4.0.1"),
    }
    found = {(4, 4): {MV: Range(7, 33)}, (3, 9): {MV: Range(1, 21)}}
    assert levels.find_announced(nodes, ANSWERS) == found
    nodes["b1"]["service"]["active"] = nodes["c1"]["service"]["active"] = False
    assert levels.find_announced(nodes, ANSWERS) == {(4, 4): {MV: Range(7, 34)}}, "the version is that of what runs"


def test_levels_go_down_to_the_last_that_changed_metadata():
    assert levels.can_go_down(MV, 22, 17) and not levels.can_go_down(MV, 23, 22) and levels.can_go_down(MV, 29, 23)
    assert not any(levels.can_go_down(MV, level, level - 1) for level in (23, 30, 32, 33))
    assert all(levels.can_go_down(MV, level, level - 1) for level in (22, 24, 25, 26, 27, 28, 29, 31))
    assert levels.can_go_down("share.version", 2, 0) and not levels.can_go_down(KRAFT, 1, 0)
