# Copyright: (c) 2026, Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a host tells of a ZooKeeper that runs there: its data's place, its latency, the heap of its JVM."""

from __future__ import annotations

import os
import subprocess

import pytest
from ansible_collections.quorumshift.kafka.plugins.module_utils.probes import memory, zk_host, zk_servers

from tests.integration import servers


@pytest.fixture(scope="module")
def server():
    with servers.workdir("zookeeper_host") as home:
        logs = home / "log"
        logs.mkdir()
        collector = ("-XX:-UseSerialGC", "-XX:+UseG1GC")
        with servers.zookeeper(home, settings={"dataLogDir": str(logs)}, jvm=collector) as one:
            yield one


def test_where_it_keeps_its_data(server):
    (reported,) = [one for one in zk_host.gather() if one["config"] == str(server.home / "zoo.cfg")]
    data, log = reported["dirs"]
    assert reported["error"] is None
    assert (data["path"], log["path"]) == (str(server.home / "data"), str(server.home.parent / "log"))
    newest = max((server.home / "data" / "version-2").glob("snapshot.*"), key=lambda path: path.stat().st_mtime)
    assert data["snapshot_bytes"] == newest.stat().st_size > 0 == log["snapshot_bytes"]
    free = os.statvfs(server.home)
    assert abs(data["free_bytes"] - free.f_bavail * free.f_frsize) < 1 << 30 and not data["read_only"]


def test_how_fast_it_answers(server):
    reported = zk_servers.gather([server.address], None, 10)[str(server.address)]
    average, longest = reported["latency_ms"]
    assert 0 <= average <= longest and reported["mode"] == "standalone"


def test_how_full_its_heap_is(server):
    reported = memory.heap(server.pid)
    command = ["jstat", "-gccapacity", str(server.pid)]
    jstat = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    names, numbers = (line.split() for line in jstat.splitlines())
    assert reported["collector"].startswith("G1")
    assert reported["max_bytes"] // 1024 == float(dict(zip(names, numbers))["OGCMX"])
    assert 0 < reported["old_used_bytes"] < reported["max_bytes"]


def test_no_heap_of_what_is_no_jvm():
    assert memory.heap(os.getpid()) is None
    assert memory.heap(0) is None


def test_a_hosts_memory():
    reported = memory.host()
    assert 0 < reported["available_bytes"] < reported["total_bytes"]
