# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Run a command on every shell script of the checkout: ``python -m tools.shell_files COMMAND...``."""

from __future__ import annotations

import re
import subprocess
import sys

from tools.checkout import ROOT, checkout_files

SHEBANG = re.compile(rb"#!\s*/(usr/)?bin/(env\s+)?(ba|da)?sh\b")


def is_shell(name: str) -> bool:
    with (ROOT / name).open("rb") as stream:
        return SHEBANG.match(stream.readline(80)) is not None


if __name__ == "__main__":
    files = [name for name in checkout_files() if is_shell(name)]
    sys.exit(subprocess.run([*sys.argv[1:], *files], cwd=ROOT, check=False).returncode)
