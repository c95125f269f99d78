# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The procedures in which runs are killed: the migration to KRaft, and the rollback from dual-write. Pure."""

from __future__ import annotations

from typing import Mapping, NamedTuple

from ansible_collections.quorumshift.kafka.plugins.module_utils.core.gates import gates
from ansible_collections.quorumshift.kafka.plugins.module_utils.core.migration import phase
from ansible_collections.quorumshift.kafka.plugins.module_utils.core.rollback import rollback

# Whether a run finds the cluster in one of these phases depends on timing, so they are no expected points.
_SHORT_PHASES = (phase.CONTROLLERS_STARTING, phase.COPYING)
# opened by each admission of the KRaft roll, without a record in the journal
_NOT_RECORDED = ("before_kraft",)


class Procedure(NamedTuple):
    """A playbook, and the records that its runs write into their journals from the first phase to the last one.

    `options`: extra variables; `last_phase`: the phase at the end; `broker_rolls`, `controller_rolls`: kinds of
    restarts that are admitted one by one; `repeated`, `once`: prefixes of an event of each controller. After a crash
    between the act and its record, the next run writes the record of a `repeated` event, but not of a `once` event.
    `starts`: how often a node's process is started.
    """

    playbook: str
    options: Mapping[str, str]
    last_phase: str
    events: tuple[str, ...]
    phases: tuple[str, ...]
    gates: tuple[str, ...]
    broker_rolls: tuple[str, ...]
    controller_rolls: tuple[str, ...]
    repeated: tuple[str, ...]
    once: tuple[str, ...]
    starts: Mapping[str, int]


MIGRATION = Procedure(
    playbook="playbooks/migrate.yml",
    options={},
    last_phase=phase.FINALIZED,
    events=("begun", "backup taken", "backup read back", "ended"),
    phases=tuple(name for name in phase.FORWARD if name not in _SHORT_PHASES),
    gates=tuple(name for name, gate in gates.GATES.items() if not gate.rollback and name not in _NOT_RECORDED),
    broker_rolls=("zk_migration", "kraft"),
    controller_rolls=("controller_final",),
    repeated=("restart controller",),
    once=(),
    starts={"broker": 2, "controller": 2},  # both rolls; the first start and the last roll
)
ROLLBACK = Procedure(
    playbook="playbooks/rollback.yml",
    options={"quorumshift_rollback_to": rollback.ZK},
    last_phase=phase.ZK,
    events=("begun", "ZooKeeper controller restored", "ended"),
    phases=(phase.DUAL_WRITE, phase.HYBRID, phase.REVERTING, phase.ZK),
    gates=tuple(name for name, gate in gates.GATES.items() if gate.rollback),
    broker_rolls=("hybrid", "zk"),
    controller_rolls=(),
    repeated=(),
    once=("event masked", "event wiped"),
    starts={"broker": 2, "controller": 0},
)
