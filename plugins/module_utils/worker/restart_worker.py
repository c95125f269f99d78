# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Restart one node in a detached worker: replace its properties file, stop it, start it, wait until it is up.

The worker is a transient unit of systemd on the managed host, so a lost connection and the end of its session do not
interrupt it. Without systemd it is a process in its own session. It holds the node's lock and writes each step to
`restart.json` before it takes it, so a later run reads how far it got.
Standard library only. Everything is loaded before the worker detaches, because Ansible removes the module's files.
"""

from __future__ import annotations

import contextlib
import os
import re
import shlex
import time
from typing import Any, Callable, Iterator, Mapping

from ansible_collections.quorumshift.kafka.plugins.module_utils.core.migration import kraft_config, transitions
from ansible_collections.quorumshift.kafka.plugins.module_utils.core.run import node_key
from ansible_collections.quorumshift.kafka.plugins.module_utils.host import (
    as_user,
    detached,
    host_state,
    run_lock_file,
    service,
)
from ansible_collections.quorumshift.kafka.plugins.module_utils.probes.node import installation, own_node
from ansible_collections.quorumshift.kafka.plugins.module_utils.settings import config_values, properties
from ansible_collections.quorumshift.kafka.plugins.module_utils.worker import (
    auto_revert,
    home_link,
    host_identity,
    restart_files,
    restart_hook,
    restart_record,
    restart_steps,
)
from ansible_collections.quorumshift.kafka.plugins.module_utils.worker.restart_record import Record, RestartError

TAKEN_S = 60.0
REGISTER_S = 1.0
Work = Callable[[Mapping[str, Any], Record, str], None]


def plan_restart(spec: Mapping[str, Any]) -> dict:
    """Return what a restart would do: {needed, before, after}.

    `before` and `after` are the text of the properties file with secrets masked, for Ansible's diff mode.
    """
    old = restart_files.read_bytes(spec["config_file"])
    new = restart_files.new_bytes(spec, old)
    values = properties.parse(old)
    running = own_node.read_running_mode(values, spec["config_file"], spec["service"]) if old else None
    state = service.read_state(spec["service"])
    needed = old != new or running != spec["mode"] or not state["active"] or _is_due(spec, state)
    return {"needed": needed, **_mask(old, new)}


def _is_due(spec: Mapping[str, Any], state: Mapping[str, Any]) -> bool:
    """Return whether a node that is as it should be is restarted all the same: in a plain restart, unless its process
    started after `since`; in one with a change, if it runs another release, or started before its file was written."""
    kind = transitions.KINDS.get(spec["kind"])
    if kind is None:  # an interrupted restart is to be finished, in check mode
        return False
    if kind.changes_host:
        release = spec.get("release")
        if release:
            return home_link.read_running_version(spec["service"]) != release["version"]
        return (state.get("started_at") or 0) < os.path.getmtime(spec["config_file"])
    since = spec.get("since") or 0
    return kind.is_plain and not (since and (state.get("started_at") or 0) >= since)


def kept_mode(spec: Mapping[str, Any]) -> str:
    """Return the mode that a node keeps in a plain restart. Raises RestartError where its file has another mode than
    the one in which it runs, or one of a migration."""
    values = properties.parse(restart_files.read_bytes(spec["config_file"]))
    allowed = transitions.KINDS[spec["kind"]].before
    mode = kraft_config.mode_at_next_start(values)
    if mode not in allowed:
        raise RestartError(
            f"{spec['config_file']} has mode {mode}, a plain restart needs {' or '.join(allowed)}. Finish the "
            "migration with quorumshift.kafka.migrate, or take it back with quorumshift.kafka.rollback (QS-RESTART-003)"
        )
    running = own_node.read_running_mode(values, spec["config_file"], spec["service"])
    if running not in (None, mode):
        raise RestartError(
            f"the node runs in mode {running}, and {spec['config_file']} has mode {mode}: a plain restart would change "
            "its mode. Correct the file (QS-RESTART-003)"
        )
    return mode


def _mask(old: bytes, new: bytes) -> dict[str, str]:
    return {"before": restart_files.masked_text(old), "after": restart_files.masked_text(new, old)}


def begin(spec: Mapping[str, Any]) -> dict:
    """Detach the worker of a restart and return its first record, with `outcome` `unneeded` if nothing is to be done.

    `spec`: {id, kind (migration.transitions.KINDS), mode (the node's mode after the restart), run, role, node_id,
    cluster_id, state_dir, service, config_file, changes ({key: value or None}) or content ({key: value}, the complete
    file), owner, format (argv that formats an empty log directory, or None), log_file, stop_timeout_s, start_timeout_s,
    registered (ids, as text, of the brokers registered in the quorum), only_start (whether a running node must not be
    stopped), release ({home: a link, to: the directory to which it is switched, version: that is there}, or None; `to`
    is `home` where the hook installs the release), hook (the operator's command, or None), hook_timeout_s}.
    Raises RestartError when another restart or another run's lock holds the node, host_state.OldLayoutError while the
    host has files of an earlier version.
    """
    directory = host_state.node_directory(spec)
    plan = plan_restart(spec)
    if not plan["needed"]:
        identity = {key: spec[key] for key in ("id", "kind", "mode")}
        return {**identity, "outcome": "unneeded", "changed": False, "steps": []}
    host_state.make_node_directory(spec)
    with _hold(spec, directory):
        record = Record(directory, spec, plan["before"], plan["after"])
        if restart_steps.is_stopped(service.read_state(spec["service"])):
            record.values["earlier"] = auto_revert.find_left(spec, directory)._asdict()
        return _detach(record, _restart, spec)


def finish(spec: Mapping[str, Any]) -> dict:
    """Detach a worker that completes an interrupted restart or starts a node that is down. Return its first record, or
    the earlier one unchanged if that restart has succeeded meanwhile and the node runs.

    The properties file is replaced by rename, so it is complete and its mode is the one the node must run in. If the
    node is down, the worker applies `changes` and starts it; if it runs, the worker waits until it is up and never
    stops it. `spec` and errors as for `begin`, without kind and mode.
    """
    directory = host_state.make_node_directory(spec)
    with _hold(spec, directory):
        existing = restart_record.read(directory)
        down = restart_steps.is_stopped(service.read_state(spec["service"]), or_stopping=True)
        if existing.get("outcome") not in (None, "failed") and not down:
            return {**existing, "changed": False}
        old = restart_files.read_bytes(spec["config_file"])
        mode = kraft_config.mode_at_next_start(spec.get("content") or properties.parse(old))
        if mode in ("invalid", "combined"):
            raise RestartError(
                f"{spec['config_file']} has mode {mode}. Correct the file and run again (QS-RESTART-011)"
            )
        kind = transitions.find_forward_kind(mode)  # None in plain ZooKeeper mode, to which the kind `zk` leads
        spec = {**spec, "mode": mode, "kind": kind.name if kind else mode, "only_start": True}
        new = restart_files.new_bytes(spec, old) if down else old
        repair = {**spec, "kind": auto_revert.REPAIR}
        left = auto_revert.find_left(repair, directory)
        record = Record(directory, repair, **_mask(old, new))
        record.values.update(changed=down, earlier=left._asdict())
        return _detach(record, _finish, spec)


def watch(given: Mapping[str, Any], restart_id: str, seen_steps: int, wait_s: float) -> dict:
    """Return the restart's record once it has more than `seen_steps` steps or an outcome, at the latest after `wait_s`.
    `given`: as of host_state.node_directory.

    A node that answers is nearly always registered within moments. Its registration is waited for here, up to
    REGISTER_S, since the next call would first load its code again.

    The outcome is `died` if the worker ended without one. Raises RestartError if the record is of another restart.
    """
    directory = host_state.make_node_directory(given)
    deadline = time.monotonic() + wait_s
    answered_at = None
    while True:
        record = restart_record.read(directory)
        if record.get("id") != restart_id:
            raise RestartError(f"{directory} records restart {record.get('id')}, not {restart_id} (QS-RESTART-011)")
        if record.get("outcome"):
            return record
        if len(record["steps"]) > seen_steps:
            answered_at = answered_at or time.monotonic()
            if record["steps"][-1]["name"] != restart_steps.REGISTER or time.monotonic() >= answered_at + REGISTER_S:
                return record
        # A unit's process takes the lock when it has loaded its code.
        if not host_state.is_held(directory) and not (record.get("unit") and service.is_running(record["unit"])):
            detached.remove_job(directory)
            last = restart_record.read(directory)
            return last if last.get("outcome") else {**last, "outcome": "died", "message": _died(last)}
        if time.monotonic() >= deadline:
            return record
        time.sleep(restart_steps.POLL_S)


@contextlib.contextmanager
def _hold(spec: Mapping[str, Any], directory: str) -> Iterator[None]:
    """Lock the node for a restart of this run. Raises RestartError when another restart or another run holds it, or
    when the host is of another cluster."""
    try:
        with host_state.lock(directory):
            # Checked once: a run lock changes only under this lock, which the worker keeps until it ends.
            run_lock_file.require(directory, spec["run"])
            new = host_identity.log_dirs(spec.get("content") or {})
            host_identity.require(spec["config_file"], spec["cluster_id"], spec["node_id"], new=new)
            yield
    except (run_lock_file.RunLockError, host_identity.ForeignHost) as error:
        raise RestartError(f"{error}") from None
    except host_state.Held:
        raise RestartError(
            f"{restart_record.describe_work(directory)}. Run again when it has ended (QS-RESTART-011)"
        ) from None


def _detach(record: Record, work: Work, spec: Mapping[str, Any]) -> dict:
    """Start the worker and return its record. Raises RestartError where it would not survive the session."""
    key = node_key.node_key(spec["role"], spec["node_id"])
    name = f"quorumshift-{spec['cluster_id']}-{spec['run']}-{key}-{record.values['kind']}.service"
    unit = re.sub(r"[^\w.-]", "_", name)
    record.values["unit"] = unit if service.runs_systemd() else ""
    record.step("begun")
    if record.values["unit"]:
        try:
            detached.begin_unit(unit, __name__, {"work": work.__name__, "spec": spec}, record.directory)
            return record.values
        except service.ServiceError as error:
            if service.is_running(detached.LOGIND):
                why = (
                    f"{error}. Without a unit the restart would end with this login, because {detached.LOGIND} may "
                    "end what a user leaves running. Fix systemd-run on this host, then run again. The node was not "
                    "stopped"
                )
                record.end("failed", f"{why}.")
                raise RestartError(why) from None
        record.values["unit"] = ""
        record.note()
    detached.begin(lambda: work(spec, record, record.directory))  # the worker inherits the lock
    return record.values


def resume(path: str) -> None:
    """Do the work of a worker in a unit of its own: what the module began, unless that was replaced meanwhile."""
    job = detached.take_job(path)
    spec, directory = job["spec"], os.path.dirname(path)
    with _locked_by_worker(directory):
        record = Record.existing(directory)
        begun = restart_record.last_step(record.values) == "begun" and not record.values.get("outcome")
        if not begun or record.values["id"] != spec["id"]:
            return
        try:
            run_lock_file.require(directory, spec["run"])
        except run_lock_file.RunLockError as error:
            record.end("failed", f"{error}. The node was not stopped.")
            return
        {"_restart": _restart, "_finish": _finish}[job["work"]](spec, record, directory)


@contextlib.contextmanager
def _locked_by_worker(directory: str) -> Iterator[None]:
    """Hold the node's lock as soon as the module that began the restart releases it, or another reads whether it is
    held. Raises host_state.Held if another restart holds it."""
    deadline = time.monotonic() + TAKEN_S
    while True:
        with contextlib.ExitStack() as stack:
            try:
                stack.enter_context(host_state.lock(directory))
            except host_state.Held:
                if time.monotonic() >= deadline:
                    raise
            else:
                yield
                return
        time.sleep(restart_steps.POLL_S)


def _restart(spec: Mapping[str, Any], record: Record, directory: str) -> None:
    old = restart_files.read_bytes(spec["config_file"])
    new = restart_files.new_bytes(spec, old)
    before = own_node.read_registration(properties.parse(old), spec["node_id"], spec["mode"])
    try:
        if old != new:
            record.step("keep the old file")
        if transitions.KINDS[spec["kind"]].changes_host:
            left = record.values.get("earlier") or {}
            record.has(auto_revert.keep_earlier(spec, directory, old, new, left)._asdict())
        elif old != new:
            restart_files.keep(spec, directory, old)
        if not restart_steps.is_stopped(service.read_state(spec["service"])):
            restart_hook.run(spec, record, restart_hook.BEFORE_STOP)
            restart_steps.stop(spec, record)
    except Exception as error:
        record.end("failed", f"{error}")
        return
    _bring_up(spec, record, directory, new if old != new else None, before)


def _finish(spec: Mapping[str, Any], record: Record, directory: str) -> None:
    old = restart_files.read_bytes(spec["config_file"])
    values = properties.parse(old)
    if record.values["changed"]:  # the node is down
        before = own_node.read_registration(values, spec["node_id"], spec["mode"])
        try:
            restart_steps.await_stopped(spec)
        except RestartError as error:
            record.end("failed", f"{error}")
            return
        new = restart_files.new_bytes(spec, old)
        _bring_up(spec, record, directory, new if old != new else None, before)
        return
    since = service.read_state(spec["service"]).get("started_at") or time.time()
    try:
        restart_steps.await_up(spec, record, values, {}, time.time())
        outcome = "done", ""
    except Exception as error:
        outcome = _revert(spec, record, directory, error, since)
    _end(spec, record, *outcome, outcome[0] != "failed")


def _bring_up(
    spec: Mapping[str, Any], record: Record, directory: str, new: bytes | None, before: Mapping[str, Any]
) -> None:
    """Write the file and start the node. On any error, revert it where that is safe."""
    since, release, failed, is_up = time.time(), spec.get("release"), "", True
    try:
        if new is not None:
            record.step("write the file")
            restart_files.replace(spec["config_file"], new, spec.get("owner"))
        # After the file, without which the release would use its own inter.broker.protocol.version
        if release and not home_link.is_in_place(release):
            record.step("switch the release")
            home_link.switch(release["home"], release["to"])
        failed = _run_hook_between(spec, record, _read_earlier(record))
        values = properties.parse(restart_files.read_bytes(spec["config_file"]))
        if spec.get("format"):
            _format(spec, record, values)
        restart_steps.start(spec, record, values, before)
        if release:
            home_link.require(spec["service"], release["home"], release["version"])
        outcome = "done", ""
        if failed:
            outcome = (
                "failed",
                f"{failed}. {spec['service']} was started all the same and is up. Fix the hook and run again",
            )
    except Exception as error:
        outcome = _revert(spec, record, directory, error, since)
        is_up = outcome[0] == "reverted"
    _end(spec, record, *outcome, is_up)


def _read_earlier(record: Record) -> auto_revert.Earlier:
    """Return what the node had before the restart, or before the one that this one finishes."""
    return auto_revert.Earlier(**(record.values.get("earlier") or {}))


def _run_hook_between(spec: Mapping[str, Any], record: Record, had: auto_revert.Earlier) -> str:
    """Run the hook between stop and start; return why it failed, '' if it did not.

    Raises RestartError where the node has something to go back to: what the hook was to install is missing then.
    """
    text = restart_files.read_bytes(spec["config_file"])
    try:
        restart_hook.run(spec, record, restart_hook.STOPPED, had.version)
        if spec.get("hook") and not restart_steps.is_stopped(service.read_state(spec["service"]), or_stopping=True):
            raise restart_hook.HookFailed(
                f"the hook started {spec['service']}, which the restart starts (QS-RESTART-006)"
            )
        if restart_files.read_bytes(spec["config_file"]) != text:
            raise restart_hook.HookFailed(f"the hook changed {spec['config_file']} (QS-RESTART-006)")
        if had.is_in_place:
            home_link.require_installed(had.home, had.version)
    except RestartError as error:
        if had.home or had.file:
            raise
        return f"{error}"
    return ""


def _revert(spec: Mapping[str, Any], record: Record, directory: str, error: Exception, since: float) -> tuple[str, str]:
    """Give a node that did not come up what it had before, where that is safe. Return (outcome, message)."""
    had = _read_earlier(record)
    if had.home or had.file or transitions.KINDS[spec["kind"]].changes_host:
        return auto_revert.revert_upgrade(spec, record, error)
    return auto_revert.revert(spec, record, directory, error, since)


def _end(spec: Mapping[str, Any], record: Record, outcome: str, message: str, is_up: bool) -> None:
    """Run the hook of a node that is up again, and record the outcome."""
    try:
        if is_up:
            restart_hook.run(spec, record, restart_hook.UP, reverts=outcome == "reverted")
    except RestartError as error:
        call = shlex.join([spec["hook"], restart_hook.UP])
        again = f"{spec['service']} is up, and its hook failed: {error}. Fix it, and call it on this host: {call}"
        outcome = "failed" if outcome == "done" else outcome
        message = "\n".join(text for text in (message, again) if text)
    record.end(outcome, message)


def _format(spec: Mapping, record: Record, values: Mapping[str, str]) -> None:
    if any(os.path.exists(os.path.join(path, "meta.properties")) for path in config_values.log_dirs(values)):
        return  # formatted by an interrupted restart of this attempt; preflight has checked its cluster id
    record.step("format")
    command = [installation.tool_path(spec["format"][0]), *spec["format"][1:]]
    done = as_user.run(spec["owner"], command, spec["start_timeout_s"])
    if done.code != 0:
        reason = (done.errors or done.output).strip()[-600:] or f"exit code {done.code}"
        raise RestartError(f"{shlex.join(command)} failed: {reason} (QS-RESTART-016)")


def _died(record: Mapping) -> str:
    step = restart_record.last_step(record)
    return (
        f"the restart worker ended without a result after step {step}: was the host rebooted? Run "
        "again (QS-RESTART-017)"
    )
