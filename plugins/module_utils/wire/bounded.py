# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Run a call that has no timeout of its own: at its deadline it is left in its thread."""

from __future__ import annotations

import threading
from typing import Callable, List, Tuple, TypeVar

Result = TypeVar("Result")


class TimedOut(Exception):
    """The call did not end in time; its thread goes on."""


def run(call: Callable[[], Result], seconds: float) -> Result:
    """Return the result of `call`, or raise what it raises. Raises TimedOut after `seconds`."""
    outcome: List[Tuple[Result | None, BaseException | None]] = []

    def work() -> None:
        try:
            outcome.append((call(), None))
        except BaseException as error:
            outcome.append((None, error))

    worker = threading.Thread(target=work, daemon=True)
    worker.start()
    worker.join(max(0.0, seconds))
    if not outcome:
        raise TimedOut
    result, error = outcome[0]
    if error is not None:
        raise error
    return result  # type: ignore[return-value]
