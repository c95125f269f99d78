# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The record types of Kafka 3.9's metadata log, by Kafka's definitions. All are flexible (KIP-482) in all versions."""

from __future__ import annotations

import re
from typing import Dict, NamedTuple

from ansible_collections.quorumshift.kafka.plugins.module_utils.formats.messages import messages
from ansible_collections.quorumshift.kafka.plugins.module_utils.formats.messages.definitions import DEFINITIONS


class Schema(NamedTuple):
    """A record type: `name` as in MetadataRecordType or ControlRecordType, versions 0 to `latest`, and the message that
    defines it."""

    name: str
    latest: int
    message: str


def _metadata_records() -> Dict[int, Schema]:
    found = {}
    for message in DEFINITIONS:
        if message.endswith("Record") and messages.definition(message)["type"] == "metadata":
            name = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", message).upper()
            found[messages.api_key(message)] = Schema(name, messages.latest(message), message)
    return dict(sorted(found.items()))


RECORDS = _metadata_records()
"""Metadata record types by api key: those of Kafka 3.9, and what a later Kafka writes of brokers and controllers."""

LATER = {0: 4, 17: 3}
"""The highest version in Kafka 4.4 of types with more versions there, whose new fields are tagged, so skipped."""

API_KEYS = {schema.name: api_key for api_key, schema in RECORDS.items()}
"""Api keys by the name of the record type."""

CONTROL_RECORDS = {
    kind: Schema(name, messages.latest(message), message)
    for kind, name, message in (
        (2, "LEADER_CHANGE", "LeaderChangeMessage"),
        (3, "SNAPSHOT_HEADER", "SnapshotHeaderRecord"),
        (4, "SNAPSHOT_FOOTER", "SnapshotFooterRecord"),
        (5, "KRAFT_VERSION", "KRaftVersionRecord"),
        (6, "KRAFT_VOTERS", "VotersRecord"),
    )
}
"""Control record types by the type in their key; the version is the first field of the value."""
