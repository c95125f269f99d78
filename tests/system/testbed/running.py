# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The running testbed for tests and drills: commands on hosts, Kafka and ZooKeeper clients, playbook runs."""

from __future__ import annotations

import contextlib
import json
import os
import pathlib
import re
import shlex
import signal
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Callable, Iterable, Iterator, Mapping, NamedTuple, Sequence

import yaml
from ansible_collections.quorumshift.kafka.plugins.module_utils.host import host_state
from ansible_collections.quorumshift.kafka.plugins.module_utils.probes.cluster import topics
from ansible_collections.quorumshift.kafka.plugins.module_utils.probes.cluster.cluster import Connections
from ansible_collections.quorumshift.kafka.plugins.module_utils.probes.zookeeper.zookeeper import read_tree
from ansible_collections.quorumshift.kafka.plugins.module_utils.secrets.security import ZkSecurity
from ansible_collections.quorumshift.kafka.plugins.module_utils.wire import kafka_wire
from confluent_kafka import Producer
from confluent_kafka.admin import (
    AclBinding,
    AclOperation,
    AclPermissionType,
    AdminClient,
    ResourcePatternType,
    ResourceType,
)
from kazoo.client import KazooClient

from tests.system import testbed
from tests.system.testbed import control_process, security, ssh
from tests.system.testbed.inventory import TestbedInventory
from tests.system.testbed.layout import INVENTORY, ROOT, STATE
from tests.system.testbed.waiting import wait_for

LOG = STATE / "plays.log"
DEFAULTS = yaml.safe_load((ROOT / "roles" / "quorumshift" / "defaults" / "main.yml").read_text(encoding="utf-8"))
KEPT = ROOT / "build" / "test" / "hosts"
# a pid namespace as in another container: neither side sees the other's processes
ELSEWHERE = ("unshare", "--fork", "--pid", "--mount-proc")
LOCKED = (host_state.LOCK, host_state.RUN_LOCK, host_state.JOURNAL)
FAST = {
    "quorumshift_stable_s": 1,
    "quorumshift_gate_timeout_s": 60,
    "quorumshift_roll_timeout_s": 120,
    "quorumshift_verify": False,  # has tests of its own
}


class Ran(NamedTuple):
    """A run of a playbook that ended or was killed: exit code, output, seconds."""

    code: int
    text: str
    seconds: float

    def recap(self, host: str) -> dict[str, int]:
        """Return the host's counts in the play recap, {} if it is missing there."""
        line = re.search(rf"^{re.escape(host)}\s+: (.*)$", self.text, re.MULTILINE)
        return {key: int(value) for key, value in re.findall(r"(\w+)=(\d+)", line.group(1))} if line else {}


class Testbed:
    """This checkout's testbed: its inventory's hosts and what runs on them."""

    def __init__(self) -> None:
        self.control_process: dict[str, str] = {}  # the mark of the newest run
        self.inventory = TestbedInventory()
        self.variables, self.groups = self.inventory.vars, self.inventory.groups
        self.addresses = self.inventory.hosts

    @property
    def brokers(self) -> list[str]:
        return self.groups["kafka_broker"]

    @property
    def controllers(self) -> list[str]:
        return self.groups["kafka_controller"]

    def variable(self, name: str, host: str) -> str:
        """Return a host's variable `quorumshift_NAME`: its own, its group's, all hosts', or the default."""
        key = f"quorumshift_{name}"
        return {**DEFAULTS, **self.variables, **self.inventory.own[host]}[key]

    def reset(self) -> None:
        """Reset the testbed to a freshly seeded cluster."""
        testbed.manage("reset", 600)

    # Hosts ------------------------------------------------------------------------------------------------------

    def ssh(self, host: str, command: str) -> list[str]:
        """Return the argv that runs a shell command on a host."""
        return self.inventory.ssh(host, command)

    def run(self, host: str, command: str, check: bool = True, timeout: float = 180) -> str:
        """Run a shell command on a host; return its output. Raise ssh.HostError with the output if it fails."""
        return self.inventory.run(host, command, check=check, timeout_s=timeout)

    def send(self, host: str, files: Iterable[pathlib.Path], directory: str) -> None:
        """Copy files of this machine into a directory of a host."""
        target = f"root@{self.addresses[host]}:{directory}"
        subprocess.run(
            ["scp", "-q", *ssh.options(), *map(str, files), target],
            stdin=subprocess.DEVNULL,
            check=True,
            timeout=180,
        )

    def on_each(self, hosts: Sequence[str], command: str) -> list[str]:
        """Run a shell command on several hosts in parallel; return the outputs."""
        with ThreadPoolExecutor(max_workers=len(hosts)) as pool:
            return list(pool.map(lambda host: self.run(host, command), hosts))

    def fingerprint(self, hosts: Sequence[str] | None = None, locked: bool = False) -> dict[str, str]:
        """Return what a refused run must not change.

        By host its Kafka files, main processes and state directory; by path each znode's mzxid and ACL version.
        `locked`: without the files of the run lock.
        """
        hosts = list(hosts or self.addresses)
        left = " ".join(f"! -name {name}" for name in LOCKED) if locked else ""
        command = (
            f"find /etc/kafka /var/lib/quorumshift -type f {left} 2>/dev/null | sort | xargs -r sha256sum; "
            "ls /var/lib/kafka/metadata 2>/dev/null; "
            "systemctl show kafka kafka-controller zookeeper -p Id,MainPID,ActiveState,NRestarts"
        )
        state = dict(zip(hosts, self.on_each(hosts, command)))
        with self.zookeeper() as client:
            state.update({node.path: f"{node.stat.mzxid} {node.stat.aversion}" for node in read_tree(client)})
        return state

    # Cluster ----------------------------------------------------------------------------------------------------

    @contextlib.contextmanager
    def zookeeper(self) -> Iterator[KazooClient]:
        """Connect to ZooKeeper, in the cluster's chroot."""
        security = ZkSecurity.from_options(self.variables.get("quorumshift_zookeeper_client"))
        servers = self.variables["quorumshift_zookeeper_connect"]
        client = KazooClient(hosts=servers, timeout=10, **security.kazoo())
        client.start(timeout=20)
        try:
            yield client
        finally:
            client.stop()
            client.close()

    def connections(self) -> Connections:
        """Return the connections that the collection uses."""
        names = ("bootstrap_servers", "zookeeper_connect", "client", "controller_client", "zookeeper_client")
        return Connections.from_options({name: self.variables.get(f"quorumshift_{name}") for name in names})

    def node_id(self, host: str) -> int:
        """Return the node's `node.id` or `broker.id` from its properties file."""
        role = "controller" if host in self.controllers else "broker"
        file = self.variable(f"{role}_config_file", host)
        return int(self.run(host, f"sed -n 's/^\\(node\\|broker\\)\\.id *= *//p' {file}"))

    def admin(self) -> AdminClient:
        """Return an admin client with the operator's rights."""
        return AdminClient(self.inventory.librdkafka())

    def producer(self) -> Producer:
        """Return a producer with the operator's rights."""
        return Producer(self.inventory.librdkafka(acks="all"))

    def grant_rights(self) -> None:
        """Grant what the secured testbed lacks, and the docs name: ClusterAction to the controllers' principal, as the
        preflight demands, and the least rights to a tool that is no super user (docs/least-rights.md)."""
        # librdkafka's name for the cluster; its enum of resources has no delegation tokens
        controller = self.variables["quorumshift_controller_principal"]
        granted = [("BROKER", "kafka-cluster", controller, "CLUSTER_ACTION")] if security.is_restricted() else []
        for principal in security.tool_principals():
            granted += [
                (kind, name, principal, operation)
                for kind, name in (("BROKER", "kafka-cluster"), ("TOPIC", "*"))
                for operation in ("DESCRIBE", "DESCRIBE_CONFIGS")
            ]
            self._grant_tokens(principal)
        bindings = [
            AclBinding(
                ResourceType[kind],
                name,
                ResourcePatternType.LITERAL,
                principal,
                "*",
                AclOperation[operation],
                AclPermissionType.ALLOW,
            )
            for kind, name, principal, operation in granted
        ]
        admin = self.admin()  # referenced until the answer: its deletion cancels the request
        for future in (admin.create_acls(bindings) if bindings else {}).values():
            future.result(30)

    def _grant_tokens(self, principal: str) -> None:
        """Grant Describe on all delegation tokens, as an operator does on a broker's host."""
        host, secrets = self.brokers[0], json.loads((STATE / "secrets.json").read_text(encoding="utf-8"))
        module = "org.apache.kafka.common.security.scram.ScramLoginModule"
        settings = (
            "security.protocol=SASL_SSL\nsasl.mechanism=SCRAM-SHA-512\n"
            f'sasl.jaas.config={module} required username="quorumshift" password="{secrets["quorumshift"]}";\n'
            "ssl.truststore.type=PKCS12\nssl.truststore.location=/etc/kafka/ssl/truststore.p12\n"
            f"ssl.truststore.password={secrets['keystore']}\n"
        )
        server = self.variables["quorumshift_bootstrap_servers"].split(",")[0]
        grant = f"--add --allow-principal {shlex.quote(principal)} --operation Describe --delegation-token '*'"
        command = f"/opt/kafka/bin/kafka-acls.sh --bootstrap-server {server} --command-config /dev/stdin {grant}"
        subprocess.run(self.ssh(host, command), input=settings, text=True, check=True, capture_output=True, timeout=120)

    def wait_in_sync(self, seconds: float = 120) -> None:
        """Wait until every broker is alive and every partition has all its replicas in sync."""
        connections = self.connections()

        def in_sync() -> bool:
            read = topics.read(connections.bootstrap, connections.client, 5)
            partitions = [partition for topic in read.get("partitions", {}).values() for partition in topic.values()]
            full = all(
                partition["leader"] >= 0 and len(partition["isr"]) == len(partition["replicas"])
                for partition in partitions
            )
            return bool(partitions) and full and len(read["brokers"]) == len(self.brokers)

        wait_for(in_sync, seconds, "every partition in sync")

    def wait_listening(self, host: str, port: int, security=None, seconds: float = 90) -> None:
        """Wait until a listener of the host answers ApiVersions."""
        address = kafka_wire.HostPort(self.addresses[host], port)

        def answers() -> bool:
            try:
                return bool(kafka_wire.api_versions(address, security, 2))
            except kafka_wire.WireError:
                return False

        wait_for(answers, seconds, f"{host}:{port} to answer")

    # Playbooks --------------------------------------------------------------------------------------------------

    def play(
        self,
        name: str = "migrate",
        *options: str,
        extra: Mapping[str, object] | None = None,
        kill_when: Callable[[str], bool] | None = None,
        inventory: pathlib.Path | None = None,
        under: Sequence[str] = (),
        timeout: float = 900,
    ) -> Ran:
        """Run playbooks/NAME.yml; with `kill_when`, SIGKILL it and its children at the first line for which it is true.

        `control_process` is its mark meanwhile. `under`: a command that runs it, for example in another pid namespace.
        """
        command = [
            *under,
            str(pathlib.Path(sys.executable).parent / "ansible-playbook"),
            "-i",
            str(inventory or INVENTORY),
            *options,
            "-e",
            json.dumps({**FAST, **(extra or {})}),
            str(pathlib.Path("playbooks", f"{name}.yml")),
        ]
        marked = self.control_process = control_process.mark()
        environment = {**os.environ, **marked, "ANSIBLE_NOCOLOR": "1", "PYTHONUNBUFFERED": "1", "LC_ALL": "C.UTF-8"}
        began = time.monotonic()
        process = subprocess.Popen(
            command,
            cwd=ROOT,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )
        limit = threading.Timer(timeout, os.killpg, (process.pid, signal.SIGKILL))
        limit.start()
        lines = []
        try:
            for line in process.stdout:
                lines.append(line)
                if kill_when and kill_when(line):
                    control_process.kill(marked)
                    os.killpg(process.pid, signal.SIGKILL)
                    break
            process.wait()
        finally:
            limit.cancel()
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
        ran = Ran(process.returncode, "".join(lines), time.monotonic() - began)
        self._log(command, ran)
        return ran

    def ad_hoc(self, hosts: str, module: str, **options: object) -> None:
        """Run one module of the collection on a group of hosts. Raise RuntimeError if it fails."""
        tool = pathlib.Path(sys.executable).parent / "ansible"
        given = ["-i", str(INVENTORY), "-m", f"quorumshift.kafka.{module}", "-a", json.dumps(options)]
        command, began = [str(tool), hosts, *given], time.monotonic()
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=300, check=False)
        self._log(command, Ran(done.returncode, done.stdout + done.stderr, time.monotonic() - began))
        if done.returncode:
            raise RuntimeError(f"{module} on {hosts} ended with {done.returncode}: {done.stdout}{done.stderr}")

    @staticmethod
    def _log(command: Sequence[str], ran: Ran) -> None:
        with open(LOG, "a", encoding="utf-8") as log:
            log.write(f"$ {shlex.join(command)}\n{ran.text}ended with {ran.code} after {ran.seconds:.1f} s\n\n")
