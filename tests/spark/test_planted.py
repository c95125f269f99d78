# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Planted divergences: metadata_parity finds each of them, by its rule, on one cluster along a migration.

The tests use one cluster, in their order. The rows are in planted/rows.py. The results go to
build/planted/results.json, from which `python -m tools.planted` writes docs/planted-divergences.md.
QUORUMSHIFT_COMPARISONS is the number of comparisons under changes; the table in docs needs 100.
"""

from __future__ import annotations

import contextlib
import json
import os
import pathlib
import signal

import pytest
from ansible_collections.quorumshift.kafka.plugins.module_utils.formats.metadata import metadata_summary
from ansible_collections.quorumshift.kafka.plugins.module_utils.formats.zookeeper import znodes
from ansible_collections.quorumshift.kafka.plugins.module_utils.spark_host import spark_submission
from kazoo import security

from tests.integration import seeded, servers
from tests.spark import parity
from tests.spark.planted import logs, rows, table
from tests.spark.planted.world import ChangingAnswers, OldAnswers, PlantedSnapshots, World

pytestmark = pytest.mark.real
COMPARISONS = int(os.environ.get("QUORUMSHIFT_COMPARISONS", "10"))
PAUSE_MS = 20  # between two changes
OTHER = "AAAAAAAAAAAAAAAAAAAAAA"  # a cluster id


@pytest.fixture(scope="module")
def spark():
    with parity.local_spark() as session:
        yield session


@pytest.fixture(scope="module")
def world(spark):
    with contextlib.ExitStack() as stack:
        home = stack.enter_context(servers.workdir("planted"))
        yield World(stack, home)


def assert_found(group, planted, run, strict=True):
    """Evaluate the rows of a run. `strict`: it finds nothing but them."""
    assert run.result is not None, run.story()
    wrong = table.evaluate(group, run.job["gate"], planted, run.result, strict=strict)
    assert not wrong, "\n".join([*wrong, *run.result["reasons"]])


def assert_each_found(group, runs):
    """Evaluate rows that have a run each."""
    wrong = [
        line
        for number, (row, run) in enumerate(runs)
        for line in table.evaluate(group, run.job["gate"], [row], run.result, keep=number > 0)
    ]
    assert not wrong, "\n".join(wrong)


@pytest.fixture(scope="module")
def before(world):
    """The run before anything is planted, which passes: its entities are the baseline."""
    return world.run("before_controllers")


def test_the_seeded_cluster_passes(before):
    assert before.verdict == "pass", before.story()


def test_planted_in_zookeeper_mode(world, before):
    planted = rows.in_zookeeper_mode(world)
    with world.znodes() as zk:
        for row in planted:
            row.plant(zk)
        run = world.run("before_controllers")
    assert_found("in ZooKeeper, ZooKeeper mode", planted, run)


@pytest.fixture(scope="module")
def migrated(world):
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
    assert_found("in ZooKeeper, dual-write", planted, run)


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
    assert_found("in the log, dual-write", planted, run)


def test_planted_in_another_controllers_log(migrated, copied, image):
    planted = rows.in_other_log(migrated, image)
    records = records_of(planted)
    log = migrated.planted_log([], len(records))
    other = migrated.copied(log)
    logs.rewrite(other, records, migrated.mark)
    assert logs.loaded([other])[0].startswith("loaded ")
    others = [{"node": 3001, "directory": str(other), "end_offset": log["end_offset"]}]
    run = migrated.run("after_copy", {"metadata_log": log, "metadata_logs": others}, fence=migrated.fence_now())
    assert_found("in the log of another controller", planted, run)


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
    assert_found("in the baseline", planted, run)


def test_what_the_copy_lost_and_kafka_purged(migrated, before, settled):
    """The baseline is of before the copy. ZooKeeper lost the same since, and znodes were deleted there."""
    planted = rows.lost_in_copy(migrated)
    with migrated.znodes() as zk:
        baseline = migrated.baseline(before, zk)
        for row in planted:
            row.plant(baseline)
        fence = migrated.fence_now()
        given = {"metadata_log": migrated.snapshots.cut(), "baseline": baseline.write()}
        run = migrated.run("after_copy", given, fence=fence)
    assert_found("lost in the copy", planted, run, strict=False)


def test_planted_blocks_of_producer_ids(migrated, settled):
    """One block at a time: there is one entity."""
    next_id = logs.image_of(migrated.log).producer_ids[0]
    runs = []
    for row, block in rows.blocks(next_id):
        with migrated.znodes() as zk:
            zk.json(znodes.PRODUCER_ID_BLOCK, **block)
            fence = migrated.fence_now()
            run = migrated.run("after_copy", {"metadata_log": migrated.snapshots.cut()}, fence=fence)
        runs.append((row, run))
    assert_each_found("producer ids", runs)


def test_a_dual_write_that_is_behind(migrated, settled):
    row, log = rows.behind(), migrated.unpacked()
    # Far ahead, so that /migration does not pass it while the job runs
    for dummy in range(200):
        logs.append(log["directory"], log["end_offset"], [logs.config(2, "orders", "retention.ms", "9009")])
        log["end_offset"] += 1
    run = migrated.run("after_copy", {"metadata_log": log}, fence=migrated.fence_now(), bounds={"fence_s": 1})
    assert_found("dual-write is behind", [row], run)


def test_a_value_that_the_controller_overwrites_meanwhile(migrated, settled):
    """Before the next test creates a token: a broker in ZooKeeper mode does not serve it."""
    row = rows.overwritten()
    row.plant(migrated.client)
    fence, answering = migrated.fence_now(), ChangingAnswers(migrated, ("twice", "max.message.bytes", 900000))
    run = migrated.run("after_copy", {"metadata_log": migrated.snapshots.cut()}, fence=fence, answering=answering)
    migrated.set_config("twice", "max.message.bytes", None)
    migrated.settle()
    assert_found("ZooKeeper is overwritten meanwhile", [row], run)


def test_planted_in_the_baseline_beside_changes(migrated, settled):
    planted = rows.backwards(migrated)
    seeded.tools(rows.beside(migrated))
    migrated.settle()
    with migrated.znodes() as zk:
        baseline = migrated.baseline(settled, zk)
        for row in planted:
            row.plant(baseline)
        fence = migrated.fence_now()
        given = {"metadata_log": migrated.snapshots.cut(), "baseline": baseline.write()}
        run = migrated.run("before_kraft", given, fence=fence)
    assert_found("in the baseline, beside changes", planted, run)


# --- the brokers run in KRaft mode --------------------------------------------------------------------


@pytest.fixture(scope="module")
def kraft(migrated):
    migrated.to_kraft()
    return migrated


@pytest.fixture(scope="module")
def in_kraft(kraft):
    """The run of the cluster in KRaft mode, before anything is planted."""
    return passing(kraft)


def passing(world):
    """Return a run of the live cluster, which passes."""
    fence = world.fence_now()
    run = world.run("after_kraft", {"metadata_log": world.snapshots.cut()}, fence=fence, answering=world.snapshots)
    assert run.verdict == "pass", run.story()
    return run


def test_kraft_mode_passes(in_kraft):
    assert in_kraft.result["counts"]["feature"]["match"] > 0


def test_planted_by_a_stale_broker(kraft, in_kraft):
    """First only what brokers do not show, then all else."""
    at = ["--bootstrap-server", str(kraft.second.listeners["PLAINTEXT"])]
    secrets, others = rows.secrets_of_stale_broker(at), rows.of_stale_broker(kraft, at)
    with kraft.blocked("stale"):
        for group, planted in (("a stale broker, secrets", secrets), ("a stale broker", others)):
            seeded.tools(records_of(planted))
            kraft.settle()
            fence = kraft.fence_now()
            given = {"metadata_log": kraft.snapshots.cut()}
            run = kraft.run("after_kraft", given, fence=fence, answering=kraft.snapshots)
            assert_found(group, planted, run)


@pytest.fixture(scope="module")
def caught_up(kraft):
    """The run after broker 1 has caught up: its entities are a baseline."""
    return passing(kraft)


def test_a_suspended_broker(kraft, caught_up):
    servers.suspend(kraft.second.pid)
    try:
        run = kraft.run("after_kraft", {"metadata_log": kraft.snapshots.cut()}, bounds={"request_timeout_s": 3})
    finally:
        os.kill(kraft.second.pid, signal.SIGCONT)
    assert_found("a suspended broker", [rows.suspended()], run)
    kraft.unfenced(2)


def test_planted_in_the_log_of_kraft(kraft, caught_up):
    planted = rows.in_log_of_kraft(kraft, logs.image_of(kraft.log))
    snapshots = PlantedSnapshots(kraft, records_of(planted))
    fence, log = kraft.fence_now(), snapshots.cut()
    assert logs.loaded([log["directory"]])[0].startswith("loaded ")
    # The log alone decides after the migration: ZooKeeper has no features, and KRaft's brokers are not in it
    given = {"zookeeper": None, "metadata_log": log, "baseline": None}
    run = kraft.run("after_finalize", given, fence=fence, answering=snapshots)
    assert_found("in the log, KRaft mode", planted, run)


def test_planted_in_a_checkpoint(kraft, caught_up):
    row, log = rows.of_old_checkpoint(logs.image_of(kraft.log)), kraft.unpacked()
    directory, end = pathlib.Path(log["directory"]), log["end_offset"]
    logs.checkpoint(directory, end - 1, [*logs.records(directory, end - 1), *row.plant(None)])
    assert logs.loaded([directory])[0].startswith("loaded ")
    given = {"zookeeper": None, "metadata_log": log, "baseline": caught_up.baseline}
    run = kraft.run("after_finalize", given)
    assert_found("in a checkpoint", [row], run)
    # What the cluster itself changed since the baseline has its records here, and not below
    also = tuple((change["kind"], change["key"]) for change in run.result["changed"])
    segment = max(directory.glob("*.log"))
    logs.cut(segment, lambda batch: batch.last_offset >= end - 1)
    segment.rename(directory / f"{end - 1:020d}.log")
    run = kraft.run("after_finalize", given)
    assert_found("in a checkpoint alone", [rows.without_records(row)._replace(also=also)], run)
    assert not run.result["differences"]


def test_a_change_that_a_checkpoint_sums_up(kraft, caught_up):
    """Its record is in an older segment, so it is excused; so is the removal of another entity."""
    at = ["--bootstrap-server", str(kraft.second.listeners["PLAINTEXT"])]
    config = ["kafka.admin.ConfigCommand", *at, "--alter", "--entity-type", "topics", "--entity-name"]
    acl = ["--allow-principal", "User:alice", "--operation", "Read", "--allow-host", "10.0.0.5", "--topic", "acl-name"]
    seeded.tools(
        [
            [*config, "wide", "--add-config", "retention.ms=7007"],
            [*config, "plain", "--add-config", "retention.ms=7008"],
            ["kafka.admin.AclCommand", *at, "--remove", "--force", *acl],
        ]
    )
    kraft.settle()
    log = kraft.unpacked()
    directory, end = pathlib.Path(log["directory"]), log["end_offset"]
    logs.checkpoint(directory, end - 1, logs.records(directory, end - 1))
    assert logs.loaded([directory])[0].startswith("loaded ")
    given = {"zookeeper": None, "metadata_log": log, "baseline": caught_up.baseline}
    run = kraft.run("after_finalize", given)
    assert run.verdict == "pass", run.story()
    changed = {
        (change["kind"], json.loads(change["key"])[2 if change["kind"] == "acl" else 1])
        for change in run.result["changed"]
    }
    assert {("config", "wide"), ("config", "plain"), ("acl", "acl-name")} <= changed


def test_malformed_znodes(kraft, caught_up):
    planted = rows.malformed(kraft)
    with kraft.znodes() as zk:
        for row in planted:
            row.plant(zk)
        fence = kraft.fence_now()
        run = kraft.run("after_kraft", {"metadata_log": kraft.snapshots.cut()}, fence=fence)
    assert_found("malformed znodes", planted, run)


def test_broken_logs(kraft, caught_up):
    planted = rows.broken_logs()
    log, others = kraft.unpacked(), []
    for number, (_row, breaks) in enumerate(planted):
        if breaks is None:
            others.append({"node": 3100 + number, **kraft.snapshots.cut(), "sha256": "0" * 64})
            continue
        directory, end = kraft.copied(log), log["end_offset"]
        breaks(directory, end)
        more = number in (7, 8)  # with a batch after the end
        others.append({"node": 3100 + number, "directory": str(directory), "end_offset": end + more})
    rejected = [line.startswith("rejected ") for line in logs.loaded([others[n]["directory"] for n in (1, 5, 7)])]
    assert all(rejected)
    run = kraft.run("before_finalize", {"metadata_log": log, "metadata_logs": others}, fence=kraft.fence_now())
    assert_found("broken logs", [row for row, _breaks in planted], run)


def test_a_short_log(kraft, caught_up):
    kraft.settle()
    log = kraft.planted_log([])
    end = logs.places(pathlib.Path(log["directory"]), kraft.mark)[0] + 1
    others = [{"node": 3001, "directory": log["directory"], "end_offset": end}]
    run = kraft.run("after_kraft", {"metadata_log": log, "metadata_logs": others}, fence=kraft.fence_now())
    assert_found("a short log", [rows.of_short_log()], run)
    last = logs.last_epoch(pathlib.Path(log["directory"]))
    other = kraft.copied(log)
    logs.elect(other, last + 1)
    others = [
        {"node": 3001, "directory": str(other), "end_offset": log["end_offset"]},
        {"node": 3002, "error": "c3 cannot be reached"},
    ]
    run = kraft.run("after_kraft", {"metadata_log": log, "metadata_logs": others}, fence=kraft.fence_now())
    assert_found("logs that are not compared", [rows.of_other_epoch(), rows.of_unread_log()], run)


def test_a_log_of_another_cluster(kraft, caught_up):
    row = rows.of_other_cluster(None)
    directory = kraft.home / "another"
    directory.mkdir()
    (directory / "00000000000000000000.log").touch()
    logs.append(str(directory), 0, row.plant(None))
    assert logs.loaded([directory]) == ["loaded 1 topics, 0 acls"]
    fence = kraft.fence_now()
    end = fence["migration_offset"] + 1
    logs.append(str(directory), 3, [("NO_OP_RECORD", {})] * (end - 3))
    log = {"directory": str(directory), "end_offset": end}
    run = kraft.run("after_kraft", {"metadata_log": log}, fence=fence)
    assert_found("a log of another cluster", [row], run, strict=False)


def test_wrong_addresses_clusters_and_keys(kraft, caught_up):
    log = {"metadata_log": kraft.snapshots.cut()}
    first, second = kraft.views["brokers"]
    closed = {**first, "id": 3, "address": f"127.0.0.1:{servers.free_port()}"}
    controller = {"id": 4, "address": str(kraft.controller.address)}
    chroot = {"connect": kraft.zk.connect + "/nowhere"}
    given = {**log, "brokers": [first, closed, controller], "zookeeper": chroot}
    fence = kraft.fence_now()
    run = kraft.run("after_kraft", given, fence=fence, bounds={"request_timeout_s": 5})
    assert_found("wrong addresses", rows.wrong_addresses(), run)
    baseline = kraft.baseline(caught_up).write({"key_id": "0" * 16})
    given = {**log, "brokers": [{**second, "id": 1}], "baseline": baseline}
    assert_found("wrong identities", rows.wrong_identities(), kraft.run("after_kraft", given, fence=fence))
    given = {**log, "zookeeper": None, "baseline": caught_up.baseline}
    assert_found("other clusters", rows.other_clusters(), kraft.run("after_finalize", given, cluster_id=OTHER))
    run = kraft.run("after_kraft", log, cluster_id=OTHER, fence=fence)
    assert_found("ZooKeeper of another cluster", [rows.other_zookeeper()], run)


def test_old_nonces(kraft, caught_up):
    answer, result = rows.old_nonces()
    fence, cut = kraft.fence_now(), kraft.snapshots.cut()
    with kraft.znodes() as zk:
        zk.json(znodes.partition_state_path("wide", 9), leader_epoch=7)
        more = {"fence": fence, "answering": OldAnswers(kraft), "bounds": {"rounds": 2}}
        run = kraft.run("after_kraft", {"metadata_log": cut}, **more)
    again = spark_submission.read_result(str(run.output), "the nonce of this job", {"exit_code": 2, "seconds": 1})
    assert_found("an old answer", [answer], run)
    wrong = table.evaluate("an old result", run.job["gate"], [result], again)
    assert not wrong, wrong


def test_coverage(kraft, caught_up):
    given = {"zookeeper": None, "metadata_log": kraft.snapshots.cut()}
    run = kraft.run("after_finalize", given, answering=kraft.snapshots)
    assert_found("no baseline", [rows.without_baseline()], run)
    others = {"delegation.token.secret.key": "another", "min.insync.replicas": "2"}
    kraft.restart_second({**others, "unclean.leader.election.enable": "true"})
    fence = kraft.fence_now()
    down = {"id": 3001, "address": f"127.0.0.1:{servers.free_port()}"}
    users = ("User:ANONYMOUS;User:admin", "User:ANONYMOUS;User:admin;User:other")
    brokers = [{**broker, "file": {"super.users": of}} for broker, of in zip(kraft.views["brokers"], users)]
    given = {"controllers": [*kraft.views["controllers"], down], "brokers": brokers}
    given["metadata_log"] = kraft.snapshots.cut()
    run = kraft.run("after_kraft", given, fence=fence, answering=kraft.snapshots)
    assert_found("settings of a node's file", rows.of_other_settings(kraft), run)
    brokers = [{**broker, "directories": ids} for broker, ids in zip(kraft.views["brokers"], kraft.directory_ids())]
    brokers[1]["directories"] = [logs.other_id(77)]
    given = {"metadata_log": kraft.snapshots.cut(), "brokers": brokers, "baseline": caught_up.baseline}
    run = kraft.run("after_kraft", given, fence=kraft.fence_now(), answering=kraft.snapshots)
    assert_found("a node and its host", rows.of_node_before(), run, strict=False)
    assert run.found("broker", [1], "log_dirs") is None, run.story()
    kraft.restart_second({"delegation.token.secret.key": None, "authorizer.class.name": None})
    with kraft.znodes() as zk:
        zk.data("/brokers/ids/9", kraft.registration(9))
        fence = kraft.fence_now()
        given = {"metadata_log": kraft.snapshots.cut(), "brokers": kraft.views["brokers"][1:]}
        run = kraft.run("after_kraft", given, fence=fence, answering=kraft.snapshots)
    assert_found("coverage", rows.uncovered(), run)
    kraft.restart_second({})


def test_a_dual_write_that_is_held_back(kraft, caught_up):
    row, at = rows.held_back(), ["--bootstrap-server", str(kraft.second.listeners["PLAINTEXT"])]
    fence = kraft.fence_now()
    with kraft.blocked("behind"):
        seeded.tools(row.plant(at))
        given = {"metadata_log": kraft.snapshots.cut()}
        bounds = {"fence_s": 1, "rounds": 4}
        run = kraft.run("after_kraft", given, fence=fence, answering=kraft.snapshots, bounds=bounds)
    assert_found("dual-write is held back", [row], run)
    kraft.settle()


def test_no_false_alarm_while_metadata_changes(kraft, caught_up):
    """Each comparison takes the last one that passed as its baseline, as gates do."""
    counts = {"pass": 0, "incomplete": 0, "differ": 0, "error": 0}
    reasons, baseline = [], caught_up.baseline

    def record(changes):
        counted = {"comparisons": sum(counts.values()), **counts, "changes": changes, "reasons": reasons}
        table.record_changes(kraft.home.name, counted)

    with kraft.changing(PAUSE_MS) as changed:
        for dummy in range(COMPARISONS):
            fence = kraft.snapshots.fence()
            given = {"metadata_log": kraft.snapshots.cut(), "baseline": baseline}
            bounds = {"rounds": 10}
            run = kraft.run("after_kraft", given, fence=fence, answering=kraft.snapshots, bounds=bounds)
            counts[run.verdict] += 1
            if run.verdict == "pass":
                baseline = run.baseline
            else:
                reasons.append(f"{run.verdict}: {'; '.join(run.result['reasons'])}")
            record({})
    record(changed)
    kraft.settle()
    assert not counts["differ"] and not counts["error"], reasons
    assert 2 * counts["pass"] > COMPARISONS, reasons  # `incomplete` does not open a gate, and is no false alarm


def test_quotas_that_are_no_numbers_of_json_agree(kraft, caught_up):
    """Kafka takes them for a percentage."""
    at = ["--bootstrap-server", str(kraft.second.listeners["PLAINTEXT"]), "--alter", "--entity-type", "clients"]
    for number, value in enumerate(("NaN", "Infinity")):
        name = ["--entity-name", f"not-finite-{number}"]
        seeded.tools([["kafka.admin.ConfigCommand", *at, *name, "--add-config", f"request_percentage={value}"]])
    kraft.settle()
    run = passing(kraft)
    assert run.result["counts"]["quota"]["differ"] == 0


def test_lost_writes(kraft, caught_up):
    """Kafka does not make up for them."""
    planted, at = rows.lost_writes(), ["--bootstrap-server", str(kraft.second.listeners["PLAINTEXT"])]
    readable = [security.make_acl("world", "anyone", read=True, admin=True)]
    kraft.client.set_acls("/config/topics/orders", readable)
    seeded.tools([command for row in planted for command in row.plant(at)])
    kraft.settle()
    fence = kraft.fence_now()
    run = kraft.run("after_kraft", {"metadata_log": kraft.snapshots.cut()}, fence=fence, answering=kraft.snapshots)
    assert_found("lost writes", planted, run)
    answering = ChangingAnswers(kraft, ("orders", "retention.ms", 9300))
    run = kraft.run("after_kraft", {"metadata_log": kraft.snapshots.cut()}, fence=fence, answering=answering)
    assert_found("lost writes, beside changes", [rows.lost_beside_changes()], run, strict=False)


def test_credentials_that_a_restart_loses(kraft, caught_up):
    """After users were removed (test_no_false_alarm_while_metadata_changes)."""
    log = kraft.second.home / "data" / "__cluster_metadata-0"
    losses = metadata_summary.summarise(str(log), with_history=True)["scram_losses"]["restart"]
    assert "SCRAM-SHA-256" in losses  # a gate and an admission say so beforehand
    kraft.restart_second({})
    fence = kraft.fence_now()
    run = kraft.run("after_kraft", {"metadata_log": kraft.snapshots.cut()}, fence=fence, answering=kraft.snapshots)
    assert_found("lost credentials", [rows.lost_credentials()], run, strict=False)


def test_security_that_is_off_since_the_baseline(kraft, caught_up):
    kraft.restart_without_security()
    fence = kraft.fence_now()
    given = {"metadata_log": kraft.snapshots.cut(), "baseline": caught_up.baseline}
    run = kraft.run("after_kraft", given, fence=fence, answering=kraft.snapshots)
    assert_found("off since the baseline", rows.off_since_baseline(), run, strict=False)
