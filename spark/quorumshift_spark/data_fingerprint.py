# Copyright: (c) 2026, Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The job that compares a cluster's records with a baseline: `spark-submit data_fingerprint.py --input DIR/job.json`.

job.json (0600)::

    {"nonce", "gate", "phase", "cluster_id", "output": existing directory,
     "views": {"cluster": {"bootstrap_servers": "host:port,...", "client": {options of security.py}},
               "baseline": {"path": output directory of an earlier run} or null},
     "fingerprint": {"topics": ["*"], "exclude": [], "purged_topics": ["*-repartition"], "chunk_offsets": 50000},
     "bounds": {"request_timeout_s": 60, "read_s": 3600, "rounds": 5, "pause_s": 2, "shown": 200}}

`fingerprint` and `bounds` show the defaults. Topics are shell patterns and never match internal topics. Applications
delete records of `purged_topics`, as Kafka Streams does in its repartition topics. The baseline's chunks are read again
with their bounds; `chunk_offsets` is the size of new ones. Reading may stand still for `request_timeout_s`.

Writes result.json, differences.parquet and the current fingerprint (fingerprint.store), the next run's baseline, to the
output directory. Exit code: 0 pass, 1 differ, 2 error, 3 incomplete. Only result.json with the job's nonce is valid.
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
from quorumshift_spark.fingerprint import client, compare, coordinators, fetch, plan, scan, store
from quorumshift_spark.fingerprint.cluster import Cluster, ClusterError, Metadata, chosen, now_ms
from quorumshift_spark.fingerprint.compare import Context, Fingerprint
from quorumshift_spark.fingerprint.coordinators import Coordinators
from quorumshift_spark.fingerprint.findings import CLUSTER, Findings
from quorumshift_spark.fingerprint.plan import PartitionState, TopicPartition
from quorumshift_spark.rules import BASELINE, SINCE
from quorumshift_spark.session import SessionError
from quorumshift_spark.session import start as start_spark

JOB = "data_fingerprint"

_FINGERPRINT_DEFAULTS: Dict[str, Any] = {
    "topics": ["*"],
    "exclude": [],
    "purged_topics": ["*-repartition"],
    "chunk_offsets": 50_000,
}
_BOUNDS_DEFAULTS = {"request_timeout_s": 60, "read_s": 3600, "rounds": 5, "pause_s": 2, "shown": 200}
# Fewer and larger polls: each poll costs Spark a seek. The consumer prefetches; at a log's end this fetch waits at the
# broker and delays all other requests of the connection, by default half a second a partition.
_CONSUMER = {
    "kafka.fetch.max.wait.ms": "10",
    "kafka.max.poll.records": "5000",
    "kafka.fetch.max.bytes": str(16 * 1024 * 1024),
    "kafka.max.partition.fetch.bytes": str(8 * 1024 * 1024),
    "kafka.receive.buffer.bytes": str(1024 * 1024),
}


class JobError(Exception):
    """The job cannot run. The message says what, where and what to do."""


class _Run:
    """The job and its result so far, so that the result of an error shows how far the job got."""

    def __init__(self, job: Mapping[str, Any], result: Dict[str, Any]) -> None:
        self.job = job
        self.result = result
        self.secrets: List[str] = []
        self.settings: Dict[str, Any] = {**_FINGERPRINT_DEFAULTS, **(job.get("fingerprint") or {})}
        self.bounds: Dict[str, Any] = {**_BOUNDS_DEFAULTS, **(job.get("bounds") or {})}

    @contextmanager
    def stage(self, name: str, view: str) -> Iterator[Dict[str, Any]]:
        """Time a stage and yield the result's entry for its view; an error is added to that entry."""
        started = time.monotonic()
        empty = {"read": {}, "state": {}, "seconds": 0.0, "error": None, "problems": [], "moved": 0}
        entry = self.result["views"].setdefault(view, empty)
        try:
            yield entry
        except Exception as error:
            entry["error"] = self.scrub(_text(error))
            raise
        finally:
            seconds = time.monotonic() - started
            self.result["timings"][name] = round(seconds, 3)
            entry["seconds"] = round(entry["seconds"] + seconds, 3)

    def scrub(self, text: str) -> str:
        """Return a text without the job's secrets, which a library's message may hold."""
        for secret in self.secrets:
            text = text.replace(secret, "********")
        return text


def run(job: Mapping[str, Any], directory: str, spark: SparkSession | None = None) -> Dict[str, Any]:
    """Run the job, write its result to the output directory and return it. Raises OSError.

    :arg directory: of the job's input (0700); holds the settings of Kafka's clients while the job runs.
    :arg spark: a session to use; without it the job creates and stops one.
    """
    output = job["output"]
    started = time.monotonic()
    for name in (results.NAME, results.DIFFERENCES, store.NAME):
        _remove(os.path.join(output, name))
    result = results.empty(results.ERROR, [], JOB)
    result.update({name: job.get(name) for name in ("nonce", "gate", "phase", "cluster_id")})
    result["versions"].update(spark=pyspark.__version__, python=platform.python_version())
    run_state = _Run(job, result)
    secrets_path = os.path.join(directory, f"client-{os.getpid()}.properties")
    try:
        findings, fingerprint = _fingerprint(run_state, secrets_path, spark)
        _evaluate(run_state, findings)
        with run_state.stage("write", CLUSTER):
            rows = store.write(output, fingerprint)
            results.write_differences(output, list(map(_row, findings.differences)))
            rows[results.DIFFERENCES] = len(findings.differences)
            for name, number in rows.items():
                result["files"][name] = results.file_facts(os.path.join(output, name), number)
    except Exception as error:
        result.update(verdict=results.ERROR, reasons=[run_state.scrub(_text(error))])
    finally:
        _remove(secrets_path)
    result["timings"]["total"] = round(time.monotonic() - started, 3)
    results.write(output, result)
    return result


def _evaluate(run_state: _Run, findings: Findings) -> None:
    """Add the findings and the verdict to the result."""
    result, shown = run_state.result, run_state.bounds["shown"]
    result["counts"] = findings.counts
    why = "; ".join(f"{number:,} {kind}: {reason}" for (kind, reason), number in sorted(findings.explained.items()))
    pair = {"left": BASELINE, "right": CLUSTER, "relation": SINCE}
    result["comparisons"] = [{**pair, "note": why, "counts": findings.counts}]
    result["differences"] = results.some_of_each(list(map(results.listed, findings.differences)), shown)
    result["differences_total"] = len(findings.differences)
    excused, undecided = (
        [{"kind": kind, "key": key, "left": BASELINE, "right": CLUSTER, "why": reason} for kind, key, reason in entries]
        for entries in (findings.excused, findings.skipped)
    )
    result.update(changed=excused[:shown], changed_total=len(excused))
    result.update(undecided=[{**entry, "differences": []} for entry in undecided[:shown]])
    result.update(undecided_total=len(undecided))
    reasons = []
    if findings.differences:
        reasons.append(f"{len(findings.differences)} differences, the first: {findings.differences[0].text()}")
    if undecided:
        reasons.append(f"{len(undecided)} could not be compared, the first: {undecided[0]['why']}")
    result.update(verdict=compare.verdict(findings), reasons=reasons)


def _row(difference: Difference) -> Dict[str, Any]:
    """Return a difference as a row of differences.parquet."""
    fields = {name: getattr(difference, name) for name in ("kind", "key", "field", "relation", "rule", "do")}
    left, right = difference.sides[BASELINE], difference.sides[CLUSTER]
    sides = {"left": BASELINE, "left_value": left, "right": CLUSTER, "right_value": right}
    return {"status": "differ", "why": "", **fields, **sides}


def _fingerprint(run_state: _Run, secrets_path: str, spark: SparkSession | None) -> tuple[Findings, Fingerprint]:
    """Read the baseline and the cluster. Return the findings and the next baseline."""
    job, settings, bounds = run_state.job, run_state.settings, run_state.bounds
    patterns, exclude, size = settings["topics"], settings["exclude"], int(settings["chunk_offsets"])
    if not 1 <= size <= 1 << 31:
        raise JobError(f"fingerprint.chunk_offsets {size} is not valid")
    whole = _baseline(run_state)

    with run_state.stage("describe", CLUSTER) as view:
        security = Security.from_options(job["views"][CLUSTER].get("client"), "views.cluster.client")
        java = client.java_settings(security)
        run_state.secrets = [value for key, value in java.items() if key in _SECRET_SETTINGS and value]
        run_state.secrets += [security.password] if security.password else []
        servers = job["views"][CLUSTER]["bootstrap_servers"]
        cluster = Cluster(servers, security, bounds["request_timeout_s"])
        taken = now_ms()
        found = cluster.metadata()
        if found.cluster_id != job["cluster_id"]:
            raise JobError(f"{servers} is cluster {found.cluster_id}, the job is for {job['cluster_id']}")
        hidden = cluster.hidden(found)
        now = Coordinators(cluster.groups(), cluster.transactions(found), cluster.retentions(found))
        topics = chosen(found.topics, patterns, exclude)
        was = compare.part(whole, patterns, [*exclude, *hidden]) if whole else None
        internal = [name for name in coordinators.INTERNAL if name in found.topics]
        states = _states(run_state, cluster, found, [*topics, *internal], was)
        log_ends = cluster.high_watermarks(
            (name, number) for name, topic in found.topics.items() for number in topic.leaders
        )
        gone = coordinators.missing(was.coordinators, now, found.topics, states) if was else []
        since = {one.partition: was.partitions[one.partition].end for one in gone if one.partition in was.partitions}
        places = {tp: (begin, states[tp].end) for tp, begin in since.items() if tp in states}
        tombstones = cluster.tombstones(places, (record for one in gone for record in one.records))
        view["state"] = {"time_ms": taken, "topics": len(topics)}

    old_chunks = plan.by_partition(was.chunks) if was else {}
    old_states = was.partitions if was else {}
    read = [state for tp, state in sorted(states.items()) if tp[0] not in coordinators.INTERNAL]
    wanted = [
        plan.ranges(state, old_states.get(state.tp), old_chunks.get(state.tp, ()), size)
        for state in read
        if not state.compacted
    ]
    keyed = [state for state in read if state.compacted or (state.tp in old_states and old_states[state.tp].compacted)]
    with run_state.stage("spark_start", CLUSTER):
        session = spark or start_spark(f"quorumshift {JOB}")
    try:
        with run_state.stage("read", CLUSTER), _bounded(session, bounds["read_s"]):
            chunks, unread = fetch.read(
                session.sparkContext,
                [part for part in wanted if part],
                lambda: cluster.metadata().leaders(),
                cluster.log_starts,
                security.with_content(),  # executors may lack these files
                bounds["request_timeout_s"],
            )
            options = {"kafka.bootstrap.servers": servers, **_CONSUMER, **client.source_options(java, secrets_path)}
            keys = scan.newest_by_key(session, options, [state for state in keyed if state.log_start < state.end])
    finally:
        if spark is None:
            session.stop()
    with run_state.stage("compare", CLUSTER) as view:
        starts = cluster.log_starts(states)  # retention may have moved them during the scan
        states = {tp: state._replace(log_start=max(state.log_start, starts[tp])) for tp, state in states.items()}
        chunks = [chunk for chunk in chunks if chunk.end > states[chunk.topic, chunk.partition].log_start]
        ids = {name: topic.id for name, topic in found.topics.items()}
        current = Fingerprint(job["cluster_id"], taken, ids, states, chunks, keys, now)
        view["read"] = compare.sizes(current)
        view["state"]["records"] = sum(chunk.records for chunk in chunks)
        findings = compare.coverage(job.get("gate"), whole, ids, topics, patterns, exclude, hidden)
        context = Context(log_ends, settings["purged_topics"], unread, gone, tombstones, now_ms())
        findings.add(compare.compare(was, current, context))
        kept = [chunk for chunk in chunks if chunk.begin >= states[chunk.topic, chunk.partition].log_start]
    return findings, current._replace(chunks=kept)


_SECRET_SETTINGS = ("sasl.jaas.config", "ssl.keystore.key", "ssl.key.password")


def _baseline(run_state: _Run) -> Fingerprint | None:
    """Return the baseline; None if the job has none."""
    job = run_state.job
    path = (job["views"].get(BASELINE) or {}).get("path")
    if not path:
        return None
    with run_state.stage("read_baseline", BASELINE) as view:
        was = store.read(path)
        if was.cluster_id != job["cluster_id"]:
            raise JobError(f"{path}: the baseline is of cluster {was.cluster_id}, the job is for {job['cluster_id']}")
        view.update(read=compare.sizes(was), state={"time_ms": was.taken_ms})
    return was


def _states(
    run_state: _Run, cluster: Cluster, found: Metadata, topics: Sequence[str], was: Fingerprint | None
) -> Dict[TopicPartition, PartitionState]:
    """Return the states of the chosen partitions. Re-reads partitions that end before the baseline's end: a new leader
    knows its high watermark and the end of a transaction only moments after its election (KIP-207)."""
    states = compare.states(cluster.states(found, topics))
    ends = {tp: state.end for tp, state in was.partitions.items()} if was else {}
    for number in range(1, run_state.bounds["rounds"] + 1):
        short = [tp for tp, state in states.items() if state.end < ends.get(tp, 0)]
        if not short:
            break
        started = time.monotonic()
        time.sleep(run_state.bounds["pause_s"])
        states.update(compare.states(cluster.states(found, sorted({topic for topic, _number in short}))))
        left = sum(1 for tp in short if states[tp].end < ends[tp])
        run_state.result["rounds"].append(
            {
                "number": number,
                "keys": len(short),
                "resolved": len(short) - left,
                "proven": 0 if number < run_state.bounds["rounds"] else left,
                "seconds": round(time.monotonic() - started, 3),
                "fence": {},
            }
        )
    return states


@contextmanager
def _bounded(spark: SparkSession, seconds: float) -> Iterator[None]:
    """Cancel Spark's jobs after this time. Raises JobError then."""
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
                f"the records were not read within {seconds:g} s. "
                "Raise bounds.read_s, add executors or read fewer topics"
            ) from error
        raise
    finally:
        timer.cancel()


def _remove(path: str) -> None:
    if os.path.lexists(path):
        os.unlink(path)


def _text(error: BaseException) -> str:
    """Return an error as one line; for a Java exception its innermost cause, without the stack."""
    java = getattr(error, "java_exception", None)
    if java is not None:
        while java.getCause() is not None:
            java = java.getCause()
        return f"Spark: {java.toString()}"
    expected = (JobError, SessionError, ClusterError, SecurityError, client.ClientError, store.StoreError)
    return str(error) if isinstance(error, expected) else f"{error.__class__.__name__}: {error}"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the job and return the exit code."""
    parser = argparse.ArgumentParser(prog=JOB, description="Compare a Kafka cluster's data with its baseline.")
    parser.add_argument("--input", required=True, help="job.json, 0600")
    path = os.path.abspath(parser.parse_args(arguments).input)
    if os.stat(path).st_mode & 0o077:
        print(f"{path} may hold secrets and other users can read it. Run: chmod 600 {path}", file=sys.stderr)
        return results.EXIT_CODES[results.ERROR]
    try:
        job = _load(path)
        result = run(job, os.path.dirname(path))
    except (JobError, OSError) as error:
        # Without a job there is no output directory; a missing result opens no gate
        print(f"{JOB}: {error}", file=sys.stderr)
        return results.EXIT_CODES[results.ERROR]
    try:
        report.write(job["output"])
    except Exception as error:  # the report does not affect the verdict
        print(f"{JOB}: cannot write the report: {error.__class__.__name__}", file=sys.stderr)
    print(f"{JOB}: {result['verdict']}" + "".join(f"\n- {reason}" for reason in result["reasons"]))
    return results.EXIT_CODES[result["verdict"]]


def _load(path: str) -> Dict[str, Any]:
    """Read job.json. Raises JobError, OSError. Messages never show a value, which may be secret."""
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
            raise JobError(f"{path}: unknown key '{name}.{unknown[0]}'; the keys are {', '.join(known)}")
    return job


if __name__ == "__main__":
    sys.exit(main())
