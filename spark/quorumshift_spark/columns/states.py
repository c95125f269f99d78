# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The topics and partitions in ZooKeeper as Arrow columns: the same items and problems as znode_items.Reader finds.

Kafka writes the JSON of an assignment and of a state in one form each. A regular expression checks every byte of it,
for all znodes together. A znode in another form, or malformed, goes through its decoder in znodes.
"""

from __future__ import annotations

from typing import Any, Callable, Dict, Iterable, List, NamedTuple, Tuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from ansible_collections.quorumshift.kafka.plugins.module_utils.formats.zookeeper import znodes
from ansible_collections.quorumshift.kafka.plugins.module_utils.formats.zookeeper.znode_items import (
    NO_TOPIC_ID,
    Problem,
)

from quorumshift_spark.columns import IDS, PARTITIONS, sorted_lists

TOPICS = pa.schema([("topic", pa.string()), ("topic_id", pa.string()), ("created_ms", pa.int64()), ("at", pa.int64())])
"""`at`: the creation of a topic's znode. Kafka never changes its id in place."""
ZOOKEEPER_PARTITIONS = pa.schema([*PARTITIONS, ("controller_epoch", pa.int32())])
"""PARTITIONS with the controller epoch of the state. `partition_epoch` is the data version of the state's znode. A
partition without a state, or with a malformed one, has only its assignment."""

# Numbers of up to nine digits fit int32, and JSON has no leading zeros. An empty list is left to the decoders.
_NATURAL = "(?:0|[1-9][0-9]{0,8})"
_NUMBER = "(?:0|-?[1-9][0-9]{0,8})"
_NUMBERS = f"{_NUMBER}(?:,{_NUMBER})*"
# TopicZNode.encode, of a topic with an id and without a reassignment
_TOPIC = (
    rf'\A\{{"partitions":\{{"(?P<partitions>{_NATURAL}":\[{_NUMBERS}(?:\],"{_NATURAL}":\[{_NUMBERS})*)\]\}},'
    r'"topic_id":"(?P<topic_id>[A-Za-z0-9_-]+)","adding_replicas":\{\},"removing_replicas":\{\},'
    rf'"version":{_NATURAL}\}}\z'
)
_BETWEEN_PARTITIONS, _BEFORE_REPLICAS = '],"', '":['
# TopicPartitionStateZNode.encode, which has the recovery state only of a leader that is recovering
_STATE = (
    rf'\A\{{"controller_epoch":(?P<controller_epoch>{_NUMBER}),"leader":(?P<leader>{_NUMBER}),"version":{_NATURAL},'
    rf'(?:"leader_recovery_state":(?P<recovery_state>[01]),)?"leader_epoch":(?P<leader_epoch>{_NUMBER}),'
    rf'"isr":\[(?P<isr>{_NUMBERS})\]\}}\z'
)

_Columns = Dict[str, pa.Array]


class InZooKeeper(NamedTuple):
    """`topics`: TOPICS; `partitions`: ZOOKEEPER_PARTITIONS; `problems`: what is malformed, without its value."""

    topics: pa.RecordBatch
    partitions: pa.RecordBatch
    problems: List[Problem]


def read_partitions(topics: Iterable[znodes.Znode], states: Iterable[znodes.Znode]) -> InZooKeeper:
    """Return topics and their partitions, in any order. `states`: those of these partitions, each once. The state of a
    partition that the topic does not have is ignored, as by Kafka."""
    problems: List[Problem] = []
    topic_columns, topic_of, keys, columns = _read_topics([*topics], problems)
    columns["topic"] = topic_columns["topic"].take(topic_of)
    before, between, after = znodes.partition_state_path("\0", "\0").split("\0")
    paths = pc.binary_join_element_wise(before, columns["topic"], between, keys, after, "")
    nodes = [*states]
    rows = pc.index_in(pa.array([node.path for node in nodes], pa.string()), paths)
    nodes = [node for node, is_assigned in zip(nodes, rows.is_valid().to_pylist()) if is_assigned]
    order, state = _read_states(nodes, problems)
    state_of = np.full(len(paths), -1)
    state_of[np.asarray(rows.drop_null())[order]] = np.arange(len(order))
    choice = pa.array(state_of, mask=state_of < 0)
    columns.update({name: column.take(choice) for name, column in state.items()})
    columns["topic_id"] = topic_columns["topic_id"].take(topic_of)
    columns["at"] = pc.max_element_wise(topic_columns["changed"].take(topic_of), columns["at"])
    for name in ("isr", "adding", "removing"):
        columns[name] = sorted_lists(columns[name])
    return InZooKeeper(_batch(topic_columns, TOPICS), _batch(columns, ZOOKEEPER_PARTITIONS), problems)


def _batch(columns: _Columns, schema: pa.Schema) -> pa.RecordBatch:
    length = len(columns["topic"])
    arrays = [columns[field.name] if field.name in columns else pa.nulls(length, field.type) for field in schema]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


# --- assignments ---------------------------------------------------------------------------------------


def _read_topics(nodes: List[znodes.Znode], problems: List[Problem]) -> Tuple[_Columns, pa.Array, pa.Array, _Columns]:
    """Return the columns of TOPICS. And for each partition the index of its topic, its key in the JSON and the columns
    of its assignment."""
    fields, usual, others = _extract(nodes, _TOPIC)
    counts, keys, replicas = _split(fields)
    if _repeats(np.repeat(usual, counts), keys):  # of a key that is there twice the last value counts
        fields, usual, others = fields[:0], usual[:0], np.arange(len(nodes))
        counts, keys, replicas = _split(fields)
    read = _read_each(nodes, others, _read_topic, problems)
    problems += [Problem(nodes[index].path, NO_TOPIC_ID) for index, topic in read if topic["topic_id"] is None]
    order = [*usual.tolist(), *(index for index, _topic in read)]
    topics = {
        "topic": pa.array([nodes[index].path.rpartition("/")[2] for index in order], pa.string()),
        "topic_id": _followed_by(fields.field("topic_id").cast(pa.string()), [topic["topic_id"] for _i, topic in read]),
        "created_ms": pa.array([nodes[index].stat.ctime for index in order], pa.int64()),
        "at": pa.array([nodes[index].stat.czxid for index in order], pa.int64()),
        "changed": pa.array([nodes[index].stat.mzxid for index in order], pa.int64()),
    }
    counts = np.array([*counts, *(len(topic["partitions"]) for _index, topic in read)], np.int64)
    topic_of = pa.array(np.repeat(np.arange(len(order)), counts))
    partitions = [partition for _index, topic in read for partition in topic["partitions"].items()]
    none = pa.array([[]], IDS).take(pa.array(np.zeros(len(replicas), np.int64)))
    usual_lists = {"replicas": replicas, "adding": none, "removing": none}
    columns = {
        name: _followed_by(lists, [assignment[name] for _key, assignment in partitions])
        for name, lists in usual_lists.items()
    }
    keys = _followed_by(keys, [key for key, _assignment in partitions])
    return topics, topic_of, keys, {**columns, "partition": keys.cast(pa.int32())}


def _split(fields: pa.StructArray) -> Tuple[np.ndarray, pa.Array, pa.ListArray]:
    """Return the number of partitions of each topic, and for each partition its key and replicas."""
    texts = pc.split_pattern(fields.field("partitions"), _BETWEEN_PARTITIONS)
    pairs = pc.split_pattern(texts.flatten(), _BEFORE_REPLICAS)
    keys, replicas = (pc.list_element(pairs, side) for side in (0, 1))
    return np.asarray(texts.value_lengths()), keys.cast(pa.string()), _as_ids(replicas)


def _repeats(topic_of: np.ndarray, keys: pa.Array) -> bool:
    """Return whether a topic has a key twice."""
    both = topic_of.astype(np.int64) << 32 | np.asarray(keys.cast(pa.int64()))
    return len(np.unique(both)) < len(both)


def _read_topic(node: znodes.Znode) -> Dict[str, Any]:
    topic = znodes.topic(node.data, node.path)
    for key, assignment in topic["partitions"].items():
        _check_range(node, [int(key), *assignment["replicas"], *assignment["adding"], *assignment["removing"]])
    return topic


# --- states --------------------------------------------------------------------------------------------


def _read_states(nodes: List[znodes.Znode], problems: List[Problem]) -> Tuple[List[int], _Columns]:
    """Return the indexes of the states that are not malformed, and the columns of these."""
    fields, usual, others = _extract(nodes, _STATE)
    read = _read_each(nodes, others, _read_state, problems)
    recovery = fields.field("recovery_state")
    texts = {
        **{name: fields.field(name) for name in ("leader", "leader_epoch", "controller_epoch")},
        "recovery_state": pc.if_else(pc.equal(pc.binary_length(recovery), 0), b"0", recovery),
    }
    columns = {name: text.cast(pa.string()).cast(ZOOKEEPER_PARTITIONS.field(name).type) for name, text in texts.items()}
    columns["isr"] = _as_ids(fields.field("isr"))
    columns = {name: _followed_by(column, [state[name] for _index, state in read]) for name, column in columns.items()}
    order = [*usual.tolist(), *(index for index, _state in read)]
    columns["partition_epoch"] = pa.array([nodes[index].stat.version for index in order], pa.int32())
    columns["at"] = pa.array([nodes[index].stat.mzxid for index in order], pa.int64())
    return order, columns


def _read_state(node: znodes.Znode) -> Dict[str, Any]:
    state = znodes.partition_state(node.data, node.path)
    state["recovery_state"] = state.pop("leader_recovery_state")
    _check_range(node, [state["leader"], state["leader_epoch"], state["controller_epoch"], *state["isr"]])
    _check_range(node, [state["recovery_state"]], bits=8)
    return state


# --- both ----------------------------------------------------------------------------------------------


def _extract(nodes: List[znodes.Znode], pattern: str) -> Tuple[pa.StructArray, np.ndarray, np.ndarray]:
    """Return the groups of the nodes whose data match, the indexes of these nodes, and those of the others."""
    data = [node.data or b"" for node in nodes]
    offsets = np.zeros(len(data) + 1, np.int64)
    np.cumsum(np.fromiter(map(len, data), np.int64, len(data)), out=offsets[1:])
    buffers = [None, pa.py_buffer(offsets), pa.py_buffer(b"".join(data))]
    fields = pc.extract_regex(pa.Array.from_buffers(pa.large_binary(), len(data), buffers), pattern)
    matched = np.asarray(fields.is_valid())
    return fields.drop_null(), np.flatnonzero(matched), np.flatnonzero(~matched)


def _read_each(
    nodes: List[znodes.Znode], indexes: np.ndarray, read: Callable[[znodes.Znode], Any], problems: List[Problem]
) -> List[Tuple[int, Any]]:
    """Return (index, what `read` returns) of these nodes, and add those that are malformed to `problems`."""
    found = []
    for index in indexes.tolist():
        try:
            found.append((index, read(nodes[index])))
        except znodes.ZnodeError as error:
            problems.append(Problem(error.path, error.reason))
    return found


def _check_range(node: znodes.Znode, numbers: List[int], bits: int = 32) -> None:
    largest = (1 << bits - 1) - 1
    if any(not -largest - 1 <= number <= largest for number in numbers):
        raise znodes.ZnodeError(node.path, f"has a number that does not fit {bits} bits")


def _as_ids(texts: pa.Array) -> pa.ListArray:
    """Return the lists of numbers that are separated by commas."""
    return pc.split_pattern(texts, ",").cast(pa.list_(pa.string())).cast(IDS)


def _followed_by(array: pa.Array, values: List[Any]) -> pa.Array:
    return pa.concat_arrays([array, pa.array(values, array.type)]) if values else array
