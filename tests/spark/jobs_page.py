# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Writes the steps, plans and pictures of docs/jobs.md from what Spark did: `python -m tests.spark.jobs_page`.

It runs each job once, and reads Spark's event log: metadata_parity compares the synthetic views of a warm-up,
ensemble_parity the files of a ZooKeeper server with themselves, data_fingerprint a topic and a compacted one with their
baseline. test_jobs_page.py does the same and compares. A step that STEPS does not explain is an error.
"""

from __future__ import annotations

import contextlib
import json
import pathlib
import re
import tempfile
from collections.abc import Iterator
from typing import Any

from confluent_kafka import Producer
from confluent_kafka.admin import NewTopic
from quorumshift_spark import data_fingerprint, ensemble_parity, metadata_parity

from tests.integration import servers
from tests.spark import parity
from tools.yaml_files import read_yaml

PAGE = parity.ROOT / "docs" / "jobs.md"
DIAGRAMS = parity.ROOT / "docs" / "diagrams"
JOBS = (metadata_parity.JOB, data_fingerprint.JOB, ensemble_parity.JOB)

# What each step of a job does, in order; a step without Spark jobs is of the driver alone.
STEPS: dict[str, dict[str, str]] = {
    metadata_parity.JOB: {
        "probe": "the driver connects to each source once",
        "read": "tasks read the views; one task reads one part of a view, replays the partitions of a metadata log, "
        "and writes a file",
        "compare": "rows are grouped by key; only hashes of values are exchanged",
        "recheck": "the driver opens the entities of unequal keys and of nodes, and reads these keys again",
        "write": "the driver counts, and writes the tables of differences, result, report and the next gate's baseline",
    },
    data_fingerprint.JOB: {
        "read_baseline": "the driver opens the baseline's files",
        "describe": "the driver asks the cluster for topics, groups, transactional ids and log ends",
        "read": "tasks fetch stored batches, and write a hash of each chunk and each key; the driver lists the chunks",
        "compare_chunks": "the chunks of each partition are compared with the baseline's",
        "compare_keys": "the newest records of compacted topics are grouped by partition and key",
        "compare": "the driver compares log ends and coordinators with the baseline, and counts",
        "write": "the driver writes the fingerprint, the tables of differences, result and report",
    },
    ensemble_parity.JOB: {
        "open": "the driver unpacks the servers' files, and finds the zxid that all of them reach",
        "compare": "tasks rebuild each server's tree and hash its znodes; the hashes are grouped by path",
        "show": "one task a server reads the fields of the znodes that differ; none if none does",
        "left_over": "one task lists what the destination has outside of Kafka's subtree",
    },
}


def events(directory: pathlib.Path) -> contextlib.AbstractContextManager[Any]:
    """Return the context of a Spark session that logs its events in this directory."""
    of_role = read_yaml(parity.ROOT / "roles" / "quorumshift" / "defaults" / "main.yml")["quorumshift_spark_conf"]
    logs = {"spark.eventLog.enabled": "true", "spark.eventLog.dir": directory.as_uri()}
    plain = {"spark.eventLog.compress": "false", "spark.eventLog.rolling.enabled": "false"}
    return parity.local_spark("jobs page", **of_role, **logs, **plain)


class Run(parity.Run):
    """A job of any name."""

    def __init__(self, module: Any, *given: Any, **more: Any) -> None:
        self.main = module.main
        super().__init__(*given, **more)


def run_all(directory: pathlib.Path, home: pathlib.Path) -> tuple[dict[str, dict[str, Any]], int]:
    """Run each job once with its event log in the directory; return their timings, {job: {step: seconds}}, and the last
    Spark job before them."""
    found = {}
    with events(directory) as spark:
        found[data_fingerprint.JOB], last = _fingerprint(home, spark)
        found[ensemble_parity.JOB] = _ensemble(home)
        (home / "synthetic").mkdir()
        result = metadata_parity.compare_synthetic_views(spark, str(home / "synthetic"))
        found[metadata_parity.JOB] = {"probe": 0, **result["timings"]}
    return found, last


def _ensemble(home: pathlib.Path) -> dict[str, Any]:
    with servers.zookeeper(home) as zk, servers_client(zk) as client:
        for number in range(20):
            client.create(f"/kafka/brokers/topics/t{number}", b"{}", makepath=True)
        data = {"data_dir": str(zk.home / "data"), "side": "source", "name": "z1", "processed": {"0": 0}}
        views = {"servers": [data, {**data, "side": "destination", "name": "z2"}], "chroot": "/kafka"}
        run = Run(ensemble_parity, home, "ensemble", views, cluster_id=servers.CLUSTER_ID).go()
    assert run.result and run.result["timings"].get("left_over") is not None, run.story()
    return run.result["timings"]


@contextlib.contextmanager
def servers_client(zk: servers.ZooKeeperServer) -> Iterator[Any]:
    """Yield a client of a ZooKeeper server."""
    from kazoo.client import KazooClient

    client = KazooClient(zk.connect)
    client.start(60)
    try:
        yield client
    finally:
        client.stop()
        client.close()


def _fingerprint(home: pathlib.Path, spark: Any) -> tuple[dict[str, Any], int]:
    address = servers.HostPort("127.0.0.1", servers.free_port())
    voters = f"101@{address}"
    with servers.kraft_controllers(home, [address]), servers.kraft_broker(home, 1, voters) as broker:
        admin = servers.admin_client(broker.address)
        compact = NewTopic("compacted", 1, 1, config={"cleanup.policy": "compact"})
        servers.create_topics(admin, [NewTopic("plain", 1, 1), compact])
        producer = Producer({"bootstrap.servers": str(broker.address)})
        for number in range(20):
            for topic in ("plain", "compacted"):
                producer.produce(topic, key=str(number), value="v")
        assert producer.flush(60) == 0
        servers.wait_for(
            lambda: all(servers.in_sync(admin, topic, 1) for topic in ("plain", "compacted")),
            120,
            "leaders of the topics",
        )
        baseline, last, passed = None, -1, 0
        for _attempt in range(6):  # a leader of new topics may still change
            last = max(spark.sparkContext.statusTracker().getJobIdsForGroup(None), default=-1)
            views = {"cluster": {"bootstrap_servers": str(broker.address)}}
            views |= {"baseline": {"path": str(baseline)}} if baseline else {}
            more = {"fingerprint": {"topics": ["plain", "compacted"]}, "store": str(home / "store")}
            more["bounds"] = {"request_timeout_s": 120}
            cluster_id = admin.describe_cluster().result(30).cluster_id
            run = Run(data_fingerprint, home, "before_controllers", views, cluster_id=cluster_id, **more).go()
            if run.verdict == "pass":
                baseline, passed = run.output, passed + 1
            if passed == 2:
                break
        assert passed == 2, run.story()
    return run.result["timings"], last  # type: ignore[index]


# --- what Spark did -------------------------------------------------------------------------------------------------


class Step:
    """The Spark jobs of a step of a job: number of stages and tasks, and the plans of its queries, each once."""

    def __init__(self) -> None:
        self.stages: list[int] = []  # tasks of each stage that ran
        self.plans: list[str] = []


def steps_of(directory: pathlib.Path, last: int) -> dict[str, dict[str, Step]]:
    """Return the steps of each job by the event log after the Spark job `last`: {job: {step: Step}}."""
    found: dict[str, dict[str, Step]] = {}
    plans: dict[str, str] = {}
    step_of: dict[int, Step] = {}
    for event in _events(directory):
        name = event["Event"].rpartition(".")[2]
        if name == "SparkListenerSQLExecutionStart":
            plans[str(event["executionId"])] = plan(event["physicalPlanDescription"])
        elif name == "SparkListenerJobStart":
            properties = event.get("Properties") or {}
            job, _colon, of_step = str(properties.get("spark.job.description") or "").partition(": ")
            if event["Job ID"] <= last:
                continue
            if job not in JOBS:
                raise ValueError(f"a Spark job has no description of a step: {job!r}, after {list(found)}")
            step = found.setdefault(job, {}).setdefault(of_step, Step())
            text = plans.get(str(properties.get("spark.sql.execution.id")))
            if text and text not in step.plans:
                step.plans.append(text)
            for stage in event["Stage IDs"]:
                step_of.setdefault(stage, step)
        elif name == "SparkListenerStageCompleted":
            stage = event["Stage Info"]
            if stage["Stage ID"] in step_of:
                step_of[stage["Stage ID"]].stages.append(stage["Number of Tasks"])
    return found


def _events(directory: pathlib.Path) -> Iterator[dict[str, Any]]:
    for path in sorted(path for path in directory.rglob("*") if path.is_file() and not path.name.endswith(".crc")):
        with open(path, encoding="utf-8") as file:
            yield from map(json.loads, file)


def plan(description: str) -> str:
    """Return the tree of a plan, without its numbers."""
    tree = description.partition("== Physical Plan ==")[2].strip("\n").split("\n\n")[0]
    return "\n".join(re.sub(r" *\(\d+\)$", "", line).rstrip() for line in tree.splitlines()).rstrip()


# --- the page -------------------------------------------------------------------------------------------------------


def section(job: str, steps: dict[str, Step], timings: dict[str, Any]) -> str:
    """Return the generated part of a job's section. Raises ValueError where STEPS does not name what ran."""
    names = [name for name in timings if name not in ("total", "spark_start")]
    unknown = ({*names, *steps} - set(STEPS[job])) | (set(STEPS[job]) - {*names, *steps})
    if unknown:
        raise ValueError(f"{job}: STEPS and what ran do not have the same steps: {sorted(unknown)}")
    lines = ["| step | Spark stages | what it does |", "|---|---|---|"]
    lines += [f"| `{name}` | {_ran(steps.get(name))} | {text} |" for name, text in STEPS[job].items()]
    for name in STEPS[job]:
        for number, text in enumerate(sorted(steps[name].plans) if name in steps else (), 1):
            many = f": query {number} of {len(steps[name].plans)}" if len(steps[name].plans) > 1 else ""
            lines += ["", f"<details><summary>Plan of <code>{name}</code>{many}</summary>", "", "```", text, "```"]
            lines += ["", "</details>"]
    return "\n".join(lines)


def _ran(step: Step | None) -> str:
    if step is None:
        return "none: the driver"
    tasks = sum(step.stages)
    return f"{len(step.stages)}, of {tasks} task{'s' if tasks > 1 else ''}"


def picture(job: str, steps: dict[str, Step]) -> str:
    """Return the picture of a job's steps for graphviz."""
    lines = [
        f"// The steps of {job}. Written by tests/spark/jobs_page.py. Render: tools/diagrams",
        f"digraph {job} {{",
        '  graph [rankdir=LR, nodesep=0.25, ranksep=0.35, fontname="Helvetica", fontsize=12, pad=0.2]',
        '  node [shape=box, style="rounded,filled", margin="0.15,0.1", fontname="Helvetica", fontsize=11]',
        '  edge [color="#444444"]',
        "",
    ]
    beside = [name for name, text in STEPS[job].items() if "beside the comparison" in text]
    row = [name for name in STEPS[job] if name not in beside]
    for name in STEPS[job]:
        colours = 'fillcolor="#eef3fb", color="#4a6da7"' if name in steps else 'fillcolor="#f4f4f4", color="#777777"'
        count = len(steps[name].stages) if name in steps else 0
        ran = f"{count} Spark stage{'s' if count > 1 else ''}" if count else "driver"
        lines.append(f'  {name} [label="{name}\\n{ran}", {colours}]')
    lines.append(f"  {' -> '.join(row)}")
    lines += [f"  read -> {name} -> write" for name in beside]
    return "\n".join([*lines, "}", ""])


def written(
    page: str, directory: pathlib.Path, timings: dict[str, dict[str, Any]], last: int
) -> dict[pathlib.Path, str]:
    """Return the files as they must be: {path: text}."""
    found = steps_of(directory, last)
    files = {}
    for job in JOBS:
        region = re.compile(rf"(<!-- from Spark: {job} -->\n).*?(<!-- end -->)", re.DOTALL)
        text = section(job, found[job], timings[job])
        page, count = region.subn(lambda match, text=text: f"{match[1]}\n{text}\n\n{match[2]}", page)
        assert count == 1, f"{PAGE.name}: no region of {job}"
        files[DIAGRAMS / f"{job}.dot"] = picture(job, found[job])
    return {PAGE: page, **files}


def generate() -> dict[pathlib.Path, str]:
    """Run the jobs and return the files as they must be."""
    with tempfile.TemporaryDirectory() as directory, servers.workdir("jobs_page") as home:
        events_in = pathlib.Path(directory)
        timings, last = run_all(events_in, home)
        return written(PAGE.read_text(encoding="utf-8"), events_in, timings, last)


if __name__ == "__main__":
    for path, text in generate().items():
        path.write_text(text, encoding="utf-8")
        print(path.relative_to(parity.ROOT))
