# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Addresses that Kafka and ZooKeeper accept are parsed, others are rejected with the reason."""

from __future__ import annotations

import pytest
from ansible_collections.quorumshift.kafka.plugins.module_utils.settings.addresses import (
    AddressError,
    HostPort,
    Listener,
    ZkConnect,
    is_loopback,
    is_wildcard,
    parse_host_port,
    parse_host_ports,
    parse_listeners,
    parse_zookeeper_connect,
)


@pytest.mark.parametrize(
    ("text", "host", "port", "shown"),
    [
        ("kafka1:9093", "kafka1", 9093, "kafka1:9093"),
        (" kafka1 ", "kafka1", 9092, "kafka1:9092"),
        ("10.0.0.1:1", "10.0.0.1", 1, "10.0.0.1:1"),
        ("[::1]:65535", "::1", 65535, "[::1]:65535"),
        ("[fe80::1%eth0]", "fe80::1%eth0", 9092, "[fe80::1%eth0]:9092"),
    ],
)
def test_host_port(text, host, port, shown):
    assert parse_host_port(text, 9092) == HostPort(host, port)
    assert str(parse_host_port(text, 9092)) == shown


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("kafka1", "no port"),
        ("", "no host"),
        (":9092", "no host"),
        ("kafka1:", "'' is not a port"),
        ("kafka1:x", "'x' is not a port"),
        ("kafka1:-1", "'-1' is not a port"),
        ("kafka1:²", "is not a port"),
        ("kafka1:0", "not within 1 to 65535"),
        ("kafka1:65536", "not within 1 to 65535"),
        ("::1:9092", r"\[address\]:port"),
        ("[::1", r"\[address\]:port"),
        ("[::1]9092", r"\[address\]:port"),
        ("SSL://kafka1:9092", "is not a"),
        ("kafka 1:9092", "is not a host"),
    ],
)
def test_invalid_host_port(text, message):
    with pytest.raises(AddressError, match=message):
        parse_host_port(text)


def test_host_ports_keep_order_and_drop_duplicates():
    assert parse_host_ports("b:1, a,b:1,,[::1]:2") == (HostPort("b", 1), HostPort("a", 9092), HostPort("::1", 2))
    assert parse_host_ports(["b:1", HostPort("a", 2)]) == (HostPort("b", 1), HostPort("a", 2))


def test_what_contains_no_host_is_shown():
    with pytest.raises(AddressError, match=r"\[' '\] contains no host"):
        parse_host_ports(text for text in [" "])


@pytest.mark.parametrize("value", ["", " , ", []])
def test_host_ports_without_a_host(value):
    with pytest.raises(AddressError, match="contains no host"):
        parse_host_ports(value)


@pytest.mark.parametrize(
    ("text", "servers", "chroot"),
    [
        ("zk1,zk2:2182", (("zk1", 2181), ("zk2", 2182)), ""),
        ("zk1:2181/", (("zk1", 2181),), ""),
        ("zk1:2181,[::1]:2181/kafka/prod", (("zk1", 2181), ("::1", 2181)), "/kafka/prod"),
    ],
)
def test_zookeeper_connect(text, servers, chroot):
    parsed = parse_zookeeper_connect(text)
    assert parsed == ZkConnect(servers, chroot)
    assert parse_zookeeper_connect(str(parsed)) == parsed


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("zk1:2181/kafka,zk2:2181/kafka", "write the chroot once, after the last host"),
        ("/kafka", "contains no host"),
        ("zk1/kafka/", "is not a ZooKeeper path"),
        ("zk1//kafka", "is not a ZooKeeper path"),
        ("zk1/a/../b", "is not a ZooKeeper path"),
    ],
)
def test_invalid_zookeeper_connect(text, message):
    with pytest.raises(AddressError, match=message):
        parse_zookeeper_connect(text)


def test_listeners():
    text = "internal://:9091, SASL_SSL://kafka1:9092,V6://[::1]:9093,ALL://0.0.0.0:0"
    assert parse_listeners(text) == (
        Listener("INTERNAL", "", 9091),
        Listener("SASL_SSL", "kafka1", 9092),
        Listener("V6", "::1", 9093),
        Listener("ALL", "0.0.0.0", 0),
    )
    assert [str(listener) for listener in parse_listeners(text)][2] == "V6://[::1]:9093"


@pytest.mark.parametrize("text", ["", "kafka1:9092", "://kafka1:9092", "SSL://kafka1"])
def test_invalid_listeners(text):
    with pytest.raises(AddressError, match=r"listener"):
        parse_listeners(text)


@pytest.mark.parametrize("text", ["INTERNAL://3333:10:9:101::204:9092", "internal://[3333:10:9:101::204]:9092"])
def test_a_listener_on_ipv6_with_and_without_brackets(text):
    assert parse_listeners(text) == (Listener("INTERNAL", "3333:10:9:101::204", 9092),)


def test_a_zookeeper_server_on_ipv6_without_brackets():
    assert parse_zookeeper_connect("3333::204:2182,z1/k").servers == (HostPort("3333::204", 2182), HostPort("z1", 2181))


def test_wildcards_and_loopback_addresses():
    assert all(map(is_wildcard, ("", "0.0.0.0", "::", "[::]", "0:0:0:0:0:0:0:0")))
    assert not any(map(is_wildcard, ("::1", "b1", "127.0.0.1")))
    assert all(map(is_loopback, ("localhost", "LOCALHOST", "127.0.0.2", "::1", "[::1]", "localhost.localdomain")))
    assert not any(map(is_loopback, ("b1", "10.0.0.1", "localhost-1")))
