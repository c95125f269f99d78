# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""When servers may be stopped for good, and what proves that one is stopped: each fact changed on its own."""

from __future__ import annotations

import itertools

import pytest
from ansible_collections.quorumshift.kafka.plugins.module_utils.core.ensemble import decommission
from ansible_collections.quorumshift.kafka.plugins.module_utils.core.migration import phase

CLUSTER = "Qs7KfZk2TIK1n0nQ5Qm3Tw"
SERVERS = ["z1:2181", "z2:2181", "z3:2181"]
RUNNING = {"manager": "systemd", "name": "zookeeper.service", "exists": True, "masked": False, "active_state": "active"}
DOWN = {**RUNNING, "masked": True, "active_state": "inactive"}


def host(number, **changes):
    """Return what a host shows of a server that runs."""
    return {
        "config_file": "/etc/zookeeper/zoo.cfg",
        "service": RUNNING,
        "server": f"z{number}:2181",
        "ports": [2181],
        "quorum_ports": [2888, 3888],
        "myid": number,
        "members": [1, 2, 3],
        "voters": [1, 2, 3],
        "is_running": True,
        "is_of_service": True,
        "is_listening": True,
        "answers": True,
        "connected": [],
        "record": None,
        "directories": ["/var/lib/zookeeper"],
        "error": None,
        **changes,
    }


def stopped(number, **changes):
    """Return what a host shows of a server that this playbook has stopped."""
    record = {"state": "stopped", "server": f"z{number}:2181", "archive": {"path": "/a.tar.gz", "sha256": "aa"}}
    quiet = {"is_running": False, "is_of_service": True, "is_listening": False, "answers": False}
    return host(number, **{"service": DOWN, "record": record, **quiet, **changes})


def ensemble(**changes):
    return {"h1": host(1), "h2": host(2), "h3": host(3), **changes}


def node(**changes):
    found = {"reached": True, "error": None, "cluster_ids": [CLUSTER], "file": {"properties": {}}}
    return {**found, **changes}


@pytest.mark.parametrize("name", [*phase.FORWARD, phase.KRAFT_NATIVE, phase.REVERTING, phase.UNKNOWN])
def test_every_phase(name):
    found = list(decommission.check_cluster(name, {"b1": node()}, CLUSTER))
    assert (not found) == (name in ("finalized", "kraft_native"))


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({}, None),
        ({"reached": False, "error": "no route"}, "was not read: no route"),
        ({"file": {"properties": None}}, "properties file of b1 was not read"),
        ({"file": {"properties": {"zookeeper.connect": "z1:2181"}}}, "has zookeeper.connect"),
        ({"file": {"properties": {"zookeeper.connect": ""}}}, None),
        ({"file": {"properties": {"zookeeper.metadata.migration.enable": "true"}}}, "has zookeeper.metadata"),
        ({"cluster_ids": ["AAAAAAAAAAAAAAAAAAAAAA"]}, "are of cluster AAAAAAAAAAAAAAAAAAAAAA"),
        ({"cluster_ids": [CLUSTER, "AAAAAAAAAAAAAAAAAAAAAA"]}, "are of cluster"),
        ({"cluster_ids": []}, "are of cluster (none)"),
    ],
)
def test_every_node(changes, said):
    found = [finding.seen for finding in decommission.check_cluster("finalized", {"b1": node(**changes)}, CLUSTER)]
    assert (said is None and not found) or (said and said in found[0])


def test_what_is_taken_of_a_node():
    facts = {
        "reached": True,
        "file": {"properties": {"zookeeper.connect": "z1", "ssl.key.password": "secret"}},
        "log_dirs": [{"meta": {"cluster.id": CLUSTER}}, {"meta": None}, {"meta": {"cluster.id": CLUSTER}}],
    }
    assert decommission.reduce_node(facts) == {
        "reached": True,
        "error": None,
        "file": {"properties": {"zookeeper.connect": "z1"}},
        "cluster_ids": [CLUSTER],
    }
    assert decommission.reduce_node({"reached": False, "error": "no"})["file"] == {"properties": None}


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({}, []),
        ({"h2": stopped(2)}, []),
        ({"h2": host(2, error="no client port")}, ["h2: no client port"]),
        (
            {"h2": host(2, server=None)},
            ["h2 of the group zookeeper is none of", "z2:2181 of the connect string is on no"],
        ),
        ({"h4": host(2, myid=4, members=[])}, ["z2:2181 of the connect string is on h2, h4"]),
        ({"h2": host(2, members=[1, 2, 3, 9])}, ["names server 9"]),
        ({"h2": host(2, myid=None)}, ["names server 2"]),
    ],
)
def test_hosts_are_exactly_the_ensemble(changes, said):
    found = [finding.seen for finding in decommission.check_hosts(ensemble(**changes), SERVERS)]
    assert len(found) == len(said) and all(text in seen for text, seen in zip(said, found))


def test_a_standalone_server_has_neither_ids_nor_members():
    assert not list(decommission.check_hosts({"h1": host(1, myid=None, members=[])}, SERVERS[:1]))
    assert decommission.stopped_servers({"h1": stopped(1, myid=None)}) == {"z1:2181": 0}


CONTRARY = {
    "no record": {"record": None},
    "an archive alone": {"record": {"server": "z1:2181", "archive": {}}},
    "a broken record": {"record": {"error": "no JSON"}},
    "the record of another server": {"record": {"state": "stopped", "server": "z2:2181"}},
    "active": {"service": {**DOWN, "active_state": "active"}},
    "is about to start": {"service": {**DOWN, "active_state": "activating"}},
    "not masked": {"service": {**DOWN, "masked": False}},
    "a process": {"is_running": True},
    "a listener": {"is_listening": True},
    "answers": {"answers": True},
    "no answer is known": {"answers": None},
}


def test_only_all_of_it_proves_that_a_server_is_stopped():
    assert decommission.is_stopped(stopped(1))
    assert decommission.is_stopped(stopped(1, record={"state": "stopping", "server": "z1:2181"})), "killed in between"
    for size in (1, 2):
        for names in itertools.combinations(CONTRARY, size):
            changes = {key: value for name in names for key, value in CONTRARY[name].items()}
            assert not decommission.is_stopped(stopped(1, **changes)), names
    assert not decommission.is_stopped({})


def test_voters_of_all_hosts():
    hosts = {"h1": host(1), "h2": host(2, voters=[2, 4]), "h3": host(3, voters=[])}
    assert decommission.voters(hosts) == [1, 2, 3, 4]
    assert decommission.voters({"h1": host(1, voters=[])}) == []


def test_order_of_the_stops():
    hosts = {"h1": host(1), "h2": host(2), "h3": stopped(3), "h4": host(4), "h5": host(5)}
    modes = {"z1:2181": "leader", "z2:2181": "follower", "z3:2181": None, "z4:2181": "observer", "z5:2181": None}
    assert decommission.order(hosts, modes) == ["h3", "h4", "h2", "h5", "h1"]


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({}, None),
        ({"service": {**RUNNING, "exists": False}}, "does not exist under systemd"),
        ({"service": {**RUNNING, "manager": "service"}}, "does not exist under systemd"),
        ({"is_of_service": False}, "is not one of service zookeeper.service"),
        ({"is_running": False}, "runs, and no process of it has"),
        ({"is_running": False, "service": DOWN}, None),  # it is down already
        ({"connected": ["10.0.0.9"]}, "10.0.0.9 is connected to the client port"),
        ({"error": "no client port"}, "no client port"),
    ],
)
def test_what_keeps_a_server_from_its_stop(changes, said):
    found = [finding.seen for finding in decommission.check_stop(host(1, **changes))]
    assert (said is None and not found) or (said and len(found) == 1 and said in found[0])


def test_what_is_left_to_remove():
    lines = decommission.leftovers({"h1": stopped(1), "h2": stopped(2)}, ["/solr"])
    text = "\n".join(lines)
    for named in ("/a.tar.gz", "zookeeper.service", "/etc/zookeeper/zoo.cfg", "/var/lib/zookeeper", "2181, 2888, 3888"):
        assert named in text
    assert text.index("move the archive") < text.index("then remove the package")
    assert "/solr" in lines[-1] and "zookeeper.*" in text
