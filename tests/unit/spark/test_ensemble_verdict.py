# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The verdict on two ensembles: what the first reading of the files found, the second one must show."""

from __future__ import annotations

from types import SimpleNamespace

import pyarrow.parquet as pq
import pytest
from pyspark.sql import Row
from quorumshift_spark import ensemble_parity
from quorumshift_spark import result as results
from quorumshift_spark.views import trees

SIDES = ("source:s1", "destination:z1", "destination:z2")
NODE = dict.fromkeys(trees.FIELDS, "1")
OTHER = {**NODE, "version": "2"}


def run_state(directory, reread_limit=10, read=2):
    job = SimpleNamespace(output=str(directory), bounds=SimpleNamespace(shown=10, reread_limit=reread_limit))
    result = {"files": {}, "counts": {ensemble_parity.KIND: {"read": read}}}
    return SimpleNamespace(job=job, cut=None, chroot="/kafka", result=result)


def test_trees_without_a_znode_are_no_pass(tmp_path):
    """Such as of a ZooKeeper server that has nothing to do with Kafka."""
    run = run_state(tmp_path, read=0)
    ensemble_parity._Run._evaluate(run, [SimpleNamespace(view=view) for view in SIDES], {}, [], None)
    assert run.result["verdict"] == "incomplete" and "below /kafka" in run.result["reasons"][0]


@pytest.mark.parametrize(
    ("differing", "shown", "verdict", "why"),
    [
        ([], {}, "pass", None),
        (["/a"], {"/a": {0: NODE, 1: OTHER, 2: NODE}}, "differ", "/a"),
        (["/a"], {"/a": {1: NODE, 2: NODE}}, "differ", "/a"),
        (["/a"], {}, "incomplete", "1 znodes differed at the first reading of the files and not at the second: /a"),
        (["/a"], {"/a": {0: NODE, 1: NODE, 2: NODE}}, "incomplete", "not at the second: /a"),
        (["/a", "/b"], {"/b": {0: NODE, 1: NODE, 2: OTHER}}, "differ", "not at the second: /a"),
    ],
)
def test_what_a_second_reading_lacks_is_no_pass(tmp_path, differing, shown, verdict, why):
    run = run_state(tmp_path)
    compared = [SimpleNamespace(view=view) for view in SIDES]
    ensemble_parity._Run._evaluate(run, compared, shown, differing, None)
    assert run.result["verdict"] == verdict
    assert why is None or why in " ".join(run.result["reasons"])


def test_znodes_beyond_the_limit_are_in_the_tables(tmp_path):
    """Of these the fields are not read. `unequal` has all paths that differ, in their order."""
    run = run_state(tmp_path, reread_limit=1)
    compared = [SimpleNamespace(view=view) for view in SIDES]
    paths = [Row(path="/a", d0=1, d1=2, d2=1), Row(path="/b", d0=1, d1=1, d2=None), Row(path="/c", d0=None, d1=1, d2=2)]
    unequal = SimpleNamespace(toLocalIterator=lambda: iter(paths))
    ensemble_parity._Run._evaluate(run, compared, {"/a": {0: NODE, 1: OTHER, 2: NODE}}, ["/a", "/b"], unequal)
    rows = pq.read_table(tmp_path / results.DIFFERENCES).to_pylist()
    found = [(row["status"], row["key"], row["right"]) for row in rows if row["status"] == results.UNCHECKED]
    of = SIDES[1:]
    assert found == [(results.UNCHECKED, *row) for row in (('["/b"]', of[1]), ('["/c"]', of[0]), ('["/c"]', of[1]))]
    assert {row["key"] for row in rows if row["status"] == "differ"} == {'["/a"]'}
    assert run.result["files"][results.DIFFERENCES_CSV]["rows"] == len(rows)
