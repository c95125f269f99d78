# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Every playbook that changes something, whole, with Ansible, on the failure proof's simulated hosts: while one host
has the record of an earlier version, the playbook refuses with the command to paste, and no host is
changed. The refusals of modules, directions and checks: tests/unit/action/test_old_layout.py.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys

from tests.modules import ROOT


def test_no_playbook_changes_a_host_beside_files_of_an_earlier_version(tmp_path):
    command = [sys.executable, "-m", "tests.integration.old_layout_runs", str(tmp_path)]
    environment = {**os.environ, "PYTHONPATH": str(ROOT / ".build")}
    done = subprocess.run(
        command, cwd=ROOT, env=environment, stdout=subprocess.PIPE, text=True, timeout=600, check=True
    )
    found = json.loads(done.stdout.splitlines()[-1])
    assert len(found) > 10
    for name, run in found.items():
        assert run["code"] not in (0, None), (name, run)
        assert "cd /" in run["text"] and "mkdir -m 0700 broker-1 && mv restart.json broker-1/" in run["text"], (
            name,
            run,
        )
        assert "(QS-RUN-015)" in run["text"] and run["changed"] == [] and run["kept"], (name, run)
