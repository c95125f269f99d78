#!/usr/bin/python
# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: initial_copy
short_description: Wait for the initial copy of ZooKeeper's metadata into KRaft, and count its records
version_added: 0.1.0
description:
  - B(Internal.) Roles of this collection call it. Its options and results may change in any release.
  - O(state=expected) counts the metadata in ZooKeeper before the initial copy.
  - O(state=awaited) waits until C(/migration) shows that the initial copy has ended, then counts the metadata in
    ZooKeeper again. The copy has ended when the znode holds an offset and either changes or stays the same for 20
    seconds.
  - O(state=compared) compares both counts with the records of the transaction C(ZK Migration) in the metadata log.
options:
  state:
    description: What to do.
    type: str
    required: true
    choices: [expected, awaited, compared]
  before:
    description: The RV(counted) of O(state=expected).
    type: dict
    default: {}
  after:
    description: The RV(counted) of O(state=awaited).
    type: dict
    default: {}
  timeout_s:
    description: After how many seconds O(state=awaited) fails with the last state seen.
    type: float
    default: 1800
extends_documentation_fragment:
  - quorumshift.kafka.connection
  - quorumshift.kafka.zookeeper
  - quorumshift.kafka.zookeeper.connect
  - quorumshift.kafka.nodes
attributes:
  check_mode: {support: full, description: Reads only.}
  diff_mode: {support: none, description: Changes nothing.}
author: Quorumshift maintainers (@quorumshift)
"""

EXAMPLES = r"""
- name: Count the metadata in ZooKeeper
  quorumshift.kafka.initial_copy:
    state: expected
    bootstrap_servers: b1:9094
    zookeeper_connect: z1:2181/kafka
  register: before
"""

RETURN = r"""
counted:
  description: The expected records by type, and the names of topics, ACLs and configs.
  type: dict
  returned: with O(state=expected) and O(state=awaited)
damage:
  description: Signs that the initial copy was skipped, or that metadata was deleted in ZooKeeper. Stop the controllers.
  type: list
  elements: str
  returned: with O(state=compared)
differences:
  description: Record types whose count is not as expected.
  type: list
  elements: str
  returned: with O(state=compared)
moved:
  description: What changed in ZooKeeper between the two counts.
  type: list
  elements: str
  returned: with O(state=compared)
took_s:
  description: How many seconds the copy took by the metadata log. No leader is elected meanwhile.
  type: float
  returned: with O(state=compared), where the log has both ends of the copy
  sample: 0.412
unseen:
  description:
    - Why the metadata logs do not show whether the initial copy is complete, or whether there was one; null if they do.
      Kafka may have removed the log's beginning. Or ZooKeeper had something before the copy that is gone, and no record
      after the copy removed it. Then nothing is concluded, and nothing may be masked.
  type: str
  returned: with O(state=compared)
records:
  description: The transaction's records, counted by type.
  type: dict
  returned: with O(state=compared)
"""

import time

from ansible_collections.quorumshift.kafka.plugins.module_utils.core.migration import initial_copy, phase, zk_metadata
from ansible_collections.quorumshift.kafka.plugins.module_utils.module_base.probe_module import ProbeModule
from ansible_collections.quorumshift.kafka.plugins.module_utils.probes.cluster import cluster
from ansible_collections.quorumshift.kafka.plugins.module_utils.probes.zookeeper import zookeeper
from ansible_collections.quorumshift.kafka.plugins.module_utils.zk_write import zk_writing

STILL_S = 20.0  # controllers append a NoOp every half second, and each one updates /migration


def main():
    """Count, wait or compare, as `state` says."""
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
    """Return the count of ZooKeeper's metadata."""
    return {"counted": count_records(module)}


def awaited(module):
    """Wait until /migration shows that the initial copy has ended; return the count of ZooKeeper's metadata.

    The reasons name controllers that do not answer. If a controller was paused for longer than its ZooKeeper session,
    the copy goes on only after that controller's restart (Kafka 3.9.2, KRaftMigrationDriver).
    """
    first = dict(module.params["carry"].get("seen") or {})
    cache = {}

    def stopped():
        if not cache:  # once a slice, because it takes as long as the slowest controller
            cache["down"] = phase.find_silent_controllers(module.facts(partitions=False))
        return cache["down"]

    def collect():
        with cluster.connect_zookeeper(module.connections) as client:
            require_same_cluster(module, client)
            seen = zookeeper.read_migration_znodes(client, module.connections.timeout)
        offset, version = (seen["migration"][key] for key in ("kraft_metadata_offset", "version"))
        if offset is None or offset <= 0:
            owner = "ZooKeeper's" if seen["controller"]["ephemeral"] else "KRaft's"
            return [f"/migration is at {offset}, /controller is {owner} (QS-COPY-001)", *stopped()], {}
        # Compare versions, not offsets: a restored old tree may hold a higher offset. KRaftMigrationDriver ignores
        # changes below it, so the znode may stay the same for long; the count that follows detects this.
        still = first.setdefault("since", time.time())
        if version == first.setdefault("version", version) and time.time() - still < STILL_S:
            return [f"/migration is at {offset} and has not changed yet (QS-COPY-001)", *stopped()], {}
        return [], {"offset": offset}

    result = module.wait(collect, 0, module.params["timeout_s"], "the initial copy (QS-COPY-001)")
    result["carry"]["seen"] = first
    return {**result, "counted": count_records(module)} if result["done"] else result


def compared(module):
    """Return the comparison of both counts with the transaction in the longest metadata log."""
    module.require_one_cluster({"nodes": module.nodes})
    controllers = phase.controllers({"nodes": module.nodes})
    if not phase.longest_log(controllers):
        module.fail_json(
            msg="no controller's metadata log could be read, so the initial copy cannot be counted (QS-COPY-002)"
        )
    return initial_copy.detect(module.params["before"], module.params["after"], controllers)._asdict()


def require_same_cluster(module, client):
    """Fail the module where ZooKeeper is of another cluster than the run."""
    if module.params["cluster_id"]:
        try:
            zk_writing.require_cluster(client, module.params["cluster_id"], module.connections.timeout)
        except zk_writing.WriteError as error:
            module.fail_json(msg=f"{error}. Nothing was changed by this task.")


def count_records(module):
    """Return the expected records by type and the names in ZooKeeper's metadata."""
    with cluster.connect_zookeeper(module.connections) as client:
        require_same_cluster(module, client)
        metadata = zookeeper.read_metadata(client, timeout=module.connections.timeout)
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
