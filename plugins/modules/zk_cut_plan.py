#!/usr/bin/python
# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: zk_cut_plan
short_description: Plan the cut between two ZooKeeper ensembles, or say why it is not possible now
version_added: 0.1.0
description:
  - B(Internal.) Roles of this collection call it. Its options and results may change in any release.
  - Reads only, from the probe host. It estimates how long the cut takes, and compares that with two thirds of the
    shortest session timeout on the destination servers.
  - It fails with all that is against the cut. A destination server does not serve as an observer or is behind. A host
    has rules of an earlier cut. A source server still has connections of a broker's host. The source has no leader.
options:
  hosts:
    description: What M(quorumshift.kafka.zk_cut) read on each destination host, by host.
    type: dict
    required: true
  source_connect:
    description: All servers of the source.
    type: str
    required: true
  destination_connect:
    description: All servers of the destination.
    type: str
    required: true
  destination_servers:
    description: The address of each destination server by its id.
    type: dict
    required: true
  owners:
    description: The session of each of Kafka's ephemeral znodes by path, as M(quorumshift.kafka.zk_cut_check) read it.
      Without it, only brokers and the controller are checked.
    type: dict
  readers:
    description: Source hosts on which the transaction log can be read.
    type: list
    elements: str
    default: []
  answer_s:
    description: How long one task on all destination hosts takes, in seconds.
    type: float
    required: true
  budget_s:
    description: The longest duration of the cut, in seconds. V(0) is two thirds of the shortest session timeout.
    type: float
    default: 0
extends_documentation_fragment:
  - quorumshift.kafka.connection
  - quorumshift.kafka.zookeeper
  - quorumshift.kafka.zookeeper.connect
  - quorumshift.kafka.nodes
attributes:
  check_mode: {support: full, description: Reads only.}
  diff_mode: {support: none, description: Reads only.}
author: Quorumshift maintainers (@quorumshift)
"""

EXAMPLES = r"""
- name: Plan the cut
  quorumshift.kafka.zk_cut_plan:
    hosts: "{{ hosts_read }}"
    source_connect: z1:2181,z2:2181,z3:2181/kafka
    destination_connect: z4:2181,z5:2181,z6:2181/kafka
    destination_servers: {44: "z4:2888:3888", 45: "z5:2888:3888", 46: "z6:2888:3888"}
    answer_s: 0.5
    bootstrap_servers: b1:9094
    nodes: "{{ my_node_facts }}"
"""

RETURN = r"""
deadline_s:
  description: After how many seconds each host undoes the cut by itself.
  type: float
  returned: success
estimate_s:
  description: How long the cut is expected to take, in seconds.
  type: float
  returned: success
start_s:
  description: How long a server takes to start, in seconds.
  type: float
  returned: success
timeout_ms:
  description: The shortest session timeout.
  type: int
  returned: success
sessions:
  description: How many sessions the destination servers have.
  type: int
  returned: success
znodes:
  description: How many znodes the tree has.
  type: int
  returned: success
owned:
  description: The session of each of Kafka's ephemeral znodes that is known, by path.
  type: dict
  returned: success
brokers:
  description: The brokers' listeners, which are watched during the cut.
  type: list
  elements: str
  returned: success
reader:
  description: The source host whose log is read; empty where none can be.
  type: str
  returned: success
notes:
  description: What should be known before the cut.
  type: list
  elements: str
  returned: success
"""

import socket
import time

from ansible_collections.quorumshift.kafka.plugins.module_utils.core.ensemble import ensemble_cut, ensemble_move
from ansible_collections.quorumshift.kafka.plugins.module_utils.core.text.advice import sentences
from ansible_collections.quorumshift.kafka.plugins.module_utils.module_base.probe_module import ProbeModule
from ansible_collections.quorumshift.kafka.plugins.module_utils.probes.cluster import cluster
from ansible_collections.quorumshift.kafka.plugins.module_utils.probes.host import tcp_connections
from ansible_collections.quorumshift.kafka.plugins.module_utils.probes.zookeeper import zk_servers
from ansible_collections.quorumshift.kafka.plugins.module_utils.secrets.security import ZkSecurity
from ansible_collections.quorumshift.kafka.plugins.module_utils.settings.addresses import (
    parse_host_port,
    parse_zookeeper_connect,
)
from ansible_collections.quorumshift.kafka.plugins.module_utils.wire import zk_wire

CATCH_UP_S = 10.0


def main():
    """Read the source, and plan."""
    module = ProbeModule(
        {
            "hosts": {"type": "dict", "required": True},
            "source_connect": {"type": "str", "required": True},
            "destination_connect": {"type": "str", "required": True},
            "readers": {"type": "list", "elements": "str", "default": []},
            "destination_servers": {"type": "dict", "required": True},
            "owners": {"type": "dict"},
            "answer_s": {"type": "float", "required": True},
            "budget_s": {"type": "float", "default": 0},
        }
    )
    module.run(lambda: plan_cut(module))


def plan_cut(module):
    """Return the plan. Fail the module with all that is against the cut."""
    given = module.params
    security = ZkSecurity.from_options(given["zookeeper_client"])
    context = security.ssl_context()
    servers = parse_zookeeper_connect(given["source_connect"]).servers
    status = zk_servers.collect(servers, context, given["timeout"])
    brokers = sorted(node["address"] for node in module.nodes.values() if node["role"] == "broker")
    cons, notes = {}, []
    for server in servers:
        try:
            cons[str(server)] = zk_wire.four_letter(server, "cons", given["timeout"], context)
        except zk_wire.WireError as error:
            notes.append(f"the clients of source server {server} are unknown: {error}")
    found = ensemble_cut.check_ready(given["hosts"], status, await_caught_up(module, context, status))
    found += list(ensemble_cut.source_clients(cons, addresses(brokers)))
    ids = {int(number) for number in given["destination_servers"]}
    owned = read_sessions(module)
    found += list(ensemble_cut.foreign_sessions(owned, ids))
    destination = parse_zookeeper_connect(given["destination_connect"])
    creators = zk_servers.collect_creators(destination.servers, security, given["timeout"])
    found += list(ensemble_move.foreign_servers(creators, ids))
    if not destination.chroot:
        found += list(ensemble_cut.other_clients(cons))
    timeouts = [timeout_ms for host in given["hosts"].values() for timeout_ms in host["server"]["timeouts_ms"]]
    if not timeouts:
        module.fail_json(
            msg=refusal(found, "no session lives on a destination server. Restart the brokers on it (QS-ZKMOVE-011)")
        )
    znodes = max(host["server"]["znodes"] for host in given["hosts"].values())
    plan = ensemble_cut.plan(timeouts, znodes, given["answer_s"])
    if given["budget_s"]:
        plan = plan._replace(budget_s=min(given["budget_s"], plan.budget_s))
    found += list(ensemble_cut.check_length(plan))
    if found:
        module.fail_json(msg=refusal(found))
    if not given["readers"]:
        notes.append(
            "no source host is in the group zookeeper_source and reachable: the check compares zxids in the znodes, "
            "which show no change of an ACL"
        )
    return {
        "deadline_s": plan.deadline_s,
        "estimate_s": plan.estimate_s,
        "start_s": plan.start_s,
        "timeout_ms": plan.timeout_ms,
        "sessions": len(timeouts),
        "znodes": znodes,
        "brokers": brokers,
        "owned": owned,
        "reader": given["readers"][0] if given["readers"] else "",
        "notes": notes,
    }


def await_caught_up(module, context, status):
    """Wait until every destination server has processed what the source's leader had; return {server: zxid} of those
    that have not in time, or do not answer."""
    wanted = ensemble_cut.leader_zxid(status)
    servers = parse_zookeeper_connect(module.params["destination_connect"]).servers
    deadline = time.monotonic() + CATCH_UP_S
    while True:
        seen = zk_servers.collect(servers, context, module.params["timeout"])
        behind = {server: answer["zxid"] for server, answer in seen.items() if (answer["zxid"] or 0) < wanted}
        if not behind or time.monotonic() >= deadline:
            return behind
        time.sleep(0.1)


def read_sessions(module):
    """Return {path below the chroot: session} of Kafka's ephemeral znodes that are known."""
    chroot = parse_zookeeper_connect(module.params["source_connect"]).chroot
    found = ensemble_cut.name_below(chroot, module.params["owners"] or {})
    with cluster.connect_zookeeper(module.connections) as client:
        paths = ["/controller", *(f"/brokers/ids/{broker_id}" for broker_id in client.get_children("/brokers/ids"))]
        for path in paths:
            stat = client.exists(path)
            if stat and stat.ephemeralOwner:
                found[path] = stat.ephemeralOwner
    return found


def refusal(found, *more):
    """Return all that is against the cut as one message."""
    texts = [*more, *(sentences(finding.seen, finding.do) for finding in found)]
    return f"{'. '.join(texts)}. Nothing was cut."


def addresses(brokers):
    """Return the IP addresses of the brokers' hosts."""
    known = set()
    for broker in brokers:
        where = parse_host_port(broker)
        try:
            known.update(address for address, _port in tcp_connections.resolve(where.host, where.port))
        except socket.gaierror:
            continue
    return known


if __name__ == "__main__":
    main()
