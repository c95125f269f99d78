# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""ZooKeeper's trees at an exact zxid, from the files of several servers: rows with one digest for each znode.

A digest covers all that ZooKeeper stores of a znode: data, ACL and StatPersisted (server.DataNode).
"""

from __future__ import annotations

import collections
import contextlib
import functools
import hashlib
import itertools
import json
import struct
import zlib
from typing import Any, Callable, Collection, Dict, Iterable, Iterator, Mapping, NamedTuple, Sequence, Tuple

import pyarrow as pa
from ansible_collections.quorumshift.kafka.plugins.module_utils.core.ensemble.leftovers import FILES, find_leftover
from ansible_collections.quorumshift.kafka.plugins.module_utils.files import archives
from ansible_collections.quorumshift.kafka.plugins.module_utils.formats.zookeeper import zk_files, zk_log, znodes
from pyspark.sql import DataFrame, SparkSession

from quorumshift_spark.normal_form import Digests, canonical
from quorumshift_spark.views import ViewError
from quorumshift_spark.views.source import on_tasks

STAT = ("czxid", "mzxid", "ctime", "mtime", "version", "cversion", "aversion", "ephemeralOwner", "pzxid")
FIELDS = ("data", "acl", *STAT)
SHORT, FAILED = "short", "failed"

ROWS = pa.schema(
    [
        ("tree", pa.int32()),
        ("path", pa.string()),
        ("digest", pa.int64()),
        ("changed", pa.bool_()),
        ("fields", pa.string()),
        ("error", pa.string()),
    ]
)
"""A znode of the tree with this number: its digest, and whether it changed after the cut; or its `fields` as JSON. Or,
without a path, the number of `changed` paths as digest, or SHORT or FAILED with a text in `error`."""

_STAT = struct.Struct(">qqqqiiiqq")
_ROWS_A_BATCH = 20_000
# Of these, no value is secret; other data is shown as a digest (ZkData)
_SHOWN = (
    znodes.TOPICS,
    znodes.BROKER_IDS,
    znodes.BROKER_SEQUENCE_ID,
    znodes.CONTROLLER,
    znodes.CONTROLLER_EPOCH,
    znodes.CLUSTER_ID,
    znodes.FEATURE,
    znodes.PRODUCER_ID_BLOCK,
    znodes.DELETE_TOPICS,
    znodes.REASSIGN_PARTITIONS,
    *(f"{znodes.CONFIG}/{kind}" for kind in ("topics", "clients", "ips")),
    *znodes.ACL_STORES.values(),
)


Nodes = Iterator[Tuple[str, zk_files.Node]]


class Files(NamedTuple):
    """The files of a server: its `version-2` directories, or an archive of both, or its content.

    `processed`: see zookeeper_files.snapshot_up_to.
    """

    name: str
    snapshots: str
    logs: str
    processed: Mapping[int, int] = {}
    archive: str = ""
    sha256: str = ""
    content: bytes | None = None

    @contextlib.contextmanager
    def opened(self) -> Iterator[Files]:
        """Yield these files in directories. Raises archives.SnapshotError, OSError."""
        if self.snapshots:
            yield self
            return
        with archives.unpack_privately(self.archive, self.sha256, FILES, self.content) as directory:
            yield self._replace(snapshots=directory, logs=directory, content=None)

    def carried(self) -> Files:
        """Return these files with the content of the archive, for tasks on other hosts. Raises ViewError, OSError."""
        if not self.archive:
            raise ViewError("executors do not share the driver's files: give archives (QS-VERIFY-004)")
        with open(self.archive, "rb") as file:
            return self._replace(snapshots="", logs="", content=file.read())


class Tree(NamedTuple):
    """A tree: the snapshot of `base` that has no transaction after the first end, and the logs of `spans`, each to its
    zxid."""

    view: str
    base: Files
    spans: Tuple[Tuple[Files, int], ...]

    @contextlib.contextmanager
    def replayed(self, under: str) -> Iterator[Tuple[zk_log.Changes, Nodes]]:
        """Yield the changes since the snapshot, and (path, Node) of each znode below a chroot. Raises
        ZooKeeperFileError, SnapshotError, OSError."""
        with contextlib.ExitStack() as stack:
            opened = {span.name: stack.enter_context(span.opened()) for span, _upto in self.spans}
            base = opened.get(self.base.name) or stack.enter_context(self.base.opened())
            snapshot = zk_files.snapshot_up_to(base.snapshots, self.spans[0][1], self.base.processed)
            spans = [
                zk_log.Span(opened[span.name].logs, upto, opened[span.name].snapshots) for span, upto in self.spans
            ]
            _zxid, changes, nodes = zk_files.replay(snapshot, spans, under)
            yield changes, nodes

    def carried(self) -> Tree:
        """Return this tree of files that tasks on other hosts can read, see Files.carried."""
        files = {found.name: found.carried() for found in (self.base, *(span for span, _upto in self.spans))}
        return self._replace(
            base=files[self.base.name], spans=tuple((files[span.name], upto) for span, upto in self.spans)
        )


class Part(NamedTuple):
    """What a task reads: the znodes of a tree with this `number` of `of`. `cut`: after which zxid a change counts;
    `wanted`: the paths whose fields are read, None for the digests of all."""

    tree: int
    of_tree: Tree
    chroot: str
    key: bytes
    number: int = 0
    of: int = 1
    cut: int | None = None
    wanted: Collection[str] | None = None


def rows(spark: SparkSession, parts: Sequence[Any], read: Callable[[Any], Iterable[Mapping[str, Any]]]) -> DataFrame:
    """Return the rows (ROWS) that `read` yields for these parts, each on a task."""

    def batches(part: Part) -> Iterator[pa.RecordBatch]:
        found = iter(_named_errors(part, read))
        while batch := list(itertools.islice(found, _ROWS_A_BATCH)):
            yield pa.RecordBatch.from_pylist(batch, ROWS)

    return on_tasks(spark, parts, batches, ROWS)


def _named_errors(part, read):
    try:
        yield from read(part)
    except zk_log.SpanTooShort as error:
        yield {"tree": part.tree, "error": f"{SHORT}:{error}"}
    except (zk_log.ZooKeeperFileError, archives.SnapshotError, OSError, EOFError) as error:
        yield {"tree": part.tree, "error": f"{FAILED}:{error}"}


def of_kafka(path: str, chroot: str) -> bool:
    """Return whether a path below the chroot may be Kafka's: without a chroot, /zookeeper is the ensemble's own."""
    return bool(chroot) or not (path == "/zookeeper" or path.startswith("/zookeeper/"))


def digested(part: Part) -> Iterator[Dict[str, Any]]:
    """Yield the rows of a part: a digest of each znode, and how many paths changed after the cut."""
    with part.of_tree.replayed(part.chroot) as (changes, nodes):
        changed = set()
        if part.cut is not None:
            below = [path for path, of in changes.items() if of[-1].zxid > part.cut]
            changed = {
                path[len(part.chroot) :] or "/"
                for path in below
                if path == part.chroot or path.startswith(f"{part.chroot}/")
            }
            if not part.number:
                yield {"tree": part.tree, "digest": len([path for path in changed if of_kafka(path, part.chroot)])}
        for path, node in nodes:
            if of_kafka(path, part.chroot) and zlib.crc32(path.encode()) % part.of == part.number:
                yield {
                    "tree": part.tree,
                    "path": path,
                    "digest": digest(part.key, path, node),
                    "changed": path in changed,
                }


def digest(key: bytes, path: str, node: zk_files.Node) -> int:
    """Return a znode's digest of 64 bits, keyed since data may be secret. Raises ZooKeeperFileError without an ACL."""
    if node.acl is None:
        raise zk_log.ZooKeeperFileError("the snapshot has no ACL of this znode, and the log neither", path)
    data = b"-" if node.data is None else b"+" + node.data
    parts = (_STAT.pack(*node.stat), _acl(node.acl), data)
    hashed = hashlib.blake2b(b"".join(b"%d:%s" % (len(part), part) for part in parts), digest_size=8, key=key[:64])
    return int.from_bytes(hashed.digest(), "big", signed=True)


@functools.lru_cache(maxsize=4096)  # most znodes have one of a few
def _acl(acl: zk_log.Acl) -> bytes:
    return canonical(acl).encode()


def shown(part: Part) -> Iterator[Dict[str, Any]]:
    """Yield rows with the fields of the wanted znodes."""
    digests = Digests(part.key)
    with part.of_tree.replayed(part.chroot) as (_changes, nodes):
        for path, node in nodes:
            if path in (part.wanted or ()):
                yield {"tree": part.tree, "path": path, "fields": json.dumps(fields(path, node, digests))}


def fields(path: str, node: zk_files.Node, digests: Digests) -> Dict[str, str]:
    """Return a znode's fields as canonical JSON. Secrets are keyed digests."""
    data: Any = None
    if node.data is not None:
        data = {"bytes": len(node.data), "digest": digests.znode(path, node.data)}
        if any(path == shown or path.startswith(f"{shown}/") for shown in _SHOWN):
            with contextlib.suppress(UnicodeDecodeError):
                data = node.data.decode()
    acl = [
        [perms, scheme, digests.znode("acl", name.encode()) if scheme == "digest" else name]
        for perms, scheme, name in node.acl or ()
    ]
    ids = {name: f"0x{value & (1 << 64) - 1:x}" for name, value in zip(STAT, node.stat) if _is_id(name)}
    return {
        "data": canonical(data),
        "acl": canonical(acl),
        **{name: canonical(ids.get(name, value)) for name, value in zip(STAT, node.stat)},
    }


def _is_id(name):
    return name.endswith("xid") or name == "ephemeralOwner"


def left_over(part: Part) -> Iterator[Dict[str, Any]]:
    """Yield one row for each path of `leftover_of`, with its number of znodes, bytes and owners of ephemerals."""
    found: Dict[str, collections.Counter] = {}
    with part.of_tree.replayed("") as (_changes, nodes):
        for path, node in nodes:
            top = find_leftover(path, part.chroot)
            if top is not None:
                counted = found.setdefault(top, collections.Counter())
                owner = zk_files.stat_of(node, 0).ephemeralOwner
                counted.update(znodes=1, bytes=len(node.data or b""), ephemerals=int(owner != 0))
    for top, counted in found.items():
        yield {"tree": part.tree, "path": top, "fields": json.dumps(counted)}
