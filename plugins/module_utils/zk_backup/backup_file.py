# Copyright: (c) 2026, Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A backup of Kafka's subtree in ZooKeeper: its file.

The file is gzip over JSON lines in UTF-8, in this order:

1. the header: ``{"quorumshift_zk_backup": 1, "cluster_id", "chroot", "servers", "taken_at" (UTC), "tool",
   "zxid_start"}``;
2. one line for each ancestor of the chroot from ``/`` down (none without a chroot):
   ``{"ancestor": path from ZooKeeper's root, "data", "acl", "stat"}``;
3. one line for each znode from the chroot down, parents before children, each path once:
   ``{"path": path below the chroot, "data", "acl", "stat"}``;
4. the trailer: ``{"end": {"znodes", "ephemerals", "data_bytes", "zxid", "zxid_end", "moving", "sha256"}}``.

``data`` is null for null data, ``{"text": ...}`` where the bytes are UTF-8, else ``{"base64": ...}``. ``acl`` lists
``scheme:id:perms`` as zkCli's setAcl takes them. ``stat`` has ZooKeeper's own field names; an ``ephemeralOwner``
other than 0 marks an ephemeral znode, which a restore leaves out. ``sha256`` is that of all the uncompressed bytes
before the trailer's line. The tree in the file is the one of transaction ``zxid``, except the paths that ``moving``
counts by kind and names: they changed while the last check ran and hold a later state, of ``zxid_end`` at most.
"""

from __future__ import annotations

import base64
import gzip
import hashlib
import json
import os
import zlib

from ansible_collections.quorumshift.kafka.plugins.module_utils.formats import znodes

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
    """The backup cannot be taken or does not hold; the message says what and where."""


class BackupBroken(BackupError):
    """The file is torn, altered, or no backup of this format."""


class BackupForeign(BackupError):
    """The file is whole, but of another cluster than the live one."""


def line(node, key="path"):
    """A Znode as its line of the file (bytes, with the newline)."""
    record = {
        key: node.path,
        "data": _data_out(node.data),
        "acl": [_acl_out(entry) for entry in node.acl],
        "stat": {field: getattr(node.stat, field) for field in _STAT_FIELDS},
    }
    return json_line(record)


def znode(record, key="path"):
    """The opposite of :func:`line`, from the parsed line. Raises KeyError, TypeError or ValueError."""
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
    """A backup file. ``header`` and ``trailer`` are there after :meth:`check`."""

    def __init__(self, path):
        self.path = path
        self.header = None
        self.trailer = None

    def check(self):
        """Reads the whole file: format, digest, counts. Returns itself; raises BackupBroken or OSError."""
        digest = hashlib.sha256()
        counts = Counts()
        header = trailer = None
        for raw in self._lines():
            if trailer is not None:
                raise self._broken("goes on after its trailer")
            record = self._parse(raw)
            if header is None:
                if record.get("quorumshift_zk_backup") != FORMAT:
                    raise self._broken(f"is no ZooKeeper backup of format {FORMAT}")
                header = record
            elif "end" in record:
                trailer = record["end"]
                continue
            elif "path" in record:
                counts.add(self._znode(record))
            elif "ancestor" not in record:
                raise self._broken("has a line that is neither a znode nor the trailer")
            digest.update(raw)
        if trailer is None:
            raise self._broken("is torn: it ends before its trailer")
        if trailer.get("sha256") != digest.hexdigest():
            raise self._broken("was altered: its content does not have the SHA-256 of its trailer")
        if any(trailer.get(name) != value for name, value in counts.totals().items()):
            raise self._broken("was altered: its trailer counts other znodes than it holds")
        self.header, self.trailer = header, trailer
        return self

    def znodes(self):
        """Yields the Znodes from the chroot down."""
        for raw in self._lines():
            record = self._parse(raw)
            if "path" in record:
                yield self._znode(record)

    def facts(self):
        """What may be told of a checked file."""
        return {
            "path": self.path,
            "sha256": file_sha256(self.path),
            "file_bytes": os.path.getsize(self.path),
            **{name: self.header[name] for name in ("cluster_id", "taken_at")},
            **{name: self.trailer[name] for name in ("zxid", "znodes", "ephemerals", "data_bytes")},
        }

    def ancestors(self):
        """The Znodes above the chroot, from ZooKeeper's root down."""
        found = []
        for raw in self._lines():
            record = self._parse(raw)
            if "ancestor" in record:
                found.append(znode(record, "ancestor"))
            elif "path" in record:
                break
        return found

    def _lines(self):
        with open(self.path, "rb") as packed:
            try:
                yield from gzip.GzipFile(fileobj=packed, mode="rb")
            except EOFError:
                raise self._broken("is torn: it ends within its compressed data") from None
            except (gzip.BadGzipFile, zlib.error) as error:
                raise self._broken(f"cannot be unpacked ({error})") from None

    def _parse(self, raw):
        try:
            record = json.loads(raw.decode("utf-8"))
        except ValueError:
            raise self._broken("has a line that is not JSON") from None
        if not isinstance(record, dict):
            raise self._broken("has a line that is no object")
        return record

    def _znode(self, record):
        try:
            return znode(record)
        except (KeyError, TypeError, ValueError, AttributeError):
            raise self._broken("has a znode that cannot be read") from None

    def _broken(self, what):
        return BackupBroken(f"{self.path} {what}: do not rely on it")


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
    """The SHA-256 of a file, as sha256sum prints it."""
    digest = hashlib.sha256()
    with open(path, "rb") as file:
        for chunk in iter(lambda: file.read(1 << 20), b""):
            digest.update(chunk)
    return digest.hexdigest()
