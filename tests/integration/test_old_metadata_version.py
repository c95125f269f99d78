# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Controllers of a real quorum with a metadata.version from before they register in it: each restart ends once the
controller takes part in the quorum, and not before."""

from __future__ import annotations

import contextlib
import pathlib

import pytest
from ansible_collections.quorumshift.kafka.plugins.module_utils.host import service
from ansible_collections.quorumshift.kafka.plugins.module_utils.probes.node import node, own_node
from ansible_collections.quorumshift.kafka.plugins.module_utils.settings import properties
from ansible_collections.quorumshift.kafka.plugins.module_utils.settings.addresses import HostPort
from ansible_collections.quorumshift.kafka.plugins.module_utils.wire import kafka_wire
from ansible_collections.quorumshift.kafka.plugins.module_utils.worker import restart_record, restart_steps

from tests.integration import admin_bed, servers

pytestmark = pytest.mark.real

OLD = "3.6-IV2"
SERVICE = {"manager": "systemd", "name": "kafka", "active": True, "active_state": "active"}


class Service:
    """The service of one controller: systemd's commands, of a real process. Its start returns at once."""

    def __init__(self, server):
        self.server, self.starts = server, 0

    def begin(self, action, _name):
        if action == "stop":
            self.server.stop()
            return
        self.starts += 1
        self.server.start(lambda: True)

    def state(self, _name):
        alive = pathlib.Path("/proc", str(self.server.pid), "exe").exists()
        shown = {"active": alive, "active_state": "active" if alive else "failed", "sub_state": "", "result": "signal"}
        return {"manager": "systemd", "invocation": str(self.starts), "started_at": None, **shown}


@contextlib.contextmanager
def quorum():
    """Yield (controllers, broker) of a cluster with the old metadata.version."""
    addresses = [HostPort("127.0.0.1", servers.free_port()) for _number in range(3)]
    voters = ",".join(f"{101 + place}@{address}" for place, address in enumerate(addresses))
    with servers.workdir("old_metadata") as home, contextlib.ExitStack() as stack:
        controllers = stack.enter_context(servers.kraft_controllers(home, addresses, release=OLD))
        broker = stack.enter_context(servers.kraft_broker(home, 1, voters))
        admin_bed.ready([broker])
        yield controllers, broker


def facts(server, role, tmp_path):
    """Return what node_facts reads of a server; systemd does not run it."""
    found = node.collect(role, str(server.home / "server.properties"), "none", "key", str(tmp_path), "/nowhere")
    found["file"]["properties"]["advertised.listeners"] = f"PLAINTEXT://{server.address}"
    return {**found, "service": SERVICE, "version": "3.9.2", "reached": True, "address": str(server.address)}


def admitted(controllers, broker, tmp_path, **more):
    """Return the answer of the admission of a controller, or of the plan of all."""
    nodes = {f"c{controller.node_id}": facts(controller, "controller", tmp_path) for controller in controllers}
    nodes["b1"] = facts(broker, "broker", tmp_path)
    given = {"kind": "restart_controller", "run": "r", "bootstrap_servers": [str(broker.address)], "nodes": nodes}
    return admin_bed.run("rolling_restart", **given, timeout=15, stable_s=0, timeout_s=60, **more)


def restarted(server, monkeypatch, timeout_s=60.0):
    """Restart a controller as the restart worker does; return its record."""
    config = str(server.home / "server.properties")
    spec = {"id": "r/c", "kind": "restart_controller", "mode": "controller_final", "run": "r", "service": "kafka"}
    spec.update(config_file=config, node_id=server.node_id, log_file=str(server.log))
    spec.update(start_timeout_s=timeout_s, stop_timeout_s=60)
    record = restart_record.Record(str(server.home), spec, "", "")
    values = properties.parse(pathlib.Path(config).read_bytes())
    before = own_node.read_registration(values, server.node_id, spec["mode"])
    manager = Service(server)
    with monkeypatch.context() as patched:
        patched.setattr(service, "begin", manager.begin)
        patched.setattr(service, "read_state", manager.state)
        restart_steps.stop(spec, record)
        restart_steps.start(spec, record, values, before)
    return record.values


def leader(controllers):
    found = kafka_wire.describe_quorum_any([controller.address for controller in controllers], None, timeout=5)
    return found.quorum.leader_id if found.quorum else None


def in_order(controllers):
    """Return the controllers as they restart, the quorum's leader last."""
    return sorted(controllers, key=lambda controller: controller.node_id == leader(controllers))


def test_each_controller_of_an_old_metadata_version_restarts_and_lets_the_next_one(monkeypatch, tmp_path):
    older = servers.libs_of("3.7.2")
    with quorum() as (controllers, broker):
        last = None
        for server in in_order(controllers):
            plan = admitted(controllers, broker, tmp_path, state="planned").get("plan")
            assert plan and plan["batches"][-1] == [f"c{leader(controllers)}"], plan
            batch = {"state": "admitted", "plan": plan, "batch": [f"c{server.node_id}"]}
            answer = admitted(controllers, broker, tmp_path, **batch)
            assert answer.get("gate_token"), answer
            log = own_node.read_own_log(server.properties)
            assert log["controllers"] == {} and not own_node.controllers_register(log), log
            if last is not None:
                server.use(older)
            record = restarted(server, monkeypatch)
            assert record["times"]["registered_at"] >= record["times"]["answered_at"]
            # Both of the proofs come true in either release
            ended = own_node.read_log_end(server.properties, "controller_final")
            servers.wait_for(lambda values=server.properties: own_node.names_features(values), 30, "the features")
            servers.wait_for(
                lambda values=server.properties, ended=ended: own_node.read_log_end(values, "controller_final") > ended,
                30,
                "the log to grow",
            )
            last = server


def test_a_controller_without_a_quorum_is_not_up_though_it_answers(monkeypatch):
    with quorum() as (controllers, _broker):
        server, *others = in_order(controllers)
        for other in others:
            other.stop()
        with pytest.raises(restart_steps.NotUp, match="the quorum to register the node"):
            restarted(server, monkeypatch, timeout_s=90)  # a busy machine starts a JVM in more than 15 s
        assert own_node.read_running_mode(server.properties, "", "") == "controller_final"
