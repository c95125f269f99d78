# Copyright: (c) 2026, Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import fcntl
import os
import resource

import pytest
from ansible_collections.quorumshift.kafka.plugins.module_utils.probes import node


@pytest.fixture
def read(tmp_path):
    """The facts of a controller whose log directory is tmp_path/metadata, as its inventory says."""

    def facts(file="controller.properties"):
        return node.facts("controller", str(tmp_path / file), "none", "key", "", "", str(tmp_path / "metadata"))

    (tmp_path / "metadata").mkdir()
    return facts


def test_a_directory_is_seen_before_there_is_a_file_that_names_it(read, tmp_path):
    assert [reported["empty"] for reported in read()["log_dirs"]] == [True]
    (tmp_path / "metadata" / "meta.properties").write_text("cluster.id=other\nnode.id=9\n")
    reported = read()
    assert reported["log_dirs"][0]["meta"] == {"cluster.id": "other", "node.id": "9"}
    assert not reported["log_dirs"][0]["empty"]
    assert reported["node_id"] is None  # somebody else's


def test_a_metadata_log_is_seen_before_there_is_a_file_that_names_it(read, tmp_path):
    (tmp_path / "metadata" / node.METADATA_LOG).mkdir()
    assert read()["metadata_log"]["dir"].endswith(node.METADATA_LOG)


def test_the_file_names_the_directory(read, tmp_path):
    (tmp_path / "controller.properties").write_text(f"node.id=101\nlog.dirs={tmp_path}/elsewhere\n")
    reported = read()
    assert [one["path"] for one in reported["log_dirs"]] == [f"{tmp_path}/elsewhere"]
    assert reported["node_id"] == 101


@pytest.mark.parametrize(("name", "empty"), [("lost+found", True), (".lock", True), ("old", False)])
def test_what_counts_in_a_directory(read, tmp_path, name, empty):
    (tmp_path / "metadata" / name).touch()
    assert read()["log_dirs"][0]["empty"] is empty


def test_what_a_process_has_and_may_have(tmp_path):
    """Of this very one, which has just opened a file more."""
    before = node.limits(os.getpid())
    with open(tmp_path / "one", "w", encoding="ascii"):
        after = node.limits(os.getpid())
    assert after["open_files"][0] == before["open_files"][0] + 1
    soft, _hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    assert after["open_files"][1] == soft and 0 < after["memory_maps"][0] < after["memory_maps"][1]
    assert node.limits(0) is None


def test_which_log_directories_a_process_uses(tmp_path):
    """As Kafka locks them (Java's FileLock is fcntl's), and lets go of one that has failed."""
    for name in ("one", "two", "three"):
        (tmp_path / name).mkdir()

    def in_use():
        reported = node._log_dirs([str(tmp_path / name) for name in ("one", "two", "three")], os.getpid())
        return [one["in_use"] for one in reported]

    with open(tmp_path / "one" / ".lock", "w", encoding="ascii") as one:
        with open(tmp_path / "two" / ".lock", "w", encoding="ascii") as two:
            fcntl.lockf(one, fcntl.LOCK_EX)
            fcntl.lockf(two, fcntl.LOCK_EX)
            assert in_use() == [True, True, False]
        assert in_use() == [True, False, False]
    assert in_use() == [None, None, None]
    assert node.locks(0) is None
