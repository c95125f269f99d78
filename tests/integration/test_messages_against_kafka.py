# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Each message in each version as Kafka's own classes have it: fields, defaults, bytes, and what a version rejects.

QUORUMSHIFT_GENERATED_MESSAGES is the number of random messages of each version, QUORUMSHIFT_SEED their seed: a failure
prints both. With QUORUMSHIFT_ALL_RELEASES, as `make test-releases` has it, the definitions of every release of Kafka
are compared, too.
"""

from __future__ import annotations

import json
import os
import random
import re

import pytest
from ansible_collections.quorumshift.kafka.plugins.module_utils.core.releases import kafka_releases
from ansible_collections.quorumshift.kafka.plugins.module_utils.formats.messages import messages
from ansible_collections.quorumshift.kafka.plugins.module_utils.formats.messages.definitions import DEFINITIONS
from ansible_collections.quorumshift.kafka.plugins.module_utils.formats.requests import apis

from tests.integration import kafka_messages, servers
from tools import kafka_messages as sources
from tools.kafka_releases import jars

pytestmark = pytest.mark.real
MESSAGES = int(os.environ.get("QUORUMSHIFT_GENERATED_MESSAGES", "2"))
SEED = int(os.environ.get("QUORUMSHIFT_SEED") or random.SystemRandom().randrange(1 << 32))
RELEASE = "3.9.2"
OF_RELEASE = {path.stem: path for path in sources.sources() if path.parent.name == RELEASE}
NAMES = [sources.parsed(path.read_text())["name"] for path in OF_RELEASE.values()]
OLDER = ["2.4.1", "2.5.1", "2.6.3", "2.7.2", "2.8.2", "3.0.2", "3.1.2", "3.2.3", "3.3.2"]
"""The newest build of each release before those of the table: brokers that are restarted, reassigned and upgraded."""
SINCE = {
    **{"DescribeClientQuotas": (2, 6), "DescribeUserScramCredentials": (2, 7), "DescribeQuorum": (2, 7)},
    **{"DescribeCluster": (2, 8), "UnregisterBroker": (2, 8), "ListTransactions": (3, 0)},
    **{"DescribeTransactions": (3, 0), "Fetch": (3, 1), "UpdateFeatures": (3, 3)},
    **{"ListClientMetricsResources": (3, 7), "AddRaftVoter": (3, 9), "RemoveRaftVoter": (3, 9)},
    "UnregisterController": (4, 4),
}
"""The release that brought an API, or the version of it that is used."""
RENAMED = {"ListOffset": "ListOffsets", "ListConfigResources": "ListClientMetricsResources"}  # before 2.8; from 4.1 on
RENAMED_FIELDS = {"ConfigResources": "ClientMetricsResources"}  # with their request, in the same place
BUILDS = [build for release in kafka_releases.RELEASES.values() for build in release["builds"]]
ALL_RELEASES = bool(os.environ.get("QUORUMSHIFT_ALL_RELEASES"))


def versions(name, definition=None):
    first, last = messages.version_range((definition or messages.definition(name))["validVersions"])
    return range(first, last + 1)


@pytest.fixture(scope="module")
def kafka():
    with servers.workdir("messages_against_kafka") as home, kafka_messages.kafka(home, servers.kafka_libs()) as jvm:
        yield jvm


def test_the_definitions_are_those_of_the_jars():
    of_jars = sources.of_jars(RELEASE, servers.kafka_libs())
    assert {name: path.read_text() for name, path in OF_RELEASE.items()} == {
        name: of_jars[f"{name}.json"] for name in OF_RELEASE
    }
    records = {name[: -len(".json")] for name in sources.of_jars(RELEASE, servers.kafka_libs(), ("metadata",))}
    assert records <= OF_RELEASE.keys()


@pytest.mark.parametrize("name", NAMES)
def test_a_message_is_kafkas(kafka, name):
    (new,) = kafka.ask("new", name)
    for version in versions(name):
        fields = messages.fields_of(name, version)
        assert kafka_messages.as_json({field.name: field.default for field in fields}) == json.loads(new), version
        for number in range(MESSAGES):
            chosen = random.Random(f"{SEED}/{name}/{version}/{number}")
            values = kafka_messages.values(chosen, fields)
            _as_kafka(kafka, name, version, values, f"{name} v{version}, message {number}, QUORUMSHIFT_SEED={SEED}")


def _as_kafka(kafka, name, version, values, which):
    """Check that both sides write these values as the same bytes, and read them as the same fields."""
    (written,) = kafka.ask("write", name, version, version, kafka_messages.text(values))
    data = messages.encode(name, version, values)
    assert data.hex() == written, which
    decoded = messages.decode(name, version, data)
    read, again = kafka.ask("read", name, version, written)
    assert kafka_messages.as_json(decoded) == json.loads(read), which
    assert again == written, which
    assert messages.encode(name, version, decoded) == data, which
    view = messages.decode(name, version, memoryview(data))
    assert messages.encode(name, version, view) == data, which
    if messages.is_flexible(name, version):
        tagged = {field.name for field in messages.fields_of(name, version) if field.tag is not None}
        _with_unknown_tag(
            kafka, name, version, {key: value for key, value in values.items() if key not in tagged}, which
        )


def _with_unknown_tag(kafka, name, version, values, which):
    """Check that a tagged field of a later version is skipped."""
    data = messages.encode(name, version, values)
    assert data[-1] == 0, which  # the number of tagged fields
    longer = data[:-1] + b"\x01" + b"\xd0\x0f" + b"\x03abc"
    decoded = messages.decode(name, version, longer)
    assert decoded == messages.decode(name, version, data), which
    read, again = kafka.ask("read", name, version, longer.hex())
    assert kafka_messages.as_json(decoded) == json.loads(read), which
    assert again == longer.hex(), which


@pytest.mark.parametrize("name", NAMES)
def test_an_older_version_rejects_the_same_values(kafka, name):
    """What a version does not have is left out where Kafka ignores it or it has its default, and else an error."""
    latest = versions(name)[-1]
    for number in range(MESSAGES * 3):
        chosen = random.Random(f"{SEED}/older/{name}/{number}")
        values = kafka_messages.values(chosen, messages.fields_of(name, latest))
        for version in versions(name)[:-1]:
            which = f"{name} v{version}, message {number} of v{latest}, QUORUMSHIFT_SEED={SEED}"
            try:
                (written,) = kafka.ask("write", name, latest, version, kafka_messages.text(values))
            except kafka_messages.Rejected as error:
                with pytest.raises(messages.MessageError):
                    messages.encode(name, version, values)
                    pytest.fail(f"{which}: Kafka rejects it: {error}")
            else:
                assert messages.encode(name, version, values).hex() == written, which


@pytest.mark.parametrize("name", NAMES)
def test_every_cut_of_a_message_is_noticed(name):
    for version in versions(name):
        chosen = random.Random(f"{SEED}/cut/{name}/{version}")
        data = messages.encode(name, version, kafka_messages.values(chosen, messages.fields_of(name, version)))
        for end in {chosen.randrange(len(data)) for _cut in range(20)} if data else ():
            with pytest.raises(messages.MessageError, match=rf"^{name} v{version}: "):
                messages.decode(name, version, data[:end])


@pytest.mark.skipif(not ALL_RELEASES, reason="make test-releases compares every release")
@pytest.mark.parametrize("build", BUILDS)
def test_other_releases_have_the_same_fields(build):
    """In each version that both know, a release's message has the encoding that we read and write."""
    theirs = _messages_of(build)
    compared, differ = 0, set()
    for name in DEFINITIONS.keys() & theirs.keys():
        for version in {*versions(name)} & {*versions(name, theirs[name])}:
            ours, other = (
                _encoding(messages.fields_of(name, version)),
                _encoding(messages.resolved(theirs[name], version)),
            )
            tags = ours[1].keys() & other[1].keys()  # a tagged field that one side does not know is skipped
            if ours[0] != other[0] or any(ours[1][tag] != other[1][tag] for tag in tags):
                differ.add(name)
            compared += 1
    assert compared > 150
    # changed without a new version, before KRaft clusters had tokens (3.6) and SCRAM (3.5)
    release = tuple(map(int, build.split(".")[:2]))
    changed = {"DelegationTokenRecord": (3, 6), "UserScramCredentialRecord": (3, 5)}
    assert differ == {name for name, until in changed.items() if release < until}


def _messages_of(build):
    """Return a release's definitions of our messages, by our names of them."""
    of_jars = sources.of_jars(build, jars.resolved(build))
    for theirs, ours in RENAMED.items():
        of_jars = {re.sub(f"^{theirs}(?=Re[qs])", ours, name): text for name, text in of_jars.items()}
    names = [name for name in DEFINITIONS if f"{name}.json" in of_jars]
    return {name: {"flexibleVersions": "none", **sources.parsed(of_jars[f"{name}.json"])} for name in names}


@pytest.mark.skipif(not ALL_RELEASES, reason="make test-releases asks every release")
@pytest.mark.parametrize("build", [*OLDER, *BUILDS])
def test_a_version_of_the_table_is_known_to_each_release(build):
    """Each release has the encoding that we read and write, in each version of the table that it knows."""
    theirs, unknown = _messages_of(build), set()
    for api in apis.ALL:
        known = set()
        for kind in ("Request", "Response"):
            name = f"{api.name}{kind}"
            known = {*versions(name, theirs[name])} if name in theirs else set()
            known &= {*range(api.oldest, api.newest + 1)}
            for version in known:
                ours, other = messages.fields_of(name, version), messages.resolved(theirs[name], version)
                assert _layout(ours) == _layout(other), (name, version)
        if not known:
            unknown.add(api.name)
    release = tuple(map(int, build.split(".")[:2]))
    assert unknown == {name for name, since in SINCE.items() if release < since}
    assert not unknown & {api.name for api in apis.OF_2_4}


def _layout(fields):
    """Return the encoding of fields without a tag, whatever their names are: some were renamed."""
    return [
        (field.type, field.nullable, field.flexible, _layout(field.fields))
        for field in fields
        if field.present and field.tag is None
    ]


def _encoding(fields):
    """Return what decides the encoding of fields: those without tag in their order, and those with one."""
    shown = [
        (
            field.tag,
            (
                RENAMED_FIELDS.get(field.name, field.name).lower(),
                field.type,
                field.nullable,
                field.flexible,
                _encoding(field.fields),
            ),
        )
        for field in fields
        if field.present
    ]
    return [each for tag, each in shown if tag is None], {tag: each for tag, each in shown if tag is not None}


@pytest.mark.skipif(not ALL_RELEASES, reason="make test-releases resolves the release")
def test_the_definitions_of_later_releases_are_those_of_their_jars():
    later = [path for path in sources.sources() if path.parent.name != RELEASE]
    assert later
    for path in later:
        release = path.parent.name
        assert sources.of_jars(release, jars.resolved(release))[path.name] == path.read_text()
