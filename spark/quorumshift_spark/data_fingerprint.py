# Copyright: (c) 2026, Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The job that compares a cluster's records with a baseline: `spark-submit data_fingerprint.py --input DIR/job.json`.

job.json (0600)::

    {"nonce", "gate", "phase", "cluster_id", "output": existing directory, "progress": directory or null,
     "views": {"cluster": {"bootstrap_servers": "host:port,...", "client": {options of security.py}},
               "baseline": {"path": output directory of an earlier run} or null},
     "fingerprint": {"topics": ["*"], "exclude": [], "purged_topics": ["*-repartition"], "chunk_offsets": 50000,
                     "samples": [{"topics": ["clicks-*"], "last": 1000000},
                                 {"topics": ["audit"], "percent": 5, "seed": 0}]},
     "bounds": {"request_timeout_s": 60, "read_s": 3600, "rounds": 5, "pause_s": 2, "shown": 200}}

`bounds` and `fingerprint` show the defaults, but for `samples` ([]). Topics are shell patterns and never match internal
topics. Applications delete records of `purged_topics`, as Kafka Streams does in its repartition topics. Of the topics
of `samples` only the last records of each partition, or a share of the chunks, are read; compacted topics are always
read as a whole. The baseline's chunks are read again with their bounds; `chunk_offsets` is the size of new ones.
Reading may stand still for `request_timeout_s`. What is in `progress` from a job that did not end is not read again.

Writes result.json, differences.parquet and the current fingerprint (fingerprint.store), the next run's baseline, to the
output directory. Exit code: 0 pass, 1 differ, 2 error, 3 incomplete. Only result.json with the job's nonce is valid.
"""

from __future__ import annotations

import argparse
import fnmatch
import hashlib
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
from quorumshift_spark.fingerprint import compare, coordinators, fetch, plan, store
from quorumshift_spark.fingerprint.cluster import Cluster, ClusterError, Metadata, chosen, now_ms
from quorumshift_spark.fingerprint.compacted import Keys, Side
from quorumshift_spark.fingerprint.compare import Context, Fingerprint
from quorumshift_spark.fingerprint.coordinators import Coordinators
from quorumshift_spark.fingerprint.findings import CLUSTER, Findings
from quorumshift_spark.fingerprint.plan import Chunk, PartitionState, Range, Sample, TopicPartition
from quorumshift_spark.fingerprint.progress import Progress, ProgressError
from quorumshift_spark.rules import BASELINE, SINCE
from quorumshift_spark.session import SessionError
from quorumshift_spark.session import start as start_spark

JOB = "data_fingerprint"

_FINGERPRINT_DEFAULTS: Dict[str, Any] = {
    "topics": ["*"],
    "exclude": [],
    "purged_topics": ["*-repartition"],
    "chunk_offsets": 50_000,
    "samples": [],
}
_BOUNDS_DEFAULTS = {"request_timeout_s": 60, "read_s": 3600, "rounds": 5, "pause_s": 2, "shown": 200}


class JobError(Exception):
    """The job cannot run. The message says what, where and what to do."""


class Unfinished(Exception):
    """The time was over before all was read. The message says how much was, and what to do."""


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
    progress = None
    try:
        place = os.path.expanduser(job.get("progress") or os.path.join(directory, "progress"))
        progress = Progress(place, _identity(job))
        findings, fingerprint = _fingerprint(run_state, progress, directory, spark)
        _evaluate(run_state, findings)
        with run_state.stage("write", CLUSTER):
            rows = store.write(output, fingerprint)
            results.write_differences(output, [results.row(one, BASELINE, CLUSTER) for one in findings.differences])
            rows[results.DIFFERENCES] = len(findings.differences)
            for name, number in rows.items():
                result["files"][name] = results.file_facts(os.path.join(output, name), number)
    except Unfinished as error:
        result.update(verdict=results.INCOMPLETE, reasons=[str(error)])
    except Exception as error:
        result.update(verdict=results.ERROR, reasons=[run_state.scrub(_text(error))])
    finally:
        if progress:
            # After a difference all is read again: a replica may have been repaired
            if result["verdict"] in (results.PASS, results.DIFFER):
                progress.drop()
            progress.close()
    result["timings"]["total"] = round(time.monotonic() - started, 3)
    results.write(output, result)
    return result


def _identity(job: Mapping[str, Any]) -> Dict[str, Any]:
    """Return what the progress of an earlier job must share with this one: else it is of another comparison."""
    identity = {name: job.get(name) for name in ("cluster_id", "gate", "phase")}
    path = (job["views"].get(BASELINE) or {}).get("path")
    baseline = os.path.join(path, store.NAME) if path else None
    if baseline and os.path.exists(baseline):
        with open(baseline, "rb") as file:
            identity["baseline"] = hashlib.sha256(file.read()).hexdigest()
    return identity


def _evaluate(run_state: _Run, findings: Findings) -> None:
    """Add the findings and the verdict to the result."""
    result, shown = run_state.result, run_state.bounds["shown"]
    result["counts"] = findings.counts
    notes = [f"{number:,} {kind}: {reason}" for (kind, reason), number in sorted(findings.explained.items())]
    samples = (result["views"].get(CLUSTER) or {}).get("state", {}).get("samples")
    if samples:
        texts = [f"{topic} ({text})" for topic, text in samples.items()]
        more = f" and {len(texts) - 5} more" if len(texts) > 5 else ""
        notes.insert(0, f"{len(texts)} topics by samples: {', '.join(texts[:5])}{more}")
    why = "; ".join(notes)
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


def _fingerprint(
    run_state: _Run, progress: Progress, directory: str, spark: SparkSession | None
) -> tuple[Findings, Fingerprint]:
    """Read the baseline and the cluster. Return the findings and the next baseline."""
    job, settings, bounds = run_state.job, run_state.settings, run_state.bounds
    patterns, exclude = settings["topics"], settings["exclude"]
    whole = _baseline(run_state)

    with run_state.stage("describe", CLUSTER) as view:
        security = Security.from_options(job["views"][CLUSTER].get("client"), "views.cluster.client")
        run_state.secrets = [
            secret for secret in (security.password, security.tls and security.tls.keypassword) if secret
        ]
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
        sampled = _samples(settings["samples"], states)
        view["state"] = {"time_ms": taken, "topics": len(topics)}

    wanted, finished = progress.finished(_wanted(settings["chunk_offsets"], states, was, sampled), states)
    chunks = list(finished)
    sizes = {
        tp: cluster.size(tp, found.topics[tp[0]].leaders[tp[1]])
        for tp, state in states.items()
        if tp[0] in sampled or (was and tp[0] in was.samples)
    }
    with run_state.stage("spark_start", CLUSTER):
        session = spark or start_spark(f"quorumshift {JOB}")
    try:
        with run_state.stage("read", CLUSTER), _bounded(session, bounds["read_s"]) as late:
            try:
                unread = fetch.read(
                    session.sparkContext,
                    wanted,
                    lambda: cluster.metadata().leaders(),
                    cluster.log_starts,
                    security.with_content(),  # executors may lack these files
                    bounds["request_timeout_s"],
                    lambda *read: chunks.extend(progress.add(*read)),
                    late,
                )
            except Exception as error:
                if not late.is_set():
                    raise
                raise Unfinished(_unfinished(wanted, chunks[len(finished) :], len(finished), bounds)) from error
        with run_state.stage("compare_keys", CLUSTER):
            here = Side([chunk for chunk in chunks if chunk.keys is not None], progress.keys)
            there = Side([chunk for chunk in was.chunks if chunk.keys is not None], was.keys) if was else None
            keys = Keys(session, there, here)
            starts = cluster.log_starts(states)  # retention may have moved them during the scan
            states = {tp: state._replace(log_start=max(state.log_start, starts[tp])) for tp, state in states.items()}
            tallies = keys.tallies(_compared(was.partitions) if was else {}, _compared(states))
            newest = keys.newest({record: one.partition for one in gone for record in (*one.records, *one.of_group)})
    finally:
        if spark is None:
            session.stop()
    with run_state.stage("compare", CLUSTER) as view:
        chunks = [chunk for chunk in chunks if chunk.end > states[chunk.topic, chunk.partition].log_start]
        ids = {name: topic.id for name, topic in found.topics.items()}
        sampled = {**(was.samples if was else {}), **sampled}
        current = Fingerprint(job["cluster_id"], taken, ids, states, chunks, progress.keys, now, sampled)
        view["read"] = compare.sizes(current)
        view["state"]["records"] = sum(chunk.records for chunk in chunks if chunk.topic not in coordinators.INTERNAL)
        if finished:
            view["state"]["chunks_of_an_earlier_job"] = len(finished)
        samples = _sample_texts(was, current)
        if samples:
            view["state"]["samples"] = samples
        findings = compare.coverage(job.get("gate"), whole, ids, topics, patterns, exclude, hidden)
        context = Context(log_ends, settings["purged_topics"], unread, gone, newest, tallies, sizes, now_ms())
        findings.add(compare.compare(was, current, context))
        kept = [chunk for chunk in chunks if chunk.keys is not None or chunk.begin >= states[chunk[:2]].log_start]
    return findings, current._replace(chunks=kept)


def _compared(states: Mapping[TopicPartition, PartitionState]) -> Dict[TopicPartition, PartitionState]:
    """Return the partitions without those of the coordinators: of these only entries that are gone are looked up."""
    return {tp: state for tp, state in states.items() if tp[0] not in coordinators.INTERNAL}


def _samples(
    classes: Sequence[Mapping[str, Any]], states: Mapping[TopicPartition, PartitionState]
) -> Dict[str, Sample]:
    """Return the sample of each topic that a class of topics matches; the first class decides."""
    found = {}
    for topic in {topic for (topic, _number), state in states.items() if not state.compacted}:
        for one in classes:
            if topic not in coordinators.INTERNAL and any(fnmatch.fnmatchcase(topic, name) for name in one["topics"]):
                found[topic] = Sample(one.get("last"), one.get("percent"), one.get("seed") or 0)
                break
    return found


def _wanted(
    size: int,
    states: Mapping[TopicPartition, PartitionState],
    was: Fingerprint | None,
    samples: Mapping[str, Sample],
) -> List[Range]:
    """Return what is to be read. Of a topic that is compacted, or was at the baseline, also the keys."""
    old_chunks = plan.by_partition(was.chunks) if was else {}
    old_states = was.partitions if was else {}
    wanted: List[Range] = []
    for tp, state in sorted(states.items()):
        before, old = old_states.get(tp), old_chunks.get(tp, [])
        plain, keyed = ([chunk for chunk in old if (chunk.keys is None) == kind] for kind in (True, False))
        if tp[0] not in coordinators.INTERNAL and not state.compacted:
            wanted += plan.ranges(state, before, plain, size, samples.get(tp[0]))
        if tp[0] in coordinators.COORDINATORS.values() or state.compacted or (before and before.compacted):
            wanted += plan.ranges(state, before, keyed, size, keyed=True)
    return wanted


def _unfinished(wanted: Sequence[Range], read: Sequence[Chunk], finished: int, bounds: Mapping[str, Any]) -> str:
    """Return what to do when the time is over."""
    done, total = len(read) + finished, sum(len(part.bounds) - 1 for part in wanted) + finished
    return (
        f"{done:,} of {total:,} chunks of records were read within {bounds['read_s']:g} s. Run the playbook again: it "
        "continues with the others. To finish in one run, raise quorumshift_spark_timeout_s, add executors, or read a "
        "sample of large topics (quorumshift_fingerprint_samples)"
    )


def _sample_texts(was: Fingerprint | None, current: Fingerprint) -> Dict[str, str]:
    """Return, for each topic of which a sample was read, what was compared and what was read."""
    compared = compare.shares(was) if was else {}
    texts = {}
    for topic, share in compare.shares(current).items():
        then = f"{compared[topic]:.2%} of the baseline's offsets compared, " if topic in compared else ""
        texts[topic] = f"{then}{share:.2%} of the offsets read: {current.samples[topic]}"
    return texts


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
def _bounded(spark: SparkSession, seconds: float) -> Iterator[threading.Event]:
    """Yield an event that is set after this time, when Spark's jobs are cancelled."""
    late = threading.Event()

    def cancel() -> None:
        late.set()
        spark.sparkContext.cancelAllJobs()

    timer = threading.Timer(seconds, cancel)
    timer.daemon = True
    timer.start()
    try:
        yield late
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
    expected = (JobError, SessionError, ClusterError, SecurityError, ProgressError, store.StoreError)
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
    settings = job.get("fingerprint") or {}
    if not 1 <= int(settings.get("chunk_offsets", 1)) <= 1 << 31:
        raise JobError(f"{path}: fingerprint.chunk_offsets {settings['chunk_offsets']} is not valid")
    for number, one in enumerate(settings.get("samples") or ()):
        why = _invalid_sample(one)
        if why:
            raise JobError(f"{path}: fingerprint.samples[{number}] (quorumshift_fingerprint_samples): {why}")
    return job


def _invalid_sample(one: Any) -> str | None:
    """Return why a class of topics is not valid, None if it is."""
    if not isinstance(one, dict) or not isinstance(one.get("topics"), list) or not one["topics"]:
        return "it needs 'topics', a list of patterns"
    if set(one) - {"topics", "last", "percent", "seed"} or ("last" in one) == ("percent" in one):
        return "besides 'topics' it takes either 'last' or 'percent', and with that 'seed'"
    if "last" in one:
        return None if isinstance(one["last"], int) and one["last"] > 0 else "'last' must be a number of records"
    valid = (
        isinstance(one["percent"], (int, float)) and 0 < one["percent"] <= 100 and isinstance(one.get("seed", 0), int)
    )
    return None if valid else "'percent' must be above 0 and at most 100, 'seed' an integer"
