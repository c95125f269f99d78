# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A quorum of one controller, and one fork: a run is killed, and a run on another control node migrates the cluster."""

from __future__ import annotations

import pytest
import yaml

from tests.system.e2e.test_run_lock import STOPS, holder, phase
from tests.system.testbed.layout import INVENTORY
from tests.system.testbed.running import ELSEWHERE
from tests.system.testbed.waiting import nth

ONE_FORK = ("--forks", "1")


@pytest.fixture(scope="module")
def one_controller(tmp_path_factory):
    """The testbed's inventory with one controller."""
    inventory = yaml.safe_load(INVENTORY.read_text())
    hosts = inventory["all"]["children"]["kafka_controller"]["hosts"]
    for host in sorted(hosts)[1:]:
        del hosts[host]
    path = tmp_path_factory.mktemp("inventory") / "one_controller.yml"
    path.write_text(yaml.safe_dump(inventory))
    return path


def test_another_control_node_takes_over_a_killed_run(fresh, one_controller):
    killed = fresh.play("migrate", *ONE_FORK, inventory=one_controller, kill_when=nth(2, STOPS))
    assert killed.code < 0, killed.text
    refused = fresh.play("migrate", *ONE_FORK, inventory=one_controller, under=ELSEWHERE)
    assert refused.code == 2 and "This host cannot see whether that run is at work" in refused.text, refused.text
    token = {"quorumshift_force_unlock": holder(refused)}
    ran = fresh.play("migrate", *ONE_FORK, inventory=one_controller, under=ELSEWHERE, extra=token)
    assert ran.code == 0, ran.text
    status = fresh.play("status", inventory=one_controller, extra={"quorumshift_history": True})
    assert phase(status) == "dual_write", status.text
    assert f"taken over by run {status.text.rpartition('  run ')[2].split(' ')[0]}" in status.text, status.text
    again = fresh.play("migrate", inventory=one_controller)
    assert again.code == 0 and all(again.recap(host).get("changed", 0) == 0 for host in fresh.addresses), again.text
