# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The directory of a node on its host, and what an earlier version left beside it."""

from __future__ import annotations

import json
import os
import pathlib
import subprocess

import pytest
from ansible_collections.quorumshift.kafka.plugins.module_utils.core.run import node_key
from ansible_collections.quorumshift.kafka.plugins.module_utils.host import host_state

CLUSTER = "phUKKf3TSny1o9Yap379dw"
RECORD = {"id": "r/kraft/b1", "service": "kafka", "config_file": "/etc/kafka/server.properties", "outcome": None}


def given(tmp_path, role="broker", node_id=1, **more):
    return {"state_dir": str(tmp_path), "cluster_id": CLUSTER, "role": role, "node_id": node_id, **more}


def leave(tmp_path, name, record=None):
    """Leave a file of an earlier version."""
    path = tmp_path / CLUSTER / name
    path.parent.mkdir(exist_ok=True)
    if name == host_state.CONFIGS:
        path.mkdir()
        path = path / "server.properties.before-kraft"
    path.write_text(json.dumps(record or {}))
    return path


def test_nodes_of_one_host_have_different_directories(tmp_path):
    nodes = [given(tmp_path, role, number) for role in node_key.ROLES for number in (1, 11)]
    paths = {host_state.make_node_directory(node) for node in nodes}
    assert len(paths) == 4 and {os.path.dirname(path) for path in paths} == {str(tmp_path / CLUSTER)}
    assert {os.stat(path).st_mode & 0o777 for path in (*paths, tmp_path / CLUSTER)} == {0o700}
    for name in ("backup", "digest_key.json", "broker-x", "broker-", "xbroker-1"):
        (tmp_path / CLUSTER / name).mkdir()
    found = host_state.find_nodes(str(tmp_path / CLUSTER))
    assert set(found.values()) == paths and set(found) == {"broker-1", "broker-11", "controller-1", "controller-11"}


@pytest.mark.parametrize(("role", "node_id"), [("broker", None), (None, 1), ("zookeeper", 1), ("../broker", 1)])
def test_what_is_no_node_has_no_directory(tmp_path, role, node_id):
    with pytest.raises(ValueError, match="QS-RUN-016"):
        host_state.node_directory(given(tmp_path, role, node_id))


def test_an_id_of_the_inventory_may_be_text(tmp_path):
    assert host_state.node_directory(given(tmp_path, node_id="1")) == host_state.node_directory(given(tmp_path))
    with pytest.raises(ValueError, match="x"):
        host_state.node_directory(given(tmp_path, node_id="1/../../x"))


@pytest.mark.parametrize("name", host_state.OF_A_NODE)
@pytest.mark.parametrize("exists", [False, True])
def test_each_file_of_an_earlier_version_is_refused(tmp_path, name, exists):
    if exists:
        host_state.make_node_directory(given(tmp_path))
    leave(tmp_path, name)
    for find in (host_state.node_directory, host_state.make_node_directory):
        with pytest.raises(
            host_state.OldLayoutError, match=rf"an earlier version: {name}\. If they belong to broker-1"
        ):
            find(given(tmp_path))
    assert (tmp_path / CLUSTER / "broker-1").exists() is exists


def test_a_broken_link_is_a_file_too(tmp_path):
    (tmp_path / CLUSTER).mkdir()
    (tmp_path / CLUSTER / host_state.RESTART).symlink_to(tmp_path / "gone")
    with pytest.raises(host_state.OldLayoutError, match=r"restart\.json"):
        host_state.node_directory(given(tmp_path))


def command_of(error):
    """Return the command in a message."""
    return str(error).partition(": cd ")[2].partition(" (QS-")[0]


def test_the_command_of_the_message_gives_the_node_its_files(tmp_path):
    left = {name: leave(tmp_path, name, RECORD).relative_to(tmp_path / CLUSTER) for name in host_state.OF_A_NODE}
    (tmp_path / CLUSTER / "backup").mkdir()
    with pytest.raises(host_state.OldLayoutError) as refused:
        host_state.node_directory(given(tmp_path, config_file="/etc/kafka/server.properties"))
    assert " of an earlier version for kafka (/etc/kafka/server.properties)" in str(refused.value)
    subprocess.run(f"cd {command_of(refused.value)}", shell=True, check=True)
    directory = pathlib.Path(host_state.node_directory(given(tmp_path)))
    assert directory.name == "broker-1" and all((directory / path).exists() for path in left.values())
    assert (tmp_path / CLUSTER / "backup").exists()


def test_the_command_overwrites_no_record_of_the_node(tmp_path):
    kept = pathlib.Path(host_state.make_node_directory(given(tmp_path)), host_state.RESTART)
    kept.write_text("{}")
    leave(tmp_path, host_state.RESTART, RECORD)
    with pytest.raises(host_state.OldLayoutError) as refused:
        host_state.node_directory(given(tmp_path))
    done = subprocess.run(f"cd {command_of(refused.value)}", shell=True, check=False, capture_output=True)
    assert done.returncode and kept.read_text() == "{}" and (tmp_path / CLUSTER / host_state.RESTART).exists()


def test_a_record_of_another_node_is_not_given_to_this_one(tmp_path):
    leave(tmp_path, host_state.RESTART, RECORD)
    controller = given(tmp_path, "controller", 3000, config_file="/etc/kafka/controller.properties")
    with pytest.raises(host_state.OldLayoutError, match="belong to another node of this host") as refused:
        host_state.node_directory(controller)
    assert "mkdir -m 0700 NODE && mv restart.json NODE/" in str(refused.value)
    (tmp_path / "link").symlink_to("/etc/kafka/server.properties")
    with pytest.raises(host_state.OldLayoutError, match="If they belong to broker-1"):
        host_state.node_directory(given(tmp_path, config_file=str(tmp_path / "link")))


def test_a_running_restart_of_an_earlier_version_is_awaited(tmp_path):
    leave(tmp_path, host_state.RESTART, RECORD)
    running = pytest.raises(host_state.OldLayoutError, match=r"is running\. Wait until it has ended")
    with host_state.lock(str(tmp_path / CLUSTER)), running as refused:
        host_state.node_directory(given(tmp_path))
    assert " mv " not in str(refused.value)
