# Copyright: (c) 2026, Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Documentation of the options that argument_specs.CONNECTION declares, ZooKeeper's aside (zookeeper.py)."""

from __future__ import annotations


class ModuleDocFragment:
    DOCUMENTATION = r"""
options:
  bootstrap_servers:
    description:
      - Brokers to start from, each as C(host:port) or C([IPv6 address]:port); the port defaults to 9092.
    type: list
    elements: str
    required: true
  client:
    description:
      - How to connect to the brokers' listener that O(bootstrap_servers) names.
      - Files are read on the host where the module runs.
    type: dict
    suboptions:
      security_protocol:
        description:
          - The listener's protocol, as in Kafka's C(security.protocol).
        type: str
        choices: [PLAINTEXT, SSL, SASL_PLAINTEXT, SASL_SSL]
        default: PLAINTEXT
      sasl_mechanism:
        description:
          - The SASL mechanism; required with V(SASL_PLAINTEXT) and V(SASL_SSL).
          - V(GSSAPI) and V(OAUTHBEARER) are handed to librdkafka. The probes that ask one broker or controller directly
            do not speak them and say so.
        type: str
        choices: [PLAIN, SCRAM-SHA-256, SCRAM-SHA-512, GSSAPI, OAUTHBEARER]
      sasl_username:
        description:
          - The user; required with V(PLAIN) and SCRAM.
        type: str
      sasl_password:
        description:
          - The user's password; required with V(PLAIN) and SCRAM.
        type: str
      ssl_cafile:
        description:
          - PEM file of the CAs that signed the server's certificate. Without it, those that the system trusts.
        type: path
      ssl_certfile:
        description:
          - PEM file of the client certificate and its chain, where the server requires one.
          - Java stores (JKS, PKCS12) are not read; C(keytool -importkeystore) and C(openssl pkcs12) make PEM of them.
        type: path
      ssl_keyfile:
        description:
          - PEM file of the client certificate's private key, when it is not in O(client.ssl_certfile).
        type: path
      ssl_keypassword:
        description:
          - Password of the private key.
        type: str
      ssl_verify:
        description:
          - Whether to check the server's certificate. Secrets go to whoever answers when it is V(false).
        type: bool
        default: true
      ssl_check_hostname:
        description:
          - Whether the server's certificate must be for the host name that is connected to.
        type: bool
        default: true
  controller_client:
    description:
      - How to connect to the controllers' listener.
    type: dict
    suboptions:
      security_protocol:
        description:
          - The listener's protocol, as in Kafka's C(security.protocol).
        type: str
        choices: [PLAINTEXT, SSL, SASL_PLAINTEXT, SASL_SSL]
        default: PLAINTEXT
      sasl_mechanism:
        description:
          - The SASL mechanism; required with V(SASL_PLAINTEXT) and V(SASL_SSL).
          - V(GSSAPI) and V(OAUTHBEARER) are handed to librdkafka. The probes that ask one broker or controller directly
            do not speak them and say so.
        type: str
        choices: [PLAIN, SCRAM-SHA-256, SCRAM-SHA-512, GSSAPI, OAUTHBEARER]
      sasl_username:
        description:
          - The user; required with V(PLAIN) and SCRAM.
        type: str
      sasl_password:
        description:
          - The user's password; required with V(PLAIN) and SCRAM.
        type: str
      ssl_cafile:
        description:
          - PEM file of the CAs that signed the server's certificate. Without it, those that the system trusts.
        type: path
      ssl_certfile:
        description:
          - PEM file of the client certificate and its chain, where the server requires one.
          - Java stores (JKS, PKCS12) are not read; C(keytool -importkeystore) and C(openssl pkcs12) make PEM of them.
        type: path
      ssl_keyfile:
        description:
          - PEM file of the client certificate's private key, when it is not in O(controller_client.ssl_certfile).
        type: path
      ssl_keypassword:
        description:
          - Password of the private key.
        type: str
      ssl_verify:
        description:
          - Whether to check the server's certificate. Secrets go to whoever answers when it is V(false).
        type: bool
        default: true
      ssl_check_hostname:
        description:
          - Whether the server's certificate must be for the host name that is connected to.
        type: bool
        default: true
  timeout:
    description:
      - Seconds that each probe of one server may take, name resolution, TLS and authentication included.
    type: float
    default: 5.0
"""
