# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Checks of the nodes' services, limits and memory."""

from __future__ import annotations

import re
import shlex
from typing import Iterable

from ansible_collections.quorumshift.kafka.plugins.module_utils.core.preflight.check_facts import (
    Facts,
    group_by_value,
    partitions_of,
)
from ansible_collections.quorumshift.kafka.plugins.module_utils.core.text.advice import Finding, format_names

# A stop moves leaders away, then flushes and closes all logs. The estimate gives 180 s, as in Confluent's unit, for
# 4000 partitions, the usual limit of one broker.
STOP_S, STOP_S_PER_PARTITION = 60, 0.03
# The last controller waits 5 s for the others to take over (KafkaRaftClient's graceful shutdown).
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


def platform(facts: Facts) -> Iterable[Finding]:
    """Yield the hosts without what restarts and gate tokens need: Linux with systemd, /proc and a clock since boot."""
    hosts = {name: node["host"] for name, node in facts.cluster["nodes"].items() if node.get("host")}
    for names, (system, manager, error) in group_by_value(
        {name: (host["system"], host["first_process"], host["systemd"]) for name, host in hosts.items()}
    ).items():
        if system != "Linux":
            yield Finding(
                f"{format_names(names)} runs {system}",
                "use hosts with Linux and systemd: the tool supports no other system",
            )
        elif error:
            yield Finding(
                f"systemd cannot be used on {format_names(names)}: {error} (process 1 is {manager or 'not visible'})",
                "use hosts on which systemd runs Kafka, and log in as root or with become. The tool supports no other "
                "service manager, such as SysV init, OpenRC, runit or supervisord: it masks services and starts its "
                "restart worker as a unit",
            )
    clocks = {name: (facts.cluster["nodes"][name].get("clock") or {}).get("error") for name in hosts}
    for names, error in group_by_value(clocks).items():
        if error and hosts[names[0]]["system"] == "Linux":
            yield Finding(
                f"{format_names(names)} cannot time a gate token: {error}",
                "mount /proc on these hosts, let the login read it, and use a Python with this clock: "
                "`python3 -c 'import time; print(time.clock_gettime(time.CLOCK_BOOTTIME))'` shows it",
            )


def config_files(facts: Facts) -> Iterable[Finding]:
    """Yield the services that read, or will read, another file than the tool edits."""
    for host, node in sorted(facts.cluster["nodes"].items()):
        edited, service = (node.get("file") or {}).get("path"), node.get("service") or {}
        running, next_start = node.get("runs_with"), node.get("starts_with")
        variable = f"quorumshift_{node['role']}_config_file"
        if running and not running["same"]:
            yield Finding(
                f"{service['name']} of {host} runs with {running['path']}, {variable} is {edited}",
                f"set {variable} to {running['path']} for {host}, or start the service with {edited}",
            )
        elif next_start and not next_start["same"]:
            yield Finding(
                f"{service['name']} of {host} will start with {next_start['path']}, {variable} is {edited}",
                f"correct the variable or the unit: systemctl cat {shlex.quote(service['name'])}",
            )
        if running and running["overrides"]:
            yield Finding(
                f"{service['name']} of {host} runs with --override {', '.join(running['overrides'])}",
                "move these settings into the properties file: the command line overrides the file",
            )


def limits(facts: Facts) -> Iterable[Finding]:
    """Yield the brokers near their limit of open files or memory maps: each log segment has three files open and two
    mapped (kafka.log.LocalLog, OffsetIndex, TimeIndex)."""
    for host, node in sorted(facts.brokers.items()):
        for what, (used, most) in sorted((node.get("limits") or {}).items()):
            if used > NEAR * most:
                name = (node.get("service") or {}).get("name")
                yield Finding(
                    f"{name} of {host} has {used} {what.replace('_', ' ')} of at most {most}",
                    f"raise {_RAISE[what]} before the migration: after a restart the broker opens all files again, and "
                    "all clients reconnect at once",
                )


def memory(facts: Facts) -> Iterable[Finding]:
    """Yield the controllers' hosts with too little memory, and the brokers whose heap is nearly full.

    G1 starts to collect the old generation at 35 % of the heap (kafka-run-class.sh); a heap far above cannot be freed.
    Other collectors let the old generation fill up first, so their heaps are not checked.
    """
    for host, node in sorted(facts.controllers.items()):
        sizes = node.get("memory") or {}
        total, available = sizes.get("total_bytes"), sizes.get("available_bytes")
        if total and total < CONTROLLER_MEMORY:
            yield Finding(
                f"{host} has {total // MIB} MiB of memory, Kafka advises {CONTROLLER_MEMORY // MIB} MiB",
                "use a host with more memory: a controller holds all metadata in memory",
            )
        elif available is not None and available < CONTROLLER_HEAP and not (node.get("service") or {}).get("active"):
            yield Finding(
                f"{host} has {available // MIB} MiB of memory available, a controller's default heap is "
                f"{CONTROLLER_HEAP // MIB} MiB",
                "free memory, use a host with more, or set a smaller heap in KAFKA_HEAP_OPTS: the kernel kills a "
                "process that does not fit",
            )
    for host, node in sorted(facts.brokers.items()):
        heap = (node.get("memory") or {}).get("heap")
        if heap and heap["collector"].startswith("G1") and heap["old_used_bytes"] > NEAR * heap["max_bytes"]:
            yield Finding(
                f"the heap of {host} is nearly full: the old generation uses {heap['old_used_bytes'] // MIB} of "
                f"{heap['max_bytes'] // MIB} MiB",
                "raise -Xmx in KAFKA_HEAP_OPTS before the migration: in migration mode a broker holds the cluster's "
                "metadata twice",
            )


def stop_timeouts(facts: Facts) -> Iterable[Finding]:
    """Yield the services that systemd kills before their stop is complete, or after the restart stops waiting."""
    limits = {}
    for host, node in facts.cluster["nodes"].items():
        service = node.get("service") or {}
        limit = timespan_s(service.get("timeout_stop", ""))
        if limit is not None:
            limits[host] = (service["name"], limit)
    for hosts, (name, limit) in group_by_value(limits).items():
        partitions = max(partitions_of(facts.cluster["nodes"][host]) for host in hosts)
        needed = round(STOP_S + STOP_S_PER_PARTITION * partitions) if partitions else CONTROLLER_STOP_S
        if limit < needed:
            yield Finding(
                f"systemd kills {name} of {format_names(hosts)} {limit:g} s after a stop request; a stop with "
                f"{partitions} partitions can take {needed} s",
                f"set TimeoutStopSec={max(needed, 180)} in a drop-in (systemctl edit {shlex.quote(name)}): a killed "
                "broker recovers its logs for a long time, and its registration stays in ZooKeeper",
            )
        elif facts.stop_timeout_s and facts.stop_timeout_s < limit < float("inf"):
            yield Finding(
                f"systemd gives {name} of {format_names(hosts)} {limit:g} s to stop, quorumshift_stop_timeout_s is "
                f"{facts.stop_timeout_s:g}",
                f"set quorumshift_stop_timeout_s to {limit:g}: otherwise the restart fails before systemd kills the "
                "process",
            )


def restarts(facts: Facts) -> Iterable[Finding]:
    """Yield the services that systemd starts again when they fail: a failed start is then seen only after a timeout.

    After `systemctl stop` no value of Restart= starts a service again (systemd.service(5)).
    """
    again = {
        host: (node["service"]["name"], node["service"]["restart"])
        for host, node in facts.cluster["nodes"].items()
        if (node.get("service") or {}).get("restart") in ("always", "on-failure")
    }
    for hosts, (name, value) in group_by_value(again).items():
        yield Finding(
            f"{name} of {format_names(hosts)} has Restart={value}",
            f"set Restart=no in a drop-in for the migration (systemctl edit {shlex.quote(name)}). Otherwise "
            "systemd repeats a failed start, and the rolling restart stops only after quorumshift_start_timeout_s",
        )


def enabled(facts: Facts) -> Iterable[Finding]:
    """Yield the services that do not start after a reboot."""
    off = {
        host: node["service"]["name"]
        for host, node in facts.cluster["nodes"].items()
        if (node.get("service") or {}).get("unit_file_state") == "disabled"
    }
    for hosts, name in group_by_value(off).items():
        yield Finding(
            f"{name} of {format_names(hosts)} is not enabled: after a reboot it stays down",
            f"enable it, unless something else starts it: systemctl enable {shlex.quote(name)}",
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
    """Return the seconds of a time span as systemd prints it (`1min 30s`, `infinity`); None if it is not one."""
    if text == "infinity":
        return float("inf")
    parts = re.findall(r"([\d.]+)([a-z]+)", text)
    if not parts or any(unit not in _UNITS for _number, unit in parts):
        return None
    return sum(float(number) * _UNITS[unit] for number, unit in parts)
