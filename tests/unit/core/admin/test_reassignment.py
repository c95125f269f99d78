# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Wanted replicas against actual ones, throttles and what remains of them, plans."""

from __future__ import annotations

import re

import pytest
from ansible_collections.quorumshift.kafka.plugins.module_utils.core.admin import reassignment
from ansible_collections.quorumshift.kafka.plugins.module_utils.core.admin.reassignment import (
    BROKER,
    DONE,
    FOLLOWER_RATE,
    FOLLOWER_REPLICAS,
    LEADER_RATE,
    LEADER_REPLICAS,
    OTHER_WAY,
    START,
    TOPIC,
    UNDER_WAY,
)

T0, T1 = ("t", 0), ("t", 1)
TOWARDS_3 = {"replicas": [3, 1, 2], "adding": [3], "removing": [2]}


def step_of(wanted, actual, in_flight=None):
    (found,) = reassignment.steps({T0: wanted}, {T0: actual}, {T0: in_flight} if in_flight else {})
    return found


@pytest.mark.parametrize(
    ("wanted", "actual", "in_flight", "state", "adding", "removing"),
    [
        ([1, 2], [1, 2], None, DONE, (), ()),
        ([2, 1], [1, 2], None, START, (), ()),
        ([3, 1], [1, 2], None, START, (3,), (2,)),
        ([3, 1], [3, 1, 2], TOWARDS_3, UNDER_WAY, (3,), (2,)),
        ([4, 1], [3, 1, 2], TOWARDS_3, OTHER_WAY, (4,), (3, 2)),
        ([1, 2], [3, 1, 2], TOWARDS_3, OTHER_WAY, (), (3,)),
        ([1, 3], [3, 1, 2], TOWARDS_3, OTHER_WAY, (3,), (2,)),
    ],
)
def test_steps(wanted, actual, in_flight, state, adding, removing):
    found = step_of(wanted, actual, in_flight)
    assert (found.state, found.adding, found.removing) == (state, adding, removing)


@pytest.mark.parametrize(
    ("step", "in_flight", "additional", "legacy", "text"),
    [
        (step_of([1, 2], [1, 2]), [T1], False, "1 partition", None),
        (step_of([3, 1], [3, 1, 2], TOWARDS_3), [T0, T1], False, None, None),
        (step_of([3, 1], [1, 2]), [], False, None, None),
        (step_of([3, 1], [1, 2]), [T1], True, "1 partition", None),
        (step_of([3, 1], [1, 2]), [T1], False, None, "additional: true"),
        (step_of([4, 1], [3, 1, 2], TOWARDS_3), [T0], False, None, "additional: true"),
        (step_of([3, 1], [1, 2]), [], False, "1 partition", "/admin/reassign_partitions"),
        (step_of([9, 1], [1, 2]), [], True, None, "broker 9"),
        (step_of([], [1, 2]), [], True, None, "no replicas"),
        (step_of([2], [1, 2]), [], True, None, "t-0 from 2 to 1"),
        (step_of([1, 2], [3, 1, 2], TOWARDS_3), [T0], True, None, None),
        (step_of([1], [3, 1, 2], TOWARDS_3), [T0], True, None, "t-0 from 2 to 1"),
        (step_of([1, 2], [8, 9]), [], True, None, "no live replica"),
        (step_of([1], [1, 9]), [], True, None, "from 2 to 1"),
    ],
)
def test_refusals(step, in_flight, additional, legacy, text):
    refused = reassignment.refusal([step], in_flight, [1, 2, 3, 4], additional, legacy)
    assert (refused is None) if text is None else (text in refused)


def test_fewer_replicas_need_the_token_of_this_change():
    def refused(token, *steps):
        return reassignment.refusal(steps, [], [1, 2, 3], True, None, token)

    step, other = step_of([2], [1, 2]), reassignment.steps({T1: [2]}, {T1: [1, 2]}, {})[0]
    token = reassignment.shrink_token([step])
    assert f"token {token}" in refused(None, step) and f"token {token}" in refused("yes", step)
    assert refused(token, step) is None
    assert f"token {reassignment.shrink_token([step, other])}" in refused(token, step, other)
    assert refused("", step_of([2, 1], [1, 2])) is None


def entry(**more):
    return {"partitions": [{"topic": "t", "partition": 0, "replicas": [1], **more}]}


@pytest.mark.parametrize(
    ("content", "text"),
    [
        ([], "the reassignment is a list"),
        (None, "the reassignment is null or missing"),
        ("t-0", "the reassignment is a text, 't-0'"),
        ({}, "partitions is null or missing"),
        ({"partitions": {}}, "partitions is an object"),
        ({"version": 2, "partitions": []}, "version is a number, 2"),
        ({"version": True, "partitions": []}, "version is a boolean, True"),
        ({"version": "1", "partitions": []}, "version is a text, '1'"),
        ({"version": 1.0, "partitions": []}, "version is a number, 1.0"),
        ({"version": None, "partitions": []}, "version is null"),
        ({"partitions": [{"topic": "t", "replicas": [1]}]}, "partitions[0].partition is null or missing"),
        ({"partitions": ["t"]}, "partitions[0] is a text, 't'"),
        ({"partitions": [None]}, "partitions[0] is null"),
        (entry(topic=None), "partitions[0].topic is null"),
        (entry(topic=7), "partitions[0].topic is a number, 7"),
        (entry(topic=""), "partitions[0].topic is a text, ''"),
        (entry(topic=["t"]), "partitions[0].topic is a list, ['t']"),
        (entry(partition=True), "partitions[0].partition is a boolean, True"),
        (entry(partition="0"), "partitions[0].partition is a text, '0'"),
        (entry(partition=1.9), "partitions[0].partition is a number, 1.9"),
        (entry(partition=-1), "partitions[0].partition is a number, -1"),
        (entry(partition=1 << 31), "partitions[0].partition is a number, 2147483648"),
        (entry(partition=None), "partitions[0].partition is null"),
        (entry(replicas="12"), "partitions[0].replicas is a text, '12'"),
        (entry(replicas={"1": 2}), "partitions[0].replicas is an object"),
        (entry(replicas=12), "partitions[0].replicas is a number, 12"),
        (entry(replicas=[1.9, 2]), "partitions[0].replicas[0] is a number, 1.9"),
        (entry(replicas=[1, "2"]), "partitions[0].replicas[1] is a text, '2'"),
        (entry(replicas=[1, False]), "partitions[0].replicas[1] is a boolean, False"),
        (entry(replicas=[1, 1]), "t-0 names a broker twice"),
        ({"partitions": entry()["partitions"] * 2}, "t-0 is given twice"),
        (entry(log_dirs=["/data"]), "t-0 names log directories"),
        (entry(log_dirs="any"), "partitions[0].log_dirs is a text, 'any'"),
        (entry(log_dirs=["any", "any"]), "partitions[0] has 1 replicas and 2 log_dirs"),
    ],
)
@pytest.mark.parametrize("texts", [False, True])
def test_what_is_no_reassignment_names_place_and_type(content, text, texts):
    if texts and text.endswith(("partition is a text, '0'", "replicas[1] is a text, '2'")):
        assert reassignment.parse(content, texts)  # Ansible makes texts of templates
        return
    with pytest.raises(reassignment.ReassignmentError, match=re.escape(text)):
        reassignment.parse(content, texts)


@pytest.mark.parametrize("text", ["", " 1", "1 ", "+1", "-1", "1.0", "0x1", "²", "١", "one"])
def test_a_text_that_is_no_number_is_none(text):
    with pytest.raises(reassignment.ReassignmentError, match=re.escape("partitions[0].partition")):
        reassignment.parse(entry(partition=text), texts=True)


def test_a_file_of_kafkas_tool_is_read_and_written():
    content = {
        "version": 1,
        "partitions": [{"topic": "t", "partition": 0, "replicas": [2, 1], "log_dirs": ["any", "any"]}],
    }
    assert reassignment.parse(content) == {T0: (2, 1)}
    assert reassignment.parse(reassignment.render({T0: (2, 1)})) == {T0: (2, 1)}


def test_throttles_are_those_of_kafkas_tool_and_keep_what_is_there():
    current = {(TOPIC, "t"): {LEADER_REPLICAS: "5:1", FOLLOWER_REPLICAS: "*"}}
    for alive in ((1, 2, 3), (1, 3)):  # a broker that is not alive takes no config
        assert reassignment.throttles([step_of([3, 1], [1, 2])], 10, current, alive) == {
            (TOPIC, "t"): {LEADER_REPLICAS: "0:1,0:2,5:1"},
            **{(BROKER, str(broker)): {LEADER_RATE: "10", FOLLOWER_RATE: "10"} for broker in alive},
        }
    assert reassignment.throttles([step_of([2, 1], [1, 2])], 10, {}, (1, 2)) == {}


def test_null_cancels_beside_moves_and_what_undoes_it_begins_again():
    """KIP-455: null replicas of AlterPartitionReassignments cancel."""
    listed = [{"topic": "t", "partition": 0, "replicas": None}, {"topic": "t", "partition": 1, "replicas": [3, 1]}]
    wanted = reassignment.parse({"partitions": listed})
    assert wanted == {T0: None, T1: (3, 1)}
    first, second = reassignment.steps(wanted, {T0: [3, 1, 2], T1: [1, 2]}, {T0: TOWARDS_3})
    assert (first.state, first.target, first.wanted, first.undo) == (reassignment.CANCEL, None, (1, 2), (3, 1))
    assert (second.state, second.target, second.undo) == (START, (3, 1), (1, 2))
    assert reassignment.refusal([first, second], [T0], [1, 2, 3], False, None) is None
    assert "removing [3]" in reassignment.diff([first])["after"]
    assert reassignment.throttles([first], 10, {}, (1, 2, 3)) == {}, "a cancellation copies nothing"
    (idle,) = reassignment.steps({T0: None}, {T0: [1, 2]}, {})
    assert idle.state == DONE


def test_a_cordoned_broker_gets_nothing():
    refused = reassignment.refusal([step_of([3, 1], [1, 2])], [], [1, 2, 3], False, None, cordoned=[3])
    assert "broker 3, which is cordoned" in refused
    assert reassignment.refusal([step_of([1, 3], [3, 1])], [], [1, 2, 3], False, None, cordoned=[3]) is None


def test_a_list_that_is_too_long_for_kafka_throttles_the_whole_topic():
    wanted = {("t", number): [3, 1] for number in range(5000)}
    found = reassignment.steps(wanted, {partition: [1, 2] for partition in wanted}, {})
    assert reassignment.throttles(found, 10, {}, (1, 2, 3))[TOPIC, "t"] == {
        LEADER_REPLICAS: "*",
        FOLLOWER_REPLICAS: "*",
    }


RATE = (BROKER, "1")


def remembered(record, value, now):
    return reassignment.update_record(record, {RATE: {LEADER_RATE: value}}, {RATE: {LEADER_RATE: now} if now else {}})


@pytest.mark.parametrize("former", [None, "77"])
def test_former_values_are_restored_also_after_an_interruption_and_a_second_rate(former):
    first = remembered([], "10", former)
    second = remembered(first, "20", "10")
    for now in ("10", "20"):  # interrupted before or after the second was set
        changes, left = reassignment.plan_throttle_removal(second, {RATE: {LEADER_RATE: now}})
        assert changes == {RATE: {LEADER_RATE: former}} and left == []
    # nothing was set yet
    assert reassignment.plan_throttle_removal(first, {RATE: {LEADER_RATE: former} if former else {}}) == ({}, [])


def test_a_value_that_someone_else_has_set_since_is_left():
    record = remembered([], "10", None)
    changes, left = reassignment.plan_throttle_removal(record, {RATE: {LEADER_RATE: "99"}})
    assert changes == {} and left == ["broker 1: leader.replication.throttled.rate=99"]
    # it is the one to restore after another throttle of ours
    again = remembered(record, "20", "99")
    assert reassignment.plan_throttle_removal(again, {RATE: {LEADER_RATE: "20"}}) == ({RATE: {LEADER_RATE: "99"}}, [])


def test_throttles_that_the_record_lacks_are_foreign():
    record = remembered([], "10", None)
    current = {
        RATE: {LEADER_RATE: "10", FOLLOWER_RATE: "10"},
        (TOPIC, "t"): {FOLLOWER_REPLICAS: "*", "retention.ms": "1"},
    }
    assert [str(throttle) for throttle in reassignment.find_foreign_throttles(record, current)] == [
        "topic t: follower.replication.throttled.replicas=*",
        "broker 1: follower.replication.throttled.rate=10",
    ]
    assert reassignment.find_foreign_throttles([], {RATE: {}, (TOPIC, "t"): {LEADER_REPLICAS: ""}}) == []


def rate(broker, key=FOLLOWER_RATE):
    return {(BROKER, broker): {key: "1000"}}


def replicas(text, key=FOLLOWER_REPLICAS):
    return {(TOPIC, "t"): {key: text}}


@pytest.mark.parametrize(
    ("configs", "slow"),
    [
        (rate("1"), []),
        (replicas("*"), []),
        ({**rate("1"), **replicas("*")}, ["t"]),
        ({**rate("1"), **replicas("0:1")}, ["t"]),
        ({**rate("1"), **replicas("0:11,1:2")}, []),
        ({**rate(""), **replicas("0:7")}, ["t"]),
        ({**rate("1", LEADER_RATE), **replicas("*")}, []),
        ({**rate("1", LEADER_RATE), **replicas("0:1", LEADER_REPLICAS)}, ["t"]),
        ({**rate("1"), **replicas("")}, []),
    ],
)
def test_a_left_throttle_is_found_also_without_its_other_half(configs, slow):
    assert reassignment.find_throttled_topics(configs) == slow
    seen, do, in_effect = reassignment.report_left_throttles(configs, "b1:9092")
    assert in_effect == bool(slow) and ("nothing down yet" in seen) == (not slow)
    for throttle in reassignment.find_throttles(configs):
        assert str(throttle) in seen and f"--delete-config {throttle.key}" in do
    assert reassignment.report_left_throttles({RATE: {}, (TOPIC, "t"): {"retention.ms": "5"}}, "b1:9092") is None


def test_the_command_removes_exactly_the_throttles():
    configs = {**rate("2"), **rate("10"), **rate(""), **replicas("*")}
    command = reassignment.removal_commands(reassignment.find_throttles(configs), "b1:9092")
    start = "kafka-configs.sh --bootstrap-server b1:9092 --alter --delete-config follower.replication.throttled."
    assert command.split("; ") == [
        f"{start}replicas --entity-type topics --entity-name t",
        f"{start}rate --entity-type brokers --entity-default",
        "for name in 2 10",
        f"do {start}rate --entity-type brokers --entity-name $name",
        "done",
    ]
