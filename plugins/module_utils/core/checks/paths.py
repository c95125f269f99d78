# Copyright: (c) 2026, Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Hazards: who cannot reach whom, and ports that are taken.

Before controllers run, nothing listens on their port. A host that can reach it is then refused, which most firewalls
do not do: they drop, or answer that there is no way. So a refusal passes here, and proves nothing; the real
connections are made once the controllers are up and before any broker is restarted (node_paths, `required`).
"""

from __future__ import annotations

from typing import Iterable, Mapping

from ...addresses import AddressError, parse_zookeeper_connect
from .. import kraft_config
from ..advice import shown
from .facts import Facts, Finding, by_text, values_of

_WHAT = {
    "zookeeper": "ZooKeeper at",
    "controller": "the controllers' port of",
    "broker": "the inter-broker listener of",
}
_DO = {
    "zookeeper": "open ZooKeeper's port for them: brokers and controllers read and write there until the end of the "
    "migration",
    "controller": "open the controllers' port for them, or correct quorumshift_controller_host and "
    "quorumshift_controller_port: brokers and controllers fetch the metadata there",
    "broker": "open the brokers' inter-broker port for them: controllers send LeaderAndIsr and UpdateMetadata there",
}


def targets(host: str, nodes: Mapping[str, Mapping]) -> list[dict]:
    """Return whom a host has to reach: [{kind, to, address}] (nodes: see probes.cluster.collect)."""
    own = nodes[host]
    brokers = {one: node for one, node in sorted(nodes.items()) if node["role"] == "broker" and values_of(node)}
    readers = [own] if own["role"] == "broker" else list(brokers.values())
    connect = next((values_of(node).get("zookeeper.connect") for node in readers), None)
    try:
        servers = parse_zookeeper_connect(connect).servers if connect else ()
    except AddressError:
        servers = ()  # no broker starts with it either
    messages = [{"kind": "zookeeper", "to": str(server), "address": str(server)} for server in servers]
    for one, node in sorted(nodes.items()):
        if node["role"] == "controller" and one != host:
            messages.append({"kind": "controller", "to": one, "address": node["address"]})
    if own["role"] == "controller":
        for one, node in brokers.items():
            address = kraft_config.inter_broker_address(values_of(node), node["host_address"])
            if address:
                messages.append({"kind": "broker", "to": one, "address": address})
    return messages


def not_begun(nodes: Mapping[str, Mapping]) -> bool:
    """Say whether every broker that was read still starts in plain ZooKeeper mode."""
    modes = [(node.get("file") or {}).get("mode") for node in nodes.values() if node["role"] == "broker"]
    return all(mode in ("zk", None) for mode in modes)


def reachability(facts: Facts) -> Iterable[Finding]:
    """Everybody reaches whom the migration makes them need, as far as that can be told before controllers run."""
    excluded = set(facts.dead.values())
    failed, dialled = {}, {}
    for host, node in facts.cluster["nodes"].items():
        reported = node.get("paths") or {}
        dialled[host] = reported.get("dialled") or {}
        failed[host] = [
            one
            for one in reported.get("failed") or []
            if one["to"] not in excluded and not (one["reason"] == "refused" and _silent(facts, one))
        ]
    yield from unanswered(failed, dialled)
    for host, node in sorted(facts.cluster["nodes"].items()):
        reason, broker = node.get("running_reason"), node["role"] == "broker"
        taken = ((node.get("paths") or {}).get("listen") or {}).get("error")  # see `controller_ports`
        if not reason or host in excluded or (not broker and (reason == "refused" or taken)):
            continue
        client = "quorumshift_client" if broker else "quorumshift_controller_client"
        yield Finding(
            f"the probe host cannot ask {host}: {node['running_error']}",
            f"open the port for the probe host, correct {client}, or choose another quorumshift_probe_host",
        )


def _silent(facts: Facts, target: Mapping) -> bool:
    """Say whether it is right that nothing listens there: a controller that is not up yet."""
    node = facts.cluster["nodes"].get(target["to"]) or {}
    return target["kind"] == "controller" and not (node.get("service") or {}).get("active")


def unanswered(failed: Mapping[str, list[Mapping]], dialled: Mapping[str, Mapping[str, int]]) -> Iterable[Finding]:
    """Yield what hosts did not reach, folded; `failed` and `dialled` by host as node_paths returns them. A host that
    reaches some server of the ZooKeeper ensemble is only warned of."""
    for kind, what in _WHAT.items():
        reported = {}
        for host, failures in failed.items():
            ours = [one for one in failures if one["kind"] == kind]
            if ours:
                some = kind == "zookeeper" and len(ours) < dialled[host].get(kind, 0)
                reported[host] = (
                    some,
                    tuple(_named(one) for one in ours),
                    tuple(sorted({one["error"] for one in ours})),
                )
        for hosts, (some, names, errors) in by_text(reported).items():
            yield Finding(
                f"{shown(hosts)} cannot connect to {what} {shown(names)}: {'; '.join(errors)}",
                _DO[kind],
                warns=some,
            )


def _named(target: Mapping) -> str:
    return target["to"] if target["to"] == target["address"] else f"{target['to']} ({target['address']})"


def controller_ports(facts: Facts) -> Iterable[Finding]:
    """Each controller can listen at the address by which it is known to all."""
    several = len({node.get("host_address") for node in facts.cluster["nodes"].values()}) > 1
    for host, node in sorted(facts.controllers.items()):
        reported = (node.get("paths") or {}).get("listen")
        if not reported:
            continue
        where = f"{reported['address']} on {host}"
        if reported["error"] == "taken":
            yield Finding(
                f"{where} is taken by {reported['holder'] or 'a process that the tool may not see'}",
                "stop what listens there, or set quorumshift_controller_port to a free port",
            )
        elif reported["error"] == "foreign":
            yield Finding(
                f"{where} resolves to {reported['resolved']}, which is no address of that host",
                "set quorumshift_controller_host to one of its own: the controller listens there",
            )
        elif reported["error"]:
            yield Finding(
                f"{where} cannot be listened on: {reported['error']}",
                "correct quorumshift_controller_host and quorumshift_controller_port",
            )
        elif reported["loopback"] and several:
            yield Finding(
                f"{where} resolves to {reported['resolved']} there, where no other host reaches it",
                "correct /etc/hosts of that host, or set quorumshift_controller_host to an address",
            )
