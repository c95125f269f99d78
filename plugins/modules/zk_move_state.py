#!/usr/bin/python
# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: zk_move_state
short_description: Decide how a move between ZooKeeper ensembles goes on
version_added: 0.1.0
description:
  - B(Internal.) Roles of this collection call it. Its options and results may change in any release.
  - Decides by what M(quorumshift.kafka.zk_cut) read on each destination host. It reads nothing itself, but checks from
    the host on which it runs that no host in O(dead) answers.
  - It fails where the run must end. A host could not be read. The hosts, O(destination_servers) and
    O(destination_connect) are not one set. Only a part of the hosts accepted a promotion. With O(direction=back), the
    destination served Kafka. A host in O(dead) answers, or is in O(destination_connect), or the others are no majority.
options:
  hosts:
    description: What M(quorumshift.kafka.zk_cut) returned on each destination host that is not in O(dead), by host;
      empty where it failed.
    type: dict
    required: true
  dead:
    description: The id of each destination host that the operator named dead, by host. The move goes on without them.
    type: dict
    default: {}
  cleaned:
    description: Hosts that were named dead, are there again, and whose old files the operator gave up.
    type: list
    elements: str
    default: []
  timeout:
    description: How long a host in O(dead) may take to accept a connection, in seconds.
    type: float
    default: 2
  myids:
    description: The id of each destination host's server, by host.
    type: dict
    default: {}
  destination_servers:
    description: The address of each destination server by its id.
    type: dict
    default: {}
  destination_connect:
    description: All servers of the destination.
    type: str
    default: ''
  direction:
    description: Whether the run moves Kafka to the destination, or back to the source. V(none) fails nowhere.
    type: str
    choices: [forward, back, none]
    required: true
attributes:
  check_mode: {support: full, description: Changes nothing.}
  diff_mode: {support: none, description: Changes nothing.}
author: Quorumshift maintainers (@quorumshift)
"""

EXAMPLES = r"""
- name: Decide how the move goes on
  quorumshift.kafka.zk_move_state:
    hosts: "{{ hosts_read }}"
    myids: {z4: 44, z5: 45, z6: 46}
    destination_servers: {44: "z4:2888:3888", 45: "z5:2888:3888", 46: "z6:2888:3888"}
    destination_connect: z4:2181,z5:2181,z6:2181/kafka
    direction: forward
"""

RETURN = r"""
standing:
  description: >-
    Where the move is. V(join) before a promotion, V(finish) or V(rollback) of one, V(served) after it. V(stray) if the
    destination serves, and a host is no part of it.
  type: str
  returned: success
resume:
  description: Hosts whose promotion goes on.
  type: list
  elements: str
  returned: success
suspend:
  description: Hosts whose promotion is under way.
  type: list
  elements: str
  returned: success
take_back:
  description: Hosts whose promotion was suspended.
  type: list
  elements: str
  returned: success
heal:
  description: Hosts on which an earlier run left rules of a cut.
  type: list
  elements: str
  returned: success
clean:
  description: Hosts that were named dead, are there again, and are to be cleaned.
  type: list
  elements: str
  returned: success
add:
  description: Hosts that were left out as dead, and join the ensemble that serves once they are empty.
  type: list
  elements: str
  returned: success
going_on:
  description: Hosts that may still be promoted.
  type: list
  elements: str
  returned: success
one_promoted:
  description: Whether a host was promoted.
  type: bool
  returned: success
verify:
  description: Whether the destination serves, and no run has verified it.
  type: bool
  returned: success
promotion:
  description: C({id, last}) of the promotion that hosts in RV(add) join, its cut and the zxid to which its files led.
  type: dict
  returned: success
server_ids:
  description: The ids of O(destination_servers) but those in O(dead), as numbers.
  type: list
  elements: int
  returned: success
moves:
  description: How many runs had begun to move brokers, by host.
  type: dict
  returned: success
living_servers:
  description: O(destination_servers) without those in O(dead).
  type: dict
  returned: success
voters:
  description: How many servers O(destination_servers) has.
  type: int
  returned: success
notes:
  description: What the operator must know.
  type: list
  elements: str
  returned: success
next_step:
  description: How to go on after a cut that failed.
  type: str
  returned: success
"""

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.quorumshift.kafka.plugins.module_utils.core.ensemble import ensemble_move
from ansible_collections.quorumshift.kafka.plugins.module_utils.core.text.advice import sentences
from ansible_collections.quorumshift.kafka.plugins.module_utils.probes.host import paths
from ansible_collections.quorumshift.kafka.plugins.module_utils.settings.addresses import (
    AddressError,
    parse_zookeeper_connect,
)

HERE = "the probe host"


def main():
    """Decide."""
    module = AnsibleModule(
        argument_spec={
            "hosts": {"type": "dict", "required": True},
            "dead": {"type": "dict", "default": {}},
            "cleaned": {"type": "list", "elements": "str", "default": []},
            "timeout": {"type": "float", "default": 2},
            "myids": {"type": "dict", "default": {}},
            "destination_servers": {"type": "dict", "default": {}},
            "destination_connect": {"type": "str", "default": ""},
            "direction": {"type": "str", "choices": ["forward", "back", "none"], "required": True},
        },
        supports_check_mode=True,
    )
    given = module.params
    dead = {host: int(number) for host, number in given["dead"].items()}
    cuts = {host: (answer or {}).get("cut") or {} for host, answer in given["hosts"].items()}
    decision = ensemble_move.decide(cuts, given["direction"], dead, given["cleaned"])
    try:
        findings = decision.findings or check_inventory(given, dead)
    except (AddressError, ValueError) as error:
        module.fail_json(msg=f"{error}. Nothing was changed.")
    if findings and given["direction"] != ensemble_move.NONE:
        texts = [sentences(finding.seen, finding.do) for finding in findings]
        module.fail_json(msg=f"{'. '.join(texts)}. Nothing was changed.")
    states = {host: cut.get("state", "unknown") for host, cut in cuts.items()}
    values = {key: value for key, value in decision._asdict().items() if key != "findings"}
    servers = {int(number): address for number, address in given["destination_servers"].items()}
    living = {str(number): address for number, address in servers.items() if number not in dead.values()}
    module.exit_json(
        changed=False,
        next_step=ensemble_move.next_step(states),
        server_ids=sorted(map(int, living)),
        living_servers=living,
        moves={host: cut.get("moves") or 0 for host, cut in cuts.items()},
        voters=len(servers),
        **values,
    )


def check_inventory(given, dead):
    """Return where the hosts, the servers and the connect string are not one set."""
    if given["direction"] == ensemble_move.NONE:
        return []
    hosts = {
        host: {**answer["server"], "myid": int(given["myids"][host])}
        for host, answer in given["hosts"].items()
        if host in given["myids"]
    }
    servers = {int(number): address for number, address in given["destination_servers"].items()}
    connect = parse_zookeeper_connect(given["destination_connect"])
    found = list(ensemble_move.check_inventory(hosts, servers, connect, dead, given["direction"]))
    addresses = ensemble_move.addresses_of(dead, servers, [str(server.port) for server in connect.servers])
    return found + list(
        ensemble_move.check_dead_hosts(dead, servers, {HERE: paths.find_answering(addresses, given["timeout"])})
    )


if __name__ == "__main__":
    main()
