# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the papers ask for names tests that exist and run on real servers, or says why not."""

from __future__ import annotations

import re

import pytest

from tests.system.drill import drills
from tools import checks, papers

DRILLS = {drill.name for stages in drills.SCENARIOS.values() for stage in stages for drill in stage.drills}
MAKEFILE = (papers.ROOT / "Makefile").read_text(encoding="utf-8")
TARGETS = set(re.findall(r"^([\w-]+):", MAKEFILE, re.MULTILINE)) | set(checks.TARGETS)


def test_each_row_has_its_test_or_its_reason():
    assert papers.problems(DRILLS, TARGETS) == []


def test_every_row_of_each_paper_is_there():
    assert {paper["name"]: len(paper["rows"]) for paper in papers.papers()} == {
        "KIP-866": 73,
        "KIP-584": 47,
        "KIP-455": 48,
        "KIP-500": 50,
        "Airbnb": 41,
    }


@pytest.mark.parametrize(
    ("row", "said"),
    [
        ({"verdict": "shown"}, "no test on real servers is named"),
        ({"verdict": "shown", "by": ["tests/unit/test_papers.py"]}, "no test on real servers is named"),
        ({"verdict": "shown", "by": ["make unit"]}, "no test on real servers is named"),
        ({"verdict": "shown", "by": ["make everything"]}, "there is no target 'make everything'"),
        ({"verdict": "shown", "by": ["drill: rain"]}, "there is no drill 'drill: rain'"),
        (
            {"verdict": "shown", "by": ["tests/integration/test_gone.py"]},
            "tests/integration/test_gone.py does not exist",
        ),
        (
            {"verdict": "shown", "by": ["tests/integration/test_admission.py::test_gone"]},
            "tests/integration/test_admission.py has no function test_gone",
        ),
        ({"verdict": "partly"}, "it needs a sentence that says why not, and no test"),
        ({"verdict": "absent", "why": "no", "by": []}, "it needs a sentence that says why not, and no test"),
        ({"verdict": "partly", "why": "See docs/gone.md."}, "docs/gone.md does not exist"),
        ({"verdict": "nearly", "why": "So."}, "the verdict nearly is none of shown, partly, absent, kafka"),
    ],
)
def test_what_is_wrong_with_a_row(monkeypatch, row, said):
    rows = [{"number": 1, "item": "something", **row}]
    monkeypatch.setattr(papers, "papers", lambda: [{"name": "Paper", "rows": rows}])
    assert f"Paper 1: {said}" in papers.problems(DRILLS, TARGETS)


def test_a_row_that_is_shown():
    rows = [{"number": 1, "item": "all", "verdict": "shown", "by": ["tests/integration/test_admission.py"]}]
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(papers, "papers", lambda: [{"name": "Paper", "rows": rows}])
        assert papers.problems(DRILLS, TARGETS) == []
        assert papers.counts_table().splitlines()[-1] == "| Paper | 1 | 1 | 0 | 0 | 0 |"
        assert len(papers.open_rows_table().splitlines()) == 2
