# Copyright: (c) 2026, Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The runs that are made to fail: which playbook, with which variables, on which cluster."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any, NamedTuple

from ansible_collections.quorumshift.kafka.plugins.module_utils.core import gates, restoring, upgrade

from tools.failure_proof.engine import Spawner, output
from tools.failure_proof.world import BROKERS, CLUSTER, IDS, NEW_KAFKA, OLD_KAFKA, World

UNVERIFIED = {"quorumshift_verify": False}


def finalize_token(world: World) -> str:
    """Return the confirmation token of the finalization, as `status` prints it."""
    nodes = {
        name: {"role": "broker" if name in BROKERS else "controller", "metadata_log": world.metadata_log(name)}
        for name in IDS
    }
    return gates.finalize_token({"nodes": nodes, "zookeeper": world.zookeeper()})


BACKUP = hashlib.sha256(b"backup").hexdigest()  # of what the stub of zk_backup writes
UPGRADE = {"upgrade_to": NEW_KAFKA, "upgrade_confirm": upgrade.token(CLUSTER, NEW_KAFKA), "restart_concurrency": 2}


class Scenario(NamedTuple):
    """`after`: the scenarios whose runs come before on the same cluster, without a failure; `cluster`: how it is made
    (World.create)."""

    name: str
    playbook: str
    variables: Mapping[str, Any]
    after: tuple[str, ...] = ()
    cluster: Mapping[str, Any] = {}

    def given(self, world: World) -> dict[str, Any]:
        """Return the extra variables on this world."""
        return {key: value(world) if callable(value) else value for key, value in self.variables.items()}


SCENARIOS = {
    one.name: one
    for one in (
        Scenario("restart", "restart", {"restart_concurrency": 2}),
        Scenario("migrate", "migrate", {"restart_concurrency": 2, **UNVERIFIED}),
        Scenario("finalize", "migrate", {"quorumshift_finalize_token": finalize_token, **UNVERIFIED}, ("migrate",)),
        Scenario("rollback", "rollback", {"quorumshift_rollback_to": "zk", "restart_concurrency": 2, **UNVERIFIED}, ("migrate",)),
        Scenario("restart_kraft", "restart", {"restart_concurrency": 2}, ("migrate", "finalize")),
        Scenario("restore", "restore_zookeeper", {"quorumshift_restore_token": restoring.token(CLUSTER, BACKUP, [])}, ("migrate",)),
        Scenario("reassign", "reassign", {"reassign_drain": 1, "reassign_apply": True}),
        Scenario("zk_migrate", "zk_migrate", {"restart_concurrency": 2, **UNVERIFIED}),
        Scenario("zk_observers", "zk_migrate", {"zk_migrate_cut": False, "restart_concurrency": 2, **UNVERIFIED}),
        Scenario("zk_rollback", "zk_rollback", {"restart_concurrency": 2, **UNVERIFIED}, ("zk_observers",)),
        Scenario("upgrade", "upgrade", UPGRADE, (), {"version": OLD_KAFKA, "protocol": "3.8"}),
        Scenario("upgrade_kraft", "upgrade", UPGRADE, ("migrate", "finalize"), {"metadata_version": 20}),
    )
}


class PreparationFailed(RuntimeError):
    """A run without a failure did not end with exit code 0."""


def prepare(scenario: Scenario, world: World, spawner: Spawner) -> None:
    """Make the cluster on which a scenario begins."""
    world.root.mkdir(parents=True)
    world.create(**scenario.cluster)
    for number, name in enumerate(scenario.after):
        before = SCENARIOS[name]
        code, _seconds = spawner.play(world, f"before{number}", before.playbook, before.given(world))
        if code != 0:
            raise PreparationFailed(f"{scenario.name}: {name} ended with {code}:\n{output(world, f'before{number}')[-3000:]}")
