# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The playbooks as AWX runs them: by ansible-runner, each job in its own container; cancelled and launched again."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import threading
import time

import pytest

from tests.system.testbed.layout import INVENTORY, ROOT
from tests.system.testbed.running import ELSEWHERE, FAST

JOB = "4711"
TOOLS = os.path.dirname(sys.executable)
RUNNER = os.path.join(TOOLS, "ansible-runner")


@pytest.fixture
def launch(tmp_path):
    """launch(playbook, extra variables, text of the line that cancels it) -> (exit code, output, events)."""
    number = iter(range(99))

    def run(playbook, extra=None, cancel_when=None):
        private = tmp_path / str(next(number))
        (private / "env").mkdir(parents=True)
        (private / "env" / "extravars").write_text(json.dumps({**FAST, **(extra or {})}))
        (private / "project").symlink_to(ROOT)
        command = [*ELSEWHERE, RUNNER, "run", str(private), "--inventory", str(INVENTORY)]
        process = subprocess.Popen(
            [*command, "--ident", "job", "--playbook", f"playbooks/{playbook}.yml"],
            env={**os.environ, "PATH": f"{TOOLS}:{os.environ['PATH']}", "JOB_ID": JOB, "ANSIBLE_NOCOLOR": "1"},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )
        limit = threading.Timer(600, process.kill)
        limit.start()
        lines = []
        for line in process.stdout:
            lines.append(line)
            if cancel_when and cancel_when in line:
                os.killpg(process.pid, 15)  # as AWX cancels
                cancel_when = None
        code = process.wait()
        limit.cancel()
        files = sorted((private / "artifacts" / "job" / "job_events").glob("*.json"))
        return code, "".join(lines), [json.loads(path.read_text()) for path in files if "partial" not in path.name]

    return run


def test_status_shows_one_screen_in_the_jobs_output(fresh, launch):
    code, output, events = launch("status")
    assert code == 0, output
    assert re.search(r"^Cluster \S+: zk$", output, re.MULTILINE)
    assert "launch the job template of the playbook migrate" in output
    assert any("Cluster " in event.get("stdout", "") for event in events)


def test_a_cancelled_job_is_launched_again_with_the_token(fresh, launch):
    code, output, _events = launch("migrate", cancel_when=" starts")
    assert code != 0, output
    time.sleep(1)
    code, output, _events = launch("migrate")
    assert code != 0 and f", job {JOB}, since" in output, output
    token = re.search(r"quorumshift_force_unlock=(\S+)\. ", output.replace("\n", " ")).group(1)
    code, output, events = launch("migrate", {"quorumshift_force_unlock": token})
    assert code == 0, output
    assert re.search(r"^Cluster \S+: dual_write$", output, re.MULTILINE)
    assert "with the extra variable quorumshift_finalize_token=" in output
    assert any(" is up (" in event.get("stdout", "") for event in events), "no event has the progress"
