# Copyright: (c) 2026, Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Settings for Kafka's Java clients inside Spark, without secrets in Spark's options.

Spark redacts options of a source by name, and does not redact sasl.jaas.config. So the settings are in a file (0600)
that Kafka's FileConfigProvider reads (KIP-297, KIP-421), and Spark gets references to it. Plans, the event log and the
UI can show only the file's path.
"""

from __future__ import annotations

import os
from typing import Dict

from ansible_collections.quorumshift.kafka.plugins.module_utils.security import PASSWORD_MECHANISMS, Security
from cryptography.hazmat.primitives import serialization

_LOGIN_MODULES = {
    "PLAIN": "org.apache.kafka.common.security.plain.PlainLoginModule",
    "SCRAM-SHA-256": "org.apache.kafka.common.security.scram.ScramLoginModule",
    "SCRAM-SHA-512": "org.apache.kafka.common.security.scram.ScramLoginModule",
}
_PROVIDER = "org.apache.kafka.common.config.provider.FileConfigProvider"


class ClientError(ValueError):
    """Connection options that Kafka's Java clients do not support. The message names them and says what to do."""


def java_settings(security: Security) -> Dict[str, str]:
    """Return the settings of a Java client for these options, with secrets. Raises ClientError, OSError."""
    settings = {"security.protocol": security.protocol}
    if security.sasl:
        if security.mechanism not in PASSWORD_MECHANISMS:
            raise ClientError(
                f"{security.option}.sasl_mechanism: {security.mechanism} is not supported with Spark. Use a listener "
                f"and user with {', '.join(PASSWORD_MECHANISMS)}, or mutual TLS"
            )
        settings["sasl.mechanism"] = security.mechanism
        settings["sasl.jaas.config"] = (
            f"{_LOGIN_MODULES[security.mechanism]} required username={_quoted(security.username)} "
            f"password={_quoted(security.password)};"
        )
    tls = security.tls
    if tls is not None:
        if not tls.verify:
            raise ClientError(
                f"{security.option}.ssl_verify: Kafka's Java clients always verify the server's certificate. Set "
                f"{security.option}.ssl_cafile"
            )
        if not tls.check_hostname:
            settings["ssl.endpoint.identification.algorithm"] = ""
        if tls.cafile:
            settings["ssl.truststore.type"] = "PEM"
            settings["ssl.truststore.certificates"] = _text(tls.cafile)
        if tls.certfile:
            settings["ssl.keystore.type"] = "PEM"
            settings["ssl.keystore.certificate.chain"] = _certificates(_text(tls.certfile))
            settings["ssl.keystore.key"] = _pkcs8(_text(tls.keyfile or tls.certfile), tls.keypassword, security)
            if tls.keypassword:
                settings["ssl.key.password"] = tls.keypassword
    return settings


def source_options(settings: Dict[str, str], path: str) -> Dict[str, str]:
    """Write the settings to `path` (0600) and return the options of Spark's Kafka source that refer to them.

    With executors on several hosts, each host must have the file at this path.
    """
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "w", encoding="latin-1") as file:
        os.fchmod(descriptor, 0o600)
        file.writelines(f"{key}={_escaped(value)}\n" for key, value in settings.items())
    return {
        "kafka.config.providers": "file",
        "kafka.config.providers.file.class": _PROVIDER,
        # Spark itself reads the protocol, to decide about delegation tokens: it must not be a reference
        "kafka.security.protocol": settings["security.protocol"],
        **{f"kafka.{key}": f"${{file:{path}:{key}}}" for key in settings if key != "security.protocol"},
    }


def _quoted(value: str | None) -> str:
    """Return a value for a JAAS option (JaasConfig reads it with a StreamTokenizer: backslash escapes)."""
    return '"' + (value or "").replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n") + '"'


def _escaped(value: str) -> str:
    """Return a value for a Java properties file (java.util.Properties.load)."""
    escaped = []
    for char in value:
        if char in "\\":
            escaped.append("\\\\")
        elif char == "\n":
            escaped.append("\\n")
        elif char == "\r":
            escaped.append("\\r")
        elif char == " " and not escaped:
            escaped.append("\\ ")
        elif " " <= char <= "~":
            escaped.append(char)
        else:
            units = char.encode("utf-16-be")
            escaped += [f"\\u{units[at]:02x}{units[at + 1]:02x}" for at in range(0, len(units), 2)]
    return "".join(escaped)


def _text(path: str) -> str:
    with open(path, encoding="utf-8") as file:
        return file.read()


def _certificates(pem: str) -> str:
    """Return the certificates of a PEM file, without its private key."""
    begin, end = "-----BEGIN CERTIFICATE-----", "-----END CERTIFICATE-----"
    return "\n".join(begin + part.split(end)[0] + end for part in pem.split(begin)[1:])


def _pkcs8(pem: str, password: str | None, security: Security) -> str:
    """Return the private key as PKCS #8, the only format of Kafka's PEM stores; encrypted where `password` is set."""
    begin = pem.rfind("-----BEGIN ", 0, max(pem.find("PRIVATE KEY-----"), 0))
    if begin < 0:
        raise ClientError(f"{security.option}.ssl_keyfile: the file holds no private key")
    secret = password.encode() if password else None
    encrypted = "ENCRYPTED" in pem[begin:]
    try:
        key = serialization.load_pem_private_key(pem[begin:].encode(), secret if encrypted else None)
    except (TypeError, ValueError) as error:
        raise ClientError(f"{security.option}.ssl_keyfile: the key cannot be read with ssl_keypassword") from error
    protection = serialization.BestAvailableEncryption(secret) if secret else serialization.NoEncryption()
    return key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, protection).decode()
