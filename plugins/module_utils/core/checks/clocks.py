# Copyright: (c) 2026, Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Hazards: clocks."""

from __future__ import annotations

from typing import Iterable

from .facts import Facts, Finding

WARNS_S = 1
# The times of restarts tell how long a cluster has soaked, what a log says of this start, and when a delegation token
# expires on whichever controller leads. Half a minute is more than a clock with any synchronisation is ever off by.
BLOCKS_S = 30


def clocks(facts: Facts) -> Iterable[Finding]:
    """All clocks agree, as far as the time can tell that it took to read them."""
    apart = {host: one for host, one in ahead_s(facts).items() if abs(one) >= WARNS_S}
    # When every host is off in the same direction, it is the control node that is.
    if len(apart) > 1 and len(apart) == len(ahead_s(facts)) and len({one > 0 for one in apart.values()}) == 1:
        least = min(apart.values(), key=abs)
        yield Finding(
            f"the control node's clock is {abs(least):.1f} s {'behind' if least > 0 else 'ahead of'} every host's",
            "set it: `timedatectl` shows whether it is synchronised",
            warns=abs(least) < BLOCKS_S,
        )
        apart = {host: one - least for host, one in apart.items() if abs(one - least) >= WARNS_S}
    for host, one in sorted(apart.items()):
        yield Finding(
            f"the clock of {host} is {abs(one):.1f} s {'ahead' if one > 0 else 'behind'}",
            "synchronise it: `timedatectl` on the host shows whether it is, chrony or ntpd keep it so",
            warns=abs(one) < BLOCKS_S,
        )


def ahead_s(facts: Facts) -> dict[str, float]:
    """Return by how many seconds at least each host's clock is ahead of the control node's (negative: behind).

    A host read its clock between two readings of the control node's (`asked`), so what lies between them proves
    nothing.
    """
    reported = {}
    for host, node in facts.cluster["nodes"].items():
        if node.get("asked"):
            before, after = node["asked"]
            reported[host] = max(0.0, node["time"] - after) or min(0.0, node["time"] - before)
    return reported
