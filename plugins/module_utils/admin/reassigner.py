# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Start, watch, cancel reassignments, and set and remove their throttles, over a ClusterAdmin (admin.cluster_admin).

Throttles that were set, the values that they replaced and who set them are recorded in
`<state_dir>/<cluster id>/throttles.json` before they are set. So a later run removes those of an interrupted one, and
never a value that someone else set. Throttles that the record does not have are foreign: no move begins under them
unless it says what becomes of them.
"""

from __future__ import annotations

import contextlib
import fcntl
import getpass
import json
import os
import time
from typing import Any, Callable, Dict, Iterable, Iterator, List, Mapping, NamedTuple, Set, Tuple

from ansible_collections.quorumshift.kafka.plugins.module_utils.admin.cluster_admin import UNKNOWN_TOPIC, ClusterAdmin
from ansible_collections.quorumshift.kafka.plugins.module_utils.core.admin import reassignment
from ansible_collections.quorumshift.kafka.plugins.module_utils.core.admin.reassign_plan import Space, find_space
from ansible_collections.quorumshift.kafka.plugins.module_utils.core.admin.reassign_watch import Watch
from ansible_collections.quorumshift.kafka.plugins.module_utils.core.admin.reassignment import (
    Partition,
    Step,
    Throttle,
    format_brokers,
    format_partition,
)
from ansible_collections.quorumshift.kafka.plugins.module_utils.core.text.advice import format_names
from ansible_collections.quorumshift.kafka.plugins.module_utils.host import host_state
from ansible_collections.quorumshift.kafka.plugins.module_utils.wire.kafka_wire import KafkaError
from ansible_collections.quorumshift.kafka.plugins.module_utils.wire.socket_wire import WireError

RECORD, RECORD_LOCK = "throttles.json", "throttles.lock"
LEGACY = "/admin/reassign_partitions"
REFUSED, REMOVED, RESTORED = "refused", "removed", "restored"
_FORBIDDEN = (29, 31)  # Errors.TOPIC_AUTHORIZATION_FAILED, CLUSTER_AUTHORIZATION_FAILED: no later answer differs
_POLL_S, _LONGEST_POLL_S = 0.5, 5.0
_LOCK_S = 180.0  # two changes of the cluster, at most


class Stalled(RuntimeError):
    """A reassignment makes no progress, or has ended elsewhere."""


class RecordError(ValueError):
    """The record of throttles cannot be read or written."""


class Superseded(RuntimeError):
    """Another task of this host goes on with the move, or has cancelled it."""


def describe_legacy(data: bytes | None) -> str | None:
    """Return what /admin/reassign_partitions asks for, in words; None if it does not exist."""
    if data is None:
        return None
    try:
        found = reassignment.parse(json.loads(data))
    except (ValueError, reassignment.ReassignmentError):
        return "its content is malformed"
    return f"{len(found)} partitions ({format_names(list(map(format_partition, sorted(found))))})"


class Throttles:
    """The record of throttles in effect that this collection set on one cluster, from this host, and who moves now.

    :ivar values: see reassignment.update_record
    :ivar partitions: the partitions for which they were set
    :ivar owner: {run, user, host, at, rate}: who moves them, since when, and at how many bytes a second; {} for none
    """

    def __init__(self, admin: ClusterAdmin, state_dir: str, run: str | None = None) -> None:
        self._admin = admin
        self._state_dir = state_dir
        self._run = run
        self._directory = host_state.path_of(state_dir, admin.cluster_id)
        self._path = os.path.join(self._directory, RECORD)
        self.values: List[Dict[str, Any]] = []
        self.partitions: List[Partition] = []
        self.owner: Dict[str, Any] = {}
        self._load()

    def left_over(self, needed_by: Iterable[Partition]) -> bool:
        """Return whether there are throttles to remove: no partition for which they were set is among `needed_by`,
        those in flight and those that are still to be sent. A record without throttles is removed too."""
        there = any(map(self._alive, self.values)) or (bool(self.owner) and not self.values)
        return there and not set(self.partitions) & set(needed_by)

    def rate(self) -> int | None:
        """Return the bytes a second of the recorded throttles, None without any."""
        return self.owner.get("rate") if self.values else None

    def ours(self) -> List[Throttle]:
        """Return the recorded throttles, each with one of the values that were set."""
        return [Throttle(each["type"], each["name"], each["key"], each["ours"][-1]) for each in self.values]

    def require_owner(self, since: float | None) -> None:
        """Raise Superseded unless this task still owns the record. Call it while `exclusive`."""
        if self.owner.get("at") != since:
            other = f"run {self.owner['run']}" if self.owner.get("run") else "another task of this host"
            raise Superseded(
                f"{other} goes on with this move, or has cancelled it. This task sends nothing more. Wait for the end "
                "of the other one (QS-ADMIN-006)"
            )

    @contextlib.contextmanager
    def exclusive(self) -> Iterator[None]:
        """Keep other processes of this host from the record, which is read anew, until a move and its throttle began.

        Raises RecordError."""
        with self._writable():
            host_state.make_directory(self._state_dir, self._admin.cluster_id)
            path = os.path.join(self._directory, RECORD_LOCK)
            handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o600)
        try:
            end = time.monotonic() + _LOCK_S
            while True:
                try:
                    fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    break
                except BlockingIOError:
                    if time.monotonic() >= end:
                        raise RecordError(
                            f"another process has held {path} for {_LOCK_S:.0f} s. Wait for its end, then run "
                            "again (QS-ADMIN-008)"
                        ) from None
                    time.sleep(_POLL_S)
            self._load()
            yield
        finally:
            os.close(handle)

    def foreign(self, steps: Iterable[Step]) -> List[Throttle]:
        """Return the throttles at the brokers and topics of these steps that the record does not have."""
        return reassignment.find_foreign_throttles(self.values, self._current(self._resources(steps)))

    def throttle(self, steps: Iterable[Step], rate: int | None, mode: str) -> Dict[str, Any]:
        """Throttle these steps; return what was set. Call it while `exclusive`.

        `mode`: of foreign throttles. REMOVED ones at other keys are removed at once. If some could not be set, raise,
        and remove all of it unless something moves under the throttles that were there before. Raises
        ReassignmentError where another host has set throttles since `foreign` was asked.
        """
        moving = [step for step in steps if step.state != reassignment.DONE]
        current = self._current(self._resources(moving))
        others = reassignment.find_foreign_throttles(self.values, current)
        if others and mode == REFUSED:
            raise reassignment.ReassignmentError(
                f"another host has just set throttles: {format_names([str(throttle) for throttle in others])}. Nothing "
                "was changed. Wait for the end of its move (QS-ADMIN-002)"
            )
        others = others if mode == REMOVED else []
        gone = {throttle[:3] for throttle in others}
        base = {
            resource: {key: value for key, value in values.items() if (*resource, key) not in gone}
            for resource, values in current.items()
        }
        wanted = {} if rate is None else reassignment.throttles(moving, rate, base, self._admin.brokers)
        changes: Dict[tuple, Dict[str, str | None]] = {}
        for resource, values in wanted.items():
            for key, value in values.items():
                if current.get(resource, {}).get(key) != value:
                    changes.setdefault(resource, {})[key] = value
        ours = {resource: {key: value for key, value in of.items() if value} for resource, of in changes.items()}
        if ours:
            self.values = reassignment.update_record(self.values, ours, base)
        self.own((step.partition for step in moving), rate)
        for throttle in others:
            if throttle.key not in wanted.get((throttle.kind, throttle.name), {}):
                changes.setdefault((throttle.kind, throttle.name), {})[throttle.key] = None
        for kind in (reassignment.TOPIC, reassignment.BROKER):
            errors = self._alter({changed: changes[changed] for changed in sorted(changes) if changed[0] == kind})
            if errors:
                if not set(self.partitions) & set(self._admin.in_flight()):
                    self.remove()
                raise next(iter(errors.values()))
        return {f"{kind}:{name}": values for (kind, name), values in changes.items()}

    def own(self, partitions: Iterable[Partition], rate: int | None = None) -> None:
        """Record who moves these partitions now, also where nothing is throttled: the task that moved before
        sends no more.

        `rate`: bytes a second, None: as recorded. Call it while `exclusive`."""
        rate = self.rate() if rate is None else rate
        self.partitions = sorted({*self.partitions, *partitions})
        self.owner = {"run": self._run, "user": _user(), "host": os.uname().nodename, "at": time.time(), "rate": rate}
        self._write()

    def finish(self) -> List[str] | None:
        """Remove the throttles if none of their partitions is in flight; return what is left, None if they stay."""
        with self.exclusive():
            return self.remove() if self.left_over(self._admin.in_flight()) else None

    def give_up(self, since: float | None) -> List[str] | None:
        """Remove the throttles after a failure; None if they stay, since one of their partitions is in flight.

        `since`: since when this move owns them. A worker of Ansible outlives its control process: a later run that goes
        on with the move owns them by then.
        """
        with self.exclusive():
            self._admin.refresh()
            if self.owner.get("at") != since or set(self.partitions) & set(self._admin.in_flight()):
                return None
            return self.remove()

    def forget(self) -> List[Throttle]:
        """Leave the throttles as they are and forget them; return them. Later runs find them foreign."""
        with self.exclusive():
            kept, self.values = self.ours(), []
            self._drop_record()
            return kept

    def remove(self) -> List[str]:
        """Restore the values from before ours; return what is left, in words: values that others have set since.

        Call it while `exclusive`. The record stays if a value could not be restored. Raises WireError then.
        """
        reachable = [throttle for throttle in self.values if self._alive(throttle)]
        dead = [throttle for throttle in self.values if not self._alive(throttle)]
        current = self._current({(throttle["type"], throttle["name"]) for throttle in reachable})
        changes, left = reassignment.plan_throttle_removal(reachable, current)
        errors = self._alter(changes)
        self.values = dead + [throttle for throttle in reachable if (throttle["type"], throttle["name"]) in errors]
        if self.values:
            self.partitions = self.partitions if errors else []
            self._write()
        else:
            self._drop_record()
        if errors:
            raise next(iter(errors.values()))
        return left + [
            f"broker {throttle['name']} is not alive: {throttle['key']}; run again when it is" for throttle in dead
        ]

    def _drop_record(self) -> None:
        self.partitions, self.owner = [], {}
        if os.path.exists(self._path):
            os.unlink(self._path)

    def recorded(self) -> Dict[str, Any]:
        """Return the record as it is written."""
        return {
            "values": self.values,
            "partitions": [list(partition) for partition in self.partitions],
            "owner": self.owner,
        }

    def _load(self) -> None:
        found = host_state.read_json(self._path) or {}
        if "error" in found:
            raise RecordError(
                f"{found['error']}. It lists throttles of an earlier run: remove these by hand, then the "
                "file (QS-ADMIN-008)"
            )
        self.values = found.get("values", [])
        self.partitions = list(map(tuple, found.get("partitions", [])))
        self.owner = found.get("owner", {})

    def _alive(self, throttle: Mapping[str, Any]) -> bool:
        return throttle["type"] != reassignment.BROKER or int(throttle["name"]) in self._admin.brokers

    def _resources(self, steps: Iterable[Step]) -> Set[tuple]:
        """Return the resources at which a throttle slows these steps down: the brokers' default too."""
        moving = [step for step in steps if step.state != reassignment.DONE]
        brokers = {broker for step in moving for broker in (*step.has, *step.adding) if broker in self._admin.brokers}
        found = {(reassignment.BROKER, str(broker)) for broker in brokers}
        found |= {(reassignment.TOPIC, step.partition[0]) for step in moving}
        return found | {(reassignment.BROKER, "")} if moving else found

    def _current(self, resources: Iterable[tuple]) -> Dict[tuple, Dict[str, str]]:
        known = {topic for topic, _number in self._admin.partitions}
        there = [resource for resource in resources if resource[0] == reassignment.BROKER or resource[1] in known]
        return self._admin.configs(there, reassignment.THROTTLES) if there else {}

    def _alter(self, changes: Mapping[tuple, Mapping[str, str | None]]) -> Dict[tuple, Any]:
        """Set or delete values; return the errors by resource, without those of topics that were deleted meanwhile."""
        errors = self._admin.alter_configs(changes) if changes else {}
        return {
            resource: error
            for resource, error in errors.items()
            if resource[0] != reassignment.TOPIC or getattr(error, "code", None) != UNKNOWN_TOPIC
        }

    @contextlib.contextmanager
    def _writable(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise RecordError(
                f"the record of throttles {self._path} cannot be written: {error.strerror}. Set state_dir to a "
                "directory that this user may write (QS-ADMIN-008)"
            ) from error

    def _write(self) -> None:
        with self._writable():
            host_state.write_json(self._path, self.recorded())


def _user() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):  # a container without an entry for this user
        return str(os.getuid())


def foreign_refusal(found: List[Throttle], mode: str, unknown: Iterable[Partition], bootstrap: str) -> str | None:
    """Return why a move may not begin under throttles that the record of this host does not have, None if it may.

    `unknown`: partitions in flight that the record does not have either.
    """
    if not found or mode == REMOVED:
        return None
    listed, flying = format_names([str(throttle) for throttle in found]), list(unknown)
    if mode == RESTORED and flying:
        return (
            f"{len(flying)} partitions are in flight ({format_names(list(map(format_partition, sorted(flying))))}) "
            "under throttles that "
            f"this host has not set: {listed}. Throttles of that move would have no owner if they were restored after "
            "it. Wait for its end (QS-ADMIN-002)"
        )
    if mode == RESTORED:
        return None
    return (
        f"{len(found)} throttles are set that this host has not set: {listed}. If they are of a move, wait for its "
        f"end. To remove them: {reassignment.removal_commands(found, bootstrap)}. To move under them and restore them, "
        "set foreign_throttles: restored (reassign_foreign_throttles of the playbook); removed takes them "
        "over (QS-ADMIN-002)"
    )


def bootstrap(connections: Any) -> str:
    """Return the bootstrap servers of these connections as Kafka's tools take them."""
    return ",".join(map(str, connections.bootstrap))


def list_throttles(found: Iterable[Throttle]) -> List[Dict[str, str]]:
    """Return throttles as partition_reassignment_info returns them."""
    return [
        {"resource": str(throttle).partition(":")[0], "key": throttle.key, "value": throttle.value}
        for throttle in found
    ]


def explain(error: Exception, bootstrap: str) -> str:
    """Return an error in words; one of a missing right with the command that grants it."""
    if isinstance(error, KafkaError) and error.name.endswith("AUTHORIZATION_FAILED"):
        return f"{error}. {reassignment.explain_denied(bootstrap)}"
    return str(error)


@contextlib.contextmanager
def explained(bootstrap: str) -> Iterator[None]:
    """Raise ReassignmentError in place of a KafkaError of a missing right."""
    try:
        yield
    except KafkaError as error:
        text = explain(error, bootstrap)
        if text == str(error):
            raise
        raise reassignment.ReassignmentError(text) from error


def read_throttled_configs(admin: ClusterAdmin) -> Tuple[Dict[tuple, Dict[str, str]], List[str]]:
    """Return the throttles that are set at live brokers, at the brokers' default and at topics, and why some could not
    be read: a broker that hangs must not hide those of the others."""
    found: Dict[tuple, Dict[str, str]] = {}
    unread = []
    topics = {(reassignment.TOPIC, topic) for topic, _number in admin.partitions} | {(reassignment.BROKER, "")}
    for resources in (topics, *({(reassignment.BROKER, str(broker_id))} for broker_id in sorted(admin.brokers))):
        try:
            found.update(admin.configs(resources, reassignment.THROTTLES))
        except WireError as error:
            unread.append(str(error))
    return found, unread


class Measured(NamedTuple):
    """What brokers say of their log directories: the bytes of the largest replica of each partition, the space of each
    broker that says it, the replicas that each has, and why some do not say all of it."""

    sizes: Dict[Partition, int]
    space: Dict[int, Space]
    held: Dict[int, Set[Partition]]
    unread: Dict[int, str]


def measure(admin: ClusterAdmin, brokers: Iterable[int] | None = None) -> Measured:
    """Return what these brokers say of their log directories, by default all that live."""
    measured = Measured({}, {}, {}, {})
    for broker in sorted(admin.brokers if brokers is None else set(brokers) & set(admin.brokers)):
        try:
            found = admin.log_dirs(broker)
        except WireError as error:
            measured.unread[broker] = str(error)
            continue
        for partition, size in found.sizes.items():
            measured.sizes[partition] = max(size, measured.sizes.get(partition, 0))
        measured.held[broker] = set(found.sizes)
        space = find_space(found.directories)
        if space is not None:
            measured.space[broker] = space
        if found.offline:
            measured.unread[broker] = f"broker {broker} has directories that are offline: {format_names(found.offline)}"
    return measured


def find_unseen(
    admin: ClusterAdmin, held: Mapping[int, Set[Partition]]
) -> Tuple[Dict[int, Set[Partition]], Dict[int, Set[Partition]]]:
    """Return the replicas of each broker that the metadata of all topics lacks: those of topics that the principal may
    not describe, and those of partitions that do not exist. The metadata is read anew for topics that were just
    created. Raises WireError."""
    if any(held[broker] - admin.partitions.keys() for broker in held):
        admin.refresh()
    lacking = {broker: held[broker] - admin.partitions.keys() for broker in held}
    topics = {topic for partitions in lacking.values() for topic, _number in partitions}
    denied = admin.denied(topics) if topics else set()
    hidden = {broker: {each for each in lacking[broker] if each[0] in denied} for broker in lacking}
    return hidden, {broker: lacking[broker] - hidden[broker] for broker in lacking}


def read_denied(admin: ClusterAdmin) -> Tuple[List[str], List[str]]:
    """Return the topics with replicas on live brokers that the principal may not describe, and why some brokers do not
    say which replicas they have. Raises WireError."""
    measured = measure(admin)
    denied, _strays = find_unseen(admin, measured.held)
    topics = {topic for partitions in denied.values() for topic, _number in partitions}
    return sorted(topics), [why for broker, why in measured.unread.items() if broker not in measured.held]


def progress(admin: ClusterAdmin, in_flight: Mapping[Partition, Mapping[str, Any]]) -> Dict[str, Any]:
    """Return {partitions_left, bytes_left, bytes_copied} of reassignments; bytes are None if brokers do not say."""
    concerned: Dict[int, set] = {}
    for partition, moving in in_flight.items():
        leader = admin.partitions.get(partition, {}).get("leader", -1)
        for broker in (leader, *moving["adding"]):
            if broker in admin.brokers:
                concerned.setdefault(broker, set()).add(partition)
    sizes: Dict[int, Dict[Partition, int]] = {}
    for broker, partitions in concerned.items():
        try:
            sizes[broker] = admin.log_dirs(broker, partitions).sizes
        except WireError:
            continue
    left = copied = 0
    for partition, moving in in_flight.items():
        leader = admin.partitions.get(partition, {}).get("leader", -1)
        whole = sizes.get(leader, {}).get(partition, 0)
        for broker in moving["adding"]:
            there = sizes.get(broker, {}).get(partition, 0)
            left += max(0, whole - there)
            copied += there
    known = any(sizes.values())
    return {
        "partitions_left": len(in_flight),
        "bytes_left": left if known else None,
        "bytes_copied": copied if known else None,
    }


class Sent(NamedTuple):
    """What a move has sent: `targets`: {partition: the replicas that it must have then; None: any}; `queued`: how many
    partitions are still to be sent, `note`: this in words; `more`: whether more was sent just now."""

    targets: Mapping[Partition, Any]
    queued: int = 0
    note: str = ""
    more: bool = False


def wait(
    admin: ClusterAdmin,
    sent: Callable[[Mapping[Partition, Any]], Sent],
    wait_s: float | None,
    stall_timeout_s: float,
    carry: Mapping[str, Any],
) -> Dict[str, Any]:
    """Wait until none of the partitions is in flight, at most `wait_s`; return {done, waited_s, progress, gone, text,
    carry}.

    `sent`: gets the partitions in flight after each reading, may send more, and returns what is sent now. Its
    errors end the wait. A partition that no longer exists needs nothing. `carry`: of an earlier slice of the same wait.
    Raises Stalled after `stall_timeout_s` in which no partition was sent or ended and no more bytes were copied, and at
    the end if partitions ended with other replicas.
    """
    watch, slice_end = Watch(time.time(), carry), time.monotonic() + (wait_s or 0)
    seen: Dict[str, Any] = {}
    targets, queued, note, more = Sent({})
    while True:
        error, began = "", time.monotonic()
        flying: Dict[Partition, Dict[str, list]] = {}
        try:
            admin.refresh()
            in_flight = admin.in_flight()
        except WireError as failed:
            if isinstance(failed, KafkaError) and failed.code in _FORBIDDEN:
                raise
            error = str(failed)
        if not error:
            targets, queued, note, more = sent(in_flight)
            try:
                if more:
                    watch.sent(time.time())
                    admin.refresh()
                    in_flight = admin.in_flight()
                flying = {partition: moving for partition, moving in in_flight.items() if partition in targets}
                seen = progress(admin, flying)
                seen["partitions_left"] += queued
                added = {broker for moving in flying.values() for broker in moving["adding"]}
                dead = sorted(added - set(admin.brokers))
                note = "; ".join(filter(None, [note, f"{format_brokers(dead)} not alive" if dead else ""]))
            except WireError as failed:
                error = str(failed)
        now = time.time()
        if not error:
            replicas = {
                partition: admin.partitions[partition]["replicas"]
                for partition in targets
                if partition in admin.partitions
            }
            sight = watch.see(now, targets, replicas, flying, seen, note)
            common = {
                "waited_s": round(now - watch.began, 3),
                "progress": seen,
                "gone": list(map(format_partition, sight.gone)),
            }
            if sight.done and not sight.elsewhere and not queued:
                return {"done": True, **common}
            if sight.done and not queued:
                first = sight.elsewhere[0]
                raise Stalled(
                    f"the reassignment of {len(sight.elsewhere)} partitions ended elsewhere: {format_partition(first)} "
                    "has "
                    f"{replicas[first]}, and {list(targets[first])} was asked for. Someone has cancelled or changed "
                    "it, or /admin/reassign_partitions named it when ZooKeeper's controller changed. Last seen: "
                    f"{watch.text}. Run again to move it (QS-ADMIN-006)"
                )
        stalled = watch.stalled(now, stall_timeout_s, error)
        if stalled:
            raise Stalled(stalled)
        if wait_s is not None and time.monotonic() >= slice_end:
            waited = round(now - watch.began, 3)
            text = f"the brokers give no answer; before that: {watch.text}" if error else watch.text
            return {"done": False, "waited_s": waited, "progress": seen, "text": text, "carry": watch.carry()}
        # A reading of a large cluster takes seconds: most of the time belongs to its own work
        read_s = time.monotonic() - began
        time.sleep(min(_LONGEST_POLL_S, max(_POLL_S, len(flying) / 100, 2 * read_s)))
