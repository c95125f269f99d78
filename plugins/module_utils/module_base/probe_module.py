# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The base class of modules on the probe host: connection options, nodes' facts, waits in slices, typed errors."""

from __future__ import annotations

import math
import time
from typing import Any, Callable, Iterable, Mapping

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.quorumshift.kafka.plugins.module_utils import message_ids
from ansible_collections.quorumshift.kafka.plugins.module_utils.core.migration import same_cluster
from ansible_collections.quorumshift.kafka.plugins.module_utils.core.rollback import excluded
from ansible_collections.quorumshift.kafka.plugins.module_utils.core.text import advice
from ansible_collections.quorumshift.kafka.plugins.module_utils.facts import NodeFacts
from ansible_collections.quorumshift.kafka.plugins.module_utils.module_base.argument_specs import CONNECTION
from ansible_collections.quorumshift.kafka.plugins.module_utils.probes.cluster import cluster, topics
from ansible_collections.quorumshift.kafka.plugins.module_utils.probes.zookeeper.zookeeper import ZooKeeperError
from ansible_collections.quorumshift.kafka.plugins.module_utils.secrets.masking import mask
from ansible_collections.quorumshift.kafka.plugins.module_utils.secrets.security import SecurityError
from ansible_collections.quorumshift.kafka.plugins.module_utils.settings.addresses import AddressError, parse_host_port

SLICE_S = 5.0
_PAUSE_S, _HEALTHY_PAUSE_S = 0.5, 1.0  # a reading opens a connection to each node, and brokers authenticate it
# A pause is never shorter than asked for: without this, no pause of a second would fit into a healthy time of one.
_LEAST_GAP_S = 2 * _HEALTHY_PAUSE_S


class ProbeModule(AnsibleModule):
    """An AnsibleModule with connection options and the nodes' facts.

    It waits for conditions in slices. One call of the module waits a few seconds at most and passes its state to the
    next call in `carry`, so that an action plugin can show progress between calls.
    """

    def __init__(self, argument_spec: Mapping[str, Any], **kwargs: Any):
        spec = {
            **CONNECTION,
            "nodes": {"type": "dict", "default": {}},
            "excluded": {"type": "dict", "default": {}},
            "cluster_id": {"type": "str"},
            "carry": {"type": "dict", "default": {}},
            **argument_spec,
        }
        super().__init__(argument_spec=spec, supports_check_mode=kwargs.pop("supports_check_mode", True), **kwargs)
        if topics.AdminClient is None:
            self.fail_json(
                msg="the Python package confluent-kafka is missing on the probe host: pip install "
                "confluent-kafka (QS-CONNECT-009)"
            )
        try:
            self.connections = cluster.Connections.from_options(self.params)
        except (AddressError, SecurityError) as error:
            self.fail_json(msg=str(error))
        self.known_min_isr: dict[str, int] = {}
        self._served: dict[str, Any] | None = None
        self.same: Mapping[str, Any] = self.params["carry"].get("same") or {}
        self.nodes = {host: self._addressed(node) for host, node in self.params["nodes"].items()}

    def fail_json(self, msg: str, **kwargs: Any) -> Any:
        """Fail with a message in which secrets are masked: it may quote an exception of a library."""
        super().fail_json(msg=message_ids.move_to_end(mask(msg), message_ids.NO_ID), **kwargs)

    def facts(self, partitions: bool = True, needed: Iterable[str] = (), strict: bool = True) -> dict:
        """Return the cluster's facts (cluster.cluster.collect) without the excluded hosts (rollback.excluded).

        Fail the module where a source is of another cluster than the run, or where one of the kinds `needed`
        (core.migration.same_cluster) does not answer; not so with `strict` False, where the caller reports it.
        """
        facts = cluster.collect(self.nodes, self.connections, partitions)
        if strict:
            self.require_one_cluster(facts, needed)
        kept = ("role", "node_id")
        hosts = {host: {key: node.get(key) for key in kept} for host, node in self.params["excluded"].items()}
        return excluded.drop_excluded(facts, hosts)

    def require_one_cluster(self, facts: Any, needed: Iterable[str] = ()) -> None:
        """Fail the module unless facts are of the run's cluster (core.migration.same_cluster.troubles).

        In facts without the brokers' metadata, the bootstrap servers' cluster id is asked for, once a call.
        """
        if self.params["cluster_id"] and "topics" not in facts:
            if self._served is None:
                connections = self.connections
                served = topics.read_cluster_id(connections.bootstrap, connections.client, connections.timeout)
                self._served = {"cluster_id": served}
            facts = {**facts, "topics": self._served}
        refused = same_cluster.refusal(facts, self.params["cluster_id"], needed)
        if refused:
            self.fail_json(msg=f"{refused}. Nothing was changed by this task.")

    def modes_of_excluded(self) -> dict[str, str | None]:
        """Return the mode in which each excluded host answers, None if it does not answer."""
        nodes = {host: self._addressed(node) for host, node in self.params["excluded"].items() if node["role"]}
        return cluster.collect_modes(nodes, self.connections)

    def min_isr(self, partitions: Mapping[str, Any]) -> dict[str, int]:
        """Return min.insync.replicas of each topic in `partitions`, read once a topic. Raises KafkaException."""
        new = [name for name in partitions if name not in self.known_min_isr]
        connections = self.connections
        self.known_min_isr.update(
            topics.read_min_isr(connections.bootstrap, connections.client, new, connections.timeout)
        )
        return self.known_min_isr

    def seen_for(self, what: str | None) -> float:
        """Return for how many seconds each poll of a `wait` has seen `what`."""
        now = time.time()
        if what is None or self.same.get("what") != what:
            self.same = {"what": what, "since": now}
        return now - self.same["since"]

    def run(self, work: Callable[[], dict]) -> None:
        """Exit with the result of `work`; fail the module on its typed errors."""
        try:
            result = work()
        except (AddressError, SecurityError) as error:
            self.fail_json(msg=str(error))
        except (ZooKeeperError, topics.KafkaException) as error:
            self.fail_json(
                msg=f"{error_text(error)}. Run again. If it persists, raise quorumshift_probe_timeout. (QS-CONNECT-001)"
            )
        self.exit_json(**{"changed": False, **result})

    def wait(
        self,
        collect: Callable[[], tuple[list[str], dict]],
        stable_s: float,
        bound_s: float,
        what: str,
        finally_checks: Callable[[], list[str]] = list,
    ) -> dict:
        """Wait in slices until `collect` finds no trouble for `stable_s` without a break, at most for `bound_s`.

        `collect` returns (troubles, result). Return its last result with `done` true, or with `done` false, `progress`
        and `carry` for the next call. After `bound_s`, fail the module with what was seen last and the result's `do`.
        `finally_checks` returns what else is waited for once that time is over. It does not begin the time anew.
        """
        carry = dict(self.params["carry"])
        first = "began" not in carry
        if first:  # from begin_wait, whose hosts were not read since: what it missed may be there
            carry["trouble"] = None
        began = carry.setdefault("began", time.time())
        slice_end = time.monotonic() + max(SLICE_S, 0)
        while True:
            troubles, result = self._read(collect, carry, stable_s)
            if first:
                first, carry["gap"] = False, 0  # nothing was to be read before
            now = carry["seen"]
            healthy = carry["since"] and now - carry["since"] >= stable_s
            if healthy:
                troubles = finally_checks()
                if not troubles:
                    return {"done": True, "waited_s": round(now - began, 3), "carry": {}, **result}
            carry["trouble"] = "; ".join(troubles) or carry.get("trouble")
            seen = "; ".join(troubles) or _held(now - carry["since"], stable_s, carry["trouble"], carry.get("gap"))
            do = result.pop("do", None)
            if now - began >= bound_s:
                seen = f"{advice.sentences(seen, do)}." if do else seen
                self.fail_json(
                    msg=f"waited {now - began:.0f} s for {what}. Last seen: {seen} (QS-GATE-001)",
                    waited_s=round(now - began, 3),
                )
            # The last seconds are waited for here, because another call would begin by collecting everything again.
            nearly = carry["since"] and not healthy and stable_s - (now - carry["since"]) <= SLICE_S
            if time.monotonic() >= slice_end and not nearly:
                progress = f"waits for {what}: {seen} ({now - began:.0f} s)"
                return {"done": False, "progress": progress, "carry": carry, **result}
            remaining = carry["since"] + stable_s - time.time() if carry["since"] and not healthy else _PAUSE_S
            time.sleep(max(min(remaining, _HEALTHY_PAUSE_S), 0))

    def begin_wait(self, collect: Callable[[], tuple[list[str], dict]], stable_s: float) -> dict[str, Any]:
        """Return the `carry` of a later `wait`, whose healthy time counts from now on if `collect` finds no trouble.
        Its bound counts from its own begin."""
        carry: dict[str, Any] = {}
        carry["trouble"] = "; ".join(self._read(collect, carry, stable_s)[0]) or None
        return carry

    def _read(
        self, collect: Callable[[], tuple[list[str], dict]], carry: dict[str, Any], stable_s: float
    ) -> tuple[list[str], dict]:
        """Return what `collect` finds now, and note in `carry` since when it finds no trouble. Where nothing was read
        for as long as the cluster must be healthy, and for two pauses, the time begins anew.

        A reading has the time of its begin: each node is asked at about the same moment of each reading, so that its
        answer in the last one is as much later than in the first one as the two began.
        """
        began = time.time()
        gap = began - carry.get("seen", 0)
        if gap > max(stable_s, _LEAST_GAP_S):
            if carry.get("since"):  # the reading before found no trouble
                carry["gap"] = max(gap, carry.get("gap", 0))
            carry["since"] = None
        try:
            troubles, result = collect()
        except (ZooKeeperError, topics.KafkaException) as error:
            troubles, result = [error_text(error)], {}
        carry.update(seen=began, same=self.same)
        carry["since"] = None if troubles else (carry.get("since") or carry["seen"])
        return troubles, result

    def _addressed(self, given: NodeFacts) -> NodeFacts:
        node = given.copy()
        if node["role"] == "broker":
            node["address"] = cluster.client_address(node, node.get("host_address", ""), self.connections)
        parse_host_port(node["address"])
        return node


def error_text(error: Exception) -> str:
    """Return the text of a ZooKeeperError or a KafkaException."""
    return f"the brokers gave no answer: {error.args[0].str()}" if hasattr(error.args[0], "str") else str(error)


def _held(since_s: float, stable_s: float, trouble: str | None, gap_s: float | None) -> str:
    """Return for how long the cluster is healthy, and why the time began anew: trouble, or a gap between readings."""
    held = f"healthy for {since_s:.0f} s of {stable_s:g} s"
    if gap_s:
        allowed, enough = max(stable_s, _LEAST_GAP_S), 2 * math.ceil(gap_s)
        held = f"{held}. Readings began up to {gap_s:.1f} s apart, and more than {allowed:g} s begin the time anew"
        held = f"{held}: set quorumshift_stable_s to {enough}"
    return f"{held}; before that: {trouble}" if trouble else held
