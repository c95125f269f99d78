# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How nodes authenticate. The default variant trusts the network, those of layout.SCHEMES no connection.

`secure`: brokers and controllers use mutual TLS. Each broker is `User:broker-N`, a super user. Every controller is
`User:controller`, which may do nothing on brokers until an ACL allows it. The tool is `User:quorumshift-tool` there.
Controllers listen on IPv6. `sasl`: brokers use SCRAM, and controllers PLAIN; ZooKeeper asks for certificates too, which
are in stores of Java's. `oauth`: brokers, controllers and the tool log in with tokens of one server. `gssapi`: they
log in with tickets of one KDC, to ZooKeeper as well. In all others, Kafka logs in to ZooKeeper with DIGEST-MD5. In each
it restricts its znodes.
"""

from __future__ import annotations

import json
import os
import shutil
from string import Template

from ansible_collections.quorumshift.kafka.plugins.module_utils.probes.zookeeper import zk_kerberos

from tests.system.testbed.kerberos import REALM, Realm
from tests.system.testbed.layout import (
    AUTHORITIES,
    BROKERS,
    CA_CERTIFICATE,
    CONTROLLERS,
    HAS_IPV6,
    LAYOUT,
    SCHEME,
    SECURED,
    STATE,
    TESTBED,
    ZOOKEEPER_UID,
    ZOOKEEPERS,
    Host,
    Network,
)

TOOL_SUBJECT = "/O=Testbed/CN=quorumshift-tool"
TOOL_CERTIFICATE = STATE / "tls" / "tool.pem"
TOOL_KEY = STATE / "tls" / "tool.key"
TOOL_STORE = STATE / "tls" / "tool.jks"
TOOL_TRUST_STORE = STATE / "tls" / "tool-trust.p12"
TOKEN_KEY = STATE / "token_key.json"
TOKEN_PORT, TOKEN_ISSUER, TOKEN_AUDIENCE = 8443, "https://k1.testbed", "kafka"
TOKEN_LIFETIME_S = 300
TOKEN_TOOL = "migration-tool"  # no super user on brokers: it has the rights that docs/least-rights.md lists
KAFKA_OPTS = "-Djava.security.auth.login.config=/etc/kafka/jaas.conf"
ZOOKEEPER_CLIENT = f"{LAYOUT.config_dir}/zookeeper-client.properties"
_JAAS_MODULE = "org.apache.zookeeper.server.auth.DigestLoginModule"
_KAFKA = "org.apache.kafka.common.security"
_SCRAM = f"{_KAFKA}.scram.ScramLoginModule"
_PLAIN = f"{_KAFKA}.plain.PlainLoginModule"
_BEARER = f"{_KAFKA}.oauthbearer.OAuthBearerLoginModule"
_KRB5 = "com.sun.security.auth.module.Krb5LoginModule"
_KAFKA_KEYTAB, _ZOOKEEPER_KEYTAB = f"{LAYOUT.config_dir}/kafka.keytab", "/etc/zookeeper/zookeeper.keytab"
_TOOL, _TOOL_OF_ZOOKEEPER, STRANGER = "quorumshift", "kafka/control", "stranger"
KDC_PORT = 88
if SCHEME.has_kerberos:
    os.environ["KRB5_CONFIG"] = str(STATE / "kdc" / "krb5.conf")  # for this tool, and for tests that run it
    zk_kerberos.register()  # for clients of kazoo here


def _secret_names() -> tuple[str, ...]:
    names = ["controller_keystore"] if SECURED else []
    if SCHEME.zookeeper == "DIGEST-MD5":
        names.append("zookeeper_kafka")
    if SCHEME.controllers == "SSL":
        names += ["quorum_keystore", "tool_key"]
    if SCHEME.brokers.startswith("SCRAM"):
        names += ["scram_broker", "scram_controller"]
    if SCHEME.controllers == "PLAIN":
        names += ["plain_broker", "plain_controller", "plain_quorumshift"]
    if SCHEME.zookeeper_tls:
        names += [
            "zookeeper_broker_store",
            "zookeeper_controller_store",
            "zookeeper_server_store",
            "zookeeper_tool_store",
        ]
    if SCHEME.has_tokens:
        names += [f"token_{client}" for client in token_clients()]
    return tuple(names)


def token_clients() -> tuple[str, ...]:
    """Return the clients of the token server. Each is a principal: User:<client>."""
    return (*(f"broker-{host.node_id}" for host in BROKERS), "controller", TOKEN_TOOL)


def subject(host: Host) -> str:
    """Return the subject of a host's certificate."""
    if not SECURED or not host.node_id:
        return f"/CN={host.name}.testbed"
    return f"/O=Testbed/CN={'broker' if host.is_broker else 'controller'}-{host.node_id}"


def alternative_names(host: Host, network: Network) -> str:
    """Return the host's names and addresses for its certificate, in OpenSSL's syntax."""
    names = [f"IP:{network.address(host)}", f"DNS:{host.name}.testbed", f"DNS:{host.name}"]
    return ",".join([*names, f"IP:{network.address6(host)}"] if HAS_IPV6 and SECURED else names)


def store_password(host: Host, secrets: dict[str, str]) -> str:
    """Return the password of a host's keystore and truststore."""
    return secrets["controller_keystore"] if SECURED and not host.is_broker else secrets["keystore"]


def zookeeper_stores(host: Host, secrets: dict[str, str]) -> dict[str, str]:
    """Return the stores with which a host's Kafka connects to ZooKeeper, and ZooKeeper's own: {file: password}.

    Each is a key store, and its trust store is beside it with `-trust` in the name.
    """
    if not SCHEME.zookeeper_tls:
        return {}
    if not host.is_broker:
        return {"zookeeper.p12": secrets["zookeeper_controller_store"]}
    of_server = {"server.p12": secrets["zookeeper_server_store"]} if host.has_zookeeper else {}
    return {"zookeeper.jks": secrets["zookeeper_broker_store"], **of_server}


def _store_settings(file: str, password: str) -> dict[str, str]:
    stem, _dot, kind = file.partition(".")
    return {
        "zookeeper.ssl.keystore.location": f"{LAYOUT.ssl_dir}/{file}",
        "zookeeper.ssl.keystore.password": password,
        "zookeeper.ssl.truststore.location": f"{LAYOUT.ssl_dir}/{stem}-trust.{kind}",
        "zookeeper.ssl.truststore.password": password,
    }


def broker_settings(host: Host, network: Network, secrets: dict[str, str]) -> dict[str, str]:
    """Return the variant's values for the template of server.properties."""
    if not SECURED:
        return {"internal_protocol": "PLAINTEXT", "super_users": "User:ANONYMOUS;User:quorumshift", "more": ""}
    users = {"super_users": ";".join(["User:quorumshift", *dict.fromkeys(f"User:{_user(host)}" for host in BROKERS)])}
    if SCHEME.brokers == "SSL":
        more = (TESTBED / "templates" / "server-secure.properties").read_text()
        return {"internal_protocol": "SSL", "more": more, **users}
    own = network.address(host) if SCHEME.has_kerberos else _user(host)
    settings = {
        "sasl.mechanism.inter.broker.protocol": SCHEME.brokers,
        "listener.name.internal.sasl.enabled.mechanisms": SCHEME.brokers,
        **_login("internal", SCHEME.brokers, own, secrets),
        **(_tokens(network) if SCHEME.has_tokens else {}),
        "zookeeper.set.acl": "true",
    }
    if SCHEME.has_kerberos:
        settings["sasl.kerberos.service.name"] = "kafka"
    if not SCHEME.tool.startswith("SCRAM"):
        settings["listener.name.clients.sasl.enabled.mechanisms"] = f"SCRAM-SHA-256,SCRAM-SHA-512,{SCHEME.tool}"
        settings.update(_login("clients", SCHEME.tool, own, secrets))
    if SCHEME.zookeeper_tls:
        settings["zookeeper.ssl.client.enable"] = "true"
        settings["zookeeper.clientCnxnSocket"] = "org.apache.zookeeper.ClientCnxnSocketNetty"
        settings.update(_store_settings("zookeeper.jks", secrets["zookeeper_broker_store"]))
    more = "".join(f"{key}={value}\n" for key, value in settings.items())
    return {"internal_protocol": "SASL_SSL", "more": more, **users}


def _user(host: Host) -> str:
    """Return the name of a broker's principal."""
    return {"SCRAM-SHA-512": "broker", "GSSAPI": "kafka"}.get(SCHEME.brokers, f"broker-{host.node_id}")


def is_restricted() -> bool:
    """Return whether the controllers' principal is no super user on brokers."""
    return not SCHEME.has_kerberos


def realm(network: Network) -> Realm:
    """Return the realm of Kerberos. Its KDC is on the authority's host."""
    return Realm(STATE / "kdc", f"{network.address(AUTHORITIES[0])}:{KDC_PORT}")


def ensure_realm(network: Network) -> None:
    """Create the realm with all principals, where the variant has one, unless it is there for this network."""
    if not SCHEME.has_kerberos:
        return
    made, made_for = realm(network), STATE / "kdc" / "made_for"
    if made_for.exists() and made_for.read_text() == made.address:
        return
    shutil.rmtree(made.home, ignore_errors=True)
    made.create()
    services = (principal for host in (*BROKERS, *CONTROLLERS) for principal in keytabs(host, network))
    for principal in (*services, _TOOL, _TOOL_OF_ZOOKEEPER, STRANGER):
        made.keytab(principal)
    made_for.write_text(made.address)


def keytabs(host: Host, network: Network) -> dict[str, tuple[str, int]]:
    """Return by principal the path of its keytab on a host, and the owner's id."""
    address = network.address(host)
    found = {f"kafka/{address}": (_KAFKA_KEYTAB, LAYOUT.uid)} if host.node_id else {}
    return {**found, f"zookeeper/{address}": (_ZOOKEEPER_KEYTAB, ZOOKEEPER_UID)} if host in ZOOKEEPERS else found


def _tickets(keytab: str, service: str, host: str) -> str:
    """Return the login module of a service on a host, without its end."""
    return f'{_KRB5} required useKeyTab=true storeKey=true keyTab="{keytab}" principal="{service}/{host}@{REALM}"'


def _tool_ticket(principal: str) -> dict[str, str]:
    """Return the options of the tool's login as this principal."""
    keytab = STATE / "kdc" / f"{principal.replace('/', '-')}.keytab"
    return {"sasl_kerberos_keytab": str(keytab), "sasl_kerberos_principal": f"{principal}@{REALM}"}


def _broker_ticket() -> dict[str, str]:
    """Return the options of the tool's login to brokers and controllers."""
    return {"sasl_kerberos_service_name": "kafka", **_tool_ticket(_TOOL)}


def stranger() -> dict[str, str]:
    """Return the options of a login by Kerberos without rights."""
    return _tool_ticket(STRANGER)


def _tokens(network: Network) -> dict[str, str]:
    """Return the settings of brokers and controllers for tokens, on all listeners."""
    return {
        "sasl.oauthbearer.token.endpoint.url": token_endpoint(network),
        "sasl.oauthbearer.jwks.endpoint.url": f"file://{LAYOUT.config_dir}/jwks.json",
        "sasl.oauthbearer.expected.audience": TOKEN_AUDIENCE,
        "sasl.oauthbearer.expected.issuer": TOKEN_ISSUER,
    }


def token_endpoint(network: Network) -> str:
    """Return the URL of the token server."""
    return f"https://{network.address(AUTHORITIES[0])}:{TOKEN_PORT}/token"


def _login(listener: str, mechanism: str, user: str, secrets: dict[str, str], users: tuple[str, ...] = ()) -> dict:
    """Return the settings of a node that logs in at this listener as `user`; `users`: who may log in by PLAIN.

    With GSSAPI `user` is the node's host.
    """
    prefix = f"listener.name.{listener}.{mechanism.lower()}"
    if mechanism == "GSSAPI":
        return {f"{prefix}.sasl.jaas.config": f"{_tickets(_KAFKA_KEYTAB, 'kafka', user)};"}
    if mechanism == "OAUTHBEARER":
        store = secrets["keystore" if user.startswith("broker") else "controller_keystore"]
        trust = f'ssl.truststore.type="PKCS12" ssl.truststore.location="{LAYOUT.ssl_dir}/truststore.p12"'
        client = f'clientId="{user}" clientSecret="{secrets[f"token_{user}"]}"'
        handler = f"{_KAFKA}.oauthbearer.OAuthBearer"
        return {
            f"{prefix}.sasl.jaas.config": f'{_BEARER} required {client} {trust} ssl.truststore.password="{store}";',
            f"{prefix}.sasl.login.callback.handler.class": f"{handler}LoginCallbackHandler",
            f"{prefix}.sasl.server.callback.handler.class": f"{handler}ValidatorCallbackHandler",
        }
    module, kind = (_PLAIN, "plain") if mechanism == "PLAIN" else (_SCRAM, "scram")
    allowed = "".join(f' user_{name}="{secrets[f"plain_{name}"]}"' for name in users)
    own = f'username="{user}" password="{secrets[f"{kind}_{user}"]}"'
    return {f"{prefix}.sasl.jaas.config": f"{module} required {own}{allowed};"}


def scram_users(secrets: dict[str, str]) -> dict[str, str]:
    """Return the SCRAM users that must be in ZooKeeper before a broker runs, with their passwords."""
    own = ("broker", "controller") if SCHEME.brokers.startswith("SCRAM") else ()
    return {"quorumshift": secrets["quorumshift"], **{name: secrets[f"scram_{name}"] for name in own}}


def zookeeper_settings(secrets: dict[str, str]) -> str:
    """Return the variant's lines of zoo.cfg: ports and logins."""
    provider = "authProvider.sasl=org.apache.zookeeper.server.auth.SASLAuthenticationProvider\n" if SECURED else ""
    if SCHEME.has_kerberos:  # all brokers are one identity
        provider += "kerberos.removeHostFromPrincipal=true\nkerberos.removeRealmFromPrincipal=true\n"
    if not SCHEME.zookeeper_tls:
        return f"clientPort={LAYOUT.zookeeper_port}\n{provider}"
    password = secrets["zookeeper_server_store"]
    lines = {
        "secureClientPort": str(LAYOUT.zookeeper_port),
        "serverCnxnFactory": "org.apache.zookeeper.server.NettyServerCnxnFactory",
        "ssl.keyStore.location": "/etc/zookeeper/server.p12",
        "ssl.keyStore.password": password,
        "ssl.trustStore.location": "/etc/zookeeper/server-trust.p12",
        "ssl.trustStore.password": password,
        "ssl.clientAuth": "need",
    }
    return provider + "".join(f"{key}={value}\n" for key, value in lines.items())


def zookeeper_tool_settings(secrets: dict[str, str]) -> str:
    """Return the file for --zk-tls-config-file of Kafka's tools, '' without TLS."""
    if not SCHEME.zookeeper_tls:
        return ""
    lines = {
        "zookeeper.ssl.client.enable": "true",
        "zookeeper.clientCnxnSocket": "org.apache.zookeeper.ClientCnxnSocketNetty",
        **_store_settings("zookeeper.jks", secrets["zookeeper_broker_store"]),
    }
    return "".join(f"{key}={value}\n" for key, value in lines.items())


def environment(directory: str) -> str:
    """Return a unit's environment file: the path of the service's JAAS configuration."""
    return f"KAFKA_OPTS=-Djava.security.auth.login.config={directory}/jaas.conf\n"


def zookeeper_jaas(address: str, secrets: dict[str, str]) -> str:
    """Return the JAAS configuration of ZooKeeper on the host with this address: its users, or its ticket."""
    if SCHEME.has_kerberos:
        return f"Server {{\n  {_tickets(_ZOOKEEPER_KEYTAB, 'zookeeper', address)};\n}};\n"
    return f'Server {{\n  {_JAAS_MODULE} required\n  user_kafka="{secrets["zookeeper_kafka"]}";\n}};\n'


def kafka_jaas(address: str, secrets: dict[str, str]) -> str:
    """Return the JAAS configuration of Kafka on the host with this address: its login to ZooKeeper."""
    if SCHEME.has_kerberos:
        return f"Client {{\n  {_tickets(_KAFKA_KEYTAB, 'kafka', address)};\n}};\n"
    password = secrets["zookeeper_kafka"]
    return Template('Client {\n  $module required\n  username="kafka" password="$password";\n};\n').substitute(
        module=_JAAS_MODULE, password=password
    )


def zookeeper_client(secrets: dict[str, str]) -> dict[str, object]:
    """Return the variable quorumshift_zookeeper_client."""
    if not SECURED:
        return {}
    if SCHEME.has_kerberos:
        return {"sasl_mechanism": "GSSAPI", **_tool_ticket(_TOOL_OF_ZOOKEEPER)}
    login = {"sasl_mechanism": "DIGEST-MD5", "sasl_username": "kafka", "sasl_password": secrets["zookeeper_kafka"]}
    if not SCHEME.zookeeper_tls:
        return login
    password = secrets["zookeeper_tool_store"]
    stores = {"cafile": str(TOOL_TRUST_STORE), "certfile": str(TOOL_STORE)}
    return {"use_tls": True, **stores, "capassword": password, "keypassword": password, **login}


def client(network: Network, secrets: dict[str, str]) -> dict[str, object]:
    """Return the variable quorumshift_client."""
    tls = {"security_protocol": "SASL_SSL", "sasl_mechanism": SCHEME.tool, "ssl_cafile": str(CA_CERTIFICATE)}
    if SCHEME.tool == "OAUTHBEARER":
        return {**tls, **_tool_token(network, secrets)}
    if SCHEME.tool == "GSSAPI":
        return {**tls, **_broker_ticket()}
    return {**tls, "sasl_username": "quorumshift", "sasl_password": secrets["quorumshift"]}


def tool_principals() -> list[str]:
    """Return the tool's principal where it is no super user on brokers."""
    return [f"User:{TOKEN_TOOL}"] if SCHEME.tool == "OAUTHBEARER" else []


def _tool_token(network: Network, secrets: dict[str, str]) -> dict[str, str]:
    given = {
        "token_endpoint_url": token_endpoint(network),
        "client_id": TOKEN_TOOL,
        "client_secret": secrets[f"token_{TOKEN_TOOL}"],
        "cafile": str(CA_CERTIFICATE),
    }
    return {f"sasl_oauthbearer_{key}": value for key, value in given.items()}


def token_server(secrets: dict[str, str]) -> str:
    """Return the configuration of the token server."""
    return json.dumps(
        {
            "address": "0.0.0.0",
            "port": TOKEN_PORT,
            "certfile": "/etc/token-server/certificate.pem",
            "keyfile": "/etc/token-server/key.pem",
            "clients": {name: secrets[f"token_{name}"] for name in token_clients()},
            "key": json.loads(TOKEN_KEY.read_text()),
            "issuer": TOKEN_ISSUER,
            "audience": TOKEN_AUDIENCE,
            "lifetime_s": TOKEN_LIFETIME_S,
        }
    )


def inventory_variables(network: Network, secrets: dict[str, str]) -> dict[str, object]:
    """Return the variables that an operator sets for secured listeners, besides quorumshift_client."""
    if not SECURED:
        return {}
    principal = "User:kafka" if SCHEME.has_kerberos else "User:controller"
    of_tool = [f"User:{_TOOL}"] if SCHEME.has_kerberos else tool_principals()
    variables = {
        "quorumshift_zookeeper_client": zookeeper_client(secrets),
        "quorumshift_controller_principal": principal,
        "quorumshift_controller_super_users": [principal, *of_tool],
    }
    stores = {
        "ssl.keystore.password": secrets["controller_keystore"],
        "ssl.key.password": secrets["controller_keystore"],
        "ssl.truststore.password": secrets["controller_keystore"],
    }
    if SCHEME.controllers == "SSL":
        return {**variables, **_by_certificate(secrets, stores)}
    mechanism, prefix = SCHEME.controllers, "listener.name.controller"
    tools = {
        "PLAIN": lambda: {"sasl_username": "quorumshift", "sasl_password": secrets["plain_quorumshift"]},
        "OAUTHBEARER": lambda: _tool_token(network, secrets),
        "GSSAPI": _broker_ticket,
    }
    protocol = {"sasl.mechanism.controller.protocol": mechanism}
    users = ("broker", "controller", "quorumshift") if mechanism == "PLAIN" else ()
    # with Kerberos each host has a principal, which Ansible fills in
    broker, controller = ("{{ ansible_host }}",) * 2 if SCHEME.has_kerberos else ("broker", "controller")
    # each broker has a login of its own where a token names it
    of_brokers = {} if mechanism == "OAUTHBEARER" else _login("controller", mechanism, broker, secrets)
    # the handlers of tokens are the brokers' own, and controllers take them from their files
    inside = _login("internal", SCHEME.brokers, controller, secrets)
    inside = {name: value for name, value in inside.items() if name.endswith(".sasl.jaas.config")}
    return {
        **variables,
        "quorumshift_controller_protocol": "SASL_SSL",
        "quorumshift_controller_client": {
            "security_protocol": "SASL_SSL",
            "sasl_mechanism": mechanism,
            "ssl_cafile": str(CA_CERTIFICATE),
            **tools[mechanism](),
        },
        "quorumshift_controller_config": {
            **protocol,
            f"{prefix}.sasl.enabled.mechanisms": mechanism,
            **_login("controller", mechanism, controller, secrets, users),
            **inside,
            **stores,
            **(_store_settings("zookeeper.p12", secrets["zookeeper_controller_store"]) if SCHEME.zookeeper_tls else {}),
        },
        "quorumshift_broker_config": {**protocol, **of_brokers},
    }


def broker_variables(host: Host, secrets: dict[str, str]) -> dict[str, object]:
    """Return the variables of one broker in the inventory."""
    if SCHEME.controllers != "OAUTHBEARER":
        return {}
    own = _login("controller", SCHEME.controllers, f"broker-{host.node_id}", secrets)
    return {
        "quorumshift_broker_config": {"sasl.mechanism.controller.protocol": SCHEME.controllers, **own},
    }


def _by_certificate(secrets: dict[str, str], stores: dict[str, str]) -> dict[str, object]:
    """Return the variables of controllers that ask for certificates."""
    controller_listener = "listener.name.controller.ssl"
    return {
        "quorumshift_controller_protocol": "SSL",
        "quorumshift_controller_super_users": ["User:controller", "User:quorumshift-tool"],
        "quorumshift_controller_client": {
            "security_protocol": "SSL",
            "ssl_cafile": str(CA_CERTIFICATE),
            "ssl_certfile": str(TOOL_CERTIFICATE),
            "ssl_keyfile": str(TOOL_KEY),
            "ssl_keypassword": secrets["tool_key"],
        },
        "quorumshift_controller_config": {f"{controller_listener}.client.auth": "required", **stores},
        "quorumshift_broker_config": {
            f"{controller_listener}.keystore.type": "PKCS12",
            f"{controller_listener}.keystore.location": "/etc/kafka/ssl/quorum.p12",
            f"{controller_listener}.keystore.password": secrets["quorum_keystore"],
            f"{controller_listener}.key.password": secrets["quorum_keystore"],
        },
    }


SECRET_NAMES = _secret_names()
