# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""ZooKeeper as the comparison reads it: from followers, at a pace, and from files whose log is in another directory."""

from __future__ import annotations

import contextlib
import json

import pytest
from ansible_collections.quorumshift.kafka.plugins.module_utils.probes.zookeeper import zk_servers, zookeeper
from quorumshift_spark.normal_form import Digests
from quorumshift_spark.views import Statement, ViewError
from quorumshift_spark.views.zookeeper import ZooKeeperFilesView, ZooKeeperView

from tests.integration import servers

pytestmark = pytest.mark.real
DIGESTS = Digests(b"0123456789abcdef0123456789abcdef")


def write(connect, topics):
    """Create topics of one partition below /kafka."""
    with zookeeper.connect(connect) as client:
        for number in topics:
            topic = {"version": 3, "topic_id": "Qs7KfZk2TIK1n0nQ5Qm3Tw", "partitions": {"0": [1]}}
            path = f"/kafka/brokers/topics/t{number}"
            client.create(path, json.dumps(topic).encode(), makepath=True)
            state = {"controller_epoch": 1, "leader": 1, "version": 1, "leader_epoch": 0, "isr": [1]}
            client.create(f"{path}/partitions/0/state", json.dumps(state).encode(), makepath=True)
        return client.last_zxid


def read(view):
    """Return the number of partitions, and the state of each part."""
    partitions, states = 0, []
    for part in view.parts():
        for item in view.read(part):
            if isinstance(item, Statement):
                states.append(item.state)
            elif hasattr(item, "num_rows"):
                partitions += item.num_rows
    return partitions, states


def test_followers_are_read_and_the_leader_is_the_last_resort():
    with servers.workdir("zookeeper_view") as home, contextlib.ExitStack() as stack:
        ports = [servers.free_port() for _unused in range(6)]
        members = {f"server.{n + 1}": f"127.0.0.1:{ports[2 * n]}:{ports[2 * n + 1]}" for n in range(3)}
        ensemble = []
        for number in range(3):
            settings = {"myid": str(number + 1), **members}
            waits = {"ready": lambda: True} if not ensemble else {}  # the second one makes the quorum
            ensemble.append(stack.enter_context(servers.zookeeper(home, f"zk{number}", settings, **waits)))
        connect = ",".join(server.connect for server in ensemble)
        write(connect, range(20))
        view = ZooKeeperView(f"{connect}/kafka", None, DIGESTS, max_latency_ms=100)
        modes = {
            str(server.address): zk_servers.collect([server.address], None, 5)[str(server.address)]["mode"]
            for server in ensemble
        }
        leader = next(name for name, mode in modes.items() if mode == "leader")
        orders = {view._followers_first() for _time in range(30)}
        assert len(orders) == 2 and all(order.endswith(f",{leader}/kafka") for order in orders)
        partitions, states = read(view)
        assert partitions == 20 and sum(state["pace"]["znodes"] for state in states) > 40
        # Without its followers the leader is read: it needs one of them for its quorum
        next(server for server in ensemble if modes[str(server.address)] == "follower").kill()
        assert read(ZooKeeperView(f"{connect}/kafka", None, DIGESTS))[0] == 20


def test_files_are_read_where_the_log_has_a_directory_of_its_own_and_must_be_current():
    with servers.workdir("zookeeper_files_view") as home:
        logs = home / "logs"
        logs.mkdir()
        with servers.zookeeper(home, settings={"dataLogDir": str(logs), "snapCount": "1000000"}) as server:
            zxid = write(server.connect, range(30))
            data = str(server.home / "data")

            def files(**options):
                return ZooKeeperFilesView(data, "/kafka", DIGESTS, **options)

            assert read(ZooKeeperView(f"{server.connect}/kafka", None, DIGESTS))[0] == 30
            partitions, states = read(files(log_directory=str(logs), at_least=zxid))
            assert partitions == 30 and {state["zxid"] >= zxid for state in states} == {True}
            with pytest.raises(
                ViewError, match=f"end at zxid 0x[0-9a-f]+, the ensemble was at {zxid + (1 << 32):#x} before"
            ):
                read(files(log_directory=str(logs), at_least=zxid + (1 << 32)))
            with pytest.raises(ViewError, match=r"(no snapshot|end at zxid)"):
                read(files(at_least=zxid))
            # A written znode is seen although the last reading is kept
            view = files(log_directory=str(logs))
            view.probe()
            write(server.connect, [99])
            key = ("topic", '["t99"]')
            assert view.reread([key])[0][key].fields["id"]
