# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Large reassignments on real servers: in parts, over a controller's failover, with a broker down, beside null entries;
on secured listeners with an authorizer, and during a migration."""

from __future__ import annotations

import contextlib
import json
import re
import shlex
import subprocess
import threading

import pytest
from ansible_collections.quorumshift.kafka.plugins.module_utils.secrets.security import Security
from ansible_collections.quorumshift.kafka.plugins.module_utils.settings.addresses import HostPort
from ansible_collections.quorumshift.kafka.plugins.module_utils.wire import zk_wire
from ansible_collections.quorumshift.kafka.plugins.module_utils.wire.kafka_wire import describe_quorum_any
from ansible_collections.quorumshift.kafka.plugins.module_utils.wire.socket_wire import WireError
from kazoo.client import KazooClient

from tests.integration import admin_bed, servers
from tests.integration.certificates import Authority
from tests.integration.test_feature_changes import PLAIN
from tests.integration.test_partition_reassignment import Bed, fill, set_at, single_move

pytestmark = pytest.mark.real

MANY, LIMIT = 24, 3
SLOW, FAST = 100_000, 100_000_000


def many(*replicas):
    """Return the reassignment of topic `many` to these replicas."""
    return [{"topic": "many", "partition": number, "replicas": list(replicas)} for number in range(MANY)]


def on(bed, topic, replicas):
    """Return how many partitions of a topic have exactly these replicas."""
    found = bed.admin().partitions.items()
    return sum(topic == partition[0] and each["replicas"] == list(replicas) for partition, each in found)


class Move:
    """A move as the action plugin makes it, slice by slice, in a thread; `most`: the most partitions seen in flight."""

    def __init__(self, bed, **options):
        self._bed, self._options = bed, options
        self.result, self.most, self._ended = {}, 0, False
        self._threads = [threading.Thread(target=work) for work in (self._move, self._watch)]
        for thread in self._threads:
            thread.start()

    def end(self):
        """Wait for the end; return the last result."""
        for thread in self._threads:
            thread.join(400)
        assert self._ended, self.result
        print(f"most in flight: {self.most}; {self.result.get('msg') or self.result.get('text')}")
        return self.result

    def _move(self):
        try:
            self.result = self._bed.move(wait_s=4, **self._options)
            while not self.result.get("failed") and not self.result["done"]:
                carry = self.result["carry"]
                state = "present" if carry["queued"] else "awaited"
                self.result = self._bed.move(wait_s=4, **{**self._options, "state": state}, carry=carry)
        finally:
            self._ended = True

    def _watch(self):
        admin = self._bed.admin()
        while not self._ended:
            with contextlib.suppress(WireError):
                self.most = max(self.most, len(admin.in_flight()))
                continue
            with contextlib.suppress(WireError):
                admin.refresh()


def test_in_parts_over_a_failover_and_with_a_broker_down():
    with servers.workdir("reassign-scale") as home, contextlib.ExitStack() as stack:
        addresses = [HostPort("127.0.0.1", servers.free_port()) for dummy in range(3)]
        voters = ",".join(f"{101 + place}@{address}" for place, address in enumerate(addresses))
        controllers = stack.enter_context(servers.kraft_controllers(home, addresses))
        brokers = [stack.enter_context(servers.kraft_broker(home, number, voters)) for number in (1, 2, 3)]
        admin_bed.ready(brokers)
        bed = Bed(home, brokers)
        fill(brokers[0], "many", {number: [1, 2] for number in range(MANY)}, 1)
        fill(brokers[0], "big", {0: [1, 2]}, 8)

        # the active controller is killed while parts are sent and in flight
        move = Move(bed, partitions=many(1, 3), max_in_flight=LIMIT)
        servers.wait_for(lambda: LIMIT <= on(bed, "many", (1, 3)) < MANY - LIMIT, 120, "a part of the plan")
        leader = describe_quorum_any([brokers[0].address], Security(), 10).quorum.leader_id
        (leading,) = (server for server in controllers if server.node_id == leader)
        leading.kill()
        ended = move.end()
        assert ended.get("done") and on(bed, "many", (1, 3)) == MANY, ended
        assert 0 < move.most <= LIMIT and not bed.record.exists(), move.most

        # a broker that is added dies: what moves keeps its throttle, and what waits is held back
        back = {"partitions": many(1, 2), "max_in_flight": LIMIT}
        move = Move(bed, **back, throttle_bytes_s=SLOW, stall_timeout_s=25)
        servers.wait_for(lambda: bed.admin().in_flight(), 60, "partitions in flight")
        brokers[1].kill()
        halted = move.end()
        assert halted["failed"] and "The throttles are preserved" in halted["msg"], halted
        assert "21 partitions are not sent yet; broker 2 not alive" in halted["msg"], halted
        assert any("broker 3: leader.replication.throttled.rate=100000" in text for text in set_at(bed))
        brokers[1].start()
        admin_bed.ready(brokers)
        # run again without a rate, it goes on with that of the record; another rate is set in flight
        assert bed.move(check=True, **back)["throttle_bytes_s"] == SLOW
        ended = Move(bed, **back, throttle_bytes_s=FAST).end()
        assert ended.get("done") and on(bed, "many", (1, 2)) == MANY and set_at(bed) == [], ended

        # null cancels one beside moves of others; a partition in flight is led elsewhere
        slow = {"throttle_bytes_s": 1000, "wait": False}
        assert not bed.move(partitions=single_move("big", 1, 3), **slow)["done"]
        both = [{"topic": "big", "partition": 0, "replicas": None}, *many(1, 3)[:1]]
        done = bed.move(partitions=both, throttle_bytes_s=FAST)
        assert done["done"] and done["undo"]["partitions"][0] == {"topic": "big", "partition": 0, "replicas": [1, 3]}
        assert on(bed, "big", (1, 2)) == 1 and on(bed, "many", (1, 3)) == 1 and set_at(bed) == [], done
        assert not bed.move(partitions=single_move("big", 1, 3), **slow)["done"]
        led = bed.move(partitions=single_move("big", 3, 2), throttle_bytes_s=FAST, additional=True)
        assert led["done"] and led["results"][0]["state"] == "other way" and on(bed, "big", (3, 2)) == 1, led
        assert set_at(bed) == []

        # throttles that are preserved are named with the command that removes them, and are foreign afterwards
        kept = bed.move(partitions=single_move("big", 1, 2), throttle_bytes_s=FAST, preserve_throttles=True)
        assert kept["done"] and "throttles are preserved. To remove them later: kafka-configs.sh" in str(
            kept["warnings"]
        )
        assert set_at(bed) != [] and not bed.record.exists()
        assert "throttles are set that this host has not set" in bed.move(partitions=single_move("big", 2, 1))["msg"]
        commands = re.search(r"later: (.*?; done)", str(kept["warnings"]))[1]
        run = commands.replace("kafka-configs.sh", " ".join([*servers.java(), "kafka.admin.ConfigCommand"]))
        done = subprocess.run(["sh", "-ec", run], check=False, timeout=300, capture_output=True, text=True)
        assert done.returncode == 0, (commands, done.stdout, done.stderr)
        servers.wait_for(lambda: set_at(bed) == [], 60, "the throttles to be gone")

        # plans: other numbers of replicas, and a cordoned broker
        more = bed.info(replication_factor=3, topics=["many"])
        assert more["copies"]["replicas"] == MANY and more["copies"]["bytes"] > MANY << 19, more["copies"]
        assert "is cordoned" in bed.move(document=more["plan"], cordon=[3])["msg"]
        assert "3 being cordoned" in bed.info(drain=[2], topics=["many"], cordon=[3])["msg"]
        assert bed.move(document=more["plan"], max_in_flight=8)["done"]
        fewer = bed.info(replication_factor=2, topics=["ma*"])
        assert fewer["copies"]["replicas"] == 0
        token = re.search(r"give the token (\w{6})", bed.move(document=fewer["plan"])["msg"])[1]
        assert bed.move(document=fewer["plan"], shrink=token)["done"]
        assert {len(each["replicas"]) for name, each in bed.admin().partitions.items() if name[0] == "many"} == {2}
        assert bed.info(topics=["big"])["reassignments"] == [] and "no topic matches" in bed.info(topics=["bgi"])["msg"]


def test_zookeepers_controller_dies_while_parts_are_sent_and_its_znode_wins():
    with admin_bed.zookeeper("zk-reassign-scale", 3) as (home, connect, brokers):
        dies = json.loads(zk_wire.read_znodes(connect, ["/controller"])["/controller"][0])["brokerid"]
        stays, gets = (number for number in (1, 2, 3) if number != dies)
        bed = Bed(home, [brokers[number - 1] for number in (stays, dies, gets)], zookeeper_connect=connect)
        fill(brokers[0], "many", {number: [stays, dies] for number in range(MANY)}, 1)
        fill(brokers[0], "big", {0: [stays, dies]}, 8)
        move = Move(bed, partitions=many(stays, gets), max_in_flight=LIMIT, stall_timeout_s=120)
        servers.wait_for(lambda: LIMIT <= on(bed, "many", (stays, gets)) < MANY - LIMIT, 120, "a part of the plan")
        brokers[dies - 1].kill()
        ended = move.end()
        assert ended.get("done") and on(bed, "many", (stays, gets)) == MANY and move.most <= LIMIT, ended
        brokers[dies - 1].start()
        admin_bed.ready(brokers)

        # a znode that is there when a controller is elected wins over the request; the new API cancels it
        began = bed.move(partitions=single_move("big", stays, gets), throttle_bytes_s=1000, wait=False)
        assert not began["done"], began
        client = KazooClient(hosts=connect)
        client.start(timeout=10)
        try:
            asked = {"version": 1, "partitions": single_move("big", gets, dies)}
            transaction = client.transaction()
            transaction.create("/admin/reassign_partitions", json.dumps(asked).encode())
            transaction.delete("/controller")
            assert not any(isinstance(result, Exception) for result in transaction.commit())

            def led_by_znode():
                moving = bed.admin().in_flight().get(("big", 0))
                return moving and set(moving["replicas"]) - set(moving["removing"]) == {gets, dies}

            servers.wait_for(led_by_znode, 60, "the znode to win")
            assert "big-0" in bed.info()["legacy"]
            # a later request takes its partition out of the znode
            cancelled = bed.move(state="cancelled")
            # Kafka puts the replicas of the last target first: the order from before the first request is lost
            assert cancelled["done"] and on(bed, "big", (dies, stays)) == 1 and set_at(bed) == [], cancelled
            assert cancelled["results"][0]["wanted"] == [dies, stays]
            assert bed.info()["legacy"] is None and cancelled["undo"]["partitions"][0]["replicas"] == [gets, dies]
        finally:
            client.stop()
            client.close()


@contextlib.contextmanager
def secured():
    """Yield (home, authority, brokers) with an authorizer and SASL over TLS; alice is a super user, bob is not."""
    with servers.workdir("reassign-secured") as home, contextlib.ExitStack() as stack:
        authority = Authority(home / "tls")
        address = HostPort("127.0.0.1", servers.free_port())
        voters = f"3000@{address}"
        keys = {
            **authority.kafka_keys(authority.issue("node", "IP:127.0.0.1")),
            "listener.security.protocol.map": "CONTROLLER:PLAINTEXT,INSIDE:PLAINTEXT,CLIENTS:SASL_SSL",
            "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
            "super.users": "User:ANONYMOUS;User:alice",
        }
        stack.enter_context(servers.kraft_controller(home, 3000, address, voters, keys))
        own = {
            **keys,
            "inter.broker.listener.name": "INSIDE",
            "sasl.enabled.mechanisms": "PLAIN",
            "listener.name.clients.plain.sasl.jaas.config": f'{PLAIN} user_alice="alice-1" user_bob="bob-1";',
        }
        brokers = [
            stack.enter_context(
                servers.kraft_broker(
                    home,
                    number,
                    voters,
                    own,
                    {name: f"127.0.0.1:{servers.free_port()}" for name in ("INSIDE", "CLIENTS")},
                )
            )
            for number in (1, 2)
        ]
        admin_bed.ready(brokers)  # at the listener without security
        yield home, authority, brokers


def test_on_secured_listeners_and_without_the_rights():
    with secured() as (home, authority, brokers):
        fill(brokers[0], "orders", {0: [1]}, 2)

        def user(name):
            plain = {"sasl_mechanism": "PLAIN", "sasl_username": name, "sasl_password": f"{name}-1"}
            return {"security_protocol": "SASL_SSL", "ssl_cafile": authority.cafile, **plain}

        bob = Bed(home, [], client=user("bob"))
        bob.options["bootstrap_servers"] = [str(broker.listeners["CLIENTS"]) for broker in brokers]
        wanted = {"partitions": single_move("orders", 2), "throttle_bytes_s": FAST}
        for refused in (bob.info(), bob.move(**wanted), bob.move(state="cancelled")):
            assert refused["failed"] and "CLUSTER_AUTHORIZATION_FAILED" in refused["msg"], refused
        properties = home / "alice.properties"
        properties.write_text(
            f"security.protocol=SASL_SSL\nsasl.mechanism=PLAIN\nssl.truststore.type=PEM\n"
            f"ssl.truststore.location={authority.cafile}\n"
            f'sasl.jaas.config={PLAIN} username="alice" password="alice-1";\n'
        )

        def grant(words):
            words = [
                {"ADMIN.properties": str(properties), "User:PRINCIPAL": "User:bob"}.get(each, each) for each in words
            ]
            command = [*servers.java(), "kafka.admin.AclCommand", *words]
            done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
            assert done.returncode == 0, done.stdout + done.stderr

        # the commands as they are printed; first the half of them that only reads
        commands = [shlex.split(each) for each in re.findall(r"kafka-acls\.sh (.*?)(?:;| \(QS)", refused["msg"])]
        assert len(commands) == 2, refused["msg"]
        may_alter = {"Alter", "AlterConfigs"}
        for words in commands:
            left = [
                word
                for place, word in enumerate(words)
                if word not in may_alter and not (word == "--operation" and words[place + 1] in may_alter)
            ]
            grant(left)
        servers.wait_for(lambda: not bob.info().get("failed"), 60, "bob may list")
        for options in (wanted, {"partitions": wanted["partitions"]}):
            refused = bob.move(**options)
            assert refused["failed"] and "AUTHORIZATION_FAILED" in refused["msg"], refused
            assert "--operation AlterConfigs" in refused["msg"] and not bob.record.exists(), refused
        assert bob.info()["reassignments"] == [] and set_at(bob) == []
        for words in commands:
            grant(words)
        servers.wait_for(lambda: bob.move(**wanted).get("done"), 60, "bob may move")
        found = bob.move(**wanted)
        assert found["done"] and not found["changed"] and set_at(bob) == [] and not bob.record.exists(), found

        # the metadata leaves out a topic that bob may not describe: its broker would count as empty
        fill(brokers[0], "secret", {0: [1]}, 1)
        address = bob.options["bootstrap_servers"][0]
        deny = ["--deny-principal", "User:bob", "--topic", "secret", "--operation", "Describe"]
        grant(["--bootstrap-server", address, "--command-config", str(properties), "--add", *deny])
        hidden = "may not describe, so no plan can move them: secret-0"
        servers.wait_for(lambda: hidden in bob.info(drain=[1]).get("msg", ""), 60, "secret to be hidden from bob")
        assert bob.info(drain=[2])["plan"]["partitions"] == single_move("orders", 1)


def test_during_a_migration():
    with admin_bed.zookeeper("reassign-migration", 2) as (home, connect, brokers):
        fill(brokers[0], "orders", {0: [1]}, 4)
        with servers.migrating_controllers(home, connect) as migrating:
            bed = Bed(home, brokers, zookeeper_connect=connect)
            for broker in brokers:
                broker.stop()
                broker.configure({**migrating.to_migration, "inter.broker.protocol.version": "3.9"})
                broker.start()

            def stored(path):
                found = zk_wire.read_znodes(connect, [path])[path]
                return json.loads(found[0]) if found else {}

            copied = "the copy of the metadata"
            servers.wait_for(lambda: stored("/migration").get("kraft_metadata_offset", -1) > 0, 90, copied)
            admin_bed.ready(brokers)
            moved = bed.move(partitions=single_move("orders", 2), throttle_bytes_s=FAST)
            assert moved.get("done") and set_at(bed) == [], moved
            in_znode = "the move in /brokers/topics"
            servers.wait_for(lambda: stored("/brokers/topics/orders")["partitions"] == {"0": [2]}, 60, in_znode)
            for broker in brokers:
                broker.stop()
                own = {"process.roles": "broker", "node.id": str(broker.node_id)}
                gone = ("broker.id", "zookeeper.connect", "zookeeper.metadata.migration.enable")
                broker.configure({**own, **dict.fromkeys((*gone, "inter.broker.protocol.version"))})
                broker.start()
            admin_bed.ready(brokers)
            moved = bed.move(partitions=single_move("orders", 1, 2), throttle_bytes_s=FAST, max_in_flight=1)
            assert moved.get("done") and set_at(bed) == [], moved
            servers.wait_for(lambda: stored("/brokers/topics/orders")["partitions"] == {"0": [1, 2]}, 60, in_znode)
