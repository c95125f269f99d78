# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Where the baseline of a cluster is among its run artifacts, and at which positions its views were read."""

from __future__ import annotations

import json
import os
from typing import Any, Mapping

ENTITIES = "entities.parquet"
_POSITION = "position.json"


def directory(cluster: str) -> str:
    """Return the baseline's directory among a cluster's artifacts."""
    return os.path.join(cluster, "baseline")


def keep_position(
    cluster: str, offset: int | None, zxid: int | None, snapshots: Mapping[str, Mapping[str, int]]
) -> None:
    """Keep where the comparison that is the baseline read its views.

    :arg offset: the log's end, None where no log was compared; `zxid`: of ZooKeeper, likewise.
    :arg snapshots: {host of a ZooKeeper server: {snapshot, zxid}}, from before that (zk_tree_snapshot).
    """
    path = os.path.join(directory(cluster), _POSITION)
    with open(os.open(f"{path}.new", os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w", encoding="utf-8") as out:
        json.dump({"offset": offset, "zxid": zxid, "snapshots": snapshots}, out)
    os.replace(f"{path}.new", path)


def position(cluster: str) -> dict[str, Any]:
    """Return {offset, zxid, snapshots} as kept; None where there is no baseline, or a view was not compared.

    A baseline of an earlier release does not say it: its offset is 0.
    """
    where = directory(cluster)
    if not os.path.exists(os.path.join(where, ENTITIES)):
        return {"offset": None, "zxid": None, "snapshots": {}}
    try:
        with open(os.path.join(where, _POSITION), encoding="utf-8") as stream:
            return json.load(stream)
    except (OSError, ValueError):
        return {"offset": 0, "zxid": None, "snapshots": {}}
