# Copyright: (c) 2026, Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A backup of Kafka's subtree in ZooKeeper in one file, and its check against the live tree.

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
import contextlib
import gzip
import hashlib
import json
import os
import stat as stat_module
import time
import zlib
from collections import Counter, deque

from ansible_collections.quorumshift.kafka.plugins.module_utils.formats import znodes
from ansible_collections.quorumshift.kafka.plugins.module_utils.probes import zookeeper

FORMAT = 1
NAMED_PATHS = 100
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


# --- one znode as a line ------------------------------------------------------------------------------


def line(node, key="path"):
    """A Znode as its line of the file (bytes, with the newline)."""
    record = {
        key: node.path,
        "data": _data_out(node.data),
        "acl": [_acl_out(entry) for entry in node.acl],
        "stat": {field: getattr(node.stat, field) for field in _STAT_FIELDS},
    }
    return _json(record)


def znode(record, key="path"):
    """The opposite of :func:`line`, from the parsed line. Raises KeyError, TypeError or ValueError."""
    return znodes.Znode(
        record[key],
        _data_in(record["data"]),
        [_acl_in(text) for text in record["acl"]],
        znodes.Stat(**record["stat"]),
    )


def _json(value):
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


# --- reading a file -----------------------------------------------------------------------------------


class Backup:
    """A backup file. ``header`` and ``trailer`` are there after :meth:`check`."""

    def __init__(self, path):
        self.path = path
        self.header = None
        self.trailer = None

    def check(self):
        """Reads the whole file: format, digest, counts. Returns itself; raises BackupBroken or OSError."""
        digest = hashlib.sha256()
        counts = _Counts()
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
        return BackupBroken(f"{self.path} {what}; do not rely on it, take another backup")


class _Counts:
    def __init__(self):
        self.znodes = self.ephemerals = self.data_bytes = 0

    def add(self, node):
        self.znodes += 1
        self.ephemerals += node.stat.ephemeralOwner != 0
        self.data_bytes += len(node.data or b"")

    def totals(self):
        return {"znodes": self.znodes, "ephemerals": self.ephemerals, "data_bytes": self.data_bytes}


# --- taking -------------------------------------------------------------------------------------------


def ancestors_of(chroot):
    """The paths above a chroot: ``["/", "/a"]`` for ``/a/b``, none for no chroot."""
    names = chroot.strip("/").split("/") if chroot.strip("/") else []
    return ["/" + "/".join(names[:depth]) for depth in range(len(names))]


def survey(client, window=500, max_rate=None, timeout=30.0):
    """What :func:`take` would write, without a file: ``{"cluster_id", "znodes", "ephemerals", "data_bytes"}``."""
    reader = zookeeper.Reader(client, window, max_rate, timeout)
    counts = _Counts()
    result = {"cluster_id": _cluster_id(reader)}
    for node in reader.tree():
        _refuse_masked(node, client.chroot)
        counts.add(node)
    result.update(counts.totals())
    return result


def take(client, path, servers, tool, ancestors=(), window=500, max_rate=None, rounds=5, timeout=30.0):
    """Writes the subtree below the client's chroot into ``path``, a new file.

    :arg servers: connect string as it is to stand in the header; ``tool`` names what took the backup.
    :arg ancestors: Znodes above the chroot, read over a connection without chroot (:func:`ancestors_of`).
    :arg rounds: how often the tree is checked again for what moved meanwhile. The checks end early with one that
        saw nothing move but what moves by itself (:data:`znodes.VOLATILE_KINDS` and ephemerals).
    :returns: ``{"path", "sha256" (of the file), "file_bytes", "cluster_id", "zxid", "znodes", "ephemerals",
        "data_bytes", "moving": {"by_kind", "paths"}, "rounds", "vanished"}``.
    :raises BackupError: the file exists, its directory is open to others, ACLs are masked.
    :raises zookeeper.ZooKeeperError: the tree cannot be read; nothing is left behind then.
    """
    directory = _private_directory(path)
    if os.path.lexists(path):
        raise BackupError(f"{path} exists and is not overwritten")
    reader = zookeeper.Reader(client, window, max_rate, timeout)
    header = {
        "quorumshift_zk_backup": FORMAT,
        "cluster_id": _cluster_id(reader),
        "chroot": client.chroot or "/",
        "servers": servers,
        "taken_at": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        "tool": tool,
        "zxid_start": reader.zxid(),
    }
    for node in ancestors:
        _refuse_masked(node, "")
    stem = os.path.join(directory, f".{os.path.basename(path)}.{os.getpid()}")
    with _scratch(stem + ".walk") as walk, _scratch(stem + ".part") as part:
        with _Packed(walk) as out:
            for node in reader.tree():
                _refuse_masked(node, client.chroot)
                out.write(line(node))
        horizon = reader.zxid()
        overlay, moving = {}, []
        settled = 0
        while settled < rounds:
            settled += 1
            if moving:
                horizon = reader.zxid()
            moved, acl_set = _moved(reader, lambda: _laid_over(walk, overlay))
            for node in moved.values():
                if node is not None:
                    _refuse_masked(node, client.chroot)
            moving = sorted(acl_set.union(_later(reader, moved, horizon)))
            overlay.update(moved)
            if all(_moves_by_itself(name, overlay[name]) for name in moving):
                break
        counts = _Counts()
        digest = hashlib.sha256()
        with _Packed(part) as out:

            def put(text):
                digest.update(text)
                out.write(text)

            put(_json(header))
            for node in ancestors:
                put(line(node, "ancestor"))
            for node in _laid_over(walk, overlay):
                counts.add(node)
                put(line(node))
            trailer = {
                **counts.totals(),
                "zxid": horizon,
                "zxid_end": reader.zxid(),
                "moving": {
                    "by_kind": dict(sorted(Counter(map(znodes.kind, moving)).items())),
                    "paths": moving[:NAMED_PATHS],
                },
                "sha256": digest.hexdigest(),
            }
            out.write(_json({"end": trailer}))
        _publish(part, path, directory)
    backup = Backup(path)
    backup.header, backup.trailer = header, trailer
    return {**backup.facts(), "moving": trailer["moving"], "rounds": settled, "vanished": reader.vanished}


def file_sha256(path):
    """The SHA-256 of a file, as sha256sum prints it."""
    digest = hashlib.sha256()
    with open(path, "rb") as file:
        for chunk in iter(lambda: file.read(1 << 20), b""):
            digest.update(chunk)
    return digest.hexdigest()


def _cluster_id(reader):
    for node in reader.get_many([znodes.CLUSTER_ID]):
        try:
            return znodes.cluster_id(node.data)
        except znodes.ZnodeError as error:
            raise BackupError(
                f"ZooKeeper's {error}: this is no Kafka cluster's subtree, is the chroot right?"
            ) from None
    raise BackupError(
        f"{reader.client.chroot or ''}{znodes.CLUSTER_ID} does not exist: no Kafka cluster is there; check the chroot"
    )


def _refuse_masked(node, chroot):
    # FinalRequestProcessor (getACL) replaces the hash of a digest identity by 'x' for whoever lacks ADMIN on the znode
    for entry in node.acl:
        if entry["scheme"] == "digest" and entry["id"].endswith(":x"):
            raise BackupError(
                f"ZooKeeper masks the ACL of {chroot}{node.path}: this identity has no ADMIN permission there, and a "
                "backup without the real ACL could not be restored; use the brokers' ZooKeeper identity"
            )


def _laid_over(walk, overlay):
    """The znodes of the walk with the later states of ``overlay`` in their places, new ones at the end."""
    left = dict(overlay)
    for node in Backup(walk).znodes():
        if node.path in overlay:
            node = left.pop(node.path)
        if node is not None:
            yield node
    for path in sorted(left):
        if left[path] is not None:
            yield left[path]


def _stamps(stat):
    return (
        stat.czxid,
        stat.mzxid,
        stat.pzxid,
        stat.version,
        stat.cversion,
        stat.aversion,
        stat.ephemeralOwner,
    )


def _moved(reader, nodes):
    """What is no longer as ``nodes()`` (an iterator each time) has it: ``{path: Znode or None}``, and the set of paths
    whose ACL was set (of that no zxid tells the time)."""
    moved = {}
    changed, acl_set, parents = [], set(), {}
    for node, stat in _beside(nodes(), reader.stat_many):
        if stat is None:
            moved[node.path] = None
        elif _stamps(stat) != _stamps(node.stat):
            changed.append(node.path)
            if stat.aversion != node.stat.aversion:
                acl_set.add(node.path)
            if (stat.czxid, stat.pzxid, stat.cversion) != (node.stat.czxid, node.stat.pzxid, node.stat.cversion):
                parents[node.path] = set()
    moved.update(reader.read_many(changed))
    for root in _new_children(reader, nodes, parents):
        for node in reader.tree(root):
            moved[node.path] = node
    return moved, acl_set


def _new_children(reader, nodes, parents):
    """Paths of live children of ``parents`` (path: empty set) that are not among ``nodes()``."""
    if not parents:
        return []
    for node in nodes():
        parent, name = node.path.rsplit("/", 1)
        if name and (parent or "/") in parents:
            parents[parent or "/"].add(name)
    return [
        ("" if parent == "/" else parent) + "/" + name
        for parent, names in reader.children_many(sorted(parents))
        for name in names or ()
        if name not in parents[parent]
    ]


def _beside(nodes, ask_many):
    """Yields (node, answer) where ``ask_many(paths)`` yields (path, answer) in order."""
    asked = deque()

    def paths():
        for node in nodes:
            asked.append(node)
            yield node.path

    for _path, answer in ask_many(paths()):
        yield asked.popleft(), answer


def _later(reader, moved, horizon):
    """The paths among ``moved`` whose state at ``horizon`` is not the one that was read now."""
    later = []
    for path, node in moved.items():
        if node is None:
            # A deletion leaves its zxid on the parent
            stat = reader.stat(path.rpartition("/")[0] or "/")
            if stat is None or stat.pzxid > horizon:
                later.append(path)
        elif max(node.stat.czxid, node.stat.mzxid, node.stat.pzxid) > horizon:
            later.append(path)
    return later


def _moves_by_itself(path, node):
    if node is not None and node.stat.ephemeralOwner:
        return True
    # Parents of ephemerals and notifications move with them
    return znodes.kind(path) in znodes.VOLATILE_KINDS or path in (
        "/",
        znodes.BROKER_IDS,
        znodes.CONFIG_CHANGES,
        znodes.ISR_CHANGES,
        znodes.LOG_DIR_EVENTS,
        znodes.DELEGATION_TOKEN_CHANGES,
        *znodes.ACL_CHANGES,
    )


def _private_directory(path):
    directory = os.path.dirname(os.path.abspath(path))
    os.makedirs(directory, mode=0o700, exist_ok=True)
    mode = stat_module.S_IMODE(os.stat(directory).st_mode)
    if mode & 0o077:
        raise BackupError(
            f"{directory} has mode {mode:04o}: a backup holds SCRAM credentials, so its directory must be 0700"
        )
    return directory


@contextlib.contextmanager
def _scratch(path):
    """A new file of mode 0600 that is gone at the end unless it was moved away."""
    os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
    try:
        yield path
    finally:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(path)


class _Packed:
    """Writes a gzip file and has it on disk at its end."""

    def __init__(self, path):
        self._file = open(path, "wb")  # noqa: SIM115 - closed in __exit__
        self._gzip = gzip.GzipFile(filename="", fileobj=self._file, mode="wb", compresslevel=1, mtime=0)
        self.write = self._gzip.write

    def __enter__(self):
        return self

    def __exit__(self, *unused):
        with self._file:
            self._gzip.close()
            self._file.flush()
            os.fsync(self._file.fileno())


def _publish(part, path, directory):
    # link, not rename: it fails where another run has put its file in the meantime
    try:
        os.link(part, path)
    except FileExistsError:
        raise BackupError(f"{path} exists and is not overwritten") from None
    handle = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


# --- comparing ----------------------------------------------------------------------------------------


def verify(client, path, window=500, max_rate=None, timeout=30.0):
    """Reads the file back and compares it with the live tree.

    A persistent znode that has not changed since the backup (by its zxids and ACL version) must be equal in data,
    ACL, versions and zxids; what is missing or new must have a trace of its removal or creation after the backup.

    :returns: ``{"path", "sha256", "file_bytes", "cluster_id", "taken_at", "zxid", "znodes", "ephemerals",
        "data_bytes", "equal", "changed_since": {"changed", "added", "removed"} each ``{kind: count}`` (of a new
        subtree its root is counted), "differ": [{"path", "what"}] (the first 100), "differ_count"}``.
    :raises BackupBroken: see :meth:`Backup.check`.
    :raises BackupForeign: the live cluster is another one, or its history is older than the backup.
    """
    backup = Backup(path).check()
    reader = zookeeper.Reader(client, window, max_rate, timeout)
    require_same_cluster(backup, reader)
    comparison = _Comparison(reader, backup.trailer["zxid"])
    for node, live in _beside(backup.znodes(), reader.read_many):
        comparison.judge(node, live)
    comparison.judge_new(backup.znodes)
    return {
        **backup.facts(),
        "equal": comparison.equal,
        "changed_since": {name: dict(sorted(kinds.items())) for name, kinds in comparison.since.items()},
        "differ": comparison.differ[:NAMED_PATHS],
        "differ_count": len(comparison.differ),
    }


def require_same_cluster(backup, reader):
    """Raises BackupForeign unless a checked backup is of the live cluster and not from its future."""
    live_id, live_zxid, zxid = _cluster_id(reader), reader.zxid(), backup.trailer["zxid"]
    if live_id != backup.header["cluster_id"]:
        raise BackupForeign(
            f"{backup.path} is a backup of cluster {backup.header['cluster_id']}, the live cluster is {live_id}"
        )
    if live_zxid < zxid:
        raise BackupForeign(
            f"{backup.path} was taken at zxid {zxid:#x} and the live ZooKeeper is at {live_zxid:#x}: another ensemble, "
            "or one that was restored from an older state"
        )


# They live as long as the cluster does. Made anew, every zxid is from another history and proves nothing.
_NEVER_MADE_ANEW = ("/", znodes.CLUSTER_ID)


class _Comparison:
    def __init__(self, reader, horizon):
        self.reader = reader
        self.horizon = horizon
        self.equal = 0
        self.since = {"changed": Counter(), "added": Counter(), "removed": Counter()}
        self.differ = []
        self._parents = {}

    def judge(self, node, live):
        if node.stat.ephemeralOwner:
            return
        if live is None:
            if self._removed_since(node.path):
                self._count("removed", node.path)
            else:
                self._differs(node.path, "is gone, and no parent has changed since the backup")
            return
        if live.stat.czxid != node.stat.czxid:
            if node.path in _NEVER_MADE_ANEW:
                self._differs(node.path, "was made anew: ZooKeeper was rebuilt or restored after the backup")
            elif live.stat.czxid > self.horizon:
                self._count("changed", node.path)
                self._parents[node.path] = set()
            else:
                self._differs(node.path, "was created by another transaction, before the backup")
            return
        changed = False
        for stamp, versions, what in (("mzxid", "version", "data"), ("pzxid", "cversion", "children")):
            if getattr(live.stat, stamp) > max(self.horizon, getattr(node.stat, stamp)):
                changed = True
                if stamp == "pzxid":
                    self._parents[node.path] = set()
            elif any(getattr(live.stat, name) != getattr(node.stat, name) for name in (stamp, versions)):
                self._differs(node.path, f"has other {what} versions though no transaction since the backup touched it")
                return
        if live.stat.mzxid == node.stat.mzxid and live.data != node.data:
            self._differs(node.path, "has other data though no transaction since the backup touched it")
        elif live.stat.aversion > node.stat.aversion:
            # setACL leaves no zxid, so an ACL that was set again counts as changed since
            self._count("changed", node.path)
        elif live.stat.aversion < node.stat.aversion or live.acl != node.acl:
            self._differs(node.path, "has another ACL though none was set since the backup")
        elif changed:
            self._count("changed", node.path)
        else:
            self.equal += 1

    def judge_new(self, nodes):
        """Live children of changed parents that the backup lacks must be newer than it."""
        paths = _new_children(self.reader, nodes, self._parents)
        for path, stat in self.reader.stat_many(paths):
            if stat is None or stat.ephemeralOwner:
                continue
            if stat.czxid > self.horizon:
                self._count("added", path)
            else:
                self._differs(path, "was there before the backup, which lacks it")

    def _removed_since(self, path):
        while path != "/":
            path = path.rpartition("/")[0] or "/"
            stat = self.reader.stat(path)
            if stat is not None:
                return stat.pzxid > self.horizon
        return False

    def _count(self, what, path):
        self.since[what][znodes.kind(path)] += 1

    def _differs(self, path, what):
        self.differ.append({"path": path, "what": what})
