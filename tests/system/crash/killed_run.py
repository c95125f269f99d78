# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Run a playbook whose control process is killed: python -m tests.system.crash.killed_run [--seed N] [OPTION ...].

As a command, it kills one run of `playbooks/migrate.yml` on the testbed at a random moment, with each OPTION given to
ansible-playbook. The next run continues from there: molecule's scenario `default` does so.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import random
import re
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Mapping, Sequence

from tests.system.testbed import control_process
from tests.system.testbed.layout import INVENTORY, ROOT

LOG = ROOT / "build" / "crash-tests" / "killed_run.log"
LIMIT_S = 900
POLL_S = 0.1
# Seconds after the run has printed the phase; before that it only reads. The initial copy comes later.
MOMENTS_S = (0.5, 60.0)
PHASE = re.compile(r"^    cluster \S+, phase (\w+);", re.MULTILINE)


def environment() -> dict[str, str]:
    """Return the environment of every run."""
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    return {**os.environ, "PATH": path, "PYTHONPATH": str(ROOT), "ANSIBLE_NOCOLOR": "1"}


def play(arguments: Sequence[str], log: Path, more: Mapping[str, str], moment: float | None) -> int:
    """Run `ansible-playbook` with these arguments until it ends, or is killed; return its exit code.

    It is killed `moment` seconds after it has printed the phase, and at LIMIT_S. `more`: variables of its environment.
    Its workers are killed with it.
    """
    marked = control_process.mark()
    with log.open("wb") as out:
        process = subprocess.Popen(
            ["ansible-playbook", "-i", str(INVENTORY), *arguments],
            cwd=ROOT,
            env={**environment(), **marked, **more},
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=out,
            start_new_session=True,
        )
        try:
            _wait(process, log, moment)
        finally:
            control_process.kill(marked)  # also the workers that a crash point has left
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
        return process.wait()


def _wait(process: subprocess.Popen, log: Path, moment: float | None) -> None:
    """Wait until the run ends, or until its moment or its limit."""
    limit = time.monotonic() + LIMIT_S
    while process.poll() is None and time.monotonic() < limit:
        if moment and PHASE.search(log.read_text(encoding="utf-8", errors="replace")):
            limit, moment = min(limit, time.monotonic() + moment), None
        time.sleep(POLL_S)


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.system.crash.killed_run", description=__doc__)
    parser.add_argument("--seed", type=int, default=int(time.time()), help="seed of the moment")
    given, options = parser.parse_known_args(arguments)
    moment = random.Random(given.seed).uniform(*MOMENTS_S)
    LOG.parent.mkdir(parents=True, exist_ok=True)
    code = play(["playbooks/migrate.yml", *options], LOG, {}, moment)
    output = LOG.read_text(encoding="utf-8", errors="replace")
    tasks = re.findall(r"^TASK \[(.*?)\] \*+$", output, re.MULTILINE)
    at = f"{moment:.1f} s after the phase (seed {given.seed}), in the task {tasks[-1] if tasks else 'none'}"
    if code != -signal.SIGKILL or not PHASE.search(output):
        print(f"the run was to be killed {at}, and ended with exit code {code}:\n{output[-2000:]}", file=sys.stderr)
        return 1
    print(f"killed {at}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
