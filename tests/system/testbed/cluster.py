# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Create the hosts, start ZooKeeper and the brokers, seed them once, and reset them to the seed."""

from __future__ import annotations

import shutil
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Callable

from confluent_kafka import ElectionType, KafkaException

from tests.system.testbed import ensemble, hosts, image, inventory, jars, podman, secrets_store, security, seed
from tests.system.testbed.clients import admin_client
from tests.system.testbed.layout import (
    ARTIFACTS,
    BROKERS,
    HOSTS,
    LAYOUT,
    SECRETS,
    STATE,
    STATES,
    TESTBED,
    ZOOKEEPERS,
    Host,
    Network,
    TestbedError,
    digest_of,
)

_SERVING_TIMEOUT = 240.0
_SSH_TIMEOUT = 90.0  # fifteen hosts boot at once on two cores
Say = Callable[[str], None]


@dataclass(frozen=True)
class Health:
    """The cluster's health in clients' metadata: live brokers, partitions, under-replicated partitions."""

    brokers: int
    partitions: int
    under_replicated: int
    error: str = ""

    def serving(self, partitions: int) -> bool:
        """Return whether all brokers are alive with at least `partitions` partitions, each with its full ISR."""
        alive = not self.error and self.brokers == len(BROKERS)
        return alive and self.partitions >= partitions and self.under_replicated == 0

    @property
    def sentence(self) -> str:
        if self.error:
            return f"no broker answers on the listener CLIENTS: {self.error}"
        counts = f"{self.partitions} partitions, {self.under_replicated} under-replicated"
        return f"{self.brokers} of {len(BROKERS)} brokers, {counts}"


def health(network: Network) -> Health:
    """Return the cluster's health, read once through the SASL_SSL listener."""
    try:
        metadata = admin_client(network, secrets_store.ensure()).list_topics(timeout=5)
    except KafkaException as error:
        return Health(0, 0, 0, str(error))
    partitions = [p for topic in metadata.topics.values() for p in topic.partitions.values()]
    under_replicated = sum(1 for p in partitions if p.leader < 0 or len(p.isrs) < len(p.replicas))
    return Health(len(metadata.brokers), len(partitions), under_replicated)


def up(say: Say) -> None:
    """Start the hosts and the cluster from the seed, unless they run already; make the seed if there is none."""
    network, secrets = _prepare(say)
    if podman.running():
        say("the hosts run already; `reset` restores the seeded state")
        ensemble.release(network, secrets)
    else:
        _from_seed(network, secrets, say)
    say(_wait_serving(network).sentence)


def reset(say: Say) -> None:
    """Replace hosts and cluster by the seeded state."""
    network, secrets = _prepare(say)
    _from_seed(network, secrets, say)
    say(_wait_serving(network).sentence)


def down() -> None:
    """Remove the hosts; keep the seed."""
    names = podman.containers()
    if names:
        podman.podman("rm", "--force", "--time", "0", *names)


def remove_state() -> None:
    """Remove the state directories of all variants."""
    for state in STATES.values():
        shutil.rmtree(state, ignore_errors=True)


def _prepare(say: Say) -> tuple[Network, dict[str, str]]:
    network = Network()
    if podman.ensure_network(network):
        say(f"subnet {network.subnet}")
    secrets = secrets_store.ensure()
    security.ensure_realm(network)
    jars.resolve()
    for release in LAYOUT.more_releases:
        jars.resolve_release(release)
    inventory.write(network, secrets)
    begun = time.monotonic()
    if image.build():
        say(f"image built ({time.monotonic() - begun:.0f} s)")
    return network, secrets


def _from_seed(network: Network, secrets: dict[str, str], say: Say) -> None:
    down()
    image.remove_older()
    for baseline in ARTIFACTS.glob("*/baseline"):  # baselines of the cluster before the reset
        shutil.rmtree(baseline)
    seed_dir = STATE / "seed" / _seed_digest(network)
    if not seed_dir.exists():
        begun = time.monotonic()
        _make_seed(network, secrets, seed_dir, say)
        say(f"seed made ({time.monotonic() - begun:.0f} s)")
    podman.on_each(HOSTS, lambda host: hosts.start(host, network, secrets, seed_dir))
    podman.share_cpu(HOSTS[0])
    _wait_ssh()
    ensemble.release(network, secrets)


def _seed_digest(network: Network) -> str:
    modules = ("seed", "layout", "security", "token_server", "kerberos", "confluent")
    names = (*(f"{module}.py" for module in modules), "seed.sh", "jars.sha256")
    sources = (hosts.TEMPLATES, *(TESTBED / name for name in names))
    return digest_of(*sources, also=f"{network.prefix} {SECRETS.read_text()}")[:12]


def _make_seed(network: Network, secrets: dict[str, str], seed_dir: Path, say: Say) -> None:
    podman.on_each(HOSTS, lambda host: hosts.start(host, network, secrets, None))
    podman.share_cpu(HOSTS[0])
    _wait_ssh()
    say("hosts run")
    podman.on_each(ZOOKEEPERS, lambda host: hosts.execute(host, "systemctl", "start", LAYOUT.zookeeper))
    ensemble.create_chroot(network, secrets)
    for user, password in security.scram_users(secrets).items():
        hosts.execute(BROKERS[0], *seed.scram_command(network, user), text=seed.scram_credential(password))
    podman.on_each(BROKERS, lambda host: hosts.execute(host, "systemctl", "start", LAYOUT.broker))
    say(_wait_serving(network, partitions=0).sentence)
    seed.plant(network, secrets, say)
    say(_wait_serving(network).sentence)
    _elect_preferred(network, secrets)
    say(_wait_serving(network).sentence)
    # The kill leaves every ISR full in ZooKeeper. The next start, without a controller, closes the logs cleanly.
    podman.on_each(BROKERS, lambda host: hosts.execute(host, "systemctl", "kill", "--signal=KILL", LAYOUT.broker))
    ensemble.hold(network, secrets)
    podman.on_each(BROKERS, _start_and_wait)
    podman.on_each(BROKERS, lambda host: hosts.execute(host, "systemctl", "stop", LAYOUT.broker))
    podman.on_each(ZOOKEEPERS, lambda host: hosts.execute(host, "systemctl", "stop", LAYOUT.zookeeper))
    down()
    shutil.rmtree(seed_dir.parent, ignore_errors=True)
    fresh = seed_dir.with_suffix(".new")
    podman.on_each(HOSTS, lambda host: hosts.keep_data(host, fresh))
    fresh.rename(seed_dir)


def _start_and_wait(host: Host) -> None:
    # A broker that is stopped before it logs this line exits without marking its logs clean.
    log, line = f"{LAYOUT.log_dir}/{LAYOUT.broker_log}", "started (kafka.server.KafkaServer)"
    hosts.execute(host, "rm", log)
    hosts.execute(host, "systemctl", "start", LAYOUT.broker)
    wait = f"for i in $(seq 240); do grep -sqF '{line}' {log} && exit; sleep 0.5; done; tail -n 20 {log} >&2; exit 1"
    hosts.execute(host, "sh", "-c", wait, timeout=300)


def _wait_ssh() -> None:
    deadline = time.monotonic() + _SSH_TIMEOUT
    waiting = list(HOSTS)
    error_seen = ""
    while waiting:
        still = []
        for host in waiting:
            probe = ["python3", "-c", "import socket; print(socket.create_connection(('127.0.0.1', 22), 2).recv(3))"]
            try:
                hosts.execute(host, *probe)
            except TestbedError as error:
                error_seen = str(error)
                still.append(host)
        waiting = still
        if waiting and time.monotonic() > deadline:
            names = ", ".join(host.name for host in waiting)
            raise TestbedError(f"sshd does not answer on {names} after {_SSH_TIMEOUT:.0f} s; last error: {error_seen}")


def _wait_serving(network: Network, partitions: int = 1) -> Health:
    deadline = time.monotonic() + _SERVING_TIMEOUT
    seen = health(network)
    while not seen.serving(partitions):
        if time.monotonic() > deadline:
            raise TestbedError(
                f"the cluster is not healthy after {_SERVING_TIMEOUT:.0f} s: {seen.sentence}. "
                f"Read {LAYOUT.log_dir}/{LAYOUT.broker_log} on the brokers: `make testbed-ssh HOST={BROKERS[0].name}`."
            )
        time.sleep(0.3)
        seen = health(network)
    return seen


def _elect_preferred(network: Network, secrets: dict[str, str]) -> None:
    """Move leaders to their preferred replicas after the seed's reassignment; ask again if no response arrives."""
    # no timeout arguments: confluent-kafka 2.16 raises SystemError on any
    response_s, attempts = 30.0, 4
    for attempt in range(1, attempts + 1):
        admin = admin_client(network, secrets, timeout_s=response_s)
        try:
            admin.elect_leaders(ElectionType.PREFERRED, None).result(timeout=response_s + 10)
            return
        except (KafkaException, TimeoutError) as error:
            # seen on an idle machine: the election is done, and the controller does not respond
            if attempt == attempts:
                raise TestbedError(f"no preferred leader election in {attempts} attempts; the last: {error}") from error
