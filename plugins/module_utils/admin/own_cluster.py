# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Ask a server whose it is, on the connection on which a change is sent next.

An address that a broker advertises may lead to another cluster from here: behind a translation of addresses, through a
tunnel, or since the host was installed anew.
"""

from __future__ import annotations

from ansible_collections.quorumshift.kafka.plugins.module_utils.formats.requests import broker_requests
from ansible_collections.quorumshift.kafka.plugins.module_utils.formats.requests.apis import MalformedAnswer
from ansible_collections.quorumshift.kafka.plugins.module_utils.settings.addresses import HostPort
from ansible_collections.quorumshift.kafka.plugins.module_utils.wire.kafka_wire import KafkaConnection
from ansible_collections.quorumshift.kafka.plugins.module_utils.wire.socket_wire import ProtocolError


class ForeignServer(ProtocolError):
    """The server at the other end is of another cluster. No change was sent to it."""


def require_broker(connection: KafkaConnection, wanted: str, timeout: float) -> None:
    """Raise ForeignServer unless the broker is of this cluster; WireError."""
    try:
        head, _topics = broker_requests.read_metadata(connection.request(broker_requests.metadata([]), timeout))
    except MalformedAnswer as error:
        raise ProtocolError(connection.address, str(error)) from error
    require(connection.address, "broker", head["clusterId"], wanted)


def require_controller(connection: KafkaConnection, wanted: str) -> None:
    """Raise ForeignServer unless the controller is of this cluster, and says so; WireError."""
    require(connection.address, "controller", connection.cluster_id_of_controllers(), wanted)


def require(address: HostPort, role: str, found: str | None, wanted: str) -> None:
    """Raise ForeignServer unless a server of this role is of the wanted cluster."""
    if found != wanted:
        raise ForeignServer(
            address,
            f"this {role} is of cluster {found or 'unknown'}, and the task is for cluster {wanted}. Nothing was "
            f"changed there. Correct the address that the {role}s advertise, or run from a host on which it leads to "
            "them (quorumshift_probe_host) (QS-ADMIN-001)",
        )
