# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Tests that run under the oldest Python of managed hosts need nothing that this Python does not have."""

from __future__ import annotations

import re

from tools import oldest_target


def test_no_selected_test_runs_a_program_from_beside_its_python():
    _all, selected = oldest_target.target_tests()
    assert len(selected) > 90
    beside = re.compile(r"\(sys\.executable\)\s*\.with_name|dirname\(sys\.executable\)")
    assert not [path for path in selected if beside.search(path.read_text(encoding="utf-8"))]


def test_the_packages_of_a_conftest_count():
    """pytest imports it for each test in its directory, whatever the test imports itself."""
    conftests = [*(oldest_target.ROOT / "tests" / "unit").rglob("conftest.py")]
    needing = {path.parent for path in conftests if "ansible" in oldest_target.foreign_imports(path)}
    assert needing
    _all, selected = oldest_target.target_tests()
    assert not [path for path in selected if needing & set(path.parents)]


def test_a_test_that_runs_a_module_needs_ansible():
    all_tests, selected = oldest_target.target_tests()
    runs = re.compile(r"from tests import .*\bmodules\b|ANSIBLE_MODULE_ARGS")
    found = [path for path in all_tests if runs.search(path.read_text(encoding="utf-8"))]
    assert found
    assert not set(found) & set(selected)
