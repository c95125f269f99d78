# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The points at which runs are killed: just before and just after every record of their journals; pure.

A point is a side and an event as `of_event` writes it: `before gate after_copy`, `after restart kraft b2`.
"""

from __future__ import annotations

import itertools
from typing import Iterable, Mapping, Sequence

from tests.system.crash.procedures import Procedure

SIDES = ("before", "after")
OF_HOSTS = ("masked", "wiped")


def of_event(kind: str, name: str, fields: Mapping) -> str:
    """Return the text that identifies an event of the journal."""
    if kind == "restart" or name in OF_HOSTS:
        return f"{kind} {name} {fields['host']}"
    if name == "admitted":
        return f"admitted {fields['restart_kind']} {'+'.join(fields['hosts'])}"
    return f"{kind} {name}"


def expected(procedure: Procedure, brokers: Iterable[str], controllers: Iterable[str]) -> list[str]:
    """Return every point of a procedure whose batches contain one host each.

    A node's restart in a roll is recorded once: after a crash just before the record, the next run finds the restart
    done and records nothing. So each node of a roll gets one side, alternately.
    """
    brokers, controllers = sorted(brokers), sorted(controllers)
    rolls = [(roll, brokers) for roll in procedure.broker_rolls]
    rolls += [(roll, controllers) for roll in procedure.controller_rolls]
    events = [f"event {name}" for name in procedure.events]
    events += [f"phase {name}" for name in procedure.phases]
    events += [f"gate {name}" for name in procedure.gates]
    events += [f"admitted {roll} {host}" for roll, hosts in rolls for host in hosts]
    events += [f"{prefix} {host}" for prefix in procedure.repeated for host in controllers]
    points = [f"{side} {event}" for event in events for side in SIDES]
    once = [(f"restart {roll}", hosts) for roll, hosts in rolls]
    once += [(prefix, controllers) for prefix in procedure.once]
    for prefix, hosts in once:
        points += [f"{side} {prefix} {host}" for host, side in zip(hosts, itertools.cycle(SIDES))]
    return points


def missed(wanted: Iterable[str], hit: Iterable[str], journal: Iterable[Mapping], at_random: bool) -> list[str]:
    """Return the `wanted` points that were not hit.

    `at_random`: runs were also killed at random moments. Such a crash can suppress a record, for example of a restart
    that ended without a control process. So a point whose event no run recorded is not missed.
    """
    recorded = {of_event(event["kind"], event["name"], event) for event in journal}
    left = sorted(set(wanted) - set(hit))
    return [point for point in left if not at_random or point.partition(" ")[2] in recorded]


def most_down(events: Sequence[Mapping], hosts: Iterable[str]) -> int:
    """Return how many of `hosts` were down at the same time at most, by the recorder's events of their processes."""
    down: set[str] = set()
    most = 0
    hosts = set(hosts)
    for event in sorted(events, key=lambda event: event["t"]):
        if event.get("host") not in hosts:
            continue
        if event["kind"] in ("stopping", "stopped", "exited"):
            down.add(event["host"])
        elif event["kind"] == "started":
            down.discard(event["host"])
        most = max(most, len(down))
    return most


def starts(events: Iterable[Mapping], hosts: Iterable[str]) -> dict[str, list[float]]:
    """Return when each host's process was started, in epoch seconds."""
    events = [event for event in events if event["kind"] == "started"]
    return {host: [event["t"] for event in events if event["host"] == host] for host in sorted(hosts)}
