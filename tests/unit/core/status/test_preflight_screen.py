# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The table of the preflight."""

from __future__ import annotations

from ansible_collections.quorumshift.kafka.plugins.module_utils.core.preflight import preflight
from ansible_collections.quorumshift.kafka.plugins.module_utils.core.status import preflight_screen

from tests.unit.core.preflight_facts import collected, node


def test_the_table_lists_blocking_findings_first():
    facts = collected()
    for host in ("c1", "b1"):
        node(facts, host)["service"]["unit_file_state"] = "disabled"
    facts.running["b1"]["num.network.threads"] = "9"
    facts.zookeeper["controller_epoch"] = {"exists": False, "malformed": None, "value": None}
    findings = preflight.run(facts, waived={preflight.ID["enabled"]: "started by hand"})
    lines = preflight_screen.table(findings, [check.id for check in preflight.CHECKS])
    count = len(preflight.CHECKS)
    assert lines[0] == f"{count} checks, {count - 3} passed. Findings: blocking 1, warnings 1, waived 2"
    order = [line.split()[0] for line in lines if line.startswith(("  blocks", "  warns", "  waived"))]
    assert order == ["blocks", "warns", "waived", "waived"]
    assert " " * 24 + "waived: started by hand" in lines
    assert max(map(len, lines)) <= preflight_screen.WIDTH and "\n".join(lines).count("passed: Inventory groups") == 1


def test_the_table_of_a_healthy_cluster():
    lines = preflight_screen.table([], [check.id for check in preflight.CHECKS])
    count = len(preflight.CHECKS)
    assert lines[0] == f"{count} checks, {count} passed. Findings: blocking 0, warnings 0"
