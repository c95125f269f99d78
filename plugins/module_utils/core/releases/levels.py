# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which finalized levels a release of Kafka can start with, and which of them can be lowered. Pure.

A node starts only if its release supports every finalized level: a controller fails on the record of another level
(FeatureControlManager.replay), and the controller rejects the registration of such a broker (ClusterControlManager).
What live nodes announce of their release comes before the table of core.releases.kafka_releases.
tests/integration/test_kafka_releases.py compares the rules with Kafka's classes.
"""

from __future__ import annotations

from typing import Any, Collection, Dict, List, Mapping, Tuple

from ansible_collections.quorumshift.kafka.plugins.module_utils.core.releases import kafka_releases as table
from ansible_collections.quorumshift.kafka.plugins.module_utils.core.releases import releases
from ansible_collections.quorumshift.kafka.plugins.module_utils.core.releases.features import (
    KRAFT_VERSION,
    METADATA_VERSION,
    Range,
    name_of,
)
from ansible_collections.quorumshift.kafka.plugins.module_utils.facts import NodeFacts

Release = Tuple[int, int]
Announced = Mapping[Release, Mapping[str, Range]]
_NONE = Range(0, 0)


def ranges(release: Release, announced: Announced | None = None) -> Mapping[str, Range] | None:
    """Return the levels that a release supports, {feature: Range}; None if neither nodes nor the table say."""
    if announced and release in announced:
        return announced[release]
    known = table.RELEASES.get(release)
    return {name: Range(*found[:2]) for name, found in known["features"].items()} if known else None


def find_announced(
    nodes: Mapping[str, NodeFacts], seen: Mapping[str, Mapping[str, Any]]
) -> Dict[Release, Dict[str, Range]]:
    """Return the levels that all live nodes of a release support. `nodes`: facts; `seen`: nodes of admin.features."""
    answers = [answer for answer in seen.values() if "supported" in answer]
    found: Dict[Release, Dict[str, Range]] = {}
    for node in nodes.values():
        release = releases.parse_release(node.get("version") or "")
        if release is None or not (node.get("service") or {}).get("active"):
            continue
        for answer in answers:
            if not _is_of(answer, node):
                continue
            supported = {name: Range(*levels) for name, levels in answer["supported"].items()}
            before = found.get(release)
            found[release] = supported if before is None else _intersect(before, supported)
    return found


def can_go_down(feature: str, before: int, after: int) -> bool:
    """Return whether Kafka lowers this level, with downgrade: safe. With unsafe it lowers no other."""
    if feature == KRAFT_VERSION:
        return False
    return feature != METADATA_VERSION or not any(after < level <= before for level in table.ONE_WAY)


def refusals(
    target: str, running: Collection[Release], finalized: Mapping[str, int], known: Announced | None = None
) -> List[str]:
    """Return why nodes of `target` could not start with the finalized levels, as sentences.

    `running`: the releases that run beside the target; `known`: of `find_announced`.
    """
    release = releases.parse_release(target)
    supported = ranges(release, known)
    if supported is None:
        return [
            f"the levels that Kafka {target} supports are unknown: no live node runs it, and this collection knows the "
            f"releases {releases.format_release(min(table.RELEASES))} to "
            f"{releases.format_release(max(table.RELEASES))}. Update the "
            "collection, or choose one of these releases (QS-RESTART-004)"
        ]
    if METADATA_VERSION not in finalized:
        return [
            "no live node says which levels are finalized, so whether Kafka "
            f"{target} can start with them is unknown. Start the brokers and controllers, and run "
            "again (QS-RESTART-004)"
        ]
    reasons = [
        f"{METADATA_VERSION} is level {finalized[METADATA_VERSION]}, which is unstable in Kafka "
        f"{releases.format_release(other)}: a later release may give it another meaning. Kafka supports no other "
        "release with it (QS-RESTART-004)"
        for other in sorted(running)
        if other != release and other in table.RELEASES and finalized[METADATA_VERSION] > _last_level(other)
    ]
    for feature, level in sorted(finalized.items()):
        lowest, highest = supported.get(feature, _NONE)
        if level > highest:
            reasons.append(_too_high(feature, level, highest, target))
        elif level < lowest:
            reasons.append(_too_low(feature, level, lowest, target, running, known))
    return reasons


def find_oldest(finalized: Mapping[str, int]) -> Release | None:
    """Return the oldest release that can start with these levels, None if the table has none."""
    fit = [
        release
        for release in table.RELEASES
        if all(_has(ranges(release).get(feature, _NONE), level) for feature, level in finalized.items())
    ]
    return min(fit, default=None)


def _too_high(feature: str, level: int, highest: int, target: str) -> str:
    """Return why a level above those of the target keeps it from starting."""
    if not can_go_down(feature, level, highest):
        least = find_oldest({feature: level})
        return (
            f"{feature} is {name_of(feature, level)}, and Kafka {target} supports {name_of(feature, highest)} at most. "
            f"Kafka does not lower it that far. Choose {_format_bounds(least)} (QS-RESTART-004)"
        )
    if not highest:
        return (
            f"{feature} {level} is finalized, and Kafka {target} does not know it. Delete it first, with "
            "quorumshift.kafka.kafka_features and downgrade: safe (QS-RESTART-004)"
        )
    return (
        f"{feature} is {name_of(feature, level)}, and Kafka {target} supports {name_of(feature, highest)} at most. "
        f"Lower it to {name_of(feature, highest)} first, with quorumshift.kafka.kafka_features and downgrade: "
        "safe (QS-RESTART-004)"
    )


def _too_low(
    feature: str, level: int, lowest: int, target: str, running: Collection[Release], known: Announced | None
) -> str:
    """Return why a level below those of the target keeps it from starting."""
    between = [
        between_them
        for between_them in table.RELEASES
        if {level, lowest} <= set(_levels(ranges(between_them).get(feature, _NONE)))
    ]
    here = running and all(_has((ranges(node_release, known) or {}).get(feature), lowest) for node_release in running)
    if between and not here:
        return (
            f"{feature} is {name_of(feature, level)}, and Kafka {target} needs {name_of(feature, lowest)} at least. "
            f"Upgrade to {releases.format_release(max(between))} first, with its {feature} (QS-RESTART-004)"
        )
    return (
        f"{feature} is {name_of(feature, level)}, and Kafka {target} needs {name_of(feature, lowest)} at least. Raise "
        "it first, with the second step of this playbook or quorumshift.kafka.kafka_features (QS-RESTART-004)"
    )


def _format_bounds(least: Release | None) -> str:
    return f"a release from {releases.format_release(least)} on" if least else "the release that runs"


def _last_level(release: Release) -> int:
    return table.RELEASES[release]["features"][METADATA_VERSION][1]


def _has(found: Range | None, level: int) -> bool:
    return found is not None and found.lowest <= level <= found.highest


def _levels(found: Range) -> range:
    return range(found.lowest, found.highest + 1)


def _intersect(first: Mapping[str, Range], other: Mapping[str, Range]) -> Dict[str, Range]:
    """Return what both support."""
    return {
        name: Range(max(first[name].lowest, other[name].lowest), min(first[name].highest, other[name].highest))
        for name in first.keys() & other.keys()
    }


def _is_of(answer: Mapping[str, Any], node: NodeFacts) -> bool:
    """Return whether a live node's answer is of this node: by its id, or by its address where no broker names it."""
    if answer["role"] != node["role"]:
        return False
    if answer["id"] is None:
        return answer["address"] == node.get("address")
    return answer["id"] == node.get("node_id")
