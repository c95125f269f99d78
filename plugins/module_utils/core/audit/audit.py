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
from ansible_collections.quorumshift.kafka.plugins.module_utils.core.audit.audit_facts import Facts, grouped, version_of
from ansible_collections.quorumshift.kafka.plugins.module_utils.core.audit.needs import lacking
from ansible_collections.quorumshift.kafka.plugins.module_utils.core.preflight.check_facts import run_check
from ansible_collections.quorumshift.kafka.plugins.module_utils.core.releases import releases
from ansible_collections.quorumshift.kafka.plugins.module_utils.core.text.advice import Finding

_ARTIFACTS = "upgrade_audit.json of the run directory, which holds no secret"


class Check(NamedTuple):
    """`id`: of its findings, as messages have it; `severity`: `blocks` or `warns`, the highest of its findings;
    `source`: the code or document it relies on; `needs`: the facts of core.audit.needs without which no finding says
    nothing; `acceptable`: whether an operator may accept a finding that blocks."""

    id: str
    name: str
    title: str
    severity: str
    source: str
    find: Callable[[Facts, str], Iterable[Finding]]
    needs: tuple[str, ...]
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
    lacks = lacking(facts, target)
    return [check.id for check in CHECKS if not any(lacks[need].hosts for need in check.needs)]


def not_known(facts: Facts, target: str) -> Iterable[Finding]:
    """Yield what could not be read, and so is no evidence that nothing stops the release."""
    lacks = lacking(facts, target)
    for lack in lacks.values():
        named = {host for fact in lack.after for host in lacks[fact].hosts}
        if lack.say is not None:
            for hosts, why in grouped({host: why for host, why in lack.hosts.items() if host not in named}):
                yield lack.say(hosts, why)


CHECKS = (
    Check(
        "QS-AUDIT-002",
        "zookeeper",
        "ZooKeeper mode",
        "blocks",
        "KIP-833, kafka.zk.KafkaZkClient",
        settings.zookeeper,
        ("mode",),
    ),
    Check(
        "QS-AUDIT-003",
        "values",
        "Values in properties files",
        "blocks",
        "KafkaConfig.configDef",
        settings.values,
        ("files", "variables"),
    ),
    Check(
        "QS-AUDIT-004",
        "classes",
        "Classes in properties files",
        "blocks",
        "Kafka's own jars",
        settings.classes,
        ("files", "variables"),
    ),
    Check("QS-AUDIT-005", "java", "Java", "blocks", "KIP-1013, kafka.Kafka's class file", processes.java, ("java",)),
    Check(
        "QS-AUDIT-006",
        "allowed_urls",
        "URLs of OAUTHBEARER",
        "blocks",
        "ConfigurationUtils.validateUrl",
        processes.allowed_urls,
        ("files", "variables", "options"),
    ),
    Check(
        "QS-AUDIT-007",
        "topic_values",
        "Values of topics' configs",
        "blocks",
        "LogConfig, LogManager.fetchTopicConfigOverrides",
        settings.topic_values,
        ("topics",),
    ),
    Check(
        "QS-AUDIT-008",
        "levels",
        "Finalized levels",
        "blocks",
        "FeatureControlManager.replay, KIP-584",
        quorum.finalized_levels,
        ("features", "mode", "version"),
    ),
    Check(
        "QS-AUDIT-009",
        "clients",
        "Clients that are too old",
        "blocks",
        "KIP-896, ApiKeys.oldestVersion",
        clients.old,
        ("clients",),
        acceptable=True,
    ),
    Check(
        "QS-AUDIT-010",
        "unknown_clients",
        "Clients that are not known",
        "blocks",
        "RequestMetrics.deprecatedRequestRate, KIP-511",
        clients.unknown,
        (),
        acceptable=True,
    ),
    Check(
        "QS-AUDIT-011",
        "not_known",
        "What is not known",
        "blocks",
        "facts of every node",
        not_known,
        (),
        acceptable=True,
    ),
    Check(
        "QS-AUDIT-012",
        "builds",
        "Releases with grave bugs",
        "blocks",
        "Kafka's documentation, Upgrading",
        quorum.builds,
        ("version",),
        acceptable=True,
    ),
    Check(
        "QS-AUDIT-013",
        "keys",
        "Keys in properties files",
        "warns",
        "KafkaConfig.configNames",
        settings.keys,
        ("files",),
    ),
    Check(
        "QS-AUDIT-014",
        "topic_keys",
        "Keys of topics' configs",
        "warns",
        "LogConfig.configNames",
        settings.topic_keys,
        ("topics",),
    ),
    Check(
        "QS-AUDIT-015",
        "dynamic",
        "Dynamic configs of brokers",
        "warns",
        "DynamicBrokerConfig, KIP-226",
        settings.dynamic,
        ("dynamic",),
    ),
    Check("QS-AUDIT-016", "log4j", "Log4j", "warns", "KIP-653, kafka-run-class.sh", processes.log4j, ("log4j",)),
    Check("QS-AUDIT-017", "formats", "Message formats", "warns", "KIP-724", storage.formats, ("formats",)),
    Check(
        "QS-AUDIT-018", "mirror_maker", "MirrorMaker 1", "warns", "KIP-720", processes.mirror_maker, ("mirror_makers",)
    ),
    Check(
        "QS-AUDIT-019",
        "min_isr",
        "Eligible leader replicas",
        "warns",
        "KIP-966, ConfigurationControlManager",
        quorum.eligible_leader_replicas,
        ("features", "mode", "files", "variables", "dynamic"),
    ),
    Check(
        "QS-AUDIT-020",
        "kraft_version",
        "Static voters of a dynamic quorum",
        "warns",
        "KIP-853, KAFKA-21426",
        quorum.kraft_version,
        ("features", "mode", "files"),
    ),
    Check(
        "QS-AUDIT-021",
        "registered",
        "Nodes that are gone",
        "warns",
        "KIP-919, FeatureControlManager",
        quorum.registered,
        ("features", "mode"),
    ),
    Check(
        "QS-AUDIT-022",
        "formatted",
        "Directories of a newer release",
        "warns",
        "kafka.tools.StorageTool, Formatter",
        storage.formatted,
        ("formatted_by_newer", "version"),
    ),
)
TITLE = {check.id: check.title for check in CHECKS}
