# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Find other Pythons on this host."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path


def find_python(version: str) -> str | None:
    """Return the path of a working Python ``version`` ("3.8") from PATH or pyenv's versions, or None."""
    candidates = [shutil.which(f"python{version}")]
    candidates += sorted(map(str, Path.home().glob(f".pyenv/versions/{version}.*/bin/python")), reverse=True)
    for candidate in filter(None, candidates):
        # pyenv's shims on PATH fail unless their version is selected
        done = subprocess.run(
            [candidate, "-c", "import sys; print('%d.%d %s' % (*sys.version_info[:2], sys.executable))"],
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            check=False,
        )
        found, _space, path = done.stdout.strip().partition(" ")
        if done.returncode == 0 and found == version:
            return path
    return None
