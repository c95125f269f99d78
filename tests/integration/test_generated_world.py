# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The files of a generated cluster are those of Kafka and ZooKeeper: their own loaders read the content from them."""

from __future__ import annotations

import decimal
import os
import pathlib
import subprocess

import pytest
from ansible_collections.quorumshift.kafka.plugins.module_utils.formats import enums
from ansible_collections.quorumshift.kafka.plugins.module_utils.formats.metadata import metadata_image, metadata_log

from tests.benchmarks import generate_world
from tests.integration import servers

pytestmark = pytest.mark.real


@pytest.fixture(scope="module")
def home():
    with servers.workdir("generated_world") as path:
        yield path


@pytest.fixture(scope="module")
def generated(home):
    """Return the directory of a cluster of 10,000 partitions with planted differences."""
    generate_world.generate(home / "world", 200, 50, planted=60)
    return home / "world"


def log_files(directory):
    found = metadata_log.list_files(str(directory / "metadata_log" / "__cluster_metadata-0"))
    return found.checkpoints[0], found.segments[0]


def run(command):
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def lines(image):
    """Return our image of a log in the form of LoadMetadataLog.java."""
    for topic_id, (name, _offset) in image.topics.items():
        yield f"topic {name} {topic_id}"
        for number, values in image.partitions[topic_id].items():
            of = dict(zip(metadata_image.PARTITION_FIELDS, values))
            epochs = f"{of['leader']} {of['leaderEpoch']} {of['partitionEpoch']}"
            yield f"partition {name} {number} {of['replicas']} {of['isr']} {epochs}"
    for (code, resource), configs in image.configs.items():
        for name, (value, _offset) in configs.items():
            yield f"config {'TOPIC' if code == metadata_image.TOPIC_RESOURCE else 'BROKER'} {resource} {name} {value}"
    for fields, _offset in image.acls.values():
        kind, pattern = enums.RESOURCE_TYPES[fields["resourceType"]], enums.PATTERN_TYPES[fields["patternType"]]
        operation = enums.OPERATIONS[fields["operation"]]
        yield f"acl {kind} {pattern} {fields['resourceName']} {fields['principal']} {operation}"
    for user, code in image.scram:
        yield f"scram {user} {enums.SCRAM_MECHANISMS[code]}"
    for (entity, key), (value, _offset) in image.quotas.items():
        names = ", ".join(f"{kind}={'null' if name is None else name}" for kind, name in entity)
        yield f"quota {{{names}}} {key} {decimal.Decimal(value):f}"
    for token in image.delegation_tokens:
        yield f"token {token}"
    for number, broker in image.brokers.items():
        yield f"broker {number} {str(broker['fenced']).lower()}"
    yield f"producer_ids {image.producer_ids[0]}"


def test_kafkas_loader_has_the_same_image(generated, home):
    checkpoint, segment = log_files(generated)
    classes = servers.compile_java(pathlib.Path(__file__).with_name("LoadMetadataLog.java"), home)
    command = servers.java()
    command[command.index("-cp") + 1] += f"{os.pathsep}{classes}"
    printed = run([*command, "LoadMetadataLog", checkpoint.path, segment.path, str(checkpoint.offset)])
    directory = os.path.dirname(segment.path)
    image = metadata_image.Image.from_records(metadata_log.read_records(directory, types=metadata_image.TYPES))
    with metadata_log.open_log(directory) as log:
        extent = metadata_log.scan_log(log)
    ours = [*lines(image), f"offset {extent.end_offset - 1}"]
    theirs = printed.splitlines()
    assert len(ours) > 10_000
    assert set(ours) ^ set(theirs) == set()
    assert len(ours) == len(theirs)
    assert [transaction.outcome for transaction in extent.transactions] == ["committed", "aborted"]


def test_kafkas_dump_reads_every_record(generated):
    for file in log_files(generated):
        printed = run(
            [*servers.java(), "kafka.tools.DumpLogSegments", "--cluster-metadata-decoder", "--files", file.path]
        )
        records = [record for record in metadata_log.read_file(file.path) if not record.is_control]
        assert printed.count(" payload: {") == len(records) > 0
        assert "isvalid: false" not in printed
