# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The cases of a scenario, and their results."""

from __future__ import annotations

import fcntl
import hashlib
import itertools
import json
import os
import random
import shutil
import sys
import time
import traceback
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, NamedTuple

from tools.failure_proof import boundary, engine, modules, scenarios, verdict, warm, workers
from tools.failure_proof.boundary import KILLED, KINDS, UNREACHABLE, UNREACHABLE_AFTER, WORKER_LOST, Key
from tools.failure_proof.engine import Snapshot, Spawner
from tools.failure_proof.scenarios import Scenario
from tools.failure_proof.world import World

DIRECTORY = engine.ROOT / ".build" / "failure-proof"
WORLDS, KNOWN = DIRECTORY / "worlds", DIRECTORY / "known"
ALL_RESULTS = engine.ROOT / "build" / "failure-proof" / "run" / "cases.jsonl"
NO_FAILURE = "none"  # the kind of a run without a failure
PART = 60  # cases of one walk
SHOWN = 500  # characters of a line of a run that failed without a failure


class Case(NamedTuple):
    """One run with one failure, or two in one batch."""

    scenario: str
    faults: tuple[tuple[Key, str], ...]

    def __str__(self) -> str:
        return " ".join([self.scenario, *(f"{key}={kind}" for key, kind in self.faults)])

    @property
    def kind(self) -> str:
        """Return the kinds of the failures."""
        return "+".join(kind for _key, kind in self.faults)


def alone(scenario: str, recorded: verdict.Clean) -> list[Case]:
    """Return every call with every kind of failure. The control node has no connection that could fail."""
    return [
        Case(scenario, ((Key.of(call["key"]), kind),))
        for call in recorded.calls
        for kind in KINDS
        if not (call["target"] == "localhost" and kind in (UNREACHABLE, UNREACHABLE_AFTER))
    ]


def pairs(scenario: str, recorded: verdict.Clean) -> list[Case]:
    """Return every two failures of one task on two hosts, or of one host's task and another host's later task of the
    same batch."""
    found = []
    kinds = [kind for kind in KINDS if kind not in (KILLED, WORKER_LOST)]
    by_play: dict[int, list[dict]] = {}
    for call in recorded.calls:
        by_play.setdefault(call["play"], []).append(call)
    for calls in by_play.values():
        for earlier, other in itertools.combinations(calls, 2):
            if (
                earlier["uuid"] != other["uuid"]
                or earlier["target"] == other["target"]
                or earlier["host"] == other["host"]
            ):
                continue
            for first, second in itertools.product(kinds, kinds):
                found.append(Case(scenario, ((Key.of(earlier["key"]), first), (Key.of(other["key"]), second))))
    return found


def relocate(source: Path, target: Path) -> None:
    """Copy a world to another directory: its files name its own."""
    shutil.rmtree(target, ignore_errors=True)
    shutil.copytree(source, target, symlinks=True)
    old, new = str(source).encode(), str(target).encode()
    for directory, names, files in os.walk(target):
        for name in (*names, *files):
            path = Path(directory) / name
            if path.is_symlink():
                led = os.readlink(path)
                path.unlink()
                path.symlink_to(led.replace(str(source), str(target)))
            elif path.is_file():
                content = path.read_bytes()
                if old in content:
                    status = path.stat()
                    path.write_bytes(content.replace(old, new))
                    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))


def begun(scenario: Scenario) -> Path:
    """Make the world on which a scenario begins; return its directory."""
    root = WORLDS / scenario.name
    shutil.rmtree(root, ignore_errors=True)
    root.mkdir(parents=True)
    World(root).create(**scenario.cluster)
    return root


def record(scenario: Scenario, spawner: Spawner) -> tuple[verdict.Clean, float]:
    """Return what the scenario's run does without a failure, and the seconds."""
    root = WORLDS / f"{scenario.name}-clean"
    relocate(begun(scenario), root)
    world = World(root)
    code, seconds = spawner.play(world, "run", scenario.playbook, scenario.given(world))
    if code != 0:
        lines = [line for line in engine.output(world, "run").splitlines() if "fatal:" in line or "ERROR" in line]
        shown = " / ".join(line[:SHOWN] for line in lines[:3])
        raise scenarios.PreparationFailed(f"the run without a failure ended with exit code {code}: {shown}")
    spawner.play(world, "status", "status", {"quorumshift_record": False})
    (root / "recorded").touch()
    return recorded(scenario), seconds


def is_recorded(name: str) -> bool:
    """Return whether the run of a scenario was recorded to its end."""
    return (WORLDS / f"{name}-clean" / "recorded").exists()


def recorded(scenario: Scenario) -> verdict.Clean:
    """Return what `record` recorded before."""
    world = World(WORLDS / f"{scenario.name}-clean")
    return verdict.clean(world, "run")._replace(following=verdict.printed(engine.output(world, "status")))


class Chosen(NamedTuple):
    """The cases of one scenario that are run, and how many there are."""

    cases: list[Case]
    calls: int
    alone: int
    pairs: int


def choose(name: str, given: Any, seed: int) -> Chosen:
    """Record the calls of a scenario, and choose its cases as the options say. Raises PreparationFailed."""
    scenario = scenarios.SCENARIOS[name]
    again = given.recorded or given.continued
    if not (again and is_recorded(name)):
        spawner = Spawner()
        try:
            record(scenario, spawner)
        finally:
            spawner.end()
    known = recorded(scenario)
    singles, two = alone(name, known), pairs(name, known)
    wanted = [case for case in singles if not given.kind or case.kind in given.kind]
    choice = random.Random(f"{seed} {name}")
    picked = [*_part(choice, wanted, given.share), *_part(choice, two, 0 if given.kind else given.pairs)]
    if given.at_most:
        picked = _bounded(choice, picked, given.at_most)
    print(f"{name}: {len(known.calls)} calls, {len(picked)} of {len(singles)} + {len(two)} cases", flush=True)
    return Chosen(picked, len(known.calls), len(singles), len(two))


def earlier_results() -> list[dict[str, Any]]:
    """Return the results that an interrupted run left, without its violations: these cases are run again."""
    lines = ALL_RESULTS.read_text().splitlines() if ALL_RESULTS.exists() else []
    return [result for result in map(json.loads, lines) if not result["violations"]]


def missed(case: str, name: str, kind: str, why: str) -> dict[str, Any]:
    """Return the result of a case that did not run."""
    return {"case": case, "scenario": name, "kind": kind, "task": "", "exit_code": None, "violations": [why]}


def run_scenario(
    name: str, given: Any, seed: int, earlier: list[dict[str, Any]]
) -> tuple[Chosen, list[dict[str, Any]]]:
    """Run the chosen cases of a scenario but those of `earlier`; return what was chosen, and the results of all. A run
    that fails without a failure is a violation, and the only result."""
    shutil.rmtree(KNOWN / name, ignore_errors=True)
    try:
        chosen = choose(name, given, seed)
    except scenarios.PreparationFailed as error:
        print(f"{name}: {error}", flush=True)
        found = [missed(name, name, NO_FAILURE, str(error))]
        keep(found[0])
        return Chosen([], 0, 0, 0), found
    wanted = {str(case) for case in chosen.cases}
    done = {result["case"]: result for result in earlier if result["case"] in wanted}
    left = [case for case in chosen.cases if str(case) not in done]
    return chosen, [*done.values(), *run_all(name, left, given.jobs, given.rerun, seed, given.forked)]


def keep(result: dict[str, Any], path: Path = ALL_RESULTS) -> None:
    """Append a result to a file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with open(path, "a", encoding="utf-8") as stream:
        fcntl.flock(stream, fcntl.LOCK_EX)
        stream.write(json.dumps(result) + "\n")


def _part(choice: random.Random, listed: list[Case], share: float) -> list[Case]:
    return listed if share >= 1 else choice.sample(listed, round(len(listed) * share))


def _bounded(choice: random.Random, listed: list[Case], number: int) -> list[Case]:
    kinds: dict[str, list[Case]] = {}
    for case in listed:
        kinds.setdefault(case.kind if len(case.faults) == 1 else "pairs", []).append(case)
    return [case for found in kinds.values() for case in choice.sample(found, min(number, len(found)))]


# A sample runs one of these two groups: its seed is even or odd. Each takes about 70 s of CPU.
SAMPLED = (
    ("migrate", "zk_rollback", "upgrade_kraft", "rollback_hybrid", "restore_zookeeper", "restart", "decommission"),
    ("zk_migrate", "finalize", "rollback", "upgrade", "restart_kraft", "reassign", "features", "quorum"),
)


def sample(seed: int, jobs: int) -> tuple[dict[str, Chosen], list[dict[str, Any]]]:
    """Run one case of each playbook of a group, each with another kind of failure, without a recorded run; return what
    was chosen and the results."""
    choice = random.Random(seed)
    kinds = choice.sample(KINDS, len(KINDS))
    chosen, parts = {}, []
    for number, name in enumerate(SAMPLED[seed % len(SAMPLED)]):
        wanted = Sample(choice.uniform(0.2, 0.8), choice.choice((0, 0, 1, 2)), kinds[number % len(kinds)])
        chosen[name] = Chosen([], 0, 0, 0)
        parts.append((name, wanted))
    results: list[dict[str, Any]] = []
    running: dict[int, tuple[str, Sample]] = {}
    while parts or running:
        while parts and len(running) < jobs:
            name, wanted = parts.pop(0)
            child = os.fork()
            if child == 0:
                code = 1
                try:
                    scenario = scenarios.SCENARIOS[name]
                    walk = Walk(scenario, begun(scenario), verdict.UNKNOWN, [], 0, None, seed)
                    walk.samples = [wanted]
                    walk.run()
                    code = 0
                except Exception:
                    traceback.print_exc()
                finally:
                    sys.stdout.flush()
                    os._exit(code)
            running[child] = name, wanted
        pid, _status = os.waitpid(-1, 0)
        if pid not in running:
            continue
        name, wanted = running.pop(pid)
        path = results_file(name, 0)
        found = [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []
        earlier = Sample(0.3, 0, wanted.kind)
        if not found and wanted != earlier:  # from the wanted moment on no play has so many calls
            parts.append((name, earlier))
            continue
        if not found:
            found = [missed(name, name, NO_FAILURE, "no case was run")]
        results += found
        print(f"{name}: {found[0]['case']}", flush=True)
    return chosen, results


def run_all(
    name: str, cases: list[Case], jobs: int, rerun: float, seed: int, forked: bool = False
) -> list[dict[str, Any]]:
    """Run the cases of a scenario in as many processes as `jobs`; return their results."""
    begun(scenarios.SCENARIOS[name])
    warm.read_templates()
    # neighbours go together: a walk ends with its last case
    known = recorded(scenarios.SCENARIOS[name])
    steps = {call["key"]: (call["play"], call["step"]) for call in known.calls}
    ordered = sorted(cases, key=lambda case: min(steps[str(key)] for key, _kind in case.faults))
    size = max(1, min(PART, -(-len(ordered) // jobs)))
    parts = [(number, ordered[begin : begin + size]) for number, begin in enumerate(range(0, len(ordered), size))]
    running: dict[int, tuple] = {}
    results: list[dict[str, Any]] = []
    while parts or running:
        while parts and len(running) < jobs:
            number, listed = parts.pop(0)
            child = os.fork()
            if child == 0:
                code = 1
                try:
                    scenario = scenarios.SCENARIOS[name]
                    Walk(scenario, WORLDS / name, known, listed, number, rerun, seed, forked=forked).run()
                    code = 0
                except Exception:
                    traceback.print_exc()
                finally:
                    sys.stdout.flush()
                    os._exit(code)
            running[child] = (number, listed)
        pid, _status = os.waitpid(-1, 0)
        if pid not in running:
            continue
        number, listed = running.pop(pid)
        path = results_file(name, number)
        found = [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []
        done = {result["case"] for result in found}
        for case in listed:
            if str(case) not in done:
                found.append(missed(str(case), name, case.kind, "the case did not run"))
                keep(found[-1])
        results += found
        broken = sum(bool(result["violations"]) for result in found)
        print(f"{name} {number}: {len(found)} cases, {broken} with a violation", flush=True)
    return results


def whole(case: Case, recorded: verdict.Clean) -> dict[str, Any]:
    """Run a case from the begin of its run, with a process for each worker; return its result as a walk would."""
    scenario = scenarios.SCENARIOS[case.scenario]
    walk = Walk(scenario, begun(scenario), recorded, [], 998, None, 0, keep=True, forked=True)
    walk.spawner, walk.sampled = Spawner(), True
    given = scenario.given(walk.world)
    code, _seconds = walk.spawner.play(walk.world, "run", scenario.playbook, given, dict(case.faults))
    result = walk._evaluated(case, code)
    walk.spawner.end()
    return result


def compare(name: str, number: int, seed: int, only: Iterable[Case] = ()) -> list[str]:
    """Run cases from the begin of their run, with processes for workers, and as an enumeration runs them. Return where
    exit code, verdict, next command, or a call differ."""
    scenario, spawner = scenarios.SCENARIOS[name], Spawner()
    if not is_recorded(name):
        record(scenario, spawner)
    spawner.end()
    known = recorded(scenario)
    choice = random.Random(f"{seed} {name}")
    picked = list(only) or [*choice.sample(alone(name, known), number - 1), *choice.sample(pairs(name, known), 1)]
    found = []
    for case in picked:
        first = whole(case, known)
        (second,) = Walk(scenario, begun(scenario), known, [case], 997, None, seed, keep=True).run()
        for key in ("exit_code", "violations", "next", "calls"):
            expected, other = first[key], second[key]
            if expected == other:
                continue
            if key == "calls":
                expected, other = (
                    [text for text in expected if text not in other],
                    [text for text in other if text not in expected],
                )
            found.append(f"{case}: {key}: {expected!r} from the begin, {other!r} from the step")
        print(f"{case}: {'differs' if found and found[-1].startswith(str(case)) else 'equal'}", flush=True)
    return found


def done_in(world: World) -> list[str]:
    """Return what the calls of a run did, without their times, in an order that does not depend on them. Left out is
    how far the hosts came in the task that failed, which they ran at the same time, and what a clean-up found."""
    ended = [call for call in boundary.read_calls(world, "run") if call["at"] == "end"]
    together = {(call["play"], call["step"]) for call in ended if call.get("injected")}
    names = ("play", "host", "target", "task", "module", "does", "check")
    return sorted(
        " ".join([*(str(call[name]) for name in names), str(call["mutated"] and not verdict.is_clean_up(call))])
        for call in ended
        if (call["play"], call["step"]) not in together
    )


def results_file(name: str, number: int) -> Path:
    """Return the file of a part's results."""
    return DIRECTORY / "results" / f"{name}-{number}.jsonl"


def replay(words: list[str], rerun: bool = True) -> tuple[dict[str, Any], Path]:
    """Run one case; return its result and the directory of its world."""
    name, *faults = words
    parsed = tuple((Key.of(fault.partition("=")[0]), fault.partition("=")[2]) for fault in faults)
    case, spawner = Case(name, parsed), Spawner()
    scenario = scenarios.SCENARIOS[name]
    if not is_recorded(name):
        record(scenario, spawner)
    spawner.end()
    walk = Walk(scenario, begun(scenario), recorded(scenario), [case], 999, float(rerun), 0, keep=True)
    (result,) = walk.run()
    return result, DIRECTORY / "replayed"


class Sample(NamedTuple):
    """Where a walk that has no recorded calls makes cases: at the first call from the batch of plays `begins` on, as a
    part of all, that has the number `ordinal` in its batch."""

    begins: float
    ordinal: int
    kind: str


class Walk:
    """A run without a failure from which cases fork off; `rerun`: the share of cases after which the run is repeated
    where the kind does not ask for it, None for no case."""

    def __init__(
        self,
        scenario: Scenario,
        base: Path,
        recorded: verdict.Clean,
        cases: Iterable[Case],
        number: int,
        rerun: float | None,
        seed: int,
        keep: bool = False,
        forked: bool = False,
    ) -> None:
        self.scenario, self.recorded, self.rerun, self.seed, self.keep = scenario, recorded, rerun, seed, keep
        self.forked, self.snapshot = forked, None
        self.cases: dict[tuple[int, int], list[Case]] = {}
        steps = {call["key"]: (call["play"], call["step"]) for call in recorded.calls}
        for case in cases:
            self.cases.setdefault(min(steps[str(key)] for key, _kind in case.faults), []).append(case)
        self.root = base.with_name(f"{base.name}-{number}")
        relocate(base, self.root)
        self.world = World(self.root)
        self.samples: list[Sample] = []
        self.results = results_file(scenario.name, number)
        self.results.parent.mkdir(parents=True, exist_ok=True)
        self.results.unlink(missing_ok=True)

    def run(self) -> list[dict[str, Any]]:
        """Run the cases; return their results."""
        self.others: frozenset[int] = frozenset()
        self.spawner, self.sampled = Spawner(), bool(self.samples)

        def work() -> int:
            boundary.Run.faults = {}
            given, hooks = self.scenario.given(self.world), {"before_step": self._before_step}
            if self.sampled:
                hooks = {"before_play": self._sample}
            return engine.play(self.world, "run", self.scenario.playbook, given, self.forked or self.sampled, **hooks)

        total = sum(map(len, self.cases.values())) + len(self.samples)
        code, _seconds = engine.forked(
            work, self.results.with_suffix(".txt"), 60 + total * (engine.CASE_LIMIT_S + engine.RUN_LIMIT_S)
        )
        self.spawner.end()
        lines = self.results.read_text().splitlines() if self.results.exists() else []
        results = [json.loads(line) for line in lines]
        if len(results) < total and not self.sampled:
            raise RuntimeError(
                f"{self.scenario.name}: {len(results)} of {total} cases ran, the walk ended with {code}: {self.root}"
            )
        return results

    def _sample(self, manager: Any) -> None:
        """Make the next case of a sample at this batch of plays, where it has such a call."""
        wanted = self.samples[0]
        if boundary.Run.play < wanted.begins * boundary.Run.plays:
            return
        snapshot = Snapshot(self.root)
        began, play = time.monotonic(), boundary.Run.play
        child = os.fork()
        if child == 0:
            self._become(Case(self.scenario.name, ()), manager)
            last = play >= boundary.Run.plays
            boundary.Run.blind = (play, 0 if last else wanted.ordinal, wanted.kind)
            boundary.Run.before_play = self._missed
            return
        code = engine.await_child(child, engine.CASE_LIMIT_S, self.others, engine.shown(self.world, "run"))
        hit = next((call for call in boundary.read_calls(self.world, "run") if call.get("injected")), None)
        if hit:
            case = Case(self.scenario.name, ((Key.of(hit["key"]), hit["injected"]),))
            result = {**self._evaluated(case, code), "seconds": round(time.monotonic() - began, 2)}
            keep(result, self.results)
            self.samples.pop(0)
        snapshot.restore()
        if not self.samples:
            os._exit(0)

    def _missed(self, _manager: Any) -> None:
        """End a fork whose batch of plays had no call of the wanted number."""
        if not any(call.get("injected") for call in boundary.read_calls(self.world, "run")):
            os._exit(0)

    def _before_step(self, strategy: Any) -> None:
        cases = self.cases.pop((boundary.Run.play, boundary.Run.step), [])
        if not cases:
            return
        workers.join(strategy)
        if self.snapshot is None:
            self.snapshot = Snapshot(self.root)
        else:
            self.snapshot.update()
        for case in cases:
            began, cpu = time.monotonic(), engine.cpu_of_children() + self.spawner.cpu_s
            child = os.fork()
            if child == 0:
                self._become(case, strategy._tqm, strategy)
                return
            code = engine.await_child(child, engine.CASE_LIMIT_S, self.others, engine.shown(self.world, "run"))
            result = self._evaluated(case, code)
            result["seconds"] = round(time.monotonic() - began, 2)
            result["cpu_s"] = round(engine.cpu_of_children() + self.spawner.cpu_s - cpu, 2)
            keep(result, self.results)
            if not self.keep:
                keep(result)
            else:
                shutil.rmtree(DIRECTORY / "replayed", ignore_errors=True)
                shutil.copytree(self.root, DIRECTORY / "replayed", symlinks=True)
            self.snapshot.restore()
        if not self.cases:
            os._exit(0)  # nothing is left to be forked off

    def _become(self, case: Case, manager: Any, strategy: Any = None) -> None:
        """Go on as the run in which the failure happens."""
        os.setsid()
        handle = os.open(self.root / "output-run.txt", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        for stream in (1, 2):
            os.dup2(handle, stream)
        workers.renew(manager, strategy)
        boundary.Run.forked = True
        boundary.Run.before_play, boundary.Run.before_step = None, self._after_failure
        boundary.Run.control = os.getpid()
        boundary.Run.faults = dict(case.faults)

    def _after_failure(self, _strategy: Any) -> None:
        """After the step in which a failure was, workers are what they were in the walk."""
        boundary.Run.forked, boundary.Run.before_step = self.forked or self.sampled, None

    def _evaluated(self, case: Case, code: int | None) -> dict[str, Any]:
        world, scenario = self.world, self.scenario
        found = verdict.violations(world, self.recorded, dict(case.faults), code, "run")
        calls_made = done_in(world)
        calls = boundary.read_calls(world, "run")
        hit = [call for call in calls if call.get("injected")]
        taken = any(
            call["at"] == "end" and call["mutated"] and verdict.signature(call) == verdict.LOCKED for call in calls
        )
        result: dict[str, Any] = {
            "case": str(case),
            "scenario": scenario.name,
            "kind": case.kind,
            "task": " + ".join(f"{call['task']} on {call['target']}" for call in hit),
            "exit_code": code,
        }
        shown, following = self._status(taken, verdict.was_done(calls) or (code == 0 and not found))
        found += shown
        result["next"] = following.playbook if following else None
        kinds = {kind for _key, kind in case.faults}
        chance = random.Random(f"{self.seed} {case}").random()
        if self.rerun is not None and (kinds & {KILLED, WORKER_LOST} or chance < self.rerun):
            codes, wrong = self._rerun(following)
            result["rerun"] = codes
            found += wrong
        result["violations"] = found
        if self.keep:
            result["calls"] = calls_made
        return result

    def _known(self, what: str, given: str, work: Callable[[], Any]) -> Any:
        """Return what `work` returned on hosts that were the same, but for times and ids."""
        path = KNOWN / self.scenario.name / f"{what}-{hashlib.sha256(given.encode()).hexdigest()}.json"
        if self.keep or not path.exists():
            made = json.dumps(work())
            path.parent.mkdir(parents=True, exist_ok=True)
            path.with_suffix(f".{os.getpid()}").write_text(made)
            os.replace(path.with_suffix(f".{os.getpid()}"), path)
            return json.loads(made)
        return json.loads(path.read_text())

    def _status(self, taken: bool, done: bool) -> tuple[list[str], verdict.Printed | None]:
        """Return what is wrong with what `status` shows now, and the command that it prints."""

        def work() -> Any:
            code, _seconds = self.spawner.play(
                self.world, "status", "status", {"quorumshift_record": False}, forked_workers=self.forked
            )
            return verdict.status_violations(self.world, code, "status", taken, done)

        shown, following = self._known("status", f"{modules.digest_of_all(self.world, True)} {taken} {done}", work)
        return shown, verdict.Printed(*following) if following else None

    def _rerun(self, following: verdict.Printed | None) -> tuple[list[int], list[str]]:
        """Run the printed command, or the scenario's playbook again where no command leads there; return the exit codes
        and what is wrong. From hosts that are the same the next run does the same."""
        world, scenario = self.world, self.scenario

        def work() -> Any:
            codes: list[int | None] = []
            printed = following
            for number in range(2):
                if number:
                    printed = verdict.advised(verdict.output(world, "rerun0")) or self._status(True, False)[1]
                if printed:
                    typed = printed.variables.items()
                    printed = printed._replace(
                        variables={name: text for name, text in typed if name not in scenarios.OF_SIMULATION}
                    )
                given, playbook = scenario.given(world), scenario.playbook
                # the command that comes after the whole scenario
                beyond = printed and printed.equals_except_token(self.recorded.following)
                # another playbook only where the repeated run names it
                if printed and (number or printed.playbook == scenario.playbook) and not beyond:
                    given = {name: given[name] for name in scenarios.OF_SIMULATION if name in given} | printed.variables
                    playbook = printed.playbook
                code, _seconds = self.spawner.play(world, f"rerun{number}", playbook, given, forked_workers=self.forked)
                codes.append(code)
                if code == 0:
                    break
            else:
                return codes, [f"the run does not lead on when it is repeated: exit codes {codes}"]
            if playbook == scenario.playbook and self.recorded.final not in (None, verdict.final(world)):
                text = "the repeated run ended with exit code 0 and leads elsewhere than a run without a failure"
                return codes, [text]
            return codes, []

        return self._known("rerun", f"{modules.digest_of_all(world, False)} {following}", work)
