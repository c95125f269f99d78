# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A sample of the simulated moves; `make simulate` runs 100,000, and removes each safeguard."""

from __future__ import annotations

import pytest
from ansible_collections.quorumshift.kafka.plugins.module_utils.ensemble.effects import Effects

from tools.cut_simulation import safeguards, schedule
from tools.cut_simulation.world import Host

SAMPLE = range(600)
# Seeds that broke an invariant once. A change of the code may turn them into other schedules
KEPT = (156, 175, 191, 316, 806, 1157, 1192, 215768, 221272, 232255, 236923, 249513)
# The same with a host that dies and returns
KEPT_DEAD = (
    238,
    610,
    1347,
    1658,
    3667,
    4030,
    4117,
    4862,
    6458,
    7705,
    26967,
    29596,
    29914,
    36579,
    43892,
    18408,
    20488,
    26652,
    31072,
    32789,
)
WITHIN = 1000  # schedules; `make simulate` tries all safeguards with more


def test_no_invariant_is_violated():
    bad = [(seed, outcome.problem) for seed in (*KEPT, *KEPT_DEAD, *SAMPLE) if (outcome := schedule.run(seed)).problem]
    assert not bad, f"python -m tools.cut_simulation --replay {bad[0][0]}"


def test_a_schedule_depends_on_its_seed_alone():
    lines: tuple[list[str], list[str]] = ([], [])
    outcomes = [schedule.run(11, line) for line in lines]
    assert outcomes[0] == outcomes[1] and lines[0] == lines[1]


def test_a_host_of_the_simulation_has_the_effects_of_a_real_one():
    real = {name for name in vars(Effects) if not name.startswith("_")}
    simulated = {name for name in vars(Host) if not name.startswith("_")} | set(Host.special)
    assert real - simulated == {"sleep"}  # the scheduler's


@pytest.mark.parametrize(
    "name",
    [
        "without the second fence",
        "with an open port as proof",
        "with a heal that does not look",
        "with a part taken for all",
        "with an unknown host taken for promoted",
        "with a dead host that brokers know",
        "with old files that return",
    ],
)
def test_the_simulation_notices_a_safeguard_that_is_removed(name):
    assert safeguards.noticed(safeguards.SAFEGUARDS[name], WITHIN) is not None
