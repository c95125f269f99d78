# Copyright: (c) 2026, Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Start, watch, cancel reassignments, and set and remove their throttles, over a ClusterAdmin (probes.cluster_admin).

Throttles that were set, and the values that they replaced, are recorded in `<state_dir>/<cluster id>/throttles.json`
before they are set. So a later run removes those of an interrupted one, and never a value that someone else set.
"""

from __future__ import annotations

import json
import os
import time
from typing import Any, Dict, Iterable, List, Mapping

from . import host_state
from .core import reassignment
from .core.reassignment import Partition, Step, named
from .probes.cluster_admin import ClusterAdmin
from .probes.socket_wire import WireError

RECORD = "throttles.json"
LEGACY = "/admin/reassign_partitions"
_NO_REASSIGNMENT, _POLL_S = 85, 0.5
_SETTLE_S = 30.0  # brokers learn of the end of a reassignment after the controller


class Stalled(RuntimeError):
    """A reassignment makes no progress."""


class RecordError(ValueError):
    """The record of throttles cannot be read or written."""


def legacy(data: bytes | None) -> str | None:
    """Return what /admin/reassign_partitions asks for, in words; None if it does not exist."""
    if data is None:
        return None
    try:
        found = reassignment.parsed(json.loads(data))
    except (ValueError, reassignment.ReassignmentError):
        return "its content is malformed"
    return f"{len(found)} partitions ({', '.join(map(named, sorted(found)[:5]))})"


class Throttles:
    """The record of throttles in effect that this collection set on one cluster."""

    def __init__(self, admin: ClusterAdmin, state_dir: str) -> None:
        self._admin = admin
        self._state_dir = state_dir
        self._path = os.path.join(host_state.path_of(state_dir, admin.cluster_id), RECORD)
        found = host_state.read_json(self._path) or {}
        if "error" in found:
            raise RecordError(
                f"{found['error']}. It lists throttles of an earlier run: remove these by hand, then the file"
            )
        self.values: List[Dict[str, Any]] = found.get("values", [])
        self.partitions: List[Partition] = list(map(tuple, found.get("partitions", [])))

    def left_over(self, in_flight: Iterable[Partition]) -> bool:
        """Return whether there are throttles to remove: no partition for which they were set is still in flight."""
        return any(map(self._alive, self.values)) and not set(self.partitions) & set(in_flight)

    def set(self, steps: Iterable[Step], rate: int) -> Dict[str, Any]:
        """Throttle these steps; return what was set. Remove all of it, and raise, if some could not be set."""
        moving = [one for one in steps if one.state != reassignment.DONE]
        resources = set(reassignment.throttles(moving, rate, {}))
        current = self._current(resources)
        wanted = reassignment.throttles(moving, rate, current)
        changes = {
            one: {key: value for key, value in values.items() if current.get(one, {}).get(key) != value}
            for one, values in wanted.items()
        }
        changes = {one: values for one, values in changes.items() if values}
        if changes:
            self.values = reassignment.remembered(self.values, changes, current)
        if changes or self.values:
            self.partitions = sorted({*self.partitions, *(one.partition for one in moving)})
            self._write()
        topics_first = sorted(changes)
        for kind in (reassignment.TOPIC, reassignment.BROKER):
            errors = self._admin.alter_configs({one: changes[one] for one in topics_first if one[0] == kind})
            if errors:
                self.remove()
                raise next(iter(errors.values()))
        return {f"{kind}:{name}": values for (kind, name), values in changes.items()}

    def remove(self) -> List[str]:
        """Restore the values from before ours; return what is left, in words: values that others have set since.

        The record stays if a value could not be restored. Raises WireError then.
        """
        reachable = [one for one in self.values if self._alive(one)]
        dead = [one for one in self.values if not self._alive(one)]
        current = self._current({(one["type"], one["name"]) for one in reachable})
        changes, left = reassignment.restored(reachable, current)
        errors = self._admin.alter_configs(changes)
        self.values = dead + [one for one in reachable if (one["type"], one["name"]) in errors]
        if self.values:
            self._write()
        else:
            self.partitions = []
            if os.path.exists(self._path):
                os.unlink(self._path)
        if errors:
            raise next(iter(errors.values()))
        return left + [f"broker {one['name']} is not alive: {one['key']}; run again when it is" for one in dead]

    def _alive(self, one: Mapping[str, Any]) -> bool:
        return one["type"] != reassignment.BROKER or int(one["name"]) in self._admin.brokers

    def _current(self, resources: Iterable[tuple]) -> Dict[tuple, Dict[str, str]]:
        known = {topic for topic, _number in self._admin.partitions}
        there = [one for one in resources if one[0] == reassignment.BROKER or one[1] in known]
        return self._admin.configs(there) if there else {}

    def _write(self) -> None:
        try:
            host_state.directory(self._state_dir, self._admin.cluster_id)
            self._replace()
        except OSError as error:
            raise RecordError(
                f"the record of throttles {self._path} cannot be written: {error.strerror}. Set state_dir to a "
                "directory that this user may write"
            ) from error

    def _replace(self) -> None:
        host_state.write_json(self._path, {"values": self.values, "partitions": [list(one) for one in self.partitions]})


def throttles_of(admin: ClusterAdmin, topics: Iterable[str]) -> List[Dict[str, str]]:
    """Return every throttle that is set at a live broker or at these topics: [{resource, key, value}]."""
    resources = {(reassignment.BROKER, str(one)) for one in admin.brokers}
    resources |= {(reassignment.TOPIC, topic) for topic in topics}
    kinds = {reassignment.BROKER: "broker", reassignment.TOPIC: "topic"}
    return [
        {"resource": f"{kinds[kind]} {name}", "key": key, "value": value}
        for (kind, name), values in sorted(admin.configs(resources).items())
        for key, value in sorted(values.items())
        if key in reassignment.THROTTLES
    ]


def cancel(admin: ClusterAdmin, partitions: Iterable[Partition]) -> Dict[Partition, str | None]:
    """Cancel reassignments; return each one's error. One that ended meanwhile is no error."""
    results = admin.reassign(dict.fromkeys(partitions))
    return {one: str(error) if error and error.code != _NO_REASSIGNMENT else None for one, error in results.items()}


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
            sizes[broker] = admin.sizes(broker, partitions)
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


def wait(
    admin: ClusterAdmin, targets: Mapping[Partition, Any], wait_s: float | None, stall_timeout_s: float
) -> Dict[str, Any]:
    """Wait until none of the partitions is in flight, at most `wait_s`; return {done, waited_s, progress, text}.

    `targets`: the replicas that each partition must have then; None: any. Raises Stalled after `stall_timeout_s` in
    which no partition ended and no more bytes were copied, and where a partition ended with other replicas.
    """
    wanted, began, last_error = set(targets), time.monotonic(), ""
    settled: float | None = None
    best: tuple | None = None
    since = began
    first: tuple | None = None
    while True:
        now = time.monotonic()
        try:
            admin.refresh()
            flying = {one: moving for one, moving in admin.in_flight().items() if one in wanted}
            seen = progress(admin, flying)
            last_error = ""
        except WireError as error:
            flying, seen, last_error = None, {}, f"; last error: {error}"
        if flying is not None:
            copied = seen["bytes_copied"] or 0
            first = first or (now, copied, seen["bytes_left"])
            if best is None or seen["partitions_left"] < best[0] or copied > best[1]:
                best, since = (seen["partitions_left"], max(copied, best[1] if best else 0)), now
            rate = (copied - first[1]) / (now - first[0]) if now - first[0] > 0 else 0.0
            seen["bytes_per_s"] = max(0, round(rate))
            seen["eta_s"] = round(seen["bytes_left"] / rate) if seen["bytes_left"] is not None and rate > 0 else None
            other = [one for one in sorted(wanted - set(flying)) if _differs(admin, one, targets[one])]
            if not flying and not other:
                return {"done": True, "waited_s": round(now - began, 3), "progress": seen}
            settled = (settled or now) if other and not flying else None
            if settled and now - settled >= _SETTLE_S:
                has = admin.partitions.get(other[0], {}).get("replicas", "no replicas")
                raise Stalled(
                    f"the reassignment of {len(other)} partitions ended elsewhere: {named(other[0])} has {has}, and "
                    f"{list(targets[other[0]])} was asked for. Someone has cancelled or changed it; "
                    "run again to move it"
                )
            text = _words(seen, flying)
        else:
            text = "the brokers give no answer"
        if now - since >= stall_timeout_s:
            raise Stalled(
                f"for {now - since:.0f} s no partition ended and no bytes were copied: {text}{last_error}. Check the "
                "brokers that are added, their disks, and the throttle; then run again, or cancel with state: cancelled"
            )
        if wait_s is not None and now - began >= wait_s:
            return {"done": False, "waited_s": round(now - began, 3), "progress": seen, "text": text}
        time.sleep(_POLL_S)


def _differs(admin: ClusterAdmin, partition: Partition, target: Any) -> bool:
    return target is not None and admin.partitions.get(partition, {}).get("replicas") != list(target)


def _words(seen: Mapping[str, Any], flying: Mapping[Partition, Any]) -> str:
    left = "" if seen["bytes_left"] is None else f", {seen['bytes_left']} bytes left at {seen['bytes_per_s']} bytes/s"
    eta = f", about {seen['eta_s']} s" if seen["eta_s"] is not None else ""
    listed = ", ".join(f"{named(one)} adds {flying[one]['adding']}" for one in sorted(flying)[:5])
    return f"{seen['partitions_left']} partitions left{left}{eta} ({listed})"
