# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""data_fingerprint on a standalone cluster of two workers that do not have the driver's files (test_standalone)."""

from __future__ import annotations

import contextlib
import os
import signal
from types import SimpleNamespace

import pyarrow.parquet as pq
import pytest
from ansible_collections.quorumshift.kafka.plugins.module_utils.settings.addresses import HostPort
from ansible_collections.quorumshift.kafka.plugins.module_utils.spark_host import spark_submission
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient

from tests.integration import seeded, servers
from tests.integration.certificates import Authority
from tests.spark.test_fingerprint import commit, create, delete_group, delete_records, fill
from tests.spark.test_standalone import DAEMON, WORKERS, finished, same, standalone, submitted

pytestmark = pytest.mark.real
PASSWORD, KEY_PASSWORD = "pass of the auditor", "pass of the auditors key"
SETTINGS = {
    "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,SECURED:SASL_SSL,CONTROLLER:PLAINTEXT",
    "sasl.enabled.mechanisms": "PLAIN",
    "listener.name.secured.ssl.client.auth": "required",
    "listener.name.secured.plain.sasl.jaas.config": "org.apache.kafka.common.security.plain.PlainLoginModule required "
    f'user_auditor="{PASSWORD}";',
    # so that the compacted topic's first log is compared
    "log.cleaner.enable": "false",
}


@pytest.fixture(scope="module")
def home():
    with servers.workdir("spark_standalone_records") as path:
        yield path


@pytest.fixture(scope="module")
def broker(home):
    authority, address = Authority(home / "tls"), HostPort("127.0.0.1", servers.free_port())
    server, auditor = authority.issue("server", "IP:127.0.0.1"), authority.issue("auditor", keypassword=KEY_PASSWORD)
    listeners = {name: f"127.0.0.1:{servers.free_port()}" for name in ("PLAINTEXT", "SECURED")}
    settings = {**SETTINGS, **authority.kafka_keys(server, "listener.name.secured.")}
    login = {"security_protocol": "SASL_SSL", "sasl_mechanism": "PLAIN", "sasl_username": "auditor"}
    login.update(sasl_password=PASSWORD, ssl_cafile=authority.cafile, ssl_certfile=auditor.certfile)
    login.update(ssl_keyfile=auditor.keyfile, ssl_keypassword=KEY_PASSWORD)
    voters = f"101@{address}"
    with servers.kraft_controllers(home, [address]), servers.kraft_broker(
        home, 1, voters, settings, listeners
    ) as running:
        reached = {
            "plain": {"bootstrap_servers": str(running.listeners["PLAINTEXT"]), "client": {}},
            "secured": {"bootstrap_servers": str(running.listeners["SECURED"]), "client": login},
        }
        yield SimpleNamespace(server=running, reached=reached)


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    with standalone(tmp_path_factory.mktemp("standalone"), DAEMON, WORKERS) as running:
        yield running


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    """The directory that driver and executors share."""
    path = tmp_path_factory.mktemp("store")
    path.chmod(0o700)
    return path


def job(broker, store, how, baseline=None, **more):
    views = {"cluster": broker.reached[how], "baseline": {"path": str(baseline)} if baseline else None}
    settings = {"topics": ["*"], "chunk_offsets": 100, "samples": [{"topics": ["sampled"], "percent": 30}]}
    gate = "after_finalize" if baseline else "before_controllers"
    return {"gate": gate, "views": views, "fingerprint": settings, "store": str(store), **more}


def running(home, cluster, of):
    return submitted(home, cluster, of, name="data_fingerprint")


def ran(home, cluster, of):
    with running(home, cluster, of) as (run, process, _events):
        return finished(run, process)


@pytest.fixture(scope="module")
def baseline(home, broker, store):
    """The output of a first run in one process. Since then keys were superseded and deleted, a group was deleted, and
    records were deleted that no retention explains."""
    admin = AdminClient({"bootstrap.servers": str(broker.server.address)})
    create(admin, "orders")
    create(admin, "sampled", 1)
    create(admin, "profiles", 2, cleanup_policy="compact", delete_retention_ms="3600000")
    for topic, codec in (("orders", "zstd"), ("profiles", "lz4")):
        fill(broker.server, topic, 2000, compression=codec)
    fill(broker.server, "sampled", 2000, 1)
    commit(admin, "readers", "orders", 80)
    first = ran(home, None, job(broker, store, "plain"))
    assert first.verdict == "pass", first.story()
    fill(broker.server, "profiles", 30, prefix="newer-")
    producer = Producer({"bootstrap.servers": str(broker.server.address)})
    producer.produce("profiles", None, b"key-40", partition=0)
    assert producer.flush(30) == 0
    delete_group(admin, "readers")
    delete_records(admin, "orders", 300)
    return first.output


@pytest.fixture(scope="module")
def alone(home, broker, store, baseline):
    """The result of one process."""
    run = ran(home, None, job(broker, store, "plain", baseline))
    assert run.verdict == "differ", run.story()
    assert [entry["kind"] for entry in run.result["differences"]] == ["log"], run.story()
    counts = run.result["counts"]
    assert counts["key"]["match"] == 50 and counts["log_of_a_sample"]["match"] == 1, counts
    assert any("its tombstone is at offset" in entry["why"] for entry in run.result["changed"])
    return same(run.result)


@pytest.mark.parametrize("how", ["plain", "secured"])
def test_two_workers_without_the_drivers_files_give_the_result_of_one_process(
    home, cluster, broker, store, baseline, alone, how
):
    run = ran(home, cluster, job(broker, store, how, baseline))
    for name in WORKERS:
        assert list((cluster.directory / name).glob("app-*/*/stderr")), f"{name} ran no executor"
    assert same(run.result) == alone, run.story()
    left = [path for path in cluster.directory.rglob("*") if path.is_file()]
    left += [run.directory / "spark.log", *run.output.iterdir()]
    assert not [path for path in left for secret in (PASSWORD, KEY_PASSWORD) if secret.encode() in path.read_bytes()]


@contextlib.contextmanager
def read_slowly(broker):
    """Let the broker answer the auditor's Fetch requests so slowly that reading takes a minute."""

    def quota(*change):
        at = ("--bootstrap-server", str(broker.server.address), "--alter", "--entity-type", "users")
        seeded.tools([("kafka.admin.ConfigCommand", *at, "--entity-name", "auditor", *change)])

    quota("--add-config", "consumer_byte_rate=5000")
    try:
        yield
    finally:
        quota("--delete-config", "consumer_byte_rate")


def chunks_in(store):
    """Return how many chunks are in the files of a job that has not ended."""
    found = 0
    for directory in store.iterdir():
        if directory.is_dir() and not (directory / "_decided").exists():
            for path in directory.glob("part-*.parquet"):
                found += pq.read_table(path, columns=["topic_id"])["topic_id"].drop_null().length()
    return found


def wait_for_chunks(store, run, process):
    """Wait until the first task has written its file: on two cores that others use, the cluster starts in minutes."""
    servers.wait_for(lambda: chunks_in(store) > 0 or process.poll() is not None, 500, "the first chunks")
    assert process.poll() is None, (run.directory / "spark.log").read_text()[-4000:]


def test_a_killed_driver_gives_incomplete_and_the_next_run_continues(home, cluster, broker, store, baseline, alone):
    of = job(broker, store, "secured", baseline)
    with read_slowly(broker), running(home, cluster, of) as (run, process, _events):
        wait_for_chunks(store, run, process)
        os.kill(process.pid, signal.SIGKILL)
        end = {"exit_code": process.wait(120), "seconds": 1.0}
    found = spark_submission.read_result(str(run.output), run.nonce, end)
    assert found["verdict"] == "incomplete" and "was killed by signal 9" in found["reasons"][0], found
    servers.wait_for(lambda: not cluster.executors(), 60, "the end of the executors")
    before = chunks_in(store)
    again = ran(home, cluster, of)
    assert again.result["views"]["cluster"]["state"].pop("chunks_of_an_earlier_job") == before > 0
    assert same(again.result) == alone, again.story()
    assert chunks_in(store) == 0


def test_when_the_time_is_over_the_next_run_continues(home, broker, store, baseline, alone):
    of = job(broker, store, "secured", baseline, bounds={"read_s": 20})
    with read_slowly(broker):
        run = ran(home, None, of)
    assert run.verdict == "incomplete", run.story()
    assert "chunks of records were read within 20 s. Run the playbook again" in run.result["reasons"][0]
    before = chunks_in(store)
    again = ran(home, None, {**of, "bounds": {}})
    assert again.result["views"]["cluster"]["state"].pop("chunks_of_an_earlier_job", 0) == before
    assert same(again.result) == alone, again.story()


def test_a_killed_executor_costs_time_only(home, cluster, broker, store, baseline, alone):
    of = job(broker, store, "secured", baseline)
    with contextlib.ExitStack() as stack, contextlib.ExitStack() as slowly:
        slowly.enter_context(read_slowly(broker))
        run, process, events = stack.enter_context(running(home, cluster, of))
        wait_for_chunks(store, run, process)
        os.kill(cluster.executors()[0], signal.SIGKILL)
        slowly.close()
        finished(run, process)
        assert any("SparkListenerExecutorRemoved" in path.read_text() for path in events.iterdir())
    assert same(run.result) == alone, run.story()


def test_a_broker_that_restarts_meanwhile_costs_time_only(home, broker, store, baseline, alone):
    with contextlib.ExitStack() as stack, contextlib.ExitStack() as slowly:
        slowly.enter_context(read_slowly(broker))
        run, process, _events = stack.enter_context(running(home, None, job(broker, store, "secured", baseline)))
        wait_for_chunks(store, run, process)
        broker.server.stop()
        broker.server.start()
        slowly.close()
        finished(run, process)
    assert same(run.result) == alone, run.story()
