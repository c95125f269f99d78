# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Read what a support bundle has of a node, on its host: properties file, log, journal of the unit, versions.

Texts leave the host sealed and as they are: the control node redacts them all with the secrets of all hosts. Runs on
managed hosts: standard library only; read-only.
"""

from __future__ import annotations

import json
import platform
from typing import Any, Callable

from ansible_collections.quorumshift.kafka.plugins.module_utils.files import safe_files
from ansible_collections.quorumshift.kafka.plugins.module_utils.host import service
from ansible_collections.quorumshift.kafka.plugins.module_utils.probes.node import (
    config_providers,
    installation,
    own_log,
)
from ansible_collections.quorumshift.kafka.plugins.module_utils.secrets import masking
from ansible_collections.quorumshift.kafka.plugins.module_utils.secrets.seal import seal_bytes
from ansible_collections.quorumshift.kafka.plugins.module_utils.settings import properties

PROPERTIES, LOG, JOURNAL = "properties", "log", "journal"
MOST_BYTES = 64 << 20
"""Of one text."""


def collect(config_file: str, service_name: str, log_file: str, lines: int, run_key: str) -> dict[str, Any]:
    """Return {texts, secrets, versions}, nothing of it raised.

    `texts`: each {kind, source, sealed} or, where it could not be read, {kind, source, why}; `secrets`: a sealed list
    of the values that no text may show, those that config providers fill in too.
    """
    file, journal = (
        _read(PROPERTIES, config_file, lambda: safe_files.read(config_file)),
        f"journalctl -u {service_name}",
    )
    texts = [
        file,
        _read(LOG, log_file, lambda: own_log.read_end(log_file, lines)),
        _read(JOURNAL, journal, lambda: _read_journal(service_name, lines)),
    ]
    secrets, why = _secrets(file, service_name)
    try:
        pid = service.read_state(service_name)["main_pid"]
    except OSError:
        pid = 0
    return {
        "texts": [_sealed(run_key, text) for text in texts],
        "secrets": seal_bytes(run_key, json.dumps(secrets).encode()),
        "unresolved": why,
        "versions": {"python": platform.python_version(), "java": installation.java_version(pid) if pid else None},
    }


def _read(kind: str, source: str, read: Callable[[], bytes]) -> dict[str, Any]:
    text: dict[str, Any] = {"kind": kind, "source": source}
    try:
        data = read()
    except (OSError, ValueError) as error:
        return {**text, "why": getattr(error, "strerror", None) or str(error)}
    if len(data) > MOST_BYTES:
        return {**text, "why": f"it has {len(data)} bytes"}
    return {**text, "data": data}


def _read_journal(service_name: str, lines: int) -> bytes:
    found = service.read_journal(service_name, lines, "short-iso") if lines else []
    if not found and lines:
        raise ValueError("systemd's journal has no line of the unit, or cannot be read")
    return "".join(f"{line}\n" for line in found).encode("utf-8", "surrogateescape")


def _secrets(file: dict[str, Any], service_name: str) -> tuple[list[str], list[str]]:
    """Return the secrets of a properties file (`_read`), and what of them could not be read: the file, or the values of
    variables of config providers in it."""
    try:
        values = properties.parse(file["data"])
    except (KeyError, properties.PropertiesError) as error:
        return [], [f"{file['source']}: {file.get('why') or error}"]
    environment = service.read_environment(service_name) if config_providers.PROVIDERS in values else None
    given, variables = config_providers.resolve(values, environment)
    resolved = [given[variable.key] for variable in variables if not variable.why]
    known = {*masking.known_secrets(values), *masking.known_secrets(given), *resolved}
    known |= {secret for value in given.values() for secret in masking.assigned_secrets(value)}
    return sorted(known), [f"{variable.key}: {variable.why}" for variable in variables if variable.why]


def _sealed(run_key: str, text: dict[str, Any]) -> dict[str, Any]:
    data = text.pop("data", None)
    return text if data is None else {**text, "sealed": seal_bytes(run_key, data)}
