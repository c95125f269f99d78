# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The check of a cut on a real source whose log does not list the znodes of a session that ends, as before 3.6."""

from __future__ import annotations

import contextlib

import pytest
from ansible_collections.quorumshift.kafka.plugins.module_utils.formats.zookeeper import zk_files
from ansible_collections.quorumshift.kafka.plugins.module_utils.probes.zookeeper import (
    own_zk_server,
    zk_servers,
    zookeeper,
)

from tests import modules
from tests.integration import servers

pytestmark = pytest.mark.real
BROKER = "/prod/kafka/brokers/ids/1"


class Source:
    """An ensemble of one, with a session of Kafka and one of another application."""

    def __init__(self, server, stack) -> None:
        self.server, self.stack = server, stack
        self.config = str(server.home / "zoo.cfg")
        self.sessions = {}
        for name, path in (("kafka", BROKER), ("other", "/other/lock")):
            client = stack.enter_context(contextlib.ExitStack())
            session = client.enter_context(zookeeper.connect(str(server.address)))
            session.create(path, b"x", ephemeral=True, makepath=True)
            self.sessions[name] = (session, client)

    def end(self, name) -> None:
        self.sessions[name][1].close()

    def write(self, path) -> None:
        self.sessions["kafka"][0].set(path, b"y")

    def last(self) -> int:
        return zk_files.last_zxid(*own_zk_server.directories(own_zk_server.read_values(self.config)))

    def run(self, **options) -> dict:
        given = {"zookeeper_connect": f"{self.server.address}/prod/kafka", "config_file": self.config, "timeout": 10}
        return modules.run("zk_cut_check", **{**given, **options})

    def check(self, last, **options) -> dict:
        hosts = {"z4": {"state": "cut", "last": last, "brokers_watched": ["b1:9092"]}}
        return self.run(hosts=hosts, expected=["z4"], left_s=60, **options)


def servers_of(source):
    return zk_servers.collect([source.server.address], None, 10)[str(source.server.address)]


@pytest.fixture
def source():
    member = f"127.0.0.1:{servers.free_port()}:{servers.free_port()}:participant"
    settings = {"server.11": member, "myid": "11", "standaloneEnabled": "false"}
    with servers.workdir("cut_check") as home, contextlib.ExitStack() as stack:
        jvm = ("-Dzookeeper.closeSessionTxn.enabled=false",)
        yield Source(stack.enter_context(servers.zookeeper(home, "source", settings, jvm)), stack)


def test_the_ends_of_sessions_on_a_source_whose_log_lists_no_paths(source):
    read = source.run(state="read")
    assert list(read["owners"]) == [BROKER]
    owners = {"owners": read["owners"], "owners_zxid": read["owners_zxid"]}
    last = source.last()

    source.end("other")  # the end of another application's session is no write of Kafka
    checked = source.check(last, **owners)
    assert checked["zxids"] == {"z4": last} and checked["exact"]
    assert "does not list its znodes" in source.check(last)["msg"]
    unwatched = source.check(last, brokers=["b1:9092", "b2:9092"], **owners)["notes"]
    assert len(unwatched) == 1 and "b2:9092" in unwatched[0]

    source.end("kafka")
    lacking = source.check(last, **owners)
    assert lacking["failed"] and "z4 lacks 1 writes" in lacking["msg"] and BROKER in lacking["msg"]
    assert not source.run(state="promoted", hosts={"z4": {"last": last}}, expected=["z4"]).get("failed")


def test_a_write_after_the_promotion_is_found_until_it_is_accepted(source):
    last = source.last()
    source.write("/prod/kafka/brokers")
    given = {"state": "promoted", "hosts": {"z4": {"last": last}}, "expected": ["z4"]}
    found = source.run(**given)
    assert found["failed"] and f"-e zk_migrate_accepted_zxid={last + 1}" in found["msg"]
    assert not source.run(**given, accepted_zxid=last + 1).get("failed")


def test_a_leader_that_has_no_transaction_yet(source):
    source.server.stop()
    last = source.last()
    source.server.start(lambda: servers_of(source)["mode"] == "leader")
    # sessions that connect again make no transaction, a new leader's zxid is 0 of its epoch until there is one
    checked = source.check(last, owners={}, owners_zxid=last)
    assert checked.get("zxids") == {"z4": last}, checked


def test_without_a_source_host_the_chroot_must_exist(source):
    missing = source.check(1, config_file="", zookeeper_connect=f"{source.server.address}/no/kafka")
    assert missing["failed"] and "/no/kafka does not exist on the source" in missing["msg"]
    behind = source.check(1, config_file="")
    assert behind["failed"] and "z4 is at 0x1" in behind["msg"]
    assert source.check(source.last(), config_file="")["exact"] is False
