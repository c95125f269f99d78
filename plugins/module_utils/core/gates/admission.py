# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which health the restart of one node requires. Pure, over collected facts.

The node answers: it is stopped in a healthy cluster alone. It does not answer, and its own host says that it is down:
its start brings health back, so none is required, and the token permits no stop. It does not answer though its host
says that it runs: it may be in sync and lead partitions, so it is stopped only if the cluster is healthy without it.
"""

from __future__ import annotations

from typing import Iterable, Mapping, NamedTuple

from ansible_collections.quorumshift.kafka.plugins.module_utils.core.migration import restart_token
from ansible_collections.quorumshift.kafka.plugins.module_utils.facts import ClusterFacts, NodeFacts, Topics


class Restart(NamedTuple):
    """The node of a batch. `answers`: over the network; `down`: as its own host says."""

    host: str
    node_id: int | None
    answers: bool
    down: bool

    @property
    def only_start(self) -> bool:
        """Return whether the node is to be started, and must not be stopped."""
        return self.down and not self.answers

    @property
    def unresponsive(self) -> bool:
        """Return whether the node runs, as far as its host knows, and does not answer."""
        return not self.answers and not self.down


def restart_from_facts(facts: ClusterFacts, host: str) -> Restart:
    """Return what is known of the node that a restart is to be admitted for. A host that was not reached is not known
    to be down."""
    node = facts["nodes"][host]
    state = node.get("service") or {}
    down = bool(node.get("reached") and state) and restart_token.is_stopped(state)
    return Restart(host, node.get("node_id"), bool(node.get("running")), down)


def check_single_host(batch: Iterable[str]) -> str | None:
    """Return why a batch is rejected: more than one node would be down at once, or none is named."""
    hosts = list(batch)
    return (
        None if len(hosts) == 1 else f"a batch is one host, this one is {', '.join(hosts) or 'empty'} (QS-RESTART-001)"
    )


def find_excused_blocks(restart: Restart, role: str) -> tuple[str, ...]:
    """Return the ids of the blocks that do not keep this node from its restart: they name the node itself."""
    if role == "controller":
        return () if restart.answers else ("controllers_down",)  # restart.controller_troubles names the others
    return ("no_controller",) if restart.only_start else ()


def check_others_respond(nodes: Mapping[str, NodeFacts], restart: Restart | None, but: Iterable[str] = ()) -> list[str]:
    """Return why another node may not be stopped: each one that does not answer, except the restart's own and `but`."""
    own = {restart.host} if restart else set()
    return [
        f"{host} does not answer: {node.get('running_error')} (QS-GATE-005)"
        for host, node in sorted(nodes.items())
        if not node.get("running") and host not in own.union(but)
    ]


def remedy(restart: Restart, node: NodeFacts) -> str:
    """Return what to do about a node that runs and does not answer, if its stop is not admitted."""
    unit = (node.get("service") or {}).get("name") or "SERVICE"
    return (
        f"{restart.host} does not answer ({node.get('running_error')}), though {unit} is not stopped there. It is "
        "restarted once the cluster is healthy without it. Start what is down, or make it answer: on "
        f"{restart.host}, journalctl -u {unit}. If it serves no client, stop it there: systemctl stop {unit}. Then run "
        "again: the run starts it (QS-RESTART-008)"
    )


def drop_broker_replicas(topics: Topics, broker: int | None) -> Topics:
    """Return the metadata without a broker's replicas that are out of sync, and without partitions on it alone: its
    stop takes nothing from these."""
    if not topics.get("reached"):
        return topics
    partitions: dict[str, dict] = {}
    for topic, numbers in topics["partitions"].items():
        for number, partition in numbers.items():
            if partition["replicas"] == [broker]:
                continue
            kept = [replica for replica in partition["replicas"] if replica != broker or broker in partition["isr"]]
            partitions.setdefault(topic, {})[number] = {**partition, "replicas": kept}
    return {**topics, "partitions": partitions}
