# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Read ZooKeeper from a broker's host with the broker's own properties. Standard library only.

The znodes read here are world-readable under Kafka's own ACLs (ZkData.defaultAcls), so no SASL is needed.
"""

from __future__ import annotations

from typing import Any, Mapping

from ansible_collections.quorumshift.kafka.plugins.module_utils.formats.zookeeper import znodes
from ansible_collections.quorumshift.kafka.plugins.module_utils.probes.node import config_providers, node
from ansible_collections.quorumshift.kafka.plugins.module_utils.secrets.security import SecurityError, Tls, ZkSecurity
from ansible_collections.quorumshift.kafka.plugins.module_utils.settings import config_values, properties
from ansible_collections.quorumshift.kafka.plugins.module_utils.settings.addresses import (
    AddressError,
    ZkConnect,
    parse_zookeeper_connect,
)
from ansible_collections.quorumshift.kafka.plugins.module_utils.wire.zk_wire import NoNode, WireError, ZkConnection

_SSL = "zookeeper.ssl."
_PROPERTIES = {
    "cafile": "truststore.location",
    "capassword": "truststore.password",
    "certfile": "keystore.location",
    "keypassword": "keystore.password",
}


def collect(values: Mapping[str, str], timeout: float = 10.0) -> dict:
    """Return {migration: see zookeeper.znodes.migration, or None; controller: {broker_id, ephemeral} or None; brokers:
    ids in /brokers/ids, as text}.

    The server first catches up with its leader, so the data is not older than the call. Raises AddressError,
    SecurityError for unusable properties, znodes.ZnodeError, WireError.
    """
    connect, security = connection(values)
    with ZkConnection(connect, security, timeout) as client:
        client.sync()
        migration, controller = (_get(client, path) for path in (znodes.MIGRATION, znodes.CONTROLLER))
        return {
            "migration": znodes.migration(migration[0]) if migration else None,
            "controller": {
                "broker_id": znodes.controller(controller[0])["broker_id"],
                "ephemeral": bool(controller[1].ephemeral_owner),
            }
            if controller
            else None,
            "brokers": client.children("/brokers/ids"),
        }


def read_session(
    connect: ZkConnect, security: ZkSecurity, node_id: int, timeout: float = 10.0
) -> tuple[int | None, str | None]:
    """Return the session that owns /brokers/ids/<node id>, and the id in /cluster/id; None for what does not exist.

    Raises SecurityError, znodes.ZnodeError, WireError.
    """
    with ZkConnection(connect, security, timeout) as client:
        client.sync()
        broker, cluster = (_get(client, path) for path in (f"/brokers/ids/{node_id}", "/cluster/id"))
        return (
            broker[1].ephemeral_owner if broker else None,
            znodes.cluster_id(cluster[0]) if cluster else None,
        )


def explain_unreadable(config_file: str, service_name: str = "", timeout: float = 10.0) -> str | None:
    """Return why `collect` fails with the settings in a broker's properties file, None if it does not."""
    try:
        collect(config_providers.effective_values(node.read_properties(config_file), service_name), timeout)
    except (OSError, AddressError, SecurityError, properties.PropertiesError, znodes.ZnodeError, WireError) as error:
        return str(error)
    return None


def connection(values: Mapping[str, str]) -> tuple[ZkConnect, ZkSecurity]:
    """Return the ZooKeeper connection in a broker's properties: servers and chroot, TLS.

    The keys are KafkaConfig's ZkSsl*. Stores are PEM, JKS or PKCS12. Raises AddressError, SecurityError naming the
    property.
    """
    values = _resolve(values)
    connect = parse_zookeeper_connect(config_values.get(values, "zookeeper.connect"))
    if not config_values.is_true(values, _SSL + "client.enable"):
        return connect, ZkSecurity()
    check_hostname = config_values.get(values, _SSL + "endpoint.identification.algorithm").upper() == "HTTPS"
    tls = Tls(
        **_store(values, "cafile", "capassword"),
        **_store(values, "certfile", "keypassword"),
        check_hostname=check_hostname,
        names={option: f"{_SSL}{key}" for option, key in _PROPERTIES.items()},
    )
    return connect, ZkSecurity(tls=tls)


def _resolve(values: Mapping[str, str]) -> Mapping[str, str]:
    plain, variables = config_providers.resolve(values, None)
    for variable in variables:
        if variable.why and variable.key.startswith("zookeeper."):
            raise SecurityError(
                f"{variable.key}: {variable.variable} could not be resolved: {variable.why} (QS-CONNECT-007)"
            )
    return plain


def _store(values: Mapping[str, str], file: str, password: str) -> dict[str, Any]:
    """Return a store of the broker's properties as options of Tls."""
    path, secret = (config_values.get(values, f"{_SSL}{_PROPERTIES[option]}") or None for option in (file, password))
    return {file: path, password: secret if path else None}


def _get(client: ZkConnection, path: str) -> tuple | None:
    try:
        return client.get(path)
    except NoNode:
        return None
