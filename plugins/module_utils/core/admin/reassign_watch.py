# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a wait for reassignments has seen: progress, stalls, partitions that ended elsewhere or are gone. Pure.

A wait may be split into slices, each a call of a module. `carry` takes what was seen from one slice to the next.
"""

from __future__ import annotations

from typing import Any, Dict, List, Mapping, NamedTuple, Sequence

from ansible_collections.quorumshift.kafka.plugins.module_utils.core.admin.reassignment import (
    Partition,
    format_partition,
)
from ansible_collections.quorumshift.kafka.plugins.module_utils.core.text.advice import format_names

SETTLE_S = 30.0  # brokers learn of the end of a reassignment after the controller


class Sight(NamedTuple):
    """One reading. `done`: no partition is in flight, and each is where it should be or is final. `gone`: partitions
    that do not exist any more; `elsewhere`: partitions that ended with other replicas."""

    done: bool
    gone: List[Partition]
    elsewhere: List[Partition]


class Watch:
    """The state of one wait. Times are epoch seconds, since slices run in several processes."""

    def __init__(self, now: float, carry: Mapping[str, Any]) -> None:
        self.began: float = carry.get("began", now)
        self._since: float = carry.get("since", now)  # of the last progress
        self._odd: Dict[Partition, float] = {(topic, number): at for topic, number, at in carry.get("odd", ())}
        self._left: int | None = carry.get("left")
        self._copied: int = carry.get("copied", 0)
        self._moved: int = carry.get("moved", 0)
        self.text: str = carry.get("text", "nothing was read yet")

    def carry(self) -> Dict[str, Any]:
        """Return what the next slice needs, JSON-able."""
        return {
            "began": self.began,
            "since": self._since,
            "odd": [[*partition, at] for partition, at in sorted(self._odd.items())],
            "left": self._left,
            "copied": self._copied,
            "moved": self._moved,
            "text": self.text,
        }

    def see(
        self,
        now: float,
        targets: Mapping[Partition, Sequence[int] | None],
        replicas: Mapping[Partition, Sequence[int]],
        flying: Mapping[Partition, Mapping[str, Any]],
        seen: Dict[str, Any],
        note: str = "",
    ) -> Sight:
        """Take a reading. `targets`: the replicas that each partition must have (None: any); `replicas`: of all
        partitions; `flying`: those of the targets that are in flight; `seen`: their progress, completed here; `note`:
        what is still to be sent, in words."""
        copied = seen["bytes_copied"] or 0
        if self._left is None or seen["partitions_left"] != self._left:
            self._left, self._since = seen["partitions_left"], now  # others are copied now than before
        elif copied > self._copied:
            self._since = now
            self._moved += copied - self._copied
        self._copied = copied
        rate = self._moved / (now - self.began) if now > self.began else 0.0
        seen["bytes_per_s"] = round(rate)
        seen["eta_s"] = round(seen["bytes_left"] / rate) if seen["bytes_left"] is not None and rate > 0 else None
        odd = [
            partition
            for partition, target in targets.items()
            if target is not None and partition not in flying and list(target) != list(replicas.get(partition, ()))
        ]
        self._odd = {partition: self._odd.get(partition, now) for partition in sorted(odd)}
        final = [partition for partition, since in self._odd.items() if now - since >= SETTLE_S]
        gone = [partition for partition in final if partition not in replicas]
        elsewhere = [partition for partition in final if partition in replicas]
        self.text = _describe(seen, flying, gone, elsewhere) + (f"; {note}" if note else "")
        return Sight(not flying and len(final) == len(self._odd), gone, elsewhere)

    def sent(self, now: float) -> None:
        """Take note that more was sent, which is progress."""
        self._since = now

    def stalled(self, now: float, bound_s: float, error: str = "") -> str | None:
        """Return why the wait ends, with nothing that progressed for `bound_s`; None before. `error`: of the last
        reading."""
        if now - self._since < bound_s:
            return None
        return (
            f"for {now - self._since:.0f} s no partition ended and no bytes were copied: {_last(self.text, error)}. "
            "Check the brokers that are added, their disks, and the throttle; then run again, or cancel with state: "
            "cancelled, reassign_cancel of the playbook (QS-ADMIN-006)"
        )


def _last(text: str, error: str) -> str:
    return f"{text}; the last reading failed: {error}" if error else text


def _describe(
    seen: Mapping[str, Any], flying: Mapping[Partition, Any], gone: Sequence[Partition], elsewhere: Sequence[Partition]
) -> str:
    left = "" if seen["bytes_left"] is None else f", {seen['bytes_left']} bytes left at {seen['bytes_per_s']} bytes/s"
    eta = f", about {seen['eta_s']} s" if seen["eta_s"] is not None else ""
    listed = format_names(
        [f"{format_partition(partition)} adds {flying[partition]['adding']}" for partition in sorted(flying)]
    )
    text = f"{seen['partitions_left']} partitions left{left}{eta}" + (f" ({listed})" if flying else "")
    text += f"; no longer exist: {format_names(list(map(format_partition, gone)))}" if gone else ""
    return text + (f"; ended elsewhere: {format_names(list(map(format_partition, elsewhere)))}" if elsewhere else "")
