# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Read what decides on a host whether a later release of Kafka starts there, and who uses the node: the options of its
JVM, its log4j file, message formats on disk, connected addresses, MirrorMaker 1, and its requests (request_log, jmx).

Runs on managed hosts: standard library only; read-only.
"""

from __future__ import annotations

import glob
import os
import re
import time
from typing import Any, Dict, Iterable, List, Set, Tuple

from ansible_collections.quorumshift.kafka.plugins.module_utils.core.migration import kraft_config
from ansible_collections.quorumshift.kafka.plugins.module_utils.files import safe_files
from ansible_collections.quorumshift.kafka.plugins.module_utils.host import service
from ansible_collections.quorumshift.kafka.plugins.module_utils.probes.host import tcp_connections
from ansible_collections.quorumshift.kafka.plugins.module_utils.probes.node import (
    installation,
    jmx,
    node,
    request_log,
)
from ansible_collections.quorumshift.kafka.plugins.module_utils.settings import config_values, properties
from ansible_collections.quorumshift.kafka.plugins.module_utils.settings.addresses import AddressError

ALLOWED_URLS = "org.apache.kafka.sasl.oauthbearer.allowed.urls"
_MAIN = "kafka.Kafka"
_MIRROR_MAKER = "kafka.tools.MirrorMaker"  # version 1; version 2 is org.apache.kafka.connect.mirror.MirrorMaker
_LOG4J_1, _LOG4J_2 = "log4j.configuration", ("log4j2.configurationFile", "log4j.configurationFile")
_KEPT = (ALLOWED_URLS, "kafka.logs.dir", _LOG4J_1, *_LOG4J_2)
# From these variables a JVM takes options that its command line does not show (java(1), JVMTI's JAVA_TOOL_OPTIONS)
_IN_ENVIRONMENT = ("JDK_JAVA_OPTIONS", "JAVA_TOOL_OPTIONS")
_APPENDER = re.compile(r"^\s*log4j\.appender\.[\w-]+\s*[=:]\s*(\S+)\s*$", re.MULTILINE)
_HEAD_BYTES = 17  # of a record batch up to its magic, of each version (DefaultRecordBatch, LegacyRecord)
_SECONDS = 20.0  # for the first segments of all replicas
_MOST_NAMED = 5
_BOOTSTRAP = "bootstrap.checkpoint"  # BootstrapDirectory.BINARY_BOOTSTRAP_FILENAME


def collect(role: str, config_file: str, service_name: str, log_file: str, kafka_home: str) -> Dict[str, Any]:
    """Return the facts of one node; what cannot be read is None, or has the reason as `why`. Nothing is raised.

    {process: None or {pid, java (its version or None), version (Kafka's or None), options: {name: value} of -D},
    log4j: {path, version: 1 or 2, appenders: [class], why}, mirror_makers: [arguments], formats: {read, partitions,
    old: {magic: number of replicas}, named: [replica], why}, addresses: None or {listener port: {address:
    connections}}, requests: of request_log.read, metrics: of jmx.read, formatted_by_newer}. `formats`, `addresses`,
    `requests` and `metrics` are of brokers.
    """
    values = _properties(config_file)
    pid, arguments = find_process(service_name, config_file)
    options = jvm_options(pid, arguments) if pid else {}
    found: Dict[str, Any] = {
        "role": role,
        "process": None,
        "log4j": _read_log4j(options) if pid else None,
        "mirror_makers": find_mirror_makers(),
        "formatted_by_newer": is_formatted_by_newer(node.metadata_dir(values)),
    }
    if pid:
        kept = {name: value for name, value in options.items() if name in _KEPT}
        found["process"] = {
            "pid": pid,
            "java": installation.java_version(pid),
            "version": installation.running_version(pid, arguments),
            "options": kept,
        }
    if role != "broker":
        return found
    found["formats"] = read_formats(config_values.log_dirs(values)) if values else None
    found["addresses"] = _addresses(values) if pid else None
    found["requests"] = request_log.read(options.get("kafka.logs.dir", ""), log_file)
    found["metrics"] = jmx.read(pid, arguments, options, kafka_home) if pid else {"why": "the broker does not run"}
    return found


def find_process(service_name: str, config_file: str) -> Tuple[int, List[str]]:
    """Return (pid, arguments) of the node: of the service's process, or of the one that names its properties file, as
    where a container's own program runs it; (0, []) where none runs. That one must be root's, or of the user that owns
    the node's data: any other user could have such a command line."""
    try:
        pid = service.read_state(service_name)["main_pid"]
    except OSError:
        pid = 0
    if pid:
        found, arguments = node.find_process(pid)
        return (found, arguments) if _MAIN in arguments else (0, [])
    wanted, users = os.path.realpath(config_file), {0, *_owners(config_values.log_dirs(_properties(config_file)))}
    for number, arguments in _processes():
        if _MAIN not in arguments[:-1]:
            continue
        given = arguments[arguments.index(_MAIN) + 1]
        if os.path.isabs(given) and os.path.realpath(given) == wanted and users & _owners([f"/proc/{number}"]):
            return number, arguments
    return 0, []


def _owners(paths: Iterable[str]) -> Set[int]:
    """Return the user ids that own these paths, of those that exist."""
    found = set()
    for path in paths:
        try:
            found.add(os.stat(path).st_uid)
        except OSError:
            continue
    return found


def jvm_options(pid: int, arguments: List[str]) -> Dict[str, str]:
    """Return the system properties {name: value} that a JVM was started with; the last of a name counts."""
    tokens = arguments[: arguments.index(_MAIN)] if _MAIN in arguments else arguments
    try:
        with open(f"/proc/{pid}/environ", "rb") as stream:
            environment = dict(
                pair.partition("=")[::2] for pair in stream.read().decode("utf-8", "replace").split("\0") if pair
            )
    except OSError:
        environment = {}
    more = [token for name in _IN_ENVIRONMENT for token in environment.get(name, "").split()]
    pairs = (token[2:].partition("=") for token in [*more, *tokens] if token.startswith("-D"))
    return {name: value for name, _equals, value in pairs}


def find_mirror_makers() -> List[str]:
    """Return the MirrorMaker 1 processes of this host, each with the properties files of its command line."""
    found = []
    for _pid, arguments in _processes():
        if _MIRROR_MAKER in arguments:
            given = arguments[arguments.index(_MIRROR_MAKER) + 1 :]
            files = [word for word in given if word.endswith((".properties", ".config", ".conf"))]
            found.append(" ".join(files) or "without a properties file")
    return sorted(found)


def read_formats(log_dirs: Iterable[str], seconds: float = _SECONDS) -> Dict[str, Any]:
    """Return which message formats the replicas of a broker begin with, by the magic of the first batch of each
    replica's first segment (KIP-724).

    A replica whose first segment has format 2 may have an older one later only if a topic's format was lowered.
    `why` says what was not read.
    """
    end, read, partitions, old, named = time.monotonic() + seconds, 0, 0, {}, []  # type: ignore[var-annotated]
    why = ""
    for log_dir in log_dirs:
        try:
            with os.scandir(log_dir) as entries:
                replicas = sorted(entry.name for entry in entries if _is_replica(entry.name) and entry.is_dir())
        except OSError as error:
            why = why or f"{log_dir}: {error.strerror}"
            continue
        partitions += len(replicas)
        for name in replicas:
            if time.monotonic() > end:
                why = why or f"after {seconds:g} s"
                break
            try:
                magic = _first_magic(os.path.join(log_dir, name))
            except FileNotFoundError:
                continue  # deleted meanwhile
            except OSError as error:
                why = why or f"{name}: {error.strerror}"
                continue
            read += 1
            if magic is not None and magic < 2:
                old[str(magic)] = old.get(str(magic), 0) + 1
                named.append(name)
    return {"read": read, "partitions": partitions, "old": old, "named": named[:_MOST_NAMED], "why": why}


def is_formatted_by_newer(directory: str) -> bool | None:
    """Return whether kafka-storage of 4.4 or later formatted a directory of the metadata log: it writes the bootstrap
    records into the first checkpoint there, and earlier ones into bootstrap.checkpoint above it. None if that cannot be
    seen."""
    if not directory:
        return None
    first = os.path.join(directory, f"{0:020d}-{0:010d}.checkpoint")
    try:
        return _exists(first) and not _exists(os.path.join(os.path.dirname(directory), _BOOTSTRAP))
    except OSError:
        return None


def _exists(path: str) -> bool:
    """Return whether a file exists. Raises OSError where that cannot be seen."""
    try:
        os.stat(path)
    except (FileNotFoundError, NotADirectoryError):
        return False
    return True


def _is_replica(name: str) -> bool:
    return name[-1:].isdigit() and "-" in name and name != node.METADATA_LOG


def _first_magic(directory: str) -> int | None:
    """Return the magic of the first batch of a replica; None for an empty one. Raises OSError."""
    for path in sorted(glob.glob(os.path.join(glob.escape(directory), "*.log"))):
        with os.fdopen(safe_files.open_regular(path), "rb") as stream:
            head = stream.read(_HEAD_BYTES)
        if len(head) == _HEAD_BYTES:
            return head[-1]
    return None


def _addresses(values: Dict[str, str]) -> Dict[str, Dict[str, int]] | None:
    """Return {port: {address: connections}} of the established connections to a broker's listeners, None if they cannot
    be read."""
    try:
        ports = {listener.port for listener in kraft_config.listeners(values)}
        return {str(port): found for port, found in sorted(tcp_connections.count_peers(ports).items())}
    except (OSError, AddressError):
        return None


def _read_log4j(options: Dict[str, str]) -> Dict[str, Any]:
    """Return the log4j file of a JVM. Kafka's scripts give its path (kafka-run-class.sh)."""
    version = 1 if _LOG4J_1 in options else 2
    name = next((name for name in (_LOG4J_1, *_LOG4J_2) if name in options), None)
    if name is None:
        return {"path": None, "version": None, "appenders": [], "why": "the command line of the JVM names no file"}
    path = options[name]
    path = path[len("file:") :] if path.startswith("file:") else path
    found: Dict[str, Any] = {"path": path, "version": version, "appenders": [], "why": ""}
    if version == 1:
        try:
            text = safe_files.read(path).decode("utf-8", "replace")
            found["appenders"] = sorted(set(_APPENDER.findall(text)))
        except (OSError, ValueError) as error:
            found["why"] = getattr(error, "strerror", None) or str(error)
    return found


def _properties(config_file: str) -> Dict[str, str]:
    try:
        return node.read_properties(config_file)
    except (OSError, properties.PropertiesError):
        return {}


def _processes() -> Iterable[Tuple[int, List[str]]]:
    for path in glob.iglob("/proc/[0-9]*/cmdline"):
        try:
            with open(path, encoding="utf-8", errors="replace") as stream:
                yield int(path.split("/")[2]), stream.read().split("\0")[:-1]
        except OSError:
            continue  # it has ended
