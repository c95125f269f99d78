# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Ask this host's ZooKeeper server, and find its files. Standard library only; read-only."""

from __future__ import annotations

import os
import socket
from typing import Dict, List, Mapping

from ansible_collections.quorumshift.kafka.plugins.module_utils.core.ensemble import ensemble_cut
from ansible_collections.quorumshift.kafka.plugins.module_utils.files import safe_files
from ansible_collections.quorumshift.kafka.plugins.module_utils.formats.zookeeper import zk_files
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
    """Return the server's answer to a four letter word, from the address that the fence lets pass. Raises OSError."""
    where = values.get("clientPortAddress", "")
    where = "127.0.0.1" if is_wildcard(where) or ":" in where else where
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as sock:
        sock.settimeout(timeout)
        sock.bind((ensemble_cut.PROBE_ADDRESS, 0))
        sock.connect((where, int(values["clientPort"])))
        sock.sendall(word.encode())
        parts: List[bytes] = []
        while True:
            part = sock.recv(1 << 16)
            if not part:
                return b"".join(parts).decode(errors="replace")
            parts.append(part)


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
