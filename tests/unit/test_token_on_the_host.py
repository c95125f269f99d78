# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The modules that take a gate token, run as Ansible runs them: an old one is refused before anything is changed."""

from __future__ import annotations

import pytest
from ansible_collections.quorumshift.kafka.plugins.module_utils.core.gates import gates
from ansible_collections.quorumshift.kafka.plugins.module_utils.probes.host import clock

from tests import modules

GATES = {"node_restart": "before_kraft", "controller_wipe": gates.BROKERS_PLAIN}


def run(module, tmp_path, boot_id, age_s, admitted=""):
    role = "controller" if module == "controller_wipe" else "broker"
    token = {"gate": GATES[module], "cluster_id": "cluster", "run": "r", "hosts": {"b2": admitted or f"{role}-2"}}
    given = {
        **{
            "run": "r",
            "host": "b2",
            "cluster_id": "cluster",
            "state_dir": str(tmp_path / "state"),
            "service": "quorumshift-none",
        },
        **{"config_file": str(tmp_path / "server.properties"), "run_key": "s3cr3t", "log_dir": str(tmp_path / "log")},
        **{"restart_id": "r/kraft/b2", "kind": "kraft", "node_id": 2, "log_file": str(tmp_path / "server.log")},
        "gate_token": {**token, "clocks": {boot_id: clock.read()["uptime_s"] - age_s}},
    }
    if module == "controller_wipe":
        given = {
            key: given[key]
            for key in ("run", "host", "cluster_id", "state_dir", "service", "config_file", "log_dir", "node_id")
        } | {"gate_token": given["gate_token"]}
    else:
        del given["log_dir"]
        given["role"] = role
    return modules.run(module, **given)


@pytest.mark.parametrize("module", GATES)
@pytest.mark.parametrize(
    ("boot_id", "age_s", "why"),
    [
        (None, 3600, "s old by this host's clock"),
        ("an-earlier-boot", 1, "no reading of this host's clock since its boot"),
    ],
)
def test_an_old_token_is_refused_before_anything_is_changed(module, tmp_path, boot_id, age_s, why):
    result = run(module, tmp_path, boot_id or clock.read()["boot_id"], age_s)
    assert result["failed"] and result["outcome"] == "expired" and why in result["msg"], result
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("module", GATES)
def test_a_fresh_token_is_accepted(module, tmp_path):
    result = run(module, tmp_path, clock.read()["boot_id"], 1)
    assert "outcome" not in result and "gate token" not in result["msg"], result


@pytest.mark.parametrize(("module", "other"), [("node_restart", "controller-2"), ("controller_wipe", "broker-2")])
def test_the_token_of_another_node_of_the_host_is_refused(module, other, tmp_path):
    result = run(module, tmp_path, clock.read()["boot_id"], 1, other)
    assert result["failed"] and f"the gate token is of b2 with node {other}" in result["msg"], result
    assert not list(tmp_path.iterdir())


def test_the_properties_file_of_another_node_of_the_host_is_refused(tmp_path):
    (tmp_path / "server.properties").write_text("node.id=2\nprocess.roles=controller\n")
    result = run("node_restart", tmp_path, clock.read()["boot_id"], 1)
    assert result["failed"] and "is of controller-2, the run means broker-2" in result["msg"], result
    assert [path.name for path in tmp_path.iterdir()] == ["server.properties"]


@pytest.mark.parametrize("age_s", [1, 3600])
def test_while_restarts_are_paused_nothing_begins_whatever_the_token(tmp_path, age_s):
    (tmp_path / "state").mkdir()
    (tmp_path / "state" / "pause").write_text("disk alert")
    result = run("node_restart", tmp_path, clock.read()["boot_id"], age_s)
    assert result["outcome"] == "paused" and result["paused"]["why"] == "disk alert" and not result["changed"]
    assert [path.name for path in tmp_path.rglob("*")] == ["state", "pause"]
