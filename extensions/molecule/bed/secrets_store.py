# Copyright: (c) 2026, Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Passwords, the ssh key, the certificate authority and the hosts' keystores: made once a checkout."""

from __future__ import annotations

import json
import os
import secrets
import subprocess
from pathlib import Path

from layout import CA_CERTIFICATE, SECRETS, SSH_KEY, STATE, BedError, Host, Network

_NAMES = (
    "quorumshift",
    "witness",
    "app1",
    "app2",
    "keystore",
    "password_encoder_secret",
    "delegation_token_secret_key",
    "external_keystore",
)
_CA_KEY = STATE / "ca.key"


def ensure() -> dict[str, str]:
    """Secrets by name: a SCRAM password for each user, and those of the brokers' configuration."""
    STATE.mkdir(parents=True, exist_ok=True)
    known = json.loads(SECRETS.read_text()) if SECRETS.exists() else {}
    known.update({name: secrets.token_urlsafe(24) for name in _NAMES if name not in known})
    _write_private(SECRETS, json.dumps(known, indent=2) + "\n")
    if not SSH_KEY.exists():
        _run("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "quorumshift-bed", "-f", str(SSH_KEY))
    if not CA_CERTIFICATE.exists():
        _run(
            *("openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "3650", "-sha256"),
            *("-subj", "/CN=Quorumshift bed CA", "-keyout", str(_CA_KEY), "-out", str(CA_CERTIFICATE)),
        )
    return known


def keystores(host: Host, network: Network, password: str) -> dict[str, Path]:
    """A host's PKCS12 key store and trust store; SANs are its address and its names."""
    directory = STATE / "tls" / host.name
    directory.mkdir(parents=True, exist_ok=True)
    stores = {"keystore.p12": directory / "keystore.p12", "truststore.p12": directory / "truststore.p12"}
    names = f"subjectAltName=IP:{network.address(host)},DNS:{host.name}.bed,DNS:{host.name}"
    made_for = directory / "made_for"
    if made_for.exists() and made_for.read_text() == names:
        return stores
    key, request, certificate = directory / "key.pem", directory / "request.pem", directory / "certificate.pem"
    extensions = directory / "extensions"
    extensions.write_text(names + "\nextendedKeyUsage=serverAuth,clientAuth\n")
    _run(
        *("openssl", "req", "-new", "-newkey", "rsa:2048", "-nodes", "-subj", f"/CN={host.name}.bed"),
        *("-keyout", str(key), "-out", str(request)),
    )
    _run(
        *("openssl", "x509", "-req", "-in", str(request), "-CA", str(CA_CERTIFICATE), "-CAkey", str(_CA_KEY)),
        *("-CAcreateserial", "-days", "3650", "-sha256", "-extfile", str(extensions), "-out", str(certificate)),
    )
    environment = {**os.environ, "BED_STORE_PASSWORD": password}
    _run(
        *("openssl", "pkcs12", "-export", "-name", host.name, "-in", str(certificate), "-inkey", str(key)),
        *("-certfile", str(CA_CERTIFICATE), "-out", str(stores["keystore.p12"])),
        *("-passout", "env:BED_STORE_PASSWORD"),
        environment=environment,
    )
    # keytool, since Java only trusts a PKCS12 entry that carries Oracle's trustedKeyUsage attribute.
    stores["truststore.p12"].unlink(missing_ok=True)
    _run(
        *("keytool", "-importcert", "-noprompt", "-alias", "ca", "-file", str(CA_CERTIFICATE)),
        *("-storetype", "PKCS12", "-keystore", str(stores["truststore.p12"])),
        *("-storepass:env", "BED_STORE_PASSWORD"),
        environment=environment,
    )
    made_for.write_text(names)
    return stores


def _write_private(path: Path, text: str) -> None:
    path.touch(mode=0o600)
    path.chmod(0o600)
    path.write_text(text)


def _run(*command: str, environment: dict[str, str] | None = None) -> None:
    done = subprocess.run(
        command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False
    )
    if done.returncode:
        raise BedError(f"{command[0]} {command[1]} ended with {done.returncode}: {done.stdout[-1000:]}")
