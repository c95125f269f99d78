# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What holds of the whole cluster at every gate and before every stop of a node. Pure, over collected facts.

The preflight checks the same and more before the first change (preflight). CONDITIONS is the table of them; the
documentation is generated from it.
"""

from __future__ import annotations

from typing import Callable, Iterable, Mapping, NamedTuple

from ansible_collections.quorumshift.kafka.plugins.module_utils.core.gates import admission, cluster_health, gates
from ansible_collections.quorumshift.kafka.plugins.module_utils.core.migration import (
    phase,
    same_cluster,
    strays,
    zk_controller,
)
from ansible_collections.quorumshift.kafka.plugins.module_utils.core.text.advice import format_names
from ansible_collections.quorumshift.kafka.plugins.module_utils.facts import ClusterFacts, Quorum, Topics

LAG_S = 5.0
"""How long a voter or broker may not have caught up with the quorum's leader."""
STRAY = "stray"

_MIRRORING = (phase.COPYING, phase.HYBRID, phase.DUAL_WRITE)
_UNDER_QUORUM = (*_MIRRORING, phase.FINALIZING, phase.FINALIZED, phase.KRAFT_NATIVE)
_REGISTERING = (phase.BROKERS_JOINING, *_UNDER_QUORUM)


class Reading(NamedTuple):
    """What the conditions are evaluated on.

    `quorum`: DescribeQuorum with the voters that must have caught up; `accepted`: in a rollback, the tokens of what may
    stay degraded, None forward; `node`: the node to be restarted, None at a gate.
    """

    facts: ClusterFacts
    phase: str
    min_isr: Mapping[str, int]
    quorum: Quorum
    lag_s: float = LAG_S
    accepted: Iterable[str] | None = None
    node: admission.Restart | None = None


class Condition(NamedTuple):
    """`holds`: what must be true; `read`: the facts and their sources; `rollback`: whether it is required in a rollback
    too, which may be due because it is broken; `start`: whether it is required even for the start of a node that is
    down; `find`: returns why it is broken, as sentences."""

    id: str
    title: str
    holds: str
    read: str
    rollback: bool
    start: bool
    find: Callable[[Reading], list[str]]


def find_broken(reading: Reading, but: Iterable[str] = ()) -> list[str]:
    """Return why the cluster is not as it must be, as sentences. `but`: ids of conditions that are not evaluated."""
    start = bool(reading.node and reading.node.only_start)
    return [
        reason
        for condition in CONDITIONS
        if condition.id not in but
        and (condition.rollback or reading.accepted is None)
        and (condition.start or not start)
        for reason in condition.find(reading)
    ]


def find_lasting(reading: Reading) -> list[str]:
    """Return those of the reasons that no wait removes."""
    if reading.node and reading.node.only_start:
        return []
    return lost(reading) + (credentials(reading) if reading.accepted is None else [])


# I1 ------------------------------------------------------------------------------------------------------------------


def one_controller(reading: Reading) -> list[str]:
    """Return why not exactly one controller leads, or why its epoch is not the newest."""
    zookeeper, quorum = reading.facts["zookeeper"], reading.facts["quorum"]
    controller, alive = zookeeper.get("controller") or {}, zookeeper.get("broker_ids") or {}
    reasons = []
    fenced = zk_controller.explain_fenced(zookeeper)
    if fenced:
        reasons.append(
            f"{fenced}. To elect another: zookeeper-shell.sh {zookeeper.get('connect')} delete "
            "/controller (QS-GATE-010)"
        )
    owner = controller.get("broker_id")
    if zk_controller.is_elected(controller) and alive and str(owner) not in alive:
        reasons.append(f"broker {owner} owns /controller in ZooKeeper and is not in /brokers/ids (QS-GATE-010)")
    if reading.phase in _UNDER_QUORUM and not quorum.get("reached"):
        reasons.append(f"the quorum has no leader: {quorum.get('error')} (QS-GATE-008)")
    if not quorum.get("reached"):
        return reasons
    leader, epoch = quorum["leader_id"], quorum["leader_epoch"]
    if reading.phase in _MIRRORING and owner is not None and owner != leader:
        reasons.append(
            f"controller {leader} leads the quorum, and /controller in ZooKeeper is of {owner}: nothing is written to "
            f"ZooKeeper. If this stays, restart controller {leader} (QS-GATE-010)"
        )
    newest = phase.longest_log(phase.controllers(reading.facts)).get("last_epoch") or 0
    if newest > epoch:
        reasons.append(
            f"controller {leader} leads in epoch {epoch}, a controller's metadata log has epoch {newest}: it does not "
            "lead any more, or the logs are of two quorums (QS-GATE-010)"
        )
    return reasons


# I2 ------------------------------------------------------------------------------------------------------------------


def registrations(reading: Reading) -> list[str]:
    """Return why a broker that follows the quorum is not registered there. One that is fenced or dead is not in the
    brokers' metadata, which I4 requires."""
    if reading.phase not in _REGISTERING:
        return []
    registered = phase.registrations(reading.facts)
    return [
        (
            f"broker {broker_id} runs in migration or KRaft mode and is not registered there. Read its log, and "
            "restart it (QS-GATE-010)"
        )
        for broker_id in phase.find_followers(reading.facts)
        if str(broker_id) not in registered and not (reading.node and reading.node.node_id == broker_id)
    ]


# I3 ------------------------------------------------------------------------------------------------------------------


def one_cluster(reading: Reading) -> list[str]:
    """Return why the nodes are not exactly those of the inventory, or are of several clusters."""
    facts = reading.facts
    nodes, reasons = facts["nodes"], same_cluster.troubles(facts, phase.cluster_id(facts))
    ids: dict[str, list[str]] = {}
    for host, node in sorted(nodes.items()):
        if node.get("node_id") is not None:
            ids.setdefault(str(node["node_id"]), []).append(host)
    reasons += [
        f"{format_names(hosts)} have the same node id, {node_id} (QS-GATE-010)"
        for node_id, hosts in sorted(ids.items())
        if len(hosts) > 1
    ]
    excluded = {str(node.get("node_id")) for node in (facts.get("excluded") or {}).values()}
    for kind, found in (("broker", _alive(reading)), ("voter", _voters(facts["quorum"]))):
        foreign = sorted(found - set(ids) - excluded)
        if foreign and len(ids) == len(nodes):  # otherwise one of them may be the host whose id is unknown
            reasons.append(
                f"{kind} {', '.join(foreign)} is in the cluster and not in the inventory. Add its host, or "
                "stop it (QS-GATE-010)"
            )
    return reasons


def _alive(reading: Reading) -> set[str]:
    """Return the ids of the brokers that are alive. While controllers are stopped no node removes a dead one from the
    brokers' metadata."""
    topics: Topics = reading.facts.get("topics") or {}
    served = topics.get("brokers") or {} if reading.phase != phase.REVERTING else {}
    return {*(reading.facts["zookeeper"].get("broker_ids") or {}), *served}


def _voters(quorum: Quorum) -> set[str]:
    return {str(voter["id"]) for voter in quorum.get("voters") or []}


# I4 ------------------------------------------------------------------------------------------------------------------


def partitions(reading: Reading) -> list[str]:
    """Return why a partition is lost, degraded, or would be by the stop of the node."""
    return [*lost(reading), *health(reading)]


def health(reading: Reading, topics: Topics | None = None, stop: int | None = None) -> list[str]:
    """Return why no broker, or not that of the reading's node, may be stopped (restart.troubles). `topics`, `stop`:
    others than those of the reading."""
    found, node, expected = reading.facts["topics"], reading.node, phase.broker_ids(reading.facts)
    broker = node.node_id if node and reading.facts["nodes"][node.host]["role"] == "broker" else None
    excused = cluster_health.find_unavoidable(found.get("partitions") or {}, reading.min_isr)
    if topics is not None:
        return cluster_health.troubles(topics, reading.min_isr, expected, excused, stop, reading.accepted)
    if node and node.unresponsive and broker is not None:
        found, expected = (
            admission.drop_broker_replicas(found, broker),
            [broker_id for broker_id in expected if broker_id != broker],
        )
    return cluster_health.troubles(found, reading.min_isr, expected, excused, broker, reading.accepted)


def lost(reading: Reading) -> list[str]:
    """Return why a broker may have lost partitions: it renamed their directories to -stray when it started in migration
    or KRaft mode, since the metadata did not assign them to it."""
    found = {STRAY: [f"{host}:{path}" for host, paths in strays.group_by_host(reading.facts).items() for path in paths]}
    if not found[STRAY] or cluster_health.token(found) in (reading.accepted or ()):
        return []
    reasons = [f"{finding.text}. {finding.do}" for finding in strays.find_lost(reading.facts)]
    return reasons + ([cluster_health.explain_acceptance(found)] if reading.accepted is not None else [])


# I5 ------------------------------------------------------------------------------------------------------------------


def caught_up(reading: Reading) -> list[str]:
    """Return why a voter or broker may serve stale metadata. The node's own lag ends with its restart."""
    own = reading.node.node_id if reading.node else None
    voters = [
        voter for voter in reading.quorum.get("voters") or [] if voter["id"] != own or _leads(reading.quorum, own)
    ]
    brokers = [broker_id for broker_id in phase.find_followers(reading.facts) if broker_id != own]
    return gates.find_trailing({**reading.quorum, "voters": voters}, brokers, reading.lag_s, reading.accepted)


def _leads(quorum: Quorum, node_id: int | None) -> bool:
    return quorum.get("leader_id") == node_id


# I6 ------------------------------------------------------------------------------------------------------------------


def credentials(reading: Reading) -> list[str]:
    """Return why the node, or one that is to be restarted after the gate, would lose SCRAM credentials at its start."""
    return find_lost_credentials(reading.facts, reading.phase, reading.node.host if reading.node else None)


def find_lost_credentials(facts: ClusterFacts, phase_name: str, only: str | None = None) -> list[str]:
    """Return why nodes (or `only` this host) would lose SCRAM credentials at their next start, as sentences."""
    if phase_name not in _UNDER_QUORUM:
        return []
    log = phase.longest_log(phase.controllers(facts))
    found: dict[tuple[str, str], list[str]] = {}
    for host, node in sorted(facts["nodes"].items()):
        if only and only != host:
            continue
        if node["role"] == "controller" or node.get("running") == "kraft":
            losses = ((node.get("metadata_log") or {}).get("scram_losses") or {}).get("restart")
        elif node.get("running") == "zk_migration":  # it has no log of its own yet
            losses = (log.get("scram_losses") or {}).get("new")
        else:
            losses = None
        for mechanism, users in (losses or {}).items():
            found.setdefault((mechanism, format_names(users)), []).append(host)
    return [
        f"{format_names(hosts)} would lose all {mechanism} credentials at the next start, since a user was removed: "
        f"{users}. "
        "Kafka 3.9 has this fault. Add the user again with a random password (kafka-configs.sh). Then restart a broker "
        "that started since the removal. Remove the user when all nodes have run for "
        "metadata.log.max.snapshot.interval.ms (QS-PHASE-019)"
        for (mechanism, users), hosts in found.items()
    ]


CONDITIONS = (
    Condition(
        "I1",
        "One controller",
        "One node leads: the broker that owns `/controller` and can write, or the quorum's leader, which owns it while "
        "it writes to ZooKeeper. No controller's log has a newer epoch.",
        "ZooKeeper `/controller`, `/controller_epoch`, `/brokers/ids`; DescribeQuorum; controllers' metadata logs",
        False,
        False,
        one_controller,
    ),
    Condition(
        "I2",
        "Registrations",
        "Every broker in migration or KRaft mode is registered in the quorum.",
        "ApiVersions of each broker; controllers' metadata logs",
        False,
        False,
        registrations,
    ),
    Condition(
        "I3",
        "Identity",
        "Every log directory has the cluster's id, no two nodes share an id, and no broker or voter is outside of the "
        "inventory.",
        "`meta.properties` of each host; `/brokers/ids`, the brokers' metadata, DescribeQuorum",
        True,
        True,
        one_cluster,
    ),
    Condition(
        "I4",
        "No partition lost",
        "Every broker is alive and unfenced. No partition is offline, under-replicated or under min ISR, or would be "
        "by the stop. No broker in migration or KRaft mode has a `-stray` directory of a partition that it is to hold.",
        "the brokers' metadata, `min.insync.replicas`; each broker's log directories before the roll and after a start",
        True,
        False,
        partitions,
    ),
    Condition(
        "I5",
        "Caught up",
        f"Every voter and every broker that follows the metadata log has caught up with the leader within {LAG_S:g} s.",
        "DescribeQuorum, the leader's own clock",
        True,
        False,
        caught_up,
    ),
    Condition(
        "I6",
        "Credentials",
        "No node loses SCRAM credentials when it loads the metadata log: Kafka 3.9 may drop those of a mechanism after "
        "a user was removed.",
        "controllers' metadata logs, and those of brokers in KRaft mode",
        False,
        False,
        credentials,
    ),
)
