# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A server joins a real ensemble of three as an observer, with and without reconfigEnabled there."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal

import pytest
from ansible_collections.quorumshift.kafka.plugins.module_utils.core.ensemble import kafka_writes
from ansible_collections.quorumshift.kafka.plugins.module_utils.formats.zookeeper import zk_files, zk_log
from ansible_collections.quorumshift.kafka.plugins.module_utils.probes.zookeeper import zk_servers, zookeeper
from ansible_collections.quorumshift.kafka.plugins.module_utils.settings import properties
from ansible_collections.quorumshift.kafka.plugins.module_utils.settings.addresses import HostPort

from tests import modules
from tests.integration import servers

pytestmark = pytest.mark.real
SERVICE = """#!/bin/sh
# service NAME start|stop|status, for the servers in {home}
PATH={path}; export PATH
home={home}/$1; pid=$(cat $home/pid 2>/dev/null)
case $2 in
  start) setsid {java} org.apache.zookeeper.server.quorum.QuorumPeerMain $home/zoo.cfg \\
           </dev/null >>$home/server.log 2>&1 & echo $! >$home/pid ;;
  stop) kill $pid; while grep -q . /proc/$pid/cmdline 2>/dev/null; do sleep 0.1; done ;;  # a zombie has stopped
  status) [ -n "$pid" ] && grep -q . /proc/$pid/cmdline 2>/dev/null ;;
esac
"""


@pytest.fixture(scope="module", params=["false", "true"], ids=["static", "reconfig"])
def source(request):
    """Run an ensemble of three; yield its directory and its servers."""
    ports = [(servers.free_port(), servers.free_port()) for _server in range(3)]
    lines = {f"server.{11 + n}": f"127.0.0.1:{q}:{e}:participant" for n, (q, e) in enumerate(ports)}
    with servers.workdir(f"observer_{request.param}") as home, contextlib.ExitStack() as stack:
        ensemble = [
            stack.enter_context(
                servers.zookeeper(
                    home,
                    f"source-{number}",
                    {**lines, "myid": str(number), "reconfigEnabled": request.param},
                    ready=lambda: True,
                )
            )
            for number in (11, 12, 13)
        ]
        addresses = [server.address for server in ensemble]
        servers.wait_for(lambda: leader(addresses), 120, "the source has a leader")
        with zookeeper.connect(connect_of(addresses)) as client:
            client.ensure_path("/prod/kafka/brokers")
        yield home, addresses


def leader(addresses):
    """Return the address of the leader if all others follow it."""
    status = zk_servers.collect(addresses, None, 10)
    leading = [address for address in addresses if status[str(address)]["mode"] == "leader"]
    return leading[0] if leading and all(answer["mode"] for answer in status.values()) else None


def connect_of(addresses):
    return ",".join(map(str, addresses))


class Destination:
    """A server on this machine that `service` starts and stops, and the module's options for it."""

    def __init__(self, home, addresses, number):
        self.home, self.name = home, f"z{number}"
        self.directory = home / self.name
        (self.directory / "data").mkdir(parents=True)
        self.address = HostPort("127.0.0.1", servers.free_port())
        self.config = self.directory / "zoo.cfg"
        self.config.write_text(
            f"# kept\ndataDir={self.directory}/data\nclientPort={self.address.port}\ntickTime=500\ninitLimit=20\n"
            "syncLimit=10\nadmin.enableServer=false\nssl.keyStore.password=changeme1\n"
        )
        self.options = {
            "zookeeper_connect": connect_of(addresses),
            "myid": number,
            "destination_servers": {str(number): f"127.0.0.1:{servers.free_port()}:{servers.free_port()}"},
            "config_file": str(self.config),
            "service": self.name,
            "join_timeout_s": 120,
        }

    def join(self, **options):
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("PATH", str(self.home / "bin"))  # without systemctl
            return modules.run("zk_observer_join", **{**self.options, **options})

    @property
    def version_2(self):
        return str(self.directory / "data" / "version-2")

    @property
    def pid(self):
        return int((self.directory / "pid").read_text())


@pytest.fixture
def destination(source):
    """A destination server without data. At the end it is killed."""
    home, addresses = source
    tools = home / "bin"
    tools.mkdir(exist_ok=True)
    script = tools / "service"
    java = " ".join(servers.java(["-Dzookeeper.4lw.commands.whitelist=*"]))
    script.write_text(SERVICE.format(home=home, path=os.environ["PATH"], java=java))
    script.chmod(0o755)
    number = 44 + sum(1 for path in home.iterdir() if path.name.startswith("z") and path.is_dir())
    made = Destination(home, addresses, number)
    yield made
    with contextlib.suppress(OSError, ValueError):
        os.kill(made.pid, signal.SIGKILL)


def test_joins_catches_up_and_changes_nothing_again(source, destination):
    _home, addresses = source
    before = destination.config.read_text()
    planned = destination.join(_ansible_check_mode=True, _ansible_diff=True)
    assert planned["changed"] and not planned["joined"], planned
    assert destination.config.read_text() == before and not (destination.directory / "data" / "myid").exists()

    done = destination.join(_ansible_diff=True)
    assert done.get("joined") and done["changed"], done
    assert done["diff"] == planned["diff"] and done["files"] == planned["files"]
    assert "changeme1" not in str(done["diff"]) and "changeme1" in destination.config.read_text()
    assert done["zxid"] >= done["leader_zxid"]
    assert destination.config.read_text().startswith("# kept\n")
    reconfigures = "observer_true" in str(destination.home)
    assert [path for path in done["files"] if ".dynamic." in path] != [] if reconfigures else len(done["files"]) == 2
    assert "reconfigEnabled=false" in destination.config.read_text()
    status = zk_servers.collect([destination.address], None, 10)[str(destination.address)]
    assert status["mode"] == "observer"
    pid = destination.pid

    # a write through the observer reaches the source, and its session is of the observer
    with zookeeper.connect(f"{destination.address}/prod/kafka") as client:
        client.create("/brokers/ids", b"")
        path = client.create("/brokers/ids/1", b"", ephemeral=True)
        owner = client.exists(path).ephemeralOwner
        assert owner >> 56 == destination.options["myid"]
        written = client.last_zxid
    with zookeeper.connect(connect_of(addresses)) as client:
        assert client.exists("/prod/kafka/brokers/ids") is not None

    again = destination.join()
    assert again["joined"] and not again["changed"] and again["files"] == [], again
    checked = destination.join(_ansible_check_mode=True)
    assert checked["joined"] and not checked["changed"], checked
    assert destination.pid == pid

    # what the cut will check: the destination's files against the log of a source server
    servers.wait_for(lambda: zk_files.last_zxid(destination.version_2, destination.version_2) > written, 60, "written")
    log = str(destination.home / "source-12" / "data" / "version-2")
    last = {"behind": written - 2, "z": zk_files.last_zxid(destination.version_2, destination.version_2)}
    status = zk_servers.collect(addresses, None, 10)
    cut = status[str(leader(addresses))]["zxid"]
    servers.wait_for(lambda: zk_files.last_zxid(log, log) >= cut, 60, "the follower has logged it")
    logged = zk_files.last_zxid(log, log)
    writes = list(kafka_writes.writes(zk_log.transactions(log, min(last.values()), log), "/prod/kafka"))
    lacking = kafka_writes.find_lacking(writes, last, cut, logged)
    assert lacking["z"].is_complete and not lacking["behind"].is_complete

    # a stopped observer is started, and catches up again
    os.kill(destination.pid, signal.SIGKILL)
    with zookeeper.connect(connect_of(addresses)) as client:
        client.set("/prod", b"meanwhile")
    restarted = destination.join()
    assert restarted["changed"] and restarted["joined"] and restarted["files"] == [], restarted
    assert destination.pid != pid

    # a configuration of an older version of the source is replaced, and the running observer restarted
    present, pid = destination.config.read_text(), destination.pid
    if reconfigures:
        version = next(path for path in done["files"] if ".dynamic." in path)
        shutil.copy(version, f"{destination.config}.dynamic.1")
        destination.config.write_text(present.replace(version, f"{destination.config}.dynamic.1"))
    else:
        kept = [line for line in present.splitlines() if not line.startswith("server.13")]
        destination.config.write_text("\n".join(kept) + "\n")
    renewed = destination.join()
    assert renewed["joined"] and renewed["files"] == [str(destination.config)], renewed
    assert destination.pid != pid
    assert properties.parse(destination.config.read_bytes()) == properties.parse(present.encode())

    # files of its own ensemble are not mixed with the source's
    destination.config.write_text(before)
    foreign = destination.join()
    assert foreign["failed"] and "this host is no observer of the source" in foreign["msg"], foreign


def test_each_precondition_is_named_at_once(source, destination):
    _home, _addresses = source
    with open(destination.config, "a") as config:
        config.write("syncEnabled=false\nlocalSessionsEnabled=true\n")
    before = destination.config.read_text()
    number = 7
    failed = destination.join(
        myid=number,
        destination_servers={"7": "0.0.0.0:2888:3888", "11": "10.0.0.1:2888:3888"},
        source_settings={"z1": {"jute.maxbuffer": "4194304", "authProvider.sasl": "x"}},
        timeout=1,
    )
    for text in (
        "the id 11 is of a source server as well",
        "destination_servers has server 7 at 0.0.0.0",
        "syncEnabled is false",
        "localSessionsEnabled is true",
        "-Djute.maxbuffer=4194304",
        "authProvider.sasl differs",
    ):
        assert text in failed["msg"], failed
    assert destination.config.read_text() == before and not (destination.directory / "pid").exists()


def test_a_standalone_source_is_refused(source, destination):
    home, _addresses = source
    with servers.zookeeper(home, f"alone-{destination.name}") as alone:
        failed = destination.join(zookeeper_connect=alone.connect)
    assert "is standalone" in failed["msg"] and "standaloneEnabled=false" in failed["msg"], failed
