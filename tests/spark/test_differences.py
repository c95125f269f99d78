# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The tables of differences are complete where result.json, the report and the re-checks stop; with synthetic views.

QUORUMSHIFT_DIFFERENCES is the number of differences of the last test; 100000 of them take minutes.
"""

from __future__ import annotations

import csv
import os
import resource

import pyarrow.parquet as pq
import pytest
from quorumshift_spark import job as jobs
from quorumshift_spark import metadata_parity, warm_up
from quorumshift_spark import normal_form as form
from quorumshift_spark import result as results
from quorumshift_spark.views import Statement, family

from tests.spark import parity

MANY = int(os.environ.get("QUORUMSHIFT_DIFFERENCES", "3000"))


@pytest.fixture(scope="module")
def spark():
    with parity.local_spark() as session:
        yield session


class Many(warm_up.Synthetic):
    """A view in which so many configs have this value."""

    kinds = ("config",)

    def __init__(self, name, number, value):
        super().__init__(name)
        self.number, self.value = number, value

    def read(self, part):
        """Yield the configs."""
        for number in range(self.number):
            yield form.config("topic", f"topic-{number}", "retention.ms", self.value, form.Digests(b"no secrets"))
        yield Statement({"offset": 1, "epoch": 1}, [])


class Empty(warm_up.Synthetic):
    """A view that the gate needs."""

    kinds = ("topic",)

    def read(self, part):
        """Yield nothing."""
        yield Statement(warm_up._STATES[family(self.name)], [])


def compared(spark, directory, number, monkeypatch, **bounds):
    """Return the result of two logs of which all configs differ, and the rows of both tables."""
    output = directory / "output"
    output.mkdir()
    limits = jobs.Bounds(rounds=1, pause_s=0.0, fence_s=0.0, **bounds)
    job = jobs.Job(str(directory), "n", "after_kraft", None, "C", str(output), b"", {}, {}, limits)
    run = metadata_parity._Run(job, results.empty(results.ERROR, []))
    run.views = {name: Many(name, number, value) for name, value in (("metadata_log", "1"), (warm_up.OTHER_LOG, "2"))}
    run.views |= {name: Empty(name) for name in ("zookeeper", "broker:1")}
    # the coverage of a gate is tested elsewhere
    monkeypatch.setattr(metadata_parity.rules, "uncovered", lambda *_given: [])
    monkeypatch.setattr(metadata_parity.rules, "deciding", lambda *_given: "metadata_log")
    run.compare(spark)
    with open(output / results.DIFFERENCES_CSV, encoding="utf-8", newline="") as file:
        lines = sum(1 for _line in csv.DictReader(file))
    return run.result, pq.read_table(output / results.DIFFERENCES), lines


def test_keys_that_are_not_read_again_are_in_the_tables(spark, tmp_path, monkeypatch):
    monkeypatch.setattr(metadata_parity, "_ENOUGH", 70)
    result, rows, lines = compared(spark, tmp_path, 300, monkeypatch, reread_limit=50, shown=20)
    assert (result["verdict"], result["differences_total"], len(result["differences"])) == ("differ", 100, 20)
    status = rows["status"].to_pylist()
    assert (status.count("differ"), status.count("unchecked"), len(status), lines) == (100, 200, 300, 300)
    assert len(set(rows["key"].to_pylist())) == 300
    assert set(rows["left_value"].to_pylist()) == {'"1"'} and set(rows["right_value"].to_pylist()) == {'"2"'}
    assert all(status == "differ" or "as first read" in why for status, why in zip(status, rows["why"].to_pylist()))
    assert {fact["rows"] for fact in result["files"].values()} == {300}
    assert result["counts"]["config"]["skipped"] == 200


def test_the_drivers_memory_is_that_of_the_keys_read_together(spark, tmp_path, monkeypatch):
    monkeypatch.setattr(metadata_parity, "_ENOUGH", 1000)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    _result, rows, lines = compared(spark, tmp_path, MANY, monkeypatch, reread_limit=1000)
    after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    print(f"{MANY} differences: peak {before // 1024} MiB before, {after // 1024} MiB after")
    assert rows.num_rows == lines == MANY
    assert after - before < 100 * 1024  # KiB; 100,000 rows as dicts take twice as much
