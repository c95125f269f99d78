# Copyright: (c) 2026, Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Where the baseline of a cluster is among its run artifacts, and the position of the metadata log that it has."""

from __future__ import annotations

import json
import os

ENTITIES = "entities.parquet"
_POSITION = "metadata_log.json"


def directory(cluster: str) -> str:
    """Return the baseline's directory among a cluster's artifacts."""
    return os.path.join(cluster, "baseline")


def keep_offset(cluster: str, offset: int | None) -> None:
    """Keep the log's end at the comparison that is the baseline; None where no log was compared."""
    path = os.path.join(directory(cluster), _POSITION)
    with open(os.open(f"{path}.new", os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w", encoding="ascii") as out:
        json.dump({"offset": offset}, out)
    os.replace(f"{path}.new", path)


def offset(cluster: str) -> int | None:
    """Return the log's end at the comparison that is the baseline; None where there is none, or no log was compared.

    A baseline of an earlier release does not say it: 0.
    """
    where = directory(cluster)
    if not os.path.exists(os.path.join(where, ENTITIES)):
        return None
    try:
        with open(os.path.join(where, _POSITION), encoding="ascii") as stream:
            return json.load(stream)["offset"]
    except (OSError, ValueError):
        return 0
