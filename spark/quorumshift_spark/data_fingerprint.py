# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The job that compares a cluster's records with a baseline.

    spark-submit --py-files quorumshift_spark.zip submit.py data_fingerprint --input DIR/job.json

The baseline's chunks are read again with their bounds. Reading may stand still for `request_timeout_s`. Executors write
what they read to the store as Parquet; what is there from a job that did not end is not read again.

Writes result.json, the tables of differences and what describes the current fingerprint (fingerprint.store), the next
run's baseline, to the output directory. Exit code: 0 pass, 1 differ, 2 error, 3 incomplete. Only result.json with the
job's nonce is valid.
"""

from __future__ import annotations

import fnmatch
import hashlib
import os
import threading
import time
from contextlib import contextmanager, suppress
from typing import Any, Callable, Dict, Iterator, List, Mapping, Sequence, TypeVar

from ansible_collections.quorumshift.kafka.plugins.module_utils.secrets.security import Security
from pyspark.sql import SparkSession

from quorumshift_spark import job as jobs
from quorumshift_spark import result as results
from quorumshift_spark import running
from quorumshift_spark.fingerprint import compare, coordinators, fetch, plan, store
from quorumshift_spark.fingerprint.cluster import Cluster, ClusterError, Metadata, chosen, now_ms
from quorumshift_spark.fingerprint.compare import Context, Fingerprint
from quorumshift_spark.fingerprint.coordinators import Coordinators
from quorumshift_spark.fingerprint.data import Data, locked
from quorumshift_spark.fingerprint.findings import CLUSTER, Findings
from quorumshift_spark.fingerprint.plan import PartitionState, Range, Sample, TopicPartition
from quorumshift_spark.rules import BASELINE, SINCE
from quorumshift_spark.views.source import error_line

JOB = "data_fingerprint"
Answer = TypeVar("Answer")
_PAUSE_S = 1.0


class Unfinished(Exception):
    """The time was over before all was read. The message says how much was, and what to do."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the job and return the exit code."""
    return running.main(JOB, __doc__, _Run, arguments)


class _Run:
    """One run of the job; fills in `result` as far as it gets, so that it shows how far the job got."""

    def __init__(self, job: jobs.Job, result: Dict[str, Any]) -> None:
        self.job, self.result, self.views, self.bounds = job, result, job.view_options, job.bounds
        known = jobs.schema()["$defs"][JOB]["properties"]["fingerprint"]["properties"]
        self.settings = {**{name: of["default"] for name, of in known.items()}, **(job.fingerprint or {})}

    @contextmanager
    def stage(self, name: str, view: str) -> Iterator[Dict[str, Any]]:
        """Time a stage and yield the result's entry for its view; an error is added to that entry."""
        started = time.monotonic()
        entry = self.result["views"].setdefault(view, results.unread())
        try:
            with running.timed(self.result, name):
                yield entry
        except Exception as error:
            entry["error"] = error_line(error)
            raise
        finally:
            entry["seconds"] = round(entry["seconds"] + time.monotonic() - started, 3)

    def run(self) -> None:
        """Read, compare and write; sets the verdict of the result."""
        for name in (results.DIFFERENCES, results.DIFFERENCES_CSV, store.NAME):
            with suppress(FileNotFoundError):
                os.unlink(os.path.join(self.job.output, name))
        try:
            findings, fingerprint = _fingerprint(self)
            with self.stage("write", CLUSTER):
                store.write(self.job.output, fingerprint)
                listed = (results.row(difference, BASELINE, CLUSTER) for difference in findings.differences)
                self.result["files"].update(results.write_differences(self.job.output, listed))
                self.result["files"][store.NAME] = results.file_facts(os.path.join(self.job.output, store.NAME), 1)
            _evaluate(self, findings)
        except Unfinished as error:
            self.result.update(verdict=results.INCOMPLETE, reasons=[str(error)])


def _patient(ask: Callable[[], Answer], seconds: float) -> Answer:
    """Return the cluster's answer; ask again for so long. While a broker restarts, its partitions have no leader.
    Raises ClusterError."""
    over = time.monotonic() + seconds
    while True:
        try:
            return ask()
        except ClusterError:
            if time.monotonic() >= over:
                raise
            time.sleep(_PAUSE_S)


def _identity(job: jobs.Job) -> Dict[str, Any]:
    """Return what the progress of an earlier job must share with this one: else it is of another comparison."""
    identity: Dict[str, Any] = {"cluster_id": job.cluster_id, "gate": job.gate, "phase": job.phase}
    path = (job.view_options.get(BASELINE) or {}).get("path")
    baseline = os.path.join(path, store.NAME) if path else None
    if baseline and os.path.exists(baseline):
        with open(baseline, "rb") as file:
            identity["baseline"] = hashlib.sha256(file.read()).hexdigest()
    return identity


def _evaluate(run_state: _Run, findings: Findings) -> None:
    """Add the findings and the verdict to the result."""
    result, shown = run_state.result, run_state.bounds.shown
    result["counts"] = findings.counts
    excused: Dict[str, int] = {}
    for (_kind, reason), number in sorted(findings.explained.items()):
        excused[reason] = excused.get(reason, 0) + number
    result["excused"] = excused
    notes = [f"{number:,} {kind}: {reason}" for (kind, reason), number in sorted(findings.explained.items())]
    samples = (result["views"].get(CLUSTER) or {}).get("state", {}).get("samples")
    if samples:
        texts = [f"{topic} ({text})" for topic, text in samples.items()]
        more = f" and {len(texts) - 5} more" if len(texts) > 5 else ""
        notes.insert(0, f"{len(texts)} topics by samples: {', '.join(texts[:5])}{more}")
    why = "; ".join(notes)
    pair = {"left": BASELINE, "right": CLUSTER, "relation": SINCE}
    result["comparisons"] = [{**pair, "note": why, "counts": findings.counts}]
    result["differences"] = results.some_of_each(map(results.listed, findings.differences), shown)
    result["differences_total"] = len(findings.differences)
    listed, undecided = (
        [{"kind": kind, "key": key, "left": BASELINE, "right": CLUSTER, "why": reason} for kind, key, reason in entries]
        for entries in (findings.excused, findings.skipped)
    )
    result.update(changed=listed[:shown], changed_total=len(listed))
    result.update(undecided=[{**entry, "differences": []} for entry in undecided[:shown]])
    result.update(undecided_total=len(undecided))
    reasons = []
    if findings.differences:
        reasons.append(f"{len(findings.differences)} differences, the first: {findings.differences[0].text()}")
    if undecided:
        reasons.append(f"{len(undecided)} could not be compared, the first: {undecided[0]['why']}")
    result.update(verdict=compare.verdict(findings), reasons=reasons)


def _fingerprint(run_state: _Run) -> tuple[Findings, Fingerprint]:
    """Read the baseline and the cluster. Return the findings and the next baseline."""
    job, settings, bounds = run_state.job, run_state.settings, run_state.bounds
    patterns, exclude = settings["topics"], settings["exclude"]
    whole = _baseline(run_state)

    with run_state.stage("describe", CLUSTER) as view:
        security = Security.from_options(run_state.views[CLUSTER].get("client"), "views.cluster.client")
        servers = run_state.views[CLUSTER]["bootstrap_servers"]
        cluster = Cluster(servers, security, bounds.request_timeout_s)
        taken = now_ms()
        found = cluster.metadata()
        if found.cluster_id != job.cluster_id:
            raise jobs.JobError(
                f"{servers} is cluster {found.cluster_id}, the job is for {job.cluster_id} (QS-VERIFY-004)"
            )
        hidden = cluster.hidden(found)
        now = Coordinators(cluster.groups(), cluster.transactions(found), cluster.retentions(found))
        topics = chosen(found.topics, patterns, exclude)
        was = compare.part(whole, patterns, [*exclude, *hidden]) if whole else None
        internal = [name for name in coordinators.INTERNAL if name in found.topics]
        states = _states(run_state, cluster, found, [*topics, *internal], was)
        log_ends = cluster.high_watermarks(
            (name, number) for name, topic in found.topics.items() for number in topic.leaders
        )
        same = [name for name, topic in found.topics.items() if was and was.topics.get(name, topic.id) == topic.id]
        gone = coordinators.missing(was.coordinators, now, same, states) if was else []
        sampled = _samples(settings["samples"], states)
        view["state"] = {"time_ms": taken, "topics": len(topics)}

    wanted = _wanted(settings["chunk_offsets"], states, was, sampled)
    sizes = {
        tp: cluster.size(tp, found.topics[tp[0]].leaders[tp[1]])
        for tp, state in states.items()
        if tp[0] in sampled or (was and tp[0] in was.samples)
    }
    there = os.path.expanduser(job.store or os.path.join(job.directory, "store"))
    with running.spark(JOB, run_state.result) as session, locked(there):
        with running.described(f"{JOB}: read"):  # not bounded: a check that is cancelled would remove the files
            data = Data(session, there, _identity(job), was)
        with run_state.stage("read", CLUSTER) as view, _bounded(session, bounds.read_s) as late:
            data.resume(states)
            finished = plan.chunks_in(wanted) - plan.chunks_in(data.left(wanted))
            if finished:
                view["state"]["chunks_of_an_earlier_job"] = finished
            try:
                unread = fetch.read(
                    session,
                    data,
                    wanted,
                    states,
                    lambda: _patient(cluster.metadata, bounds.request_timeout_s).leaders(),
                    lambda tps: _patient(lambda: cluster.log_starts(tps), bounds.request_timeout_s),
                    security.with_content(),  # executors may lack these files
                    bounds.request_timeout_s,
                    late,
                )
            except Exception as error:
                if not late.is_set():
                    raise
                data.refresh()
                raise Unfinished(_unfinished(wanted, data.left(wanted), bounds)) from error
        with run_state.stage("compare_chunks", CLUSTER):
            # Retention may have moved them during the scan
            starts = _patient(lambda: cluster.log_starts(states), bounds.request_timeout_s)
            states = {tp: state._replace(log_start=max(state.log_start, starts[tp])) for tp, state in states.items()}
            ids = {name: topic.id for name, topic in found.topics.items()}
            sampled = {**(was.samples if was else {}), **sampled}
            places = {
                tp: [place for place in read if place.end > states[tp].log_start]
                for tp, read in data.places(wanted).items()
            }
            current = Fingerprint(
                job.cluster_id, taken, ids, states, places, compare.Data(data.directory, {}), now, sampled
            )
            context = Context(log_ends, settings["purged_topics"], unread, gone, read_ms=now_ms())
            both = compare.both(was, current, context, sizes)
            with data.intact():
                contents = data.contents(places, both)
        with run_state.stage("compare_keys", CLUSTER):
            both = {tp: of for tp, of in both.items() if tp[0] not in coordinators.INTERNAL}
            number = sum(content.keys + content.old_keys for tp, content in contents.items() if tp in both)
            records = {record: entry.partition for entry in gone for record in (*entry.records, *entry.of_group)}
            with data.intact():
                tallies, newest = data.tallies(places, both, number), data.newest(places, records)
            context = context._replace(contents=contents, tallies=tallies, newest=newest)
        with run_state.stage("compare", CLUSTER) as view:
            counted = {"shares": compare.shares(current, contents), "sizes": compare.sizes(current, contents)}
            current = current._replace(**counted)
            view["read"] = current.sizes
            view["state"]["records"] = sum(
                content.records for tp, content in contents.items() if tp[0] not in coordinators.INTERNAL
            )
            samples = _sample_texts(was, current)
            if samples:
                view["state"]["samples"] = samples
            findings = compare.coverage(job.gate, whole, ids, topics, patterns, exclude, hidden)
            findings.add(compare.compare(was, current, context))
            kept = {
                tp: [place for place in read if place.keyed or place.begin >= states[tp].log_start]
                for tp, read in places.items()
            }
            verdict = compare.verdict(findings)
            # After a difference all is read again: a replica may have been repaired
            if verdict != results.INCOMPLETE:
                current = current._replace(data=data.decide(verdict == results.PASS))
    return findings, current._replace(chunks=kept)


def _samples(
    classes: Sequence[Mapping[str, Any]], states: Mapping[TopicPartition, PartitionState]
) -> Dict[str, Sample]:
    """Return the sample of each topic that a class of topics matches; the first class decides."""
    found = {}
    for topic in {topic for (topic, _number), state in states.items() if not state.compacted}:
        for sampling in classes:
            if topic not in coordinators.INTERNAL and any(
                fnmatch.fnmatchcase(topic, name) for name in sampling["topics"]
            ):
                found[topic] = Sample(sampling.get("last"), sampling.get("percent"), sampling.get("seed") or 0)
                break
    return found


def _wanted(
    size: int,
    states: Mapping[TopicPartition, PartitionState],
    was: Fingerprint | None,
    samples: Mapping[str, Sample],
) -> List[Range]:
    """Return what is to be read. Of a topic that is compacted, or was at the baseline, also the keys."""
    old_states = was.partitions if was else {}
    wanted: List[Range] = []
    for tp, state in sorted(states.items()):
        before, old = old_states.get(tp), was.chunks.get(tp, []) if was else []
        plain, keyed = ([place[:2] for place in old if place.keyed == kind] for kind in (False, True))
        if tp[0] not in coordinators.INTERNAL and not state.compacted:
            wanted += plan.ranges(state, before, plain, size, samples.get(tp[0]))
        if tp[0] in coordinators.COORDINATORS.values() or state.compacted or (before and before.compacted):
            wanted += plan.ranges(state, before, keyed, size, keyed=True)
    return wanted


def _unfinished(wanted: Sequence[Range], left: Sequence[Range], bounds: jobs.Bounds) -> str:
    """Return what to do when the time is over."""
    total = plan.chunks_in(wanted)
    return (
        f"{total - plan.chunks_in(left):,} of {total:,} chunks of records were read within {bounds.read_s:g} s. Run "
        "the playbook again: it continues with the others. To finish in one run, raise quorumshift_spark_timeout_s, "
        "add executors, or read a sample of large topics (quorumshift_fingerprint_samples)"
    )


def _sample_texts(was: Fingerprint | None, current: Fingerprint) -> Dict[str, str]:
    """Return, for each topic of which a sample was read, what was compared and what was read."""
    compared = was.shares if was else {}
    texts = {}
    for topic, share in current.shares.items():
        then = f"{compared[topic]:.2%} of the baseline's offsets compared, " if topic in compared else ""
        texts[topic] = f"{then}{share:.2%} of the offsets read: {current.samples[topic]}"
    return texts


def _baseline(run_state: _Run) -> Fingerprint | None:
    """Return the baseline; None if the job has none."""
    job = run_state.job
    path = (run_state.views.get(BASELINE) or {}).get("path")
    if not path:
        return None
    with run_state.stage("read_baseline", BASELINE) as view:
        was = store.read(path)
        if was.cluster_id != job.cluster_id:
            raise jobs.JobError(
                f"{path}: the baseline is of cluster {was.cluster_id}, the job is for {job.cluster_id} (QS-VERIFY-004)"
            )
        view.update(read=was.sizes, state={"time_ms": was.taken_ms})
    return was


def _states(
    run_state: _Run, cluster: Cluster, found: Metadata, topics: Sequence[str], was: Fingerprint | None
) -> Dict[TopicPartition, PartitionState]:
    """Return the states of the chosen partitions. Re-reads partitions that end before the baseline's end: a new leader
    knows its high watermark and the end of a transaction only moments after its election (KIP-207)."""
    states = compare.states(cluster.states(found, topics))
    ends = {tp: state.end for tp, state in was.partitions.items()} if was else {}
    for number in range(1, run_state.bounds.rounds + 1):
        short = [tp for tp, state in states.items() if state.end < ends.get(tp, 0)]
        if not short:
            break
        started = time.monotonic()
        time.sleep(run_state.bounds.pause_s)
        states.update(compare.states(cluster.states(found, sorted({topic for topic, _number in short}))))
        left = sum(1 for tp in short if states[tp].end < ends[tp])
        run_state.result["rounds"].append(
            {
                "number": number,
                "keys": len(short),
                "resolved": len(short) - left,
                "proven": 0 if number < run_state.bounds.rounds else left,
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
