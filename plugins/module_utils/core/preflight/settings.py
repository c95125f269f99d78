# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Checks of the brokers' and the controllers' properties."""

from __future__ import annotations

from typing import Iterable, Sequence

from ansible_collections.quorumshift.kafka.plugins.module_utils.core.migration import kraft_config
from ansible_collections.quorumshift.kafka.plugins.module_utils.core.preflight.check_facts import (
    Facts,
    group_by_value,
    values_of,
)
from ansible_collections.quorumshift.kafka.plugins.module_utils.core.text.advice import Finding, format_names
from ansible_collections.quorumshift.kafka.plugins.module_utils.secrets.seal import PREFIX, is_secret
from ansible_collections.quorumshift.kafka.plugins.module_utils.secrets.security import CONTROLLER_MECHANISMS
from ansible_collections.quorumshift.kafka.plugins.module_utils.settings import config_values
from ansible_collections.quorumshift.kafka.plugins.module_utils.settings.addresses import AddressError

_TOPIC_POLICIES = ("create.topic.policy.class.name", "alter.config.policy.class.name")


def agreement(facts: Facts) -> Iterable[Finding]:
    """Yield the keys that controllers take from the brokers and on which the brokers differ."""
    values = {
        host: {**values_of(node), **((node.get("file") or {}).get("resolved") or {})}
        for host, node in facts.brokers.items()
    }
    zookeeper_mode = {host: properties for host, properties in values.items() if "zookeeper.connect" in properties}
    for key, by_host in kraft_config.find_disagreements(zookeeper_mode).items():
        if key in facts.controller_config:
            continue
        secret = any(str(value).startswith(PREFIX) for value in by_host.values())
        pairs = [f"{host} {value}" for host, value in sorted(by_host.items())]
        shown = "their values differ" if secret else ", ".join(pairs)
        yield Finding(
            f"brokers disagree on {key}, which controllers take from them: {shown}",
            f"make it equal on all brokers, or set the controllers' value in quorumshift_controller_config: {key}",
        )


def overrides(facts: Facts) -> Iterable[Finding]:
    """Yield the keys of quorumshift_controller_config whose value differs from the brokers' common value."""
    values = [values_of(node) for _host, node in sorted(facts.brokers.items())]
    for key, own in sorted(facts.controller_config.items()):
        of_brokers = {
            config_values.comparable_value(key, properties[key]) for properties in values if key in properties
        }
        if config_values.comparable_value(key, str(own)) in of_brokers:
            continue
        if key == "zookeeper.connect":
            yield from _another_connect(facts, str(own))
            continue
        if not kraft_config.is_taken_from_brokers(key) or len(of_brokers) != 1:
            continue
        if kraft_config.OWN_STORE.fullmatch(key):
            continue
        if key == "super.users":
            lost = [user for user in kraft_config.super_users({key: of_brokers.pop()}) if user not in _users(own)]
            if lost:
                yield Finding(
                    f"super.users of quorumshift_controller_config lacks {format_names(lost)}, which the brokers have",
                    "remove the key: the tool joins the brokers' super users and quorumshift_controller_super_users",
                )
            continue
        hidden = is_secret(key) or str(own).startswith(PREFIX)
        difference = "differs from the brokers'" if hidden else f"is {own}, the brokers have {of_brokers.pop()}"
        yield Finding(
            f"{key} of quorumshift_controller_config {difference}",
            f"remove the key, or keep it on purpose: {_consequence(key)}",
            warns=key in kraft_config.POLICIES,
        )


def _another_connect(facts: Facts, own: str) -> Iterable[Finding]:
    """Yield a connect string of controllers that is neither the brokers' nor quorumshift_zookeeper_connect, through
    which this tool has read the brokers' cluster id and registrations."""
    read = str(facts.zookeeper.get("connect") or "no server")
    same = config_values.comparable_value("zookeeper.connect", own) == config_values.comparable_value(
        "zookeeper.connect", read
    )
    if not (same and facts.zookeeper.get("reached")):
        yield Finding(
            f"zookeeper.connect of quorumshift_controller_config is {own}, this tool reads ZooKeeper at {read}",
            "make zookeeper.connect there and quorumshift_zookeeper_connect equal: controllers must use the brokers' "
            "ZooKeeper",
        )


def _users(text: object) -> list[str]:
    return kraft_config.super_users({"super.users": str(text)})


def _consequence(key: str) -> str:
    reader = kraft_config.CONTROLLER_EVALUATES.get(key)
    if key in kraft_config.POLICIES:
        return f"this policy changes with the migration ({reader or 'the controllers apply it'})"
    return f"controllers and brokers would not work together ({reader or 'KIP-866'})"


def controller_listener(facts: Facts) -> Iterable[Finding]:
    """Yield a controller listener with SCRAM or delegation tokens: both are stored in the metadata behind it."""
    mechanism = config_values.get(facts.controller_config, "sasl.mechanism.controller.protocol")
    if facts.controller_protocol.startswith("SASL") and (mechanism.startswith("SCRAM") or not mechanism):
        yield Finding(
            f"the controller listener is {facts.controller_protocol} with {mechanism or 'no mechanism set'}",
            "set sasl.mechanism.controller.protocol in quorumshift_controller_config to one of "
            f"{', '.join(CONTROLLER_MECHANISMS)}, or use SSL",
        )
    elif facts.controller_protocol.startswith("SASL") and mechanism not in _enabled(facts):
        yield Finding(
            f"the controller listener does not enable {mechanism}, the sasl.mechanism.controller.protocol: "
            f"{_enabled_key(facts)} is {', '.join(_enabled(facts))}",
            f"add {mechanism} to {_enabled_key(facts)} in quorumshift_controller_config",
        )


def tool_logins(facts: Facts) -> Iterable[Finding]:
    """Yield a login of this tool that the controllers' listener does not take.

    SCRAM does not work there, since a new quorum has no SCRAM credentials. Without this login a run would stop once the
    controllers run.
    """
    if "quorumshift_controller_client" not in facts.logins:
        return
    protocol, mechanism = facts.logins["quorumshift_controller_client"]
    listener = facts.controller_listener
    if protocol != facts.controller_protocol:
        yield Finding(
            f"quorumshift_controller_client.security_protocol is {protocol}, quorumshift_controller_protocol of the "
            f"listener {listener} is {facts.controller_protocol}",
            f"set quorumshift_controller_client.security_protocol to {facts.controller_protocol}",
        )
    elif mechanism and (mechanism not in CONTROLLER_MECHANISMS or mechanism not in _enabled(facts)):
        usable = mechanism in CONTROLLER_MECHANISMS
        reason = "which the listener does not enable" if usable else "whose credentials are in the metadata behind it"
        given = mechanism if usable else "PLAIN"
        yield Finding(
            f"quorumshift_controller_client.sasl_mechanism for the listener {listener} ({protocol}) is {mechanism}, "
            f"{reason}",
            f"set it to {given}, and in quorumshift_controller_config {_enabled_key(facts)} to "
            f"{','.join(dict.fromkeys([*_enabled(facts), given]))} and "
            f"listener.name.{listener.lower()}.{given.lower()}.sasl.jaas.config to the listener's login. "
            "Controllers and brokers may use another mechanism there. Or use mutual TLS: "
            "quorumshift_controller_protocol SSL",
        )


def _enabled_key(facts: Facts) -> str:
    return f"listener.name.{facts.controller_listener.lower()}.sasl.enabled.mechanisms"


def _enabled(facts: Facts) -> list[str]:
    """Return the SASL mechanisms of the controller listener (kraft_config.controller_properties)."""
    sources = [facts.controller_config, *(values_of(node) for _host, node in sorted(facts.brokers.items()))]
    keys = (_enabled_key(facts), "sasl.enabled.mechanisms")
    found = next((source[key] for key in keys for source in sources if key in source), "GSSAPI")
    return config_values.split_items(str(found))


def listeners(facts: Facts) -> Iterable[Finding]:
    """Yield brokers with a listener of the controllers' name, or without an advertised inter-broker listener."""
    name = facts.controller_listener.upper()
    for host, node in sorted(facts.brokers.items()):
        values = values_of(node)
        if not values:
            continue  # the check `reached` reports it
        try:
            names = [listener.name for listener in kraft_config.listeners(values)]
        except AddressError as error:
            yield Finding(f"the listeners of {host} cannot be read: {error}", "correct them in its properties file")
            continue
        if name in names:
            yield Finding(
                f"{host} has a listener {name}, the name of the controller listener",
                "set quorumshift_controller_listener to a name that no broker uses: in KRaft mode a broker does not "
                "start with a listener of the controllers' name",
            )
        if kraft_config.inter_broker_address(values, host) is None:
            yield Finding(
                f"{host} advertises no inter-broker listener",
                "correct inter.broker.listener.name, security.inter.broker.protocol or advertised.listeners: with "
                "these values the broker does not start again",
            )


def running_config(facts: Facts) -> Iterable[Finding]:
    """Yield the keys of each broker's file that differ from its running config: the next restart applies them."""
    dynamic = (facts.metadata or {}).get("configs", {}).get("broker", {})
    for host, node in sorted(facts.brokers.items()):
        runs = facts.running.get(host) or {}
        set_now = {*dynamic.get("", {}), *dynamic.get(str(node.get("node_id")), {})}
        differing = [
            f"{key} (file {value}, running {runs[key]})"
            for key, value in sorted(values_of(node).items())
            if not (is_secret(key) or value.startswith(PREFIX))
            and key not in set_now
            and key not in {variable["key"] for variable in (node.get("file") or {}).get("variables") or []}
            and runs.get(key) is not None
            and config_values.comparable_value(key, runs[key]) != config_values.comparable_value(key, value)
        ]
        if differing:
            yield Finding(
                f"the properties file of {host} differs from the running config: {format_names(differing, 3)}",
                "restart the broker, or undo the change: otherwise the rolling restart applies it",
            )


def config_providers(facts: Facts) -> Iterable[Finding]:
    """Yield the variables of config providers that this tool evaluates, or that cannot be resolved where they are."""
    found: dict[str, dict[tuple[str, str], list[str]]] = {"text": {}, "foreign": {}, "broker": {}, "controller": {}}
    for host, node in sorted(facts.cluster["nodes"].items()):
        role = node["role"]
        of_file, of_future = (node.get("file") or {}).get("variables"), (node.get("paths") or {}).get("variables")
        for variable in (of_file if role == "broker" else of_future) or []:
            what = f"{variable['variable']} of {variable['key']}"
            if variable["key"] in kraft_config.READ_AS_TEXT:
                found["text"].setdefault((what, ""), []).append(host)
            elif variable["foreign"]:
                found["foreign"].setdefault((what, variable["foreign"]), []).append(host)
            elif variable["why"]:
                found[role].setdefault((what, variable["why"]), []).append(host)
    for (what, _why), hosts in found["text"].items():
        yield Finding(
            f"{what} on {format_names(hosts)} is a variable, and this tool reads this key as text",
            "write the value itself into the properties file: the tool compares and edits it",
        )
    for (what, why), hosts in found["broker"].items():
        yield Finding(
            f"{what} cannot be resolved on {format_names(hosts)}: {why}",
            "correct what it names, or its rights, before the next restart of these brokers",
        )
    for (what, why), hosts in found["controller"].items():
        yield Finding(
            f"controllers take {what} from the brokers, and it cannot be resolved on {format_names(hosts)}: {why}",
            "copy what it names to these hosts, or set the key in quorumshift_controller_config",
        )
    for (what, name), hosts in found["foreign"].items():
        yield Finding(
            f"{what} on {format_names(hosts)} needs the config provider {name}",
            "add its jar to the class path of every controller, and its access: otherwise no controller starts",
            warns=True,
        )


def topic_policies(facts: Facts) -> Iterable[Finding]:
    """Yield the policies for topics, whose classes controllers load in KRaft mode."""
    for key in _TOPIC_POLICIES:
        for hosts, name in _brokers_by_value(facts, key):
            yield Finding(
                f"{key} of {format_names(hosts)} is {name}",
                "add its jar to the class path of every controller: otherwise the controller does not start. For "
                "incremental changes a policy receives other input there (KIP-1252)",
            )


def control_plane(facts: Facts) -> Iterable[Finding]:
    """Yield the control plane listeners, which KRaft does not have."""
    for hosts, name in _brokers_by_value(facts, "control.plane.listener.name"):
        yield Finding(
            f"{format_names(hosts)} has control.plane.listener.name={name}",
            "no action before the migration: the restart in KRaft mode removes the key, and the listener stays unused. "
            "Close its port in the firewall afterwards",
        )


def _brokers_by_value(facts: Facts, key: str) -> Iterable[tuple[Sequence[str], str]]:
    """Return the brokers that set `key`, grouped by value: (hosts, value)."""
    values = {host: config_values.get(values_of(node), key) for host, node in facts.brokers.items()}
    return group_by_value({host: value for host, value in values.items() if value}).items()


def self_healer(facts: Facts) -> Iterable[Finding]:
    """Yield the brokers that report to Cruise Control, which may move partitions during the migration."""
    hosts = sorted(
        host
        for host, node in facts.brokers.items()
        if "cruisecontrol" in values_of(node).get("metric.reporters", "").lower()
    )
    if hosts:
        yield Finding(
            f"{format_names(hosts)} reports to Cruise Control",
            "pause its self-healing and its proposals until the migration is finalized: a reassignment closes the "
            "gates, and Cruise Control takes a restarting broker for a failed one",
        )


def authorizer(facts: Facts) -> Iterable[Finding]:
    """Yield the authorizers that are not Kafka's own."""
    known = ("", kraft_config.ZOOKEEPER_AUTHORIZER, kraft_config.STANDARD_AUTHORIZER)
    for host, node in sorted(facts.brokers.items()):
        name = config_values.get(values_of(node), kraft_config.AUTHORIZER)
        if name not in known:
            yield Finding(
                f"{host} uses the authorizer {name}",
                "check that it works in KRaft mode and on controllers: the tool keeps it",
            )
