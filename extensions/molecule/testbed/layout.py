# Copyright: (c) 2026, Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The testbed's paths, hosts and network.

All names derive from the checkout's path and the variant: two checkouts, and both variants of one, run side by side.
"""

from __future__ import annotations

import hashlib
import json
import os
from dataclasses import dataclass
from pathlib import Path

TESTBED = Path(__file__).resolve().parent
CHECKOUT = TESTBED.parents[2]
BUILD = CHECKOUT / ".build"
LIBS = BUILD / "kafka" / "libs"
SPARK_JARS = BUILD / "spark" / "jars"
CHECKOUT_ID = hashlib.sha256(str(CHECKOUT).encode()).hexdigest()[:8]

# `secure` secures every listener (security.py).
VARIANTS = ("default", "secure")
VARIANT = os.environ.get("TESTBED_VARIANT") or "default"
SECURED = VARIANT == "secure"
STATES = {name: BUILD / ("testbed" if name == "default" else f"testbed-{name}") for name in VARIANTS}
STATE = STATES.get(VARIANT, BUILD / "testbed-unknown")
TESTBED_ID = hashlib.sha256(f"{CHECKOUT} {VARIANT}".encode()).hexdigest()[:8] if SECURED else CHECKOUT_ID

INVENTORY = STATE / "inventory.yml"
SECRETS = STATE / "secrets.json"
SSH_KEY = STATE / "ssh_key"
CA_CERTIFICATE = STATE / "ca.pem"
ARTIFACTS = STATE / "artifacts"

ZOOKEEPER_CHROOT = "/prod/kafka-eu"
METADATA_LOG_DIR = "/var/lib/kafka/metadata"
CONTROLLER_PORT = 9093
KAFKA_UID = 490  # image/setup.sh
ZOOKEEPER_UID = 480  # image/setup.sh


class TestbedError(Exception):
    """An error for the operator: what is wrong, where, and what to do; testbed.py prints it without a traceback."""


@dataclass(frozen=True)
class Host:
    """One host: its Kafka id (`broker.id` or the future `node.id`), its rack, its address's last octet."""

    name: str
    node_id: int
    rack: str
    octet: int

    @property
    def is_broker(self) -> bool:
        return self.name.startswith("b")

    @property
    def container(self) -> str:
        return f"qs-{TESTBED_ID}-{self.name}"


# Broker ids have a gap: no code may count brokers from 1 to n.
HOSTS = (
    Host("b1", 1, "rack-a", 11),
    Host("b2", 2, "rack-b", 12),
    Host("b3", 5, "rack-c", 13),
    Host("c1", 101, "rack-a", 21),
    Host("c2", 102, "rack-b", 22),
    Host("c3", 103, "rack-c", 23),
)
BROKERS = tuple(host for host in HOSTS if host.is_broker)
CONTROLLERS = tuple(host for host in HOSTS if not host.is_broker)


def require_known_variant() -> None:
    """Raise TestbedError if TESTBED_VARIANT names no variant."""
    if VARIANT not in VARIANTS:
        raise TestbedError(f"TESTBED_VARIANT={VARIANT!r} is no variant. Use one of {', '.join(VARIANTS)}")


def host_named(name: str) -> Host:
    """Return the host of that name. Raise TestbedError if there is none."""
    for host in HOSTS:
        if host.name == name:
            return host
    raise TestbedError(f"the testbed has no host {name!r}. Its hosts are {', '.join(h.name for h in HOSTS)}")


class Network:
    """The testbed's subnet: a /24, chosen once (podman.choose_subnet) and kept in network.json."""

    _file = STATE / "network.json"

    def __init__(self) -> None:
        self.prefix = json.loads(self._file.read_text())["prefix"] if self._file.exists() else None

    def keep(self, prefix: str) -> None:
        """Save `prefix`, the subnet's first three octets."""
        self.prefix = prefix
        STATE.mkdir(parents=True, exist_ok=True)
        self._file.write_text(json.dumps({"prefix": prefix}) + "\n")

    def address(self, host: Host) -> str:
        return f"{self.prefix}.{host.octet}"

    def address6(self, host: Host) -> str:
        """Return the host's IPv6 address, in the testbed's own RFC 4193 prefix; only the variant `secure` has one."""
        return f"{self._prefix6}::{host.octet:x}"

    @property
    def _prefix6(self) -> str:
        return f"fd{TESTBED_ID[:2]}:{TESTBED_ID[2:6]}:{TESTBED_ID[6:]}"

    @property
    def subnet6(self) -> str:
        return f"{self._prefix6}::/64"

    @property
    def gateway6(self) -> str:
        return f"{self._prefix6}::1"

    @property
    def subnet(self) -> str:
        return f"{self.prefix}.0/24"

    @property
    def zookeeper_connect(self) -> str:
        return ",".join(f"{self.address(host)}:2181" for host in BROKERS) + ZOOKEEPER_CHROOT

    @property
    def bootstrap_servers(self) -> str:
        return ",".join(f"{self.address(host)}:9094" for host in BROKERS)


def digest_of(*paths: Path, also: str = "") -> str:
    """Return the SHA-256 of a string and of the names and contents of files, directories included."""
    digest = hashlib.sha256(also.encode())
    for path in paths:
        for file in sorted(p for p in (path.rglob("*") if path.is_dir() else [path]) if p.is_file()):
            if "__pycache__" in file.parts:
                continue
            root = next(root for root in (TESTBED, BUILD, CHECKOUT) if file.is_relative_to(root))
            digest.update(f"{file.relative_to(root)}\0".encode())
            digest.update(hashlib.sha256(file.read_bytes()).digest())
    return digest.hexdigest()
