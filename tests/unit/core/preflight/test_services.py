# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""preflight: clocks, disks and services of hosts. The tests add what the recorded facts lack."""

from __future__ import annotations

import math

import pytest
from ansible_collections.quorumshift.kafka.plugins.module_utils.core.preflight import clocks, services

from tests.unit.core import recorded
from tests.unit.core.preflight_facts import collected, found, node, the_one

GIB = 1 << 30

# Clocks --------------------------------------------------------------------------------------------------------------


def clocked(**ahead):
    """Return facts in which each host reads its clock 0.4 s after the request and 0.6 s before the answer."""
    facts = collected()
    for host, node_facts in facts.cluster["nodes"].items():
        node_facts.update(asked=[1000.0, 1001.0], time=1000.4 + ahead.get(host, 0))
    return facts


@pytest.mark.parametrize("ahead", [0, 0.5, -0.3, 1.5, -1.3])
def test_no_finding_for_an_offset_within_the_round_trip(ahead):
    assert found(clocked(b2=ahead), "clocks") == []


@pytest.mark.parametrize(
    ("ahead", "severity", "expected"),
    [
        (3, "warns", "the clock of b2 is 2.4 s ahead"),
        (-3, "warns", "the clock of b2 is 2.6 s behind"),
        (3600, "blocks", "the clock of b2 is 3599.4 s ahead"),
        (-40, "blocks", "the clock of b2 is 39.6 s behind"),
    ],
)
def test_finding_for_a_clock_that_is_off(ahead, severity, expected):
    facts = clocked(b2=ahead)
    assert the_one(facts, "clocks") == expected
    assert found(facts, "clocks")[0]["severity"] == severity


def test_the_control_nodes_clock_is_one_finding():
    facts = clocked(**dict.fromkeys(collected().cluster["nodes"], 60))
    assert the_one(facts, "clocks") == "the control node's clock is 59.4 s behind every host's"
    assert found(facts, "clocks")[0]["severity"] == "blocks"


def test_one_host_and_the_control_node_are_two_findings():
    facts = clocked(**{**dict.fromkeys(collected().cluster["nodes"], -5), "c3": -9})
    assert [finding["seen"] for finding in found(facts, "clocks")] == [
        "the control node's clock is 4.6 s ahead of every host's",
        "the clock of c3 is 4.0 s behind",
    ]


def test_a_host_that_was_not_reached_has_no_clock():
    facts = clocked()
    del node(facts, "b1")["asked"]
    assert set(clocks.ahead_s(facts)) == {"b2", "b3", "c1", "c2", "c3"}


# Disks ---------------------------------------------------------------------------------------------------------------


def with_space(host, what, **change):
    facts = collected()
    for node_facts in facts.cluster["nodes"].values():
        node_facts["space"] = {
            name: {"path": path, "free_bytes": 70 * GIB, "read_only": False}
            for name, path in (("log_dir", "/data"), ("config_file", "/etc/kafka"), ("state_dir", "/var/lib"))
        }
    node(facts, host)["space"][what].update(change)
    return facts


def test_no_finding_with_enough_free_space():
    assert found(with_space("b1", "log_dir"), "space") == []


def test_free_space_that_is_not_known_is_no_pass():
    facts = with_space("b1", "log_dir")
    node(facts, "c1")["space"]["log_dir"] = None
    assert the_one(facts, "space") == "the free space of c1 for the metadata log is not known"
    assert found(facts, "space")[0]["severity"] == "warns"
    node(facts, "c1")["file"] = {"exists": True, "error": "denied", "properties": {}}
    assert found(facts, "space") == [], "without its properties file the directory is not known: see `reached`"


@pytest.mark.parametrize(
    ("host", "what", "change", "severity", "expected"),
    [
        ("c1", "log_dir", {"free_bytes": GIB // 2}, "blocks", "c1: /data, for the metadata log, has 512 MiB free and"),
        ("b1", "log_dir", {"free_bytes": GIB // 2}, "blocks", "b1: /data, for the metadata log, has 512 MiB free and"),
        (
            "c1",
            "log_dir",
            {"free_bytes": 3 * GIB},
            "warns",
            "c1: /data, for the metadata log, has 3072 MiB free, Kafka",
        ),
        (
            "b1",
            "config_file",
            {"free_bytes": 0},
            "blocks",
            "b1: /etc/kafka, for the new properties file, has 0 MiB free",
        ),
        ("c2", "state_dir", {"free_bytes": 9 << 20}, "blocks", "c2: /var/lib, for old properties files and the backup"),
        ("b2", "config_file", {"read_only": True}, "blocks", "b2: /etc/kafka, for the new properties file, is mounted"),
    ],
)
def test_finding_without_free_space(host, what, change, severity, expected):
    facts = with_space(host, what, **change)
    assert the_one(facts, "space").startswith(expected)
    assert found(facts, "space")[0]["severity"] == severity


def test_a_large_cluster_needs_more_space():
    facts = with_space("c1", "log_dir", free_bytes=GIB + (10 << 20))
    assert found(facts, "space")[0]["severity"] == "warns"
    topic = next(iter(facts.metadata["topics"].values()))
    topic["partitions"] = {str(number): topic["partitions"]["0"] for number in range(20_000)}
    assert "has 1034 MiB free and needs 104" in found(facts, "space")[0]["seen"]


def with_zookeeper(**change):
    facts = collected()
    directory = {"path": "/zk", "free_bytes": GIB, "read_only": False, "snapshot_bytes": 4 << 20}
    server = {"config": "/etc/zoo.cfg", "error": None, "dirs": [{**directory, **change}]}
    node(facts, "b2")["paths"] = {"zookeeper": [server]}
    return facts, server


def test_finding_without_free_space_for_zookeeper():
    assert found(with_zookeeper()[0], "zookeeper_space") == []
    seen = the_one(with_zookeeper(free_bytes=100 << 20)[0], "zookeeper_space")
    assert seen == "b2: /zk, for ZooKeeper's data, has 100 MiB free and needs 136 MiB"
    assert "is mounted read-only" in the_one(with_zookeeper(read_only=True)[0], "zookeeper_space")


def test_a_large_snapshot_needs_more_space_for_zookeeper():
    assert "needs 2176 MiB" in the_one(with_zookeeper(snapshot_bytes=GIB)[0], "zookeeper_space")


def test_warning_for_an_unreadable_zookeeper_config():
    facts, server = with_zookeeper()
    server.update(error="/etc/zoo.cfg: permission denied", dirs=[])
    assert "could not be read: /etc/zoo.cfg" in the_one(facts, "zookeeper_space")
    assert found(facts, "zookeeper_space")[0]["severity"] == "warns"


# Memory --------------------------------------------------------------------------------------------------------------


def with_memory(host, **memory):
    facts = collected()
    node(facts, host)["memory"] = {"total_bytes": 64 * GIB, "available_bytes": 32 * GIB, "heap": None, **memory}
    return facts


def test_finding_for_a_controller_with_little_memory():
    assert found(with_memory("c1"), "memory") == []
    assert the_one(with_memory("c1", total_bytes=4 * GIB), "memory").startswith("c1 has 4096 MiB of memory, Kafka")
    little = with_memory("c1", available_bytes=GIB // 2)
    assert the_one(little, "memory").startswith("c1 has 512 MiB of memory available")
    assert found(with_memory("c1", total_bytes=None, available_bytes=None), "memory") == []


def test_no_finding_for_a_running_controller():
    facts = with_memory("c1", available_bytes=GIB // 2)
    node(facts, "c1")["service"]["active"] = True
    assert found(facts, "memory") == []


@pytest.mark.parametrize(("collector", "used", "full"), [("G1", 5.5, True), ("G1", 3, False), ("MSC", 5.5, False)])
def test_finding_for_a_heap_that_is_nearly_full(collector, used, full):
    heap = {"collector": collector, "old_used_bytes": int(used * GIB), "max_bytes": 6 * GIB}
    facts = with_memory("b1", heap=heap)
    if full:
        assert the_one(facts, "memory") == "the heap of b1 is nearly full: the old generation uses 5632 of 6144 MiB"
    else:
        assert found(facts, "memory") == []


# Services ------------------------------------------------------------------------------------------------------------


def running_with(path, same, overrides=()):
    facts = collected()
    node(facts, "b2")["runs_with"] = {"path": path, "same": same, "overrides": list(overrides)}
    return facts


def test_no_finding_for_a_service_that_reads_the_edited_file():
    facts = running_with("/opt/conf/server.properties", True)  # a link
    node(facts, "b2")["starts_with"] = {"path": "/opt/conf/server.properties", "same": True}
    node(facts, "b1")["starts_with"] = None
    assert found(facts, "config_files") == []


def test_finding_for_a_broker_that_runs_with_another_file():
    facts = running_with("/opt/conf/other.properties", False)
    assert the_one(facts, "config_files") == (
        "kafka.service of b2 runs with /opt/conf/other.properties, quorumshift_broker_config_file is "
        "/etc/kafka/server.properties"
    )


def test_finding_for_settings_on_the_command_line():
    facts = running_with("/etc/kafka/server.properties", True, ["broker.id", "log.dirs"])
    assert the_one(facts, "config_files") == "kafka.service of b2 runs with --override broker.id, log.dirs"


@pytest.mark.parametrize(("host", "role"), [("b1", "broker"), ("c1", "controller")])
def test_finding_for_a_drop_in_with_another_file(host, role):
    facts = collected()
    node(facts, host)["starts_with"] = {"path": "/etc/kafka/test.properties", "same": False}
    node_facts = node(facts, host)
    assert the_one(facts, "config_files") == (
        f"{node_facts['service']['name']} of {host} will start with /etc/kafka/test.properties, "
        f"quorumshift_{role}_config_file is {node_facts['file']['path']}"
    )


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("1min 30s", 90),
        ("2min", 120),
        ("500ms", 0.5),
        ("1h 5min 2.500s", 3902.5),
        ("infinity", math.inf),
        ("", None),
        ("[not set]", None),
    ],
)
def test_time_spans_of_systemd(text, seconds):
    assert services.timespan_s(text) == seconds


@pytest.mark.parametrize(
    ("host", "text", "expected"),
    [
        ("b1", "1min 30s", None),
        ("b1", "infinity", None),
        ("c1", "30s", None),
        ("c1", "5s", "systemd kills kafka-controller.service of c1 5 s after a stop request; a stop with 0"),
        ("b1", "1min", "systemd kills kafka.service of b1 60 s after a stop request; a stop with 650"),
        ("b1", "10min", "systemd gives kafka.service of b1 600 s to stop, quorumshift_stop_timeout_s is 300"),
    ],
)
def test_finding_for_a_stop_timeout(host, text, expected):
    facts = collected(stop_timeout_s=300)
    node(facts, host)["service"]["timeout_stop"] = text
    if expected:
        assert the_one(facts, "stop_timeouts").startswith(expected)
    else:
        assert found(facts, "stop_timeouts") == []


def test_services_with_the_same_settings_share_a_finding():
    facts = collected(stop_timeout_s=300)
    for host in facts.brokers:
        node(facts, host)["service"].update(timeout_stop="10s", restart="on-failure", unit_file_state="disabled")
    assert the_one(facts, "stop_timeouts").startswith("systemd kills kafka.service of b1, b2, b3 10 s after")
    assert the_one(facts, "restarts") == "kafka.service of b1, b2, b3 has Restart=on-failure"
    assert the_one(facts, "enabled") == "kafka.service of b1, b2, b3 is not enabled: after a reboot it stays down"


@pytest.mark.parametrize(("value", "warned"), [("no", 0), ("on-abnormal", 0), ("on-failure", 1), ("always", 1)])
def test_warning_for_automatic_restarts(value, warned):
    facts = collected()
    node(facts, "c2")["service"]["restart"] = value
    assert len(found(facts, "restarts")) == warned


@pytest.mark.parametrize(("value", "warned"), [("enabled", 0), ("static", 0), ("masked", 0), ("disabled", 1)])
def test_warning_for_a_disabled_service(value, warned):
    facts = collected()
    node(facts, "c2")["service"]["unit_file_state"] = value
    assert len(found(facts, "enabled")) == warned


def test_recorded_controllers_are_not_enabled():
    facts = collected()
    for host, recorded_node in recorded.facts("zk_hosts")["nodes"].items():
        node(facts, host)["service"] = recorded_node["service"]
    assert (
        the_one(facts, "enabled")
        == "kafka-controller.service of c1, c2, c3 is not enabled: after a reboot it stays down"
    )


def test_no_finding_for_a_service_manager_other_than_systemd():
    facts = collected(stop_timeout_s=300)
    for node_facts in facts.cluster["nodes"].values():
        node_facts["service"] = {"manager": "service", "name": "kafka", "active": True, "main_pid": 0, "masked": False}
    for check in ("config_files", "stop_timeouts", "restarts", "enabled"):
        assert found(facts, check) == []


@pytest.mark.parametrize(
    ("limits", "expected"),
    [
        (None, []),
        ({"open_files": [5000, 65536], "memory_maps": [9000, 65530]}, []),
        (
            {"open_files": [60000, 65536], "memory_maps": [65000, 65530]},
            ["has 65000 memory maps of at most 65530", "has 60000 open files of at most 65536"],
        ),
    ],
)
def test_warning_for_a_broker_near_its_limits(limits, expected):
    facts = collected()
    node(facts, "b2")["limits"] = limits
    assert [finding["seen"].partition("of b2 ")[2] for finding in found(facts, "limits")] == expected
    assert {finding["severity"] for finding in found(facts, "limits")} <= {"warns"}


def on_hosts(**of_host):
    """Return facts of hosts with Linux and systemd, with these differences on b2."""
    facts = collected()
    fine = {"system": "Linux", "machine_id": "m", "first_process": "systemd", "systemd": ""}
    for host in facts.cluster["nodes"]:
        own = of_host if host == "b2" else {}
        node(facts, host)["host"] = {**fine, **{key: value for key, value in own.items() if key != "clock"}}
        node(facts, host)["clock"] = own.get("clock", {"boot_id": "b", "uptime_s": 1.0})
    return facts


@pytest.mark.parametrize(
    ("changes", "seen"),
    [
        (
            {"systemd": "it does not run", "first_process": "runit"},
            "systemd cannot be used on b2: it does not run (process 1 is runit)",
        ),
        (
            {"systemd": "Failed to connect to bus: Permission denied"},
            "systemd cannot be used on b2: Failed to connect to bus: Permission denied (process 1 is systemd)",
        ),
        ({"clock": {"error": "no /proc/x"}}, "b2 cannot time a gate token: no /proc/x"),
        ({"system": "FreeBSD", "systemd": "it does not run", "clock": {"error": "no /proc/x"}}, "b2 runs FreeBSD"),
    ],
)
def test_a_host_on_which_restarts_do_not_work_blocks(changes, seen):
    assert found(on_hosts(), "platform") == []
    facts = on_hosts(**changes)
    assert the_one(facts, "platform") == seen
    assert found(facts, "platform")[0]["severity"] == "blocks"
