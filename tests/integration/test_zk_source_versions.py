# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Real sources of other releases of ZooKeeper, 3.5.8 of Airbnb's paper among them: three servers of 3.8.4 join as
observers, are checked against the source's log, are promoted, and keep znodes, zxids and sessions.

The firewall and the worker's orders are in test_cut_worker.py. Here the source is killed, which cuts as well.
"""

from __future__ import annotations

import contextlib
import os
import shutil

import pytest
from ansible_collections.quorumshift.kafka.plugins.module_utils.probes.zookeeper import (
    own_zk_server,
    zk_servers,
    zookeeper,
)

from tests import modules
from tests.integration import servers, test_dead_destination_host
from tests.integration.test_dead_destination_host import bed, bed_values  # noqa: F401  # pytest finds the fixture here
from tests.system.testbed import jars

pytestmark = pytest.mark.real
BROKER = "/brokers/ids/1"
PATH = os.environ["PATH"]  # the hosts of the fixture have neither java nor Maven


def run_release(source, release):
    """Restart a source without data as another release."""
    source.kill()
    shutil.rmtree(source.home / "data" / "version-2")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PATH", PATH)
        source._command[source._command.index("-cp") + 1] = os.pathsep.join(map(str, jars.resolve_zookeeper(release)))
        source.start(lambda: status(source.address)["mode"] == "leader")


def status(address):
    return zk_servers.collect([address], None, 10)[str(address)]


@pytest.mark.parametrize("release", ["3.5.8", "3.6.3", "3.7.2"])
def test_a_source_of_another_release_is_left(bed, release):  # noqa: F811
    run_release(bed.source, release)
    assert status(bed.source.address)["version"] == [int(part) for part in release.split(".")]
    with zookeeper.connect(bed.source.connect) as client:
        client.create("/kafka/brokers", b"before", makepath=True)
    for host in bed.hosts.values():
        joined = host.join()
        assert joined.get("joined"), (joined, (host.home / "server.log").read_text()[-1500:])
    assert test_dead_destination_host.decide(bed, [])["standing"] == "join"

    with contextlib.ExitStack() as stack:
        broker = stack.enter_context(zookeeper.connect(bed.connect()))
        ended = contextlib.ExitStack()
        other = ended.enter_context(zookeeper.connect(bed.connect()))
        broker.create(BROKER, b"kafka", ephemeral=True, makepath=True)
        other.create("/brokers/ids/2", b"kafka", ephemeral=True)
        session = broker.exists(BROKER).ephemeralOwner
        assert session >> 56 in test_dead_destination_host.IDS.values()

        def check(state, last=None):
            given = {"zookeeper_connect": f"{bed.source.connect}/kafka", "config_file": f"{bed.source.home}/zoo.cfg"}
            if state == "cut":
                hosts = {name: {"state": "cut", "last": zxid} for name, zxid in last.items()}
                owners = {"owners": read["owners"], "owners_zxid": read["owners_zxid"]}
                given.update(hosts=hosts, expected=sorted(hosts), left_s=60, **owners)
            return modules.run("zk_cut_check", state=state, timeout=10, **given)

        read = check("read")
        # The snapshot of a source that never restarted has no znode: the log after it has all
        assert not read.get("failed") and {"/kafka/brokers/ids/1", "/kafka/brokers/ids/2"} <= set(read["owners"]), read
        broker.set("/brokers", b"last")
        zxid = own_zk_server.read_last_zxid(bed_values(bed))
        of_hosts = bed.hosts.values()
        for host in of_hosts:
            servers.wait_for(lambda host=host: own_zk_server.read_last_zxid(host.values()) >= zxid, 60, "all writes")
        last = {host.name: own_zk_server.read_last_zxid(host.values()) for host in of_hosts}
        checked = check("cut", last)
        assert checked.get("zxids") == last and checked["exact"], checked

        # A write, and the end of a session that the destination has: both are missing from what was read before
        ended.close()
        ending = check("cut", last)
        assert ending["failed"] and "/kafka/brokers/ids/2" in ending["msg"], ending
        broker.set("/brokers", b"more")
        for host in of_hosts:
            now = own_zk_server.read_last_zxid(bed_values(bed))
            servers.wait_for(lambda host=host, now=now: own_zk_server.read_last_zxid(host.values()) >= now, 60, "all")
        last = {host.name: own_zk_server.read_last_zxid(host.values()) for host in of_hosts}
        assert check("cut", last).get("zxids") == last

        stat = broker.exists("/brokers")
        bed.source.kill()  # nothing reaches the destination from here on
        for host in of_hosts:
            servers.wait_for(lambda host=host: not host.mode(), 60, f"{host.name} serves no more")
        for host in of_hosts:
            host.promote({})
        for host in of_hosts:
            host.service("start")
        for host in of_hosts:
            host.wait("leader", "follower")
        servers.wait_for(lambda: broker.connected, 60, "the client is connected again")
        assert broker.client_id[0] & (1 << 64) - 1 == session & (1 << 64) - 1
        assert broker.exists(BROKER).ephemeralOwner == session
        assert broker.get("/brokers")[0] == b"more" and broker.exists("/brokers").mzxid == stat.mzxid
        assert broker.exists("/brokers/ids/2") is None
        broker.set("/brokers", b"of the destination")
    assert sorted(host.mode() for host in bed.hosts.values()) == ["follower", "follower", "leader"]
