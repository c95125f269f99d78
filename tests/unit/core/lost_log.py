# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A recorded cluster in which a controller lost its disk."""

from __future__ import annotations

from tests.unit.core import recorded


def lost_log(name="dual_write_one_controller_down", **log_dir):
    """Return the facts of a recorded cluster in which c2 is stopped and its log directory is empty, or as `log_dir`
    says. Every other voter has everything that was committed."""
    facts = recorded.facts(name)
    node, quorum = facts["nodes"]["c2"], facts["quorum"]
    node["running"] = None
    node["service"] = {**node["service"], "active": False, "active_state": "inactive", "sub_state": "dead"}
    node["log_dirs"] = [{"path": "/var/lib/kafka/metadata", "exists": True, "empty": True, "meta": None, **log_dir}]
    node["metadata_log"] = None
    for voter in quorum["voters"]:
        if voter["id"] != node["node_id"]:
            voter["log_end_offset"] = quorum["high_watermark"]
    return facts
