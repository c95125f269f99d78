# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Play a playbook with the ansible-core that these tests run under."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Sequence

import ansible  # noqa: F401  # a test that plays is no test for managed hosts, whose oldest Python has no Ansible

from tools.checkout import ROOT

PROGRAM = Path(sys.executable).with_name("ansible-playbook")
LIMIT_S = 1800  # for what stands still: a play of all roles includes them one after the other


def play(directory: Path, playbook: Path | str, *words: str) -> subprocess.CompletedProcess:
    """Play on the inventory `directory`/hosts, or on this host if there is none; return what ended, with all output.

    `directory` takes what Ansible keeps. `words` follow on the command line.
    """
    hosts = directory / "hosts"
    inventory = ["-i", str(hosts)] if hosts.exists() else ["-i", "localhost,", "-c", "local"]
    own = {"ANSIBLE_CONFIG": str(ROOT / "ansible.cfg"), "ANSIBLE_HOME": str(directory / "home"), "ANSIBLE_NOCOLOR": "1"}
    return subprocess.run(
        [str(PROGRAM), *inventory, str(playbook), *words],
        cwd=ROOT,
        env={**os.environ, **own},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=LIMIT_S,
        check=False,
    )


def start_play(
    command: Sequence[str], mounts: str = "", path: str = "", unshare: Sequence[str] = ()
) -> subprocess.Popen:
    """Start a command that plays, in a session of its own; its output comes through one pipe.

    `mounts`: shell commands before it, in a mount namespace of its own; `unshare`: that command's further options;
    `path`: a directory that $PATH begins with.
    """
    if mounts:
        command = ["unshare", "--mount", *unshare, "sh", "-c", f"{mounts} && exec {shlex.join(command)}"]
    own = {"ANSIBLE_NOCOLOR": "1", "LC_ALL": "C.UTF-8"}
    if path:
        own["PATH"] = f"{path}:{os.environ['PATH']}"
    return subprocess.Popen(
        command,
        cwd=ROOT,
        env={**os.environ, **own},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )
