# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Controllers that are down without their metadata log, and whether one may be formatted again. Pure.

A voter that was formatted again has forgotten what it acknowledged. As long as each majority of the voters has one with
everything that was committed, no leader can be elected without that (Raft's Leader Completeness; KIP-595). Otherwise
committed metadata may be lost.
"""

from __future__ import annotations

from typing import Collection, Mapping, NamedTuple, Sequence

from ansible_collections.quorumshift.kafka.plugins.module_utils.core.migration import restart_token
from ansible_collections.quorumshift.kafka.plugins.module_utils.core.run import run_lock
from ansible_collections.quorumshift.kafka.plugins.module_utils.core.text import confirmation
from ansible_collections.quorumshift.kafka.plugins.module_utils.facts import ClusterFacts, NodeFacts, Quorum

BLOCK = "log_lost"
"""The id of the block of these controllers: no wait removes it."""


class Lost(NamedTuple):
    """Hosts of controllers that are down, by what their log directories have: `empty` nothing, `foreign` files without
    meta.properties."""

    empty: list[str]
    foreign: list[str]

    @property
    def hosts(self) -> list[str]:
        return sorted(self.empty + self.foreign)


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
        return (
            "the quorum has no leader that answers, so what was committed is not known. Start the other controllers "
            "first"
        )
    voters, committed = quorum["voters"], quorum["high_watermark"]
    holding = [voter["id"] for voter in voters if voter["id"] not in lost and voter["log_end_offset"] >= committed]
    needed = len(voters) - len(voters) // 2
    if len(holding) >= needed:
        return ""
    return (
        f"of {len(voters)} voters, {len(holding)} others have everything up to offset {committed}, and {needed} must, "
        "or committed metadata may be lost. Start the other controllers first"
    )


def find_formattable(facts: ClusterFacts) -> list[str]:
    """Return the hosts of controllers that lost their log and may all be formatted again now.

    That stays true until they are formatted: each later commit needs a majority, to which none of them belongs.
    """
    controllers = {host: node for host, node in facts["nodes"].items() if node["role"] == "controller"}
    down = [host for host, node in controllers.items() if not node.get("running") and _is_stopped(node)]
    lost = find(controllers, down)
    if lost.foreign or not lost.empty:
        return []
    return [] if explain_kept(facts, lost.empty) else lost.empty


def _is_stopped(node: NodeFacts) -> bool:
    service = node.get("service") or {}
    return bool(service) and not service.get("masked") and restart_token.is_stopped(service)


def explain_kept(facts: ClusterFacts, hosts: Sequence[str]) -> str:
    """Return why these controllers may not be formatted again now, as a sentence without its full stop; "" if they
    may."""
    replace = f"a formatted controller is another voter: run quorumshift.kafka.quorum -e quorum_replace={hosts[0]}"
    dynamic = sorted(
        host
        for host, node in facts["nodes"].items()
        if node["role"] == "controller" and node.get("next") and not _voters(node)
    )
    if dynamic:
        return f"the file of {', '.join(dynamic)} has no controller.quorum.voters. In a dynamic quorum, {replace}"
    # A static file does not matter then: the voters are in the metadata log, with their directory ids (KIP-853)
    serving = sorted(host for host, node in facts["nodes"].items() if _kraft_version(node) > 0)
    if serving:
        return f"{', '.join(serving)} serves kraft.version 1 or higher. With it, {replace}"
    return explain_unsafe(facts["quorum"], [facts["nodes"][host].get("node_id") for host in hosts])


def _kraft_version(node: NodeFacts) -> int:
    features = node.get("features")
    return features["finalized"].get("kraft.version", 0) if features else 0


def _voters(node: NodeFacts) -> str:
    return ((node.get("file") or {}).get("properties") or {}).get("controller.quorum.voters") or ""


def make_token(nodes: Mapping[str, NodeFacts], hosts: Collection[str], cluster_id: str) -> str:
    """Return the token by which the operator says that the disks of these controllers are lost: the cluster id, and a
    digest of hosts, ids and the newest run lock's number. Each run that changes something makes it another one."""
    newest = run_lock.find_newest(nodes, cluster_id)
    lost = sorted((host, nodes[host].get("node_id")) for host in hosts)
    return confirmation.make_token(cluster_id, lost, newest["number"] if newest else 0)


def advise(facts: ClusterFacts, lost: Lost, cluster_id: str) -> str:
    """Return what to do about controllers that lost their log, as sentences without the last full stop."""
    if lost.foreign:
        return (
            f"the log directory of {', '.join(lost.foreign)} has files and no meta.properties: mount its disk, or put "
            "the directory back from where it is. Do not format it"
        )
    hosts = ", ".join(lost.empty)
    mount = f"the log directory of {hosts} is empty. If its disk is not mounted, mount it and start the service"
    unsafe = explain_kept(facts, lost.empty)
    if unsafe:
        return f"{mount}. Do not format it now: {unsafe}"
    if find_formattable(facts) != lost.empty:
        stop = "stop the service, unmask it where it is masked, and run quorumshift.kafka.status"
        return f"{mount}. If the disk is lost, {stop}"
    token = make_token(facts["nodes"], lost.empty, cluster_id)
    return (
        f"{mount}. If the disk is lost: the others have everything that was committed, and the next run of migrate, "
        f"restart or rollback formats it and starts the controller with -e quorumshift_format_token={token}"
    )
