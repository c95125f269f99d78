#!/usr/bin/python
# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: zk_backup
short_description: Back up Kafka's subtree in ZooKeeper, and check the backup against ZooKeeper
version_added: 0.1.0
description:
  - B(Internal.) Roles of this collection call it. Its options and results may change in any release.
  - With O(state=taken), writes every znode below the chroot and the znodes above it into one file, with data, ACL,
    versions, zxids and the owners of ephemerals.
  - With O(state=verified), reads the file, checks its digest, and compares it with the live tree. A persistent znode
    that has not changed since must have the same data, ACL and versions. Later changes are counted by kind.
  - The file holds SCRAM credentials and delegation tokens. It has mode 0600, and its directory must have mode 0700. No
    data of a znode appears in results, messages or logs.
  - Runs on a host with kazoo and access to ZooKeeper. It writes nothing into ZooKeeper.
options:
  zookeeper_connect:
    description:
      - The brokers' C(zookeeper.connect), C(host:port,host:port/chroot), the chroot once at its end.
    type: str
    required: true
  state:
    description:
      - V(taken) writes the file. It never overwrites a file. If the file exists and is a complete backup of this
        cluster, nothing changes; otherwise the module fails.
      - V(verified) compares the file with ZooKeeper. It fails if they differ and no later transaction explains it.
    type: str
    choices: [taken, verified]
    default: taken
  path:
    description:
      - The backup file. A missing directory is created with mode 0700.
    type: path
    required: true
  sha256:
    description:
      - The expected SHA-256 of the file, the RV(sha256) of O(state=taken). For O(state=verified) only.
    type: str
  cluster_id:
    description: The run's cluster id. If ZooKeeper or the file has another id, the module fails.
    type: str
  window:
    description: The maximum number of requests in flight.
    type: int
    default: 500
  max_rate:
    description:
      - The maximum number of znodes to read per second. Without it there is no limit.
    type: float
  rounds:
    description:
      - The maximum number of checks for changes that happened during the read. The checks end as soon as one finds only
        znodes that change constantly.
    type: int
    default: 5
  connect_timeout:
    description: How many seconds a ZooKeeper session may take to connect; also the session timeout.
    type: float
    default: 15
  timeout:
    description: How many seconds ZooKeeper may take for one response.
    type: float
    default: 30
extends_documentation_fragment:
  - quorumshift.kafka.zookeeper
  - quorumshift.kafka.zookeeper.connect
attributes:
  check_mode:
    support: full
    description: Reads the tree and returns the counts of what it would write.
  diff_mode:
    support: none
    description: The content of a backup is secret.
  idempotent:
    support: full
    description: A complete backup of the same cluster at O(path) stays unchanged.
notes:
  - The file is gzip over JSON lines; C(zcat) prints it. First comes the header
    C({"quorumshift_zk_backup":1,"cluster_id","chroot","servers","taken_at","tool","zxid_start"}), then a line
    C({"ancestor",...}) for each znode above the chroot, then a line for each znode, parents first
    (C({"path","data","acl","stat"})), last the trailer
    C({"end":{"znodes","ephemerals","data_bytes","zxid","zxid_end","moving","sha256"}}).
  - C(data) is null, C({"text":...}) or C({"base64":...}); C(acl) lists C(scheme:id:perms) as C(setAcl) of zkCli takes
    them; C(stat) has ZooKeeper's field names. C(sha256) is that of the uncompressed lines before the trailer.
  - The file holds the tree's state at transaction C(zxid). The paths in C(moving) changed during the last check and may
    hold a later state.
  - M(quorumshift.kafka.zk_restore) restores it. Creating the znodes by hand is not enough, because leaders, in-sync
    replicas and epochs have changed after the backup.
  - ZooKeeper masks digest identities in ACLs from clients that lack ADMIN. The backup stops at such a znode,
    because its ACL could not be restored.
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

- name: Compare the backup with ZooKeeper
  quorumshift.kafka.zk_backup:
    state: verified
    path: "{{ backup.path }}"
    sha256: "{{ backup.sha256 }}"
    zookeeper_connect: zk1:2181,zk2:2181,zk3:2181/kafka
"""

RETURN = r"""
path:
  description: The backup file.
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
  description: The number of znodes, ephemerals included.
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
  description: What changed during the last check, counted C(by_kind), with the first C(paths).
  type: dict
  returned: when a file was written
rounds:
  description: The number of checks.
  type: int
  returned: when a file was written
vanished:
  description: How many znodes were deleted during the read.
  type: int
  returned: when a file was written
equal:
  description: How many persistent znodes are the same in the file and in ZooKeeper.
  type: int
  returned: O(state=verified)
changed_since:
  description:
    - What was C(changed), C(added) and C(removed) in ZooKeeper since, each counted by kind. A new subtree counts as
      one.
  type: dict
  returned: O(state=verified)
differ:
  description: The first 100 paths that differ without a later transaction, each with C(what) differs.
  type: list
  elements: dict
  returned: O(state=verified)
differ_count:
  description: How many paths differ.
  type: int
  returned: O(state=verified)
seconds:
  description: How long the module took.
  type: float
  returned: success
"""

import os
import time

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.quorumshift.kafka.plugins.module_utils.module_base.argument_specs import CONNECTION
from ansible_collections.quorumshift.kafka.plugins.module_utils.probes.zookeeper import zookeeper
from ansible_collections.quorumshift.kafka.plugins.module_utils.secrets.security import SecurityError, ZkSecurity
from ansible_collections.quorumshift.kafka.plugins.module_utils.settings import addresses
from ansible_collections.quorumshift.kafka.plugins.module_utils.zk_write import backup_file, comparing, taking

TOOL = "quorumshift.kafka 0.1.0"


def main():
    """Take or verify a backup."""
    module = AnsibleModule(
        argument_spec={
            "state": {"type": "str", "choices": ["taken", "verified"], "default": "taken"},
            "path": {"type": "path", "required": True},
            "sha256": {"type": "str"},
            "cluster_id": {"type": "str"},
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
        module.fail_json(msg=f"{error}. Take another backup (QS-BACKUP-002)", path=module.params["path"])
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
            msg=f"{result['path']} differs from ZooKeeper in {result['differ_count']} znode(s) without a later change: "
            f"{first['path']} {first['what']}. Find out what restores or edits ZooKeeper, then take another "
            "backup (QS-BACKUP-002)",
            **result,
        )
    module.exit_json(**result)


def _run(params, check_mode):
    for name in ("window", "rounds", "connect_timeout", "timeout"):
        if params[name] <= 0:
            raise backup_file.BackupError(f"{name} must be above 0 (QS-BACKUP-001)")
    if params["max_rate"] is not None and params["max_rate"] <= 0:
        raise backup_file.BackupError("max_rate must be above 0 (QS-BACKUP-001)")
    address = addresses.parse_zookeeper_connect(params["zookeeper_connect"])
    options = ZkSecurity.from_options(params["zookeeper_client"]).kazoo()
    wanted = params["cluster_id"]
    pace = {"window": params["window"], "max_rate": params["max_rate"], "timeout": params["timeout"]}
    with zookeeper.connect(address, params["connect_timeout"], **options) as client:
        if params["state"] == "verified":
            return {"changed": False, **_verify(client, params, pace)}
        if os.path.lexists(params["path"]):
            return {"changed": False, **_read_existing(client, params["path"], wanted, pace)}
        if check_mode:
            return {"changed": True, "path": params["path"], **taking.survey(client, wanted, **pace)}
        above = []
        if address.chroot:
            with zookeeper.connect(address._replace(chroot=""), params["connect_timeout"], **options) as whole:
                above = zookeeper.Reader(whole, **pace).read_many(taking.ancestors_of(address.chroot))
                above = [node for _path, node in above if node is not None]
        result = taking.take(client, params["path"], str(address), TOOL, above, wanted, rounds=params["rounds"], **pace)
        return {"changed": True, **result}


def _verify(client, params, pace):
    if params["sha256"]:
        found = backup_file.file_sha256(params["path"])
        if found != params["sha256"].lower():
            raise backup_file.BackupBroken(
                f"{params['path']} has SHA-256 {found}, expected {params['sha256']}: it is another file (QS-BACKUP-002)"
            )
    return comparing.verify(client, params["path"], params["cluster_id"], **pace)


def _read_existing(client, path, wanted, pace):
    """Return the facts of an existing backup. Raises BackupError if it is incomplete or of another cluster."""
    backup = backup_file.Backup(path).check()
    comparing.require_same_cluster(backup, zookeeper.Reader(client, **pace), wanted)
    return backup.facts()


if __name__ == "__main__":
    main()
