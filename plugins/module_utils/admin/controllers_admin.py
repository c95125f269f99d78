# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Ask a quorum's controllers for its features and update them, where no broker answers (KIP-919).

Standard library only. A change needs a controller that reports the cluster id on the same connection: from
metadata.version 3.7-IV0 on.
"""

from __future__ import annotations

import time
from typing import Callable, Dict, Iterable, List, Mapping, Tuple

from ansible_collections.quorumshift.kafka.plugins.module_utils.admin import feature_request, own_cluster
from ansible_collections.quorumshift.kafka.plugins.module_utils.admin.cluster_admin import OtherCluster
from ansible_collections.quorumshift.kafka.plugins.module_utils.secrets.security import Security
from ansible_collections.quorumshift.kafka.plugins.module_utils.settings.addresses import HostPort
from ansible_collections.quorumshift.kafka.plugins.module_utils.wire import kafka_wire
from ansible_collections.quorumshift.kafka.plugins.module_utils.wire.socket_wire import ProtocolError, WireError

_RETRIED_S = 30.0  # a controller that is elected anew


class ControllersAdmin:
    """The controllers of a quorum, in place of a ClusterAdmin without brokers. Methods raise WireError, SecurityError.

    :ivar cluster_id: as the controllers report it, '' where none can
    :ivar brokers: empty: none answered
    :ivar before_change: as of a ClusterAdmin
    """

    def __init__(
        self, controllers: Iterable[HostPort], client: Security, timeout: float, cluster_id: str | None
    ) -> None:
        self._controllers = list(dict.fromkeys(controllers))
        self._client = client
        self._timeout = timeout
        self._wanted = cluster_id
        self.cluster_id = ""
        self.brokers: Dict[int, tuple] = {}
        self.before_change: Callable[[], None] = lambda: None
        self.refresh()

    def refresh(self) -> None:
        """Read the cluster id of every controller that answers. Raises OtherCluster, or the error of the last
        controller where none answers."""
        found: Dict[HostPort, str | None] = {}
        last: WireError | None = None
        for address in self._controllers:
            try:
                with kafka_wire.KafkaConnection(address, self._client, self._timeout) as connection:
                    found[address] = connection.cluster_id_of_controllers()
            except WireError as error:
                last = error
        if not found:
            raise last or ProtocolError(None, "no controller is given (QS-CONNECT-003)")
        named = {address: cluster_id for address, cluster_id in found.items() if cluster_id}
        wanted = self._wanted or self.cluster_id or next(iter(named.values()), "")
        for address, cluster_id in named.items():
            if cluster_id != wanted:
                raise OtherCluster(
                    f"{address} is of cluster {cluster_id}, and this task is for cluster {wanted}. Correct controllers "
                    "or cluster_id. Nothing was changed (QS-ADMIN-001)"
                )
        if named:
            self.cluster_id = wanted

    def search_quorum(self) -> kafka_wire.QuorumSearch:
        """Return the quorum as its leader describes it."""
        return kafka_wire.describe_quorum_any(self._controllers, self._client, self._timeout)

    def update_features(self, updates: Mapping[str, Tuple[int, int]], validate_only: bool) -> feature_request.Answer:
        """Set features to their (level, upgrade type) through the active controller; return the error of the request,
        and that of each feature. Raises Unanswered where the change may have been made."""
        if not self.cluster_id:
            raise ProtocolError(
                None,
                "no broker answers, and no controller reports its cluster id, which it does from metadata.version "
                "3.7-IV0 on: whose features would change is unknown. Start a broker. Nothing was "
                "changed (QS-ADMIN-009)",
            )
        end = time.monotonic() + _RETRIED_S
        while True:
            error: kafka_wire.KafkaError | None = None
            failed: List[WireError] = []
            for address in self._by_leader():
                try:
                    error, errors = feature_request.send(
                        address, self._client, self._timeout, updates, validate_only, self._require_own
                    )
                except feature_request.Unanswered:
                    raise
                except WireError as refused:  # nothing was sent to this one
                    failed.append(refused)
                    continue
                if error is None or error.code != feature_request.NOT_CONTROLLER:
                    feature_request.require_decided(error, validate_only)
                    return error, errors
            if time.monotonic() >= end:
                feature_request.require_decided(error, validate_only)
                raise error or failed[-1]
            time.sleep(0.5)

    def _require_own(self, connection: kafka_wire.KafkaConnection) -> None:
        own_cluster.require_controller(connection, self.cluster_id)
        self.before_change()

    def _by_leader(self) -> List[HostPort]:
        """Return the controllers, the quorum's leader first where an answer names its address."""
        quorum = self.search_quorum().quorum
        leader = (
            HostPort(*quorum.endpoints[quorum.leader_id]) if quorum and quorum.leader_id in quorum.endpoints else None
        )
        return sorted(self._controllers, key=lambda address: address != leader)
