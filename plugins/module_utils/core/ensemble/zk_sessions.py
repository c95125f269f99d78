# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""On which ensemble's servers a broker's session lives, and what still ties the broker to another one. Pure.

A session id has in its top byte the myid of the server that created it (SessionTrackerImpl.initializeNextSessionId).
"""

from __future__ import annotations

from typing import Collection, Iterator, List, NamedTuple

from ansible_collections.quorumshift.kafka.plugins.module_utils.core.text.advice import Finding, format_names
from ansible_collections.quorumshift.kafka.plugins.module_utils.settings.addresses import HostPort, ZkConnect


class Broker(NamedTuple):
    """A broker and what its host sees. `connect`: in its properties file; `owner`: the session of /brokers/ids/ID, None
    without that znode; `cluster_id`: that of its log directories, `cluster_id_there`: in /cluster/id, read through the
    wanted servers; `own`, `others`: servers to which the broker and other processes of its host are connected, though
    they must not be; `config_file`, `service`: where to look."""

    node_id: int
    connect: ZkConnect
    owner: int | None
    cluster_id: str | None
    cluster_id_there: str | None
    own: List[str]
    others: List[str]
    config_file: str
    service: str


def creator_id(session: int) -> int:
    """Return the myid of the server that created a session."""
    return (session >> 56) & 0xFF


def check_restart(broker: Broker, wanted: ZkConnect) -> Iterator[Finding]:
    """Yield why a broker must not be restarted with the connect string `wanted`: it would find another cluster."""
    if broker.cluster_id_there is None:
        yield Finding(
            f"/cluster/id does not exist through {format_connect(wanted)}: a broker would make a new cluster "
            "there (QS-ZKMOVE-009)",
            "correct the chroot, or wait until the servers have caught up",
        )
    elif broker.cluster_id_there != broker.cluster_id:
        yield Finding(
            f"/cluster/id is {broker.cluster_id_there} through {format_connect(wanted)}, the broker has "
            f"{broker.cluster_id} (QS-ZKMOVE-009)",
            "correct the connect string",
        )
    if wanted.chroot != broker.connect.chroot:
        yield Finding(
            f"the chroot is {wanted.chroot or '/'}, and {broker.connect.chroot or '/'} in "
            f"{broker.config_file} (QS-ZKMOVE-009)",
            "correct the connect string: the chroot stays the same",
        )


def check_moved(broker: Broker, wanted: ZkConnect, ids: Collection[int]) -> Iterator[Finding]:
    """Yield why a broker does not use the servers of `wanted` alone. `ids`: their myids, empty where unknown."""
    restart = f"restart the broker: systemctl restart {broker.service}"
    foreign = sorted(str(server) for server in set(broker.connect.servers) - set(wanted.servers))
    if foreign or broker.connect.chroot != wanted.chroot:
        yield Finding(
            f"zookeeper.connect in {broker.config_file} is {format_connect(broker.connect)}, expected "
            f"{format_connect(wanted)} (QS-ZKMOVE-010)",
            "run the playbook again: it restarts the broker with the right value",
        )
    if broker.owner is None:
        yield Finding(
            f"/brokers/ids/{broker.node_id} does not exist (QS-ZKMOVE-010)",
            f"start the broker: systemctl start {broker.service}",
        )
    elif ids and creator_id(broker.owner) not in ids:
        yield Finding(
            f"the session of broker {broker.node_id} was made by the ZooKeeper server with myid "
            f"{creator_id(broker.owner)}, not by one of {format_names(sorted(map(str, ids)))} (QS-ZKMOVE-010)",
            restart,
        )
    if broker.own:
        yield Finding(f"broker {broker.node_id} is connected to {format_names(broker.own)} (QS-ZKMOVE-010)", restart)


def format_connect(connect: ZkConnect) -> str:
    """Return a connect string."""
    return ",".join(str(HostPort(*server)) for server in connect.servers) + connect.chroot
