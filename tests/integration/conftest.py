# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The order of the files: the longest first, so that no worker runs one while the others have ended."""

from __future__ import annotations

# Seconds of the files that take longer than half a minute, alone on two cores
SECONDS = {
    "test_features_playbook.py": 320,
    "test_upgrade_audit.py": 217,
    "test_reassign_playbook.py": 201,
    "test_mistakes.py": 175,
    "test_canary_clients.py": 161,
    "test_upgrade.py": 142,
    "test_partition_reassignment.py": 133,
    "test_old_metadata_version.py": 127,
    "test_zk_controller_restore.py": 124,
    "test_zookeeper_files.py": 110,
    "test_canary_verdicts.py": 103,
    "test_slow_start.py": 100,
    "test_feature_changes.py": 95,
    "test_zk_restore.py": 86,
    "test_metadata_log_against_kafka.py": 72,
    "test_metadata_snapshot.py": 70,
    "test_stuck_leaders.py": 68,
    "test_identity.py": 60,
    "test_preferred_leader_election.py": 100,
    "test_partition_metadata.py": 46,
    "test_restart_batches.py": 42,
    "test_canary_producers.py": 38,
    "test_kafka_wire.py": 37,
    "test_admission.py": 37,
    "test_kafka_features.py": 37,
    "test_generated_ids.py": 33,
    "test_logins.py": 30,
}


def pytest_collection_modifyitems(items):
    items.sort(key=lambda item: -SECONDS.get(item.path.name, 0))
