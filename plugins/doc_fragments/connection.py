# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Documentation of the options in argument_specs.CONNECTION, except ZooKeeper's (zookeeper.py), and of admin_module."""

from __future__ import annotations


class ModuleDocFragment:
    DOCUMENTATION = r"""
options:
  bootstrap_servers:
    description:
      - Brokers of the initial connection, each as C(host:port) or C([IPv6 address]:port). The port defaults to 9092.
    type: list
    elements: str
    required: true
  client:
    description:
      - How to connect to the brokers at O(bootstrap_servers).
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
          - The SASL mechanism. Required with V(SASL_PLAINTEXT) and V(SASL_SSL).
          - V(GSSAPI) needs the system's library libgssapi_krb5.
        type: str
        choices: [PLAIN, SCRAM-SHA-256, SCRAM-SHA-512, GSSAPI, OAUTHBEARER]
      sasl_username:
        description:
          - The user. Required with V(PLAIN) and SCRAM.
        type: str
      sasl_password:
        description:
          - The user's password. Required with V(PLAIN) and SCRAM.
        type: str
      sasl_kerberos_service_name:
        description:
          - The service in the servers' principals, as C(sasl.kerberos.service.name). By default V(kafka).
        type: str
      sasl_kerberos_keytab:
        description:
          - File with the keys of O(client.sasl_kerberos_principal). By default, the tickets in the credential cache of
            the user, which C(kinit) fills.
        type: path
      sasl_kerberos_principal: &sasl_kerberos_principal
        description:
          - The tool's principal in the keytab.
        type: str
      sasl_oauthbearer_token_endpoint_url: &sasl_oauthbearer_token_endpoint_url
        description:
          - Where the tool gets an access token, by C(https) alone, as C(sasl.oauthbearer.token.endpoint.url).
        type: str
      sasl_oauthbearer_client_id: &sasl_oauthbearer_client_id
        description:
          - The client's id at the token endpoint.
        type: str
      sasl_oauthbearer_client_secret: &sasl_oauthbearer_client_secret
        description:
          - The client's secret at the token endpoint.
        type: str
      sasl_oauthbearer_scope: &sasl_oauthbearer_scope
        description:
          - The scope that is asked for.
        type: str
      sasl_oauthbearer_cafile: &sasl_oauthbearer_cafile
        description:
          - File of the CAs that signed the token endpoint's certificate. By default, the CAs that the system trusts.
        type: path
      sasl_oauthbearer_token_file: &sasl_oauthbearer_token_file
        description:
          - File with an access token, instead of a token endpoint. Another program renews it. The tool reads it for
            each connection.
        type: path
      ssl_cafile:
        description:
          - File of the CAs that signed the server's certificate, PEM or a trust store of Java's (JKS, PKCS12). By
            default, the CAs that the system trusts.
        type: path
      ssl_capassword:
        description:
          - Password of this trust store. A JKS store needs none.
        type: str
      ssl_certfile:
        description:
          - PEM file of the client certificate and its chain, if the server requires one, or a key store of Java's
            (JKS, PKCS12) with one private key.
        type: path
      ssl_keyfile:
        description:
          - PEM file of the client certificate's private key, if it is not in O(client.ssl_certfile).
        type: path
      ssl_keypassword:
        description:
          - Password of the private key. That of a store is the store's too.
        type: str
      ssl_verify:
        description:
          - Whether to check the server's certificate. With V(false), an impostor can receive the credentials.
        type: bool
        default: true
      ssl_check_hostname:
        description:
          - Whether the server's certificate must match the host name.
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
          - The SASL mechanism. Required with V(SASL_PLAINTEXT) and V(SASL_SSL).
          - V(GSSAPI) needs the system's library libgssapi_krb5.
        type: str
        choices: [PLAIN, SCRAM-SHA-256, SCRAM-SHA-512, GSSAPI, OAUTHBEARER]
      sasl_username:
        description:
          - The user. Required with V(PLAIN) and SCRAM.
        type: str
      sasl_password:
        description:
          - The user's password. Required with V(PLAIN) and SCRAM.
        type: str
      sasl_kerberos_service_name:
        description:
          - The service in the servers' principals, as C(sasl.kerberos.service.name). By default V(kafka).
        type: str
      sasl_kerberos_keytab:
        description:
          - File with the keys of O(controller_client.sasl_kerberos_principal). By default, the tickets in the
            credential cache of the user, which C(kinit) fills.
        type: path
      sasl_kerberos_principal: *sasl_kerberos_principal
      sasl_oauthbearer_token_endpoint_url: *sasl_oauthbearer_token_endpoint_url
      sasl_oauthbearer_client_id: *sasl_oauthbearer_client_id
      sasl_oauthbearer_client_secret: *sasl_oauthbearer_client_secret
      sasl_oauthbearer_scope: *sasl_oauthbearer_scope
      sasl_oauthbearer_cafile: *sasl_oauthbearer_cafile
      sasl_oauthbearer_token_file: *sasl_oauthbearer_token_file
      ssl_cafile:
        description:
          - File of the CAs that signed the server's certificate, PEM or a trust store of Java's (JKS, PKCS12). By
            default, the CAs that the system trusts.
        type: path
      ssl_capassword:
        description:
          - Password of this trust store. A JKS store needs none.
        type: str
      ssl_certfile:
        description:
          - PEM file of the client certificate and its chain, if the server requires one, or a key store of Java's
            (JKS, PKCS12) with one private key.
        type: path
      ssl_keyfile:
        description:
          - PEM file of the client certificate's private key, if it is not in O(controller_client.ssl_certfile).
        type: path
      ssl_keypassword:
        description:
          - Password of the private key. That of a store is the store's too.
        type: str
      ssl_verify:
        description:
          - Whether to check the server's certificate. With V(false), an impostor can receive the credentials.
        type: bool
        default: true
      ssl_check_hostname:
        description:
          - Whether the server's certificate must match the host name.
        type: bool
        default: true
  timeout:
    description:
      - Timeout in seconds of each probe of one server, including name resolution, TLS and authentication.
    type: float
    default: 5.0
"""

    CLUSTER = r"""
options:
  cluster_id:
    description: The cluster's id. Brokers of another cluster are refused.
    type: str
"""

    CONTROLLERS = r"""
options:
  controllers:
    description:
      - Addresses of the controllers, as C(host:port). Brokers from 3.9 on name them, so it is needed for older ones
        alone.
    type: list
    elements: str
    default: []
"""

    EXPECTED = r"""
options:
  expected:
    description:
      - The nodes that the cluster has. As long as one of them does not answer, no level rises. By default, the live
        nodes alone must support it, and Kafka requires it of every registered one.
    type: dict
    suboptions:
      broker:
        description: Ids of the brokers.
        type: list
        elements: int
        default: []
      controller:
        description: Ids of the controllers.
        type: list
        elements: int
        default: []
"""
