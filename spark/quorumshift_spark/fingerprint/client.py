# Copyright: (c) 2026, Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Kafka's Java clients inside Spark: their settings, without a secret where Spark would show it.

Spark redacts options of a source by their name and does not know sasl.jaas.config. So the settings stand in a file
(0600) that Kafka's own FileConfigProvider reads (KIP-297, KIP-421), and Spark is handed references to it: what a plan,
the event log or the UI can show is the file's path.
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
    """Options that Java clients cannot be given; says which, and what to do."""


def java_settings(security: Security) -> Dict[str, str]:
    """The settings of a Java client for these options; holds secrets. Raises ClientError, OSError."""
    settings = {"security.protocol": security.protocol}
    if security.sasl:
        if security.mechanism not in PASSWORD_MECHANISMS:
            raise ClientError(
                f"{security.option}.sasl_mechanism: {security.mechanism} is not handed to Spark; give the fingerprint "
                f"a listener and user with {', '.join(PASSWORD_MECHANISMS)}, or mutual TLS"
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
                f"{security.option}.ssl_verify: Kafka's Java clients always check the server's certificate; give "
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
    """Write the settings to `path` (0600) and return the options with which Spark's Kafka source finds them there.

    On a cluster of several hosts the file must stand at this path on each of them.
    """
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "w", encoding="latin-1") as file:
        os.fchmod(descriptor, 0o600)
        file.writelines(f"{key}={_escaped(value)}\n" for key, value in settings.items())
    return {
        "kafka.config.providers": "file",
        "kafka.config.providers.file.class": _PROVIDER,
        # settings that Spark reads itself must be plain: it derives its delegation-token handling from the protocol
        "kafka.security.protocol": settings["security.protocol"],
        **{f"kafka.{key}": f"${{file:{path}:{key}}}" for key in settings if key != "security.protocol"},
    }


def _quoted(value: str | None) -> str:
    """A value of a JAAS option (JaasConfig reads it with a StreamTokenizer: backslash escapes)."""
    return '"' + (value or "").replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n") + '"'


def _escaped(value: str) -> str:
    """A value of a Java properties file (java.util.Properties.load)."""
    messages = []
    for char in value:
        if char in "\\":
            messages.append("\\\\")
        elif char == "\n":
            messages.append("\\n")
        elif char == "\r":
            messages.append("\\r")
        elif char == " " and not messages:
            messages.append("\\ ")
        elif " " <= char <= "~":
            messages.append(char)
        else:
            units = char.encode("utf-16-be")
            messages += [f"\\u{units[at]:02x}{units[at + 1]:02x}" for at in range(0, len(units), 2)]
    return "".join(messages)


def _text(path: str) -> str:
    with open(path, encoding="utf-8") as file:
        return file.read()


def _certificates(pem: str) -> str:
    """The certificates of a PEM file, without a key that stands beside them."""
    begin, end = "-----BEGIN CERTIFICATE-----", "-----END CERTIFICATE-----"
    return "\n".join(begin + part.split(end)[0] + end for part in pem.split(begin)[1:])


def _pkcs8(pem: str, password: str | None, security: Security) -> str:
    """The private key as PKCS #8, the one form that Kafka's PEM stores take; encrypted if it was."""
    begin = pem.rfind("-----BEGIN ", 0, max(pem.find("PRIVATE KEY-----"), 0))
    if begin < 0:
        raise ClientError(f"{security.option}.ssl_keyfile: no private key stands there")
    secret = password.encode() if password else None
    encrypted = "ENCRYPTED" in pem[begin:]
    try:
        key = serialization.load_pem_private_key(pem[begin:].encode(), secret if encrypted else None)
    except (TypeError, ValueError) as error:
        raise ClientError(f"{security.option}.ssl_keyfile: the key cannot be read with ssl_keypassword") from error
    protection = serialization.BestAvailableEncryption(secret) if secret else serialization.NoEncryption()
    return key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, protection).decode()
