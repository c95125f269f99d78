# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Run the unit tests of code for managed hosts under the oldest Python that these may have.

A test file runs if it and the conftest.py files of its directories import only the standard library and pytest,
directly and through the collection, and if it tests no control-node code. The first run installs pytest for that
Python in .build/oldest. JUnit XML goes to $CHECKS_JUNIT. Exit code 77, with the reason, if this host has no such
Python.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from ansible_test._util.target.common.constants import REMOTE_ONLY_PYTHON_VERSIONS

from tools.imports import ACCELERATORS, ROOT, foreign_imports
from tools.pythons import find_python

OLDEST = REMOTE_ONLY_PYTHON_VERSIONS[0]
CONTROL_NODE_ONLY = {"action", "callback", "canary_clients", "roles", "system", "tools"}  # directories of tests/unit
PYTEST = {"3.8": "pytest==8.3.5", "3.9": "pytest==8.4.2"}  # the last versions for these Pythons


def provide_pytest(python: str) -> str:
    """Return the path of a Python ``OLDEST`` with pytest only."""
    venv = ROOT / ".build" / "oldest" / OLDEST
    own = str(venv / "bin" / "python")
    works = Path(own).exists() and subprocess.run([own, "-c", "import pytest"], check=False).returncode == 0
    if not works:
        subprocess.run([python, "-m", "venv", "--clear", str(venv)], check=True)
        subprocess.run([own, "-m", "pip", "install", "-q", "--disable-pip-version-check", PYTEST[OLDEST]], check=True)
    return own


def target_tests() -> tuple[list[Path], list[Path]]:
    """Return the test files of code that is not for the control node alone, and those of them that need only pytest."""
    unit = ROOT / "tests" / "unit"
    tests = [test for test in unit.rglob("test_*.py") if test.relative_to(unit).parts[0] not in CONTROL_NODE_ONLY]
    return tests, [path for path in sorted(tests) if not needed_packages(path) - {"pytest"}]


def needed_packages(test: Path) -> set[str]:
    """Return the packages that pytest imports for this file of tests."""
    above = test.relative_to(ROOT).parents
    conftests = [path for path in (ROOT / directory / "conftest.py" for directory in above) if path.exists()]
    return set(foreign_imports(test, *conftests)) - ACCELERATORS


def main() -> int:
    tests, selected = target_tests()
    python = find_python(OLDEST)
    if not python:
        print(f"skipped: no Python {OLDEST}, the oldest for managed hosts, on this host (PATH, ~/.pyenv/versions)")
        return 77
    print(f"Python {OLDEST}: {len(selected)} of {len(tests)} unit test files need only pytest", flush=True)
    if not selected:
        print("no test file to run: code for managed hosts would be untested", file=sys.stderr)
        return 1
    command = [provide_pytest(python), "-m", "pytest", "-q", "-o", "cache_dir=.build/cache/pytest-oldest"]
    if "CHECKS_JUNIT" in os.environ:
        command.append(f"--junitxml={os.environ['CHECKS_JUNIT']}")
    return subprocess.run([*command, *map(str, selected)], cwd=ROOT, check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
