# Copyright: (c) 2026, Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The table of a migration: how a node gets from one mode to another, and the steps in their order. Pure data.

Every other list of restarts, gates, fallbacks and "what is ahead" is read from here. Source of the order: Kafka 3.9's
documentation, "ZooKeeper to KRaft Migration", with "Reverting to ZooKeeper mode during the Migration".
"""

from __future__ import annotations

from typing import NamedTuple

from . import node_mode
from .phase import (
    BROKERS_JOINING,
    CONTROLLERS_READY,
    CONTROLLERS_STARTING,
    COPYING,
    DUAL_WRITE,
    FINALIZED,
    FINALIZING,
    FORWARD,
    HYBRID,
    REVERTING,
    ZK,
)

BROKER, CONTROLLER = "broker", "controller"


class Transition(NamedTuple):
    """One kind of restart.

    `name`: of the kind; `role`: of the node; `before`, `after`: the node's mode (node_mode; '': not there yet); `gate`:
    whose token the restart needs; `settled`: phases in which the cluster is once every node has made it; `rollback`:
    whether it belongs to a rollback; `stays`: why a node that fails to start does not revert to `before` by itself ('':
    it does, where that is safe).
    """

    name: str
    role: str
    before: str
    after: str
    gate: str
    settled: tuple[str, ...]
    rollback: bool = False
    stays: str = ""


TRANSITIONS = {
    one.name: one
    for one in (
        Transition(
            "controller",
            CONTROLLER,
            "",
            node_mode.CONTROLLER_MIGRATION,
            "before_controllers",
            (CONTROLLERS_READY,),
            stays="a new controller has no earlier file",
        ),
        Transition(
            "zk_migration",
            BROKER,
            node_mode.ZK,
            node_mode.ZK_MIGRATION,
            "before_trigger",
            (COPYING, HYBRID, DUAL_WRITE),
        ),
        Transition("kraft", BROKER, node_mode.ZK_MIGRATION, node_mode.KRAFT, "before_kraft", (DUAL_WRITE, FINALIZING)),
        Transition(
            "controller_final",
            CONTROLLER,
            node_mode.CONTROLLER_MIGRATION,
            node_mode.CONTROLLER_FINAL,
            "before_finalize",
            (FINALIZED,),
            stays="finalization cannot be undone",
        ),
        Transition(
            "controller_migration",
            CONTROLLER,
            node_mode.CONTROLLER_FINAL,
            node_mode.CONTROLLER_MIGRATION,
            "before_revert",
            (DUAL_WRITE, HYBRID),
            rollback=True,
            stays="the quorum must not have a controller that ends the migration",
        ),
        Transition(
            "hybrid", BROKER, node_mode.KRAFT, node_mode.ZK_MIGRATION, "before_revert", (HYBRID,), rollback=True
        ),
        Transition(
            "zk",
            BROKER,
            node_mode.ZK_MIGRATION,
            node_mode.ZK,
            "before_revert",
            (REVERTING,),
            rollback=True,
            stays="it is in its earliest mode",
        ),
    )
}


RESTARTS = {
    one.name: one
    for one in (
        Transition("restart_broker", BROKER, "", "", "restart", (), stays="a plain restart changes no file"),
        Transition("restart_controller", CONTROLLER, "", "", "restart", (), stays="a plain restart changes no file"),
        Transition("upgrade_broker", BROKER, "", "", "restart", ()),
        Transition("upgrade_controller", CONTROLLER, "", "", "restart", ()),
        Transition("protocol_broker", BROKER, "", "", "restart", ()),
        Transition("zk_connect", BROKER, "", "", "restart", ()),
    )
}
"""Plain restarts: the node keeps its mode. They are no steps of a migration to KRaft. An upgrade changes the release,
and inter.broker.protocol.version; a node that does not come up with the new one gets the earlier one back."""

CHANGED_KEYS = {
    "upgrade_broker": ("inter.broker.protocol.version",),
    "upgrade_controller": (),
    "protocol_broker": ("inter.broker.protocol.version",),
    "zk_connect": ("zookeeper.connect",),
}
"""Plain restarts that change something on the host, with the keys of its properties file that they may change."""

_OUTSIDE = {BROKER: (node_mode.ZK, node_mode.KRAFT), CONTROLLER: (node_mode.CONTROLLER_FINAL,)}
KEPT_MODES = {
    **{name: _OUTSIDE[one.role] for name, one in RESTARTS.items()},
    "protocol_broker": (node_mode.ZK,),
    "zk_connect": (node_mode.ZK,),
}
"""The modes in which a node may make each plain restart: those outside of a migration."""


def of(kind: str) -> Transition:
    """Return a kind of restart, of a migration or plain. Raises KeyError."""
    return TRANSITIONS.get(kind) or RESTARTS[kind]


def forward_to(mode: str) -> Transition | None:
    """Return the forward transition that leads a node into a mode; None for `zk`, in which brokers begin."""
    return next((one for one in TRANSITIONS.values() if one.after == mode and not one.rollback), None)


def earlier(name: str) -> list[Transition]:
    """Return the forward transitions that a node of the same role makes before this one, in order."""
    names = list(TRANSITIONS)
    before = [TRANSITIONS[one] for one in names[: names.index(name)]]
    role = TRANSITIONS[name].role
    return [one for one in before if one.role == role and not one.rollback]


GATE, ROLL, START, OTHER = "gate", "roll", "start", "step"
"""Kinds of steps: a gate; nodes restarted one batch after the other; nodes started together; anything else."""

TO_ZK, TO_HYBRID = "zk", "hybrid"
"""How far a rollback goes: to plain ZooKeeper mode without a trace, or to hybrid brokers under KRaft's controllers."""


class Step(NamedTuple):
    """One step of a run. `name`: of its gate or transition, or its own; `due`: phases in which it is the next to come
    or may be repeated; `later`: further phases in which it is still ahead; `back`: how far a rollback goes once it is
    done (None: none is possible)."""

    kind: str
    name: str
    text: str
    due: tuple[str, ...]
    later: tuple[str, ...] = ()
    back: str | None = TO_ZK

    def ahead(self, phase: str) -> bool:
        """Return whether the step is still to come in a phase."""
        return phase in self.due or phase in self.later


def _forward(kind: str, name: str, text: str, *due: str, back: str | None = TO_ZK) -> Step:
    """A step forward is ahead in every phase before the first one in which it is due."""
    return Step(kind, name, text, due, FORWARD[: FORWARD.index(due[0])], back)


_MIGRATE = (
    _forward(
        OTHER, "backup", "back up ZooKeeper on two hosts and read it back", ZK, CONTROLLERS_STARTING, CONTROLLERS_READY
    ),
    _forward(GATE, "before_controllers", "", ZK, CONTROLLERS_STARTING),
    _forward(START, "controller", "bring up the controllers", ZK, CONTROLLERS_STARTING),
    _forward(GATE, "before_trigger", "", CONTROLLERS_READY, BROKERS_JOINING),
    _forward(ROLL, "zk_migration", "restart brokers in migration mode", CONTROLLERS_READY, BROKERS_JOINING),
    _forward(OTHER, "copy", "initial copy: the last of these restarts starts it; count it", COPYING),
    _forward(GATE, "after_copy", "", COPYING, HYBRID),
    _forward(ROLL, "kraft", "restart brokers in KRaft mode", COPYING, HYBRID, FINALIZING),
    _forward(GATE, "after_kraft", "", HYBRID),
    _forward(OTHER, "soak", "the run ends here and prints the confirmation token; soak", DUAL_WRITE),
    _forward(GATE, "before_finalize", "", DUAL_WRITE, FINALIZING),
    _forward(
        ROLL,
        "controller_final",
        "restart controllers without the migration flag",
        DUAL_WRITE,
        FINALIZING,
        back=None,
    ),
    _forward(GATE, "after_finalize", "", DUAL_WRITE, FINALIZING, back=None),
)
_KRAFT_LEFT = (HYBRID, DUAL_WRITE)
_BEGUN = FORWARD[FORWARD.index(CONTROLLERS_STARTING) : FORWARD.index(FINALIZED)]
_TO_HYBRID = (
    Step(GATE, "before_revert", "", (*_KRAFT_LEFT, FINALIZING)),
    Step(ROLL, "controller_migration", "restart controllers with the migration flag", (FINALIZING,)),
    Step(ROLL, "hybrid", "restart brokers back in migration mode", _KRAFT_LEFT, (FINALIZING,)),
)
_TO_ZK = (
    *_TO_HYBRID,
    Step(GATE, "before_revert", "", _BEGUN),
    Step(OTHER, "stop", "stop and mask the controllers, the quorum's leader last", _BEGUN),
    Step(OTHER, "restore_zk_controller", "have ZooKeeper's own controller elected", (REVERTING,), _BEGUN),
    Step(ROLL, "zk", "restart brokers in plain ZooKeeper mode", (REVERTING,), _BEGUN),
    Step(OTHER, "wipe", "remove every trace of the migration from the controllers", (REVERTING,), _BEGUN),
    Step(GATE, "after_revert", "", (REVERTING,), _BEGUN),
)


def steps(target: str = "") -> tuple[Step, ...]:
    """Return the steps of a migration or, with a target (TO_HYBRID, TO_ZK), of a rollback, in order."""
    return {"": _MIGRATE, TO_HYBRID: _TO_HYBRID, TO_ZK: _TO_ZK}[target]


def names_ahead(phase: str, target: str = "", due_alone: bool = False) -> list[str]:
    """Return the names of the steps that are ahead in a phase; `due_alone`: that can begin right now, which is all that
    check mode can show."""
    return [step.name for step in steps(target) if (phase in step.due if due_alone else step.ahead(phase))]
