# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Restarts in the journal: those that the run awaits, and those that ended after an earlier run was killed."""

from __future__ import annotations

import time
from typing import Any, Mapping

from ansible_collections.quorumshift.kafka.plugins.plugin_utils.run_artifacts import RunArtifacts

RESTART = "restart"


def note(artifacts: RunArtifacts, host: str, restart: Mapping[str, Any], took_s: float) -> None:
    """Journal the record of a restart that has ended (worker.restart_record)."""
    times = restart.get("times") or {}
    artifacts.note(
        RESTART,
        restart["kind"],
        t=restart["steps"][0]["at"] if restart.get("steps") else None,
        end=times.get("registered_at") or times.get("answered_at") or time.time(),
        host=host,
        node_restart=restart["id"],
        outcome=restart.get("outcome"),
        reason=restart.get("message") or None,
        times=times,
        restart_s=round(took_s, 3),
    )


def note_missed(artifacts: RunArtifacts, nodes: Mapping[str, Mapping[str, Any]]) -> None:
    """Journal each restart that a run of this control node began and did not see end: the host has the record. The next
    run may find the node as it should be, and restart nothing there.

    A record names its run and its host. That of another host, on a disk that was copied, says nothing of this one.
    """
    runs = artifacts.runs()
    known = {event.get("node_restart") for event in artifacts.all_events() if event["kind"] == RESTART}
    for host, node in sorted(nodes.items()):
        restart = node.get("node_restart") or {}
        run, _kind, of_host = [*str(restart.get("id")).split("/"), "", ""][:3]
        ended = restart.get("outcome") and restart.get("steps")
        if ended and restart["id"] not in known and run in runs and of_host == host:
            ended_at = restart.get("ended_at") or restart["steps"][-1]["at"]
            note(artifacts, host, restart, ended_at - restart["steps"][0]["at"])
