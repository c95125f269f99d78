# Copyright: (c) 2026, Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Run work in a process of its own session, which survives the module that starts it. Standard library only.

The process must not import anything, because Ansible removes a module's files. It keeps the locks that are held when it
begins (flock(2): the child shares the descriptor).
"""

from __future__ import annotations

import os
import signal
from typing import Callable


def begin(work: Callable[[], None]) -> None:
    """Start a process that does the work, and return at once."""
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
