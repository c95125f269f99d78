# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a cut needs to know of a destination host, and the steps of the module zk_cut. Standard library only."""

from __future__ import annotations

import os
import socket
from typing import Any, Callable, Iterable, List, Mapping

from ansible_collections.quorumshift.kafka.plugins.module_utils.core.ensemble import (
    cut_host,
    ensemble_cut,
    ensemble_move,
    zk_observer,
)
from ansible_collections.quorumshift.kafka.plugins.module_utils.ensemble import worker
from ansible_collections.quorumshift.kafka.plugins.module_utils.ensemble.effects import Effects
from ansible_collections.quorumshift.kafka.plugins.module_utils.ensemble.state import path_of
from ansible_collections.quorumshift.kafka.plugins.module_utils.files import safe_files
from ansible_collections.quorumshift.kafka.plugins.module_utils.probes.host import paths, tcp_connections
from ansible_collections.quorumshift.kafka.plugins.module_utils.probes.zookeeper.own_zk_server import read_values
from ansible_collections.quorumshift.kafka.plugins.module_utils.settings import properties
from ansible_collections.quorumshift.kafka.plugins.module_utils.settings.addresses import (
    HostPort,
    parse_host_port,
    parse_zookeeper_connect,
)

Program = Callable[[Mapping[str, Any]], cut_host.Steps]
PREPARED = (cut_host.begin, cut_host.resume, cut_host.add)
ANSWER_S = 1.0


def carry_out(given: Mapping[str, Any], program: Program) -> Any:
    """Carry out a program of core.ensemble.cut_host on this host; return its result. Raises CutError, ServiceError,
    RestartError, OSError.

    Only what makes a voter needs the addresses of other hosts: a cut is undone without any name service.
    """
    directory = path_of(given)
    os.makedirs(directory, mode=0o700, exist_ok=True)
    spec = {**given, "chroot": parse_zookeeper_connect(given["destination_connect"]).chroot}
    if program in PREPARED:
        spec.update(prepare(given))
    return cut_host.run(program(spec), Effects(spec, directory, worker.__name__))


def prepare(given: Mapping[str, Any]) -> dict:
    """Return what the cut needs of this host. Raises OSError where a name of the source has no address.

    {fence, cut: rules; ports: client ports; participants: the zoo.cfg after the promotion, as Latin-1; quorum_peers,
    election_peers: ports of the other destination servers, clients: client ports of all, brokers: listeners to watch,
    each [[host, port]]; peers: how many other servers there are; has_broker: whether a broker runs on this host}.
    """
    values = read_values(given["config_file"])
    destination = {int(number): address for number, address in given["destination_servers"].items()}
    members = ensemble_cut.source_members(read_members(given["config_file"]), destination)
    quorum_ports = ensemble_cut.ports_of([*members, *map(zk_observer.Member, destination.values())])
    hosts = ensemble_cut.hosts_of(members)
    addresses = [address for host in hosts for address, _port in tcp_connections.resolve(host, 0)]
    addresses += [address for host in given["source_addresses"] for address, _port in tcp_connections.resolve(host, 0)]
    ports = client_ports(values)
    data = safe_files.read(given["config_file"])
    changes = ensemble_cut.promotion_changes(values, destination)
    connect = parse_zookeeper_connect(given["destination_connect"])
    brokers = [parse_host_port(broker) for broker in given["brokers"]]
    others = ensemble_cut.peers(destination, given["myid"])
    return {
        "fence": [list(rule) for rule in ensemble_cut.fence(ports)],
        "cut": [list(rule) for rule in ensemble_cut.cut(list(dict.fromkeys(addresses)), quorum_ports)],
        "ports": ports,
        "participants": properties.edit(data, changes, "Ensemble of its own (Quorumshift)").decode("latin-1"),
        "quorum_peers": [list(peer) for peer in others],
        "election_peers": [list(peer) for peer in ensemble_cut.peers(destination, given["myid"], election=True)],
        "peers": len(others),
        "clients": [list(server) for server in connect.servers if not is_local(server.host)],
        "brokers": [list(broker) for broker in brokers],
        "has_broker": any(is_local(broker.host) for broker in brokers),
    }


def find_answering(given: Mapping[str, Any], values: Mapping[str, str]) -> List[str]:
    """Return the addresses of hosts that were named dead at which a server answers this host. Their client ports are
    taken to be those of this host's server."""
    servers = {int(number): address for number, address in given["destination_servers"].items()}
    dead = {host: int(number) for host, number in given["dead"].items()}
    return paths.find_answering(ensemble_move.addresses_of(dead, servers, client_ports(values)), ANSWER_S)


def client_ports(values: Mapping[str, str]) -> List[str]:
    """Return the client ports in a zoo.cfg."""
    return [values[key].strip() for key in ("clientPort", "secureClientPort") if values.get(key, "").strip()]


def read_members(config_file: str) -> Mapping[int, zk_observer.Member]:
    """Return the members in a server's configuration."""
    values = read_values(config_file)
    dynamic = values.get("dynamicConfigFile")
    return zk_observer.parse_ensemble(
        properties.parse(safe_files.read(dynamic), path=dynamic) if dynamic else values
    ).members


def find_own_entries(servers: Iterable[HostPort], values: Mapping[str, str]) -> List[str]:
    """Return the entries of a connect string that lead to this host's server."""
    ports = client_ports(values)
    return [str(server) for server in servers if str(server.port) in ports and is_local(server.host)]


def is_local(host: str) -> bool:
    """Return whether a host name or address is of this host."""
    try:
        addresses = tcp_connections.resolve(host, 0)
    except OSError:
        return False
    return any(map(_binds, [address for address, _port in addresses]))


def _binds(address: str) -> bool:
    with socket.socket(socket.AF_INET6 if ":" in address else socket.AF_INET, socket.SOCK_STREAM) as sock:
        try:
            sock.bind((address, 0))
            return True
        except OSError:
            return False
