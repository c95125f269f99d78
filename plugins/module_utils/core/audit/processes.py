# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Checks of the nodes' processes and hosts against a release: Java, log4j, system properties, MirrorMaker 1. Pure."""

from __future__ import annotations

import re
from typing import Iterable

from ansible_collections.quorumshift.kafka.plugins.module_utils.core.admin import upgrade
from ansible_collections.quorumshift.kafka.plugins.module_utils.core.audit.audit_facts import (
    Facts,
    grouped,
    names,
    process_of,
    values_of,
)
from ansible_collections.quorumshift.kafka.plugins.module_utils.core.releases import accepted, releases
from ansible_collections.quorumshift.kafka.plugins.module_utils.core.text.advice import Finding

ALLOWED_URLS = "org.apache.kafka.sasl.oauthbearer.allowed.urls"
_URL_KEYS = ("sasl.oauthbearer.jwks.endpoint.url", "sasl.oauthbearer.token.endpoint.url")
# Appenders of Log4j 1 that log4j-1.2-api of Kafka 4's own libs builds (org.apache.log4j.builders.appender)
_BUILT = {
    f"org.apache.log4j.{name}"
    for name in (
        "AsyncAppender",
        "ConsoleAppender",
        "DailyRollingFileAppender",
        "FileAppender",
        "RollingFileAppender",
        "net.SocketAppender",
        "net.SyslogAppender",
        "rewrite.RewriteAppender",
        "rolling.RollingFileAppender",
        "varia.NullAppender",
    )
}


def java(facts: Facts, target: str) -> Iterable[Finding]:
    """Yield nodes whose Java is older than the release needs."""
    release = releases.parse_release(target)
    found = {}
    for host in facts.nodes:
        running = releases.java_release(process_of(facts, host).get("java") or "")
        why = upgrade.explain_java(running, release) if release else ""
        if why:
            found[host] = running, why
    for hosts, (running, why) in grouped(found):
        yield Finding(
            f"{hosts} runs Java {running}, {why}: the node does not start",
            "install it, and set JAVA_HOME in the unit, as with systemctl edit, and in every hook that calls Kafka's "
            "tools",
        )


def log4j(facts: Facts, target: str) -> Iterable[Finding]:
    """Yield JVMs with a file of Log4j 1. Kafka 4 has Log4j 2, which reads such a file only with
    -Dlog4j1.compatibility=true; kafka-run-class.sh of Kafka 4 adds that (KIP-653, KAFKA-9366)."""
    if not _has_log4j_2(target):
        return
    files, appenders = {}, {}
    for host in facts.nodes:
        read = (facts.hosts.get(host) or {}).get("log4j") or {}
        if read.get("version") == 1:
            files[host] = read["path"]
            foreign = tuple(name for name in read["appenders"] if name not in _BUILT)
            if foreign:
                appenders[host] = foreign
    for hosts, path in grouped(files):
        yield Finding(
            f"{hosts} starts with the Log4j 1 file {path}. Kafka has Log4j 2, which reads it only in its compatibility "
            "mode",
            "convert it with log4j-transform-cli, or start from config/log4j2.yaml of the new release, and set "
            "KAFKA_LOG4J_OPTS=-Dlog4j2.configurationFile=FILE in the unit together with the release. Kafka's own "
            "scripts choose the compatibility mode themselves; a unit that starts Java itself needs "
            "-Dlog4j1.compatibility=true",
        )
    for hosts, foreign in grouped(appenders):
        yield Finding(
            f"the Log4j 1 file of {hosts} names {names(foreign)}, which Log4j 2 does not build: what it took is not "
            "logged",
            "use an appender of Log4j 2 in a log4j2.yaml. KafkaLog4jAppender is gone without a successor (KIP-719)",
        )


def allowed_urls(facts: Facts, target: str) -> Iterable[Finding]:
    """Yield JVMs without the system property that lists the URLs of OAUTHBEARER (ConfigurationUtils.validateUrl)."""
    if not accepted.needs_allowed_urls(target):
        return
    found = {}
    for host, node in facts.nodes.items():
        given = values_of(node)
        urls = sorted({given[key] for key in given if key.endswith(_URL_KEYS)})
        process = process_of(facts, host)
        if not urls or not process:
            continue
        allowed = {part.strip() for part in process["options"].get(ALLOWED_URLS, "").split(",")}
        missing = tuple(url for url in urls if url not in allowed)
        if missing:
            found[host] = missing
    for hosts, missing in grouped(found):
        urls = [_shown(url) for url in missing]
        yield Finding(
            f"{hosts} uses {names(urls)} for OAUTHBEARER, and the system property {ALLOWED_URLS} of the JVM does not "
            "list it: the node does not start",
            f"add -D{ALLOWED_URLS}={','.join(urls)} to KAFKA_OPTS in the unit before the upgrade: earlier releases "
            "ignore it",
        )


def _shown(url: str) -> str:
    """Return a URL without the login that it may have."""
    return re.sub(r"//[^/@]*@", "//", url)


def mirror_maker(facts: Facts, target: str) -> Iterable[Finding]:
    """Yield MirrorMaker 1 processes on the nodes' hosts (KIP-720)."""
    if releases.parse_release(target) is None or not _has_log4j_2(target):
        return
    found = {
        host: tuple(read["mirror_makers"]) for host, read in facts.hosts.items() if read and read.get("mirror_makers")
    }
    for hosts, files in grouped(found):
        yield Finding(
            f"MirrorMaker 1 runs on {hosts} ({names(files, 2)}), and Kafka does not have it any more",
            "replace it by MirrorMaker 2 (connect-mirror-maker.sh), or run it from the earlier release. Those on other "
            "hosts are not seen here: look for kafka-mirror-maker",
        )


def _has_log4j_2(target: str) -> bool:
    """Return whether a release is one without ZooKeeper: Log4j 2 came, and MirrorMaker 1 went, in the same one."""
    release = releases.parse_release(target)
    return release is not None and release >= releases.FIRST_WITHOUT_ZOOKEEPER
