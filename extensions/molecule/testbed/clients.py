# Copyright: (c) 2026, Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Clients of the bed's SASL_SSL listener."""

from __future__ import annotations

import confluent_kafka.admin
from layout import CA_CERTIFICATE, Network


def settings(network: Network, secrets: dict[str, str], user: str = "quorumshift") -> dict[str, object]:
    """librdkafka settings of `user`, quiet about brokers that are not up yet."""
    return {
        "bootstrap.servers": network.bootstrap_servers,
        "security.protocol": "SASL_SSL",
        "sasl.mechanism": "SCRAM-SHA-512",
        "sasl.username": user,
        "sasl.password": secrets[user],
        "ssl.ca.location": str(CA_CERTIFICATE),
        "log_level": 0,
        "reconnect.backoff.max.ms": 500,
        "error_cb": lambda error: None,
    }


def admin_client(
    network: Network, secrets: dict[str, str], patience_s: float = 60
) -> confluent_kafka.admin.AdminClient:
    """An admin client of the operator, who is a super user; an answer may take `patience_s` seconds."""
    # librdkafka drops a request after this time, whatever request_timeout a call gives.
    patience = {"socket.timeout.ms": int(patience_s * 1000)}
    return confluent_kafka.admin.AdminClient({**settings(network, secrets), **patience})


def kafka_python_settings(network: Network, secrets: dict[str, str]) -> dict[str, object]:
    """kafka-python settings of the operator."""
    return {
        "bootstrap_servers": network.bootstrap_servers.split(","),
        "security_protocol": "SASL_SSL",
        "sasl_mechanism": "SCRAM-SHA-512",
        "sasl_plain_username": "quorumshift",
        "sasl_plain_password": secrets["quorumshift"],
        "ssl_cafile": str(CA_CERTIFICATE),
    }
