# Copyright: (c) 2026, Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Hazards: properties of brokers and of the controllers to come."""

from __future__ import annotations

import re
from typing import Iterable, Sequence

from ...addresses import AddressError, parse_listeners
from ...seal import is_secret
from .. import kraft_config
from ..advice import shown
from .facts import Facts, Finding, by_text, values_of

_TOPIC_POLICIES = ("create.topic.policy.class.name", "alter.config.policy.class.name")


def agreement(facts: Facts) -> Iterable[Finding]:
    """Brokers agree on what controllers take from them."""
    values = {host: values_of(node) for host, node in facts.brokers.items() if values_of(node)}
    zookeeper_mode = {host: one for host, one in values.items() if "zookeeper.connect" in one}
    for key, by_host in kraft_config.disagreements(zookeeper_mode).items():
        if key in facts.controller_config:
            continue
        secret = any(str(value).startswith("sealed:") for value in by_host.values())
        shown = (
            "their values differ" if secret else ", ".join(f"{host} {value}" for host, value in sorted(by_host.items()))
        )
        yield Finding(
            f"brokers disagree on {key}, which controllers take from them: {shown}",
            f"make it equal on all brokers, or say the controllers' own in quorumshift_controller_config: {key}",
        )


def overrides(facts: Facts) -> Iterable[Finding]:
    """What quorumshift_controller_config sets is what the brokers have, where controllers decide for all."""
    values = [values_of(node) for _host, node in sorted(facts.brokers.items())]
    for key, own in sorted(facts.controller_config.items()):
        theirs = {one[key] for one in values if key in one}
        if not kraft_config.taken_from_brokers(key) or len(theirs) != 1 or _plain(own) in map(_plain, theirs):
            continue
        if key == "super.users":
            lost = [user for user in kraft_config.super_users({key: theirs.pop()}) if user not in _users(own)]
            if lost:
                yield Finding(
                    f"super.users of quorumshift_controller_config lacks {shown(lost)}, which the brokers have",
                    "leave the key out: the brokers' super users and quorumshift_controller_super_users make it up",
                )
            continue
        secret = is_secret(key)
        reported = "differs from the brokers'" if secret else f"is {own}, the brokers have {theirs.pop()}"
        yield Finding(
            f"{key} of quorumshift_controller_config {reported}",
            f"leave the key out, or be sure that you want it: {_consequence(key)}",
            warns=key in kraft_config.POLICIES,
        )


def _plain(value: object) -> str:
    """Return a value as Kafka compares it: YAML's booleans come with a capital, lists with spaces or without."""
    text = re.sub(r"\s*,\s*", ",", str(value).strip())
    return text.lower() if text.lower() in ("true", "false") else text


def _users(text: object) -> list[str]:
    return kraft_config.super_users({"super.users": str(text)})


def _consequence(key: str) -> str:
    reader = kraft_config.CONTROLLER_EVALUATES.get(key)
    if key in kraft_config.POLICIES:
        return f"it changes with the migration ({reader or 'the controllers obey it'})"
    return f"the controllers would not fit the brokers ({reader or 'KIP-866'})"


def controller_listener(facts: Facts) -> Iterable[Finding]:
    """The controller listener takes no SCRAM and no delegation token: both live in the metadata behind it."""
    mechanism = str(facts.controller_config.get("sasl.mechanism.controller.protocol", ""))
    if facts.controller_protocol.startswith("SASL") and (mechanism.startswith("SCRAM") or not mechanism):
        yield Finding(
            f"the controller listener is {facts.controller_protocol} with {mechanism or 'no mechanism set'}",
            "set sasl.mechanism.controller.protocol in quorumshift_controller_config to PLAIN or GSSAPI, or use SSL",
        )


def listeners(facts: Facts) -> Iterable[Finding]:
    """Brokers have no listener of the controllers' name, and advertise the one on which they are dialled by others."""
    name = facts.controller_listener.upper()
    for host, node in sorted(facts.brokers.items()):
        values = values_of(node)
        if not values:
            continue  # the check `reached` says why
        try:
            names = [one.name for one in parse_listeners(values.get("listeners") or "PLAINTEXT://:9092")]
        except AddressError as error:
            yield Finding(f"the listeners of {host} cannot be read: {error}", "correct them in its properties")
            continue
        if name in names:
            yield Finding(
                f"{host} has a listener {name}, which is to be the name of the controllers'",
                "set quorumshift_controller_listener to a name that no broker has for a listener of its own: in KRaft "
                "mode a broker does not start with one of that name",
            )
        if kraft_config.inter_broker_address(values, host) is None:
            yield Finding(
                f"{host} advertises no listener on which brokers and controllers are to dial it",
                "correct inter.broker.listener.name, security.inter.broker.protocol or advertised.listeners: with "
                "these the broker does not start again",
            )


def running_config(facts: Facts) -> Iterable[Finding]:
    """A broker runs with what its file says: the roll's restart would take other changes along."""
    dynamic = (facts.metadata or {}).get("configs", {}).get("broker", {})
    for host, node in sorted(facts.brokers.items()):
        runs = facts.running.get(host) or {}
        set_now = {*dynamic.get("", {}), *dynamic.get(str(node.get("node_id")), {})}
        differing = [
            f"{key} ({value}, runs with {runs[key]})"
            for key, value in sorted(values_of(node).items())
            if not is_secret(key)
            and key not in set_now
            and runs.get(key) is not None
            and _plain(runs[key]) != _plain(value)
        ]
        if differing:
            yield Finding(
                f"the file of {host} says otherwise than the broker runs: {shown(differing, 3)}",
                "restart the broker, or take the change back: the roll's restart would bring it about",
            )


def topic_policies(facts: Facts) -> Iterable[Finding]:
    """Policies for topics are obeyed by controllers then, which load their classes."""
    for key in _TOPIC_POLICIES:
        for hosts, name in _brokers_by_value(facts, key):
            yield Finding(
                f"{key} of {shown(hosts)} is {name}",
                "put its jar onto every controller's class path, which would not start without it. Of incremental "
                "changes a policy sees other input there (KIP-1252)",
            )


def control_plane(facts: Facts) -> Iterable[Finding]:
    """KRaft has no listener for the control plane."""
    for hosts, name in _brokers_by_value(facts, "control.plane.listener.name"):
        yield Finding(
            f"{shown(hosts)} has control.plane.listener.name={name}",
            "nothing is to be done: the key is taken out with the restart in KRaft mode, the listener stays and is not "
            "used any more. Close its port in your firewall afterwards",
        )


def _brokers_by_value(facts: Facts, key: str) -> Iterable[tuple[Sequence[str], str]]:
    """The brokers that set `key`, together where they set the same: (hosts, value)."""
    reported = {host: values_of(node).get(key) for host, node in facts.brokers.items()}
    return by_text({host: value for host, value in reported.items() if value}).items()


def self_healer(facts: Facts) -> Iterable[Finding]:
    """Nothing moves partitions by itself while brokers are restarted."""
    reported = {
        host: node
        for host, node in facts.brokers.items()
        if "cruisecontrol" in values_of(node).get("metric.reporters", "").lower()
    }
    if reported:
        yield Finding(
            f"{shown(sorted(reported))} reports to Cruise Control",
            "pause its self-healing and its proposals until the migration is done: a reassignment closes the gates, "
            "and a broker that restarts is no broken one",
        )


def authorizer(facts: Facts) -> Iterable[Finding]:
    """The authorizer is one of Kafka's own."""
    known = ("", kraft_config.ZOOKEEPER_AUTHORIZER, kraft_config.STANDARD_AUTHORIZER)
    for host, node in sorted(facts.brokers.items()):
        name = values_of(node).get("authorizer.class.name", "").strip()
        if name not in known:
            yield Finding(
                f"{host} uses the authorizer {name}",
                "see that it works in KRaft mode and on controllers; it is kept as it is",
            )
