# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What stops or changes a cluster on the way to a later release of Kafka. Pure, over collected facts.

A check is a function of the facts and of one build of Kafka; `CHECKS` gives each its stable id, title, severity and
source. `run` evaluates one build, or every release up to the newest that is known, and says from which release on a
finding holds.
"""

from __future__ import annotations

from types import MappingProxyType
from typing import Any, Callable, Iterable, Mapping, NamedTuple

from ansible_collections.quorumshift.kafka.plugins.module_utils import message_ids
from ansible_collections.quorumshift.kafka.plugins.module_utils.core.audit import (
    clients,
    processes,
    quorum,
    settings,
    storage,
)
from ansible_collections.quorumshift.kafka.plugins.module_utils.core.audit.audit_facts import (
    Facts,
    grouped,
    names,
    process_of,
    version_of,
)
from ansible_collections.quorumshift.kafka.plugins.module_utils.core.preflight.check_facts import run_check
from ansible_collections.quorumshift.kafka.plugins.module_utils.core.releases import accepted as accepted_values
from ansible_collections.quorumshift.kafka.plugins.module_utils.core.releases import releases
from ansible_collections.quorumshift.kafka.plugins.module_utils.core.text.advice import Finding
from ansible_collections.quorumshift.kafka.plugins.module_utils.facts import NodeFacts

_ARTIFACTS = "upgrade_audit.json of the run directory, which holds no secret"


class Check(NamedTuple):
    """`id`: of its findings, as messages have it; `severity`: `blocks` or `warns`, the highest of its findings;
    `source`: the code or document it relies on; `acceptable`: whether an operator may accept a finding that blocks."""

    id: str
    name: str
    title: str
    severity: str
    source: str
    find: Callable[[Facts, str], Iterable[Finding]]
    acceptable: bool = False


def run(facts: Facts, target: str = "", accepted: Mapping[str, str] = MappingProxyType({})) -> list[dict[str, Any]]:
    """Return the findings, [{id, title, severity, source, since, seen, do, waived}], the blocking ones first.

    `target`: a build, or '' for each release from the one that runs to the newest; `since`: the first release of which
    it is true, '' where that is no question; `accepted`: {check id: reason}.
    """
    targets = [target] if target else quorum.path(facts)
    found: dict[tuple[str, str], dict[str, Any]] = {}
    for check in CHECKS:
        for build in targets:
            for finding in run_check(check.find, facts, build, artifacts=_ARTIFACTS):
                severity = "warns" if finding.warns else check.severity
                seen = message_ids.strip_ids(finding.seen)
                reason = accepted.get(check.id) if check.acceptable or severity == "warns" else None
                release = releases.parse_release(build)
                found.setdefault(
                    (check.id, seen),
                    {
                        "id": check.id,
                        "title": check.title,
                        "severity": severity,
                        "source": check.source,
                        "since": "" if target or release is None else releases.format_release(release),
                        "seen": seen,
                        "do": message_ids.strip_ids(finding.do),
                        "waived": reason,
                    },
                )
    return sorted(found.values(), key=lambda finding: (finding["severity"] != "blocks", finding["id"]))


def is_downgrade(facts: Facts, target: str) -> bool:
    """Return whether a node runs a later release than the target, so that the binaries are taken back."""
    wanted = releases.parse_release(target)
    running = [releases.parse_release(version_of(facts, host)) for host in facts.nodes]
    return wanted is not None and any(release is not None and release > wanted for release in running)


def check_accepted(accepted: Mapping[str, str]) -> list[str]:
    """Return why upgrade_accept is invalid, as sentences."""
    known = {check.id: check for check in CHECKS}
    troubles = [f"{name} is no check of the audit" for name in sorted(accepted) if name not in known]
    troubles += [
        f"{name} stops nodes, and cannot be accepted"
        for name in sorted(accepted)
        if name in known and known[name].severity == "blocks" and not known[name].acceptable
    ]
    return troubles + [f"{name} has no reason" for name in sorted(accepted) if not str(accepted[name] or "").strip()]


def ids_with_facts(facts: Facts, target: str) -> list[str]:
    """Return the ids of the checks that had all facts of their subject: of these alone, no finding is a good answer."""
    hosts = [facts.hosts.get(host) or {} for host in _audited(facts)]
    processes_seen = all(host.get("process") for host in hosts)
    files_read = all((node.get("file") or {}).get("properties") for node in _audited(facts).values())
    formats_read = not any((host.get("formats") or {}).get("why") for host in hosts)
    has_facts = {
        **dict.fromkeys(("values", "classes", "keys"), files_read),
        **dict.fromkeys(("allowed_urls", "log4j", "mirror_maker"), processes_seen),
        "java": processes_seen and all(host["process"].get("java") for host in hosts),
        **dict.fromkeys(("formats", "formatted"), processes_seen and formats_read),
        **dict.fromkeys(("topic_values", "topic_keys"), facts.topics is not None),
        "dynamic": not facts.unread_brokers and facts.topics is not None,
        **dict.fromkeys(("levels", "min_isr", "kraft_version", "registered"), facts.features is not None),
        "zookeeper": facts.in_zookeeper_mode is not None,
        "clients": not any(clients.unknown(facts, target)),
    }
    return [check.id for check in CHECKS if has_facts.get(check.name, True)]


def _audited(facts: Facts) -> dict[str, NodeFacts]:
    """Return the nodes that are audited. In ZooKeeper mode no upgrade restarts controllers, and they need not run."""
    return {
        host: node
        for host, node in facts.nodes.items()
        if not (facts.in_zookeeper_mode and host in facts.controllers and not process_of(facts, host))
    }


def not_known(facts: Facts, target: str) -> Iterable[Finding]:
    """Yield what could not be read, and so is no evidence that nothing stops the release."""
    del target
    nodes = _audited(facts)
    missing = {
        host: str(read.get("why") or "the host was not read")
        for host in nodes
        for read in [facts.hosts.get(host) or {}]
        if "process" not in read
    }
    for hosts, why in grouped(missing):
        yield Finding(f"{hosts} was not read: {why}", "make it reachable, and audit again")
    down = {host: True for host in nodes if host not in missing and not facts.hosts[host]["process"]}
    for hosts, _true in grouped(down):
        yield Finding(
            f"no Kafka runs on {hosts}, so its Java and its options are not known",
            "start it, and audit again",
            warns=True,
        )
    silent = {
        host: True
        for host in nodes
        if host not in missing and host not in down and not facts.hosts[host]["process"].get("java")
    }
    for hosts, _true in grouped(silent):
        yield Finding(
            f"the Java of {hosts} could not be seen",
            "become root there: it is in the file release of its directory",
        )
    unread = {
        host: str((node.get("file") or {}).get("error") or "it does not exist")
        for host, node in nodes.items()
        if not (node.get("file") or {}).get("properties")
    }
    for hosts, why in grouped(unread):
        yield Finding(f"the properties file of {hosts} was not read: {why}", "correct its path or its rights")
    variables = {
        host: tuple(sorted(unresolved))
        for host, node in nodes.items()
        for unresolved in [
            [
                variable["key"]
                for variable in (node.get("file") or {}).get("variables") or []
                if variable["why"] and variable["key"] in accepted_values.BROKER_RULES
            ]
        ]
        if unresolved
    }
    for hosts, keys in grouped(variables):
        yield Finding(
            f"the values of {names(keys)} on {hosts} are variables that could not be resolved",
            "compare them with what the release accepts, or write the values into the file",
        )
    if facts.in_zookeeper_mode is None:
        yield Finding("no broker says whether the cluster is in ZooKeeper mode", "start the brokers, and audit again")
    if facts.topics is None or facts.topics_error:
        yield Finding(
            f"the configs of topics could not be read: {facts.topics_error}",
            "give quorumshift_client the operations Describe and DescribeConfigs on all topics, and Describe on the "
            "cluster, and audit again",
        )
    for brokers, why in grouped({f"broker {name}": why for name, why in facts.unread_brokers.items()}):
        yield Finding(
            f"the dynamic configs of {brokers} could not be read: {why}",
            "start these brokers, or give quorumshift_client the operation DescribeConfigs on the cluster, and audit "
            "again",
        )
    if facts.features is None:
        yield Finding(f"the features could not be read: {facts.features_error}", "start the nodes, and audit again")
    partly = {
        host: str(found["why"])
        for host, read in facts.hosts.items()
        for found in [(read or {}).get("formats") or {}]
        if found.get("why")
    }
    for hosts, why in grouped(partly):
        yield Finding(
            f"not every replica of {hosts} was read for its message format: {why}",
            "nothing: what was not read may have messages of an old format",
            warns=True,
        )


CHECKS = (
    Check(
        "QS-AUDIT-002", "zookeeper", "ZooKeeper mode", "blocks", "KIP-833, kafka.zk.KafkaZkClient", settings.zookeeper
    ),
    Check("QS-AUDIT-003", "values", "Values in properties files", "blocks", "KafkaConfig.configDef", settings.values),
    Check("QS-AUDIT-004", "classes", "Classes in properties files", "blocks", "Kafka's own jars", settings.classes),
    Check("QS-AUDIT-005", "java", "Java", "blocks", "KIP-1013, kafka.Kafka's class file", processes.java),
    Check(
        "QS-AUDIT-006",
        "allowed_urls",
        "URLs of OAUTHBEARER",
        "blocks",
        "ConfigurationUtils.validateUrl",
        processes.allowed_urls,
    ),
    Check(
        "QS-AUDIT-007",
        "topic_values",
        "Values of topics' configs",
        "blocks",
        "LogConfig, LogManager.fetchTopicConfigOverrides",
        settings.topic_values,
    ),
    Check(
        "QS-AUDIT-008",
        "levels",
        "Finalized levels",
        "blocks",
        "FeatureControlManager.replay, KIP-584",
        quorum.finalized_levels,
    ),
    Check(
        "QS-AUDIT-009",
        "clients",
        "Clients that are too old",
        "blocks",
        "KIP-896, ApiKeys.oldestVersion",
        clients.old,
        acceptable=True,
    ),
    Check(
        "QS-AUDIT-010",
        "unknown_clients",
        "Clients that are not known",
        "blocks",
        "RequestMetrics.deprecatedRequestRate, KIP-511",
        clients.unknown,
        acceptable=True,
    ),
    Check(
        "QS-AUDIT-011", "not_known", "What is not known", "blocks", "facts of every node", not_known, acceptable=True
    ),
    Check(
        "QS-AUDIT-012",
        "builds",
        "Releases with grave bugs",
        "blocks",
        "Kafka's documentation, Upgrading",
        quorum.builds,
        acceptable=True,
    ),
    Check("QS-AUDIT-013", "keys", "Keys in properties files", "warns", "KafkaConfig.configNames", settings.keys),
    Check(
        "QS-AUDIT-014", "topic_keys", "Keys of topics' configs", "warns", "LogConfig.configNames", settings.topic_keys
    ),
    Check(
        "QS-AUDIT-015",
        "dynamic",
        "Dynamic configs of brokers",
        "warns",
        "DynamicBrokerConfig, KIP-226",
        settings.dynamic,
    ),
    Check("QS-AUDIT-016", "log4j", "Log4j", "warns", "KIP-653, kafka-run-class.sh", processes.log4j),
    Check("QS-AUDIT-017", "formats", "Message formats", "warns", "KIP-724", storage.formats),
    Check("QS-AUDIT-018", "mirror_maker", "MirrorMaker 1", "warns", "KIP-720", processes.mirror_maker),
    Check(
        "QS-AUDIT-019",
        "min_isr",
        "Eligible leader replicas",
        "warns",
        "KIP-966, ConfigurationControlManager",
        quorum.eligible_leader_replicas,
    ),
    Check(
        "QS-AUDIT-020",
        "kraft_version",
        "Static voters of a dynamic quorum",
        "warns",
        "KIP-853, KAFKA-21426",
        quorum.kraft_version,
    ),
    Check(
        "QS-AUDIT-021",
        "registered",
        "Nodes that are gone",
        "warns",
        "KIP-919, FeatureControlManager",
        quorum.registered,
    ),
    Check(
        "QS-AUDIT-022",
        "formatted",
        "Directories of a newer release",
        "warns",
        "kafka.tools.StorageTool, Formatter",
        storage.formatted,
    ),
)
TITLE = {check.id: check.title for check in CHECKS}
