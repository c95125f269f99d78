# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A certificate in stores of Java's, as openssl and keytool write them."""

from __future__ import annotations

import pathlib
import subprocess

from tests.integration.certificates import Authority

PASSWORD = 'p@ss w$rd "7'  # Java's PKCS12 takes ASCII alone


class Stores:
    """A certificate with its key and CA, in stores of each kind."""

    def __init__(self, home: pathlib.Path) -> None:
        self.home = home
        self.authority = Authority(home)
        self.own = self.authority.issue("client")

    def path(self, name: str) -> str:
        return str(self.home / name)

    def key_store(self, name: str, *options: str) -> str:
        """Return a key store that openssl writes."""
        if pathlib.Path(self.path(name)).exists():
            return self.path(name)
        files = ("-in", self.own.certfile, "-inkey", self.own.keyfile, "-certfile", self.authority.cafile)
        run("openssl", "pkcs12", "-export", *options, "-name", "me", *files, *("-out", self.path(name), *PASSOUT))
        return self.path(name)

    def converted(self, name: str, kind: str, *options: str) -> str:
        """Return a key store that keytool writes."""
        if pathlib.Path(self.path(name)).exists():
            return self.path(name)
        source = self.key_store("openssl.p12")
        given = ("-srckeystore", source, "-destkeystore", self.path(name), "-deststoretype", kind)
        secrets = ("-srcstorepass", PASSWORD, "-deststorepass", PASSWORD)
        run("keytool", *options, "-importkeystore", "-noprompt", *given, *secrets)
        return self.path(name)

    def trust_store(self, name: str, kind: str, *options: str) -> str:
        """Return a trust store that keytool writes."""
        if pathlib.Path(self.path(name)).exists():
            return self.path(name)
        given = ("-alias", "ca", "-file", self.authority.cafile, "-storetype", kind, "-keystore", self.path(name))
        run("keytool", *options, "-importcert", "-noprompt", *given, "-storepass", PASSWORD)
        return self.path(name)


PASSOUT = ("-passout", f"pass:{PASSWORD}")
LEGACY = "-J-Dkeystore.pkcs12.legacy"  # as Java 8: RC2 and Triple DES


def run(*command: str) -> str:

    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert not done.returncode, done.stdout + done.stderr
    return done.stdout
