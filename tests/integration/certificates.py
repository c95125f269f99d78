# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A test CA and its certificates, made by openssl; Kafka and ZooKeeper read the PEM files."""

from __future__ import annotations

import pathlib
import subprocess
from typing import Dict, NamedTuple


class Certificate(NamedTuple):
    """PEM files: `certfile`, `keyfile`, and `store` with both, a server's PEM keystore."""

    certfile: str
    keyfile: str
    store: str


class Authority:
    """A CA in `directory`; `cafile` is its certificate."""

    def __init__(self, directory: pathlib.Path, name: str = "ca") -> None:
        directory.mkdir(parents=True, exist_ok=True)
        self._directory = directory
        self._name = name
        self.cafile = str(directory / f"{name}.pem")
        self._key = str(directory / f"{name}.key")
        _openssl(
            *("req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", f"/CN={name}"),
            *("-keyout", self._key, "-out", self.cafile),
        )

    def issue(self, name: str, hosts: str = "", keypassword: str = "") -> Certificate:
        """Return a new certificate for CN=`name`; `hosts` is a subjectAltName such as `DNS:localhost,IP:::1`."""
        path = self._directory / f"{self._name}-{name}"
        key, request, certificate, store = (f"{path}.{kind}" for kind in ("key", "csr", "pem", "store.pem"))
        protection = ["-passout", f"pass:{keypassword}"] if keypassword else ["-nodes"]
        _openssl(
            *("req", "-newkey", "rsa:2048", *protection, "-subj", f"/CN={name}"),
            *("-keyout", key, "-out", request),
        )
        extensions = pathlib.Path(f"{path}.ext")
        extensions.write_text(f"subjectAltName={hosts}\n" if hosts else "basicConstraints=CA:FALSE\n")
        _openssl(
            *("x509", "-req", "-in", request, "-CA", self.cafile, "-CAkey", self._key, "-CAcreateserial"),
            *("-days", "2", "-extfile", str(extensions), "-out", certificate),
        )
        pathlib.Path(store).write_text(pathlib.Path(key).read_text() + pathlib.Path(certificate).read_text())
        return Certificate(certificate, key, store)

    def kafka_keys(self, certificate: Certificate, prefix: str = "") -> Dict[str, str]:
        """Return the properties of a Kafka listener that presents `certificate` and trusts this CA."""
        return {
            f"{prefix}ssl.keystore.type": "PEM",
            f"{prefix}ssl.keystore.location": certificate.store,
            f"{prefix}ssl.truststore.type": "PEM",
            f"{prefix}ssl.truststore.location": self.cafile,
        }

    def zookeeper_keys(self, certificate: Certificate, port: int) -> Dict[str, str]:
        """Return the settings of a ZooKeeper server for mutual TLS on a port of its own."""
        return {
            "secureClientPort": str(port),
            "secureClientPortAddress": "127.0.0.1",
            "serverCnxnFactory": "org.apache.zookeeper.server.NettyServerCnxnFactory",
            "ssl.keyStore.location": certificate.store,
            "ssl.keyStore.type": "PEM",
            "ssl.trustStore.location": self.cafile,
            "ssl.trustStore.type": "PEM",
        }


def _openssl(*arguments: str) -> None:
    done = subprocess.run(["openssl", *arguments], capture_output=True, text=True, timeout=60, check=False)
    if done.returncode:
        raise RuntimeError(f"openssl {arguments[0]}: {done.stderr}")
