# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whether brokers answer clients as fast as before the restarts. Pure.

A cluster in which every replica is in sync may still keep its clients waiting: a broker that has just started compiles
its code, loads groups and transactions, and takes back connections, while the others serve its partitions.
"""

from __future__ import annotations

from typing import Dict, List, Mapping, Union

FACTOR = 2.0
FLOOR_S = 0.1
"""Less is not waited for: an idle broker answers within a millisecond, and twice that is no figure to wait for."""

Latencies = Dict[str, Union[float, None]]
"""By host of a broker, the seconds that its answers took; None: it gave none in time."""


def explain_slow(before: Mapping[str, float | None], now: Mapping[str, float | None], factor: float) -> List[str]:
    """Return which brokers answer clients later than `factor` times as late as `before` the restarts, as sentences.

    A broker that is not in `before` is held against the slowest one there: it did not run, and the others did its work.
    One that gave no answer before the restarts either, such as of a release without these requests, is not waited for.
    """
    known = [seconds for seconds in before.values() if seconds is not None]
    reasons = []
    for host, seconds in sorted(now.items()):
        was = before.get(host)
        was = max(known, default=0.0) if was is None else was
        limit = max(factor * was, FLOOR_S)
        if seconds is None and before.get(host, 0.0) is None:
            continue
        if seconds is None:
            reasons.append(f"{host} gives clients no answer in time (QS-GATE-014)")
        elif seconds > limit:
            reasons.append(
                f"{host} takes {seconds:.2f} s to answer a client, {was:.2f} s before the restarts. Awaited: at most "
                f"{limit:.2f} s (QS-GATE-014)"
            )
    return reasons
