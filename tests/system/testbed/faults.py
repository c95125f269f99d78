# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Faults of a host, before a run or during a restart, injected on the host or from outside its container."""

from __future__ import annotations

import contextlib
import json
import shlex
import socket
import subprocess
import threading
import time
from typing import Iterator, Sequence

from ansible_collections.quorumshift.kafka.plugins.module_utils.wire import kafka_wire

from tests.system.testbed import layout, podman
from tests.system.testbed.layout import ROOT
from tests.system.testbed.running import Ran, Testbed
from tests.system.testbed.waiting import meanwhile, wait_for

COPIED_LONG_AGO = {
    "version": 0,
    "kraft_metadata_offset": 1234,
    "kraft_controller_id": 101,
    "kraft_metadata_epoch": 3,
    "kraft_controller_epoch": 3,
}
"""/migration as an earlier attempt left it after the initial copy."""

OTHER_RELEASE = "3.9.1"
_METADATA = "/var/lib/kafka/metadata"
_REBOOT_LIMIT_S = 180

_RESTART = """
import glob, json, os, signal, time
def record():
    try:
        return json.load(open(sorted(glob.glob("/var/lib/quorumshift/*/*/restart.json"))[0]))
    except (IndexError, ValueError):
        return {"steps": [], "id": None}
def reached(name):
    return name in [step["name"] for step in record()["steps"]]
previous = record()["id"]
"""

_KILL = """
while True:
    now = record()
    if now["id"] != previous and now["kind"] == %(kind)r and now["steps"][-1]["name"] == %(step)r:
        break
    time.sleep(0.002)
time.sleep(%(after)r)
lock = glob.glob("/var/lib/quorumshift/*/*/lock")[0]
for pid in filter(str.isdigit, os.listdir("/proc")):
    try:
        held = [os.readlink("/proc/%%s/fd/%%s" %% (pid, fd)) for fd in os.listdir("/proc/%%s/fd" %% pid)]
    except OSError:
        continue
    if lock in held:
        os.kill(int(pid), signal.SIGKILL)
"""

_TAKE_PORT = """
import socket
while True:
    taken = socket.socket()
    taken.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        taken.bind((%(address)r, %(port)r))
        taken.listen()
        break
    except OSError:
        taken.close()
        time.sleep(0.002)
while not (%(once)r and reached("revert the file")):
    time.sleep(0.05)
"""

# Shrink the disk to its content first: filling it would take as long as a broker's start.
_FILL_DISK = """
import subprocess
while not (record()["id"] != previous and reached("write the file")):
    time.sleep(0.002)
disk = os.statvfs(%(path)r)
used = (disk.f_blocks - disk.f_bfree) * disk.f_frsize
subprocess.run(["mount", "-o", "remount,size=%%d" %% (used + (1 << 16)), %(path)r], check=True)
with open(%(dump)r, "wb", buffering=0) as dump:
    for size in (1 << 12, 1):
        try:
            while True:
                dump.write(bytes(size))
        except OSError:
            pass
"""

_OPEN_PORT = """
import subprocess
while not (record()["id"] != previous and reached("revert the file")):
    time.sleep(0.02)
subprocess.run("iptables -D %(rule)s", shell=True, check=True)
"""

_END_BROKER = """
import subprocess
while not os.path.exists("/root/end-broker"):
    time.sleep(0.02)
subprocess.run(["systemctl", "kill", "--signal=KILL", "kafka"])
"""

# The hosts' control groups are read-only, so no quota of CPU time can be set.
_SLOW = """
import subprocess
def leave(*_signal):
    raise SystemExit
signal.signal(signal.SIGTERM, leave)
def process():
    shown = subprocess.run(["systemctl", "show", "--value", "-p", "MainPID", "kafka"], capture_output=True, text=True)
    return int(shown.stdout or 0)
end, pid = time.monotonic() + %(seconds)r, 0
try:
    while time.monotonic() < end:
        try:
            pid = pid or process()
            if pid:
                os.kill(pid, signal.SIGSTOP)
                time.sleep(0.465)
                os.kill(pid, signal.SIGCONT)
            time.sleep(0.035)
        except ProcessLookupError:
            pid = 0
finally:
    if pid:
        os.kill(pid, signal.SIGCONT)
"""

_KILL_IN_COPY = """
grep -q -m1 "Starting ZK migration" < <(tail -n 0 -F /var/log/kafka/controller.log 2>/dev/null)
systemctl kill --signal=KILL kafka-controller && date > /root/killed-in-copy && systemctl restart kafka-controller
"""


@contextlib.contextmanager
def _script(testbed: Testbed, host: str, name: str, script: str) -> Iterator[None]:
    """Run a Python script on the host as a systemd unit; stop it at exit."""
    command = f"systemd-run --quiet --collect --unit={name} /usr/bin/python3 -c {shlex.quote(_RESTART + script)}"
    testbed.run(host, command)
    try:
        yield
    finally:
        testbed.run(host, f"systemctl stop {name} 2>/dev/null; systemctl reset-failed {name} 2>/dev/null; true")


@contextlib.contextmanager
def worker_killed(testbed: Testbed, host: str, kind: str, step: str, after: float = 0.0) -> Iterator[None]:
    """Kill the worker of the host's next restart of this kind, `after` seconds after it recorded this step."""
    with _script(testbed, host, "kill-worker", _KILL % {"kind": kind, "step": step, "after": after}):
        # Some steps take a few milliseconds, so the script needs priority, which a container may not set for itself.
        _from_outside(host, "renice -n -20 -p $(pgrep -f 'if lock in held') >/dev/null", "-n")
        yield


def slowed(testbed: Testbed, host: str, seconds: float):
    """Let the broker's process run for 35 ms of each half second, for `seconds`."""
    return _script(testbed, host, "slow-broker", _SLOW % {"seconds": seconds})


def port_taken(testbed: Testbed, host: str, port: int, once: bool = False):
    """Listen on the broker's port as soon as it is free; with `once`, until the worker restores the old file."""
    return _script(
        testbed, host, "take-port", _TAKE_PORT % {"address": testbed.addresses[host], "port": port, "once": once}
    )


@contextlib.contextmanager
def disk_full(testbed: Testbed, host: str, path: str, spare_kb: int = 1200 * 1024) -> Iterator[None]:
    """Move the broker's log directory `path` to a separate disk, which fills up during the host's next restart.

    The disk is large enough for the preflight. At exit it has room again; it stays.
    """
    size = f"$(( $(du -sk {path}.moved | cut -f1) + {spare_kb} ))k"
    dump = f"{path}/other-dump"
    testbed.run(host, f"systemctl stop kafka && cp -a --sparse=always {path} {path}.moved")
    # The container's root may not mount, so this runs outside, in the container's mount namespace.
    _from_outside(
        host,
        f"mount -t tmpfs -o size={size} tmpfs {path} && chown --reference={path}.moved {path} && "
        f"cp -a --sparse=always {path}.moved/. {path}/",
    )
    testbed.run(host, "systemctl start kafka")
    testbed.wait_listening(host, 9092)
    testbed.wait_in_sync()
    pid = _podman(host, "inspect", "--format", "{{.State.Pid}}")
    filling = subprocess.Popen(
        ["nsenter", "-t", pid, "-m", "/usr/bin/python3", "-c", _RESTART + _FILL_DISK % {"path": path, "dump": dump}]
    )
    try:
        yield
    finally:
        filling.kill()
        filling.wait()
        _from_outside(host, f"rm -f {dump}; mount -o remount,size={size} {path}")


def power_off(host: str) -> None:
    """End a host at once, as a loss of power does: nothing is stopped, and no address answers."""
    _podman(host, "kill")


def power_on(host: str) -> None:
    """Boot a host that was powered off: only what systemd starts at boot is up."""
    _podman(host, "start")


def _podman(host: str, *command: str) -> str:
    """Run a podman command on a host's container; return its output."""
    return podman.podman(*command, layout.host_named(host).container, timeout=_REBOOT_LIMIT_S + 30)


def _from_outside(host: str, command: str, namespace: str = "-m") -> None:
    """Run a command from outside, in one namespace of a host's container."""
    pid = _podman(host, "inspect", "--format", "{{.State.Pid}}")
    subprocess.run(["nsenter", "-t", pid, namespace, "sh", "-ec", command], check=True, timeout=60)


# Ansible's messages for an unreachable host; the second one for a loop item that is delegated to it
UNREACHED = "UNREACHABLE|could not be sent to remote host"

# As in the operators' guide, but shorter: otherwise ssh hangs on a dead connection.
ALIVE = {"ansible_ssh_args": "-C -o ControlMaster=no -o ServerAliveInterval=2 -o ServerAliveCountMax=2"}


class Unreachable:
    """Makes a host unreachable by SSH only: its packets are dropped."""

    def __init__(self, host: str) -> None:
        self.host = host
        self.cut = False

    def begin(self) -> None:
        """Drop SSH packets; a second call does nothing."""
        if not self.cut:
            self.cut = True
            _from_outside(self.host, "iptables -I INPUT -p tcp --dport 22 -j DROP", "-n")

    def end(self) -> None:
        """Accept SSH packets again."""
        if self.cut:
            self.cut = False
            _from_outside(self.host, "iptables -D INPUT -p tcp --dport 22 -j DROP", "-n")

    def __enter__(self) -> Unreachable:
        return self

    def __exit__(self, *_raised: object) -> None:
        self.end()


@contextlib.contextmanager
def never_seen_up(testbed: Testbed, host: str, once: bool = False) -> Iterator[None]:
    """Close the broker's listener to its own host, so that its restart times out.

    With `once`, only until the worker restores the old file.
    """
    rule = "INPUT -i lo -p tcp --dport 9092 -j REJECT"
    testbed.run(host, f"iptables -I {rule}")
    try:
        with _script(testbed, host, "open-port", _OPEN_PORT % {"rule": rule}) if once else contextlib.nullcontext():
            yield
    finally:
        testbed.run(host, f"iptables -D {rule} 2>/dev/null; true")


def migration_that_empties_zookeeper(testbed: Testbed) -> Ran:
    """Run migrate.yml so that the quorum skips the initial copy and deletes ZooKeeper's content (KAFKA-17146).

    While the last broker is down, the controllers are killed and start again with a /migration that says that
    everything was already copied, as if an old tree had been restored.
    """
    stops: list[str] = []

    def at_the_last_stop(line: str) -> bool:
        stops.extend(host for host in testbed.brokers if line.strip() == f"{host} stops")
        if len(stops) == len(testbed.brokers):
            stops.append("all")
            testbed.on_each(testbed.controllers, "systemctl kill --signal=KILL kafka-controller")
            with testbed.zookeeper() as client:
                # epoch 0: KRaft ignores a state whose epoch is above its own (KRaftMigrationDriver)
                old = {**COPIED_LONG_AGO, "kraft_metadata_epoch": 0, "kraft_controller_epoch": 0}
                client.set("/migration", json.dumps(old).encode())
            testbed.on_each(testbed.controllers, "systemctl restart kafka-controller")
        return False

    return testbed.play(kill_when=at_the_last_stop, extra={"quorumshift_copy_timeout_s": 120})


@contextlib.contextmanager
def dropped(testbed: Testbed, hosts: Sequence[str], *rules: str) -> Iterator[None]:
    """Drop on these hosts the packets that match one of these iptables rules."""

    def each(option: str) -> str:
        return "; ".join(f"iptables {option} {rule} -j DROP" for rule in rules)

    testbed.on_each(hosts, each("-I"))
    try:
        yield
    finally:
        testbed.on_each(hosts, each("-D"))


def without_connections(testbed: Testbed, *hosts: str) -> contextlib.AbstractContextManager[None]:
    """Drop new connections from the control node to the hosts, except SSH."""
    control_node = testbed.run(testbed.brokers[0], "echo $SSH_CONNECTION").split()[0]
    return dropped(testbed, hosts, f"INPUT -p tcp -s {control_node} ! --dport 22 --syn")


@contextlib.contextmanager
def ended_when_copied(testbed: Testbed, host: str) -> Iterator[None]:
    """Kill the broker as soon as /controller is KRaft's."""

    def watch(over: threading.Event) -> None:
        with testbed.zookeeper() as client:
            while not over.is_set():
                if client.exists("/controller") and not client.get("/controller")[1].ephemeralOwner:
                    testbed.run(host, "touch /root/end-broker")
                    return
                time.sleep(0.02)

    with _script(testbed, host, "end-broker", _END_BROKER):
        try:
            with meanwhile(watch):
                yield
        finally:
            testbed.run(host, "rm -f /root/end-broker")


def service_of(testbed: Testbed, host: str) -> tuple[str, str, int]:
    """Return the name of a host's Kafka service, its properties file and its port."""
    if host in testbed.controllers:
        return "kafka-controller", "/etc/kafka/controller.properties", 9093
    return "kafka", "/etc/kafka/server.properties", 9092


def restarted(testbed: Testbed, host: str, change: str) -> None:
    """Run a command on a host, restart its Kafka service, wait until it is up and all partitions are in sync."""
    service, _file, port = service_of(testbed, host)
    testbed.run(host, f"{change} && systemctl restart {service}")
    testbed.wait_listening(host, port)
    if host in testbed.brokers:
        testbed.wait_in_sync()


@contextlib.contextmanager
def edited(testbed: Testbed, host: str, expression: str) -> Iterator[None]:
    """Edit a node's properties with sed and restart it; undo that at exit."""
    _service, path, _port = service_of(testbed, host)
    restarted(testbed, host, f"cp -a {path} {path}.test && sed -i '{expression}' {path}")
    try:
        yield
    finally:
        restarted(testbed, host, f"mv {path}.test {path}")


@contextlib.contextmanager
def other_release(testbed: Testbed, host: str) -> Iterator[None]:
    """Run a broker with the Kafka jars of OTHER_RELEASE; undo that at exit."""
    jars = ROOT / ".build" / "kafka" / OTHER_RELEASE
    goal = ("dependency:copy-dependencies", "-DincludeGroupIds=org.apache.kafka", f"-DoutputDirectory={jars}")
    pom = layout.TESTBED / "pom.xml"
    subprocess.run(
        ["mvn", "-q", "-B", "-f", str(pom), f"-Dkafka.version={OTHER_RELEASE}", *goal], check=True, timeout=300
    )
    libs, aside = "/opt/kafka/libs", "/root/libs.test"
    testbed.run(host, f"mkdir {aside} && mv {libs}/kafka*.jar {aside}/")
    try:
        testbed.send(host, sorted(jars.glob("kafka*.jar")), libs)
        restarted(testbed, host, "true")
        yield
    finally:
        restarted(testbed, host, f"rm -f {libs}/kafka*.jar && mv {aside}/* {libs}/ && rmdir {aside}")


def leader(testbed: Testbed) -> str:
    """Return the host of the quorum's leader. Raise TimeoutError if there is none."""

    def read() -> str | None:
        for host in testbed.controllers:
            try:
                quorum = kafka_wire.describe_quorum(kafka_wire.HostPort(testbed.addresses[host], 9093), None, 2)
            except kafka_wire.WireError:
                continue
            return next(
                controller for controller in testbed.controllers if testbed.node_id(controller) == quorum.leader_id
            )
        return None

    return str(wait_for(read, 60, "a leader of the quorum"))


def reboot(testbed: Testbed, host: str) -> None:
    """Reboot a host and wait until SSH reaches it: only what systemd starts at boot is up."""
    _podman(host, "restart", "--time", str(_REBOOT_LIMIT_S))

    def answers() -> bool:
        # Short attempts: for half a minute the neighbour entry of the rebooted host may be stale, and a longer attempt
        # would wait for TCP's growing retransmission pauses.
        try:
            with socket.create_connection((testbed.addresses[host], 22), 2) as to:
                return bool(to.recv(3))
        except OSError:
            return False

    wait_for(answers, 120, f"{host} to answer on SSH's port")
    wait_for(lambda: testbed.run(host, "echo up", check=False) == "up", 60, f"SSH to {host}")


@contextlib.contextmanager
def controller_disk_full(testbed: Testbed, host: str, spare_kb: int = 64 * 1024) -> Iterator[None]:
    """Move a controller's metadata log to a separate disk and fill the disk.

    At exit there is room again and the controller is up; the disk stays.
    """
    path, dump = _METADATA, f"{_METADATA}/other-dump"
    testbed.run(host, f"systemctl stop kafka-controller && cp -a --sparse=always {path} {path}.moved")
    size = f"$(( $(du -sk {path}.moved | cut -f1) + {spare_kb} ))k"
    # The container's root may not mount, so this runs outside, in the container's mount namespace.
    _from_outside(
        host,
        f"mount -t tmpfs -o size={size} tmpfs {path} && chown --reference={path}.moved {path} && "
        f"cp -a --sparse=always {path}.moved/. {path}/",
    )
    testbed.run(host, "systemctl start kafka-controller")
    testbed.wait_listening(host, 9093)
    testbed.run(host, f"cat /dev/zero > {dump} 2>/dev/null; true")
    try:
        with contextlib.suppress(TimeoutError):  # it may also stay up
            wait_for(lambda: testbed.run(host, "systemctl is-active kafka-controller; true") != "active", 20, "its end")
        yield
    finally:
        testbed.run(host, f"rm -f {dump}; systemctl restart kafka-controller")
        testbed.wait_listening(host, 9093)


@contextlib.contextmanager
def killed_in_copy(testbed: Testbed) -> Iterator[None]:
    """Kill the controller that begins the initial copy, once, and start it again as a service manager would.

    Raise RuntimeError at exit if no controller was killed.
    """
    unit, mark = "kill-in-copy", "/root/killed-in-copy"
    command = f"systemd-run --quiet --collect --unit={unit} /bin/bash -c {shlex.quote(_KILL_IN_COPY)}"
    testbed.on_each(testbed.controllers, f"rm -f {mark}; {command}")
    try:
        yield
    finally:
        testbed.on_each(
            testbed.controllers, f"systemctl stop {unit} 2>/dev/null; systemctl reset-failed {unit} 2>/dev/null; true"
        )
    killed = [host for host in testbed.controllers if testbed.run(host, f"cat {mark} 2>/dev/null", check=False)]
    if not killed:
        raise RuntimeError("no controller was killed: none logged the beginning of the initial copy")


class Availability(threading.Thread):
    """A context manager that polls the brokers; `worst` is the largest set that did not answer at the same time."""

    def __init__(self, testbed: Testbed) -> None:
        super().__init__(daemon=True)
        self.addresses = {host: kafka_wire.HostPort(testbed.addresses[host], 9094) for host in testbed.brokers}
        self.security = testbed.connections().client
        self.worst: set[str] = set()
        self._over = threading.Event()

    def __enter__(self) -> Availability:
        self.start()
        return self

    def __exit__(self, *_exception: object) -> None:
        self._over.set()
        self.join(30)

    def run(self) -> None:
        while not self._over.wait(0.1):
            down = {host for host, address in self.addresses.items() if not self._answers(address)}
            self.worst = max(self.worst, down, key=len)

    def _answers(self, address: kafka_wire.HostPort) -> bool:
        try:
            return bool(kafka_wire.api_versions(address, self.security, 3))
        except kafka_wire.WireError:
            return False
