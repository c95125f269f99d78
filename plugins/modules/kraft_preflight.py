#!/usr/bin/python
# Copyright: (c) 2026, Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: kraft_preflight
short_description: See the hazards of a migration to KRaft before anything is changed
version_added: 0.1.0
description:
  - Runs every check over what was collected, each with a stable id, and says of each finding what is seen, where, and
    what to type.
  - Fails when a finding blocks, unless O(report_only). Reads only.
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
    description: The principal that brokers see when a controller dials their inter-broker listener.
    type: str
    default: User:ANONYMOUS
  controller_super_users:
    description: Who is a super user on controllers beside the brokers' super users.
    type: list
    elements: str
    default: ["User:ANONYMOUS"]
  stop_timeout_s:
    description: How many seconds a turn waits for a node to stop.
    type: float
    default: 300
  settle_s:
    description:
      - For how many seconds partitions that are not in sync are waited for, while they are all that stands in the way.
        For a run that has just brought a broker up again.
    type: float
    default: 0
  waived:
    description:
      - The ids of checks whose warnings are known and accepted, each with the reason. What blocks stays in the way.
    type: dict
    default: {}
extends_documentation_fragment:
  - quorumshift.kafka.connection
  - quorumshift.kafka.zookeeper
  - quorumshift.kafka.nodes
attributes:
  check_mode: {support: full, description: Reads only.}
  diff_mode: {support: none, description: Changes nothing.}
author: Quorumshift maintainers (@quorumshift)
"""

EXAMPLES = r"""
- name: See what stands in the way
  quorumshift.kafka.kraft_preflight:
    bootstrap_servers: b1:9094
    zookeeper_connect: z1:2181/kafka
    nodes: "{{ my_node_facts }}"
    report_only: true
  register: preflight
"""

RETURN = r"""
findings:
  description: What the checks found.
  type: list
  elements: dict
  returned: always
  sample: [{"id": "node_ids", "severity": "blocks", "seen": "c1 has node id 1, which is b1's", "do": "choose another"}]
checks:
  description: The ids of the checks that ran.
  type: list
  elements: str
  returned: always
"""

import time
from concurrent.futures import ThreadPoolExecutor

from ansible_collections.quorumshift.kafka.plugins.module_utils.core import advice, preflight
from ansible_collections.quorumshift.kafka.plugins.module_utils.core.checks import requests
from ansible_collections.quorumshift.kafka.plugins.module_utils.probe_module import ProbeModule, error_text
from ansible_collections.quorumshift.kafka.plugins.module_utils.probes import cluster, topics, zk_servers, zookeeper

PAUSE_S = 1.0
REQUESTS_S = 30.0  # how long a deletion or an election may take that somebody has just asked for


def main():
    """Collect, check, exit."""
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
        }
    )

    unfit = preflight.unfit(module.params["waived"])
    if unfit:
        module.fail_json(
            msg=f"quorumshift_waive cannot be followed: {'; '.join(unfit)}. It maps ids of warnings to reasons, as in "
            "{restarts: our watchdog is off that night}. Nothing was changed."
        )
    # seconds for which a finding of a check may still pass
    patience = {"partitions": module.params["settle_s"], **dict.fromkeys(requests.CHECKS, REQUESTS_S)}

    def work():
        began = module.params["carry"].get("began") or time.time()
        waited = time.time() - began
        facts = collected(module)
        lasting = requests.lasting(facts, module.params["carry"].get("lasting"))
        findings = preflight.run(facts._replace(lasting=lasting), waived=module.params["waived"])
        blocking = [one for one in findings if one["severity"] == "blocks"]
        result = {"findings": findings, "checks": [check.id for check in preflight.CHECKS]}
        if blocking and all(waited < patience.get(one["id"], 0) for one in blocking):
            time.sleep(PAUSE_S)
            progress = f"what may pass by itself: {blocking[0]['seen']} ({waited:.0f} s)"
            return {"done": False, "progress": progress, "carry": {"began": began, "lasting": lasting}}
        if blocking and not module.params["report_only"]:
            lines = [f"[{one['id']}] {advice.sentences(one['seen'], one['do'])}." for one in blocking]
            count = f"{len(blocking)} finding{'s' if len(blocking) > 1 else ''}"
            module.fail_json(
                msg="\n".join([f"{count} in the way of the migration. Nothing was changed.", *lines]), **result
            )
        return result

    module.run(work)


def collected(module):
    """Collect the facts of all checks; what cannot be had is told as missing, not raised."""
    facts, connections = module.facts(), module.connections
    found = facts["topics"]
    metadata, metadata_error, min_isr = None, "", {}
    if facts["zookeeper"].get("reached"):
        try:
            with cluster.connect_zookeeper(connections) as client:
                metadata = zookeeper.metadata(client, timeout=connections.timeout)
        except zookeeper.ZooKeeperError as error:
            metadata_error = str(error)
    rights = None
    if found.get("reached"):
        names = metadata["topics"] if metadata else found["partitions"]
        rights = topics.rights(connections.bootstrap, connections.client, names, connections.timeout)
        readable = {name for name, allowed in rights.get("topics", {}).items() if "DESCRIBE_CONFIGS" in allowed}
        try:
            min_isr = module.min_isr(name for name in found["partitions"] if name in readable)
        except topics.KafkaException as error:  # told by the check of partitions; the others go on
            facts["topics"] = {"reached": False, "error": error_text(error)}
    brokers = {
        host: node["node_id"]
        for host, node in facts["nodes"].items()
        if node["role"] == "broker" and node.get("running") and node.get("node_id") is not None
    }
    with ThreadPoolExecutor(max_workers=16) as pool:
        running = dict(zip(brokers, pool.map(lambda one: _running_config(connections, one), brokers.values())))
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
    )


def _ensemble(connections):
    if connections.zookeeper is None:
        return {}
    context = connections.zookeeper_client.ssl_context()
    return zk_servers.gather(connections.zookeeper.servers, context, connections.timeout)


def _running_config(connections, broker_id):
    try:
        return topics.broker_configs(connections.bootstrap, connections.client, broker_id, connections.timeout)
    except topics.KafkaException as error:
        return {"error": error.args[0].str()}


if __name__ == "__main__":
    main()
