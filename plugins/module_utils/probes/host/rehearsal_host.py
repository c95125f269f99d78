# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a host shows that is to be one of a rehearsal: other servers and their data, ports and limits.

Runs on managed hosts: standard library only; read-only.
"""

from __future__ import annotations

import contextlib
import glob
import os
import pwd
import re
import socket
from typing import Any, Dict, List, Mapping, Sequence

from ansible_collections.quorumshift.kafka.plugins.module_utils.core.rehearsal import host as core
from ansible_collections.quorumshift.kafka.plugins.module_utils.host import service
from ansible_collections.quorumshift.kafka.plugins.module_utils.probes.host import paths
from ansible_collections.quorumshift.kafka.plugins.module_utils.settings import config_values, properties

_CLASSES = {
    "kafka.Kafka": "Kafka",
    "org.apache.zookeeper.server.quorum.QuorumPeerMain": "ZooKeeper",
    "org.apache.zookeeper.server.ZooKeeperServerMain": "ZooKeeper",
}
_STARTS = re.compile(
    r"^\s*ExecStart=.*(kafka-server-start|zookeeper-server-start|zkServer|kafka\.Kafka|QuorumPeerMain)", re.M
)
_UNIT_DIRS = ("/etc/systemd/system", "/run/systemd/system", "/usr/lib/systemd/system", "/lib/systemd/system")
_RAISES_LIMITS = 24  # CAP_SYS_RESOURCE (capabilities(7))


def read(wanted: core.Wanted, others: Sequence[str]) -> Dict[str, Any]:
    """Return the facts of this host. `others`: properties files, log directories and state directories that nodes of
    the cluster have by its variables; here they must not hold anything."""
    try:
        uid: int | None = pwd.getpwnam(wanted.user).pw_uid
    except KeyError:
        uid = None
    directory = read_directory(wanted.directory)
    above = _existing(wanted.directory)
    free = os.statvfs(above)
    return {
        **directory,
        "no_systemd": service.explain_no_systemd(),
        "uid": uid,
        "starts": {
            role: os.access(os.path.join(wanted.kafka_home, core.script(role) + wanted.ending), os.X_OK)
            for role in (core.ZOOKEEPER, core.BROKER)
        },
        "processes": find_processes(),
        "units": _find_units(),
        "own_units": [
            core.unit(role) for role in core.ROLES if os.path.lexists(os.path.join(core.UNIT_DIR, core.unit(role)))
        ],
        "data": [path for other in others for path in _find_data(other)],
        "own_addresses": [address for address in wanted.forbidden if _is_own(address)],
        "ports": _taken(core.listened(wanted)),
        "most_maps": _number("/proc/sys/vm/max_map_count"),
        "most_files": _most_files(),
        "free_bytes": free.f_bavail * free.f_frsize,
        "free_inodes": free.f_favail,
    }


def find_ending(kafka_home: str) -> str:
    """Return the ending of Kafka's scripts, Apache's where there are none."""
    there = (end for end in core.ENDINGS if os.path.exists(os.path.join(kafka_home, core.script(core.BROKER) + end)))
    return next(there, core.ENDINGS[0])


def read_directory(path: str) -> Dict[str, Any]:
    """Return {directory: missing, empty or other; mark: what its mark file says, None without}."""
    if not os.path.lexists(path):
        return {"directory": "missing", "mark": None}
    mark = None
    if not os.path.islink(path):
        with contextlib.suppress(OSError, UnicodeDecodeError):
            found = os.path.join(path, core.MARK_FILE)
            # a file of root alone says what root may remove
            if os.lstat(found).st_uid == os.geteuid() and not os.path.islink(found):
                with open(found, encoding="utf-8") as stream:
                    mark = core.parse_mark(stream.read())
    return {"directory": "other", "mark": mark}


def find_processes() -> List[Dict[str, Any]]:
    """Return the processes of Kafka and ZooKeeper on this host: {pid, what, user}."""
    found = []
    for path in sorted(glob.glob("/proc/[0-9]*/cmdline")):
        try:
            with open(path, "rb") as stream:
                words = stream.read().decode(errors="replace").split("\0")
            user = pwd.getpwuid(os.stat(path).st_uid).pw_name
        except (OSError, KeyError):
            continue  # it ended, or its user has no name
        what = next((_CLASSES[word] for word in words if word in _CLASSES), None)
        if what:
            found.append({"pid": int(path.split("/")[2]), "what": what, "user": user})
    return found


def _find_units() -> List[str]:
    """Return the units that start Kafka or ZooKeeper at boot, or run."""
    names = set()
    for directory in _UNIT_DIRS:
        for path in glob.glob(f"{directory}/*.service"):
            with contextlib.suppress(OSError), open(path, encoding="utf-8", errors="replace") as stream:
                if _STARTS.search(stream.read()):
                    names.add(os.path.basename(path))
    names -= {core.unit(role) for role in core.ROLES}
    states = {name: service.read_state(name) for name in sorted(names)}
    return [
        name
        for name, state in states.items()
        if state["active"] or state.get("unit_file_state", "").startswith("enabled")
    ]


def _find_data(path: str) -> List[str]:
    """Return what a path of the cluster's nodes holds here: the log directories of a properties file, the data of a
    zoo.cfg, a log directory, or a directory of the tool's state."""
    if os.path.isfile(path):
        try:
            with open(path, "rb") as stream:
                values = properties.parse(stream.read(), path=path)
        except (OSError, properties.PropertiesError):
            return [path]  # what it is cannot be seen
        directories = [values["dataDir"], values.get("dataLogDir", "")] if "dataDir" in values else []
        if not directories:
            directories = [*config_values.log_dirs(values), config_values.metadata_log_dir(values) or ""]
        return [found for directory in directories if directory for found in _find_data(directory)]
    held = ("meta.properties", "version-2")
    if any(os.path.exists(os.path.join(path, name)) for name in held):
        return [path]
    # <state directory>/<cluster id>/<node>
    return [found for found in sorted(glob.glob(f"{glob.escape(path)}/*/*-*[0-9]")) if os.path.isdir(found)][:1]


def _is_own(name: str) -> bool:
    """Return whether a name or address is one of this machine: only to such an address a socket can be bound."""
    try:
        answers = socket.getaddrinfo(name, 0, type=socket.SOCK_DGRAM)
    except (OSError, UnicodeError):
        return False
    for family, kind, protocol, _canonical, where in answers:
        with contextlib.suppress(OSError), socket.socket(family, kind, protocol) as own:
            own.bind(where)
            return True
    return False


def _taken(addresses: Sequence[str]) -> Dict[str, str]:
    found: Dict[str, str] = {}
    for address in addresses:
        seen: Mapping[str, Any] = paths.check_port(address)
        if seen["error"]:
            why = {"taken": "another process listens there", "foreign": "it is no address of this host"}
            holder = f", {seen['holder']}" if seen["holder"] else ""
            found[address] = f"{why.get(seen['error'], seen['error'])}{holder}"
    return found


def _existing(path: str) -> str:
    """Return the path, or the nearest one above it that exists."""
    while not os.path.isdir(path):
        path = os.path.dirname(path) or "/"
    return path


def _number(path: str) -> int | None:
    try:
        with open(path, encoding="ascii") as stream:
            return int(stream.read())
    except (OSError, ValueError):
        return None


def _most_files() -> int | None:
    """Return how many files a service may open: what the kernel allows where systemd may raise limits, else its own."""
    with contextlib.suppress(OSError, ValueError, IndexError):
        with open("/proc/1/status", encoding="ascii", errors="replace") as stream:
            capabilities = int(re.findall(r"^CapEff:\s*([0-9a-f]+)", stream.read(), re.M)[0], 16)
        if capabilities >> _RAISES_LIMITS & 1:
            return _number("/proc/sys/fs/nr_open")
        with open("/proc/1/limits", encoding="ascii", errors="replace") as stream:
            limit = re.findall(r"^Max open files\s+\S+\s+(\S+)", stream.read(), re.M)[0]
        return None if limit == "unlimited" else int(limit)
    return None
