# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The log directories that brokers renamed to -stray. Pure.

A broker that starts in migration or KRaft mode renames the logs that the metadata does not assign to it
(LogManager.isStrayKraftReplica). A topic that is deleted while the broker restarts leaves such directories too.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from ansible_collections.quorumshift.kafka.plugins.module_utils.core.text.advice import format_names
from ansible_collections.quorumshift.kafka.plugins.module_utils.facts import ClusterFacts, NodeFacts, Topics

# UnifiedLog.logStrayDirName: topic, number and id, cut where they would be too long for a file name
_NAME = re.compile(r"(.+)-(\d+)\.[0-9a-f]{32}-stray")
_LONGEST = 255


class Stray(NamedTuple):
    """The -stray directories of one broker: why they matter, and what to do, as sentences without the full stop."""

    text: str
    do: str


def paths(node: NodeFacts) -> list[str]:
    """Return the paths of a node's -stray directories."""
    return [
        f"{log_dir['path']}/{name}" for log_dir in node.get("log_dirs") or [] for name in log_dir.get("stray") or []
    ]


def group_by_host(facts: ClusterFacts, lost: bool = True) -> dict[str, list[str]]:
    """Return {host: paths} of the -stray directories of brokers that run in migration or KRaft mode.

    `lost`: those of partitions that the brokers' metadata does assign to the broker, and all whose partition is not
    known; otherwise the rest.
    """
    found, topics = {}, facts.get("topics") or {}
    for host, node in sorted(facts["nodes"].items()):
        if node["role"] != "broker" or node.get("running") not in ("zk_migration", "kraft"):
            continue
        of_host = [path for path in paths(node) if _is_lost(path, node.get("node_id"), topics) == lost]
        if of_host:
            found[host] = of_host
    return found


def find_lost(facts: ClusterFacts) -> list[Stray]:
    """Return the directories of partitions that their broker must hold: they stop a rolling restart."""
    return [
        Stray(
            _explain_lost(host, found),
            "Check that each partition has all its replicas in sync, and its records. Then move the directories away, "
            f"on {host}: mv {_parent(found)}/*-stray DIRECTORY. Until then no other broker is stopped",
        )
        for host, found in group_by_host(facts).items()
    ]


def find_left(facts: ClusterFacts) -> list[Stray]:
    """Return the directories of partitions that are no longer the broker's."""
    return [
        Stray(
            _explain_left(host, found),
            f"remove them when their records are needed no more. On {host}: ls {_parent(found)}",
        )
        for host, found in group_by_host(facts, lost=False).items()
    ]


def _explain_lost(host: str, found: list[str]) -> str:
    """Return why these directories stop a rolling restart."""
    return (
        f"{host} did not find these directories assigned to it when it started, though they are: "
        f"{format_names(found)} (QS-PHASE-023)"
    )


def _explain_left(host: str, found: list[str]) -> str:
    """Return why these directories are there."""
    return (
        f"{host} has directories of partitions that were deleted or moved while it restarted: "
        f"{format_names(found)} (QS-PHASE-023)"
    )


def _parent(found: list[str]) -> str:
    return found[0].rpartition("/")[0]


def _is_lost(path: str, broker: int | None, topics: Topics) -> bool:
    """Return whether a -stray directory is of a partition that the brokers' metadata assigns to the broker."""
    name = path.rpartition("/")[2]
    parsed = _NAME.fullmatch(name)
    if not (parsed and topics.get("reached")):
        return True
    topic, number = parsed.groups()
    cut = len(name) >= _LONGEST
    numbers = [
        partitions
        for known, partitions in topics["partitions"].items()
        if known == topic or (cut and known.startswith(topic))
    ]
    return any(broker in partitions[number]["replicas"] for partitions in numbers if number in partitions)
