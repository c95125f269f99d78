# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""One schedule: a move with random faults, and then the commands that the runs print, until Kafka is served."""

from __future__ import annotations

from random import Random
from typing import List, NamedTuple

from ansible_collections.quorumshift.kafka.plugins.module_utils.core.ensemble import ensemble_cut

from tools.cut_simulation import runs
from tools.cut_simulation.world import OBSERVER, Host, Violation, World

FAULTS_S, QUIET_S = 14.0, 45.0
COMMANDS = 14


class Outcome(NamedTuple):
    """How a schedule ended: `served` by source or destination; `problem`: '' or what was violated."""

    served: str
    problem: str
    faults: List[str]


def run(seed: int, trace: List[str] | None = None) -> Outcome:
    """Run one schedule; the seed decides everything."""
    random = Random(seed)
    world = World(random, random.choice((3, 3, 3, 5)), trace)
    faults: List[str] = []
    try:
        return Outcome(_run(world, faults), "", faults)
    except Violation as violated:
        return Outcome("", str(violated), faults)


def _run(world: World, faults: List[str]) -> str:
    random = world.random
    network = runs.Network(world, random.choice((0, 0, 0, 0.02, 0.05)))
    world.slow = random.choice((0, 0, 0, 0.002, 0.01))
    for host in world.hosts:
        host.stop_s = random.choice((0.3, 0.3, 0.3, 4))
    started = [runs.Run(world, "run1", runs.MIGRATE, network)]
    for _number in range(random.choice((0, 1, 1, 2, 2, 3, 4))):
        _add_fault(world, network, started, faults)
    world.run_until(QUIET_S)
    _require_noticed(world, started)
    return _follow(world)


def _add_fault(world: World, network: runs.Network, started: List[runs.Run], faults: List[str]) -> None:
    random = world.random
    name, fault = random.choice(FAULTS)
    at = random.random() * (FAULTS_S if random.random() < 0.7 else 4.0)
    at = at if fault is not _crash_at_a_step else at / 4
    faults.append(f"{name} at {at:.1f}")
    world.at(at, fault, world, network, started)


def _host(world: World) -> Host:
    return world.random.choice(world.hosts)


def _flush(world: World, *_: object) -> None:
    _host(world).flush()


def _flush_all(world: World, *_: object) -> None:
    for host in world.hosts:
        world.at(world.random.random() * 2, host.flush)


def _reboot(world: World, *_: object) -> None:
    host = _host(world)
    host.reboot(0.5 + world.random.random() * 8)
    if world.random.random() < 0.5:  # the firewall's service starts after the server
        world.at(1 + world.random.random() * 15, host.flush)


def _kill_worker(world: World, *_: object) -> None:
    host = _host(world)
    world.say(f"{host.name}: its worker is killed")
    host.kill_worker()


def _crash_at_a_step(world: World, network: runs.Network, started: List[runs.Run]) -> None:
    """A host reboots, or its worker dies, right before or after one step. The run may die with it, and be undone."""
    host, random = _host(world), world.random

    def crash() -> None:
        if random.random() < 0.5:
            world.say(f"{host.name}: its worker is killed at this step")
            host.kill_worker()
            if random.random() < 0.5:
                world.at(random.random() * 4, host.reboot, 0.5 + random.random() * 3)
        else:
            host.reboot(0.5 + random.random() * 5)
        if random.random() < 0.5:
            _kill_run(world, network, started)
        if random.random() < 0.5:
            command = random.choice((runs.MIGRATE, runs.ROLLBACK))
            world.at(3 + random.random() * 8, _begin, world, command, network, started)

    host.crash = [random.choice(STEPS), random.choice((0, 0, 0, 1, 2)), crash, random.random() < 0.5]


def _suspend(world: World, *_: object) -> None:
    host = _host(world)
    until = world.now + world.random.random() * 12
    for process in host.processes:
        if process.kind in ("worker", "module"):
            world.say(f"{host.name}: {process.kind} {process.name} is suspended until {until:.1f}")
            process.frozen_until = until


def _kill_server(world: World, *_: object) -> None:
    host = _host(world)
    world.say(f"{host.name}: its server is killed")
    host.server_down()


def _freeze_server(world: World, *_: object) -> None:
    host = _host(world)
    if host.up:
        world.say(f"{host.name}: its server is suspended")
        host.frozen = True
        world.servers_changed()
        world.at(world.random.random() * 6, host.thaw)


def _kill_run(world: World, _network: object, started: List[runs.Run]) -> None:
    world.say(f"{started[0].name} is killed")
    world.kill(started[0].process)


def _suspend_run(world: World, _network: object, started: List[runs.Run]) -> None:
    world.say(f"{started[0].name} is suspended")
    started[0].process.frozen_until = world.now + world.random.random() * 15


def _second(world: World, network: runs.Network, started: List[runs.Run]) -> None:
    command = world.random.choice((runs.MIGRATE, runs.ROLLBACK, runs.REHEARSE))
    forced = world.random.random() < 0.5
    if world.random.random() < 0.5:
        _kill_run(world, network, started)
    started.append(runs.Run(world, f"run{len(started) + 1}", command, network, forced, _dead(world)))


def _both(world: World, network: runs.Network, started: List[runs.Run]) -> None:
    """The run dies, and two operators run both playbooks at once, with the lock forced."""
    _kill_run(world, network, started)
    for command in (runs.MIGRATE, runs.ROLLBACK):
        delay = world.random.random() * 3
        world.at(delay, _begin, world, command, network, started)


def _begin(world: World, command: str, network: runs.Network, started: List[runs.Run]) -> None:
    started.append(runs.Run(world, f"run{len(started) + 1}", command, network, True, _dead(world)))


def _die(world: World, network: runs.Network, started: List[runs.Run]) -> None:
    """A host dies, or seems to. An operator may name it, and it may come back at any time."""
    host, random = _host(world), world.random
    if sum(host.is_dead for host in world.hosts) >= (len(world.hosts) - 1) // 2:
        return
    host.die()
    if random.random() < 0.5:
        world.at(random.random() * 25, host.come_back)
    if random.random() < 0.7:
        if random.random() < 0.5:
            _kill_run(world, network, started)
        command = random.choice((runs.MIGRATE, runs.MIGRATE, runs.ROLLBACK))
        world.at(random.random() * 10, _begin, world, command, network, started)


def _die_at_a_step(world: World, network: runs.Network, started: List[runs.Run]) -> None:
    host, random = _host(world), world.random

    def crash() -> None:
        if sum(host.is_dead for host in world.hosts) < (len(world.hosts) - 1) // 2:
            host.die()
            if random.random() < 0.4:
                _kill_run(world, network, started)
            command = random.choice((runs.MIGRATE, runs.ROLLBACK))
            world.at(random.random() * 12, _begin, world, command, network, started)
            if random.random() < 0.5:
                world.at(random.random() * 30, host.come_back)

    if random.random() < 0.3:  # right after it is open
        host.crash = ["remove", 0, crash, False]
    else:
        host.crash = [random.choice(STEPS), random.choice((0, 0, 0, 1, 2)), crash, random.random() < 0.5]


def _dead(world: World) -> List[str]:
    """Return the hosts that an operator names dead."""
    return [host.name for host in world.hosts if host.is_dead and world.random.random() < 0.9]


def _foreign(world: World, *_: object) -> None:
    world.say("a client writes to Kafka's subtree on the source")
    world.source.append("f")


def _tenant(world: World, *_: object) -> None:
    for _number in range(5):
        world.at(world.random.random() * 5, world.source.append, "t")


def _broken_rules(world: World, *_: object) -> None:
    host = _host(world)
    host.broken_until = world.now + world.random.random() * 10
    world.say(f"{host.name}: rules cannot be changed until {host.broken_until:.1f}")


STEPS = (
    *("set_state", "set_state", "set_state", "insert", "remove", "remove", "block", "write_record", "write_config"),
    *("stop_server", "start_server", "move_data", "remove_drop_in", "disarm", "write_scripts", "arm", "start_worker"),
    *("lock", "unlock", "heal", "try_remove", "remove_order", "set_verified", "write_observer_config"),
)
FAULTS = [
    *[("crash at a step", _crash_at_a_step)] * 6,
    *[("host dead", _die)] * 4,
    *[("host dead at a step", _die_at_a_step)] * 4,
    ("flush", _flush),
    ("flush", _flush),
    ("flush of all", _flush_all),
    ("reboot", _reboot),
    ("reboot", _reboot),
    ("worker killed", _kill_worker),
    ("worker suspended", _suspend),
    ("server killed", _kill_server),
    ("server suspended", _freeze_server),
    ("run killed", _kill_run),
    ("run suspended", _suspend_run),
    ("second run", _second),
    ("second run", _second),
    ("both playbooks", _both),
    ("foreign write", _foreign),
    ("other application's writes", _tenant),
    ("rules cannot be changed", _broken_rules),
]


def _require_noticed(world: World, started: List[runs.Run]) -> None:
    """Require that no run ended with exit code 0 while the destination lacks a write of a foreign client."""
    for run in started:
        if run.result and run.result["code"] == 0:
            for zxid, kind in enumerate(world.source, 1):
                if kind == "f" and run.cut_zxid < zxid and zxid <= run.verified_zxid:
                    world.violate(f"{run.name} ended with exit code 0 without the foreign write {zxid}")


def _follow(world: World) -> str:
    """Run what the runs print, without further faults, until Kafka is served; return by what. Hosts that are dead are
    named. Once Kafka is served, they come back, and the runs go on until the whole destination serves."""
    random = world.random
    world.faults_left, world.slow = False, 0.0
    for host in world.hosts:
        host.frozen = False
        host.broken_until, host.crash = 0.0, None
        for process in host.processes:
            process.frozen_until = 0.0
    _start_promoted(world)
    world.servers_changed()
    network = runs.Network(world, 0.0)
    command, cleaned, text = runs.MIGRATE, [], ""
    for number in range(COMMANDS):
        dead = [host.name for host in world.hosts if host.is_dead]
        if dead and random.random() < 0.1:
            world.at(random.random() * 5, next(host for host in world.hosts if host.is_dead).come_back)
        follower = runs.Run(world, f"follow{number}", command, network, True, dead, cleaned)
        world.run_until(world.now + 400, lambda follower=follower: follower.result is not None)  # type: ignore[misc]
        if follower.result is None:
            world.violate(f"{command} does not end")
        _require_noticed(world, [follower])
        text = follower.result["text"]
        if follower.result["code"] == 0:
            world.run_until(world.now + 20)
            served = _require_served(world, command, follower.living)
            if len(follower.living) == len(world.hosts):
                return served
            command, cleaned = runs.MIGRATE, []
            _return(world, dead)
            continue
        command, cleaned = follower.result["command"], follower.result.get("clean") or []
        world.run_until(world.now + 3)  # a host that reboots is dead for a while
        if follower.result.get("start"):
            _return(world, dead)
    world.violate(f"not served after {COMMANDS} commands; the last said: {text}")
    raise AssertionError


def _return(world: World, names: List[str]) -> None:
    """Have hosts come back with their old files, and Kafka use what it reaches."""
    for host in world.hosts:
        if host.name in names:
            host.come_back()
    world.run_until(world.now + 10)
    _start_promoted(world)


def _start_promoted(world: World) -> None:
    """The operator starts servers that served."""
    for host in world.hosts:
        if not host.up and not host.is_dead and host.state_file == ensemble_cut.PROMOTED:
            world.spawn(host._boot(), host, "boot")


def _require_served(world: World, command: str, living: List[Host]) -> str:
    states = {host.name: host.state_file for host in living}
    for host in living:
        if host.rules_by or host.blocked_by or host.drop_in:
            world.violate(f"{command} ended well, and {host.name} has rules {host.rules_by} {host.blocked_by} {states}")
    if all(host.config == OBSERVER and host.connected for host in living):
        return "source"
    if world.leader and all(host.synced for host in living) and set(states.values()) == {ensemble_cut.PROMOTED}:
        return "destination" if len(living) == len(world.hosts) else "a part of the destination"
    world.violate(f"{command} ended well, and Kafka is not served: {states}")
    raise AssertionError
