#!/usr/bin/python
# Copyright: (c) 2026, Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: zk_backup
short_description: Back up Kafka's subtree in ZooKeeper, and check the backup against ZooKeeper
version_added: 0.1.0
description:
  - With O(state=taken), writes every znode below the chroot into one file, with data, ACL, versions, zxids and the
    owners of ephemerals, and what stands above the chroot.
  - With O(state=verified), reads the file back, checks its digest, and compares it with the live tree. A persistent
    znode that has not changed since must be equal in data, ACL and versions; what changed since is counted by kind.
  - The file holds SCRAM credentials and delegation tokens. It has mode 0600, its directory must be 0700, and no data of
    a znode appears in results, messages or logs.
  - Runs where kazoo is installed and ZooKeeper can be reached. It writes nothing into ZooKeeper.
options:
  zookeeper_connect:
    description:
      - The brokers' C(zookeeper.connect), C(host:port,host:port/chroot), the chroot once at its end.
    type: str
    required: true
  state:
    description:
      - V(taken) writes the file. A file that is there already is never overwritten. If it is a whole backup of this
        cluster, nothing is done; otherwise the module fails.
      - V(verified) compares the file with ZooKeeper and fails where they differ without a later transaction as reason.
    type: str
    choices: [taken, verified]
    default: taken
  path:
    description:
      - The backup's file. Its directory is made with mode 0700 when it is missing.
    type: path
    required: true
  sha256:
    description:
      - The SHA-256 that the file must have, as RV(sha256) gave it when it was taken. For O(state=verified) only.
    type: str
  window:
    description: How many requests may be in flight at once.
    type: int
    default: 500
  max_rate:
    description:
      - How many znodes a second to read at most. Without it, as many as ZooKeeper gives.
    type: float
  rounds:
    description:
      - How often the tree is checked again for what moved while it was read. The checks end with the first that saw
        nothing move but what moves by itself.
    type: int
    default: 5
  connect_timeout:
    description: How many seconds a ZooKeeper session may take to come up; the session's timeout too.
    type: float
    default: 15
  timeout:
    description: How many seconds ZooKeeper may take for one answer.
    type: float
    default: 30
extends_documentation_fragment:
  - quorumshift.kafka.zookeeper
attributes:
  check_mode:
    support: full
    description: Reads the tree and says what it would write.
  diff_mode:
    support: none
    description: What a backup holds is secret.
  idempotent:
    support: full
    description: A whole backup of the same cluster at O(path) is left as it is.
notes:
  - The file is gzip over JSON lines; C(zcat) shows it. First the header
    C({"quorumshift_zk_backup":1,"cluster_id","chroot","servers","taken_at","tool","zxid_start"}), then a line
    C({"ancestor",...}) for each znode above the chroot, then a line for each znode, parents first
    (C({"path","data","acl","stat"})), last the trailer
    C({"end":{"znodes","ephemerals","data_bytes","zxid","zxid_end","moving","sha256"}}).
  - C(data) is null, C({"text":...}) or C({"base64":...}); C(acl) lists C(scheme:id:perms) as C(setAcl) of zkCli takes
    them; C(stat) has ZooKeeper's field names. C(sha256) is that of the uncompressed lines before the trailer.
  - The tree in the file is the one of transaction C(zxid). The paths in C(moving) changed while the last check ran and
    hold a later state.
  - M(quorumshift.kafka.zk_restore) restores it. By hand it is not enough to create the znodes again, since leaders,
    in-sync replicas and epochs have moved on after the backup.
  - A znode whose ACL ZooKeeper masks (digest identities, for whoever lacks ADMIN) stops the backup, since the ACL could
    not be restored.
seealso:
  - name: ZooKeeper to KRaft migration
    description: Kafka's own description of the migration and of its reversal.
    link: https://kafka.apache.org/39/documentation.html#kraft_zk_migration
author: Quorumshift maintainers (@quorumshift)
"""

EXAMPLES = r"""
- name: Back up Kafka's metadata in ZooKeeper
  quorumshift.kafka.zk_backup:
    path: /var/lib/quorumshift/backup/zookeeper-{{ run }}.jsonl.gz
    zookeeper_connect: zk1:2181,zk2:2181,zk3:2181/kafka
  register: backup

- name: Read it back and compare it with ZooKeeper
  quorumshift.kafka.zk_backup:
    state: verified
    path: "{{ backup.path }}"
    sha256: "{{ backup.sha256 }}"
    zookeeper_connect: zk1:2181,zk2:2181,zk3:2181/kafka
"""

RETURN = r"""
path:
  description: The backup's file.
  type: str
  returned: always
sha256:
  description: SHA-256 of the file, as C(sha256sum) prints it.
  type: str
  returned: when the file exists
file_bytes:
  description: Size of the file.
  type: int
  returned: when the file exists
cluster_id:
  description: Kafka's cluster id.
  type: str
  returned: success
taken_at:
  description: When the backup was taken, UTC.
  type: str
  returned: when the file exists
zxid:
  description: The ZooKeeper transaction whose state the file holds.
  type: int
  returned: when the file exists
znodes:
  description: How many znodes there are, ephemerals included.
  type: int
  returned: success
ephemerals:
  description: How many of them are ephemeral.
  type: int
  returned: success
data_bytes:
  description: Bytes of all znodes' data.
  type: int
  returned: success
moving:
  description: What changed while the last check ran, counted C(by_kind), with the first C(paths).
  type: dict
  returned: when a file was written
rounds:
  description: How many checks there were.
  type: int
  returned: when a file was written
vanished:
  description: How many znodes were gone when their turn to be read came.
  type: int
  returned: when a file was written
equal:
  description: How many persistent znodes are equal in the file and in ZooKeeper.
  type: int
  returned: O(state=verified)
changed_since:
  description:
    - What was C(changed), C(added) and C(removed) in ZooKeeper since, each counted by kind. Of a new subtree its root
      is counted.
  type: dict
  returned: O(state=verified)
differ:
  description: The first 100 paths that differ without a later transaction as reason, with C(what) differs.
  type: list
  elements: dict
  returned: O(state=verified)
differ_count:
  description: How many paths differ.
  type: int
  returned: O(state=verified)
seconds:
  description: How long it took.
  type: float
  returned: success
"""

import os
import time

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.quorumshift.kafka.plugins.module_utils import addresses
from ansible_collections.quorumshift.kafka.plugins.module_utils.argument_specs import CONNECTION
from ansible_collections.quorumshift.kafka.plugins.module_utils.probes import zookeeper
from ansible_collections.quorumshift.kafka.plugins.module_utils.security import SecurityError, ZkSecurity
from ansible_collections.quorumshift.kafka.plugins.module_utils.zk_backup import backup_file, comparing, taking

TOOL = "quorumshift.kafka 0.1.0"


def main():
    """Take or verify a backup."""
    module = AnsibleModule(
        argument_spec={
            "state": {"type": "str", "choices": ["taken", "verified"], "default": "taken"},
            "path": {"type": "path", "required": True},
            "sha256": {"type": "str"},
            "window": {"type": "int", "default": 500},
            "max_rate": {"type": "float"},
            "rounds": {"type": "int", "default": 5},
            "connect_timeout": {"type": "float", "default": 15},
            "timeout": {"type": "float", "default": 30},
            "zookeeper_connect": {**CONNECTION["zookeeper_connect"], "required": True},
            "zookeeper_client": CONNECTION["zookeeper_client"],
        },
        supports_check_mode=True,
    )
    began = time.monotonic()
    try:
        result = _run(module.params, module.check_mode)
    except backup_file.BackupBroken as error:
        module.fail_json(msg=f"{error}; take another backup", path=module.params["path"])
    except (
        addresses.AddressError,
        SecurityError,
        zookeeper.ZooKeeperError,
        backup_file.BackupError,
    ) as error:
        module.fail_json(msg=str(error), path=module.params["path"])
    except OSError as error:
        path = module.params["path"]
        module.fail_json(msg=f"{error.filename or path}: {error.strerror}", path=path)
    result["seconds"] = round(time.monotonic() - began, 3)
    if result.get("differ_count"):
        first = result["differ"][0]
        module.fail_json(
            msg=f"{result['path']} and ZooKeeper differ in {result['differ_count']} znode(s) that nothing has touched "
            f"since the backup, first {first['path']}, which {first['what']}; take another backup, and find out who "
            "restores or edits ZooKeeper",
            **result,
        )
    module.exit_json(**result)


def _run(params, check_mode):
    for name in ("window", "rounds", "connect_timeout", "timeout"):
        if params[name] <= 0:
            raise backup_file.BackupError(f"{name} must be above 0")
    if params["max_rate"] is not None and params["max_rate"] <= 0:
        raise backup_file.BackupError("max_rate must be above 0")
    address = addresses.parse_zookeeper_connect(params["zookeeper_connect"])
    options = ZkSecurity.from_options(params["zookeeper_client"]).kazoo()
    pace = {"window": params["window"], "max_rate": params["max_rate"], "timeout": params["timeout"]}
    with zookeeper.connect(address, params["connect_timeout"], **options) as client:
        if params["state"] == "verified":
            return {"changed": False, **_verify(client, params, pace)}
        if os.path.lexists(params["path"]):
            return {"changed": False, **_kept(client, params["path"], pace)}
        if check_mode:
            return {"changed": True, "path": params["path"], **taking.survey(client, **pace)}
        above = []
        if address.chroot:
            with zookeeper.connect(address._replace(chroot=""), params["connect_timeout"], **options) as whole:
                above = zookeeper.Reader(whole, **pace).read_many(taking.ancestors_of(address.chroot))
                above = [node for _path, node in above if node is not None]
        result = taking.take(
            client, params["path"], str(address), TOOL, ancestors=above, rounds=params["rounds"], **pace
        )
        return {"changed": True, **result}


def _verify(client, params, pace):
    if params["sha256"]:
        found = backup_file.file_sha256(params["path"])
        if found != params["sha256"].lower():
            raise backup_file.BackupBroken(
                f"{params['path']} has SHA-256 {found}, not {params['sha256']}: another file"
            )
    return comparing.verify(client, params["path"], **pace)


def _kept(client, path, pace):
    """The facts of a backup that is there already. Raises BackupError where it is not whole, or of another cluster."""
    backup = backup_file.Backup(path).check()
    comparing.require_same_cluster(backup, zookeeper.Reader(client, **pace))
    return backup.facts()


if __name__ == "__main__":
    main()
