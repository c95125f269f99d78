# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The boundary between Ansible and the simulated hosts: each module call is recorded here, answered, and may fail.

Ansible's own code runs up to the connection and from its answer on. In place of a module's code the connection gets the
module's name and arguments.
"""

from __future__ import annotations

import fcntl
import json
import os
import re
import signal
import subprocess
import time
from pathlib import Path
from typing import Any, NamedTuple

from ansible.errors import AnsibleConnectionFailure
from ansible.executor import module_common
from ansible.plugins.action import ActionBase

from tools.failure_proof import modules
from tools.failure_proof.world import World

MARK = "quorumshift-failure-proof"
CAUSE = "no space left on device (injected)"
LOST = "ssh: connect to host {host} port 22: Connection timed out (injected)"

UNREACHABLE, UNREACHABLE_AFTER, FAILED, CRASHED = "unreachable", "unreachable_after", "failed", "crashed"
WORKER_LOST, KILLED = "worker_lost", "killed"
LOSES = (UNREACHABLE, UNREACHABLE_AFTER)  # of a host with a connection, which the control node does not need
KINDS = (UNREACHABLE, UNREACHABLE_AFTER, FAILED, CRASHED, WORKER_LOST, KILLED)


class Key(NamedTuple):
    """One module call of a run: in the `play`-th batch of plays, the `number`-th call of the inventory's `host`, on
    `target`. Calls of one host come in one order; calls of several hosts do not."""

    play: int
    host: str
    target: str
    number: int

    @classmethod
    def of(cls, text: str) -> Key:
        """Return the key that `str` wrote."""
        play, host, target, number = text.split(":")
        return cls(int(play), host, target, int(number))

    def __str__(self) -> str:
        return ":".join(map(str, self))


class Run:
    """What the processes of one run of ansible-playbook share by inheritance."""

    world: World
    name = "run"  # of the file of calls
    play = plays = step = 0  # a step is a task on its hosts; they are counted in each batch of plays
    forked = True  # every worker is a process (tools.failure_proof.workers)
    before_play: Any = None
    before_step: Any = None
    control = 0  # process id
    faults: dict[Key, str] = {}  # noqa: RUF012
    blind: tuple[int, int, str] | None = None  # the call of this number in this batch of plays fails in this way
    token = 0  # in place of the control process's start time


def calls_file(world: World, name: str) -> Path:
    """Return the file with a run's calls."""
    return world.root / f"calls-{name}.jsonl"


def read_calls(world: World, name: str) -> list[dict[str, Any]]:
    """Return the calls of a run, begin and end of each."""
    path = calls_file(world, name)
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def install() -> None:
    """Put module names and arguments in place of modules' code."""

    def configure(self: ActionBase, module_name: str, module_args: dict, task_vars: dict) -> tuple[Any, ...]:
        task = self._task
        data = {
            MARK: True,
            "module": module_name,
            "args": module_args,
            "task": task.get_name(),
            "uuid": str(task._uuid),
            "host": str(task_vars["inventory_hostname"]),
            "target": str(task.delegate_to or task_vars["inventory_hostname"]),
            "async": bool(task.async_val),
        }
        text = json.dumps(data, default=str).encode()
        if not hasattr(module_common, "_BuiltModule"):  # up to ansible-core 2.18
            return "new", "#!/usr/bin/python3", text, module_name
        built = module_common._BuiltModule(
            b_module_data=text, module_style="new", shebang="#!/usr/bin/python3", serialization_profile="legacy"
        )
        return built, module_name

    ActionBase._configure_module = configure


def answer(command: str, data: bytes | None) -> tuple[int, bytes, bytes]:
    """Answer a command of a connection: a module call, or a shell command, which is run."""
    order = _ORDER.search(command)
    if order:
        return _ordered(*order.groups())
    if not data or MARK.encode() not in data:
        ran = subprocess.run(["/bin/sh", "-c", command], input=data or b"", capture_output=True, check=False)
        return ran.returncode, ran.stdout, ran.stderr
    return call(json.loads(data))


# zk_cut gives its worker orders by a shell script, for its speed (core.ensemble.ensemble_cut.order_script)
_ORDER = re.compile(r"hosts/([a-z0-9]+)/state/.*\"name\": \"([a-z]+)\"", re.DOTALL)


def _ordered(host: str, name: str) -> tuple[int, bytes, bytes]:
    given = {
        "module": "quorumshift.kafka.zk_cut_order",
        "args": {"order": name, "state": name},
        "task": f"order: {name}",
        "uuid": f"order-{name}",
        "host": host,
        "target": host,
        "async": False,
    }
    code, out, err = call(given)
    if not out:
        return code, out, err
    record = json.loads(out)
    if record.get("failed"):
        record = {"state": "healed", "id": "", "reason": record["msg"]}
    return 0, f"{record['state']}\n{json.dumps(record)}".encode(), b""


def call(given: dict[str, Any]) -> tuple[int, bytes, bytes]:
    """Record a module call, let it fail as it is to, or answer it."""
    world, target, args = Run.world, given["target"], given["args"]
    line = {
        "play": Run.play,
        "step": Run.step,
        "host": given["host"],
        "target": target,
        "task": given["task"],
        "uuid": given["uuid"],
        "module": given["module"].rpartition(".")[2],
        "does": args.get("action") if given["module"].endswith("node_restart") else args.get("state"),
        "check": bool(args.get("_ansible_check_mode")),
    }
    key, gone, ordinal = _begin(world, line)
    if gone:
        _end(world, key, line, mutated=False, result="unreachable")
        raise AnsibleConnectionFailure(LOST.format(host=target))
    kind = Run.faults.get(key)
    if Run.blind and Run.blind[:2] == (Run.play, ordinal):
        kind = FAILED if target == "localhost" and Run.blind[2] in LOSES else Run.blind[2]
    if kind == UNREACHABLE:
        _end(world, key, line, mutated=False, result=kind, injected=kind)
        raise AnsibleConnectionFailure(LOST.format(host=target))
    if kind == FAILED:
        _end(world, key, line, mutated=False, result=kind, injected=kind)
        return 1, json.dumps({"failed": True, "msg": f"{target}: {CAUSE}"}).encode(), b""
    before, state = modules.digest(world, target), world.state()
    code, out, err = modules.run(world, target, given["module"], args)
    mutated = before != modules.digest(world, target) or _changed(state, world.state(), target)
    if given["async"]:
        out = _kept(world, target, out)
    _end(world, key, line, mutated=mutated, result=_result(out, err), **({"injected": kind} if kind else {}))
    if kind == UNREACHABLE_AFTER:
        raise AnsibleConnectionFailure(LOST.format(host=target))
    if kind == CRASHED:
        return 1, b"", f"Traceback (most recent call last):\nOSError: {target}: {CAUSE}\n".encode()
    if kind == WORKER_LOST:
        os.kill(os.getpid(), signal.SIGKILL)
    if kind == KILLED:
        os.kill(Run.control, signal.SIGKILL)
    return code, out.encode(), err.encode()


def _changed(before: dict, after: dict, target: str) -> bool:
    def reduced(state: dict) -> Any:
        zookeeper = {key: value for key, value in state["zookeeper"].items() if key not in ("version", "epoch")}
        own = state["services"].get(target), state["versions"].get(target)
        return (
            own,
            zookeeper["owner"],
            zookeeper["migration"],
            state["metadata_version"],
            state["reassigning"],
            state["stubs"],
        )

    return reduced(before) != reduced(after)


def _result(out: str, err: str) -> Any:
    try:
        result = json.loads(out)
    except ValueError:
        return f"no JSON: {err}"
    if result.get("failed"):
        return f"failed: {result.get('msg')}"
    return result.get("outcome") or "ok"


def _kept(world: World, target: str, out: str) -> str:
    """Keep the result of an asynchronous call for async_status."""
    job = f"j{abs(hash((target, time.time()))) % 10**12}"
    directory = world.root / "async"
    directory.mkdir(exist_ok=True)
    path = directory / f"{job}.json"
    path.write_text(out)
    return json.dumps({"started": 1, "finished": 0, "changed": True, "ansible_job_id": job, "results_file": str(path)})


def _begin(world: World, line: dict[str, Any]) -> tuple[Key, bool, int]:
    """Write that a call begins; return its key, whether its target is lost already, and its number in the batch of
    plays."""
    with open(calls_file(world, Run.name), "a+", encoding="utf-8") as stream:
        fcntl.flock(stream, fcntl.LOCK_EX)
        stream.seek(0)
        earlier = [json.loads(record) for record in stream]
        same = (line["play"], line["host"], line["target"])
        number = sum(
            record["at"] == "begin" and (record["play"], record["host"], record["target"]) == same for record in earlier
        )
        key = Key(*same, number)
        gone = any(
            str(record.get("injected")) in (UNREACHABLE, UNREACHABLE_AFTER) and record["target"] == line["target"]
            for record in earlier
        )
        stream.write(json.dumps({"at": "begin", "key": str(key), "t": time.time(), **line}) + "\n")
        ordinal = sum(record["at"] == "begin" and record["play"] == line["play"] for record in earlier)
    return key, gone, ordinal


def _end(world: World, key: Key, line: dict[str, Any], **more: Any) -> None:
    with open(calls_file(world, Run.name), "a", encoding="utf-8") as stream:
        fcntl.flock(stream, fcntl.LOCK_EX)
        stream.write(json.dumps({"at": "end", "key": str(key), "t": time.time(), **line, **more}) + "\n")
