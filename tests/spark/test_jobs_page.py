# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""docs/jobs.md has the steps and plans that Spark runs."""

from __future__ import annotations

import pytest

from tests.spark import jobs_page
from tests.spark.parity import ROOT

pytestmark = pytest.mark.real


def test_the_page_is_what_spark_does():
    for path, text in jobs_page.generate().items():
        assert path.read_text(encoding="utf-8") == text, f"{path.relative_to(ROOT)}: python -m tests.spark.jobs_page"
