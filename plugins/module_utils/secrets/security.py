# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Connection security of Kafka and ZooKeeper listeners: read, check and convert the options.

A module passes its options `client`, `controller_client` and `zookeeper_client` to `Security.from_options` and
`ZkSecurity.from_options`. Files that options name are opened only when a connection is made, on that machine, so a
value can be built and checked anywhere.
"""

from __future__ import annotations

import contextlib
import os
import ssl
import urllib.parse
from dataclasses import dataclass, field, replace
from typing import Any, Dict, Iterator, Mapping, Tuple

from ansible_collections.quorumshift.kafka.plugins.module_utils import message_ids
from ansible_collections.quorumshift.kafka.plugins.module_utils.secrets import key_stores

SECURITY_PROTOCOLS = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")
PASSWORD_MECHANISMS = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512")
SASL_MECHANISMS = (*PASSWORD_MECHANISMS, "GSSAPI", "OAUTHBEARER")
CONTROLLER_MECHANISMS = ("PLAIN", "GSSAPI", "OAUTHBEARER")
"""Mechanisms of a controllers' listener: SCRAM credentials are in the metadata behind it."""


class SecurityError(ValueError):
    """A connection option is missing, contradicts another, or names an unusable file; the text names the option."""


@dataclass(frozen=True)
class Tls:
    """How to make a TLS connection: files, and what to check of the server.

    A file is PEM, or a store of Java's (JKS, PKCS12): `cafile` with `capassword`, `certfile` with `keypassword`.
    `option`, `prefix` and `names` are for messages only: the option dict, the prefix of its keys, and keys that are not
    named so. `content`: PEM of the files by option, for a machine that does not have them, or for clients that read PEM
    alone.
    """

    cafile: str | None = None
    certfile: str | None = None
    keyfile: str | None = None
    keypassword: str | None = field(default=None, repr=False)
    verify: bool = True
    check_hostname: bool = True
    option: str = field(default="client", repr=False, compare=False)
    prefix: str = field(default="ssl_", repr=False, compare=False)
    content: Mapping[str, bytes] | None = field(default=None, repr=False, compare=False)
    capassword: str | None = field(default=None, repr=False)
    names: Mapping[str, str] | None = field(default=None, repr=False, compare=False)

    def with_content(self) -> Tls:
        """Return this with the content of its files. Raises SecurityError, naming the option of a bad file."""
        if self.content is not None:
            return self
        read = {name: self._read_pem(name) for name in _FILES}
        return replace(self, content={name: text for name, text in read.items() if text is not None})

    def as_pem(self) -> Tls:
        """Return this with the content of its files if any is one of Java's stores. Raises SecurityError, naming it."""
        return self.with_content() if any(map(self._is_store, _FILES)) else self

    @contextlib.contextmanager
    def files(self) -> Iterator[Tls]:
        """Yield this with paths of this process. Its content is in memory, so that a killed process leaves no key."""
        with contextlib.ExitStack() as stack:
            paths: Dict[str, Any] = {}
            for name, text in (self.content or {}).items():
                file = stack.enter_context(open(os.memfd_create(f"quorumshift {name}"), "wb"))
                file.write(text)
                file.flush()
                paths[name] = f"/proc/self/fd/{file.fileno()}"
            yield replace(self, content=None, **paths)

    def lasting_files(self) -> Tls:
        """Return the same for clients that open the files again whenever they connect: they last as the process."""
        if self.content is None:
            return self
        key = tuple(sorted(self.content.items()))
        if key not in _LASTING:
            stack = contextlib.ExitStack()
            _LASTING[key] = (stack, stack.enter_context(self.files()))
        there = _LASTING[key][1]
        return replace(self, content=None, **{name: getattr(there, name) for name in self.content})

    def context(self) -> ssl.SSLContext:
        """Return a client's SSLContext for TLS 1.2 or newer. Raises SecurityError, naming the option of a bad file."""
        # Where all are PEM, OpenSSL reads them itself: a control node need not be Linux, whose memory files() takes.
        if self.content is None:
            for name in _FILES:
                self._read_pem(name)
        pem = self.as_pem()
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        context.check_hostname = self.verify and self.check_hostname
        context.verify_mode = ssl.CERT_REQUIRED if self.verify else ssl.CERT_NONE
        with pem.files() as here:
            if here.cafile:
                try:
                    context.load_verify_locations(cafile=here.cafile)
                except ssl.SSLError as error:
                    raise self._unusable("cafile", "contains no readable certificate (QS-CONNECT-007)") from error
            elif self.verify:
                context.load_default_certs(ssl.Purpose.SERVER_AUTH)
            if here.certfile:
                try:
                    # Without a callback OpenSSL would prompt for the key's password on the terminal.
                    context.load_cert_chain(here.certfile, here.keyfile, password=lambda: self.keypassword or "")
                except ssl.SSLError as error:
                    reason = "certificate, key and key password do not match"
                    raise self._unusable("certfile", reason) from error
        return context

    def _is_store(self, name: str) -> bool:
        try:
            with open(getattr(self, name) or os.devnull, "rb") as file:
                return self.content is None and bool(key_stores.kind(file.read()))
        except OSError:
            return False  # what opens it says why

    def _read_pem(self, name: str) -> bytes | None:
        path = getattr(self, name)
        if path is None:
            return None
        try:
            with open(path, "rb") as file:
                data = file.read()
        except OSError as error:
            raise self._unusable(name, error.strerror or str(error)) from error
        return data if b"-----BEGIN " in data else self._read_store(name, data)

    def _read_store(self, name: str, data: bytes) -> bytes:
        kind = key_stores.kind(data)
        if not kind:
            raise self._unusable(name, "neither a PEM file nor a JKS or PKCS12 store (QS-CONNECT-007)")
        if name == "keyfile":
            reason = f"a {kind} store. Name it as {self._key('certfile')}: it has key and certificate"
            raise self._unusable(name, f"{reason} (QS-CONNECT-007)")
        try:
            store = key_stores.read(data, self.capassword if name == "cafile" else self.keypassword)
        except key_stores.StoreError as error:
            password = self._key("capassword" if name == "cafile" else "keypassword")
            reason = f"{message_ids.strip_ids(str(error))}. Its password is in {password} (QS-CONNECT-007)"
            raise self._unusable(name, reason) from error
        if name == "cafile":
            if not store.trusted:
                raise self._unusable(name, f"the {kind} store has no trusted certificate (QS-CONNECT-007)")
            return b"".join(store.trusted)
        if self.keyfile:
            reason = f"a {kind} store has the key too: remove {self._key('keyfile')}"
            raise self._unusable(name, f"{reason} (QS-CONNECT-007)")
        if not store.key:
            raise self._unusable(name, f"the {kind} store has no private key that can be read (QS-CONNECT-007)")
        return store.key + b"".join(store.chain)

    def _unusable(self, name: str, reason: str) -> SecurityError:
        return SecurityError(f"{self._key(name)}: {getattr(self, name)}: {reason}")

    def _key(self, name: str) -> str:
        return (self.names or {}).get(name) or f"{self.option}.{self.prefix}{name}"


_LASTING: Dict[Tuple[Tuple[str, bytes], ...], Tuple[contextlib.ExitStack, Tls]] = {}


@dataclass(frozen=True)
class OauthLogin:
    """Where the access token of OAUTHBEARER is from: an endpoint with a client's id and secret, or a file."""

    token_endpoint_url: str | None = None
    client_id: str | None = None
    client_secret: str | None = field(default=None, repr=False)
    scope: str | None = None
    cafile: str | None = None
    token_file: str | None = None
    option: str = field(default="client", repr=False, compare=False)


@dataclass(frozen=True)
class KerberosLogin:
    """Where the ticket of GSSAPI is from: a keytab with its principal, or by default the credential cache."""

    service_name: str = "kafka"
    keytab: str | None = None
    principal: str | None = None
    option: str = field(default="client", repr=False, compare=False)


@dataclass(frozen=True)
class Security:
    """How to connect to one Kafka listener. Equal values make equal connections; repr shows no secret."""

    protocol: str = "PLAINTEXT"
    mechanism: str | None = None
    username: str | None = None
    password: str | None = field(default=None, repr=False)
    tls: Tls | None = None
    option: str = field(default="client", repr=False, compare=False)
    oauth: OauthLogin | None = None
    kerberos: KerberosLogin | None = None

    @classmethod
    def from_options(cls, options: Mapping[str, Any] | None, option: str = "client") -> Security:
        """Build and check a value from an option dict (keys: argument_specs.CLIENT_OPTIONS).

        `option` names the dict in messages. None or an empty dict is PLAINTEXT. Raises SecurityError.
        """
        given = _options_set(options, _CLIENT_KEYS, option)
        protocol = str(given.get("security_protocol", "PLAINTEXT")).upper()
        if protocol not in SECURITY_PROTOCOLS:
            protocols = ", ".join(SECURITY_PROTOCOLS)
            raise SecurityError(f"{option}.security_protocol: {protocol!r} is not one of {protocols} (QS-CONNECT-007)")
        uses_tls, uses_sasl = protocol.endswith("SSL"), protocol.startswith("SASL_")
        stray = sorted(
            key
            for key in given
            if (key.startswith("sasl_") and not uses_sasl) or (key in _TLS_FILE_KEYS and not uses_tls)
        )
        if stray:
            raise SecurityError(f"{option}.{stray[0]} has no effect with security_protocol {protocol} (QS-CONNECT-007)")
        mechanism = oauth = kerberos = None
        if uses_sasl:
            mechanism = str(given.get("sasl_mechanism", "")).upper()
            if mechanism not in SASL_MECHANISMS:
                shown = repr(mechanism) if mechanism else "missing"
                raise SecurityError(
                    f"{option}.sasl_mechanism: {shown}; one of {', '.join(SASL_MECHANISMS)} (QS-CONNECT-007)"
                )
            if mechanism in PASSWORD_MECHANISMS:
                for key in ("sasl_username", "sasl_password"):
                    if key not in given:
                        raise SecurityError(
                            f"{option}.{key} is missing: sasl_mechanism {mechanism} needs it (QS-CONNECT-007)"
                        )
            _require_own_keys(given, mechanism, option)
            oauth = _oauth(given, option) if mechanism == "OAUTHBEARER" else None
            kerberos = _kerberos(given, option, "kafka") if mechanism == "GSSAPI" else None
        tls = _tls(given, option, "ssl_") if uses_tls else None
        user = given.get("sasl_username"), given.get("sasl_password")
        return cls(protocol, mechanism, *user, tls, option, oauth, kerberos)

    @property
    def sasl(self) -> bool:
        """Whether the listener authenticates with SASL."""
        return self.protocol.startswith("SASL_")

    @property
    def principal(self) -> str | None:
        """The principal that the server sees (DefaultKafkaPrincipalBuilder), None if the server's rules decide."""
        if self.sasl:
            return f"User:{self.username}" if self.mechanism in PASSWORD_MECHANISMS else None
        return None if self.tls and self.tls.certfile else "User:ANONYMOUS"

    def with_content(self) -> Security:
        """Return this with the content of its files, for other machines. Raises SecurityError."""
        return replace(self, tls=self.tls.with_content()) if self.tls else self

    def ssl_context(self) -> ssl.SSLContext | None:
        """Return the SSLContext, None if the protocol has no TLS. Raises SecurityError."""
        return self.tls.context() if self.tls else None

    def librdkafka(self) -> Dict[str, Any]:
        """Return settings for confluent-kafka (librdkafka's CONFIGURATION.md), secrets included.

        Without the token of OAUTHBEARER, for which wire.librdkafka has a function. Raises SecurityError.
        """
        settings: Dict[str, Any] = {"security.protocol": self.protocol}
        if self.sasl:
            settings["sasl.mechanism"] = self.mechanism
            settings["sasl.username"] = self.username
            settings["sasl.password"] = self.password
        if self.tls:
            pem = self.tls.as_pem().lasting_files()
            settings["ssl.ca.location"] = pem.cafile
            settings["ssl.certificate.location"] = pem.certfile
            # Unlike OpenSSL, librdkafka does not read the key from the certificate's file.
            settings["ssl.key.location"] = pem.keyfile or pem.certfile
            settings["ssl.key.password"] = pem.keypassword
            settings["enable.ssl.certificate.verification"] = self.tls.verify
            checked = self.tls.verify and self.tls.check_hostname
            settings["ssl.endpoint.identification.algorithm"] = "https" if checked else "none"
        return {key: value for key, value in settings.items() if value is not None}

    def kafka_python(self) -> Dict[str, Any]:
        """Return keyword arguments for kafka-python's clients, secrets included. Raises SecurityError."""
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
    kerberos: KerberosLogin | None = None

    @classmethod
    def from_options(cls, options: Mapping[str, Any] | None, option: str = "zookeeper_client") -> ZkSecurity:
        """Build and check a value from an option dict (keys: argument_specs.ZOOKEEPER_CLIENT_OPTIONS).

        None or an empty dict is unauthenticated plaintext. Raises SecurityError.
        """
        given = _options_set(options, _ZOOKEEPER_KEYS, option)
        use_tls = bool(given.get("use_tls", False))
        stray = sorted(key for key in given if f"ssl_{key}" in _TLS_FILE_KEYS and not use_tls)
        if stray:
            raise SecurityError(f"{option}.{stray[0]} has no effect without {option}.use_tls (QS-CONNECT-007)")
        digest = given.get("auth")
        if digest is not None and not all(digest.partition(":")):
            raise SecurityError(f"{option}.auth must have the form user:password (QS-CONNECT-007)")
        mechanism = given.get("sasl_mechanism")
        if mechanism is not None:
            mechanism = str(mechanism).upper()
            if mechanism not in ("DIGEST-MD5", "GSSAPI"):
                raise SecurityError(
                    f"{option}.sasl_mechanism: {mechanism!r} is not one of DIGEST-MD5, GSSAPI (QS-CONNECT-007)"
                )
            if mechanism == "DIGEST-MD5":
                for key in ("sasl_username", "sasl_password"):
                    if key not in given:
                        raise SecurityError(
                            f"{option}.{key} is missing: sasl_mechanism {mechanism} needs it (QS-CONNECT-007)"
                        )
            _require_own_keys(given, mechanism, option)
        elif "sasl_username" in given or "sasl_password" in given:
            raise SecurityError(
                f"{option}.sasl_mechanism is missing: {option}.sasl_username or sasl_password needs it (QS-CONNECT-007)"
            )
        else:
            _require_own_keys(given, "none", option)
        kerberos = _kerberos(given, option, "zookeeper") if mechanism == "GSSAPI" else None
        tls = _tls(given, option, "") if use_tls else None
        user = given.get("sasl_username"), given.get("sasl_password")
        return cls(tls, digest, mechanism, *user, option, kerberos)

    def with_content(self) -> ZkSecurity:
        """Return this with the content of its files, for other machines. Raises SecurityError."""
        return replace(self, tls=self.tls.with_content()) if self.tls else self

    @contextlib.contextmanager
    def files(self) -> Iterator[ZkSecurity]:
        """Yield this with paths of this process (Tls.files)."""
        if self.tls is None:
            yield self
            return
        with self.tls.files() as tls:
            yield replace(self, tls=tls)

    def ssl_context(self) -> ssl.SSLContext | None:
        """Return the SSLContext, None for plaintext. Raises SecurityError."""
        return self.tls.context() if self.tls else None

    def require_own_client(self) -> None:
        """Raise SecurityError if SASL is set, which the collection's own client does not support."""
        if self.sasl_mechanism:
            raise SecurityError(
                f"{self.option}.sasl_mechanism: the reader on the brokers does not support {self.sasl_mechanism}. Omit "
                "it there: the reader needs only world-readable znodes (QS-CONNECT-007)"
            )

    def kazoo(self) -> Dict[str, Any]:
        """Return keyword arguments for kazoo.client.KazooClient except the hosts, secrets included.

        Raises SecurityError.
        """
        settings: Dict[str, Any] = {}
        if self.tls:
            pem = self.tls.as_pem().lasting_files()
            settings.update(
                use_ssl=True,
                ca=pem.cafile,
                certfile=pem.certfile,
                # kazoo shows no certificate without a file of its key, which may be the same.
                keyfile=pem.keyfile or pem.certfile,
                keyfile_password=pem.keypassword,
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
                    ("service", self.kerberos.service_name if self.kerberos else None),
                    ("kerberos", self.kerberos),
                )
                if value is not None
            }
        return settings


_FILES = ("cafile", "certfile", "keyfile")
_TLS_KEYS = ("cafile", "capassword", "certfile", "keyfile", "keypassword", "verify", "check_hostname")
_TLS_FILE_KEYS = tuple(f"ssl_{name}" for name in _TLS_KEYS[:5])
_KERBEROS_KEYS = ("sasl_kerberos_service_name", "sasl_kerberos_keytab", "sasl_kerberos_principal")
_OAUTH_KEYS = tuple(
    f"sasl_oauthbearer_{name}"
    for name in ("token_endpoint_url", "client_id", "client_secret", "scope", "cafile", "token_file")
)
_SASL_KEYS = ("sasl_mechanism", "sasl_username", "sasl_password", *_KERBEROS_KEYS)
_OF_MECHANISM = {
    **dict.fromkeys(_KERBEROS_KEYS, ("GSSAPI",)),
    **dict.fromkeys(_OAUTH_KEYS, ("OAUTHBEARER",)),
    **dict.fromkeys(("sasl_username", "sasl_password"), (*PASSWORD_MECHANISMS, "DIGEST-MD5")),
}
_CLIENT_KEYS = ("security_protocol", *_SASL_KEYS, *_OAUTH_KEYS, *("ssl_" + key for key in _TLS_KEYS))
_ZOOKEEPER_KEYS = ("use_tls", "auth", *_SASL_KEYS, *_TLS_KEYS)


def _options_set(options: Mapping[str, Any] | None, known: Tuple[str, ...], option: str) -> Dict[str, Any]:
    """Return the options that are set: Ansible passes an omitted suboption as None."""
    given = {key: value for key, value in (options or {}).items() if value is not None and value != ""}
    unknown = sorted(set(given) - set(known))
    if unknown:
        raise SecurityError(f"{option}.{unknown[0]} is not an option. Options: {', '.join(known)} (QS-CONNECT-007)")
    return given


def _require_own_keys(given: Mapping[str, Any], mechanism: str, option: str) -> None:
    """Raise SecurityError for an option of another SASL mechanism: it would be ignored."""
    for key in given:
        if mechanism not in _OF_MECHANISM.get(key, (mechanism,)):
            needed = " or ".join(_OF_MECHANISM[key])
            raise SecurityError(
                f"{option}.{key} has no effect with sasl_mechanism {mechanism}: it is for {needed} (QS-CONNECT-007)"
            )


def _oauth(given: Mapping[str, Any], option: str) -> OauthLogin:
    values = {key[len("sasl_oauthbearer_") :]: given[key] for key in _OAUTH_KEYS if key in given}
    login, prefix = OauthLogin(option=option, **values), f"{option}.sasl_oauthbearer_"
    if bool(login.token_endpoint_url) == bool(login.token_file):
        raise SecurityError(
            f"sasl_mechanism OAUTHBEARER needs {prefix}token_endpoint_url, or else {prefix}token_file (QS-CONNECT-007)"
        )
    if login.token_file:
        stray = sorted(name for name in values if name != "token_file")
        if stray:
            raise SecurityError(f"{prefix}{stray[0]} has no effect with {prefix}token_file (QS-CONNECT-007)")
        return login
    for name in ("client_id", "client_secret"):
        if name not in values:
            raise SecurityError(f"{prefix}{name} is missing: {prefix}token_endpoint_url needs it (QS-CONNECT-007)")
    url = urllib.parse.urlsplit(str(login.token_endpoint_url))
    if url.scheme != "https" or not url.hostname or url.username or url.password:
        raise SecurityError(
            f"{prefix}token_endpoint_url is not an https:// URL without a login in it. The client's secret is sent "
            "there (QS-CONNECT-007)"
        )
    return login


def _kerberos(given: Mapping[str, Any], option: str, service_name: str) -> KerberosLogin:
    names = ("keytab", "principal")
    found = {name: given.get(f"sasl_kerberos_{name}") for name in names}
    for name, other in (names, names[::-1]):
        if found[name] and not found[other]:
            raise SecurityError(
                f"{option}.sasl_kerberos_{other} is missing: {option}.sasl_kerberos_{name} needs it (QS-CONNECT-007)"
            )
    return KerberosLogin(str(given.get("sasl_kerberos_service_name") or service_name), option=option, **found)


def _tls(given: Mapping[str, Any], option: str, prefix: str) -> Tls:
    if prefix + "certfile" not in given:
        for key in ("keyfile", "keypassword"):
            if prefix + key in given:
                raise SecurityError(
                    f"{option}.{prefix}certfile is missing: {option}.{prefix}{key} needs it (QS-CONNECT-007)"
                )
    values = {key: given[prefix + key] for key in _TLS_KEYS if prefix + key in given}
    return Tls(option=option, prefix=prefix, **values)
