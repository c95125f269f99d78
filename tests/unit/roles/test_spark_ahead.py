# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Spark is started for the next gate after gates that exist, and after no gate that ends a run."""

from __future__ import annotations

from ansible_collections.quorumshift.kafka.plugins.module_utils.core.gates import gates

from tools.checkout import ROOT
from tools.yaml_files import read_yaml

LAST = {"after_kraft", "after_revert", "after_finalize"}  # the soak, or the end
BY_ADMISSION = {"before_kraft"}  # no comparison of its own: after_copy has compared


def test_each_gate_is_followed_by_another_one_or_ends_a_run():
    followed = read_yaml(ROOT / "roles/quorumshift/vars/main.yml")["_quorumshift_followed"]
    assert {*followed} == gates.GATES.keys() - LAST - BY_ADMISSION
