# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The pause of restarts on a host: while `<state_dir>/pause` exists, no restart of a node of this host begins.

The file is on the host, not on the control node: it is the same for a run in a container, on another control node, or
by another user. Its first line says why. `touch` is enough: its path has no
cluster's id.
"""

from __future__ import annotations

import os
import time

from ansible_collections.quorumshift.kafka.plugins.module_utils.facts import Pause

NAME = "pause"
_POLL_S = 0.5
_SHOWN = 200  # characters of its first line


def read(state_dir: str) -> Pause | None:
    """Return the pause of this host, None where restarts may begin. What cannot be read is a pause."""
    path = os.path.join(state_dir, NAME)
    try:
        since = os.lstat(path).st_mtime
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        return {"path": path, "since": 0.0, "why": f"it cannot be read: {error.strerror}"}
    why = ""
    if os.path.isfile(path):  # a pipe would never be read to its end
        try:
            with open(path, encoding="utf-8", errors="replace") as stream:
                why = stream.readline(_SHOWN).strip()
        except OSError:
            pass
    return {"path": path, "since": since, "why": why}


def await_end(state_dir: str, timeout_s: float) -> Pause | None:
    """Wait until restarts may begin on this host; return the pause that is still there after `timeout_s`."""
    deadline = time.monotonic() + timeout_s
    paused = read(state_dir)
    while paused and time.monotonic() < deadline:
        time.sleep(_POLL_S)
        paused = read(state_dir)
    return paused
