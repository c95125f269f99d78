# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Confirmation tokens: by one of them an operator accepts a change that nothing takes back. Pure."""

from __future__ import annotations

import hashlib
import json
from typing import Any


def make_token(cluster_id: str, *state: Any) -> str:
    """Return the token of a change on a cluster: the cluster id, and 6 digits of the digest of what JSON can hold.

    `state`: what is accepted, as it is now. Any change of it makes the token another one.
    """
    return f"{cluster_id}:{hashlib.sha256(json.dumps(list(state)).encode()).hexdigest()[:6]}"
