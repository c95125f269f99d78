# Copyright: (c) 2026, Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Stub modules: what works on Kafka's and ZooKeeper's data, or on Spark, with the results that each module documents.

A stub takes (world, host, arguments, check mode) and returns the module's result.
"""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

from ansible_collections.quorumshift.kafka.plugins.module_utils.core import gates, phase, restoring
from ansible_collections.quorumshift.kafka.plugins.module_utils.formats import properties

from tools.failure_proof.world import BACKUP, CLUSTER, END_OFFSET, IDS, World

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
    finalized = {"metadata.version": world.state()["metadata_version"]}
    served = {"supported": {"metadata.version": [1, 25]}, "finalized": finalized, "epoch": 5}
    nodes = {}
    for number in IDS.values():
        role = "broker" if number < 100 else "controller"
        nodes[f"{role} {number}"] = {"role": role, "id": number, "address": f"127.0.0.1:{9000 + number}", **served}
    quorum = {"mode": "kraft", "static_voters": True, "migrating": None, "voters_unknown": []}
    return {**quorum, "finalized": finalized, "epoch": 5, "nodes": nodes}


def admin(world: World) -> Any:
    """Return a class in place of ClusterAdmin."""

    class Admin:
        def __init__(self, *_given: Any) -> None:
            self.cluster_id = CLUSTER
            self.brokers: dict[int, Any] = {}
            self.partitions: dict[Any, Any] = {}

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
            stream.write(BACKUP)
    sha256 = hashlib.sha256(BACKUP).hexdigest()
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
    return {
        "changed": level != before,
        "results": [],
        "finalized": {"metadata.version": level},
        "epoch": 6,
        "waited_s": 0,
    }


def zk_restore(world: World, _host: str, args: dict[str, Any], check: bool) -> dict[str, Any]:
    facts = world.collect(_addressed(args["nodes"]), False)
    seen = phase.detect(facts)
    if args["state"] == "admitted":
        brokers = [host for host, node in facts["nodes"].items() if node["role"] == "broker"]
        token = gates.make_token("before_revert", seen.phase, args["run"], facts, brokers)
        return {"changed": False, "gate_token": token}
    token = restoring.token(CLUSTER, hashlib.sha256(BACKUP).hexdigest(), [])
    restored = bool(world.state()["stubs"].get("restored"))
    result = {
        "backup": {"path": args["path"], "taken_at": "now", "znodes": 10},
        "token": token,
        "confirmed": args.get("token") == token,
        "revived": [],
        "later": [],
        "pending_deletions": [],
        "needed": restoring.needed(facts, seen, 0 if restored else 3),
        "unread": {},
        "missing": {} if restored else {"topics": 3},
        "completed": {},
        "partitions": 0,
    }
    if args["state"] == "planned" or check:
        return {"changed": args["state"] != "planned", **result}
    troubles = restoring.not_at_rest(facts)
    if troubles:
        return {"failed": True, "msg": f"{'; '.join(troubles)}. Nothing was restored."}
    with world.changing() as state:
        state["zookeeper"].update(owner=None, migration=None)
        state["stubs"]["restored"] = True
    more = {"written": 3, "states": 3, "controller_epoch": 20, "from_disks": [], "without_data": []}
    return {"changed": True, **result, **more}


def _addressed(nodes: dict[str, Any]) -> dict[str, Any]:
    return {host: {"address": f"127.0.0.1:{9000 + IDS[host]}", **node} for host, node in nodes.items()}


def _members(world: World) -> dict[str, dict[str, Any]]:
    return world.state()["stubs"].get("members") or {}


def _member(world: World, host: str, **more: Any) -> dict[str, Any]:
    """Change one destination server of a move to another ensemble; return it."""
    with world.changing() as state:
        members = state["stubs"].setdefault("members", {})
        found = members.setdefault(host, {"state": "none", "mode": None, "id": ""})
        found.update(more)
        return dict(found)


def _cut(member: dict[str, Any]) -> dict[str, Any]:
    return {
        "state": member["state"],
        "id": member["id"],
        "reason": "",
        "last": 500,
        "steps": [],
        "works": False,
        "rules": 0,
    }


def zk_cut(world: World, host: str, args: dict[str, Any], check: bool) -> dict[str, Any]:
    member = _members(world).get(host) or {"state": "none", "mode": None, "id": ""}
    state = args["state"]
    if state == "read":
        mode = member["mode"]
        server = {"mode": mode, "zxid": 500, "znodes": 10, "timeouts_ms": [18000]}
        server.update(observes=mode == "observer", votes=mode == "follower")
        return {"changed": False, "cut": _cut(member), "server": server, "problems": []}
    if check:
        return {"changed": True, "cut": {}}
    if state == "begun":
        member = _member(world, host, state="fenced", id=args["id"])
    elif state == "healed":
        if member["state"] in ("promoting", "promoted"):
            why = f"this host accepted its promotion (state {member['state']}), so that its part of the cut stays"
            return {"failed": True, "msg": f"{why}.", "cut": _cut(member)}
        if member["state"] in ("fenced", "cut"):
            member = _member(world, host, state="healed")
            return {"changed": True, "cut": _cut(member)}
        return {"changed": False, "cut": _cut(member)}
    elif state == "taken_back":
        member = _member(world, host, state="healed", mode=None)
        return {"changed": True, "cut": _cut(member), "moved": ""}
    return {"changed": True, "cut": _cut(member)}


def zk_cut_order(world: World, host: str, args: dict[str, Any], _check: bool) -> dict[str, Any]:
    """Carry out an order as the worker of a cut does."""
    state = _members(world).get(host, {}).get("state")
    steps = {"cut": ("fenced", "cut"), "promote": ("cut", "promoting"), "all": ("promoting", "promoted")}
    before, after = steps[args["order"]]
    if state == before:
        more = {"mode": "follower"} if after == "promoted" else {}
        return _cut(_member(world, host, state=after, **more))
    return _cut(_members(world).get(host) or {"state": "none", "id": ""})


def zk_cut_check(_world: World, _host: str, args: dict[str, Any], _check: bool) -> dict[str, Any]:
    hosts = sorted(args["expected"])
    return {
        "changed": False,
        "zxids": dict.fromkeys(hosts, 500),
        "first": hosts[:1],
        "exact": True,
        "notes": [],
        "read_s": 0.1,
    }


def zk_cut_plan(_world: World, _host: str, args: dict[str, Any], _check: bool) -> dict[str, Any]:
    readers = args.get("readers") or [""]
    times = {"deadline_s": 120.0, "estimate_s": 2.0, "timeout_ms": 18000}
    return {"changed": False, **times, "sessions": 4, "znodes": 10, "brokers": [], "reader": readers[0], "notes": []}


def zk_observer_join(world: World, host: str, _args: dict[str, Any], check: bool) -> dict[str, Any]:
    member = _members(world).get(host) or {"mode": None}
    changed = member["mode"] != "observer"
    if changed and not check:
        _member(world, host, mode="observer")
    joined = not changed or not check
    return {
        "changed": changed,
        "joined": joined,
        "zxid": 500,
        "leader_zxid": 500,
        "files": ["zoo.cfg"] if changed else [],
    }


def zk_session_check(world: World, host: str, args: dict[str, Any], _check: bool) -> dict[str, Any]:
    values = properties.parse(world.config_file(host).read_bytes())
    moved = values["zookeeper.connect"] == args["zookeeper_connect"]
    if args["state"] == "moved" and not moved:
        return {"failed": True, "msg": f"{host} uses {values['zookeeper.connect']}. Nothing was changed on this host."}
    return {"changed": False, "moved": moved, "findings": [], "session": "0x1", "others": []}


def zk_leftovers(_world: World, _host: str, _args: dict[str, Any], _check: bool) -> dict[str, Any]:
    return {"changed": False, "leftovers": []}


BEFORE, AFTER = [1, 3], [2, 3]  # the replicas of the partition that moves


def _reassignment(replicas: list[int]) -> dict[str, Any]:
    return {"version": 1, "partitions": [{"topic": "orders", "partition": 0, "replicas": replicas}]}


def partition_reassignment_info(world: World, _host: str, args: dict[str, Any], _check: bool) -> dict[str, Any]:
    state = world.state()
    done, moving = state["stubs"].get("moved"), state["reassigning"]
    flight = {"topic": "orders", "partition": 0, "replicas": [2, 3, 1], "adding": [2], "removing": [1]}
    planned = args.get("drain") is not None or args.get("add") is not None
    plan = {"version": 1, "partitions": []} if done else _reassignment(AFTER)
    if planned and moving:
        return {"failed": True, "msg": "1 partitions are in flight, and a plan needs settled replicas"}
    return {
        "changed": False,
        "reassignments": [flight] if moving else [],
        "progress": {},
        "throttles": [],
        "throttles_unread": [],
        "recorded_throttles": [],
        "throttles_set_by": {},
        "legacy": None,
        "plan": plan if planned else None,
        "rollback": _reassignment(BEFORE) if planned else None,
        "broker": 1,
        "rack_load": {},
        "cluster_id": CLUSTER,
    }


def partition_reassignment(world: World, _host: str, args: dict[str, Any], check: bool) -> dict[str, Any]:
    state, document = args.get("state", "present"), args.get("document") or {}
    seen = world.state()
    moving, done = seen["reassigning"], bool(seen["stubs"].get("moved"))
    how = "done" if done else "in flight" if moving else "start"
    one = {"topic": "orders", "partition": 0, "before": BEFORE, "wanted": AFTER, "adding": [2], "removing": [1]}
    results = [{**one, "state": how, "error": None}] if document.get("partitions") else []
    answer = {"results": results, "gone": [], "throttles_left": [], "waited_s": 0.0, "progress": {}, "carry": {}}
    if state == "present":
        answer["undo"] = _reassignment(BEFORE)
        begins = bool(results) and how == "start"
        if not check and begins:
            with world.changing() as changed:
                changed["reassigning"] = ["orders"]
        return {**answer, "changed": begins, "done": done or not results, "text": "1 partition is left"}
    with world.changing() as changed:
        changed["reassigning"] = []
        if state == "awaited":
            changed["stubs"]["moved"] = True
    return {**answer, "changed": bool(moving), "done": True}


def spark_job(_world: World, _host: str, args: dict[str, Any], _check: bool) -> dict[str, Any]:
    name, gate, output = args["submit"][-3], args["job"]["gate"], Path(args["output_dir"])
    output.mkdir(parents=True, exist_ok=True)
    views = {"metadata_log": {"error": None, "state": {"offset": END_OFFSET}}, "brokers": {"error": None, "state": {}}}
    result = {"job": name, "gate": gate, "verdict": "pass", "counts": {"topics": {"match": 3}}, "views": views}
    for file in ("entities.parquet", "report.html"):
        (output / file).write_text("")
    (output / "result.json").write_text(json.dumps(result))
    if args.get("remove"):
        shutil.rmtree(args["remove"], ignore_errors=True)
    ran = {"exit_code": 0, "seconds": 1.0, "reason": None, "peak_mib": 100}
    return {"changed": False, "done": True, "wanted": None, "result": {**result, "leftovers": []}, "submission": ran}


def _archive(world: World, host: str, name: str) -> dict[str, Any]:
    path = world.host(host) / "tmp" / name
    path.write_bytes(b"archive")
    return {"changed": True, "path": str(path), "sha256": hashlib.sha256(b"archive").hexdigest(), "bytes": 7}


def metadata_snapshot(world: World, host: str, args: dict[str, Any], check: bool) -> dict[str, Any]:
    if args.get("state") == "absent":
        for path in (world.host(host) / "tmp").glob("metadata-*.tar.gz"):
            path.unlink()
        return {"changed": True}
    if check:
        return {"changed": True, "files": [], "checkpoint": None}
    return {**_archive(world, host, "metadata-1.tar.gz"), "end_offset": END_OFFSET, "checkpoint": None}


def zk_tree_snapshot(world: World, host: str, args: dict[str, Any], _check: bool) -> dict[str, Any]:
    if args.get("state") == "absent":
        for path in (world.host(host) / "tmp").glob("tree-*.tar.gz"):
            path.unlink()
        return {"changed": True}
    seen = {"snapshot": 400, "zxid": 500}
    if args.get("state") == "read":
        return {"changed": False, **seen}
    return {**_archive(world, host, "tree-1.tar.gz"), **seen}


def async_status(world: World, _host: str, args: dict[str, Any], _check: bool) -> dict[str, Any]:
    path = world.root / "async" / f"{args['jid']}.json"
    if args.get("mode") == "cleanup":
        path.unlink(missing_ok=True)
        return {"changed": False, "erased": str(path)}
    return {**json.loads(path.read_text()), "finished": 1, "started": 1, "ansible_job_id": args["jid"]}


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
        zk_restore,
        zk_cut,
        zk_cut_order,
        zk_cut_check,
        zk_cut_plan,
        zk_observer_join,
        zk_session_check,
        zk_leftovers,
        partition_reassignment_info,
        partition_reassignment,
        async_status,
        spark_job,
        metadata_snapshot,
        zk_tree_snapshot,
    )
}
