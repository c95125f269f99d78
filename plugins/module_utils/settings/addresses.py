# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Parse addresses as Kafka's and ZooKeeper's settings write them."""

from __future__ import annotations

import ipaddress
import re
from typing import Iterable, List, NamedTuple, Sequence, Tuple, Union

KAFKA_PORT = 9092
ZOOKEEPER_PORT = 2181


class AddressError(ValueError):
    """A host, port, listener or connect string cannot be parsed; the message shows the text."""


class HostPort(NamedTuple):
    """One TCP address; `host` has no brackets. `str()` gives `host:port` or `[v6]:port`."""

    host: str
    port: int

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


class ZkConnect(NamedTuple):
    """A ZooKeeper connect string: its servers, and the chroot as `/a/b`, empty for none."""

    servers: Tuple[HostPort, ...]
    chroot: str

    def __str__(self) -> str:
        return ",".join(str(server) for server in self.servers) + self.chroot


class Listener(NamedTuple):
    """One entry of `listeners` or `advertised.listeners`; an empty `host` is Kafka's wildcard."""

    name: str
    host: str
    port: int

    def __str__(self) -> str:
        return f"{self.name}://{HostPort(self.host, self.port)}"


def parse_host_port(text: str, default_port: int | None = None) -> HostPort:
    """Parse `host`, `host:port`, `1.2.3.4:port`, `[v6]` or `[v6]:port`.

    Raises AddressError for anything else, for a bare IPv6 address (its port is ambiguous), and for a missing port if
    `default_port` is None.
    """
    host, port = _split_port(text.strip(), text)
    if not host:
        raise AddressError(f"{text!r} has no host (QS-CONNECT-006)")
    if port is None:
        if default_port is None:
            raise AddressError(f"{text!r} has no port: write host:port (QS-CONNECT-006)")
        return HostPort(host, default_port)
    if not 1 <= port <= 65535:
        raise AddressError(f"{text!r} has port {port}, which is not within 1 to 65535 (QS-CONNECT-006)")
    return HostPort(host, port)


def parse_host_ports(
    value: Union[str, Iterable[str], Iterable[HostPort]], default_port: int | None = KAFKA_PORT
) -> Tuple[HostPort, ...]:
    """Parse a comma-separated string, or an iterable of addresses, as in `bootstrap.servers`.

    Order is kept and duplicates are dropped. Raises AddressError if there is no address.
    """
    items: Sequence[Union[str, HostPort]] = value.split(",") if isinstance(value, str) else list(value)
    found: List[HostPort] = []
    for item in items:
        if isinstance(item, str):
            if not item.strip():
                continue
            item = parse_host_port(item, default_port)
        if item not in found:
            found.append(item)
    if not found:
        seen = value if isinstance(value, str) else items
        raise AddressError(f"{seen!r} contains no host (QS-CONNECT-006)")
    return tuple(found)


def parse_zookeeper_connect(text: str) -> ZkConnect:
    """Parse `host[:port],host[:port].../chroot`, with the chroot once, after the last host.

    As in ZooKeeper's ConnectStringParser, the first slash begins the chroot, `/` alone is none, and the last colon of
    an IPv6 address without brackets begins the port. Raises AddressError, with a message of its own for a chroot that
    is repeated after each host.
    """
    hosts, slash, rest = text.strip().partition("/")
    if "," in rest:
        raise AddressError(f"{text!r}: write the chroot once, after the last host (QS-CONNECT-006)")
    servers = parse_host_ports(map(_zookeeper_server, filter(None, map(str.strip, hosts.split(",")))), ZOOKEEPER_PORT)
    chroot = slash + rest if rest else ""
    if chroot and any(part in ("", ".", "..") for part in rest.split("/")):
        raise AddressError(f"{text!r}: {chroot!r} is not a ZooKeeper path (QS-CONNECT-006)")
    return ZkConnect(servers, chroot)


def is_wildcard(host: str) -> bool:
    """Return whether a server that is bound to this host listens on all addresses; brackets are allowed."""
    try:
        return not host or ipaddress.ip_address(host.strip("[]")).is_unspecified
    except ValueError:
        return False


def is_loopback(host: str) -> bool:
    """Return whether an address means the host itself, on each host another one."""
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return host.lower().partition(".")[0] in ("localhost", "ip6-localhost")


def _zookeeper_server(text: str) -> str:
    host, colon, port = text.rpartition(":")
    return f"[{host}]:{port}" if ":" in host and not text.startswith("[") and colon else text


# EndPoint of Kafka: IPv6 addresses with and without brackets
_LISTENER = re.compile(r"(?P<name>.*)://\[?(?P<host>[0-9a-zA-Z\-%._:]*)\]?:(?P<port>-?[0-9]+)")


def parse_listeners(text: str) -> Tuple[Listener, ...]:
    """Parse Kafka's `NAME://host:port,...` (class EndPoint: names in upper case, host may be empty).

    Raises AddressError.
    """
    found = []
    for item in map(str.strip, text.split(",")):
        if not item:
            continue
        parts = _LISTENER.fullmatch(item)
        if not parts or not parts["name"] or not 0 <= int(parts["port"]) <= 65535:
            raise AddressError(f"{item!r} is not a listener: write NAME://host:port (QS-CONNECT-006)")
        found.append(Listener(parts["name"].upper(), parts["host"], int(parts["port"])))
    if not found:
        raise AddressError(f"{text!r} contains no listener (QS-CONNECT-006)")
    return tuple(found)


def _split_port(text: str, shown: str) -> Tuple[str, int | None]:
    if any(character.isspace() or character in "/@" for character in text):
        raise AddressError(f"{shown!r} is not a host and port (QS-CONNECT-006)")
    if text.startswith("["):
        host, bracket, rest = text[1:].partition("]")
        if not bracket or (rest and not rest.startswith(":")):
            raise AddressError(f"{shown!r}: write an IPv6 address as [address]:port (QS-CONNECT-006)")
        port = rest[1:] if rest else None
    else:
        host, colon, port = text.partition(":")
        if ":" in port:
            raise AddressError(f"{shown!r}: write an IPv6 address as [address]:port (QS-CONNECT-006)")
        port = port if colon else None
    if port is None:
        return host, None
    if not (port.isascii() and port.isdigit()):
        raise AddressError(f"{shown!r}: {port!r} is not a port (QS-CONNECT-006)")
    return host, int(port)
