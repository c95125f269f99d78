# Copyright: (c) 2026, Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Every record that the runs of a way write into their journals, and so every moment just before and just after; pure.

A point is written `before gate after_copy`, `after restart kraft b2`: a side, and what `of_event` says of an event.
"""

from __future__ import annotations

import itertools
from typing import Iterable, Mapping, Sequence

from tools.crash_tests.ways import Way

SIDES = ("before", "after")
OF_HOSTS = ("masked", "wiped")


def of_event(kind: str, name: str, fields: Mapping) -> str:
    """What identifies a journal's event on its way."""
    if kind == "restart" or name in OF_HOSTS:
        return f"{kind} {name} {fields['host']}"
    if name == "admitted":
        return f"admitted {fields['mode']} {'+'.join(fields['hosts'])}"
    return f"{kind} {name}"


def expected(way: Way, brokers: Iterable[str], controllers: Iterable[str]) -> list[str]:
    """Every point of a way whose batches hold one host each.

    A node's restart in a roll is recorded once: killed just before that, the next run finds the turn done and has
    nothing to record. So it is one side for each node, in turns, and both sides for each roll.
    """
    brokers, controllers = sorted(brokers), sorted(controllers)
    rolls = [(roll, brokers) for roll in way.broker_rolls] + [(roll, controllers) for roll in way.controller_rolls]
    events = [f"event {name}" for name in way.events]
    events += [f"phase {name}" for name in way.phases]
    events += [f"gate {name}" for name in way.gates]
    events += [f"admitted {roll} {host}" for roll, hosts in rolls for host in hosts]
    events += [f"{begin} {host}" for begin in way.again for host in controllers]
    points = [f"{side} {event}" for event in events for side in SIDES]
    once = [(f"restart {roll}", hosts) for roll, hosts in rolls] + [(begin, controllers) for begin in way.once]
    for begin, hosts in once:
        points += [f"{side} {begin} {host}" for host, side in zip(hosts, itertools.cycle(SIDES))]
    return points


def missed(wanted: Iterable[str], hit: Iterable[str], journal: Iterable[Mapping], at_random: bool) -> list[str]:
    """Those of the `wanted` points that were passed and not hit.

    `at_random`: runs were killed at random moments as well. These can take a record away, as that of a restart which
    ended while nobody waited for it: a point whose event no run recorded was then not passed.
    """
    recorded = {of_event(event["kind"], event["name"], event) for event in journal}
    left = sorted(set(wanted) - set(hit))
    return [point for point in left if not at_random or point.partition(" ")[2] in recorded]


def most_down(events: Sequence[Mapping], hosts: Iterable[str]) -> int:
    """How many of `hosts` were down at once at most, by what the recorder saw of their processes."""
    down: set[str] = set()
    most = 0
    hosts = set(hosts)
    for event in sorted(events, key=lambda one: one["t"]):
        if event.get("host") not in hosts:
            continue
        if event["kind"] in ("stopping", "stopped", "exited"):
            down.add(event["host"])
        elif event["kind"] == "started":
            down.discard(event["host"])
        most = max(most, len(down))
    return most


def starts(events: Iterable[Mapping], hosts: Iterable[str]) -> dict[str, list[float]]:
    """When each host's process was started while it was watched, in epoch seconds."""
    events = [event for event in events if event["kind"] == "started"]
    return {host: [event["t"] for event in events if event["host"] == host] for host in sorted(hosts)}
