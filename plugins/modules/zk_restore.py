#!/usr/bin/python
# Copyright: (c) 2026, Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: zk_restore
short_description: Restore znodes that a migration deleted from a backup of ZooKeeper
version_added: 0.1.0
description:
  - Runs on the probe host. O(state=planned) compares and changes nothing. It returns the confirmation token for the
    restore.
  - O(state=restored) creates missing persistent znodes and completes configs, ACLs and topics. It removes no metadata
    from ZooKeeper. It leaves out ephemeral znodes, notifications and pending administration.
  - It sets the leader and in-sync replicas of every partition from the brokers' disks
    (M(quorumshift.kafka.node_facts)). It raises leader epochs above every epoch in a log, and C(/controller_epoch)
    above every partition's. Then it deletes C(/migration) and KRaft's C(/controller).
  - It fails unless every broker and controller is stopped and the controllers are masked. It can be repeated.
options:
  cluster_id:
    description: The run's cluster id, which ZooKeeper must have in C(/cluster/id). The action plugin sets it.
    type: str
    required: true
  state:
    description: What to do.
    type: str
    required: true
    choices: [planned, restored]
  path:
    description: The backup file, on the host where the module runs.
    type: path
    required: true
  sha256:
    description: The expected SHA-256 of the backup.
    type: str
  replicas:
    description: By host, the C(replicas) that M(quorumshift.kafka.node_facts) returned.
    type: dict
    default: {}
  token:
    description: The confirmation token that O(state=planned) returned. Without it nothing is restored.
    type: str
    default: ""
  run:
    description: The run's id, which the gate token carries.
    type: str
    required: true
extends_documentation_fragment:
  - quorumshift.kafka.connection
  - quorumshift.kafka.zookeeper
  - quorumshift.kafka.nodes
attributes:
  check_mode: {support: full, description: Compares and writes nothing.}
  diff_mode: {support: full, description: "Shows the paths of created and completed znodes, without data."}
author: Quorumshift maintainers (@quorumshift)
"""

EXAMPLES = r"""
- name: Compare ZooKeeper with the backup
  quorumshift.kafka.zk_restore:
    state: planned
    path: /root/zookeeper.jsonl.gz
"""

RETURN = r"""
backup:
  description: Path, SHA-256, time and counts of the backup.
  type: dict
  returned: success
missing:
  description: How many znodes of each kind are missing from ZooKeeper.
  type: dict
  returned: success
completed:
  description: How many znodes of each kind lack a part that the backup has.
  type: dict
  returned: success
needed:
  description: Whether there is anything to restore, or an interrupted restore to finish.
  type: bool
  returned: success
unread:
  description: For brokers that are not in the inventory, their number of replicas. Their disks are not read.
  type: dict
  returned: success
token:
  description: The confirmation token for restoring this backup.
  type: str
  returned: success
from_disks:
  description: Topics that were created or extended from the brokers' disks. They are newer than the backup.
  type: list
  elements: str
  returned: with O(state=restored)
without_data:
  description: Partitions without data on any broker's disk.
  type: list
  elements: str
  returned: with O(state=restored)
gate_token:
  description: The token of the gate C(before_revert), for the brokers' restart in plain ZooKeeper mode.
  type: dict
  returned: with O(state=restored), and with O(state=planned) if ZooKeeper lacks nothing; null in another phase
"""

from ansible_collections.quorumshift.kafka.plugins.module_utils.core import gates, identity, phase
from ansible_collections.quorumshift.kafka.plugins.module_utils.core import restoring as phase_result
from ansible_collections.quorumshift.kafka.plugins.module_utils.formats import znodes
from ansible_collections.quorumshift.kafka.plugins.module_utils.probe_module import ProbeModule
from ansible_collections.quorumshift.kafka.plugins.module_utils.probes import cluster
from ansible_collections.quorumshift.kafka.plugins.module_utils.zk_backup import backup_file, restoring
from ansible_collections.quorumshift.kafka.plugins.module_utils.zk_writing import WriteError

EXPIRY_S = 120  # sessions of killed brokers last up to 20 ZooKeeper ticks, usually of 2 s
EXPIRY = "the brokers' ZooKeeper sessions to expire"


def main():
    """Compare or restore."""
    module = ProbeModule(
        {
            "state": {"type": "str", "required": True, "choices": ["planned", "restored"]},
            "path": {"type": "path", "required": True},
            "sha256": {"type": "str"},
            "replicas": {"type": "dict", "default": {}},
            "token": {"type": "str", "default": "", "no_log": False},
            "run": {"type": "str", "required": True},
            "cluster_id": {"type": "str", "required": True},
        }
    )

    def work():
        try:
            with cluster.connect_zookeeper(module.connections) as client:
                return compare_or_restore(module, client)
        except backup_file.BackupBroken as error:
            module.fail_json(
                msg=f"{error}. Nothing was restored. Set quorumshift_restore_from to the other backup host, or "
                "quorumshift_restore_backup to an older backup"
            )
        except (backup_file.BackupError, znodes.ZnodeError, OSError) as error:
            module.fail_json(msg=f"{error}. Nothing was restored.")
        except WriteError as error:
            module.fail_json(msg=f"{error}.")

    module.run(work)


def compare_or_restore(module, client):
    """Return the module's result."""
    given = module.params
    found = backup_file.file_sha256(given["path"])
    if given["sha256"] and found != given["sha256"]:
        module.fail_json(msg=f"{given['path']} has SHA-256 {found}, expected {given['sha256']}. Nothing was restored.")
    facts = module.facts(partitions=False, needed=(identity.HOSTS,))
    refused = phase_result.refused(facts) or phase_result.unlisted_brokers(facts)
    if refused:
        module.fail_json(msg=f"{refused}. Nothing was restored.")
    if given["state"] == "restored" and not module.check_mode:
        troubles = phase_result.not_at_rest(facts)
        if troubles:
            module.fail_json(msg=f"{'; '.join(troubles)}. Nothing was restored.")
        waits = module.wait(lambda: (phase_result.registered(module.facts(partitions=False)), {}), 0, EXPIRY_S, EXPIRY)
        if not waits["done"]:
            return waits
    restore = restoring.Restore(client, given["path"], given["cluster_id"])
    token = f"{restore.backup.header['cluster_id']}:{found[:6]}"
    result = {
        "backup": restore.backup.facts(),
        "token": token,
        "pending_deletions": restore.pending_deletions(),
        "needed": phase_result.needed(phase.detect(facts), len(restore.missing)),
        "unread": {str(broker): count for broker, count in restore.unread(phase.broker_ids(facts)).items()},
        **restore.counts(),
        **({"diff": restore.diff()} if module._diff else {}),
    }
    if given["state"] == "planned" or module.check_mode:
        if not restore.missing:
            result["gate_token"] = token_of(module, facts, phase.detect(facts).phase)
        return {"changed": given["state"] != "planned", **result}
    if given["token"] != token:
        module.fail_json(msg=f"the token given is {given['token']!r}, expected {token!r}. Nothing was restored.")
    epochs = [(node.get("metadata_log") or {}).get("last_epoch") for node in facts["nodes"].values()]
    result.update(restore.write(replicas_of(facts, given["replicas"]), epochs))
    after = module.facts(partitions=False)
    seen = phase.detect(after).phase
    result["gate_token"] = token_of(module, after, seen)
    if not result["gate_token"]:
        module.fail_json(msg=f"restored, but the phase is {seen}. Run quorumshift.kafka.status", **result)
    return {"changed": True, **result}


def token_of(module, facts, seen):
    """Return the token of the gate before_revert, None in a phase in which it does not open."""
    opens = seen in gates.GATES["before_revert"].phases
    brokers = [host for host, node in facts["nodes"].items() if node["role"] == "broker"]
    return gates.make_token("before_revert", seen, module.params["run"], facts, brokers) if opens else None


def replicas_of(facts, replicas):
    """Return {(topic, partition): [Replica]} of every broker's disks."""
    found = {}
    for host, partitions in replicas.items():
        broker = facts["nodes"][host]["node_id"]
        for name, log in partitions.items():
            topic, _dash, number = name.rpartition("-")
            found.setdefault((topic, int(number)), []).append(phase_result.Replica(broker, *log))
    return found


if __name__ == "__main__":
    main()
