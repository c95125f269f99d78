# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Actions that run their module once: what they print and journal, and what check mode keeps them from."""

from __future__ import annotations

import json

import pytest

CASES = [
    ("broker_unregister", {}, {"unregistered": [2]}, "removed from the quorum", "unregistered"),
    ("controller_wipe", {}, {"changed": True, "emptied": ["/meta"], "config_file": "removed"}, "c1: /meta", "wiped"),
    (
        "restore_zk_controller",
        {},
        {
            "changed": True,
            "controller_epoch": 9,
            "raised": 2,
            "deleted": ["/controller"],
            "elected": 1,
            "without_s": 1.5,
        },
        "broker 1 is the controller, after 1.5 s without a controller; deleted: /controller",
        "ZooKeeper controller restored",
    ),
    ("service_stop", {"state": "masked"}, {"changed": True, "stopped": True}, "", "masked"),
    ("zk_backup", {"state": "taken"}, {"znodes": 3, "data_bytes": 2048}, "3 znodes, 2 KiB of data", "backup taken"),
    (
        "zk_backup",
        {"state": "verified"},
        {"equal": 3, "changed_since": {"changed": {"topic": 1}}},
        "3 znodes are as they are in ZooKeeper, 1 changed there since",
        "backup read back",
    ),
    (
        "zk_decommission",
        {"state": "archived"},
        {"changed": True, "archive": {"path": "/a/1.tar.gz", "sha256": "aa", "zxid": 9, "znodes": 5}, "host": {}},
        "c1: 5 znodes archived in /a/1.tar.gz, and read back",
        "zookeeper archived",
    ),
    (
        "zk_decommission",
        {"state": "stopped"},
        {"changed": True, "host": {"server": "z1:2181"}},
        "c1: z1:2181 is stopped and masked, and nothing listens",
        "zookeeper stopped",
    ),
    ("zk_partition_states", {}, {"created": ["t-0"]}, "created in ZooKeeper: the state of t-0", "states created"),
]


@pytest.mark.parametrize(("name", "args", "result", "printed", "event"), CASES)
def test_what_an_action_prints_and_journals(harness, name, args, result, printed, event):
    harness.run(name, args, result, host="c1")
    assert printed in "\n".join(harness.printed) and len(harness.events(event)) == 1


@pytest.mark.parametrize(("name", "args", "result", "printed", "event"), CASES)
def test_check_mode_journals_nothing(harness, name, args, result, printed, event):
    harness.check_mode = True
    harness.run(name, args, result, host="c1")
    assert harness.events() == [] and harness.printed == []


@pytest.mark.parametrize(("name", "args", "result", "printed", "event"), CASES)
def test_a_failure_is_no_success_in_the_journal(harness, name, args, result, printed, event):
    harness.run(name, args, {"failed": True, "msg": "no"}, host="c1")
    assert harness.events(event) == []


def test_the_counts_of_the_initial_copy_are_kept_also_when_it_fails(harness):
    failed = {"failed": True, "msg": "x", "damage": ["1 topics are missing"], "records": {}}
    harness.run("initial_copy", {"state": "compared", "before": {}}, failed)
    assert json.loads(harness.artifacts.read("copy-compared.json"))["damage"] == ["1 topics are missing"]


def test_the_compared_copy_is_shown(harness):
    result = {"damage": [], "differences": [], "moved": ["1 topic"], "records": {"TOPIC_RECORD": 3}, "took_s": 0.4}
    harness.run("initial_copy", {"state": "compared", "before": {"records": {"TOPIC_RECORD": 3}}}, result)
    assert harness.printed == [
        "    copied: TOPIC_RECORD 3",
        "    the initial copy took 0.4 s, in which no leader was elected",
        "    changed meanwhile: 1 topic",
    ]
    assert json.loads(harness.artifacts.read("copy-compared.json"))["took_s"] == 0.4


FINDINGS = [
    {
        "id": "QS-CHECK-034",
        "title": "Free space",
        "severity": "blocks",
        "seen": "c1 has 1 MiB",
        "do": "make room",
        "waived": None,
    }
]


def test_secrets_of_the_preflight_are_sealed_before_they_travel(harness):
    given = {"controller_config": {"ssl.key.password": "hunter2", "plugin.api.key": "hunter3", "broker.id": 1}}
    harness.run("kraft_preflight", given, {"findings": [], "checks": ["space"]})
    sent = harness.asked[0]["controller_config"]
    assert sent["broker.id"] == "1" and "hunter" not in str(sent)


def test_blocking_findings_are_kept_and_not_printed_twice(harness):
    failed = {"failed": True, "msg": "1 finding", "findings": FINDINGS, "checks": ["space"]}
    result = harness.run("kraft_preflight", {"show": True}, failed)
    assert result == {
        "failed": True,
        "changed": False,
        "msg": "These checks block the migration: Free space. Nothing was changed. (QS-CHECK-034 QS-CHECK-001)",
    }
    assert json.loads(harness.artifacts.read("preflight.json"))["findings"] == FINDINGS
    assert any("c1 has 1 MiB" in line for line in harness.printed)


BACKUP = {"taken_at": "2026-11-21", "znodes": 3, "path": "/b/zookeeper-1.jsonl.gz"}


def test_a_restore_shows_what_it_would_bring_back(harness):
    planned = {
        "backup": BACKUP,
        "missing": {"topic": 2},
        "completed": {},
        "partitions": 4,
        "pending_deletions": ["old"],
        "unread": {"7": 3},
        "token": "c:123456",
        "revived": ["SCRAM-SHA-512 credential of user ann", "ALLOW READ on Topic t for User:token-svc from host *"],
        "later": [],
    }
    harness.run("zk_restore", {"state": "planned", "path": "/b/x"}, planned)
    text = "\n".join(harness.printed)
    assert "missing from ZooKeeper: 2 topic" in text and "in ZooKeeper, but incomplete: nothing" in text
    assert "broker 7 is not in the inventory" in text and "topic old is marked for deletion" in text
    assert "brings back SCRAM-SHA-512 credential of user ann" in text
    assert "brings back ALLOW READ on Topic t for User:token-svc from host *" in text
    assert "no user and no permission is taken away" in text
    assert harness.events("restored") == []


def test_an_interrupted_restore_goes_on_with_what_its_token_listed(harness):
    planned = {"backup": BACKUP, "missing": {}, "completed": {}, "partitions": 4, "pending_deletions": [], "unread": {}}
    planned.update(token="c:123456", revived=["ALLOW READ on Topic t for User:token-svc from host *"], later=[])
    harness.run("zk_restore", {"state": "planned", "path": "/b/x"}, planned)
    harness.session["run"] = "a-later-run"
    harness.note_begin()
    again = {**planned, "token": "c:abcdef", "revived": []}
    harness.run("zk_restore", {"state": "planned", "path": "/b/x", "token": "c:123456"}, again)
    assert harness.asked[-1]["accepted"] == planned["revived"]
    harness.run("zk_restore", {"state": "planned", "path": "/b/x", "token": "c:000000"}, again)
    assert harness.asked[-1]["accepted"] == []


def test_a_restore_is_journalled(harness):
    restored = {"written": 2, "states": 4, "controller_epoch": 9, "from_disks": ["new"], "without_data": ["t-1"]}
    harness.run("zk_restore", {"state": "restored", "path": "/b/x"}, restored)
    assert harness.events("restored")[0]["written"] == 2
    assert "topic new is newer than the backup" in "\n".join(harness.printed)


def test_the_handover_is_kept_except_in_check_mode(harness):
    harness.variables["quorumshift_broker_config"] = {"sasl.mechanism.controller.protocol": "PLAIN"}
    values = {
        "process.roles": "broker",
        "node.id": "1",
        "sasl.mechanism.controller.protocol": "PLAIN",
        "log.dirs": "/d",
    }
    node = {"role": "broker", "file": {"path": "/etc/kafka/server.properties", "properties": values}, "node_id": 1}
    harness.facts("b1", quorumshift_node=node)
    harness.check_mode = True
    harness.run("handover", {}, {}, host="localhost")
    assert harness.artifacts.read("handover.json") is None
    harness.check_mode = False
    result = harness.run("handover", {}, {}, host="localhost")
    kept = json.loads(harness.artifacts.read("handover.json"))
    assert kept == result["handover"] and not result["changed"]
    assert set(kept["brokers"]["b1"]["set"]) == set(values) - {"log.dirs"}
    assert harness.printed[-1].endswith("not read: b2, c1")


CLIENTS = {
    "clients": [{"kind": "unknown", "address": "10.0.0.9"}],
    "servers": {"z1:2181": {"error": None}, "z2:2181": {"error": "connection refused"}},
    "others": [{"path": "/solr", "znodes": 3}],
    "findings": [
        {"seen": "the clients of z2:2181 are not known: connection refused (QS-ZKSTOP-002)", "do": "start it"}
    ],
    "lines": [f"client {number}" for number in range(50)],
}


def test_who_uses_zookeeper_is_shown_and_kept(harness):
    harness.run("zk_clients_info", {"show": True}, CLIENTS)
    text = "\n".join(harness.printed)
    assert "at least 50 addresses use ZooKeeper" in text and "client 39" in text and "client 40" not in text
    assert "10 more" in text and "/solr" in text and "the clients of z2:2181 are not known: connection refused" in text
    assert json.loads(harness.artifacts.read("zookeeper_clients.json"))["clients"] == CLIENTS["clients"]


@pytest.mark.parametrize(
    ("lines", "findings", "said"),
    [
        ([], [], "no client of ZooKeeper was found"),
        (["one"], [], "1 address uses ZooKeeper"),
        ([], CLIENTS["findings"], "it is not known who uses ZooKeeper"),
        (["one"], CLIENTS["findings"], "at least 1 address uses ZooKeeper"),
        ([], [{"seen": "/solr is not of this cluster (QS-ZKSTOP-004)"}], "no client of ZooKeeper was found"),
    ],
)
def test_how_many_addresses_use_zookeeper(harness, lines, findings, said):
    harness.run("zk_clients_info", {"show": True}, {**CLIENTS, "lines": lines, "findings": findings})
    assert harness.printed[0].strip() == said


def test_clients_that_end_a_run_are_kept(harness):
    result = harness.run(
        "zk_clients_info", {"state": "unused"}, {**CLIENTS, "failed": True, "msg": "used (QS-ZKSTOP-003)"}
    )
    assert result["failed"] and harness.printed == []
    assert json.loads(harness.artifacts.read("zookeeper_clients.json"))["others"] == CLIENTS["others"]


def test_what_travels_of_the_nodes_is_what_is_needed(harness):
    """The facts of a node have its properties."""
    harness.run("zk_clients_info", {}, CLIENTS)
    assert {key for node in harness.asked[0]["nodes"].values() for key in node} == {"role", "host_address"}
    harness.run("zk_decommission", {"state": "planned"}, {"order": []})
    keys = {key for node in harness.asked[1]["nodes"].values() for key in node}
    assert keys == {"reached", "error", "file", "cluster_ids"}
