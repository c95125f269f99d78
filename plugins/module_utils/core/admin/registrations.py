# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Registrations in the metadata log of brokers and controllers that are gone. Pure.

Kafka raises a feature only as far as each registered node supports it, also one that no longer exists
(FeatureControlManager.reasonNotSupported). A controller that is removed from the quorum stays registered.
"""

from __future__ import annotations

from typing import List, Mapping, NamedTuple, Tuple

from ansible_collections.quorumshift.kafka.plugins.module_utils.core.migration.transitions import BROKER, CONTROLLER
from ansible_collections.quorumshift.kafka.plugins.module_utils.core.releases import kafka_releases as table
from ansible_collections.quorumshift.kafka.plugins.module_utils.core.releases.features import (
    METADATA_VERSION,
    Range,
    name_of,
)
from ansible_collections.quorumshift.kafka.plugins.module_utils.facts import MetadataLog, NodeFacts

GUIDE = "docs/upgrades.md, Nodes that are gone"


class Gone(NamedTuple):
    """A registered node that no host of the inventory is. `offset`: of its registration; `supported`: levels of
    metadata.version."""

    role: str
    node_id: int
    offset: int
    supported: Range


def find_gone(nodes: Mapping[str, NodeFacts]) -> Tuple[Gone, ...] | None:
    """Return the nodes that are gone, by the longest metadata log; None if no log could be read."""
    logs = [node.get("metadata_log") or {} for node in nodes.values()]
    logs = [log for log in logs if not log.get("error") and log.get("log_end_offset")]
    if not logs:
        return None
    log: MetadataLog = max(logs, key=lambda known: known["log_end_offset"])
    found = []
    for role, registered in ((BROKER, log.get("brokers") or {}), (CONTROLLER, log.get("controllers") or {})):
        hosts = {node.get("node_id") for node in nodes.values() if node["role"] == role}
        for text, registration in sorted(registered.items(), key=lambda item: int(item[0])):
            if int(text) not in hosts:
                levels = Range(*(registration.get("features") or {}).get(METADATA_VERSION, (0, 0)))
                found.append(Gone(role, int(text), registration["registered_offset"], levels))
    return tuple(found)


def explain_cap(found: Tuple[Gone, ...] | None, target: str, now: int, wanted: int, bootstrap: str) -> List[str]:
    """Return which nodes that are gone keep metadata.version below `wanted`, and what to do, as sentences.

    `now`: the finalized metadata.version; `bootstrap`: a broker's address for commands.
    """
    if found is None:
        return [
            "no node's metadata log could be read, so nodes that are gone may keep metadata.version low. Compare the "
            f"registered nodes with the inventory ({GUIDE})"
        ]
    return [
        f"{node.role} {node.node_id} is registered (record {node.offset} of the metadata log), and no host of the "
        f"inventory has this id. {_describe_support(node)}, so Kafka does not raise it to "
        f"{name_of(METADATA_VERSION, wanted)}. {_suggest_fix(node, target, now, bootstrap)}"
        for node in found
        if not node.supported.lowest <= wanted <= node.supported.highest
    ]


def _describe_support(node: Gone) -> str:
    if not node.supported.highest:
        return f"It names no {METADATA_VERSION}"
    return f"It supports {METADATA_VERSION} {name_of(METADATA_VERSION, node.supported.highest)} at most"


def _suggest_fix(node: Gone, target: str, now: int, bootstrap: str) -> str:
    command = f"bin/kafka-cluster.sh {{}} --bootstrap-server {bootstrap} --id {node.node_id}"
    if node.role == BROKER:
        return f"If it is gone for good, unregister it: {command.format('unregister')}"
    since = table.UNREGISTERS_CONTROLLERS
    if now >= since:
        return f"If it is gone for good, unregister it: {command.format('unregister-controller')}"
    return (
        f"Kafka unregisters controllers from metadata.version {name_of(METADATA_VERSION, since)} on, and it is "
        f"{name_of(METADATA_VERSION, now)}. Start a controller {node.node_id} with Kafka {target} until it "
        f"is registered anew ({GUIDE})"
    )
