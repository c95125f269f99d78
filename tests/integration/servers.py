# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Real ZooKeeper and Kafka servers on loopback, for tests.

    with workdir("my_test") as home, zookeeper(home) as zk:
        with zk_broker(home, 1, zk.connect) as broker:
            ... broker.address ...

Every server is a context manager that returns once the server is ready. At its end it kills the server, since a broker
without its controller takes long to stop; `stop()` stops it in order. A server that does not start in time raises an
error with the end of its log, which is under `.build/tests/<name>.<pid>/`. The jars are in `.build/kafka/libs` or in
the directory QUORUMSHIFT_KAFKA_LIBS.
"""

from __future__ import annotations

import contextlib
import json
import os
import pathlib
import shutil
import signal
import socket
import subprocess
import sys
import time
from typing import Callable, Dict, Iterator, List, Mapping, NamedTuple, Sequence

from ansible_collections.quorumshift.kafka.plugins.module_utils.probes.cluster import cluster
from ansible_collections.quorumshift.kafka.plugins.module_utils.secrets.security import Security, ZkSecurity
from ansible_collections.quorumshift.kafka.plugins.module_utils.settings.addresses import (
    HostPort,
    parse_zookeeper_connect,
)
from ansible_collections.quorumshift.kafka.plugins.module_utils.wire import zk_wire
from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import AdminClient, ClusterMetadata, NewTopic

BUILD = pathlib.Path(__file__).resolve().parents[2] / ".build"
# Kafka 4 has Log4j 2, which reads a file of Log4j 1 only with this property
JVM_FLAGS = (
    "-XX:+UseSerialGC",
    "-XX:TieredStopAtLevel=1",
    "-Xms64m",
    "-Xmx256m",
    "-Dlog4j1.compatibility=true",
)
CLASS_ARCHIVE = BUILD / "kafka" / "libs.jsa"
"""Made by tests.integration.class_archive. Without it, or with other jars, a JVM starts as usual."""
START_SECONDS = 120.0
STOP_SECONDS = 30.0
CLUSTER_ID = "Qs7KfZk2TIK1n0nQ5Qm3Tw"
# librdkafka's words for: brokers without metadata yet, none reached, no answer in time
NO_METADATA = (KafkaError._PARTIAL, KafkaError._TRANSPORT, KafkaError._TIMED_OUT, KafkaError._ALL_BROKERS_DOWN)

_LOG4J = """log4j.rootLogger=INFO, stdout
log4j.appender.stdout=org.apache.log4j.ConsoleAppender
log4j.appender.stdout.layout=org.apache.log4j.PatternLayout
log4j.appender.stdout.layout.ConversionPattern=[%d] %p %m (%c)%n
"""


def kafka_libs() -> pathlib.Path:
    """Return the directory of Kafka's jars. Raise FileNotFoundError if it is incomplete."""
    named = os.environ.get("QUORUMSHIFT_KAFKA_LIBS")
    libs = pathlib.Path(named) if named else BUILD / "kafka" / "libs"
    if not named and not (libs / ".complete").exists():
        raise FileNotFoundError(f"{libs} is incomplete: run `python -m tests.system.testbed jars`")
    return libs


def class_path() -> str:
    """Return the class path of all jars, sorted, so that every run loads the same classes."""
    return os.pathsep.join(str(jar) for jar in sorted(kafka_libs().glob("*.jar")))


@contextlib.contextmanager
def workdir(name: str) -> Iterator[pathlib.Path]:
    """Create a fresh directory `.build/tests/<name>.<pid>`; remove those of dead processes."""
    parent = BUILD / "tests"
    parent.mkdir(parents=True, exist_ok=True)
    for old in parent.glob(f"{name}.*"):
        pid = old.suffix[1:]
        if pid == str(os.getpid()) or not pathlib.Path("/proc", pid).exists():
            shutil.rmtree(old, ignore_errors=True)
    home = parent / f"{name}.{os.getpid()}"
    home.mkdir()
    yield home


def free_port(host: str = "127.0.0.1") -> int:
    """Return a port without a listener."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family) as sock:
        sock.bind((host, 0))
        return sock.getsockname()[1]


def wait_for(condition: Callable[[], object], seconds: float, what: str) -> object:
    """Return the first true value of `condition`, called every 0.1 s. Raise TimeoutError that names `what`."""
    end = time.monotonic() + seconds
    while True:
        value = condition()
        if value:
            return value
        if time.monotonic() > end:
            raise TimeoutError(f"{what}: not within {seconds:g} s; last value: {value!r}")
        time.sleep(0.1)


def metadata(client: AdminClient, *topic: str) -> ClusterMetadata | None:
    """Return the cluster's metadata, None where no broker gave it: to be asked for again.

    A broker that just started, or that changes its controller, answers without brokers (librdkafka: _PARTIAL), or not
    at all. The only call of `list_topics` in these tests and those of Spark, since its first answer may be this one.
    """
    try:
        return client.list_topics(*topic, timeout=10)
    except KafkaException as error:
        if error.args[0].code() not in NO_METADATA:
            raise
        return None


def knows_controller(admin: AdminClient, brokers: int) -> bool:
    """Return whether the answering broker knows `brokers` brokers and the controller.

    A broker that just started does not, and librdkafka may never get a response to a request to the controller then.
    """
    found = metadata(admin)
    return found is not None and len(found.brokers) == brokers and found.controller_id in found.brokers


def admin_client(address: HostPort, brokers: int = 1) -> AdminClient:
    """Return a client once its broker knows `brokers` brokers and the controller.

    Each question has a new client: one that asked too early waits long before it asks again.
    """

    found: List[AdminClient] = []  # a client without requests is false

    def knows() -> bool:
        found[:] = [AdminClient({"bootstrap.servers": str(address)})]
        return knows_controller(found[0], brokers)

    wait_for(knows, START_SECONDS, f"{brokers} brokers and a controller in the metadata of {address}")
    return found[0]


def create_topics(client: AdminClient, topics: Sequence[NewTopic], seconds: float = 120) -> None:
    """Create topics. One that exists is no failure: a controller whose ZooKeeper session ends, as on a machine that
    stands still for a while, creates it once more."""
    for future in client.create_topics(list(topics)).values():
        try:
            future.result(seconds)
        except KafkaException as error:
            if error.args[0].code() != KafkaError.TOPIC_ALREADY_EXISTS:
                raise


def in_sync(admin: AdminClient, topic: str, replicas: int) -> bool:
    """Return whether each partition of the topic has a leader and `replicas` replicas in sync."""
    found = metadata(admin, topic)
    partitions = found.topics[topic].partitions.values() if found else ()
    return bool(partitions) and all(len(p.isrs) == replicas and p.leader >= 0 for p in partitions)


def suspend(pid: int) -> None:
    """Suspend a process and wait until each of its threads is stopped. On a busy machine some still run, and answer,
    after the signal."""
    os.kill(pid, signal.SIGSTOP)

    def states() -> List[str]:
        found = []
        for path in pathlib.Path("/proc", str(pid), "task").glob("*/stat"):
            with contextlib.suppress(FileNotFoundError, ProcessLookupError):  # a thread that has just ended
                found.append(path.read_text().rpartition(") ")[2][0])
        return found

    wait_for(lambda: set(states()) == {"T"}, 60, f"the threads of process {pid} to stop")


class JavaServer:
    """One JVM. `address` is its client address, `log` the file of its output."""

    def __init__(self, home: pathlib.Path, name: str, address: HostPort, command: Sequence[str]) -> None:
        self.name = name
        self.address = address
        self.home = home / name
        self.log = self.home / "server.log"
        self._command = list(command)
        self._process: subprocess.Popen | None = None
        self._watcher: subprocess.Popen | None = None
        self._log_start = 0

    @property
    def pid(self) -> int:
        """The process id. Raise RuntimeError if it was never started."""
        if self._process is None:
            raise RuntimeError(f"{self.name} was not started")
        return self._process.pid

    def start(self, ready: Callable[[], object], seconds: float = START_SECONDS) -> None:
        """Start the JVM and wait until `ready()`; else kill it and raise RuntimeError with the log's end."""
        self.kill()
        self._log_start = self.log.stat().st_size if self.log.exists() else 0
        with open(self.log, "ab") as log:
            self._process = subprocess.Popen(
                self._command, stdout=log, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL, start_new_session=True
            )
        # kills the JVM if this process dies: the watcher's standard input ends
        watch = ["sh", "-c", f"read _; kill -9 {self._process.pid}"]
        self._watcher = subprocess.Popen(
            watch, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True
        )
        try:
            wait_for(lambda: self._alive() and ready(), seconds, f"{self.name} ready")
        except BaseException as error:
            self.kill()
            if isinstance(error, (TimeoutError, RuntimeError)):
                raise RuntimeError(f"{error}\n{self.tail()}") from error
            raise

    def stop(self) -> None:
        """Send SIGTERM, then SIGKILL after STOP_SECONDS."""
        if self._process is None:
            return
        self._process.terminate()
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(STOP_SECONDS)
        self.kill()

    def kill(self) -> None:
        """Send SIGKILL."""
        if self._process is not None and self._process.poll() is None:
            self._process.send_signal(signal.SIGKILL)
            self._process.wait()
        if self._watcher is not None:
            self._watcher.kill()
            self._watcher.wait()
            self._watcher.stdin.close()
            self._watcher = None

    def add_classes(self, directory: pathlib.Path) -> None:
        """Add a directory to the class path of the next start."""
        self._command[self._command.index("-cp") + 1] += f"{os.pathsep}{directory}"

    def use(self, libs: pathlib.Path) -> None:
        """Run the jars of this directory from the next start on."""
        jars = os.pathsep.join(str(jar) for jar in sorted(libs.glob("*.jar")))
        self._command[self._command.index("-cp") + 1] = jars

    def printed(self, text: str) -> bool:
        """Return whether the log has `text` since the last start."""
        with open(self.log, "rb") as log:
            log.seek(self._log_start)
            return text.encode() in log.read()

    def tail(self, lines: int = 30) -> str:
        """Return the end of the log."""
        return "\n".join(self.log.read_text(errors="replace").splitlines()[-lines:])

    def _alive(self) -> bool:
        if self._process is not None and self._process.poll() is not None:
            raise RuntimeError(f"{self.name} exited with {self._process.returncode}")
        return True


class ZooKeeperServer(JavaServer):
    """A ZooKeeper server; `connect` is its connect string without chroot, `tls_address` is None without TLS."""

    tls_address: HostPort | None = None

    @property
    def connect(self) -> str:
        return str(self.address)


class KafkaServer(JavaServer):
    """A broker or controller; `properties` is its configuration, `listeners` the address of each listener name."""

    node_id = -1
    properties: Dict[str, str]
    listeners: Dict[str, HostPort]

    def format(self, cluster_id: str = CLUSTER_ID, release: str = "", arguments: Sequence[str] = ()) -> None:
        """Run `kafka-storage format`, which a KRaft node needs before its first start; `release`: the metadata.version,
        by default the newest; `arguments`: more of them."""
        # one argument: a generated cluster id may begin with "-"
        words = ["format", f"--cluster-id={cluster_id}", "--config", str(self.home / "server.properties"), *arguments]
        words += ["--release-version", release] if release else []
        done = subprocess.run(
            [*java(), "kafka.tools.StorageTool", *words],
            capture_output=True,
            text=True,
            timeout=START_SECONDS,
            check=False,
        )
        if done.returncode:
            raise RuntimeError(f"{self.name}: storage format failed: {done.stdout}{done.stderr}")

    def configure(self, changes: Mapping[str, str | None]) -> None:
        """Change the configuration of the next start; None removes a key."""
        for key, value in changes.items():
            if value is None:
                self.properties.pop(key, None)
            else:
                self.properties[key] = value
        _write_properties(self.home / "server.properties", self.properties)

    def start(self, ready: Callable[[], object] | None = None, seconds: float = START_SECONDS) -> None:
        """Start it and wait until `ready()`, by default until it logs that it started."""
        super().start(ready or self.is_started, seconds)

    def is_started(self) -> bool:
        """Return whether the server has logged that it started."""
        return self.printed("started (kafka.server.")


def connections(brokers: Sequence[HostPort], connect: str, timeout: float = 5) -> cluster.Connections:
    """Return how the tool reaches a plaintext cluster in ZooKeeper mode."""
    return cluster.Connections(
        tuple(brokers),
        Security.from_options(None, "client"),
        Security.from_options(None, "controller_client"),
        parse_zookeeper_connect(connect),
        ZkSecurity.from_options(None, "zookeeper_client"),
        timeout,
    )


def compile_java(source: pathlib.Path, home: pathlib.Path) -> pathlib.Path:
    """Compile a Java source against Kafka's jars; return the directory of its classes."""
    classes = home / "classes"
    command = ["javac", "-cp", class_path(), "-d", str(classes), str(source)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=START_SECONDS, check=False)
    if done.returncode:
        raise RuntimeError(f"{source.name}: {done.stderr}")
    return classes


def java(options: Sequence[str] = ()) -> List[str]:
    """Return the command line up to the main class."""
    archive = (
        [f"-XX:SharedArchiveFile={CLASS_ARCHIVE}", "-Xlog:disable", "-Xlog:all=error:stderr"]
        if CLASS_ARCHIVE.exists()
        else []
    )
    return ["java", *JVM_FLAGS, *archive, *options, "-cp", class_path()]


@contextlib.contextmanager
def zookeeper(
    home: pathlib.Path,
    name: str = "zookeeper",
    settings: Mapping[str, str] | None = None,
    jvm: Sequence[str] = (),
    host: str = "127.0.0.1",
    ready: Callable[[], object] | None = None,
) -> Iterator[ZooKeeperServer]:
    """Run a ZooKeeper server; `settings` adds to zoo.cfg, and its `secureClientPort` becomes `tls_address`.

    `ready` replaces the wait until `srvr` reports a mode, which a member without quorum never does.
    """
    address = HostPort(host, free_port(host))
    config = home / name / "zoo.cfg"
    command = [*java([_log4j(home), *jvm]), "org.apache.zookeeper.server.quorum.QuorumPeerMain", str(config)]
    server = ZooKeeperServer(home, name, address, command)
    server.home.mkdir()
    values = {
        "dataDir": str(server.home / "data"),
        "clientPort": str(address.port),
        "clientPortAddress": host,
        "tickTime": "500",
        "initLimit": "20",
        "syncLimit": "10",
        "admin.enableServer": "false",
        "4lw.commands.whitelist": "*",
        **(settings or {}),
    }
    if "secureClientPort" in values:
        server.tls_address = HostPort(host, int(values["secureClientPort"]))
    (server.home / "data").mkdir()
    if "myid" in values:
        (server.home / "data" / "myid").write_text(values.pop("myid"))
    config.write_text("".join(f"{key}={value}\n" for key, value in values.items()))
    try:
        server.start(ready or (lambda: b"Mode: " in _four_letters(address)))
        yield server
    finally:
        server.kill()


def zk_broker(
    home: pathlib.Path,
    node_id: int,
    zookeeper_connect: str,
    settings: Mapping[str, str | None] | None = None,
    listeners: Mapping[str, str] | None = None,
    jvm: Sequence[str] = (),
) -> contextlib.AbstractContextManager:
    """Run a broker in ZooKeeper mode, or in migration mode with the flag in `settings`."""
    properties = {
        "broker.id": str(node_id),
        "zookeeper.connect": zookeeper_connect,
        "inter.broker.protocol.version": "3.9",
        **_BROKER_SETTINGS,
    }
    return _kafka(home, f"broker-{node_id}", node_id, properties, settings, listeners, jvm, None)


def kraft_broker(
    home: pathlib.Path,
    node_id: int,
    voters: str,
    settings: Mapping[str, str | None] | None = None,
    listeners: Mapping[str, str] | None = None,
    jvm: Sequence[str] = (),
    cluster_id: str = CLUSTER_ID,
) -> contextlib.AbstractContextManager:
    """Run a KRaft broker of the quorum `voters` (`id@host:port,...`) with a formatted directory."""
    properties = {"process.roles": "broker", "node.id": str(node_id), **controller_keys(voters), **_BROKER_SETTINGS}
    return _kafka(home, f"broker-{node_id}", node_id, properties, settings, listeners, jvm, cluster_id)


def kraft_controller(
    home: pathlib.Path,
    node_id: int,
    address: HostPort,
    voters: str,
    settings: Mapping[str, str | None] | None = None,
    jvm: Sequence[str] = (),
    cluster_id: str = CLUSTER_ID,
    ready: Callable[[], object] | None = None,
    release: str = "",
    arguments: Sequence[str] = (),
) -> contextlib.AbstractContextManager:
    """Run a KRaft controller at `address` with a formatted directory; `settings` has its listener's security.

    One of several voters never logs alone that it started: pass `ready`, or use kraft_controllers. `arguments`: more
    of its formatting.
    """
    properties = {"process.roles": "controller", "node.id": str(node_id), **controller_keys(voters)}
    listeners = {"CONTROLLER": str(address)}
    name = f"controller-{node_id}"
    return _kafka(home, name, node_id, properties, settings, listeners, jvm, cluster_id, ready, release, arguments)


@contextlib.contextmanager
def kraft_controllers(
    home: pathlib.Path,
    addresses: Sequence[HostPort],
    settings: Mapping[str, str | None] | None = None,
    cluster_id: str = CLUSTER_ID,
    release: str = "",
) -> Iterator[List[KafkaServer]]:
    """Run a quorum of controllers 101, 102, ... at `addresses` with the same `settings`; all have started. `release`:
    the metadata.version, by default the newest."""
    voters = ",".join(f"{101 + index}@{address}" for index, address in enumerate(addresses))
    with contextlib.ExitStack() as stack:
        controllers = [
            stack.enter_context(
                kraft_controller(home, 101 + index, address, voters, settings, (), cluster_id, lambda: True, release)
            )
            for index, address in enumerate(addresses)
        ]
        for controller in controllers:
            wait_for(controller.is_started, START_SECONDS, f"{controller.name} started")
        yield controllers


class Migrating(NamedTuple):
    """A quorum of two controllers in migration mode, and the settings with which a broker joins it."""

    addresses: List[HostPort]
    controllers: List[KafkaServer]
    to_migration: Dict[str, str]


@contextlib.contextmanager
def migrating_controllers(
    home: pathlib.Path, zookeeper_connect: str, settings: Mapping[str, str] | None = None
) -> Iterator[Migrating]:
    """Run two controllers in migration mode for the ZooKeeper-mode brokers under `zookeeper_connect`."""
    cluster_id = json.loads(zk_wire.read_znodes(zookeeper_connect, ["/cluster/id"])["/cluster/id"][0])["id"]
    addresses = [HostPort("127.0.0.1", free_port()) for dummy in range(2)]
    voters = ",".join(f"{101 + index}@{address}" for index, address in enumerate(addresses))
    # with the default of 2 s the leader changes on a busy machine
    patient = {"controller.quorum.fetch.timeout.ms": "20000", "controller.quorum.request.timeout.ms": "10000"}
    keys = {**migration_keys(zookeeper_connect), **patient, **(settings or {})}
    with kraft_controllers(home, addresses, keys, cluster_id) as controllers:
        yield Migrating(addresses, controllers, {**keys, **controller_keys(voters)})


def controller_keys(voters: str) -> Dict[str, str]:
    """Return the settings with which a broker or controller finds the quorum."""
    return {
        "controller.quorum.voters": voters,
        "controller.listener.names": "CONTROLLER",
        "listener.security.protocol.map": "CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT,SSL:SSL,SASL_SSL:SASL_SSL,"
        "SASL_PLAINTEXT:SASL_PLAINTEXT",
    }


def migration_keys(zookeeper_connect: str) -> Dict[str, str]:
    """Return the settings of migration mode (KIP-866); a broker also needs controller_keys."""
    return {"zookeeper.connect": zookeeper_connect, "zookeeper.metadata.migration.enable": "true"}


_BROKER_SETTINGS = {
    "offsets.topic.replication.factor": "1",
    "offsets.topic.num.partitions": "3",
    "transaction.state.log.replication.factor": "1",
    "transaction.state.log.min.isr": "1",
    "transaction.state.log.num.partitions": "3",
    "group.initial.rebalance.delay.ms": "0",
    "broker.heartbeat.interval.ms": "500",
}


@contextlib.contextmanager
def _kafka(
    home: pathlib.Path,
    name: str,
    node_id: int,
    properties: Mapping[str, str],
    settings: Mapping[str, str | None] | None,
    listeners: Mapping[str, str] | None,
    jvm: Sequence[str],
    cluster_id: str | None,
    ready: Callable[[], object] | None = None,
    release: str = "",
    arguments: Sequence[str] = (),
) -> Iterator[KafkaServer]:
    if listeners is None:
        listeners = {"PLAINTEXT": f"127.0.0.1:{free_port()}"}
    addresses = {}
    for listener, text in listeners.items():
        host, dummy, port = text.rpartition(":")
        addresses[listener] = HostPort(host.strip("[]"), int(port))
    config = home / name / "server.properties"
    command = [*java([_log4j(home), *jvm]), "kafka.Kafka", str(config)]
    server = KafkaServer(home, name, list(addresses.values())[0], command)  # noqa: RUF015 (next() in a generator)
    server.node_id = node_id
    server.listeners = addresses
    server.home.mkdir()
    server.properties = {
        **properties,
        "log.dirs": str(server.home / "data"),
        "listeners": ",".join(f"{listener}://{address}" for listener, address in addresses.items()),
    }
    server.configure(settings or {})
    try:
        if cluster_id is not None:
            server.format(cluster_id, release, arguments)
        server.start(ready)
        yield server
    finally:
        server.kill()


def _write_properties(path: pathlib.Path, properties: Mapping[str, str]) -> None:
    path.write_text("".join(f"{key}={value}\n" for key, value in properties.items()))


def _log4j(home: pathlib.Path) -> str:
    config = home / "log4j.properties"
    config.write_text(_LOG4J)
    return f"-Dlog4j.configuration=file:{config}"


def libs_of(release: str) -> pathlib.Path:
    """Return the directory of the jars of another release of Kafka, resolved by Maven at first."""
    argv = [sys.executable, "-m", "tests.system.testbed", "jars", release]
    subprocess.run(argv, cwd=BUILD.parent, check=True, timeout=900)
    return BUILD / f"kafka-{release}" / "libs"


def _four_letters(address: HostPort) -> bytes:
    try:
        with socket.create_connection(address, timeout=1) as sock:
            sock.sendall(b"srvr")
            return sock.makefile("rb").read()
    except OSError:
        return b""
