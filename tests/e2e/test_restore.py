# Copyright: (c) 2026, Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A migration that emptied ZooKeeper, undone by playbooks/restore_zookeeper.yml under clients that go on: nothing that
was acknowledged is lost, and ZooKeeper holds what it held."""

from __future__ import annotations

import re
import time

import pytest

from tests.e2e.clients import held, nothing_lost, witnessed
from tools.e2e import faults


@pytest.fixture(scope="module")
def clients(fresh, tmp_path_factory):
    """The witness on the bed; a function that stops it and returns its verdict."""
    with witnessed(tmp_path_factory.mktemp("witness")) as verdict:
        yield verdict


def unchanged(ran, testbed):
    return all(ran.recap(host).get("changed", 0) == 0 for host in testbed.addresses)


def cut_off_while_it_writes(testbed, token):
    """Everything stands still: the screen and a run forward say what to type, and not that brokers are to start."""
    killed = testbed.play(
        "restore_zookeeper",
        extra={"quorumshift_restore_token": token},
        kill_when=lambda line: line.startswith("TASK") and "Bring back what is missing" in line,
    )
    assert killed.code < 0, killed.text
    status = testbed.play("status")
    typed = [line.strip() for line in status.text.splitlines() if line.strip().startswith("ansible-playbook ")]
    assert len(typed) == 1 and "restore_zookeeper" in typed[0], status.text
    assert "brokers are down for a restore, run " in status.text and "Start it" not in status.text, status.text
    forward = testbed.play()
    assert forward.code != 0 and "brokers are down for a restore, run " in forward.text, forward.text
    assert unchanged(forward, testbed), forward.text


def copies_that_differ(testbed):
    """One host's copy is torn: that the two differ is said, then that it is torn; the other one is enough."""
    whole, torn = testbed.controllers[:2]
    kept = "cd /var/lib/quorumshift/*/backup &&"
    testbed.run(torn, f"{kept} cp -a *.gz /root/kept.gz && head -c 30000 /root/kept.gz > $(ls *.gz)")
    for given, said in (
        ({}, f"{torn} has zookeeper-"),
        ({"quorumshift_restore_from": torn}, "is incomplete: its compressed data end too early"),
    ):
        ran = testbed.play("restore_zookeeper", extra=given)
        assert ran.code != 0 and said in ran.text and "quorumshift_restore_from" in ran.text, ran.text
        assert unchanged(ran, testbed), ran.text
    ran = testbed.play("restore_zookeeper", extra={"quorumshift_restore_from": whole})
    assert ran.code == 0 and "-e quorumshift_restore_token=" in ran.text, ran.text
    testbed.run(torn, f"{kept} mv /root/kept.gz $(ls *.gz)")


def one_left_out(testbed, inventory, token):
    """A broker that is not in the inventory would go on: refused before anything is stopped."""
    ran = testbed.play(
        "restore_zookeeper",
        extra={"quorumshift_restore_token": token},
        inventory=inventory(lambda groups: groups["kafka_broker"]["hosts"].pop("b3")),
    )
    assert ran.code != 0 and "broker 5 is registered in ZooKeeper and is not in the inventory" in ran.text, ran.text
    assert unchanged(ran, testbed), ran.text


def test_what_a_migration_emptied_is_restored(fresh, clients, inventory):
    time.sleep(10)
    before = held(fresh)
    emptied = faults.migration_that_empties_zookeeper(fresh)
    assert "The controllers were stopped and masked." in emptied.text, emptied.text
    assert not any(path.startswith("/brokers/topics/") for path in held(fresh))

    copies_that_differ(fresh)
    asked = fresh.play("restore_zookeeper")
    assert asked.code == 0 and unchanged(asked, fresh), asked.text
    assert re.search(r"missing from ZooKeeper: .*\d+ topic", asked.text), asked.text
    token = re.search(r"-e quorumshift_restore_token=(\S+?:[0-9a-f]{6})", asked.text).group(1)
    wrong = fresh.play("restore_zookeeper", extra={"quorumshift_restore_token": token[:-1] + "x"})
    assert wrong.code != 0 and "this backup's is" in wrong.text and unchanged(wrong, fresh), wrong.text

    one_left_out(fresh, inventory, token)
    cut_off_while_it_writes(fresh, token)
    done = fresh.play("restore_zookeeper", extra={"quorumshift_restore_token": token})
    assert done.code == 0, done.text
    print(f"restored in {done.seconds:.0f} s")
    again = fresh.play("restore_zookeeper", extra={"quorumshift_restore_token": token})
    assert again.code == 0 and unchanged(again, fresh), again.text
    assert "there is nothing to restore" in again.text

    fresh.wait_in_sync()
    after = held(fresh)
    assert {path: reported for path, reported in before.items() if after.get(path) != reported} == {}
    nothing_lost(clients(), 10_000)


def test_brokers_run_plain_and_controllers_stay_down(fresh):
    for host in fresh.brokers:
        name = "/etc/kafka/server.properties"
        kept = f"/var/lib/quorumshift/*/configs/{name.rpartition('/')[2]}.before-zk_migration"
        fresh.run(host, f"cmp {name} {kept}")
    for host in fresh.controllers:
        fresh.run(host, "systemctl start kafka-controller")
        assert fresh.run(host, "systemctl is-active kafka-controller", check=False) == "inactive"
    status = fresh.play("status")
    assert ": reverting" in status.text and "to do  controllers wiped" in status.text, status.text
    assert "controllers down" in status.text.replace("done   ", "")


def test_a_forward_run_refuses(fresh):
    ran = fresh.play()
    assert ran.code != 0 and "The phase is reverting" in ran.text and unchanged(ran, fresh), ran.text


def test_a_rollback_wipes_the_controllers(fresh):
    ran = fresh.play("rollback", extra={"quorumshift_rollback_to": "zk"})
    assert ran.code == 0 and ": zk" in ran.text and "properties file removed" in ran.text, ran.text
    again = fresh.play("rollback", extra={"quorumshift_rollback_to": "zk"})
    assert again.code == 0 and unchanged(again, fresh), again.text
