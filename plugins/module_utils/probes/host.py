# Copyright: (c) 2026, Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Read what the tool needs of a managed host besides Kafka: its identity, its service manager, its clock.

Runs on managed hosts: standard library only; read-only.
"""

from __future__ import annotations

import os
import time

from ..facts import Host
from . import service

_BOOT_ID = "/proc/sys/kernel/random/boot_id"


def read() -> Host:
    """Return the facts of this host; None for what it does not have."""
    return {
        "system": os.uname().sysname,
        "machine_id": _line("/etc/machine-id"),
        "boot_id": _line(_BOOT_ID),
        "first_process": _line("/proc/1/comm"),
        "boot_clock": hasattr(time, "CLOCK_BOOTTIME"),
        "systemd": service.systemd_error(),
    }


def _line(path: str) -> str | None:
    try:
        with open(path, encoding="utf-8", errors="replace") as stream:
            return stream.readline().strip() or None
    except OSError:
        return None
