# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Measure what reading a generated cluster from a real ZooKeeper does to another client of it.

    PYTHONPATH=.build:.:spark .venv/bin/python tests/benchmarks/zookeeper_load.py [--partitions N] [--tasks N]
        [--paces K]

The server starts from a world's snapshot (see scale.py): a partition has two znodes. Tasks are processes, as on Spark.
For each of the first K paces it prints the znodes a second, and the latency of another client's requests meanwhile: one
at a time, with 5 ms between them.
"""

from __future__ import annotations

import argparse
import multiprocessing
import pathlib
import shutil
import threading
import time
from typing import Any, Dict, List, Tuple

from ansible_collections.quorumshift.kafka.plugins.module_utils.probes.zookeeper import zookeeper
from quorumshift_spark.normal_form import Digests
from quorumshift_spark.views.zookeeper import ZooKeeperView

from tests.benchmarks import generate_world, world
from tests.integration import servers

ROOT = pathlib.Path(__file__).resolve().parents[2]
PACES: Dict[str, Dict[str, Any]] = {
    "no limit": {},
    "latency 100 ms": {"max_latency_ms": 100},
    "default: 10,000/s, latency 100 ms": {"max_rate": 10_000, "max_latency_ms": 100},
    "latency 20 ms": {"max_latency_ms": 20},
    "2,000/s": {"max_rate": 2_000},
}
_PAUSE_S = 0.005


def read(task: Tuple[ZooKeeperView, Any]) -> Dict[str, Any]:
    """Read a part; return its pace."""
    view, part = task
    *_read, statement = view.read(part)
    return statement.state["pace"]


class Client:
    """Another client, which measures its requests until the block ends. `seconds`: of each request."""

    def __init__(self, connect: str) -> None:
        self._connect, self._stop, self.seconds = connect, threading.Event(), []  # type: ignore[var-annotated]
        self._thread = threading.Thread(target=self._run)

    def _run(self):
        with zookeeper.connect(self._connect) as client:
            while not self._stop.wait(_PAUSE_S):
                started = time.monotonic()
                client.exists("/")
                self.seconds.append(time.monotonic() - started)

    def __enter__(self):
        self._thread.start()
        return self

    def __exit__(self, *_unused):
        self._stop.set()
        self._thread.join()


def shown(seconds: List[float]) -> str:
    """Return the percentiles of a client's requests."""
    ordered = sorted(seconds)
    p50, p99 = (ordered[int(len(ordered) * part)] * 1000 for part in (0.5, 0.99))
    return f"another client: p50 {p50:.1f} ms, p99 {p99:.1f} ms, highest {ordered[-1] * 1000:.0f} ms"


def main() -> None:
    """Measure each pace."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--partitions", type=int, default=100_000)
    parser.add_argument("--tasks", type=int, default=2)
    parser.add_argument("--paces", type=int, default=len(PACES))
    given = parser.parse_args()
    directory = ROOT / ".build" / "worlds" / f"{given.partitions}-60"
    if not directory.exists():
        generate_world.generate(directory, given.partitions // 50, 50, planted=60)
    with servers.workdir("zookeeper_load") as home:
        shutil.copytree(directory / "zookeeper", home / "files")
        settings = {"dataDir": str(home / "files")}
        with servers.zookeeper(home, settings=settings, jvm=["-Xmx3g"]) as server, multiprocessing.Pool(
            given.tasks
        ) as pool:
            connect = f"{server.connect}{world.CHROOT}"
            with Client(connect) as client:
                time.sleep(5)
            print(f"idle: {shown(client.seconds)}", flush=True)
            for name, pace in list(PACES.items())[: given.paces]:
                view = ZooKeeperView(connect, None, Digests(b"0123456789abcdef"), **pace)
                started = time.monotonic()
                with Client(connect) as client:
                    paces = pool.map(read, [(view, part) for part in view.parts(given.tasks)], chunksize=1)
                    seconds = time.monotonic() - started
                znodes = sum(pace["znodes"] for pace in paces)
                facts = f"own requests at most {max(pace['slowest_ms'] for pace in paces):.0f} ms"
                facts += f", slowed {sum(pace['slowed'] for pace in paces)} times"
                print(
                    f"{name}: {znodes / seconds:,.0f} znodes/s, {seconds:.1f} s, {facts}; {shown(client.seconds)}",
                    flush=True,
                )


if __name__ == "__main__":
    main()
