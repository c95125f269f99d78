# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Nothing is changed in another cluster's ZooKeeper, though the inventory names it. Two real servers, one foreign."""

from __future__ import annotations

import concurrent.futures
import contextlib
import functools
import json

import pytest
from ansible_collections.quorumshift.kafka.plugins.module_utils.formats.zookeeper import znodes
from ansible_collections.quorumshift.kafka.plugins.module_utils.probes.zookeeper import zookeeper
from ansible_collections.quorumshift.kafka.plugins.module_utils.settings.addresses import HostPort
from ansible_collections.quorumshift.kafka.plugins.module_utils.wire import kafka_wire
from ansible_collections.quorumshift.kafka.plugins.module_utils.zk_write import (
    backup_file,
    partition_states,
    restoring,
    taking,
    zk_controller_restore,
    zk_writing,
)

from tests import modules
from tests.integration import servers

pytestmark = pytest.mark.real

OWN, FOREIGN = "OwnClusterId__________", "ForeignClusterId______"
META = {"version": "0", "cluster.id": OWN}


def fill(connect, cluster_id):
    """Write the znodes of a cluster whose controllers are KRaft's: everything that a rollback would change."""
    with zookeeper.connect(connect, 10) as client:
        topic = {"version": 3, "topic_id": None, "partitions": {"0": [1]}}
        state = {"controller_epoch": 42, "leader": 1, "version": 1, "leader_epoch": 0, "isr": [1]}
        for path, value in (
            (znodes.CLUSTER_ID, {"version": "1", "id": cluster_id}),
            (znodes.CONTROLLER, {"version": 2, "brokerid": 3001, "timestamp": "1", "kraftControllerEpoch": 42}),
            (znodes.MIGRATION, {"version": 0, "kraft_metadata_offset": 500}),
            (znodes.topic_path("complete"), topic),
            (znodes.partition_state_path("complete", 0), state),
            (znodes.topic_path("late"), topic),
        ):
            client.create(path, json.dumps(value).encode(), makepath=True)
        client.create(znodes.CONTROLLER_EPOCH, b"7")
        client.create(znodes.BROKER_IDS, b"", makepath=True)
        client.create(znodes.DELETE_TOPICS, b"", makepath=True)


def tree(connect):
    with zookeeper.connect(connect, 10) as client:
        return list(zookeeper.Reader(client).tree())


@pytest.fixture(scope="module")
def ensembles():
    """(own, foreign): two ZooKeeper servers, with a cluster each."""
    with contextlib.ExitStack() as stack:
        home = stack.enter_context(servers.workdir("identity"))
        own, foreign = (stack.enter_context(servers.zookeeper(home, name)) for name in ("own", "foreign"))
        fill(own.connect, OWN)
        fill(foreign.connect, FOREIGN)
        yield own, foreign


@pytest.fixture
def foreign(ensembles):
    """The foreign server. At the end its tree must be the same, byte for byte, with every version and zxid."""
    before = tree(ensembles[1].connect)
    yield ensembles[1]
    assert tree(ensembles[1].connect) == before


@pytest.fixture
def backup(ensembles, tmp_path):
    """A backup of the own cluster."""
    path = tmp_path / "private" / "own.gz"
    with zookeeper.connect(ensembles[0].connect, 10) as client:
        taking.take(client, str(path), ensembles[0].connect, "test", cluster_id=OWN)
    return path


def nodes(directory="/var/lib/kafka", **log):
    """Facts of a broker and a controller, both stopped and masked, both of the own cluster."""
    down = f"127.0.0.1:{servers.free_port()}"
    stopped = {"manager": "systemd", "name": "kafka-controller", "active": False, "masked": True}
    common = {"reached": True, "host_address": "127.0.0.1", "address": down}
    file = {"path": "/etc/kafka/server.properties", "exists": True, "mode": "zk_migration", "properties": {}}
    log_dirs = [{"path": directory, "exists": True, "meta": META}]
    return {
        "b1": {**common, "role": "broker", "node_id": 1, "file": file, "service": stopped, "log_dirs": log_dirs},
        "c1": {**common, "role": "controller", "node_id": 3001, "service": stopped, "log_dirs": log_dirs, **log},
    }


def run(module, connect, **options):
    """Run a module as Ansible does, in a process that reads its arguments as JSON; return its result."""
    given = {"zookeeper_connect": connect, **options}
    if module != "zk_backup":
        given.setdefault("bootstrap_servers", [f"127.0.0.1:{servers.free_port()}"])
    return modules.run(module, **given)


# Each changing module, given the other cluster's ZooKeeper -----------------------------------------------------------


@pytest.mark.parametrize(
    ("module", "options"),
    [
        ("restore_zk_controller", {"partition_epochs": {}, "timeout_s": 5}),
        ("zk_partition_states", {}),
        ("broker_unregister", {}),
        ("zk_restore", {"state": "planned", "run": "r"}),
        ("zk_restore", {"state": "restored", "run": "r", "token": "any"}),
        ("initial_copy", {"state": "expected"}),
        ("initial_copy", {"state": "awaited", "timeout_s": 5}),
        ("gate", {"gate": "before_revert", "run": "r", "verify": [], "timeout_s": 5, "stable_s": 0}),
        ("rolling_restart", {"state": "settled", "kind": "zk", "run": "r", "timeout_s": 5, "stable_s": 0}),
    ],
)
def test_a_module_on_the_probe_host_refuses_another_clusters_zookeeper(foreign, backup, module, options):
    options = {**options, **({"path": str(backup)} if module == "zk_restore" else {})}
    result = run(module, foreign.connect, cluster_id=OWN, nodes=nodes(), **options)
    assert result.get("failed"), result
    assert FOREIGN in result["msg"] and OWN in result["msg"] and foreign.connect in result["msg"], result["msg"]


def test_a_restore_refuses_a_backup_of_another_cluster(foreign, ensembles, tmp_path):
    path = tmp_path / "private" / "foreign.gz"
    with zookeeper.connect(foreign.connect, 10) as client:
        taking.take(client, str(path), foreign.connect, "test")
    before = tree(ensembles[0].connect)
    options = {"state": "restored", "run": "r", "token": "any", "path": str(path), "nodes": nodes()}
    result = run("zk_restore", ensembles[0].connect, cluster_id=OWN, **options)
    assert result.get("failed") and f"is a backup of cluster {FOREIGN}" in result["msg"], result
    assert tree(ensembles[0].connect) == before


def test_a_backup_is_not_taken_from_or_compared_with_another_cluster(foreign, backup, tmp_path):
    path = tmp_path / "private" / "new.gz"
    for given in ({"path": str(path)}, {"path": str(backup)}, {"path": str(backup), "state": "verified"}):
        result = run("zk_backup", foreign.connect, cluster_id=OWN, **given)
        assert result.get("failed") and FOREIGN in result["msg"], result
    assert not path.exists()


def test_hosts_of_another_cluster_are_refused_as_well(ensembles):
    before = tree(ensembles[0].connect)
    mixed = nodes(log_dirs=[{"path": "/c", "exists": True, "meta": {"cluster.id": FOREIGN}}])
    for module, options in (
        ("restore_zk_controller", {"partition_epochs": {}}),
        ("initial_copy", {"state": "compared"}),
    ):
        result = run(module, ensembles[0].connect, cluster_id=OWN, nodes=mixed, **options)
        assert result.get("failed") and f"{FOREIGN} in c1: /c/meta.properties" in result["msg"], result
    assert tree(ensembles[0].connect) == before


def test_bootstrap_servers_of_another_cluster_are_refused_as_well(ensembles):
    before = tree(ensembles[0].connect)
    with contextlib.ExitStack() as stack:
        home = stack.enter_context(servers.workdir("identity_bootstrap"))
        other = stack.enter_context(servers.zookeeper(home))
        broker = stack.enter_context(servers.zk_broker(home, 1, other.connect))
        for module, options in (
            ("restore_zk_controller", {"partition_epochs": {}}),
            ("broker_unregister", {}),
            ("initial_copy", {"state": "compared"}),
            ("gate", {"gate": "before_revert", "run": "r", "verify": [], "timeout_s": 5, "stable_s": 0}),
            ("rolling_restart", {"state": "planned", "kind": "zk", "run": "r"}),
        ):
            given = {"bootstrap_servers": [str(broker.address)], "cluster_id": OWN, "nodes": nodes(), **options}
            result = run(module, ensembles[0].connect, **given)
            assert result.get("failed") and "in quorumshift_bootstrap_servers" in result["msg"], result
    assert tree(ensembles[0].connect) == before


# At the moment of the write -------------------------------------------------------------------------------------------


def test_each_writer_compares_in_its_own_session(foreign, backup):
    with zookeeper.connect(foreign.connect, 10) as client:
        with pytest.raises(zk_controller_restore.ZkControllerError, match=f"/cluster/id is {FOREIGN} in ZooKeeper at"):
            zk_controller_restore.restore_zk_controller(client, OWN, [42], {}, 10, 5)
        with pytest.raises(zk_writing.WriteError, match=f"/cluster/id is {FOREIGN}"):
            partition_states.complete(client, OWN, 10)
        with pytest.raises(backup_file.BackupForeign, match=FOREIGN):
            restoring.Restore(client, str(backup), OWN)
        with pytest.raises(zk_writing.WriteError, match=f"/cluster/id is {FOREIGN}"):
            zk_writing.Writer(client, OWN, 10)


@pytest.mark.parametrize("chroot", ["/empty", "/malformed"])
def test_without_a_cluster_id_nothing_is_written(ensembles, chroot):
    with zookeeper.connect(ensembles[0].connect, 10) as client:
        client.ensure_path("/empty")
        client.ensure_path("/malformed/cluster/id")
    missing = pytest.raises(zk_writing.WriteError, match="/cluster/id is missing or malformed")
    with missing, zookeeper.connect(f"{ensembles[0].connect}{chroot}", 10) as client:
        zk_writing.Writer(client, OWN, 10)


def test_a_session_that_moves_to_the_other_ensemble_writes_nothing_there(foreign):
    """The connect string names servers of both clusters; the own one goes down between two writes."""
    with servers.workdir("identity_moves") as home, servers.zookeeper(home) as own:
        fill(own.connect, OWN)
        with zookeeper.connect(own.connect, 4) as client:
            writer = zk_writing.Writer(client, OWN, 10)
            writer.set(znodes.CONTROLLER_EPOCH, b"8").get(timeout=10)
            first = client.client_id[0]
            client.set_hosts(f"{own.connect},{foreign.connect}")
            own.kill()
            servers.wait_for(lambda: client.client_id and client.client_id[0] != first, 60, "a session elsewhere")
            for write in (
                lambda: writer.set(znodes.CONTROLLER_EPOCH, b"9"),
                lambda: writer.delete(znodes.MIGRATION),
                lambda: writer.create("/made", b"", None),
            ):
                with pytest.raises(zk_writing.WriteError, match=f"/cluster/id is {FOREIGN}"):
                    write()


def test_a_controller_of_another_cluster_keeps_its_registrations():
    """A real quorum: the id is asked for on the connection that would remove the registration."""
    with servers.workdir("identity_quorum") as home:
        address = HostPort("127.0.0.1", servers.free_port())
        with servers.kraft_controller(home, 3001, address, f"3001@{address}") as controller:
            with kafka_wire.KafkaConnection(controller.address) as connection:
                assert connection.cluster_id_of_controllers() == servers.CLUSTER_ID
            with pytest.raises(kafka_wire.ProtocolError, match=f"is of cluster {servers.CLUSTER_ID}, and this run"):
                kafka_wire.unregister_broker(controller.address, 1, cluster_id=OWN)
            assert kafka_wire.unregister_broker(controller.address, 1, cluster_id=servers.CLUSTER_ID) is False


def test_a_controller_that_has_not_loaded_its_metadata_is_asked_until_it_has():
    """It answers as below metadata.version 3.7-IV0, where no controller names its cluster."""
    addresses = [HostPort("127.0.0.1", servers.free_port()) for _number in range(2)]
    voters = ",".join(f"{101 + place}@{address}" for place, address in enumerate(addresses))
    with servers.workdir("identity_loading") as home, contextlib.ExitStack() as stack:

        def start(place):
            ready = functools.partial(answers, addresses[place])
            started = servers.kraft_controller(home, 101 + place, addresses[place], voters, ready=ready)
            return stack.enter_context(started)

        first = start(0)
        refused = pytest.raises(kafka_wire.WireError, match=r"UNSUPPORTED_VERSION|timed out")
        with kafka_wire.KafkaConnection(first.address, timeout=1) as connection, refused:
            connection.cluster_id_of_controllers()
        pool = stack.enter_context(concurrent.futures.ThreadPoolExecutor())
        with kafka_wire.KafkaConnection(first.address, timeout=60) as connection:
            asked = pool.submit(connection.cluster_id_of_controllers)
            start(1)
            assert asked.result() == servers.CLUSTER_ID


def test_a_controller_of_an_old_metadata_version_names_no_cluster():
    with servers.workdir("identity_old") as home:
        address = HostPort("127.0.0.1", servers.free_port())
        controller = servers.kraft_controller(home, 3001, address, f"3001@{address}", release="3.6-IV2")
        with controller, kafka_wire.KafkaConnection(address, timeout=30) as connection:
            assert connection.cluster_id_of_controllers() is None


def answers(address):
    """Return whether the server answers ApiVersions."""
    try:
        return bool(kafka_wire.api_versions(address, timeout=2))
    except kafka_wire.WireError:
        return False
