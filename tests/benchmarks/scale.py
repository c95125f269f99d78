# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Time the comparison of generated clusters: ZooKeeper's files, the logs of three voters, three brokers, settings.

    PYTHONPATH=.build:.:spark .venv/bin/python tests/benchmarks/scale.py [--partitions N ...] [--plant K] [--cores N]
        [--brokers N] [--voters N] [--conf NAME=VALUE ...]

Each world is generated once, below .build/worlds. The job is a process of its own, with Spark's settings of the role.
For each size it prints the wall-clock with Spark's start, the seconds of each step, CPU seconds, the peak of the memory
of all its processes (RSS, sampled), and how many planted differences were found. The world does not change, so that a
difference between the log and a broker may stay undecided: it counts as found. Exit code 1 if a planted difference is
missing or another one was found.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time
from typing import Any, Dict, Iterator, List, Tuple

import pyarrow.parquet as pq
from ansible_collections.quorumshift.kafka.plugins.module_utils.snapshots import metadata_snapshot
from ansible_collections.quorumshift.kafka.plugins.plugin_utils import spark_jobs
from quorumshift_spark import result as results

from tests.benchmarks import generate_world, world

ROOT = pathlib.Path(__file__).resolve().parents[2]
CONF = {
    "spark.sql.shuffle.partitions": "4",
    "spark.ui.enabled": "false",
    "spark.sql.adaptive.enabled": "false",
    "spark.driver.memory": "2g",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
}
_TICKS, _PAGE = os.sysconf("SC_CLK_TCK"), os.sysconf("SC_PAGE_SIZE")
_SAMPLE_S = 0.2


@contextlib.contextmanager
def nodes(directory: pathlib.Path, count: int) -> Iterator[Dict[int, str]]:
    """Serve the brokers of a world, as `count` brokers, and its controllers; yield {id: address}."""
    command = [sys.executable, str(ROOT / "tests" / "benchmarks" / "world_brokers.py"), str(directory), str(count)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=ROOT) as served:
        assert served.stdin and served.stdout
        yield {int(node): f"127.0.0.1:{port}" for node, port in json.loads(served.stdout.readline()).items()}
        served.stdin.close()


def processes(root: int) -> Dict[int, Tuple[float, int]]:
    """Return {process id: (CPU seconds, bytes of RSS)} of a process and its descendants."""
    found: Dict[int, Tuple[int, float, int]] = {}
    for name in os.listdir("/proc"):
        if name.isdigit():
            with contextlib.suppress(OSError):
                fields = pathlib.Path("/proc", name, "stat").read_text().rpartition(")")[2].split()
                found[int(name)] = (
                    int(fields[1]),
                    (int(fields[11]) + int(fields[12])) / _TICKS,
                    int(fields[21]) * _PAGE,
                )
    family, todo = {}, [root]
    while todo:
        process = todo.pop()
        if process in found:
            family[process] = found[process][1:]
        todo += [child for child, (parent, _cpu, _rss) in found.items() if parent == process]
    return family


def run(job: pathlib.Path, cores: int) -> Dict[str, Any]:
    """Run the job of a directory; return {wall, cpu, peak_mib, result, rows (of differences.parquet)}."""
    submit = [str(ROOT / ".venv" / "bin" / "spark-submit"), "--master", f"local[{cores}]"]
    input_bytes = sum(archive.stat().st_size for archive in job.glob("*/*.tar.gz"))
    for name, value in {**spark_jobs.settings(f"local[{cores}]", input_bytes), **CONF}.items():
        submit += ["--conf", f"{name}={value}"]
    script = str(ROOT / "spark" / "quorumshift_spark" / "submit.py")
    environment = {**os.environ, "PYSPARK_PYTHON": sys.executable}
    started, cpu, peak = time.monotonic(), {}, 0
    with open(job / "spark.log", "wb") as log:
        submitted = subprocess.Popen(
            [*submit, script, "metadata_parity", "--input", str(job / "job.json")],
            stdout=log,
            stderr=log,
            env=environment,
            cwd=ROOT,
        )
        while submitted.poll() is None:
            family = processes(submitted.pid)
            cpu.update({process: seconds for process, (seconds, _rss) in family.items()})
            peak = max(peak, sum(rss for _cpu, rss in family.values()))
            time.sleep(_SAMPLE_S)
    wall = time.monotonic() - started
    result = json.loads((job / "output" / "result.json").read_text())
    rows = pq.read_table(job / "output" / results.DIFFERENCES).to_pylist()
    return {"wall": wall, "cpu": sum(cpu.values()), "peak_mib": peak >> 20, "result": result, "rows": rows}


def cut(log: pathlib.Path, target: pathlib.Path) -> Dict[str, Any]:
    """Take a snapshot of a log; return its part of job.json."""
    taken = metadata_snapshot.take(str(log / "__cluster_metadata-0"), str(target))
    return {"archive": taken.path, "sha256": taken.sha256, "end_offset": taken.end_offset}


def measure(directory: pathlib.Path, cores: int, count: int, voters: int) -> Dict[str, Any]:
    """Run the job on a world with `count` brokers and the logs of so many voters; see `run`."""
    facts = json.loads((directory / "world.json").read_text())
    with tempfile.TemporaryDirectory(prefix="quorumshift-scale-") as name, nodes(directory, count) as served:
        job = pathlib.Path(name)
        (job / "digest.key").write_bytes(b"0123456789abcdef0123456789abcdef")
        leader, *others = world.VOTERS
        at = [{"id": broker, "address": address} for broker, address in served.items()]
        views = {
            "zookeeper": {"data_dir": str(directory / "zookeeper"), "chroot": facts["chroot"]},
            "metadata_log": cut(directory / "metadata_log", job / str(leader)),
            "metadata_logs": [
                {"node": voter, **cut(directory / f"metadata_log-{voter}", job / str(voter))}
                for voter in others[: voters - 1]
            ],
            "brokers": [broker for broker in at if broker["id"] not in world.VOTERS],
            "controllers": [broker for broker in at if broker["id"] in world.VOTERS],
            "settings": sorted(world.SETTINGS),
        }
        content = {
            "nonce": "scale",
            "gate": "after_kraft",
            "cluster_id": facts["cluster_id"],
            "digest_key_file": str(job / "digest.key"),
            "output": str(job / "output"),
            "views": views,
            "fence": {"migration_offset": facts["migration_offset"], "migration_zxid": facts["zxid"]},
            "bounds": {"pause_s": 0.2},
        }
        descriptor = os.open(job / "job.json", os.O_WRONLY | os.O_CREAT, 0o600)
        with open(descriptor, "w") as file:
            json.dump(content, file)
        return run(job, cores)


def found(rows: List[Dict[str, Any]], directory: pathlib.Path, voters: int) -> Tuple[int, int, List[Any]]:
    """Return how many differences were planted in what was read, how many of them were found, and all others: (kind,
    key, field)."""
    not_read = {f"metadata_log:{voter}" for voter in world.VOTERS[voters:]}
    plants = json.loads((directory / "planted.json").read_text())
    planted = {(plant["kind"], plant["key"], plant["field"]) for plant in plants if plant["store"] not in not_read}
    differences = {(row["kind"], row["key"], row["field"]) for row in rows}
    return len(planted), len(planted & differences), sorted(differences - planted, key=str)


def main() -> int:
    """Measure each size."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--partitions", type=int, nargs="+", default=[10_000, 100_000, 1_000_000])
    parser.add_argument("--plant", type=int, default=60)
    parser.add_argument("--cores", type=int, default=2)
    parser.add_argument("--brokers", type=int, default=3)
    parser.add_argument("--voters", type=int, default=len(world.VOTERS), help="whose logs are compared")
    parser.add_argument("--conf", action="append", default=[], metavar="NAME=VALUE", help="in place of the role's")
    given = parser.parse_args()
    CONF.update(setting.split("=", 1) for setting in given.conf)
    is_exact = True
    for partitions in given.partitions:
        directory = ROOT / ".build" / "worlds" / f"{partitions}-{given.plant}"
        if not directory.exists():
            generate_world.generate(directory, partitions // 50, 50, planted=given.plant)
        measured = measure(directory, given.cores, given.brokers, given.voters)
        result = measured.pop("result")
        planted, of_planted, others = found(measured.pop("rows"), directory, given.voters)
        is_exact = is_exact and of_planted == planted and not others
        figures = "  ".join(f"{name} {value:.1f}" for name, value in {**measured, **result["timings"]}.items())
        planting = f"planted {planted}, found {of_planted}, others {len(others)}"
        print(f"{partitions:,} partitions, {given.brokers} brokers: {figures}  {planting}")
        for other in others[:5]:
            print(f"not planted: {other}")
    return 0 if is_exact else 1


if __name__ == "__main__":
    sys.exit(main())
