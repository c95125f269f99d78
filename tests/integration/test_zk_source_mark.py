# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Kafka's old data at the source of a move: once it is marked, no broker finds a cluster there. Real servers."""

from __future__ import annotations

import contextlib

import pytest
from ansible_collections.quorumshift.kafka.plugins.module_utils.core.ensemble import source_mark
from ansible_collections.quorumshift.kafka.plugins.module_utils.formats.zookeeper import zk_files, znodes
from ansible_collections.quorumshift.kafka.plugins.module_utils.probes.zookeeper import own_zk_server, zookeeper

from tests import modules
from tests.integration import admin_bed, servers

pytestmark = pytest.mark.real
CHROOT = "/prod/kafka"
MARK = f"{CHROOT}{source_mark.PATH}"
SOURCE_ID, DESTINATION_ID = 3, 11


def ensemble_of_one(home, name, number):
    """Run a server that is an ensemble: it leads, and its id is in its sessions."""
    member = f"127.0.0.1:{servers.free_port()}:{servers.free_port()}:participant"
    settings = {f"server.{number}": member, "myid": str(number), "standaloneEnabled": "false"}
    return servers.zookeeper(home, name, settings)


def read(server, path):
    """Return (data, ACL) of a znode, None without it."""
    with zookeeper.connect(str(server.address)) as client:
        return (client.get(path)[0], client.get_acls(path)[0]) if client.exists(path) else None


def test_a_broker_with_the_old_connect_string_ends():
    with contextlib.ExitStack() as stack:
        home = stack.enter_context(servers.workdir("source_mark"))
        source = stack.enter_context(ensemble_of_one(home, "source", SOURCE_ID))
        destination = stack.enter_context(ensemble_of_one(home, "destination", DESTINATION_ID))
        broker = stack.enter_context(servers.zk_broker(home, 1, f"{source.connect}{CHROOT}"))
        own = read(source, f"{CHROOT}/cluster/id")[0]
        with zookeeper.connect(destination.connect) as client:  # in place of the copy that the move makes
            client.create(f"{CHROOT}/cluster/id", own, makepath=True)
        before = {path: read(source, f"{CHROOT}{path}") for path in (source_mark.CLUSTER_ID, source_mark.BROKER_IDS)}

        def run(state, check=False, **changes):
            options = {
                "state": state,
                "source_connect": f"{source.connect}{CHROOT}",
                "zookeeper_connect": f"{destination.connect}{CHROOT}",
                "destination_servers": {DESTINATION_ID: "127.0.0.1:2888:3888"},
                "bootstrap_servers": str(broker.address),
                "cluster_id": znodes.cluster_id(own),
                "wait_s": 0,
                **changes,
            }
            return admin_bed.run("zk_source_mark", check, **options)

        def written():
            return read(source, MARK), *(read(source, f"{CHROOT}{path}") for path in before)

        # Not while a broker is registered there, never on the destination, and not for another cluster
        refused = run("marked")
        assert refused["failed"] and "brokers 1 are registered on the source" in refused["msg"], refused
        broker.stop()
        swapped = run("marked", source_connect=f"{destination.connect}{CHROOT}")
        assert swapped["failed"] and "is a server of the destination" in swapped["msg"], swapped
        reversed_ = run(
            "marked",
            source_connect=f"{destination.connect}{CHROOT}",
            zookeeper_connect=f"{source.connect}{CHROOT}",
        )
        assert reversed_["failed"] and "which is none of the destination" in reversed_["msg"], reversed_
        foreign = run("marked", cluster_id="x" * 22)
        assert foreign["failed"] and "the brokers have xxx" in foreign["msg"], foreign
        assert written() == (None, *before.values())

        last = zk_files.last_zxid(*own_zk_server.directories(own_zk_server.read_values(f"{source.home}/zoo.cfg")))
        dry = run("marked", check=True)
        assert dry["changed"] and "MOVED_TO_127.0.0.1" in dry["diff"]["after"] and written() == (None, *before.values())
        marked = run("marked")
        assert marked["changed"] and marked["shown_id"] == f"MOVED_TO_{destination.connect}", marked
        assert not run("marked")["changed"]
        copied = read(destination, f"{CHROOT}/cluster/id")
        assert copied[0] == own and read(destination, MARK) is None

        # The mark is no write of a client that still uses the source; the next one is
        def check_source():
            given = {"state": "promoted", "hosts": {"z": {"last": last}}, "expected": ["z"]}
            where = {"zookeeper_connect": f"{source.connect}{CHROOT}", "config_file": f"{source.home}/zoo.cfg"}
            return modules.run("zk_cut_check", **given, **where)

        assert not check_source().get("failed"), check_source()

        # A broker of this cluster, and one with empty directories
        with pytest.raises(RuntimeError, match="exited with"):
            broker.start()
        assert broker.printed("Invalid cluster.id in") and broker.printed(marked["shown_id"]), broker.tail()
        empty = servers.zk_broker(home, 2, f"{source.connect}{CHROOT}")
        with pytest.raises(RuntimeError, match="exited with"):
            stack.enter_context(empty)
        log = (home / "broker-2" / "server.log").read_text()
        assert "NoAuth" in log, log
        assert read(source, f"{CHROOT}/brokers/ids/2") is None

        with zookeeper.connect(source.connect) as client:
            client.create(f"{CHROOT}/config/topics/made-by-a-tool", b"{}")
        late = check_source()
        assert late["failed"] and "wrote to the source after the promotion" in late["msg"], late

        # And back
        unmarked = run("unmarked")
        assert unmarked["changed"] and written() == (None, *before.values())
        assert not run("unmarked")["changed"]
        broker.start()
