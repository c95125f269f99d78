# Copyright: (c) 2026, Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Stub modules: what works on Kafka's and ZooKeeper's data, or on Spark, with the results that each module documents.

A stub takes (world, host, arguments, check mode) and returns the module's result.
"""

from __future__ import annotations

import hashlib
import os
import time
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

from ansible_collections.quorumshift.kafka.plugins.module_utils.core import gates, phase

from tools.failure_proof.world import CLUSTER, METADATA_VERSION, RACKS, World, IDS

NO_SERVICE = {
    "manager": "systemd",
    "name": "none",
    "exists": False,
    "active": False,
    "main_pid": 0,
    "masked": False,
    "sub_state": "dead",
    "active_state": "inactive",
}
COUNTED = {"records": {"TOPIC_RECORD": 3}, "topics": ["orders"], "acls": [], "configs": []}
Stub = Callable[[World, str, dict[str, Any], bool], dict[str, Any]]


def unregister(world: World, broker: int) -> bool:
    """Remove a broker's registration from the quorum; return whether it is still there."""
    with world.changing() as state:
        state["log"]["brokers"].pop(str(broker), None)
    return False


def features(world: World) -> dict[str, Any]:
    """Return the features of every node (probes.features.gather)."""
    level = world.state()["metadata_version"]
    ranges = {"metadata.version": [1, 25]}
    nodes = [{"id": number, "role": "broker" if number < 100 else "controller", "error": None, "supported": ranges} for number in IDS.values()]
    return {"finalized": {"metadata.version": level}, "epoch": 5, "nodes": nodes}


def admin(world: World) -> Any:
    """Return a class in place of ClusterAdmin."""

    class Admin:
        def __init__(self, *_given: Any) -> None:
            self.cluster_id = CLUSTER

        def in_flight(self) -> dict[Any, Any]:
            return {}

    return Admin


def kraft_preflight(_world: World, _host: str, _args: dict[str, Any], _check: bool) -> dict[str, Any]:
    return {"changed": False, "findings": [], "checks": ["versions"]}


def zk_backup(world: World, _host: str, args: dict[str, Any], check: bool) -> dict[str, Any]:
    path = args["path"]
    common = {"path": path, "cluster_id": CLUSTER, "znodes": 10, "data_bytes": 2048, "ephemerals": 1, "seconds": 0.1}
    if args.get("state", "taken") == "verified":
        return {"changed": False, **common, "equal": 10, "changed_since": {}, "differ": [], "differ_count": 0}
    if not check:
        with open(path, "wb") as stream:
            stream.write(b"backup")
    sha256 = hashlib.sha256(b"backup").hexdigest()
    return {"changed": True, **common, "sha256": sha256, "file_bytes": 6, "taken_at": "now", "zxid": 10000}


def initial_copy(_world: World, _host: str, args: dict[str, Any], _check: bool) -> dict[str, Any]:
    if args["state"] == "expected":
        return {"changed": False, "counted": COUNTED}
    if args["state"] == "awaited":
        return {"changed": False, "done": True, "waited_s": 0.0, "carry": {}, "offset": 100, "counted": COUNTED}
    nothing: dict[str, Any] = {"damage": [], "differences": [], "moved": [], "unseen": None}
    return {"changed": False, **nothing, "records": {"TOPIC_RECORD": 3}}


def zk_partition_states(_world: World, _host: str, _args: dict[str, Any], _check: bool) -> dict[str, Any]:
    return {"changed": False, "created": []}


def restore_zk_controller(world: World, _host: str, _args: dict[str, Any], check: bool) -> dict[str, Any]:
    if not check:
        with world.changing() as state:
            state["zookeeper"].update(owner="zookeeper", migration=None)
    return {
        "changed": True,
        "controller_epoch": 20,
        "raised": 0,
        "elected": 1,
        "without_s": 1.0,
        "deleted": ["/controller", "/migration"],
    }


def preferred_leader_election(_world: World, _host: str, _args: dict[str, Any], _check: bool) -> dict[str, Any]:
    return {"changed": False, "partitions": [], "elected": 0, "cluster_id": CLUSTER}


def kafka_features(world: World, _host: str, args: dict[str, Any], check: bool) -> dict[str, Any]:
    before = world.state()["metadata_version"]
    level = int(args["features"]["metadata.version"])
    if not check and level != before:
        with world.changing() as state:
            state["metadata_version"] = level
    return {"changed": level != before, "results": [], "finalized": {"metadata.version": level}, "epoch": 6, "waited_s": 0}


STUBS: dict[str, Stub] = {
    one.__name__: one
    for one in (
        kraft_preflight,
        zk_backup,
        initial_copy,
        zk_partition_states,
        restore_zk_controller,
        preferred_leader_election,
        kafka_features,
    )
}
