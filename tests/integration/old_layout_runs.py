# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Run every scenario of the failure proof on hosts of which one has files of an earlier version; print as JSON what
came of it: `python -m tests.integration.old_layout_runs DIRECTORY`. A process of its own, since the proof's engine
replaces parts of Ansible.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from tools.failure_proof import engine

LEFT_ON = "b1"
# Where an earlier version kept them: beside the directory of the node
RECORD = {"id": "r0/restart_broker/b1", "run": "r0", "kind": "restart_broker", "mode": "zk", "service": "kafka"}
RECORD.update(steps=[{"name": "begun", "at": 1.0}, {"name": "stop", "at": 2.0}], outcome=None, earlier={})


def main(directory: str) -> None:
    """Run them one after the other."""
    engine.prepare(Path(directory) / "home")
    from tools.failure_proof.scenarios import SCENARIOS
    from tools.failure_proof.world import World

    spawner, found = engine.Spawner(), {}
    try:
        for scenario in SCENARIOS.values():
            world = World(Path(directory) / scenario.name)
            world.root.mkdir()
            world.create(**scenario.cluster)
            found[scenario.name] = run(world, scenario, spawner)
    finally:
        spawner.end()
    print(json.dumps(found))


def run(world: Any, scenario: Any, spawner: engine.Spawner) -> dict[str, Any]:
    """Run a scenario's playbook beside the record; return its exit code and output, and what changed on which host."""
    from tools.failure_proof import boundary
    from tools.failure_proof.world import CLUSTER

    cluster = world.state_dir(LEFT_ON) / CLUSTER
    cluster.mkdir(exist_ok=True)
    record = {**RECORD, "config_file": str(world.config_file(LEFT_ON))}
    (cluster / "restart.json").write_text(json.dumps(record))
    code, _seconds = spawner.play(world, "run", scenario.playbook, scenario.given(world))
    calls = [call for call in boundary.read_calls(world, "run") if call["at"] == "end"]
    return {
        "code": code,
        "text": " ".join(engine.output(world, "run").split()),
        "changed": [f"{call['module']} on {call['target']}" for call in calls if call["mutated"]],
        "kept": json.loads((cluster / "restart.json").read_text()) == record,
    }


if __name__ == "__main__":
    main(sys.argv[1])
