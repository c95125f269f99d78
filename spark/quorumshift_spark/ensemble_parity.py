# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Compares Kafka's subtree on the servers of two ZooKeeper ensembles at one zxid, from their files.

    spark-submit --py-files quorumshift_spark.zip submit.py ensemble_parity --input DIR/job.json

Before the cut, every znode's data, ACL and Stat must be the same on all servers. After it, the source's tree at the
cut, with the destination's transactions since then, must be the destination's tree. So a change needs a transaction
that the destination has logged, and each znode without one must be as it was. A server whose files do not reach the
zxid makes the verdict `incomplete`. What the destination has outside of Kafka's subtree is listed. Exit code as
metadata_parity.
"""

from __future__ import annotations

import itertools
import json
import os
import shutil
from typing import Any, Dict, Iterator, List, Mapping, Sequence

from ansible_collections.quorumshift.kafka.plugins.module_utils.core.ensemble.leftovers import FILES
from ansible_collections.quorumshift.kafka.plugins.module_utils.files import archives
from ansible_collections.quorumshift.kafka.plugins.module_utils.formats.zookeeper import zk_files, zk_log
from pyspark import StorageLevel
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from quorumshift_spark import job as jobs
from quorumshift_spark import result as results
from quorumshift_spark import running, session
from quorumshift_spark.compare import DIFFER, LEFT_ONLY, MATCH, RIGHT_ONLY, SKIPPED, Difference
from quorumshift_spark.normal_form import canonical
from quorumshift_spark.views import trees

JOB = "ensemble_parity"
SOURCE, DESTINATION = "source", "destination"
ENSEMBLE = "ensemble"
KIND = "znode"
_AFTER_THE_CUT = "transaction after the cut"
RULE = "equal at the same zxid: servers of one ensemble apply the same transactions"
DO = (
    "do not cut. The files of one of these servers are not those of its ensemble, or were changed. Stop the "
    "destination server, move its version-2 directory away, and run quorumshift.kafka.zk_migrate again: it receives "
    "the tree anew"
)
DO_AFTER = (
    "compare the znode with the source's, and repair it on the destination with the clients' own tools. Keep the "
    "source's files: they hold the state at the cut"
)
_UNPACKED = "unpacked"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the job and return the exit code."""
    return running.main(JOB, __doc__, _Run, arguments)


class _Run:
    """One run of the job; fills in `result` as far as it gets."""

    def __init__(self, job: jobs.Job, result: Dict[str, Any]) -> None:
        self.job, self.result, self.given = job, result, job.view_options
        self.incomplete: List[str] = []
        self.chroot = self.given["chroot"]
        self.sides = {f"{server['side']}:{server['name']}": server for server in self.given["servers"]}
        self.cut = self.given.get("cut")

    def run(self) -> None:
        """Read, compare and write; sets the verdict of the result."""
        unpacked = os.path.join(self.job.directory, _UNPACKED)
        try:
            with running.timed(self.result, "open"):
                servers = {view: self._opened(view, unpacked) for view in self.sides}
                compared = self._trees(servers)
            if self.incomplete or len(compared) < 2:
                self.incomplete += [] if self.incomplete else ["one server alone is compared with nothing"]
                self.result.update(verdict=results.INCOMPLETE, reasons=self.incomplete)
                return
            with running.spark(JOB, self.result) as spark:
                self._compare(spark, compared)
        finally:
            shutil.rmtree(unpacked, ignore_errors=True)

    # --- the servers' files ---

    def _opened(self, view: str, unpacked: str) -> trees.Files:
        """Return a server's files, unpacked: its ends are read on the driver."""
        server = self.sides[view]
        processed = {int(zxid): upto for zxid, upto in (server.get("processed") or {}).items()}
        if server.get("data_dir"):
            logs = server.get("data_log_dir") or server["data_dir"]
            return trees.Files(view, f"{server['data_dir']}/version-2", f"{logs}/version-2", processed)
        directory = os.path.join(unpacked, view.replace(":", "-"))
        try:
            os.makedirs(unpacked, mode=0o700, exist_ok=True)
            archives.unpack(server["archive"], server["sha256"], directory, FILES)
        except (archives.SnapshotError, OSError, EOFError) as error:
            raise jobs.ViewError(f"{view}: {error}") from None
        return trees.Files(view, directory, directory, processed, server["archive"], server["sha256"])

    def _trees(self, servers: Mapping[str, trees.Files]) -> List[trees.Tree]:
        """Return the trees to compare, the one that decides first. Notes each server whose files do not suffice."""
        source = next((view for view, server in self.sides.items() if server["side"] == SOURCE), None)
        destination = [view for view, server in self.sides.items() if server["side"] == DESTINATION]
        ends = {}
        for view, files in servers.items():
            entry = self.result["views"].setdefault(view, results.unread())
            try:
                ends[view] = zk_files.last_zxid(files.snapshots, files.logs)
                entry["state"] = {"last_zxid": _hex(ends[view])}
            except (zk_log.ZooKeeperFileError, OSError) as error:
                entry["error"] = str(error)
                raise jobs.ViewError(f"{view}: {error}. Take its files anew and run again (QS-VERIFY-003)") from None
        after = self.cut is not None
        common = [ends[view] for view in (destination if after else ends)]
        zxid = self.given.get("zxid") or min(common, default=0)
        if source is None and not self.given.get("without_source"):
            self.incomplete.append(
                "no source server's files were read, so the destination's servers were not compared with the source. "
                "Make a host of the group zookeeper_source reachable, or add one. Or accept that with "
                "-e zk_migrate_without_source=true"
            )
        found = []
        for view in [name for name in (source, *destination) if name]:
            upto = self.cut if after and view == source else zxid
            if ends[view] < upto:
                self.incomplete.append(
                    f"{view}: its files end at zxid {_hex(ends[view])}, short of {_hex(upto)}. Find out why it lags, "
                    "and run again"
                )
                continue
            spans = [(servers[view], upto)]
            if after and view == source and destination:
                since = next((name for name in destination if self._goes_back(servers[name], upto)), None)
                if since is None:
                    self.incomplete.append(
                        f"no destination server's log goes back to the cut at zxid {_hex(upto)}, so it is not known "
                        "what Kafka wrote since. Run again with -e quorumshift_verify=false"
                    )
                    continue
                spans.append((servers[since], zxid))
            try:
                base = zk_files.snapshot_up_to(servers[view].snapshots, upto, servers[view].processed)
            except zk_log.ZooKeeperFileError as error:
                do = "Wait for the server's next snapshot, and run again"
                if after and view == source:
                    do = "Its tree at the cut cannot be rebuilt: run again with -e quorumshift_verify=false"
                self.incomplete.append(f"{view}: {error}. {do}")
                continue
            state = {"zxid": _hex(zxid), "snapshot": _hex(base.zxid)}
            if after and view == source:
                state["cut"] = _hex(upto)
            self.result["views"][view]["state"].update(state)
            found.append(trees.Tree(view, spans[0][0], tuple(spans)))
        return found

    @staticmethod
    def _goes_back(files: trees.Files, zxid: int) -> bool:
        """Return whether a server's log has what followed a zxid. That of one that joined later begins then."""
        found = zk_log.files_of(files.logs, zk_log.LOGS)
        return bool(found) and found[0][0] <= zxid

    # --- comparing ---

    def _compare(self, spark: SparkSession, compared: Sequence[trees.Tree]) -> None:
        key = self.job.digest_key
        if not session.is_local(spark):
            compared = [tree.carried() for tree in compared]
        tasks = max(1, spark.sparkContext.defaultParallelism // len(compared))
        parts = [
            trees.Part(number, tree, self.chroot, key, part, tasks, self.cut if number == 0 else None)
            for number, tree in enumerate(compared)
            for part in range(tasks)
        ]
        rows = trees.rows(spark, parts, trees.digested).persist(StorageLevel.MEMORY_AND_DISK)
        try:
            self._compare_rows(spark, rows, compared)
        finally:
            rows.unpersist()

    def _compare_rows(self, spark: SparkSession, rows: DataFrame, compared: Sequence[trees.Tree]) -> None:
        key = self.job.digest_key
        with running.timed(self.result, "compare"):
            if self._failed(rows, compared):
                return
            paths = _by_path(rows, len(compared)).persist(StorageLevel.MEMORY_AND_DISK)
            self._count(rows, paths, compared)
            limit = self.job.bounds.reread_limit
            unequal = paths.filter(_any_differs(len(compared))).orderBy("path")
            differing = [row.path for row in unequal.select("path").limit(limit + 1).collect()]
        with running.timed(self.result, "show"):
            shown = [
                trees.Part(number, tree, self.chroot, key, wanted=frozenset(differing[:limit]))
                for number, tree in enumerate(compared)
            ]
            found: Dict[str, Dict[int, Dict[str, str]]] = {}
            if differing:
                for row in trees.rows(spark, shown, trees.shown).toLocalIterator():
                    if row.error:
                        raise jobs.ViewError(f"{compared[row.tree].view}: {row.error}")
                    found.setdefault(row.path, {})[row.tree] = json.loads(row.fields)
        with running.timed(self.result, "left_over"):
            last = len(compared) - 1
            part = trees.Part(last, compared[last], self.chroot, key)
            self.result["leftovers"] = sorted(
                (
                    {"path": row.path, **{**_NO_LEFTOVER, **json.loads(row.fields)}}
                    for row in trees.rows(spark, [part], trees.left_over).collect()
                ),
                key=lambda row: row["path"],
            )
        self._evaluate(compared, found, differing, unequal)

    def _failed(self, rows: DataFrame, compared: Sequence[trees.Tree]) -> bool:
        """Set the verdict where a server's files could not be read, and return whether that is so."""
        errors = {}
        for row in rows.filter(F.col("error").isNotNull()).select("tree", "error").distinct().collect():
            what, _colon, text = row.error.partition(":")
            errors[compared[row.tree].view] = what, text
        for view, (_what, text) in sorted(errors.items()):
            self.result["views"][view]["error"] = text
            self.incomplete.append(f"{view}: {text}. Take its files anew and run again")
        failed = any(what == trees.FAILED for what, _text in errors.values())
        self.result.update(verdict=results.ERROR if failed else results.INCOMPLETE, reasons=self.incomplete)
        return bool(errors)

    def _count(self, rows: DataFrame, paths: DataFrame, compared: Sequence[trees.Tree]) -> None:
        """Fill in what was read, and the counts of each comparison."""
        columns = [F.count(f"d{number}").alias(f"read{number}") for number in range(len(compared))]
        for number in range(1, len(compared)):
            left, right = F.col("d0"), F.col(f"d{number}")
            same = left == right
            either = left.isNotNull() | right.isNotNull()
            for name, condition in {
                "read": either,
                MATCH: same,
                DIFFER: left != right,
                LEFT_ONLY: left.isNotNull() & right.isNull(),
                RIGHT_ONLY: left.isNull() & right.isNotNull(),
                "explained": same & F.col("changed"),
            }.items():
                columns.append(F.count(F.when(condition, True)).alias(f"{name}_{number}"))
        counted = paths.agg(*columns).collect()[0]
        for number, tree in enumerate(compared):
            self.result["views"][tree.view]["read"] = {KIND: counted[f"read{number}"]}
        changed = rows.filter(F.col("path").isNull()).select("digest").collect()
        note = "at one zxid"
        if self.cut is not None:
            number_changed = sum(row.digest for row in changed)
            self.result["views"][compared[0].view]["state"]["changed_since"] = number_changed
            note = f"{number_changed} paths changed after the cut, by transactions in the destination's log"
        names = (MATCH, DIFFER, LEFT_ONLY, RIGHT_ONLY, "explained", "read")
        total = dict.fromkeys((*names, SKIPPED), 0)
        for number, tree in enumerate(compared[1:], 1):
            counts = {**{name: counted[f"{name}_{number}"] for name in names}, SKIPPED: 0}
            total = {name: total[name] + counts[name] for name in total}
            pair = {"left": compared[0].view, "right": tree.view, "relation": ENSEMBLE, "note": note}
            self.result["comparisons"].append({**pair, "counts": {KIND: counts}})
        self.result["counts"] = {KIND: total}
        self.result["excused"] = {_AFTER_THE_CUT: total["explained"]} if total["explained"] else {}

    def _evaluate(
        self,
        compared: Sequence[trees.Tree],
        found: Mapping[str, Mapping[int, Any]],
        differing: Sequence[str],
        unequal: DataFrame,
    ) -> None:
        """Fill in differences and the verdict; write the tables of differences.

        :arg differing: the paths that differ by their digests, one more than are shown where there are more.
        :arg unequal: all of them, with their digests.
        """
        differences = [
            difference
            for path, of in sorted(found.items())
            for number in range(1, len(compared))
            for difference in _differences(path, of.get(0), of.get(number), compared, number, self.cut is not None)
        ]
        self.result.update(
            differences=results.some_of_each(map(results.listed, differences), self.job.bounds.shown),
            differences_total=len(differences),
        )
        rows = (results.row(difference, *difference.sides) for difference in differences)
        unlisted = _unchecked(unequal, differing, compared) if len(differing) > self.job.bounds.reread_limit else ()
        self.result["files"].update(results.write_differences(self.job.output, itertools.chain(rows, unlisted)))
        reasons = []
        if differences:
            more = len(differing) > self.job.bounds.reread_limit
            beyond = ", and more znodes differ that are not listed" if more else ""
            reasons.append(
                f"{len(found)} znodes differ{beyond}; the first: {differences[0].text()}. To do: {differences[0].do}"
            )
        seen = {json.loads(difference.key)[0] for difference in differences}
        vanished = [path for path in differing[: self.job.bounds.reread_limit] if path not in seen]
        if vanished:
            reasons.append(
                f"{len(vanished)} znodes differed at the first reading of the files and not at the second: "
                f"{vanished[0]}. The files changed meanwhile, or were read incompletely. Take them anew and run again"
            )
        is_empty = not self.result["counts"][KIND]["read"]
        if is_empty:
            reasons.append(
                f"no server has a znode below {self.chroot or '/'}, so nothing was compared. The files are not those "
                "of Kafka's ensemble: check zk_migrate_config_file and quorumshift_zookeeper_connect, and run again"
            )
        verdict = results.DIFFER if differences else results.INCOMPLETE if vanished or is_empty else results.PASS
        self.result.update(verdict=verdict, reasons=reasons)


def _unchecked(
    unequal: DataFrame, differing: Sequence[str], compared: Sequence[trees.Tree]
) -> Iterator[Dict[str, Any]]:
    """Yield the rows of znodes whose fields were not read: a part of the paths is on the driver at a time."""
    for row in itertools.islice(unequal.toLocalIterator(), len(differing) - 1, None):
        for number, tree in enumerate(compared[1:], 1):
            if row.d0 != row[f"d{number}"]:
                sides = {compared[0].view: None, tree.view: None}
                difference = Difference(KIND, canonical([row.path]), None, sides, ENSEMBLE, RULE, DO)
                yield results.row(difference, *sides, results.UNCHECKED, "its fields were not read")


_NO_LEFTOVER = {"znodes": 0, "bytes": 0, "ephemerals": 0}


def _by_path(rows: DataFrame, count: int) -> DataFrame:
    """Return a row for each path: d0, d1, ...: its digest in each tree, and whether it changed after the cut."""
    digests = [F.max(F.when(F.col("tree") == number, F.col("digest"))).alias(f"d{number}") for number in range(count)]
    return rows.filter(F.col("path").isNotNull()).groupBy("path").agg(*digests, F.max("changed").alias("changed"))


def _any_differs(count: int) -> Any:
    differs = ~F.col("d0").eqNullSafe(F.col("d1"))
    for number in range(2, count):
        differs = differs | ~F.col("d0").eqNullSafe(F.col(f"d{number}"))
    return differs


def _differences(path, left, right, compared, number, after) -> List[Difference]:
    """Return how one znode differs. `left`, `right`: {field: JSON}, None where there is none."""
    views, do = (compared[0].view, compared[number].view), DO_AFTER if after else DO
    key = canonical([path])
    if left is None and right is None:
        return []
    if left is None or right is None:
        sides = {view: None if node is None else canonical(_brief(node)) for view, node in zip(views, (left, right))}
        return [Difference(KIND, key, None, sides, ENSEMBLE, RULE, do)]
    return [
        Difference(KIND, key, field, dict(zip(views, (left[field], right[field]))), ENSEMBLE, RULE, do)
        for field in trees.FIELDS
        if left[field] != right[field]
    ]


def _brief(fields: Mapping[str, str]) -> Dict[str, Any]:
    """Return when a znode that only one side has came to be, and whose it is."""
    return {name: json.loads(fields[name]) for name in ("czxid", "mzxid", "ephemeralOwner")}


def _hex(zxid: int) -> str:
    return f"0x{zxid:x}"
