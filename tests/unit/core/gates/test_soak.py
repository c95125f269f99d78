# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The history of a soak, against a model that keeps every sample, and in the gate and on the screen."""

from __future__ import annotations

import random

import pytest
from ansible_collections.quorumshift.kafka.plugins.module_utils.core.gates import gates, soak
from ansible_collections.quorumshift.kafka.plugins.module_utils.core.migration import phase
from ansible_collections.quorumshift.kafka.plugins.module_utils.core.status import screen

from tests.unit.core import recorded

DAY = 86400
GOOD = ("dual_write", [])
SAID = [
    GOOD,
    GOOD,
    GOOD,
    GOOD,
    ("dual_write", ["b1 is down"]),
    ("unknown", []),
    ("hybrid", []),
    ("dual_write", ["x", "y"]),
]


def history(samples, gap_s=None):
    kept = None
    for at, (name, problems) in samples:
        kept = soak.add(kept, soak.Sample(at, name, problems), gap_s)
    return kept or {}


def model(samples, now, gap_s):
    """Return since when the soak is sound, from single samples: the last bad one; with `gap_s`, the first moment from
    which each further moment has a good sample at most so long before it."""
    since = max((at for at, said in samples if said != GOOD), default=0.0)
    if gap_s is not None:
        covered, seen = now, False
        for at in sorted((at for at, said in samples if said == GOOD), reverse=True):
            if covered - at > gap_s:
                break
            covered, seen = at, True
        since = max(since, covered - gap_s if seen else now)
    return since


@pytest.mark.parametrize("seed", range(300))
def test_episodes_say_what_single_samples_say(seed):
    rng = random.Random(seed)
    now, samples, gap_s = 0.0, [], rng.choice([None, 60.0, 300.0])
    for _sample in range(rng.randrange(40)):
        now += rng.choice([1.0, 30.0, 59.0, 60.0, 61.0, 299.0, 301.0, 4000.0])
        samples.append((now, rng.choice(SAID)))
    now += rng.choice([0.0, 1.0, 60.0, 61.0, 301.0])
    assert soak.measure({"c1": history(samples, gap_s)}, now, gap_s).since == model(samples, now, gap_s)
    # Each host has the samples that reached it; together they have what they say, and no more
    halves = [[sample for sample in samples if rng.random() < 0.6] for _host in range(2)]
    either = sorted({id(sample): sample for half in halves for sample in half}.values())
    found = soak.measure({f"c{at}": history(half, gap_s) for at, half in enumerate(halves)}, now, gap_s).since
    assert found >= model(either, now, gap_s)
    if gap_s is None:
        assert found == model(either, now, gap_s)
    # A history that was written without a bound is never taken for a denser one
    assert soak.measure({"c1": history(samples)}, now, gap_s).since >= model(samples, now, gap_s)


def test_a_day_without_a_problem_is_one_episode_and_the_oldest_go_first():
    kept = history([(60.0 * minute, GOOD) for minute in range(1440)], 90.0)
    assert [episode["samples"] for episode in kept["episodes"]] == [1440]
    flapping = history([(60.0 * minute, SAID[-1] if minute % 2 else GOOD) for minute in range(2000)])
    assert len(flapping["episodes"]) == soak.MOST and flapping["episodes"][-1]["to"] == 60.0 * 1999


def test_a_clock_that_went_back_covers_nothing_in_between():
    kept = history([(1000.0, GOOD), (400.0, GOOD), (1060.0, GOOD)], 60.0)
    assert len(kept["episodes"]) == 3
    assert soak.measure({"c1": kept}, 1060.0, 60.0).since == 940.0


def test_a_history_that_cannot_be_read_makes_nothing_sound():
    sound = soak.measure({"c1": history([(900.0, GOOD)]), "c2": {"error": "soak.json: Expecting value"}}, 1000.0, None)
    assert (
        sound.since == 1000.0
        and sound.why == "the history of the soak could not be read: c2: soak.json: Expecting value"
    )


@pytest.fixture
def facts():
    found = recorded.facts("dual_write")
    for node in found["nodes"].values():
        node["service"]["started_at"] = found["time"] - 2 * DAY
    return found


def keep(facts, samples, gap_s=None, host="c1", ago=True):
    """Keep samples, given by how many seconds ago they were taken."""
    at = [(facts["time"] - seconds, said) for seconds, said in samples]
    facts["nodes"][host]["soak"] = {phase.cluster_id(facts): history(at, gap_s)}


def refused(facts, gap_s=None):
    token = gates.finalize_token(facts)
    return gates.finalize_troubles(facts, phase.detect(facts), token, DAY, gap_s)


def test_a_bad_sample_begins_the_soak_again(facts):
    assert refused(facts) == []
    keep(facts, [(7200, GOOD), (3600, ("dual_write", ["2 partitions are offline: a-0, a-1"])), (60, GOOD)])
    (why,) = refused(facts)
    assert why.startswith("the soak is 86400 s, and was sound for the last 3600 s alone: from ")
    assert why.endswith(": 2 partitions are offline: a-0, a-1 (QS-GATE-013)")
    keep(facts, [(DAY + 60, ("unknown", [])), (60, GOOD)])
    assert refused(facts) == []
    # of another cluster
    facts["nodes"]["c1"]["soak"] = {"other": history([(facts["time"] - 5, ("unknown", []))])}
    assert refused(facts) == []


def test_a_soak_that_is_to_be_watched_needs_samples_of_all_of_it(facts):
    (why,) = refused(facts, 900)
    assert "was sound for the last 0 s alone: no sample was taken in the 15 min 0 s before" in why
    dense = [(600 * number, GOOD) for number in range(144, -1, -1)]
    keep(facts, dense, 900)
    assert refused(facts, 900) == []
    keep(facts, [sample for sample in dense if sample[0] not in (6000, 6600)], 900)
    (why,) = refused(facts, 900)
    assert "for the last 6300 s alone: no sample was taken in the 15 min 0 s before" in why
    keep(facts, [sample for sample in dense if sample[0] >= 1200], 900)  # none since
    assert len(refused(facts, 900)) == 1
    assert refused(facts) == []


def test_the_screen_says_what_the_samples_say(facts):
    def step(gap_s=None):
        return screen.next_step(facts, phase.detect(facts), DAY, gap_s)

    assert step().text.startswith("finalize: the soak is over")
    assert step().watch[-1] == "no sample of the soak is kept: run the playbook watch_soak every few minutes"
    keep(facts, [(7200, ("dual_write", ["b1 is down"])), (3600, GOOD), (3000, GOOD)])
    assert "(22 h 0 min to go)" in step().text
    assert step().watch[-1].startswith("2 good samples of the soak, at most 10 min 0 s apart; before that, from ")
    assert "(24 h 0 min to go)" in step(900).text


@pytest.mark.parametrize(
    ("left_s", "said"), [(3700.0, "takes 1 h 1 min more"), (-90.0, "has been over for 1 min 30 s: fin")]
)
def test_a_sample_says_how_long_the_soak_takes_and_reminds(left_s, said):
    first, second = soak.lines({"sample": {"at": 0.0, "phase": "dual_write", "problems": ["x"]}, "left_s": left_s})
    assert first == "1970-01-01 00:00:00 UTC: phase dual_write, 1 problem" and said in second
    assert len([*soak.lines({"sample": {"at": 0.0, "phase": "zk", "problems": []}, "left_s": None})]) == 1


def test_only_what_is_new_is_news():
    kept, found, left_s = {}, [], 250.0
    for at, said in ((0.0, GOOD), (60.0, SAID[4]), (120.0, SAID[4]), (180.0, GOOD), (240.0, GOOD), (300.0, GOOD)):
        sample = soak.Sample(at, *said)
        found += [(at, new["event"]) for new in soak.news({"c1": kept, "c2": {}}, sample, left_s - at)]
        kept = soak.add(kept, sample, None)
    assert found == [(60.0, "sample_bad"), (180.0, "sample_good"), (300.0, "soak_over")]
    assert [new["event"] for new in soak.news({}, soak.Sample(0.0, "dual_write", ["x", "y"]), -1.0)] == [
        "sample_bad",
        "soak_over",
    ]
