# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Random histories of a migration: what diverged passes no gate, and no gate says `differ` of what is equal.

A sample of ``make model``, which plays 10,000. What failed once is kept: the events that a seed was shortened to.
"""

from __future__ import annotations

import pytest

from tests.unit.spark.model import history

SAMPLE = 60
OTHER_TOKEN = f"{'t' * 21}Q"
CREATE_A, CREATE_B = (("change", ("create", name)) for name in ("a", "b"))


@pytest.mark.parametrize("first", range(0, SAMPLE, 20))
def test_no_gate_says_what_it_must_not(first):
    failed = {seed: history.play(history.history(seed)).failed for seed in range(first, first + 20)}
    assert not any(failed.values()), {
        seed: [failure.text() for failure in found] for seed, found in failed.items() if found
    }


def gate(name, *script):
    return ("gate", name, list(script))


def busy(change, times=60):
    """Return what a client does that makes a change between all readings, while all follow."""
    return [[("change", change), ("mirror", 9), ("follow", 9)] for dummy in range(times)]


def last(events):
    """Return the verdict of the last gate, and check that no gate says what it must not."""
    outcome = history.play(events)
    assert not outcome.failed, [failure.text() for failure in outcome.failed]
    (*_others, (_gate, _diverged, verdict)) = outcome.verdicts
    return verdict


def test_what_the_copy_loses_is_purged_and_never_passes():
    for lost in range(12):
        setup = [CREATE_A, ("change", ("scram", "u")), ("change", ("acl", "a", "User:x")), ("change", ("quota", "v"))]
        before = [*setup, ("follow", 9), gate("before_trigger"), ("sicken", "loses", lost), ("copy",), ("follow", 9)]
        assert last([*before, gate("after_copy")]) != "pass"
        assert last([*before, ("fail_over",), ("follow", 9), gate("after_copy")]) != "pass"


def test_a_topic_that_the_copy_lost_and_a_producer_created_again_never_passes():
    """Its record after the copy is no removal of the old one."""
    before = [CREATE_A, ("follow", 9), gate("before_controllers"), ("sicken", "loses", 1), ("copy",), CREATE_A]
    assert last([*before, ("mirror", 9), ("follow", 9), gate("before_kraft")]) != "pass"


def test_producer_ids_that_the_copy_lost_and_that_rise_to_where_they_were_never_pass():
    before = [("change", ("block", 0)), ("follow", 9), gate("before_controllers"), ("sicken", "loses", 0), ("copy",)]
    after = [("change", ("block", 0)), ("mirror", 9), ("follow", 9), gate("after_copy")]
    assert last([*before, *after]) == "differ"


def test_records_that_were_lost_are_not_excused_by_later_ones():
    """A change after the loss has a record; the one that was lost is seen by the epoch of the log."""
    before = [CREATE_B, ("copy",), ("to_kraft",), ("change", ("reassign", "b")), ("change", ("reassign", "b"))]
    lost = [("follow", 9), ("mirror", 9), gate("after_kraft"), ("truncate", 1), ("change", ("elect", "b"))]
    assert last([*before, *lost, ("mirror", 9), ("follow", 9), gate("before_finalize")]) != "pass"


def test_a_baseline_of_zookeeper_alone_is_none_after_finalization():
    events = [CREATE_A, ("follow", 9), gate("before_controllers"), ("copy",), ("to_kraft",)]
    assert last([*events, gate("after_finalize")]) == "incomplete"


def test_a_write_that_zookeeper_rejects_while_the_gate_runs_never_passes():
    verdicts = set()
    for number in range(6):
        setup = [CREATE_A, ("change", ("quota", "u")), ("copy",), ("to_kraft",), ("reject", number)]
        script = busy(("quota", "u"), 3)
        verdicts.add(last([*setup, gate("after_kraft", *script)]))  # which knows where the write was made up for
    assert verdicts == {"pass", "differ"}


@pytest.mark.parametrize("change", [("acl", "a", "User:x"), ("no_acl", "a", "User:x")])
def test_what_clients_add_and_remove_all_the_time_is_no_difference(change):
    pair = [("acl", "a", "User:x"), ("no_acl", "a", "User:x")]
    script = [[("change", pair[number % 2]), ("mirror", 9), ("follow", 9)] for number in range(60)]
    events = [CREATE_A, ("change", change), ("copy",), ("to_kraft",), gate("after_kraft", *script)]
    assert last(events) != "differ"


def test_what_changes_all_the_time_passes():
    events = [CREATE_A, ("change", ("scram", "u")), ("copy",), ("to_kraft",)]
    assert last([*events, gate("after_kraft", *busy(("scram", "u")))]) == "pass"


def test_an_election_after_the_copy_leaves_undecided_what_changed_before_it():
    """`incomplete`, not `differ`: nothing shows whether a client or the copy removed it."""
    removed = [
        CREATE_A,
        ("change", ("quota", "u")),
        ("follow", 9),
        gate("before_trigger"),
        ("change", ("no_quota", "u")),
    ]
    assert last([*removed, ("copy",), ("follow", 9), gate("after_copy")]) == "pass"
    assert last([*removed, ("copy",), ("fail_over",), ("follow", 9), gate("after_copy")]) == "incomplete"


FILES = ("keep_files",)


def test_with_a_servers_files_an_election_after_the_copy_leaves_nothing_undecided():
    setup = [FILES, CREATE_A, ("change", ("quota", "u")), ("follow", 9), gate("before_trigger")]
    removed = [*setup, ("change", ("no_quota", "u")), ("copy",), ("fail_over",), ("follow", 9)]
    assert last([*removed, gate("after_copy")]) == "pass"


def test_with_a_servers_files_what_the_copy_loses_is_a_difference():
    for lost in range(12):
        setup = [
            FILES,
            CREATE_A,
            ("change", ("scram", "u")),
            ("change", ("acl", "a", "User:x")),
            ("change", ("quota", "v")),
        ]
        before = [*setup, ("follow", 9), gate("before_trigger"), ("change", ("scram", "u")), ("sicken", "loses", lost)]
        copied = [("copy",), ("fail_over",), ("follow", 9), gate("after_copy")]
        assert last([*before, *copied]) == "differ"


def test_a_topic_that_was_deleted_before_the_copy_and_created_again_after_it_is_no_difference():
    """Its removal has no record in the log. Seed 1595."""
    events = [FILES, CREATE_A, gate("before_trigger"), ("change", ("delete", "a")), ("copy",), CREATE_A]
    assert last([*events, gate("after_copy")]) == "pass"


def test_a_topic_that_zookeeper_still_had_at_the_baseline_and_that_is_created_again_is_no_difference():
    """The log removed it before the baseline, in which ZooKeeper was behind. Seed 31360."""
    removed = [("copy",), CREATE_A, ("mirror", 9), ("change", ("delete", "a"))]
    late = [[], [], [("mirror", 9), ("follow", 9)]]
    again = [gate("after_copy", *late), CREATE_A, ("mirror", 9), ("follow", 9), gate("before_kraft")]
    assert last([*removed, *again]) == "pass"


def test_a_value_that_the_controller_overwrote_while_the_gate_ran_never_passes():
    """It writes all of a znode. No record shows what ZooKeeper had, and it would be in the baseline. Seed 30566."""
    setup = [CREATE_A, ("change", ("quota", "u")), ("copy",), ("write_to_zookeeper", 0, False)]
    for number in range(4):
        events = [*setup[:-1], ("write_to_zookeeper", number, False)]
        overwrite = [[("change", ("grow", "a")), ("change", ("scram", "u")), ("follow", 9)], [("mirror", 9)]]
        assert last([*events, ("follow", 9), gate("before_kraft", [], *overwrite)]) != "pass"


def test_a_partition_whose_record_kafka_deleted_is_excused_by_its_epoch():
    """On a large cluster the elections of a rolling restart let Kafka delete records within hours."""
    events = [CREATE_A, ("copy",), ("to_kraft",), ("mirror", 9), ("follow", 9), gate("after_kraft")]
    elected = [*events, ("change", ("elect", "a")), ("take_checkpoint", True), ("mirror", 9), ("follow", 9)]
    assert last([*elected, gate("before_finalize")]) == "pass"
    lost = [*events, ("change", ("quota", "u")), ("take_checkpoint", True), ("mirror", 9), ("follow", 9)]
    assert last([*lost, gate("before_finalize")]) == "incomplete", "a quota has no epoch"


def test_producer_ids_that_another_client_raised_and_the_controller_overwrote_never_pass():
    """They would be in the baseline, and what is right would have fallen since. Seeds 6914, 8552, 9530."""
    block = ("change", ("block", 0))
    setup = [block, ("copy",), block, ("write_to_zookeeper", 0, False), ("follow", 9)]
    first = gate("before_kraft", [], [("mirror", 9)])
    assert last([*setup, first]) == "incomplete"
    assert last([*setup, first, ("fail_over",), ("follow", 9), gate("after_kraft")]) == "pass"


def test_a_broker_that_follows_the_log_slowly_is_no_difference():
    """It is read again once it has applied the log. Seed 5398."""
    setup = [CREATE_A, ("copy",), ("to_kraft",), ("mirror", 9), ("follow", 9), gate("after_kraft")]
    moved = [("change", ("reassign", "a")), ("mirror", 9)], [("change", ("elect", "a")), ("mirror", 9)]
    for between in range(5):
        script = [[], moved[0], *[[]] * between, moved[1], *[[("mirror", 9)]] * 60]
        assert last([*setup, gate("before_finalize", *script)]) == "pass"
        assert last([*setup, ("stick", 1), gate("before_finalize", *script)]) == "differ"
