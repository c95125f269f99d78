# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A verdict as text."""

from __future__ import annotations

from datetime import datetime, timezone
from typing import Any

SLOW_MS = 500  # a message that waited less is not shown
WAITED = {"producer": "sending to the acknowledgement", "consumer": "the acknowledgement to receiving"}


def text(result: dict[str, Any]) -> str:
    """Return the verdict as a few lines of text."""
    lines = [f"verdict: {result['verdict'].upper()}"]
    lines += [f"  ! {reason}" for reason in result["reasons"]]
    run = result["run"]
    lines.append(
        f"  {result['acked']:,} acknowledged, {result['received']:,} received in {run['seconds']:,.0f} s"
        f" ({run['acked_per_second']:,.0f}/s)"
    )
    lines.append(
        f"  lost {result['lost']}, duplicated {result['duplicated']}, reordered {result['reordered']}, "
        f"aborted but visible {result['aborted_visible']} of {result['aborted']}; "
        f"indeterminate {result['indeterminate']}, redelivered {result['redelivered']}"
        + (f", outstanding {result['outstanding']}" if result["outstanding"] else "")
        + (f", expired before the audit {result['expired']}" if result["expired"] else "")
    )
    stall, ack, total = result["max_stall_ms"], result["latency_ms"]["ack"], result["latency_ms"]["end_to_end"]
    lines.append(
        f"  longest stall: producer {stall['producer']} ms, consumer {stall['consumer']} ms; acknowledged after "
        f"p50 {ack['p50']} p99 {ack['p99']} max {ack['max']} ms; received after "
        f"p50 {total['p50']} p99 {total['p99']} max {total['max']} ms"
    )
    if len(result["by_phase"]) > 1:
        width = max(len(name) for name in result["by_phase"])
        lines.append(
            f"  {'phase':<{width}}  {'acked':>9} {'lost':>5} {'dup':>5} {'order':>5} "
            f"{'prod stall':>10} {'cons stall':>10} {'p99':>7} {'errors':>6}"
        )
        for name, count in result["by_phase"].items():
            lines.append(
                f"  {name:<{width}}  {count['acked']:>9,} {count['lost']:>5} {count['duplicated']:>5} "
                f"{count['reordered']:>5} {count['max_producer_stall_ms']:>7} ms "
                f"{count['max_consumer_stall_ms']:>7} ms {count['p99_latency_ms']:>4} ms {count['errors']:>6}"
            )
    operations = result["admin"]["operations"]
    if operations:
        done = ", ".join(
            f"{name} {line['ok']}" + (f" ({line['retries']} retries)" if line["retries"] else "")
            for name, line in operations.items()
            if line["ok"]
        )
        final = result["admin"]["final"] or {}
        lines.append(
            f"  admin changes: {done or 'none'}; slowest {max(line['max_ms'] for line in operations.values())} ms"
        )
        for name, error in final.get("skipped", {}).items():
            lines.append(f"    {name} skipped: {error}")
        for name in final.get("late", []):
            lines.append(f"    {name} was deleted, then created again by an earlier request that had got no answer")
    for side, waited in (
        ("producer", "sending to the acknowledgement"),
        ("consumer", "the acknowledgement to receiving"),
    ):
        slowest = [message for message in result["slowest"][side] if message["ms"] >= SLOW_MS]
        if slowest:
            longest = ", ".join(f"{client} {ms} ms" for client, ms in sorted(result["longest_wait_ms"][side].items()))
            lines.append(f"  slowest messages, from {waited} ({longest}):")
            lines += [_slow(message) for message in slowest]
    for error in result["app_errors"][:8]:
        lines.append(
            f"  error in {error['phase']}: {error['where']}: {error['code']} {error['text']} (x{error['count']})"
        )
    return "\n".join(lines)


def _slow(message: dict[str, Any]) -> str:
    time = datetime.fromtimestamp(message["t"], timezone.utc)
    partition = f"{message['topic']}[{message['partition']}]"
    outcome = "" if message["outcome"] in ("acknowledged", "received") else f", {message['outcome']}"
    step = f", {message['step']}" if message["step"] else ""
    return (
        f"    {message['ms']:>7} ms  {time:%H:%M:%S}.{time.microsecond // 1000:03d} UTC  {partition}  "
        f"{message['client']}{outcome}  {message['phase']}{step}"
    )
