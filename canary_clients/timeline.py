# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The series that the picture draws, by time bucket; pure."""

from __future__ import annotations

from array import array
from dataclasses import dataclass

from canary_clients.ledger import Recording

COLUMNS_AT_MOST = 900


@dataclass
class Timeline:
    """Per bucket of `bucket_ms`: messages acknowledged and received per second, latency (ms) from sending to receiving.

    A latency belongs to the bucket in which its message was sent; None if no message of the bucket was received. The
    timeline ends with the traffic, before the audit.
    """

    bucket_ms: int
    end_ms: int
    acked: list[float]
    received: list[float]
    latency_p50: list[int | None]
    latency_max: list[int | None]


def build(recording: Recording) -> Timeline:
    measured = [recording.received[name] for name, group in recording.meta["groups"].items() if group["measured"]]
    end = max([1, *recording.sent_time[-1:], recording.acked.last_time(), *(rows.last_time() for rows in measured)])
    bucket = 1000 * max(1, -(-end // (1000 * COLUMNS_AT_MOST)))
    # rows may be slightly out of the order of time
    count = end // bucket + 2
    sent = len(recording.sent_time)
    acked, received = [0] * count, [0] * count
    latencies = [array("I") for dummy in range(count)]
    last = count - 1
    for row in recording.acked:
        acked[min(row[1] // bucket, last)] += 1
    seen = bytearray(sent)
    sent_time = recording.sent_time
    for rows in measured:
        for ledger_id, at, _position in rows:
            if ledger_id >= sent or seen[ledger_id]:
                continue
            seen[ledger_id] = 1
            received[min(at // bucket, last)] += 1
            sent_at = sent_time[ledger_id]
            latencies[min(sent_at // bucket, last)].append(at - sent_at)
    p50: list[int | None] = []
    worst: list[int | None] = []
    for values in latencies:
        ordered = sorted(values)
        p50.append(ordered[len(ordered) // 2] if ordered else None)
        worst.append(ordered[-1] if ordered else None)
    seconds = bucket / 1000
    return Timeline(bucket, end, [n / seconds for n in acked], [n / seconds for n in received], p50, worst)
