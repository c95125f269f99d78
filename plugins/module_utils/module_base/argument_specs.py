# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Argument specs of the options that modules share. Their documentation is doc_fragments/connection.py."""

from __future__ import annotations

from typing import Any, Dict

from ansible_collections.quorumshift.kafka.plugins.module_utils.secrets.security import (
    SASL_MECHANISMS,
    SECURITY_PROTOCOLS,
)

_SSL: Dict[str, Dict[str, Any]] = {
    "cafile": {"type": "path"},
    "capassword": {"type": "str", "no_log": True},
    "certfile": {"type": "path"},
    "keyfile": {"type": "path", "no_log": False},
    "keypassword": {"type": "str", "no_log": True},
    "verify": {"type": "bool", "default": True},
    "check_hostname": {"type": "bool", "default": True},
}

_KERBEROS: Dict[str, Dict[str, Any]] = {
    "sasl_kerberos_service_name": {"type": "str"},
    "sasl_kerberos_keytab": {"type": "path"},
    "sasl_kerberos_principal": {"type": "str"},
}

CLIENT_OPTIONS: Dict[str, Dict[str, Any]] = {
    "security_protocol": {"type": "str", "default": "PLAINTEXT", "choices": list(SECURITY_PROTOCOLS)},
    "sasl_mechanism": {"type": "str", "choices": list(SASL_MECHANISMS)},
    "sasl_username": {"type": "str"},
    "sasl_password": {"type": "str", "no_log": True},
    **_KERBEROS,
    "sasl_oauthbearer_token_endpoint_url": {"type": "str", "no_log": False},
    "sasl_oauthbearer_client_id": {"type": "str"},
    "sasl_oauthbearer_client_secret": {"type": "str", "no_log": True},
    "sasl_oauthbearer_scope": {"type": "str"},
    "sasl_oauthbearer_cafile": {"type": "path"},
    "sasl_oauthbearer_token_file": {"type": "path", "no_log": False},
    **{f"ssl_{name}": spec for name, spec in _SSL.items()},
}
"""Suboptions of `client` and `controller_client`; security.Security.from_options reads them."""

ZOOKEEPER_CLIENT_OPTIONS: Dict[str, Dict[str, Any]] = {
    "use_tls": {"type": "bool", "default": False},
    **_SSL,
    "auth": {"type": "str", "no_log": True},
    "sasl_mechanism": {"type": "str", "choices": ["DIGEST-MD5", "GSSAPI"]},
    "sasl_username": {"type": "str"},
    "sasl_password": {"type": "str", "no_log": True},
    **_KERBEROS,
}
"""Suboptions of `zookeeper_client`; security.ZkSecurity.from_options reads them."""

CONNECTION: Dict[str, Dict[str, Any]] = {
    "bootstrap_servers": {"type": "list", "elements": "str", "required": True},
    "client": {"type": "dict", "options": CLIENT_OPTIONS},
    "controller_client": {"type": "dict", "options": CLIENT_OPTIONS},
    "zookeeper_connect": {"type": "str"},
    "zookeeper_client": {"type": "dict", "options": ZOOKEEPER_CLIENT_OPTIONS},
    "timeout": {"type": "float", "default": 5.0},
}
"""How to reach the cluster; the doc fragment quorumshift.kafka.connection documents exactly these."""

_IDS = {"type": "list", "elements": "int", "default": []}
EXPECTED: Dict[str, Dict[str, Any]] = {"expected": {"type": "dict", "options": {"broker": _IDS, "controller": _IDS}}}
"""The nodes that a cluster has; the doc fragment quorumshift.kafka.connection.expected documents it."""
