# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The playbook `reassign` against real servers: killed, run twice at once, cancelled, to its end, and back."""

from __future__ import annotations

import contextlib
import json
import os
import pathlib
import signal
import subprocess
import sys

import pytest
from confluent_kafka.admin import AdminClient

from tests.integration import admin_bed, servers
from tests.integration.test_partition_reassignment import Bed, fill, set_at
from tests.playbook import PROGRAM, start_play

pytestmark = pytest.mark.real

ROOT = pathlib.Path(__file__).resolve().parents[2]
REPLICAS = {0: [1, 2], 1: [2, 3], 2: [3, 1]}
# Kafka lets one fetch of a partition, 1 MB, through in each window of about 11 s, however low the rate
MEGABYTES = 60
SLOW, FAST = {"reassign_throttle_bytes_s": 1_000}, {"reassign_throttle_bytes_s": 100_000_000}


class Runs:
    """Runs a playbook over one cluster, whose hosts are all this one, each with a state directory of its own."""

    def __init__(self, home, controller, brokers, playbook="reassign"):
        self.playbook = playbook
        self.home = home
        self.artifacts = home / "artifacts" / servers.CLUSTER_ID
        self.plan = self.artifacts / "reassign.json"
        self.hosts = {f"b{broker.node_id}": self.broker(broker) for broker in brokers}
        self.inventory = home / "inventory.json"
        address = controller.address
        self.groups = {
            "all": {
                "vars": {
                    "ansible_connection": "local",
                    "ansible_python_interpreter": sys.executable,
                    "quorumshift_bootstrap_servers": [str(broker.address) for broker in brokers],
                    "quorumshift_artifacts_dir": str(home / "artifacts"),
                    "quorumshift_state_dir": str(home / "state"),
                },
                "children": {
                    "kafka_broker": {"hosts": self.hosts},
                    "kafka_controller": {
                        "hosts": {
                            "c1": {
                                "quorumshift_node_id": controller.node_id,
                                "quorumshift_controller_host": address.host,
                                "quorumshift_controller_port": address.port,
                                "quorumshift_controller_config_file": str(controller.home / "server.properties"),
                                "quorumshift_controller_log_file": str(controller.log),
                                "quorumshift_controller_log_dir": str(controller.home / "data"),
                                "quorumshift_controller_service": "no-controller-service",
                                "quorumshift_state_dir": str(home / "nodes"),
                            }
                        }
                    },
                },
            }
        }
        self.write()

    def write(self):
        self.inventory.write_text(json.dumps(self.groups))

    def broker(self, server):
        return {
            "quorumshift_broker_config_file": str(server.home / "server.properties"),
            "quorumshift_broker_log_file": str(server.log),
            "quorumshift_broker_service": "no-broker-service",
            "quorumshift_state_dir": str(self.home / "nodes"),
        }

    def begin(self, *options, **more):
        """Start a run; return its process."""
        return start_play([*self.command(more), *options])

    def command(self, more):
        """Return the command that plays with these variables, without further options."""
        given = ["-e", json.dumps(more)]
        return [str(PROGRAM), "-i", str(self.inventory), *given, f"playbooks/{self.playbook}.yml"]

    def run(self, *options, **more):
        """Run to the end; return (exit code, output)."""
        process = self.begin(*options, **more)
        text = process.communicate(timeout=1200)[0]
        print(f"--- {more}: {process.returncode}\n{text}")
        return process.returncode, " ".join(text.split())

    def workers(self):
        """Return the processes of runs of this cluster."""
        found = subprocess.run(["pgrep", "-f", str(self.inventory.parent)], capture_output=True, text=True, check=False)
        own = subprocess.run(["pgrep", "-f", "kafka.Kafka"], capture_output=True, text=True, check=False)
        return set(found.stdout.split()) - set(own.stdout.split())

    def kill(self, process):
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate()

    def locks(self):
        """Return {host: run lock}. All nodes are on this machine, and share a state directory."""
        hosts = self.groups["all"]["children"]["kafka_controller"]["hosts"]
        keys = {host: f"broker-{host[1:]}" for host in self.hosts}
        keys.update({host: f"controller-{own['quorumshift_node_id']}" for host, own in hosts.items()})
        directory = self.home / "nodes" / servers.CLUSTER_ID
        files = {host: directory / key / "run_lock.json" for host, key in keys.items()}
        return {host: json.loads(path.read_text()) for host, path in files.items() if path.exists()}

    def newest(self):
        """Return the directory of the newest run."""
        return max((path for path in self.artifacts.iterdir() if path.is_dir()), key=lambda path: path.name)


def on(bed, broker):
    """Return how many partitions have a replica on a broker."""
    return sum(broker in partition["replicas"] for partition in bed.admin().partitions.values())


def events(run):
    return [json.loads(line) for line in (run / "journal.jsonl").read_text().splitlines()]


@contextlib.contextmanager
def cluster(name):
    """Yield (servers of three brokers, modules, runs) of a cluster with a topic on all of them."""
    with admin_bed.kraft(name, 3) as (home, controller, brokers):
        fill(brokers[0], "orders", REPLICAS, MEGABYTES)
        yield brokers, Bed(home, brokers[:2]), Runs(home, controller, brokers)


def test_a_drain_from_its_plan_to_its_undo():
    with cluster("reassign-playbook") as (brokers, bed, runs):
        client = AdminClient({"bootstrap.servers": str(brokers[0].address)})
        fill(brokers[0], "gone", {0: [3, 2]}, MEGABYTES)
        before = {partition: found["replicas"] for partition, found in bed.admin().partitions.items()}

        # without a plan it shows what is in flight; the plan alone locks and moves nothing
        code, text = runs.run()
        assert code == 0 and "none in flight throttles: none" in text and runs.locks() == {}
        code, text = runs.run(reassign_drain=3)
        assert code == 0 and "3 partitions. To move them, add -e reassign_apply=true. No throttle is given" in text
        assert "Plan: 3 partitions change, 3 replicas are copied, " in text and "broker 1 gets" in text
        assert bed.info()["reassignments"] == [] and not runs.plan.exists() and runs.locks() == {}

        # killed while it moves: throttle, plan and undo stay, and the plan is not replaced by another one
        killed = runs.begin(reassign_drain=3, reassign_apply=True, **SLOW)
        servers.wait_for(lambda: bed.admin().in_flight(), 600, "partitions in flight")
        runs.kill(killed)
        first_undo = runs.newest() / "reassign-undo.json"
        undo = first_undo.read_text()
        assert runs.plan.exists() and bed.info()["recorded_throttles"]
        assert bed.info()["throttles_set_by"]["run"] == runs.newest().name
        assert {lock["direction"] for lock in runs.locks().values()} == {"reassign"}
        code, text = runs.run(reassign_drain=2, reassign_apply=True)
        assert code and "not done: reassign_drain=3. Run that one" in text
        code, text = runs.run()
        assert code == 0 and "3 partitions in flight" in text and "reassign_drain=3. Run it again" in text
        assert f"set by run {runs.locks()['b1']['run']} of" in text and "bytes/s at broker" in text

        # two runs at once: the second one changes nothing, nor does a module alone on a host of the cluster
        dead = {lock["run"] for lock in runs.locks().values()}
        first = runs.begin(reassign_drain=3, reassign_apply=True)
        servers.wait_for(lambda: not dead & {lock["run"] for lock in runs.locks().values()}, 600, "the lock of the run")
        code, text = runs.run(reassign_cancel=True)
        assert code and "That run is at work" in text and bed.admin().in_flight()
        alone = Bed(runs.home, brokers)
        alone.options["state_dir"] = str(runs.home / "nodes")
        assert "is locked by run" in alone.move(state="cancelled")["msg"] and bed.admin().in_flight()
        runs.kill(first)

        # a topic that is deleted: the rest goes on to its end, and nothing is left
        client.delete_topics(["gone"])["gone"].result(60)
        code, text = runs.run(reassign_drain=3, reassign_apply=True, **FAST)
        assert code == 0 and on(bed, 3) == 0 and "no longer exist: gone-0" in text
        assert set_at(bed) == [] and not bed.record.exists() and not runs.plan.exists()
        assert {lock["closed"] for lock in runs.locks().values()} == {True} and len(runs.locks()) == 4
        names = [event["name"] for event in events(runs.newest())]
        assert {"reassigning", "reassigned", "ended"} <= set(names) and (runs.newest() / "index.html").exists()
        assert "changed nothing" not in (runs.newest() / "index.html").read_text()
        assert first_undo.read_text() == undo, "no run overwrites the undo of an earlier one"
        # workers of Ansible outlive the processes that were killed: they wait for the end, and begin nothing
        servers.wait_for(lambda: not runs.workers(), 600, "the end of the killed runs' workers")
        assert bed.admin().in_flight() == {} and on(bed, 3) == 0 and set_at(bed) == []

        # what undoes it leads back
        assert f"-e reassign_undo={runs.newest().name}" in text
        code, text = runs.run(reassign_undo="nothing", reassign_apply=True)
        assert code and "has no such run that moved partitions. Runs that did: " in text and on(bed, 3) == 0
        code, text = runs.run(reassign_undo="last", reassign_apply=True)
        after = {partition: found["replicas"] for partition, found in bed.admin().partitions.items()}
        assert code == 0 and after == {
            partition: found for partition, found in before.items() if partition[0] != "gone"
        }
        assert json.loads((runs.newest() / "reassign-undo.json").read_text())["partitions"], "that has one too"


def test_a_cancellation_and_a_dead_host():
    with cluster("reassign-cancel") as (brokers, bed, runs):
        code, text = runs.run(reassign_drain=33, reassign_apply=True)
        assert code and "broker 33 is not alive and has no replicas" in text

        # a cancellation ends the move of an interrupted plan, and forgets the plan
        killed = runs.begin(reassign_drain=3, reassign_apply=True, **SLOW)
        servers.wait_for(lambda: bed.admin().in_flight(), 600, "partitions in flight")
        runs.kill(killed)
        code, text = runs.run(reassign_cancel=True)
        assert code == 0 and bed.admin().in_flight() == {} and set_at(bed) == []
        again = runs.newest() / "reassign-cancelled.json"
        assert "2 reassignments were cancelled" in text and len(json.loads(again.read_text())["partitions"]) == 2
        assert not bed.record.exists() and not runs.plan.exists() and on(bed, 3) == 2
        servers.wait_for(lambda: not runs.workers(), 600, "the end of the killed run's worker")
        assert bed.admin().in_flight() == {} and on(bed, 3) == 2, "it has begun nothing again"
        mistyped = runs.home / "mistyped.json"
        mistyped.write_text(json.dumps({"partitions": [{"topic": "ordres", "partition": 0, "replicas": [1]}]}))
        code, text = runs.run(reassign_src=str(mistyped), reassign_apply=True)
        assert code and "ordres-0 does not exist" in text and not runs.plan.exists()

        # a broker on a dead host: the run says how to leave the host out, and drains it with a throttle
        brokers[2].kill()
        servers.wait_for(lambda: 3 not in bed.admin().brokers, 60, "broker 3 to be dead")
        runs.hosts["b3"].update(ansible_connection="ssh", ansible_host="127.0.0.9", ansible_port=1)
        runs.write()
        code, text = runs.run(reassign_drain=3, reassign_apply=True, **FAST)
        assert code and "-e quorumshift_exclude_hosts=" in text and on(bed, 3)
        code, text = runs.run(reassign_drain=3, reassign_apply=True, quorumshift_exclude_hosts=["b3"], **FAST)
        assert code == 0 and on(bed, 3) == 0 and set_at(bed) == []
