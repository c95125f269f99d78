# Copyright: (c) 2026, Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The verdict on recorded ledgers: a sound one passes, each planted damage is seen, counted once and in its phase."""

from __future__ import annotations

from typing import Any

import pytest

from canary_clients.ledger import OFFSET_UNKNOWN, position
from canary_clients.marks import UNMARKED, Mark
from canary_clients.screen import text
from canary_clients.verdict import FAIL, INCOMPLETE, PASS, detect
from tests.unit.canary_clients.client_ledgers import COMPACT, KEYED, T0, TXN, Story

DAMAGE = ("lost", "duplicated", "reordered", "aborted_visible")


@pytest.fixture
def story() -> Story:
    reported = Story()
    reported.messages(100)
    return reported


def detected(story: Story, tmp_path: Any, marks: tuple[Mark, ...] = (), **more: Any) -> dict[str, Any]:
    return detect(story.write(tmp_path), list(marks), **more)


def only(result: dict[str, Any], kind: str, count: int = 1) -> None:
    """This damage and no other."""
    assert {name: result[name] for name in DAMAGE} == {name: count if name == kind else 0 for name in DAMAGE}
    assert result["verdict"] == FAIL
    assert kind in result["reasons"][0]
    assert len(result["examples"][kind]) == count
    assert sum(phase[kind] for phase in result["by_phase"].values()) == count


def test_sound_run_passes(story, tmp_path):
    story.stop()
    result = detected(story, tmp_path)
    assert (result["verdict"], result["reasons"]) == (PASS, [])
    assert (result["acked"], result["received"], result["sent"]) == (103, 103, 103)
    assert all(result[name] == 0 for name in (*DAMAGE, "redelivered", "indeterminate", "outstanding"))
    assert result["latency_ms"] == {"ack": {"p50": 5, "p99": 5, "max": 5}, "end_to_end": {"p50": 8, "p99": 8, "max": 8}}


@pytest.mark.parametrize("group", ["steady", "restarted", "audit"])
def test_message_that_one_group_never_received_is_lost(story, tmp_path, group):
    story.message(0, but=(group,))
    story.messages(10)
    story.stop()
    result = detected(story, tmp_path)
    only(result, "lost")
    assert result["examples"]["lost"][0]["groups"] == [group]


def test_message_lost_everywhere_counts_once(story, tmp_path):
    story.message(0, but=("steady", "restarted", "audit"))
    story.stop()
    only(detected(story, tmp_path), "lost")


def test_last_message_of_a_partition_is_lost_when_only_the_closing_one_came_after(story, tmp_path):
    ledger_id, dummy = story.message(2, but=("committed",))
    story.stop()
    result = detected(story, tmp_path)
    only(result, "lost")
    assert result["examples"]["lost"][0]["ledger_id"] == ledger_id


def test_committed_message_that_vanished_is_lost(story, tmp_path):
    story.message(2, but=("committed", "audit"))
    story.stop()
    only(detected(story, tmp_path), "lost")


def test_one_ledger_id_at_two_offsets_is_duplicated_once(story, tmp_path):
    ledger_id, dummy = story.message(0)
    story.deliver(ledger_id, story.place(ledger_id))
    story.stop()
    result = detected(story, tmp_path)
    only(result, "duplicated")
    assert result["redelivered"] == 0


def test_acknowledged_at_one_offset_and_received_at_another_is_duplicated(story, tmp_path):
    ledger_id = story.send(0)
    story.ack(ledger_id, story.place(ledger_id))
    story.deliver(ledger_id, story.place(ledger_id))
    story.stop()
    assert detected(story, tmp_path)["duplicated"] == 1


def test_second_delivery_of_an_offset_is_redelivered(story, tmp_path):
    for row in story.received["restarted"][-5:]:
        story.received["restarted"].append(row)
    story.stop()
    result = detected(story, tmp_path)
    assert (result["verdict"], result["redelivered"], result["duplicated"]) == (PASS, 5, 0)


def test_swapped_pair_of_a_key_is_reordered(story, tmp_path):
    first, second = story.send(0), story.send(0)
    late = story.place(second)
    early = story.place(first)
    for ledger_id, packed in ((second, late), (first, early)):
        story.ack(ledger_id, packed)
        story.deliver(ledger_id, packed)
    story.stop()
    only(detected(story, tmp_path), "reordered")


def test_swap_between_keys_is_no_reordering(story, tmp_path):
    first, second = story.send(0), story.send(1)
    for ledger_id in (second, first):
        packed = story.place(ledger_id)
        story.ack(ledger_id, packed)
        story.deliver(ledger_id, packed)
    story.stop()
    assert detected(story, tmp_path)["verdict"] == PASS


def test_aborted_message_that_read_committed_sees(story, tmp_path):
    hidden, visible = story.send(2), story.send(2)
    story.aborted += [(hidden, story.now), (visible, story.now)]
    story.place(hidden)
    story.deliver(visible, story.place(visible))
    story.stop()
    result = detected(story, tmp_path)
    only(result, "aborted_visible")
    assert result["aborted"] == 2


def test_newest_compacted_value_missing_is_lost(story, tmp_path):
    story.message(3, but=("audit",))
    story.message(4)
    story.stop()
    result = detected(story, tmp_path)
    only(result, "lost")
    assert result["examples"]["lost"][0]["newest_found"] < result["examples"]["lost"][0]["ledger_id"]


def test_old_value_written_again_over_a_compacted_key_is_lost_and_duplicated(story, tmp_path):
    old, dummy = story.message(3)
    story.message(3)
    story.deliver(old, story.place(old))
    story.stop()
    result = detected(story, tmp_path)
    assert (result["lost"], result["duplicated"], result["reordered"]) == (1, 1, 0)
    assert result["examples"]["lost"][0]["newest_found"] == old


def test_compacted_away_values_are_not_lost(story, tmp_path):
    """The cleaner keeps the newest; neither the live group nor the last read must have seen the others."""
    for group in ("steady", "audit"):
        rows = story.received[group]
        newest = {story.sent[row[0]][0]: row for row in rows}
        story.received[group] = [row for row in rows if row[2] >> 48 != COMPACT or newest[story.sent[row[0]][0]] == row]
    story.stop()
    assert detected(story, tmp_path)["verdict"] == PASS


def test_unacknowledged_newest_value_may_win(story, tmp_path):
    ledger_id = story.send(3)
    story.deliver(ledger_id, story.place(ledger_id))
    story.stop()
    result = detected(story, tmp_path)
    assert (result["verdict"], result["indeterminate"], result["indeterminate_received"]) == (PASS, 1, 1)


def test_unacknowledged_is_indeterminate_received_or_not(story, tmp_path):
    story.send(0)
    ledger_id = story.send(0)
    story.deliver(ledger_id, story.place(ledger_id))
    story.now += 700
    story.stop()
    result = detected(story, tmp_path)
    assert (result["verdict"], result["indeterminate"], result["indeterminate_received"]) == (PASS, 2, 1)


def test_offset_that_the_broker_did_not_tell_is_neither_duplicate_nor_order(story, tmp_path):
    ledger_id = story.send(0)
    story.ack(ledger_id, position(KEYED, -1))
    story.deliver(ledger_id, story.place(ledger_id))
    second = story.send(0)
    story.place(second)
    story.ack(second, KEYED << 48 | OFFSET_UNKNOWN)
    story.messages(5)
    story.stop()
    result = detected(story, tmp_path)
    assert (result["duplicated"], result["reordered"], result["lost"]) == (0, 0, 1)


def test_expired_before_the_last_read_is_not_lost(story, tmp_path):
    story.received["audit"] = [row for row in story.received["audit"] if row[2] >> 48 != KEYED or row[2] & 0xFFFF >= 10]
    story.stop()
    story.stopped["audit"]["from"]["1"] = 10
    result = detected(story, tmp_path)
    assert (result["verdict"], result["lost"], result["expired"]) == (PASS, 0, 10)


def test_log_that_ends_before_an_acknowledged_message_has_lost_it(story, tmp_path):
    """Received live, then cut from the log: only the last read can tell."""
    story.message(0, but=("audit",))
    story.stop()
    only(detected(story, tmp_path), "lost")


def test_cut_short_is_incomplete_and_its_tail_outstanding(story, tmp_path):
    for dummy in range(3):
        ledger_id = story.send(0)
        story.ack(ledger_id, story.place(ledger_id))
    story.send(0)
    result = detected(story, tmp_path)
    assert (result["verdict"], result["outstanding"], result["lost"], result["indeterminate"]) == (INCOMPLETE, 3, 0, 1)
    assert "cut short" in result["reasons"][0]


def test_cut_short_with_a_hole_fails(story, tmp_path):
    story.message(0, but=("steady",))
    story.messages(10)
    only(detected(story, tmp_path), "lost")


def test_torn_rows_are_left_out(story, tmp_path):
    story.write(tmp_path)
    for name in ("sent.bin", "acked.bin", "received-steady.bin"):
        path = tmp_path / name
        path.write_bytes(path.read_bytes()[:-3])
    (tmp_path / "streams.jsonl").write_text((tmp_path / "streams.jsonl").read_text()[:-4])
    from canary_clients.ledger import read

    result = detect(read(tmp_path), [])
    assert result["verdict"] == INCOMPLETE
    assert any("sent.bin" in reason and "streams.jsonl" in reason for reason in result["reasons"])


def test_running_is_incomplete(story, tmp_path):
    result = detected(story, tmp_path, running=True)
    assert (result["verdict"], result["reasons"]) == (INCOMPLETE, ["the witness is still running"])


def test_group_that_did_not_reach_the_end_is_incomplete(story, tmp_path):
    story.message(0, but=("steady",))
    story.stop(but=("steady",))
    result = detected(story, tmp_path)
    assert result["verdict"] == INCOMPLETE
    assert any("steady" in reason for reason in result["reasons"])
    assert result["lost"] == 0
    assert result["outstanding"] > 0


def test_audit_that_did_not_get_through_is_incomplete(story, tmp_path):
    story.stop()
    story.stopped["audit"] = {"done": False, "messages": 0, "seconds": 0, "error": "nothing came", "from": {"1": 0}}
    result = detected(story, tmp_path)
    assert result["verdict"] == INCOMPLETE
    assert "nothing came" in result["reasons"][0]


def test_nothing_acknowledged_never_passes(tmp_path):
    reported = Story()
    reported.stop()
    reported.acked.clear()
    assert detected(reported, tmp_path)["verdict"] == INCOMPLETE


def test_application_error_fails_in_its_phase(story, tmp_path):
    story.errors.append(
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
    story.errors.append(
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
    story.stop()
    result = detected(story, tmp_path, (Mark(T0, "phase", "roll"),))
    assert result["verdict"] == FAIL
    assert result["by_phase"]["roll"]["errors"] == 7
    assert [error["code"] for error in result["app_errors"]] == ["_MSG_TIMED_OUT"]
    assert [note["count"] for note in result["notes"]] == [3]


@pytest.mark.parametrize("kind", ["missing", "unexpected", "differ"])
def test_admin_state_that_differs_fails(story, tmp_path, kind):
    story.stop()
    story.stopped["admin"][kind] = ["topic canary.admin.1"]
    result = detected(story, tmp_path)
    assert result["verdict"] == FAIL
    assert "canary.admin.1" in result["reasons"][0]


def test_a_request_that_was_done_late_is_told_and_no_failure(story, tmp_path):
    story.admin.append({"t": 500, "operation": "create topic", "subject": "t", "outcome": "ok", "retries": 1, "ms": 9})
    story.stop()
    story.stopped["admin"]["late"] = ["topic canary.admin.1"]
    result = detected(story, tmp_path)
    assert result["verdict"] == PASS
    assert "topic canary.admin.1 was deleted, and made anew by a request of ours" in text(result)


def test_damage_belongs_to_the_phase_of_its_message(tmp_path):
    reported = Story()
    reported.messages(100)
    reported.message(0, but=("steady",))
    reported.messages(150)
    reported.stop()
    marks = (
        Mark(T0 + 0.5, "phase", "hybrid"),
        Mark(T0 + 2.0, "phase", "dual_write"),
        Mark(T0 + 1.0, "restart", "r", "h"),
    )
    phases = detected(reported, tmp_path, marks)["by_phase"]
    assert list(phases) == [UNMARKED, "hybrid", "dual_write"]
    assert {name: phase["lost"] for name, phase in phases.items()} == {UNMARKED: 0, "hybrid": 1, "dual_write": 0}
    assert sum(phase["acked"] for phase in phases.values()) == 254


def test_stalls_are_by_partition_and_in_the_phase_where_they_began(tmp_path):
    reported = Story()
    reported.messages(50)
    # the producer waits 3 s for this one, while another partition goes on
    waiting = reported.send(0)
    began = reported.now
    while reported.now < began + 3000:
        reported.message(2)
    packed = reported.place(waiting)
    reported.ack(waiting, packed, after=0)
    # and the groups 2 s longer
    while reported.now < began + 5000:
        reported.message(2)
    reported.deliver(waiting, packed, after=0)
    reported.messages(50)
    reported.stop()
    marks = (Mark(T0, "phase", "zk"), Mark(T0 + 1, "phase", "roll"))
    result = detected(reported, tmp_path, marks)
    assert result["max_stall_ms"] == {"producer": pytest.approx(3000, abs=20), "consumer": pytest.approx(2000, abs=20)}
    assert result["by_phase"]["zk"]["max_producer_stall_ms"] == result["max_stall_ms"]["producer"]
    assert result["by_phase"]["roll"]["max_consumer_stall_ms"] == result["max_stall_ms"]["consumer"]
    assert result["stalls"]["by_topic_ms"]["canary.txn"]["producer"] < 50
    assert result["stalls"]["overall_ms"]["producer"] < 50
    assert [(s["side"], s["topic"], s["partitions"]) for s in result["stalls"]["longest"]] == [
        ("producer", "canary.keyed", [0]),
        ("consumer", "canary.keyed", [0]),
    ]


def test_idle_time_is_no_stall(story, tmp_path):
    story.now += 60_000
    story.messages(10)
    story.stop()
    result = detected(story, tmp_path)
    assert result["max_stall_ms"]["producer"] < 50
    assert result["max_stall_ms"]["consumer"] < 50


def test_transaction_whose_abort_took_long_stalled_its_producer(story, tmp_path):
    ledger_id = story.send(2)
    story.now += 4000
    story.aborted.append((ledger_id, story.now))
    story.stop()
    result = detected(story, tmp_path)
    assert result["stalls"]["by_topic_ms"]["canary.txn"]["producer"] == 4000
    assert TXN == 2


def test_message_that_never_was_acknowledged_stalled_to_the_end(story, tmp_path):
    story.send(0)
    story.now += 5000
    story.stop()
    # the closing message of the partition was acknowledged after it
    story.acked = [row for row in story.acked if story.sent[row[0]][0] != 5]
    assert detected(story, tmp_path)["max_stall_ms"]["producer"] >= 5000


def test_text_says_what_happened(story, tmp_path):
    story.message(0, but=("steady",))
    story.stop()
    lines = text(detected(story, tmp_path)).splitlines()
    assert lines[0] == "verdict: FAIL"
    assert "1 lost" in lines[1]
    assert len(lines) < 12
