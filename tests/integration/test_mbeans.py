# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Every MBean that the docs name is one of a real node of Kafka 3.9, where the docs say so, by Kafka's own JmxTool."""

from __future__ import annotations

import re
import subprocess

import pytest
from ansible_collections.quorumshift.kafka.plugins.module_utils.probes.node import node
from ansible_collections.quorumshift.kafka.plugins.module_utils.settings.addresses import HostPort
from confluent_kafka.admin import AdminClient

from tests.integration import servers
from tests.integration.test_upgrade_audit import jmx
from tools.checkout import ROOT

pytestmark = pytest.mark.real
OF_CONTROLLERS = "kafka.controller:type=KafkaController"
MIGRATING = "zookeeper.metadata.migration.enable"


def listed(port):
    """Return {MBean:attribute: value} of a process."""
    command = ["org.apache.kafka.tools.JmxTool", "--one-time", "--report-format", "properties", "--jmx-url"]
    done = subprocess.run(
        [*servers.java(), *command, f"service:jmx:rmi:///jndi/rmi://127.0.0.1:{port}/jmxrmi"],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    found = re.findall(r"^(kafka\..+?:type=.+?:[\w .-]+)=(.*)$", done.stdout, re.MULTILINE)
    assert found, done.stdout + done.stderr
    return dict(found)


def rows(page, heading):
    """Return (MBean, attributes, where) of a table of the docs. `…,name=X` is one of KafkaController."""
    text = (ROOT / "docs" / page).read_text(encoding="utf-8")
    table = text[text.index(f"\n## {heading}\n") :].split("\n## ")[1]
    beans: list[str] = []
    for line in (line for line in table.splitlines() if line.startswith("| ") and "`" in line):
        cells = [cell.strip() for cell in line.strip("|").split(" | ")]
        named = re.findall(r"`([^`]+)`", cells[0])
        found = [re.sub("^…", OF_CONTROLLERS, name) for name in named if "=" in name]
        beans = found or (beans if "the same" in cells[0] else [])
        for bean in beans:
            yield bean, [name for name in named if re.fullmatch(r"[a-z]+(-[a-z]+)+", name)], cells[1]


def missing(page, heading, controller, broker):
    """Return what the docs name and the nodes lack."""
    found = []
    for bean, attributes, where in rows(page, heading):
        for place, beans in (("controller", controller), ("broker", broker)):
            if place in where:
                wanted = [f"{bean}:{attribute}" for attribute in attributes] or [bean]
                found += [(place, name) for name in wanted if not any(key.startswith(name) for key in beans)]
    return found


def test_the_docs_name_mbeans_that_exist():
    with servers.workdir("mbeans") as home, servers.zookeeper(home) as ensemble:
        connect = f"{ensemble.connect}/kafka"
        ports = [servers.free_port() for _node in range(2)]
        with servers.zk_broker(home, 1, connect, jvm=jmx(ports[0])) as broker:
            admin = AdminClient({"bootstrap.servers": str(broker.address)})
            servers.wait_for(lambda: servers.knows_controller(admin, 1), 60, "the controller")
            in_zookeeper = listed(ports[0])
            cluster_id = servers.wait_for(lambda: servers.metadata(admin), 60, "the metadata").cluster_id
            address = HostPort("127.0.0.1", servers.free_port())
            voters = f"101@{address}"
            keys = servers.migration_keys(connect)
            with servers.kraft_controller(
                home, 101, address, voters, keys, jvm=jmx(ports[1]), cluster_id=cluster_id
            ) as controller:
                before = listed(ports[1])
                broker.stop()
                broker.configure({**keys, **servers.controller_keys(voters)})
                broker.start()

                def copied():
                    log = node.read_metadata_log(str(broker.home / "data" / node.METADATA_LOG))
                    return (log or {}).get("zk_migration_state") == "MIGRATION"

                servers.wait_for(copied, 300, "the initial copy")
                migrating = listed(ports[0])
                broker.stop()
                broker.configure(
                    {"process.roles": "broker", "node.id": "1", "broker.id": None, "zookeeper.connect": None}
                    | {MIGRATING: None, "inter.broker.protocol.version": None}
                )
                broker.start()
                in_kraft, dual = listed(ports[0]), listed(ports[1])
                controller.stop()
                controller.configure({MIGRATING: None, "zookeeper.connect": None})
                controller.start()
                final = listed(ports[1])

    for name, beans in (("zk", in_zookeeper), ("migrating", migrating), ("kraft", in_kraft), ("dual", dual)):
        shown = sorted(
            {
                re.sub(r":[^:]*$", "", key)
                for key in beans
                if re.match(r"kafka\.(controller|server):type=(Kafka|raft|broker-|Session|ZooK)", key)
            }
        )
        print(f"--- {name}", *shown, sep="\n")
    assert missing("monitoring/README.md", "MBeans", dual, in_kraft) == []
    assert missing("afterwards.md", "What to monitor", final, in_kraft) == []

    state = f"{OF_CONTROLLERS},name=ZkMigrationState:Value"
    assert [beans.get(state) for beans in (before, dual, final)] == ["2", "1", "3"]
    assert migrating.get(state) == in_zookeeper.get(state) == "4", "of a broker in a ZooKeeper mode"
    behind = f"{OF_CONTROLLERS},name=ZkWriteBehindLag:Value"
    assert behind in dual and behind not in final
    for gone in ("kafka.server:type=SessionExpireListener", "kafka.server:type=ZooKeeperClientMetrics"):
        assert any(key.startswith(gone) for key in in_zookeeper) and not any(key.startswith(gone) for key in in_kraft)
