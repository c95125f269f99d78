# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Commands on the testbed's hosts, as root, also where the collection logs in as another user."""

from __future__ import annotations

import subprocess

from tests.system.testbed.layout import SSH_KEY

OPTIONS = (
    "StrictHostKeyChecking=no",
    "UserKnownHostsFile=/dev/null",
    "LogLevel=ERROR",
    "ControlMaster=auto",
    "ControlPersist=60s",
)


class HostError(subprocess.CalledProcessError):
    """A command that failed on a host."""

    def __str__(self) -> str:
        return f"{' '.join(self.cmd)} ended with {self.returncode}: {self.output}{self.stderr}"


def options(own: bool = False) -> list[str]:
    """Return the options of ssh and scp; `own`: for a new connection, not a shared one."""
    given = (*(("ControlPath=none",) if own else ()), *OPTIONS, "ConnectTimeout=60")
    return ["-i", str(SSH_KEY), *(part for option in given for part in ("-o", option))]


def argv(address: str, *command: str, own: bool = False) -> list[str]:
    """Return the argv that runs a command on the host with this address."""
    return ["ssh", *options(own), f"root@{address}", *command]


def run(address: str, *command: str, check: bool = True, timeout_s: float = 180) -> str:
    """Run a command on a host; return its output. Raise HostError if it fails, TimeoutExpired."""
    done = subprocess.run(
        argv(address, *command),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=timeout_s,
        check=False,
    )
    if check and done.returncode:
        raise HostError(done.returncode, [address, *command], done.stdout, done.stderr)
    return done.stdout.strip()
