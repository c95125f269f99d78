# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a member does with errors of its consumer. The texts are librdkafka's, from a run on a cluster."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from confluent_kafka import KafkaError, Message

from canary_clients.workload.consumers import Member

TRUNCATION = (
    "Partition log truncation detected at offset 2288 (leader epoch 1): broker end offset is 2280 (offset leader epoch "
    "0). Reset to INVALID.: Local: Partition log truncation detected (broker 33)"
)
OUT_OF_RANGE = "fetch failed due to requested offset not available: Broker: Offset out of range (broker 1)"


class Ledger:
    def __init__(self) -> None:
        self.entered: list[tuple[str, str, str]] = []

    def error(self, where: str, code: str, text: str, severity: str = "error") -> None:
        self.entered.append((severity, code, text))

    def note(self, where: str, code: str, text: str) -> None:
        self.error(where, code, text, "note")


def after(text: str, audit: bool = True) -> tuple[bool, list[tuple[str, str, str]]]:
    """Return whether a member needs a new consumer after this error, and the entries of the ledger."""
    ledger = Ledger()
    context: Any = SimpleNamespace(config=SimpleNamespace(audit=audit), ledger=ledger)
    member = Member(SimpleNamespace(context=context), "consumer-stays")  # type: ignore[arg-type]
    error = KafkaError(KafkaError._AUTO_OFFSET_RESET, text)
    return member._on_message_error(Message(topic="canary.keyed", partition=6, error=error)), ledger.entered


def test_a_reported_truncation_is_left_to_the_audit():
    needs_new, ((severity, code, text),) = after(TRUNCATION)
    assert needs_new and (severity, code) == ("note", "LOG_TRUNCATION")
    assert text.startswith("canary.keyed[6]: the audit decides: Partition log truncation detected at offset 2288")


def test_without_the_audit_a_reported_truncation_is_an_error():
    needs_new, ((severity, code, _text),) = after(TRUNCATION, audit=False)
    assert (needs_new, severity, code) == (False, "error", "_AUTO_OFFSET_RESET")


def test_any_other_lost_position_is_an_error():
    needs_new, ((severity, code, text),) = after(OUT_OF_RANGE)
    assert (needs_new, severity, code) == (False, "error", "_AUTO_OFFSET_RESET")
    assert text.endswith("at canary.keyed[6]")
