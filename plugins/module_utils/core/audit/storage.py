# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Checks of what is on disk against a release: message formats, directories of a newer kafka-storage. Pure."""

from __future__ import annotations

from typing import Iterable

from ansible_collections.quorumshift.kafka.plugins.module_utils.core.audit.audit_facts import (
    Facts,
    names,
    version_of,
)
from ansible_collections.quorumshift.kafka.plugins.module_utils.core.releases import releases
from ansible_collections.quorumshift.kafka.plugins.module_utils.core.text.advice import Finding

# kafka-storage of this release writes the bootstrap records into the metadata log's first checkpoint, not into
# bootstrap.checkpoint (seen on directories that each formatted)
FIRST_WITHOUT_BOOTSTRAP = (4, 4)


def formats(facts: Facts, target: str) -> Iterable[Finding]:
    """Yield replicas with messages of the formats v0 and v1 (KIP-724): Kafka 4 converts none for an old consumer."""
    release = releases.parse_release(target)
    if release is None or release < releases.FIRST_WITHOUT_ZOOKEEPER:
        return
    old: dict[str, int] = {}
    hosts, examples = [], []
    for host, read in sorted(facts.hosts.items()):
        found = (read or {}).get("formats") or {}
        if not found.get("old"):
            continue
        hosts.append(host)
        examples += found["named"]
        for magic, count in found["old"].items():
            old[magic] = old.get(magic, 0) + count
    if old:
        counts = ", ".join(f"{count} with v{magic}" for magic, count in sorted(old.items()))
        yield Finding(
            f"replicas begin with messages of an old format on {names(hosts)}: {counts}, as {names(examples, 3)}. "
            "Kafka writes v2 alone and converts none for a consumer",
            "nothing, where the topics' retention deletes them, or all their consumers are newer than 0.11. A "
            "compacted topic keeps them: copy it with MirrorMaker 2 or a consumer and a producer",
        )


def formatted(facts: Facts, target: str) -> Iterable[Finding]:
    """Yield directories that a kafka-storage of 4.4 or later formatted, and whose node runs an earlier release."""
    del target  # the running release is the subject
    hosts = [
        host
        for host, read in sorted(facts.hosts.items())
        if (read or {}).get("formatted_by_newer")
        and (releases.parse_release(version_of(facts, host)) or FIRST_WITHOUT_BOOTSTRAP) < FIRST_WITHOUT_BOOTSTRAP
    ]
    if hosts:
        yield Finding(
            f"the metadata directory of {names(hosts)} was formatted by kafka-storage of Kafka 4.4 or later, and the "
            "node is older. The first controller of a quorum would start without metadata.version",
            "format with the release that the node runs, as long as the directory is empty. A node whose quorum has a "
            "metadata log reads it from there",
        )
