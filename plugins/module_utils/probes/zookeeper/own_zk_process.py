# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a host shows of its ZooKeeper server, also while that is stopped: which one it is, its process, its ports.

Runs on managed hosts: standard library only; read-only.
"""

from __future__ import annotations

import os
import re
import socket
from typing import Any, Dict, Iterable, List, Mapping

from ansible_collections.quorumshift.kafka.plugins.module_utils.core.ensemble import ensemble_cut, zk_observer
from ansible_collections.quorumshift.kafka.plugins.module_utils.files import safe_files
from ansible_collections.quorumshift.kafka.plugins.module_utils.host import service
from ansible_collections.quorumshift.kafka.plugins.module_utils.probes.host import tcp_connections
from ansible_collections.quorumshift.kafka.plugins.module_utils.probes.zookeeper import own_zk_server, zk_host
from ansible_collections.quorumshift.kafka.plugins.module_utils.settings import properties
from ansible_collections.quorumshift.kafka.plugins.module_utils.settings.addresses import HostPort, is_loopback

_CLIENT_PORT = re.compile(r";(?:.*:)?(\d+)$")  # host:2888:3888:participant;0.0.0.0:2181
_ASK_S = 3.0


def read(config_file: str, service_name: str, servers: Iterable[HostPort]) -> Dict[str, Any]:
    """Return the facts of this host (core.ensemble.decommission), without its record. `servers`: those of the connect
    string. Raises OSError, PropertiesError."""
    values = own_zk_server.read_values(config_file)
    lines = dict(values)
    if values.get("dynamicConfigFile"):
        lines.update(properties.parse(safe_files.read(values["dynamicConfigFile"])))
    members = zk_observer.parse_ensemble(lines).members
    myid = _read_myid(values)
    ports = _client_ports(values, lines, myid)
    own = next((server for server in servers if server.port in ports and _is_own(server.host)), None)
    state = service.read_state(service_name)
    pids = zk_host.find_pids(config_file)
    return {
        "config_file": config_file,
        "service": dict(state),
        "server": str(own) if own else None,
        "ports": ports,
        "quorum_ports": sorted(map(int, ensemble_cut.ports_of([members[myid]]))) if myid in members else [],
        "myid": myid,
        "members": sorted(members),
        "voters": sorted(number for number, member in members.items() if not member.observes),
        "is_running": bool(pids),
        "is_of_service": all(_is_of_service(pid, state) for pid in pids),
        "is_listening": tcp_connections.is_listening(ports),
        "answers": _answers(own) if own else None,
        "connected": sorted(tcp_connections.find_connected(ports)),
        "directories": [path for path in dict.fromkeys((values.get("dataDir"), values.get("dataLogDir"))) if path],
        "error": None if ports else f"{config_file} names no client port",
    }


def _read_myid(values: Mapping[str, str]) -> int | None:
    try:
        return int(safe_files.read(os.path.join(values.get("dataDir", ""), "myid")))
    except (OSError, ValueError):
        return None  # a standalone server has none


def _client_ports(values: Mapping[str, str], lines: Mapping[str, str], myid: int | None) -> List[int]:
    found = [values.get("clientPort", ""), values.get("secureClientPort", "")]
    match = _CLIENT_PORT.search(lines.get(f"server.{myid}", "").strip())
    if match:
        found.append(match[1])
    return sorted({int(port) for port in found if port.isdigit() and int(port)})


def _is_own(host: str) -> bool:
    """Return whether an address of a host is one of this machine. To such an address the kernel routes from itself; no
    packet is sent."""
    try:
        answers = socket.getaddrinfo(host, 9, type=socket.SOCK_DGRAM)
    except (OSError, UnicodeError):
        return False
    for family, kind, protocol, _name, address in answers:
        try:
            with socket.socket(family, kind, protocol) as sock:
                sock.connect(address)
                if is_loopback(str(address[0])) or sock.getsockname()[0] == address[0]:
                    return True
        except OSError:
            continue
    return False


def _is_of_service(pid: str, state: Mapping[str, Any]) -> bool:
    """Return whether a process is one of a service: its main process, or in its control group."""
    if str(state.get("main_pid")) == pid:
        return True
    try:
        with open(f"/proc/{pid}/cgroup", encoding="utf-8", errors="replace") as groups:
            return any(state["name"] in line.strip().split("/") for line in groups)
    except OSError:
        return False


def _answers(server: HostPort) -> bool | None:
    """Return whether a connection to this address is accepted, None where nothing says so within the time."""
    try:
        socket.create_connection((server.host, server.port), _ASK_S).close()
        return True
    except ConnectionRefusedError:
        return False
    except OSError:
        return None
