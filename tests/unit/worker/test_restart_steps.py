# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Parts of a restart that need no node: the kept file, the record and its lock, ZooKeeper settings, log excerpts."""

from __future__ import annotations

import contextlib
import os
import pathlib
import subprocess
import sys
import zipfile
from types import SimpleNamespace

import pytest
from ansible_collections.quorumshift.kafka.plugins.module_utils.host import detached, host_state, service
from ansible_collections.quorumshift.kafka.plugins.module_utils.probes.node import own_log, own_node
from ansible_collections.quorumshift.kafka.plugins.module_utils.probes.zookeeper import own_zookeeper
from ansible_collections.quorumshift.kafka.plugins.module_utils.worker import (
    restart_files,
    restart_record,
    restart_steps,
    restart_worker,
)

PLAIN = "broker.id=2\nzookeeper.connect=z:2181\n"
HYBRID = PLAIN + "zookeeper.metadata.migration.enable=true\n"


def of_node(tmp_path, cluster_id="cluster"):
    """Return what the node is on its host."""
    return {"state_dir": str(tmp_path), "cluster_id": cluster_id, "role": "broker", "node_id": 2}


def spec(tmp_path, **more):
    base = {"id": "r/zk_migration/b2", "kind": "zk_migration", "mode": "zk_migration", "run": "r", "service": "kafka"}
    return {**base, "config_file": str(tmp_path / "server.properties"), "run_key": "k", **more}


def test_the_newest_file_of_the_earlier_mode_is_kept(tmp_path):
    given = spec(tmp_path)
    for text in (PLAIN, HYBRID, "# fixed\n" + PLAIN, HYBRID + "num.io.threads=9\n"):
        restart_files.keep(given, str(tmp_path), text.encode())
    kept = restart_files.kept_path(given, str(tmp_path))
    assert restart_files.read_bytes(kept).decode() == "# fixed\n" + PLAIN
    assert os.stat(kept).st_mode & 0o777 == 0o600


KRAFT = "node.id=2\nprocess.roles=broker\nnum.io.threads=9\n"


def rollback_spec(tmp_path, kind, mode, **more):
    return spec(tmp_path, kind=kind, mode=mode, **of_node(tmp_path, "c"), **more)


@pytest.mark.parametrize(
    ("kind", "mode", "left", "before", "now", "expected"),
    [
        # byte for byte if nothing else was changed
        ("zk", "zk", "zk_migration", "# ours\n" + PLAIN, HYBRID, "# ours\n" + PLAIN),
        (
            "hybrid",
            "zk_migration",
            "kraft",
            "# ours\n" + HYBRID,
            "node.id=2\nprocess.roles=broker\n",
            "# ours\n" + HYBRID,
        ),
        # the operator's own change is kept
        ("hybrid", "zk_migration", "kraft", HYBRID, KRAFT, "num.io.threads=9\n" + HYBRID),
        # a file of the earlier mode is not changed
        ("hybrid", "zk_migration", "kraft", HYBRID, HYBRID + "num.io.threads=9\n", HYBRID + "num.io.threads=9\n"),
    ],
)
def test_rollback_restores_the_kept_file(tmp_path, kind, mode, left, before, now, expected):
    migration = spec(tmp_path, kind=left, mode=left)
    restart_files.keep(migration, host_state.make_node_directory(of_node(tmp_path, "c")), before.encode())
    keys = ["zookeeper.metadata.migration.enable"] if kind == "zk" else []
    given = rollback_spec(tmp_path, kind, mode, changes=dict.fromkeys(keys))
    assert sorted(restart_files.new_bytes(given, now.encode()).decode().split()) == sorted(expected.split())
    restart_files.keep(given, host_state.make_node_directory(of_node(tmp_path, "c")), now.encode())
    assert (
        restart_files.read_bytes(restart_files.kept_path(migration, str(tmp_path / "c" / "broker-2"))).decode()
        == before
    )


def test_rollback_needs_the_mode_before_and_a_kept_file(tmp_path):
    given = rollback_spec(tmp_path, "zk", "zk", changes={})
    with pytest.raises(restart_record.RestartError, match="a rollback to mode zk needs mode zk_migration"):
        restart_files.new_bytes(given, KRAFT.encode())
    with pytest.raises(restart_record.RestartError, match="file from before mode zk_migration was not kept"):
        restart_files.new_bytes(given, HYBRID.encode())


def test_replace_keeps_the_mode_and_leaves_no_temporary_file(tmp_path):
    path = tmp_path / "server.properties"
    path.write_text(PLAIN)
    path.chmod(0o604)
    restart_files.replace(str(path), HYBRID.encode(), None)
    assert path.read_text() == HYBRID and path.stat().st_mode & 0o777 == 0o604
    assert [path.name for path in tmp_path.iterdir()] == ["server.properties"]


def test_unwritable_record_stops_a_restart_but_not_a_revert(tmp_path):
    record = restart_record.Record(str(tmp_path / "excluded"), spec(tmp_path), "", "")
    with pytest.raises(OSError):
        record.step("stop")
    record.forgiving = True
    record.step("revert the file")
    record.end("reverted", "message")
    assert [step["name"] for step in record.values["steps"]] == ["stop", "revert the file"]


def test_watch_reports_a_worker_that_released_its_lock_as_died(tmp_path):
    directory = host_state.make_node_directory(of_node(tmp_path))
    given = spec(tmp_path, **of_node(tmp_path))
    record = restart_record.Record(directory, given, "", "")
    record.step("begun")
    record.step("stop")
    holder = (
        "import fcntl, os, sys; handle = os.open(sys.argv[1], os.O_RDWR | os.O_CREAT); "
        "fcntl.flock(handle, fcntl.LOCK_EX); print('held', flush=True); sys.stdin.read()"
    )
    command = [sys.executable, "-c", holder, os.path.join(directory, host_state.LOCK)]
    worker = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    try:
        worker.stdout.readline()
        assert host_state.is_held(directory)
        with pytest.raises(restart_record.RestartError, match=r"at step stop\. Run again when it has ended"):
            restart_worker.begin({**given, "changes": {"broker.id": "2"}})
        assert restart_worker.watch(given, record.values["id"], 2, 0.1)["outcome"] is None
    finally:
        worker.kill()
        worker.wait()
        worker.stdin.close()
        worker.stdout.close()
    died = restart_worker.watch(given, record.values["id"], 2, 0.1)
    assert died["outcome"] == "died" and "after step stop" in died["message"]


# The worker in a unit of its own --------------------------------------------------------------------------------------


@pytest.fixture
def unit(tmp_path, monkeypatch):
    """Return a spec of a restart on a host with systemd, of which systemd-run alone is replaced: it starts the command
    with systemd's bare environment. `processes` are those that it started."""
    given = spec(tmp_path, **of_node(tmp_path), stop_timeout_s=1, changes={})
    directory = host_state.make_node_directory(given)
    host_state.write_json(os.path.join(directory, host_state.RUN_LOCK), {"number": 1, "run": "r", "closed": False})
    data = tmp_path / "data"
    data.mkdir()
    (data / "meta.properties").write_text("version=0\nbroker.id=2\ncluster.id=cluster\n")
    (tmp_path / "server.properties").write_text(f"{PLAIN}log.dirs={data}\n")
    processes = []

    def begin_transient(name, command):
        modes = {name: os.stat(os.path.join(directory, name)).st_mode & 0o777 for name in (detached.JOB, detached.CODE)}
        assert set(modes.values()) == {0o600} and "k3y" not in " ".join(command)
        processes.append(subprocess.Popen(command, env={}, cwd="/", stderr=subprocess.PIPE, text=True))

    archive = tmp_path / "payload.zip"
    with zipfile.ZipFile(archive, "w") as payload:
        root = pathlib.Path(detached.__file__).parents[6]
        found = sorted(root.glob("ansible_collections/quorumshift/kafka/plugins/module_utils/**/*.py"))
        files = {path.relative_to(root): path.read_text(encoding="utf-8") for path in found}
        packages = {parent / "__init__.py": "" for path in files for parent in path.parents if parent.name}
        for name, text in {**packages, **files}.items():
            payload.writestr(str(name), text)
    monkeypatch.setattr(detached, "__loader__", SimpleNamespace(archive=str(archive)))
    monkeypatch.setattr(service, "runs_systemd", lambda: True)
    monkeypatch.setattr(
        service, "read_state", lambda _name: {"active": True, "manager": "systemd", "active_state": "active"}
    )
    monkeypatch.setattr(service, "begin_transient", begin_transient)
    monkeypatch.setattr(service, "is_running", lambda _unit: bool(processes) and processes[-1].poll() is None)
    monkeypatch.setattr(own_node, "read_running_mode", lambda *_given: "zk")
    yield SimpleNamespace(spec={**given, "run_key": "k3y"}, directory=directory, processes=processes, archive=archive)
    for process in processes:
        process.kill()
        process.communicate()


def test_the_units_process_does_the_work_and_leaves_no_file_of_it(unit):
    begun = restart_worker.begin(unit.spec)
    assert begun["unit"] == "quorumshift-cluster-r-broker-2-zk_migration.service"
    unit.archive.unlink()  # as Ansible does when the module ends
    _output, errors = unit.processes[0].communicate(timeout=60)
    record = restart_record.read(unit.directory)
    # There is no systemd on this machine that the new process could ask: it ends at the service's state.
    assert record["outcome"] == "failed" and record["steps"][0]["name"] == "begun", (record, errors)
    assert not {detached.JOB, detached.CODE} & set(os.listdir(unit.directory))


def test_a_worker_whose_unit_loads_its_code_has_not_died(unit, monkeypatch):
    with host_state.lock(unit.directory):  # the process waits for the lock
        record = restart_record.Record(unit.directory, unit.spec, "", "")
        record.values["unit"] = "u.service"
        record.step("begun")
    monkeypatch.setattr(service, "is_running", lambda name: name == "u.service")
    assert restart_worker.watch(unit.spec, unit.spec["id"], 1, 0.1)["outcome"] is None
    monkeypatch.setattr(service, "is_running", lambda _name: False)
    died = restart_worker.watch(unit.spec, unit.spec["id"], 1, 0.1)
    assert died["outcome"] == "died" and "after step begun" in died["message"]


def test_a_worker_whose_restart_was_replaced_does_nothing(unit):
    with host_state.lock(unit.directory):
        restart_worker._detach(
            restart_record.Record(unit.directory, unit.spec, "", ""), restart_worker._restart, unit.spec
        )
        other = restart_record.Record(unit.directory, {**unit.spec, "id": "other"}, "", "")
        other.step("begun")
    _output, errors = unit.processes[0].communicate(timeout=60)
    assert errors == "" and restart_record.read(unit.directory) == other.values


@pytest.mark.parametrize("logind", [True, False])
def test_without_a_unit_nothing_begins_where_logind_may_kill_the_worker(unit, monkeypatch, logind):
    def refused(name, _command):
        raise service.ServiceError(f"systemd-run of {name} failed: Failed to connect to bus")

    began = []
    monkeypatch.setattr(service, "begin_transient", refused)
    monkeypatch.setattr(service, "is_running", lambda name: logind and name == detached.LOGIND)
    monkeypatch.setattr(detached, "begin", began.append)
    if logind:
        with pytest.raises(restart_record.RestartError, match=r"Failed to connect to bus\. Without a unit"):
            restart_worker.begin(unit.spec)
    else:
        assert restart_worker.begin(unit.spec)["unit"] == ""
    assert bool(began) != logind and not {detached.JOB, detached.CODE} & set(os.listdir(unit.directory))
    assert restart_record.read(unit.directory)["outcome"] == ("failed" if logind else None)


def test_progress_renews_the_time_limit_of_a_wait_and_its_end_does_not():
    clock, advances = [], [True] * 5
    polled = restart_steps.Bound(0)  # each poll without progress is the last
    with pytest.raises(restart_record.RestartError, match="waited 0 s for it"):
        restart_steps.wait(
            lambda: bool(clock.append(1)), polled, lambda: "it", lambda: bool(advances) and advances.pop()
        )
    assert len(clock) == 6


def test_finish_needs_the_run_lock_and_a_valid_file(tmp_path):
    given = spec(tmp_path, **of_node(tmp_path))
    (tmp_path / "server.properties").write_text("broker.id=2\n")
    with pytest.raises(restart_record.RestartError, match="this run does not hold the run lock of this host"):
        restart_worker.finish(given)
    run_lock = os.path.join(host_state.make_node_directory(given), host_state.RUN_LOCK)
    host_state.write_json(run_lock, {"number": 1, "run": "r", "closed": False})
    with pytest.raises(restart_record.RestartError, match="has mode invalid"):
        restart_worker.finish(given)


# ZooKeeper settings in a broker's properties --------------------------------------------------------------------------


def test_plaintext_connection():
    connect, security = own_zookeeper.connection({"zookeeper.connect": "z1:2181,z2/prod/kafka"})
    assert str(connect) == "z1:2181,z2:2181/prod/kafka" and security.tls is None


def test_tls_connection_with_pem_stores():
    values = {
        "zookeeper.connect": "z1:2281",
        "zookeeper.ssl.client.enable": "true",
        "zookeeper.ssl.truststore.location": "/etc/kafka/ca.pem",
        "zookeeper.ssl.keystore.location": "/etc/kafka/own",
        "zookeeper.ssl.keystore.type": "PEM",
        "zookeeper.ssl.keystore.password": "secret",
        "zookeeper.ssl.endpoint.identification.algorithm": "",
    }
    tls = own_zookeeper.connection(values)[1].tls
    assert (tls.cafile, tls.certfile, tls.keypassword) == ("/etc/kafka/ca.pem", "/etc/kafka/own", "secret")
    assert tls.verify and not tls.check_hostname


def test_tls_connection_with_stores_of_java():
    values = {
        "zookeeper.connect": "z1:2281",
        "zookeeper.ssl.client.enable": "true",
        "zookeeper.ssl.truststore.location": "/etc/kafka/trust.jks",
        "zookeeper.ssl.truststore.password": "trusted",
        "zookeeper.ssl.keystore.password": "secret",
    }
    tls = own_zookeeper.connection(values)[1].tls
    assert (tls.cafile, tls.capassword) == ("/etc/kafka/trust.jks", "trusted")
    assert (tls.certfile, tls.keypassword) == (None, None), "a password without its store"


# Log excerpts ---------------------------------------------------------------------------------------------------------


def test_excerpt_quotes_the_errors_of_this_start(tmp_path):
    log = tmp_path / "server.log"
    log.write_text("[t] ERROR of an earlier start\n")
    start = log.stat().st_size
    with open(log, "a", encoding="utf-8") as stream:
        stream.write("[t] INFO begins\n[t] ERROR no leader of t-0 (state.change.logger)\n")
        stream.write("[t] ERROR cannot bind\njava.net.BindException: in use\n\tat Main\n")
    lines = own_log.excerpt(str(log), start, "kafka", {}).splitlines()
    assert lines == [f"{log} says:", "[t] ERROR cannot bind", "java.net.BindException: in use"]


def test_excerpt_quotes_repeated_lines_once(tmp_path):
    log = tmp_path / "server.log"
    stamp = "[2026-11-23 14:23:0{},472] ERROR {} (kafka.Kafka$)\nCaused by: java.net.BindException: in use\n"
    log.write_text(stamp.format(3, "no acceptor") + stamp.format(4, "exiting") + stamp.format(5, "exiting"))
    lines = own_log.excerpt(str(log), 0, "kafka", {}).splitlines()[1:]
    assert [own_log.strip_times(line) for line in lines] == [
        "ERROR no acceptor (kafka.Kafka$)",
        "ERROR exiting (kafka.Kafka$)",
        "Caused by: java.net.BindException: in use",
    ]
    assert lines[1].startswith("[2026-11-23 14:23:05")


def test_excerpt_of_a_rotated_an_empty_and_a_missing_log(tmp_path):
    log = tmp_path / "server.log"
    log.write_text("[t] INFO begins\n")
    assert "INFO begins" in own_log.excerpt(str(log), 5000, "kafka", {})
    assert "journalctl -u kafka" in own_log.excerpt(str(log), log.stat().st_size, "kafka", {})
    assert "could not be read" in own_log.excerpt(str(tmp_path / "none"), 0, "kafka", {})


def test_broker_may_have_registered_once_its_replica_is_recreated(tmp_path):
    values = {"log.dirs": str(tmp_path)}
    assert not own_node.may_have_registered(values, 0)
    replica = tmp_path / "__cluster_metadata-0"
    replica.mkdir()
    began = replica.stat().st_mtime
    assert own_node.may_have_registered(values, began) and not own_node.may_have_registered(values, began + 5)


ELECTED_AGAIN = (
    "[2026-11-24 13:22:43,684] ERROR Encountered fatal fault: exception while completing controller activation\n"
    "java.lang.RuntimeException: Should not have ZK migrations enabled on a cluster running metadata.version 3.0-IV1\n"
)


@pytest.mark.parametrize(
    ("mode", "logs", "starts", "up"),
    [
        ("controller_migration", [ELECTED_AGAIN, ""], 2, True),
        ("controller_migration", [ELECTED_AGAIN, ELECTED_AGAIN], 2, False),
        ("controller_migration", ["ERROR no such file\n"], 1, False),
        ("controller_final", [ELECTED_AGAIN], 1, False),
    ],
)
def test_a_controller_that_ends_because_it_is_elected_again_is_started_once_more(
    tmp_path, monkeypatch, mode, logs, starts, up
):
    log, begun = tmp_path / "controller.log", []

    def begin(verb, unit):
        begun.append(verb)
        with log.open("a") as stream:
            stream.write(logs[len(begun) - 1])

    def see_up(*_arguments):
        if logs[len(begun) - 1]:
            raise restart_record.RestartError("kafka-controller ended while it started")

    monkeypatch.setattr(restart_steps.service, "begin", begin)
    monkeypatch.setattr(restart_steps.service, "read_state", lambda unit: {})
    monkeypatch.setattr(restart_steps, "await_up", see_up)
    given = spec(tmp_path, mode=mode, log_file=str(log))
    record = restart_record.Record(str(tmp_path), given, "", "")
    with contextlib.nullcontext() if up else pytest.raises(restart_steps.NotUp):
        restart_steps.start(given, record, {}, {})
    assert begun == ["start"] * starts
    assert [step["name"] for step in record.values["steps"]] == ["start", "start again"][:starts]


def test_a_process_that_ends_before_it_is_registered_is_reported_at_once(tmp_path, monkeypatch):
    running = {"manager": "systemd", "active_state": "active", "sub_state": "running", "invocation": "2"}
    ended = {**running, "active_state": "failed", "sub_state": "failed", "result": "exit-code"}
    states = [running, running, ended]
    monkeypatch.setattr(restart_steps.service, "read_state", lambda unit: states.pop(0))
    monkeypatch.setattr(restart_steps.own_node, "read_running_mode", lambda *_: "controller_migration")
    monkeypatch.setattr(restart_steps.own_node, "read_registration", lambda *_: {})
    given = spec(tmp_path, mode="controller_migration", node_id=101, start_timeout_s=60, service="kafka-controller")
    given["log_file"] = str(tmp_path / "controller.log")
    record = restart_record.Record(str(tmp_path), given, "", "")
    with pytest.raises(restart_record.RestartError, match=r"kafka-controller ended while it started .*exit-code"):
        restart_steps.await_up(given, record, {}, {}, 0.0, earlier="1")
    assert not states


def test_the_preflight_reads_zookeeper_as_a_restart_does(tmp_path):
    file = tmp_path / "server.properties"
    stores = "zookeeper.ssl.client.enable=true\nzookeeper.ssl.keystore.location=/etc/kafka/zk.jks\n"
    file.write_text(f"zookeeper.connect=127.0.0.1:1\n{stores}")
    assert own_zookeeper.explain_unreadable(str(file)).startswith(
        "zookeeper.ssl.keystore.location: /etc/kafka/zk.jks: No such file"
    )
    file.write_text("zookeeper.connect=127.0.0.1:1\n")
    assert "no ZooKeeper server opened a session" in own_zookeeper.explain_unreadable(str(file), timeout=1)
    assert "No such file" in own_zookeeper.explain_unreadable(str(tmp_path / "absent"))


def test_what_a_log_says_of_a_controlled_shutdown_that_failed(tmp_path):
    log = tmp_path / "server.log"
    failed = "Proceeding to do an unclean shutdown as all the controlled shutdown attempts failed"
    log.write_text(f"[t] WARN {failed} (kafka.server.KafkaServer)\n[t] INFO shut down completed\n")
    earlier = log.stat().st_size
    assert own_log.find_failed_shutdown(str(log), 0) == failed
    assert own_log.find_failed_shutdown(str(log), earlier) is None, "that was another stop"
    with log.open("a") as stream:
        stream.write(
            "[t] INFO Starting controlled shutdown\n[t] INFO Controlled shutdown request returned successfully\n"
        )
    assert own_log.find_failed_shutdown(str(log), earlier) is None
    assert own_log.find_failed_shutdown(str(log), 1 << 30) == failed, "the log was rolled: all of it is new"
    assert own_log.find_failed_shutdown(str(tmp_path / "none"), 0) is None
