# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The text of a broker's error in the ledger."""

from __future__ import annotations

import pytest
from confluent_kafka import KafkaError

from canary_clients.workload import admin

DUMP = "Request Request(processor=5, connectionId=10.0.0.1:9094-10.0.0.9:34714-9, buffer=java.nio.HeapByteBuffer"


@pytest.mark.parametrize(
    ("code", "text", "expected"),
    [
        (KafkaError.CLUSTER_AUTHORIZATION_FAILED, DUMP, "CLUSTER_AUTHORIZATION_FAILED"),
        (KafkaError.INVALID_CONFIG, "no such key", "INVALID_CONFIG: no such key"),
        (KafkaError.INVALID_CONFIG, "x" * 1000, ("INVALID_CONFIG: " + "x" * 1000)[: admin.TEXT_LIMIT]),
    ],
)
def test_error_text_is_one_short_line(code, text, expected):
    assert admin.error_text(KafkaError(code, text)) == expected
