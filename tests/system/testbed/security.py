# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How nodes authenticate. The default variant trusts the network; `secure` authenticates every connection.

In `secure`, brokers and controllers use mutual TLS. Each broker is `User:broker-N`, a super user. Every controller is
`User:controller`, which may do nothing on brokers until an ACL allows it. The migration tool is
`User:quorumshift-tool`. Kafka logs in to ZooKeeper (SASL, DIGEST-MD5) and restricts its znodes. Controllers listen on
IPv6.
"""

from __future__ import annotations

from string import Template

from tests.system.testbed.layout import BROKERS, CA_CERTIFICATE, SECURED, STATE, TESTBED, Host, Network

SECRET_NAMES = ("controller_keystore", "quorum_keystore", "tool_key", "zookeeper_kafka") if SECURED else ()
TOOL_SUBJECT = "/O=Testbed/CN=quorumshift-tool"
TOOL_CERTIFICATE = STATE / "tls" / "tool.pem"
TOOL_KEY = STATE / "tls" / "tool.key"
KAFKA_OPTS = "-Djava.security.auth.login.config=/etc/kafka/jaas.conf"
_JAAS_MODULE = "org.apache.zookeeper.server.auth.DigestLoginModule"


def subject(host: Host) -> str:
    """Return the subject of a host's certificate."""
    if not SECURED:
        return f"/CN={host.name}.testbed"
    return f"/O=Testbed/CN={'broker' if host.is_broker else 'controller'}-{host.node_id}"


def alternative_names(host: Host, network: Network) -> str:
    """Return the host's names and addresses for its certificate, in OpenSSL's syntax."""
    names = [f"IP:{network.address(host)}", f"DNS:{host.name}.testbed", f"DNS:{host.name}"]
    return ",".join([*names, f"IP:{network.address6(host)}"] if SECURED else names)


def store_password(host: Host, secrets: dict[str, str]) -> str:
    """Return the password of a host's keystore and truststore."""
    return secrets["controller_keystore"] if SECURED and not host.is_broker else secrets["keystore"]


def broker_settings() -> dict[str, str]:
    """Return the variant's values for the template of server.properties."""
    if not SECURED:
        return {"internal_protocol": "PLAINTEXT", "super_users": "User:ANONYMOUS;User:quorumshift", "more": ""}
    return {
        "internal_protocol": "SSL",
        "super_users": ";".join(["User:quorumshift", *(f"User:broker-{host.node_id}" for host in BROKERS)]),
        "more": (TESTBED / "templates" / "server-secure.properties").read_text(),
    }


def zookeeper_settings() -> str:
    """Return the variant's lines of zoo.cfg."""
    provider = "org.apache.zookeeper.server.auth.SASLAuthenticationProvider"
    return f"authProvider.sasl={provider}\n" if SECURED else ""


def environment(directory: str) -> str:
    """Return a unit's environment file: the path of the service's JAAS configuration."""
    return f"KAFKA_OPTS=-Djava.security.auth.login.config={directory}/jaas.conf\n"


def zookeeper_jaas(secrets: dict[str, str]) -> str:
    """Return the JAAS configuration of ZooKeeper: its users."""
    return f'Server {{\n  {_JAAS_MODULE} required\n  user_kafka="{secrets["zookeeper_kafka"]}";\n}};\n'


def kafka_jaas(secrets: dict[str, str]) -> str:
    """Return the JAAS configuration of Kafka: its login to ZooKeeper."""
    password = secrets["zookeeper_kafka"]
    return Template('Client {\n  $module required\n  username="kafka" password="$password";\n};\n').substitute(
        module=_JAAS_MODULE, password=password
    )


def zookeeper_client(secrets: dict[str, str]) -> dict[str, str]:
    """Return the variable quorumshift_zookeeper_client."""
    if not SECURED:
        return {}
    return {"sasl_mechanism": "DIGEST-MD5", "sasl_username": "kafka", "sasl_password": secrets["zookeeper_kafka"]}


def inventory_variables(secrets: dict[str, str]) -> dict[str, object]:
    """Return the variables that an operator sets for secured listeners, besides quorumshift_client."""
    if not SECURED:
        return {}
    controller_listener = "listener.name.controller.ssl"
    return {
        "quorumshift_zookeeper_client": zookeeper_client(secrets),
        "quorumshift_controller_protocol": "SSL",
        "quorumshift_controller_principal": "User:controller",
        "quorumshift_controller_super_users": ["User:controller", "User:quorumshift-tool"],
        "quorumshift_controller_client": {
            "security_protocol": "SSL",
            "ssl_cafile": str(CA_CERTIFICATE),
            "ssl_certfile": str(TOOL_CERTIFICATE),
            "ssl_keyfile": str(TOOL_KEY),
            "ssl_keypassword": secrets["tool_key"],
        },
        "quorumshift_controller_config": {
            f"{controller_listener}.client.auth": "required",
            "ssl.keystore.password": secrets["controller_keystore"],
            "ssl.key.password": secrets["controller_keystore"],
            "ssl.truststore.password": secrets["controller_keystore"],
        },
        "quorumshift_broker_config": {
            f"{controller_listener}.keystore.type": "PKCS12",
            f"{controller_listener}.keystore.location": "/etc/kafka/ssl/quorum.p12",
            f"{controller_listener}.keystore.password": secrets["quorum_keystore"],
            f"{controller_listener}.key.password": secrets["quorum_keystore"],
        },
    }
