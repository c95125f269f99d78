# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What systemd does for a cut on this host: the deadline, and a fence before the server starts.

Standard library only.
"""

from __future__ import annotations

import contextlib
import os
import subprocess
from typing import List

from ansible_collections.quorumshift.kafka.plugins.module_utils.core.ensemble import ensemble_cut
from ansible_collections.quorumshift.kafka.plugins.module_utils.core.ensemble.cut_host import CutError
from ansible_collections.quorumshift.kafka.plugins.module_utils.core.text import systemd
from ansible_collections.quorumshift.kafka.plugins.module_utils.ensemble.state import FENCE
from ansible_collections.quorumshift.kafka.plugins.module_utils.files import safe_files


def run(command: List[str]) -> None:
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    if done.returncode:
        raise CutError(f"{' '.join(command)} failed: {(done.stderr or done.stdout).strip()} (QS-RESTART-016)")


def stop_unit(name: str) -> None:
    subprocess.run(["systemctl", "stop", name], stdin=subprocess.DEVNULL, capture_output=True, check=False)


def add_drop_in(name: str, directory: str) -> None:
    """Have systemd fence before it starts the server, a start at boot included, while a promotion is under way."""
    path = ensemble_cut.drop_in(name)
    os.makedirs(os.path.dirname(path), exist_ok=True)
    text = f"[Service]\nExecStartPre=+/bin/sh {systemd.argument(os.path.join(directory, FENCE))}\n"
    safe_files.replace(path, text.encode(), 0o644)
    run(["systemctl", "daemon-reload"])


def remove_drop_in(name: str) -> None:
    path = ensemble_cut.drop_in(name)
    if os.path.exists(path):
        os.unlink(path)
        with contextlib.suppress(OSError):
            os.rmdir(os.path.dirname(path))
        run(["systemctl", "daemon-reload"])


def arm(script: str, seconds: float) -> None:
    """Have systemd run a script after some seconds, whatever happens to this process. Raises CutError."""
    unit, after = f"--unit={ensemble_cut.UNIT}-deadline", f"--on-active={seconds:.1f}s"
    stop_unit(f"{ensemble_cut.UNIT}-deadline.timer")
    run(["systemd-run", "--quiet", "--collect", unit, after, "--timer-property=AccuracySec=50ms", "/bin/sh", script])


def disarm() -> None:
    stop_unit(f"{ensemble_cut.UNIT}-deadline.timer")
