# Copyright: (c) 2026, Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A host's memory, and how full the heap of its Kafka is.

Runs on managed hosts: standard library only. Reads; never changes anything.
"""

from __future__ import annotations

import glob
import re

from ..formats import jvm_perf_data

_MEMINFO = re.compile(r"^(MemTotal|MemAvailable):\s+(\d+) kB", re.MULTILINE)
_OLD = "sun.gc.generation.1"
_COLLECTOR = "sun.gc.collector.1.name"


def host() -> dict:
    """Return {total_bytes, available_bytes} of this host (proc(5), /proc/meminfo); None for what is not told there."""
    try:
        with open("/proc/meminfo", encoding="ascii") as stream:
            reported = {name: int(number) * 1024 for name, number in _MEMINFO.findall(stream.read())}
    except OSError:
        reported = {}
    return {"total_bytes": reported.get("MemTotal"), "available_bytes": reported.get("MemAvailable")}


def heap(pid: int) -> dict | None:
    """Return {collector, old_used_bytes, max_bytes} of a JVM: its old generation as the last collection left it or
    later, and the most that the heap may have. None where nothing runs, or where the JVM keeps no counters for others
    (-XX:+PerfDisableSharedMem), or not where they may be seen."""
    try:
        # A process has a number of its own in each pid namespace; the last one is that by which it knows itself.
        with open(f"/proc/{pid}/status", encoding="ascii", errors="replace") as stream:
            numbers = next(line.split()[1:] for line in stream if line.startswith("NSpid:"))
        for path in glob.iglob(f"/proc/{pid}/root/tmp/hsperfdata_*/{numbers[-1]}"):
            with open(path, "rb") as stream:
                reported = jvm_perf_data.parse(stream.read())
            return {
                "collector": str(reported[_COLLECTOR]),
                "old_used_bytes": int(reported[f"{_OLD}.space.0.used"]),
                "max_bytes": int(reported[f"{_OLD}.maxCapacity"]),
            }
    except (OSError, StopIteration, KeyError, jvm_perf_data.PerfDataError):
        return None
    return None
