#!/usr/bin/python
# Copyright: (c) 2026, Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: node_paths
short_description: See what the preflight asks of one host, whom it reaches and whose replicas it holds
version_added: 0.1.0
description:
  - Connects by TCP from the host to each target, all at once, and tells which did not answer and why. Nothing is said
    on the connections.
  - Binds O(listen) for a moment, without listening, as the controller will.
  - Reads of every partition in O(log_dirs) the topic id.
  - Looks where a ZooKeeper server that runs on the host keeps its data.
  - Logs in to the brokers with Kafka's own client, as the controller of this host will.
  - Needs nothing but Python's standard library on the host, and Kafka for O(login). It changes nothing there.
options:
  dial:
    description:
      - Whom to connect to. When it is left out, the action plugin of this module fills it in. From a broker, that is
        ZooKeeper and the controllers; from a controller, ZooKeeper, the other controllers and the brokers' inter-broker
        listeners.
    type: list
    elements: dict
    default: []
    suboptions:
      kind:
        description: What is reached there.
        type: str
        required: true
        choices: [zookeeper, controller, broker]
      to:
        description: The name of the host or server, for messages.
        type: str
        required: true
      address:
        description: Where it listens, as V(host:port).
        type: str
        required: true
  listen:
    description: Where the controller of this host is to listen, as V(host:port). Left out when it runs already.
    type: str
  log_dirs:
    description: The broker's log directories. When it is left out, the action plugin of this module fills it in.
    type: list
    elements: path
    default: []
  login:
    description:
      - How the controller of this host will log in to brokers. Left out where it dials them without TLS and login. When
        it is left out, the action plugin of this module fills it in.
    type: dict
    suboptions:
      brokers:
        description: Where brokers listen for controllers, as V(host:port). All brokers are asked, whichever are named.
        type: list
        elements: str
        required: true
      settings:
        description: A client's settings, secrets sealed.
        type: dict
        required: true
      run_key:
        description: The key with which the secrets are sealed.
        type: str
        required: true
      user:
        description: The user that runs the controller.
        type: str
        required: true
      kafka_home:
        description: Where Kafka is installed.
        type: str
        required: true
      timeout:
        description: How many seconds all brokers together may take.
        type: float
        default: 60
  required:
    description:
      - Dial the controllers alone, which run by now, and fail when one does not answer. Without it, what does not
        answer is told, and nothing is asked once a broker's properties are not those of plain ZooKeeper mode any more.
    type: bool
    default: false
  timeout:
    description: How many seconds one connection may take, name resolution included.
    type: float
    default: 5
attributes:
  check_mode: {support: full, description: Reads only.}
  diff_mode: {support: none, description: Changes nothing.}
author: Quorumshift maintainers (@quorumshift)
"""

EXAMPLES = r"""
- name: See whom the host reaches
  quorumshift.kafka.node_paths:
    dial:
      - {kind: zookeeper, to: z1, address: "z1:2181"}
"""

RETURN = r"""
ansible_facts:
  description: The facts, as C(quorumshift_paths).
  type: dict
  returned: success
  contains:
    quorumshift_paths:
      description:
        - C(dialled), how many targets of each kind were tried; C(failed), those that did not answer, with C(reason) and
          C(error); C(listen), what was found where the controller is to listen; C(replicas), the topic ids and
          partitions in the log directories; C(zookeeper), the servers on this
          host with their directories; C(login), C(answered) with the ids of the brokers that let it in and
          C(errors), or null where none was asked for.
      type: dict
      returned: success
"""

from collections import Counter

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.quorumshift.kafka.plugins.module_utils.addresses import AddressError
from ansible_collections.quorumshift.kafka.plugins.module_utils.probes import logins, paths, replicas, zk_host
from ansible_collections.quorumshift.kafka.plugins.module_utils.seal import SealError, unseal


def main():
    """Look and exit."""
    target = {
        "kind": {"type": "str", "required": True, "choices": ["zookeeper", "controller", "broker"]},
        "to": {"type": "str", "required": True},
        "address": {"type": "str", "required": True},
    }
    login = {
        "brokers": {"type": "list", "elements": "str", "required": True},
        "settings": {"type": "dict", "required": True},
        "run_key": {"type": "str", "required": True, "no_log": True},
        "user": {"type": "str", "required": True},
        "kafka_home": {"type": "str", "required": True},
        "timeout": {"type": "float", "default": 60},
    }
    module = AnsibleModule(
        argument_spec={
            "dial": {"type": "list", "elements": "dict", "default": [], "options": target},
            "listen": {"type": "str"},
            "log_dirs": {"type": "list", "elements": "path", "default": []},
            "login": {"type": "dict", "options": login},
            "required": {"type": "bool", "default": False},
            "timeout": {"type": "float", "default": 5},
        },
        supports_check_mode=True,
    )
    given = module.params
    try:
        reported = {
            "dialled": dict(Counter(one["kind"] for one in given["dial"])),
            "failed": paths.check_connectivity(given["dial"], given["timeout"]),
            "listen": paths.check_port(given["listen"]) if given["listen"] else None,
            "replicas": replicas.gather(given["log_dirs"]),
            "zookeeper": zk_host.gather(),
            "login": _login(given["login"]) if given["login"] else None,
        }
    except (AddressError, SealError) as error:
        module.fail_json(msg=str(error))
    module.exit_json(changed=False, ansible_facts={"quorumshift_paths": reported})


def _login(given):
    settings = {key: unseal(given["run_key"], str(value)) for key, value in given["settings"].items()}
    return logins.attempt(given["kafka_home"], given["user"], settings, given["brokers"], given["timeout"])


if __name__ == "__main__":
    main()
