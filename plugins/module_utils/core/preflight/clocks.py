# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Checks of clocks."""

from __future__ import annotations

from typing import Iterable

from ansible_collections.quorumshift.kafka.plugins.module_utils.core.preflight.check_facts import Facts
from ansible_collections.quorumshift.kafka.plugins.module_utils.core.text.advice import Finding

WARNS_S = 1
# The soak, the log of a node's start and the expiry of delegation tokens depend on clocks. A synchronised clock is
# never off by half a minute.
BLOCKS_S = 30


def clocks(facts: Facts) -> Iterable[Finding]:
    """Yield the clocks that differ from the control node's, or the control node's own."""
    offsets = ahead_s(facts)
    apart = {host: offset for host, offset in offsets.items() if abs(offset) >= WARNS_S}
    # If every host is off in the same direction, the control node's clock is wrong.
    if len(apart) > 1 and len(apart) == len(offsets) and len({offset > 0 for offset in apart.values()}) == 1:
        least = min(apart.values(), key=abs)
        yield Finding(
            f"the control node's clock is {abs(least):.1f} s {'behind' if least > 0 else 'ahead of'} every host's",
            "synchronise it with chrony or ntpd: `timedatectl` shows its state",
            warns=abs(least) < BLOCKS_S,
        )
        apart = {host: offset - least for host, offset in apart.items() if abs(offset - least) >= WARNS_S}
    for host, offset in sorted(apart.items()):
        yield Finding(
            f"the clock of {host} is {abs(offset):.1f} s {'ahead' if offset > 0 else 'behind'}",
            "synchronise it with chrony or ntpd: `timedatectl` on the host shows its state",
            warns=abs(offset) < BLOCKS_S,
        )


def ahead_s(facts: Facts) -> dict[str, float]:
    """Return {host: seconds that its clock is at least ahead of the control node's} (negative: behind).

    The host reads its clock between two readings of the control node's (`asked`): an offset within them proves nothing.
    """
    offsets = {}
    for host, node in facts.cluster["nodes"].items():
        if node.get("asked"):
            before, after = node["asked"]
            offsets[host] = max(0.0, node["time"] - after) or min(0.0, node["time"] - before)
    return offsets
