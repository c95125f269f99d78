# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Wait for a condition, and do something meanwhile."""

from __future__ import annotations

import contextlib
import threading
import time
from typing import Callable, Iterator


@contextlib.contextmanager
def meanwhile(work: Callable[[threading.Event], None]) -> Iterator[None]:
    """Run `work` in a thread; set the event that it is given when the block ends."""
    over = threading.Event()
    thread = threading.Thread(target=work, args=(over,), daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join(30)


def nth(count: int, text: str) -> Callable[[str], bool]:
    """Return a `kill_when` that is true at the `count`th line that contains `text`."""
    seen = []

    def is_nth(line: str) -> bool:
        if text in line:
            seen.append(line)
        return len(seen) >= count

    return is_nth


def wait_for(condition: Callable[[], object], seconds: float, what: str) -> object:
    """Return the first true value of `condition`. Raise TimeoutError that names `what`."""
    deadline = time.monotonic() + seconds
    while True:
        value = condition()
        if value:
            return value
        if time.monotonic() > deadline:
            raise TimeoutError(f"waited {seconds:g} s for {what}")
        time.sleep(0.2)
