# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which brokers count as read, of those that were asked for their dynamic configs."""

from __future__ import annotations

from ansible_collections.quorumshift.kafka.plugins.module_utils.probes.cluster import dynamic_configs
from ansible_collections.quorumshift.kafka.plugins.module_utils.settings.addresses import HostPort


def test_a_broker_without_dynamic_configs_is_one_that_was_read(monkeypatch):
    answers = {1: ({}, {}, None, ""), 2: ({}, {}, None, "denied"), 3: ({"a": "1"}, {"b": "2"}, "INFO", "")}
    monkeypatch.setattr(dynamic_configs, "_read_broker", lambda broker, *_more: answers[broker])
    monkeypatch.setattr(dynamic_configs, "_read_topics", lambda *_more: {})
    asked = {broker: HostPort("b", broker) for broker in answers}
    found = dynamic_configs.read(asked, [], [], [], None, 1.0)
    assert found.brokers == {"1": {}, "": {"b": "2"}, "3": {"a": "1"}} and found.unread == {"2": "denied"}
    assert found.loggers == {"3": "INFO"}
