# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Join what the releases accept in settings and requests to one table, and write it as a module of the collection."""

from __future__ import annotations

import pprint
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from tools.kafka_releases.table import Lines, TableError, spans

Rule = tuple[str, str, str, str, str]


class Accepted(NamedTuple):
    """What one version of Kafka accepts (KafkaSettings.java).

    `rules`: {broker or topic: {setting: (least, most, allowed values, empty, repeated)}}; `requests`: {name: its oldest
    version}; `classes`: that a setting may name; `needs_urls`: whether OAUTHBEARER needs the property of allowed URLs.
    """

    version: str
    rules: dict[str, dict[str, Rule]]
    requests: dict[str, int]
    classes: frozenset[str]
    needs_urls: bool


def parsed(version: str, lines: Lines) -> Accepted:
    """Return what a version accepts. Raises TableError."""
    rules: dict[str, dict[str, Rule]] = {"broker": {}, "topic": {}}
    requests, classes, urls = {}, set(), None
    for kind, *fields in lines:
        if kind == "rule":
            of, name, least, most, allowed, empty, repeated = fields
            rules[of][name] = (least, most, allowed, empty, repeated)
        elif kind == "request":
            requests[fields[0]] = int(fields[1])
        elif kind == "class":
            classes.add(fields[0])
        elif kind == "urls":
            urls = fields[0] == "true"
        else:
            raise TableError(f"Kafka {version}: {kind} is no kind of line")
    if not rules["broker"] or not rules["topic"] or not requests or not classes or urls is None:
        raise TableError(f"Kafka {version}: settings, requests or classes are missing")
    return Accepted(version, rules, requests, frozenset(classes), urls)


def joined(found: Iterable[Accepted]) -> dict[str, Any]:
    """Return the tables of these versions: {name of a constant: value}."""
    builds = sorted(found, key=lambda build: [int(part) for part in build.version.split(".")])
    return {
        "RULES": _changes([(build.version, build.rules["broker"]) for build in builds]),
        "TOPIC_RULES": _changes([(build.version, build.rules["topic"]) for build in builds]),
        "TOPIC_KEYS": spans([(build.version, frozenset(build.rules["topic"])) for build in builds]),
        "REQUESTS": _changes([(build.version, build.requests) for build in builds]),
        "CLASSES": spans([(build.version, build.classes) for build in builds]),
        "ALLOWED_URLS": spans([(build.version, {"needed"} if build.needs_urls else set()) for build in builds])[
            "needed"
        ],
    }


def module(tables: Mapping[str, Any]) -> str:
    """Return the text of the collection's module."""
    parts = [_HEAD]
    for name, value in tables.items():
        text = pprint.pformat(value, width=118 - len(name))
        meaning = "".join(f"# {line}\n" for line in _MEANINGS[name].strip().splitlines())
        parts.append(f"{meaning}{name}: {_TYPES[name]} = {text}\n")
    return "\n".join(parts)


def _changes(builds: list[tuple[str, Mapping[str, Any]]]) -> dict[str, tuple[tuple[str, Any], ...]]:
    """Return what is not the same in each build that has it, {name: ((first build with this value, value), ...)}; the
    first build is '' where the oldest has it."""
    found: dict[str, list[tuple[str, Any]]] = {}
    for index, (version, values) in enumerate(builds):
        for name, value in values.items():
            known = found.setdefault(name, [])
            if not known or known[-1][1] != value:
                known.append((version if index else "", value))
    return {name: tuple(known) for name, known in sorted(found.items()) if len(known) > 1}


_HEAD = '''# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What each release of Kafka accepts in settings and requests, as the classes in its jars have it. Data;
releases.accepted reads it.

Written by `python -m tools.kafka_releases`. tests/integration/test_kafka_releases.py compares it with Kafka's classes.
"""

from __future__ import annotations

from typing import Dict, Tuple

Spans = Tuple[Tuple[str, str], ...]
Rules = Dict[str, Tuple[Tuple[str, Tuple[str, str, str, str, str]], ...]]
'''
_TYPES = {
    "RULES": "Rules",
    "TOPIC_RULES": "Rules",
    "TOPIC_KEYS": "Dict[str, Spans]",
    "REQUESTS": "Dict[str, Tuple[Tuple[str, int], ...]]",
    "CLASSES": "Dict[str, Spans]",
    "ALLOWED_URLS": "Spans",
}
_MEANINGS = {
    "RULES": """
Settings of brokers and controllers whose accepted values changed, {key: ((first build, (least, most, allowed values,
empty, repeated)), ...)}. The last two: whether a list may have no item, and one item twice; '' for no list.
""",
    "TOPIC_RULES": """The same of topics' settings.""",
    "TOPIC_KEYS": """
Settings of topics that not every build has, {key: ((first build with it, first one without), ...)}.
""",
    "REQUESTS": """
Requests whose oldest version changed (ApiKeys.oldestVersion), {name: ((first build, oldest version), ...)}.
""",
    "CLASSES": """Classes of Kafka's own that a setting may name and that not every build has.""",
    "ALLOWED_URLS": """
Builds whose OAUTHBEARER needs the system property org.apache.kafka.sasl.oauthbearer.allowed.urls.
""",
}
