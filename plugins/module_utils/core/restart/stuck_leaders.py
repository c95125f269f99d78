# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Stuck leaders: they keep restarted replicas out of sync in a rollback to plain ZooKeeper mode. Pure.

When the kind of the controller changes, a broker in migration mode makes a new network client for each thread that
talks to it (NodeToControllerRequestThread.maybeResetNetworkClient, Kafka 3.9.2). Their selectors share sensors by name
(SelectorMetrics). If two threads do so at once, metrics without a sensor remain; the next new client fails on them
(`A metric named ... already exists`), and its thread ends. Without its AlterPartition thread the broker keeps serving
and changes no in-sync replicas until its restart. In plain mode the kind of the controller never changes.

A stuck leader is detected by the cluster's state: ZooKeeper's controller can write (zk_controller) and has taken a
restarted replica out of sync; the replica has all records of its leader; nothing else is degraded; the leader does not
add the replica. A working leader does so within moments (Partition.maybeExpandIsr, on each fetch).
"""

from __future__ import annotations

from typing import Collection, Iterable, Mapping, NamedTuple

from ansible_collections.quorumshift.kafka.plugins.module_utils.core.gates import cluster_health
from ansible_collections.quorumshift.kafka.plugins.module_utils.core.text.advice import format_names
from ansible_collections.quorumshift.kafka.plugins.module_utils.facts import NodeFacts, Topics

PROVED_S = 30.0
"""For how many seconds each read must have shown the same: Kafka's default of replica.lag.time.max.ms."""


class HeldOut(NamedTuple):
    """A partition whose leader may be stuck: the leader runs in migration mode, and all replicas that are out of sync,
    `out`, are on brokers that were restarted in plain ZooKeeper mode. Brokers by id."""

    topic: str
    number: int
    leader: int
    out: tuple[int, ...]
    isr: tuple[int, ...]

    @property
    def name(self) -> str:
        """Return the partition as topic-number."""
        return f"{self.topic}-{self.number}"


class Stuck(NamedTuple):
    """A stuck leader: `host`, `broker` (its id), `out`: the hosts of the replicas, `partitions`. During its restart,
    `alone` partitions have no leader, since no other replica is in sync, and `under` partitions reject acks=all."""

    host: str
    broker: int
    out: list[str]
    partitions: list[str]
    alone: list[str]
    under: list[str]


def find_held_out(nodes: Mapping[str, NodeFacts], topics: Topics) -> list[HeldOut]:
    """Return the partitions whose leaders may be stuck. `nodes`, `topics`: probes.cluster.cluster.collect."""
    running = {node["node_id"]: node.get("running") for node in nodes.values() if node["role"] == "broker"}
    plain = {broker_id for broker_id, mode in running.items() if mode == "zk" and str(broker_id) in topics["brokers"]}
    held = []
    for topic, numbers in topics["partitions"].items():
        for number, partition in numbers.items():
            out = tuple(replica for replica in partition["replicas"] if replica not in partition["isr"])
            if out and plain.issuperset(out) and running.get(partition["leader"]) == "zk_migration":
                held.append(HeldOut(topic, int(number), partition["leader"], out, tuple(partition["isr"])))
    return held


def drop_partitions(topics: Topics, held: Iterable[HeldOut]) -> dict:
    """Return `topics` without these partitions: the rest must be healthy."""
    names = {(partition.topic, str(partition.number)) for partition in held}
    partitions = {
        topic: {number: partition for number, partition in numbers.items() if (topic, number) not in names}
        for topic, numbers in topics["partitions"].items()
    }
    return {**topics, "partitions": partitions}


def find_leaders(held: Collection[HeldOut], nodes: Mapping[str, NodeFacts], min_isr: Mapping[str, int]) -> list[Stuck]:
    """Return the leaders of these partitions, the one with the least effect of its restart first."""
    hosts = {node["node_id"]: host for host, node in nodes.items() if node["role"] == "broker"}
    stuck = []
    for broker in {partition.leader for partition in held}:
        led = [partition for partition in held if partition.leader == broker]
        left = {partition: [replica for replica in partition.isr if replica != broker] for partition in held}
        alone = sorted(partition.name for partition in led if not left[partition])
        under = sorted(
            partition.name
            for partition in held
            if broker in partition.isr and len(left[partition]) < min_isr.get(partition.topic, 1)
        )
        stuck.append(
            Stuck(
                hosts[broker],
                broker,
                sorted({hosts[replica] for partition in led for replica in partition.out}),
                sorted(partition.name for partition in led),
                alone,
                [name for name in under if name not in alone],
            )
        )
    return sorted(stuck, key=lambda leader: (len(leader.alone), len(leader.under), leader.host))


def token(held: Collection[HeldOut]) -> str | None:
    """Return a token of exactly these partitions; None for none."""
    return (
        cluster_health.token(
            {"held out": [f"{partition.name} {partition.leader} {partition.out}" for partition in held]}
        )
        if held
        else None
    )


def explain_not_proved(stuck: Iterable[Stuck]) -> list[str]:
    """Return why these leaders are not restarted yet, as sentences."""
    return [
        f"{leader.host} keeps {_replicas(leader)} out of sync, though they have all its records. If this lasts "
        f"{PROVED_S:g} "
        "s and nothing else is degraded, the run restarts it (QS-GATE-005)"
        for leader in stuck
    ]


def explain_unclean(leader: Stuck, topics: Collection[str]) -> list[str]:
    """Return why this leader is not restarted: in these topics a replica that is out of sync would become leader, and
    records that were acknowledged since its last fetch would be lost."""
    if not topics:
        return []
    return [
        f"{leader.host} keeps {_replicas(leader)} out of sync and must be restarted, but then a replica that is out of "
        "sync "
        f"would lead. Set unclean.leader.election.enable=false for {format_names(sorted(topics))} until it is up "
        "(QS-GATE-005)"
    ]


def announcement(leader: Stuck, took_s: float | None) -> list[str]:
    """Return lines on why this leader is restarted next, and the effects. `took_s`: how long a broker's restart took on
    this cluster, if known."""
    count = len(leader.partitions)
    meanwhile = "while it restarts" + (f" (about {took_s:.0f} s)" if took_s else "")
    lines = [
        f"{leader.host} keeps {_replicas(leader)} out of sync, though they have all its records, in {count} "
        f"{'partition' if count == 1 else 'partitions'}: {format_names(leader.partitions)}. The run restarts it next"
    ]
    if leader.alone:
        lines.append(f"without a leader {meanwhile}, since no other replica is in sync: {format_names(leader.alone)}")
    if leader.under:
        lines.append(f"rejecting acks=all {meanwhile}: {format_names(leader.under)}")
    return lines


def _replicas(leader: Stuck) -> str:
    return f"the replicas of {' and '.join(leader.out)}"
