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
import threading
import time

import pytest
from ansible_collections.quorumshift.kafka.plugins.module_utils.host import host_state
from ansible_collections.quorumshift.kafka.plugins.module_utils.probes.node import node
from ansible_collections.quorumshift.kafka.plugins.module_utils.settings import properties
from ansible_collections.quorumshift.kafka.plugins.module_utils.settings.addresses import HostPort
from ansible_collections.quorumshift.kafka.plugins.module_utils.wire import kafka_wire
from confluent_kafka import Consumer, Producer
from confluent_kafka.admin import AdminClient, NewTopic

from tests.integration import admin_bed, servers
from tests.integration.service_manager import ManagedRuns, Manager

pytestmark = [
    pytest.mark.real,
    pytest.mark.skipif(os.geteuid() != 0, reason="a mount namespace needs root"),
]
REGISTERED = "Our registration has been persisted to the metadata log"
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


class Leaders(threading.Thread):
    """Asks all controllers for their leader, until it is stopped. `seen`: [(time, leader's id or None)]."""

    def __init__(self, controllers):
        super().__init__(daemon=True)
        self.addresses = [controller.address for controller in controllers]
        self.seen, self.stopped = [], threading.Event()

    def run(self):
        while not self.stopped.wait(0.05):
            found = kafka_wire.describe_quorum_any(self.addresses, timeout=2).quorum
            self.seen.append((time.monotonic(), found.leader_id if found and found.leader_id >= 0 else None))

    def failovers(self):
        """Return [(old leader, new leader, seconds without an answer of either)]."""
        found, last = [], None
        for at, leader in self.seen:
            if leader is None:
                continue
            if last and last[1] != leader:
                found.append((last[1], leader, round(at - last[0], 2)))
            last = (at, leader)
        return found


class Traffic(threading.Thread):
    """Produces numbers with acks=all, until it is stopped. `delivered`: those that were acknowledged; `longest_s`: the
    longest time between two acknowledgements."""

    def __init__(self, brokers):
        super().__init__(daemon=True)
        self.at = ",".join(str(broker.address) for broker in brokers)
        self.delivered, self.errors, self.longest_s, self.last = set(), [], 0.0, None
        self.stopped = threading.Event()

    def _note(self, error, message):
        if error:
            self.errors.append(str(error))
            return
        now = time.monotonic()
        self.longest_s = max(self.longest_s, now - (self.last or now))
        self.last = now
        self.delivered.add(int(message.value()))

    def run(self):
        settings = {"acks": "all", "enable.idempotence": True, "delivery.timeout.ms": 120_000}
        producer, number = Producer({"bootstrap.servers": self.at, **settings}), 0
        while not self.stopped.wait(0.02):
            producer.produce("kept", str(number).encode(), on_delivery=self._note)
            producer.poll(0)
            number += 1
        producer.flush(120)

    def consumed(self):
        """Return every number that the topic has, each once."""
        consumer = Consumer({"bootstrap.servers": self.at, "group.id": "check", "auto.offset.reset": "earliest"})
        consumer.subscribe(["kept"])
        found, news = [], time.monotonic()
        while len(found) < len(self.delivered) and time.monotonic() < news + 60:  # the bound of a standstill
            message = consumer.poll(1)
            if message and not message.error():
                found.append(int(message.value()))
                news = time.monotonic()
        consumer.close()
        return found


def test_from_static_to_dynamic_under_produce_traffic_and_once_killed(monkeypatch):
    with static_quorum("quorum-dynamic", "4.1.1", monkeypatch, brokers=2) as (_home, controllers, brokers, runs):
        admin = AdminClient({"bootstrap.servers": str(brokers[0].address)})
        servers.create_topics(admin, [NewTopic("kept", 4, 2, config={"min.insync.replicas": "1"})])
        code, said = runs.run(quorum_to="dynamic")
        assert code == 0, said
        assert re.search(r"static, kraft\.version 0 \(supported by every node: 0 to 1\), leader 10\d", said), said
        assert "files: static on b1, b2, c101, c102, c103" in said and runs.locks() == {}
        assert "kraft.version rises from 0 to 1, and Kafka never lowers it" in said
        given = command_of(said)
        assert given["quorum_confirm"].startswith(f"{servers.CLUSTER_ID}:")

        wrong = {"bootstrap_servers": [str(brokers[0].address)], "nodes": nodes_of(controllers, brokers)}
        refused = admin_bed.run("kafka_quorum", state="dynamic", token=f"{servers.CLUSTER_ID}:ffffff", **wrong)
        assert refused["failed"] and "QS-QUORUM-001" in refused["msg"], refused
        code, said = runs.run("--check", "--diff", **given)
        assert code == 0 and f"-{VOTERS}=101@" in said and f"+{BOOTSTRAP}=" in said and runs.locks() == {}, said
        assert described(controllers).voters[0].directory_id is None and runs.manager.calls == []

        leaders, traffic = Leaders(controllers), Traffic(brokers)
        for thread in (leaders, traffic):
            thread.start()
        killed = runs.begin(**given)
        servers.wait_for(lambda: runs.manager.calls or killed.poll() is not None, 600, "the first restart")
        runs.kill(killed)
        assert killed.returncode == -9 and all(voter.directory_id for voter in described(controllers).voters)
        code, said = runs.run(**given)
        assert code == 0, said
        for thread in (leaders, traffic):
            thread.stopped.set()
            thread.join(150)

        found = described(controllers)
        assert all(voter.directory_id for voter in found.voters) and len(found.voters) == 3
        at = ",".join(str(controller.address) for controller in controllers)
        for server in (*controllers, *brokers):
            assert VOTERS not in file_of(server) and file_of(server)[BOOTSTRAP] == at
        stops = [unit for action, unit, _at in runs.manager.calls if action == "stop"]
        assert sorted(stops) == ["broker-1", "broker-2", "controller-101", "controller-102", "controller-103"]
        assert {stop.partition("-")[0] for stop in stops[:3]} == {"controller"}, "controllers before brokers"

        print(f"failovers: {leaders.failovers()}; longest time without an acknowledgement: {traffic.longest_s:.2f} s")
        assert leaders.failovers() and max(seconds for _old, _new, seconds in leaders.failovers()) < 30
        assert traffic.errors == [] and len(traffic.delivered) > 100
        assert sorted(traffic.consumed()) == sorted(traffic.delivered), "each once, none lost"

        code, said = runs.run(**given)
        assert code == 0 and "nothing would change" in said and len(runs.manager.calls) == 10, said
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
        members = list(controllers)

        def decided(state, which):
            """Return what a change would be, and its token."""
            given = {"bootstrap_servers": [str(brokers[0].address)], "nodes": nodes_of(members, brokers)}
            return admin_bed.run("kafka_quorum", check=True, state=state, controller=str(which), **given)

        with new_controller(home, 104, controllers) as added:
            runs.manager.add(added)
            runs.add_controller(added)
            members.append(added)
            servers.wait_for(lambda: added.printed(REGISTERED), 60, "104 to be registered")
            code, said = runs.run(quorum_add="c104", quorum_apply=True)
            assert code == 0 and "becomes a voter" in said, said
            assert [voter.id for voter in described(controllers).voters] == [101, 102, 103, 104]
            assert decided("added", "c104")["change"] == []

            # The disk of a follower is lost
            lost = next(each for each in controllers if each.node_id != described(controllers).leader_id)
            before = {voter.id: voter.directory_id for voter in described(controllers).voters}
            lost.kill()
            shutil.rmtree(lost.home / "data")
            lost.configure({VOTERS: None, BOOTSTRAP: ",".join(str(each.address) for each in controllers)})
            lost.format(arguments=("--no-initial-controllers",))
            lost.start(lambda: True)
            runs.manager.add(lost)
            servers.wait_for(lambda: lost.printed(REGISTERED), 60, "it to be registered")
            refused = decided("added", f"c{lost.node_id}")
            assert refused["failed"] and "QS-QUORUM-006" in refused["msg"], refused
            token = decided("replaced", f"c{lost.node_id}")["token"]
            code, said = runs.run(quorum_replace=f"c{lost.node_id}", quorum_apply=True, quorum_confirm=token)
            assert code == 0, said
            now = {voter.id: voter.directory_id for voter in described(controllers).voters}
            assert set(now) == set(before) and now[lost.node_id] != before[lost.node_id]
            assert all(now[each] == before[each] for each in now if each != lost.node_id)

            # The leader is removed, and resigns
            leader = described(controllers).leader_id
            going = decided("removed", leader)
            assert "resigns once its removal is committed" in going["change"][1], going
            code, said = runs.run(quorum_remove=leader, quorum_apply=True, quorum_confirm=going["token"])
            found = described(members)
            assert code == 0 and found.leader_id != leader and len(found.voters) == 3, said

            # It is gone for good, and stays registered
            removed = next(each for each in controllers if each.node_id == leader)
            removed.kill()
            runs.remove_controller(leader)
            members.remove(removed)
            refused = decided("unregistered", leader)
            assert refused["failed"] and "QS-QUORUM-008" in refused["msg"], refused
            servers.wait_for(lambda: fetched_ago(members, leader) > 61, 120, "a minute without a fetch")
            code, said = runs.run(quorum_unregister=leader)
            assert code == 0 and f"controller {leader} is registered" in said, said
            code, said = runs.run(**command_of(said))
            after = said.rpartition("Change the quorum")[2]
            assert code == 0 and f"controller {leader} is registered" not in after, said
            assert decided("unregistered", leader)["change"] == []


def fetched_ago(controllers, node_id):
    """Return how many seconds ago an observer fetched, by the leader's clock; many where the leader knows of none."""
    found = described(controllers)
    now = next(voter.last_caught_up_timestamp for voter in found.voters if voter.id == found.leader_id)
    return next(((now - each.last_fetch_timestamp) / 1000 for each in found.observers if each.id == node_id), 1e9)


def test_a_restart_left_half_done_is_finished_in_a_cluster_that_never_had_zookeeper(monkeypatch):
    with static_quorum("quorum-left", "4.1.1", monkeypatch) as (home, controllers, _brokers, runs):
        own = controllers[0]
        given = {"state_dir": str(home / "nodes"), "cluster_id": servers.CLUSTER_ID, "role": "controller"}
        directory = host_state.make_node_directory({**given, "node_id": own.node_id})
        record = {"id": "r0/dynamic_controller/c101", "run": "r0", "kind": "dynamic_controller", "earlier": {}}
        record.update(mode="controller_final", service=own.name, config_file=str(own.home / "server.properties"))
        record.update(steps=[{"name": "begun", "at": 1.0}, {"name": "stop", "at": 2.0}], outcome=None)
        host_state.write_json(f"{directory}/{host_state.RESTART}", record)
        code, said = runs.run(quorum_to="dynamic", quorum_apply=True)
        assert code == 2 and "QS-QUORUM-001" in said and "QS-PHASE-004" not in said, said
        assert "left its restart half done" in said and runs.manager.calls == [], said
        assert described(controllers).voters[0].directory_id is None
