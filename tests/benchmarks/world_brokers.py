# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Answer a job's requests as the brokers of a generated world would in KRaft mode, from prepared bytes.

    PYTHONPATH=.build:.:spark .venv/bin/python tests/benchmarks/world_brokers.py WORLD [N]

Prints a line of JSON, {broker id: port on 127.0.0.1}, and answers until its standard input ends. It speaks unsecured
connections and the newest versions of requests.apis only. With N it answers as N brokers: those that WORLD does not
have serve what the last one of it serves, and dynamic configs of their own. A node's files in WORLD/brokers/<id> or
WORLD/controllers/<id>:

- `topics`: the topics of Metadata, one after another;
- `configs`: the results of DescribeConfigs for each topic;
- `index.json`: {topic: [offset and size in `topics`, offset and size in `configs`]};
- `answers.json`: {api key: the body of its answer, in base64}, `head`, `settings` and `broker_configs`.
"""

from __future__ import annotations

import base64
import functools
import json
import os
import pathlib
import socket
import struct
import sys
import threading
from typing import Any, Callable, Dict, List, Tuple

from ansible_collections.quorumshift.kafka.plugins.module_utils.formats.messages import messages
from ansible_collections.quorumshift.kafka.plugins.module_utils.formats.requests import apis

from tests.benchmarks import world
from tests.benchmarks.primitives import (
    NO_TAGS,
    compact_array,
    compact_string,
    unsigned_varint,
)

_API_VERSIONS = 18
# What a KRaft broker's listener offers: Produce, but neither LeaderAndIsr (4) nor Vote (52)
_VERSIONS = {
    0: (0, 11),
    1: (4, 17),
    apis.LIST_OFFSETS.api_key: (1, 9),
    apis.METADATA.api_key: (0, 12),
    _API_VERSIONS: (0, 4),
    apis.DESCRIBE_ACLS.api_key: (1, 3),
    apis.DESCRIBE_CONFIGS.api_key: (1, 4),
    apis.DESCRIBE_TOKENS.api_key: (1, 3),
    apis.DESCRIBE_CLIENT_QUOTAS.api_key: (0, 1),
    apis.DESCRIBE_SCRAM.api_key: (0, 0),
}
_TOPIC_RESOURCE, _BROKER_RESOURCE = 2, 4
_TOPIC_CONFIG, _DYNAMIC_BROKER, _DYNAMIC_DEFAULT, _DEFAULT = 1, 2, 3, 5
_STRING = 2
_LEADER_NOT_AVAILABLE, _UNKNOWN_TOPIC = 5, 3
_NO_THROTTLE = struct.pack(">i", 0)
_NO_ERROR = struct.pack(">h", 0) + b"\0"
_DEFAULTS = {
    "cleanup.policy": "delete",
    "compression.gzip.level": "-1",
    "compression.lz4.level": "9",
    "compression.type": "producer",
    "compression.zstd.level": "3",
    "delete.retention.ms": "86400000",
    "file.delete.delay.ms": "60000",
    "flush.messages": "9223372036854775807",
    "flush.ms": "9223372036854775807",
    "follower.replication.throttled.replicas": "",
    "index.interval.bytes": "4096",
    "leader.replication.throttled.replicas": "",
    "local.retention.bytes": "-2",
    "local.retention.ms": "-2",
    "max.compaction.lag.ms": "9223372036854775807",
    "max.message.bytes": "1048588",
    "message.downconversion.enable": "true",
    "message.format.version": "3.0-IV1",
    "message.timestamp.after.max.ms": "9223372036854775807",
    "message.timestamp.before.max.ms": "9223372036854775807",
    "message.timestamp.difference.max.ms": "9223372036854775807",
    "message.timestamp.type": "CreateTime",
    "min.cleanable.dirty.ratio": "0.5",
    "min.compaction.lag.ms": "0",
    "min.insync.replicas": "1",
    "preallocate": "false",
    "remote.storage.enable": "false",
    "retention.bytes": "-1",
    "retention.ms": "604800000",
    "segment.bytes": "1073741824",
    "segment.index.bytes": "10485760",
    "segment.jitter.ms": "0",
    "segment.ms": "604800000",
    "unclean.leader.election.enable": "false",
}


# --- prepared bytes --------------------------------------------------------------------------------------


class BrokerFiles:
    """Writes the answers of one broker."""

    def __init__(self, directory: pathlib.Path, broker: int) -> None:
        directory.mkdir(parents=True)
        self._directory, self._broker = directory, broker
        self._topics = open(directory / "topics", "wb", 1 << 20)  # noqa: SIM115
        self._configs = open(directory / "configs", "wb", 1 << 20)  # noqa: SIM115
        self._index: Dict[str, List[int]] = {}

    def topic(self, topic: world.Topic) -> None:
        """Write a topic as the broker serves it."""
        is_internal = topic.name == "__consumer_offsets"
        pieces = [b"\0\0", compact_string(topic.name), topic.id, bytes([is_internal])]
        pieces.append(unsigned_varint(len(topic.partitions) + 1))
        pack = struct.Struct(">hiii").pack
        for number, partition in enumerate(topic.partitions):
            leader = partition.leader
            pieces.append(
                pack(_LEADER_NOT_AVAILABLE if leader < 0 else 0, number, leader, partition.leader_epoch)
                + _two_lists(partition.replicas, partition.isr)
            )
        pieces.append(struct.pack(">i", -0x80000000) + NO_TAGS)
        described = _described(_TOPIC_RESOURCE, topic.name, _topic_configs(topic.configs))
        encoded = b"".join(pieces)
        self._index[topic.name] = [
            self._topics.seek(0, os.SEEK_CUR),
            len(encoded),
            self._configs.seek(0, os.SEEK_CUR),
            len(described),
        ]
        self._topics.write(encoded)
        self._configs.write(described)

    def close(self, tables: world.Tables, end_offset: int) -> None:
        """Write everything else. `end_offset`: exclusive, of the metadata log."""
        self._topics.close()
        self._configs.close()
        (self._directory / "index.json").write_text(json.dumps(self._index))
        answers = {
            _API_VERSIONS: _api_versions(end_offset),
            apis.DESCRIBE_CLIENT_QUOTAS.api_key: _quotas(tables),
            apis.DESCRIBE_SCRAM.api_key: _scram(tables),
            apis.DESCRIBE_ACLS.api_key: _acls(tables),
            apis.DESCRIBE_TOKENS.api_key: _tokens(tables),
            "head": _head(),
        }
        settings = [
            _config(name, value, _DEFAULT, [(name, value, _DEFAULT)]) for (name,), value in tables.settings.items()
        ]
        answers["settings"] = compact_array(settings)
        of_others = {broker for broker, _name in tables.configs} - {None, *world.SERVED}  # see the module
        for broker in (self._broker, None, *of_others):
            source = _DYNAMIC_DEFAULT if broker is None else _DYNAMIC_BROKER
            configs = [
                _config(name, value, source, [(name, value, source)])
                for (of, name), value in tables.configs.items()
                if of == broker
            ]
            if broker is not None:
                configs += settings
            name = "" if broker is None else str(broker)
            answers[f"broker_configs.{name}"] = _described(_BROKER_RESOURCE, name, configs)
        texts = {key: base64.b64encode(body).decode() for key, body in answers.items()}
        (self._directory / "answers.json").write_text(json.dumps(texts))


@functools.lru_cache(maxsize=None)
def _two_lists(replicas: Tuple[int, ...], isr: Tuple[int, ...]) -> bytes:
    """Return replicas, in-sync replicas, no offline replicas and the end of a partition."""
    lists = b"".join(bytes([len(ids) + 1]) + struct.pack(f">{len(ids)}i", *ids) for ids in (replicas, isr))
    return lists + b"\x01" + NO_TAGS


def _config(name: str, value: str, source: int, synonyms: List[Tuple[str, str, int]] | None = None) -> bytes:
    listed = compact_array(
        compact_string(other) + compact_string(text) + bytes([of]) + NO_TAGS for other, text, of in synonyms or ()
    )
    flags = struct.pack(">?b?", False, source, False)
    return compact_string(name) + compact_string(value) + flags + listed + bytes([_STRING]) + b"\0" + NO_TAGS


_DEFAULT_CONFIGS = {name: _config(name, value, _DEFAULT) for name, value in _DEFAULTS.items()}


def _topic_configs(configs: Dict[str, str]) -> List[bytes]:
    if not configs:
        return list(_DEFAULT_CONFIGS.values())
    own = {name: _config(name, value, _TOPIC_CONFIG) for name, value in configs.items()}
    return list({**_DEFAULT_CONFIGS, **own}.values())


def _described(kind: int, name: str, configs: List[bytes], error: bytes = _NO_ERROR) -> bytes:
    return error + bytes([kind]) + compact_string(name) + compact_array(configs) + NO_TAGS


def _head() -> bytes:
    """Return Metadata's answer up to the topics."""
    listed = compact_array(
        struct.pack(">i", broker)
        + compact_string("127.0.0.1")
        + struct.pack(">i", 9092)
        + compact_string(f"rack-{broker % 3}")
        + NO_TAGS
        for broker in world.BROKERS
    )
    return _NO_THROTTLE + listed + compact_string(world.CLUSTER_ID) + struct.pack(">i", 1)


def _api_versions(end_offset: int) -> bytes:
    keys = compact_array(struct.pack(">hhh", key, *versions) + NO_TAGS for key, versions in sorted(_VERSIONS.items()))
    level = struct.pack(">hh", world.METADATA_VERSION, world.METADATA_VERSION) + NO_TAGS
    supported = struct.pack(">hh", 1, world.METADATA_VERSION) + NO_TAGS
    name = compact_string("metadata.version")
    tagged = (compact_array([name + supported]), struct.pack(">q", end_offset - 1), compact_array([name + level]))
    tags = b"".join(bytes([tag, len(value)]) + value for tag, value in enumerate(tagged))
    return b"\0\0" + keys + _NO_THROTTLE + bytes([len(tagged)]) + tags


def _quotas(tables: world.Tables) -> bytes:
    entries: Dict[tuple, List[bytes]] = {}
    for (entity, name), value in tables.quotas.items():
        entries.setdefault(entity, []).append(compact_string(name) + struct.pack(">d", value) + NO_TAGS)
    listed = compact_array(
        compact_array(
            compact_string(kind) + (b"\0" if name is None else compact_string(name)) + NO_TAGS for kind, name in entity
        )
        + compact_array(values)
        + NO_TAGS
        for entity, values in entries.items()
    )
    return _NO_THROTTLE + _NO_ERROR + listed + NO_TAGS


def _scram(tables: world.Tables) -> bytes:
    users: Dict[str, List[bytes]] = {}
    for (user, code), credential in tables.scram.items():
        users.setdefault(user, []).append(struct.pack(">bi", code, credential[3]) + NO_TAGS)
    listed = compact_array(
        compact_string(user) + _NO_ERROR + compact_array(infos) + NO_TAGS for user, infos in users.items()
    )
    return _NO_THROTTLE + _NO_ERROR + listed + NO_TAGS


def _acls(tables: world.Tables) -> bytes:
    resources: Dict[tuple, List[bytes]] = {}
    for kind, pattern, name, principal, host, operation, permission in tables.acls:
        entry = compact_string(principal) + compact_string(host) + bytes((operation, permission)) + NO_TAGS
        resources.setdefault((kind, pattern, name), []).append(entry)
    listed = compact_array(
        bytes([kind]) + compact_string(name) + bytes([pattern]) + compact_array(entries) + NO_TAGS
        for (kind, pattern, name), entries in resources.items()
    )
    return _NO_THROTTLE + _NO_ERROR + listed + NO_TAGS


def _tokens(tables: world.Tables) -> bytes:
    def principal(text):
        return b"".join(map(compact_string, text.split(":", 1)))

    listed = compact_array(
        principal(owner)
        + principal(requester)
        + struct.pack(">qqq", world.TIME_MS, world.TIME_MS + 1, world.TIME_MS + 2)
        + compact_string(token_id)
        + compact_string("a hash")
        + compact_array([principal(renewer) + NO_TAGS])
        + NO_TAGS
        for token_id, (owner, requester, renewer) in tables.tokens.items()
    )
    return b"\0\0" + listed + _NO_THROTTLE + NO_TAGS


# --- the server ------------------------------------------------------------------------------------------


class Broker:
    """Answers requests from a broker's files."""

    def __init__(self, directory: pathlib.Path) -> None:
        texts = json.loads((directory / "answers.json").read_text())
        self._answers = {key: base64.b64decode(text) for key, text in texts.items()}
        self._index = json.loads((directory / "index.json").read_text())
        self._topics = os.open(directory / "topics", os.O_RDONLY)
        self._configs = os.open(directory / "configs", os.O_RDONLY)

    def answer(self, request: bytes) -> Tuple[bytes, List[Tuple[int, int, int]], bytes]:
        """Return an answer: bytes, pieces of files (descriptor, offset, size), bytes. Raises ValueError."""
        key, version, correlation = struct.unpack_from(">hhi", request)
        head = struct.pack(">i", correlation)
        if key == _API_VERSIONS:
            if version not in (3, 4):
                raise ValueError(f"ApiVersions v{version}")
            return head + self._answers[str(key)], [], b""
        _header, at = messages.reader("RequestHeader", 2)(request, 0)
        head += NO_TAGS
        if key == apis.METADATA.api_key:
            return self._metadata(messages.decode("MetadataRequest", version, request[at:])["topics"], head)
        if key == apis.DESCRIBE_CONFIGS.api_key:
            return self._described(messages.decode("DescribeConfigsRequest", version, request[at:])["resources"], head)
        if str(key) not in self._answers:
            raise ValueError(f"api key {key}")
        return head + self._answers[str(key)], [], b""

    def _metadata(self, wanted, head):
        if wanted is None:
            listed = unsigned_varint(len(self._index) + 1)
            return head + self._answers["head"] + listed, [(self._topics, 0, os.fstat(self._topics).st_size)], NO_TAGS
        topics, unknown = [], []
        for topic in wanted:
            name = topic["name"]
            if name in self._index:
                topics.append((self._topics, *self._index[name][:2]))
            else:
                empty = bytes(16) + b"\0\x01" + struct.pack(">i", -0x80000000) + NO_TAGS
                unknown.append(struct.pack(">h", _UNKNOWN_TOPIC) + compact_string(name) + empty)
        return head + self._answers["head"] + unsigned_varint(len(wanted) + 1) + b"".join(unknown), topics, NO_TAGS

    def _described(self, resources, head):
        topics, others = [], []
        for resource in resources:
            kind, name = resource["resourceType"], resource["resourceName"]
            if kind == _TOPIC_RESOURCE and name in self._index:
                topics.append((self._configs, *self._index[name][2:]))
            elif kind == _TOPIC_RESOURCE:
                others.append(_described(kind, name, [], struct.pack(">h", _UNKNOWN_TOPIC) + b"\0"))
            else:
                own = self._answers.get(f"broker_configs.{name}")
                others.append(
                    own or _NO_ERROR + bytes([kind]) + compact_string(name) + self._answers["settings"] + NO_TAGS
                )
        return head + _NO_THROTTLE + unsigned_varint(len(resources) + 1) + b"".join(others), topics, NO_TAGS


def _serve(connection: socket.socket, answer: Callable[[bytes], Any]) -> None:
    with connection, connection.makefile("rb") as stream:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        while True:
            size = stream.read(4)
            if len(size) < 4:
                return
            first, pieces, last = answer(stream.read(int.from_bytes(size, "big")))
            total = len(first) + sum(piece[2] for piece in pieces) + len(last)
            try:
                connection.sendall(struct.pack(">i", total) + first)
                for descriptor, offset, length in pieces:
                    while length:
                        sent = os.sendfile(connection.fileno(), descriptor, offset, length)
                        offset, length = offset + sent, length - sent
                connection.sendall(last)
            except OSError:  # the client has gone
                return


def _accept(listener: socket.socket, broker: Broker) -> None:
    while True:
        connection, _address = listener.accept()
        threading.Thread(target=_serve, args=(connection, broker.answer), daemon=True).start()


def main() -> None:
    """Serve a world's brokers and controllers."""
    nodes = [*pathlib.Path(sys.argv[1], "brokers").iterdir(), *pathlib.Path(sys.argv[1], "controllers").iterdir()]
    served = {path.name: Broker(path) for path in sorted(nodes)}
    last = served[str(max(world.SERVED))]
    for number in range(1, int(sys.argv[2]) + 1) if len(sys.argv) > 2 else ():
        served.setdefault(str(number), last)
    ports = {}
    for name, broker in served.items():
        listener = socket.create_server(("127.0.0.1", 0), backlog=64)
        ports[name] = listener.getsockname()[1]
        threading.Thread(target=_accept, args=(listener, broker), daemon=True).start()
    print(json.dumps(ports), flush=True)
    sys.stdin.read()


if __name__ == "__main__":
    main()
