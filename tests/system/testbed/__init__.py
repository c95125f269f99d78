# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Systemd hosts with a ZooKeeper-mode Kafka cluster, for tests on real systems: `python -m tests.system.testbed`."""

from __future__ import annotations

import subprocess
import sys

from tests.system.testbed.layout import ROOT


def manage(command: str, limit_s: float | None = None) -> None:
    """Run a command of the testbed (up, reset, status). Raise subprocess.SubprocessError."""
    argv = [sys.executable, "-m", "tests.system.testbed", command]
    subprocess.run(argv, cwd=ROOT, stdin=subprocess.DEVNULL, check=True, timeout=limit_s)
