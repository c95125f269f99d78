# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The topics and partitions of a broker's answer to Metadata as Arrow columns.

The answer has no length of a partition, so a loop walks over the lengths of their lists. It takes each length as
one byte. read_structs checks that for all partitions together, in order, and the topics before the first one that is
not so are correct; that topic goes through the generic decoder, as does the answer of a
broker that has no version of this layout.
"""

from __future__ import annotations

import struct
from typing import Any, Dict, Iterator, List, NamedTuple, Tuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from ansible_collections.quorumshift.kafka.plugins.module_utils.formats.messages.messages import fields_of, read_length
from ansible_collections.quorumshift.kafka.plugins.module_utils.formats.requests import apis
from ansible_collections.quorumshift.kafka.plugins.module_utils.formats.requests.broker_requests import MetadataAnswer

from quorumshift_spark.columns import IDS, PARTITIONS, sorted_lists
from quorumshift_spark.columns.structs import ARROW_TYPES, PADDING, Cursor, read_structs

LISTENER_NOT_FOUND = 72

TOPICS = pa.schema([("topic", pa.string()), ("topic_id", pa.string()), ("error_code", pa.int16())])
SERVED_PARTITIONS = pa.schema([*PARTITIONS, ("error_code", pa.int16()), ("offline", IDS)])
"""PARTITIONS, and what else a broker says of a partition: an error, and the replicas that it considers offline.

`leader` is -1 without a leader. It is null with the error LISTENER_NOT_FOUND: the leader is hidden, because it has no
listener with the name of the one that was asked.
"""

_PARTITION_FIELDS = fields_of("MetadataResponse", apis.METADATA.newest, "topics", "partitions")
_CHUNK = 50_000  # partitions that are decoded together
_BEFORE_NAME, _BEFORE_PARTITIONS = 2, 17  # bytes of a topic's errorCode; of its topicId and isInternal
_AFTER_PARTITIONS = struct.Struct(">iB")  # topicAuthorizedOperations, number of tags
_BEFORE_LISTS = 14  # bytes of a partition's errorCode, partitionIndex, leaderId, leaderEpoch


class Served(NamedTuple):
    """Some topics of an answer, and their partitions."""

    topics: pa.RecordBatch
    partitions: pa.RecordBatch


def read_topics(metadata: MetadataAnswer) -> Iterator[Served]:
    """Yield TOPICS with their SERVED_PARTITIONS, up to the end of the answer. Raises MalformedAnswer."""
    is_newest = metadata.answer.version == apis.METADATA.newest
    while metadata.topics_left > 0:
        topics, starts = _walk(metadata) if is_newest else ([], [])
        served = _read_topics(metadata, topics, starts) if topics else None
        yield served or _read_slowly(metadata.read_topic())
    metadata.check_end()


class _Topic(NamedTuple):
    """Where a topic starts and ends in the answer, its name, where its id is, and its number of partitions."""

    start: int
    end: int
    name: str | None
    id_at: int
    partitions: int


def _walk(metadata: MetadataAnswer) -> Tuple[List[_Topic], List[int]]:
    """Return the next topics, up to one that cannot be read, and where their partitions start."""
    data, at = metadata.data, metadata.position
    topics: List[_Topic] = []
    starts: List[int] = []
    try:
        while len(topics) < metadata.topics_left and len(starts) < _CHUNK:
            start = at
            length, at = read_length(data, start + _BEFORE_NAME)
            id_at = at + max(length, 0)
            name = None if length < 0 else data[at:id_at].decode()
            count, at = read_length(data, id_at + _BEFORE_PARTITIONS)
            found = _walk_partitions(data, at, count)
            at = found.pop()
            _operations, tags = _AFTER_PARTITIONS.unpack_from(data, at)
            if tags or count < 0:
                break
            at += _AFTER_PARTITIONS.size
            topics.append(_Topic(start, at, name, id_at, count))
            starts += found
    except (IndexError, ValueError, struct.error):
        pass  # the generic decoder reports it
    return topics, starts


def _walk_partitions(data: bytes, at: int, count: int) -> List[int]:
    """Return where each partition starts, and where the last one ends."""
    starts = [at]
    while len(starts) <= count:
        # A list of n numbers has one byte of n + 1, and 4 n bytes
        replicas = at + _BEFORE_LISTS
        isr = replicas + 4 * data[replicas] - 3
        offline = isr + 4 * data[isr] - 3
        after = offline + 4 * data[offline] - 2  # with one byte more, the number of tags
        size = after - at
        left = count + 1 - len(starts)
        end = at + left * size
        if (
            left > 1
            and end < len(data)
            and data[replicas:end:size] == data[replicas : replicas + 1] * left
            and data[isr:end:size] == data[isr : isr + 1] * left
            and data[offline:end:size] == data[offline : offline + 1] * left
        ):  # all that are left are as long
            starts.extend(range(after, end + size, size))
            break
        starts.append(after)
        at = after
    return starts


def _read_topics(metadata: MetadataAnswer, topics: List[_Topic], starts: List[int]) -> Served | None:
    """Read these topics up to one that is not in the common form; None if it is the first."""
    base = topics[0].start
    data = metadata.data[base : topics[-1].end] + PADDING
    structs = read_structs(data, np.array(starts, np.int64) - base, _PARTITION_FIELDS)
    topic_of = np.repeat(np.arange(len(topics)), [topic.partitions for topic in topics])
    good = int(topic_of[structs.odd.argmax()]) if structs.odd.any() else len(topics)
    if not good:
        return None
    topics = topics[:good]
    metadata.position = topics[-1].end
    metadata.topics_left -= good
    topic_of = topic_of[: sum(topic.partitions for topic in topics)]
    names = pa.array([topic.name for topic in topics], pa.string())
    ids = Cursor(data, np.array([topic.id_at for topic in topics]) - base).field("uuid")
    errors = Cursor(data, np.array([topic.start for topic in topics]) - base).field("int16")
    return _as_served(
        [names, ids, errors], topic_of, {name: column[: len(topic_of)] for name, column in structs.columns.items()}
    )


def _as_served(topics: List[pa.Array], topic_of: np.ndarray, columns: Dict[str, pa.Array]) -> Served:
    """Return the columns of TOPICS, and of their partitions by Kafka's names of fields."""
    is_hidden = pc.equal(columns["errorCode"], LISTENER_NOT_FOUND)
    arrays = {
        "topic": topics[0].take(pa.array(topic_of)),
        "partition": columns["partitionIndex"],
        "replicas": columns["replicaNodes"],
        "isr": sorted_lists(columns["isrNodes"]),
        "leader": pc.if_else(is_hidden, None, columns["leaderId"]),
        "leader_epoch": columns["leaderEpoch"],
        "error_code": columns["errorCode"],
        "offline": columns["offlineReplicas"],
    }
    partitions = [
        arrays[field.name] if field.name in arrays else pa.nulls(len(topic_of), field.type)
        for field in SERVED_PARTITIONS
    ]
    return Served(
        pa.RecordBatch.from_arrays(topics, schema=TOPICS),
        pa.RecordBatch.from_arrays(partitions, schema=SERVED_PARTITIONS),
    )


def _read_slowly(topic: Dict[str, Any]) -> Served:
    """Return a topic of the generic decoder."""
    partitions = topic["partitions"]
    columns = {
        field.name: pa.array([partition[field.name] for partition in partitions], ARROW_TYPES[field.type])
        for field in _PARTITION_FIELDS
    }
    values = (topic["name"], topic["topicId"], topic["errorCode"])
    return _as_served(
        [pa.array([value], field.type) for value, field in zip(values, TOPICS)],
        np.zeros(len(partitions), np.int64),
        columns,
    )
