# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Reassignments (KIP-455): wanted replicas against actual ones, throttles, progress, and plans that move little. Pure.

A reassignment in flight has R, adding and removing replicas; R minus the removing ones is where it leads.
"""

from __future__ import annotations

import hashlib
import re
import shlex
from typing import Any, Collection, Dict, Iterable, List, Mapping, NamedTuple, Sequence, Tuple

from ansible_collections.quorumshift.kafka.plugins.module_utils.core.text.advice import format_names as _few

Partition = Tuple[str, int]
"""A topic and the number of its partition."""

LEADER_RATE, FOLLOWER_RATE = "leader.replication.throttled.rate", "follower.replication.throttled.rate"
LEADER_REPLICAS, FOLLOWER_REPLICAS = (
    "leader.replication.throttled.replicas",
    "follower.replication.throttled.replicas",
)
THROTTLES = (LEADER_RATE, FOLLOWER_RATE, LEADER_REPLICAS, FOLLOWER_REPLICAS)
RATES, REPLICAS = (LEADER_RATE, FOLLOWER_RATE), (LEADER_REPLICAS, FOLLOWER_REPLICAS)
TOPIC, BROKER = 2, 4  # ConfigResource.Type
Resource = Tuple[int, str]
"""A resource type and a name; the name of the brokers' default is empty."""
Configs = Mapping[Resource, Mapping[str, str]]

DONE, START, UNDER_WAY, OTHER_WAY, CANCEL = "done", "start", "under way", "other way", "cancel"
_MOST_SHOWN = 100  # partitions in a difference: the result has all
_LONGEST_LIST = 30_000  # Kafka takes no longer value than 32,767 bytes; `*` throttles every replica of the topic


class ReassignmentError(ValueError):
    """An assignment cannot be understood or a plan cannot be made; the text says what to do."""


class Step(NamedTuple):
    """What is to be done for one partition.

    `state`: DONE, START, UNDER_WAY (in flight to the wanted replicas), OTHER_WAY (in flight elsewhere) or CANCEL (in
    flight, and to be cancelled). `replicas`: R now. `has`: R without the replicas that a reassignment in flight adds.
    `adding` and `removing`: what remains to be done. `undo`: the replicas that lead back to where this step began:
    `has`, and for CANCEL those to which it was in flight.
    """

    partition: Partition
    state: str
    replicas: Tuple[int, ...]
    has: Tuple[int, ...]
    wanted: Tuple[int, ...]
    adding: Tuple[int, ...]
    removing: Tuple[int, ...]
    undo: Tuple[int, ...]

    @property
    def target(self) -> Tuple[int, ...] | None:
        """What is sent: the wanted replicas, None to cancel."""
        return None if self.state == CANCEL else self.wanted


class Throttle(NamedTuple):
    """One value that throttles replication, at a topic or a broker; the brokers' default has no name."""

    kind: int
    name: str
    key: str
    value: str

    def __str__(self) -> str:
        return f"{'topic' if self.kind == TOPIC else 'broker'} {self.name or '(default)'}: {self.key}={self.value}"


def format_partition(partition: Partition) -> str:
    """Return a partition as people write it."""
    return f"{partition[0]}-{partition[1]}"


Wanted = Dict[Partition, "Tuple[int, ...] | None"]
"""The wanted replicas of each partition; None cancels its reassignment."""


def parse(content: object, texts: bool = False) -> Wanted:
    """Return {partition: replicas} of a reassignment as kafka-reassign-partitions writes it; raise ReassignmentError.

    `content`: {"version": 1, "partitions": [{topic, partition, replicas, log_dirs}]}. `replicas: null` cancels, as in
    AlterPartitionReassignments (KIP-455). An entry without `replicas`, which only names a partition, has none.
    `texts`: whether a number may also be a text of digits, as Ansible makes of a template.
    """
    if not isinstance(content, Mapping):
        raise ReassignmentError(f"the reassignment is {_describe_type(content)}. {_FORM} (QS-ADMIN-004)")
    version = content.get("version", 1)
    if isinstance(version, bool) or version != 1 or not isinstance(version, int):
        raise ReassignmentError(
            f"version is {_describe_type(version)}, and only version 1 of reassignments is known (QS-ADMIN-004)"
        )
    found: Wanted = {}
    for index, entry in enumerate(_require_list(content.get("partitions"), "partitions")):
        where = f"partitions[{index}]"
        if not isinstance(entry, Mapping):
            raise ReassignmentError(f"{where} is {_describe_type(entry)}. {_FORM} (QS-ADMIN-004)")
        topic = entry.get("topic")
        if not isinstance(topic, str) or not topic:
            raise ReassignmentError(
                f"{where}.topic is {_describe_type(topic)}. It must be the name of a topic (QS-ADMIN-004)"
            )
        key = topic, _require_number(entry.get("partition"), f"{where}.partition", texts)
        cancels = "replicas" in entry and entry["replicas"] is None
        listed = _require_list(entry["replicas"], f"{where}.replicas") if "replicas" in entry and not cancels else []
        replicas = tuple(_require_number(broker, f"{where}.replicas[{at}]", texts) for at, broker in enumerate(listed))
        if key in found:
            raise ReassignmentError(f"{format_partition(key)} is given twice. Keep one of its entries (QS-ADMIN-004)")
        if len(set(replicas)) != len(replicas):
            raise ReassignmentError(
                f"{format_partition(key)} names a broker twice: {list(replicas)}. Name each broker once (QS-ADMIN-004)"
            )
        directories = _require_list(entry["log_dirs"], f"{where}.log_dirs") if "log_dirs" in entry else []
        if any(directory != "any" for directory in directories):
            raise ReassignmentError(
                f"{format_partition(key)} names log directories, and moves between directories are not supported. Use "
                "'any' (QS-ADMIN-004)"
            )
        if "log_dirs" in entry and len(directories) != len(replicas):
            raise ReassignmentError(
                f"{where} has {len(replicas)} replicas and {len(directories)} log_dirs. Give one for each, or "
                "none (QS-ADMIN-004)"
            )
        found[key] = None if cancels else replicas
    return found


_FORM = "A reassignment is {version: 1, partitions: [{topic, partition, replicas}]}"
_LARGEST = (1 << 31) - 1
_DIGITS = re.compile(r"[0-9]+")


def _describe_type(value: object) -> str:
    """Return a value with its type in JSON's words."""
    if value is None:
        return "null or missing"
    kinds = ((bool, "a boolean"), ((int, float), "a number"), (str, "a text"), (Mapping, "an object"))
    kind = next((text for types, text in kinds if isinstance(value, types)), "a list")  # type: ignore[arg-type]
    text = repr(value)
    return f"{kind}, {text if len(text) <= 60 else text[:60] + '...'}"


def _require_list(value: object, where: str) -> list:
    if not isinstance(value, list):
        raise ReassignmentError(f"{where} is {_describe_type(value)}. It must be a list (QS-ADMIN-004)")
    return value


def _require_number(value: object, where: str, texts: bool) -> int:
    if texts and isinstance(value, str) and _DIGITS.fullmatch(value):
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= _LARGEST:
        raise ReassignmentError(
            f"{where} is {_describe_type(value)}. It must be an integer from 0 to {_LARGEST} (QS-ADMIN-004)"
        )
    return value


def render(assignments: Mapping[Partition, Sequence[int]]) -> Dict[str, Any]:
    """Return a reassignment as kafka-reassign-partitions reads it."""
    return {
        "version": 1,
        "partitions": [
            {"topic": topic, "partition": number, "replicas": list(assignments[topic, number])}
            for topic, number in sorted(assignments)
        ],
    }


def steps(
    wanted: Mapping[Partition, Sequence[int] | None],
    actual: Mapping[Partition, Sequence[int]],
    in_flight: Mapping[Partition, Mapping[str, Sequence[int]]],
) -> List[Step]:
    """Return what is to be done for each wanted partition. `wanted`: None cancels. `actual`: R now, adding replicas
    included."""
    found = []
    for partition, target in sorted(wanted.items()):
        now, moving = tuple(actual[partition]), in_flight.get(partition)
        has = tuple(replica for replica in moving["replicas"] if replica not in moving["adding"]) if moving else now
        end, undo = has if target is None else tuple(target), has
        if moving:
            leads_to = tuple(replica for replica in moving["replicas"] if replica not in moving["removing"])
            state = UNDER_WAY if leads_to == end else OTHER_WAY
            if target is None:
                state, undo = CANCEL, leads_to
        else:
            state = DONE if now == end else START
        adding = tuple(replica for replica in end if replica not in has)
        removing = tuple(replica for replica in now if replica not in end)
        found.append(Step(partition, state, now, has, end, adding, removing, undo))
    return found


def refusal(
    found: Sequence[Step],
    in_flight: Iterable[Partition],
    brokers: Iterable[int],
    additional: bool,
    legacy: str | None,
    shrink: str | None = None,
    cordoned: Collection[int] = (),
) -> str | None:
    """Return why these steps may not be started, None when they may. `legacy`: what /admin/reassign_partitions has.
    `shrink`: the token with which fewer replicas were accepted. `cordoned`: brokers that get no replicas."""
    begun = [step for step in found if step.state in (START, OTHER_WAY)]
    if not begun:
        return None
    alive = set(brokers)
    for step in begun:
        if not step.wanted:
            return (
                f"{format_partition(step.partition)} has no replicas in this reassignment. Give its wanted replicas "
                "(QS-ADMIN-001)"
            )
        if step.adding and not alive.intersection(step.has):
            return (
                f"{format_partition(step.partition)} has no live replica from which {format_brokers(step.adding)} "
                "could copy: its "
                f"replicas are {list(step.has)}. Start one of them, or leave the partition out (QS-ADMIN-001)"
            )
        dead = [broker for broker in step.adding if broker not in alive]
        if dead:
            return (
                f"{format_partition(step.partition)} would move to {format_brokers(dead)}, not alive in this cluster. "
                f"Live brokers are {sorted(alive)}. Start it, or choose another (QS-ADMIN-001)"
            )
        kept_out = [broker for broker in step.adding if broker in cordoned]
        if kept_out:
            return (
                f"{format_partition(step.partition)} would move to {format_brokers(kept_out)}, which is cordoned. "
                "Choose another broker, or take it out of cordon: reassign_cordon of the playbook (QS-ADMIN-001)"
            )
    fewer = find_shrinking(begun)
    if fewer and shrink != shrink_token(fewer):
        listed = _few(list(map(_change, fewer)))
        return (
            f"{len(fewer)} partitions would get fewer replicas than they have: {listed}. To accept this, give "
            f"the token {shrink_token(fewer)}: reassign_shrink of the playbook, shrink of the module (QS-ADMIN-001)"
        )
    wanted = {step.partition for step in found if step.state in (UNDER_WAY, CANCEL)}
    other = sorted(set(in_flight) - wanted)
    if other and not additional:
        return (
            f"{len(other)} partitions are in flight already ({_few(list(map(format_partition, other)))}). Wait until "
            "they are done, set additional: true to start more, or cancel them with state: cancelled (QS-ADMIN-001)"
        )
    if legacy and not additional:
        return (
            f"/admin/reassign_partitions exists in ZooKeeper: {legacy}. The later request wins: the controller takes "
            "the partitions of this task out of it. What is in it when a controller is elected wins over every "
            "request. Wait until it is gone, or set additional: true (QS-ADMIN-001)"
        )
    return None


def find_shrinking(found: Iterable[Step]) -> List[Step]:
    """Return the steps that leave a partition fewer replicas than it has."""
    return [step for step in found if len(step.wanted) < len(step.has)]


def _change(step: Step) -> str:
    return f"{format_partition(step.partition)} from {len(step.has)} to {len(step.wanted)}"


def shrink_token(fewer: Iterable[Step]) -> str:
    """Return the token that accepts fewer replicas: of these partitions, from and to these numbers."""
    text = ",".join(sorted(f"{format_partition(step.partition)}:{len(step.has)}:{len(step.wanted)}" for step in fewer))
    return hashlib.sha256(text.encode()).hexdigest()[:6]


def diff(found: Sequence[Step]) -> Dict[str, str]:
    """Return R, adding and removing of the partitions that change, as Ansible shows a difference."""
    before, after = [], []
    changed = [step for step in found if step.state in (START, OTHER_WAY, CANCEL)]
    for step in changed[:_MOST_SHOWN]:
        before.append(f"{format_partition(step.partition)}: R {list(step.replicas)}\n")
        after.append(
            f"{format_partition(step.partition)}: R {list(step.wanted)}, adding {list(step.adding)}, "
            f"removing {list(step.removing)}\n"
        )
    if len(changed) > _MOST_SHOWN:
        after.append(f"and {len(changed) - _MOST_SHOWN} more partitions\n")
    return {"before": "".join(before), "after": "".join(after)}


def diff_cancelled(ended: Mapping[Partition, Mapping[str, Sequence[int]]]) -> Dict[str, str]:
    """Return R, adding and removing of reassignments that are cancelled, as Ansible shows a difference."""
    before, after = [], []
    for partition, moving in sorted(ended.items()):
        replicas, adding, removing = (list(moving[key]) for key in ("replicas", "adding", "removing"))
        before.append(f"{format_partition(partition)}: R {replicas}, adding {adding}, removing {removing}\n")
        after.append(f"{format_partition(partition)}: R {[replica for replica in replicas if replica not in adding]}\n")
    return {"before": "".join(before), "after": "".join(after)}


# --- throttles ---------------------------------------------------------------------------------------------


def throttles(
    found: Sequence[Step], rate: int, current: Configs, alive: Collection[int]
) -> Dict[Resource, Dict[str, str]]:
    """Return {(resource type, name): {key: value}} that throttles these steps, added to the `current` values.

    As kafka-reassign-partitions does: replicas that a partition has are throttled as leaders, the adding ones as
    followers, and the rate is set at each of these brokers that is `alive`: only the broker itself takes its configs. A
    topic whose value is `*` keeps it, and one whose list would be too long for Kafka gets it.
    """
    leaders: Dict[str, set] = {}
    followers: Dict[str, set] = {}
    brokers: set = set()
    for step in found:
        if step.state == DONE or not step.adding:
            continue
        topic, number = step.partition
        has = [broker for broker in step.replicas if broker not in step.adding]
        leaders.setdefault(topic, set()).update(f"{number}:{broker}" for broker in has)
        followers.setdefault(topic, set()).update(f"{number}:{broker}" for broker in step.adding)
        brokers.update(broker for broker in (*has, *step.adding) if broker in alive)
    changes: Dict[Resource, Dict[str, str]] = {}
    for key, members in ((LEADER_REPLICAS, leaders), (FOLLOWER_REPLICAS, followers)):
        for topic, listed in members.items():
            former = current.get((TOPIC, topic), {}).get(key, "")
            if former != "*":
                every = {text for text in former.split(",") if text} | listed
                text = ",".join(sorted(every))
                changes.setdefault((TOPIC, topic), {})[key] = text if len(text) <= _LONGEST_LIST else "*"
    for broker in sorted(brokers):
        changes[BROKER, str(broker)] = {LEADER_RATE: str(rate), FOLLOWER_RATE: str(rate)}
    return changes


def update_record(record: Sequence[Mapping[str, Any]], changes: Configs, current: Configs) -> List[Dict[str, Any]]:
    """Return the record of throttles with these `changes` in it: [{type, name, key, ours, former}].

    `former` is what was there before our first value (None: nothing). `ours` lists all values that we set or are
    about to set, since an interruption may come before or after any of them.
    """
    kept = {(throttle["type"], throttle["name"], throttle["key"]): dict(throttle) for throttle in record}
    for (kind, name), values in changes.items():
        for key, value in values.items():
            now = current.get((kind, name), {}).get(key)
            throttle = kept.get((kind, name, key))
            if throttle is None or now not in throttle["ours"]:
                throttle = {"type": kind, "name": name, "key": key, "ours": [], "former": now}
            kept[kind, name, key] = {**throttle, "ours": sorted({*throttle["ours"], value})}
    return [kept[key] for key in sorted(kept)]


def find_foreign_throttles(record: Sequence[Mapping[str, Any]], current: Configs) -> List[Throttle]:
    """Return the throttles among the `current` values that are not those of the record."""
    ours = {(throttle["type"], throttle["name"], throttle["key"]): throttle["ours"] for throttle in record}
    return [throttle for throttle in find_throttles(current) if throttle.value not in ours.get(throttle[:3], ())]


def find_throttles(configs: Configs) -> List[Throttle]:
    """Return all replication throttles among these values."""
    return [
        Throttle(kind, name, key, values[key])
        for (kind, name), values in sorted(configs.items())
        for key in THROTTLES
        if values.get(key)
    ]


def find_throttled_topics(configs: Configs) -> List[str]:
    """Return the topics where both halves of a throttle meet: listed replicas, and the rate of one of their brokers."""
    found = set()
    for rate, replicas in zip(RATES, REPLICAS):
        slow = {name for (kind, name), values in configs.items() if kind == BROKER and values.get(rate)}
        for (kind, topic), values in configs.items():
            listed = (values.get(replicas) if kind == TOPIC else None) or ""
            brokers = {text.rpartition(":")[2] for text in listed.split(",")}
            if listed and slow and (listed.strip() == "*" or "" in slow or brokers & slow):
                found.add(topic)
    return sorted(found)


def report_left_throttles(configs: Configs, bootstrap: str) -> Tuple[str, str, bool] | None:
    """Return what throttles are set, what to do, and whether they slow replicas down now; None without any.

    Half a throttle, a rate without replicas or replicas without a rate, slows nothing down until the other half comes.
    """
    found = find_throttles(configs)
    if not found:
        return None
    slow = find_throttled_topics(configs)
    seen = _few([str(throttle) for throttle in found])
    if slow:
        seen += f". Replicas of {_few(slow)} catch up at that rate after a restart"
    else:
        seen += ". They slow nothing down yet: one half of the throttle, rate or replicas, is missing"
    do = (
        "wait for the end of the move that set them. If none is in flight, remove them: "
        f"{removal_commands(found, bootstrap)}"
    )
    return seen, do, bool(slow)


def removal_commands(found: Iterable[Throttle], bootstrap: str) -> str:
    """Return the commands that remove throttles, to be pasted into a shell."""
    names: Dict[Tuple[int, str], List[str]] = {}
    keys: Dict[Resource, List[str]] = {}
    for throttle in found:
        keys.setdefault((throttle.kind, throttle.name), []).append(throttle.key)
    for (kind, name), listed in keys.items():
        names.setdefault((kind, ",".join(sorted(listed))), []).append(name)
    words = f"kafka-configs.sh --bootstrap-server {bootstrap} --alter"
    commands = []
    for (kind, delete), of_kind in sorted(names.items()):
        entity = f"{words} --delete-config {delete} --entity-type {'topics' if kind == TOPIC else 'brokers'}"
        commands += [f"{entity} --entity-default"] if "" in of_kind else []
        named_ones = sorted((name for name in of_kind if name), key=lambda name: (len(name), name))
        if len(named_ones) == 1:
            commands.append(f"{entity} --entity-name {named_ones[0]}")
        elif named_ones:
            commands.append(f"for name in {' '.join(named_ones)}; do {entity} --entity-name $name; done")
    return "; ".join(commands)


def explain_denied(bootstrap: str) -> str:
    """Return the command that grants what reassignments with throttles need (Kafka's KafkaApis and ControllerApis)."""
    start = f"kafka-acls.sh --bootstrap-server {bootstrap} --command-config ADMIN.properties --add --allow-principal "
    return (
        "The principal needs Describe and Alter on the cluster, Describe on the topics, and for throttles "
        "DescribeConfigs and AlterConfigs on both. Grant them, as a principal that may: "
        f"{start}User:PRINCIPAL --cluster --operation "
        "Describe --operation Alter --operation DescribeConfigs --operation AlterConfigs; "
        f"{start}User:PRINCIPAL --topic '*' --operation Describe --operation DescribeConfigs --operation AlterConfigs "
        "(QS-ADMIN-016)"
    )


def grant_describe(principal: str | None, bootstrap: str) -> str:
    """Return how a principal may describe every topic, with the command."""
    return (
        f"Remove the ACLs that deny it, or grant it: kafka-acls.sh --bootstrap-server {bootstrap} --command-config "
        f"ADMIN.properties --add --allow-principal {shlex.quote(principal or 'User:PRINCIPAL')} --operation Describe "
        "--topic '*'"
    )


def plan_throttle_removal(
    record: Sequence[Mapping[str, Any]], current: Configs
) -> Tuple[Dict[Resource, Dict[str, str | None]], List[str]]:
    """Return the changes that remove our throttles, and what is left because someone else has changed it since."""
    changes: Dict[Resource, Dict[str, str | None]] = {}
    left = []
    for throttle in record:
        resource = throttle["type"], throttle["name"]
        now = current.get(resource, {}).get(throttle["key"])
        if now == throttle["former"]:
            continue
        if now in throttle["ours"]:
            changes.setdefault(resource, {})[throttle["key"]] = throttle["former"]
        elif now is not None:
            left.append(str(Throttle(throttle["type"], throttle["name"], throttle["key"], now)))
    return changes, left


def format_brokers(ids: Sequence[int]) -> str:
    """Return brokers as people write them."""
    return ("broker " if len(ids) == 1 else "brokers ") + ", ".join(map(str, ids))
