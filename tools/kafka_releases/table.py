# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Join what the releases' own classes say to one table, and write it as a module of the collection."""

from __future__ import annotations

import pprint
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

METADATA_VERSION, KRAFT_VERSION = "metadata.version", "kraft.version"
Lines = Iterable[tuple[str, ...]]


class TableError(ValueError):
    """Two releases contradict each other, so that one table cannot have both."""


class Described(NamedTuple):
    """What one version of Kafka says.

    `ranges`: {feature: (lowest, highest)}; `levels`: {metadata.version: (name, whether Kafka stays above it)};
    `defaults`: {feature: {level: metadata.version of new clusters that have it}}; `depends`: {feature: {level: {other
    feature: its lowest level}}}; `moves`: whether a change of kraft.version makes static voters dynamic; `registers`,
    `unregisters`: metadata.version from which controllers do, or None.
    """

    version: tuple[int, int, int]
    java: int
    zookeeper: bool
    ranges: dict[str, tuple[int, int]]
    levels: dict[int, tuple[str, bool]]
    defaults: dict[str, dict[int, int]]
    depends: dict[str, dict[int, dict[str, int]]]
    moves: bool
    registers: int | None
    unregisters: int | None
    keys: frozenset[str]

    @property
    def release(self) -> tuple[int, int]:
        return self.version[:2]


def parsed(version: str, java: int, zookeeper: bool, lines: Lines) -> Described:
    """Return what a version says. `lines`: of `KafkaRelease describe`. Raises TableError."""
    of_role: dict[str, dict[str, tuple[int, int]]] = {"controller": {}, "broker": {}}
    levels, defaults, depends, keys, moves = {}, {}, {}, set(), False
    since = {"registers": None, "unregisters": None, "first": 0}
    for kind, *fields in lines:
        if kind == "level":
            levels[int(fields[0])] = (fields[1], fields[2] == "true")
        elif kind == "range":
            of_role[fields[0]][fields[1]] = (int(fields[2]), int(fields[3]))
        elif kind == "default":
            defaults.setdefault(fields[0], {})[int(fields[1])] = int(fields[2])
        elif kind == "depends":
            depends.setdefault(fields[0], {}).setdefault(int(fields[1]), {})[fields[2]] = int(fields[3])
        elif kind in since:
            since[kind] = int(fields[0])
        elif kind == "moves":
            moves = fields[0] == "true"
        elif kind == "key":
            keys.add(fields[0])
        else:
            raise TableError(f"Kafka {version}: {kind} is no kind of line")
    if of_role["controller"] != of_role["broker"]:
        raise TableError(f"Kafka {version}: controllers and brokers support other levels: {of_role}")
    if not keys or METADATA_VERSION not in of_role["broker"]:
        raise TableError(f"Kafka {version}: settings or levels are missing")
    number = tuple(int(part) for part in version.split("."))
    first = since.pop("first")
    # from the lowest metadata.version to which a controller goes, it does not go down either
    levels = {level: (name, changed or level <= first) for level, (name, changed) in levels.items()}
    of_levels = of_role["broker"], levels, defaults, depends
    return Described(number, java, zookeeper, *of_levels, moves, **since, keys=frozenset(keys))


def joined(found: Iterable[Described]) -> dict[str, Any]:
    """Return the table of these versions: {name of a constant: value}. Raises TableError."""
    versions = sorted(found, key=lambda release: release.version)
    levels: dict[int, tuple[str, bool]] = {}
    releases: dict[tuple[int, int], dict[str, Any]] = {}
    for release in versions:
        last = release.ranges[METADATA_VERSION][1]
        # levels above are no production levels of this version, and a later one may change them
        _agree(release, levels, {level: named for level, named in release.levels.items() if level <= last})
        described = {
            "java": release.java,
            "zookeeper": release.zookeeper,
            "moves_voters": release.moves,
            "features": {
                feature: (*levels_of, _default(release, feature))
                for feature, levels_of in sorted(release.ranges.items())
            },
        }
        known = releases.setdefault(release.release, {"builds": (), **described})
        if {name: known[name] for name in described} != described:
            raise TableError(f"{_written(release.version)} differs from {known['builds']}: {described} and {known}")
        known["builds"] = (*known["builds"], _written(release.version))
        known["depends"] = {  # of the newest build: 3.9.0 has one that 3.9.2 has not
            (feature, level): on
            for feature, (_lowest, highest) in sorted(release.ranges.items())
            for level, on in release.depends.get(feature, {}).items()
            if level <= highest
        }
    return {
        "RELEASES": releases,
        "LEVELS": {level: name for level, (name, _changed) in sorted(levels.items())},
        "ONE_WAY": tuple(level for level, (_name, one_way) in sorted(levels.items()) if one_way),
        "REGISTERS_CONTROLLERS": versions[-1].registers,
        "UNREGISTERS_CONTROLLERS": versions[-1].unregisters,
        "KEYS": changed_keys(versions),
    }


def changed_keys(versions: Iterable[Described]) -> dict[str, tuple[tuple[str, str], ...]]:
    """Return the settings that not every version has, {key: ((first version with it, first one without), ...)}; the
    first version is '' where the oldest has it, the other one '' where the newest has it."""
    return spans([(_written(release.version), release.keys) for release in versions])


def spans(builds: Iterable[tuple[str, Iterable[str]]]) -> dict[str, tuple[tuple[str, str], ...]]:
    """Return the names that not every build has, as `changed_keys`; `builds`: (version, names), the oldest first."""
    ordered = [(version, frozenset(names)) for version, names in builds]
    found = {}
    for name in sorted(frozenset().union(*(names for _version, names in ordered))):
        of_name, since = [], None
        for index, (version, names) in enumerate(ordered):
            if name in names and since is None:
                since = version if index else ""
            elif name not in names and since is not None:
                of_name.append((since, version))
                since = None
        if since is not None:
            of_name.append((since, ""))
        if of_name != [("", "")]:
            found[name] = tuple(of_name)
    return found


def module(table: Mapping[str, Any]) -> str:
    """Return the text of the collection's module."""
    parts = [_HEAD]
    for name, value in table.items():
        text = pprint.pformat(value, width=118 - len(name), sort_dicts=name != "RELEASES")
        meaning = "".join(f"# {line}\n" for line in _MEANINGS[name].strip().splitlines())
        parts.append(f"{meaning}{name}: {_TYPES[name]} = {text}\n")
    return "\n".join(parts)


def _agree(described: Described, known: dict, more: Mapping) -> None:
    """Add to what is known, or raise TableError where it differs."""
    for key, value in more.items():
        if known.setdefault(key, value) != value:
            raise TableError(f"{_written(described.version)}: {key} is {value}, and {known[key]} before")


def _default(described: Described, feature: str) -> int:
    """Return the level of a feature that `kafka-storage format` gives a new cluster."""
    lowest, highest = described.ranges[feature]
    if feature == METADATA_VERSION:
        return highest
    if feature == KRAFT_VERSION:
        return lowest  # of static voters; a dynamic quorum is formatted with the highest
    last = described.ranges[METADATA_VERSION][1]
    levels = described.defaults[feature].items()
    return max((level for level, since in levels if since <= last and level <= highest), default=lowest)


def _written(version: tuple[int, ...]) -> str:
    return ".".join(map(str, version))


_HEAD = '''# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Levels and settings of each release of Kafka, as the classes in its jars have them. Data; releases.releases reads it.

Written by `python -m tools.kafka_releases`. tests/integration/test_kafka_releases.py compares it with Kafka's classes.
"""

from __future__ import annotations

from typing import Any, Dict, Tuple
'''
_TYPES = {
    "RELEASES": "Dict[Tuple[int, int], Dict[str, Any]]",
    "LEVELS": "Dict[int, str]",
    "ONE_WAY": "Tuple[int, ...]",
    "REGISTERS_CONTROLLERS": "int",
    "UNREGISTERS_CONTROLLERS": "int",
    "KEYS": "Dict[str, Tuple[Tuple[str, str], ...]]",
}
_MEANINGS = {
    "RELEASES": """
Each release. `builds`: those that were read; `java`: that a broker needs; `zookeeper`: whether it has ZooKeeper;
`moves_voters`: whether a change of kraft.version makes static voters dynamic; `features`: of each its lowest and
highest level, and that of a new cluster with static voters; `depends`: {(feature, level): {feature: lowest level}}.
""",
    "LEVELS": """Names of the levels of metadata.version, MetadataVersion.version().""",
    "ONE_WAY": """
Levels of metadata.version from which Kafka does not go down: didMetadataChange and MINIMUM_BOOTSTRAP_VERSION.
""",
    "REGISTERS_CONTROLLERS": """The metadata.version from which controllers register (KIP-919).""",
    "UNREGISTERS_CONTROLLERS": """The metadata.version from which a controller can be unregistered.""",
    "KEYS": """
Settings that not every build has, {key: ((first build with it, first one without), ...)}; '' where the oldest or the
newest build has it.
""",
}
