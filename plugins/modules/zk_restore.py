#!/usr/bin/python
# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: zk_restore
short_description: Restore znodes that a migration deleted from a backup of ZooKeeper
version_added: 0.1.0
description:
  - B(Internal.) Roles of this collection call it. Its options and results may change in any release.
  - Runs on the probe host. O(state=planned) compares and changes nothing. It returns the confirmation token for the
    restore.
  - O(state=restored) creates missing persistent znodes and completes configs, ACLs and topics. It removes no metadata
    from ZooKeeper. It leaves out ephemeral znodes, notifications and pending administration.
  - It sets the leader and in-sync replicas of every partition from the brokers' disks
    (M(quorumshift.kafka.node_facts)). It raises leader epochs above every epoch in a log, and C(/controller_epoch)
    above every partition's. Then it deletes C(/migration) and KRaft's C(/controller).
  - It fails unless every broker and controller is stopped and masked. It can be repeated.
  - O(state=admitted) checks the phase and returns the gate token for the brokers' start.
options:
  cluster_id:
    description: The run's cluster id, which ZooKeeper must have in C(/cluster/id). The action plugin sets it.
    type: str
    required: true
  state:
    description: What to do.
    type: str
    required: true
    choices: [planned, restored, admitted]
  path:
    description: The backup file, on the host where the module runs. Required except for O(state=admitted).
    type: path
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
  accepted:
    description:
      - RV(revived) of the plan that printed O(token). An interrupted restore goes on with its token although it has
        brought back some of these. The action plugin fills it in from the run artifacts.
    type: list
    elements: str
    default: []
  known:
    description: RV(later) of this run's plan. With O(state=restored), fails if ZooKeeper has more of them now.
    type: list
    elements: str
    default: []
  run:
    description: The run's id, which the gate token carries.
    type: str
    required: true
extends_documentation_fragment:
  - quorumshift.kafka.connection
  - quorumshift.kafka.zookeeper
  - quorumshift.kafka.zookeeper.connect
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
  description: The confirmation token for restoring this backup with these RV(revived).
  type: str
  returned: success
confirmed:
  description: Whether O(token) confirms this restore.
  type: bool
  returned: success
revived:
  description: SCRAM credentials, ACLs and delegation tokens in the backup that ZooKeeper lacks, by name.
  type: list
  elements: str
  returned: success
later:
  description: Paths of metadata in ZooKeeper that the backup lacks. They are kept.
  type: list
  elements: str
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
  returned: with O(state=admitted)
"""

from ansible_collections.quorumshift.kafka.plugins.module_utils.core.gates import gates
from ansible_collections.quorumshift.kafka.plugins.module_utils.core.migration import phase, same_cluster
from ansible_collections.quorumshift.kafka.plugins.module_utils.core.rollback import restore_plan as phase_result
from ansible_collections.quorumshift.kafka.plugins.module_utils.core.text import advice
from ansible_collections.quorumshift.kafka.plugins.module_utils.formats.zookeeper import znodes
from ansible_collections.quorumshift.kafka.plugins.module_utils.module_base.probe_module import ProbeModule
from ansible_collections.quorumshift.kafka.plugins.module_utils.probes.cluster import cluster
from ansible_collections.quorumshift.kafka.plugins.module_utils.zk_write import backup_file, restoring
from ansible_collections.quorumshift.kafka.plugins.module_utils.zk_write.zk_writing import WriteError

EXPIRY_S = 120  # sessions of killed brokers last up to 20 ZooKeeper ticks, usually of 2 s
EXPIRY = "the brokers' ZooKeeper sessions to expire"


def main():
    """Compare or restore."""
    module = ProbeModule(
        {
            "state": {"type": "str", "required": True, "choices": ["planned", "restored", "admitted"]},
            "path": {"type": "path"},
            "sha256": {"type": "str"},
            "replicas": {"type": "dict", "default": {}},
            "token": {"type": "str", "default": "", "no_log": False},
            "accepted": {"type": "list", "elements": "str", "default": []},
            "known": {"type": "list", "elements": "str", "default": []},
            "run": {"type": "str", "required": True},
            "cluster_id": {"type": "str", "required": True},
        },
        required_if=[("state", "planned", ["path"]), ("state", "restored", ["path"])],
    )

    def work():
        try:
            with cluster.connect_zookeeper(module.connections) as client:
                return compare_or_restore(module, client)
        except backup_file.BackupBroken as error:
            module.fail_json(
                msg=f"{error}. Nothing was restored. Set quorumshift_restore_from to the other backup host, or "
                "quorumshift_restore_backup to an older backup (QS-COPY-004)"
            )
        except (backup_file.BackupError, znodes.ZnodeError, OSError) as error:
            module.fail_json(msg=f"{error}. Nothing was restored.")
        except WriteError as error:
            module.fail_json(msg=f"{error}.")

    module.run(work)


def compare_or_restore(module, client):
    """Return the module's result."""
    given = module.params
    if given["state"] == "admitted":
        return {"changed": False, "gate_token": admitted(module)}
    found = backup_file.file_sha256(given["path"])
    if given["sha256"] and found != given["sha256"]:
        module.fail_json(
            msg=f"{given['path']} has SHA-256 {found}, expected {given['sha256']}. Nothing was restored. (QS-COPY-004)"
        )
    facts = module.facts(partitions=False, needed=(same_cluster.HOSTS,))
    refused = phase_result.refusal(facts) or phase_result.check_brokers_listed(facts)
    if refused:
        module.fail_json(msg=f"{refused}. Nothing was restored.")
    if given["state"] == "restored" and not module.check_mode:
        troubles = phase_result.check_at_rest(facts)
        if troubles:
            module.fail_json(msg=f"{'; '.join(troubles)}. Nothing was restored.")
        waits = module.wait(
            lambda: (phase_result.describe_registered(module.facts(partitions=False)), {}), 0, EXPIRY_S, EXPIRY
        )
        if not waits["done"]:
            return waits
    restore = restoring.Restore(client, given["path"], given["cluster_id"])
    of_backup = (restore.backup.header["cluster_id"], found, restore.revived)
    token = phase_result.token(*of_backup)
    confirmed = phase_result.confirms(given["token"], *of_backup, given["accepted"])
    result = {
        "backup": restore.backup.facts(),
        "token": token,
        "confirmed": confirmed,
        "revived": restore.revived,
        "later": restore.later,
        "pending_deletions": restore.pending_deletions(),
        "needed": phase_result.is_needed(facts, phase.detect(facts), len(restore.missing)),
        "unread": {str(broker): count for broker, count in restore.unread(phase.broker_ids(facts)).items()},
        **restore.counts(),
        **({"diff": restore.diff()} if module._diff else {}),
    }
    if given["state"] == "planned" or module.check_mode:
        return {"changed": given["state"] != "planned", **result}
    if not confirmed:
        module.fail_json(
            msg=f"the token given is {given['token']!r}, expected {token!r}: it is of another backup, or other users "
            "and permissions would be brought back. Nothing was restored. Run quorumshift.kafka.restore_zookeeper "
            "without quorumshift_restore_token: it lists them (QS-COPY-004)"
        )
    troubles = explain_change(restore, given["known"])
    if troubles:
        module.fail_json(msg=troubles)
    epochs = [(node.get("metadata_log") or {}).get("last_epoch") for node in facts["nodes"].values()]
    result.update(restore.write(replicas_of(facts, given["replicas"]), epochs))
    admitted(module)  # fails here rather than at the brokers' start
    return {"changed": True, **result}


def admitted(module):
    """Return the gate token for the brokers' start in plain ZooKeeper mode. Each batch gets its own right before."""
    facts = module.facts(partitions=False)
    seen = phase.detect(facts)
    if seen.phase not in gates.GATES["before_revert"].phases:
        module.fail_json(msg=f"restored, but the phase is {seen.phase}. Run quorumshift.kafka.status (QS-COPY-004)")
    brokers = [host for host, node in facts["nodes"].items() if node["role"] == "broker"]
    return gates.make_token("before_revert", seen.phase, module.params["run"], facts, brokers)


def explain_change(restore, known):
    """Return why the tree is not the one that was planned, None if it is."""
    alive, new = restore.alive(), sorted(set(restore.later) - set(known))
    if alive:
        what = f"a process that is not stopped holds {advice.format_names(alive)} in ZooKeeper (QS-COPY-004)"
    elif new:
        what = (
            f"{advice.format_names(new)} appeared in ZooKeeper after the restore was planned, and the backup "
            "lacks it (QS-COPY-004)"
        )
    else:
        return None
    return (
        f"{what}. Nothing was restored. Find the process that writes there and stop it. Then run "
        "quorumshift.kafka.restore_zookeeper without quorumshift_restore_token: it plans again (QS-COPY-004)"
    )


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
