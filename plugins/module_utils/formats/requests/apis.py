# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The table of Kafka's APIs that the collection uses, each with its oldest and newest version here. No I/O.

Of what a server offers (ApiVersions, KIP-35), the newest version that both know is used, as Kafka's own clients do
(NodeApiVersions.latestUsableVersion). The oldest is what Kafka 2.4 offers at most (`OF_2_4` below), or the first that
has what the collection reads. The newest is Kafka 3.9's: every later broker still offers it.
"""

from __future__ import annotations

from typing import Any, Dict, Mapping, NamedTuple, Sequence

from ansible_collections.quorumshift.kafka.plugins.module_utils.formats.messages import messages


class Api(NamedTuple):
    """An API of Kafka's by its name in ApiKeys, with the oldest and newest version that the collection speaks."""

    name: str
    oldest: int
    newest: int

    @property
    def api_key(self) -> int:
        return messages.api_key(f"{self.name}Request")

    def version(self, offered: Mapping[int, Sequence[int]]) -> int | None:
        """Return the newest version that a server with these (oldest, newest) by api key and this one know, or None."""
        lowest, highest = offered.get(self.api_key, (0, -1))
        newest = min(self.newest, highest)
        return newest if newest >= max(self.oldest, lowest) else None

    def explain(self, offered: Mapping[int, Sequence[int]]) -> str:
        """Return the versions that are needed, and those that the server offers."""
        needed = f"{self.oldest} to {self.newest}" if self.oldest < self.newest else f"{self.newest}"
        lowest, highest = offered.get(self.api_key, (0, -1))
        return f"{self.name} {needed} (it offers {f'{lowest} to {highest}' if highest >= 0 else 'no version'})"

    def request(self, **fields: Any) -> Request:
        """Return a request with these fields; the others have Kafka's defaults."""
        return Request(self, fields)


class Request(NamedTuple):
    """A request, whose version is known once a server has said which it offers."""

    api: Api
    fields: Mapping[str, Any]

    def body(self, version: int) -> bytes:
        """Return the request in a version. Raises messages.MessageError where that version cannot say this."""
        return messages.encode(f"{self.api.name}Request", version, self.fields)


class Answer(NamedTuple):
    """An answer: its bytes after the header, in the version of its request."""

    api: Api
    version: int
    data: bytes

    def fields(self) -> Dict[str, Any]:
        """Return the fields; those that this version does not have with Kafka's default. Raises MalformedAnswer."""
        try:
            return messages.decode(self.message, self.version, self.data)
        except messages.MessageError as error:
            raise MalformedAnswer(self, error) from error

    @property
    def message(self) -> str:
        return f"{self.api.name}Response"


class MalformedAnswer(ValueError):
    """An answer's bytes do not match its layout."""

    def __init__(self, answer: Answer, reason: object) -> None:
        detail = reason.detail if isinstance(reason, messages.MessageError) else reason
        super().__init__(f"the answer to {answer.api.name} v{answer.version} cannot be read: {detail}")


# Each connection
API_VERSIONS = Api("ApiVersions", 0, 4)
SASL_HANDSHAKE, SASL_AUTHENTICATE = Api("SaslHandshake", 1, 1), Api("SaslAuthenticate", 1, 1)

# A broker's metadata. Metadata 9 is the first flexible version; topics have ids from 10 on
METADATA = Api("Metadata", 9, 12)
DESCRIBE_CONFIGS = Api("DescribeConfigs", 2, 4)
LIST_OFFSETS = Api("ListOffsets", 5, 7)
DESCRIBE_LOG_DIRS = Api("DescribeLogDirs", 1, 4)  # 3: an error of its own, 4: the sizes of directories
DESCRIBE_CLUSTER = Api("DescribeCluster", 0, 1)  # Kafka 2.8; 1: that of controllers (KIP-919)
DESCRIBE_CLIENT_QUOTAS = Api("DescribeClientQuotas", 0, 1)  # Kafka 2.6
DESCRIBE_SCRAM = Api("DescribeUserScramCredentials", 0, 0)  # Kafka 2.7
DESCRIBE_ACLS = Api("DescribeAcls", 1, 3)
DESCRIBE_TOKENS = Api("DescribeDelegationToken", 1, 3)
LIST_CLIENT_METRICS = Api("ListClientMetricsResources", 0, 0)  # Kafka 3.7, in KRaft mode (KIP-1000)
FETCH = Api("Fetch", 13, 13)  # Kafka 3.1: topics by their ids (KIP-516)
LIST_TRANSACTIONS, DESCRIBE_TRANSACTIONS = Api("ListTransactions", 0, 0), Api("DescribeTransactions", 0, 0)  # Kafka 3.0

# Changes
ALTER_REASSIGNMENTS = Api("AlterPartitionReassignments", 0, 0)
LIST_REASSIGNMENTS = Api("ListPartitionReassignments", 0, 0)
ELECT_LEADERS = Api("ElectLeaders", 2, 2)
INCREMENTAL_ALTER_CONFIGS = Api("IncrementalAlterConfigs", 1, 1)
UPDATE_FEATURES = Api("UpdateFeatures", 1, 1)  # Kafka 3.3: 0 cannot only validate

# The quorum
DESCRIBE_QUORUM = Api("DescribeQuorum", 0, 2)
UNREGISTER_BROKER = Api("UnregisterBroker", 0, 0)
ADD_VOTER, REMOVE_VOTER = Api("AddRaftVoter", 0, 0), Api("RemoveRaftVoter", 0, 0)
UNREGISTER_CONTROLLER = Api("UnregisterController", 0, 0)

ALL = tuple(each for each in list(globals().values()) if isinstance(each, Api))
OF_2_4 = (
    *(API_VERSIONS, SASL_HANDSHAKE, SASL_AUTHENTICATE, METADATA, DESCRIBE_CONFIGS, LIST_OFFSETS, DESCRIBE_LOG_DIRS),
    *(DESCRIBE_ACLS, DESCRIBE_TOKENS, ALTER_REASSIGNMENTS, LIST_REASSIGNMENTS, ELECT_LEADERS),
    INCREMENTAL_ALTER_CONFIGS,
)
"""What every broker from Kafka 2.4 on offers: enough to restart, reassign and upgrade it. The others are refused where
a server does not offer them, and nothing else is."""
