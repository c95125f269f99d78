# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Record the facts of every phase from real runs on the testbed, for the unit tests of `core`.

    PYTHONPATH=.build:. python -m tests.system.e2e.record_facts [ACT ...]

Each act starts from a reset testbed or from the end of the act before. It writes
`tests/unit/fixtures/facts/NAME.json.gz` for each state that it reaches. Without arguments all acts run, in order.
Secrets are sealed under a key of the recording run, which is not kept.
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

from ansible_collections.quorumshift.kafka.plugins.module_utils.core.migration import phase
from ansible_collections.quorumshift.kafka.plugins.module_utils.probes.cluster import cluster, topics
from ansible_collections.quorumshift.kafka.plugins.module_utils.probes.cluster.cluster import Connections
from ansible_collections.quorumshift.kafka.plugins.module_utils.probes.node import node
from ansible_collections.quorumshift.kafka.plugins.module_utils.probes.zookeeper import zookeeper
from ansible_collections.quorumshift.kafka.plugins.modules import initial_copy
from kazoo.exceptions import NoNodeError
from kazoo.security import make_acl

from tests.integration import servers
from tests.system.testbed import ssh
from tests.system.testbed.layout import ROOT
from tests.system.testbed.running import Testbed
from tests.system.testbed.waiting import nth, wait_for

FACTS = ROOT / "tests" / "unit" / "fixtures" / "facts"
CONFIGS = "/var/lib/quorumshift/*/*/configs"
# One topic of each replication factor and the first ones by name; only the fixture `zk` has all topics.
KEPT_TOPICS = 6


def main(names: list[str]) -> None:
    """Run the named acts, all by default."""
    testbed = Testbed() if set(names) != {"native"} else None
    for name in names or list(ACTS):
        began = time.monotonic()
        print(f"act {name}", flush=True)
        ACTS[name](testbed)
        print(f"act {name} took {time.monotonic() - began:.0f} s", flush=True)


def record(testbed: Testbed, name: str, all_topics: bool = False) -> None:
    """Gather facts as `status` does and save them as fixture `name`."""
    save(name, gather(testbed, name), all_topics)


def gather(testbed: Testbed, name: str = "facts") -> dict:
    """Return the facts that `status` gathers."""
    with tempfile.TemporaryDirectory() as directory:
        extra = {"quorumshift_artifacts_dir": directory, "quorumshift_record": True}
        ran = testbed.play("status", extra=extra, timeout=300)
        files = sorted(pathlib.Path(directory).glob("*/*/facts-*.json"))
        if not files:
            raise RuntimeError(f"status saved no facts (code {ran.code}):\n{ran.text}")
        print(f"  {name}: {files[-1].stem.split('-', 2)[2]} ({ran.seconds:.1f} s)", flush=True)
        return json.loads(files[-1].read_text())


def save(name: str, facts: dict, all_topics: bool = False) -> None:
    """Write the fixture with a few topics; equal facts give equal bytes."""
    if not all_topics and facts["topics"].get("reached"):
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
    """Stop a host's service; start it at the end."""
    testbed.run(host, f"systemctl stop {service}")
    try:
        yield
    finally:
        testbed.run(host, f"systemctl start {service}")


@contextlib.contextmanager
def no_ssh(testbed: Testbed, host: str):
    """Reject connections to the host's sshd for 45 s, while Kafka runs."""
    rule = "-p tcp --dport 22 -j REJECT --reject-with tcp-reset"
    testbed.run(host, f"(sleep 0.5; iptables -I INPUT {rule}; sleep 45; iptables -D INPUT {rule}) >/dev/null 2>&1 &")
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
        ["ssh", *ssh.options(), "-O", "exit", address],
        capture_output=True,
        check=False,
    )


def record_broker_down(testbed: Testbed, name: str) -> None:
    """Record with one broker down, then start it."""
    with stopped(testbed, "b2", "kafka"):
        record(testbed, name)
    testbed.wait_in_sync()


# The acts -------------------------------------------------------------------------------------------------------


def plain(testbed: Testbed) -> None:
    """ZooKeeper mode before a migration: healthy, then with a broker, SSH or ZooKeeper down."""
    testbed.reset()
    record(testbed, "zk", all_topics=True)
    record_broker_down(testbed, "zk_broker_down")
    with no_ssh(testbed, "b2"):
        record(testbed, "zk_no_ssh")
    testbed.on_each(testbed.brokers, "systemctl stop zookeeper")
    record(testbed, "zk_no_zookeeper")
    testbed.on_each(testbed.brokers, "systemctl start zookeeper")
    testbed.wait_in_sync()


def metadata(testbed: Testbed) -> None:
    """The preflight's other inputs: ZooKeeper's metadata, running configs, min.insync.replicas."""
    connections = testbed.connections()
    with testbed.zookeeper() as client:
        zk_metadata = zookeeper.read_metadata(client, timeout=10)
    served = topics.read(connections.bootstrap, connections.client, 5)
    keys = ("inter.broker.protocol.version",)
    running = {
        host: topics.read_broker_configs(connections.bootstrap, connections.client, int(broker_id), 5)
        for host, broker_id in zip(testbed.brokers, sorted(served["brokers"]))
    }
    save(
        "zk_preflight",
        {
            "metadata": zk_metadata,
            "running": {host: {key: values[key] for key in keys} for host, values in running.items()},
            "min_isr": topics.read_min_isr(connections.bootstrap, connections.client, served["partitions"], 5),
        },
        all_topics=True,
    )


def hosts(testbed: Testbed) -> None:
    """The preflight's facts of the hosts, and the rights of the tool's principal."""
    connections = testbed.connections()
    keys = ("service", "runs_with", "starts_with", "space", "asked", "time")
    nodes = gather(testbed)["nodes"]
    served = topics.read(connections.bootstrap, connections.client, 5)
    save(
        "zk_hosts",
        {
            "nodes": {host: {key: node[key] for key in keys} for host, node in nodes.items()},
            "rights": topics.read_rights(
                connections.bootstrap, connections.client, sorted(served["partitions"])[:5], 5
            ),
        },
        all_topics=True,
    )


def joining(testbed: Testbed) -> None:
    """Controllers, then brokers in migration mode one by one, then the initial copy, paused once."""
    testbed.play(extra={"quorumshift_canary": "localhost"})
    record(testbed, "controllers_ready")
    with stopped(testbed, "c3", "kafka-controller"):
        record(testbed, "controllers_starting_two")
    testbed.wait_listening("c3", 9093)
    record_broker_down(testbed, "controllers_ready_broker_down")
    testbed.play(kill_when=nth(1, " is up ("))
    record(testbed, "brokers_joining_1")
    testbed.wait_in_sync()
    record_broker_down(testbed, "brokers_joining_broker_down")
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
    wait_for(lambda: _offset(testbed) > 0, 120, "the initial copy")


def copying(testbed: Testbed) -> None:
    """Pause every controller when KRaft takes over /controller, before the initial copy is committed."""
    pids = [_local_pid(testbed, host, "controller.properties") for host in testbed.controllers]
    paused = threading.Event()

    def pause() -> None:
        with testbed.zookeeper() as client:
            deadline = time.monotonic() + 300
            while time.monotonic() < deadline:
                with contextlib.suppress(NoNodeError):
                    if json.loads(client.get("/controller")[0]).get("kraftControllerEpoch", -1) > 0:
                        for pid in pids:
                            os.kill(pid, signal.SIGSTOP)
                        paused.set()
                        return
                time.sleep(0.002)

    watcher = threading.Thread(target=pause)
    watcher.start()
    roll = threading.Thread(target=lambda: testbed.play(kill_when=nth(1, "Compare the initial copy"), timeout=150))
    roll.start()
    try:
        if paused.wait(300):
            time.sleep(3)
            record(testbed, "copying")
    finally:
        for pid in pids:
            os.kill(pid, signal.SIGCONT)
        # The pause outlasts their ZooKeeper sessions: the copying controller fails, and its successor runs without
        # ZooKeeper. New processes begin the copy again.
        testbed.on_each(testbed.controllers, "systemctl restart kafka-controller")
    roll.join()
    watcher.join()


def _local_pid(testbed: Testbed, host: str, file: str) -> int:
    """Return the pid of a host's Kafka process on this machine, which can be paused without ssh."""
    for entry in pathlib.Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if f"/etc/kafka/{file}" in (entry / "cmdline").read_text():
                properties = (entry / "root" / "etc" / "kafka" / file).read_text()
                if f"//{testbed.addresses[host]}:" in properties:
                    return int(entry.name)
    raise RuntimeError(f"this machine has no process of {host} with {file}")


def unwritable(testbed: Testbed) -> None:
    """An initial copy that cannot begin: KRaft has taken over /controller, and /migration rejects writes.

    The cluster does not recover within two minutes after writes are allowed again: reset it.
    """
    with testbed.zookeeper() as client:
        client.set_acls("/migration", [make_acl("world", "anyone", read=True, admin=True)])
        testbed.play(kill_when=nth(1, " is up ("), timeout=150)
        wait_for(lambda: json.loads(client.get("/controller")[0]).get("kraftControllerEpoch", -1) > 0, 90, "KRaft")
        time.sleep(5)
        record(testbed, "copying_held")


def copy(testbed: Testbed) -> None:
    """The inputs of the copy's comparison: counts of ZooKeeper's metadata before and after it, and the transaction."""
    files = pathlib.Path(testbed.variables["quorumshift_artifacts_dir"]).glob("*/*/copy-expected.json")
    before = json.loads(max(files, key=lambda path: path.stat().st_mtime).read_text())["counted"]
    after = initial_copy.count_records(types.SimpleNamespace(connections=testbed.connections()))
    facts = json.loads(gzip.decompress((FACTS / "hybrid.json.gz").read_bytes()))
    log = phase.longest_log(phase.controllers(facts))
    save("copy", {"before": before, "after": after, "transactions": log["zk_migration_transactions"]}, all_topics=True)


def rolling_kraft(testbed: Testbed) -> None:
    """Hybrid, the restarts in KRaft mode, dual-write."""
    record(testbed, "hybrid")
    copy(testbed)
    record_broker_down(testbed, "hybrid_broker_down")
    testbed.play(kill_when=nth(1, " is up ("))
    testbed.wait_in_sync()
    record(testbed, "hybrid_1_kraft")
    record_broker_down(testbed, "hybrid_1_kraft_broker_down")
    with no_ssh(testbed, "b3"):
        record(testbed, "hybrid_1_kraft_no_ssh")
    testbed.play()
    record(testbed, "dual_write")
    record_broker_down(testbed, "dual_write_broker_down")
    with stopped(testbed, "c2", "kafka-controller"):
        record(testbed, "dual_write_one_controller_down")
    testbed.wait_listening("c2", 9093)
    testbed.on_each(testbed.controllers, "systemctl stop kafka-controller")
    record(testbed, "dual_write_controllers_down")
    testbed.on_each(testbed.controllers, "systemctl start kafka-controller")
    for host in testbed.controllers:
        testbed.wait_listening(host, 9093)
    testbed.wait_in_sync()
    # only after the controllers started: one that starts without ZooKeeper exits after zookeeper.connection.timeout.ms
    testbed.on_each(testbed.brokers, "systemctl stop zookeeper")
    record(testbed, "dual_write_no_zookeeper")
    testbed.on_each(testbed.brokers, "systemctl start zookeeper")
    testbed.wait_in_sync()


MASK = (
    # `systemctl mask` rejects a unit whose file is in /etc/systemd/system
    "cd /etc/systemd/system && systemctl stop kafka-controller && test -L kafka-controller.service || "
    "{ mv kafka-controller.service /root/ && ln -s /dev/null kafka-controller.service && systemctl daemon-reload; }"
)
UNMASK = (
    "cd /etc/systemd/system && rm kafka-controller.service && mv /root/kafka-controller.service . && "
    "systemctl daemon-reload"
)


def revert_brokers(testbed: Testbed) -> None:
    """Revert brokers from dual-write to migration mode by hand, as in Kafka's documentation."""
    for host in testbed.brokers:
        _restore(testbed, host, "before-kraft")
    record(testbed, "revert_brokers_hybrid")


def revert_controllers(testbed: Testbed) -> None:
    """Stop and mask the controllers; let brokers elect ZooKeeper's controller."""
    testbed.on_each(testbed.controllers, MASK)
    record(testbed, "reverting_controllers_down")
    with testbed.zookeeper() as client:
        epoch = int(client.get("/controller_epoch")[0])
        client.set("/controller_epoch", str(epoch + 20).encode())
        client.delete("/controller")
        wait_for(lambda: client.exists("/controller"), 30, "a ZooKeeper controller")
    record(testbed, "reverting_controller_elected")


def revert(testbed: Testbed) -> None:
    """The other steps of the rollback, then stale and malformed values of /migration."""
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
    """A second migration over the brokers' old metadata logs, up to an initial copy that cannot begin."""
    testbed.play(extra={"quorumshift_canary": "localhost"})
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
    """From any phase to finalized, controller by controller."""
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
    record_broker_down(testbed, "finalized_broker_down")
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
        for host, role, server in (("b1", "broker", broker), ("c1", "controller", controller)):
            facts = node.collect(role, str(server.home / "server.properties"), "kafka", "key of the recording", "", "")
            nodes[host] = {**facts, "reached": True, "address": str(server.address), "host_address": "127.0.0.1"}
        text = json.dumps(cluster.collect(nodes, connections))
        save("kraft_native", json.loads(text.replace(str(home), "/var/lib/kafka")), all_topics=True)


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
