# Copyright: (c) 2026, Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The faults of the drills: broken inside each context, mended behind it, from a stretch.Scene."""

from __future__ import annotations

import contextlib
import json
import re
import time
from typing import Iterator

from confluent_kafka.admin import NewTopic

from tools.demo import screen
from tools.drill.stretch import Scene
from tools.e2e import faults
from tools.e2e.testbed import ELSEWHERE, Testbed, wait_for

FLAG = "zookeeper.metadata.migration.enable"
ZOOKEEPER_AWAY_S = 30.0
WRITTEN_AGAIN_S = 120.0
DELETED = "drill.deleted"


def none(_scene: Scene) -> contextlib.AbstractContextManager[None]:
    """Nothing but what the drill does to the run itself."""
    return contextlib.nullcontext()


def protocol_version(scene: Scene) -> contextlib.AbstractContextManager[None]:
    """A broker runs with another inter.broker.protocol.version."""
    expression = "s/^inter.broker.protocol.version=.*/inter.broker.protocol.version=3.8/"
    return faults.edited(scene.testbed, scene.testbed.brokers[1], expression)


def other_release(scene: Scene) -> contextlib.AbstractContextManager[None]:
    """A broker runs another release of Kafka."""
    return faults.other_release(scene.testbed, scene.testbed.brokers[1])


@contextlib.contextmanager
def pending_deletion(scene: Scene) -> Iterator[None]:
    """A topic is deleted while a broker that holds a replica is down."""
    testbed, pending = scene.testbed, f"/admin/delete_topics/{DELETED}"
    admin = testbed.admin()  # kept until it has answered
    admin.create_topics([NewTopic(DELETED, 1, 3)])[DELETED].result(30)
    del admin  # it would dial the broker that is down without a pause
    with testbed.zookeeper() as client:
        controller = json.loads(client.get("/controller")[0])["brokerid"]
    dead, *_others = (host for host in testbed.brokers if testbed.node_id(host) != controller)
    testbed.run(dead, "systemctl stop kafka")
    try:
        with testbed.zookeeper() as client:
            client.create(pending)
        yield
    finally:
        testbed.run(dead, "systemctl start kafka")
        testbed.wait_in_sync()
    with testbed.zookeeper() as client:
        wait_for(lambda: not client.exists(pending), 60, f"{DELETED} to be deleted")


@contextlib.contextmanager
def second_control_node(scene: Scene) -> Iterator[None]:
    """Somebody begins a run on another control node."""
    ran = scene.testbed.play(under=ELSEWHERE)
    if ran.code <= 0:
        raise RuntimeError(f"the second control node's run ended with {ran.code}: {ran.text[-2000:]}")
    scene.heard.append(ran.text)
    yield


@contextlib.contextmanager
def flagless_controller(scene: Scene) -> Iterator[None]:
    """A controller that follows is started over a file without the migration flag. (One that leads would end the
    migration at once: ActivationRecordsGenerator.)"""
    testbed = scene.testbed
    with faults.edited(testbed, _follower(testbed), f"/^{FLAG}/d"):
        yield


@contextlib.contextmanager
def flag_left_on(scene: Scene) -> Iterator[None]:
    """A controller that follows is started with the migration flag again; the next run has to take it out."""
    testbed, (_service, path, _port) = scene.testbed, faults.service_of(scene.testbed, scene.testbed.controllers[0])
    host = _follower(testbed)
    connect = testbed.variables["quorumshift_zookeeper_connect"]
    faults.restarted(testbed, host, f"sed -i '$ a {FLAG}=true\\nzookeeper.connect={connect}' {path}")
    yield
    left = testbed.run(host, f"grep '^{FLAG}=true' {path}; true")
    if left:
        faults.restarted(testbed, host, f"sed -i '/^{FLAG}/d; /^zookeeper.connect/d' {path}")
        raise RuntimeError(f"{host} still had {left}: it was taken out by hand")


def _follower(testbed: Testbed) -> str:
    leader = faults.leader(testbed)
    return next(host for host in testbed.controllers if host != leader)


def _last_in_plan(scene: Scene) -> str:
    """The broker whose turn is the last of the roll that the run has planned."""
    return re.findall(r", then (b\d)", scene.text)[-1]


@contextlib.contextmanager
def another_broker_killed(scene: Scene) -> Iterator[None]:
    """The broker whose turn is the roll's last gets SIGKILL, and nobody starts it. (The one whose turn is next would be
    started by that.)"""
    testbed = scene.testbed
    host = _last_in_plan(scene)
    testbed.run(host, "systemctl kill --signal=KILL kafka")
    yield
    node = f"/brokers/ids/{testbed.node_id(host)}"
    with testbed.zookeeper() as client:  # before, its next process would find another one's znode there, and end
        wait_for(lambda: not client.exists(node), 60, f"the ZooKeeper session of {host} to end")
    testbed.run(host, "systemctl start kafka")
    testbed.wait_in_sync()


@contextlib.contextmanager
def active_controller_killed(scene: Scene) -> Iterator[None]:
    """The quorum's leader gets SIGKILL, and nobody starts it."""
    host = faults.leader(scene.testbed)
    scene.testbed.run(host, "systemctl kill --signal=KILL kafka-controller")
    yield
    scene.testbed.run(host, "systemctl start kafka-controller")
    scene.testbed.wait_listening(host, 9093)


def active_controller_killed_in_copy(scene: Scene) -> contextlib.AbstractContextManager[None]:
    """The controller that copies gets SIGKILL as it begins, and is started again at once."""
    return faults.killed_in_copy(scene.testbed)


@contextlib.contextmanager
def zookeeper_lost(scene: Scene) -> Iterator[None]:
    """Two of three servers of ZooKeeper are stopped, for half a minute at least. After it the way on is tried that
    `status` tells: restart the active controller where it writes nothing more."""
    testbed, began = scene.testbed, time.monotonic()
    testbed.on_each(testbed.brokers[:2], "systemctl stop zookeeper")
    try:
        yield
        scene.heard.append(testbed.play("status").text)
        time.sleep(max(0.0, began + ZOOKEEPER_AWAY_S - time.monotonic()))  # to be away so long is the fault
    finally:
        testbed.on_each(testbed.brokers[:2], "systemctl start zookeeper")
    with testbed.zookeeper() as client:
        before = client.get("/migration")[0]
        with contextlib.suppress(TimeoutError):
            wait_for(lambda: client.get("/migration")[0] != before, 20, "/migration to move")
            return
    reported = testbed.play("status").text
    shown = screen.read(reported)
    if "restart that controller" not in reported or not shown or not shown.leader:
        raise RuntimeError(f"/migration does not move, and status does not say what to do: {reported[-3000:]}")
    (host,) = [one for one in testbed.controllers if testbed.node_id(one) == shown.leader]
    testbed.run(host, "systemctl restart kafka-controller")
    with testbed.zookeeper() as client:
        wait_for(lambda: client.get("/migration")[0] != before, WRITTEN_AGAIN_S, "/migration to move after the restart")


@contextlib.contextmanager
def leader_cut_off(scene: Scene) -> Iterator[None]:
    """What brokers send to the quorum's leader drops, until it has fenced one."""
    testbed = scene.testbed
    host = faults.leader(testbed)
    rules = [f"INPUT -p tcp --dport 9093 -s {testbed.addresses[broker]}" for broker in testbed.brokers]
    fenced = "grep -c 'Fencing broker' /var/log/kafka/controller.log; true"
    before = testbed.run(host, fenced)
    with faults.dropped(testbed, [host], *rules):
        wait_for(lambda: testbed.run(host, fenced) != before, 60, f"{host} to fence a broker")
    yield


@contextlib.contextmanager
def ssh_lost(scene: Scene) -> Iterator[None]:
    """The host in its turn is not reached by SSH any more."""
    with faults.Unreachable(str(scene.host)) as lost:
        lost.begin()
        yield


def controller_disk_full(scene: Scene) -> contextlib.AbstractContextManager[None]:
    """The disk of a controller's metadata log is full; of one that follows."""
    return faults.controller_disk_full(scene.testbed, _follower(scene.testbed))


@contextlib.contextmanager
def rebooted(scene: Scene) -> Iterator[None]:
    """The host named is booted anew."""
    faults.reboot(scene.testbed, str(scene.host))
    yield


@contextlib.contextmanager
def last_one_rebooted(scene: Scene) -> Iterator[None]:
    """The host of the broker whose turn is the roll's last is booted anew."""
    faults.reboot(scene.testbed, _last_in_plan(scene))
    yield


@contextlib.contextmanager
def controller_rebooted(scene: Scene) -> Iterator[None]:
    """A controller's host is booted anew, and its controller, which is not enabled, started by hand at last."""
    testbed, host = scene.testbed, scene.testbed.controllers[0]
    try:
        faults.reboot(testbed, host)
        yield
    finally:
        testbed.run(host, "systemctl start kafka-controller")
        testbed.wait_listening(host, 9093)


@contextlib.contextmanager
def masked_controller_rebooted(scene: Scene) -> Iterator[None]:
    """A controller's host is booted anew while its controller is to stay down, which it has to over that."""
    testbed, host = scene.testbed, scene.testbed.controllers[1]
    testbed.run(host, "systemctl enable kafka-controller 2>/dev/null; true")
    faults.reboot(testbed, host)
    state = testbed.run(host, "systemctl is-active kafka-controller; true")
    if state in ("active", "activating"):
        raise RuntimeError(f"the controller of {host} is {state} after a reboot, though it was masked")
    yield
    testbed.run(host, "systemctl disable kafka-controller 2>/dev/null; true")
