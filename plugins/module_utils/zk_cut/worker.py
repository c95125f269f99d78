# Copyright: (c) 2026, Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Cut this host's observer off from its source, and make it a voter of its own ensemble: the work of a transient unit.

Standard library only. Everything is loaded before, because Ansible removes the module's files.
"""

from __future__ import annotations

import os
import socket
import stat
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any, List, Mapping, Sequence

from .. import host_state, restart_steps, safe_files
from ..addresses import HostPort
from ..core import ensemble_cut
from ..probes import service
from ..probes.own_zk_server import ask, last_zxid, mode_of, values_of
from .rules import insert, read_rules, remove, rules_left
from .state import ORDER, POLL_S, RECORD, STATE, CutError, changed_state, locked, read_record, state_of
from .units import heal_now, remove_drop_in, stop_unit

WATCH_S, WAIT_S = 0.5, 1.0
NOT_SERVING_S = 5.0
HURRY_S = 120.0  # sessions are lost by then: a promotion that goes on later fills no server's log with questions


def resume(path: str) -> None:
    """Do the worker's work: the entry of the transient unit."""
    spec = host_state.read_json(path)
    os.environ["PATH"] = "/usr/sbin:/usr/bin:/sbin:/bin"
    os.unlink(path)
    _Worker(spec).run()


class _Worker:
    """One cut on one host."""

    def __init__(self, spec: Mapping[str, Any]) -> None:
        self.spec, self.directory = spec, spec["directory"]
        self.values = values_of(spec["config_file"])
        self.record = read_record(self.directory)
        self.reached = [tuple(one) for one in spec.get("reached") or ()]
        self.lost: List[str] = []
        self.began = time.monotonic()

    def run(self) -> None:
        try:
            if self.spec.get("resumed"):
                self.promote(self.record.get("promotion") or {})
                return
            threading.Thread(target=self.watch, daemon=True).start()
            if not self.advance(ensemble_cut.BEGUN, ensemble_cut.FENCED, self.fence):
                return
            got = self.await_order("cut")
            if got is None or not self.advance(ensemble_cut.FENCED, ensemble_cut.CUT, self.cut):
                return
            got = self.await_order("promote")
            if got is None:
                return
            checked = (got.get("zxids") or {}).get(self.spec["host"])
            if checked != self.record["last"]:
                self.heal(f"the order to promote is for zxid {checked}, and the files lead to {self.record['last']}")
            elif changed_state(self.directory, (ensemble_cut.CUT,), ensemble_cut.PROMOTING):
                self.note(promotion={"zxids": got["zxids"], "first": got["first"]})
                self.step("promotion accepted")
                self.promote(got)
            else:
                self.note(reason="the deadline passed when the order to promote came")
        except Exception as error:  # the operator reads it; what is not promoted heals itself
            self.note(reason=f"{type(error).__name__}: {error}")
            if state_of(self.directory) in ensemble_cut.UNDONE_BY_ITSELF:
                heal_now(self.directory)

    def advance(self, before: str, after: str, work: Any) -> bool:
        """Do a step under the lock, so that heal.sh runs before or after it; return whether it was due."""
        with locked(self.directory):
            if state_of(self.directory) != before:
                return False
            work()
            if after == ensemble_cut.FENCED:
                safe_files.replace(os.path.join(self.directory, STATE), f"{after}\n".encode(), 0o600)
        if after == ensemble_cut.CUT:
            self.await_not_serving()
            return changed_state(self.directory, (before,), after)
        return True

    def fence(self) -> None:
        insert(read_rules(self.spec["fence"]))
        self.step("fenced")

    def cut(self) -> None:
        insert(read_rules(self.spec["cut"]))
        self.step("cut")

    def await_not_serving(self) -> None:
        """Wait until the server serves no more and its files have all that it had."""
        deadline = time.monotonic() + NOT_SERVING_S
        while mode_of(self.values):
            if time.monotonic() > deadline:
                raise CutError(f"the server still serves {NOT_SERVING_S:.0f} s after the cut")
            time.sleep(POLL_S)
        self.step("not serving")
        last = last_zxid(self.values)
        while True:  # the server writes what it has in its queue before it looks for a leader
            time.sleep(0.05)
            again = last_zxid(self.values)
            if again == last:
                break
            last = again
        self.look()  # a broker that was lost just before may not be noticed yet
        self.note(last=last, brokers_lost=self.lost)
        self.step("read")

    def await_order(self, name: str) -> dict | None:
        """Return the order of this name; None once the host is healed. Watches the brokers meanwhile."""
        path = os.path.join(self.directory, ORDER)
        while True:
            got = host_state.read_json(path) or {}
            if got.get("id") == self.spec["id"]:
                if got["name"] == "heal":
                    self.heal(got.get("reason") or "the run ordered it")
                    return None
                if got["name"] == name:
                    left = self.spec["deadline"] - uptime()
                    if name == "promote" and left < ensemble_cut.LEAST_LEFT_S:
                        self.heal(f"the order to promote came {left:.1f} s before the deadline")
                        return None
                    return got
            if state_of(self.directory) == ensemble_cut.HEALED:
                self.note(reason=self.record["reason"] or "the deadline passed without an order")
                self.step("healed")
                return None
            if self.spec["deadline"] < uptime():
                self.heal("the deadline passed without an order")
                return None
            if self.lost != self.record["brokers_lost"]:
                self.note(brokers_lost=self.lost)
            time.sleep(POLL_S)

    def watch(self) -> None:
        """Look all the time which brokers were reached before the cut and are not any more."""
        while True:
            self.look()
            time.sleep(WATCH_S)

    def look(self) -> None:
        self.lost = [text_of(one) for one in not_reached(self.reached)]

    def heal(self, reason: str) -> None:
        self.note(reason=reason)
        heal_now(self.directory)
        remove_drop_in(self.spec["service"])
        self.step("healed")

    def promote(self, order_given: Mapping[str, Any]) -> None:
        """Make the server a voter, and open its client port once the whole ensemble was promoted."""
        spec, name = self.spec, self.spec["service"]
        status = os.stat(spec["config_file"])
        mode, owner = stat.S_IMODE(status.st_mode), (status.st_uid, status.st_gid)
        safe_files.replace(spec["config_file"], spec["participants"].encode("latin-1"), mode, owner)
        if not rules_left(ensemble_cut.FENCE_COMMENT):  # after a reboot
            insert(read_rules(spec["fence"]))
        serves_already = mode_of(self.values) in ("leader", "follower")
        if not serves_already:
            if not restart_steps.is_stopped(service.state(name)):
                service.begin("stop", name)
                restart_steps.await_stopped({"service": name, "stop_timeout_s": 60})
            self.step("stopped")
            expected = (order_given.get("zxids") or {}).get(spec["host"])
            last = last_zxid(self.values)
            if expected is not None and last < expected:
                self.note(reason=f"the files lead to 0x{last:x} after the stop, 0x{expected:x} before: it starts last")
            if spec["host"] not in (order_given.get("first") or []) or (expected is not None and last < expected):
                while not any(_reaches(tuple(one)) for one in spec["peers"]):  # only a leader listens there
                    self.pause()
            service.begin("start", name)
            self.step("started")
        self.values = values_of(spec["config_file"])
        self.open_when_all()

    def open_when_all(self) -> None:
        """Open the client port once all destination hosts are known to be promoted; then remove the cut."""
        served = False
        while True:
            mode = mode_of(self.values)
            if mode in ("leader", "follower"):
                if not served:
                    self.note(mode=mode)
                    self.step("serving")
                    served = True
                if self.all_promoted(mode):
                    break
            self.pause()
        remove(ensemble_cut.FENCE_COMMENT)
        self.step("opened")
        changed_state(self.directory, (ensemble_cut.PROMOTING,), ensemble_cut.PROMOTED)
        remove(ensemble_cut.CUT_COMMENT)
        stop_unit(f"{ensemble_cut.UNIT}-deadline.timer")
        remove_drop_in(self.spec["service"])
        self.step("promoted")

    def pause(self) -> None:
        time.sleep(POLL_S if time.monotonic() - self.began < HURRY_S else WAIT_S)

    def all_promoted(self, mode: str) -> bool:
        got = host_state.read_json(os.path.join(self.directory, ORDER)) or {}
        if got.get("id") == self.spec["id"] and got["name"] == "all":
            return True
        if mode == "leader":
            try:
                return ensemble_cut.followers_of(ask(self.values, "mntr")) >= len(self.spec["peers"])
            except OSError:
                return False
        return any(_serves(HostPort(host, port)) for host, port in self.spec["clients"])

    def step(self, name: str) -> None:
        self.record["steps"].append({"name": name, "at": round(time.time(), 3)})
        self.note()

    def note(self, **values: Any) -> None:
        self.record.update(values)
        host_state.write_json(os.path.join(self.directory, RECORD), self.record)


def _serves(address: HostPort) -> bool:
    """Return whether a destination server serves clients as leader or follower: it opened its client port."""
    try:
        with socket.create_connection((address.host, address.port), 0.5) as sock:
            sock.sendall(b"srvr")
            text = b""
            while True:
                part = sock.recv(1 << 16)
                if not part:
                    break
                text += part
    except OSError:
        return False
    return b"Mode: leader" in text or b"Mode: follower" in text


def not_reached(addresses: Sequence[Sequence]) -> list:
    """Return those of [host, port] that accept no connection."""
    with ThreadPoolExecutor(max_workers=min(32, len(addresses) or 1)) as pool:
        answers = list(pool.map(_reaches, map(tuple, addresses)))
    return [one for one, answer in zip(addresses, answers) if not answer]


def _reaches(address: tuple) -> bool:
    try:
        socket.create_connection((address[0], int(address[1])), 0.5).close()
        return True
    except OSError:
        return False


def text_of(address: tuple) -> str:
    return str(HostPort(address[0], int(address[1])))


def uptime() -> float:
    return time.clock_gettime(time.CLOCK_MONOTONIC)
