# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The playbook `quorum` on real controllers and brokers: from a static quorum to a dynamic one, and controllers that
are added, replaced, removed and unregistered."""

from __future__ import annotations

import contextlib
import os
import re

import pytest
from ansible_collections.quorumshift.kafka.plugins.module_utils.settings import properties
from ansible_collections.quorumshift.kafka.plugins.module_utils.settings.addresses import HostPort
from ansible_collections.quorumshift.kafka.plugins.module_utils.wire import kafka_wire

from tests.integration import admin_bed, servers
from tests.integration.service_manager import ManagedRuns, Manager

pytestmark = [
    pytest.mark.real,
    pytest.mark.skipif(os.geteuid() != 0, reason="a mount namespace needs root"),
]
VOTERS, BOOTSTRAP = "controller.quorum.voters", "controller.quorum.bootstrap.servers"


@contextlib.contextmanager
def static_quorum(name, release, monkeypatch, brokers=1):
    """Yield (home, controllers, brokers, runs) of a static quorum of three of a release of Kafka."""
    monkeypatch.setenv("QUORUMSHIFT_KAFKA_LIBS", str(servers.libs_of(release)))
    with servers.workdir(name) as home, contextlib.ExitStack() as stack:
        addresses = [HostPort("127.0.0.1", servers.free_port()) for _number in range(3)]
        voters = ",".join(f"{101 + number}@{address}" for number, address in enumerate(addresses))
        controllers = stack.enter_context(servers.kraft_controllers(home, addresses))
        started = [stack.enter_context(servers.kraft_broker(home, 1 + number, voters)) for number in range(brokers)]
        admin_bed.ready(started)
        manager = stack.enter_context(Manager(home, [*controllers, *started]))
        yield home, controllers, started, ManagedRuns(home, controllers, started, manager, "quorum")


def described(controllers):
    found = kafka_wire.describe_quorum_any([controller.address for controller in controllers]).quorum
    assert found, "no leader"
    return found


def file_of(server):
    return properties.parse((server.home / "server.properties").read_bytes())


def command_of(said):
    """Return the variables of the command that the playbook printed."""
    shown = re.search(r"To make it: ansible-playbook -i INVENTORY quorumshift\.kafka\.quorum ((?:-e \S+ ?)+)", said)
    assert shown, said
    return dict(text.split("=", 1) for text in re.findall(r"-e (\S+)", shown[1]))


def test_from_static_to_dynamic(monkeypatch):
    with static_quorum("quorum-dynamic", "4.1.1", monkeypatch) as (_home, controllers, brokers, runs):
        code, said = runs.run()
        assert code == 0, said
        assert re.search(r"static, kraft\.version 0 \(supported by every node: 0 to 1\), leader 10\d", said), said
        assert "files: static on b1, c101, c102, c103" in said and runs.locks() == {}

        code, said = runs.run(quorum_to="dynamic")
        assert code == 0 and "kraft.version rises from 0 to 1, and Kafka never lowers it" in said, said
        given = command_of(said)
        assert given["quorum_confirm"].startswith(f"{servers.CLUSTER_ID}:")
        code, said = runs.run(**{**given, "quorum_confirm": f"{servers.CLUSTER_ID}:ffffff"})
        assert code == 2 and "QS-QUORUM-001" in said and described(controllers).voters[0].directory_id is None, said
        assert all(lock["closed"] for lock in runs.locks().values())

        code, said = runs.run(**given)
        assert code == 0, said
        found = described(controllers)
        assert all(voter.directory_id for voter in found.voters) and len(found.voters) == 3
        at = ",".join(str(controller.address) for controller in controllers)
        for server in (*controllers, *brokers):
            assert VOTERS not in file_of(server) and file_of(server)[BOOTSTRAP] == at
        stops = [unit for action, unit, _at in runs.manager.calls if action == "stop"]
        assert sorted(stops) == ["broker-1", "controller-101", "controller-102", "controller-103"]
        assert stops[-1] == "broker-1", "controllers before brokers"

        code, said = runs.run(**given)
        assert code == 0 and "nothing would change" in said and len(runs.manager.calls) == 8, said
        assert re.search(r"localhost : ok=\d+ changed=0", said), said
