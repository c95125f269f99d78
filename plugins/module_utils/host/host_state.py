# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A managed host's state of one cluster, in `<state_dir>/<cluster id>/`.

Each node of the host has a directory of its own there, `broker-1` (core.run.node_key), with what belongs to one node:

- `lock`: held by the worker while the node's restart runs (flock(2));
- `run_lock.json`: which run may change the node (host.run_lock_file);
- `restart.json`: the record of the node's newest restart, from which a later run finishes it;
- `configs/`: the node's properties file from before each change of its mode, which a rollback gives back;
- `journal.jsonl`: the runs and restarts of the node;
- `worker.json`, `worker.zip`: the job and the code of a worker that begins (host.detached).

So two nodes of one host are to each other as two hosts: neither waits for, repairs or removes what is the other's.

The cluster's directory itself has what is the same for all of its nodes: the backup and the count of ZooKeeper's
metadata, the key of digests, the record of throttles, archives for the comparison.

Standard library only. Files are replaced by rename, so that a reader sees complete JSON. Only the journal is appended
to, one line with one write.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import time
from typing import Any, Iterator, Mapping

from ansible_collections.quorumshift.kafka.plugins.module_utils.core.migration import same_cluster
from ansible_collections.quorumshift.kafka.plugins.module_utils.core.run import node_key
from ansible_collections.quorumshift.kafka.plugins.module_utils.core.text import advice
from ansible_collections.quorumshift.kafka.plugins.module_utils.facts import OldLayout
from ansible_collections.quorumshift.kafka.plugins.module_utils.files import safe_files

LOCK = "lock"
RUN_LOCK = "run_lock.json"
RESTART = "restart.json"
JOURNAL = "journal.jsonl"
CONFIGS = "configs"
JOB, CODE = "worker.json", "worker.zip"
OF_A_NODE = (CONFIGS, JOURNAL, LOCK, RESTART, RUN_LOCK, JOB, CODE)
COPY = "copy.json"
SOAK = "soak.json"
DIGEST_KEY = "digest_key.json"

OPTIONS = {"state_dir": {"type": "path", "default": "/var/lib/quorumshift"}}
"""Argument spec of the state directory; the doc fragment quorumshift.kafka.host_record documents it."""

HELD_OPTIONS = {
    **OPTIONS,
    "run": {"type": "str", "required": True},
    "cluster_id": {"type": "str", "required": True},
}
"""Argument spec of modules that lock a node for a run; quorumshift.kafka.host_record and its part `run` document it."""

NODE_OPTIONS = {"role": {"type": "str", "choices": list(node_key.ROLES)}, "node_id": {"type": "int"}}
"""Argument spec of what a node is on its host; quorumshift.kafka.host_record and its part `node` document it."""


class Held(RuntimeError):
    """The node's lock is held: its restart runs."""


class OldLayoutError(ValueError):
    """The cluster's directory has files of an earlier version, which kept one set for each host. The text is for the
    operator."""


def path_of(root: str, cluster_id: str) -> str:
    """Return the path of the host's directory of one cluster, which its nodes share. Raises ValueError for what is no
    cluster id."""
    if not same_cluster.is_cluster_id(cluster_id):
        raise ValueError(f"{cluster_id!r} is no cluster id of Kafka (QS-PHASE-005)")
    return os.path.join(root, cluster_id)


def make_directory(root: str, cluster_id: str) -> str:
    """Return the host's directory of one cluster; create it with mode 0700 if it is missing. Errors as of `path_of`."""
    path = path_of(root, cluster_id)
    os.makedirs(path, mode=0o700, exist_ok=True)
    return path


def node_directory(given: Mapping[str, Any]) -> str:
    """Return the path of a node's directory. `given`: {state_dir, cluster_id, role, node_id, config_file (of the node,
    or missing)}, as the options of a module and the spec of a restart have them.

    Raises OldLayoutError while the host has files of an earlier version: each change needs this path, so none overlooks
    them. Raises ValueError for what is no cluster id or no node.
    """
    role, node_id = given.get("role"), given.get("node_id")
    if role not in node_key.ROLES or node_id is None:
        raise ValueError(
            f"the id of this host's {role or 'node'} is unknown, so it has no lock and no record. Correct its "
            "properties file, or the variable that names it (QS-RUN-016)"
        )
    cluster = path_of(given["state_dir"], given["cluster_id"])
    key = node_key.node_key(role, int(node_id))
    require_no_old_layout(cluster, key, given.get("config_file"))
    return os.path.join(cluster, key)


def make_node_directory(given: Mapping[str, Any]) -> str:
    """Return a node's directory; create it and the cluster's with mode 0700 if they are missing. Arguments and errors
    as of `node_directory`."""
    path = node_directory(given)
    make_directory(given["state_dir"], given["cluster_id"])  # os.makedirs gives parents another mode
    os.makedirs(path, mode=0o700, exist_ok=True)
    return path


def find_nodes(cluster: str) -> dict[str, str]:
    """Return {key: path} of the directories of nodes in a cluster's directory."""
    names = sorted(os.listdir(cluster)) if os.path.isdir(cluster) else []
    return {name: os.path.join(cluster, name) for name in names if node_key.KEY.fullmatch(name)}


def find_old_layout(cluster: str, config_file: str | None = None) -> OldLayout | None:
    """Return the files of an earlier version in a cluster's directory, None if there are none. That version kept one
    set of them for each host.

    `config_file`: of the node that asks.
    """
    names = [name for name in OF_A_NODE if os.path.lexists(os.path.join(cluster, name))]
    if not names:
        return None
    record = read_json(os.path.join(cluster, RESTART)) or {}
    named = record.get("config_file") or ""
    return {
        "path": cluster,
        "names": names,
        "service": record.get("service") or "",
        "config_file": named,
        "is_of_another": bool(named and config_file) and os.path.realpath(named) != os.path.realpath(config_file or ""),
        "is_held": LOCK in names and is_held(cluster),
    }


def require_no_old_layout(cluster: str, key: str = "", config_file: str | None = None) -> None:
    """Raise OldLayoutError if a cluster's directory has files of an earlier version. `key`: of the node that asks, ''
    where none does."""
    found = find_old_layout(cluster, config_file)
    if found:
        raise OldLayoutError(f"{advice.sentences(*node_key.explain_old_layout(found, key))} (QS-RUN-015)")


@contextlib.contextmanager
def lock(path: str) -> Iterator[int]:
    """Hold the lock of a node's directory and yield its file descriptor. Raises Held."""
    handle = os.open(os.path.join(path, LOCK), os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o600)
    try:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise Held(path) from None
        yield handle
    finally:
        os.close(handle)


def is_held(path: str) -> bool:
    """Return whether a worker holds the lock of a directory."""
    try:
        with lock(path):
            return False
    except Held:
        return True


def read_json(path: str) -> Any:
    """Return a JSON file's content, None if it is missing, {"error": ...} if it is not JSON."""
    if not path:
        return None
    try:
        return json.loads(safe_files.read(path).decode("utf-8"))
    except FileNotFoundError:
        return None
    except ValueError as error:
        return {"error": f"{path}: {error}"}


def write_json(path: str, value: Mapping[str, Any]) -> None:
    """Replace a file (mode 0600) and flush it to disk."""
    safe_files.replace(path, json.dumps(value).encode(), 0o600)


def note(path: str, name: str, run: str, **more: Any) -> None:
    """Append an event to the journal of a node's directory: {t: epoch seconds, name, run, ...}.

    After an incomplete last line, left by a crash, the event begins on a new line.
    """
    line = json.dumps({"t": round(time.time(), 3), "name": name, "run": run, **more}) + "\n"
    handle = os.open(os.path.join(path, JOURNAL), os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW, 0o600)
    try:
        size = os.fstat(handle).st_size
        torn = size > 0 and os.pread(handle, 1, size - 1) != b"\n"
        os.write(handle, (b"\n" if torn else b"") + line.encode())
        os.fsync(handle)
    finally:
        os.close(handle)


def read_journal(path: str, newest: int) -> dict:
    """Return {events: the `newest` events of a node's journal, oldest first, torn: number of lines that cannot be read,
    cut: whether older events were left out}."""
    events: list[dict] = []
    torn = 0
    try:
        lines = safe_files.read(os.path.join(path, JOURNAL)).decode("utf-8", "replace").splitlines()
    except FileNotFoundError:
        lines = []
    for line in lines:
        try:
            event = json.loads(line)
            events.append({"t": event["t"], "name": event["name"], "run": event["run"], **event})
        except (ValueError, TypeError, KeyError):
            torn += 1
    return {"events": events[-newest:], "torn": torn, "cut": len(events) > newest}
