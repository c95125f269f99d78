# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The playbook `decommission_zookeeper` on a KRaft cluster and a real ensemble of three servers, to the last one.

All hosts are this machine. The playbook runs in a mount namespace of its own, where a script takes the place of
systemd: it stops the real servers.
"""

from __future__ import annotations

import contextlib
import json
import os
import pathlib
import re
import shlex
import subprocess

import pytest
from kazoo.client import KazooClient

from tests.integration import admin_bed, servers
from tests.integration.test_reassign_playbook import Runs
from tests.playbook import PROGRAM, start_play

pytestmark = [
    pytest.mark.real,
    pytest.mark.skipif(os.geteuid() != 0, reason="a mount namespace needs root"),
]
ROOT = pathlib.Path(__file__).resolve().parents[2]
HOSTS = ("127.0.0.1", "127.0.0.2", "127.0.0.3")
SYSTEMCTL = """#!/bin/sh
# systemctl show UNIT ... | --no-block stop UNIT | anything else: done
alive() { case "$(sed 's/.*) //' /proc/$1/stat 2>/dev/null)" in ''|Z*) return 1 ;; esac; }
case "$1" in
show)
  pid=$(cat HOME/units/$2 2>/dev/null) || { echo LoadState=not-found; exit 0; }
  echo LoadState=loaded
  if alive $pid; then echo ActiveState=active; echo MainPID=$pid; else echo ActiveState=inactive; echo MainPID=0; fi
  echo DropInPaths=$(ls /etc/systemd/system/$2.d/*.conf 2>/dev/null) ;;
--no-block)
  echo "$2 $3" >> HOME/stops
  kill $(cat HOME/units/$3) ;;
esac
"""


class Ends(Runs):
    """Runs the playbook over a cluster with an ensemble."""

    def __init__(self, home, controller, brokers, ensemble):
        super().__init__(home, controller, brokers)
        (home / "bin").mkdir()
        (home / "units").mkdir()
        (home / "etc").mkdir()
        script = home / "bin" / "systemctl"
        script.write_text(SYSTEMCTL.replace("HOME", str(home)))
        script.chmod(0o755)
        for server in ensemble:
            (home / "units" / f"{server.name}.service").write_text(str(server.pid))
        self.ensemble = ensemble
        self.groups["all"]["vars"]["quorumshift_zookeeper_connect"] = (
            ",".join(str(server.address) for server in ensemble) + "/kafka"
        )
        self.groups["all"]["vars"]["decommission_interval_s"] = 1
        self.groups["all"]["children"]["zookeeper"] = {
            "hosts": {
                server.name: {
                    "quorumshift_zookeeper_config_file": str(server.home / "zoo.cfg"),
                    "quorumshift_state_dir": str(home / server.name / "state"),
                    "decommission_service": server.name,
                }
                for server in ensemble
            }
        }
        self.write()

    def begin(self, *words, **more):
        command = [str(PROGRAM), "-i", str(self.inventory), "-e", json.dumps(more), *words]
        mounts = (
            "mount -t tmpfs none /run && mkdir -p /run/systemd/system /run/lock && "
            f"mount --bind {shlex.quote(str(self.home / 'etc'))} /etc/systemd && mkdir -p /etc/systemd/system"
        )
        return start_play(command, mounts, str(self.home / "bin"))

    def run(self, *words, **more):
        """Run the playbook to its end; return (exit code, output)."""
        process = self.begin(*(words or ("playbooks/decommission_zookeeper.yml",)), **more)
        text = process.communicate(timeout=900)[0]
        print(f"--- {words} {more}: {process.returncode}\n{text}")
        return process.returncode, " ".join(text.split())

    def workers(self):
        found = subprocess.run(["pgrep", "-f", "QuorumPeerMain"], capture_output=True, text=True, check=False)
        return super().workers() - set(found.stdout.split())

    def record(self, server):
        path = self.home / server.name / "state" / servers.CLUSTER_ID / "zk_decommission.json"
        return json.loads(path.read_text()) if path.exists() else None

    def alive(self):
        """Return the names of the servers that run."""
        return [server.name for server in self.ensemble if server._process.poll() is None]


@contextlib.contextmanager
def cluster():
    """Yield the runs on a KRaft cluster, whose id the ensemble has too."""
    with admin_bed.kraft("decommission", 1) as (home, controller, brokers), contextlib.ExitStack() as stack:
        ports = {host: (servers.free_port(host), servers.free_port(host)) for host in HOSTS}
        common = {f"server.{1 + at}": f"{host}:{ports[host][0]}:{ports[host][1]}" for at, host in enumerate(HOSTS)}
        ensemble = [
            stack.enter_context(
                servers.zookeeper(home, f"z{1 + at}", {**common, "myid": str(1 + at)}, host=host, ready=lambda: True)
            )
            for at, host in enumerate(HOSTS)
        ]
        with client(ensemble[0]) as first:
            first.create("/kafka/cluster/id", identity(), makepath=True)
            first.ensure_path("/kafka/brokers/ids")
        yield Ends(home, controller, brokers, ensemble)


def identity():
    return json.dumps({"version": "1", "id": servers.CLUSTER_ID}).encode()


@contextlib.contextmanager
def client(server):
    running = KazooClient(hosts=server.connect, timeout=10)
    running.start(timeout=60)
    try:
        yield running
    finally:
        running.stop()
        running.close()


def test_from_the_first_list_to_the_last_server():
    with cluster() as runs:
        one = runs.ensemble[0]

        # Weeks before: who uses it
        with client(one) as old:
            old.create("/solr/live_nodes/s1", b"", ephemeral=True, makepath=True)
            code, text = runs.run("playbooks/zookeeper_clients.yml")
            assert code == 0 and "1 address uses ZooKeeper" in text and "owns /solr/live_nodes/s1" in text
            code, text = runs.run()
            assert code and "QS-ZKSTOP-003" in text and "QS-ZKSTOP-004" in text and "owns /solr/live_nodes/s1" in text
            assert runs.record(one) is None and len(runs.alive()) == 3

        # Check mode makes no archive
        accepted = {"decommission_accept_paths": "/solr"}
        code, text = runs.run("playbooks/decommission_zookeeper.yml", "--check", **accepted)
        assert code == 0 and "the run would archive the data of z1, z2, z3" in text
        assert len(re.findall(r"z\d : ok=\d+ changed=1", text)) == 3
        assert runs.record(one) is None and len(runs.alive()) == 3

        # Without the token: archives, and the token
        code, text = runs.run(**accepted)
        token = re.search(r"decommission_token=(\S+?:[0-9a-f]{6})", text)
        assert code == 0 and token and len(runs.alive()) == 3
        assert {lock["closed"] for lock in runs.locks().values()} == {True}
        archives = [runs.record(server)["archive"] for server in runs.ensemble]
        assert {archive["cluster_id"] for archive in archives} == {servers.CLUSTER_ID}
        for archive in archives:
            assert pathlib.Path(archive["path"]).stat().st_mode & 0o777 == 0o600 and archive["znodes"] > 5
        code, text = runs.run(**accepted)
        assert code == 0 and token[1] in text, "the same data have the same token"

        # Another token, other accepted paths, and a client that comes back
        code, text = runs.run(**accepted, decommission_token=f"{servers.CLUSTER_ID}:000000")
        assert code and "QS-ZKSTOP-008" in text and len(runs.alive()) == 3
        code, text = runs.run(decommission_token=token[1])
        assert code and "QS-ZKSTOP-004" in text and len(runs.alive()) == 3
        with client(runs.ensemble[2]):
            code, text = runs.run(**accepted, decommission_token=token[1])
            assert code and "QS-ZKSTOP-003" in text and len(runs.alive()) == 3

        # Check mode with the token stops nothing
        code, text = runs.run(
            "playbooks/decommission_zookeeper.yml", "--check", **accepted, decommission_token=token[1]
        )
        assert code == 0 and len(runs.alive()) == 3

        # Killed once a server is stopped, it goes on with the same token
        killed = runs.begin("playbooks/decommission_zookeeper.yml", **accepted, decommission_token=token[1])
        servers.wait_for(lambda: len(runs.alive()) < 3, 300, "the first server is stopped")
        runs.kill(killed)
        servers.wait_for(lambda: not runs.workers(), 60, "no process of the killed run is left")
        assert runs.alive(), "it was killed before its end"
        code, text = runs.run(**accepted, decommission_token=token[1])
        assert code == 0 and runs.alive() == []
        assert (
            "move the archive" in text and "remove the group zookeeper" in text and "/solr is in the archives" in text
        )
        assert [runs.record(server)["state"] for server in runs.ensemble] == ["stopped"] * 3
        assert all((server.home / "data" / "version-2").is_dir() for server in runs.ensemble), "nothing is deleted"
        assert sorted((runs.home / "etc" / "system").glob("*/*")) and {
            lock["closed"] for lock in runs.locks().values()
        } == {True}

        # Run again, it has nothing to do
        code, text = runs.run(**accepted, decommission_token=token[1])
        assert code == 0 and not re.search(r"changed=[1-9]", text)


def test_another_clusters_ensemble_and_wrong_hosts():
    with cluster() as runs:
        two = runs.groups["all"]["children"]["zookeeper"]["hosts"]["z2"]
        own = dict(two)

        def refused(ids, **changes):
            two.update(changes)
            runs.write()
            code, text = runs.run()
            two.clear()
            two.update(own)
            runs.write()
            assert code and ids in text and len(runs.alive()) == 3, text

        refused("QS-ZKSTOP-005", decommission_service="z1")  # the unit of another server
        refused("QS-ZKSTOP-005", decommission_service="no-such-unit")
        # two hosts with the same server, and one server without a host
        refused("QS-ZKSTOP-005", quorumshift_zookeeper_config_file=str(runs.ensemble[0].home / "zoo.cfg"))
        with client(runs.ensemble[0]) as other:
            other.set("/kafka/cluster/id", b'{"version":"1","id":"AAAAAAAAAAAAAAAAAAAAAA"}')
        refused("QS-PHASE-004")
        with client(runs.ensemble[0]) as other:
            other.set("/kafka/cluster/id", identity())
        # A server that is down is no server that was stopped
        runs.ensemble[2].kill()
        code, text = runs.run()
        assert code and "QS-ZKSTOP-002" in text
