# Copyright: (c) 2026, Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Addresses: what Kafka and ZooKeeper accept is read, what they do not is named."""

from __future__ import annotations

import pytest
from ansible_collections.quorumshift.kafka.plugins.module_utils.addresses import (
    AddressError,
    HostPort,
    Listener,
    ZkConnect,
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
    ("text", "says"),
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
def test_host_port_refused(text, says):
    with pytest.raises(AddressError, match=says):
        parse_host_port(text)


def test_host_ports_keep_order_and_drop_repetitions():
    assert parse_host_ports("b:1, a,b:1,,[::1]:2") == (HostPort("b", 1), HostPort("a", 9092), HostPort("::1", 2))
    assert parse_host_ports(["b:1", HostPort("a", 2)]) == (HostPort("b", 1), HostPort("a", 2))


@pytest.mark.parametrize("value", ["", " , ", []])
def test_no_host_at_all(value):
    with pytest.raises(AddressError, match="names no host"):
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
    ("text", "says"),
    [
        ("zk1:2181/kafka,zk2:2181/kafka", "stands once, behind the last host"),
        ("/kafka", "names no host"),
        ("zk1/kafka/", "is not a ZooKeeper path"),
        ("zk1//kafka", "is not a ZooKeeper path"),
        ("zk1/a/../b", "is not a ZooKeeper path"),
    ],
)
def test_zookeeper_connect_refused(text, says):
    with pytest.raises(AddressError, match=says):
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
def test_listeners_refused(text):
    with pytest.raises(AddressError, match=r"listener"):
        parse_listeners(text)
