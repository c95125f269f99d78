# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How far a broker has loaded its partitions, from lines of Kafka 3.9's log."""

from __future__ import annotations

import pytest
from ansible_collections.quorumshift.kafka.plugins.module_utils.probes.node import loading

UNCLEAN = "Recovering 40 logs from /data1 since no clean shutdown file was found (kafka.log.LogManager)"
CLEAN = "Skipping recovery of 2 logs from /data2 since clean shutdown file was found (kafka.log.LogManager)"
SEGMENT = "[LogLoader partition=t-0, dir=/data1] Recovering unflushed segment 0. 1/9 recovered for t-0. (LogLoader)"
ROLLED = "[UnifiedLog partition=t-0, dir=/data1] Rolled new log segment at offset 9 in 1 ms. (kafka.log.UnifiedLog)"
RETRIES = "[NetworkClient id=1] Node 101 disconnected. (org.apache.kafka.clients.NetworkClient)"


def loaded(number, total, directory, partition="t-0"):
    log = f"Log(dir={directory}/{partition}, topic=t, partition=0, highWatermark=0, logEndOffset=1)"
    done = f"({number}/{total} completed in {directory})"
    return f"Completed load of {log} with 1 segments, in 9ms {done} (kafka.log.LogManager)"


@pytest.fixture
def log(tmp_path):
    path = tmp_path / "server.log"
    path.write_text(f"[2026-11-21 10:00:00,000] INFO {loaded(40, 40, '/before')}\n")

    def write(*lines):
        with path.open("a") as stream:
            stream.writelines(f"[2026-11-21 10:00:01,000] INFO {line}\n" for line in lines)

    return path, write, loading.Loading(str(path), path.stat().st_size)


def test_each_loaded_partition_is_progress(log):
    _path, write, loading = log
    assert not loading.advanced() and loading.text == ""
    write(UNCLEAN, CLEAN)
    assert loading.advanced()
    write(loaded(1, 40, "/data1"))
    assert loading.advanced() and loading.text == "recovering log directory /data1: 1 of 40 logs"
    assert not loading.advanced()
    write(loaded(1, 2, "/data2"))
    assert loading.advanced() and loading.text == "loading log directory /data2: 1 of 2 logs"


def test_a_segment_of_a_large_partition_is_progress(log):
    _path, write, loading = log
    write(SEGMENT)
    assert loading.advanced() and "Recovering unflushed segment 0. 1/9 recovered" in loading.text
    write(SEGMENT)
    assert not loading.advanced()  # the same again
    write(SEGMENT.replace("1/9", "2/9"))
    assert loading.advanced()
    write(loaded(3, 40, "/data1"), SEGMENT.replace("1/9", "3/9"))
    assert loading.advanced() and loading.text == "loading log directory /data1: 3 of 40 logs"
    write(SEGMENT.replace("1/9", "4/9"))
    assert loading.advanced() and loading.text == "loading log directory /data1: 3 of 40 logs"


def test_other_lines_are_no_progress(log):
    _path, write, loading = log
    write(ROLLED, RETRIES)
    assert not loading.advanced() and loading.text == ""


def test_half_a_line_is_read_when_it_is_complete(log):
    path, _write, loading = log
    line = f"[t] INFO {loaded(7, 40, '/data1')}\n"
    with path.open("a") as stream:
        stream.write(line[:60])
        stream.flush()
        assert not loading.advanced()
        stream.write(line[60:])
    assert loading.advanced() and loading.text.endswith("7 of 40 logs")


def test_a_log_that_was_rotated_or_is_missing(log):
    path, write, loading = log
    path.unlink()
    assert not loading.advanced()
    write(loaded(8, 40, "/data1"))
    assert loading.advanced() and loading.text.endswith("8 of 40 logs")
