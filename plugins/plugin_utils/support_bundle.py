# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The files of a support bundle: redact them, list them with their checksums, pack them, and search the packed bundle.

Nothing here reads a host or knows the run; `collect_runs` and `write` alone touch files, of the control node.
"""

from __future__ import annotations

import fnmatch
import gzip
import hashlib
import io
import json
import os
import re
import stat
import tarfile
from typing import Any, Callable, Dict, Iterable, List, Mapping, NamedTuple, Sequence

from ansible_collections.quorumshift.kafka.plugins.module_utils.secrets import masking, redaction
from ansible_collections.quorumshift.kafka.plugins.module_utils.secrets.seal import MASK, mask_value
from ansible_collections.quorumshift.kafka.plugins.module_utils.settings import properties
from ansible_collections.quorumshift.kafka.plugins.plugin_utils import report_files, run_artifacts

README, MANIFEST, SUMS = "README.txt", "MANIFEST.json", "SHA256SUMS"
VERSION = 1  # of the manifest
MOST_BYTES, MOST_BYTES_OF_RUNS = 16 << 20, 256 << 20
_SUFFIXES = (".json", ".jsonl", ".diff", ".txt", ".log", ".md", ".yml")
_RUN = re.compile(r"\d{8}T\d{6}-[0-9a-f]+")
_TORN = re.compile(
    r"\A[A-Za-z0-9+/=\s]+-----END [A-Z0-9 ]+-----"
)  # a key whose begin is above the lines that were read
_NO_NAME = re.compile(r"[^\w.-]+|^\.+")
_REDACTED = "REDACTED"  # in names of files

_README = """\
Support bundle of Quorumshift
=============================

Cluster {cluster}, made at {at} by quorumshift.kafka {collection}.

What is in it
-------------
status.txt, status.json   the status of the cluster at that time
versions.json             versions on the control node and on the hosts
inventory.json            the variables of this collection, by host
hosts/HOST/               facts of the node, its properties file, the ends of its log and of its unit's journal
runs/RUN/                 journal, plans, diffs and results of the newest runs
MANIFEST.json             each file: size, SHA-256, source, number of replacements; what was left out and why
SHA256SUMS                the checksums, for `sha256sum -c`

What was replaced
-----------------
{mask} is in the place of a secret. Replaced were
- the values of secret settings, by their names: in properties files, JAAS, JSON, options of commands and log lines;
- passwords in URLs, PEM blocks, and headers of HTTP authorization;
- values that are secret in the inventory or in a node's properties file, wherever they are: plain, escaped,
  URL-encoded or in base64. {searched} were searched for, in the packed bundle too, which had none.{short}{hosts}

What is still in it
-------------------
Names of topics, consumer groups and principals, user names, paths, and settings that are not secret.
{addresses}A secret that is in no inventory variable and no properties file of a node is not known here. If its syntax
does not show it either, it is still in the bundle. Look through the logs before you send it.

How to check it
---------------
    sha256sum -c SHA256SUMS
"""

_HIDDEN = """
- host names and IP addresses: one name has one pseudonym in all files. A name stays that is neither in the inventory,
  nor in the nodes' addresses, nor in a domain of these."""


class Source(NamedTuple):
    """A file as it was read. `path`: in the bundle; `source`: where it comes from."""

    path: str
    source: str
    data: bytes


class LeftOut(NamedTuple):
    """What is not in the bundle. `missing`: it should be, but could not be read."""

    what: str
    why: str
    missing: bool = True


class Built(NamedTuple):
    """The content of each file of the bundle by its path; what is left out; how many places were replaced."""

    files: Dict[str, bytes]
    left_out: List[LeftOut]
    replaced: int


class SupportError(ValueError):
    """There can be no bundle; the text says why."""


def to_json(value: Any) -> bytes:
    """Return a value as the content of a file."""
    return f"{json.dumps(value, indent=1, ensure_ascii=False, default=str)}\n".encode("utf-8", "surrogatepass")


def file_name(name: str) -> str:
    """Return a host's name as the name of a directory."""
    return _NO_NAME.sub("_", name) or "_"


class Redactor(NamedTuple):
    """What to remove from each file. `hosts`: None where host names stay."""

    secrets: redaction.Secrets
    hosts: redaction.Hosts | None = None

    def by_value(self, text: str) -> redaction.Redacted:
        """Return a text without known secrets and, where they are hidden, without hosts."""
        text, replaced = self.secrets.replace(text)
        if self.hosts is None:
            return redaction.Redacted(text, replaced)
        text, of_hosts = self.hosts.replace(text)
        return redaction.Redacted(text, replaced + of_hosts)

    def file(self, source: Source) -> redaction.Redacted:
        """Return a file's text without secrets, by its syntax and by value. Raises PropertiesError."""
        suffix = os.path.splitext(source.path)[1]
        text, masked = _BY_SYNTAX.get(suffix, _mask_text)(source.data)
        text, replaced = self.by_value(text)
        return redaction.Redacted(text, masked + replaced)

    def name(self, path: str) -> str:
        """Return the path of a file in the bundle without secrets and hosts."""
        return self.by_value(path).text.replace(MASK, _REDACTED)

    def find_survivor(self, text: str) -> bool:
        """Return whether a text still has what no file may show."""
        return self.secrets.find_survivor(text) or (self.hosts is not None and self.hosts.find_survivor(text))


def _mask_text(data: bytes) -> tuple[str, int]:
    text = properties.decode(data)
    masked = masking.mask_syntax(_TORN.sub(MASK, text))
    return masked, _count(text, masked)


def _mask_json(data: bytes) -> tuple[str, int]:
    try:
        value = json.loads(data)
    except ValueError:  # a killed run may leave an incomplete file
        return _mask_text(data)
    masked, count = redaction.mask_named(value)
    return to_json(masked).decode("utf-8", "surrogatepass"), count


def _mask_lines(data: bytes) -> tuple[str, int]:
    lines, total = [], 0
    for line in data.splitlines():
        try:
            masked, count = redaction.mask_named(json.loads(line))
            lines.append(json.dumps(masked, ensure_ascii=False))
        except ValueError:
            text, count = _mask_text(line)
            lines.append(text)
        total += count
    return "".join(f"{line}\n" for line in lines), total


def _mask_properties(data: bytes) -> tuple[str, int]:
    changed = [0]

    def counted(before: str, after: str) -> str:
        changed[0] += before != after
        return after

    text = properties.rewrite(
        data,
        lambda key, value: counted(value, mask_value(key, value)),
        lambda line: counted(line, masking.mask_comment(line)),
    )
    return text, changed[0]


def _mask_diff(data: bytes) -> tuple[str, int]:
    text = properties.decode(data)
    masked = "".join(f"{line.text}\n" for line in report_files.diff(text))
    return masked, _count(text, masked)


def _count(before: str, after: str) -> int:
    """Return how many places were masked: at least one where the text changed."""
    return 0 if before == after else max(after.count(MASK) - before.count(MASK), 1 if MASK in after else 0)


_BY_SYNTAX: Mapping[str, Callable[[bytes], tuple[str, int]]] = {
    ".json": _mask_json,
    ".jsonl": _mask_lines,
    ".properties": _mask_properties,
    ".diff": _mask_diff,
}


def build(
    sources: Iterable[Source],
    left_out: Iterable[LeftOut],
    redactor: Redactor,
    about: Mapping[str, str],
    patterns: Sequence[str] = (),
) -> Built:
    """Return the files of the bundle in the order of their paths.

    `about`: {cluster, at, collection}; `patterns`: shell patterns of paths that are left out.
    """
    files: dict[str, bytes] = {}
    rows, others = [], list(left_out)
    for source in sorted(sources, key=lambda source: source.path):
        path = redactor.name(source.path)
        if any(fnmatch.fnmatchcase(name, pattern) for name in (source.path, path) for pattern in patterns):
            others.append(LeftOut(source.path, "support_leave_out names it", False))
            continue
        try:
            text, replaced = redactor.file(source)
        except properties.PropertiesError as error:  # as text, a secret of a plugin would not be found
            others.append(LeftOut(source.path, f"it is no properties file: {error}"))
            continue
        path = _free(path, files)
        files[path] = text.encode("utf-8", "surrogatepass")
        rows.append({"path": path, **_sums(files[path]), "source": source.source, "replaced": replaced})
    manifest = {
        "version": VERSION,
        **about,
        "files": sorted(rows, key=lambda row: row["path"]),
        "left_out": [item._asdict() for item in others],
        "secrets": {"searched": len(redactor.secrets.values), "too_short": redactor.secrets.short},
        "hosts_hidden": redactor.hosts is not None,
    }
    readme = _README.format(mask=MASK, searched=len(redactor.secrets.values), **about, **_remarks(redactor))
    files[MANIFEST] = _own(redactor, json.dumps(manifest, indent=1, ensure_ascii=False, default=str))
    files[README] = _own(redactor, readme)
    files[SUMS] = "".join(f"{_sums(files[path])['sha256']}  {path}\n" for path in sorted(files)).encode()
    return Built({path: files[path] for path in sorted(files)}, others, sum(row["replaced"] for row in rows))


def _own(redactor: Redactor, text: str) -> bytes:
    return f"{redactor.by_value(text).text.rstrip()}\n".encode("utf-8", "surrogatepass")


def _sums(data: bytes) -> dict[str, Any]:
    return {"bytes": len(data), "sha256": hashlib.sha256(data).hexdigest()}


def _remarks(redactor: Redactor) -> dict[str, str]:
    short = redactor.secrets.short
    counted = f"{short} more is" if short == 1 else f"{short} more are"
    hidden = redactor.hosts is not None
    return {
        "short": f"\n  {counted} shorter than {redaction.SHORTEST} characters, and replaced only by their names."
        if short
        else "",
        "hosts": _HIDDEN if hidden else "",
        "addresses": "" if hidden else "Host names and IP addresses.\n",
    }


def _free(path: str, files: Mapping[str, bytes]) -> str:
    """Return a path that no file has: two may be equal without what was replaced in them."""
    stem, suffix = os.path.splitext(path)
    names = (path, *(f"{stem}-{number}{suffix}" for number in range(2, len(files) + 3)))
    return next(name for name in names if name not in files and name not in (README, MANIFEST, SUMS))


def pack(files: Mapping[str, bytes], root: str, moment: int) -> bytes:
    """Return a tar.gz that depends on its input alone: no names of owners, one time, `moment` in epoch seconds, for all
    files."""
    plain = io.BytesIO()
    with tarfile.open(fileobj=plain, mode="w", format=tarfile.PAX_FORMAT) as archive:
        for path in sorted(files):
            member = tarfile.TarInfo(f"{root}/{path}")
            member.size, member.mtime, member.mode = len(files[path]), moment, 0o600
            archive.addfile(member, io.BytesIO(files[path]))
    return gzip.compress(plain.getvalue(), mtime=moment)


def require_clean(packed: bytes, redactor: Redactor) -> None:
    """Raise SupportError where a packed bundle still has a secret, or a file that its checksums do not have. The
    message names the file alone."""
    found: dict[str, bytes] = {}
    with tarfile.open(fileobj=io.BytesIO(packed), mode="r:gz") as archive:
        for member in archive:
            stream = archive.extractfile(member)
            found[member.name.partition("/")[2]] = stream.read() if stream else b""
    # Names that are the same in each bundle show nothing
    dirty = [path for path in found if redactor.find_survivor(found[path].decode("utf-8", "surrogatepass"))]
    dirty += [path for path in found if path not in (README, MANIFEST, SUMS) and redactor.find_survivor(path)]
    if dirty:
        shown = [redactor.name(path) for path in dict.fromkeys(dirty)]
        raise SupportError(
            f"A secret or a hidden host is still in {', '.join(shown)} after the replacement, so there is no support "
            f"bundle. Leave these files out: -e support_leave_out={','.join(shown)} (QS-HOST-003)"
        )
    wanted = "".join(f"{_sums(found[path])['sha256']}  {path}\n" for path in sorted(found) if path != SUMS)
    if found.get(SUMS, b"").decode() != wanted:
        raise SupportError("The support bundle does not have its own checksums. Run again (QS-HOST-003)")


def write(path: str, packed: bytes, redactor: Redactor) -> None:
    """Write a bundle that only its owner can read, and search what is on the disk. Raises SupportError, OSError; then
    there is no file."""
    require_clean(packed, redactor)  # nothing that was not searched is ever on the disk
    handle = os.open(path + run_artifacts.UNFINISHED, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
    try:
        with os.fdopen(handle, "wb") as stream:
            os.fchmod(stream.fileno(), 0o600)
            stream.write(packed)
            stream.flush()
            os.fsync(stream.fileno())
        with open(path + run_artifacts.UNFINISHED, "rb") as stream:
            again = stream.read()
        if again != packed:
            raise SupportError("The support bundle could not be read back from the disk. Run again (QS-HOST-003)")
        os.replace(path + run_artifacts.UNFINISHED, path)
    except BaseException:
        os.unlink(path + run_artifacts.UNFINISHED)
        raise


def collect_runs(cluster: str, count: int) -> tuple[list[Source], list[LeftOut]]:
    """Return the artifacts of the newest runs in the directory of a cluster, and what of them is left out."""
    sources: list[Source] = []
    left_out: list[LeftOut] = []
    try:
        names = sorted((name for name in os.listdir(cluster) if _RUN.fullmatch(name)), reverse=True)
    except FileNotFoundError:
        return [], [LeftOut("runs", "there are no run artifacts of this cluster here", False)]
    except OSError as error:
        return [], [LeftOut("runs", f"{cluster}: {error.strerror}")]
    names = [name for name in names if os.path.isdir(os.path.join(cluster, name))]
    skipped: dict[tuple[str, str], int] = {}
    total = 0
    for run in names[: max(0, count)]:
        for directory, folders, files in os.walk(os.path.join(cluster, run)):
            folders.sort()
            for file in sorted(files):
                path = os.path.join(directory, file)
                shown = os.path.join("runs", os.path.relpath(path, cluster))
                try:
                    why = _why_not(path, total)
                    data = b"" if why else _read(path)
                except OSError as error:
                    left_out.append(LeftOut(shown, error.strerror or str(error)))
                    continue
                if why:
                    group = os.path.dirname(shown), why
                    skipped[group] = skipped.get(group, 0) + 1
                    continue
                total += len(data)
                sources.append(Source(shown, f"run artifacts, {os.path.relpath(path, cluster)}", data))
    left_out += [LeftOut(f"{number} in {folder}", why, False) for (folder, why), number in sorted(skipped.items())]
    if names[max(0, count) :]:
        left_out.append(LeftOut(f"{len(names) - max(0, count)} older runs", f"support_runs is {count}", False))
    return sources, left_out


def _why_not(path: str, total: int) -> str:
    """Return why a file of a run is not included, "" if it is."""
    status = os.lstat(path)
    if not stat.S_ISREG(status.st_mode):
        return "no regular file"
    suffix = os.path.splitext(path)[1]
    if suffix == ".html":
        return "a page that is made from the other files"
    if suffix not in _SUFFIXES:
        return f"data ({suffix or 'no suffix'})"
    if status.st_size > MOST_BYTES:
        return f"more than {MOST_BYTES >> 20} MiB"
    return f"the runs have more than {MOST_BYTES_OF_RUNS >> 20} MiB" if total > MOST_BYTES_OF_RUNS else ""


def _read(path: str) -> bytes:
    with open(os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC), "rb") as stream:
        return stream.read()
