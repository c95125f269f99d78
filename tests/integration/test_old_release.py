# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Brokers of Kafka 2.4 and 2.8 are shown and reassigned; with one of 2.3, every run is refused at its beginning."""

from __future__ import annotations

import contextlib
import json
import os
import pathlib
import subprocess
import sys
import time

import pytest
from ansible_collections.quorumshift.kafka.plugins.module_utils.admin import cluster_admin
from ansible_collections.quorumshift.kafka.plugins.module_utils.core.releases import oldest
from ansible_collections.quorumshift.kafka.plugins.module_utils.formats.requests import admin_requests, apis
from ansible_collections.quorumshift.kafka.plugins.module_utils.probes.cluster import log_ends, wire_topics
from ansible_collections.quorumshift.kafka.plugins.module_utils.secrets.security import Security
from ansible_collections.quorumshift.kafka.plugins.module_utils.wire import kafka_wire

from tests.integration import admin_bed, servers
from tests.integration.test_partition_reassignment import fill

pytestmark = pytest.mark.real

ROOT = pathlib.Path(__file__).resolve().parents[2]
OLDER = "2.3.1"
BOUND = "Kafka 2.4 is the oldest release that can be restarted, upgraded or reassigned here"
LACKS = "does not offer Metadata 9 to 12 (it offers 0 to 8)"


def inventory(home, brokers, connect):
    """Write the inventory of the brokers, whose host is this one; return its file."""
    hosts = {
        f"b{broker.node_id}": {
            "quorumshift_broker_config_file": str(broker.home / "server.properties"),
            "quorumshift_broker_log_file": str(broker.log),
            "quorumshift_broker_service": "no-broker-service",
            "quorumshift_state_dir": str(home / "nodes"),
        }
        for broker in brokers
    }
    shared = {
        "ansible_connection": "local",
        "ansible_python_interpreter": sys.executable,
        "quorumshift_bootstrap_servers": [str(broker.address) for broker in brokers],
        "quorumshift_zookeeper_connect": connect,
        "quorumshift_artifacts_dir": str(home / "artifacts"),
        "quorumshift_state_dir": str(home / "state"),
    }
    path = home / "inventory.json"
    path.write_text(json.dumps({"all": {"vars": shared, "children": {"kafka_broker": {"hosts": hosts}}}}))
    return path


def play(path, name, **more):
    """Return the exit code and output of a playbook."""
    words = [str(pathlib.Path(sys.executable).parent / "ansible-playbook"), "-i", str(path), "-e", json.dumps(more)]
    done = subprocess.run(
        [*words, f"playbooks/{name}.yml"],
        cwd=ROOT,
        env={**os.environ, "ANSIBLE_NOCOLOR": "1", "LC_ALL": "C.UTF-8"},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    print(f"--- {name}: {done.returncode}\n{done.stdout}{done.stderr}")
    return done.returncode, " ".join(done.stdout.split())


@pytest.mark.parametrize(("release", "metadata"), [("2.4.1", 9), ("2.8.2", 11)])
def test_a_cluster_of_an_older_release_is_shown_and_reassigned(release, metadata, monkeypatch):
    monkeypatch.setenv("QUORUMSHIFT_KAFKA_LIBS", str(servers.libs_of(release)))
    with servers.workdir("old-cluster") as home, servers.zookeeper(home) as ensemble, contextlib.ExitStack() as stack:
        connect, older = f"{ensemble.connect}/kafka", {"inter.broker.protocol.version": None}
        brokers = [stack.enter_context(servers.zk_broker(home, number, connect, older)) for number in (1, 2)]
        admin_bed.ready(brokers)
        address, client = brokers[0].address, Security()
        offered = kafka_wire.api_versions(address).api_keys
        assert apis.METADATA.version(offered) == metadata and oldest.find_lacking(offered) == []
        fill(brokers[0], "orders", {0: [1], 1: [2]}, 1)

        # the same facts as a later release gives
        admin = cluster_admin.ClusterAdmin([address], client, 10, None)
        assert sorted(admin.brokers) == [1, 2] and admin.partitions["orders", 0]["replicas"] == [1]
        found = admin.log_dirs(1, [("orders", 0), ("orders", 1)])
        assert found.sizes["orders", 0] > 1_000_000 and ("orders", 1) not in found.sizes and not found.directories
        topic = (admin_requests.TOPIC, "orders")
        assert admin.alter_configs({topic: {"retention.ms": "777"}}) == {}
        assert admin.configs([topic])[topic] == {"retention.ms": "777"}
        assert log_ends.read(address, client, [("orders", 0), ("orders", 1)], 10) == {("orders", 0): 10}
        source = wire_topics.Source([address], client, 10)
        assert source.metadata([])[0]["clusterId"] == admin.cluster_id
        assert "ALTER" in source.cluster_rights()

        # a playbook drains a broker, and sees that nothing is left to do
        path = inventory(home, brokers, connect)
        code, text = play(path, "status")
        assert code == 0 and "[zk]" in text and "not read" not in text, text
        code, text = play(path, "reassign", reassign_drain=1, reassign_apply=True)
        assert code == 0, text
        admin.refresh()
        assert {tuple(each["replicas"]) for each in admin.partitions.values()} == {(2,)} and admin.in_flight() == {}
        with pytest.raises(kafka_wire.KafkaError, match=r"UpdateFeatures answered UNSUPPORTED_VERSION"):
            admin.update_features({"metadata.version": (21, admin_requests.UPGRADE)}, True)


def libs_of_2_3(directory):
    """Return the jars of Kafka 2.3 with the ZooKeeper client of 2.4: its own, 3.4.14, resolves no address on Java 14 or
    later (ZOOKEEPER-3779)."""
    for release, zookeeper in ((OLDER, False), ("2.4.1", True)):
        for jar in servers.libs_of(release).glob("*.jar"):
            if jar.name.startswith("zookeeper") == zookeeper:
                (directory / jar.name).symlink_to(jar)
    return directory


def test_an_older_release_is_refused_at_the_beginning(monkeypatch, tmp_path):
    monkeypatch.setenv("QUORUMSHIFT_KAFKA_LIBS", str(libs_of_2_3(tmp_path)))
    with servers.workdir("old-release") as home, servers.zookeeper(home) as ensemble:
        connect = f"{ensemble.connect}/kafka"
        older = {"inter.broker.protocol.version": None}
        with servers.zk_broker(home, 1, connect, older) as broker:
            assert kafka_wire.api_versions(broker.address).api_keys[3] == (0, 8)
            path = inventory(home, [broker], connect)
            started = broker.pid
            upgrade = {"upgrade_to": "3.9.2", "upgrade_home": str(servers.BUILD / "kafka")}
            for name, more in (
                ("restart", {}),
                ("upgrade", upgrade),
                ("reassign", {"reassign_drain": 1, "reassign_apply": True}),
            ):
                began = time.monotonic()
                code, text = play(path, name, **more)
                assert code == 2 and BOUND in text and LACKS in text and "QS-RUN-017" in text, name
                assert time.monotonic() - began < 120, "it is no wait that ends"
            assert not list(home.glob("nodes/*/*/run_lock.json")), "no lock is taken"
            assert broker.pid == started and broker.is_started()

            given = {"bootstrap_servers": [str(broker.address)]}
            said = admin_bed.run("partition_reassignment_info", **given)
            assert said["failed"] and BOUND in said["msg"] and LACKS in said["msg"], said
            # what only shows goes on
            code, text = play(path, "status")
            assert code == 0 and "[zk]" in text and f"reassignments: not read: {broker.address}: {BOUND}" in text
