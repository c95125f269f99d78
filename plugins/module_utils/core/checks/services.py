# Copyright: (c) 2026, Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Hazards: service managers that do not do what a roll needs of them."""

from __future__ import annotations

import re
from typing import Iterable

from ..advice import shown
from .facts import Facts, Finding, by_text, partitions_of

# What a stop takes beyond moving leaders away grows with the logs to be flushed and closed. An estimate: 180 s, which
# Confluent's unit gives, for 4000 partitions, commonly advised as the most for one broker.
STOP_S, STOP_S_PER_PARTITION = 60, 0.03
# The last one that is stopped waits 5 s for the others to take over (KafkaRaftClient's graceful shutdown).
CONTROLLER_STOP_S = 10
NEAR = 0.8  # of a limit
MIB = 1 << 20
# Kafka's documentation: Operations, KRaft, Deploying Considerations
CONTROLLER_MEMORY = 5 * 1000**3
CONTROLLER_HEAP = 1024 * MIB  # kafka-server-start.sh
_RAISE = {
    "open_files": "LimitNOFILE= in a drop-in of its unit (systemctl edit)",
    "memory_maps": "vm.max_map_count (sysctl)",
}


def config_files(facts: Facts) -> Iterable[Finding]:
    """What the tool edits is what the service reads: running, and at its next start."""
    for host, node in sorted(facts.cluster["nodes"].items()):
        edited, service = (node.get("file") or {}).get("path"), node.get("service") or {}
        running, named = node.get("runs_with"), node.get("starts_with")
        variable = f"quorumshift_{node['role']}_config_file"
        if running and not running["same"]:
            yield Finding(
                f"{service['name']} of {host} runs with {running['path']}, {variable} is {edited}",
                f"set {variable} to {running['path']} for {host}, or start the service with {edited}",
            )
        elif named and not named["same"]:
            yield Finding(
                f"{service['name']} of {host} will start with {named['path']}, {variable} is {edited}",
                f"correct the one that is wrong. `systemctl cat {service['name']}` shows the unit and its drop-ins",
            )
        if running and running["overrides"]:
            yield Finding(
                f"{service['name']} of {host} runs with --override {', '.join(running['overrides'])}",
                "move these settings into the properties file: on the command line they win over what the tool writes",
            )


def limits(facts: Facts) -> Iterable[Finding]:
    """A broker is far from the number of files and of memory maps that it may have: of each log segment it has three
    files open and two mapped (kafka.log.LocalLog, OffsetIndex, TimeIndex)."""
    for host, node in sorted(facts.brokers.items()):
        for what, (used, most) in sorted((node.get("limits") or {}).items()):
            if used > NEAR * most:
                name = (node.get("service") or {}).get("name")
                yield Finding(
                    f"{name} of {host} has {used} {what.replace('_', ' ')} of at most {most}",
                    f"raise {_RAISE[what]} before the roll: after its restart a broker has all of them again, and the "
                    "connections of all its clients come at once",
                )


def memory(facts: Facts) -> Iterable[Finding]:
    """Controllers' hosts have the memory that Kafka advises, and room for a heap; brokers' heaps are not nearly full.

    G1 begins to collect the old generation at 35 % of the heap (kafka-run-class.sh); one that stays far above cannot.
    Other collectors let it fill up before they begin.
    """
    for host, node in sorted(facts.controllers.items()):
        reported = node.get("memory") or {}
        total, available = reported.get("total_bytes"), reported.get("available_bytes")
        if total and total < CONTROLLER_MEMORY:
            yield Finding(
                f"{host} has {total // MIB} MiB of memory, Kafka advises {CONTROLLER_MEMORY // MIB} for controllers",
                "give it more: a controller holds all metadata in memory",
            )
        elif available is not None and available < CONTROLLER_HEAP and not (node.get("service") or {}).get("active"):
            yield Finding(
                f"{host} has {available // MIB} MiB of memory left, and a controller's heap is "
                f"{CONTROLLER_HEAP // MIB} MiB where KAFKA_HEAP_OPTS does not say otherwise",
                "make room, or give it a host with more: the kernel ends what does not fit",
            )
    for host, node in sorted(facts.brokers.items()):
        heap = (node.get("memory") or {}).get("heap")
        if heap and heap["collector"].startswith("G1") and heap["old_used_bytes"] > NEAR * heap["max_bytes"]:
            yield Finding(
                f"the heap of {host} is nearly full: {heap['old_used_bytes'] // MIB} of {heap['max_bytes'] // MIB} MiB "
                "hold what is old",
                "raise -Xmx in KAFKA_HEAP_OPTS before the roll: a broker that restarts has all of it again, and in "
                "migration mode the cluster's metadata twice",
            )


def stop_timeouts(facts: Facts) -> Iterable[Finding]:
    """A stop has the time that it needs before systemd kills the process, and the turn waits for as long."""
    limits = {}
    for host, node in facts.cluster["nodes"].items():
        service = node.get("service") or {}
        limit = timespan_s(service.get("timeout_stop", ""))
        if limit is not None:
            limits[host] = (service["name"], limit)
    for hosts, (name, limit) in by_text(limits).items():
        partitions = max(partitions_of(facts.cluster["nodes"][host]) for host in hosts)
        needed = round(STOP_S + STOP_S_PER_PARTITION * partitions) if partitions else CONTROLLER_STOP_S
        if limit < needed:
            yield Finding(
                f"systemd kills {name} of {shown(hosts)} {limit:g} s after it was told to stop; with {partitions} "
                f"partitions that may take {needed} s",
                f"set TimeoutStopSec={max(needed, 180)} in a drop-in (systemctl edit {name}): a broker that is killed "
                "recovers its logs for long, and leaves its registration in ZooKeeper",
            )
        elif facts.stop_timeout_s and facts.stop_timeout_s < limit < float("inf"):
            yield Finding(
                f"systemd gives {name} of {shown(hosts)} {limit:g} s to stop, quorumshift_stop_timeout_s is "
                f"{facts.stop_timeout_s:g}",
                f"set quorumshift_stop_timeout_s to {limit:g}: a turn would give up before systemd does",
            )


def restarts(facts: Facts) -> Iterable[Finding]:
    """systemd does not start a node again that cannot start: the turn is to see at once that it ended.

    After `systemctl stop` no value of Restart= starts a service again (systemd.service(5)).
    """
    again = {
        host: (node["service"]["name"], node["service"]["restart"])
        for host, node in facts.cluster["nodes"].items()
        if (node.get("service") or {}).get("restart") in ("always", "on-failure")
    }
    for hosts, (name, value) in by_text(again).items():
        yield Finding(
            f"{name} of {shown(hosts)} has Restart={value}",
            "know that systemd then starts a node which cannot start again and again, so that the roll may stop only "
            "after quorumshift_start_timeout_s. With Restart=no in a drop-in, for the migration, it stops at once",
        )


def enabled(facts: Facts) -> Iterable[Finding]:
    """A host that is rebooted in mid-migration comes back."""
    off = {
        host: node["service"]["name"]
        for host, node in facts.cluster["nodes"].items()
        if (node.get("service") or {}).get("unit_file_state") == "disabled"
    }
    for hosts, name in by_text(off).items():
        yield Finding(
            f"{name} of {shown(hosts)} is not enabled: after a reboot it stays down",
            f"unless something else starts it, enable it: systemctl enable {name}",
        )


_UNITS = {
    "us": 1e-6,
    "ms": 1e-3,
    "s": 1,
    "min": 60,
    "h": 3600,
    "d": 86400,
    "w": 604800,
    "month": 2629800,
    "y": 31557600,
}


def timespan_s(text: str) -> float | None:
    """Return a time span as systemd prints it (`1min 30s`, `infinity`) in seconds; None when it is none."""
    if text == "infinity":
        return float("inf")
    parts = re.findall(r"([\d.]+)([a-z]+)", text)
    if not parts or any(unit not in _UNITS for _number, unit in parts):
        return None
    return sum(float(number) * _UNITS[unit] for number, unit in parts)
