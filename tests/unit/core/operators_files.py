# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Broker properties as operators write them, and their forms in each mode."""

from __future__ import annotations

from ansible_collections.quorumshift.kafka.plugins.module_utils.core.migration import kraft_config
from ansible_collections.quorumshift.kafka.plugins.module_utils.settings import properties

from tests.unit.core import recorded

VOTERS = "101@c1:9093,102@c2:9093,103@c3:9093"

FILES = {
    "defaults absent": (1, "broker.id=1\nzookeeper.connect=z1:2181\nlog.dirs=/data\n"),
    "generated id": (
        1005,
        """zookeeper.connect=z1:2181,z2:2181/kafka
broker.id.generation.enable=true
reserved.broker.max.id=1000
log.dirs=/data1,/data2
listeners=PLAINTEXT://:9092
""",
    ),
    "no id, generation by default": (1003, "zookeeper.connect=z1:2181\nlog.dirs=/data\n"),
    "explicit map": (
        7,
        """broker.id=7
listeners=INTERNAL://b7:9092,CLIENTS://b7:9094
advertised.listeners=INTERNAL://b7:9092,CLIENTS://b7.example.org:9094
listener.security.protocol.map = INTERNAL:PLAINTEXT , CLIENTS:SASL_SSL
inter.broker.listener.name=INTERNAL
inter.broker.protocol.version=3.9
zookeeper.connect=z1:2181/prod
zookeeper.set.acl=true
log.dirs=/data
""",
    ),
    "lower-case listeners, Kerberos, a control plane": (
        12,
        r"""broker.id=12
listeners=internal://b12:9092,external://b12:9095,control://b12:9090
listener.security.protocol.map=internal:SASL_PLAINTEXT,external:SASL_SSL,control:SASL_PLAINTEXT
inter.broker.listener.name=internal
control.plane.listener.name=control
sasl.enabled.mechanisms=GSSAPI
sasl.mechanism.inter.broker.protocol=GSSAPI
sasl.kerberos.service.name=kafka
sasl.kerberos.principal.to.local.rules=RULE:[1:$1@$0](.*@EXAMPLE\\.ORG)s/@.*//,DEFAULT
ssl.keystore.location=/etc/kafka/ssl/keystore.p12
ssl.keystore.password=changeit
ssl.key.password=changeit
ssl.truststore.location=/etc/kafka/ssl/truststore.p12
ssl.truststore.password=changeit
authorizer.class.name=kafka.security.authorizer.AclAuthorizer
super.users = User:kafka ;  User:admin; User:CN=ops,OU=it,O=Example
zookeeper.connect=z1:2182
zookeeper.ssl.client.enable=true
zookeeper.clientCnxnSocket=org.apache.zookeeper.ClientCnxnSocketNetty
zookeeper.ssl.truststore.location=/etc/kafka/ssl/zk.p12
zookeeper.ssl.truststore.password=changeit
password.encoder.secret=encode-me
password.encoder.old.secret=encoded-before
password.encoder.iterations=8192
log.dirs=/data
""",
    ),
    "lower-case protocols": (
        4,
        """broker.id=4
listeners=internal://b4:9092,clients://b4:9094
listener.security.protocol.map=internal:sasl_ssl,clients:Ssl
inter.broker.listener.name=internal
sasl.enabled.mechanisms=PLAIN
sasl.mechanism.inter.broker.protocol=PLAIN
listener.name.internal.plain.sasl.jaas.config=org.apache.kafka.common.security.plain.PlainLoginModule required \
  username="kafka" password="secret" user_kafka="secret";
zookeeper.connect=z1:2181
log.dirs=/data
""",
    ),
    "SSL between brokers, no map": (
        3,
        """broker.id=3
listeners=SSL://b3:9093
security.inter.broker.protocol=SSL
ssl.client.auth=required
ssl.keystore.location=/etc/kafka/keystore.jks
ssl.keystore.password=changeit
ssl.truststore.location=/etc/kafka/truststore.jks
ssl.truststore.password=changeit
ssl.principal.mapping.rules=RULE:^CN=(.*?),.*$/$1/,DEFAULT
authorizer.class.name=kafka.security.authorizer.AclAuthorizer
super.users=User:b1;User:b2;User:b3
zookeeper.connect=z1:2181
controlled.shutdown.enable=true
replica.selector.class=org.apache.kafka.common.replica.RackAwareReplicaSelector
delegation.token.master.key=old-name
log.dirs=/data
min.insync.replicas=2
unclean.leader.election.enable=false
""",
    ),
}


def files():
    """Return {name: (node id, properties)}, with those of the testbed's broker."""
    read = {name: (number, properties.parse(text.encode())) for name, (number, text) in FILES.items()}
    testbed = recorded.facts("zk")["nodes"]["b1"]
    read["the testbed's"] = (testbed["node_id"], testbed["file"]["properties"])
    return read


def edited(values, changes):
    """Return the properties after an edit of their file."""
    text = "".join(f"{key}={value}\n" for key, value in values.items()).replace("\\", "\\\\")
    return properties.parse(properties.edit(text.encode(), changes))


def modes(node_id, values, listener="CONTROLLER", protocol="PLAINTEXT", extra=None):
    """Return {mode: properties} of a broker in all its modes and of a controller."""
    migration = edited(
        values, kraft_config.to_migration_mode(values, node_id, VOTERS, listener, protocol, dict(extra or {}))
    )
    controller = kraft_config.controller_properties(
        values,
        102,
        "c2:9093",
        VOTERS,
        "/var/lib/kafka/metadata",
        listener,
        protocol,
        ["User:ANONYMOUS"],
        dict(extra or {}),
    )
    return {
        "zk": values,
        "zk_migration": migration,
        "kraft": edited(migration, kraft_config.to_kraft_mode(migration, node_id)),
        "controller_migration": controller,
        "controller_final": edited(controller, kraft_config.to_final_controller(controller)),
    }
