# Copyright: (c) 2026, Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a run of the move between ensembles decides, by the state of each destination host. Pure."""

from __future__ import annotations

from typing import Mapping

from .ensemble_cut import ACCEPTED, PROMOTED, PROMOTING

JOIN, FINISH, SERVED, ROLLBACK, STRAY = "join", "finish", "served", "rollback", "stray"


def standing(states: Mapping[str, str]) -> str:
    """Return where the move is, by the state of each destination host.

    JOIN: no host accepted a promotion. FINISH: all accepted it, so that it can go on. ROLLBACK: it must be taken back.
    SERVED: it ended. STRAY: the destination serves, and a host is no part of it.
    """
    accepted = [state for state in states.values() if state in ACCEPTED]
    if not accepted:
        return JOIN
    if PROMOTED in accepted:
        if len(accepted) < len(states):
            return STRAY
        return SERVED if set(accepted) == {PROMOTED} else FINISH
    return FINISH if accepted == [PROMOTING] * len(states) else ROLLBACK
