# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Run a module of the collection as Ansible does: in a process that reads its arguments as JSON."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import ansible.module_utils.basic  # noqa: F401 - what each of these processes imports

ROOT = Path(__file__).resolve().parent.parent
_RECORDED = "QUORUMSHIFT_RECORDED_RESULTS"  # a directory


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
    return recorded(module, json.loads(done.stdout or json.dumps({"stderr": done.stderr})))


def recorded(module: str, result: dict) -> dict:
    """Return the result. Where $QUORUMSHIFT_RECORDED_RESULTS names a directory, append a success to MODULE.jsonl
    there, without the names of this machine (tests/unit/fixtures/README.md)."""
    directory = os.environ.get(_RECORDED)
    if directory and not {"failed", "stderr"} & set(result):
        kept = {key: value for key, value in result.items() if key not in ("invocation", "warnings", "diff")}
        text = re.sub(rf"{re.escape(str(ROOT))}/\.build/tests/[^/\"]+", "/srv", json.dumps(kept, sort_keys=True))
        text = text.replace(os.uname().nodename, "control-1")
        with Path(directory, f"{module}.jsonl").open("a", encoding="utf-8") as stream:
            stream.write(f"{text}\n")
    return result
