# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Each module that changes a host leaves one of another cluster, or another node, as it was. Run as Ansible does."""

from __future__ import annotations

import os
import pathlib

import pytest
from ansible_collections.quorumshift.kafka.plugins.module_utils.host import host_state
from ansible_collections.quorumshift.kafka.plugins.module_utils.probes.host import clock

from tests.modules import run

OWN, FOREIGN, RUN = "OwnClusterId__________", "ForeignClusterId______", "run"
CONTROLLER = "process.roles=controller\nnode.id=3001\nzookeeper.metadata.migration.enable=true\nlog.dirs={}/data\n"
BROKER = "broker.id=3001\nzookeeper.connect=z:2181\nlog.dirs={}/data\n"
TOKENS = {"controller_wipe": "brokers_plain", "node_restart": "before_trigger"}


def node(tmp_path, text):
    """Return what the node of a properties file is on its host."""
    role = "controller" if text is CONTROLLER else "broker"
    return {"state_dir": str(tmp_path / "state"), "cluster_id": OWN, "role": role, "node_id": 3001}


def host(tmp_path, text, cluster_id=FOREIGN, node_id=3001):
    """Make a host with a formatted log directory, and with the run's own lock under the run's cluster id."""
    (tmp_path / "node.properties").write_text(text.format(tmp_path))
    (tmp_path / "data" / "orders-0").mkdir(parents=True)
    (tmp_path / "data" / "orders-0" / "00000000000000000000.log").write_text("records")
    (tmp_path / "data" / "meta.properties").write_text(f"version=1\ncluster.id={cluster_id}\nnode.id={node_id}\n")
    directory = host_state.make_node_directory(node(tmp_path, text))
    lock = {"number": 1, "run": RUN, "direction": "back", "user": "u", "host": "h", "since": 1.0, "closed": False}
    host_state.write_json(os.path.join(directory, host_state.RUN_LOCK), lock)
    pathlib.Path(directory, host_state.LOCK).touch()


def options(tmp_path, module):
    """Return a module's options for a change of this host."""
    common = {"cluster_id": OWN, "config_file": str(tmp_path / "node.properties"), "log_dir": str(tmp_path / "data")}
    held = {"run": RUN, "state_dir": str(tmp_path / "state")}
    now = clock.read()
    role = "broker" if module == "node_restart" else "controller"
    token = {"gate": TOKENS.get(module), "cluster_id": OWN, "run": RUN, "hosts": {"h": f"{role}-3001"}}
    token["clocks"] = {now["boot_id"]: now["uptime_s"]}
    service = {"service": "kafka-none", "node_id": 3001}
    if module == "service_stop":
        return {**common, **service, "role": role, "state": "masked"}
    if module == "run":
        return {
            **{**common, **held, "state": "locked", "run_lock": {"number": 2, "run": RUN}},
            **{"role": role, "node_id": 3001},
        }
    if module == "controller_wipe":
        return {**common, **service, **held, "host": "h", "gate_token": token}
    common.pop("log_dir")
    restart = {"restart_id": "run/zk_migration/h", "kind": "zk_migration", "log_file": str(tmp_path / "server.log")}
    changes = {"zookeeper.metadata.migration.enable": "true"}
    return {
        **common,
        **service,
        **held,
        **restart,
        "host": "h",
        "role": role,
        "gate_token": token,
        "changes": changes,
        "run_key": "ab" * 32,
    }


def contents(path):
    return {str(file): file.read_bytes() for file in sorted(path.rglob("*")) if file.is_file()}


@pytest.mark.parametrize("module", ["service_stop", "run", "controller_wipe", "node_restart"])
def test_a_host_of_another_cluster_is_left_alone(tmp_path, module):
    host(tmp_path, BROKER if module == "node_restart" else CONTROLLER)
    before = contents(tmp_path)
    result = run(module, **options(tmp_path, module))
    assert result.get("failed") and f"meta.properties has cluster id {FOREIGN}" in result["msg"], result
    assert contents(tmp_path) == before


@pytest.mark.parametrize("module", ["service_stop", "controller_wipe", "node_restart"])
def test_another_node_of_the_same_cluster_is_left_alone(tmp_path, module):
    host(tmp_path, BROKER if module == "node_restart" else CONTROLLER, OWN, 3002)
    before = contents(tmp_path)
    result = run(module, **options(tmp_path, module))
    assert result.get("failed") and "has node id 3002, and this run expects 3001" in result["msg"], result
    assert contents(tmp_path) == before


def test_the_own_controller_is_wiped(tmp_path):
    host(tmp_path, CONTROLLER, OWN)
    result = run("controller_wipe", **options(tmp_path, "controller_wipe"))
    assert result.get("emptied") == [str(tmp_path / "data")] and result["config_file"] == "removed", result
    assert os.listdir(tmp_path / "data") == [] and not (tmp_path / "node.properties").exists()


@pytest.mark.parametrize(
    "changed, refused",
    [
        ({}, None),
        ({"closed": True}, "this host is locked by"),
        ({"run": "another", "number": 2}, "another"),
        (None, "this run does not hold the run lock of this host"),
    ],
)
def test_a_run_holds_the_lock_that_is_its_own_and_open(tmp_path, changed, refused):
    host(tmp_path, BROKER, OWN)
    given = node(tmp_path, BROKER)
    path = pathlib.Path(host_state.node_directory(given), host_state.RUN_LOCK)
    if changed is None:
        path.unlink()
    else:
        host_state.write_json(str(path), {**host_state.read_json(str(path)), **changed})
    result = run("run", state="held", run=RUN, **given)
    assert bool(result.get("failed")) is bool(refused), result
    assert not refused or (refused in result["msg"] and "Nothing more was changed" in result["msg"]), result
