# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Measure the module upgrade_audit on a large cluster, whose brokers and controllers are listeners of this process.

    PYTHONPATH=.build:. .venv/bin/python tests/benchmarks/upgrade_audit.py [--brokers N] [--topics N] [--dead N]

They answer ApiVersions, Metadata, DescribeQuorum and DescribeConfigs, and nothing else: another request ends this
program with exit code 1, since an audit only reads. So does a planted config that is not found, or more than 30 s.
The time to read the hosts is not included: each reads itself, at the same time as the others.
"""

from __future__ import annotations

import argparse
import json
import selectors
import socket
import struct
import subprocess
import sys
import threading
import time
from typing import Any

from ansible_collections.quorumshift.kafka.plugins.module_utils.formats.messages import messages

from tests.integration import admin_bed
from tests.unit.core.audit_situation import broker_read, node_read

CLUSTER = "Qs7KfZk2TIK1n0nQ5Qm3Tw"
LIMIT_S = 30.0
ANSWERED = {"ApiVersions": 4, "Metadata": 12, "DescribeQuorum": 2, "DescribeConfigs": 4}
NAMES = {messages.api_key(f"{name}Request"): name for name in ANSWERED}
# What a KRaft broker's listener offers: Produce, but neither LeaderAndIsr (4) nor Vote (52)
OFFERED = [(0, 0, 11), (1, 0, 17), *((key, 0, ANSWERED[name]) for key, name in sorted(NAMES.items()))]
FEATURES = [{"name": "metadata.version", "minVersion": 1, "maxVersion": 21}]
FINALIZED = [{"name": "metadata.version", "maxVersionLevel": 21, "minVersionLevel": 21}]
TOPIC, BROKER, LOGGER = 2, 4, 8
_MODULE = (
    "import json, sys; from tools.module_args import patch_module_args; "
    "from ansible_collections.quorumshift.kafka.plugins.modules import upgrade_audit\n"
    "with patch_module_args(json.load(sys.stdin)): upgrade_audit.main()"
)


class Cluster:
    """The listeners, and what they answer. `strange`: requests that an audit has no reason to send."""

    def __init__(self, brokers: int, topics: int, dead: int) -> None:
        self.selector = selectors.DefaultSelector()
        self.strange: list[str] = []
        self.topics = [f"orders.of.the.{number}th.kind" for number in range(topics)]
        self.ports: list[int] = []
        for number in range(brokers + 1):
            server = socket.socket()
            server.bind(("127.0.0.1", 0))
            self.ports.append(server.getsockname()[1])
            if number >= brokers or number % (brokers // dead if dead else brokers + 1) or not number:
                server.listen(64)
                server.setblocking(False)
                self.selector.register(server, selectors.EVENT_READ, None)
        self.controller = self.ports.pop()
        self.metadata = messages.encode("MetadataResponse", 12, self._metadata())
        threading.Thread(target=self._serve, daemon=True).start()

    def _metadata(self) -> dict[str, Any]:
        count = len(self.ports)
        return {
            "clusterId": CLUSTER,
            "controllerId": 0,
            "brokers": [{"nodeId": n, "host": "127.0.0.1", "port": port} for n, port in enumerate(self.ports)],
            "topics": [
                {
                    "name": name,
                    "partitions": [
                        {
                            "partitionIndex": number,
                            "leaderId": (at + number) % count,
                            "replicaNodes": [(at + number + shift) % count for shift in range(3)],
                            "isrNodes": [(at + number + shift) % count for shift in range(3)],
                        }
                        for number in range(10)
                    ],
                }
                for at, name in enumerate(self.topics)
            ],
        }

    def _serve(self) -> None:
        while True:
            for key, _events in self.selector.select():
                if key.data is None:
                    connection, _address = key.fileobj.accept()
                    self.selector.register(connection, selectors.EVENT_READ, bytearray())
                    continue
                data = key.fileobj.recv(1 << 20)
                if not data:
                    self.selector.unregister(key.fileobj)
                    key.fileobj.close()
                    continue
                key.data.extend(data)
                while len(key.data) >= 4 and len(key.data) >= 4 + struct.unpack(">i", key.data[:4])[0]:
                    size = struct.unpack(">i", key.data[:4])[0]
                    request = bytes(key.data[4 : 4 + size])
                    del key.data[: 4 + size]
                    key.fileobj.sendall(self._answer(request))

    def _answer(self, request: bytes) -> bytes:
        key, version, correlation, length = struct.unpack(">hhih", request[:10])
        name = NAMES.get(key)
        if name is None:
            self.strange.append(f"request {key} v{version}")
            return b""
        at = 10 + max(length, 0)
        body = request[at + 1 :]  # after the header's tags
        if name == "ApiVersions":
            values = {
                "apiKeys": [{"apiKey": k, "minVersion": low, "maxVersion": high} for k, low, high in OFFERED],
                "supportedFeatures": FEATURES,
                "finalizedFeaturesEpoch": 7,
                "finalizedFeatures": FINALIZED,
            }
            answer = b"" + messages.encode("ApiVersionsResponse", version, values)
        elif name == "Metadata":
            answer = b"\0" + self.metadata
        elif name == "DescribeQuorum":
            answer = b"\0" + messages.encode("DescribeQuorumResponse", version, self._quorum())
        else:
            asked = messages.decode("DescribeConfigsRequest", version, body)
            answer = b"\0" + messages.encode("DescribeConfigsResponse", version, {"results": self._configs(asked)})
        whole = struct.pack(">i", correlation) + answer
        return struct.pack(">i", len(whole)) + whole

    def _quorum(self) -> dict[str, Any]:
        voter = {"replicaId": 9000, "logEndOffset": 9, "lastFetchTimestamp": -1, "lastCaughtUpTimestamp": -1}
        partition = {
            **{"partitionIndex": 0, "leaderId": 9000, "leaderEpoch": 1, "highWatermark": 9},
            "currentVoters": [voter],
        }
        node = {"nodeId": 9000, "listeners": [{"name": "C", "host": "127.0.0.1", "port": self.controller}]}
        return {"topics": [{"topicName": "__cluster_metadata", "partitions": [partition]}], "nodes": [node]}

    def _configs(self, asked: dict[str, Any]) -> list[dict[str, Any]]:
        results = []
        for resource in asked["resources"]:
            kind, name = resource["resourceType"], resource["resourceName"]
            found = {}
            if kind == TOPIC:
                found = {"message.downconversion.enable": ("true", 5), "segment.bytes": ("1073741824", 5)}
                if name == self.topics[-1]:
                    found["segment.bytes"] = ("1000", 1)
            elif kind == LOGGER:
                found = {"kafka.request.logger": ("WARN", 6)}
            elif name == "7":
                found = {"log.message.downconversion.enable": ("false", 2)}
            listed = [{"name": key, "value": value, "configSource": source} for key, (value, source) in found.items()]
            results.append({"resourceType": kind, "resourceName": name, "configs": listed})
        return results


def main() -> int:
    """Measure, print the figures, and return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--brokers", type=int, default=300)
    parser.add_argument("--topics", type=int, default=3000, help="each of 10 partitions")
    parser.add_argument("--dead", type=int, default=0, help="how many of the brokers do not listen")
    given = parser.parse_args()
    cluster = Cluster(given.brokers, given.topics, given.dead)
    file = {"path": "/etc/kafka/server.properties", "exists": True, "error": None}
    nodes, facts = {}, {}
    for number, port in enumerate(cluster.ports):
        host = f"kafka-{number}.example.org"
        properties = {"log.segment.bytes": "1000" if number == 9 else "1073741824", "zookeeper.connect": "z1:2181"}
        nodes[host] = {
            **{"role": "broker", "node_id": number, "version": "3.9.2", "service": {"active": True}},
            **{"file": {**file, "properties": {**properties, "listeners": f"PLAINTEXT://127.0.0.1:{port}"}}},
            **{"host_address": "127.0.0.1", "metadata_log": None},
        }
        facts[host] = broker_read()
    nodes["c1"] = {
        **{"role": "controller", "node_id": 9000, "version": "3.9.2", "service": {"active": True}},
        **{"file": {**file, "properties": {"process.roles": "controller"}}, "host_address": "127.0.0.1"},
        **{"metadata_log": None, "address": f"127.0.0.1:{cluster.controller}"},
    }
    facts["c1"] = node_read("controller")
    began = time.monotonic()
    given_to_module = {
        "bootstrap_servers": [f"127.0.0.1:{port}" for port in cluster.ports[:3]],
        **{"nodes": nodes, "facts": facts, "cluster_id": CLUSTER, "report_only": True},
    }
    # On its standard input: a command line has room for less
    argv = [sys.executable, "-c", _MODULE]
    done = subprocess.run(
        argv, input=json.dumps(given_to_module), capture_output=True, text=True, env=admin_bed.ENVIRONMENT, check=False
    )
    result = json.loads(done.stdout) if done.stdout else {"msg": done.stderr[-2000:]}
    took = time.monotonic() - began
    found = {finding["id"]: finding["seen"] for finding in result.get("findings", ())}
    wanted = {"QS-AUDIT-003", "QS-AUDIT-007", "QS-AUDIT-013", "QS-AUDIT-015"} | (
        {"QS-AUDIT-011"} if given.dead else set()
    )
    missing = sorted(wanted - set(found))
    if len(result.get("findings", ())) > 2 * len(wanted):
        missing.append("the grouping of equal findings")
    print(f"{given.brokers} brokers, {given.dead} of them dead, {given.topics} topics: {took:.1f} s")
    for ident, text in sorted(found.items()):
        print(f"  {ident} {text}")
    if missing or cluster.strange or took > LIMIT_S:
        print(f"missing {missing}; strange requests {cluster.strange}; {result.get('msg', '')}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
