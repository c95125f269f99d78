# Copyright: (c) 2026, Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What systemd does for a cut on this host: the worker, the deadline, and a fence before the server starts.

Standard library only.
"""

from __future__ import annotations

import contextlib
import os
import subprocess
from typing import List

from .. import safe_files
from ..core import ensemble_cut
from .rules import remove
from .state import FENCE, HEAL, CutError, state_of


def run(command: List[str]) -> None:
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    if done.returncode:
        raise CutError(f"{' '.join(command)} failed: {(done.stderr or done.stdout).strip()}")


def stop_unit(name: str) -> None:
    subprocess.run(["systemctl", "stop", name], stdin=subprocess.DEVNULL, capture_output=True, check=False)


def _drop_in_path(name: str) -> str:
    return os.path.join(
        "/etc/systemd/system", f"{name if '.' in name else name + '.service'}.d", "quorumshift-fence.conf"
    )


def add_drop_in(name: str, directory: str) -> None:
    """Have systemd fence before it starts the server, a start at boot included, while a promotion is under way."""
    path = _drop_in_path(name)
    os.makedirs(os.path.dirname(path), exist_ok=True)
    text = f"[Service]\nExecStartPre=+/bin/sh {os.path.join(directory, FENCE)}\n"
    safe_files.replace(path, text.encode(), 0o644)
    run(["systemctl", "daemon-reload"])


def remove_drop_in(name: str) -> None:
    path = _drop_in_path(name)
    if os.path.exists(path):
        os.unlink(path)
        with contextlib.suppress(OSError):
            os.rmdir(os.path.dirname(path))
        run(["systemctl", "daemon-reload"])


def heal_now(directory: str) -> None:
    """Undo cut and fence at once, unless the host was promoted. Raises CutError."""
    script = os.path.join(directory, HEAL)
    if os.path.exists(script):
        run(["/bin/sh", script])
    elif state_of(directory) not in (ensemble_cut.PROMOTING, ensemble_cut.PROMOTED):
        remove(ensemble_cut.CUT_COMMENT, ensemble_cut.FENCE_COMMENT)
