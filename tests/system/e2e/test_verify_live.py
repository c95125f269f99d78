# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Twenty comparisons in dual-write have no false alarm while clients run and metadata changes."""

from __future__ import annotations

import json
import time

import pytest

from tests.system.demo.observers import Observers
from tests.system.demo.verdict import clients_verdict
from tests.system.e2e.comparing import verify
from tests.system.testbed.layout import ROOT

DIRECTORY = ROOT / "build" / "verify" / "run"
GATES = 20


@pytest.fixture(scope="module")
def observers(fresh):
    """Verification clients, and changes of topics, ACLs, users, quotas and configs."""
    observers = Observers(DIRECTORY)
    observers.begin()
    try:
        ran = fresh.play()
        assert ran.code == 0, ran.text
        yield observers
    finally:
        observers.stop_all()


def test_twenty_comparisons_pass(fresh, observers):
    rows = []
    for number in range(1, GATES + 1):
        began = time.time()
        ran, result = verify(fresh)
        rounds = result.get("rounds", [])
        rows.append(
            {
                **{"number": number, "at": round(began, 3), "playbook_s": round(ran.seconds, 1)},
                **{"verdict": result.get("verdict"), "reasons": result.get("reasons"), "rounds": len(rounds)},
                "moved": rounds[0]["keys"] if rounds else 0,
                "comparisons": sum(counts["match"] for counts in result.get("counts", {}).values()),
                "timings": result.get("timings"),
            }
        )
        (DIRECTORY / "gates.json").write_text(json.dumps(rows, indent=1) + "\n")
    assert [row["verdict"] for row in rows] == ["pass"] * GATES, [row["reasons"] for row in rows]
    assert any(row["moved"] for row in rows), "no metadata changed during the comparisons"
    (DIRECTORY / "marks.jsonl").touch()
    verdict = clients_verdict(observers) or {}
    assert verdict.get("verdict") == "pass" and verdict["acked"] > 0, verdict
