# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Watch from the probe host what clients see during a cut: sessions on ZooKeeper servers, brokers, a producer.

A process of its own does it, since the module that starts it ends before the cut. It ends at a file, or by itself.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import tempfile
import threading
import time
from functools import partial
from typing import Any, Callable, Dict, List, Mapping, NamedTuple, Sequence, Tuple

from ansible_collections.quorumshift.kafka.plugins.module_utils.core.ensemble import cut_rehearsal, ensemble_cut
from ansible_collections.quorumshift.kafka.plugins.module_utils.host import detached
from ansible_collections.quorumshift.kafka.plugins.module_utils.probes.cluster import latency, topics
from ansible_collections.quorumshift.kafka.plugins.module_utils.probes.cluster.cluster import Connections
from ansible_collections.quorumshift.kafka.plugins.module_utils.secrets.masking import mask
from ansible_collections.quorumshift.kafka.plugins.module_utils.settings.addresses import HostPort, parse_host_port
from ansible_collections.quorumshift.kafka.plugins.module_utils.wire import zk_wire
from ansible_collections.quorumshift.kafka.plugins.module_utils.wire.kafka_wire import KafkaConnection
from ansible_collections.quorumshift.kafka.plugins.module_utils.wire.socket_wire import WireError

try:
    from confluent_kafka import Producer
except ImportError:  # ProbeModule says so
    Producer = None  # type: ignore[assignment,misc,unused-ignore]

PAUSE_S, ASK_S, MESSAGE_S = 0.1, 1.0, 0.02
READY_S, FETCH_S = 20.0, 60.0
BEGUN, FAILED, STOP, RESULT = "begun", "failed", "stop", "result.json"
DIRECTORY = "quorumshift-watch-"


class Watched:
    """What the threads of one watch note. Times are of this host's monotonic clock."""

    def __init__(self) -> None:
        self.stopping = threading.Event()
        self.connected: Dict[str, List[int]] = {}
        self.samples: List[Tuple[float, List[int]]] = []
        self.answers: Dict[str, List[float]] = {}
        self.acks: List[float] = []
        self.failed: List[str] = []

    def result(self, began: float, ended: float, sessions: Mapping[str, int], topic: str) -> dict:
        """Return what was seen from `began` to `ended`."""
        return {
            "seconds": round(ended - began, 1),
            "sessions": cut_rehearsal.find_return(self.samples, sessions),
            "brokers": {
                address: cut_rehearsal.find_gap([at for at in times if began <= at <= ended], began, ended)._asdict()
                for address, times in self.answers.items()
            },
            "producer": {
                "topic": topic,
                "acknowledged": len(self.acks),
                "failed": len(self.failed),
                "first_error": next(iter(self.failed), ""),
                "longest_s": cut_rehearsal.find_gap([at for at in self.acks if began <= at <= ended], began, ended)[0],
            }
            if topic
            else None,
        }


class Watch(NamedTuple):
    """What is watched. `servers`: ZooKeeper servers, whose `cons` shows `sessions` ({path: session}); `brokers`: {id:
    host:port}; `topic`: where a producer writes, '' for none; `most_s`: the watch ends by itself after that."""

    servers: Sequence[HostPort]
    context: Any
    brokers: Mapping[int, str]
    connections: Connections
    sessions: Mapping[str, int]
    topic: str
    most_s: float


def begin(watch: Watch) -> str:
    """Start a watch, wait until every part of it has had an answer, and return its directory. Raises OSError.

    To be called before anything has started a thread: the watch is a fork.
    """
    directory = tempfile.mkdtemp(prefix=DIRECTORY)
    detached.begin(lambda: _work(directory, watch))
    deadline = time.monotonic() + READY_S
    while not os.path.exists(os.path.join(directory, BEGUN)):
        if time.monotonic() > deadline or os.path.exists(os.path.join(directory, FAILED)):
            why = "not all of them answered"
            with contextlib.suppress(OSError), open(os.path.join(directory, FAILED), encoding="utf-8") as stream:
                why = stream.read()
            shutil.rmtree(directory, ignore_errors=True)  # the process ends when its directory is gone
            raise OSError(f"brokers and ZooKeeper servers cannot be watched: {why} (QS-ZKMOVE-019)")
        time.sleep(0.05)
    return directory


def end(directory: str, bound_s: float) -> dict:
    """End a watch once the sessions are back, or after `bound_s`; return its result and remove its directory.

    Raises OSError where the watch has no result.
    """
    path = os.path.join(directory, RESULT)
    with open(os.path.join(directory, STOP), "w", encoding="ascii") as stream:
        stream.write(str(bound_s))
    deadline = time.monotonic() + bound_s + ASK_S + 10
    while not os.path.exists(path):
        if time.monotonic() > deadline:
            raise OSError(f"the watch in {directory} gave no result within {bound_s:.0f} s (QS-ZKMOVE-019)")
        time.sleep(0.05)
    with open(path, encoding="utf-8") as stream:
        result = json.load(stream)
    shutil.rmtree(directory, ignore_errors=True)
    return result


def _work(directory: str, watch: Watch) -> None:
    seen, connections = Watched(), watch.connections
    try:
        found, _count = latency.find_led(topics.read(connections.bootstrap, connections.client, connections.timeout))
    except Exception as error:  # the module that waits says it
        _write(os.path.join(directory, FAILED), mask(f"{type(error).__name__}: {error}"))
        return
    work: List[Callable[[], None]] = []
    for server in watch.servers:
        work.append(partial(_watch_server, seen, server, watch.context))
    most = sorted(watch.brokers, key=lambda number: -len(found.get(number, ())))[: latency.MOST]
    for address, led in ((watch.brokers[number], found.get(number, [])) for number in most):
        seen.answers[address] = []
        work.append(partial(_watch_broker, seen, address, led, connections))
    if watch.topic:
        work.append(partial(_produce, seen, watch.topic, connections))
    threads = [threading.Thread(target=part, daemon=True) for part in work]
    for thread in threads:
        thread.start()
    until = time.monotonic() + READY_S
    while len(seen.connected) < len(watch.servers) or not all(seen.answers.values()) or (watch.topic and not seen.acks):
        if not os.path.isdir(directory) or time.monotonic() > until:
            silent = [*(set(map(str, watch.servers)) - set(seen.connected))]
            silent += [address for address, times in seen.answers.items() if not times]
            silent += [f"topic {watch.topic}: {next(iter(seen.failed), 'nothing')}"] if watch.topic else []
            _write(os.path.join(directory, FAILED), f"no answer from {', '.join(silent)}")
            return
        time.sleep(0.05)
    began = time.monotonic()
    _write(os.path.join(directory, BEGUN), "")
    until, stops_at = began + watch.most_s, None
    while os.path.isdir(directory):
        now = time.monotonic()
        seen.samples.append((now, [session for found in list(seen.connected.values()) for session in found]))
        if stops_at is None and os.path.exists(os.path.join(directory, STOP)):
            with contextlib.suppress(OSError, ValueError), open(os.path.join(directory, STOP), encoding="ascii") as got:
                stops_at = now + float(got.read())
        back = cut_rehearsal.find_return(seen.samples[-1:], watch.sessions)
        if stops_at is not None and (now >= stops_at or None not in back.values()):
            break
        if now >= until:
            break
        time.sleep(PAUSE_S)
    seen.stopping.set()
    ended = time.monotonic()
    for thread in threads:
        thread.join(ASK_S + 5)
    if os.path.isdir(directory):
        text = json.dumps(seen.result(began, ended, watch.sessions, watch.topic))
        _write(os.path.join(directory, RESULT + ".new"), text)
        os.replace(os.path.join(directory, RESULT + ".new"), os.path.join(directory, RESULT))
    until = time.monotonic() + FETCH_S  # a run that died fetches nothing
    while os.path.isdir(directory) and time.monotonic() < until:
        time.sleep(1)
    shutil.rmtree(directory, ignore_errors=True)


def _write(path: str, text: str) -> None:
    with contextlib.suppress(OSError), open(path, "w", encoding="utf-8") as stream:
        stream.write(text)


def _watch_server(seen: Watched, server: HostPort, context: Any) -> None:
    """Note the sessions that are connected to a ZooKeeper server; none while it gives no answer."""
    while not seen.stopping.is_set():
        try:
            answer = zk_wire.four_letter(server, "cons", ASK_S, context)
            seen.connected[str(server)] = [client["session"] for client in ensemble_cut.parse_clients(answer)]
        except WireError:
            if str(server) in seen.connected:
                seen.connected[str(server)] = []
        seen.stopping.wait(PAUSE_S)


def _watch_broker(seen: Watched, address: str, partitions: List[Tuple[str, int]], connections: Connections) -> None:
    """Note when a broker answers what passes the queues that Produce and Fetch pass (probes.cluster.latency)."""
    asked = latency.requests(partitions)
    while not seen.stopping.is_set():
        try:
            with KafkaConnection(parse_host_port(address), connections.client, ASK_S) as connection:
                connection.api_versions()
                connection.authenticate()
                while not seen.stopping.is_set():
                    for request in asked:
                        connection.request(request, ASK_S)
                    seen.answers[address].append(time.monotonic())
                    seen.stopping.wait(PAUSE_S)
        except WireError:  # the time without an answer is what is measured
            seen.stopping.wait(PAUSE_S)


def _produce(seen: Watched, topic: str, connections: Connections) -> None:
    """Write a message each MESSAGE_S with acks=all and idempotence, and note when each is acknowledged."""

    def reported(error: Any, _message: Any) -> None:
        if error is None:
            seen.acks.append(time.monotonic())
        else:
            seen.failed.append(str(error))

    servers = ",".join(map(str, connections.bootstrap))
    options = {"bootstrap.servers": servers, "enable.idempotence": True, "linger.ms": 0}
    producer = Producer({**options, **connections.client.librdkafka()})
    while not seen.stopping.is_set():
        with contextlib.suppress(BufferError):
            producer.produce(topic, b"quorumshift rehearsal", on_delivery=reported)
        producer.poll(MESSAGE_S)
    producer.flush(ASK_S + 3)
