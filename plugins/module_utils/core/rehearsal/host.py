# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A host of a rehearsal: why it may not be one, and the files that it gets. Pure, over what a probe read.

Everything is in one directory, beside the units of systemd, whose names begin with PREFIX. A file in that directory
says whose it is, and is the first to be written and the last to be removed.
"""

from __future__ import annotations

import json
import re
import shlex
from typing import Any, Dict, Iterator, List, Mapping, NamedTuple, Sequence

from ansible_collections.quorumshift.kafka.plugins.module_utils.core.text import systemd
from ansible_collections.quorumshift.kafka.plugins.module_utils.secrets import masking
from ansible_collections.quorumshift.kafka.plugins.module_utils.settings import properties

MARK_FILE = "REHEARSAL.json"
MARK = "# Written by quorumshift.kafka.rehearse, which removes it again. It serves no cluster."
PREFIX = "quorumshift-rehearsal-"
ZOOKEEPER, BROKER, CONTROLLER = "zookeeper", "broker", "controller"
ROLES = (ZOOKEEPER, BROKER, CONTROLLER)
LISTENER, CONTROLLER_LISTENER = "PLAINTEXT", "CONTROLLER"
UNIT_DIR = "/etc/systemd/system"
_SPARE_FILES = 4096  # descriptors and maps of a broker beside those of its replicas
_FILES_OF_A_REPLICA = 6
_BYTES_OF_A_REPLICA = 24 << 10
_SPARE_BYTES = 2 << 30
ENDINGS = (".sh", "")
"""Of Kafka's scripts: Apache's, and those of Confluent's packages."""
_STARTS = {
    ZOOKEEPER: "bin/zookeeper-server-start",
    BROKER: "bin/kafka-server-start",
}


class Wanted(NamedTuple):
    """What a host of a rehearsal gets. `bootstrap_servers`: of the rehearsed cluster, as its inventory has them, which
    say whose the rehearsal is; `address`: where its servers listen; `others`: {place from 1: address} of all
    hosts, its own included; `place`: its own; `broker_id`: None for a host without a broker; `replicas`: the most that
    a broker gets; `settings`: of the broker, taken over from the cluster or given; `secrets`: {key: value} of the
    broker, new for the rehearsal; `forbidden`: addresses and names of the cluster's hosts; `ending`: of the scripts in
    `kafka_home`."""

    directory: str
    bootstrap_servers: str
    cluster_id: str
    user: str
    kafka_home: str
    place: int
    address: str
    others: Mapping[int, str]
    ports: Mapping[str, int]
    chroot: str
    broker_id: int | None
    replicas: int
    heap: str
    settings: Mapping[str, str]
    secrets: Mapping[str, str]
    environment: Mapping[str, str]
    forbidden: Sequence[str]
    ending: str = ENDINGS[0]

    @property
    def roles(self) -> List[str]:
        return [role for role in ROLES if role != BROKER or self.broker_id is not None]

    @property
    def open_files(self) -> int:
        """Return how many files a broker has open: a segment for each replica, and what it needs besides."""
        return self.replicas + _SPARE_FILES

    @property
    def maps(self) -> int:
        """Return how many parts of memory a broker maps: two indexes for each replica."""
        return 2 * self.replicas + _SPARE_FILES


def unit(role: str) -> str:
    """Return the name of a role's unit."""
    return f"{PREFIX}{role}.service"


def refusals(wanted: Wanted, found: Mapping[str, Any]) -> List[str]:
    """Return why a host may not be one of a rehearsal, as sentences without their end; [] if it may.

    `found`: of host/rehearsal_host.py:read.
    """
    first = [*_unfit(wanted)] or [*_has_one(wanted, found)]  # what else is there is the rehearsal's own
    return first or [*_serves(wanted, found), *_lacks(wanted, found)]


def _unfit(wanted: Wanted) -> Iterator[str]:
    """Yield values that the files of a host cannot hold as they are."""
    for name, value in (("rehearse_dir", wanted.directory), ("quorumshift_kafka_home", wanted.kafka_home)):
        if not re.fullmatch(r"/[\w./+-]+", value) or "/../" in f"{value}/":
            yield f"{name}: {value!r} is no absolute path of letters, digits and ._+-"
    if wanted.directory.rstrip("/").count("/") < 2:
        yield f"rehearse_dir: {wanted.directory!r} is a directory of the system. Name a new one in it"
    if not re.fullmatch(r"[0-9]+[kmgKMG]", wanted.heap):
        yield f"rehearse_heap: {wanted.heap!r} is no size of a heap. Write it as 1g"
    for name, value in {**wanted.settings, **wanted.environment}.items():
        if "\n" in f"{name}{value}":
            yield f"{name}: has more than one line"
    for name, value in wanted.environment.items():
        if masking.mask(f"{name}={value}") != f"{name}={value}":
            yield (
                f"rehearse_environment: {name} holds a secret, which every user of the host could read in the unit. A "
                "rehearsal's servers need none: leave it out"
            )


def _has_one(wanted: Wanted, found: Mapping[str, Any]) -> Iterator[str]:
    """Yield that this host has a rehearsal already."""
    if found["mark"] is not None:
        yield (
            foreign(wanted.directory, found["mark"], wanted.bootstrap_servers)
            or f"{wanted.directory} has the rehearsal {found['mark'].get('cluster_id', '?')} already. Remove it first: "
            "-e rehearse_remove=true"
        )
    for name in found["own_units"]:
        yield (
            f"the unit {name} exists: a rehearsal has another rehearse_dir here. Remove it first, with that directory: "
            "-e rehearse_remove=true"
        )


def _serves(wanted: Wanted, found: Mapping[str, Any]) -> Iterator[str]:
    """Yield what shows that this host has another purpose."""
    if found["directory"] != "missing":
        yield f"{wanted.directory} exists, and no rehearsal made it. Set rehearse_dir to one that does not exist"
    for process in found["processes"]:
        yield (
            f"process {process['pid']} runs {process['what']} on this host, as {process['user']}. A rehearsal needs "
            "hosts that run neither Kafka nor ZooKeeper: name others in the group kafka_rehearsal"
        )
    for name in found["units"]:
        yield (
            f"the unit {name} is enabled, and starts Kafka or ZooKeeper. Name another host, or disable it: systemctl "
            f"disable {shlex.quote(name)}"
        )
    for path in found["data"]:
        yield f"{path} holds data of Kafka or ZooKeeper. A rehearsal needs hosts without: name another host"
    for address in found["own_addresses"]:
        yield f"{address} is an address of this host and of the cluster. Name a host that is not of the cluster"


def _lacks(wanted: Wanted, found: Mapping[str, Any]) -> Iterator[str]:
    if found["no_systemd"]:
        yield f"systemd cannot be used on this host: {found['no_systemd']}"
    if found["uid"] is None:
        yield (
            f"the user {wanted.user} does not exist. useradd --system --no-create-home --shell /usr/sbin/nologin "
            f"{shlex.quote(wanted.user)}"
        )
    missing = sorted(f"{name}{ENDINGS[0]}" for role, name in _STARTS.items() if not found["starts"].get(role))
    if missing:
        yield (
            f"{wanted.kafka_home} has no {' and no '.join(missing)}. Install Kafka there, in the cluster's release, or "
            "correct quorumshift_kafka_home"
        )
    for address, why in sorted(found["ports"].items()):
        yield f"the port {address} cannot be used: {why}. Set {_port_variable(wanted, address)} to a free one"
    if found["most_maps"] is not None and wanted.broker_id is not None and found["most_maps"] < wanted.maps:
        yield (
            f"vm.max_map_count is {found['most_maps']}, and a broker with {wanted.replicas} replicas needs "
            f"{wanted.maps}. "
            f"sysctl -w vm.max_map_count={wanted.maps}"
        )
    if found["most_files"] is not None and wanted.broker_id is not None and found["most_files"] < wanted.open_files:
        yield (
            f"a process may open {found['most_files']} files, and a broker with {wanted.replicas} replicas needs "
            f"{wanted.open_files}. Raise DefaultLimitNOFILE in /etc/systemd/system.conf, then: systemctl daemon-reexec"
        )
    wanted_bytes = _SPARE_BYTES + wanted.replicas * _BYTES_OF_A_REPLICA
    if found["free_bytes"] is not None and found["free_bytes"] < wanted_bytes:
        yield f"{wanted.directory} has {found['free_bytes'] >> 20} MiB free, and needs {wanted_bytes >> 20} MiB"
    wanted_files = wanted.replicas * _FILES_OF_A_REPLICA + _SPARE_FILES
    if found["free_inodes"] is not None and 0 < found["free_inodes"] < wanted_files:
        yield f"{wanted.directory} has {found['free_inodes']} free inodes, and needs {wanted_files}"


def _port_variable(wanted: Wanted, address: str) -> str:
    number = int(address.rpartition(":")[2])
    name = next((name for name, port in wanted.ports.items() if port == number), "peer")
    return f"rehearse_{name}_port"


def listened(wanted: Wanted) -> List[str]:
    """Return the addresses that this host's servers listen on."""
    ports = wanted.ports
    names = ["zookeeper", "peer", "election", "controller", *(["broker"] if wanted.broker_id is not None else [])]
    return [f"{_bracketed(wanted.address)}:{ports[name]}" for name in names]


def connect(wanted: Wanted) -> str:
    """Return zookeeper.connect of the rehearsal: its own servers and its chroot."""
    servers = (
        f"{_bracketed(address)}:{wanted.ports['zookeeper']}" for _place, address in sorted(wanted.others.items())
    )
    return ",".join(servers) + wanted.chroot


def mark(wanted: Wanted) -> str:
    """Return the text of the file that says whose the directory is."""
    whose = {"cluster_id": wanted.cluster_id, "bootstrap_servers": wanted.bootstrap_servers}
    return json.dumps({"quorumshift_rehearsal": 1, **whose}) + "\n"


def parse_mark(text: str) -> Dict[str, Any] | None:
    """Return what the file of a directory says, None if no rehearsal wrote it."""
    try:
        value = json.loads(text)
    except ValueError:
        return None
    return value if isinstance(value, dict) and value.get("quorumshift_rehearsal") == 1 else None


def foreign(directory: str, marked: Mapping[str, Any], bootstrap_servers: str) -> str:
    """Return that the rehearsal in a directory, which has this mark, is of another cluster's inventory; "" if not."""
    whose = marked.get("bootstrap_servers")
    if whose == bootstrap_servers:
        return ""
    own = shlex.quote(f"quorumshift_bootstrap_servers={whose or bootstrap_servers}")
    return (
        f"{directory} has the rehearsal {marked.get('cluster_id', '?')} of the cluster at {whose or '?'}, and "
        f"quorumshift_bootstrap_servers is {bootstrap_servers}. It may be at work. Remove it with that cluster's "
        f"inventory, or if it is of this cluster: -e rehearse_remove=true -e {own}"
    )


def files(wanted: Wanted) -> Dict[str, str]:
    """Return {path: text} of the files below the directory. The broker's holds its secrets."""
    base = wanted.directory
    made = {
        f"{base}/zookeeper.cfg": _zookeeper(wanted),
        f"{base}/zookeeper/myid": f"{wanted.place}\n",
        **{f"{base}/{role}.log4j.properties": _log4j(f"{base}/logs/{role}.log") for role in wanted.roles},
    }
    if wanted.broker_id is not None:
        made[f"{base}/broker.properties"] = _broker(wanted)
    return made


def directories(wanted: Wanted) -> List[str]:
    """Return the directories below the rehearsal's own, which Kafka's user owns."""
    return [f"{wanted.directory}/{name}" for name in ("zookeeper", "data", "metadata", "logs")]


def units(wanted: Wanted) -> Dict[str, str]:
    """Return {path: text} of the units."""
    return {f"{UNIT_DIR}/{unit(role)}": _unit(wanted, role) for role in wanted.roles}


def _zookeeper(wanted: Wanted) -> str:
    ports = wanted.ports
    servers = [
        f"server.{place}={_bracketed(address)}:{ports['peer']}:{ports['election']}"
        for place, address in sorted(wanted.others.items())
    ]
    return _lines(
        MARK,
        "tickTime=2000",
        "initLimit=10",
        "syncLimit=5",
        f"dataDir={wanted.directory}/zookeeper",
        f"clientPort={ports['zookeeper']}",
        f"clientPortAddress={wanted.address}",
        "maxClientCnxns=0",
        "admin.enableServer=false",
        "4lw.commands.whitelist=srvr,mntr,cons,conf,isro",
        *(servers if len(servers) > 1 else []),
    )


def _broker(wanted: Wanted) -> str:
    brokers = min(len(wanted.others), 3)
    address = f"{LISTENER}://{_bracketed(wanted.address)}:{wanted.ports['broker']}"
    own = {
        "broker.id": str(wanted.broker_id),
        "broker.id.generation.enable": "false",  # else ids above reserved.broker.max.id are rejected
        "listeners": address,
        "advertised.listeners": address,
        "listener.security.protocol.map": f"{LISTENER}:PLAINTEXT,{CONTROLLER_LISTENER}:PLAINTEXT",
        "inter.broker.listener.name": LISTENER,
        "inter.broker.protocol.version": "3.9",
        "zookeeper.connect": connect(wanted),
        "log.dirs": f"{wanted.directory}/data",
        # The cluster's ACLs are there and are evaluated; every client is a super user
        "authorizer.class.name": "kafka.security.authorizer.AclAuthorizer",
        "super.users": "User:ANONYMOUS",
        "auto.create.topics.enable": "false",
        # Empty replicas need no room for an index
        "log.index.size.max.bytes": "65536",
    }
    caps = {
        "default.replication.factor": brokers,
        "offsets.topic.replication.factor": brokers,
        "transaction.state.log.replication.factor": brokers,
        "transaction.state.log.min.isr": max(1, brokers - 1),
        "min.insync.replicas": max(1, brokers - 1),
    }
    settings = dict(wanted.settings)
    for key, most in caps.items():
        if settings.get(key, "").isdigit():
            settings[key] = str(min(int(settings[key]), most))
    values = {key: str(value) for key, value in {**settings, **wanted.secrets, **own}.items()}
    return properties.edit(_lines(MARK).encode(), values).decode("ascii")


def _log4j(path: str) -> str:
    return _lines(
        MARK,
        "log4j.rootLogger=INFO, file",
        "log4j.appender.file=org.apache.log4j.RollingFileAppender",
        f"log4j.appender.file.File={path}",
        "log4j.appender.file.MaxFileSize=64MB",
        "log4j.appender.file.MaxBackupIndex=5",
        "log4j.appender.file.layout=org.apache.log4j.PatternLayout",
        "log4j.appender.file.layout.ConversionPattern=[%d] %p %m (%c)%n",
        "# These log a line for each replica at each start",
        "log4j.logger.kafka.log.UnifiedLog$=WARN",
        "log4j.logger.kafka.log.LogLoader=WARN",
        "log4j.logger.state.change.logger=WARN",
        "log4j.logger.kafka.network.RequestChannel$=WARN",
        "log4j.logger.org.apache.zookeeper=WARN",
    )


def _unit(wanted: Wanted, role: str) -> str:
    start = f"{wanted.kafka_home}/{script(role)}{wanted.ending}"
    base = wanted.directory
    config = f"{base}/{'zookeeper.cfg' if role == ZOOKEEPER else f'{role}.properties'}"
    log4j = f"{base}/{role}.log4j.properties"
    environment = {
        "KAFKA_HEAP_OPTS": f"-Xms256m -Xmx{wanted.heap}",
        "KAFKA_LOG4J_OPTS": f"-Dlog4j.configuration=file:{log4j}",
        "LOG_DIR": f"{base}/logs",
        **wanted.environment,
    }
    return _lines(
        MARK,
        "[Unit]",
        f"Description=Rehearsal of a migration to KRaft: {role}",
        "After=network-online.target",
        "",
        "[Service]",
        f"User={wanted.user}",
        *(f'Environment="{name}={systemd.quote(str(value))}"' for name, value in sorted(environment.items())),
        f"ExecStart={start} {config}",
        "SuccessExitStatus=143",
        "TimeoutStopSec=300",
        f"LimitNOFILE={wanted.open_files}",
        "Restart=no",
    )


def script(role: str) -> str:
    """Return the name of the script that starts a role, below Kafka's directory and without its ending."""
    return _STARTS[ZOOKEEPER if role == ZOOKEEPER else BROKER]


def _lines(*lines: str) -> str:
    return "\n".join([*lines, ""])


def _bracketed(address: str) -> str:
    return f"[{address}]" if ":" in address else address
