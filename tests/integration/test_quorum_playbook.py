# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The playbook `quorum` on real controllers and brokers: from a static quorum to a dynamic one, and controllers that
are added, replaced, removed and unregistered."""

from __future__ import annotations

import contextlib
import os
import re
import shutil

import pytest
from ansible_collections.quorumshift.kafka.plugins.module_utils.probes.node import node
from ansible_collections.quorumshift.kafka.plugins.module_utils.settings import properties
from ansible_collections.quorumshift.kafka.plugins.module_utils.settings.addresses import HostPort
from ansible_collections.quorumshift.kafka.plugins.module_utils.wire import kafka_wire

from tests.integration import admin_bed, servers
from tests.integration.service_manager import ManagedRuns, Manager

pytestmark = [
    pytest.mark.real,
    pytest.mark.skipif(os.geteuid() != 0, reason="a mount namespace needs root"),
]
VOTERS, BOOTSTRAP = "controller.quorum.voters", "controller.quorum.bootstrap.servers"


@contextlib.contextmanager
def static_quorum(name, release, monkeypatch, brokers=1):
    """Yield (home, controllers, brokers, runs) of a static quorum of three of a release of Kafka."""
    monkeypatch.setenv("QUORUMSHIFT_KAFKA_LIBS", str(servers.libs_of(release)))
    with servers.workdir(name) as home, contextlib.ExitStack() as stack:
        addresses = [HostPort("127.0.0.1", servers.free_port()) for _number in range(3)]
        voters = ",".join(f"{101 + number}@{address}" for number, address in enumerate(addresses))
        controllers = stack.enter_context(servers.kraft_controllers(home, addresses))
        started = [stack.enter_context(servers.kraft_broker(home, 1 + number, voters)) for number in range(brokers)]
        admin_bed.ready(started)
        manager = stack.enter_context(Manager(home, [*controllers, *started]))
        yield home, controllers, started, ManagedRuns(home, controllers, started, manager, "quorum")


def described(controllers):
    found = kafka_wire.describe_quorum_any([controller.address for controller in controllers]).quorum
    assert found, "no leader"
    return found


def file_of(server):
    return properties.parse((server.home / "server.properties").read_bytes())


def command_of(said):
    """Return the variables of the command that the playbook printed."""
    shown = re.search(r"To make it: ansible-playbook -i INVENTORY quorumshift\.kafka\.quorum ((?:-e \S+ ?)+)", said)
    assert shown, said
    return dict(text.split("=", 1) for text in re.findall(r"-e (\S+)", shown[1]))


def test_from_static_to_dynamic(monkeypatch):
    with static_quorum("quorum-dynamic", "4.1.1", monkeypatch) as (_home, controllers, brokers, runs):
        code, said = runs.run()
        assert code == 0, said
        assert re.search(r"static, kraft\.version 0 \(supported by every node: 0 to 1\), leader 10\d", said), said
        assert "files: static on b1, c101, c102, c103" in said and runs.locks() == {}

        code, said = runs.run(quorum_to="dynamic")
        assert code == 0 and "kraft.version rises from 0 to 1, and Kafka never lowers it" in said, said
        given = command_of(said)
        assert given["quorum_confirm"].startswith(f"{servers.CLUSTER_ID}:")
        code, said = runs.run(**{**given, "quorum_confirm": f"{servers.CLUSTER_ID}:ffffff"})
        assert code == 2 and "QS-QUORUM-001" in said and described(controllers).voters[0].directory_id is None, said
        assert all(lock["closed"] for lock in runs.locks().values())

        code, said = runs.run(**given)
        assert code == 0, said
        found = described(controllers)
        assert all(voter.directory_id for voter in found.voters) and len(found.voters) == 3
        at = ",".join(str(controller.address) for controller in controllers)
        for server in (*controllers, *brokers):
            assert VOTERS not in file_of(server) and file_of(server)[BOOTSTRAP] == at
        stops = [unit for action, unit, _at in runs.manager.calls if action == "stop"]
        assert sorted(stops) == ["broker-1", "controller-101", "controller-102", "controller-103"]
        assert stops[-1] == "broker-1", "controllers before brokers"

        code, said = runs.run(**given)
        assert code == 0 and "nothing would change" in said and len(runs.manager.calls) == 8, said
        assert re.search(r"localhost : ok=\d+ changed=0", said), said


def raised(controllers, brokers, nodes):
    """Raise kraft.version as Kafka's own tool does with --release-version: no file changes (KAFKA-21426)."""
    at = [str(broker.address) for broker in brokers]
    given = {"bootstrap_servers": at, "nodes": nodes, "state": "dynamic"}
    token = admin_bed.run("kafka_quorum", check=True, **given)["token"]
    found = admin_bed.run("kafka_quorum", token=token, **given)
    assert found["changed"] and found["dynamic"] and found["repair"] == sorted(nodes), found


def nodes_of(controllers, brokers):
    """Return the facts of every host, as node_facts reads them."""
    found = {}
    for server in (*controllers, *brokers):
        role = "broker" if server in brokers else "controller"
        config = str(server.home / "server.properties")
        own = node.collect(role, config, "none", "key", str(server.home.parent / "nodes"), "/nowhere")
        host = f"{role[0]}{server.node_id}"
        found[host] = {**own, "role": role, "reached": True, "address": str(server.address)}
    return found


@contextlib.contextmanager
def new_controller(home, node_id, controllers):
    """Run a controller that is formatted for a dynamic quorum, and no voter of it."""
    address = HostPort("127.0.0.1", servers.free_port())
    at = ",".join(str(controller.address) for controller in controllers)
    settings = {VOTERS: None, BOOTSTRAP: at, "listener.security.protocol.map": "CONTROLLER:PLAINTEXT"}
    with servers.kraft_controller(
        home, node_id, address, "", settings, arguments=("--no-initial-controllers",), ready=lambda: True
    ) as controller:
        yield controller


def test_controllers_are_added_replaced_removed_and_unregistered(monkeypatch):
    with static_quorum("quorum-voters", "4.4.0", monkeypatch) as (home, controllers, brokers, runs):
        raised(controllers, brokers, nodes_of(controllers, brokers))
        code, said = runs.run()
        assert code == 0 and "(KAFKA-21426). Repair it:" in said and "-e quorum_to=dynamic" in said, said

        with new_controller(home, 104, controllers) as added:
            runs.manager.add(added)
            runs.add_controller(added)
            servers.wait_for(lambda: added.printed("RegistrationResponse"), 60, "104 to be registered")
            given = {"quorum_add": "c104", "quorum_apply": True}
            code, said = runs.run(**given)
            assert code == 0 and "becomes a voter" in said, said
            assert [voter.id for voter in described(controllers).voters] == [101, 102, 103, 104]
            code, said = runs.run(**given)
            assert code == 0 and "nothing would change" in said, said

            # The disk of a follower is lost
            lost = next(each for each in controllers if each.node_id != described(controllers).leader_id)
            before = {voter.id: voter.directory_id for voter in described(controllers).voters}
            lost.kill()
            shutil.rmtree(lost.home / "data")
            lost.configure({VOTERS: None, BOOTSTRAP: ",".join(str(each.address) for each in controllers)})
            lost.format(arguments=("--no-initial-controllers",))
            lost.start(lambda: True)
            runs.manager.add(lost)
            servers.wait_for(lambda: lost.printed("RegistrationResponse"), 60, "it to be registered")
            code, said = runs.run(quorum_add=f"c{lost.node_id}")
            assert code == 2 and "QS-QUORUM-006" in said, said
            code, said = runs.run(quorum_replace=f"c{lost.node_id}")
            assert code == 0, said
            code, said = runs.run(**command_of(said))
            assert code == 0, said
            now = {voter.id: voter.directory_id for voter in described(controllers).voters}
            assert set(now) == set(before) and now[lost.node_id] != before[lost.node_id]
            assert all(now[each] == before[each] for each in now if each != lost.node_id)

            # The leader is removed, and resigns
            leader = described(controllers).leader_id
            code, said = runs.run(quorum_remove=leader)
            assert code == 0 and "resigns once its removal is committed" in said, said
            code, said = runs.run(**command_of(said))
            found = described([*controllers, added])
            assert code == 0 and found.leader_id != leader and len(found.voters) == 3, said

            # It is gone for good, and stays registered
            removed = next(each for each in controllers if each.node_id == leader)
            removed.kill()
            runs.remove_controller(leader)
            code, said = runs.run()
            assert code == 0 and f"controller {leader} is registered" in said, said
            assert f"-e quorum_unregister={leader}" in said, said
            servers.wait_for(lambda: fetched_ago([*controllers, added], leader) > 60, 120, "a minute without a fetch")
            code, said = runs.run(quorum_unregister=leader)
            assert code == 0, said
            code, said = runs.run(**command_of(said))
            after = said.rpartition("Change the quorum")[2]
            assert code == 0 and f"controller {leader} is registered" not in after, said
            code, said = runs.run(quorum_unregister=leader, quorum_apply=True)
            assert code == 0 and "nothing would change" in said, said


def fetched_ago(controllers, node_id):
    """Return how many seconds ago an observer fetched, by the leader's clock; many where the leader knows of none."""
    found = described(controllers)
    now = next(voter.last_caught_up_timestamp for voter in found.voters if voter.id == found.leader_id)
    return next(((now - each.last_fetch_timestamp) / 1000 for each in found.observers if each.id == node_id), 1e9)
