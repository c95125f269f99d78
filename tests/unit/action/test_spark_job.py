# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How a job is submitted, and what its verdict does to the gate."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import shutil

import pytest
from ansible.errors import AnsibleActionFail
from ansible_collections.quorumshift.kafka.plugins.action import spark_job
from ansible_collections.quorumshift.kafka.plugins.modules import spark_job as module
from ansible_collections.quorumshift.kafka.plugins.plugin_utils import baseline, spark_jobs
from quorumshift_spark import job as jobs

SEEN = {"phase": "zk", "mirrored_offset": None, "mirrored_zxid": None}
ARGS = {"name": "metadata_parity", "gate": "before_trigger", "seen": SEEN, "log": {}}


def result(verdict, **more):
    found = {
        "job": "metadata_parity",
        "verdict": verdict,
        "counts": {"topic": {"match": 5}},
        "views": {"zookeeper": {"error": None}},
        **more,
    }
    return {"result": found, "submission": {"seconds": 9.0}, "wanted": None}


@pytest.fixture
def spark(harness, tmp_path):
    harness.variables["_quorumshift_temporary"] = str(tmp_path)
    harness.variables["_quorumshift_private"] = "quorumshift-cluster-1-"
    harness.variables["quorumshift_spark_conf"] = {"spark.ui.enabled": "false"}
    of_records = {"topics": ["*"], "exclude": [], "samples": [], "purged": ["*-repartition"]}
    harness.variables.update({f"quorumshift_fingerprint_{name}": value for name, value in of_records.items()})
    node = {"node_id": 1, "log_dirs": [], "file": {"properties": {"listeners": "PLAINTEXT://b1:9094"}}}
    harness.facts("b1", quorumshift_node=node)
    harness.facts("b2", quorumshift_node={**node, "node_id": 2})
    yield harness
    for asked in harness.asked:
        if asked.get("job"):
            is_as_the_schema_says(asked)


def is_as_the_schema_says(asked):
    """Check what reaches the job: with what the module adds."""
    (name,) = set(spark_jobs.JOBS) & set(asked["submit"])
    clients = dict.fromkeys(("client", "controller_client", "zookeeper_client"))
    connections = {**clients, "zookeeper_connect": "z1:2181", **asked, "encoder_secrets": [], "digest_key": ""}
    jobs.check({**module.complete_job(connections), "digest_key_file": "digest.key"}, name)


def written(directory, changed=None):
    """Write a job's output. `changed`: a file that is not as the job wrote it."""
    files = {}
    for name in ("entities.parquet", "entities.parquet.hmac"):
        files[name] = {"sha256": hashlib.sha256(b"rows").hexdigest(), "rows": 1, "bytes": 4}
        with open(os.path.join(directory, name), "wb") as stream:
            stream.write(b"other" if name == changed else b"rows")
    with open(os.path.join(directory, "result.json"), "w", encoding="ascii") as stream:
        views = {"metadata_log": {"state": {"offset": 7}}, "zookeeper": {"state": {"zxid": 70}}}
        json.dump({"views": views, "files": files}, stream)


@pytest.mark.parametrize("changed", ["entities.parquet", "entities.parquet.hmac"])
def test_a_file_that_is_not_the_one_of_the_result_is_no_baseline(spark, changed):
    def module(args):
        written(args["output_dir"], changed)
        return result("pass")

    spark._module = module
    with pytest.raises(AnsibleActionFail, match=f"{changed} is not the file that the job wrote"):
        spark.run("spark_job", ARGS)
    assert not os.path.exists(os.path.join(spark.artifacts.cluster, "baseline", "entities.parquet"))


def test_what_changed_since_the_baseline_is_not_counted_as_agreement(spark):
    kind = spark_jobs.MetadataParity(None, {})
    counts = {"topic": {"match": 5, "explained": 2}}
    found = {"counts": counts, "views": {"zookeeper": {"error": None}}, "since_baseline": {"changed": 1, "removed": 1}}
    assert kind.summary(found) == (
        "3 comparisons of 1 views agree; 1 changed and 1 removed since the baseline, each with its record"
    )
    found["since_baseline"]["accepted"] = 1
    assert kind.summary(found).endswith("since the baseline, 1 of them accepted without a record")


def test_a_baseline_without_its_signature_is_named(spark):
    directory = os.path.join(spark.artifacts.cluster, "baseline")
    os.makedirs(directory)
    with open(os.path.join(directory, "entities.parquet"), "w", encoding="ascii"):
        pass
    with pytest.raises(AnsibleActionFail, match=r"lacks entities\.parquet\.hmac"):
        spark.run("spark_job", ARGS, result("pass"))


def test_a_pass_is_shown_in_a_line_and_kept_as_the_next_baseline(spark):
    where = os.path.join(spark.artifacts.directory, "verify/before_trigger/metadata_parity")

    def module(args):
        written(args["output_dir"])
        return result("pass")

    spark._module = module
    snapshots = {"z1": {"snapshot": 5, "zxid": 9}}
    done = spark.run("spark_job", {**ARGS, "snapshots": snapshots})
    assert "failed" not in done and done["result"]["run"] == spark.session["run"]
    assert spark.printed == ["    5 comparisons of 1 views agree (9 s)"]
    assert baseline.position(spark.artifacts.cluster) == {"offset": 7, "zxid": 70, "snapshots": snapshots}
    os.unlink(os.path.join(spark.artifacts.cluster, "baseline", "position.json"))
    assert baseline.position(spark.artifacts.cluster)["offset"] == 0  # of an earlier release: as far back as possible
    assert baseline.position(str(where)) == {"offset": None, "zxid": None, "snapshots": {}}
    assert os.path.exists(os.path.join(spark.artifacts.cluster, "baseline", "entities.parquet")) and os.path.isdir(
        where
    )


def test_the_command_has_master_settings_and_job(spark):
    spark.run("spark_job", ARGS, result("differ"))
    submit = spark.asked[0]["submit"]
    assert submit[1:3] == ["--master", "local[*]"] and "spark.ui.enabled=false" in submit
    assert "spark.authenticate=true" not in submit
    assert submit[-6].endswith("/submit.py") and submit[-5:-3] == ["metadata_parity", "--input"]
    assert submit[-2:] == ["--wait", "120"]
    views = spark.asked[0]["job"]["views"]
    assert (
        [broker["id"] for broker in views["brokers"]] == [1, 2] and "zookeeper" in views and "metadata_log" not in views
    )


# Spark is started ahead --------------------------------------------------------------------------------------------


def started(spark):
    """Start Spark; return the task's `application`."""
    done = spark.run("spark_job", {"name": "metadata_parity", "state": "started"}, {"changed": False, "done": True})
    assert os.path.isdir(done["application"]["directory"] + "/input")
    return done["application"]


def test_spark_is_started_ahead_without_a_job_and_gets_it(spark):
    application = started(spark)
    asked = spark.asked[0]
    assert asked["state"] == "started" and not {"job", "nonce", "digest_key", "output_dir"} & set(asked)
    spark.run("spark_job", {**ARGS, "application": application}, result("differ"))
    asked = spark.asked[-1]
    assert asked["is_started"] and asked["directory"] == application["directory"]
    assert asked["submit"] == application["submit"] and "job" in asked
    assert not os.path.exists(application["directory"])


@pytest.mark.parametrize("why", ["it ended before it took the job", "its directory is gone", "another JVM"])
def test_a_job_starts_spark_anew_where_the_one_that_waits_cannot_run_it(spark, monkeypatch, why):
    application = started(spark)
    if why == "its directory is gone":
        shutil.rmtree(application["directory"])
    if why == "another JVM":
        monkeypatch.setattr(spark_jobs, "LARGE_BYTES", 0)

    def module(args):
        spark.asked.append(dict(args))
        return {"done": True, "waited": False} if args["is_started"] else result("differ")

    spark._module = module
    spark.run("spark_job", {**ARGS, "application": application})
    assert not spark.asked[-1]["is_started"] and spark.asked[-1]["directory"] != application["directory"]
    assert len(spark.asked) == (2 if why == "another JVM" else 3)
    assert not os.path.exists(application["directory"]) and not os.path.exists(spark.asked[-1]["directory"])


@pytest.mark.parametrize("ahead", [False, True])
@pytest.mark.parametrize("error", [OSError(28, "No space left on device"), KeyError("node_id")])
def test_no_failure_leaves_input_on_the_spark_host(spark, monkeypatch, tmp_path, error, ahead):
    given = {**ARGS, **({"application": started(spark)} if ahead else {})}

    def upload(_kind, input_dir, _args):
        with open(f"{input_dir}/metadata_log.tar.gz", "w", encoding="ascii") as stream:
            stream.write("secret")
        raise error

    monkeypatch.setattr(spark_jobs.MetadataParity, "upload", upload)
    with contextlib.suppress(KeyError):
        assert spark.run("spark_job", given, result("pass"))["failed"]
    assert not [*tmp_path.glob("quorumshift-cluster-1-*")]


@pytest.mark.parametrize("more", [{}, {"state": "started"}])
def test_a_secret_in_the_settings_leaves_nothing_on_the_spark_host(spark, tmp_path, more):
    spark.variables["quorumshift_spark_conf"] = {"spark.ssl.keyPassword": "s3cret"}
    with pytest.raises(AnsibleActionFail, match="holds a secret"):
        spark.run("spark_job", {**ARGS, **more}, result("pass"))
    assert not [*tmp_path.glob("quorumshift-cluster-1-*")]


def test_spark_that_ends_before_its_job_twice_closes_the_gate(spark):
    application = started(spark)
    spark._module = lambda _args: {"done": True, "waited": False}
    with pytest.raises(AnsibleActionFail, match="Spark ended before it had its job"):
        spark.run("spark_job", {**ARGS, "application": application})


JVM = "spark.driver.extraJavaOptions"


@pytest.mark.parametrize(
    ("large_bytes", "more", "options"),
    [
        (spark_jobs.LARGE_BYTES, {}, spark_jobs.SMALL_JVM[JVM]),
        (1, {}, spark_jobs.LARGE_JVM[JVM]),
        (1, {"conf": {JVM: "-Xss8m"}}, "-Xss8m"),
        (1, {"master": "spark://s1:7077"}, spark_jobs.SMALL_JVM[JVM]),
    ],
)
def test_the_size_of_the_input_decides_about_the_jvm(spark, monkeypatch, large_bytes, more, options):
    monkeypatch.setattr(spark_jobs, "LARGE_BYTES", large_bytes)
    spark.run("spark_job", {**ARGS, **more}, result("differ"))
    assert [part for part in spark.asked[0]["submit"] if part.startswith(JVM)] == [f"{JVM}={options}"]


def test_directories_of_a_broker_are_given_where_its_host_shows_all_of_them(spark):
    def directory(directory_id, **more):
        return {"path": "/data", "exists": True, "meta": {"directory.id": directory_id}, **more}

    node = {"file": {"properties": {"listeners": "PLAINTEXT://b1:9094"}}}
    dirs = {"b1": [directory("b"), directory("a")], "b2": [directory("c"), directory("d", error="Input/output error")]}
    for number, (host, found) in enumerate(dirs.items(), 1):
        spark.facts(host, quorumshift_node={**node, "node_id": number, "log_dirs": found})
    spark.run("spark_job", ARGS, result("differ"))
    brokers = spark.asked[0]["job"]["views"]["brokers"]
    assert [broker["directories"] for broker in brokers] == [["a", "b"], []]


def test_zookeeper_is_read_at_a_bounded_pace(spark):
    spark.variables.update(quorumshift_zookeeper_read_rate=10000, quorumshift_zookeeper_read_latency_ms="0")
    spark.run("spark_job", ARGS, result("differ"))
    assert spark.asked[0]["job"]["views"]["zookeeper"] == {"max_rate": 10000.0, "max_latency_ms": None}


def test_the_files_that_show_zookeeper_before_the_copy_are_copied(spark, tmp_path):
    archive = tmp_path / "5.tar.gz"
    archive.write_bytes(b"files")
    spark.variables["quorumshift_zookeeper_connect"] = "z1:2181/prod/kafka"
    facts = {"host": "z1", "sha256": "00", "snapshot": 5, "before": 9}
    spark.run("spark_job", {**ARGS, "copy_source": {**facts, "archive": str(archive)}}, result("differ"))
    given = dict(spark.asked[0]["job"]["views"]["copy_source"])
    there = given.pop("archive")
    assert given == {**facts, "chroot": "/prod/kafka"} and there.endswith("/input/zookeeper.tar.gz")


def test_why_there_are_no_such_files_reaches_the_job_in_one_line(spark):
    spark.run("spark_job", {**ARGS, "copy_source": {"error": "z1: no\n  answer"}}, result("differ"))
    assert spark.asked[0]["job"]["views"]["copy_source"] == {"error": "z1: no answer"}


def test_zookeepers_files_must_have_what_it_had_when_the_gate_began(spark):
    spark.variables.update(
        quorumshift_zookeeper_data_dir="/zk/data",
        quorumshift_zookeeper_data_log_dir="/zk/log",
        quorumshift_zookeeper_connect="z1:2181,z2:2181/prod/kafka",
    )
    seen = {**SEEN, "zookeeper_zxid": 77}
    spark.run("spark_job", {**ARGS, "seen": seen}, result("differ"))
    files = {"data_dir": "/zk/data", "data_log_dir": "/zk/log", "chroot": "/prod/kafka", "at_least": 77}
    assert spark.asked[0]["job"]["views"]["zookeeper"] == files


def test_zookeepers_files_are_refused_while_it_does_not_answer(spark):
    spark.variables["quorumshift_zookeeper_data_dir"] = "/zk/data"
    seen = {**SEEN, "zookeeper_zxid": None}
    with pytest.raises(AnsibleActionFail, match="nothing shows whether its files in /zk/data are current"):
        spark.run("spark_job", {**ARGS, "seen": seen}, result("pass"))
    assert spark.asked == []


def test_spark_authenticates_and_encrypts_where_the_job_leaves_the_host(spark):
    given = {**ARGS, "master": "spark://s1:7077", "conf": {"spark.io.encryption.enabled": "false"}}
    spark.run("spark_job", given, result("differ"))
    away = spark.asked[0]["submit"]
    assert "spark.authenticate=true" in away and "spark.network.crypto.enabled=true" in away
    assert "spark.io.encryption.enabled=false" in away, "the operator's setting counts"


@pytest.mark.parametrize("key", ["spark.hadoop.fs.s3a.secret.key", "spark.ssl.keyPassword", "spark.x.account.key"])
def test_a_secret_does_not_reach_a_command_line(spark, key):
    given = {**ARGS, "conf": {key: "hunter2", "spark.security.credentials.hive.enabled": "false"}}
    with pytest.raises(AnsibleActionFail, match=f"(?s){key}.*--properties-file") as refused:
        spark.run("spark_job", given, result("pass"))
    assert "hunter2" not in str(refused.value) and spark.asked == []


@pytest.mark.parametrize("verdict", ["differ", "error", "incomplete"])
def test_anything_but_a_pass_keeps_the_gate_closed(spark, verdict):
    found = result(verdict, differences=[{"text": "topic t is missing"}], reasons=["1 key differs"])
    done = spark.run("spark_job", ARGS, found)
    assert done["failed"] and f"gate before_trigger stays closed: {verdict}: 1 key differs" in done["msg"]
    assert "    topic t is missing" in spark.printed and spark.events("before_trigger")[0]["result"] == verdict


def test_a_gate_that_needs_the_metadata_log_does_not_do_without(spark):
    with pytest.raises(Exception, match="the metadata log was not read"):
        spark.run("spark_job", {**ARGS, "gate": "before_kraft"}, result("pass"))


def test_each_voter_has_a_log_or_the_reason_why_not(spark, tmp_path):
    (tmp_path / "c2").mkdir()
    paths = [tmp_path / "7.tar.gz", tmp_path / "c2" / "7.tar.gz"]
    for path in paths:
        path.write_bytes(b"log")
    voters = [{"id": number} for number in (101, 102, 103, 104, 105)]
    nodes = {f"c{number}": {"role": "controller", "id": 100 + number} for number in (1, 2, 3, 4)}
    seen = {**SEEN, "quorum": {"leader_id": 101, "voters": voters}, "nodes": nodes}
    leaders, other = ({"archive": str(path), "sha256": "ab", "end_offset": 7} for path in paths)
    lost = {"unreachable_host": True, "msg": "Task failed: no\nroute.\n"}
    others = {"c2": other, "c3": lost, "c4": {"finished": 0}}
    given = {
        "gate": "before_kraft",
        "seen": seen,
        "log": leaders,
        "others": others,
    }
    spark.facts("c1", quorumshift_node={"node_id": 101, "log_dirs": [], "address": "c1:9093"})
    spark.run("spark_job", {**ARGS, **given}, result("differ"))
    of_leader, read, *unread = [
        spark.asked[0]["job"]["views"]["metadata_log"],
        *spark.asked[0]["job"]["views"]["metadata_logs"],
    ]
    assert of_leader["end_offset"] == 7
    assert (
        read["node"] == 102
        and read["sha256"] == "ab"
        and os.path.basename(read["archive"]) == "metadata_log.of_102.tar.gz"
    )
    assert unread == [
        {
            "node": 103,
            "error": "c3 is unreachable (Task failed: no route). Check it with: ssh c3. Then run the playbook again",
        },
        {"node": 104, "error": "c4: its snapshot did not end. Run the playbook again"},
        {"node": 105, "error": "no host of the inventory has this node id"},
    ]


def test_settings_that_controllers_apply_are_compared_but_for_their_own(spark):
    spark.variables["quorumshift_controller_config"] = {"min.insync.replicas": 1}
    spark.run("spark_job", ARGS, result("differ"))
    settings = spark.asked[0]["job"]["views"]["settings"]
    assert "unclean.leader.election.enable" in settings and "min.insync.replicas" not in settings


def test_settings_close_no_rollback(spark):
    spark.run("spark_job", {**ARGS, "gate": "before_revert"}, result("differ"))
    views = spark.asked[0]["job"]["views"]
    assert views["settings"] == [] and "controllers" not in views


def test_a_job_that_wants_a_newer_log_can_be_continued(spark):
    asks = {**result("pass"), "wanted": {"round": 1, "above": 7}, "carry": {"began": 1}}
    begun = spark.run("spark_job", ARGS, asks)
    assert begun["going_on"]["round"] == 1 and begun["going_on"]["carry"] == {"began": 1}
    assert {"directory", "output_dir", "nonce", "job", "submit"} == set(begun["going_on"]["args"])


def test_trees_of_two_ensembles_are_named_by_their_hosts(spark, tmp_path):
    (tmp_path / "1f.tar.gz").write_bytes(b"archive")
    spark.variables["quorumshift_zookeeper_connect"] = "z1:2181,z2:2181/prod/kafka"
    taken = {"archive": str(tmp_path / "1f.tar.gz"), "sha256": "a" * 64, "snapshot": 0x1F, "zxid": 0x99}
    given = {
        "source": ["s1"],
        "archives": [{"item": "s1", **taken}, {"item": "z1", **taken, "zxid": 0xA0}],
        "zxid": 0xA0,
        "cut": ["153"],  # 0x99, as a template gives it up to ansible-core 2.18
        "without_source": False,
    }
    left = {"path": "/solr", "znodes": 7, "bytes": 1, "ephemerals": 0}
    views = {"source:s1": {"state": {"cut": "0x99"}}, "destination:z1": {"state": {}}}
    passed = result("pass", job="ensemble_parity", views=views, leftovers=[left])
    spark.run("spark_job", {**ARGS, "name": "ensemble_parity", "gate": "after_cut", "ensembles": given}, passed)
    asked = spark.asked[0]["job"]["views"]
    assert (asked["zxid"], asked["cut"], asked["chroot"]) == (0xA0, 0x99, "/prod/kafka")
    assert [(server["name"], server["side"], server["processed"]) for server in asked["servers"]] == [
        ("s1", "source", {"31": 0x99}),
        ("z1", "destination", {"31": 0xA0}),
    ]
    assert spark.printed == [
        "    5 comparisons of 2 servers agree. Other applications left 7 znodes on the destination: /solr. To remove "
        "them there: -e zk_migrate_remove_leftovers=true (9 s)"
    ]
    assert spark.artifacts.events()[-1]["name"] == "after_cut" and spark.artifacts.events()[-1]["result"] == "pass"


@pytest.mark.parametrize(
    ("log", "snapshots", "said"),
    [({}, {}, True), ({}, {"z1": {"snapshot": 5, "zxid": 6}}, False), ({"offset": 7}, {}, False)],
)
def test_a_gate_before_the_copy_says_that_no_zookeeper_server_gave_its_snapshot(spark, log, snapshots, said):
    def module(args):
        written(args["output_dir"])
        path = os.path.join(args["output_dir"], "result.json")
        with open(path, encoding="ascii") as stream:
            found = json.load(stream)
        found["views"]["metadata_log"]["state"] = log
        with open(path, "w", encoding="ascii") as stream:
            json.dump(found, stream)
        return result("pass")

    spark._module = module
    spark.run("spark_job", {**ARGS, "snapshots": snapshots})
    assert any("No ZooKeeper server gave its snapshot" in line for line in spark.printed) is said


def test_report_and_tables_are_fetched_from_another_spark_host(tmp_path):
    """With mode 0600, as everything that another host wrote."""
    action = spark_job.ActionModule.__new__(spark_job.ActionModule)

    def fetch(_name, src, dest, flat):
        assert flat and src.startswith("/there/output/")
        with open(dest, "x", encoding="ascii"):
            pass

    action.action = fetch
    action._fetch("metadata_parity", "/there/output", str(tmp_path))
    fetched = {path.name: path.stat().st_mode & 0o777 for path in tmp_path.iterdir()}
    assert {"result.json", "report.html", "differences.csv", "differences.parquet"} <= set(fetched)
    assert set(fetched.values()) == {0o600}


@pytest.mark.parametrize(
    ("uri", "ends"), [("hdfs://n1/kafka/", "hdfs://n1/kafka/{}"), ("/mnt/nfs", "/mnt/nfs/{}"), ("", "{}/records")]
)
def test_executors_write_the_records_hashes_where_the_next_job_finds_them(spark, uri, ends):
    spark.variables.update(quorumshift_spark_uri=uri, quorumshift_spark_timeout_s=900)
    spark.run("spark_job", {"name": "data_fingerprint", "gate": "before_controllers", "seen": SEEN}, result("differ"))
    (asked,) = spark.asked
    assert asked["job"]["store"].endswith(ends.format(asked["job"]["cluster_id"]))


@pytest.mark.parametrize("given", ["b1:9092,b2:9092", ["b1:9092", "b2:9092"]])
def test_the_record_job_gets_the_brokers_as_text_however_the_inventory_has_them(spark, given):
    spark.variables.update(quorumshift_bootstrap_servers=given, quorumshift_spark_timeout_s=900)
    spark.run("spark_job", {"name": "data_fingerprint", "gate": "before_controllers", "seen": SEEN}, result("differ"))
    (asked,) = spark.asked
    assert asked["job"]["views"]["cluster"]["bootstrap_servers"] == "b1:9092,b2:9092"


@pytest.mark.parametrize("given", ["C:build=7.9.0-ce,C:record=15023v0", ["C:build=7.9.0-ce", "C:record=15023v0"], ""])
def test_the_job_knows_the_builds_of_other_vendors_and_the_tokens(spark, given):
    node = {"log_dirs": [], "file": {"properties": {"listeners": "PLAINTEXT://b1:9094"}}}
    for number, version in enumerate(("7.9.0-ce", "7.9.0-ccs"), 1):
        spark.facts(f"b{number}", quorumshift_node={**node, "node_id": number, "version": version})
    spark.variables["quorumshift_accept_not_compared"] = given
    spark.run("spark_job", ARGS, result("differ"))
    job = spark.asked[0]["job"]
    assert job["foreign"] == ["7.9.0-ce"]
    assert job["accept_not_compared"] == (["C:build=7.9.0-ce", "C:record=15023v0"] if given else [])


def test_a_supported_build_is_no_other_vendors(spark):
    spark.run("spark_job", ARGS, result("differ"))
    assert spark.asked[0]["job"]["foreign"] == []


def test_what_was_accepted_and_not_compared_is_in_the_line_of_the_gate(spark):
    kind = spark_jobs.MetadataParity(None, {})
    found = {"counts": {"topic": {"match": 5}}, "views": {"zookeeper": {"error": None}}}
    found["not_compared"] = [{"name": "build=7.9.0-ce"}, {"name": "record=15023v0"}]
    assert kind.summary(found).endswith("; accepted and not compared: build=7.9.0-ce, record=15023v0")
