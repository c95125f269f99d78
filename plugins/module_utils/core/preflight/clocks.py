# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Checks of clocks."""

from __future__ import annotations

from typing import Iterable

from ansible_collections.quorumshift.kafka.plugins.module_utils.core.preflight.check_facts import Facts
from ansible_collections.quorumshift.kafka.plugins.module_utils.core.run import clock
from ansible_collections.quorumshift.kafka.plugins.module_utils.core.text.advice import Finding

WARNS_S = 1
# The soak, the log of a node's start and the expiry of delegation tokens depend on clocks.
BLOCKS_S = clock.APART_S


def clocks(facts: Facts) -> Iterable[Finding]:
    """Yield the clocks that differ from the control node's, or the control node's own."""
    offsets = ahead_s(facts)
    apart = {host: offset for host, offset in offsets.items() if abs(offset) >= WARNS_S}
    behind = clock.control_behind_s(facts.cluster["nodes"])
    if abs(behind) >= WARNS_S:
        yield Finding(
            clock.describe_control(behind),
            "synchronise it with chrony or ntpd: `timedatectl` shows its state",
            warns=abs(behind) < BLOCKS_S,
        )
        apart = {host: offset - behind for host, offset in apart.items() if abs(offset - behind) >= WARNS_S}
    for host, offset in sorted(apart.items()):
        yield Finding(
            f"the clock of {host} is {abs(offset):.1f} s {'ahead' if offset > 0 else 'behind'}",
            "synchronise it with chrony or ntpd: `timedatectl` on the host shows its state",
            warns=abs(offset) < BLOCKS_S,
        )


def ahead_s(facts: Facts) -> dict[str, float]:
    """Return {host: seconds that its clock is at least ahead of the control node's} (negative: behind)."""
    offsets = {host: clock.ahead_s(node) for host, node in facts.cluster["nodes"].items()}
    return {host: offset for host, offset in offsets.items() if offset is not None}
