# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What is wrong with the variables and groups of an inventory, before any host is reached. Pure.

A problem names the variable, the hosts that have the value, the value where it is no secret, and what to set.
"""

from __future__ import annotations

import difflib
import ipaddress
import math
import re
from typing import Any, Callable, Collection, Iterable, Mapping, NamedTuple

from ansible_collections.quorumshift.kafka.plugins.module_utils.core.ensemble import zk_observer
from ansible_collections.quorumshift.kafka.plugins.module_utils.core.preflight import preflight
from ansible_collections.quorumshift.kafka.plugins.module_utils.core.releases import releases
from ansible_collections.quorumshift.kafka.plugins.module_utils.core.text import durations
from ansible_collections.quorumshift.kafka.plugins.module_utils.core.text.advice import format_names
from ansible_collections.quorumshift.kafka.plugins.module_utils.secrets.security import (
    Security,
    SecurityError,
    ZkSecurity,
)
from ansible_collections.quorumshift.kafka.plugins.module_utils.settings.addresses import (
    AddressError,
    parse_host_port,
    parse_host_ports,
    parse_zookeeper_connect,
)

PREFIXES = (
    *("quorumshift_", "restart_", "zk_migrate_", "upgrade_", "reassign_", "features_", "quorum_"),
    *("decommission_", "soak_", "support_", "controller_hosts_", "rehearse_"),
)
ALWAYS = "quorumshift_"  # no other software has variables of this name; of the others only near misses are problems
ALIKE = 0.8  # difflib's ratio of a name that is probably mistyped
MORE_ALIKE = 0.9  # the same for a name of -e without one of the prefixes
CONTROL_NODE = "localhost"
TAKEN = "quorumshift_taken"  # by which a playbook says Needs.taken
MOST_SHOWN = 60
SHORT_SOAK_S = 3600
_BROKERS, _CONTROLLERS, _DESTINATION = "kafka_broker", "kafka_controller", "zookeeper_destination"
ZOOKEEPER = "zookeeper"  # its servers, where the verification reads their files
NAMED_BY = {
    _BROKERS: "quorumshift_broker_group",
    _CONTROLLERS: "quorumshift_controller_group",
    ZOOKEEPER: "quorumshift_zookeeper_group",
}
"""The variable with the inventory's own name of a group, by the group of the playbooks."""
OF_CP_ANSIBLE = ("confluent_server_enabled", "confluent_package_version", "kraft_migration")
"""Variables that inventories of cp-ansible set, and of no other software (its docs/VARIABLES.md)."""
MOST_ZOOKEEPER_ID = 254
MOST_ID = 2**31 - 1  # Kafka's node.id is an int
_TEXT, _NUMBERS = ("str", "path"), ("int", "float")
_PORT = "quorumshift_controller_port"
_ZERO_IS_NONE = (  # of the other numbers, 0 is a value
    "quorumshift_probe_timeout",
    "reassign_max_in_flight",
    "reassign_replication_factor",
    "reassign_throttle_bytes_s",
    "restart_concurrency",
)
_MOST = {
    _PORT: 65535,
    "quorumshift_node_id": MOST_ID,
    "zk_migrate_myid": MOST_ZOOKEEPER_ID,
}
_SECONDS_SINCE_1970 = (10**9, 10**11)  # 2001 to 5138: below are seconds ago, above milliseconds
_TO_READ = (_PORT, "quorumshift_probe_timeout")  # numbers without which nothing can be read
_OF_THE_CONTROL_NODE = (  # paths from its directory
    *("quorumshift_artifacts_dir", "reassign_src", "rehearse_backup", "restart_pause_file"),
)
OF_ONE_RUN = (
    *("quorumshift_accept_degraded", "quorumshift_accept_unverified_copy", "quorumshift_exclude_hosts"),
    *("quorumshift_finalize_token", "quorumshift_force_unlock", "quorumshift_format_token"),
    *("quorumshift_restore_token", "quorumshift_rollback_to", "restart_since", "zk_migrate_without_source"),
)
"""Answers to what one run has found. In an inventory they would answer each later run too, and another cluster's."""
NARROWING = ("restart_roles", "restart_since")
"""They leave nodes out. A playbook that reads them says so by TAKEN; another one would do more than was asked."""
LEAST_LOADED = "least_loaded"
_SETTINGS = ("quorumshift_broker_config", "quorumshift_controller_config", "quorumshift_spark_conf")
_ONE_ADDRESS = r"(?:\[[^\]\s]+\]|[^\s:;,/|]+):\d+:\d+"
_SERVER = re.compile(rf"{_ONE_ADDRESS}(?:\|{_ONE_ADDRESS})*")  # of ZooKeeper's server.N, without role and client port
_ADDED = {
    _BROKERS: "Add the brokers' hosts to it, and give the inventory with -i",
    _CONTROLLERS: "Add three hosts to it",
}


class Problem(NamedTuple):
    """`severity`: a run shows what `warns` and goes on; what `fails` ends it, `status` alone goes on; what `stops` ends
    `status` too, since it cannot read the cluster with that value, or since the value replaces a playbook's own."""

    text: str
    severity: str = "fails"


class Needs(NamedTuple):
    """What a playbook needs beside the cluster's own variables: groups that have hosts, variables that are set, and
    names of which exactly one is given. `taken`: internal and NARROWING names that may be given with -e."""

    groups: Collection[str] = (_BROKERS,)
    variables: Collection[str] = ()
    one_of: Collection[str] = ()
    taken: Collection[str] = ()


NOTHING_MORE = Needs()


class Given:
    """The variables of an inventory: {host: {name: value}} of the control node and of each node, and its groups.
    `typed`: the names that were given with -e; `ran`: whether a playbook of the collection has run in this process, so
    that the hosts also have what it registered; `lost`: what Ansible did not read as NAME=VALUE of -e; `of_cp_ansible`:
    the names of OF_CP_ANSIBLE that a host has."""

    def __init__(
        self,
        hosts: Mapping[str, Mapping[str, Any]],
        groups: Mapping[str, list[str]],
        typed: Collection[str] = (),
        ran: bool = False,
        lost: str = "",
        of_cp_ansible: Collection[str] = (),
    ) -> None:
        self.hosts = hosts
        self.of_cp_ansible = of_cp_ansible
        self.lost = lost
        self.ran = ran
        self.typed = typed
        self.groups = groups
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

    def is_read_by_nodes(self, name: str) -> bool:
        """Return whether a node has the variable, and each node that has it reads it."""
        found = [own[name] for host, own in self.hosts.items() if host != CONTROL_NODE and name in own]
        return bool(found) and not any(isinstance(value, Unreadable) for value in found)

    def format_hosts(self, hosts: Collection[str]) -> str:
        """Return the hosts that have a value in parentheses, nothing if all have it."""
        if set(hosts) == set(self.hosts):
            return ""
        return f" ({format_names([host if host != CONTROL_NODE else 'the control node' for host in hosts])})"

    def names(self) -> list[str]:
        """Return the names of all variables with one of the prefixes, and of those that seem to have one."""
        found = {name for variables in self.hosts.values() for name in variables}
        return sorted(name for name in found if is_own(name))


def is_own(name: str) -> bool:
    """Return whether a variable has one of the prefixes, or a mistyped one."""
    if name.startswith(PREFIXES):
        return True
    first = re.split("[_-]", name.lower().strip("-"))[0]
    return first[:1] == "q" and difflib.SequenceMatcher(None, first, ALWAYS.rstrip("_")).ratio() >= ALIKE


def find_problems(
    given: Given,
    specs: Mapping[str, Mapping],
    cluster_wide: Collection[str],
    known: Collection[str],
    internal: Collection[str],
    convert: Callable[[Mapping, Any], Any],
    forward: bool,
    needs: Needs = NOTHING_MORE,
) -> list[Problem]:
    """Return the problems, each a few sentences.

    `specs`: the argument spec of each public variable; `cluster_wide`: those that the control node needs; `known`:
    every name that the collection uses; `internal`: those that playbooks and roles set themselves; `convert`: returns a
    value as its spec has it, or raises ValueError or TypeError; `forward`: whether a migration begins, which needs
    controllers; `needs`: what this playbook needs.
    """
    misnamed = [*_named_groups(given)]
    whatever_the_groups = [
        *_unknown(given, known, specs),
        *_internal(given, internal, needs),
        *_narrowing(given, needs),
        *_values(given, specs, cluster_wide, convert),
        *_forms(given, specs, convert),
        *_of_one_run(given, specs, convert),
    ]
    if misnamed:  # what else would be said of hosts is of the wrong ones
        return [*misnamed, *whatever_the_groups]
    return [
        *_beside_cp_ansible(given),
        *_groups(given, forward, needs),
        *whatever_the_groups,
        *_control_node(given, cluster_wide, specs),
        *_needed(given, needs, specs, convert),
        *_hosts(given, specs, convert),
        *_addresses(given, specs, convert),
        *_connections(given, specs, convert),
        *_super_users(given, specs, convert),
        *_durations(given, specs, convert),
        *_records(given),
        *_shared_directory(given),
        *_ids(given, forward),
        *(_servers(given, specs, convert) if _DESTINATION in needs.groups else ()),
    ]


def _named_groups(given: Given) -> Iterable[Problem]:
    for group, variable in NAMED_BY.items():
        for named, hosts in given.values(variable):
            if not isinstance(named, str) or named in ("", group):
                continue
            members = given.groups.get(named) or []
            if not members:
                yield Problem(
                    f"{variable}{given.format_hosts(hosts)}: the inventory has no host in a group {named!r}. Correct "
                    "the name, or add the group's hosts.",
                    "stops",
                )
            others = sorted(set(given.groups.get(group) or ()) - set(members))
            if members and others:
                yield Problem(
                    f"{format_names(others)}: in the group {group}, and {variable} names the group {named}. Have all "
                    f"of them in {named} alone, or remove the variable.",
                    "stops",
                )


def _beside_cp_ansible(given: Given) -> Iterable[Problem]:
    """Yield that cp-ansible would take this cluster for one in KRaft mode: a group kafka_controller with a host is all
    that it asks for (kraft_enabled of its role `variables`). After the migration it has no group zookeeper any more."""
    named = [value for value, _hosts in given.values(NAMED_BY[_CONTROLLERS]) if value != _CONTROLLERS]
    if given.of_cp_ansible and given.controllers and given.groups.get(ZOOKEEPER) and not named:
        yield Problem(
            f"The group {_CONTROLLERS} is beside variables of cp-ansible ({sorted(given.of_cp_ansible)[0]}), which "
            "takes it for a cluster in KRaft mode and would write that into the brokers' files. Rename the group to "
            f"quorumshift_controllers, and set {NAMED_BY[_CONTROLLERS]}: quorumshift_controllers. "
            "See docs/cp-ansible.md.",
            "warns",
        )


def _groups(given: Given, forward: bool, needs: Needs) -> Iterable[Problem]:
    wanted = [_BROKERS, *needs.groups, *([_CONTROLLERS] if forward else [])]
    for group in dict.fromkeys(wanted):
        if not given.groups.get(group):
            added = _ADDED.get(group, "Add its hosts to it")
            yield Problem(f"The inventory has no host in the group {group}. {added}.")
    both = sorted(set(given.brokers) & set(given.controllers))
    if both:
        yield Problem(
            f"{format_names(both)}: in both groups, {_BROKERS} and {_CONTROLLERS}. Give each controller a name of its "
            "own: it is another process, on another host or on this one. KIP-866 has no combined mode."
        )
    odd = [host for host in given.hosts if re.search(r"[\s,;]", host)]
    if odd:
        yield Problem(f"{odd[0]!r}: the name of a host has no blank, comma or semicolon. Correct it in the inventory.")
    count = len(given.controllers)
    if forward and count and count % 2 == 0:
        yield Problem(
            f"The group {_CONTROLLERS} has {count} hosts. Give it an odd number, 3 or 5: one more controller tolerates "
            "no more failures.",
            "warns",  # the preflight blocks; a migration that has begun goes on
        )


def _unknown(given: Given, known: Collection[str], public: Collection[str]) -> Iterable[Problem]:
    if given.lost:
        name = re.split(r"[\s=:]", given.lost)[0]
        yield Problem(f"-e {name}: Ansible reads no value of it. Write NAME=VALUE without blanks around the sign.")
    for name in sorted({*given.names(), *given.typed}):
        if name in known:
            continue
        own = is_own(name)
        written = name.lower().replace("-", "_").strip("_")
        near = difflib.get_close_matches(written, sorted(public), 1, ALIKE if own else MORE_ALIKE)
        if not near and not name.startswith(ALWAYS) and not (own and name in given.typed):
            continue  # of other software
        hosts = sorted({host for _value, hosts in given.values(name) for host in hosts})
        meant = f"Did you mean {near[0]}?" if near else "Remove it, or see the README of the role quorumshift."
        where = "" if name in given.typed else given.format_hosts(hosts)
        yield Problem(f"{name}{where}: no variable of this collection has this name. {meant}")


def _internal(given: Given, internal: Collection[str], needs: Needs) -> Iterable[Problem]:
    """Yield internal names. One that is given with -e replaces the value of each playbook and role that sets it."""
    taken = {*needs.taken} - {TAKEN}
    for name in sorted(set(given.typed) & set(internal) - taken):
        yield Problem(
            f"{name} is internal: the playbooks set it themselves, and -e would replace their values. Remove it from "
            "the command.",
            "stops",
        )
    for name in given.names() if not given.ran else ():
        if name in internal and name.startswith(ALWAYS) and name not in given.typed:
            hosts = sorted({host for _value, hosts in given.values(name) for host in hosts})
            yield Problem(
                f"{name}{given.format_hosts(hosts)} is internal: the playbooks set it themselves. Remove it from the "
                "inventory."
            )


def _narrowing(given: Given, needs: Needs) -> Iterable[Problem]:
    for name in sorted(set(NARROWING) & set(given.typed) - {*needs.taken}):
        yield Problem(f"{name}: this playbook does not read it, and leaves out no node. Remove it from the command.")


def _values(
    given: Given,
    specs: Mapping[str, Mapping],
    cluster_wide: Collection[str],
    convert: Callable[[Mapping, Any], Any],
) -> Iterable[Problem]:
    for name in given.names():
        spec = specs.get(name)
        severity = "stops" if name in cluster_wide else "fails"
        for value, hosts in given.values(name) if spec else ():
            if isinstance(value, Unreadable):
                if hosts == [CONTROL_NODE] and name not in cluster_wide and given.is_read_by_nodes(name):
                    continue  # made of a host's own variables, as its address, which the control node lacks
                yield Problem(f"{name}{given.format_hosts(hosts)}: {value.reason}. Correct its value.", severity)
                continue
            if _is_empty(spec, value):
                yield Problem(
                    f"{name}{given.format_hosts(hosts)} is empty. Set a value, or remove it: then its default is used.",
                    severity,
                )
                continue
            if value is None:
                continue
            try:
                converted = convert(spec, value)
            except (TypeError, ValueError) as error:
                wrong = f"{_format_value(spec, value)}{_reason(spec, error)}"
                yield Problem(
                    f"{name}{given.format_hosts(hosts)}: {wrong}" + ("" if wrong.endswith("?") else "."), severity
                )
                continue
            choices = spec.get("choices")
            chosen = converted if isinstance(converted, list) else [converted]
            for wrong in chosen if choices else ():
                if wrong not in choices:
                    near = difflib.get_close_matches(str(wrong), list(map(str, choices)), 1, 0.6)
                    meant = f"Did you mean {near[0]}?" if near else f"Use one of {', '.join(filter(None, choices))}."
                    yield Problem(
                        f"{name}{given.format_hosts(hosts)}: {_format_value(spec, wrong)}no such choice. {meant}",
                        severity,
                    )
            if choices and chosen == []:
                yield Problem(
                    f"{name}{given.format_hosts(hosts)} is empty. Use {' or '.join(choices)}, or leave it out.",
                    severity,
                )


def _is_empty(spec: Mapping, value: Any) -> bool:
    """Return whether a variable has no value and its default has one. Empty text is an empty list."""
    default = spec.get("default")
    return default not in (None, "") and (value is None or (value == "" and spec.get("type") != "list"))


def _forms(given: Given, specs: Mapping[str, Mapping], convert: Callable[[Mapping, Any], Any]) -> Iterable[Problem]:
    """Yield values of the right type that no run can use."""
    for name in given.names():
        spec = specs.get(name) or {}
        for value, hosts in given.values(name) if spec else ():
            if value in (None, "") or isinstance(value, Unreadable):
                continue
            try:
                wrong = _explain_unfit(name, spec, convert(spec, value))
            except (TypeError, ValueError):
                continue  # the check of the values reports it
            if wrong:
                yield Problem(f"{name}{given.format_hosts(hosts)}: {wrong}.", "stops" if name in _TO_READ else "fails")


def _of_one_run(
    given: Given, specs: Mapping[str, Mapping], convert: Callable[[Mapping, Any], Any]
) -> Iterable[Problem]:
    """Yield what an inventory answers in advance. Hosts do not have a playbook's own `vars`, which are of a run."""
    for name in sorted(set(OF_ONE_RUN) - set(given.typed)):
        for value, hosts in given.values(name):
            nodes = [host for host in hosts if host != CONTROL_NODE]
            if nodes and not isinstance(value, Unreadable) and _is_answer(specs[name], value, convert):
                yield Problem(
                    f"{name}{given.format_hosts(hosts)} is in the inventory, and would count for every later run. "
                    f"Remove it there. Give it on the command line: -e {name}=VALUE."
                )


def _is_answer(spec: Mapping, value: Any, convert: Callable[[Mapping, Any], Any]) -> bool:
    try:
        return bool(value is not None and convert(spec, value))
    except (TypeError, ValueError):
        return False  # the check of the values reports it


def _explain_unfit(name: str, spec: Mapping, value: Any) -> str:
    """Return what is wrong with a value of the right type, "" if nothing is."""
    if spec.get("type") in _NUMBERS:
        least, most = int(name == _PORT), _MOST.get(name, math.inf)
        above_zero = name in _ZERO_IS_NONE or name.endswith("_timeout_s")  # a wait of no time is no wait
        if not math.isfinite(value) or not least <= value <= most or (not value and above_zero):
            wanted = f"from {least} " + (f"to {most}" if name in _MOST else "on")
            wrong = "no port" if name == _PORT else "out of range"
            return f"{value!r} is {wrong}. Use a number {'above 0' if above_zero else wanted}"
    if name == "restart_since" and value and not _SECONDS_SINCE_1970[0] <= value <= _SECONDS_SINCE_1970[1]:
        return f"{value!r} is no time. Use seconds since 1970, as date +%s prints them"
    if spec.get("type") == "path" and name not in _OF_THE_CONTROL_NODE and not str(value).startswith(("/", "~", "$")):
        return f"{value!r} is no absolute path. Begin it with /"
    if name in _SETTINGS:
        nested = [key for key, own in value.items() if own is None or isinstance(own, (list, tuple, set, Mapping))]
        if nested:
            return f"{nested[0]!r} has no text as its value. Write it as in a properties file, a list with commas"
    if name == "quorumshift_controller_listener" and not re.fullmatch(r"[\w.-]+", value):
        return f"{value!r} is no name of a listener. Write one name, as CONTROLLER"
    if name == "quorumshift_waive":
        wrong = "; ".join(preflight.check_waivers(value))
        return f"{wrong}. Write the id of a check with the reason, as {{QS-CHECK-049: known}}" if wrong else ""
    if name in ("reassign_drain", "reassign_cordon"):
        odd = [broker for broker in value if not 0 <= broker <= MOST_ID]
        return f"{odd[0]} is out of range. Use ids of brokers, from 0 to {MOST_ID}" if odd else ""
    if name == "reassign_add" and value != LEAST_LOADED and not (value.isascii() and value.isdigit()):
        return f"{value!r} is no broker id. Use one number, or {LEAST_LOADED}"
    if name == "upgrade_to" and releases.parse_release(value) is None:
        return f"{value!r} is no version of Kafka. Write all of it, as 3.9.1 or 7.9.0-ccs"
    if name in ("features_upgrade_to", "features_downgrade_to") and not (
        re.fullmatch(r"\d+\.\d+", value) or releases.parse_release(value)
    ):
        return f"{value!r} is no release of Kafka. Write it as 4.1"
    if name in ("zk_migrate_destination_servers", "zk_migrate_source_servers"):
        # Those of the source are as in its zoo.cfg, with role and client port
        address = zk_observer.Member if name == "zk_migrate_destination_servers" else zk_observer.parse_member
        texts = {key: str(own).strip() for key, own in value.items() if own}
        odd = [f"{key}: {own}" for key, own in texts.items() if not _SERVER.fullmatch(address(own).address)]
        if odd:
            return f"{odd[0]!r} is no address of a server. Write host:2888:3888, without role and client port"
    return ""


def _control_node(given: Given, cluster_wide: Collection[str], specs: Mapping[str, Mapping]) -> Iterable[Problem]:
    own = given.hosts.get(CONTROL_NODE, {})
    for name in sorted(cluster_wide):
        elsewhere = sorted({host for _value, hosts in given.values(name) for host in hosts} - {CONTROL_NODE})
        if name not in own and elsewhere:
            yield Problem(
                f"{name} is set for {format_names(elsewhere)}, but not for the control node, which needs it. Set it in "
                "the inventory's group all.",
                "stops" if specs[name].get("required") else "fails",
            )
        elif specs[name].get("required") and own.get(name) in (None, "", []):
            yield Problem(_explain_unset(name, specs), "stops")
        elif name in own:
            other = [host for value, hosts in given.values(name) if value != own[name] for host in hosts]
            if other:
                yield Problem(
                    f"{name} has another value for {format_names(other)} than for the control node. One value is for "
                    "the whole cluster. Set it in the inventory's group all alone.",
                    "warns",  # most are read on the control node alone
                )


def _needed(
    given: Given, needs: Needs, specs: Mapping[str, Mapping], convert: Callable[[Mapping, Any], Any]
) -> Iterable[Problem]:
    def is_set(name: str) -> bool:
        value = given.hosts.get(CONTROL_NODE, {}).get(name)
        if value is None or isinstance(value, Unreadable):
            return value is not None
        try:
            converted = convert(specs[name], value)
        except (TypeError, ValueError):
            return True  # the check of the values reports it
        return converted is not False and converted not in ("", [], {})

    for name in needs.variables:
        if not is_set(name):
            yield Problem(_explain_unset(name, specs))
    set_here = [name for name in needs.one_of if is_set(name)]
    if needs.one_of and len(set_here) != 1:
        seen = f"{' and '.join(set_here)} are set" if set_here else "None is set"
        yield Problem(f"Set exactly one of {', '.join(needs.one_of)}. {seen}.")


def _is_no(value: Any) -> bool:
    return str(value).strip().lower() in ("false", "no", "off", "n", "f")


def _explain_unset(name: str, specs: Mapping[str, Mapping]) -> str:
    """Return that a variable is not set, with where to set it and an example from its description."""
    example = next((line for line in _lines(specs[name]) if line.startswith("Example")), "")
    where = f"{name} is not set. Set it in the inventory's group all, or with -e."
    return f"{where} {_strip_markup(example)}".rstrip()


def _strip_markup(text: str) -> str:
    """Return a description without Ansible's markup."""
    return text.replace("V(", "").replace(").", ".") if "V(" in text else text


def _hosts(given: Given, specs: Mapping[str, Mapping], convert: Callable[[Mapping, Any], Any]) -> Iterable[Problem]:
    """Yield names of hosts that the inventory does not have."""
    known = {CONTROL_NODE, *(host for hosts in given.groups.values() for host in hosts)}
    for name in ("quorumshift_probe_host", "quorumshift_spark_host", "quorumshift_exclude_hosts", "quorumshift_canary"):
        for value, hosts in given.values(name):
            try:
                named = convert(specs[name], value) or []
            except (TypeError, ValueError):
                continue  # the check of the values reports it
            for host in [named] if isinstance(named, str) else named:
                if host and host not in known:
                    near = difflib.get_close_matches(host, sorted(known), 1, ALIKE)
                    meant = f"Did you mean {near[0]}?" if near else "Use the name that the inventory has."
                    yield Problem(
                        f"{name}{given.format_hosts(hosts)}: the inventory has no host {host}. {meant}", "stops"
                    )


def _addresses(given: Given, specs: Mapping[str, Mapping], convert: Callable[[Mapping, Any], Any]) -> Iterable[Problem]:
    for name, parse in (
        ("quorumshift_bootstrap_servers", parse_host_ports),
        ("quorumshift_zookeeper_connect", parse_zookeeper_connect),
        ("zk_migrate_source_connect", parse_zookeeper_connect),
        ("zk_migrate_destination_connect", parse_zookeeper_connect),
        ("quorumshift_controller_host", _require_host),
    ):
        for value, hosts in given.values(name):
            if not value or isinstance(value, Unreadable):
                continue
            try:
                parse(convert(specs[name], value))  # type: ignore[operator]
            except AddressError as error:
                yield Problem(f"{name}{given.format_hosts(hosts)}: {error}.", "stops")
            except (TypeError, ValueError):
                continue  # the check of the values reports it
    yield from _ensembles(given)


def _require_host(text: str) -> None:
    """Raise AddressError for text that is no host name and no address."""
    if ":" not in text:
        if parse_host_port(text, 1).host != text:
            raise AddressError(f"{text!r} is not a host (QS-CONNECT-006)")
        return
    try:
        ipaddress.ip_address(text)
    except ValueError:
        raise AddressError(
            f"{text!r} is not a host. Write a name, or an address without brackets; the port is "
            "quorumshift_controller_port (QS-CONNECT-006)"
        ) from None


def _ensembles(given: Given) -> Iterable[Problem]:
    """Yield connect strings of a move that do not lead from one ensemble to another."""
    own = given.hosts.get(CONTROL_NODE, {})
    names = ("zk_migrate_source_connect", "zk_migrate_destination_connect")
    try:
        source, destination = (parse_zookeeper_connect(own.get(name) or "") for name in names)
    except (AddressError, AttributeError, TypeError):
        return  # not set, or reported
    both = [str(server) for server in source.servers if server in destination.servers]
    if both:
        yield Problem(f"{names[0]} and {names[1]}: both have {format_names(both)}. Give the servers of two ensembles.")
    elif source.chroot != destination.chroot:
        yield Problem(
            f"{names[1]} has the chroot {destination.chroot or '/'}, and {names[0]} has {source.chroot or '/'}. "
            "Kafka's znodes keep their paths. Write the same chroot in both."
        )


def _connections(
    given: Given, specs: Mapping[str, Mapping], convert: Callable[[Mapping, Any], Any]
) -> Iterable[Problem]:
    """Yield options of connections that contradict each other. The probe host opens the files that they name."""
    for name, parse in (
        ("quorumshift_client", Security.from_options),
        ("quorumshift_controller_client", Security.from_options),
        ("quorumshift_zookeeper_client", ZkSecurity.from_options),
    ):
        for value, hosts in given.values(name):
            try:
                parse(convert(specs[name], value), name)  # type: ignore[operator]
            except SecurityError as error:
                yield Problem(f"{error}{given.format_hosts(hosts)}.", "stops")
            except (TypeError, ValueError):
                continue  # the check of the values reports it


def _super_users(
    given: Given, specs: Mapping[str, Mapping], convert: Callable[[Mapping, Any], Any]
) -> Iterable[Problem]:
    name = "quorumshift_controller_super_users"
    for value, hosts in given.values(name):
        try:
            principals = convert(specs[name], value) or []
        except (TypeError, ValueError):
            continue  # the check of the values reports it
        untyped = [principal for principal in principals if not all(principal.partition(":"))]
        if untyped:
            yield Problem(
                f"{name}{given.format_hosts(hosts)}: {untyped[0]!r} has no type. Write each as User:NAME. A name with "
                "a comma needs a YAML list."
            )


def _durations(given: Given, specs: Mapping[str, Mapping], convert: Callable[[Mapping, Any], Any]) -> Iterable[Problem]:
    for name in ("quorumshift_soak", "quorumshift_soak_gap"):
        for value, hosts in given.values(name):
            try:
                text = convert(specs[name], value)
                if text in (None, ""):
                    continue  # the check of the values reports it
            except (TypeError, ValueError):
                continue  # the check of the values reports it
            try:
                seconds = durations.parse_duration(text)
            except ValueError as error:
                yield Problem(f"{name}{given.format_hosts(hosts)}: {error}.", "stops")
                continue
            yield from _short_soak(name, value, seconds, given.format_hosts(hosts))


def _short_soak(name: str, value: Any, seconds: float, where: str) -> Iterable[Problem]:
    if name == "quorumshift_soak" and seconds < SHORT_SOAK_S:
        yield Problem(
            f"{name}{where}: {value} is less than an hour. Finalization cannot be "
            "undone; the soak shows faults before it. The default is 24h.",
            "warns",
        )


def _records(given: Given) -> Iterable[Problem]:
    """Yield a login with which records cannot be read."""
    here = given.hosts.get(CONTROL_NODE, {})
    is_read = here.get("quorumshift_fingerprint_topics") and not _is_no(here.get("quorumshift_verify", True))
    client = here.get("quorumshift_client")
    if is_read and isinstance(client, Mapping) and str(client.get("sasl_mechanism")).upper() == "GSSAPI":
        yield Problem(
            "quorumshift_fingerprint_topics is set, and quorumshift_client logs in with GSSAPI, with which records "
            "cannot be read. Unset it, or use a listener with another login."
        )


def _shared_directory(given: Given) -> Iterable[Problem]:
    """Yield that executors of several hosts have no directory for what they read."""
    here = given.hosts.get(CONTROL_NODE, {})
    master = str(here.get("quorumshift_spark_master") or "local")
    is_elsewhere = not master.startswith("local") and not _is_no(here.get("quorumshift_verify", True))
    if is_elsewhere and not here.get("quorumshift_spark_uri"):
        yield Problem(
            f"quorumshift_spark_uri is not set, and executors of {master} write what they read. Set it to a directory "
            "that the Spark host and all executors share, such as hdfs://namenode-1/quorumshift."
        )


def _ids(given: Given, forward: bool) -> Iterable[Problem]:
    by_id: dict[str, list[str]] = {}
    for host in dict.fromkeys([*given.brokers, *given.controllers]):
        value = given.hosts.get(host, {}).get("quorumshift_node_id")
        if value in (None, ""):
            if forward and host in given.controllers:
                yield Problem(
                    f"quorumshift_node_id ({host}): not set. Give each controller a number that no broker has."
                )
            continue
        if isinstance(value, bool) or not str(value).strip().isdecimal():
            continue  # the check of the values reports it
        by_id.setdefault(str(int(value)), []).append(host)
    for number, hosts in by_id.items():
        if len(hosts) > 1:
            yield Problem(
                f"quorumshift_node_id: {format_names(hosts)} have the same id, {number}. Give each an id of its own."
            )


def _servers(given: Given, specs: Mapping[str, Mapping], convert: Callable[[Mapping, Any], Any]) -> Iterable[Problem]:
    """Yield ids of destination hosts and servers that do not fit each other."""
    name, own = "zk_migrate_destination_servers", given.hosts.get(CONTROL_NODE, {})
    try:
        listed = convert(specs[name], own.get(name)) or {}
    except (TypeError, ValueError):
        return  # the check of the values reports it
    servers = {str(number).strip() for number in listed}
    for number in sorted(servers):
        if not number.isdigit() or not 1 <= int(number) <= MOST_ZOOKEEPER_ID:
            yield Problem(f"{name}: {number!r} is no id of a server. Use numbers from 1 to {MOST_ZOOKEEPER_ID}.")
    by_id: dict[str, list[str]] = {}
    for host in given.groups.get(_DESTINATION) or ():
        value = given.hosts.get(host, {}).get("zk_migrate_myid")
        if value in (None, ""):
            yield Problem(f"zk_migrate_myid ({host}): not set. Set it to the host's id in {name}.")
        elif not isinstance(value, Unreadable):
            by_id.setdefault(str(value).strip(), []).append(host)
    for number, hosts in by_id.items():
        if len(hosts) > 1:
            yield Problem(
                f"zk_migrate_myid: {format_names(hosts)} have the same id, {number}. Give each an id of its own."
            )
        elif listed and number not in servers:
            yield Problem(
                f"zk_migrate_myid ({hosts[0]}): {number} is no id of {name}. It has {format_names(sorted(servers))}."
            )
    yield from _dead(given, len(servers), specs, convert)


def _dead(
    given: Given, servers: int, specs: Mapping[str, Mapping], convert: Callable[[Mapping, Any], Any]
) -> Iterable[Problem]:
    """Yield hosts that cannot be named dead, or cleaned."""
    group = given.groups.get(_DESTINATION) or []
    for name in ("zk_migrate_clean_hosts", "zk_migrate_dead_hosts"):
        try:
            dead = [host.strip() for host in convert(specs[name], given.hosts.get(CONTROL_NODE, {}).get(name)) or []]
        except (TypeError, ValueError):
            return  # the check of the values reports it
        foreign = sorted({host for host in dead if host not in group})
        if foreign:
            yield Problem(
                f"{name}: {format_names(foreign)} is no host of the group {_DESTINATION}. It has "
                f"{format_names(sorted(group))}.",
                "stops",
            )
    count = len(set(dead))
    if count and 2 * count >= max(servers, len(group)):
        yield Problem(
            f"{name}: {count} of {max(servers, len(group))} destination servers are dead, and the others are no "
            "majority. Start or replace hosts.",
            "stops",
        )


class Misread(TypeError):
    """A value that is not the text that the operator wrote: YAML read it as something else."""

    def __init__(self, read: str, name: str = "it") -> None:
        super().__init__(f"YAML reads {name} as {read}. Put it in quotes")
        self.read = read


def require_type(spec: Mapping, value: Any) -> None:
    """Raise TypeError for a value that Ansible would convert to what it does not mean: text from a list or from a
    number that YAML shortened, a number from a boolean."""
    kind = spec.get("type", "str")
    if kind == "list" and isinstance(value, (list, tuple)):
        for item in value:
            require_type({**spec, "type": spec.get("elements", "raw")}, item)
    elif kind == "dict" and isinstance(value, Mapping):
        for key, option in (spec.get("options") or {}).items():
            try:
                require_type(option, value.get(key))
            except Misread as error:
                raise Misread(error.read, key) from None
            except TypeError:
                raise TypeError(f"{key} is not of type {option.get('type', 'str')}") from None
    elif isinstance(value, bool) and kind in _NUMBERS:
        raise TypeError(f"not of type {kind}")
    elif kind in _TEXT and value is not None and not isinstance(value, str):
        if isinstance(value, (list, tuple, Mapping)):
            raise TypeError(f"not of type {kind}")
        if isinstance(value, bool) or not isinstance(value, int):
            read = "a boolean" if isinstance(value, bool) else "a number" if isinstance(value, float) else "a date"
            raise Misread(read)


class Unreadable:
    """A value that Ansible could not template, with the reason."""

    def __init__(self, reason: str) -> None:
        self.reason = " ".join(reason.split()).rstrip(".")

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Unreadable) and other.reason == self.reason

    __hash__ = None  # type: ignore[assignment]


def may_be_secret(spec: Mapping) -> bool:
    """Return whether a value may hold a secret whose syntax does not show it: a dictionary, which -e and AWX may also
    give as text, may have the settings of a plugin."""
    return "dict" in (spec.get("type"), spec.get("elements")) or bool(spec.get("no_log"))


def _format_value(spec: Mapping, value: Any) -> str:
    """Return a value for a message; nothing of one that may hold a secret."""
    if may_be_secret(spec):
        return ""
    text = repr(value) if isinstance(value, (str, int, float, list, Mapping)) else str(value)
    return f"{text if len(text) <= MOST_SHOWN else text[:MOST_SHOWN] + '…'}: "


def _reason(spec: Mapping, error: Exception) -> str:
    """Return what the type is; of a dictionary also which key is wrong."""
    if isinstance(error, Misread):
        return str(error)
    text = " ".join(str(error).split()).rstrip(".")
    if "dict" not in (spec.get("type"), spec.get("elements")) or "unable to convert to dict" in text:
        elements = f" of {spec['elements']}" if "elements" in spec else ""
        return f"not of type {spec.get('type', 'str')}{elements}"
    unknown = re.match(r"value\.(\w+)\. Supported parameters include: ", text)
    if unknown:
        near = difflib.get_close_matches(unknown.group(1), list(spec.get("options") or ()), 1, 0.6)
        meant = f"Did you mean {near[0]}?" if near else f"Options: {', '.join(spec.get('options') or ())}"
        return f"{unknown.group(1)} is no option. {meant}"
    return re.sub(r" found in value$", "", re.sub(r"^value of ", "", text))


def _lines(spec: Mapping) -> list[str]:
    found = spec.get("description") or ""
    return [found] if isinstance(found, str) else list(found)
