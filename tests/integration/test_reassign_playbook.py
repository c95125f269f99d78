# Copyright: (c) 2026, Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The playbook `reassign` against real servers: a drain that is killed and cancelled, one to its end, and an add."""

from __future__ import annotations

import json
import os
import pathlib
import signal
import subprocess
import sys

import pytest

from tests.integration import admin_bed, servers
from tests.integration.test_partition_reassignment import Bed, fill

pytestmark = pytest.mark.real

ROOT = pathlib.Path(__file__).resolve().parents[2]
REPLICAS = {0: [1, 2], 1: [2, 3], 2: [3, 1]}


class Runs:
    """Runs the playbook with the variables of one cluster."""

    def __init__(self, home, bed):
        self.variables = {
            "quorumshift_bootstrap_servers": bed.options["bootstrap_servers"],
            "quorumshift_artifacts_dir": str(home / "artifacts"),
            "quorumshift_state_dir": bed.options["state_dir"],
        }
        self.plan = home / "artifacts" / "reassign.json"

    def begin(self, **more):
        """Start a run; return its process."""
        playbook = [
            str(pathlib.Path(sys.executable).parent / "ansible-playbook"),
            "-i",
            "localhost,",
            "--connection=local",
        ]
        given = json.dumps({**self.variables, **more})
        return subprocess.Popen(
            [*playbook, "-e", given, "playbooks/reassign.yml"],
            cwd=ROOT,
            env={**os.environ, "ANSIBLE_NOCOLOR": "1", "LC_ALL": "C.UTF-8"},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )

    def workers(self):
        """Return the processes of runs of this cluster."""
        found = subprocess.run(["pgrep", "-f", str(self.plan.parent)], capture_output=True, text=True, check=False)
        return found.stdout.split()

    def run(self, **more):
        """Run to the end; return (exit code, output)."""
        process = self.begin(**more)
        text = process.communicate(timeout=500)[0]
        return process.returncode, text


def on(bed, broker):
    """Return how many partitions have a replica on a broker."""
    return sum(broker in one["replicas"] for one in bed.admin().partitions.values())


def test_a_drain_is_killed_cancelled_and_run_to_its_end():
    with admin_bed.kraft("reassign-playbook", 3) as (home, _controller, brokers):
        bed = Bed(home, brokers)
        runs = Runs(home, bed)
        fill(brokers[0], "orders", REPLICAS, 4)
        code, text = runs.run(reassign_drain=3)
        assert code == 0 and "2 partitions. To move them, add -e reassign_apply=true" in text, text
        assert bed.info()["reassignments"] == [] and not runs.plan.exists()

        # killed while it moves: throttle and plan stay, and the plan is not replaced by another one
        killed = runs.begin(reassign_drain=3, reassign_apply=True, reassign_throttle_bytes_s=50_000)
        servers.wait_for(lambda: bed.admin().in_flight(), 240, "partitions in flight")
        os.killpg(killed.pid, signal.SIGKILL)
        killed.communicate()
        assert runs.plan.exists() and bed.info()["recorded_throttles"]
        code, text = runs.run(reassign_drain=2)
        assert code and "cancel it with -e reassign_cancel=true" in text, text

        # cancelled: nothing is in flight, no throttle is left, the plan is forgotten
        code, text = runs.run(reassign_cancel=True)
        assert code == 0, text
        found = bed.info()
        assert found["reassignments"] == found["throttles"] == [] and not bed.record.exists() and not runs.plan.exists()
        assert on(bed, 3) == 2
        # a worker of Ansible outlives the process that was killed: it begins nothing again
        servers.wait_for(lambda: not runs.workers(), 60, "the end of the killed run's worker")
        assert all(len(one["replicas"]) == 2 for one in bed.admin().partitions.values()) and not bed.admin().in_flight()

        code, text = runs.run(reassign_drain=3, reassign_apply=True, reassign_throttle_bytes_s=100_000_000)
        assert code == 0 and on(bed, 3) == 0, text
        assert bed.info()["throttles"] == [] and not runs.plan.exists()
        code, text = runs.run(reassign_add="least_loaded", reassign_apply=True)
        assert code == 0 and on(bed, 3), text
