# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The clocks of the hosts against the control node's.

A host reads its clock between two readings of the control node's (`asked`), so the difference is known within the time
that the reading took.
"""

from __future__ import annotations

import math
from typing import Mapping

from ansible_collections.quorumshift.kafka.plugins.module_utils.facts import NodeFacts

# A synchronised clock is never off by half a minute.
APART_S = 30


def ahead_s(node: NodeFacts) -> float | None:
    """Return how many seconds a host's clock is at least ahead of the control node's (negative: behind); 0 where they
    may be equal, None where no reading says."""
    asked = node.get("asked")
    if not asked:
        return None
    before, after = asked
    return max(0.0, node["time"] - after) or min(0.0, node["time"] - before)


def by_host_clock(node: NodeFacts, time_s: float) -> float | None:
    """Return a time of the control node's clock by a host's clock: the latest that it can be. None where no reading
    says. Both in seconds since 1970."""
    asked = node.get("asked")
    return time_s + node["time"] - asked[0] if asked else None


def control_behind_s(nodes: Mapping[str, NodeFacts]) -> float:
    """Return how many seconds the control node's clock is at least behind every host's (negative: ahead of it); 0 where
    the hosts do not agree, or are one host."""
    offsets = [offset for offset in map(ahead_s, nodes.values()) if offset is not None]
    agree = len(offsets) > 1 and (min(offsets) > 0 or max(offsets) < 0)
    return min(offsets, key=abs) if agree else 0.0


def describe_control(behind_s: float) -> str:
    """Return `control_behind_s` in words."""
    return f"the control node's clock is {abs(behind_s):.1f} s {'behind' if behind_s > 0 else 'ahead of'} every host's"


def last_reading(nodes: Mapping[str, NodeFacts]) -> int | None:
    """Return the second after the last reading of these hosts by the control node's clock, in seconds since 1970: what
    restarts from now on starts later. None where no reading says, or where the control node's clock is wrong."""
    if abs(control_behind_s(nodes)) >= APART_S:
        return None
    arrived = [node["asked"][1] for node in nodes.values() if node.get("asked")]
    return math.ceil(max(arrived)) if arrived else None
