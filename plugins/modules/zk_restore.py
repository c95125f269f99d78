#!/usr/bin/python
# Copyright: (c) 2026, Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: zk_restore
short_description: Bring back into ZooKeeper what a backup holds and a migration deleted
version_added: 0.1.0
description:
  - Runs on the probe host. O(state=planned) compares and changes nothing. It returns the word with which a restore is
    asked for.
  - O(state=restored) makes the persistent znodes that are missing and completes configs, ACLs and topics that lack
    something. Nothing that ZooKeeper holds is taken away. Ephemeral znodes, notifications and pending administration
    are left out.
  - Leaders and in-sync replicas of every partition are set from the brokers' disks (M(quorumshift.kafka.replica_logs)),
    leader epochs above every one that a log has seen, C(/controller_epoch) above every partition's. Then C(/migration)
    and a C(/controller) that is KRaft's are deleted.
  - It refuses unless every broker and controller is stopped and the controllers are masked. It can be repeated.
options:
  state:
    description: What is asked for.
    type: str
    required: true
    choices: [planned, restored]
  path:
    description: The backup, on the host where the module runs.
    type: path
    required: true
  sha256:
    description: The SHA-256 that the backup must have.
    type: str
  replicas:
    description: By host what M(quorumshift.kafka.replica_logs) returned as C(replicas).
    type: dict
    default: {}
  token:
    description: The word that O(state=planned) returned; without it nothing is restored.
    type: str
    default: ""
  run:
    description: The run's id, which the gate pass carries.
    type: str
    required: true
extends_documentation_fragment:
  - quorumshift.kafka.connection
  - quorumshift.kafka.zookeeper
  - quorumshift.kafka.nodes
attributes:
  check_mode: {support: full, description: Compares and writes nothing.}
  diff_mode: {support: full, description: Shows the paths of the znodes that are created or completed. No data.}
author: Quorumshift maintainers (@quorumshift)
"""

EXAMPLES = r"""
- name: See what a restore would bring back
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
  description: How many znodes of each kind lack something that the backup has.
  type: dict
  returned: success
needed:
  description: Whether there is anything to restore, or a restore that was cut off to be finished.
  type: bool
  returned: success
unread:
  description: Of brokers with replicas that are not in the inventory, how many partitions; their disks are not read.
  type: dict
  returned: success
word:
  description: What an operator types to restore this backup.
  type: str
  returned: success
from_disks:
  description: Topics that were made, or got partitions, from the brokers' disks alone. They came after the backup.
  type: list
  elements: str
  returned: with O(state=restored)
without_data:
  description: Partitions of which no broker's disk holds anything.
  type: list
  elements: str
  returned: with O(state=restored)
gate_token:
  description: The pass of the gate C(before_revert), which the brokers' turns to plain ZooKeeper mode take.
  type: dict
  returned: with O(state=restored)
"""

from ansible_collections.quorumshift.kafka.plugins.module_utils.core import gates, phase
from ansible_collections.quorumshift.kafka.plugins.module_utils.core import restoring as phase_result
from ansible_collections.quorumshift.kafka.plugins.module_utils.formats import znodes
from ansible_collections.quorumshift.kafka.plugins.module_utils.probe_module import ProbeModule
from ansible_collections.quorumshift.kafka.plugins.module_utils.probes import cluster
from ansible_collections.quorumshift.kafka.plugins.module_utils.zk_backup import backup_file, restoring
from ansible_collections.quorumshift.kafka.plugins.module_utils.zk_writing import WriteError

EXPIRY_S = 120  # of the sessions of brokers that did not stop in order: at most 20 ticks of ZooKeeper, of 2 s as a rule
EXPIRY = "the ZooKeeper sessions of the brokers to end"


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
        }
    )

    def work():
        try:
            with cluster.connect_zookeeper(module.connections) as client:
                return worked(module, client)
        except backup_file.BackupBroken as error:
            module.fail_json(
                msg=f"{error}. Nothing was restored. Name the other host's copy with quorumshift_restore_from, or an "
                "older backup with quorumshift_restore_backup"
            )
        except (backup_file.BackupError, znodes.ZnodeError, OSError) as error:
            module.fail_json(msg=f"{error}. Nothing was restored.")
        except WriteError as error:
            module.fail_json(msg=f"{error}.")

    module.run(work)


def worked(module, client):
    """Return the result of what was asked for."""
    given = module.params
    found = backup_file.file_sha256(given["path"])
    if given["sha256"] and found != given["sha256"]:
        module.fail_json(msg=f"{given['path']} has SHA-256 {found}, not {given['sha256']}. Nothing was restored.")
    facts = module.facts(partitions=False)
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
    restore = restoring.Restore(client, given["path"])
    token = f"{restore.backup.header['cluster_id']}:{found[:6]}"
    reported = {
        "backup": restore.backup.facts(),
        "token": token,
        "pending_deletions": restore.pending_deletions(),
        "needed": phase_result.needed(phase.detect(facts), len(restore.missing)),
        "unread": {str(broker): count for broker, count in restore.unread(phase.broker_ids(facts)).items()},
        **restore.counts(),
        **({"diff": restore.diff()} if module._diff else {}),
    }
    if given["state"] == "planned" or module.check_mode:
        return {"changed": given["state"] != "planned", **reported}
    if given["token"] != token:
        module.fail_json(msg=f"the word typed is {given['token']!r}, this backup's is {token!r}. Nothing was restored.")
    epochs = [(node.get("metadata_log") or {}).get("last_epoch") for node in facts["nodes"].values()]
    reported.update(restore.write(replicas_of(facts, given["replicas"]), epochs))
    after = module.facts(partitions=False)
    seen = phase.detect(after)
    if seen.phase not in gates.GATES["before_revert"].phases:
        module.fail_json(msg=f"restored, and yet the phase is {seen.phase}: look at `status`", **reported)
    reported["gate_token"] = gates.make_token("before_revert", seen.phase, given["run"], after)
    return {"changed": True, **reported}


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
