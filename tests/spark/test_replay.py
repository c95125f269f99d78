# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The replay of partition records in Spark against formats.metadata.metadata_image, which replays them one by one."""

from __future__ import annotations

import random

import pyarrow as pa
import pytest
from ansible_collections.quorumshift.kafka.plugins.module_utils.formats.metadata.metadata_image import (
    PARTITION_FIELDS,
    TYPES,
    Image,
)
from ansible_collections.quorumshift.kafka.plugins.module_utils.formats.metadata.metadata_log import read_records
from quorumshift_spark import columns, replay
from quorumshift_spark import normal_form as form
from quorumshift_spark.views import Statement, metadata_log, source
from quorumshift_spark.views.metadata_log import LogSource, MetadataLogView

from tests.spark.parity import local_spark
from tests.unit.formats import metadata_batches as made
from tests.unit.spark.columns import encoding
from tests.unit.spark.columns.encoding import record

pytestmark = pytest.mark.real
DIGESTS = form.Digests(b"a key of the cluster, 32 bytes..")


@pytest.fixture(scope="module")
def spark():
    with local_spark() as session:
        yield session


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
    with open(directory / f"{0:020d}.log", "wb") as log:
        for values in batches:
            log.write(made.batch(offset, values))
            offset += len(values)
    return offset


@pytest.fixture(autouse=True)
def no_log_is_small(monkeypatch):
    """Spark replays these logs, though one task could."""
    monkeypatch.setattr(metadata_log, "_SMALL", 0)


def replayed(spark, directory, end):
    """Return (rows of partitions, {view: why}) of the pipeline."""
    view = MetadataLogView(LogSource(end, directory=str(directory)), DIGESTS, tasks=3)
    batches = []
    for part in view.parts():
        for item in view.read(part):
            if isinstance(item, pa.RecordBatch):
                batches.append(source._typed(view.name, replay.RECORD, item))
            elif not isinstance(item, Statement):
                batches.append(source._batch([(view.name, *source._row(item))], [None]))
    table = pa.Table.from_batches(batches).combine_chunks()  # createDataFrame loses rows of a table with many chunks
    result = replay.replay(spark.createDataFrame(table))
    rows = result.partitions.collect()
    assert result.counts == {"metadata_log": len(rows)}
    return rows, result.rejected


@pytest.mark.parametrize("seed", range(8))
def test_partitions_are_those_of_the_image(spark, tmp_path, seed):
    end = write(tmp_path / "log", history(random.Random(seed), 40))
    rows, rejected = replayed(spark, tmp_path / "log", end)
    image = Image.from_records(read_records(str(tmp_path / "log"), types=TYPES))
    names = dict(zip(("replicas", "adding", "removing", "leader", "leader_epoch", "isr"), PARTITION_FIELDS))
    names.update(recovery_state="leaderRecoveryState", partition_epoch="partitionEpoch", directories="directories")
    found = {
        (row.topic_id, row.partition): [*(getattr(row, name) for name in names), row.topic, row.changed] for row in rows
    }
    expected = {}
    for topic_id, partitions in image.partitions.items():
        for number, values in partitions.items():
            fields = dict(zip(PARTITION_FIELDS, values))
            for name in ("addingReplicas", "removingReplicas", "isr"):
                fields[name] = sorted(fields[name])
            of_topic = image.topics[topic_id][0]
            expected[(topic_id, number)] = [*(fields[name] for name in names.values()), of_topic, values[-1]]
    assert len(found) > 50 and rejected == {}
    assert found == expected


def test_a_small_log_is_replayed_to_the_same_rows_by_the_task_that_reads_it(spark, tmp_path, monkeypatch):
    end = write(tmp_path / "log", history(random.Random(9), 40))
    expected, _rejected = replayed(spark, tmp_path / "log", end)
    monkeypatch.undo()
    view = MetadataLogView(LogSource(end, directory=str(tmp_path / "log")), DIGESTS)
    (part,) = view.parts()
    (read,) = (item for item in view.read(part) if isinstance(item, pa.RecordBatch))
    names = ["changed" if name == "at" else name for name in columns.PARTITIONS.names]
    found = [tuple(row.values()) for row in read.select(columns.PARTITIONS.names).to_pylist()]
    assert read.schema == columns.PARTITIONS and len(found) > 50
    assert sorted(found, key=str) == sorted((tuple(row[name] for name in names) for row in expected), key=str)


TOPIC, OTHER = "AAAAAAAAAAAAAAAAAAAAAQ", "AAAAAAAAAAAAAAAAAAAAAg"


@pytest.mark.parametrize(
    ("last", "why"),
    [
        (changed(random.Random(1), OTHER, 0), f"topic {OTHER}, which does not exist"),
        (new(random.Random(1), OTHER, 0), f"topic {OTHER}, which does not exist"),
        (changed(random.Random(1), TOPIC, 7), f"partition 7 of topic {TOPIC}, which does not exist"),
    ],
)
def test_a_record_that_kafka_would_reject_is_named(spark, tmp_path, last, why):
    batches = [[topic("t", TOPIC), new(random.Random(1), TOPIC, 0)], [last]]
    _rows, rejected = replayed(spark, tmp_path / "log", write(tmp_path / "log", batches))
    assert rejected == {"metadata_log": f"a record at or after offset 2 is of {why}"}


def test_a_record_of_a_removed_topic_is_named(spark, tmp_path):
    batches = [
        [topic("t", TOPIC), new(random.Random(1), TOPIC, 0)],
        [record("REMOVE_TOPIC_RECORD", topicId=TOPIC), changed(random.Random(1), TOPIC, 0)],
    ]
    _rows, rejected = replayed(spark, tmp_path / "log", write(tmp_path / "log", batches))
    assert rejected == {"metadata_log": f"a record at or after offset 2 is of topic {TOPIC}, which was removed before"}


def test_the_schema_of_columns_is_that_of_rows():
    assert {field.name for field in columns.PARTITIONS} - {"at"} <= set(source.ROWS.names)
