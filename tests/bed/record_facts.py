# Copyright: (c) 2026, Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Record the facts of every phase from real runs on the bed, for the unit tests of the judgements.

    PYTHONPATH=.build:. python -m tests.bed.record_facts [ACT ...]

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

from ansible_collections.quorumshift.kafka.plugins.module_utils.judgements import phase
from ansible_collections.quorumshift.kafka.plugins.module_utils.probes import cluster, node, topics, zookeeper
from ansible_collections.quorumshift.kafka.plugins.module_utils.probes.cluster import Connections
from ansible_collections.quorumshift.kafka.plugins.modules import metadata_copy
from kazoo.exceptions import NoNodeError
from kazoo.security import make_acl

from tests.real import servers
from tools.bedside.bedside import ROOT, Bedside, nth, wait_for

FACTS = ROOT / "tests" / "unit" / "fixtures" / "facts"
CONFIGS = "/var/lib/quorumshift/*/configs"
# One topic of each replication factor, and the largest of Kafka's own; the whole list is in `zk` alone.
KEPT_TOPICS = 6


def main(names: list[str]) -> None:
    """Run the acts named, all by default."""
    bed = Bedside() if set(names) != {"native"} else None
    for name in names or list(ACTS):
        began = time.monotonic()
        print(f"act {name}", flush=True)
        ACTS[name](bed)
        print(f"act {name} took {time.monotonic() - began:.0f} s", flush=True)


def record(bed: Bedside, name: str, whole: bool = False) -> None:
    """Look at the cluster as `status` does and keep the facts as fixture `name`."""
    keep(name, looked_at(bed, name), whole)


def looked_at(bed: Bedside, name: str = "facts") -> dict:
    """The facts as `status` judges them."""
    with tempfile.TemporaryDirectory() as directory:
        told = {"quorumshift_evidence_dir": directory, "quorumshift_record": True}
        ran = bed.play("status", extra=told, timeout=300)
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
def stopped(bed: Bedside, host: str, service: str):
    """The service of a host, stopped for a while."""
    bed.run(host, f"systemctl stop {service}")
    try:
        yield
    finally:
        bed.run(host, f"systemctl start {service}")


@contextlib.contextmanager
def no_ssh(bed: Bedside, host: str):
    """A host that no longer takes connections to its sshd, while Kafka goes on."""
    mark = "-p tcp --dport 22 -j REJECT --reject-with tcp-reset"
    bed.run(host, f"(sleep 0.5; iptables -I INPUT {mark}; sleep 45; iptables -D INPUT {mark}) >/dev/null 2>&1 &")
    _forget_ssh(bed, host)
    time.sleep(1.5)
    try:
        yield
    finally:
        wait_for(lambda: bed.run(host, "echo up", check=False) == "up", 150, f"ssh to {host}")


def _forget_ssh(bed: Bedside, host: str) -> None:
    address = f"root@{bed.addresses[host]}"
    for path in ("~/.ssh/ansible", "~/.ansible/cp"):
        for socket in pathlib.Path(path).expanduser().glob("*"):
            if socket.is_socket():
                socket.unlink(missing_ok=True)
    subprocess.run(
        ["ssh", *bed.variables["ansible_ssh_common_args"].split(), "-O", "exit", address],
        capture_output=True,
        check=False,
    )


def broker_down(bed: Bedside, name: str) -> None:
    """Record with one broker down, and put it back."""
    with stopped(bed, "b2", "kafka"):
        record(bed, name)
    bed.wait_in_sync()


# The acts -------------------------------------------------------------------------------------------------------


def plain(bed: Bedside) -> None:
    """ZooKeeper mode, before anything, and what may be missing."""
    bed.reset()
    record(bed, "zk", whole=True)
    broker_down(bed, "zk_broker_down")
    with no_ssh(bed, "b2"):
        record(bed, "zk_no_ssh")
    bed.on_each(bed.brokers, "systemctl stop zookeeper")
    record(bed, "zk_no_zookeeper")
    bed.on_each(bed.brokers, "systemctl start zookeeper")
    bed.wait_in_sync()


def metadata(bed: Bedside) -> None:
    """What preflight looks at beside the facts: ZooKeeper's metadata, running configurations, min.insync.replicas."""
    connections = bed.connections()
    with bed.zookeeper() as client:
        told = zookeeper.metadata(client, timeout=10)
    found = topics.read(connections.bootstrap, connections.client, 5)
    asked = ("inter.broker.protocol.version",)
    running = {
        host: topics.broker_configs(connections.bootstrap, connections.client, int(one), 5)
        for host, one in zip(bed.brokers, sorted(found["brokers"]))
    }
    keep(
        "zk_preflight",
        {
            "metadata": told,
            "running": {host: {key: values[key] for key in asked} for host, values in running.items()},
            "min_isr": topics.min_isr(connections.bootstrap, connections.client, found["partitions"], 5),
        },
        whole=True,
    )


def hosts(bed: Bedside) -> None:
    """What preflight looks at on the hosts, and what the tool's principal may do."""
    connections = bed.connections()
    told = ("service", "runs_with", "starts_with", "space", "asked", "time")
    nodes = looked_at(bed)["nodes"]
    found = topics.read(connections.bootstrap, connections.client, 5)
    keep(
        "zk_hosts",
        {
            "nodes": {host: {key: node[key] for key in told} for host, node in nodes.items()},
            "rights": topics.rights(connections.bootstrap, connections.client, sorted(found["partitions"])[:5], 5),
        },
        whole=True,
    )


def joining(bed: Bedside) -> None:
    """Controllers one by one, brokers one by one, the copy held and let go."""
    bed.play(extra={"quorumshift_canary": "nobody"})
    record(bed, "controllers_ready")
    with stopped(bed, "c3", "kafka-controller"):
        record(bed, "controllers_starting_two")
    bed.wait_listening("c3", 9093)
    broker_down(bed, "controllers_ready_broker_down")
    bed.play(kill_when=nth(1, " is up ("))
    record(bed, "brokers_joining_1")
    bed.wait_in_sync()
    broker_down(bed, "brokers_joining_broker_down")
    bed.play(kill_when=nth(1, " is up ("))
    bed.wait_in_sync()
    record(bed, "brokers_joining_2")
    bed.on_each(bed.controllers, "systemctl stop kafka-controller")
    record(bed, "brokers_joining_controllers_down")
    bed.on_each(bed.controllers, "systemctl start kafka-controller")
    bed.wait_listening("c1", 9093)
    time.sleep(5)
    copying(bed)
    bed.wait_in_sync()
    wait_for(lambda: _offset(bed) > 0, 120, "the copy")


def copying(bed: Bedside) -> None:
    """Stop every controller's process the moment KRaft has claimed /controller, before its copy is committed."""
    pids = [_pid_here(bed, host, "controller.properties") for host in bed.controllers]
    claimed = threading.Event()

    def hold() -> None:
        with bed.zookeeper() as client:
            deadline = time.monotonic() + 300
            while time.monotonic() < deadline:
                with contextlib.suppress(NoNodeError):
                    if json.loads(client.get("/controller")[0]).get("kraftControllerEpoch", -1) > 0:
                        for pid in pids:
                            os.kill(pid, signal.SIGSTOP)
                        claimed.set()
                        return
                time.sleep(0.002)

    watcher = threading.Thread(target=hold)
    watcher.start()
    roll = threading.Thread(target=lambda: bed.play(kill_when=nth(1, "Compare the copy"), timeout=150))
    roll.start()
    try:
        if claimed.wait(300):
            time.sleep(3)
            record(bed, "copying")
    finally:
        for pid in pids:
            os.kill(pid, signal.SIGCONT)
        # After a pause that outlasts their sessions the one that copied ends with a fatal fault, and its successor
        # goes on without ZooKeeper; new processes begin the copy again.
        bed.on_each(bed.controllers, "systemctl restart kafka-controller")
    roll.join()
    watcher.join()


def _pid_here(bed: Bedside, host: str, file: str) -> int:
    """The process id that a host's Kafka has on this machine, where it can be stopped without the way through ssh."""
    for entry in pathlib.Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if f"/etc/kafka/{file}" in (entry / "cmdline").read_text():
                told = (entry / "root" / "etc" / "kafka" / file).read_text()
                if f"//{bed.addresses[host]}:" in told:
                    return int(entry.name)
    raise RuntimeError(f"no process of {host} runs {file} here")


def unwritable(bed: Bedside) -> None:
    """A copy that cannot begin: KRaft has claimed /controller, and /migration takes no writes. The cluster does not
    come out of it by itself within two minutes once it takes them again: reset it."""
    with bed.zookeeper() as client:
        client.set_acls("/migration", [make_acl("world", "anyone", read=True, admin=True)])
        bed.play(kill_when=nth(1, " is up ("), timeout=150)
        wait_for(lambda: json.loads(client.get("/controller")[0]).get("kraftControllerEpoch", -1) > 0, 90, "the claim")
        time.sleep(5)
        record(bed, "copying_held")


def copy(bed: Bedside) -> None:
    """What the copy was judged from: ZooKeeper's metadata before and after it, and the transaction in the log."""
    found = pathlib.Path(bed.variables["quorumshift_evidence_dir"]).glob("*/*/copy-expected.json")
    before = json.loads(max(found, key=lambda path: path.stat().st_mtime).read_text())["counted"]
    after = metadata_copy.counted(types.SimpleNamespace(connections=bed.connections()))
    facts = json.loads(gzip.decompress((FACTS / "hybrid.json.gz").read_bytes()))
    log = phase.longest_log(phase.controllers(facts))
    keep("copy", {"before": before, "after": after, "transactions": log["zk_migration_transactions"]}, whole=True)


def rolling_kraft(bed: Bedside) -> None:
    """Hybrid, the KRaft roll, dual-write."""
    record(bed, "hybrid")
    copy(bed)
    broker_down(bed, "hybrid_broker_down")
    bed.play(kill_when=nth(1, " is up ("))
    bed.wait_in_sync()
    record(bed, "hybrid_1_kraft")
    broker_down(bed, "hybrid_1_kraft_broker_down")
    with no_ssh(bed, "b3"):
        record(bed, "hybrid_1_kraft_no_ssh")
    bed.play()
    record(bed, "dual_write")
    broker_down(bed, "dual_write_broker_down")
    with stopped(bed, "c2", "kafka-controller"):
        record(bed, "dual_write_one_controller_down")
    bed.wait_listening("c2", 9093)
    bed.on_each(bed.controllers, "systemctl stop kafka-controller")
    record(bed, "dual_write_controllers_down")
    bed.on_each(bed.controllers, "systemctl start kafka-controller")
    for host in bed.controllers:
        bed.wait_listening(host, 9093)
    bed.wait_in_sync()
    # a controller that starts while ZooKeeper is away ends after zookeeper.connection.timeout.ms; these have started
    bed.on_each(bed.brokers, "systemctl stop zookeeper")
    record(bed, "dual_write_no_zookeeper")
    bed.on_each(bed.brokers, "systemctl start zookeeper")
    bed.wait_in_sync()


MASK = (
    # `systemctl mask` refuses a unit whose file stands in /etc/systemd/system
    "cd /etc/systemd/system && systemctl stop kafka-controller && test -L kafka-controller.service || "
    "{ mv kafka-controller.service /root/ && ln -s /dev/null kafka-controller.service && systemctl daemon-reload; }"
)
UNMASK = (
    "cd /etc/systemd/system && rm kafka-controller.service && mv /root/kafka-controller.service . && "
    "systemctl daemon-reload"
)


def revert_brokers(bed: Bedside) -> None:
    """Back from dual-write by hand, as Kafka's documentation has it: brokers to migration mode."""
    for host in bed.brokers:
        _restore(bed, host, "before-kraft")
    record(bed, "revert_brokers_hybrid")


def revert_controllers(bed: Bedside) -> None:
    """Controllers down and masked, ZooKeeper's controller back."""
    bed.on_each(bed.controllers, MASK)
    record(bed, "reverting_controllers_down")
    with bed.zookeeper() as client:
        epoch = int(client.get("/controller_epoch")[0])
        client.set("/controller_epoch", str(epoch + 20).encode())
        client.delete("/controller")
        wait_for(lambda: client.exists("/controller"), 30, "a ZooKeeper controller")
    record(bed, "reverting_controller_elected")


def revert(bed: Bedside) -> None:
    """The rest of the way back, with each step seen, and what may be left behind."""
    bed.on_each(bed.brokers, "systemctl stop zookeeper")
    record(bed, "reverting_no_zookeeper")
    bed.on_each(bed.brokers, "systemctl start zookeeper")
    bed.wait_in_sync()
    with bed.zookeeper() as client:
        migration = client.get("/migration")[0]
        client.delete("/migration")
    record(bed, "reverting_migration_gone")
    for host in bed.brokers:
        _restore(bed, host, "before-zk_migration")
        if host == bed.brokers[0]:
            record(bed, "reverting_1_plain")
    record(bed, "reverting_brokers_plain")
    bed.on_each(bed.controllers, "rm -rf /var/lib/kafka/metadata/* /etc/kafka/controller.properties")
    record(bed, "reverting_wiped")
    bed.on_each(bed.controllers, UNMASK)
    record(bed, "reverted")
    with bed.zookeeper() as client:
        client.create("/migration", migration)
    record(bed, "migration_stale")
    with bed.zookeeper() as client:
        client.set("/migration", b"{torn")
    record(bed, "migration_malformed")
    with bed.zookeeper() as client:
        client.delete("/migration")


def again(bed: Bedside) -> None:
    """A second migration over the brokers' old metadata logs, up to a copy that cannot begin."""
    bed.play(extra={"quorumshift_canary": "nobody"})
    bed.on_each(("c2", "c3"), "systemctl stop kafka-controller")
    record(bed, "controllers_starting_one")
    bed.on_each(("c2", "c3"), "systemctl start kafka-controller")
    for host in bed.controllers:
        bed.wait_listening(host, 9093)
    bed.play(kill_when=nth(1, " is up ("))
    bed.wait_in_sync()
    record(bed, "brokers_joining_again")
    bed.play(kill_when=nth(1, " is up ("))
    bed.wait_in_sync()
    unwritable(bed)
    bed.reset()


def finalizing(bed: Bedside) -> None:
    """From wherever the cluster is to the finalized one, controller by controller."""
    ran = bed.play()
    word = ran.text.split("quorumshift_finalize=")[-1].split()[0]
    soak = {"quorumshift_soak": "0s", "quorumshift_finalize": word}
    bed.play(extra=soak, kill_when=nth(1, " is up ("))
    time.sleep(3)
    record(bed, "finalizing_1")
    bed.play(extra=soak, kill_when=nth(1, " is up ("))
    time.sleep(3)
    record(bed, "finalizing_2")
    bed.play(extra=soak)
    record(bed, "finalized")
    broker_down(bed, "finalized_broker_down")
    with stopped(bed, "c1", "kafka-controller"):
        record(bed, "finalized_one_controller_down")
    bed.wait_listening("c1", 9093)
    bed.on_each(bed.brokers, "systemctl stop zookeeper")
    record(bed, "finalized_no_zookeeper")


def native(_bed: Bedside | None) -> None:
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
            told = node.facts(role, str(one.home / "server.properties"), "kafka", "key of the recording", "", "")
            nodes[host] = {**told, "reached": True, "address": str(one.address), "host_address": "127.0.0.1"}
        text = json.dumps(cluster.collect(nodes, connections))
        keep("kraft_native", json.loads(text.replace(str(home), "/var/lib/kafka")), whole=True)


def _offset(bed: Bedside) -> int:
    with bed.zookeeper() as client:
        return json.loads(client.get("/migration")[0])["kraft_metadata_offset"]


def _restore(bed: Bedside, host: str, which: str) -> None:
    bed.run(host, f"cat {CONFIGS}/server.properties.{which} > /etc/kafka/server.properties; systemctl restart kafka")
    bed.wait_listening(host, 9092)
    bed.wait_in_sync()


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
