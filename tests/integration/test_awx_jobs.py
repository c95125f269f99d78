# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Jobs as AWX runs them: ansible-runner plays the wrappers of docs/awx/project, each job in a PID namespace of its own.

A real cluster of three brokers. A job is cancelled in the middle of a wait, launched again, and two run at once.
"""

from __future__ import annotations

import contextlib
import json
import os
import pathlib
import re
import signal
import subprocess
import sys

import pytest

from tests.integration import admin_bed, servers
from tests.integration.test_partition_reassignment import Bed, fill
from tests.integration.test_reassign_playbook import FAST, MEGABYTES, REPLICAS, ROOT, SLOW, Runs, on

pytestmark = [
    pytest.mark.real,
    pytest.mark.skipif(os.geteuid() != 0, reason="a PID namespace needs root"),
]
PROJECT = ROOT / "docs" / "awx" / "project"
CONTAINER = ("unshare", "--fork", "--pid", "--mount-proc", "--kill-child")
RUNNER = str(pathlib.Path(sys.executable).with_name("ansible-runner"))
LIMIT_S = 1200  # for what stands still


class Job:
    """A job. `number`: as AWX counts them."""

    def __init__(self, runs, number, template, extra):
        self.private = runs.home / f"job-{number}"
        (self.private / "env").mkdir(parents=True)
        (self.private / "env" / "extravars").write_text(json.dumps(extra))
        (self.private / "project").symlink_to(PROJECT)
        command = [*CONTAINER, RUNNER, "run", str(self.private), "--inventory", str(runs.inventory)]
        environment = {
            **{name: value for name, value in os.environ.items() if not name.startswith("ANSIBLE_")},
            "PATH": f"{pathlib.Path(sys.executable).parent}:{os.environ['PATH']}",
            "ANSIBLE_COLLECTIONS_PATH": str(ROOT / ".build"),
            "ANSIBLE_NOCOLOR": "1",
            "LC_ALL": "C.UTF-8",
            "JOB_ID": str(number),
            "AWX_JOB_ID": str(number),
        }
        self.process = subprocess.Popen(
            [*command, "--ident", "job", "--playbook", f"{template}.yml"],
            cwd=self.private,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )

    def cancel(self, stack):
        """Cancel it as AWX does: a signal to ansible-runner; return its output.

        Until the end of `stack` no other job gets the number of its PID namespace. Linux gives a number again once all
        processes of its namespace have ended, which proves to a job with that number that this one is dead.
        """
        stack.callback(os.close, os.open(f"/proc/{self.process.pid}/ns/pid_for_children", os.O_RDONLY))
        os.killpg(self.process.pid, signal.SIGTERM)
        return self.end()[1]

    def end(self):
        """Wait for its end; return (exit code, output in one line)."""
        text = self.process.communicate(timeout=LIMIT_S)[0]
        print(f"--- {self.private.name}: {self.process.returncode}\n{text}")
        return self.process.returncode, " ".join(text.split())

    def artifacts(self):
        """Return what AWX shows as the job's artifacts: the data of set_stats, from the last event."""
        events = self.private / "artifacts" / "job" / "job_events"
        found = [json.loads(path.read_text()) for path in events.glob("*.json") if "partial" not in path.name]
        (stats,) = [event for event in found if event["event"] == "playbook_on_stats"]
        return stats["event_data"].get("artifact_data") or {}


class Awx(Runs):
    """Launches jobs on one cluster."""

    def __init__(self, *given):
        super().__init__(*given)
        self.number = 4710
        self.jobs = []

    def launch(self, template, **extra):
        self.number += 1
        self.jobs.append(Job(self, self.number, template, extra))
        return self.jobs[-1]


@pytest.fixture(scope="module")
def awx():
    with admin_bed.kraft("awx-jobs", 3) as (home, controller, brokers), contextlib.ExitStack() as stack:
        fill(brokers[0], "orders", REPLICAS, MEGABYTES)
        jobs = Awx(home, controller, brokers)
        jobs.bed, jobs.brokers, jobs.stack = Bed(home, brokers[:2]), brokers, stack
        stack.callback(lambda: [job.process.kill() for job in jobs.jobs if job.process.poll() is None])
        yield jobs


def in_flight(awx):
    servers.wait_for(lambda: awx.bed.admin().in_flight(), 600, "partitions in flight")


def test_a_job_leaves_its_state_as_artifacts(awx):
    job = awx.launch("status")
    code, text = job.end()
    assert code == 0, text
    left = job.artifacts()["quorumshift_job"]
    assert left["phase"] == "kraft_native" and left["cluster_id"] == servers.CLUSTER_ID
    assert left["token"] is None and isinstance(left["blocks"], list) and left["playbook"] == "status"
    assert set(left["next"]) == {"text", "playbook", "target", "command"}

    # The next job of a workflow gets it as an extra variable; it may not run, and leaves its state too
    job = awx.launch("migrate", **job.artifacts())
    code, text = job.end()
    assert code and "kraft_native" in text, text
    assert job.artifacts()["quorumshift_job"]["phase"] == "kraft_native"
    assert awx.locks() == {}


def test_cancelled_in_a_wait_refused_beside_another_and_launched_again(awx):
    drain = {"reassign_drain": 3, "reassign_apply": "true"}  # a survey's answer is text

    # Cancelled in the middle of the wait for partitions that move
    job = awx.launch("reassign", **drain, **SLOW)
    in_flight(awx)
    job.cancel(awx.stack)
    assert job.process.returncode
    assert {lock["closed"] for lock in awx.locks().values()} == {False}
    dead = {lock["run"] for lock in awx.locks().values()}

    # Launched again, in another container: nothing there shows whether the cancelled job is still at work
    again = awx.launch("reassign", **drain, **SLOW)
    code, text = again.end()
    assert code and f"job {awx.number - 1}" in text, text
    (run,) = set(re.findall(r"quorumshift_force_unlock=([\w-]+)", text))
    assert {run} == dead
    refused = again.artifacts()["quorumshift_job"]
    assert refused["phase"] == "kraft_native" and "quorumshift_job_failure" not in again.artifacts()

    # With the id that the refused job printed it goes on with the plan that was interrupted
    first = awx.launch("reassign", **drain, **SLOW, quorumshift_force_unlock=run)
    servers.wait_for(lambda: not dead & {lock["run"] for lock in awx.locks().values()}, 600, "the lock of the job")
    in_flight(awx)

    # Two at once: the second one changes nothing, not even with the id of the run before
    locks = awx.locks()
    second = awx.launch("reassign", reassign_cancel="true", quorumshift_force_unlock=run)
    code, text = second.end()
    assert code and f"job {first.private.name.rpartition('-')[2]}" in text, text
    assert awx.locks() == locks and awx.bed.admin().in_flight()
    assert second.artifacts()["quorumshift_job"]["cluster_id"] == servers.CLUSTER_ID
    assert first.process.poll() is None

    first.cancel(awx.stack)
    (run,) = {lock["run"] for lock in awx.locks().values()}
    last = awx.launch("reassign", **drain, **FAST, quorumshift_force_unlock=run)
    code, text = last.end()
    assert code == 0 and on(awx.bed, 3) == 0, text
    assert {lock["closed"] for lock in awx.locks().values()} == {True}
    assert last.artifacts()["quorumshift_job"]["phase"] == "kraft_native"


def test_a_run_that_fails_says_so_in_its_artifacts(awx):
    job = awx.launch("reassign", reassign_drain=33, reassign_apply="true")
    code, text = job.end()
    assert code and "broker 33 is not alive" in text, text
    left = job.artifacts()
    assert left["quorumshift_job"]["phase"] == "kraft_native"
    failure = left["quorumshift_job_failure"]
    assert failure["step"] == "Plan the reassignment" and "broker 33 is not alive" in failure["reason"]
    assert failure["next"]
