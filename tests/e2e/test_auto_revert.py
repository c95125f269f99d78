# Copyright: (c) 2026, Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""One migration in which broker after broker cannot start: each is put back where that is safe, and the run goes on
once the cause is mended."""

from __future__ import annotations

import contextlib
import json
import re

import pytest
import yaml
from ansible_collections.quorumshift.kafka.plugins.module_utils.probes import kafka_wire

from tools.e2e import faults
from tools.e2e.testbed import INVENTORY, LOG, nth

SEEN_UP_S = 60


@pytest.fixture
def for_b2(fresh, tmp_path):
    """An inventory in which broker b2 alone gets these settings in migration mode."""

    def changed(settings):
        tree = yaml.safe_load(INVENTORY.read_text())
        tree["all"]["children"]["kafka_broker"]["hosts"]["b2"]["quorumshift_broker_config"] = settings
        path = tmp_path / "inventory.yml"
        path.touch(mode=0o600)
        path.write_text(yaml.safe_dump(tree))
        return path

    return changed


def roll(testbed, *wanted, down=1, extra=None, **options):
    """Run the playbook, b2 first; it must fail with all of `wanted`, and never have had more than `down` brokers
    down."""
    extra = {"quorumshift_canary": "b2", "quorumshift_start_timeout_s": SEEN_UP_S, **(extra or {})}
    with faults.Availability(testbed) as availability:
        ran = testbed.play("migrate", extra=extra, **options)
    reported = ran.text.replace("\\n", "\n").replace('\\"', '"')
    assert ran.code != 0, ran.text
    assert len(availability.worst) <= down, availability.worst
    for tokens in wanted:
        assert tokens in reported, ran.text
    return ran


def node_restart(testbed, host):
    return json.loads(testbed.run(host, "cat /var/lib/quorumshift/*/restart.json"))


def file_of(testbed, host):
    return testbed.run(host, "cat /etc/kafka/server.properties")


def plain(testbed):
    """The brokers whose file starts them in plain ZooKeeper mode."""
    return [host for host in testbed.brokers if "zookeeper.metadata.migration.enable" not in file_of(testbed, host)]


def registered(testbed, broker_id):
    """Whether the quorum has a registration of this broker; it has none afterwards."""
    scratch_dirs = [kafka_wire.HostPort(testbed.addresses[host], 9093) for host in testbed.controllers]
    return kafka_wire.unregister_broker(kafka_wire.describe_quorum_any(scratch_dirs).source, broker_id)


def phase_after(testbed):
    ran = testbed.play("status")
    return next(line for line in reversed(ran.text.splitlines()) if line.startswith("Cluster ")).rpartition(": ")[2]


def put_back_to_plain(testbed, before):
    """b2 runs as before its turn, whole; nothing of it is left in the quorum."""
    assert node_restart(testbed, "b2")["outcome"] == "reverted"
    assert file_of(testbed, "b2") == before
    testbed.wait_in_sync()
    assert phase_after(testbed) == "controllers_ready" and not registered(testbed, 2)


@pytest.mark.parametrize(
    ("setting", "value", "quoted"),
    [
        ("num.io.threads", "none", "Invalid value none for configuration num.io.threads"),
        ("ssl.keystore.password", "not-this-one", "keystore password was incorrect"),
    ],
    ids=["a value that Kafka refuses", "a wrong keystore password"],
)
def test_a_setting_that_does_not_do(fresh, for_b2, setting, value, quoted):
    before = file_of(fresh, "b2")
    roll(
        fresh,
        "kafka did not come up in mode zk_migration: kafka ended while it started",
        quoted,
        "Its properties file was reverted and it is up in mode zk again. Fix the cause and run again.",
        inventory=for_b2({setting: value}),
    )
    put_back_to_plain(fresh, before)
    assert "not-this-one" not in LOG.read_text()


def test_a_registration_that_a_put_back_left(fresh):
    """The broker gets as far as its registration; it is removed, and that is read back."""
    before = file_of(fresh, "b2")
    with faults.never_seen_up(fresh, "b2", once=True):
        roll(
            fresh,
            "its listener does not answer",
            "removed from the quorum: the registration of broker [2]",
            "reverted and it is up in mode zk again",
        )
    put_back_to_plain(fresh, before)


def test_controllers_that_are_gone_while_a_broker_goes_back(fresh):
    """Why the broker was put back is told all the same, and the next run removes its registration."""
    before = file_of(fresh, "b2")
    with contextlib.ExitStack() as excluded:
        cut = [excluded.enter_context(faults.Unreachable(host)) for host in fresh.controllers]

        def begin(line):
            if "b2 stops" in line:
                for host in cut:
                    host.begin()
            return False

        excluded.enter_context(faults.never_seen_up(fresh, "b2", once=True))
        roll(
            fresh,
            "its listener does not answer",
            "reverted and it is up in mode zk again",
            "b2 was put back; what it left in the quorum was not looked for, as c1, c2, c3 could not be read: ",
            extra=faults.ALIVE,
            kill_when=begin,
        )
    assert node_restart(fresh, "b2")["outcome"] == "reverted" and file_of(fresh, "b2") == before
    fresh.wait_in_sync()
    assert phase_after(fresh) == "controllers_starting"
    assert "broker 2 is registered in the quorum" in LOG.read_text().rpartition("\n$ ")[2]


def test_the_port_taken_for_good(fresh):
    with faults.port_taken(fresh, "b2", 9092):
        roll(
            fresh,
            "Address already in use",
            "Reverting to mode zk failed too",
            "Its file starts it in mode zk",
        )
        roll(fresh, "kafka did not come up in mode zk: ")  # the repair, while the cause lasts
    # Its registration stays in the quorum until it is up again: the next run sees to both.
    assert phase_after(fresh) == "controllers_starting"
    for reported in ("broker 2 is registered in the quorum", "next: finish the turn that was left half done on b2"):
        assert reported in LOG.read_text().rpartition("\n$ ")[2], reported


def test_a_full_log_disk(fresh):
    path = "/var/lib/kafka/data1"
    with faults.disk_full(fresh, "b2", path):
        ran = roll(fresh, "did not come up in mode zk_migration")
    assert "No space left on device" in ran.text


def test_no_way_back_once_the_copy_has_begun(fresh):
    while len(plain(fresh)) > 1:
        fresh.play(extra={"quorumshift_canary": "b2"}, kill_when=nth(1, " is up ("))
    (last,) = plain(fresh)
    with faults.never_seen_up(fresh, last), faults.ended_when_copied(fresh, last):
        ran = roll(fresh, "Its properties file was not reverted: ", "It stays in mode zk_migration")
    # which of the two it is, is a matter of how fast the copy was
    begun = r"not reverted: (/controller is KRaft's|/migration holds kraft_metadata_offset \d+: the copy has begun)"
    assert re.search(begun, ran.text), ran.text
    assert node_restart(fresh, last)["outcome"] == "failed"
    assert "zookeeper.metadata.migration.enable=true" in file_of(fresh, last)
    assert phase_after(fresh) in ("copying", "hybrid")


def test_put_back_in_the_kraft_roll(fresh):
    with faults.port_taken(fresh, "b2", 9092, once=True):
        roll(fresh, "did not come up in mode kraft", "Address already in use", "is up in mode zk_migration again")
    assert node_restart(fresh, "b2")["outcome"] == "reverted"
    assert phase_after(fresh) == "hybrid"


def put_back_to_migration_mode(testbed, before):
    """b2 runs in migration mode again, with its file as it was, and nothing else has changed."""
    assert node_restart(testbed, "b2")["outcome"] == "reverted"
    assert file_of(testbed, "b2") == before
    testbed.wait_in_sync()
    assert phase_after(testbed) == "hybrid"


def test_a_setting_that_kraft_alone_refuses(fresh):
    """Somebody's own edit between the rolls: a broker in ZooKeeper mode does not wait for its registration."""
    setting = "initial.broker.registration.timeout.ms=1"
    fresh.run("b2", f"echo {setting} >> /etc/kafka/server.properties")
    before = file_of(fresh, "b2")
    roll(fresh, "did not come up in mode kraft", "is up in mode zk_migration again")
    put_back_to_migration_mode(fresh, before)
    fresh.run("b2", f"sed -i /{setting}/d /etc/kafka/server.properties")


def test_a_full_log_disk_in_the_kraft_roll(fresh):
    """In KRaft mode a broker comes up without a log directory that fails (KIP-858): no other broker is stopped."""
    with faults.disk_full(fresh, "b2", "/var/lib/kafka/data2"):
        roll(fresh, "may be stopped. Last seen: ", "partitions under-replicated: ")
    assert node_restart(fresh, "b2")["outcome"] == "done"
    fresh.run("b2", "systemctl restart kafka")
    fresh.wait_listening("b2", 9092)
    fresh.wait_in_sync()
    assert phase_after(fresh) == "hybrid"


def test_a_wrong_keystore_password_in_the_kraft_roll(fresh):
    """The old file has it too, so there is no way back: it is said, and the broker comes up once the file is mended."""
    path = "/etc/kafka/server.properties"
    key = "ssl.keystore.password="
    fresh.run("b1", f"cp -p {path} /root/right; sed -i 's/{key}.*/{key}wrong/' {path}")
    roll(fresh, "did not come up in mode kraft", "keystore password was incorrect", "Reverting to mode zk_migration")
    assert node_restart(fresh, "b1")["outcome"] == "failed"
    fresh.run("b1", f"sed -i /{key}/d {path}; grep {key} /root/right >> {path}; rm /root/right")


def test_the_cause_mended_a_run_arrives(fresh):
    ran = fresh.play(extra={"quorumshift_canary": "b2"})
    assert ran.code == 0, ran.text
    assert phase_after(fresh) == "dual_write"
    again = fresh.play()
    assert again.code == 0 and all(again.recap(host).get("changed", 0) == 0 for host in fresh.addresses), again.text
