# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""host: which hosts a rehearsal takes, and the files that it writes there."""

from __future__ import annotations

import pytest
from ansible_collections.quorumshift.kafka.plugins.module_utils.core.rehearsal import host
from ansible_collections.quorumshift.kafka.plugins.module_utils.settings import properties

WANTED = host.Wanted(
    directory="/var/lib/quorumshift-rehearsal",
    bootstrap_servers="b1:9092,b2:9092",
    cluster_id="rehearsal-AAAAAAAAAAAA",
    user="kafka",
    kafka_home="/opt/kafka",
    place=2,
    address="192.0.2.2",
    others={1: "192.0.2.1", 2: "192.0.2.2", 3: "192.0.2.3"},
    ports={"zookeeper": 22181, "peer": 22888, "election": 23888, "controller": 29093, "broker": 29092},
    chroot="/quorumshift-rehearsal",
    broker_id=5,
    replicas=1000,
    heap="1g",
    settings={"num.io.threads": "8", "default.replication.factor": "5", "log.dirs": "/data"},
    secrets={"password.encoder.secret": "s3cret"},
    environment={"JAVA_HOME": "/opt/java"},
    forbidden=["b1.example.com"],
)
FREE = {
    **{"directory": "missing", "mark": None, "own_units": [], "no_systemd": "", "uid": 490, "processes": []},
    **{"starts": {"zookeeper": True, "broker": True}, "units": [], "data": [], "own_addresses": [], "ports": {}},
    **{"most_maps": 65530, "most_files": 524288, "free_bytes": 1 << 40, "free_inodes": 1 << 20},
}


def test_a_host_without_anything_is_taken():
    assert host.refusals(WANTED, FREE) == []


@pytest.mark.parametrize(
    ("found", "said"),
    [
        (
            {"mark": {"cluster_id": "rehearsal-x", "bootstrap_servers": "b1:9092,b2:9092"}, "directory": "other"},
            "has the rehearsal rehearsal-x already",
        ),
        (
            {"mark": {"cluster_id": "rehearsal-x", "bootstrap_servers": "x1:9092"}, "directory": "other"},
            "has the rehearsal rehearsal-x of the cluster at x1:9092, and quorumshift_bootstrap_servers is b1:9092,b2",
        ),
        ({"directory": "other"}, "exists, and no rehearsal made it"),
        ({"own_units": ["quorumshift-rehearsal-broker.service"]}, "has another rehearse_dir here"),
        ({"processes": [{"pid": 7, "what": "Kafka", "user": "kafka"}]}, "process 7 runs Kafka on this host, as kafka"),
        ({"units": ["kafka.service"]}, "the unit kafka.service is enabled"),
        ({"data": ["/var/lib/kafka/data"]}, "/var/lib/kafka/data holds data of Kafka or ZooKeeper"),
        ({"own_addresses": ["b1.example.com"]}, "b1.example.com is an address of this host and of the cluster"),
        ({"no_systemd": "it does not run"}, "systemd cannot be used on this host: it does not run"),
        ({"uid": None}, "the user kafka does not exist. useradd --system"),
        ({"starts": {"zookeeper": False, "broker": True}}, "has no bin/zookeeper-server-start.sh"),
        ({"ports": {"192.0.2.2:29092": "another process listens there"}}, "Set rehearse_broker_port to a free one"),
        ({"most_maps": 100}, "vm.max_map_count is 100, and a broker with 1000 replicas needs 6096"),
        ({"most_files": 1024}, "a process may open 1024 files"),
        ({"free_bytes": 1}, "has 0 MiB free"),
        ({"free_inodes": 5}, "has 5 free inodes"),
    ],
)
def test_a_host_with_another_purpose_or_without_room_is_refused(found, said):
    refused = host.refusals(WANTED, {**FREE, **found})
    assert len(refused) == 1 and said in refused[0], refused


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"directory": "/"}, "no absolute path"),
        ({"directory": "/var"}, "is a directory of the system"),
        ({"directory": "/var/lib/../../etc"}, "no absolute path"),
        ({"directory": "relative/path"}, "no absolute path"),
        ({"heap": "1g -XX:+Evil"}, "is no size of a heap"),
        ({"settings": {"a": "b\nzookeeper.connect=real:2181"}}, "more than one line"),
        ({"environment": {"A": "b\nExecStart=/bin/sh"}}, "more than one line"),
        ({"environment": {"KAFKA_OPTS": "-Djavax.net.ssl.keyStorePassword=hunter2"}}, "KAFKA_OPTS holds a secret"),
    ],
)
def test_values_that_files_cannot_hold(changed, said):
    refused = host.refusals(WANTED._replace(**changed), FREE)
    assert refused and said in refused[0]


def test_every_address_in_the_files_is_one_of_the_rehearsals_hosts():
    wanted = WANTED._replace(
        settings={**WANTED.settings, "zookeeper.connect": "real:2181", "listeners": "PLAINTEXT://real:9092"}
    )
    files = host.files(wanted)
    assert not [path for path, text in files.items() if "real" in text]
    broker = properties.parse(files["/var/lib/quorumshift-rehearsal/broker.properties"].encode())
    assert broker["zookeeper.connect"] == "192.0.2.1:22181,192.0.2.2:22181,192.0.2.3:22181/quorumshift-rehearsal"
    assert broker["listeners"] == broker["advertised.listeners"] == "PLAINTEXT://192.0.2.2:29092"
    assert broker["log.dirs"] == "/var/lib/quorumshift-rehearsal/data" and broker["broker.id"] == "5"
    assert broker["default.replication.factor"] == "3" and broker["num.io.threads"] == "8"
    zookeeper = properties.parse(files["/var/lib/quorumshift-rehearsal/zookeeper.cfg"].encode())
    assert zookeeper["clientPortAddress"] == "192.0.2.2" and zookeeper["server.3"] == "192.0.2.3:22888:23888"
    assert files["/var/lib/quorumshift-rehearsal/zookeeper/myid"] == "2\n"


def test_kafka_reads_the_settings_of_a_broker_as_they_were_given():
    odd = {"a b": " x", "c": "\u00fc\rlisteners=PLAINTEXT://real:9092", "d": "e\\", "#f": "g=h"}
    text = host.files(WANTED._replace(settings=odd))["/var/lib/quorumshift-rehearsal/broker.properties"]
    broker = properties.parse(text.encode())
    assert {key: broker[key] for key in odd} == odd and broker["listeners"] == "PLAINTEXT://192.0.2.2:29092"


def test_a_host_without_a_broker_has_none_of_its_files():
    wanted = WANTED._replace(broker_id=None)
    assert "/var/lib/quorumshift-rehearsal/broker.properties" not in host.files(wanted)
    assert set(host.units(wanted)) == {
        f"/etc/systemd/system/quorumshift-rehearsal-{role}.service" for role in ("zookeeper", "controller")
    }


def test_everything_is_below_the_directory_and_in_units_of_its_own():
    paths = [*host.files(WANTED), *host.directories(WANTED)]
    assert all(path.startswith("/var/lib/quorumshift-rehearsal/") for path in paths)
    for text in host.units(WANTED).values():
        assert text.startswith(host.MARK) and "s3cret" not in text
        assert "LimitNOFILE=5096" in text and 'Environment="JAVA_HOME=/opt/java"' in text


@pytest.mark.parametrize("text", ["", "{", "[]", '{"cluster_id": "x"}', '{"quorumshift_rehearsal": 2}'])
def test_a_mark_of_another_is_none(text):
    assert host.parse_mark(text) is None


def test_the_mark_is_read_back():
    assert host.parse_mark(host.mark(WANTED))["cluster_id"] == WANTED.cluster_id
