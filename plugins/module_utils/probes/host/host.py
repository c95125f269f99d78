# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Read what the tool needs of a managed host besides Kafka: its identity and its service manager.

Runs on managed hosts: standard library only; read-only.
"""

from __future__ import annotations

import os

from ansible_collections.quorumshift.kafka.plugins.module_utils.facts import Host
from ansible_collections.quorumshift.kafka.plugins.module_utils.host import service


def read() -> Host:
    """Return the facts of this host; None for what it does not have."""
    return {
        "system": os.uname().sysname,
        "machine_id": _line("/etc/machine-id"),
        "first_process": _line("/proc/1/comm"),
        "systemd": service.explain_no_systemd(),
    }


def _line(path: str) -> str | None:
    try:
        with open(path, encoding="utf-8", errors="replace") as stream:
            return stream.readline().strip() or None
    except OSError:
        return None
