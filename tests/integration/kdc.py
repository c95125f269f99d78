# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A Kerberos KDC on loopback, with principals and keytabs."""

from __future__ import annotations

import contextlib
import pathlib
import socket
import subprocess
from typing import Iterator

from tests.integration import servers
from tests.system.testbed import kerberos

REALM = kerberos.REALM


class Kdc(kerberos.Realm):
    """A running KDC of a realm."""

    def __init__(self, home: pathlib.Path) -> None:
        self.port = servers.free_port()
        super().__init__(home, f"127.0.0.1:{self.port}")
        self._process: subprocess.Popen | None = None

    def start(self) -> None:
        """Start it and wait until it accepts connections."""
        command = [kerberos.tool("krb5kdc"), "-n", "-r", REALM]
        with (self.home / "kdc.log").open("wb") as log:
            self._process = subprocess.Popen(command, env=self.environment, stdout=log, stderr=log)
        servers.wait_for(self._accepts, 20, "the KDC")

    def stop(self) -> None:
        """End it."""
        if self._process:
            self._process.kill()
            self._process.wait()

    def _accepts(self) -> bool:
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", self.port), timeout=1):
            return True
        return False


@contextlib.contextmanager
def running(home: pathlib.Path) -> Iterator[Kdc]:
    """Run a KDC with its files in `home`."""
    kdc = Kdc(home)
    kdc.create()
    try:
        kdc.start()
        yield kdc
    finally:
        kdc.stop()
