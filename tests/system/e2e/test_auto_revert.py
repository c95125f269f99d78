# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Brokers that fail to start in one migration: each reverts automatically where that is safe; after a fix the next run
continues."""

from __future__ import annotations

import contextlib
import json
import re

import pytest
import yaml
from ansible_collections.quorumshift.kafka.plugins.module_utils.wire import kafka_wire

from tests.system.testbed import faults
from tests.system.testbed.layout import INVENTORY
from tests.system.testbed.running import LOG
from tests.system.testbed.waiting import nth

START_TIMEOUT_S = 60


@pytest.fixture
def for_b2(fresh, tmp_path):
    """A function that returns an inventory in which only b2 gets these settings in migration mode."""

    def changed(settings):
        tree = yaml.safe_load(INVENTORY.read_text())
        tree["all"]["children"]["kafka_broker"]["hosts"]["b2"]["quorumshift_broker_config"] = settings
        path = tmp_path / "inventory.yml"
        path.touch(mode=0o600)
        path.write_text(yaml.safe_dump(tree))
        return path

    return changed


def roll(testbed, *wanted, down=1, extra=None, **options):
    """Run the playbook, b2 first; assert that it fails with all of `wanted` and at most `down` brokers down at once."""
    extra = {"quorumshift_canary": "b2", "quorumshift_start_timeout_s": START_TIMEOUT_S, **(extra or {})}
    with faults.Availability(testbed) as availability:
        ran = testbed.play("migrate", extra=extra, **options)
    output = ran.text.replace("\\n", "\n").replace('\\"', '"')
    assert ran.code != 0, ran.text
    assert len(availability.worst) <= down, availability.worst
    for message in wanted:
        assert message in output, ran.text
    return ran


def node_restart(testbed, host):
    return json.loads(testbed.run(host, "cat /var/lib/quorumshift/*/*/restart.json"))


def properties_of(testbed, host):
    return testbed.run(host, "cat /etc/kafka/server.properties")


def plain_brokers(testbed):
    """The brokers whose file starts them in plain ZooKeeper mode."""
    flag = "zookeeper.metadata.migration.enable"
    return [host for host in testbed.brokers if flag not in properties_of(testbed, host)]


def unregister(testbed, broker_id):
    """Remove the broker's registration from the quorum; return whether there was one."""
    controllers = [kafka_wire.HostPort(testbed.addresses[host], 9093) for host in testbed.controllers]
    return kafka_wire.unregister_broker(kafka_wire.describe_quorum_any(controllers).source, broker_id)


def phase_after(testbed):
    ran = testbed.play("status")
    return next(line for line in reversed(ran.text.splitlines()) if line.startswith("Cluster ")).rpartition(": ")[2]


def assert_reverted_to_plain(testbed, before):
    """Assert that b2 runs in sync with its old file and the quorum has no registration of it."""
    assert node_restart(testbed, "b2")["outcome"] == "reverted"
    assert properties_of(testbed, "b2") == before
    testbed.wait_in_sync()
    assert phase_after(testbed) == "controllers_ready" and not unregister(testbed, 2)


@pytest.mark.parametrize(
    ("setting", "value", "quoted"),
    [
        ("num.io.threads", "none", "Invalid value none for configuration num.io.threads"),
        ("ssl.keystore.password", "not-this-one", "keystore password was incorrect"),
    ],
    ids=["a value that Kafka rejects", "a wrong keystore password"],
)
def test_a_broker_with_a_wrong_setting_reverts(fresh, for_b2, setting, value, quoted):
    before = properties_of(fresh, "b2")
    roll(
        fresh,
        "kafka did not come up in mode zk_migration: kafka ended while it started",
        quoted,
        "Its properties file was reverted and it is up in mode zk again. Fix the cause and run again.",
        inventory=for_b2({setting: value}),
    )
    assert_reverted_to_plain(fresh, before)
    assert "not-this-one" not in LOG.read_text()


def test_a_reverted_broker_leaves_no_registration(fresh):
    """The broker registers before it reverts; the run removes its registration and checks that."""
    before = properties_of(fresh, "b2")
    with faults.never_seen_up(fresh, "b2", once=True):
        roll(
            fresh,
            "its listener does not answer",
            "removed from the quorum: the registration of broker [2]",
            "reverted and it is up in mode zk again",
        )
    assert_reverted_to_plain(fresh, before)


def test_the_cause_is_reported_while_controllers_are_unreachable(fresh):
    """Two have no Python any more, so that modules fail there. The next run removes the registration."""
    before, (unreachable, *failing) = properties_of(fresh, "b2"), fresh.controllers
    with contextlib.ExitStack() as stack:
        controller = stack.enter_context(faults.Unreachable(unreachable))
        for host in failing:
            stack.callback(fresh.run, host, "mv -n /usr/bin/python3.moved /usr/bin/python3")

        def cut_off(line):
            if "b2 stops" in line:
                controller.begin()
                for host in failing:
                    fresh.run(host, "mv -n /usr/bin/python3 /usr/bin/python3.moved")
            return False

        stack.enter_context(faults.never_seen_up(fresh, "b2", once=True))
        roll(
            fresh,
            "its listener does not answer",
            "reverted and it is up in mode zk again",
            "b2 reverted automatically. Its registration in the quorum may be left, and the next run removes it: ",
            "c1, c2, c3 could not be read",
            extra=faults.ALIVE,
            kill_when=cut_off,
        )
    assert node_restart(fresh, "b2")["outcome"] == "reverted" and properties_of(fresh, "b2") == before
    fresh.wait_in_sync()
    assert phase_after(fresh) == "controllers_starting"
    assert "broker 2 is registered in the quorum" in LOG.read_text().rpartition("\n$ ")[2]


def test_a_broker_whose_port_stays_taken_cannot_revert(fresh):
    with faults.port_taken(fresh, "b2", 9092):
        roll(
            fresh,
            "Address already in use",
            "Reverting to mode zk failed too",
            "Its file starts it in mode zk",
        )
        roll(fresh, "kafka did not come up in mode zk: ")  # the next run's repair fails too
    # its registration stays in the quorum until the next run starts it
    assert phase_after(fresh) == "controllers_starting"
    for message in ("broker 2 is registered in the quorum", "next: finish the interrupted restart on b2"):
        assert message in LOG.read_text().rpartition("\n$ ")[2], message


def test_a_full_log_disk_is_reported(fresh):
    path = "/var/lib/kafka/data1"
    with faults.disk_full(fresh, "b2", path):
        ran = roll(fresh, "did not come up in mode zk_migration")
    assert "No space left on device" in ran.text


def test_no_broker_reverts_once_the_initial_copy_has_begun(fresh):
    while len(plain_brokers(fresh)) > 1:
        fresh.play(extra={"quorumshift_canary": "b2"}, kill_when=nth(1, " is up ("))
    (last,) = plain_brokers(fresh)
    with faults.never_seen_up(fresh, last), faults.ended_when_copied(fresh, last):
        ran = roll(fresh, "Its properties file was not reverted: ", "It stays in mode zk_migration")
    # the speed of the copy decides which message
    begun = r"not reverted: (/controller is owned by KRaft|/migration has kraft_metadata_offset \d+)"
    assert re.search(begun, ran.text), ran.text
    assert node_restart(fresh, last)["outcome"] == "failed"
    assert "zookeeper.metadata.migration.enable=true" in properties_of(fresh, last)
    assert phase_after(fresh) in ("copying", "hybrid")


def test_a_broker_reverts_to_migration_mode(fresh):
    with faults.port_taken(fresh, "b2", 9092, once=True):
        roll(fresh, "did not come up in mode kraft", "Address already in use", "is up in mode zk_migration again")
    assert node_restart(fresh, "b2")["outcome"] == "reverted"
    assert phase_after(fresh) == "hybrid"


def assert_reverted_to_migration_mode(testbed, before):
    """Assert that b2 runs in sync in migration mode with its old file and the phase is hybrid."""
    assert node_restart(testbed, "b2")["outcome"] == "reverted"
    assert properties_of(testbed, "b2") == before
    testbed.wait_in_sync()
    assert phase_after(testbed) == "hybrid"


def test_a_broker_with_a_setting_that_fails_only_in_kraft_mode_reverts(fresh):
    """An operator's edit between the restarts: in ZooKeeper mode a broker does not wait for its registration."""
    setting = "initial.broker.registration.timeout.ms=1"
    fresh.run("b2", f"echo {setting} >> /etc/kafka/server.properties")
    before = properties_of(fresh, "b2")
    roll(fresh, "did not come up in mode kraft", "is up in mode zk_migration again")
    assert_reverted_to_migration_mode(fresh, before)
    fresh.run("b2", f"sed -i /{setting}/d /etc/kafka/server.properties")


def test_no_other_broker_stops_after_a_log_disk_fails_in_kraft_mode(fresh):
    """In KRaft mode a broker starts without a failed log directory (KIP-858)."""
    with faults.disk_full(fresh, "b2", "/var/lib/kafka/data2"):
        roll(fresh, "may be stopped. Last seen: ", "partitions under-replicated: ")
    assert node_restart(fresh, "b2")["outcome"] == "done"
    fresh.run("b2", "systemctl restart kafka")
    fresh.wait_listening("b2", 9092)
    fresh.wait_in_sync()
    assert phase_after(fresh) == "hybrid"


def test_a_broker_with_a_wrong_password_in_both_files_cannot_revert(fresh):
    """The run reports it, and the broker starts once its file is fixed."""
    path = "/etc/kafka/server.properties"
    key = "ssl.keystore.password="
    fresh.run("b1", f"cp -p {path} /root/right; sed -i 's/{key}.*/{key}wrong/' {path}")
    roll(fresh, "did not come up in mode kraft", "keystore password was incorrect", "Reverting to mode zk_migration")
    assert node_restart(fresh, "b1")["outcome"] == "failed"
    fresh.run("b1", f"sed -i /{key}/d {path}; grep {key} /root/right >> {path}; rm /root/right")


def test_a_run_continues_to_dual_write_after_the_fix(fresh):
    ran = fresh.play(extra={"quorumshift_canary": "b2"})
    assert ran.code == 0, ran.text
    assert phase_after(fresh) == "dual_write"
    again = fresh.play()
    assert again.code == 0 and all(again.recap(host).get("changed", 0) == 0 for host in fresh.addresses), again.text
