# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The module soak_history on a host: what it writes, also when two samples arrive at the same time."""

from __future__ import annotations

import concurrent.futures
import json

from tests import modules

CLUSTER = "phUKKf3TSny1o9Yap379dw"


def keep(root, at, problems=(), **more):
    sample = {"at": at, "phase": "dual_write", "problems": list(problems)}
    return modules.run(
        "soak_history", state_dir=str(root), cluster_id=CLUSTER, run="r1", sample=sample, **{"soak_gap": "", **more}
    )


def kept(root):
    return json.loads((root / CLUSTER / "soak.json").read_text())["episodes"]


def test_samples_are_kept_on_the_host(tmp_path):
    assert keep(tmp_path, 100.0)["episodes"] == 1
    assert keep(tmp_path, 160.0)["episodes"] == 1
    assert keep(tmp_path, 400.0, soak_gap="1m")["episodes"] == 2
    assert keep(tmp_path, 460.0, ["b1 is down"], soak_gap="1m")["episodes"] == 3
    assert [episode["samples"] for episode in kept(tmp_path)] == [2, 1, 1]
    path = tmp_path / CLUSTER / "soak.json"
    assert path.stat().st_mode & 0o777 == 0o600 and path.parent.stat().st_mode & 0o777 == 0o700


def test_samples_at_the_same_time_are_all_kept(tmp_path):
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        results = [*pool.map(lambda number: keep(tmp_path, 100.0 + number, [f"problem {number}"]), range(8))]
    assert not any(result.get("failed") for result in results), results
    assert sorted(episode["problems"][0][-1] for episode in kept(tmp_path)) == [str(number) for number in range(8)]


def test_nothing_is_kept_in_check_mode_or_over_a_file_that_is_not_json(tmp_path):
    assert keep(tmp_path, 100.0, _ansible_check_mode=True)["episodes"] == 1
    assert not (tmp_path / CLUSTER).exists()
    keep(tmp_path, 100.0)
    path = tmp_path / CLUSTER / "soak.json"
    path.write_text("{")
    result = keep(tmp_path, 160.0)
    assert result["failed"] and f"rm {path} (QS-GATE-013)" in result["msg"] and path.read_text() == "{"
    assert "quorumshift_soak_gap: '1x' is not a duration" in keep(tmp_path, 160.0, soak_gap="1x")["msg"]
