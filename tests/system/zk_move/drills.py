# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Faults in a move between ensembles. Each drill begins and ends with brokers on observers, unless it says otherwise.

A drill raises AssertionError, and returns what its row says.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import threading
import time
from typing import Callable, Iterator

from tests.system.testbed import faults
from tests.system.testbed.waiting import wait_for
from tests.system.zk_move.bed import BROKERS, DESTINATION, SOURCE, STATE, Bed, kill

Drill = Callable[[Bed], str]
LONG_S = 600.0
TOPIC = "lab.0"  # to which the producer of a rehearsal writes


def require_healed(bed: Bed, before: dict[str, int], restarted: tuple[str, ...] = ()) -> str:
    """Assert that all destination servers are observers again, without rules, and the same sessions."""
    wait_for(lambda: set(bed.modes().values()) == {"observer"}, LONG_S, "all destination servers to be observers")
    wait_for(lambda: all(bed.rules(host) == 0 for host in DESTINATION), LONG_S, "no rule of the cut to be left")
    after = bed.sessions(bed.destination)
    kept = [path for path, session in before.items() if after.get(path) == session]
    lost = sorted(set(before) - set(kept))
    assert all(path in restarted for path in lost), f"sessions lost: {lost}"
    return f"healed; {len(kept)} of {len(before)} sessions kept"


def killed_when(state: str) -> Drill:
    """The control process is killed once all hosts are in a state: each undoes the cut at its deadline."""

    def drill(bed: Bed) -> str:
        before, name = bed.sessions(bed.destination), f"killed-{state}"
        process = bed.cut_alone(name)
        try:
            wait_for(lambda: _any_in(bed, state) or process.poll() is not None, LONG_S, f"state {state}")
            assert process.poll() is None, bed.log(name)[-2000:]
        finally:
            kill(process)
        began = time.monotonic()
        wait_for(lambda: set(bed.states().values()) <= {"healed"}, 120, "the deadline")
        return f"{require_healed(bed, before)} {time.monotonic() - began:.0f} s after the kill"

    return drill


def write_on_the_source(bed: Bed) -> str:
    """A client writes to Kafka's subtree on the source after the fence: the check fails."""
    before = bed.sessions(bed.destination)
    _fail_the_check(bed, "write")
    return require_healed(bed, before)


def server_killed(bed: Bed) -> str:
    """A destination server is killed after the fence, and the check fails: the others and it are healed."""
    before = bed.sessions(bed.destination)
    _fail_the_check(bed, "server", lambda: bed.run("z2", "systemctl kill --signal=KILL zookeeper"))
    bed.run("z2", "systemctl start zookeeper")  # the testbed's unit does not restart it
    return require_healed(bed, before)


def _fail_the_check(bed: Bed, log: str, at_the_fence: Callable[[], object] = lambda: None) -> None:
    """Run a cut in which a client writes to Kafka's subtree on the source after the fence."""
    with bed.zookeeper(bed.source) as client:
        client.ensure_path("/quorumshift_drill")
        process = bed.cut_alone(log)
        with _meanwhile(lambda: client.set("/quorumshift_drill", str(time.time()).encode())) as writing:
            wait_for(lambda: _any_in(bed, "fenced") or process.poll() is not None, LONG_S, "the fence")
            at_the_fence()
            writing.set()
            assert process.wait() != 0, bed.log(log)[-2000:]
        text = bed.log(log)
        assert "lacks" in text or "wrote to the source after the cut" in text, text[-3000:]
        client.delete("/quorumshift_drill")


def broker_killed(bed: Bed) -> str:
    """A broker is killed during the cut: the run heals it."""
    before = bed.sessions(bed.destination)
    process = bed.cut_alone("broker")
    try:
        with _killed_at_the_fence(bed):
            assert process.wait() != 0, bed.log("broker")[-2000:]
        assert "was reached before the cut, and not since" in bed.log("broker"), bed.log("broker")[-3000:]
        return require_healed(bed, before, (f"/brokers/ids/{_id(bed, BROKERS[-1])}", "/controller"))
    finally:
        kill(process)
        wait_for(
            lambda: f"/brokers/ids/{_id(bed, BROKERS[-1])}" not in bed.sessions(bed.destination),
            LONG_S,
            "its session's end",
        )
        bed.run(BROKERS[-1], "systemctl start kafka")
        wait_for(lambda: f"/brokers/ids/{_id(bed, BROKERS[-1])}" in bed.sessions(bed.destination), LONG_S, "the broker")


def rebooted_after_the_cut(bed: Bed) -> str:
    """A destination host loses its rules, worker and timer after the cut, as by a reboot: nothing is promoted."""
    before = bed.sessions(bed.destination)
    process = bed.cut_alone("reboot")
    try:
        wait_for(lambda: bed.state("z2") == "cut" or process.poll() is not None, LONG_S, "the cut on z2")
        kill(process)
        lose_rules(bed, "z2")
        wait_for(lambda: bed.mode("z2") == "observer", LONG_S, "z2 to be an observer")
        assert bed.state("z2") == "cut", bed.states()  # as a reboot leaves it
        wait_for(lambda: bed.state("z1") == bed.state("z3") == "healed", 120, "the deadline of the others")
        bed.run("z2", "sh /var/lib/quorumshift/zk_cut/heal.sh")
        return require_healed(bed, before)
    finally:
        kill(process)


def lose_rules(bed: Bed, host: str) -> None:
    """Do on a host what a reboot does: no rules, no transient units; the server starts by its unit."""
    bed.run(
        host,
        "systemctl kill --signal=KILL zookeeper quorumshift-zk-cut; systemctl stop quorumshift-zk-cut-deadline.timer; "
        "iptables -F; ip6tables -F; systemctl reset-failed; systemctl start zookeeper",
    )


def one_not_promoted(bed: Bed) -> str:
    """A worker stands still between the check and its promotion: the other hosts stay fenced, a reboot included, Kafka
    goes on with the source through that one, and a rollback takes the promotions back."""
    before = bed.sessions(bed.destination)
    promoted, other = DESTINATION[:2], DESTINATION[2]
    process = bed.cut_alone("one")
    try:
        with _standing_still(bed, other, "cut"):
            assert process.wait() != 0, bed.log("one")[-3000:]
    finally:
        kill(process)
    assert f"{', '.join(promoted)} accepted their promotion and stay fenced." in bed.log("one"), bed.log("one")[-3000:]
    wait_for(lambda: bed.state(other) == "healed", 120, "the deadline of the other")
    lose_rules(bed, promoted[0])
    wait_for(lambda: bed.rules(promoted[0]), LONG_S, "the fence after the reboot")
    assert [bed.mode(host) for host in promoted] == ["", ""], bed.modes()
    wait_for(lambda: bed.mode(other) == "observer", LONG_S, f"{other} to be an observer again")
    after = bed.sessions(bed.destination)
    assert after == before, (before, after)
    assert bed.playbook("zk_rollback", "rollback-one").wait() == 0, bed.log("rollback-one")[-3000:]
    assert not any(bed.rules(host) for host in DESTINATION)
    assert not set(bed.ids()) & {session >> 56 for session in bed.sessions(bed.source).values()}
    assert bed.playbook("zk_migrate", "after-one", "zk_migrate_cut=false").wait() == 0, bed.log("after-one")[-3000:]
    return "promoted hosts stayed fenced, all sessions kept by the other; rolled back, and moved again"


def hung(bed: Bed) -> str:
    """A worker hangs in the middle of the cut, with the lock: the deadline ends it, and undoes the cut."""
    before, host = bed.sessions(bed.destination), DESTINATION[2]
    worker = "pid=$(systemctl show --property=MainPID --value quorumshift-zk-cut)"
    process = bed.cut_alone("hung")
    try:
        with _ssh(
            bed,
            host,
            f"{_until('fenced')}; {worker}; cd {STATE}; while flock -n lock true; do :; done; kill -STOP $pid",
        ):
            assert process.wait() != 0, bed.log("hung")[-2000:]
    finally:
        kill(process)
    assert "its timer undid the cut" in bed.log("hung"), bed.log("hung")[-3000:]
    assert bed.run(host, "systemctl is-active quorumshift-zk-cut; true") != "active"
    return require_healed(bed, before)


def suspended(bed: Bed) -> str:
    """The control process stands still for longer than the budget: nothing is promoted when it goes on."""
    before = bed.sessions(bed.destination)
    process = bed.cut_alone("suspended")
    try:
        wait_for(lambda: _any_in(bed, "cut") or process.poll() is not None, LONG_S, "state cut")
        assert process.poll() is None, bed.log("suspended")[-2000:]
        os.killpg(process.pid, signal.SIGSTOP)
        wait_for(lambda: set(bed.states().values()) <= {"healed"}, 120, "the deadline")
        os.killpg(process.pid, signal.SIGCONT)
        assert process.wait() != 0, bed.log("suspended")[-2000:]
        text = bed.log("suspended")  # suspended before the end of the check, or after it
        assert "s before the deadline" in text or "the deadline passed" in text, text[-3000:]
        return require_healed(bed, before)
    finally:
        kill(process)


def taken_back(bed: Bed) -> str:
    """A rollback while all brokers use the observers, killed after the first broker's restart, and run again; a third
    one finds nothing to do. While the brokers move again, the source elects another leader."""
    process = bed.playbook("zk_rollback", "rollback-killed")
    try:
        wait_for(lambda: _on_source(bed) or process.poll() is not None, LONG_S, "a broker on the source")
        assert process.poll() is None, bed.log("rollback-killed")[-2000:]
    finally:
        kill(process)
    seen = f"{len(_on_source(bed))} of {len(BROKERS)} brokers on the source at the kill"
    assert bed.playbook("zk_rollback", "rollback").wait() == 0, bed.log("rollback")[-3000:]
    on_source = bed.sessions(bed.source)
    assert not set(bed.ids()) & {session >> 56 for session in on_source.values()}
    assert bed.playbook("zk_rollback", "rollback-again").wait() == 0, bed.log("rollback-again")[-3000:]
    assert bed.sessions(bed.source) == on_source, "a rollback with nothing to take back restarted a broker"
    led = _moved_while_the_leader_changes(bed)
    assert {session >> 56 for session in bed.sessions(bed.destination).values()} <= set(bed.ids())
    return f"{seen}; taken back; moved again, {led}"


def died(bed: Bed) -> str:
    """A destination host loses power once it is fenced: the others heal themselves, and so does it once it has
    booted."""
    before, host = bed.sessions(bed.destination), DESTINATION[2]
    process = bed.cut_alone("died")
    try:
        _power_off(bed, host, "fenced", process)
        assert process.wait() != 0, bed.log("died")[-3000:]
    finally:
        kill(process)
        _power_on(bed, host)
    assert f"If {host} is dead: -e zk_migrate_dead_hosts={host}" in bed.log("died"), bed.log("died")[-3000:]
    wait_for(lambda: bed.mode(host) == "observer", LONG_S, f"{host} to be an observer again")
    bed.run(host, f"sh {STATE}/heal.sh")  # as the next run does
    return require_healed(bed, before)


def died_while_the_others_promote(bed: Bed) -> str:
    """A destination host loses power after the check, before it accepts its promotion, which the others accept: Kafka
    reaches no ZooKeeper server. The command that the run prints takes their promotions back; the host comes back."""
    host, others = DESTINATION[2], DESTINATION[:2]
    process = bed.playbook("zk_migrate", "died-promoting")
    try:
        with _standing_still(bed, host, "cut"):
            wait_for(
                lambda: {bed.state(host) for host in others} == {"promoting"} or process.poll() is not None,
                LONG_S,
                "the promotion of the others",
            )
            faults.power_off(host)
        assert process.wait() != 0, bed.log("died-promoting")[-3000:]
    finally:
        kill(process)
    text = bed.log("died-promoting").rpartition("The run ended at")[2]
    for said in ("Kafka uses no destination server that answers", "Run quorumshift.kafka.zk_rollback"):
        assert said in text, text[-3000:]
    dead = f"zk_migrate_dead_hosts={host}"
    assert f"If {host} is dead: with -e {dead}" in text, text[-3000:]
    assert bed.playbook("status", "status-promoting").wait() == 0
    assert f"-e {dead}" in bed.log("status-promoting").rpartition("next:")[2], bed.log("status-promoting")[-2000:]
    assert bed.playbook("zk_rollback", "rollback-promoting", dead).wait() == 0, bed.log("rollback-promoting")[-3000:]
    assert not set(bed.ids()) & {session >> 56 for session in bed.sessions(bed.source).values()}
    _power_on(bed, host)
    again = bed.playbook("zk_migrate", "after-promoting", "zk_migrate_cut=false")
    assert again.wait() == 0, bed.log("after-promoting")[-3000:]
    assert set(bed.modes().values()) == {"observer"}, bed.modes()
    return f"{', '.join(others)} accepted, {host} did not: rolled back without it; back, and moved again"


def moved_without_a_dead_host(bed: Bed) -> str:
    """The end of a move whose last cut a destination host does not survive: the others are promoted without it. It
    returns with its old files, is refused, cleaned, and joins. A run of its own verifies that."""
    host, living = DESTINATION[2], DESTINATION[:2]
    servers, slash, chroot = bed.destination.partition("/")
    address = bed.inventory.hosts[host]
    short = ",".join(server for server in servers.split(",") if server.rpartition(":")[0] != address) + slash + chroot
    process = bed.playbook("zk_migrate", "cut-died")
    try:
        _power_off(bed, host, "fenced", process)
        assert process.wait() != 0, bed.log("cut-died")[-3000:]
    finally:
        kill(process)
    text = bed.log("cut-died")
    assert f"If {host} is dead: -e zk_migrate_dead_hosts={host}" in text.rpartition("The run ended at")[2], text[-3000:]
    wait_for(lambda: {bed.state(host) for host in living} <= {"healed"}, 120, "the deadline of the others")
    dead = (f"zk_migrate_dead_hosts={host}", f"zk_migrate_destination_connect={short}")
    assert bed.playbook("zk_migrate", "cut-without", *dead).wait() == 0, bed.log("cut-without")[-3000:]
    assert sorted(bed.mode(host) for host in living) == ["follower", "leader"], bed.modes()
    _power_on(bed, host)
    assert bed.playbook("zk_migrate", "returned").wait() != 0, "a host that was left out came back unnoticed"
    assert f"-e zk_migrate_clean_hosts={host}" in bed.log("returned"), bed.log("returned")[-3000:]
    assert sorted(bed.mode(host) for host in living) == ["follower", "leader"], bed.modes()
    cleaned = bed.playbook("zk_migrate", "cleaned", f"zk_migrate_clean_hosts={host}")
    assert cleaned.wait() == 0, bed.log("cleaned")[-3000:]
    assert "gate after_cut" in bed.log("cleaned"), bed.log("cleaned")[-3000:]
    assert sorted(bed.modes().values()) == ["follower", "follower", "leader"], bed.modes()
    assert not any(bed.rules(host) for host in DESTINATION)
    return f"{host} lost power in the cut; moved without it; back, refused, cleaned, joined and verified"


def _power_off(bed: Bed, host: str, state: str, process: subprocess.Popen) -> None:
    """End a host that has reached a state, before its worker does more."""
    with _standing_still(bed, host, state):
        wait_for(lambda: bed.state(host) == state or process.poll() is not None, LONG_S, f"state {state} on {host}")
        assert process.poll() is None, f"the run ended before {host} was {state}"
        faults.power_off(host)


def _power_on(bed: Bed, host: str) -> None:
    """Boot a host; its ZooKeeper server is started, since the testbed's unit is not enabled."""
    faults.power_on(host)
    wait_for(lambda: bed.run(host, "echo up") == "up", LONG_S, f"SSH to {host}")
    bed.run(host, "systemctl start zookeeper")


@contextlib.contextmanager
def _standing_still(bed: Bed, host: str, state: str) -> Iterator[None]:
    """Stop a host's worker once it has reached a state."""
    with _ssh(bed, host, f"{_until(state)}; systemctl kill --signal=STOP quorumshift-zk-cut") as stopping:
        try:
            yield
        finally:
            stopping.kill()


def _moved_while_the_leader_changes(bed: Bed) -> str:
    """Move the brokers to the observers; restart the source's leader when the first one is there."""
    (leader,) = [host for host in SOURCE if bed.mode(host) == "leader"]
    process = bed.playbook("zk_migrate", "leader-changes", "zk_migrate_cut=false")
    try:
        wait_for(lambda: len(_on_source(bed)) < len(BROKERS) or process.poll() is not None, LONG_S, "a broker moved")
        assert process.poll() is None, bed.log("leader-changes")[-2000:]
        with bed.disturbing():
            bed.run(leader, "systemctl restart zookeeper")
            wait_for(lambda: [bed.mode(host) for host in SOURCE].count("leader") == 1, LONG_S, "a leader")
            wait_for(lambda: set(bed.modes().values()) == {"observer"}, LONG_S, "the observers to have joined it")
            now = next(host for host in SOURCE if bed.mode(host) == "leader")
        code = process.wait()
    finally:
        kill(process)
    if code == 0:
        return f"by one run although the leader changed from {leader} to {now}"
    again = bed.playbook("zk_migrate", "leader-changed", "zk_migrate_cut=false")
    assert again.wait() == 0, bed.log("leader-changed")[-3000:]
    return f"by a second run, since the leader changed from {leader} to {now} in the first"


def _on_source(bed: Bed) -> list[str]:
    """Return the znodes of brokers whose session was made by a source server."""
    sessions = bed.sessions(bed.source).items()
    return [path for path, session in sessions if path != "/controller" and session >> 56 not in bed.ids()]


def rehearsed(bed: Bed) -> str:
    """Rehearse the cut: it is healed on purpose, all is as before, and the report has what it took."""
    before = bed.sessions(bed.destination)
    process = bed.playbook("zk_migrate", "rehearsed", "zk_migrate_rehearse=true", f"zk_migrate_rehearse_topic={TOPIC}")
    assert process.wait() == 0, bed.log("rehearsed")[-3000:]
    text = bed.log("rehearsed")
    for said in ("the rehearsed cut", "observer of the source again", "a cut takes", "the longest pause"):
        assert said in text, text[-3000:]
    assert "promotion accepted" not in "".join(str(bed.record(host)["steps"]) for host in DESTINATION)
    assert bed.playbook("status", "status-rehearsed").wait() == 0
    assert "ready for the cut, which was rehearsed" in bed.log("status-rehearsed"), bed.log("status-rehearsed")[-2000:]
    reports = [
        line.strip() for line in text.splitlines() if "up to the promotion" in line or "a producer wrote" in line
    ]
    return f"{require_healed(bed, before)}; {'; '.join(reports)}"


DRILLS: dict[str, Drill] = {
    "the cut is rehearsed": rehearsed,
    "control process killed after the fence": killed_when("fenced"),
    "control process killed after the cut": killed_when("cut"),
    "a client writes to the source during the cut": write_on_the_source,
    "a broker is killed during the cut": broker_killed,
    "a destination host is rebooted after the cut": rebooted_after_the_cut,
    "the control process stands still for longer than the budget": suspended,
    "a worker hangs in the middle of the cut": hung,
    "a destination server is killed after the fence": server_killed,
    "one destination host is not promoted": one_not_promoted,
    "a destination host loses power once it is fenced": died,
    "a destination host loses power while the others are promoted": died_while_the_others_promote,
    "a rollback is killed, and run again; the source's leader changes in the next roll": taken_back,
}


def _any_in(bed: Bed, state: str) -> bool:
    return state in bed.states().values()


def _id(bed: Bed, broker: str) -> int:
    return {"b1": 1, "b2": 2, "b3": 5}[broker]


def _until(state: str) -> str:
    """Return the command that waits on a destination host until its worker is in a state: a question from here may come
    seconds late, when the check is over."""
    return f"until grep -qsx {state} {STATE}/state; do sleep 0.02; done"


def _ssh(bed: Bed, host: str, command: str) -> subprocess.Popen:
    return subprocess.Popen(bed.inventory.ssh(host, command), stdin=subprocess.PIPE, stdout=subprocess.PIPE)


@contextlib.contextmanager
def _killed_at_the_fence(bed: Bed) -> Iterator[None]:
    """Kill the last broker once a destination host is fenced, whose worker stands still until then: a question from
    here may come late, when the check is over."""
    worker = "pid=$(systemctl show --property=MainPID --value quorumshift-zk-cut)"
    held = f"{_until('fenced')}; {worker}; kill -STOP $pid; echo fenced; read killed; kill -CONT $pid"
    killed = "read fenced; systemctl kill --signal=KILL kafka; echo killed"
    with _ssh(bed, DESTINATION[0], held) as holding, _ssh(bed, BROKERS[-1], killed) as killing:

        def run() -> None:
            for reading, writing in ((holding, killing), (killing, holding)):
                if reading.stdout.readline():
                    writing.stdin.write(b"\n")
                    writing.stdin.flush()

        thread = threading.Thread(target=run)
        thread.start()
        try:
            yield
        finally:
            holding.kill()
            killing.kill()
            thread.join()


@contextlib.contextmanager
def _meanwhile(work: Callable[[], object]) -> Iterator[threading.Event]:
    """Do something again and again once the event is set, until the block ends."""
    begin, end = threading.Event(), threading.Event()

    def loop() -> None:
        begin.wait()
        while not end.wait(0.2):
            work()

    thread = threading.Thread(target=loop, daemon=True)
    thread.start()
    try:
        yield begin
    finally:
        begin.set()
        end.set()
        thread.join()
