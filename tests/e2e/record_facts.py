# Copyright: (c) 2026, Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Record the facts of every phase from real runs on the bed, for the unit tests of the judgements.

    PYTHONPATH=.build:. python -m tests.e2e.record_facts [ACT ...]

Each act starts from a reset bed, or from where the one before it ended, and writes
`tests/unit/fixtures/facts/NAME.json.gz` for each state it brings about. Without arguments all acts run, in order.
Secrets are sealed under a key of the run that recorded them, which is kept nowhere.
"""

from __future__ import annotations

import contextlib
import gzip
import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
import types

from ansible_collections.quorumshift.kafka.plugins.module_utils.core import phase
from ansible_collections.quorumshift.kafka.plugins.module_utils.probes import cluster, node, topics, zookeeper
from ansible_collections.quorumshift.kafka.plugins.module_utils.probes.cluster import Connections
from ansible_collections.quorumshift.kafka.plugins.modules import initial_copy
from kazoo.exceptions import NoNodeError
from kazoo.security import make_acl

from tests.integration import servers
from tools.e2e.testbed import ROOT, Testbed, nth, wait_for

FACTS = ROOT / "tests" / "unit" / "fixtures" / "facts"
CONFIGS = "/var/lib/quorumshift/*/configs"
# One topic of each replication factor, and the largest of Kafka's own; the whole list is in `zk` alone.
KEPT_TOPICS = 6


def main(names: list[str]) -> None:
    """Run the acts named, all by default."""
    testbed = Testbed() if set(names) != {"native"} else None
    for name in names or list(ACTS):
        began = time.monotonic()
        print(f"act {name}", flush=True)
        ACTS[name](testbed)
        print(f"act {name} took {time.monotonic() - began:.0f} s", flush=True)


def record(testbed: Testbed, name: str, whole: bool = False) -> None:
    """Look at the cluster as `status` does and keep the facts as fixture `name`."""
    keep(name, looked_at(testbed, name), whole)


def looked_at(testbed: Testbed, name: str = "facts") -> dict:
    """The facts as `status` judges them."""
    with tempfile.TemporaryDirectory() as directory:
        reported = {"quorumshift_artifacts_dir": directory, "quorumshift_record": True}
        ran = testbed.play("status", extra=reported, timeout=300)
        found = sorted(pathlib.Path(directory).glob("*/*/facts-*.json"))
        if not found:
            raise RuntimeError(f"status left no facts (code {ran.code}):\n{ran.text}")
        print(f"  {name}: {found[-1].stem.split('-', 2)[2]} ({ran.seconds:.1f} s)", flush=True)
        return json.loads(found[-1].read_text())


def keep(name: str, facts: dict, whole: bool = False) -> None:
    """Write the fixture, small: a few topics, the same bytes for the same facts."""
    if not whole and facts["topics"].get("reached"):
        partitions = facts["topics"]["partitions"]
        chosen = {}
        for topic in sorted(partitions):
            chosen.setdefault(len(partitions[topic]["0"]["replicas"]), topic)
        names = [*chosen.values(), *sorted(partitions)][:KEPT_TOPICS]
        facts["topics"]["partitions"] = {topic: partitions[topic] for topic in sorted(set(names))}
    text = json.dumps(facts, sort_keys=True, separators=(",", ":"))
    FACTS.mkdir(parents=True, exist_ok=True)
    (FACTS / f"{name}.json.gz").write_bytes(gzip.compress(text.encode(), mtime=0))


@contextlib.contextmanager
def stopped(testbed: Testbed, host: str, service: str):
    """The service of a host, stopped for a while."""
    testbed.run(host, f"systemctl stop {service}")
    try:
        yield
    finally:
        testbed.run(host, f"systemctl start {service}")


@contextlib.contextmanager
def no_ssh(testbed: Testbed, host: str):
    """A host that no longer takes connections to its sshd, while Kafka goes on."""
    mark = "-p tcp --dport 22 -j REJECT --reject-with tcp-reset"
    testbed.run(host, f"(sleep 0.5; iptables -I INPUT {mark}; sleep 45; iptables -D INPUT {mark}) >/dev/null 2>&1 &")
    _forget_ssh(testbed, host)
    time.sleep(1.5)
    try:
        yield
    finally:
        wait_for(lambda: testbed.run(host, "echo up", check=False) == "up", 150, f"ssh to {host}")


def _forget_ssh(testbed: Testbed, host: str) -> None:
    address = f"root@{testbed.addresses[host]}"
    for path in ("~/.ssh/ansible", "~/.ansible/cp"):
        for socket in pathlib.Path(path).expanduser().glob("*"):
            if socket.is_socket():
                socket.unlink(missing_ok=True)
    subprocess.run(
        ["ssh", *testbed.variables["ansible_ssh_common_args"].split(), "-O", "exit", address],
        capture_output=True,
        check=False,
    )


def broker_down(testbed: Testbed, name: str) -> None:
    """Record with one broker down, and put it back."""
    with stopped(testbed, "b2", "kafka"):
        record(testbed, name)
    testbed.wait_in_sync()


# The acts -------------------------------------------------------------------------------------------------------


def plain(testbed: Testbed) -> None:
    """ZooKeeper mode, before anything, and what may be missing."""
    testbed.reset()
    record(testbed, "zk", whole=True)
    broker_down(testbed, "zk_broker_down")
    with no_ssh(testbed, "b2"):
        record(testbed, "zk_no_ssh")
    testbed.on_each(testbed.brokers, "systemctl stop zookeeper")
    record(testbed, "zk_no_zookeeper")
    testbed.on_each(testbed.brokers, "systemctl start zookeeper")
    testbed.wait_in_sync()


def metadata(testbed: Testbed) -> None:
    """What preflight looks at beside the facts: ZooKeeper's metadata, running configurations, min.insync.replicas."""
    connections = testbed.connections()
    with testbed.zookeeper() as client:
        reported = zookeeper.metadata(client, timeout=10)
    found = topics.read(connections.bootstrap, connections.client, 5)
    asked = ("inter.broker.protocol.version",)
    running = {
        host: topics.broker_configs(connections.bootstrap, connections.client, int(one), 5)
        for host, one in zip(testbed.brokers, sorted(found["brokers"]))
    }
    keep(
        "zk_preflight",
        {
            "metadata": reported,
            "running": {host: {key: values[key] for key in asked} for host, values in running.items()},
            "min_isr": topics.min_isr(connections.bootstrap, connections.client, found["partitions"], 5),
        },
        whole=True,
    )


def hosts(testbed: Testbed) -> None:
    """What preflight looks at on the hosts, and what the tool's principal may do."""
    connections = testbed.connections()
    reported = ("service", "runs_with", "starts_with", "space", "asked", "time")
    nodes = looked_at(testbed)["nodes"]
    found = topics.read(connections.bootstrap, connections.client, 5)
    keep(
        "zk_hosts",
        {
            "nodes": {host: {key: node[key] for key in reported} for host, node in nodes.items()},
            "rights": topics.rights(connections.bootstrap, connections.client, sorted(found["partitions"])[:5], 5),
        },
        whole=True,
    )


def joining(testbed: Testbed) -> None:
    """Controllers one by one, brokers one by one, the copy held and let go."""
    testbed.play(extra={"quorumshift_canary": "nobody"})
    record(testbed, "controllers_ready")
    with stopped(testbed, "c3", "kafka-controller"):
        record(testbed, "controllers_starting_two")
    testbed.wait_listening("c3", 9093)
    broker_down(testbed, "controllers_ready_broker_down")
    testbed.play(kill_when=nth(1, " is up ("))
    record(testbed, "brokers_joining_1")
    testbed.wait_in_sync()
    broker_down(testbed, "brokers_joining_broker_down")
    testbed.play(kill_when=nth(1, " is up ("))
    testbed.wait_in_sync()
    record(testbed, "brokers_joining_2")
    testbed.on_each(testbed.controllers, "systemctl stop kafka-controller")
    record(testbed, "brokers_joining_controllers_down")
    testbed.on_each(testbed.controllers, "systemctl start kafka-controller")
    testbed.wait_listening("c1", 9093)
    time.sleep(5)
    copying(testbed)
    testbed.wait_in_sync()
    wait_for(lambda: _offset(testbed) > 0, 120, "the copy")


def copying(testbed: Testbed) -> None:
    """Stop every controller's process the moment KRaft has claimed /controller, before its copy is committed."""
    pids = [_pid_here(testbed, host, "controller.properties") for host in testbed.controllers]
    locked = threading.Event()

    def hold() -> None:
        with testbed.zookeeper() as client:
            deadline = time.monotonic() + 300
            while time.monotonic() < deadline:
                with contextlib.suppress(NoNodeError):
                    if json.loads(client.get("/controller")[0]).get("kraftControllerEpoch", -1) > 0:
                        for pid in pids:
                            os.kill(pid, signal.SIGSTOP)
                        locked.set()
                        return
                time.sleep(0.002)

    watcher = threading.Thread(target=hold)
    watcher.start()
    roll = threading.Thread(target=lambda: testbed.play(kill_when=nth(1, "Compare the copy"), timeout=150))
    roll.start()
    try:
        if locked.wait(300):
            time.sleep(3)
            record(testbed, "copying")
    finally:
        for pid in pids:
            os.kill(pid, signal.SIGCONT)
        # After a pause that outlasts their sessions the one that copied ends with a fatal fault, and its successor
        # goes on without ZooKeeper; new processes begin the copy again.
        testbed.on_each(testbed.controllers, "systemctl restart kafka-controller")
    roll.join()
    watcher.join()


def _pid_here(testbed: Testbed, host: str, file: str) -> int:
    """The process id that a host's Kafka has on this machine, where it can be stopped without the way through ssh."""
    for entry in pathlib.Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if f"/etc/kafka/{file}" in (entry / "cmdline").read_text():
                reported = (entry / "root" / "etc" / "kafka" / file).read_text()
                if f"//{testbed.addresses[host]}:" in reported:
                    return int(entry.name)
    raise RuntimeError(f"no process of {host} runs {file} here")


def unwritable(testbed: Testbed) -> None:
    """A copy that cannot begin: KRaft has claimed /controller, and /migration takes no writes. The cluster does not
    come out of it by itself within two minutes once it takes them again: reset it."""
    with testbed.zookeeper() as client:
        client.set_acls("/migration", [make_acl("world", "anyone", read=True, admin=True)])
        testbed.play(kill_when=nth(1, " is up ("), timeout=150)
        wait_for(lambda: json.loads(client.get("/controller")[0]).get("kraftControllerEpoch", -1) > 0, 90, "the claim")
        time.sleep(5)
        record(testbed, "copying_held")


def copy(testbed: Testbed) -> None:
    """What the copy was judged from: ZooKeeper's metadata before and after it, and the transaction in the log."""
    found = pathlib.Path(testbed.variables["quorumshift_artifacts_dir"]).glob("*/*/copy-expected.json")
    before = json.loads(max(found, key=lambda path: path.stat().st_mtime).read_text())["counted"]
    after = initial_copy.counted(types.SimpleNamespace(connections=testbed.connections()))
    facts = json.loads(gzip.decompress((FACTS / "hybrid.json.gz").read_bytes()))
    log = phase.longest_log(phase.controllers(facts))
    keep("copy", {"before": before, "after": after, "transactions": log["zk_migration_transactions"]}, whole=True)


def rolling_kraft(testbed: Testbed) -> None:
    """Hybrid, the KRaft roll, dual-write."""
    record(testbed, "hybrid")
    copy(testbed)
    broker_down(testbed, "hybrid_broker_down")
    testbed.play(kill_when=nth(1, " is up ("))
    testbed.wait_in_sync()
    record(testbed, "hybrid_1_kraft")
    broker_down(testbed, "hybrid_1_kraft_broker_down")
    with no_ssh(testbed, "b3"):
        record(testbed, "hybrid_1_kraft_no_ssh")
    testbed.play()
    record(testbed, "dual_write")
    broker_down(testbed, "dual_write_broker_down")
    with stopped(testbed, "c2", "kafka-controller"):
        record(testbed, "dual_write_one_controller_down")
    testbed.wait_listening("c2", 9093)
    testbed.on_each(testbed.controllers, "systemctl stop kafka-controller")
    record(testbed, "dual_write_controllers_down")
    testbed.on_each(testbed.controllers, "systemctl start kafka-controller")
    for host in testbed.controllers:
        testbed.wait_listening(host, 9093)
    testbed.wait_in_sync()
    # a controller that starts while ZooKeeper is away ends after zookeeper.connection.timeout.ms; these have started
    testbed.on_each(testbed.brokers, "systemctl stop zookeeper")
    record(testbed, "dual_write_no_zookeeper")
    testbed.on_each(testbed.brokers, "systemctl start zookeeper")
    testbed.wait_in_sync()


MASK = (
    # `systemctl mask` refuses a unit whose file stands in /etc/systemd/system
    "cd /etc/systemd/system && systemctl stop kafka-controller && test -L kafka-controller.service || "
    "{ mv kafka-controller.service /root/ && ln -s /dev/null kafka-controller.service && systemctl daemon-reload; }"
)
UNMASK = (
    "cd /etc/systemd/system && rm kafka-controller.service && mv /root/kafka-controller.service . && "
    "systemctl daemon-reload"
)


def revert_brokers(testbed: Testbed) -> None:
    """Back from dual-write by hand, as Kafka's documentation has it: brokers to migration mode."""
    for host in testbed.brokers:
        _restore(testbed, host, "before-kraft")
    record(testbed, "revert_brokers_hybrid")


def revert_controllers(testbed: Testbed) -> None:
    """Controllers down and masked, ZooKeeper's controller back."""
    testbed.on_each(testbed.controllers, MASK)
    record(testbed, "reverting_controllers_down")
    with testbed.zookeeper() as client:
        epoch = int(client.get("/controller_epoch")[0])
        client.set("/controller_epoch", str(epoch + 20).encode())
        client.delete("/controller")
        wait_for(lambda: client.exists("/controller"), 30, "a ZooKeeper controller")
    record(testbed, "reverting_controller_elected")


def revert(testbed: Testbed) -> None:
    """The rest of the way back, with each step seen, and what may be left behind."""
    testbed.on_each(testbed.brokers, "systemctl stop zookeeper")
    record(testbed, "reverting_no_zookeeper")
    testbed.on_each(testbed.brokers, "systemctl start zookeeper")
    testbed.wait_in_sync()
    with testbed.zookeeper() as client:
        migration = client.get("/migration")[0]
        client.delete("/migration")
    record(testbed, "reverting_migration_gone")
    for host in testbed.brokers:
        _restore(testbed, host, "before-zk_migration")
        if host == testbed.brokers[0]:
            record(testbed, "reverting_1_plain")
    record(testbed, "reverting_brokers_plain")
    testbed.on_each(testbed.controllers, "rm -rf /var/lib/kafka/metadata/* /etc/kafka/controller.properties")
    record(testbed, "reverting_wiped")
    testbed.on_each(testbed.controllers, UNMASK)
    record(testbed, "reverted")
    with testbed.zookeeper() as client:
        client.create("/migration", migration)
    record(testbed, "migration_stale")
    with testbed.zookeeper() as client:
        client.set("/migration", b"{torn")
    record(testbed, "migration_malformed")
    with testbed.zookeeper() as client:
        client.delete("/migration")


def again(testbed: Testbed) -> None:
    """A second migration over the brokers' old metadata logs, up to a copy that cannot begin."""
    testbed.play(extra={"quorumshift_canary": "nobody"})
    testbed.on_each(("c2", "c3"), "systemctl stop kafka-controller")
    record(testbed, "controllers_starting_one")
    testbed.on_each(("c2", "c3"), "systemctl start kafka-controller")
    for host in testbed.controllers:
        testbed.wait_listening(host, 9093)
    testbed.play(kill_when=nth(1, " is up ("))
    testbed.wait_in_sync()
    record(testbed, "brokers_joining_again")
    testbed.play(kill_when=nth(1, " is up ("))
    testbed.wait_in_sync()
    unwritable(testbed)
    testbed.reset()


def finalizing(testbed: Testbed) -> None:
    """From wherever the cluster is to the finalized one, controller by controller."""
    ran = testbed.play()
    token = ran.text.split("quorumshift_finalize_token=")[-1].split()[0]
    soak = {"quorumshift_soak": "0s", "quorumshift_finalize_token": token}
    testbed.play(extra=soak, kill_when=nth(1, " is up ("))
    time.sleep(3)
    record(testbed, "finalizing_1")
    testbed.play(extra=soak, kill_when=nth(1, " is up ("))
    time.sleep(3)
    record(testbed, "finalizing_2")
    testbed.play(extra=soak)
    record(testbed, "finalized")
    broker_down(testbed, "finalized_broker_down")
    with stopped(testbed, "c1", "kafka-controller"):
        record(testbed, "finalized_one_controller_down")
    testbed.wait_listening("c1", 9093)
    testbed.on_each(testbed.brokers, "systemctl stop zookeeper")
    record(testbed, "finalized_no_zookeeper")


def native(_testbed: Testbed | None) -> None:
    """A cluster born in KRaft mode, on loopback."""
    with contextlib.ExitStack() as stack:
        home = stack.enter_context(servers.workdir("kraft_native"))
        address = servers.HostPort("127.0.0.1", servers.free_port())
        voters = f"101@{address}"
        controller = stack.enter_context(servers.kraft_controller(home, 101, address, voters))
        broker = stack.enter_context(servers.kraft_broker(home, 1, voters))
        connections = Connections.from_options({"bootstrap_servers": str(broker.address)})
        nodes = {}
        for host, role, one in (("b1", "broker", broker), ("c1", "controller", controller)):
            reported = node.facts(role, str(one.home / "server.properties"), "kafka", "key of the recording", "", "")
            nodes[host] = {**reported, "reached": True, "address": str(one.address), "host_address": "127.0.0.1"}
        text = json.dumps(cluster.collect(nodes, connections))
        keep("kraft_native", json.loads(text.replace(str(home), "/var/lib/kafka")), whole=True)


def _offset(testbed: Testbed) -> int:
    with testbed.zookeeper() as client:
        return json.loads(client.get("/migration")[0])["kraft_metadata_offset"]


def _restore(testbed: Testbed, host: str, which: str) -> None:
    testbed.run(
        host, f"cat {CONFIGS}/server.properties.{which} > /etc/kafka/server.properties; systemctl restart kafka"
    )
    testbed.wait_listening(host, 9092)
    testbed.wait_in_sync()


ACTS = {
    "plain": plain,
    "metadata": metadata,
    "hosts": hosts,
    "joining": joining,
    "rolling_kraft": rolling_kraft,
    "revert_brokers": revert_brokers,
    "revert_controllers": revert_controllers,
    "revert": revert,
    "again": again,
    "finalizing": finalizing,
    "native": native,
}


if __name__ == "__main__":
    if shutil.which("ssh") is None:
        sys.exit("ssh is missing")
    main(sys.argv[1:])
