# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What builds accept: bounds, lists, classes and requests, also of builds that were not read."""

from __future__ import annotations

import pytest
from ansible_collections.quorumshift.kafka.plugins.module_utils.core.releases import accepted

OF_FILES, OF_TOPICS = accepted.BROKER_RULES, accepted.TOPIC_RULES


@pytest.mark.parametrize(
    ("version", "rules", "key", "value", "why"),
    [
        ("3.9.2", OF_FILES, "log.segment.bytes", "1000", ""),
        ("4.0.0", OF_FILES, "log.segment.bytes", "1000", "1048576 at least"),
        ("4.0.0", OF_FILES, "log.segment.bytes", " 1048576 ", ""),
        ("4.0.9", OF_FILES, "log.segment.bytes", "1000", "1048576 at least"),
        ("4.9.0", OF_FILES, "log.segment.bytes", "1000", "1048576 at least"),
        ("8.0.0-ccs", OF_FILES, "log.segment.bytes", "1000", "1048576 at least"),
        ("7.9.1-ccs", OF_FILES, "log.segment.bytes", "1000", ""),
        ("4.0.0", OF_FILES, "log.segment.bytes", "x", ""),
        ("4.0.2", OF_TOPICS, "segment.bytes", "1000", ""),
        ("4.1.0", OF_TOPICS, "segment.bytes", "1000", "1048576 at least"),
        ("4.3.0", OF_FILES, "share.coordinator.snapshot.update.records.per.snapshot", "501", "500 at most"),
        ("4.2.0", OF_FILES, "log.dirs", "", "no empty list"),
        ("4.1.2", OF_FILES, "log.dirs", "", ""),
        ("4.2.0", OF_FILES, "log.dirs", "/a,/a", ""),
        ("4.0.0", OF_FILES, "group.coordinator.rebalance.protocols", "classic, unknown", "classic, consumer, share"),
        ("4.0.0", OF_FILES, "group.coordinator.rebalance.protocols", "classic,consumer", ""),
        ("4.0.0", OF_FILES, "no.such.key", "", ""),
        ("mine", OF_FILES, "log.segment.bytes", "1000", ""),
    ],
)
def test_values(version, rules, key, value, why):
    said = accepted.explain_value(version, rules, key, value)
    assert why in said and bool(why) == bool(said)


def test_an_item_twice_is_refused_where_a_build_says_so():
    rules = {"a": (("", ("", "", "", "yes", "no")),)}
    assert "no item twice, as x" in accepted.explain_value("4.0.0", rules, "a", "x, y ,x")
    assert accepted.explain_value("4.0.0", rules, "a", "x,y") == ""


def test_classes_topics_and_requests():
    gone = "kafka.security.authorizer.AclAuthorizer"
    assert accepted.has_class("3.9.2", gone) and not accepted.has_class("4.0.0", gone)
    assert accepted.has_class("4.0.0", "com.example.Authorizer")
    assert accepted.find_unknown_topic_keys("4.0.0", ["message.format.version", "retention.ms"]) == {
        "message.format.version"
    }
    assert accepted.find_unknown_topic_keys("3.9.2", ["message.format.version"]) == set()
    assert accepted.oldest_request("3.9.2", "FETCH") == 0 and accepted.oldest_request("4.0.0", "FETCH") == 4
    assert accepted.oldest_request("4.0.0", "API_VERSIONS") == 0
    assert accepted.needs_allowed_urls("4.4.0") and not accepted.needs_allowed_urls("3.9.2")
