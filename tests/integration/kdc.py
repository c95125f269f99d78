# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A Kerberos KDC on loopback (Debian's krb5-kdc and krb5-admin-server), with principals and keytabs."""

from __future__ import annotations

import contextlib
import os
import pathlib
import secrets
import shutil
import socket
import subprocess
from typing import Iterator

from tests.integration import servers

REALM = "TEST.QUORUMSHIFT"
_PATH = f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin"


class Kdc:
    """A running KDC: `config` is the krb5.conf of its clients."""

    def __init__(self, home: pathlib.Path) -> None:
        self.home, self.port = home, servers.free_port()
        self.config = home / "krb5.conf"
        self._environment = {**os.environ, "KRB5_CONFIG": str(self.config), "KRB5_KDC_PROFILE": str(home / "kdc.conf")}
        self._process: subprocess.Popen | None = None

    def write_configuration(self) -> None:
        """Write krb5.conf and kdc.conf: no names are resolved, all goes over TCP on loopback."""
        modules = list(pathlib.Path(_tool("krb5kdc")).parents[1].glob("lib/*/krb5/plugins/kdb"))
        where = f"[dbmodules]\n db_module_dir = {modules[0]}\n" if modules else ""
        self.config.write_text(
            f"[libdefaults]\n default_realm = {REALM}\n dns_lookup_kdc = false\n dns_lookup_realm = false\n"
            " dns_canonicalize_hostname = false\n rdns = false\n udp_preference_limit = 1\n"
            f"[realms]\n {REALM} = {{\n  kdc = 127.0.0.1:{self.port}\n }}\n{where}"
        )
        (self.home / "kdc.conf").write_text(
            f'[kdcdefaults]\n kdc_listen = ""\n kdc_tcp_listen = 127.0.0.1:{self.port}\n'
            f"[realms]\n {REALM} = {{\n  database_name = {self.home}/principal\n"
            f"  key_stash_file = {self.home}/stash\n  max_life = 1h\n }}\n"
        )

    def start(self) -> None:
        """Start it and wait until it accepts connections."""
        command = [_tool("krb5kdc"), "-n", "-r", REALM]
        with (self.home / "kdc.log").open("wb") as log:
            self._process = subprocess.Popen(command, env=self._environment, stdout=log, stderr=log)
        servers.wait_for(self._accepts, 20, "the KDC")

    def stop(self) -> None:
        """End it."""
        if self._process:
            self._process.kill()
            self._process.wait()

    def keytab(self, principal: str) -> str:
        """Create a principal of this realm; return the path of its keytab."""
        path = self.home / f"{principal.replace('/', '-')}.keytab"
        self._administer("addprinc", "-randkey", principal)
        self._administer("ktadd", "-k", str(path), principal)
        return str(path)

    def create(self) -> None:
        """Create the realm's database."""
        password = secrets.token_urlsafe(16)
        self._run(_tool("kdb5_util"), "create", "-s", "-r", REALM, "-P", password)

    def _administer(self, *words: str) -> None:
        self._run(_tool("kadmin.local"), "-r", REALM, *words)

    def _run(self, *command: str) -> None:
        done = subprocess.run(command, env=self._environment, capture_output=True, text=True, timeout=60, check=False)
        if done.returncode:
            raise RuntimeError(f"{command[0]}: {done.stdout}{done.stderr}")

    def _accepts(self) -> bool:
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", self.port), timeout=1):
            return True
        return False


def _tool(name: str) -> str:
    found = shutil.which(name, path=_PATH)
    if not found:
        raise RuntimeError(f"{name} is missing: run `make setup`, which installs krb5-kdc and krb5-admin-server")
    return found


@contextlib.contextmanager
def running(home: pathlib.Path) -> Iterator[Kdc]:
    """Run a KDC with its files in `home`."""
    home.mkdir()
    kdc = Kdc(home)
    kdc.write_configuration()
    kdc.create()
    try:
        kdc.start()
        yield kdc
    finally:
        kdc.stop()
