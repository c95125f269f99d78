# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Ask this host's ZooKeeper server, and find its files. Standard library only; read-only."""

from __future__ import annotations

import contextlib
import os
import socket
import ssl
from typing import Dict, List, Mapping

from ansible_collections.quorumshift.kafka.plugins.module_utils.core.ensemble import ensemble_cut
from ansible_collections.quorumshift.kafka.plugins.module_utils.files import safe_files
from ansible_collections.quorumshift.kafka.plugins.module_utils.formats.zookeeper import zk_files
from ansible_collections.quorumshift.kafka.plugins.module_utils.secrets.security import SecurityError, Tls
from ansible_collections.quorumshift.kafka.plugins.module_utils.settings import config_values, properties
from ansible_collections.quorumshift.kafka.plugins.module_utils.settings.addresses import is_wildcard

ASK_S = 1.0


def read_values(config_file: str) -> Dict[str, str]:
    """Return the content of a zoo.cfg. Raises OSError, PropertiesError."""
    return config_values.parse_zoo_cfg(properties.parse(safe_files.read(config_file), path=config_file))


def directories(values: Mapping[str, str]) -> tuple:
    """Return the `version-2` directories of snapshots and of logs."""
    data = values.get("dataDir", "")
    return os.path.join(data, "version-2"), os.path.join(values.get("dataLogDir") or data, "version-2")


def read_last_zxid(values: Mapping[str, str]) -> int:
    return zk_files.last_zxid(*directories(values))


def ask(values: Mapping[str, str], word: str, timeout: float = ASK_S) -> str:
    """Return the server's answer to a four letter word, from the address that the fence lets pass. Raises OSError, and
    KeyError without a client port.

    A server without `clientPort` is asked at its `secureClientPort`, with its own certificate.
    """
    is_secure = not values.get("clientPort") and bool(values.get("secureClientPort"))
    name = "secureClientPort" if is_secure else "clientPort"
    where = values.get(f"{name}Address", "")
    where = "127.0.0.1" if is_wildcard(where) or ":" in where else where
    context = _own_context(values) if is_secure else None
    with contextlib.ExitStack() as stack:
        sock = stack.enter_context(socket.socket(socket.AF_INET, socket.SOCK_STREAM))
        sock.settimeout(timeout)
        sock.bind((ensemble_cut.PROBE_ADDRESS, 0))
        sock.connect((where, int(values[name])))
        if context is not None:
            sock = stack.enter_context(context.wrap_socket(sock))
        sock.sendall(word.encode())
        parts: List[bytes] = []
        while True:
            part = sock.recv(1 << 16)
            if not part:
                return b"".join(parts).decode(errors="replace")
            parts.append(part)


def _own_context(values: Mapping[str, str]) -> ssl.SSLContext:
    """Return how a server of this host is asked by TLS. Raises OSError for a store that cannot be used.

    It may ask for a client's certificate, and trusts its own. Its certificate names the host, not the loopback
    address, and no other server listens there.
    """
    store = values.get("ssl.keyStore.location") or None
    try:
        password = values.get("ssl.keyStore.password") or None
        if store and not password and values.get("ssl.keyStore.passwordPath"):
            password = safe_files.read(values["ssl.keyStore.passwordPath"]).decode().strip()
        names = {"certfile": "ssl.keyStore.location", "keypassword": "ssl.keyStore.password"}
        return Tls(certfile=store, keypassword=password, verify=False, names=names).context()
    except (SecurityError, UnicodeDecodeError) as error:
        raise OSError(str(error)) from error


def read_mode(values: Mapping[str, str]) -> str:
    """Return the mode in which this host's server serves, '' if it serves none or gives no answer."""
    return read_answer(values) or ""


def read_answer(values: Mapping[str, str]) -> str | None:
    """Return the mode in which this host's server serves, '' if it says that it serves none or is down.

    None if it gives no answer: a server that is suspended may serve on.
    """
    try:
        answer = ask(values, "srvr")
    except (ConnectionRefusedError, ConnectionResetError, BrokenPipeError):
        return ""
    except OSError:
        return None
    if "not in the whitelist" in answer:
        return None
    return next((line[len("Mode: ") :] for line in answer.splitlines() if line.startswith("Mode: ")), "")
