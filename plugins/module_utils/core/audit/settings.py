# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Checks of settings against a release: files of nodes, configs of topics, dynamic configs of brokers. Pure."""

from __future__ import annotations

import re
from typing import Iterable

from ansible_collections.quorumshift.kafka.plugins.module_utils.core.admin import upgrade
from ansible_collections.quorumshift.kafka.plugins.module_utils.core.audit.audit_facts import (
    Facts,
    config_command,
    grouped,
    names,
    values_of,
)
from ansible_collections.quorumshift.kafka.plugins.module_utils.core.releases import accepted, releases
from ansible_collections.quorumshift.kafka.plugins.module_utils.core.text.advice import Finding
from ansible_collections.quorumshift.kafka.plugins.module_utils.secrets.seal import PREFIX
from ansible_collections.quorumshift.kafka.plugins.module_utils.settings import config_values

_CLASS = re.compile(r"(?<![\w.])(?:org\.apache\.)?kafka\.[\w.]+\.[A-Z]\w*")
# Where a class went, by the class that replaces it; each of the newest release's own jars has it
_MOVED = {
    "kafka.security.authorizer.AclAuthorizer": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "org.apache.kafka.common.security.oauthbearer.secured.OAuthBearerLoginCallbackHandler": (
        "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginCallbackHandler"
    ),
    "org.apache.kafka.common.security.oauthbearer.secured.OAuthBearerValidatorCallbackHandler": (
        "org.apache.kafka.common.security.oauthbearer.OAuthBearerValidatorCallbackHandler"
    ),
}


def zookeeper(facts: Facts, target: str) -> Iterable[Finding]:
    """Yield that the release has no ZooKeeper, and the cluster is in ZooKeeper mode."""
    why = upgrade.explain_zookeeper(target, facts.in_zookeeper_mode is not False)
    if why and facts.in_zookeeper_mode:
        yield Finding(
            "the cluster is in ZooKeeper mode, which ended with Kafka 3.9, or its migration is not finalized",
            upgrade.WAY_FROM_ZOOKEEPER,
        )


def keys(facts: Facts, target: str) -> Iterable[Finding]:
    """Yield keys of properties files that the release does not know: it ignores them, and their effect is gone."""
    files = {host: values_of(node) for host, node in facts.nodes.items()}
    hosts: dict[tuple[str, str], list[str]] = {}
    for host, found in upgrade.find_removed_keys(files, target).items():
        for key, instead in found.items():
            hosts.setdefault((key, instead), []).append(host)
    dead: dict[tuple[str, ...], list[str]] = {}
    for (key, instead), found_on in sorted(hosts.items()):
        if instead:
            yield Finding(
                f"Kafka does not know {key} of {names(found_on)} any more: its effect is gone",
                f"set {instead} as well, which the release that runs may not know yet, and remove {key} afterwards",
            )
        else:
            dead.setdefault(tuple(found_on), []).append(key)
    for without, listed in dead.items():
        yield Finding(
            f"Kafka does not know {names(listed, 8)} of {names(without)} any more: their effect is gone",
            "remove them from the files after the upgrade: nothing replaces them",
        )


def values(facts: Facts, target: str) -> Iterable[Finding]:
    """Yield values in properties files with which the release does not start (ConfigException)."""
    found: dict[str, tuple[tuple[str, str, str], ...]] = {}
    for host, node in facts.nodes.items():
        given = values_of(node)
        refused = [
            (key, given[key], why)
            for key in sorted(accepted.BROKER_RULES.keys() & given.keys())
            for why in [accepted.explain_value(target, accepted.BROKER_RULES, key, given[key])]
            if why and not releases.find_unknown_keys(target, [key])
        ]
        if refused:
            found[host] = tuple(refused)
    for hosts, refused in grouped(found):
        for key, value, why in refused:
            yield Finding(
                f"{key} of {hosts} is {value or 'empty'}, {why}: the node does not start",
                f"correct {key} in the properties file, and restart these nodes with quorumshift.kafka.restart",
            )


def classes(facts: Facts, target: str) -> Iterable[Finding]:
    """Yield classes in properties files that the release does not have any more: the node does not start with them."""
    found: dict[str, tuple[tuple[str, str], ...]] = {}
    for host, node in facts.nodes.items():
        gone = [
            (key, name)
            for key, value in sorted(values_of(node).items())
            if not value.startswith(PREFIX)
            for name in _CLASS.findall(value)
            if not accepted.has_class(target, name) and not releases.find_unknown_keys(target, [key])
        ]
        if gone:
            found[host] = tuple(gone)
    for hosts, gone in grouped(found):
        for key, name in gone:
            instead = _MOVED.get(name)
            do = f"set {key} to {instead}" if instead else f"choose another class for {key}"
            yield Finding(
                f"{key} of {hosts} names {name}, which Kafka does not have any more: the node does not start",
                f"{do}, and restart these nodes with quorumshift.kafka.restart",
            )


def topic_keys(facts: Facts, target: str) -> Iterable[Finding]:
    """Yield settings of topics that the release does not know.

    Their effect is gone. Kafka 4.1 refuses each later change of such a topic's configs with "Unknown topic config name"
    (ControllerConfigurationValidator); Kafka 4.4 does not.
    """
    topics: dict[str, list[str]] = {}
    for topic, given in (facts.topics or {}).items():
        for key in accepted.find_unknown_topic_keys(target, given):
            topics.setdefault(key, []).append(topic)
    for key, found in sorted(topics.items()):
        yield Finding(
            f"Kafka does not know {key} of {_count(found, 'topic')} any more, {names(sorted(found))}: its effect is "
            "gone, and a release such as 4.1.1 refuses each later change of such a topic",
            f"delete it before the upgrade, for each topic: "
            f"{config_command(facts, 'topics', sorted(found)[0], f'--delete-config {key}')}",
        )


def topic_values(facts: Facts, target: str) -> Iterable[Finding]:
    """Yield values of topics' settings that the release refuses: each broker with a replica ends while it loads its
    logs (LogManager.fetchTopicConfigOverrides)."""
    topics: dict[tuple[str, str, str], list[str]] = {}
    for topic, given in (facts.topics or {}).items():
        for key in sorted(accepted.TOPIC_RULES.keys() & given.keys()):
            why = accepted.explain_value(target, accepted.TOPIC_RULES, key, given[key])
            if why:
                topics.setdefault((key, given[key], why), []).append(topic)
    for (key, value, why), found in sorted(topics.items()):
        least = re.search(r"accepts (\d+) at least", why)
        action = f"--add-config {key}={least[1]}" if least else f"--delete-config {key}"
        yield Finding(
            f"{key} of {_count(found, 'topic')}, {names(sorted(found))}, is {value}, {why}: the brokers do not start",
            f"change it before the upgrade, for each topic: "
            f"{config_command(facts, 'topics', sorted(found)[0], action)}",
        )


def dynamic(facts: Facts, target: str) -> Iterable[Finding]:
    """Yield dynamic configs of brokers that the release does not know, or whose values it refuses: it ignores them
    (DynamicBrokerConfig: "these configs will be ignored")."""
    found: dict[tuple[str, str], list[str]] = {}
    for name, given in facts.dynamic.items():
        for key, value in given.items():
            if releases.find_unknown_keys(target, [config_values.plain_name(key)]):
                found.setdefault((key, "is not known any more"), []).append(name)
                continue
            why = accepted.explain_value(target, accepted.BROKER_RULES, key, value)
            if why:
                found.setdefault((key, f"is {value}, {why}"), []).append(name)
    for (key, what), brokers in sorted(found.items()):
        whose = ["all brokers" if name == "" else f"broker {name}" for name in sorted(brokers)]
        yield Finding(
            f"the dynamic config {key} of {names(whose)} {what}: Kafka ignores it",
            f"delete it before the upgrade: "
            f"{config_command(facts, 'brokers', sorted(brokers)[0], f'--delete-config {key}')}",
        )


def _count(found: list[str], noun: str) -> str:
    return f"{len(found)} {noun}{'' if len(found) == 1 else 's'}"
