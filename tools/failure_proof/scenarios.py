# Copyright: (c) 2026, Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The runs that are made to fail: which playbook, with which variables, on which cluster."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from tools.failure_proof.engine import Spawner, output
from tools.failure_proof.world import World

NO_VERIFICATION = {"quorumshift_verify": False}


class Scenario(NamedTuple):
    """`after`: the scenarios whose runs come before on the same cluster, without a failure."""

    name: str
    playbook: str
    variables: Mapping[str, Any]
    after: tuple[str, ...] = ()

    def given(self, world: World) -> dict[str, Any]:
        """Return the extra variables on this world."""
        return {key: value(world) if callable(value) else value for key, value in self.variables.items()}


SCENARIOS = {
    one.name: one
    for one in (
        Scenario("restart", "restart", {"restart_concurrency": 2}),
    )
}


class PreparationFailed(RuntimeError):
    """A run without a failure did not end with exit code 0."""


def prepare(scenario: Scenario, world: World, spawner: Spawner) -> None:
    """Make the cluster on which a scenario begins."""
    world.root.mkdir(parents=True)
    world.create()
    for number, name in enumerate(scenario.after):
        before = SCENARIOS[name]
        code, _seconds = spawner.play(world, f"before{number}", before.playbook, before.given(world))
        if code != 0:
            raise PreparationFailed(f"{scenario.name}: {name} ended with {code}:\n{output(world, f'before{number}')[-3000:]}")
