# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Documentation of the ZooKeeper options of argument_specs.CONNECTION."""

from __future__ import annotations


class ModuleDocFragment:
    DOCUMENTATION = r"""
options:
  zookeeper_client:
    description:
      - How to connect to ZooKeeper.
    type: dict
    suboptions:
      use_tls:
        description:
          - Whether to use TLS. The port must be ZooKeeper's C(secureClientPort).
        type: bool
        default: false
      cafile:
        description:
          - File of the CAs that signed the server's certificate, PEM or a trust store of Java's (JKS, PKCS12). By
            default, the CAs that the system trusts.
        type: path
      capassword:
        description:
          - Password of this trust store. A JKS store needs none.
        type: str
      certfile:
        description:
          - PEM file of the client certificate and its chain, if the server requires one, or a key store of Java's
            (JKS, PKCS12) with one private key.
        type: path
      keyfile:
        description:
          - PEM file of the client certificate's private key, if it is not in O(zookeeper_client.certfile).
        type: path
      keypassword:
        description:
          - Password of the private key. That of a store is the store's too.
        type: str
      verify:
        description:
          - Whether to check the server's certificate. With V(false), an impostor can receive the credentials.
        type: bool
        default: true
      check_hostname:
        description:
          - Whether the server's certificate must match the host name.
        type: bool
        default: true
      auth:
        description:
          - Credentials of ZooKeeper's digest scheme, as C(user:password).
        type: str
      sasl_mechanism:
        description:
          - The SASL mechanism, if ZooKeeper requires it or the znodes' ACLs name SASL users.
          - The reader on the brokers does not support SASL. It reads C(/controller) and C(/migration), which are
            world-readable under Kafka's own ACLs.
        type: str
        choices: [DIGEST-MD5, GSSAPI]
      sasl_username:
        description:
          - The user. Required with V(DIGEST-MD5).
        type: str
      sasl_password:
        description:
          - The user's password. Required with V(DIGEST-MD5).
        type: str
      sasl_kerberos_service_name:
        description:
          - The service in the servers' principals, as C(sasl.kerberos.service.name). By default V(zookeeper).
        type: str
      sasl_kerberos_keytab:
        description:
          - File with the keys of O(zookeeper_client.sasl_kerberos_principal). By default, the tickets in the
            credential cache of the user, which C(kinit) fills.
        type: path
      sasl_kerberos_principal:
        description:
          - The tool's principal in the keytab.
        type: str
"""

    CONNECT = r"""
options:
  zookeeper_connect:
    description:
      - The brokers' C(zookeeper.connect), as C(host:port,host:port/chroot) with the chroot once at the end.
      - Not needed once the migration is finalized.
    type: str
"""
