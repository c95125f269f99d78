# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The input of a job: checks job.json by job.schema.json, and creates the views of metadata_parity.

The file holds connection secrets: 0600 in a directory of 0700; its writer removes it. Its content reaches the tasks
inside their function, never Spark's configuration, plans or logs.
"""

from __future__ import annotations

import functools
import json
import os
import pkgutil
import stat
from typing import Any, Dict, Iterator, List, Mapping, NamedTuple, Sequence, Tuple

import jsonschema
from ansible_collections.quorumshift.kafka.plugins.module_utils.secrets.security import Security
from ansible_collections.quorumshift.kafka.plugins.module_utils.settings import addresses

from quorumshift_spark import rules
from quorumshift_spark.normal_form import Digests
from quorumshift_spark.views import View, ViewError, baseline, trees
from quorumshift_spark.views.brokers import BrokerView, ControllerView
from quorumshift_spark.views.copy_source import CopySource
from quorumshift_spark.views.metadata_log import LogSource, MetadataLogView
from quorumshift_spark.views.zookeeper import ZooKeeperFilesView, ZooKeeperView


class JobError(ValueError):
    """job.json cannot be used. The message names the key and never shows a value that may be secret."""


class Bounds(NamedTuple):
    """Limits of a job, see the schema."""

    rounds: int = 6
    pause_s: float = 2.0
    fence_s: float = 30.0
    log_refresh_s: float = 0.0
    request_timeout_s: float = 30.0
    read_s: float = 3600.0
    reread_limit: int = 20000
    shown: int = 200


class Job(NamedTuple):
    """A checked job.json. `view_options`: its `views`; the others: see there."""

    directory: str
    nonce: str
    gate: str | None = None
    phase: str | None = None
    cluster_id: str = ""
    output: str = ""
    digest_key: bytes = b""
    fence: Mapping[str, int] = {}
    view_options: Mapping[str, Any] = {}
    bounds: Bounds = Bounds()
    accept_unverified_copy: bool = False
    foreign: Sequence[str] = ()
    accept_not_compared: Sequence[str] = ()
    fingerprint: Dict[str, Any] | None = None
    store: str | None = None

    def __repr__(self) -> str:
        return f"Job(gate={self.gate!r}, nonce={self.nonce!r})"


def read(path: str) -> Dict[str, Any]:
    """Read a job.json that says where its result goes. Raises JobError."""
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
    check(given, "any_job")
    return given


def checked(path: str, given: Mapping[str, Any], name: str) -> Job:
    """Return the job of this name whose job.json at `path` has this content. Raises JobError."""
    check(given, name)
    own = {
        "directory": os.path.dirname(os.path.abspath(path)),
        "digest_key": _digest_key(given["digest_key_file"]) if "digest_key_file" in given else b"",
        "view_options": given["views"],
        "bounds": Bounds(**(given.get("bounds") or {})),
    }
    return Job(**own, **{name: given[name] for name in Job._fields if given.get(name) and name not in own})


@functools.lru_cache(maxsize=None)
def schema() -> Dict[str, Any]:
    """Return the JSON Schema of job.json: each job has its own in `$defs`."""
    return json.loads(pkgutil.get_data("quorumshift_spark", "job.schema.json") or b"")


def check(given: Any, what: str) -> None:
    """Raise JobError where a value is not as the schema's `$defs` say of `what`. The message quotes no text of the
    value, which may be secret."""
    validator = jsonschema.Draft202012Validator({"$ref": f"#/$defs/{what}", "$defs": schema()["$defs"]})
    error = min(validator.iter_errors(given), key=lambda found: [*map(str, found.absolute_path)], default=None)
    if error is None:
        return

    def place(*below: str) -> str:
        return repr(".".join(map(str, (*error.absolute_path, *below))) or "job.json")

    known, said = error.schema.get("properties", {}), error.schema.get("description", "")
    kind, limit, value = error.validator, error.validator_value, error.instance
    if kind in ("oneOf", "anyOf"):
        text, said = f"{place()} needs {said}", ""
    elif kind == "required":
        text, said = f"{place(next(name for name in limit if name not in value))} is missing", ""
    elif kind == "additionalProperties":
        text, said = f"unknown key {place(min(value.keys() - known))}; the keys are {', '.join(known)}", ""
    elif kind in ("minLength", "minItems", "minProperties") or value is None:
        text = f"{place()} is missing"
    elif isinstance(limit, (int, float)):
        text = f"{place()} is {value!r}, not valid: {kind} is {limit}"
    else:
        text = f"{place()} is not {' or '.join(map(str, limit if isinstance(limit, list) else [limit]))}"
    raise JobError(f"{text}{': ' if said else ''}{said} (QS-VERIFY-004)")


def describe(found: Mapping[str, Any], indent: str = "  ") -> Iterator[str]:
    """Yield a line for each key of an object in the schema, for --help."""
    for name, of_name in _plain(found).get("properties", {}).items():
        of = _plain(of_name)
        yield f"{indent}{name:<{max(1, 26 - len(indent))}} {of.get('description', '')}".rstrip()
        yield from describe(of.get("items", of), indent + "  ")


def _plain(found: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return a schema with what it refers to."""
    of = found.get("$ref") or found.get("then", {}).get("$ref")
    if of is None:
        return found
    other = schema()["$defs"][of.rpartition("/")[2]]
    return {**other, **found, "properties": {**found.get("properties", {}), **other.get("properties", {})}}


def _digest_key(path: str) -> bytes:
    try:
        with open(path, "rb") as file:
            key = file.read().strip()
    except OSError as error:
        raise JobError(f"digest_key_file {path}: {error.strerror or error} (QS-VERIFY-004)") from None
    if len(key) < 16:
        raise JobError(f"digest_key_file {path} holds fewer than 16 bytes (QS-VERIFY-004)")
    return key


def secrets(given: Mapping[str, Any]) -> Tuple[str, ...]:
    """Return the passwords in job.json (secrets.security), and whatever else an option calls secret; longest first."""
    return tuple(sorted(_secrets(given.get("views")), key=len, reverse=True))


def _secrets(given: Any, is_secret: bool = False) -> Iterator[str]:
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
            leader = MetadataLogView(log_source(given["metadata_log"]), digests, rules.LOG)
            others = [entry for entry in given.get("metadata_logs") or () if "error" not in entry]
            created.append(leader)
            created += [MetadataLogView(log_source(entry), digests, log_name(entry), leader) for entry in others]
        created += [_controller(entry, job) for entry in given.get("controllers") or ()]
        if given.get("brokers"):
            created += [_broker(entry, digests, job) for entry in given["brokers"]]
        if given.get("baseline") is not None:
            path = given["baseline"]["path"]
            created += [
                baseline.BaselineView(path, of, job.cluster_id, job.digest_key)
                for of in sorted(baseline.about(path)["states"])
            ]
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
        foreign=bool(job.foreign),
    )


def _broker(given, digests, job):
    option = f"brokers.{given['id']}.client"
    security = Security.from_options(given.get("client"), option)
    address = addresses.parse_host_port(given["address"])
    timeout = job.bounds.request_timeout_s
    settings = job.view_options.get("settings") or ()
    return BrokerView(given["id"], address, digests, security, job.cluster_id, timeout, settings)


def _controller(given, job):
    security = Security.from_options(given.get("client"), f"controllers.{given['id']}.client")
    address, settings = addresses.parse_host_port(given["address"]), job.view_options.get("settings") or ()
    return ControllerView(given["id"], address, security, job.bounds.request_timeout_s, settings)


def copy_source(job: Job) -> CopySource | None:
    """Return what shows ZooKeeper as the copy found it, None where the job does not say."""
    given = job.view_options.get("copy_source")
    if given is None:
        return None
    digests = Digests(job.digest_key)
    if "error" in given:
        return CopySource(None, 0, str(given["error"]), "", job.cluster_id, digests, ())
    files = trees.Files(given["host"], "", "", {given["snapshot"]: given["before"]}, given["archive"], given["sha256"])
    of_encoder = _encoder_secrets(job.view_options.get("zookeeper") or {})
    return CopySource(files, given["before"], "", given["chroot"], job.cluster_id, digests, of_encoder)


def log_name(entry: Dict[str, Any]) -> str:
    """Return the name of the view of an entry of metadata_logs."""
    return f"{rules.LOG}:{entry['node']}"


def logs_not_read(job: Job) -> Dict[str, str]:
    """Return {view: why} of the voters whose log is not given."""
    entries = job.view_options.get("metadata_logs") or ()
    return {log_name(entry): str(entry["error"]) for entry in entries if "error" in entry}


def log_source(given: Mapping[str, Any]) -> LogSource:
    """Return the source for a log of job.json."""
    return LogSource(*(given.get(name) for name in ("end_offset", "directory", "archive", "sha256")))


__all__ = ["Bounds", "Job", "JobError", "ViewError", "checked", "log_source", "logs_not_read", "read", "views"]
