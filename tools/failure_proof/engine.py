# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Run playbooks in forks of a process that has imported Ansible, and begin a case where its task begins.

One process walks through a run without a failure. Before each task it forks, once for each case of that task, and the
fork goes on with the failure to come; the world's directory is restored after each. So a case costs only what follows
its failure, and begins from the state of a real run.
"""

from __future__ import annotations

import contextlib
import ctypes
import gc
import importlib
import json
import math
import os
import resource
import shutil
import signal
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
CASE_LIMIT_S, RUN_LIMIT_S = 120.0, 120.0  # without a line of output or a module call
_SETTINGS = {
    "ANSIBLE_CONNECTION_PLUGINS": str(Path(__file__).parent / "connection"),
    "ANSIBLE_COLLECTIONS_PATH": str(ROOT / ".build"),
    "ANSIBLE_LOCALHOST_WARNING": "False",
    "ANSIBLE_INVENTORY_UNPARSED_WARNING": "False",
    "ANSIBLE_INJECT_FACT_VARS": "True",
    "ANSIBLE_NOCOLOR": "1",
    "ANSIBLE_FORKS": "8",
    "ANSIBLE_DEPRECATION_WARNINGS": "False",
    "LC_ALL": "C.UTF-8",
}


def prepare(home: Path) -> None:
    """Import Ansible and the collection, with the boundary installed. `home`: for Ansible's own files."""
    home.mkdir(parents=True, exist_ok=True)
    settings = {**_SETTINGS, "ANSIBLE_HOME": str(home), "ANSIBLE_CONFIG": str(ROOT / "ansible.cfg")}
    os.environ.update(settings)
    os.environ.pop("ANSIBLE_LOCAL_TEMP", None)
    from ansible.plugins import loader

    loader.init_plugin_loader([str(ROOT / ".build")])
    import ansible.cli.playbook

    ansible.cli.init_plugin_loader = lambda *_given: None
    import ansible.executor.playbook_executor
    import ansible.executor.task_queue_manager as manager
    from ansible.playbook import Playbook
    from ansible_collections.quorumshift.kafka.plugins.module_utils.core.gates import gates
    from ansible_collections.quorumshift.kafka.plugins.plugin_utils import process_identity, report

    from tools.failure_proof import boundary, modules, warm, workers

    modules.load()
    if warm.CAN_KEEP:
        warm.files([ROOT / "playbooks", ROOT / "roles"])
        warm.templates(home)
        warm.plugins()
    workers.install()
    os.fsync = lambda _handle: None  # no machine crashes here
    for path in (ROOT / "plugins" / "action").glob("*.py"):
        importlib.import_module(f"ansible_collections.quorumshift.kafka.plugins.action.{path.stem}")
    boundary.install()
    # A fork has another process id than the run that it goes on with: a run is known by its token
    process_identity.process = lambda _pid: {
        "boot_id": "b",
        "pid_namespace": "n",
        "pid": 1,
        "started": boundary.Run.token,
    }
    process_identity.is_alive = lambda other: (other or {}).get("started") == boundary.Run.token if other else None
    gates.TOKEN_LIFE_S = math.inf  # a run waits for the cases that fork off it
    report.write = lambda _artifacts: None  # the HTML report, which decides nothing and takes a third of the time
    run_play = manager.TaskQueueManager.run

    def run(self: Any, play: Any) -> Any:
        boundary.Run.play += 1
        boundary.Run.step = 0
        before_play = boundary.Run.before_play
        if before_play is not None:
            before_play(self)
        return run_play(self, play)

    manager.TaskQueueManager.run = run
    get_plays = Playbook.get_plays

    def counted(self: Any) -> Any:
        plays = get_plays(self)
        boundary.Run.plays = len(plays)
        return plays

    Playbook.get_plays = counted
    from tools.failure_proof.world import World

    world = World(home / f"world-{os.getpid()}")
    world.root.mkdir()
    world.create()
    warm.run(lambda: play(world, "first", "status", {"quorumshift_record": False}, forked=False))
    shutil.rmtree(world.root)
    adopt_orphans()
    gc.collect()
    gc.freeze()
    gc.disable()  # a collection in a fork copies every page


def adopt_orphans() -> None:
    """Become the parent of processes whose parent was killed."""
    ctypes.CDLL(None, use_errno=True).prctl(36, 1, 0, 0, 0)  # PR_SET_CHILD_SUBREAPER


def play(
    world: Any,
    name: str,
    playbook: str,
    variables: Mapping[str, Any],
    forked: bool = True,
    before_play: Any = None,
    before_step: Any = None,
) -> int:
    """Run a playbook in this process, and return its exit code. `name`: of its files in the world's directory."""
    from ansible.cli.playbook import PlaybookCLI
    from ansible.errors import AnsibleError, AnsibleOptionsError, AnsibleParserError

    from tools.failure_proof import boundary

    inventory = world.root / "inventory.json"
    if not inventory.exists():
        inventory.write_text(json.dumps(world.inventory()))
    boundary.Run.world, boundary.Run.name, boundary.Run.control = world, name, os.getpid()
    boundary.Run.play, boundary.Run.forked = 0, forked
    boundary.Run.before_play, boundary.Run.before_step = before_play, before_step
    boundary.Run.token = time.time_ns()
    given = ["-e", json.dumps({"_quorumshift_temporary": str(world.root / "tmp"), **variables})]
    argv = ["ansible-playbook", "-i", str(inventory), *given, f"playbooks/{playbook}.yml"]
    cli = PlaybookCLI(argv)
    try:
        cli.parse()
        return int(cli.run() or 0)
    except AnsibleOptionsError as error:
        print(f"ERROR! {error}")
        return 5
    except AnsibleParserError as error:
        print(f"ERROR! {error}")
        return 4
    except AnsibleError as error:
        print(f"ERROR! {error}")
        return 1
    except KeyboardInterrupt:
        return 99
    except Exception as error:
        print(f"ERROR! Unexpected Exception, this is probably a bug: {error!r}")
        return 250


def forked(
    work: Callable[[], int], output: Path, limit_s: float, grows: Sequence[Path] = ()
) -> tuple[int | None, float]:
    """Do the work in a fork, with its output in a file; return its exit code (None: over the limit, -9: killed) and
    the seconds. Processes that it leaves are awaited, then ended. `grows`: see await_child."""
    sys.stdout.flush()
    sys.stderr.flush()
    began, others = time.monotonic(), children()
    child = os.fork()
    if child == 0:
        code = 251
        try:
            handle = os.open(output, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
            for stream in (1, 2):
                os.dup2(handle, stream)
            os.setsid()
            adopt_orphans()  # a fork does not inherit that: a worker whose control process was killed goes on
            code = work()
        finally:
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(code)
    code = await_child(child, limit_s, others, grows or [output])
    return code, time.monotonic() - began


def shown(world: Any, name: str) -> list[Path]:
    """Return the files that grow while the run `name` goes on."""
    return [world.root / f"output-{name}.txt", world.root / f"calls-{name}.jsonl"]


def await_child(
    child: int, limit_s: float, others: frozenset[int] = frozenset(), grows: Sequence[Path] = ()
) -> int | None:
    """Wait for a child and for the orphans that it leaves, not for the `others`; return its exit code, negative for a
    signal. `limit_s`: how long none of the files `grows` grows. A slow machine is no failure."""
    deadline, code, ended, sizes = time.monotonic() + limit_s, None, False, _sizes(grows)
    while True:
        if not ended and _sizes(grows) != sizes:
            deadline, sizes = time.monotonic() + limit_s, _sizes(grows)
        for pid in children() - others:
            with contextlib.suppress(ChildProcessError):
                reaped, status = os.waitpid(pid, os.WNOHANG)
                if reaped == child:
                    code, ended = os.waitstatus_to_exitcode(status), True
                    deadline = min(deadline, time.monotonic() + 20)
        left = children() - others
        if not left:
            return code
        if time.monotonic() >= deadline:
            break
        time.sleep(0.02)
    for pid in left:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    while children() - others:
        for pid in children() - others:
            with contextlib.suppress(ChildProcessError, ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
                os.waitpid(pid, os.WNOHANG)
        time.sleep(0.01)
    return code if ended else None


def _sizes(paths: Sequence[Path]) -> list[int]:
    return [path.stat().st_size if path.exists() else 0 for path in paths]


def children() -> frozenset[int]:
    """Return the process ids of this process's children."""
    try:
        with open(f"/proc/self/task/{os.getpid()}/children", encoding="ascii") as stream:
            return frozenset(int(pid) for pid in stream.read().split())
    except OSError:
        return frozenset()


def cpu_of_children() -> float:
    """Return the seconds of CPU of the children that have ended, and of theirs."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


class Snapshot:
    """A copy of a world's directory, from which it is restored. Only what changed is copied."""

    def __init__(self, root: Path) -> None:
        self.root, self.saved = root, root.with_name(root.name + ".saved")
        shutil.rmtree(self.saved, ignore_errors=True)
        shutil.copytree(root, self.saved, symlinks=True)
        self._seen = _signatures(root)

    def update(self) -> None:
        """Let the copy be the directory as it is now."""
        self._seen = self._equal(self.root, self.saved)

    def restore(self) -> None:
        """Restore the directory."""
        self._equal(self.saved, self.root)
        self._seen = _signatures(self.root)

    def _equal(self, source: Path, target: Path) -> dict[str, Any]:
        """Let `target` be as `source`, where the directory is not as it was seen."""
        now = _signatures(self.root)
        changed = {path for path in now.keys() | self._seen.keys() if now.get(path) != self._seen.get(path)}
        for path in sorted(changed, reverse=True):
            own = target / path
            if own.is_symlink() or own.is_file():
                own.unlink()
            elif own.is_dir() and not (source / path).is_dir():
                shutil.rmtree(own)
        for path in sorted(changed):
            given, own = source / path, target / path
            if given.is_symlink():
                own.symlink_to(os.readlink(given))
            elif given.is_dir():
                own.mkdir(exist_ok=True)
                shutil.copystat(given, own)
            elif given.exists():
                shutil.copy2(given, own)
        return now


def _signatures(root: Path) -> dict[str, Any]:
    """Return of each path below a directory what changes with it."""
    found: dict[str, Any] = {}
    waiting, skipped = [str(root)], len(str(root)) + 1
    while waiting:
        directory = waiting.pop()
        with os.scandir(directory) as entries:
            for entry in entries:
                status = entry.stat(follow_symlinks=False)
                path = entry.path[skipped:]
                if entry.is_dir(follow_symlinks=False):
                    waiting.append(entry.path)
                    found[path] = "directory", status.st_ino, status.st_mode
                else:
                    found[path] = status.st_ino, status.st_ctime_ns, status.st_size
    return found


class Spawner:
    """A process that runs whole playbooks on request, in forks of what was imported and of nothing else: a process that
    walks through a run holds that run's state."""

    def __init__(self) -> None:
        import multiprocessing

        context = multiprocessing.get_context("fork")
        self.cpu_s = 0.0
        self._mine, theirs = context.Pipe()
        self.process = context.Process(target=self._serve, args=(theirs,), daemon=False)
        self.process.start()

    def _serve(self, pipe: Any) -> None:
        adopt_orphans()
        while True:
            try:
                given = pipe.recv()
            except EOFError:
                os._exit(0)
            if given is None:
                os._exit(0)
            pipe.send(self._run(*given))

    @staticmethod
    def _run(
        root: str, name: str, playbook: str, variables: dict, faults: dict, forked_workers: bool, limit_s: float
    ) -> Any:
        from tools.failure_proof import boundary
        from tools.failure_proof.world import World

        world = World(root)

        def work() -> int:
            boundary.Run.faults = faults
            return play(world, name, playbook, variables, forked_workers)

        before = cpu_of_children()
        ended = forked(work, world.root / f"output-{name}.txt", limit_s, shown(world, name))
        return ended, cpu_of_children() - before

    def play(
        self,
        world: Any,
        name: str,
        playbook: str,
        variables: Mapping[str, Any],
        faults: Any = None,
        forked_workers: bool = True,
        limit_s: float = RUN_LIMIT_S,
    ) -> tuple[int | None, float]:
        """Run a playbook; return its exit code and the seconds."""
        self._mine.send((str(world.root), name, playbook, dict(variables), faults or {}, forked_workers, limit_s))
        ended, cpu_s = self._mine.recv()
        self.cpu_s += cpu_s
        return ended

    def end(self) -> None:
        """End the process."""
        self._mine.send(None)
        self.process.join(10)


def output(world: Any, name: str) -> str:
    """Return what a run printed."""
    path = world.root / f"output-{name}.txt"
    return path.read_text(errors="replace") if path.exists() else ""
