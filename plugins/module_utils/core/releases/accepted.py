# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a build of Kafka accepts: values of settings, classes in settings, versions of requests. Pure.

Source: core.releases.kafka_settings, which has what the classes in each build's own jars say. What never changed
between the builds is not in it: the running release has checked that already.
"""

from __future__ import annotations

from typing import Iterable, List, Mapping, Set

from ansible_collections.quorumshift.kafka.plugins.module_utils.core.releases import kafka_settings as table
from ansible_collections.quorumshift.kafka.plugins.module_utils.core.releases.kafka_releases import KEYS
from ansible_collections.quorumshift.kafka.plugins.module_utils.core.releases.releases import has_in, value_in
from ansible_collections.quorumshift.kafka.plugins.module_utils.settings import config_values

Rules = Mapping[str, tuple]
BROKER_RULES: Rules = table.RULES
TOPIC_RULES: Rules = table.TOPIC_RULES
REQUESTS: Mapping[str, tuple] = table.REQUESTS
TOPIC_SETTINGS = frozenset((*table.TOPIC_KEYS, *table.TOPIC_RULES))
"""Settings of topics that some build does not know, or of which it accepts other values."""
BROKER_SETTINGS = frozenset((*KEYS, *table.RULES))
"""The same of brokers and controllers."""


def explain_value(version: str, rules: Rules, key: str, value: str) -> str:
    """Return why a build refuses the value of a setting, as the end of a sentence that begins with the value; '' where
    it accepts it. A value that is no number is no subject: no release accepts it."""
    rule = value_in(version, rules.get(key, ()))
    if rule is None:
        return ""
    least, most, allowed, empty, repeated = rule
    number = _number(value)
    if least and number is not None and number < int(least):
        return f"and Kafka accepts {least} at least"
    if most and number is not None and number > int(most):
        return f"and Kafka accepts {most} at most"
    items = config_values.split_items(value)
    if empty:  # a list
        if not items:
            return "" if empty == "yes" else "and Kafka accepts no empty list"
        twice = sorted({item for item in items if items.count(item) > 1})
        if twice and repeated == "no":
            return f"and Kafka accepts no item twice, as {twice[0]}"
    strange = [item for item in (items if empty else [value.strip()]) if allowed and item not in allowed.split(",")]
    return f"and Kafka accepts {allowed.replace(',', ', ')}" if strange else ""


def has_class(version: str, name: str) -> bool:
    """Return whether a build has a class of Kafka's own; True for a class that each build or none has."""
    return name not in table.CLASSES or has_in(version, table.CLASSES[name])


def find_unknown_topic_keys(version: str, keys: Iterable[str]) -> Set[str]:
    """Return which of these settings of topics a build does not know, though another build does."""
    return {key for key in keys if key in table.TOPIC_KEYS and not has_in(version, table.TOPIC_KEYS[key])}


def oldest_request(version: str, name: str) -> int:
    """Return the oldest version of a request that a build answers, by the name of the request (ApiKeys); 0 where each
    build answers all."""
    return value_in(version, table.REQUESTS.get(name, ())) or 0


def changed_requests() -> List[str]:
    """Return the requests of which a later build answers fewer versions."""
    return sorted(table.REQUESTS)


def needs_allowed_urls(version: str) -> bool:
    """Return whether OAUTHBEARER's URLs must be in org.apache.kafka.sasl.oauthbearer.allowed.urls."""
    return has_in(version, table.ALLOWED_URLS)


def _number(value: str) -> int | None:
    try:
        return int(value.strip())
    except ValueError:
        return None
