# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Find the ZooKeeper servers on a host of the inventory, with their data directories and free space.

Runs on managed hosts: standard library only; read-only.
"""

from __future__ import annotations

import glob
import hashlib
import os
from typing import Mapping, Sequence

from ansible_collections.quorumshift.kafka.plugins.module_utils.files import safe_files
from ansible_collections.quorumshift.kafka.plugins.module_utils.probes.node.node import read_space
from ansible_collections.quorumshift.kafka.plugins.module_utils.settings import config_values, properties

_PREFIX, _MAXBUFFER, _SECRET = "zookeeper.", "jute.maxbuffer", "DigestAuthenticationProvider.superDigest"
_SETTINGS = (
    *(_MAXBUFFER, _SECRET, "syncEnabled", "observer.syncEnabled", "localSessionsEnabled", "sslQuorum", "skipACL"),
    *("quorum.auth.enableSasl", "quorum.auth.kerberos.servicePrincipal", "reconfigEnabled"),
    *("tickTime", "minSessionTimeout", "maxSessionTimeout"),
)
_MAIN = "org.apache.zookeeper.server.quorum.QuorumPeerMain"


def collect() -> list[dict]:
    """Return [{config, error, settings, dirs: [{path, free_bytes, read_only, snapshot_bytes}]}] of the servers on this
    host.

    `snapshot_bytes`: the newest snapshot's size, 0 if there is none (FileTxnSnapLog: `version-2` below dataDir and
    dataLogDir). For a server with only its port and directory on the command line (ServerConfig.parse), `error` is set.
    """
    return [_server(pid, config, arguments) for pid, config, arguments in _running()]


def read_arguments(config: str) -> list[str]:
    """Return the command line of the server that runs on this host with a configuration file, [] if none does."""
    paths = {os.path.realpath(config)}
    return next(
        (arguments for pid, path, arguments in _running() if os.path.realpath(_absolute(pid, path)) in paths), []
    )


def find_pids(config: str) -> list[str]:
    """Return the processes of servers on this host that were started with a configuration file."""
    path = os.path.realpath(config)
    return [pid for pid, found, _arguments in _running() if os.path.realpath(_absolute(pid, found)) == path]


def settings(values: Mapping[str, str], arguments: Sequence[str]) -> dict[str, str]:
    """Return the settings that count of a server, from its zoo.cfg and its JVM's arguments: names as in zoo.cfg.

    ZooKeeper makes a key that it does not know a system property with the prefix `zookeeper.` (QuorumPeerConfig), so
    `jute.maxbuffer`, which has no prefix, counts only as an argument. Secrets are hashed.
    """
    flags = dict(argument[2:].partition("=")[::2] for argument in arguments if argument.startswith("-D"))
    given = {key: value for key, value in config_values.parse_zoo_cfg(values).items() if key != _MAXBUFFER}
    given.update({key[len(_PREFIX) :]: value for key, value in flags.items() if key.startswith(_PREFIX)})
    if _MAXBUFFER in flags:
        given[_MAXBUFFER] = flags[_MAXBUFFER]
    found = {key: value for key, value in given.items() if key in _SETTINGS or key.startswith("authProvider.")}
    if _SECRET in found:
        found[_SECRET] = hashlib.sha256(found[_SECRET].encode()).hexdigest()[:16]
    return found


def _absolute(pid: str, config: str) -> str:
    if os.path.isabs(config):
        return config
    try:
        return os.path.join(os.readlink(f"/proc/{pid}/cwd"), config)
    except OSError:
        return config  # the process has ended meanwhile


def _running() -> list[tuple[str, str, list[str]]]:
    """Return (pid, configuration file, command line) of each server."""
    servers = []
    for path in glob.iglob("/proc/[0-9]*/cmdline"):
        try:
            with open(path, encoding="utf-8", errors="replace") as stream:
                arguments = stream.read().split("\0")[:-1]
        except OSError:
            continue  # the process has ended meanwhile
        if _MAIN in arguments[:-1]:
            servers.append((path.split("/")[2], arguments[arguments.index(_MAIN) + 1], arguments))
    return sorted(servers)


def _server(pid: str, config: str, arguments: Sequence[str]) -> dict:
    path = _absolute(pid, config)
    try:
        values = config_values.parse_zoo_cfg(properties.parse(safe_files.read(path), path=path))
    except (OSError, properties.PropertiesError) as error:
        return {"config": config, "error": str(error), "settings": {}, "dirs": []}
    paths = (values.get("dataDir"), values.get("dataLogDir"))
    dirs = [_directory(each) for each in dict.fromkeys(paths) if each]
    shown = settings(values, arguments)
    return {"config": path, "error": None, "settings": shown, "dirs": [directory for directory in dirs if directory]}


def _directory(path: str) -> dict | None:
    file_system = read_space(path)
    sizes = []
    for snapshot in glob.glob(os.path.join(glob.escape(path), "version-2", "snapshot.*")):
        try:
            status = os.stat(snapshot)
        except OSError:
            continue  # purged meanwhile
        sizes.append((status.st_mtime, status.st_size))
    return {**file_system, "path": path, "snapshot_bytes": max(sizes, default=(0, 0))[1]} if file_system else None
