# Copyright: (c) 2026, Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A host's claim of one cluster: taken under the host's lock, which a turn holds while it is at work.

So a claim never changes in the middle of a turn, and a turn that has the lock and sees its own claim may act until
it gives the lock back. Standard library only.
"""

from __future__ import annotations

import os
from typing import Mapping

from . import host_state
from .core import run_lock as phase_result


class RunLockError(RuntimeError):
    """A claim that this run may not take, or does not hold; the text is for the operator."""


def read(path: str) -> dict | None:
    """Return the claim in a host's directory, None without one, {"error": ...} for one that cannot be read."""
    return host_state.read_json(os.path.join(path, host_state.RUN_LOCK))


def take(path: str, wanted: Mapping, seen: Mapping | None) -> dict:
    """Write the claim `wanted` into a host's directory and return it.

    It takes the place of a claim with a lower number; where `seen` is given (the arbiter, {number, run} or {} for
    none), only of that very one. Raises ClaimError when another run was faster or the file cannot be read,
    host_state.Held while a turn is at work.
    """
    with host_state.locked(path):
        stands = read(path) or {}
        if stands.get("error"):
            raise RunLockError(stands["error"])
        if (stands.get("number"), stands.get("run")) == (wanted["number"], wanted["run"]):
            return stands
        moved = seen is not None and (stands.get("number"), stands.get("run")) != (seen.get("number"), seen.get("run"))
        if moved or stands.get("number", 0) >= wanted["number"]:
            raise RunLockError(f"{phase_result.holder(stands)} was faster: this run has changed nothing")
        host_state.write_json(os.path.join(path, host_state.RUN_LOCK), wanted)
        reported = {key: wanted.get(key) for key in ("number", "direction", "target", "excluded", "user", "host")}
        host_state.note(
            path, "locked", wanted["run"], **reported, over=stands.get("run") if not stands.get("closed") else None
        )
    return dict(wanted)


def close(path: str, run: str, how: str) -> bool:
    """Close this run's claim in a host's directory; `how` it ended goes into the journal. Says whether it was open."""
    stands = read(path) or {}
    if stands.get("run") != run or stands.get("closed"):
        return False
    with host_state.locked(path):
        host_state.write_json(os.path.join(path, host_state.RUN_LOCK), {**stands, "closed": True, "how": how})
        host_state.note(path, "ended", run, how=how)
    return True


def require(path: str, run: str) -> None:
    """Raise ClaimError unless the claim in a host's directory is this run's, and open. To be called under the lock."""
    stands = read(path) or {}
    if stands.get("run") == run and not stands.get("closed"):
        return
    if stands.get("error"):
        raise RunLockError(stands["error"])
    raise RunLockError(
        f"this host is locked by {phase_result.holder(stands)}" if stands else "this host is not locked by this run"
    )
