# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The job of a gate: compares up to four views of a cluster's metadata by the table of rules.

    spark-submit --py-files quorumshift_spark.zip submit.py metadata_parity --input DIR/job.json

Reads all views on Spark, compares them and re-checks what differs. Writes
differences.parquet and differences.csv, with the verdict pass entities.parquet (the next gate's baseline), and, last,
result.json to the output directory. Exit code: 0 pass, 1 differ, 2 error, 3 incomplete. Only the verdict in
result.json with the job's nonce is valid.
"""

from __future__ import annotations

import collections
import concurrent.futures
import functools
import itertools
import json
import os
import time
from typing import Any, Dict, Iterable, Iterator, List, Mapping, Sequence, Set, Tuple

from ansible_collections.quorumshift.kafka.plugins.module_utils.core.gates import not_compared
from ansible_collections.quorumshift.kafka.plugins.module_utils.core.migration import node_mode
from pyspark.sql import SparkSession

from quorumshift_spark import accounting, checking, fence, nodes, parity, rules, running, session, warm_up
from quorumshift_spark import job as jobs
from quorumshift_spark import result as results
from quorumshift_spark.checking import Checked
from quorumshift_spark.compare import SKIPPED, Difference, compare
from quorumshift_spark.excuses import Evidence
from quorumshift_spark.normal_form import canonical
from quorumshift_spark.rows import Reading, Rows, readings
from quorumshift_spark.views import NOT_COMPARED, Absent, LiveView, View, baseline, family
from quorumshift_spark.views.source import error_line

JOB = "metadata_parity"
ENTITIES = "entities.parquet"
_POLL_S = 0.5
_ENOUGH = 10_000  # keys that differ: more do not change the verdict, and fill the driver's memory
_LISTED = 1_000_000  # of the keys beyond, how many the tables of differences have: they are some GB then


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the job and return the exit code."""
    return running.main(JOB, __doc__, _Run, arguments, warm_up=compare_synthetic_views)


def compare_synthetic_views(spark: SparkSession, directory: str) -> Dict[str, Any]:
    """Compare the views of warm_up in this directory, which is empty, and return the result."""
    output = os.path.join(directory, "output")
    os.mkdir(output, 0o700)
    bounds = jobs.Bounds(rounds=2, pause_s=0.0, fence_s=0.0)
    given = directory, "warm-up", warm_up.GATE, None, warm_up.CLUSTER_ID, output, b"", {}, {}, bounds
    result = results.empty(results.ERROR, [], JOB)
    run = _Run(jobs.Job(*given), result)
    run.views = warm_up.views()
    run.compare(spark)
    return result


class _Run:
    """One run of the job; fills in `result` as far as it gets."""

    def __init__(self, job: jobs.Job, result: Dict[str, Any]) -> None:
        self.job = job
        self.result = result
        self.views: Dict[str, View] = {}
        self.zookeeper_mode: List[str] = []
        self.incomplete: List[str] = []
        self.slow: Set[str] = set()  # brokers that did not follow the log within fence_s
        self.unknown: Dict[str, List[not_compared.Found]] = {}  # by view
        self.apart = jobs.logs_not_read(job)  # {view: why} of the logs that are not compared with the leader's

    def run(self) -> None:
        """Read, compare, re-check and write; sets the verdict of the result."""
        self.views = {view.name: view for view in jobs.views(self.job)}
        rules.plan(self.job.gate, {name: view.kinds for name, view in self.views.items()})
        failed = self._probe()
        if failed:
            self._fail_views(failed)
            return
        try:
            with running.spark(JOB, self.result) as spark:
                self.compare(spark)
        finally:
            for view in self.views.values():
                view.close()

    def compare(self, spark: SparkSession) -> None:
        """Read the views, compare them, re-check what differs, and write."""
        apart = not session.is_local(spark)
        if apart and not self.job.store:
            raise jobs.JobError(
                f"{spark.sparkContext.master} has executors on other hosts, and job.json no 'store': a directory that "
                "they and the driver share. Set quorumshift_spark_uri, for example to hdfs://namenode-1/quorumshift, "
                "and run the playbook again (QS-VERIFY-004)"
            )
        rows = Rows(spark, self.job.store or self.job.directory)
        try:
            with running.timed(self.result, "read"):
                alike = {
                    name: (family(name), view.kinds, name in self.zookeeper_mode)
                    for name, view in self.views.items()
                    if view.has_buckets
                }
                rows.read(self.views.values(), alike, apart)
                found = readings(list(self.views), rows.parts, rows.copies, rows.arrived())
            self._compare(rows, found)
        finally:
            rows.remove()

    def _compare(self, rows: Rows, readings: Mapping[str, Reading]) -> None:
        failed = {name: reading.error for name, reading in readings.items() if reading.error}
        self.apart.update({name: failed.pop(name) for name in list(failed) if family(name) == rules.CONTROLLER})
        self._report_readings(readings)
        if failed:
            self._fail_views(failed)
            return
        self.apart.update(_apart(readings))
        kinds = {name: view.kinds for name, view in self.views.items() if name not in self.apart}
        comparisons = rules.plan(self.job.gate, kinds, self.zookeeper_mode)
        with concurrent.futures.ThreadPoolExecutor(1) as pool:
            registered = pool.submit(self._of_nodes, rows)
            # A few rows cost less than the plan of their query, which is made beside that of the comparison
            writing = pool.submit(self._write_entities, rows, readings, registered) if rows.are_few else None
            with running.timed(self.result, "compare"):
                unequal = parity.Unequal(rows.compared, parity.bundled(comparisons), rows.copies, rows.of_ids)
            with running.timed(self.result, "recheck"):
                checked, beyond = self._check(unequal, comparisons, readings)
            with running.timed(self.result, "write"):
                brokers, settings = registered.result()
                self.incomplete += self._uncovered(brokers, readings, rules.baselines_compared(comparisons))
                self._evaluate(comparisons, unequal, checked, beyond, readings, self._nodes(brokers, settings))
                if self.result["verdict"] == results.PASS:
                    self._keep(writing.result() if writing else self._write_entities(rows, readings, registered))
                elif writing and not writing.exception():
                    _discard(writing.result()[0])

    def _keep(self, entities: Tuple[str, int]) -> None:
        """Name the next gate's baseline in the result."""
        signature = entities[0] + baseline.SIGNATURE
        self.result["files"][ENTITIES] = results.file_facts(*entities)
        self.result["files"][ENTITIES + baseline.SIGNATURE] = results.file_facts(signature, 1)

    def _probe(self) -> Dict[str, str]:
        """Probe every view; returns {view: error}."""
        failed = {}
        with running.timed(self.result, "probe"), concurrent.futures.ThreadPoolExecutor(16) as pool:
            probes = {name: pool.submit(view.probe) for name, view in self.views.items()}
        for name, probe in probes.items():
            try:
                served = probe.result()
            except Exception as error:
                failed[name] = error_line(error)
                continue
            if getattr(served, "mode", None) in (node_mode.ZK, node_mode.ZK_MIGRATION):
                self.zookeeper_mode.append(name)
        return failed

    def _report_readings(self, readings: Mapping[str, Reading]) -> None:
        for name, reading in readings.items():
            self.unknown[name] = [reading.state.pop(NOT_COMPARED, {})]
            self.result["views"][name] = {
                **results.unread(),
                "read": reading.read,
                "state": {name: value for name, value in reading.state.items() if name != "deletions"},
                "seconds": reading.seconds,
                "error": reading.error,
                "problems": [{"where": where, "reason": reason} for where, reason in reading.problems],
            }
            self.incomplete += [f"{name}: {text}. Run the playbook again" for text in reading.lost]
            self._problems(name, reading.problems)

    def _problems(self, name, problems):
        if problems:
            where, reason = problems[0]
            more = f", and {len(problems) - 1} more" if len(problems) > 1 else ""
            text = f"{name}: {where}: {reason}{more}"
            if text not in self.incomplete:
                self.incomplete.append(text)

    def _fail_views(self, failed: Mapping[str, str]) -> None:
        """End with the verdict `error`: a view that was not read closes the gate. `failed`: {view: error}."""
        for name, error in failed.items():
            self.result["views"].setdefault(name, results.unread())["error"] = error
        reasons = [
            f"view {name} could not be read: {error}. Fix it and run the playbook again"
            for name, error in sorted(failed.items())
        ]
        self.result.update(verdict=results.ERROR, reasons=[*reasons, *self.incomplete])

    # --- re-checks ---

    def _check(self, unequal: parity.Unequal, comparisons, readings) -> Tuple[Checked, List[int]]:
        """Compare and re-check the unequal keys, bounds.reread_limit at a time. Return also the ids of those beyond."""
        baselines = {name: reading.state for name, reading in readings.items() if family(name) == rules.BASELINE}
        controller = readings[rules.ZOOKEEPER].state.get("controller") if rules.ZOOKEEPER in readings else None
        log: Any = self.views.get(rules.LOG)
        copy_source = jobs.copy_source(self.job)
        evidence = Evidence(baselines, controller, log, self.job.accept_unverified_copy, copy_source)
        fencing = fence.Fencing(self.job, self.views)
        # A further controller's log is not read again: it ends at the same offset as the first snapshot
        reread = {
            name: functools.partial(self._reread, view)
            for name, view in self.views.items()
            if isinstance(view, LiveView) and (family(name) != rules.LOG or name == rules.LOG)
        }
        checked = Checked({}, {}, {}, {}, [], {})
        bounds, beyond = self.job.bounds, []
        for start in range(0, len(unequal.ids), bounds.reread_limit):
            if sum(checking.is_different(outcomes.values()) for outcomes in checked.outcomes.values()) >= _ENOUGH:
                beyond = unequal.ids[start:]
                break
            keys, twice = unequal.entities(unequal.ids[start : start + bounds.reread_limit])
            self.incomplete += twice
            if copy_source:
                copy_source.expect(keys)
            between = log.between if log else {}
            given = reread, evidence, fencing.advance, bounds.rounds, bounds.pause_s, between
            found = checking.check(keys, comparisons, *given)
            for name, problems in found.problems.items():
                self._problems(name, [tuple(problem) for problem in problems])
            self.result["rounds"] += [entry._asdict() for entry in found.rounds]
            for ours, theirs in zip(checked[:4], found[:4]):
                ours.update(theirs)
        if log:
            end_offset = readings[rules.LOG].state["offset"]
            self.incomplete += filter(None, [evidence.discontinued(end_offset)])
        if not beyond:
            checking.count_removals(checked, evidence)
        for name in self.views:
            self.result["views"][name]["moved"] = accounting.moved(checked.first, checked.last, name)
        return checked, beyond

    def _reread(self, view: LiveView, keys):
        """Read keys of a view again: those of a broker in KRaft mode once it serves the log up to the end that is
        compared. What a slow broker has not applied yet would otherwise look like stale metadata."""
        try:
            log: Any = self.views.get(rules.LOG)
            if log and family(view.name) == rules.BROKER and view.name not in {*self.slow, *self.zookeeper_mode}:
                self.slow.update(self._behind([view.name], log.source.end_offset))  # it is waited for once
            return view.reread(keys)
        except Exception as error:
            raise jobs.ViewError(
                f"view {view.name} could not be read again: {error_line(error)}. Run the playbook again (QS-VERIFY-003)"
            ) from error

    def _behind(self, names: Iterable[str], end_offset: int) -> Dict[str, int]:
        """Return {broker view: offset} of those that do not serve the log up to `end_offset` within fence_s.

        A broker in KRaft mode answers with the end of its image. Values that it withholds are compared by this alone.
        """
        end = time.monotonic() + self.job.bounds.fence_s
        while True:
            offsets = {name: self.views[name].probe().offset for name in names}
            # None: in ZooKeeper mode
            behind = {name: at for name, at in offsets.items() if at is not None and at < end_offset}
            if not behind or time.monotonic() > end:
                return behind
            names = behind
            time.sleep(_POLL_S)

    def _of_nodes(self, rows):
        with running.described(f"{JOB}: nodes"):
            brokers, settings = parity.of_nodes(rows)
        return brokers, nodes.with_files(settings, self.job.view_options)

    def _about_baseline(self) -> Dict[str, Any]:
        given = self.job.view_options.get("baseline")
        return baseline.about(given["path"]) if given else {}

    def _nodes(self, brokers: Sequence[parity.Registered], settings: nodes.Settings) -> nodes.Compared:
        given = self.job.view_options
        before = self._about_baseline().get("settings", {})
        in_log = {broker.id: broker.fields["log_dirs"] for broker in brokers if broker.view == rules.LOG}
        on_hosts = {broker["id"]: broker.get("directories") for broker in given.get("brokers") or ()}
        # A registration has none where Kafka or its metadata.version is older than 3.7
        registered = {broker: ids for broker, ids in in_log.items() if json.loads(ids)}
        known = {broker: canonical(sorted(ids)) for broker, ids in on_hosts.items() if ids}
        return nodes.compared(before, settings, registered, known)

    def _uncovered(
        self,
        brokers: Sequence[parity.Registered],
        readings: Mapping[str, Reading],
        baselines: Sequence[str],
    ) -> List[str]:
        decides = rules.deciding(self.job.gate, self.views)
        up = [broker.id for broker in brokers if broker.fields["fenced"] == "false"]
        not_served = {
            name: reading.state["not_served"] for name, reading in readings.items() if family(name) == rules.BROKER
        }
        end_offset = readings[rules.LOG].state["offset"] if rules.LOG in readings else 0
        short = [name for name in not_served if readings[name].state.get("offset", end_offset) < end_offset]
        behind = self._behind(short, end_offset)
        read = readings[decides].read
        for name, why in self.apart.items():
            self.result["views"].setdefault(name, results.unread())["error"] = why
        given = decides, read, up, not_served, baselines, behind, end_offset, self.apart
        return rules.uncovered(self.job.gate, *given, self._about_baseline().get("off"))

    # --- output ---

    def _write_entities(
        self, rows: Rows, readings: Mapping[str, Reading], registered: concurrent.futures.Future
    ) -> Tuple[str, int]:
        """Write the entities of the first reading of ZooKeeper and the log, and settings: the next gate's baseline, if
        this one passes. Return the file's path and its number of entities."""
        names = [name for name in self.views if name in (rules.ZOOKEEPER, rules.LOG)]
        count = sum(sum(readings[name].read.values()) for name in names)
        about = {
            "cluster_id": self.job.cluster_id,
            "gate": self.job.gate,
            "nonce": self.job.nonce,
            "key_id": baseline.key_id(self.job.digest_key),
            "states": {name: readings[name].state for name in names},
            "settings": registered.result()[1],
            "off": rules.off_everywhere(
                {
                    name: reading.state["not_served"]
                    for name, reading in readings.items()
                    if family(name) == rules.BROKER
                }
            ),
        }
        path = os.path.join(self.job.output, ENTITIES)
        written = baseline.BaselineWriter(path, about, self.job.digest_key)
        with running.described(f"{JOB}: baseline"), written as writer:
            for table in rows.tables(names):
                writer.write(baseline.of_rows(table))
        return path, count

    def _evaluate(
        self,
        comparisons,
        unequal: parity.Unequal,
        checked: Checked,
        beyond: Sequence[int],
        readings,
        own: nodes.Compared,
    ) -> None:
        """Fill in counts, differences and the verdict; write the tables of differences."""
        result, bounds = self.result, self.job.bounds
        equal, of_beyond = collections.Counter(unequal.equal), unequal.counts(beyond, True)
        equal.update(of_beyond)
        account = accounting.account(
            unequal.bundles,
            equal,
            unequal.counts(beyond, False),
            checked.outcomes,
            checked.first,
            checked.last,
            {name: reading.read for name, reading in readings.items()},
        )
        found = checking.in_order(checked)
        for comparison in comparisons:
            counts = account.counts[comparison]
            for key, of in checked.undecided:
                if of == comparison:
                    # Neither a match nor a difference: it counts as not compared
                    counts[key[0]][checked.outcomes[key][comparison].outcome] -= 1
                    counts[key[0]][SKIPPED] += 1
            facts = {name: getattr(comparison, name) for name in ("left", "right", "relation", "note")}
            result["comparisons"].append({**facts, "same_source": list(comparison.same_source), "counts": counts})
        result["counts"] = accounting.by_kind(account.counts)
        result["comparisons"] += own.comparisons
        result["since_baseline"] = checking.since_baseline(found)
        result["excused"] = checking.excused(checked)
        differing = [*(entry.outcome.differences for entry in found.differing), own.differences]
        total = sum(map(len, differing))
        listed = map(results.listed, itertools.chain.from_iterable(differing))
        result["differences"] = results.some_of_each(listed, bounds.shown)
        result.update(differences_total=total, undecided_total=len(found.undecided), changed_total=len(found.changed))
        result["undecided"] = [_entry(entry, entry.outcome.differences) for entry in found.undecided[: bounds.shown]]
        result["changed"] = [_entry(entry, entry.outcome.changes) for entry in found.changed[: bounds.shown]]
        rows = itertools.chain(_rows(found, own), self._unchecked(unequal, beyond, comparisons))
        result["files"].update(results.write_differences(self.job.output, rows))
        reasons = []
        if total:
            first = next(itertools.chain.from_iterable(differing))
            reasons.append(f"{total} differences, the first: {results.listed(first)['text']}")
        if beyond:
            self.incomplete.append(f"{len(beyond)} more keys that differ were not read again after these")
        if len(beyond) > _LISTED:
            self.incomplete.append(f"the tables of differences have {_LISTED} of these keys")
        if found.undecided:
            first = result["undecided"][0]
            text = f"{first['kind']} {first['key']}: {first['why']}"
            self.incomplete.append(f"{len(found.undecided)} could not be decided, the first: {text}")
        self.incomplete += account.wrong
        self.incomplete += self._not_compared()
        skipped = sum(counts[SKIPPED] for counts in result["counts"].values())
        if skipped and not (found.undecided or beyond):
            self.incomplete.append(f"{skipped} entities were not compared")
        verdict = results.DIFFER if total else results.INCOMPLETE if self.incomplete else results.PASS
        result.update(verdict=verdict, reasons=reasons + self.incomplete)

    def _not_compared(self) -> List[str]:
        """List in the result what no comparison sees. Return a sentence if no token accepts a part of it."""
        of_views = {
            name: not_compared.merge([*found, *getattr(self.views.get(name), "not_compared", ())])
            for name, found in self.unknown.items()
        }
        found = not_compared.merge(of_views.values())
        builds = [not_compared.build(version) for version in self.job.foreign]
        found.update({name: {"count": 1, "first": ""} for name in builds})
        decided = not_compared.decide(found, self.job.cluster_id, self.job.accept_not_compared)
        self.result["not_compared"] = [
            {
                "name": name,
                **found[name],
                "views": sorted(view for view, of in of_views.items() if name in of),
                "accepted": name not in decided.open,
            }
            for name in decided.names
        ]
        return not_compared.explain(self.job.cluster_id, decided)

    def _unchecked(
        self, unequal: parity.Unequal, beyond: Sequence[int], comparisons: Sequence[rules.Comparison]
    ) -> Iterator[Dict[str, Any]]:
        """Yield the rows of the keys that were not read again, as many keys at a time as are read again together."""
        limit = self.job.bounds.reread_limit
        for start in range(0, min(len(beyond), _LISTED), limit):
            keys, _twice = unequal.entities(beyond[start : min(start + limit, _LISTED)])
            for (kind, key), views in keys.items():
                for comparison in comparisons:
                    if kind in comparison.kinds:
                        pair = comparison.left, comparison.right
                        sides = (views.get(name, Absent({})) for name in pair)
                        for difference in compare(comparison, kind, key, *sides).differences:
                            yield results.row(difference, *pair, results.UNCHECKED, _AS_FIRST_READ)


_AS_FIRST_READ = "as first read: it may have been a change in flight, or one since the baseline with its record"


def _discard(path: str) -> None:
    """Remove entities with which no later gate may compare."""
    for suffix in ("", baseline.SIGNATURE):
        os.unlink(path + suffix)


def _apart(readings: Mapping[str, Reading]) -> Dict[str, str]:
    """Return {view: why} of the logs that do not end where the leader's does. Where offset and epoch of the last record
    are the same, Raft has the same records before it."""
    places = {
        name: (reading.state["offset"], reading.state["epoch"])
        for name, reading in readings.items()
        if family(name) == rules.LOG
    }
    leader = places.get(rules.LOG)
    return {
        name: f"it ends at offset {place[0]} in epoch {place[1]}, the leader's at {leader[0]} in epoch {leader[1]}. "
        "Run the playbook again; if this stays, read the log of that controller and restart it"
        for name, place in places.items()
        if leader and place != leader
    }


def _entry(entry: checking.Entry, differences: Sequence[Difference]) -> Dict[str, Any]:
    """Return an outcome as result.json lists it."""
    pair = {"kind": entry.key[0], "key": entry.key[1], "left": entry.comparison.left, "right": entry.comparison.right}
    return {**pair, "why": entry.why, "differences": [results.listed(difference) for difference in differences]}


def _rows(found: checking.Sorted, own: nodes.Compared) -> Iterator[Dict[str, Any]]:
    """Yield the rows of the tables of differences, in the order of result.json."""
    for status, entries in (("differ", found.differing), ("undecided", found.undecided), ("changed", found.changed)):
        for entry in entries:
            for difference in entry.outcome.changes if status == "changed" else entry.outcome.differences:
                yield results.row(difference, entry.comparison.left, entry.comparison.right, status, entry.why)
    for difference in own.differences:
        yield results.row(difference, *difference.sides)
