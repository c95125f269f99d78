# Copyright: (c) 2026, Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What is wrong with the variables and groups of an inventory, before any host is reached. Pure.

A problem names the variable, the hosts that have the value, the value where it is no secret, and what to set.
"""

from __future__ import annotations

import difflib
from typing import Any, Callable, Collection, Iterable, Mapping

from ..addresses import AddressError, parse_host_port, parse_host_ports, parse_zookeeper_connect
from .advice import shown

PREFIXES = ("quorumshift_", "restart_", "zk_migrate_", "upgrade_", "reassign_")
ALWAYS = "quorumshift_"  # no other software has variables of this name; of the others only near misses are problems
ALIKE = 0.8  # difflib's ratio of a name that is probably mistyped
CONTROL_NODE = "localhost"
MOST_SHOWN = 60
_BROKERS, _CONTROLLERS = "kafka_broker", "kafka_controller"


class Given:
    """The variables of an inventory: {host: {name: value}} of the control node and of each node, and its groups."""

    def __init__(self, hosts: Mapping[str, Mapping[str, Any]], groups: Mapping[str, list[str]]) -> None:
        self.hosts = hosts
        self.brokers = list(groups.get(_BROKERS) or ())
        self.controllers = list(groups.get(_CONTROLLERS) or ())

    def values(self, name: str) -> list[tuple[Any, list[str]]]:
        """Return the different values of a variable, each with the hosts that have it."""
        found: list[tuple[Any, list[str]]] = []
        for host, variables in self.hosts.items():
            if name not in variables:
                continue
            same = next((hosts for value, hosts in found if value == variables[name]), None)
            if same is None:
                found.append((variables[name], [host]))
            else:
                same.append(host)
        return found

    def of(self, hosts: Collection[str]) -> str:
        """Return the hosts that have a value in parentheses, nothing if all have it."""
        if set(hosts) == set(self.hosts):
            return ""
        return f" ({shown([host if host != CONTROL_NODE else 'the control node' for host in hosts])})"

    def names(self) -> list[str]:
        """Return the names of all variables with one of the prefixes."""
        found = {name for variables in self.hosts.values() for name in variables}
        return sorted(name for name in found if name.startswith(PREFIXES))


def problems(
    given: Given,
    specs: Mapping[str, Mapping],
    cluster_wide: Collection[str],
    known: Collection[str],
    convert: Callable[[Mapping, Any], Any],
    forward: bool,
) -> list[str]:
    """Return the problems, each a few sentences.

    `specs`: the argument spec of each public variable; `cluster_wide`: those that the control node needs; `known`:
    every name that the collection uses; `convert`: returns a value as its spec has it, or raises ValueError or
    TypeError; `forward`: whether a migration begins, which needs controllers.
    """
    return [
        *_groups(given, forward),
        *_unknown(given, known),
        *_values(given, specs, convert),
        *_control_node(given, cluster_wide, specs),
        *_addresses(given),
        *_ids(given, forward),
    ]


def _groups(given: Given, forward: bool) -> Iterable[str]:
    if not given.brokers:
        yield (
            f"The inventory has no host in the group {_BROKERS}. Add the brokers' hosts to it, and give the inventory "
            "with -i."
        )
    both = sorted(set(given.brokers) & set(given.controllers))
    if both:
        yield (
            f"{shown(both)}: in both groups, {_BROKERS} and {_CONTROLLERS}. Give each controller a host of its own: "
            "KIP-866 has no combined mode."
        )
    if forward and not given.controllers:
        yield f"The inventory has no host in the group {_CONTROLLERS}. Add three hosts to it."


def _unknown(given: Given, known: Collection[str]) -> Iterable[str]:
    for name in given.names():
        if name in known:
            continue
        near = difflib.get_close_matches(name, sorted(known), 1, ALIKE)
        if not near and not name.startswith(ALWAYS):
            continue
        hosts = sorted({host for _value, hosts in given.values(name) for host in hosts})
        meant = f"Did you mean {near[0]}?" if near else "Remove it, or see the README of the role quorumshift."
        yield f"{name}{given.of(hosts)}: no variable of this collection has this name. {meant}"


def _values(given: Given, specs: Mapping[str, Mapping], convert: Callable[[Mapping, Any], Any]) -> Iterable[str]:
    for name in given.names():
        spec = specs.get(name)
        for value, hosts in given.values(name) if spec else ():
            if isinstance(value, Unreadable):
                yield f"{name}{given.of(hosts)}: {value.reason}. Correct its value."
                continue
            if value is None:
                continue
            try:
                converted = convert(spec, value)
            except (TypeError, ValueError) as error:
                yield f"{name}{given.of(hosts)}: {_seen(spec, value)}{_reason(spec, error)}."
                continue
            choices = spec.get("choices")
            if choices and converted not in choices:
                near = difflib.get_close_matches(str(converted), list(map(str, choices)), 1, 0.6)
                meant = f"Did you mean {near[0]}?" if near else f"Use one of {', '.join(map(str, choices))}."
                yield f"{name}{given.of(hosts)}: {_seen(spec, value)}no such choice. {meant}"


def _control_node(given: Given, cluster_wide: Collection[str], specs: Mapping[str, Mapping]) -> Iterable[str]:
    own = given.hosts.get(CONTROL_NODE, {})
    for name in sorted(cluster_wide):
        elsewhere = sorted({host for _value, hosts in given.values(name) for host in hosts} - {CONTROL_NODE})
        if name not in own and elsewhere:
            yield (
                f"{name} is set for {shown(elsewhere)}, but not for the control node, which needs it. Set it in the "
                "inventory's group all."
            )
        elif specs[name].get("required") and own.get(name) in (None, "", []):
            example = next((line for line in _lines(specs[name]) if line.startswith("Example")), "")
            yield f"{name} is not set. Set it in the inventory's group all. {example}".rstrip()


def _addresses(given: Given) -> Iterable[str]:
    for name, parse in (
        ("quorumshift_bootstrap_servers", parse_host_ports),
        ("quorumshift_zookeeper_connect", parse_zookeeper_connect),
        ("zk_migrate_source_connect", parse_zookeeper_connect),
        ("zk_migrate_destination_connect", parse_zookeeper_connect),
        ("quorumshift_controller_host", lambda value: parse_host_port(value, 9093) if ":" not in value else None),
    ):
        for value, hosts in given.values(name):
            if not value or isinstance(value, Unreadable):
                continue
            try:
                parse(value)  # type: ignore[operator]
            except (AddressError, AttributeError, TypeError) as error:
                yield f"{name}{given.of(hosts)}: {error}."
    for value, hosts in given.values("quorumshift_controller_port"):
        if str(value).isdigit() and not 1 <= int(value) <= 65535:
            yield f"quorumshift_controller_port{given.of(hosts)}: {value!r} is no port. Use a number from 1 to 65535."


def _ids(given: Given, forward: bool) -> Iterable[str]:
    by_id: dict[str, list[str]] = {}
    for host in dict.fromkeys([*given.brokers, *given.controllers]):
        value = given.hosts.get(host, {}).get("quorumshift_node_id")
        if value in (None, ""):
            if forward and host in given.controllers:
                yield f"quorumshift_node_id ({host}): not set. Give each controller a number that no broker has."
            continue
        if not str(value).strip().isdigit():
            if str(value).strip().startswith("-"):  # the check of types reports other text
                yield f"quorumshift_node_id ({host}): {value!r} is no id. Use a number from 0 on."
            continue
        by_id.setdefault(str(int(value)), []).append(host)
    for number, hosts in by_id.items():
        if len(hosts) > 1:
            yield f"quorumshift_node_id: {shown(hosts)} have the same id, {number}. Give each an id of its own."


class Unreadable:
    """A value that Ansible could not template, with the reason."""

    def __init__(self, reason: str) -> None:
        self.reason = " ".join(reason.split()).rstrip(".")

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Unreadable) and other.reason == self.reason

    __hash__ = None  # type: ignore[assignment]


def _seen(spec: Mapping, value: Any) -> str:
    """Return a value for a message; nothing of one that may hold a secret."""
    if spec.get("type") == "dict" or spec.get("no_log"):
        return ""
    text = repr(value)
    return f"{text if len(text) <= MOST_SHOWN else text[:MOST_SHOWN] + '…'}: "


def _reason(spec: Mapping, error: Exception) -> str:
    """Return what the type is; of a dictionary also which key is wrong."""
    if spec.get("type") == "dict":
        return " ".join(str(error).split()).rstrip(".")
    return f"not of type {spec.get('type', 'str')}"


def _lines(spec: Mapping) -> list[str]:
    found = spec.get("description") or ""
    return [found] if isinstance(found, str) else list(found)
