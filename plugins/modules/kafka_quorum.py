#!/usr/bin/python
# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: kafka_quorum
short_description: Show the controllers of a KRaft quorum, and add, remove or unregister one
version_added: 0.1.0
description:
  - B(Internal.) Roles of this collection call it. Its options and results may change in any release.
  - Asks the quorum's leader for its voters and observers (DescribeQuorum), and each node for its features. With
    O(nodes), it also says how each file names the controllers, and which voters and registered nodes are gone.
  - A change is decided by what was read in the same call, and is sent to the quorum's leader, which must report the
    cluster's id on the same connection. What the leader describes afterwards decides whether it was made.
  - Its principals need the operation Describe on the cluster, and for a change Alter.
options:
  state:
    description:
      - V(described) changes nothing.
      - V(dynamic) raises C(kraft.version) from 0 to 1, so that the metadata log has the voters (KIP-853). Files do not
        change.
      - V(added) makes the observer on the host O(controller) a voter.
      - V(removed) removes the voter O(controller).
      - V(replaced) removes the voter with the id of the host O(controller) and adds the observer with its new
        directory.
      - V(unregistered) removes the registration of the controller O(controller), which is gone (KIP-1312).
    type: str
    choices: [described, dynamic, added, removed, replaced, unregistered]
    default: described
  controller:
    description: The host of a controller in O(nodes), or its id. Required with each state that changes a controller.
    type: str
  token:
    description: Accepts a change that nothing takes back by itself; RV(token) has it, in check mode too.
    type: str
    default: ""
  nodes:
    description:
      - The result of M(quorumshift.kafka.node_facts) by host name, with C(role), C(reached) and C(address) added. The
        action plugin fills it in.
    type: dict
    default: {}
  wait_timeout_s:
    description: How long to wait, in seconds, until the leader describes a change, and every node serves it.
    type: float
    default: 120
  show:
    description: Show the quorum and what would change. Handled by the action plugin.
    type: bool
    default: false
extends_documentation_fragment:
  - quorumshift.kafka.connection
  - quorumshift.kafka.connection.cluster
  - quorumshift.kafka.connection.controllers
  - quorumshift.kafka.connection.expected
  - quorumshift.kafka.zookeeper
  - quorumshift.kafka.zookeeper.connect
  - quorumshift.kafka.host_record
  - quorumshift.kafka.host_record.locked
attributes:
  check_mode: {support: full, description: Decides on the change and does not make it.}
  diff_mode: {support: full, description: Shows the voters and kraft.version before and after.}
author: Quorumshift maintainers (@quorumshift)
"""

EXAMPLES = r"""
- name: Show the quorum
  quorumshift.kafka.kafka_quorum:
    bootstrap_servers: b1:9092,b2:9092
    nodes: "{{ my_node_facts }}"

- name: Remove a voter that is gone
  quorumshift.kafka.kafka_quorum:
    bootstrap_servers: b1:9092,b2:9092
    nodes: "{{ my_node_facts }}"
    state: removed
    controller: "103"
    token: "{{ my_token }}"
"""

RETURN = r"""
cluster_id:
  description: The id of the cluster, null where only controllers answer that cannot report it.
  type: str
  returned: success
mode:
  description: V(zookeeper), V(migration), V(kraft) or V(unknown).
  type: str
  returned: success
dynamic:
  description: Whether the metadata log has the voters (C(kraft.version) 1).
  type: bool
  returned: success
kraft_version:
  description: C(finalized), and C(lowest) and C(highest) that every node which answers supports.
  type: dict
  returned: success
leader_id:
  description: The id of the quorum's leader.
  type: int
  returned: success
leader_epoch:
  description: Its epoch.
  type: int
  returned: success
high_watermark:
  description: The high watermark of the metadata log.
  type: int
  returned: success
voters:
  description:
    - Each voter with C(id), C(directory_id) (null of a static voter), C(endpoint), C(host) of O(nodes), C(lag) in
      records, C(caught_up_s) and C(fetched_s), seconds ago by the leader's clock.
  type: list
  elements: dict
  returned: success
observers:
  description: The same of each observer. Brokers are observers too.
  type: list
  elements: dict
  returned: success
configuration:
  description: How each host's file names the controllers, V(static), V(dynamic) or V(unknown).
  type: dict
  returned: success
ghosts:
  description: Voters and registered nodes that no host of O(nodes) is, as C(what), C(id), C(why) and C(do).
  type: list
  elements: dict
  returned: success
registrations_unknown:
  description: Whether no metadata log could be read, so that it is unknown who is registered.
  type: bool
  returned: success
silent:
  description: The nodes that gave no answer, and why.
  type: list
  elements: str
  returned: success
repair:
  description: Hosts whose file is one of a static quorum, where the quorum is dynamic (KAFKA-21426).
  type: list
  elements: str
  returned: success
change:
  description: What the change is, as sentences; empty where nothing is to be changed.
  type: list
  elements: str
  returned: success
files:
  description: With state V(dynamic), the hosts whose file is to be changed.
  type: list
  elements: str
  returned: success
token:
  description: The token that accepts the change, empty where it needs none.
  type: str
  returned: success
waited_s:
  description: How long the change took, in seconds.
  type: float
  returned: success
"""

import time

from ansible_collections.quorumshift.kafka.plugins.module_utils.admin import feature_update, features
from ansible_collections.quorumshift.kafka.plugins.module_utils.admin import quorum as admin_quorum
from ansible_collections.quorumshift.kafka.plugins.module_utils.core.admin import quorum as core_quorum
from ansible_collections.quorumshift.kafka.plugins.module_utils.core.admin import quorum_change
from ansible_collections.quorumshift.kafka.plugins.module_utils.core.releases import features as core_features
from ansible_collections.quorumshift.kafka.plugins.module_utils.module_base.argument_specs import EXPECTED
from ansible_collections.quorumshift.kafka.plugins.module_utils.module_base.features_module import FeaturesModule
from ansible_collections.quorumshift.kafka.plugins.module_utils.settings.addresses import HostPort
from ansible_collections.quorumshift.kafka.plugins.module_utils.wire.socket_wire import Unreachable, WireError

STATES = ["described", "dynamic", "added", "removed", "replaced", "unregistered"]


def main():
    """Show or change the quorum and exit."""
    needs = [("state", state, ("controller",)) for state in ("added", "removed", "replaced", "unregistered")]
    module = FeaturesModule(
        {
            "state": {"type": "str", "choices": STATES, "default": "described"},
            "controller": {"type": "str"},
            "token": {"type": "str", "no_log": False, "default": ""},
            "nodes": {"type": "dict", "default": {}},
            **EXPECTED,
            "wait_timeout_s": {"type": "float", "default": 120},
            "show": {"type": "bool", "default": False},
        },
        changes=True,
        required_if=needs,
    )

    module.run(lambda admin, connections: change_quorum(module, admin, connections), (quorum_change.QuorumError,))


def change_quorum(module, admin, connections):
    """Return the quorum, after the change that the task asks for."""
    given = module.params

    def collect():
        return module.collect(admin, connections)

    found = collect()
    if found["migrating"] or found["mode"] == "zookeeper":
        seen = found["migrating"] or "the brokers run in ZooKeeper mode"
        module.fail_json(
            msg=f"the quorum is shown and changed in KRaft mode alone, not during a migration: {seen}. Finalize it "
            "first (quorumshift.kafka.status shows the next step). Nothing was changed (QS-QUORUM-002)"
        )
    quorum = admin_quorum.read(admin)
    if given["state"] == core_quorum.DESCRIBE:
        return describe(given, admin, found, quorum)
    try:
        change = plan(given, admin, connections, found, quorum)
    except quorum_change.QuorumError as error:
        module.fail_json(msg=f"{error}. Nothing was changed")
    result = {
        **describe(given, admin, found, quorum),
        "change": list(change.lines),
        "token": change.token,
        "files": list(change.files),
    }
    to_change = change._replace(files=())
    if module.check_mode:
        if module._diff:
            expected = quorum_change.expect(change, quorum, found["finalized"], given["nodes"])
            result["diff"] = {"before": text_of(quorum, found), "after": text_of(*expected)}
        return {**result, "changed": not change.is_empty}
    if change.token and given["token"] != change.token:
        why = quorum_change.explain_token(change, given["token"])
        module.fail_json(msg=f"{why}. Nothing was changed")
    if to_change.is_empty:
        return result
    began = time.monotonic()
    try:
        apply(module, admin, connections, collect, found, change)
    except feature_update.NotUpdated as error:
        module.fail_json(msg=str(error), changed=error.changed)
    after, quorum_after = collect(), admin_quorum.read(admin)
    if change.levels and not core_quorum.is_dynamic(quorum_after):
        module.fail_json(
            msg="kraft.version is 1, and the leader names no directory of its voters. Run again, it reads the quorum "
            "first (QS-QUORUM-010)",
            changed=True,
        )
    result.update(describe(given, admin, after, quorum_after))
    if module._diff:
        result["diff"] = {"before": text_of(quorum, found), "after": text_of(quorum_after, after)}
    return {**result, "changed": True, "waited_s": round(time.monotonic() - began, 3)}


def plan(given, admin, connections, found, quorum):
    """Return the change that the task asks for (core.admin.quorum.Change). Raises QuorumError."""
    if found["mode"] != "kraft":
        raise quorum_change.QuorumError(
            f"the mode of the brokers is {found['mode']}: they do not answer. Start one, or correct "
            "quorumshift_bootstrap_servers (QS-QUORUM-002)"
        )
    nodes, finalized, which = given["nodes"], found["finalized"], given["controller"]
    known = quorum, nodes, finalized
    if given["state"] == core_quorum.TO_DYNAMIC:
        refused = core_features.explain_unready(found) or core_features.find_missing(
            found["nodes"], given["expected"] or {}
        )
        if refused:
            raise quorum_change.QuorumError(refused)
        return quorum_change.plan_dynamic(*known, features.supported_ranges(found), admin.cluster_id)
    if given["state"] == core_quorum.ADD:
        return quorum_change.plan_add(*known, which, answers(found, nodes, which))
    if given["state"] == "replaced":
        return quorum_change.plan_replace(*known, which, answers(found, nodes, which), admin.cluster_id)
    if given["state"] == core_quorum.REMOVE:
        return quorum_change.plan_remove(*known, which, admin.cluster_id)
    return quorum_change.plan_unregister(*known, which, find_answering(nodes, which, connections), admin.cluster_id)


def find_answering(nodes, which, connections):
    """Return the address that a controller registered, if one answers there, else ''."""
    node_id, _host = quorum_change.find_controller(nodes, which)
    for _name, host, port in core_quorum.registered_endpoints(nodes, node_id):
        answer = features.versions(HostPort(host, port), connections.controller_client, connections.timeout)
        if not isinstance(answer, Unreachable):  # any other error is an answer
            return str(HostPort(host, port))
    return ""


def answers(found, nodes, host):
    """Return whether the controller on a host answered at its address."""
    address = (nodes.get(host) or {}).get("address")
    return any(
        node["role"] == "controller" and node["address"] == address and "error" not in node
        for node in found["nodes"].values()
    )


def apply(module, admin, connections, collect, found, change):
    """Make a change. Raises QuorumError, NotUpdated, WireError."""
    wait_s = module.params["wait_timeout_s"]
    if change.levels:
        changes = core_features.updates({core_features.KRAFT_VERSION: 1}, found["finalized"])
        updater = feature_update.Updater(admin, collect, wait_s)
        updater.validate(changes, "no")
        # Controllers keep the epoch of the features: kraft.version is no record of theirs. The level is the proof
        updater.update(changes, "no", core_features.NO_EPOCH)
        return
    changer = admin_quorum.Changer(admin, connections.controller_client, connections.timeout, wait_s)
    if change.voter:
        changer.remove(admin.cluster_id, *change.voter)
    if change.joins:
        try:
            changer.add(admin.cluster_id, change.joins)
        except (quorum_change.QuorumError, WireError) as error:
            if not change.voter:
                raise
            module.fail_json(
                msg=f"controller {change.voter[0]} with its earlier directory was removed, and with the new one it was "
                f"not added: {error}. Run again, it adds it (QS-QUORUM-010)",
                changed=True,
            )
    if change.unregisters is not None:
        changer.unregister(change.unregisters)


def describe(given, admin, found, quorum):
    """Return the module's result without a change."""
    nodes, finalized = given["nodes"], found["finalized"]
    hosts = {
        **core_quorum.hosts_by_id(nodes, "broker"),
        **core_quorum.hosts_by_id(nodes, "controller"),
    }
    supported = features.supported_ranges(found)
    ranges = [levels.get(core_features.KRAFT_VERSION, core_features.Range(0, 0)) for levels in supported.values()]
    ghosts = core_quorum.find_ghosts(quorum, nodes, finalized) if nodes else []

    def rows(replicas):
        return [
            {
                "id": replica["id"],
                "directory_id": replica["directory_id"],
                "endpoint": replica["endpoint"],
                "host": hosts.get(replica["id"]),
                "lag": core_quorum.lag(replica, quorum),
                "caught_up_s": core_quorum.behind_s(replica, quorum),
                "fetched_s": core_quorum.fetched_s(replica, quorum),
            }
            for replica in replicas
        ]

    return {
        "cluster_id": admin.cluster_id or None,
        "mode": "migration" if found["migrating"] else found["mode"],
        "dynamic": core_quorum.is_dynamic(quorum),
        "kraft_version": {
            "finalized": finalized.get(core_features.KRAFT_VERSION, 0),
            "lowest": max((levels.lowest for levels in ranges), default=0),
            "highest": min((levels.highest for levels in ranges), default=0),
        },
        **{key: quorum[key] for key in ("leader_id", "leader_epoch", "high_watermark")},
        "voters": rows(quorum["voters"]),
        "observers": rows(quorum["observers"]),
        "configuration": {host: core_quorum.configuration(node) for host, node in sorted(nodes.items())},
        "ghosts": [{"what": ghost.what, "id": ghost.node_id, "why": ghost.why, "do": ghost.do} for ghost in ghosts],
        "registrations_unknown": bool(nodes) and core_quorum.are_registrations_unknown(nodes),
        "silent": [f"{name}: {node['error']}" for name, node in sorted(found["nodes"].items()) if "error" in node],
        "repair": core_quorum.needs_repair(nodes, finalized),
        "change": [],
        "files": [],
        "token": "",
        "waited_s": 0.0,
    }


def text_of(quorum, found):
    """Return the voters and kraft.version, as Ansible shows a difference."""
    level = found["finalized"].get(core_features.KRAFT_VERSION, 0)
    voters = [f"voter {voter['id']} {voter['directory_id'] or '(static)'}\n" for voter in quorum["voters"]]
    return f"kraft.version {level}\n" + "".join(sorted(voters))


if __name__ == "__main__":
    main()
