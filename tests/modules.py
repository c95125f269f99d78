# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Run a module of the collection as Ansible does: in a process that reads its arguments as JSON."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("ansible.module_utils.basic")  # the oldest Python of managed hosts is tested without Ansible

ROOT = Path(__file__).resolve().parent.parent


def run(module: str, **options: Any) -> dict:
    """Return the module's result; {"stderr"} where it printed none."""
    done = subprocess.run(
        [sys.executable, str(ROOT / "plugins" / "modules" / f"{module}.py")],
        input=json.dumps({"ANSIBLE_MODULE_ARGS": options}),
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
        env={**os.environ, "PYTHONPATH": str(ROOT / ".build")},
    )
    return json.loads(done.stdout or json.dumps({"stderr": done.stderr}))
