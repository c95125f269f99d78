# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Read the facts of a host's broker or controller: service, properties, log directories, metadata log.

Runs on managed hosts: standard library only; read-only.
"""

from __future__ import annotations

import glob
import hashlib
import os
import re
import time

from ansible_collections.quorumshift.kafka.plugins.module_utils.core.migration import kraft_config, same_cluster
from ansible_collections.quorumshift.kafka.plugins.module_utils.core.run import node_key
from ansible_collections.quorumshift.kafka.plugins.module_utils.facts import (
    LogDirectory,
    MetadataLog,
    NodeFacts,
    OldLayout,
    PropertiesFile,
)
from ansible_collections.quorumshift.kafka.plugins.module_utils.files import safe_files
from ansible_collections.quorumshift.kafka.plugins.module_utils.formats.metadata import metadata_summary
from ansible_collections.quorumshift.kafka.plugins.module_utils.formats.records.record_batch import LogError
from ansible_collections.quorumshift.kafka.plugins.module_utils.host import (
    host_state,
    pause_file,
    run_lock_file,
    service,
)
from ansible_collections.quorumshift.kafka.plugins.module_utils.host.host_state import read_json
from ansible_collections.quorumshift.kafka.plugins.module_utils.probes.host import host, memory
from ansible_collections.quorumshift.kafka.plugins.module_utils.probes.node import (
    config_providers,
    installation,
    own_log,
)
from ansible_collections.quorumshift.kafka.plugins.module_utils.secrets import masking
from ansible_collections.quorumshift.kafka.plugins.module_utils.secrets.seal import seal, seal_properties
from ansible_collections.quorumshift.kafka.plugins.module_utils.settings import config_values, properties

METADATA_LOG = "__cluster_metadata-0"
# A directory with only these counts as empty: the file system's own, and Kafka's lock file (LogManager.LockFileName),
# which stays when logs are wiped.
IN_EMPTY_DIRECTORY = {"lost+found", ".lock"}


def collect(
    role: str,
    config_file: str,
    service_name: str,
    run_key: str,
    state_dir: str,
    kafka_home: str,
    log_dir: str = "",
    journal_events: int = 20,
    log_file: str = "",
    node_id: int | None = None,
) -> NodeFacts:
    """Return a node's facts. Whatever is missing or broken is reported in the facts, never raised.

    `log_dir`: the log directory if there is no properties file yet; `journal_events`: number of newest journal events;
    `log_file`: the node's own log; `node_id`: the inventory's, of a node without a properties file.
    """
    file, secrets = _file(config_file, run_key, service_name)
    values = file["properties"] if file["exists"] or not log_dir else {"log.dirs": log_dir}
    running = service.read_state(service_name)
    pid = find_process(running["main_pid"])[0]
    log_dirs = _log_dirs(config_values.log_dirs(values), pid)
    # Without a properties file the log directory may be another node's.
    own_id = _node_id(values, log_dirs) if file["exists"] else None
    key = node_key.node_key(role, node_id if own_id is None else own_id)
    kept = _kept(state_dir, key)
    cluster_ids = [(log["meta"] or {}).get("cluster.id") for log in log_dirs]
    cluster_ids = [cluster_id for cluster_id in cluster_ids if same_cluster.is_cluster_id(cluster_id)]
    cluster = os.path.join(state_dir, cluster_ids[0]) if cluster_ids else ""
    return {
        "role": role,
        "time": time.time(),
        "hostname": os.uname().nodename,
        "host": host.read(),
        "service": running,
        "file": file,
        "runs_with": _runs_with(running["main_pid"], config_file),
        "zookeeper_tls": seal_properties(run_key, kraft_config.zookeeper_tls(find_process(running["main_pid"])[1])),
        "starts_with": _starts_with(running.get("starts_with"), config_file),
        "node_id": own_id,
        "log_dirs": log_dirs,
        "space": {
            "log_dir": read_space(os.path.dirname(metadata_dir(values))),
            "config_file": read_space(os.path.dirname(config_file)),
            "state_dir": read_space(state_dir),
        },
        "metadata_log": read_metadata_log(metadata_dir(values)),
        "node_restart": read_json(os.path.join(cluster, key, host_state.RESTART)) if cluster else None,
        "copy": read_json(os.path.join(cluster, host_state.COPY)) if cluster else None,
        "run_locks": {name: run_lock_file.read(os.path.join(path, key)) or {} for name, path in kept.items()},
        "old_layout": _old_layout(state_dir, config_file),
        "journals": {
            name: host_state.read_journal(os.path.join(path, key), journal_events) for name, path in kept.items()
        },
        "soak": {
            name: history
            for name, path in kept.items()
            for history in [read_json(os.path.join(path, host_state.SOAK))]
            if history
        },
        "backups": {name: _backups(path) for name, path in kept.items()},
        "paused": pause_file.read(state_dir),
        "digest_keys": {
            name: seal(run_key, stored["key"])
            for name, path in kept.items()
            for stored in [read_json(os.path.join(path, host_state.DIGEST_KEY)) or {}]
            if stored.get("key")
        },
        "version": installation.running_version(*find_process(running["main_pid"]))
        or installation.installed_version(kafka_home),
        "storage_tool": _storage_tool(kafka_home),
        "last_error": own_log.read_last_error(log_file, running, secrets) if log_file else None,
        "limits": read_limits(pid),
        "memory": {**memory.read_host(), "heap": memory.read_heap(pid)},
    }


def _storage_tool(kafka_home: str) -> str:
    """Return the path of kafka-storage.sh, '' if there is none."""
    path = installation.tool_path(os.path.join(kafka_home, installation.STORAGE))
    return path if os.path.exists(path) else ""


def read_properties(path: str) -> dict[str, str]:
    """Return the properties of a file. Errors: OSError, settings.properties.PropertiesError."""
    return properties.parse(safe_files.read(path), path=path)


def _kept(state_dir: str, key: str) -> dict[str, str]:
    """Return {cluster id: directory} of every cluster of which a node, given its key, has a run lock or a journal:
    before it is formatted, a controller does not know its cluster id."""
    paths = [path for name in (host_state.RUN_LOCK, host_state.JOURNAL) for path in _find(state_dir, f"{key}/{name}")]
    return {os.path.basename(path): path for path in sorted(os.path.dirname(os.path.dirname(path)) for path in paths)}


def _old_layout(state_dir: str, config_file: str) -> dict[str, OldLayout]:
    """Return, by cluster id, the files of an earlier version (host_state.find_old_layout)."""
    # a directory that has only a `lock` may be another program's
    names = (host_state.RUN_LOCK, host_state.RESTART, host_state.JOURNAL, host_state.CONFIGS)
    paths = {os.path.dirname(path) for name in names for path in _find(state_dir, name)}
    found = {os.path.basename(path): host_state.find_old_layout(path, config_file) for path in sorted(paths)}
    return {cluster_id: files for cluster_id, files in found.items() if files}


def _find(state_dir: str, name: str) -> list[str]:
    return glob.glob(f"{glob.escape(state_dir)}/*/{glob.escape(name)}")


def _backups(directory: str) -> list[dict]:
    """Return the backups of ZooKeeper in a cluster's state directory; a name begins with the time of its run."""
    pattern = os.path.join(glob.escape(directory), "backup", "zookeeper-*.jsonl.gz")
    return [{"path": path, "time": os.path.getmtime(path)} for path in sorted(glob.glob(pattern))]


def metadata_dir(values: dict) -> str:
    """Return the directory of the metadata log, '' without properties."""
    first = config_values.metadata_log_dir(values)
    return os.path.join(first, METADATA_LOG) if first else ""


def read_metadata_log(directory: str) -> MetadataLog | None:
    """Return the summary of a metadata log, {dir, error} if it cannot be read, None if there is none."""
    if not directory or not os.path.isdir(directory):
        return None
    try:
        return metadata_summary.summarise(directory, with_history=True)
    except (OSError, ValueError, LogError) as error:
        return {"dir": directory, "error": str(error)}


_MAIN = "kafka.Kafka"


def _runs_with(pid: int, config_file: str) -> dict | None:
    """Return {path, same, overrides} of a running Kafka: the properties file on its command line, whether it is
    `config_file`, and the keys that `--override` sets; None if no Kafka runs.

    kafka.Kafka's first argument is the file (Kafka.getPropsFromArgs).
    """
    arguments = find_process(pid)[1]
    if _MAIN not in arguments[:-1]:
        return None
    given = arguments[arguments.index(_MAIN) + 1 :]
    path = given[0]
    if not os.path.isabs(path):
        try:
            path = os.path.join(os.readlink(f"/proc/{pid}/cwd"), path)
        except OSError:
            return None  # even root needs CAP_SYS_PTRACE (proc(5)), which a container may lack
    pairs = [value for option, value in zip(given, given[1:]) if option == "--override"]
    return {
        "path": path,
        "same": os.path.realpath(path) == os.path.realpath(config_file),
        "overrides": [pair.partition("=")[0] for pair in pairs],
    }


def _starts_with(named: str | None, config_file: str) -> dict | None:
    """Return {path, same} of the properties file that the service's unit names, None if it names none."""
    if not named:
        return None
    return {"path": named, "same": os.path.realpath(named) == os.path.realpath(config_file)}


def find_process(pid: int) -> tuple[int, list[str]]:
    """Return (pid, arguments) of a process, or of its first descendant that runs Kafka: a unit may start a shell."""
    try:
        with open(f"/proc/{pid}/cmdline", encoding="utf-8", errors="replace") as stream:
            arguments = stream.read().split("\0")[:-1]
    except OSError:
        return pid, []
    if _MAIN in arguments:
        return pid, arguments
    try:
        with open(f"/proc/{pid}/task/{pid}/children", encoding="ascii") as stream:
            children = [int(child) for child in stream.read().split()]
    except OSError:
        return pid, arguments
    return next((found for found in map(find_process, children) if _MAIN in found[1]), (pid, arguments))


def read_limits(pid: int) -> dict | None:
    """Return {open_files, memory_maps: [used, limit]} of a process (proc(5)), None if they cannot be read."""
    try:
        with open(f"/proc/{pid}/limits", encoding="ascii") as stream:
            allowed = next(line.split()[3] for line in stream if line.startswith("Max open files"))
        with open(f"/proc/{pid}/maps", "rb") as stream:
            maps = sum(1 for _line in stream)
        with open("/proc/sys/vm/max_map_count", encoding="ascii") as stream:
            most = int(stream.read())
        return {
            "open_files": [len(os.listdir(f"/proc/{pid}/fd")), int(allowed)],
            "memory_maps": [maps, most],
        }
    except (OSError, StopIteration, ValueError):  # ValueError: "unlimited"
        return None


def read_locks(pid: int) -> set[int] | None:
    """Return the inodes of the files that a process has locked (proc(5)); None if no lock is visible.

    Kafka locks `.lock` in each log directory that it uses, and releases it if the directory fails
    (LogManager.handleLogDirFailure).
    """
    try:
        with open("/proc/locks", encoding="ascii") as stream:
            rows = [line.split() for line in stream]
    except OSError:
        return None
    # 1: POSIX ADVISORY WRITE pid major:minor:inode from to; a waiting process has an arrow in the second column
    return {int(row[5].rpartition(":")[2]) for row in rows if len(row) > 5 and row[4] == str(pid)} or None


def read_space(path: str) -> dict | None:
    """Return {path, free_bytes, read_only} of the file system of `path`, or of its nearest existing parent."""
    while path and not os.path.isdir(path) and path != os.path.dirname(path):
        path = os.path.dirname(path)
    try:
        system = os.statvfs(path)
    except OSError:
        return None
    return {
        "path": path,
        "free_bytes": system.f_bavail * system.f_frsize,
        "read_only": bool(system.f_flag & os.ST_RDONLY),
    }


def _file(path: str, run_key: str, service_name: str) -> tuple[PropertiesFile, list[str]]:
    """Return the facts of a properties file, and its secrets for masking."""
    file: PropertiesFile = {"path": path, "exists": True, "sha256": None, "error": None, "mode": None, "properties": {}}
    file.update({"variables": [], "resolved": {}})
    try:
        raw = safe_files.read(path)
        values = properties.parse(raw)
    except FileNotFoundError:
        return {**file, "exists": False}, []
    except (OSError, properties.PropertiesError) as error:
        return {**file, "error": f"{path}: {error}"}, []
    file["sha256"] = hashlib.sha256(raw).hexdigest()
    file["mode"] = kraft_config.mode_at_next_start(values)
    file["properties"] = seal_properties(run_key, values)
    plain = values
    if config_providers.PROVIDERS in values:
        plain, variables = config_providers.resolve(values, service.read_environment(service_name))
        file["variables"] = [variable._asdict() for variable in variables]
        file["resolved"] = seal_properties(
            run_key, {variable.key: plain[variable.key] for variable in variables if not variable.why}
        )
    return file, masking.known_secrets(plain)


def _node_id(values: dict, log_dirs: list[LogDirectory]) -> int | None:
    stored = [log["meta"].get("node.id", log["meta"].get("broker.id")) for log in log_dirs if log["meta"]]
    for value in [values.get("node.id"), values.get("broker.id"), *stored]:
        if value is not None and re.fullmatch(r"\+?[0-9]+", config_values.trim(value)):
            return int(config_values.trim(value))
    return None


def read_own(config_file: str) -> tuple[str | None, int | None]:
    """Return the role and the id of the node of a properties file, the id also from its log directories; None where it
    has none yet, or where they cannot be read."""
    try:
        values = read_properties(config_file)
    except (OSError, properties.PropertiesError):
        return None, None
    node_id = _node_id(values, [_log_dir(path, None) for path in config_values.log_dirs(values)])
    return kraft_config.role_at_next_start(values), node_id


def _log_dirs(paths: list[str], pid: int) -> list[LogDirectory]:
    """Return the facts of log directories; `in_use` by the process is None if that cannot be read."""
    locked = read_locks(pid)
    log_dirs = [_log_dir(path, locked) for path in paths]
    if not any(log["in_use"] for log in log_dirs):
        for log in log_dirs:
            log["in_use"] = None  # Kafka always uses one, so the kernel's inodes are not those of these files
    return log_dirs


def _log_dir(path: str, locked: set[int] | None) -> LogDirectory:
    log: LogDirectory = {
        "path": path,
        "exists": os.path.isdir(path),
        "in_use": None,
        "meta": None,
        "error": None,
        "partitions": 0,
        "stray": [],
    }
    if not log["exists"]:
        return log
    try:
        system = os.statvfs(path)
        log["free_bytes"] = system.f_bavail * system.f_frsize
        log["total_bytes"] = system.f_blocks * system.f_frsize
        names = os.listdir(path)
        log["empty"] = not set(names) - IN_EMPTY_DIRECTORY
        log["partitions"] = sum(1 for name in names if name[-1:].isdigit() and "-" in name)
        log["stray"] = sorted(os.path.basename(name) for name in glob.glob(os.path.join(path, "*-stray")))
        lock = os.path.join(path, ".lock")
        if locked is not None:
            log["in_use"] = os.path.exists(lock) and os.stat(lock).st_ino in locked
        meta = os.path.join(path, "meta.properties")
        if os.path.exists(meta):
            log["meta"] = read_properties(meta)
    except (OSError, properties.PropertiesError) as error:
        log["error"] = str(error)
    return log
