# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Read the clock by which a host times its gate tokens. Runs on managed hosts: standard library only."""

from __future__ import annotations

import time

from ansible_collections.quorumshift.kafka.plugins.module_utils.facts import Clock

BOOT_ID = "/proc/sys/kernel/random/boot_id"


def read() -> Clock:
    """Return {boot_id, uptime_s} of this host, {error} where it has no such clock.

    CLOCK_BOOTTIME never steps, and counts the time of a suspended host, as CLOCK_MONOTONIC does not.
    """
    try:
        with open(BOOT_ID, encoding="ascii") as stream:
            boot_id = stream.read().strip()
        return {"boot_id": boot_id, "uptime_s": round(time.clock_gettime(time.CLOCK_BOOTTIME), 3)}
    except (OSError, ValueError, AttributeError) as error:
        return {"error": str(error)}
