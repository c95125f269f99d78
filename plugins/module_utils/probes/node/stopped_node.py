# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the logs of a stopped node hold. Runs on managed hosts: standard library only. Reads."""

from __future__ import annotations

import os

from ansible_collections.quorumshift.kafka.plugins.module_utils.formats.metadata import metadata_image, metadata_log
from ansible_collections.quorumshift.kafka.plugins.module_utils.formats.records import replica_log
from ansible_collections.quorumshift.kafka.plugins.module_utils.probes.node import node
from ansible_collections.quorumshift.kafka.plugins.module_utils.settings import config_values


def read_partition_epochs(config_file: str) -> dict[str, dict]:
    """Return {topic: {topic_id, epochs: {partition: epoch}}} from a controller's metadata log; {} where it has none.

    Raises OSError, PropertiesError, LogError.
    """
    directory = node.metadata_dir(node.read_properties(config_file)) if os.path.exists(config_file) else ""
    if not os.path.isdir(directory):
        return {}
    records = metadata_log.read_records(directory, types=metadata_image.TOPIC_TYPES)
    return metadata_image.Image.from_records(records).partition_epochs()


def read_replica_logs(config_file: str) -> dict[str, list]:
    """Return {topic-partition: [topic id, last epoch, end offset, newest epoch]} of a broker's log directories.

    Raises OSError, PropertiesError, ReplicaLogError.
    """
    found = {}
    for log_dir in config_values.log_dirs(node.read_properties(config_file)):
        for name in sorted(os.listdir(log_dir)):
            if replica_log.partition_of(name) and name != node.METADATA_LOG:
                found[name] = list(replica_log.read(os.path.join(log_dir, name)))
    return found
