# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The facts that the checks of an audit need, and which hosts did not give them. Pure."""

from __future__ import annotations

from typing import Any, Callable, Mapping, NamedTuple, Sequence

from ansible_collections.quorumshift.kafka.plugins.module_utils.core.audit import clients
from ansible_collections.quorumshift.kafka.plugins.module_utils.core.audit.audit_facts import (
    BROKER,
    Facts,
    names,
    process_of,
    version_of,
)
from ansible_collections.quorumshift.kafka.plugins.module_utils.core.releases import releases
from ansible_collections.quorumshift.kafka.plugins.module_utils.core.text.advice import Finding
from ansible_collections.quorumshift.kafka.plugins.module_utils.facts import NodeFacts
from ansible_collections.quorumshift.kafka.plugins.module_utils.secrets.seal import is_secret

CLUSTER = "the cluster"


class Lack(NamedTuple):
    """A fact that is missing. `hosts`: {host, or CLUSTER: why it did not give the fact}; `say`: the finding about hosts
    with the same reason, None where check 010 has it; `after`: facts without which a host is named already."""

    hosts: Mapping[str, Any]
    say: Callable[[str, Any], Finding] | None
    after: Sequence[str] = ()


def lacking(facts: Facts, target: str) -> dict[str, Lack]:
    """Return {fact: who did not give it}. A fact is given where it is there, not None, and without a `why`."""
    nodes = _audited(facts)
    read = {host: facts.hosts.get(host) or {} for host in nodes}
    processes = {host: process_of(facts, host) for host in nodes}
    brokers = [host for host, node in nodes.items() if node["role"] == BROKER]
    files = {host: node.get("file") or {} for host, node in nodes.items()}

    def of_hosts(fact: str, otherwise: str, hosts: Sequence[str] = tuple(nodes)) -> dict[str, str]:
        whys = {host: _why(read[host].get(fact), otherwise) for host in hosts}
        return {host: why for host, why in whys.items() if why}

    return {
        "read": Lack(
            {
                host: str(found.get("why") or "the host was not read")
                for host, found in read.items()
                if "process" not in found
            },
            lambda hosts, why: Finding(f"{hosts} was not read: {why}", "make it reachable, and audit again"),
        ),
        "runs": Lack(
            {host: True for host, found in read.items() if "process" in found and not found["process"]},
            lambda hosts, _why: Finding(
                f"no Kafka runs on {hosts}, so its Java, its options, its Log4j file and its dynamic configs are not "
                "known",
                "start it, and audit again",
                warns=True,
            ),
        ),
        "java": Lack(
            {host: True for host in nodes if releases.java_release(processes[host].get("java") or "") is None},
            lambda hosts, _why: Finding(
                f"the Java of {hosts} could not be seen",
                "become root there: it is in the file release of its directory",
            ),
            ("read", "runs"),
        ),
        "options": Lack(
            {host: True for host in nodes if processes[host].get("options") is None},
            lambda hosts, _why: Finding(f"the options of the JVM of {hosts} could not be seen", "become root there"),
            ("read", "runs"),
        ),
        "version": Lack(
            {
                host: f"Kafka {version} is {releases.describe_kind(version)}" if version else "its jar was not seen"
                for host in nodes
                for version in [version_of(facts, host)]
                if releases.parse_release(version) is None
            },
            lambda hosts, why: Finding(
                f"the release of {hosts} is not known: {why}",
                "become root there: it is in the name of the jar that the process has open",
            ),
            ("read", "runs"),
        ),
        "files": Lack(
            {
                host: str(file.get("error") or "it does not exist")
                for host, file in files.items()
                if not file.get("properties")
            },
            lambda hosts, why: Finding(
                f"the properties file of {hosts} was not read: {why}", "correct its path or its rights"
            ),
        ),
        "variables": Lack(
            {
                host: tuple(sorted(unresolved))
                for host, file in files.items()
                for unresolved in [
                    {
                        variable["key"]
                        for variable in file.get("variables") or []
                        if variable["why"] and not is_secret(variable["key"])
                    }
                ]
                if unresolved
            },
            lambda hosts, keys: Finding(
                f"the values of {names(keys)} on {hosts} are variables that could not be resolved",
                "compare them with what the release accepts, or write the values into the file",
            ),
        ),
        "mode": Lack(
            {CLUSTER: True} if facts.in_zookeeper_mode is None else {},
            lambda _cluster, _why: Finding(
                "no broker says whether the cluster is in ZooKeeper mode", "start the brokers, and audit again"
            ),
        ),
        "topics": Lack(
            {CLUSTER: facts.topics_error} if facts.topics is None or facts.topics_error else {},
            lambda _cluster, why: Finding(
                f"the configs of topics could not be read: {why}",
                "give quorumshift_client the operations Describe and DescribeConfigs on all topics, and Describe on "
                "the cluster, and audit again",
            ),
        ),
        "dynamic": Lack(
            _without_dynamic_configs(facts, brokers),
            lambda hosts, why: Finding(
                f"the dynamic configs of {hosts} could not be read: {why}",
                "start these brokers, or give quorumshift_client the operation DescribeConfigs on the cluster, and "
                "audit again",
            ),
            ("runs",),
        ),
        "features": Lack(
            {CLUSTER: facts.features_error} if facts.features is None else {},
            lambda _cluster, why: Finding(f"the features could not be read: {why}", "start the nodes, and audit again"),
        ),
        "log4j": Lack(
            of_hosts("log4j", "the host gave none"),
            lambda hosts, why: Finding(
                f"the Log4j file of {hosts} was not read: {why}",
                "look yourself whether it is one of Log4j 1, and for its appenders",
                warns=True,
            ),
            ("read", "runs"),
        ),
        "formats": Lack(
            of_hosts("formats", "its properties file was not read", brokers),
            lambda hosts, why: Finding(
                f"not every replica of {hosts} was read for its message format: {why}",
                "nothing: what was not read may have messages of an old format",
                warns=True,
            ),
            ("read", "files"),
        ),
        "mirror_makers": Lack(
            of_hosts("mirror_makers", "the host gave none"),
            lambda hosts, why: Finding(
                f"the processes of {hosts} could not be read: {why}", "look for kafka-mirror-maker there", warns=True
            ),
            ("read",),
        ),
        "formatted_by_newer": Lack(
            of_hosts("formatted_by_newer", "its properties file or its directory could not be read"),
            lambda hosts, why: Finding(
                f"which kafka-storage formatted the metadata directory of {hosts} is not known: {why}",
                "correct its path or its rights",
                warns=True,
            ),
            ("read", "files"),
        ),
        "clients": Lack(clients.find_unknown(facts, target), None),
    }


def _why(fact: Any, otherwise: str) -> str:
    """Return why a host did not give a fact, '' if it did."""
    if fact is None:
        return otherwise
    return str(fact.get("why") or "") if isinstance(fact, Mapping) else ""


def _without_dynamic_configs(facts: Facts, brokers: Sequence[str]) -> dict[str, str]:
    """Return {host, or broker without one: why its dynamic configs are not known}."""
    ids = {host: str(facts.nodes[host].get("node_id")) for host in brokers}
    hosts = {name: host for host, name in ids.items()}
    return {
        **{host: "it is not among the brokers that answer" for host in brokers if facts.dynamic.get(ids[host]) is None},
        **{hosts.get(name, f"broker {name}"): why for name, why in facts.unread_brokers.items()},
    }


def _audited(facts: Facts) -> dict[str, NodeFacts]:
    """Return the nodes that are audited. In ZooKeeper mode no upgrade restarts controllers, and they need not run."""
    return {
        host: node
        for host, node in facts.nodes.items()
        if not (facts.in_zookeeper_mode and host in facts.controllers and not process_of(facts, host))
    }
