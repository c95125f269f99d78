# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The input of a job: checks job.json, and creates the views of metadata_parity.

The file holds connection secrets: 0600 in a directory of 0700; its writer removes it. Its content reaches the tasks
inside their function, never Spark's configuration, plans or logs.

Of metadata_parity; each other job names the keys that differ:

```
{"nonce": ..., "gate": ..., "phase": ..., "cluster_id": ..., "digest_key_file": path, "output": directory,
 "ship": true where executors do not share the driver's files: tasks carry log, baseline and TLS files,
 "fence": {"migration_offset": n, "migration_zxid": n},       /migration, read before the snapshot of the log
 "views": {
   "zookeeper": {"connect": ..., "client": {...}, "password_encoder_secrets": [...], "max_rate": znodes a second,
                 "max_latency_ms": n}
                or {"data_dir": path, "data_log_dir": path or "", "chroot": "/..." or "", "at_least": zxid,
                 "password_encoder_secrets": [...]},
   "metadata_log": {"archive": path, "sha256": ..., "end_offset": n} or {"directory": path, "end_offset": n},
   "metadata_logs": [{"node": id, and the same} or {"node": id, "error": why there is none}, ...],   of other voters
   "brokers": [{"id": n, "address": "host:port", "client": {...}, "file": {config of its file: value or null},
                "directories": [id in meta.properties of a log directory, ...] if its host was read}, ...],
   "controllers": [{"id": n, "address": "host:port", "client": {...}, "file": {...}}, ...],
   "settings": [name, ...],           configs of which all nodes' files must say the same
   "baseline": {"path": ...},
   "copy_source": {"host": name, "archive": path, "sha256": ..., "snapshot": zxid of its snapshot, "before": zxid of
                before the copy, when that snapshot was complete, "chroot": "/..." or ""}
                or {"error": why there are no files of a ZooKeeper server}},
 "accept_unverified_copy": true where the operator has compared the initial copy,
 "foreign": [version of a build of another vendor that a node has, ...],
 "accept_not_compared": [token of core.gates.not_compared, ...],
 "bounds": {...}}
```
"""

from __future__ import annotations

import json
import os
import stat
from types import MappingProxyType
from typing import Any, Dict, Iterator, List, Mapping, NamedTuple, Sequence, Tuple

from ansible_collections.quorumshift.kafka.plugins.module_utils.secrets.security import Security
from ansible_collections.quorumshift.kafka.plugins.module_utils.settings import addresses

from quorumshift_spark import rules
from quorumshift_spark.normal_form import Digests
from quorumshift_spark.views import View, ViewError, baseline, trees
from quorumshift_spark.views.brokers import BrokerView, ControllerView
from quorumshift_spark.views.copy_source import CopySource
from quorumshift_spark.views.metadata_log import LogSource, MetadataLogView
from quorumshift_spark.views.zookeeper import ZooKeeperFilesView, ZooKeeperView

VIEWS = (
    "zookeeper",
    "metadata_log",
    "metadata_logs",
    "brokers",
    "controllers",
    "settings",
    "baseline",
    "copy_source",
)


class JobError(ValueError):
    """job.json cannot be used. The message names the key and never shows a value that may be secret."""


class Bounds(NamedTuple):
    """Limits of a job; times in seconds.

    `rounds`: re-checks at most; `pause_s`: between them; `fence_s`: for /migration to pass the end of the log;
    `log_refresh_s`: for a new snapshot of the log in a round, 0 requests none; `request_timeout_s`: for one response
    of ZooKeeper or a broker; `read_s`: for reading records; `reread_limit`: keys to re-check together; `shown`:
    differences listed in result.json.
    """

    rounds: int = 6
    pause_s: float = 2.0
    fence_s: float = 30.0
    log_refresh_s: float = 0.0
    request_timeout_s: float = 30.0
    read_s: float = 3600.0
    reread_limit: int = 20000
    shown: int = 200


class Job(NamedTuple):
    """A checked job.json. `fence`: {"migration_offset", "migration_zxid"} or {}; `view_options`: its `views`; `own`:
    what this job alone has; `secrets`: that no message may quote."""

    directory: str
    nonce: str
    gate: str | None
    phase: str | None
    cluster_id: str
    output: str
    digest_key: bytes
    fence: Dict[str, int]
    view_options: Dict[str, Any]
    bounds: Bounds
    ship: bool = False
    accept_unverified_copy: bool = False
    foreign: Tuple[str, ...] = ()
    accept_not_compared: Tuple[str, ...] = ()
    own: Mapping[str, Any] = MappingProxyType({})
    secrets: Tuple[str, ...] = ()

    def __repr__(self) -> str:
        return f"Job(gate={self.gate!r}, nonce={self.nonce!r})"


def load(path: str, views: Sequence[str] = VIEWS, own: Sequence[str] = ()) -> Job:
    """Read job.json, in whose `views` only these keys are known. Raises JobError.

    :arg own: keys that this job alone has. Such a job needs neither a gate nor digests of secrets.
    """
    try:
        with open(path, encoding="utf-8") as file:
            if stat.S_IMODE(os.fstat(file.fileno()).st_mode) & 0o077:
                raise JobError(
                    f"{path} holds secrets and other users can read it. Run: chmod 600 {path} (QS-VERIFY-004)"
                )
            given = json.load(file)
    except OSError as error:
        raise JobError(f"{path}: {error.strerror or error}") from None
    except ValueError as error:
        raise error if isinstance(error, JobError) else JobError(f"{path} is not JSON") from None
    if not isinstance(given, dict):
        raise JobError(f"{path} is not a JSON object (QS-VERIFY-004)")
    for name, kind in _TYPES.items():
        is_needed = not own or name not in _OPTIONAL or name in given
        if is_needed and (not isinstance(given.get(name), kind) or not given[name]):
            raise JobError(f"{path}: {name!r} is missing or not of type {kind.__name__} (QS-VERIFY-004)")
    unknown = set(given) - set(_TYPES) - {"phase", "fence", "bounds", "ship", *_ACCEPTED, *own}
    unknown |= {f"views.{name}" for name in set(given["views"]) - set(views)}
    unknown |= {f"bounds.{name}" for name in set(given.get("bounds") or {}) - set(Bounds._fields)}
    if unknown:
        raise JobError(f"{path}: unknown key {sorted(unknown)[0]!r} (QS-VERIFY-004)")
    return Job(
        os.path.dirname(os.path.abspath(path)),
        given["nonce"],
        given.get("gate"),
        given.get("phase"),
        given["cluster_id"],
        given["output"],
        _digest_key(given["digest_key_file"]) if "digest_key_file" in given else b"",
        given.get("fence") or {},
        given["views"],
        Bounds(**(given.get("bounds") or {})),
        bool(given.get("ship")),
        bool(given.get("accept_unverified_copy")),
        _texts(path, given, "foreign"),
        _texts(path, given, "accept_not_compared"),
        {name: given.get(name) for name in own},
        tuple(sorted(_secrets(given["views"]), key=len, reverse=True)),
    )


_TYPES = {"nonce": str, "gate": str, "cluster_id": str, "output": str, "digest_key_file": str, "views": dict}
_OPTIONAL = ("gate", "digest_key_file")


_ACCEPTED = ("accept_unverified_copy", "foreign", "accept_not_compared")


def _texts(path: str, given: Mapping[str, Any], name: str) -> Tuple[str, ...]:
    """Return a list of texts of job.json. A text in its place would be taken for its letters."""
    found = given.get(name) or []
    if not isinstance(found, list) or not all(isinstance(text, str) for text in found):
        raise JobError(f"{path}: {name!r} is not a list of texts (QS-VERIFY-004)")
    return tuple(found)


def _digest_key(path: str) -> bytes:
    try:
        with open(path, "rb") as file:
            key = file.read().strip()
    except OSError as error:
        raise JobError(f"digest_key_file {path}: {error.strerror or error} (QS-VERIFY-004)") from None
    if len(key) < 16:
        raise JobError(f"digest_key_file {path} holds fewer than 16 bytes (QS-VERIFY-004)")
    return key


def _secrets(given: Any, is_secret: bool = False) -> Iterator[str]:
    """Yield the passwords in a part of job.json (secrets.security), and whatever else an option calls secret."""
    if isinstance(given, dict):
        for name, value in given.items():
            yield from _secrets(value, is_secret or name == "auth" or "password" in name or "secret" in name)
    elif isinstance(given, list):
        for value in given:
            yield from _secrets(value, is_secret)
    elif is_secret and isinstance(given, str) and given:
        yield given


def views(job: Job) -> List[View]:
    """Return the views of a job. Raises JobError, ViewError (a baseline that cannot be read)."""
    digests = Digests(job.digest_key)
    given = job.view_options
    created: List[View] = []
    try:
        if given.get("zookeeper") is not None:
            created.append(_zookeeper(given["zookeeper"], digests, job))
        if given.get("metadata_log") is not None:
            leader = MetadataLogView(log_source(given["metadata_log"]), digests, rules.LOG, job.ship)
            others = [entry for entry in given.get("metadata_logs") or () if "error" not in entry]
            created.append(leader)
            created += [
                MetadataLogView(log_source(entry), digests, log_name(entry), job.ship, leader) for entry in others
            ]
        created += [_controller(entry, job) for entry in given.get("controllers") or ()]
        if given.get("brokers"):
            created += [_broker(entry, digests, job) for entry in given["brokers"]]
        if given.get("baseline") is not None:
            path = given["baseline"]["path"]
            created += [
                baseline.BaselineView(path, of, job.cluster_id, job.digest_key, job.ship)
                for of in sorted(baseline.about(path)["states"])
            ]
    except KeyError as error:
        raise JobError(f"views: {error.args[0]!r} is missing (QS-VERIFY-004)") from None
    except (TypeError, ValueError) as error:
        raise JobError(f"views: {error}") from None
    return created


def _encoder_secrets(given: Mapping[str, Any]) -> List[str]:
    return [secret for secret in given.get("password_encoder_secrets") or () if secret]


def _zookeeper(given, digests, job):
    secrets = _encoder_secrets(given)
    if given.get("data_dir"):
        return ZooKeeperFilesView(
            given["data_dir"],
            given["chroot"],
            digests,
            secrets,
            job.cluster_id,
            log_directory=given.get("data_log_dir"),
            at_least=given.get("at_least") or 0,
            foreign=bool(job.foreign),
        )
    return ZooKeeperView(
        given["connect"],
        given.get("client"),
        digests,
        secrets,
        given.get("max_rate"),
        timeout=job.bounds.request_timeout_s,
        cluster_id=job.cluster_id,
        max_latency_ms=given.get("max_latency_ms"),
        ship=job.ship,
        foreign=bool(job.foreign),
    )


def _broker(given, digests, job):
    option = f"brokers.{given['id']}.client"
    security = Security.from_options(given.get("client"), option)
    if job.ship:
        security = security.with_content()
    address = addresses.parse_host_port(given["address"])
    timeout = job.bounds.request_timeout_s
    settings = job.view_options.get("settings") or ()
    return BrokerView(given["id"], address, digests, security, job.cluster_id, timeout, settings)


def _controller(given, job):
    security = Security.from_options(given.get("client"), f"controllers.{given['id']}.client")
    if job.ship:
        security = security.with_content()
    address, settings = addresses.parse_host_port(given["address"]), job.view_options.get("settings") or ()
    return ControllerView(given["id"], address, security, job.bounds.request_timeout_s, settings)


def copy_source(job: Job) -> CopySource | None:
    """Return what shows ZooKeeper as the copy found it, None where the job does not say. Raises JobError."""
    given = job.view_options.get("copy_source")
    if given is None:
        return None
    digests = Digests(job.digest_key)
    if "error" in given:
        return CopySource(None, 0, str(given["error"]), "", job.cluster_id, digests, ())
    try:
        processed = {int(given["snapshot"]): int(given["before"])}
        files = trees.Files(given["host"], "", "", processed, given["archive"], given["sha256"])
        secrets = _encoder_secrets(job.view_options.get("zookeeper") or {})
        return CopySource(files, int(given["before"]), "", given["chroot"], job.cluster_id, digests, secrets)
    except KeyError as error:
        raise JobError(f"views.copy_source: {error.args[0]!r} is missing (QS-VERIFY-004)") from None


def log_name(entry: Dict[str, Any]) -> str:
    """Return the name of the view of an entry of metadata_logs."""
    return f"{rules.LOG}:{entry['node']}"


def logs_not_read(job: Job) -> Dict[str, str]:
    """Return {view: why} of the voters whose log is not given."""
    entries = job.view_options.get("metadata_logs") or ()
    return {log_name(entry): str(entry["error"]) for entry in entries if "error" in entry}


def log_source(given: Dict[str, Any]) -> LogSource:
    """Return the source for {"archive", "sha256", "end_offset"} or {"directory", "end_offset"}. Raises JobError."""
    if not isinstance(given.get("end_offset"), int):
        raise JobError("metadata_log.end_offset is missing: give the high watermark of the quorum (QS-VERIFY-004)")
    if bool(given.get("archive")) == bool(given.get("directory")) or bool(given.get("archive")) != bool(
        given.get("sha256")
    ):
        raise JobError("metadata_log: give either 'directory', or 'archive' with its 'sha256' (QS-VERIFY-004)")
    return LogSource(given["end_offset"], given.get("directory"), given.get("archive"), given.get("sha256"))


__all__ = ["Bounds", "Job", "JobError", "ViewError", "load", "log_source", "logs_not_read", "views"]
