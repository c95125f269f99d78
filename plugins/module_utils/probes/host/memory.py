# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Read a host's memory and the heap of its Kafka. Runs on managed hosts: standard library only; read-only."""

from __future__ import annotations

import glob
import re

from ansible_collections.quorumshift.kafka.plugins.module_utils.formats import jvm_perf_data

_MEMINFO = re.compile(r"^(MemTotal|MemAvailable):\s+(\d+) kB", re.MULTILINE)
_OLD = "sun.gc.generation.1"
_COLLECTOR = "sun.gc.collector.1.name"


def read_host() -> dict:
    """Return {total_bytes, available_bytes} of this host, None for an unknown value (proc(5), /proc/meminfo)."""
    try:
        with open("/proc/meminfo", encoding="ascii") as stream:
            values = {name: int(number) * 1024 for name, number in _MEMINFO.findall(stream.read())}
    except OSError:
        values = {}
    return {"total_bytes": values.get("MemTotal"), "available_bytes": values.get("MemAvailable")}


def read_heap(pid: int) -> dict | None:
    """Return {collector, old_used_bytes, max_bytes} of a JVM: its old generation at or after the last collection, and
    the maximum size of the heap.

    Return None if no JVM runs or its counters cannot be read (-XX:+PerfDisableSharedMem, missing permission).
    """
    try:
        # A process has a pid in each pid namespace; the last one is that of its own namespace.
        with open(f"/proc/{pid}/status", encoding="ascii", errors="replace") as stream:
            numbers = next(line.split()[1:] for line in stream if line.startswith("NSpid:"))
        for path in glob.iglob(f"/proc/{pid}/root/tmp/hsperfdata_*/{numbers[-1]}"):
            with open(path, "rb") as stream:
                counters = jvm_perf_data.parse(stream.read())
            return {
                "collector": str(counters[_COLLECTOR]),
                "old_used_bytes": int(counters[f"{_OLD}.space.0.used"]),
                "max_bytes": int(counters[f"{_OLD}.maxCapacity"]),
            }
    except (OSError, StopIteration, KeyError, jvm_perf_data.PerfDataError):
        return None
    return None
