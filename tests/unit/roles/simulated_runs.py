# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Play runs on a simulated cluster that fail in ways in which no module call fails by itself:
python -m tests.unit.roles.simulated_runs DIRECTORY. Prints JSON: {case: [{playbook, code, output, ...} of each run]}.

The failure proof (tools.failure_proof) has the failures of module calls.
"""

from __future__ import annotations

import errno
import json
import os
import sys
from pathlib import Path
from unittest import mock

from tools.failure_proof import engine

TOGETHER = {"restart_concurrency": 2, "quorumshift_verify": False}
# Case: the runs, each a playbook with its variables
CASES = {
    "reverted": [("migrate", TOGETHER), ("status", {})],
    "full_disk": [("restart", TOGETHER), ("status", {})],
    "no_controllers": [("restart", {**TOGETHER, "restart_roles": "controller"})],
    "fact_cache": [("restart", TOGETHER), ("zk_migrate", {**TOGETHER, "zk_migrate_cut": False})],
}
FULL_AT = "Restart the brokers"  # the step of which the control node cannot journal the begin


def main(directory: str) -> int:
    """Play the cases."""
    home = Path(directory).resolve()
    os.environ.update(ANSIBLE_CACHE_PLUGIN="jsonfile", ANSIBLE_CACHE_PLUGIN_CONNECTION=str(home / "facts"))
    engine.prepare(home)
    from ansible_collections.quorumshift.kafka.plugins.module_utils.worker import auto_revert
    from ansible_collections.quorumshift.kafka.plugins.plugin_utils import base
    from ansible_collections.quorumshift.kafka.plugins.plugin_utils.run_artifacts import RunArtifacts

    from tools.failure_proof import boundary
    from tools.failure_proof.world import World

    os.chdir(engine.ROOT)
    # A process of its own for each run, as by ansible-playbook
    base.process_mark = lambda: f"run-{boundary.Run.token}"
    patches = {
        "reverted": [
            mock.patch.object(World, "start", start_b2_badly(World.start)),
            # whether the initial copy has begun is read from ZooKeeper, on the host
            mock.patch.object(auto_revert, "_read_zookeeper", lambda _unit, _values: {}),
            mock.patch.object(auto_revert.revert_conditions, "check_under_kraft", lambda _seen: None),
            mock.patch.object(auto_revert.revert_conditions, "check_copy_at_hand", lambda *_given: None),
        ],
        "full_disk": [mock.patch.object(RunArtifacts, "note", fill_disk(RunArtifacts.note))],
    }
    found = {}
    for case, runs in CASES.items():
        world = World(home / case)
        world.root.mkdir()
        world.create()
        found[case] = []
        for number, (playbook, variables) in enumerate(runs):
            for patch in patches.get(case, []) if number == 0 else []:
                patch.start()
            found[case].append(played(world, f"{number}-{playbook}", playbook, variables))
            mock.patch.stopall()
        locks = world.root.glob("hosts/*/state/*/*/run_lock.json")
        found[case][0]["locks"] = [json.loads(path.read_text()) for path in locks]
        found[case][0]["registered"] = sorted(world.state()["log"]["brokers"])
    print(json.dumps(found))
    return 0


def start_b2_badly(start):
    """Return World.start, but b2 registers and ends in migration mode."""
    from ansible_collections.quorumshift.kafka.plugins.module_utils.core.migration import kraft_config
    from ansible_collections.quorumshift.kafka.plugins.module_utils.settings import properties

    def started(world, name):
        mode = kraft_config.mode_at_next_start(properties.parse(world.config_file(name).read_bytes()))
        if (name, mode) != ("b2", "zk_migration"):
            return start(world, name)
        with world.changing() as state:
            state["services"][name].update(active=False, mode=None)
            state["log"]["brokers"]["2"] = {"incarnation_id": "ended", "is_migrating_zk_broker": True}
        return None

    return started


def fill_disk(note):
    """Return RunArtifacts.note, but the disk is full from the begin of a step on."""

    def noted(artifacts, kind, name, *given, **more):
        full = Path(artifacts.cluster) / "full"
        if name == "step begun" and more["step"] == FULL_AT:
            full.touch()
        if full.exists():
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), artifacts.journal)
        return note(artifacts, kind, name, *given, **more)

    return noted


def played(world, name: str, playbook: str, variables: dict) -> dict:
    """Play a playbook in a fork; return its exit code and its output."""
    output = world.root / f"output-{name}.txt"
    code, _seconds = engine.forked(
        lambda: engine.play(world, name, playbook, variables), output, 120, engine.shown(world, name)
    )
    return {"playbook": playbook, "code": code, "output": output.read_text(errors="replace")}


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
