# Copyright: (c) 2026, Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the module zk_cut does on a destination host besides orders to the worker. Standard library only."""

from __future__ import annotations

import contextlib
import os
import time
from typing import Any, Mapping

from .. import detached, host_state, restart_steps, safe_files
from ..addresses import parse_host_port, parse_zookeeper_connect
from ..core import ensemble_cut, zk_observer
from ..formats import properties
from ..probes import service, tcp_connections
from ..probes.own_zk_server import directories, values_of
from . import worker
from .rules import read_rules, remove, rules_left
from .state import (
    FENCE,
    HEAL,
    NONE,
    ORDER,
    RECORD,
    STATE,
    CutError,
    changed_state,
    locked,
    path_of,
    read_record,
    state_of,
    works,
)
from .units import add_drop_in, heal_now, remove_drop_in, run, stop_unit

CODE, JOB = "cut.zip", "job.json"


def prepared(given: Mapping[str, Any]) -> dict:
    """Return what `begin` needs of this host. Raises OSError where a name of the source has no address."""
    values = values_of(given["config_file"])
    destination = {int(number): one for number, one in given["destination_servers"].items()}
    members = ensemble_cut.source_members(configured(given["config_file"]), destination)
    quorum_ports = ensemble_cut.ports_of([*members, *map(zk_observer.Member, destination.values())])
    hosts = ensemble_cut.hosts_of(members)
    addresses = [address for host in hosts for address, _port in tcp_connections.resolved(host, 0)]
    addresses += [address for host in given["source_addresses"] for address, _port in tcp_connections.resolved(host, 0)]
    ports = [values[key] for key in ("clientPort", "secureClientPort") if values.get(key)]
    data = safe_files.read(given["config_file"])
    changes = ensemble_cut.promotion(values, destination)
    return {
        "fence": [list(one) for one in ensemble_cut.fence(ports)],
        "cut": [list(one) for one in ensemble_cut.cut(list(dict.fromkeys(addresses)), quorum_ports)],
        "participants": properties.edit(data, changes, "Ensemble of its own (Quorumshift)").decode("latin-1"),
        "peers": [list(one) for one in ensemble_cut.peers(destination, given["myid"])],
        "clients": [list(one) for one in parse_zookeeper_connect(given["destination_connect"]).servers],
        "brokers": [list(parse_host_port(one)) for one in given["brokers"]],
    }


def configured(config_file: str) -> Mapping[int, zk_observer.Member]:
    """Return the members in a server's configuration."""
    values = values_of(config_file)
    dynamic = values.get("dynamicConfigFile")
    return zk_observer.ensemble(properties.parse(safe_files.read(dynamic)) if dynamic else values).members


def begin(given: Mapping[str, Any], prepared: Mapping[str, Any]) -> None:
    """Arm the dead man's switch, start the worker, and return. Raises CutError, ServiceError, OSError.

    `prepared`: {fence, cut: rules; participants: the zoo.cfg after the promotion, as Latin-1; peers: quorum ports of
    the other destination servers, clients: client ports of all, brokers: listeners to watch, each [[host, port]]}.
    """
    directory = path_of(given)
    os.makedirs(directory, mode=0o700, exist_ok=True)
    if works():
        if state_of(directory) != ensemble_cut.HEALED:
            raise CutError(
                f"a worker runs on this host in state {state_of(directory)}. Wait until it ends, and run again"
            )
        suspend()  # it hung while the timer healed the host, and has nothing left to do
    if state_of(directory) in ensemble_cut.UNDONE_BY_ITSELF:  # a reboot took the rules, the worker and the timer
        heal_now(directory)
    if not changed_state(directory, (NONE, ensemble_cut.HEALED), ensemble_cut.BEGUN):
        raise CutError(f"this host is in state {state_of(directory)}. Nothing was changed")
    with contextlib.suppress(FileNotFoundError):
        os.unlink(os.path.join(directory, ORDER))
    _write(directory, FENCE, ensemble_cut.fence_script(directory, read_rules(prepared["fence"])), 0o700)
    _write(directory, HEAL, ensemble_cut.heal_script(directory), 0o700)
    lost = worker.not_reached(prepared["brokers"])
    reached = [one for one in prepared["brokers"] if one not in lost]
    record = {
        **{"id": given["id"], "steps": [], "reason": "", "last": None, "brokers_lost": []},
        "brokers_watched": [worker.text_of(one) for one in reached],
    }
    host_state.write_json(os.path.join(directory, RECORD), record)
    add_drop_in(given["service"], directory)
    unit, after = f"--unit={ensemble_cut.UNIT}-deadline", f"--on-active={given['deadline_s']:.1f}s"
    timer = ["systemd-run", "--quiet", "--collect", unit, after, "--timer-property=AccuracySec=50ms"]
    stop_unit(f"{ensemble_cut.UNIT}-deadline.timer")
    deadline = worker.uptime() + given["deadline_s"]
    run([*timer, "/bin/sh", os.path.join(directory, HEAL)])
    spec = {**given, **prepared, "directory": directory, "deadline": deadline, "reached": reached}
    _begin_unit(directory, spec)


def resume_promotion(given: Mapping[str, Any], prepared: Mapping[str, Any]) -> None:
    """Start a worker that finishes a promotion whose worker ended. Raises CutError, ServiceError, OSError."""
    directory = path_of(given)
    if works():
        return
    spec = {**given, **prepared, "directory": directory, "deadline": 0, "id": read_record(directory).get("id")}
    _begin_unit(directory, {**spec, "resumed": True})


def _begin_unit(directory: str, spec: Mapping[str, Any]) -> None:
    path = os.path.join(directory, JOB)
    host_state.write_json(path, spec)
    service.begin_transient(f"{ensemble_cut.UNIT}.service", detached.command(directory, CODE, worker.__name__, path))


def suspend() -> None:
    """Stop the worker of this host."""
    stop_unit(f"{ensemble_cut.UNIT}.service")


def take_back(given: Mapping[str, Any]) -> str:
    """Undo an accepted promotion whose client port was never open; return where the data was moved, '' if there was
    none.

    Kafka cannot have written to this server, since it was fenced all the time. Its data is of an ensemble of its own
    now, which must not join the source again: it would keep what the source does not have (docs, rollback). Raises
    CutError, ServiceError, RestartError, OSError.
    """
    directory, name = path_of(given), given["service"]
    suspend()
    with locked(directory):
        seen = state_of(directory)
        if seen != ensemble_cut.PROMOTING or not rules_left(ensemble_cut.FENCE_COMMENT):
            raise CutError(
                f"this host is in state {seen}, and its client port is not fenced: Kafka may have written to this "
                "server. There is no rollback to the source without loss"
            )
    service.begin("stop", name)
    restart_steps.await_stopped({"service": name, "stop_timeout_s": given["timeout_s"]})
    moved = ""
    for path in dict.fromkeys(directories(values_of(given["config_file"]))):
        if os.path.isdir(path):
            moved = f"{path}.promoted-{int(time.time())}"
            os.rename(path, moved)
    with locked(directory):
        safe_files.replace(os.path.join(directory, STATE), f"{ensemble_cut.HEALED}\n".encode(), 0o600)
    remove(ensemble_cut.CUT_COMMENT, ensemble_cut.FENCE_COMMENT)
    remove_drop_in(name)
    return moved


def _write(directory: str, name: str, text: str, mode: int) -> None:
    safe_files.replace(os.path.join(directory, name), text.encode(), mode)
