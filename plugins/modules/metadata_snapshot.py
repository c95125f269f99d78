#!/usr/bin/python
# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: metadata_snapshot
short_description: Take a consistent snapshot of a controller's live metadata log for verification
version_added: 0.1.0
description:
  - B(Internal.) Roles of this collection call it. Its options and results may change in any release.
  - Archives the newest complete checkpoint of the metadata log and the records after it. Kafka may write, roll and
    delete files meanwhile.
  - The archive holds secrets in clear text (SCRAM keys, encrypted configs, delegation tokens). Only its owner can read
    it. Remove it as soon as it has been fetched.
  - A host keeps one archive per cluster.
options:
  config_file:
    description: The controller's properties file, which names its directories.
    type: path
    required: true
  cluster_id:
    description: The cluster's id.
    type: str
    required: true
  end_offset:
    description:
      - The first offset that is left out, usually the quorum's high watermark, read from the leader just before.
      - The leader has all records below it. Another controller may be behind. After an election it may briefly hold
        records that the quorum dropped; then RV(last_epoch) is older than the leader's epoch.
      - Without this option the complete log is archived. Use that for stopped controllers, where no leader exists.
        Among a majority of the voters, the log with the highest RV(last_epoch), then the highest RV(end_offset),
        holds every committed record.
    type: int
  since:
    description:
      - The archive also has the records from this offset on, or as many of them as Kafka has kept. They show when
        something changed that the newest checkpoint sums up.
    type: int
  timeout_s:
    description: How long the end of a log that is short of O(end_offset) may stand still, in seconds.
    type: float
    default: 30
extends_documentation_fragment:
  - quorumshift.kafka.host_record
  - quorumshift.kafka.archive
attributes:
  check_mode:
    support: full
    description: Reads the log and returns what the archive would contain. Writes nothing.
  diff_mode:
    support: none
    description: The content is secret.
notes:
  - Runs with a lower priority (nice 10), so that the compression does not slow down the controller.
author: Quorumshift maintainers (@quorumshift)
"""

EXAMPLES = r"""
- name: Take a snapshot of the metadata log below the high watermark
  quorumshift.kafka.metadata_snapshot:
    config_file: /etc/kafka/controller.properties
    cluster_id: Qs7KfZk2TIK1n0nQ5Qm3Tw
    end_offset: 104883
  register: snapshot
"""

RETURN = r"""
path:
  description: The archive, a tar.gz with the files of the metadata log's directory.
  type: str
  returned: not in check mode
sha256:
  description: The archive's SHA-256.
  type: str
  returned: not in check mode
bytes:
  description: The archive's size.
  type: int
  returned: not in check mode
files:
  description: Names and sizes of the files in the archive.
  type: list
  elements: dict
  returned: always
  sample: [{"name": "00000000000000104000-0000000007.checkpoint", "bytes": 81920}]
checkpoint:
  description: Offset and epoch of the checkpoint; null if the log needs none.
  type: dict
  returned: always
  sample: {"offset": 104000, "epoch": 7}
start_offset:
  description: The first offset that is archived as a record; a checkpoint holds the state below it.
  type: int
  returned: always
end_offset:
  description: The first offset that is not in the archive. It equals O(end_offset), unless that falls into a batch.
  type: int
  returned: always
last_epoch:
  description: The leader epoch of the last record.
  type: int
  returned: always
cut_at:
  description:
    - V(high_watermark) with O(end_offset). V(log_end) without it; the archive may then hold records that the quorum
      never committed.
  type: str
  returned: always
seconds:
  description: How long the snapshot took, in seconds.
  type: float
  returned: always
"""

import os
import time

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.quorumshift.kafka.plugins.module_utils import message_ids
from ansible_collections.quorumshift.kafka.plugins.module_utils.files import archives
from ansible_collections.quorumshift.kafka.plugins.module_utils.host import host_state
from ansible_collections.quorumshift.kafka.plugins.module_utils.probes.node import node
from ansible_collections.quorumshift.kafka.plugins.module_utils.settings import properties
from ansible_collections.quorumshift.kafka.plugins.module_utils.snapshots import metadata_snapshot


def main():
    """Take the snapshot."""
    module = AnsibleModule(
        argument_spec={
            "config_file": {"type": "path", "required": True},
            "cluster_id": {"type": "str", "required": True},
            "end_offset": {"type": "int"},
            "since": {"type": "int"},
            "timeout_s": {"type": "float", "default": 30},
            **host_state.OPTIONS,
            **archives.ACTION_OPTIONS,
        },
        supports_check_mode=True,
    )
    os.nice(10)
    try:
        module.exit_json(**take(module.params, module.check_mode))
    except (
        OSError,
        properties.PropertiesError,
        metadata_snapshot.LogError,
        metadata_snapshot.SnapshotError,
    ) as error:
        module.fail_json(
            msg=message_ids.move_to_end(f"the snapshot of the metadata log failed: {error} (QS-VERIFY-006)")
        )


def take(given, check_mode=False):
    """Take the snapshot and return the module's result; in check mode, only read the log."""
    started = time.monotonic()
    directory = node.metadata_dir(node.read_properties(given["config_file"]))
    if not directory:
        raise metadata_snapshot.SnapshotError(
            f"{given['config_file']} names neither metadata.log.dir nor log.dirs (QS-VERIFY-006)"
        )
    end_offset, timeout, since = given["end_offset"], given["timeout_s"], given.get("since")
    if check_mode:
        snapshot = metadata_snapshot.preview(directory, end_offset, timeout, since)
    else:
        host = host_state.make_directory(given["state_dir"], given["cluster_id"])
        target = os.path.join(host, metadata_snapshot.DIRECTORY)
        snapshot = metadata_snapshot.take(directory, target, end_offset, timeout, since)
    archive = {} if snapshot.path is None else {key: getattr(snapshot, key) for key in ("path", "sha256", "bytes")}
    return {
        **archive,
        "changed": True,
        "files": [{"name": name, "bytes": size} for name, size in snapshot.files],
        "checkpoint": dict(zip(("offset", "epoch"), snapshot.checkpoint)) if snapshot.checkpoint else None,
        "start_offset": snapshot.start_offset,
        "end_offset": snapshot.end_offset,
        "last_epoch": snapshot.last_epoch,
        "cut_at": "log_end" if end_offset is None else "high_watermark",
        "seconds": round(time.monotonic() - started, 3),
    }


if __name__ == "__main__":
    main()
