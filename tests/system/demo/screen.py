# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Parse what a run prints: the status screen with phase and next command, and Ansible's recap. Pure."""

from __future__ import annotations

import re
import shlex
from datetime import datetime, timezone
from typing import NamedTuple


class StatusScreen(NamedTuple):
    """The last status screen of a run.

    `leader`: node id of the quorum's leader; `command`: the argv of the next command; `soak_until`: the end of the soak
    before it, in epoch seconds. None if the screen shows none.
    """

    cluster_id: str
    phase: str
    gates: list[str]
    command: list[str] | None
    soak_until: float | None
    leader: int | None


class Recap(NamedTuple):
    """One host's line of Ansible's recap."""

    ok: int
    changed: int
    unreachable: int
    failed: int


_TITLE = re.compile(r"^Cluster (\S+): ([a-z_]+)$", re.MULTILINE)
_GATES = re.compile(r"^  gates passed: (.*)$", re.MULTILINE)
_NEXT = re.compile(r"^  next: .*\n {8}(ansible-playbook .*)$", re.MULTILINE)
_SOAK = re.compile(r"^  next: soak until (\S+ \S+) UTC", re.MULTILINE)
_LEADER = re.compile(r"^  quorum: leader (\d+),", re.MULTILINE)
_RECAP = re.compile(r"^(\S+)\s+: ok=(\d+)\s+changed=(\d+)\s+unreachable=(\d+)\s+failed=(\d+)", re.MULTILINE)
_COLOUR = re.compile(r"\x1b\[[0-9;]*m")


def read(output: str) -> StatusScreen | None:
    """Return the last status screen in the output, None if there is none."""
    output = _COLOUR.sub("", output)
    titles = list(_TITLE.finditer(output))
    if not titles:
        return None
    screen = output[titles[-1].start() :]
    gates = _GATES.search(screen)
    command = _NEXT.search(screen)
    soak = _SOAK.search(screen)
    leader = _LEADER.search(screen)
    return StatusScreen(
        cluster_id=titles[-1][1],
        phase=titles[-1][2],
        gates=[name for name in gates[1].split(", ") if " " not in name] if gates else [],
        command=shlex.split(command[1]) if command else None,
        soak_until=_epoch(soak[1]) if soak else None,
        leader=int(leader[1]) if leader else None,
    )


def recap(output: str) -> dict[str, Recap]:
    """Return each host's line of the last recap, {} if there is none."""
    output = _COLOUR.sub("", output)
    begun = output.rfind("PLAY RECAP")
    if begun < 0:
        return {}
    return {line[1]: Recap(*map(int, line.groups()[1:])) for line in _RECAP.finditer(output, begun)}


def _epoch(text: str) -> float:
    return datetime.strptime(text, "%Y-%m-%d %H:%M:%S").replace(tzinfo=timezone.utc).timestamp()
