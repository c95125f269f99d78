# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Stub modules: what works on Kafka's and ZooKeeper's data, or on Spark, with the results that each module documents.

A stub takes (world, host, arguments, check mode) and returns the module's result.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

from ansible_collections.quorumshift.kafka.plugins.module_utils.core.admin import quorum as core_quorum
from ansible_collections.quorumshift.kafka.plugins.module_utils.core.ensemble import ensemble_cut, zk_clients
from ansible_collections.quorumshift.kafka.plugins.module_utils.core.gates import gates
from ansible_collections.quorumshift.kafka.plugins.module_utils.core.migration import phase
from ansible_collections.quorumshift.kafka.plugins.module_utils.core.releases import feature_changes
from ansible_collections.quorumshift.kafka.plugins.module_utils.core.releases import features as core_features
from ansible_collections.quorumshift.kafka.plugins.module_utils.core.rollback import restore_plan
from ansible_collections.quorumshift.kafka.plugins.module_utils.settings import properties
from ansible_collections.quorumshift.kafka.plugins.module_utils.settings.addresses import parse_zookeeper_connect
from ansible_collections.quorumshift.kafka.plugins.modules import zk_decommission as real_decommission

from tools.failure_proof.world import BACKUP, BROKERS, CLUSTER, CONTROLLERS, DESTINATIONS, IDS, SOURCES, ZXID, World

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
QUORUM_TOKEN = f"{CLUSTER}:0a1b2c"
Stub = Callable[[World, str, dict[str, Any], bool], dict[str, Any]]


def unregister(world: World, broker: int) -> bool:
    """Remove a broker's registration from the quorum; return whether it is still there."""
    with world.changing() as state:
        state["log"]["brokers"].pop(str(broker), None)
    return False


def features(world: World) -> dict[str, Any]:
    """Return the features of every node (admin.features.collect)."""
    finalized = {"metadata.version": world.state()["metadata_version"]}
    served = {"supported": {"metadata.version": [1, 25]}, "finalized": finalized, "epoch": 5}
    nodes = {}
    for number in IDS.values():
        role = "broker" if number < 100 else "controller"
        nodes[f"{role} {number}"] = {"role": role, "id": number, "address": f"127.0.0.1:{9000 + number}", **served}
    quorum = {"mode": "kraft", "static_voters": True, "migrating": None, "voters_unknown": [], "alive": []}
    return {**quorum, "quorum_error": None, "finalized": finalized, "epoch": 5, "nodes": nodes}


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


def kraft_preflight(world: World, _host: str, args: dict[str, Any], _check: bool) -> dict[str, Any]:
    """Find what prevents a migration here: brokers that do not run, and hosts that the run has not read."""
    nodes = args["nodes"]
    seen = [f"{host} does not run" for host in BROKERS if host not in world.alive_brokers()]
    seen += [f"{host} was not read" for host in IDS if not (nodes.get(host) or {}).get("file") and host in BROKERS]
    seen += [f"the connections of {host} were not checked" for host in IDS if not (nodes.get(host) or {}).get("paths")]
    spark = args.get("spark") or {}
    seen += [f"the Spark host was not read: {spark[key]}" for key in ("error", "unreachable") if spark.get(key)]
    common = {"id": "hosts", "title": "Hosts", "severity": "blocks", "source": "", "do": "fix that", "waived": None}
    result = {"changed": False, "findings": [{**common, "seen": text} for text in seen], "checks": ["hosts"]}
    return {"failed": True, "msg": f"Blocking findings: {'; '.join(seen)}.", **result} if seen else result


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
    name, before = core_features.METADATA_VERSION, world.state()["metadata_version"]
    wanted = args.get("features") or feature_changes.levels_up_to(args["upgrade_to"], {name: before}, True)
    level = int(wanted.get(name, before))
    update = core_features.Update(name, before, level)
    if not check and level != before:
        with world.changing() as state:
            state["metadata_version"] = level
    return {
        "changed": level != before,
        "results": [{**update._asdict(), **core_features.name_levels(update)}] if level != before else [],
        "finalized": {name: before if check else level},
        "one_way": [],
        "token": "",
        "notes": [],
        "lost": "",
        "epoch": 6,
        "waited_s": 0.0,
    }


def kafka_quorum(world: World, _host: str, args: dict[str, Any], check: bool) -> dict[str, Any]:
    """Raise kraft.version; the playbook's restarts change the files."""
    level = world.state().get("kraft_version", 0)
    files = {host: core_quorum.configuration(node) for host, node in args["nodes"].items()}
    static = sorted(host for host, how in files.items() if how == core_quorum.STATIC)
    wanted = args.get("state", core_quorum.DESCRIBE) == core_quorum.TO_DYNAMIC
    if wanted and not level and not check:
        with world.changing() as state:
            state["kraft_version"] = 1
    now = 1 if wanted and not check else level
    none: dict[str, Any] = {"voters": [], "observers": [], "ghosts": [], "silent": [], "repair": []}
    return {
        **{"changed": wanted and not level, **none, "cluster_id": CLUSTER, "mode": "kraft", "dynamic": bool(now)},
        **{"kraft_version": {"finalized": now, "lowest": 0, "highest": 1}, "leader_id": 101, "leader_epoch": 1},
        **{"high_watermark": 100, "configuration": files, "registrations_unknown": False, "waited_s": 0.0},
        **{"change": ["dynamic"] if wanted and (static or not level) else [], "files": static if wanted else []},
        "token": QUORUM_TOKEN if wanted and not level else "",
    }


def kafka_features_info(world: World, _host: str, _args: dict[str, Any], _check: bool) -> dict[str, Any]:
    found = features(world)
    levels = {name: {"level": level, "name": "", "minimum": level} for name, level in found["finalized"].items()}
    return {
        **{"changed": False, **found, "cluster_id": CLUSTER, "finalized": levels},
        **{"highest_common": {}, "held_back": {}, "lagging": [], "zookeeper_feature": None, "notes": []},
    }


def zk_restore(world: World, _host: str, args: dict[str, Any], check: bool) -> dict[str, Any]:
    facts = world.collect(_addressed(args["nodes"]), False)
    seen = phase.detect(facts)
    if args["state"] == "admitted":
        brokers = [host for host, node in facts["nodes"].items() if node["role"] == "broker"]
        token = gates.make_token("before_revert", seen.phase, args["run"], facts, brokers)
        return {"changed": False, "gate_token": token}
    token = restore_plan.token(CLUSTER, hashlib.sha256(BACKUP).hexdigest(), [])
    restored = bool(world.state()["stubs"].get("restored"))
    result = {
        "backup": {"path": args["path"], "taken_at": "now", "znodes": 10},
        "token": token,
        "confirmed": args.get("token") == token,
        "revived": [],
        "later": [],
        "pending_deletions": [],
        "needed": restore_plan.is_needed(facts, seen, 0 if restored else 3),
        "unread": {},
        "missing": {} if restored else {"topics": 3},
        "completed": {},
        "partitions": 0,
    }
    if args["state"] == "planned" or check:
        return {"changed": args["state"] != "planned", **result}
    troubles = restore_plan.check_at_rest(facts)
    if troubles:
        return {"failed": True, "msg": f"{'; '.join(troubles)}. Nothing was restored."}
    with world.changing() as state:
        state["zookeeper"].update(owner=None, migration=None)
        state["stubs"]["restored"] = True
    more = {"written": 3, "states": 3, "controller_epoch": 20, "from_disks": [], "without_data": []}
    return {"changed": True, **result, **more}


def _addressed(nodes: dict[str, Any]) -> dict[str, Any]:
    return {host: {"address": f"127.0.0.1:{9000 + IDS[host]}", **node} for host, node in nodes.items()}


NOT_A_MEMBER: dict[str, Any] = {"state": "none", "mode": None, "config": None, "id": "", "rules": 0, "verified": False}


def _member(world: World, host: str, **more: Any) -> dict[str, Any]:
    """Return one destination server of a move to another ensemble, changed to `more` where that is given."""
    if not more:
        return {**NOT_A_MEMBER, **((world.state()["stubs"].get("members") or {}).get(host) or {})}
    with world.changing() as state:
        members = state["stubs"].setdefault("members", {})
        before = {**NOT_A_MEMBER, **members.get(host, {})}
        # the record of a cut keeps the promotion that it led to
        promoted = before["state"] in ensemble_cut.ACCEPTED or before.get("promoted", False)
        members[host] = {**before, "promoted": promoted and more.get("state") != ensemble_cut.FENCED, **more}
        return dict(members[host])


def _cut(member: dict[str, Any]) -> dict[str, Any]:
    own = {name: member[name] for name in ("state", "id", "rules", "verified")}
    if member.get("promoted") or member["state"] in ensemble_cut.ACCEPTED:
        own["promotion"] = {"zxids": {}}
    return {**own, "reason": "", "last": ZXID, "steps": [], "works": False, "brokers_lost": []}


def zk_cut(world: World, host: str, args: dict[str, Any], check: bool) -> dict[str, Any]:
    """Do what core.ensemble.cut_host does on a host on which nothing else goes wrong."""
    member, state = _member(world, host), args["state"]
    if state in ("read", "located"):
        numbers = [int(number) for number in args["destination_servers"]]
        server = {"mode": member["mode"], "zxid": ZXID, "znodes": 10, "timeouts_ms": [18000], "ids": numbers}
        server.update(observes=member["config"] == "observer", votes=member["config"] == "voter")
        server["entries"] = [str(address) for address in parse_zookeeper_connect(args["destination_connect"]).servers]
        return {"changed": False, "cut": _cut(member), "server": server, "problems": []}
    if check:
        return {"changed": True, "cut": {}}
    found = _cut_changes(member, args)
    if isinstance(found, str):
        return {"failed": True, "msg": f"{found}.", "cut": _cut(member)}
    after = _member(world, host, **found) if found else member
    changed = after != member or state in ("resumed", "reserved")
    return {"changed": changed, "cut": _cut(after), "moved": "", "moves": 1}


def _cut_changes(member: dict[str, Any], args: dict[str, Any]) -> dict[str, Any] | str:
    """Return what a step of a cut changes, or why it is refused."""
    state, seen = args["state"], member["state"]
    if state == "begun":
        if seen in ensemble_cut.ACCEPTED:
            return f"this host is in state {seen}. Nothing was changed"
        return {"state": ensemble_cut.FENCED, "id": args["id"], "rules": 2, "verified": False}
    if state in ("reserved", "observing"):
        return {}
    if state == "healed":
        if seen in ensemble_cut.ACCEPTED:
            return f"this host accepted its promotion (state {seen}), so that its part of the cut stays"
        again = {"rules": 0, "mode": "observer" if member["config"] == "observer" else None}
        return {"state": ensemble_cut.HEALED, **again} if seen in ensemble_cut.UNDONE_BY_ITSELF else {}
    if state == "resumed":
        if seen == ensemble_cut.SUSPENDED and not args.get("one_promoted"):
            return "this host was suspended, and no other one was promoted: run quorumshift.kafka.zk_rollback"
        return {"rules": 0} if seen == ensemble_cut.PROMOTED else {"state": ensemble_cut.PROMOTING}
    if state == "suspended":
        return {"state": ensemble_cut.SUSPENDED, "mode": None} if seen == ensemble_cut.PROMOTING else {}
    if state == "taken_back":
        if seen != ensemble_cut.SUSPENDED:
            return (
                f"this host is in state {seen}, not {ensemble_cut.SUSPENDED}. Run quorumshift.kafka.zk_rollback again"
            )
        return {"state": ensemble_cut.HEALED, "mode": None, "config": None, "rules": 0}
    if seen != ensemble_cut.PROMOTED:  # verified
        return f"this host is in state {seen}, not {ensemble_cut.PROMOTED}"
    return {"verified": True, "rules": 0}


def zk_cut_order(world: World, host: str, args: dict[str, Any], _check: bool) -> dict[str, Any]:
    """Carry out an order as the worker of a cut does."""
    member = _member(world, host)
    before, after = {
        "heal": (ensemble_cut.CUT, {"state": ensemble_cut.HEALED, "mode": "observer", "rules": 0}),
        "cut": (ensemble_cut.FENCED, {"state": ensemble_cut.CUT, "mode": None, "rules": 4}),
        "promote": (ensemble_cut.CUT, {"state": ensemble_cut.PROMOTING, "config": "voter"}),
        "all": (
            ensemble_cut.PROMOTING,
            {"state": ensemble_cut.PROMOTED, "rules": 0, "mode": "leader" if host == DESTINATIONS[0] else "follower"},
        ),
    }[args["order"]]
    return _cut(_member(world, host, **after) if member["state"] == before else member)


def zk_cut_check(_world: World, _host: str, args: dict[str, Any], _check: bool) -> dict[str, Any]:
    state = args.get("state") or "cut"
    answer: dict[str, Any] = {"changed": False, "exact": True, "notes": [], "read_s": 0.1}
    if state == "settings":
        return {**answer, "settings": {"tickTime": "2000"}}
    if state == "read":
        return {**answer, "owners": {"/brokers/ids/1": 1}, "owners_zxid": ZXID}
    if state == "promoted":
        return answer
    lacking = sorted(host for host in args["expected"] if (args["hosts"].get(host) or {}).get("last") != ZXID)
    if lacking:
        return {"failed": True, "msg": f"no files of {', '.join(lacking)} were read. Nothing is promoted."}
    hosts = sorted(args["expected"])
    return {**answer, "zxids": dict.fromkeys(hosts, ZXID), "first": hosts[:1]}


def zk_cut_plan(_world: World, _host: str, args: dict[str, Any], _check: bool) -> dict[str, Any]:
    readers = args.get("readers") or [""]
    server = {"mode": "leader", "zxid": ZXID}
    found = ensemble_cut.check_ready(args["hosts"], {"s1": server}, {})
    if found:
        return {"failed": True, "msg": f"{'; '.join(finding.seen for finding in found)}. Nothing was changed."}
    times = {"deadline_s": 120.0, "estimate_s": 2.0, "start_s": 4.0, "timeout_ms": 18000}
    more = {"sessions": 4, "znodes": 10, "brokers": [], "reader": readers[0], "notes": [], "owned": {}}
    return {"changed": False, **times, **more}


def zk_rehearsal(_world: World, _host: str, args: dict[str, Any], _check: bool) -> dict[str, Any]:
    if args["state"] == "begun":
        return {"changed": False, "directory": "/tmp/quorumshift-watch", "before": {}}
    found = [host for host, read in args["hosts"].items() if read["server"]["mode"] != "observer"]
    if found:
        return {"failed": True, "msg": f"{', '.join(found)} is no observer after the rehearsal."}
    return {"changed": False, "times": {}, "figures": {}, "watched": {}, "lines": ["it took 2.0 s"]}


def zk_source_mark(_world: World, _host: str, _args: dict[str, Any], _check: bool) -> dict[str, Any]:
    return {"changed": True, "shown_id": "MOVED_TO_d1", "before": {}}


def zk_move_info(_world: World, _host: str, _args: dict[str, Any], _check: bool) -> dict[str, Any]:
    return {"changed": False, "stage": "not begun", "lines": [], "playbook": "", "given": {}, "advice": ""}


def zk_observer_join(world: World, host: str, _args: dict[str, Any], check: bool) -> dict[str, Any]:
    member = _member(world, host)
    changed = member["mode"] != "observer"
    if changed and not check:
        _member(world, host, mode="observer", config="observer")
    joined, files = not changed or not check, ["zoo.cfg"] if changed else []
    return {"changed": changed, "joined": joined, "zxid": ZXID, "leader_zxid": ZXID, "files": files}


def zk_session_check(world: World, host: str, args: dict[str, Any], _check: bool) -> dict[str, Any]:
    values = properties.parse(world.config_file(host).read_bytes())
    moved = values["zookeeper.connect"] == args["zookeeper_connect"]
    if args["state"] == "moved" and not moved:
        return {"failed": True, "msg": f"{host} uses {values['zookeeper.connect']}. Nothing was changed on this host."}
    return {"changed": False, "moved": moved, "findings": [], "session": "0x1", "others": []}


def zk_leftovers(_world: World, _host: str, _args: dict[str, Any], _check: bool) -> dict[str, Any]:
    return {"changed": False, "leftovers": []}


ENSEMBLE = {name: f"127.0.0.1:{2181 + number}" for number, name in enumerate(SOURCES)}
"""The server of each host of the group zookeeper."""


def archive_of(host: str) -> str:
    """Return the SHA-256 of a ZooKeeper server's archive."""
    return hashlib.sha256(host.encode()).hexdigest()


def _zookeeper_host(world: World, host: str) -> dict[str, Any]:
    """Return what zk_decommission reads of a host (core.ensemble.decommission)."""
    server = world.state()["stubs"]["ensemble"][host]
    archive, is_stopped = server["archive"], server["stopped"]
    record = {"server": ENSEMBLE[host], "archive": archive, **({"state": "stopped"} if is_stopped else {})}
    unit = {**NO_SERVICE, "name": "zookeeper.service", "masked": is_stopped, "active": not is_stopped}
    return {
        "config_file": "/etc/zookeeper/zoo.cfg",
        "service": {**unit, "active_state": "inactive" if is_stopped else "active"},
        "server": ENSEMBLE[host],
        "ports": [2181],
        "quorum_ports": [2888, 3888],
        "myid": 1 + SOURCES.index(host),
        "members": [1, 2, 3],
        "voters": [1, 2, 3],
        "is_running": not is_stopped,
        "is_of_service": True,
        "is_listening": not is_stopped,
        "answers": not is_stopped,
        "connected": [],
        "record": record if archive else None,
        "directories": ["/var/lib/zookeeper"],
        "error": None,
    }


def zk_decommission(world: World, host: str, args: dict[str, Any], check: bool) -> dict[str, Any]:
    """Plan as the module does; archive and stop the servers here."""
    if args["state"] == "planned":
        given = {"archives": {}, "accept_paths": [], "modes": {}, "token": "", **args}
        try:
            return real_decommission.planned(given, check)
        except real_decommission.Refused as refused:
            return {"failed": True, "msg": str(refused)}
    server, wanted = world.state()["stubs"]["ensemble"][host], args["state"]
    changed = (wanted == "archived" and not server["archive"]) or (wanted == "stopped" and not server["stopped"])
    if changed and not check:
        with world.changing() as state:
            own = state["stubs"]["ensemble"][host]
            if wanted == "archived":
                own["archive"] = {"path": "/a.tar.gz", "sha256": archive_of(host), "zxid": 9, "znodes": 5}
            elif args["token"] != zk_clients.token(CLUSTER, args["archives"], args.get("accept_paths") or []):
                return {"failed": True, "msg": "The token does not confirm the archive. Nothing was changed."}
            else:
                own["stopped"] = True
    seen = _zookeeper_host(world, host)
    more = {"archive": seen["record"]["archive"]} if wanted == "archived" and seen["record"] else {}
    return {"changed": changed, "host": seen, **more}


def zk_clients_info(world: World, _host: str, args: dict[str, Any], _check: bool) -> dict[str, Any]:
    """Find no client, unless a server is taken for stopped that is not."""
    ensemble = world.state()["stubs"].get("ensemble", {})
    wrong = [name for name, server in ensemble.items() if server["stopped"] != (ENSEMBLE[name] in args["stopped"])]
    if wrong:
        return {"failed": True, "msg": f"The clients of {', '.join(wrong)} are not known."}
    servers = {
        ENSEMBLE[name]: {"mode": None if server["stopped"] else "follower", "error": None}
        for name, server in ensemble.items()
    }
    return {"changed": False, "clients": [], "servers": servers, "others": [], "findings": [], "lines": []}


def upgrade_read(world: World, host: str, args: dict[str, Any], _check: bool) -> dict[str, Any]:
    """Read a process with a Java that each release of Kafka takes."""
    process = {"pid": 1, "java": "17.0.15", "version": None, "options": {}}
    if not world.service(host)["active"]:
        process = None
    read = {"role": args["role"], "process": process, "log4j": None, "mirror_makers": [], "formatted_by_newer": False}
    return {"changed": False, "facts": read}


def upgrade_audit(_world: World, _host: str, args: dict[str, Any], _check: bool) -> dict[str, Any]:
    """Find nothing, where every host was read."""
    unread = [f"{host}: {read.get('why')}" for host, read in sorted(args["facts"].items()) if "process" not in read]
    if unread:
        return {"failed": True, "msg": f"not read: {'; '.join(unread)}. Nothing was changed. (QS-AUDIT-001)"}
    clients = {"old": [], "connected": [], "addresses": {}}
    return {"changed": False, "findings": [], "checks": [], "targets": [args["to"]], "clients": clients}


BEFORE, AFTER = [1, 3], [2, 3]  # the replicas of the partition that moves


def _reassignment(replicas: list[int]) -> dict[str, Any]:
    return {"version": 1, "partitions": [{"topic": "orders", "partition": 0, "replicas": replicas}]}


def partition_reassignment_info(world: World, _host: str, args: dict[str, Any], _check: bool) -> dict[str, Any]:
    state = world.state()
    done, moving = state["stubs"].get("moved"), state["reassigning"]
    flight = {"topic": "orders", "partition": 0, "replicas": [2, 3, 1], "adding": [2], "removing": [1]}
    planned = bool(args.get("drain")) or args.get("add") is not None
    plan = {"version": 1, "partitions": []} if done else _reassignment(AFTER)
    if planned and moving:
        return {"failed": True, "msg": "1 partitions are in flight, and a plan needs settled replicas"}
    return {
        "changed": False,
        "reassignments": [flight] if moving else [],
        "progress": {},
        "throttles": [],
        "throttles_unread": [],
        "throttles_remove": "",
        "recorded_throttles": [],
        "throttles_set_by": {},
        "legacy": None,
        "plan": plan if planned else None,
        "rollback": _reassignment(BEFORE) if planned else None,
        "copies": {"partitions": 1, "replicas": 1, "bytes": 1, "brokers": [], "warnings": []} if planned else None,
        "unmeasured": [],
        "broker": None,
        "leaving": [1] if planned else [],
        "rack_load": {},
        "cluster_id": CLUSTER,
    }


def partition_reassignment(world: World, _host: str, args: dict[str, Any], check: bool) -> dict[str, Any]:
    state, document = args.get("state", "present"), args.get("document") or {}
    seen = world.state()
    moving, done = seen["reassigning"], bool(seen["stubs"].get("moved"))
    how = "done" if done else "in flight" if moving else "start"
    move = {"topic": "orders", "partition": 0, "before": BEFORE, "wanted": AFTER, "adding": [2], "removing": [1]}
    results = [{**move, "state": how, "error": None}] if document.get("partitions") else []
    answer = {"results": results, "gone": [], "throttles_left": [], "waited_s": 0.0, "progress": {}, "carry": {}}
    answer.update(throttle_bytes_s=args.get("throttle_bytes_s"), undo=_reassignment(BEFORE), idle=[], came=[])
    if state == "present":
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


def spark_job(world: World, _host: str, args: dict[str, Any], _check: bool) -> dict[str, Any]:
    """Answer as the job does where all sources agree: `pass` if each source of the gate is there, else `incomplete`."""
    if args.get("state") == "started":
        return {"changed": False, "done": True}
    name, job, output = args["submit"][args["submit"].index("--input") - 1], args["job"], Path(args["output_dir"])
    output.mkdir(parents=True, exist_ok=True)
    reasons = [
        *_LACKS[name](world, job),
        *([] if args.get("digest_key") or name != METADATA else ["no key for secrets"]),
    ]
    views = {
        "metadata_log": {"error": None, "state": {"offset": world.end_offset()}},
        "brokers": {"error": None, "state": {}},
    }
    views["cluster"] = {"error": None, "state": {"records": 100}}
    files = BASELINE_FILES if name == METADATA else ()
    result = {"job": name, "gate": job["gate"], "nonce": args["nonce"], "counts": {"topics": {"match": 3}}}
    result.update(verdict="incomplete" if reasons else "pass", reasons=reasons, views=views, leftovers=[])
    for file in files:
        (output / file).write_bytes(b"")
    result["files"] = {file: {"sha256": hashlib.sha256(b"").hexdigest()} for file in files}
    (output / "report.html").write_text("")
    (output / "result.json").write_text(json.dumps(result))
    ran = {"exit_code": 3 if reasons else 0, "seconds": 1.0, "reason": None, "peak_mib": 100}
    return {"changed": False, "done": True, "wanted": None, "result": result, "submission": ran}


def spark_facts(_world: World, _host: str, args: dict[str, Any], _check: bool) -> dict[str, Any]:
    """Answer as a Spark host does on which nothing is missing."""
    lacks = [name for name in ("submit", "packages", "directories", "targets") if not args.get(name)]
    return {"failed": True, "msg": f"not given: {lacks}"} if lacks else {"changed": False, "spark": {"failed": []}}


METADATA = gates.METADATA_PARITY
BASELINE_FILES = ("entities.parquet", "entities.parquet.hmac")


def _metadata_lacks(world: World, job: dict[str, Any]) -> Iterator[str]:
    views, needs = job["views"], gates.GATES[job["gate"]].needs
    if gates.ZOOKEEPER in needs and "zookeeper" not in views:
        yield "ZooKeeper was not read"
    if gates.METADATA_LOG in needs:
        others = views.get("metadata_logs") or []
        for entry in (views.get("metadata_log") or {}, *others):
            yield from _archive_lacks(entry)
        lacking = len(CONTROLLERS) - 1 - len(others)
        if lacking:
            yield f"{lacking} voters' logs are not there"
    alive = {BROKERS[name] for name in world.alive_brokers()}
    for number in sorted(set(BROKERS.values()) - alive):
        yield f"broker {number} gives no answer"
    for number in sorted(set(BROKERS.values()) - {broker["id"] for broker in views["brokers"]}):
        yield f"broker {number} was not compared"


def _ensembles_lack(_world: World, job: dict[str, Any]) -> Iterator[str]:
    servers = job["views"]["servers"]
    for entry in servers:
        yield from _archive_lacks(entry)
    sides = [server["side"] for server in servers]
    if sides.count("destination") < len(DESTINATIONS) or "source" not in sides:
        yield f"the servers compared are of {', '.join(sides)}"


def _archive_lacks(entry: dict[str, Any]) -> Iterator[str]:
    name = entry.get("node") or entry.get("name") or "the leader"
    path = Path(entry.get("archive") or "/nowhere")
    if entry.get("error"):
        yield f"{name}: {entry['error']}"
    elif not path.is_file():
        yield f"{name}: there is no archive"
    elif hashlib.sha256(path.read_bytes()).hexdigest() != entry["sha256"]:
        yield f"{name}: its archive is not the one that was made"


_LACKS: dict[str, Callable[[World, dict[str, Any]], Iterable[str]]] = {
    METADATA: _metadata_lacks,
    gates.DATA_FINGERPRINT: lambda _world, _job: [],
    "ensemble_parity": _ensembles_lack,
}


def _archive(world: World, host: str, args: dict[str, Any], directory: str) -> dict[str, Any]:
    path = world.state_dir(host) / args["cluster_id"] / directory / "archive.tar.gz"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"archive")
    return {"changed": True, "path": str(path), "sha256": hashlib.sha256(b"archive").hexdigest(), "bytes": 7}


def metadata_snapshot(world: World, host: str, args: dict[str, Any], check: bool) -> dict[str, Any]:
    if check:
        return {"changed": True, "files": [], "checkpoint": None}
    if not world.metadata_log(host):
        return {"failed": True, "msg": f"{host} has no metadata log"}
    return {**_archive(world, host, args, "metadata_snapshot"), "end_offset": world.end_offset(), "checkpoint": None}


def zk_tree_snapshot(world: World, host: str, args: dict[str, Any], _check: bool) -> dict[str, Any]:
    seen = {"snapshot": 400, "zxid": ZXID}
    if args.get("state") == "read":
        return {"changed": False, **seen}
    return {**_archive(world, host, args, "zk_tree_snapshot"), **seen}


def async_status(world: World, _host: str, args: dict[str, Any], _check: bool) -> dict[str, Any]:
    path = world.root / "async" / f"{args['jid']}.json"
    if args.get("mode") == "cleanup":
        path.unlink(missing_ok=True)
        return {"changed": False, "erased": str(path)}
    return {**json.loads(path.read_text()), "finished": 1, "started": 1, "ansible_job_id": args["jid"]}


STUBS: dict[str, Stub] = {
    stub.__name__: stub
    for stub in (
        kraft_preflight,
        zk_backup,
        initial_copy,
        zk_partition_states,
        restore_zk_controller,
        preferred_leader_election,
        kafka_features,
        kafka_features_info,
        kafka_quorum,
        zk_restore,
        zk_cut,
        zk_cut_order,
        zk_cut_check,
        zk_cut_plan,
        zk_rehearsal,
        zk_source_mark,
        zk_move_info,
        zk_observer_join,
        zk_session_check,
        zk_leftovers,
        zk_decommission,
        zk_clients_info,
        upgrade_read,
        upgrade_audit,
        partition_reassignment_info,
        partition_reassignment,
        async_status,
        spark_job,
        spark_facts,
        metadata_snapshot,
        zk_tree_snapshot,
    )
}
