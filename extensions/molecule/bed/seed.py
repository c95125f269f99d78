# Copyright: (c) 2026, Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the cluster holds before anybody migrates it."""

from __future__ import annotations

import logging
from typing import Callable

from clients import admin_client
from confluent_kafka.admin import NewTopic
from kazoo.client import KazooClient
from layout import ZOOKEEPER_CHROOT, Network


def create_chroot(network: Network) -> None:
    """Create the chroot: kafka-configs.sh does not, and the brokers start after it."""
    logging.getLogger("kazoo").setLevel(logging.ERROR)  # it warns of each refused connection while ZooKeeper starts
    hosts = network.zookeeper_connect.removesuffix(ZOOKEEPER_CHROOT)
    zookeeper = KazooClient(hosts=hosts, timeout=10)
    zookeeper.start(timeout=60)
    try:
        zookeeper.ensure_path(ZOOKEEPER_CHROOT)
    finally:
        zookeeper.stop()
        zookeeper.close()


def operator_command(network: Network) -> list[str]:
    """The command that makes the operator's SCRAM user in ZooKeeper, before the first broker starts.

    It reads `operator_credential` from its standard input.
    """
    return [
        "/opt/kafka/bin/kafka-configs.sh",
        *("--zookeeper", network.zookeeper_connect, "--alter", "--entity-type", "users"),
        *("--entity-name", "quorumshift", "--add-config-file", "/dev/stdin"),
    ]


def operator_credential(secrets: dict[str, str]) -> str:
    """The operator's SCRAM credential as kafka-configs.sh takes it from a file: without the option's brackets."""
    return f"SCRAM-SHA-512=iterations=4096,password={secrets['quorumshift']}\n"


def plant(network: Network, secrets: dict[str, str], say: Callable[[str], None]) -> None:
    admin = admin_client(network, secrets)
    topics = [NewTopic(f"plain-{n}", 10, 3) for n in range(60)]
    for future in admin.create_topics(topics, request_timeout=60).values():
        future.result()
