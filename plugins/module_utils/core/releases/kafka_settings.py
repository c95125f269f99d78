# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What each release of Kafka accepts in settings and requests, as the classes in its jars have it. Data;
releases.accepted reads it.

Written by `python -m tools.kafka_releases`. tests/integration/test_kafka_releases.py compares it with Kafka's classes.
"""

from __future__ import annotations

from typing import Dict, Tuple

Spans = Tuple[Tuple[str, str], ...]
Rules = Dict[str, Tuple[Tuple[str, Tuple[str, str, str, str, str]], ...]]

# Settings of brokers and controllers whose accepted values changed, {key: ((first build, (least, most, allowed values,
# empty, repeated)), ...)}. The last two: whether a list may have no item, and one item twice; '' for no list.
RULES: Rules = {
    "advertised.listeners": (("", ("", "", "", "", "")), ("4.2.0", ("", "", "", "no", "yes"))),
    "controller.listener.names": (("", ("", "", "", "", "")), ("4.2.0", ("", "", "", "no", "yes"))),
    "controller.quorum.append.linger.ms": (("", ("", "", "", "", "")), ("4.1.0", ("0", "", "", "", ""))),
    "controller.quorum.election.backoff.max.ms": (("", ("", "", "", "", "")), ("4.1.0", ("0", "", "", "", ""))),
    "controller.quorum.election.timeout.ms": (("", ("", "", "", "", "")), ("4.1.0", ("0", "", "", "", ""))),
    "controller.quorum.fetch.timeout.ms": (("", ("", "", "", "", "")), ("4.1.0", ("0", "", "", "", ""))),
    "controller.quorum.request.timeout.ms": (("", ("", "", "", "", "")), ("4.1.0", ("0", "", "", "", ""))),
    "controller.quorum.retry.backoff.ms": (("", ("", "", "", "", "")), ("4.1.0", ("0", "", "", "", ""))),
    "early.start.listeners": (("", ("", "", "", "", "")), ("4.2.0", ("", "", "", "yes", "yes"))),
    "group.consumer.assignors": (("3.5.0", ("", "", "", "yes", "yes")), ("4.2.0", ("", "", "", "no", "yes"))),
    "group.coordinator.append.linger.ms": (("3.8.0", ("0", "", "", "", "")), ("4.2.0", ("-1", "", "", "", ""))),
    "group.coordinator.rebalance.protocols": (
        ("3.7.0", ("", "", "classic,consumer", "yes", "yes")),
        ("3.8.0", ("", "", "classic,consumer,unknown", "yes", "yes")),
        ("3.9.0", ("", "", "classic,consumer,share,unknown", "yes", "yes")),
        ("4.0.0", ("", "", "classic,consumer,share", "yes", "yes")),
        ("4.1.0", ("", "", "classic,consumer,share,streams", "yes", "yes")),
        ("4.2.0", ("", "", "classic,consumer,share,streams", "no", "yes")),
    ),
    "group.share.assignors": (("4.1.0", ("", "", "", "yes", "yes")), ("4.2.0", ("", "", "", "no", "yes"))),
    "group.share.max.size": (("3.9.0", ("10", "1000", "", "", "")), ("4.0.0", ("1", "1000", "", "", ""))),
    "group.share.record.lock.duration.ms": (
        ("3.9.0", ("1000", "60000", "", "", "")),
        ("4.0.0", ("1000", "3600000", "", "", "")),
    ),
    "listeners": (("", ("", "", "", "", "")), ("4.2.0", ("", "", "", "no", "yes"))),
    "log.dir": (("", ("", "", "", "", "")), ("4.2.0", ("", "", "", "no", "yes"))),
    "log.dirs": (("", ("", "", "", "", "")), ("4.2.0", ("", "", "", "no", "yes"))),
    "log.segment.bytes": (("", ("14", "", "", "", "")), ("4.0.0", ("1048576", "", "", "", ""))),
    "metadata.log.segment.bytes": (("", ("12", "", "", "", "")), ("4.1.0", ("8388608", "", "", "", ""))),
    "node.id": (("", ("", "", "", "", "")), ("4.0.0", ("0", "", "", "", ""))),
    "num.replica.fetchers": (("", ("", "", "", "", "")), ("4.2.0", ("1", "", "", "", ""))),
    "process.roles": (
        ("", ("", "", "broker,controller", "yes", "yes")),
        ("4.2.0", ("", "", "broker,controller", "no", "yes")),
    ),
    "remote.log.manager.copier.thread.pool.size": (
        ("3.8.0", ("1", "", "", "", "")),
        ("3.9.0", ("", "", "", "", "")),
        ("4.0.0", ("1", "", "", "", "")),
    ),
    "remote.log.manager.expiration.thread.pool.size": (
        ("3.8.0", ("1", "", "", "", "")),
        ("3.9.0", ("", "", "", "", "")),
        ("4.0.0", ("1", "", "", "", "")),
    ),
    "share.coordinator.append.linger.ms": (("4.0.0", ("0", "", "", "", "")), ("4.2.0", ("-1", "", "", "", ""))),
    "share.coordinator.snapshot.update.records.per.snapshot": (
        ("4.0.0", ("0", "", "", "", "")),
        ("4.3.0", ("0", "500", "", "", "")),
    ),
}

# The same of topics' settings.
TOPIC_RULES: Rules = {"segment.bytes": (("", ("14", "", "", "", "")), ("4.1.0", ("1048576", "", "", "", "")))}

# Settings of topics that not every build has, {key: ((first build with it, first one without), ...)}.
TOPIC_KEYS: Dict[str, Spans] = {
    "compression.gzip.level": (("3.8.0", ""),),
    "compression.lz4.level": (("3.8.0", ""),),
    "compression.zstd.level": (("3.8.0", ""),),
    "errors.deadletterqueue.group.enable": (("4.4.0", ""),),
    "internal.segment.bytes": (("4.1.0", ""),),
    "max.decompressed.message.bytes": (("4.2.2", "4.3.0"), ("4.4.0", "")),
    "message.downconversion.enable": (("", "4.0.0"),),
    "message.format.version": (("", "4.0.0"),),
    "message.timestamp.after.max.ms": (("3.6.0", ""),),
    "message.timestamp.before.max.ms": (("3.6.0", ""),),
    "message.timestamp.difference.max.ms": (("", "4.0.0"),),
    "remote.copy.lag.bytes": (("4.4.0", ""),),
    "remote.copy.lag.ms": (("4.4.0", ""),),
    "remote.log.copy.disable": (("3.9.0", ""),),
    "remote.log.delete.on.disable": (("3.9.0", ""),),
}

# Requests whose oldest version changed (ApiKeys.oldestVersion), {name: ((first build, oldest version), ...)}.
REQUESTS: Dict[str, Tuple[Tuple[str, int], ...]] = {
    "ALTER_PARTITION": (("", 0), ("4.0.0", 2)),
    "ALTER_REPLICA_LOG_DIRS": (("", 0), ("4.0.0", 1)),
    "CREATE_ACLS": (("", 0), ("4.0.0", 1)),
    "CREATE_DELEGATION_TOKEN": (("", 0), ("4.0.0", 1)),
    "CREATE_TOPICS": (("", 0), ("4.0.0", 2)),
    "DELETE_ACLS": (("", 0), ("4.0.0", 1)),
    "DELETE_TOPICS": (("", 0), ("4.0.0", 1)),
    "DESCRIBE_ACLS": (("", 0), ("4.0.0", 1)),
    "DESCRIBE_CONFIGS": (("", 0), ("4.0.0", 1)),
    "DESCRIBE_DELEGATION_TOKEN": (("", 0), ("4.0.0", 1)),
    "DESCRIBE_LOG_DIRS": (("", 0), ("4.0.0", 1)),
    "EXPIRE_DELEGATION_TOKEN": (("", 0), ("4.0.0", 1)),
    "FETCH": (("", 0), ("4.0.0", 4)),
    "JOIN_GROUP": (("", 0), ("4.0.0", 2), ("4.0.1", 0)),
    "LIST_OFFSETS": (("", 0), ("4.0.0", 1)),
    "OFFSET_COMMIT": (("", 0), ("4.0.0", 2)),
    "OFFSET_FETCH": (("", 0), ("4.0.0", 1)),
    "OFFSET_FOR_LEADER_EPOCH": (("", 0), ("4.0.0", 2)),
    "PRODUCE": (("", 0), ("4.0.0", 3)),
    "RENEW_DELEGATION_TOKEN": (("", 0), ("4.0.0", 1)),
    "SHARE_ACKNOWLEDGE": (("3.9.0", 0), ("4.1.0", 1)),
    "SHARE_FETCH": (("3.9.0", 0), ("4.1.0", 1)),
    "SHARE_GROUP_DESCRIBE": (("3.9.0", 0), ("4.1.0", 1)),
    "SHARE_GROUP_HEARTBEAT": (("3.9.0", 0), ("4.1.0", 1)),
    "WRITE_TXN_MARKERS": (("", 0), ("4.0.0", 1)),
}

# Classes of Kafka's own that a setting may name and that not every build has.
CLASSES: Dict[str, Spans] = {
    "kafka.security.authorizer.AclAuthorizer": (("", "4.0.0"),),
    "org.apache.kafka.common.config.provider.EnvVarConfigProvider": (("3.5.0", ""),),
    "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginCallbackHandler": (("3.4.0", ""),),
    "org.apache.kafka.common.security.oauthbearer.OAuthBearerValidatorCallbackHandler": (("3.4.0", ""),),
    "org.apache.kafka.common.security.oauthbearer.secured.OAuthBearerLoginCallbackHandler": (("", "4.0.0"),),
    "org.apache.kafka.common.security.oauthbearer.secured.OAuthBearerValidatorCallbackHandler": (("", "4.0.0"),),
    "org.apache.kafka.common.security.ssl.CommonNameLoggingSslEngineFactory": (("3.7.0", ""),),
    "org.apache.kafka.common.telemetry.internals.ClientTelemetryProvider": (("3.7.0", ""),),
    "org.apache.kafka.common.telemetry.internals.ClientTelemetryReporter": (("3.7.0", ""),),
    "org.apache.kafka.server.log.remote.metadata.storage.ClassLoaderAwareRemoteLogMetadataManager": (("3.5.0", ""),),
    "org.apache.kafka.server.log.remote.storage.ClassLoaderAwareRemoteStorageManager": (("3.5.0", ""),),
    "org.apache.kafka.server.streams.InMemoryTopologyDescriptionPlugin": (("4.4.0", ""),),
}

# Builds whose OAUTHBEARER needs the system property org.apache.kafka.sasl.oauthbearer.allowed.urls.
ALLOWED_URLS: Spans = (("4.0.0", ""),)
