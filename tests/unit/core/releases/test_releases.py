# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The release of a build, and the settings that it knows."""

from __future__ import annotations

import pytest
from ansible_collections.quorumshift.kafka.plugins.module_utils.core.releases import kafka_releases, releases


@pytest.mark.parametrize(
    ("version", "release"),
    [
        ("3.9.2", (3, 9)),
        ("7.2.9-ccs", (3, 2)),
        ("7.9.1-ccs", (3, 9)),
        ("8.0.0-ccs", (4, 0)),
        ("8.3.0-ccs", (4, 3)),
        ("8.4.1-ccs", (4, 4)),
        ("8.5.0-ccs", None),
        ("7.9.1-ce", None),
        ("4.4.0-rc1", None),
    ],
)
def test_the_release_of_a_build(version, release):
    assert releases.parse_release(version) == release


def test_java_and_zookeeper_of_each_release():
    assert releases.FIRST_WITHOUT_ZOOKEEPER == (4, 0)
    assert [releases.required_java(release) for release in ((3, 3), (3, 9), (4, 0), (4, 4), (9, 9))] == [
        8,
        8,
        17,
        17,
        None,
    ]


@pytest.mark.parametrize(
    ("version", "key", "unknown"),
    [
        ("3.9.2", "zookeeper.connect", False),
        ("4.0.0", "zookeeper.connect", True),
        ("3.9.1", "alter.config.policy.kraft.compatibility.enable", True),
        ("3.9.2", "alter.config.policy.kraft.compatibility.enable", False),
        ("3.9.3", "alter.config.policy.kraft.compatibility.enable", False),
        ("7.9.0-ccs", "alter.config.policy.kraft.compatibility.enable", False),
        ("4.2.1", "max.decompressed.message.bytes", True),
        ("4.2.2", "max.decompressed.message.bytes", False),
        ("4.3.1", "max.decompressed.message.bytes", True),
        ("4.3.2", "max.decompressed.message.bytes", False),
        ("4.4.0", "max.decompressed.message.bytes", False),
        ("4.4.1", "group.share.enable", True),
        ("5.0.0", "log.dirs", False),
        ("3.8.1", "group.share.enable", True),
        ("4.1.1", "a.key.of.a.plugin", False),
    ],
)
def test_settings_that_a_build_does_not_know(version, key, unknown):
    assert releases.find_unknown_keys(version, [key]) == ({key} if unknown else set())


def test_the_table_has_each_level_of_each_release_once():
    found = kafka_releases.RELEASES
    highest = [row["features"]["metadata.version"][1] for row in found.values()]
    assert list(found) == sorted(found) and highest == sorted(set(highest))
    assert list(kafka_releases.LEVELS) == list(range(1, highest[-1] + 1))
    for release, row in found.items():
        name = kafka_releases.LEVELS[row["features"]["metadata.version"][1]]
        assert name.startswith(releases.format_release(release) + "-IV")
        assert all(low <= new <= high for low, high, new in row["features"].values())
