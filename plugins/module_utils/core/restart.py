# Copyright: (c) 2026, Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which broker may be restarted when: the order of a roll, the health that lets the next one begin.

Pure functions over `partitions` {topic: {partition: {leader, replicas, isr}}} as probes.topics reads them, and
`min_isr` {topic: int}. The rule is Kafka's own: a produce request with acks=all is refused while fewer than
min.insync.replicas are in sync (NotEnoughReplicas), and a partition without an in-sync leader is offline.
"""

from __future__ import annotations

import hashlib
import json
from typing import Iterable, Iterator, Mapping, NamedTuple, Sequence

from . import advice

OFFLINE, BEHIND, UNDER, TRAILING = "offline", "behind", "under_min_isr", "trailing"
"""What may be red: partitions without a leader, without all replicas in sync, with too few of them; followers of the
metadata log that are not with it."""

_DOWN = "down: before any other is stopped"


class Plan(NamedTuple):
    """`batches`: hosts in the order in which they are restarted, each inner list at once; `done`: hosts that need no
    restart; `reasons`: why a host stands where it stands; `unavoidable`: partitions whose replication leaves no spare,
    which the restart of a replica makes unavailable to acks=all producers, as {topic-partition: sentence}."""

    batches: list[list[str]]
    done: list[str]
    reasons: dict[str, str]
    unavoidable: dict[str, str]


def plan(
    nodes: Mapping[str, Mapping],
    mode: str,
    canary: str | None,
    controller_id: int | None,
    topics: Mapping,
    planned: Sequence[str] = (),
) -> Plan:
    """Plan the roll of the brokers among `nodes` into `mode`: one at a time, the canary first, the controller last.

    A broker that runs in `mode` and whose file says so is done. One that is down comes before all others, since none
    of these may be stopped while it is. Without a chosen canary the broker that leads the fewest partitions goes
    first, so that a bad surprise hurts least. `topics` is {partitions, min_isr}. `planned`: hosts in the order in which
    the run's plan has them, which decides where nothing above does.
    """
    brokers = {host: node for host, node in nodes.items() if node["role"] == "broker"}
    done = sorted(host for host, node in brokers.items() if node.get("running") == mode and node.get("next") == mode)
    led = leaderships(topics["partitions"])
    place = {host: number for number, host in enumerate(planned)}
    todo = sorted(
        (host for host in brokers if host not in done),
        key=lambda host: (
            bool(brokers[host].get("running")),
            host != canary,
            brokers[host].get("node_id") == controller_id,
            place.get(host, len(place)),
            led.get(brokers[host].get("node_id"), 0),
            host,
        ),
    )
    reasons = {}
    down = [host for host in todo if not brokers[host].get("running")]
    up = todo[len(down) :]
    reasons.update(dict.fromkeys(down, _DOWN))
    for host in up[1:]:
        if brokers[host].get("node_id") == controller_id:
            reasons[host] = "controller: last, so that it moves once"
    if up and not down:
        least = f"leads fewest partitions ({led.get(brokers[up[0]]['node_id'], 0)})"
        if up[0] == canary or not place.get(up[0]):  # in the place of one that was planned first it stands by itself
            chosen = "chosen" if up[0] == canary else "as planned" if up[0] in place else least
            reasons[up[0]] = f"canary: {chosen}"
    return Plan([[host] for host in todo], done, reasons, unavoidable(topics["partitions"], topics["min_isr"]))


def plan_controllers(nodes: Mapping[str, Mapping], mode: str, leader_id: int | None) -> Plan:
    """Plan the roll of the controllers into `mode`: what is down first, then followers, the quorum's leader last."""
    found = {host: node for host, node in nodes.items() if node["role"] == "controller"}
    done = sorted(host for host, node in found.items() if node.get("running") == mode and node.get("next") == mode)
    todo = sorted(
        (host for host in found if host not in done),
        key=lambda host: (bool(found[host].get("running")), found[host]["node_id"] == leader_id, host),
    )
    reasons = {host: "leader: last" for host in todo if found[host]["node_id"] == leader_id}
    reasons.update({host: _DOWN for host in todo if not found[host].get("running")})
    return Plan([[host] for host in todo], done, reasons, {})


def controller_troubles(nodes: Mapping[str, Mapping], quorum: Mapping, batch: Iterable[str]) -> list[str]:
    """Return why no controller of `batch` may be stopped now: another one is down, or a voter lags behind."""
    messages = [
        f"{host} does not answer: {node.get('running_error')}"
        for host, node in sorted(nodes.items())
        if node["role"] == "controller" and not node.get("running") and host not in set(batch)
    ]
    if not quorum.get("reached"):
        return [*messages, f"the quorum has no leader: {quorum.get('error')}"]
    stopping = {node.get("node_id") for host, node in nodes.items() if host in set(batch)}
    for voter in quorum["voters"]:
        behind = quorum["high_watermark"] - voter["log_end_offset"]
        if behind > 0 and voter["id"] not in stopping:
            messages.append(f"voter {voter['id']} is {behind} offsets behind the high watermark")
    return messages


def leaderships(partitions: Mapping) -> dict[int, int]:
    """Return how many partitions each broker leads, {broker id: count}."""
    led: dict[int, int] = {}
    for _name, one in _each(partitions):
        led[one["leader"]] = led.get(one["leader"], 0) + 1
    return led


def unavoidable(partitions: Mapping, min_isr: Mapping[str, int]) -> dict[str, str]:
    """Return the partitions that no order of restarts can keep available, with why."""
    reported = {}
    for name, one in _each(partitions):
        replicas, least = len(one["replicas"]), min_isr.get(_topic(name), 1)
        if replicas == 1:
            reported[name] = "replication factor 1: offline while its broker restarts"
        elif replicas - 1 < least:
            reported[name] = (
                f"{replicas} replicas, min.insync.replicas {least}: refuses acks=all while a replica restarts"
            )
    return reported


def troubles(
    topics: Mapping,
    min_isr: Mapping[str, int],
    expected: Iterable[int],
    excused: Iterable[str] = (),
    stop: int | None = None,
    accepted: Iterable[str] | None = None,
) -> list[str]:
    """Return why no broker may be stopped now, as sentences; nothing when all is well.

    `expected`: the broker ids that must be alive. `excused`: partitions listed beforehand (`unavoidable`); they
    still must have all their replicas in sync. With `stop`, what stopping that broker would take below
    min.insync.replicas counts as well. `accepted`: words of what may stay as it is (None: nothing may): partitions that
    are not whole are accepted by theirs, all of them as they are now. A last in-sync replica never is.
    """
    if not topics.get("reached"):
        return [topics.get("error") or "the brokers' metadata could not be read"]
    messages = [
        f"broker {one} is not in the cluster's metadata" for one in expected if str(one) not in topics["brokers"]
    ]
    red = _red(topics["partitions"], min_isr, set(excused))
    if accepted is None or (any(red.values()) and token(red) not in accepted):
        messages += _sentence(red[OFFLINE], "partition offline", "partitions offline")
        messages += _sentence(red[BEHIND], "partition under-replicated", "partitions under-replicated")
        messages += _sentence(red[UNDER], "partition under min ISR", "partitions under min ISR")
        messages += [acceptable(red)] if accepted is not None else []
    if stop is not None and (accepted is not None or not (red[OFFLINE] or red[BEHIND])):
        messages += sole(topics, stop)
        known = {name for names in red.values() for name in names}.union(excused)
        would = [
            name
            for name, one in _each(topics["partitions"])
            if name not in known
            and stop in one["replicas"]
            and sum(replica != stop for replica in one["isr"]) < min_isr.get(_topic(name), 1)
        ]
        messages += _sentence(
            would, f"partition that a stop of broker {stop} takes under min ISR", "partitions of that kind"
        )
    return messages + (_differ(topics.get("differ") or {}) if messages else [])


def _red(partitions: Mapping, min_isr: Mapping[str, int], excused: set[str]) -> dict[str, list[str]]:
    """Return the partitions that are not whole, by what ails them."""
    red: dict[str, list[str]] = {OFFLINE: [], BEHIND: [], UNDER: []}
    for name, one in _each(partitions):
        if one["leader"] < 0:
            red[OFFLINE].append(name)
        elif len(one["isr"]) < len(one["replicas"]):
            red[BEHIND].append(name)
        if name not in excused and len(one["isr"]) < min_isr.get(_topic(name), 1):
            red[UNDER].append(name)
    return red


def acceptable(red: Mapping[str, Iterable[str]]) -> str:
    """Return the sentence that tells how what is red can be accepted."""
    return f"accepted as it is by -e quorumshift_accept_degraded={token(red)}"


def token(red: Mapping[str, Iterable[str]]) -> str:
    """Return what an operator types to accept what is red ({kind: names}): another one once anything of it differs."""
    text = json.dumps({kind: sorted(names) for kind, names in red.items()}, sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:6]


def sole(topics: Mapping, stop: int | None = None) -> list[str]:
    """Return why a broker has to stay up, as a sentence a broker (`stop`, or any): partitions have their last in-sync
    replica there. A partition of one replica has none to lose: it is `unavoidable`."""
    last: dict[int, list[str]] = {}
    single = set(topics.get("single") or ())
    for name, one in _each(topics.get("partitions") or {}):
        if len(one["isr"]) == 1 and (len(one["replicas"]) > 1 or name in single):
            last.setdefault(one["isr"][0], []).append(name)
    return [
        line
        for broker, names in sorted(last.items())
        if stop in (None, broker)
        for line in _sentence(
            names,
            f"partition has its last in-sync replica on broker {broker}",
            f"partitions have their last in-sync replica on broker {broker}",
        )
    ]


def _differ(differ: Mapping) -> list[str]:
    """Return why what brokers tell of in-sync replicas cannot be right for all of them."""
    names = differ.get("partitions") or []
    if not names:
        return []
    hosts = " and ".join(differ["hosts"])
    return [
        f"{hosts}, of different modes, serve different in-sync replicas of {len(names)} of the partitions: where that "
        "stays, one of them has missed a change"
    ]


def _each(partitions: Mapping) -> Iterator[tuple[str, Mapping]]:
    for topic, numbers in partitions.items():
        for number, one in numbers.items():
            yield f"{topic}-{number}", one


def _topic(name: str) -> str:
    return name.rpartition("-")[0]


def _sentence(names: list[str], singular: str, plural: str) -> list[str]:
    if not names:
        return []
    return [f"{len(names)} {singular if len(names) == 1 else plural}: {advice.shown(sorted(names))}"]
