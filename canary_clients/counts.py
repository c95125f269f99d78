# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The counts of a verdict: by phase, by latency, and examples of damage."""

from __future__ import annotations

from array import array
from dataclasses import dataclass, field
from typing import Any

# longer latencies share one bucket, whose value is the maximum
HISTOGRAM_MS = 60_000


@dataclass
class PhaseCount:
    acked: int = 0
    received: int = 0
    lost: int = 0
    duplicated: int = 0
    reordered: int = 0
    aborted_visible: int = 0
    max_producer_stall_ms: int = 0
    max_consumer_stall_ms: int = 0
    errors: int = 0


@dataclass
class Examples:
    """The first few messages of each kind of damage, to find them in the log."""

    lost: list[dict[str, Any]] = field(default_factory=list)
    duplicated: list[dict[str, Any]] = field(default_factory=list)
    reordered: list[dict[str, Any]] = field(default_factory=list)
    aborted_visible: list[dict[str, Any]] = field(default_factory=list)


class Histogram:
    """Counts by millisecond; percentiles are exact below HISTOGRAM_MS."""

    def __init__(self) -> None:
        self.counts = array("L", bytes(array("L").itemsize * (HISTOGRAM_MS + 1)))
        self.max = 0

    def add_all(self, other: Histogram) -> None:
        self.counts = array("L", map(int.__add__, self.counts, other.counts))
        self.max = max(self.max, other.max)

    def percentile(self, share: float) -> int:
        total = sum(self.counts)
        rank, seen = max(1, round(total * share)), 0
        for ms, count in enumerate(self.counts):
            seen += count
            if seen >= rank and count:
                return self.max if ms == HISTOGRAM_MS else ms
        return 0

    def summary(self) -> dict[str, int]:
        return {"p50": self.percentile(0.5), "p99": self.percentile(0.99), "max": self.max}


class Slowest:
    """The messages that waited longest, and the longest wait by client.

    One message is listed for those of its client and partition that began to wait within the same second.
    """

    def __init__(self, count: int) -> None:
        self.count = count
        self.by_client: dict[str, int] = {}
        self.least = 0  # a wait that is not longer cannot be among the slowest
        self._worst: dict[tuple[str, int, int], tuple[int, int, int, str, str]] = {}

    def add(self, ledger_id: int, partition: int, start: int, ms: int, client: str, outcome: str) -> None:
        if ms > self.by_client.get(client, -1):
            self.by_client[client] = ms
        key = (client, partition, start // 1000)
        if key in self._worst and self._worst[key][0] >= ms:
            return
        self._worst[key] = (ms, -ledger_id, start, client, outcome)
        if len(self._worst) > 20 * self.count:
            kept = sorted(self._worst.items(), key=lambda item: item[1], reverse=True)[: self.count]
            self._worst = dict(kept)
            self.least = kept[-1][1][0]

    def listed(self) -> list[tuple[int, int, int, str, str]]:
        """Return (ledger id, start, ms, client, outcome) of each, the slowest first."""
        ordered = sorted(self._worst.values(), reverse=True)[: self.count]
        return [(-negative, start, ms, client, outcome) for ms, negative, start, client, outcome in ordered]
