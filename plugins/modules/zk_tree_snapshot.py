#!/usr/bin/python
# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: zk_tree_snapshot
short_description: Archive a ZooKeeper server's snapshot and the log after it
version_added: 0.1.0
description:
  - B(Internal.) Roles of this collection call it. Its options and results may change in any release.
  - From the archive, the job C(ensemble_parity) follows the server's tree to an exact zxid.
  - The server goes on while it writes a snapshot, so a snapshot has a part of what followed. O(state=read) returns
    the zxid after which nothing can be in the newest one. Give the highest of all servers as O(zxid) of
    O(state=present).
  - The server is only read. The archive holds secrets in clear text. It has mode 0600 in a directory of mode 0700.
    Remove it as soon as it has been fetched.
options:
  state:
    description: V(read) reads, V(present) makes the archive.
    type: str
    choices: [read, present]
    default: present
  config_file:
    description: The server's C(zoo.cfg).
    type: path
    required: true
  cluster_id:
    description: Kafka's cluster id, the name of the directory below O(state_dir).
    type: str
    required: true
  zxid:
    description: The zxid that the log must reach. Required with O(state=present).
    type: int
  log_from:
    description:
      - A zxid to which the log goes back, where the server still has it. Without it, to the snapshot.
    type: int
  known:
    description: The snapshots that were seen with O(state=read), C({snapshot, zxid}) each.
    type: list
    elements: dict
    default: []
  timeout_s:
    description:
      - How long the log may take to reach O(zxid). A shorter one is archived, and its comparison is incomplete.
    type: float
    default: 30
extends_documentation_fragment:
  - quorumshift.kafka.host_record
  - quorumshift.kafka.archive
attributes:
  check_mode: {support: full, description: Does not write the archive.}
  diff_mode: {support: none, description: Changes no file of the server.}
author: Quorumshift maintainers (@quorumshift)
"""

EXAMPLES = r"""
- name: Read the newest snapshot
  quorumshift.kafka.zk_tree_snapshot:
    state: read
    config_file: /etc/zookeeper/zoo.cfg
    cluster_id: Qs7KfZk2TIK1n0nQ5Qm3Tw
  register: newest

- name: Archive it with the log after it
  quorumshift.kafka.zk_tree_snapshot:
    config_file: /etc/zookeeper/zoo.cfg
    cluster_id: Qs7KfZk2TIK1n0nQ5Qm3Tw
    zxid: "{{ newest.zxid }}"
    known: ["{{ newest }}"]
"""

RETURN = r"""
snapshot:
  description: The zxid in the name of the snapshot.
  type: int
  returned: with O(state=read), and with O(state=present) outside of check mode
zxid:
  description: What the server has processed since the snapshot is complete, or O(zxid).
  type: int
  returned: with O(state=read), and with O(state=present) outside of check mode
path:
  description: The archive.
  type: str
  returned: with O(state=present), not in check mode
sha256:
  description: The archive's SHA-256.
  type: str
  returned: with O(state=present), not in check mode
"""

import os

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.quorumshift.kafka.plugins.module_utils import message_ids
from ansible_collections.quorumshift.kafka.plugins.module_utils.files import archives
from ansible_collections.quorumshift.kafka.plugins.module_utils.formats.zookeeper.zk_log import ZooKeeperFileError
from ansible_collections.quorumshift.kafka.plugins.module_utils.host import host_state
from ansible_collections.quorumshift.kafka.plugins.module_utils.probes.zookeeper import own_zk_server
from ansible_collections.quorumshift.kafka.plugins.module_utils.settings.properties import PropertiesError
from ansible_collections.quorumshift.kafka.plugins.module_utils.snapshots import zk_trees


def main():
    """Read or archive."""
    module = AnsibleModule(
        argument_spec={
            "state": {"type": "str", "default": "present", "choices": ["read", "present"]},
            "config_file": {"type": "path", "required": True},
            "cluster_id": {"type": "str", "required": True},
            "zxid": {"type": "int"},
            "log_from": {"type": "int"},
            "known": {"type": "list", "elements": "dict", "default": []},
            "timeout_s": {"type": "float", "default": 30},
            **host_state.OPTIONS,
            **archives.ACTION_OPTIONS,
        },
        required_if=[("state", "present", ["zxid"])],
        supports_check_mode=True,
    )
    os.nice(10)
    work = {"read": read, "present": present}[module.params["state"]]
    try:
        module.exit_json(**work(module.params, module.check_mode))
    except KeyError as error:
        module.fail_json(
            msg=f"{module.params['config_file']} has no {error.args[0]}. Add it, and run again. (QS-ZKMOVE-012)"
        )
    except (OSError, PropertiesError, ZooKeeperFileError, archives.SnapshotError) as error:
        why = f"the files of this host's ZooKeeper server could not be read: {error}. (QS-ZKMOVE-012)"
        module.fail_json(msg=message_ids.move_to_end(why))


def read(given, _check_mode):
    """Return the newest snapshot, and what the server has processed since."""
    return {"changed": False, **zk_trees.read_newest(own_zk_server.read_values(given["config_file"]))}


def present(given, check_mode):
    """Make the archive."""
    if check_mode:
        return {"changed": True}
    known = {int(snapshot["snapshot"]): int(snapshot["zxid"]) for snapshot in given["known"]}
    target = os.path.join(host_state.make_directory(given["state_dir"], given["cluster_id"]), zk_trees.DIRECTORY)
    values = own_zk_server.read_values(given["config_file"])
    taken = zk_trees.take(values, target, given["zxid"], known, given["timeout_s"], given["log_from"])
    return {"changed": True, **taken._asdict()}


if __name__ == "__main__":
    main()
