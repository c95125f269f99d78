# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A Kerberos realm (Debian's krb5-kdc and krb5-admin-server): its database, principals, keytabs and configuration."""

from __future__ import annotations

import os
import secrets
import shutil
import subprocess
from pathlib import Path

REALM = "TEST.QUORUMSHIFT"
_PATH = f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin"


class Realm:
    """A realm with its files in `home`; its KDC is at `address` (host:port). `config` is the krb5.conf of clients."""

    def __init__(self, home: Path, address: str) -> None:
        self.home, self.address = home, address
        self.config = home / "krb5.conf"
        self.environment = {**os.environ, "KRB5_CONFIG": str(self.config), "KRB5_KDC_PROFILE": str(home / "kdc.conf")}

    def create(self) -> None:
        """Create the configuration and the database."""
        self.home.mkdir(parents=True)
        modules = list(Path(tool("krb5kdc")).parents[1].glob("lib/*/krb5/plugins/kdb"))
        where = f"[dbmodules]\n db_module_dir = {modules[0]}\n" if modules else ""
        self.config.write_text(self.client_config() + where)
        (self.home / "kdc.conf").write_text(self.server_config(str(self.home)))
        self._run(tool("kdb5_util"), "create", "-s", "-r", REALM, "-P", secrets.token_urlsafe(16))

    def client_config(self) -> str:
        """Return krb5.conf: no names are resolved, all goes over TCP."""
        return (
            f"[libdefaults]\n default_realm = {REALM}\n dns_lookup_kdc = false\n dns_lookup_realm = false\n"
            " dns_canonicalize_hostname = false\n rdns = false\n udp_preference_limit = 1\n"
            f"[realms]\n {REALM} = {{\n  kdc = {self.address}\n }}\n"
        )

    def server_config(self, directory: str) -> str:
        """Return kdc.conf for a KDC with the database in `directory`."""
        return (
            f'[kdcdefaults]\n kdc_listen = ""\n kdc_tcp_listen = {self.address}\n'
            f"[realms]\n {REALM} = {{\n  database_name = {directory}/principal\n"
            f"  key_stash_file = {directory}/stash\n  max_life = 1h\n }}\n"
        )

    def keytab(self, principal: str) -> str:
        """Create a principal of this realm; return the path of its keytab."""
        path = self.path(principal)
        self._administer("addprinc", "-randkey", principal)
        self._administer("ktadd", "-k", str(path), principal)
        return str(path)

    def path(self, principal: str) -> Path:
        """Return where the keytab of a principal is."""
        return self.home / f"{principal.replace('/', '-')}.keytab"

    def _administer(self, *words: str) -> None:
        self._run(tool("kadmin.local"), "-r", REALM, *words)

    def _run(self, *command: str) -> None:
        done = subprocess.run(command, env=self.environment, capture_output=True, text=True, timeout=60, check=False)
        if done.returncode:
            raise RuntimeError(f"{command[0]}: {done.stdout}{done.stderr}")


def tool(name: str) -> str:
    """Return the path of a tool of Kerberos. Raise RuntimeError if it is missing."""
    found = shutil.which(name, path=_PATH)
    if not found:
        raise RuntimeError(f"{name} is missing: run `make setup`, which installs krb5-kdc and krb5-admin-server")
    return found
