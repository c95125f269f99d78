# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which changes of the binaries are refused, in which order nodes change, and what confirms the second step."""

from __future__ import annotations

import pytest
from ansible_collections.quorumshift.kafka.plugins.module_utils.core.admin import upgrade
from ansible_collections.quorumshift.kafka.plugins.module_utils.core.releases.features import Range

MV = "metadata.version"


def home(version, new, **changes):
    found = {
        "home": {"path": "/opt/kafka", "is_link": True, "target": f"/opt/kafka-{version}", "version": version},
        "to": {"path": f"/opt/kafka-{new}", "exists": True, "version": new, "starts": True},
        "active": True,
        "java": 17,
    }
    for part, values in changes.items():
        found[part] = {**found[part], **values} if isinstance(values, dict) else values
    return found


def cluster(version="3.7.2", to="3.9.2", protocol="3.7", controllers="", **changes):
    """Return brokers b1 to b3, and controllers c1 to c3 that run `controllers`, or none."""
    hosts = {name: upgrade.Host("broker", version, True, protocol, home(version, to)) for name in ("b1", "b2", "b3")}
    for name in ("c1", "c2", "c3"):
        installed = controllers or version
        hosts[name] = upgrade.Host("controller", installed, bool(controllers), "", home(installed, to))
    for name, values in changes.items():
        hosts[name] = hosts[name]._replace(**values)
    return hosts


def test_a_change_of_the_release_is_done_when_every_node_runs_it():
    assert upgrade.explain_left(cluster("3.9.2", "3.9.2"), "3.9.2", True) == []
    assert upgrade.explain_left(cluster("3.9.2", "3.9.2", controllers="3.9.2"), "3.9.2", False) == []


@pytest.mark.parametrize("zookeeper", [True, False])
def test_a_node_that_reverted_or_is_down_is_named_in_both_directions(zookeeper):
    controllers = "" if zookeeper else "3.9.2"
    for other in ("3.7.2", "4.1.1"):
        hosts = cluster("3.9.2", "3.9.2", controllers=controllers, b2={"version": other}, b3={"runs": False})
        (reverted, down) = upgrade.explain_left(hosts, "3.9.2", zookeeper)
        assert reverted == f"b2 has Kafka {other}, not 3.9.2 (QS-RESTART-004)" and down.startswith("b3 does not run")


def refused(hosts, to, zookeeper=True, **finalized):
    return upgrade.refusals(hosts, to, zookeeper, {name.replace("_", "."): level for name, level in finalized.items()})


def test_in_zookeeper_mode_brokers_change_alone_and_keep_their_protocol():
    hosts = cluster(protocol="")
    assert refused(hosts, "3.9.2") == []
    plan = upgrade.plan_binaries(hosts, "3.9.2", True, {})
    assert plan == upgrade.Binaries([upgrade.BROKERS], [], ["c1", "c2", "c3"], False, "3.7", {})


def test_an_interrupted_upgrade_goes_on_and_goes_back():
    new = {"version": "3.9.2", "home": home("3.9.2", "3.9.2")}
    hosts = cluster(b2=new)
    assert refused(hosts, "3.9.2") == [] and upgrade.plan_binaries(hosts, "3.9.2", True, {}).ready == ["b2"]
    hosts = cluster(to="3.7.2", b2={"version": "3.9.2", "home": home("3.9.2", "3.7.2")})
    assert refused(hosts, "3.7.2") == []
    back = upgrade.plan_binaries(hosts, "3.7.2", True, {})
    assert back.lowers and back.ready == ["b1", "b3"] and back.switched == []


def test_in_kraft_mode_controllers_come_first_on_the_way_up_and_last_on_the_way_down():
    hosts = cluster("3.9.2", "4.1.1", "", "3.9.2")
    assert refused(hosts, "4.1.1", False, metadata_version=21) == []
    assert upgrade.plan_binaries(hosts, "4.1.1", False, {}).order == [upgrade.CONTROLLERS, upgrade.BROKERS]
    hosts = cluster("4.1.1", "3.9.2", "", "4.1.1")
    assert refused(hosts, "3.9.2", False, metadata_version=21) == []
    back = upgrade.plan_binaries(hosts, "3.9.2", False, {})
    assert back.order == [upgrade.BROKERS, upgrade.CONTROLLERS] and back.lowers and back.protocol == ""


def test_a_node_that_is_down_is_not_ready():
    hosts = cluster("3.9.2", "3.9.2", b1={"runs": False})
    assert upgrade.plan_binaries(hosts, "3.9.2", True, {}).ready == ["b2", "b3"]
    assert upgrade.find_not_upgraded(hosts, "3.9.2", True) == ["b1"]


@pytest.mark.parametrize(
    ("hosts", "to", "zookeeper", "finalized", "text"),
    [
        (cluster(), "4.1.1", True, {}, "has no ZooKeeper, and this cluster is in ZooKeeper mode"),
        (cluster(to="3.9"), "3.9", True, {}, "Set upgrade_to to the version in the name of its jar"),
        (
            cluster(b2={"version": "3.6.2", "home": home("3.6.2", "3.9.2")}),
            "3.9.2",
            True,
            {},
            "versions are mixed: b1 3.7.2, b2 3.6.2, b3 3.7.2",
        ),
        (cluster(b2={"version": None}), "3.9.2", True, {}, "the Kafka version of b2 could not be read"),
        (cluster(b2={"protocol": "3.6"}), "3.9.2", True, {}, "inter.broker.protocol.version differs: b1 3.7, b2 3.6"),
        (cluster("3.9.2", "3.7.2", "3.9"), "3.7.2", True, {}, "inter.broker.protocol.version is 3.9 on b1, b2, b3"),
        (
            cluster(b2={"home": home("3.7.2", "3.9.2", to={"exists": False, "version": None})}),
            "3.9.2",
            True,
            {},
            "/opt/kafka-3.9.2 does not exist on b2",
        ),
        (
            cluster(b2={"home": home("3.7.2", "3.9.2", to={"version": "3.8.1"})}),
            "3.9.2",
            True,
            {},
            "/opt/kafka-3.9.2 of b2 has Kafka 3.8.1, and upgrade_to is 3.9.2",
        ),
        (
            cluster(b2={"home": home("3.7.2", "3.9.2", to={"starts": False})}),
            "3.9.2",
            True,
            {},
            "/opt/kafka-3.9.2/bin of b2 has no kafka-server-start.sh",
        ),
        (
            cluster(b2={"home": home("3.7.2", "3.9.2", home={"is_link": False})}),
            "3.9.2",
            True,
            {},
            "mv -T /opt/kafka /opt/kafka-3.7.2 && ln -sT /opt/kafka-3.7.2 /opt/kafka",
        ),
        (cluster(b2={"home": {}}), "3.9.2", True, {}, "the directories of b2 were not read"),
        (
            cluster("3.9.2", "4.1.1", "", "3.9.2", b2={"home": home("3.9.2", "4.1.1", java=11)}),
            "4.1.1",
            False,
            {MV: 21},
            "b2 runs Java 11, and Kafka 4.1 needs Java 17",
        ),
        (
            cluster("3.9.2", "4.1.1", "", "3.9.2"),
            "4.1.1",
            False,
            {MV: 6},
            "metadata.version is 3.3-IV2, and Kafka 4.1.1",
        ),
        (
            cluster("3.3.2", "4.1.1", "", "3.3.2"),
            "4.1.1",
            False,
            {MV: 6},
            "needs 3.3-IV3 at least. Raise it first, with the second step of this playbook",
        ),
        (cluster("3.2.3", "4.1.1", "", "3.2.3"), "4.1.1", False, {MV: 1}, "Upgrade to 3.9 first, with its"),
        (cluster("3.9.2", "4.1.1", "", "3.9.2"), "4.1.1", False, {}, "no live node says which levels are finalized"),
        (cluster("4.4.0", "4.5.0", "", "4.4.0"), "4.5.0", False, {MV: 33}, "the levels that Kafka 4.5.0 supports are"),
        (
            cluster("4.1.1", "3.9.2", "", "4.1.1"),
            "3.9.2",
            False,
            {MV: 27},
            "metadata.version is 4.1-IV1, and Kafka 3.9.2",
        ),
        (
            cluster("4.1.1", "3.9.2", "", "4.1.1"),
            "3.9.2",
            False,
            {MV: 21, "group.version": 1},
            "group.version 1 is finalized, and Kafka 3.9.2 does not know it",
        ),
    ],
)
def test_changes_that_are_refused(hosts, to, zookeeper, finalized, text):
    reasons = upgrade.refusals(hosts, to, zookeeper, finalized)
    assert len(reasons) == 1 and text in reasons[0], reasons


def test_a_host_without_node_and_link_is_left_as_it_is():
    nothing = home("3.7.2", "3.9.2", home={"is_link": False, "version": None}, to={"exists": False, "version": None})
    hosts = cluster(c2={"home": nothing, "version": None})
    assert refused(hosts, "3.9.2") == [] and upgrade.plan_binaries(hosts, "3.9.2", True, {}).switched == ["c1", "c3"]


def test_keys_that_the_release_does_not_know_are_named():
    files = {
        "b1": {"zookeeper.connect": "z:2181", "delegation.token.master.key": "x", "log.dirs": "/d"},
        "b2": {"log.dirs": "/d", "group.share.max.groups": "10"},
    }
    assert upgrade.find_removed_keys(files, "4.1.1") == {
        "b1": {"delegation.token.master.key": "delegation.token.secret.key", "zookeeper.connect": ""},
        "b2": {"group.share.max.groups": ""},
    }
    assert upgrade.find_removed_keys(files, "4.0.1") == {
        "b1": {"delegation.token.master.key": "delegation.token.secret.key", "zookeeper.connect": ""}
    }
    assert upgrade.find_removed_keys(files, "3.9.2") == {}
    assert upgrade.find_removed_keys(files, "3.8.1") == {"b2": {"group.share.max.groups": ""}}, "also on the way down"
    assert upgrade.find_removed_keys({"b1": {"log.message.timestamp.difference.max.ms": "1"}}, "4.4.0")["b1"] != {}
    gone = {"b1": {"unstable.metadata.versions.enable": "true"}}
    assert list(upgrade.find_removed_keys(gone, "3.9.2")["b1"].values()) == ["unstable.feature.versions.enable"]
    assert list(upgrade.find_removed_keys(gone, "3.6.2")["b1"].values()) == [""], "nor does it know what replaces it"


def test_the_second_step_raises_what_is_below_the_target():
    hosts = cluster("3.9.2", "3.9.2", "3.7", b2={"protocol": "3.9-IV0"}, b3={"protocol": ""})
    assert upgrade.find_due_protocols(hosts, "3.9.2") == {"b1": "3.7"}
    assert upgrade.token("AbC", "3.9.2") == "AbC:3.9" and upgrade.token("AbC", "7.9.1-ccs") == "AbC:3.9"


def test_metadata_version_of_the_target():
    assert upgrade.level_of_target("4.1.1", 28) == 27 and upgrade.level_of_target("3.9.2", 21) == 21
    assert upgrade.level_of_target("4.3.0", 33) == 30
    assert upgrade.level_of_target("4.9.0", 50) == 50, "of a later release, what every node supports"


def test_the_features_of_the_target():
    kraft, group, metadata = "kraft.version", "group.version", "metadata.version"
    of_41 = {metadata: Range(7, 27), group: Range(0, 1), kraft: Range(0, 1), "transaction.version": Range(0, 2)}
    nodes = {"broker 1": of_41, "controller 2": of_41}
    due = upgrade.levels_of_target("4.1.1", {metadata: 21}, nodes, True)
    assert due == {group: 1, metadata: 27, "transaction.version": 2}, "none that a node does not know"
    assert upgrade.levels_of_target("4.1.1", {**due}, nodes, True) == {}
    assert upgrade.levels_of_target("4.1.1", {metadata: 27}, nodes, True) == {group: 1, "transaction.version": 2}
    assert upgrade.levels_of_target("3.9.2", {metadata: 20}, {"broker 1": {metadata: Range(1, 21)}}, True) == {
        metadata: 21
    }
    assert upgrade.levels_of_target("4.9.0", {metadata: 25}, nodes, True) == {metadata: 27}, "a release that is unknown"
