# Copyright: (c) 2026, Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Rollbacks from early phases, from a half-done finalization, and one that is killed at each of its steps."""

from __future__ import annotations

import re

import pytest
from ansible_collections.quorumshift.kafka.plugins.module_utils.formats import znodes
from confluent_kafka.admin import NewTopic

from tools.e2e import faults
from tools.e2e.rollbacks import back, changed, files, no_trace, phase
from tools.e2e.testbed import nth

FAST = {"quorumshift_verify": False, "quorumshift_soak": "0s"}


@pytest.fixture(scope="module")
def plain(fresh):
    """The hosts' files before anything began."""
    return files(fresh)


def taken_over(testbed, killed):
    """The word that turns round what a killed run has begun: a rollback asks for it."""
    ran = back(testbed, "zk", **FAST)
    assert ran.code != 0 and "would reverse its direction" in ran.text, ran.text
    assert changed(ran, testbed) == [], ran.text
    return {"quorumshift_force_unlock": re.search(r"quorumshift_force_unlock=([\w-]+)", ran.text).group(1)}


def at(text, count=1):
    """A `kill_when` that fits at the task of this name."""
    return nth(count, f"{text}] ***")


def test_without_a_target_it_is_refused(fresh, plain):
    ran = back(fresh, "", **FAST)
    assert ran.code != 0 and "quorumshift_rollback_to is ''. Set it to zk or hybrid" in ran.text, ran.text
    assert changed(ran, fresh) == [], ran.text


def test_nothing_is_taken_back_where_nothing_has_begun(fresh, plain):
    ran = back(fresh, "zk", **FAST)
    assert ran.code == 0 and changed(ran, fresh) == [] and phase(ran) == "zk", ran.text


def test_from_controllers_that_stand_alone(fresh, plain):
    killed = fresh.play(extra=FAST, kill_when=at("Plan the roll to zk_migration"))
    assert killed.code < 0, killed.text
    ran = back(fresh, "zk", **FAST, **taken_over(fresh, killed))
    assert ran.code == 0 and phase(ran) == "zk", ran.text
    assert files(fresh) == plain
    no_trace(fresh)


def test_from_half_of_the_brokers_joined(fresh, plain):
    killed = fresh.play(extra=FAST, kill_when=nth(1, " is up ("))
    assert killed.code < 0, killed.text
    fresh.wait_in_sync()
    ran = back(fresh, "zk", **FAST, **taken_over(fresh, killed))
    assert ran.code == 0 and phase(ran) == "zk", ran.text
    assert files(fresh) == plain
    no_trace(fresh)


STEPS = (
    at("Take the broker's turn", 2),
    at("Hand over the controllers"),
    at("Stop the controller and keep it down"),
    at("Stop the controller and keep it down", 2),
    at("Hand the cluster back to ZooKeeper's controller"),
    at("Take the broker's turn"),
    nth(1, " gets its new properties file"),
    at("Leave nothing of the migration on the controller"),
    at("Gate after_revert"),
)


def test_killed_at_each_step(fresh, plain):
    """From dual-write; each next run goes on by itself, since it goes the same way."""
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


def test_killed_before_its_last_gate(fresh, plain):
    """Nothing is left to take back then, and nobody has seen it: the next run passes the gate and ends what is open."""
    ran = fresh.play(extra=FAST)
    assert ran.code == 0 and phase(ran) == "dual_write", ran.text
    killed = back(fresh, "zk", kill_when=at("Gate after_revert"), **FAST)
    assert killed.code < 0, killed.text
    status = fresh.play("status").text
    assert "interrupted before its last gate" in status and "rollback.yml -e quorumshift_rollback_to=zk" in status
    ran = back(fresh, "zk", **FAST)
    assert ran.code == 0 and phase(ran) == "zk" and "gate after_revert" in ran.text, ran.text
    assert files(fresh) == plain
    no_trace(fresh)
    again = back(fresh, "zk", **FAST)
    assert again.code == 0 and changed(again, fresh) == [] and "gate after_revert:" not in again.text, again.text
    assert "cut off" not in fresh.play("status").text


def test_from_a_half_done_finalization(fresh, plain):
    stopped = fresh.play(extra=FAST)
    token = {"quorumshift_finalize_token": re.search(r"quorumshift_finalize_token=(\S+)", stopped.text).group(1)}
    killed = fresh.play(extra={**FAST, **token}, kill_when=nth(1, " is up ("))
    assert killed.code < 0, killed.text
    ran = back(fresh, "zk", **FAST, **taken_over(fresh, killed))
    assert ran.code == 0 and phase(ran) == "zk", ran.text
    assert files(fresh) == plain
    no_trace(fresh)


KEEPS_DOWN = "/etc/systemd/system/kafka-controller.service.d/quorumshift-keeps-it-down.conf"


def test_controllers_that_were_stopped_too_early(fresh, plain):
    """What the quorum has committed and ZooKeeper lacks keeps it from being handed back; started again, as the runbook
    says, the controllers write it, and the way back goes on."""
    killed = fresh.play(extra=FAST, kill_when=at("Plan the roll to kraft"))
    assert killed.code < 0, killed.text
    token, admin = taken_over(fresh, killed), fresh.admin()
    with faults.dropped(fresh, fresh.controllers, "OUTPUT -p tcp --dport 2181"):
        admin.create_topics([NewTopic("made.too.late", 1, 3)])["made.too.late"].result(60)
        closed = back(fresh, "zk", **FAST, **token, quorumshift_gate_timeout_s=5)
        assert closed.code != 0 and "gate before_revert" in closed.text, closed.text
        fresh.ad_hoc("kafka_controller", "service_stop", service="kafka-controller", state="masked")
    ran = back(fresh, "zk", **FAST)
    assert ran.code != 0 and "ZooKeeper is not handed back: the quorum has changes up to" in ran.text, ran.text
    assert "without a controller. Nothing was changed" in ran.text, ran.text
    with fresh.zookeeper() as client:
        assert client.exists("/migration") and not client.exists(znodes.topic_path("made.too.late"))

    fresh.on_each(fresh.controllers, f"rm {KEEPS_DOWN}; systemctl daemon-reload; systemctl start kafka-controller")
    ran = back(fresh, "zk", **FAST)
    assert ran.code == 0 and phase(ran) == "zk", ran.text
    assert files(fresh) == plain
    no_trace(fresh)
    with fresh.zookeeper() as client:
        assert client.exists(znodes.topic_path("made.too.late"))


AS_FORMATTED = "s/^version=0$/version=1/; s/^broker.id=/node.id=/"
AS_IN_ZOOKEEPER_MODE = "s/^version=1$/version=0/; s/^node.id=/broker.id=/"


def restarted_over(testbed, host, script):
    """Restart a broker over meta.properties that were changed by a script of sed."""
    testbed.run(
        host, f"systemctl stop kafka; sed -i '{script}' /var/lib/kafka/data*/meta.properties; systemctl start kafka"
    )
    testbed.wait_in_sync()


def test_a_broker_that_was_formatted_during_the_migration(fresh, plain):
    """As one that was replaced. Plain ZooKeeper mode would refuse its log directories (KAFKA-20762)."""
    killed = fresh.play(extra=FAST, kill_when=at("Plan the roll to kraft"))
    assert killed.code < 0, killed.text
    restarted_over(fresh, "b3", AS_FORMATTED)
    status = fresh.play("status")
    assert "rollback to zk:" in status.text and "rollback: meta.properties of b3 has version=1" in status.text
    token = taken_over(fresh, killed)
    ran = back(fresh, "zk", **FAST, **token)
    assert ran.code != 0 and "meta.properties of b3 has version=1 in /var/lib/kafka/data1" in ran.text, ran.text
    assert changed(ran, fresh) == [], ran.text
    restarted_over(fresh, "b3", AS_IN_ZOOKEEPER_MODE)
    assert "rollback to zk: possible" in fresh.play("status").text
    ran = back(fresh, "zk", **FAST, **token)
    assert ran.code == 0 and phase(ran) == "zk", ran.text
    assert files(fresh) == plain
    no_trace(fresh)
