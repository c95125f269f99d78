# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Controllers that are down without their metadata log, and whether one may be formatted again. Pure.

A voter that was formatted again has forgotten what it acknowledged. As long as each majority of the voters has one with
everything that was committed, no leader can be elected without that (Raft's Leader Completeness; KIP-595). Otherwise
committed metadata may be lost.
"""

from __future__ import annotations

import shlex
from typing import Collection, Mapping, NamedTuple

from ansible_collections.quorumshift.kafka.plugins.module_utils.facts import ClusterFacts, NodeFacts, Quorum


class Lost(NamedTuple):
    """Hosts of controllers that are down, by what their log directories have: `empty` nothing, `foreign` files without
    meta.properties."""

    empty: list[str]
    foreign: list[str]


def find(nodes: Mapping[str, NodeFacts], down: Collection[str]) -> Lost:
    """Return those of the hosts that lost their log. A host that was not read may have it."""
    read = {host: nodes[host].get("log_dirs") or [] for host in down if nodes[host].get("reached")}
    without = [
        host
        for host, log_dirs in sorted(read.items())
        if log_dirs and not any(log_dir.get("meta") or log_dir.get("error") for log_dir in log_dirs)
    ]
    foreign = [
        host for host in without if any(log_dir.get("exists") and not log_dir.get("empty") for log_dir in read[host])
    ]
    return Lost([host for host in without if host not in foreign], foreign)


def explain_unsafe(quorum: Quorum, lost: Collection[int | None]) -> str:
    """Return why no voter with one of these ids may be formatted again now, as a sentence without its full stop; "" if
    one may: each majority of all voters has one, not of these, that is at the high watermark."""
    if None in lost:
        return "its node id is not known, since its properties file could not be read"
    if not quorum.get("reached"):
        return "the quorum has no leader that answers, so what was committed is not known"
    voters, committed = quorum["voters"], quorum["high_watermark"]
    holding = [voter["id"] for voter in voters if voter["id"] not in lost and voter["log_end_offset"] >= committed]
    needed = len(voters) - len(voters) // 2
    if len(holding) >= needed:
        return ""
    return (
        f"of {len(voters)} voters, {len(holding)} others have everything up to offset {committed}, and {needed} must, "
        "or committed metadata may be lost"
    )


def advise(facts: ClusterFacts, lost: Lost, cluster_id: str) -> str:
    """Return what to do about controllers that lost their log, as sentences without the last full stop."""
    nodes = facts["nodes"]
    if lost.foreign:
        return (
            f"the log directory of {', '.join(lost.foreign)} has files and no meta.properties: mount its disk, or put "
            "the directory back from where it is. Do not format it"
        )
    gone = [nodes[host].get("node_id") for host in lost.empty]
    unsafe = explain_unsafe(facts["quorum"], gone)
    hosts = ", ".join(lost.empty)
    mount = f"the log directory of {hosts} is empty. If its disk is not mounted, mount it and start the service"
    if unsafe:
        return f"{mount}. Do not format it now: {unsafe}. Start the other controllers first"
    host = lost.empty[0]
    typed = command(nodes[host], cluster_id)
    return f"{mount}. If the disk is lost, format it: the others have everything that was committed. On {host}: {typed}"


def command(node: NodeFacts, cluster_id: str) -> str:
    """Return the command that formats a controller's empty log directory as the user of its service, and starts it."""
    unit = shlex.quote((node.get("service") or {}).get("name") or "SERVICE")
    file = shlex.quote((node.get("file") or {}).get("path") or "FILE")
    tool = node.get("storage_tool")
    tool = shlex.quote(tool) if isinstance(tool, str) and tool else "kafka-storage.sh"
    user = f'"$(systemctl show -p User --value {unit})"'
    # With "=", because a cluster id may begin with a dash
    formats = f"{tool} format --cluster-id={shlex.quote(cluster_id)} --config {file}"
    return f"runuser -u {user} -- {formats} && systemctl start {unit}"
