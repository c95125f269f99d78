# Copyright: (c) 2026, Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Leaders that take no replica back in sync any more, on the way back to plain ZooKeeper mode. Pure.

When the controller is of the other kind, a broker in migration mode makes a new network client for each of its threads
that talk to it (NodeToControllerRequestThread.maybeResetNetworkClient, Kafka 3.9.2). Their selectors share sensors by
name (SelectorMetrics), and where two threads do so at once, metrics of one stay behind without a sensor. The next new
client then meets them, `A metric named ... already exists`, and its thread ends. Without the one of AlterPartition the
broker serves on and changes no in-sync replicas until it is restarted, in plain mode for good: there the kind of the
controller never changes.

So it is judged by what the cluster shows: ZooKeeper's controller, which can write (zk_controller), has taken a
restarted replica out of sync, the replica has all that its leader has, nothing else is red, and the leader does not
take it back. One that works does within moments (Partition.maybeExpandIsr, on each fetch).
"""

from __future__ import annotations

from typing import Collection, Iterable, Mapping, NamedTuple

from . import restart
from .advice import shown

PROVED_S = 30.0
"""For how many seconds on end each look must have seen the same: Kafka's default of replica.lag.time.max.ms."""


class HeldOut(NamedTuple):
    """A partition that may be held out of sync: its leader runs in migration mode, and the replicas that are out of
    sync, `out`, are on brokers that were restarted in plain ZooKeeper mode. Brokers by id."""

    topic: str
    number: int
    leader: int
    out: tuple[int, ...]
    isr: tuple[int, ...]

    @property
    def name(self) -> str:
        """The partition as people write it."""
        return f"{self.topic}-{self.number}"


class Stuck(NamedTuple):
    """A leader that takes no replica back: `host`, `broker` (its id), `out`: the hosts of the replicas, `partitions`.
    What its restart takes: `alone`, partitions without a leader meanwhile, since no other replica is in sync; `under`,
    partitions that refuse acks=all meanwhile."""

    host: str
    broker: int
    out: list[str]
    partitions: list[str]
    alone: list[str]
    under: list[str]


def held_out(nodes: Mapping[str, Mapping], topics: Mapping) -> list[HeldOut]:
    """Return the partitions that may be held out of sync. `nodes`, `topics`: probes.cluster.collect."""
    running = {node["node_id"]: node.get("running") for node in nodes.values() if node["role"] == "broker"}
    plain = {one for one, mode in running.items() if mode == "zk" and str(one) in topics["brokers"]}
    found = []
    for topic, numbers in topics["partitions"].items():
        for number, one in numbers.items():
            out = tuple(replica for replica in one["replicas"] if replica not in one["isr"])
            if out and plain.issuperset(out) and running.get(one["leader"]) == "zk_migration":
                found.append(HeldOut(topic, int(number), one["leader"], out, tuple(one["isr"])))
    return found


def without(topics: Mapping, held: Iterable[HeldOut]) -> dict:
    """Return `topics` without these partitions: what has to be well all the same."""
    names = {(one.topic, str(one.number)) for one in held}
    partitions = {
        topic: {number: one for number, one in numbers.items() if (topic, number) not in names}
        for topic, numbers in topics["partitions"].items()
    }
    return {**topics, "partitions": partitions}


def leaders(held: Collection[HeldOut], nodes: Mapping[str, Mapping], min_isr: Mapping[str, int]) -> list[Stuck]:
    """Return who leads these partitions, first whose restart takes least."""
    hosts = {node["node_id"]: host for host, node in nodes.items() if node["role"] == "broker"}
    messages = []
    for broker in {one.leader for one in held}:
        led = [one for one in held if one.leader == broker]
        left = {one: [replica for replica in one.isr if replica != broker] for one in held}
        alone = sorted(one.name for one in led if not left[one])
        under = sorted(one.name for one in held if broker in one.isr and len(left[one]) < min_isr.get(one.topic, 1))
        messages.append(
            Stuck(
                hosts[broker],
                broker,
                sorted({hosts[replica] for one in led for replica in one.out}),
                sorted(one.name for one in led),
                alone,
                [name for name in under if name not in alone],
            )
        )
    return sorted(messages, key=lambda one: (len(one.alone), len(one.under), one.host))


def token(held: Collection[HeldOut]) -> str | None:
    """Return what stands for these partitions and for nothing else; None for none."""
    return restart.token({"held out": [f"{one.name} {one.leader} {one.out}" for one in held]}) if held else None


def not_proved(found: Iterable[Stuck]) -> list[str]:
    """Return why these leaders are not restarted yet, as sentences."""
    return [
        f"{one.host} does not take {_replicas(one)} back in sync, though they have all of its records; when that has "
        f"lasted {PROVED_S:g} s and nothing else is red, it is restarted"
        for one in found
    ]


def unclean(one: Stuck, topics: Collection[str]) -> list[str]:
    """Return why this leader is not restarted: in these topics a replica that is out of sync would become leader, and
    what was acknowledged since its last fetch would be lost."""
    if not topics:
        return []
    return [
        f"{one.host} does not take {_replicas(one)} back in sync and is not restarted, since a replica that is out of "
        f"sync would lead then: set unclean.leader.election.enable=false for {shown(sorted(topics))} until it is up"
    ]


def reported(one: Stuck, took_s: float | None) -> list[str]:
    """Return the lines that tell why this leader is restarted next, and what that takes. `took_s`: how long a broker's
    restart took on this cluster, where that is known."""
    count = len(one.partitions)
    meanwhile = "while it restarts" + (f" (about {took_s:.0f} s)" if took_s else "")
    lines = [
        f"{one.host} does not let {_replicas(one)} back in sync, which have all of its records, in {count} "
        f"{'partition' if count == 1 else 'partitions'}: {shown(one.partitions)}. It is restarted next, which mends it"
    ]
    if one.alone:
        lines.append(f"without a leader {meanwhile}, since no other replica is in sync: {shown(one.alone)}")
    if one.under:
        lines.append(f"refusing acks=all {meanwhile}: {shown(one.under)}")
    return lines


def _replicas(one: Stuck) -> str:
    return f"the replicas of {' and '.join(one.out)}"
