# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""playbooks/restore_zookeeper.yml after a migration emptied ZooKeeper, while clients run.

No acknowledged message is lost, and ZooKeeper has the same content as before.
"""

from __future__ import annotations

import json
import re
import time
from urllib.parse import quote

import pytest

from tests.system.e2e.clients import assert_nothing_lost, lasting_znodes, running_clients
from tests.system.testbed import faults
from tests.system.testbed.waiting import nth

TOKEN = r"-e quorumshift_restore_token=(\S+?:[0-9a-f]{6})"


@pytest.fixture(scope="module")
def clients(fresh, tmp_path_factory):
    """Verification clients; a function that stops them and returns their verdict."""
    with running_clients(tmp_path_factory.mktemp("clients")) as stop:
        yield stop


def unchanged(ran, testbed):
    return all(ran.recap(host).get("changed", 0) == 0 for host in testbed.addresses)


def kill_while_it_writes(testbed, token):
    """Kill the restore; assert that status and migrate.yml ask for it again and not for a start of the brokers."""
    killed = testbed.play(
        "restore_zookeeper",
        extra={"quorumshift_restore_token": token},
        kill_when=nth(1, "restore : Restore what is missing in ZooKeeper] ***"),
    )
    assert killed.code < 0, killed.text
    status = testbed.play("status")
    commands = [line.strip() for line in status.text.splitlines() if line.strip().startswith("ansible-playbook ")]
    for host in testbed.brokers:  # not even a reboot starts a broker on a half-restored ZooKeeper
        testbed.run(host, "systemctl start kafka")
        # failed: the broker had ended by itself when ZooKeeper was emptied
        assert testbed.run(host, "systemctl is-active kafka", check=False) in ("inactive", "failed"), host
    assert len(commands) == 1 and "restore_zookeeper" in commands[0], status.text
    assert "brokers are down for a restore, run " in status.text and "Start it" not in status.text, status.text
    forward = testbed.play()
    assert forward.code != 0 and "brokers are down for a restore, run " in forward.text, forward.text
    assert unchanged(forward, testbed), forward.text


def refuse_a_torn_backup(testbed):
    """Truncate one host's backup; assert that it is refused and the other host's is accepted."""
    complete, torn = testbed.controllers[:2]
    in_backup_dir = "cd /var/lib/quorumshift/*/backup &&"
    testbed.run(torn, f"{in_backup_dir} cp -a *.gz /root/kept.gz && head -c 30000 /root/kept.gz > $(ls *.gz)")
    for extra, message in (
        ({}, f"{torn} has zookeeper-"),
        ({"quorumshift_restore_from": torn}, "is incomplete: its compressed data end too early"),
    ):
        ran = testbed.play("restore_zookeeper", extra=extra)
        assert ran.code != 0 and message in ran.text and "quorumshift_restore_from" in ran.text, ran.text
        assert unchanged(ran, testbed), ran.text
    ran = testbed.play("restore_zookeeper", extra={"quorumshift_restore_from": complete})
    assert ran.code == 0 and "-e quorumshift_restore_token=" in ran.text, ran.text
    testbed.run(torn, f"{in_backup_dir} mv /root/kept.gz $(ls *.gz)")


def refuse_an_incomplete_inventory(testbed, inventory, token):
    """Assert that a missing broker is refused before any node stops: the restore would not stop it."""
    ran = testbed.play(
        "restore_zookeeper",
        extra={"quorumshift_restore_token": token},
        inventory=inventory(lambda groups: groups["kafka_broker"]["hosts"].pop("b3")),
    )
    assert ran.code != 0 and "broker 5 is registered in ZooKeeper and is not in the inventory" in ran.text, ran.text
    assert unchanged(ran, testbed), ran.text


def refuse_a_longer_list(testbed, planned):
    """Assert that a token confirms only the users and permissions that were listed when it was printed."""
    user = re.search(r"brings back SCRAM-SHA-\d+ credential of user (\S+)", planned.text).group(1)
    path = "/config/users/" + quote(user)
    credential = "salt=eA==,stored_key=eA==,server_key=eA==,iterations=4096"
    value = {"version": 1, "config": dict.fromkeys(("SCRAM-SHA-256", "SCRAM-SHA-512"), credential)}
    with testbed.zookeeper() as client:
        client.ensure_path(path)
        old = client.get(path)[0]
        client.set(path, json.dumps(value).encode())
        try:
            without = testbed.play("restore_zookeeper")
            assert f"credential of user {user}" not in without.text, without.text
        finally:
            client.set(path, old)
    token = re.search(TOKEN, without.text).group(1)
    ran = testbed.play("restore_zookeeper", extra={"quorumshift_restore_token": token})
    assert ran.code != 0 and "the users and permissions have changed" in ran.text, ran.text
    assert f"credential of user {user}" in ran.text and unchanged(ran, testbed), ran.text


def test_a_restore_loses_nothing(fresh, clients, inventory):
    time.sleep(10)
    before = lasting_znodes(fresh)
    emptied = faults.migration_that_empties_zookeeper(fresh)
    assert "The controllers were stopped and masked." in emptied.text, emptied.text
    assert not any(path.startswith("/brokers/topics/") for path in lasting_znodes(fresh))

    refuse_a_torn_backup(fresh)
    planned = fresh.play("restore_zookeeper")
    assert planned.code == 0 and unchanged(planned, fresh), planned.text
    assert re.search(r"missing from ZooKeeper: .*\d+ topic", planned.text), planned.text
    assert re.search(r"brings back SCRAM-SHA-\d+ credential of user \S+", planned.text), planned.text
    assert re.search(r"brings back (ALLOW|DENY) \w+ on .+ for User:", planned.text), planned.text
    assert "no user and no permission is taken away" in planned.text, planned.text
    token = re.search(TOKEN, planned.text).group(1)
    wrong = fresh.play("restore_zookeeper", extra={"quorumshift_restore_token": token[:-1] + "x"})
    assert wrong.code != 0 and "quorumshift_restore_token is " in wrong.text and unchanged(wrong, fresh), wrong.text

    refuse_an_incomplete_inventory(fresh, inventory, token)
    refuse_a_longer_list(fresh, planned)
    kill_while_it_writes(fresh, token)
    done = fresh.play("restore_zookeeper", extra={"quorumshift_restore_token": token})
    assert done.code == 0, done.text
    print(f"restored in {done.seconds:.0f} s")
    again = fresh.play("restore_zookeeper", extra={"quorumshift_restore_token": token})
    assert again.code == 0 and unchanged(again, fresh), again.text
    assert "there is nothing to restore" in again.text

    for host in fresh.brokers:
        assert "quorumshift" not in fresh.run(host, "systemctl show kafka --property DropInPaths"), f"{host} is masked"
    fresh.wait_in_sync()
    after = lasting_znodes(fresh)
    assert {path: value for path, value in before.items() if after.get(path) != value} == {}
    assert_nothing_lost(clients(), 10_000)


def test_brokers_have_their_old_files_and_controllers_stay_down(fresh):
    for host in fresh.brokers:
        name = "/etc/kafka/server.properties"
        saved = f"/var/lib/quorumshift/*/*/configs/{name.rpartition('/')[2]}.before-zk_migration"
        fresh.run(host, f"cmp {name} {saved}")
    for host in fresh.controllers:
        fresh.run(host, "systemctl start kafka-controller")
        assert fresh.run(host, "systemctl is-active kafka-controller", check=False) == "inactive"
    status = fresh.play("status")
    assert ": reverting" in status.text and "to do  controllers wiped" in status.text, status.text
    assert "controllers down" in status.text.replace("done   ", "")


def test_a_migration_is_refused_while_controllers_are_masked(fresh):
    ran = fresh.play()
    assert ran.code != 0 and "The phase is reverting" in ran.text and unchanged(ran, fresh), ran.text


def test_a_rollback_wipes_the_controllers(fresh):
    ran = fresh.play("rollback", extra={"quorumshift_rollback_to": "zk"})
    assert ran.code == 0 and ": zk" in ran.text and "properties file removed" in ran.text, ran.text
    again = fresh.play("rollback", extra={"quorumshift_rollback_to": "zk"})
    assert again.code == 0 and unchanged(again, fresh), again.text
