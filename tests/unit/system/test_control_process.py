# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A worker with a session of its own is killed with its control process; other processes are not."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from tests.system.testbed import control_process

FORKS = """
import os, sys, time
if os.fork() == 0:
    os.setsid()
    print(os.getpid(), flush=True)
time.sleep(600)
"""


@pytest.fixture
def started(tmp_path):
    program = tmp_path / "ansible-playbook"
    program.write_text(FORKS)
    processes = []

    def start(**environment):
        command = [sys.executable, str(program)]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, env={**os.environ, **environment}, text=True)
        worker = int(process.stdout.readline())
        processes.append((process, worker))
        return process, worker

    yield start
    for process, worker in processes:
        process.kill()
        process.wait()
        process.stdout.close()
        if os.path.exists(f"/proc/{worker}"):
            subprocess.run(["kill", "-9", str(worker)], check=False, stderr=subprocess.DEVNULL)


def runs(pid):
    try:
        with open(f"/proc/{pid}/stat", encoding="ascii") as stream:
            return stream.read().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def test_workers_of_the_marked_process_end_with_it(started):
    mine, other = control_process.mark(), control_process.mark()
    process, worker = started(**mine)
    neighbour, other_worker = started(**other)
    process.kill()  # its worker is left
    control_process.kill(mine)
    assert process.wait() and not runs(worker)
    assert neighbour.poll() is None and runs(other_worker)
