# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The replay of all partition records together against formats.metadata.metadata_image, which replays one by one."""

from __future__ import annotations

import pathlib
import random
import tarfile

import pyarrow as pa
import pytest
from ansible_collections.quorumshift.kafka.plugins.module_utils.formats.metadata import metadata_summary
from ansible_collections.quorumshift.kafka.plugins.module_utils.formats.metadata.metadata_image import (
    TYPES,
    Image,
    InconsistentLog,
)
from ansible_collections.quorumshift.kafka.plugins.module_utils.formats.metadata.metadata_log import read_records
from quorumshift_spark import columns
from quorumshift_spark import normal_form as form
from quorumshift_spark.columns import log
from quorumshift_spark.views import ViewError, metadata_log, source
from quorumshift_spark.views.metadata_log import LogSource, MetadataLogView

from tests.unit.formats import metadata_batches as made
from tests.unit.spark.columns import encoding
from tests.unit.spark.columns.encoding import record

TOPIC, OTHER = "AAAAAAAAAAAAAAAAAAAAAQ", "AAAAAAAAAAAAAAAAAAAAAg"
DIGESTS = form.Digests(b"a key of the cluster, 32 bytes..")


def history(random, batches):
    """Return batches of record values that Kafka accepts: topics come, change and go; a transaction is aborted."""
    alive, made_of = {}, []
    for number in range(batches):
        values = []
        for _record in range(random.randint(1, 30)):
            what = random.random()
            if what < 0.2 or not alive:
                topic_id = encoding.uuid(random)
                count = random.randint(1, 6)
                alive[topic_id] = count
                values.append(topic(f"t.{number}_{len(made_of)}_{len(values)}", topic_id))
                values += [new(random, topic_id, partition) for partition in range(count)]
            elif what < 0.25:
                topic_id = random.choice(sorted(alive))
                del alive[topic_id]
                values.append(record("REMOVE_TOPIC_RECORD", topicId=topic_id))
            else:
                topic_id = random.choice(sorted(alive))
                values.append(changed(random, topic_id, random.randrange(alive[topic_id])))
        made_of.append(values)
        if number == batches // 2:
            aborted = [changed(random, topic_id, 0) for topic_id in sorted(alive)[:3]]
            made_of.append([made.BEGIN, *aborted, made.ABORT])
    return made_of


def topic(name, topic_id):
    return record("TOPIC_RECORD", name=name, topicId=topic_id)


def new(random, topic_id, partition):
    values = {
        "partitionId": partition,
        "topicId": topic_id,
        "replicas": encoding.ids(random, 3),
        "isr": encoding.ids(random, 3),
        "leader": random.randint(-1, 9),
        "leaderEpoch": random.randint(0, 100),
        "partitionEpoch": random.randint(0, 100),
        "addingReplicas": random.choice([[], [3, 1]]),
    }
    values["replicas"] = [*dict.fromkeys(values["replicas"])]
    version = random.randint(0, 2)
    if version:
        values["directories"] = random.choice([[], directories(random, values["replicas"])])
    return record("PARTITION_RECORD", version, **values)


def directories(random, replicas):
    return [encoding.uuid(random) for _replica in replicas]


def changed(random, topic_id, partition):
    values = {
        "isr": encoding.ids(random, 3),
        "leader": random.randint(-1, 9),
        "replicas": encoding.ids(random, 3),
        "removingReplicas": [2],
        "addingReplicas": [],
        "leaderRecoveryState": random.randint(0, 1),
        "eligibleLeaderReplicas": [4, 1],
    }
    values["replicas"] = [*dict.fromkeys(values["replicas"])]
    some = {name: value for name, value in values.items() if random.random() < 0.3}
    version = random.randint(0, 2)
    if version and random.random() < 0.3:
        some["directories"] = directories(random, some.get("replicas", [1, 2]))
    return record("PARTITION_CHANGE_RECORD", version, partitionId=partition, topicId=topic_id, **some)


def write(directory, batches):
    """Write a log of these batches of values; return the offset of its end."""
    directory.mkdir()
    offset = 0
    with open(directory / f"{0:020d}.log", "wb") as file:
        for values in batches:
            file.write(made.batch(offset, values))
            offset += len(values)
    return offset


def replayed(directory, end):
    """Return the rows of partitions that a task reads."""
    view = MetadataLogView(LogSource(end, directory=str(directory)), DIGESTS)
    rows = []
    for part in view.parts():
        for item in view.read(part):
            if isinstance(item, pa.RecordBatch):
                item.validate(full=True)
                assert item.schema == columns.PARTITIONS
                rows += item.to_pylist()
    return rows


def of_image(directory):
    """Return the same rows, replayed one by one."""
    image = Image.from_records(read_records(str(directory), types=TYPES))
    return [*metadata_log._partitions(image)]


def in_order(rows):
    return sorted(rows, key=lambda row: (row["topic_id"], row["partition"]))


@pytest.mark.parametrize("seed", range(40))
def test_partitions_are_those_of_the_image(tmp_path, seed, monkeypatch):
    """Also where several tasks share a log, and where batches are decoded a few at a time."""
    rng = random.Random(seed)
    monkeypatch.setattr(metadata_log, "_PIECE", rng.choice((128 << 20, 20_000, 3_000)))
    monkeypatch.setattr(log, "_CHUNK", rng.choice((100, 5000, 4 << 20)))
    end = write(tmp_path / "log", history(rng, rng.randint(1, 60)))
    expected = in_order(of_image(tmp_path / "log"))
    assert in_order(replayed(tmp_path / "log", end)) == [
        {name: row[name] for name in columns.PARTITIONS.names} for row in expected
    ]


def test_records_above_a_checkpoint_change_what_it_holds(tmp_path):
    rng = random.Random(1)
    values = [topic("t", TOPIC), *(new(rng, TOPIC, number) for number in range(4))]
    snapshot = [made.batch(0, [made.SNAPSHOT_HEADER]), made.batch(1, values), made.batch(6, [made.SNAPSHOT_FOOTER])]
    (tmp_path / f"{40:020d}-{1:010d}.checkpoint").write_bytes(b"".join(snapshot))
    changes = [changed(rng, TOPIC, number % 3) for number in range(9)]
    (tmp_path / f"{40:020d}.log").write_bytes(made.batch(40, changes))
    rows = in_order(replayed(tmp_path, 49))
    assert rows == in_order(of_image(tmp_path)) and [row["at"] for row in rows] == [46, 47, 48, 39]


def test_the_log_of_a_real_migration(tmp_path):
    """Kafka wrote it. tests/integration compares metadata_image with the image that Kafka itself loads."""
    with tarfile.open(pathlib.Path(__file__).parents[1] / "formats/data/metadata_log.tar.xz") as tar:
        tar.extractall(tmp_path)
    directory = tmp_path / "__cluster_metadata-0"
    expected = in_order(of_image(directory))
    assert in_order(replayed(directory, metadata_summary.summarise(str(directory))["log_end_offset"])) == expected
    assert len(expected) > 10


def test_a_log_without_partitions_has_no_rows(tmp_path):
    assert replayed(tmp_path / "log", write(tmp_path / "log", [[topic("t", TOPIC)]])) == []


@pytest.mark.parametrize(
    "batches",
    [
        [[topic("t", TOPIC), new(random.Random(1), TOPIC, 0)], [changed(random.Random(1), OTHER, 0)]],
        [[topic("t", TOPIC), new(random.Random(1), TOPIC, 0)], [new(random.Random(1), OTHER, 0)]],
        [[topic("t", TOPIC), new(random.Random(1), TOPIC, 0)], [changed(random.Random(1), TOPIC, 7)]],
        [[changed(random.Random(1), TOPIC, 0), topic("t", TOPIC), new(random.Random(1), TOPIC, 0)]],
        [[topic("t", TOPIC), changed(random.Random(1), TOPIC, 0), new(random.Random(1), TOPIC, 0)]],
        [
            [topic("t", TOPIC), new(random.Random(1), TOPIC, 0)],
            [record("REMOVE_TOPIC_RECORD", topicId=TOPIC), changed(random.Random(1), TOPIC, 0)],
        ],
        [
            [topic("t", TOPIC), changed(random.Random(1), TOPIC, 3), new(random.Random(1), TOPIC, 3)],
            [record("REMOVE_TOPIC_RECORD", topicId=TOPIC)],
        ],
    ],
)
def test_a_record_that_kafka_would_reject_is_named(tmp_path, batches):
    """As the image says it."""
    end = write(tmp_path / "log", batches)
    with pytest.raises(InconsistentLog) as expected:
        of_image(tmp_path / "log")
    with pytest.raises(ViewError) as found:
        replayed(tmp_path / "log", end)
    assert str(found.value) == f"metadata_log: {expected.value}. Take the snapshot of the log again (QS-VERIFY-003)"


def test_the_schema_of_columns_is_that_of_rows():
    assert {field.name for field in columns.PARTITIONS} - {"at"} <= set(source.ROWS.names)
