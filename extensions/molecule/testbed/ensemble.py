# Copyright: (c) 2026, Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The bed's hand on ZooKeeper: the chroot, and the hold that lets three brokers start as one.

A broker that starts first would become controller, find its peers dead, and elect itself leader of all that it
has. So the seed's ZooKeeper holds `/controller` as a persistent znode: no broker can be elected
(kafka.controller.KafkaController.elect) until the hold is released, once all of them are registered. The cluster
then comes up as it was, with full ISR, on its preferred leaders, without one election.
"""

from __future__ import annotations

import json
import logging
import time
from contextlib import contextmanager
from typing import Iterator

import security
from kazoo.client import KazooClient
from kazoo.exceptions import NoNodeError
from kazoo.handlers.threading import KazooTimeoutError
from layout import BROKERS, ZOOKEEPER_CHROOT, BedError, Network

_HOLD = json.dumps({"version": 2, "brokerid": 0, "timestamp": "0", "kraftControllerEpoch": -1}).encode()
_TIMEOUT = 90.0


@contextmanager
def _session(hosts: str, secrets: dict[str, str]) -> Iterator[KazooClient]:
    logging.getLogger("kazoo").setLevel(logging.ERROR)  # it warns of each refused connection while ZooKeeper starts
    retry = {"max_tries": -1, "delay": 0.1, "max_delay": 0.5}
    login = {key.removeprefix("sasl_"): value for key, value in security.zookeeper_client(secrets).items()}
    zookeeper = KazooClient(hosts=hosts, timeout=10, connection_retry=retry, sasl_options=login or None)
    try:
        zookeeper.start(timeout=_TIMEOUT)
    except KazooTimeoutError as error:
        zookeeper.close()
        raise BedError(
            f"waited {_TIMEOUT:.0f} s for ZooKeeper at {hosts}. Reset the hosts to the seeded state: `testbed.py reset`"
        ) from error
    try:
        yield zookeeper
    finally:
        zookeeper.stop()
        zookeeper.close()


def create_chroot(network: Network, secrets: dict[str, str]) -> None:
    """Create the chroot: kafka-configs.sh does not, and the brokers start after it."""
    with _session(network.zookeeper_connect.removesuffix(ZOOKEEPER_CHROOT), secrets) as zookeeper:
        zookeeper.ensure_path(ZOOKEEPER_CHROOT)


def hold(network: Network, secrets: dict[str, str]) -> None:
    """Wait until the killed brokers' sessions have ended, then let no broker become controller."""
    with _session(network.zookeeper_connect, secrets) as zookeeper:
        _wait_registered(zookeeper, set())
        zookeeper.create("/controller", _HOLD)


def release(network: Network, secrets: dict[str, str]) -> None:
    """Once every broker is registered, let them elect a controller; nothing to do without the hold."""
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
    while seen != wanted or (not wanted and zookeeper.exists("/controller")):
        if time.monotonic() > deadline:
            raise BedError(
                f"waited {_TIMEOUT:.0f} s for the brokers {sorted(wanted) or '(none)'} in /brokers/ids; there are "
                f"{sorted(seen) or 'none'}. Look at /var/log/kafka/server.log of the others, `testbed.py ssh HOST`."
            )
        time.sleep(0.1)
        seen = set(zookeeper.get_children("/brokers/ids"))
