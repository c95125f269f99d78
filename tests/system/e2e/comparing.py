# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Runs of playbooks/verify.yml: run it, read its result, kill its Spark processes."""

from __future__ import annotations

import contextlib
import json
import os
import pathlib
import signal
import threading
from typing import Callable, Iterator, NamedTuple

from tests.system.testbed.running import Ran, Testbed
from tests.system.testbed.waiting import meanwhile

METADATA, RECORDS = "metadata_parity", "data_fingerprint"
# The scratch directory of a job's input (roles/quorumshift/vars/main.yml)
SCRATCH = "/tmp/quorumshift-{cluster_id}-"


class Compared(NamedTuple):
    """A run of the playbook and its result.json, {} if there is none."""

    ran: Ran
    result: dict


def verify(testbed: Testbed, *options: str, job: str = METADATA, timeout: float = 600, **extra: object) -> Compared:
    """Run playbooks/verify.yml with the variables `extra`, and read the result."""
    root = pathlib.Path(str(extra.get("quorumshift_artifacts_dir") or testbed.variables["quorumshift_artifacts_dir"]))
    before = set(root.glob(f"*/*/verify/*/{job}"))
    ran = testbed.play("verify", *options, extra=extra, timeout=timeout)
    directories = sorted(set(root.glob(f"*/*/verify/*/{job}")) - before)
    assert len(directories) == 1, ran.text
    path = directories[0] / "result.json"
    return Compared(ran, json.loads(path.read_text()) if path.exists() else {})


def cluster_id(testbed: Testbed) -> str:
    """Return the cluster id in ZooKeeper."""
    with testbed.zookeeper() as client:
        return json.loads(client.get("/cluster/id")[0])["id"]


def assert_nothing_left(testbed: Testbed) -> None:
    """Assert that neither this host nor a controller keeps a job's input."""
    scratch = pathlib.Path(SCRATCH.format(cluster_id=cluster_id(testbed)))
    assert list(scratch.parent.glob(f"{scratch.name}*")) == []
    for host in testbed.controllers:
        find = "find /var/lib/quorumshift -name '*.tar.gz' -path '*snapshot*' 2>/dev/null; true"
        assert testbed.run(host, find) == ""


def _processes() -> dict[int, tuple[int, str]]:
    """Return {pid: (parent's pid, command line)}."""
    processes = {}
    for path in pathlib.Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError, IndexError):
            parent = int((path / "stat").read_text().rpartition(")")[2].split()[1])
            processes[int(path.name)] = (parent, (path / "cmdline").read_text().replace("\0", " "))
    return processes


def _find_part(scratch: str, part: str) -> int | None:
    """Return the pid of the job's driver, of its supervisor, or of a worker, an executor's Python process."""
    processes = _processes()
    for pid, (parent, line) in processes.items():
        if scratch not in line or "org.apache.spark.deploy.SparkSubmit" not in line:
            continue
        if part == "driver":
            return pid
        if part == "supervisor":
            return parent
        workers = (w for w, (above, text) in processes.items() if above == pid and text.endswith("pyspark.worker "))
        return next(workers, None)
    return None


@contextlib.contextmanager
def killed(
    testbed: Testbed, part: str, first: Callable[[], None] = lambda: None, waiting: bool = False
) -> Iterator[None]:
    """Kill a part of the job (see `_find_part`) with SIGKILL as soon as it runs, after `first()`.

    :arg waiting: kill it while Spark waits for its job, and not once it has it.
    """
    scratch, done = SCRATCH.format(cluster_id=cluster_id(testbed)), []

    def watch(over: threading.Event) -> None:
        while not over.wait(0.05):
            pid = _find_part(scratch, part)
            has_job = any(pathlib.Path("/tmp").glob(f"{pathlib.Path(scratch).name}*/input/job.json"))
            if pid is not None and has_job is not waiting:
                first()
                os.kill(pid, signal.SIGKILL)
                done.append(pid)
                return

    with meanwhile(watch):
        yield
    assert done, f"the job never had a {part}"
