# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Facts of a ZooKeeper on its host: its data directories, its latency, its JVM's heap."""

from __future__ import annotations

import os
import subprocess

import pytest
from ansible_collections.quorumshift.kafka.plugins.module_utils.probes.host import memory
from ansible_collections.quorumshift.kafka.plugins.module_utils.probes.zookeeper import zk_host, zk_servers

from tests.integration import servers


@pytest.fixture(scope="module")
def server():
    with servers.workdir("zookeeper_host") as home:
        logs = home / "log"
        logs.mkdir()
        collector = ("-XX:-UseSerialGC", "-XX:+UseG1GC")
        with servers.zookeeper(home, settings={"dataLogDir": str(logs)}, jvm=collector) as zookeeper:
            yield zookeeper


def test_data_directories_are_found(server):
    (facts,) = [facts for facts in zk_host.collect() if facts["config"] == str(server.home / "zoo.cfg")]
    data, log = facts["dirs"]
    assert facts["error"] is None and facts["settings"] == {"tickTime": "500"}
    assert zk_host.read_arguments(str(server.home / "zoo.cfg"))[-1] == str(server.home / "zoo.cfg")
    assert zk_host.read_arguments("/missing/zoo.cfg") == []
    assert (data["path"], log["path"]) == (str(server.home / "data"), str(server.home.parent / "log"))
    newest = max((server.home / "data" / "version-2").glob("snapshot.*"), key=lambda path: path.stat().st_mtime)
    assert data["snapshot_bytes"] == newest.stat().st_size > 0 == log["snapshot_bytes"]
    free = os.statvfs(server.home)
    assert abs(data["free_bytes"] - free.f_bavail * free.f_frsize) < 1 << 30 and not data["read_only"]


def test_latency_and_mode_are_read(server):
    facts = zk_servers.collect([server.address], None, 10)[str(server.address)]
    average, longest = facts["latency_ms"]
    assert 0 <= average <= longest and facts["mode"] == "standalone"


def test_heap_agrees_with_jstat(server):
    heap = memory.read_heap(server.pid)
    command = ["jstat", "-gccapacity", str(server.pid)]
    jstat = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    names, numbers = (line.split() for line in jstat.splitlines())
    assert heap["collector"].startswith("G1")
    assert heap["max_bytes"] // 1024 == float(dict(zip(names, numbers))["OGCMX"])
    assert 0 < heap["old_used_bytes"] < heap["max_bytes"]


def test_a_process_without_a_jvm_has_no_heap():
    assert memory.read_heap(os.getpid()) is None
    assert memory.read_heap(0) is None


def test_memory_of_the_host():
    host = memory.read_host()
    assert 0 < host["available_bytes"] < host["total_bytes"]
