# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The table of releases, and the rules over it, against the classes in Kafka's own jars.

These are the builds that the testbed uses. With QUORUMSHIFT_ALL_RELEASES, as `make test-releases` has it, it is every
build of the table, which Maven resolves.
"""

from __future__ import annotations

import itertools
import os

import pytest
from ansible_collections.quorumshift.kafka.plugins.module_utils.core.releases import accepted as accepts
from ansible_collections.quorumshift.kafka.plugins.module_utils.core.releases import (
    features,
    kafka_releases,
    kafka_settings,
    levels,
    releases,
)

from tests.integration import servers
from tools.kafka_releases import jars, settings, table

MV, KRAFT = features.METADATA_VERSION, features.KRAFT_VERSION
OF_TESTBED = {"3.7.2": servers.libs_of, "3.9.2": lambda _build: servers.kafka_libs(), "4.1.1": servers.libs_of}
ALL = [build for release in kafka_releases.RELEASES.values() for build in release["builds"]]
BUILDS = ALL if os.environ.get("QUORUMSHIFT_ALL_RELEASES") else list(OF_TESTBED)


@pytest.fixture(scope="module", params=BUILDS)
def build(request):
    return request.param


@pytest.fixture(scope="module")
def libs(build):
    return OF_TESTBED.get(build, jars.resolved)(build)


@pytest.fixture(scope="module")
def described(build, libs):
    return table.parsed(build, *jars.built_for(libs), jars.said(build, libs, "describe"))


@pytest.fixture(scope="module")
def decided(build, libs):
    """{(what, *fields): whether Kafka's FeatureControlManager does it}."""
    return {tuple(line[:-1]): line[-1] == "yes" for line in jars.said(build, libs, "behave")}


def test_the_table_has_what_the_classes_say(described):
    mine = kafka_releases.RELEASES[described.release]
    assert {name: level_range[:2] for name, level_range in mine["features"].items()} == described.ranges
    assert (mine["java"], mine["zookeeper"], mine["moves_voters"]) == (
        described.java,
        described.zookeeper,
        described.moves,
    )
    last = described.ranges[MV][1]
    names = {level: name for level, (name, _one_way) in described.levels.items() if level <= last}
    assert {level: kafka_releases.LEVELS[level] for level in names} == names
    assert {level for level in kafka_releases.ONE_WAY if level in names} == {
        level for level in names if described.levels[level][1]
    }
    unknown = releases.find_unknown_keys(".".join(map(str, described.version)), kafka_releases.KEYS)
    assert set(kafka_releases.KEYS) - unknown == set(kafka_releases.KEYS) & described.keys
    assert not described.registers or described.registers == kafka_releases.REGISTERS_CONTROLLERS


def test_the_table_has_what_the_classes_accept(build, libs):
    said = settings.parsed(build, jars.said(build, libs, program=jars.SETTINGS))
    for of, rules in (("broker", kafka_settings.RULES), ("topic", kafka_settings.TOPIC_RULES)):
        known = {key: releases.value_in(build, rules[key]) for key in rules.keys() & said.rules[of].keys()}
        assert known == {key: said.rules[of][key] for key in known} and (known or of == "topic")
    unknown = accepts.find_unknown_topic_keys(build, kafka_settings.TOPIC_KEYS)
    assert set(kafka_settings.TOPIC_KEYS) - unknown == set(kafka_settings.TOPIC_KEYS) & said.rules["topic"].keys()
    assert {name for name in kafka_settings.CLASSES if accepts.has_class(build, name)} == {
        name for name in kafka_settings.CLASSES if name in said.classes
    }
    oldest = {name: accepts.oldest_request(build, name) for name in kafka_settings.REQUESTS.keys() & said.requests}
    assert oldest == {name: said.requests[name] for name in oldest}
    assert accepts.needs_allowed_urls(build) == said.needs_urls


def test_a_level_is_refused_exactly_where_a_controller_does_not_replay_it(build, described, decided):
    release, last = described.release, described.ranges[MV][1]
    tried = 0
    for (what, *fields), loads in decided.items():
        if what != "loads":
            continue
        feature, level = fields[0], int(fields[1])
        refused = levels.refusals(build, {release}, {MV: last, feature: level})
        assert (not refused) == loads, (feature, level, refused)
        tried += 1
    assert tried >= 48 * 2


def test_a_level_goes_down_exactly_where_a_controller_accepts_it(described, decided):
    lowest, last = described.ranges[MV]
    pairs = [(high, low) for low, high in itertools.combinations(range(lowest, last + 1), 2)]
    for high, low in pairs:
        for how in ("lowers", "forced"):
            accepted = decided[(how, str(high), str(low))]
            assert accepted == levels.can_go_down(MV, high, low), (how, high, low)
    for (what, *fields), accepted in decided.items():
        if what == "drops":
            assert accepted == levels.can_go_down(fields[0], int(fields[1]), int(fields[1]) - 1), fields
    assert sum(what == "lowers" for what, *_fields in decided) == len(pairs)


def test_a_level_is_accepted_exactly_where_what_it_needs_is_there(described, decided):
    needs = kafka_releases.RELEASES[described.release]["depends"]
    for (what, *fields), accepted in decided.items():
        if what == "raises":
            feature, level, at = fields[0], int(fields[1]), int(fields[2])
            assert accepted == (at >= needs.get((feature, level), {}).get(MV, 0)), fields


def test_a_build_for_a_later_java_is_reported(build, libs, monkeypatch):
    monkeypatch.setattr(jars, "running_java", lambda: 7)
    with pytest.raises(jars.ReleaseError, match=r"is built for Java (8|17), and this is Java 7. Set JAVA_HOME"):
        jars.said(build, libs, "describe")
