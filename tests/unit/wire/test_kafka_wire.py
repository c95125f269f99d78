# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Answers of Kafka 3.9.2 that the integration tests recorded are decoded; incomplete and foreign ones are errors."""

from __future__ import annotations

import contextlib
import json
import pathlib
import socket
import struct
import threading

import pytest
from ansible_collections.quorumshift.kafka.plugins.module_utils.formats.requests import apis, kafka_answers
from ansible_collections.quorumshift.kafka.plugins.module_utils.settings.addresses import HostPort
from ansible_collections.quorumshift.kafka.plugins.module_utils.wire import kafka_wire

ANSWERS = json.loads((pathlib.Path(__file__).parent / "wire_answers.json").read_text())


def recorded(name, kind):
    answer = ANSWERS[name][kind]
    return bytes.fromhex(answer["answer"]), answer["version"]


def test_api_versions_of_a_controller():
    answer = kafka_answers.decode_api_versions(*recorded("controller_migration", "api_versions"))
    assert answer.api_keys[apis.DESCRIBE_QUORUM.api_key] == (0, 2) and answer.api_keys[1] == (0, 17)
    assert answer.supported_features == {"kraft.version": (0, 1), "metadata.version": (1, 21)}
    assert answer.finalized_features == {"metadata.version": (21, 21)}
    assert answer.finalized_features_epoch > 0
    assert answer.zk_migration_ready is True


def test_api_versions_of_a_plain_broker():
    answer = kafka_answers.decode_api_versions(*recorded("zk", "api_versions"))
    assert answer.api_keys[4] == (0, 7) and apis.DESCRIBE_QUORUM.api_key not in answer.api_keys
    assert answer.finalized_features == {} and answer.zk_migration_ready is False


def test_api_versions_of_version_0():
    body = struct.pack(">hi", 0, 2) + struct.pack(">hhh", 0, 0, 11) + struct.pack(">hhh", 18, 0, 4)
    answer = kafka_answers.decode_api_versions(body, 0)
    assert answer == kafka_wire.ApiVersions({0: (0, 11), 18: (0, 4)}, {}, {}, -1, False)


def test_quorum_of_static_voters():
    quorum = kafka_answers.decode_quorum(*recorded("controller_migration", "describe_quorum"))
    assert quorum.leader_id in (101, 102) and quorum.leader_epoch > 0 and quorum.high_watermark > 0
    assert sorted(voter.id for voter in quorum.voters) == [101, 102]
    assert all(voter.directory_id is None for voter in quorum.voters)


def test_quorum_through_a_broker_names_the_observer():
    quorum = kafka_answers.decode_quorum(*recorded("kraft", "describe_quorum"))
    (observer,) = quorum.observers
    assert observer.id == 1 and len(observer.directory_id) == 22 and observer.last_fetch_timestamp > 1_700_000_000_000


def test_quorum_of_version_0_has_no_times():
    replica = struct.pack(">iq", 5, 70) + b"\0"
    body = (
        struct.pack(">h", 0)
        + (b"\x02" + b"\x13__cluster_metadata" + b"\x02")
        + struct.pack(">ihiiq", 0, 0, 5, 3, 69)
        + (b"\x02" + replica)
        + b"\x01"
        + b"\0\0\0"
    )
    expected = kafka_wire.Quorum(5, 3, 69, (kafka_wire.Replica(5, 70),), ())
    assert kafka_answers.decode_quorum(body, 0) == expected


@pytest.mark.parametrize(
    ("name", "kind", "decode"),
    [
        ("kraft", "describe_quorum", kafka_answers.decode_quorum),
        ("controller_migration", "api_versions", kafka_answers.decode_api_versions),
    ],
)
def test_every_cut_of_an_answer_is_noticed(name, kind, decode):
    answer, version = recorded(name, kind)
    for size in range(len(answer)):
        with pytest.raises((IndexError, ValueError, struct.error)):
            decode(answer[:size], version)


class Server:
    """A listener on loopback that sends prepared bytes to the first connection and then closes or stays silent."""

    def __init__(self, *sends: bytes, silent: bool = False) -> None:
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.address = HostPort(*self._listener.getsockname())
        self._sends = sends
        self._silent = silent
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._serve)

    def __enter__(self):
        self._thread.start()
        return self

    def __exit__(self, *_exception):
        self._done.set()
        self._thread.join(5)
        self._listener.close()

    def _serve(self):
        connection, _where = self._listener.accept()
        with connection:
            connection.settimeout(5)
            for piece in self._sends:
                connection.recv(1 << 16)
                connection.sendall(piece)
            if self._silent:
                self._done.wait(5)
            else:
                with contextlib.suppress(ConnectionResetError):
                    connection.recv(1 << 16)


def framed(correlation: int, body: bytes) -> bytes:
    return struct.pack(">ii", len(body) + 4, correlation) + body


def test_old_server_is_asked_again_with_version_0():
    keys = struct.pack(">hihhh", 35, 1, 18, 0, 2)
    body = struct.pack(">hihhh", 0, 1, 18, 0, 2)
    with Server(framed(1, keys), framed(2, body)) as server:
        assert kafka_wire.api_versions(server.address).api_keys == {18: (0, 2)}


def test_server_that_knows_version_3_is_asked_again_with_it():
    keys = struct.pack(">hihhh", 35, 1, 18, 0, 3)
    answer, _version = recorded("kraft", "api_versions")
    with Server(framed(1, keys), framed(2, answer)) as server:
        assert kafka_wire.api_versions(server.address) == kafka_answers.decode_api_versions(answer, 3)


def test_server_without_the_versions_that_it_knows_is_asked_with_version_0():
    body = struct.pack(">hihhh", 0, 1, 18, 0, 2)
    with Server(framed(1, struct.pack(">hi", 35, 0)), framed(2, body)) as server:
        assert kafka_wire.api_versions(server.address).api_keys == {18: (0, 2)}


def test_incomplete_answer_is_a_protocol_error():
    answer, _version = recorded("kraft", "api_versions")
    with Server(framed(1, answer[:-3])) as server, pytest.raises(kafka_wire.ProtocolError, match="cannot be read"):
        kafka_wire.api_versions(server.address)


def test_answer_of_another_protocol_is_a_protocol_error():
    with Server(b"SSH-2.0-OpenSSH_9.2p1\r\n") as server, pytest.raises(kafka_wire.ProtocolError, match="not Kafka's"):
        kafka_wire.api_versions(server.address)


def test_answer_to_another_request_is_a_protocol_error():
    answer, _version = recorded("kraft", "api_versions")
    with Server(framed(7, answer)) as server, pytest.raises(kafka_wire.ProtocolError, match="answer 7 to request 1"):
        kafka_wire.api_versions(server.address)


def test_silent_server_times_out():
    with Server(silent=True) as server, pytest.raises(kafka_wire.Unreachable) as caught:
        kafka_wire.api_versions(server.address, timeout=1)
    assert caught.value.reason == "timeout"
    assert str(caught.value) == (
        f"{server.address}: timed out after 1 s waiting for the answer to ApiVersions (QS-CONNECT-003)"
    )


def test_search_returns_the_answer_with_the_highest_epoch(monkeypatch):
    old = kafka_wire.Quorum(101, 4, 900, (), ())
    new = kafka_wire.Quorum(102, 5, 800, (), ())
    a, b, c = (HostPort(name, 9093) for name in "abc")
    answers = {a: old, b: new, c: kafka_wire.NotLeader(c, 6, "DescribeQuorum")}

    def describe(address, *_rest):
        if isinstance(answers[address], Exception):
            raise answers[address]
        return answers[address]

    monkeypatch.setattr(kafka_wire, "describe_quorum", describe)
    search = kafka_wire.describe_quorum_any([a, b, c, a])
    assert (search.quorum, search.source, search.outcomes) == (new, b, answers)
    assert search.explain() == "c:9093: DescribeQuorum answered NOT_LEADER_OR_FOLLOWER"
    assert kafka_wire.describe_quorum_any([c])[:2] == (None, None)
    assert kafka_wire.describe_quorum_any([]) == (None, None, {})


def unregistered(code: int, message: bytes | None = None) -> bytes:
    shown = b"\0" if message is None else bytes([len(message) + 1]) + message
    return framed(1, b"\0" + struct.pack(">ih", 0, code) + shown + b"\0")


def test_unregister_broker_returns_whether_there_was_a_registration():
    with Server(unregistered(0)) as server:
        assert kafka_wire.unregister_broker(server.address, 2) is True
    with Server(unregistered(102, b"Broker ID 2 is not currently registered")) as server:
        assert kafka_wire.unregister_broker(server.address, 2) is False
    refused = Server(unregistered(41, b"The active controller appears to be node 102."))
    with refused as server, pytest.raises(kafka_wire.KafkaError, match="NOT_CONTROLLER: The active controller appears"):
        kafka_wire.unregister_broker(server.address, 2)
