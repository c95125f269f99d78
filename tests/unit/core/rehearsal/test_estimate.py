# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""estimate: the times of a cluster's own runs, by those of a rehearsal."""

from __future__ import annotations

import pytest
from ansible_collections.quorumshift.kafka.plugins.module_utils.core.rehearsal import estimate
from ansible_collections.quorumshift.kafka.plugins.module_utils.core.rehearsal.estimate import Measured, Nodes, Part

RUN = "20261130T001850-309d"


def step(began, hosts, kind, took, outcome="done", run=RUN):
    """Return the events of a step in which hosts restart at once."""
    restarts = [
        {
            **{"t": began + 1, "kind": "restart", "name": kind, "host": host, "outcome": outcome},
            "node_restart": f"{run}/{kind}/{host}",
        }
        for host in hosts
    ]
    return [
        {"t": began, "kind": "event", "name": "step begun", "hosts": hosts},
        *restarts,
        {"t": began + took, "kind": "event", "name": "step ended", "hosts": hosts},
    ]


EVENTS = [
    *step(100, ["c1", "c2", "c3"], "controller_start", 12),
    *step(120, ["b1"], "zk_migration", 10),
    *step(130, ["b2"], "zk_migration", 20),
    *step(150, ["b3"], "zk_migration", 30),
]


def test_a_run_is_its_restarts_and_the_rest():
    found = estimate.measure("forward", 200.0, EVENTS, RUN)
    assert found.parts == [Part("controller_start", 1, 3, 12.0), Part("zk_migration", 3, 3, 60.0)]
    assert found.fixed_s == 128.0 and found.parts[1].each_s == 20.0
    assert found.parts[0].is_together and not found.parts[1].is_together


def test_a_failed_restart_and_one_of_another_run_are_of_the_rest():
    events = [*step(0, ["b1"], "kraft", 9, "failed"), *step(10, ["b2"], "kraft", 9, run="20261101T000000-aaaa")]
    assert estimate.measure("forward", 50.0, events, RUN) == Measured("forward", 50.0, [])


@pytest.mark.parametrize(
    ("nodes", "seconds"),
    [
        (Nodes(3, 3), 200),
        (Nodes(24, 3), 128 + 12 + 24 * 20),
        (Nodes(24, 5), 128 + 12 + 24 * 20),  # controllers that start for the first time start together
        (Nodes(24, 3, 6), 128 + 12 + 4 * 20),
        (Nodes(25, 3, 6), 128 + 12 + 5 * 20),
        (Nodes(1, 3), 128 + 12 + 20),
    ],
)
def test_restarts_grow_with_the_brokers_and_the_rest_does_not(nodes, seconds):
    (found,) = estimate.estimate([estimate.measure("forward", 200.0, EVENTS, RUN)], nodes)
    assert found.seconds == pytest.approx(seconds) and found.fixed_s == 128.0


def test_restarts_of_controllers_grow_with_the_controllers():
    run = Measured("finalize", 100.0, [Part("controller_final", 3, 3, 30.0)])
    (found,) = estimate.estimate([run], Nodes(24, 5))
    assert found.seconds == pytest.approx(70 + 5 * 10)


def test_several_runs_of_a_name_are_one_estimate_with_their_range():
    runs = [
        Measured("forward", 100.0, [Part("kraft", 3, 3, 30.0)]),
        Measured("forward", 120.0, [Part("kraft", 3, 3, 60.0)]),
    ]
    (found,) = estimate.estimate(runs, Nodes(6, 3))
    assert (found.least_s, found.most_s) == (130.0, 180.0) and found.seconds == 155.0
    assert found.lines == [estimate.Line("kraft", 6, 15.0)] and found.fixed_s == 65.0
    assert found.fixed_s + sum(line.batches * line.each_s for line in found.lines) == pytest.approx(found.seconds)


def test_the_estimate_beside_what_it_took():
    (found,) = estimate.estimate([Measured("forward", 110.0, [])], Nodes(3, 3))
    (compared,) = estimate.compare([found], [Measured("forward", 100.0, []), Measured("other", 5.0, [])])
    assert compared.off == pytest.approx(0.1) and compared.took_s == 100.0


@pytest.mark.parametrize(
    ("parts", "name"),
    [
        ([("controller", 1, 3), ("zk_migration", 3, 3), ("kraft", 3, 3)], "forward"),
        ([("zk_migration", 1, 3), ("kraft", 1, 3)], "forward"),  # in batches
        ([("hybrid", 3, 3), ("zk", 3, 3)], "back"),
        ([("controller_final", 3, 3)], "finalize"),
        ([("zk_migration", 3, 3), ("kraft", 2, 2)], None),  # stopped on its way
        ([("kraft", 3, 3)], None),  # went on from there
        ([("restart_broker", 3, 3)], None),
        ([], None),
    ],
)
def test_only_whole_runs_are_compared(parts, name):
    run = Measured("", 100.0, [Part(kind, batches, nodes, 10.0) for kind, batches, nodes in parts])
    assert estimate.name_of(run, Nodes(3, 3)) == name
