# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a node is on its host: its role and its id, as `broker-1`. Pure.

A host may have several nodes of a cluster, such as a broker and a controller. Whatever belongs to one of them has this
key: its directory with record, lock and kept files (host.host_state), the unit of its restart, and the gate token that
admits it.

An earlier version kept one set of these files for each host, directly in the cluster's directory. They may record an
unfinished restart, and their place does not name the node. So no run uses or ignores them: while they are there, it
changes nothing.
"""

from __future__ import annotations

import re
import shlex
from typing import Mapping

from ansible_collections.quorumshift.kafka.plugins.module_utils.facts import NodeFacts, OldLayout

ROLES = ("broker", "controller")
KEY = re.compile(rf"({'|'.join(ROLES)})-\d+")


def node_key(role: str, node_id: int | None) -> str:
    """Return the key of a node, `broker-?` where its id is unknown: no directory and no token has that key."""
    return f"{role}-{'?' if node_id is None else node_id}"


def explain_old_layout(found: OldLayout, key: str) -> tuple[str, str]:
    """Return what an earlier version left in a cluster's directory, and what the operator does, as two sentences.

    `found`: host.host_state.find_old_layout; `key`: of the node that asked, '' where none did.
    """
    path, names = found["path"], found["names"]
    of = f" for {found['service']} ({found['config_file']})" if found["config_file"] else ""
    seen = f"{path} has files of an earlier version{of}: {', '.join(names)}"
    if found["is_held"]:
        return seen, "the restart that they record is running. Wait until it has ended, and run again"
    which = f"if they belong to {key}, move them there as root"
    if found["is_of_another"] or not KEY.fullmatch(key):
        whose = "another node" if found["is_of_another"] else "one node"
        key = "NODE"
        which = (
            f"they belong to {whose} of this host. Move them as root, with its role and id (such as broker-1) for {key}"
        )
    quoted = shlex.quote(path)
    return seen, f"{which}: cd {quoted} && mkdir -m 0700 {key} && mv {' '.join(names)} {key}/"


def find_old_layout(nodes: Mapping[str, NodeFacts], cluster_id: str | None) -> dict[str, tuple[str, str]]:
    """Return {host: (what was found, what to do)} of the hosts that have files of an earlier version."""
    found = {}
    for host, node in nodes.items():
        old_layout = (node.get("old_layout") or {}).get(cluster_id or "")
        if old_layout:
            key = node_key(node["role"], node.get("node_id"))
            found[host] = explain_old_layout(old_layout, key)
    return found
