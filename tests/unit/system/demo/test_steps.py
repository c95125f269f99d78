# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""From the recorder's events to steps, phases and the floor."""

from __future__ import annotations

import pytest

from tests.system.demo import marks, recorder, steps

T0 = 1000.0
HOSTS = {"b1": 1, "b2": 2}


def cycle(host: str, stopping: float, stopped: float, started: float, up: float) -> list[dict]:
    return [
        {"t": T0 + stopping, "kind": "stopping", "host": host},
        {"t": T0 + stopped - 0.01, "kind": "exited", "host": host},
        {"t": T0 + stopped, "kind": "stopped", "host": host},
        {"t": T0 + started, "kind": "started", "host": host},
        {"t": T0 + up - 1, "kind": "milestone", "name": "registered in the quorum", "host": host, "text": ""},
        {"t": T0 + up, "kind": "milestone", "name": "unfenced", "host": host, "text": ""},
    ]


def isr(t: float, out: dict[str, int], brokers: tuple[int, ...] = (1, 2)) -> dict:
    return {"t": T0 + t, "kind": "isr", "brokers": list(brokers), "offline": 0, "out": out, "hosts": HOSTS}


def restart(host: str, kind: str, t: float, end: float) -> dict:
    return {"t": T0 + t, "kind": "restart", "name": kind, "host": host, "end": T0 + end}


def gate(name: str, t: float) -> dict:
    return {"t": T0 + t, "kind": "gate", "name": name, "result": "pass", "seconds": 2}


EVENTS = [
    isr(0, {}),
    *cycle("b1", 10, 12, 13, 17),
    isr(10.5, {"1": 5}, (2,)),
    isr(16.8, {"1": 5}),
    isr(18, {}),
    *cycle("b2", 24, 26, 26.5, 30),
    isr(24.3, {"2": 5}),
    # stale metadata from the new broker itself
    isr(29.8, {}),
    isr(30.2, {"2": 3}),
    isr(31, {}),
]
JOURNAL = [
    gate("before_trigger", 5),
    restart("b1", "zk_migration", 10.2, 17.5),
    restart("b2", "zk_migration", 24.2, 30.3),
]


def test_broker_step_has_stop_start_and_isr_seconds():
    first, second = steps.find(EVENTS, JOURNAL)
    assert (first.host, first.kind, first.first) == ("b1", "zk_migration", True)
    assert first.stop_s == pytest.approx(2)
    assert first.start_s == pytest.approx(4)
    assert first.isr_s == pytest.approx(1)
    assert second.stop_s == pytest.approx(2)
    assert second.isr_s == pytest.approx(1)
    assert second.own_s() == pytest.approx(2 + 3.5 + 1)


def test_tool_s_is_the_time_between_steps_less_the_stable_time():
    first, second = steps.find(EVENTS, JOURNAL)
    # from in sync at 18 to the stop at 24, less 2 of stable time; half a second between the processes
    assert second.tool_s(stable_s=2) == pytest.approx(4 + 0.5)
    # the first of a roll counts from its gate
    assert first.tool_s(stable_s=2) == pytest.approx(3 + 1)


def test_killed_process_has_no_stop_and_its_step_is_unrecorded():
    events = [
        isr(0, {}),
        {"t": T0 + 5, "kind": "exited", "host": "c1"},
        {"t": T0 + 6, "kind": "started", "host": "c1"},
        {"t": T0 + 9, "kind": "milestone", "name": "server started", "host": "c1", "text": ""},
    ]
    (step,) = steps.find(events, [])
    assert (step.kind, step.stopping, step.stopped, step.stop_s) == (steps.UNRECORDED, None, T0 + 5, None)
    assert step.start_s == pytest.approx(3)
    assert step.row(2)["tool_s"] is None


def test_broker_that_no_poll_misses_is_in_sync_when_up():
    events = [isr(0, {}), *cycle("b1", 10, 12, 13, 17)]
    (step,) = steps.find(events, JOURNAL)
    assert step.isr_s == 0


def test_stop_before_the_last_broker_is_in_sync_marks_it_overtaken():
    events = [event for event in EVENTS if event["kind"] != "isr" or event["t"] != T0 + 18]
    first, second = steps.find(events, JOURNAL)
    assert first.overtaken and first.in_sync == T0 + 24
    assert not second.overtaken


def test_failed_poll_is_skipped():
    failed = {"t": T0 + 20, "kind": "isr", "error": "_TIMED_OUT"}
    first = steps.find([*EVENTS, failed], JOURNAL)[0]
    assert first.isr_s == pytest.approx(1)


def test_phases_begin_with_the_recorded_events():
    driver = [
        {
            "t": T0 + t,
            "kind": "milestone",
            "name": "driver",
            "host": "c1",
            "text": f"1 transitioning from {a} to {b} state",
        }
        for t, a, b in (
            (20, "WAIT_FOR_BROKERS", "BECOME_CONTROLLER"),
            (20.5, "BECOME_CONTROLLER", "ZK_MIGRATION"),
            (22, "ZK_MIGRATION", "SYNC_KRAFT_TO_ZK"),
            (23, "KRAFT_CONTROLLER_TO_BROKER_COMM", "DUAL_WRITE"),
        )
    ]
    events = [*EVENTS, *driver]
    found = steps.find(events, JOURNAL)
    assert steps.phases(events, found, T0) == [
        (T0, "zk"),
        (T0 + 10, "brokers_joining"),
        (T0 + 20.5, "copying"),
        (T0 + 22, "hybrid"),
    ]
    assert steps.copy_s(events) == (T0 + 20, T0 + 23)


def test_floor_counts_the_copy_only_beyond_the_last_broker():
    found = steps.find(EVENTS, JOURNAL)
    both = sum(step.own_s() for step in found)
    assert steps.floor_s(EVENTS, found) == pytest.approx(both)
    driver = [
        {
            "t": T0 + t,
            "kind": "milestone",
            "name": "driver",
            "host": "c1",
            "text": f"1 transitioning from A to {b} state",
        }
        for t, b in ((30, "BECOME_CONTROLLER"), (33, "DUAL_WRITE"))
    ]
    assert steps.floor_s([*EVENTS, *driver], found) == pytest.approx(both + 2)


def test_marks_contain_phases_restarts_and_gates_in_order():
    found = steps.find(EVENTS, JOURNAL)
    made = marks.make([(T0, "zk"), (T0 + 10, "brokers_joining")], found, JOURNAL)
    assert [mark["kind"] for mark in made] == ["phase", "event", "phase", "restart", "restart"]
    assert made[3] == {"t": T0 + 10, "end": T0 + 18, "kind": "restart", "name": "zk_migration", "host": "b1"}


@pytest.mark.parametrize(
    ("line", "name"),
    [
        ("[2026-11-21 14:28:42,123] INFO [KafkaServer id=1] started (kafka.server.KafkaServer)", "server started"),
        (
            "[2026-11-21 14:28:42,123] INFO [BrokerLifecycleManager id=1 isZkBroker=true] Successfully registered "
            "broker 1 with broker epoch 171 (kafka.server.BrokerLifecycleManager)",
            "registered in the quorum",
        ),
        (
            "[2026-11-21 14:28:42,123] INFO [KRaftMigrationDriver id=103] 103 transitioning from INACTIVE to "
            "WAIT_FOR_CONTROLLER_QUORUM state (org.apache.kafka.metadata.migration.KRaftMigrationDriver)",
            "driver",
        ),
    ],
)
def test_log_line_is_a_milestone_at_the_line_s_time(line, name):
    event = recorder.milestone(line, "+0000")
    assert (event["name"], event["t"]) == (name, 1795271322.123)
    assert recorder.milestone(line, "+0100")["t"] == 1795271322.123 - 3600


def test_other_lines_are_ignored():
    assert recorder.milestone("[2026-11-21 14:28:42,123] INFO nothing of ours (kafka.Kafka)", "+0000") is None
    assert recorder.milestone("\tat java.base/java.lang.Thread.run(Thread.java:840)", "+0000") is None
    assert recorder.unit_event('{"MESSAGE_ID": "0", "__REALTIME_TIMESTAMP": "1"}') is None


def test_unit_event_from_systemd():
    line = (
        '{"__REALTIME_TIMESTAMP":"1795272294319976","MESSAGE_ID":"39f53479d3a045ac8e11786248231fbf",'
        '"UNIT":"kafka.service"}'
    )
    assert recorder.unit_event(line) == {"t": 1795272294.319976, "kind": "started", "unit": "kafka.service"}
