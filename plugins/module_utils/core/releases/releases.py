# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Builds of Kafka by the version in the name of their jar: which release one is, and what it has. Pure."""

from __future__ import annotations

import re
from typing import Any, Iterable, Sequence, Set, Tuple

from ansible_collections.quorumshift.kafka.plugins.module_utils.core.releases import kafka_releases as table

WANTED = (3, 9)
"""The last release with ZooKeeper."""

SUPPORTED = "Apache Kafka 3.9.x, or Confluent's community build of it, 7.9.x-ccs"

FIRST_WITHOUT_ZOOKEEPER = min(release for release, found in table.RELEASES.items() if not found["zookeeper"])

# Kafka's release of each release of Confluent Platform. Its jars are not read; the source is Confluent's documentation,
# "Supported Versions and Interoperability".
_CONFLUENT = {
    **{(7, minor): (3, minor) for minor in range(10)},
    **{(8, minor): (4, minor) for minor in range(5)},
}
_APACHE = re.compile(r"(\d+)\.(\d+)\.\d+")
_COMMUNITY = re.compile(r"(\d+)\.(\d+)\.\d+-ccs")
_SERVER = re.compile(r"(\d+)\.(\d+)\.\d+-ce")
_FOREIGN = (
    (re.compile(r"-ce\b"), "Confluent Server"),
    (re.compile(r"redhat", re.IGNORECASE), "a build of Red Hat"),
    (re.compile(r"amzn|emr", re.IGNORECASE), "a build of Amazon"),
    (re.compile(r"SNAPSHOT|-rc\d", re.IGNORECASE), "an unreleased build"),
    (re.compile(r"-ccs\b"), "an unreleased build of Confluent"),
)


def parse_release(version: str) -> Tuple[int, int] | None:
    """Return the release of Apache Kafka of a build, as (3, 9); None for a build that is not supported at all."""
    apache, community = _APACHE.fullmatch(version), _COMMUNITY.fullmatch(version)
    if apache:
        return int(apache.group(1)), int(apache.group(2))
    if community:
        return _CONFLUENT.get((int(community.group(1)), int(community.group(2))))
    return None


def parse_acceptable(version: str) -> Tuple[int, int] | None:
    """Return the release of Apache Kafka on which a build of another vendor is based that the operator may accept, as
    (3, 9): Confluent Server's. None for all others, the supported ones included.

    Confluent's documentation, "Supported Versions and Interoperability", gives one release of Kafka for both builds.
    """
    found = _SERVER.fullmatch(version)
    return _CONFLUENT.get((int(found.group(1)), int(found.group(2)))) if found else None


def parse_protocol(value: str) -> Tuple[int, ...]:
    """Return the release of an `inter.broker.protocol.version` as Kafka writes it, `3.9` or `3.9-IV0`."""
    return tuple(int(part) for part in re.findall(r"\d+", value)[:2])


def format_release(found: Tuple[int, ...]) -> str:
    """Return a release as Kafka writes it."""
    return ".".join(map(str, found))


def describe_kind(version: str) -> str:
    """Return what a build is of which `parse_release` is None, as a noun phrase."""
    if _COMMUNITY.fullmatch(version):
        return "a release of Confluent Platform that the tool does not know"
    return next((name for pattern, name in _FOREIGN if pattern.search(version)), "a build that the tool does not know")


def describe_version(version: str) -> str:
    """Return a version, for Confluent's with the release of Kafka that it is."""
    found = parse_release(version)
    return f"{version} (Kafka {format_release(found)})" if found and _COMMUNITY.fullmatch(version) else version


def java_release(version: str) -> int | None:
    """Return the release of a Java version, 8 of 1.8.0_412 and 17 of 17.0.15; None if it is not known."""
    match = re.match(r"(?:1\.)?(\d+)", version)
    return int(match[1]) if match else None


def required_java(found: Tuple[int, int]) -> int | None:
    """Return the release of Java that a broker of this release needs, None if the table does not have the release."""
    known = table.RELEASES.get(found)
    return known["java"] if known else None


def find_unknown_keys(version: str, keys: Iterable[str]) -> Set[str]:
    """Return which of these settings a build does not know, though another build does."""
    return {key for key in keys if key in table.KEYS and not has_in(version, table.KEYS[key])}


def has_in(version: str, spans: Tuple[Tuple[str, str], ...]) -> bool:
    """Return whether a build has what these spans have, ((first build with it, first one without), ...); True for a
    build that is not supported at all."""
    at = _place(version)
    if at is None:
        return True
    if at[-1] == _NEWEST and _parse_numbers(spans[0][0]) <= at < _parse_numbers(spans[-1][0]):
        return True  # what a later release has again
    return any(_parse_numbers(since) <= at and (not until or at < _parse_numbers(until)) for since, until in spans)


def value_in(version: str, changes: Sequence[Tuple[str, Any]]) -> Any:
    """Return the value that a build has of ((first build with this value, value), ...); None for an earlier build, and
    for one that is not supported at all."""
    at = _place(version)
    found = [value for since, value in changes if at is not None and _parse_numbers(since) <= at]
    return found[-1] if found else None


def _place(version: str) -> Tuple[int, ...] | None:
    """Return the place of a build among those of the tables: a build that was not read has what the newest of its
    release has."""
    found = parse_release(version)
    if found is None:
        return None
    if version in table.RELEASES.get(found, {}).get("builds", ()):
        return _parse_numbers(version)
    return (*found, _NEWEST)


_NEWEST = 1 << 16


def _parse_numbers(version: str) -> Tuple[int, ...]:
    return tuple(int(part) for part in version.split(".") if part)
