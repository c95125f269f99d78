# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Documented samples are parts of real results, and results have no key that is not documented.

Results come from recorded facts of real clusters, or were recorded whole (tests/unit/fixtures/README.md).
"""

from __future__ import annotations

import json
from types import SimpleNamespace

import pytest
from ansible.module_utils.basic import AnsibleModule
from ansible_collections.quorumshift.kafka.plugins.module_utils.module_base import probe_module
from ansible_collections.quorumshift.kafka.plugins.modules import kraft_preflight, migration_state, rolling_restart

from tests.unit.core import preflight_facts, recorded
from tests.unit.modules import documented
from tools.module_args import patch_module_args

RESULTS = documented.ROOT / "tests" / "unit" / "fixtures" / "results"
RECORDED = ("kafka_features", "kafka_features_info", "partition_reassignment", "partition_reassignment_info")
RECORDED = (*RECORDED, "zk_clients_info", "zk_observer_join")
# Of every module, or between a module that waits in slices and its action plugin
OF_ANSIBLE = {"changed", "diff", "failed", "msg", "ansible_facts", "ansible_stats"}
OF_SLICES = {"done", "carry", "progress"}


class Exited(Exception):
    """The module has returned its result."""


def asked(facts):
    """Let the facts say when the control node read each host, which node_facts' action plugin adds."""
    for node in facts["nodes"].values():
        if node.get("time"):
            node["asked"] = [node["time"], node["time"] + 0.5]
    return facts


@pytest.fixture
def run(monkeypatch):
    """Return a function that runs a module on recorded facts and returns its result."""

    def exit_json(_self, **result):
        raise Exited(result)

    monkeypatch.setattr(AnsibleModule, "exit_json", exit_json)
    monkeypatch.setattr(AnsibleModule, "fail_json", lambda _self, msg, **more: exit_json(_self, failed=msg, **more))
    in_sync = recorded.facts("zk_preflight")["min_isr"]
    monkeypatch.setattr(probe_module.topics, "read_min_isr", lambda *_given: in_sync)
    monkeypatch.setattr(rolling_restart, "ClusterAdmin", lambda *_given: SimpleNamespace(in_flight=dict))
    monkeypatch.setattr(rolling_restart.reassigner, "read_throttled_configs", lambda _admin: ({}, []))
    monkeypatch.setattr(rolling_restart.reassigner, "read_denied", lambda _admin: ([], []))

    def result_of(module, facts, **options):
        monkeypatch.setattr(probe_module.cluster, "collect", lambda *_given: asked(recorded.facts(facts)))
        monkeypatch.setattr(
            kraft_preflight, "collect", lambda _module: preflight_facts.collected(facts, controller_config={})
        )
        with patch_module_args({"bootstrap_servers": ["b1:9094"], **options}), pytest.raises(Exited) as exited:
            module.main()
        (result,) = exited.value.args
        assert not result.get("failed"), result
        return json.loads(json.dumps(result))

    return result_of


def rolling_restarts(run, harness):
    accepted = {"accept": ["73f70e"]}  # partitions with one replica
    for facts, kind in (("hybrid", "kraft"), ("zk", "restart_broker")):
        options = {"state": "planned", "kind": kind, "run": "night-1", **accepted}
        yield harness.run("rolling_restart", options, run(rolling_restart, facts, **options))
    yield run(rolling_restart, "dual_write", state="batches", run="night-1")
    quick = {"run": "night-1", "stable_s": 0, "state": "admitted"}
    yield run(rolling_restart, "hybrid_1_kraft", kind="kraft", batch=["b2"], **quick)
    yield run(rolling_restart, "hybrid_1_kraft", kind="kraft", batch=["b2"], controllers_read=["c1"], **quick)
    yield run(rolling_restart, "dual_write", kind="controller_final", batch=["c2"], **quick)
    yield run(rolling_restart, "hybrid_1_kraft_broker_down", kind="kraft", batch=["b2"], **quick)
    yield run(rolling_restart, "hybrid_1_kraft", kind="kraft", batch=["b2"], **{**quick, "state": "watched"})


def states(run, harness):
    for name in ("dual_write_broker_down", "reverting_1_plain", "zk"):
        harness.session = {}
        result = run(migration_state, name, plan_to="")
        yield harness.run("migration_state", {"plan_to": ""}, result)


def results(name, run, harness):
    """Return real results of a module, as a task gets them."""
    if name in RECORDED:
        lines = (RESULTS / f"{name}.jsonl").read_text(encoding="utf-8").splitlines()
        return [json.loads(line) for line in lines]
    if name == "migration_state":
        return list(states(run, harness))
    if name == "rolling_restart":
        return list(rolling_restarts(run, harness))
    return [run(kraft_preflight, "zk", report_only=True), run(kraft_preflight, "zk_broker_down", report_only=True)]


@pytest.mark.parametrize("name", documented.PUBLIC)
def test_samples_are_parts_of_real_results(name, run, harness):
    found, returns = results(name, run, harness), documented.module(name).returns
    invented = {}
    for key, entry in returns.items():
        values = [result[key] for result in found if key in result]
        if not any(documented.is_part(entry["sample"], value) for value in values) and (name, key) not in UNRECORDED:
            invented[key] = values
    assert invented == {}
    for result in found:
        slices = set() if name.startswith("partition_reassignment") else OF_SLICES
        assert set(result) - set(returns) - OF_ANSIBLE - slices == set()
        for key in set(result) & set(returns):
            assert documented.misfits(result[key], returns[key], key) == []


# What no recorded run has: (module, key)
UNRECORDED = {
    ("migration_state", "plan_error"),
    ("migration_state", "backups"),
    ("migration_state", "features"),  # recorded facts have none
    ("rolling_restart", "waited_s"),  # differs each time
    ("rolling_restart", "carry"),
    ("rolling_restart", "node_s"),  # of hosts' logs
}
