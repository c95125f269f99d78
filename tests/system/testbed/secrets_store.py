# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Passwords, the ssh key, the certificate authority and the hosts' keystores, created once per checkout."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from secrets import randbits, token_urlsafe

from cryptography.hazmat.primitives.asymmetric import rsa

from tests.system.testbed import security
from tests.system.testbed.layout import CA_CERTIFICATE, SECRETS, SSH_KEY, STATE, Host, Network, TestbedError

_NAMES = (
    "quorumshift",
    "canary",
    "app1",
    "app2",
    "keystore",
    "password_encoder_secret",
    "delegation_token_secret_key",
    "external_keystore",
    *security.SECRET_NAMES,
)
_CA_KEY = STATE / "ca.key"


def ensure() -> dict[str, str]:
    """Return the secrets by name, and create what is missing: SCRAM passwords, passwords in properties files."""
    STATE.mkdir(parents=True, exist_ok=True)
    known = json.loads(SECRETS.read_text()) if SECRETS.exists() else {}
    known.update({name: token_urlsafe(24) for name in _NAMES if name not in known})
    _write_private(SECRETS, json.dumps(known, indent=2) + "\n")
    if not SSH_KEY.exists():
        _run("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "quorumshift-testbed", "-f", str(SSH_KEY))
    if not CA_CERTIFICATE.exists():
        _run(
            *("openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "3650", "-sha256"),
            *("-subj", "/CN=Quorumshift testbed CA", "-keyout", str(_CA_KEY), "-out", str(CA_CERTIFICATE)),
        )
    if security.SCHEME.controllers == "SSL" or security.SCHEME.zookeeper_tls:
        _tool_certificate(known)
    if security.SCHEME.has_tokens and not security.TOKEN_KEY.exists():
        _token_key()
    return known


def keystores(host: Host, network: Network, secrets: dict[str, str]) -> dict[str, Path]:
    """Return a host's PKCS12 stores by file name; in `secure`, brokers have one for the controllers' listener."""
    directory = STATE / "tls" / host.name
    directory.mkdir(parents=True, exist_ok=True)
    password = security.store_password(host, secrets)
    names = f"subjectAltName={security.alternative_names(host, network)}"
    made = {"keystore.p12": password}
    if security.SCHEME.controllers == "SSL" and host.is_broker:
        made["quorum.p12"] = secrets["quorum_keystore"]
    trust = {"truststore.p12": password}
    for name, store_password in security.zookeeper_stores(host, secrets).items():
        made[name] = store_password
        trust[name.replace(".", "-trust.")] = store_password
    stores = {name: directory / name for name in (*made, *trust)}
    made_for = directory / "made_for"
    identity = f"{security.subject(host)} {names}"
    if made_for.exists() and made_for.read_text() == identity:
        return stores
    for name, store_password in made.items():
        key, certificate = _certificate(directory / Path(name).stem, security.subject(host), names)
        _key_store(stores[name], key, certificate, store_password)
    for name, store_password in trust.items():
        _trust_store(stores[name], store_password)
    made_for.write_text(identity)
    return stores


def _key_store(store: Path, key: Path, certificate: Path, password: str) -> None:
    """Write a PKCS12 or, by the name, a JKS key store."""
    store.unlink(missing_ok=True)
    written = store.with_suffix(".p12")
    environment = {**os.environ, "TESTBED_STORE_PASSWORD": password}
    _run(
        *("openssl", "pkcs12", "-export", "-name", "own", "-in", str(certificate), "-inkey", str(key)),
        *("-certfile", str(CA_CERTIFICATE), "-out", str(written), "-passout", "env:TESTBED_STORE_PASSWORD"),
        environment=environment,
    )
    if store == written:
        return
    _run(
        *("keytool", "-importkeystore", "-noprompt", "-srckeystore", str(written), "-destkeystore", str(store)),
        *("-deststoretype", "JKS", "-srcstorepass:env", "TESTBED_STORE_PASSWORD"),
        *("-deststorepass:env", "TESTBED_STORE_PASSWORD"),
        environment=environment,
    )
    written.unlink()


def _trust_store(store: Path, password: str) -> None:
    """Write a PKCS12 or, by the name, a JKS trust store."""
    # keytool: Java trusts only PKCS12 entries with Oracle's attribute trustedKeyUsage
    store.unlink(missing_ok=True)
    _run(
        *("keytool", "-importcert", "-noprompt", "-alias", "ca", "-file", str(CA_CERTIFICATE)),
        *("-storetype", "PKCS12" if store.suffix == ".p12" else "JKS", "-keystore", str(store)),
        *("-storepass:env", "TESTBED_STORE_PASSWORD"),
        environment={**os.environ, "TESTBED_STORE_PASSWORD": password},
    )


def _token_key() -> None:
    """Write the key with which the token server signs."""
    private = rsa.generate_private_key(public_exponent=65537, key_size=2048).private_numbers()
    public = private.public_numbers
    numbers = {"n": public.n, "e": public.e, "d": private.d}
    _write_private(security.TOKEN_KEY, json.dumps({name: str(number) for name, number in numbers.items()}))


def _tool_certificate(secrets: dict[str, str]) -> None:
    """Create the migration tool's PEM certificate and its encrypted key."""
    if security.TOOL_CERTIFICATE.exists():
        return
    security.TOOL_KEY.parent.mkdir(parents=True, exist_ok=True)
    key, certificate = _certificate(security.TOOL_KEY.with_name("tool-plain"), security.TOOL_SUBJECT)
    if security.SCHEME.zookeeper_tls:
        _key_store(security.TOOL_STORE, key, certificate, secrets["zookeeper_tool_store"])
        _trust_store(security.TOOL_TRUST_STORE, secrets["zookeeper_tool_store"])
        key.unlink()
        certificate.rename(security.TOOL_CERTIFICATE)
        return
    _run(
        *("openssl", "pkcs8", "-topk8", "-v2", "aes-256-cbc", "-in", str(key), "-out", str(security.TOOL_KEY)),
        *("-passout", "env:TESTBED_STORE_PASSWORD"),
        environment={**os.environ, "TESTBED_STORE_PASSWORD": secrets["tool_key"]},
    )
    key.unlink()
    certificate.rename(security.TOOL_CERTIFICATE)


def _certificate(stem: Path, subject: str, names: str = "") -> tuple[Path, Path]:
    """Create a key and its certificate, signed by the testbed's authority; return their files."""
    key, request, certificate, extensions = (
        stem.with_name(f"{stem.name}-{part}") for part in ("key.pem", "request.pem", "certificate.pem", "extensions")
    )
    extensions.write_text(f"{names}\nextendedKeyUsage=serverAuth,clientAuth\n")
    _run(
        *("openssl", "req", "-new", "-newkey", "rsa:2048", "-nodes", "-subj", subject),
        *("-keyout", str(key), "-out", str(request)),
    )
    _run(
        *("openssl", "x509", "-req", "-in", str(request), "-CA", str(CA_CERTIFICATE), "-CAkey", str(_CA_KEY)),
        # an explicit serial: hosts are created in parallel and would corrupt OpenSSL's serial file
        *("-set_serial", str(randbits(64)), "-days", "3650", "-sha256"),
        *("-extfile", str(extensions), "-out", str(certificate)),
    )
    return key, certificate


def _write_private(path: Path, text: str) -> None:
    path.touch(mode=0o600)
    path.chmod(0o600)
    path.write_text(text)


def _run(*command: str, environment: dict[str, str] | None = None) -> None:
    done = subprocess.run(
        command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False
    )
    if done.returncode:
        raise TestbedError(f"{command[0]} {command[1]} failed with {done.returncode}: {done.stdout[-1000:]}")
