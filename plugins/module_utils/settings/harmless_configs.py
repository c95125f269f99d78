# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The settings whose values may be shown. Like Kafka (KafkaConfig.maybeSensitive), treat all others as secrets."""

from __future__ import annotations

# Each setting that Kafka 3.9 defines for brokers, controllers, topics, clients and quotas and that is not of type
# PASSWORD, by the type of its value. tests/integration/test_kraft_config_against_kafka.py compares them with Kafka's.
_NAMES = {
    "STRING": """
advertised.listeners authorizer.class.name broker.rack client.dns.lookup client.id compression.type
control.plane.listener.name controller.listener.names early.start.listeners group.consumer.migration.policy
inter.broker.listener.name inter.broker.protocol.version listener.security.protocol.map listeners log.dir log.dirs
log.message.format.version log.message.timestamp.type max.connections.per.ip.overrides message.format.version
message.timestamp.type metadata.log.dir metadata.recovery.strategy metrics.recording.level
password.encoder.cipher.algorithm password.encoder.keyfactory.algorithm remote.log.metadata.manager.class.name
remote.log.metadata.manager.class.path remote.log.metadata.manager.impl.prefix remote.log.metadata.manager.listener.name
remote.log.storage.manager.class.name remote.log.storage.manager.class.path remote.log.storage.manager.impl.prefix
replica.selector.class sasl.kerberos.kinit.cmd sasl.kerberos.service.name sasl.mechanism
sasl.mechanism.controller.protocol sasl.mechanism.inter.broker.protocol sasl.oauthbearer.expected.issuer
sasl.oauthbearer.jwks.endpoint.url sasl.oauthbearer.scope.claim.name sasl.oauthbearer.sub.claim.name
sasl.oauthbearer.token.endpoint.url security.inter.broker.protocol security.protocol security.providers ssl.client.auth
ssl.endpoint.identification.algorithm ssl.keymanager.algorithm ssl.keystore.location ssl.keystore.type
ssl.principal.mapping.rules ssl.protocol ssl.provider ssl.secure.random.implementation ssl.trustmanager.algorithm
ssl.truststore.location ssl.truststore.type zookeeper.clientCnxnSocket zookeeper.connect
zookeeper.ssl.endpoint.identification.algorithm zookeeper.ssl.keystore.location zookeeper.ssl.keystore.type
zookeeper.ssl.protocol zookeeper.ssl.truststore.location zookeeper.ssl.truststore.type
""",
    "CLASS": """
alter.config.policy.class.name client.quota.callback.class create.topic.policy.class.name principal.builder.class
sasl.client.callback.handler.class sasl.login.callback.handler.class sasl.login.class sasl.server.callback.handler.class
ssl.engine.factory.class
""",
    "LIST": """
bootstrap.controllers bootstrap.servers cleanup.policy controller.quorum.bootstrap.servers controller.quorum.voters
follower.replication.throttled.replicas group.consumer.assignors group.coordinator.rebalance.protocols
kafka.metrics.reporters leader.replication.throttled.replicas log.cleanup.policy match metric.reporters metrics
process.roles sasl.enabled.mechanisms sasl.kerberos.principal.to.local.rules sasl.oauthbearer.expected.audience
ssl.cipher.suites ssl.enabled.protocols zookeeper.ssl.cipher.suites zookeeper.ssl.enabled.protocols
""",
    "BOOLEAN": """
alter.config.policy.kraft.compatibility.enable auto.create.topics.enable auto.include.jmx.reporter
auto.leader.rebalance.enable broker.id.generation.enable controlled.shutdown.enable delete.topic.enable
eligible.leader.replicas.enable enable.metrics.push group.coordinator.new.enable group.share.enable log.cleaner.enable
log.message.downconversion.enable log.preallocate message.downconversion.enable preallocate remote.log.copy.disable
remote.log.delete.on.disable remote.log.storage.system.enable remote.storage.enable sasl.oauthbearer.header.urlencode
ssl.allow.dn.changes ssl.allow.san.changes transaction.partition.verification.enable unclean.leader.election.enable
unstable.api.versions.enable unstable.feature.versions.enable zookeeper.metadata.migration.enable zookeeper.set.acl
zookeeper.ssl.client.enable zookeeper.ssl.crl.enable zookeeper.ssl.ocsp.enable
""",
    "SHORT": """
group.share.max.groups group.share.max.size offsets.commit.required.acks offsets.topic.replication.factor
sasl.login.refresh.buffer.seconds sasl.login.refresh.min.period.seconds transaction.state.log.replication.factor
""",
    "INT": """
alter.log.dirs.replication.quota.window.num alter.log.dirs.replication.quota.window.size.seconds background.threads
broker.heartbeat.interval.ms broker.id broker.session.timeout.ms compression.gzip.level compression.lz4.level
compression.zstd.level connection.failed.authentication.delay.ms connection_creation_rate
controlled.shutdown.max.retries controller.quorum.append.linger.ms controller.quorum.election.backoff.max.ms
controller.quorum.election.timeout.ms controller.quorum.fetch.timeout.ms controller.quorum.request.timeout.ms
controller.quorum.retry.backoff.ms controller.quota.window.num controller.quota.window.size.seconds
controller.socket.timeout.ms default.api.timeout.ms default.replication.factor
delete.records.purgatory.purge.interval.requests fetch.max.bytes fetch.purgatory.purge.interval.requests
group.consumer.heartbeat.interval.ms group.consumer.max.heartbeat.interval.ms group.consumer.max.session.timeout.ms
group.consumer.max.size group.consumer.min.heartbeat.interval.ms group.consumer.min.session.timeout.ms
group.consumer.session.timeout.ms group.coordinator.append.linger.ms group.coordinator.threads
group.initial.rebalance.delay.ms group.max.session.timeout.ms group.max.size group.min.session.timeout.ms
group.share.delivery.count.limit group.share.heartbeat.interval.ms group.share.max.heartbeat.interval.ms
group.share.max.record.lock.duration.ms group.share.max.session.timeout.ms group.share.min.heartbeat.interval.ms
group.share.min.record.lock.duration.ms group.share.min.session.timeout.ms group.share.partition.max.record.locks
group.share.record.lock.duration.ms group.share.session.timeout.ms index.interval.bytes
initial.broker.registration.timeout.ms interval.ms kafka.metrics.polling.interval.secs
leader.imbalance.per.broker.percentage log.cleaner.io.buffer.size log.cleaner.threads
log.flush.offset.checkpoint.interval.ms log.flush.start.offset.checkpoint.interval.ms log.index.interval.bytes
log.index.size.max.bytes log.retention.hours log.retention.minutes log.roll.hours log.roll.jitter.hours
log.segment.bytes max.connection.creation.rate max.connections max.connections.per.ip
max.incremental.fetch.session.cache.slots max.message.bytes max.request.partition.size.limit message.max.bytes
metadata.log.segment.bytes metadata.log.segment.min.bytes metadata.max.idle.interval.ms metrics.num.samples
min.insync.replicas node.id num.io.threads num.network.threads num.partitions num.recovery.threads.per.data.dir
num.replica.alter.log.dirs.threads num.replica.fetchers offset.metadata.max.bytes offsets.commit.timeout.ms
offsets.load.buffer.size offsets.retention.minutes offsets.topic.compression.codec offsets.topic.num.partitions
offsets.topic.segment.bytes password.encoder.iterations password.encoder.key.length
producer.id.expiration.check.interval.ms producer.id.expiration.ms producer.purgatory.purge.interval.requests
queued.max.requests quota.window.num quota.window.size.seconds receive.buffer.bytes remote.fetch.max.wait.ms
remote.log.manager.copier.thread.pool.size remote.log.manager.copy.quota.window.num
remote.log.manager.copy.quota.window.size.seconds remote.log.manager.expiration.thread.pool.size
remote.log.manager.fetch.quota.window.num remote.log.manager.fetch.quota.window.size.seconds
remote.log.manager.thread.pool.size remote.log.metadata.custom.metadata.max.bytes remote.log.reader.max.pending.tasks
remote.log.reader.threads replica.fetch.backoff.ms replica.fetch.max.bytes replica.fetch.min.bytes
replica.fetch.response.max.bytes replica.fetch.wait.max.ms replica.socket.receive.buffer.bytes replica.socket.timeout.ms
replication.quota.window.num replication.quota.window.size.seconds request.timeout.ms reserved.broker.max.id retries
sasl.login.connect.timeout.ms sasl.login.read.timeout.ms sasl.oauthbearer.clock.skew.seconds
sasl.server.max.receive.size segment.bytes segment.index.bytes send.buffer.bytes socket.listen.backlog.size
socket.receive.buffer.bytes socket.request.max.bytes socket.send.buffer.bytes telemetry.max.bytes
transaction.abort.timed.out.transaction.cleanup.interval.ms transaction.max.timeout.ms
transaction.remove.expired.transaction.cleanup.interval.ms transaction.state.log.load.buffer.size
transaction.state.log.min.isr transaction.state.log.num.partitions transaction.state.log.segment.bytes
transactional.id.expiration.ms zookeeper.connection.timeout.ms zookeeper.max.in.flight.requests
zookeeper.metadata.migration.min.batch.size zookeeper.session.timeout.ms
""",
    "LONG": """
connections.max.idle.ms connections.max.reauth.ms consumer_byte_rate controlled.shutdown.retry.backoff.ms
delegation.token.expiry.check.interval.ms delegation.token.expiry.time.ms delegation.token.max.lifetime.ms
delete.retention.ms file.delete.delay.ms flush.messages flush.ms follower.replication.throttled.rate
leader.imbalance.check.interval.seconds leader.replication.throttled.rate local.retention.bytes local.retention.ms
log.cleaner.backoff.ms log.cleaner.dedupe.buffer.size log.cleaner.delete.retention.ms log.cleaner.max.compaction.lag.ms
log.cleaner.min.compaction.lag.ms log.dir.failure.timeout.ms log.flush.interval.messages log.flush.interval.ms
log.flush.scheduler.interval.ms log.initial.task.delay.ms log.local.retention.bytes log.local.retention.ms
log.message.timestamp.after.max.ms log.message.timestamp.before.max.ms log.message.timestamp.difference.max.ms
log.retention.bytes log.retention.check.interval.ms log.retention.ms log.roll.jitter.ms log.roll.ms
log.segment.delete.delay.ms max.compaction.lag.ms message.timestamp.after.max.ms message.timestamp.before.max.ms
message.timestamp.difference.max.ms metadata.log.max.record.bytes.between.snapshots
metadata.log.max.snapshot.interval.ms metadata.log.segment.ms metadata.max.age.ms metadata.max.retention.bytes
metadata.max.retention.ms metrics.sample.window.ms min.compaction.lag.ms offsets.retention.check.interval.ms
producer_byte_rate queued.max.request.bytes reconnect.backoff.max.ms reconnect.backoff.ms
remote.log.index.file.cache.total.size.bytes remote.log.manager.copy.max.bytes.per.second
remote.log.manager.fetch.max.bytes.per.second remote.log.manager.task.interval.ms
remote.log.manager.task.retry.backoff.max.ms remote.log.manager.task.retry.backoff.ms
replica.alter.log.dirs.io.max.bytes.per.second replica.high.watermark.checkpoint.interval.ms replica.lag.time.max.ms
retention.bytes retention.ms retry.backoff.max.ms retry.backoff.ms sasl.kerberos.min.time.before.relogin
sasl.login.retry.backoff.max.ms sasl.login.retry.backoff.ms sasl.oauthbearer.jwks.endpoint.refresh.ms
sasl.oauthbearer.jwks.endpoint.retry.backoff.max.ms sasl.oauthbearer.jwks.endpoint.retry.backoff.ms segment.jitter.ms
segment.ms server.max.startup.time.ms socket.connection.setup.timeout.max.ms socket.connection.setup.timeout.ms
unclean.leader.election.interval.ms
""",
    "DOUBLE": """
controller_mutation_rate log.cleaner.io.buffer.load.factor log.cleaner.io.max.bytes.per.second
log.cleaner.min.cleanable.ratio min.cleanable.dirty.ratio remote.log.manager.task.retry.jitter request_percentage
sasl.kerberos.ticket.renew.jitter sasl.kerberos.ticket.renew.window.factor sasl.login.refresh.window.factor
sasl.login.refresh.window.jitter
""",
}
TYPES = {name: kind for kind, names in _NAMES.items() for name in names.split()}
# Settings of Kafka that no ConfigDef defines: AclAuthorizer, StandardAuthorizer and KafkaMetricsConfig read them.
READ_BY_NAME = frozenset(
    {
        "allow.everyone.if.no.acl.found",
        "authorizer.zookeeper.connection.timeout.ms",
        "authorizer.zookeeper.max.in.flight.requests",
        "authorizer.zookeeper.session.timeout.ms",
        "authorizer.zookeeper.url",
        "kafka.metrics.polling.interval.secs",
        "kafka.metrics.reporters",
        "super.users",
    }
)
HARMLESS = TYPES.keys() | READ_BY_NAME
