# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Run a playbook on a simulated cluster (tools.failure_proof) as ansible-playbook would: python -m
tests.unit.callback.simulated DIRECTORY PLAYBOOK [VARIABLES AS JSON]. The callback is ANSIBLE_STDOUT_CALLBACK's."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

from tools.failure_proof import engine


def main(directory: str, playbook: str, variables: str = "{}") -> int:
    """Run it, and return the exit code."""
    home = Path(directory).resolve()
    shown = os.environ.pop("ANSIBLE_STDOUT_CALLBACK", "default")
    log = os.environ.pop("ANSIBLE_LOG_PATH", "")
    engine.prepare(home)
    from ansible import constants
    from ansible.utils import display

    from tools.failure_proof.world import World

    constants.DEFAULT_STDOUT_CALLBACK = shown
    if log:  # as Ansible's display does where the path is known from the beginning
        display.logger = display.logging.getLogger("ansible")
        handler = display.logging.FileHandler(log)
        display.logger.addHandler(handler)
        display.logger.setLevel(display.logging.INFO)
    world = World(home / "world")
    world.root.mkdir()
    world.create()
    os.chdir(engine.ROOT)
    given = {"quorumshift_artifacts_dir": str(home / "artifacts"), **json.loads(variables)}
    code = engine.play(world, "run", playbook, given, forked=True)
    sys.stdout.flush()
    return code


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
