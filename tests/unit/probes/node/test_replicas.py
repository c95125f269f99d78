# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Topic ids in log directories that brokers, operators and crashes have left."""

from __future__ import annotations

import json
import threading
import time

import pytest
from ansible_collections.quorumshift.kafka.plugins.module_utils.probes.node import replicas

ONE, TWO = "rEkb6zsIRuC1dqhNSBF0Nw", "AAkb6zsIRuC1dqhNSBF0Nw"


@pytest.fixture
def write(tmp_path, monkeypatch):
    """A function that creates a partition's directory with this partition.metadata."""
    monkeypatch.setattr(replicas, "WRITTEN_S", 0.3)

    def written(path, content):
        (tmp_path / path).mkdir(parents=True, exist_ok=True)
        if content is not None:
            text = f"version: 0\ntopic_id: {content}\n" if len(content) == 22 else content
            (tmp_path / path / "partition.metadata").write_text(text)

    return written


def gather(tmp_path, *names):
    return replicas.collect([str(tmp_path / name) for name in names])


def test_topic_is_listed_once_with_its_partitions(tmp_path, write):
    for number in (10, 2, 0):
        write(f"a/orders-{number}", ONE)
    write("b/orders-1", ONE)
    write("b/a.b_c-d-7", TWO)
    assert gather(tmp_path, "a", "b") == {
        "topics": {"orders": [ONE, [0, 1, 2, 10]], "a.b_c-d": [TWO, [7]]},
        "others": [],
        "twice": [],
    }


def test_other_directories_are_skipped(tmp_path, write):
    for name in ("__cluster_metadata-0", "t-0.0d2f-delete", "t-0.0d2f-future", "t-0.0d2f-stray", "lost+found", "x"):
        write(f"a/{name}", "whatever")
    assert gather(tmp_path, "a", "missing") == {"topics": {}, "others": [], "twice": []}


def test_different_missing_and_invalid_ids_are_listed_with_their_path(tmp_path, write):
    write("a/orders-0", ONE)
    write("a/orders-1", TWO)
    write("a/orders-2", ONE)
    write("a/silent-0", None)
    write("a/torn-0", "version: 0\ntopic_id: ?\n")
    write("b/orders-0", ONE)
    found = gather(tmp_path, "a", "b")
    assert found["topics"] == {"orders": [ONE, [0, 0, 2]]} and found["twice"] == ["orders-0"]
    assert [(other["topic"], other["partition"], other["id"], bool(other["error"])) for other in found["others"]] == [
        ("orders", 1, TWO, False),
        ("silent", 0, None, False),
        ("torn", 0, None, True),
    ]
    assert found["others"][2]["error"] == (
        f"{tmp_path}/a/torn-0/partition.metadata does not contain a topic id in Kafka's format"
    )


def test_new_partition_is_read_again_until_it_has_its_id(tmp_path, write, monkeypatch):
    monkeypatch.setattr(replicas, "WRITTEN_S", 20)
    write("a/new-0", None)
    writer = threading.Timer(0.3, write, ["a/new-0", ONE])
    writer.start()
    assert gather(tmp_path, "a")["topics"] == {"new": [ONE, [0]]}
    writer.join()


def test_partition_that_is_deleted_meanwhile_is_left_out(tmp_path, write, monkeypatch):
    monkeypatch.setattr(replicas, "WRITTEN_S", 20)
    write("a/old-0", None)
    remover = threading.Timer(0.3, (tmp_path / "a" / "old-0").rmdir)
    remover.start()
    assert gather(tmp_path, "a")["others"] == []
    remover.join()


def test_ten_thousand_partitions_are_read_fast_and_stay_small(tmp_path, write):
    for number in range(10_000):
        write(f"a/topic.of.this.cluster.{number // 10}-{number % 10}", ONE)
    began = time.monotonic()
    found = gather(tmp_path, "a")
    took = time.monotonic() - began
    assert len(json.dumps(found)) < 100_000 and took < 20, took
