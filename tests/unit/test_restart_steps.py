# Copyright: (c) 2026, Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Parts of a turn that need no node: the kept file, the record and its lock, ZooKeeper by a broker's properties, the
log that is quoted."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest
from ansible_collections.quorumshift.kafka.plugins.module_utils import (
    host_state,
    restart_files,
    restart_record,
    restart_worker,
)
from ansible_collections.quorumshift.kafka.plugins.module_utils.probes import own_node, own_zookeeper
from ansible_collections.quorumshift.kafka.plugins.module_utils.security import SecurityError

PLAIN = "broker.id=2\nzookeeper.connect=z:2181\n"
HYBRID = PLAIN + "zookeeper.metadata.migration.enable=true\n"


def spec(tmp_path, **more):
    base = {"id": "r/zk_migration/b2", "kind": "zk_migration", "mode": "zk_migration", "run": "r", "service": "kafka"}
    return {**base, "config_file": str(tmp_path / "server.properties"), "run_key": "k", **more}


def test_the_newest_file_of_the_mode_before_is_kept(tmp_path):
    given = spec(tmp_path)
    for text in (PLAIN, HYBRID, "# mended\n" + PLAIN, HYBRID + "num.io.threads=9\n"):
        restart_files.keep(given, str(tmp_path), text)
    kept = restart_files.kept(given, str(tmp_path))
    assert restart_files.read_text(kept) == "# mended\n" + PLAIN
    assert os.stat(kept).st_mode & 0o777 == 0o600


KRAFT = "node.id=2\nprocess.roles=broker\nnum.io.threads=9\n"


def going_back(tmp_path, kind, mode, **more):
    return spec(tmp_path, kind=kind, mode=mode, node_id=2, cluster_id="c", state_dir=str(tmp_path), **more)


@pytest.mark.parametrize(
    ("kind", "mode", "left", "before", "now", "back"),
    [
        # to the byte where nobody has changed anything else
        ("zk", "zk", "zk_migration", "# ours\n" + PLAIN, HYBRID, "# ours\n" + PLAIN),
        (
            "hybrid",
            "zk_migration",
            "kraft",
            "# ours\n" + HYBRID,
            "node.id=2\nprocess.roles=broker\n",
            "# ours\n" + HYBRID,
        ),
        # somebody's own change stays
        ("hybrid", "zk_migration", "kraft", HYBRID, KRAFT, "num.io.threads=9\n" + HYBRID),
        # what is back already is left alone
        ("hybrid", "zk_migration", "kraft", HYBRID, HYBRID + "num.io.threads=9\n", HYBRID + "num.io.threads=9\n"),
    ],
)
def test_a_turn_that_goes_back_takes_the_file_of_before(tmp_path, kind, mode, left, before, now, back):
    forth = spec(tmp_path, kind=left, mode=left)
    restart_files.keep(forth, host_state.directory(str(tmp_path), "c"), before)
    keys = ["zookeeper.metadata.migration.enable"] if kind == "zk" else []
    given = going_back(tmp_path, kind, mode, changes=dict.fromkeys(keys))
    assert sorted(restart_files.new_text(given, now).split()) == sorted(back.split())
    restart_files.keep(given, host_state.directory(str(tmp_path), "c"), now)
    assert restart_files.read_text(restart_files.kept(forth, str(tmp_path / "c"))) == before


def test_a_turn_does_not_go_back_from_elsewhere_or_to_what_nobody_kept(tmp_path):
    given = going_back(tmp_path, "zk", "zk", changes={})
    with pytest.raises(restart_record.RestartError, match="only one of mode zk_migration goes back to zk"):
        restart_files.new_text(given, KRAFT)
    with pytest.raises(restart_record.RestartError, match="no file of before mode zk_migration was kept"):
        restart_files.new_text(given, HYBRID)


def test_a_file_is_replaced_whole_with_its_mode_kept(tmp_path):
    path = tmp_path / "server.properties"
    path.write_text(PLAIN)
    path.chmod(0o604)
    restart_files.replace(str(path), HYBRID, None)
    assert path.read_text() == HYBRID and path.stat().st_mode & 0o777 == 0o604
    assert [one.name for one in tmp_path.iterdir()] == ["server.properties"]


def test_a_record_that_cannot_be_written_stops_a_turn_and_no_putting_back(tmp_path):
    record = restart_record.Record(str(tmp_path / "excluded"), spec(tmp_path), "", "")
    with pytest.raises(OSError):
        record.step("stop")
    record.forgiving = True
    record.step("put the old file back")
    record.end("reverted", "told")
    assert [one["name"] for one in record.reported["steps"]] == ["stop", "put the old file back"]


def test_a_worker_that_is_gone_is_told_by_its_lock(tmp_path):
    directory = host_state.directory(str(tmp_path), "cluster")
    given = spec(tmp_path, cluster_id="cluster", state_dir=str(tmp_path), node_id=2)
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
        assert host_state.held(directory)
        with pytest.raises(restart_record.RestartError, match="at step stop; run again when it ended"):
            restart_worker.begin({**given, "changes": {"broker.id": "2"}})
        assert restart_worker.watch(str(tmp_path), "cluster", record.reported["id"], 2, 0.1)["outcome"] is None
    finally:
        worker.kill()
        worker.wait()
        worker.stdin.close()
        worker.stdout.close()
    reported = restart_worker.watch(str(tmp_path), "cluster", record.reported["id"], 2, 0.1)
    assert reported["outcome"] == "died" and "after step stop" in reported["message"]


def test_a_file_that_starts_no_node_is_not_finished(tmp_path):
    given = spec(tmp_path, cluster_id="cluster", state_dir=str(tmp_path))
    (tmp_path / "server.properties").write_text("broker.id=2\n")
    with pytest.raises(restart_record.RestartError, match="this host is not locked by this run"):
        restart_worker.finish(given)
    run_lock = os.path.join(host_state.directory(str(tmp_path), "cluster"), host_state.RUN_LOCK)
    host_state.write_json(run_lock, {"number": 1, "run": "r", "closed": False})
    with pytest.raises(restart_record.RestartError, match="its mode is invalid"):
        restart_worker.finish(given)


# ZooKeeper by a broker's properties -----------------------------------------------------------------------------------


def test_a_plain_connection():
    connect, security = own_zookeeper.connection({"zookeeper.connect": "z1:2181,z2/prod/kafka"})
    assert str(connect) == "z1:2181,z2:2181/prod/kafka" and security.tls is None


def test_tls_with_pem_stores():
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


def test_a_java_store_is_refused_by_its_property():
    values = {
        "zookeeper.connect": "z1:2281",
        "zookeeper.ssl.client.enable": "true",
        "zookeeper.ssl.truststore.location": "/etc/kafka/trust.jks",
    }
    with pytest.raises(SecurityError, match=r"zookeeper\.ssl\.truststore\.location: /etc/kafka/trust\.jks is no PEM"):
        own_zookeeper.connection(values)


# The log that is quoted -----------------------------------------------------------------------------------------------


def test_errors_of_this_start_are_quoted(tmp_path):
    log = tmp_path / "server.log"
    log.write_text("[t] ERROR of an earlier start\n")
    start = log.stat().st_size
    with open(log, "a", encoding="utf-8") as stream:
        stream.write("[t] INFO begins\n[t] ERROR no leader of t-0 (state.change.logger)\n")
        stream.write("[t] ERROR cannot bind\njava.net.BindException: in use\n\tat Main\n")
    reported = own_node.log_excerpt(str(log), start, "kafka").splitlines()
    assert reported == [f"{log} says:", "[t] ERROR cannot bind", "java.net.BindException: in use"]


def test_what_is_said_again_is_quoted_once(tmp_path):
    log = tmp_path / "server.log"
    stamp = "[2026-11-23 14:23:0{},472] ERROR {} (kafka.Kafka$)\nCaused by: java.net.BindException: in use\n"
    log.write_text(stamp.format(3, "no acceptor") + stamp.format(4, "exiting") + stamp.format(5, "exiting"))
    reported = own_node.log_excerpt(str(log), 0, "kafka").splitlines()[1:]
    assert [own_node.without_times(line) for line in reported] == [
        "ERROR no acceptor (kafka.Kafka$)",
        "ERROR exiting (kafka.Kafka$)",
        "Caused by: java.net.BindException: in use",
    ]
    assert reported[1].startswith("[2026-11-23 14:23:05")


def test_a_rotated_and_a_silent_log(tmp_path):
    log = tmp_path / "server.log"
    log.write_text("[t] INFO begins\n")
    assert "INFO begins" in own_node.log_excerpt(str(log), 5000, "kafka")
    assert "journalctl -u kafka" in own_node.log_excerpt(str(log), log.stat().st_size, "kafka")
    assert "could not be read" in own_node.log_excerpt(str(tmp_path / "none"), 0, "kafka")


def test_how_far_a_broker_got(tmp_path):
    values = {"log.dirs": str(tmp_path)}
    assert not own_node.may_have_registered(values, 0)
    replica = tmp_path / "__cluster_metadata-0"
    replica.mkdir()
    began = replica.stat().st_mtime
    assert own_node.may_have_registered(values, began) and not own_node.may_have_registered(values, began + 5)
