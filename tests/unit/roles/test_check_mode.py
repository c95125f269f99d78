# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A move to another ensemble in check mode: what only a change makes true is not required after it was left out."""

from __future__ import annotations

import pytest

from tools.checkout import ROOT
from tools.yaml_files import read_yaml

TASKS = ROOT / "roles/zk_migrate/tasks"


@pytest.mark.parametrize(
    ("file", "name"),
    [
        ("batch.yml", "Check that the broker uses these servers alone"),
        ("take_back.yml", "Require that no promotion is under way"),
    ],
)
def test_what_a_change_makes_true_is_not_required_in_check_mode(file, name):
    (task,) = [task for task in read_yaml(TASKS / file) if task["name"] == name]
    assert task["when"] == "not ansible_check_mode"
