# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The runs that are made to fail: which playbook, with which variables, on which cluster."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any, NamedTuple

from ansible_collections.quorumshift.kafka.plugins.module_utils.core.admin import upgrade
from ansible_collections.quorumshift.kafka.plugins.module_utils.core.ensemble import zk_clients
from ansible_collections.quorumshift.kafka.plugins.module_utils.core.gates import gates
from ansible_collections.quorumshift.kafka.plugins.module_utils.core.rollback import restore_plan

from tools.failure_proof import stubs
from tools.failure_proof.world import BACKUP, BROKERS, CLUSTER, IDS, NEW_KAFKA, OLD_KAFKA, World


def finalize_token(world: World) -> str:
    """Return the confirmation token of the finalization, as `status` prints it."""
    nodes = {
        name: {"role": "broker" if name in BROKERS else "controller", "metadata_log": world.metadata_log(name)}
        for name in IDS
    }
    return gates.finalize_token({"nodes": nodes, "zookeeper": world.zookeeper()})


UPGRADE = {"upgrade_to": NEW_KAFKA, "upgrade_confirm": upgrade.token(CLUSTER, NEW_KAFKA), "restart_concurrency": 2}


RESTORE = restore_plan.token(CLUSTER, hashlib.sha256(BACKUP).hexdigest(), [])
ARCHIVES = {server: stubs.archive_of(host) for host, server in stubs.ENSEMBLE.items()}
DECOMMISSION = {
    "quorumshift_zookeeper_connect": ",".join(stubs.ENSEMBLE.values()) + "/kafka",
    "decommission_interval_s": 0,
    "decommission_token": zk_clients.token(CLUSTER, ARCHIVES, []),
}
VERIFIED = {"restart_concurrency": 2}  # the calls of the verification are the same before each gate
TOGETHER = {"restart_concurrency": 2, "quorumshift_verify": False}


OF_SIMULATION = ("restart_concurrency", "quorumshift_verify")
"""Variables that an operator would have in the inventory: a printed command does not repeat them."""


class Scenario(NamedTuple):
    """`cluster`: how the cluster is made (World.create)."""

    name: str
    playbook: str
    variables: Mapping[str, Any]
    cluster: Mapping[str, Any] = {}

    def given(self, world: World) -> dict[str, Any]:
        """Return the extra variables on this world."""
        return {key: value(world) if callable(value) else value for key, value in self.variables.items()}


SCENARIOS = {
    scenario.name: scenario
    for scenario in (
        Scenario("migrate", "migrate", TOGETHER),
        Scenario(
            "finalize", "migrate", {"quorumshift_finalize_token": finalize_token, **VERIFIED}, {"phase": "dual_write"}
        ),
        Scenario("rollback", "rollback", {"quorumshift_rollback_to": "zk", **TOGETHER}, {"phase": "dual_write"}),
        Scenario("rollback_hybrid", "rollback", {"quorumshift_rollback_to": "zk", **TOGETHER}, {"phase": "hybrid"}),
        Scenario("restart", "restart", TOGETHER),
        Scenario("restart_kraft", "restart", TOGETHER, {"phase": "finalized"}),
        Scenario("upgrade", "upgrade", UPGRADE, {"version": OLD_KAFKA, "protocol": "3.8"}),
        Scenario("upgrade_kraft", "upgrade", UPGRADE, {"phase": "finalized", "metadata_version": 20}),
        Scenario("reassign", "reassign", {"reassign_drain": 1, "reassign_apply": True}),
        Scenario(
            "features",
            "features",
            {"features_upgrade_to": "3.9", "features_apply": True},
            {"phase": "finalized", "metadata_version": 20},
        ),
        Scenario(
            "quorum",
            "quorum",
            {"quorum_to": "dynamic", "quorum_apply": True, "quorum_confirm": stubs.QUORUM_TOKEN, **TOGETHER},
            {"phase": "finalized"},
        ),
        Scenario(
            "restore_zookeeper",
            "restore_zookeeper",
            {"quorumshift_restore_token": RESTORE, **TOGETHER},
            {"phase": "hybrid"},
        ),
        Scenario("decommission", "decommission_zookeeper", DECOMMISSION, {"phase": "finalized", "ensemble": True}),
        Scenario("zk_migrate", "zk_migrate", VERIFIED),
        Scenario("zk_migrate_dead", "zk_migrate", {"zk_migrate_dead_hosts": "d3", **TOGETHER}),
        Scenario("zk_rehearse", "zk_migrate", {"zk_migrate_rehearse": True, **TOGETHER}),
        Scenario("zk_mark", "zk_migrate", {"zk_migrate_source_data": "marked", **TOGETHER}),
        Scenario("zk_rollback", "zk_rollback", TOGETHER, {"observers": True, "accepted": ("d1",)}),
    )
}


class PreparationFailed(RuntimeError):
    """A run without a failure did not end with exit code 0."""
