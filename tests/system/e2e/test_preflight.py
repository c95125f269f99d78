# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""playbooks/preflight.yml: its table, its waivers, and its findings about ZooKeeper and properties files.

Each test causes a fault and fixes it. The playbook changes nothing.
"""

from __future__ import annotations

import contextlib
import json
import pathlib

import pytest
from ansible_collections.quorumshift.kafka.plugins.module_utils.core.preflight import preflight as checks
from ansible_collections.quorumshift.kafka.plugins.module_utils.formats.zookeeper import znodes
from confluent_kafka.admin import NewTopic

from tests.system.e2e.rollbacks import changed
from tests.system.testbed.waiting import wait_for

NAMES = {check.id: check.name for check in checks.CHECKS}
TITLES = {check.name: check.title for check in checks.CHECKS}
FILE = "/etc/kafka/server.properties"
REPORTER = "com.linkedin.kafka.cruisecontrol.metricsreporter.CruiseControlMetricsReporter"
TOPIC = "scratch.rf2-2"
DELETED = "scratch.rf2-1"  # not TOPIC: the controller knows another version of TOPIC's state by then


def preflight(testbed, directory, inventory=None, **extra):
    """Run the playbook; return the run and its findings as {check's name: [(severity, seen)]}."""
    ran = testbed.play("preflight", inventory=inventory, extra={"quorumshift_artifacts_dir": str(directory), **extra})
    assert changed(ran, testbed) == [], ran.text
    newest = sorted(directory.glob("*/*/preflight.json"))[-1]
    found = {}
    for finding in json.loads(newest.read_text())["findings"]:
        found.setdefault(NAMES[finding["id"]], []).append((finding["severity"], finding["seen"]))
    return ran, found


def test_a_healthy_cluster_has_one_warning(fresh, tmp_path):
    ran, found = preflight(fresh, tmp_path)
    assert ran.code == 0 and set(found) == {"enabled"}, ran.text
    assert (
        " passed. Findings: blocking 0, warnings 1" in ran.text
        and f"      warns   {checks.ID['enabled']}  " in ran.text
    )


def test_a_warning_is_waived_with_a_reason(fresh, tmp_path):
    ran, _found = preflight(fresh, tmp_path, quorumshift_waive={"QS-CHECK-055": "started by hand"})
    assert ran.code == 0 and "warnings 0, waived 1" in ran.text and "waived: started by hand" in ran.text, ran.text
    (page,) = tmp_path.glob("*/2*/index.html")
    assert "warns, waived: started by hand" in page.read_text() and "done" not in page.read_text()[:300]
    ran = fresh.play("preflight", extra={"quorumshift_waive": {"QS-CHECK-999": "why"}})
    assert ran.code != 0 and "quorumshift_waive: QS-CHECK-999 is not a check" in ran.text, ran.text


@contextlib.contextmanager
def added(testbed, hosts, *lines):
    """Append lines to brokers' properties files; remove them at the end."""
    text = "\\n".join(lines)
    testbed.on_each(hosts, f"cp -a {FILE} {FILE}.test; printf '{text}\\n' >> {FILE}")
    try:
        yield
    finally:
        testbed.on_each(hosts, f"mv {FILE}.test {FILE}")


@pytest.mark.provokes("running_config", "control_plane", "self_healer", "topic_policies")
def test_changed_properties_files_are_found(fresh, tmp_path):
    lines = ("num.network.threads=5", "control.plane.listener.name=INTERNAL", f"metric.reporters={REPORTER}")
    policy = "create.topic.policy.class.name=org.example.Policy"
    with added(fresh, ["b1", "b3"], policy), added(fresh, ["b2"], policy, *lines):
        ran, found = preflight(fresh, tmp_path)
    assert ran.code == 0, ran.text
    ((severity, seen),) = found["running_config"]
    assert severity == "warns" and seen.startswith("the properties file of b2 differs from the running config: "), seen
    assert "num.network.threads (file 5, running 3)" in seen, seen
    assert found["control_plane"] == [("warns", "b2 has control.plane.listener.name=INTERNAL")]
    assert found["self_healer"] == [("warns", "b2 reports to Cruise Control")]
    assert found["topic_policies"] == [("warns", "create.topic.policy.class.name of b1, b2, b3 is org.example.Policy")]


@pytest.mark.provokes("agreement", "authorizer", "controller_listener", "id_generation", "listeners", "unreadable")
@pytest.mark.provokes("tool_logins")
def test_wrong_settings_of_brokers_are_found(fresh, tmp_path):
    log_dirs = fresh.run("b3", f"sed -n 's/^log.dirs *= *//p' {FILE}").strip()
    torn = "/kafka-acl/Topic/preflight"
    with contextlib.ExitStack() as stack:
        stack.enter_context(added(fresh, ["b1"], "num.partitions=7", "broker.id=-1"))
        stack.enter_context(added(fresh, ["b2"], "authorizer.class.name=org.example.Authorizer"))
        stack.enter_context(added(fresh, ["b3"], f"log.dirs={log_dirs},/var/lib/kafka/nowhere"))
        client = stack.enter_context(fresh.zookeeper())
        client.create(torn, b"{torn")
        try:
            listener = {
                "quorumshift_controller_protocol": "SASL_PLAINTEXT",
                "quorumshift_controller_listener": "clients",
            }
            ran, found = preflight(fresh, tmp_path, **listener)
        finally:
            client.delete(torn)
    assert ran.code != 0, ran.text
    shown = json.dumps(found, indent=1)
    disagreements = [(severity, seen.partition(", which controllers take")[0]) for severity, seen in found["agreement"]]
    assert disagreements == [
        ("blocks", "brokers disagree on authorizer.class.name"),
        ("blocks", "brokers disagree on num.partitions"),
    ], shown
    assert found["authorizer"] == [("warns", "b2 uses the authorizer org.example.Authorizer")], shown
    assert found["log_directories"] == [("blocks", "b3: log directory /var/lib/kafka/nowhere does not exist")], shown
    assert found["id_generation"] == [("warns", "b1 let ZooKeeper generate their broker ids")], shown
    names = [seen for _severity, seen in found["listeners"]]
    assert names == [f"b{n} has a listener CLIENTS, the name of the controller listener" for n in (1, 2, 3)]
    assert found["controller_listener"][0][1].startswith("the controller listener is SASL_PLAINTEXT with no"), shown
    login = "quorumshift_controller_client.security_protocol is PLAINTEXT, "
    assert found["tool_logins"][0][1].startswith(login), shown
    assert [seen.partition(": ")[0] for _severity, seen in found["unreadable"]] == [f"ZooKeeper {torn}"], shown


@pytest.mark.provokes("partition_metadata")
def test_partition_directories_of_other_topics_are_found(fresh, tmp_path):
    of_b1, of_b3, *_others = (
        fresh.run(host, "ls -d /var/lib/kafka/data*/scratch.rf2-*[0-9] | head -1").strip() for host in ("b1", "b3")
    )
    stray = f"{pathlib.PurePath(of_b1).parent}/stray-0"
    fresh.run("b1", f"cp -a {of_b1}/partition.metadata /root/kept && cp -a {of_b1} {stray}")
    fresh.run("b1", f"sed -i 's/topic_id: ..../topic_id: AAAA/' {of_b1}/partition.metadata {stray}/partition.metadata")
    fresh.run("b3", f"rm {of_b3}/partition.metadata")
    try:
        ran, found = preflight(fresh, tmp_path)
    finally:
        fresh.run("b1", f"cp -a /root/kept {of_b1}/partition.metadata; rm -r {stray} /root/kept")
        fresh.run("b3", "systemctl restart kafka")  # the printed fix
    assert ran.code != 0 and set(found) == {"enabled", "partition_metadata"}, ran.text
    name = pathlib.PurePath(of_b1).name
    assert sorted(found["partition_metadata"]) == [
        ("blocks", f"b1 has partitions with another topic id than ZooKeeper's: {name}"),
        ("blocks", f"b3 has directories without partition.metadata: {of_b3}"),
        ("warns", "b1 has directories of partitions that ZooKeeper does not assign to it: stray-0"),
    ], found
    fresh.wait_in_sync()
    ran, found = preflight(fresh, tmp_path / "after")
    assert ran.code == 0 and "partition_metadata" not in found, ran.text


def test_one_host_under_two_names_is_found(fresh, tmp_path, inventory):
    def twin(groups):
        brokers = groups["kafka_broker"]["hosts"]
        brokers["b2-again"] = dict(brokers["b2"])

    ran, found = preflight(fresh, tmp_path, inventory=inventory(twin))
    assert ran.code != 0 and found["broker_ids"] == [("blocks", "b2, b2-again have the same broker id, 2")], ran.text


@pytest.mark.provokes("log_directories")
def test_a_failed_log_directory_is_found(fresh, tmp_path):
    failing, topic = "/var/lib/kafka/data2", "preflight.disk"
    count_failures = f"grep -c 'Stopping serving logs in dir {failing}' /var/log/kafka/server.log || true"
    before = fresh.run("b3", count_failures)
    fresh.run("b3", f"chmod 555 {failing}")
    admin = fresh.admin()  # must live until the response
    try:
        admin.create_topics([NewTopic(topic, 8, 3)])[topic].result(30)
        wait_for(
            lambda: fresh.run("b3", count_failures) != before, 60, "the broker to mark its log directory as failed"
        )
        ran, found = preflight(fresh, tmp_path)
    finally:
        fresh.run("b3", f"chmod 755 {failing}; systemctl restart kafka")
        fresh.wait_in_sync()
        admin.delete_topics([topic])[topic].result(30)
    assert ran.code != 0, ran.text
    assert found["log_directories"] == [("blocks", f"b3: the broker has taken its log directory {failing} offline")], (
        found
    )


@pytest.mark.provokes("ensemble")
def test_a_server_of_zookeeper_that_is_down_is_found(fresh, tmp_path):
    fresh.run("b3", "systemctl stop zookeeper")
    try:
        ran, found = preflight(fresh, tmp_path)
    finally:
        fresh.run("b3", "systemctl start zookeeper")
    assert ran.code == 0, ran.text
    ((severity, seen),) = found["ensemble"]
    assert severity == "warns" and seen.startswith("1 of 3 ZooKeeper servers do not serve ("), seen


@pytest.mark.provokes("controller_epoch", "partition_states")
@pytest.mark.parametrize(
    ("path", "value", "check", "message"),
    [
        (
            znodes.CONTROLLER_EPOCH,
            b"0",
            "controller_epoch",
            "/controller_epoch is 0, a partition state has ",
        ),
        (
            znodes.partition_state_path(TOPIC, 0),
            None,
            "partition_states",
            f"ZooKeeper has no partition state of {TOPIC}-0: no leader was ever elected",
        ),
    ],
)
def test_a_wrong_znode_blocks(fresh, tmp_path, path, value, check, message):
    with fresh.zookeeper() as client:
        before, acl = client.get(path)[0], client.get_acls(path)[0]
        if value is None:
            client.delete(path)
        else:
            client.set(path, value)
        try:
            ran, found = preflight(fresh, tmp_path)
        finally:
            if value is None:
                client.create(path, before, acl=acl)
            else:
                client.set(path, before)
            # The write fences the controller, which also knows an older version of the state: a new election reads both
            client.delete(znodes.CONTROLLER)
            wait_for(lambda: client.exists(znodes.CONTROLLER), 30, "the election of a controller")
    assert ran.code != 0 and f"These checks block the migration: {TITLES[check]}. Nothing was changed." in ran.text, (
        ran.text
    )
    assert {severity for severity, _seen in found[check]} == {"blocks"}, found
    _severity, seen = found[check][0]
    assert seen.startswith(message), seen
    fenced = [seen for _severity, seen in found[check][1:]]
    if value is None:  # the leader knows a later version of the state than the one that was created again
        fresh.reset()
    if path == znodes.CONTROLLER_EPOCH:  # a write to it fences the controller
        assert len(fenced) == 1 and "is the controller but can write nothing" in fenced[0], fenced
    else:
        assert fenced == []


@pytest.mark.provokes("zookeeper_files")
@pytest.mark.parametrize(
    ("change", "seen"),
    [
        (lambda groups: groups.pop("zookeeper"), "the inventory's group zookeeper has no host: changes of clients"),
        (
            lambda groups: groups["zookeeper"].update(vars={"quorumshift_zookeeper_config_file": "/etc/other.cfg"}),
            "no ZooKeeper server's files can be read, so changes of clients",
        ),
    ],
)
def test_servers_of_zookeeper_whose_files_cannot_be_read_are_found(fresh, tmp_path, inventory, change, seen):
    ran, found = preflight(fresh, tmp_path, inventory=inventory(change), quorumshift_verify=True)
    assert ran.code == 0, ran.text
    ((severity, text),) = found["zookeeper_files"]
    assert severity == "warns" and text.startswith(seen), text


@pytest.mark.provokes("deletions")
def test_a_stuck_topic_deletion_is_found(fresh, tmp_path):
    fresh.run("b3", "systemctl stop kafka")
    try:
        admin = fresh.admin()  # must live until the response
        admin.delete_topics([DELETED])[DELETED].result(30)
        ran, found = preflight(fresh, tmp_path)
    finally:
        fresh.run("b3", "systemctl start kafka")
    assert ran.code != 0 and "broker_ids" in found, ran.text
    assert found.get("deletions") == [("blocks", f"the deletion of {DELETED} does not complete")], found
    fresh.wait_in_sync()
    ran, found = preflight(fresh, tmp_path / "after")
    assert ran.code == 0 and "deletions" not in found, ran.text
