# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The audit says which topics it cannot see."""

from __future__ import annotations

import pytest
from ansible_collections.quorumshift.kafka.plugins.module_utils.admin.cluster_admin import LogDirs
from ansible_collections.quorumshift.kafka.plugins.module_utils.settings.addresses import HostPort
from ansible_collections.quorumshift.kafka.plugins.module_utils.wire.kafka_wire import KafkaError
from ansible_collections.quorumshift.kafka.plugins.modules import upgrade_audit

REFUSED = KafkaError(HostPort("b1", 9092), 31, "DescribeLogDirs")


class Admin:
    """Two brokers, of which the second one has a topic that the principal may not describe."""

    def __init__(self, held, error=None):
        self.brokers, self.partitions = {1: None, 2: None}, {("t", 0): None}
        self._held, self._error = held, error

    def log_dirs(self, broker):
        if self._error and broker == 1:
            raise self._error
        return LogDirs(dict.fromkeys(self._held if broker == 2 else [("t", 0)], 1), [], [])

    def refresh(self):
        pass

    def denied(self, topics):
        return {"hidden"} & set(topics)


@pytest.mark.parametrize(
    ("admin", "text"),
    [
        (Admin([("t", 0)]), ""),
        (Admin([("stray", 0)]), ""),
        (Admin([("hidden", 0), ("hidden", 1)]), "the principal may not describe hidden"),
        (Admin([("hidden", 0)], REFUSED), "the principal may not describe hidden"),
        (Admin([("t", 0)], REFUSED), f"whether it may describe all of them is not known: {REFUSED}"),
    ],
)
def test_topics_that_metadata_leaves_out_are_no_topics_that_are_right(admin, text):
    assert upgrade_audit.explain_hidden(admin) == text
