# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Results of the module migration_state, made from recorded clusters."""

from __future__ import annotations

from ansible_collections.quorumshift.kafka.plugins.module_utils.core.migration import phase
from ansible_collections.quorumshift.kafka.plugins.module_utils.core.status import feature_screen, screen

from tests.unit.core import recorded


def state(name, **more):
    """What the module returns of a recorded cluster."""
    return of_facts(recorded.facts(name), **more)


def of_facts(facts, **more):
    """What the module returns of these facts."""
    detected = phase.detect(facts)
    return {
        "facts": facts,
        "phase": detected.phase,
        "cluster_id": phase.cluster_id(facts),
        "blocks": [block._asdict() for block in detected.blocks],
        "steps": detected.steps,
        "next": screen.next_step(facts, detected, 0)._asdict(),
        "rollback_readiness": {"targets": [], "obstacles": []},
        "mirrored_offset": None,
        "nodes": screen.node_lines(facts),
        "token": "id:abc123",
        "unfinished": [],
        "left_registered": [],
        "quorum": facts["quorum"],
        "features": feature_screen.summary(facts),
        **more,
    }


def with_backups(name):
    given = state(name)
    host = sorted(given["facts"]["nodes"])[0]
    kept = [{"path": "/var/lib/quorumshift/x/backup/zookeeper-1.jsonl.gz", "time": given["facts"]["time"] - 7200}]
    given["facts"]["nodes"][host]["backups"] = {given["cluster_id"]: kept}
    return host, given
