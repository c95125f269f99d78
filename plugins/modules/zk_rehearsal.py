#!/usr/bin/python
# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: zk_rehearsal
short_description: Watch clients during a rehearsed cut between two ZooKeeper ensembles, and prove that all is as before
version_added: 0.1.0
description:
  - B(Internal.) Roles of this collection call it. Its options and results may change in any release.
  - O(state=begun) starts a process on the probe host that asks ZooKeeper servers for their sessions and brokers for
    offsets all the time. With O(topic), it also writes messages there.
  - O(state=ended) ends it once all sessions are back, and fails unless source, sessions and leaders are as before.
options:
  state:
    description: What to do.
    type: str
    required: true
    choices: [begun, ended]
  source_connect:
    description: All servers of the source.
    type: str
    required: true
  destination_connect:
    description: All servers of the destination.
    type: str
    required: true
  sessions:
    description: The session of each of Kafka's ephemeral znodes by path, as M(quorumshift.kafka.zk_cut_plan) read it.
    type: dict
    default: {}
  topic:
    description: A topic to which a producer writes during the cut. Empty for none.
    type: str
    default: ''
  most_s:
    description: After how many seconds the process ends by itself.
    type: float
    default: 120
  directory:
    description: With O(state=ended), RV(directory) of the watch.
    type: str
    default: ''
  before:
    description: With O(state=ended), RV(before) of the watch.
    type: dict
    default: {}
  hosts:
    description: With O(state=ended), what M(quorumshift.kafka.zk_cut) located on each destination host afterwards.
    type: dict
    default: {}
  plan:
    description: With O(state=ended), what M(quorumshift.kafka.zk_cut_plan) returned.
    type: dict
    default: {}
extends_documentation_fragment:
  - quorumshift.kafka.connection
  - quorumshift.kafka.zookeeper
  - quorumshift.kafka.zookeeper.connect
  - quorumshift.kafka.nodes
attributes:
  check_mode: {support: none, description: Nothing is rehearsed in a check run.}
  diff_mode: {support: none, description: Shows no differences.}
author: Quorumshift maintainers (@quorumshift)
"""

EXAMPLES = r"""
- name: Watch what clients see
  quorumshift.kafka.zk_rehearsal:
    state: begun
    source_connect: z1:2181,z2:2181,z3:2181/kafka
    destination_connect: z4:2181,z5:2181,z6:2181/kafka
    bootstrap_servers: b1:9094
    nodes: "{{ my_node_facts }}"
"""

RETURN = r"""
directory:
  description: The directory of the process that watches.
  type: str
  returned: with O(state=begun)
before:
  description: C(modes) of the source's servers, C(sessions) of Kafka's ephemeral znodes, C(leaders) of the partitions.
  type: dict
  returned: with O(state=begun)
times:
  description: By host, the seconds from the fence to each step of the cut.
  type: dict
  returned: with O(state=ended)
figures:
  description: What the rehearsed cut took, and what the plan estimated.
  type: dict
  returned: with O(state=ended)
watched:
  description: >-
    C(sessions), how long each of Kafka's had no connection, null if it is not back. C(brokers), the longest time
    without an answer of each. C(producer), the longest time without an acknowledged message, null without O(topic).
  type: dict
  returned: with O(state=ended)
lines:
  description: The report.
  type: list
  elements: str
  returned: with O(state=ended)
"""

from ansible_collections.quorumshift.kafka.plugins.module_utils.core.ensemble import cut_rehearsal
from ansible_collections.quorumshift.kafka.plugins.module_utils.core.text.advice import sentences
from ansible_collections.quorumshift.kafka.plugins.module_utils.module_base.probe_module import ProbeModule
from ansible_collections.quorumshift.kafka.plugins.module_utils.probes.cluster import client_watch, cluster, topics
from ansible_collections.quorumshift.kafka.plugins.module_utils.probes.zookeeper import zk_servers
from ansible_collections.quorumshift.kafka.plugins.module_utils.settings.addresses import parse_zookeeper_connect

BACK_S = 60.0


def main():
    """Begin or end the watch."""
    module = ProbeModule(
        {
            "state": {"type": "str", "required": True, "choices": ["begun", "ended"]},
            "source_connect": {"type": "str", "required": True},
            "destination_connect": {"type": "str", "required": True},
            "sessions": {"type": "dict", "default": {}},
            "topic": {"type": "str", "default": ""},
            "most_s": {"type": "float", "default": 120},
            "directory": {"type": "str", "default": ""},
            "before": {"type": "dict", "default": {}},
            "hosts": {"type": "dict", "default": {}},
            "plan": {"type": "dict", "default": {}},
        },
        supports_check_mode=False,
    )
    module.run(lambda: {"begun": begun, "ended": ended}[module.params["state"]](module))


def begun(module):
    """Start the watch, and return what must be the same afterwards."""
    given, connections = module.params, module.connections
    sessions = {path: int(session) for path, session in given["sessions"].items()}
    watch = client_watch.Watch(
        parse_zookeeper_connect(given["destination_connect"]).servers,
        connections.zookeeper_client.ssl_context(),
        {node["node_id"]: node["address"] for node in module.nodes.values() if node["role"] == "broker"},
        connections,
        sessions,
        given["topic"],
        given["most_s"],
    )
    try:
        directory = client_watch.begin(watch)
    except OSError as error:
        module.fail_json(
            msg=f"{error}. If it is the topic: it must exist, and the tool's account needs the right to write to it. "
            "Nothing was cut. (QS-ZKMOVE-019)"
        )
    return {"directory": directory, "before": {**read(module, sessions), "sessions": sessions}}


def ended(module):
    """End the watch, and return the report. Fail the module with what is not as before."""
    given = module.params
    try:
        watched = client_watch.end(given["directory"], BACK_S)
    except OSError as error:
        module.fail_json(msg=f"{error}. The cut was healed. Rehearse again. (QS-ZKMOVE-019)")
    records = {host: read["cut"] for host, read in given["hosts"].items()}
    before, after = given["before"], read(module, given["before"]["sessions"])
    found = cut_rehearsal.check_ended(records) + cut_rehearsal.check_whole(before, after, given["hosts"])
    found += cut_rehearsal.check_watched(watched)
    times = cut_rehearsal.measure(records)
    lines = list(cut_rehearsal.lines(given["plan"], times, watched))
    result = {
        "times": times,
        "figures": cut_rehearsal.compare(given["plan"], times),
        "watched": watched,
        "lines": lines,
    }
    if found:
        texts = [sentences(finding.seen, finding.do) for finding in found]
        module.fail_json(msg=f"{'. '.join(texts)}.", **result)
    return result


def read(module, paths):
    """Return {modes, sessions, leaders} now."""
    given, connections = module.params, module.connections
    servers = parse_zookeeper_connect(given["source_connect"]).servers
    status = zk_servers.collect(servers, connections.zookeeper_client.ssl_context(), connections.timeout)
    found = topics.read(connections.bootstrap, connections.client, connections.timeout)
    with cluster.connect_zookeeper(connections) as client:
        stats = {path: client.exists(path) for path in paths}
    return {
        "modes": {server: answer["mode"] for server, answer in status.items()},
        "sessions": {path: stat.ephemeralOwner for path, stat in stats.items() if stat},
        "leaders": {
            f"{topic}-{number}": partition["leader"]
            for topic, partitions in (found.get("partitions") or {}).items()
            for number, partition in partitions.items()
        },
    }


if __name__ == "__main__":
    main()
