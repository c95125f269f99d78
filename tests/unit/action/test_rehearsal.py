# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""rehearsal: which hosts are refused, and that the inventory of its runs has no host and no secret of the cluster."""

from __future__ import annotations

import json
import os
from types import SimpleNamespace

import pytest
import yaml
from ansible_collections.quorumshift.kafka.plugins.module_utils.core.run import run_outcome
from ansible_collections.quorumshift.kafka.plugins.plugin_utils import rehearsal_runs
from ansible_collections.quorumshift.kafka.plugins.plugin_utils.run_artifacts import RunArtifacts

from tests.unit.action.harness import GROUPS

REHEARSAL = ["r1", "r2", "r3"]
ID = "rehearsal-AAAAAAAAAAAA"
READ = {
    "source": {"endpoints": ["b1.example.com"], "registered": [1, 2, 5], "cluster_id": "real"},
    "plan": {"brokers": [1, 2, 5], "controllers": [900, 901, 902], "replicas": 10, "rehearsal_id": ID},
    "settings": {"num.io.threads": "8"},
}
PASSWORD = "hunter2-of-the-hosts"


@pytest.fixture
def bed(fresh):
    """A run with the three hosts of a rehearsal beside the cluster's."""
    fresh.groups = {**GROUPS, "kafka_rehearsal": list(REHEARSAL)}
    for number, host in enumerate(REHEARSAL, 1):
        fresh.hostvars[host] = {"ansible_host": f"192.0.2.{number}", "ansible_become_password": PASSWORD}
    for host in ("b1", "b2", "c1"):
        fresh.hostvars[host] = {"ansible_host": f"{host}.example.com", "ansible_password": PASSWORD}
    fresh.variables.update(
        rehearse_backup="",
        rehearse_dir="/var/lib/quorumshift-rehearsal/",
        rehearse_heap="1g",
        rehearse_broker_config={},
        rehearse_zookeeper_port=22181,
        rehearse_peer_port=22888,
        rehearse_election_port=23888,
        rehearse_broker_port=29092,
        rehearse_controller_port=29093,
        rehearse_finalize=True,
        quorumshift_kafka_user="kafka",
        quorumshift_kafka_home="/opt/kafka",
        quorumshift_zookeeper_connect="zk1.example.com:2181/kafka",
    )
    return fresh


def planned(bed):
    return bed.run("rehearsal", {"state": "planned", "source": READ}, variables={"groups": bed.groups})


def test_the_plan_of_three_other_hosts(bed):
    plan = planned(bed)
    assert not plan.get("failed"), plan
    assert plan["brokers"] == {"r1": 1, "r2": 2, "r3": 5}
    assert plan["servers"] == "192.0.2.1:22181,192.0.2.2:22181,192.0.2.3:22181"
    own = plan["hosts"]["r2"]
    assert own["address"] == "192.0.2.2" and own["place"] == 2 and own["directory"] == "/var/lib/quorumshift-rehearsal"
    assert {"b1.example.com", "b2.example.com", "c1.example.com", "zk1.example.com", "b1"} <= set(own["forbidden"])
    assert "/etc/kafka/server.properties" in own["other_paths"]


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda bed: bed.groups.update(kafka_rehearsal=["r1", "r2"]), "has 2 hosts. Name three"),
        (lambda bed: bed.groups.update(kafka_rehearsal=["r1", "r2", "b1"]), "b1 is in the groups kafka_rehearsal and"),
        (lambda bed: bed.groups.update(zookeeper=["r3"]), "r3 is in the groups kafka_rehearsal and zookeeper"),
        (lambda bed: bed.hostvars["r3"].update(ansible_host="b2.example.com"), "r3 has the address of b2"),
        (lambda bed: bed.hostvars["r3"].update(rehearse_address="c1.example.com"), "r3 has the address of c1"),
        (lambda bed: bed.hostvars["r3"].update(ansible_host="192.0.2.1"), "have one address"),
        (lambda bed: bed.variables.update(rehearse_backup="/nowhere/backup.gz"), "has no file /nowhere/backup.gz"),
    ],
)
def test_hosts_of_the_cluster_are_refused_by_the_inventory_alone(bed, change, said):
    change(bed)
    result = planned(bed)
    assert result["failed"] and said in result["msg"] and result["msg"].endswith("(QS-REHEARSE-001)"), result
    assert "Nothing was changed" in result["msg"]


def inventory(bed, **own):
    plan = planned(bed)
    bed.action._play_context = SimpleNamespace(become_pass=own.get("become"), password=None)
    return rehearsal_runs.inventory(bed.action, plan)


def test_the_inventory_of_the_runs_has_no_host_of_the_cluster(bed):
    bed.variables.update(
        quorumshift_restart_hook="/usr/local/bin/drain",
        quorumshift_client={"security_protocol": "SASL_SSL", "sasl_password": PASSWORD},
        quorumshift_finalize_token="real:0a1b2c",
        quorumshift_force_unlock="run",
        quorumshift_verify=False,
        quorumshift_spark_conf={"spark.authenticate.secret": PASSWORD},
    )
    made = inventory(bed)
    assert "example.com" not in made.text and PASSWORD not in made.text
    tree = yaml.safe_load(made.text)["all"]
    hosts = {name for group in tree["children"].values() for name in group["hosts"]} | set(tree["hosts"])
    assert all(name.startswith("rehearsal-") for name in hosts)
    addresses = {
        own["ansible_host"]
        for group in ("kafka_broker", "kafka_controller")
        for own in tree["children"][group]["hosts"].values()
    }
    assert addresses == {"192.0.2.1", "192.0.2.2", "192.0.2.3"}
    given = tree["vars"]
    assert given["quorumshift_bootstrap_servers"] == "192.0.2.1:29092,192.0.2.2:29092,192.0.2.3:29092"
    assert given["quorumshift_zookeeper_connect"].endswith("/quorumshift-rehearsal")
    assert given["quorumshift_verify"] is False
    for name in ("client", "restart_hook", "finalize_token", "force_unlock", "exclude_hosts", "waive"):
        assert f"quorumshift_{name}" not in given


def test_secrets_of_connections_are_in_the_environment_alone(bed):
    bed.variables["quorumshift_spark_conf"] = {"spark.authenticate.secret": PASSWORD}
    made = inventory(bed, become="typed-for-K")
    assert made.secrets["r1"] == {"ansible_become_password": PASSWORD}
    assert made.secrets["all"] == {"quorumshift_spark_conf": {"spark.authenticate.secret": PASSWORD}}
    own = yaml.safe_load(made.text)["all"]["children"]["kafka_broker"]["hosts"]["rehearsal-broker-1"]
    assert "lookup('ansible.builtin.env'" in own["ansible_become_password"]
    environment = rehearsal_runs._environment(made.secrets)
    assert json.loads(environment["QUORUMSHIFT_REHEARSAL_SECRETS"]) == made.secrets


def test_a_run_is_not_reported_as_one_of_the_cluster(monkeypatch):
    for name in ("AWX_JOB_ID", "ANSIBLE_LIMIT", "ANSIBLE_LOG_PATH", "ANSIBLE_INVENTORY"):
        monkeypatch.setenv(name, "real")
    monkeypatch.setenv("ANSIBLE_CALLBACKS_ENABLED", "quorumshift.kafka.webhook")
    monkeypatch.setenv("ANSIBLE_STDOUT_CALLBACK", "awx_display")
    found = rehearsal_runs._environment({})
    assert "real" not in found.values()
    assert (
        found["ANSIBLE_CALLBACKS_ENABLED"] == "ansible.builtin.minimal"
        and found["ANSIBLE_STDOUT_CALLBACK"] == "ansible.builtin.default"
    )


def test_the_secrets_of_a_rehearsal_are_in_no_result(bed):
    plan = planned(bed)
    bed.session = {}
    result = bed.run(
        "rehearsal_host",
        {"state": "present", "directory": "/d", "plan": plan},
        {"changed": True, "created": ["/d"]},
        host="localhost",
        delegate_to="r1",
    )
    passwords = bed.asked[-1]["passwords"]
    assert set(passwords) == {"password.encoder.secret", "delegation.token.secret.key"}
    assert not [value for value in passwords.values() if value in json.dumps([plan, result]) + "".join(bed.printed)]


@pytest.mark.parametrize(("phase", "failure"), [("zk", ""), (None, ""), ("dual_write", "The gate is closed.")])
def test_a_run_that_ends_elsewhere_or_fails_ends_the_rehearsal(bed, monkeypatch, phase, failure):
    plan = planned(bed)
    played = []

    def play(_action, name, *_rest):
        played.append(name)
        return {"name": name, "phase": phase, "failure": failure, "log": "1-forward.log"}

    monkeypatch.setattr(rehearsal_runs, "play", play)
    monkeypatch.setattr(rehearsal_runs, "inventory", lambda *_given: rehearsal_runs.Inventory("all:\n", {}))
    result = bed.run("rehearsal", {"state": "run", "plan": plan}, variables={"groups": bed.groups})
    assert result["failed"] and "(QS-REHEARSE-005)" in result["msg"] and played == ["forward"], result
    place = os.path.join(bed.variables["quorumshift_artifacts_dir"], ID)
    assert os.stat(place).st_mode & 0o077 == 0 and os.stat(f"{place}/inventory.yml").st_mode & 0o077 == 0


def kept_report(root, began_at, cluster_id="real"):
    place = root / ID
    place.mkdir(exist_ok=True)
    report = {
        "began_at": began_at,
        "rehearsal": {"id": ID},
        "source": {"cluster_id": cluster_id},
        "nodes": {"brokers": 1, "controllers": 1, "at_once": 1},
        "runs": [{"name": "finalize", "before_s": 5.0}],
        "estimates": [
            {"name": "finalize", "seconds": 33.0, "fixed_s": 3.0, "lines": [], "least_s": 33.0, "most_s": 33.0}
        ],
    }
    (place / "rehearsal.json").write_text(json.dumps(report))


def real_run(root, run, began, cluster_id="real", outcome="done"):
    artifacts = RunArtifacts(str(root), cluster_id, run)
    artifacts.note("event", run_outcome.BEGUN, t=began)
    artifacts.note("event", run_outcome.STEP_BEGUN, t=began + 1, step="s", hosts=["c1"])
    artifacts.note(
        "restart",
        "controller_final",
        t=began + 2,
        host="c1",
        outcome=outcome,
        node_restart=f"{run}/controller_final/c1",
    )
    artifacts.note("event", run_outcome.STEP_ENDED, t=began + 20, step="s", hosts=["c1"])
    artifacts.note("event", run_outcome.ENDED, t=began + 25, result="ok")


def test_the_clusters_own_runs_beside_the_estimates(bed, tmp_path):
    bed.session = {}
    kept_report(tmp_path, 1000)
    real_run(tmp_path, "20261130T000001-aaaa", 1100)
    real_run(tmp_path, "20261130T000000-aaaa", 900)  # before the rehearsal
    real_run(tmp_path, "20261130T000002-aaaa", 1200, cluster_id="another")
    real_run(tmp_path, "20261130T000003-aaaa", 1300, outcome="failed")
    result = bed.run("rehearsal", {"state": "compared"}, variables={"groups": bed.groups})
    (compared,) = result["compared"]
    assert compared["name"] == "finalize" and compared["took_s"] == 30.0  # 25 s of the journal, 5 s before it
    assert "  finalize: estimated 33 s, took 30 s (+10%)" in bed.printed


def test_without_a_rehearsal_there_is_nothing_to_compare(bed):
    bed.session = {}
    result = bed.run("rehearsal", {"state": "compared"}, variables={"groups": bed.groups})
    assert result["failed"] and "(QS-REHEARSE-006)" in result["msg"]
