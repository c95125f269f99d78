#!/usr/bin/python
# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: zk_clients_info
short_description: Show who uses a ZooKeeper ensemble, or prove that nothing does
version_added: 0.1.0
description:
  - Asks each server for its connections with the four letter word C(cons), and the leader for all sessions with
    C(dump). Where a server allows neither, or has a second client port, it asks the server's AdminServer. The leader's
    C(mntr) counts the sessions, if nothing lists them.
  - Each client has an address, a kind, its session, its last operation, and the ephemeral znodes that it owns. It also
    lists the parts of the tree that are not Kafka's.
  - With O(state=unused) it reads twice, O(interval_s) apart. It fails if one reading has a client, if the ensemble's
    zxid moved between them, if the tree has a part of another application that O(accept_paths) does not name, or if
    something is not known.
  - A client that connects once a week is seen in no short reading. List the clients often, weeks before, and look for
    C(--zookeeper) and C(zookeeper.connect) in what is scheduled.
  - Reads only. For the tree it opens a session of its own, which ends before the first reading.
options:
  state:
    description: V(listed) returns what it finds. V(unused) fails unless nothing uses the ensemble.
    type: str
    choices: [listed, unused]
    default: listed
  zookeeper_connect:
    description:
      - All servers of the ensemble, observers too, with Kafka's chroot once at the end.
    type: str
    required: true
  admin_port:
    description: The port of the servers' AdminServers (C(admin.serverPort)). With V(0) none is asked.
    type: int
    default: 8080
  interval_s:
    description: With O(state=unused), how long after the first reading the second one is made, in seconds.
    type: float
    default: 60
  accept_paths:
    description:
      - Paths of the tree that are not Kafka's and that no application needs, as V(/solr). They do not count.
    type: list
    elements: str
    default: []
  stopped:
    description:
      - The id of each server of O(zookeeper_connect) that is stopped for good, by V(host:port). It is not asked.
    type: dict
    default: {}
  voters:
    description:
      - The ids of the servers that vote. Once half of them are O(stopped), the others serve no client.
        By default, each server of O(zookeeper_connect) votes.
    type: list
    elements: int
    default: []
  cluster_id:
    description: Fail if C(/cluster/id) is another one. The action plugin sets it in a run.
    type: str
  nodes:
    description:
      - The nodes by host name, with C(role) (V(broker) or V(controller)) and C(host_address). Their clients are named
        after them. The action plugin fills it from the inventory groups C(kafka_broker) and C(kafka_controller).
    type: dict
    default: {}
  timeout:
    description: How long each answer may take, in seconds.
    type: float
    default: 5
  carry:
    description: What an earlier, unfinished call of the same wait returned. The action plugin passes it on.
    type: dict
    default: {}
  show:
    description: Print the clients. Handled by the action plugin.
    type: bool
    default: false
extends_documentation_fragment:
  - quorumshift.kafka.attributes
  - quorumshift.kafka.attributes.reads
  - quorumshift.kafka.zookeeper
  - quorumshift.kafka.zookeeper.connect
requirements:
  - kazoo >= 2.11
  - pure-sasl (with O(zookeeper_client.sasl_mechanism))
  - kerberos (with O(zookeeper_client.sasl_mechanism=GSSAPI))
notes:
  - Runs on any host that reaches the client ports of all servers, by default the control node.
  - It prints addresses and paths of other applications, and no data.
seealso:
  - module: quorumshift.kafka.zk_backup
  - name: Decommission ZooKeeper
    description: What to do weeks before, and at the end.
    link: https://github.com/quorumshift/kafka/blob/main/docs/decommission.md
author: Quorumshift maintainers (@quorumshift)
"""

EXAMPLES = r"""
- name: List who uses the ensemble
  quorumshift.kafka.zk_clients_info:
    zookeeper_connect: z1:2181,z2:2181,z3:2181/kafka
  register: my_clients

- name: Show the addresses that are of no broker and no controller
  ansible.builtin.debug:
    msg: "{{ my_clients.clients | selectattr('kind', 'eq', 'unknown') | map(attribute='address') | unique }}"

- name: Show them in one line for each address
  quorumshift.kafka.zk_clients_info:
    zookeeper_connect: z1:2181,z2:2181,z3:2181/kafka
    show: true

- name: Fail unless nothing uses the ensemble for ten minutes
  quorumshift.kafka.zk_clients_info:
    state: unused
    zookeeper_connect: z1:2181,z2:2181,z3:2181/kafka
    interval_s: 600
    accept_paths: [/solr]
"""

RETURN = r"""
clients:
  description:
    - Each connection, and each session without one. C(kind) is V(broker), V(controller), V(zookeeper) (the host of a
      server), V(tool) (this module) or V(unknown), C(name) the host or the broker, C(paths) the ephemeral znodes of the
      session, C(established) a time in epoch seconds or null. C(session) is empty for a connection without a session,
      C(address) for a session without a connection.
  type: list
  elements: dict
  returned: success, and if O(state=unused) fails
  sample:
    - kind: unknown
      name: ""
      address: 127.0.1.4
      port: 50845
      server: 127.0.0.1:48075
      session: "0x1000041aad50003"
      timeout_ms: 20000
      last_operation: CREA
      received: 8
      sent: 8
      established: 1795953552.504
      paths: [/solr/live_nodes/s1]
servers:
  description:
    - Each server by its address, with C(mode), C(source) (V(cons), V(AdminServer), or empty), C(clients) (how many),
      C(stopped) and C(error) (why something is not known, else null).
  type: dict
  returned: success, and if O(state=unused) fails
  sample:
    127.0.0.1:48075: {mode: follower, source: cons, clients: 8, stopped: false, error: null}
    127.0.0.2:54067: {mode: leader, source: AdminServer, clients: 1, stopped: false, error: null}
others:
  description:
    - Each part of the tree that is not Kafka's, with C(znodes), C(bytes), and when it C(changed) last in epoch seconds.
      No more than 10000 znodes of each are counted.
  type: list
  elements: dict
  returned: success, and if O(state=unused) fails
  sample: [{path: /solr, znodes: 3, bytes: 0, changed: 1795953552.529}]
findings:
  description: Why the ensemble is not proved to be unused, each with C(seen) and C(do).
  type: list
  elements: dict
  returned: success, and if O(state=unused) fails
  sample:
    - seen: "/solr is not of this cluster: 3 znodes, 0 bytes (QS-ZKSTOP-004)"
      do: >-
        move the application that has it to another ensemble. If nothing needs it, accept that with
        -e decommission_accept_paths=/solr
lines:
  description: One line for each address that uses the ensemble.
  type: list
  elements: str
  returned: success, and if O(state=unused) fails
  sample:
    - >-
      a client from 127.0.1.2 (broker, b9): session 0x1000041aad50002, at 127.0.0.1:48075, last operation EXIS
"""

import time

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.quorumshift.kafka.plugins.module_utils import message_ids
from ansible_collections.quorumshift.kafka.plugins.module_utils.core.ensemble import zk_clients as core
from ansible_collections.quorumshift.kafka.plugins.module_utils.core.text import advice
from ansible_collections.quorumshift.kafka.plugins.module_utils.formats.zookeeper import znodes
from ansible_collections.quorumshift.kafka.plugins.module_utils.module_base.argument_specs import CONNECTION
from ansible_collections.quorumshift.kafka.plugins.module_utils.probes.zookeeper import (
    zk_clients,
    zk_servers,
    zookeeper,
)
from ansible_collections.quorumshift.kafka.plugins.module_utils.secrets.masking import mask
from ansible_collections.quorumshift.kafka.plugins.module_utils.secrets.security import SecurityError, ZkSecurity
from ansible_collections.quorumshift.kafka.plugins.module_utils.settings import addresses, properties

SLICE_S = 5.0


def main():
    """List the clients, or prove that there are none."""
    module = AnsibleModule(
        argument_spec={
            "state": {"type": "str", "choices": ["listed", "unused"], "default": "listed"},
            "zookeeper_connect": {**CONNECTION["zookeeper_connect"], "required": True},
            "zookeeper_client": CONNECTION["zookeeper_client"],
            "admin_port": {"type": "int", "default": zk_clients.ADMIN_PORT},
            "interval_s": {"type": "float", "default": 60},
            "accept_paths": {"type": "list", "elements": "str", "default": []},
            "stopped": {"type": "dict", "default": {}},
            "voters": {"type": "list", "elements": "int", "default": []},
            "cluster_id": {"type": "str"},
            "nodes": {"type": "dict", "default": {}},
            "timeout": CONNECTION["timeout"],
            "carry": {"type": "dict", "default": {}},
            "show": {"type": "bool", "default": False},
        },
        supports_check_mode=True,
    )
    try:
        security = ZkSecurity.from_options(module.params["zookeeper_client"])
        result = run(module.params, security)
    except (addresses.AddressError, SecurityError) as error:
        module.fail_json(msg=message_ids.move_to_end(mask(str(error))))
    if module.params["state"] == "unused" and result.get("done", True) and result["findings"]:
        texts = [advice.sentences(finding["seen"], finding["do"]) for finding in result["findings"]]
        lines = "\n".join(f"{text}." for text in texts)
        said = f"ZooKeeper is not proved to be unused. Reasons: {len(texts)}\n{lines}"
        module.fail_json(msg=message_ids.move_to_end(mask(said)), **result)
    module.exit_json(changed=False, **result)


def run(given, security):
    """Return the result of one slice. Raises AddressError, SecurityError."""
    connect = addresses.parse_zookeeper_connect(given["zookeeper_connect"])
    stopped = check_stopped(given["stopped"], connect)
    asked = zk_clients.Asked(security.ssl_context(), given["timeout"], given["admin_port"])
    carry = given["carry"]
    if not carry:
        first, tree = read_first(given, security, connect, stopped, asked)
        found = [*tree["findings"], *find_unknown(first["reading"], tree, lost_quorum(given, connect, stopped))]
        result = conclude(given, [first], tree, found)
        if given["state"] == "listed" or result["findings"]:
            return result
        carry = {"began": first["reading"].time, "tree": tree, "clients": first["clients"], "zxid": first["zxid"]}
    left = carry["began"] + given["interval_s"] - time.time()
    if left > SLICE_S:
        time.sleep(SLICE_S)
        progress = f"reads the clients of ZooKeeper again in {left - SLICE_S:.0f} s"
        return {"done": False, "progress": progress, "carry": carry}
    time.sleep(max(0, left))
    second = read_clients(given, connect, stopped, asked, ())
    tree = {**carry["tree"], "others": [core.Subtree(*other) for other in carry["tree"]["others"]]}
    first = {"clients": [core.Client(*client) for client in carry["clients"]], "zxid": carry["zxid"]}
    unknown = find_unknown(second["reading"], tree, lost_quorum(given, connect, stopped))
    return conclude(given, [first, second], tree, unknown)


def lost_quorum(given, connect, stopped):
    """Return whether so many servers are stopped that the others serve no session."""
    return core.has_lost_quorum(stopped, given["voters"], len(connect.servers))


def check_stopped(stopped, connect):
    """Return {server: its id} of those that are stopped. Raises AddressError for one that is not in the connect
    string."""
    known = {str(server) for server in connect.servers}
    strange = sorted(set(stopped) - known)
    if strange:
        raise addresses.AddressError(
            f"{advice.format_names(strange)} in stopped is no server of {connect} (QS-CONNECT-006)"
        )
    return {server: int(number) for server, number in stopped.items()}


def read_first(given, security, connect, stopped, asked):
    """Return the first reading, and what a session shows: the tree, the ensemble's members, the servers' ids. The
    session ends before the reading."""
    left = [server for server in connect.servers if str(server) not in stopped]
    tree = {"findings": [], "others": [], "members": [], "creators": dict(stopped)}
    if lost_quorum(given, connect, stopped):
        # The others serve no session any more, or will not in a moment. The tree was read before the first stop.
        return read_clients(given, connect, stopped, asked, ()), tree
    own = ()
    try:
        root = addresses.ZkConnect(tuple(left), "")
        with zookeeper.connect(root, max(given["timeout"], 10.0), **security.kazoo()) as client:
            own = (client.client_id[0] & (1 << 64) - 1,)
            tree["members"] = zk_clients.read_members(client, given["timeout"])
            tree["others"] = zk_clients.read_others(client, connect.chroot, given["timeout"])
            check_cluster(given, client, connect.chroot, tree["findings"])
    except (zookeeper.ZooKeeperError, properties.PropertiesError, IndexError) as error:
        tree["findings"].append(
            core.Finding(
                f"the tree could not be read: {error} (QS-ZKSTOP-002)",
                "start the ensemble, or correct quorumshift_zookeeper_client, and run again",
            )
        )
    # Without a login: a server names itself in the id of any session
    asked_ids = zk_servers.collect_creators(left, ZkSecurity(tls=security.tls), given["timeout"])
    tree["creators"].update(asked_ids)
    return read_clients(given, connect, stopped, asked, own), tree


def check_cluster(given, client, chroot, findings):
    """Add that the ensemble is of another cluster."""
    wanted = given["cluster_id"]
    if not wanted:
        return
    path = chroot + znodes.CLUSTER_ID
    node = next(iter(zookeeper.Reader(client, timeout=given["timeout"]).get_many([path])), None)
    try:
        there = znodes.cluster_id(node.data) if node is not None else None
    except znodes.ZnodeError:
        there = "unreadable"
    if there != wanted:
        findings.append(
            core.Finding(
                f"{path} of the ensemble is {there or 'missing'}, and this cluster is {wanted} (QS-ZKSTOP-001)",
                "correct quorumshift_zookeeper_connect: this may be the ensemble of another cluster",
            )
        )


def read_clients(given, connect, stopped, asked, own):
    """Return {reading, clients, zxid} of one reading."""
    nodes = given["nodes"]
    by_role = {
        role: zk_clients.resolve_hosts(
            {host: node.get("host_address") or host for host, node in nodes.items() if node.get("role") == role}
        )
        for role in (core.BROKER, core.CONTROLLER)
    }
    reading = zk_clients.read(connect.servers, asked, stopped)
    known = core.Known(by_role[core.BROKER], by_role[core.CONTROLLER], own)
    clients = core.name_servers(reading.servers, core.find_clients(reading, known, connect.chroot))
    zxids = [server.zxid for server in reading.servers.values() if server.zxid is not None]
    return {"reading": reading, "clients": clients, "zxid": max(zxids, default=None)}


def find_unknown(reading, tree, without_quorum):
    """Return what is not known of a reading."""
    creators = {name: tree["creators"].get(name) for name in reading.servers}
    return list(core.check_known(reading, tree["members"], creators, without_quorum))


def conclude(given, readings, tree, findings):
    """Return the result of one or two readings: of the last, with the findings of both."""
    reading = readings[-1]["reading"]
    used = core.check_unused(
        [found["clients"] for found in readings],
        [found["zxid"] for found in readings],
        tree["others"],
        given["accept_paths"],
    )
    clients = readings[-1]["clients"]
    return {
        "clients": [client.facts() for client in clients],
        "servers": {
            name: {
                "mode": server.mode,
                "source": server.source,
                "clients": len(server.connections) if server.connections is not None else None,
                "stopped": server.is_stopped,
                "error": server.error or None,
            }
            for name, server in reading.servers.items()
        },
        "others": [dict(other._asdict()) for other in tree["others"]],
        "findings": [
            {"seen": message_ids.move_to_end(finding.seen), "do": finding.do} for finding in [*findings, *used]
        ],
        "lines": core.table(clients),
    }


if __name__ == "__main__":
    main()
