# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The faults of the drills: context managers that inject a fault and remove it at exit."""

from __future__ import annotations

import contextlib
import json
import os
import re
import signal
import time
from typing import Iterator

from ansible_collections.quorumshift.kafka.plugins.module_utils.core.gates import gates
from confluent_kafka.admin import NewTopic
from kazoo.client import KazooClient

from tests.system.demo import screen
from tests.system.drill.scenario import Injection
from tests.system.testbed import control_process, faults
from tests.system.testbed.running import ELSEWHERE, Testbed
from tests.system.testbed.waiting import wait_for

FLAG = "zookeeper.metadata.migration.enable"
ZOOKEEPER_DOWN_S = 30.0
DUAL_WRITE_AGAIN_S = 120.0
SLOW_START_S = 90.0
DELETED = "drill.deleted"
FOREIGN_ID = "another-cluster-0000id"


def none(_injection: Injection) -> contextlib.AbstractContextManager[None]:
    """Inject nothing: the drill kills the run itself."""
    return contextlib.nullcontext()


def protocol_version(injection: Injection) -> contextlib.AbstractContextManager[None]:
    """Run a broker with another inter.broker.protocol.version."""
    expression = "s/^inter.broker.protocol.version=.*/inter.broker.protocol.version=3.8/"
    return faults.edited(injection.testbed, injection.testbed.brokers[1], expression)


def other_release(injection: Injection) -> contextlib.AbstractContextManager[None]:
    """Run another release of Kafka on a broker."""
    return faults.other_release(injection.testbed, injection.testbed.brokers[1])


@contextlib.contextmanager
def pending_deletion(injection: Injection) -> Iterator[None]:
    """Delete a topic while a broker with a replica is down."""
    testbed, pending = injection.testbed, f"/admin/delete_topics/{DELETED}"
    admin = testbed.admin()  # kept until it has answered
    admin.create_topics([NewTopic(DELETED, 1, 3)])[DELETED].result(30)
    del admin  # it would try to connect to the stopped broker without a pause
    with testbed.zookeeper() as client:
        controller = json.loads(client.get("/controller")[0])["brokerid"]
    stopped, *_others = (host for host in testbed.brokers if testbed.node_id(host) != controller)
    testbed.run(stopped, "systemctl stop kafka")
    try:
        with testbed.zookeeper() as client:
            client.create(pending)
        yield
    finally:
        testbed.run(stopped, "systemctl start kafka")
        testbed.wait_in_sync()
    with testbed.zookeeper() as client:
        wait_for(lambda: not client.exists(pending), 60, f"{DELETED} to be deleted")


@contextlib.contextmanager
def second_control_node(injection: Injection) -> Iterator[None]:
    """Begin a run on a second control node."""
    ran = injection.testbed.play(under=ELSEWHERE)
    if ran.code <= 0:
        raise RuntimeError(f"the second control node's run ended with {ran.code}: {ran.text[-2000:]}")
    injection.output.append(ran.text)
    yield


@contextlib.contextmanager
def flagless_controller(injection: Injection) -> Iterator[None]:
    """Restart a follower of the quorum without the migration flag.

    The leader would end the migration at once (ActivationRecordsGenerator).
    """
    testbed = injection.testbed
    with contextlib.ExitStack() as stack:
        with paused(testbed):  # the run must not pass its gate meanwhile
            stack.enter_context(faults.edited(testbed, _follower(testbed), f"/^{FLAG}/d"))
        yield


@contextlib.contextmanager
def flag_left_on(injection: Injection) -> Iterator[None]:
    """Restart a follower of the quorum with the migration flag; the next run must remove the flag."""
    testbed, (_service, path, _port) = (
        injection.testbed,
        faults.service_of(injection.testbed, injection.testbed.controllers[0]),
    )
    host = _follower(testbed)
    connect = testbed.variables["quorumshift_zookeeper_connect"]
    faults.restarted(testbed, host, f"sed -i '$ a {FLAG}=true\\nzookeeper.connect={connect}' {path}")
    yield
    left = testbed.run(host, f"grep '^{FLAG}=true' {path}; true")
    if left:
        faults.restarted(testbed, host, f"sed -i '/^{FLAG}/d; /^zookeeper.connect/d' {path}")
        raise RuntimeError(f"{host} still had {left}; the drill removed it")


def _follower(testbed: Testbed) -> str:
    leader = faults.leader(testbed)
    return next(host for host in testbed.controllers if host != leader)


def _last_in_plan(injection: Injection) -> str:
    """Return the last broker of the roll that the run has planned."""
    return re.findall(r", then (b\d)", injection.text)[-1]


@contextlib.contextmanager
def another_broker_killed(injection: Injection) -> Iterator[None]:
    """Kill the roll's last broker and leave it down. (The roll would start the next broker itself.)"""
    testbed = injection.testbed
    host = _last_in_plan(injection)
    testbed.run(host, "systemctl kill --signal=KILL kafka")
    yield
    node = f"/brokers/ids/{testbed.node_id(host)}"
    with testbed.zookeeper() as client:  # the next process fails while the znode of the last one exists
        wait_for(lambda: not client.exists(node), 60, f"the ZooKeeper session of {host} to end")
    testbed.run(host, "systemctl start kafka")
    testbed.wait_in_sync()


@contextlib.contextmanager
def unresponsive_while_another_is_down(injection: Injection) -> Iterator[None]:
    """Kill the roll's last broker; drop the control node's new connections to the next one, which must keep running."""
    testbed = injection.testbed
    host = _last_in_plan(injection)
    (unresponsive,) = set(testbed.brokers) - {host, injection.host}
    process = "systemctl show kafka -p MainPID"
    before = testbed.run(unresponsive, process)
    with another_broker_killed(injection), faults.without_connections(testbed, unresponsive):
        yield
        if testbed.run(unresponsive, process) != before:
            raise RuntimeError(f"{unresponsive} was stopped while {host} was down")


@contextlib.contextmanager
def control_node_sleeps(injection: Injection) -> Iterator[None]:
    """Stop the processes of the run for longer than a gate token lives, then continue them."""
    with paused(injection.testbed):
        time.sleep(gates.TOKEN_LIFE_S + 10)  # the fault is this time
    yield


@contextlib.contextmanager
def paused(testbed: Testbed) -> Iterator[None]:
    """Stop the processes of the newest run, if it runs, and continue them at exit."""
    processes = control_process.pids(testbed.control_process) if testbed.control_process else []
    try:
        for process in processes:
            os.kill(process, signal.SIGSTOP)
        yield
    finally:
        for process in processes:
            with contextlib.suppress(ProcessLookupError):
                os.kill(process, signal.SIGCONT)


@contextlib.contextmanager
def stray_directory(injection: Injection) -> Iterator[None]:
    """Create a directory as a broker in KRaft mode leaves it of a replica that it no longer has (LogManager)."""
    testbed, host = injection.testbed, injection.testbed.brokers[0]
    replica = testbed.run(host, "cd /var/lib/kafka/data1 && ls -d *-0 | grep -v ^__ | head -n 1")
    directory = f"/var/lib/kafka/data1/{replica}.{'0' * 32}-stray"
    testbed.run(host, f"mkdir {directory} && chown kafka: {directory}")
    try:
        yield
    finally:
        testbed.run(host, f"rm -r {directory}")


@contextlib.contextmanager
def foreign_zookeeper(injection: Injection) -> Iterator[None]:
    """Run the playbook with another cluster's ZooKeeper, once the run was killed; that tree must not change."""
    testbed, host = injection.testbed, injection.testbed.brokers[0]
    directory, unit = "/root/foreign-zookeeper", "foreign-zookeeper"
    config = f"dataDir={directory}\nclientPort=2191\nadmin.enableServer=false\n"
    java = f"/opt/kafka/bin/zookeeper-server-start.sh {directory}/zoo.cfg"
    testbed.run(host, f"mkdir {directory} && printf '{config}' > {directory}/zoo.cfg")
    testbed.run(host, f"systemd-run --quiet --collect --unit={unit} --setenv=KAFKA_HEAP_OPTS=-Xmx64m {java}")
    address = f"{testbed.addresses[host]}:2191"
    try:
        client = KazooClient(hosts=address, timeout=10)
        client.start(timeout=60)
        with testbed.zookeeper() as own:  # a cluster in the middle of its own migration
            chroot = {path: own.get(path)[0] for path in ("/cluster/id", "/controller_epoch", "/migration")}
        chroot["/cluster/id"] = json.dumps({"version": "1", "id": FOREIGN_ID}).encode()
        chroot["/controller"] = json.dumps({"version": 2, "brokerid": 102, "kraftControllerEpoch": 7}).encode()
        for path, data in chroot.items():
            client.create(path, data, makepath=True)
        before = [(path, *client.get(path)) for path in chroot]
        yield
        ran = testbed.play("rollback", extra={**injection.variables, "quorumshift_zookeeper_connect": address})
        injection.output.append(ran.text)
        if not ran.code or [(path, *client.get(path)) for path in chroot] != before:
            raise RuntimeError(f"a run with another cluster's ZooKeeper ended with {ran.code} or changed its tree")
        client.stop()
    finally:
        testbed.run(host, f"systemctl stop {unit}; rm -r {directory}")


@contextlib.contextmanager
def slow_recovery(injection: Injection) -> Iterator[None]:
    """Kill the broker that stops, so that its next start recovers logs; slow that start beyond the start timeout."""
    testbed, host = injection.testbed, str(injection.host)
    testbed.run(host, "systemctl kill --signal=KILL kafka")
    with faults.slowed(testbed, host, SLOW_START_S):
        yield


@contextlib.contextmanager
def active_controller_killed(injection: Injection) -> Iterator[None]:
    """Kill the quorum's leader and leave it down."""
    host = faults.leader(injection.testbed)
    injection.testbed.run(host, "systemctl kill --signal=KILL kafka-controller")
    yield
    injection.testbed.run(host, "systemctl start kafka-controller")
    injection.testbed.wait_listening(host, 9093)


def active_controller_killed_in_copy(injection: Injection) -> contextlib.AbstractContextManager[None]:
    """Kill the active controller when the initial copy begins, and start it again at once."""
    return faults.killed_in_copy(injection.testbed)


@contextlib.contextmanager
def zookeeper_lost(injection: Injection) -> Iterator[None]:
    """Stop two of three ZooKeeper servers for at least half a minute.

    Then follow what `status` prints: restart the active controller if it no longer writes to ZooKeeper.
    """
    testbed, began = injection.testbed, time.monotonic()
    testbed.on_each(testbed.brokers[:2], "systemctl stop zookeeper")
    try:
        yield
        injection.output.append(testbed.play("status").text)
        time.sleep(max(0.0, began + ZOOKEEPER_DOWN_S - time.monotonic()))  # the minimum outage
    finally:
        testbed.on_each(testbed.brokers[:2], "systemctl start zookeeper")
    with testbed.zookeeper() as client:
        before = client.get("/migration")[0]
        with contextlib.suppress(TimeoutError):
            wait_for(lambda: client.get("/migration")[0] != before, 20, "/migration to move")
            return
    text = testbed.play("status").text
    status = screen.read(text)
    if "restart that controller" not in text or not status or not status.leader:
        raise RuntimeError(f"/migration does not move, and status does not say what to do: {text[-3000:]}")
    (host,) = [controller for controller in testbed.controllers if testbed.node_id(controller) == status.leader]
    testbed.run(host, "systemctl restart kafka-controller")
    with testbed.zookeeper() as client:
        wait_for(
            lambda: client.get("/migration")[0] != before, DUAL_WRITE_AGAIN_S, "/migration to move after the restart"
        )


@contextlib.contextmanager
def leader_cut_off(injection: Injection) -> Iterator[None]:
    """Drop the brokers' packets to the quorum's leader until it has fenced a broker."""
    testbed = injection.testbed
    host = faults.leader(testbed)
    rules = [f"INPUT -p tcp --dport 9093 -s {testbed.addresses[broker]}" for broker in testbed.brokers]
    fenced = "grep -c 'Fencing broker' /var/log/kafka/controller.log; true"
    before = testbed.run(host, fenced)
    with faults.dropped(testbed, [host], *rules):
        wait_for(lambda: testbed.run(host, fenced) != before, 60, f"{host} to fence a broker")
    yield


@contextlib.contextmanager
def ssh_lost(injection: Injection) -> Iterator[None]:
    """Make the host that restarts unreachable by SSH."""
    with faults.Unreachable(str(injection.host)) as lost:
        lost.begin()
        yield


def controller_disk_full(injection: Injection) -> contextlib.AbstractContextManager[None]:
    """Fill the disk of a follower's metadata log."""
    return faults.controller_disk_full(injection.testbed, _follower(injection.testbed))


@contextlib.contextmanager
def rebooted(injection: Injection) -> Iterator[None]:
    """Reboot the host that the drill's `at` matched."""
    faults.reboot(injection.testbed, str(injection.host))
    yield


@contextlib.contextmanager
def last_host_rebooted(injection: Injection) -> Iterator[None]:
    """Reboot the host of the roll's last broker."""
    faults.reboot(injection.testbed, _last_in_plan(injection))
    yield


@contextlib.contextmanager
def controller_rebooted(injection: Injection) -> Iterator[None]:
    """Reboot a controller's host; start its controller, whose unit is not enabled, at the end."""
    testbed, host = injection.testbed, injection.testbed.controllers[0]
    try:
        faults.reboot(testbed, host)
        yield
    finally:
        testbed.run(host, "systemctl start kafka-controller")
        testbed.wait_listening(host, 9093)


@contextlib.contextmanager
def masked_controller_rebooted(injection: Injection) -> Iterator[None]:
    """Reboot a controller's host while the controller is masked: it must stay down."""
    testbed, host = injection.testbed, injection.testbed.controllers[1]
    testbed.run(host, "systemctl enable kafka-controller 2>/dev/null; true")
    faults.reboot(testbed, host)
    state = testbed.run(host, "systemctl is-active kafka-controller; true")
    if state in ("active", "activating"):
        raise RuntimeError(f"the controller of {host} is {state} after a reboot, although it is masked")
    yield
    testbed.run(host, "systemctl disable kafka-controller 2>/dev/null; true")
