# Copyright: (c) 2026, Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Connection security for Kafka and ZooKeeper listeners: the one place that reads, checks and converts the options.

A module hands its option dicts `client`, `controller_client` and `zookeeper_client` to `Security.from_options` and
`ZkSecurity.from_options`. Files that options name are opened on the machine where the connection is made, and only
then, so a value can be built and checked anywhere.
"""

from __future__ import annotations

import ssl
from dataclasses import dataclass, field
from typing import Any, Dict, Mapping, Tuple

SECURITY_PROTOCOLS = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")
PASSWORD_MECHANISMS = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512")
"""Mechanisms that the collection's own client speaks."""
SASL_MECHANISMS = (*PASSWORD_MECHANISMS, "GSSAPI", "OAUTHBEARER")


class SecurityError(ValueError):
    """A connection option that is missing, contradicts another, or names an unusable file; says which option."""


@dataclass(frozen=True)
class Tls:
    """How a TLS connection is made: PEM files, and what is checked of the server.

    `option` and `prefix` serve messages only: the option dict this came from, and what its keys have before ours.
    """

    cafile: str | None = None
    certfile: str | None = None
    keyfile: str | None = None
    keypassword: str | None = field(default=None, repr=False)
    verify: bool = True
    check_hostname: bool = True
    option: str = field(default="client", repr=False, compare=False)
    prefix: str = field(default="ssl_", repr=False, compare=False)

    def context(self) -> ssl.SSLContext:
        """An SSLContext for a client, TLS 1.2 or newer. Raises SecurityError naming the option of an unusable file."""
        for name in ("cafile", "certfile", "keyfile"):
            self._require_pem(name)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        context.check_hostname = self.verify and self.check_hostname
        context.verify_mode = ssl.CERT_REQUIRED if self.verify else ssl.CERT_NONE
        if self.cafile:
            try:
                context.load_verify_locations(cafile=self.cafile)
            except ssl.SSLError as error:
                raise self._unusable("cafile", "holds no certificate that can be read") from error
        elif self.verify:
            context.load_default_certs(ssl.Purpose.SERVER_AUTH)
        if self.certfile:
            try:
                # without a callback OpenSSL would ask the terminal for the key's password
                context.load_cert_chain(self.certfile, self.keyfile, password=lambda: self.keypassword or "")
            except ssl.SSLError as error:
                reason = "certificate, key and the key's password do not belong together"
                raise self._unusable("certfile", reason) from error
        return context

    def _require_pem(self, name: str) -> None:
        path = getattr(self, name)
        if path is None:
            return
        try:
            with open(path, "rb") as file:
                content = file.read()
        except OSError as error:
            raise self._unusable(name, error.strerror or str(error)) from error
        if b"-----BEGIN " not in content:
            reason = "not a PEM file; Java and PKCS12 stores are made PEM by keytool -importkeystore and openssl pkcs12"
            raise self._unusable(name, reason)

    def _unusable(self, name: str, reason: str) -> SecurityError:
        return SecurityError(f"{self.option}.{self.prefix}{name}: {getattr(self, name)}: {reason}")


@dataclass(frozen=True)
class Security:
    """How to connect to one Kafka listener. Equal values make equal connections; repr shows no secret."""

    protocol: str = "PLAINTEXT"
    mechanism: str | None = None
    username: str | None = None
    password: str | None = field(default=None, repr=False)
    tls: Tls | None = None
    option: str = field(default="client", repr=False, compare=False)

    @classmethod
    def from_options(cls, options: Mapping[str, Any] | None, option: str = "client") -> Security:
        """Builds and checks a value from an option dict (keys: CLIENT_OPTIONS of argument_specs.py).

        `option` names the dict in messages. None or an empty dict is PLAINTEXT. Raises SecurityError.
        """
        given = _given(options, _CLIENT_KEYS, option)
        protocol = str(given.get("security_protocol", "PLAINTEXT")).upper()
        if protocol not in SECURITY_PROTOCOLS:
            raise SecurityError(f"{option}.security_protocol: {protocol!r} is none of {', '.join(SECURITY_PROTOCOLS)}")
        uses_tls, uses_sasl = protocol.endswith("SSL"), protocol.startswith("SASL_")
        stray = sorted(
            key
            for key in given
            if (key.startswith("sasl_") and not uses_sasl)
            or (key in ("ssl_cafile", "ssl_certfile", "ssl_keyfile", "ssl_keypassword") and not uses_tls)
        )
        if stray:
            raise SecurityError(f"{option}.{stray[0]} has no effect with security_protocol {protocol}")
        mechanism = None
        if uses_sasl:
            mechanism = str(given.get("sasl_mechanism", "")).upper()
            if mechanism not in SASL_MECHANISMS:
                shown = repr(mechanism) if mechanism else "missing"
                raise SecurityError(f"{option}.sasl_mechanism: {shown}; one of {', '.join(SASL_MECHANISMS)}")
            if mechanism in PASSWORD_MECHANISMS:
                for key in ("sasl_username", "sasl_password"):
                    if key not in given:
                        raise SecurityError(f"{option}.{key} is missing: sasl_mechanism {mechanism} needs it")
        tls = _tls(given, option, "ssl_") if uses_tls else None
        return cls(protocol, mechanism, given.get("sasl_username"), given.get("sasl_password"), tls, option)

    @property
    def sasl(self) -> bool:
        """Whether the listener authenticates by SASL."""
        return self.protocol.startswith("SASL_")

    @property
    def principal(self) -> str | None:
        """Whom the server sees (DefaultKafkaPrincipalBuilder); None where its own rules decide on that."""
        if self.sasl:
            return f"User:{self.username}" if self.mechanism in PASSWORD_MECHANISMS else None
        return None if self.tls and self.tls.certfile else "User:ANONYMOUS"

    def ssl_context(self) -> ssl.SSLContext | None:
        """The SSLContext, or None where the protocol has no TLS. Raises SecurityError."""
        return self.tls.context() if self.tls else None

    def require_own_client(self) -> None:
        """Raises SecurityError where the mechanism is one that the collection's own client does not speak."""
        if self.sasl and self.mechanism not in PASSWORD_MECHANISMS:
            raise SecurityError(
                f"{self.option}.sasl_mechanism: {self.mechanism} is not spoken by the probe that asks one broker or "
                f"controller directly; give it a listener and user with {', '.join(PASSWORD_MECHANISMS)}, or mutual TLS"
            )

    def librdkafka(self) -> Dict[str, Any]:
        """Settings for confluent-kafka (librdkafka's CONFIGURATION.md); holds secrets."""
        settings: Dict[str, Any] = {"security.protocol": self.protocol}
        if self.sasl:
            settings["sasl.mechanism"] = self.mechanism
            settings["sasl.username"] = self.username
            settings["sasl.password"] = self.password
        if self.tls:
            settings["ssl.ca.location"] = self.tls.cafile
            settings["ssl.certificate.location"] = self.tls.certfile
            # librdkafka, unlike OpenSSL's own loader, does not look for the key in the certificate's file
            settings["ssl.key.location"] = self.tls.keyfile or self.tls.certfile
            settings["ssl.key.password"] = self.tls.keypassword
            settings["enable.ssl.certificate.verification"] = self.tls.verify
            checked = self.tls.verify and self.tls.check_hostname
            settings["ssl.endpoint.identification.algorithm"] = "https" if checked else "none"
        return {key: value for key, value in settings.items() if value is not None}

    def kafka_python(self) -> Dict[str, Any]:
        """Keyword arguments for kafka-python's clients; holds secrets. Raises SecurityError as ssl_context does."""
        settings: Dict[str, Any] = {"security_protocol": self.protocol}
        if self.tls:
            settings["ssl_context"] = self.ssl_context()
            settings["ssl_check_hostname"] = self.tls.verify and self.tls.check_hostname
        if self.sasl:
            settings["sasl_mechanism"] = self.mechanism
            if self.mechanism in PASSWORD_MECHANISMS:
                settings["sasl_plain_username"] = self.username
                settings["sasl_plain_password"] = self.password
        return settings


@dataclass(frozen=True)
class ZkSecurity:
    """How to connect to ZooKeeper; `digest` is the option `auth`, `user:password`. repr shows no secret."""

    tls: Tls | None = None
    digest: str | None = field(default=None, repr=False)
    sasl_mechanism: str | None = None
    sasl_username: str | None = None
    sasl_password: str | None = field(default=None, repr=False)
    option: str = field(default="zookeeper_client", repr=False, compare=False)

    @classmethod
    def from_options(cls, options: Mapping[str, Any] | None, option: str = "zookeeper_client") -> ZkSecurity:
        """Builds and checks a value from an option dict (keys: ZOOKEEPER_CLIENT_OPTIONS of argument_specs.py).

        None or an empty dict is a plain connection as nobody. Raises SecurityError.
        """
        given = _given(options, _ZOOKEEPER_KEYS, option)
        use_tls = bool(given.get("use_tls", False))
        stray = sorted(key for key in ("cafile", "certfile", "keyfile", "keypassword") if key in given and not use_tls)
        if stray:
            raise SecurityError(f"{option}.{stray[0]} has no effect without {option}.use_tls")
        digest = given.get("auth")
        if digest is not None and not all(digest.partition(":")):
            raise SecurityError(f"{option}.auth is not of the form user:password")
        mechanism = given.get("sasl_mechanism")
        if mechanism is not None:
            mechanism = str(mechanism).upper()
            if mechanism not in ("DIGEST-MD5", "GSSAPI"):
                raise SecurityError(f"{option}.sasl_mechanism: {mechanism!r} is none of DIGEST-MD5, GSSAPI")
            if mechanism == "DIGEST-MD5":
                for key in ("sasl_username", "sasl_password"):
                    if key not in given:
                        raise SecurityError(f"{option}.{key} is missing: sasl_mechanism {mechanism} needs it")
        elif "sasl_username" in given or "sasl_password" in given:
            raise SecurityError(f"{option}.sasl_mechanism is missing beside {option}.sasl_username or sasl_password")
        tls = _tls(given, option, "") if use_tls else None
        return cls(tls, digest, mechanism, given.get("sasl_username"), given.get("sasl_password"), option)

    def ssl_context(self) -> ssl.SSLContext | None:
        """The SSLContext, or None for a plain connection. Raises SecurityError."""
        return self.tls.context() if self.tls else None

    def require_own_client(self) -> None:
        """Raises SecurityError where SASL is asked for, which the collection's own client does not speak."""
        if self.sasl_mechanism:
            raise SecurityError(
                f"{self.option}.sasl_mechanism: {self.sasl_mechanism} is not spoken by the reader on the brokers; it "
                "reads the world-readable znodes without it, so leave it out there"
            )

    def kazoo(self) -> Dict[str, Any]:
        """Keyword arguments for kazoo.client.KazooClient, the hosts aside; holds secrets."""
        settings: Dict[str, Any] = {}
        if self.tls:
            settings.update(
                use_ssl=True,
                ca=self.tls.cafile,
                certfile=self.tls.certfile,
                keyfile=self.tls.keyfile,
                keyfile_password=self.tls.keypassword,
                verify_certs=self.tls.verify,
                check_hostname=self.tls.verify and self.tls.check_hostname,
            )
        if self.digest:
            settings["auth_data"] = [("digest", self.digest)]
        if self.sasl_mechanism:
            settings["sasl_options"] = {
                key: value
                for key, value in (
                    ("mechanism", self.sasl_mechanism),
                    ("username", self.sasl_username),
                    ("password", self.sasl_password),
                )
                if value is not None
            }
        return settings


_TLS_KEYS = ("cafile", "certfile", "keyfile", "keypassword", "verify", "check_hostname")
_SASL_KEYS = ("sasl_mechanism", "sasl_username", "sasl_password")
_CLIENT_KEYS = ("security_protocol", *_SASL_KEYS, *("ssl_" + key for key in _TLS_KEYS))
_ZOOKEEPER_KEYS = ("use_tls", "auth", *_SASL_KEYS, *_TLS_KEYS)


def _given(options: Mapping[str, Any] | None, known: Tuple[str, ...], option: str) -> Dict[str, Any]:
    """The options that are set: Ansible hands a suboption that the user left out as None."""
    given = {key: value for key, value in (options or {}).items() if value is not None and value != ""}
    unknown = sorted(set(given) - set(known))
    if unknown:
        raise SecurityError(f"{option}.{unknown[0]} is not an option; there are {', '.join(known)}")
    return given


def _tls(given: Mapping[str, Any], option: str, prefix: str) -> Tls:
    if prefix + "certfile" not in given:
        for key in ("keyfile", "keypassword"):
            if prefix + key in given:
                raise SecurityError(f"{option}.{prefix}certfile is missing beside {option}.{prefix}{key}")
    values = {key: given[prefix + key] for key in _TLS_KEYS if prefix + key in given}
    return Tls(option=option, prefix=prefix, **values)
