# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The lines of an audit: its findings as a table, and who uses the cluster. Pure."""

from __future__ import annotations

from typing import Any, Mapping

from ansible_collections.quorumshift.kafka.plugins.module_utils.core.audit import audit
from ansible_collections.quorumshift.kafka.plugins.module_utils.core.status import preflight_screen

_COUNTED = "QS-AUDIT-009"  # the check that had what every broker counts of its clients
MOST = 10  # clients and addresses that are shown; upgrade_audit.json has all


def render(result: Mapping[str, Any], whole: bool) -> list[str]:
    """Return the lines of a result of upgrade_audit. `whole`: also the clients, and the checks without a finding."""
    targets = result["targets"]
    if not targets:
        return ["no audit: the release is not later than the one that runs"]
    findings = [
        {**finding, "seen": f"from Kafka {finding['since']} on: {finding['seen']}"} if finding["since"] else finding
        for finding in result["findings"]
    ]
    lines = [f"audit for Kafka {', '.join(targets)}"]
    lines += preflight_screen.table(findings, result["checks"] if whole else [], audit.TITLE)
    return [*lines, "", *_clients(result["clients"], _COUNTED in result["checks"])] if whole else lines


def _clients(clients: Mapping[str, Any], is_known: bool) -> list[str]:
    connected = [
        f"{client['name'] or 'unknown'} {client['software']}: {client['connections']}"
        for client in clients["connected"]
    ]
    title = "clients by name and version, with their connections"
    lines = _some(title, connected) if connected or is_known else [f"  {title}: not known"]
    ordered = sorted(clients["addresses"].items(), key=lambda item: (-item[1], item[0]))
    return lines + _some(
        "addresses that are connected to brokers", [f"{address}: {count}" for address, count in ordered]
    )


def _some(title: str, texts: list[str]) -> list[str]:
    if not texts:
        return [f"  {title}: none was seen"]
    more = f" and {len(texts) - MOST} more, in upgrade_audit.json" if len(texts) > MOST else ""
    return [f"  {title}: {', '.join(texts[:MOST])}{more}"]
