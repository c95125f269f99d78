# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""kafka_features and kafka_features_info against real servers in both modes."""

from __future__ import annotations

import contextlib
import json

import pytest
from ansible_collections.quorumshift.kafka.plugins.module_utils.wire import zk_wire

from tests.integration import admin_bed, servers

pytestmark = pytest.mark.real


def test_features_in_kraft_mode():
    with admin_bed.kraft("features", settings={"inter.broker.protocol.version": "3.8"}) as (
        _home,
        controller,
        (broker,),
    ):
        at = {"bootstrap_servers": [str(broker.address)]}
        found = admin_bed.run("kafka_features_info", **at)
        assert found["mode"] == "kraft" and found["static_voters"] is True and found["migrating"] is None
        assert found["finalized"]["metadata.version"] == {"level": 20, "name": "3.8-IV0", "minimum": 20}
        assert found["highest_common"]["metadata.version"] == {"level": 21, "name": "3.9-IV0"}
        assert set(found["nodes"]) == {f"broker 1 at {broker.address}", f"controller 3000 at {controller.address}"}
        for node in found["nodes"].values():
            assert node["supported"]["metadata.version"] == [1, 21]
            assert node["supported"]["kraft.version"] == [0, 1], "version 4 of ApiVersions names it (KAFKA-17011)"

        def refused(**options):
            result = admin_bed.run("kafka_features", **at, **options)
            assert result["failed"] and "Nothing was changed" in result["msg"], result
            return result["msg"]

        assert str(controller.address) in refused(features={"metadata.version": 22})
        assert "no node knows the feature nothing" in refused(features={"nothing": 1})
        assert "static voters" in refused(features={"kraft.version": 1})
        assert "downgrade: safe" in refused(features={"metadata.version": "3.7"})
        assert "is of cluster" in refused(features={"metadata.version": 21}, cluster_id="AAAAAAAAAAAAAAAAAAAAAA")
        with admin_bed.locked_by("20260101T000000-aaaa", servers.CLUSTER_ID) as state_dir:
            said = refused(features={"metadata.version": 21}, state_dir=state_dir)
            assert "is locked by run 20260101T000000-aaaa" in said
        # a lossy downgrade, refused by the controller's own validation
        assert "INVALID_UPDATE_VERSION" in refused(features={"metadata.version": "3.4"}, downgrade="safe")
        assert "INVALID_UPDATE_VERSION" in refused(features={"metadata.version": "3.4"}, downgrade="unsafe")

        wanted = {"features": {"metadata.version": "3.9"}, "cluster_id": servers.CLUSTER_ID}
        checked = admin_bed.run("kafka_features", check=True, **at, **wanted)
        assert checked["changed"] and checked["diff"] == {
            "before": "metadata.version: 3.8-IV0 (level 20)\n",
            "after": "metadata.version: 3.9-IV0 (level 21)\n",
        }
        assert admin_bed.run("kafka_features_info", **at)["finalized"]["metadata.version"]["level"] == 20

        raised = admin_bed.run("kafka_features", **at, upgrade_all=True)
        assert raised["changed"] and [(result["feature"], result["after"]) for result in raised["results"]] == [
            ("metadata.version", 21)
        ]
        before, found = found, admin_bed.run("kafka_features_info", **at)
        for node in found["nodes"].values():
            assert node["finalized"]["metadata.version"] == 21
            assert node["epoch"] > before["epoch"], "every node serves an epoch of after the update"
        assert admin_bed.run("kafka_features", **at, **wanted)["changed"] is False
        # no metadata changed between the two releases, so the controller allows it
        lowered = admin_bed.run("kafka_features", **at, features={"metadata.version": "3.8"}, downgrade="safe")
        print(lowered)


def test_features_whose_lowest_level_is_0(monkeypatch):
    monkeypatch.setenv("QUORUMSHIFT_KAFKA_LIBS", str(servers.libs_of("4.1.1")))
    with admin_bed.kraft("features-4.1") as (_home, _controller, (broker,)):
        at = {"bootstrap_servers": [str(broker.address)]}
        before = admin_bed.run("kafka_features_info", **at)
        assert before["finalized"]["metadata.version"] == {"level": 27, "name": "4.1-IV1", "minimum": 27}
        assert before["finalized"]["group.version"] == {"level": 1, "name": "1", "minimum": 1}
        assert all(node["supported"]["group.version"] == [0, 1] for node in before["nodes"].values())
        for level, downgrade in ((0, "safe"), (1, "no")):
            changed = admin_bed.run("kafka_features", **at, features={"group.version": level}, downgrade=downgrade)
            assert changed["changed"] and changed["finalized"].get("group.version", 0) == level
            found = admin_bed.run("kafka_features_info", **at)
            assert all(node["epoch"] > before["epoch"] for node in found["nodes"].values())
            before = found
        assert "static voters" in admin_bed.run("kafka_features", **at, features={"kraft.version": 1})["msg"]
        lowered = admin_bed.run("kafka_features", **at, features={"metadata.version": "3.9"}, downgrade="safe")
        assert lowered["failed"] and "INVALID_UPDATE_VERSION" in lowered["msg"]


def test_features_in_zookeeper_mode():
    with admin_bed.zookeeper("zk-features") as (_home, connect, (broker,)):
        at = {"bootstrap_servers": [str(broker.address)], "zookeeper_connect": connect}
        found = admin_bed.run("kafka_features_info", **at)
        print(found)
        assert found["mode"] == "zookeeper" and found["zookeeper_feature"]["enabled"] is True
        epoch = zk_wire.read_znodes(connect, ["/feature"])["/feature"][1].version
        assert found["zookeeper_feature"]["epoch"] == epoch and f"at epoch {epoch}" in found["notes"][0]
        assert "inter.broker.protocol.version" in found["notes"][0]
        refused = admin_bed.run("kafka_features", **at, features={"metadata.version": 21})
        assert refused["failed"] and "ZooKeeper mode" in refused["msg"]
        # A controller whose protocol has no features disables them
        broker.stop()
        broker.configure({"inter.broker.protocol.version": "2.6"})
        broker.start()
        admin_bed.ready([broker])
        found = admin_bed.run("kafka_features_info", **at)
        assert found["zookeeper_feature"]["enabled"] is False and found["zookeeper_feature"]["epoch"] > epoch
        assert "/feature is disabled" in found["notes"][1]


def test_features_while_a_migration_is_under_way():
    with servers.workdir("features-migration") as home, contextlib.ExitStack() as stack:
        ensemble = stack.enter_context(servers.zookeeper(home))
        connect = f"{ensemble.connect}/kafka"
        broker = stack.enter_context(servers.zk_broker(home, 1, connect))
        admin_bed.ready([broker])
        migrating = stack.enter_context(servers.migrating_controllers(home, connect))
        controllers = [str(address) for address in migrating.addresses]
        at = {"bootstrap_servers": [str(broker.address)], "controllers": controllers, "timeout": 15}

        def refused(**options):
            found = admin_bed.run("kafka_features_info", **options)
            assert found["mode"] == "migration" and "controller" in found["migrating"], found
            result = admin_bed.run("kafka_features", **options, features={"metadata.version": 20}, downgrade="safe")
            assert result["failed"] and "Nothing was changed" in result["msg"], result
            return result["msg"]

        assert "during a migration to KRaft" in refused(**at), "before the broker takes part"
        broker.stop()
        broker.configure({**migrating.to_migration, "inter.broker.protocol.version": "3.9"})
        broker.start()

        def copied():
            stored = json.loads(zk_wire.read_znodes(connect, ["/migration"])["/migration"][0])
            return stored["kraft_metadata_offset"] > 0

        servers.wait_for(copied, 60, "the copy of the metadata")
        assert "during a migration to KRaft" in refused(**at), "hybrid"
        kraft = {"process.roles": "broker", "node.id": "1", "broker.id": None, "zookeeper.connect": None}
        kraft.update({"zookeeper.metadata.migration.enable": None, "inter.broker.protocol.version": None})
        broker.stop()
        broker.configure(kraft)
        broker.start()
        admin_bed.ready([broker])
        found = admin_bed.run("kafka_features_info", **at)
        assert found["finalized"]["metadata.version"]["level"] == 21 and found["lagging"] == [], found
        assert "during a migration to KRaft" in refused(**at), "dual-write"
