# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The safeguards of a cut, each as a change that removes it. The simulation must notice every one of them."""

from __future__ import annotations

from typing import Any, Callable, Dict, Iterator

from ansible_collections.quorumshift.kafka.plugins.module_utils.core.ensemble import cut_host, ensemble_move
from ansible_collections.quorumshift.kafka.plugins.module_utils.core.ensemble.ensemble_cut import PROMOTED, PROMOTING

from tools.cut_simulation import schedule
from tools.cut_simulation.runs import Run
from tools.cut_simulation.world import Host

Patch = Callable[[Any, str, Any], None]
Steps = Iterator[Any]


def without_the_second_fence(patch: Patch) -> None:
    patch(Host, "block", lambda host: None)
    patch(Host, "blocked", lambda host: True)


def without_the_check_of_the_rules(patch: Patch) -> None:
    """The acceptance of a promotion requires neither rules nor the same files."""

    def accept(worker, order):
        if (yield ("state",)) != "cut":
            return "late"
        worker.record["promotion"] = {"zxids": order["zxids"], "first": order["first"]}
        yield from worker.step("promotion accepted")
        yield ("set_state", PROMOTING)
        return ""

    patch(cut_host.Worker, "accept", accept)


def with_an_open_port_as_proof(patch: Patch) -> None:
    """A client port that answers as leader or follower proves that all hosts were promoted."""

    def serves(host):
        serving = [other for other in host.world.hosts if other.synced and other is not host and not other.rules_by]
        return 99 if serving else 0

    patch(Host, "followers_of_another", serves)
    without_the_second_fence(patch)


def with_the_fence_removed_first(patch: Patch) -> None:
    """The fence is removed before the state says so."""

    def open_when_all(worker):
        while (yield ("mode",)) not in cut_host.SERVING or not (yield from worker.all_promoted((yield ("mode",)))):
            yield from worker.pause()
        yield ("remove", *cut_host.ALL_RULES)
        yield from cut_host.change_state((PROMOTING,), PROMOTED)
        yield from cut_host.remove_all()

    patch(cut_host.Worker, "open_when_all", open_when_all)


def with_data_moved_while_a_promotion_goes_on(patch: Patch) -> None:
    """A rollback undoes one host's promotion while another one may still be opened."""

    def suspend(_spec: Any):
        yield ("kill_worker",)

    def take_back(_spec: Any):
        yield ("kill_worker",)
        if (yield ("state",)) != PROMOTING:
            raise cut_host.CutError("not promoting")
        yield ("stop_server",)
        yield ("move_data",)
        yield from cut_host.change_state((PROMOTING,), "healed")
        yield ("heal",)

    def decide(*given: Any, real=ensemble_move.decide):
        decision = real(*given)
        return decision._replace(take_back=decision.suspend, suspend=[], going_on=[])

    patch(cut_host, "suspend", suspend)
    patch(cut_host, "take_back", take_back)
    patch(ensemble_move, "decide", decide)


def without_a_check_after_the_stop(patch: Patch) -> None:
    patch(cut_host.Worker, "suspend", lambda worker, reason: iter(()))


def with_a_heal_that_does_not_look(patch: Patch) -> None:
    """heal.sh says healed, whatever iptables said."""

    def steps():
        if not (yield ("lock_for", 2)):
            yield ("kill_worker_now",)
            yield ("lock",)
        if (yield ("state",)) in ("begun", "fenced", "cut", "healed"):
            yield ("try_remove", *cut_host.ALL_RULES)
            yield ("set_state", "healed")

    patch(cut_host, "heal_script_steps", steps)


def without_verification(patch: Patch) -> None:
    """A run that finds the destination promoted checks nothing."""

    def decide(*given: Any, real=ensemble_move.decide):
        decision = real(*given)
        return decision._replace(verify=False)

    patch(ensemble_move, "decide", decide)


def with_a_part_taken_for_all(patch: Patch) -> None:
    """A run goes on with a promotion that only a part of the hosts accepted."""

    def standing(states: Any, unknown: bool = False):
        accepted = [state for state in states.values() if state in (PROMOTING, PROMOTED)]
        return ensemble_move.FINISH if accepted else ensemble_move.JOIN

    patch(ensemble_move, "locate_move", standing)


def with_an_unknown_host_taken_for_promoted(patch: Patch) -> None:
    """A host that is dead counts as one that accepted its promotion."""

    def standing(states: Any, unknown: bool = False, real=ensemble_move.locate_move):
        return real(states)

    patch(ensemble_move, "locate_move", standing)


def without_a_look_at_the_log(patch: Patch) -> None:
    """A promotion that a dead host may have accepted is taken back, whatever the others' logs show."""

    def written(host, by_log_alone=False):
        return ""

    patch(Host, "written", written)


def with_a_dead_host_that_brokers_know(patch: Patch) -> None:
    """The brokers' connect string keeps the dead host."""

    def roll(run, known):
        return real(run, set(run.world.hosts) if known else known)

    real = Run.roll
    patch(Run, "roll", roll)
    patch(Run, "require_known", lambda run: None)


def with_old_files_that_return(patch: Patch) -> None:
    """A host that was left out as dead is a part of the ensemble again with what it had."""
    patch(ensemble_move, "_find_returned", lambda read: [])


def noticed(safeguard: Callable[[Patch], None], schedules: int) -> int | None:
    """Return the first seed whose schedule breaks an invariant without a safeguard, None if none of them does."""
    undo: list[tuple[Any, str, Any]] = []

    def patch(owner: Any, name: str, value: Any) -> None:
        undo.append((owner, name, getattr(owner, name)))
        setattr(owner, name, value)

    safeguard(patch)
    try:
        return next((seed for seed in range(schedules) if schedule.run(seed).problem), None)
    finally:
        for owner, name, value in reversed(undo):
            setattr(owner, name, value)


SAFEGUARDS: Dict[str, Callable[[Patch], None]] = {
    safeguard.__name__.replace("_", " "): safeguard
    for safeguard in (
        without_the_second_fence,
        without_the_check_of_the_rules,
        with_an_open_port_as_proof,
        with_the_fence_removed_first,
        with_data_moved_while_a_promotion_goes_on,
        without_a_check_after_the_stop,
        with_a_heal_that_does_not_look,
        without_verification,
        with_a_part_taken_for_all,
        with_an_unknown_host_taken_for_promoted,
        without_a_look_at_the_log,
        with_a_dead_host_that_brokers_know,
        with_old_files_that_return,
    )
}
