# Copyright: (c) 2026, Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Cut this host's observer off from its source, and make it a voter of its own ensemble. Standard library only.

A worker in a transient unit does the work, step by step, each at an order of the run. Its orders and its state are
files in `<state_dir>/zk_cut/`:

state       one word of core.ensemble_cut, replaced under `lock`; heal.sh reads and writes it too
cut.json    what the worker did and saw
order.json  the newest order, {id, name, ...}
heal.sh     undoes cut and fence unless the host was promoted; a timer of systemd runs it at the deadline
fence.sh    fences again before the server starts, while a promotion is under way
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import socket
import stat
import subprocess
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Dict, Iterator, List, Mapping, Sequence

from . import detached, host_state, restart_steps, safe_files
from .addresses import HostPort, parse_host_port, parse_zookeeper_connect
from .core import ensemble_cut, zk_observer
from .formats import properties, zookeeper_files
from .probes import service, tcp_connections

STATE, RECORD, ORDER, LOCK = "state", "cut.json", "order.json", "lock"
HEAL, FENCE, CODE, JOB = "heal.sh", "fence.sh", "cut.zip", "job.json"
POLL_S, ASK_S, WATCH_S = 0.02, 1.0, 0.5
NOT_SERVING_S = 5.0
HURRY_S = 120.0  # sessions are lost by then: a promotion that goes on later fills no server's log with questions
NONE = "none"


class CutError(Exception):
    """The cut cannot go on; the text says why and what to do."""


def path_of(given: Mapping[str, Any]) -> str:
    """Return the directory of this host's cut."""
    return os.path.join(given["state_dir"], ensemble_cut.DIRECTORY)


def state_of(directory: str) -> str:
    """Return the state in the file, NONE without one."""
    try:
        return safe_files.read(os.path.join(directory, STATE)).decode().strip()
    except FileNotFoundError:
        return NONE


@contextlib.contextmanager
def locked(directory: str) -> Iterator[None]:
    """Hold the lock under which the state changes; heal.sh takes it as well (flock(1))."""
    with open(os.path.join(directory, LOCK), "a", encoding="ascii") as handle:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield


def changed_state(directory: str, before: tuple, after: str) -> bool:
    """Change the state if it is one of `before`, durably; return whether it was."""
    with locked(directory):
        if state_of(directory) not in before:
            return False
        safe_files.replace(os.path.join(directory, STATE), f"{after}\n".encode(), 0o600)
        return True


def works() -> bool:
    """Return whether a worker runs."""
    return service.runs(f"{ensemble_cut.UNIT}.service")


# --- the server of this host ----------------------------------------------------------------------------


def values_of(config_file: str) -> Dict[str, str]:
    return properties.parse(safe_files.read(config_file).decode("latin-1"))


def directories(values: Mapping[str, str]) -> tuple:
    """Return the `version-2` directories of snapshots and of logs."""
    data = values.get("dataDir", "").strip()
    return os.path.join(data, "version-2"), os.path.join(values.get("dataLogDir", "").strip() or data, "version-2")


def last_zxid(values: Mapping[str, str]) -> int:
    return zookeeper_files.last_zxid(*directories(values))


def ask(values: Mapping[str, str], word: str, timeout: float = ASK_S) -> str:
    """Return the server's answer to a four letter word, from the address that the fence lets pass. Raises OSError."""
    where = values.get("clientPortAddress", "").strip()
    where = "127.0.0.1" if where in ("", "0.0.0.0", "::") or ":" in where else where
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as sock:
        sock.settimeout(timeout)
        sock.bind((ensemble_cut.PROBE_ADDRESS, 0))
        sock.connect((where, int(values["clientPort"])))
        sock.sendall(word.encode())
        parts: List[bytes] = []
        while True:
            part = sock.recv(1 << 16)
            if not part:
                return b"".join(parts).decode(errors="replace")
            parts.append(part)


def mode_of(values: Mapping[str, str]) -> str:
    """Return the mode in which this host's server serves, '' if it serves none."""
    try:
        answer = ask(values, "srvr")
    except OSError:
        return ""
    return next((line[len("Mode: ") :] for line in answer.splitlines() if line.startswith("Mode: ")), "")


# --- rules ----------------------------------------------------------------------------------------------


def insert(rules: List[ensemble_cut.Rule]) -> None:
    """Put rules before all others. Raises CutError."""
    for rule in rules:
        command = ensemble_cut.inserted(rule)
        done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
        if done.returncode:
            raise CutError(f"{' '.join(command)} failed: {done.stderr.strip()}")


def remove(*comments: str) -> None:
    """Remove the rules with these comments. Raises CutError."""
    script = ensemble_cut.remove_script(*comments)
    done = subprocess.run(
        ["/bin/sh", "-c", script], stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False
    )
    if done.returncode or rules_left(*comments):
        raise CutError(f"firewall rules could not be removed: {done.stderr.strip()}")


def rules_left(*comments: str) -> int:
    """Return how many rules with these comments the host has."""
    count = 0
    for command in ensemble_cut.IPTABLES:
        if shutil.which(command):
            done = subprocess.run(
                [command, "-w", "-S"], stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False
            )
            count += sum(any(comment in line for comment in comments) for line in done.stdout.splitlines())
    return count


def why_no_rules(rules: List[ensemble_cut.Rule]) -> str:
    """Return why the rules of a cut cannot be made on this host, '' if they can: each is made for an address of no
    host, and removed."""
    comment = "quorumshift-trial"
    missing = [command for command in {rule.command for rule in rules} if not shutil.which(command)]
    if missing:
        return f"{', '.join(sorted(missing))} is missing. Install it: apt-get install iptables"
    trial = []
    for rule in rules:
        words = [comment if one in (ensemble_cut.CUT_COMMENT, ensemble_cut.FENCE_COMMENT) else one for one in rule.rule]
        nowhere = "192.0.2.1" if rule.command == "iptables" else "2001:db8::1"
        # a source and a destination of no host, so that the trial rejects nothing
        if "!" in words:
            at = words.index("!")
            words[at : at + 3] = []
        if "-d" in words:
            words[words.index("-d") + 1] = nowhere
        else:
            words[1:1] = ["-d", nowhere]
        trial.append(ensemble_cut.Rule(rule.command, words))
    try:
        insert(trial)
        return ""
    except CutError as error:
        return str(error)
    finally:
        remove(comment)


# --- what a module does ---------------------------------------------------------------------------------


def begin(given: Mapping[str, Any], prepared: Mapping[str, Any]) -> None:
    """Arm the dead man's switch, start the worker, and return. Raises CutError, ServiceError, OSError.

    `prepared`: {fence, cut: rules; participants: the text of the zoo.cfg after the promotion; peers: quorum ports of
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
    _write(directory, FENCE, ensemble_cut.fence_script(directory, _rules(prepared["fence"])), 0o700)
    _write(directory, HEAL, ensemble_cut.heal_script(directory), 0o700)
    lost = _not_reached(prepared["brokers"])
    reached = [one for one in prepared["brokers"] if one not in lost]
    record = {
        **{"id": given["id"], "steps": [], "reason": "", "last": None, "brokers_lost": []},
        "brokers_watched": [_text(one) for one in reached],
    }
    host_state.write_json(os.path.join(directory, RECORD), record)
    _drop_in(given["service"], directory)
    timer = [
        *(
            "systemd-run",
            "--quiet",
            "--collect",
            f"--unit={ensemble_cut.UNIT}-deadline",
            f"--on-active={given['deadline_s']:.1f}s",
        ),
        *("--timer-property=AccuracySec=50ms", "/bin/sh", os.path.join(directory, HEAL)),
    ]
    _stop_unit(f"{ensemble_cut.UNIT}-deadline.timer")
    deadline = _uptime() + given["deadline_s"]
    _run(timer)
    spec = {**given, **prepared, "directory": directory, "deadline": deadline, "reached": reached}
    _begin_unit(directory, spec)


def resume_promotion(given: Mapping[str, Any], prepared: Mapping[str, Any]) -> None:
    """Start a worker that finishes a promotion whose worker ended. Raises CutError, ServiceError, OSError."""
    directory = path_of(given)
    if works():
        return
    spec = {**given, **prepared, "directory": directory, "deadline": 0, "id": read_record(directory).get("id")}
    _begin_unit(directory, {**spec, "resumed": True})


def order(directory: str, name: str, cut_id: str, more: Mapping[str, Any] | None = None) -> None:
    """Give the worker an order."""
    host_state.write_json(os.path.join(directory, ORDER), {"id": cut_id, "name": name, **(more or {})})


def read_record(directory: str) -> dict:
    return host_state.read_json(os.path.join(directory, RECORD)) or {}


def wait_state(directory: str, wanted: tuple, seconds: float) -> str:
    """Wait until the state is one of `wanted` or the worker has ended; return the state."""
    deadline = time.monotonic() + seconds
    while True:
        seen = state_of(directory)
        if seen in wanted or time.monotonic() >= deadline:
            return seen
        time.sleep(POLL_S)


def heal_now(directory: str) -> None:
    """Undo cut and fence at once, unless the host was promoted. Raises CutError."""
    script = os.path.join(directory, HEAL)
    if os.path.exists(script):
        _run(["/bin/sh", script])
    elif state_of(directory) not in (ensemble_cut.PROMOTING, ensemble_cut.PROMOTED):
        remove(ensemble_cut.CUT_COMMENT, ensemble_cut.FENCE_COMMENT)


def suspend() -> None:
    """Stop the worker of this host."""
    _stop_unit(f"{ensemble_cut.UNIT}.service")


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
    _remove_drop_in(name)
    return moved


# --- the worker -----------------------------------------------------------------------------------------


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
        insert(_rules(self.spec["fence"]))
        self.step("fenced")

    def cut(self) -> None:
        insert(_rules(self.spec["cut"]))
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
                    left = self.spec["deadline"] - _uptime()
                    if name == "promote" and left < ensemble_cut.LEAST_LEFT_S:
                        self.heal(f"the order to promote came {left:.1f} s before the deadline")
                        return None
                    return got
            if state_of(self.directory) == ensemble_cut.HEALED:
                self.note(reason=self.record["reason"] or "the deadline passed without an order")
                self.step("healed")
                return None
            if self.spec["deadline"] < _uptime():
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
        self.lost = [_text(one) for one in _not_reached(self.reached)]

    def heal(self, reason: str) -> None:
        self.note(reason=reason)
        heal_now(self.directory)
        _remove_drop_in(self.spec["service"])
        self.step("healed")

    def promote(self, order_given: Mapping[str, Any]) -> None:
        """Make the server a voter, and open its client port once the whole ensemble was promoted."""
        spec, name = self.spec, self.spec["service"]
        status = os.stat(spec["config_file"])
        mode, owner = stat.S_IMODE(status.st_mode), (status.st_uid, status.st_gid)
        safe_files.replace(spec["config_file"], spec["participants"].encode("latin-1"), mode, owner)
        if not rules_left(ensemble_cut.FENCE_COMMENT):  # after a reboot
            insert(_rules(spec["fence"]))
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
        _stop_unit(f"{ensemble_cut.UNIT}-deadline.timer")
        _remove_drop_in(self.spec["service"])
        self.step("promoted")

    def pause(self) -> None:
        time.sleep(POLL_S if time.monotonic() - self.began < HURRY_S else ASK_S)

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


def _not_reached(addresses: Sequence[Sequence]) -> list:
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


def _text(address: tuple) -> str:
    return str(HostPort(address[0], int(address[1])))


def _rules(given: List[Any]) -> List[ensemble_cut.Rule]:
    return [ensemble_cut.Rule(command, list(rule)) for command, rule in given]


def _uptime() -> float:
    return time.clock_gettime(time.CLOCK_MONOTONIC)


def _write(directory: str, name: str, text: str, mode: int) -> None:
    safe_files.replace(os.path.join(directory, name), text.encode(), mode)


def _run(command: List[str]) -> None:
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    if done.returncode:
        raise CutError(f"{' '.join(command)} failed: {(done.stderr or done.stdout).strip()}")


def _stop_unit(name: str) -> None:
    subprocess.run(["systemctl", "stop", name], stdin=subprocess.DEVNULL, capture_output=True, check=False)


def _begin_unit(directory: str, spec: Mapping[str, Any]) -> None:
    path = os.path.join(directory, JOB)
    host_state.write_json(path, spec)
    service.begin_transient(f"{ensemble_cut.UNIT}.service", detached.command(directory, CODE, __name__, path))


def _drop_in_path(name: str) -> str:
    return os.path.join(
        "/etc/systemd/system", f"{name if '.' in name else name + '.service'}.d", "quorumshift-fence.conf"
    )


def _drop_in(name: str, directory: str) -> None:
    """Have systemd fence before it starts the server, a start at boot included, while a promotion is under way."""
    path = _drop_in_path(name)
    os.makedirs(os.path.dirname(path), exist_ok=True)
    text = f"[Service]\nExecStartPre=+/bin/sh {os.path.join(directory, FENCE)}\n"
    safe_files.replace(path, text.encode(), 0o644)
    _run(["systemctl", "daemon-reload"])


def _remove_drop_in(name: str) -> None:
    path = _drop_in_path(name)
    if os.path.exists(path):
        os.unlink(path)
        with contextlib.suppress(OSError):
            os.rmdir(os.path.dirname(path))
        _run(["systemctl", "daemon-reload"])


def prepared(given: Mapping[str, Any]) -> dict:
    """Return what `begin` needs of this host. Raises OSError where a name of the source has no address."""
    values = values_of(given["config_file"])
    destination = {int(number): one for number, one in given["destination_servers"].items()}
    members = ensemble_cut.source_members(configured(given["config_file"]), destination)
    quorum_ports = ensemble_cut.ports_of([*members, *map(zk_observer.Member, destination.values())])
    hosts = ensemble_cut.hosts_of(members)
    addresses = [address for host in hosts for address, _port in tcp_connections.resolved(host, 0)]
    addresses += [address for host in given["source_addresses"] for address, _port in tcp_connections.resolved(host, 0)]
    ports = [values[key].strip() for key in ("clientPort", "secureClientPort") if values.get(key, "").strip()]
    text = safe_files.read(given["config_file"]).decode("latin-1")
    changes = ensemble_cut.promotion(values, destination)
    return {
        "fence": [list(one) for one in ensemble_cut.fence(ports)],
        "cut": [list(one) for one in ensemble_cut.cut(list(dict.fromkeys(addresses)), quorum_ports)],
        "participants": properties.edit(text, changes, "Ensemble of its own (Quorumshift)"),
        "peers": [list(one) for one in ensemble_cut.peers(destination, given["myid"])],
        "clients": [list(one) for one in parse_zookeeper_connect(given["destination_connect"]).servers],
        "brokers": [list(parse_host_port(one)) for one in given["brokers"]],
    }


def configured(config_file: str) -> Mapping[int, zk_observer.Member]:
    """Return the members in a server's configuration."""
    values = values_of(config_file)
    dynamic = values.get("dynamicConfigFile", "").strip()
    text = safe_files.read(dynamic).decode("latin-1") if dynamic else "\n".join(f"{k}={v}" for k, v in values.items())
    return zk_observer.ensemble(text).members
