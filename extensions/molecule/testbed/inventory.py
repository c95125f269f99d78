# Copyright: (c) 2026, Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The testbed's Ansible inventory."""

from __future__ import annotations

from pathlib import Path

import podman
import security
import yaml
from layout import (
    ARTIFACTS,
    BROKERS,
    CA_CERTIFICATE,
    CONTROLLERS,
    DESTINATIONS,
    INVENTORY,
    LAYOUT,
    LOGIN,
    SECURED,
    SSH_KEY,
    SUDO,
    TESTBED,
    ZOOKEEPERS,
    Host,
    Network,
    renamed,
)

SSH_OPTIONS = (
    "StrictHostKeyChecking=no",
    "UserKnownHostsFile=/dev/null",
    "LogLevel=ERROR",
    "ControlMaster=auto",
    "ControlPersist=60s",
)


def write(network: Network, secrets: dict[str, str]) -> Path:
    """Write the inventory (0600, since it holds passwords); return its path."""
    common = {
        "ansible_user": LOGIN,
        "ansible_ssh_private_key_file": str(SSH_KEY),
        "ansible_ssh_common_args": " ".join(f"-o {option}" for option in SSH_OPTIONS),
        "ansible_python_interpreter": "/usr/bin/python3",
        "quorumshift_zookeeper_connect": network.zookeeper_connect,
        "quorumshift_bootstrap_servers": network.bootstrap_servers,
        "quorumshift_client": {
            "security_protocol": "SASL_SSL",
            "sasl_mechanism": "SCRAM-SHA-512",
            "sasl_username": "quorumshift",
            "sasl_password": secrets["quorumshift"],
            "ssl_cafile": str(CA_CERTIFICATE),
        },
        **security.inventory_variables(secrets),
        **renamed(),
        "quorumshift_artifacts_dir": str(ARTIFACTS),
        "quorumshift_spark_submit": [str(TESTBED / "spark-submit"), podman.SPARK_GROUP],
    }
    become = {"ansible_become": True} if SUDO else {}  # not for localhost, which has no group
    brokers = {host.name: {**_host(network, host), **become} for host in BROKERS}
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
    return {**variables, "quorumshift_controller_host": network.address6(host)} if SECURED else variables
