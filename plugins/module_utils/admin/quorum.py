# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Ask a KRaft quorum's leader for its voters, and to add, remove and unregister controllers (KIP-853, KIP-1312).

Standard library only. A change whose answer is lost may have been made: the quorum is read again, and what its leader
describes decides.
"""

from __future__ import annotations

import time
from typing import Any, Callable, Dict, List, Mapping

from ansible_collections.quorumshift.kafka.plugins.module_utils.admin import own_cluster
from ansible_collections.quorumshift.kafka.plugins.module_utils.core.admin.quorum_change import Joining, QuorumError
from ansible_collections.quorumshift.kafka.plugins.module_utils.formats.requests import admin_requests
from ansible_collections.quorumshift.kafka.plugins.module_utils.formats.requests.apis import MalformedAnswer, Request
from ansible_collections.quorumshift.kafka.plugins.module_utils.secrets.security import Security
from ansible_collections.quorumshift.kafka.plugins.module_utils.settings.addresses import HostPort, parse_host_port
from ansible_collections.quorumshift.kafka.plugins.module_utils.wire.kafka_wire import (
    KafkaConnection,
    KafkaError,
    Quorum,
    Replica,
    WireError,
)
from ansible_collections.quorumshift.kafka.plugins.module_utils.wire.socket_wire import ProtocolError

_CHANGE_S = 30.0  # the leader's limit for a change, and how long its answer is awaited
_POLL_S = 0.3
_NOT_LEADER, _TIMED_OUT, _NOT_CONTROLLER, _NOT_REGISTERED = 6, 7, 41, 136
_MADE = (126, 127)  # DUPLICATE_VOTER, VOTER_NOT_FOUND: of a request that is repeated, the first one was made
_RETRIED = (-1, _NOT_LEADER, _TIMED_OUT, _NOT_CONTROLLER)
"""Errors that come while a leader is elected, or while it commits an earlier change of the voters."""


def read(admin: Any) -> Dict[str, Any]:
    """Return the quorum as its leader describes it, in the shape of core.admin.quorum. Raises QuorumError where no node
    could describe it. `admin`: a ClusterAdmin or ControllersAdmin."""
    search = admin.search_quorum()
    if search.quorum is None:
        raise QuorumError(
            f"no node could describe the quorum: {search.explain()}. Start its controllers, or fix what that names, "
            "then run again (QS-QUORUM-009)"
        )
    return from_answer(search.quorum)


def from_answer(found: Quorum) -> Dict[str, Any]:
    """Return an answer to DescribeQuorum in the shape of core.admin.quorum."""

    def replica(each: Replica, is_voter: bool) -> Dict[str, Any]:
        at = found.endpoints.get(each.id) if is_voter else None
        return {
            "id": each.id,
            "directory_id": each.directory_id,
            "log_end_offset": each.log_end_offset,
            "fetched_ms": each.last_fetch_timestamp,
            "caught_up_ms": each.last_caught_up_timestamp,
            "endpoint": str(HostPort(*at)) if at else None,
        }

    return {
        "leader_id": found.leader_id,
        "leader_epoch": found.leader_epoch,
        "high_watermark": found.high_watermark,
        "voters": [replica(voter, True) for voter in found.voters],
        "observers": [replica(observer, False) for observer in found.observers],
    }


class Refused(QuorumError):
    """The leader refused a change."""


class Changer:
    """Changes the voters of a quorum. `admin`: a ClusterAdmin or ControllersAdmin; `client`: how to connect to
    controllers; `wait_s`: how long a change may take. Methods raise QuorumError, WireError, SecurityError."""

    def __init__(self, admin: Any, client: Security, timeout: float, wait_s: float) -> None:
        self._admin = admin
        self._client = client
        self._timeout = timeout
        self._wait_s = wait_s
        self._changed = False

    def add(self, cluster_id: str, joining: Joining) -> Dict[str, Any]:
        """Make an observer a voter; return the quorum with it."""
        request = admin_requests.add_voter(
            cluster_id, joining.node_id, joining.directory_id, joining.endpoints, int(_CHANGE_S * 1000)
        )

        def is_voter(found: Mapping[str, Any]) -> bool:
            return [joining.node_id, joining.directory_id] in _voters(found)

        return self._change(request, is_voter, f"controller {joining.node_id} as a voter")

    def remove(self, cluster_id: str, node_id: int, directory_id: str) -> Dict[str, Any]:
        """Remove a voter; return the quorum without it. One that leads resigns: the new leader's answer counts."""
        request = admin_requests.remove_voter(cluster_id, node_id, directory_id)

        def is_gone(found: Mapping[str, Any]) -> bool:
            return [node_id, directory_id] not in _voters(found) and found["leader_id"] != node_id

        return self._change(request, is_gone, f"the voters without controller {node_id}")

    def unregister(self, controller_id: int) -> None:
        """Remove the registration of a controller. A second request says that there is none: that is the proof."""
        request = admin_requests.unregister_controller(controller_id)
        end, last = time.monotonic() + self._wait_s, "no answer"
        while True:
            try:
                error = self._send(request)
                if error is not None and error.code == _NOT_REGISTERED:
                    return
                if error is not None and error.code not in _RETRIED:
                    raise Refused(f"the leader refused: {error} (QS-QUORUM-009)")
                last = str(error) if error else "the leader accepted the request, and the controller is registered anew"
            except WireError as failed:
                last = str(failed)
            if time.monotonic() >= end:
                raise QuorumError(
                    f"after {self._wait_s:.0f} s it is not known that controller {controller_id} is unregistered: "
                    f"{last}. Run again (QS-QUORUM-010)"
                )
            time.sleep(_POLL_S)

    def _change(self, request: Request, is_done: Callable[[Mapping[str, Any]], bool], what: str) -> Dict[str, Any]:
        """Send a change of the voters until the leader describes its result, and has committed what it had then; return
        the quorum. A request that was begun to be sent may have been made, whatever became of its answer."""
        end, last = time.monotonic() + self._wait_s, "no answer"
        begun, accepted, committed_at = False, False, -1
        while True:
            try:
                found = read(self._admin)
                if is_done(found):
                    committed_at = committed_at if committed_at >= 0 else _log_end(found)
                    if found["high_watermark"] >= committed_at:
                        self._changed = True
                        return found
                    last = f"offset {committed_at} of the metadata log is not committed"
                elif not accepted:
                    error = self._send(request)
                    if error is not None and error.code not in _RETRIED and not (begun and error.code in _MADE):
                        nothing = "" if begun or self._changed else ". Nothing was changed"
                        raise Refused(f"the leader refused: {error}{nothing} (QS-QUORUM-009)")
                    accepted = error is None or error.code in _MADE
                    last = str(error) if error else "the leader accepted the change"
                    begun = True
            except Refused:
                raise
            except QuorumError as failed:
                last = str(failed)
            except WireError as failed:  # what became of it, the next reading says
                last, begun = str(failed), True
            if time.monotonic() >= end:
                raise QuorumError(
                    f"after {self._wait_s:.0f} s the leader does not describe {what}: {last}. Run again, it reads the "
                    "quorum first (QS-QUORUM-010)"
                )
            self._refresh()
            time.sleep(_POLL_S)

    def _refresh(self) -> None:
        try:
            self._admin.refresh()
        except WireError:
            return  # the next reading says why

    def _send(self, request: Request) -> KafkaError | None:
        """Send a request to the quorum's leader; return its error. The controller must report the cluster's id on the
        same connection."""
        found = read(self._admin)
        leader = next((voter for voter in found["voters"] if voter["id"] == found["leader_id"]), None)
        if leader is None or not leader["endpoint"]:
            raise QuorumError(f"the address of the quorum's leader, {found['leader_id']}, is unknown (QS-QUORUM-009)")
        address = parse_host_port(leader["endpoint"])
        with KafkaConnection(address, self._client, self._timeout) as connection:
            own_cluster.require_controller(connection, self._admin.cluster_id)
            self._admin.before_change()
            sent = connection.request(request, self._timeout + _CHANGE_S)
        try:
            answer = sent.fields()
        except MalformedAnswer as error:
            raise ProtocolError(address, str(error)) from error
        code = answer["errorCode"]
        return KafkaError(address, code, request.api.name, answer.get("errorMessage")) if code else None


def _log_end(found: Mapping[str, Any]) -> int:
    return max((voter["log_end_offset"] for voter in found["voters"] if voter["id"] == found["leader_id"]), default=0)


def _voters(found: Mapping[str, Any]) -> List[List[Any]]:
    return [[voter["id"], voter["directory_id"]] for voter in found["voters"]]
