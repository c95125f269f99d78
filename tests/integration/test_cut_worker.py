# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The real worker of a cut with the kernel's rules: its deadline, and a filter table that is flushed at each point."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
pytestmark = pytest.mark.skipif(
    os.geteuid() != 0 or not all(map(shutil.which, ("ip", "iptables", "ip6tables", "unshare"))),
    reason="needs root and iptables",
)


def run(home, case):
    """Return what was seen at each step."""
    script = 'ip link set lo up; exec "$@"'
    argv = ["unshare", "-n", "sh", "-c", script, "sh", sys.executable, "-m", "tests.integration.cut_on_this_host"]
    done = subprocess.run(
        [*argv, str(home), case],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": f"{ROOT}/.build:{ROOT}"},
        capture_output=True,
        text=True,
        timeout=200,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return {line["step"]: line for line in map(json.loads, done.stdout.splitlines())}


def test_the_deadline_undoes_everything(tmp_path):
    seen = run(tmp_path, "deadline")
    assert [seen[step]["rules"] for step in ("begin", "cut", "deadline")] == [4, 5, 0]
    assert seen["deadline"]["state"] == "healed" and not seen["deadline"]["drop_in"]


@pytest.mark.parametrize("case", ["flushed before", "other files"])
def test_a_promotion_is_not_accepted_without_the_cut_or_with_other_files(tmp_path, case):
    promote = run(tmp_path, case)["promote"]
    assert (promote["state"], promote["rules"], promote["drop_in"], promote["runs"]) == ("healed", 0, False, True)
    assert {"flushed before": "rules of the cut are gone", "other files": "the check was of zxid 1"}[case] in promote[
        "reason"
    ]


def test_the_fence_is_made_again_while_the_second_one_holds(tmp_path):
    seen = run(tmp_path, "flushed after")
    assert (seen["flushed"]["state"], seen["flushed"]["rules"], seen["flushed"]["runs"]) == ("promoting", 6, True)
    assert (seen["suspend"]["state"], seen["suspend"]["runs"]) == ("suspended", False)
    assert seen["start"]["code"] == 1, "a suspended server does not start"
    assert (seen["take back"]["state"], seen["take back"]["rules"]) == ("healed", 0)


@pytest.mark.parametrize("case", ["both", "broker"])
def test_a_server_that_clients_may_have_reached_is_stopped(tmp_path, case):
    seen = run(tmp_path, case)
    assert (seen["flushed"]["state"], seen["flushed"]["rules"]) == ("suspended", 6)
    assert "the fence was missing while the server ran" in seen["suspend"]["reason"] and not seen["suspend"]["runs"]
    assert (seen["take back"]["state"], seen["take back"]["drop_in"]) == ("healed", False)
