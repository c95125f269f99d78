# Copyright: (c) 2026, Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""kafka_features and kafka_features_info against real servers in both modes."""

from __future__ import annotations

import pytest

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
        assert found["finalized"]["metadata.version"] == {"level": 20, "name": "3.8-IV0"}
        assert found["highest_common"]["metadata.version"] == {"level": 21, "name": "3.9-IV0"}
        assert set(found["nodes"]) == {f"broker 1 at {broker.address}", f"controller 3000 at {controller.address}"}
        assert all(node["supported"]["metadata.version"] == [1, 21] for node in found["nodes"].values())

        def refused(**options):
            result = admin_bed.run("kafka_features", **at, **options)
            assert result["failed"] and "Nothing was changed" in result["msg"], result
            return result["msg"]

        assert str(controller.address) in refused(features={"metadata.version": 22})
        assert "no node knows the feature nothing" in refused(features={"nothing": 1})
        assert "static voters" in refused(features={"kraft.version": 1})
        assert "downgrade: safe" in refused(features={"metadata.version": "3.7"})
        assert "is of cluster" in refused(features={"metadata.version": 21}, cluster_id="AAAAAAAAAAAAAAAAAAAAAA")
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
        assert raised["changed"] and [(one["feature"], one["after"]) for one in raised["results"]] == [
            ("metadata.version", 21)
        ]
        found = admin_bed.run("kafka_features_info", **at)
        assert all(node["finalized"]["metadata.version"] == 21 for node in found["nodes"].values())
        assert admin_bed.run("kafka_features", **at, **wanted)["changed"] is False
        # no metadata changed between the two releases, so the controller allows it
        lowered = admin_bed.run("kafka_features", **at, features={"metadata.version": "3.8"}, downgrade="safe")
        print(lowered)


def test_features_in_zookeeper_mode():
    with admin_bed.zookeeper("zk-features") as (_home, connect, (broker,)):
        at = {"bootstrap_servers": [str(broker.address)], "zookeeper_connect": connect}
        found = admin_bed.run("kafka_features_info", **at)
        print(found)
        assert found["mode"] == "zookeeper" and found["zookeeper_feature"]["enabled"] is True
        assert "inter.broker.protocol.version" in found["notes"][0]
        refused = admin_bed.run("kafka_features", **at, features={"metadata.version": 21})
        assert refused["failed"] and "ZooKeeper mode" in refused["msg"]
