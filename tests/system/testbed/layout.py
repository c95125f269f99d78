# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The testbed's paths, hosts and network, and what differs between its variants.

All names derive from the checkout's path and the variant: two checkouts, and the variants of one, run side by side.
"""

from __future__ import annotations

import hashlib
import json
import os
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath

TESTBED = Path(__file__).resolve().parent
ROOT = TESTBED.parents[2]
BUILD = ROOT / ".build"
LIBS = BUILD / "kafka" / "libs"
ADMIN_SERVER_LIBS = BUILD / "kafka" / "admin-server"
CHECKOUT_ID = hashlib.sha256(str(ROOT).encode()).hexdigest()[:8]


# Those of SCHEMES secure each listener (security.py); `other` has another layout and five controllers
# (_OTHER); `racks` 18 brokers (_RACKS);
# `sudo` logs in as a user who may use sudo, and logind ends whatever a login leaves running (hosts.py); `journey`
# begins with an older release, and has newer ones beside it (_JOURNEY); `ensembles` has no controllers, and ZooKeeper
# servers on hosts of their own: three of the source, three of the destination (_ENSEMBLES); `confluent` is laid out as
# cp-ansible lays out Confluent's packages, and its controller hosts have those packages and nothing more (_CONFLUENT);
# `beside` has three hosts alone, each with a ZooKeeper server, a broker and a controller (_BESIDE);
# `rehearsal` has three more hosts, on which a rehearsal is built (_REHEARSAL).
@dataclass(frozen=True)
class Scheme:
    """How the nodes of a variant log in: `SSL` is by certificate, a SASL mechanism is over TLS.

    `brokers`: to each other; `controllers`: the listener of controllers; `tool`: the migration tool to brokers;
    `zookeeper`: a SASL mechanism; `zookeeper_tls`: with client certificates, in Java's stores.
    """

    brokers: str = "PLAINTEXT"
    controllers: str = "PLAINTEXT"
    tool: str = "SCRAM-SHA-512"
    zookeeper: str = ""
    zookeeper_tls: bool = False

    @property
    def has_tokens(self) -> bool:
        """Return whether a token server is needed."""
        return "OAUTHBEARER" in (self.brokers, self.controllers, self.tool)

    @property
    def has_kerberos(self) -> bool:
        """Return whether a KDC is needed."""
        return self.brokers == "GSSAPI"


SCHEMES = {
    "secure": Scheme("SSL", "SSL", zookeeper="DIGEST-MD5"),
    "sasl": Scheme("SCRAM-SHA-512", "PLAIN", zookeeper="DIGEST-MD5", zookeeper_tls=True),
    "oauth": Scheme("OAUTHBEARER", "OAUTHBEARER", "OAUTHBEARER", zookeeper="DIGEST-MD5"),
    "gssapi": Scheme("GSSAPI", "GSSAPI", "GSSAPI", zookeeper="GSSAPI"),
}
VARIANTS = ("default", *SCHEMES, "other", "racks", "sudo", "journey", "ensembles", "confluent", "beside", "rehearsal")
VARIANT = os.environ.get("TESTBED_VARIANT") or "default"
SECURED = VARIANT in SCHEMES
SCHEME = SCHEMES.get(VARIANT, Scheme())
SUDO = VARIANT == "sudo"
LEAST_RIGHTS = VARIANT in ("oauth", "gssapi")  # the login on hosts may do what docs/least-rights.md has
HAS_SUDO = SUDO or LEAST_RIGHTS
ENSEMBLES = VARIANT == "ensembles"
CONFLUENT = VARIANT == "confluent"
HAS_IPV6 = VARIANT == "secure" or ENSEMBLES
LOGIN = "operator" if HAS_SUDO else "root"
STATES = {name: BUILD / ("testbed" if name == "default" else f"testbed-{name}") for name in VARIANTS}
STATE = STATES.get(VARIANT, BUILD / "testbed-unknown")
_DERIVED_ID = hashlib.sha256(f"{ROOT} {VARIANT}".encode()).hexdigest()[:8]
TESTBED_ID = CHECKOUT_ID if VARIANT == "default" else _DERIVED_ID

INVENTORY = STATE / "inventory.yml"
SECRETS = STATE / "secrets.json"
SSH_KEY = STATE / "ssh_key"
CA_CERTIFICATE = STATE / "ca.pem"
ARTIFACTS = STATE / "artifacts"

ZOOKEEPER_UID = 480  # image/setup.sh


class TestbedError(Exception):
    """An error for the operator: what is wrong, where, and what to do; the command prints it without a traceback."""


@dataclass(frozen=True)
class Host:
    """One host: its Kafka id (`broker.id` or the future `node.id`; 0: no Kafka), its rack, its address's last octet.

    `state_dir`: the host's own quorumshift_state_dir, "" for the collection's default. `destination_id`: of a ZooKeeper
    server without data that the destination ensemble will have (its myid). `beside`: the broker on whose host this
    controller runs, with its octet.
    """

    name: str
    node_id: int
    rack: str
    octet: int
    is_broker: bool
    has_zookeeper: bool
    state_dir: str = ""
    destination_id: int = 0
    beside: str = ""
    has_authority: bool = False  # the token server of OAUTHBEARER or the KDC of GSSAPI runs there

    @property
    def container(self) -> str:
        return f"qs-{TESTBED_ID}-{self.beside or self.name}"


@dataclass(frozen=True)
class Layout:
    """A cluster's hosts, users, ports, units and files. Templates use the fields as values."""

    hosts: tuple[Host, ...]
    user: str
    uid: int
    kafka_home: str
    config_dir: str
    log_dir: str
    data_dir: str
    log_dirs: tuple[str, ...]  # brokers' log directories below data_dir
    metadata_dir: str  # controllers' log directory, below data_dir or absolute
    broker: str  # name of the broker's unit
    broker_file: str  # in config_dir
    broker_log: str  # in log_dir
    controller: str
    controller_file: str
    controller_log: str
    controller_listener: str
    controller_port: int
    clients_port: int
    zookeeper_port: int
    chroot: str
    # The release that runs first, "" for the image's; and others that are installed, each in /opt/kafka-<release>.
    release: str
    more_releases: tuple[str, ...]
    protocol_version: str  # inter.broker.protocol.version
    # An authorizer, password.encoder.secret and delegation tokens: without, the seed has nothing that needs them.
    protected: bool
    replication: str = "num.replica.fetchers=2"  # lines of the brokers' file
    group: str = ""  # the user's, "" for one of its name
    ssl_dir: str = "/etc/kafka/ssl"
    # ZooKeeper's unit, its files, and its user's id
    zookeeper: str = "zookeeper"
    zookeeper_dir: str = "/etc/zookeeper"
    zookeeper_file: str = "zoo.cfg"  # in zookeeper_dir
    zookeeper_log4j: str = "log4j.properties"  # in zookeeper_dir
    zookeeper_uid: int = ZOOKEEPER_UID
    controller_config_dir: str = ""  # "" for config_dir
    controller_log_dir: str = ""  # "" for log_dir
    installs_units: bool = True  # controllers' units are on their hosts, with what they need

    @property
    def first_home(self) -> str:
        """Where the release is that runs first."""
        return release_home(self.release) if self.release else "/opt/kafka"  # image/root

    @property
    def metadata_log_dir(self) -> str:
        return str(PurePosixPath(self.data_dir, self.metadata_dir))

    @property
    def has_own_metadata_dir(self) -> bool:
        """Return whether controllers' log directory is outside of data_dir."""
        return PurePosixPath(self.metadata_dir).is_absolute()

    @property
    def names(self) -> dict[str, str]:
        """Return the collection's variables for what an operator may name differently."""
        controller_config = f"{self.controller_config_dir or self.config_dir}/{self.controller_file}"
        return {
            "quorumshift_kafka_home": self.kafka_home,
            "quorumshift_kafka_user": self.user,
            "quorumshift_broker_config_file": f"{self.config_dir}/{self.broker_file}",
            "quorumshift_broker_service": self.broker,
            "quorumshift_broker_log_file": f"{self.log_dir}/{self.broker_log}",
            "quorumshift_controller_config_file": controller_config,
            "quorumshift_controller_service": self.controller,
            "quorumshift_controller_log_file": f"{self.controller_log_dir or self.log_dir}/{self.controller_log}",
            "quorumshift_controller_listener": self.controller_listener,
            "quorumshift_zookeeper_config_file": f"{self.zookeeper_dir}/{self.zookeeper_file}",
        }


# Broker ids have a gap: no code may count brokers from 1 to n. User, paths and units are the collection's defaults.
_DEFAULT = Layout(
    hosts=(
        Host("b1", 1, "rack-a", 11, is_broker=True, has_zookeeper=True),
        Host("b2", 2, "rack-b", 12, is_broker=True, has_zookeeper=True),
        Host("b3", 5, "rack-c", 13, is_broker=True, has_zookeeper=True),
        Host("c1", 101, "rack-a", 21, is_broker=False, has_zookeeper=False),
        Host("c2", 102, "rack-b", 22, is_broker=False, has_zookeeper=False),
        Host("c3", 103, "rack-c", 23, is_broker=False, has_zookeeper=False),
    ),
    user="kafka",
    uid=490,  # image/setup.sh
    kafka_home="/opt/kafka",  # image/root
    config_dir="/etc/kafka",
    log_dir="/var/log/kafka",
    data_dir="/var/lib/kafka",
    log_dirs=("data1", "data2"),
    metadata_dir="metadata",
    broker="kafka",
    broker_file="server.properties",
    broker_log="server.log",
    controller="kafka-controller",
    controller_file="controller.properties",
    controller_log="controller.log",
    controller_listener="CONTROLLER",
    controller_port=9093,
    clients_port=9094,
    zookeeper_port=2181,
    chroot="/prod/kafka-eu",
    release="",
    more_releases=(),
    protocol_version="3.9",
    protected=True,
)
# Kafka's directory is a link, as an upgrade needs it: first to the older release.
_JOURNEY = replace(
    _DEFAULT,
    kafka_home="/opt/kafka-current",
    release="3.7.2",
    more_releases=("3.7.2", "4.1.1"),
    protocol_version="3.7",
)
_OTHER = Layout(
    hosts=(
        Host("n103", 103, "", 31, is_broker=True, has_zookeeper=False),
        Host("n12", 12, "", 32, is_broker=True, has_zookeeper=False, state_dir="/srv/broker/migration"),
        Host("n40", 40, "", 33, is_broker=True, has_zookeeper=False),
        Host("n7", 7, "", 34, is_broker=True, has_zookeeper=False),
        Host("q1", 2001, "", 41, is_broker=False, has_zookeeper=True),
        Host("q2", 31, "", 42, is_broker=False, has_zookeeper=True, state_dir="/srv/migration"),
        Host("q3", 500, "", 43, is_broker=False, has_zookeeper=True),
        Host("q4", 77, "", 44, is_broker=False, has_zookeeper=False),
        Host("q5", 90001, "", 45, is_broker=False, has_zookeeper=False),
    ),
    user="streaming",
    ssl_dir="/srv/broker/conf/ssl",
    zookeeper_dir="/srv/ensemble",
    zookeeper_file="server.cfg",
    uid=1490,
    kafka_home="/srv/broker/current",
    config_dir="/srv/broker/conf",
    log_dir="/srv/broker/log",
    data_dir="/srv/broker/data",
    log_dirs=("disk-a", "disk-b"),
    metadata_dir="quorum",
    broker="kafka-broker",
    broker_file="broker.properties",
    broker_log="broker.log",
    controller="kafka-quorum",
    controller_file="quorum.properties",
    controller_log="quorum.log",
    controller_listener="QUORUM",
    controller_port=29093,
    clients_port=19094,
    zookeeper_port=22181,
    chroot="",
    release="",
    more_releases=(),
    protocol_version="",
    protected=False,
)
# The default's cluster with six brokers in each of three racks. The seed's fixed assignments are over the first three.
# Each broker fetches from seventeen others: as often as by default, idle brokers alone would use most of two cores.
_RACKS = replace(
    _DEFAULT,
    hosts=tuple(
        Host(f"b{rack}{place}", 10 * rack + place, f"rack-{'abc'[rack - 1]}", 10 * rack + place, True, place == 1)
        for place in range(1, 7)
        for rack in (1, 2, 3)
    )
    + tuple(Host(f"c{rack}", 100 + rack, f"rack-{'abc'[rack - 1]}", 50 + rack, False, False) for rack in (1, 2, 3)),
    replication="num.replica.fetchers=1\nreplica.fetch.wait.max.ms=2000",
)
_ENSEMBLES = replace(
    _DEFAULT,
    hosts=(
        Host("b1", 1, "rack-a", 11, is_broker=True, has_zookeeper=False),
        Host("b2", 2, "rack-b", 12, is_broker=True, has_zookeeper=False),
        Host("b3", 5, "rack-c", 13, is_broker=True, has_zookeeper=False),
        Host("s1", 0, "", 31, is_broker=False, has_zookeeper=True),
        Host("s2", 0, "", 32, is_broker=False, has_zookeeper=True),
        Host("s3", 0, "", 33, is_broker=False, has_zookeeper=True),
        Host("z1", 0, "", 41, is_broker=False, has_zookeeper=False, destination_id=11),
        Host("z2", 0, "", 42, is_broker=False, has_zookeeper=False, destination_id=12),
        Host("z3", 0, "", 43, is_broker=False, has_zookeeper=False, destination_id=13),
    ),
)
# Hosts with Kafka's files and nothing else. Descriptors are for the replicas of large rehearsals, too.
_REHEARSAL = replace(
    _DEFAULT,
    hosts=(
        *_DEFAULT.hosts,
        Host("r1", 0, "", 51, is_broker=False, has_zookeeper=False),
        Host("r2", 0, "", 52, is_broker=False, has_zookeeper=False),
        Host("r3", 0, "", 53, is_broker=False, has_zookeeper=False),
    ),
)
# Users, paths, units, ports and ids as in cp-ansible's role `variables` (branch 7.9.x).
_CONFLUENT = replace(
    _DEFAULT,
    hosts=(
        Host("b1", 1, "rack-a", 11, is_broker=True, has_zookeeper=True),
        Host("b2", 2, "rack-b", 12, is_broker=True, has_zookeeper=True),
        Host("b3", 3, "rack-c", 13, is_broker=True, has_zookeeper=True),
        Host("c1", 9991, "rack-a", 21, is_broker=False, has_zookeeper=False),
        Host("c2", 9992, "rack-b", 22, is_broker=False, has_zookeeper=False),
        Host("c3", 9993, "rack-c", 23, is_broker=False, has_zookeeper=False),
    ),
    user="cp-kafka",
    group="confluent",
    uid=1491,
    kafka_home="/usr",
    log_dirs=("data",),
    metadata_dir="/var/lib/controller/data",
    broker="confluent-kafka",
    controller="confluent-kcontroller",
    controller_file="server.properties",
    controller_config_dir="/etc/controller",
    controller_log="server.log",
    controller_log_dir="/var/log/controller",
    clients_port=9092,
    chroot="",
    zookeeper="confluent-zookeeper",
    zookeeper_dir="/etc/kafka",
    zookeeper_file="zookeeper.properties",
    zookeeper_log4j="zookeeper-log4j.properties",
    zookeeper_uid=1491,
    ssl_dir="/var/ssl/private",
    installs_units=False,
)
_BESIDE = replace(
    _DEFAULT,
    hosts=(
        *_DEFAULT.hosts[:3],
        *(
            replace(controller, octet=broker.octet, beside=broker.name)
            for broker, controller in zip(_DEFAULT.hosts[:3], _DEFAULT.hosts[3:])
        ),
    ),
)
_AUTHORITY = replace(
    _DEFAULT,
    hosts=(*_DEFAULT.hosts, Host("k1", 0, "", 51, is_broker=False, has_zookeeper=False, has_authority=True)),
)
LAYOUT = {
    "beside": _BESIDE,
    "oauth": _AUTHORITY,
    "gssapi": _AUTHORITY,
    "sasl": replace(_DEFAULT, zookeeper_port=2281),
    "confluent": _CONFLUENT,
    "rehearsal": _REHEARSAL,
    "other": _OTHER,
    "racks": _RACKS,
    "journey": _JOURNEY,
    "ensembles": _ENSEMBLES,
}.get(VARIANT, _DEFAULT)
HOSTS = tuple(host for host in LAYOUT.hosts if not host.beside)
BROKERS = tuple(host for host in HOSTS if host.is_broker)
CONTROLLERS = tuple(host for host in LAYOUT.hosts if host.node_id and not host.is_broker)
DESTINATIONS = tuple(host for host in HOSTS if host.destination_id)
ZOOKEEPERS = tuple(host for host in HOSTS if host.has_zookeeper)
AUTHORITIES = tuple(host for host in HOSTS if host.has_authority)
REHEARSALS = tuple(
    host for host in HOSTS if not (host.node_id or host.has_zookeeper or host.destination_id or host.has_authority)
)


def release_libs(version: str) -> Path:
    """Return where the jars of another release of Kafka are, which jars.resolve_release resolves."""
    return BUILD / f"kafka-{version}" / "libs"


def release_home(release: str) -> str:
    """Return where a further release is on a host."""
    return f"/opt/kafka-{release}"


def renamed() -> dict[str, str]:
    """Return the collection's variables that differ from their defaults, which the default layout has."""
    return {name: value for name, value in LAYOUT.names.items() if value != _DEFAULT.names[name]}


def require_known_variant() -> None:
    """Raise TestbedError if TESTBED_VARIANT names no variant."""
    if VARIANT not in VARIANTS:
        raise TestbedError(f"TESTBED_VARIANT={VARIANT!r} is no variant. Use one of {', '.join(VARIANTS)}")


def host_named(name: str) -> Host:
    """Return the host of that name. Raise TestbedError if there is none."""
    for host in LAYOUT.hosts:
        if host.name == name:
            return host
    raise TestbedError(f"the testbed has no host {name!r}. Its hosts are {', '.join(h.name for h in LAYOUT.hosts)}")


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
        """Return the host's IPv6 address, in the testbed's own RFC 4193 prefix, where HAS_IPV6."""
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
        return self._connect(ZOOKEEPERS)

    @property
    def destination_connect(self) -> str:
        return self._connect(DESTINATIONS)

    def _connect(self, hosts: tuple[Host, ...]) -> str:
        return ",".join(f"{self.address(host)}:{LAYOUT.zookeeper_port}" for host in hosts) + LAYOUT.chroot

    @property
    def bootstrap_servers(self) -> str:
        return ",".join(f"{self.address(host)}:{LAYOUT.clients_port}" for host in BROKERS)


def digest_of(*paths: Path, also: str = "") -> str:
    """Return the SHA-256 of a string and of the names and contents of files, directories included."""
    digest = hashlib.sha256(also.encode())
    for path in paths:
        for file in sorted(p for p in (path.rglob("*") if path.is_dir() else [path]) if p.is_file()):
            if "__pycache__" in file.parts:
                continue
            root = next(root for root in (TESTBED, BUILD, ROOT) if file.is_relative_to(root))
            digest.update(f"{file.relative_to(root)}\0".encode())
            digest.update(hashlib.sha256(file.read_bytes()).digest())
    return digest.hexdigest()
