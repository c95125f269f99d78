# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The table of restarts, one row a kind, and the steps of a migration in their order. Pure data.

Every other list of restarts, gates, fallbacks and "what is ahead" is read from here. A new kind of restart is one row
of KINDS and its edit (edits). Source of the order: Kafka 3.9's documentation, "ZooKeeper to KRaft Migration", with
"Reverting to ZooKeeper mode during the Migration".
"""

from __future__ import annotations

from typing import Callable, Iterable, Mapping, NamedTuple

from ansible_collections.quorumshift.kafka.plugins.module_utils.core.migration import edits, kraft_config, node_mode
from ansible_collections.quorumshift.kafka.plugins.module_utils.core.migration.phase import (
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
KEEP = ""
"""In the place of the mode after a restart: the node keeps the one that it has."""
TO_ZK, TO_HYBRID = "zk", "hybrid"
"""How far a rollback goes: to plain ZooKeeper mode without a trace, or to hybrid brokers under KRaft's controllers."""


class Kind(NamedTuple):
    """One kind of restart.

    `name`: in modules the option `kind`, in roles the variable `restart_kind`; `role`: of the node;
    `before`: the modes (node_mode) in which a node may make it, none where there is no node yet;
    `after`: the mode that it leads to, or KEEP;
    `gate`: whose token it needs;
    `edit`: what it changes on the host;
    `settled`: the phases in which the cluster is once every node has made it;
    `may_change`: in a plain restart, the keys of the properties file that it may change;
    `new_release`: whether it may switch the node to another release;
    `stays`: why a node that fails to start does not revert to `before` by itself ('': it does, where that is safe);
    `joins`: whether the broker joins the quorum by it, so that the last such restart starts the initial copy;
    `back`: the target of the rollback that it belongs to;
    `takes_back`: in a rollback, the keys that the change into the mode left had changed, by the kept file.
    """

    name: str
    role: str
    before: tuple[str, ...]
    after: str
    gate: str
    edit: edits.Edit
    settled: tuple[str, ...] = ()
    may_change: tuple[str, ...] = ()
    new_release: bool = False
    stays: str = ""
    joins: bool = False
    back: str = ""
    takes_back: Callable[[Mapping[str, str], int], Iterable[str]] = edits.no_keys

    @property
    def is_plain(self) -> bool:
        """Return whether the node keeps its mode: the restart is no step of a migration to KRaft."""
        return self.after == KEEP

    @property
    def is_rollback(self) -> bool:
        """Return whether the restart belongs to a rollback."""
        return bool(self.back)

    @property
    def changes_host(self) -> bool:
        """Return whether a plain restart changes the file or the release. A node that does not come up with the new one
        gets the earlier one back."""
        return self.is_plain and (self.new_release or bool(self.may_change))

    @property
    def without_quorum(self) -> bool:
        """Return whether the controllers are stopped during these restarts."""
        return self.back == TO_ZK

    @property
    def left(self) -> str:
        """Return the mode that the restart leaves; '' where the node keeps its mode, or is new."""
        return "" if self.is_plain or not self.before else self.before[0]


_PLAIN_BROKER = (node_mode.ZK, node_mode.KRAFT)
_PLAIN_CONTROLLER = (node_mode.CONTROLLER_FINAL,)
_QUORUM = (kraft_config.QUORUM_VOTERS, kraft_config.QUORUM_BOOTSTRAP)
_UNCHANGED = "a plain restart changes no file"

KINDS = {
    kind.name: kind
    for kind in (
        # A migration, forward
        Kind(
            "controller",
            CONTROLLER,
            before=(),
            after=node_mode.CONTROLLER_MIGRATION,
            gate="before_controllers",
            edit=edits.new_controller,
            settled=(CONTROLLERS_READY,),
            stays="a new controller has no earlier file",
        ),
        Kind(
            "zk_migration",
            BROKER,
            before=(node_mode.ZK,),
            after=node_mode.ZK_MIGRATION,
            gate="before_trigger",
            edit=edits.to_migration_mode,
            settled=(COPYING, HYBRID, DUAL_WRITE),
            joins=True,
        ),
        Kind(
            "kraft",
            BROKER,
            before=(node_mode.ZK_MIGRATION,),
            after=node_mode.KRAFT,
            gate="before_kraft",
            edit=edits.to_kraft_mode,
            settled=(DUAL_WRITE, FINALIZING),
        ),
        Kind(
            "controller_final",
            CONTROLLER,
            before=(node_mode.CONTROLLER_MIGRATION,),
            after=node_mode.CONTROLLER_FINAL,
            gate="before_finalize",
            edit=edits.to_final_controller,
            settled=(FINALIZED,),
            stays="finalization cannot be undone",
        ),
        # A rollback
        Kind(
            "controller_migration",
            CONTROLLER,
            before=(node_mode.CONTROLLER_FINAL,),
            after=node_mode.CONTROLLER_MIGRATION,
            gate="before_revert",
            edit=edits.from_kept_file,
            settled=(DUAL_WRITE, HYBRID),
            stays="the quorum must not have a controller that ends the migration",
            back=TO_HYBRID,
            takes_back=edits.keys_of_final_controller,
        ),
        Kind(
            "hybrid",
            BROKER,
            before=(node_mode.KRAFT,),
            after=node_mode.ZK_MIGRATION,
            gate="before_revert",
            edit=edits.from_kept_file,
            settled=(HYBRID,),
            back=TO_HYBRID,
            takes_back=edits.keys_of_kraft_mode,
        ),
        Kind(
            "zk",
            BROKER,
            before=(node_mode.ZK_MIGRATION,),
            after=node_mode.ZK,
            gate="before_revert",
            edit=edits.out_of_migration_mode,
            settled=(REVERTING,),
            stays="it is in its earliest mode",
            back=TO_ZK,
        ),
        # Plain restarts, outside of a migration
        Kind("restart_broker", BROKER, _PLAIN_BROKER, KEEP, "restart", edits.change_nothing, stays=_UNCHANGED),
        Kind(
            "restart_controller", CONTROLLER, _PLAIN_CONTROLLER, KEEP, "restart", edits.change_nothing, stays=_UNCHANGED
        ),
        Kind(
            "upgrade_broker",
            BROKER,
            before=_PLAIN_BROKER,
            after=KEEP,
            gate="restart",
            edit=edits.release_of_broker,
            may_change=(kraft_config.PROTOCOL,),
            new_release=True,
        ),
        Kind(
            "upgrade_controller",
            CONTROLLER,
            before=_PLAIN_CONTROLLER,
            after=KEEP,
            gate="restart",
            edit=edits.release,
            new_release=True,
        ),
        Kind(
            "protocol_broker",
            BROKER,
            before=(node_mode.ZK,),
            after=KEEP,
            gate="restart",
            edit=edits.protocol,
            may_change=(kraft_config.PROTOCOL,),
        ),
        Kind(
            "zk_connect",
            BROKER,
            before=(node_mode.ZK,),
            after=KEEP,
            gate="restart",
            edit=edits.zookeeper_connect,
            may_change=("zookeeper.connect",),
        ),
        Kind(
            "dynamic_controller",
            CONTROLLER,
            before=_PLAIN_CONTROLLER,
            after=KEEP,
            gate="restart",
            edit=edits.dynamic_quorum,
            may_change=_QUORUM,
        ),
        Kind(
            "dynamic_broker",
            BROKER,
            before=(node_mode.KRAFT,),
            after=KEEP,
            gate="restart",
            edit=edits.dynamic_quorum,
            may_change=_QUORUM,
        ),
    )
}
ROLLING = tuple(name for name, kind in KINDS.items() if kind.before)
"""The kinds in which nodes are stopped, one batch after the other; new controllers are started together."""


def find_forward_kind(mode: str) -> Kind | None:
    """Return the forward kind that leads a node into a mode; None for `zk`, in which brokers begin."""
    forward = (kind for kind in KINDS.values() if not kind.is_plain and not kind.is_rollback)
    return next((kind for kind in forward if kind.after == mode), None)


def earlier_kinds(name: str) -> list[Kind]:
    """Return the forward kinds that a node of the same role makes before this one, in order."""
    names = list(KINDS)
    before = [KINDS[before_it] for before_it in names[: names.index(name)]]
    return [kind for kind in before if kind.role == KINDS[name].role and not kind.is_plain and not kind.is_rollback]


GATE, ROLL, START, OTHER = "gate", "roll", "start", "step"
"""Kinds of steps: a gate; nodes restarted one batch after the other; nodes started together; anything else."""


class Step(NamedTuple):
    """One step of a run. `name`: of its gate or kind of restart, or its own; `due`: phases in which it is the next to
    come or may be repeated; `later`: further phases in which it is still ahead; `back`: how far a rollback goes once it
    is done (None: none is possible)."""

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


def step_names_ahead(phase: str, target: str = "", due_alone: bool = False) -> list[str]:
    """Return the names of the steps that are ahead in a phase; `due_alone`: that can begin right now, which is all that
    check mode can show."""
    return [step.name for step in steps(target) if (phase in step.due if due_alone else step.ahead(phase))]
