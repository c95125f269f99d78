# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The testbed's changes in ZooKeeper: the chroot, and the hold that delays the controller's election.

The first broker to start would become controller, find its peers dead, and elect itself leader of all its partitions.
So the seed's ZooKeeper holds `/controller` as a persistent znode, and no broker can be elected
(kafka.controller.KafkaController.elect). `release` deletes it once all brokers are registered. The cluster then starts
with full ISR and preferred leaders, without one leader election.
"""

from __future__ import annotations

import json
import logging
import time
from contextlib import contextmanager, suppress
from typing import Iterator

from ansible_collections.quorumshift.kafka.plugins.module_utils.secrets.security import ZkSecurity
from kazoo.client import KazooClient
from kazoo.exceptions import NoNodeError
from kazoo.handlers.threading import KazooTimeoutError

from tests.system.testbed import security
from tests.system.testbed.layout import BROKERS, LAYOUT, Network, TestbedError

_HOLD = json.dumps({"version": 2, "brokerid": 0, "timestamp": "0", "kraftControllerEpoch": -1}).encode()
_TIMEOUT = 90.0


@contextmanager
def _session(hosts: str, secrets: dict[str, str]) -> Iterator[KazooClient]:
    logging.getLogger("kazoo").setLevel(logging.ERROR)  # kazoo warns of each refused connection while ZooKeeper starts
    retry = {"max_tries": -1, "delay": 0.1, "max_delay": 0.5}
    login = ZkSecurity.from_options(security.zookeeper_client(secrets)).kazoo()
    zookeeper = KazooClient(hosts=hosts, timeout=10, connection_retry=retry, **login)
    try:
        zookeeper.start(timeout=_TIMEOUT)
    except KazooTimeoutError as error:
        zookeeper.close()
        raise TestbedError(
            f"ZooKeeper at {hosts} does not answer after {_TIMEOUT:.0f} s. Run `make testbed-reset`"
        ) from error
    try:
        yield zookeeper
    finally:
        zookeeper.stop()
        zookeeper.close()


def create_chroot(network: Network, secrets: dict[str, str]) -> None:
    """Create the chroot: kafka-configs.sh runs before the brokers and does not create it."""
    with _session(network.zookeeper_connect.removesuffix(LAYOUT.chroot), secrets) as zookeeper:
        zookeeper.ensure_path(LAYOUT.chroot or "/")


def hold(network: Network, secrets: dict[str, str]) -> None:
    """Remove the registrations of the killed brokers, whose sessions would end later, and prevent an election."""
    with _session(network.zookeeper_connect, secrets) as zookeeper:
        gone = ["/controller", *(f"/brokers/ids/{name}" for name in zookeeper.get_children("/brokers/ids"))]
        for path in gone:
            with suppress(NoNodeError):
                zookeeper.delete(path)
        zookeeper.create("/controller", _HOLD)


def release(network: Network, secrets: dict[str, str]) -> None:
    """Wait until every broker is registered, then allow the election; do nothing if there is no hold."""
    with _session(network.zookeeper_connect, secrets) as zookeeper:
        try:
            held, _stat = zookeeper.get("/controller")
        except NoNodeError:
            return
        if held == _HOLD:
            _wait_registered(zookeeper, {str(host.node_id) for host in BROKERS})
            zookeeper.delete("/controller")


def _wait_registered(zookeeper: KazooClient, wanted: set[str]) -> None:
    deadline = time.monotonic() + _TIMEOUT
    seen = set(zookeeper.get_children("/brokers/ids"))
    while seen != wanted:
        if time.monotonic() > deadline:
            raise TestbedError(
                f"/brokers/ids has {sorted(seen) or 'no broker'} after {_TIMEOUT:.0f} s, expected "
                f"{sorted(wanted)}. Read {LAYOUT.log_dir}/{LAYOUT.broker_log} on the brokers: "
                "`make testbed-ssh HOST=...`."
            )
        time.sleep(0.1)
        seen = set(zookeeper.get_children("/brokers/ids"))
