#!/usr/bin/python
# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: node_facts
short_description: Read a Kafka broker or controller on its host
version_added: 0.1.0
description:
  - B(Internal.) Roles of this collection call it. Its options and results may change in any release.
  - Reads only, with nothing but Python's standard library on the host (and Kafka's own client for O(login)).
  - The subset V(node) reads the service, the properties file with secrets sealed under a key of the run, each log
    directory's C(meta.properties) and free space, the metadata log, and the record of the host's newest restart.
    A missing or unreadable item is reported in its place and is no error.
  - The subset V(clock), and V(node) with it, reads the host's boot id and the seconds since that boot. With them the
    host finds out how old a gate token is.
  - The subset V(connectivity) connects by TCP from the host to O(targets), all at once, and reports which did not
    answer and why. It binds O(listen) briefly, reads the topic id of every partition in O(log_dirs), finds ZooKeeper
    servers on the host, and logs in to the brokers with the controller's settings.
  - The subset V(partition_epochs) reads from the metadata log of a stopped controller how often each partition has
    changed, for M(quorumshift.kafka.restore_zk_controller).
  - The subset V(replicas) reads from the log directories of a stopped broker, for each partition, the topic id, the
    leader epoch and end offset of the last record, and the newest leader epoch, for
    M(quorumshift.kafka.zk_restore). It fails while the broker runs, and on an unreadable log.
options:
  gather_subset:
    description: What to read.
    type: list
    elements: str
    choices: [node, clock, connectivity, partition_epochs, replicas]
    default: [node]
  failure_is_fact:
    description:
      - Whether facts that cannot be read are no failure of the task. The phase is then detected without them, as
        without those of an unreachable host. For the first reading of a run alone; facts of an earlier one would stay.
    type: bool
    default: false
  role:
    description: The kind of node on the host.
    type: str
    choices: [broker, controller]
  node_id:
    description: The inventory's id, for a node that has no properties file. With O(role) it names the node's directory.
    type: int
  config_file:
    description: The properties file that the service starts with.
    type: path
  service:
    description: The service's name.
    type: str
  kafka_home:
    description: Where Kafka is installed. The version is read from the name of its jar in C(libs).
    type: path
    default: /opt/kafka
  log_dir:
    description: The log directory to read if no properties file names one.
    type: path
    default: ""
  journal_events:
    description: How many of the newest events of the host's journal to return.
    type: int
    default: 20
  last_start:
    description: Whether to read in O(log_file), and in the files that it was rolled to, how long the last start took.
    type: bool
    default: false
  log_file:
    description: The node's own log. Its newest error is returned, with the secrets of O(config_file) masked.
    type: path
    default: ""
  run_key:
    description: The key under which secrets are sealed. The action plugin makes it.
    type: str
  targets:
    description:
      - The servers to connect to. By default, a broker connects to ZooKeeper and the controllers. A controller connects
        to ZooKeeper, the other controllers and the brokers' inter-broker listeners.
    type: list
    elements: dict
    default: []
    suboptions:
      kind:
        description: The kind of server.
        type: str
        required: true
        choices: [zookeeper, controller, broker]
      to:
        description: The name of the host or server, for messages.
        type: str
        required: true
      address:
        description: The server's address, as V(host:port).
        type: str
        required: true
  listen:
    description: The address of this host's future controller, as V(host:port). Omit it while the controller runs.
    type: str
  log_dirs:
    description: The broker's log directories. By default, those that its properties file names.
    type: list
    elements: path
    default: []
  content:
    description:
      - The properties of this host's future controller, with secrets sealed under O(run_key). The variables of config
        providers in them are resolved.
    type: dict
    default: {}
  login:
    description:
      - How this host's controller will log in to brokers. Omitted where it connects without TLS and SASL.
    type: dict
    suboptions:
      brokers:
        description: Listeners of brokers for controllers, as V(host:port). The login is tried at all of the brokers.
        type: list
        elements: str
        required: true
      settings:
        description: The client's settings, with secrets sealed.
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
        description: How many seconds the logins to all brokers together may take.
        type: float
        default: 60
  own_zookeeper:
    description: With V(connectivity), read ZooKeeper with the broker's settings in O(config_file), as a restart does.
    type: bool
    default: false
  connectivity_required:
    description:
      - With V(connectivity), connect to the running controllers only, and fail if one does not answer.
      - Without this option, failures are only reported. The module checks nothing after a broker has left plain
        ZooKeeper mode.
    type: bool
    default: false
  timeout:
    description: How many seconds one connection may take, name resolution included.
    type: float
    default: 5
extends_documentation_fragment:
  - quorumshift.kafka.host_record
attributes:
  check_mode: {support: full, description: Reads only.}
  diff_mode: {support: none, description: Reads only.}
author: Quorumshift maintainers (@quorumshift)
"""

EXAMPLES = r"""
- name: Read the broker
  quorumshift.kafka.node_facts:
    role: broker
    config_file: /etc/kafka/server.properties
    service: kafka

- name: Check which servers the host reaches
  quorumshift.kafka.node_facts:
    gather_subset: [connectivity]
    targets:
      - {kind: zookeeper, to: z1, address: "z1:2181"}
"""

RETURN = r"""
unread:
  description: Why the facts could not be read.
  type: str
  returned: with O(failure_is_fact), if they could not be read
ansible_facts:
  description: The facts.
  type: dict
  returned: with the subset V(node), V(clock) or V(connectivity)
  contains:
    quorumshift_node:
      description: Service, file, node id, log directories, metadata log, newest restart.
      type: dict
      returned: with the subset V(node)
    quorumshift_last_start:
      description:
        - C(start_s), how many seconds the node's last start took, and C(stop_s), those of the stop before it, or null.
          Null where its log does not say.
      type: dict
      returned: with the subset V(node) and O(last_start)
    quorumshift_clock:
      description: C(boot_id) and C(uptime_s), or C(error).
      type: dict
      returned: with the subset V(node) or V(clock)
    quorumshift_paths:
      description:
        - C(tried), how many targets of each kind were tried; C(failed), those that did not answer, with C(reason) and
          C(error); C(listen), whether the controller's address is free; C(replicas), the topic ids and
          partitions in the log directories; C(zookeeper), the servers on this host with directories and settings;
          C(login), C(answered) with the ids of the brokers that accepted the login and C(errors), or null without
          O(login); C(own_zookeeper), why ZooKeeper could not be read with the broker's settings, or null;
          C(variables) of config providers in O(content), each with its C(key) and C(why) it could not be resolved.
      type: dict
      returned: with the subset V(connectivity)
partition_epochs:
  description: By topic its C(topic_id), and its C(epochs) by partition.
  type: dict
  returned: with the subset V(partition_epochs)
  sample: {"orders": {"topic_id": "rEkb6zsIRuC1dqhNSBF0Nw", "epochs": {"0": 4}}}
replicas:
  description: By C(topic-partition) a list of topic id, last epoch, end offset and newest epoch.
  type: dict
  returned: with the subset V(replicas)
  sample: {"orders-0": ["rEkb6zsIRuC1dqhNSBF0Nw", 4, 1200, 5]}
"""

from collections import Counter

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.quorumshift.kafka.plugins.module_utils.core.migration import restart_token, zk_controller
from ansible_collections.quorumshift.kafka.plugins.module_utils.host import host_state, service
from ansible_collections.quorumshift.kafka.plugins.module_utils.probes.host import clock, paths
from ansible_collections.quorumshift.kafka.plugins.module_utils.probes.node import (
    config_providers,
    logins,
    node,
    own_log,
    replicas,
    stopped_node,
)
from ansible_collections.quorumshift.kafka.plugins.module_utils.probes.zookeeper import own_zookeeper, zk_host
from ansible_collections.quorumshift.kafka.plugins.module_utils.secrets.seal import unseal

TARGET = {
    "kind": {"type": "str", "required": True, "choices": ["zookeeper", "controller", "broker"]},
    "to": {"type": "str", "required": True},
    "address": {"type": "str", "required": True},
}
LOGIN = {
    "brokers": {"type": "list", "elements": "str", "required": True},
    "settings": {"type": "dict", "required": True},
    "run_key": {"type": "str", "required": True, "no_log": True},
    "user": {"type": "str", "required": True},
    "kafka_home": {"type": "str", "required": True},
    "timeout": {"type": "float", "default": 60},
}


def main():
    """Read each subset and exit."""
    module = AnsibleModule(
        argument_spec={
            "gather_subset": {"type": "list", "elements": "str", "choices": list(SUBSETS), "default": ["node"]},
            "failure_is_fact": {"type": "bool", "default": False},
            **host_state.NODE_OPTIONS,
            "config_file": {"type": "path"},
            "service": {"type": "str"},
            **host_state.OPTIONS,
            "kafka_home": {"type": "path", "default": "/opt/kafka"},
            "log_dir": {"type": "path", "default": ""},
            "journal_events": {"type": "int", "default": 20},
            "last_start": {"type": "bool", "default": False},
            "log_file": {"type": "path", "default": ""},
            "run_key": {"type": "str", "no_log": True},
            "targets": {"type": "list", "elements": "dict", "default": [], "options": TARGET},
            "listen": {"type": "str"},
            "log_dirs": {"type": "list", "elements": "path", "default": []},
            "content": {"type": "dict", "default": {}},
            "login": {"type": "dict", "options": LOGIN},
            "own_zookeeper": {"type": "bool", "default": False},
            "connectivity_required": {"type": "bool", "default": False},
            "timeout": {"type": "float", "default": 5},
        },
        supports_check_mode=True,
    )
    given, facts, result = module.params, {}, {}
    for subset in given["gather_subset"]:
        needs, read = SUBSETS[subset]
        missing = [option for option in needs if not given[option]]
        if missing:
            module.fail_json(msg=f"gather_subset {subset} needs {', '.join(missing)} (QS-CONNECT-008)")
        try:
            facts_of_it, result_of_it = read(given)
        except (OSError, ValueError) as error:
            module.fail_json(msg=f"{error}. Nothing was changed.")
        facts.update(facts_of_it)
        result.update(result_of_it)
    module.exit_json(changed=False, **({"ansible_facts": facts} if facts else {}), **result)


def read_node(given):
    """Return the facts of probes.node.node and, from before it, of probes.host.clock."""
    read_at, _result = read_clock(given)
    facts = node.collect(
        given["role"],
        given["config_file"],
        given["service"],
        given["run_key"],
        given["state_dir"],
        given["kafka_home"],
        given["log_dir"],
        given["journal_events"],
        given["log_file"],
        given["node_id"],
    )
    if given["last_start"]:
        last_start = own_log.read_last_start(given["log_file"], facts["service"].get("started_at"))
        return {"quorumshift_node": facts, "quorumshift_last_start": last_start, **read_at}, {}
    return {"quorumshift_node": facts, **read_at}, {}


def read_clock(_given):
    """Return the fact of probes.host.clock."""
    return {"quorumshift_clock": clock.read()}, {}


def read_connectivity(given):
    """Return what the host reaches, and the preflight's other facts of this host."""
    facts = {
        "tried": dict(Counter(target["kind"] for target in given["targets"])),
        "failed": paths.check_connectivity(given["targets"], given["timeout"]),
        "listen": paths.check_port(given["listen"]) if given["listen"] else None,
        "replicas": replicas.collect(given["log_dirs"]),
        "zookeeper": zk_host.collect(),
        "login": _login(given["login"], given["service"]) if given["login"] else None,
        "variables": _variables(given["content"], given["run_key"], given["service"]),
        "own_zookeeper": own_zookeeper.explain_unreadable(given["config_file"], given["service"] or "")
        if given["own_zookeeper"]
        else None,
    }
    return {"quorumshift_paths": facts}, {}


def _login(given, name):
    settings = {key: unseal(given["run_key"], str(value)) for key, value in given["settings"].items()}
    # Kafka's own tool resolves the variables of config providers, also of those that are not Kafka's.
    environment = service.read_environment(name) if config_providers.PROVIDERS in settings and name else None
    texts = "\n".join(settings.values())
    named = {key: value for key, value in (environment or {}).items() if f":{key}}}" in texts}
    return logins.attempt(*(given["kafka_home"], given["user"], settings, given["brokers"], given["timeout"]), named)


def _variables(content, run_key, name):
    if config_providers.PROVIDERS not in content:
        return []
    values = {key: unseal(run_key, str(value)) for key, value in content.items()}
    return config_providers.find_variables(values, service.read_environment(name) if name else None)


def read_partition_epochs(given):
    """Return the partition epochs; none for a controller that was never started."""
    try:
        return {}, {"partition_epochs": stopped_node.read_partition_epochs(given["config_file"])}
    except (OSError, ValueError) as error:
        raise ValueError(
            f"partition epochs could not be read: {error}. {zk_controller.NO_CONTROLLER} (QS-ROLLBACK-005)"
        ) from None


def read_replicas(given):
    """Return epochs and end offset of each replica of a stopped broker."""
    if not restart_token.is_stopped(service.read_state(given["service"])):
        raise ValueError(f"service {given['service']} runs; stop it before its replicas are read (QS-COPY-004)")
    return {}, {"replicas": stopped_node.read_replica_logs(given["config_file"])}


SUBSETS = {
    "node": (("role", "config_file", "service", "run_key"), read_node),
    "clock": ((), read_clock),
    "connectivity": ((), read_connectivity),
    "partition_epochs": (("config_file",), read_partition_epochs),
    "replicas": (("config_file", "service"), read_replicas),
}


if __name__ == "__main__":
    main()
