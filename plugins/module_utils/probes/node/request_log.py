# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Read from a broker's request log which clients send versions of requests that a later release does not answer.

From 3.7 on (KIP-896) a broker logs a request of a deprecated version once `kafka.request.logger` has the level INFO,
any request at DEBUG: RequestChannel.isRequestLoggingEnabled, RequestConvertToJson. Such a line has the address, the
client id, the principal, the name and the version of the client (KIP-511), the request and its version.

Runs on managed hosts: standard library only; read-only.
"""

from __future__ import annotations

import glob
import os
import re
from typing import Any, Dict, Iterator, List, Tuple

from ansible_collections.quorumshift.kafka.plugins.module_utils.core.releases import accepted
from ansible_collections.quorumshift.kafka.plugins.module_utils.files import safe_files

NAME = "kafka-request.log"  # of the appender in Kafka's own log4j files
MOST_BYTES = 64 << 20
"""Of all files, the newest ones."""
MOST_CLIENTS = 200
_MARK = b"Completed request:"
_FIELDS = {
    "request": rb'"requestApiKeyName":"(\w+)"',
    "version": rb'"requestApiVersion":(\d+)',
    "client_id": rb'"clientId":"((?:[^"\\]|\\.)*)"',
    "connection": rb'"connection":"([^"]*)"',
    "principal": rb'"principal":"((?:[^"\\]|\\.)*)"',
    "name": rb'"softwareName":"([^"]*)"',
    "software": rb'"softwareVersion":"([^"]*)"',
}
_PATTERNS = {name: re.compile(pattern) for name, pattern in _FIELDS.items()}
_STAMP = re.compile(rb"^\[(\d{4}-\d\d-\d\d \d\d:\d\d:\d\d)")
# 10.0.0.1:9092-10.0.0.9:51234-3 (ServerConnectionId): the client's address is the second one; IPv6 has colons itself
_REMOTE = re.compile(r"-([^-]*):\d+-\d+(?:-\d+)?$")


def read(logs_dir: str, log_file: str) -> Dict[str, Any]:
    """Return {files, first, last, clients, cut, why}. `clients`: [{request, version, name, software, client_id,
    address, principal, count}] of requests of which some release answers fewer versions than an earlier one; `first`,
    `last`: the times of the first and last line that was read; `cut`: whether older lines were not read.

    The lines are in `kafka-request.log` below the JVM's `kafka.logs.dir` or beside the node's own log, and in that log
    itself, where one appender takes all.
    """
    directories = dict.fromkeys([logs_dir, os.path.dirname(log_file)] if logs_dir else [os.path.dirname(log_file)])
    paths = [path for directory in directories for path in glob.glob(os.path.join(glob.escape(directory), f"{NAME}*"))]
    paths = sorted({*paths, *([log_file] if os.path.exists(log_file) else [])}, key=_changed, reverse=True)
    wanted = {name.encode() for name in accepted.changed_requests()}
    found: Dict[Tuple, int] = {}
    first = last = None
    files: List[str] = []
    why, left, cut = "", MOST_BYTES, False
    for path in paths:
        if left <= 0:
            cut = True
            break
        seen = False
        try:
            size = os.path.getsize(path)
            for line in _lines(path, left):
                if _MARK not in line:
                    continue
                seen = True
                stamp = _STAMP.match(line)
                if stamp:
                    moment = stamp[1].decode()
                    first, last = min(first or moment, moment), max(last or moment, moment)
                seen_client = _client(line, wanted)
                if seen_client and (seen_client in found or len(found) < MOST_CLIENTS):
                    found[seen_client] = found.get(seen_client, 0) + 1
        except OSError as error:
            why = why or f"{path}: {error.strerror}"
            continue
        left, cut = left - size, cut or size > left
        if seen or os.path.basename(path).startswith(NAME):
            files.append(path)
    clients = []
    for texts, count in sorted(found.items()):
        client: Dict[str, Any] = dict(zip((*_FIELDS, "address"), texts))
        del client["connection"]
        clients.append({**client, "version": int(client["version"]), "count": count})
    return {"files": files, "first": first, "last": last, "clients": clients, "cut": cut, "why": why}


def _client(line: bytes, wanted: Any) -> Tuple[str, ...] | None:
    name = _PATTERNS["request"].search(line)
    if name is None or name[1] not in wanted:
        return None
    found = {field: pattern.search(line) for field, pattern in _PATTERNS.items()}
    version = found["version"]
    if version is None or int(version[1]) >= _newest_start(name[1].decode()):
        return None
    texts = {field: match[1].decode("utf-8", "replace") if match else "" for field, match in found.items()}
    remote = _REMOTE.search(texts["connection"])
    texts["connection"] = ""  # the port of each connection differs
    return (*texts.values(), remote[1].strip("[]") if remote else "")


def _newest_start(name: str) -> int:
    """Return the version from which on each release answers the request."""
    return max(oldest for _since, oldest in accepted.REQUESTS[name])


def _changed(path: str) -> float:
    try:
        return os.path.getmtime(path)
    except OSError:
        return 0.0


def _lines(path: str, most: int) -> Iterator[bytes]:
    """Yield the lines of the last `most` bytes of a file, the first of them perhaps in part. Raises OSError."""
    handle = safe_files.open_regular(path)
    with os.fdopen(handle, "rb") as stream:
        stream.seek(max(0, os.fstat(handle).st_size - most))
        yield from stream
