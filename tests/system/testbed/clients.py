# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Clients of the testbed's SASL_SSL listener."""

from __future__ import annotations

import confluent_kafka.admin

from tests.system.testbed.layout import CA_CERTIFICATE, Network


def settings(network: Network, secrets: dict[str, str], user: str = "quorumshift") -> dict[str, object]:
    """Return librdkafka settings of `user`; they log nothing about brokers that are not up yet."""
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


def admin_client(network: Network, secrets: dict[str, str], timeout_s: float = 60) -> confluent_kafka.admin.AdminClient:
    """Return an admin client of the operator, a super user; a response may take `timeout_s` seconds."""
    # librdkafka drops a request after this time, even if a call's request_timeout is longer
    timeout = {"socket.timeout.ms": int(timeout_s * 1000)}
    return confluent_kafka.admin.AdminClient({**settings(network, secrets), **timeout})


def kafka_python_settings(network: Network, secrets: dict[str, str]) -> dict[str, object]:
    """Return kafka-python settings of the operator."""
    return {
        "bootstrap_servers": network.bootstrap_servers.split(","),
        "security_protocol": "SASL_SSL",
        "sasl_mechanism": "SCRAM-SHA-512",
        "sasl_plain_username": "quorumshift",
        "sasl_plain_password": secrets["quorumshift"],
        "ssl_cafile": str(CA_CERTIFICATE),
    }
