# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The verdict on two ensembles: what the first reading of the files found, the second one must show."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
from quorumshift_spark import ensemble_parity
from quorumshift_spark.views import trees

SIDES = ("source:s1", "destination:z1", "destination:z2")
NODE = dict.fromkeys(trees.FIELDS, "1")
OTHER = {**NODE, "version": "2"}


@pytest.mark.parametrize(
    ("differing", "shown", "verdict", "why"),
    [
        ([], {}, "pass", None),
        (["/a"], {"/a": {0: NODE, 1: OTHER, 2: NODE}}, "differ", "/a"),
        (["/a"], {"/a": {1: NODE, 2: NODE}}, "differ", "/a"),
        (["/a"], {}, "incomplete", "1 znodes differed at the first reading of the files and not at the second: /a"),
        (["/a"], {"/a": {0: NODE, 1: NODE, 2: NODE}}, "incomplete", "not at the second: /a"),
        (["/a", "/b"], {"/b": {0: NODE, 1: NODE, 2: OTHER}}, "differ", "not at the second: /a"),
    ],
)
def test_what_a_second_reading_lacks_is_no_pass(tmp_path, differing, shown, verdict, why):
    job = SimpleNamespace(output=str(tmp_path), bounds=SimpleNamespace(shown=10, reread_limit=10))
    run = SimpleNamespace(job=job, cut=None, result={"files": {}})
    compared = [SimpleNamespace(view=view) for view in SIDES]
    ensemble_parity._Run._evaluate(run, compared, shown, differing)
    assert run.result["verdict"] == verdict
    assert why is None or why in " ".join(run.result["reasons"])
