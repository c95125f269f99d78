#!/usr/bin/python
# Copyright: (c) 2026, Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: metadata_snapshot
short_description: Make a consistent copy of a controller's live metadata log, for the verification
version_added: 0.1.0
description:
  - O(state=present) archives the newest complete checkpoint of the metadata log and the records after it, while Kafka
    goes on writing, rolling and deleting its files. O(state=absent) removes what this run or one before left.
  - The archive holds secrets in clear text (SCRAM keys, encrypted configs, delegation tokens). It is a file that only
    its owner can read, in a directory of its own of the host's records; remove it as soon as it has been fetched.
  - At any time there is one archive of a cluster on a host.
options:
  state:
    description: Whether there is to be a copy.
    type: str
    default: present
    choices: [present, absent]
  config_file:
    description: The controller's properties file, which names its directories. Needed with O(state=present).
    type: path
  cluster_id:
    description: The cluster's id.
    type: str
    required: true
  end_offset:
    description:
      - The first offset that is not copied, as a rule the quorum's high watermark, taken just before from its leader.
      - The leading controller has everything below it. Another one may be behind, and after an election it may for a
        moment hold records there that the quorum dropped; their epoch, RV(last_epoch), is then older than the leader's.
      - Without it the whole log is copied. That is for a quorum without a leader, of stopped controllers. The longest
        log among a majority of the voters holds everything that was committed, and is the one of the highest
        RV(last_epoch), then of the highest RV(end_offset).
    type: int
  timeout_s:
    description: How long to wait for a log that has not reached O(end_offset) yet, in seconds.
    type: float
    default: 30
extends_documentation_fragment:
  - quorumshift.kafka.host_record
attributes:
  check_mode:
    support: full
    description: Reads how far the log reaches and tells what would be in the archive, but writes none.
  diff_mode:
    support: none
    description: Shows no difference, since the content is secret.
notes:
  - Runs with a lower priority (nice 10), so that packing takes no time from the controller.
author: Quorumshift maintainers (@quorumshift)
"""

EXAMPLES = r"""
- name: Copy the metadata log below the high watermark
  quorumshift.kafka.metadata_snapshot:
    config_file: /etc/kafka/controller.properties
    cluster_id: Qs7KfZk2TIK1n0nQ5Qm3Tw
    end_offset: 104883
  register: snapshot

- name: Remove it
  quorumshift.kafka.metadata_snapshot:
    state: absent
    cluster_id: Qs7KfZk2TIK1n0nQ5Qm3Tw
"""

RETURN = r"""
path:
  description: The archive, a tar.gz of files as they stand in a metadata log's directory.
  type: str
  returned: with O(state=present), not in check mode
sha256:
  description: The archive's SHA-256.
  type: str
  returned: with O(state=present), not in check mode
bytes:
  description: The archive's size.
  type: int
  returned: with O(state=present), not in check mode
files:
  description: Names and sizes of the files in it.
  type: list
  elements: dict
  returned: with O(state=present)
  sample: [{"name": "00000000000000104000-0000000007.checkpoint", "bytes": 81920}]
checkpoint:
  description: Offset and epoch of the checkpoint, null where the log needs none.
  type: dict
  returned: with O(state=present)
  sample: {"offset": 104000, "epoch": 7}
start_offset:
  description: The first offset that is there as a record of its own; the checkpoint holds the state below it.
  type: int
  returned: with O(state=present)
end_offset:
  description: The first offset that is not there. It is O(end_offset), unless that falls into a batch.
  type: int
  returned: with O(state=present)
last_epoch:
  description: The leader epoch of the last record.
  type: int
  returned: with O(state=present)
cut_at:
  description:
    - V(high_watermark) with O(end_offset). V(log_end) without, when records may be in it that the quorum never
      committed or will still drop.
  type: str
  returned: with O(state=present)
seconds:
  description: How long it took.
  type: float
  returned: with O(state=present)
"""

import os
import shutil
import time

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.quorumshift.kafka.plugins.module_utils import host_state, metadata_snapshot
from ansible_collections.quorumshift.kafka.plugins.module_utils.formats import properties
from ansible_collections.quorumshift.kafka.plugins.module_utils.probes import node


def main():
    """Make the snapshot or remove it."""
    module = AnsibleModule(
        argument_spec={
            "state": {"type": "str", "default": "present", "choices": ["present", "absent"]},
            "config_file": {"type": "path"},
            "cluster_id": {"type": "str", "required": True},
            "end_offset": {"type": "int"},
            "timeout_s": {"type": "float", "default": 30},
            **host_state.OPTIONS,
        },
        required_if=[("state", "present", ["config_file"])],
        supports_check_mode=True,
    )
    work = {"present": present, "absent": absent}[module.params["state"]]
    os.nice(10)
    try:
        module.exit_json(**work(module.params, module.check_mode))
    except (
        OSError,
        properties.PropertiesError,
        metadata_snapshot.LogError,
        metadata_snapshot.SnapshotError,
    ) as error:
        module.fail_json(msg=f"No snapshot of the metadata log: {error}")


def present(given, check_mode=False):
    """Make the snapshot, or only look in check mode."""
    started = time.monotonic()
    directory = node.metadata_dir(node.read_properties(given["config_file"]))
    if not directory:
        raise metadata_snapshot.SnapshotError(f"{given['config_file']} names neither metadata.log.dir nor log.dirs")
    end_offset, timeout = given["end_offset"], given["timeout_s"]
    if check_mode:
        reported = metadata_snapshot.preview(directory, end_offset, timeout)
    else:
        host = host_state.directory(given["state_dir"], given["cluster_id"])
        target = os.path.join(host, metadata_snapshot.DIRECTORY)
        reported = metadata_snapshot.take(directory, target, end_offset, timeout)
    archive = (
        {} if reported.path is None else {"path": reported.path, "sha256": reported.sha256, "bytes": reported.bytes}
    )
    return {
        **archive,
        "changed": True,
        "files": [{"name": name, "bytes": size} for name, size in reported.files],
        "checkpoint": dict(zip(("offset", "epoch"), reported.checkpoint)) if reported.checkpoint else None,
        "start_offset": reported.start_offset,
        "end_offset": reported.end_offset,
        "last_epoch": reported.last_epoch,
        "cut_at": "log_end" if end_offset is None else "high_watermark",
        "seconds": round(time.monotonic() - started, 3),
    }


def absent(given, check_mode=False):
    """Remove the snapshot directory of the cluster, whoever made it."""
    target = os.path.join(given["state_dir"], given["cluster_id"], metadata_snapshot.DIRECTORY)
    there = os.path.isdir(target)
    if there and not check_mode:
        shutil.rmtree(target)
    return {"changed": there}


if __name__ == "__main__":
    main()
