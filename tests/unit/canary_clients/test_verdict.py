# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Verdicts on built ledgers: an undamaged one passes; each damage is counted once and in its phase."""

from __future__ import annotations

from typing import Any

import pytest

from canary_clients.ledger import OFFSET_UNKNOWN, position
from canary_clients.marks import UNMARKED, Mark
from canary_clients.screen import text
from canary_clients.verdict import FAIL, INCOMPLETE, PASS, evaluate
from tests.unit.canary_clients import client_ledgers
from tests.unit.canary_clients.client_ledgers import COMPACT, KEYED, T0, TXN, LedgerBuilder

DAMAGE = ("lost", "duplicated", "reordered", "aborted_visible")


@pytest.fixture
def run() -> LedgerBuilder:
    run = LedgerBuilder()
    run.messages(100)
    return run


def evaluated(run: LedgerBuilder, tmp_path: Any, marks: tuple[Mark, ...] = (), **more: Any) -> dict[str, Any]:
    return evaluate(run.write(tmp_path), list(marks), **more)


def assert_only(result: dict[str, Any], kind: str, count: int = 1) -> None:
    """Assert that this is the only damage."""
    assert {name: result[name] for name in DAMAGE} == {name: count if name == kind else 0 for name in DAMAGE}
    assert result["verdict"] == FAIL
    assert kind in result["reasons"][0]
    assert len(result["examples"][kind]) == count
    assert sum(phase[kind] for phase in result["by_phase"].values()) == count


def test_sound_run_passes(run, tmp_path):
    run.stop()
    result = evaluated(run, tmp_path)
    assert (result["verdict"], result["reasons"]) == (PASS, [])
    assert (result["acked"], result["received"], result["sent"]) == (103, 103, 103)
    assert all(result[name] == 0 for name in (*DAMAGE, "redelivered", "indeterminate", "outstanding"))
    assert result["latency_ms"] == {"ack": {"p50": 5, "p99": 5, "max": 5}, "end_to_end": {"p50": 8, "p99": 8, "max": 8}}


@pytest.mark.parametrize("group", ["steady", "restarted", "audit"])
def test_message_that_one_group_did_not_receive_is_lost(run, tmp_path, group):
    run.message(0, skip=(group,))
    run.messages(10)
    run.stop()
    result = evaluated(run, tmp_path)
    assert_only(result, "lost")
    assert result["examples"]["lost"][0]["groups"] == [group]


def test_message_lost_everywhere_counts_once(run, tmp_path):
    run.message(0, skip=("steady", "restarted", "audit"))
    run.stop()
    assert_only(evaluated(run, tmp_path), "lost")


def test_last_message_is_lost_if_only_the_closing_message_arrived(run, tmp_path):
    ledger_id, dummy = run.message(2, skip=("committed",))
    run.stop()
    result = evaluated(run, tmp_path)
    assert_only(result, "lost")
    assert result["examples"]["lost"][0]["ledger_id"] == ledger_id


def test_committed_message_that_vanished_is_lost(run, tmp_path):
    run.message(2, skip=("committed", "audit"))
    run.stop()
    assert_only(evaluated(run, tmp_path), "lost")


def test_one_ledger_id_at_two_offsets_is_duplicated_once(run, tmp_path):
    ledger_id, dummy = run.message(0)
    run.deliver(ledger_id, run.place(ledger_id))
    run.stop()
    result = evaluated(run, tmp_path)
    assert_only(result, "duplicated")
    assert result["redelivered"] == 0


def test_acknowledged_at_one_offset_and_received_at_another_is_duplicated(run, tmp_path):
    ledger_id = run.send(0)
    run.ack(ledger_id, run.place(ledger_id))
    run.deliver(ledger_id, run.place(ledger_id))
    run.stop()
    assert evaluated(run, tmp_path)["duplicated"] == 1


def test_second_delivery_of_an_offset_is_redelivered(run, tmp_path):
    for row in run.received["restarted"][-5:]:
        run.received["restarted"].append(row)
    run.stop()
    result = evaluated(run, tmp_path)
    assert (result["verdict"], result["redelivered"], result["duplicated"]) == (PASS, 5, 0)


def test_swapped_pair_of_a_key_is_reordered(run, tmp_path):
    first, second = run.send(0), run.send(0)
    late = run.place(second)
    early = run.place(first)
    for ledger_id, packed in ((second, late), (first, early)):
        run.ack(ledger_id, packed)
        run.deliver(ledger_id, packed)
    run.stop()
    assert_only(evaluated(run, tmp_path), "reordered")


def test_swap_between_keys_is_no_reordering(run, tmp_path):
    first, second = run.send(0), run.send(1)
    for ledger_id in (second, first):
        packed = run.place(ledger_id)
        run.ack(ledger_id, packed)
        run.deliver(ledger_id, packed)
    run.stop()
    assert evaluated(run, tmp_path)["verdict"] == PASS


def test_aborted_message_received_by_read_committed_is_damage(run, tmp_path):
    hidden, visible = run.send(2), run.send(2)
    run.aborted += [(hidden, run.now), (visible, run.now)]
    run.place(hidden)
    run.deliver(visible, run.place(visible))
    run.stop()
    result = evaluated(run, tmp_path)
    assert_only(result, "aborted_visible")
    assert result["aborted"] == 2


def test_newest_compacted_value_missing_is_lost(run, tmp_path):
    run.message(3, skip=("audit",))
    run.message(4)
    run.stop()
    result = evaluated(run, tmp_path)
    assert_only(result, "lost")
    assert result["examples"]["lost"][0]["newest_found"] < result["examples"]["lost"][0]["ledger_id"]


def test_old_value_over_a_newer_one_of_a_compacted_key_is_lost_and_duplicated(run, tmp_path):
    old, dummy = run.message(3)
    run.message(3)
    run.deliver(old, run.place(old))
    run.stop()
    result = evaluated(run, tmp_path)
    assert (result["lost"], result["duplicated"], result["reordered"]) == (1, 1, 0)
    assert result["examples"]["lost"][0]["newest_found"] == old


def test_compacted_away_values_are_not_lost(run, tmp_path):
    """The cleaner keeps only the newest value; neither the group nor the audit needs the others."""
    for group in ("steady", "audit"):
        rows = run.received[group]
        newest = {run.sent[row[0]][0]: row for row in rows}
        run.received[group] = [row for row in rows if row[2] >> 48 != COMPACT or newest[run.sent[row[0]][0]] == row]
    run.stop()
    assert evaluated(run, tmp_path)["verdict"] == PASS


def test_a_value_over_which_the_next_producer_wrote_is_not_lost(run, tmp_path, monkeypatch):
    """A producer that replaces another one writes the same keys, and the cleaner keeps the newest value of a key."""
    after = {"first": 8, "kind": "compact", "instance": 5, "keys": [0, 1], "partitions": [COMPACT, COMPACT]}
    monkeypatch.setattr(client_ledgers, "STREAMS", [*client_ledgers.STREAMS, after])
    monkeypatch.setattr(client_ledgers, "STREAM_PARTITION", [*client_ledgers.STREAM_PARTITION, COMPACT, COMPACT])
    run.message(3, skip=("audit",))
    newer, _position = run.message(8)
    run.stop()
    assert evaluated(run, tmp_path)["verdict"] == PASS
    run.received["audit"] = [row for row in run.received["audit"] if row[0] != newer]
    (tmp_path / "again").mkdir()
    assert evaluated(run, tmp_path / "again")["lost"] == 1


def test_unacknowledged_newest_value_of_a_compacted_key_is_allowed(run, tmp_path):
    ledger_id = run.send(3)
    run.deliver(ledger_id, run.place(ledger_id))
    run.stop()
    result = evaluated(run, tmp_path)
    assert (result["verdict"], result["indeterminate"], result["indeterminate_received"]) == (PASS, 1, 1)


def test_unacknowledged_message_is_indeterminate_received_or_not(run, tmp_path):
    run.send(0)
    ledger_id = run.send(0)
    run.deliver(ledger_id, run.place(ledger_id))
    run.now += 700
    run.stop()
    result = evaluated(run, tmp_path)
    assert (result["verdict"], result["indeterminate"], result["indeterminate_received"]) == (PASS, 2, 1)


def test_unknown_offset_is_neither_duplicated_nor_reordered(run, tmp_path):
    ledger_id = run.send(0)
    run.ack(ledger_id, position(KEYED, -1))
    run.deliver(ledger_id, run.place(ledger_id))
    second = run.send(0)
    run.place(second)
    run.ack(second, KEYED << 48 | OFFSET_UNKNOWN)
    run.messages(5)
    run.stop()
    result = evaluated(run, tmp_path)
    assert (result["duplicated"], result["reordered"], result["lost"]) == (0, 0, 1)


def test_message_expired_before_the_audit_is_not_lost(run, tmp_path):
    run.received["audit"] = [row for row in run.received["audit"] if row[2] >> 48 != KEYED or row[2] & 0xFFFF >= 10]
    run.stop()
    run.stopped["audit"]["from"]["1"] = 10
    result = evaluated(run, tmp_path)
    assert (result["verdict"], result["lost"], result["expired"]) == (PASS, 0, 10)


def test_message_received_and_then_truncated_is_lost(run, tmp_path):
    """Only the audit can find this."""
    run.message(0, skip=("audit",))
    run.stop()
    assert_only(evaluated(run, tmp_path), "lost")


def test_run_cut_short_is_incomplete_and_its_last_messages_outstanding(run, tmp_path):
    for dummy in range(3):
        ledger_id = run.send(0)
        run.ack(ledger_id, run.place(ledger_id))
    run.send(0)
    result = evaluated(run, tmp_path)
    assert (result["verdict"], result["outstanding"], result["lost"], result["indeterminate"]) == (INCOMPLETE, 3, 0, 1)
    assert "cut short" in result["reasons"][0]


def test_run_cut_short_with_a_lost_message_fails(run, tmp_path):
    run.message(0, skip=("steady",))
    run.messages(10)
    assert_only(evaluated(run, tmp_path), "lost")


def test_incomplete_last_rows_are_skipped(run, tmp_path):
    run.write(tmp_path)
    for name in ("sent.bin", "acked.bin", "received-steady.bin"):
        path = tmp_path / name
        path.write_bytes(path.read_bytes()[:-3])
    (tmp_path / "streams.jsonl").write_text((tmp_path / "streams.jsonl").read_text()[:-4])
    from canary_clients.ledger import read

    result = evaluate(read(tmp_path), [])
    assert result["verdict"] == INCOMPLETE
    assert any("sent.bin" in reason and "streams.jsonl" in reason for reason in result["reasons"])


def test_verdict_while_running_is_incomplete(run, tmp_path):
    result = evaluated(run, tmp_path, running=True)
    assert (result["verdict"], result["reasons"]) == (INCOMPLETE, ["the clients are still running"])


def test_group_that_did_not_reach_the_end_is_incomplete(run, tmp_path):
    run.message(0, skip=("steady",))
    run.stop(skip=("steady",))
    result = evaluated(run, tmp_path)
    assert result["verdict"] == INCOMPLETE
    assert any("steady" in reason for reason in result["reasons"])
    assert result["lost"] == 0
    assert result["outstanding"] > 0


def test_failed_audit_is_incomplete(run, tmp_path):
    run.stop()
    run.stopped["audit"] = {"done": False, "messages": 0, "seconds": 0, "error": "nothing came", "from": {"1": 0}}
    result = evaluated(run, tmp_path)
    assert result["verdict"] == INCOMPLETE
    assert "nothing came" in result["reasons"][0]


def test_run_without_acknowledgements_is_incomplete(tmp_path):
    run = LedgerBuilder()
    run.stop()
    run.acked.clear()
    assert evaluated(run, tmp_path)["verdict"] == INCOMPLETE


def test_application_error_fails_in_its_phase(run, tmp_path):
    run.errors.append(
        {
            "severity": "error",
            "where": "producer-1",
            "code": "_MSG_TIMED_OUT",
            "text": "late",
            "first": 50,
            "last": 60,
            "count": 7,
        }
    )
    run.errors.append(
        {
            "severity": "note",
            "where": "producer-1",
            "code": "_TRANSPORT",
            "text": "down",
            "first": 50,
            "last": 60,
            "count": 3,
        }
    )
    run.stop()
    result = evaluated(run, tmp_path, (Mark(T0, "phase", "roll"),))
    assert result["verdict"] == FAIL
    assert result["by_phase"]["roll"]["errors"] == 7
    assert [error["code"] for error in result["app_errors"]] == ["_MSG_TIMED_OUT"]
    assert [note["count"] for note in result["notes"]] == [3]


@pytest.mark.parametrize("kind", ["missing", "unexpected", "differ"])
def test_admin_state_that_differs_fails(run, tmp_path, kind):
    run.stop()
    run.stopped["admin"][kind] = ["topic canary.admin.1"]
    result = evaluated(run, tmp_path)
    assert result["verdict"] == FAIL
    assert "canary.admin.1" in result["reasons"][0]


def test_late_creation_of_a_topic_is_listed_and_no_failure(run, tmp_path):
    run.admin.append({"t": 500, "operation": "create topic", "subject": "t", "outcome": "ok", "retries": 1, "ms": 9})
    run.stop()
    run.stopped["admin"]["late"] = ["topic canary.admin.1"]
    result = evaluated(run, tmp_path)
    assert result["verdict"] == PASS
    assert "topic canary.admin.1 was deleted, then created again by an earlier request" in text(result)


def test_damage_belongs_to_the_phase_of_its_message(tmp_path):
    run = LedgerBuilder()
    run.messages(100)
    run.message(0, skip=("steady",))
    run.messages(150)
    run.stop()
    marks = (
        Mark(T0 + 0.5, "phase", "hybrid"),
        Mark(T0 + 2.0, "phase", "dual_write"),
        Mark(T0 + 1.0, "restart", "r", "h"),
    )
    phases = evaluated(run, tmp_path, marks)["by_phase"]
    assert list(phases) == [UNMARKED, "hybrid", "dual_write"]
    assert {name: phase["lost"] for name, phase in phases.items()} == {UNMARKED: 0, "hybrid": 1, "dual_write": 0}
    assert sum(phase["acked"] for phase in phases.values()) == 254


def test_stalls_count_by_partition_and_in_the_phase_of_their_beginning(tmp_path):
    run = LedgerBuilder()
    run.messages(50)
    # the producer waits 3 s for this one, while another partition goes on
    waiting = run.send(0)
    began = run.now
    while run.now < began + 3000:
        run.message(2)
    packed = run.place(waiting)
    run.ack(waiting, packed, after=0)
    # and the groups 2 s longer
    while run.now < began + 5000:
        run.message(2)
    run.deliver(waiting, packed, after=0)
    run.messages(50)
    run.stop()
    marks = (Mark(T0, "phase", "zk"), Mark(T0 + 1, "phase", "roll"))
    result = evaluated(run, tmp_path, marks)
    assert result["max_stall_ms"] == {"producer": pytest.approx(3000, abs=20), "consumer": pytest.approx(2000, abs=20)}
    assert result["by_phase"]["zk"]["max_producer_stall_ms"] == result["max_stall_ms"]["producer"]
    assert result["by_phase"]["roll"]["max_consumer_stall_ms"] == result["max_stall_ms"]["consumer"]
    assert result["stalls"]["by_topic_ms"]["canary.txn"]["producer"] < 50
    assert result["stalls"]["overall_ms"]["producer"] < 50
    assert [(s["side"], s["topic"], s["partitions"]) for s in result["stalls"]["longest"]] == [
        ("producer", "canary.keyed", [0]),
        ("consumer", "canary.keyed", [0]),
    ]


def test_idle_time_is_no_stall(run, tmp_path):
    run.now += 60_000
    run.messages(10)
    run.stop()
    result = evaluated(run, tmp_path)
    assert result["max_stall_ms"]["producer"] < 50
    assert result["max_stall_ms"]["consumer"] < 50


def test_slow_abort_stalls_its_producer(run, tmp_path):
    ledger_id = run.send(2)
    run.now += 4000
    run.aborted.append((ledger_id, run.now))
    run.stop()
    result = evaluated(run, tmp_path)
    assert result["stalls"]["by_topic_ms"]["canary.txn"]["producer"] == 4000
    assert TXN == 2


def test_unacknowledged_message_stalls_its_producer_to_the_end(run, tmp_path):
    run.send(0)
    run.now += 5000
    run.stop()
    # the closing message of the partition was acknowledged after it
    run.acked = [row for row in run.acked if run.sent[row[0]][0] != 5]
    assert evaluated(run, tmp_path)["max_stall_ms"]["producer"] >= 5000


def test_text_shows_verdict_and_reasons(run, tmp_path):
    run.message(0, skip=("steady",))
    run.stop()
    lines = text(evaluated(run, tmp_path)).splitlines()
    assert lines[0] == "verdict: FAIL"
    assert "1 lost" in lines[1]
    assert len(lines) < 12


def test_the_ten_slowest_messages_have_partition_time_phase_and_step(run, tmp_path):
    waits = [(3, 29_856), (2, 4_000), *((0, 1_000 + number) for number in range(1000))]
    first = len(run.sent)
    for stream, ms in waits:
        ledger_id = run.send(stream)
        packed = run.place(ledger_id)
        run.ack(ledger_id, packed, after=ms)
        run.deliver(ledger_id, packed, after=ms + 3)
        run.now += 500
    sent = [at for dummy, at in run.sent[first:]]
    run.now += 40_000
    run.stop()
    moment = T0 + sent[0] / 1000
    marks = (
        Mark(T0, "phase", "brokers_joining"),
        Mark(moment - 0.2, "phase", "hybrid"),
        Mark(moment - 3, "restart", "zk_migration", host="b3", end=moment + 1),
        Mark(moment + 9, "event", "gate after_copy: pass"),
        Mark(moment + 35, "restart", "kraft", host="b1", end=moment + 40),
    )
    result = evaluated(run, tmp_path, marks)
    slowest = result["slowest"]["producer"]
    assert [message["ms"] for message in slowest] == [29_856, 4_000, *(1_999 - 2 * number for number in range(8))]
    assert slowest[0] == {
        "topic": "canary.compact",
        "partition": 0,
        "client": "compact",
        "ms": 29_856,
        "outcome": "acknowledged",
        "t": round(moment, 3),
        "phase": "hybrid",
        "step": "restart zk_migration b3; gate after_copy: pass",
        "ledger_id": 100,
    }
    assert slowest[1]["step"] == "restart zk_migration b3"
    assert result["longest_wait_ms"]["producer"] == {"long": 1_999, "txn": 4_000, "compact": 29_856, "fence": 5}
    assert {message["ms"] for message in result["slowest"]["consumer"]} == {3}
    line = next(line for line in text(result).splitlines() if "29856 ms" in line and "canary.compact[0]" in line)
    assert "hybrid, restart zk_migration b3; gate after_copy: pass" in line


def test_a_slow_message_between_two_steps_has_the_last_step_before_it(run, tmp_path):
    ledger_id = run.send(0)
    run.ack(ledger_id, run.place(ledger_id), after=3_000)
    run.now += 4_000
    moment = T0 + run.sent[ledger_id][1] / 1000
    marks = (
        Mark(moment - 9, "restart", "kraft", host="b1", end=moment - 5),
        Mark(moment + 4, "restart", "kraft", host="b2", end=moment + 9),
    )
    slowest = evaluated(run, tmp_path, marks)["slowest"]["producer"][0]
    assert (slowest["ms"], slowest["step"]) == (3_000, "after restart kraft b1")


def test_messages_that_were_aborted_or_never_acknowledged_are_among_the_slowest(run, tmp_path):
    never, aborted = run.send(0), run.send(2)
    run.aborted.append((aborted, run.now + 7_000))
    run.now += 8_000
    run.stop()
    slowest = evaluated(run, tmp_path)["slowest"]["producer"]
    assert [(message["ledger_id"], message["outcome"]) for message in slowest[:2]] == [
        (never, "not acknowledged"),
        (aborted, "aborted"),
    ]


def test_what_a_consumer_waited_for_a_message_begins_with_the_acknowledgement(run, tmp_path):
    ledger_id = run.send(0)
    packed = run.place(ledger_id)
    run.ack(ledger_id, packed, after=2_000)
    run.deliver(ledger_id, packed, after=5_000)
    run.now += 6_000
    slowest = evaluated(run, tmp_path)["slowest"]["consumer"][0]
    assert (slowest["client"], slowest["ms"], slowest["outcome"]) == ("steady", 3_000, "received")
