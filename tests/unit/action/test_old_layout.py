# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""While a host has files of an earlier version, each module that needs a node's state refuses, and so does each
direction of a run and each playbook.
"""

from __future__ import annotations

import json

import pytest
import yaml
from ansible_collections.quorumshift.kafka.plugins.module_utils.core.preflight import inventory, preflight
from ansible_collections.quorumshift.kafka.plugins.module_utils.core.run import run_lock
from ansible_collections.quorumshift.kafka.plugins.module_utils.host import host_state
from ansible_collections.quorumshift.kafka.plugins.module_utils.module_base import admin_module
from ansible_collections.quorumshift.kafka.plugins.module_utils.probes.host import clock
from ansible_collections.quorumshift.kafka.plugins.module_utils.probes.node import node

from tests import modules
from tests.unit.action.states import state
from tests.unit.core import recorded

CLUSTER, RUN = "phUKKf3TSny1o9Yap379dw", "run"
LOCK = {"number": 1, "run": RUN, "direction": "back", "user": "u", "host": "h", "since": 1.0, "closed": False}
RECORD = {"id": "r/kraft/b1", "run": "r", "kind": "kraft", "service": "kafka", "steps": [], "outcome": None}
LEFT = {
    host_state.RESTART: json.dumps(RECORD),
    host_state.RUN_LOCK: json.dumps({**LOCK, "run": "r"}),
    host_state.LOCK: "",
    f"{host_state.CONFIGS}/server.properties.before-kraft": "broker.id=1\n",
}
# A node of its own role in each case, and what else the module needs to reach its first change
ENTRIES = {
    "run locked": ("broker", {"state": "locked", "run_lock": {**LOCK, "number": 2}}),
    "run held": ("broker", {"state": "held"}),
    "run closed": ("broker", {"state": "closed"}),
    "node_restart begin": ("broker", {"action": "begin", "kind": "kraft", "changes": {"a": "b"}}),
    "node_restart finish": ("broker", {"action": "finish"}),
    "node_restart watch": ("broker", {"action": "watch"}),
    "controller_wipe": ("controller", {}),
    "service_stop": ("broker", {"state": "masked"}),
    "service_stop without a run": ("broker", {"state": "masked", "run": None}),
    "kafka_home": ("broker", {"state": "switched"}),
    "kafka_home without a run": ("broker", {"state": "switched", "run": None}),
}
# Beside any run: hosts that run nothing of Kafka's yet, and the file of a pause
WITHOUT_A_RUN = {"pause", "prepare_controllers", "resume"}
GATES = {"node_restart": "before_kraft", "controller_wipe": "brokers_plain"}
READ_ONLY = {
    "plan",
    "preflight",
    "rehearse",
    "restart_plan",
    "status",
    "support_bundle",
    "upgrade_audit",
    "verify",
    "watch_soak",
    "zookeeper_clients",
}


def options(tmp_path, entry):
    """Return what a module is given for a change of a healthy node, which holds the run's lock."""
    role, own = ENTRIES[entry]
    module = entry.partition(" ")[0]
    home = tmp_path / "home"
    text = "node.id=1\nprocess.roles=controller\n" if role == "controller" else "broker.id=1\nzookeeper.connect=z:1\n"
    (home / "data").mkdir(parents=True)
    (home / "data" / "meta.properties").write_text(f"version=1\ncluster.id={CLUSTER}\nnode.id=1\n")
    (home / "node.properties").write_text(f"{text}log.dirs={home}/data\n")
    now = clock.read()
    given = {
        **{"run": RUN, "cluster_id": CLUSTER, "state_dir": str(tmp_path / "state"), "role": role, "node_id": 1},
        **{"config_file": str(home / "node.properties"), "log_dir": str(home / "data"), "service": "kafka-none"},
        **{"host": "h", "restart_id": "run/kraft/h", "log_file": str(home / "log"), "run_key": "ab" * 32},
        **{"home": str(home / "kafka"), "to": str(home / "kafka-2")},
        "gate_token": {
            **{"gate": GATES.get(module), "cluster_id": CLUSTER, "run": RUN, "hosts": {"h": f"{role}-1"}},
            "clocks": {now["boot_id"]: now["uptime_s"]},
        },
        **own,
    }
    of_a_node = ("run", "cluster_id", "state_dir", "node_id", "config_file")
    taken = {
        "run": ("role", "log_dir", "state", "run_lock"),
        "service_stop": ("role", "log_dir", "service", "state"),
        "kafka_home": ("role", "service", "home", "to", "state"),
        "controller_wipe": ("log_dir", "service", "host", "gate_token"),
        "node_restart": (
            *(
                "role",
                "service",
                "host",
                "gate_token",
                "restart_id",
                "log_file",
                "run_key",
                "action",
                "kind",
                "changes",
            ),
        ),
    }[module]
    kept = host_state.make_node_directory(given)
    host_state.write_json(f"{kept}/{host_state.RUN_LOCK}", LOCK)
    (home / "kafka-2").mkdir()
    (home / "kafka").symlink_to(home / "kafka-1")
    return module, {name: given[name] for name in (*of_a_node, *taken) if given.get(name) is not None}


def leave(tmp_path, name):
    path = tmp_path / "state" / CLUSTER / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(LEFT[name])


def contents(path):
    """Return the files and links below a directory."""
    found = sorted(path.rglob("*"))
    return {str(file): file.is_symlink() or (file.is_file() and file.read_bytes()) for file in found}


@pytest.mark.parametrize(
    ("entry", "name"),
    [(entry, host_state.RESTART) for entry in ENTRIES] + [("run locked", name) for name in LEFT],
)
def test_a_module_refuses_and_changes_nothing(tmp_path, entry, name):
    module, given = options(tmp_path, entry)
    leave(tmp_path, name)
    before = contents(tmp_path)
    result = modules.run(module, **given)
    assert result.get("failed") and "(QS-RUN-015)" in result["msg"], result
    assert name.partition("/")[0] in result["msg"] and "mkdir -m 0700" in result["msg"]
    assert contents(tmp_path) == before


def test_every_module_that_needs_a_nodes_state_is_among_them():
    """Modules that change the cluster, and not a node, share one rule: AdminModule. zk_decommission has it too, for a
    ZooKeeper server beside a node."""
    needs = ("node_directory", "run_lock_file.", "restart_worker.")
    found = {
        path.stem
        for path in (modules.ROOT / "plugins" / "modules").glob("*.py")
        if any(name in path.read_text() for name in needs)
    }
    assert found == {"zk_decommission", *(entry.partition(" ")[0] for entry in ENTRIES)}


@pytest.mark.parametrize("run", [None, RUN])
def test_a_module_that_changes_the_cluster_refuses_on_its_probe_host(tmp_path, run):
    module = object.__new__(admin_module.AdminModule)
    module.params, module.check_mode = {"state_dir": str(tmp_path / "state"), "run": run}, False
    leave(tmp_path, host_state.RESTART)
    with pytest.raises(host_state.OldLayoutError, match=r"QS-RUN-015"):
        module._require_no_other_run(CLUSTER)


def facts_with(name, **more):
    """Return recorded facts in which b1 has files of an earlier version."""
    facts = recorded.facts(name)
    cluster_id = state(name)["cluster_id"]
    found = {
        **{"path": f"/var/lib/quorumshift/{cluster_id}", "names": ["restart.json"], "service": "", "config_file": ""},
        **{"is_of_another": False, "is_held": False, **more},
    }
    facts["nodes"]["b1"]["old_layout"] = {cluster_id: found}
    return facts


DIRECTIONS = ("forward", "back", "restore", "restart", "reassign", "features", "quorum")


@pytest.mark.parametrize("name", ["zk", "hybrid", "dual_write", "finalized"])
@pytest.mark.parametrize("direction", DIRECTIONS)
@pytest.mark.parametrize("check_mode", [False, True])
def test_no_run_begins(fresh, name, direction, check_mode):
    fresh.check_mode = check_mode
    # without these, a run in their direction only shows
    fresh.variables.update(features_apply=True, quorum_apply=True, reassign_apply=True)
    given = {**state(name), "facts": facts_with(name)}
    result = fresh.run("run", {"state": "begun", "direction": direction}, given)
    assert result["failed"] and "b1: /var/lib/quorumshift/" in result["msg"], result["msg"]
    assert "mkdir -m 0700 broker-1 && mv restart.json broker-1/" in result["msg"]
    assert result["msg"].endswith("(QS-RUN-015)")


def test_these_are_all_directions():
    source = (modules.ROOT / "plugins" / "modules" / "run.py").read_text()
    documented = yaml.safe_load(source.partition('r"""')[2].partition('"""')[0])
    assert documented["options"]["direction"]["choices"] == ["", *DIRECTIONS]


def test_every_playbook_that_changes_something_begins_in_a_direction():
    begun = {}
    for path in (modules.ROOT / "playbooks").glob("*.yml"):
        plays = yaml.safe_load(path.read_text())
        given = [play.get("vars") or {} for play in plays if "gather.yml" in str(play) or "begin.yml" in str(play)]
        begun[path.stem] = {own["quorumshift_direction"] for own in given if own.get("quorumshift_direction")}
    assert {name for name, directions in begun.items() if not directions} == READ_ONLY | WITHOUT_A_RUN
    assert set().union(*begun.values()) == set(DIRECTIONS)


def test_files_of_another_cluster_stop_no_run():
    facts = facts_with("hybrid")
    facts["nodes"]["b1"]["old_layout"] = {"another": next(iter(facts["nodes"]["b1"]["old_layout"].values()))}
    me = {"run": "r", "direction": "forward", "alive": None}
    assert run_lock.detect(facts["nodes"], state("hybrid")["cluster_id"], me, "").refused is None
    assert list(inventory.old_layout(facts)) == []


def test_the_preflight_and_the_status_name_them(fresh):
    facts = facts_with("zk", is_held=True)
    (finding,) = inventory.old_layout(facts)
    assert finding.seen.startswith("b1: /var/lib/quorumshift/") and "Wait until it has ended" in finding.do
    reached = next(check for check in preflight.CHECKS if check.name == "reached")
    assert reached.severity == "blocks"
    fresh.run("status", {}, {**state("zk"), "facts": facts})
    shown = "\n".join(fresh.printed)
    assert "! b1: /var/lib/quorumshift/" in shown and "Wait until it has ended" in shown


@pytest.mark.parametrize("role", ["broker", "controller"])
def test_the_facts_of_each_node_have_them_and_its_own_alone(tmp_path, role):
    """Also of a controller that is not formatted yet, which does not know its cluster."""
    own = {"state_dir": str(tmp_path), "cluster_id": CLUSTER, "node_id": 1}
    for other in ("broker", "controller"):
        directory = host_state.make_node_directory({**own, "role": other})
        host_state.write_json(f"{directory}/{host_state.RUN_LOCK}", {"run": f"of {other}"})
    missing = str(tmp_path / "node.properties")

    def collect():
        return node.collect(role, missing, "kafka-none", "k", str(tmp_path), "/nowhere", node_id=1)

    facts = collect()
    assert facts["run_locks"] == {CLUSTER: {"run": f"of {role}"}} and facts["old_layout"] == {}
    (tmp_path / CLUSTER / host_state.RESTART).write_text(json.dumps({**RECORD, "config_file": missing}))
    (tmp_path / "zk_cut").mkdir()
    (tmp_path / "zk_cut" / "lock").touch()
    found = collect()["old_layout"]
    assert list(found) == [CLUSTER] and found[CLUSTER]["names"] == [host_state.RESTART]
    assert found[CLUSTER]["is_of_another"] is False
