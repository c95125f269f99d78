# Copyright: (c) 2026, Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A worker that nothing on the way can cut: a process of its own session. Standard library only.

It goes on with what is loaded, because Ansible removes a module's files behind it. Locks that are held when it begins
are held until it ends (flock(2): a descriptor is shared with the child).
"""

from __future__ import annotations

import os
import signal
from typing import Callable


def begin(work: Callable[[], None]) -> None:
    """Let a process of its own do the work, and return at once."""
    if os.fork():
        return
    try:
        os.setsid()
        signal.signal(signal.SIGHUP, signal.SIG_IGN)
        null = os.open(os.devnull, os.O_RDWR)
        for handle in (0, 1, 2):
            os.dup2(null, handle)
        work()
    finally:
        os._exit(0)
