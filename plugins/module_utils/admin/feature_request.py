# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Send UpdateFeatures (KIP-584, KIP-778) to one server; distinguish a refusal from a change that may have been made."""

from __future__ import annotations

from typing import Callable, Dict, Mapping, Tuple

from ansible_collections.quorumshift.kafka.plugins.module_utils.formats.requests import admin_requests
from ansible_collections.quorumshift.kafka.plugins.module_utils.formats.requests.apis import MalformedAnswer
from ansible_collections.quorumshift.kafka.plugins.module_utils.secrets.security import Security
from ansible_collections.quorumshift.kafka.plugins.module_utils.settings.addresses import HostPort
from ansible_collections.quorumshift.kafka.plugins.module_utils.wire.kafka_wire import KafkaConnection, KafkaError
from ansible_collections.quorumshift.kafka.plugins.module_utils.wire.socket_wire import ProtocolError, WireError

NOT_CONTROLLER, CLUSTER_AUTHORIZATION_FAILED = 41, 31
_CHANGE_S = 60.0  # the controller's limit for a change, and how long its answer is awaited
# A server answers so where it does not know what became of the request. A controller that resigns answers
# NOT_CONTROLLER to a change whose records may still be committed (QuorumController.renounce)
_UNDECIDED = (-1, 7, NOT_CONTROLLER)

Answer = Tuple["KafkaError | None", Dict[str, "KafkaError | None"]]
"""The error of a request, and that of each feature."""


class Unanswered(WireError):
    """A change was sent, and no answer says whether it was made."""


def send(
    address: HostPort,
    security: Security,
    timeout: float,
    updates: Mapping[str, Tuple[int, int]],
    validate_only: bool,
    require_own: Callable[[KafkaConnection], None],
) -> Answer:
    """Set features to their (level, upgrade type) through one broker, or the active controller; return the errors.

    `timeout`: seconds to connect; `require_own`: raises unless the server at the other end is the right cluster's.
    Raises WireError where nothing was sent, and Unanswered where the change may have been made; SecurityError.
    """
    request = admin_requests.update_features(updates, validate_only, int(_CHANGE_S * 1000))
    connection = None
    try:
        with KafkaConnection(address, security, timeout) as connection:
            require_own(connection)
            answer = connection.request(request, max(timeout, _CHANGE_S)).fields()
    except (WireError, MalformedAnswer) as error:
        if connection is None or connection.sent != request.api.name or validate_only:
            if isinstance(error, WireError):
                raise
            raise ProtocolError(address, str(error)) from error
        raise Unanswered(address, getattr(error, "message", str(error))) from error

    def error_of(entry: Mapping) -> KafkaError | None:
        code = entry["errorCode"]
        return KafkaError(address, code, request.api.name, entry.get("errorMessage")) if code else None

    return error_of(answer), {result["feature"]: error_of(result) for result in answer["results"]}


def require_decided(error: KafkaError | None, validate_only: bool) -> None:
    """Raise Unanswered for an error of a change that does not say whether it was made."""
    if error is not None and error.code in _UNDECIDED and not validate_only:
        raise Unanswered(error.address, error.message)
