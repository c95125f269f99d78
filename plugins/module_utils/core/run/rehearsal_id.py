# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The cluster id of a rehearsal, which says everywhere that it is one: on hosts, in logs and in messages. Pure."""

from __future__ import annotations

import base64
from typing import Callable

PREFIX = "rehearsal-"
Fresh = Callable[[int], bytes]


def is_rehearsal(cluster_id: str | None) -> bool:
    """Return whether a cluster id is that of a rehearsal."""
    return bool(cluster_id) and str(cluster_id).startswith(PREFIX)


def new(fresh: Fresh) -> str:
    """Return a new cluster id of a rehearsal: 22 letters of base64, as Kafka's own. `fresh`: returns that many random
    bytes."""
    # its last letter has four bits that must be 0
    return f"{PREFIX}{base64.urlsafe_b64encode(fresh(9)).decode()[:11]}A"
