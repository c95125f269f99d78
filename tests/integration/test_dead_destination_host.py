# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Two of three real destination servers are promoted while the third is dead. It returns with its old files, and is
cleaned. The firewall and the worker's orders are in test_cut_worker.py and in the simulation."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import types

import pytest
from ansible_collections.quorumshift.kafka.plugins.module_utils.core.ensemble import ensemble_cut
from ansible_collections.quorumshift.kafka.plugins.module_utils.ensemble import steps
from ansible_collections.quorumshift.kafka.plugins.module_utils.probes.zookeeper import (
    own_zk_server,
    zk_servers,
    zookeeper,
)
from ansible_collections.quorumshift.kafka.plugins.module_utils.settings.addresses import HostPort

from tests import modules
from tests.integration import servers
from tests.integration.test_zk_observer_join import SERVICE

pytestmark = pytest.mark.real
IDS = {"z4": 44, "z5": 45, "z6": 46}
# takes the place of a systemd without units
SYSTEMCTL = "#!/bin/sh\necho ActiveState=inactive\n"


class Host:
    """A destination host on an address of its own."""

    def __init__(self, bed, name: str) -> None:
        self.bed, self.name, self.home = bed, name, bed.home / name
        self.address = HostPort(f"127.0.0.{IDS[name]}", servers.free_port())
        self.config = self.home / "zoo.cfg"
        (self.home / "data").mkdir(parents=True)
        self.config.write_text(
            f"dataDir={self.home}/data\nclientPort={self.address.port}\nclientPortAddress={self.address.host}\n"
            "tickTime=500\ninitLimit=20\nsyncLimit=10\nadmin.enableServer=false\n4lw.commands.whitelist=*\n"
            "standaloneEnabled=false\n"  # the source has one server
        )

    def options(self, **more) -> dict:
        return {
            **{"config_file": str(self.config), "service": self.name, "myid": IDS[self.name]},
            **{"destination_servers": self.bed.servers, "destination_connect": self.bed.connect()},
            **more,
        }

    def cut(self, state: str, **more) -> dict:
        given = {"state": state, "host": self.name, "state_dir": str(self.home / "state"), **more}
        return modules.run("zk_cut", **self.options(**given))

    def join(self, **more) -> dict:
        return modules.run(
            "zk_observer_join",
            **self.options(zookeeper_connect=self.bed.source.connect, join_timeout_s=120, **more),
        )

    def service(self, action: str) -> None:
        modules.subprocess.run([str(self.bed.home / "bin" / "service"), self.name, action], check=True)

    def kill(self) -> None:
        with contextlib.suppress(OSError, ValueError):
            os.kill(int((self.home / "pid").read_text()), signal.SIGKILL)
            servers.wait_for(lambda: not self.mode(), 60, f"{self.name} is down")

    def mode(self):
        return zk_servers.collect([self.address], None, 10)[str(self.address)]["mode"]

    def wait(self, *modes) -> None:
        servers.wait_for(lambda: self.mode() in modes, 120, f"{self.name} serves as {modes}")

    def promote(self, dead) -> None:
        """Do what the worker does between its order to promote and its start."""
        given = self.options(source_addresses=[], brokers=[], dead=dead)
        text = steps.prepare(given)["participants"]
        self.service("stop")
        self.config.write_text(text)

    def values(self):
        return own_zk_server.read_values(str(self.config))


@pytest.fixture
def bed(monkeypatch):
    """A source of one server, and three hosts of the destination."""
    member = f"127.0.0.1:{servers.free_port()}:{servers.free_port()}:participant"
    settings = {"server.11": member, "myid": "11", "standaloneEnabled": "false"}
    with servers.workdir("dead_destination") as home, contextlib.ExitStack() as stack:
        made = types.SimpleNamespace(home=home)
        made.source = stack.enter_context(servers.zookeeper(home, "source", settings))
        made.servers = {
            str(number): f"127.0.0.{number}:{servers.free_port()}:{servers.free_port()}" for number in IDS.values()
        }
        tools = home / "bin"
        tools.mkdir()
        java = " ".join(servers.java(["-Dzookeeper.4lw.commands.whitelist=*"]))
        service = SERVICE.format(home=home, path=os.environ["PATH"], java=java)
        for name, text in (("service", service), ("systemctl", SYSTEMCTL)):
            (tools / name).write_text(text)
            (tools / name).chmod(0o755)
        made.living = ["z4", "z5", "z6"]
        made.connect = lambda: ",".join(str(made.hosts[name].address) for name in made.living) + "/kafka"
        made.hosts = {}
        for name in IDS:
            made.hosts[name] = Host(made, name)
        monkeypatch.setenv("PATH", str(tools))
        with zookeeper.connect(str(made.source.address)) as client:
            client.create("/kafka/brokers", b"before", makepath=True)
        try:
            yield made
        finally:
            for host in made.hosts.values():
                with contextlib.suppress(OSError, ValueError):
                    os.kill(int((host.home / "pid").read_text()), signal.SIGKILL)


def decide(bed, dead, direction="forward", **more) -> dict:
    """Read all hosts that are not dead as the playbook does, and decide."""
    ids = {name: IDS[name] for name in dead}
    read = {name: bed.hosts[name].cut("read", dead=ids) for name in IDS if name not in dead}
    assert not [result for result in read.values() if result.get("failed")], read
    return modules.run(
        "zk_move_state",
        **{"hosts": read, "myids": {name: IDS[name] for name in read}, "direction": direction, "dead": ids},
        **{"destination_servers": bed.servers, "destination_connect": bed.connect(), **more},
    )


def record(host, state, **values) -> None:
    """Note a state of the cut on a host."""
    directory = host.home / "state" / "zk_cut"
    directory.mkdir(parents=True, exist_ok=True)
    (directory / "state").write_text(f"{state}\n")
    text = {"id": "cut1", "steps": [], "reason": "", "last": 1, "brokers_lost": [], "dead": [], **values}
    (directory / "cut.json").write_text(modules.json.dumps(text))


def test_a_destination_goes_on_without_a_dead_host_that_later_returns(bed):
    z4, z5, z6 = bed.hosts.values()
    for host in bed.hosts.values():
        joined = host.join()
        assert joined.get("joined"), (joined, (host.home / "server.log").read_text()[-1500:])
    assert decide(bed, [])["standing"] == "join"
    z6.kill()

    # it must leave the connect string, and a host that answers is not dead
    assert f"zk_migrate_destination_connect={z4.address},{z5.address}/kafka" in decide(bed, ["z6"])["msg"]
    bed.living = ["z4", "z5"]
    assert "z4 is named in zk_migrate_dead_hosts, and answers: 127.0.0.44:" in decide(bed, ["z4"])["msg"]
    with socket.create_server(("127.0.0.46", int(bed.servers["46"].rpartition(":")[2]))):
        answers = decide(bed, ["z6"])["msg"]
    assert "z6 is named in zk_migrate_dead_hosts, and answers: 127.0.0.46:" in answers and "from z4" in answers
    decision = decide(bed, ["z6"])
    assert (decision["standing"], decision["server_ids"], decision["voters"]) == ("join", [44, 45], 3)
    assert not z4.join(dead_ids=[46]).get("changed")

    # two of three elect
    with zookeeper.connect(f"{z4.address}/kafka") as client:
        client.set("/brokers", b"last")
    last = own_zk_server.read_last_zxid(bed_values(bed))
    for host in (z4, z5):
        servers.wait_for(lambda host=host: own_zk_server.read_last_zxid(host.values()) >= last, 60, "it has all writes")
    for host in (z4, z5):
        host.promote({"z6": 46})
    for host in (z4, z5):
        host.service("start")
    for host in (z4, z5):
        host.wait("leader", "follower")
        record(host, ensemble_cut.PROMOTED, dead=["z6"])
    with zookeeper.connect(f"{z4.address},{z5.address}/kafka") as client:
        assert client.get("/brokers")[0] == b"last"
        client.create("/topics", b"of the destination")
    decision = decide(bed, ["z6"])
    assert (decision["standing"], decision["verify"]) == ("served", True)
    assert "served Kafka" in decide(bed, ["z6"], "back")["msg"]

    # it returns with its old files: it is an observer of the source, and the destination does not count it
    z6.service("start")
    z6.wait("observer")
    with zookeeper.connect(f"{z6.address}/kafka") as client:
        assert client.exists("/topics") is None
        assert client.get("/brokers")[0] == b"last"
    leader = z4 if z4.mode() == "leader" else z5
    assert ensemble_cut.count_followers(own_zk_server.ask(leader.values(), "mntr")) == 1
    bed.living = ["z4", "z5", "z6"]
    refused = decide(bed, [])["msg"]
    assert "named dead in this move, and there again with old files: z6 (state none)" in refused
    assert "-e zk_migrate_clean_hosts=z6" in refused
    assert "not clean" in z6.cut("added", id="cut1", zxids={"z6": 1})["msg"]

    # cleaned, it joins the destination
    decision = decide(bed, [], cleaned=["z6"])
    assert (decision["clean"], decision["add"]) == (["z6"], ["z6"])
    cleaned = z6.cut("cleaned")
    assert cleaned["moved"] and cleaned["cut"]["state"] == "none", cleaned
    added = z6.cut("added", id="cut1", zxids={"z6": 1})
    assert added.get("changed") and added["cut"]["state"] == "promoted", added
    with zookeeper.connect(f"{z6.address}/kafka") as client:
        client.sync("/")
        assert client.get("/topics")[0] == b"of the destination"
    servers.wait_for(
        lambda: ensemble_cut.count_followers(own_zk_server.ask(leader.values(), "mntr")) == 2, 60, "two follow"
    )
    assert decide(bed, [])["standing"] == "served"


def bed_values(bed):
    return own_zk_server.read_values(str(bed.source.home / "zoo.cfg"))
