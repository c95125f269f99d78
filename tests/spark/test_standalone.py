# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""metadata_parity on a standalone cluster of two workers, with Spark's authentication and encryption.

The workers run in a mount namespace in which the checkout's code, the job's directories and the certificates are
hidden. The compared cluster is one after the initial copy, with plain and secured listeners.
"""

from __future__ import annotations

import contextlib
import json
import os
import pathlib
import re
import shlex
import signal
import subprocess
import sys
from types import SimpleNamespace

import pyspark
import pytest
from ansible_collections.quorumshift.kafka.plugins.module_utils.formats.metadata import metadata_summary
from ansible_collections.quorumshift.kafka.plugins.module_utils.spark_host import spark_submission
from ansible_collections.quorumshift.kafka.plugins.plugin_utils.spark_jobs import ON_NETWORK
from quorumshift_spark import package

from tests.integration import seeded, servers
from tests.integration.certificates import Authority
from tests.spark import parity
from tests.spark.test_parity import ENCODER, LOGIN, SETTINGS

pytestmark = pytest.mark.real
SPARK_HOME = pathlib.Path(pyspark.__file__).parent
SECRET = "a secret of all daemons and jobs"
WORKERS = ("worker-1", "worker-2")
DAEMON = {**ON_NETWORK, "spark.authenticate.secret": SECRET}
CONF = {
    **ON_NETWORK,
    **{name: value for name, value in parity.CONF.items() if name != "spark.master"},
    "spark.executor.memory": "512m",
    # so that both executors read
    "spark.cores.max": "2",
    "spark.scheduler.minRegisteredResourcesRatio": "1.0",
    "spark.eventLog.enabled": "true",
    "spark.eventLog.compress": "false",
    "spark.eventLog.rolling.enabled": "false",
}
TIMES = ("timings", "nonce", "digest", "files")
KEY_PASSWORD, PASSWORD = "pass of the readers key", "pass of the reader"
HELD = ("PRIVATE KEY", KEY_PASSWORD, PASSWORD, *ENCODER, parity.DIGEST_KEY.decode())
SECURED = {
    **SETTINGS,
    "listener.security.protocol.map": SETTINGS["listener.security.protocol.map"] + ",SECURED:SASL_SSL",
    "listener.name.secured.ssl.client.auth": "required",
    "listener.name.secured.plain.sasl.jaas.config": "org.apache.kafka.common.security.plain.PlainLoginModule required "
    f'user_admin="{PASSWORD}";',
}


@pytest.fixture(scope="module")
def home():
    with servers.workdir("spark_standalone") as path:
        yield path


@pytest.fixture(scope="module")
def compared(home):
    """A cluster after the initial copy: `job`, by how its servers are reached, and `sessions()` at ZooKeeper's TLS."""
    authority = Authority(home / "tls")
    server, reader = authority.issue("server", "IP:127.0.0.1"), authority.issue("reader", keypassword=KEY_PASSWORD)
    pem = {"cafile": authority.cafile, "certfile": reader.certfile, "keyfile": reader.keyfile}
    pem["keypassword"] = KEY_PASSWORD
    by_tls = {"security_protocol": "SASL_SSL", "sasl_mechanism": "PLAIN", "sasl_username": "admin"}
    by_tls.update(sasl_password=PASSWORD, **{f"ssl_{name}": value for name, value in pem.items()})
    tls = authority.zookeeper_keys(server, servers.free_port())
    keys = authority.kafka_keys(server, "listener.name.secured.")
    with servers.zookeeper(home, settings=tls) as zk, seeded.broker(home, zk, {**SECURED, **keys}) as broker:

        def views(address, client, listener, login):
            return {
                "zookeeper": {
                    "connect": f"{address}{seeded.CHROOT}",
                    "client": client,
                    "password_encoder_secrets": ENCODER,
                },
                "brokers": [{"id": 1, "address": str(broker.listeners[listener]), "client": login}],
            }

        reached = {
            "plain": views(zk.address, None, "SASL", LOGIN),
            "secured": views(zk.tls_address, {"use_tls": True, **pem}, "SECURED", by_tls),
        }
        with submitted(home, None, {"gate": "before_controllers", "views": reached["plain"]}) as (
            run,
            process,
            _events,
        ):
            assert finished(run, process).verdict == "pass", run.story()
        broker.stop()
        with seeded.migration(home, zk, broker) as migrating:
            migrating.join()
            log = str(migrating.controller.home / "data" / "__cluster_metadata-0")
            snapshots = parity.Snapshots(home, log, zk.connect + seeded.CHROOT)
            servers.wait_for(lambda: snapshots.fence()["migration_offset"] > 0, 60, "the copy")
            servers.wait_for(
                lambda: not metadata_summary.summarise(log)["brokers"]["1"]["fenced"], 60, "the broker in the log"
            )
            fence = snapshots.fence()
            more = {"metadata_log": snapshots.cut(), "baseline": run.baseline}
            yield SimpleNamespace(
                job={
                    how: {"gate": "after_copy", "fence": fence, "views": {**views, **more}}
                    for how, views in reached.items()
                },
                sessions=lambda: zk.log.read_text().count("CN=reader"),
            )


def properties(path, settings):
    with open(os.open(path, os.O_WRONLY | os.O_CREAT, 0o600), "w") as file:
        file.writelines(f"{name} {value}\n" for name, value in settings.items())
    return str(path)


@contextlib.contextmanager
def standalone(there, daemon, names):
    """Run a master and these workers; `executors()` returns the ids of the executors' processes."""
    conf = properties(there / "daemon.conf", daemon)
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    environment.update(SPARK_HOME=str(SPARK_HOME), SPARK_DAEMON_MEMORY="192m", SPARK_LOCAL_IP="127.0.0.1")
    port, log = servers.free_port(), there / "master.log"
    url = f"spark://127.0.0.1:{port}"
    deploy = [str(SPARK_HOME / "bin/spark-class"), "org.apache.spark.deploy.{}", "--host", "127.0.0.1"]
    deploy += ["--properties-file", conf, "--webui-port", "0"]
    hidden = " && ".join(
        f"mount -t tmpfs none {shlex.quote(str(parity.ROOT / name))}" for name in (".build", "spark", "plugins")
    )

    with contextlib.ExitStack() as stack:

        def start(kind, output, prefix=(), *more):
            # A test run that is killed leaves no daemon behind
            command = ["setpriv", "--pdeathsig", "KILL", *prefix, *(part.format(kind) for part in deploy), *more]
            out = stack.enter_context(open(output, "wb"))
            process = subprocess.Popen(command, stdout=out, stderr=out, env=environment, cwd=there)
            stack.callback(process.wait, 60)
            stack.callback(process.terminate)

        start("master.Master", log, (), "--port", str(port))
        servers.wait_for(lambda: "New state: ALIVE" in log.read_text(), 120, "the master")
        for name in names:
            apart = ("unshare", "-m", "sh", "-c", f'{hidden} && exec "$@"', "sh")
            more = ("--cores", "1", "--memory", "600m", "--work-dir", str(there / name), url)
            start("worker.Worker", there / f"{name}.log", apart, *more)
        servers.wait_for(lambda: log.read_text().count("Registering worker") == len(names), 120, "the workers")

        def executors():
            found = []
            for path in pathlib.Path("/proc").glob("[0-9]*/cmdline"):
                with contextlib.suppress(OSError):
                    words = path.read_bytes().split(b"\0")
                    ours = pathlib.Path(os.readlink(path.parent / "cwd")).is_relative_to(there)
                    if ours and b"org.apache.spark.executor.CoarseGrainedExecutorBackend" in words:
                        found.append(int(path.parent.name))
            return found

        yield SimpleNamespace(url=url, executors=executors, directory=there)


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    with standalone(tmp_path_factory.mktemp("standalone"), DAEMON, WORKERS) as running:
        yield running


@contextlib.contextmanager
def submitted(home, cluster, job, conf=None, name="metadata_parity"):
    """Yield (run, process, event log's directory) of a job on the cluster, or in one process if `cluster` is None."""
    shared = {"store": (cluster.directory / "shared").as_uri()} if cluster else {}
    run = parity.Run(home, **{**shared, **job}, cluster_id=servers.CLUSTER_ID)
    path = run.write()
    events = run.directory / "events"
    events.mkdir()
    run.output.mkdir(exist_ok=True)
    archive = str(run.directory / "quorumshift_spark.zip")
    package.build(archive)
    script = run.directory / "submit.py"
    script.write_bytes((parity.ROOT / "spark/quorumshift_spark" / script.name).read_bytes())
    settings = {
        **CONF,
        "spark.eventLog.dir": events.as_uri(),
        **({"spark.authenticate.secret": SECRET} if conf is None else conf),
    }
    command = [
        "setpriv",
        "--pdeathsig",
        "KILL",
        str(SPARK_HOME / "bin/spark-submit"),
        "--master",
        cluster.url if cluster else "local[2]",
    ]
    command += ["--properties-file", properties(run.directory / "spark.conf", settings), "--py-files", archive]
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    environment.update(PYSPARK_PYTHON=sys.executable, SPARK_HOME=str(SPARK_HOME))
    with open(run.directory / "spark.log", "wb") as log:
        process = subprocess.Popen(
            [*command, str(script), name, "--input", path],
            stdout=log,
            stderr=log,
            env=environment,
            start_new_session=True,
        )
    try:
        yield run, process, events
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def finished(run, process):
    run.code = process.wait(280)
    run.read()
    assert run.result is not None, (run.directory / "spark.log").read_text()[-4000:]
    return run


def same(result):
    """Return what two results have in common. Each session of the job itself raises ZooKeeper's zxid, and the running
    controller writes to /migration how far it has mirrored the log."""
    kept = {name: value for name, value in result.items() if name not in TIMES}
    for view in kept["views"].values():
        view.pop("seconds")
        for name in ("zxid", "time_ms", "pace"):
            view["state"].pop(name, None)
        (view["state"].get("controller") or {}).pop("mirrored", None)
    return json.loads(json.dumps(kept, sort_keys=True))


@pytest.fixture(scope="module")
def distributed(home, cluster, compared):
    """The results of the cluster, by how the servers are reached, and the sessions that the secured reading takes."""
    results = {}
    for how, job in compared.job.items():
        before = compared.sessions()
        with submitted(home, cluster, job) as (run, process, events):
            assert finished(run, process).verdict == "pass", run.story()
        results[how] = same(run.result)
    left = [path for place in (cluster.directory, events) for path in place.rglob("*") if path.is_file()]
    left += [run.directory / "spark.log", *run.output.iterdir()]
    assert not [(path, secret) for path in left for secret in HELD if secret.encode() in path.read_bytes()]
    return SimpleNamespace(**results, sessions=compared.sessions() - before)


@pytest.mark.parametrize("how", ["plain", "secured"])
def test_two_workers_without_the_drivers_files_give_the_result_of_one_process(
    home, cluster, compared, distributed, how
):
    for name in WORKERS:
        assert list((cluster.directory / name).glob("app-*/*/stderr")), f"{name} ran no executor"
    with submitted(home, None, compared.job[how]) as (run, process, _events):
        finished(run, process)
    assert getattr(distributed, how) == same(run.result), run.story()


def test_a_killed_executor_costs_time_only(home, cluster, compared, distributed):
    before = compared.sessions()
    with submitted(home, cluster, compared.job["secured"]) as (run, process, events):

        def read():
            lines = [line for path in events.iterdir() for line in path.read_text(errors="replace").splitlines()]
            return any("SparkListenerStageCompleted" in line and "quorumshift_spark/rows.py" in line for line in lines)

        servers.wait_for(read, 200, "the end of reading")
        os.kill(cluster.executors()[0], signal.SIGKILL)
        finished(run, process)
        lost = any("SparkListenerExecutorRemoved" in path.read_text() for path in events.iterdir())
    assert lost, "the job had ended before its executor was killed"
    assert same(run.result) == distributed.secured, run.story()
    assert compared.sessions() - before == distributed.sessions > 0, "the sources were read again"


@pytest.mark.parametrize("whole", [True, False])
def test_a_killed_driver_gives_incomplete(home, cluster, compared, whole):
    with submitted(home, cluster, compared.job["plain"]) as (run, process, events):
        servers.wait_for(lambda: list(events.iterdir()), 200, "Spark's start")
        children = pathlib.Path(f"/proc/{process.pid}/task").glob("*/children")
        python = [int(pid) for path in children for pid in path.read_text().split()]
        for pid in [process.pid] if whole else python:
            os.kill(pid, signal.SIGKILL)
        end = {"exit_code": process.wait(120), "seconds": 1.0}
    found = spark_submission.read_result(str(run.output), run.nonce, end)
    assert found["verdict"] == "incomplete" and "was killed by signal 9" in found["reasons"][0], found


def test_a_cluster_without_a_secret_runs_the_job_as_the_message_says(home, compared, tmp_path):
    job = compared.job["plain"]
    with standalone(tmp_path, {}, WORKERS[:1]) as cluster:
        with submitted(home, cluster, job, conf={}) as (run, process, _events):
            finished(run, process)
        (reason,) = run.result["reasons"]
        named = dict(re.findall(r'(spark\.[a-z.]+): "(false)"', reason))
        assert run.verdict == "error" and "spark.authenticate.secret" in reason and named, reason
        with submitted(home, cluster, job, conf={**named, "spark.cores.max": "1"}) as (run, process, _events):
            assert finished(run, process).verdict == "pass", run.story()


@pytest.mark.parametrize("store", [None, "hidden-from-the-workers"])
def test_a_directory_that_executors_do_not_share_is_named(home, cluster, compared, store):
    job = {**compared.job["plain"], "store": store and (home / store).as_uri()}
    with submitted(home, cluster, job) as (run, process, _events):
        finished(run, process)
    assert run.verdict == "error" and "quorumshift_spark_uri" in run.result["reasons"][0], run.story()
    assert ("must share the directory" if store else "no 'store'") in run.result["reasons"][0]


def test_another_secret_than_the_clusters_is_named(home, cluster, compared):
    conf = {"spark.authenticate.secret": "another"}
    with submitted(home, cluster, compared.job["plain"], conf=conf) as (run, process, _events):
        finished(run, process)
    assert run.verdict == "error"
    assert f"{cluster.url} is down or has another spark.authenticate.secret" in run.result["reasons"][0], run.story()
