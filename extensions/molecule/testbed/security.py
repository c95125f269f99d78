# Copyright: (c) 2026, Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How nodes know each other. The default variant trusts its network; `secure` trusts nobody.

On `secure` brokers and controllers know each other by certificate (mutual TLS): each broker is `User:broker-N` and a
super user, every controller is `User:controller`, which no broker lets do anything until an ACL says so, and the
migration tool is `User:quorumshift-tool`. Kafka logs in to ZooKeeper (SASL, DIGEST-MD5) and keeps its znodes to itself.
The controllers listen on IPv6.
"""

from __future__ import annotations

from string import Template

from layout import BROKERS, CA_CERTIFICATE, SECURED, STATE, TESTBED, Host, Network

SECRET_NAMES = ("controller_keystore", "quorum_keystore", "tool_key", "zookeeper_kafka") if SECURED else ()
TOOL_SUBJECT = "/O=Bed/CN=quorumshift-tool"
TOOL_CERTIFICATE = STATE / "tls" / "tool.pem"
TOOL_KEY = STATE / "tls" / "tool.key"
KAFKA_OPTS = "-Djava.security.auth.login.config=/etc/kafka/jaas.conf"
_JAAS_MODULE = "org.apache.zookeeper.server.auth.DigestLoginModule"


def subject(host: Host) -> str:
    """The subject of a host's certificate."""
    if not SECURED:
        return f"/CN={host.name}.bed"
    return f"/O=Bed/CN={'broker' if host.is_broker else 'controller'}-{host.node_id}"


def alternative_names(host: Host, network: Network) -> str:
    """The names by which a host is dialled, as OpenSSL takes them."""
    names = [f"IP:{network.address(host)}", f"DNS:{host.name}.bed", f"DNS:{host.name}"]
    return ",".join([*names, f"IP:{network.address6(host)}"] if SECURED else names)


def store_password(host: Host, secrets: dict[str, str]) -> str:
    """The password of a host's key store and trust store."""
    return secrets["controller_keystore"] if SECURED and not host.is_broker else secrets["keystore"]


def broker_settings() -> dict[str, str]:
    """What the template of server.properties takes from the variant."""
    if not SECURED:
        return {"internal_protocol": "PLAINTEXT", "super_users": "User:ANONYMOUS;User:quorumshift", "more": ""}
    return {
        "internal_protocol": "SSL",
        "super_users": ";".join(["User:quorumshift", *(f"User:broker-{host.node_id}" for host in BROKERS)]),
        "more": (TESTBED / "templates" / "server-secure.properties").read_text(),
    }


def zookeeper_settings() -> str:
    """Lines of zoo.cfg."""
    provider = "org.apache.zookeeper.server.auth.SASLAuthenticationProvider"
    return f"authProvider.sasl={provider}\n" if SECURED else ""


def environment(directory: str) -> str:
    """The file that a unit of the variant reads its environment from: where the service's logins are."""
    return f"KAFKA_OPTS=-Djava.security.auth.login.config={directory}/jaas.conf\n"


def zookeeper_jaas(secrets: dict[str, str]) -> str:
    """The users that ZooKeeper knows."""
    return f'Server {{\n  {_JAAS_MODULE} required\n  user_kafka="{secrets["zookeeper_kafka"]}";\n}};\n'


def kafka_jaas(secrets: dict[str, str]) -> str:
    """As whom Kafka logs in to ZooKeeper."""
    password = secrets["zookeeper_kafka"]
    return Template('Client {\n  $module required\n  username="kafka" password="$password";\n};\n').substitute(
        module=_JAAS_MODULE, password=password
    )


def zookeeper_client(secrets: dict[str, str]) -> dict[str, str]:
    """The collection's quorumshift_zookeeper_client."""
    if not SECURED:
        return {}
    return {"sasl_mechanism": "DIGEST-MD5", "sasl_username": "kafka", "sasl_password": secrets["zookeeper_kafka"]}


def inventory_variables(secrets: dict[str, str]) -> dict[str, object]:
    """What an operator sets beside the connection to the brokers when the listeners are secured."""
    if not SECURED:
        return {}
    controller_plane = "listener.name.controller.ssl"
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
            f"{controller_plane}.client.auth": "required",
            "ssl.keystore.password": secrets["controller_keystore"],
            "ssl.key.password": secrets["controller_keystore"],
            "ssl.truststore.password": secrets["controller_keystore"],
        },
        "quorumshift_broker_config": {
            f"{controller_plane}.keystore.type": "PKCS12",
            f"{controller_plane}.keystore.location": "/etc/kafka/ssl/quorum.p12",
            f"{controller_plane}.keystore.password": secrets["quorum_keystore"],
            f"{controller_plane}.key.password": secrets["quorum_keystore"],
        },
    }
