# Copyright: (c) 2026, Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""One node's turn: swap its properties, stop it, start it, see it up, by a worker that nothing on the way can cut.

The worker is a process of its own session on the managed host. It holds the host's lock while it works and writes
each step to `restart.json` before it takes it, so whoever comes later reads how far it got. Standard library only:
what it needs is loaded before it detaches, because Ansible removes the module's files behind it.
"""

from __future__ import annotations

import contextlib
import os
import time
from typing import Any, Callable, Iterator, Mapping

from . import as_user, auto_revert, detached, host_state, restart_files, restart_record, restart_steps, run_locks
from .core import kraft_config, transitions
from .formats import properties
from .probes import own_node, service
from .restart_record import Record, RestartError


def planned(spec: Mapping[str, Any]) -> dict:
    """Return what a turn would do: {needed, before, after}.

    `before` and `after` are the properties file's text with secrets masked, as Ansible's diff mode shows it.
    """
    old = restart_files.read_text(spec["config_file"])
    new = restart_files.new_text(spec, old)
    values = properties.parse(old)
    running = own_node.running_mode(values, spec["config_file"], spec["service"]) if old else None
    needed = old != new or running != spec["mode"] or not service.state(spec["service"])["active"]
    return {"needed": needed, "before": restart_files.masked_text(old), "after": restart_files.masked_text(new)}


def begin(spec: Mapping[str, Any]) -> dict:
    """Detach the worker of a turn and return its first record; a turn that needs nothing returns `outcome` `unneeded`.

    `spec`: {id, kind (core.transitions), mode (that the node is to run in), run, node_id, cluster_id,
    state_dir, service, config_file, changes ({key: value or None}) or content ({key: value}, the whole file), owner,
    format (argv that formats an empty log directory, or None), log_file, stop_timeout_s, start_timeout_s, registered
    (ids, as text, of the brokers registered in the quorum)}.
    Raises TurnError when another turn holds the host, or another run's claim.
    """
    plan = planned(spec)
    if not plan["needed"]:
        reported = {key: spec[key] for key in ("id", "kind", "mode")}
        return {**reported, "outcome": "unneeded", "changed": False, "steps": []}
    directory = host_state.directory(spec["state_dir"], spec["cluster_id"])
    with _held_by(spec["run"], directory):
        record = Record(directory, spec, plan["before"], plan["after"])
        return _detached(record, lambda: _take(spec, record, directory))


def finish(spec: Mapping[str, Any]) -> dict:
    """Detach a worker that ends what a lost one began, and return its first record; the record of a turn that has
    ended well meanwhile is returned as it is.

    The properties file is whole, since it is written by rename: the node is to run in whichever mode it says. A node
    that is down gets `changes` into its file and is started; one that runs is seen up. `spec` as for `begin`, without
    kind and mode. Raises TurnError as that does.
    """
    directory = host_state.directory(spec["state_dir"], spec["cluster_id"])
    with _held_by(spec["run"], directory):
        reported = restart_record.read(directory)
        if reported.get("outcome") not in (None, "failed"):
            return {**reported, "changed": False}
        old = restart_files.read_text(spec["config_file"])
        mode = kraft_config.mode_at_next_start(properties.parse(old))
        if mode in ("invalid", "combined"):
            raise RestartError(f"{spec['config_file']} starts no node that this can finish: its mode is {mode}")
        kind = transitions.forward_to(mode)
        spec = {**spec, "mode": mode, "kind": kind.name if kind else mode}
        down = restart_steps.is_stopped(service.state(spec["service"]), or_stopping=True)
        new = restart_files.new_text(spec, old) if down else old
        record = Record(
            directory, {**spec, "kind": "repair"}, restart_files.masked_text(old), restart_files.masked_text(new)
        )
        record.reported["changed"] = down
        return _detached(record, lambda: _finish(spec, record, directory, down))


def watch(root: str, cluster_id: str, restart_id: str, seen_steps: int, wait_s: float) -> dict:
    """Return the turn's record as soon as it shows more than `seen_steps` steps or an outcome, at the latest after
    `wait_s`. A worker that is gone without an outcome is told as outcome `died`. Raises TurnError for another turn."""
    directory = host_state.directory(root, cluster_id)
    deadline = time.monotonic() + wait_s
    while True:
        reported = restart_record.read(directory)
        if reported.get("id") != restart_id:
            raise RestartError(f"{directory} tells of turn {reported.get('id')}, not of {restart_id}")
        if reported.get("outcome") or len(reported["steps"]) > seen_steps:
            return reported
        if not host_state.held(directory):
            again = restart_record.read(directory)
            return again if again.get("outcome") else {**again, "outcome": "died", "message": _died(again)}
        if time.monotonic() >= deadline:
            return reported
        time.sleep(restart_steps.POLL_S)


@contextlib.contextmanager
def _held_by(run: str, directory: str) -> Iterator[None]:
    """Hold the host for a turn of this run. Raises TurnError when another turn holds it, or another run's claim."""
    try:
        with host_state.locked(directory):
            # Once is enough: a claim changes under this lock alone, and the worker keeps it to its end.
            run_locks.require(directory, run)
            yield
    except run_locks.RunLockError as error:
        raise RestartError(f"{error}") from None
    except host_state.Held:
        raise RestartError(f"{restart_record.at_work(directory)}; run again when it ended") from None


def _detached(record: Record, work: Callable[[], None]) -> dict:
    record.step("begun")
    detached.begin(work)  # with the lock, which keeps the host until the worker ends
    return record.reported


def _take(spec: Mapping[str, Any], record: Record, directory: str) -> None:
    old = restart_files.read_text(spec["config_file"])
    new = restart_files.new_text(spec, old)
    before = own_node.registration(properties.parse(old), spec["node_id"], spec["mode"])
    try:
        if old != new:
            record.step("keep the old file")
            restart_files.keep(spec, directory, old)
        if not restart_steps.is_stopped(service.state(spec["service"])):
            restart_steps.stop(spec, record)
    except Exception as error:
        record.end("failed", f"{error}")
        return
    _bring_up(spec, record, directory, new if old != new else None, before)


def _finish(spec: Mapping[str, Any], record: Record, directory: str, down: bool) -> None:
    old = restart_files.read_text(spec["config_file"])
    values = properties.parse(old)
    if down:
        before = own_node.registration(values, spec["node_id"], spec["mode"])
        try:
            restart_steps.await_stopped(spec)
        except RestartError as error:
            record.end("failed", f"{error}")
            return
        new = restart_files.new_text(spec, old)
        _bring_up(spec, record, directory, new if old != new else None, before)
        return
    since = service.state(spec["service"]).get("started_at") or time.time()
    try:
        restart_steps.see_up(spec, record, values, {}, time.time())
        record.end("done")
    except Exception as error:
        record.end(*auto_revert.after(spec, record, directory, error, since))


def _bring_up(
    spec: Mapping[str, Any], record: Record, directory: str, new: str | None, before: Mapping[str, Any]
) -> None:
    """From here on the node is down, and whatever goes wrong ends in its being put back where that is safe."""
    since = time.time()
    try:
        if new is not None:
            record.step("write the file")
            restart_files.replace(spec["config_file"], new, spec.get("owner"))
        values = properties.parse(restart_files.read_text(spec["config_file"]))
        if spec.get("format"):
            _format(spec, record, values)
        restart_steps.start(spec, record, values, before)
        record.end("done")
    except Exception as error:
        record.end(*auto_revert.after(spec, record, directory, error, since))


def _format(spec: Mapping, record: Record, values: Mapping[str, str]) -> None:
    log_dirs = [path for path in (values.get("log.dirs") or "").split(",") if path]
    if any(os.path.exists(os.path.join(path, "meta.properties")) for path in log_dirs):
        return  # formatted by an earlier, interrupted turn of this attempt: preflight has judged whose it is
    record.step("format")
    done = as_user.run(spec["owner"], spec["format"], spec["start_timeout_s"])
    if done.code != 0:
        said = (done.errors or done.output).strip()[-600:] or f"exit code {done.code}"
        raise RestartError(f"{' '.join(spec['format'])} failed: {said}")


def _died(reported: Mapping) -> str:
    step = restart_record.last_step(reported)
    return f"the turn's worker is gone without a result, after step {step}: was the host restarted? Run again"
