# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Rollbacks from early phases and from a started finalization, and one that is killed at each step."""

from __future__ import annotations

import re

import pytest
from ansible_collections.quorumshift.kafka.plugins.module_utils.formats.zookeeper import znodes
from confluent_kafka.admin import NewTopic

from tests.system.e2e.rollbacks import back, changed, files, no_trace, phase
from tests.system.testbed import faults
from tests.system.testbed.waiting import nth

FAST = {"quorumshift_verify": False, "quorumshift_soak": "0s"}


@pytest.fixture(scope="module")
def plain(fresh):
    """The hosts' files before the first migration."""
    return files(fresh)


def force_unlock(testbed):
    """Return the variable that lets a rollback replace a killed migration; assert that a rollback asks for it."""
    ran = back(testbed, "zk", **FAST)
    assert ran.code != 0 and "would reverse its direction" in ran.text, ran.text
    assert changed(ran, testbed) == [], ran.text
    return {"quorumshift_force_unlock": re.search(r"quorumshift_force_unlock=([\w-]+)", ran.text).group(1)}


def at(text, count=1):
    """Return a `kill_when` that is true at the `count`th task of this name."""
    return nth(count, f"{text}] ***")


def test_a_rollback_without_a_target_is_refused(fresh, plain):
    ran = back(fresh, "", **FAST)
    assert ran.code != 0 and "quorumshift_rollback_to is ''. Set it to zk or hybrid" in ran.text, ran.text
    assert changed(ran, fresh) == [], ran.text


def test_a_rollback_in_phase_zk_changes_nothing(fresh, plain):
    ran = back(fresh, "zk", **FAST)
    assert ran.code == 0 and changed(ran, fresh) == [] and phase(ran) == "zk", ran.text


def test_rollback_after_the_controllers_started(fresh, plain):
    killed = fresh.play(extra=FAST, kill_when=at("Plan restarts of kind zk_migration"))
    assert killed.code < 0, killed.text
    ran = back(fresh, "zk", **FAST, **force_unlock(fresh))
    assert ran.code == 0 and phase(ran) == "zk", ran.text
    assert files(fresh) == plain
    no_trace(fresh)


def test_rollback_after_one_broker_joined(fresh, plain):
    killed = fresh.play(extra=FAST, kill_when=nth(1, " is up ("))
    assert killed.code < 0, killed.text
    fresh.wait_in_sync()
    ran = back(fresh, "zk", **FAST, **force_unlock(fresh))
    assert ran.code == 0 and phase(ran) == "zk", ran.text
    assert files(fresh) == plain
    no_trace(fresh)


STEPS = (
    at("Restart the broker", 2),
    at("Select the controllers to stop, the quorum's leader last"),
    at("Stop and mask the controller"),
    at("Stop and mask the controller", 2),
    at("rollback : Restore ZooKeeper's controller"),
    at("Restart the broker"),
    nth(1, " gets its new properties file"),
    at("Remove every trace of the migration from the controller"),
    at("Open gate after_revert"),
)


def test_a_rollback_killed_at_each_step_reaches_zk(fresh, plain):
    """Each next rollback continues without a token, since its direction is the same."""
    ran = fresh.play(extra=FAST)
    assert ran.code == 0 and phase(ran) == "dual_write", ran.text
    for number, kill_when in enumerate(STEPS):
        killed = back(fresh, "zk", kill_when=kill_when, **FAST)
        assert killed.code < 0, (number, killed.text)
        if number == 0:
            status = fresh.play("status")
            assert "finish the rollback" in status.text and "quorumshift_rollback_to=zk" in status.text, status.text
        if number == 5:
            forward = fresh.play(extra=FAST)
            assert forward.code != 0 and "would reverse its direction" in forward.text, forward.text
            status = fresh.play("status")
            assert ": reverting" in status.text and "rollback.yml -e quorumshift_rollback_to=zk" in status.text
    ran = back(fresh, "zk", **FAST)
    assert ran.code == 0 and phase(ran) == "zk", ran.text
    assert files(fresh) == plain
    no_trace(fresh)
    again = back(fresh, "zk", **FAST)
    assert again.code == 0 and changed(again, fresh) == [], again.text


def test_the_next_rollback_opens_the_last_gate_of_a_killed_one(fresh, plain):
    """Nothing is left to roll back then, but no run has proved it."""
    ran = fresh.play(extra=FAST)
    assert ran.code == 0 and phase(ran) == "dual_write", ran.text
    killed = back(fresh, "zk", kill_when=at("Open gate after_revert"), **FAST)
    assert killed.code < 0, killed.text
    status = fresh.play("status").text
    assert "interrupted before its last gate" in status and "rollback.yml -e quorumshift_rollback_to=zk" in status
    ran = back(fresh, "zk", **FAST)
    assert ran.code == 0 and phase(ran) == "zk", ran.text
    assert "open: phase zk" in ran.text.partition("Open gate after_revert")[2], ran.text
    assert files(fresh) == plain
    no_trace(fresh)
    again = back(fresh, "zk", **FAST)
    assert again.code == 0 and changed(again, fresh) == [] and "open: phase zk" not in again.text, again.text
    assert "interrupted before its last gate" not in fresh.play("status").text


def test_rollback_from_a_started_finalization(fresh, plain):
    stopped = fresh.play(extra=FAST)
    token = {"quorumshift_finalize_token": re.search(r"quorumshift_finalize_token=(\S+)", stopped.text).group(1)}
    killed = fresh.play(extra={**FAST, **token}, kill_when=nth(1, " is up ("))
    assert killed.code < 0, killed.text
    ran = back(fresh, "zk", **FAST, **force_unlock(fresh))
    assert ran.code == 0 and phase(ran) == "zk", ran.text
    assert files(fresh) == plain
    no_trace(fresh)


KEEPS_DOWN = "/etc/systemd/system/kafka-controller.service.d/quorumshift-keeps-it-down.conf"


def test_no_rollback_while_zookeeper_lacks_committed_changes(fresh, plain):
    """The controllers stopped too early. Started again, as the runbook says, they write the changes to ZooKeeper."""
    killed = fresh.play(extra=FAST, kill_when=at("Plan restarts of kind kraft"))
    assert killed.code < 0, killed.text
    unlock, admin = force_unlock(fresh), fresh.admin()
    with faults.dropped(fresh, fresh.controllers, "OUTPUT -p tcp --dport 2181"):
        admin.create_topics([NewTopic("created.too.late", 1, 3)])["created.too.late"].result(60)
        closed = back(fresh, "zk", **FAST, **unlock, quorumshift_gate_timeout_s=5)
        assert closed.code != 0 and "gate before_revert" in closed.text, closed.text
        fresh.ad_hoc("kafka_controller", "service_stop", service="kafka-controller", state="masked")
    ran = back(fresh, "zk", **FAST)
    assert ran.code != 0 and "controller was not restored: the quorum has changes up to" in ran.text, ran.text
    assert "without a controller. Nothing was changed" in ran.text, ran.text
    with fresh.zookeeper() as client:
        assert client.exists("/migration") and not client.exists(znodes.topic_path("created.too.late"))

    fresh.on_each(fresh.controllers, f"rm {KEEPS_DOWN}; systemctl daemon-reload; systemctl start kafka-controller")
    ran = back(fresh, "zk", **FAST)
    assert ran.code == 0 and phase(ran) == "zk", ran.text
    assert files(fresh) == plain
    no_trace(fresh)
    with fresh.zookeeper() as client:
        assert client.exists(znodes.topic_path("created.too.late"))


AS_FORMATTED = "s/^version=0$/version=1/; s/^broker.id=/node.id=/"
AS_IN_ZOOKEEPER_MODE = "s/^version=1$/version=0/; s/^node.id=/broker.id=/"


def restart_with_meta_properties(testbed, host, script):
    """Restart a broker after a sed script edited its meta.properties."""
    testbed.run(
        host, f"systemctl stop kafka; sed -i '{script}' /var/lib/kafka/data*/meta.properties; systemctl start kafka"
    )
    testbed.wait_in_sync()


def test_no_rollback_with_a_broker_formatted_during_the_migration(fresh, plain):
    """As after a replacement. A broker in plain ZooKeeper mode rejects such log directories (KAFKA-20762)."""
    killed = fresh.play(extra=FAST, kill_when=at("Plan restarts of kind kraft"))
    assert killed.code < 0, killed.text
    restart_with_meta_properties(fresh, "b3", AS_FORMATTED)
    status = fresh.play("status")
    assert "rollback to zk:" in status.text and "rollback: meta.properties of b3 has version=1" in status.text
    unlock = force_unlock(fresh)
    ran = back(fresh, "zk", **FAST, **unlock)
    assert ran.code != 0 and "meta.properties of b3 has version=1 in /var/lib/kafka/data1" in ran.text, ran.text
    assert changed(ran, fresh) == [], ran.text
    restart_with_meta_properties(fresh, "b3", AS_IN_ZOOKEEPER_MODE)
    assert "rollback to zk: possible" in fresh.play("status").text
    ran = back(fresh, "zk", **FAST, **unlock)
    assert ran.code == 0 and phase(ran) == "zk", ran.text
    assert files(fresh) == plain
    no_trace(fresh)
