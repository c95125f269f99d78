# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Where restarts are paused (host.pause_file), as `status` shows it. Pure."""

from __future__ import annotations

from typing import Mapping

from ansible_collections.quorumshift.kafka.plugins.module_utils.core.text import advice, durations
from ansible_collections.quorumshift.kafka.plugins.module_utils.core.text.printable import escape_invisible
from ansible_collections.quorumshift.kafka.plugins.module_utils.facts import NodeFacts


def explain(nodes: Mapping[str, NodeFacts]) -> list[str]:
    """Return a sentence for each reason for which restarts are paused."""
    hosts: dict[str, list[str]] = {}
    lasted: dict[str, float] = {}
    for host, node in sorted(nodes.items()):
        paused = node.get("paused")
        if paused:
            hosts.setdefault(paused["why"], []).append(host)
            age_s = (node.get("time") or 0.0) - paused["since"]  # both by the host's clock
            lasted[paused["why"]] = max(lasted.get(paused["why"], 0.0), age_s)
    return [
        f"restarts are paused on {advice.format_names(names)} for {durations.format_duration(lasted[why])}"
        + (f" ({escape_invisible(why)})" if why else "")
        + ". To go on, run quorumshift.kafka.resume (QS-RESTART-019)"
        for why, names in hosts.items()
    ]
