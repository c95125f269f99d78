# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whether ZooKeeper, hosts and bootstrap servers are of one cluster, by the cluster id that each of them reports. Pure.

A source that does not answer proves nothing: each step names the sources that it needs (docs/how-it-works.md). Sources:
KAFKA-7335, MetaPropertiesEnsemble for `meta.properties`; KIP-78 for the cluster id.
"""

from __future__ import annotations

import re
from typing import Iterable, NamedTuple

from ansible_collections.quorumshift.kafka.plugins.module_utils.facts import ClusterFacts, LogDirectory

ZOOKEEPER, HOSTS = "ZooKeeper", "meta.properties of a host"
_CLUSTER_ID = re.compile(r"[A-Za-z0-9_-]{1,64}")
_MOVED = "MOVED_TO_"
CORRECT = (
    "Correct quorumshift_zookeeper_connect, quorumshift_bootstrap_servers and the groups kafka_broker and "
    "kafka_controller, so that all are of one cluster"
)
FOLLOW = "Set quorumshift_zookeeper_connect to the value of zk_migrate_destination_connect"


class Answer(NamedTuple):
    """A cluster id, and which source reported it: `what` names it for people, `kind` is ZOOKEEPER, HOSTS or ''."""

    kind: str
    what: str
    cluster_id: str


def is_cluster_id(text: object) -> bool:
    """Return whether a text can be a cluster id. Paths are built of it, and any ZooKeeper client can write it."""
    return isinstance(text, str) and bool(_CLUSTER_ID.fullmatch(text))


def moved_id(to: str) -> str:
    """Return the cluster id that a marked source shows: a broker prints it when it refuses to start."""
    return f"{_MOVED}{to.partition('/')[0].replace(',', '_')}"


def moved_to(cluster_id: str) -> str:
    """Return the servers that the cluster id of a marked source names; empty for another id."""
    return cluster_id[len(_MOVED) :].replace("_", ",") if cluster_id.startswith(_MOVED) else ""


def find_answers(facts: ClusterFacts) -> list[Answer]:
    """Return every cluster id in collected facts."""
    found = []
    zookeeper = facts.get("zookeeper") or {}
    stored = (zookeeper.get("cluster_id") or {}).get("value")
    if stored:
        found.append(Answer(ZOOKEEPER, f"/cluster/id in ZooKeeper at {zookeeper.get('connect')}", stored))
    for host, node in sorted((facts.get("nodes") or {}).items()):
        for log_dir in node.get("log_dirs") or []:
            stored = (log_dir.get("meta") or {}).get("cluster.id")
            if stored:
                found.append(Answer(HOSTS, f"{host}: {log_dir['path']}/meta.properties", stored))
    served = (facts.get("topics") or {}).get("cluster_id")
    if served:
        found.append(Answer("", "quorumshift_bootstrap_servers", served))
    return found


def troubles(facts: ClusterFacts, wanted: str | None = None, needed: Iterable[str] = ()) -> list[str]:
    """Return why collected facts are not those of the cluster `wanted` (None: of any one cluster), as sentences.

    `needed`: the kinds of sources that must answer.
    """
    found = find_answers(facts)
    left = _find_left(found)
    if left:
        return [f"{left.what} is the mark of a move to the ensemble {moved_to(left.cluster_id)} (QS-PHASE-004)"]
    ids = sorted({answer.cluster_id for answer in found})
    reasons = []
    if set(ids) - {wanted or (ids[0] if ids else None)}:
        listed = "; ".join(
            [
                *(_format_cluster(found, cluster_id) for cluster_id in ids),
                *([f"this run is of {wanted}"] if wanted else []),
            ]
        )
        reasons.append(f"the cluster ids differ: {listed} (QS-PHASE-004)")
    malformed = [answer for answer in found if not is_cluster_id(answer.cluster_id)]
    reasons += [
        f"{answer.what} has {answer.cluster_id!r}, which is no cluster id of Kafka (QS-PHASE-004)"
        for answer in malformed
    ]
    missing = [kind for kind in needed if kind not in {answer.kind for answer in found}]
    reasons += [f"no cluster id could be read from {kind}, and this step needs it (QS-PHASE-004)" for kind in missing]
    return reasons


def refusal(facts: ClusterFacts, wanted: str | None = None, needed: Iterable[str] = ()) -> str | None:
    """Return the `troubles` and what to do about them, as text without the last full stop; None without any."""
    reasons = troubles(facts, wanted, needed)
    correct = FOLLOW if _find_left(find_answers(facts)) else CORRECT
    return ". ".join([*reasons, correct]) if reasons else None


def _find_left(found: Iterable[Answer]) -> Answer | None:
    """Return the answer of an ensemble that a move has left and marked."""
    return next((answer for answer in found if answer.kind == ZOOKEEPER and moved_to(answer.cluster_id)), None)


def check_host(directories: Iterable[LogDirectory], cluster_id: str, node_id: int | None, optional: bool) -> str | None:
    """Return why a host's log directories are not those of this cluster and node; None when they are.

    `node_id` None compares the cluster alone. `optional`: whether the host may have no meta.properties, as a controller
    that is not formatted.
    """
    known = failed = False
    directories = list(directories)
    for directory in directories:
        meta, path = directory.get("meta") or {}, f"{directory['path']}/meta.properties"
        failed = failed or bool(directory.get("error"))  # on a failed disk; Kafka goes on with the other directories
        stored = meta.get("cluster.id")
        if not stored:
            continue
        known = True
        if stored != cluster_id:
            return f"{path} has cluster id {stored}, and this run is of cluster {cluster_id}. {CORRECT} (QS-PHASE-004)"
        named = meta.get("node.id", meta.get("broker.id"))
        if node_id is not None and named is not None and named != str(node_id):
            return (
                f"{path} has node id {named}, and this run expects {node_id}. Correct the host in the "
                "inventory (QS-PHASE-004)"
            )
    if known or (optional and not failed):
        return None
    paths = ", ".join(directory.get("error") or directory["path"] for directory in directories) or "none"
    return (
        f"no cluster id could be read in the log directories of this host ({paths}), so it is unknown whether it is of "
        f"cluster {cluster_id}. Mount them, or make their meta.properties readable (QS-PHASE-004)"
    )


def check_zookeeper(stored: str | None, cluster_id: str, connect: str) -> str | None:
    """Return why ZooKeeper, with `stored` in /cluster/id, is not that of this cluster; None when it is."""
    if stored == cluster_id:
        return None
    seen = stored or "missing or malformed"
    return (
        f"/cluster/id is {seen} in ZooKeeper at {connect}, and this run is of cluster {cluster_id}. "
        f"{CORRECT} (QS-PHASE-004)"
    )


def _format_cluster(found: list[Answer], cluster: str) -> str:
    named = [answer.what for answer in found if answer.cluster_id == cluster]
    more = f" and {len(named) - 4} more" if len(named) > 4 else ""
    return f"{cluster} in {', '.join(named[:4])}{more}"
