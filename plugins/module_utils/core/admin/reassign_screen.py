# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What is in flight, its throttles, and what a plan copies, as `reassign` and `status` show it. Pure."""

from __future__ import annotations

import time
from typing import Any, List, Mapping, Sequence

from ansible_collections.quorumshift.kafka.plugins.module_utils.core.text.advice import format_names
from ansible_collections.quorumshift.kafka.plugins.module_utils.core.text.sizes import format_bytes

_MOST_ROWS = 20


def render(found: Mapping[str, Any]) -> List[str]:
    """Return what partition_reassignment_info found, as lines."""
    moving = found["reassignments"]
    lines = [f"Reassignments of cluster {found['cluster_id']}: {_in_flight(len(moving), found['progress'])}"]
    rows = [["partition", "replicas", "adding", "removing"]]
    for each in moving[:_MOST_ROWS]:
        lists = (", ".join(map(str, each[key])) or "-" for key in ("replicas", "adding", "removing"))
        rows.append([f"{each['topic']}-{each['partition']}", *lists])
    if moving:
        widths = [max(len(row[column]) for row in rows) for column in range(4)]
        lines += ["  " + "  ".join(f"{cell:<{width}}" for cell, width in zip(row, widths)).rstrip() for row in rows]
    if len(moving) > _MOST_ROWS:
        lines.append(f"  and {len(moving) - _MOST_ROWS} more")
    lines.append(f"  throttles: {_throttles(found['throttles'])}{_owner(found['throttles_set_by'])}")
    lines += [f"  ! throttles could not be read: {text}" for text in found["throttles_unread"]]
    if found["throttles"] and not moving:
        lines.append(
            f"  ! nothing is in flight. If nothing needs the throttles, remove them: {found['throttles_remove']}"
        )
    if found["legacy"]:
        lines.append(f"  ! /admin/reassign_partitions exists in ZooKeeper: {found['legacy']}")
    return lines


def render_plan(found: Mapping[str, Any]) -> List[str]:
    """Return what a plan of partition_reassignment_info copies, as lines; none without a plan."""
    copies = found["copies"]
    if copies is None:
        return []
    size = "" if copies["bytes"] is None else f", {format_bytes(copies['bytes'])}"
    lines = [f"Plan: {copies['partitions']} partitions change, {copies['replicas']} replicas are copied{size}"]
    for row in copies["brokers"][:_MOST_ROWS]:
        gets = f"  broker {row['broker']} gets {row['replicas']} replicas"
        gets += "" if row["bytes"] is None else f", {format_bytes(row['bytes'])}"
        lines.append(gets + ("" if row["free"] is None else f", and has {format_bytes(row['free'])} free"))
    if len(copies["brokers"]) > _MOST_ROWS:
        lines.append(f"  and {len(copies['brokers']) - _MOST_ROWS} more brokers")
    lines += [f"  ! {text}" for text in copies["warnings"]]
    lines += [f"  ! sizes are not known: {text}" for text in found["unmeasured"]]
    return lines


def status_line(moving: int, seen: Mapping[str, Any], throttles: Sequence[Mapping[str, str]]) -> str:
    """Return the line of `status`. `throttles`: as partition_reassignment_info returns them."""
    return f"reassignments: {_in_flight(moving, seen)}; throttles: {_throttles(throttles)}"


def _in_flight(count: int, seen: Mapping[str, Any]) -> str:
    if not count:
        return "none in flight"
    left = "" if seen.get("bytes_left") is None else f", {format_bytes(seen['bytes_left'])} left"
    return f"{count} partitions in flight{left}"


def _throttles(listed: Sequence[Mapping[str, str]]) -> str:
    """Return rates by their value, and how many topics have throttled replicas."""
    if not listed:
        return "none"
    rates: dict = {}
    for each in listed:
        if each["key"].endswith(".rate"):
            rates.setdefault(each["value"], set()).add(each["resource"])
    topics = {each["resource"] for each in listed if not each["key"].endswith(".rate")}
    parts = [
        f"{f'{format_bytes(int(value))}/s' if value.isdigit() else value} at {format_names(sorted(names), 5)}"
        for value, names in sorted(rates.items())
    ]
    return ", ".join([*parts, f"replicas of {len(topics)} topics listed" if topics else "no replicas listed"])


def _owner(owner: Mapping[str, Any]) -> str:
    if not owner:
        return ""
    since = time.strftime("%Y-%m-%d %H:%M:%S UTC", time.gmtime(owner["at"]))
    run = f"run {owner['run']} of " if owner.get("run") else ""
    return f" (set by {run}{owner['user']} on {owner['host']}, {since})"
