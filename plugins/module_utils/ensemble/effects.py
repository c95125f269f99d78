# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The effects of cut_host on this host: files, rules, units, and its ZooKeeper server. Standard library only."""

from __future__ import annotations

import contextlib
import fcntl
import os
import socket
import stat
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Callable, List, Mapping, Sequence

from ansible_collections.quorumshift.kafka.plugins.module_utils.core.ensemble import (
    cut_host,
    ensemble_cut,
    ensemble_move,
    kafka_writes,
)
from ansible_collections.quorumshift.kafka.plugins.module_utils.core.ensemble.cut_host import NONE, CutError
from ansible_collections.quorumshift.kafka.plugins.module_utils.ensemble import units
from ansible_collections.quorumshift.kafka.plugins.module_utils.ensemble.rules import (
    block,
    count_rules,
    find_missing,
    insert,
    is_blocked,
    read_rules,
    remove,
)
from ansible_collections.quorumshift.kafka.plugins.module_utils.ensemble.state import (
    FENCE,
    HEAL,
    LOCK,
    MOVES,
    OBSERVER,
    ORDER,
    RECORD,
    STATE,
    TAKEN_BACK,
    VERIFIED,
    is_verified,
    is_worker_running,
    read_moves,
    read_record,
    read_state,
    read_taken_back_without,
)
from ansible_collections.quorumshift.kafka.plugins.module_utils.files import safe_files
from ansible_collections.quorumshift.kafka.plugins.module_utils.formats.zookeeper import zk_log
from ansible_collections.quorumshift.kafka.plugins.module_utils.host import detached, host_state, service
from ansible_collections.quorumshift.kafka.plugins.module_utils.probes.zookeeper import own_zk_server
from ansible_collections.quorumshift.kafka.plugins.module_utils.settings.addresses import HostPort, parse_host_port
from ansible_collections.quorumshift.kafka.plugins.module_utils.worker import restart_steps

CODE, JOB = "cut.zip", "job.json"
WATCH_S, REACH_S = 0.5, 0.5
STOP_S = 60


class Effects:
    """What a step of core.ensemble.cut_host does on this host.

    `spec`: the module's options and `steps.prepare`. `directory`: of the cut's files; `worker`: the name of the module
    whose `resume` is the worker's entry.
    """

    def __init__(self, spec: Mapping[str, Any], directory: str, worker: str = "") -> None:
        self.spec, self.directory, self.name, self.worker = spec, directory, spec["service"], worker
        reached = spec.get("reached") or read_record(directory).get("brokers_watched") or ()
        self._brokers = [parse_host_port(text) for text in reached]
        self._lost: List[str] = []
        self._lock: Any = None

    def _path(self, name: str) -> str:
        return os.path.join(self.directory, name)

    def _write(self, name: str, text: str, mode: int = 0o600) -> None:
        safe_files.replace(self._path(name), text.encode(), mode)

    # --- time

    def now(self) -> float:
        return time.clock_gettime(time.CLOCK_MONOTONIC)

    def clock(self) -> float:
        return round(time.time(), 3)

    def sleep(self, seconds: float) -> None:
        time.sleep(seconds)

    # --- files

    def lock(self) -> None:
        self._lock = open(self._path(LOCK), "a", encoding="ascii")  # noqa: SIM115
        fcntl.flock(self._lock, fcntl.LOCK_EX)

    def unlock(self) -> None:
        self._lock.close()

    def state(self) -> str:
        return read_state(self.directory)

    def set_state(self, after: str) -> None:
        self._write(STATE, f"{after}\n")

    def record(self) -> dict:
        return read_record(self.directory)

    def write_record(self, record: Mapping[str, Any]) -> None:
        host_state.write_json(self._path(RECORD), record)

    def order(self) -> dict | None:
        return host_state.read_json(self._path(ORDER))

    def write_order(self, order: Mapping[str, Any]) -> None:
        host_state.write_json(self._path(ORDER), order)

    def remove_order(self) -> None:
        for name in (ORDER, VERIFIED):
            with contextlib.suppress(FileNotFoundError):
                os.unlink(self._path(name))

    def forget(self) -> None:
        """Remove the files of the cut, the state last."""
        for name in (ORDER, VERIFIED, TAKEN_BACK, RECORD, FENCE, HEAL, OBSERVER, STATE):
            with contextlib.suppress(FileNotFoundError):
                os.unlink(self._path(name))

    def write_scripts(self) -> None:
        fence = ensemble_cut.fence_script(self.directory, read_rules(self.spec["fence"]), self.spec["ports"])
        self._write(FENCE, fence, 0o700)
        self._write(HEAL, ensemble_cut.heal_script(self.directory, self.name), 0o700)

    def verified(self) -> bool:
        return is_verified(self.directory)

    def set_verified(self) -> None:
        self._write(VERIFIED, "")

    def moves(self) -> int:
        return read_moves(self.directory)

    def set_moves(self, number: int) -> None:
        host_state.write_json(self._path(MOVES), {"moves": number})

    def taken_back_without(self) -> List[str]:
        return read_taken_back_without(self.directory)

    def set_taken_back_without(self, hosts: List[str]) -> None:
        if hosts or read_taken_back_without(self.directory):
            host_state.write_json(self._path(TAKEN_BACK), {"hosts": hosts})

    # --- rules

    def insert(self, kind: str) -> None:
        insert(read_rules(self.spec[kind]))

    def missing(self, *kinds: str) -> bool:
        return any(find_missing(read_rules(self.spec[kind])) for kind in kinds)

    def remove(self, *comments: str) -> None:
        remove(*comments)

    def rules_left(self, *comments: str) -> int:
        return count_rules(*comments)

    def block(self) -> None:
        block(self.spec["ports"])

    def blocked(self) -> bool:
        return is_blocked(self.spec["ports"])

    # --- units

    def heal(self) -> None:
        heal_now(self.directory)

    def add_drop_in(self) -> None:
        units.add_drop_in(self.name, self.directory)

    def remove_drop_in(self) -> None:
        units.remove_drop_in(self.name)

    def arm(self, seconds: float) -> None:
        units.arm(self._path(HEAL), seconds)

    def disarm(self) -> None:
        units.disarm()

    def worker_runs(self) -> bool:
        return is_worker_running()

    def kill_worker(self) -> None:
        units.stop_unit(f"{ensemble_cut.UNIT}.service")

    def start_worker(self, spec: Mapping[str, Any]) -> None:
        path = self._path(JOB)
        host_state.write_json(path, {**spec, "directory": self.directory})
        command = detached.command(self.directory, CODE, self.worker, path)
        service.begin_transient(f"{ensemble_cut.UNIT}.service", command)

    # --- the server

    def mode(self) -> str | None:
        return own_zk_server.read_answer(self._values())

    def last(self) -> int:
        return own_zk_server.read_last_zxid(self._values())

    def _values(self) -> Mapping[str, str]:
        return own_zk_server.read_values(self.spec["config_file"])

    def server_active(self) -> bool:
        return not restart_steps.is_stopped(service.read_state(self.name))

    def stop_server(self) -> None:
        if self.server_active():
            service.begin("stop", self.name)
            restart_steps.await_stopped({"service": self.name, "stop_timeout_s": STOP_S})

    def start_server(self) -> None:
        service.begin("start", self.name)

    def write_config(self) -> None:
        wanted = self.spec["participants"].encode("latin-1")
        before = safe_files.read(self.spec["config_file"])
        if before != wanted:
            safe_files.replace(self._path(OBSERVER), before, 0o600)
            self._replace_config(wanted)

    def restore_config(self) -> None:
        """Give the server its configuration as an observer of the source again, from before its promotion."""
        with contextlib.suppress(FileNotFoundError):
            self._replace_config(safe_files.read(self._path(OBSERVER)))

    def _replace_config(self, data: bytes) -> None:
        path = self.spec["config_file"]
        status = os.stat(path)
        safe_files.replace(path, data, stat.S_IMODE(status.st_mode), (status.st_uid, status.st_gid))

    def write_myid(self) -> None:
        """Write the server's id, and leave its directory to the owner of zoo.cfg."""
        status = os.stat(self.spec["config_file"])
        directory = self._values()["dataDir"]
        os.makedirs(directory, exist_ok=True)
        owner = (status.st_uid, status.st_gid)
        safe_files.replace(os.path.join(directory, "myid"), b"%d\n" % self.spec["myid"], 0o644, owner)

    def move_data(self) -> str:
        moved = ""
        for path in dict.fromkeys(own_zk_server.directories(self._values())):
            if os.path.isdir(path):
                moved = f"{path}.promoted-{int(time.time())}"
                os.rename(path, moved)
        return moved

    def has_data(self) -> bool:
        directories = own_zk_server.directories(self._values())
        return any(os.path.isdir(path) and bool(os.listdir(path)) for path in directories)

    def written(self, by_log_alone: bool) -> str:
        """Return what Kafka wrote to this server since it was promoted, '' for nothing.

        A server that got a snapshot from its leader does not have the log before it. Then the fence is the evidence,
        unless it was ever missing. With `by_log_alone` it is none: another server may have been open.
        """
        record = self.record()
        if not record.get("started"):
            return ""
        last = (record.get("promotion") or {}).get("zxids", {}).get(self.spec["host"], 0)
        snapshots, logs = own_zk_server.directories(self._values())
        if not os.path.isdir(logs):
            return ""  # moved by a run that ended then
        try:
            # the ends of sessions are no writes of Kafka: no client could reach this server
            transactions = zk_log.transactions(logs, last, snapshots)
            for write in kafka_writes.writes(transactions, self.spec["chroot"], {}):
                if not write.ends_session:
                    return kafka_writes.format_write(write)
        except zk_log.ZooKeeperFileError as error:
            exposed = "the fence was missing and " if record.get("exposed") else ""
            return f"{ensemble_move.UNKNOWN}, since {exposed}{error}" if exposed or by_log_alone else ""
        return ""

    # --- other servers, and brokers

    def leader_listens(self) -> bool:
        return any(_reaches(HostPort(host, port)) for host, port in self.spec["quorum_peers"])

    def electing(self) -> int:
        """Return how many other destination servers accept a connection at their election ports."""
        return sum(_everywhere(_reaches, [HostPort(host, port) for host, port in self.spec["election_peers"]]))

    def followers(self) -> int:
        try:
            return ensemble_cut.count_followers(own_zk_server.ask(self._values(), "mntr"))
        except OSError:
            return 0

    def followers_of_another(self) -> int:
        """Return how many voters follow another destination server in sync that says it is the leader, 0 if none
        does."""
        answers = _everywhere(_monitor, [HostPort(host, port) for host, port in self.spec["clients"]])
        return max((ensemble_cut.count_followers(text) for text in answers if ensemble_cut.is_leader(text)), default=0)

    def reached(self) -> List[str]:
        """Return the brokers that accept a connection from here."""
        brokers = [HostPort(host, port) for host, port in self.spec["brokers"]]
        return [str(broker) for broker, answer in zip(brokers, _everywhere(_reaches, brokers)) if answer]

    def watch(self) -> None:
        """Look all the time which brokers were reached before the cut and are not any more."""
        threading.Thread(target=self._watch, daemon=True).start()

    def _watch(self) -> None:
        while True:
            self.look()
            time.sleep(WATCH_S)

    def look(self) -> List[str]:
        answers = _everywhere(_reaches, self._brokers)
        self._lost = [str(broker) for broker, answer in zip(self._brokers, answers) if not answer]
        return self._lost

    def lost(self) -> List[str]:
        return self._lost


def heal_now(directory: str) -> None:
    """Undo cut and fence at once, unless the host was promoted. Raises CutError."""
    script = os.path.join(directory, HEAL)
    if os.path.exists(script):
        units.run(["/bin/sh", script])
        return
    # a run ended before it wrote the script: there are no rules of this cut, and perhaps of an older one
    if read_state(directory) not in ensemble_cut.ACCEPTED:
        remove(*cut_host.ALL_RULES)
        if read_state(directory) != NONE:
            safe_files.replace(os.path.join(directory, STATE), f"{ensemble_cut.HEALED}\n".encode(), 0o600)


def _everywhere(ask: Callable[[HostPort], Any], addresses: Sequence[HostPort]) -> List[Any]:
    with ThreadPoolExecutor(max_workers=min(32, len(addresses) or 1)) as pool:
        return list(pool.map(ask, addresses))


def _reaches(address: HostPort) -> bool:
    try:
        socket.create_connection((address.host, address.port), REACH_S).close()
        return True
    except OSError:
        return False


def _monitor(address: HostPort) -> str:
    """Return a server's answer to `mntr`, '' if it gives none."""
    try:
        with socket.create_connection((address.host, address.port), REACH_S) as sock:
            sock.sendall(b"mntr")
            parts: List[bytes] = []
            while True:
                part = sock.recv(1 << 16)
                if not part:
                    return b"".join(parts).decode(errors="replace")
                parts.append(part)
    except OSError:
        return ""


__all__ = ["CutError", "Effects", "heal_now"]
