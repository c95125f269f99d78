# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The backups of ZooKeeper that a finished migration leaves on hosts: they hold credentials. Pure."""

from __future__ import annotations

import os
from typing import Mapping

from ansible_collections.quorumshift.kafka.plugins.module_utils.core.migration import phase
from ansible_collections.quorumshift.kafka.plugins.module_utils.core.text import durations
from ansible_collections.quorumshift.kafka.plugins.module_utils.facts import NodeFacts

REMOVE = "quorumshift_remove_backups=true"


def find_backups(nodes: Mapping[str, NodeFacts], cluster_id: str | None) -> dict[str, list[dict]]:
    """Return {host: [{path, time}]} of the hosts that have backups of this cluster."""
    of_cluster = {host: (node.get("backups") or {}).get(cluster_id or "") or [] for host, node in nodes.items()}
    return {host: files for host, files in sorted(of_cluster.items()) if files}


def reminders(nodes: Mapping[str, NodeFacts], cluster_id: str | None, now: float) -> list[str]:
    """Return a sentence for each host that has backups, without a full stop."""
    return [
        f"{host} has {len(files)} backup{'s' if len(files) > 1 else ''} of ZooKeeper with credentials in "
        f"{os.path.dirname(files[0]['path'])}, the oldest {durations.format_duration(max(0, now - files[0]['time']))} "
        f"old. Once you need no backup: run the playbook migrate with -e {REMOVE}"
        for host, files in find_backups(nodes, cluster_id).items()
    ]


def refusal(now: str) -> str | None:
    """Return why backups may not be removed in this phase, None if they may."""
    if now == phase.FINALIZED:
        return None
    return (
        f"{REMOVE} removes the backups of ZooKeeper, and the phase is {now}: until the phase is {phase.FINALIZED}, a "
        "rollback or a restore may need them. Run without it, and finalize first (QS-BACKUP-003)"
    )
