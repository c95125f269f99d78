# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The playbook `features` and the features on `status` against real servers of several releases."""

from __future__ import annotations

import contextlib
import json
import re

import pytest
from ansible_collections.quorumshift.kafka.plugins.module_utils.probes.node import own_log
from ansible_collections.quorumshift.kafka.plugins.module_utils.settings.addresses import HostPort
from ansible_collections.quorumshift.kafka.plugins.module_utils.wire import kafka_wire

from tests.integration import admin_bed, servers
from tests.integration.test_reassign_playbook import Runs, events

pytestmark = pytest.mark.real

MV = "metadata.version"


def broker_of(home, stack, number, voters, libs, monkeypatch):
    """Start a broker with other jars; return its server."""
    with monkeypatch.context() as patched:
        if libs:
            patched.setenv("QUORUMSHIFT_KAFKA_LIBS", str(libs))
        return stack.enter_context(servers.kraft_broker(home, number, voters))


@contextlib.contextmanager
def mixed(name, monkeypatch):
    """Yield (controller, brokers, runs): a controller and broker 1 of 3.9.2, broker 2 of 3.7.2, at level 3.7-IV4."""
    with servers.workdir(name) as home, contextlib.ExitStack() as stack:
        address = HostPort("127.0.0.1", servers.free_port())
        voters = f"3000@{address}"
        controller = stack.enter_context(servers.kraft_controller(home, 3000, address, voters, release="3.7"))
        older = servers.libs_of("3.7.2")
        brokers = [
            broker_of(home, stack, 1, voters, None, monkeypatch),
            broker_of(home, stack, 2, voters, older, monkeypatch),
        ]
        admin_bed.ready(brokers)
        yield controller, brokers, Runs(home, controller, brokers, "features")


def of_kafka_4(home, controller, brokers):
    """Return runs over nodes of 4.1.1, whose version shows that they know no migration."""
    runs = Runs(home, controller, brokers, "features")
    runs.groups["all"]["vars"]["quorumshift_kafka_home"] = str(servers.libs_of("4.1.1").parent)
    runs.write()
    return runs


def level(brokers):
    found = admin_bed.run("kafka_features_info", bootstrap_servers=[str(broker.address) for broker in brokers])
    return found["finalized"][MV]["level"]


def test_a_half_upgraded_cluster_from_the_table_to_the_new_level_and_back(monkeypatch):
    with mixed("features-playbook", monkeypatch) as (_controller, (newer, older), runs):
        code, said = runs.run()
        assert code == 0 and "held back by" in said, said
        named = f"broker 2 at {older.address}"
        assert re.search(
            rf"metadata\.version 3\.7-IV4 \(19\) 3\.7-IV4 \(19\) .* to 3\.7-IV4 \(19\) {named} \(3\.7-IV4", said
        )
        assert f"{named} 3.7 " in said and f"broker 1 at {newer.address} 3.9 " in said
        assert runs.locks() == {}, "it only shows"

        # The older broker cannot follow
        code, said = runs.run(features_upgrade_to="3.9", features_apply=True)
        assert code == 2 and f"{named} supports 3.0-IV1 to 3.7-IV4" in said and runs.locks() == {}, said
        code, said = runs.run(features_levels={MV: 22}, features_apply="yes")
        assert code == 2 and runs.locks() == {}
        assert "None is set" in runs.run(features_apply=True)[1]
        assert level([newer, older]) == 19

        runs.playbook = "status"
        code, said = runs.run()
        assert code == 0, said
        assert re.search(r"features: metadata\.version 3\.7-IV4 \(19\); epoch \d+", said), said
        assert "metadata.version can be 3.7-IV4 (19) at most, held back by b2 (3.7-IV4 (19))" in said
        kept = json.loads((runs.artifacts / "status.json").read_text())
        assert kept["features"]["finalized"] == {MV: 19} and kept["features"]["held_back"][MV] == {"b2": 19}
        runs.playbook = "features"

        # Both are of the new release now
        older.stop()
        older.use(servers.kafka_libs())
        older.start()
        admin_bed.ready([newer, older])
        code, said = runs.run("--check", features_upgrade_to="3.9", features_apply=True)
        assert code == 0 and "raise metadata.version: 3.7-IV4 (19) -> 3.9-IV0 (21)" in said, said
        code, said = runs.run(features_upgrade_to="3.9")
        assert code == 0 and "To make it, add -e features_apply=true" in said and "features_confirm" not in said, said
        assert level([newer, older]) == 19 and runs.locks() == {}
        code, said = runs.run(features_upgrade_to="3.9", features_apply=True)
        assert code == 0 and level([newer, older]) == 21, said
        assert all(lock["closed"] and lock["how"] == "ok" for lock in runs.locks().values()) and len(runs.locks()) == 3
        changed = [event for event in events(runs.newest()) if event["name"] == "features changed"]
        assert [event["features"] for event in changed] == [{MV: [19, 21]}]
        code, said = runs.run(features_upgrade_to="3.9", features_apply=True)
        assert code == 0 and "nothing would change" in said and re.search(r"localhost : ok=\d+ changed=0", said), said

        # A broker that is down, which the level would lock out or not: it is unknown
        newer.stop()
        servers.wait_for(
            lambda: (
                "broker 1"
                not in str(admin_bed.run("kafka_features_info", bootstrap_servers=[str(older.address)])["nodes"])
            ),
            30,
            "broker 1 to be gone",
        )
        code, said = runs.run(features_downgrade_to="3.7", features_apply=True)
        assert code == 0 and level([older]) == 19, said
        code, said = runs.run(features_upgrade_to="3.9", features_apply=True)
        assert code == 2 and "it is unknown what they support: broker 1" in said and level([older]) == 19, said


def test_a_broker_that_a_raised_level_locks_out_says_why(monkeypatch):
    with mixed("features-locked-out", monkeypatch) as (controller, (newer, older), _runs):
        older.stop()
        at = [str(newer.address)]

        def features():
            return admin_bed.run("kafka_features_info", bootstrap_servers=at)

        servers.wait_for(lambda: len(features()["nodes"]) == 2, 30, "one broker alone")
        # Kafka itself counts a broker that is down, as long as it is registered
        refused = admin_bed.run("kafka_features", bootstrap_servers=at, upgrade_to="3.9")
        assert refused["failed"] and "INVALID_UPDATE_VERSION" in refused["msg"] and "Broker 2" in refused["msg"], (
            refused
        )
        assert features()["finalized"][MV]["level"] == 19
        # Once it is not, nothing prevents the level but what the task expects
        assert kafka_wire.unregister_broker(controller.address, 2)
        expected = {"broker": [1, 2], "controller": [3000]}
        refused = admin_bed.run("kafka_features", bootstrap_servers=at, upgrade_to="3.9", expected=expected)
        assert refused["failed"] and "broker 2" in refused["msg"] and "Nothing was changed" in refused["msg"]
        raised = admin_bed.run("kafka_features", bootstrap_servers=at, upgrade_to="3.9")
        assert raised["changed"], raised
        with pytest.raises(RuntimeError):
            older.start(seconds=40)
        state = {"active": False, "started_at": None}
        reason = own_log.read_last_error(str(older.log), state)
        assert "No MetadataVersion with metadata version 21" in reason, reason
        assert len(features()["nodes"]) == 2


def test_an_emergency_downgrade_while_no_broker_lives(monkeypatch):
    """The brokers of the earlier release cannot start with the levels, and the later ones are stopped already."""
    monkeypatch.setenv("QUORUMSHIFT_KAFKA_LIBS", str(servers.libs_of("4.1.1")))
    with servers.workdir("features-emergency") as home, contextlib.ExitStack() as stack:
        address = HostPort("127.0.0.1", servers.free_port())
        voters = f"3000@{address}"
        controller = stack.enter_context(servers.kraft_controller(home, 3000, address, voters))
        broker = stack.enter_context(servers.kraft_broker(home, 1, voters))
        admin_bed.ready([broker])
        runs = of_kafka_4(home, controller, [broker])
        raised = runs.run(features_levels={"share.version": 1}, features_apply=True)
        assert raised[0] == 0 and "add share.version: not finalized -> 1" in raised[1], raised[1]
        broker.stop()
        at = {"bootstrap_servers": [str(broker.address)], "controllers": [str(address)]}
        servers.wait_for(lambda: admin_bed.run("kafka_features_info", **at)["alive"] == [], 60, "no broker to live")

        code, said = runs.run()
        assert code == 0 and f"controller 3000 at {address}" in said and "broker 1" not in said, said
        code, said = runs.run(features_downgrade_to="4.0", features_apply=True)
        assert code == 0, said
        found = admin_bed.run("kafka_features_info", **at)
        assert found["finalized"][MV]["level"] == 25 and "share.version" not in found["finalized"], found
        assert "delete share.version: 1 -> deleted" in said and "their consumers" in said
        # Down to 3.9 there is no way: the playbook names the levels, and changes nothing
        code, said = runs.run(features_downgrade_to="3.9", features_apply=True)
        assert code == 2 and "4.0-IV1 (23)" in said and "QS-ADMIN-010" in said, said
        # What nothing takes back needs its token
        back = {"features_upgrade_to": "4.1", "features_apply": True}
        code, said = runs.run(**back)
        assert code == 2 and "what they support: broker 1" in said, "no level rises while a broker is down"
        broker.start()
        admin_bed.ready([broker])
        code, said = runs.run(**back)
        assert code == 0 and "nothing takes this back" not in said, "from 25 to 27 no level changed the metadata"


def test_the_token_of_what_nothing_takes_back(monkeypatch):
    monkeypatch.setenv("QUORUMSHIFT_KAFKA_LIBS", str(servers.libs_of("4.1.1")))
    with servers.workdir("features-token") as home, contextlib.ExitStack() as stack:
        address = HostPort("127.0.0.1", servers.free_port())
        voters = f"3000@{address}"
        controller = stack.enter_context(servers.kraft_controller(home, 3000, address, voters, release="3.9"))
        broker = stack.enter_context(servers.kraft_broker(home, 1, voters))
        admin_bed.ready([broker])
        runs = of_kafka_4(home, controller, [broker])
        wanted = {"features_upgrade_to": "4.1"}
        code, said = runs.run(**wanted)
        assert code == 0 and "nothing takes this back: metadata.version rises from 3.9-IV0 to 4.1-IV1" in said, said
        token = re.search(r"features_apply=true -e features_confirm=(\S+)", said)[1]
        assert token.startswith(f"{servers.CLUSTER_ID}:")
        for wrong in ("", f"{servers.CLUSTER_ID}:ffffff"):
            code, said = runs.run(**wanted, features_apply=True, features_confirm=wrong)
            assert code == 2 and f"-e features_confirm={token}" in said and level([broker]) == 21, said
        assert runs.locks() == {} or all(lock["closed"] for lock in runs.locks().values())
        code, said = runs.run(**wanted, features_apply=True, features_confirm=token)
        assert code == 0 and level([broker]) == 27, said
