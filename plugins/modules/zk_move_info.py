#!/usr/bin/python
# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: zk_move_info
short_description: Say where a move between ZooKeeper ensembles is
version_added: 0.1.0
description:
  - B(Internal.) Roles of this collection call it. Its options and results may change in any release.
  - Says by what it reads which ensemble each broker uses, whether the destination's servers are observers, how the last
    cut ended on each host, and which playbook to run next. The action plugin prints that.
  - Reads the servers of both ensembles and the brokers' znodes, from the probe host. It fails nowhere, since what does
    not answer is part of the result.
options:
  hosts:
    description: What M(quorumshift.kafka.zk_cut) located on each destination host that is not in O(dead), by host. A
      host whose task failed has C(failed), C(unreachable) and C(msg) of it.
    type: dict
    required: true
  dead:
    description: The id of each destination host that the operator named dead, by host.
    type: dict
    default: {}
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
  nodes:
    description: The brokers by host name, with C(role) and C(node_id). The action plugin fills it in.
    type: dict
    default: {}
  timeout:
    description: How long each answer may take, in seconds.
    type: float
    default: 5
extends_documentation_fragment:
  - quorumshift.kafka.zookeeper
attributes:
  check_mode: {support: full, description: Changes nothing.}
  diff_mode: {support: none, description: Changes nothing.}
author: Quorumshift maintainers (@quorumshift)
"""

EXAMPLES = r"""
- name: Show where the move is
  quorumshift.kafka.zk_move_info:
    hosts: "{{ hosts_read }}"
    source_connect: z1:2181,z2:2181,z3:2181/kafka
    destination_connect: z4:2181,z5:2181,z6:2181/kafka
    destination_servers: {44: "z4:2888:3888", 45: "z5:2888:3888", 46: "z6:2888:3888"}
"""

RETURN = r"""
stage:
  description: Where the move is.
  type: str
  returned: success
  sample: 2 of 3 brokers use the destination's observers
lines:
  description: What was seen of servers, brokers, and the last cut on each host.
  type: list
  elements: str
  returned: success
playbook:
  description: The playbook to run next, empty for none.
  type: str
  returned: success
  sample: zk_migrate
given:
  description: Its variables.
  type: dict
  returned: success
advice:
  description: What to do before or instead.
  type: str
  returned: success
"""

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.quorumshift.kafka.plugins.module_utils.core.ensemble import move_status, source_mark
from ansible_collections.quorumshift.kafka.plugins.module_utils.core.text.advice import format_names
from ansible_collections.quorumshift.kafka.plugins.module_utils.formats.zookeeper import znodes
from ansible_collections.quorumshift.kafka.plugins.module_utils.module_base.argument_specs import (
    ZOOKEEPER_CLIENT_OPTIONS,
)
from ansible_collections.quorumshift.kafka.plugins.module_utils.probes.zookeeper import zk_servers
from ansible_collections.quorumshift.kafka.plugins.module_utils.secrets.masking import mask
from ansible_collections.quorumshift.kafka.plugins.module_utils.secrets.security import SecurityError, ZkSecurity
from ansible_collections.quorumshift.kafka.plugins.module_utils.settings.addresses import (
    AddressError,
    parse_zookeeper_connect,
)
from ansible_collections.quorumshift.kafka.plugins.module_utils.wire.socket_wire import WireError
from ansible_collections.quorumshift.kafka.plugins.module_utils.wire.zk_wire import NoNode, ZkConnection

OWN = ("leader", "follower")


def main():
    """Read, and say where the move is."""
    module = AnsibleModule(
        argument_spec={
            "hosts": {"type": "dict", "required": True},
            "dead": {"type": "dict", "default": {}},
            "source_connect": {"type": "str", "required": True},
            "destination_connect": {"type": "str", "required": True},
            "destination_servers": {"type": "dict", "required": True},
            "zookeeper_client": {"type": "dict", "options": ZOOKEEPER_CLIENT_OPTIONS},
            "nodes": {"type": "dict", "default": {}},
            "timeout": {"type": "float", "default": 5},
        },
        supports_check_mode=True,
    )
    try:
        status = move_status.describe(read(module.params))
    except (AddressError, SecurityError, ValueError) as error:
        module.fail_json(msg=mask(f"{error}."))
    module.exit_json(changed=False, **status._asdict())


def read(given):
    """Return what is seen of the move. Raises AddressError, SecurityError."""
    security = ZkSecurity.from_options(given["zookeeper_client"])
    source, destination = (parse_zookeeper_connect(given[f"{name}_connect"]) for name in ("source", "destination"))
    of_source = zk_servers.collect(source.servers, security.ssl_context(), given["timeout"])
    of_destination = zk_servers.collect(destination.servers, security.ssl_context(), given["timeout"])
    serves = any(answer["mode"] in OWN for answer in of_destination.values())
    brokers = {host: node["node_id"] for host, node in given["nodes"].items() if node["role"] == "broker"}
    try:
        sessions = read_sessions(destination if serves else source, security, brokers, given["timeout"])
    except WireError:
        sessions = {}
    ids = [int(number) for number in given["destination_servers"]]
    located = {path: move_status.locate_session(session, ids) for path, session in sessions.items()}
    controller = located.pop("/controller", move_status.ABSENT)
    hosts = {host: answer or {} for host, answer in given["hosts"].items()}
    unread = {host: explain_unread(answer) for host, answer in hosts.items() if "server" not in answer}
    return move_status.Seen(
        {host: answer if answer.get("cut") else {} for host, answer in hosts.items()},
        unread,
        of_source,
        of_destination,
        located or dict.fromkeys(brokers, move_status.ABSENT),
        controller,
        read_shown_id(source, security, given["timeout"]),
        sorted(given["dead"]),
    )


def read_sessions(connect, security, brokers, timeout):
    """Return {broker's host or "/controller": session, None without its znode}. Raises WireError."""
    found = {}
    with ZkConnection(connect, security, timeout) as client:
        for name, path in [
            ("/controller", "/controller"),
            *((host, f"/brokers/ids/{n}") for host, n in brokers.items()),
        ]:
            stat = client.exists(path)
            found[name] = stat.ephemeral_owner if stat and stat.ephemeral_owner else None
    return found


def read_shown_id(source, security, timeout):
    """Return the cluster id on a source that is marked, '' if it is not marked or gives no answer."""
    try:
        with ZkConnection(source, security, timeout) as client:
            client.get(source_mark.PATH)
            return znodes.cluster_id(client.get(source_mark.CLUSTER_ID)[0])
    except (NoNode, WireError, znodes.ZnodeError):
        return ""


def explain_unread(answer):
    """Return why a host was not read."""
    text = " ".join(str(answer.get("msg") or "it gave no answer").split())
    return format_names([mask(text)])


if __name__ == "__main__":
    main()
