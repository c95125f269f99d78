# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Simulated time, processes, hosts, ZooKeeper servers and Kafka, under a seeded scheduler.

A process is a generator of effects (ensemble.cut_host). Each effect is one step: between two steps of a process, every
other process, fault and client may act. A process that dies never gets to its next step.
"""

from __future__ import annotations

import heapq
from random import Random
from typing import Any, Callable, ClassVar, Dict, List

from ansible_collections.quorumshift.kafka.plugins.module_utils.core.ensemble import cut_host, ensemble_cut
from ansible_collections.quorumshift.kafka.plugins.module_utils.core.ensemble.cut_host import CutError
from ansible_collections.quorumshift.kafka.plugins.module_utils.core.ensemble.ensemble_cut import (
    CUT_COMMENT,
    FENCE_COMMENT,
)

OBSERVER, PARTICIPANT = "observer", "participant"
READS = frozenset(
    ("now", "clock", "state", "order", "lost", "mode", "missing", "last", "record", "blocked", "verified", "electing")
)
KINDS = {"fence": FENCE_COMMENT, "cut": CUT_COMMENT}


class Violation(Exception):
    """An invariant does not hold."""


class Unreachable(Exception):
    """The host gave no answer."""


class Process:
    """A process on a host (None: the control node). `kind`: worker, timer, module, boot or run."""

    __slots__ = ("dead", "frozen_until", "host", "kind", "name", "naps", "on_end", "steps")

    def __init__(self, steps: Any, host: Host | None, kind: str, on_end: Callable | None, name: str) -> None:
        self.steps, self.host, self.kind, self.on_end, self.name = steps, host, kind, on_end, name
        self.dead, self.frozen_until, self.naps = False, 0.0, 0


class World:
    """Everything. `trace`: lines of what happened, None to keep none."""

    def __init__(self, random: Random, hosts: int = 3, trace: List[str] | None = None) -> None:
        self.random = random
        self.now, self.sequence = 0.0, 0
        self.heap: list = []
        self.trace = trace
        self.hosts = [Host(self, f"z{number + 1}", number) for number in range(hosts)]
        self.source: List[str] = ["k"] * 5  # kinds of transactions; a zxid is an index
        self.kafka_on_source = 5  # the zxid after Kafka's newest write on the source
        self.leader: Host | None = None  # of the destination
        self.electing = False
        self.acked = 0  # Kafka's writes that the destination acknowledged
        self.violations: List[str] = []
        self.faults_left = True
        self.run_lock: Any = None
        self.crash: list | None = None
        self.slow = 0.0  # the probability of a slow step
        self.changed = True  # whether clients may reach other servers than before
        self.cutting = False  # whether a cut has begun on a host
        self.known = set(self.hosts)  # the hosts in the connect string of the brokers

    # --- scheduling

    def at(self, delay: float, work: Callable, *arguments: Any) -> None:
        self.sequence += 1
        heapq.heappush(self.heap, (self.now + delay, self.sequence, work, arguments))

    def run_until(self, end: float, stop: Callable[[], bool] | None = None) -> None:
        heap = self.heap
        while heap and heap[0][0] <= end:
            self.now, _sequence, work, arguments = heapq.heappop(heap)
            work(*arguments)
            if self.changed or self.random.random() < 0.02:
                self.changed = False
                self.watch()
            if stop is not None and stop():
                return
        self.now = max(self.now, end)

    def say(self, text: str) -> None:
        if self.trace is not None:
            self.trace.append(f"{self.now:8.3f} {text}")

    def spawn(
        self, steps: Any, host: Host | None, kind: str, on_end: Callable | None = None, name: str = ""
    ) -> Process:
        process = Process(steps, host, kind, on_end, name)
        if host is not None:
            host.processes.append(process)
        self.at(0.001, self.step, process, None, None)
        return process

    def kill(self, process: Process) -> None:
        if process.dead:
            return
        process.dead = True
        host = process.host
        if host is not None:
            host.processes.remove(process)
            if host.lock is process:
                host.release()

    def step(self, process: Process, value: Any, error: Exception | None) -> None:
        """Carry out the next effect of a process."""
        if process.dead:
            return
        if process.frozen_until > self.now:
            self.at(process.frozen_until - self.now, self.step, process, value, error)
            return
        owner: Any = process.host if process.host is not None else self
        while True:
            try:
                effect = process.steps.send(value) if error is None else process.steps.throw(error)
            except StopIteration as end:
                self.end(process, end.value, None)
                return
            except CutError as failed:
                self.end(process, None, failed)
                return
            name = effect[0]
            if name in READS and self.random.random() < 0.9:  # most reads are followed at once
                value, error = getattr(owner, name)(*effect[1:]), None
                continue
            break
        if self.trace is not None and name not in READS and name != "sleep":
            where = process.host.name if process.host is not None else "control"
            arguments = [host.name for host in effect[1]] if name == "everywhere" else effect[1:]
            self.say(f"{where} {process.kind} {process.name}: {name} {str(arguments)[-90:]}")
        if name == "sleep":  # who waits for long looks less often
            process.naps += 1
            self.at(effect[1] + self.random.random() * min(0.3 + 0.1 * process.naps, 4), self.step, process, None, None)
            return
        process.naps = 0 if name not in READS else process.naps
        if owner.crash is not None and owner.crash[0] == name:
            owner.crash[1] -= 1
            if owner.crash[1] < 0:
                _name, _left, crash, before = owner.crash
                owner.crash = None
                if before:
                    crash()
                    if process.dead:
                        return
                else:  # as soon as the effect is done
                    self.at(0.0, crash)
        special = owner.special.get(name)
        if special is not None:
            special(owner, process, *effect[1:])
            return
        value, error = None, None
        try:
            value = getattr(owner, name)(*effect[1:])
        except CutError as failed:
            error = failed
        self.back(process, value, error)

    def back(self, process: Process, value: Any, error: Exception | None = None) -> None:
        """Give a process the result of its effect, a moment later."""
        delay = self.random.random() * 0.01
        if self.slow and self.random.random() < self.slow:
            delay += self.random.random() * 3
        self.at(delay, self.step, process, value, error)

    def end(self, process: Process, value: Any, error: Exception | None) -> None:
        if error is not None:
            self.say(f"{process.host and process.host.name} {process.kind} {process.name} failed: {error}")
        self.kill(process)
        if process.on_end is not None:
            process.on_end(value, error)

    # --- effects of a run on the control node

    def clock(self) -> float:
        return self.now

    # --- the destination as an ensemble

    def servers_changed(self) -> None:
        """Have servers connect, disconnect and elect where that is due."""
        self.changed = True
        for host in self.hosts:
            host.connect_later()
        ready = self.voters()
        majority = len(self.hosts) // 2 + 1
        leader = self.leader
        if leader is not None and (leader not in ready or len(ready) < majority):
            self.say(f"the destination's leader {leader.name} is lost")
            self.leader = None
            for host in self.hosts:
                host.synced = False
            leader = None
        if leader is not None:
            for host in ready:
                if not host.synced and not host.syncing:
                    host.syncing = True
                    self.at(0.05 + self.random.random() * 0.5, self.sync, host)
        elif len(ready) >= majority and not self.electing:
            self.electing = True
            self.at(0.2 + self.random.random() * 0.8, self.elect)

    def voters(self) -> List[Host]:
        """Return the servers that can elect with each other."""
        return [
            host
            for host in self.hosts
            if host.up and host.config == PARTICIPANT and not host.frozen and not host.isolated
        ]

    def elect(self) -> None:
        self.electing = False
        ready = self.voters()
        if self.leader is not None or len(ready) < len(self.hosts) // 2 + 1:
            return
        # those that hear of each other first; any majority of them may elect
        some = self.random.sample(ready, self.random.randint(len(self.hosts) // 2 + 1, len(ready)))
        self.leader = max(some, key=lambda host: (host.data, host.number))
        epoch, base, writes = self.leader.data
        self.leader.data = (epoch + 1, base, writes)
        self.say(f"{self.leader.name} leads the destination with {self.leader.data}")
        for host in some:
            host.synced, host.data, host.syncing = True, self.leader.data, False
        self.servers_changed()

    def sync(self, host: Host) -> None:
        host.syncing = False
        if self.leader is not None and host in self.voters():
            host.synced, host.data, self.changed = True, self.leader.data, True
            self.say(f"{host.name} follows {self.leader.name} with {host.data}")

    # --- Kafka, and the invariants

    def watch(self) -> None:
        """Let Kafka write wherever it can, and require the invariants."""
        if not self.known and self.random.random() < 0.2:  # it uses the source's own servers
            if self.acked:
                self.violate("Kafka uses the source after it wrote to the destination")
            self.source.append("k")
            self.kafka_on_source = len(self.source)
        for host in self.hosts:
            if host not in self.known:
                continue
            if not host.up or host.rules_by.get(FENCE_COMMENT) or host.blocked_by or host.frozen:
                continue
            if host.config == PARTICIPANT:
                if host.synced:
                    self.kafka_writes_to_destination(host)
            elif host.connected and (self.acked or self.cutting or self.random.random() < 0.03):
                self.kafka_writes_to_source(host)

    def kafka_writes_to_source(self, host: Host) -> None:
        if self.acked:
            self.violate(f"Kafka writes to the source through {host.name} after it wrote to the destination")
            return
        if self.source[-1] == "k" and host.last_acked == len(self.source):
            return  # nothing new to see
        self.source.append("k")
        self.kafka_on_source = host.last_acked = len(self.source)

    def kafka_writes_to_destination(self, host: Host) -> None:
        _epoch, base, writes = host.data
        if base < self.kafka_on_source:
            self.violate(f"{host.name} serves Kafka as the destination without the source's write {base}")
        if writes < self.acked and not host.lags:
            self.violate(f"{host.name} serves Kafka without {self.acked - writes} writes that the destination had")
        if self.acked:
            return  # one write marks that it was served
        self.acked = 1
        self.say(f"Kafka writes to the destination through {host.name}")
        # a majority has the write when it is acknowledged, and the others a moment later
        synced = [other for other in self.hosts if other.synced]
        first = [candidate for candidate in synced if candidate in (host, self.leader)]
        others = [candidate for candidate in synced if candidate not in first]
        self.random.shuffle(others)
        first += others[: max(len(self.hosts) // 2 + 1 - len(first), 0)]
        for other in first:
            other.take_write()
        for other in synced:
            if other not in first:
                other.lags = True
                self.at(self.random.random() * 0.2, other.follow_write)

    def violate(self, text: str) -> None:
        self.say(f"VIOLATION {text}")
        raise Violation(text)

    special: ClassVar[Dict[str, Callable]] = {}


class Host:
    """A destination host: files, rules, units, and its ZooKeeper server."""

    def __init__(self, world: World, name: str, number: int) -> None:
        self.world, self.name, self.number = world, name, number
        self.processes: List[Process] = []
        self.lock: Process | None = None
        self.lock_queue: list = []
        # files
        self.state_file, self.record_file, self.order_file = cut_host.NONE, {}, {}
        self.scripts = self.drop_in = False
        self.taken_back_file: list = []
        self.config = OBSERVER
        # (epoch of the destination, zxid of the source's newest transaction, Kafka's writes of the destination)
        self.data = (0, 5, 0)
        self.last_acked = 5
        # the kernel
        self.rules_by: Dict[str, int] = {}
        self.blocked_by = 0
        self.broken_until = 0.0  # rules cannot be changed
        self.timer: object = None
        # the server
        self.up, self.connected, self.frozen, self.synced, self.syncing = True, True, False, False, False
        self.connecting = self.disconnecting = False
        self.starts = 0
        self.stop_s = 0.3
        self.powered = True
        self.isolated = False  # from the control node and the other destination hosts
        self.broken = False  # its server does not start
        self.lags = False  # a write of Kafka that it follows is under way to it
        self.start_token: object = None
        # [an effect, how often it is done before, what then happens, whether before it is done]
        self.crash: list | None = None

    # --- faults

    def flush(self) -> None:
        """The filter table is loaded anew without our rules."""
        self.world.say(f"{self.name}: the filter table is flushed")
        self.rules_by.clear()
        self.world.servers_changed()

    def reboot(self, seconds: float) -> None:
        self.world.say(f"{self.name} reboots, {seconds:.1f} s")
        for process in list(self.processes):
            self.world.kill(process)
            if process.kind == "module" and process.on_end is not None:
                process.on_end(None, Unreachable())
        self.rules_by.clear()
        self.blocked_by = 0
        self.timer = None
        self.powered = False
        self.server_down()
        self.world.at(seconds, self.boot)

    def die(self) -> None:
        """The host is dead, or only seems to be: it reaches neither the others nor the control node."""
        kind = self.world.random.random()
        if kind < 0.35:
            self.world.say(f"{self.name} is isolated")
            self.isolated = True
            self.synced = False
            self.world.servers_changed()
        elif kind < 0.6:
            self.world.say(f"{self.name}: its server is killed, and does not start any more")
            self.broken = True
            self.server_down()
        else:
            self.reboot(1e9)

    def come_back(self) -> None:
        self.world.say(f"{self.name} is back")
        if self.isolated:
            self.isolated = False
            self.world.servers_changed()
        elif self.broken or not self.powered:
            self.broken = False
            self.boot()

    @property
    def is_dead(self) -> bool:
        return self.isolated or not self.powered or (self.broken and not self.up)

    def take_write(self) -> None:
        epoch, base, _writes = self.data
        self.data = (epoch, base, 1)

    def follow_write(self) -> None:
        self.lags = False
        if self.synced:
            self.take_write()

    def boot(self) -> None:
        self.powered = True
        self.world.spawn(self._boot(), self, "boot")

    def _boot(self) -> Any:
        yield ("start_server",)

    def server_down(self) -> None:
        if self.connected:
            self.lose_connection()
        self.up = self.connected = self.frozen = self.synced = False
        self.starts += 1
        self.world.servers_changed()

    # --- the server and the source

    def lose_connection(self) -> None:
        """Keep what the source acknowledged through this server; of the rest, the newest may be missing."""
        self.connected = False
        epoch, _last, writes = self.data
        last = max(self.last_acked, len(self.world.source) - self.world.random.choice((0, 0, 0, 0, 1, 2)))
        self.data = (epoch, last, writes)

    def connect_later(self) -> None:
        cut = self.rules_by.get(CUT_COMMENT)
        if self.config == OBSERVER and self.up and not self.frozen:
            if not cut and not self.connected and not self.connecting:
                self.connecting = True
                self.world.at(0.05 + self.world.random.random(), self._connect)
            elif cut and self.connected and not self.disconnecting:
                self.disconnecting = True
                self.world.at(
                    self.world.random.random() * self.world.random.choice((0.1, 0.1, 0.1, 3)), self._disconnect
                )

    def _connect(self) -> None:
        self.connecting = False
        if self.config == OBSERVER and self.up and not self.frozen and not self.rules_by.get(CUT_COMMENT):
            epoch, _last, writes = self.data
            self.connected, self.data = True, (epoch, len(self.world.source), writes)
            self.last_acked = len(self.world.source)
            self.world.changed = True

    def _disconnect(self) -> None:
        self.disconnecting = False
        if self.connected and self.rules_by.get(CUT_COMMENT):
            if self.frozen:
                return
            self.lose_connection()

    def thaw(self) -> None:
        self.frozen = False
        self.world.servers_changed()

    # --- effects: see core.ensemble.cut_host

    def now(self) -> float:
        return self.world.now

    clock = now

    def state(self) -> str:
        return self.state_file

    def set_state(self, after: str) -> None:
        if after != self.state_file:
            self.world.say(f"{self.name}: {self.state_file} -> {after}")
        self.state_file = after
        self.world.cutting = self.world.cutting or after not in (cut_host.NONE, ensemble_cut.HEALED)

    def record(self) -> dict:
        return {**self.record_file, "steps": list(self.record_file.get("steps", ()))}

    def write_record(self, record: dict) -> None:
        self.record_file = {**record, "steps": list(record["steps"])}

    def order(self) -> dict:
        return self.order_file

    def write_order(self, order: dict) -> None:
        self.order_file = order

    def remove_order(self) -> None:
        self.order_file, self.verified_file = {}, False

    verified_file = False

    def verified(self) -> bool:
        return self.verified_file

    def set_verified(self) -> None:
        self.verified_file = True

    moves_file = 0

    def moves(self) -> int:
        return self.moves_file

    def set_moves(self, number: int) -> None:
        self.moves_file = number

    def taken_back_without(self) -> list:
        return self.taken_back_file

    def set_taken_back_without(self, hosts: list) -> None:
        self.taken_back_file = hosts

    def forget(self) -> None:
        self.state_file, self.record_file, self.order_file = cut_host.NONE, {}, {}
        self.verified_file, self.scripts, self.taken_back_file = False, False, []

    def write_scripts(self) -> None:
        self.scripts = True

    def insert(self, kind: str) -> None:
        self._change_rules()
        self.rules_by[KINDS[kind]] = self.rules_by.get(KINDS[kind], 0) + 1
        self.world.servers_changed()

    def _change_rules(self) -> None:
        if self.broken_until > self.world.now:
            raise CutError("iptables failed")

    def missing(self, *kinds: str) -> bool:
        return not all(self.rules_by.get(KINDS[kind]) for kind in kinds)

    def remove(self, *comments: str) -> None:
        self._change_rules()
        for comment in comments:
            self.rules_by.pop(comment, None)
        if FENCE_COMMENT in comments:
            self.blocked_by = 0
        self.world.servers_changed()

    def try_remove(self, *comments: str) -> bool:
        """Remove rules as a script does; return whether none is left."""
        try:
            self.remove(*comments)
        except CutError:
            return False
        return True

    def rules_left(self, *comments: str) -> int:
        return sum(self.rules_by.get(comment, 0) for comment in comments) + self.blocked_by

    def block(self) -> None:
        self.blocked_by = 1

    def blocked(self) -> bool:
        return bool(self.blocked_by)

    def mode(self) -> str | None:
        if not self.up:
            return ""
        if self.frozen:
            return None
        if self.config == OBSERVER:
            return "observer" if self.connected else ""
        if not self.synced:
            return ""
        return "leader" if self.world.leader is self else "follower"

    def last(self) -> int:
        epoch, last, _writes = self.data
        if self.connected:
            last = len(self.world.source)
        return last + epoch * 1_000_000

    def leader_listens(self) -> bool:
        return self.world.leader not in (None, self) and not self.isolated

    def followers(self) -> int:
        if self.world.leader is not self:
            return 0
        return sum(host.synced for host in self.world.hosts) - 1

    def electing(self) -> int:
        """Return how many other servers listen at their election ports."""
        return sum(other.up and not other.isolated for other in self.world.hosts if other is not self)

    def followers_of_another(self) -> int:
        """Return how many follow another server that answers this host as the leader."""
        leader = self.world.leader
        if leader is None or leader is self or self.isolated or not leader.is_open():
            return 0
        return leader.followers()

    def is_open(self) -> bool:
        return self.up and not self.frozen and not self.rules_by.get(FENCE_COMMENT) and not self.blocked_by

    def look(self) -> list:
        return []

    lost = reached = look

    def watch(self) -> None:
        pass

    def write_config(self) -> None:
        self._set_config(PARTICIPANT)

    def write_observer_config(self) -> None:
        self._set_config(OBSERVER)

    restore_config = write_observer_config

    def _set_config(self, config: str) -> None:
        # a server that runs keeps what it has read
        if not self.up:
            self.config = config
        self.next_config = config

    next_config = OBSERVER

    def move_data(self) -> str:
        self.data, self.last_acked = (0, 0, 0), 0
        return "moved"

    def written(self, _by_log_alone: bool = False) -> str:
        """Return whether this server's files have a write of Kafka since its promotion."""
        return "a write" if self.data[2] > 0 else ""

    def write_myid(self) -> None:
        pass

    def has_data(self) -> bool:
        return self.data != (0, 0, 0)

    def next_config_of(self) -> str:
        return self.next_config

    def server_active(self) -> bool:
        return self.up

    def add_drop_in(self) -> None:
        self.drop_in = True

    def remove_drop_in(self) -> None:
        self.drop_in = False

    def arm(self, seconds: float) -> None:
        self.timer = token = object()
        self.world.at(seconds, self._fire, token)

    def disarm(self) -> None:
        self.timer = None

    def _fire(self, token: object) -> None:
        if self.timer is token:
            self.timer = None
            self.world.spawn(cut_host.heal_script_steps(), self, "timer", name="heal.sh")

    def worker_runs(self) -> bool:
        return any(process.kind == "worker" for process in self.processes)

    def kill_worker(self) -> None:
        for process in list(self.processes):
            if process.kind == "worker":
                self.world.kill(process)

    kill_worker_now = kill_worker

    def start_worker(self, spec: dict) -> None:
        if self.worker_runs():
            raise CutError("a unit of this name exists")
        self.world.spawn(cut_host.Worker(spec).steps(), self, "worker", name=spec["id"])

    # --- effects that wait

    def _lock(self, process: Process) -> None:
        if self.lock is None:
            self.lock = process
            self.world.back(process, True)
        else:
            self.lock_queue.append((process, None))

    def _lock_for(self, process: Process, seconds: float) -> None:
        if self.lock is None:
            self.lock = process
            self.world.back(process, True)
            return
        token = object()
        self.lock_queue.append((process, token))
        self.world.at(seconds, self._give_up, process, token)

    def _give_up(self, process: Process, token: object) -> None:
        if (process, token) in self.lock_queue:
            self.lock_queue.remove((process, token))
            self.world.back(process, False)

    def _unlock(self, process: Process) -> None:
        if self.lock is process:
            self.release()
        self.world.back(process, None)

    def release(self) -> None:
        self.lock = None
        while self.lock_queue:
            process, _token = self.lock_queue.pop(0)
            if not process.dead:
                self.lock = process
                self.world.back(process, True)
                return

    def _heal(self, process: Process) -> None:
        if not self.scripts:
            if self.state_file in ensemble_cut.UNDONE_BY_ITSELF:
                self.set_state(ensemble_cut.HEALED)
            self.world.back(process, 0)
            return

        def ended(value: Any, _error: Exception | None) -> None:
            if value:
                self.world.back(process, None, CutError("heal.sh failed"))
            else:
                self.world.back(process, None)

        self.world.spawn(cut_host.heal_script_steps(), self, process.kind, ended, "heal.sh")

    def _stop_server(self, process: Process) -> None:
        started = self.starts
        seconds = 0.05 + self.world.random.random() * self.stop_s if self.up else 0.0

        self.start_token = None

        def ended() -> None:
            if self.starts == started:
                self.server_down()
            self.config = self.next_config
            self.world.back(process, None)

        self.world.at(seconds, ended)

    def _start_server(self, process: Process) -> None:
        if self.up or self.broken or not self.powered:
            self.world.back(process, None)
            return

        self.start_token = token = object()

        def fenced(value: Any, _error: Exception | None) -> None:
            if not value and self.start_token is token:
                self.starts += 1
                self.world.at(0.2 + self.world.random.random() * 1.5, self._started, self.starts)

        if self.drop_in:
            self.world.spawn(cut_host.fence_script_steps(), self, "unit", fenced, "fence.sh")
        else:
            fenced(0, None)
        self.world.back(process, None)

    def _started(self, started: int) -> None:
        if self.starts == started and self.powered and not self.broken:
            self.config = self.next_config
            self.up = True
            self.world.say(f"{self.name}: its server runs as {self.config}")
            self.world.servers_changed()

    special: ClassVar[Dict[str, Callable]] = {
        "lock": _lock,
        "lock_for": _lock_for,
        "unlock": _unlock,
        "heal": _heal,
        "stop_server": _stop_server,
        "start_server": _start_server,
    }
