# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A broker whose id ZooKeeper generated starts in every mode, and Kafka rejects its id without the other changes."""

from __future__ import annotations

import pathlib

import pytest
from ansible_collections.quorumshift.kafka.plugins.module_utils.core.migration import kraft_config
from ansible_collections.quorumshift.kafka.plugins.module_utils.probes.node import node, own_log
from ansible_collections.quorumshift.kafka.plugins.module_utils.wire import kafka_wire

from tests.integration import servers

pytestmark = pytest.mark.real
GENERATED = 1001
STOPPED = {"manager": "systemd", "name": "kafka.service", "active": False, "main_pid": 0, "masked": False}


def facts(server):
    file = str(server.home / "server.properties")
    return node.collect("broker", file, "none", "key", str(server.home / "state"), "", log_file=str(server.log))


def rejected(server, changes):
    """Return the last error in the log of a broker that does not start with these changes."""
    before = dict(server.properties)
    server.configure(changes)
    with pytest.raises(RuntimeError, match="exited with"):
        server.start()
    error = own_log.read_last_error(str(server.log), STOPPED)
    server.configure({**dict.fromkeys(server.properties), **before})
    return error


def test_a_generated_id_is_kept_in_every_mode():
    with servers.workdir("generated_ids") as home, servers.zookeeper(home) as ensemble:
        connect = f"{ensemble.connect}/kafka"
        with servers.zk_broker(home, GENERATED, connect, {"broker.id": None}) as server:
            assert facts(server)["node_id"] == GENERATED  # from meta.properties
            assert kraft_config.own_id(server.properties) is None
            with servers.migrating_controllers(home, connect) as quorum:
                server.stop()
                written = {"broker.id": str(GENERATED)}
                assert kraft_config.rejects_own_id({**server.properties, **written})
                assert "not greater than reserved.broker.max.id" in rejected(server, written)
                flag = {**quorum.to_migration, **written}
                assert "not greater than reserved.broker.max.id" in rejected(server, flag)

                plain = dict(server.properties)
                voters = quorum.to_migration["controller.quorum.voters"]
                changes = kraft_config.to_migration_mode(plain, GENERATED, voters, "CONTROLLER", "PLAINTEXT", {})
                server.configure(changes)
                assert not kraft_config.rejects_own_id(server.properties)
                server.start()
                assert kafka_wire.api_versions(server.address, timeout=5).api_keys

                def copied():
                    log = node.read_metadata_log(str(pathlib.Path(server.home) / "data" / node.METADATA_LOG))
                    return (log or {}).get("zk_migration_state") == "MIGRATION"

                servers.wait_for(copied, 90, "the initial copy")
                server.stop()
                server.configure(kraft_config.to_kraft_mode(server.properties, GENERATED))
                assert "broker.id" not in server.properties
                server.start()
                assert facts(server)["node_id"] == GENERATED


def test_the_file_from_before_migration_mode_starts_the_broker_with_its_generated_id():
    """A rollback restores it, or a revert by the worker."""
    with servers.workdir("generated_ids_back") as home, servers.zookeeper(home) as ensemble:
        connect = f"{ensemble.connect}/kafka"
        with servers.zk_broker(home, GENERATED, connect, {"broker.id": None}) as server:
            before = dict(server.properties)
            with servers.migrating_controllers(home, connect) as quorum:
                server.stop()
                voters = quorum.to_migration["controller.quorum.voters"]
                changes = kraft_config.to_migration_mode(before, GENERATED, voters, "CONTROLLER", "PLAINTEXT", {})
                server.configure(
                    {**changes, "controller.quorum.voters": "199@127.0.0.1:1"}
                )  # no quorum: nothing copied
                server.start()
                server.stop()
            server.configure({key: before.get(key) for key in kraft_config.own_keys_of_migration_mode({})})
            assert server.properties == before
            server.start()
            assert facts(server)["node_id"] == GENERATED
