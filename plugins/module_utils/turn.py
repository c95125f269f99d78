# Copyright: (c) 2026, Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""One node's turn: swap its properties, stop it, start it, see it up, by a worker that nothing on the way can cut.

The worker is a process of its own session on the managed host. It holds the host's lock while it works and writes
each step to `turn.json` before it takes it, so whoever comes later reads how far it got. Standard library only:
what it needs is loaded before it detaches, because Ansible removes the module's files behind it.
"""

from __future__ import annotations

import fcntl
import json
import os
import pwd
import signal
import subprocess
import time
from typing import Any, Callable, Mapping

from . import claims
from .addresses import HostPort, parse_listeners
from .formats import metadata_image, properties
from .judgements import kraft_config, node_mode
from .probes import kafka_wire, node, service
from .probes.socket_wire import TlsError, WireError
from .seal import masked, unseal
from .security import Security, Tls

LOCK = "lock"
CONFIGS = "configs"
POLL_S = 0.1
_ASKABLE = ("PLAINTEXT", "SASL_PLAINTEXT", "SASL_SSL", "SSL")
_LOG_LINES = 12


class TurnError(RuntimeError):
    """A turn that cannot begin or go on; the text is for the operator."""


def state_dir(root: str, cluster_id: str) -> str:
    """Return the host's directory of one cluster, made 0700 when missing."""
    path = os.path.join(root, cluster_id)
    os.makedirs(path, mode=0o700, exist_ok=True)
    return path


def planned(spec: Mapping[str, Any]) -> dict:
    """Return what a turn would do: {needed, file_changes, before, after, mode, running}.

    `before` and `after` are the properties file's text with secrets masked, as Ansible's diff mode shows it.
    """
    old = _read_text(spec["config_file"])
    new = _new_text(spec, old)
    running = _running_mode(spec, properties.parse(old)) if old else None
    needed = old != new or running != spec["mode"] or not service.state(spec["service"])["active"]
    return {
        "needed": needed,
        "file_changes": old != new,
        "before": _masked_text(old),
        "after": _masked_text(new),
        "running": running,
    }


def begin(spec: Mapping[str, Any]) -> dict:
    """Detach the worker of a turn and return its first record; a turn that needs nothing returns `outcome` `unneeded`.

    `spec`: {id, kind (`zk_migration`, `kraft`, `controller`, `final`), mode (that the node is to run in), run,
    cluster_id, state_dir, service, config_file, changes ({key: value or None}) or content ({key: value}, the whole
    file), owner, format (argv that formats an empty log directory, or None), log_file, stop_timeout_s,
    start_timeout_s, zookeeper ({servers, chroot} to read before anything is put back)}.
    Raises TurnError when another turn holds the host, or another run's claim.
    """
    plan = planned(spec)
    if not plan["needed"]:
        return {"id": spec["id"], "outcome": "unneeded", "changed": False, "steps": []}
    directory = state_dir(spec["state_dir"], spec["cluster_id"])
    lock = _lock(directory)
    try:
        # Once is enough: a claim changes under this lock alone, and the worker keeps it to its end.
        claims.require(directory, spec["run"])
    except claims.ClaimError as error:
        os.close(lock)
        raise TurnError(f"{error}") from None
    record = _Record(os.path.join(directory, node.RECORD), spec, plan)
    record.step("begun")
    if os.fork() == 0:
        _detach()
        _work(spec, record, directory)
        os._exit(0)
    os.close(lock)  # the worker's copy keeps the lock
    return record.told


def watch(root: str, cluster_id: str, turn_id: str, seen_steps: int, wait_s: float) -> dict:
    """Return the turn's record as soon as it shows more than `seen_steps` steps or an outcome, at the latest after
    `wait_s`. A worker that is gone without an outcome is told as outcome `died`. Raises TurnError for another turn."""
    directory = state_dir(root, cluster_id)
    deadline = time.monotonic() + wait_s
    while True:
        told = node.read_json(os.path.join(directory, node.RECORD)) or {}
        if told.get("id") != turn_id:
            raise TurnError(f"{directory}/{node.RECORD} tells of turn {told.get('id')}, not of {turn_id}")
        if told.get("outcome") or len(told["steps"]) > seen_steps:
            return told
        if not _held(directory):
            again = node.read_json(os.path.join(directory, node.RECORD)) or {}
            return again if again.get("outcome") else {**again, "outcome": "died", "message": _died(again)}
        if time.monotonic() >= deadline:
            return told
        time.sleep(POLL_S)


def _work(spec: Mapping[str, Any], record: _Record, directory: str) -> None:
    try:
        _take(spec, record, directory)
        record.end("done")
    except Exception as error:
        record.end("failed", f"{error}")


def _take(spec: Mapping[str, Any], record: _Record, directory: str) -> None:
    old = _read_text(spec["config_file"])
    new = _new_text(spec, old)
    before = _registration(properties.parse(old), spec)
    if old != new:
        record.step("keep the old file")
        _keep(spec, directory, old)
    if service.state(spec["service"])["active"]:
        record.step("stop")
        stopping = time.time()
        service.begin("stop", spec["service"])
        _wait(
            lambda: not service.state(spec["service"])["active"],
            spec["stop_timeout_s"],
            lambda: (
                f"service {spec['service']} to stop; systemd says {service.state(spec['service']).get('active_state')}"
            ),
        )
        record.note(stopped_at=time.time(), stop_s=time.time() - stopping)
    if old != new:
        record.step("write the file")
        _write(spec["config_file"], new, spec.get("owner"))
    values = properties.parse(new)
    if spec.get("format"):
        _format(spec, record, values)
    record.step("start")
    starting = time.time()
    log_from = os.path.getsize(spec["log_file"]) if os.path.exists(spec["log_file"]) else 0
    service.begin("start", spec["service"])
    try:
        _see_up(spec, record, values, before, starting)
    except TurnError as error:
        raise TurnError(f"{error}{_log_excerpt(spec['log_file'], log_from)}") from None


def _see_up(spec: Mapping, record: _Record, values: Mapping[str, str], before: dict, starting: float) -> None:
    deadline = starting + spec["start_timeout_s"]
    seen = {"text": "nothing yet"}

    def answers() -> bool:
        told = service.state(spec["service"])
        if told.get("active_state") == "failed" or (told["manager"] == "systemd" and not told["active"]):
            raise TurnError(f"{spec['service']} ended while it started (systemd: {told.get('result')})")
        running = _running_mode(spec, values)
        seen["text"] = f"its listener answers as {running}" if running else "its listener does not answer"
        return running == spec["mode"]

    _wait(
        answers,
        deadline - time.time(),
        lambda: f"{spec['service']} to answer in mode {spec['mode']}; last: {seen['text']}",
    )
    record.note(answered_at=time.time(), start_s=time.time() - starting)
    record.step("register")

    def registered() -> bool:
        told = _registration(values, spec)
        seen["text"] = f"registration {told}"
        return (
            bool(told) and told["incarnation_id"] != before.get("incarnation_id") and _as_expected(told, spec["mode"])
        )

    _wait(registered, deadline - time.time(), lambda: f"the quorum to register the node; last: {seen['text']}")
    record.note(registered_at=time.time(), register_s=time.time() - starting)


def _as_expected(registration: Mapping, mode: str) -> bool:
    """Say whether a registration is that of a node in this mode, a broker's unfenced."""
    if mode in ("controller_migration", "controller_final"):
        return registration["zk_migration_ready"] == (mode == "controller_migration")
    return not registration["fenced"] and registration["is_migrating_zk_broker"] == (mode == "zk_migration")


def _registration(values: Mapping[str, str], spec: Mapping) -> dict:
    """Return this node's registration as its own replica of the metadata log holds it ({} when there is none).

    Controllers, and brokers in migration and in KRaft mode, hold the log, so this needs no connection and no
    credentials.
    """
    directory = node.metadata_dir(dict(values))
    if not directory or not os.path.isdir(directory):
        return {}
    try:
        summary = metadata_image.summarise(directory)
    except (OSError, ValueError):
        return {}  # the log moves while the broker starts; the caller polls
    nodes = summary["controllers" if spec["kind"] in ("controller", "final") else "brokers"]
    return nodes.get(str(spec["node_id"])) or {}


def _running_mode(spec: Mapping, values: Mapping[str, str]) -> str | None:
    """Return the mode that the node's own listener shows, None when it does not answer.

    A listener that wants a client certificate shows nothing to us. Then the mode is that of the file, if the service
    was started after the file was written; that it is registered in that mode is asked for beside this.
    """
    address, protocol = _own_listener(values)
    security = Security()
    if protocol in ("SSL", "SASL_SSL"):
        # The node's own listener on its own host, and nothing secret is said: who answers need not be proven.
        security = Security(protocol="SSL", tls=Tls(verify=False, check_hostname=False))
    try:
        answer = kafka_wire.api_versions(address, security, timeout=2)
    except TlsError:
        started = service.state(spec["service"]).get("started_at") or 0
        return kraft_config.mode_at_next_start(values) if started > os.path.getmtime(spec["config_file"]) else None
    except WireError:
        return None
    return node_mode.node_mode(answer.api_keys, answer.zk_migration_ready)


def _own_listener(values: Mapping[str, str]) -> tuple[HostPort, str]:
    listeners = parse_listeners(values.get("listeners") or "PLAINTEXT://:9092")
    protocols = kraft_config.protocol_map(values)
    # A plain one first, then one with SASL: Kafka answers ApiVersions before login there, and wants no certificate.
    listener = min(listeners, key=lambda one: _ASKABLE.index(protocols.get(one.name, one.name)))
    host = listener.host if listener.host not in ("", "0.0.0.0", "::") else "localhost"
    return HostPort(host, listener.port), protocols.get(listener.name, listener.name)


def _new_text(spec: Mapping, old: str) -> str:
    wanted = spec.get("content") or spec.get("changes") or {}
    plain = {key: None if value is None else unseal(spec["run_key"], value) for key, value in wanted.items()}
    comment = f"Added by Quorumshift for mode {spec['mode']}"
    return properties.edit("" if spec.get("content") else old, plain, "" if spec.get("content") else comment)


def _masked_text(text: str) -> str:
    hidden = {key: masked(key, value) for key, value in properties.parse(text).items()}
    return properties.edit(text, hidden)


def _keep(spec: Mapping, directory: str, old: str) -> None:
    configs = os.path.join(directory, CONFIGS)
    os.makedirs(configs, mode=0o700, exist_ok=True)
    kept = os.path.join(configs, f"{os.path.basename(spec['config_file'])}.before-{spec['mode']}")
    if old and not os.path.exists(kept):
        _write(kept, old, None, 0o600)


def _format(spec: Mapping, record: _Record, values: Mapping[str, str]) -> None:
    log_dirs = [path for path in (values.get("log.dirs") or "").split(",") if path]
    if any(os.path.exists(os.path.join(path, "meta.properties")) for path in log_dirs):
        return  # formatted by an earlier, interrupted turn of this attempt: preflight has judged whose it is
    record.step("format")
    account = pwd.getpwnam(spec["owner"])
    done = subprocess.run(
        spec["format"],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
        timeout=spec["start_timeout_s"],
        preexec_fn=lambda: _become(account),
    )
    if done.returncode != 0:
        raise TurnError(f"{' '.join(spec['format'])} failed: {(done.stderr or done.stdout).strip()[-600:]}")


def _become(account: pwd.struct_passwd) -> None:
    os.setgid(account.pw_gid)
    os.setuid(account.pw_uid)


def _write(path: str, text: str, owner: str | None, mode: int = 0o640) -> None:
    """Replace a file in one step, keeping owner and mode of the one that stood there."""
    temporary = f"{path}.quorumshift"
    with open(os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w", encoding="latin-1") as stream:
        stream.write(text)
        stream.flush()
        os.fsync(stream.fileno())
    if os.path.exists(path):
        status = os.stat(path)
        os.chown(temporary, status.st_uid, status.st_gid)
        os.chmod(temporary, status.st_mode & 0o7777)
    else:
        if owner:
            account = pwd.getpwnam(owner)
            os.chown(temporary, account.pw_uid, account.pw_gid)
        os.chmod(temporary, mode)
    os.replace(temporary, path)
    directory = os.open(os.path.dirname(path), os.O_RDONLY)
    os.fsync(directory)
    os.close(directory)


def _read_text(path: str) -> str:
    if not os.path.exists(path):
        return ""
    with open(path, encoding="latin-1", newline="") as stream:
        return stream.read()


def _wait(condition: Callable[[], bool], bound_s: float, what: Callable[[], str]) -> None:
    deadline = time.monotonic() + bound_s
    while not condition():
        if time.monotonic() >= deadline:
            raise TurnError(f"waited {bound_s:.0f} s for {what()}")
        time.sleep(POLL_S)


def _log_excerpt(path: str, start: int) -> str:
    """Return what the node's own log says of its failure: its last errors of this start, or its last lines."""
    try:
        with open(path, encoding="utf-8", errors="replace") as stream:
            stream.seek(start)
            lines = [line.rstrip() for line in stream if line.strip()]
    except OSError as error:
        return f"\nits log could not be read: {error}"
    telling = [line for line in lines if " ERROR " in line or " FATAL " in line or "Exception" in line] or lines
    return "\n".join([f"\n{path} says:", *telling[-_LOG_LINES:]])


def _lock(directory: str) -> int:
    handle = os.open(os.path.join(directory, LOCK), os.O_RDWR | os.O_CREAT, 0o600)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(handle)
        other = node.read_json(os.path.join(directory, node.RECORD)) or {}
        raise TurnError(
            f"another turn is at work on this host: {other.get('id')}, at step {_last(other)}; run again when it ended"
        ) from None
    return handle


def _held(directory: str) -> bool:
    handle = os.open(os.path.join(directory, LOCK), os.O_RDWR | os.O_CREAT, 0o600)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(handle)
    return False


def _detach() -> None:
    """Leave the session, the terminal and the pipes of the process that began the turn."""
    os.setsid()
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    null = os.open(os.devnull, os.O_RDWR)
    for handle in (0, 1, 2):
        os.dup2(null, handle)


def _last(told: Mapping) -> str:
    return told["steps"][-1]["name"] if told.get("steps") else "none"


def _died(told: Mapping) -> str:
    return f"the turn's worker is gone without a result, after step {_last(told)}: was the host restarted? Run again"


class _Record:
    """The turn as the host tells it: written whole at each step, by rename, so that a reader never sees half of it."""

    def __init__(self, path: str, spec: Mapping, plan: Mapping):
        self.path = path
        shown = ("id", "kind", "mode", "run", "service", "config_file")
        self.told: dict = {key: spec[key] for key in shown}
        self.told.update({"steps": [], "outcome": None, "message": "", "changed": True, "times": {}})
        self.told["diff"] = {"before": plan["before"], "after": plan["after"]}

    def step(self, name: str) -> None:
        self.told["steps"].append({"name": name, "at": time.time()})
        self._save()

    def note(self, **times: float) -> None:
        self.told["times"].update({key: round(value, 3) for key, value in times.items()})
        self._save()

    def end(self, outcome: str, message: str = "") -> None:
        self.told.update({"outcome": outcome, "message": message, "ended_at": time.time()})
        self._save()

    def _save(self) -> None:
        temporary = self.path + ".new"
        with open(os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w", encoding="utf-8") as stream:
            json.dump(self.told, stream)
            stream.flush()
            os.fsync(stream.fileno())
        os.replace(temporary, self.path)
