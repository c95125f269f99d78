# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The cluster of the suite along a migration: ZooKeeper, controller 3000, broker 1, and in KRaft mode broker 2."""

from __future__ import annotations

import contextlib
import json
import pathlib
import re
import shutil
import subprocess
from typing import Any, Callable, Dict, Iterator, List, Mapping, Tuple

import pyarrow as pa
import pyarrow.parquet as pq
from ansible_collections.quorumshift.kafka.plugins.module_utils.core.migration import kraft_config
from ansible_collections.quorumshift.kafka.plugins.module_utils.formats.metadata import metadata_summary
from ansible_collections.quorumshift.kafka.plugins.module_utils.formats.zookeeper import znodes
from ansible_collections.quorumshift.kafka.plugins.module_utils.probes.zookeeper import zookeeper
from ansible_collections.quorumshift.kafka.plugins.module_utils.snapshots import metadata_snapshot
from confluent_kafka.admin import AdminClient, AlterConfigOpType, ConfigEntry, ConfigResource
from quorumshift_spark.views import baseline as baselines

from tests.integration import seeded, servers
from tests.integration.seeded import CHROOT
from tests.spark import parity
from tests.spark.parity import Run
from tests.spark.planted import logs, table

# On a small machine Spark takes the processor for seconds
SETTINGS = {**seeded.SETTINGS, "zookeeper.session.timeout.ms": "20000"}
ENCODER = SETTINGS["password.encoder.secret"]
LOGIN = {
    "security_protocol": "SASL_PLAINTEXT",
    "sasl_mechanism": "PLAIN",
    "sasl_username": "admin",
    "sasl_password": "x",
}
CHANGES = pathlib.Path(__file__).with_name("MetadataChanges.java")
STALE = pathlib.Path(__file__).with_name("StaleMetadata.java")
PASSWORD = "listener.name.external.ssl.key.password"
OTHER_PASSWORD = "listener.name.other.ssl.key.password"
ONLY_IN_ZOOKEEPER_MODE = (
    "broker.id",
    "zookeeper.connect",
    "zookeeper.metadata.migration.enable",
    "zookeeper.session.timeout.ms",
    "inter.broker.protocol.version",
    "password.encoder.secret",
)
WIDE = 14  # partitions of the topic `wide`: one for each row
ACL_PARTS = ("principal", "host", "operation", "permission", "pattern", "type", "name")


class World:
    """The servers, and what a job is given. `client`: ZooKeeper below the chroot; `tokens`: the delegation tokens."""

    snapshots: parity.Snapshots
    log: pathlib.Path
    controller: servers.KafkaServer
    second: servers.KafkaServer

    def __init__(self, stack: contextlib.ExitStack, home: pathlib.Path) -> None:
        self._stack = stack
        self.home = home
        self._others: set[str] = set()  # keys that broker 2 was started with besides its own
        self.zk = stack.enter_context(servers.zookeeper(home))
        self.broker = stack.enter_context(seeded.broker(home, self.zk, SETTINGS))
        seeded.tools(more(home, self.broker))
        # A broker in ZooKeeper mode hears of its configs later than the client does
        admin = AdminClient({"bootstrap.servers": str(self.broker.listeners["PLAINTEXT"])})
        of_broker = ConfigResource(ConfigResource.Type.BROKER, "1")
        servers.wait_for(
            lambda: OTHER_PASSWORD in admin.describe_configs([of_broker])[of_broker].result(30),
            60,
            "the broker's configs",
        )
        self.client = stack.enter_context(zookeeper.connect(self.zk.connect + CHROOT))
        self.tokens = sorted(self.client.get_children(znodes.DELEGATION_TOKENS))
        self.views: Dict[str, Any] = {
            "zookeeper": {"connect": self.zk.connect + CHROOT, "password_encoder_secrets": [ENCODER]},
            "brokers": [{"id": 1, "address": str(self.broker.listeners["SASL"]), "client": LOGIN}],
            "settings": sorted(kraft_config.APPLIED_BY_CONTROLLERS),
        }
        self._numbers = iter(range(1, 1000))
        self._classes = servers.compile_java(STALE, home)
        self.mark = -1

    def run(self, gate: str, views: Mapping[str, Any] | None = None, **more: Any) -> Run:
        """Run the job of a gate. `views`: on top of ZooKeeper and the brokers; None takes one out."""
        given = {name: view for name, view in {**self.views, **(views or {})}.items() if view is not None}
        answering = more.pop("answering", None)
        bounds = {"shown": 2000, **more.pop("bounds", {})}
        if answering:
            bounds["log_refresh_s"] = 60
        run = Run(self.home, gate, given, cluster_id=more.pop("cluster_id", servers.CLUSTER_ID), bounds=bounds, **more)
        if answering:
            with answering.answering(run):
                return run.go()
        return run.go()

    # --- the migration ---

    def migrate(self) -> None:
        """Start the controller, and broker 1 in migration mode; return once ZooKeeper has the copy."""
        self.broker.stop()
        migrating = self._stack.enter_context(seeded.migration(self.home, self.zk, self.broker))
        self.controller = migrating.controller
        self.controller.stop()
        self._blocks(self.controller, "org.apache.kafka.metadata.migration.KRaftMigrationDriver=TRACE", "behind")
        self.controller.start()
        migrating.join()
        self._voters = migrating.voters
        self.views["controllers"] = [{"id": 3000, "address": str(self.controller.address)}]
        self.log = migrating.controller.home / "data" / "__cluster_metadata-0"
        self.snapshots = parity.Snapshots(self.home, str(self.log), self.zk.connect + CHROOT)
        servers.wait_for(lambda: self.snapshots.fence()["migration_offset"] > 0, 60, "the copy")
        self.unfenced(1)
        # In ZooKeeper mode Kafka 3.9.2 sanitizes the address, and then rejects it
        at = ("--bootstrap-server", str(self.broker.listeners["PLAINTEXT"]))
        entity, rate = ("--entity-type", "ips", "--entity-name", "::1"), "connection_creation_rate=8"
        seeded.tools([["kafka.admin.ConfigCommand", *at, "--alter", *entity, "--add-config", rate]])
        self.settle()

    def to_kraft(self) -> None:
        """Restart broker 1 in KRaft mode, and start broker 2. The metadata of broker 1 can be made stale."""
        kraft = {
            "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
            **servers.controller_keys(self._voters),
            "listener.security.protocol.map": SETTINGS["listener.security.protocol.map"],
        }
        self.broker.stop()
        self.broker.configure(
            {**dict.fromkeys(ONLY_IN_ZOOKEEPER_MODE), "process.roles": "broker", "node.id": "1", **kraft}
        )
        self._blocks(self.broker, "org.apache.kafka.image.loader.MetadataLoader=DEBUG", "stale")
        self.broker.start()
        listeners = {name: f"127.0.0.1:{servers.free_port()}" for name in ("PLAINTEXT", "SASL")}
        settings = {name: value for name, value in SETTINGS.items() if name not in ONLY_IN_ZOOKEEPER_MODE}
        self._of_second = {**settings, **kraft}
        self.second = self._stack.enter_context(
            servers.kraft_broker(self.home, 2, self._voters, self._of_second, listeners)
        )
        self.views["brokers"].append({"id": 2, "address": str(self.second.listeners["SASL"]), "client": LOGIN})
        self.unfenced(1)
        self.unfenced(2)
        at = ("--bootstrap-server", str(self.second.listeners["PLAINTEXT"]))
        seeded.tools([["org.apache.kafka.tools.TopicCommand", *at, "--create", "--topic", "pair", *_PAIR]])
        self.settle()

    def directory_ids(self) -> List[List[str]]:
        """Return the ids of the log directories of brokers 1 and 2, from meta.properties."""
        metas = [
            pathlib.Path(server.properties["log.dirs"], "meta.properties") for server in (self.broker, self.second)
        ]
        return [re.findall(r"^directory\.id=(.+)$", meta.read_text(), re.M) for meta in metas]

    def restart_second(self, settings: Mapping[str, str | None]) -> None:
        """Restart broker 2 with its own settings and these."""
        self.second.stop()
        self.second.configure({**dict.fromkeys(self._others), **self._of_second, **settings})
        self._others = set(settings)
        self.second.start()
        self.unfenced(2)
        self.settle()

    def _blocks(self, server: servers.KafkaServer, logger: str, file: str) -> None:
        """Let a thread of the next start of a server wait in its logger while a file exists (StaleMetadata.java)."""
        server.add_classes(self._classes)
        with open(self.home / "log4j.properties", "a") as config:
            config.write(
                f"log4j.logger.{logger}, {file}\n"
                f"log4j.additivity.{logger.partition('=')[0]}=false\n"
                f"log4j.appender.{file}=org.apache.log4j.ConsoleAppender\n"
                f"log4j.appender.{file}.layout=org.apache.log4j.SimpleLayout\n"
                f"log4j.appender.{file}.filter.1=StaleMetadata\n"
                f"log4j.appender.{file}.filter.1.when={self.home / file}\n"
            )

    @contextlib.contextmanager
    def blocked(self, file: str) -> Iterator[None]:
        """Until the block ends, broker 1 publishes no metadata (`stale`) or dual-write writes nothing (`behind`)."""
        (self.home / file).touch()
        try:
            yield
        finally:
            (self.home / file).unlink()

    def restart_without_security(self) -> None:
        """Restart both brokers without an authorizer and delegation tokens."""
        off = {"authorizer.class.name": None, "delegation.token.secret.key": None}
        for server in (self.broker, self.second):
            server.stop()
            server.configure(off)
            server.start()
        for number in (1, 2):
            self.unfenced(number)
        self.settle()

    def unfenced(self, broker: int) -> None:
        """Wait until a broker is unfenced in the log."""

        def found():
            registered = metadata_summary.summarise(str(self.log))["brokers"].get(str(broker))
            return registered and not registered["fenced"]

        servers.wait_for(found, 60, f"broker {broker} to be unfenced in the log")

    def settle(self) -> None:
        """Note the end of the log: planted records come after it. The fence passes it."""
        self.mark = metadata_summary.summarise(str(self.log))["log_end_offset"]
        servers.wait_for(lambda: self.snapshots.fence()["migration_offset"] >= self.mark, 60, "dual-write")

    def set_config(self, topic: str, name: str, value: str | None) -> None:
        """Set a topic config, or remove it (None), without the seconds that a tool takes to start."""
        admin = AdminClient({"bootstrap.servers": str(self.broker.listeners["PLAINTEXT"])})
        operation = AlterConfigOpType.DELETE if value is None else AlterConfigOpType.SET
        entry = ConfigEntry(name, value, incremental_operation=operation)
        resource = ConfigResource(ConfigResource.Type.TOPIC, topic, incremental_configs=[entry])
        admin.incremental_alter_configs([resource])[resource].result(60)

    # --- planting ---

    def fence_now(self) -> Dict[str, int]:
        """Return a fence after all changes in ZooKeeper up to now."""
        self.client.set("/config", self.client.get("/config")[0])
        return self.snapshots.fence_after(self.client.get("/config")[1].mzxid)

    @contextlib.contextmanager
    def changing(self, pause_ms: int) -> Iterator[Dict[str, Any]]:
        """Change metadata until the block ends (MetadataChanges.java). Yields a dict that then has what was changed."""
        changed: Dict[str, Any] = {}
        at = str(self.second.listeners["PLAINTEXT"])
        command = [*servers.java(), str(CHANGES), at, str(pause_ms)]
        process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        try:
            assert process.stdout.readline() == "started\n"
            yield changed
            output = process.communicate("\n", timeout=120)[0]
            assert process.returncode == 0, output
            changed.update(dict(re.findall(r"(\w[\w ]*)=(\d+)", output)))
        finally:
            process.kill()

    @contextlib.contextmanager
    def znodes(self) -> Iterator[Znodes]:
        """Yield what changes ZooKeeper; its changes are reverted at the end of the block."""
        planted = Znodes(self.client)
        try:
            yield planted
        finally:
            planted.revert()

    def registration(self, broker: int) -> bytes:
        """Return the registration of a broker in ZooKeeper mode."""
        value = {
            "version": 5,
            "host": "127.0.0.1",
            "port": 1,
            "endpoints": ["PLAINTEXT://127.0.0.1:1"],
            "listener_security_protocol_map": {"PLAINTEXT": "PLAINTEXT"},
            "features": {},
            "timestamp": "1",
        }
        return json.dumps({**value, "rack": str(broker)}).encode()

    def unpacked(self) -> Dict[str, Any]:
        """Return views.metadata_log of a snapshot of the live log, as a directory."""
        cut = self.snapshots.cut()
        directory = self.home / f"unpacked-{next(self._numbers)}"
        metadata_snapshot.unpack(cut["archive"], cut["sha256"], str(directory))
        return {"directory": str(directory), "end_offset": cut["end_offset"]}

    def planted_log(self, records: logs.Records, room: int = 0) -> Dict[str, Any]:
        """Return views.metadata_log of a snapshot with planted records, and with room for more of them."""
        wanted = max(len(records), room) + 2
        servers.wait_for(lambda: len(logs.places(self.log, self.mark)) >= wanted, 120, f"{wanted} NoOp records")
        view = self.unpacked()
        logs.rewrite(pathlib.Path(view["directory"]), records, self.mark)
        return view

    def copied(self, view: Mapping[str, Any]) -> pathlib.Path:
        """Return a copy of the directory of a log."""
        target = self.home / f"copied-{next(self._numbers)}"
        shutil.copytree(view["directory"], target)
        return target

    def baseline(self, of: Run, zk: Znodes | None = None) -> Baseline:
        """Return the entities of a run, to be edited."""
        return Baseline(of.baseline["path"], self.home / f"baseline-{next(self._numbers)}.parquet", zk)


_PAIR = ("--replica-assignment", "1:2")


class Baseline:
    """The entities of a run, which are edited as a baseline. `zk`: changes ZooKeeper beside it."""

    def __init__(self, source: str, target: pathlib.Path, zk: Any) -> None:
        self.zk: Znodes = zk
        self._source = source
        self._target = target
        self._rows = {(row["view"], row["kind"], _key(row)): row for row in pq.read_table(source).to_pylist()}

    def field(self, view: str, kind: str, key: Any, name: str, value: Any) -> None:
        """Set a field of an entity."""
        row = self._rows[(view, kind, table.text(key))]
        if kind == "partition":
            assert row[name] != value
            row[name] = value
            return
        fields = json.loads(row["fields"])
        assert name in fields and fields[name] != value, f"{kind} {key} {name}: {fields}"
        row["fields"] = _json({**fields, name: value})

    def add(self, view: str, kind: str, key: Any, fields: Mapping[str, Any]) -> None:
        """Add an entity."""
        at = _json({"zxid": 1} if view == "zookeeper" else {"offset": 1})
        assert (view, kind, table.text(key)) not in self._rows
        row = {"view": view, "kind": kind, "key": table.text(key), "fields": _json(fields), "at": at}
        if kind == "partition":
            row = {"view": view, "kind": kind, "topic": key[0], "partition": key[1], "changed": 1, **fields}
        self._rows[(view, kind, table.text(key))] = row

    def remove(self, view: str, kind: str, key: Any) -> None:
        """Remove an entity."""
        del self._rows[(view, kind, table.text(key))]

    def write(self, about: Mapping[str, Any] | None = None) -> Dict[str, str]:
        """Write it and return views.baseline. `about`: what the file says of itself, instead of what it said."""
        said = {**baselines.about(self._source), **(about or {})}
        with baselines.BaselineWriter(str(self._target), said, parity.DIGEST_KEY) as writer:
            writer.write(pa.Table.from_pylist([*self._rows.values()], schema=baselines.SCHEMA))
        return {"path": str(self._target)}


def _key(row: Mapping[str, Any]) -> str:
    """Return the key of a row: a partition has columns of its own (views.baseline)."""
    return table.text([row["topic"], row["partition"]]) if row["kind"] == "partition" else row["key"]


def _json(value: Any) -> str:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False)


class PlantedSnapshots(parity.Snapshots):
    """Snapshots with planted records: every new one has them, as if the controller had written them."""

    def __init__(self, world: World, records: logs.Records) -> None:
        super().__init__(world.home, str(world.log), world.zk.connect + CHROOT)
        self._world = world
        self._records = records

    def cut(self, above: int | None = None) -> Dict[str, Any]:
        servers.wait_for(
            lambda: above is None or metadata_summary.summarise(str(self._world.log))["log_end_offset"] > above,
            30,
            f"the log to pass {above}",
        )
        return self._world.planted_log(self._records)


class OldAnswers(parity.Snapshots):
    """Answers of another job."""

    def __init__(self, world: World) -> None:
        super().__init__(world.home, str(world.log), world.zk.connect + CHROOT)

    def cut(self, above: int | None = None) -> Dict[str, Any]:
        return {**super().cut(above), "nonce": "an old nonce"}


class ChangingAnswers(parity.Snapshots):
    """Answers of a cluster of which a topic config changes before each snapshot of the log but the first.

    :arg change: (topic, config, first value, which then grows by 1).
    """

    def __init__(self, world: World, change: Tuple[str, str, int]) -> None:
        super().__init__(world.home, str(world.log), world.zk.connect + CHROOT)
        self._world, (self._topic, self._name, self._value) = world, change

    def cut(self, above: int | None = None) -> Dict[str, Any]:
        if above is not None:
            self._world.set_config(self._topic, self._name, f"{self._value}")
            self._value += 1
        return super().cut(above)


class Znodes:
    """Changes znodes, and reverts that."""

    def __init__(self, client: Any) -> None:
        self._client = client
        self._before: Dict[str, bytes | None] = {}

    def data(self, path: str, data: bytes | None) -> None:
        """Create a znode or set its data."""
        exists = self._client.exists(path)
        if path not in self._before:
            self._before[path] = self._client.get(path)[0] if exists else _ABSENT
        if exists:
            self._client.set(path, data)
        else:
            parent = path.rpartition("/")[0]
            while parent and not self._client.exists(parent):
                self._before.setdefault(parent, _ABSENT)
                parent = parent.rpartition("/")[0]
            self._client.create(path, data, makepath=True)

    def read(self, path: str) -> bytes:
        """Return the data of a znode."""
        return self._client.get(path)[0]

    def config_of(self, path: str) -> Dict[str, str]:
        """Return the configs of an entity."""
        return dict(json.loads(self.read(path))["config"])

    def edit(self, path: str, change: Callable[[Dict[str, Any]], Any]) -> None:
        """Change the JSON of a znode in place."""
        value = json.loads(self._client.get(path)[0])
        change(value)
        self.data(path, json.dumps(value).encode())

    def json(self, path: str, **members: Any) -> None:
        """Set members of the JSON of a znode."""
        self.edit(path, lambda value: value.update(members))

    def configs(self, path: str, changes: Mapping[str, Any]) -> None:
        """Set configs or quotas of an entity; None removes one."""
        exists = self._client.exists(path)
        value = json.loads(self._client.get(path)[0]) if exists else {"version": 1, "config": {}}
        value["config"] = {k: v for k, v in {**value["config"], **changes}.items() if v is not None}
        self.data(path, json.dumps(value).encode())

    def touch(self, path: str) -> None:
        """Write the same data again: a change that changes nothing but the zxid."""
        self.data(path, self._client.get(path)[0])

    def delete(self, path: str) -> None:
        """Delete a znode and what is below it."""
        for node in sorted(zookeeper.read_tree(self._client, path), key=lambda node: -node.path.count("/")):
            self._before.setdefault(node.path, node.data)
            self._client.delete(node.path)

    def revert(self) -> None:
        """Bring back all that was changed."""
        for path in sorted(self._before, key=lambda path: path.count("/")):
            data = self._before[path]
            if data is not _ABSENT and self._client.exists(path):
                self._client.set(path, data)
            elif data is not _ABSENT:
                self._client.create(path, data, makepath=True)
        for path in sorted(self._before, key=lambda path: -path.count("/")):
            if self._before[path] is _ABSENT and self._client.exists(path):
                self._client.delete(path, recursive=True)
        self._before.clear()


_ABSENT: Any = object()


def more(home: pathlib.Path, broker: servers.KafkaServer) -> List[List[str]]:
    """Return the commands that add to seeded.seed what the rows change."""
    at = ["--bootstrap-server", str(broker.listeners["PLAINTEXT"])]
    as_admin = ["--bootstrap-server", str(broker.listeners["SASL"])]
    as_admin += ["--command-config", str(home / "client.properties")]

    def topic(name, *options):
        return ["org.apache.kafka.tools.TopicCommand", *at, "--create", "--topic", name, *options]

    def alter(kind, name, configs, *entity):
        return [
            *("kafka.admin.ConfigCommand", *at, "--alter", "--entity-type", kind, "--entity-name", name),
            *(*entity, "--add-config", configs),
        ]

    return [
        topic("wide", "--partitions", str(WIDE)),
        topic("twice", "--partitions", "1"),
        # the tool wants all passwords of a broker at once
        alter(
            "brokers",
            "1",
            f"log.cleaner.io.buffer.size=600000,{PASSWORD}=topsecret,{OTHER_PASSWORD}=othersecret",
        ),
        alter("users", "carol", "SCRAM-SHA-256=[iterations=4096,password=c]"),
        alter("users", "dave", "SCRAM-SHA-512=[iterations=4096,password=d]"),
        alter("users", "a b", "SCRAM-SHA-512=[iterations=4096,password=e]"),
        alter("users", "zoë/日本", "producer_byte_rate=77"),
        alter("users", "erin", "producer_byte_rate=78", "--entity-type", "clients", "--entity-name", "app 2"),
        *(
            [
                *("kafka.admin.AclCommand", *at, "--add", "--allow-principal", "User:alice", "--operation", "Read"),
                *("--allow-host", "10.0.0.5", "--topic", f"acl-{part}"),
            ]
            for part in (*ACL_PARTS, "missing")
        ),
        [
            *("org.apache.kafka.tools.DelegationTokenCommand", *as_admin, "--create"),
            *("--max-life-time-period", "86400000", "--renewer-principal", "User:carol"),
        ],
        [
            *("org.apache.kafka.tools.DelegationTokenCommand", *as_admin, "--create"),
            *("--max-life-time-period", "86400000", "--renewer-principal", "User:dave"),
        ],
    ]


def other_key(credential: str, part: str = "stored_key") -> str:
    """Return a SCRAM credential of ZooKeeper with another key."""
    return re.sub(f"{part}=....", f"{part}=AAAA", credential)
