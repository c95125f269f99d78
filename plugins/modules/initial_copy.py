#!/usr/bin/python
# Copyright: (c) 2026, Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: initial_copy
short_description: Watch the copy of ZooKeeper's metadata into KRaft, and count it
version_added: 0.1.0
description:
  - O(state=expected) counts what ZooKeeper holds, before the copy.
  - O(state=awaited) waits until C(/migration) says that the copy is done and goes on moving, which means that
    controllers write to both, or has stood still for 20 seconds, and counts what ZooKeeper holds then.
  - O(state=compared) compares both with the records of the transaction C(ZK Migration) in the metadata log.
options:
  state:
    description: What is asked for.
    type: str
    required: true
    choices: [expected, awaited, compared]
  before:
    description: What O(state=expected) returned as RV(counted).
    type: dict
    default: {}
  after:
    description: What O(state=awaited) returned as RV(counted).
    type: dict
    default: {}
  timeout_s:
    description: After how many seconds O(state=awaited) ends with what was seen last.
    type: float
    default: 1800
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
- name: Count what ZooKeeper holds
  quorumshift.kafka.initial_copy:
    state: expected
    bootstrap_servers: b1:9094
    zookeeper_connect: z1:2181/kafka
  register: before
"""

RETURN = r"""
counted:
  description: Records by type that the copy of ZooKeeper's metadata makes, and the names of topics, ACLs and configs.
  type: dict
  returned: with O(state=expected) and O(state=awaited)
damage:
  description: Signs that the copy was skipped or that metadata was deleted in ZooKeeper. Controllers must be stopped.
  type: list
  elements: str
  returned: with O(state=compared)
differences:
  description: Counts that do not add up.
  type: list
  elements: str
  returned: with O(state=compared)
moved:
  description: What moved in ZooKeeper between the two counts, which explains a difference.
  type: list
  elements: str
  returned: with O(state=compared)
records:
  description: The records of the transaction by type.
  type: dict
  returned: with O(state=compared)
"""

import time

from ansible_collections.quorumshift.kafka.plugins.module_utils.core import initial_copy, phase, zk_metadata
from ansible_collections.quorumshift.kafka.plugins.module_utils.probe_module import ProbeModule
from ansible_collections.quorumshift.kafka.plugins.module_utils.probes import cluster, zookeeper

STILL_S = 20.0  # the log moves every half second by itself, and /migration with it


def main():
    """Count, wait or compare."""
    module = ProbeModule(
        {
            "state": {"type": "str", "required": True, "choices": ["expected", "awaited", "compared"]},
            "before": {"type": "dict", "default": {}},
            "after": {"type": "dict", "default": {}},
            "timeout_s": {"type": "float", "default": 1800},
        }
    )
    work = {"expected": expected, "awaited": awaited, "compared": compared}[module.params["state"]]
    module.run(lambda: work(module))


def expected(module):
    """Return what ZooKeeper holds."""
    return {"counted": counted(module)}


def awaited(module):
    """Wait for /migration to say that the copy is done and to move on from there.

    Controllers that do not answer are named: a copy that lost its controller to a stop of longer than its session goes
    on only when it is restarted (Kafka 3.9.2, KRaftMigrationDriver).
    """
    first = dict(module.params["carry"].get("seen") or {})
    asked = {}

    def stopped():
        if not asked:  # once a slice: it takes as long as the slowest of them
            asked["down"] = phase.silent_controllers(module.facts(partitions=False))
        return asked["down"]

    def gather():
        with cluster.connect_zookeeper(module.connections) as client:
            seen = zookeeper.migration_znodes(client, module.connections.timeout)
        offset, version = (seen["migration"][key] for key in ("kraft_metadata_offset", "version"))
        if offset is None or offset <= 0:
            owner = "ZooKeeper's" if seen["controller"]["ephemeral"] else "KRaft's"
            return [f"/migration stands at {offset}, /controller is {owner}", *stopped()], {}
        # By its version, not by its offset: an old tree that was put back may hold a higher one. With such a one KRaft
        # may not write for long (KRaftMigrationDriver ignores what is below it); the count that follows tells.
        still = first.setdefault("since", time.time())
        if version == first.setdefault("version", version) and time.time() - still < STILL_S:
            return [f"/migration stands at {offset} and has not moved yet", *stopped()], {}
        return [], {"offset": offset}

    result = module.wait(gather, 0, module.params["timeout_s"], "the copy of the metadata")
    result["carry"]["seen"] = first
    return {**result, "counted": counted(module)} if result["done"] else result


def compared(module):
    """Compare the counts with the transaction in the longest metadata log."""
    logs = [
        node["metadata_log"]
        for node in module.nodes.values()
        if node["role"] == "controller" and phase.usable_log(node)
    ]
    longest = max(logs, key=lambda log: log["log_end_offset"], default=None)
    if longest is None:
        module.fail_json(msg="no controller's metadata log could be read, so the copy cannot be counted")
    reported = initial_copy.detect(
        module.params["before"], module.params["after"], longest["zk_migration_transactions"]
    )
    return reported._asdict()


def counted(module):
    """Return ZooKeeper's metadata as counts and names."""
    with cluster.connect_zookeeper(module.connections) as client:
        metadata = zookeeper.metadata(client, timeout=module.connections.timeout)
    pending = set(metadata["delete_topics"])
    return {
        "records": zk_metadata.expected_records(metadata),
        "topics": sorted(set(metadata["topics"]) - pending),
        "acls": sorted(" ".join(f"{value}" for value in acl.values()) for acl in metadata["acls"]),
        "configs": sorted(
            f"{kind} {entity or 'default'} {key}"
            for kind, entities in metadata["configs"].items()
            for entity, values in entities.items()
            for key in values
        ),
    }


if __name__ == "__main__":
    main()
