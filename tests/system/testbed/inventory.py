# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The testbed's Ansible inventory: written, and read for its hosts and client settings."""

from __future__ import annotations

import contextlib
import json
import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import yaml

from tests.system.testbed import podman, security, ssh
from tests.system.testbed.layout import (
    ARTIFACTS,
    BROKERS,
    CA_CERTIFICATE,
    CONTROLLERS,
    DESTINATIONS,
    HAS_IPV6,
    HAS_SUDO,
    INVENTORY,
    LAYOUT,
    LOGIN,
    REHEARSALS,
    SSH_KEY,
    STATE,
    TESTBED,
    ZOOKEEPERS,
    Host,
    Network,
    renamed,
)

CLIENTS_RATE = 200  # messages per second: enough to time a stall of a partition to a tenth of a second


class TestbedInventory:
    """The testbed's inventory: hosts with their addresses and variables, and how clients connect."""

    def __init__(self) -> None:
        tree = yaml.safe_load(INVENTORY.read_text(encoding="utf-8"))["all"]
        self.vars: dict[str, Any] = tree["vars"]
        groups = {name: group["hosts"] for name, group in tree["children"].items()}
        self.groups = {name: sorted(hosts) for name, hosts in groups.items()}
        nodes = [group for name, group in tree["children"].items() if name != "zookeeper"]
        self.own = {host: {**group.get("vars", {}), **own} for group in nodes for host, own in group["hosts"].items()}
        self.brokers = {host: variables["ansible_host"] for host, variables in groups["kafka_broker"].items()}
        controllers = groups.get("kafka_controller", {})
        self.controllers = {host: variables["ansible_host"] for host, variables in controllers.items()}
        self.controller_ids = {variables["quorumshift_node_id"]: host for host, variables in controllers.items()}
        of_ensembles = {**groups.get("zookeeper_source", {}), **groups.get("zookeeper_destination", {})}
        self.rehearsals = {host: own["ansible_host"] for host, own in groups.get("kafka_rehearsal", {}).items()}
        self.ensembles = {host: variables["ansible_host"] for host, variables in of_ensembles.items()}
        self.zookeeper_connect: str = self.vars["quorumshift_zookeeper_connect"]
        self.artifacts_dir = Path(self.vars["quorumshift_artifacts_dir"])

    @property
    def hosts(self) -> dict[str, str]:
        return {**self.brokers, **self.controllers, **self.ensembles, **self.rehearsals}

    def ssh(self, host: str, *command: str, own: bool = False) -> list[str]:
        """Return the argv that runs a command on a host; `own`: over a new connection, not a shared one."""
        return ssh.argv(self.hosts[host], *command, own=own)

    def run(self, host: str, *command: str, check: bool = True, timeout_s: float = 30) -> str:
        """Run a command on a host and return its output. Raise ssh.HostError, subprocess.TimeoutExpired."""
        return ssh.run(self.hosts[host], *command, check=check, timeout_s=timeout_s)

    def keep_logs(self, directory: Path) -> None:
        """Save Kafka's and ZooKeeper's logs of every reachable host as `directory`/HOST.tar.gz."""
        directory.mkdir(parents=True, exist_ok=True)
        kafka = Path(self.vars.get("quorumshift_broker_log_file", "/var/log/kafka/server.log")).parent
        logs = f"-C {kafka.parent} {kafka.name} -C /var/log zookeeper"
        pack = f"tar -czf - --ignore-failed-read --warning=no-file-changed {logs}"

        def keep(host: str) -> None:
            with (directory / f"{host}.tar.gz").open("wb") as packed, contextlib.suppress(subprocess.TimeoutExpired):
                command = self.ssh(host, pack)
                subprocess.run(command, stdout=packed, stderr=subprocess.DEVNULL, timeout=60, check=False)

        with ThreadPoolExecutor(max_workers=len(self.hosts)) as pool:
            list(pool.map(keep, self.hosts))

    def librdkafka(self, **more: Any) -> dict[str, Any]:
        """Return the settings of the operator's clients in librdkafka's keys."""
        return {
            "bootstrap.servers": self.vars["quorumshift_bootstrap_servers"],
            "security.protocol": "SASL_SSL",
            "sasl.mechanism": "SCRAM-SHA-512",
            "sasl.username": "quorumshift",
            "sasl.password": self._secrets["quorumshift"],
            "ssl.ca.location": str(CA_CERTIFICATE),
            "reconnect.backoff.max.ms": 500,
            "log_level": 0,
            "error_cb": lambda error: None,
            **more,
        }

    def kafka_python(self) -> dict[str, Any]:
        """Return the settings of the operator's clients in kafka-python's keys."""
        return {
            "bootstrap_servers": self.vars["quorumshift_bootstrap_servers"].split(","),
            "security_protocol": "SASL_SSL",
            "sasl_mechanism": "SCRAM-SHA-512",
            "sasl_plain_username": "quorumshift",
            "sasl_plain_password": self._secrets["quorumshift"],
            "ssl_cafile": str(CA_CERTIFICATE),
        }

    def clients_config(self) -> dict[str, Any]:
        """Return the config of the verification clients (canary_clients/config.py)."""
        return {
            "bootstrap_servers": self.vars["quorumshift_bootstrap_servers"],
            "client": {
                "security_protocol": "SASL_SSL",
                "sasl_mechanism": "SCRAM-SHA-512",
                "sasl_username": "canary",
                "sasl_password": self._secrets["canary"],
                "ssl_cafile": str(CA_CERTIFICATE),
            },
            "topic_prefix": "canary",
            "rate": CLIENTS_RATE,
            "admin": {"interval_s": 30},
        }

    @property
    def _secrets(self) -> dict[str, str]:
        return json.loads((STATE / "secrets.json").read_text(encoding="utf-8"))


def write(network: Network, secrets: dict[str, str]) -> Path:
    """Write the inventory (0600, since it holds passwords); return its path."""
    common = {
        "ansible_user": LOGIN,
        "ansible_ssh_private_key_file": str(SSH_KEY),
        "ansible_ssh_common_args": " ".join(f"-o {option}" for option in ssh.OPTIONS),
        "ansible_python_interpreter": "/usr/bin/python3",
        "quorumshift_zookeeper_connect": network.zookeeper_connect,
        "quorumshift_bootstrap_servers": network.bootstrap_servers,
        "quorumshift_client": security.client(network, secrets),
        **security.inventory_variables(network, secrets),
        **renamed(),
        "quorumshift_artifacts_dir": str(ARTIFACTS),
        "quorumshift_spark_submit": [str(TESTBED / "spark-submit"), podman.SPARK_GROUP],
    }
    become = {"ansible_become": True} if HAS_SUDO else {}  # not for localhost, which has no group
    brokers = {
        host.name: {**_host(network, host), **security.broker_variables(host, secrets), **become} for host in BROKERS
    }
    controllers = {host.name: {**_controller(network, host), **become} for host in CONTROLLERS}
    groups: dict[str, object] = {
        "zookeeper": {"hosts": {host.name: {} for host in ZOOKEEPERS}},
        "kafka_broker": {"hosts": brokers},
    }
    if controllers:
        groups["kafka_controller"] = {
            "hosts": controllers,
            "vars": {
                "quorumshift_controller_log_dir": LAYOUT.metadata_log_dir,
                "quorumshift_controller_port": LAYOUT.controller_port,
            },
        }
    if REHEARSALS:
        groups["kafka_rehearsal"] = {"hosts": {host.name: _host(network, host) for host in REHEARSALS}}
    if DESTINATIONS:
        groups.update(_ensembles(network))
        common["zk_migrate_source_connect"] = network.zookeeper_connect
        common["zk_migrate_destination_connect"] = network.destination_connect
        servers = {host.destination_id: f"{network.address(host)}:2888:3888" for host in DESTINATIONS}
        common["zk_migrate_destination_servers"] = servers
        common["zk_migrate_source_addresses"] = [network.address6(host) for host in ZOOKEEPERS]
    tree = {"all": {"vars": common, "children": groups}}
    INVENTORY.touch(mode=0o600)
    INVENTORY.chmod(0o600)
    INVENTORY.write_text("---\n" + yaml.safe_dump(tree, sort_keys=False, width=200))
    return INVENTORY


def _ensembles(network: Network) -> dict[str, object]:
    """Return the groups of the source's servers and of the destination's."""
    source = {host.name: _host(network, host) for host in ZOOKEEPERS}
    destination = {host.name: {**_host(network, host), "zk_migrate_myid": host.destination_id} for host in DESTINATIONS}
    return {"zookeeper_source": {"hosts": source}, "zookeeper_destination": {"hosts": destination}}


def _host(network: Network, host: Host) -> dict[str, object]:
    own = {"quorumshift_state_dir": host.state_dir} if host.state_dir else {}
    return {"ansible_host": network.address(host), **own}


def _controller(network: Network, host: Host) -> dict[str, object]:
    variables = {**_host(network, host), "quorumshift_node_id": host.node_id}
    return {**variables, "quorumshift_controller_host": network.address6(host)} if HAS_IPV6 else variables
