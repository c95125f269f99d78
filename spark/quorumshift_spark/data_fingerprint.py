# Copyright: (c) 2026, Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The job that compares a cluster's data with its baseline: `spark-submit data_fingerprint.py --input DIR/job.json`.

job.json (0600)::

    {"nonce", "gate", "phase", "cluster_id", "output": directory that exists,
     "views": {"cluster": {"bootstrap_servers": "host:port,...", "client": {options of security.py}},
               "baseline": {"path": output directory of an earlier run} or null},
     "fingerprint": {"topics": ["*"], "exclude": [], "purged_topics": ["*-repartition"],
                     "isolation": "read_uncommitted", "chunk_offsets": 50000, "min_partitions": null},
     "bounds": {"request_timeout_s": 60, "read_s": 3600, "rounds": 5, "pause_s": 2, "shown": 200}}

Only `views` and `output` have no default. Topics are chosen by patterns (shell style; never internal ones);
`purged_topics` are those whose records applications delete, as Kafka Streams does in its repartition topics. A
baseline's own isolation and chunk size count, for only equal chunks can be compared.

The output directory gets result.json, differences.parquet, and the fingerprint of now (fingerprint.store), the next
run's baseline. Exit code: 0 pass, 1 differ, 2 error, 3 incomplete; what counts is result.json with the job's nonce.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import sys
import threading
import time
from contextlib import contextmanager
from typing import Any, Dict, Iterator, List, Mapping, Sequence

import pyspark
from ansible_collections.quorumshift.kafka.plugins.module_utils.security import Security, SecurityError
from pyspark.sql import SparkSession

from quorumshift_spark import report
from quorumshift_spark import result as results
from quorumshift_spark.compare import Difference
from quorumshift_spark.fingerprint import client, compare, plan, scan, store
from quorumshift_spark.fingerprint.cluster import Cluster, ClusterError, chosen, now_ms
from quorumshift_spark.fingerprint.compare import Fingerprint
from quorumshift_spark.fingerprint.findings import CLUSTER, Findings
from quorumshift_spark.fingerprint.plan import PartitionState, Range, TopicPartition
from quorumshift_spark.rules import BASELINE, SINCE

JOB = "data_fingerprint"

_FINGERPRINT_DEFAULTS: Dict[str, Any] = {
    "topics": ["*"],
    "exclude": [],
    "purged_topics": ["*-repartition"],
    "isolation": plan.READ_UNCOMMITTED,
    "chunk_offsets": 50_000,
    "min_partitions": None,
}
_BOUNDS_DEFAULTS = {"request_timeout_s": 60, "read_s": 3600, "rounds": 5, "pause_s": 2, "shown": 200}
# Fewer and larger polls: Spark hands over one record at a time, and each poll costs it a seek. The consumer asks for
# what comes next as soon as it has handed over; at a log's end that waits at the broker, which answers nothing else of
# the connection before it: half a second a partition by default.
_CONSUMER = {
    "kafka.fetch.max.wait.ms": "10",
    "kafka.max.poll.records": "5000",
    "kafka.fetch.max.bytes": str(16 * 1024 * 1024),
    "kafka.max.partition.fetch.bytes": str(8 * 1024 * 1024),
    "kafka.receive.buffer.bytes": str(1024 * 1024),
}


class JobError(Exception):
    """The job cannot be done; the message says what, where and what to do."""


class _Run:
    """What is known so far, so that an error's result tells how far it came."""

    def __init__(self, job: Mapping[str, Any], result: Dict[str, Any]) -> None:
        self.job = job
        self.result = result
        self.secrets: List[str] = []
        self.settings: Dict[str, Any] = {**_FINGERPRINT_DEFAULTS, **(job.get("fingerprint") or {})}
        self.bounds: Dict[str, Any] = {**_BOUNDS_DEFAULTS, **(job.get("bounds") or {})}

    @contextmanager
    def stage(self, name: str, view: str) -> Iterator[Dict[str, Any]]:
        """Time a stage; what goes wrong in it is noted at the view that it reads."""
        begun = time.monotonic()
        empty = {"read": {}, "state": {}, "seconds": 0.0, "error": None, "problems": [], "moved": 0}
        reported = self.result["views"].setdefault(view, empty)
        try:
            yield reported
        except Exception as error:
            reported["error"] = self.scrub(_text(error))
            raise
        finally:
            seconds = time.monotonic() - begun
            self.result["timings"][name] = round(seconds, 3)
            reported["seconds"] = round(reported["seconds"] + seconds, 3)

    def scrub(self, text: str) -> str:
        """Text without the secrets of this job, whatever a library put into its message."""
        for secret in self.secrets:
            text = text.replace(secret, "********")
        return text


def run(job: Mapping[str, Any], directory: str, spark: SparkSession | None = None) -> Dict[str, Any]:
    """Do the job and return its result, which stands in the output directory then. Raises OSError.

    :arg directory: of the job's input (0700): the settings of Kafka's clients are put there for its duration.
    :arg spark: a session to use; without it one is made, and stopped in the end.
    """
    output = job["output"]
    begun = time.monotonic()
    for name in (results.NAME, results.DIFFERENCES, store.NAME):
        _remove(os.path.join(output, name))
    result = results.empty(results.ERROR, [], JOB)
    result.update({name: job.get(name) for name in ("nonce", "gate", "phase", "cluster_id")})
    result["versions"].update(spark=pyspark.__version__, python=platform.python_version())
    work = _Run(job, result)
    secrets_path = os.path.join(directory, f"client-{os.getpid()}.properties")
    try:
        found, fingerprint = _fingerprint(work, secrets_path, spark)
        _detect(work, found)
        with work.stage("write", CLUSTER):
            rows = store.write(output, fingerprint)
            results.write_differences(output, list(map(_row, found.differences)))
            rows[results.DIFFERENCES] = len(found.differences)
            for name, number in rows.items():
                result["files"][name] = results.file_facts(os.path.join(output, name), number)
    except Exception as error:
        result.update(verdict=results.ERROR, reasons=[work.scrub(_text(error))])
    finally:
        _remove(secrets_path)
    result["timings"]["total"] = round(time.monotonic() - begun, 3)
    results.write(output, result)
    return result


def _detect(work: _Run, found: Findings) -> None:
    """Put what was found into the result."""
    result, shown = work.result, work.bounds["shown"]
    result["counts"] = found.counts
    why = "; ".join(f"{number:,} {kind}: {reason}" for (kind, reason), number in sorted(found.explained.items()))
    pair = {"left": BASELINE, "right": CLUSTER, "relation": SINCE}
    result["comparisons"] = [{**pair, "note": why, "counts": found.counts}]
    result["differences"] = results.some_of_each([results.shown(one) for one in found.differences], shown)
    result["differences_total"] = len(found.differences)
    unsettled = [
        {"kind": kind, "key": key, "left": BASELINE, "right": CLUSTER, "why": reason, "differences": []}
        for kind, key, reason in found.skipped
    ]
    result.update(unsettled=unsettled[:shown], unsettled_total=len(unsettled))
    reasons = []
    if found.differences:
        reasons.append(f"{len(found.differences)} differences, the first: {found.differences[0].text()}")
    if unsettled:
        reasons.append(f"{len(unsettled)} could not be compared, the first: {unsettled[0]['why']}")
    result.update(verdict=compare.verdict(found), reasons=reasons)


def _row(one: Difference) -> Dict[str, Any]:
    """A difference as differences.parquet has it."""
    reported = {name: getattr(one, name) for name in ("kind", "key", "field", "relation", "rule", "do")}
    left, right = one.sides[BASELINE], one.sides[CLUSTER]
    sides = {"left": BASELINE, "left_value": left, "right": CLUSTER, "right_value": right}
    return {"status": "differ", "why": "", **reported, **sides}


def _fingerprint(work: _Run, secrets_path: str, spark: SparkSession | None) -> tuple[Findings, Fingerprint]:
    job, settings = work.job, work.settings
    was = None
    baseline = (job["views"].get(BASELINE) or {}).get("path")
    if baseline:
        with work.stage("read_baseline", BASELINE) as view:
            was = store.read(baseline)
            if was.cluster_id != job["cluster_id"]:
                raise JobError(
                    f"{baseline}: the baseline is of cluster {was.cluster_id}, this job of {job['cluster_id']}"
                )
            topics = {topic: [] for topic, _partition in was.partitions}
            kept = chosen(topics, settings["topics"], settings["exclude"])
            was = was._replace(partitions={place: one for place, one in was.partitions.items() if place[0] in kept})
            view.update(read=compare.sizes(was), state={"time_ms": was.taken_ms})
    size = was.chunk_offsets if was else int(settings["chunk_offsets"])
    isolation = was.isolation if was else settings["isolation"]
    if isolation not in (plan.READ_COMMITTED, plan.READ_UNCOMMITTED) or not 1 <= size <= 1 << 31:
        raise JobError(f"fingerprint.isolation {isolation!r} or chunk_offsets {size!r} is none that there is")

    with work.stage("describe", CLUSTER) as view:
        security = Security.from_options(job["views"][CLUSTER].get("client"), "views.cluster.client")
        java = client.java_settings(security)
        work.secrets = [value for key, value in java.items() if key in _SECRET_SETTINGS and value]
        work.secrets += [security.password] if security.password else []
        servers = job["views"][CLUSTER]["bootstrap_servers"]
        cluster = Cluster(servers, security, work.bounds["request_timeout_s"])
        if cluster.cluster_id() != job["cluster_id"]:
            raise JobError(f"{servers}: this is cluster {cluster.cluster_id()}, the job is for {job['cluster_id']}")
        taken = now_ms()
        groups = cluster.groups()
        everything = cluster.partitions_of_all()
        topics = chosen(everything, settings["topics"], settings["exclude"])
        states = _settled(work, cluster, topics, isolation, was)
        log_ends = cluster.high_watermarks((topic, one) for topic, numbers in everything.items() for one in numbers)
        retention_ms = cluster.offsets_retention_ms()
        view["state"] = {"time_ms": taken, "topics": len(topics)}

    options = {
        "kafka.bootstrap.servers": servers,
        **_CONSUMER,
        **({"minPartitions": str(settings["min_partitions"])} if settings["min_partitions"] else {}),
        **client.source_options(java, secrets_path),
    }
    with work.stage("spark_start", CLUSTER):
        session = spark or SparkSession.builder.appName(f"quorumshift {JOB}").getOrCreate()
    try:
        with work.stage("read", CLUSTER), _bounded(session, work.bounds["read_s"]):
            old_ranges, new_ranges, key_ranges = _ranges(states.values(), was)
            old = scan.chunk_sums(session, options, old_ranges, size, isolation)
            new = scan.chunk_sums(session, options, new_ranges, size, isolation)
            keys = scan.newest_by_key(session, options, key_ranges)
    finally:
        if spark is None:
            session.stop()
    with work.stage("compare", CLUSTER) as view:
        chunks = plan.chunks(old_ranges, size, old) + plan.chunks(new_ranges, size, new)
        starts = cluster.log_starts(states)  # retention may have moved them while records were read
        states = {place: one._replace(log_start=max(one.log_start, starts[place])) for place, one in states.items()}
        now = Fingerprint(job["cluster_id"], taken, size, isolation, states, chunks, keys, groups)
        view["read"] = compare.sizes(now)
        view["state"]["records"] = sum(chunk.count for chunk in chunks)
        found = compare.compare(was, now, log_ends, retention_ms, settings["purged_topics"])
        kept = [one for one in plan.merge(chunks, size) if one.begin >= states[one.topic, one.partition].log_start]
    return found, now._replace(chunks=kept)


_SECRET_SETTINGS = ("sasl.jaas.config", "ssl.keystore.key", "ssl.key.password")


def _settled(
    work: _Run, cluster: Cluster, topics: Mapping[str, Sequence[int]], isolation: str, was: Fingerprint | None
) -> Dict[TopicPartition, PartitionState]:
    """The state of the chosen partitions, re-read while a log seems to end before the baseline did: a new leader learns
    its high watermark, and a transaction's end, only moments after its election (KIP-207)."""
    states = compare.states(cluster.states(topics, isolation))
    for number in range(1, work.bounds["rounds"] + 1):
        ends = {place: one.end for place, one in was.partitions.items()} if was else {}
        short = [place for place, one in states.items() if one.end < ends.get(place, 0)]
        if not short:
            break
        begun = time.monotonic()
        time.sleep(work.bounds["pause_s"])
        again: Dict[str, List[int]] = {}
        for topic, partition in short:
            again.setdefault(topic, []).append(partition)
        states.update(compare.states(cluster.states(again, isolation)))
        left = sum(1 for place in short if states[place].end < ends[place])
        work.result["rounds"].append(
            {
                "number": number,
                "keys": len(short),
                "settled": len(short) - left,
                "proven": 0 if number < work.bounds["rounds"] else left,
                "seconds": round(time.monotonic() - begun, 3),
                "fence": {},
            }
        )
    return states


def _ranges(states: Sequence[PartitionState], was: Fingerprint | None) -> tuple[List[Range], List[Range], List[Range]]:
    """What to read in chunks below the baseline's ends, in chunks above them, and by key.

    A partition that is not compacted any more is read both ways: by key for this comparison, in chunks for the next.
    """
    old, new, keyed = [], [], []
    for now in states:
        before = was.partitions.get(now.place) if was else None
        if (now.compacted or (before and before.compacted)) and now.log_start < now.end:
            keyed.append(Range(now.topic, now.partition, now.log_start, now.end))
        if now.compacted:
            continue
        below, above = plan.ranges(now, before)
        old += [below] if below else []
        new += [above] if above else []
    return old, new, keyed


@contextmanager
def _bounded(spark: SparkSession, seconds: float) -> Iterator[None]:
    """End Spark's jobs after that long."""
    late = threading.Event()

    def cancel() -> None:
        late.set()
        spark.sparkContext.cancelAllJobs()

    timer = threading.Timer(seconds, cancel)
    timer.daemon = True
    timer.start()
    try:
        yield
    except Exception as error:
        if late.is_set():
            raise JobError(
                f"the records were not read within {seconds:g} s; give bounds.read_s, more executors or fewer topics"
            ) from error
        raise
    finally:
        timer.cancel()


def _remove(path: str) -> None:
    if os.path.lexists(path):
        os.unlink(path)


def _text(error: BaseException) -> str:
    """An error as one sentence; of a Java exception its innermost cause, not its stack."""
    java = getattr(error, "java_exception", None)
    if java is not None:
        while java.getCause() is not None:
            java = java.getCause()
        return f"Spark: {java.toString()}"
    expected = (JobError, ClusterError, SecurityError, client.ClientError, store.StoreError, plan.UnplannedRecords)
    return str(error) if isinstance(error, expected) else f"{error.__class__.__name__}: {error}"


def main(arguments: Sequence[str] | None = None) -> int:
    """The command line."""
    parser = argparse.ArgumentParser(prog=JOB, description="Compare a Kafka cluster's data with its baseline.")
    parser.add_argument("--input", required=True, help="job.json, 0600")
    path = os.path.abspath(parser.parse_args(arguments).input)
    if os.stat(path).st_mode & 0o077:
        print(f"{path}: others can read it and it may hold secrets; chmod 600", file=sys.stderr)
        return results.EXIT_CODES[results.ERROR]
    try:
        job = _load(path)
        result = run(job, os.path.dirname(path))
    except (JobError, OSError) as error:
        # Without a job there is no place for a result, and a missing result opens nothing
        print(f"{JOB}: {error}", file=sys.stderr)
        return results.EXIT_CODES[results.ERROR]
    try:
        report.write(job["output"])
    except Exception as error:  # a page that cannot be drawn changes no verdict
        print(f"{JOB}: no report could be written: {error.__class__.__name__}", file=sys.stderr)
    print(f"{JOB}: {result['verdict']}" + "".join(f"\n- {reason}" for reason in result["reasons"]))
    return results.EXIT_CODES[result["verdict"]]


def _load(path: str) -> Dict[str, Any]:
    """Read job.json. Raises JobError, OSError; a message never shows a value, which may be secret."""
    with open(path, encoding="utf-8") as file:
        try:
            job = json.load(file)
        except ValueError:
            raise JobError(f"{path} is not JSON") from None
    if not isinstance(job, dict):
        raise JobError(f"{path} is not a JSON object")
    for name, kind in (("nonce", str), ("cluster_id", str), ("output", str), ("views", dict)):
        if not isinstance(job.get(name), kind) or not job[name]:
            raise JobError(f"{path}: {name!r} is missing or not of type {kind.__name__}")
    if not (job["views"].get(CLUSTER) or {}).get("bootstrap_servers"):
        raise JobError(f"{path}: 'views.{CLUSTER}.bootstrap_servers' is missing")
    for name, known in (("fingerprint", _FINGERPRINT_DEFAULTS), ("bounds", _BOUNDS_DEFAULTS)):
        unknown = sorted(set(job.get(name) or {}) - set(known))
        if unknown:
            raise JobError(f"{path}: '{name}.{unknown[0]}' is not known; there are {', '.join(known)}")
    return job


if __name__ == "__main__":
    sys.exit(main())
