# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A simulated cluster: hosts with real files in a directory of their own, services that start and stop at once, and
what ZooKeeper, the quorum and the brokers answer, derived from the nodes that run.

Everything is below one directory, so that a copy of the directory is a copy of the world. The collection's modules work
on the real files; where they would ask systemd, Kafka or ZooKeeper, they ask this (tools.failure_proof.modules).
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import time
import uuid
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from ansible_collections.quorumshift.kafka.plugins.module_utils.core.migration import kraft_config
from ansible_collections.quorumshift.kafka.plugins.module_utils.core.run import node_key
from ansible_collections.quorumshift.kafka.plugins.module_utils.settings import properties

CLUSTER = "phUKKf3TSny1o9Yap379dw"
BROKERS = {"b1": 1, "b2": 2, "b3": 3, "b4": 4}
CONTROLLERS = {"c1": 101, "c2": 102, "c3": 103}
IDS = {**BROKERS, **CONTROLLERS}
RACKS = {"b1": "a", "b2": "a", "b3": "b", "b4": "b"}
ELECTED = ("b3", "b1", "b2", "b4")  # who becomes ZooKeeper's controller; the canary is b4, so b1 and b2 are a batch
PROBE = "p1"
SOURCES, DESTINATIONS = ("s1", "s2", "s3"), ("d1", "d2", "d3")
ZOOKEEPER, OTHER_ZOOKEEPER = "127.0.0.1:2181/kafka", "127.0.0.1:2191/kafka"
KAFKA, OLD_KAFKA, NEW_KAFKA = "3.9.1", "3.8.1", "3.9.2"
# One replica in each rack, so that the brokers of a rack restart together
TOPICS = {"orders": [[1, 3], [3, 2], [2, 4], [4, 1]], "payments": [[1, 4], [3, 1]], "__consumer_offsets": [[2, 3]]}
PIDS = 10_000_000  # above every real process id
BACKUP = b"backup"  # what a backup of ZooKeeper has here
END_OFFSET = 13000
ZXID = 500  # of every server of a move to another ensemble
METADATA_VERSION = 21  # 3.9-IV0


class World:
    """A world below `root`."""

    def __init__(self, root: str | Path) -> None:
        self.root = Path(root)

    # Files ----------------------------------------------------------------------------------------------------------

    def host(self, name: str) -> Path:
        """Return the directory of a host."""
        return self.root / "hosts" / name

    def config_file(self, name: str) -> Path:
        """Return the properties file of a host's node."""
        return self.host(name) / "etc" / ("server.properties" if name in BROKERS else "controller.properties")

    def log_dir(self, name: str) -> Path:
        """Return the log directory of a host's node."""
        return self.host(name) / "data"

    def state_dir(self, name: str) -> Path:
        """Return quorumshift_state_dir of a host."""
        return self.host(name) / "state"

    def node_dir(self, name: str) -> Path:
        """Return the directory of a host's node below it."""
        key = node_key.node_key("broker" if name in BROKERS else "controller", IDS[name])
        return self.state_dir(name) / CLUSTER / key

    def inventory(self) -> dict[str, Any]:
        """Return the Ansible inventory."""
        common = {
            "ansible_connection": "scripted",
            "ansible_pipelining": True,
            "ansible_python_interpreter": "/usr/bin/python3",
            "ansible_remote_tmp": str(self.root / "remote_tmp"),
            "quorumshift_bootstrap_servers": ["127.0.0.1:9001", "127.0.0.1:9003"],
            "quorumshift_zookeeper_connect": ZOOKEEPER,
            "quorumshift_artifacts_dir": str(self.root / "artifacts"),
            "quorumshift_probe_host": PROBE,
            "quorumshift_kafka_user": "root",
            "quorumshift_stable_s": 0,
            "quorumshift_soak": "0s",
            "zk_migrate_source_connect": ZOOKEEPER,
            "zk_migrate_destination_connect": OTHER_ZOOKEEPER,
            "zk_migrate_destination_servers": {
                str(11 + number): f"127.0.0.1:{2888 + number}:{3888 + number}" for number in range(len(DESTINATIONS))
            },
        }
        hosts = {name: self._variables(name) for name in (*IDS, PROBE, *SOURCES, *DESTINATIONS)}
        servers = self.state()["stubs"].get("ensemble", {})
        return {
            "zookeeper": {"hosts": {name: hosts[name] for name in servers}},
            "all": {"vars": common, "hosts": {"localhost": {"ansible_connection": "scripted"}, PROBE: hosts[PROBE]}},
            "kafka_broker": {"hosts": {name: hosts[name] for name in BROKERS}},
            "kafka_controller": {"hosts": {name: hosts[name] for name in CONTROLLERS}},
            "zookeeper_source": {"hosts": {name: hosts[name] for name in SOURCES}},
            "zookeeper_destination": {"hosts": {name: hosts[name] for name in DESTINATIONS}},
        }

    def _variables(self, name: str) -> dict[str, Any]:
        found = {
            "ansible_host": "127.0.0.1",
            "quorumshift_state_dir": str(self.state_dir(name)),
            "quorumshift_kafka_home": str(self.host(name) / "kafka"),
            "upgrade_home": str(self.host(name) / f"kafka-{NEW_KAFKA}"),
        }
        if name in IDS:
            role = "broker" if name in BROKERS else "controller"
            found[f"quorumshift_{role}_config_file"] = str(self.config_file(name))
            found[f"quorumshift_{role}_log_file"] = str(self.host(name) / "kafka.log")
        if name in CONTROLLERS:
            found["quorumshift_node_id"] = CONTROLLERS[name]
            found["quorumshift_controller_log_dir"] = str(self.log_dir(name))
            found["quorumshift_controller_port"] = 9000 + CONTROLLERS[name]
        if name in (*SOURCES, *DESTINATIONS):
            found["zk_migrate_config_file"] = str(self.host(name) / "etc" / "zoo.cfg")
        if name in DESTINATIONS:
            found["zk_migrate_myid"] = 11 + DESTINATIONS.index(name)
        return found

    # State ----------------------------------------------------------------------------------------------------------

    @contextlib.contextmanager
    def changing(self) -> Iterator[dict[str, Any]]:
        """Yield the state of services and cluster, to change it."""
        handle = os.open(self.root / "lock", os.O_RDWR | os.O_CREAT, 0o600)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX)
            state = self.state()
            yield state
            self._settle(state)
            state["changes"] = state.get("changes", 0) + 1
            (self.root / "world.new").write_text(json.dumps(state))
            os.replace(self.root / "world.new", self.root / "world.json")
        finally:
            os.close(handle)

    def state(self) -> dict[str, Any]:
        """Return the state of services and cluster."""
        return json.loads((self.root / "world.json").read_text())

    def create(
        self,
        phase: str = "zk",
        version: str = KAFKA,
        protocol: str = "3.9",
        metadata_version: int = METADATA_VERSION,
        observers: bool = False,
        accepted: Sequence[str] = (),
        ensemble: bool = False,
    ) -> None:
        """Make a cluster in a phase: `zk`, `hybrid`, `dual_write` or `finalized`. `protocol`: the brokers'
        inter.broker.protocol.version; `metadata_version`: of the controllers; `observers`: brokers use observers that
        join the source, as before the cut of a move to another ensemble; `accepted`: destination servers that accepted
        their promotion, as after a cut that failed; `ensemble`: the group zookeeper has three servers."""
        (self.root / "tmp").mkdir()
        for name in (*IDS, PROBE, "localhost", *SOURCES, *DESTINATIONS):
            for part in ("etc", "state", "tmp"):
                (self.host(name) / part).mkdir(parents=True)
            if name in (*SOURCES, *DESTINATIONS):
                (self.host(name) / "etc" / "zoo.cfg").write_text("clientPort=2181\n")
            for release in (version, NEW_KAFKA):
                home = self.host(name) / f"kafka-{release}"
                (home / "libs").mkdir(parents=True)
                (home / "libs" / f"kafka_2.13-{release}.jar").touch()
                (home / "bin").mkdir()
                for script in ("kafka-server-start.sh", "kafka-storage.sh"):
                    (home / "bin" / script).touch(0o755)
            (self.host(name) / "kafka").symlink_to(self.host(name) / f"kafka-{version}")
        services = {}
        for name in IDS:
            services[name] = {"active": False, "masked": False, "mode": None, "invocation": "", "started_at": None}
        for name, number in BROKERS.items():
            self.config_file(name).write_text(_properties(self._broker_file(name, number, protocol)))
            self.format(name, {"broker.id": str(number), "cluster.id": CLUSTER, "version": "0"})
        state = {
            "services": services,
            "versions": dict.fromkeys(IDS, version),
            "zookeeper": {"owner": "zookeeper", "controller": 3, "epoch": 2, "migration": None, "version": 0},
            "quorum": {"leader": None, "epoch": 0},
            "log": {"state": None, "brokers": {}, "controllers": {}},
            "metadata_version": metadata_version,
            "reassigning": {},
            "stubs": {"ensemble": {name: {"archive": None, "stopped": False} for name in SOURCES}} if ensemble else {},
        }
        (self.root / "world.json").write_text(json.dumps(state))
        if observers:
            state["stubs"]["members"] = {name: {"mode": "observer", "config": "observer"} for name in DESTINATIONS}
            for name in accepted:
                own = {"state": "promoting", "mode": None, "config": "voter", "id": "earlier", "rules": 2}
                state["stubs"]["members"][name] = own
            (self.root / "world.json").write_text(json.dumps(state))
            for name in BROKERS:
                self._edit(name, {"zookeeper.connect": OTHER_ZOOKEEPER})
        for name in BROKERS:
            self.start(name)
        with self.changing() as state:
            state["zookeeper"]["controller"] = BROKERS[ELECTED[0]]
        if phase in ("hybrid", "dual_write", "finalized"):
            self._migrate(kraft=phase != "hybrid", final=phase == "finalized")

    def _migrate(self, kraft: bool, final: bool) -> None:
        """Take the cluster forward, with what a migration leaves on the hosts."""
        voters = ",".join(f"{number}@127.0.0.1:{9000 + number}" for number in CONTROLLERS.values())
        broker = properties.parse(self.config_file("b1").read_bytes())
        for name, number in CONTROLLERS.items():
            own = (number, f"127.0.0.1:{9000 + number}", voters, str(self.log_dir(name)), "CONTROLLER", "PLAINTEXT")
            values = kraft_config.controller_properties(broker, *own, ["User:ANONYMOUS"], {})
            self.config_file(name).write_text(_properties(values))
            self.format(name, {"node.id": str(number), "cluster.id": CLUSTER, "version": "1"})
            backup = self.state_dir(name) / CLUSTER / "backup"
            backup.mkdir(parents=True)
            (backup / "zookeeper-20261101T000000-aaaa.jsonl.gz").write_bytes(BACKUP)
        for name in CONTROLLERS:
            self.start(name)
        for name, number in BROKERS.items():
            changes = kraft_config.to_migration_mode(self._values(name), number, voters, "CONTROLLER", "PLAINTEXT", {})
            self._edit(name, changes, "zk_migration")
            self.start(name)
        for name, number in BROKERS.items() if kraft else ():
            self._edit(name, kraft_config.to_kraft_mode(self._values(name), number), "kraft")
            self.start(name)
        for name in CONTROLLERS if final else ():
            self._edit(name, kraft_config.to_final_controller(self._values(name)), "controller_final")
            self.start(name)

    def _values(self, name: str) -> dict[str, str]:
        return properties.parse(self.config_file(name).read_bytes())

    def _edit(self, name: str, changes: Mapping[str, str | None], mode: str = "") -> None:
        """Change a host's properties file; keep it as it was before a change to `mode`."""
        path = self.config_file(name)
        if mode:
            kept = self.node_dir(name) / "configs"
            kept.mkdir(parents=True, exist_ok=True)
            (kept / f"{path.name}.before-{mode}").write_text(path.read_text())
        path.write_bytes(properties.edit(path.read_bytes(), changes))

    def format(self, name: str, meta: dict[str, str]) -> None:
        """Format a host's log directory."""
        (self.log_dir(name)).mkdir(parents=True, exist_ok=True)
        (self.log_dir(name) / "meta.properties").write_text(_properties(meta))
        replica = self.log_dir(name) / "data-0"
        replica.mkdir(exist_ok=True)
        # the module that reads topic ids waits 10 s for one that is missing
        (replica / "partition.metadata").write_text("version: 0\ntopic_id: b3JkZXJzLW9yZGVycy1vcg\n")

    def _broker_file(self, name: str, number: int, protocol: str) -> dict[str, str]:
        address = f"PLAINTEXT://127.0.0.1:{9000 + number}"
        return {
            "broker.id": str(number),
            "broker.rack": RACKS[name],
            "listeners": address,
            "advertised.listeners": address,
            "log.dirs": str(self.log_dir(name)),
            "inter.broker.protocol.version": protocol,
            "zookeeper.connect": ZOOKEEPER,
            "min.insync.replicas": "1",
        }

    def start(self, name: str) -> None:
        """Start a host's service in the mode of its file."""
        values = properties.parse(self.config_file(name).read_bytes())
        mode = kraft_config.mode_at_next_start(values)
        with self.changing() as state:
            service = state["services"][name]
            if service["masked"] or mode in (None, "invalid"):
                service.update(active=False, mode=None)
                return
            service.update(active=True, mode=mode, invocation=uuid.uuid4().hex, started_at=time.time())
            state["versions"][name] = os.path.basename(os.readlink(self.host(name) / "kafka")).rpartition("-")[2]
            number = str(IDS[name])
            if mode in ("zk_migration", "kraft"):
                state["log"]["brokers"][number] = {
                    "incarnation_id": service["invocation"],
                    "is_migrating_zk_broker": mode == "zk_migration",
                }
            if mode.startswith("controller"):
                state["log"]["controllers"][number] = {
                    "incarnation_id": service["invocation"],
                    "zk_migration_ready": mode == "controller_migration",
                }

    def stop(self, name: str) -> None:
        """Stop a host's service."""
        with self.changing() as state:
            state["services"][name].update(active=False, mode=None)

    def mask(self, name: str, masked: bool) -> bool:
        """Mask or unmask a host's service; return whether that was a change."""
        with self.changing() as state:
            changed = state["services"][name]["masked"] != masked
            state["services"][name]["masked"] = masked
        return changed

    def _settle(self, state: dict[str, Any]) -> None:
        """Let the cluster follow a change of its nodes, as Kafka does."""
        services, zookeeper, quorum, log = state["services"], state["zookeeper"], state["quorum"], state["log"]
        up = {name: service["mode"] for name, service in services.items() if service["active"]}
        voters = [name for name in CONTROLLERS if name in up]
        if len(voters) * 2 > len(CONTROLLERS):
            if quorum["leader"] not in voters:
                quorum.update(leader=voters[0], epoch=quorum["epoch"] + 1)
            if log["state"] is None and len(voters) == len(CONTROLLERS):
                log["state"] = "PRE_MIGRATION"
                zookeeper["migration"] = -1
        else:
            quorum["leader"] = None
        brokers = {name: up.get(name) for name in BROKERS}
        joined = all(str(number) in log["brokers"] for number in BROKERS.values())
        if (
            quorum["leader"]
            and log["state"] == "PRE_MIGRATION"
            and set(brokers.values()) == {"zk_migration"}
            and joined
        ):
            log["state"] = "MIGRATION"
            zookeeper.update(owner="kraft", migration=END_OFFSET - 1, epoch=zookeeper["epoch"] + 1)
        final = [voter for voter in voters if up[voter] == "controller_final"]
        if quorum["leader"] and log["state"] == "MIGRATION" and len(final) == len(CONTROLLERS):
            log["state"] = "POST_MIGRATION"
        if zookeeper["owner"] in ("zookeeper", None):
            alive = [BROKERS[name] for name in ELECTED if brokers[name] in ("zk", "zk_migration")]
            if zookeeper["controller"] not in alive and alive:
                zookeeper.update(owner="zookeeper", controller=alive[0], epoch=zookeeper["epoch"] + 1)
            elif alive and zookeeper["owner"] is None:
                zookeeper.update(owner="zookeeper")
        zookeeper["version"] += 1

    # Answers --------------------------------------------------------------------------------------------------------

    def service(self, name: str) -> dict[str, Any]:
        """Return a host's service, as host.service.read_state does."""
        service = self.state()["services"][name]
        unit = "kafka.service" if name in BROKERS else "kafka-controller.service"
        return {
            "manager": "systemd",
            "name": unit,
            "exists": True,
            "active": service["active"],
            "main_pid": PIDS + IDS[name] if service["active"] else 0,
            "masked": service["masked"],
            "sub_state": "running" if service["active"] else "dead",
            "active_state": "active" if service["active"] else "inactive",
            "result": "success",
            "restart": "no",
            "timeout_stop": "infinity",
            "unit_file_state": "masked" if service["masked"] else "enabled",
            "starts_with": str(self.config_file(name)),
            "invocation": service["invocation"],
            "restarts": 0,
            "started_at": service["started_at"],
        }

    def end_offset(self) -> int:
        """Return the end of the metadata log: each change of the cluster appends to it."""
        return END_OFFSET + self.state().get("changes", 0)

    def metadata_log(self, name: str) -> dict[str, Any] | None:
        """Return the summary of a host's replica of the metadata log, None where it has none."""
        state = self.state()
        log, number = state["log"], str(IDS[name])
        if name in CONTROLLERS:
            if not (self.log_dir(name) / "meta.properties").exists() or number not in log["controllers"]:
                return None
        elif number not in log["brokers"]:
            return None
        brokers = {}
        for broker, registration in log["brokers"].items():
            host = next(host for host, known in BROKERS.items() if str(known) == broker)
            brokers[broker] = {
                **registration,
                "epoch": 100,
                "fenced": not state["services"][host]["active"],
                "in_controlled_shutdown": False,
                "end_points": [],
                "log_dirs": [],
                "rack": RACKS[host],
                "registered_offset": 100,
                "changed_offset": 100,
            }
        return {
            "dir": str(self.log_dir(name) / "__cluster_metadata-0"),
            "quorum_state": None,
            "log_start_offset": 0,
            "log_end_offset": self.end_offset(),
            "last_epoch": state["quorum"]["epoch"],
            "last_no_op_or_any_timestamp_ms": int(time.time() * 1000),
            "last_change_offset": END_OFFSET - 10,
            "checkpoint": None,
            "metadata_version": state["metadata_version"],
            "zk_migration_state": log["state"],
            "zk_migration_state_offset": 10,
            "features": {"metadata.version": state["metadata_version"]},
            "brokers": brokers,
            "controllers": {
                controller: {**found, "end_points": [], "registered_offset": 20}
                for controller, found in log["controllers"].items()
            },
            "scram_losses": {"restart": {}, "new": {}},
            "client_metrics": {},
            "open_transaction": None,
            "zk_migration_transactions": [],
        }

    def registration(self, name: str) -> dict[str, Any]:
        """Return a host's own registration in its replica of the metadata log, {} without one."""
        found = (self.metadata_log(name) or {}).get("brokers" if name in BROKERS else "controllers") or {}
        return found.get(str(IDS[name])) or {}

    def alive_brokers(self) -> dict[str, str]:
        """Return {host: mode} of the brokers that run."""
        services = self.state()["services"]
        return {name: services[name]["mode"] for name in BROKERS if services[name]["active"]}

    def topics(self, leave_out: str | None = None) -> dict[str, Any]:
        """Return what brokers serve of partitions (probes.cluster.topics.read)."""
        alive = {BROKERS[name] for name in self.alive_brokers()}
        partitions: dict[str, Any] = {}
        for topic, listed in TOPICS.items():
            for number, replicas in enumerate(listed):
                isr = [replica for replica in replicas if replica in alive]
                partition = {"leader": isr[0] if isr else -1, "replicas": replicas, "isr": isr or replicas[:1]}
                partitions.setdefault(topic, {})[str(number)] = partition
        if not alive:
            return {"reached": False, "error": "no broker answers"}
        return {
            "reached": True,
            "brokers": {str(broker): f"127.0.0.1:{9000 + broker}" for broker in sorted(alive)},
            "controller_id": min(alive),
            "cluster_id": CLUSTER,
            "partitions": partitions,
        }

    def zookeeper(self) -> dict[str, Any]:
        """Return ZooKeeper's znodes of the migration (zookeeper.zookeeper.read_migration_znodes, with `reached`)."""
        state = self.state()
        seen, leader = state["zookeeper"], state["quorum"]["leader"]
        kraft, offset = seen["owner"] == "kraft", seen["migration"]
        owner = CONTROLLERS.get(leader or "c1") if kraft else seen["controller"]
        epoch = state["quorum"]["epoch"]
        registered = {
            str(BROKERS[name]): {"czxid": 100, "endpoints": {}, "ephemeral_owner": "0x1", "malformed": None}
            for name, mode in self.alive_brokers().items()
            if mode in ("zk", "zk_migration")
        }
        none = {"exists": False, "malformed": None, "partitions": None}
        return {
            "reached": True,
            "connect": ZOOKEEPER,
            "tls": False,
            "zxid": 10_000 + seen["version"],
            "broker_ids": registered,
            "cluster_id": {"exists": True, "malformed": None, "value": CLUSTER},
            "controller": {
                "broker_id": owner,
                "czxid": 500,
                "ephemeral": not kraft,
                "exists": seen["owner"] is not None,
                "kraft_controller_epoch": epoch if kraft else -1,
                "malformed": None,
            },
            "controller_epoch": {"exists": True, "malformed": None, "value": seen["epoch"], "version": seen["epoch"]},
            "migration": {
                "exists": offset is not None,
                "kraft_controller_epoch": epoch if offset is not None else None,
                "kraft_controller_id": owner if offset is not None else None,
                "kraft_metadata_epoch": epoch if offset is not None else None,
                "kraft_metadata_offset": offset,
                "malformed": None,
                "mzxid": 10_000 if offset is not None else None,
                "version": seen["version"] if offset is not None else None,
            },
            "delete_topics": [],
            "reassign_partitions": none,
            "preferred_replica_election": none,
        }

    def quorum(self) -> dict[str, Any]:
        """Return DescribeQuorum of the quorum's leader (probes.cluster.cluster.read_quorum)."""
        state, now, end = self.state(), int(time.time() * 1000), self.end_offset()
        if not state["quorum"]["leader"]:
            return {"reached": False, "error": "connection refused: nothing listens there"}

        def replica(number: int, alive: bool) -> dict[str, int]:
            return {"id": number, "log_end_offset": end, "caught_up_ms": now if alive else now - 60_000}

        services = state["services"]
        observers = [name for name, mode in self.alive_brokers().items() if mode != "zk"]
        return {
            "reached": True,
            "leader_id": CONTROLLERS[state["quorum"]["leader"]],
            "leader_epoch": state["quorum"]["epoch"],
            "high_watermark": end,
            "voters": [replica(number, services[name]["active"]) for name, number in CONTROLLERS.items()],
            "observers": [replica(BROKERS[name], True) for name in observers],
        }

    def collect(self, nodes: dict[str, Any], partitions: bool = True) -> dict[str, Any]:
        """Return the cluster's facts (probes.cluster.cluster.collect) with the nodes' own facts `nodes`."""
        state, found = self.state(), {}
        for name, given in nodes.items():
            service = state["services"].get(name) or {}
            node = {**given, "next": (given.get("file") or {}).get("mode"), "running": service.get("mode")}
            if service.get("mode"):
                node["metadata_version"] = state["metadata_version"] if service["mode"] != "zk" else None
            else:
                node["running_error"] = f"{node['address']}: connection refused: nothing listens there"
                node["running_reason"] = "refused"
            found[name] = node
        facts = {"time": time.time(), "nodes": found, "zookeeper": self.zookeeper(), "quorum": self.quorum()}
        if partitions:
            facts["topics"] = self.topics()
        return facts


def _properties(values: dict[str, str]) -> str:
    return "".join(f"{key}={value}\n" for key, value in values.items())
