# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a destination host does in a cut: its worker, and the modules' steps. Pure.

Each function here is a generator. It yields an effect, a tuple of the name and arguments of a method of `Effects`, and
gets back what the method returned, or the exception that it raised. effects carries effects out on a real host;
the simulation in tools/cut_simulation does so on hosts that crash at any of them.
"""

from __future__ import annotations

from typing import Any, Dict, Generator, Mapping, Sequence

from ansible_collections.quorumshift.kafka.plugins.module_utils.core.ensemble import ensemble_cut
from ansible_collections.quorumshift.kafka.plugins.module_utils.core.ensemble.ensemble_cut import (
    BEGUN,
    CUT,
    CUT_COMMENT,
    FENCE_COMMENT,
    FENCED,
    HEALED,
    LEAST_LEFT_S,
    PROMOTED,
    PROMOTING,
    SUSPENDED,
    UNDONE_BY_ITSELF,
)

NONE = "none"
POLL_S, WAIT_S = 0.02, 1.0
NOT_SERVING_S = 5.0
HURRY_S = 120.0  # sessions are lost by then: a promotion that goes on later fills no server's log with questions
FENCE_S = 0.2  # between two looks at the fences
FIRST_S = 60.0  # at most: the most advanced may be down, and the others elect without it: all have Kafka's writes
GONE_S = 3.0  # after servers that were there are gone
RESTART_S = 5.0  # between two starts of a server that ended
ADD_S = 120.0
OBSERVER_S = 60.0  # after a rehearsed cut was healed
OBSERVES = "observer again"
SERVING = ("leader", "follower")
ALL_RULES = (CUT_COMMENT, FENCE_COMMENT)

Steps = Generator[tuple, Any, Any]


class CutError(Exception):
    """The cut cannot go on; the text says why and what to do."""


def run(steps: Steps, effects: Any) -> Any:
    """Carry out all effects of a generator on a real host; return its result. Raises what it raises."""
    result: Any = None
    error: Exception | None = None
    while True:
        try:
            name, *arguments = steps.send(result) if error is None else steps.throw(error)
        except StopIteration as end:
            return end.value
        result, error = None, None
        try:
            result = getattr(effects, name)(*arguments)
        except Exception as caught:  # the generator decides
            error = caught


def run_locked(steps: Steps) -> Steps:
    """Take these steps under the lock that heal.sh takes as well."""
    yield ("lock",)
    try:
        result = yield from steps
    except Exception:
        yield ("unlock",)
        raise
    yield ("unlock",)
    return result


def change_state(before: Sequence[str], after: str) -> Steps:
    """Change the state if it is one of `before`; return whether it was."""

    def work() -> Steps:
        if (yield ("state",)) not in before:
            return False
        yield ("set_state", after)
        return True

    return (yield from run_locked(work()))


class Worker:
    """One cut on one host. `spec`: {id, host, peers (number), deadline (uptime), resumed, rehearsed}."""

    def __init__(self, spec: Mapping[str, Any]) -> None:
        self.spec = spec
        self.record: Dict[str, Any] = {}
        self.began = self.fenced_at = 0.0

    def steps(self) -> Steps:
        """Return the work: the entry of the transient unit."""
        self.began = yield ("now",)
        self.record = {"steps": [], "reason": "", "brokers_lost": [], **(yield ("record",))}
        try:
            yield from self._work()
        except Exception as error:  # the operator reads it; what is not promoted heals itself
            yield from self.note(reason=f"{type(error).__name__}: {error}")
            if (yield ("state",)) in UNDONE_BY_ITSELF:
                yield ("heal",)

    def _work(self) -> Steps:
        yield ("watch",)
        if self.spec.get("resumed"):
            yield from self.promote(self.record.get("promotion") or {})
            return
        if not (yield from run_locked(self.fence())):
            return
        if (yield from self.await_order("cut")) is None or not (yield from run_locked(self.cut())):
            return
        yield from self.await_not_serving()
        if not (yield from change_state((FENCED,), CUT)):
            return
        got = yield from self.await_order("promote")
        if got is None:
            if self.spec.get("rehearsed"):
                yield from self.await_observer()
            return
        refused = yield from run_locked(self.accept(got))
        if refused:
            yield from self.heal(refused)
        else:
            yield from self.promote(got)

    def accept(self, order: Mapping[str, Any]) -> Steps:
        """Accept the promotion; return why not, '' if it was accepted.

        Fence and cut may be gone since they were made, and the server may have processed more since. From here on the
        host undoes nothing by itself, so both are required now. The second fence holds where the filter table is loaded
        anew.
        """
        if (yield ("state",)) != CUT:
            return "the deadline passed when the order to promote came"
        if self.spec.get("rehearsed"):
            return "this cut is a rehearsal, and no server is promoted in one"
        yield ("block",)
        if (yield ("missing", "fence", "cut")):
            return "the firewall rules of the cut are gone: something loaded the filter table anew"
        mode = yield ("mode",)
        if mode != "":
            return f"the server {f'serves as {mode}' if mode else 'gives no answer'}, though it was cut off"
        last, expected = (yield ("last",)), (order.get("zxids") or {}).get(self.spec["host"])
        if not expected == self.record["last"] == last:
            return f"the check was of zxid {expected}, and the files lead to {last} now"
        self.record["promotion"] = {key: order[key] for key in ("zxids", "first", "first_s") if key in order}
        yield from self.step("promotion accepted")
        yield ("set_state", PROMOTING)
        return ""

    def fence(self) -> Steps:
        if (yield ("state",)) != BEGUN:
            return False
        yield ("insert", "fence")
        yield from self.step("fenced")
        yield ("set_state", FENCED)
        return True

    def cut(self) -> Steps:
        if (yield ("state",)) != FENCED:
            return False
        yield ("insert", "cut")
        yield from self.step("cut")
        return True

    def await_not_serving(self) -> Steps:
        """Wait until the server serves no more and its files have all that it had."""
        deadline = (yield ("now",)) + NOT_SERVING_S
        while (yield ("mode",)) != "":  # a server that gives no answer may still serve
            if (yield ("now",)) > deadline:
                raise CutError(f"the server still serves {NOT_SERVING_S:.0f} s after the cut (QS-ZKMOVE-014)")
            yield ("sleep", POLL_S)
        yield from self.step("not serving")
        last = yield ("last",)
        while True:  # the server writes what it has in its queue before it looks for a leader
            yield ("sleep", 0.05)
            again = yield ("last",)
            if again == last:
                break
            last = again
        lost = yield ("look",)  # a broker that was lost just before may not be noticed yet
        yield from self.note(last=last, brokers_lost=lost)
        yield from self.step("read")

    def await_observer(self) -> Steps:
        """Note when the server serves as an observer of the source again."""
        deadline = (yield ("now",)) + OBSERVER_S
        while (yield ("mode",)) != "observer":
            if (yield ("now",)) > deadline:
                yield from self.wait_for(f"the server is no observer {OBSERVER_S:.0f} s after the cut was healed")
                return
            yield ("sleep", POLL_S)
        yield from self.step(OBSERVES)

    def await_order(self, name: str) -> Steps:
        """Return the order of this name; None once the host is healed."""
        while True:
            got = (yield ("order",)) or {}
            if got.get("id") == self.spec["id"]:
                if got["name"] == "heal":
                    yield from self.heal(got.get("reason") or "the run ordered it")
                    return None
                if got["name"] == name:
                    left = self.spec["deadline"] - (yield ("now",))
                    if name == "promote" and left < LEAST_LEFT_S:
                        yield from self.heal(f"the order to promote came {left:.1f} s before the deadline")
                        return None
                    return got
            if (yield ("state",)) == HEALED:
                yield from self.note(reason=self.record["reason"] or "the deadline passed without an order")
                yield from self.step("healed")
                return None
            if self.spec["deadline"] < (yield ("now",)):
                yield from self.heal("the deadline passed without an order")
                return None
            lost = yield ("lost",)
            if lost != self.record["brokers_lost"]:
                yield from self.note(brokers_lost=lost)
            yield ("sleep", POLL_S)

    def heal(self, reason: str) -> Steps:
        yield from self.note(reason=reason)
        yield ("heal",)
        yield from self.step("healed")

    def promote(self, order: Mapping[str, Any]) -> Steps:
        """Make the server a voter, and open its client port once the whole ensemble was promoted."""
        host = self.spec["host"]
        if not (yield from run_locked(self.write_config())) or not (yield from self.is_fenced()):
            return
        if (yield ("mode",)) not in SERVING:
            yield ("stop_server",)
            yield from self.step("stopped")
            expected = (order.get("zxids") or {}).get(host)
            last = yield ("last",)
            if not self.record.get("started") and last != expected:
                yield from self.suspend(
                    f"the files lead to {last} after the stop, and the check was of {expected}: the server was no "
                    "longer cut off from the source"
                )
                return
            if host not in (order.get("first") or []) and not (yield from self.await_first(order)):
                return
            yield from self.note(started=True)
            if not (yield from self.is_fenced()):
                return
            yield ("start_server",)
            yield from self.step("started")
        yield from self.open_when_all()

    def await_first(self, order: Mapping[str, Any]) -> Steps:
        """Wait until those that start first have a leader; return whether the promotion still goes on.

        The wait ends as well where they cannot elect: one of them is down. What this host has is known to be safe: its
        files lead to the zxid of the check, and so have all of Kafka's writes.
        """
        began = yield ("now",)
        bound = min(float(order.get("first_s") or FIRST_S), FIRST_S)
        majority = (self.spec["peers"] + 1) // 2 + 1
        seen, gone_at = False, 0.0
        while not (yield ("leader_listens",)):
            if (yield ("state",)) != PROMOTING:
                return False
            now = yield ("now",)
            there = yield ("electing",)
            if there >= majority:
                seen, gone_at = True, 0.0
            elif seen and not gone_at:
                gone_at = now
            if now - began > bound or (gone_at and now - gone_at > GONE_S):
                yield from self.wait_for(
                    f"no leader after {now - began:.0f} s, and {there} of {self.spec['peers']} other servers listen at "
                    "their election ports. This host starts, so that it can elect with them"
                )
                break
            yield from self.pause()
        return (yield ("state",)) == PROMOTING

    def wait_for(self, text: str) -> Steps:
        """Note what this host waits for, as it was seen last."""
        if self.record.get("waits") != text:
            yield from self.note(waits=text)

    def write_config(self) -> Steps:
        """Write a voter's configuration if the promotion is under way: a rollback may have undone it meanwhile."""
        if (yield ("state",)) != PROMOTING:
            return False
        yield ("write_config",)
        return True

    def make_fences(self, kind: str | None) -> Steps:
        """Make the fences again if the promotion is under way; return whether it is."""
        if (yield ("state",)) != PROMOTING:
            return False
        yield ("block",)
        if kind:
            yield ("insert", kind)
        return True

    def is_fenced(self) -> Steps:
        """Return whether no client can have used this server. Missing rules of both fences are made again."""
        missing, blocked = (yield ("missing", "fence")), (yield ("blocked",))
        self.fenced_at = yield ("now",)
        if blocked and not missing:
            return True
        active = yield ("server_active",)
        failed = ""
        try:
            if not (yield from run_locked(self.make_fences("fence" if missing else None))):
                return False
        except CutError as error:
            failed = str(error)
        if missing and active and (not blocked or self.spec.get("has_broker")):
            self.record["exposed"] = True
            yield from self.suspend(
                "the fence was missing while the server ran: something loaded the filter table anew. Clients may have "
                "used this server"
            )
            return False
        yield from self.note(reason=f"the fence was missing, and was made again {failed}".strip())
        return True

    def suspend(self, reason: str) -> Steps:
        """Stop the server for good: the promotion goes on only by order of a run."""
        yield from self.note(reason=reason)
        if (yield from change_state((PROMOTING,), SUSPENDED)):
            yield ("stop_server",)
            yield from self.step("suspended")

    def open_when_all(self) -> Steps:
        """Open the client port once all destination hosts are known to be promoted; then remove the cut."""
        served, started = False, (yield ("now",))
        while True:
            if (yield ("state",)) != PROMOTING:
                return
            if (yield ("now",)) - self.fenced_at > FENCE_S and not (yield from self.is_fenced()):
                return
            mode = yield ("mode",)
            if mode in SERVING:
                if not served:
                    yield from self.note(mode=mode)
                    yield from self.step("serving")
                    served = True
                lost = yield ("lost",)
                if lost != self.record["brokers_lost"]:
                    yield from self.note(brokers_lost=lost)
                if (yield from self.all_promoted(mode)):
                    break
                yield from self.wait_for(f"it serves as {mode}, and does not know that all hosts accepted")
            elif (yield ("now",)) - started > RESTART_S:
                if (yield ("server_active",)):
                    there = yield ("electing",)
                    listen = f"{there} of {self.spec['peers']} other servers listen at their election ports"
                    answers = "gives no answer" if mode is None else "finds no leader"
                    yield from self.wait_for(f"its server runs and {answers}; {listen}")
                else:
                    yield from self.wait_for("its server does not run, though it was started: see its log")
                    yield ("start_server",)
                    started = yield ("now",)
            yield from self.pause()
        # First the state: a reboot must not fence a server that Kafka wrote to, nor a rollback take it back
        if (yield from change_state((PROMOTING,), PROMOTED)):
            self.record["waits"] = ""
            yield from self.step("opened")
            yield from remove_all()
            yield from self.step("promoted")

    def pause(self) -> Steps:
        waited = (yield ("now",)) - self.began
        yield ("sleep", POLL_S if waited < HURRY_S else WAIT_S)

    def all_promoted(self, mode: str) -> Steps:
        got = (yield ("order",)) or {}
        if got.get("id") == self.spec["id"] and got["name"] == "all":
            return True
        if self.record.get("dead"):  # one of them may be back and follow in place of a host that did not accept
            return False
        needed = self.spec["peers"]
        if mode == "leader":
            return (yield ("followers",)) >= needed
        # An open client port alone proves nothing: a reload of the filter table opens it too
        return (yield ("followers_of_another",)) >= needed

    def step(self, name: str) -> Steps:
        self.record["steps"].append({"name": name, "at": (yield ("clock",))})
        yield from self.note()

    def note(self, **values: Any) -> Steps:
        self.record.update(values)
        yield ("write_record", self.record)


def begin(spec: Mapping[str, Any]) -> Steps:
    """Arm the dead man's switch, and start the worker."""
    if (yield ("worker_runs",)):
        seen = yield ("state",)
        if seen != HEALED:
            raise CutError(
                f"a worker runs on this host in state {seen}. Wait until it ends, and run again (QS-ZKMOVE-014)"
            )
        yield ("kill_worker",)  # it hung while the timer healed the host, and has nothing left to do
    if (yield ("state",)) in UNDONE_BY_ITSELF:  # a reboot took the rules, the worker and the timer
        yield ("heal",)
    dead = sorted(spec.get("dead") or ())
    outlived = sorted(set((yield ("taken_back_without",))) & set(dead))
    if outlived:
        raise CutError(
            f"{', '.join(outlived)} may have accepted a promotion that was taken back. Nothing was "
            "changed (QS-ZKMOVE-007)"
        )

    def started() -> Steps:
        yield from require_moves(spec)
        if (yield ("state",)) not in (NONE, HEALED):
            return False
        yield ("set_state", BEGUN)
        return True

    if not (yield from run_locked(started())):
        raise CutError(f"this host is in state {(yield ('state',))}. Nothing was changed (QS-ZKMOVE-014)")
    yield ("remove_order",)
    yield ("set_taken_back_without", [])
    yield ("write_scripts",)
    reached = yield ("reached",)
    record: Dict[str, Any] = {"id": spec["id"], "steps": [], "reason": "", "last": None, "brokers_lost": []}
    record["dead"] = dead
    record["source_snapshots"] = list(spec.get("source_snapshots") or ())
    record["rehearsed"] = bool(spec.get("rehearsed"))
    yield ("write_record", {**record, "brokers_watched": reached})
    yield ("add_drop_in",)
    deadline = (yield ("now",)) + spec["deadline_s"]
    yield ("arm", spec["deadline_s"])
    yield ("start_worker", {**spec, "deadline": deadline, "reached": reached})


def remove_all() -> Steps:
    """Remove all that keeps clients and source away from a server that was promoted; the rules last, since they show a
    run that this has not ended."""
    yield ("disarm",)
    yield ("remove_drop_in",)
    while True:
        try:
            yield ("remove", *ALL_RULES)
            return
        except CutError:
            yield ("sleep", WAIT_S)


def resume(spec: Mapping[str, Any]) -> Steps:
    """Go on with a promotion that all hosts accepted. A suspended host goes on only if another one was promoted.

    What a suspended server has is the destination's if it was started as a voter, and else is moved away: it has more
    than the check saw, and gets all from the leader.
    """
    yield ("kill_worker",)
    record = yield ("record",)
    seen = yield ("state",)
    if seen == PROMOTED:
        yield from remove_all()
        return
    if seen == SUSPENDED:
        if not spec["one_promoted"]:
            raise CutError(
                "this host was suspended, and no other one was promoted: run "
                "quorumshift.kafka.zk_rollback (QS-ZKMOVE-015)"
            )
        yield ("stop_server",)
        if not record.get("started"):
            yield ("move_data",)
            yield ("write_record", {**record, "started": True})
        yield from change_state((SUSPENDED,), PROMOTING)
    yield ("start_worker", {**spec, "id": record.get("id"), "deadline": 0, "resumed": True})


def suspend(spec: Mapping[str, Any]) -> Steps:
    """Keep a promotion from going on: no worker, and no server that another one could count among its followers."""
    yield from note_rollback(spec)
    yield ("kill_worker",)
    yield from change_state((PROMOTING,), SUSPENDED)
    if (yield ("state",)) == SUSPENDED:
        yield ("stop_server",)


def heal(spec: Mapping[str, Any]) -> Steps:
    """Undo cut and fence on a host that was not promoted."""
    yield from note_rollback(spec)
    seen = yield ("state",)
    if seen in ensemble_cut.ACCEPTED:
        raise CutError(
            f"this host accepted its promotion (state {seen}), so that its part of the cut stays (QS-ZKMOVE-015)"
        )
    if (yield ("worker_runs",)):
        record = yield ("record",)
        yield ("write_order", {"id": record.get("id") or "", "name": "heal", "reason": spec.get("reason", "")})
        yield from await_state((HEALED,), 2.0)
    yield ("heal",)
    if (yield ("rules_left", *ALL_RULES)):
        raise CutError("firewall rules of the cut are left (QS-ZKMOVE-015)")


def require_moves(spec: Mapping[str, Any]) -> Steps:
    """Require that no other run began to move brokers since this one read the host: they may use other servers now."""
    if spec.get("moves") not in (None, (yield ("moves",))):
        raise CutError(
            "another run began to move brokers after this one read this host. Nothing was changed (QS-ZKMOVE-014)"
        )


def reserve(spec: Mapping[str, Any]) -> Steps:
    """Count this run, which is about to restart brokers. A run that read this host before begins no cut any more."""

    def work() -> Steps:
        if (yield ("state",)) not in (NONE, HEALED):
            raise CutError(
                f"a cut is under way on this host (state {(yield ('state',))}). Nothing was changed (QS-ZKMOVE-014)"
            )
        yield from require_moves(spec)
        yield ("set_moves", (yield ("moves",)) + 1)

    if (yield ("state",)) in UNDONE_BY_ITSELF and not (yield ("worker_runs",)):  # see `begin`
        yield ("heal",)
    yield from run_locked(work())


def note_rollback(spec: Mapping[str, Any]) -> Steps:
    """Count a rollback, like `reserve` in any state."""
    if spec.get("rolls_back"):
        yield ("set_moves", (yield ("moves",)) + 1)


def await_state(wanted: Sequence[str], seconds: float) -> Steps:
    """Wait until the state is one of `wanted`; return the state."""
    deadline = (yield ("now",)) + seconds
    while True:
        seen = yield ("state",)
        if seen in wanted or (yield ("now",)) >= deadline:
            return seen
        yield ("sleep", POLL_S)


def take_back(spec: Mapping[str, Any]) -> Steps:
    """Undo a promotion that was suspended on all hosts; return where the data was moved, '' if there was none.

    Its data is of an ensemble of its own now, which must not join the source again: it would keep what the source does
    not have (docs, rollback). A host that is dead may have accepted this promotion too, and have served Kafka. Then the
    log here must show that Kafka wrote nothing, and the host is noted: it must not return with its data.
    """
    yield ("kill_worker",)
    seen = yield ("state",)
    if seen != SUSPENDED:
        raise CutError(
            f"this host is in state {seen}, not {SUSPENDED}. Run quorumshift.kafka.zk_rollback again (QS-ZKMOVE-015)"
        )
    yield ("stop_server",)
    record = yield ("record",)
    unknown = sorted(set(spec.get("dead") or ()) - set(record.get("dead") or ()))
    written = yield ("written", bool(unknown))
    if written:
        raise CutError(
            f"Kafka wrote to this server since its promotion: {written}. There is no rollback to the source without "
            "loss (QS-ZKMOVE-018)"
        )
    if unknown:
        yield ("set_taken_back_without", unknown)
    # First: without its fences, it must not start as a voter beside a dead host that returns
    yield ("restore_config",)
    moved = yield ("move_data",)
    yield from change_state((SUSPENDED,), HEALED)
    yield ("heal",)
    return moved


def add(spec: Mapping[str, Any]) -> Steps:
    """Make an empty server a voter of the ensemble that serves, which was promoted without it.

    It is a part of that promotion before it starts, so that a run that ends here leaves a server that is down, and no
    host that is there with data of unknown origin. It is verified once it follows.
    """
    if not (yield from is_clean()):
        raise CutError(
            "this host is not clean: its server runs or has data, or the host has a state of a cut (QS-ZKMOVE-007)"
        )
    record: Dict[str, Any] = {"id": spec["id"], "steps": [], "reason": "", "brokers_lost": [], "dead": []}
    yield ("write_config",)
    yield ("write_myid",)
    yield ("write_record", {**record, "last": (spec.get("zxids") or {}).get(spec["host"])})
    yield ("set_state", PROMOTED)
    yield ("start_server",)
    until = (yield ("now",)) + ADD_S
    while (yield ("mode",)) not in SERVING:
        if (yield ("now",)) > until:
            raise CutError(f"the server does not follow the leader {ADD_S:.0f} s after its start (QS-ZKMOVE-007)")
        yield ("sleep", WAIT_S)


def clean(_spec: Mapping[str, Any]) -> Steps:
    """Leave nothing of a cut on a host that returned after it was named dead; return where its data was moved.

    The state goes last: until then, another run finds the host as it was.
    """
    yield ("kill_worker",)
    yield ("stop_server",)
    moved = yield ("move_data",)
    yield from remove_all()
    yield ("forget",)
    return moved


def is_clean() -> Steps:
    """Return whether this host has nothing of a cut, and its server neither runs nor has data."""
    if (yield ("state",)) != NONE or (yield ("server_active",)):
        return False
    return not (yield ("has_data",))


def what_was_written(_spec: Mapping[str, Any]) -> Steps:
    """Return what Kafka wrote to this server since its promotion, by its log alone."""
    return (yield ("written", True))


def verify(_spec: Mapping[str, Any]) -> Steps:
    """Note that a run has verified the destination: no write of Kafka is missing on it."""
    seen = yield ("state",)
    if seen != PROMOTED:
        raise CutError(f"this host is in state {seen}, not {PROMOTED} (QS-ZKMOVE-015)")
    yield from remove_all()  # a worker that was killed may have left the drop-in
    yield ("set_verified",)


def heal_script_steps() -> Steps:
    """Return the model of heal.sh (ensemble_cut.heal_script): its exit code."""
    if not (yield ("lock_for", ensemble_cut.LOCK_S)):
        yield ("kill_worker_now",)
        if not (yield ("lock_for", ensemble_cut.HEAL_TRIES)):
            return 1
    if (yield ("state",)) not in (*UNDONE_BY_ITSELF, HEALED):
        return 0
    left = ensemble_cut.HEAL_TRIES
    while not (yield ("try_remove", *ALL_RULES)):
        left -= 1
        if left <= 0:
            return 1
        yield ("sleep", 1)
    yield ("remove_drop_in",)
    yield ("set_state", HEALED)
    return 0


def fence_script_steps() -> Steps:
    """Return the model of fence.sh (ensemble_cut.fence_script): its exit code."""
    seen = yield ("state",)
    if seen == SUSPENDED:
        return 1
    if seen == PROMOTING:
        try:
            if (yield ("missing", "fence")):
                yield ("insert", "fence")
            yield ("block",)
        except CutError:
            return 1
    return 0
