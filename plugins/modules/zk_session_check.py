#!/usr/bin/python
# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: zk_session_check
short_description: Check which ZooKeeper servers a broker uses
version_added: 0.1.0
description:
  - B(Internal.) Roles of this collection call it. Its options and results may change in any release.
  - Runs on a broker's host, and reads only. It connects to ZooKeeper from there, with the broker's own TLS settings.
  - With O(state=reachable) it fails unless C(/cluster/id), read through O(zookeeper_connect), is the broker's own. A
    broker that is restarted with a wrong chroot would make a new cluster.
  - With O(state=moved) it fails unless the broker uses the servers of O(zookeeper_connect) alone. The properties file
    names no others, a server with one of O(server_ids) created the session of C(/brokers/ids/ID), and the broker's
    process has no connection to a server of O(other_connect).
options:
  state:
    description: What to check.
    type: str
    required: true
    choices: [reachable, moved]
  zookeeper_connect:
    description: The servers that the broker is to use, with the chroot.
    type: str
    required: true
  other_connect:
    description: The servers that it must not use.
    type: str
    required: true
  server_ids:
    description: The myids of the servers in O(zookeeper_connect). Without them, the session's server is not checked.
    type: list
    elements: int
    default: []
  node_id:
    description: The broker's id.
    type: int
    required: true
  config_file:
    description: The broker's properties file.
    type: path
    required: true
  service:
    description: The broker's service.
    type: str
    required: true
  timeout:
    description: How long ZooKeeper may take to answer, in seconds.
    type: float
    default: 5
attributes:
  check_mode: {support: full, description: Reads only.}
  diff_mode: {support: none, description: Reads only.}
author: Quorumshift maintainers (@quorumshift)
"""

EXAMPLES = r"""
- name: Check that the broker uses the destination alone
  quorumshift.kafka.zk_session_check:
    state: moved
    zookeeper_connect: z4:2181,z5:2181,z6:2181/kafka
    other_connect: z1:2181,z2:2181,z3:2181
    server_ids: [44, 45, 46]
    node_id: 1
    config_file: /etc/kafka/server.properties
    service: kafka
"""

RETURN = r"""
moved:
  description: Whether the broker uses the wanted servers alone.
  type: bool
  returned: success
findings:
  description: Why it does not.
  type: list
  elements: str
  returned: success
session:
  description: The session of C(/brokers/ids/ID), in hexadecimal; empty without that znode.
  type: str
  returned: success
others:
  description: Servers of O(other_connect) to which other processes of the host are connected.
  type: list
  elements: str
  returned: success
"""

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.quorumshift.kafka.plugins.module_utils.core.ensemble import zk_sessions
from ansible_collections.quorumshift.kafka.plugins.module_utils.core.text.advice import sentences
from ansible_collections.quorumshift.kafka.plugins.module_utils.formats.zookeeper.znodes import ZnodeError
from ansible_collections.quorumshift.kafka.plugins.module_utils.host import service
from ansible_collections.quorumshift.kafka.plugins.module_utils.probes.host import tcp_connections
from ansible_collections.quorumshift.kafka.plugins.module_utils.probes.node import config_providers, node
from ansible_collections.quorumshift.kafka.plugins.module_utils.probes.zookeeper import own_zookeeper
from ansible_collections.quorumshift.kafka.plugins.module_utils.secrets.masking import mask
from ansible_collections.quorumshift.kafka.plugins.module_utils.secrets.security import SecurityError
from ansible_collections.quorumshift.kafka.plugins.module_utils.settings import properties
from ansible_collections.quorumshift.kafka.plugins.module_utils.settings.addresses import (
    AddressError,
    HostPort,
    parse_zookeeper_connect,
)
from ansible_collections.quorumshift.kafka.plugins.module_utils.wire.socket_wire import WireError
from ansible_collections.quorumshift.kafka.plugins.module_utils.worker import host_identity


def main():
    """Read the broker, and fail with all that is wrong."""
    module = AnsibleModule(
        argument_spec={
            "state": {"type": "str", "required": True, "choices": ["reachable", "moved"]},
            "zookeeper_connect": {"type": "str", "required": True},
            "other_connect": {"type": "str", "required": True},
            "server_ids": {"type": "list", "elements": "int", "default": []},
            "node_id": {"type": "int", "required": True},
            "config_file": {"type": "path", "required": True},
            "service": {"type": "str", "required": True},
            "timeout": {"type": "float", "default": 5},
        },
        supports_check_mode=True,
    )
    given = module.params
    try:
        wanted = parse_zookeeper_connect(given["zookeeper_connect"])
        broker = read(given, wanted)
    except (
        OSError,
        AddressError,
        SecurityError,
        WireError,
        ZnodeError,
        properties.PropertiesError,
        ValueError,
    ) as error:
        module.fail_json(msg=mask(f"{error}. Nothing was changed on this host."))
    not_moved = list(zk_sessions.check_moved(broker, wanted, given["server_ids"]))
    found = list(zk_sessions.check_restart(broker, wanted)) if given["state"] == "reachable" else not_moved
    texts = [sentences(finding.seen, finding.do) for finding in found]
    if texts:
        module.fail_json(msg=f"{'. '.join(texts)}. Nothing was changed on this host.")
    module.exit_json(
        changed=False,
        moved=not not_moved,
        findings=[finding.seen for finding in not_moved],
        session=f"0x{broker.owner:x}" if broker.owner is not None else "",
        others=broker.others,
    )


def read(given, wanted):
    """Return the broker. Raises OSError, WireError, and errors of its properties."""
    values = config_providers.effective_values(node.read_properties(given["config_file"]), given["service"])
    connect, security = own_zookeeper.connection(values)
    others = parse_zookeeper_connect(given["other_connect"]).servers
    names = {address: HostPort(host, port) for host, port in others for address in tcp_connections.resolve(host, port)}
    pid = service.read_state(given["service"])["main_pid"]
    own, foreign = set(), set()
    for connection in tcp_connections.find_connections(names):
        (own if connection.may_be_of(pid) else foreign).add(str(names[connection.remote]))
    owner, there = own_zookeeper.read_session(wanted, security, given["node_id"], given["timeout"])
    metas = [host_identity.read_stored(path)["meta"] or {} for path in host_identity.log_dirs(values)]
    mine = {meta["cluster.id"] for meta in metas if meta.get("cluster.id")}
    return zk_sessions.Broker(
        given["node_id"],
        connect,
        owner,
        mine.pop() if len(mine) == 1 else None,
        there,
        sorted(own),
        sorted(foreign),
        given["config_file"],
        given["service"],
    )


if __name__ == "__main__":
    main()
