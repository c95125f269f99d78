# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Send requests to one Kafka broker or controller: ApiVersions, DescribeQuorum, UnregisterBroker and others.

Client libraries find the leader by themselves; a probe needs the answer of one given address. Each function opens its
own connection and ends within its `timeout`.
"""

from __future__ import annotations

import struct
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Callable, Dict, Iterable, NamedTuple

from ansible_collections.quorumshift.kafka.plugins.module_utils.formats.messages import messages
from ansible_collections.quorumshift.kafka.plugins.module_utils.formats.requests import apis
from ansible_collections.quorumshift.kafka.plugins.module_utils.formats.requests.apis import Answer, Api, Request
from ansible_collections.quorumshift.kafka.plugins.module_utils.formats.requests.kafka_answers import (
    ApiVersions,
    ErrorCode,
    Quorum,
    Replica,
    decode_api_versions,
    decode_authenticate,
    decode_cluster,
    decode_handshake,
    decode_newest_api_versions,
    decode_quorum,
    decode_unregistered,
)
from ansible_collections.quorumshift.kafka.plugins.module_utils.secrets.security import (
    KerberosLogin,
    OauthLogin,
    Security,
)
from ansible_collections.quorumshift.kafka.plugins.module_utils.settings.addresses import HostPort
from ansible_collections.quorumshift.kafka.plugins.module_utils.wire import bounded, gssapi, oauth_token
from ansible_collections.quorumshift.kafka.plugins.module_utils.wire.oauth_token import TokenError
from ansible_collections.quorumshift.kafka.plugins.module_utils.wire.sasl_wire import (
    SaslError,
    Scram,
    bearer_message,
    explain_bearer,
    plain_token,
)
from ansible_collections.quorumshift.kafka.plugins.module_utils.wire.socket_wire import (
    AuthenticationFailed,
    Deadline,
    ProtocolError,
    TlsError,
    Unreachable,
    Wire,
    WireError,
)

__all__ = [
    "ApiVersions",
    "AuthenticationFailed",
    "KafkaConnection",
    "KafkaError",
    "NotLeader",
    "ProtocolError",
    "Quorum",
    "QuorumSearch",
    "Replica",
    "TlsError",
    "Unreachable",
    "WireError",
    "api_versions",
    "describe_quorum",
    "describe_quorum_any",
    "unregister_broker",
]

# metadata.version 3.7-IV0: from it on controllers register (KIP-919; isControllerRegistrationSupported)
CONTROLLERS_REGISTER = 15
_CONTROLLERS, _OF_CONTROLLERS = 2, 1  # DescribeCluster's type of endpoints, and the version that has it

_CLIENT_NAME = "quorumshift"
_CLIENT_VERSION = "1"
_LARGEST_ANSWER = 16 << 20
_POLL_S = 0.1
_UNSUPPORTED_VERSION, _NOT_LEADER, _UNSUPPORTED_SASL_MECHANISM, _SASL_AUTHENTICATION_FAILED = 35, 6, 33, 58
_BROKER_ID_NOT_REGISTERED = 102
_UNSUPPORTED = struct.pack(">h", _UNSUPPORTED_VERSION)

ERROR_NAMES = {
    -1: "UNKNOWN_SERVER_ERROR",
    3: "UNKNOWN_TOPIC_OR_PARTITION",
    5: "LEADER_NOT_AVAILABLE",
    6: "NOT_LEADER_OR_FOLLOWER",
    7: "REQUEST_TIMED_OUT",
    8: "BROKER_NOT_AVAILABLE",
    29: "TOPIC_AUTHORIZATION_FAILED",
    31: "CLUSTER_AUTHORIZATION_FAILED",
    33: "UNSUPPORTED_SASL_MECHANISM",
    34: "ILLEGAL_SASL_STATE",
    35: "UNSUPPORTED_VERSION",
    37: "INVALID_PARTITIONS",
    38: "INVALID_REPLICATION_FACTOR",
    39: "INVALID_REPLICA_ASSIGNMENT",
    40: "INVALID_CONFIG",
    41: "NOT_CONTROLLER",
    42: "INVALID_REQUEST",
    44: "POLICY_VIOLATION",
    54: "SECURITY_DISABLED",
    58: "SASL_AUTHENTICATION_FAILED",
    60: "REASSIGNMENT_IN_PROGRESS",
    61: "DELEGATION_TOKEN_AUTH_DISABLED",
    64: "DELEGATION_TOKEN_REQUEST_NOT_ALLOWED",
    65: "DELEGATION_TOKEN_AUTHORIZATION_FAILED",
    72: "LISTENER_NOT_FOUND",
    85: "NO_REASSIGNMENT_IN_PROGRESS",
    95: "INVALID_UPDATE_VERSION",
    96: "FEATURE_UPDATE_FAILED",
    102: "BROKER_ID_NOT_REGISTERED",
    104: "INCONSISTENT_CLUSTER_ID",
    125: "INVALID_VOTER_KEY",
    126: "DUPLICATE_VOTER",
    127: "VOTER_NOT_FOUND",
    136: "CONTROLLER_ID_NOT_REGISTERED",
}
"""Names of the error codes of these requests (class org.apache.kafka.common.protocol.Errors)."""


class KafkaError(WireError):
    """An answer has an error code: `code`, and its `name` in Kafka's Errors."""

    def __init__(self, address: HostPort, code: int, request: str, server_message: str | None = None) -> None:
        name = ERROR_NAMES.get(code, f"error {code}")
        super().__init__(address, f"{request} answered {name}" + (f": {server_message}" if server_message else ""))
        self.code = code
        self.name = name


class NotLeader(KafkaError):
    """A controller that is not the quorum's leader answered DescribeQuorum (error 6)."""


class QuorumSearch(NamedTuple):
    """The result of DescribeQuorum at several addresses: the leader's `quorum` or None, and its `source`.

    `outcomes` maps each address to its Quorum or WireError.
    """

    quorum: Quorum | None
    source: HostPort | None
    outcomes: Dict[HostPort, Quorum | WireError]

    def explain(self) -> str:
        """Return the errors of all failed addresses, empty if all answered."""
        return "; ".join(str(outcome) for outcome in self.outcomes.values() if isinstance(outcome, WireError))


def api_versions(address: HostPort, security: Security | None = None, timeout: float = 5.0) -> ApiVersions:
    """Return the ApiVersions of the server at `address`, within `timeout` seconds, without SASL authentication.

    On SASL listeners Kafka answers it before authentication (KIP-152); on TLS listeners the handshake comes first.
    Raises Unreachable, TlsError, ProtocolError, KafkaError; SecurityError for unusable options.
    """
    with KafkaConnection(address, security, timeout) as connection:
        return connection.api_versions()


def describe_quorum(address: HostPort, security: Security | None = None, timeout: float = 5.0) -> Quorum:
    """Return the quorum that the server at `address` describes, within `timeout` seconds.

    Only the leading controller answers; KRaft brokers forward the request to it. Raises NotLeader from another
    controller, KafkaError (UNSUPPORTED_VERSION from a broker in ZooKeeper or migration mode), Unreachable, TlsError,
    AuthenticationFailed, ProtocolError; SecurityError.
    """
    with KafkaConnection(address, security, timeout) as connection:
        return connection.describe_quorum()


def describe_quorum_any(
    addresses: Iterable[HostPort], security: Security | None = None, timeout: float = 5.0
) -> QuorumSearch:
    """Ask all addresses in parallel and return the answer with the highest leader epoch, within `timeout` seconds.

    Raises only SecurityError: the result holds the errors of the addresses.
    """
    targets = list(dict.fromkeys(addresses))
    if not targets:
        return QuorumSearch(None, None, {})

    def ask(address: HostPort) -> Quorum | WireError:
        try:
            return describe_quorum(address, security, timeout)
        except WireError as error:
            return error

    with ThreadPoolExecutor(max_workers=len(targets)) as pool:
        outcomes = dict(zip(targets, pool.map(ask, targets)))
    answers = [(answer, address) for address, answer in outcomes.items() if isinstance(answer, Quorum)]
    if not answers:
        return QuorumSearch(None, None, outcomes)
    quorum, source = max(answers, key=lambda answer: (answer[0].leader_epoch, answer[0].high_watermark))
    return QuorumSearch(quorum, source, outcomes)


def unregister_broker(
    address: HostPort,
    broker_id: int,
    security: Security | None = None,
    timeout: float = 5.0,
    cluster_id: str | None = None,
) -> bool:
    """Remove a broker's registration through the active controller at `address`; return False if it has none.

    True means that the removal is committed; a second call that returns False confirms it. A controller accepts the
    request in pre-migration too (QuorumController.unregisterBroker, RUNS_IN_PREMIGRATION); it requires ALTER on the
    cluster. With `cluster_id`, the controller must report this id on the same connection, if it can (from 3.7 on).
    Raises KafkaError (NOT_CONTROLLER from another controller), Unreachable, TlsError, AuthenticationFailed,
    ProtocolError; SecurityError.
    """
    with KafkaConnection(address, security, timeout) as connection:
        found = connection.cluster_id_of_controllers() if cluster_id else None
        if found and found != cluster_id:
            raise ProtocolError(
                address, f"this controller is of cluster {found}, and this run is of {cluster_id} (QS-PHASE-004)"
            )
        try:
            connection.unregister_broker(broker_id)
        except KafkaError as error:
            if error.code != _BROKER_ID_NOT_REGISTERED:
                raise
            return False
    return True


class KafkaConnection:
    """A context manager of one connection to one server. All calls share the deadline set at its start.

    :ivar sent: the name of the last request of `request` that was begun to be sent, None before
    """

    def __init__(self, address: HostPort, security: Security | None = None, timeout: float = 5.0) -> None:
        self.sent: str | None = None
        self.address = HostPort(*address)
        self.security = security or Security()
        self._wire = Wire(self.address, Deadline(timeout), self.security.ssl_context())
        self._correlation = 0
        self._api_versions: ApiVersions | None = None
        self._authenticated = not self.security.sasl

    def __enter__(self) -> KafkaConnection:
        return self

    def __exit__(self, *_exception: object) -> None:
        self._wire.close()

    def api_versions(self) -> ApiVersions:
        """Return ApiVersions v4, or v3 or v0 from an older server; it is asked for once a connection.

        Version 3 leaves out features whose lowest level is 0 (KAFKA-17011). A server that does not know the version
        answers in version 0, with the versions that it knows (KIP-511).
        """
        if self._api_versions is None:
            client = apis.API_VERSIONS.request(clientSoftwareName=_CLIENT_NAME, clientSoftwareVersion=_CLIENT_VERSION)
            answer = self._ask(client, apis.API_VERSIONS.newest)
            if answer.data[:2] == _UNSUPPORTED:
                known = self._decoded(decode_newest_api_versions, answer._replace(version=0))
                answer = self._ask(client, 3 if known >= 3 else 0)
            self._api_versions = self._decoded(decode_api_versions, answer)
        return self._api_versions

    def describe_quorum(self) -> Quorum:
        """Return DescribeQuorum of `__cluster_metadata`, after authentication if the security requires it."""
        offered = self.api_versions().api_keys
        version = apis.DESCRIBE_QUORUM.version(offered)
        if version is None:
            message = "brokers in ZooKeeper or migration mode do not support it: ask the controllers"
            missing = apis.DESCRIBE_QUORUM.api_key not in offered
            raise KafkaError(self.address, _UNSUPPORTED_VERSION, "DescribeQuorum", message if missing else None)
        self.authenticate()
        topic = {"topicName": "__cluster_metadata", "partitions": [{"partitionIndex": 0}]}
        return self._decoded(decode_quorum, self._ask(apis.DESCRIBE_QUORUM.request(topics=[topic]), version))

    def cluster_id_of_controllers(self) -> str | None:
        """Return the cluster id that a controller reports (DescribeCluster v1, KIP-919), None if it cannot.

        It cannot below metadata.version 3.7-IV0. A controller that has not loaded its metadata yet takes its version
        for older and refuses too (ControllerApis.handleDescribeCluster): it is asked again until the deadline.
        """
        if apis.DESCRIBE_CLUSTER.version(self.api_versions().api_keys) != _OF_CONTROLLERS:
            return None
        self.authenticate()
        while True:
            answer = self._ask(apis.DESCRIBE_CLUSTER.request(endpointType=_CONTROLLERS), _OF_CONTROLLERS)
            try:
                return self._decoded(decode_cluster, answer)
            except KafkaError as error:
                if error.code != _UNSUPPORTED_VERSION or self._wire.deadline.remaining() <= 2 * _POLL_S:
                    raise
            if 0 <= self._read_metadata_version() < CONTROLLERS_REGISTER:
                return None
            time.sleep(_POLL_S)

    def _read_metadata_version(self) -> int:
        """Return the level of the finalized metadata.version that the server names now, -1 if it names none.

        The epoch is the offset up to which it has loaded the log. The record at offset 0 says who leads. So the level
        at epoch 0 is only the lowest that Kafka knows (FeaturesImage.EMPTY).
        """
        self._api_versions = None
        answer = self.api_versions()
        if answer.finalized_features_epoch <= 0:
            return -1
        return answer.finalized_features.get("metadata.version", (-1, -1))[1]

    def unregister_broker(self, broker_id: int) -> None:
        """Send UnregisterBroker v0 (KIP-631), after authentication if the security requires it. Raises KafkaError."""
        self.authenticate()
        api = apis.UNREGISTER_BROKER
        self._decoded(decode_unregistered, self._ask(api.request(brokerId=broker_id), api.newest))

    def request(self, request: Request, timeout: float, largest: int = _LARGEST_ANSWER) -> Answer:
        """Send a request to this server, in the newest version that both know, and return its answer.

        Authenticate first if the security requires it. `timeout`: seconds for this answer, from now; `largest`: its
        maximum size in bytes. Raises before sending: KafkaError (UNSUPPORTED_VERSION) if the server offers no version
        of the table, messages.MessageError if that version has no place for the request's fields.
        """
        self._wire.deadline = Deadline(timeout)
        offered = self.api_versions().api_keys
        version = request.api.version(offered)
        if version is None:
            raise KafkaError(
                self.address,
                _UNSUPPORTED_VERSION,
                request.api.name,
                f"this server does not offer {request.api.explain(offered)} (QS-CONNECT-004)",
            )
        body = request.body(version)
        self.authenticate()
        self.sent = request.api.name
        return self._send(request.api, version, body, largest)

    def authenticate(self) -> None:
        """Authenticate once a connection with the security's SASL mechanism; do nothing without SASL."""
        if self._authenticated:
            return
        self._authenticated = True
        mechanism = str(self.security.mechanism)
        api = apis.SASL_HANDSHAKE
        code, offered = self._decoded(decode_handshake, self._ask(api.request(mechanism=mechanism), api.newest))
        if code == _UNSUPPORTED_SASL_MECHANISM:
            raise AuthenticationFailed(
                self.address,
                f"the listener does not offer {mechanism}, but {', '.join(offered) or 'no mechanism'} (QS-CONNECT-004)",
            )
        if code:
            raise KafkaError(self.address, code, "SaslHandshake")
        try:
            if self.security.oauth is not None:
                self._log_in_with_token(self.security.oauth)
            elif self.security.kerberos is not None:
                self._log_in_with_ticket(self.security.kerberos)
            else:
                self._log_in_with_password(mechanism, str(self.security.username), str(self.security.password))
        except (SaslError, TokenError) as error:
            raise AuthenticationFailed(self.address, str(error)) from error

    def _log_in_with_password(self, mechanism: str, username: str, password: str) -> None:
        if mechanism == "PLAIN":
            self._exchange(plain_token(username, password))
            return
        scram = Scram(mechanism, username, password)
        scram.verify(self._exchange(scram.final(self._exchange(scram.first()))))

    def _log_in_with_token(self, login: OauthLogin) -> None:
        """Log in with an access token (RFC 7628): a server that rejects it says why, and waits for an empty answer."""
        token = oauth_token.fetch(login, self._wire.deadline.remaining())
        reason = self._exchange(bearer_message(token.value))
        if reason:
            try:
                self._exchange(b"\x01")
            except AuthenticationFailed as error:
                raise SaslError(f"{error.message} {explain_bearer(reason)} (QS-CONNECT-004)") from error
            raise SaslError(f"the server rejects the token: {explain_bearer(reason)} (QS-CONNECT-004)")

    def _log_in_with_ticket(self, login: KerberosLogin) -> None:
        service, remaining = f"{login.service_name}/{self.address.host}", self._wire.deadline.remaining
        try:
            with gssapi.Exchange(login, self.address.host, remaining) as exchange:
                challenge = b""
                while not exchange.complete:
                    challenge = self._exchange(exchange.step(challenge))
        except gssapi.GssError as error:
            raise AuthenticationFailed(
                self.address, f"GSSAPI login at {service} failed: {error} (QS-CONNECT-004)"
            ) from error
        except bounded.TimedOut:
            message = (
                f"timed out after {self._wire.deadline.seconds:g} s waiting for a ticket of {service} from the KDC"
            )
            raise Unreachable(self.address, "timeout", f"{message} (QS-CONNECT-003)") from None

    def _exchange(self, token: bytes) -> bytes:
        api = apis.SASL_AUTHENTICATE
        code, message, challenge = self._decoded(
            decode_authenticate, self._ask(api.request(authBytes=token), api.newest)
        )
        if code == _SASL_AUTHENTICATION_FAILED:
            user = f" as {self.security.username!r}" if self.security.username else ""
            text = f"{self.security.mechanism} login{user} failed"
            raise AuthenticationFailed(self.address, f"{text}: {message}" if message else text)
        if code:
            raise KafkaError(self.address, code, "SaslAuthenticate", message)
        return challenge

    def _ask(self, request: Request, version: int) -> Answer:
        return self._send(request.api, version, request.body(version), _LARGEST_ANSWER)

    def _send(self, api: Api, version: int, body: bytes, largest: int) -> Answer:
        """Send one request and return its answer."""
        name = api.name
        self._correlation += 1
        flexible = messages.is_flexible(f"{name}Request", version)
        header = messages.encode(
            "RequestHeader",
            2 if flexible else 1,
            {
                "requestApiKey": api.api_key,
                "requestApiVersion": version,
                "correlationId": self._correlation,
                "clientId": _CLIENT_NAME,
            },
        )
        self._wire.send(struct.pack(">i", len(header) + len(body)) + header + body, f"the answer to {name}")
        (size,) = struct.unpack(">i", self._wire.receive(4))
        if size >> 8 == 0x150303:
            raise ProtocolError(
                self.address, "the listener uses TLS, but the security protocol of the client does not (QS-CONNECT-004)"
            )
        if not 4 <= size <= largest:
            raise ProtocolError(
                self.address, f"the answer to {name} is not Kafka's: its length is {size} (QS-CONNECT-004)"
            )
        answer = self._wire.receive(size)
        # a client that asks for the versions does not know yet whether the server has flexible headers (KIP-511)
        read_header = messages.reader("ResponseHeader", int(flexible and name != "ApiVersions"))
        try:
            fields, start = read_header(answer, 0)
        except messages.MessageError as error:
            raise ProtocolError(
                self.address, f"the answer to {name} v{version} cannot be read: {error} (QS-CONNECT-004)"
            ) from error
        correlation = fields["correlationId"]
        if correlation != self._correlation:
            raise ProtocolError(
                self.address, f"{name}: got answer {correlation} to request {self._correlation} (QS-CONNECT-004)"
            )
        return Answer(api, version, answer[start:])

    def _decoded(self, decode: Callable[[bytes, int], Any], answer: Answer) -> Any:
        name, version = answer.api.name, answer.version
        try:
            return decode(answer.data, version)
        except ErrorCode as error:
            kind = NotLeader if error.code == _NOT_LEADER else KafkaError
            raise kind(self.address, error.code, name, error.server_message) from None
        except ValueError as error:
            detail = error.detail if isinstance(error, messages.MessageError) else error
            raise ProtocolError(
                self.address, f"the answer to {name} v{version} cannot be read: {detail} (QS-CONNECT-004)"
            ) from error
