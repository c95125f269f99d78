# Copyright: (c) 2026, Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the modules of the probe host share: connection options, nodes, waiting in slices, typed errors."""

from __future__ import annotations

import time
from typing import Any, Callable, Mapping

from ansible.module_utils.basic import AnsibleModule

from .addresses import AddressError, parse_host_port
from .argument_specs import CONNECTION
from .core import advice, excluded
from .probes import cluster, topics
from .probes.zookeeper import ZooKeeperError
from .security import SecurityError

SLICE_S = 3.0


class ProbeModule(AnsibleModule):
    """An AnsibleModule with connection options and the nodes' facts.

    Conditions are awaited in slices: one call of the module waits a few seconds at most and hands what it must
    remember to the next call (`carry`), so that an action plugin can show progress between them.
    """

    def __init__(self, argument_spec: Mapping[str, Any], **kwargs: Any):
        spec = {
            **CONNECTION,
            "nodes": {"type": "dict", "default": {}},
            "excluded": {"type": "dict", "default": {}},
            "carry": {"type": "dict", "default": {}},
            **argument_spec,
        }
        super().__init__(argument_spec=spec, supports_check_mode=kwargs.pop("supports_check_mode", True), **kwargs)
        if topics.AdminClient is None:
            self.fail_json(
                msg="the Python package confluent-kafka is missing on the probe host: pip install confluent-kafka"
            )
        try:
            self.connections = cluster.Connections.from_options(self.params)
        except (AddressError, SecurityError) as error:
            self.fail_json(msg=str(error))
        self.known_min_isr: dict[str, int] = {}
        self.same: Mapping[str, Any] = self.params["carry"].get("same") or {}
        self.nodes = {host: self._addressed(node) for host, node in self.params["nodes"].items()}

    def facts(self, partitions: bool = True) -> dict:
        """Collect the cluster's facts (probes.cluster.collect), without the hosts that are gone (judgements.gone)."""
        facts = cluster.collect(self.nodes, self.connections, partitions)
        kept = ("role", "node_id")
        excluded_ones = {host: {key: node.get(key) for key in kept} for host, node in self.params["excluded"].items()}
        return excluded.without(facts, excluded_ones)

    def still_there(self) -> dict[str, str | None]:
        """Return in which mode the hosts that are said to be gone answer, None of those that do not."""
        nodes = {host: self._addressed(node) for host, node in self.params["excluded"].items() if node["role"]}
        return cluster.modes(nodes, self.connections)

    def min_isr(self, partitions: Mapping[str, Any]) -> dict[str, int]:
        """Return min.insync.replicas of each topic in `partitions`; each topic is asked for once.

        Raises KafkaException.
        """
        new = [name for name in partitions if name not in self.known_min_isr]
        connections = self.connections
        self.known_min_isr.update(topics.min_isr(connections.bootstrap, connections.client, new, connections.timeout))
        return self.known_min_isr

    def lasted(self, what: str | None) -> float:
        """Return for how many seconds the looks of a `wait` have seen just this, this one included."""
        now = time.time()
        if what is None or self.same.get("what") != what:
            self.same = {"what": what, "since": now}
        return now - self.same["since"]

    def run(self, work: Callable[[], dict]) -> None:
        """Exit with what `work` returns; its typed errors become the module's failure."""
        try:
            result = work()
        except (AddressError, SecurityError) as error:
            self.fail_json(msg=str(error))
        except (ZooKeeperError, topics.KafkaException) as error:
            self.fail_json(msg=f"{reported(error)}. Run again; if it stays, raise quorumshift_probe_timeout.")
        self.exit_json(**{"changed": False, **result})

    def wait(self, gather: Callable[[], tuple[list[str], dict]], stable_s: float, bound_s: float, what: str) -> dict:
        """Wait until `look` finds no trouble for `stable_s` on end, for `bound_s` in all, in slices.

        `look` returns (troubles, result). Returns its last result with `done` true; or with `done` false, `progress`
        and `carry` for the next call. Fails the module when the bound is over, with what was seen last, and what the
        result's `do` says to do about it.
        """
        carry = dict(self.params["carry"])
        began = carry.setdefault("began", time.time())
        slice_end = time.monotonic() + max(SLICE_S, 0)
        while True:
            try:
                troubles, result = gather()
            except (ZooKeeperError, topics.KafkaException) as error:
                # An answer that did not come is a trouble like another, until the bound is over
                troubles, result = [reported(error)], {}
            now = time.time()
            carry["same"] = self.same
            carry["since"] = None if troubles else (carry.get("since") or now)
            if carry["since"] and now - carry["since"] >= stable_s:
                return {"done": True, "waited_s": round(now - began, 3), "carry": {}, **result}
            carry["trouble"] = "; ".join(troubles) or carry.get("trouble")
            seen = "; ".join(troubles) or _held(now - carry["since"], stable_s, carry["trouble"])
            do = result.pop("do", None)
            if now - began >= bound_s:
                seen = f"{advice.sentences(seen, do)}." if do else seen
                self.fail_json(
                    msg=f"waited {now - began:.0f} s for {what}. Seen last: {seen}", waited_s=round(now - began, 3)
                )
            # The last seconds of a good time are awaited here: another call would begin by looking anew at everything.
            nearly = carry["since"] and stable_s - (now - carry["since"]) <= SLICE_S
            if time.monotonic() >= slice_end and not nearly:
                return {"done": False, "progress": f"{what}: {seen} ({now - began:.0f} s)", "carry": carry, **result}
            time.sleep(0.2)

    def _addressed(self, node: Mapping) -> dict:
        reported = dict(node)
        host_address = reported.get("host_address", "")
        if reported["role"] == "broker":
            reported["address"] = cluster.client_address(reported, host_address, self.connections)
        parse_host_port(reported["address"])
        return reported


def reported(error: Exception) -> str:
    """Return the sentence that tells of an answer which did not come: a ZooKeeperError or a KafkaException."""
    return f"the brokers gave no answer: {error.args[0].str()}" if hasattr(error.args[0], "str") else str(error)


def _held(since_s: float, stable_s: float, trouble: str | None) -> str:
    held = f"good for {since_s:.0f} s of {stable_s:g} s"
    return f"{held}; before that: {trouble}" if trouble else held
