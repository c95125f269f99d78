# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The logs of all voters of a real quorum: the role copies them, and the job compares them with the leader's."""

from __future__ import annotations

import contextlib
import json
import os
import pathlib
import subprocess
import threading
from types import SimpleNamespace

import pytest
from ansible_collections.quorumshift.kafka.plugins.module_utils.formats.metadata import metadata_log
from ansible_collections.quorumshift.kafka.plugins.module_utils.settings.addresses import HostPort
from ansible_collections.quorumshift.kafka.plugins.module_utils.wire import kafka_wire
from confluent_kafka import admin as kafka

from tests.integration import seeded, servers
from tests.spark import parity
from tests.spark.parity import Run

pytestmark = pytest.mark.real
ROOT = pathlib.Path(__file__).parents[2]
# Small checkpoints, so that each voter has others
SMALL_FILES = {
    "metadata.log.max.record.bytes.between.snapshots": "20000",
    "metadata.max.idle.interval.ms": "50",
    "controller.quorum.fetch.timeout.ms": "20000",
    "controller.quorum.request.timeout.ms": "10000",
}


@pytest.fixture(scope="module")
def quorum():
    with contextlib.ExitStack() as stack:
        home = stack.enter_context(servers.workdir("voters"))
        addresses = [HostPort("127.0.0.1", servers.free_port()) for dummy in range(3)]
        controllers = stack.enter_context(servers.kraft_controllers(home, addresses, SMALL_FILES))
        voters = ",".join(f"{101 + index}@{address}" for index, address in enumerate(addresses))
        broker = stack.enter_context(servers.kraft_broker(home, 1, voters))
        yield SimpleNamespace(home=home, controllers=dict(zip((101, 102, 103), controllers)), broker=broker)


@contextlib.contextmanager
def changing(broker):
    """Create and delete topics until the block ends; yield the numbers of the rounds that are complete."""
    client = kafka.AdminClient({"bootstrap.servers": str(broker.address)})
    stop, failed, rounds = threading.Event(), [], []

    def change():
        number = 0
        try:
            while not stop.is_set():
                names = [f"moving-{number}-{index}" for index in range(8)]
                servers.create_topics(client, [kafka.NewTopic(name, 3, 1) for name in names])
                for future in client.delete_topics(names[::2]).values():
                    future.result(60)
                rounds.append(number)
                number += 1
        except Exception as error:
            failed.append(error)

    thread = threading.Thread(target=change)
    thread.start()
    try:
        yield rounds
    finally:
        stop.set()
        thread.join()
    assert not failed, failed


def described(quorum):
    """Return DescribeQuorum as migration_state returns it."""
    for controller in quorum.controllers.values():
        with contextlib.suppress(kafka_wire.WireError):
            found = kafka_wire.describe_quorum(controller.address)
            return {
                "leader_id": found.leader_id,
                "high_watermark": found.high_watermark,
                "voters": [{"id": node_id} for node_id in quorum.controllers],
            }
    raise AssertionError("no controller leads")


def log_of(controller):
    return str(controller.home / "data" / "__cluster_metadata-0")


def copied_by_the_role(quorum, unreachable=()):
    """Run the role's tasks; return DescribeQuorum and their results."""
    seen = described(quorum)
    nodes = {f"c{controller}": {"role": "controller", "id": controller} for controller in quorum.controllers}
    here = quorum.home / f"here-{seen['high_watermark']}"
    here.mkdir()
    hosts = {}
    for host, node in nodes.items():
        hosts[host] = {
            "ansible_connection": "local",
            "quorumshift_controller_config_file": str(quorum.controllers[node["id"]].home / "server.properties"),
            "quorumshift_state_dir": str(quorum.home / f"state-{host}"),
        }
        if node["id"] in unreachable:
            hosts[host].update(ansible_connection="ssh", ansible_host="127.0.0.1", ansible_port=servers.free_port())
    (here / "inventory.json").write_text(json.dumps({"all": {"hosts": hosts}}))
    role = "quorumshift.kafka.verify"
    result = "{{ {'leader': verify_snapshot, 'others': _verify_other_logs, 'left': _verify_left} | to_json }}"
    play = {
        "hosts": "localhost",
        "gather_facts": False,
        "vars": {
            "verify_seen": {"quorum": seen, "nodes": nodes},
            "verify_gate": {"views": ["metadata_log"], "baseline": {"offset": 0}},
            "_verify_stands_still_s": 2,
        },
        "tasks": [
            {"begun": {"facts": {"quorumshift_session": {"cluster_id": servers.CLUSTER_ID}}}},
            {"ansible.builtin.include_role": {"name": role, "tasks_from": "metadata_logs", "public": True}},
            {"ansible.builtin.copy": {"dest": str(here / "result.json"), "content": result}},
        ],
    }
    play["vars"].update(
        quorumshift_scratch_dirs={"results": [{"path": str(here)}]},
        quorumshift_spark_timeout_s=120,
        quorumshift_state_dir="/nowhere",
        quorumshift_controller_config_file="/nowhere",
    )
    parity.write_begun(here)
    (here / "play.json").write_text(json.dumps([play]))
    env = {
        **os.environ,
        "ANSIBLE_COLLECTIONS_PATH": str(ROOT / ".build"),
        "ANSIBLE_PYTHON_INTERPRETER": str(ROOT / ".venv/bin/python"),
        "ANSIBLE_ASYNC_DIR": str(here / "async"),
        "ANSIBLE_SSH_RETRIES": "0",
    }
    command = [str(ROOT / ".venv/bin/ansible-playbook"), "-i", str(here / "inventory.json"), str(here / "play.json")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=240, env=env, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert not list((here / "async").glob("*")), "Ansible keeps jobs"
    assert not list(quorum.home.glob("state-*/*/metadata_snapshot/*")), "archives are left on controllers"
    results = json.loads((here / "result.json").read_text())
    left = [host for host, node in nodes.items() if node["id"] in unreachable]
    assert [entry["host"] for entry in results["left"]] == left, "no host confirmed these removals"
    assert all(entry["path"].endswith(f"/{servers.CLUSTER_ID}/metadata_snapshot") for entry in results["left"])
    return seen, results


def compared(quorum, seen, results):
    """Run the job of the last gate on what the role copied."""

    def view(result):
        return {name: result[name] for name in ("archive", "sha256", "end_offset")}

    others = [
        {
            "node": int(host[1:]),
            **(view(snapshot) if "archive" in snapshot else {"error": f"{host}: {snapshot['msg']}"}),
        }
        for host, snapshot in results["others"].items()
    ]
    views = {
        "metadata_log": view(results["leader"]),
        "metadata_logs": others,
        "brokers": [{"id": 1, "address": str(quorum.broker.address)}],
    }
    run = Run(quorum.home, "after_finalize", views, cluster_id=servers.CLUSTER_ID).go()
    reasons = [reason for reason in run.result["reasons"] if "has no baseline" not in reason]
    logs = [comparison for comparison in run.result["comparisons"] if comparison["relation"] == "logs"]
    return run, reasons, logs


@pytest.fixture(scope="module")
def spark():
    with parity.local_spark() as session:
        yield session


def test_the_logs_of_all_voters_agree_while_metadata_changes(quorum, spark):
    with changing(quorum.broker) as rounds:
        servers.wait_for(
            lambda: (
                len(rounds) > 2
                and all(
                    metadata_log.list_files(log_of(controller)).checkpoints
                    for controller in quorum.controllers.values()
                )
            ),
            120,
            "topics, and a checkpoint of each voter",
        )
        seen, results = copied_by_the_role(quorum)
    assert len(results["others"]) == 2
    assert all(log["end_offset"] == seen["high_watermark"] for log in results["others"].values())
    run, reasons, logs = compared(quorum, seen, results)
    of_logs = [difference for difference in run.result["differences"] if difference["relation"] == "logs"]
    assert len(logs) == 2 and not of_logs, run.story()
    assert all(log["counts"]["partition"]["match"] > 10 for log in logs), logs
    assert not any("log of controller" in reason for reason in reasons), reasons


def test_configs_of_client_metrics_are_read_from_brokers(quorum, spark):
    """Kafka 3.9 has no configs of groups yet."""
    address = str(quorum.broker.address)
    metrics = ["--alter", "--entity-type", "client-metrics", "--entity-name", "all", "--add-config", "interval.ms=1000"]
    seeded.tools([["kafka.admin.ConfigCommand", "--bootstrap-server", address, *metrics]])
    mark = described(quorum)["high_watermark"]
    servers.wait_for(lambda: described(quorum)["high_watermark"] > mark + 10, 60, "the records")
    seen, results = copied_by_the_role(quorum)
    run, reasons, _logs = compared(quorum, seen, results)
    assert not reasons and not run.result["differences"], run.story()
    served = next(comparison for comparison in run.result["comparisons"] if comparison["right"] == "broker:1")
    assert served["counts"]["config"]["match"] == served["counts"]["config"]["read"] == 1


def test_a_voter_that_lags_or_cannot_be_reached_is_named(quorum, spark):
    leader = described(quorum)["leader_id"]
    lagging, lost = (controller for controller in quorum.controllers if controller != leader)
    quorum.controllers[lagging].kill()
    mark = described(quorum)["high_watermark"]
    servers.wait_for(lambda: described(quorum)["high_watermark"] > mark + 20, 60, "records without the voter")
    seen, results = copied_by_the_role(quorum, unreachable=[lost])
    assert "short of" in results["others"][f"c{lagging}"]["msg"], results
    run, reasons, logs = compared(quorum, seen, results)
    assert run.verdict == "incomplete" and not logs, run.story()
    assert any(f"the log of controller {lagging} was not compared" in reason for reason in reasons), reasons
    assert any(f"the log of controller {lost} was not compared" in reason for reason in reasons), reasons
