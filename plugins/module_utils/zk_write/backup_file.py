# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The file format of a backup of Kafka's subtree in ZooKeeper.

The file is gzip over JSON lines in UTF-8, in this order:

1. the header: ``{"quorumshift_zk_backup": 1, "cluster_id", "chroot", "servers", "taken_at" (UTC), "tool",
   "zxid_start"}``;
2. one line for each ancestor of the chroot from ``/`` down (none without a chroot):
   ``{"ancestor": path from ZooKeeper's root, "data", "acl", "stat"}``;
3. one line for each znode from the chroot down, parents before children, each path once:
   ``{"path": path below the chroot, "data", "acl", "stat"}``;
4. the trailer: ``{"end": {"znodes", "ephemerals", "data_bytes", "zxid", "zxid_end", "moving", "sha256"}}``.

``data`` is null for null data, ``{"text": ...}`` if the bytes are UTF-8, else ``{"base64": ...}``. ``acl`` lists
``scheme:id:perms`` as in zkCli's setAcl. ``stat`` has ZooKeeper's own field names; an ``ephemeralOwner`` other than 0
marks an ephemeral znode, which a restore leaves out. ``sha256`` covers all uncompressed bytes before the trailer's
line. The file holds the tree at transaction ``zxid``, except the paths in ``moving`` (counted by kind, and named): they
changed during the last check and have a later state, of ``zxid_end`` at most.
"""

from __future__ import annotations

import base64
import gzip
import hashlib
import json
import os
import zlib

from ansible_collections.quorumshift.kafka.plugins.module_utils.formats.zookeeper import znodes

FORMAT = 1
_STAT_FIELDS = (
    "czxid",
    "mzxid",
    "pzxid",
    "ctime",
    "mtime",
    "version",
    "cversion",
    "aversion",
    "ephemeralOwner",
    "dataLength",
    "numChildren",
)
_PERMS = ((4, "c"), (8, "d"), (1, "r"), (2, "w"), (16, "a"))


class BackupError(Exception):
    """A backup cannot be taken or is invalid; the message names the file or znode and the reason."""


class BackupBroken(BackupError):
    """The file is incomplete, altered, or not a backup of this format."""


class BackupForeign(BackupError):
    """The file is valid, but of another cluster than the live one."""


def line(node, key="path"):
    """Return a Znode's line of the file (bytes, with the newline)."""
    record = {
        key: node.path,
        "data": _data_out(node.data),
        "acl": [_acl_out(entry) for entry in node.acl],
        "stat": {field: getattr(node.stat, field) for field in _STAT_FIELDS},
    }
    return json_line(record)


def znode(record, key="path"):
    """Return the Znode of a parsed line. Raises KeyError, TypeError or ValueError."""
    return znodes.Znode(
        record[key],
        _data_in(record["data"]),
        [_acl_in(text) for text in record["acl"]],
        znodes.Stat(**record["stat"]),
    )


def json_line(value):
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode("utf-8") + b"\n"


def _data_out(data):
    if data is None:
        return None
    try:
        return {"text": data.decode("utf-8")}
    except UnicodeDecodeError:
        return {"base64": base64.b64encode(data).decode("ascii")}


def _data_in(value):
    if value is None:
        return None
    if "text" in value:
        return value["text"].encode("utf-8")
    return base64.b64decode(value["base64"], validate=True)


def _acl_out(entry):
    perms = "".join(letter for bit, letter in _PERMS if entry["perms"] & bit)
    return "{}:{}:{}".format(entry["scheme"], entry["id"], perms)


def _acl_in(text):
    scheme, rest = text.split(":", 1)
    identity, perms = rest.rsplit(":", 1)
    bits = {letter: bit for bit, letter in _PERMS}
    return {"perms": sum(bits[letter] for letter in perms), "scheme": scheme, "id": identity}


class Backup:
    """A backup file. :meth:`check` sets ``header`` and ``trailer``."""

    def __init__(self, path):
        self.path = path
        self.header = None
        self.trailer = None

    def check(self):
        """Check the file's format, digest and counts, and return self. Raises BackupBroken, OSError."""
        digest = hashlib.sha256()
        counts = Counts()
        header = trailer = None
        for raw in self._lines():
            if trailer is not None:
                raise self._broken("continues after its trailer (QS-BACKUP-002)")
            record = self._parse(raw)
            if header is None:
                if record.get("quorumshift_zk_backup") != FORMAT:
                    raise self._broken(f"is not a ZooKeeper backup of format {FORMAT} (QS-BACKUP-002)")
                header = record
            elif "end" in record:
                trailer = record["end"]
                continue
            elif "path" in record:
                counts.add(self._znode(record))
            elif "ancestor" not in record:
                raise self._broken("has a line that is neither a znode nor the trailer (QS-BACKUP-002)")
            digest.update(raw)
        if trailer is None:
            raise self._broken("is incomplete: it ends before its trailer (QS-BACKUP-002)")
        if trailer.get("sha256") != digest.hexdigest():
            raise self._broken("was altered: the SHA-256 of its content differs from its trailer's (QS-BACKUP-002)")
        if any(trailer.get(name) != value for name, value in counts.totals().items()):
            raise self._broken("was altered: the number of its znodes differs from its trailer's (QS-BACKUP-002)")
        self.header, self.trailer = header, trailer
        return self

    def znodes(self):
        """Yield the Znodes from the chroot down."""
        for raw in self._lines():
            record = self._parse(raw)
            if "path" in record:
                yield self._znode(record)

    def facts(self):
        """Return the facts of a checked file that contain no secrets."""
        return {
            "path": self.path,
            "sha256": file_sha256(self.path),
            "file_bytes": os.path.getsize(self.path),
            **{name: self.header[name] for name in ("cluster_id", "taken_at")},
            **{name: self.trailer[name] for name in ("zxid", "znodes", "ephemerals", "data_bytes")},
        }

    def ancestors(self):
        """Return the Znodes above the chroot, from ZooKeeper's root down."""
        nodes = []
        for raw in self._lines():
            record = self._parse(raw)
            if "ancestor" in record:
                nodes.append(znode(record, "ancestor"))
            elif "path" in record:
                break
        return nodes

    def _lines(self):
        with open(self.path, "rb") as packed:
            try:
                yield from gzip.GzipFile(fileobj=packed, mode="rb")
            except EOFError:
                raise self._broken("is incomplete: its compressed data end too early (QS-BACKUP-002)") from None
            except (gzip.BadGzipFile, zlib.error) as error:
                raise self._broken(f"cannot be unpacked ({error}) (QS-BACKUP-002)") from None

    def _parse(self, raw):
        try:
            record = json.loads(raw.decode("utf-8"))
        except ValueError:
            raise self._broken("has a line that is not JSON (QS-BACKUP-002)") from None
        if not isinstance(record, dict):
            raise self._broken("has a line that is not an object (QS-BACKUP-002)")
        return record

    def _znode(self, record):
        try:
            return znode(record)
        except (KeyError, TypeError, ValueError, AttributeError):
            raise self._broken("has a znode that cannot be read (QS-BACKUP-002)") from None

    def _broken(self, what):
        return BackupBroken(f"{self.path} {what}: do not use it")


class Counts:
    def __init__(self):
        self.znodes = self.ephemerals = self.data_bytes = 0

    def add(self, node):
        self.znodes += 1
        self.ephemerals += node.stat.ephemeralOwner != 0
        self.data_bytes += len(node.data or b"")

    def totals(self):
        return {"znodes": self.znodes, "ephemerals": self.ephemerals, "data_bytes": self.data_bytes}


def file_sha256(path):
    """Return the SHA-256 of a file, as sha256sum prints it."""
    digest = hashlib.sha256()
    with open(path, "rb") as file:
        for chunk in iter(lambda: file.read(1 << 20), b""):
            digest.update(chunk)
    return digest.hexdigest()
