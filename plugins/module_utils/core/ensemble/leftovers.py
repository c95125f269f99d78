# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a ZooKeeper ensemble has beside Kafka's subtree, and how its files are named. Pure."""

from __future__ import annotations

import re

FILES = re.compile(r"(snapshot|log)\.[0-9a-f]+")
"""Names of the files in an archive of a server's `version-2` directories."""


def find_leftover(path: str, chroot: str) -> str | None:
    """Return the topmost path at or above an absolute path that is no part of Kafka's subtree or of the path to it;
    None for these, and for /zookeeper."""
    if path in ("", "/") or not chroot:
        return None
    names, ours = path[1:].split("/"), chroot[1:].split("/")
    if names[0] == "zookeeper":
        return None
    for at, name in enumerate(names):
        if at == len(ours):
            return None
        if name != ours[at]:
            return "/" + "/".join(names[: at + 1])
    return None
