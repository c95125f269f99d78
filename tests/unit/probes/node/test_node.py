# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import fcntl
import os
import resource

import pytest
from ansible_collections.quorumshift.kafka.plugins.module_utils.probes.node import node


@pytest.fixture
def read(tmp_path):
    """The facts of a controller whose log directory is tmp_path/metadata by its inventory."""

    def facts(file="controller.properties"):
        return node.collect("controller", str(tmp_path / file), "none", "key", "", "", str(tmp_path / "metadata"))

    (tmp_path / "metadata").mkdir()
    return facts


def test_log_directory_of_the_inventory_is_read_without_a_properties_file(read, tmp_path):
    assert [log["empty"] for log in read()["log_dirs"]] == [True]
    (tmp_path / "metadata" / "meta.properties").write_text("cluster.id=other\nnode.id=9\n")
    facts = read()
    assert facts["log_dirs"][0]["meta"] == {"cluster.id": "other", "node.id": "9"}
    assert not facts["log_dirs"][0]["empty"]
    assert facts["node_id"] is None  # the directory may be another node's


def test_metadata_log_of_the_inventory_is_read_without_a_properties_file(read, tmp_path):
    (tmp_path / "metadata" / node.METADATA_LOG).mkdir()
    assert read()["metadata_log"]["dir"].endswith(node.METADATA_LOG)


def test_a_metadata_log_that_cannot_be_read_is_a_fact(read, tmp_path):
    directory = tmp_path / "metadata" / node.METADATA_LOG
    directory.mkdir()
    (directory / "00000000000000000000.log").write_bytes(b"x" * 100)
    assert "error" in read()["metadata_log"]


def test_properties_file_overrides_the_inventorys_log_directory(read, tmp_path):
    (tmp_path / "controller.properties").write_text(f"node.id=101\nlog.dirs={tmp_path}/elsewhere\n")
    facts = read()
    assert [log["path"] for log in facts["log_dirs"]] == [f"{tmp_path}/elsewhere"]
    assert facts["node_id"] == 101


@pytest.mark.parametrize(("name", "empty"), [("lost+found", True), (".lock", True), ("old", False)])
def test_directory_with_only_ignored_names_is_empty(read, tmp_path, name, empty):
    (tmp_path / "metadata" / name).touch()
    assert read()["log_dirs"][0]["empty"] is empty


def test_limits_count_open_files_and_memory_maps(tmp_path):
    before = node.read_limits(os.getpid())
    with open(tmp_path / "one", "w", encoding="ascii"):
        after = node.read_limits(os.getpid())
    assert after["open_files"][0] == before["open_files"][0] + 1
    soft, _hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    assert after["open_files"][1] == soft and 0 < after["memory_maps"][0] < after["memory_maps"][1]
    assert node.read_limits(0) is None


def test_log_directory_is_in_use_while_the_process_locks_it(tmp_path):
    """Kafka locks each log directory (Java's FileLock uses fcntl), and releases it if the directory fails."""
    for name in ("one", "two", "three"):
        (tmp_path / name).mkdir()

    def in_use():
        log_dirs = node._log_dirs([str(tmp_path / name) for name in ("one", "two", "three")], os.getpid())
        return [log["in_use"] for log in log_dirs]

    with open(tmp_path / "one" / ".lock", "w", encoding="ascii") as lock_file:
        with open(tmp_path / "two" / ".lock", "w", encoding="ascii") as two:
            fcntl.lockf(lock_file, fcntl.LOCK_EX)
            fcntl.lockf(two, fcntl.LOCK_EX)
            assert in_use() == [True, True, False]
        assert in_use() == [True, False, False]
    assert in_use() == [None, None, None]
    assert node.read_locks(0) is None


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("broker.id=1\nzookeeper.connect=z:2181\n", ("broker", 1)),
        ("node.id=1\nprocess.roles=broker\n", ("broker", 1)),
        ("node.id=1\nprocess.roles=controller\n", ("controller", 1)),
        ("node.id=1\nprocess.roles=broker,controller\n", (None, 1)),
        ("num.io.threads=8\n", (None, 7)),
        (None, (None, None)),
    ],
)
def test_which_node_a_properties_file_is_of(tmp_path, text, found):
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "meta.properties").write_text("version=1\nnode.id=7\n")
    if text is not None:
        (tmp_path / "node.properties").write_text(f"{text}log.dirs={tmp_path}/data\n")
    assert node.read_own(str(tmp_path / "node.properties")) == found
