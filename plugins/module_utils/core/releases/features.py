# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Features of a cluster (KIP-584): what each node supports, which update is allowed, names of levels. Pure.

Source: FeatureControlManager. core.releases.kafka_releases has the levels of each release.
"""

from __future__ import annotations

import re
import shlex
from typing import Any, Dict, List, Mapping, NamedTuple, Tuple

from ansible_collections.quorumshift.kafka.plugins.module_utils.core.releases import kafka_releases as table

METADATA_VERSION, KRAFT_VERSION = "metadata.version", "kraft.version"
NO_EPOCH = -1
"""The epoch of finalized features of a node that serves none."""
LEVEL_NAMES = table.LEVELS
"""Name of each level of metadata.version, as MetadataVersion.version()."""


class Range(NamedTuple):
    """Levels that a node supports."""

    lowest: int
    highest: int


class FeatureError(ValueError):
    """A wanted feature or level cannot be understood, or must be refused."""


class Update(NamedTuple):
    """A change of one feature: levels before and after (0: not finalized), and whether it lowers the level."""

    feature: str
    before: int
    after: int

    @property
    def lowers(self) -> bool:
        return self.after < self.before


def name_of(feature: str, level: int) -> str:
    """Return how people name a level: `3.9-IV0` for metadata.version, the number for others."""
    return LEVEL_NAMES.get(level, str(level)) if feature == METADATA_VERSION else str(level)


def level_of(feature: str, text: object) -> int:
    """Return the level of `21`, or for metadata.version also of `3.9` (the release's last) and `3.9-IV0`."""
    written = str(text).strip()
    if re.fullmatch(r"\d+", written):
        return int(written)
    if feature == METADATA_VERSION:
        found = [level for level, name in LEVEL_NAMES.items() if written in (name, name.partition("-")[0])]
        if found:
            return max(found)
        raise FeatureError(
            f"metadata.version {written!r} is unknown: give a level as a number, or a release up to "
            f"{LEVEL_NAMES[max(LEVEL_NAMES)].partition('-')[0]} as '3.9' or '3.9-IV0' (QS-ADMIN-009)"
        )
    raise FeatureError(f"{feature} {written!r} is no level: levels of this feature are numbers (QS-ADMIN-009)")


def highest_common(feature: str, supported: Mapping[str, Mapping[str, Range]]) -> int:
    """Return the highest level that every node supports; a node without the feature supports level 0 alone."""
    return min(nodes.get(feature, Range(0, 0)).highest for nodes in supported.values())


def wanted_levels(
    wanted: Mapping[str, object],
    upgrade_all: bool,
    supported: Mapping[str, Mapping[str, Range]],
    finalized: Mapping[str, int],
    static_voters: bool,
) -> Dict[str, int]:
    """Return {feature: level} of what a task asks for. `wanted`: {feature: level, name or 0}.

    `upgrade_all` raises every feature that each node supports, kraft.version of static voters excepted, and lowers
    none. Raises FeatureError.
    """
    levels = {}
    if upgrade_all:
        names = sorted({name for nodes in supported.values() for name in nodes})
        for name in names:
            highest = highest_common(name, supported)
            if highest > finalized.get(name, 0) and not (name == KRAFT_VERSION and static_voters):
                levels[name] = highest
    levels.update({name: level_of(name, text) for name, text in wanted.items()})
    return levels


def updates(levels: Mapping[str, int], finalized: Mapping[str, int]) -> Tuple[Update, ...]:
    """Return the changes that lead to these levels."""
    found = (Update(name, finalized.get(name, 0), level) for name, level in sorted(levels.items()))
    return tuple(update for update in found if update.before != update.after)


def refusal(
    changes: Tuple[Update, ...],
    supported: Mapping[str, Mapping[str, Range]],
    downgrade: str,
    migrating: str | None,
    static_voters: bool,
) -> str | None:
    """Return why these changes may not be made, None when they may.

    `supported`: {node: {feature: Range}} of every live node; `downgrade`: no, safe, unsafe; `migrating`: what shows
    that a migration is not finalized.
    """
    if changes and migrating:
        return (
            f"features must not change during a migration to KRaft: {migrating}. Finalize it or roll it back first "
            "(quorumshift.kafka.status shows the next step) (QS-ADMIN-009)"
        )
    for update in changes:
        if not any(update.feature in nodes for nodes in supported.values()):
            known = ", ".join(sorted({name for nodes in supported.values() for name in nodes})) or "none"
            return f"no node knows the feature {update.feature}. Known features: {known} (QS-ADMIN-009)"
        outside = [
            f"{node} supports {format_range(update.feature, nodes.get(update.feature))} (QS-ADMIN-009)"
            for node, nodes in sorted(supported.items())
            if update.after and not _has(nodes.get(update.feature), update.after)
        ]
        if outside:
            return (
                f"{update.feature} {name_of(update.feature, update.after)} (level {update.after}) is not supported by "
                f"every node: {'; '.join(outside)}. Upgrade those nodes, or choose a level that all support "
                "(QS-ADMIN-009)"
            )
        if update.feature == KRAFT_VERSION and static_voters:
            return _explain_static_voters(supported)
        if update.lowers and downgrade == "no":
            return (
                f"{update.feature} would go down from {name_of(update.feature, update.before)} (level {update.before}) "
                "to "
                f"{name_of(update.feature, update.after)} (level {update.after}). To permit it, set downgrade: safe, "
                "or unsafe to accept the loss of metadata (QS-ADMIN-009)"
            )
    return None


def release_of(found: Mapping[str, Range]) -> Tuple[int, int] | None:
    """Return the release of a node that supports these levels, None if the table has none with the same."""
    for release, known in table.RELEASES.items():
        if {name: Range(*levels[:2]) for name, levels in known["features"].items()} == dict(found):
            return release
    return None


def _explain_static_voters(supported: Mapping[str, Mapping[str, Range]]) -> str:
    """Return why kraft.version stays as it is, by what the nodes' releases do with static voters."""
    found = {release_of(levels) for levels in supported.values()}
    named = " and ".join(f"{release[0]}.{release[1]}" for release in sorted(found - {None}))
    if None not in found and not any(table.RELEASES[release]["moves_voters"] for release in found):
        return (
            f"kraft.version must stay as it is with static voters (controller.quorum.voters): Kafka {named} reports "
            "success, and the voters stay static. Format the controllers as a dynamic quorum (KIP-853) "
            "instead (QS-ADMIN-009)"
        )
    named = f"{named or 'here'} {'may make' if None in found else 'makes'}"
    return (
        f"kraft.version must stay as it is with static voters (controller.quorum.voters): Kafka {named} them "
        "dynamic for good, and the nodes' files go on naming static ones. Use quorumshift.kafka.quorum -e "
        "quorum_to=dynamic, which changes both (QS-ADMIN-009)"
    )


def _has(found: Range | None, level: int) -> bool:
    return found is not None and found.lowest <= level <= found.highest


def format_range(feature: str, found: Range | None) -> str:
    """Return a range of levels by the names of its ends."""
    if found is None:
        return "no level"
    return f"{name_of(feature, found.lowest)} to {name_of(feature, found.highest)}"


def format_level(feature: str, level: int) -> Dict[str, object]:
    """Return a level with its name."""
    return {"level": level, "name": name_of(feature, level)}


def name_levels(update: Update) -> Dict[str, str]:
    """Return the names of an update's levels."""
    return {"before_name": name_of(update.feature, update.before), "after_name": name_of(update.feature, update.after)}


def diff(changes: Tuple[Update, ...]) -> Dict[str, str]:
    """Return the levels before and after, as Ansible shows a difference."""

    def lines(key: str) -> str:
        return "".join(
            f"{update.feature}: {name_of(update.feature, getattr(update, key))} (level {getattr(update, key)})\n"
            for update in changes
            if getattr(update, key)
        )

    return {"before": lines("before"), "after": lines("after")}


def explain_unready(found: Mapping[str, Any]) -> str | None:
    """Return why features of this cluster cannot be updated at all, None when they can. `found`: admin.features."""
    silent = [f"{name}: {node['error']}" for name, node in sorted(found["nodes"].items()) if "error" in node]
    if found["mode"] == "zookeeper":
        return (
            "this cluster is in ZooKeeper mode, where Kafka has no feature to update: inter.broker.protocol.version "
            "decides. Migrate to KRaft first, or change inter.broker.protocol.version (QS-ADMIN-009)"
        )
    if silent:
        return (
            f"the features of every node must be known, and these gave no answer: {'; '.join(silent)}. Start them, "
            "or correct controller_client (QS-ADMIN-009)"
        )
    if found["voters_unknown"]:
        return (
            f"the addresses of the controllers {found['voters_unknown']} are unknown, so their features are too. Name "
            "every controller in the option controllers (QS-ADMIN-009)"
        )
    if found["alive"]:
        named = ", ".join(map(str, found["alive"]))
        return (
            f"no broker answered, and the quorum's leader says that these have just fetched: {named}. The features of "
            "every live node must be known: correct bootstrap_servers or client, or wait until they have stopped "
            "(QS-ADMIN-009)"
        )
    if found["static_voters"] is None and not found["migrating"]:
        return (
            f"no node could describe the quorum: {found['quorum_error']}. Start its controllers, or fix what that "
            "names, then run again (QS-ADMIN-009)"
        )
    return None


def find_missing(nodes: Mapping[str, Mapping[str, Any]], expected: Mapping[str, List[int]]) -> str | None:
    """Return that nodes did not answer whose features must be known before a level rises, None when all did.

    `expected`: {role: ids} of the nodes that the cluster has. A node that is down cannot start once a level is above
    what its release supports.
    """
    answered = [(node["role"], node["id"]) for node in nodes.values() if "error" not in node]
    # A controller that no broker names has no id. One for each of those that are expected is enough
    unnamed = answered.count(("controller", None))
    missing = [
        f"{role} {number}" for role, ids in sorted(expected.items()) for number in ids if (role, number) not in answered
    ]
    controllers = [name for name in missing if name.startswith("controller")]
    if len(controllers) <= unnamed:
        missing = [name for name in missing if name not in controllers]
    if not missing:
        return None
    return (
        f"no level may rise while nodes are down, since it is unknown what they support: {', '.join(missing)}. Start "
        "them, or leave out hosts that are gone for good with quorumshift_exclude_hosts (QS-ADMIN-009)"
    )


def explain_denied(operation: str, principal: str, bootstrap: str, brokers: bool) -> str:
    """Return which ACL a refused request needs, as a command. `principal`: User:NAME, '' if it is unknown;
    `bootstrap`: addresses of brokers; `brokers`: whether one lives, without which Kafka 3.9 changes no ACL."""
    named = principal or "User:PRINCIPAL"
    what = "" if principal else "PRINCIPAL is the subject of the client's certificate. "
    if not brokers:
        return (
            f"The principal {named} of controller_client has no {operation} on the cluster. {what}No broker lives, so "
            "no ACL can be changed. Give controller_client a principal that may do it, such as that of the "
            "controllers (QS-ADMIN-012)"
        )
    return (
        f"The principal {named} has no {operation} on the cluster. {what}Grant it, as a principal that may: "
        f"kafka-acls.sh --bootstrap-server {bootstrap} --command-config ADMIN.properties --add --allow-principal "
        f"{shlex.quote(named)} --operation {operation} --cluster (QS-ADMIN-012)"
    )


def newest_epoch(nodes: Mapping[str, Mapping[str, Any]]) -> int:
    """Return the highest epoch of finalized features that any node serves."""
    return max((node.get("epoch", NO_EPOCH) for node in nodes.values()), default=NO_EPOCH)


def find_behind(
    nodes: Mapping[str, Mapping[str, Any]], levels: Mapping[str, int], after: int = NO_EPOCH
) -> Tuple[str, ...]:
    """Return which nodes do not serve these levels (0: not finalized) at an epoch after `after`, and what they serve.

    An epoch is an offset of the metadata log, so that an update's is after each that was served before it. Brokers
    raise it with each record that they publish, controllers with each change of a feature.
    """
    found = []
    for name, node in sorted(nodes.items()):
        if "error" in node:
            found.append(f"{name}: {node['error']}")
            continue
        late = [feature for feature, level in sorted(levels.items()) if node["finalized"].get(feature, 0) != level]
        if late or node["epoch"] <= after != NO_EPOCH:
            served = ", ".join(f"{feature} {node['finalized'].get(feature, 0)}" for feature in late or sorted(levels))
            before = "" if late else f", and the update is after epoch {after}"
            found.append(f"{name} serves {served} at epoch {node['epoch']}{before}")
    return tuple(found)


def find_lagging(nodes: Mapping[str, Mapping[str, Any]], finalized: Mapping[str, int]) -> Tuple[str, ...]:
    """Return which nodes answer and do not serve the finalized levels, and what they serve.

    Epochs are not compared: brokers raise theirs with each record that they publish, controllers with each change of a
    feature.
    """
    answering = {name: node for name, node in nodes.items() if "error" not in node}
    names = {*finalized, *(feature for node in answering.values() for feature in node["finalized"])}
    return find_behind(answering, {name: finalized.get(name, 0) for name in names})


def notes(mode: str, static_voters: bool | None, stored: Mapping[str, Any] | None) -> Tuple[str, ...]:
    """Return what applies to a cluster's features in its mode. `stored`: /feature of ZooKeeper (zookeeper.znodes), with
    the version of the znode as `epoch`."""
    if mode == "zookeeper":
        found = ["ZooKeeper mode: inter.broker.protocol.version decides what brokers use, not features"]
        if not stored:
            return (f"{found[0]}; /feature was not found or not read.",)
        found[0] += f"; /feature has {stored['features'] or 'no feature'} at epoch {stored['epoch']}."
        if not stored["enabled"]:
            found.append(
                "/feature is disabled: the controller's inter.broker.protocol.version is below 2.7, the first with "
                "features. It enables them once it starts with 2.7 or later."
            )
        return tuple(found)
    if mode == "migration":
        return ("A migration to KRaft is not finalized: Kafka refuses to change metadata.version.",)
    return ("Static voters: kraft.version must stay as it is.",) if static_voters else ()
