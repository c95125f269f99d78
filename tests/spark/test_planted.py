# Copyright: (c) 2026, Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Planted divergences: metadata_parity finds each of them, by its rule, on one cluster along a migration.

The tests use one cluster, in their order. The rows are in planted/rows.py. The results go to
build/planted/results.json, from which `python -m tools.planted` writes docs/planted-divergences.md.
QUORUMSHIFT_COMPARISONS is the number of comparisons under changes; the table in docs needs 100.
"""

from __future__ import annotations

import contextlib

import pytest
from ansible_collections.quorumshift.kafka.plugins.module_utils.formats import znodes

from tests.integration import servers
from tests.spark import parity
from tests.spark.planted import logs, rows, table
from tests.spark.planted.world import PlantedSnapshots, World, tools

pytestmark = pytest.mark.real


@pytest.fixture(scope="module")
def spark():
    with parity.local_spark() as session:
        yield session


@pytest.fixture(scope="module")
def world(spark):
    with contextlib.ExitStack() as stack:
        home = stack.enter_context(servers.workdir("planted"))
        yield World(stack, home)


def check(group, planted, run):
    """Judge the rows of a run."""
    assert run.result is not None, run.story()
    wrong = table.judge(group, run.job["gate"], planted, run.result)
    assert not wrong, "\n".join([*wrong, *run.result["reasons"]])


def check_each(group, judged):
    """Judge rows that have a run each."""
    wrong = [
        line
        for number, (row, run) in enumerate(judged)
        for line in table.judge(group, run.job["gate"], [row], run.result, keep=number > 0)
    ]
    assert not wrong, "\n".join(wrong)


@pytest.fixture(scope="module")
def before(world):
    """The run before anything is planted, which passes: its entities are the baseline."""
    return world.run("before_controllers")


def test_the_seeded_cluster_passes(before):
    assert before.verdict == "pass", before.story()


@pytest.fixture(scope="module")
def migrated(world, before):
    world.migrate()
    return world


@pytest.fixture(scope="module")
def copied(migrated):
    """The run after the copy, before anything is planted."""
    fence = migrated.fence_now()
    return migrated.run("after_copy", {"metadata_log": migrated.snapshots.cut()}, fence=fence)


def test_the_copy_passes(migrated, copied):
    print(migrated.client.get_children("/config/ips"))
    assert copied.verdict == "pass", copied.story()


def test_planted_in_zookeeper(migrated, copied):
    planted = rows.in_zookeeper(migrated)
    with migrated.znodes() as zk:
        for row in planted:
            row.plant(zk)
        fence = migrated.fence_now()
        run = migrated.run("after_copy", {"metadata_log": migrated.snapshots.cut()}, fence=fence)
    check("in ZooKeeper, dual-write", planted, run)


def records_of(planted):
    """Return the records of the rows."""
    return [record for row in planted for record in row.plant(None)]


@pytest.fixture(scope="module")
def image(migrated):
    return logs.image_of(migrated.log)


def test_planted_in_the_log(migrated, copied, image):
    planted = rows.in_log(migrated, image)
    snapshots = PlantedSnapshots(migrated, records_of(planted))
    fence, log = migrated.fence_now(), snapshots.cut()
    assert logs.loaded([log["directory"]])[0].startswith("loaded ")
    run = migrated.run("after_copy", {"metadata_log": log}, fence=fence, answering=snapshots)
    check("in the log, dual-write", planted, run)


def test_planted_in_another_controllers_log(migrated, copied, image):
    planted = rows.in_other_log(migrated, image)
    log = migrated.planted_log([])
    other = migrated.copied(log)
    logs.rewrite(other, records_of(planted), migrated.mark)
    assert logs.loaded([other])[0].startswith("loaded ")
    others = [{"node": 3001, "directory": str(other), "end_offset": log["end_offset"]}]
    run = migrated.run("after_copy", {"metadata_log": log, "metadata_logs": others}, fence=migrated.fence_now())
    check("in the log of another controller", planted, run)


@pytest.fixture(scope="module")
def settled(migrated, copied):
    """A passing run after all that was planted is reverted: its entities are the baseline."""
    run = migrated.run("after_copy", {"metadata_log": migrated.snapshots.cut()}, fence=migrated.fence_now())
    assert run.verdict == "pass", run.story()
    return run


def test_planted_in_the_baseline(migrated, settled):
    planted = rows.in_baseline(migrated)
    baseline = migrated.baseline(settled)
    for row in planted:
        row.plant(baseline)
    given = {"metadata_log": migrated.snapshots.cut(), "baseline": baseline.write()}
    run = migrated.run("before_kraft", given, fence=migrated.fence_now())
    check("in the baseline", planted, run)


def test_planted_in_the_baseline_beside_changes(migrated, settled):
    planted = rows.backwards(migrated)
    tools(rows.beside(migrated))
    migrated.settle()
    with migrated.znodes() as zk:
        baseline = migrated.baseline(settled, zk)
        for row in planted:
            row.plant(baseline)
        fence = migrated.fence_now()
        given = {"metadata_log": migrated.snapshots.cut(), "baseline": baseline.write()}
        run = migrated.run("before_kraft", given, fence=fence)
    check("in the baseline, beside changes", planted, run)


def test_planted_blocks_of_producer_ids(migrated, settled):
    """One block at a time: there is one entity."""
    next_id = logs.image_of(migrated.log).producer_ids[0]
    judged = []
    for row, block in rows.blocks(next_id):
        with migrated.znodes() as zk:
            zk.json(znodes.PRODUCER_ID_BLOCK, **block)
            fence = migrated.fence_now()
            run = migrated.run("after_copy", {"metadata_log": migrated.snapshots.cut()}, fence=fence)
        judged.append((row, run))
    check_each("producer ids", judged)


def test_a_dual_write_that_is_behind(migrated, settled):
    row, log = rows.behind(), migrated.unpacked()
    # Far ahead, so that /migration does not pass it while the job runs
    for dummy in range(200):
        logs.append(log["directory"], log["end_offset"], [logs.config(2, "orders", "retention.ms", "9009")])
        log["end_offset"] += 1
    run = migrated.run("after_copy", {"metadata_log": log}, fence=migrated.fence_now(), bounds={"fence_s": 1})
    check("dual-write is behind", [row], run)
