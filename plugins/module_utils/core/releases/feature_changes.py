# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Changes of all features to those of a release, what of a change nothing takes back, who would notice. Pure.

Source: KIP-584 (upgrade-all, downgrade-all), FeatureCommand (--release-version), FeatureControlManager.
core.releases.levels says which levels Kafka lowers.
"""

from __future__ import annotations

import re
from typing import Dict, List, Mapping, NamedTuple, Tuple

from ansible_collections.quorumshift.kafka.plugins.module_utils.core.releases import features, levels, releases
from ansible_collections.quorumshift.kafka.plugins.module_utils.core.releases import kafka_releases as table
from ansible_collections.quorumshift.kafka.plugins.module_utils.core.releases.features import (
    KRAFT_VERSION,
    METADATA_VERSION,
    FeatureError,
    Range,
    Update,
    name_of,
)
from ansible_collections.quorumshift.kafka.plugins.module_utils.core.text import confirmation

# What a client meets when a feature goes down. Sources: KIP-848, KIP-890, KIP-932, KIP-1071
_CLIENTS = {
    "group.version": "groups with group.protocol=consumer (KIP-848) are not served at level 0. Before, restart their "
    "members with group.protocol=classic",
    "share.version": "share groups (KIP-932) are not served at level 0. Before, stop their consumers",
    "streams.version": "groups with group.protocol=streams (KIP-1071) are not served at level 0. Before, restart their "
    "members with group.protocol=classic",
    "transaction.version": "transactional producers use the earlier protocol (KIP-890) from their next transaction on",
}


class OneWay(NamedTuple):
    """A change that nothing takes back, and why."""

    update: Update
    why: str


def levels_up_to(release: str, finalized: Mapping[str, int], static_voters: bool) -> Dict[str, int]:
    """Return the levels that finalize a release, as in a new cluster of it: {feature: level} of those that rise.

    `finalized`: the levels now; `static_voters`: whether kraft.version must stay. Nothing is lowered. Raises
    FeatureError for a release that the table does not have.
    """
    found = {}
    for feature, (_lowest, _highest, default) in sorted(_features_of(release).items()):
        if default > finalized.get(feature, 0) and not (feature == KRAFT_VERSION and static_voters):
            found[feature] = default
    return found


def levels_down_to(release: str, finalized: Mapping[str, int]) -> Dict[str, int]:
    """Return the levels with which nodes of a release can start: {feature: level} of those that go down.

    A level goes to the highest that the release supports, 0 (deleted) for a feature that it does not know; one that it
    supports stays. Kafka's own tool sets the levels of a new cluster instead. Raises FeatureError for a release that
    the table does not have, and for a level that Kafka does not lower that far.
    """
    found, stuck = {}, []
    known = _features_of(release)
    for feature, level in sorted(finalized.items()):
        highest = known[feature][1] if feature in known else 0
        if level <= highest:
            continue
        if not levels.can_go_down(feature, level, highest):
            stuck.append(_explain_stuck(feature, level, highest))
        found[feature] = highest
    if stuck:
        raise FeatureError(f"Kafka {release} cannot start with these levels: {'; '.join(stuck)} (QS-ADMIN-010)")
    return found


def in_order(changes: Tuple[Update, ...]) -> Tuple[Update, ...]:
    """Return changes in the order in which each level has what it depends on: what goes down before metadata.version,
    what is raised after it. One request has them all."""

    def key(update: Update) -> Tuple[int, str]:
        is_metadata = update.feature == METADATA_VERSION
        return (int(is_metadata) if update.lowers else 3 - int(is_metadata)), update.feature

    return tuple(sorted(changes, key=key))


def find_one_way(changes: Tuple[Update, ...], unsafe: bool = False) -> List[OneWay]:
    """Return the changes that nothing takes back, or of which that is not known. `unsafe`: whether levels go down with
    the loss of metadata."""
    found = []
    for update in changes:
        why = _explain_unsafe(update, unsafe) if update.lowers else _explain_raise(update)
        if why:
            found.append(OneWay(update, why))
    return found


def token(cluster_id: str, changes: List[OneWay]) -> str:
    """Return what accepts changes that nothing takes back: the cluster id, and 6 digits of their digest. It holds for
    these levels before and after alone."""
    listed = sorted([update.feature, update.before, update.after] for update, _why in changes)
    return confirmation.make_token(cluster_id, *listed)


def explain_token(changes: List[OneWay], needed: str, given: str) -> str:
    """Return that a change needs its token, which was not given."""
    why = "; ".join(change.why for change in changes)
    wrong = f"The token given is {given}. " if given else ""
    return f"nothing takes this back: {why}. {wrong}To accept it, give the token {needed} (QS-ADMIN-011)"


def client_notes(changes: Tuple[Update, ...]) -> List[str]:
    """Return what clients meet when these features go down, as sentences without a full stop."""
    return [
        f"{update.feature} goes down: {_CLIENTS[update.feature]}"
        for update in changes
        if update.lowers and update.feature in _CLIENTS
    ]


def find_held_back(supported: Mapping[str, Mapping[str, Range]]) -> Dict[str, Dict[str, int]]:
    """Return the nodes that hold a feature back: {feature: {node: its highest level}} of each node whose highest level
    is below that of another one; 0 where it does not know the feature. `supported`: {node: {feature: Range}}."""
    found: Dict[str, Dict[str, int]] = {}
    for feature in sorted({name for nodes in supported.values() for name in nodes}):
        highest = {node: ranges.get(feature, Range(0, 0)).highest for node, ranges in supported.items()}
        low = {node: level for node, level in sorted(highest.items()) if level < max(highest.values())}
        if low:
            found[feature] = low
    return found


def _features_of(release: str) -> Mapping[str, Tuple[int, int, int]]:
    """Return {feature: (lowest, highest, level of a new cluster)} of a release or version, as 4.1 or 4.1.1."""
    written = str(release).strip()
    number = re.fullmatch(r"(\d+)\.(\d+)", written)
    found = (int(number.group(1)), int(number.group(2))) if number else releases.parse_release(written)
    if found not in table.RELEASES:
        raise FeatureError(
            f"the levels of Kafka {written} are unknown: this collection knows the releases "
            f"{releases.format_release(min(table.RELEASES))} to {releases.format_release(max(table.RELEASES))}. Name "
            "one of them, or give the level of each feature (QS-ADMIN-010)"
        )
    return table.RELEASES[found]["features"]


def _marks(before: int, after: int) -> List[int]:
    """Return the levels between of metadata.version that changed the metadata, the newest last."""
    return sorted(level for level in table.ONE_WAY if min(before, after) < level <= max(before, after))


def _explain_stuck(feature: str, level: int, highest: int) -> str:
    """Return why Kafka does not lower a level that far."""
    now, wanted = name_of(feature, level), name_of(feature, highest) if highest else "none"
    if feature != METADATA_VERSION:
        return f"{feature} is {now}, and the release supports {wanted} at most; Kafka never lowers it"
    marks = _marks(level, highest)
    named = ", ".join(f"{name_of(feature, mark)} ({mark})" for mark in marks)
    least = levels.find_oldest({feature: marks[-1]})
    first = f", which Kafka {releases.format_release(least)} is the first to support" if least else ""
    return (
        f"{feature} is {now} ({level}), and the release supports {wanted} ({highest}) at most. Kafka lowers it past no "
        f"level that changed the metadata: {named}. It goes down to {name_of(feature, marks[-1])}{first}"
    )


def _explain_raise(update: Update) -> str:
    """Return why a raised level cannot be lowered again, '' where it can."""
    feature, before, after = update
    now, then = name_of(feature, before), name_of(feature, after)
    if feature == METADATA_VERSION:
        unknown = [level for level in (before, after) if level and level not in features.LEVEL_NAMES]
        if unknown:
            return f"whether Kafka lowers metadata.version {max(unknown)} again is unknown to this collection"
        marks = _marks(before, after)
        if not marks:
            return ""
        named = ", ".join(f"{name_of(feature, mark)} ({mark})" for mark in marks)
        return f"metadata.version rises from {now} to {then}, past levels that changed the metadata: {named}"
    if feature == KRAFT_VERSION:
        return f"kraft.version rises from {now} to {then}, and Kafka never lowers it"
    if not any(feature in known["features"] for known in table.RELEASES.values()):
        return f"whether Kafka lowers {feature} again is unknown to this collection"
    return ""


def _explain_unsafe(update: Update, unsafe: bool) -> str:
    """Return why a lowered level loses metadata, '' where it does not."""
    if not unsafe:
        return ""
    now, then = name_of(update.feature, update.before), name_of(update.feature, update.after)
    return f"{update.feature} goes down from {now} to {then} with downgrade: unsafe, which may lose metadata"
