# Copyright: (c) 2026, Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The ways on which a run is killed: from ZooKeeper to KRaft, and from dual-write back. Pure."""

from __future__ import annotations

from typing import Mapping, NamedTuple

from ansible_collections.quorumshift.kafka.plugins.module_utils.core import gates, phase, rollback

# Whether a run finds the cluster in one of these is a matter of moments: hit where it happens, and not asked for.
_PASSING = (phase.CONTROLLERS_STARTING, phase.COPYING)
# Opened by the admissions of the KRaft roll, whose passes the turns take, and by no task of its own.
_NOT_RECORDED = ("before_kraft",)


class Way(NamedTuple):
    """A playbook, and what its runs write into their journals from one end to the other.

    `options`: extra variables; `begins`, `ends`: phases; `broker_rolls`, `controller_rolls`: kinds of turns that are
    admitted one by one; `again`, `once`: what an event of each controller begins with, recorded by the next run where a
    run did it and did not come to record it, or not then; `starts`: how often a node's process is started.
    """

    playbook: str
    options: Mapping[str, str]
    begins: str
    ends: str
    events: tuple[str, ...]
    phases: tuple[str, ...]
    gates: tuple[str, ...]
    broker_rolls: tuple[str, ...]
    controller_rolls: tuple[str, ...]
    again: tuple[str, ...]
    once: tuple[str, ...]
    starts: Mapping[str, int]


FORWARD = Way(
    playbook="playbooks/migrate.yml",
    options={},
    begins=phase.ZK,
    ends=phase.FINALIZED,
    events=("begun", "backup taken", "backup read back", "ended"),
    phases=tuple(name for name in phase.FORWARD if name not in _PASSING),
    gates=tuple(name for name, gate in gates.GATES.items() if not gate.rollback and name not in _NOT_RECORDED),
    broker_rolls=("zk_migration", "kraft"),
    controller_rolls=("controller_final",),
    again=("restart controller",),
    once=(),
    starts={"broker": 2, "controller": 2},  # both rolls; the first start and the last roll
)
BACK = Way(
    playbook="playbooks/rollback.yml",
    options={"quorumshift_rollback_to": rollback.ZK},
    begins=phase.DUAL_WRITE,
    ends=phase.ZK,
    events=("begun", "handed back", "ended"),
    phases=(phase.DUAL_WRITE, phase.HYBRID, phase.REVERTING, phase.ZK),
    gates=tuple(name for name, gate in gates.GATES.items() if gate.rollback),
    broker_rolls=("hybrid", "zk"),
    controller_rolls=(),
    again=(),
    once=("event masked", "event wiped"),
    starts={"broker": 2, "controller": 0},
)
