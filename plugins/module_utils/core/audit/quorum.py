# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Checks of features, registrations and the quorum against a release, and releases with grave bugs. Pure."""

from __future__ import annotations

from typing import Iterable

from ansible_collections.quorumshift.kafka.plugins.module_utils.core.admin import registrations, upgrade
from ansible_collections.quorumshift.kafka.plugins.module_utils.core.audit.audit_facts import (
    Facts,
    config_command,
    grouped,
    names,
    oldest_running,
    values_of,
    version_of,
)
from ansible_collections.quorumshift.kafka.plugins.module_utils.core.releases import (
    features,
    kafka_releases,
    levels,
    releases,
)
from ansible_collections.quorumshift.kafka.plugins.module_utils.core.text.advice import Finding
from ansible_collections.quorumshift.kafka.plugins.module_utils.settings import config_values

ELR = "eligible.leader.replicas.version"
MIN_ISR, VOTERS = "min.insync.replicas", "controller.quorum.voters"
# Builds that should not be run, each with the reason. Sources: Kafka's "Upgrading", Notable changes in 3.5.2 and 4.2.1
KNOWN_BAD = {
    "3.5.0": "KAFKA-15353: an empty ISR may come back while brokers are rolled",
    "3.5.1": "KAFKA-15353: an empty ISR may come back while brokers are rolled",
    "4.2.0": "KAFKA-20322, and KAFKA-20254: the migration of a classic to a streams group",
}


def finalized_levels(facts: Facts, target: str) -> Iterable[Finding]:
    """Yield the finalized levels with which nodes of the release do not start (core.releases.levels)."""
    if facts.features is None or facts.features["mode"] != "kraft":
        return
    running = {releases.parse_release(version_of(facts, host)) for host in facts.nodes} - {None}
    announced = levels.find_announced(facts.nodes, facts.features["nodes"])
    for why in levels.refusals(target, running, facts.features["finalized"], announced):
        seen, _stop, do = why.replace(f"Kafka {target}", "it").partition(". ")
        yield Finding(f"nodes do not start with the finalized levels: {seen}", do or "choose another release")


def registered(facts: Facts, target: str) -> Iterable[Finding]:
    """Yield nodes that are gone, and stay registered: they keep metadata.version from rising (KIP-919)."""
    if facts.features is None or facts.features["mode"] != "kraft":
        return
    now = facts.features["finalized"].get(features.METADATA_VERSION, 0)
    wanted = upgrade.highest_level(target, {})
    if wanted > now:
        gone = registrations.find_gone(facts.nodes)
        for why in registrations.explain_cap(gone, target, now, wanted, facts.bootstrap):
            seen, _stop, do = why.partition(". ")
            yield Finding(f"features do not rise: {seen}", do)


def kraft_version(facts: Facts, target: str) -> Iterable[Finding]:
    """Yield a dynamic quorum, kraft.version 1, whose nodes still have static voters in their files (KAFKA-21426)."""
    del target
    level = (facts.features or {}).get("finalized", {}).get(features.KRAFT_VERSION, 0)
    if not level:
        return
    hosts = [host for host, node in sorted(facts.nodes.items()) if config_values.get(values_of(node), VOTERS)]
    if hosts:
        yield Finding(
            f"kraft.version is {level}, so the quorum is dynamic, and {VOTERS} is still in the files of {names(hosts)}",
            "replace it by controller.quorum.bootstrap.servers: quorumshift.kafka.quorum -e quorum_to=dynamic -e "
            "quorum_apply=true restarts one node after the other. kraft.version does not go down",
        )


def eligible_leader_replicas(facts: Facts, target: str) -> Iterable[Finding]:
    """Yield what ELR (KIP-966), which the second step of the upgrade raises, does to min.insync.replicas.

    When it is raised, the controller writes min.insync.replicas of its own file as the default of all brokers, and
    deletes each broker's own (ConfigurationControlManager.maybeGenerateElrSafetyRecords). A broker's file no longer
    counts.
    """
    if facts.features is None or facts.features["mode"] != "kraft" or facts.features["finalized"].get(ELR, 0):
        return
    release = releases.parse_release(target)
    if (
        release not in kafka_releases.RELEASES
        or not kafka_releases.RELEASES[release]["features"].get(ELR, (0, 0, 0))[2]
    ):
        return
    command = config_command(facts, "brokers", "", f"--add-config {MIN_ISR}=")
    if MIN_ISR not in facts.dynamic.get("", {}):
        of_controllers = {config_values.get(values_of(node), MIN_ISR) or "1" for node in facts.controllers.values()}
        becomes = ", ".join(sorted(of_controllers)) or "1"
        lost = {
            host: value
            for host, node in facts.brokers.items()
            for value in [config_values.get(values_of(node), MIN_ISR)]
            if value and {value} != of_controllers
        }
        for hosts, value in grouped(lost):
            yield Finding(
                f"{MIN_ISR} is {value} in the files of {hosts}. Once {ELR} is raised, the controllers' value, "
                f"{becomes}, counts for all brokers",
                f"set it for the cluster before: {command}{value}",
            )
    own = [name for name, given in sorted(facts.dynamic.items()) if name and MIN_ISR in given]
    if own:
        yield Finding(
            f"{MIN_ISR} is a dynamic config of broker {names(own)}, which raising {ELR} deletes",
            f"set one value for the cluster before: {command}N",
        )


def builds(facts: Facts, target: str) -> Iterable[Finding]:
    """Yield that the target, or what a node runs, is a build with a grave bug."""
    if target in KNOWN_BAD:
        yield Finding(f"Kafka {target} has a grave bug ({KNOWN_BAD[target]})", f"choose {_fixed(target)}")
    running = {host: version_of(facts, host) for host in facts.nodes}
    for hosts, version in grouped({host: version for host, version in running.items() if version in KNOWN_BAD}):
        yield Finding(
            f"{hosts} runs Kafka {version}, which has a grave bug ({KNOWN_BAD[version]})",
            f"upgrade to {_fixed(version)} or later",
            warns=True,
        )


def _fixed(build: str) -> str:
    """Return the newest build of the same release."""
    release = releases.parse_release(build) or (0, 0)
    return kafka_releases.RELEASES[release]["builds"][-1] if release in kafka_releases.RELEASES else "a later build"


def path(facts: Facts) -> list[str]:
    """Return the newest build of each release above the oldest that runs, up to the newest that is known."""
    running = releases.parse_release(oldest_running(facts)) or (0, 0)
    return [found["builds"][-1] for release, found in sorted(kafka_releases.RELEASES.items()) if release > running]
