# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Run a module for a host of the simulated world.

Most modules run as they are, with the world in place of systemd, Kafka and ZooKeeper (`patched`). Those whose work is
the data of Kafka and ZooKeeper, or Spark, are stubs (`STUBS`) with the results that the modules document.
"""

from __future__ import annotations

import contextlib
import hashlib
import importlib
import io
import json
import os
import re
import time
import traceback
from pathlib import Path
from typing import Any
from unittest import mock

from ansible_collections.quorumshift.kafka.plugins.module_utils.admin import features, reassigner
from ansible_collections.quorumshift.kafka.plugins.module_utils.host import service
from ansible_collections.quorumshift.kafka.plugins.module_utils.probes.cluster import cluster, lag, topics
from ansible_collections.quorumshift.kafka.plugins.module_utils.probes.host import host, paths
from ansible_collections.quorumshift.kafka.plugins.module_utils.probes.node import (
    installation,
    node,
    own_node,
    stopped_node,
)
from ansible_collections.quorumshift.kafka.plugins.module_utils.settings import properties
from ansible_collections.quorumshift.kafka.plugins.module_utils.wire import kafka_wire
from ansible_collections.quorumshift.kafka.plugins.module_utils.worker import restart_steps, restart_worker

from tools.failure_proof import stubs
from tools.failure_proof.world import CLUSTER, IDS, PIDS, World
from tools.module_args import patch_module_args

COLLECTION = "quorumshift.kafka."
PACKAGE = "ansible_collections.quorumshift.kafka.plugins.modules"
MODULES = Path(__file__).resolve().parents[2] / "plugins" / "modules"
BUILTIN = ("command", "copy", "file", "find", "slurp", "stat", "tempfile", "wait_for")


def load() -> None:
    """Import every module, so that the processes that run them have them."""
    for path in MODULES.glob("*.py"):
        if path.name != "__init__.py":
            importlib.import_module(f"{PACKAGE}.{path.stem}")
    for name in BUILTIN:
        importlib.import_module(f"ansible.modules.{name}")


def run(world: World, target: str, name: str, args: dict[str, Any]) -> tuple[int, str, str]:
    """Run a module on a host; return exit code, standard output and standard error."""
    short = name.rpartition(".")[2]
    if short in stubs.STUBS:
        plain = {key: value for key, value in args.items() if not key.startswith("_ansible_")}
        result = stubs.STUBS[short](world, target, plain, bool(args.get("_ansible_check_mode")))
        return 0, json.dumps(result), ""
    package = (
        "ansible_collections.quorumshift.kafka.plugins.modules" if name.startswith(COLLECTION) else "ansible.modules"
    )
    module = importlib.import_module(f"{package}.{short}")
    out, err = io.StringIO(), io.StringIO()
    code = 0
    with contextlib.ExitStack() as stack:
        stack.enter_context(contextlib.redirect_stdout(out))
        stack.enter_context(contextlib.redirect_stderr(err))
        stack.enter_context(patch_module_args(args))
        for patch in patched(world, target):
            stack.enter_context(patch)
        try:
            module.main()
        except SystemExit as ended:
            code = int(ended.code or 0)
        except BaseException:
            code = 1
            traceback.print_exc()
    return code, out.getvalue(), err.getvalue()


def patched(world: World, target: str) -> list[Any]:
    """Return the replacements of what a module asks of systemd, Kafka and ZooKeeper."""

    def named(unit: str) -> str:
        return target

    def begin(action: str, unit: str) -> None:
        (world.start if action == "start" else world.stop)(target)

    def running_mode(_values: Any, _file: str, _unit: str) -> Any:
        return world.state()["services"][target]["mode"] if target in IDS else None

    def see_up(spec: Any, record: Any, _values: Any, before: Any, starting: float, *_more: Any) -> None:
        running = running_mode(None, "", "")
        if running != spec["mode"]:
            raise restart_steps.RestartError(f"{spec['service']} ended while it started")
        record.note(answered_at=time.time(), start_s=0.1)
        record.step("register")
        record.note(registered_at=time.time(), register_s=0.1)

    def detached(record: Any, work: Any, spec: Any) -> dict:
        record.values["unit"] = "quorumshift.service"
        record.step("begun")
        first = json.loads(json.dumps(record.values))
        work(spec, record, record.directory)
        return first

    def metadata_log(directory: str) -> Any:
        return world.metadata_log(target) if directory and target in IDS else None

    def running_version(pid: int, _arguments: Any) -> Any:
        found = next((name for name, number in IDS.items() if PIDS + number == pid), None)
        return world.state()["versions"][found] if found else None

    def as_user(_owner: str, command: list[str], _timeout: float) -> Any:
        values = properties.parse(world.config_file(target).read_bytes())
        meta = {"node.id": values["node.id"], "cluster.id": CLUSTER, "version": "1"}
        world.format(target, meta)
        return mock.Mock(code=0, errors="", output="")

    def min_isr(_bootstrap: Any, _client: Any, names: Any, _timeout: float) -> dict:
        return dict.fromkeys(names, 1)

    replaced: list[tuple[Any, str, Any]] = [
        (service, "read_state", lambda unit: world.service(target) if target in IDS else stubs.NO_SERVICE),
        (service, "begin", begin),
        (service, "kill", lambda unit: world.stop(target)),
        (service, "set_masked", lambda unit, masked: world.mask(target, masked)),
        (service, "runs_systemd", lambda: True),
        (service, "is_running", lambda unit: False),
        (service, "explain_no_systemd", lambda: ""),
        (own_node, "read_running_mode", running_mode),
        (own_node, "read_registration", lambda _values, _number, _mode: world.registration(target)),
        (restart_steps, "await_up", see_up),
        (restart_steps, "_await_session_end", lambda _spec, _values: None),
        (restart_worker, "_detach", detached),
        (restart_worker.as_user, "run", as_user),
        (node, "read_metadata_log", metadata_log),
        (installation, "running_version", running_version),
        (host, "read", lambda: {"system": "Linux", "machine_id": target, "first_process": "systemd", "systemd": ""}),
        (cluster, "collect", lambda nodes, _connections, partitions=True: world.collect(nodes, partitions)),
        (cluster, "collect_modes", lambda nodes, _connections: {name: running_of(world, name) for name in nodes}),
        (topics, "read_cluster_id", lambda *_given: CLUSTER),
        (topics, "read_min_isr", min_isr),
        (lag, "explain_behind", lambda *_given: []),
        (features, "collect", lambda *_given: stubs.features(world)),
        (kafka_wire, "unregister_broker", lambda _address, broker, *_given: stubs.unregister(world, broker)),
        (reassigner, "read_throttled_configs", lambda _admin: ({}, [])),
        (reassigner, "read_denied", lambda _admin: ([], [])),
        (paths, "check_connectivity", lambda _targets, _timeout: []),
        (paths, "find_answering", lambda _addresses, _timeout: []),
        (paths, "check_port", lambda _address: None),
        (stopped_node, "read_partition_epochs", lambda _file: {}),
        (stopped_node, "read_replica_logs", lambda _file: {}),
    ]
    found = [mock.patch.object(*replacement) for replacement in replaced]
    for module in ("rolling_restart", "upgrade_plan", "kafka_features", "kafka_features_info"):
        where = importlib.import_module(f"{PACKAGE}.{module}")
        if hasattr(where, "ClusterAdmin"):
            found.append(mock.patch.object(where, "ClusterAdmin", stubs.admin(world)))
    return found


def running_of(world: World, name: str) -> Any:
    """Return the mode in which a node runs."""
    return (world.state()["services"].get(name) or {}).get("mode")


def digest(world: World, target: str) -> str:
    """Return a digest of a host's files, without what changes with each reading."""
    found = hashlib.sha256()
    root = world.host(target)
    for directory, names, files in sorted(os.walk(root)):
        names.sort()
        for name in sorted([*files, *(name for name in names if os.path.islink(os.path.join(directory, name)))]):
            path = os.path.join(directory, name)
            if name == "lock":
                continue
            found.update(path.encode())
            if os.path.islink(path):
                found.update(os.readlink(path).encode())
            else:
                with open(path, "rb") as stream:
                    found.update(stream.read())
        found.update(directory.encode())
    return found.hexdigest()


# What a host's files have of times and of ids that are made anew in each run
_VOLATILE = re.compile(
    rb"\b1[6-9]\d{8}(\d{3}|\d{9})?(\.\d+)?\b|\b[0-9a-f]{32,}\b|\b\d+\.\d{3,}"
    rb"|\b20\d\d-?\d\d-?\d\d[T ]?\d\d:?\d\d:?\d\d[-\w.+]*"
)


def digest_of_all(world: World, artifacts: bool) -> str:
    """Return a digest of every host's files and of the state of services and cluster, without times and ids.
    `artifacts`: with what the control node keeps of the runs."""
    state = world.state()
    state["zookeeper"].pop("version")  # rises with each change, also with one that changes nothing
    root, found = str(world.root).encode(), hashlib.sha256()

    def add(content: bytes) -> None:
        found.update(_VOLATILE.sub(b"_", content.replace(root, b"")) + b"\0")

    add(json.dumps(state, sort_keys=True).encode())
    for top in ("hosts", *(("artifacts",) if artifacts else ())):
        for directory, names, files in os.walk(world.root / top):
            names.sort()
            add(directory.encode())
            for path in (Path(directory, name) for name in sorted([*files, *names]) if name != "lock"):
                add(path.name.encode())
                if path.is_symlink():
                    add(os.readlink(path).encode())
                elif path.is_file():
                    add(path.read_bytes())
    return found.hexdigest()
