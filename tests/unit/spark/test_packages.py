# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The preflight tries every package that a job imports."""

from __future__ import annotations

import ast
import sys
from pathlib import Path

from ansible_collections.quorumshift.kafka.plugins.module_utils.core.preflight import spark
from quorumshift_spark import session

JOBS = Path(session.__file__).parent
OWN = {"quorumshift_spark", "ansible_collections"}
WITH_OTHERS = {"py4j", "markupsafe"}  # pyspark and jinja2 bring them


def test_every_package_that_a_job_imports_is_tried():
    imported = set()
    for path in JOBS.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Import):
                imported.update(alias.name.partition(".")[0] for alias in node.names)
            elif isinstance(node, ast.ImportFrom) and not node.level:
                imported.add((node.module or "").partition(".")[0])
    foreign = imported - sys.stdlib_module_names - OWN - WITH_OTHERS
    assert "pyspark" in foreign and foreign | {*session.EXECUTOR_MODULES} <= set(spark.PACKAGES)
