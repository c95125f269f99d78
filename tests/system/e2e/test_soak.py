# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A watched soak: samples of the real cluster decide when it may be finalized."""

from __future__ import annotations

import json
import re

QUICK = {"quorumshift_verify": False}
SOAK = {"quorumshift_soak": "1s", "quorumshift_soak_gap": "10m"}


def history(fresh, host):
    return json.loads(fresh.run(host, "cat /var/lib/quorumshift/*/soak.json"))["episodes"]


def token(fresh):
    status = fresh.play("status", extra=SOAK)
    return re.findall(r"quorumshift_finalize_token=(\S+)", status.text)[0]


def test_a_good_sample_is_kept_on_two_hosts_and_written_as_metrics(fresh, tmp_path):
    ran = fresh.play(extra=QUICK)
    assert ran.code == 0 and ": dual_write" in ran.text, ran.text
    path = tmp_path / "quorumshift.prom"
    sampled = fresh.play("watch_soak", extra={"soak_metrics_file": str(path)})
    assert sampled.code == 0 and "phase dual_write, no problems" in sampled.text, sampled.text
    kept = [history(fresh, host) for host in fresh.controllers[:2]]
    assert kept[0] == kept[1] and [episode["problems"] for episode in kept[0]] == [[]]
    assert re.search(r'^quorumshift_phase\{cluster_id="\S+",phase="dual_write"\} 1$', path.read_text(), re.MULTILINE)


def test_a_bad_sample_is_reported_and_begins_the_soak_again(fresh):
    fresh.run("b2", "systemctl stop kafka")
    sampled = fresh.play("watch_soak")
    fresh.run("b2", "systemctl start kafka")
    assert sampled.code == 2 and "broker b2 does not answer" in sampled.text, sampled.text
    assert history(fresh, fresh.controllers[0])[-1]["problems"]
    fresh.wait_in_sync()
    day = {"quorumshift_soak": "24h"}
    given = {**QUICK, **day, "quorumshift_finalize_token": token(fresh)}
    refused = fresh.play(extra=given)
    assert refused.code == 2 and "finalizing is rejected" in refused.text and "QS-GATE-013" in refused.text, (
        refused.text
    )


def test_a_soak_that_was_sampled_to_its_end_is_finalized(fresh):
    sampled = fresh.play("watch_soak", extra=SOAK)
    assert sampled.code == 0 and "the soak has been over for" in sampled.text, sampled.text
    ran = fresh.play(extra={**QUICK, **SOAK, "quorumshift_finalize_token": token(fresh)})
    assert ran.code == 0 and ": finalized" in ran.text, ran.text
