#!/usr/bin/python
# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: kraft_preflight
short_description: Check a cluster before its migration to KRaft
version_added: 0.1.0
description:
  - Runs every check over the collected facts. Each check has a stable id. Each finding says what is wrong, where, and
    what to do.
  - Fails if a finding blocks, unless O(report_only). Reads only.
options:
  report_only:
    description: Return the findings without failing.
    type: bool
    default: false
  controller_config:
    description: The operator's own settings of the controllers (quorumshift_controller_config).
    type: dict
    default: {}
  controller_listener:
    description: The name of the controllers' listener.
    type: str
    default: CONTROLLER
  controller_protocol:
    description: The security protocol of the controller listener.
    type: str
    default: PLAINTEXT
  controller_principal:
    description: The principal of controllers on the inter-broker listener of brokers.
    type: str
    default: User:ANONYMOUS
  controller_super_users:
    description: The principals that are super users on controllers, besides the brokers' super users.
    type: list
    elements: str
    default: ["User:ANONYMOUS"]
  stop_timeout_s:
    description: How many seconds a restart waits for a node to stop.
    type: float
    default: 300
  settle_s:
    description:
      - For how many seconds the module waits for partitions to be in sync, if nothing else blocks.
        For a run that has just started a broker.
    type: float
    default: 0
  waived:
    description:
      - The ids of checks whose warnings are accepted, each with the reason. Blocking findings cannot be waived.
    type: dict
    default: {}
  accept_not_compared:
    description:
      - Tokens of what no comparison sees and the operator accepts. Without its token, a build of Confluent Server
        blocks.
    type: list
    elements: str
    default: []
  spark:
    description:
      - What M(quorumshift.kafka.spark_facts) returned as C(spark). Without it, the Spark host is not checked.
    type: dict
    default: {}
  zookeeper_files:
    description:
      - What M(quorumshift.kafka.zk_tree_snapshot) returned with C(state=read) in a loop over the group C(zookeeper).
        Without it, the servers' files are not checked.
    type: list
    elements: dict
  show:
    description: Print all findings as a table. Handled by the action plugin.
    type: bool
    default: false
extends_documentation_fragment:
  - quorumshift.kafka.attributes
  - quorumshift.kafka.attributes.reads
  - quorumshift.kafka.connection
  - quorumshift.kafka.zookeeper
  - quorumshift.kafka.zookeeper.connect
  - quorumshift.kafka.nodes
seealso:
  - module: quorumshift.kafka.migration_state
  - module: quorumshift.kafka.spark_facts
  - name: Preflight checks
    description: Each check by its id, with what it means and what to do.
    link: https://github.com/quorumshift/kafka/blob/main/docs/messages/README.md
  - name: ZooKeeper to KRaft migration
    description: Kafka's own description of the migration and of its reversal.
    link: https://kafka.apache.org/39/documentation.html#kraft_zk_migration
author: Quorumshift maintainers (@quorumshift)
"""

EXAMPLES = r"""
# In a play on all brokers and controllers: every probe of the cluster begins with the facts of its hosts
- name: Read the node
  ansible.builtin.import_role:
    name: quorumshift.kafka.quorumshift
    tasks_from: gather

# In a play on localhost, after it
- name: Check the cluster before the migration
  quorumshift.kafka.kraft_preflight:
    bootstrap_servers: b1:9094,b2:9094
    zookeeper_connect: z1:2181,z2:2181,z3:2181/kafka
    report_only: true
  register: preflight

- name: List the checks that block the migration
  ansible.builtin.debug:
    msg: "{{ preflight.findings | selectattr('severity', 'eq', 'blocks') | map(attribute='id') | unique }}"

- name: Print all findings as a table, and fail on those that block
  quorumshift.kafka.kraft_preflight:
    bootstrap_servers: b1:9094,b2:9094
    zookeeper_connect: z1:2181,z2:2181,z3:2181/kafka
    show: true

- name: Check with the settings that the controllers will have, and accept a warning
  quorumshift.kafka.kraft_preflight:
    bootstrap_servers: b1:9094,b2:9094
    zookeeper_connect: z1:2181,z2:2181,z3:2181/kafka
    controller_listener: CONTROLLER
    controller_protocol: SSL
    controller_principal: User:CN=controller
    controller_super_users: ["User:CN=controller"]
    controller_config:
      metadata.log.max.snapshot.interval.ms: 600000
    waived:
      QS-CHECK-062: it is paused for the night of the migration
"""

RETURN = r"""
findings:
  description: The findings of all checks. C(waived) is the reason of O(waived), or null.
  type: list
  elements: dict
  returned: success, and if a finding blocks
  sample:
    - id: QS-CHECK-007
      title: Brokers of the inventory
      severity: blocks
      source: KRaftMigrationDriver, WAIT_FOR_BROKERS
      seen: >-
        broker 2 on b2 is not registered in ZooKeeper (kafka.service is inactive); 1 partition offline: scratch_rf1_0-2;
        14 partitions under-replicated: UPPER.Case_Mixed-1-0, UPPER.Case_Mixed-1-1, UPPER.Case_Mixed-1-2,
        __consumer_offsets-0, __consumer_offsets-1 and 9 more
      do: >-
        start kafka.service on b2. If the broker is lost, reassign its replicas and remove its host from the inventory:
        the initial copy waits for it forever
      waived: null
checks:
  description: The ids of the checks that ran.
  type: list
  elements: str
  returned: success, and if a finding blocks
  sample: [QS-CHECK-002, QS-CHECK-003, QS-CHECK-004, QS-CHECK-005, QS-CHECK-009]
"""

import time
from concurrent.futures import ThreadPoolExecutor

from ansible_collections.quorumshift.kafka.plugins.module_utils.core.preflight import preflight, requests
from ansible_collections.quorumshift.kafka.plugins.module_utils.core.text import advice
from ansible_collections.quorumshift.kafka.plugins.module_utils.module_base.probe_module import ProbeModule, error_text
from ansible_collections.quorumshift.kafka.plugins.module_utils.probes.cluster import cluster, topics
from ansible_collections.quorumshift.kafka.plugins.module_utils.probes.zookeeper import zk_rights, zk_servers, zookeeper

PAUSE_S = 1.0
CONFIG_ATTEMPTS = 3  # a busy broker may not answer the first request in time
REQUESTS_S = 30.0  # how long a deletion or an election may take after its request


def main():
    """Collect the facts, run the checks, exit."""
    module = ProbeModule(
        {
            "report_only": {"type": "bool", "default": False},
            "controller_config": {"type": "dict", "default": {}},
            "controller_listener": {"type": "str", "default": "CONTROLLER"},
            "controller_protocol": {"type": "str", "default": "PLAINTEXT"},
            "controller_principal": {"type": "str", "default": "User:ANONYMOUS"},
            "controller_super_users": {"type": "list", "elements": "str", "default": ["User:ANONYMOUS"]},
            "stop_timeout_s": {"type": "float", "default": 300},
            "settle_s": {"type": "float", "default": 0},
            "waived": {"type": "dict", "default": {}},
            "accept_not_compared": {"type": "list", "elements": "str", "default": []},
            "spark": {"type": "dict", "default": {}},
            "zookeeper_files": {"type": "list", "elements": "dict"},
            "show": {"type": "bool", "default": False},
        }
    )

    unfit = preflight.check_waivers(module.params["waived"])
    if unfit:
        module.fail_json(
            msg=f"quorumshift_waive is invalid: {'; '.join(unfit)}. It maps ids of checks to reasons, as in "
            "{QS-CHECK-054: the watchdog is off that night}. Nothing was changed. (QS-CHECK-001)"
        )
    # {check id: seconds after which its finding is final}
    patience = {
        preflight.ID["partitions"]: module.params["settle_s"],
        **{preflight.ID[name]: REQUESTS_S for name in requests.CHECKS},
    }

    def work():
        began = module.params["carry"].get("began") or time.time()
        waited = time.time() - began
        facts = collect(module)
        lasting = requests.find_lasting(facts, module.params["carry"].get("lasting"))
        findings = preflight.run(facts._replace(lasting=lasting), waived=module.params["waived"])
        blocking = [finding for finding in findings if finding["severity"] == "blocks"]
        result = {"findings": findings, "checks": preflight.ids_with_facts(facts)}
        if blocking and all(waited < patience.get(finding["id"], 0) for finding in blocking):
            time.sleep(PAUSE_S)
            progress = f"waiting for {waited:.0f} s: {blocking[0]['seen']}"
            return {"done": False, "progress": progress, "carry": {"began": began, "lasting": lasting}}
        if blocking and not module.params["report_only"]:
            lines = [f"{finding['id']}: {advice.sentences(finding['seen'], finding['do'])}." for finding in blocking]
            module.fail_json(
                msg="\n".join([f"Blocking findings: {len(blocking)}. Nothing was changed. (QS-CHECK-001)", *lines]),
                **result,
            )
        return result

    module.run(work)


def collect(module):
    """Return the facts of all checks; errors become part of the facts."""
    facts, connections = module.facts(strict=False), module.connections
    seen_topics = facts["topics"]
    metadata, metadata_error, min_isr, notifications, in_zookeeper = None, "", {}, {}, None
    if facts["zookeeper"].get("reached"):
        try:
            with cluster.connect_zookeeper(connections) as client:
                metadata = zookeeper.read_metadata(client, timeout=connections.timeout)
                notifications = zookeeper.count_notifications(client, connections.timeout)
                in_zookeeper = _collect_rights_in_zookeeper(client, connections, metadata["topics"])
        except zookeeper.ZooKeeperError as error:
            metadata_error = str(error)
    rights = None
    if seen_topics.get("reached"):
        names = metadata["topics"] if metadata else seen_topics["partitions"]
        rights = topics.read_rights(connections.bootstrap, connections.client, names, connections.timeout)
        readable = {name for name, allowed in rights.get("topics", {}).items() if "DESCRIBE_CONFIGS" in allowed}
        try:
            min_isr = module.min_isr(name for name in seen_topics["partitions"] if name in readable)
        except topics.KafkaException as error:  # the check `partitions` reports it
            facts["topics"] = {"reached": False, "error": error_text(error)}
    brokers = {
        host: node["node_id"]
        for host, node in facts["nodes"].items()
        if node["role"] == "broker" and node.get("running") and node.get("node_id") is not None
    }
    with ThreadPoolExecutor(max_workers=16) as pool:
        running = dict(
            zip(brokers, pool.map(lambda broker: _read_running_config(connections, broker), brokers.values()))
        )
    given = module.params
    return preflight.Facts(
        facts,
        metadata,
        running,
        given["controller_config"],
        given["controller_protocol"],
        given["controller_principal"],
        given["controller_super_users"],
        min_isr,
        metadata_error,
        given["stop_timeout_s"],
        rights,
        connections.client.principal,
        connections.controller_client.principal,
        ensemble=_ensemble(connections),
        controller_listener=given["controller_listener"],
        notifications=notifications,
        zookeeper_rights=in_zookeeper,
        bootstrap=",".join(map(str, connections.bootstrap)),
        spark=given["spark"],
        zookeeper_files=_group_by_host(given["zookeeper_files"]),
        accept_not_compared=given["accept_not_compared"],
        logins={
            "quorumshift_client": (connections.client.protocol, connections.client.mechanism),
            "quorumshift_controller_client": (
                connections.controller_client.protocol,
                connections.controller_client.mechanism,
            ),
        },
    )


def _collect_rights_in_zookeeper(client, connections, names):
    try:
        return zk_rights.collect(client, connections.zookeeper_client, names, connections.timeout)
    except zookeeper.ZooKeeperError as error:
        return {"error": str(error)}


def _ensemble(connections):
    if connections.zookeeper is None:
        return {}
    context = connections.zookeeper_client.ssl_context()
    return zk_servers.collect(connections.zookeeper.servers, context, connections.timeout)


def _read_running_config(connections, broker_id):
    """Return a broker's running config, or {error, denied} after the last of some attempts."""
    for attempts in range(CONFIG_ATTEMPTS, 0, -1):
        try:
            return topics.read_broker_configs(connections.bootstrap, connections.client, broker_id, connections.timeout)
        except topics.KafkaException as error:
            denied = topics.is_denied(error)
            if denied or attempts == 1:
                return {"error": error.args[0].str(), "denied": denied}


def _group_by_host(results):
    """Return {host: result} of a loop over hosts, None without one."""
    return None if results is None else {result["item"]: result for result in results}


if __name__ == "__main__":
    main()
