# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The files of this host's cut, `<state_dir>/zk_cut/`. A worker does the work, each step at an order of the run.

state       one word of core.ensemble.ensemble_cut, replaced under `lock`; heal.sh reads and writes it too
cut.json    what the worker did and saw
order.json  the newest order, {id, name, ...}
verified    exists once a run has verified the destination
taken_back.json  {hosts: those that were dead when this host's promotion was taken back, and may have accepted it}
zoo.cfg.observer  zoo.cfg before the promotion
moves.json  {moves: how many runs began to move brokers}
heal.sh     undoes cut and fence unless the host was promoted; a timer of systemd runs it at the deadline
fence.sh    fences again before the server starts, while a promotion is under way

Standard library only.
"""

from __future__ import annotations

import os
import time
from typing import Any, Mapping

from ansible_collections.quorumshift.kafka.plugins.module_utils.core.ensemble import ensemble_cut
from ansible_collections.quorumshift.kafka.plugins.module_utils.core.ensemble.cut_host import NONE, POLL_S
from ansible_collections.quorumshift.kafka.plugins.module_utils.files import safe_files
from ansible_collections.quorumshift.kafka.plugins.module_utils.host import host_state, service

STATE, RECORD, ORDER, LOCK, VERIFIED = "state", "cut.json", "order.json", "lock", "verified"
OBSERVER = "zoo.cfg.observer"
HEAL, FENCE, TAKEN_BACK, MOVES = "heal.sh", "fence.sh", "taken_back.json", "moves.json"


def path_of(given: Mapping[str, Any]) -> str:
    """Return the directory of this host's cut."""
    return os.path.join(given["state_dir"], ensemble_cut.DIRECTORY)


def read_state(directory: str) -> str:
    """Return the state in the file, NONE without one."""
    try:
        return safe_files.read(os.path.join(directory, STATE)).decode().strip()
    except FileNotFoundError:
        return NONE


def is_worker_running() -> bool:
    """Return whether a worker runs."""
    return service.is_running(f"{ensemble_cut.UNIT}.service")


def read_record(directory: str) -> dict:
    return host_state.read_json(os.path.join(directory, RECORD)) or {}


def read_order(directory: str) -> dict:
    return host_state.read_json(os.path.join(directory, ORDER)) or {}


def read_moves(directory: str) -> int:
    """Return how many runs began to move brokers, as noted on this host."""
    return int((host_state.read_json(os.path.join(directory, MOVES)) or {}).get("moves") or 0)


def read_taken_back_without(directory: str) -> list:
    """Return the hosts that were dead when this host's promotion was taken back."""
    return list((host_state.read_json(os.path.join(directory, TAKEN_BACK)) or {}).get("hosts") or ())


def is_verified(directory: str) -> bool:
    return os.path.exists(os.path.join(directory, VERIFIED))


def wait_state(directory: str, wanted: tuple, seconds: float) -> str:
    """Wait until the state is one of `wanted`; return the state."""
    deadline = time.monotonic() + seconds
    while True:
        seen = read_state(directory)
        if seen in wanted or time.monotonic() >= deadline:
            return seen
        time.sleep(POLL_S)
