# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Runs of zk_migrate.yml and zk_rollback.yml on simulated hosts: their tasks in order, with the same decisions."""

from __future__ import annotations

import re
from typing import Any, Callable, Collection, Dict, List, NamedTuple

from ansible_collections.quorumshift.kafka.plugins.module_utils.core.ensemble import (
    cut_host,
    ensemble_cut,
    ensemble_move,
    kafka_writes,
)
from ansible_collections.quorumshift.kafka.plugins.module_utils.core.ensemble.cut_host import CutError

from tools.cut_simulation.world import OBSERVER, Host, Process, Unreachable, World

MIGRATE, ROLLBACK, REHEARSE = "zk_migrate", "zk_rollback", "zk_migrate_rehearse"
DEADLINE_S, CHECK_MARGIN_S = 9.0, 2.0
PROMOTIONS = (ensemble_cut.PROMOTING, ensemble_cut.PROMOTED)


class Ended(Exception):
    """The run ends with a message. `command`: what it says to run next."""

    def __init__(self, text: str, command: str = MIGRATE, **more: Any) -> None:
        super().__init__(text)
        self.command, self.more = command, more


class Answer(NamedTuple):
    """A host's answer to a task: `how` is ok, failed or unreachable."""

    how: str
    value: Any


class Network:
    """The connections of one control node. `loss`: the probability that a task gets no answer."""

    def __init__(self, world: World, loss: float) -> None:
        self.world, self.loss = world, loss

    def everywhere(self, process: Process, programs: Dict[Host, Any]) -> None:
        """Run a program on each host, and give the run {host: Answer} once all answered or are unreachable."""
        world, answers = self.world, {}

        def done(host: Host, how: str, value: Any) -> None:
            if host.isolated:
                how, value = "unreachable", ""
            if host not in answers:
                answers[host] = Answer(how, value)
                if len(answers) == len(programs):
                    world.back(process, answers)

        for host, program in programs.items():
            self._begin(host, program, process, done)

    def _begin(self, host: Host, program: Any, run: Process, done: Callable) -> None:
        world, random = self.world, self.world.random
        lost = world.faults_left and random.random() < self.loss
        delay = 0.02 + random.random() * 0.2
        if world.faults_left and random.random() < 0.05:
            delay += random.random() * 5

        def ended(value: Any, error: Exception | None) -> None:
            how = "ok" if error is None else "unreachable" if isinstance(error, Unreachable) else "failed"
            if not lost:
                world.at(0.01 + random.random() * 0.1, done, host, how, value if error is None else str(error))

        def arrive() -> None:
            if not host.powered or host.isolated or (lost and random.random() < 0.5):
                world.at(random.random() * 3, done, host, "unreachable", "")
                return
            world.spawn(program, host, "module", ended, run.name)
            if lost:
                world.at(random.random() * 5, done, host, "unreachable", "")

        world.at(delay, arrive)


class Run:
    """One run of a playbook. `result`: None while it runs or when it died, else {code, command, text}."""

    def __init__(
        self,
        world: World,
        name: str,
        command: str,
        network: Network,
        forced: bool = False,
        dead: Collection[str] = (),
        cleaned: Collection[str] = (),
    ) -> None:
        self.world, self.name, self.network, self.forced = world, name, network, forced
        self.dead, self.cleaned = sorted(dead), sorted(cleaned)
        self.moves: Dict[Host, int] = {}
        self.living = [host for host in world.hosts if host.name not in self.dead]
        self.result: dict | None = None
        command, _space, accepted = command.partition(" ")
        self.accepted_zxid = int(accepted or 0)
        self.rehearses = command == REHEARSE
        self.cut_zxid = self.verified_zxid = 0
        steps = self.roll_back() if command == ROLLBACK else self.migrate()
        world.special = {**world.special, "everywhere": lambda _w, p, programs: network.everywhere(p, programs)}
        without = f" without {self.dead}" if self.dead else ""
        self.process = world.spawn(self._steps(steps), None, "run", None, f"{name} {command}{without}")

    def _steps(self, steps: Any) -> Any:
        try:
            yield from steps
            self.result = {"code": 0, "command": "", "text": ""}
        except Ended as ended:
            self.result = {"code": 2, "command": ended.command, "text": str(ended), **ended.more}
        self.world.say(f"{self.process.name} ended: {self.result}")
        if self.world.run_lock is self:
            self.world.run_lock = None

    def everywhere(self, program: Callable[[Host], Any], hosts: List[Host] | None = None) -> Any:
        chosen = self.living if hosts is None else hosts
        if not chosen:
            return {}
        return (yield ("everywhere", {host: program(host) for host in chosen}))

    def require(self, answers: Dict[Host, Answer]) -> None:
        bad = [(host, answer) for host, answer in answers.items() if answer.how != "ok"]
        if bad:
            host, answer = bad[0]
            raise Ended(f"{host.name}: {answer.how}: {answer.value}")

    # --- the playbooks

    def read(self) -> Any:
        if 2 * len(self.dead) >= len(self.world.hosts):
            raise Ended("the others are no majority")
        answers = yield from self.everywhere(lambda _host: read())
        self.require(answers)
        return {host: answer.value for host, answer in answers.items()}

    def lock(self) -> None:
        held = self.world.run_lock
        if held is not None and held is not self and not held.process.dead and not self.forced:
            raise Ended("another run holds the lock")
        self.world.run_lock = self

    def decide(self, found: Dict[Host, dict], direction: str) -> ensemble_move.Decision:
        decision = ensemble_move.decide(
            {host.name: server for host, server in found.items()}, direction, self.dead, self.cleaned
        )
        if decision.findings and direction != ensemble_move.NONE:
            finding = decision.findings[0]
            if decision.standing == ensemble_move.STRAY and not self.world.faults_left:
                self.world.violate(finding.seen)
            clean = "".join(re.findall(r"zk_migrate_clean_hosts=([\w,]+)", finding.do)).split(",")
            start = self.dead if finding.do.startswith("start ") else []
            raise Ended(finding.seen, ROLLBACK if ROLLBACK in finding.do else MIGRATE, clean=clean, start=start)
        for host in self.world.hosts:
            if host.name in self.dead and not host.is_dead and host.up and direction != ensemble_move.NONE:
                raise Ended(f"{host.name} answers")
        return decision

    def hosts(self, names: List[str]) -> List[Host]:
        return [host for host in self.world.hosts if host.name in names]

    def migrate(self) -> Any:
        found = yield from self.read()
        decision = self.decide(found, ensemble_move.FORWARD)
        if decision.standing != ensemble_move.JOIN and self.rehearses:
            raise Ended("there is no cut to rehearse any more")
        if decision.standing != ensemble_move.JOIN and decision.resume:
            hosts, promoted = self.hosts(decision.resume), decision.one_promoted
            self.require((yield from self.everywhere(lambda host: cut_host.resume(spec(host, "", promoted)), hosts)))
            answers = yield from self.everywhere(
                lambda host: ordered(found[host]["id"], "all", {}, (ensemble_cut.PROMOTED,), 120), hosts
            )
            self.require(answers)
        found = yield from self.read()
        decision = self.decide(found, ensemble_move.FORWARD)
        if decision.standing != ensemble_move.JOIN and self.rehearses:
            raise Ended("there is no cut to rehearse any more")
        self.moves = {host: server["moves"] for host, server in found.items()}
        self.lock()
        clean = self.hosts(decision.clean)
        self.require((yield from self.everywhere(lambda host: cut_host.clean(spec(host, "")), clean)))
        if decision.standing == ensemble_move.JOIN:
            left = self.hosts(decision.heal)
            self.require((yield from self.everywhere(lambda host: cut_host.heal({"reason": "left"}), left)))
            for host in self.living:
                self.require((yield from self.everywhere(lambda _host: join(), [host])))
            self.require((yield from self.everywhere(lambda host: cut_host.reserve({"moves": self.moves[host]}))))
            self.moves = {host: number + 1 for host, number in self.moves.items()}
            yield from self.roll(set(self.living))
            yield from self.cut()
        if self.rehearses:
            return
        for host in self.hosts(decision.add):
            joined = decision.promotion
            added = {**spec(host, joined["id"]), "zxids": {host.name: joined["last"]}}
            self.require((yield from self.everywhere(lambda _host, given=added: cut_host.add(given), [host])))
        found = yield from self.read()
        decision = self.decide(found, "none")
        if not decision.verify:
            if decision.standing != ensemble_move.SERVED:
                raise Ended("the destination does not serve")
            return
        cut_zxid = max(server["last"] or 0 for server in found.values())
        seen = len(self.world.source)
        if any(kind != "t" for kind in self.world.source[max(cut_zxid, self.accepted_zxid) : seen]):
            raise Ended("a client wrote to the source after the promotion", f"{MIGRATE} {seen}")
        yield ("sleep", 0.1)
        self.require((yield from self.everywhere(cut_host.verify)))
        self.cut_zxid, self.verified_zxid = max(cut_zxid, self.accepted_zxid), seen

    def roll(self, known: set) -> Any:
        """Restart the brokers with another connect string. They start only where ZooKeeper serves them."""
        if known == self.world.known:
            return
        for change in (self.world.known | known, known):
            yield ("sleep", self.world.random.random() * 1.5)
            if self.world.run_lock is not self:  # node_restart asks each broker's host for it
                raise Ended("another run took the lock")
            self.world.known = set(change)
        if known and not any(host.mode() == "observer" and host.is_open() for host in known):
            raise Ended("the brokers do not start")
        self.world.say(f"{self.name}: the brokers know {sorted(host.name for host in known) or 'the source'}")

    def require_known(self) -> None:
        """Do what zk_session_check does, and zk_cut_plan with the owners of ephemeral znodes."""
        if not self.world.known <= set(self.living):
            raise Ended("a broker does not use the destination alone")

    def cut(self) -> Any:
        found = yield from self.read()
        self.require_known()
        for host, server in found.items():
            if server["mode"] != "observer" or list(
                ensemble_cut.find_leftovers(host.name, server["state"], server["rules"], server["works"])
            ):
                raise Ended(f"{host.name} is not ready: {server}")
        try:
            yield from self._cut()
        except Ended as failed:
            reason = str(failed)
            if "unreachable" in reason and self.world.random.random() < 0.5:
                raise  # Ansible runs no rescue then
            yield from self.everywhere(lambda host: cut_host.heal({"reason": reason}))
            raise

    def _cut(self) -> Any:
        began = self.world.now
        self.require(
            (
                yield from self.everywhere(
                    lambda host: begun(
                        {
                            **spec(host, self.name, dead=self.dead),
                            "moves": self.moves[host],
                            "rehearsed": self.rehearses,
                        }
                    )
                )
            )
        )
        answers = yield from self.everywhere(lambda host: ordered(self.name, "cut", {}, (ensemble_cut.CUT,), 10))
        self.require(answers)
        last = {host.name: answer.value["last"] for host, answer in answers.items()}
        yield from self.check(last, DEADLINE_S - (self.world.now - began))
        if self.rehearses:
            healed = (ensemble_cut.HEALED,)
            self.require((yield from self.everywhere(lambda _host: ordered(self.name, "heal", {}, healed, 10))))
            return
        order = kafka_writes.sort_by_progress(last)
        first = ensemble_cut.choose_first(order, last, len(self.world.hosts))
        answers = yield from self.everywhere(
            lambda host: ordered(self.name, "promote", {"zxids": last, "first": first}, PROMOTIONS, 10)
        )
        self.require(answers)
        self.require(
            (yield from self.everywhere(lambda host: ordered(self.name, "all", {}, (ensemble_cut.PROMOTED,), 120)))
        )

    def check(self, last: Dict[str, int], left_s: float) -> Any:
        """Do what zk_cut_check does."""
        until = self.world.now + left_s - CHECK_MARGIN_S
        yield ("sleep", 0.05)
        source = list(self.world.source)
        cut = len(source)
        yield ("sleep", 0.05)
        least = min(last.values())
        writes = [
            kafka_writes.Write(zxid, 0, 0, {"/kafka": (kind,)}, False)
            for zxid, kind in enumerate(self.world.source, 1)
            if zxid > least and kind != "t"
        ]
        lacking = kafka_writes.find_lacking(writes, last, cut, len(self.world.source))
        if self.world.now >= until:
            raise Ended("the check came too late")
        if not all(of.is_complete for of in lacking.values()):
            raise Ended("a host lacks writes")

    def roll_back(self) -> Any:
        found = yield from self.read()
        decision = self.decide(found, ensemble_move.BACK)
        self.lock()
        kept = self.hosts([*decision.suspend, *decision.take_back])
        back = {"reason": "rollback", "rolls_back": True}
        self.require((yield from self.everywhere(lambda _host: cut_host.suspend(back), kept)))
        others = [host for host, server in found.items() if server["state"] not in ensemble_cut.ACCEPTED]
        self.require((yield from self.everywhere(lambda _host: cut_host.heal(back), others)))
        found = yield from self.read()
        decision = self.decide(found, ensemble_move.BACK)
        if decision.going_on:
            raise Ended("a host may still be promoted", ROLLBACK)
        accepted = self.hosts(decision.take_back)
        self.require(
            (yield from self.everywhere(lambda host: cut_host.take_back(spec(host, "", dead=self.dead)), accepted))
        )
        for host in self.living:
            self.require((yield from self.everywhere(lambda _host: join(), [host])))
        yield from self.roll(set())


def spec(host: Host, cut_id: str, one_promoted: bool = False, dead: Collection[str] = ()) -> dict:
    return {
        "id": cut_id,
        "host": host.name,
        "peers": len(host.world.hosts) - 1,
        "deadline_s": DEADLINE_S,
        "one_promoted": one_promoted,
        "dead": dict.fromkeys(dead, 0),
    }


def read() -> Any:
    record = yield ("record",)
    order = (yield ("order",)) or {}
    state = yield ("state",)
    return {
        "id": record.get("id"),
        "state": state,
        "dead": record.get("dead") or [],
        "started": record.get("started"),
        "opens": bool(record.get("id")) and order.get("id") == record["id"] and order.get("name") == "all",
        "written": (yield from cut_host.what_was_written({})) if state == ensemble_cut.SUSPENDED else "",
        "moves": (yield ("moves",)),
        "taken_back_without": (yield ("taken_back_without",)),
        "clean": (yield from cut_host.is_clean()),
        "mode": (yield ("mode",)),
        "rules": (yield ("rules_left", ensemble_cut.CUT_COMMENT, ensemble_cut.FENCE_COMMENT)),
        "works": (yield ("worker_runs",)),
        "last": record.get("last"),
        "verified": (yield ("verified",)),
    }


def begun(given: dict) -> Any:
    yield from cut_host.begin(given)
    seen = yield from cut_host.await_state((ensemble_cut.FENCED, ensemble_cut.HEALED), 10)
    if seen != ensemble_cut.FENCED:
        raise CutError(f"state {seen}")


def ordered(cut_id: str, name: str, more: dict, good: tuple, seconds: float) -> Any:
    """Do what ensemble_cut.order_script does."""
    yield ("write_order", {"id": cut_id, "name": name, **more})
    ends = (*good, ensemble_cut.HEALED, ensemble_cut.SUSPENDED)
    seen = yield from cut_host.await_state(ends, seconds)
    record = yield ("record",)
    if record.get("id") != cut_id or seen not in good:
        raise CutError(f"state {seen}: {record.get('reason')}")
    return record


def join() -> Any:
    """Do what zk_observer_join does."""
    if (yield ("next_config_of",)) != OBSERVER:
        if (yield ("has_data",)):  # zk_observer._check_data
            raise CutError("this host has data, and is no observer of the source")
        yield ("stop_server",)
        yield ("write_observer_config",)
    yield ("start_server",)
    deadline = (yield ("now",)) + 30
    while (yield ("mode",)) != "observer":
        if (yield ("now",)) > deadline:
            raise CutError("it does not join")
        yield ("sleep", 0.5)
