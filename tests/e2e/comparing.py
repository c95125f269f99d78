# Copyright: (c) 2026, Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""playbooks/verify.yml in the hands of a test: run, read, and its Spark processes killed."""

from __future__ import annotations

import contextlib
import json
import os
import pathlib
import signal
import threading
from typing import Callable, Iterator, NamedTuple

from tools.e2e.testbed import Ran, Testbed, meanwhile

METADATA, RECORDS = "metadata_parity", "data_fingerprint"
# Where the action puts what a job reads (roles/quorumshift/vars/main.yml)
PRIVATE = "/tmp/quorumshift-{cluster_id}-"


class Compared(NamedTuple):
    """A run of the playbook, and the newest result in its evidence, {} where it left none."""

    ran: Ran
    result: dict


def verify(testbed: Testbed, *options: str, job: str = METADATA, timeout: float = 600, **extra: object) -> Compared:
    """Run playbooks/verify.yml, and read what the job left. `extra`: variables of the run."""
    root = pathlib.Path(str(extra.get("quorumshift_artifacts_dir") or testbed.variables["quorumshift_artifacts_dir"]))
    before = set(root.glob(f"*/*/verify/*/{job}"))
    ran = testbed.play("verify", *options, extra=extra, timeout=timeout)
    made = sorted(set(root.glob(f"*/*/verify/*/{job}")) - before)
    assert len(made) == 1, ran.text
    path = made[0] / "result.json"
    return Compared(ran, json.loads(path.read_text()) if path.exists() else {})


def cluster_id(testbed: Testbed) -> str:
    """As ZooKeeper has it."""
    with testbed.zookeeper() as client:
        return json.loads(client.get("/cluster/id")[0])["id"]


def nothing_left(testbed: Testbed) -> None:
    """Nothing of what a job read lies here or on a controller's host."""
    private = pathlib.Path(PRIVATE.format(cluster_id=cluster_id(testbed)))
    assert list(private.parent.glob(f"{private.name}*")) == []
    for host in testbed.controllers:
        assert (
            testbed.run(host, "find /var/lib/quorumshift -name '*.tar.gz' -path '*snapshot*' 2>/dev/null; true") == ""
        )


def _processes() -> dict[int, tuple[int, str]]:
    """{pid: (parent's pid, command line)}."""
    found = {}
    for path in pathlib.Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError, IndexError):
            parent = int((path / "stat").read_text().rpartition(")")[2].split()[1])
            found[int(path.name)] = (parent, (path / "cmdline").read_text().replace("\0", " "))
    return found


def _victim(private: str, part: str) -> int | None:
    """The process that is `part` of the job: driver, supervisor, or worker, the Python process of an executor."""
    reported = _processes()
    for pid, (parent, line) in reported.items():
        if private not in line or "org.apache.spark.deploy.SparkSubmit" not in line:
            continue
        if part == "driver":
            return pid
        if part == "supervisor":
            return parent
        workers = [
            other for other, (above, text) in reported.items() if above == pid and text.endswith("pyspark.worker ")
        ]
        return workers[0] if workers else None
    return None


@contextlib.contextmanager
def killed(testbed: Testbed, part: str, first: Callable[[], None] = lambda: None) -> Iterator[None]:
    """A process of the job (see `_victim`) is killed with SIGKILL as soon as it is there, after `first()`."""
    private, done = PRIVATE.format(cluster_id=cluster_id(testbed)), []

    def watch(over: threading.Event) -> None:
        while not over.wait(0.05):
            pid = _victim(private, part)
            if pid is not None:
                first()
                os.kill(pid, signal.SIGKILL)
                done.append(pid)
                return

    with meanwhile(watch):
        yield
    assert done, f"no {part} of the job was seen"
