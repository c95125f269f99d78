# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Real nodes of Kafka 2.4 to 4.1 on the same directories: what an upgrade reads, refuses and raises."""

from __future__ import annotations

import contextlib
import pathlib
import shutil
import subprocess

import pytest
from ansible_collections.quorumshift.kafka.plugins.module_utils.probes.node import installation, node, own_node
from ansible_collections.quorumshift.kafka.plugins.module_utils.settings.addresses import HostPort
from confluent_kafka.admin import AdminClient, NewTopic

from tests.integration import admin_bed, servers

pytestmark = pytest.mark.real

SERVICE = {"manager": "systemd", "name": "kafka", "active": True, "active_state": "active"}


def facts(server, role, tmp_path):
    """Return what node_facts reads of a server; systemd does not run it."""
    config = str(server.home / "server.properties")
    found = node.collect(role, config, "none", "key", str(tmp_path), "/nowhere")
    words = pathlib.Path(f"/proc/{server.pid}/cmdline").read_text(encoding="utf-8").split("\0")
    version = installation.running_version(server.pid, words)
    return {**found, "service": SERVICE, "version": version, "reached": True, "address": str(server.address)}


def homes(nodes, to):
    """Return what kafka_home reads: each link leads to the release that runs."""
    new = {"path": f"/opt/kafka-{to}", "exists": True, "version": to, "starts": True}
    link = {"path": "/opt/kafka", "is_link": True, "target": "kafka", "real": "/opt/of-the-link"}
    return {
        host: {"home": {**link, "version": node["version"]}, "to": new, "running": None, "active": True, "java": 17}
        for host, node in nodes.items()
    }


def plan(step, to, nodes, brokers, **more):
    given = {"bootstrap_servers": [str(broker.address) for broker in brokers], "nodes": nodes, "timeout": 15, **more}
    return admin_bed.run("upgrade_plan", step=step, to=to, homes=homes(nodes, to), **given)


def changed(servers_of_cluster, libs):
    """Restart each node with other jars, and wait until it is registered anew."""
    for server, mode in servers_of_cluster:
        before = own_node.read_registration(server.properties, server.node_id, mode)["incarnation_id"]
        server.stop()
        server.use(libs)
        server.start()

        def anew(server=server, mode=mode, before=before):
            found = own_node.read_registration(server.properties, server.node_id, mode)
            return found and found["incarnation_id"] != before

        servers.wait_for(anew, 120, f"{server.name} registered")

        def answers(server=server, mode=mode):
            return own_node.read_running_mode(server.properties, "", "") == mode

        servers.wait_for(answers, 60, f"{server.name} in mode {mode}")


def test_a_kraft_cluster_goes_to_kafka_4_and_back_until_metadata_version_is_raised(tmp_path):
    new = servers.libs_of("4.1.1")
    with admin_bed.kraft("upgrade", settings={"metadata.log.segment.ms": "600000"}) as (_home, controller, (broker,)):

        def nodes():
            found = {"b1": facts(broker, "broker", tmp_path), "c1": facts(controller, "controller", tmp_path)}
            broker_file = found["b1"]["file"]["properties"]
            broker_file["advertised.listeners"] = f"PLAINTEXT://{broker.address}"
            return found

        before = nodes()
        assert {host: state["version"] for host, state in before.items()} == {"b1": "3.9.2", "c1": "3.9.2"}
        up = plan("binaries", "4.1.1", before, [broker])
        assert up.get("order") == ["upgrade_controller", "upgrade_broker"] and up["ready"] == [], up
        assert "do not run Kafka 4.1.1 yet" in plan("versions", "4.1.1", before, [broker])["msg"]

        both = [(controller, "controller_final"), (broker, "kraft")]
        changed(both, new)
        assert installation.running_home(broker.pid) == installation.Home(str(new.parent), "4.1.1", True)
        assert plan("binaries", "4.1.1", nodes(), [broker])["ready"] == ["b1", "c1"]
        assert plan("binaries", "3.9.2", nodes(), [broker])["order"] == ["upgrade_broker", "upgrade_controller"]
        changed(reversed(both), servers.kafka_libs())
        changed(both, new)

        at = {"cluster_id": servers.CLUSTER_ID}
        left = plan("versions", "4.1.1", nodes(), [broker], **at)
        assert left["before"] == "3.9-IV0" and left["metadata_version"] == 27 and not left["confirmed"], left
        wrong = plan("versions", "4.1.1", nodes(), [broker], token="x:4.1", **at)
        assert wrong["failed"] and "upgrade_confirm is x:4.1" in wrong["msg"]
        assert plan("versions", "4.1.1", nodes(), [broker], token=left["needed"], **at)["confirmed"]
        assert left["features"]["group.version"] == 1 and left["features"]["metadata.version"] == 27
        raised = admin_bed.run(
            "kafka_features",
            bootstrap_servers=[str(broker.address)],
            controllers=left["controllers"],
            features=left["features"],
        )
        assert raised["changed"] and raised["finalized"]["metadata.version"] == 27, raised
        # Kafka 4 writes records that 3.9 does not know, once its features are in use
        assert raised["finalized"]["eligible.leader.replicas.version"] == 1
        admin = AdminClient({"bootstrap.servers": str(broker.address)})
        servers.create_topics(admin, [NewTopic("t", 1, 1, config={"min.insync.replicas": "1"})])
        changed(both, new)
        done = plan("versions", "4.1.1", nodes(), [broker], **at)
        assert done["needed"] == "" and done["metadata_version"] == 0, done
        assert "group.version 1 is finalized" in plan("binaries", "3.9.2", nodes(), [broker])["msg"]
        assert "metadata.version is 4.1-IV1, and Kafka 3.9.2" in plan("binaries", "3.9.2", nodes(), [broker])["msg"]


def test_a_level_that_kafka_4_no_longer_supports_is_refused_before_a_node_changes(tmp_path):
    with servers.workdir("upgrade-old-level") as home, contextlib.ExitStack() as stack:
        address = HostPort("127.0.0.1", servers.free_port())
        voters = f"3000@{address}"
        controller = stack.enter_context(servers.kraft_controller(home, 3000, address, voters, release="3.3-IV2"))
        broker = stack.enter_context(servers.kraft_broker(home, 1, voters))
        admin_bed.ready([broker])
        nodes = {"b1": facts(broker, "broker", tmp_path), "c1": facts(controller, "controller", tmp_path)}
        nodes["b1"]["file"]["properties"]["advertised.listeners"] = f"PLAINTEXT://{broker.address}"
        refused = plan("binaries", "4.1.1", nodes, [broker])
        assert refused["failed"] and "3.3-IV2" in refused["msg"] and "3.3-IV3" in refused["msg"], refused
        # What the message advises, and the same once more
        at = {"bootstrap_servers": [str(broker.address)]}
        assert admin_bed.run("kafka_features", **at, features={"metadata.version": "3.9"})["changed"]
        up = plan("binaries", "4.1.1", nodes, [broker])
        assert up.get("order") == ["upgrade_controller", "upgrade_broker"], up


@pytest.mark.parametrize("release", ["2.4.1", "2.8.2", "3.7.2"])
def test_a_broker_in_zookeeper_mode_goes_to_3_9_and_back_with_its_protocol(release, tmp_path):
    old, protocol = servers.libs_of(release), release[:3]
    with servers.workdir("upgrade-zk") as home, servers.zookeeper(home) as ensemble:
        connect = f"{ensemble.connect}/kafka"
        with servers.zk_broker(home, 1, connect, {"inter.broker.protocol.version": protocol}) as broker:

            def nodes():
                found = {"b1": facts(broker, "broker", tmp_path)}
                found["b1"]["file"]["properties"]["advertised.listeners"] = f"PLAINTEXT://{broker.address}"
                return found

            def restarted(libs):
                broker.stop()
                broker.use(libs)
                broker.start()
                admin_bed.ready([broker])

            restarted(old)
            at = {"zookeeper_connect": connect}
            assert nodes()["b1"]["version"] == release
            up = plan("binaries", "3.9.2", nodes(), [broker], **at)
            assert up.get("order") == ["upgrade_broker"] and up["protocol"] == protocol, up
            assert "has no ZooKeeper" in plan("binaries", "4.1.1", nodes(), [broker], **at)["msg"]
            restarted(servers.kafka_libs())
            left = plan("versions", "3.9.2", nodes(), [broker], **at)
            assert left["protocol"] == "3.9" and left["before"] == protocol and left["needed"].endswith(":3.9"), left
            restarted(old)
            assert nodes()["b1"]["version"] == release
            broker.configure({"inter.broker.protocol.version": "3.9"})
            restarted(servers.kafka_libs())
            assert plan("versions", "3.9.2", nodes(), [broker], **at)["needed"] == ""
            refused = plan("binaries", release, nodes(), [broker], **at)["msg"]
            assert f"inter.broker.protocol.version is 3.9 on b1, and Kafka {release} is older" in refused


def test_a_controller_that_is_gone_keeps_metadata_version_low_until_it_registers_anew(tmp_path):
    new = servers.libs_of("4.1.1")
    addresses = [HostPort("127.0.0.1", servers.free_port()) for dummy in range(2)]
    voters = [f"{101 + index}@{address}" for index, address in enumerate(addresses)]
    # with the default of 2 s the leader changes on a busy machine
    patient = {"controller.quorum.fetch.timeout.ms": "20000", "controller.quorum.request.timeout.ms": "10000"}
    with servers.workdir("upgrade-gone") as home, servers.kraft_controllers(home, addresses, patient) as both:
        kept, gone = both
        with servers.kraft_broker(home, 1, ",".join(voters)) as broker:
            admin_bed.ready([broker])

            def nodes():
                found = {"b1": facts(broker, "broker", tmp_path), "c1": facts(kept, "controller", tmp_path)}
                found["b1"]["file"]["properties"]["advertised.listeners"] = f"PLAINTEXT://{broker.address}"
                return found

            def registered():
                return (nodes()["c1"]["metadata_log"] or {}).get("controllers", {}).get("102")

            old = servers.wait_for(registered, 60, "controller 102 registered")
            (capped,) = plan("binaries", "4.1.1", nodes(), [broker])["capped"]
            assert f"controller 102 is registered (record {old['registered_offset']} of the metadata log)" in capped
            assert "It supports metadata.version 3.9-IV0 at most, so Kafka does not raise it to 4.1-IV1" in capped
            assert "Start a controller 102 with Kafka 4.1.1 until it is registered anew" in capped

            def state():
                return (nodes()["c1"]["metadata_log"] or {}).get("quorum_state") or {"leaderId": 102}

            gone.stop()
            servers.wait_for(lambda: state()["leaderId"] != 102, 60, "controller 101 without the leader 102")
            broker.stop()
            kept.stop()
            for server in (kept, broker):
                server.configure({"controller.quorum.voters": voters[0]})
                server.use(new)
            kept.start()
            broker.start()
            admin_bed.ready([broker])
            at = {"cluster_id": servers.CLUSTER_ID}
            left = plan("versions", "4.1.1", nodes(), [broker], **at)
            assert left["metadata_version"] == 27 and "controller 102 is registered" in left["capped"][0], left
            stopped = plan("versions", "4.1.1", nodes(), [broker], token=left["needed"], **at)
            assert stopped["failed"] and "Nothing was changed by this task" in stopped["msg"], stopped
            raising = {"bootstrap_servers": [str(broker.address)], "controllers": left["controllers"]}
            raising["features"] = {"metadata.version": 27}
            refused = admin_bed.run("kafka_features", **raising)
            assert "Controller 102 only supports versions 1-21" in refused["msg"], refused

            # as docs/upgrades.md describes it: its file names the voters and itself, those of the quorum do not name it
            gone.use(new)
            shutil.rmtree(gone.properties["log.dirs"])
            config = str(gone.home / "server.properties")
            made = ["kafka.tools.StorageTool", "format", f"--cluster-id={servers.CLUSTER_ID}", "--config", config]
            java = ["java", *servers.JVM_FLAGS, "-cp", f"{new}/*"]
            subprocess.run([*java, *made], check=True, timeout=servers.START_SECONDS)
            gone.start(lambda: True)
            servers.wait_for(lambda: (registered() or old)["features"] != old["features"], 120, "102 registered anew")
            gone.stop()
            done = plan("versions", "4.1.1", nodes(), [broker], token=left["needed"], **at)
            assert done["confirmed"] and done["capped"] == [], done
            raised = admin_bed.run("kafka_features", **raising)
            assert raised["changed"] and raised["finalized"]["metadata.version"] == 27, raised
